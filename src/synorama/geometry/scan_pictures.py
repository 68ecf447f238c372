"""Pictures of a scan file as posed pictures: decoded, with lens and pose."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from synorama.geometry.cloud import ScanPicture
from synorama.geometry.lenses import Lens, panorama
from synorama.geometry.views import PosedPicture

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Picture = NDArray[np.uint8]

__all__ = ["posed_pictures"]

TURNED = np.diag([1.0, -1.0, -1.0, 1.0])
"""From a camera that looks along z with y down to one that looks along -z with y up."""


def posed_pictures(pictures: Iterable[ScanPicture]) -> tuple[list[PosedPicture], list[str]]:
    """Return the pictures that can be used to find a place, and why others cannot.

    Parameters
    ----------
    pictures
        As the file's reader lists them.

    Returns
    -------
    Pictures posed in the file's frame, and words for the operator on each that was left out.
    """
    usable: list[PosedPicture] = []
    left_out: list[str] = []
    for picture in pictures:
        made = _posed(picture)
        if isinstance(made, str):
            left_out.append(f"the scan's picture '{picture.name}' is not used: {made}")
        else:
            usable.append(made)
    return usable, left_out


def _posed(picture: ScanPicture) -> PosedPicture | str:
    if picture.T_file_camera is None:
        return "the file does not say where it was taken"
    if picture.kind not in ("spherical", "pinhole"):
        return f"a {picture.kind} picture does not say in which directions its pixels look"
    pixels = _decoded(picture.read())
    if pixels is None:
        return f"its {picture.coding} bytes do not decode"
    lens = _lens(picture, pixels.shape[1], pixels.shape[0])
    if lens is None:
        return "its focal length is not given"
    pose = np.array(picture.T_file_camera.matrix)
    return PosedPicture(
        picture.name, pixels, lens, pose if picture.kind == "spherical" else pose @ TURNED
    )


def _decoded(data: bytes) -> Picture | None:
    import cv2

    found = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR) if data else None
    return None if found is None else np.ascontiguousarray(found[..., ::-1], np.uint8)


def _lens(picture: ScanPicture, width: int, height: int) -> Lens | None:
    """Return the lens for the picture as it decodes, which may be smaller than it says."""
    factor = width / (picture.width or width)
    if picture.kind == "spherical":
        if picture.pixel_size is None:
            return panorama(width, height)
        across, down = (size / factor for size in picture.pixel_size)
        return panorama(width, height, (across, down))
    if not picture.focal_m or picture.pixel_size is None:
        return None
    focal = [picture.focal_m / size * factor for size in picture.pixel_size]
    middle = picture.principal_px or ((width / factor - 1) / 2, (height / factor - 1) / 2)
    centre = [(c + 0.5) * factor - 0.5 for c in middle]
    return Lens("pinhole", width, height, np.array([*focal, *centre, 0, 0, 0, 0, 0]))
