"""Property columns: the values of one property key, typed, as arrays by vertex id or as a temporary table for SQL.

They are derived from the triples and the literal table when a query first asks, and followed when single vertices
change.  What a query reads of vertices that it has found it gathers from arrays
(:mod:`graphdb.snapshot.property_arrays`).  Where SQL joins a property, or looks for vertices by it, a narrow table
(subject, value) takes the place of two wide ones; DuckDB keeps those within its memory limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.duckdb.connection import Connection
from graphdb.common.values.numeric_keys import key_of_union, key_type
from graphdb.common.values.types import Base, Type, bases_of_kinds
from graphdb.snapshot.property_arrays import PropertyArrays
from graphdb.snapshot.property_types import exact_only, most_reread
from graphdb.storage.arrays.arrow import values
from graphdb.storage.arrays.sorted_sets import unique
from graphdb.storage.catalog import EdgeLabel
from graphdb.storage.file.verify import Ids
from graphdb.storage.graph.changes import Changes
from graphdb.storage.persisted.store import NOTHING, StateStructures

_NO_TRIPLES = np.empty((0, 3), np.int64)


@dataclass(frozen=True, slots=True)
class PropertyColumn:
    """Where the values of a property are: ``relation`` is SQL for (subject, value), one row per subject."""

    relation: str
    type: Type
    many: bool
    """Whether ``value`` is a list, because some subject has several."""
    bases: frozenset[Base] | None = None
    """Of a union: the members that occur; None where that is not known."""
    keys: frozenset[Base] | None = None
    """Of a table of unions with a column ``key``, one for equal numbers: the members that this is of."""


class Properties(PropertyArrays):
    """The property columns of one state of the data.

    The parameters are those of :class:`~graphdb.snapshot.property_arrays.PropertyArrays` and
    :class:`~graphdb.snapshot.property_types.PropertyTypes`.
    """

    def __init__(
        self,
        connection: Connection,
        ids: Ids,
        scales: Mapping[int, int],
        memory: int,
        persisted: StateStructures = NOTHING,
    ) -> None:
        super().__init__(connection, ids, scales, memory, persisted)
        self._tables: dict[int, PropertyColumn] = {}
        self._promised: dict[int, PropertyColumn] = {}
        """Tables that SQL names, but none has read."""
        self._passing: set[int] = set()
        """Of these, those that are there until a transaction ends."""
        self._stale: dict[int, frozenset[int]] = {}
        """Vertices whose values are not what their table, made for an earlier state, says."""
        self.lineage = object()
        """The same for states whose tables follow each other."""

    def column(self, label: EdgeLabel, *, make: bool = True) -> PropertyColumn:
        """Return the values of a property: a table, made when SQL first reads it, or a query if not to ``make`` one."""
        found = self._tables.get(label.id)
        if found is not None and exact_only(label) and found.type != self._type(label):
            self._connection.discard([self._tables.pop(label.id).relation])
            self._stale.pop(label.id, None)
            found = None
        if found is not None:
            if label.id in self._stale:
                self._catch_up(label, found)
            return found
        if not make or self._connection.transactions.inside:  # its ROLLBACK would take a table away
            return PropertyColumn(f"({self._relation(label)})", self._type(label), label.max_values > 1)
        if label.id in self._promised:
            return self._promised[label.id]
        relation = f"temp.{self._connection.temporary()}_"
        self._promise(label, PropertyColumn(relation, self._type(label), label.max_values > 1))
        if not self._connection.promised.delayed:
            self._connection.promised.make(relation)
        return self._tables.get(label.id) or self._promised[label.id]

    def _promise(self, label: EdgeLabel, column: PropertyColumn) -> None:
        """Have the table of a property made when SQL first reads it: most of what is compiled never runs as SQL."""
        self._promised[label.id] = column
        self._connection.promised.add(column.relation, lambda: self._make(label, column))

    def _make(self, label: EdgeLabel, column: PropertyColumn) -> bool:
        """Make the table of a property; return whether it stays, which it does not where a ROLLBACK takes it away."""
        table, inside = column.relation.removeprefix("temp."), self._connection.transactions.inside
        if inside and label.id in self._passing and self._connection.has_table(table):
            return False
        array = self.array(label) if self.in_memory(label) else None
        with self._connection.guard() as raw, self._connection.temporary_table(table) as keep:
            if array is None:
                raw.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS {self._relation(label)} ORDER BY subject ASC")
            else:
                subjects, found_there = array.rows()
                view = self._connection.temporary()
                with self._connection.view(view, arrow.table({"subject": subjects, "value": found_there})):
                    raw.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS FROM {view}")
            keep()
        if inside:
            self._passing.add(label.id)
        else:
            self._tables[label.id] = self._promised.pop(label.id, column)
        return not inside

    def has_keys(self, label: EdgeLabel) -> bool:
        """Whether the table of a property whose values are unions has a column ``key``, the same for equal numbers.

        The first query that asks has it computed; a transaction's ROLLBACK would take it away.
        """
        found = self.column(label)
        self._connection.promised.make(found.relation)
        bases = bases_of_kinds(label.kinds)
        if found.keys != bases:
            if self._connection.transactions.inside:
                return False
            with self._connection.guard() as raw:
                raw.execute(f"ALTER TABLE {found.relation} DROP COLUMN IF EXISTS key")
                raw.execute(f"ALTER TABLE {found.relation} ADD COLUMN key {key_type(bases)}")
                raw.execute(f"UPDATE {found.relation} SET key = {key_of_union('value', bases)}")
            self._tables[label.id] = replace(found, keys=bases)
        return True

    def _catch_up(self, label: EdgeLabel, column: PropertyColumn) -> None:
        """Read the values of single vertices anew; where that is cut short, it can be done again."""
        vertices = sorted(self._stale[label.id])
        (rows, given), keys = self._relation_of(label, vertices), column.keys
        with self._connection.guard() as raw:
            raw.execute(f"DELETE FROM {column.relation} WHERE subject IN (SELECT unnest($vertices::BIGINT[]))", given)
            if keys is None:
                raw.execute(f"INSERT INTO {column.relation} (subject, value) {rows}", given)
            else:
                rows = f"SELECT subject, value, {key_of_union('value', keys)} FROM ({rows})"
                raw.execute(f"INSERT INTO {column.relation} (subject, value, key) {rows}", given)
        del self._stale[label.id]

    def gather(self, label: EdgeLabel, ids: arrow.Array | arrow.ChunkedArray) -> arrow.Array | arrow.ChunkedArray:
        """Return the values of a property that :meth:`gathers` of vertices (term ids, or null), row for row."""
        if (handful := self.of_handful(label, ids)) is not None:
            return handful
        column = self.source(label, len(ids))
        if column is not None:
            return column.gather(ids)
        if self.joins((label,), len(ids)):
            return self._joined(label, ids)
        self._looks[label.id] += 1
        wanted = values(ids.drop_null()).astype(np.int64, copy=False)
        return self._looked_up(label, unique(wanted)).gather(ids)

    def _joined(self, label: EdgeLabel, ids: arrow.Array | arrow.ChunkedArray) -> arrow.ChunkedArray:
        """Return what :meth:`gather` does, by a join: DuckDB has the values, on disk where they are too many."""
        view = self._connection.temporary()
        rows = arrow.table({"id": ids, "number": np.arange(len(ids))})
        with self._connection.view(view, rows):
            return self._connection.arrow(
                f"SELECT p.value FROM {view} w LEFT JOIN {self.column(label).relation} p ON p.subject = w.id "
                "ORDER BY w.number ASC"
            ).column(0)

    def follow(self, former: Properties, labels: Mapping[int, EdgeLabel], changes: Sequence[Changes]) -> None:
        """Take over the columns of properties; those of another type by now, or that changed much, are dropped."""
        followed = former._tables or former._arrays or former._written
        changed_in = _subjects_by_label(changes) if followed else {}

        def changed(id: int, before: frozenset[int]) -> frozenset[int]:
            return before.union(changed_in[id].tolist()) if id in changed_in else before

        self.lineage = former.lineage
        self._follow_types(former, labels, changed)
        for id, table in list(former._tables.items()):
            vertices, label = changed(id, former._stale.get(id, frozenset())), labels.get(id)
            if label is not None and self._goes_on(label, table.type) and len(vertices) <= most_reread(label):
                self._tables[id] = former._tables.pop(id)
                if vertices:
                    self._stale[id] = vertices
        for id, promised in list(former._promised.items()):
            label = labels.get(id)
            stays = label is not None and not (id in changed_in and exact_only(label))
            if label is not None and stays and self._goes_on(label, promised.type):
                self._promise(label, former._promised.pop(id))
        self._follow_arrays(former, labels, changed, changes)
        former.drop()

    def drop(self) -> None:
        """Drop all tables, because the data changed."""
        self._connection.discard(column.relation for column in (*self._tables.values(), *self._promised.values()))
        self._tables.clear()
        self._promised.clear()
        self._stale.clear()
        self._forget_arrays()
        self.lineage = object()


def _subjects_by_label(changes: Iterable[Changes]) -> dict[int, NDArray[np.int64]]:
    """Return the subjects of what came and went, by label."""
    rows = np.concatenate([rows for change in changes for rows in (change.removed, change.added)] or [_NO_TRIPLES])
    if not len(rows):
        return {}
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    ids, begins = np.unique(rows[:, 0], return_index=True)
    return dict(zip(ids.tolist(), np.split(rows[:, 1], begins[1:]), strict=True))
