"""Groups of many rows by what is computed of a handful of values: such rows are counted before anything is computed.

Conditions such as ``CASE WHEN m.length < 40 …`` and the year of a moment have as many results as the values that they
take, and these are often a hundred where there are a million rows.  Rows that have the same of all values that a clause
takes become one row, and how many they were (eager aggregation: Yan and Larson, *Eager Aggregation and Lazy
Aggregation*, VLDB 1995, section 3); expressions, groups and aggregates are then those of these rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np

from graphdb.common import arrow
from graphdb.relational.vectors.algebra import (
    Aggregate,
    Clause,
    ColumnOf,
    Constant,
    LabelOf,
    OfItems,
    Operation,
    PropertyOf,
    Vector,
    names_of,
)
from graphdb.relational.vectors.counted.codes import Codes, Parts, leaves, the_one
from graphdb.relational.vectors.counted.sums import ADDED, Sums
from graphdb.relational.vectors.expressions import evaluated, fulfilled
from graphdb.relational.vectors.frames import Frame, Ints
from graphdb.relational.vectors.grouped.groups import weights
from graphdb.relational.vectors.grouped.numbering import range_of
from graphdb.relational.vectors.numbers import NotVectorized, is_repeated, multiplied, require, sums
from graphdb.relational.vectors.pieces import in_pieces, rows_of_piece
from graphdb.snapshot.properties import Properties

_FEWER = 8
"""Times by which the combinations of values must be fewer than the rows of a piece."""

_PIECE = 1 << 17
"""Rows of a piece on one thread."""

_ROWS = "number of rows"
"""The column of how many rows one stands for."""


def compressed(
    clause: Clause,
    table: arrow.Table,
    properties: Properties,
    check: Callable[[], None],
    threads: int = 1,
    *,
    combines: bool = True,
) -> tuple[Clause, Frame]:
    """Return a clause that groups the rows of a table, and rows for it: one for all that have the same values.

    Rows are counted in pieces that stay in the processor's cache, on several threads where something is computed of
    them and nobody but these reads anything for it; without ``combines`` only where their values stand.

    Raises
    ------
    NotVectorized
        There are too many combinations of values, they are not the table's, or it matters which rows they are of.
    """
    aggregates = [each for _, each in clause.columns if isinstance(each, Aggregate)]
    matches = {each.matches for each in aggregates if each.function not in ("min", "max") and not each.distinct}
    if not isinstance(clause.rows, str) or len(matches) > 1 or any(each.function == "collect" for each in aggregates):
        raise NotVectorized  # a list has something of each row
    weight = next(iter(matches), None)
    taken = [each.operand if isinstance(each, Aggregate) else each for _, each in clause.columns]
    names = sorted({name for vector in taken if vector is not None for name in names_of(vector)})
    vectors = [*(vector for vector in taken if vector is not None), *clause.where]
    columns = tuple(
        (name, replace(each, matches=_ROWS) if isinstance(each, Aggregate) else each) for name, each in clause.columns
    )
    with suppress(NotVectorized):
        counted, rows = _counted(clause, table, weight, properties, check, threads)
        return counted, fulfilled(clause.where, Frame.of(rows), properties)
    require(combines)
    if any(not _has_numbers(table.column(name).type) for vector in taken if vector for name in _own_columns(vector)):
        raise NotVectorized  # before threads begin
    # Counting alone is done in a millisecond or two, in which threads but wait for one another.
    alone = any(map(_reads, vectors)) or not any(isinstance(vector, Operation) for vector in vectors)
    threads = 1 if alone else threads
    size = _PIECE if threads == 1 else rows_of_piece(len(table), threads)
    fewer = _combined(clause, taken, names, table, weight, properties, check, size, threads)
    if len(table) > size and len(fewer):  # the same combinations come in each piece
        with suppress(NotVectorized):
            fewer = _combined(replace(clause, where=()), taken, names, fewer, _ROWS, properties, check, len(fewer))
    return replace(clause, where=(), columns=columns), Frame.of(fewer)


def _counted(
    clause: Clause,
    table: arrow.Table,
    weight: str | None,
    properties: Properties,
    check: Callable[[], None],
    threads: int,
) -> tuple[Clause, arrow.Table]:
    """Return what :func:`compressed` does, of rows that are counted where their values stand: in one pass over them
    all, in which values of which many differ are added up.

    Raises
    ------
    NotVectorized
        They do not stand so that this can be done.
    """
    codes = Codes(table, properties)
    each = 1 if weight is None else the_one(table.column(weight))
    keys = [vector for _, vector in clause.columns if not isinstance(vector, Aggregate)]
    require(each is not None and all(map(codes.take, (*keys, *clause.where))))
    assert each is not None
    sums = Sums(codes, _ROWS)
    columns: dict[str, Vector | Aggregate] = dict(clause.columns)
    for name, aggregate in sorted(columns.items(), key=lambda column: getattr(column[1], "function", "") in ADDED):
        if isinstance(aggregate, Aggregate):
            over = sums.aggregate(aggregate)
            require(over is not None)
            assert over is not None
            columns[name] = over
    found = codes.counted(threads, check)
    counts = found.counts if each == 1 else multiplied(found.counts, np.array([each]))
    made = sums.columns(found.totals, each) | {_ROWS: arrow.numbers(counts)}
    vectors = [vector.operand if isinstance(vector, Aggregate) else vector for vector in columns.values()]
    taken = {name for vector in (*vectors, *clause.where) if vector is not None for name in names_of(vector)}
    rows = arrow.table(codes.rows_at(sorted(taken - made.keys()), found.places) | made)
    return replace(clause, where=(), columns=tuple((name, columns[name]) for name, _ in clause.columns)), rows


def _combined(
    clause: Clause,
    taken: Sequence[Vector | None],
    names: Sequence[str],
    table: arrow.Table,
    weight: str | None,
    properties: Properties,
    check: Callable[[], None],
    piece: int,
    threads: int = 1,
) -> arrow.Table:
    """Return some columns of one row for each combination of what expressions take, piece by piece, and how many rows
    have it, or what a column ``weight`` of theirs adds up to.
    """

    def combined(number: int) -> arrow.Table:
        rows = Frame.of(table.part(number * piece, piece))
        found = _Combinations(fulfilled(clause.where, rows, properties), properties)
        if not all(found.take(vector) for vector in taken if vector is not None):
            raise NotVectorized
        some, counts = found.rows(weight)
        chosen = found.frame.at(some)
        return arrow.table({name: chosen.column(name) for name in names} | {_ROWS: arrow.numbers(counts)})

    return arrow.concat_tables(in_pieces(combined, -(-len(table) // piece), threads, check))


def _has_numbers(type: arrow.DataType) -> bool:
    """Whether values are integers, truth values or dates, which combinations are numbered by."""
    return arrow.is_integer(type) or type == arrow.BOOL or arrow.is_date(type)


def _own_columns(vector: Vector) -> set[str]:
    """Return the columns whose values an expression takes as they are, not as vertices or edges."""
    return {each.name for each in leaves(vector) if isinstance(each, ColumnOf)}


def _reads(vector: Vector) -> bool:
    """Whether properties are looked up for an expression, which may ask DuckDB for them."""
    if isinstance(vector, Operation):
        return any(map(_reads, vector.operands))
    return isinstance(vector, PropertyOf | OfItems)


@dataclass
class _Combinations(Parts):
    """The different combinations of the values that expressions take."""

    frame: Frame
    properties: Properties
    numbers: dict[Vector, tuple[Ints, int, int]] = field(default_factory=dict)
    """What the expressions consist of: integers of its values, the least of them, and of how many they are."""
    count: int = 1
    """A bound of how many combinations there are."""

    def number(self, vector: Vector) -> bool:
        """Number the values of an expression; False where they are too many."""
        if vector in self.numbers:
            return True
        array = evaluated(vector, self.frame, self.properties)
        if not _has_numbers(array.type):
            return False
        found = range_of(array, _PIECE // _FEWER // self.count)
        if found is None:
            return False
        self.numbers[vector] = found
        self.count *= found[2]
        return True

    def rows(self, matches: str | None) -> tuple[Ints, Ints]:
        """Return a row of each combination (its place), and how many rows have it, or the sum of a column of theirs."""
        from graphdb.storage.arrays import column_kernels as kernels

        several = [each for each in self.numbers.values() if each[2] > 1]
        (whole, least, _), *rest = several or [(np.zeros(len(self.frame), np.int64), 0, 1)]
        weighted = weights(self.frame, matches)
        if rest or not (weighted is None or is_repeated(weighted)):
            whole, least = whole - least, 0
        for numbers, low, span in rest:
            kernels.pack(np.ascontiguousarray(numbers), low, span, whole)
        place, counts = np.full(self.count, -1, np.int64), np.zeros(self.count, np.int64)
        kernels.tally(np.ascontiguousarray(whole), least, counts, place)
        if weighted is not None:
            counts = sums(whole, weighted, self.count, counts)
        there = np.flatnonzero(place >= 0)
        return place[there], counts[there]


def without_columns_between(clause: Clause) -> Clause:
    """Return a clause over the rows that one before it starts from, where that only computes columns of them."""
    inner = clause.rows
    if not isinstance(inner, Clause) or inner.grouped or inner.order or inner.numbered or inner.window != (0, None):
        return clause
    names = {name: vector for name, vector in inner.columns if not isinstance(vector, Aggregate)}
    columns: list[tuple[str, Vector | Aggregate]] = []
    for name, each in clause.columns:
        if isinstance(each, Aggregate):
            operand = None if each.operand is None else _replaced(each.operand, names)
            matches = None if each.matches is None else _column_of(ColumnOf(each.matches), names).name
            columns.append((name, replace(each, operand=operand, matches=matches)))
        else:
            columns.append((name, _replaced(each, names)))
    where = (*inner.where, *(_replaced(condition, names) for condition in clause.where))
    return without_columns_between(replace(clause, rows=inner.rows, where=where, columns=tuple(columns)))


def _replaced(vector: Vector, names: Mapping[str, Vector]) -> Vector:
    match vector:
        case ColumnOf(name):
            return names[name]
        case PropertyOf(vertex, label):
            return PropertyOf(_column_of(vertex, names), label)
        case LabelOf(code):
            return replace(vector, code=_column_of(code, names))
        case Operation(_, operands):
            return replace(vector, operands=tuple(_replaced(operand, names) for operand in operands))
        case OfItems(lists=lists, name=name, start=start):
            needed = {column: names[column] for each in vector.inner for column in names_of(each) - {name}}
            if any(isinstance(each, Operation | OfItems) or name in names_of(each) for each in needed.values()):
                raise NotVectorized  # they would have to be computed for each item
            inside = {**needed, name: ColumnOf(name)}

            def replaced(each: Vector | None, by: Mapping[str, Vector]) -> Vector | None:
                return None if each is None else _replaced(each, by)

            where, result = replaced(vector.where, inside), replaced(vector.result, inside)
            lists = _replaced(lists, names)
            return replace(vector, lists=lists, where=where, result=result, start=replaced(start, names))
        case Constant():
            return vector


def _column_of(column: ColumnOf, names: Mapping[str, Vector]) -> ColumnOf:
    found = names[column.name]
    if not isinstance(found, ColumnOf):
        raise NotVectorized
    return found
