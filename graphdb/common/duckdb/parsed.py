"""A cache of parsed statements: parsing is a good part of what small ones take.

What a statement means is found when it runs, so that one of them serves every connection of the process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphdb.common.caches import TextCache

if TYPE_CHECKING:
    import duckdb

_LONGEST = 20_000
"""Characters of a text that is cached; those that come again are shorter."""

_PARSED: TextCache[duckdb.Statement] = TextCache(most=500, characters=500 * _LONGEST)


def parsed(connection: duckdb.DuckDBPyConnection, sql: str) -> duckdb.Statement:
    """Return the one statement of a text, parsed; whoever runs it gives its parameters."""
    statement = _PARSED.get(sql)
    if statement is None:
        sql.encode()  # raises UnicodeEncodeError, as running the text would
        [statement] = connection.extract_statements(sql)
        if len(sql) <= _LONGEST:
            _PARSED.put(sql, statement)
    return statement
