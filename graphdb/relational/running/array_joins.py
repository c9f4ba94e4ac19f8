"""Rows joined with bindings by arrays: of both, vertices are columns of ids, so that a join is a gather.

To DuckDB each join of two small tables costs most of a millisecond before it sees a row, and one of large tables hashes
every id.  Here equal ids are numbered alike; the numbers say where the rows of each binding stand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.arrow import numbers
from graphdb.relational.program import Counted, Joined, Matched
from graphdb.relational.vectors.products import Product
from graphdb.storage.arrays.arrow import values
from graphdb.storage.arrays.texts import number_integers, taken

Ints = NDArray[np.int64]

_SMALL = 4096
"""Ids up to which sorting them is the fastest way to number them."""

_SPREAD = 8
"""Numbers for each id, at most, where the ids themselves serve as numbers."""

_LARGE = 1 << 19
"""Ids from which on DuckDB is faster where a row has several that must be equal: their table outgrows the cache.  Pairs
of ids that serve as numbers are counted without one."""

_ORDERED = 1 << 16
"""Pairs up to which they are put in the order of the rows: those numbers have 16 bits."""

_MANY = 1 << 21
"""Pairs that are made before conditions are tested of them, at most, but for as many as a side has rows."""

_FEWER = 8
"""Times by which bindings must be fewer than such rows: then most rows are found to have none by a table of hashes."""

_HASHES = 32
"""Places of that table for each binding."""

_FACTOR = np.int64(0x9E3779B1)
"""Multiplicative hashing (Knuth, The Art of Computer Programming, 6.4)."""

_EXACT = 1 << 53
"""Sums of counts below it are exact in float64, which NumPy adds them in."""

_PIECE = 1 << 16
"""Rows of a chunk: DuckDB reads chunks on several threads."""


def joined(step: Joined, tables: Mapping[str, arrow.Table], most: int) -> arrow.Table | None:
    """Return the rows of a step; None where DuckDB has to join them.

    That is where some of ``tables`` are not in memory, the result takes more than ``most`` bytes, a column that must be
    equal has no ids, or DuckDB is faster.
    """
    rows = tables.get(step.rows)
    if rows is None:
        return None
    if isinstance(step.how, Matched):
        found = tables.get(step.how.view)
        return None if found is None else _matched(rows, found, step, step.how, most)
    for count in step.how:
        found = tables.get(count.view)
        column = None if found is None else _counted(rows, found, count)
        if column is None:
            return None
        rows = rows.append_column(count.name, numbers(column))
    return rows


def _matched(rows: arrow.Table, found: arrow.Table, step: Joined, how: Matched, most: int) -> arrow.Table | None:
    """Return each row once for each binding whose vertices are its own."""
    keys = _fewer(_ids(rows, found, how.on))
    if keys is None:
        return None
    row_bytes = 8 * (len(how.retained) + len(how.added) + 1)
    most_pairs, most_bindings = most // row_bytes, most // (row_bytes - 8 * len(how.added))
    if len(rows) == 1 and not how.on and all(_is_repeated(rows.column(name)) for name in how.retained):
        most_pairs = len(found)  # of which nothing is copied
    elif _is_lazy(step):
        most_pairs = min(most_pairs, max(_MANY, len(rows), len(found)))
    pairs = _pairs(*keys, len(rows), len(found), most_pairs, most_bindings)
    if pairs is None:
        return None
    mine, theirs = _in_order(*pairs, len(rows), len(found))
    if how.outer:
        alone = np.ones(len(rows), bool)
        alone[mine] = False
        if alone.any():
            theirs = np.arange(len(found)) if theirs is None else theirs
            mine = np.concatenate((mine, np.flatnonzero(alone)))
            theirs = np.concatenate((theirs, np.full(len(mine) - len(theirs), -1)))
            mine, theirs = _in_order(mine, theirs, len(rows), len(found))
    same = dict(how.on) if not how.outer else {}
    columns: dict[str, arrow.ChunkedArray] = {}
    for name in how.retained:
        column = rows.column(name)
        twin = found.column(same[name]) if name in same else None
        if theirs is None and twin is not None and twin.type == column.type:
            columns[name] = twin  # an id that is equal is the same
        else:
            columns[name] = _taken_later(column, mine)
    columns["rowid" if step.numbered else "row"] = _in_pieces(numbers(np.arange(len(mine)) if step.numbered else mine))
    for name, theirs_name in how.added:
        column = found.column(theirs_name)
        columns[name] = column if theirs is None else _taken(column, theirs)
    return arrow.table(columns)


def product_of(step: Joined, tables: Mapping[str, arrow.Table]) -> Product | None:
    """Return pairs of rows and bindings that are made as far as conditions leave them
    (:mod:`graphdb.relational.vectors.products`); None where others than one clause read them, or DuckDB is faster.
    """
    if not _is_lazy(step) or not isinstance(step.how, Matched):
        return None
    rows, found = tables.get(step.rows), tables.get(step.how.view)
    if rows is None or found is None or (step.how.on and len(rows) + len(found) > _LARGE):
        return None
    return Product(rows, found, step.how.retained, dict(step.how.added), step.how.on)


def _is_lazy(step: Joined) -> bool:
    """Whether nothing but a clause reads the rows of a step, which may have conditions that leave fewer."""
    return isinstance(step.how, Matched) and not (step.how.outer or step.numbered or step.beside)


def _counted(rows: arrow.Table, found: arrow.Table, how: Counted) -> Ints | None:
    """Return the number of bindings whose vertices are the row's own, of each row."""
    if not how.on:
        return _counted_for_all(rows, found, how)
    ids = _ids(rows, found, how.on)
    by_pairs = ids is not None and len(how.on) == 2 and _is_large(ids) and all(map(_serve, *ids[:2]))
    keys = ids if by_pairs else _fewer(ids)
    if keys is None:
        return None
    mine, theirs, there = keys
    counts: Ints = np.zeros(len(rows), np.int64)
    if not len(found) or not len(mine[0]):
        return counts
    weights = None
    if not how.whether and "n" in found.column_names:
        column = found.column("n")
        if not _has_ids(column):
            return None
        weights = None if _are_ones(column) else values(column)
        if weights is not None and float(weights.sum(dtype=np.float64)) >= _EXACT:
            return None
    if by_pairs:
        sums = _sums_of_pairs(mine, theirs, weights)
        per_row = (sums > 0).astype(np.int64) if how.whether else sums
    else:
        own, their, distinct = _numbered(mine, theirs)
        sums = np.bincount(their, weights, distinct)
        per_row = ((sums > 0) if how.whether else sums)[own].astype(np.int64, copy=False)
    if there is None:
        return per_row
    counts[there] = per_row
    return counts


def _counted_for_all(rows: arrow.Table, found: arrow.Table, how: Counted) -> Ints | None:
    """Return the number of all bindings, for each row."""
    column = found.column("n")
    if not _has_ids(column):
        return None
    if float(values(column).sum(dtype=np.float64)) >= _EXACT:
        return None
    total = int(values(column).sum())
    return np.full(len(rows), int(total > 0) if how.whether else total, np.int64)


def _are_ones(column: arrow.ChunkedArray) -> bool:
    """Whether integers are all 1, as far as it is seen without reading them: those that stand there once."""
    parts = [chunk.data for chunk in column.chunks if len(chunk)]
    return all(part is not None and part.strides == (0,) and int(part[0]) == 1 for part in parts)


def _sums_of_pairs(mine: Sequence[Ints], theirs: Sequence[Ints], weights: Ints | None) -> Ints:
    """Return for each pair of ``mine`` the sum of the weights (None: 1 each) of ``theirs`` that are the same."""
    from graphdb.storage.arrays.column_kernels import sums_of_pairs
    from graphdb.storage.graph.pcsr_kernels import counting_order

    (own, their, bound), (second, other, most) = map(_alike, mine, theirs)
    sides = []
    for first, ids in ((own, second), (their, other)):
        ends, order = np.zeros(bound + 1, np.int64), np.empty(len(first), np.int64)
        counting_order(first, ends, order)
        sides.append((ids, ends[:-1], order))
    (second, ends, order), (other, their_ends, their_order) = sides
    counts = np.empty(0, np.int64) if weights is None else weights.astype(np.int64, copy=False)
    sums, scratch = np.empty(len(own), np.int64), np.zeros(most, np.int64)
    sums_of_pairs(second, ends, order, other, counts, their_ends, their_order, scratch, sums)
    return sums


_Ids: TypeAlias = "tuple[list[Ints], list[Ints], Ints | None]"
"""The ids that must be equal, of rows and of bindings, and which rows have them, if not all do."""


def _ids(rows: arrow.Table, found: arrow.Table, on: Sequence[tuple[str, str]]) -> _Ids | None:
    """Return the ids that must be equal; None where some are none, or bindings lack them."""
    mine, theirs = [rows.column(name) for name, _ in on], [found.column(name) for _, name in on]
    if not all(map(_has_ids, (*mine, *theirs))) or any(column.null_count for column in theirs):
        return None
    there = None
    if any(column.null_count for column in mine):
        there = np.flatnonzero(np.logical_and.reduce([column.is_valid() for column in mine]))
    own = [values(column).astype(np.int64, copy=False) for column in mine]
    their = [values(column).astype(np.int64, copy=False) for column in theirs]
    if there is not None:
        own = [ids[there] for ids in own]
    return own, their, there


def _is_large(ids: _Ids) -> bool:
    """Whether a table of ids outgrows the cache."""
    own, their, _ = ids
    return len(own) > 1 and len(own[0]) + len(their[0]) > _LARGE


def _serve(left: Ints, right: Ints) -> bool:
    """Whether ids serve as numbers, less the least of them."""
    _, span = _range(left, right)
    return span <= _SPREAD * (len(left) + len(right))


def _fewer(ids: _Ids | None) -> _Ids | None:
    """Return ids without most rows that no binding has; None where they are large, and DuckDB is faster."""
    if ids is None or not _is_large(ids):
        return ids
    own, their, there = ids
    if len(their[0]) * _FEWER > len(own[0]):
        return None
    may = _possible(own, their)
    return [each[may] for each in own], their, may if there is None else there[may]


def _possible(mine: Sequence[Ints], theirs: Sequence[Ints]) -> Ints:
    """Return the rows whose ids may be those of some binding: all of which they are, and few others."""
    size = 1 << (_HASHES * len(theirs[0])).bit_length()
    marks = np.zeros(size, np.bool_)
    marks[_hashed(theirs, size)] = True
    return np.flatnonzero(marks[_hashed(mine, size)])


def _hashed(ids: Sequence[Ints], size: int) -> Ints:
    """Return a number below ``size``, a power of two, for each tuple of ids."""
    found = ids[0]
    for more in ids[1:]:
        found = found * _FACTOR + more
    return (found * _FACTOR >> 15) & (size - 1)


def _has_ids(column: arrow.ChunkedArray) -> bool:
    return arrow.is_integer(column.type)


def _pairs(
    mine: Sequence[Ints],
    theirs: Sequence[Ints],
    there: Ints | None,
    rows: int,
    bindings: int,
    most: int,
    most_bindings: int,
) -> tuple[Ints, Ints | None] | None:
    """Return which rows belong to which bindings; None instead of the latter where each has one, in order.

    None where there are more than ``most`` pairs, or ``most_bindings`` that have one row each: their own columns are
    not copied.
    """
    if not mine:
        if rows * bindings > (most if rows == 1 else min(most, _ORDERED)):
            return None
        if rows == 1:
            return np.broadcast_to(np.int64(0), bindings), None
        return np.tile(np.arange(rows), bindings), np.repeat(np.arange(bindings), rows)
    if not len(mine[0]) or not bindings:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    own, their, distinct = _numbered(mine, theirs)
    counts = np.bincount(own, minlength=distinct)
    if counts.max() <= 1:
        if bindings > most_bindings:
            return None
        place = np.full(distinct, -1, np.int64)
        place[own] = np.arange(len(own)) if there is None else there
        found = place[their]
        if (found >= 0).all():
            return found, None
        which = np.flatnonzero(found >= 0)
        return None if len(which) > most else (found[which], which)
    several = counts[their]
    total = int(several.sum())
    if total > most:
        return None
    order = np.argsort(own, kind="stable")
    begins, ends = np.cumsum(counts) - counts, np.cumsum(several)
    found = order[np.repeat(begins[their] - (ends - several), several) + np.arange(total)]
    return found if there is None else there[found], np.repeat(np.arange(bindings), several)


def _in_order(mine: Ints, theirs: Ints | None, rows: int, bindings: int) -> tuple[Ints, Ints | None]:
    """Return few pairs in the order of the rows, which is how others expect to find them; more as they are.

    No language asks for it, but what an UNWIND lists is written and returned as it is listed, as DuckDB's own joins of
    few rows do.
    """
    if max(len(mine), rows) > _ORDERED or bool((mine[1:] >= mine[:-1]).all()):
        return mine, theirs
    order = np.argsort(mine.astype(np.uint16), kind="stable")  # 16 bits are sorted by radix
    return mine[order], np.arange(bindings)[order] if theirs is None else theirs[order]


def _numbered(mine: Sequence[Ints], theirs: Sequence[Ints]) -> tuple[Ints, Ints, int]:
    """Return numbers of tuples of ids, the same for equal ones: of both sides, and a bound of them."""
    own, their, bound = _alike(mine[0], theirs[0])
    for left, right in zip(mine[1:], theirs[1:], strict=True):
        second, other, distinct = _alike(left, right)
        own, their, bound = _alike(own * distinct + second, their * distinct + other)
    return own, their, bound


def _alike(left: Ints, right: Ints) -> tuple[Ints, Ints, int]:
    """Return numbers of ids, the same for equal ones, and a bound of them."""
    size = len(left) + len(right)
    if size <= _SMALL:
        distinct, found = np.unique(np.concatenate((left, right)), return_inverse=True)
        return found[: len(left)], found[len(left) :], len(distinct)
    low, span = _range(left, right)
    if span <= _SPREAD * size:
        return left - low, right - low, span
    distinct, found = number_integers(np.concatenate((left, right)))
    return found[: len(left)], found[len(left) :], len(distinct)


def _range(left: Ints, right: Ints) -> tuple[int, int]:
    """Return the least of some ids, and how many there may be from it to the largest: at least one id."""
    low = min(int(each.min()) for each in (left, right) if len(each))
    return low, max(int(each.max()) for each in (left, right) if len(each)) - low + 1


def _taken(column: arrow.ChunkedArray, at: Ints) -> arrow.ChunkedArray:
    """Return the values at some places; null below 0."""
    array = column.combine_chunks()
    if len(at) == len(array) and bool((at == np.arange(len(at))).all()):
        return column
    return _in_pieces(taken(array, at))


def _taken_later(column: arrow.ChunkedArray, at: Ints) -> arrow.ChunkedArray:
    """Return what :func:`_taken` does, taken when it is asked for: nobody may."""
    width = _width(column.type)
    if len(at) <= _SMALL or width is None:
        return _taken(column, at)
    if _is_repeated(column) and not at.any():
        return arrow.ChunkedArray([arrow.repeated(int(values(column)[0]), len(at))])
    return arrow.DelayedArray(column.type, len(at), len(at) * width, lambda: _taken(column, at).chunks)


def _width(type: arrow.DataType) -> int | None:
    """Return the bytes of a value of a type; None where they differ."""
    if arrow.is_struct(type):
        fields = [_width(field.type) for field in type.fields]
        known = [each for each in fields if each is not None]
        return sum(known) if len(known) == len(fields) else None
    return type.dtype.itemsize if type.is_fixed else None


def _is_repeated(column: arrow.ChunkedArray) -> bool:
    """Whether a column has one integer, of which any number of rows takes no memory."""
    return len(column) == 1 and column.type == arrow.INT64 and not column.null_count


def _in_pieces(array: arrow.Array) -> arrow.ChunkedArray:
    starts = range(0, len(array), _PIECE)
    return arrow.ChunkedArray([array.slice(start, _PIECE) for start in starts], array.type)
