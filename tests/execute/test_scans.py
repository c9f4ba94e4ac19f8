"""Patterns of one vertex or one edge: their matches are candidates, and the neighbours of these, in blocks, within limits
and shares.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import graphdb
from graphdb.execute import host
from graphdb.execute.host import HostExecutor
from graphdb.execute.search import scans
from graphdb.execute.search.chunks import ParallelRun, SingleThreadRun
from graphdb.pattern.graph import Clause, PatternEdge, PatternGraph, PatternVertex
from graphdb.plan.executor import Block, Control
from graphdb.plan.passes.pipeline import make_plan
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph

COUNT = 50


@pytest.fixture
def numbers(monkeypatch: pytest.MonkeyPatch) -> graphdb.Database:
    """Numbers in a database whose scans yield seven at a time, and which does not search for them."""

    def search(*_: object) -> None:
        raise AssertionError("a scan is no search")

    monkeypatch.setattr(scans, "_ROWS", 7)
    for run in (SingleThreadRun, ParallelRun):
        monkeypatch.setattr(run, "__init__", search)
    database = graphdb.connect(threads=2)
    database.query("UNWIND $rows AS i CREATE (:N {i: i})", rows=list(range(COUNT)))
    database.query("CREATE (:M {i: 3})")
    edges = [[i, j] for i in range(COUNT) for j in range(COUNT) if i == 4 or j in (2 * i, i // 3)]
    database.query("UNWIND $edges AS e MATCH (n:N {i: e[0]}) MATCH (m:N {i: e[1]}) CREATE (n)-[:R]->(m)", edges=edges)
    return database


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("MATCH (n:N) RETURN count(*)", [(COUNT,)]),
        ("MATCH (n:N) WHERE n.i < 20 RETURN count(n)", [(20,)]),
        ("MATCH (n:N) WHERE n.i >= 20 RETURN n.i ORDER BY n.i", [(i,) for i in range(20, COUNT)]),
        ("MATCH (n:N) WHERE n.i < 5 RETURN DISTINCT n.i AS i ORDER BY i", [(i,) for i in range(5)]),
        ("MATCH (n) RETURN count(*)", [(COUNT + 1,)]),
        ("MATCH (n:N) WHERE n.i > 1000 RETURN n.i", []),
        ("MATCH (n:N) WITH n LIMIT 9 RETURN count(*)", [(9,)]),
        ("MATCH (n:N) WHERE n.i < 20 WITH count(*) AS c MATCH (m:M) RETURN c, m.i", [(20, 3)]),
        ("MATCH (n:N)-[:R]->(m) WHERE n.i = 3 RETURN m.i ORDER BY m.i", [(1,), (6,)]),
        ("MATCH (n)-[:R]->(m:N) WHERE m.i = 49 RETURN n.i ORDER BY n.i", [(4,)]),
        ("MATCH (n:N {i: 4})-[:R]->(m) RETURN n.i, m.i ORDER BY m.i", [(4, i) for i in range(COUNT)]),
        ("MATCH (n:N) WHERE EXISTS { MATCH (m:M) WHERE m.i = n.i } RETURN n.i", [(3,)]),
    ],
)
def test_rows(numbers: graphdb.Database, text: str, want: list[tuple[int, ...]]) -> None:
    assert numbers.query(text).fetchall() == want


@pytest.mark.parametrize("limit", [0, 1, 7, 8, 49, 50, 60])
def test_a_limit(numbers: graphdb.Database, limit: int) -> None:
    found = numbers.query(f"MATCH (n:N) RETURN n.i LIMIT {limit}").fetchall()
    assert len(found) == len({*found}) == min(limit, COUNT)


def test_profile_counts_them(numbers: graphdb.Database) -> None:
    lines = [line for (line,) in numbers.query("PROFILE MATCH (n:N) WHERE n.i < 20 RETURN n.i").fetchall()]
    (row,) = [line for line in lines if "scan 20 vertices" in line]
    estimated, found, _ = row.split()[-3:]
    assert (estimated, found) == ("20", "20")


def _numbers(block: Block) -> Any:
    """How many matches each row of a block stands for."""
    return np.ones(block.count, np.int64) if block.matches is None else block.matches


@pytest.mark.parametrize("seed", range(60))
def test_edges_are_listed_as_a_search_finds_them(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random graphs: all columns or some, from all vertices or some, in small blocks, hubs and shares of the work."""
    draw = np.random.default_rng(seed)
    vertices = int(draw.choice([5, 60, 3000]))
    count = int(draw.integers(1, 400))
    subjects, objects = draw.integers(0, vertices, count), (draw.random(count) ** 3 * vertices).astype(np.int64)
    graph = DataGraph(ArraySource(subjects, draw.integers(1, 3, count), objects, vertices))
    ends: list[Any] = [None, None]
    if seed % 3:
        ends[int(draw.integers(2))] = np.flatnonzero(draw.random(vertices) < 0.4)
    named = tuple(PatternVertex(name, candidates=ids) for name, ids in zip("ab", ends, strict=True))
    outputs = [("a", "b"), ("b",), ("b", "a"), ("a",), ("a", "e", "b")][seed % 5]
    edge = PatternEdge("e", 0, 1, (1,), True, 0)
    wanted = PatternGraph(named, (edge,), (Clause("DIFFERENT EDGES", (0, 1)),), outputs=outputs)  # type: ignore[arg-type]
    if "e" not in outputs:
        wanted = replace(wanted, duplicates=str(draw.choice(["keep", "count", "drop"])))  # type: ignore[arg-type]
    plan = make_plan(wanted, graph)
    listed = host.lists_edges(plan) or host.counts_edges(plan)
    assert listed or seed % 3, "all vertices and their neighbours"
    roots = len(plan.steps[0].scan)  # type: ignore[union-attr, arg-type]
    block_rows, used = int(draw.choice([1, 7, 1000])), []
    executor = HostExecutor(1, block_rows=block_rows)
    for name in ("EdgesRun", "DegreesRun"):
        run = getattr(host, name)
        monkeypatch.setattr(host, name, lambda *given, run=run: (used.append(True), run(*given))[1])

    def rows(control: Control) -> list[tuple[int, ...]]:
        blocks = list(executor.run(plan, control))
        assert all(block.count <= block_rows for block in blocks)
        columns = [[*(each.columns[name] for name in outputs), _numbers(each)] for each in blocks]
        return [row for each in columns for row in zip(*(column.tolist() for column in each), strict=True)]

    for share in (None, (0, roots // 2), (roots // 2, roots)):
        controls = [Control(share=share) for _ in range(2)]
        found = rows(controls[0])
        assert used == [True] * listed
        used.clear()
        with monkeypatch.context() as searching:
            for name in ("lists_edges", "counts_edges"):
                searching.setattr(host, name, lambda plan: False)
            assert rows(controls[1]) == found
        assert [*controls[0].rows] == [*controls[1].rows]
