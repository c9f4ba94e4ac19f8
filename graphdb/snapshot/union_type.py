"""The type of unions, as DuckDB hands them over: values of properties of several types."""

from __future__ import annotations

from graphdb.common import arrow
from graphdb.common.duckdb.connection import Connection
from graphdb.common.values.types import UNION

_LISTS: list[arrow.DataType] = []


def lists_of_unions(connection: Connection) -> arrow.DataType:
    """Return the type of lists of unions: asked for once."""
    if not _LISTS:
        _LISTS.append(connection.arrow(f"SELECT CAST([] AS {UNION}[]) AS l").schema.field(0).type)
    return _LISTS[0]
