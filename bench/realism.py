"""The simulated lab beside real files: the same numbers of both, as tables and one picture.

python -m bench.realism                      tables, as Markdown
python -m bench.realism --picture FILE.png   also draws sigma against distance

Needs the real files in ../shared/data; without them only the simulated column is filled.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]
Row = dict[str, str]

REAL = Path(__file__).resolve().parents[1].parent / "shared" / "data"
REAL_VRS = REAL / "1_vrs/projectaria_tools/gen1/aria_everyday_activities_test_data/recording.vrs"
REAL_MPS = REAL / "2_mps/projectaria_tools/gen1/mps_sample"
SEED, SECONDS, POINTS = 5, 12.0, 100_000
BINS_M = ((0.5, 1.0), (1.0, 1.5), (1.5, 2.0), (2.0, 3.0), (3.0, 4.0), (4.0, 6.0), (6.0, 8.0))
SURE_INVERSE, SURE_M = 0.005, 0.05
STREAMS = {"imu-right": "1202-1", "imu-left": "1202-2", "magnetometer": "1203-1",
           "barometer": "247-1", "slam-left": "1201-1", "rgb": "214-1",
           "eyes": "211-1"}  # fmt: skip


# --- what is measured ------------------------------------------------------------------------


def read_points(path: Path) -> tuple[Float64, Float64, Float64]:
    """Return places (N, 3), sigma of inverse distance and sigma of distance."""
    from synorama.capture.mps import mps_tracks
    from synorama.records import PointTrack

    (track,) = (t for t in mps_tracks(path)[0] if isinstance(t, PointTrack))
    cloud = track.read()
    return cloud.points_m, cloud.extra["inv_dist_std"], cloud.extra["dist_std"]


def told_distance(inverse_sigma: Float64, sigma: Float64) -> Float64:
    """Return the distance at which a point was seen: sigma = distance^2 * inverse sigma."""
    return np.sqrt(sigma / inverse_sigma)


def points(folder: Path) -> Row:
    from scipy.spatial import cKDTree

    place, inverse, sigma = read_points(folder)
    far = told_distance(inverse, sigma)
    rows = {}
    for low, high in BINS_M:
        q = np.quantile(inverse[(far >= low) & (far < high)], (0.1, 0.5, 0.9)) * 1000
        rows[f"sigma of inverse distance at {low:g} to {high:g} m, 10/50/90 % [1/km]"] = (
            f"{q[0]:.2g} / {q[1]:.2g} / {q[2]:.2g}"
        )
    for limit in (12, 20, 60):
        rows[f"share told beyond {limit} m [%]"] = f"{100 * (far > limit).mean():.2f}"
    rows["farthest point [m]"] = f"{far.max():.0f}"
    sure = (inverse < SURE_INVERSE) & (sigma < SURE_M)
    rows["share with small sigmas (0.005 1/m and 0.05 m) [%]"] = f"{100 * sure.mean():.0f}"
    tree = cKDTree(place[sure])
    nearest = tree.query(place[sure][::20], k=2)[0][:, 1]
    rows["distance of neighbours among these, 50/90 % [cm]"] = (
        f"{100 * np.median(nearest):.1f} / {100 * np.quantile(nearest, 0.9):.1f}"
    )
    around = cKDTree(place).query_ball_point(place[::10], 0.2, return_length=True) - 1
    rows["share with fewer than 5 neighbours in 20 cm [%]"] = f"{100 * (around < 5).mean():.0f}"
    return rows


def trajectory(folder: Path) -> Row:
    closed, us = _table(folder / "closed_loop_trajectory.csv", "world")
    opened, _ = _table(folder / "open_loop_trajectory.csv", "odometry")
    step = np.diff(us)
    gap = _after_rigid(opened, closed[: len(opened)])
    return {
        "rows a second": f"{(len(us) - 1) / np.ptp(us) * 1e6:.0f}",
        "step, 10/50/90/100 % [us]": " / ".join(
            f"{q:.0f}" for q in np.quantile(step, (0.1, 0.5, 0.9, 1.0))
        ),
        "open against closed loop after a rigid fit, rms [mm]": f"{1000 * gap:.1f}",
        "path [m]": f"{np.linalg.norm(np.diff(closed, axis=0), axis=1).sum():.1f}",
    }


def _table(path: Path, frame: str) -> tuple[Float64, Float64]:
    with path.open() as file:
        names = file.readline().strip().split(",")
        wanted = [names.index(f"t{a}_{frame}_device") for a in "xyz"]
        time = names.index("tracking_timestamp_us")
        values = np.loadtxt(file, delimiter=",", usecols=[time, *wanted])
    return values[:, 1:], values[:, 0]


def _after_rigid(moving: Float64, still: Float64) -> float:
    a, b = moving - moving.mean(axis=0), still - still.mean(axis=0)
    u, _, vt = np.linalg.svd(a.T @ b)
    turn = vt.T @ np.diag([1, 1, np.linalg.det(vt.T @ u.T)]) @ u.T
    return float(np.sqrt(((a @ turn.T - b) ** 2).sum(axis=1).mean()))


def gaze(path: Path) -> Row:
    from projectaria_tools.core import mps

    rows = mps.read_eyegaze(str(path))
    us = np.array([r.tracking_timestamp.total_seconds() * 1e6 for r in rows])
    eyes = [r.vergence for r in rows]
    yaw = np.degrees([e.left_yaw_high - e.left_yaw_low for e in eyes])
    pitch = np.degrees([r.pitch_high - r.pitch_low for r in rows])
    return {
        "step [ms]": f"{np.median(np.diff(us)) / 1000:.1f}",
        "interval of yaw, 25/50/75 % [deg]": _quartiles(yaw),
        "interval of pitch, 25/50/75 % [deg]": _quartiles(pitch),
    }


def _quartiles(values: Float64) -> str:
    return " / ".join(f"{q:.1f}" for q in np.quantile(values, (0.25, 0.5, 0.75)))


def streams(path: Path) -> Row:
    from projectaria_tools.core import data_provider
    from projectaria_tools.core.sensor_data import TimeDomain
    from projectaria_tools.core.stream_id import StreamId

    provider = data_provider.create_vrs_data_provider(str(path))
    there = {str(s) for s in provider.get_all_streams()}
    rows = {}
    for name, number in STREAMS.items():
        if number in there:
            times = np.array(provider.get_timestamps_ns(StreamId(number), TimeDomain.DEVICE_TIME))
            rows[f"{name}: rate [Hz]"] = _rate(times)
            rows[f"{name}: step, 10/50/90 %, and its sigma [us]"] = _steps(times)
    rows |= _audio(provider, StreamId("231-1"))
    return rows


def _rate(times_ns: NDArray[np.int64]) -> str:
    return f"{(len(times_ns) - 1) * 1e9 / np.ptp(times_ns):.2f}" if len(times_ns) > 1 else ""


def _steps(times_ns: NDArray[np.int64]) -> str:
    step = np.diff(times_ns) / 1000
    if len(step) < 2:
        return "too few records"
    low, middle, high = np.quantile(step, (0.1, 0.5, 0.9))
    return f"{low:.1f} / {middle:.1f} / {high:.1f}, {step.std():.2f}"


def _audio(provider: Any, stream: Any) -> Row:
    blocks = [
        provider.get_audio_data_by_index(stream, k) for k in range(provider.get_num_data(stream))
    ]
    times = [np.array(told.capture_timestamps_ns) for _, told in blocks]
    channels = len(blocks[0][0].data) // len(times[0])
    within = np.concatenate([np.diff(t) for t in times])
    between = np.array([b[0] - a[-1] for a, b in itertools.pairwise(times)])
    span = times[-1][-1] - times[0][0]
    return {
        "sound: samples a block, channels": f"{len(times[0])}, {channels}",
        "sound: step within a block, least to most [ns]": f"{within.min()} to {within.max()}",
        "sound: step between blocks, least to most [ns]": f"{between.min()} to {between.max()}",
        "sound: rate over the recording [Hz]": (f"{(sum(map(len, times)) - 1) * 1e9 / span:.2f}"),
    }


# --- the simulated side ----------------------------------------------------------------------


def simulated(folder: Path) -> tuple[Path, Path]:
    """Write one pair of glasses and the services' output; return the recording and the output."""
    from synorama.simulate import simulate
    from synorama.simulate.clocks import steady_clock
    from synorama.simulate.devices.aria_calibration import GEN1, calibration_json
    from synorama.simulate.devices.aria_streams import Glasses
    from synorama.simulate.mps import MpsOptions, Worn, write_mps
    from synorama.simulate.scene.layouts import build_room
    from synorama.simulate.scene.motion import plan_motion
    from synorama.simulate.scene.surface import room_surface
    from synorama.simulate.sound.plain import Hearing

    simulate(folder / "session", seed=SEED, seconds=SECONDS, room=None, devices=("leader",))
    room = build_room(SEED, "open")
    wearer, _ = plan_motion(room, SEED, start_ns=0, seconds=60.0)
    clock = steady_clock(
        "leader", device_ns=0, session_ns=0, length_ns=round(SECONDS * 1e9), drift_ppm=0.0
    )
    glasses = Glasses(
        "leader", "S", clock, 0, SECONDS, "server", "s", 0, 0, Hearing(0.5, 0.001), SEED
    )
    (folder / "leader").mkdir()
    worn = Worn(glasses, wearer, Path("leader/rec.vrs"), calibration_json(GEN1, "S", {}))
    asked = MpsOptions(frames="own", points=POINTS)
    write_mps(folder, [worn], room_surface(room), asked)
    vrs = next((folder / "session" / "leader").glob("*.vrs"))
    return vrs, folder / "leader" / "mps_rec_vrs"


# --- telling ---------------------------------------------------------------------------------


def table(title: str, measure: Callable[[Path], Row], real: Path, made: Path) -> None:
    there = measure(real) if real.exists() else {}
    here = measure(made)
    print(f"\n| {title} | real | simulated |\n|---|---|---|")
    for name in dict.fromkeys([*there, *here]):
        print(f"| {name} | {there.get(name, '')} | {here.get(name, '')} |")


def draw(path: Path, sides: dict[str, Path]) -> None:
    """Draw sigma against distance, one panel a side."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(1, len(sides), figsize=(8.4, 3.5), sharey=True, squeeze=False)
    edges = np.geomspace(0.3, 300, 80), np.geomspace(5e-5, 1, 60)
    for panel, (title, folder) in zip(panels[0], sides.items(), strict=True):
        _, inverse, sigma = read_points(folder)
        far = told_distance(inverse, sigma)
        density, _, _ = np.histogram2d(far, inverse, bins=edges)
        share = np.log10(1e5 * density.T / len(far) + 0.3)
        panel.pcolormesh(*edges, share, cmap="Greys", rasterized=True)
        middles = [np.median(inverse[(far >= a) & (far < b)]) for a, b in BINS_M]
        panel.plot([np.sqrt(a * b) for a, b in BINS_M], middles, "o-", color="tab:red", ms=4)
        panel.set(xscale="log", yscale="log", xlabel="distance [m]", title=title)
    panels[0][0].set_ylabel("sigma of inverse distance [1/m]")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picture", type=Path, help="PNG to draw")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        vrs, mps = simulated(Path(folder))
        table("semi-dense points", points, REAL_MPS / "trajectory", mps / "slam")
        table("trajectories", trajectory, REAL_MPS / "trajectory", mps / "slam")
        real_gaze = REAL_MPS / "eye_gaze_vergence" / "generalized_gaze.csv"
        table("gaze", gaze, real_gaze, mps / "eye_gaze" / "general_eye_gaze.csv")
        table("recording", streams, REAL_VRS, vrs)
        if asked.picture:
            sides = {"real": REAL_MPS / "trajectory", "simulated": mps / "slam"}
            draw(asked.picture, {k: v for k, v in sides.items() if v.exists()})


if __name__ == "__main__":
    main()
