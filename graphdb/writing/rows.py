"""The rows of a statement between two clauses: Python's values where clauses go row by row, a table where SQL goes on.

Rows are read as an Arrow table where they are few, else as a temporary table; each form is made of the other when it is
asked for.  What a clause that goes row by row adds to them (vertices, edges and paths) is written beside the rows that
it was given: their own values never leave SQL and come back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from graphdb.common import arrow
from graphdb.common.arrow import numbers
from graphdb.common.lazy import lazy
from graphdb.common.values.types import ANY, Base, Column, Type
from graphdb.evaluate.columns.codec import Keys, column_of, values_of
from graphdb.evaluate.context import Row
from graphdb.relational.projection.relation import Source
from graphdb.results.decode import Arrays
from graphdb.sql.value import column, column_at
from graphdb.writing.materialized import Materialized, Tables

AT = "#at"
"""The number of a row, in Python."""


class Rows:
    """Rows, in either form."""

    def __init__(
        self,
        count: int,
        listed: Callable[[], list[Row]],
        table: Callable[[], Materialized],
        *,
        is_unit: bool = False,
        in_python: bool = False,
        types: Mapping[str, Type] | None = None,
    ) -> None:
        self.count = count
        self.types = types
        """The types of its names; None where only a table of them says what they are."""
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
    def materialized(self) -> Materialized:
        """The rows as a table."""
        return self._table()

    def chosen(self, name: str, value: bool) -> Rows:
        """Return the rows of which a boolean has a value."""
        listed = [row for row in self.listed if row[name] is value]

        def table() -> Materialized:
            return self.materialized.where(f"{self.materialized.values[name].sql} = {value}")

        return Rows(len(listed), lambda: listed, table)


def unit() -> Rows:
    """Return the one row without names that a statement starts from."""
    source = Source("(SELECT 0::BIGINT AS at)")
    return Rows(1, lambda: [{AT: 0}], lambda: Materialized(source, 1), is_unit=True, types={})


def alone(rows: list[Row]) -> Rows:
    """Return rows that are Python's alone: no later clause asks SQL for anything."""
    for at, row in enumerate(rows):
        row[AT] = at

    def table() -> Materialized:
        raise AssertionError("nothing is asked of these rows in SQL")

    return Rows(len(rows), lambda: rows, table, in_python=True)


def of_values(tables: Tables, rows: list[Row], types: Mapping[str, Type]) -> Rows:
    """Return rows that were made of Python's values, with names of these types alone."""
    for at, row in enumerate(rows):
        row[AT] = at

    def materialized() -> Materialized:
        arrays: dict[str, arrow.Array] = {"at": numbers(np.arange(len(rows)))}
        arrays |= {
            f"n{i}": column_of((row[name] for row in rows), type, {}) for i, (name, type) in enumerate(types.items())
        }
        values = {name: column(f"n{i}", type) for i, (name, type) in enumerate(types.items())}
        return Materialized(tables.of_arrow(arrays), len(rows), values)

    return Rows(len(rows), lambda: rows, materialized, types=types)


def of_arrow(tables: Tables, found: arrow.Table | Arrays, columns: Sequence[Column], keys: Keys) -> Rows:
    """Return rows that were read into memory: columns ``c0 …``."""
    table = found.table() if isinstance(found, Arrays) else found
    named = {each.name: i for i, each in enumerate(columns) if each.name != "#"}

    def listed() -> list[Row]:
        return _rows_of(table, columns, named, keys, table.num_rows)

    def materialized() -> Materialized:
        values = {}
        arrays: dict[str, arrow.Array | arrow.ChunkedArray] = {"at": numbers(np.arange(table.num_rows))}
        for name, i in named.items():
            type = columns[i].type
            arrays[f"c{i}"] = table.column(i)
            if type.base is Base.MOMENT:
                arrays[f"c{i}"], type = column_of(values_of(table.column(i), columns[i], keys), ANY, keys), ANY
            values[name] = column_at(f"c{i}", replace(columns[i], type=type))
        return Materialized(tables.of_arrow(arrays), table.num_rows, values)

    types = None if any(each.many for each in columns) else {name: columns[i].type for name, i in named.items()}
    return Rows(table.num_rows, listed, materialized, types=types)


def of_table(tables: Tables, found: Materialized, columns: Sequence[Column], keys: Keys) -> Rows:
    """Return rows that are a table already, with columns of these types by their names in their ``values``."""

    def listed() -> list[Row]:
        chosen = [each for each in columns if each.name in found.values]
        sql = "".join(f", {found.values[each.name].sql} AS c{i}" for i, each in enumerate(chosen))
        table = tables.arrow(f"SELECT b.at{sql} FROM {found.source} b ORDER BY b.at ASC")
        numbers, table = arrow.pylist(table.column(0)), table.remove_column(0)
        rows = _rows_of(table, chosen, {each.name: i for i, each in enumerate(chosen)}, keys, len(numbers))
        for row, number in zip(rows, numbers, strict=True):
            row[AT] = number
        return rows

    return Rows(found.count, listed, lambda: found)


def of_python(tables: Tables, rows: list[Row], before: Rows, types: Mapping[str, Type]) -> Rows:
    """Return the rows that a clause made of those ``before``, with new names of these types."""
    origins = [row[AT] for row in rows]
    for at, row in enumerate(rows):
        row[AT] = at

    def materialized() -> Materialized:
        old, new = before.materialized, [name for name in types if name not in before.materialized.values]
        arrays = {"at": numbers(np.arange(len(rows))), "row": numbers(np.array(origins, np.int64))}
        for i, name in enumerate(new):
            arrays[f"n{i}"] = column_of((row[name] for row in rows), types[name], {})
        source = tables.of_arrow(arrays)
        if not old.values:
            return Materialized(source, len(rows), {name: column(f"n{i}", types[name]) for i, name in enumerate(new)})
        chosen = "".join(f", {value.sql} AS w{i}" for i, value in enumerate(old.values.values()))
        added = "".join(f", n.n{i}" for i in range(len(new)))
        joined = f"SELECT n.at{chosen}{added} FROM {source} n JOIN {old.source} b ON b.at = n.row ORDER BY n.at ASC"
        values = {
            name: column(f"w{i}", value.type, many=value.many, bases=value.bases)
            for i, (name, value) in enumerate(old.values.items())
        }
        values |= {name: column(f"n{i}", types[name]) for i, name in enumerate(new)}
        return Materialized(tables.rows(joined), len(rows), values)

    known = None if before.types is None else {**types, **before.types}
    return Rows(len(rows), lambda: rows, materialized, in_python=before.in_python, types=known)


def _rows_of(
    table: arrow.Table, columns: Sequence[Column], named: Mapping[str, int], keys: Keys, count: int
) -> list[Row]:
    found = {name: values_of(table.column(i), columns[i], keys) for name, i in named.items()}
    names, rows = (AT, *found), zip(range(count), *found.values(), strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows]
