"""Properties as arrays in memory: what a query reads of vertices that it has found.

Those used last stay, as many as the budget takes; others are mapped from a file.  They are read from the literal table
when a query first asks for more than a handful of vertices, which are looked up in the file, and followed when single
vertices change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.arrow import numbers, strings
from graphdb.common.duckdb.connection import Connection
from graphdb.common.duckdb.fetch import rows_of
from graphdb.common.values.terms import LITERAL_BASE
from graphdb.common.values.types import AS_WRITTEN, INTEGER, STRING, VALUE, WHOLE_AND_REAL, Base, Type, bases_of_kinds
from graphdb.snapshot.columns import ValueColumn, read_columns
from graphdb.snapshot.large_columns import read_large_column
from graphdb.snapshot.property_types import Changed, PropertyTypes, exact_only, most_reread
from graphdb.storage.arrays.arrow import values
from graphdb.storage.catalog import EdgeLabel
from graphdb.storage.file.verify import Ids
from graphdb.storage.graph.changes import Changes
from graphdb.storage.persisted.store import NOTHING, StateStructures, own_bytes

SMALL = 2_000_000
"""Values up to which a property is read as an array once more than a handful is asked for: in a tenth of a second."""

_LEAST_BYTES = 8
"""Bytes of memory that a value takes at least, …"""
_READ_BYTES = 64
"""… and while more than :data:`SMALL` are read at once: where that is more than the memory, they are read in passes."""

_VALUE_BYTES = 16
"""Bytes that a value takes as a rule: a number, or a short text with its place."""

_OFTEN = 2
"""Times that a large array makes room for others, after which DuckDB is asked instead: to read it anew takes long."""

_PER_LOOK = 300_000
"""Of how many values each lookup of a handful stands for one: all are read once lookups took a tenth of the time that
this takes, since whoever asks so often asks on.  A lookup takes 3 to 4 ms, to read a million values 100 to 120."""

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

_OF_ONE_SIZE = (
    Base.BOOLEAN, Base.INTEGER, Base.DECIMAL, Base.FLOAT, Base.DATE, Base.DATETIME, Base.ZONED, Base.MOMENT
)  # fmt: skip
_IN_PASSES = frozenset((*_OF_ONE_SIZE, Base.STRING))
"""Types of which many values are read in passes: texts, and those all of whose values take the same number of bytes."""


@dataclass(frozen=True, slots=True)
class _Cached:
    """A column in memory."""

    column: ValueColumn
    type: Type
    stale: frozenset[int] = frozenset()
    """Vertices whose values are not what the column says, which was read for an earlier state."""
    known: Mapping[int, int | str | None] = field(default_factory=dict)
    """What is known of the values of some of these by now; None of those that have none."""

    def noted(self, label: int, changes: Iterable[Changes]) -> Mapping[int, int | str | None]:
        """Return what is known of values after some changes, too, of a property that vertices have one value of."""
        known = {**self.known}
        for change in changes:
            gone, come = (
                rows[(rows[:, 0] == label) & (rows[:, 2] >= LITERAL_BASE), 1:].tolist()
                for rows in (change.removed, change.added)
            )
            known.update((vertex, None) for vertex, _ in gone)
            for vertex, literal in come:
                if (value := change.values.get(literal)) is None:
                    known.pop(vertex, None)
                else:
                    known[vertex] = value
        return known

    def known_column(self) -> ValueColumn | None:
        """Return the values of the stale vertices as a column of these; None where some are to be looked up."""
        if not self.stale <= self.known.keys():
            return None
        there = [vertex for vertex in sorted(self.stale) if self.known[vertex] is not None]
        made = self._known_values(there)
        if made is None:
            return None
        return ValueColumn.of(np.array(there, np.int64), np.arange(len(there), dtype=np.int32), made)

    def of_handful(self, ids: arrow.Array | arrow.ChunkedArray) -> arrow.Array | arrow.ChunkedArray | None:
        """Return the values of a handful of vertices by now, where the column has all of them, or none and they are
        known; else None.  After a small change the column is not brought up to date for them.
        """
        if len(ids) > _HANDFUL or len(self.stale) > _HANDFUL or ids.null_count:
            return None
        wanted = values(ids).tolist()
        if self.stale.isdisjoint(wanted):
            return self.column.gather(ids)
        return self._known_values(wanted) if self.known.keys() & self.stale >= {*wanted} else None

    def _known_values(self, vertices: Sequence[int]) -> arrow.Array | None:
        """Return what is known of some vertices, as the column has its values; None where it has others."""
        kind, found = {INTEGER: int, STRING: str}.get(self.type), [self.known[vertex] for vertex in vertices]
        if kind is None or not all(value is None or type(value) is kind for value in found):
            return None
        given: list[Any] = found
        made = strings(given) if kind is str else numbers(
            np.array([value or 0 for value in given], np.int64), np.array([value is not None for value in given], bool)
        )  # fmt: skip
        return made if made.type == self.column.values.type else None


class PropertyArrays(PropertyTypes):
    """The properties of one state of the data that are in memory.

    Parameters
    ----------
    ids
        Which ids there are.
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
        super().__init__(connection, scales)
        self._ids = ids
        self._memory = memory
        self._persisted = persisted
        self._arrays: dict[int, _Cached] = {}
        """By label id, those used last at the end."""
        self._bytes = 0
        """At least what the arrays take that are not mapped: of those that were replaced the former count, too."""
        self._large: set[int] = set()
        """Labels of properties whose values take more than the budget."""
        self._looks: Counter[int] = Counter()
        """How often a handful of vertices was looked up, by label id."""
        self._left: Counter[int] = Counter()
        """How often a large array made room for others, by label id."""
        self._sweeps: Counter[int] = Counter()
        """How often most texts of a column were asked for, by label id."""
        self._longest: int | None = None

    def longest_text(self) -> int:
        """Return how many bytes a text has at most, by DuckDB's statistics: one that is gone may count."""
        if self._longest is None:
            rows = self._connection.rows("SELECT stats(text) FROM _graphdb.literal LIMIT 1")
            self._longest = rows[0][0].get("max_string_length", 0) if rows else 0
        return self._longest

    def in_memory(self, label: EdgeLabel) -> bool:
        """Whether a property is read as an array: one value of one type per vertex, and not too many of them."""
        return self._fits(label) and self.gathers(label) and (exact_only(label) or self.type_of(label) != VALUE)

    def in_columns(self, label: EdgeLabel) -> bool:
        """Whether columns compute a property: it is :meth:`in_memory`, or of integers and floating-point numbers."""
        return self.in_memory(label) or (self.is_mixed_numeric(label) and self.gathers(label))

    def is_mixed_numeric(self, label: EdgeLabel) -> bool:
        """Whether all values of a property are integers and floating-point numbers, and there may be both."""
        return not exact_only(label) and bases_of_kinds(label.kinds) == WHOLE_AND_REAL

    def gathers(self, label: EdgeLabel) -> bool:
        """Whether :meth:`gather` has a property's values: those of several types, too, which columns do not compute.

        Those that do not fit into memory are looked up; :meth:`joins` says of how many they had better be joined.
        """
        if not label.triples or label.max_values != 1:
            return False
        if exact_only(label) and (not self.has_type(label) or self.type_of(label).base is not Base.LIST):
            return False
        # Of points in time among others a union has no offsets.
        return exact_only(label) or not label.kinds & AS_WRITTEN or self.type_of(label) != VALUE

    def joins(self, labels: Iterable[EdgeLabel], rows: int) -> bool:
        """Whether the values of some properties, of so many vertices, had better be joined by SQL than gathered."""
        return any(not self._fits(label) and not self._is_handful(label, rows) for label in labels)

    def _fits(self, label: EdgeLabel) -> bool:
        """Whether the values of a property are an array in memory, or a mapped one."""
        if label.id in self._large:
            return False
        if label.triples * (_LEAST_BYTES if label.triples <= SMALL else _READ_BYTES) <= self._memory:
            return True
        return self._in_passes(label) and (label.triples * _LEAST_BYTES <= self._memory or self._persisted.may_map)

    def _in_passes(self, label: EdgeLabel) -> bool:
        """Whether the values of a property are read in passes: they are many, and texts, or of one size each."""
        return label.triples * _READ_BYTES > self._memory and self.type_of(label).base in _IN_PASSES

    def fit_together(self, labels: Collection[EdgeLabel]) -> bool:
        """Whether some properties may be read all at once: they have not many values, or are arrays that fit."""
        total = sum(label.triples for label in labels)
        return total <= SMALL or (total * _VALUE_BYTES <= self._memory and all(map(self.in_memory, labels)))

    def of_handful(
        self, label: EdgeLabel, ids: arrow.Array | arrow.ChunkedArray
    ) -> arrow.Array | arrow.ChunkedArray | None:
        """Return the values of a handful of vertices, if they are in memory or known; else None."""
        cached = self._arrays.get(label.id)
        return None if cached is None or not cached.stale else cached.of_handful(ids)

    def source(self, label: EdgeLabel, rows: int) -> ValueColumn | None:
        """Return the column that :meth:`gather` takes values of so many from; None where it asks DuckDB for them."""
        if not self._fits(label):
            return None
        at_once = label.id in self._arrays or not self._is_handful(label, rows) or label.triples <= _LARGE
        at_once = at_once or self._persisted.has(self._key(label))
        looks = LOOKS if label.triples <= SMALL else max(label.triples // _PER_LOOK, LOOKS)
        if not at_once and self._looks[label.id] < looks:
            return None
        column = self.array(label)
        if column is not None and column.places is not None and 2 * rows > len(column.places):
            column = self._spread(label, column)
        return column

    def at_hand(self, label: EdgeLabel) -> bool:
        """Whether the values of a handful of vertices are taken from an array that is there, or worth it by now.

        Whoever is told that they are not looks them up.
        """
        if label.id in self._arrays:
            return True
        is_typed = not exact_only(label) or label.id in self._written  # to find the form of texts takes longer
        if is_typed and self.gathers(label) and self._fits(label) and self._persisted.has(self._key(label)):
            return True
        self._looks[label.id] += 1
        return self._looks[label.id] > LOOKS and label.triples <= SMALL

    def _is_handful(self, label: EdgeLabel, rows: int) -> bool:
        """Whether so many vertices had better be looked up than all values be read."""
        return rows <= max(_HANDFUL, label.triples // _ONE_OF)

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
        if cached is not None and not cached.stale:
            self._arrays[label.id] = cached  # the last that was used
            return cached.column
        if cached is None:
            value_sql = self._value_sql(label)

            def read() -> ValueColumn | None:
                if self._in_passes(label):
                    room = self._persisted.room(self._memory)
                    column = read_large_column(self._connection, self._ids, label.id, value_sql, room)
                    if column is not None:
                        return column
                found = read_columns(self._connection, self._ids, [label.id], value_sql, self._memory)
                return None if found is None else found[0]

            key = self._key(label)
            column = self._persisted.get_or_derive(key, read, self._memory)
            if column is None or (own_bytes(column) > self._memory and not self._persisted.has(key)):
                self._large.add(label.id)
                return None
            cached = _Cached(column, self._type(label))
            self._sweeps[label.id] = 0
        else:
            column = cached.column
            vertices = np.array(sorted(cached.stale), np.int64)
            later = cached.known_column()
            if later is None:
                later = self._looked_up(label, vertices)
            cached = _Cached(column.changed_to(vertices, later), cached.type)
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
                together.setdefault(self._value_sql(label), {})[label.id] = label
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
        for id in [id for id, cached in self._arrays.items() if cached.stale]:
            self.array(labels[id])

    def _cache(self, label: EdgeLabel, cached: _Cached) -> None:
        """Put a column at the end of those in memory; where they take too much, those go that were used first."""
        self._bytes += own_bytes(cached.column)
        if self._bytes > self._memory:
            self._bytes = sum(own_bytes(each.column) for each in (cached, *self._arrays.values()))
        for id in list(self._arrays) if self._bytes > self._memory else ():
            column = self._arrays[id].column
            if self._bytes <= self._memory or not (size := own_bytes(column)):
                continue
            del self._arrays[id]
            self._bytes -= size
            if column.nbytes > SMALL * _LEAST_BYTES and not self._persisted.may_map:
                self._left[id] += 1
                if self._left[id] >= _OFTEN:
                    self._large.add(id)
        self._arrays[label.id] = cached

    def _follow_arrays(
        self, former: PropertyArrays, labels: Mapping[int, EdgeLabel], changed: Changed, changes: Sequence[Changes]
    ) -> None:
        """Take over the arrays of properties of the same type still, of which few values have changed."""
        self._large, self._bytes = former._large, former._bytes
        self._looks, self._sweeps, self._left = former._looks, former._sweeps, former._left
        if self._ids.literals == former._ids.literals:
            self._longest = former._longest
        for id, cached in former._arrays.items():
            vertices, label = changed(id, cached.stale), labels.get(id)
            before = 0 if cached.column.changed is None else len(cached.column.changed)
            if label is None or not self._goes_on(label, cached.type) or not self.in_memory(label):
                continue
            if len(vertices) + before <= most_reread(label):
                known = cached.known if vertices is cached.stale else cached.noted(id, changes)
                self._arrays[id] = replace(cached, stale=vertices, known=known)

    def _forget_arrays(self) -> None:
        """Drop the arrays with what was counted for them, because the data changed."""
        self.drop_arrays()
        self._large = set()
        self._looks, self._sweeps, self._left = Counter(), Counter(), Counter()

    def drop_arrays(self) -> None:
        """Read arrays anew, because a setting changed how DuckDB hands values over."""
        self._arrays, self._bytes = {}, 0
