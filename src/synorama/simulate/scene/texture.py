"""Textures made from random numbers: wood, stone, tiles, paper ... rich enough to match features.

Each is one square picture. Materials repeat without a seam; prints (labels, posters) are shown
once. `Atlas` holds them all, with smaller copies for the distance, in one picture from which a
renderer takes any sample with a single look-up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from synorama.simulate.scene.meshes import Look

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Float32 = NDArray[np.float32]
    Picture = NDArray[np.uint8]

__all__ = ["CHECKER_CELLS", "TILE_NAMES", "Atlas", "Palette", "make_atlas"]

PAD = 1  # texels around each tile that repeat its other side, for interpolation across the seam
CHECKER_CELLS = 8  # squares along each side of the checkerboard
PRINTS = 20  # different labels and posters


@dataclass(frozen=True, slots=True, eq=False)
class Atlas:
    """All textures in one picture.

    Parameters
    ----------
    picture
        ``(H, W, 3)`` uint8, linear light.
    side_px
        Side of a tile in the first, finest level; each level halves it.
    columns
        Tiles beside each other.
    level_rows
        First row of each level in the picture.
    """

    picture: Picture
    side_px: int
    columns: int
    level_rows: tuple[int, ...]

    def sample(self, tile: ArrayLike, uv: Float32, texel: ArrayLike) -> Picture:
        """Return colours ``(N, 3)`` uint8.

        Parameters
        ----------
        tile
            ``(N,)`` numbers of the textures.
        uv
            ``(N, 2)`` coordinates in widths of the texture.
        texel
            ``(N,)`` how many texels of the finest level one pixel of the picture covers.
        """
        import cv2

        levels = len(self.level_rows)
        level = np.log2(np.clip(texel, 1.0, 2.0 ** (levels - 1))).astype(np.int32)
        side = np.take((self.side_px >> np.arange(levels)).astype(np.float32), level)
        row, column = np.divmod(np.asarray(tile, np.float32), np.float32(self.columns))
        inside = uv - np.floor(uv)
        cell = side + np.float32(2 * PAD)
        x = column * cell + inside[:, 0] * side + np.float32(PAD - 0.5)
        y = row * cell + inside[:, 1] * side + np.float32(PAD - 0.5)
        y += np.take(np.array(self.level_rows, np.float32), level)
        x, y = _in_rows(x), _in_rows(y)
        out = cv2.remap(self.picture, x, y, cv2.INTER_LINEAR)
        return np.asarray(out).reshape(-1, 3)[: len(uv)]


def _in_rows(values: Float32, width: int = 64) -> Float32:
    """Return values as a picture: OpenCV bounds the height of one."""
    return np.pad(values, (0, -len(values) % width)).reshape(-1, width)


# --- noise -----------------------------------------------------------------------------------


def _noise(rng: np.random.Generator, side: int, cells: tuple[int, int]) -> Float32:
    """Return smooth noise ``(side, side)`` about 0 that repeats without a seam."""
    import cv2

    rows, cols = cells
    pad = 2
    grid = np.pad(rng.standard_normal((rows, cols)).astype(np.float32), pad, mode="wrap")
    size = (round(side * (cols + 2 * pad) / cols), round(side * (rows + 2 * pad) / rows))
    big = cv2.resize(grid, size, interpolation=cv2.INTER_CUBIC)
    top, left = round(side * pad / rows), round(side * pad / cols)
    return np.asarray(big[top : top + side, left : left + side], np.float32)


def _fractal(rng: np.random.Generator, side: int, first: int, octaves: int) -> Float32:
    """Return noise with detail at many scales."""
    total = np.zeros((side, side), np.float32)
    for k in range(octaves):
        cells = min(first << k, side)
        total += _noise(rng, side, (cells, cells)) * 0.65**k
    return total


def _grey(values: Float32) -> Float32:
    return np.repeat(values[..., np.newaxis], 3, axis=2)


# --- materials: each returns (side, side, 3) about 0 to 1 -----------------------------------


def _plaster(rng: np.random.Generator, side: int) -> Float32:
    return _grey(0.82 + 0.035 * _fractal(rng, side, 4, 3) + 0.035 * _fractal(rng, side, 48, 3))


def _wood(rng: np.random.Generator, side: int) -> Float32:
    streaks = _noise(rng, side, (64, 3)) + 0.7 * _noise(rng, side, (128, 6))
    rings = np.sin(9 * _noise(rng, side, (5, 2)) + 3 * streaks)
    shade = 0.66 + 0.09 * streaks + 0.07 * rings + 0.03 * _fractal(rng, side, 64, 2)
    knots = np.maximum(_noise(rng, side, (9, 6)) - 1.9, 0)
    return _grey(shade - 0.35 * knots) * np.array([1.0, 0.93, 0.84], np.float32)


def _planks(rng: np.random.Generator, side: int) -> Float32:
    boards = 8
    picture = _wood(rng, side)
    high = side // boards
    for k in range(boards):
        rows = slice(k * high, (k + 1) * high)
        picture[rows] = np.roll(picture[rows], int(rng.integers(side)), axis=1)
        picture[rows] *= rng.uniform(0.75, 1.15)
        picture[k * high : k * high + max(side // 170, 1)] *= 0.45
        end = int(rng.integers(side))
        picture[rows, end : end + max(side // 170, 1)] *= 0.5
    return picture


def _ceramic(rng: np.random.Generator, side: int, cells: int, tinted: float) -> Float32:
    high = side // cells
    shade = 0.78 + 0.05 * _fractal(rng, side, 8, 4)
    picture = _grey(shade)
    for row in range(cells):
        for col in range(cells):
            here = np.s_[row * high : (row + 1) * high, col * high : (col + 1) * high]
            picture[here] *= 1 + tinted * rng.uniform(-1, 1, 3).astype(np.float32)
            if rng.random() < tinted:
                picture[here] *= 1 - 0.45 * _ornament(rng, high)[..., np.newaxis]
    joint = max(side // 170, 1)
    lines = np.arange(side) % high < joint
    picture[lines] = 0.42
    picture[:, lines] = 0.42
    return picture


def _ornament(rng: np.random.Generator, side: int) -> Float32:
    """Return a mark ``(side, side)`` of 0 and 1: rings, petals or a diamond."""
    y, x = np.mgrid[-1 : 1 : side * 1j, -1 : 1 : side * 1j]
    radius, angle = np.hypot(x, y), np.arctan2(y, x)
    petals = 0.55 + 0.25 * np.cos(int(rng.integers(3, 9)) * angle + rng.uniform(0, 6))
    inside = (radius < petals) & (radius > rng.uniform(0.1, 0.35))
    return np.asarray(inside, np.float32)


def _wall_tiles(rng: np.random.Generator, side: int) -> Float32:
    return _ceramic(rng, side, 8, 0.25)


def _floor_tiles(rng: np.random.Generator, side: int) -> Float32:
    return _ceramic(rng, side, 4, 0.08)


def _stone(rng: np.random.Generator, side: int) -> Float32:
    grain = _fractal(rng, side, 32, 4)
    veins = np.exp(-np.abs(_fractal(rng, side, 3, 4)) * 9)
    base = np.stack([0.5 + 0.13 * grain + 0.04 * _noise(rng, side, (90, 90)) for _ in range(3)], -1)
    specks = (_noise(rng, side, (110, 110)) > 1.6).astype(np.float32)
    return np.asarray(base + 0.3 * _grey(specks) - 0.18 * _grey(veins), np.float32)


def _fabric(rng: np.random.Generator, side: int) -> Float32:
    y, x = np.mgrid[0:side, 0:side] * (2 * np.pi / side)
    weave = 0.05 * np.sign(np.sin(64 * x) * np.sin(64 * y))
    bands = 0.12 * np.sign(np.sin(int(rng.integers(3, 9)) * x + rng.uniform(0, 6)))
    bands = bands + 0.1 * np.sign(np.sin(int(rng.integers(3, 9)) * y))
    return _grey((0.62 + weave + bands + 0.05 * _fractal(rng, side, 16, 4)).astype(np.float32))


def _metal(rng: np.random.Generator, side: int) -> Float32:
    brushed = _noise(rng, side, (128, 4)) + _noise(rng, side, (min(side, 256), 8))
    return _grey(0.63 + 0.035 * brushed + 0.04 * _fractal(rng, side, 3, 3))


def _paint(rng: np.random.Generator, side: int) -> Float32:
    scratches = np.maximum(_noise(rng, side, (40, 40)) - 1.7, 0)
    return _grey(0.8 + 0.02 * _fractal(rng, side, 5, 5) - 0.15 * scratches)


def _glaze(rng: np.random.Generator, side: int) -> Float32:
    y = np.arange(side)[:, np.newaxis] / side
    stripes = 0.12 * np.sign(np.sin(2 * np.pi * int(rng.integers(2, 6)) * y + 1))
    drops = 0.25 * (_noise(rng, side, (14, 14)) > 1.1)
    return _grey((0.74 + stripes - drops + 0.04 * _fractal(rng, side, 8, 4)).astype(np.float32))


def _leaves(rng: np.random.Generator, side: int) -> Float32:
    ribs = np.abs(np.sin(12 * _fractal(rng, side, 6, 3)))
    shade = 0.35 + 0.4 * ribs + 0.1 * _noise(rng, side, (40, 40))
    return _grey(shade.astype(np.float32)) * np.array([0.55, 1.0, 0.4], np.float32)


def _skin(rng: np.random.Generator, side: int) -> Float32:
    shade = _grey(0.8 + 0.03 * _fractal(rng, side, 6, 5))
    return shade * np.array([1.0, 0.8, 0.68], np.float32)


# --- prints ----------------------------------------------------------------------------------


def _sky(rng: np.random.Generator, side: int) -> Float32:
    y = np.linspace(1, 0, side, dtype=np.float32)[:, np.newaxis]
    clouds = np.clip(_fractal(rng, side, 3, 4) * 0.25, 0, 1)[..., np.newaxis]
    blue = np.array([0.55, 0.75, 1.0], np.float32)
    picture = blue * (1 - 0.25 * y[..., np.newaxis]) * (1 - clouds) + clouds
    hedge = (
        0.3 + 0.08 * _noise(rng, side, (2, 12))[:1].T[:, 0] + 0.03 * _noise(rng, side, (2, 60))[0]
    )
    ground = y < hedge[np.newaxis, :]
    green = _leaves(rng, side) * 0.75
    return np.where(ground[..., np.newaxis], green, picture)


def _checker(rng: np.random.Generator, side: int) -> Float32:
    cells = np.arange(side) * CHECKER_CELLS // side
    return _grey(np.where((cells[:, np.newaxis] + cells) % 2, 0.9, 0.06).astype(np.float32))


def _print(rng: np.random.Generator, side: int) -> Float32:
    """Return a label or a poster: ground, shapes and lines of something like writing."""
    import cv2

    def colour() -> tuple[float, ...]:
        return tuple(float(c) for c in rng.uniform(0.08, 1.0, 3))

    picture = np.empty((side, side, 3), np.float32)
    picture[:] = colour()
    for _ in range(int(rng.integers(3, 8))):
        centre = tuple(int(v) for v in rng.integers(0, side, 2))
        size = tuple(int(v) for v in rng.integers(side // 14, side // 3, 2))
        if rng.random() < 0.5:
            cv2.ellipse(picture, centre, size, float(rng.uniform(0, 180)), 0, 360, colour(), -1)
        else:
            end = (centre[0] + size[0], centre[1] + size[1])
            cv2.rectangle(picture, centre, end, colour(), -1)
    _write_lines(rng, picture, colour)
    return picture + 0.03 * _grey(_fractal(rng, side, 16, 3))


def _write_lines(
    rng: np.random.Generator, picture: Float32, colour: Callable[[], tuple[float, ...]]
) -> None:
    import cv2

    side = len(picture)
    letters = np.array(list("ABCDEFGHIKLMNOPRSTUVWZ0123456789 "))
    for _ in range(int(rng.integers(4, 10))):
        text = "".join(rng.choice(letters, int(rng.integers(4, 14))))
        where = (int(rng.integers(0, side // 2)), int(rng.integers(side // 10, side)))
        scale = float(rng.uniform(0.5, 2.2)) * side / 512
        thick = max(1, round(scale * 2.5))
        cv2.putText(picture, text, where, cv2.FONT_HERSHEY_SIMPLEX, scale, colour(), thick)


Maker = Callable[[np.random.Generator, int], "Float32"]
NATURAL: dict[str, Maker] = {
    "plaster": _plaster,
    "ceiling": _plaster,
    "wood": _wood,
    "planks": _planks,
    "wall_tiles": _wall_tiles,
    "floor_tiles": _floor_tiles,
    "stone": _stone,
    "fabric": _fabric,
    "metal": _metal,
    "paint": _paint,
    "glaze": _glaze,
    "leaves": _leaves,
    "skin": _skin,
}
PRINTED: dict[str, Maker] = {f"print{k}": _print for k in range(PRINTS)}
EXACT: dict[str, Maker] = {"sky": _sky, "checker": _checker}
TILE_NAMES = (*NATURAL, *PRINTED, *EXACT)
"""Names of all textures; a texture's number is its place here."""


def make_atlas(seed: int, contrast: float, side_px: int) -> Atlas:
    """Return all textures of a room.

    Parameters
    ----------
    seed
        Of the room.
    contrast
        1 for what a room shows, towards 0 for ever plainer surfaces; the checkerboard stays.
    side_px
        Side of a texture, a power of two: 256 for small pictures, 512 for full-size ones.
    """
    makers = {**NATURAL, **PRINTED, **EXACT}
    tiles = []
    for number, (name, make) in enumerate(makers.items()):
        tile = make(np.random.default_rng([seed, 77, number]), side_px)
        tiles.append(tile if name == "checker" else _contrasted(tile, contrast))
    return _packed(tiles, side_px)


def _contrasted(tile: Float32, contrast: float) -> Float32:
    mean = tile.mean(axis=(0, 1), keepdims=True)
    return np.asarray(np.clip(mean + contrast * (tile - mean), 0, 1), np.float32)


def _packed(tiles: list[Float32], side_px: int) -> Atlas:
    columns = 8
    rows = -(-len(tiles) // columns)
    levels = int(np.log2(side_px)) - 1
    heights = [rows * ((side_px >> k) + 2 * PAD) for k in range(levels)]
    starts = [0, *np.cumsum(heights).tolist()]
    picture = np.zeros((starts[-1], columns * (side_px + 2 * PAD), 3), np.uint8)
    for number, tile in enumerate(tiles):
        _lay(picture, tile, number, columns, starts)
    return Atlas(picture, side_px, columns, tuple(starts[:-1]))


def _lay(picture: Picture, tile: Float32, number: int, columns: int, starts: list[int]) -> None:
    """Put a tile into the picture at all levels."""
    import cv2

    row, column = divmod(number, columns)
    for start in starts[:-1]:
        cell = len(tile) + 2 * PAD
        top, left = start + row * cell, column * cell
        padded = np.pad(tile, ((PAD, PAD), (PAD, PAD), (0, 0)), mode="wrap")
        picture[top : top + cell, left : left + cell] = np.rint(np.clip(padded, 0, 1) * 255)
        half = (len(tile) // 2, len(tile) // 2)
        tile = np.asarray(cv2.resize(tile, half, interpolation=cv2.INTER_AREA), np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class Palette:
    """Looks by name, each beginning somewhere else in its texture."""

    rng: np.random.Generator

    def look(
        self,
        name: str,
        tint: tuple[float, float, float] = (1.0, 1.0, 1.0),
        *,
        span_m: float = 1.28,
        glow: float = 0.0,
    ) -> Look:
        """Return the look of a material."""
        u, v = self.rng.random(2)
        return Look(TILE_NAMES.index(name), tint, span_m, (float(u), float(v)), glow)

    def printed(self) -> Look:
        """Return the look of some label or poster, shown once over a face."""
        number = int(self.rng.integers(PRINTS))
        return Look(TILE_NAMES.index(f"print{number}"), span_m=0.0)

    def exact(self, name: str, glow: float = 0.0) -> Look:
        """Return the look of a picture shown once over a face."""
        return Look(TILE_NAMES.index(name), span_m=0.0, glow=glow)

    def colour(self, least: float = 0.25, most: float = 1.0) -> tuple[float, float, float]:
        """Return some colour."""
        r, g, b = self.rng.uniform(least, most, 3)
        return float(r), float(g), float(b)
