"""Property columns: the values of one property key, typed, as arrays by vertex id or as a temporary table for SQL.

They are derived from the triples and the literal table when a query first asks, and followed when single vertices
change.  What a query reads of vertices that it has found it gathers from arrays (:mod:`graphdb.snapshot.columns`),
those used last, as many as the budget takes; a handful of vertices is looked up in the file first.  Where SQL joins a
property, or looks for vertices by it, a narrow table (subject, value) takes the place of two wide ones; DuckDB keeps
those within its memory limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.duckdb.connection import Connection
from graphdb.common.duckdb.fetch import rows_of
from graphdb.common.values.numeric_keys import key_of_union, key_type
from graphdb.common.values.terms import LITERAL_BASE, Kind
from graphdb.common.values.types import (
    EXACT_ONLY,
    VALUE,
    Base,
    Type,
    bases_of_kinds,
    list_of,
    literal_sql,
    type_of_kinds,
)
from graphdb.snapshot.columns import ValueColumn, read_columns
from graphdb.snapshot.exact_types import Form, form_of, still_fits
from graphdb.snapshot.union_type import lists_of_unions
from graphdb.storage.arrays.arrow import values
from graphdb.storage.catalog import EdgeLabel
from graphdb.storage.file.verify import Ids
from graphdb.storage.graph.changes import Changes
from graphdb.storage.persisted.store import NOTHING, StateStructures

SMALL = 2_000_000
"""Values up to which a property may be cached in memory as arrays."""

FOLLOWED = 1000
"""Vertices whose values in a column are read anew, …"""
_SHARE = 16
"""… or a share of all, if these are more: beyond, all are."""

_LEAST_BYTES = 8
"""Bytes of memory that a value takes at least."""

LOOKS = 4
"""How often a handful of vertices is looked up in the file before the values of all are read, …"""
_HANDFUL = 32
_ONE_OF = 64
"""… how many those are, or which share of all values: to look up 10,000 of a million takes 10 to 20 ms, to read all of
them 50 to 100, …"""
_LARGE = 50_000
"""… and values that are read sooner."""

_SMALL = 4096
"""Values up to which a property is read together with others."""

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
    keys: frozenset[Base] | None = None
    """Of a table of unions with a column ``key``, one for equal numbers: the members that this is of."""


@dataclass(frozen=True, slots=True)
class _Written:
    """The form of the texts of a property's values, None where SQL has no type for all of them."""

    form: Form | None
    behind: frozenset[int] = frozenset()
    """Vertices whose values have changed since it was found out."""


@dataclass(frozen=True, slots=True)
class _Cached:
    """A column in memory."""

    column: ValueColumn
    type: Type
    behind: frozenset[int] = frozenset()
    """Vertices whose values are not what the column says, which was read for an earlier state."""


class Properties:
    """The property columns of one state of the data.

    Parameters
    ----------
    ids
        Which ids there are.
    scales
        Digits after the point of each decimal property, by label id.
    memory
        Bytes that arrays of values may take together.
    persisted
        What was read of the same state before.
    """

    def __init__(
        self,
        connection: Connection,
        ids: Ids,
        scales: Mapping[int, int],
        memory: int,
        persisted: StateStructures = NOTHING,
    ) -> None:
        self._connection = connection
        self._ids = ids
        self.scales = scales
        self._memory = memory
        self._persisted = persisted
        self._tables: dict[int, PropertyColumn] = {}
        self._promised: dict[int, PropertyColumn] = {}
        """Tables that SQL names, but none has read."""
        self._passing: set[int] = set()
        """Of these, those that are there until a transaction ends."""
        self._behind: dict[int, frozenset[int]] = {}
        """Vertices whose values are not what their table, made for an earlier state, says."""
        self._arrays: dict[int, _Cached] = {}
        """By label id, those used last at the end."""
        self._bytes = 0
        """At least what the arrays take: of those that were replaced, the former ones are counted, too."""
        self.lineage = object()
        """The same for states whose tables follow each other."""
        self._large: set[int] = set()
        """Labels of properties whose values take more than the budget."""
        self._looks: Counter[int] = Counter()
        """How often a handful of vertices was looked up, by label id."""
        self._sweeps: Counter[int] = Counter()
        """How often most texts of a column were asked for, by label id."""
        self._longest: int | None = None
        self._written: dict[int, _Written] = {}
        """By label id, of lists and durations."""

    def unions(self) -> arrow.DataType:
        """Return the type of values of several types, as DuckDB has it."""
        found = lists_of_unions(self._connection).value_type
        assert isinstance(found, arrow.DataType)
        return found

    def longest_text(self) -> int:
        """Return how many bytes a text has at most, by DuckDB's statistics: one that is gone may count."""
        if self._longest is None:
            rows = self._connection.rows("SELECT stats(text) FROM _graphdb.literal LIMIT 1")
            self._longest = rows[0][0].get("max_string_length", 0) if rows else 0
        return self._longest

    def type_of(self, label: EdgeLabel) -> Type:
        """Return the type that holds all single values of a property.

        Raises
        ------
        NotSupportedError
            There is none.
        """
        form = self._form(label)
        return type_of_kinds(label.kinds, self.scales.get(label.id, 18)) if form is None else form.type

    def has_type(self, label: EdgeLabel) -> bool:
        """Whether SQL has a type that holds all single values of a property."""
        return not _exact(label) or self._form(label) is not None

    def is_exact(self, label: EdgeLabel) -> bool:
        """Whether SQL's values of a property are all that its texts say: a union has no offsets of points in time."""
        return self.has_type(label) and (not label.kinds >> Kind.ZONED & 1 or label.kinds == 1 << Kind.ZONED)

    def bases_of(self, label: EdgeLabel) -> frozenset[Base] | None:
        """Return the types that single values of a property have; None where that is not known."""
        return None if _exact(label) else bases_of_kinds(label.kinds)

    def _form(self, label: EdgeLabel) -> Form | None:
        """Return the form of a property's values that are lists or durations, which is looked for once."""
        if not _exact(label):
            return None
        found = self._written.get(label.id)
        if found is not None and found.behind:
            stays = found.form is None or still_fits(self._connection, label, found.form, sorted(found.behind))
            found = _Written(found.form) if stays else None
        if found is None:
            found = _Written(form_of(self._connection, label))
        self._written[label.id] = found
        return found.form

    def _value_sql(self, label: EdgeLabel) -> str:
        """Return SQL of a value of a property, over the alias ``l`` of the literal table."""
        form = self._form(label)
        return literal_sql("l", self.type_of(label)) if form is None else form.value

    def column(self, label: EdgeLabel, *, make: bool = True) -> PropertyColumn:
        """Return the values of a property: a table, made when SQL first reads it, or a query if not to ``make`` one."""
        found = self._tables.get(label.id)
        if found is not None and _exact(label) and found.type != self._type(label):
            self._connection.discard([self._tables.pop(label.id).relation])
            self._behind.pop(label.id, None)
            found = None
        if found is not None:
            if label.id in self._behind:
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

    def _type(self, label: EdgeLabel) -> Type:
        single = self.type_of(label)
        return list_of(single) if label.max_values > 1 else single

    def _relation(self, label: EdgeLabel, where: str = "") -> str:
        return property_relation(label, self._value_sql(label), where)

    def _relation_of(self, label: EdgeLabel, vertices: list[int]) -> tuple[str, dict[str, list[int]]]:
        """Return the query for the values of some vertices, with its parameters."""
        return self._relation(label, " AND t.subject IN (SELECT unnest($vertices::BIGINT[]))"), {"vertices": vertices}

    def _catch_up(self, label: EdgeLabel, column: PropertyColumn) -> None:
        """Read the values of single vertices anew; where that is cut short, it can be done again."""
        vertices = sorted(self._behind[label.id])
        (rows, given), keys = self._relation_of(label, vertices), column.keys
        with self._connection.guard() as raw:
            raw.execute(f"DELETE FROM {column.relation} WHERE subject IN (SELECT unnest($vertices::BIGINT[]))", given)
            if keys is None:
                raw.execute(f"INSERT INTO {column.relation} (subject, value) {rows}", given)
            else:
                rows = f"SELECT subject, value, {key_of_union('value', keys)} FROM ({rows})"
                raw.execute(f"INSERT INTO {column.relation} (subject, value, key) {rows}", given)
        del self._behind[label.id]

    def in_memory(self, label: EdgeLabel) -> bool:
        """Whether a property is read as an array: one plain value per vertex, and not too many of them."""
        if _exact(label) or label.id in self._large:
            return False
        if not 0 < label.triples <= SMALL or label.max_values != 1 or self.type_of(label) == VALUE:
            return False
        return label.triples * _LEAST_BYTES <= self._memory

    def gather(self, label: EdgeLabel, ids: arrow.Array | arrow.ChunkedArray) -> arrow.Array | arrow.ChunkedArray:
        """Return the values of a property :meth:`in_memory` of vertices (term ids, or null), row for row."""
        column = self.source(label, len(ids))
        if column is not None:
            return column.gather(ids)
        if label.id in self._large:
            return self._joined(label, ids)
        self._looks[label.id] += 1
        wanted = values(ids.drop_null()).astype(np.int64, copy=False)
        return self._looked_up(label, np.unique(wanted)).gather(ids)

    def source(self, label: EdgeLabel, rows: int) -> ValueColumn | None:
        """Return the column that :meth:`gather` takes values of so many from; None where it asks DuckDB for them."""
        at_once = label.id in self._arrays or rows > max(_HANDFUL, label.triples // _ONE_OF) or label.triples <= _LARGE
        at_once = at_once or self._persisted.has(self._key(label))
        if not at_once and self._looks[label.id] < LOOKS and label.id not in self._large:
            return None
        column = self.array(label)
        if column is not None and column.places is not None and 2 * rows > len(column.places):
            column = self._spread(label, column)
        return column

    def _spread(self, label: EdgeLabel, column: ValueColumn) -> ValueColumn:
        """Return a column of texts most of which are asked for: the second time, each in its place, if they fit."""
        self._sweeps[label.id] += 1
        if self._sweeps[label.id] != 2 or (spread := column.spread(self._memory)) is None:
            return column
        self._cache(label, replace(self._arrays.pop(label.id), column=spread))
        self._persisted.note(self._key(label), spread)
        return spread

    def _looked_up(self, label: EdgeLabel, vertices: NDArray[np.int64]) -> ValueColumn:
        """Return the values of some vertices, sorted, as a column of these."""
        sql, given = self._relation_of(label, vertices.tolist())
        with self._connection.lock, self._connection.guard() as raw:
            rows = rows_of(raw, sql, given)
        subjects = values(rows.column("subject"))
        return ValueColumn.of(subjects, np.arange(len(subjects), dtype=np.int32), rows.column("value").combine_chunks())

    def array(self, label: EdgeLabel) -> ValueColumn | None:
        """Return the values of a property :meth:`in_memory` as an array; None where they take more than the budget."""
        if label.id in self._large:
            return None
        cached = self._arrays.pop(label.id, None)
        if cached is not None and not cached.behind:
            self._arrays[label.id] = cached  # the last that was used
            return cached.column
        if cached is None:
            value_sql = literal_sql("l", self.type_of(label))

            def read() -> ValueColumn | None:
                found = read_columns(self._connection, self._ids, [label.id], value_sql, self._memory)
                return None if found is None else found[0]

            column = self._persisted.get_or_derive(self._key(label), read)
            if column is None or column.nbytes > self._memory:
                self._large.add(label.id)
                return None
            cached = _Cached(column, self._type(label))
            self._sweeps[label.id] = 0
        else:
            column = cached.column
            vertices = np.array(sorted(cached.behind), np.int64)
            cached = _Cached(column.changed_to(vertices, self._looked_up(label, vertices)), cached.type)
        self._cache(label, cached)
        return cached.column

    def _key(self, label: EdgeLabel) -> tuple[str, int, str]:
        """Return what the array of a property is persisted by."""
        return "column", label.id, str(self._type(label))

    def read_ahead(self, wanted: Iterable[EdgeLabel]) -> None:
        """Read the properties of few vertices among those that a query is about to ask for, of each type together."""
        together: dict[str, dict[int, EdgeLabel]] = {}
        for label in wanted:
            if label.triples <= _SMALL and label.id not in self._arrays and self.in_memory(label):
                together.setdefault(literal_sql("l", self.type_of(label)), {})[label.id] = label
        for value_sql, labels in together.items():
            if len(labels) == 1:
                continue  # array() reads it
            columns = read_columns(self._connection, self._ids, [*labels], value_sql, self._memory)
            if columns is None:
                continue
            for label, column in zip(labels.values(), columns, strict=True):
                self._cache(label, _Cached(column, self._type(label)))
                self._sweeps[label.id] = 0

    def catch_up(self, labels: Mapping[int, EdgeLabel]) -> None:
        """Bring the arrays up to date with what changed, by the labels of now: the next query finds them so."""
        for id in [id for id, cached in self._arrays.items() if cached.behind]:
            self.array(labels[id])

    def _cache(self, label: EdgeLabel, cached: _Cached) -> None:
        """Put a column at the end of those in memory; where they take too much, those go that were used first."""
        self._bytes += cached.column.nbytes
        if self._bytes > self._memory:
            self._bytes = cached.column.nbytes + sum(each.column.nbytes for each in self._arrays.values())
        while self._arrays and self._bytes > self._memory:
            self._bytes -= self._arrays.pop(next(iter(self._arrays))).column.nbytes
        self._arrays[label.id] = cached

    def _joined(self, label: EdgeLabel, ids: arrow.Array | arrow.ChunkedArray) -> arrow.ChunkedArray:
        """Return what :meth:`gather` does, by a join: DuckDB has the values, on disk where they are too many."""
        view = self._connection.temporary()
        rows = arrow.table({"id": ids, "number": np.arange(len(ids))})
        with self._connection.view(view, rows):
            return self._connection.arrow(
                f"SELECT p.value FROM {view} w LEFT JOIN {self.column(label).relation} p ON p.subject = w.id "
                "ORDER BY w.number ASC"
            ).column(0)

    def follow(self, former: Properties, labels: Mapping[int, EdgeLabel], changes: Iterable[Changes]) -> None:
        """Take over the columns of properties; those of another type by now, or that changed much, are dropped."""
        followed = former._tables or former._arrays or former._written
        changed_in = _subjects_by_label(changes) if followed else {}

        def changed(id: int, before: frozenset[int]) -> frozenset[int]:
            return before.union(changed_in[id].tolist()) if id in changed_in else before

        self.lineage = former.lineage
        self._large, self._bytes = former._large, former._bytes
        self._looks, self._sweeps = former._looks, former._sweeps
        if self._ids.literals == former._ids.literals:
            self._longest = former._longest
        for id, written in former._written.items():
            vertices, label = changed(id, written.behind), labels.get(id)
            if label is not None and len(vertices) <= _followed(label):
                self._written[id] = replace(written, behind=vertices)
        for id, table in list(former._tables.items()):
            vertices, label = changed(id, former._behind.get(id, frozenset())), labels.get(id)
            if label is not None and self._goes_on(label, table.type) and len(vertices) <= _followed(label):
                self._tables[id] = former._tables.pop(id)
                if vertices:
                    self._behind[id] = vertices
        for id, promised in list(former._promised.items()):
            label = labels.get(id)
            if label is not None and self._goes_on(label, promised.type) and not (id in changed_in and _exact(label)):
                self._promise(label, former._promised.pop(id))
        for id, cached in former._arrays.items():
            vertices, label = changed(id, cached.behind), labels.get(id)
            before = 0 if cached.column.changed is None else len(cached.column.changed)
            if label is None or not self._goes_on(label, cached.type) or not self.in_memory(label):
                continue
            if len(vertices) + before <= _followed(label):
                self._arrays[id] = replace(cached, behind=vertices)
        former.drop()

    def _goes_on(self, label: EdgeLabel, type: Type) -> bool:
        """Whether the values of a property are still of a type that a column was made with, as far as is known."""
        if not _exact(label):
            return type == self._type(label)
        written = self._written.get(label.id)
        return written is not None and written.form is not None and written.form.type == type

    def drop(self) -> None:
        """Drop all tables, because the data changed."""
        self._connection.discard(column.relation for column in (*self._tables.values(), *self._promised.values()))
        self._tables.clear()
        self._promised.clear()
        self._behind.clear()
        self.drop_arrays()
        self._large = set()
        self.lineage = object()
        self._looks, self._sweeps = Counter(), Counter()

    def drop_arrays(self) -> None:
        """Read arrays anew, because a setting changed how DuckDB hands values over."""
        self._arrays, self._bytes = {}, 0


def _exact(label: EdgeLabel) -> bool:
    """Whether only the texts of a property's values say what these are."""
    return bool(label.kinds & EXACT_ONLY)


def _subjects_by_label(changes: Iterable[Changes]) -> dict[int, NDArray[np.int64]]:
    """Return the subjects of what came and went, by label."""
    rows = np.concatenate([rows for change in changes for rows in (change.removed, change.added)] or [_NONE])
    if not len(rows):
        return {}
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    ids, begins = np.unique(rows[:, 0], return_index=True)
    return dict(zip(ids.tolist(), np.split(rows[:, 1], begins[1:]), strict=True))


def _followed(label: EdgeLabel) -> int:
    """How many vertices' values in a column of a property are read anew before all are."""
    return max(FOLLOWED, label.triples // _SHARE)


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
