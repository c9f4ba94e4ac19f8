"""Groups of many rows, a piece of these at a time on several threads: what each piece has of a group is added up.

Rows of a piece are computed, numbered and aggregated while they are in the processor's cache, and a few rows are left
of it, one for each of its groups (Shatdal and Naughton, *Adaptive Parallel Aggregation Algorithms*, SIGMOD 1995,
section 2.2).  Where groups turn out to be many, nothing is gained by it, and the rows are grouped all at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal

import numpy as np

from graphdb.common import arrow
from graphdb.relational.vectors.algebra import Aggregate, Clause, ColumnOf, PropertyOf, Vector, names_of
from graphdb.relational.vectors.expressions import evaluated, fulfilled
from graphdb.relational.vectors.frames import Frame, Maker, made_once
from graphdb.relational.vectors.grouped.groups import aggregated, grouped
from graphdb.relational.vectors.large import CodeOf, is_local, with_properties
from graphdb.relational.vectors.numbers import numeric, require
from graphdb.relational.vectors.pieces import in_pieces, rows_of_piece
from graphdb.snapshot.properties import Properties
from graphdb.storage.arrays.arrow import values

LEAST = 1 << 18
"""Rows from which on pieces are worth while."""

_FEWER = 8
"""Times by which the groups of a piece must be fewer than its rows."""

_Function = Literal["count", "sum", "min", "max"]

_PARTIAL: Mapping[str, tuple[_Function, ...]] = {
    "count": ("count",),
    "sum": ("sum",),
    "min": ("min",),
    "max": ("max",),
    "avg": ("sum", "count"),
}
"""What each piece has of an aggregate."""


def grouped_in_pieces(
    clause: Clause, table: arrow.Table, properties: Properties, check: Callable[[], None], threads: int
) -> Frame | None:
    """Return the groups of a table's rows; None where their aggregates need all rows at once.

    Raises
    ------
    NotVectorized
        Groups are too many, or for SQL to make.
    """
    aggregates = {name: each for name, each in clause.columns if isinstance(each, Aggregate)}
    keys = {name: _key(each, table, properties) for name, each in clause.columns if not isinstance(each, Aggregate)}
    parts = {
        f"{name} {function}": replace(each, function=function)
        for name, each in aggregates.items()
        for function in _PARTIAL.get(each.function, ())
    }
    operands = [each.operand for each in parts.values() if each.operand is not None]
    several = any(each.distinct or each.function not in _PARTIAL for each in aggregates.values())
    given = [key for key in keys.values() if key is not None]
    if several or len(given) < len(keys) or not all(map(is_local, [*given, *clause.where, *operands])):
        return None
    vertices = {each.vertex.name for _, each in clause.columns if isinstance(each, PropertyOf)}
    rows, vectors = with_properties(table, [*given, *clause.where, *operands], properties)
    end = len(keys) + len(clause.where)
    key_vectors = dict(zip(keys, vectors[: len(keys)], strict=True))
    where, found = tuple(vectors[len(keys) : end]), iter(vectors[end:])
    parts = {name: each if each.operand is None else replace(each, operand=next(found)) for name, each in parts.items()}
    taken = {name for vector in vectors for name in names_of(vector)} | vertices
    rows = rows.select(sorted(taken | {each.matches for each in parts.values() if each.matches}))
    size = rows_of_piece(len(table), threads)
    properties.unions()  # is asked of DuckDB once, which this thread alone may do while others work

    def made(number: int) -> arrow.Table:
        frame = fulfilled(where, Frame.of(rows.part(number * size, size)), properties)
        groups = grouped(list(key_vectors.values()), frame, properties)
        require(_FEWER * len(groups) <= size)
        first = frame.at(groups.firsts) if keys else frame
        columns = {name: evaluated(vector, first, properties) for name, vector in key_vectors.items()}
        columns |= {f"vertex {name}": first.column(name) for name in vertices}
        columns |= {name: aggregated(each, groups, frame, properties) for name, each in parts.items()}
        return arrow.table(columns)

    pieces = in_pieces(made, -(-len(table) // size), threads, check)
    require(len({tuple(piece.schema.types) for piece in pieces}) == 1)
    return _put_together(clause, Frame.of(arrow.concat_tables(pieces)), list(keys), properties)


def _key(key: Vector, table: arrow.Table, properties: Properties) -> Vector | None:
    """Return what rows are grouped by in a key's place; None of texts without codes, and of numbers of two types."""
    if not isinstance(key, PropertyOf):
        return key
    source = properties.source(key.label, len(table))
    if source is None or arrow.is_union(source.values.type):
        return None
    if not arrow.is_string(source.values.type):
        return key
    return None if source.codes() is None else CodeOf(key.vertex, key.label)


def _put_together(clause: Clause, frame: Frame, keys: list[str], properties: Properties) -> Frame:
    """Return the groups of all pieces, of a row for each group of each of them."""
    groups = grouped([ColumnOf(name) for name in keys], frame, properties)
    first = frame.at(groups.firsts) if keys else frame

    def added(name: str, function: _Function) -> arrow.Array:
        by: _Function = "sum" if function == "count" else function
        return aggregated(Aggregate(by, ColumnOf(f"{name} {function}")), groups, frame, properties)

    def maker(name: str, each: Vector | Aggregate) -> Maker:
        if isinstance(each, Aggregate):
            if each.function == "avg":
                return made_once(lambda: _mean(added(name, "sum"), added(name, "count")))
            return made_once(lambda: added(name, _PARTIAL[each.function][0]))
        if isinstance(each, PropertyOf):
            vertex = f"vertex {each.vertex.name}"
            return lambda places: evaluated(
                PropertyOf(ColumnOf(vertex), each.label), first if places is None else first.at(places), properties
            )
        return lambda places: first.some(name, places)

    return Frame(len(groups), {name: maker(name, each) for name, each in clause.columns}.__getitem__)


def _mean(sums: arrow.Array, counts: arrow.Array) -> arrow.Array:
    """Return what sums of as many values are on average; null of none."""
    sizes = numeric(counts)
    real = sums.type == arrow.FLOAT64
    found = (values(sums) if real else numeric(sums)) / np.maximum(sizes, 1)
    return arrow.numbers(found, None if sizes.all() else sizes > 0)
