"""Things of a room scanned one by one: OBJ with material and texture, PLY and STL.

Each file stands in the frame of the thing; where the thing was in the room is the truth that an
object's registration must find.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from synorama.simulate.clocks import randomness
from synorama.simulate.scene.meshes import Mesh
from synorama.simulate.scene.room import Room, RoomObject
from synorama.simulate.scene.texture import Atlas
from synorama.transform import RigidTransform

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]
    Picture = NDArray[np.uint8]

__all__ = ["ObjectTruth", "choose_objects", "write_object", "write_objects"]

GAMMA = 2.2
BRIGHT = 0.8  # of a thing under even light
SIZE_M = (0.08, 0.6)  # of things that are worth a scan of their own


@dataclass(frozen=True, slots=True)
class ObjectTruth:
    """What is true of a scanned thing.

    Parameters
    ----------
    name
        Its name, also that of its frame and of its files.
    files
        Its files: mesh with texture first.
    world_scan, world_session
        ``T_world_NAME`` when the room was scanned and in the session.
    """

    name: str
    files: tuple[Path, ...]
    world_scan: RigidTransform
    world_session: RigidTransform

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON-able values."""
        return {
            "name": self.name,
            "files": [path.name for path in self.files],
            "T_world_object_at_scan": self.world_scan.matrix.tolist(),
            "T_world_object": self.world_session.matrix.tolist(),
        }


def choose_objects(room: Room, seed: int, count: int = 5) -> tuple[RoomObject, ...]:
    """Return things of handy size, of different kinds, those first that were moved."""
    rng = randomness(seed, "objects")
    handy = [
        thing
        for thing in room.objects
        if thing.movable
        and thing.support
        and SIZE_M[0] < float(np.ptp(thing.mesh.vertices, axis=0).max()) < SIZE_M[1]
    ]
    order = sorted(handy, key=lambda thing: (not thing.moved, rng.random()))
    kinds: dict[str, RoomObject] = {}
    for thing in order:
        kinds.setdefault(thing.kind, thing)
    return tuple(kinds.values())[:count]


def write_objects(
    folder: Path, things: Sequence[RoomObject], atlas: Atlas
) -> tuple[ObjectTruth, ...]:
    """Write each thing into a folder, and return what is true of it.

    Parameters
    ----------
    folder
        Exists; gets ``NAME.obj``, ``NAME.mtl``, ``NAME-texture-K.png``, ``NAME.ply``, ``NAME.stl``.
    things
        From `choose_objects`.
    atlas
        Textures of the room, as of its surface.
    """
    return tuple(write_object(folder, thing, atlas) for thing in things)


def write_object(folder: Path, thing: RoomObject, atlas: Atlas) -> ObjectTruth:
    """Write one thing, and return what is true of it."""
    materials = _materials(thing.mesh)
    textures = _write_textures(folder, thing, materials, atlas)
    obj, mtl = folder / f"{thing.name}.obj", folder / f"{thing.name}.mtl"
    mtl.write_text(_mtl(materials, textures), encoding="utf-8")
    obj.write_text(_obj(thing.mesh, mtl.name, materials), encoding="utf-8")
    ply, stl = folder / f"{thing.name}.ply", folder / f"{thing.name}.stl"
    _write_ply(ply, thing.mesh, atlas)
    _write_stl(stl, thing.mesh)
    files = (obj, mtl, *sorted(set(textures.values())), ply, stl)
    return ObjectTruth(thing.name, files, thing.scan, thing.session)


# --- OBJ -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Material:
    tile: int
    tint: tuple[float, float, float]


def _materials(mesh: Mesh) -> list[tuple[_Material, NDArray[np.int64]]]:
    """Return the looks of a mesh and which triangles have each."""
    looks = np.column_stack([mesh.tile, mesh.tint])
    each, which = np.unique(looks, axis=0, return_inverse=True)
    return [
        (_Material(int(tile), (r, g, b)), np.flatnonzero(which.ravel() == k))
        for k, (tile, r, g, b) in enumerate(each.tolist())
    ]


def _write_textures(
    folder: Path,
    thing: RoomObject,
    materials: list[tuple[_Material, NDArray[np.int64]]],
    atlas: Atlas,
) -> dict[int, Path]:
    import cv2

    paths: dict[int, Path] = {}
    for tile in sorted({material.tile for material, _ in materials}):
        paths[tile] = folder / f"{thing.name}-texture-{len(paths) + 1}.png"
        done, data = cv2.imencode(".png", np.ascontiguousarray(_tile(atlas, tile)[..., ::-1]))
        if not done:
            raise ValueError(f"texture {tile} cannot be compressed")
        paths[tile].write_bytes(data.tobytes())
    return paths


def _tile(atlas: Atlas, tile: int) -> Picture:
    """Return one texture ``(S, S, 3)`` as it is shown on a screen."""
    side = atlas.side_px
    across, down = np.meshgrid(*(2 * [(np.arange(side) + 0.5) / side]))
    uv = np.column_stack([across.ravel(), down.ravel()]).astype(np.float32)
    return _shown(atlas.sample(np.full(len(uv), tile), uv, np.ones(len(uv)))).reshape(side, side, 3)


def _shown(linear: NDArray[Any]) -> Picture:
    """Return colours uint8 of linear light 0 to 255."""
    share = (np.clip(np.asarray(linear, np.float64), 0, 255) / 255.0) ** (1.0 / GAMMA)
    return np.asarray(np.rint(255 * share), np.uint8)


def _mtl(materials: list[tuple[_Material, NDArray[np.int64]]], textures: dict[int, Path]) -> str:
    lines = []
    for k, (material, _) in enumerate(materials):
        red, green, blue = (np.clip(BRIGHT * c, 0, 1) ** (1 / GAMMA) for c in material.tint)
        lines += [
            f"newmtl look-{k + 1}",
            "Ka 0 0 0",
            f"Kd {red:.6f} {green:.6f} {blue:.6f}",
            "Ks 0 0 0",
            "illum 1",
            f"map_Kd {textures[material.tile].name}",
            "",
        ]
    return "\n".join(lines)


def _obj(mesh: Mesh, mtl: str, materials: list[tuple[_Material, NDArray[np.int64]]]) -> str:
    """Return the mesh as text; OBJ counts from 1 and texture rows from below."""
    faces = mesh.triangles + 1
    lines = [f"mtllib {mtl}"]
    lines += [f"v {x:.6f} {y:.6f} {z:.6f}" for x, y, z in mesh.vertices.tolist()]
    lines += [f"vt {u:.6f} {1 - v:.6f}" for u, v in mesh.uv.reshape(-1, 2).tolist()]
    for k, (_, triangles) in enumerate(materials):
        lines.append(f"usemtl look-{k + 1}")
        for t, (a, b, c) in zip(triangles.tolist(), faces[triangles].tolist(), strict=True):
            u = 3 * t + 1
            lines.append(f"f {a}/{u} {b}/{u + 1} {c}/{u + 2}")
    return "\n".join(lines) + "\n"


# --- PLY and STL -----------------------------------------------------------------------------


def _write_ply(path: Path, mesh: Mesh, atlas: Atlas) -> None:
    """Write the mesh with a colour at each corner."""
    corners = np.empty(len(mesh.vertices), [("xyz", "<f4", 3), ("rgb", "u1", 3)])
    corners["xyz"], corners["rgb"] = mesh.vertices, _corner_colours(mesh, atlas)
    faces = np.empty(len(mesh.triangles), [("count", "u1"), ("corners", "<i4", 3)])
    faces["count"], faces["corners"] = 3, mesh.triangles
    header = [
        "ply", "format binary_little_endian 1.0", f"element vertex {len(corners)}",
        *(f"property float {axis}" for axis in "xyz"),
        *(f"property uchar {colour}" for colour in ("red", "green", "blue")),
        f"element face {len(faces)}", "property list uchar int vertex_indices", "end_header", "",
    ]  # fmt: skip
    with path.open("xb") as file:
        file.write("\n".join(header).encode())
        file.write(corners.tobytes() + faces.tobytes())


def _corner_colours(mesh: Mesh, atlas: Atlas) -> Picture:
    """Return a colour for each corner ``(V, 3)``, from one of the triangles that meet there."""
    texel = np.full(3 * len(mesh.triangles), 4.0)
    paint = atlas.sample(np.repeat(mesh.tile, 3), mesh.uv.reshape(-1, 2), texel)
    colours = np.zeros((len(mesh.vertices), 3), np.uint8)
    colours[mesh.triangles.ravel()] = _shown(BRIGHT * paint * np.repeat(mesh.tint, 3, axis=0))
    return colours


def _write_stl(path: Path, mesh: Mesh) -> None:
    """Write binary STL; its numbers are metres, which STL itself cannot say."""
    corners = mesh.vertices[mesh.triangles].astype(np.float32)
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
    row = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("extra", "<u2")])
    table = np.zeros(len(corners), row)
    table["normal"], table["corners"] = normals, corners
    with path.open("xb") as file:
        file.write(b"binary STL, metres".ljust(80) + np.uint32(len(table)).tobytes())
        file.write(table.tobytes())
