"""The first rows of a query that has ORDER BY and LIMIT, more than its answer has, as a table that follows its rows.

All rows that the table lacks come after those that it has.  So a row that is new is of interest where it comes before
the last of these, and one that goes where it is one of them; only once fewer are left than the answer takes, the query
is asked again.  The order of rows that ORDER BY has equal is that of their columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from graphdb.common.duckdb.identifiers import quoted
from graphdb.live.answers import ADDED, FORMER, FRESH, REMOVED, Answer, Columns, differ
from graphdb.live.definitions import note, note_of

if TYPE_CHECKING:
    import duckdb

    from graphdb.live.standing import Standing

_ALL, _SOME = "all rows", "first rows"
"""What a table has, as its comment says before the types that the rows have."""
_COMES, _PLACE = '"#comes"', '"#place"'
"""Columns beside those of rows: no user calls anything so."""
_CHOSEN = "temp._graphdb_chosen"
"""A table of the rows that come and are of interest."""


class FirstRows:
    """The table of one continuous query, in the transaction that is open on ``connection``.

    Parameters
    ----------
    connection, answer, each
        The transaction, the tables of the answer, and the query, as it is bound.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, answer: Answer, each: Standing) -> None:
        assert each.window is not None
        self._connection, self._answer, self._each = connection, answer, each
        self._window, self._table = each.window, answer.definition.first
        self._notes = {whole: f"{_ALL if whole else _SOME} {each.signature}" for whole in (True, False)}
        """By whether the table has all rows, its comment."""

    def are_there(self) -> bool:
        """Whether the table is there, of rows that have these types."""
        if self._each.kept not in self._notes.values():
            self._each.kept = note_of(self._connection, self._table)
        return self._each.kept in self._notes.values()

    def fill(self) -> None:
        """Make the table of the rows in :data:`FRESH`, which gets the answer."""
        self._store(FRESH)
        self._show(FRESH)

    def before(self) -> None:
        """Have :data:`FORMER` be the answer of before, where the table is of that state."""
        self._show(FORMER)

    def follow(self, again: Callable[[], None]) -> bool:
        """Turn :data:`ADDED` and :data:`REMOVED` from rows of the query into those of its answer.

        Returns whether there may be any; ``again`` makes :data:`FRESH` of the query's first rows.
        """
        answer, table, window = self._answer, self._table, self._window
        own = answer.columns(table)
        wide = answer.common(answer.common(own, answer.columns(ADDED)), answer.columns(REMOVED))
        come, gone = self._interesting(wide)
        [[new, old, there]] = answer.run(
            f"SELECT (SELECT count(*) FROM ({come})), (SELECT count(*) FROM ({gone})), (SELECT count(*) FROM {table})"
        ).fetchall()
        if not new and not old:
            return False
        self._show(FORMER)
        if differ(wide, own):
            answer.retype(table, wide)
            self._note(whole=self._whole)
        answer.run(f"CREATE OR REPLACE TEMP TABLE {_CHOSEN[5:]} AS {come}")
        if old:
            there -= answer.delete(table, wide)
        answer.run(f"INSERT INTO {table} FROM {_CHOSEN}")
        answer.run(f"DROP TABLE {_CHOSEN}")
        if not self._whole and there + new < window.needed:
            again()
            self._store(FRESH)
        elif there + new > 2 * window.stored:
            self._store(table)
        self._show(FRESH)
        answer.compare(FORMER)
        return True

    @property
    def _whole(self) -> bool:
        """Whether the table has all rows."""
        return self._each.kept == self._notes[True]

    def _interesting(self, columns: Columns) -> tuple[str, str]:
        """Return SQL for the rows of :data:`ADDED` that come before the last one there is, and of those that go."""
        answer, table = self._answer, self._table
        added, removed = (answer.select(rows, columns) for rows in (ADDED, REMOVED))
        if not self._whole:
            last = f"FROM ({answer.select(table, columns)}) ORDER BY {self._window.order(backwards=True)} LIMIT 1"
            both = f"SELECT *, false AS {_COMES} FROM ({last}) UNION ALL SELECT *, true AS {_COMES} FROM ({added})"
            order = f"ORDER BY {self._window.order()}, {_COMES}"
            placed = f"SELECT *, row_number() OVER ({order}) AS {_PLACE} FROM ({both})"
            added = (
                f"WITH placed AS ({placed}) SELECT * EXCLUDE ({_COMES}, {_PLACE}) FROM placed"
                f" WHERE {_COMES} AND {_PLACE} < (SELECT max({_PLACE}) FROM placed WHERE NOT {_COMES})"
            )
        same = " AND ".join(f"f.{quoted(name)} IS NOT DISTINCT FROM r.{quoted(name)}" for name, _ in columns)
        rows = answer.select(table, columns)
        return added, f"SELECT * FROM ({removed}) r WHERE EXISTS (SELECT 1 FROM ({rows}) f WHERE {same})"

    def _store(self, rows: str) -> None:
        """Make the table, of as many first rows of another one as are stored."""
        most = self._window.stored
        whole = self._answer.count(rows) < most
        first = f"FROM {rows} ORDER BY {self._window.order()} LIMIT {most}"
        self._answer.run(f"CREATE OR REPLACE TABLE {self._table} AS {first}")
        self._note(whole=whole)

    def _note(self, *, whole: bool) -> None:
        """Write down of what rows the table is."""
        self._each.kept = self._notes[whole]
        note(self._connection, self._table, self._notes[whole])

    def _show(self, into: str) -> None:
        """Make a temporary table of the answer."""
        window = self._window
        names = ", ".join(quoted(name) for name, _ in self._answer.columns(self._table)[: window.shown])
        rows = f"FROM {self._table} ORDER BY {window.order()}, {names} LIMIT {window.limit} OFFSET {window.skip}"
        self._answer.run(f"CREATE OR REPLACE TEMP TABLE {into[5:]} AS SELECT {names} {rows}")
