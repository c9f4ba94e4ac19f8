"""Lists as columns: their sizes and items, ranges and parts of texts, and lists of which each item is a row.

An array of lists has all items one after the other, and where each list begins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.relational.vectors.numbers import FITS, Valid, both, largest, numeric, require, sums
from graphdb.relational.vectors.typed.texts import parts_of_texts
from graphdb.storage.arrays.arrow import values
from graphdb.storage.arrays.texts import taken

Ints = NDArray[np.int64]

_MOST = 1 << 22
"""Items of all lists, at most."""

_WIDE = float(1 << 40)
"""What the bounds of ranges stay below."""


class Items(NamedTuple):
    """The items of lists as rows."""

    values: arrow.Array
    rows: Ints
    """Which list each is of."""
    valid: Valid
    """Which lists there are; None for all."""


def items_of(lists: arrow.Array) -> Items:
    """Return the items of all lists, those of null left out.

    Raises
    ------
    NotVectorized
        They are many.
    """
    require(lists.offsets is not None)
    assert lists.offsets is not None
    sizes = lists.lengths()
    total = int(sizes.sum())
    require(total <= _MOST)
    begins, child = lists.offsets[:-1].astype(np.int64), lists.children[0].decoded()
    if lists.valid is None:
        values = child.slice(int(lists.offsets[0]), total)
    else:
        values = taken(child, _places(begins, sizes))
    return Items(values, np.repeat(np.arange(len(lists)), sizes), lists.valid)


def _places(begins: Ints, sizes: Ints) -> Ints:
    """Return so many numbers from each beginning on."""
    return np.repeat(begins - (np.cumsum(sizes) - sizes), sizes) + np.arange(int(sizes.sum()))


def lists_of(rows: Ints, values: arrow.Array, count: int, valid: Valid) -> arrow.Array:
    """Return the lists of items, which stand list by list: ``rows`` says of which each is."""
    return arrow.list_array(_offsets(np.bincount(rows, minlength=count)), values.decoded(), valid)


def _offsets(sizes: Ints) -> Ints:
    return np.append(0, np.cumsum(sizes))


def quantified(quantifier: str, holds: arrow.Array, items: Items, count: int) -> arrow.Array:
    """Return whether ``all``, ``any``, ``none`` or a ``single`` one of the items of each list fulfil a condition.

    Unknown where a list is, or where items of which that is unknown decide.
    """
    there = holds.is_valid()
    data = values(holds)
    true, false = (np.bincount(items.rows[there & (data == truth)], minlength=count) for truth in (True, False))
    known = np.bincount(items.rows[~there], minlength=count) == 0
    if quantifier == "all":
        found, known = false == 0, known | (false > 0)
    elif quantifier == "single":
        found, known = true == 1, known | (true > 1)
    else:
        found, known = (true > 0) == (quantifier == "any"), known | (true > 0)
    return arrow.numbers(found, known if items.valid is None else known & items.valid)


def added_up(start: arrow.Array, added: arrow.Array, items: Items) -> arrow.Array:
    """Return what the number of each list and those of its items add up to, one after the other; null with a null.

    Raises
    ------
    NotVectorized
        They are large, or not finite.
    """
    count = len(start)
    valid = start.valid if items.valid is None else start.is_valid() & items.valid
    if added.null_count:
        known = np.bincount(items.rows[~added.is_valid()], minlength=count) == 0
        valid = known if valid is None else known & valid
    if start.type == arrow.FLOAT64:
        require(added.type == arrow.FLOAT64)
        rows = np.append(np.arange(count), items.rows)
        found = np.bincount(rows, np.append(values(start), values(added)), count)
        require(bool(np.isfinite(found).all()))
        return arrow.numbers(found, valid)
    total = sums(items.rows, numeric(added), count)
    require(largest(total) < FITS and largest(numeric(start)) < FITS)
    return arrow.numbers(numeric(start) + total, valid)


def ranges(operands: list[arrow.Array], step: int) -> arrow.Array:
    """Return the integers from one to another, both included, each ``step`` after the one before.

    Raises
    ------
    NotVectorized
        They are many, or a bound is null, which SQL refuses.
    """
    first, last = map(numeric, operands)
    require(both(*operands) is None and largest(first) < _WIDE and largest(last) < _WIDE)
    sizes = np.maximum((last - first) // step + 1, 0)
    require(not len(sizes) or int(sizes.sum()) <= _MOST)
    numbers = _places(np.zeros(len(sizes), np.int64), sizes) * step + np.repeat(first, sizes)
    return arrow.list_array(_offsets(sizes), arrow.numbers(numbers))


def split(array: arrow.Array, separator: str) -> arrow.Array:
    """Return the parts of texts between separators."""
    parts, sizes = parts_of_texts(array, separator)
    require(len(parts) <= _MOST)
    return arrow.list_array(_offsets(sizes), parts, array.valid)


def written(operands: list[arrow.Array]) -> arrow.Array:
    """Return lists of a value of each column."""
    arrays = [operand.decoded() for operand in operands]
    count, size = len(arrays[0]), len(arrays)
    require(len({array.type for array in arrays}) == 1 and count * size <= _MOST)
    at = np.arange(count * size)
    return arrow.list_array(
        size * np.arange(count + 1), taken(arrow.concat_arrays(arrays), at % size * count + at // size)
    )


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
