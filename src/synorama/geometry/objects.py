"""Scanned objects: what is known of each, its files unchanged, and a picture of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from synorama.errors import (
    CloudUnitError,
    EmptyFileError,
    InputNotFoundError,
    MissingTextureError,
)
from synorama.geometry.lenses import Lens, project
from synorama.geometry.mesh_files import (
    Triangles,
    materials_named,
    read_triangles,
    textures_named,
)
from synorama.records import ObjectFileRecord, ObjectPlace, ObjectRecord

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bool = NDArray[np.bool_]
    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]
    Picture = NDArray[np.uint8]

__all__ = [
    "ObjectFile",
    "ScannedObject",
    "Unit",
    "parse_object",
    "read_object",
    "record_of",
    "sampled",
    "thumbnail",
]

Unit: TypeAlias = Literal["m", "cm", "mm"]
METRES: Mapping[Unit, float] = {"m": 1.0, "cm": 0.01, "mm": 0.001}
SMALL_M, LARGE_M = 0.008, 4.0  # objects of a room: from a bottle's cap to a table
EQUAL_SHARE = 1e-6  # of the size: corners so near to each other are one
SAMPLES_A_PIXEL = 6
PLAIN = np.array([176, 176, 184], np.uint8)  # of a surface without a texture


@dataclass(frozen=True, slots=True)
class ObjectFile:
    """A file of an object, as it was: its name beside the main file, and every byte."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True, eq=False)
class ScannedObject:
    """An object of the session's library.

    Parameters
    ----------
    name
        Unique in the session.
    files
        The main file first, then materials and textures, unchanged.
    unit
        Of the main file's numbers.
    unit_recognised
        Whether the unit follows from the size alone, and nobody said it.
    mesh
        Its surface, in metres.
    watertight
        Whether the surface is closed: each edge belongs to two faces of one orientation.
    notes
        What the operator should know.
    place
        Where it stands, as a person or a registration says; None where nobody does.
    """

    name: str
    files: tuple[ObjectFile, ...]
    unit: Unit
    unit_recognised: bool
    mesh: Triangles
    watertight: bool
    notes: tuple[str, ...] = ()
    place: ObjectPlace | None = None

    @property
    def size_m(self) -> Float64:
        """``(3,)`` extent along the axes of its file [m]."""
        used = self.mesh.corners[np.unique(self.mesh.faces)]
        return np.asarray(np.ptp(used, axis=0), np.float64)

    @property
    def textured(self) -> bool:
        """Whether faces have a place in a texture, and the texture is there."""
        return bool(np.isfinite(self.mesh.uv).any()) and bool(_textures(self.files))


def read_object(path: Path, *, name: str | None = None, unit: Unit | None = None) -> ScannedObject:
    """Read an object with its materials and textures.

    Parameters
    ----------
    path
        OBJ, PLY or STL file; what it names must lie beside it.
    name
        In the session; the file's name by default.
    unit
        Of its numbers; recognised by its size where nobody says it.

    Raises
    ------
    InputError
        A file is not there, is empty, breaks its format, or names a texture that is not there;
        or its unit cannot be told.
    """
    main = _file(path, path.name)
    files = [main]
    materials = materials_named(main.data) if path.suffix.lower() == ".obj" else []
    files += [_beside(path, wanted) for wanted in dict.fromkeys(materials)]
    textures = [wanted for file in files for wanted in textures_named(file.name, file.data)]
    files += [_beside(path, wanted) for wanted in dict.fromkeys(textures)]
    return parse_object(files, name=name or path.stem, unit=unit)


def _file(path: Path, name: str) -> ObjectFile:
    if not path.is_file():
        raise InputNotFoundError("there is no such file", path=path)
    data = path.read_bytes()
    if not data:
        raise EmptyFileError("the file is empty", path=path, hint="export the object again")
    return ObjectFile(name, data)


def _beside(path: Path, wanted: str) -> ObjectFile:
    """Return a file that another names; folders of the computer that wrote it are left out."""
    near = path.parent / wanted.replace("\\", "/")
    inside = near.resolve().is_relative_to(path.parent.resolve())
    for place in (near, path.parent / near.name):
        if place.is_file() and (inside or place.parent == path.parent):
            return _file(place, wanted)
    raise MissingTextureError(
        f"it names '{wanted}', which is not there",
        path=path,
        hint="copy material and texture beside the object, or export it without texture",
    )


def parse_object(
    files: Sequence[ObjectFile], *, name: str, unit: Unit | None = None
) -> ScannedObject:
    """Make an object of the bytes of its files, the main one first; errors as `read_object`."""
    main = files[0]
    raw = read_triangles(main.name, main.data)
    chosen = unit or _recognised(raw, main.name)
    mesh = replace(raw, corners=raw.corners * METRES[chosen])
    notes = () if unit else (f"its unit was recognised by its size: {chosen}",)
    return ScannedObject(name, tuple(files), chosen, unit is None, mesh, _watertight(mesh), notes)


def record_of(thing: ScannedObject) -> ObjectRecord:
    """Return what is known of an object short of its surface and its bytes."""
    return ObjectRecord(
        name=thing.name,
        unit=thing.unit,
        unit_recognised=thing.unit_recognised,
        size_m=thing.size_m,
        triangles=len(thing.mesh.faces),
        watertight=thing.watertight,
        textured=thing.textured,
        files=tuple(_file_record(file) for file in thing.files),
        notes=thing.notes,
        place=thing.place,
    )


def _file_record(file: ObjectFile) -> ObjectFileRecord:
    import blake3

    return ObjectFileRecord(file.name, len(file.data), blake3.blake3(file.data).hexdigest())


def _recognised(raw: Triangles, name: str) -> Unit:
    """Return the one unit in which the object has a size that things in a room have."""
    used = raw.corners[np.unique(raw.faces)]
    size = float(np.ptp(used, axis=0).max())
    # Scanners write metres or millimetres; centimetres must be said.
    fitting: list[Unit] = [u for u in ("m", "mm") if SMALL_M <= size * METRES[u] <= LARGE_M]
    if len(fitting) != 1:
        raise CloudUnitError(
            f"its largest side is {size:g}, which tells no unit",
            path=name,
            hint="say its unit: m, cm or mm",
        )
    return fitting[0]


def _watertight(mesh: Triangles) -> bool:
    """Return whether each directed edge has its opposite exactly once; equal corners are one."""
    step = EQUAL_SHARE * float(np.ptp(mesh.corners, axis=0).max())
    rounded = np.rint(mesh.corners / max(step, 1e-300)).astype(np.int64)
    _, same = np.unique(rounded, axis=0, return_inverse=True)
    faces = same.ravel()[mesh.faces]
    faces = faces[(faces != np.roll(faces, 1, axis=1)).all(axis=1)]
    edges = np.concatenate([faces[:, (k, (k + 1) % 3)] for k in range(3)])
    there, count = np.unique(edges, axis=0, return_counts=True)
    if (count != 1).any() or not len(there):
        return False
    back = np.unique(edges[:, ::-1], axis=0)
    return len(back) == len(there) and bool((back == there).all())


# --- samples and picture ---------------------------------------------------------------------


def sampled(thing: ScannedObject, count: int, seed: int = 0) -> tuple[Float64, Float64, Picture]:
    """Return points on the surface, evenly by area: places [m], normals and colours.

    Parameters
    ----------
    thing
        The object.
    count
        How many.
    seed
        Of the draws.

    Returns
    -------
    ``(count, 3)`` places and normals in the object's frame, ``(count, 3)`` uint8 colours.
    """
    rng = np.random.default_rng([seed, 11])
    mesh = thing.mesh
    triangle = mesh.corners[mesh.faces]
    normal = np.cross(triangle[:, 1] - triangle[:, 0], triangle[:, 2] - triangle[:, 0])
    area = np.linalg.norm(normal, axis=1)
    which = rng.choice(len(area), count, p=area / area.sum())
    weights = _inside(rng.random((count, 2)))
    places = np.einsum("nk,nki->ni", weights, triangle[which])
    normals = normal[which] / np.maximum(area[which, np.newaxis], 1e-300)
    return places, normals, _colours(thing, which, weights)


def _inside(draws: Float64) -> Float64:
    """Return weights ``(N, 3)`` of the corners, even over a triangle."""
    root = np.sqrt(draws[:, 0])
    return np.stack([1 - root, root * (1 - draws[:, 1]), root * draws[:, 1]], axis=1)


def _colours(thing: ScannedObject, which: Int64, weights: Float64) -> Picture:
    colours = np.tile(PLAIN, (len(which), 1))
    uv = np.einsum("nk,nki->ni", weights, thing.mesh.uv[which])
    textures = _textures(thing.files)
    materials = _texture_of_material(thing.files)
    for material in np.unique(thing.mesh.material[which]):
        wanted = materials.get(str(material), next(iter(textures), ""))
        texture = textures.get(wanted)
        mine = (thing.mesh.material[which] == material) & np.isfinite(uv).all(axis=1)
        if texture is not None and mine.any():
            colours[mine] = _looked_up(texture, uv[mine])
    return colours


def _looked_up(texture: Picture, uv: Float64) -> Picture:
    height, width = texture.shape[:2]
    inside = uv - np.floor(uv)
    x = np.minimum((inside[:, 0] * width).astype(int), width - 1)
    y = np.minimum(((1 - inside[:, 1]) * height).astype(int), height - 1)
    return np.asarray(texture[y, x], np.uint8)


def _textures(files: Sequence[ObjectFile]) -> dict[str, Picture]:
    """Return the decoded textures by name."""
    import cv2

    found = {}
    for file in files[1:]:
        if not file.name.lower().endswith(".mtl"):
            picture = cv2.imdecode(np.frombuffer(file.data, np.uint8), cv2.IMREAD_COLOR)
            if picture is not None:
                found[file.name] = np.asarray(picture[..., ::-1], np.uint8)
    return found


def _texture_of_material(files: Sequence[ObjectFile]) -> dict[str, str]:
    """Return which texture each material shows, as the material files say."""
    shown: dict[str, str] = {}
    for file in files[1:]:
        if not file.name.lower().endswith(".mtl"):
            continue
        current = ""
        for line in file.data.decode("utf-8", "replace").splitlines():
            word, _, rest = line.strip().partition(" ")
            if word == "newmtl":
                current = rest.strip()
            elif word == "map_Kd":
                shown[current] = textures_named("x.mtl", line.encode())[0]
    return shown


def thumbnail(thing: ScannedObject, side_px: int = 256) -> bytes:
    """Return a PNG of the object, seen from above one of its corners.

    Parameters
    ----------
    thing
        The object; the largest two of its sides are shown, z up.
    side_px
        Side of the picture.
    """
    import cv2

    places, normals, colours = sampled(thing, SAMPLES_A_PIXEL * side_px**2)
    middle = (places.min(axis=0) + places.max(axis=0)) / 2
    reach = float(np.linalg.norm(places - middle, axis=1).max()) or 1.0
    camera = _from_above(middle, 3.2 * reach)
    lens = Lens(
        "pinhole", side_px, side_px,
        np.array([1.35 * side_px, 1.35 * side_px, *[(side_px - 1) / 2] * 2, 0, 0, 0, 0, 0]),
    )  # fmt: skip
    local = (places - camera[:3, 3]) @ camera[:3, :3]
    facing = np.abs((normals @ camera[:3, :3] * local).sum(axis=1)) / np.linalg.norm(local, axis=1)
    shaded = colours * (0.45 + 0.55 * facing[:, np.newaxis])
    picture = _drawn(lens, local, shaded.astype(np.uint8))
    done, data = cv2.imencode(".png", np.ascontiguousarray(picture[..., ::-1]))
    if not done:
        raise ValueError("the picture cannot be written as PNG")
    return data.tobytes()


def _from_above(middle: Float64, distance_m: float) -> Float64:
    """Return the pose of a camera that looks down on a place."""
    ahead = np.array([0.62, 0.55, -0.56])
    ahead /= np.linalg.norm(ahead)
    right = np.cross(ahead, (0.0, 0.0, 1.0))
    right /= np.linalg.norm(right)
    whole = np.eye(4)
    whole[:3, :3] = np.column_stack([right, np.cross(ahead, right), ahead])
    whole[:3, 3] = middle - distance_m * ahead
    return whole


def _drawn(lens: Lens, local: Float64, colours: Picture) -> Picture:
    """Draw points, the nearest last; holes of a pixel are closed by their neighbours."""
    import cv2

    pixels, seen = project(lens, local)
    order = np.flatnonzero(seen)
    order = order[np.argsort(-local[order, 2], kind="stable")]
    x, y = np.rint(pixels[order]).astype(int).T
    picture = np.full((lens.height, lens.width, 3), 255, np.uint8)
    hit = np.zeros((lens.height, lens.width), np.uint8)
    picture[y, x], hit[y, x] = colours[order], 1
    closed = cv2.morphologyEx(hit, cv2.MORPH_CLOSE, np.ones((3, 3), np.uint8))
    holes = (closed == 1) & (hit == 0)
    picture[holes] = cv2.medianBlur(picture, 3)[holes]
    return picture
