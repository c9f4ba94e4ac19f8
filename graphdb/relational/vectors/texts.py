"""Functions of texts as columns: their parts between separators, the numbers that they say, their letters and pieces;
and of lists: how many items they have, one of these, and some that follow each other.

Bytes of all texts are looked at together.  What is not plain is SQL's: letters beyond ASCII where places or cases
matter, and numbers that are written otherwise than as digits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.functions.texts import MOST_PARTS
from graphdb.relational.vectors.numbers import both, numeric, require
from graphdb.storage.arrays.arrow import string_places
from graphdb.storage.arrays.texts import number_integers, numbered_texts, taken

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]

_DIGITS = 18
"""Digits of integers that are sure to fit."""

_BEHIND = 0xFF
"""A byte that no text has: it stands between texts."""

_WRITTEN = 4096
"""Different integers that are written as texts, at most."""


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


def _part(array: arrow.Array, separator: str, number: int) -> arrow.Array:
    """Return the part of such a number, from 0, or from -1 back, of those that a text separates; null without one."""
    text = separator.encode()
    borders = any(text.startswith(text[at:]) for at in range(1, len(text)))
    require(bool(text) and not borders)  # else places overlap
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


def same_texts(operands: list[arrow.Array]) -> arrow.Array:
    """Return whether texts of two columns are the same."""
    left, right = (operand.decoded() for operand in operands)
    require(left.type == right.type)
    numbers = numbered_texts(arrow.concat_arrays([left, right]))[1]
    return arrow.numbers(numbers[: len(left)] == numbers[len(left) :], both(left, right))


def _written(array: arrow.Array) -> arrow.Array:
    """Return integers as texts."""
    different, which = number_integers(numeric(array))
    require(len(different) <= _WRITTEN)
    found = taken(arrow.strings(map(str, different.tolist())), which)
    return found if array.valid is None else arrow.Array(found.type, len(found), array.valid, found.data, found.offsets)


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
    "equals": _equals,
}
"""Functions by the names of operators, of a column and what else an operation is told; see
:class:`graphdb.relational.vectors.algebra.Operation`."""


# --- lists


def _sizes(array: arrow.Array) -> arrow.Array:
    return arrow.numbers(array.lengths().astype(np.int64), array.valid)


def _item(array: arrow.Array, number: int) -> arrow.Array:
    """Return the item of such a number, from 0, or from -1 back; null where there is none."""
    assert array.offsets is not None
    begins, ends = array.offsets[:-1].astype(np.int64), array.offsets[1:].astype(np.int64)
    places = begins + number if number >= 0 else ends + number
    there = (places >= begins) & (places < ends)
    if array.valid is not None:
        there &= array.valid
    return taken(array.children[0].decoded(), np.where(there, places, -1))


def _slice(array: arrow.Array, start: int, end: int) -> arrow.Array:
    """Return the items from one number up to before another, neither negative."""
    assert array.offsets is not None
    begins, ends = array.offsets[:-1].astype(np.int64), array.offsets[1:].astype(np.int64)
    stops = np.minimum(begins + end, ends)
    begins = np.minimum(begins + start, stops)
    sizes = stops - begins
    offsets = np.append(0, np.cumsum(sizes))
    places = np.repeat(begins - offsets[:-1], sizes) + np.arange(int(offsets[-1]))
    return arrow.list_array(offsets, taken(array.children[0].decoded(), places), array.valid)


LISTS: Mapping[str, Callable[..., arrow.Array]] = {"size of list": _sizes, "item": _item, "slice": _slice}
"""Functions by the names of operators, of a column and what else an operation is told."""
