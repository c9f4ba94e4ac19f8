"""Key lookup: the vertices that have one value of a property, by an index on the property.

A condition ``n.key = value`` asks for few vertices, and DuckDB passes over the values of all literals for it.  A
process that asks again sorts those of the property once; then a value is found by binary search.  What small writes
add and take away since is found beside the sorted values, until it has grown to a share of them.

Only properties whose values are all of one type are indexed: integers, floats, plain strings or dates.  There, numbers
of the literal table, or texts, are equal where the values are.
"""

from __future__ import annotations

import datetime
import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.duckdb.connection import Connection
from graphdb.common.values.temporal import Date
from graphdb.common.values.terms import LITERAL_BASE, Kind
from graphdb.common.values.types import INT64
from graphdb.storage.arrays.arrow import values as plain
from graphdb.storage.arrays.small_joins import in_list
from graphdb.storage.arrays.sorted_sets import unique
from graphdb.storage.catalog import EdgeLabel
from graphdb.storage.file.prepared_sql import execute
from graphdb.storage.graph.changes import Changes
from graphdb.storage.persisted.packing import persistable
from graphdb.storage.persisted.store import NOTHING, StateStructures

Ids = NDArray[np.int64]

_COLUMNS = {
    1 << Kind.INTEGER: "integer",
    1 << Kind.STRING: "text",
    1 << Kind.DOUBLE: "number",
    1 << Kind.DATE: "moment",
}
"""The column of the literal table with the values of a property, by its kinds: of dates the days since 1970."""

_STORED = {1 << Kind.INTEGER: int, 1 << Kind.STRING: str}
"""The types of values that are found where just they are stored, by their kinds."""

_WHOLE = 1 << 53
"""Below which whole numbers are the same as integers and as floats."""

_EPOCH = datetime.date(1970, 1, 1).toordinal()

_UNKNOWN = object()
"""In the place of a value that SQL compares, or says what is wrong with."""

_SURROGATE = re.compile("[\ud800-\udfff]")

MOST = 1000
"""Values of a list that are looked for one by one."""

LOOKS = 2
"""How often a property's values are passed over before they are sorted."""

_ANSWERS = 16
"""Questions whose answers are remembered while values are passed over, …"""
_SHORT = 1000
"""… of so many vertices at most."""

_SHARE = 8
"""An index is read anew when what came since is this part of it, …"""
_FOLLOWED = 1000
"""… and more than so many values."""

_APART = 4
"""Literals that are looked for one by one: DuckDB unpacks those between them otherwise."""

_ENTRY = 48
"""Bytes that a value takes, roughly."""


class KeyIndexes:
    """The indexes on the properties of one state of the data.

    Parameters
    ----------
    limit_bytes
        What they may take of memory, roughly.
    persisted
        What was sorted of the same state before.
    """

    def __init__(self, connection: Connection, limit_bytes: int, persisted: StateStructures = NOTHING) -> None:
        self._connection = connection
        self._persisted = persisted
        self._limit = limit_bytes
        self._asked: Counter[int] = Counter()
        self._answers: dict[tuple[int, tuple[object, ...]], Ids] = {}
        """What was looked up last: the matches of one statement often ask for the same key."""
        self._indexes: dict[int, KeyIndex] = {}

    def tells(self, label: EdgeLabel) -> bool:
        """Whether an index may tell the vertices of a value: of a property of one type, which it has a column for."""
        return label.kinds in _COLUMNS

    @staticmethod
    def is_stored(label: EdgeLabel, value: object) -> bool:
        """Whether who has a value that is equal to this one has just this one: 3.0 is found where 3 is stored."""
        return type(value) is _STORED.get(label.kinds)

    def are_in_memory(self, label: EdgeLabel) -> bool:
        """Whether the values of a property are sorted in memory."""
        return label.id in self._indexes

    def find(self, label: EdgeLabel, values: Sequence[object]) -> Ids | None:
        """Return the resources of which a property has one of some values (int64 ids); None where no index tells."""
        column = _COLUMNS.get(label.kinds)
        if column is None or len(values) > MOST:
            return None
        if len(values) == 1 and type(values[0]) is int and column == "integer" and values[0] in INT64:
            given = [*values]  # what most ask for
        else:
            given = [_stored(value, column) for value in values]
        if _UNKNOWN in given:
            return None
        values = [value for value in given if value is not None]
        index = self._indexes.get(label.id)
        if index is None or index.column != column:
            question = label.id, tuple(values)
            if (answer := self._answers.get(question)) is not None:
                return answer
            self._asked[label.id] += 1
            entries = label.triples + sum(len(each) for each in self._indexes.values())
            if _ENTRY * entries > self._limit:
                return None
            key = ("key index", label.id)
            if self._asked[label.id] <= LOOKS and not self._persisted.has(key):
                if column != "integer":
                    return None
                if len(self._answers) >= _ANSWERS:
                    self._answers.clear()
                answer = self._looked_up(label, values)
                if len(answer) <= _SHORT:
                    self._answers[question] = answer
                return answer
            known = self._persisted.get_or_derive(key, lambda: SortedValues.read(self._connection, label.id, column))
            index = self._indexes[label.id] = KeyIndex(label.id, column, known)
        if len(values) > 1 and (together := index.find_numbers(self._connection, values)) is not None:
            return together
        found = [index.find(self._connection, value) for value in values]
        return found[0] if len(found) == 1 else np.concatenate([np.empty(0, np.int64), *found])

    def _looked_up(self, label: EdgeLabel, integers: Sequence[object]) -> Ids:
        """Return the resources of which a property has one of some values; DuckDB skips most that are none of them.

        Several values are looked for one table after the other, which reads no value but these: joined, both are read.
        """
        triples = "SELECT t.subject FROM _graphdb.triple t"
        with self._connection.guard() as raw:
            if len(integers) > 1:
                sql = "SELECT id FROM _graphdb.literal WHERE integer IN (SELECT unnest($integers::BIGINT[]))"
                literals = execute(raw, sql, {"integers": [*integers]}).fetchnumpy()["id"].tolist()
                sql = f"{triples} WHERE t.label = $label AND t.object IN (SELECT unnest($literals::BIGINT[]))"
                found = execute(raw, sql, {"label": label.id, "literals": literals}).fetchnumpy()["subject"]
            else:
                sql = f"{triples} JOIN _graphdb.literal l ON l.id = t.object WHERE t.label = ? AND l.integer IN (?)"
                found = execute(raw, sql, [label.id, *(integers or [None])]).fetchnumpy()["subject"]
        return unique(np.asarray(found, np.int64))

    def follow(self, former: KeyIndexes, changes: Iterable[Changes]) -> None:
        """Take over the indexes of an earlier state; ``former`` is not to be used any more."""
        self._asked, self._indexes = former._asked, former._indexes
        for change in changes:
            for label in change.labels & self._indexes.keys():
                self._indexes[label].note(change)
                if self._indexes[label].behind > max(_FOLLOWED, len(self._indexes[label]) // _SHARE):
                    del self._indexes[label]

    def catch_up(self) -> None:
        """Read now what came since the last questions: the next one finds it."""
        for index in self._indexes.values():
            index.catch_up(self._connection)


def _stored(value: object, column: str) -> object:
    """Return what a value is in a column of the literal table; None for what equals nothing that stands there.

    :data:`_UNKNOWN` for values that only SQL compares, and for mistakes, which it reports: integers beyond 64 bits, and
    strings that are not of characters.
    """
    match column, value:
        case _, None:
            return None
        case _, bool():
            return _UNKNOWN
        case "integer", int() if value in INT64:
            return int(value)
        case "integer", float() if not value.is_integer():
            return None
        case "integer", float() if abs(value) < _WHOLE:
            return int(value)
        case "number", float():
            return None if math.isnan(value) else value
        case "number", int() if abs(value) < _WHOLE:
            return float(value)
        case "text", str() if not _SURROGATE.search(value):
            return value
        case "moment", Date(days):
            return days
        case "moment", datetime.date() if not isinstance(value, datetime.datetime):
            return value.toordinal() - _EPOCH
    return _UNKNOWN


@persistable
@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class SortedValues:
    """The values of one property, sorted, and the vertices that have them."""

    values: NDArray[Any] | arrow.Array
    vertices: Ids

    @classmethod
    def read(cls, connection: Connection, label: int, column: str) -> SortedValues:
        """Sort the values of a property; ``column`` of the literal table has them."""
        order = "encode(value)" if column == "text" else "value"
        equal = " AND NOT isnan(l.number)" if column == "number" else ""  # what equals itself
        rows = connection.arrow(
            f"SELECT t.subject, l.{column} AS value FROM _graphdb.triple t JOIN _graphdb.literal l ON l.id = t.object"
            f" WHERE t.label = {int(label)} AND t.object >= {LITERAL_BASE}{equal} ORDER BY {order} ASC, t.subject ASC"
        )
        values = rows.column("value")
        return cls(plain(values) if column != "text" else values.combine_chunks(), plain(rows.column("subject")))


class KeyIndex:
    """The values of one property, sorted, with the vertices that have them; and what came and went since."""

    def __init__(self, label: int, column: str, known: SortedValues) -> None:
        self._label = label
        self.column = column
        self._known = known
        self._added: list[tuple[int, int]] = []
        """(vertex, literal) that came; values that are not known are read when somebody asks."""
        self._values: dict[int, Any] = {}
        """Values of such literals, some of them."""
        self._since: dict[object, list[int]] = {}
        """The vertices that have a value since: those that were read."""
        self._anew: set[int] = set()
        """Vertices that lost a value: what is sorted says nothing of them, and they are to be read anew."""
        self._lost: set[int] = set()
        """Such vertices, once they are read."""

    def __len__(self) -> int:
        return len(self._known.vertices)

    def note(self, change: Changes) -> None:
        """Note what came and went."""
        removed, added = (
            rows[(rows[:, 0] == self._label) & (rows[:, 2] >= LITERAL_BASE), 1:].tolist()
            for rows in (change.removed, change.added)
        )
        lost = {vertex for vertex, _ in removed}
        self._anew |= lost
        self._added = [row for row in self._added if row[0] not in lost]
        self._added += [(vertex, literal) for vertex, literal in added if vertex not in self._anew]
        kind = {"integer": int, "text": str}.get(self.column)  # which changes have the values of
        known = ((literal, change.values.get(literal)) for _, literal in added)
        self._values.update((literal, value) for literal, value in known if type(value) is kind)

    def find(self, connection: Connection, value: Any) -> Ids:
        """Return the vertices that have a value: sorted, int64."""
        self.catch_up(connection)
        values = self._known.values
        if isinstance(values, np.ndarray):
            view = values.data  # of which Python finds single numbers sooner than NumPy
            begin = bisect_left(view, value)
            end = bisect_right(view, value, begin)
        else:
            numbers, text = range(len(values)), value.encode()
            begin, end = (cut(numbers, text, key=self._encoded) for cut in (bisect_left, bisect_right))
        found = self._known.vertices[begin:end]
        if self._lost:
            found = found[np.array([vertex not in self._lost for vertex in found.tolist()], bool)]
        if since := self._since.get(value):
            found = unique(np.append(found, since))
        return found

    def find_numbers(self, connection: Connection, numbers: Sequence[Any]) -> Ids | None:
        """Return the vertices that have one of some numbers, each once for each; None of texts, and after changes."""
        self.catch_up(connection)
        values = self._known.values
        if not isinstance(values, np.ndarray) or self._lost or self._since:
            return None
        wanted = unique(np.array(numbers, values.dtype))
        begins, ends = (np.searchsorted(values, wanted, side) for side in ("left", "right"))
        first = np.append(True, begins[1:] != ends[:-1])  # of values that stand one after the other
        runs = zip(begins[first].tolist(), ends[np.append(first[1:], True)].tolist(), strict=True)
        found = [self._known.vertices[begin:end] for begin, end in runs]
        return found[0] if len(found) == 1 else np.concatenate(found)

    def _encoded(self, number: int) -> bytes:
        assert isinstance(self._known.values, arrow.Array)
        return arrow.encoded(self._known.values, number)

    @property
    def behind(self) -> int:
        """How many values were noted since the index was read."""
        return len(self._added) + len(self._anew) + len(self._lost) + len(self._since)

    def catch_up(self, connection: Connection) -> None:
        """Read the values that came since the last question; where that is cut short, it can be done again."""
        if self._anew:
            self._read_anew(connection)
        if not self._added:
            return
        literals = sorted({literal for _, literal in self._added} - self._values.keys())
        if literals:
            self._values.update(self._read_values(connection, literals))
        for vertex, literal in self._added:
            self._since.setdefault(self._values[literal], []).append(vertex)
        self._added = []
        self._values.clear()

    def _read_values(self, connection: Connection, literals: list[int]) -> list[tuple[int, Any]]:
        """Return literals with their values."""
        rows = f"SELECT id, {self.column} FROM _graphdb.literal WHERE id"
        sql, given = " UNION ALL ".join([f"{rows} = ?"] * len(literals)), literals
        if len(literals) > _APART:
            places, given = in_list(np.array(literals, np.int64))
            sql = f"{rows} IN ({places})"
        with connection.guard() as raw:
            return execute(raw, sql, given).fetchall()

    def _read_anew(self, connection: Connection) -> None:
        """Find out which literals the vertices have that lost one."""
        lost = sorted(self._anew)
        places, given = in_list(np.array(lost, np.int64))
        sql = (
            f"SELECT subject, object FROM _graphdb.triple WHERE label = ? AND object >= {LITERAL_BASE}"
            f" AND subject IN ({places})"
        )
        with connection.guard() as raw:
            rows = execute(raw, sql, [self._label, *given]).fetchall()
        for value, vertices in list(self._since.items()):
            self._since[value] = [vertex for vertex in vertices if vertex not in self._anew]
        self._lost |= self._anew
        self._added = [*rows, *(row for row in self._added if row[0] not in self._anew)]
        self._anew = set()
