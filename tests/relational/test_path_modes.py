"""Path modes and what they forbid, by hand where a reading had to be chosen and by brute force elsewhere."""

from __future__ import annotations

from collections import Counter

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

import graphdb
from tests.fuzz import scaled

Edges = list[tuple[int, int]]


def _database(edges: Edges) -> graphdb.Database:
    db = graphdb.connect(threads=1)
    vertices = sorted({end for edge in edges for end in edge})
    made = [f"(v{v} {{id: {v}}})" for v in vertices]
    made += [f"(v{a})-[:E {{id: {i}}}]->(v{b})" for i, (a, b) in enumerate(edges)]
    db.query(f"CREATE {', '.join(made)}")
    return db


@pytest.mark.parametrize("match_mode", ["", "REPEATABLE ELEMENTS"])
def test_there_and_back_is_simple_by_another_edge_only_unless_elements_repeat(match_mode: str) -> None:
    """u-v-u: its first vertex is its last and v is met once; the edge that was taken is taken again where it may be."""
    again = bool(match_mode)
    text = f"MATCH {match_mode} p = {{}} (u {{{{id: 0}}}})-[:E]-{{{{2}}}}(w) WHERE u = w RETURN count(*)"
    with _database([(0, 1)]) as db:
        assert {mode: db.query(text.format(mode)).scalar() for mode in ("SIMPLE", "TRAIL", "ACYCLIC", "WALK")} == {
            "SIMPLE": 1 if again else 0,
            "TRAIL": 0,
            "ACYCLIC": 0,
            "WALK": 1,
        }
    with _database([(0, 1), (1, 0)]) as db:
        assert {mode: db.query(text.format(mode)).scalar() for mode in ("SIMPLE", "TRAIL", "ACYCLIC", "WALK")} == {
            "SIMPLE": 4 if again else 2,
            "TRAIL": 2,
            "ACYCLIC": 0,
            "WALK": 4,
        }


def _admits(mode: str, vertices: list[int], edges: list[int]) -> bool:
    inner = vertices[1:] if vertices[0] == vertices[-1] and edges else vertices
    return {
        "WALK": True,
        "TRAIL": len(set(edges)) == len(edges),
        "SIMPLE": len(set(edges)) == len(edges) and len(set(inner)) == len(inner),
        "ACYCLIC": len(set(vertices)) == len(vertices),
    }[mode]


@settings(max_examples=scaled(12), deadline=None)
@given(
    edges=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=5),
    undirected=st.booleans(),
)
def test_modes_against_all_walks(edges: Edges, undirected: bool) -> None:
    walks = [([v], []) for v in sorted({end for edge in edges for end in edge})]
    found: list[tuple[list[int], list[int]]] = []
    for _ in range(3):
        longer = []
        for vertices, taken in walks:
            for i, (a, b) in enumerate(edges):
                ends = {(a, b), (b, a)} if undirected else {(a, b)}
                longer += [([*vertices, to], [*taken, i]) for start, to in ends if start == vertices[-1]]
        walks = longer
        found += walks
    arrow = "-[:E]-{1,3}" if undirected else "-[:E]->{1,3}"
    with _database(edges) as db:
        for mode in ("WALK", "TRAIL", "SIMPLE", "ACYCLIC"):
            text = (
                f"MATCH p = {mode} (){arrow}() RETURN [v IN nodes(p) | v.id] AS v, [e IN relationships(p) | e.id] AS e"
            )
            got = Counter(repr(row) for row in db.query(text).fetchall())
            assert got == Counter(repr(walk) for walk in found if _admits(mode, *walk)), mode


AHEAD = [
    "(x {n: y.m})-[:K]->(y)",
    "(x)-[:K]->(y {n: z.n})-[:K]->(z)",
    "(x)-[:K]->(y {m: z.n})-[:K]->(z:P {m: 2})",
    "(x)-[k:K WHERE z.n = x.n]->(y)-[:K]->(z)",
]


@pytest.mark.parametrize("pattern", AHEAD)
def test_a_condition_may_look_ahead_on_its_path(pattern: str) -> None:
    """A path with a mode is searched step by step; what a condition says of a later vertex waits for it."""
    with graphdb.connect(threads=1) as db:
        db.query(
            "CREATE (a:P {n: 1, m: 2}), (b:P {n: 2, m: 1}), (c:P {n: 1, m: 3}), "
            "(a)-[:K]->(b), (b)-[:K]->(c), (c)-[:K]->(a), (b)-[:K]->(a)"
        )
        searched, planned = (db.query(f"MATCH {mode} {pattern} RETURN x.m, y.m").fetchall() for mode in ("TRAIL", ""))
        assert planned
        assert sorted(searched) == sorted(planned)
        ahead, between = "((x WHERE x.n <= y.n)-[:K]->(y)){2}", "((x)-[:K]->(y) WHERE x.n <= y.n){2}"
        found, same = (db.query(f"MATCH {path} RETURN [v IN x | v.m]").fetchall() for path in (ahead, between))
        assert found
        assert sorted(found) == sorted(same)
        with pytest.raises(graphdb.NotSupportedError, match="what comes later"):
            db.query("MATCH ((x WHERE x.n < z.n)-[:K]->()-[:K]->(z)){2} RETURN x")


def test_what_is_around_a_path_says_where_it_starts_or_ends() -> None:
    with graphdb.connect(threads=1) as db:
        db.query("UNWIND range(0, 5) AS i CREATE (:N {id: i})")
        db.query("MATCH (a:N), (b:N) WHERE b.id = a.id + 1 CREATE (a)-[:E]->(b)")
        for text, expected in [
            ("MATCH (a)-[:E]->(b) MATCH (b)-[:E*1..2]->(c) RETURN count(DISTINCT c)", 4),
            ("MATCH (a)-[:E]->(b) MATCH (c)-[:E*]->(a) RETURN count(DISTINCT c)", 4),
            ("MATCH (a)-[:E]->(b), (c)-[:E]->(d) MATCH p = ANY SHORTEST (b)-[:E]->+(c) RETURN count(p)", 6),
        ]:
            assert db.query(text).scalar() == expected, text
