"""Columns of properties with many values, read while little memory is taken beside what the column takes itself.

The triples and the literals are passed over as DuckDB hands them out: which literals there are, their values, and
whose each is.  What a pass leaves behind is an array for the next one, in a file where memory has no room for it
(:class:`~graphdb.storage.persisted.room.Room`).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.duckdb.connection import Connection
from graphdb.common.duckdb.fetch import batches
from graphdb.snapshot.columns import BATCH, MARKED, SPREAD, TABLE, TEXT_BYTES, ValueColumn
from graphdb.storage.arrays.arrow import string_places, values
from graphdb.storage.arrays.texts import taken
from graphdb.storage.file import verify
from graphdb.storage.persisted.room import NoRoom, Room

Ints = NDArray[np.int64]


def read_large_column(
    connection: Connection, ids: verify.Ids, label: int, value_sql: str, room: Room
) -> ValueColumn | None:
    """Read the values of a property as :func:`~graphdb.snapshot.columns.read_columns` does.

    None where there are none, there is no room for them, they are neither texts nor of one size each, or they lie far
    apart among the literals.

    Raises
    ------
    StorageError
        The file is damaged.
    """
    try:
        return _Reading(connection, ids, label, value_sql, room).column()
    except NoRoom:
        return None


class _Reading:
    """What is known of a property while its values are read."""

    def __init__(self, connection: Connection, ids: verify.Ids, label: int, value_sql: str, room: Room) -> None:
        self._connection, self._ids, self._value_sql, self._room = connection, ids, value_sql, room
        self._table = TABLE.format(label)
        sql = f"SELECT count(*), min(subject), max(subject), min(object), max(object) FROM {self._table}"
        [row] = connection.rows(sql)
        self._count: int = row[0]
        self._first: int = row[1] or 0
        self._last: int = row[2] or 0
        self._least: int = row[3] or 0
        self._greatest: int = row[4] or 0
        self._dense = self._last - self._first < SPREAD * self._count
        """Whether each vertex between the first and the last has a place."""

    def column(self) -> ValueColumn | None:
        """Return the column; None as :func:`read_large_column` says."""
        if not self._count:
            return None
        self._ids.literal(np.array([self._least, self._greatest]), "object")
        self._ids.resource(np.array([self._first, self._last]), "subject")
        span = self._greatest - self._least + 1
        if span > MARKED * self._count:
            return None
        marks = self._room.zeros(span, bool)
        for (objects,) in self._passed(f"SELECT object FROM {self._table}"):
            marks[values(objects) - self._least] = True
        read = self._values(marks)
        return None if read is None else self._of_vertices(*read)

    def _passed(self, sql: str) -> Iterator[tuple[arrow.Array, ...]]:
        """Yield the rows of a query some at a time."""
        with self._connection.lock, self._connection.guard() as raw, batches(raw, sql, BATCH) as rows:
            for batch in self._room.passing(rows):
                yield tuple(batch.columns)

    def _values(self, marks: NDArray[np.bool_]) -> tuple[NDArray[np.int32], arrow.Array, int] | None:
        """Return of each literal from the least on which of the values is that of it, from 1 on, or 0; the values of
        those that are marked; and the bytes of the longest text, 0 of others.
        """
        standing: NDArray[np.int32] = self._room.zeros(len(marks), np.int32)
        count = int(np.count_nonzero(marks))
        where = f"l.id BETWEEN {self._least} AND {self._greatest}"
        if len(marks) > SPREAD * count:
            where = f"l.id IN (SELECT object FROM {self._table})"
        sql = f"SELECT l.id, {self._value_sql} AS value FROM _graphdb.literal l WHERE {where}"
        read: _Texts | _Numbers | None = None
        at = 0
        for literals, part in self._passed(sql):
            there = values(literals) - self._least
            if len(mine := np.flatnonzero(marks[there])) < len(there):
                there, part = there[mine], taken(part, mine)
            if read is None:
                texts = arrow.is_string(part.type)
                read = _Texts(count, self._room) if texts else _Numbers.like(part, count, self._room)
                if read is None:
                    return None
            if at + len(there) > count:
                raise verify.damaged(_NOT_ONCE)
            standing[there] = np.arange(at + 1, at + len(there) + 1, dtype=np.int32)
            if not read.put(np.arange(at, at + len(there)), part):
                return None
            at += len(there)
        if read is None or np.count_nonzero(standing) < count:
            raise verify.damaged(_NOT_ONCE)
        return standing, read.array(), read.longest

    def _of_vertices(self, standing: NDArray[np.int32], found: arrow.Array, longest: int) -> ValueColumn | None:
        """Return the column, with the values of literals where these stand."""
        length = self._last - self._first + 1 if self._dense else self._count
        numbers = None if longest else _Numbers.like(found, length, self._room)
        places: NDArray[np.int32] = self._room.zeros(length if longest else 0, np.int32)
        places.fill(-1)
        seen = self._room.zeros(length if self._dense else 0, bool)
        subjects: Ints = self._room.zeros(0 if self._dense else length, np.int64)
        at, last = 0, -1
        order = "" if self._dense else " ORDER BY subject ASC"
        for part, objects in self._passed(f"SELECT subject, object FROM {self._table}{order}"):
            vertices = values(part)
            if self._dense:
                rows = vertices - self._first
                seen[rows] = True
            else:
                rows = np.arange(at, at + len(vertices))
                if (np.diff(vertices, prepend=last) <= 0).any():
                    raise verify.damaged(_TWICE)
                last = int(vertices[-1])
                subjects[rows] = vertices
            stands = standing[values(objects) - self._least] - 1
            if numbers is None:
                places[rows] = stands
            else:
                numbers.put(rows, taken(found, stands))
            at += len(vertices)
        if self._dense and np.count_nonzero(seen) < at:
            raise verify.damaged(_TWICE)
        known = None if self._dense else subjects
        if numbers is None:
            return ValueColumn(self._first, places, found, known, longest)
        return ValueColumn(self._first, None, numbers.array(), known)


_NOT_ONCE = "a value of a property is not there, or twice"
_TWICE = "a vertex has more values of a property than are counted"


class _Texts:
    """Texts one after the other."""

    def __init__(self, count: int, room: Room) -> None:
        self._offsets: NDArray[np.int32] = room.zeros(count + 1, np.int32)
        self._bytes = room.texts()
        self.longest = 1

    def put(self, at: Ints, texts: arrow.Array) -> bool:
        """Add texts, which come behind those before; return whether they can stand in one column."""
        data, begins = string_places(texts)
        size = len(self._bytes)
        if texts.null_count or size + int(begins[-1] - begins[0]) > TEXT_BYTES:
            return False
        self._bytes.add(data[begins[0] : begins[-1]])
        self._offsets[at + 1] = begins[1:] + (size - begins[0])
        self.longest = max(self.longest, int(np.diff(begins).max(initial=0)))
        return True

    def array(self) -> arrow.Array:
        """Return all of them."""
        return arrow.text_array(self._bytes.array(), self._offsets)


class _Numbers:
    """Values of one size each, or structs of such."""

    longest = 0

    def __init__(self, blank: arrow.Array) -> None:
        self._array = blank

    @classmethod
    def like(cls, values: arrow.Array, count: int, room: Room) -> _Numbers | None:
        """Return so many nulls of the type of some values; None where these have not one size."""
        blank = _blank(values, count, room)
        return None if blank is None else cls(blank)

    def put(self, at: Ints, values: arrow.Array) -> bool:
        """Put values at some places."""
        _put(self._array, at, values)
        return True

    def array(self) -> arrow.Array:
        """Return the values."""
        return _with_nulls(self._array)


def _blank(like: arrow.Array, length: int, room: Room) -> arrow.Array | None:
    """Return an array of nulls, of a type, that values are put into; None where these have not one size."""
    if like.type.format != "+s" and (like.data is None or like.offsets is not None or like.children):
        return None
    children = [_blank(child, length, room) for child in like.children]
    if None in children:
        return None
    data = None if like.data is None else room.zeros((length, *like.data.shape[1:]), like.data.dtype)
    found = tuple(child for child in children if child is not None)
    return arrow.Array(like.type, length, room.zeros(length, bool), data, None, found)


def _put(column: arrow.Array, at: Ints, found: arrow.Array) -> None:
    """Put values at some places of an array that :func:`_blank` made."""
    assert column.valid is not None
    column.valid[at] = found.is_valid()
    if column.data is not None:
        column.data[at] = found.data
    for child, part in zip(column.children, found.children, strict=True):
        _put(child, at, part)


def _with_nulls(column: arrow.Array) -> arrow.Array:
    """Return an array that says which values are null only where some are."""
    assert column.valid is not None
    valid = None if column.valid.all() else column.valid
    return arrow.Array(column.type, len(column), valid, column.data, None, tuple(map(_with_nulls, column.children)))
