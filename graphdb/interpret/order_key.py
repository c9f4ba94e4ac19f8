"""Keys of values: bytes in openCypher's order of all values, equal where values are equivalent.

Each part of a key ends where its own bytes say, so that keys of lists are those of their items one after the other (as
the tuple encodings of FoundationDB and CockroachDB).  Numbers of different types are compared exactly.
"""

from __future__ import annotations

import struct
from decimal import Decimal
from fractions import Fraction
from typing import Any

from graphdb.common.values.entities import Edge, Path, Vertex
from graphdb.common.values.temporal import DateTime, Duration, Temporal
from graphdb.interpret.values import is_nan

_END = b"\x00"
_MAP, _VERTEX, _EDGE, _LIST, _PATH, _TEMPORAL = b"\x10\x12\x14\x18\x1c\x20"
_STRING, _BOOLEAN, _NUMBER, _NAN, _NULL = b"\x28\x30\x38\x40\x48"
_SCALE = 10**18
"""Decimals have at most 18 digits after the point."""


def order_key(value: Any) -> bytes:
    """Return the key of a value, of which literals are no vertices."""
    found = bytearray()
    _append(found, value)
    return bytes(found)


def _append(key: bytearray, value: Any) -> None:
    if value is None:
        key.append(_NULL)
    elif isinstance(value, bool):
        key += bytes((_BOOLEAN, value))
    elif isinstance(value, str):
        key.append(_STRING)
        _text(key, value)
    elif is_nan(value):
        key.append(_NAN)
    elif isinstance(value, (int, float, Decimal)):
        key.append(_NUMBER)
        _number(key, value)
    elif isinstance(value, list):
        key.append(_LIST)
        for item in value:
            _append(key, item)
        key += _END
    elif isinstance(value, dict):
        key.append(_MAP)
        for name in sorted(value):
            key.append(_STRING)
            _text(key, name)
            _append(key, value[name])
        key += _END
    elif isinstance(value, Temporal):
        key.append(_TEMPORAL)
        _text(key, type(value).__name__)
        # Points in time are equal whatever their zones.
        parts = (value.instant,) if isinstance(value, DateTime) else value.sort_key()
        if isinstance(value, Duration):  # what does not order durations, and tells them apart
            parts += (value.months, value.days)
        for part in parts:
            key += (part + (1 << 127)).to_bytes(16, "big")
    elif isinstance(value, Vertex):
        key.append(_VERTEX)
        key += value.id.to_bytes(8, "big")
    elif isinstance(value, Edge):
        key.append(_EDGE)
        for part in (value.label, value.start, value.end, value.ordinal):
            key += part.to_bytes(8, "big")
    else:
        assert isinstance(value, Path), type(value)
        key.append(_PATH)
        for element in (*value.vertices, *value.edges):
            _append(key, element)
        key += _END


def _text(key: bytearray, text: str) -> None:
    key += text.encode().replace(b"\x00", b"\x00\xff") + _END + _END


def _number(key: bytearray, value: int | float | Decimal) -> None:
    """Append the nearest float, and by how much the number is more than that one, or its shortest text."""
    near = float(value) + 0.0  # no negative zero
    (bits,) = struct.unpack(">q", struct.pack(">d", near))
    key += ((bits if bits >= 0 else bits ^ 0x7FFF_FFFF_FFFF_FFFF) + (1 << 63)).to_bytes(8, "big")
    rest = 0
    if isinstance(value, int):
        rest = (value - int(near)) * _SCALE
    elif isinstance(value, Decimal):
        shortest = Fraction(repr(near)) if abs(near) < 1 << 53 else Fraction(near)
        rest = int((Fraction(value) - shortest) * _SCALE)
    key += (rest + (1 << 127)).to_bytes(16, "big")
