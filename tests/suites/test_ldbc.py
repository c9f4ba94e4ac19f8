"""LDBC's Social Network Benchmark on its own small data: every read gives the expected rows, every insert adds what it should."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import graphdb
from tests import ldbc

READS = ldbc.queries()


@pytest.fixture(scope="module")
def graphs(shared: Callable[[str], Path]) -> Iterator[dict[str, graphdb.Database]]:
    folder = shared("suites/ldbc/data")
    databases = {graph: graphdb.connect() for graph in ("iv", "bi")}
    for graph, database in databases.items():
        ldbc.load(database, folder, graph)
    yield databases
    for database in databases.values():
        database.close()


def test_the_suite_is_there(shared: Callable[[str], Path]) -> None:
    shared("suites/ldbc/queries.json")
    assert len(ldbc.queries()) == 41
    assert len(ldbc.updates()) == 8


@pytest.mark.parametrize("query", READS, ids=[query["id"] for query in READS])
def test_reads(graphs: dict[str, graphdb.Database], query: dict[str, Any]) -> None:
    for case in query["cases"]:
        assert ldbc.ask(graphs[query["graph"]], query, case["parameters"]) == case["rows"], case["parameters"]


def test_inserts(shared: Callable[[str], Path]) -> None:
    """Each insert of LDBC's update stream adds as many vertices and edges as it should."""
    with graphdb.connect() as database:
        ldbc.load(database, shared("suites/ldbc/data"), "iv")
        for query in ldbc.updates():
            for case in query["cases"]:
                before = _size(database)
                database.query(query["cypher"], ldbc.arguments("iv", case))
                after = _size(database)
                assert (after[0] - before[0], after[1] - before[1]) == _added(query["id"], case), (query["id"], case)


def _added(query: str, case: dict[str, Any]) -> tuple[int, int]:
    """Return how many vertices and edges an insert makes by the specification: a vertex, its fixed edges, those of its lists."""
    fixed = {"IU1": (1, 1), "IU4": (1, 1), "IU6": (1, 3), "IU7": (1, 3)}.get(query, (0, 1))
    return fixed[0], fixed[1] + sum(len(case.get(name, ())) for name in ("tagIds", "studyAt", "workAt"))


def _size(database: graphdb.Database) -> tuple[int, int]:
    (nodes,) = database.query("MATCH (n) RETURN count(*)").fetchone()
    (edges,) = database.query("MATCH ()-[e]->() RETURN count(*)").fetchone()
    return nodes, edges
