"""Patterns within SQL, written as the standards have them: as calls of ``cypher``, which is what runs.

Two forms stand for such calls: ``GRAPH_TABLE (g MATCH … COLUMNS (…))`` of ISO SQL/PGQ, and a pattern query in
parentheses where SQL has a query: ``COPY (MATCH … RETURN …) TO``, ``FROM (MATCH …)``, ``WITH t AS (MATCH …)``.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from graphdb.common.errors import ParseError
from graphdb.grammar.lexing import closing
from graphdb.relational.session.embedded import token_starts

_PATTERN = r"(?:OPTIONAL\s+)?MATCH\b|UNWIND\b"
_HINT = re.compile(rf"\bGRAPH_TABLE\s*\(|\(\s*(?:{_PATTERN})", re.I)
_QUERY = re.compile(rf"\(\s*(?={_PATTERN})", re.I)
_GRAPH_TABLE = re.compile(r"GRAPH_TABLE\s*\(\s*", re.I)
_GRAPH = re.compile(r"(?!MATCH\b)(?:[^\W\d]\w*|\"[^\"]*\")\s+(?=MATCH\b)", re.I)
_COLUMNS = re.compile(r"\bCOLUMNS\s*\(", re.I)
_BEFORE_A_QUERY = re.compile(r"(?:COPY|FROM|JOIN|AS|MATERIALIZED)\b", re.I)
"""What stands before a query in parentheses, and before no expression in parentheses."""


class _Form(NamedTuple):
    """One of the forms, at characters ``[start, end)`` of a text, and the SQL that it stands for."""

    start: int
    end: int
    sql: str


def with_cypher_calls(sql: str) -> str:
    """Return SQL in which the two forms are calls of ``cypher``.

    Raises
    ------
    ParseError
        A form is not closed, or has no ``COLUMNS``.
    """
    if _HINT.search(sql) is None:
        return sql
    done, at = "", 0
    while (form := _next_form(sql, at)) is not None:
        done += sql[at : form.start] + form.sql
        at = form.end
    return done + sql[at:]


def _next_form(sql: str, at: int) -> _Form | None:
    """Return the first form from a place on; the text before it is read as SQL, that within it as a pattern's."""
    rest = sql[at:].encode()
    before = b""
    for start in token_starts(sql[at:]):
        place = at + len(rest[:start].decode())
        if (found := _GRAPH_TABLE.match(sql, place)) is not None:
            return _graph_table(sql, place, found.end())
        if (found := _QUERY.match(sql, place)) is not None and _BEFORE_A_QUERY.match(before.decode(errors="replace")):
            end = _closed(sql, place, found.end())
            return _Form(place, end, f"(FROM {_call(sql[found.end() : end - 1])})")
        before = rest[start : start + 20]
    return None


def _graph_table(sql: str, start: int, inside: int) -> _Form:
    end = _closed(sql, start, inside)
    graph = _GRAPH.match(sql, inside)
    begin = graph.end() if graph is not None else inside
    for columns in _COLUMNS.finditer(sql, begin, end):
        if _closed(sql, columns.start(), columns.end()) == len(sql[: end - 1].rstrip()):
            last = sql[columns.end() : end - 1].rstrip()[:-1]
            return _Form(start, end, _call(f"{sql[begin : columns.start()]} RETURN {last}"))
    raise ParseError(
        "GRAPH_TABLE needs COLUMNS at its end",
        text=sql,
        position=start,
        hint="FROM GRAPH_TABLE (graph MATCH (a)-[:KNOWS]->(b) COLUMNS (a.name AS a, b.name AS b))",
    )


def _closed(sql: str, start: int, inside: int) -> int:
    """Return where the parenthesis ends that was opened before ``inside``, as a pattern's text is read."""
    end = closing(sql, inside)
    if end is None:
        raise ParseError("the pattern query that begins here is not closed", text=sql, position=start)
    return end + 1


def _call(query: str) -> str:
    return "cypher('" + query.replace("'", "''") + "')"
