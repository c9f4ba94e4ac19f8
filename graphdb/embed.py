"""What SQL text may name besides tables: pattern queries in ``cypher($$ … $$)``, and the caller's own variables."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphdb.connection import Connection
from graphdb.errors import ParseError
from graphdb.result import Result

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class CypherCall:
    """A call ``cypher('…')`` at characters ``[start, end)`` of a statement, with the query's text."""

    start: int
    end: int
    text: str


def cypher_calls(sql: str) -> list[CypherCall]:
    """Return the pattern queries embedded in a SQL statement.

    Raises
    ------
    ParseError
        A call of ``cypher`` has something else than one string.
    """
    if "cypher" not in sql.lower():
        return []
    data = sql.encode()
    starts = _starts(sql)
    pieces = _pieces(sql)
    calls = []
    for i, piece in enumerate(pieces[:-1]):
        if piece.lower() != "cypher" or pieces[i + 1] != "(":
            continue
        start = len(data[: starts[i]].decode())
        found = _string(pieces[i + 2]) if i + 3 < len(pieces) and pieces[i + 3].startswith(")") else None
        if found is None:
            raise ParseError(
                "cypher needs one string: the pattern query",
                text=sql,
                position=start,
                hint="SELECT … FROM cypher($$ MATCH … RETURN … $$)",
            )
        calls.append(CypherCall(start, len(data[: starts[i + 3] + 1].decode()), found))
    return calls


def _starts(sql: str) -> list[int]:
    """Return the byte offsets of a statement's tokens."""
    import duckdb

    return [start for start, _ in duckdb.tokenize(sql)]


def _pieces(sql: str) -> list[str]:
    """Return the tokens of a statement."""
    data, starts = sql.encode(), _starts(sql)
    ends = [*starts[1:], len(data)]
    return [data[start:end].decode(errors="replace").strip() for start, end in zip(starts, ends, strict=True)]


def _string(token: str) -> str | None:
    """Return the text of a SQL string literal, single-quoted or dollar-quoted; None if it is none."""
    if len(token) >= 2 and token[0] == token[-1] == "'":
        return token[1:-1].replace("''", "'")
    if token.startswith("$"):
        mark = token[: token.find("$", 1) + 1]
        if len(token) >= 2 * len(mark) and token.endswith(mark):
            return token[len(mark) : -len(mark)]
    return None


def caller_tables(connection: Connection, sql: str) -> dict[str, pa.Table]:
    """Return what a SQL statement names and only the caller's variables have: results, data frames, Arrow tables."""
    named = {piece.strip('"') for piece in _pieces(sql)}
    variables = {name: value for name, value in _caller_variables().items() if name in named}
    if not variables:
        return {}
    known = connection.rows("SELECT table_name FROM duckdb_tables() UNION ALL SELECT view_name FROM duckdb_views()")
    taken = {name for (name,) in known}
    found = {name: _table(value) for name, value in variables.items() if name not in taken}
    return {name: table for name, table in found.items() if table is not None}


def _caller_variables() -> Mapping[str, object]:
    """Return the variables of the code that called this package, its own before its module's."""
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "graphdb":
        frame = frame.f_back
    return {**frame.f_globals, **frame.f_locals}


def _table(value: object) -> pa.Table | None:
    """Return a value as an Arrow table if it is tabular, else None."""
    import pyarrow as pa

    if isinstance(value, Result):
        return value.presented()
    if hasattr(value, "__arrow_c_stream__"):
        return pa.table(value)
    if isinstance(value, dict) and value and all(hasattr(column, "dtype") for column in value.values()):
        return pa.table(value)
    return None
