"""The groups of a continuous query that aggregates, as a table which follows the rows that come and go.

The table has, of each group, its keys, how many rows it is of, and its accumulators (:mod:`.grouping`).  It lies beside
the answer, so that the first batch after the file is opened finds it there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from graphdb.live.aggregates.distinct_values import NUMBER, SIGN, DistinctValues
from graphdb.live.aggregates.grouping import Accumulator, Accumulators, Change
from graphdb.live.answers import ADDED, REMOVED
from graphdb.live.definitions import note, note_of

if TYPE_CHECKING:
    import duckdb

    from graphdb.live.definitions import Definition

MOVED = "temp._graphdb_moved"
"""A table of rows with how many come, or of negative numbers go, as :data:`.distinct_values.SIGN`."""
LOST = "temp._graphdb_lost"
"""A table of the keys of groups that are to be aggregated anew, …"""
AGAIN = "temp._graphdb_again"
"""… and one of groups that were, these among them."""
_CHANGED, _MERGED = "temp._graphdb_changed", "temp._graphdb_merged"
TABLES = (MOVED, LOST, AGAIN, _CHANGED, _MERGED)
"""All temporary tables of groups."""


def merge_moved(connection: duckdb.DuckDBPyConnection) -> None:
    """Have equal rows of :data:`MOVED` be one: what comes and goes in one batch is neither a least value nor gone."""
    merged = f"SELECT * EXCLUDE {SIGN}, CAST(sum({SIGN}) AS BIGINT) AS {SIGN} FROM {MOVED} GROUP BY ALL"
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {MOVED[5:]} AS {merged} HAVING sum({SIGN}) <> 0")


class Groups:
    """The table of the groups of one continuous query, in the transaction that is open on ``connection``."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, definition: Definition, accumulators: Accumulators
    ) -> None:
        self._connection, self._table = connection, definition.groups
        self._own, self._keys = accumulators, accumulators.grouping.keys
        self._values = {
            name: DistinctValues(connection, definition.values(name), self._keys, name)
            for name in accumulators.distinct
        }

    def are_there(self) -> bool:
        """Whether the table is there, of the values that the query has by now."""
        return note_of(self._connection, self._table) == self._own.signature

    def matches(self) -> int:
        """Return how many matches all groups are of."""
        sql = f"SELECT coalesce(sum({NUMBER}), 0) FROM {self._table}"
        return int(self._connection.execute(sql).fetchall()[0][0])

    def fill_values(self, name: str) -> None:
        """Make the table of distinct values of a column, of those counted in :data:`AGAIN`."""
        self._values[name].fill(AGAIN)

    def fill(self) -> None:
        """Make the table of the groups in :data:`AGAIN`."""
        self._run(f"CREATE OR REPLACE TABLE {self._table} AS FROM {AGAIN}")
        note(self._connection, self._table, self._own.signature)

    def answer(self, into: str) -> None:
        """Make a temporary table of the answer."""
        sql, parameters = self._own.answer(self._table)
        self._connection.execute(f"CREATE OR REPLACE TEMP TABLE {into[5:]} AS {sql}", dict(parameters))

    def follow(self, again: Callable[[], None]) -> None:
        """Turn :data:`MOVED`, rows that come and go, into rows of the answer that do: :data:`ADDED`, :data:`REMOVED`.

        ``again`` makes :data:`AGAIN` of the groups that :data:`LOST` has, at least.
        """
        signed = f"FROM {MOVED}"
        for values in self._values.values():
            values.follow(signed)
        self._run(f"CREATE OR REPLACE TEMP TABLE {_CHANGED[5:]} AS {self._changed(signed)}")
        for values in self._values.values():
            values.drop()
        self._run(f"CREATE OR REPLACE TEMP TABLE {_MERGED[5:]} AS {self._merged()}")
        names = ", ".join(self._names)
        merged = f"SELECT {names} FROM {_MERGED}"
        if self._rows(f"SELECT 1 FROM {_MERGED} WHERE lost LIMIT 1"):
            keys = ", ".join(self._keys) or NUMBER
            self._run(f"CREATE OR REPLACE TEMP TABLE {LOST[5:]} AS SELECT {keys} FROM {_MERGED} WHERE lost")
            again()
            known = f"SELECT {names} FROM {AGAIN} r WHERE EXISTS (FROM {LOST} l WHERE {self._same('r', 'l')})"
            merged = f"{merged} WHERE NOT lost UNION ALL {known}"
        there = f"FROM {self._table} g WHERE EXISTS (FROM {_CHANGED} c WHERE {self._same('g', 'c')})"
        for table, groups in ((REMOVED, f"(SELECT * {there})"), (ADDED, f"({merged})")):
            sql, parameters = self._own.answer(groups)
            self._connection.execute(f"CREATE OR REPLACE TEMP TABLE {table[5:]} AS {sql}", dict(parameters))
        self._run(f"DELETE {there}")
        present = f" WHERE {NUMBER} > 0" if self._keys else ""
        self._run(f"INSERT INTO {self._table} BY NAME SELECT * FROM ({merged}){present}")

    def lost(self, key: str, most: int) -> list[object] | None:
        """Return the values of a key in :data:`LOST`; None where they are more than so many."""
        found = self._rows(f"SELECT DISTINCT {key} FROM {LOST} LIMIT {most + 1}")
        return None if len(found) > most else [value for (value,) in found]

    @property
    def _names(self) -> Iterable[str]:
        return (*self._keys, NUMBER, *(own.name for own in self._own.all))

    def _changed(self, signed: str) -> str:
        """Return SQL for what comes and goes of each group, of a relation of rows that do."""

        def grouped(relation: str, columns: list[str], value: str | None) -> str:
            followed = [own for own in self._own.all if (own.argument if own.distinct else None) == value]
            parts = [part for own in followed for part in _parts(own)]
            by = f" GROUP BY {', '.join(self._keys)}" if self._keys else ""
            return f"SELECT {', '.join([*self._keys, *columns, *parts])} FROM {relation}{by}"

        rows = grouped(f"({signed})", [f"CAST(coalesce(sum({SIGN}), 0) AS BIGINT) AS {NUMBER}"], None)
        once = [own for own in self._own.all if own.distinct]
        if not once:
            return rows
        joins = [
            f"LEFT JOIN ({grouped(values.moved, [], name)}) {name} ON {self._same('q', name)}"
            for name, values in self._values.items()
        ]
        counted = ", ".join(f"coalesce({own.argument}.{own.name}, 0) AS {own.name}" for own in once)
        return f"SELECT q.*, {counted} FROM ({rows}) q {' '.join(joins)}"

    def _merged(self) -> str:
        """Return SQL for the groups that change, as they are then, and whether they are to be aggregated anew."""
        number = f"coalesce(g.{NUMBER}, 0) + c.{NUMBER}"
        columns = [f"c.{key}" for key in self._keys] + [f"{number} AS {NUMBER}"]
        lost = []
        for own in self._own.all:
            name = own.name
            match own.change:
                case Change.COUNT | Change.SUM:
                    columns.append(f"CAST(coalesce(g.{name}, 0) + c.{name} AS BIGINT) AS {name}")
                case Change.AGAIN:
                    columns.append(f"g.{name}")
                    lost.append("true")
                case Change.LEAST | Change.GREATEST:
                    function, before = ("least", "<=") if own.change is Change.LEAST else ("greatest", ">=")
                    columns.append(f"{function}(g.{name}, c.{name}) AS {name}")
                    gone = f"c.{name}_gone"
                    lost.append(
                        f"coalesce({gone} {before} g.{name}, false) AND NOT coalesce(c.{name} {before} {gone}, false)"
                    )
        some = f"{number} > 0 AND " if self._keys else ""
        columns.append(f"{some}({' OR '.join(lost) or 'false'}) AS lost")
        return f"SELECT {', '.join(columns)} FROM {_CHANGED} c LEFT JOIN {self._table} g ON {self._same('g', 'c')}"

    def _same(self, left: str, right: str) -> str:
        """Return SQL for whether rows are of one group."""
        return " AND ".join(f"{left}.{key} IS NOT DISTINCT FROM {right}.{key}" for key in self._keys) or "true"

    def _rows(self, sql: str) -> list[tuple[object, ...]]:
        return self._connection.execute(sql).fetchall()

    def _run(self, sql: str) -> None:
        self._connection.execute(sql)


def _parts(own: Accumulator) -> list[str]:
    """Return the columns of what comes and goes of a group that an accumulator follows."""
    name, value = own.name, own.argument
    match own.change:
        case Change.COUNT:
            return [f"coalesce(sum({SIGN}) FILTER (WHERE {value} IS NOT NULL), 0) AS {name}"]
        case Change.SUM:
            return [f"coalesce(sum({SIGN} * CAST({value} AS HUGEINT)), 0) AS {name}"]
        case Change.LEAST | Change.GREATEST:
            function = "min" if own.change is Change.LEAST else "max"
            sides = ((name, "> 0"), (f"{name}_gone", "< 0"))
            return [f"{function}({value}) FILTER (WHERE {SIGN} {sign}) AS {column}" for column, sign in sides]
    return []
