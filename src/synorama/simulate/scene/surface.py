"""Meshes that rays can be cast at: what is hit, how far, which colour in which light."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from synorama.simulate.scene.meshes import Mesh
from synorama.simulate.scene.room import Lamp, Moment, Room
from synorama.simulate.scene.texture import Atlas, make_atlas

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float32 = NDArray[np.float32]
    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]

__all__ = [
    "AMBIENT",
    "Hits",
    "Surface",
    "cross",
    "lamp_light",
    "room_surface",
    "texture_density",
    "vertex_normals",
]

AMBIENT = 0.3
CORNERS_SHADE_M = 0.6  # nooks darker than open walls: how far a look-round reaches
LOOK_ROUND = 24  # rays of a look-round
OFF_M = 2e-3  # where a shadow's ray starts above its surface
NEAREST_LAMP_M = 0.5
LAMP_SIZE_M = 0.2  # what stands this near to a lamp throws no shadow: its own bulb and shade


@dataclass(frozen=True, slots=True, eq=False)
class Hits:
    """What N rays met.

    Parameters
    ----------
    distance_m
        ``(N,)`` float32, infinite where nothing was met.
    colour
        ``(N, 3)`` float32, linear light, 1 is white paper in full light.
    triangle
        ``(N,)`` int64 which triangle, -1 for none.
    """

    distance_m: Float32
    colour: Float32
    triangle: Int64


class Surface:
    """A lit mesh, ready for rays.

    Parameters
    ----------
    mesh
        In frame ``world``.
    light
        ``(V, 3)`` light that falls on its corners.
    atlas
        Its textures.
    density
        ``(T,)`` from `texture_density`, where it is known already.
    """

    def __init__(
        self, mesh: Mesh, light: Float64, atlas: Atlas, density: Float64 | None = None
    ) -> None:
        self.mesh, self.atlas = mesh, atlas
        self._scene = _scene(mesh)
        self._table = _table(mesh, light, texture_density(mesh) if density is None else density)

    def cast(self, origins: Float32, directions: Float32, pixel_rad: float = 0.0) -> Hits:
        """Return what rays meet first.

        Parameters
        ----------
        origins, directions
            ``(N, 3)`` float32 in ``world``, directions of unit length.
        pixel_rad
            Angle between neighbouring rays: chooses how fine the textures are taken.
        """
        found = self._scene.cast_rays(np.concatenate([origins, directions], axis=1))
        distance = found["t_hit"].numpy()
        triangle = found["primitive_ids"].numpy().astype(np.int64)
        weights = found["primitive_uvs"].numpy()
        missed = ~np.isfinite(distance)
        if not missed.any():  # inside a room: nothing to pick out
            colour = self._colours(triangle, weights, directions, pixel_rad * distance)
            return Hits(distance, colour, triangle)
        triangle[missed] = -1
        colour = np.zeros((len(distance), 3), np.float32)
        hit = np.flatnonzero(~missed)
        if not len(hit):
            return Hits(distance, colour, triangle)
        colour[hit] = self._colours(
            triangle[hit], weights[hit], directions[hit], pixel_rad * distance[hit]
        )
        return Hits(distance, colour, triangle)

    def _colours(
        self, triangle: Int64, weights: Float32, directions: Float32, footprint_m: Float32
    ) -> Float32:
        """Return texture times light where rays meet triangles ``(N, 3)``."""
        row = np.take(self._table, triangle, axis=0, mode="clip")
        mixed = row[:, 5:10] * weights[:, :1]
        mixed += row[:, 10:15] * weights[:, 1:]
        mixed += row[:, :5]
        slant = np.abs(np.einsum("ni,ni->n", row[:, 15:18], directions))
        texel = footprint_m * self.atlas.side_px * row[:, 18] / np.sqrt(np.maximum(slant, 0.05))
        paint = self.atlas.sample(row[:, 19], mixed[:, :2], texel)
        return np.asarray(paint * mixed[:, 2:], np.float32)

    def blocked(self, origins: Float64, reaches_m: Float64) -> NDArray[np.bool_]:
        """Return whether anything stands between ``(N, 3)`` origins and as many ways from there."""
        rays = np.concatenate([origins, reaches_m], axis=1).astype(np.float32)
        met = self._scene.test_occlusions(rays, tnear=0.0, tfar=1.0)
        return np.asarray(met.numpy(), np.bool_)


def _scene(mesh: Mesh) -> Any:
    import open3d

    core: Any = open3d.core  # its stubs know no arrays
    scene = open3d.t.geometry.RaycastingScene(nthreads=1)
    scene.add_triangles(
        core.Tensor(mesh.vertices.astype(np.float32)),
        core.Tensor(mesh.triangles.astype(np.uint32)),
    )
    return scene


def _table(mesh: Mesh, light: Float64, density: Float64) -> Float32:
    """Return one row a triangle ``(T, 20)``.

    Texture coordinates and tinted light at the first corner (5) and their slopes towards the
    second and third (10), unit normal (3), widths of the texture per metre, tile.
    """
    table = np.empty((len(mesh.triangles), 20), np.float32)
    corners = table[:, :15].reshape(-1, 3, 5)  # a copy: columns of a table are not contiguous
    corners[..., :2] = mesh.uv
    shine = np.where(mesh.glow[:, np.newaxis, np.newaxis] > 0, 0.0, light[mesh.triangles])
    shine += mesh.glow[:, np.newaxis, np.newaxis]
    corners[..., 2:] = shine * (mesh.tint[:, np.newaxis] / 255.0)
    corners[:, 1:] -= corners[:, :1]
    table[:, :15] = corners.reshape(-1, 15)
    normal = face_normals(mesh)
    area = np.sqrt(np.einsum("ni,ni->n", normal, normal))
    table[:, 15:18] = normal / np.maximum(area, 1e-12)[:, np.newaxis]
    table[:, 18], table[:, 19] = density, mesh.tile
    return table


def texture_density(mesh: Mesh) -> Float64:
    """Return how many widths of its texture each triangle shows per metre ``(T,)``."""
    area = np.maximum(np.linalg.norm(face_normals(mesh), axis=1), 1e-12)
    (ax, ay), (bx, by) = ((mesh.uv[:, k] - mesh.uv[:, 0]).T.astype(np.float64) for k in (1, 2))
    return np.asarray(np.sqrt(np.abs(ax * by - ay * bx) / area), np.float64)


def face_normals(mesh: Mesh) -> Float64:
    """Return normals of the triangles ``(T, 3)``, twice as long as their area."""
    first = mesh.vertices[mesh.triangles[:, 0]]
    return cross(
        mesh.vertices[mesh.triangles[:, 1]] - first, mesh.vertices[mesh.triangles[:, 2]] - first
    )


def cross(a: Float64, b: Float64) -> Float64:
    """Return cross products ``(N, 3)``; numpy's own takes several times as long on short rows."""
    out = np.empty(np.broadcast(a, b).shape)
    out[:, 0] = a[:, 1] * b[:, 2] - a[:, 2] * b[:, 1]
    out[:, 1] = a[:, 2] * b[:, 0] - a[:, 0] * b[:, 2]
    out[:, 2] = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
    return out


# --- light -----------------------------------------------------------------------------------


def room_surface(room: Room, when: Moment = "session", *, texture_px: int = 256) -> Surface:
    """Return a room lit by its lamps, ready for rays.

    Parameters
    ----------
    when
        Where things stand: at the scan or in the session.
    texture_px
        Side of each texture: 256 for small pictures, 512 for full-size ones.
    """
    mesh = room.mesh(when)
    atlas = make_atlas(room.seed, room.contrast, texture_px)
    dark = Surface(mesh, np.zeros((len(mesh.vertices), 3)), atlas)
    return Surface(mesh, room_light(mesh, room.lamps, dark), atlas)


def room_light(mesh: Mesh, lamps: Sequence[Lamp], blocker: Surface) -> Float64:
    """Return light at the corners of a mesh ``(V, 3)``, with shadows and dark nooks."""
    normals = vertex_normals(mesh)
    start = mesh.vertices + OFF_M * normals
    light = AMBIENT * _openness(start, normals, blocker)[:, np.newaxis] * np.ones(3)
    for lamp in lamps:
        away = np.array(lamp.position_m) - start
        away *= 1.0 - LAMP_SIZE_M / np.linalg.norm(away, axis=1, keepdims=True)
        lit = ~blocker.blocked(start, away)
        light += lit[:, np.newaxis] * lamp_light(start, normals, lamp)
    return light


def lamp_light(points: Float64, normals: Float64, lamp: Lamp) -> Float64:
    """Return the light of a lamp on surfaces ``(N, 3)`` by Lambert's law, without shadows."""
    away = np.array(lamp.position_m) - points
    square = np.einsum("ni,ni->n", away, away)
    cosine = np.maximum(np.einsum("ni,ni->n", away, normals), 0.0) / np.sqrt(square)
    falloff = lamp.strength / np.maximum(square, NEAREST_LAMP_M**2) ** 0.75
    return np.asarray((falloff * cosine)[:, np.newaxis] * np.array(lamp.colour), np.float64)


def vertex_normals(mesh: Mesh) -> Float64:
    """Return unit normals at the corners ``(V, 3)``, averaged over the triangles that meet."""
    face = face_normals(mesh)
    normals = np.zeros_like(mesh.vertices)
    for k in range(3):
        np.add.at(normals, mesh.triangles[:, k], face)
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
    return normals


def _openness(start: Float64, normals: Float64, blocker: Surface) -> Float64:
    """Return the share of short rays about each normal that meet nothing ``(V,)``."""
    rng = np.random.default_rng(0)
    total = np.zeros(len(start))
    for direction in rng.standard_normal((LOOK_ROUND, 3)):
        lifted = normals + direction / np.linalg.norm(direction)
        lifted /= np.maximum(np.linalg.norm(lifted, axis=1, keepdims=True), 1e-9)
        total += ~blocker.blocked(start, CORNERS_SHADE_M * lifted)
    return 0.25 + 0.75 * total / LOOK_ROUND
