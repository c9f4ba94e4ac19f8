"""A cache of parsed statements: parsing is a good part of what small ones take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb

_MOST = 500
"""Statements that are cached; there are as many as texts, which differ in their number of parameters."""

_PARSED: dict[str, duckdb.Statement] = {}

_SCRIPTS: dict[str, list[duckdb.Statement]] = {}


def execute(connection: duckdb.DuckDBPyConnection, sql: str, parameters: Any = None) -> duckdb.DuckDBPyConnection:
    """Run one statement, whose text comes again with other parameters."""
    statement = _PARSED.get(sql)
    if statement is None:
        if len(_PARSED) >= _MOST:
            _PARSED.clear()
        [statement] = connection.extract_statements(sql)
        _PARSED[sql] = statement
    return connection.execute(statement, parameters)


def execute_script(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Run several statements without parameters; the text is a constant of ours."""
    statements = _SCRIPTS.get(sql)
    if statements is None:
        statements = _SCRIPTS[sql] = connection.extract_statements(sql)
    for statement in statements:
        connection.execute(statement)


def has_rows(connection: duckdb.DuckDBPyConnection, relation: str) -> bool:
    """Whether a table, or what follows FROM, has a row."""
    return bool(connection.execute(f"SELECT 1 FROM {relation} LIMIT 1").fetchall())
