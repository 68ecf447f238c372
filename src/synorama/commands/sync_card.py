"""``synorama sync-card``: a clock card for any phone or laptop, shown to all cameras."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from synorama.commands.options import DryRun, Json
from synorama.commands.shared import check_free, print_either

__all__ = ["sync_card"]


def sync_card(
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the page here, for a phone.", readable=False),
    ] = None,
    port: Annotated[
        int, typer.Option("--port", help="Where this computer's own browser finds it.")
    ] = 8765,
    as_json: Json = False,
    dry_run: DryRun = False,
) -> None:
    """Show a clock card in the browser, or write it as one page to take to a phone."""
    if output is not None:
        _write(output, as_json, dry_run)
    elif dry_run:
        print_either({"url": None}, f"would show the card at http://127.0.0.1:{port}/", as_json)
    else:
        _serve(port, as_json)


def _write(output: Path, as_json: bool, dry_run: bool) -> None:
    from synorama.session.storage import whole_file
    from synorama.sync.card_page import card_page

    check_free(output, "give another name, or remove that file first")
    if dry_run:
        print_either({"page": str(output)}, f"would write {output}", as_json)
        return
    with whole_file(output, overwrite=False) as temporary:
        temporary.write_text(card_page(), "utf-8")
    line = f"clock card: {output}. Open it on the device that you show to the cameras"
    print_either({"page": str(output)}, line, as_json)


def _serve(port: int, as_json: bool) -> None:
    from synorama.sync.card_page.server import card_server

    with card_server(port) as server:
        url = f"http://127.0.0.1:{server.server_port}/"
        print_either({"url": url}, f"clock card: {url} until Ctrl-C", as_json)
        sys.stdout.flush()  # it is read while the server runs
        server.serve_forever()
