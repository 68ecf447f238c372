"""The published schemas of MPS output files: which columns they have, in which unit and frame.

The columns are those of the vendor's documentation ("MPS data formats", Gen 1 and Gen 2) and of
the readers in projectaria-tools 2.3.0, whose oldest and newest files are both accepted. A file
may order its columns as it likes; which optional groups it has is its version.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from synorama.errors import MpsSchemaError
from synorama.records import Column, SampleKind

__all__ = ["PRODUCTS", "Field", "Layout", "Product", "Schema", "match"]

Role = Literal["time", "value", "integer", "text", "flag"]
XYZ = ("x", "y", "z")
SIDES = ("left", "right")
LANDMARKS = 21


@dataclass(frozen=True, slots=True)
class Field:
    """One column of a file.

    ``column`` is its name in the file, ``name`` what Synorama calls it. A ``time`` is in
    microseconds of the device; a ``flag`` chooses the rows that a track has and is not kept.
    """

    column: str
    name: str
    unit: str = "1"
    role: Role = "value"


Group = tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Schema:
    """One kind of table: columns that every version has, and groups that came later.

    ``vital`` names the columns (as in the file) without which a row tells nothing.
    """

    required: Group
    optional: tuple[Group, ...] = ()
    vital: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that any version of the table has."""
        fields = (*self.required, *(f for group in self.optional for f in group))
        return (*(f.column for f in fields), *self.ignored)

    def accepts(self, found: Iterable[str]) -> bool:
        """Whether a table with these columns is some version of this schema."""
        left = set(found)
        groups = [self.required, *(g for g in self.optional if g[0].column in left)]
        known = {f.column for group in groups for f in group}
        return known <= left and left - known <= set(self.ignored)


@dataclass(frozen=True, slots=True)
class Layout:
    """What is read from one file: its columns in the order in which they are given out."""

    header: tuple[str, ...]
    fields: tuple[Field, ...]
    vital: tuple[str, ...]

    def of(self, role: Role) -> tuple[Field, ...]:
        """Return the fields of a role, in order."""
        return tuple(f for f in self.fields if f.role == role)

    @property
    def columns(self) -> tuple[Column, ...]:
        """Names and units of the values."""
        return tuple(Column(f.name, f.unit) for f in self.of("value"))


@dataclass(frozen=True, slots=True)
class Product:
    """One output of one service: where its file lies and what it becomes.

    ``names`` are in order of preference, the published name first, then deprecated ones.
    ``ordered`` tells whether its rows are in order of time; ``dtype`` is that of the values.
    """

    name: str
    kind: SampleKind | Literal["points"]
    frame: str
    folders: tuple[str, ...]
    names: tuple[str, ...]
    schemas: tuple[Schema, ...]
    ordered: bool = True
    dtype: str = "f8"
    location: bool = False


def match(path: Path, header: tuple[str, ...], schemas: tuple[Schema, ...]) -> Layout:
    """Return what to read from a file with these columns.

    Raises
    ------
    MpsSchemaError
        The columns are those of no version of any of the schemas.
    """
    if len(set(header)) == len(header):
        for schema in schemas:
            if schema.accepts(header):
                fields = (*schema.required, *(f for g in schema.optional for f in g))
                present = tuple(f for f in fields if f.column in header)
                return Layout(header, present, schema.vital)
    raise _unknown_columns(path, header, schemas)


def _unknown_columns(
    path: Path, header: tuple[str, ...], schemas: tuple[Schema, ...]
) -> MpsSchemaError:
    def unlike(schema: Schema) -> int:
        needed = {f.column for f in schema.required}
        return len(needed - set(header)) + len(set(header) - set(schema.columns))

    nearest = min(schemas, key=unlike)
    required = [f.column for f in nearest.required]
    missing = [c for c in required if c not in header]
    unknown = [c for c in header if c not in nearest.columns]
    optional = [c for c in nearest.columns if c not in required]
    return MpsSchemaError(
        f"its columns are those of no published MPS schema: missing {_listed(missing)}; "
        f"unknown {_listed(unknown)}; found {_listed(header)}; "
        f"expected {_listed(required)}; optional {_listed(optional)}",
        path=path,
        hint="download the MPS output again; if a newer MPS version wrote it, move this file out "
        "of the MPS folder to go on without it, and report its first line",
    )


def _listed(names: Iterable[str], most: int = 30) -> str:
    names = [name[:60] for name in names]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return (", ".join(names[:most]) + more) or "none"


# --- fields ----------------------------------------------------------------------------------


def _values(unit: str, *columns: str) -> Group:
    return tuple(Field(c, c, unit) for c in columns)


def _axes(unit: str, pattern: str) -> Group:
    return _values(unit, *(pattern.format(axis) for axis in XYZ))


def _texts(*columns: str) -> Group:
    return tuple(Field(c, c, role="text") for c in columns)


def _pose(suffix: str) -> Group:
    """T_a_device of a trajectory, under short names: the track's frame says what ``a`` is."""
    translation = tuple(Field(f"t{a}_{suffix}", f"t{a}", "m") for a in XYZ)
    return translation + tuple(Field(f"q{a}_{suffix}", f"q{a}") for a in ("w", *XYZ))


TIME = Field("tracking_timestamp_us", "time", "us", "time")
UTC = Field("utc_timestamp_ns", "utc_ns", "ns", "integer")


# --- trajectories ----------------------------------------------------------------------------

QUALITY = _values("1", "quality_score")
GEO = ("geo_available", *(f.column for f in _pose("ecef_device")))

CLOSED_LOOP = Schema(
    required=(
        TIME,
        UTC,
        *_texts("graph_uid"),
        *_pose("world_device"),
        *_axes("m/s", "device_linear_velocity_{}_device"),
        *_axes("rad/s", "angular_velocity_{}_device"),
        *_axes("m/s^2", "gravity_{}_world"),
    ),
    optional=(QUALITY,),
    vital=("tx_world_device", "qw_world_device"),
    ignored=GEO,
)
ECEF = Schema(
    required=(
        TIME,
        Field("geo_available", "geo_available", role="flag"),
        *_pose("ecef_device"),
    ),
    vital=("tx_ecef_device", "qw_ecef_device"),
    ignored=(*CLOSED_LOOP.columns,),
)
OPEN_LOOP = Schema(
    required=(
        TIME,
        UTC,
        *_texts("session_uid"),
        *_pose("odometry_device"),
        *_axes("m/s", "device_linear_velocity_{}_odometry"),
        *_axes("rad/s", "angular_velocity_{}_device"),
        *_axes("m/s^2", "gravity_{}_odometry"),
    ),
    optional=(QUALITY,),
    vital=("tx_odometry_device", "qw_odometry_device"),
)

# --- points ----------------------------------------------------------------------------------

POINTS = Schema(
    required=(
        Field("uid", "uid", role="integer"),
        *_texts("graph_uid"),
        *_axes("m", "p{}_world"),
        *_values("1/m", "inv_dist_std"),
        *_values("m", "dist_std"),
    ),
    vital=("px_world",),
)
OBSERVATIONS = Schema(
    required=(
        Field("frame_tracking_timestamp_us", "time", "us", "time"),
        Field("uid", "uid", role="integer"),
        *_texts("camera_serial"),
        *_values("px", "u", "v"),
    ),
    vital=("u",),
)

# --- gaze ------------------------------------------------------------------------------------

DEPTH = _values("m", "depth_m")
SESSION = _texts("session_uid")
EYES = tuple(f for side in SIDES for f in _axes("m", "t{}_" + side + "_eye_cpf"))


def _bounds(*angles: str) -> Group:
    columns = (f"{angle}_{end}_rads_cpf" for end in ("low", "high") for angle in angles)
    return _values("rad", *columns)


GAZE_GEN2 = Schema(
    required=(
        TIME,
        *_values("rad", "yaw_rads_cpf", "pitch_rads_cpf"),
        *_values("rad", "left_yaw_rads_cpf", "right_yaw_rads_cpf"),
        *_values("rad", "left_pitch_rads_cpf", "right_pitch_rads_cpf"),
    ),
    optional=(EYES, DEPTH, SESSION),
    vital=("yaw_rads_cpf", "pitch_rads_cpf"),
)
GAZE_VERGENCE = Schema(
    required=(
        TIME,
        *_values("rad", "left_yaw_rads_cpf", "right_yaw_rads_cpf", "pitch_rads_cpf"),
    ),
    optional=(DEPTH, _bounds("left_yaw", "right_yaw", "pitch"), EYES, SESSION),
    vital=("left_yaw_rads_cpf", "pitch_rads_cpf"),
)
GAZE_COMBINED = Schema(
    required=(TIME, *_values("rad", "yaw_rads_cpf", "pitch_rads_cpf")),
    optional=(DEPTH, _bounds("yaw", "pitch"), SESSION),
    vital=("yaw_rads_cpf", "pitch_rads_cpf"),
)
GAZE = (GAZE_GEN2, GAZE_VERGENCE, GAZE_COMBINED)

# --- hands -----------------------------------------------------------------------------------

NORMALS = tuple(
    f
    for side in SIDES
    for part in ("palm", "wrist")
    for f in _axes("1", "n{}_" + f"{side}_{part}_device")
)
CONFIDENCES = tuple(f"{side}_tracking_confidence" for side in SIDES)


def _hand(side: str, parts: Iterable[str]) -> Group:
    places = (f for part in parts for f in _axes("m", "t{}_" + f"{side}_{part}_device"))
    return (*_values("1", f"{side}_tracking_confidence"), *places)


def _wrist(side: str) -> Group:
    translation = _axes("m", "t{}_" + f"{side}_device_wrist")
    return translation + _values("1", *(f"q{a}_{side}_device_wrist" for a in ("w", *XYZ)))


WRIST_AND_PALM = Schema(
    required=(TIME, *(f for side in SIDES for f in _hand(side, ("wrist", "palm")))),
    optional=(NORMALS,),
    vital=CONFIDENCES,
)
HAND_RESULTS = Schema(
    required=(
        TIME,
        *(f for s in SIDES for f in _hand(s, (f"landmark_{k}" for k in range(LANDMARKS)))),
    ),
    optional=((*_wrist("left"), *_wrist("right")), NORMALS),
    vital=CONFIDENCES,
)

# --- products --------------------------------------------------------------------------------

SLAM = ("slam", "trajectory")
EYE_GAZE = ("eye_gaze",)
HAND_TRACKING = ("hand_tracking",)

PRODUCTS = (
    Product(
        "closed_loop_trajectory",
        "pose",
        "world",
        SLAM,
        ("closed_loop_trajectory.csv",),
        (CLOSED_LOOP,),
    ),
    Product(
        "open_loop_trajectory",
        "pose",
        "odometry",
        SLAM,
        ("open_loop_trajectory.csv",),
        (OPEN_LOOP,),
    ),
    Product(
        "semidense_points",
        "points",
        "world",
        SLAM,
        (
            "semidense_points.csv.gz",
            "global_points.csv.gz",
            "semidense_points.csv",
            "global_points.csv",
        ),
        (POINTS,),
    ),
    Product(
        "semidense_observations",
        "samples",
        "",
        SLAM,
        ("semidense_observations.csv.gz", "semidense_observations.csv"),
        (OBSERVATIONS,),
        ordered=False,
        dtype="f4",
    ),
    Product(
        "general_eye_gaze",
        "gaze",
        "cpf",
        EYE_GAZE,
        (
            "general_eye_gaze.csv",
            "generalized_eye_gaze.csv",
            "generalized_gaze.csv",
            "eyegaze.csv",
        ),
        GAZE,
    ),
    Product(
        "personalized_eye_gaze",
        "gaze",
        "cpf",
        EYE_GAZE,
        ("personalized_eye_gaze.csv", "calibrated_eye_gaze.csv"),
        GAZE,
    ),
    Product(
        "wrist_and_palm_poses",
        "hands",
        "device",
        HAND_TRACKING,
        ("wrist_and_palm_poses.csv",),
        (WRIST_AND_PALM,),
    ),
    Product(
        "hand_tracking_results",
        "hands",
        "device",
        HAND_TRACKING,
        ("hand_tracking_results.csv",),
        (HAND_RESULTS,),
    ),
)
ECEF_PRODUCT = Product(
    "closed_loop_trajectory_ecef",
    "pose",
    "ecef",
    SLAM,
    PRODUCTS[0].names,
    (ECEF,),
    location=True,
)
CALIBRATION_NAMES = ("online_calibration.jsonl",)
