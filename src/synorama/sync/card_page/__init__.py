"""The clock card as one page for any browser: nothing is fetched, it works without a network.

``qrcode.js`` is *QR Code Generator for JavaScript* 2.0.4 by Kazuhiko Arase, MIT licence (see
``LICENSE.qrcode.txt``), unchanged: the page makes ten codes a second on a phone, which no file
can hold in advance.
"""

from __future__ import annotations

import json
from importlib.resources import files

from synorama.sync import card

__all__ = ["card_page"]


def card_page() -> str:
    """Return the page as HTML."""
    here = files(__name__)
    page = (here / "card.html").read_text("utf-8")
    library = (here / "qrcode.js").read_text("utf-8")
    return page.replace("/* QR_LIBRARY */", library).replace(
        "/* LAYOUT */ null", json.dumps(_layout())
    )


def _layout() -> dict[str, float]:
    return {
        "width": card.CARD_WIDTH,
        "height": card.CARD_HEIGHT,
        "codeLeft": card.CODE_LEFT,
        "codeTop": card.CODE_TOP,
        "codeSize": card.CODE_SIZE,
        "bandLeft": card.BAND_LEFT,
        "bandTop": card.BAND_TOP,
        "bandWidth": card.BAND_WIDTH,
        "bandHeight": card.BAND_HEIGHT,
        "cellLeft": card.CELL_LEFT,
        "cellTop": card.CELL_TOP,
        "cellWidth": card.CELL_WIDTH,
        "cellHeight": card.CELL_HEIGHT,
        "steps": card.STEPS,
        "leastStep": card.LEAST_STEP_MS,
        "cards": card.CARDS,
        "modulus": card.MODULUS,
    }
