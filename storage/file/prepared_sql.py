"""Statements that are parsed once: parsing is a good part of what small ones take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphdb.common.duckdb.parsed import parsed

if TYPE_CHECKING:
    import duckdb

_SCRIPTS: dict[str, list[duckdb.Statement]] = {}


def execute(connection: duckdb.DuckDBPyConnection, sql: str, parameters: Any = None) -> duckdb.DuckDBPyConnection:
    """Run one statement, whose text comes again with other parameters."""
    return connection.execute(parsed(connection, sql), parameters)


class Insertion:
    """An INSERT that waits for the next statement: DuckDB plans and runs one for both sooner than two.

    Parameters
    ----------
    sql, parameters
        The INSERT, and the values of its question marks.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, sql: str, parameters: list[Any]) -> None:
        self._connection = connection
        self._sql, self._parameters = sql, parameters
        self._waits = True

    def run(self) -> None:
        """Run it by itself, unless it has run: what follows is to see its rows."""
        if self._waits:
            self._waits = False
            execute(self._connection, self._sql, self._parameters)

    def run_with(self, sql: str, parameters: list[Any]) -> None:
        """Run another INSERT, of whose rows it makes none, and itself within the same statement, unless it has run."""
        if self._waits:
            self._waits = False
            sql, parameters = f"WITH first AS ({self._sql}) {sql}", [*self._parameters, *parameters]
        execute(self._connection, sql, parameters)


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
