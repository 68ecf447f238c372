"""VRS DataLayout: how the fields of a record are laid out, as numpy types.

A layout is described by JSON in the stream's tags. Its fixed-size fields lie at stated offsets and
become one packed structured type, so that a million records are decoded by one strided copy. The
offsets and lengths of variable-size fields (strings, vectors) follow the fixed fields and are part
of that type; the variable bytes come after them.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from synorama.errors import CorruptFileError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["SPANS", "Layout", "parse_layout", "split_strings"]

SPANS = "#spans"
"""Name of the hidden field that holds ``(offset, length)`` of every variable-size field."""

STRING, STRINGS, BYTES = "string", "strings", "bytes"

_SCALARS = {
    "Bool": "?",
    "char": "S1",
    "int8_t": "i1",
    "uint8_t": "u1",
    "int16_t": "<i2",
    "uint16_t": "<u2",
    "int32_t": "<i4",
    "uint32_t": "<u4",
    "int64_t": "<i8",
    "uint64_t": "<u8",
    "float": "<f4",
    "double": "<f8",
}
_TUPLE = re.compile(r"(Point|Matrix)([234])D([fdi])")
_PIECE = re.compile(r"DataPiece(Value|Array|Vector|String|StringMap)(?:<(\w+)>)?")
_TUPLE_SCALARS = {"f": "<f4", "d": "<f8", "i": "<i4"}


@dataclass(frozen=True, slots=True)
class Layout:
    """The fields of a record.

    Parameters
    ----------
    fixed
        Packed type of the fixed-size fields, and of `SPANS` where there are variable ones.
    variable
        By name, in order of the spans: an element type, or ``string``, ``strings``, ``bytes``.
    """

    fixed: np.dtype[Any]
    variable: Mapping[str, np.dtype[Any] | str]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the fixed-size fields."""
        return tuple(name for name in self.fixed.names or () if name != SPANS)

    def span(self, rows: NDArray[np.void], name: str) -> tuple[NDArray[np.int64], ...]:
        """Return where a variable field lies in each record's body, and its length in bytes."""
        spans = rows[SPANS][:, list(self.variable).index(name)].astype(np.int64)
        return spans[:, 0] + self.fixed.itemsize, spans[:, 1]

    def size(self, rows: NDArray[np.void]) -> NDArray[np.int64]:
        """Return how many bytes of each record's body the layout takes."""
        fixed = np.full(len(rows), self.fixed.itemsize, np.int64)
        if not self.variable:
            return fixed
        ends: NDArray[np.int64] = rows[SPANS].astype(np.int64).sum(axis=2).max(axis=1)
        return fixed + ends


@functools.lru_cache(maxsize=256)
def parse_layout(text: str) -> Layout:
    """Read a layout from the JSON of a ``DL:...`` stream tag.

    Raises
    ------
    CorruptFileError
        The JSON is broken or names a type that VRS does not have.
    """
    try:
        pieces = json.loads(text)["data_layout"]
        fixed = [piece for piece in pieces if "offset" in piece]
        variable = sorted((p for p in pieces if "offset" not in p), key=lambda p: int(p["index"]))
        return Layout(
            _fixed_type(fixed, len(variable)),
            {piece["name"]: _variable_type(piece["type"]) for piece in variable},
        )
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptFileError(f"a record layout cannot be understood: {error}") from error


def _fixed_type(pieces: list[dict[str, Any]], variables: int) -> np.dtype[Any]:
    types = [_piece_type(piece) for piece in pieces]
    names = [str(piece["name"]) for piece in pieces]
    offsets = [int(piece["offset"]) for piece in pieces]
    end = max((o + t.itemsize for o, t in zip(offsets, types, strict=True)), default=0)
    if variables:
        names.append(SPANS)
        types.append(np.dtype(("<u4", (variables, 2))))
        offsets.append(end)
        end += types[-1].itemsize
    return np.dtype({"names": names, "formats": types, "offsets": offsets, "itemsize": end})


def _piece_type(piece: dict[str, Any]) -> np.dtype[Any]:
    container, element = _split_type(piece["type"])
    if container not in ("Value", "Array"):
        raise ValueError(f"'{piece['name']}' has an offset and the type {piece['type']}")
    scalar = _element_type(element)
    if "size" not in piece:
        return scalar
    return np.dtype((scalar.base, (int(piece["size"]), *scalar.shape)))


def _variable_type(text: str) -> np.dtype[Any] | str:
    container, element = _split_type(text)
    if container == "String":
        return STRING
    if container == "Vector":
        return STRINGS if element == "string" else _element_type(element)
    return BYTES


def _split_type(text: str) -> tuple[str, str]:
    match = _PIECE.fullmatch(text)
    if not match:
        raise ValueError(f"unknown type {text}")
    return match[1], match[2] or ""


def _element_type(name: str) -> np.dtype[Any]:
    if name in _SCALARS:
        return np.dtype(_SCALARS[name])
    match = _TUPLE.fullmatch(name)
    if not match:
        raise ValueError(f"unknown type {name}")
    n = int(match[2])
    return np.dtype((_TUPLE_SCALARS[match[3]], (n,) if match[1] == "Point" else (n, n)))


def split_strings(body: bytes) -> list[str]:
    """Return the strings of a ``vector<string>``: a count, then length and bytes of each."""
    if len(body) < 4:
        return []
    count, at, out = int.from_bytes(body[:4], "little"), 4, []
    for _ in range(count):
        length = int.from_bytes(body[at : at + 4], "little")
        out.append(body[at + 4 : at + 4 + length].decode("utf-8", "replace"))
        at += 4 + length
        if at > len(body):
            raise CorruptFileError("a list of strings is longer than its record")
    return out
