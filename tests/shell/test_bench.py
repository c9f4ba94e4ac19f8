"""``graphdb bench``: the same questions to both, and answers that are compared."""

from __future__ import annotations

import io

import networkx
import pytest

import graphdb
from graphdb.shell import bench


def test_the_graph_has_no_loops_and_each_edge_once() -> None:
    ends = bench.graph(500, 3000)
    assert ends.shape == (3000, 2)
    assert len({tuple(edge) for edge in ends.tolist()}) == 3000
    assert (ends[:, 0] != ends[:, 1]).all()
    assert (bench.graph(500, 3000) == ends).all()


def test_both_answer_alike_and_so_does_networkx() -> None:
    output = io.StringIO()
    with graphdb.connect(threads=1) as db:
        assert bench.bench(db, output, seconds=0, size=(200, 1500)) == 0
        count = db.query("MATCH (a)-[:E]->(b)-[:E]->(c)-[:E]->(a) RETURN count(*)").scalar()
    lines = output.getvalue().splitlines()
    assert lines[0].startswith("200 vertices, 1,500 edges")
    assert [line.split("│")[0].strip() for line in lines[3:]] == [
        "load",
        *(question.name for question in bench.QUESTIONS),
    ]
    assert "differ" not in output.getvalue()
    graph = networkx.DiGraph(bench.graph(200, 1500).tolist())
    triangles = sum(1 for cycle in networkx.simple_cycles(graph, length_bound=3) if len(cycle) == 3)
    assert count == 3 * triangles


def test_answers_that_differ_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = bench.Question("wrong", "MATCH ()-[:E]->() RETURN count(*)", "SELECT count(*) + 1 FROM edges")
    monkeypatch.setattr(bench, "QUESTIONS", (wrong,))
    output = io.StringIO()
    with graphdb.connect(threads=1) as db:
        assert bench.bench(db, output, seconds=0, size=(50, 100)) == 1
    assert "answers differ" in output.getvalue()
