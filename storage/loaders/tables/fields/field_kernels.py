"""What the fields of a delimited text show, column by column, as machine code: one pass over the bytes of a file.

DuckDB reads a column as numbers, dates or times at once where it is known that each of its fields is one, as it is
written; otherwise it reads texts, of which SQL has to ask the same.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.compile.kernels import entry, kernel

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]

INTEGER, LOOSE, DOUBLE, BOOLEAN, DATE, MOMENT, ZONED, UNSURE, TEXT = (1 << bit for bit in range(9))
"""What a field may show: an integer in its shortest form, or with a plus sign or leading zeros, of :data:`DIGITS` at
most; a number with a point or an exponent; ``true`` or ``false``; a date; a date and time, without or with its zone;
what may be one of these or another (SQL has to be asked); and none of them."""

DIGITS = 18
"""Digits that an integer may have to be within 64 bits, whichever they are."""

_LINE, _RETURN, _PLUS, _MINUS, _POINT, _COLON, _SPACE = 10, 13, 43, 45, 46, 58, 32
_A, _T, _Z, _E, _F, _I, _N = 65, 84, 90, 69, 70, 73, 78
_SMALL = 32
"""The bit that a small letter has and a capital has not."""


@kernel
def _digits(text: Bytes, at: int, end: int) -> int:
    """Return where the digits end that begin here."""
    while at < end and 48 <= text[at] <= 57:
        at += 1
    return at


@kernel
def _two(text: Bytes, at: int) -> int:
    """Return the number of two digits, -1 where these are none."""
    high, low = np.int64(text[at]) - 48, np.int64(text[at + 1]) - 48
    return int(10 * high + low) if 0 <= high <= 9 and 0 <= low <= 9 else -1


@kernel
def _is_word(text: Bytes, at: int, end: int, first: int, second: int, third: int, fourth: int, fifth: int) -> bool:
    """Whether a word, in whatever case, stands here; its fifth letter is 0 where it has four."""
    if end - at != (5 if fifth else 4):
        return False
    same = (text[at] & ~_SMALL) == first and (text[at + 1] & ~_SMALL) == second
    same = same and (text[at + 2] & ~_SMALL) == third and (text[at + 3] & ~_SMALL) == fourth
    return same and (not fifth or (text[at + 4] & ~_SMALL) == fifth)


@kernel
def _date_or_time(text: Bytes, at: int, end: int) -> int:
    """What a field shows that begins with four digits and a minus."""
    size = end - at
    if size < 10 or text[at + 7] != _MINUS:
        return TEXT
    year = 100 * _two(text, at) + _two(text, at + 2)
    month, day = _two(text, at + 5), _two(text, at + 8)
    if month < 0 or day < 0:
        return TEXT
    days = 30 + (month + month // 8) % 2
    if month == 2:
        days = 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    valid = year > 0 and 1 <= month <= 12 and 1 <= day <= days
    if size == 10:
        return DATE if valid else UNSURE
    if size < 19 or (text[at + 10] != _T and text[at + 10] != _SPACE):
        return TEXT
    hours, minutes, seconds = _two(text, at + 11), _two(text, at + 14), _two(text, at + 17)
    if text[at + 13] != _COLON or text[at + 16] != _COLON or min(hours, minutes, seconds) < 0:
        return TEXT
    valid = valid and hours < 24 and minutes < 60 and seconds < 60
    at += 19
    if at < end and text[at] == _POINT:
        behind = _digits(text, at + 1, end)
        if not 1 <= behind - at - 1 <= 6:
            return TEXT
        at = behind
    if at == end:
        return MOMENT if valid else UNSURE
    if text[at] == _Z and at + 1 == end:
        return ZONED if valid else UNSURE
    if (text[at] != _PLUS and text[at] != _MINUS) or end - at < 3:
        return TEXT
    hours = _two(text, at + 1)
    at += 3
    if hours < 0:
        return TEXT
    if at < end:
        at += text[at] == _COLON
        if end - at != 2:
            return TEXT
        minutes = _two(text, at)
        if minutes < 0:
            return TEXT
        valid = valid and minutes < 60
    return ZONED if valid and hours < 15 else UNSURE


@kernel
def _with_point(text: Bytes, begin: int, at: int, end: int) -> int:
    """What a field shows whose digits from ``begin`` to ``at`` have a point or an exponent behind them."""
    whole, part, power = at - begin, 0, 0
    if text[at] == _POINT:
        behind = _digits(text, at + 1, end)
        part = behind - at - 1
        at = behind
    if at < end and (text[at] & ~_SMALL) == _E:
        at += 1
        if at < end and (text[at] == _PLUS or text[at] == _MINUS):
            at += 1
        behind = _digits(text, at, end)
        power = behind - at
        if not power:
            return TEXT
        at = behind
    if at < end or whole + part == 0:
        return TEXT
    if whole > 1 and text[begin] == 48:
        return UNSURE
    return DOUBLE if part or power else UNSURE


@kernel
def _shown(text: Bytes, at: int, end: int) -> int:
    """What a field shows that is not empty."""
    first = text[at]
    letter = first & ~_SMALL
    if letter in (_T, _F):
        true = _is_word(text, at, end, 84, 82, 85, 69, 0) or _is_word(text, at, end, 70, 65, 76, 83, 69)
        return BOOLEAN if true else TEXT
    if letter in (_I, _N):  # inf, infinity, nan
        second = text[at + 1] & ~_SMALL if end - at > 2 else 0
        return UNSURE if (second == _A and end - at == 3) or (second == _N and end - at in (3, 8)) else TEXT
    signed = first in (_PLUS, _MINUS)
    begin = at + signed
    at = _digits(text, begin, end)
    count = at - begin
    if at == end:
        if count == 0:
            return TEXT
        if count > DIGITS:
            return UNSURE
        zero = text[begin] == 48
        return LOOSE if first == _PLUS or (zero and (signed or count > 1)) else INTEGER
    after = text[at]
    if after == _POINT or (after & ~_SMALL) == _E:
        return _with_point(text, begin, at, end)
    if not signed and count == 4 and after == _MINUS:
        return _date_or_time(text, begin, end)
    if count == 2 and after == _COLON:
        return UNSURE
    return UNSURE if signed and count == 0 and (after & ~_SMALL) == _I else TEXT


@kernel
def _is_null(text: Bytes, at: int, end: int, null: Bytes) -> bool:
    """Whether a field is the text of a missing value."""
    if end - at != len(null):
        return False
    same = True
    for place in range(len(null)):
        same = same and text[at + place] == null[place]
    return same


@entry("u1[:], i8, i8, i8, i8, u1[:], i8[:] -> i8")
def look(text: Bytes, at: int, stop: int, delimiter: int, quote: int, null: Bytes, seen: Ints) -> int:
    """Add what the fields of the rows show that begin before ``stop`` to ``seen`` (int64[columns + 1]), and to its last
    number how many rows these are; return where the next row begins.

    It is -1 where a row has more or fewer fields than there are columns, or is written in another way than RFC 4180 has
    it.  Fields are not looked at any more in columns that have :data:`TEXT`.  ``quote`` is -1 where texts
    are in none.  Empty lines are passed over.
    """
    size, columns = len(text), len(seen) - 1
    while at < stop:
        if text[at] == _LINE:
            at += 1
            continue
        if text[at] == _RETURN and at + 1 < size and text[at + 1] == _LINE:
            at += 2
            continue
        column = 0
        while True:
            if column == columns:
                return -1
            begin, doubled = at, False
            if at < size and text[at] == quote:
                begin = at = at + 1
                while True:
                    while at < size and text[at] != quote:
                        at += 1
                    if at == size:
                        return -1
                    if at + 1 < size and text[at + 1] == quote:
                        doubled = True
                        at += 2
                        continue
                    break
                end = at
                at += 1
            else:
                while at < size and text[at] != delimiter and text[at] != _LINE and text[at] != _RETURN:
                    at += 1
                end = at
            if not seen[column] & TEXT and not _is_null(text, begin, end, null):
                seen[column] |= TEXT if doubled or begin == end else _shown(text, begin, end)
            column += 1
            if at == size:
                break
            if text[at] == delimiter:
                at += 1
                continue
            if text[at] == _RETURN:
                at += 1
                if at == size or text[at] != _LINE:
                    return -1
            if text[at] != _LINE:
                return -1
            at += 1
            break
        if column != columns:
            return -1
        seen[columns] += 1
    return at
