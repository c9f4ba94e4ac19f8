"""Property columns: the values of one property key, typed, as a temporary DuckDB table (subject, value).

They are derived from the triples and the literal table when a query first asks, and dropped when the data changes, so
that a query joins one narrow table instead of two wide ones.  DuckDB keeps them within its memory limit.  What a query
reads of vertices that it has found it gathers from arrays of the same values (:mod:`graphdb.snapshot.columns`), those
used last, as many as the budget takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from graphdb.common.duckdb.connection import Connection
from graphdb.common.values.terms import LITERAL_BASE
from graphdb.common.values.types import EXACT_ONLY, STRING, VALUE, Base, Type, list_of, literal_sql, type_of_kinds
from graphdb.snapshot.columns import ValueColumn
from graphdb.storage.arrays.arrow import numbers, values
from graphdb.storage.catalog import EdgeLabel
from graphdb.storage.graph.changes import Changes

if TYPE_CHECKING:
    import pyarrow as pa

SMALL = 2_000_000
"""Values up to which a property may be cached in memory as arrays."""

FOLLOWED = 1000
"""Vertices whose values in a column are read anew; for more, all are."""

_LEAST_BYTES = 8
"""Bytes of memory that a value takes at least."""

_NONE = np.empty((0, 3), np.int64)


@dataclass(frozen=True, slots=True)
class PropertyColumn:
    """Where the values of a property are: ``relation`` is SQL for (subject, value), one row per subject."""

    relation: str
    type: Type
    many: bool
    """Whether ``value`` is a list, because some subject has several."""
    bases: frozenset[Base] | None = None
    """Of a union: the members that occur; None where that is not known."""


class Properties:
    """The property columns of one state of the data.

    Parameters
    ----------
    scales
        Digits after the point of each decimal property, by label id.
    memory
        Bytes that arrays of values may take together.
    """

    def __init__(self, connection: Connection, scales: Mapping[int, int], memory: int) -> None:
        self._connection = connection
        self.scales = scales
        self._memory = memory
        self._columns: dict[int, PropertyColumn] = {}
        self._behind: dict[int, frozenset[int]] = {}
        """Vertices whose values are not what their column, made for an earlier state, says."""
        self._arrays: dict[int, ValueColumn] = {}
        """By label id, those used last at the end."""
        self._large: set[int] = set()
        """Labels of properties whose values take more than the budget."""

    def type_of(self, label: EdgeLabel) -> Type:
        """Return the type that holds all single values of a property."""
        return type_of_kinds(label.kinds, self.scales.get(label.id, 18))

    def column(self, label: EdgeLabel) -> PropertyColumn:
        """Return the values of a property, made into a table the first time."""
        found = self._columns.get(label.id)
        if found is not None:
            if label.id in self._behind:
                self._catch_up(label, found)
            return found
        subquery, type, many = self._relation(label), self._type(label), label.max_values > 1
        with self._connection.guard() as raw:
            if self._connection.transactions.inside:  # its ROLLBACK would take the table away
                return PropertyColumn(f"({subquery})", type, many)
            table = self._connection.temporary()
            with self._connection.temporary_table(table) as kept:
                raw.execute(f"CREATE TEMP TABLE {table} AS {subquery} ORDER BY subject ASC")
                kept()
                self._columns[label.id] = found = PropertyColumn(f"temp.{table}", type, many)
        return found

    def _type(self, label: EdgeLabel) -> Type:
        single = self.type_of(label)
        return list_of(single) if label.max_values > 1 else single

    def _relation(self, label: EdgeLabel, where: str = "") -> str:
        return property_relation(label, literal_sql("l", self.type_of(label)), where)

    def _catch_up(self, label: EdgeLabel, column: PropertyColumn) -> None:
        """Read the values of single vertices anew; where that is cut short, it can be done again."""
        vertices = sorted(self._behind[label.id])
        places = ", ".join("?" * len(vertices))
        with self._connection.guard() as raw:
            raw.execute(f"DELETE FROM {column.relation} WHERE subject IN ({places})", vertices)
            raw.execute(
                f"INSERT INTO {column.relation} {self._relation(label, f' AND t.subject IN ({places})')}", vertices
            )
        del self._behind[label.id]

    def in_memory(self, label: EdgeLabel) -> bool:
        """Whether a property is read as an array: one plain value per vertex, and not too many of them."""
        if label.kinds & EXACT_ONLY or label.id in self._large:
            return False
        if not 0 < label.triples <= SMALL or label.max_values != 1 or self.type_of(label) == VALUE:
            return False
        return label.triples * _LEAST_BYTES <= self._memory

    def gather(self, label: EdgeLabel, ids: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
        """Return the values of a property :meth:`in_memory` of vertices (term ids, or null), row for row."""
        column = self.array(label)
        return self._joined(label, ids) if column is None else column.gather(ids)

    def array(self, label: EdgeLabel) -> ValueColumn | None:
        """Return the values of a property :meth:`in_memory` as an array; None where they take more than the budget."""
        found = self._arrays.pop(label.id, None)
        if found is None:
            relation = self.column(label).relation
            if label.id in self._large or self._too_large(label, relation):
                self._large.add(label.id)
                return None
            table = self._connection.arrow(f"SELECT subject, value FROM {relation} ORDER BY subject ASC")
            found = ValueColumn.of(values(table.column("subject")), table.column("value"))
            taken = found.nbytes + sum(column.nbytes for column in self._arrays.values())
            while self._arrays and taken > self._memory:
                taken -= self._arrays.pop(next(iter(self._arrays))).nbytes
        self._arrays[label.id] = found
        return found

    def _too_large(self, label: EdgeLabel, relation: str) -> bool:
        """Whether the values of a property take more than the budget, which only texts do without being many."""
        if self.type_of(label) != STRING:
            return False
        ((bytes_of_texts,),) = self._connection.rows(f"SELECT coalesce(sum(strlen(value)), 0) FROM {relation}")
        return int(bytes_of_texts) > self._memory

    def _joined(self, label: EdgeLabel, ids: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
        """Return what :meth:`gather` does, by a join: DuckDB has the values, on disk where they are too many."""
        import pyarrow as pa

        view = self._connection.temporary()
        rows = pa.table({"id": ids, "number": numbers(np.arange(len(ids)))})
        with self._connection.view(view, rows):
            return self._connection.arrow(
                f"SELECT p.value FROM {view} w LEFT JOIN {self.column(label).relation} p ON p.subject = w.id "
                "ORDER BY w.number ASC"
            ).column(0)

    def follow(self, former: Properties, labels: Mapping[int, EdgeLabel], changes: Iterable[Changes]) -> None:
        """Take over the columns of properties; those of another type by now, or that changed much, are dropped."""
        rows = np.concatenate([rows for change in changes for rows in (change.removed, change.added)] or [_NONE])
        for id, column in list(former._columns.items()):
            vertices = former._behind.get(id, frozenset()).union(rows[rows[:, 0] == id, 1].tolist())
            label = labels.get(id)
            if label is None or label.kinds & EXACT_ONLY or column.type != self._type(label):
                continue
            if len(vertices) > FOLLOWED:
                continue
            self._columns[id] = former._columns.pop(id)
            if vertices:
                self._behind[id] = vertices
            elif id in former._arrays:
                self._arrays[id] = former._arrays.pop(id)
        former.drop()

    def drop(self) -> None:
        """Drop all tables, because the data changed."""
        self._connection.discard(column.relation for column in self._columns.values())
        self._columns.clear()
        self._behind.clear()
        self._arrays.clear()
        self._large.clear()


def property_relation(label: EdgeLabel, value_sql: str, where: str = "") -> str:
    """Return the query (subject, value) of a property; ``value_sql`` is over the alias ``l`` of the literal table.

    ``where`` is one more condition, over the alias ``t`` of the triples, with ``AND`` before it.
    """
    many = label.max_values > 1
    value = f"list({value_sql} ORDER BY l.lexical ASC, l.id ASC)" if many else value_sql
    return (
        f"SELECT t.subject, {value} AS value FROM _graphdb.triple t JOIN _graphdb.literal l ON l.id = t.object "
        f"WHERE t.label = {int(label.id)} AND t.object >= {LITERAL_BASE}{where}{' GROUP BY t.subject' if many else ''}"
    )
