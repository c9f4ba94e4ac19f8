"""Whether all that a delimited text consists of are whole numbers, as machine code."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.compile.kernels import entry

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]

_ZERO, _NINE, _MINUS, _LINE, _RETURN = np.uint8(48), np.uint8(57), np.uint8(45), np.uint8(10), np.uint8(13)

DIGITS = 18
"""Digits that a number may have to be within 64 bits, whichever they are."""


@entry("u1[:], i8 -> b1")
def only_digits(text: Bytes, delimiter: int) -> bool:
    """Whether some bytes are but digits, minus signs, delimiters and line ends: one pass that uses vectors."""
    others = 0
    for byte in text:
        digit = (byte >= _ZERO) & (byte <= _NINE)
        others += not (digit | (byte == delimiter) | (byte == _LINE) | (byte == _RETURN) | (byte == _MINUS))
    return others == 0


@entry("u1[:], i8, i8[:] -> b1")
def canonical(text: Bytes, delimiter: int, carried: Ints) -> bool:
    """Whether all fields of some bytes that :func:`only_digits` are numbers in their shortest form, or empty.

    ``carried`` (int64[3]) is what the field that goes on has so far: digits, whether the first is a zero, and whether a
    minus comes before; 0 at first.  A number has :data:`DIGITS` at most.
    """
    digits, zero, minus = carried[0], carried[1], carried[2]
    for byte in text:
        if byte >= _ZERO and byte <= _NINE and byte != delimiter:
            zero = zero if digits else np.int64(byte == _ZERO)
            digits += 1
            if digits > DIGITS or (zero and (minus or digits > 1)):
                return False
        elif byte == _MINUS and byte != delimiter:
            if minus or digits:
                return False
            minus = np.int64(1)
        else:
            if minus and not digits:
                return False
            digits, zero, minus = np.int64(0), np.int64(0), np.int64(0)
    carried[0], carried[1], carried[2] = digits, zero, minus
    return True
