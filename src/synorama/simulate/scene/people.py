"""Figures of the people in a session: rigid parts that follow head, trunk and hands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from synorama.simulate.scene.meshes import Look, Mesh, box, lathe, merge, pose, sphere, tube
from synorama.simulate.scene.room import Lamp
from synorama.simulate.scene.surface import (
    AMBIENT,
    Surface,
    cross,
    lamp_light,
    texture_density,
    vertex_normals,
)
from synorama.simulate.scene.texture import Atlas, Palette

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]

__all__ = ["Figure", "Posture", "make_figure"]

SHOULDER_HALF_M, HIP_HALF_M = 0.18, 0.1
UPPER_ARM_M, FOREARM_M = 0.29, 0.27
SEATED_HIP_M = 0.53
SKIN_TONES = ((1.0, 1.0, 1.0), (0.85, 0.8, 0.78), (0.6, 0.52, 0.48), (0.42, 0.36, 0.33))
DARK = (0.08, 0.08, 0.09)


@dataclass(frozen=True, slots=True, eq=False)
class Posture:
    """How somebody stands or sits at one time, in ``world`` [m].

    Parameters
    ----------
    head
        ``(4, 4)`` pose of the central pupil frame.
    body
        x, y, yaw of the trunk, height of the eyes before leaning, lean ahead, share of sitting.
    hands
        ``(2, 2, 3)``: left and right; wrist and palm.
    stride
        Where in a step the legs are, -1 to 1.
    """

    head: Float64
    body: Float64
    hands: Float64
    stride: float = 0.0


class Figure:
    """A person of rigid parts.

    Parameters
    ----------
    parts
        The head in the central pupil frame; all other parts about z, from 0 to 1.
    atlas, lamps
        Textures and lights of the room.
    """

    def __init__(self, parts: Sequence[Mesh], atlas: Atlas, lamps: Sequence[Lamp]) -> None:
        self.atlas, self.lamps = atlas, lamps
        self._whole = _Puppet(parts, 0)
        self._headless = _Puppet(parts[1:], 1)

    def surface(self, posture: Posture, *, own: bool = False) -> Surface:
        """Return the person at one time, ready for rays.

        Parameters
        ----------
        own
            As seen from the person's own glasses: without the head.
        """
        puppet = self._headless if own else self._whole
        mesh, normals = puppet.posed(_bones(posture))
        light = np.full((len(mesh.vertices), 3), AMBIENT)
        for lamp in self.lamps:
            light += lamp_light(mesh.vertices, normals, lamp)
        return Surface(mesh, light, self.atlas, puppet.density)


class _Puppet:
    """Parts in one mesh, each of whose corners follows the bone of its part."""

    def __init__(self, parts: Sequence[Mesh], first_bone: int) -> None:
        self.mesh = merge(parts)
        self.bone = np.repeat(np.arange(len(parts)) + first_bone, [len(p.vertices) for p in parts])
        self.normals = vertex_normals(self.mesh)
        self.density = texture_density(self.mesh)

    def posed(self, bones: Float64) -> tuple[Mesh, Float64]:
        """Return the mesh in ``world`` and about the normals of its corners."""
        follow = bones[self.bone]
        turn = follow[:, :3, :3]
        vertices = np.matmul(turn, self.mesh.vertices[..., np.newaxis])[..., 0] + follow[:, :3, 3]
        normals = np.matmul(turn, self.normals[..., np.newaxis])[..., 0]
        normals /= np.maximum(np.sqrt((normals**2).sum(axis=1, keepdims=True)), 1e-9)
        return replace(self.mesh, vertices=vertices), normals


# --- the parts -------------------------------------------------------------------------------


def make_figure(seed: int, atlas: Atlas, lamps: Sequence[Lamp]) -> Figure:
    """Return a person of some looks."""
    palette = Palette(np.random.default_rng([seed, 5]))
    skin = palette.look("skin", SKIN_TONES[int(palette.rng.integers(len(SKIN_TONES)))], span_m=0.5)
    shirt = palette.look("fabric", palette.colour(), span_m=0.6)
    trousers = palette.look("fabric", palette.colour(0.1, 0.5), span_m=1.0)
    shoes = palette.look("paint", DARK)
    limb = _limb(skin)
    parts = (
        _head(palette, skin),
        _limb(shirt, (0.9, 1.0, 1.02, 0.75)),
        limb,  # neck
        *(_limb(shirt), _limb(shirt)),
        *(limb, limb),
        *(_limb(skin, (0.7, 1.1, 1.0, 0.5)), _limb(skin, (0.7, 1.1, 1.0, 0.5))),
        *(_limb(trousers), _limb(trousers), _limb(trousers), _limb(trousers)),
        *(_limb(shoes), _limb(shoes)),
    )
    return Figure(parts, atlas, lamps)


def _limb(look: Look, girth: tuple[float, ...] = (1.0, 1.05, 0.85)) -> Mesh:
    """Return a closed limb about z from 0 to 1, of radius about 1."""
    heights = np.linspace(0.0, 1.0, len(girth))
    profile = [(0.0, -0.02), *zip(girth, heights.tolist(), strict=True), (0.0, 1.02)]
    return lathe(profile, look, 7)


def _head(palette: Palette, skin: Look) -> Mesh:
    """Return head, hair and glasses in the central pupil frame: x left, y up, z ahead."""
    hair = palette.look("leaves", palette.colour(0.08, 0.5), span_m=0.3)
    hair = replace(hair, tile=palette.look("wood").tile)
    dark = palette.look("paint", DARK)
    parts = [
        _egg((0.074, 0.112, 0.092), (0, -0.03, -0.095), skin),
        _egg((0.081, 0.095, 0.09), (0, 0.012, -0.118), hair),
        tube((0, -0.005, -0.01), (0, -0.04, 0.018), (0.008, 0.014), skin),
        box((0.045, 0.01, 0.012), (0, -0.075, -0.008), palette.look("paint", (0.6, 0.2, 0.2))),
    ]
    for side in (-1.0, 1.0):
        parts += [
            box((0.054, 0.04, 0.006), (side * 0.034, -0.002, 0.012), dark),
            box((0.004, 0.014, 0.12), (side * 0.074, 0.006, -0.05), dark),
            sphere(0.011, (side * 0.0315, 0, -0.008), palette.look("paint", (1, 1, 1)), 5),
        ]
    return merge(parts)


def _egg(radii: tuple[float, float, float], centre: tuple[float, float, float], look: Look) -> Mesh:
    matrix = np.diag([*radii, 1.0])
    matrix[:3, 3] = centre
    return sphere(1.0, (0, 0, 0), look, 10).moved(matrix)


# --- where the parts are ---------------------------------------------------------------------


def _bones(posture: Posture) -> Float64:
    """Return the pose of each part ``(P, 4, 4)``; it may stretch the part."""
    x, y, yaw, eyes, lean, seated = posture.body
    place = pose(x, y, 0.0, yaw)
    ahead, left = place[:3, 0], place[:3, 1]
    shoulders = (place @ (0.8 * lean, 0, eyes - 0.27 - 0.25 * lean, 1))[:3]
    hips_m = (1 - seated) * 0.555 * eyes + seated * SEATED_HIP_M
    hips = (place @ (-0.06 * seated - 0.1 * lean, 0, hips_m, 1))[:3]
    chin = posture.head[:3, 3] + posture.head[:3, :3] @ (0, -0.1, -0.1)
    sides = (1.0, -1.0)
    arms = [
        _arm(shoulders + side * SHOULDER_HALF_M * left, hand, side * left)
        for side, hand in zip(sides, posture.hands, strict=True)
    ]
    legs = [_leg(hips, ahead, side * left, seated, side * posture.stride) for side in sides]
    ends = [(hips - (0, 0, 0.1), np.add(shoulders, (0, 0, 0.05))), (shoulders, chin)]
    ends += [(limb[k], limb[k + 1]) for limbs in (arms, legs) for k in range(3) for limb in limbs]
    return np.concatenate([posture.head[np.newaxis], _stretched(np.array(ends), ahead)])


def _arm(shoulder: Float64, hand: Float64, outward: Float64) -> list[Float64]:
    """Return shoulder, elbow, wrist and finger tips; the elbow hangs down and out."""
    wrist, palm = hand
    away = wrist - shoulder
    length = float(np.sqrt(away @ away))
    direction = away / length
    reach = min(length, UPPER_ARM_M + FOREARM_M)
    along = (UPPER_ARM_M**2 - FOREARM_M**2 + reach**2) / (2 * reach)
    hang = 0.5 * outward - (0, 0, 1.0)
    hang = hang - (hang @ direction) * direction
    hang /= max(float(np.sqrt(hang @ hang)), 1e-9)
    bend = np.sqrt(max(UPPER_ARM_M**2 - along**2, 0.0))
    elbow = shoulder + along * direction + bend * hang
    return [shoulder, elbow, wrist, wrist + 1.9 * (palm - wrist)]


def _leg(
    hips: Float64, ahead: Float64, side: Float64, seated: float, stride: float
) -> list[Float64]:
    """Return hip, knee, ankle and toes."""
    hip = hips + HIP_HALF_M * side
    standing = ahead * 0.16 * stride - (0, 0, 0.5 * (hips[2] - 0.08))
    sitting = ahead * 0.42 - (0, 0, 0.04)
    knee = hip + (1 - seated) * standing + seated * sitting
    ankle = knee + ahead * 0.12 * stride * (1 - seated)
    ankle[2] = 0.09
    return [hip, knee, ankle, ankle + ahead * 0.16 - (0, 0, 0.05)]


RADII_M = np.array(
    [
        *((0.12, 0.19), (0.055, 0.06)),  # trunk, neck
        *[(0.052, 0.052)] * 2, *[(0.04, 0.04)] * 2, *[(0.036, 0.022)] * 2,  # arms
        *[(0.085, 0.085)] * 2, *[(0.06, 0.06)] * 2, *[(0.045, 0.045)] * 2,  # legs
    ]
)  # fmt: skip
"""Radii along and across the direction of view of all parts but the head."""


def _stretched(ends: Float64, ahead: Float64) -> Float64:
    """Return poses ``(P, 4, 4)`` that lay z from 0 to 1 between two ends ``(P, 2, 3)``."""
    axis = ends[:, 1] - ends[:, 0]
    square = np.maximum((axis**2).sum(axis=1, keepdims=True), 1e-12)
    helper = np.where(axis**2 @ (ahead**2)[:, np.newaxis] > 0.9 * square, (0, 0, 1.0), ahead)
    first = helper - (helper * axis).sum(axis=1, keepdims=True) / square * axis
    first /= np.sqrt((first**2).sum(axis=1, keepdims=True))
    poses = np.zeros((len(ends), 4, 4))
    poses[:, :3, 0] = RADII_M[:, :1] * first
    poses[:, :3, 1] = RADII_M[:, 1:] * cross(axis, first) / np.sqrt(square)
    poses[:, :3, 2], poses[:, :3, 3], poses[:, 3, 3] = axis, ends[:, 0], 1.0
    return poses
