"""openCypher's own scenarios: running one, and comparing what comes back by value, type and order."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import graphdb
from graphdb import GraphDBError, Node, Relationship
from graphdb.elements import Path
from graphdb.temporal import Temporal, from_python
from tests.datasets import SHARED

Scenario = dict[str, Any]

COMPILE_TIME = (graphdb.ParseError, graphdb.BindError, graphdb.TypeMismatchError, graphdb.ParameterError)
"""Errors that a query can get before it runs."""


def scenarios() -> list[Scenario]:
    """All scenarios but those of procedures."""
    path = SHARED / "suites" / "tck" / "scenarios.json"
    if not path.exists():
        return []
    found: list[Scenario] = json.loads(path.read_text(encoding="utf-8"))["scenarios"]
    return [each for each in found if "CALL" not in each["class"]["clauses"]]


def plain(value: Any) -> Any:
    """Return one of our values as the suite writes it."""
    match value:
        case Node():
            return {"node": {"labels": sorted(value.labels), "props": plain(dict(value.properties))["map"]}}
        case Relationship():
            return {"rel": {"type": value.type, "props": plain(dict(value.properties))["map"]}}
        case Path():
            steps = [
                {"dir": ">" if edge.start == left.iri else "<", "rel": plain(edge), "node": plain(right)}
                for left, edge, right in zip(value.nodes, value.relationships, value.nodes[1:], strict=False)
            ]
            return {"path": {"start": plain(value.nodes[0]), "steps": steps}}
        case float():
            return {"float": repr(value + 0.0)}
        case list():
            return [plain(item) for item in value]
        case dict():
            return {"map": {key: plain(item) for key, item in value.items()}}
        case None | bool() | int() | str():
            return value
    temporal = value if isinstance(value, Temporal) else from_python(value)
    assert temporal is not None, f"the suite has no value like {value!r}"
    return str(temporal)


def expected(value: Any) -> Any:
    """Return a value of the suite as :func:`plain` gives it."""
    match value:
        case {"float": text}:
            return {"float": repr(float(text.replace("Inf", "inf")) + 0.0)}
        case {"node": {"labels": labels, "props": props}, **rest} if "dir" not in rest:
            return {"node": {"labels": sorted(labels), "props": expected(props)}}
        case dict():
            return {key: expected(item) for key, item in value.items()}
        case list():
            return [expected(item) for item in value]
    return value


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def same_rows(found: list[list[Any]], should: list[list[Any]], expect: dict[str, Any]) -> bool:
    """Whether rows are those that are expected, in that order where one is."""
    if expect.get("ignore_list_order"):
        found, should = (
            [[sorted(v, key=_key) if isinstance(v, list) else v for v in r] for r in x] for x in (found, should)
        )
    if not expect.get("ordered"):
        found, should = sorted(found, key=_key), sorted(should, key=_key)
    return found == should


class Runner:
    """Runs scenarios; those that only read the same graph share a database."""

    def __init__(self) -> None:
        self._databases: dict[str, graphdb.Database] = {}

    def close(self) -> None:
        """Close all databases."""
        for database in self._databases.values():
            database.close()

    def _database(self, scenario: Scenario, own: bool) -> graphdb.Database:
        setup = [*scenario["graph"].get("queries", ()), *scenario["setup"]]
        key = json.dumps(setup)
        found = None if own else self._databases.get(key)
        if found is None:
            found = graphdb.connect(threads=1)
            for statement in setup:
                found.query(statement)
            if not own:
                self._databases[key] = found
        return found

    def run(self, scenario: Scenario, twin: tuple[str, dict[str, Any]] | None = None) -> str | None:
        """Run a scenario; return what is wrong with its outcome, or None.

        ``twin`` is another text to run in place of its query, and what that takes besides its parameters; its columns
        may be called otherwise, and what its arguments are is known when it runs only.
        """
        writes = scenario["class"]["tier"] == "W" or not _WRITING.isdisjoint(scenario["class"]["clauses"])
        database = self._database(scenario, writes)
        try:
            return self._outcome(database, scenario, writes, twin)
        finally:
            if writes:
                database.close()

    def _outcome(
        self, database: graphdb.Database, scenario: Scenario, writes: bool, twin: tuple[str, dict[str, Any]] | None
    ) -> str | None:
        query, more = twin or (scenario["query"], {})
        arguments = {
            name: database.query(f"RETURN {text} AS x").fetchall()[0][0]
            for name, text in (scenario["parameters"] or {}).items()
        }
        expect = scenario["expect"]
        before = census(database) if writes else Counter()
        try:
            result = database.query(query, {**arguments, **more})
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
        found = [[plain(value) for value in row] for row in result]
        should = [[expected(value) for value in row] for row in expect.get("values") or []]
        if not same_rows(found, should, expect):
            return f"found {found}, expected {should}"
        for control in scenario["control"]:
            rows = database.query(control["query"]).fetchall()
            if len(rows) != len(control["expect"]["rows"]):
                return f"then {control['query']} gives {rows}"
        if writes:
            effects = scenario["side_effects"] or {}
            wanted = Counter({kind: effects.get(f"+{kind}", 0) - effects.get(f"-{kind}", 0) for kind in _KINDS})
            after = census(database)
            changed = {kind: after[kind] - before[kind] for kind in _KINDS}
            if any(changed[kind] != wanted[kind] for kind in _KINDS):
                return f"changed {changed}, expected {dict(wanted)}"
        return None


_WRITING = {"CREATE", "MERGE", "SET", "DELETE", "REMOVE"}
_KINDS = ("nodes", "relationships", "properties", "labels")


def census(database: graphdb.Database) -> Counter[str]:
    """How many vertices, edges, properties and labels (each counted once) there are."""
    nodes = [node for (node,) in database.query("MATCH (n) RETURN n")]
    edges = [edge for (edge,) in database.query("MATCH ()-[r]->() RETURN r")]
    return Counter(
        nodes=len(nodes),
        relationships=len(edges),
        properties=sum(len(element.properties) for element in [*nodes, *edges]),
        labels=len({label for node in nodes for label in node.labels}),
    )
