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

__all__ = ["Hits", "Surface", "room_surface"]

AMBIENT = 0.3
CORNERS_SHADE_M = 0.6  # nooks darker than open walls: how far a look-round reaches
LOOK_ROUND = 24  # rays of a look-round
OFF_M = 2e-3  # where a shadow's ray starts above its surface
NEAREST_LAMP_M = 0.5


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
    """

    def __init__(self, mesh: Mesh, light: Float64, atlas: Atlas) -> None:
        self.mesh, self.atlas = mesh, atlas
        self._scene = _scene(mesh)
        self._table = _table(mesh, light)
        corner = mesh.vertices[mesh.triangles]
        normal = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
        self._normal = (normal / np.linalg.norm(normal, axis=1, keepdims=True)).astype(np.float32)
        self._texels_per_m = _texels_per_m(mesh, corner, atlas.side_px)

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
        hit = np.isfinite(distance)
        triangle[~hit] = -1
        which = np.flatnonzero(hit)
        colour = np.zeros((len(distance), 3), np.float32)
        footprint = pixel_rad * distance[which]
        colour[which] = self._colours(
            triangle[which], found["primitive_uvs"].numpy()[which], directions[which], footprint
        )
        return Hits(distance, colour, triangle)

    def _colours(
        self, triangle: Int64, weights: Float32, directions: Float32, footprint_m: Float32
    ) -> Float32:
        """Return texture times light where rays meet triangles ``(N, 3)``."""
        row = self._table[triangle]
        mixed = row[:, 0] + weights[:, :1] * row[:, 1] + weights[:, 1:] * row[:, 2]
        slant = np.abs(np.einsum("ni,ni->n", self._normal[triangle], directions))
        texel = footprint_m * self._texels_per_m[triangle] / np.sqrt(np.maximum(slant, 0.05))
        paint = self.atlas.sample(self.mesh.tile[triangle], mixed[:, :2], texel)
        return np.asarray(paint * mixed[:, 2:], np.float32)

    def blocked(self, origins: Float64, directions: Float64, reach_m: Float64) -> Any:
        """Return which of N rays meet anything within their reach."""
        rays = np.concatenate([origins, directions], axis=1).astype(np.float32)
        distance = self._scene.cast_rays(rays)["t_hit"].numpy()
        return distance < reach_m


def _scene(mesh: Mesh) -> Any:
    import open3d

    scene = open3d.t.geometry.RaycastingScene(nthreads=1)
    scene.add_triangles(
        open3d.core.Tensor(mesh.vertices.astype(np.float32)),
        open3d.core.Tensor(mesh.triangles.astype(np.uint32)),
    )
    return scene


def _table(mesh: Mesh, light: Float64) -> Float32:
    """Return ``(T, 3, 5)``: texture coordinates and tinted light at a corner, and their slopes."""
    tint = mesh.tint[:, np.newaxis] / 255.0
    lit = light[mesh.triangles] * tint
    glowing = mesh.glow > 0
    lit[glowing] = tint[glowing] * mesh.glow[glowing, np.newaxis, np.newaxis]
    corners = np.concatenate([mesh.uv, lit], axis=2)
    corners[:, 1:] -= corners[:, :1]
    return corners.astype(np.float32)


def _texels_per_m(mesh: Mesh, corner: Float64, side_px: int) -> Float32:
    """Return how dense each triangle's texture is: from the areas of triangle and texture."""
    area = np.linalg.norm(np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0]), axis=1)
    first, second = mesh.uv[:, 1] - mesh.uv[:, 0], mesh.uv[:, 2] - mesh.uv[:, 0]
    drawn = np.abs(first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0])
    return (side_px * np.sqrt(drawn / np.maximum(area, 1e-12))).astype(np.float32)


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


def room_light(mesh: Mesh, lamps: Sequence[Lamp], blocker: Surface | None) -> Float64:
    """Return light at the corners of a mesh ``(V, 3)``: lamps by Lambert's law, and ambient.

    Parameters
    ----------
    blocker
        What throws shadows; None for none.
    """
    normals = vertex_normals(mesh)
    start = mesh.vertices + OFF_M * normals
    open_share = np.ones(len(start)) if blocker is None else _openness(start, normals, blocker)
    light = AMBIENT * open_share[:, np.newaxis] * np.ones(3)
    for lamp in lamps:
        away = np.array(lamp.position_m) - start
        distance = np.linalg.norm(away, axis=1)
        toward = away / distance[:, np.newaxis]
        cosine = np.maximum(np.einsum("ni,ni->n", toward, normals), 0.0)
        falloff = lamp.strength / np.maximum(distance, NEAREST_LAMP_M) ** 1.5
        if blocker is not None:
            cosine = cosine * ~blocker.blocked(start, toward, distance - 0.2)
        light += (falloff * cosine)[:, np.newaxis] * np.array(lamp.colour)
    return light


def vertex_normals(mesh: Mesh) -> Float64:
    """Return unit normals at the corners ``(V, 3)``, averaged over the triangles that meet."""
    corner = mesh.vertices[mesh.triangles]
    face = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    normals = np.zeros_like(mesh.vertices)
    for k in range(3):
        np.add.at(normals, mesh.triangles[:, k], face)
    return normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)


def _openness(start: Float64, normals: Float64, blocker: Surface) -> Float64:
    """Return the share of short rays about each normal that meet nothing ``(V,)``."""
    rng = np.random.default_rng(0)
    total = np.zeros(len(start))
    for direction in rng.standard_normal((LOOK_ROUND, 3)):
        lifted = normals + direction / np.linalg.norm(direction)
        lifted /= np.maximum(np.linalg.norm(lifted, axis=1, keepdims=True), 1e-9)
        total += ~blocker.blocked(start, lifted, np.full(len(start), CORNERS_SHADE_M))
    return 0.25 + 0.75 * total / LOOK_ROUND
