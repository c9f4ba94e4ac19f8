"""Runs clauses over rows in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace

import numpy as np

from graphdb.common import arrow
from graphdb.relational.vectors.algebra import (
    Aggregate,
    Clause,
    ColumnOf,
    Inner,
    Lookup,
    OfItems,
    One,
    Operation,
    Outer,
    Rows,
    Union,
    Unwound,
    Vector,
)
from graphdb.relational.vectors.counted.compressed import compressed, without_columns_between
from graphdb.relational.vectors.expressions import evaluated, fulfilled, has_few_texts
from graphdb.relational.vectors.frames import Frame, Maker, made_once
from graphdb.relational.vectors.grouped.groups import aggregated, grouped
from graphdb.relational.vectors.large import MANY, each_in_pieces, over_computed
from graphdb.relational.vectors.lookups import (
    counted_before,
    counts_before,
    inner_joined,
    looked_up,
    outer_joined,
    summed_before,
    unwound,
)
from graphdb.relational.vectors.numbers import NotVectorized
from graphdb.relational.vectors.order import ordered, ordered_within
from graphdb.relational.vectors.partial_groups import LEAST, grouped_in_pieces
from graphdb.relational.vectors.products import Product, pairs
from graphdb.relational.vectors.typed.unions import with_unions
from graphdb.snapshot.properties import Properties

_LARGE = 1 << 17
"""Rows from which on DuckDB computes expressions faster, on many threads, where each row has to be computed."""

_THREADS = 4
"""Threads up to which it does not: for a row it takes three times as long, and more as it begins.  There the memory is
the limit, …"""

_ROW_BYTES = 256
"""… of which a row takes as much with the columns between."""

_SHARED = 1 << 19
"""Rows from which on DuckDB's threads make lists for each row, and find percentiles, sooner than one thread here."""


def most_computed(threads: int, memory: int) -> int:
    """Return of how many rows each is computed here, at most, by as many threads as DuckDB has, in some bytes."""
    return max(_LARGE, memory // _ROW_BYTES) if threads <= _THREADS else _LARGE


def run(
    rows: Rows,
    tables: Mapping[str, arrow.Table],
    properties: Properties,
    check: Callable[[], None],
    threads: int = 1,
    *,
    most: int = _LARGE,
    products: Mapping[str, Product] | None = None,
) -> arrow.Table | None:
    """Return the rows that a clause makes; None where SQL has to: some are not in memory, too many, or of other types.

    Parameters
    ----------
    tables
        The rows in memory, by their names.
    check
        Called between operations; may raise.
    threads
        How many work.
    most
        Rows of which each is computed, at most.
    products
        Pairs of rows that are made as far as conditions leave them, by their names.
    """
    try:
        frame, names = _frame(rows, tables, properties, check, most, threads, products or {})
        return arrow.table({name: frame.chunked(name) for name in names}) if names else None
    except NotVectorized:
        return None


def _frame(
    rows: Rows,
    tables: Mapping[str, arrow.Table],
    properties: Properties,
    check: Callable[[], None],
    most: int,
    threads: int,
    products: Mapping[str, Product],
) -> tuple[Frame, list[str]]:
    check()
    if isinstance(rows, str):
        table = tables.get(rows)
        if table is None:
            raise NotVectorized
        return Frame.of(table), table.column_names
    if isinstance(rows, One):
        return Frame.of(arrow.table({rows.column: np.ones(1, np.int32)})), [rows.column]
    if isinstance(rows, Union):
        parts = [_frame(part, tables, properties, check, most, threads, products) for part in rows.parts]
        names = parts[0][1]
        if not names:  # a table of no columns would have no rows
            return Frame(sum(len(frame) for frame, _ in parts), dict[str, Maker]().__getitem__), names
        pieces = [arrow.table({name: frame.column(name) for name in names}) for frame, _ in parts]
        if rows.mixed:
            pieces = [with_unions(piece, rows.mixed, properties.unions()) for piece in pieces]
        if len({tuple(piece.schema.types) for piece in pieces}) > 1:
            raise NotVectorized
        return Frame.of(arrow.concat_tables(pieces)), names
    if isinstance(rows, Lookup):
        frame, names = _frame(rows.rows, tables, properties, check, most, threads, products)
        others, _ = _frame(rows.others, tables, properties, check, most, threads, products)
        check()
        return looked_up(rows, frame, others), [*names, *(name for name, _, _ in rows.added)]
    if isinstance(rows, Outer):
        frame, names = _frame(rows.rows, tables, properties, check, most, threads, products)
        others, _ = _frame(rows.others, tables, properties, check, most, threads, products)
        check()
        return outer_joined(rows, frame, others), [*names, *(name for name, _ in rows.added)]
    if isinstance(rows, Inner):
        frame, names = _frame(rows.rows, tables, properties, check, most, threads, products)
        others, _ = _frame(rows.others, tables, properties, check, most, threads, products)
        check()
        return inner_joined(rows, frame, others, most), [*names, *(name for name, _ in rows.added)]
    if isinstance(rows, Unwound):
        frame, names = _frame(rows.rows, tables, properties, check, most, threads, products)
        check()
        return unwound(rows, fulfilled(rows.where, frame, properties), properties, most), [*names, rows.name]
    if rows.grouped and (summed := _summed(rows)) is not None:
        return _frame(summed, tables, properties, check, most, threads, products)
    each = each_in_pieces(rows, tables, properties, check, threads)
    if each is not None:
        return Frame.of(each), each.column_names
    smaller = _compressed(rows, tables, properties, check, threads, most)
    if smaller is None and (made := _grouped_in_pieces(rows, tables, properties, check, threads)) is not None:
        return _windowed(rows, made, properties)
    if smaller is not None:
        rows, frame = smaller
    else:
        if _rows_below(rows, tables) >= MANY and (over := over_computed(rows)) is not None:
            rows = over
        join = rows.rows
        product = products.get(join) if isinstance(join, str) else None
        if product is not None:
            frame, where = pairs(product, rows.where, properties, threads, check)
            rows = replace(rows, where=where)
        elif isinstance(join, Outer) and (counting := counts_before(rows, join)) is not None:
            frame, _ = _frame(join.rows, tables, properties, check, most, threads, products)
            others, _ = _frame(join.others, tables, properties, check, most, threads, products)
            check()
            rows, frame = counting, counted_before(join, frame, others)
        else:
            frame, _ = _frame(join, tables, properties, check, most, threads, products)
        if len(frame) > most and _computes(rows):
            raise NotVectorized
        frame = fulfilled(rows.where, frame, properties)
    if len(frame) >= _SHARED and threads > 1 and any(_takes_one_thread(vector) for _, vector in rows.columns):
        raise NotVectorized
    check()
    if rows.grouped:
        made = _groups(rows, frame, properties)
        check()
        return _windowed(rows, made, properties)
    if rows.within is not None:
        made = _each(rows, ordered_within(rows.within, rows.order, rows.window, frame, properties), properties)
    else:
        made = _each(rows, ordered(rows.order, rows.window, frame, properties), properties)
    return _numbered(rows, made)


def _windowed(clause: Clause, groups: Frame, properties: Properties) -> tuple[Frame, list[str]]:
    """Return the rows of a clause, of its groups, and the names of their columns."""
    return _numbered(clause, ordered(clause.order, clause.window, groups, properties))


def _numbered(clause: Clause, made: Frame) -> tuple[Frame, list[str]]:
    """Return the rows of a clause with their numbers, where these are a column, and the names of all columns."""
    names = [name for name, _ in clause.columns]
    if clause.numbered is None:
        return made, names
    return _with_numbers(made, names, clause.numbered), [*names, clause.numbered]


def _grouped_in_pieces(
    clause: Clause, tables: Mapping[str, arrow.Table], properties: Properties, check: Callable[[], None], threads: int
) -> Frame | None:
    """Return the groups of many rows of a table, a piece of them at a time; None where they are not made so."""
    if threads == 1 or not clause.grouped or _rows_below(clause, tables) < LEAST:
        return None
    with suppress(NotVectorized):
        clause = without_columns_between(clause)
        keys = [each for _, each in clause.columns if not isinstance(each, Aggregate)]
        if not keys and not any(isinstance(each, Aggregate) and _is_made(each) for _, each in clause.columns):
            return None  # columns that stand there are added up before another thread has begun
        if isinstance(clause.rows, str):
            return grouped_in_pieces(clause, tables[clause.rows], properties, check, threads)
    return None


def _summed(clause: Clause) -> Clause | None:
    """Return a clause over values that are unwound as one over the rows before that; None where it is none."""
    below: Rows = clause
    while isinstance(below, Clause):
        below = below.rows
    if not isinstance(below, Unwound):
        return None
    with suppress(NotVectorized):
        clause = without_columns_between(clause)
    return summed_before(clause, below) if clause.rows is below else None


def _is_made(aggregate: Aggregate) -> bool:
    """Whether something is made of each value before it is aggregated, or values are sorted."""
    made = isinstance(aggregate.operand, Operation | OfItems)
    return made or aggregate.function in ("percentileCont", "percentileDisc")


def _takes_one_thread(vector: Vector | Aggregate) -> bool:
    """Whether an expression is a percentile, or has items of lists."""
    match vector:
        case Aggregate(function, operand):
            ranked = function in ("percentileCont", "percentileDisc")
            return ranked or (operand is not None and _takes_one_thread(operand))
        case Operation(_, operands):
            return any(map(_takes_one_thread, operands))
    return isinstance(vector, OfItems)


def _computes(clause: Clause) -> bool:
    """Whether something is computed of each of the rows, not only of those that LIMIT leaves."""
    vectors: list[Vector | Aggregate] = [key.vector for key in clause.order]
    if clause.grouped or clause.window[1] is None:
        vectors += [vector for _, vector in clause.columns]
    return any(
        isinstance(vector, OfItems)
        or (
            isinstance(vector, Operation)
            and vector.operator not in ("edge", "edge of both", "path")
            and not (clause.grouped and has_few_texts(vector))
        )
        for vector in vectors
    )


def _rows_below(clause: Clause, tables: Mapping[str, arrow.Table]) -> int:
    """Return how many rows a clause's table has; 0 where it is over anything else."""
    below: Rows = clause
    while isinstance(below, Clause):
        below = below.rows
    return len(tables[below]) if isinstance(below, str) and below in tables else 0


def _compressed(
    clause: Clause,
    tables: Mapping[str, arrow.Table],
    properties: Properties,
    check: Callable[[], None],
    threads: int,
    most: int,
) -> tuple[Clause, Frame] | None:
    """Return a clause over some of its rows that stand for all, where they are many that are grouped by a handful of
    values; None where they are not.

    Raises
    ------
    NotVectorized
        They are not, and something is computed of each.
    """
    below: Rows = clause
    computed = of_computed = False
    while isinstance(below, Clause):
        computed = computed or any(isinstance(vector, Operation) for _, vector in below.columns)
        of_computed = of_computed or any(isinstance(each, Aggregate) and _is_made(each) for _, each in below.columns)
        below = below.rows
    table = tables.get(below) if isinstance(below, str) else None
    least = min(MANY, _LARGE + 1) if computed or of_computed else _LARGE + 1
    if table is None or len(table) < least or not clause.grouped:
        return None
    if not (computed or of_computed) and all(isinstance(vector, Aggregate) for _, vector in clause.columns):
        return None  # one group
    try:
        large = len(table) > _LARGE  # of fewer, to compute something of each is no more work than to combine them
        return compressed(without_columns_between(clause), table, properties, check, threads, combines=large)
    except NotVectorized:
        if len(table) > max(_LARGE, most) and computed and over_computed(clause) is None:
            raise
        return None


def _groups(clause: Clause, frame: Frame, properties: Properties) -> Frame:
    """Return the groups of rows."""
    keys = [vector for _, vector in clause.columns if not isinstance(vector, Aggregate)]
    groups = grouped(keys, frame, properties)
    firsts = frame.at(groups.firsts) if keys and groups.firsts is not groups.numbers else frame

    def maker(vector: Vector | Aggregate) -> Maker:
        if isinstance(vector, Aggregate):
            return made_once(lambda: aggregated(vector, groups, frame, properties))
        return _maker(vector, firsts, properties)

    return Frame(len(groups), {name: maker(vector) for name, vector in clause.columns}.__getitem__)


def _each(clause: Clause, frame: Frame, properties: Properties) -> Frame:
    """Return a row for each row."""
    columns = {name: vector for name, vector in clause.columns if not isinstance(vector, Aggregate)}
    return Frame(len(frame), lambda name: _maker(columns[name], frame, properties))


def _maker(vector: Vector, frame: Frame, properties: Properties) -> Maker:
    if isinstance(vector, ColumnOf):
        return lambda places: frame.some(vector.name, places)
    return lambda places: evaluated(vector, frame if places is None else frame.at(places), properties)


def _with_numbers(frame: Frame, names: list[str], column: str) -> Frame:
    makers = {name: _maker_of(frame, name) for name in names}
    makers[column] = made_once(lambda: arrow.numbers(np.arange(1, len(frame) + 1)))
    return Frame(len(frame), makers.__getitem__)


def _maker_of(frame: Frame, name: str) -> Maker:
    return lambda places: frame.some(name, places)
