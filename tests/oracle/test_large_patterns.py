"""Large patterns over few vertices: stars with a leaf too many, chains, cycles, cliques, grids, bundles of edges.

What can be counted at once is, against brute force over small patterns and closed formulas over large ones; what cannot
stops when its time is over.  ``GRAPHDB_FUZZ`` multiplies the number of examples.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from math import perm
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, note, settings
from hypothesis import strategies as st

import graphdb
from graphdb.execute.host import HostExecutor
from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import Clause, PatternEdge, PatternGraph, PatternVertex
from graphdb.plan import symmetry
from graphdb.plan.passes import pigeonhole
from graphdb.plan.passes.pipeline import make_plan
from graphdb.storage.graph.data_graph import DataGraph
from tests.fuzz import scaled
from tests.oracle.brute import Data, matches
from tests.oracle.strategies import Case, cases, source_of
from tests.oracle.test_matching import check as check_rows
from tests.oracle.test_multigraph_counts import MOST, database
from tests.oracle.test_symmetry import symmetric_cases
from tests.stops import Stopwatch, answered

ONE = HostExecutor(threads=1)
QUICK = settings(max_examples=scaled(20), deadline=None, suppress_health_check=list(HealthCheck))


def clique(size: int) -> dict[tuple[int, int], int]:
    return dict.fromkeys(combinations(range(size), 2), 1)


def star(leaves: int, arrow: str = "-[:R]-") -> str:
    return ", ".join(f"(c){arrow}(l{i})" for i in range(leaves))


def chain(edges: int, arrow: str = "-[:R]-", closed: bool = False) -> str:
    return "".join(f"(v{i}){arrow}" for i in range(edges)) + ("(v0)" if closed else f"(v{edges})")


def grid(height: int, width: int) -> str:
    across = [f"(g{i}_{j})-[:R]-(g{i}_{j + 1})" for i in range(height) for j in range(width - 1)]
    return ", ".join(across + [f"(g{i}_{j})-[:R]-(g{i + 1}_{j})" for i in range(height - 1) for j in range(width)])


# --- one more than there are ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("leaves", [11, 12, 13, 40])
def test_stars_with_a_leaf_too_many(leaves: int) -> None:
    with database(clique(12), 12) as db:
        for mode in ("DIFFERENT EDGES", "DIFFERENT NODES"):
            query = f"MATCH {mode} {star(leaves)} RETURN"
            assert answered(db, f"{query} count(*)", within=5).scalar() == 12 * perm(11, leaves)
            if leaves > 11:
                assert answered(db, f"{query} c.k, l0.k", within=5).fetchall() == []
                assert answered(db, f"RETURN EXISTS {{ {query} 1 AS one }}", within=5).scalar() is False
    with database({**clique(12), (0, 1): 2}, 12) as db:  # two of them parallel
        query = f"MATCH {star(leaves)} RETURN count(*)"
        assert answered(db, query, within=5).scalar() == 10 * perm(11, leaves) + 2 * perm(12, leaves)
        if leaves > 11:
            assert answered(db, query.replace("MATCH", "MATCH DIFFERENT NODES"), within=5).scalar() == 0


@pytest.mark.parametrize("edges", [12, 40, 60])
@pytest.mark.parametrize("parallel", [1, 2])
def test_chains_with_an_edge_too_many(edges: int, parallel: int) -> None:
    with database({(0, 1): parallel, (1, 2): 1, (2, 0): 1}, 3) as db:
        for mode in ("DIFFERENT EDGES", "DIFFERENT NODES"):
            for arrow in ("-[:R]-", "-[:R]->", "--"):
                for closed in (False, True):
                    query = f"MATCH {mode} {chain(edges, arrow, closed)} RETURN"
                    assert answered(db, f"{query} count(*)", within=10).scalar() == 0
        assert answered(db, f"MATCH {chain(edges)} RETURN v0.k, v1.k", within=10).fetchall() == []


@QUICK
@given(cases())
def test_patterns_that_ask_for_too_much(case: Case) -> None:
    """Small ones are looked at, too: what is refused has no match."""
    with mock.patch.object(pigeonhole, "SMALLEST", 0):
        graph = DataGraph(case.source)
        event(f"refused: {pigeonhole.overfull(case.pattern, graph)}")
        check_rows(case, DataGraph(case.source))
        counted = replace(case.pattern, outputs=(), count_only=True)
        assert ONE.count(make_plan(counted, graph)) == sum(1 for _ in matches(case.pattern, case.data))


# --- leaves that are alike -----------------------------------------------------------------------------------------


@st.composite
def starred_cases(draw: st.DrawFn) -> Case:
    """A small core with leaves at its vertices, most of them alike, over a graph of two labels and self loops."""
    size = draw(st.integers(3, 5))
    triple = st.tuples(st.integers(0, size - 1), st.sampled_from([1, 1, 2]), st.integers(0, size - 1))
    data = Data(draw(st.sets(triple, min_size=3, max_size=14)), size, 0, None)
    core = draw(st.integers(1, 2))
    ends = [(0, 1)] * draw(st.integers(0, 1)) if core == 2 else []
    kinds = st.sampled_from([((1,), False), ((1,), False), ((1,), True), ((1, 2), False), (None, False), ((2,), True)])
    edges = [PatternEdge(f"e{i}", a, b, *draw(kinds), 0) for i, (a, b) in enumerate(ends)]
    candidates = np.array(sorted(draw(st.sets(st.integers(0, size - 1), min_size=1))), np.int64)
    vertices = [PatternVertex(f"v{i}") for i in range(core)]
    for _ in range(draw(st.integers(1, 2))):
        centre, kind, inward = draw(st.integers(0, core - 1)), draw(kinds), draw(st.booleans())
        filtered = draw(st.sampled_from([None, None, candidates]))
        for _ in range(draw(st.integers(1, 4)) if len(vertices) < 4 else 1):
            leaf = len(vertices)
            vertices.append(PatternVertex(f"v{leaf}", filtered))
            both = (leaf, centre) if inward else (centre, leaf)
            edges.append(PatternEdge(f"e{len(edges)}", *both, *kind, 0))
    touched = {end for edge in edges for end in (edge.source, edge.target)}
    modes = st.sampled_from([MatchMode.DIFFERENT_EDGES, MatchMode.DIFFERENT_EDGES, MatchMode.DIFFERENT_NODES])
    clause = Clause(draw(modes), tuple(sorted(touched)))
    return Case(source_of(data), data, PatternGraph(tuple(vertices), tuple(edges), (clause,)))


@settings(QUICK, max_examples=scaled(50))
@given(starred_cases())
def test_leaves_that_are_alike(case: Case) -> None:
    graph = DataGraph(case.source)
    found = list(matches(case.pattern, case.data))
    note(f"{sorted(case.data.triples)} {case.pattern}")
    plan = make_plan(replace(case.pattern, count_only=True), graph, counting="always")
    assert ONE.count(plan) == len(found)
    stars = plan.counting and any(fall > 1 for term in plan.counting.terms for fall in term.quotient.falls)
    event(f"leaves counted together: {bool(stars)}")
    by_vertex = replace(case.pattern, outputs=("v0",), duplicates="count")
    counts: dict[int, int] = {}
    for block in ONE.run(make_plan(by_vertex, graph, counting="always")):
        assert block.matches is not None
        for vertex, count in zip(block.columns["v0"].tolist(), block.matches.tolist(), strict=True):
            counts[vertex] = counts.get(vertex, 0) + count
    assert counts == {v: sum(row["v0"] == v for row in found) for v in {row["v0"] for row in found}}


@settings(QUICK, max_examples=scaled(12))
@given(
    st.dictionaries(st.tuples(st.integers(0, 6), st.integers(0, 6)), st.integers(1, 5), min_size=3, max_size=16),
    st.sampled_from([2, 3, 5, 9, 14, 25, 40]),
    st.sampled_from(["-[:R]-", "-[:R]->", "<-[:R]-"]),
)
def test_stars_over_multigraphs(edges: dict[tuple[int, int], int], leaves: int, arrow: str) -> None:
    """Each leaf takes another of the edges at the centre, parallel ones and loops among them."""

    def degree(x: int) -> int:
        out = sum(count for (a, _), count in edges.items() if a == x)
        into = sum(count for (_, b), count in edges.items() if b == x)
        both = out + into - edges.get((x, x), 0)
        return out if arrow.endswith(">") else into if arrow.startswith("<") else both

    want = {x: perm(degree(x), leaves) for x in range(7) if degree(x) >= leaves}
    note(f"{edges} {star(leaves, arrow)} {want}")
    with database(edges, 7) as db:
        assert answered(db, f"MATCH {star(leaves, arrow)} RETURN count(*)", within=10).scalar() == sum(want.values())
        grouped = f"MATCH {star(leaves, arrow)} RETURN c.k, count(*)"
        if max(want.values(), default=0) <= MOST:
            assert dict(answered(db, grouped, within=10).fetchall()) == want
        else:
            with pytest.raises(graphdb.GraphDBError, match="a number is out of range"):
                answered(db, grouped, within=10)


@QUICK
@given(symmetric_cases())
def test_twins_of_large_patterns(case: Case) -> None:
    """Small patterns as if they were large: only exchanges of twins are known of their symmetry."""
    with mock.patch.object(symmetry, "LARGEST", 0):
        check_rows(case, DataGraph(case.source))
        counted = replace(case.pattern, outputs=(), count_only=True)
        plan = make_plan(counted, DataGraph(case.source), counting="never")
        event(f"automorphisms: {plan.automorphisms}")
        assert ONE.count(plan) == sum(1 for _ in matches(case.pattern, case.data))


def test_leaves_of_large_stars_are_found_once() -> None:
    """Thirteen leaves of a vertex with fourteen neighbours: 14! matches by a search, which finds 14 of them."""
    with database({(0, i): 1 for i in range(1, 15)}, 15) as db:
        query = f"MATCH DIFFERENT NODES {star(13, '-[:R]->')} WHERE c.k = 0 RETURN count(*)"
        assert answered(db, query, within=30).scalar() == perm(14, 13)


# --- whatever it is, it stops --------------------------------------------------------------------------------------

SHAPES = {
    **{f"chain of {n}": chain(n) for n in (12, 40, 60)},
    **{f"directed chain of {n}": chain(n, "-[:R]->") for n in (40, 60)},
    **{f"cycle of {n}": chain(n, closed=True) for n in (12, 40, 60)},
    **{f"star of {n}": star(n) for n in (11, 20, 40)},
    **{f"clique of {n}": ", ".join(f"(v{a})-[:R]-(v{b})" for a, b in combinations(range(n), 2)) for n in (6, 9, 12)},
    **{f"grid of {a} by {b}": grid(a, b) for a, b in ((3, 3), (4, 5), (5, 6))},
    **{f"bundle of {n}": ", ".join("(a)-[:R]-(b)" for _ in range(n)) for n in (16, 60)},
}


@pytest.fixture(scope="module")
def few() -> Iterator[dict[str, graphdb.Database]]:
    made = {
        "triangle": database({(0, 1): 1, (1, 2): 1, (2, 0): 1}, 3),
        "parallel": database({(0, 1): 2, (1, 2): 1, (2, 0): 1}, 3),
        "clique": database({**clique(12), (0, 1): 2}, 12),
    }
    for db in made.values():  # what is compiled is, before the clock is looked at
        for mode in ("DIFFERENT EDGES", "REPEATABLE ELEMENTS", "DIFFERENT NODES", "INDUCED"):
            for pattern in (chain(4), chain(4, closed=True), star(9), SHAPES["bundle of 16"]):
                for _ in range(10):
                    watch = Stopwatch()
                    with contextlib.suppress(graphdb.QueryTimeout):
                        db.query(f"MATCH {mode} {pattern} RETURN count(*)", timeout=0.3)
                    if watch.seconds() < 0.6:  # nothing was compiled: that is not stopped
                        break
    yield made
    for db in made.values():
        db.close()


@pytest.mark.parametrize("where", ["triangle", "parallel", "clique"])
def test_large_patterns_are_planned_and_stop_in_time(few: dict[str, graphdb.Database], where: str) -> None:
    db = few[where]
    for name, pattern in SHAPES.items():
        for mode in ("DIFFERENT EDGES", "REPEATABLE ELEMENTS", "DIFFERENT NODES", "INDUCED"):
            watch = Stopwatch()
            with contextlib.suppress(graphdb.QueryTimeout):
                db.query(f"MATCH {mode} {pattern} RETURN count(*)", timeout=0.05)
            late = watch.seconds()
            assert late < 2.0, f"{name} {mode} over {where}: {late:.1f} s"  # half a second, and a busy machine
    assert db.query("MATCH (a)-[:R]->(b) RETURN count(*)").scalar() > 0


@pytest.mark.parametrize("size", [3, 4])
@pytest.mark.parametrize("parallel", [1, 3])
def test_long_cycles_are_counted(size: int, parallel: int) -> None:
    """Closed walks in a complete graph: the trace of a power of its matrix, whose eigenvalues are known."""
    with database(dict.fromkeys(combinations(range(size), 2), parallel), size) as db:
        for length in (13, 18, 24, 40, 60):
            text = f"MATCH REPEATABLE ELEMENTS {chain(length, closed=True)} RETURN count(*)"
            walks = (size - 1) ** length + (size - 1) * (-1) ** length
            assert answered(db, text, within=20).scalar() == walks * parallel**length
        if parallel == 1:
            ladder = f"MATCH REPEATABLE ELEMENTS {grid(2, 8)} RETURN count(*)"
            colourings = size * (size - 1) * (size * size - 3 * size + 3) ** 7  # proper ones: homomorphisms to a clique
            assert answered(db, ladder, within=20).scalar() == colourings
