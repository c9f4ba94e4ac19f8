"""Paths of each mode and selector against all walks, one by one; WITH in SQL against Python."""

from __future__ import annotations

from collections import Counter, defaultdict

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import graphdb
from tests.fuzz import scaled
from tests.oracle.routes import in_python

Edges = list[tuple[int, int]]
Walk = tuple[tuple[int, ...], tuple[int, ...]]

edge_lists = st.integers(1, 5).flatmap(
    lambda n: st.lists(st.tuples(st.integers(0, n), st.integers(0, n)), min_size=1, max_size=7)
)
SOME = settings(max_examples=scaled(12), deadline=None, suppress_health_check=list(HealthCheck))


def created(edges: Edges) -> graphdb.Database:
    database = graphdb.connect(threads=1)
    database.query("UNWIND range(0, 5) AS i CREATE (:N {id: i, half: i / 2})")
    for k, (a, b) in enumerate(edges):
        database.query("MATCH (a:N {id: $a}), (b:N {id: $b}) CREATE (a)-[:E {k: $k}]->(b)", a=a, b=b, k=k)
    return database


def walks(edges: Edges, mode: str, directed: bool, low: int, high: int) -> list[Walk]:
    """All paths of a mode."""
    found: list[Walk] = []

    def go_on(vertices: tuple[int, ...], passed: tuple[int, ...]) -> None:
        if low <= len(passed):
            found.append((vertices, passed))
        closed = mode == "SIMPLE" and passed and vertices[0] == vertices[-1]
        if len(passed) == high or closed:
            return
        for k, (a, b) in enumerate(edges):
            if mode != "WALK" and k in passed:
                continue
            ends = {b} if a == vertices[-1] else set()
            ends |= {a} if b == vertices[-1] and not directed else set()
            for end in ends:
                if mode == "ACYCLIC" and end in vertices:
                    continue
                if mode == "SIMPLE" and end in vertices[1:]:
                    continue
                go_on((*vertices, end), (*passed, k))

    for start in range(6):
        go_on((start,), ())
    return found


@SOME
@given(edge_lists, st.sampled_from(["WALK", "TRAIL", "SIMPLE", "ACYCLIC"]), st.booleans(), st.integers(0, 1))
def test_shortest_paths(edges: Edges, mode: str, directed: bool, low: int) -> None:
    between: defaultdict[tuple[int, int], list[Walk]] = defaultdict(list)
    for walk in walks(edges, mode, directed, low, 5):
        between[walk[0][0], walk[0][-1]].append(walk)
    arrow = "->" if directed else "-"
    returned = "RETURN [v IN nodes(p) | v.id], [e IN relationships(p) | e.k]"
    with created(edges) as database:
        for selector in ("ANY SHORTEST", "ALL SHORTEST"):
            for where in ("", "WHERE x.id = 0 AND y.id = 1 "):
                text = f"MATCH p = {selector} {mode} (x:N)-[:E]{arrow}{{{low},5}}(y:N) {where}{returned}"
                found: defaultdict[tuple[int, int], list[Walk]] = defaultdict(list)
                for vertices, passed in database.query(text):
                    found[vertices[0], vertices[-1]].append((tuple(vertices), tuple(passed)))
                for ends, all_walks in between.items():
                    if where and ends != (0, 1):
                        continue
                    least = min(len(passed) for _, passed in all_walks)
                    best = [walk for walk in all_walks if len(walk[1]) == least]
                    mine = found.pop(ends, [])
                    if selector == "ALL SHORTEST":
                        assert Counter(mine) == Counter(best)
                    else:
                        assert len(mine) == 1
                        assert mine[0] in best
                assert not found


CHAINS = """MATCH (a)-[:E]->(b) WITH a, count(*) AS c WHERE c > 1 RETURN a.id, c
MATCH (a)-[:E]-(b) WITH DISTINCT a, b.half AS h RETURN h, count(a) AS n
MATCH (a:N) WITH a.half AS h, a.id AS i WHERE i > 1 WITH h, collect(i) AS l RETURN h, size(l)
MATCH (a)-[:E]->(b)-[:E]->(c) WITH count(*) AS n RETURN n * 2 AS twice
MATCH (a)-[:E]->(b) WITH * WHERE a.id < b.id RETURN a.id, b.id
MATCH (a)-[r:E]->(b) WITH a AS x, b WITH x, max(b.id) AS m RETURN x.id + m AS s""".splitlines()


@SOME
@given(st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=9), st.sampled_from(CHAINS))
def test_with_in_sql_is_what_python_computes(edges: set[tuple[int, int]], text: str) -> None:
    with graphdb.connect(threads=1) as database:
        database.query("UNWIND range(0, 5) AS i CREATE (:N {id: i, half: i / 2})")
        database.query(
            "UNWIND $edges AS e MATCH (a:N {id: e[0]}), (b:N {id: e[1]}) CREATE (a)-[:E]->(b)",
            edges=[list(edge) for edge in edges],
        )
        assert Counter(database.query(text).fetchall()) == Counter(in_python(database, text))
