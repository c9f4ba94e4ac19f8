"""Keys of values: bytes in openCypher's order of all values, equal where values are equivalent.

Each part of a key ends where its own bytes say, so that keys of lists are those of their items one after the other (as
the tuple encodings of FoundationDB and CockroachDB).  Numbers of different types are compared exactly.  The key of one
value alone is followed by which of the equivalent values it is, in a fixed number of bytes.
"""

from __future__ import annotations

import math
import struct
from decimal import Decimal
from fractions import Fraction
from hashlib import blake2b
from typing import Any

from graphdb.common.stopping import checked
from graphdb.common.values.entities import Edge, Path, Vertex
from graphdb.common.values.temporal import DateTime, Duration, Temporal
from graphdb.evaluate.values import is_nan
from graphdb.sql.computing import VARIANT

_END = b"\x00"
_MAP, _VERTEX, _EDGE, _LIST, _PATH, _TEMPORAL = b"\x10\x12\x14\x18\x1c\x20"
_STRING, _BOOLEAN, _NUMBER, _NAN, _NULL = b"\x28\x30\x38\x40\x48"
_SCALE = 10**18
"""Decimals have at most 18 digits after the point."""


def order_key(value: Any) -> bytes:
    """Return the key that a value has in common with all that are equivalent to it."""
    return value_key(value)[:-VARIANT]


def value_key(value: Any) -> bytes:
    """Return the key of a value: its :func:`order_key`, and which of the equivalent values it is.

    The last :data:`~graphdb.sql.computing.VARIANT` bytes are zeros for integers, for maps whose keys are sorted and for
    points in time in UTC, and for what is made of these.  They distinguish 1.0 from 1, and -0.0 from 0.0.  A value may
    have many parts: its key stops where the statement does.
    """
    key, variant = bytearray(), bytearray()
    _append(key, variant, value)
    if len(variant) > VARIANT:
        variant = bytearray(blake2b(variant, digest_size=VARIANT).digest() if any(variant) else VARIANT)
    return bytes(key + variant.ljust(VARIANT, _END))


def _append(key: bytearray, variant: bytearray, value: Any) -> None:
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
        variant.append(_number_variant(value))
    elif isinstance(value, list):
        key.append(_LIST)
        for item in checked(value):
            _append(key, variant, item)
        key += _END
    elif isinstance(value, dict):
        key.append(_MAP)
        names = sorted(value)
        for name in checked(names):
            key.append(_STRING)
            _text(key, name)
            _append(key, variant, value[name])
        key += _END
        if list(value) != names:
            variant += repr(list(value)).encode()
        variant += _END
    elif isinstance(value, Temporal):
        key.append(_TEMPORAL)
        _text(key, type(value).__name__)
        # Points in time are equal whatever their zones.
        parts = (value.instant,) if isinstance(value, DateTime) else value.sort_key()
        if isinstance(value, Duration):  # what does not order durations, and tells them apart
            parts += (value.months, value.days)
        for part in parts:
            key += (part + (1 << 127)).to_bytes(16, "big")
        if isinstance(value, DateTime):
            if value.offset or value.zone is not None:
                variant += f"{value.offset} {value.zone or ''}".encode()
            variant += _END
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
            _append(key, variant, element)
        key += _END


def _text(key: bytearray, text: str) -> None:
    key += text.encode().replace(b"\x00", b"\x00\xff") + _END + _END


def _number_variant(value: int | float | Decimal) -> int:
    """Return which of the numbers that are equal one is; a float that is whole comes after the integer."""
    if isinstance(value, float):
        return 0 if not value.is_integer() else 2 if value or math.copysign(1, value) > 0 else 3
    return int(isinstance(value, Decimal))


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
