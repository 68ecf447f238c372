"""GPMF, GoPro's metadata format: bytes -> devices, streams and their numbers.

A payload is a list of key-length-value items: four letters, a type letter, the size of one
sample, how many samples, then the samples, padded to four bytes (type 0 nests further items).
Each device (``DEVC``) holds streams (``STRM``); in a stream the last key is the data and those
before it describe it. Source of the format: GoPro's gpmf-parser, ``docs/README.md``.

Pure. It never reads outside the bytes it is given, always ends, and raises on no input: what
cannot be read is left out. Bytes that start in the middle of a payload are read from the next
``DEVC`` or ``STRM`` on.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]

__all__ = [
    "Device",
    "Klv",
    "Stream",
    "axis_signs",
    "find_streams",
    "parse",
    "parse_utc",
    "settings",
    "walk",
]

Property: TypeAlias = "str | tuple[str, ...] | int | float | tuple[int | float, ...]"

NESTED = "\0"
COMPLEX = "?"
_HEADER = struct.Struct(">4scBH")
_START = re.compile(rb"(?:DEVC|STRM)\0")
_DEPTH = 8  # real payloads nest three deep

_NUMBERS: dict[str, np.dtype[Any]] = {
    "b": np.dtype(">i1"),
    "B": np.dtype(">u1"),
    "s": np.dtype(">i2"),
    "S": np.dtype(">u2"),
    "l": np.dtype(">i4"),
    "L": np.dtype(">u4"),
    "j": np.dtype(">i8"),
    "J": np.dtype(">u8"),
    "f": np.dtype(">f4"),
    "d": np.dtype(">f8"),
    "q": np.dtype(">i4"),  # Q15.16
    "Q": np.dtype(">i8"),  # Q31.32
}
_FIXED_POINT = {"q": 2.0**-16, "Q": 2.0**-32}
_TEXTS = {"c": 1, "F": 4, "U": 16, "G": 16}  # bytes of one value that is no number
_DESCRIBING = frozenset(
    (
        *("DVID", "DVNM", "STNM", "RMRK", "SCAL", "SIUN", "UNIT", "TYPE", "TSMP", "TIMO", "EMPT"),
        *("STMP", "TICK", "TOCK", "TMPC", "ORIN", "ORIO", "MTRX", "GPSF", "GPSU", "GPSP", "GPSA"),
    )
)


@dataclass(frozen=True, slots=True)
class Klv:
    """One item: its key, type letter, sample size [bytes], repeat, and where its samples lie."""

    key: str
    kind: str
    size: int
    repeat: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """One stream of one payload.

    Parameters
    ----------
    key
        Four letters of the data: ``ACCL``, ``GPS5``...
    device, device_id
        Name and id of the device that it belongs to.
    properties
        The items that describe it, by key: text, numbers, or tuples of these.
    count
        Samples in this payload. Streams that repeat their key (one list a sample, such as faces
        found in a frame) count the repeats.
    items
        Where the samples lie in ``data``.
    """

    key: str
    device: str
    device_id: str
    properties: Mapping[str, Property]
    count: int
    items: tuple[Klv, ...]
    data: bytes = field(repr=False)

    @property
    def name(self) -> str:
        """What the camera calls the stream."""
        return _text(self.properties.get("STNM"))

    @property
    def total(self) -> int | None:
        """Samples since the start of the recording, these included; None if it does not say."""
        return _integer(self.properties.get("TSMP"))

    @property
    def stamp_us(self) -> int | None:
        """Time of the first sample on the camera's own clock [us], or None."""
        return _integer(self.properties.get("STMP"))

    @property
    def lists(self) -> bool:
        """Whether one sample is a list of varying length."""
        return len(self.items) > 1

    @property
    def units(self) -> tuple[str, ...]:
        """Units as written (one for all columns, or one a column); empty if there are none."""
        units = self.properties.get("SIUN", self.properties.get("UNIT", ()))
        return tuple(str(u) for u in ((units,) if isinstance(units, str) else _tuple(units)))

    def values(self) -> Float64:
        """Return the samples ``(N, k)``, divided by ``SCAL``; NaN where a column is no number.

        Rows of streams with lists follow each other. A layout that is not understood gives
        ``(N, 0)``.
        """
        layout = _layout(self.items[0], _text(self.properties.get("TYPE")))
        if layout is None:
            return np.zeros((self.count, 0))
        blocks = [_rows(self.data, item, layout) for item in self.items if item.repeat]
        raw = np.concatenate(blocks) if blocks else np.zeros((0, len(layout)))
        return raw / _divisors(self.properties.get("SCAL"), raw.shape[1])

    def texts(self) -> tuple[str, ...]:
        """Return samples that are text as they stand; empty for numbers."""
        if self.items[0].kind not in _TEXTS:
            return ()
        found = (_property(self.data, item) for item in self.items)
        return tuple(t for p in found for t in ((p,) if isinstance(p, str) else map(str, p)))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, eq=False)
class Device:
    """One device of one payload: its name, id, own properties and streams."""

    name: str
    id: str
    properties: Mapping[str, Property]
    streams: tuple[Stream, ...]


# --- reading ---------------------------------------------------------------------------------


def walk(data: bytes, start: int = 0, stop: int | None = None) -> Iterator[Klv]:
    """Yield the items that lie one after the other in ``data[start:stop]``.

    It ends at the first bytes that are no item. An item that is cut off is left out; nested items
    that are cut off are yielded as far as they go.
    """
    stop = len(data) if stop is None else min(stop, len(data))
    while start + _HEADER.size <= stop:
        key, kind, size, repeat = _HEADER.unpack_from(data, start)
        if key == b"\0\0\0\0":  # padding
            start += 4
            continue
        body = start + _HEADER.size
        end = body + size * repeat
        nested = kind == b"\0"
        if not _is_key(key) or (end > stop and not nested):
            return
        yield Klv(key.decode(), kind.decode("latin1"), size, repeat, body, min(end, stop))
        start = body + (size * repeat + 3 & ~3)


def parse(data: bytes) -> tuple[Device, ...]:
    """Return the devices of a payload, or of payloads one after the other.

    Streams without a device around them (the bytes start in its middle) come under a device
    without a name.
    """
    return tuple(_device(data, item) for item in _roots(data))


def find_streams(data: bytes, key: str) -> Iterator[Stream]:
    """Yield the streams of one key, without looking into the others."""
    wanted = key.encode("latin1", "replace")
    for root in _roots(data):
        if data.find(wanted, root.start, root.stop) >= 0:
            yield from (s for s in _device(data, root, wanted).streams if s.key == key)


def settings(data: bytes) -> dict[str, Property]:
    """Return all properties of a payload by key, whatever they are nested in; the first one wins.

    For the ``GPMF`` box of a movie's user data: serial number, model, firmware...
    """
    found: dict[str, Property] = {}
    for device in parse(data):
        for key, value in _flat(data, device).items():
            found.setdefault(key, value)
    return found


def _flat(data: bytes, device: Device) -> dict[str, Property]:
    found = dict(device.properties)
    for stream in device.streams:
        found.update(stream.properties)
        found[stream.key] = _property(data, stream.items[0])
    return found


def _roots(data: bytes) -> Iterator[Klv]:
    """Yield the outermost devices and streams, skipping whatever lies between them."""
    at = 0
    while (match := _START.search(data, at)) is not None:
        item = next(walk(data, match.start()), None)
        if item is None:
            return
        yield item
        at = max(item.stop, match.end())


def _device(data: bytes, root: Klv, wanted: bytes = b"") -> Device:
    """Read a device, or a stream that lost its device; only streams that hold ``wanted``."""
    inside = (root,) if root.key == "STRM" else tuple(walk(data, root.start, root.stop))
    nests = [i for i in inside if i.kind == NESTED]
    own = {i.key: _property(data, i) for i in inside if i.kind != NESTED}
    name, number = _text(own.get("DVNM")), str(own.get("DVID", ""))
    chosen = (n for n in nests if not wanted or data.find(wanted, n.start, n.stop) >= 0)
    streams = (_stream(data, nest, name, number) for nest in chosen if nest.key == "STRM")
    return Device(name, number, own, tuple(s for s in streams if s is not None))


def _stream(data: bytes, nest: Klv, device: str, device_id: str) -> Stream | None:
    inside = tuple(walk(data, nest.start, nest.stop))
    if not inside or inside[-1].key in _DESCRIBING:
        return None  # announced, but without data
    key = inside[-1].key
    outer = tuple(i for i in inside if i.key == key)
    items = tuple(leaf for i in outer for leaf in _leaves(data, i, key))
    if not items:
        return None
    properties = {i.key: _property(data, i) for i in inside if i.key != key and i.kind != NESTED}
    count = len(outer) if len(outer) > 1 else items[0].repeat
    return Stream(key, device, device_id, properties, _samples(items[0], count), items, data)


def _samples(item: Klv, count: int) -> int:
    """Count text as one sample a string, not one a letter."""
    return 1 if item.kind == "c" and item.size == 1 else count


def _leaves(data: bytes, item: Klv, key: str, depth: int = _DEPTH) -> Iterator[Klv]:
    """Yield the items of samples: the item itself, or those of its key nested in it."""
    if item.kind != NESTED:
        yield item
    elif depth:
        for inner in walk(data, item.start, item.stop):
            if inner.key == key:
                yield from _leaves(data, inner, key, depth - 1)


def _is_key(key: bytes) -> bool:
    return all(32 <= letter < 127 for letter in key)


# --- values ----------------------------------------------------------------------------------


def _property(data: bytes, item: Klv) -> Property:
    raw = data[item.start : item.stop]
    if item.kind in _TEXTS:
        return _strings(raw, item)
    dtype = _NUMBERS.get(item.kind)
    if dtype is None or item.size % dtype.itemsize:
        return raw.hex()
    numbers: list[int | float] = np.frombuffer(raw, dtype).tolist()
    unit = _FIXED_POINT.get(item.kind)
    if unit is not None:
        numbers = [n * unit for n in numbers]
    return numbers[0] if len(numbers) == 1 else tuple(numbers)


def _strings(raw: bytes, item: Klv) -> str | tuple[str, ...]:
    if item.kind == "G":
        return raw.hex()
    if item.repeat > 1 and item.size > 1:
        parts = (raw[i : i + item.size] for i in range(0, len(raw), item.size))
        return tuple(_decode(part) for part in parts)
    return _decode(raw)


def _decode(raw: bytes) -> str:
    return raw.split(b"\0", 1)[0].decode("latin1")


def _text(value: Property | None) -> str:
    return value if isinstance(value, str) else ""


def _integer(value: Property | None) -> int | None:
    return value if isinstance(value, int) else None


def _tuple(value: Property) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _layout(item: Klv, type_text: str) -> tuple[str, ...] | None:
    """Return the type letter of every column, or None where they do not fill the sample."""
    if item.kind == COMPLEX:
        letters = tuple(_expand(type_text))
        sizes = [_width(letter) for letter in letters]
        return letters if sum(sizes) == item.size and all(sizes) and letters else None
    number = _NUMBERS.get(item.kind)
    if number is None or not item.size or item.size % number.itemsize:
        return None
    return (item.kind,) * (item.size // number.itemsize)


def _expand(type_text: str) -> Iterator[str]:
    """Spell out ``f[3]L`` as ``fffL``; at most 255 letters, as a sample has at most 255 bytes."""
    for letter, times in re.findall(r"(.)(?:\[(\d{1,3})\])?", type_text[:255]):
        yield from letter * min(int(times or 1), 255)


def _width(letter: str) -> int:
    number = _NUMBERS.get(letter)
    return number.itemsize if number is not None else _TEXTS.get(letter, 0)


def _rows(data: bytes, item: Klv, layout: tuple[str, ...]) -> Float64:
    if len(set(layout)) == 1 and layout[0] in _NUMBERS:
        flat = np.frombuffer(data, _NUMBERS[layout[0]], len(layout) * item.repeat, item.start)
        block: Float64 = flat.reshape(item.repeat, len(layout)) * _FIXED_POINT.get(layout[0], 1.0)
        return block
    fields = [(f"f{i}", _NUMBERS.get(c, f"S{_width(c)}")) for i, c in enumerate(layout)]
    table = np.frombuffer(data, np.dtype(fields), item.repeat, item.start)
    rows = np.full((item.repeat, len(layout)), np.nan)
    for i, letter in enumerate(layout):
        if letter in _NUMBERS:
            rows[:, i] = table[f"f{i}"] * _FIXED_POINT.get(letter, 1.0)
    return rows


def _divisors(scale: Property | None, columns: int) -> Float64:
    """Return one divisor a column; 1 where none is given or it is 0."""
    given = [s for s in _tuple(scale) if isinstance(s, (int, float))] if scale is not None else []
    if len(given) == 1:
        given *= columns
    divisors = np.ones(columns)
    divisors[: len(given)] = given[:columns]
    divisors[~np.isfinite(divisors) | (divisors == 0)] = 1.0
    return divisors


# --- meaning shared by all devices -----------------------------------------------------------


def axis_signs(orientation: str) -> tuple[tuple[int, float], ...] | None:
    """Return, for x, y and z, which column holds it and with what sign.

    Parameters
    ----------
    orientation
        ``ORIN``: the axis of each column, lower case where it points the other way: ``YxZ``.

    Returns
    -------
        ``((column, sign), ...)`` for x, y, z; None where the text does not name all three.
    """
    if sorted(orientation.upper()) != ["X", "Y", "Z"]:
        return None
    at = {letter.upper(): i for i, letter in enumerate(orientation)}
    return tuple((at[a], 1.0 if orientation[at[a]].isupper() else -1.0) for a in "XYZ")


def parse_utc(text: str) -> int | None:
    """Return UTC [ns since 1970] of a ``GPSU`` text ``yymmddhhmmss.sss``; None for no date."""
    if re.fullmatch(r"\d{12}\.\d{3}", text) is None:
        return None
    try:
        at = datetime.strptime(text[:12], "%y%m%d%H%M%S").replace(tzinfo=timezone.utc)
    except ValueError:
        return None
    return (int(at.timestamp()) * 1000 + int(text[13:])) * 1_000_000
