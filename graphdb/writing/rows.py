"""The rows of a statement between two clauses: Python's values where clauses go row by row, a table where SQL goes on.

Rows are read as an Arrow table where they are few, else as a temporary table; each form is made of the other when it is
asked for.  What a clause that goes row by row adds to them (vertices, edges and paths) is written beside the rows that
it was given: their own values never leave SQL and come back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from graphdb.common.lazy import lazy
from graphdb.common.values.literals import value_of
from graphdb.common.values.temporal import Duration, from_python
from graphdb.common.values.terms import XSD
from graphdb.common.values.types import ANY, CODE_BITS, LABEL_OF, Base, Column, Type, tidied
from graphdb.interpret.context import Row
from graphdb.interpret.order_key import value_key
from graphdb.interpret.values import Edge, Path, Several, Vertex
from graphdb.relational.projection.relation import Source
from graphdb.results.decode import Arrays
from graphdb.sql.value import column, column_at
from graphdb.storage.arrays.arrow import numbers
from graphdb.storage.arrays.python_values import pylist
from graphdb.writing.kept import Kept, Tables

if TYPE_CHECKING:
    import pyarrow as pa

AT = "#at"
"""The number of a row, in Python."""

Keys = dict[bytes, Any]
"""The values that SQL knows by a key: those of all stages."""


class Rows:
    """Rows, in either form."""

    def __init__(
        self,
        count: int,
        listed: Callable[[], list[Row]],
        table: Callable[[], Kept],
        *,
        is_unit: bool = False,
        in_python: bool = False,
    ) -> None:
        self.count = count
        self.is_unit = is_unit
        """Whether it is the one row without names that a statement starts from."""
        self.in_python = in_python
        """Whether there is no table of them: no later clause asks SQL for anything."""
        self._listed = listed
        self._table = table

    @lazy
    def listed(self) -> list[Row]:
        """The rows as values by name, each with its number."""
        return self._listed()

    @lazy
    def kept(self) -> Kept:
        """The rows as a table."""
        return self._table()

    def chosen(self, name: str, value: bool) -> Rows:
        """Return the rows of which a boolean has a value."""
        listed = [row for row in self.listed if row[name] is value]

        def table() -> Kept:
            return self.kept.where(f"{self.kept.values[name].sql} = {value}")

        return Rows(len(listed), lambda: listed, table)


def unit() -> Rows:
    """Return the one row without names that a statement starts from."""
    source = Source("(SELECT 0::BIGINT AS at)")
    return Rows(1, lambda: [{AT: 0}], lambda: Kept(source, 1), is_unit=True)


def of_arrow(tables: Tables, found: pa.Table | Arrays, columns: Sequence[Column], keys: Keys) -> Rows:
    """Return rows that were read into memory: columns ``c0 …``."""
    table = found.table() if isinstance(found, Arrays) else found
    named = {each.name: i for i, each in enumerate(columns) if each.name != "#"}

    def listed() -> list[Row]:
        return _rows_of(table, columns, named, keys, table.num_rows)

    def kept() -> Kept:
        values, arrays = {}, {"at": numbers(np.arange(table.num_rows))}
        for name, i in named.items():
            array, type = table.column(i), columns[i].type
            if type.base is Base.MOMENT:
                array, type = _as_keys(array, type, keys), ANY
            arrays[f"c{i}"] = array
            values[name] = column_at(f"c{i}", replace(columns[i], type=type))
        return Kept(tables.of_arrow(arrays), table.num_rows, values)

    return Rows(table.num_rows, listed, kept)


def of_table(tables: Tables, kept: Kept, columns: Sequence[Column], keys: Keys) -> Rows:
    """Return rows that are a table already, with columns of these types by their names in :attr:`Kept.values`."""

    def listed() -> list[Row]:
        chosen = [each for each in columns if each.name in kept.values]
        sql = "".join(f", {kept.values[each.name].sql} AS c{i}" for i, each in enumerate(chosen))
        table = tables.arrow(f"SELECT b.at{sql} FROM {kept.source} b ORDER BY b.at ASC")
        numbers, table = table.column(0).to_pylist(), table.remove_column(0)
        rows = _rows_of(table, chosen, {each.name: i for i, each in enumerate(chosen)}, keys, len(numbers))
        for row, number in zip(rows, numbers, strict=True):
            row[AT] = number
        return rows

    return Rows(kept.count, listed, lambda: kept)


def of_python(tables: Tables, rows: list[Row], before: Rows, types: Mapping[str, Type]) -> Rows:
    """Return the rows that a clause made of those ``before``, with new names of these types."""
    origins = [row[AT] for row in rows]
    for at, row in enumerate(rows):
        row[AT] = at

    def kept() -> Kept:
        old, new = before.kept, [name for name in types if name not in before.kept.values]
        arrays = {"at": numbers(np.arange(len(rows))), "row": numbers(np.array(origins, np.int64))}
        for i, name in enumerate(new):
            arrays[f"n{i}"] = _arrow_of([row[name] for row in rows], types[name])
        source = tables.of_arrow(arrays)
        if not old.values:
            return Kept(source, len(rows), {name: column(f"n{i}", types[name]) for i, name in enumerate(new)})
        chosen = "".join(f", {value.sql} AS w{i}" for i, value in enumerate(old.values.values()))
        added = "".join(f", n.n{i}" for i in range(len(new)))
        joined = f"SELECT n.at{chosen}{added} FROM {source} n JOIN {old.source} b ON b.at = n.row ORDER BY n.at ASC"
        values = {
            name: column(f"w{i}", value.type, many=value.many, bases=value.bases)
            for i, (name, value) in enumerate(old.values.items())
        }
        values |= {name: column(f"n{i}", types[name]) for i, name in enumerate(new)}
        return Kept(tables.rows(joined), len(rows), values)

    return Rows(len(rows), lambda: rows, kept, in_python=before.in_python)


# --- values of columns, in the evaluator's terms ---------------------------------------------------------------


def _rows_of(table: pa.Table, columns: Sequence[Column], named: Mapping[str, int], keys: Keys, count: int) -> list[Row]:
    found = {name: _values(table.column(i), columns[i], keys) for name, i in named.items()}
    names, rows = (AT, *found), zip(range(count), *found.values(), strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows]


def _values(array: pa.ChunkedArray, of: Column, keys: Keys) -> list[Any]:
    values = [_value(value, of.type, keys) for value in pylist(array)]
    if not of.many:
        return values
    return [(value and (value[0] if len(value) == 1 else Several(value))) or None for value in values]


def _value(value: Any, type: Type, keys: Keys) -> Any:
    """Return a value of Arrow's as the evaluator knows it."""
    if value is None:
        return None
    match type.base:
        case Base.NODE | Base.TERM:
            return Vertex(int(value))
        case Base.EDGE:
            return Edge(value["label"], value["start"], value["end"], value["ordinal"])
        case Base.PATH:
            return _path(value["vertices"], value["codes"])
        case Base.ANY:
            return keys[value]
        case Base.LIST:
            return [_value(item, type.element or ANY, keys) for item in value]
        case Base.MAP:
            found = {key: _value(value[f"f{i}"], field, keys) for i, (key, field) in enumerate(type.fields)}
            return {key: one for key, one in found.items() if one is not None} if type.sparse else found
        case Base.TUPLE:
            return [_value(item, field, keys) for item, (_, field) in zip(value.values(), type.fields, strict=True)]
        case Base.DURATION:
            return Duration(*value.values())
        case Base.MOMENT:
            return value_of(value["lexical"], value["datatype"])
        case Base.ZONED if isinstance(value, datetime):  # Arrow calls its zone by a name of its own
            return from_python(value.astimezone(UTC))
        case Base.DATE | Base.DATETIME if isinstance(value, str):  # a year that Python does not have
            return value_of(value, XSD + ("date" if type.base is Base.DATE else "dateTime"))
    temporal = from_python(value)
    return tidied(value) if temporal is None else temporal


def _path(vertices: list[int], codes: list[int]) -> Path:
    edges = []
    for (start, end), code in zip(pairwise(vertices), codes, strict=True):
        ends = (end, start) if code & 1 else (start, end)
        edges.append(Edge(code >> 1 & LABEL_OF, *ends, code >> CODE_BITS))
    return Path(tuple(map(Vertex, vertices)), tuple(edges))


def _as_keys(array: pa.ChunkedArray, type: Type, keys: Keys) -> pa.Array:
    """Return values as keys, by which SQL knows what it has no type for."""
    import pyarrow as pa

    found = []
    for value in pylist(array):
        made = _value(value, type, keys)
        key = None if made is None else value_key(made)
        if key is not None:
            keys.setdefault(key, made)
        found.append(key)
    return pa.array(found, pa.binary())


def _arrow_of(values: list[Any], type: Type) -> pa.Array:
    """Return a column of vertices, edges, paths or booleans."""
    import pyarrow as pa

    id = pa.int64()
    match type.base:
        case Base.NODE | Base.TERM:
            return pa.array([None if value is None else value.id for value in values], id)
        case Base.EDGE:
            fields = pa.struct([(name, id) for name in ("label", "start", "end", "ordinal")])
            return pa.array([None if e is None else (e.label, e.start, e.end, e.ordinal) for e in values], fields)
        case Base.PATH:
            fields = pa.struct([("vertices", pa.list_(id)), ("codes", pa.list_(id))])
            return pa.array([None if path is None else _parts(path) for path in values], fields)
    return pa.array(values, pa.bool_())


def _parts(path: Path) -> dict[str, list[int]]:
    vertices = [vertex.id for vertex in path.vertices]
    codes = [
        (edge.label << 1 | (edge.start != start)) | edge.ordinal << CODE_BITS
        for edge, start in zip(path.edges, vertices, strict=False)
    ]
    return {"vertices": vertices, "codes": codes}
