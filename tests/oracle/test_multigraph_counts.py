"""Counts over parallel edges are exact whatever their size, or an error: never what is left of them in 64 bits.

Small multigraphs and large patterns; the oracle multiplies and adds Python's integers along the pattern's tree.
``GRAPHDB_FUZZ`` multiplies the number of examples.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, event, given, note, settings
from hypothesis import strategies as st

import graphdb
from graphdb.common.errors import ExecutionError
from graphdb.execute.counting.crt import as_integers, products, sums, times, total
from graphdb.relational.edges import assignment
from tests.fuzz import scaled
from tests.oracle.test_edges import Graph, _graph, brute, questions
from tests.stops import answered

MOST = (1 << 63) - 1


def database(edges: dict[tuple[int, int], int], vertices: int) -> graphdb.Database:
    """A graph of so many vertices ``{k: number}``, and so many parallel edges R between two."""
    found = graphdb.connect(device="cpu", threads=1)
    nodes = [f"(v{i} {{k: {i}}})" for i in range(vertices)]
    links = [f"(v{a})-[:R]->(v{b})" for (a, b), count in sorted(edges.items()) for _ in range(count)]
    found.query("CREATE " + ", ".join(nodes + links))
    return found


@pytest.fixture(scope="module")
def parallel() -> Iterator[graphdb.Database]:
    made = database({(0, 1): 4}, 2)
    yield made
    made.close()


def bundle(count: int) -> str:
    return ", ".join("(a)-[:R]->(b)" for _ in range(count))


@pytest.mark.parametrize("edges", [1, 4, 31, 32, 33, 40, 70])
def test_a_bundle_of_edges_over_parallel_ones(parallel: graphdb.Database, edges: int) -> None:
    query = f"MATCH REPEATABLE ELEMENTS {bundle(edges)} RETURN"
    assert parallel.query(f"{query} count(*)").scalar() == 4**edges
    assert parallel.query(f"{query} count(*) AS n, count(a) AS m").fetchall() == [(4**edges, 4**edges)]
    assert parallel.query(f"RETURN EXISTS {{ {query} 1 AS one }}").scalar() is True
    for grouped in ("a.k, count(*)", "a.k, b.k, count(*)", "b.k, count(b)"):
        if 4**edges <= MOST:
            assert parallel.query(f"{query} {grouped}").fetchall()[0][-1] == 4**edges
        else:
            with pytest.raises(ExecutionError, match="a number is out of range"):
                parallel.query(f"{query} {grouped}")
    if 4**edges > MOST:
        for text in (
            f"RETURN COUNT {{ {query} 1 AS one }}",
            f"{query.replace('RETURN', 'WITH')} count(*) AS n RETURN n + 1",
        ):
            with pytest.raises(ExecutionError, match="a number is out of range"):
                parallel.query(text)
    assert parallel.query("MATCH (a)-[:R]->(b) RETURN count(*)").scalar() == 4  # and the database goes on


@pytest.mark.parametrize("edges", [1, 3, 4, 5, 20])
def test_a_bundle_of_edges_that_differ(parallel: graphdb.Database, edges: int) -> None:
    for mode in ("DIFFERENT EDGES", "DIFFERENT NODES"):
        query = f"MATCH {mode} {bundle(edges)} RETURN count(*)"
        assert parallel.query(query).scalar() == math.perm(4, edges)


def test_sums_over_parallel_edges_stop_and_keep_to_their_memory(parallel: graphdb.Database) -> None:
    """4**31 rows: nobody makes them all."""
    with pytest.raises(graphdb.QueryTimeout):
        parallel.query(f"MATCH REPEATABLE ELEMENTS {bundle(31)} RETURN sum(a.k)", timeout=0.2)


@dataclass(frozen=True)
class Tree:
    """A pattern: vertex i hangs on ``parents[i]`` (the first on none) by so many edges, of a direction."""

    parents: tuple[int, ...]
    edges: tuple[int, ...]
    directions: tuple[str, ...]

    def text(self) -> str:
        arrows = {"out": "-[:R]->", "in": "<-[:R]-", "both": "-[:R]-"}
        return (
            ", ".join(
                f"(v{parent}){arrows[direction]}(v{i})"
                for i, (parent, count, direction) in enumerate(
                    zip(self.parents, self.edges, self.directions, strict=True)
                )
                for _ in range(count)
            )
            .replace("(v-1)-[:R]-", "")
            .replace("(v-1)-[:R]->", "")
        )

    def counts(self, edges: dict[tuple[int, int], int], vertices: int) -> list[int]:
        """The homomorphisms for each data vertex that ``v0`` may be."""

        def ways(a: int, b: int, direction: str) -> int:
            out, back = edges.get((a, b), 0), edges.get((b, a), 0)
            return {"out": out, "in": back, "both": out if a == b else out + back}[direction]

        values = [[1] * vertices for _ in self.parents]
        for i in range(len(self.parents) - 1, 0, -1):
            parent, count, direction = self.parents[i], self.edges[i], self.directions[i]
            for x in range(vertices):
                reached = (ways(x, y, direction) ** count * values[i][y] for y in range(vertices))
                values[parent][x] *= sum(reached)
        return values[0]


@st.composite
def multigraphs(draw: st.DrawFn) -> tuple[dict[tuple[int, int], int], int]:
    vertices = draw(st.integers(2, 5))
    pair = st.tuples(st.integers(0, vertices - 1), st.integers(0, vertices - 1))
    edges = draw(st.dictionaries(pair, st.integers(1, 4), min_size=1, max_size=7))
    return edges | {(0, 1): 3}, vertices


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    count = draw(st.sampled_from([2, 4, 8, 14, 30, 45]))
    chain = draw(st.booleans())
    parents = [-1] + [i - 1 if chain else draw(st.integers(0, i - 1)) for i in range(1, count)]
    edges = [0] + [draw(st.sampled_from([1, 1, 1, 2, 9 if count < 14 else 2])) for _ in range(1, count)]
    return Tree(
        tuple(parents), tuple(edges), ("both", *(draw(st.sampled_from(["out", "in", "both"])) for _ in range(1, count)))
    )


@settings(
    max_examples=scaled(20),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    phases=[Phase.explicit, Phase.generate],
)
@given(multigraphs(), trees())
def test_trees_over_multigraphs(multigraph: tuple[dict[tuple[int, int], int], int], tree: Tree) -> None:
    edges, vertices = multigraph
    counts = tree.counts(edges, vertices)
    text = f"MATCH REPEATABLE ELEMENTS {tree.text()} RETURN"
    note(f"{edges}\n{text} {counts}")
    event(f"{len(bin(max(counts))) // 16 * 16} bits")
    with database(edges, vertices) as db:
        assert answered(db, f"{text} count(*)", within=5).scalar() == sum(counts)
        want = {x: count for x, count in enumerate(counts) if count}
        if max(counts) <= MOST:
            assert dict(answered(db, f"{text} v0.k, count(*)", within=5).fetchall()) == want
        else:
            with pytest.raises(ExecutionError, match="a number is out of range"):
                answered(db, f"{text} v0.k, count(*)", within=5)


@settings(deadline=None)
@given(
    st.lists(st.integers(0, MOST), max_size=5),
    st.lists(st.integers(0, MOST), min_size=5, max_size=5),
    st.integers(0, 1 << 70),
)
def test_arrays_of_numbers_are_exact(left: list[int], right: list[int], factor: int) -> None:
    right = right[: len(left)]
    a, b = np.array(left, np.int64), np.array(right, np.int64)
    assert products(a, b).tolist() == [x * y for x, y in zip(left, right, strict=True)]
    assert sums(a, b).tolist() == [x + y for x, y in zip(left, right, strict=True)]
    assert times(a, factor).tolist() == [x * factor for x in left]
    assert total(a) == sum(left)
    assert total(products(a, b)) == sum(x * y for x, y in zip(left, right, strict=True))
    if max((x + y for x, y in zip(left, right, strict=True)), default=0) > MOST:
        with pytest.raises(ExecutionError, match="out of range"):
            as_integers(sums(a, b))
    else:
        assert as_integers(sums(a, b)).dtype == np.int64


# --- subqueries whose conditions ask for an edge's properties ------------------------------------------------------


@pytest.fixture(scope="module")
def graphs() -> Iterator[list[Graph]]:
    made = [_graph(seed) for seed in range(4)]
    yield made
    for graph in made:
        graph.database.close()


def test_exists_over_parallel_edges_with_a_condition_on_another() -> None:
    with graphdb.connect(device="cpu") as db:
        db.query("CREATE (a)-[:S {w: 2}]->(b)-[:R {w: 1}]->(c), (b)-[:R {w: 2}]->(c)")
        pattern = "(a)-[r0:R]-(b), (a)-[r1:S]-(c) WHERE r1.w"
        assert db.query(f"RETURN EXISTS {{ MATCH {pattern} >= 0 RETURN 1 AS one }}").scalar() is True
        assert db.query(f"RETURN EXISTS {{ MATCH {pattern} > 2 RETURN 1 AS one }}").scalar() is False
        assert db.query(f"RETURN COUNT {{ MATCH {pattern} >= 0 RETURN 1 AS one }}").scalar() == 2


@settings(max_examples=scaled(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    at=st.integers(0, 3),
    question=questions(),
    around=st.sampled_from(["", "MATCH (a) ", "MATCH (a:N) "]),
    block=st.sampled_from([1, 5, 1 << 18]),
)
def test_subqueries_with_conditions_on_edges(graphs: list[Graph], at: int, question, around: str, block: int) -> None:
    query, links, mode, holds, _, _ = question
    graph = graphs[at]
    rows = [row for row in brute(graph, links, mode) if holds(row)]
    inner = f"{query[: query.index(' RETURN ')]} RETURN 1 AS one"
    ids = [i for i, label in enumerate(graph.labels) if ":N" not in around or label == "N"]
    key = "a.id, " if around else ""
    counts = [sum(row["a"] == i for row in rows) for i in ids] if around else [len(rows)]
    graph.database._state.plans.clear()
    with mock.patch.object(assignment, "_BLOCK", block):
        for kind, value in (("COUNT", lambda count: count), ("EXISTS", lambda count: count > 0)):
            text = f"{around}RETURN {key}{kind} {{ {inner} }} AS found"
            note(f"{text}\nlabels {graph.labels}\nedges {graph.edges}")
            want = [(*((i,) if around else ()), value(count)) for i, count in zip(ids, counts, strict=False)]
            assert sorted(graph.database.query(text).fetchall()) == sorted(want)
