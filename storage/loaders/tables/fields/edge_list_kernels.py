"""Edge lists whose vertices are integers, read as machine code."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.compile.kernels import entry, kernel

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]

DIGITS = 18
"""Digits that an integer may have to be within 64 bits, whichever they are."""

_TAB, _LINE, _RETURN, _SPACE, _HASH, _PERCENT, _COMMA, _MINUS = 9, 10, 13, 32, 35, 37, 44, 45
_LAST = 127
"""The last byte that is a character by itself; whether others are UTF-8 is not looked at."""


@kernel
def _is_end(text: Bytes, at: int) -> bool:
    """Whether the text, or a line of it, ends here."""
    if at == len(text) or text[at] == _LINE:
        return True
    return text[at] == _RETURN and (at + 1 == len(text) or text[at + 1] == _LINE)


@kernel
def _behind(text: Bytes, at: int) -> int:
    """Return where the next line begins, where one ends here."""
    size = len(text)
    at += at < size and text[at] == _RETURN
    return at + (at < size)


@kernel
def _blanks(text: Bytes, at: int, comma: int) -> int:
    """Return where the blanks end that begin here; ``comma`` is the byte that is taken for one, too."""
    while at < len(text) and (text[at] == _SPACE or text[at] == _TAB or text[at] == comma):
        at += 1
    return at


@kernel
def _integer(text: Bytes, at: int) -> int:
    """Return where an integer in its shortest form ends that begins here; -1 where none does."""
    size, begin = len(text), at
    at += at < size and text[at] == _MINUS
    first = at
    while at < size and 48 <= text[at] <= 57:
        at += 1
    count = at - first
    if count == 0 or count > DIGITS or (text[first] == 48 and at - begin > 1):
        return -1
    return at


@kernel
def _value(text: Bytes, at: int, end: int) -> int:
    """Return the integer that stands here."""
    negative = text[at] == _MINUS
    value = 0
    for place in range(at + negative, end):
        value = 10 * value + int(text[place]) - 48
    return -value if negative else value


@entry("u1[:], i8, i8, i8[:, :], i8[:] -> i8")
def pairs(text: Bytes, at: int, stop: int, found: Ints, count: Ints) -> int:
    """Write the pairs of integers that begin before ``stop``, each on a line of its own; return where the next begins.

    It is -1 where a line has anything else.  Empty lines, and those that begin with ``#`` or ``%``, are passed over.

    Parameters
    ----------
    found : int64[n, 2]
        Receives the pairs: there is room for one in four bytes.
    count : int64[1]
        Receives how many there are.
    """
    size, rows = len(text), 0
    while at < stop:
        at = _blanks(text, at, _SPACE)
        if _is_end(text, at):
            at = _behind(text, at)
            continue
        if text[at] == _HASH or text[at] == _PERCENT:
            while at < size and text[at] != _LINE:
                if text[at] > _LAST or text[at] == 0 or (text[at] == _RETURN and not _is_end(text, at)):
                    return -1
                at += 1
            at = _behind(text, at)
            continue
        middle = _integer(text, at)
        if middle < 0:
            return -1
        begin = _blanks(text, middle, _COMMA)
        if begin == middle:
            return -1
        end = _integer(text, begin)
        if end < 0:
            return -1
        found[rows, 0], found[rows, 1] = _value(text, at, middle), _value(text, begin, end)
        rows += 1
        at = _blanks(text, end, _SPACE)
        if not _is_end(text, at):
            return -1
        at = _behind(text, at)
    count[0] = rows
    return at
