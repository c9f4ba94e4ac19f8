"""A cache of parsed statements: parsing is a good part of what small ones take.

What a statement means is found when it runs, so that one of them serves every connection of the process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

_MOST = 500
"""Statements of a generation."""

_LONGEST = 20_000
"""Characters of a text that is cached; those that come again are shorter."""

_generations: tuple[dict[str, duckdb.Statement], dict[str, duckdb.Statement]] = ({}, {})
"""The younger and the elder: when the younger is full, the elder goes, with what was not asked for meanwhile.

No lock is needed, which an interrupt or a fork could leave locked: at worst a statement is parsed twice.
"""


def parsed(connection: duckdb.DuckDBPyConnection, sql: str) -> duckdb.Statement:
    """Return the one statement of a text, parsed; whoever runs it gives its parameters."""
    global _generations
    younger, elder = _generations
    statement = younger.get(sql)
    if statement is None:
        statement = elder.get(sql)
        if statement is None:
            sql.encode()  # raises UnicodeEncodeError, as running the text would
            [statement] = connection.extract_statements(sql)
        if len(sql) <= _LONGEST:
            if len(younger) >= _MOST:
                younger, elder = _generations = ({}, younger)
            younger[sql] = statement
    return statement
