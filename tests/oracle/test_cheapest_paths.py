"""Cheapest paths against all trails, one by one, and against NetworkX on larger graphs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import graphdb
from tests.fuzz import scaled

SOME = settings(max_examples=scaled(16), deadline=None, suppress_health_check=list(HealthCheck))
COUNT = 5

Edge = tuple[int, int, float]
"""Start, end and weight."""
Trail = tuple[tuple[int, ...], tuple[int, ...]]
"""Vertices, and the numbers of edges."""

vertices = st.integers(0, COUNT - 1)
weights = st.one_of(st.integers(0, 4), st.sampled_from([0.25, 0.5, 1.75]))
edge_lists = st.lists(st.tuples(vertices, vertices, weights), min_size=1, max_size=7)


def created(edges: list[Edge], count: int = COUNT) -> graphdb.Database:
    database = graphdb.connect(threads=1)
    made = [f"(v{i}:N {{id: {i}}})" for i in range(count)]
    made += [f"(v{a})-[:E {{k: {k}, w: {w}}}]->(v{b})" for k, (a, b, w) in enumerate(edges)]
    database.query(f"CREATE {', '.join(made)}")
    return database


def trails(edges: list[Edge], way: str, low: int) -> Iterator[tuple[Trail, float]]:
    """Yield all trails along edges, with what they cost."""

    def go_on(walk: tuple[int, ...], taken: tuple[int, ...], cost: float) -> Iterator[tuple[Trail, float]]:
        if len(taken) >= low:
            yield (walk, taken), cost
        for k, (a, b, weight) in enumerate(edges):
            ends = {"->": {(a, b)}, "<-": {(b, a)}, "-": {(a, b), (b, a)}}[way]
            for start, end in ends:
                if start == walk[-1] and k not in taken:
                    yield from go_on((*walk, end), (*taken, k), cost + weight)

    for start in range(COUNT):
        yield from go_on((start,), (), 0.0)


def cheapest(edges: list[Edge], way: str, low: int) -> dict[tuple[int, int], tuple[float, Counter[Trail]]]:
    """Return the least cost between each two vertices, and all trails of that cost."""
    found: dict[tuple[int, int], tuple[float, Counter[Trail]]] = {}
    for trail, cost in trails(edges, way, low):
        ends = trail[0][0], trail[0][-1]
        least = found.get(ends)
        if least is None or cost < least[0]:
            least = found[ends] = (cost, Counter())
        if cost == least[0]:
            least[1][trail] += 1
    return found


def pattern(way: str, low: int, left: str = "(s:N)", right: str = "(t:N)") -> str:
    repeat = "+" if low else "*"
    edge = {"->": f"-[e:E]->{repeat}", "<-": f"<-[e:E]-{repeat}", "-": f"-[e:E]-{repeat}"}[way]
    return f"{left}{edge}{right}"


RETURNED = "RETURN [v IN nodes(p) | v.id], [x IN e | x.k], total, length(p)"


@SOME
@given(edge_lists, st.sampled_from(["->", "<-", "-"]), st.integers(0, 1), st.booleans())
def test_every_pair(edges: list[Edge], way: str, low: int, every: bool) -> None:
    want = cheapest(edges, way, low)
    selector = "ALL SHORTEST" if every else "ANY SHORTEST"
    with created(edges) as database:
        for where in ("", "WHERE s.id = 0", "WHERE t.id IN [1, 2]", "WHERE s.id = 1 AND t.id = 3", "WHERE s.id = t.id"):
            found: defaultdict[tuple[int, int], list[tuple[Trail, float]]] = defaultdict(list)
            text = f"MATCH p = {selector} {pattern(way, low)} COST BY e.w AS total {where} {RETURNED}"
            for walk, taken, total, length in database.query(text):
                assert length == len(taken)
                found[walk[0], walk[-1]].append(((tuple(walk), tuple(taken)), total))
            admitted = {
                "": lambda s, t: True,
                "WHERE s.id = 0": lambda s, t: s == 0,
                "WHERE t.id IN [1, 2]": lambda s, t: t in (1, 2),
                "WHERE s.id = 1 AND t.id = 3": lambda s, t: (s, t) == (1, 3),
                "WHERE s.id = t.id": lambda s, t: s == t,
            }[where]
            assert found.keys() == {ends for ends in want if admitted(*ends)}, where
            for ends, rows in found.items():
                cost, best = want[ends]
                assert {total for _, total in rows} == {cost}
                mine = Counter(trail for trail, _ in rows)
                assert mine == best if every else (len(rows) == 1 and mine <= best), (where, ends)


@SOME
@given(edge_lists, st.sampled_from(["->", "-"]), st.integers(0, 1))
def test_costs_among_other_clauses(edges: list[Edge], way: str, low: int) -> None:
    """From rows, in OPTIONAL MATCH, in subqueries, of edges that fulfil conditions, and by expressions."""
    some = [(a, b, w) for a, b, w in edges if w != 2]
    want = {ends: cost for ends, (cost, _) in cheapest(some, way, low).items()}
    repeat = "+" if low else "*"
    edge = f"((x)-[e:E]{way}(y) WHERE e.w <> 2){repeat}"
    with created(edges) as database:
        text = (
            f"MATCH (s:N), (t:N) OPTIONAL MATCH ANY SHORTEST (s){edge}(t) COST BY e.w AS total RETURN s.id, t.id, total"
        )
        rows = {(s, t): total for s, t, total in database.query(text)}
        assert rows == {(s, t): want.get((s, t)) for s in range(COUNT) for t in range(COUNT)}
        text = f"""MATCH (s:N) RETURN s.id,
                   COLLECT {{ MATCH ANY SHORTEST (s){edge}(t:N) COST BY e.w AS c WHERE t.id > 1 RETURN c }} AS costs"""
        lists = {s: sorted(costs) for s, costs in database.query(text)}
        assert lists == {s: sorted(c for (a, b), c in want.items() if a == s and b > 1) for s in range(COUNT)}
        text = f"MATCH ANY SHORTEST (s:N){edge}(t:N) COST BY 2 * e.w + 1 AS c WHERE s.id <> t.id RETURN s.id, t.id, c"
        dearer = [(a, b, 2 * w + 1) for a, b, w in some]
        best = {ends: cost for ends, (cost, _) in cheapest(dearer, way, low).items() if ends[0] != ends[1]}
        assert {(s, t): c for s, t, c in database.query(text)} == best
        text = f"""MATCH ANY SHORTEST (s:N){edge}(t:N) COST BY e.w + COUNT {{ (x)-[:E]->(:N) }} AS c
                   WHERE s.id <> t.id RETURN s.id, t.id, c"""
        degrees = Counter(a for a, _, _ in edges)
        arcs = {(a, b, w + degrees[a]) for a, b, w in some}
        arcs |= {(b, a, w + degrees[b]) for a, b, w in some} if way == "-" else set()
        graph = nx.DiGraph()
        for a, b, w in sorted(arcs, reverse=True):
            graph.add_edge(a, b, weight=w)
        lengths = {
            (s, t): c for s, all_c in nx.all_pairs_dijkstra_path_length(graph) for t, c in all_c.items() if s != t
        }
        assert {(s, t): c for s, t, c in database.query(text)} == lengths


@pytest.mark.parametrize("integers", [True, False])
def test_larger_graphs(integers: bool) -> None:
    random = np.random.default_rng(7)
    count, many = 300, 1500
    ends = random.integers(0, count, (many, 2)).tolist()
    costs = random.integers(0, 50, many).tolist() if integers else random.random(many).tolist()
    graph: Any = nx.MultiDiGraph()
    graph.add_nodes_from(range(count))
    with graphdb.connect() as database:
        database.query("UNWIND range(0, $n - 1) AS i CREATE (:N {id: i})", n=count)
        rows = [{"a": a, "b": b, "w": w} for (a, b), w in zip(ends, costs, strict=True)]
        database.query(
            "UNWIND $rows AS r MATCH (a:N {id: r.a}), (b:N {id: r.b}) CREATE (a)-[:E {w: r.w}]->(b)", rows=rows
        )
        graph.add_weighted_edges_from((a, b, w) for (a, b), w in zip(ends, costs, strict=True))
        text = "MATCH ANY SHORTEST (s:N {id: $s})-[e:E]->*(t:N) COST BY e.w AS total RETURN t.id, total"
        for start in (0, 17):
            found = dict(database.query(text, s=start).fetchall())
            assert found == pytest.approx(nx.single_source_dijkstra_path_length(graph, start), rel=1e-12)
        text = text.replace("(t:N)", "(t:N {id: $t})")
        for s, t in random.integers(0, count, (20, 2)).tolist():
            want = nx.dijkstra_path_length(graph, s, t) if nx.has_path(graph, s, t) else None
            rows_found = database.query(text, s=s, t=t).fetchall()
            assert rows_found == ([] if want is None else [(t, pytest.approx(want, rel=1e-12))])
            assert all(isinstance(total, int if integers else float) for _, total in rows_found)


@pytest.fixture
def roads() -> Iterator[graphdb.Database]:
    with graphdb.connect() as database:
        database.query(
            "CREATE (a:N {id: 0}), (b:N {id: 1}), (c:N {id: 2}), (a)-[:E {w: 5, u: 1}]->(b), (a)-[:E {w: 1}]->(c),"
            "(c)-[:E {w: 1, u: -2}]->(b)"
        )
        yield database


ONE = "MATCH ANY SHORTEST (a:N {id: 0})-[e:E]->+(b:N {id: 1}) COST BY"


@pytest.mark.parametrize(
    ("text", "error", "words", "at"),
    [
        (f"{ONE} e.u AS t RETURN t", graphdb.ExecutionError, "the cost of an edge is null", "e.u"),
        (f"{ONE} coalesce(e.u, 0) AS t RETURN t", graphdb.ExecutionError, "negative: -2", "coalesce"),
        (f"{ONE} e.w / 0.0 AS t RETURN t", graphdb.ExecutionError, "not finite", "e.w"),
        (f"{ONE} 'far' AS t RETURN t", graphdb.TypeMismatchError, "a cost is a number, not a string", "'far'"),
        (f"{ONE} toString(e.w) AS t RETURN t", graphdb.TypeMismatchError, "a cost is a number", "toString"),
        (f"{ONE} e.w * a.id AS t RETURN t", graphdb.NotSupportedError, "depends on it and its ends alone", "e.w * a"),
        (f"{ONE} e.w AS a RETURN a", graphdb.BindError, "'a' is there already", "a RETURN"),
        (f"{ONE} sum(e.w) AS t RETURN t", graphdb.ParseError, "an aggregate cannot stand here", "sum"),
        (f"{ONE} f.w AS t RETURN t", graphdb.BindError, "unknown variable 'f'", "f.w"),
        ("MATCH (a)-[e:E]->+(b) COST BY e.w RETURN a", graphdb.ParseError, "needs a selector", "COST"),
        ("MATCH SHORTEST 2 (a)-[e:E]->+(b) COST BY e.w RETURN a", graphdb.ParseError, "needs a selector", "COST"),
        ("MATCH ANY SHORTEST (a)-[e:E]->(b) COST BY e.w RETURN a", graphdb.ParseError, "one repeated edge", "COST"),
        ("MATCH ANY SHORTEST (a)-[e:E*2..]->(b) COST BY e.w RETURN a", graphdb.ParseError, "any number of edges", "COST"),
        (f"{ONE} CASE e.w WHEN 1 THEN 'x' ELSE e.w END AS t RETURN t", graphdb.TypeMismatchError, "no number", "CASE"),
    ],
)  # fmt: skip
def test_mistakes(roads: graphdb.Database, text: str, error: type[graphdb.GraphDBError], words: str, at: str) -> None:
    with pytest.raises(error, match=words) as found:
        roads.query(text).fetchall()
    assert (found.value.line, found.value.column) == (1, text.index(at) + 1)
    assert roads.query(f"{ONE} e.w AS t RETURN t").fetchall() == [(2,)]


def test_cost_is_a_name_like_any_other(roads: graphdb.Database) -> None:
    roads.query("MATCH (a:N {id: 0}) SET a.cost = 3")
    assert roads.query("MATCH (cost:N) WHERE cost.cost = 3 RETURN cost.cost AS cost ORDER BY cost").fetchall() == [(3,)]
    assert roads.query(f"{ONE} e.w AS cost WHERE cost < 3 RETURN cost").fetchall() == [(2,)]


def test_vertices_on_other_paths_may_be_known(roads: graphdb.Database) -> None:
    for known, rest, rows in [(2, "(b)", [(2, 2)]), (1, "(b)", []), (0, "(a)", []), (2, "(c)", [])]:
        text = f"""MATCH (c:N {{id: {known}}}) MATCH p = (a)-[:E]->(c)-[:E]->{rest} MATCH (b)
                   MATCH ANY SHORTEST (a)-[e:E]->+(b) COST BY e.w AS t RETURN length(p), t"""
        assert roads.query(text).fetchall() == rows


def test_explain_says_how(roads: graphdb.Database) -> None:
    plan = roads.explain(f"{ONE} e.w AS t RETURN t")
    assert "cheapest TRAIL (a) -[e:E]->+ (b) by e.w: Dijkstra's algorithm" in plan


def test_a_search_can_be_stopped() -> None:
    with graphdb.connect() as database:
        database.query("UNWIND range(0, 1999) AS i CREATE (:N {id: i})")
        database.query(
            "MATCH (a:N), (b:N) WHERE b.id = (a.id * 7 + 1) % 2000 OR b.id = (a.id + 1) % 2000 CREATE (a)-[:E {w: a.id % 9}]->(b)"
        )
        text = "MATCH ANY SHORTEST (a:N)-[e:E]->+(b:N) COST BY e.w AS t RETURN max(t)"
        with pytest.raises(graphdb.QueryTimeout):
            database.query(text, timeout=0.05)
        few = "MATCH ANY SHORTEST (a:N {id: 0})-[e:E]->+(b:N {id: 1}) COST BY e.w AS t RETURN t"
        assert database.query(few).fetchall() == [(0,)]
