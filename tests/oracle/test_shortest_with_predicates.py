"""``shortestPath`` and ``allShortestPaths`` with conditions on all of their edges or vertices, against all trails."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import graphdb
from tests.fuzz import scaled
from tests.oracle.test_cheapest_paths import COUNT, Edge, Trail, created, edge_lists, trails

SOME = settings(max_examples=scaled(16), deadline=None, suppress_health_check=list(HealthCheck))

CONDITIONS: dict[str, tuple[Callable[[float], bool], Callable[[int], bool]]] = {
    "all(x IN relationships(p) WHERE x.w < 3)": (lambda w: w < 3, lambda v: True),
    "none(x IN e WHERE x.w = 2 OR x.w = 0)": (lambda w: w not in (0, 2), lambda v: True),
    "all(v IN nodes(p) WHERE v.id <> 2)": (lambda w: True, lambda v: v != 2),
    "none(v IN nodes(p) WHERE v.id = $gone)": (lambda w: True, lambda v: v != 3),
    "all(v IN nodes(p) WHERE v.id < 4) AND all(x IN e WHERE x.w > 0)": (lambda w: w > 0, lambda v: v < 4),
}


@SOME
@given(edge_lists, st.sampled_from(["->", "<-", "-"]), st.booleans(), st.sampled_from([*CONDITIONS]))
def test_predicates_restrict_the_search(edges: list[Edge], way: str, every: bool, condition: str) -> None:
    of_edge, of_vertex = CONDITIONS[condition]
    best: dict[tuple[int, int], tuple[int, Counter[Trail]]] = {}
    for (walk, taken), _ in trails(edges, way, 1):
        if walk[0] == walk[-1] or not all(of_edge(edges[k][2]) for k in taken) or not all(map(of_vertex, walk)):
            continue
        least, found = best.get((walk[0], walk[-1]), (len(edges) + 1, Counter()))
        if len(taken) < least:
            least, found = len(taken), Counter()
        if len(taken) == least:
            found[walk, taken] += 1
        best[walk[0], walk[-1]] = least, found
    edge = {"->": "-[e:E*]->", "<-": "<-[e:E*]-", "-": "-[e:E*]-"}[way]
    function = "allShortestPaths" if every else "shortestPath"
    text = f"""MATCH p = {function}((s:N){edge}(t:N)) WHERE s <> t AND {condition}
               RETURN [v IN nodes(p) | v.id], [x IN e | x.k]"""
    with created(edges) as database:
        mine: dict[tuple[int, int], Counter[Trail]] = {}
        for walk, taken in database.query(text, **({"gone": 3} if "$gone" in condition else {})):
            mine.setdefault((walk[0], walk[-1]), Counter())[tuple(walk), tuple(taken)] += 1
        assert mine.keys() == best.keys()
        for ends, found in mine.items():
            assert found == best[ends][1] if every else (found.total() == 1 and found <= best[ends][1]), ends


def test_selectors_of_gql_select_first() -> None:
    edges: list[Edge] = [(0, 1, 5), (0, 2, 1), (2, 1, 1)]
    with created(edges, COUNT) as database:
        said = "(s:N {id: 0})-[e:E]->+(t:N {id: 1})"
        where = "WHERE all(x IN e WHERE x.w < 5) RETURN length(p)"
        assert database.query(f"MATCH p = ANY SHORTEST {said} {where}").fetchall() == []
        legacy = "shortestPath((s:N {id: 0})-[e:E*]->(t:N {id: 1}))"
        assert database.query(f"MATCH p = {legacy} {where}").fetchall() == [(2,)]
        assert database.query(f"MATCH p = {legacy} WHERE length(p) > 1 RETURN length(p)").fetchall() == []
        optional = f"MATCH (s:N {{id: 0}}), (t:N {{id: 1}}) OPTIONAL MATCH p = shortestPath((s)-[e:E*]->(t)) {where}"
        assert database.query(optional).fetchall() == [(2,)]
        counted = f"RETURN COUNT {{ MATCH p = {legacy} WHERE none(n IN nodes(p) WHERE n.id = 2) }} AS n"
        assert database.query(counted).fetchall() == [(1,)]


def test_predicates_and_costs() -> None:
    edges: list[Edge] = [(0, 1, 5), (0, 2, 1), (2, 1, 1), (0, 3, 2), (3, 1, 2)]
    with graphdb.connect() as database:
        database.query("UNWIND range(0, 3) AS i CREATE (:N {id: i})")
        for a, b, w in edges:
            database.query("MATCH (a:N {id: $a}), (b:N {id: $b}) CREATE (a)-[:E {w: $w}]->(b)", a=a, b=b, w=w)
        text = """MATCH p = shortestPath((s:N {id: 0})-[e:E*]->(t:N {id: 1})) COST BY e.w AS total
                  WHERE none(n IN nodes(p) WHERE n.id = 2) RETURN [n IN nodes(p) | n.id], total"""
        assert database.query(text).fetchall() == [([0, 3, 1], 4)]


@SOME
@given(edge_lists, st.sampled_from(["->", "-"]), st.sampled_from(["*1..3", "*", "*0..4"]), st.booleans())
def test_the_least_length_is_that_of_a_shortest_path(edges: list[Edge], way: str, repeat: str, looks: bool) -> None:
    """Where a clause asks for ``min(length(p))`` alone, one shortest path stands for all; not where it asks for more."""
    low, high = {"*1..3": (1, 3), "*": (1, 99), "*0..4": (0, 4)}[repeat]
    lengths: dict[tuple[int, int], list[int]] = {}
    for (walk, taken), _ in trails(edges, way, low):
        if len(taken) <= high and walk[0] != 4:
            lengths.setdefault((walk[0], walk[-1]), []).append(len(taken))
    with created(edges) as database:
        arrow = f"-[:E{repeat}]{way}"
        text = f"MATCH p = (s:N){arrow}(t:N) WHERE s.id <> 4 WITH s, t, min(length(p)) AS n RETURN s.id, t.id, n"
        assert {(s, t): n for s, t, n in database.query(text)} == {ends: min(each) for ends, each in lengths.items()}
        longest = "max(length(p))" if looks else "collect(DISTINCT length(p))"
        text = f"MATCH p = (s:N){arrow}(t:N) WHERE s.id <> 4 RETURN s.id, t.id, min(length(p)), {longest}"
        rows = {(s, t): (n, more if looks else sorted(more)) for s, t, n, more in database.query(text)}
        most = {ends: (min(each), max(each) if looks else sorted({*each})) for ends, each in lengths.items()}
        assert rows == most
        text = f"MATCH p = (s:N){arrow}(t:N) WHERE s.id <> 4 AND length(p) > 1 WITH s, t, min(length(p)) AS n RETURN s.id, t.id, n"
        longer = {ends: min(n for n in each if n > 1) for ends, each in lengths.items() if max(each) > 1}
        assert {(s, t): n for s, t, n in database.query(text)} == longer


@pytest.mark.parametrize("direction", ["->", "<-", "-"])
def test_lengths_along_parallel_edges(direction: str) -> None:
    """How long the shortest path is does not depend on parallel edges, but where it may return along another."""
    dice = random.Random(5)
    edges = [(dice.randrange(9), dice.randrange(9)) for _ in range(11)]
    edges += edges[:4]
    with graphdb.connect(device="cpu", threads=1) as db:
        db.query("UNWIND range(0, 8) AS i CREATE (:V {i: i})")
        db.query("UNWIND $edges AS e MATCH (a:V {i: e[0]}), (b:V {i: e[1]}) CREATE (a)-[:K]->(b)", edges=edges)
        steps = [(a, b, n) for n, (a, b) in enumerate(edges)] if direction != "<-" else []
        steps += [(b, a, n) for n, (a, b) in enumerate(edges) if direction != "->" and (a != b or direction == "<-")]
        expected = {}
        for start in range(9):
            trails = [(start, frozenset[int]())]
            for length in range(1, 6):
                trails = [(b, used | {n}) for at, used in trails for a, b, n in steps if a == at and n not in used]
                for end, _ in trails:
                    expected.setdefault((start, end), length)
        left, right = ("<-", "-") if direction == "<-" else ("-", direction)
        for text in (
            f"MATCH p = ANY SHORTEST (a:V){left}[:K*..5]{right}(b:V) RETURN a.i, b.i, length(p)",
            f"MATCH p = ALL SHORTEST (a:V){left}[:K*..5]{right}(b:V) RETURN DISTINCT a.i, b.i, length(p)",
            f"MATCH (a:V), (b:V) MATCH p = ANY SHORTEST (a){left}[:K*..5]{right}(b) RETURN a.i, b.i, length(p)",
        ):
            found = {(a, b): length for a, b, length in db.query(text).fetchall()}
            assert found == expected, text
        for low, high in ((2, 4), (0, 3)):
            paths = db.query(
                f"MATCH p = ANY SHORTEST (a:V){left}[:K*{low}..{high}]{right}(b:V) RETURN a.i, b.i, length(p), size(relationships(p))"
            )
            lengths = db.query(
                f"MATCH p = ANY SHORTEST (a:V){left}[:K*{low}..{high}]{right}(b:V) RETURN a.i, b.i, length(p)"
            )
            assert sorted(lengths.fetchall()) == sorted(row[:3] for row in paths.fetchall() if row[2] == row[3])
