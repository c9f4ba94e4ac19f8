"""Property columns in memory: the values of one property by dense vertex id, so that reading some is a gather.

A column is an Arrow array of typed values with a null mask.  Where a property's vertices lie close together, as those
of one label do, the array has a place for each id between the first and the last of them; elsewhere it has the values
alone, and a binary search among the sorted ids finds the place.  Texts stand once each, as in a dictionary encoding,
and the places of the vertices say which is whose, until most of them are asked for again.

Columns are read from the triples and the literal table of the file by gathers, too (:func:`read_columns`): that takes
some 20 ms for a million values, a fifth of what a join takes, so that nothing of them is stored.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.arrow import numbers
from graphdb.common.duckdb.connection import Connection
from graphdb.common.duckdb.fetch import batches
from graphdb.common.stopping import checked
from graphdb.common.values.terms import LITERAL_BASE
from graphdb.storage.arrays.arrow import values
from graphdb.storage.arrays.sorted_sets import joined, looked_up, places, without
from graphdb.storage.arrays.texts import codes_of_texts, gathered, is_run, taken
from graphdb.storage.file import verify
from graphdb.storage.persisted.packing import persistable

Ints = NDArray[np.int64]

SPREAD = 4
"""Places for each value, at most, of an array that has one for each id."""

MARKED = 64
"""Literals for each value up to which those that are values are marked in an array."""

_GAP = 16_384
"""Ids that are not wanted from which on two ranges are read, and not what is between: to begin one takes DuckDB longer
than to read some thousand values."""

_RANGES = 32
"""Ranges that are read, at most."""

BATCH = 122_880
"""Rows that are read at once: as many as a row group of DuckDB's has."""

TEXT_BYTES = 1 << 30
"""Bytes of the texts that are gathered into one array: Arrow counts them by 32 bits."""

_runs: WeakKeyDictionary[arrow.Array, bool] = WeakKeyDictionary()
"""Whether the ids of an array follow one another: several columns are gathered by the same."""


def _follow_one_another(ids: arrow.Array | arrow.ChunkedArray, wanted: NDArray[np.signedinteger[Any]]) -> bool:
    """Whether ids, and the integers that they are, follow one another."""
    if not isinstance(ids, arrow.Array):
        return is_run(wanted)
    found = _runs.get(ids)
    if found is None:
        found = _runs[ids] = is_run(wanted)
    return found


@persistable
@dataclass(frozen=True, slots=True, weakref_slot=True)
class ValueColumn:
    """The values of a property that has one value for each vertex at most."""

    first: int
    """The id of the first vertex that has a value."""
    places: NDArray[np.int32] | None
    """By id from ``first`` on, or of ``subjects``: where the value stands, or -1; None where values stand so."""
    values: arrow.Array
    subjects: Ints | None
    """The ids of the vertices with a value, sorted; None where each id between the first and the last has a place."""
    longest: int = 0
    """Bytes of the longest text."""
    changed: Ints | None = None
    """Vertices, sorted, whose values are in ``later``, or nowhere by now."""
    later: ValueColumn | None = None

    @classmethod
    def of(cls, subjects: Ints, standing: NDArray[np.int32], found: arrow.Array) -> ValueColumn:
        """Return the column of vertices (int64 term ids, each once, in any order) of which each has a value.

        ``standing`` (int32, of each vertex) says where among those ``found`` its value stands.

        Raises
        ------
        StorageError
            A vertex is there twice.
        """
        longest = _longest(found)
        if not len(subjects):
            return cls(0, None, found, subjects)
        first, span = int(subjects.min()), int(np.ptp(subjects)) + 1
        known: Ints | None = None
        if span > SPREAD * len(subjects):
            order = np.argsort(subjects, kind="stable")
            known, by_id = subjects[order], standing[order]
            distinct = bool((np.diff(known) > 0).all())
        else:
            by_id = np.full(span, -1, np.int32)
            by_id[subjects - first] = standing
            distinct = int(np.count_nonzero(by_id >= 0)) == len(subjects)
        if not distinct:
            raise verify.damaged("a vertex has more values of a property than are counted")
        if len(by_id) == len(found) and bool((by_id == np.arange(len(found), dtype=np.int32)).all()):
            return cls(first, None, found, known, longest)
        if longest or arrow.is_union(found.type):  # which says of each member where that is null
            return cls(first, by_id, found, known, longest)
        return cls(first, None, taken(found, by_id), known)  # a place takes as much as a value

    def changed_to(self, vertices: Ints, later: ValueColumn) -> ValueColumn:
        """Return the column in which some vertices (sorted) have other values, or none: beside what changed before."""
        if self.changed is not None and self.later is not None:
            there, before = self.later.rows()
            still = ~places(vertices, there)[1]
            now, values_now = later.rows()
            subjects = np.concatenate([there[still], now])
            found = arrow.ChunkedArray([*_chunks(before), *_chunks(values_now)], later.values.type).combine_chunks()
            chosen = np.append(np.flatnonzero(still), len(there) + np.arange(len(now)))
            later = ValueColumn.of(subjects, np.arange(len(subjects), dtype=np.int32), taken(found, chosen))
            vertices = joined(self.changed, vertices)
        return replace(self, changed=vertices, later=later, longest=max(self.longest, later.longest))

    def spread(self, memory: int) -> ValueColumn | None:
        """Return the column with each text in its place, so that those of a run of vertices are a slice.

        None where it would take more than ``memory`` bytes, and of values of several types.
        """
        if self.places is None:
            return self
        if arrow.is_union(self.values.type):
            return None
        there = self.places >= 0
        size = int(self.values.lengths()[self.places[there]].sum()) + 4 * len(there)
        if size > min(memory, TEXT_BYTES):
            return None
        return replace(self, places=None, values=taken(self.values, self.places))

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        own = sum(each.nbytes for each in (self.subjects, self.places) if each is not None)
        return own + int(self.values.nbytes)

    def rows(self) -> tuple[Ints, arrow.Array | arrow.ChunkedArray]:
        """Return the vertices that have a value, sorted, and their values."""
        vertices = self.vertices()
        return vertices, self.gather(numbers(vertices))

    def vertices(self) -> Ints:
        """Return the vertices that have a value, sorted."""
        if self.subjects is not None:
            vertices = self.subjects
        else:
            there = self.values.is_valid() if self.places is None else self.places >= 0
            vertices = np.flatnonzero(there) + self.first
        if self.changed is not None and self.later is not None:
            vertices = joined(without(vertices, self.changed), self.later.vertices())
        return vertices

    def standing_at(self, found: Ints) -> Ints:
        """Return the vertices (int64 term ids, sorted) whose values stand at some places; none has changed since."""
        if self.places is not None:
            marked = np.zeros(len(self.values) + 1, bool)  # that no value stands at is the last one
            marked[found] = True
            found = np.flatnonzero(marked[self.places])
        else:
            found = np.sort(found)
        return found + self.first if self.subjects is None else self.subjects[found]

    def gather(self, ids: arrow.Array | arrow.ChunkedArray) -> arrow.Array | arrow.ChunkedArray:
        """Return the values of vertices (int64 term ids, or null), row for row; null where one has none."""
        wanted = values(ids)  # anything where they are null
        there = ids.is_valid() if ids.null_count else None
        if self.longest * len(wanted) <= TEXT_BYTES:
            if there is None and self._has_places and self.changed is None and _follow_one_another(ids, wanted):
                begin = int(wanted[0]) - self.first
                if begin >= 0 and begin + len(wanted) <= len(self.values):
                    return self.values.slice(begin, len(wanted))
            return self._gather(wanted, there)
        step = max(1, TEXT_BYTES // self.longest)
        pieces = [slice(begin, begin + step) for begin in range(0, len(wanted), step)]
        return arrow.ChunkedArray([self._gather(wanted[i], None if there is None else there[i]) for i in pieces])

    def codes(self) -> tuple[ValueColumn, int] | None:
        """Return the column with numbers in place of texts, the same for equal ones, and a bound of these.

        None of others than texts that stand at their vertices' places, of which most come several times.
        """
        found = codes_of_texts(self.values) if self._has_places and self.changed is None else None
        return None if found is None else (replace(self, values=found[0], longest=0), found[1])

    def delayed(self, ids: arrow.ChunkedArray) -> arrow.DelayedArray:
        """Return what :meth:`gather` does, gathered when it is asked for."""
        size = -(-self.values.nbytes // max(len(self.values), 1))
        alone = self._has_places and self.changed is None and not ids.null_count
        return arrow.DelayedArray(
            self.values.type,
            len(ids),
            size * len(ids),
            lambda: [piece for chunk in checked(ids.chunks, 1) for piece in arrow.chunks(self.gather(chunk))],
            lambda start, length: self.delayed(ids.slice(start, length)),
            arrow.Gathered(self.values, self.first, ids) if alone else None,
        )

    def _gather(self, wanted: NDArray[np.signedinteger[Any]], known: NDArray[np.bool_] | None) -> arrow.Array:
        """Return the values of vertices, of those that are ``known``."""
        alone = self._has_places and known is None and self.changed is None
        if alone and (direct := gathered(self.values, self.first, wanted)) is not None:
            return direct[0]
        wanted = wanted.astype(np.int64, copy=False)
        at: NDArray[np.signedinteger[Any]]
        if self.subjects is None:
            at = wanted - self.first
            there = at.view(np.uint64) < len(self.values if self.places is None else self.places)  # below 0 is large
        elif len(self.subjects):
            at, there = looked_up(self.subjects, wanted)
        else:
            at, there = wanted, np.zeros(len(wanted), bool)
        if known is not None:
            there &= known
        every = bool(there.all())
        if self.places is not None and len(self.places):
            at = self.places[at] if every else self.places[np.where(there, at, 0)]
            there &= at >= 0
            every = every and bool(there.all())
        if every and is_run(at):
            found = self.values.slice(int(at[0]), len(at))
        else:
            found = taken(self.values, at if every else np.where(there, at, -1))
        if self.changed is None or self.later is None:
            return found
        anew = places(self.changed, wanted)[1]
        if known is not None:
            anew &= known
        if not anew.any():
            return found
        now = self.later._gather(wanted[anew], None)
        at = np.arange(len(wanted))
        at[anew] = len(wanted) + np.arange(len(now))
        return taken(arrow.concat_arrays([found, now]), at)

    @property
    def _has_places(self) -> bool:
        """Whether each id from the first one on has its place among the values."""
        return self.subjects is None and self.places is None


def read_columns(
    connection: Connection, ids: verify.Ids, labels: Sequence[int], value_sql: str, memory: int
) -> list[ValueColumn] | None:
    """Read the values of properties of one type from the file; None where they take more than ``memory`` bytes.

    Two statements read them all, each of which takes DuckDB as long as it takes to read some thousand values.

    Parameters
    ----------
    ids
        Which ids there are: those that are read are checked.
    labels
        The properties, at least one and each once: no vertex has two values of any.
    value_sql
        SQL of a value, over the alias ``l`` of the literal table.

    Raises
    ------
    StorageError
        The file is damaged.
    """
    table = TABLE.format(", ".join(map(str, labels)))
    return _read_columns(connection, ids, labels, table, value_sql, memory)


TABLE = f"_graphdb.triple WHERE label IN ({{}}) AND object >= {LITERAL_BASE}"
"""The values of properties: of vertices that have some."""


def _read_columns(
    connection: Connection, ids: verify.Ids, labels: Sequence[int], table: str, value_sql: str, memory: int
) -> list[ValueColumn] | None:
    """Return what :func:`read_columns` does, of the triples of a ``table``."""
    several = len(labels) > 1
    triples = connection.arrow(f"SELECT subject, object{', label' if several else ''} FROM {table}")
    subjects, literals = values(triples.column("subject")), values(triples.column("object"))
    ids.resource(subjects, "subject")
    ids.literal(literals, "object")
    if len(literals):
        read = read_values_within(connection, literals, f"SELECT object FROM {table}", value_sql, memory)
        if read is None:
            return None
        standing, found = read
    else:
        standing = subjects.astype(np.int32)
        empty = connection.arrow(f"SELECT {value_sql} AS value FROM _graphdb.literal l LIMIT 0").column(0)
        found = empty.combine_chunks()
    if not several:
        return [ValueColumn.of(subjects, standing, found)]
    label = values(triples.column("label"))
    order = np.argsort(label, kind="stable")
    begins, ends = (np.searchsorted(label, labels, side, order).tolist() for side in ("left", "right"))
    columns = []
    for begin, end in zip(begins, ends, strict=True):
        mine = order[begin:end]
        own, at = np.unique(standing[mine], return_inverse=True)
        columns.append(ValueColumn.of(subjects[mine], at.astype(np.int32), taken(found, own)))
    return columns


def read_values(
    connection: Connection, literals: Ints, same_sql: str, value_sql: str
) -> tuple[NDArray[np.int32], arrow.Array]:
    """Read the values of literals from the file, as :func:`read_values_within` does, whatever they take."""
    found = read_values_within(connection, literals, same_sql, value_sql, sys.maxsize)
    assert found is not None
    return found


def read_values_within(
    connection: Connection, literals: Ints, same_sql: str, value_sql: str, memory: int
) -> tuple[NDArray[np.int32], arrow.Array] | None:
    """Read the values of literals from the file; None where they take more than ``memory`` bytes.

    Parameters
    ----------
    literals
        Some ids, in any order: at least one.
    same_sql
        A query for the same ids.
    value_sql
        SQL of a value, over the alias ``l`` of the literal table.

    Returns
    -------
    tuple
        Of each id where its value stands: int32 [ids]; and the values of those that are distinct.
    """
    first, span = int(literals.min()), int(np.ptp(literals)) + 1
    marks = None
    if span <= MARKED * len(literals):
        marks = np.zeros(span, bool)
        marks[literals - first] = True
        distinct = np.flatnonzero(marks) + first
        standing = (np.cumsum(marks, dtype=np.int32) - 1)[literals - first]
    else:
        distinct, inverse = np.unique(literals, return_inverse=True)
        standing = inverse.astype(np.int32)
    begins, ends = _ranges(distinct)
    read = int((ends - begins).sum()) + len(begins)
    conditions = [f"l.id IN ({same_sql})"]
    if read <= (len(distinct) if marks is None else SPREAD * len(distinct)):
        # It takes DuckDB longer to look for them than to read those between; of a range it skips what is outside.
        conditions = [
            f"l.id BETWEEN {begin} AND {end}" for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)
        ]
    select = f"SELECT l.id AS id, {value_sql} AS value FROM _graphdb.literal l WHERE "
    sql = " UNION ALL ".join(select + condition for condition in conditions)
    found = _read_literals(connection, sql, distinct, marks, memory)
    return None if found is None else (standing, found)


def _ranges(ids: Ints) -> tuple[Ints, Ints]:
    """Return where ranges that have all of some ids (sorted) begin and end: the widest gaps are between them."""
    gaps = np.diff(ids)
    wide = np.flatnonzero(gaps > _GAP)
    if len(wide) >= _RANGES:
        wide = np.sort(wide[np.argsort(gaps[wide], kind="stable")[len(wide) - _RANGES + 1 :]])
    return ids[np.append(0, wide + 1)], ids[np.append(wide, len(ids) - 1)]


def _read_literals(
    connection: Connection, sql: str, wanted: Ints, marks: NDArray[np.bool_] | None, memory: int
) -> arrow.Array | None:
    """Return the values of literals (sorted ids) that SQL yields as (id, value); None where they are too large: for
    ``memory`` bytes, or for one array of texts.

    ``marks`` says of each id from the first to the last whether it is wanted, if SQL yields others between.
    """
    read: list[Ints] = []
    parts: list[Any] = []
    size = 0
    with connection.lock, connection.guard() as raw, batches(raw, sql, BATCH) as found_rows:
        type = found_rows.schema.field(1).type
        most = min(memory, TEXT_BYTES) if arrow.is_string(type) else memory
        for batch in found_rows:
            there, part = values(batch.column(0)), batch.column(1)
            if marks is not None:
                mine = np.flatnonzero(marks[there - wanted[0]])
                if len(mine) < len(there):
                    there, part = there[mine], taken(part, mine)
            read.append(there)
            parts.append(part)
            size += part.nbytes
            if size > most:
                return None
    numbered, found = np.concatenate([wanted[:0], *read]), arrow.ChunkedArray(parts, type).combine_chunks()
    if not np.array_equal(numbered, wanted):
        order = np.argsort(numbered, kind="stable")
        if not np.array_equal(numbered[order], wanted):
            raise verify.damaged("a value of a property is not there, or twice")
        found = taken(found, order)
    return found


def _chunks(column: arrow.Array | arrow.ChunkedArray) -> list[arrow.Array]:
    return [column] if isinstance(column, arrow.Array) else list(column.chunks)


def _longest(texts: arrow.Array) -> int:
    """Return the bytes of the longest of some texts, at least 1; 0 of values of another type."""
    if texts.offsets is None or not arrow.is_string(texts.type):
        return 0
    return max(1, int(texts.lengths().max(initial=0)))
