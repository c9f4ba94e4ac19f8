"""The distinct values that aggregates of a continuous query read, as a table that says in how many rows each is.

``count(DISTINCT x)`` changes where a value is in a group's rows for the first time, or in none of them any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

NUMBER = "n"
"""The column that says of how many rows a group, or a value in it, is."""
SIGN = "s"
"""The column that says whether a row comes (1) or goes (-1)."""


class DistinctValues:
    """The table of the values of one column, by group.

    Parameters
    ----------
    table, keys, value
        The table, the columns of it that groups are known by, and the column of the values.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, table: str, keys: Sequence[str], value: str) -> None:
        self._connection, self._table = connection, table
        self._columns, self._value = (*keys, value), value
        self.moved = f"temp._graphdb_moved_{value}"
        """A table of the values that come to be in a group's rows, and that are there no more, with :data:`SIGN`."""
        self._touched = f"temp._graphdb_touched_{value}"

    def fill(self, counted: str) -> None:
        """Make the table, of a temporary one that has each value in each group with :data:`NUMBER`."""
        self._run(f"CREATE OR REPLACE TABLE {self._table} AS FROM {counted} WHERE {self._value} IS NOT NULL")

    def follow(self, signed: str) -> None:
        """Make :attr:`moved`, of a relation of rows that come and go, and bring the table up to date."""
        columns = ", ".join(self._columns)
        same = " AND ".join(f"v.{name} IS NOT DISTINCT FROM c.{name}" for name in self._columns)
        changed = (
            f"SELECT {columns}, CAST(sum({SIGN}) AS BIGINT) AS change FROM ({signed})"
            f" WHERE {self._value} IS NOT NULL GROUP BY ALL"
        )
        self._run(
            f"CREATE OR REPLACE TEMP TABLE {self._touched[5:]} AS SELECT c.*, coalesce(v.{NUMBER}, 0) AS before,"
            f" before + c.change AS {NUMBER} FROM ({changed}) c LEFT JOIN {self._table} v ON {same}"
        )
        self._run(
            f"CREATE OR REPLACE TEMP TABLE {self.moved[5:]} AS SELECT {columns},"
            f" CASE WHEN {NUMBER} > 0 THEN 1 ELSE -1 END AS {SIGN} FROM {self._touched}"
            f" WHERE ({NUMBER} > 0) <> (before > 0)"
        )
        self._run(f"DELETE FROM {self._table} v WHERE EXISTS (FROM {self._touched} c WHERE {same})")
        chosen = f"SELECT {columns}, {NUMBER} FROM {self._touched} WHERE {NUMBER} > 0"
        self._run(f"INSERT INTO {self._table} BY NAME {chosen}")

    def drop(self) -> None:
        """Drop its temporary tables."""
        for table in (self.moved, self._touched):
            self._run(f"DROP TABLE IF EXISTS {table}")

    def _run(self, sql: str) -> None:
        self._connection.execute(sql)
