"""ORDER BY and LIMIT over columns in memory: the first rows by their first key, and of these alone the other keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.relational.vectors.algebra import Key
from graphdb.relational.vectors.expressions import evaluated
from graphdb.relational.vectors.frames import Frame
from graphdb.relational.vectors.numbers import SPREAD, NotVectorized, numeric, ordinal, require
from graphdb.relational.vectors.text_order import order_of_different
from graphdb.relational.vectors.typed.temporal import sort_keys
from graphdb.snapshot.properties import Properties
from graphdb.storage.arrays.arrow import string_places, values
from graphdb.storage.arrays.texts import number_integers, numbered_texts

Ints = NDArray[np.int64]

_FEW = 256
"""Rows from which on it pays to leave out those that cannot be among the first."""

_SAMPLED = 1 << 13
"""Rows of a sample that says which cannot be among the first."""

_SPARSE = 4
"""Rows for each one of a sample, and parts of a sample, from which on rows are left out before they have ranks."""

_INFINITE = 0x7FF << 52
"""The bits of infinity: those of NaN are above them, or negative."""

_TEXTS = 1 << 17
"""Texts that are sorted here, at most."""


def ordered(keys: Sequence[Key], window: tuple[int, int | None], frame: Frame, properties: Properties) -> Frame:
    """Return the rows of a window, in order.

    Raises
    ------
    NotVectorized
        SQL has to order them.
    """
    skip, limit = window
    if keys:
        most = None if limit is None else skip + limit
        frame = frame.at(_order(keys, frame, most, properties))
    if not skip and limit is None:
        return frame
    end = len(frame) if limit is None else min(skip + limit, len(frame))
    return frame.at(np.arange(min(skip, end), end))


def ordered_within(
    groups: str, keys: Sequence[Key], window: tuple[int, int | None], frame: Frame, properties: Properties
) -> Frame:
    """Return the rows of a window out of each group, in order, group by group.

    Raises
    ------
    NotVectorized
        SQL has to order them, or some are of no group.
    """
    (skip, limit), column = window, frame.column(groups)
    require(not column.null_count)
    found = [numeric(column)]
    chosen: Ints | None = None
    for key in keys:
        before = chosen
        for ranks, absent in _ranks(key, frame, properties):
            if chosen is not before:  # a key of several columns: the first one has left rows out
                ranks = ranks[chosen]
            if absent is not None:
                found.append((~absent if key.nulls_first else absent).astype(np.int64))
            elif limit is not None and len(found) == 1 and len(ranks) > _FEW:
                chosen = _first_of_groups(found[0], ranks, skip + limit)
                found, ranks, frame = [found[0][chosen]], ranks[chosen], frame.at(chosen)
            found.append(ranks)
    order = places_in_order(found)
    if skip or limit is not None:
        among = found[0][order]
        begins = np.append(True, among[1:] != among[:-1]) if len(among) else np.empty(0, bool)
        place = np.arange(len(order))
        place -= np.maximum.accumulate(np.where(begins, place, 0))
        order = order[(place >= skip) & (place < (len(order) if limit is None else skip + limit))]
    return frame.at(order)


def _first_of_groups(numbers: Ints, ranks: Ints, most: int) -> Ints:
    """Return the places of rows whose ranks are not above the ``most``-th least of their group: few more are so."""
    low = int(numbers.min())
    span = int(numbers.max()) - low + 1
    if not most or span > SPREAD * len(numbers):
        return np.arange(len(numbers) if most else 0)
    from graphdb.storage.arrays import column_kernels as kernels

    numbers = np.ascontiguousarray(numbers - low)
    sizes = np.bincount(numbers, minlength=span)
    last, placed = np.zeros(span, np.int64), np.empty(len(numbers), np.int64)
    at = np.minimum(most, sizes) - 1
    kernels.select_of_groups(
        numbers, np.ascontiguousarray(ranks), np.cumsum(sizes) - sizes, placed, at, last, np.zeros(span, np.int64)
    )
    return np.flatnonzero(ranks <= last[numbers])


def _order(keys: Sequence[Key], frame: Frame, most: int | None, properties: Properties) -> Ints:
    likely = _likely(keys[0], frame, most, properties) if most else None
    if likely is None:
        return _in_order(keys, frame, most, properties)
    return likely[_in_order(keys, frame.at(likely), most, properties)]


def _likely(key: Key, frame: Frame, most: int, properties: Properties) -> Ints | None:
    """Return the places of at least ``most`` rows among which the first ones are, by numbers of a sample; None where
    that leaves out few of them, or values are no numbers, or null.

    NaN is the greatest number.
    """
    step = len(frame) // _SAMPLED
    at = 2 * most // max(step, 1) + 16
    if step < _SPARSE or at >= _SAMPLED // _SPARSE:
        return None
    array = evaluated(key.vector, frame, properties)
    if array.type not in (arrow.INT64, arrow.FLOAT64) or array.null_count:
        return None
    data = values(array)
    some = np.sort(data[::step])
    found = np.flatnonzero(~(data < some[-1 - at]) if key.descending else data <= some[at])
    return found if len(found) >= most else None


def _in_order(keys: Sequence[Key], frame: Frame, most: int | None, properties: Properties) -> Ints:
    chosen: Ints | None = None
    found: list[Ints] = []
    for key in keys:
        before = chosen
        for ranks, absent in _ranks(key, frame, properties):
            if chosen is not before:  # a key of several columns: the first one has left rows out
                ranks = ranks[chosen]
            if absent is not None:
                found += [(~absent if key.nulls_first else absent).astype(np.int64)]
            elif most is not None and not found and len(frame) > max(_FEW, 2 * most):
                chosen = np.flatnonzero(ranks <= _last(ranks, most)) if most else np.empty(0, np.int64)
                ranks, frame = ranks[chosen], frame.at(chosen)
            found.append(ranks)
    order = places_in_order(found)
    order = order if most is None else order[:most]
    return order if chosen is None else chosen[order]


def places_in_order(columns: Sequence[Ints]) -> Ints:
    """Return the places of rows in the order of some columns, the first one first; equal rows stay as they stand.

    Where all of a row fits into one integer, and its place too, these integers are sorted, in half of the time.
    """
    count = len(columns[0])
    place = max(count - 1, 1).bit_length()
    whole, bound = np.zeros(count, np.int64), 1
    for column in columns if count else ():
        low = int(column.min())
        span = int(column.max()) - low + 1
        if bound * span >> (62 - place) and _repeat(column):
            different, numbers = number_integers(column)
            ranks = np.empty(len(different), np.int64)
            ranks[np.argsort(different)] = np.arange(len(different))
            column, low, span = ranks[numbers], 0, len(different)
        bound *= span
        if bound >> (62 - place):
            return np.lexsort(columns[::-1])
        if span > 1:
            whole = whole * span + (column - low)
    whole = whole << place | np.arange(count)
    whole.sort()
    return whole & ((1 << place) - 1)


def _repeat(column: Ints) -> bool:
    """Whether most of many integers come several times, as some of them do."""
    some = np.sort(column[:: max(len(column) // _SAMPLED, 1)])
    return len(column) > _SAMPLED and 2 * int(np.count_nonzero(some[1:] != some[:-1])) < len(some)


def _last(ranks: Ints, most: int) -> np.int64:
    """Return the last of the ``most`` least ranks, of more ranks than that."""
    step = len(ranks) // _SAMPLED
    at = 2 * most // step + 16 if step > 1 else _SAMPLED
    if at < _SAMPLED:  # what is beyond a rank of a sample is left out first
        some = ranks[ranks <= np.partition(ranks[::step], at)[at]]
        ranks = some if len(some) >= most else ranks
    last: np.int64 = np.partition(ranks, most - 1)[most - 1]
    return last


_Ranks = tuple[Ints, NDArray[np.bool_] | None]


def _ranks(key: Key, frame: Frame, properties: Properties) -> list[_Ranks]:
    """Return integers that are ordered as the rows shall be, and which of them are null, if some are.

    Durations go by their mean lengths, and those that are as long by their parts.
    """
    array = evaluated(key.vector, frame, properties)
    if not arrow.is_struct(array.type) or array.type.fields[0].name == "moment":
        return [_ranks_of(array, key.descending)]
    return [_ranks_of(each, key.descending) for each in sort_keys(array)]


def _ranks_of(array: arrow.Array, descending: bool) -> _Ranks:
    absent = ~array.is_valid() if array.null_count else None
    if arrow.is_string(array.type):
        ranks = _of_texts(array)
    elif arrow.is_floating(array.type):
        assert array.data is not None
        ranks = of_floats(array.data)
    else:
        ranks = ordinal(array)
    ranks = ~ranks if descending else ranks
    return (ranks, None) if absent is None else (np.where(absent, 0, ranks), absent)


def of_floats(data: NDArray[np.floating[Any]]) -> Ints:
    """Return integers in the order of floating-point numbers, by their bits.

    Raises
    ------
    NotVectorized
        NaN is among them.
    """
    bits: Ints = (data.astype(np.float64, copy=False) + 0.0).view(np.int64)  # there are two zeros
    if len(bits) and int(bits.min()) >= 0 and int(bits.max()) <= _INFINITE:
        return bits
    if np.isnan(data).any():
        raise NotVectorized
    return np.where(bits < 0, bits ^ np.iinfo(np.int64).max, bits)


def _of_texts(array: arrow.Array) -> Ints:
    """Return the ranks of texts by their bytes, as DuckDB orders them; those of nulls mean nothing."""
    if len(array) > _TEXTS:
        raise NotVectorized
    different, numbers = numbered_texts(array.decoded())
    order = order_of_different(*string_places(different))
    ranks = np.zeros(len(order) + 1, np.int64)  # the last is that of nulls
    ranks[order] = np.arange(len(order))
    found: Ints = ranks[numbers]
    return found
