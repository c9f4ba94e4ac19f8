"""Results as tables of SQL: vertices are their IRIs, edges structs of type and ends, maps structs by their keys.

What is in memory is made of arrays; where something is not, or a type has no form here, SQL makes the whole table.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from graphdb.common import arrow
from graphdb.common.arrow import numbers as numbers_of
from graphdb.common.arrow import strings
from graphdb.common.values.temporal import Duration
from graphdb.common.values.terms import LITERAL_BASE
from graphdb.common.values.types import DURATION, FLOAT, MEMBERS, STRING, Base, Column, Type, is_plain
from graphdb.relational.elements.source import Source
from graphdb.relational.vectors.typed.unions import in_floats
from graphdb.snapshot.terms import Part
from graphdb.snapshot.union_type import lists_of_unions
from graphdb.storage.arrays.arrow import values as plain
from graphdb.storage.arrays.texts import firsts_of, number_rows, taken

_SEVERAL = 1000
"""Durations from which on each is written once, however often it comes."""


def present(source: Source, table: arrow.Table, columns: tuple[Column, ...]) -> arrow.Table:
    """Return a result's table as a user of SQL sees it."""
    from graphdb.relational.projection import presentation

    if table.num_rows > _SEVERAL:
        texts = [i for i, column in enumerate(columns) if column.type.base is Base.DURATION]
        table = table.with_columns({i: _durations(source, table.column(i).combine_chunks()) for i in texts})
        columns = tuple(replace(column, type=STRING) if i in texts else column for i, column in enumerate(columns))
    reals = [i for i, column in enumerate(columns) if presentation.shows_floats(column)]
    if reals:
        parts = {i: [in_floats(chunk) for chunk in table.column(i).chunks] for i in reals}
        table = table.with_columns({i: arrow.ChunkedArray(each, arrow.FLOAT64) for i, each in parts.items()})
        columns = tuple(replace(column, type=FLOAT) if i in reals else column for i, column in enumerate(columns))
    found = presented(source, table, columns)
    if found is not None:
        return found
    view = source.connection.temporary()
    with source.connection.view(view, table):
        return source.connection.arrow(presentation.presented(view, columns))


def _durations(source: Source, array: arrow.Array) -> arrow.Array:
    """Return the texts of durations, each of which is written once."""
    from graphdb.relational.projection import presentation

    parts = [plain(part) for part in array.children]
    which = number_rows([*parts, array.is_valid().astype(np.int64)] if array.null_count else parts)
    firsts = firsts_of(which)
    if len(firsts) <= _SEVERAL and not array.null_count:  # to plan SQL for their texts takes longer
        rows = zip(*(part[firsts].tolist() for part in parts), strict=True)
        return taken(strings([str(Duration(*row)) for row in rows]), which)
    view = source.connection.temporary()
    with source.connection.view(view, arrow.table([array.take(firsts)], ["c0"])):
        texts = source.connection.arrow(presentation.presented(view, (Column("c0", "c0", DURATION),)))
    return taken(texts.column(0).combine_chunks(), which)


def presented(source: Source, table: arrow.Table, columns: tuple[Column, ...]) -> arrow.Table | None:
    """Return a result's table as a user of SQL sees it, from memory; None where SQL has to do it."""
    for i, column in enumerate(columns):
        if not is_plain(column.type) and (column.type.base not in _GRAPH or table.column(i).null_count):
            return None
    asked = {column.type.base for column in columns}.intersection(_GRAPH)
    parts: tuple[Part, ...] = ("resources",) if asked == {Base.NODE} else ("resources", "literals")
    if asked and not source.lookup.ready(*parts, wanted=len(table)):
        return None
    shown = [
        _listed(source, column.type, table.column(i).combine_chunks())
        if column.type.base is Base.TUPLE
        else _named(column.type, table.column(i).combine_chunks())
        if _has_maps(column.type)
        else _shown(source, table.column(i), column.type.base)
        for i, column in enumerate(columns)
    ]
    return arrow.table(shown, [column.sql_name for column in columns])


_GRAPH = (Base.NODE, Base.TERM, Base.EDGE)
"""Types whose values are ids of what is in the graph."""


def _has_maps(type: Type) -> bool:
    return type.base is Base.MAP or (type.element is not None and _has_maps(type.element))


def _named(type: Type, array: arrow.Array) -> arrow.Array:
    """Return values with the keys of their maps."""
    if type.base is Base.MAP:
        fields = [_named(field, array.field(i)) for i, (_, field) in enumerate(type.fields)]
        return arrow.struct_array(fields, [key for key, _ in type.fields], array.valid)
    if type.base is Base.LIST and type.element is not None and _has_maps(type.element):
        assert array.offsets is not None
        return arrow.list_array(array.offsets, _named(type.element, array.children[0]), array.valid)
    return array


def _listed(source: Source, type: Type, array: arrow.Array) -> arrow.Array:
    """Return lists of unions, as DuckDB has them, of lists whose items stand side by side."""
    length, count = len(type.fields), len(array)
    found = lists_of_unions(source.connection)
    kinds, places = np.zeros(count * length, np.int8), np.arange(count * length).reshape(count, length)
    numbers = list(MEMBERS)
    children = []
    for number, member in enumerate(found.value_type):
        mine = [i for i, (_, field) in enumerate(type.fields) if numbers[number] is field.base]
        if not mine:
            children.append(arrow.nulls(count * length, member.type))
            continue
        fields = [array.field(i).cast(member.type) for i in mine]
        sources = np.full(count * length, count * len(mine))  # that of the null behind them
        for j, i in enumerate(mine):
            sources[places[:, i]] = np.arange(j * count, (j + 1) * count)
            kinds[places[:, i]] = np.where(fields[j].is_valid(), number, 0)
        children.append(arrow.concat_arrays([*fields, arrow.nulls(1, member.type)]).take(numbers_of(sources)))
    names = [member.name for member in found.value_type]
    items = arrow.union_array(kinds, children, names)
    return arrow.list_array(np.arange(0, count * length + 1, length), items, array.valid, found)


def _shown(source: Source, column: arrow.Array | arrow.ChunkedArray, base: Base) -> Any:
    """A column's vertices as IRIs, literals by their lexical forms, edges as structs of names."""
    lookup, names = source.lookup, source.names
    match base:
        case Base.NODE:
            return lookup.iris(column)
        case Base.TERM:
            ids = plain(column)
            is_literal = ids >= LITERAL_BASE
            iris = lookup.iris(numbers_of(ids, ~is_literal))
            lexical = lookup.lexical(numbers_of(ids - LITERAL_BASE, is_literal))
            places = np.arange(len(ids)) + np.where(is_literal, len(ids), 0)
            return arrow.concat_arrays([iris, lexical.cast(iris.type)]).take(places)
        case Base.EDGE:
            flat = column if isinstance(column, arrow.Array) else column.combine_chunks()
            labels, which = np.unique(plain(flat.field("label")), return_inverse=True)
            written = strings([names.edge_name(label) for label in labels.tolist()])
            ends = [_shown(source, flat.field(end), Base.TERM) for end in ("start", "end")]
            return arrow.struct_array([written.take(numbers_of(which)), *ends], ["type", "start", "end"])
    return column
