"""GQL's paths: modes, selectors, quantifiers, match modes and label expressions, against answers by brute force."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path as File
from typing import Any

import pytest

import graphdb
from graphdb.elements import Node, Path, Relationship
from tests.datasets import SHARED

Case = dict[str, Any]
_FILE = SHARED / "suites" / "gql-paths" / "cases.json"
SUITE: dict[str, Any] = json.loads(_FILE.read_text(encoding="utf-8")) if _FILE.exists() else {"graphs": {}, "cases": []}


@pytest.fixture(scope="module")
def graph(shared: Callable[[str], File]) -> Iterator[Callable[[str], graphdb.Database]]:
    shared("suites/gql-paths/cases.json")
    databases: dict[str, graphdb.Database] = {}

    def find(name: str) -> graphdb.Database:
        if name not in databases:
            databases[name] = _created(SUITE["graphs"][name])
        return databases[name]

    yield find
    for database in databases.values():
        database.close()


def _created(graph: dict[str, Any]) -> graphdb.Database:
    database = graphdb.connect(threads=1)
    for node in graph["nodes"]:
        labels = "".join(f":{label}" for label in node["labels"])
        database.query(f"CREATE (n{labels}) SET n = $props, n.id = $id", {"props": node["props"], "id": node["id"]})
    for edge in graph["edges"]:
        database.query(
            f"MATCH (a {{id: $a}}), (b {{id: $b}}) CREATE (a)-[:{edge['label']} {{id: $id}}]->(b)",
            {"a": edge["src"], "b": edge["dst"], "id": edge["id"]},
        )
    return database


def _plain(value: Any) -> Any:
    match value:
        case Node() | Relationship():
            return value.properties["id"]
        case Path():
            return (tuple(map(_plain, value.nodes)), tuple(map(_plain, value.relationships)))
    return value


def _paths(paths: list[Any]) -> set[Any]:
    return {(tuple(path["nodes"]), tuple(path["edges"])) for path in paths}


TEXTS = [(case, language) for case in SUITE["cases"] for language in ("gql", "cypher") if case[language] is not None]
"""The cases with each language that they are written in."""


@pytest.mark.parametrize(("case", "language"), TEXTS, ids=[f"{case['id']}-{language}" for case, language in TEXTS])
def test_case(graph: Callable[[str], graphdb.Database], case: Case, language: str) -> None:
    database, expected = graph(case["graph"]), case["expected"]
    if expected["kind"] == "reject":
        with pytest.raises(graphdb.GraphDBError):
            database.query(case[language])
        return
    rows = [tuple(map(_plain, row)) for row in database.query(case[language])]
    match expected["kind"]:
        case "rows":
            assert Counter(rows) == Counter(map(tuple, expected["rows"]))
        case "paths":
            assert {path for (path,) in rows} == _paths(expected["paths"])
        case "per_partition":
            _check_partitions([path for (path,) in rows], expected["partitions"])
        case "accept_only":
            assert rows


def _check_partitions(paths: list[Any], partitions: list[Any]) -> None:
    """Between each two ends there are so many paths, of those lengths, and only admissible ones."""
    assert len(set(paths)) == len(paths)
    found: dict[tuple[str, str], list[Any]] = {}
    for path in paths:
        found.setdefault((path[0][0], path[0][-1]), []).append(path)
    assert found.keys() == {(part["start"], part["end"]) for part in partitions}
    for part in partitions:
        mine = found[part["start"], part["end"]]
        assert len(mine) == part["count"]
        assert set(mine) <= _paths(part["admissible"])
        if part["lengths"] is not None:
            assert sorted(len(edges) for _, edges in mine) == sorted(part["lengths"])
