"""Rigid transforms: frames, conventions, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from synorama.errors import FrameMismatchError
from synorama.transform import RigidTransform, interpolate

unit = st.floats(-1, 1)
vectors = st.tuples(*[st.floats(-1e3, 1e3)] * 3)


@st.composite
def quats(draw: st.DrawFn) -> NDArray[np.float64]:
    quat = np.array(draw(st.tuples(unit, unit, unit, unit)))
    norm = np.linalg.norm(quat)
    return np.array([1.0, 0, 0, 0]) if norm < 0.1 else quat / norm


@st.composite
def transforms(draw: st.DrawFn, target: str = "a", source: str = "b") -> RigidTransform:
    return RigidTransform.from_quat_wxyz(target, source, draw(quats()), draw(vectors))


@given(quats())
def test_quaternions_agree_with_scipy_and_return(quat: NDArray[np.float64]) -> None:
    made = RigidTransform.from_quat_wxyz("a", "b", quat, (1, 2, 3))
    w, x, y, z = quat
    assert np.allclose(made.rotation, Rotation.from_quat([x, y, z, w]).as_matrix(), atol=1e-12)
    back = made.quat_wxyz
    assert back[0] >= 0
    assert min(np.abs(back - quat).max(), np.abs(back + quat).max()) < 1e-9


@given(transforms("a", "b"), transforms("b", "c"), vectors)
def test_composition_is_one_after_the_other(
    outer: RigidTransform, inner: RigidTransform, point: tuple[float, float, float]
) -> None:
    both = outer @ inner
    assert (both.target, both.source) == ("a", "c")
    step = outer.apply(inner.apply(point, frame="c"), frame="b")
    assert np.allclose(both.apply(point, frame="c"), step, atol=1e-9)


@given(transforms())
def test_inverse_undoes(made: RigidTransform) -> None:
    assert np.allclose((made.inverse() @ made).matrix, np.eye(4), atol=1e-9)
    assert (made.inverse().target, made.inverse().source) == ("b", "a")


def test_mismatched_frames_are_refused() -> None:
    made = RigidTransform.identity("a")
    with pytest.raises(FrameMismatchError, match="'a' is not 'b'"):
        made @ RigidTransform.identity("b")
    with pytest.raises(FrameMismatchError, match="not in 'b'"):
        made.apply(np.zeros(3), frame="b")
    with pytest.raises(FrameMismatchError):
        interpolate(made, RigidTransform.identity("b"), 0.5)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"scale": 1.1}, "scales"),
        ({"mirror": True}, "left-handed"),
        ({"nan": True}, "finite"),
    ],
)
def test_what_is_no_rigid_transform_is_refused(change: dict[str, object], why: str) -> None:
    matrix = np.eye(4)
    if "scale" in change:
        matrix[:3, :3] *= 1.1
    if "mirror" in change:
        matrix[0, 0] = -1
    if "nan" in change:
        matrix[0, 3] = np.nan
    with pytest.raises(ValueError, match=why):
        RigidTransform("a", "b", matrix)
    with pytest.raises(ValueError, match="unit quaternion"):
        RigidTransform.from_quat_wxyz("a", "b", (2, 0, 0, 0), (0, 0, 0))


@given(transforms(), transforms(), st.floats(0, 1))
def test_interpolation_turns_at_constant_speed(
    first: RigidTransform, second: RigidTransform, share: float
) -> None:
    def angle(a: RigidTransform, b: RigidTransform) -> float:
        return float((Rotation.from_matrix(a.rotation.T @ b.rotation)).magnitude())

    whole = angle(first, second)
    middle = interpolate(first, second, share)
    assert np.allclose(
        middle.translation_m,
        (1 - share) * first.translation_m + share * second.translation_m,
    )
    if whole < 3.1:  # at half a turn the way is not unique
        assert angle(first, middle) == pytest.approx(share * whole, abs=1e-6)
