"""openCypher's own scenarios: running one, and comparing all that it says: the graph before, rows by value, type and
order, errors, what control queries give after it, and what came and went, one by one.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import duckdb

import graphdb
from graphdb import GraphDBError
from tests.datasets import SHARED
from tests.suites.effects import Contents, effects, same_graph, stored
from tests.suites.tck_values import expected, plain, python, read

Scenario = dict[str, Any]

COMPILE_TIME = (graphdb.ParseError, graphdb.BindError, graphdb.TypeMismatchError, graphdb.ParameterError)
"""Errors that a query can get before it runs."""

_WRITING = {"CREATE", "MERGE", "SET", "DELETE", "REMOVE"}


@cache
def _all() -> list[Scenario]:
    path = SHARED / "suites" / "tck" / "scenarios.json"
    if not path.exists():
        return []
    found: list[Scenario] = json.loads(path.read_text(encoding="utf-8"))["scenarios"]
    return found


def scenarios() -> list[Scenario]:
    """All scenarios."""
    return list(_all())


def writes(scenario: Scenario) -> bool:
    """Whether a scenario's query is one that writes."""
    return any(clause.split()[-1] in _WRITING for clause in scenario["class"]["clauses"])  # DETACH DELETE, too


def same_rows(found: list[list[Any]], should: list[list[Any]], expect: dict[str, Any]) -> bool:
    """Whether rows are those that are expected, in that order where one is."""
    if expect.get("ignore_list_order"):
        found, should = (
            [[sorted(v, key=_key) if isinstance(v, list) else v for v in r] for r in x] for x in (found, should)
        )
    if not expect.get("ordered"):
        found, should = sorted(found, key=_key), sorted(should, key=_key)
    return _key(found) == _key(should)  # 1 is not true, which it equals in Python


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


class Runner:
    """Runs scenarios; those that only read the same graph share a database.

    Each that writes has a graph of its own.  All are in one of DuckDB's databases in memory, each shared one in a
    catalog of its own: to open another database takes longer than most scenarios.
    """

    def __init__(self) -> None:
        self._duckdb = duckdb.connect(config={"threads": 1})
        self._databases: dict[str, tuple[graphdb.Database, Contents, list[Any]]] = {}
        self._contents: dict[str, Contents] = {}
        """What each setup made: the same statements always make the same graph."""

    def close(self) -> None:
        """Close all databases; those that scenarios read and share must be as their setups left them."""
        changed = [key for key, (database, _, tables) in self._databases.items() if stored(database) != tables]
        for database, *_ in self._databases.values():
            database.close()
        self._duckdb.close()
        assert not changed, f"what only reads changed what is stored: {changed}"

    def _catalog(self) -> duckdb.DuckDBPyConnection:
        """Return a connection to an empty catalog."""
        connection, name = self._duckdb.cursor(), f"graph{len(self._databases)}"
        connection.execute(f"ATTACH ':memory:' AS {name}; USE {name}")
        return connection

    def _drop(self, database: graphdb.Database) -> None:
        """Close the graph of a scenario that writes, and leave nothing of it."""
        database.close()
        self._duckdb.execute("DROP SCHEMA IF EXISTS _graphdb CASCADE; DROP VIEW IF EXISTS main.triples")
        left = self._duckdb.execute(
            "SELECT table_name FROM duckdb_tables() WHERE database_name = current_database()"
        ).fetchall()
        assert not left, f"a scenario left {left}"

    def run(self, scenario: Scenario, twin: tuple[str, dict[str, Any]] | None = None) -> str | None:
        """Run a scenario; return what is wrong with its outcome, or None.

        ``twin`` is another text to run in place of its query, and what that takes besides its parameters; its columns
        may be called otherwise, and what its arguments are is known when it runs only.
        """
        setup = [*scenario["graph"].get("queries", ()), *scenario["setup"]]
        alone = writes(scenario)
        key = _key([setup, scenario["procedures"]])
        if alone or key not in self._databases:
            database = graphdb.attach(self._duckdb if alone else self._catalog(), threads=1)
            for statement in setup:
                database.query(statement)
            for each in scenario["procedures"]:
                register(database, each)
            if (contents := self._contents.get(key)) is None:
                contents = self._contents[key] = Contents.of(database)
            if not alone:
                database.query("MATCH (n) RETURN count(*)")  # makes the tables
                self._databases[key] = database, contents, stored(database)
        else:
            database, contents, _ = self._databases[key]
        try:
            should = scenario["setup_graph"]
            if should is not None and not same_graph(contents, should):
                return f"the setup made {contents}, expected {should}"
            wrong = self._outcome(database, scenario, twin)
            if wrong is not None:
                return wrong
            wanted = scenario["side_effects"] or {}
            if alone and (found := effects(contents, Contents.of(database))) != wanted:
                return f"the effects are {found}, expected {wanted}"
            if not alone and wanted:
                return f"no effects, expected {wanted}"
            return self._controls(database, scenario)
        finally:
            if alone:
                self._drop(database)

    def _outcome(
        self, database: graphdb.Database, scenario: Scenario, twin: tuple[str, dict[str, Any]] | None
    ) -> str | None:
        query, more = twin or (scenario["query"], {})
        arguments = {
            name: database.query(f"RETURN {text} AS x").fetchall()[0][0]
            for name, text in (scenario["parameters"] or {}).items()
        }
        expect = scenario["expect"]
        try:
            result = database.query(query, {**arguments, **more})
            found = [[plain(value) for value in row] for row in result]
        except GraphDBError as error:
            if expect["kind"] != "error":
                return f"{type(error).__name__}: {str(error).splitlines()[0]}"
            if expect["phase"] == "compile time" and not more and not isinstance(error, COMPILE_TIME):
                return f"{type(error).__name__} for an error at compile time: {str(error).splitlines()[0]}"
            return None
        if expect["kind"] == "error":
            return f"no error, expected {expect['error_type']}: {expect['detail']}"
        if twin is None and list(result.columns) != (expect.get("columns") or []):
            return f"columns {list(result.columns)}, expected {expect.get('columns')}"
        should = [[expected(value) for value in row] for row in expect.get("values") or []]
        return None if same_rows(found, should, expect) else f"found {found}, expected {should}"

    def _controls(self, database: graphdb.Database, scenario: Scenario) -> str | None:
        for control in scenario["control"]:
            query, expect = control["query"], control["expect"]
            result = database.query(query)
            if list(result.columns) != expect["columns"]:
                return f"then {query} gives columns {list(result.columns)}"
            found = [[plain(value) for value in row] for row in result]
            should = [list(map(read, row)) for row in expect["rows"]]
            if not same_rows(found, should, expect):
                return f"then {query} gives {found}, expected {should}"
        return None


def register(database: graphdb.Database, procedure: dict[str, Any]) -> None:
    """Register a procedure that a scenario tells by a table: what it yields for which arguments."""
    signature, (header, *rows) = procedure["signature"], procedure["table"]
    width = signature.rpartition("(")[0].count("::") - 1  # of the arguments: "::" stands before the columns, too
    table = [[python(read(text)) for text in row] for row in rows]

    def function(*arguments: Any) -> list[tuple[Any, ...]] | None:
        found = [tuple(row[width:]) for row in table if row[:width] == list(arguments)]
        return found if len(header) > width else None

    database.register_procedure(signature, function)
