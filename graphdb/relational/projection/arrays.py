"""Projection without SQL: vertices, single-valued properties and columns of bindings, by arrays.

A query that returns nothing but ``v``, ``v.key`` and properties of edges needs no join in DuckDB: the property's column
has each value at the place of its vertex (:mod:`graphdb.snapshot.columns`).  It gives the same table as the SQL, in a
tenth of the time where the rows are few.  Behind SQL the same is done for the properties that nothing but the result
needs (:class:`Late`): filters, order and LIMIT come first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from graphdb.common import arrow
from graphdb.common.values.terms import Kind
from graphdb.snapshot.properties import Properties
from graphdb.snapshot.terms import Lookup
from graphdb.storage.arrays.arrow import values
from graphdb.storage.catalog import EdgeLabel


@dataclass(frozen=True, slots=True)
class Direct:
    """A result column: a column of the bindings, or a property of the vertices in it."""

    column: str
    label: EdgeLabel | None = None
    kind: Kind | None = None
    """What literals stand in the column, whose values are wanted."""


@dataclass(frozen=True, slots=True)
class Late:
    """A clause whose SQL yields vertices in some columns, the properties of which take their places after it."""

    sql: str
    parameters: Mapping[str, object]
    properties: Mapping[int, EdgeLabel]
    """Of the vertices in a column, by its number."""

    def finished(self, rows: arrow.Table, properties: Properties) -> arrow.Table:
        """Return the rows with the properties of vertices in the places of these."""
        for i, label in self.properties.items():
            rows = rows.set_column(i, rows.column_names[i], properties.gather(label, rows.column(i)))
        return rows


@dataclass(frozen=True, slots=True)
class Beside:
    """A property of the vertices in a column of bindings, which is a column beside it."""

    name: str
    column: str
    label: EdgeLabel


def with_properties(bindings: arrow.Table, wanted: Sequence[Beside], properties: Properties) -> arrow.Table:
    """Return bindings with properties of their vertices in further columns."""
    for one in wanted:
        bindings = bindings.append_column(one.name, properties.gather(one.label, bindings.column(one.column)))
    return bindings


def project(bindings: arrow.Table, wanted: tuple[Direct, ...], properties: Properties, lookup: Lookup) -> arrow.Table:
    """Return the result columns ``c0 … cn`` of some bindings, row for row."""
    columns = {}
    for i, direct in enumerate(wanted):
        column = bindings.column(direct.column)
        if direct.kind is not None:
            columns[f"c{i}"] = lookup.typed(direct.kind, values(column))
        elif direct.label is not None:
            columns[f"c{i}"] = properties.gather(direct.label, column)
        else:
            columns[f"c{i}"] = column
    return arrow.table(columns)
