"""A camera's lens from pictures of a ChArUco board.

OpenCV finds the corners (S. Garrido-Jurado et al., Pattern Recognition 2014) and fits both of its
models. The one that draws the corners more exactly is kept; a fit that leaves parts of the picture
unseen, or the board always flat on, is refused, since its numbers would be good for nothing there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from synorama.errors import CalibrationRefusedError, UsageError
from synorama.geometry.lenses import Lens

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]
    Picture = NDArray[np.uint8]

__all__ = ["Board", "BoardView", "FittedLens", "find_board", "fit_lens", "spread_views"]

DICTIONARIES = ("4X4_50", "4X4_100", "5X5_100", "5X5_250", "6X6_250")
LEAST_CORNERS = 8  # in a picture that is used
LEAST_VIEWS = 8
MOST_VIEWS = 40
CELLS = (8, 6)  # of the picture, in which corners must lie
LEAST_COVERAGE = 0.55
LEAST_LEAN_RAD = np.deg2rad(15.0)  # between the flattest and the most slanted view of the board
MOST_RMS_PX = 1.5  # at a picture 1920 px wide
OUTLIER = 3.0  # times the median of the views' errors: such a view is left out


@dataclass(frozen=True, slots=True)
class Board:
    """A ChArUco board.

    Parameters
    ----------
    columns, rows
        Squares along both sides.
    square_m, marker_m
        Sides of a square and of a marker [m].
    dictionary
        Of the markers, such as ``4X4_50``.
    """

    columns: int = 7
    rows: int = 5
    square_m: float = 0.04
    marker_m: float = 0.03
    dictionary: str = "4X4_50"

    def __post_init__(self) -> None:
        if self.dictionary not in DICTIONARIES:
            raise UsageError(
                f"there is no set of markers '{self.dictionary}'",
                hint=f"give one of: {', '.join(DICTIONARIES)}",
            )
        if min(self.columns, self.rows) < 3 or not 0 < self.marker_m < self.square_m:
            raise UsageError(
                "no such board can be: at least 3 by 3 squares, each larger than its marker",
                hint="give the board as COLUMNSxROWS:SQUARE_MM:MARKER_MM:MARKERS",
            )

    @classmethod
    def parse(cls, text: str) -> Board:
        """Return the board that is written as ``7x5:40:30:4X4_50`` (sides in millimetres).

        Raises
        ------
        UsageError
            It is written otherwise.
        """
        try:
            size, square, marker, *rest = text.split(":")
            columns, rows = (int(v) for v in size.lower().split("x"))
            sides = float(square) / 1e3, float(marker) / 1e3
            return cls(columns, rows, *sides, *(name.upper() for name in rest))
        except (ValueError, TypeError) as error:
            raise UsageError(
                f"'{text}' describes no board",
                hint="give COLUMNSxROWS:SQUARE_MM:MARKER_MM:MARKERS, such as 7x5:40:30:4X4_50",
            ) from error

    def opencv(self) -> Any:
        """Return OpenCV's board."""
        import cv2

        markers = cv2.aruco.getPredefinedDictionary(getattr(cv2.aruco, f"DICT_{self.dictionary}"))
        return cv2.aruco.CharucoBoard(
            (self.columns, self.rows), self.square_m, self.marker_m, markers
        )


@dataclass(frozen=True, slots=True, eq=False)
class BoardView:
    """The corners of the board in one picture: pixels ``(N, 2)`` and board places ``(N, 3)``."""

    pixels: Float64
    board_m: Float64


@dataclass(frozen=True, slots=True, eq=False)
class FittedLens:
    """A lens and how well it is known.

    Parameters
    ----------
    lens
        For pictures of the size that were taken.
    rms_px
        Root mean square distance of corners from where the lens draws them.
    coverage
        Share of the picture in which corners were seen.
    views
        How many pictures were used.
    other_rms_px
        Of the model that was not kept.
    """

    lens: Lens
    rms_px: float
    coverage: float
    views: int
    other_rms_px: float


def find_board(picture: Picture, board: Board) -> BoardView | None:
    """Return the board's corners in a grey picture, None where too few are seen."""
    import cv2

    whole = board.opencv()
    corners, ids, _, _ = cv2.aruco.CharucoDetector(whole).detectBoard(picture)
    if ids is None or len(ids) < LEAST_CORNERS:
        return None
    places = np.asarray(whole.getChessboardCorners(), np.float64)[ids.ravel()]
    if np.linalg.matrix_rank(places - places[0], tol=1e-6) < 2:  # all in one row
        return None
    return BoardView(np.asarray(corners, np.float64).reshape(-1, 2), places)


def spread_views(views: Sequence[BoardView], most: int = MOST_VIEWS) -> list[BoardView]:
    """Choose views that show the board in different places and sizes."""
    if len(views) <= most:
        return list(views)
    looks = np.array(
        [np.concatenate([v.pixels.mean(axis=0), v.pixels.std(axis=0) * 2]) for v in views]
    )
    chosen = [0]
    gap = np.linalg.norm(looks - looks[0], axis=1)
    while len(chosen) < most:
        chosen.append(int(gap.argmax()))
        gap = np.minimum(gap, np.linalg.norm(looks - looks[chosen[-1]], axis=1))
    return [views[k] for k in sorted(chosen)]


def fit_lens(views: Sequence[BoardView], width: int, height: int) -> FittedLens:
    """Return the lens that draws the board's corners where they were seen.

    Parameters
    ----------
    views
        Of at least eight pictures.
    width, height
        Size of the pictures [px].

    Raises
    ------
    CalibrationRefusedError
        Too few pictures show the board, it was never near the rims or never slanted, or the
        corners fit no lens.
    """
    _check_count(len(views))
    chosen = spread_views(views)
    coverage = _coverage(chosen, width, height)
    if coverage < LEAST_COVERAGE:
        raise CalibrationRefusedError(
            f"the board was seen in {100 * coverage:.0f} % of the picture only, "
            f"{100 * LEAST_COVERAGE:.0f} % are needed",
            hint="film it again and carry the board into all corners, near enough to fill a third "
            "of the picture",
        )
    fits = [
        fit for fit in (_fisheye(chosen, width, height), _pinhole(chosen, width, height)) if fit
    ]
    if not fits:
        raise CalibrationRefusedError(
            "no lens draws the corners as they were seen",
            hint="keep the board flat and still, in good light, and film it again",
        )
    best = min(fits, key=lambda f: f.rms_px)
    other = max((f.rms_px for f in fits if f is not best), default=float("nan"))
    _check(best, width)
    return FittedLens(best.lens, best.rms_px, coverage, len(best.errors), other)


def _check_count(count: int) -> None:
    if count < LEAST_VIEWS:
        raise CalibrationRefusedError(
            f"the board was found in {count} pictures, at least {LEAST_VIEWS} are needed",
            hint="check the board's numbers (--board), its light and sharpness, and show it longer",
        )


def _coverage(views: Sequence[BoardView], width: int, height: int) -> float:
    pixels = np.concatenate([v.pixels for v in views])
    cells = np.floor(pixels / (width, height) * CELLS).astype(int)
    inside = ((cells >= 0) & (cells < CELLS)).all(axis=1)
    return len(np.unique(cells[inside], axis=0)) / (CELLS[0] * CELLS[1])


# --- both models -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Fit:
    lens: Lens
    rms_px: float
    errors: Float64  # of each view
    normals: Float64  # of the board in each view


def _fisheye(views: Sequence[BoardView], width: int, height: int) -> _Fit | None:
    import cv2

    flags = cv2.fisheye.CALIB_RECOMPUTE_EXTRINSIC | cv2.fisheye.CALIB_FIX_SKEW
    start = np.array([[0.5 * width, 0, width / 2], [0, 0.5 * width, height / 2], [0, 0, 1.0]])

    def fitted(some: Sequence[BoardView]) -> Any:
        return cv2.fisheye.calibrate(
            [v.board_m[:, np.newaxis] for v in some],
            [v.pixels[:, np.newaxis] for v in some],
            (width, height),
            start.copy(),
            np.zeros(4),
            flags=flags | cv2.fisheye.CALIB_USE_INTRINSIC_GUESS,
        )

    def drawn(view: BoardView, turn: Any, shift: Any, matrix: Any, bends: Any) -> Any:
        return cv2.fisheye.projectPoints(view.board_m[:, np.newaxis], turn, shift, matrix, bends)[0]

    return _best(views, (width, height), "fisheye", fitted, drawn)


def _pinhole(views: Sequence[BoardView], width: int, height: int) -> _Fit | None:
    import cv2

    def fitted(some: Sequence[BoardView]) -> Any:
        return cv2.calibrateCamera(
            [v.board_m.astype(np.float32) for v in some],
            [v.pixels.astype(np.float32) for v in some],
            (width, height),
            None,
            None,
        )

    def drawn(view: BoardView, turn: Any, shift: Any, matrix: Any, bends: Any) -> Any:
        return cv2.projectPoints(view.board_m, turn, shift, matrix, bends)[0]

    return _best(views, (width, height), "pinhole", fitted, drawn)


def _best(
    views: Sequence[BoardView], size: tuple[int, int], model: Any, fitted: Any, drawn: Any
) -> _Fit | None:
    """Fit a model, leave out views that err far more than the others, and fit again."""
    first = _fit(views, size, model, fitted, drawn)
    if first is None:
        return None
    kept = first.errors <= OUTLIER * np.median(first.errors)
    some = [v for v, k in zip(views, kept, strict=True) if k]
    if len(some) == len(views) or len(some) < LEAST_VIEWS:
        return first
    return _fit(some, size, model, fitted, drawn)


def _fit(
    views: Sequence[BoardView], size: tuple[int, int], model: Any, fitted: Any, drawn: Any
) -> _Fit | None:
    import cv2

    try:
        _, matrix, bends, turns, shifts = fitted(views)
    except cv2.error:  # OpenCV gives up on views that contradict each other
        return None
    off = [
        drawn(v, r, t, matrix, bends).reshape(-1, 2) - v.pixels
        for v, r, t in zip(views, turns, shifts, strict=True)
    ]
    errors = np.array([np.sqrt((o**2).sum(axis=1).mean()) for o in off])
    rms = float(np.sqrt((np.concatenate(off) ** 2).sum(axis=1).mean()))
    params = np.array([matrix[0, 0], matrix[1, 1], matrix[0, 2], matrix[1, 2], *bends.ravel()])
    if not np.isfinite(params).all() or not np.isfinite(rms):
        return None
    normals = np.array([cv2.Rodrigues(np.asarray(r, np.float64))[0][:, 2] for r in turns])
    return _Fit(Lens(model, *size, params), rms, errors, normals)


def _check(fit: _Fit, width: int) -> None:
    limit = MOST_RMS_PX * max(width / 1920, 0.3)
    if fit.rms_px > limit:
        raise CalibrationRefusedError(
            f"the lens draws the corners {fit.rms_px:.2f} px from where they were seen, "
            f"{limit:.2f} px are allowed",
            hint="glue the board onto something flat, hold it still, and measure its squares",
        )
    cosines = np.clip(fit.normals @ fit.normals.T, -1.0, 1.0)
    if np.arccos(cosines.min()) < LEAST_LEAN_RAD:
        raise CalibrationRefusedError(
            "the board was held at the same slant in all pictures: focal length and distance "
            "cannot be told apart",
            hint="tilt the board by 30 degrees to the left, right, up and down",
        )
