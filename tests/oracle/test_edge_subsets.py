"""Patterns over the edges that fulfil conditions, in graphs that are worth it, against brute force in NumPy.

Several edges of a pattern have conditions on their properties: matched among the edges that fulfil them, where a search
among all goes through many more elements, and filtered afterwards elsewhere.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import graphdb

VERTICES, EDGES = 300, 9000

Matrix = NDArray[np.int64]
Graph = tuple[graphdb.Database, NDArray[np.int64], NDArray[np.float64]]
"""A database, the ends of its edges (int64 [edges, 2]), and their weights; NaN where one has none."""


@pytest.fixture(scope="module", params=[1, 2])
def graph(request: pytest.FixtureRequest) -> Graph:
    """A graph without loops and without parallel edges, whose weights are null for every tenth edge."""
    dice = np.random.default_rng(request.param)
    pairs = dice.choice(VERTICES * VERTICES, EDGES, replace=False)
    ends = np.stack([pairs // VERTICES, pairs % VERTICES], axis=1)
    ends = ends[ends[:, 0] != ends[:, 1]]
    weights = np.where(dice.random(len(ends)) < 0.1, np.nan, dice.integers(0, 100, len(ends)))
    database = graphdb.connect(device="cpu", threads=1)
    vertices = pa.table({"id:ID": np.arange(VERTICES)})
    edges = pa.table(
        {":START_ID": ends[:, 0], ":END_ID": ends[:, 1], "w:long": pa.array(weights, from_pandas=True).cast(pa.int64())}
    )
    database.load([graphdb.Table(vertices, label="P"), graphdb.Table(edges, type="K")])
    return database, ends, weights


def _joined(ends: NDArray[np.int64], left: NDArray[np.bool_], both: bool = False) -> Matrix:
    """How many of some edges join each pair of vertices, in one direction or in both."""
    found = np.zeros((VERTICES, VERTICES), np.int64)
    found[ends[left, 0], ends[left, 1]] = 1
    return found + found.T if both else found


def _count(database: graphdb.Database, query: str, **arguments: object) -> int:
    assert " edges]-" in database.explain(query, arguments), "it is matched among all edges"
    ((found,),) = database.query(query, arguments).fetchall()
    return int(found)


def test_triangles(graph: Graph) -> None:
    database, ends, weights = graph
    a = _joined(ends, weights > 70)
    query = "MATCH (a)-[x:K]->(b)-[y:K]->(c)-[z:K]->(a) WHERE x.w > $w AND y.w > $w AND z.w > $w RETURN count(*)"
    assert _count(database, query, w=70) == np.trace(a @ a @ a)
    written = "MATCH (a)-[x:K]->(b)-[y:K]->(c)-[z:K]->(a) WHERE all(e IN [x, y, z] WHERE e.w > 70) RETURN count(*)"
    assert _count(database, written) == np.trace(a @ a @ a)


def test_conditions_differ_and_one_edge_has_none(
    graph: Graph,
) -> None:
    database, ends, weights = graph
    a, b, c = _joined(ends, weights < 20), _joined(ends, np.isnan(weights)), _joined(ends, np.ones(len(ends), bool))
    query = "MATCH (a)-[x:K]->(b)-[y:K]->(c)-[z:K]->(a) WHERE x.w < 20 AND y.w IS NULL RETURN count(*)"
    # Of a triangle of one direction no two edges are one, as no edge joins a vertex with itself.
    assert _count(database, query) == np.trace(a @ b @ c)


@pytest.mark.parametrize("mode", ["DIFFERENT EDGES", "REPEATABLE ELEMENTS", "DIFFERENT NODES"])
def test_undirected_paths_in_each_mode(graph: Graph, mode: str) -> None:
    database, ends, weights = graph
    low, high = weights < 60, weights > 30
    one, other = _joined(ends, low, both=True), _joined(ends, high, both=True)
    paths = int((one.sum(axis=0) * other.sum(axis=1)).sum())
    shared = _joined(ends, low & high, both=True)
    found = {
        "REPEATABLE ELEMENTS": paths,
        "DIFFERENT EDGES": paths - int(shared.sum()),
        "DIFFERENT NODES": paths - int(np.trace(one @ other)),
    }
    query = f"MATCH {mode} (a)-[x:K]-(b)-[y:K]-(c) WHERE x.w < 60 AND y.w > 30 RETURN count(*)"
    ((count,),) = database.query(query).fetchall()
    assert count == found[mode]
    rows = (
        f"MATCH {mode} (a)-[x:K]-(b)-[y:K]-(c) WHERE x.w < 60 AND y.w > 30 RETURN sum(x.w) AS s, count(DISTINCT y) AS n"
    )
    ((total, distinct),) = database.query(rows).fetchall()
    pairs = list(zip(ends.tolist(), weights.tolist(), strict=True))
    at: dict[int, list[tuple[int, int]]] = {v: [] for v in range(VERTICES)}
    for number, ((s, o), w) in enumerate(pairs):
        if w > 30:
            at[s].append((number, o))
            at[o].append((number, s))
    expected, seen = 0, set()
    for number, ((s, o), w) in enumerate(pairs):
        if w < 60:
            for a, b in ((s, o), (o, s)):
                for other_edge, c in at[b]:
                    if (mode == "DIFFERENT EDGES" and other_edge == number) or (mode == "DIFFERENT NODES" and c == a):
                        continue
                    expected += int(w)
                    seen.add(other_edge)
    assert (total, distinct) == (expected, len(seen))


def test_rows_that_a_pattern_starts_from(
    graph: Graph,
) -> None:
    database, ends, weights = graph
    a = _joined(ends, weights > 80)
    triangles = np.diagonal(a @ a @ a)
    found = database.query(
        "MATCH (a:P) OPTIONAL MATCH (a)-[x:K]->(b)-[y:K]->(c)-[z:K]->(a) WHERE x.w > 80 AND y.w > 80 AND z.w > 80 "
        "RETURN a.id AS id, count(b) AS n ORDER BY id"
    ).fetchall()
    assert [n for _, n in found] == triangles.tolist()


def test_changes_are_followed() -> None:
    with graphdb.connect(device="cpu", threads=1) as database:
        dice = np.random.default_rng(3)
        ends = np.argwhere(dice.random((120, 120)) < 0.4)
        ends = ends[ends[:, 0] != ends[:, 1]]
        edges = pa.table({":START_ID": ends[:, 0], ":END_ID": ends[:, 1], "w:long": np.arange(len(ends)) % 10})
        database.load([graphdb.Table(pa.table({"id:ID": np.arange(120)}), label="P"), graphdb.Table(edges, type="K")])
        query = "MATCH (a)-[x:K]->(b)-[y:K]->(c)-[z:K]->(a) WHERE x.w = 3 AND y.w = 3 AND z.w = 3 RETURN count(*)"
        for _ in range(2):
            weights = np.array(
                database.query("MATCH (a)-[x:K]->(b) RETURN a.id AS a, b.id AS b, x.w AS w").fetchall(), np.int64
            )
            three = weights[weights[:, 2] == 3]
            found = np.zeros((120, 120), np.int64)
            found[three[:, 0], three[:, 1]] = 1
            assert database.query(query).fetchall() == [(np.trace(found @ found @ found),)]
            database.query("MATCH (a {id: 5})-[x:K]->() SET x.w = 3")
