"""GROUP BY over columns in memory: rows are numbered by their keys, and aggregates are sums over these numbers.

Properties of a vertex are keys by the vertex: where one of them differs between any two of the groups, the groups of
vertices are the groups of their properties.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.stopping import checked
from graphdb.relational.vectors.algebra import Aggregate, ColumnOf, Constant, Operation, PropertyOf, Vector
from graphdb.relational.vectors.expressions import evaluated, numbers_in_parts
from graphdb.relational.vectors.frames import Frame
from graphdb.relational.vectors.grouped.numbering import (
    numbered_key,
    numbered_values,
    paired,
    texts_of_vertices,
    within_range,
)
from graphdb.relational.vectors.grouped.ranked import extreme_number, extreme_of_parts, extreme_of_property, percentile
from graphdb.relational.vectors.numbers import (
    SPREAD,
    NotVectorized,
    multiplied,
    numeric,
    ordinal,
    require,
    sums,
    sums_of_reals,
)
from graphdb.relational.vectors.order import places_in_order
from graphdb.relational.vectors.text_order import extreme_texts
from graphdb.relational.vectors.typed.unions import parts_of_union, sums_of_parts
from graphdb.snapshot.properties import Properties
from graphdb.storage.arrays.arrow import values
from graphdb.storage.arrays.texts import (
    firsts_of,
    number_integers,
    number_pairs,
    numbered,
    taken,
)

Ints = NDArray[np.int64]

_KEYS = 16
"""Keys whose values are numbered between two looks at whether to stop."""

_SOME = 512
"""Rows that are looked at for vertices with the same properties before all are."""

_FEW = 1024
"""Rows up to which the different values of groups are found by a hash table."""

_MANY = 1 << 16
"""Rows from which on a table of all their values outgrows the processor's cache."""

_MARKED = 64
"""Pairs of a group and a value for each row, at most, that are marked in a table instead of sorted."""


class Groups(NamedTuple):
    """Which group each row is of, and a row of each group, the first: one array where each is a group of its own."""

    numbers: Ints
    firsts: Ints

    def __len__(self) -> int:
        return len(self.firsts)


def grouped(keys: Sequence[Vector], frame: Frame, properties: Properties) -> Groups:
    """Return the groups of rows whose keys are equal; null equals null.

    Raises
    ------
    NotVectorized
        SQL has to group them.
    """
    if not keys:  # aggregates of nothing are a row, too
        return Groups(np.broadcast_to(np.int64(0), len(frame)), np.zeros(1, np.int64))
    if len(keys) == 1 and isinstance(keys[0], PropertyOf) and (codes := _small(keys[0], frame, properties)) is not None:
        return _of_codes(*codes)
    own = {key.name for key in keys if isinstance(key, ColumnOf)}
    others = {key.vertex.name for key in keys if isinstance(key, PropertyOf)} - own
    plain = [key for key in keys if not isinstance(key, PropertyOf)]
    some = frame.at(np.arange(min(len(frame), _SOME)))  # two that are alike among some are so among all
    alike = {vertex for vertex in others if not _differ(_of(keys, vertex), vertex, some, properties)}

    def of_properties() -> list[Vector]:
        values = [key for vertex in sorted(alike) for key in _of(keys, vertex)]
        return [*plain, *map(ColumnOf, sorted(others - alike)), *values]

    found = _by(of_properties(), frame, properties)
    firsts = frame.at(found.firsts)
    also = {vertex for vertex in others - alike if not _differ(_of(keys, vertex), vertex, firsts, properties)}
    if not also:
        return found
    alike |= also
    return _by(of_properties(), frame, properties)


def _of(keys: Sequence[Vector], vertex: str) -> list[PropertyOf]:
    return [key for key in keys if isinstance(key, PropertyOf) and key.vertex.name == vertex]


def _by(keys: Sequence[Vector], frame: Frame, properties: Properties) -> Groups:
    """Return the groups of rows with equal values."""
    codes, bound, most = np.zeros(len(frame), np.int64), 1, SPREAD * len(frame) + 256
    found, span, wide = codes, 1, False
    for key in checked(dict.fromkeys(keys), _KEYS):
        if isinstance(key, Constant):
            continue
        wide = wide or bound * span > most
        codes, bound = _narrow(codes, bound, found, span, most)
        found, span = numbered_key(key, frame, properties)
    if bound * span > most:
        wide = True
        if float(bound) * span < 2.0**62 and _rise(codes[:_SOME] * span + found[:_SOME]):
            pairs = codes * span + found
            if _rise(pairs):
                each = np.arange(len(pairs))
                return Groups(each, each)
        for buckets, below, data in ((found, span, codes), (codes, bound, found)):
            if below <= len(codes) and _stand_together(buckets):
                return Groups(*number_pairs(buckets, data, below))
    codes, bound = _narrow(codes, bound, found, span, most)
    if wide and not _rise(codes):
        return _as_they_come(codes, bound, most)
    return _of_codes(codes, bound)


def _small(key: PropertyOf, frame: Frame, properties: Properties) -> tuple[Ints, int] | None:
    """Return the values of a property as numbers, and a bound of these, where they lie as near as vertices do: then it
    makes no difference whether any two vertices have the same.
    """
    source = properties.source(key.label, len(frame))
    type = None if source is None else source.values.type
    if type is None or not (arrow.is_integer(type) or arrow.is_date(type) or type == arrow.BOOL):
        return None
    return within_range(evaluated(key, frame, properties), SPREAD * len(frame) + 256)


def _of_codes(codes: Ints, bound: int) -> Groups:
    """Return the groups of rows with equal numbers below a bound, in the order of these."""
    if _rise(codes):
        each = np.arange(len(codes))
        return Groups(each, each)
    from graphdb.storage.arrays import column_kernels as kernels

    firsts = np.full(bound, -1, np.int64)
    kernels.first_places(np.ascontiguousarray(codes), firsts)
    there = firsts >= 0
    return Groups(codes, firsts) if there.all() else Groups((np.cumsum(there) - 1)[codes], firsts[there])


def _rise(numbers: Ints) -> bool:
    """Whether each number is greater than the one before: rows of vertices are often in their order."""
    return all(bool((some[1:] > some[:-1]).all()) for some in (numbers[:_SOME], numbers))


def _as_they_come(codes: Ints, bound: int, most: int) -> Groups:
    """Return the groups of rows with equal numbers, in the order in which they first come."""
    if bound > most:
        numbers = number_integers(codes)[1]
        return Groups(numbers, firsts_of(numbers))
    from graphdb.storage.arrays import column_kernels as kernels

    numbers, firsts = np.empty(len(codes), np.int64), np.empty(min(bound, len(codes)), np.int64)
    count = kernels.number_below(codes, np.full(bound, -1, np.int32), numbers, firsts)
    return Groups(numbers, firsts[:count])


def _narrow(codes: Ints, bound: int, found: Ints, span: int, most: int) -> tuple[Ints, int]:
    """Return numbers of pairs of numbers, below ``most`` where few of these differ; see :func:`paired`."""
    if bound * span > most:
        codes, bound, found, span = _closer(codes, bound, found, span, most)
    return paired(codes, bound, found, span)


def _stand_together(numbers: Ints) -> bool:
    """Whether equal ones of many numbers mostly follow each other, as some of them in the middle do."""
    some = numbers[len(numbers) // 2 :][:_SOME]
    return _MANY <= len(numbers) < 1 << 31 and 2 * int(np.count_nonzero(some[1:] == some[:-1])) > len(some)


def _differ(keys: Sequence[PropertyOf], vertex: str, frame: Frame, properties: Properties) -> bool:
    """Whether no two of the vertices in a column have the same properties."""
    column = frame.column(vertex)
    if column.null_count:
        return False
    at = _different(column)
    each = frame.at(at)
    for key in checked(keys, _KEYS):
        found = evaluated(key, each, properties)
        if arrow.is_union(found.type):
            continue
        if not found.null_count and not arrow.is_floating(found.type) and not arrow.is_struct(found.type):
            distinct, _ = numbered(found)
            if len(distinct) == len(at):
                return True
    return False


def _different(ids: arrow.Array) -> Ints:
    """Return a place of each of the different ids of a column."""
    within = within_range(ids, SPREAD * len(ids) + 256)
    if within is None:
        return np.unique(numeric(ids), return_index=True)[1]
    numbers, bound = within
    places = np.full(bound, -1, np.int64)
    places[numbers] = np.arange(len(numbers))
    return places[places >= 0]


def _closer(codes: Ints, bound: int, found: Ints, span: int, most: int) -> tuple[Ints, int, Ints, int]:
    """Return two columns of numbers without gaps, where their pairs are then ``most`` at most; else as they are."""
    if max(bound, span) > most or min(bound, span) <= 1:
        return codes, bound, found, span
    ours, theirs = np.zeros(bound, bool), np.zeros(span, bool)
    ours[codes] = True
    theirs[found] = True
    few, others = int(np.count_nonzero(ours)), int(np.count_nonzero(theirs))
    if few * others > most:
        return codes, bound, found, span
    return (np.cumsum(ours) - 1)[codes], few, (np.cumsum(theirs) - 1)[found], others


def aggregated(aggregate: Aggregate, groups: Groups, frame: Frame, properties: Properties) -> arrow.Array:
    """Return the value of an aggregate for each group.

    Raises
    ------
    NotVectorized
        SQL has to compute it.
    """
    count, numbers = len(groups), groups.numbers
    weighted = weights(frame, aggregate.matches)
    if aggregate.operand is None:
        return arrow.numbers(sums(numbers, weighted, count))
    in_parts = aggregate.function in ("sum", "min", "max")
    if isinstance(aggregate.operand, PropertyOf) and aggregate.function in ("min", "max"):
        found = extreme_of_property(aggregate.function, aggregate.operand, frame, properties, numbers, count)
        if found is not None:
            return found
    parts = numbers_in_parts(aggregate.operand, frame, properties) if in_parts else None
    if parts is not None:
        require(not aggregate.distinct)
        if aggregate.function != "sum":
            return extreme_of_parts(aggregate.function, parts, numbers, count, properties.unions())
        return sums_of_parts(parts, numbers, weighted, count, properties.unions)
    if aggregate.function == "count" and aggregate.distinct:
        return arrow.numbers(_distinct_values(aggregate.operand, groups, frame, properties))
    array = evaluated(aggregate.operand, frame, properties)
    if arrow.is_union(array.type):
        require(aggregate.function in ("sum", "min", "max") and not aggregate.distinct)
        if aggregate.function != "sum":
            return extreme_number(aggregate.function, array, numbers, count)
        return sums_of_parts(parts_of_union(array), numbers, weighted, count, lambda: array.type)
    there = np.flatnonzero(array.is_valid()) if array.null_count and not aggregate.nulls else None
    if there is not None:
        numbers, weighted = numbers[there], None if weighted is None else weighted[there]
    if aggregate.function == "count":
        return arrow.numbers(sums(numbers, weighted, count))
    if aggregate.function == "collect":
        require(weighted is None or aggregate.distinct)
        order = None if aggregate.order is None else numeric(evaluated(aggregate.order, frame, properties))
        return _collected(array, numbers, there, order, count, distinct=aggregate.distinct)
    require(not aggregate.distinct)
    if aggregate.function in ("stDev", "stDevP"):
        reals = _real(array) if there is None else _real(array)[there]
        return _deviations(aggregate.function, numbers, reals, weighted, count)
    if aggregate.function in ("percentileCont", "percentileDisc") or arrow.is_string(array.type):
        rows = np.arange(len(array)) if there is None else there
        if arrow.is_string(array.type):
            return extreme_texts(aggregate.function, array, rows, numbers, count)
        return percentile(aggregate.function, aggregate.share, array, rows, numbers, weighted, count)
    if array.type == arrow.FLOAT64:
        reals = values(array) if there is None else values(array)[there]
        return _of_reals(aggregate.function, numbers, reals, weighted, count)
    data = numeric(array) if aggregate.function in ("sum", "avg") else ordinal(array)
    data = data if there is None else data[there]
    if aggregate.function in ("sum", "avg") and weighted is not None:
        data = multiplied(data, weighted)
    if aggregate.function == "sum":
        return arrow.numbers(sums(numbers, data, count))
    sizes = sums(numbers, weighted, count)
    if aggregate.function == "avg":
        with np.errstate(invalid="ignore"):
            return arrow.numbers(sums(numbers, data, count) / sizes, None if sizes.all() else sizes > 0)
    if arrow.is_struct(array.type):
        raise NotVectorized
    return _extreme(aggregate.function, numbers, data, array.type, sizes)


def _collected(
    array: arrow.Array, numbers: Ints, there: Ints | None, order: Ints | None, count: int, *, distinct: bool
) -> arrow.Array:
    """Return the list of the values of each group, in the order of the rows or another; of equal ones the first."""
    places = None if order is None else order if there is None else order[there]
    if distinct:
        data, span = numbered_values(array)
        data = data if there is None else data[there]
        require(float(count) * span < 2.0**62)
        which = number_integers(numbers * span + data)[1]
        if places is None:
            chosen = firsts_of(which)
        else:
            sort = places_in_order([which, places])
            chosen = sort[np.flatnonzero(np.diff(which[sort], prepend=-1))]
        numbers, places = numbers[chosen], None if places is None else places[chosen]
    else:
        chosen = np.arange(len(numbers))
    sizes = np.bincount(numbers, minlength=count)
    sort = places_in_order([numbers] if places is None else [numbers, places])
    chosen = chosen[sort]
    items = taken(array.decoded(), chosen if there is None else there[chosen])
    return arrow.list_array(np.concatenate(([0], np.cumsum(sizes))), items)


def _real(array: arrow.Array) -> NDArray[np.float64]:
    return values(array) if array.type == arrow.FLOAT64 else numeric(array).astype(np.float64)


def _deviations(
    function: str, numbers: Ints, data: NDArray[np.float64], weighted: Ints | None, count: int
) -> arrow.Array:
    """Return how far the numbers of each group are from their mean: 0 of less than two."""
    weighted = np.broadcast_to(np.int64(1), len(data)) if weighted is None else weighted
    sizes = sums(numbers, weighted, count)
    with np.errstate(over="ignore", invalid="ignore"):
        means = np.bincount(numbers, data * weighted, count) / np.maximum(sizes, 1)
        squares = np.bincount(numbers, (data - means[numbers]) ** 2 * weighted, count)
        found = np.sqrt(squares / np.maximum(sizes - (function == "stDev"), 1))
    require(bool(np.isfinite(found).all()))
    return arrow.numbers(found)


def _extreme(function: str, numbers: Ints, data: Ints, type: arrow.DataType, sizes: Ints) -> arrow.Array:
    limits = np.iinfo(np.int64)
    found = _extremes(function, numbers, data, np.full(len(sizes), limits.max if function == "min" else limits.min))
    found[sizes == 0] = 0
    return arrow.Array(type, len(found), None if sizes.all() else sizes > 0, found.astype(type.dtype))


def _extremes(function: str, numbers: Ints, data: NDArray[Any], found: NDArray[Any]) -> NDArray[Any]:
    """Return the least or greatest value of each group, which is ``found`` where that is less or greater."""
    compare = np.minimum if function == "min" else np.maximum
    if len(found) == 1:
        found[0] = compare.reduce(data, initial=found[0])
    else:
        compare.at(found, numbers, data)
    return found


def _of_reals(
    function: str, numbers: Ints, data: NDArray[np.float64], weighted: Ints | None, count: int
) -> arrow.Array:
    """Return a sum, mean, minimum or maximum of floating-point numbers for each group; SQL has others than finite."""
    sizes = sums(numbers, weighted, count)
    with np.errstate(over="ignore", invalid="ignore"):
        if function in ("min", "max"):
            found = _extremes(function, numbers, data, np.full(count, np.inf if function == "min" else -np.inf))
        else:
            data = data if weighted is None else data * weighted
            found = sums_of_reals(numbers, data, count)
            found = found / np.maximum(sizes, 1) if function == "avg" else found
    there = sizes > 0
    require(bool(np.isfinite(found[there]).all()))
    if function == "sum" or there.all():
        return arrow.numbers(found)
    return arrow.numbers(np.where(there, found, 0.0), there)


def weights(frame: Frame, matches: str | None) -> Ints | None:
    """Return how many matches each row stands for; None where each is one."""
    if matches is None:
        return None
    column = frame.column(matches)
    data = numeric(column)
    return np.where(column.is_valid(), data, 1) if column.null_count else data


def _distinct_values(vector: Vector, groups: Groups, frame: Frame, properties: Properties) -> Ints:
    """Return how many different values of an expression, not null, each group has."""
    if isinstance(vector, Operation) and vector.operator == "struct":  # a list or map of them is none itself
        there, *fields = vector.operands
        require(there == Constant(True))
        codes, bound = np.zeros(len(frame), np.int64), 1
        for field in fields:
            codes, bound = paired(codes, bound, *numbered_key(field, frame, properties))
        return _distinct(groups.numbers, codes, bound, len(groups))
    array = texts_of_vertices(vector, frame, properties) if isinstance(vector, PropertyOf) else None
    if array is None:
        array = evaluated(vector, frame, properties)
    data, span = numbered_values(array)
    if not array.null_count:
        return _distinct(groups.numbers, data, span, len(groups))
    rows = np.flatnonzero(array.is_valid())
    return _distinct(groups.numbers[rows], data[rows], span, len(groups))


def _distinct(numbers: Ints, data: Ints, span: int, count: int) -> Ints:
    """Return how many different values (below ``span``) each group has."""
    if count == 1 and span <= _MARKED * len(data) + 4096:
        marked = np.zeros(span, bool)
        marked[data] = True
        return np.array([np.count_nonzero(marked)])
    if count * span <= _MARKED * len(numbers) + 4096:
        from graphdb.storage.arrays.column_kernels import tally_marked

        counts = np.zeros(count, np.int64)
        given = np.ascontiguousarray(numbers), np.ascontiguousarray(data)
        tally_marked(*given, span, np.zeros(count * span, np.uint8), counts)
        return counts
    if len(numbers) > _FEW and span <= SPREAD * len(numbers) and count < 1 << 31:
        return _distinct_by_group(numbers, data, span, count)
    if float(count) * span >= 2.0**62:
        raise NotVectorized
    pairs, _ = number_integers(numbers * span + data)
    return np.bincount(pairs // span, minlength=count)


def _distinct_by_group(numbers: Ints, data: Ints, span: int, count: int) -> Ints:
    """Return how many different values each group has, from rows that are put group by group."""
    from graphdb.storage.arrays import column_kernels as kernels

    sizes = np.bincount(numbers, minlength=count)
    counts, placed = np.empty(count, np.int64), np.empty(len(numbers), np.int64)
    given = np.ascontiguousarray(numbers), np.ascontiguousarray(data)
    kernels.tally_distinct(*given, np.cumsum(sizes) - sizes, placed, np.full(span, -1, np.int32), counts)
    return counts
