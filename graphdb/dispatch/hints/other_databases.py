"""Statements of other databases, typed by habit: what says the same here, as the hint of the error."""

from __future__ import annotations

import re
from collections.abc import Iterable

from graphdb.common.duckdb.errors import in_text
from graphdb.common.errors import ExecutionError, nearest
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
        r"LOAD\s+FROM\s*(['\"][^'\"]*['\"]|\w+).*?\bRETURN\b|LOAD\s+WITH\s+HEADERS\b",
        "rows of a file: SELECT * FROM 'people.csv'; as vertices: LOAD 'people.csv' AS LABEL Person",
    ),
    (
        r"LOAD\s+FROM\s+['\"]",
        "files are named without FROM: LOAD 'people.csv' AS LABEL Person; a query with it: LOAD FROM (SELECT …)",
    ),
    (
        r"LOAD\s+FROM\s+\w",
        "rows come from a query in parentheses, a table or data frame too: LOAD FROM (FROM people) AS LABEL Person",
    ),
    (r"LOAD\s+EXTENSION\b", "extensions are DuckDB's: LOAD json"),
    (r"USING\s+PERIODIC\s+COMMIT\b", "a load is one transaction of its own: LOAD 'people.csv' AS LABEL Person"),
    (
        r"CREATE\s+(VERTEX|NODE|EDGE|CLASS)\b|CREATE\s+(?!(TABLE|VIEW|SCHEMA|INDEX|MACRO|TYPE|SEQUENCE|FUNCTION)\b)\w+\s*(\{|;|$)",
        "a vertex stands in brackets: CREATE (:Person {name: 'Ada'})-[:knows]->(:Person {name: 'Bob'})",
    ),
    (
        r"(CREATE|DROP|ALTER)\s+(OR\s+REPLACE\s+)?(COMPOSITE\s+)?(DATABASE|USER|ROLE|ALIAS)\b|(GRANT|REVOKE|DENY)\b|"
        r"SHOW\s+(TRANSACTIONS|USERS?|ROLES?|PRIVILEGES|SERVERS?)\b|USE\b",
        "a database is a file, without a server or users: connect('a.duckdb') opens one, ATTACH 'b.duckdb' another",
    ),
    (
        r"EXPLAIN\s+\(?\s*(ANALYZE|LOGICAL|PHYSICAL)\b.*?\b(MATCH|UNWIND|RETURN)\b",
        "PROFILE MATCH … runs a query and says what each step did, EXPLAIN MATCH … how it would run",
    ),
    (
        r"(EXPORT|IMPORT)\s+DATABASE\b",
        ".export graph.parquet in the shell, export(path) in Python write the graph; LOAD reads it",
    ),
    (r"TERMINATE\s+TRANSACTIONS?\b", "Ctrl-C, or interrupt() from another thread, stops a statement"),
    (r"CYPHER\b", "a statement begins with its first clause: leave CYPHER and its options out"),
    (r"MANDATORY\s+MATCH\b|START\s+\w+\s*=", "what is there is asked for by MATCH (n) … RETURN n"),
    (r"\w+\.[VE]\s*\(", "this is Gremlin; here: MATCH (a {name: 'Ada'})-[:knows]->(b) RETURN b.name"),
    (r"\w+\.\w+\s*\(", "this is Python; a statement is what stands in its quotes"),
    (
        r"BASE\s*<|@(prefix|base)\b|<[^<>]*>\s+(a\b|<)",
        "this is Turtle or SPARQL; here LOAD 'data.ttl' reads triples, "
        "INSERT DATA { … } adds some, and PREFIX ex: <http://…> declares a prefix",
    ),
    (r"\.\w+", "commands with a dot are the shell's: graphdb world.duckdb opens it"),
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
    (r"CALL\s+show_functions\b", "the functions are listed in docs/language/functions.md"),
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
        r"CREATE\s+(OR\s+REPLACE\s+)?(TEMP\w*\s+)?(TABLE|VIEW)\s.*?\bMATCH\s*\(",
        "rows of a pattern as a table: CREATE TABLE friends AS MATCH (a)-[:knows]->(b) RETURN a.name, b.name AS friend",
    ),
    (
        r"(INSERT|SELECT|UPDATE|DELETE|WITH|PREPARE|DESCRIBE|FROM)\b(?!.*\bcypher\s*\().*?\bMATCH\s*\(",
        "within SQL a pattern is a table, in parentheses behind FROM: SELECT * FROM (MATCH (a) RETURN a.name)",
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


def with_hint(error: ExecutionError, text: str) -> ExecutionError:
    """Return an error of a statement that DuckDB does not know with a hint: another database's, ours, or misspelt."""
    if error.hint is None:
        for pattern, hint in _SAID:
            if re.search(pattern, str(error)) is not None:
                return in_text(error, text, hint)
        for pattern, hint in _HINTS:
            if re.match(_COMMENTS + f"(?:{pattern})", text, re.I | re.S) is not None:
                return in_text(error, text, hint)
        if (first := re.match(_COMMENTS + r"(\w+)", text, re.S)) is not None:
            word = first[1].upper()
            meant = _FOR_PATTERNS if word in STARTERS - SQL_STARTERS else _likely(word)
            if meant is not None and f'at or near "{first[1]}"' in str(error):
                return in_text(error, text, meant)
    return error


def of_label(error: ExecutionError, text: str, labels: Iterable[tuple[str, str]]) -> ExecutionError:
    """Return an error of SQL that takes one of the graph's labels for a table with the pattern that is meant.

    ``labels`` are names of them, each with what a pattern calls it.  DuckDB's own tables are never meant.
    """
    missing = re.search(r"Table with name (.+?) does not exist", str(error))
    if error.hint is not None or missing is None:
        return error
    written = next((written for name, written in labels if name.lower() == missing[1].lower()), None)
    if written is not None:
        return in_text(error, text, f"{missing[1]} is a label: MATCH (x:{written}) RETURN x")
    if _OWN.search(str(error)) is not None:
        error = in_text(error, text)
        error.hint = None
    return error


_OWN = re.compile(r'Did you mean "(pg_|_graphdb)')
_FOR_PATTERNS = "sql() runs SQL, query() patterns too; within SQL a pattern stands in parentheses: FROM (MATCH …)"


def _likely(word: str) -> str | None:
    """Return the hint for a first word that no statement has."""
    close = [] if word in SQL_STARTERS else nearest(word, sorted(SQL_STARTERS), 1)
    return f"did you mean {close[0]}?" if close else None


def as_sparql(error: ExecutionError, text: str) -> ExecutionError:
    """Return the error of a text in SPARQL with the same question in our language as its hint, where there is one."""
    query = re.sub(f"{_COMMENTS}(?:{_PREFIXES})*+", "", text, count=1, flags=re.I | re.S)
    ours = translated(query) if re.match(r"(SELECT|ASK)\b[^{]*\{", query, re.I) is not None else None
    return error if ours is None else in_text(error, text, f"this is SPARQL; the same question here: {ours}")
