"""Statements that are parsed once: parsing is a good part of what small ones take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from graphdb.common.duckdb.parsed import parsed

if TYPE_CHECKING:
    import duckdb

_SCRIPTS: dict[str, list[duckdb.Statement]] = {}


def execute(connection: duckdb.DuckDBPyConnection, sql: str, parameters: Any = None) -> duckdb.DuckDBPyConnection:
    """Run one statement, whose text comes again with other parameters."""
    return connection.execute(parsed(connection, sql), parameters)


Columns: TypeAlias = "Mapping[str, Sequence[Any]]"
"""The values of columns, by name."""


class Insertions:
    """Rows of several tables that wait to be inserted: DuckDB plans and runs one statement for all sooner than several.

    Whoever reads one of these tables inserts them first (:meth:`run`).
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._waiting: dict[str, tuple[str, list[Any]]] = {}

    def add(self, table: str, columns: Columns) -> None:
        """Let rows of a table of the graph wait; those that wait for the same table are inserted."""
        self.run(table)
        names, given = [], []
        for name, values in columns.items():
            listed = [*values]
            if listed.count(None) < len(listed):
                names.append(name)
                given.append(listed)
        self._waiting[table] = _insertion(table, tuple(names)), given

    def run(self, *tables: str) -> None:
        """Insert all rows that wait; where tables are named, only if there are some of one of these."""
        if not self._waiting or (tables and self._waiting.keys().isdisjoint(tables)):
            return
        *others, (last, _) = waiting = [*self._waiting.values()]
        self._waiting.clear()
        first = ", ".join([f"first{i} AS ({sql})" for i, (sql, _) in enumerate(others)])
        sql = f"WITH {first} {last}" if others else last
        execute(self._connection, sql, [value for _, given in waiting for value in given])


@cache
def _insertion(table: str, columns: tuple[str, ...]) -> str:
    """Return the INSERT of lists of values into some columns.

    Types are the values' own, for to look up those that are named takes DuckDB a tenth of the statement, and each
    column has a name, for without one DuckDB writes the values out as its name.
    """
    lists = ", ".join([f"unnest(?) AS c{i}" for i in range(len(columns))])
    return f"INSERT INTO _graphdb.{table} ({', '.join(columns)}) SELECT {lists}"


def execute_script(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Run several statements without parameters; the text is a constant of ours."""
    statements = _SCRIPTS.get(sql)
    if statements is None:
        statements = _SCRIPTS[sql] = connection.extract_statements(sql)
    for statement in statements:
        connection.execute(statement)


def filled(connection: duckdb.DuckDBPyConnection, *tables: str) -> list[str]:
    """Return which of some tables of the graph have a row."""
    sql = " UNION ALL ".join(f"(SELECT '{table}' FROM _graphdb.{table} LIMIT 1)" for table in tables)
    return [table for (table,) in execute(connection, sql).fetchall()]


def has_rows(connection: duckdb.DuckDBPyConnection, *relations: str) -> bool:
    """Whether any of some tables, or of what can follow FROM, has a row."""
    sql = " UNION ALL ".join(f"(SELECT 1 FROM {relation} LIMIT 1)" for relation in relations)
    return bool(execute(connection, sql).fetchall())
