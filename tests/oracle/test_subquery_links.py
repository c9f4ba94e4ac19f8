"""Lists and numbers of patterns around pairs of vertices that an edge joins, against brute force in NumPy.

The pattern of a subquery is matched along the edges that its rows come from, too; rows that another clause made of
them, rows without an edge and edges in either direction must not lose a match by that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import graphdb

VERTICES = 40
Matrix = NDArray[np.int64]
Graph = tuple[graphdb.Database, Matrix, Matrix]


@pytest.fixture(scope="module", params=range(3))
def graph(request: pytest.FixtureRequest) -> Iterator[Graph]:
    """Edges K and L of random pairs, some of them loops; every L has a weight."""
    dice = np.random.default_rng(request.param)
    k, l = (np.argwhere(dice.random((VERTICES, VERTICES)) < share) for share in (0.08, 0.1))
    with graphdb.connect(device="cpu", threads=1) as database:
        database.load(
            [
                graphdb.Table(pa.table({"id:ID": np.arange(VERTICES)}), label="P"),
                graphdb.Table(pa.table({":START_ID": k[:, 0], ":END_ID": k[:, 1]}), type="K"),
                graphdb.Table(pa.table({":START_ID": l[:, 0], ":END_ID": l[:, 1], "w:long": l.sum(axis=1)}), type="L"),
            ]
        )
        found = np.zeros((2, VERTICES, VERTICES), np.int64)
        found[0, k[:, 0], k[:, 1]] = found[1, l[:, 0], l[:, 1]] = 1
        yield database, found[0], found[1]


def _weights(joined: Matrix, x: int, y: int) -> list[int]:
    """Of each way from x by an L to a vertex that another L leads to from y, the difference of their weights."""
    ways = [v for v in range(VERTICES) if joined[x, v] and joined[y, v]]
    return [] if x == y else sorted(abs((x + v) - (y + v)) for v in ways)  # two edges, which x = y has but once


@pytest.mark.parametrize(
    ("pattern", "pairs"),
    [
        ("MATCH (x)-[:K]->(y)", lambda k: k),
        ("MATCH (y)<-[:K]-(x)", lambda k: k),
        ("MATCH (x)-[:K]-(y)", lambda k: k + k.T - np.diag(np.diag(k))),
        ("MATCH (x)-[:K]->(y) WITH x AS y, y AS x", lambda k: k.T),
        ("MATCH (x)-[:K]->(z) WITH x AS z, z AS y WITH z AS x, y", lambda k: k),
        ("MATCH REPEATABLE ELEMENTS (x)-[:K]->(z)-[:K]->(y) WITH DISTINCT x, y", lambda k: k @ k > 0),
        ("MATCH (z)-[:K]->(x) WITH DISTINCT x MATCH (x)-[:K]->(y)", lambda k: k * k.any(axis=0)[:, None]),
    ],
)
def test_lists_of_pairs(graph: Graph, pattern: str, pairs: Callable[[Matrix], Matrix]) -> None:
    database, k, joined = graph
    asked = pairs(k)
    query = f"{pattern} RETURN x.id AS x, y.id AS y, [(x)-[a:L]->()<-[b:L]-(y) | abs(a.w - b.w)] AS found"
    wanted = Counter({(x, y, tuple(_weights(joined, x, y))): int(asked[x, y]) for x, y in np.argwhere(asked).tolist()})
    found = Counter((x, y, tuple(sorted(values))) for x, y, values in database.query(query).fetchall())
    assert found == wanted
    counted = (
        f"{pattern} WITH x, y, COUNT {{ (x)-[a:L]->()<-[b:L]-(y) WHERE a.w <> b.w + 3 }} AS n RETURN x.id, y.id, n"
    )
    numbers = Counter(
        {
            (x, y, sum(x + v != y + v + 3 for v in range(VERTICES) if joined[x, v] and joined[y, v] and x != y)): int(
                asked[x, y]
            )
            for x, y in np.argwhere(asked).tolist()
        }
    )
    assert Counter(database.query(counted).fetchall()) == numbers


def test_rows_without_an_edge_keep_their_lists(graph: Graph) -> None:
    database, k, joined = graph
    query = (
        "MATCH (x:P), (y:P) WHERE x.id < 12 AND y.id < 12 OPTIONAL MATCH (x)-[e:K]->(y) "
        "RETURN x.id, y.id, e IS NULL, [(x)-[a:L]->()<-[b:L]-(y) | abs(a.w - b.w)]"
    )
    found = Counter((x, y, none, tuple(sorted(values))) for x, y, none, values in database.query(query).fetchall())
    pairs = [(x, y) for x in range(12) for y in range(12)]
    assert found == Counter((x, y, not k[x, y], tuple(_weights(joined, x, y))) for x, y in pairs)


def test_the_pattern_is_matched_along_the_edges(graph: Graph) -> None:
    database, _, _ = graph
    query = "MATCH (x)-[:K]-(y) WHERE size([(x)-[a:L]->()<-[b:L]-(y) | a.w - b.w]) > 0 RETURN count(*)"
    plan = "\n".join(line for (line,) in database.query(f"PROFILE {query}").fetchall())
    assert "[:K]-" in plan.split("join with")[1]
