"""Statements of other databases, typed by habit: what says the same here, as the hint of the error."""

from __future__ import annotations

import re
from collections.abc import Iterable

from graphdb.common.errors import GraphDBError, nearest
from graphdb.dispatch.hints.sparql import translated
from graphdb.grammar.routing import SQL_STARTERS, STARTERS

_HINTS: tuple[tuple[str, str], ...] = (
    (
        r"CREATE\s+(NODE|REL)\s+TABLE\b",
        "a graph needs no tables: CREATE (:Person {name: 'Ada'}) is a vertex, LOAD 'people.csv' AS LABEL Person many",
    ),
    (
        r"COPY\s+\w+\s+FROM\b",
        "to load a table of vertices: LOAD 'people.csv' AS LABEL Person; of edges: … AS TYPE KNOWS",
    ),
    (
        r"LOAD\s+FROM\s+\w",
        "rows come from a query in parentheses, a table or data frame too: LOAD FROM (FROM people) AS LABEL Person",
    ),
    (r"FROM\s+GRAPH\b", "a pattern asks for a named graph by its edges: MATCH (a)-[e]->(b) WHERE '…' IN graphs(e) …"),
    (
        r"(CREATE|DROP)\s+(\w+\s+){0,3}(INDEX|CONSTRAINT)\b",
        "properties of vertices need no index: lookups by a property make the one that they use",
    ),
    (r"SHOW\s+(NODE\s+)?LABELS\b", "CALL db.labels()"),
    (r"SHOW\s+REL(ATIONSHIP)?\s*TYPES\b", "CALL db.relationshipTypes()"),
    (r"SHOW\s+PROPERTY\s*KEYS\b", "CALL db.propertyKeys()"),
    (r"SHOW\s+PROCEDURES\b", "CALL dbms.procedures()"),
    (r"SHOW\s+FUNCTIONS\b", "the functions are listed in docs/language/functions.md"),
    (r"SHOW\s+(INDEX|CONSTRAINT)", "there are none to show: properties need no index"),
    (r"CALL\s+(show_tables|table_info)\b", "CALL db.labels() and CALL db.relationshipTypes() say what is there"),
    (r"CALL\s+\w+(\.\w+)+", "CALL dbms.procedures() says what can be called"),
    (
        r":(use|param|params|schema|help|play|sysinfo|history|clear)\b",
        "the shell's own commands begin with a dot: .help",
    ),
    (
        r"INSERT\s+DATA\b|DELETE\s+DATA\b|DELETE\s+WHERE\b|INSERT\s*\{",
        "this is SPARQL; here CREATE, MERGE and DELETE change a graph, and LOAD reads triples from a file",
    ),
    (
        r"(SELECT|CONSTRUCT)\b[^;{]*\{[^;]*?\?\w|ASK\s*(WHERE\s*)?\{",
        "this is SPARQL; here ?x :knows ?y is a pattern: MATCH (x)-[:knows]->(y) WHERE x.name = 'Ada' RETURN x, y",
    ),
)
"""Regular expressions of statements, and hints."""

_SAID = (
    (
        r"Table with name load_errors does not exist",
        "no load has skipped anything: with ON ERROR SKIP it is listed there",
    ),
)
"""Regular expressions of DuckDB's errors, and hints."""

_PREFIXES = r"PREFIX\s++[^\s:]*+:\s*+<[^<>]*+>\s*+"
_COMMENTS = r"(?:\s++|--[^\n]*+\n|/\*.*?\*/)*+"


def with_hint(error: GraphDBError, text: str) -> GraphDBError:
    """Return an error of a statement that DuckDB does not know with a hint: another database's, ours, or misspelt."""
    if error.hint is None:
        for pattern, hint in _SAID:
            if re.search(pattern, str(error)) is not None:
                return type(error)(_first_line(error), hint=hint)
        for pattern, hint in _HINTS:
            if re.match(_COMMENTS + f"(?:{pattern})", text, re.I | re.S) is not None:
                return type(error)(_first_line(error), hint=hint)
        if (first := re.match(_COMMENTS + r"(\w+)", text, re.S)) is not None:
            word = first[1].upper()
            meant = _FOR_PATTERNS if word in STARTERS - SQL_STARTERS else _likely(word)
            if meant is not None and f'at or near "{first[1]}"' in str(error):
                return type(error)(str(error), hint=meant)
    return error


def of_label(error: GraphDBError, labels: Iterable[tuple[str, str]]) -> GraphDBError:
    """Return an error of SQL that takes one of the graph's labels for a table with the pattern that is meant.

    ``labels`` are names of them, each with what a pattern calls it.  DuckDB's own tables are never meant.
    """
    missing = re.search(r"Table with name (.+?) does not exist", str(error))
    if error.hint is not None or missing is None:
        return error
    written = next((written for name, written in labels if name.lower() == missing[1].lower()), None)
    if written is not None:
        return type(error)(_first_line(error), hint=f"{missing[1]} is a label: MATCH (x:{written}) RETURN x")
    return error if _OWN.search(str(error)) is None else type(error)(_first_line(error))


_OWN = re.compile(r'Did you mean "(pg_|_graphdb)')
_FOR_PATTERNS = "sql() runs SQL, query() patterns too; within SQL a pattern stands in parentheses: FROM (MATCH …)"


def _likely(word: str) -> str | None:
    """Return the hint for a first word that no statement has."""
    close = [] if word in SQL_STARTERS else nearest(word, sorted(SQL_STARTERS), 1)
    return f"did you mean {close[0]}?" if close else None


def as_sparql(error: GraphDBError, text: str) -> GraphDBError:
    """Return the error of a text in SPARQL with the same question in our language as its hint, where there is one."""
    query = re.sub(f"{_COMMENTS}(?:{_PREFIXES})*+", "", text, count=1, flags=re.I | re.S)
    ours = translated(query) if re.match(r"(SELECT|ASK)\b[^{]*\{", query, re.I) is not None else None
    return (
        error
        if ours is None
        else type(error)(_first_line(error), hint=f"this is SPARQL; the same question here: {ours}")
    )


def _first_line(error: GraphDBError) -> str:
    return str(error).splitlines()[0]
