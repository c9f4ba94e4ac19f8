"""The tables of a continuous query: its answer, and its changes by batch.

Rows are bags: equal rows count.  Their types may change with the data (a property that had integers gets a text): then
a table gets the type that has both, and its rows are cast to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from graphdb.common.duckdb.identifiers import quoted
from graphdb.common.errors import StorageError
from graphdb.live.column_types import cast, common, hides
from graphdb.live.definitions import Definition
from graphdb.storage.file.prepared_sql import execute
from graphdb.storage.file.verify import damaged

if TYPE_CHECKING:
    import duckdb

ADDED, REMOVED = "temp._graphdb_added", "temp._graphdb_removed"
"""Tables of the rows that a batch adds to an answer, and takes away."""
FRESH, FORMER = "temp._graphdb_fresh", "temp._graphdb_former"
"""Tables of whole answers, after a batch and before it."""

Columns = list[tuple[str, Any]]
"""Names and types of columns, as DuckDB has them."""


class Written(NamedTuple):
    """How many rows a batch adds to an answer, and takes away."""

    added: int
    removed: int


NOTHING = Written(0, 0)


class Answer:
    """The tables of one continuous query, in the transaction that is open on ``connection``."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, definition: Definition) -> None:
        self._connection = connection
        self.definition = definition
        self._known: dict[str, Columns] = {}
        """The columns of tables that were asked for."""
        self._counts: dict[str, int] = {}
        """Their numbers of rows, until another statement runs."""

    def names(self) -> list[str]:
        """Return the names of the columns of the answer in :data:`FRESH`."""
        return [name for name, _ in self.columns(FRESH)]

    def create(self) -> None:
        """Make the tables, of the answer in :data:`FRESH`."""
        own = self.definition
        columns = self.columns(FRESH)
        if own.stored:
            self.run(f"CREATE TABLE {own.answer} AS FROM {FRESH}")
        typed = ", ".join(f"{quoted(name)} {type}" for name, type in columns)
        self.run(f"CREATE TABLE {own.log} (batch BIGINT, change TINYINT{', ' * bool(typed)}{typed})")
        for view, table in own.views:
            self.run(f"CREATE VIEW main.{quoted(view)} AS FROM {table}")

    def compare(self, former: str | None = None) -> None:
        """Make :data:`ADDED` and :data:`REMOVED` of the answer in :data:`FRESH` and the one before.

        The one before is in a table ``former``, or None: that of the answer, or :data:`FORMER` where there is none.
        """
        former = former or (self.definition.answer if self.definition.stored else FORMER)
        wide = self.common(self.columns(FRESH), self.columns(former))
        fresh, before = (self.select(table, wide) for table in (FRESH, former))
        self.run(f"CREATE OR REPLACE TEMP TABLE {ADDED[5:]} AS {fresh} EXCEPT ALL {before}")
        self.run(f"CREATE OR REPLACE TEMP TABLE {REMOVED[5:]} AS {before} EXCEPT ALL {fresh}")

    def append(self, rows: str, table: str) -> None:
        """Add the rows of one temporary table to those of another, whose types may differ."""
        wide = self.common(self.columns(table), self.columns(rows))
        both = f"{self.select(table, wide)} UNION ALL {self.select(rows, wide)}"
        self.run(f"CREATE OR REPLACE TEMP TABLE {table[5:]} AS {both}")

    def net(self, *, likely: bool = False) -> None:
        """Leave out of :data:`ADDED` and :data:`REMOVED` the rows that both have, as is ``likely`` or not."""
        if all(self.count(table) for table in (ADDED, REMOVED)):
            wide = self.common(self.columns(ADDED), self.columns(REMOVED))
            added, removed = (self.select(table, wide) for table in (ADDED, REMOVED))
            if not likely and not self._has_rows(common_rows(wide, added, removed)):  # an eighth of what follows
                return
            self.run(f"CREATE OR REPLACE TEMP TABLE {FRESH[5:]} AS {added} EXCEPT ALL {removed}")
            self.run(f"CREATE OR REPLACE TEMP TABLE {FORMER[5:]} AS {removed} EXCEPT ALL {added}")
            for table, made in ((ADDED, FRESH), (REMOVED, FORMER)):
                self.run(f"CREATE OR REPLACE TEMP TABLE {table[5:]} AS FROM {made}")

    def _has_rows(self, sql: str) -> bool:
        return bool(execute(self._connection, f"{sql} LIMIT 1").fetchall())

    def hides(self) -> bool:
        """Whether stored rows have types that hide which rows :data:`ADDED` and :data:`REMOVED` have by now."""
        if not self.definition.stored:
            return False
        columns = self.columns(self.definition.answer)
        wide = self.common(self.common(columns, self.columns(ADDED)), self.columns(REMOVED))
        return any(hides(found, wanted) for (_, found), (_, wanted) in zip(columns, wide, strict=True))

    def write(self, batch: int, *, whole: bool) -> Written:
        """Write the rows of :data:`ADDED` and :data:`REMOVED` as those of a batch; return how many they are.

        With ``whole``, :data:`FRESH` has the answer, whose types the table gets.
        """
        own = self.definition
        added, removed = self.count(ADDED), self.count(REMOVED)
        if not added and not removed and not whole:
            return NOTHING
        if added or removed:
            columns = self.columns(own.log)[2:]
            wide = self.common(self.common(columns, self.columns(ADDED)), self.columns(REMOVED))
            if differ(wide, columns):
                self.retype(own.log, wide, "batch, change")
            for change, table in ((-1, REMOVED), (1, ADDED)):
                self.run(
                    f"INSERT INTO {own.log} {self.select(table, wide, before='$batch, $change')}",
                    {"batch": batch, "change": change},
                )
        if own.stored:
            self._write_answer(added, removed, whole=whole)
        return Written(added, removed)

    def _write_answer(self, added: int, removed: int, *, whole: bool) -> None:
        own = self.definition
        columns = self.columns(own.answer)
        if whole:
            fresh = self.columns(FRESH)
            if differ(fresh, columns):
                self.run(f"CREATE OR REPLACE TABLE {own.answer} AS FROM {FRESH}")
                self._show(own.answer)
                return
        wide = self.common(self.common(columns, self.columns(ADDED)), self.columns(REMOVED))
        if differ(wide, columns):
            self.retype(own.answer, wide)
        if removed:
            self.delete(own.answer, wide)
        if added:
            self.run(f"INSERT INTO {own.answer} {self.select(ADDED, wide)}")

    def delete(self, table: str, columns: Columns) -> int:
        """Delete from a table as many of equal rows as :data:`REMOVED` has; return how many go."""
        found = self.run(deletion(table, columns, self.select(REMOVED, columns)))
        return int(found.fetchall()[0][0])

    def rows(self) -> int:
        """Return how many rows of changes are stored."""
        sql = "SELECT coalesce(sum(added + removed), 0) FROM _graphdb.batch WHERE query = ?"
        return int(execute(self._connection, sql, [self.definition.number]).fetchall()[0][0])

    def prune(self) -> int | None:
        """Drop the changes of the oldest batches, as the options have it; return the first batch that is left then.

        None where nothing goes.
        """
        own = self.definition
        old = "false" if own.retention is None else "noted < now() - CAST($retention AS INTERVAL)"
        given: dict[str, object] = {"number": own.number, "most": own.changes}
        if own.retention is not None:
            given["retention"] = own.retention
        rows = execute(
            self._connection,
            "SELECT max(batch) FROM (SELECT batch, noted, sum(added + removed) OVER (ORDER BY batch DESC)"
            f" - added - removed AS later FROM _graphdb.batch WHERE query = $number) WHERE later >= $most OR {old}",
            given,
        ).fetchall()
        last = rows[0][0]
        if last is None:
            return None
        self.run(f"DELETE FROM {own.log} WHERE batch <= $last", {"last": last})
        self.run(
            "DELETE FROM _graphdb.batch WHERE query = $number AND batch <= $last", {"number": own.number, "last": last}
        )
        self.run(
            "UPDATE _graphdb.continuous_query SET since = $since WHERE number = $number",
            {"since": last + 1, "number": own.number},
        )
        return int(last) + 1

    # --- types

    def common(self, left: Columns, right: Columns) -> Columns:
        """Return columns of the types that have the values of both.

        Raises
        ------
        StorageError
            A table of the file does not have the columns of the answer.
        """
        if len(left) != len(right):
            raise self._damaged()
        pairs = zip(left, right, strict=True)
        return [(name, common(self._connection, one, other)) for (name, one), (_, other) in pairs]

    def select(self, table: str, columns: Columns, before: str = "") -> str:
        """Return SQL for the rows of a table, as columns of other types; after some others ``before``."""
        own = dict(self.columns(table))
        if not own.keys() >= {name for name, _ in columns}:
            raise self._damaged()
        made = [f"{cast(quoted(name), own[name], wanted)} AS {quoted(name)}" for name, wanted in columns]
        return f"SELECT {', '.join([before] * bool(before) + made)} FROM {table}"

    def _damaged(self) -> StorageError:
        return damaged(f"tables of the continuous query '{self.definition.name}' have other columns than its answer")

    def columns(self, table: str) -> Columns:
        """Return the columns of a table."""
        if table not in self._known:
            found = self._connection.sql(f"FROM {table} LIMIT 0")
            self._known[table] = list(zip(found.columns, found.types, strict=True))
        return self._known[table]

    def retype(self, table: str, columns: Columns, before: str = "") -> None:
        """Have the columns of a table, behind some others ``before``, have other types."""
        self.run(f"CREATE OR REPLACE TABLE {table} AS {self.select(table, columns, before)}")
        self._show(table)

    def _show(self, table: str) -> None:
        """Let SQL see a table as it is by now, where its view is still there."""
        for view, behind in self.definition.views:
            if behind == table:
                there = self._connection.execute(
                    "SELECT 1 FROM system.main.duckdb_views() WHERE schema_name = 'main' AND view_name = ?"
                    " AND database_name = system.main.current_database()",
                    [view],
                ).fetchall()
                if there:
                    self.run(f"CREATE OR REPLACE VIEW main.{quoted(view)} AS FROM {table}")

    def count(self, table: str) -> int:
        """Return how many rows a table has."""
        if table not in self._counts:
            found = execute(self._connection, f"SELECT count(*) FROM {table}").fetchall()
            self._counts[table] = int(found[0][0])
        return self._counts[table]

    def run(self, sql: str, given: dict[str, object] | None = None) -> duckdb.DuckDBPyConnection:
        """Run a statement, and return what has its rows; one that makes a table may change columns."""
        self._counts.clear()
        found = execute(self._connection, sql, given or None)
        if sql.startswith("CREATE"):
            self._known.clear()
        return found


def differ(left: Columns, right: Columns) -> bool:
    """Whether the types of columns differ."""
    return [str(type) for _, type in left] != [str(type) for _, type in right]


def common_rows(columns: Columns, left: str, right: str) -> str:
    """Return SQL of a row for each of some rows which others have, too, with the same columns."""
    numbered = [f"c{i}" for i in range(len(columns))]
    own = ", ".join(f"{quoted(name)} AS {column}" for (name, _), column in zip(columns, numbered, strict=True))
    same = " AND ".join(f"l.{column} IS NOT DISTINCT FROM r.{column}" for column in numbered)
    return (
        f"SELECT 1 FROM (SELECT {own} FROM ({left})) l WHERE EXISTS (FROM (SELECT {own} FROM ({right})) r WHERE {same})"
    )


def deletion(table: str, columns: Columns, removed: str) -> str:
    """Return SQL that deletes from a table as many of equal rows as some rows are, with the same columns."""
    numbered = [f"c{i}" for i in range(len(columns))]
    own = ", ".join(f"{quoted(name)} AS {column}" for (name, _), column in zip(columns, numbered, strict=True))
    same = " AND ".join(f"a.{column} IS NOT DISTINCT FROM r.{column}" for column in numbered)
    counted = f"SELECT {', '.join(numbered)}, count(*) AS most FROM (SELECT {own} FROM ({removed})) GROUP BY ALL"
    return (
        f"DELETE FROM {table} WHERE rowid IN (SELECT place FROM (SELECT place, most, row_number() OVER"
        f" (PARTITION BY which ORDER BY place) AS number FROM (SELECT rowid AS place, {own} FROM {table}) a"
        f" JOIN (SELECT *, row_number() OVER () AS which FROM ({counted})) r ON {same}) WHERE number <= most)"
    )
