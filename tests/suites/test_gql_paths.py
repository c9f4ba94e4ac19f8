"""GQL's paths: modes, selectors, quantifiers, match modes and label expressions, against answers by brute force.

Each case is asked of a graph whose edges have their names as a property, which tells parallel ones from each other, and
of one whose edges have none: then what stands for the same edges must come as often as the answer has it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path as File
from typing import Any

import pytest

import graphdb
from graphdb.common.values.elements import Node, Path, Relationship
from tests.datasets import SHARED

Case = dict[str, Any]
_FILE = SHARED / "suites" / "gql-paths" / "cases.json"
SUITE: dict[str, Any] = json.loads(_FILE.read_text(encoding="utf-8")) if _FILE.exists() else {"graphs": {}, "cases": []}


@pytest.fixture(scope="module")
def graph(shared: Callable[[str], File]) -> Iterator[Callable[[str, bool], graphdb.Database]]:
    shared("suites/gql-paths/cases.json")
    databases: dict[tuple[str, bool], graphdb.Database] = {}

    def find(name: str, named: bool) -> graphdb.Database:
        if (name, named) not in databases:
            databases[name, named] = _created(SUITE["graphs"][name], named)
        return databases[name, named]

    yield find
    for database in databases.values():
        database.close()


def _created(graph: dict[str, Any], named: bool) -> graphdb.Database:
    """Make a graph; its edges are ``named`` by a property, or have none."""
    database = graphdb.connect(threads=1)
    for node in graph["nodes"]:
        labels = "".join(f":{label}" for label in node["labels"])
        database.query(f"CREATE (n{labels}) SET n = $props, n.id = $id", {"props": node["props"], "id": node["id"]})
    for edge in graph["edges"]:
        properties, own = ("{id: $id}", {"id": edge["id"]}) if named else ("", {})
        database.query(
            f"MATCH (a {{id: $a}}), (b {{id: $b}}) CREATE (a)-[:{edge['label']} {properties}]->(b)",
            {"a": edge["src"], "b": edge["dst"], **own},
        )
    return database


def _plain(value: Any, ends: dict[str, str]) -> Any:
    """Return a value by the names of what is in it; ``ends`` are the names of vertices by their IRIs."""
    match value:
        case Node():
            return ends[value.iri]
        case Relationship(properties=properties) if "id" in properties:
            return properties["id"]
        case Relationship():
            return value.type, ends[value.start], ends[str(value.end)]
        case Path():
            parts = value.nodes, value.relationships
            return tuple(tuple(_plain(part, ends) for part in of) for of in parts)
    return value


def _should(value: Any, edges: dict[str, Any], named: bool) -> Any:
    """Return a value of the suite as :func:`_plain` gives it: an edge without a name by its label and ends."""
    if isinstance(value, dict):
        return tuple(value["nodes"]), tuple(_should(edge, edges, named) for edge in value["edges"])
    if isinstance(value, str) and value in edges and not named:
        return edges[value]["label"], edges[value]["src"], edges[value]["dst"]
    return value


_SEGMENTS = {"shape-two-seg": (range(1, 3), range(1, 4))}
"""Cases whose paths are of several parts with a variable between them, and how long each may be: the suite lists a path
once, but it is a row for each way to cut it."""


def _bindings(case: Case, length: int) -> int:
    """Return how many rows a path of so many edges is."""
    parts = _SEGMENTS.get(case["id"].rpartition("-")[0])
    return 1 if parts is None else sum(sum(lengths) == length for lengths in product(*parts))


TEXTS = [
    (case, language, named)
    for case in SUITE["cases"]
    for language in ("gql", "cypher")
    for named in (True, False)
    if case[language] is not None
]
"""The cases with each language that they are written in, and whether the edges of their graph have names."""


@pytest.mark.parametrize(
    ("case", "language", "named"),
    TEXTS,
    ids=[f"{case['id']}-{language}-{'named' if named else 'unnamed'}" for case, language, named in TEXTS],
)
def test_case(graph: Callable[[str, bool], graphdb.Database], case: Case, language: str, named: bool) -> None:
    database, expected = graph(case["graph"], named), case["expected"]
    if expected["kind"] == "reject":
        with pytest.raises(graphdb.GraphDBError):
            database.query(case[language])
        return
    edges = {edge["id"]: edge for edge in SUITE["graphs"][case["graph"]]["edges"]}
    assert edges.keys().isdisjoint(node["id"] for node in SUITE["graphs"][case["graph"]]["nodes"])
    ends = {node.iri: node.properties["id"] for (node,) in database.query("MATCH (n) RETURN n")}
    rows = [tuple(_plain(value, ends) for value in row) for row in database.query(case[language])]

    def bag(values: list[Any]) -> Counter[Any]:
        return Counter(_should(value, edges, named) for value in values)

    match expected["kind"]:
        case "rows":
            assert Counter(rows) == Counter(tuple(_should(v, edges, named) for v in row) for row in expected["rows"])
        case "paths":
            paths = [path for path in expected["paths"] for _ in range(_bindings(case, len(path["edges"])))]
            assert Counter(path for (path,) in rows) == bag(paths)
        case "per_partition":
            _check_partitions([path for (path,) in rows], expected["partitions"], bag)
        case "accept_only":
            assert Counter((path[0][0], path[0][-1]) for (path,) in rows) == Counter(map(tuple, expected["partitions"]))


def _check_partitions(paths: list[Any], partitions: list[Any], bag: Callable[[list[Any]], Counter[Any]]) -> None:
    """Between each two ends there are so many paths, of those lengths, and only admissible ones, none too often."""
    found: dict[tuple[str, str], list[Any]] = {}
    for path in paths:
        found.setdefault((path[0][0], path[0][-1]), []).append(path)
    assert found.keys() == {(part["start"], part["end"]) for part in partitions}
    for part in partitions:
        mine = found[part["start"], part["end"]]
        assert len(mine) == part["count"]
        assert Counter(mine) <= bag(part["admissible"])
        if part["lengths"] is not None:
            assert sorted(len(edges) for _, edges in mine) == sorted(part["lengths"])
