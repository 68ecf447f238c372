"""How far a camera's pictures are off its own sound, from flashes with beeps, or from claps.

``skew`` carries a picture's time to the sound's: ``t_sound = t_picture + skew``. Where a picture
and a sound of the same moment are stamped 1.000 s and 1.030 s, the skew is +30 ms: the sound is
stamped later.

A flash that begins while a frame is exposed lights it in part; how much tells the moment to a
part of the exposure. Where frames are exposed for a short time, a flash mostly falls between two
of them, and each says only that it came before one and after another. Skew and exposure are
tried on a grid, and the interval holds every skew that explains the frames nearly as well. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from synorama.errors import SkewRefusedError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from synorama.media.audio import MonoSound

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]

__all__ = ["SkewMeasurement", "measure_skew", "onsets"]

Method: TypeAlias = Literal["flash", "clap"]

# Sound.
QUIET_S = (0.1, 0.004)  # before an onset: from, to
LOUDER = 5.0
BURST_S = 0.03  # codecs let a little of a beep sound up to 20 ms before it
LOUD_SHARE = 0.15  # of the loudest onset
CROSSING = 0.25  # of the burst's height: the onset
LEAST_APART_S = 0.4

# Pictures.
SEARCH_NS = 450_000_000
GAMMA = 2.2
LEAST_FLASH = 2.0  # stored values of 255
CLEAR = 8.0  # over what the brightness does anyway
ONLY_ADDS = 0.6  # of all change: what a flash brightens, less what darkens
SIDE = 3  # frames before and after that are held against the model
STEP_NS = 250_000
EXPOSURES = 24
SHORTEST_EXPOSURE_NS = 1e6
LEAST_SCATTER = 0.05
LIKELY = 3.84
PHASES = 12  # of a frame's interval: onsets in the same one say the same
SOUND_HALF_NS = 500_000  # of an onset
IN_STEP = 0.04  # of a frame: flashes that all fall so close to the same moment of the frames
LEAST_EVENTS = 3
LEAST_STEADY = 3
SAME_SHARE = 0.7  # of the events must agree
ODD_MISFIT = 0.08  # of an event
Z95 = 1.96


@dataclass(frozen=True, slots=True)
class SkewMeasurement:
    """A camera's skew between picture and sound.

    Parameters
    ----------
    skew_ns
        ``t_sound = t_picture + skew``: positive where the sound is stamped later.
    half_ns
        Half width of the interval that holds it with 95 % probability.
    method
        What was seen: ``flash`` or ``clap``.
    events, dropped
        How many it rests on, and how many contradicted them.
    note
        What to know about it, in words; or empty.
    """

    skew_ns: int
    half_ns: float
    method: Method
    events: int
    dropped: int = 0
    note: str = ""


def measure_skew(
    times_ns: Int64, brightness: Float64, sound: MonoSound, *, path: str = ""
) -> SkewMeasurement:
    """Measure the skew of pictures against sound.

    Parameters
    ----------
    times_ns
        ``(N,)`` times of the frames.
    brightness
        ``(N, parts)`` brightness of parts of each frame, 0 to 255.
    sound
        Of the same recording.
    path
        The file, for errors.

    Raises
    ------
    SkewRefusedError
        There is no sharp sound, nothing that lights up or stops with it, only one event, or the
        events contradict each other.
    """
    heard = onsets(sound)
    _check_count(len(heard), "sharp sound", path)
    window = min(SEARCH_NS, int(0.45 * np.diff(heard).min()))
    inside = (heard > times_ns[0] + window) & (heard < times_ns[-1] - window)
    heard = heard[inside]
    _check_count(len(heard), "sharp sound within the pictures", path)
    flash = _flashes(times_ns, brightness, heard, window)
    if flash is not None:
        return _by_flash(times_ns, flash, heard, window, path)
    stops = _stops(times_ns, brightness, heard, window)
    if stops is None:
        raise SkewRefusedError(
            f"there are {len(heard)} sharp sounds, and nothing in the picture lights up or stops "
            "with them",
            path=path,
            hint="film flashes with beeps, or claps, that fill a tenth of the picture",
        )
    return _by_clap(times_ns, stops, heard, path)


def _check_count(count: int, what: str, path: str) -> None:
    if count >= LEAST_EVENTS:
        return
    found = ("there is no {}", "there is only one {}", "there are only two {}s")[count].format(what)
    raise SkewRefusedError(
        f"{found}, and fewer than three events cannot tell how far they may be trusted",
        path=path,
        hint="film ten flashes with beeps, or ten claps, a second or so apart, not in step",
    )


# --- sound -----------------------------------------------------------------------------------


def onsets(sound: MonoSound) -> Int64:
    """Return when sharp sounds begin [ns], on the device's clock, far enough apart."""
    rate = sound.rate_hz
    level = np.abs(sound.samples.astype(np.float64))
    hop = max(rate // 1000, 1)
    each = level[: len(level) // hop * hop].reshape(-1, hop).max(axis=1)
    if len(each) < 200 or each.max() <= 0:
        return np.zeros(0, np.int64)
    before = _most_before(each)
    ahead = _most_ahead(each, round(BURST_S * 1000))
    sharp = (each > LOUDER * np.maximum(before, 1e-3 * each.max())) & (
        ahead > LOUD_SHARE * each.max()
    )
    found: list[int] = []
    for k in np.flatnonzero(sharp):
        if not found or k - found[-1] > LEAST_APART_S * 1000:
            found.append(int(k))
    starts = [_crossing(level, k * hop, rate) for k in found]
    return np.array([sound.time_ns(n / rate) for n in starts], np.int64)


def _most_before(each: Float64) -> Float64:
    """Return for each millisecond the highest level of the tenth of a second before it."""
    from scipy.ndimage import maximum_filter1d

    long, short = (round(s * 1000) for s in QUIET_S)
    width = long - short
    padded = np.concatenate([np.full(long, each[0]), each])
    most = maximum_filter1d(padded, width, origin=0)
    return np.asarray(most[width // 2 : width // 2 + len(each)])


def _most_ahead(each: Float64, width: int) -> Float64:
    padded = np.concatenate([each, np.zeros(width)])
    return np.asarray(np.lib.stride_tricks.sliding_window_view(padded, width)[: len(each)].max(1))


def _crossing(level: Float64, near: int, rate: int) -> int:
    """Return the first sample of a burst that reaches a quarter of its height."""
    low = max(near - rate // 200, 0)
    burst = level[low : near + round(BURST_S * rate)]
    return low + int(np.argmax(burst > CROSSING * burst.max()))


# --- flashes ---------------------------------------------------------------------------------


def _flashes(times_ns: Int64, brightness: Float64, heard: Int64, window: int) -> Float64 | None:
    """Return the linear light of the parts that light up with the sounds; None if none does."""
    rise = np.diff(brightness, axis=0, prepend=brightness[:1])
    noise = 1.4826 * np.median(np.abs(rise), axis=0) + 0.25
    rows = [_near(times_ns, t, window) for t in heard]
    best = np.median([rise[row].max(axis=0) for row in rows], axis=0)
    clear = (best > CLEAR * noise) & (best > LEAST_FLASH)
    if not clear.any():
        return None
    if _moves(rise, rows, noise):
        return None
    chosen = clear & (best > 0.5 * best[clear].max())
    light = (brightness[:, chosen] / 255.0) ** GAMMA
    return np.asarray(light.mean(axis=1), np.float64) if _lasts(light, rows) else None


def _moves(rise: Float64, rows: list[NDArray[np.intp]], noise: Float64) -> bool:
    """Tell a thing that moves, which darkens what it leaves, from a light, which only adds."""
    tops = [int(row[0] + rise[row].sum(axis=1).argmax()) for row in rows]
    change = rise[tops]
    change[np.abs(change) < CLEAR * noise] = 0
    net, gross = change.sum(axis=1), np.abs(change).sum(axis=1)
    return bool(np.median(net / np.maximum(gross, 1e-9)) < ONLY_ADDS)


def _lasts(light: Float64, rows: list[NDArray[np.intp]]) -> bool:
    """Tell light that comes with the sounds and is dark before from things that move about."""
    steps = [_step(light.mean(axis=1), row) for row in rows]
    return sum(s is not None for s in steps) >= max(LEAST_EVENTS, 0.5 * len(rows))


def _near(times_ns: Int64, at_ns: int, window: int) -> NDArray[np.intp]:
    return np.flatnonzero(np.abs(times_ns - at_ns) <= window)


def _step(light: Float64, row: NDArray[np.intp]) -> tuple[int, Float64] | None:
    """Return the frame of the greatest rise near a sound, and the lit share of those around it."""
    rise = np.diff(light[row[0] - 1 : row[-1] + 1]) if row[0] else np.diff(light[row], prepend=0)
    top = int(row[0] + rise.argmax())
    low, high = top - SIDE, top + SIDE
    if low < 1 or high > len(light):
        return None
    dark = float(np.median(light[low - 1 : top - 1]))
    lit = float(light[top : top + 3].max())
    spread = float(np.ptp(light[low - 1 : top - 1]))
    if lit - dark <= 4 * spread:
        return None
    share = np.clip((light[low:high] - dark) / (lit - dark), 0, 1)
    peak = int(np.argmax(light[low:high] >= lit - 0.1 * (lit - dark)))
    share[peak:] = 1  # what the flash does afterwards says nothing
    return low, share


def _by_flash(
    times_ns: Int64, light: Float64, heard: Int64, window: int, path: str
) -> SkewMeasurement:
    steps = [(t, _step(light, _near(times_ns, int(t), window))) for t in heard]
    found = [(int(t), s[0], s[1]) for t, s in steps if s is not None]
    _check_count(len(found), "sharp sound with a flash", path)
    since = np.array([times_ns[low : low + 2 * SIDE] - t for t, low, _ in found], np.float64)
    share = np.array([s for _, _, s in found])
    frame = float(np.median(np.diff(times_ns)))
    rough = np.array([x[s >= 0.5][0] for x, s in zip(since, share, strict=True)])
    keep = np.abs(rough - np.median(rough)) < 1.1 * frame
    _check_agree(keep, rough, len(heard), path)
    since, share = since[keep], share[keep]
    dropped = len(heard) - int(keep.sum())
    first = np.array([x[s > 0.1][0] for x, s in zip(since, share, strict=True)])
    steady = np.abs(first - np.median(first)) < IN_STEP * frame + SOUND_HALF_NS
    if _in_step(steady, share):
        return _made(first[steady], frame, dropped + int((~steady).sum()))
    good = _explained(since, share, frame, -float(np.median(rough)))
    skew, half = _search(since[good], share[good], frame, -float(np.median(rough)))
    dropped += int((~good).sum())
    return SkewMeasurement(round(skew), half + SOUND_HALF_NS, "flash", int(good.sum()), dropped)


def _check_agree(keep: NDArray[np.bool_], rough_ns: Float64, heard: int, path: str) -> None:
    """Refuse where most sounds do not have their flash at the same distance: it is chance then."""
    if keep.sum() >= max(LEAST_EVENTS, SAME_SHARE * heard):
        return
    told = ", ".join(f"{-t / 1e6:+.0f}" for t in rough_ns[:6])
    raise SkewRefusedError(
        f"the events contradict each other: they say {told} ms",
        path=path,
        hint="film them again, in a still scene, with nothing else that flashes, moves or knocks",
    )


def _in_step(steady: NDArray[np.bool_], share: Float64) -> bool:
    """Tell whether flashes begin at the same moment between two frames, and none within one."""
    whole = bool(((share < 0.1) | (share > 0.9)).all())
    return whole and bool(steady.sum() >= max(LEAST_STEADY, SAME_SHARE * len(steady)))


def _made(first_ns: Float64, frame_ns: float, dropped: int) -> SkewMeasurement:
    return SkewMeasurement(
        -round(float(np.median(first_ns))),
        frame_ns,
        "flash",
        len(first_ns),
        dropped,
        "all flashes begin at the same moment between two frames. In a file that was made and not "
        "filmed they begin with a frame, which is what the number says; in a film they came up to "
        "one frame earlier, which the interval holds. Flash at irregular times to know it better",
    )


def _search(
    since_ns: Float64, share: Float64, frame_ns: float, rough_ns: float
) -> tuple[float, float]:
    """Return the skew and the half width of the interval that holds it, by trial."""
    skews, misfit = _tried(since_ns, share, frame_ns, rough_ns)
    each = np.minimum(misfit, 1.0).mean(axis=2)
    along, best = each.min(axis=0), float(each.min())
    scatter = max(best / 2, LEAST_SCATTER**2)
    phases = np.unique((since_ns[:, 0] % frame_ns) // (frame_ns / PHASES))
    alike = skews[along <= best + LIKELY * scatter / len(phases)]
    half = (alike[-1] - alike[0] + STEP_NS) / 2
    return float(alike[0] + alike[-1]) / 2, float(half)


def _explained(
    since_ns: Float64, share: Float64, frame_ns: float, rough_ns: float
) -> NDArray[np.bool_]:
    """Tell which events the best skew explains: an onset blurred by a codec is not worth having."""
    _, misfit = _tried(since_ns, share, frame_ns, rough_ns)
    each = np.minimum(misfit, ODD_MISFIT).mean(axis=2)
    best = np.unravel_index(int(each.argmin()), each.shape)
    good = np.asarray(misfit[best] < ODD_MISFIT)
    return good if good.sum() >= max(LEAST_EVENTS, SAME_SHARE * len(good)) else np.ones_like(good)


def _tried(
    since_ns: Float64, share: Float64, frame_ns: float, rough_ns: float
) -> tuple[Float64, Float64]:
    """Return the skews tried and, ``(exposures, skews, events)``, what the light is off."""
    skews = np.arange(rough_ns - 1.5 * frame_ns, rough_ns + 1.5 * frame_ns, STEP_NS)
    exposures = np.geomspace(SHORTEST_EXPOSURE_NS, 1.02 * frame_ns, EXPOSURES)
    misfit = np.array([_misfits(since_ns, share, skews, e) for e in exposures])
    return skews, misfit


def _misfits(since_ns: Float64, share: Float64, skews_ns: Float64, exposure_ns: float) -> Float64:
    """Return for each skew and event the squared sum of what the lit share is off."""
    lit = (since_ns[None, :, :] + skews_ns[:, None, None]) / exposure_ns + 0.5
    off = (np.clip(lit, 0, 1) - share[None, :, :]) ** 2
    return np.asarray(off.sum(axis=2))


# --- claps -----------------------------------------------------------------------------------


def _stops(times_ns: Int64, brightness: Float64, heard: Int64, window: int) -> list[float] | None:
    """Return when motion near each sound comes to its stop; None where nothing moves with them."""
    motion = np.abs(np.diff(brightness, axis=0, prepend=brightness[:1]))
    noise = 1.4826 * np.median(motion, axis=0) + 0.1
    active = np.clip(motion / noise - 3, 0, None).mean(axis=1)
    rows = [_near(times_ns, t, window) for t in heard]
    stops = [_stop(times_ns, active, row) for row in rows]
    moving = [s for s in stops if s is not None]
    if len(moving) < max(LEAST_EVENTS, 0.5 * len(heard)):
        return None
    return [float("nan") if s is None else s for s in stops]


def _stop(times_ns: Int64, active: Float64, row: NDArray[np.intp]) -> float | None:
    """Return the moment in ns after the first frame at which motion breaks off."""
    if len(row) < 4 or row[-1] + 1 >= len(active):
        return None
    fall = active[row] - active[row + 1]
    at = int(row[0] + fall.argmax())
    if active[at] < 4 * (np.median(active[row]) + 0.02):
        return None
    share = float(np.clip(active[at + 1] / active[at], 0, 1))  # of the interval in which it stops
    start, end = (int(times_ns[k] - times_ns[0]) for k in (at, at + 1))
    return start + share * (end - start)


def _by_clap(times_ns: Int64, stops_ns: list[float], heard: Int64, path: str) -> SkewMeasurement:
    off = np.asarray(stops_ns) - (heard - times_ns[0])
    off = off[np.isfinite(off)]
    frame = float(np.median(np.diff(times_ns)))
    keep = np.abs(off - np.median(off)) < 2 * frame
    _check_agree(keep, off, len(heard), path)
    good = off[keep]
    sigma = max(float(np.std(good, ddof=1)), frame / 2) / float(np.sqrt(len(good)))
    half = Z95 * sigma + frame / 4 + SOUND_HALF_NS
    note = "a clap is seen less sharply than a flash: flashes with beeps know it better"
    dropped = len(heard) - len(good)
    return SkewMeasurement(-round(float(good.mean())), half, "clap", len(good), dropped, note)
