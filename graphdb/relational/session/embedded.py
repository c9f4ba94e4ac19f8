"""What SQL text may name besides tables: pattern queries in ``cypher($$ … $$)``, and the caller's own variables."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from graphdb.common import arrow
from graphdb.common.duckdb.connection import Connection
from graphdb.common.duckdb.fetch import table_of_frame
from graphdb.common.errors import NotSupportedError, ParseError
from graphdb.results.result import Result

_NAME = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class CypherCall:
    """A call ``cypher('…', parameters)`` at characters ``[start, end)`` of a statement, with the query's text."""

    start: int
    end: int
    text: str
    parameters: str | None
    """The SQL of the second argument, a struct or map of parameters."""


def cypher_calls(sql: str) -> list[CypherCall]:
    """Return the pattern queries embedded in a SQL statement.

    Raises
    ------
    ParseError
        The first argument of a call is no string, or there are more than two.
    """
    if "cypher" not in sql.lower():
        return []
    data = sql.encode()
    starts = token_starts(sql)
    calls = []
    for i, at in enumerate(starts):
        called = i + 1 < len(starts) and data[starts[i + 1] : starts[i + 1] + 1] == b"("
        if not called or not re.match(rb"cypher\b", data[at:], re.I):
            continue
        start = len(data[:at].decode())
        text = _string(data[starts[i + 2] :].decode(errors="replace")) if i + 3 < len(starts) else None
        end = _closing(data, starts, i + 3) if text is not None else None
        if text is None or end is None:
            raise ParseError(
                "cypher needs a string, the pattern query, and perhaps its parameters",
                text=sql,
                position=start,
                hint="SELECT … FROM cypher($$ MATCH … RETURN … $$) or cypher($$ … $x … $$, {x: 1})",
            )
        second = data[starts[i + 3] + 1 : end].decode().strip() or None
        calls.append(CypherCall(start, len(data[: end + 1].decode()), text, second))
    if calls and re.match(r"\s*CREATE\b.*?\b(VIEW|MACRO)\b", sql[: calls[0].start], re.I | re.S):
        raise NotSupportedError(
            "cypher within SQL of a view or macro is not supported",
            text=sql,
            position=calls[0].start,
            hint="CREATE VIEW … AS MATCH, or CREATE TABLE … AS",
        )
    return calls


def _closing(data: bytes, starts: list[int], i: int) -> int | None:
    """Return where the call ends whose first argument is before token ``i``; None if it does not, or has a third."""
    if data[starts[i] :][:1] == b")":
        return starts[i]
    if data[starts[i] :][:1] != b",":
        return None
    depth = 0
    for start in starts[i + 1 :]:
        token = data[start:][:1]
        if token == b")" and depth == 0:
            return start
        if token == b"," and depth == 0:
            return None
        depth += (token in b"([{") - (token in b")]}")
    return None


def first_word(sql: str) -> str:
    """Return the first word of a SQL statement in capitals, whatever comments stand before it."""
    starts = token_starts(sql)
    found = re.match(rb"\w+", sql.encode()[starts[0] :]) if starts else None
    return found[0].decode().upper() if found else ""


def has_unnamed_parameters(sql: str) -> bool:
    """Whether SQL has parameters that are written ``?``."""
    data = sql.encode()
    return any(data[start : start + 1] == b"?" for start in token_starts(sql))


def token_starts(sql: str) -> list[int]:
    """Return the byte offsets of a statement's tokens, comments left out."""
    import duckdb

    return [start for start, kind in duckdb.tokenize(sql) if kind != duckdb.token_type.comment]


def _string(text: str) -> str | None:
    """Return the SQL string that ``text`` begins with, single-quoted or dollar-quoted; None if it begins with none."""
    quoted = re.match(r"'((?:[^']|'')*)'", text)
    if quoted is not None:
        return quoted[1].replace("''", "'")
    dollars = re.match(r"(\$\w*\$)(.*?)\1", text, re.S)
    return dollars[2] if dollars is not None else None


def is_vacuum(sql: str) -> bool:
    """Whether a statement is VACUUM without more: DuckDB's own does nothing."""
    if "vacuum" not in sql.lower():
        return False
    words = [sql.encode()[start:].decode(errors="replace") for start in token_starts(sql)]
    return (
        bool(words) and re.match(r"vacuum\b", words[0], re.I) is not None and all(w.startswith(";") for w in words[1:])
    )


def caller_tables(connection: Connection, sql: str) -> dict[str, arrow.Table]:
    """Return what a SQL statement names and only the caller's variables have: results, data frames, Arrow tables."""
    named = set(_NAME.findall(sql))
    variables = {name: value for name, value in _caller_variables().items() if name in named and _is_table(value)}
    if not variables:
        return {}
    known = connection.rows(
        "SELECT table_name FROM system.main.duckdb_tables() UNION ALL SELECT view_name FROM system.main.duckdb_views()"
    )
    taken = {name for (name,) in known}
    return {name: _table(value) for name, value in variables.items() if name not in taken}


_variables: ContextVar[Mapping[str, object] | None] = ContextVar("variables", default=None)


@contextmanager
def variables_of_caller(variables: Mapping[str, object]) -> Iterator[None]:
    """Take these for the caller's variables, where who calls is not who wrote the statement: in cells of notebooks."""
    token = _variables.set(variables)
    try:
        yield
    finally:
        _variables.reset(token)


def _caller_variables() -> Mapping[str, object]:
    """Return the variables of the code that called this package, its own before its module's."""
    if (stated := _variables.get()) is not None:
        return stated
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "graphdb":
        frame = frame.f_back
    return {**frame.f_globals, **frame.f_locals}


def _is_table(value: object) -> bool:
    """Whether a value is tabular."""
    if hasattr(value, "__arrow_c_stream__") or isinstance(value, Result):
        return True
    return isinstance(value, dict) and bool(value) and all(hasattr(column, "dtype") for column in value.values())


def _table(value: Any) -> arrow.Table:
    """Return a value that is tabular as an Arrow table."""
    if isinstance(value, Result):
        return value.presented()
    return table_of_frame(value) if hasattr(value, "__arrow_c_stream__") else arrow.table(value)
