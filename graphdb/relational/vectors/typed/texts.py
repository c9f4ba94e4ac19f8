"""Functions of texts as columns: their parts between separators, the numbers that they say, their letters and pieces;

Bytes of all texts are looked at together.  What is not plain is SQL's: letters beyond ASCII where places or cases
matter, and numbers that are written otherwise than as digits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.stopping import check_stop
from graphdb.functions.texts import MOST_PARTS
from graphdb.relational.vectors.numbers import both, numeric, ordinal, require
from graphdb.relational.vectors.typed.temporal import part_of_days
from graphdb.storage.arrays.arrow import string_bytes, string_places
from graphdb.storage.arrays.texts import end_of_some, numbered_texts, taken

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]

_DIGITS = 18
"""Digits of integers that are sure to fit."""

_BEHIND = 0xFF
"""A byte that no text has: it stands between texts."""

_SPAN = 1 << 22
"""Days from the first to the last of dates that are written as texts, at most."""

_LONG = 1 << 28
"""Bytes of texts that are joined, at most."""


_AT_ONCE = 1 << 24
"""Bytes of texts that a function gets at a time: a tenth of a second at most, after which the statement may stop."""


def of_texts(function: str, array: arrow.Array, constants: Sequence[object] = ()) -> arrow.Array:
    """Return what one of :data:`TEXTS` makes of the values of a column; long texts are handed to it some at a time."""
    check_stop()
    made = TEXTS[function]
    if not arrow.is_string(array.type) or len(string_bytes(array)) <= _AT_ONCE:
        return made(array, *constants)
    _, offsets = string_places(array)
    parts, at = [], 0
    while at < len(array):
        check_stop()
        end = end_of_some(offsets, at, _AT_ONCE)
        parts.append(made(array.slice(at, end - at), *constants))
        at = end
    return arrow.concat_arrays(parts)


def _cut(array: arrow.Array, begins: Ints, ends: Ints, valid: NDArray[np.bool_] | None) -> arrow.Array:
    """Return pieces of the texts of an array, by where they begin and end among its bytes."""
    from graphdb.storage.arrays import text_kernels as kernels

    data, _ = string_places(array)
    places = np.stack((begins, ends), axis=1).reshape(-1)
    at = np.arange(0, 2 * len(begins), 2)
    if valid is not None:
        at[~valid] = -1
    offsets = np.empty(len(begins) + 1, np.int64)
    kernels.measure(places, at, offsets)
    out = np.empty(int(offsets[-1]), np.uint8)
    kernels.gather(data, places, at, offsets, out)
    return arrow.text_array(out, offsets, valid)


def _found(data: Bytes, begins: Ints, ends: Ints, text: bytes) -> tuple[Ints, Ints, Ints]:
    """Return where a text stands among bytes, and which of these places lie within each text: from, and up to."""
    if not len(begins):
        return begins, begins, begins
    first, last = int(begins[0]), int(ends[-1])
    size = max(last - first - len(text) + 1, 0)
    same = data[first : first + size] == text[0]
    for at, byte in enumerate(text[1:], 1):
        same &= data[first + at : first + at + size] == byte
    places = np.flatnonzero(same) + first
    low = np.searchsorted(places, begins)
    return places, low, np.maximum(np.searchsorted(places, ends - len(text), "right"), low)


def parts_of_texts(array: arrow.Array, separator: str) -> tuple[arrow.Array, Ints]:
    """Return all parts of texts that separators are between, and how many each text has; null has none."""
    text = separator.encode()
    require(_has_no_borders(text))
    data, offsets = string_places(array)
    begins, ends = offsets[:-1], offsets[1:]
    places, low, high = _found(data, begins, ends, text)
    before = high - low
    sizes = before + 1 if array.valid is None else np.where(array.valid, before + 1, 0)
    before = before if array.valid is None else np.where(array.valid, before, 0)
    require(not len(sizes) or int(sizes.max()) < MOST_PARTS)
    firsts, there = np.cumsum(sizes) - sizes, np.flatnonzero(sizes)
    between = places[np.repeat(low - (np.cumsum(before) - before), before) + np.arange(int(before.sum()))]
    first, last = np.zeros((2, int(sizes.sum())), bool)
    first[firsts[there]] = last[firsts[there] + sizes[there] - 1] = True
    starts, stops = np.empty((2, len(first)), np.int64)
    starts[first], starts[~first] = begins[there], between + len(text)
    stops[last], stops[~last] = ends[there], between
    return _cut(array, starts, stops, None), sizes


def _has_no_borders(text: bytes) -> bool:
    """Whether places where a text stands cannot overlap."""
    return bool(text) and not any(text.startswith(text[at:]) for at in range(1, len(text)))


def _part(array: arrow.Array, separator: str, number: int) -> arrow.Array:
    """Return the part of such a number, from 0, or from -1 back, of those that a text separates; null without one."""
    text = separator.encode()
    require(_has_no_borders(text))
    data, offsets = string_places(array)
    begins, ends = offsets[:-1], offsets[1:]
    require(not len(begins) or int((ends - begins).max()) < MOST_PARTS)
    places, low, high = _found(data, begins, ends, text)
    before = high - low
    which = np.full(len(begins), number) if number >= 0 else before + 1 + number
    there = (which >= 0) & (which <= before)
    if array.valid is not None:
        there &= array.valid
    starts = _at(places, low + which - 1, there & (which > 0), len(text), begins)
    stops = _at(places, low + which, there & (which < before), 0, ends)
    return _cut(array, starts, stops, None if there.all() else there)


def _at(places: Ints, which: Ints, some: NDArray[np.bool_], behind: int, otherwise: Ints) -> Ints:
    """Return some places, so many bytes on; elsewhere something else."""
    found = otherwise.copy()
    found[some] = places[which[some]] + behind
    return found


def _integers(array: arrow.Array) -> arrow.Array:
    """Return the integers that texts are; null of those without a digit, which say none in any form."""
    data, offsets = string_places(array)
    begins, sizes = offsets[:-1], np.diff(offsets)
    if array.valid is not None:
        sizes = np.where(array.valid, sizes, 0)
    found, plain = np.zeros(len(sizes), np.int64), sizes > 0
    some = np.flatnonzero(plain)
    signs = data[begins[some]]
    signed = np.zeros(len(sizes), bool)
    signed[some] = (signs == ord("-")) | (signs == ord("+"))
    starts, sizes = begins + signed, sizes - signed
    plain &= (sizes > 0) & (sizes <= _DIGITS)
    for at in range(min(int(sizes.max(initial=0)), _DIGITS)):
        some = np.flatnonzero(plain & (sizes > at))
        digit = data[starts[some] + at] - np.uint8(ord("0"))
        right = digit <= 9
        found[some] = found[some] * 10 + digit
        plain[some] = right
    others = np.flatnonzero(~plain)
    if len(others):
        text = _cut(array, begins[others], offsets[1:][others], None if array.valid is None else array.valid[others])
        require(not ((text.data >= ord("0")) & (text.data <= ord("9"))).any() if text.data is not None else True)
    minus = np.zeros(len(sizes), bool)
    minus[signed] = data[begins[signed]] == ord("-")
    return arrow.numbers(np.where(minus, -found, found), None if plain.all() else plain)


def _characters(array: arrow.Array) -> arrow.Array:
    """Return how many characters texts have."""
    data, offsets = string_places(array)
    if not len(array):
        return arrow.numbers(np.zeros(0, np.int64))
    some = data[offsets[0] : offsets[-1]]
    sizes = np.diff(offsets)
    if not _is_ascii(some):
        further = np.append(0, np.cumsum((some & 0xC0) == 0x80))
        sizes = sizes - np.diff(further[offsets - offsets[0]])
    return arrow.numbers(sizes, array.valid)


def _is_ascii(data: Bytes) -> bool:
    return not len(data) or int(data.max()) < 0x80


def _plain_places(array: arrow.Array) -> tuple[Ints, Ints]:
    """Return where texts begin and end whose characters are bytes."""
    data, offsets = string_places(array)
    require(_is_ascii(data[offsets[0] : offsets[-1]]))
    return offsets[:-1], offsets[1:]


def _substring(array: arrow.Array, start: int, length: int | None = None) -> arrow.Array:
    begins, ends = _plain_places(array)
    starts = np.minimum(begins + start, ends)
    return _cut(array, starts, ends if length is None else np.minimum(starts + length, ends), array.valid)


def _left(array: arrow.Array, length: int) -> arrow.Array:
    return _substring(array, 0, length)


def _right(array: arrow.Array, length: int) -> arrow.Array:
    begins, ends = _plain_places(array)
    return _cut(array, np.maximum(ends - length, begins), ends, array.valid)


def _case(first: str) -> Callable[[arrow.Array], arrow.Array]:
    """Change letters of one case, from ``first`` on, to the other."""

    def made(array: arrow.Array) -> arrow.Array:
        _plain_places(array)
        data, offsets = string_places(array)
        some = data[offsets[0] : offsets[-1]]
        changed = np.where(some - np.uint8(ord(first)) < 26, some ^ np.uint8(0x20), some)
        return arrow.text_array(changed, offsets - offsets[0], array.valid)

    return made


def _replaced(array: arrow.Array, old: str, new: str) -> arrow.Array:
    """Replace a text by another in all texts, which are looked through as one."""
    from graphdb.storage.arrays import text_kernels as kernels

    data, offsets = string_places(array)
    count, (first, last) = len(array), offsets[[0, -1]].tolist()
    whole = np.empty(last - first + count, np.uint8)
    at = np.arange(count)
    kernels.put(data, offsets, at, offsets[:-1] - first + at, whole, _BEHIND)
    found = np.frombuffer(whole.tobytes().replace(old.encode(), new.encode()), np.uint8)
    ends = np.flatnonzero(found == _BEHIND)
    return arrow.text_array(found[found != _BEHIND], np.append(0, ends - np.arange(count)), array.valid)


def _equals(array: arrow.Array, text: str) -> arrow.Array:
    """Return whether texts are one."""
    data, offsets = string_places(array)
    whole = text.encode()
    same = np.diff(offsets) == len(whole)
    some = np.flatnonzero(same)
    for at, byte in enumerate(whole):
        some = some[data[offsets[some] + at] == byte]
    same[:] = False
    same[some] = True
    return arrow.numbers(same, array.valid)


def _beside(*, begins: bool) -> Callable[[arrow.Array, str], arrow.Array]:
    """Whether texts begin, or end, with one."""

    def made(array: arrow.Array, text: str) -> arrow.Array:
        data, offsets = string_places(array)
        whole = text.encode()
        same = np.diff(offsets) >= len(whole)
        some = np.flatnonzero(same)
        first = offsets[:-1] if begins else offsets[1:] - len(whole)
        for at, byte in enumerate(whole):
            some = some[data[first[some] + at] == byte]
        same[:] = False
        same[some] = True
        return arrow.numbers(same, array.valid)

    return made


def _contains(array: arrow.Array, text: str) -> arrow.Array:
    data, offsets = string_places(array)
    _, low, high = _found(data, offsets[:-1], offsets[1:], text.encode())
    return arrow.numbers(low < high, array.valid)


def _reversed(array: arrow.Array) -> arrow.Array:
    begins, ends = _plain_places(array)
    data, offsets = string_places(array)
    at = np.repeat(begins + ends - 1, ends - begins) - np.arange(offsets[0], offsets[-1])
    return arrow.text_array(data[at], offsets - offsets[0], array.valid)


def same_texts(operands: list[arrow.Array]) -> arrow.Array:
    """Return whether texts of two columns are the same."""
    left, right = (operand.decoded() for operand in operands)
    require(left.type == right.type)
    numbers = numbered_texts(arrow.concat_arrays([left, right]))[1]
    return arrow.numbers(numbers[: len(left)] == numbers[len(left) :], both(left, right))


def _written(array: arrow.Array) -> arrow.Array:
    """Return integers, or dates of four-digit years, as texts."""
    return _written_dates(array) if arrow.is_date(array.type) else _written_integers(array)


def _written_integers(array: arrow.Array) -> arrow.Array:
    data = numeric(array)
    left, minus = np.abs(data).view(np.uint64), data < 0  # the least integer, too
    sizes = np.maximum(np.searchsorted(_POWERS, left, "right"), 1) + minus
    offsets = np.append(0, np.cumsum(sizes))
    out = np.full(int(offsets[-1]), ord("-"), np.uint8)
    ends, rows = offsets[1:] - 1, np.arange(0)
    for number in range(int(sizes.max(initial=0))):
        if number:
            rows = np.flatnonzero(left) if number == 1 else rows[left[rows] > 0]
            if not len(rows):
                break
        quotients = left // np.uint64(10) if not number else left[rows] // np.uint64(10)
        digits = ((left if not number else left[rows]) - quotients * np.uint64(10)).astype(np.uint8) + ord("0")
        if number:
            out[ends[rows] - number], left[rows] = digits, quotients
        else:
            out[ends], left = digits, quotients
    return arrow.text_array(out, offsets, array.valid)


_POWERS = np.array([10**digits for digits in range(20)], np.uint64)


def _written_dates(array: arrow.Array) -> arrow.Array:
    days = ordinal(array) if array.valid is None else np.where(array.valid, ordinal(array), 0)
    if not len(days):
        return arrow.strings([])
    first, last = int(days.min()), int(days.max())
    out = np.empty((len(days), 10), np.uint8)
    for at, part, digits in ((0, "year", 4), (5, "month", 2), (8, "day", 2)):
        numbers = part_of_days(part, first, last)[days - first] if last - first < _SPAN else None
        require(numbers is not None)
        assert numbers is not None
        for digit in range(digits):
            out[:, at + digit] = numbers // 10 ** (digits - 1 - digit) % 10 + ord("0")
    out[:, [4, 7]] = ord("-")
    return arrow.text_array(out.reshape(-1), 10 * np.arange(len(days) + 1), array.valid)


def _trimmed(*, left: bool, right: bool) -> Callable[[arrow.Array], arrow.Array]:
    """Take away blanks."""

    def made(array: arrow.Array) -> arrow.Array:
        data, offsets = string_places(array)
        begins, ends = offsets[:-1].copy(), offsets[1:].copy()
        for places, step, trims in ((begins, 1, left), (ends, -1, right)):
            rows = np.flatnonzero(begins < ends) if trims else np.empty(0, np.int64)
            while len(rows):
                rows = rows[_BLANK[data[places[rows] - (step < 0)]]]
                places[rows] += step
                rows = rows[begins[rows] < ends[rows]]
        same = np.array_equal(begins, offsets[:-1]) and np.array_equal(ends, offsets[1:])
        return array if same else _cut(array, begins, ends, array.valid)

    return made


_BLANK = np.isin(np.arange(256), np.frombuffer(b" \t\n\r\f", np.uint8))
"""Which bytes are blanks."""


def joined(operands: list[arrow.Array], count: int) -> arrow.Array:
    """Return texts one behind the other, row for row; one of a single row is the same for all ``count`` rows."""
    operands = [operand.decoded() for operand in operands]
    require(len({operand.type for operand in operands}) == 1)
    starts = np.cumsum([0, *map(len, operands)])
    at = np.empty((count, len(operands)), np.int64)
    for number, operand in enumerate(operands):
        at[:, number] = starts[number] if len(operand) == 1 else np.arange(starts[number], starts[number + 1])
    sizes = [len(string_bytes(each)) * (count if len(each) == 1 else 1) for each in operands]
    require(sum(sizes) < _LONG)
    parts = taken(arrow.concat_arrays(operands), at.reshape(-1))
    assert parts.data is not None
    assert parts.offsets is not None
    valid = both(*(operand for operand in operands if len(operand) == count))
    return arrow.text_array(parts.data, np.ascontiguousarray(parts.offsets[:: len(operands)]), valid)


TEXTS: Mapping[str, Callable[..., arrow.Array]] = {
    "part": _part,
    "toInteger": _integers,
    "toString": _written,
    "size": _characters,
    "substring": _substring,
    "left": _left,
    "right": _right,
    "toUpper": _case("a"),
    "toLower": _case("A"),
    "replace": _replaced,
    "trim": _trimmed(left=True, right=True),
    "ltrim": _trimmed(left=True, right=False),
    "rtrim": _trimmed(left=False, right=True),
    "equals": _equals,
    "starts": _beside(begins=True),
    "ends": _beside(begins=False),
    "contains": _contains,
    "reverse": _reversed,
}
"""Functions by the names of operators, of a column and what else an operation is told; see
:class:`graphdb.relational.vectors.algebra.Operation`."""
