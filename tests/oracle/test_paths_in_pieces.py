"""Named paths of single and repeated edges beside what is searched for: bindings, put together after the match.

The oracle is plain Python, which lists the trails of a small multigraph edge by edge.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Iterator
from typing import Any

import pytest

import graphdb

VERTICES = 7
Edge = tuple[int, int, int]


@pytest.fixture(scope="module")
def edges() -> list[Edge]:
    """Return edges as source, target and number: some are parallel, some loops."""
    dice = random.Random(5)
    return [(dice.randrange(VERTICES), dice.randrange(VERTICES), number) for number in range(11)]


@pytest.fixture(scope="module")
def db(edges: list[Edge]) -> Iterator[graphdb.Database]:
    with graphdb.connect(device="cpu", threads=1) as database:
        database.query("UNWIND range(0, $most) AS k CREATE (:N {k: k})", most=VERTICES - 1)
        database.query(
            "UNWIND $rows AS r MATCH (a:N {k: r[0]}), (b:N {k: r[1]}) CREATE (a)-[:K {n: r[2]}]->(b)", rows=edges
        )
        yield database


def _steps(edges: list[Edge], at: int, direction: str) -> Iterator[tuple[int, int]]:
    """Yield the edges that leave a vertex, by their numbers, and where they lead to."""
    for source, target, number in edges:
        if direction in ("->", "--") and source == at:
            yield number, target
        if direction in ("<-", "--") and target == at and not (direction == "--" and source == target):
            yield number, source


def _trails(
    edges: list[Edge], start: int, pieces: list[tuple[str, int, int]]
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield the vertices and edges of trails of pieces: a direction, and how often it is followed."""

    def go(at: int, rest: list[tuple[str, int, int]], nodes: tuple[int, ...], taken: tuple[int, ...]) -> Any:
        if not rest:
            yield nodes, taken
            return
        direction, low, high = rest[0]
        if low <= 0:
            yield from go(at, rest[1:], nodes, taken)
        if high > 0:
            for number, to in _steps(edges, at, direction):
                if number not in taken:
                    more = [(direction, max(low - 1, 1) if low > 1 else 0, high - 1), *rest[1:]]
                    yield from go(to, more, (*nodes, to), (*taken, number))

    yield from go(start, pieces, (start,), ())


FORMS = {
    "(a:N)-[:K]->(b), s = (b)-[:K*1..40]->(c:N {k: 0})": ([("->", 1, 1)], True),
    "(a:N)<-[:K]-()-[:K]->(b), s = (b)-[:K*1..40]->(c:N {k: 0})": ([("<-", 1, 1), ("->", 1, 1)], True),
    "(a:N)-[:K]-(b), s = (b)-[:K*1..40]->(c:N {k: 0})": ([("--", 1, 1)], True),
    "(a:N)-[:K*0..]->(m)<-[:K]-(b)": ([("->", 0, 40), ("<-", 1, 1)], False),
    "(a:N)-[e:K]->(m)-[:K*]->(b)": ([("->", 1, 1), ("->", 1, 40)], False),
    "(a:N)-[:K]-(m)-[:K*0..]->()-[:K]->(b)": ([("--", 1, 1), ("->", 0, 40), ("->", 1, 1)], False),
}


@pytest.mark.parametrize("form", FORMS)
def test_paths_are_those_of_their_pieces(db: graphdb.Database, edges: list[Edge], form: str) -> None:
    """Their vertices, edges and lengths, as values, in conditions, and after a WITH."""
    pieces, with_other = FORMS[form]
    whole = [*pieces, ("->", 1, 40)] if with_other else pieces
    first: Counter[Any] = Counter()
    for start in range(VERTICES):
        for nodes, taken in _trails(edges, start, whole):
            if with_other and nodes[-1] != 0:
                continue
            length = len(pieces) if with_other else len(taken)
            first[nodes[: length + 1], taken[:length]] += 1
    asked = "[v IN nodes(q) | v.k], [r IN relationships(q) | r.n]"

    def found(text: str) -> Counter[Any]:
        return Counter((tuple(nodes), tuple(taken)) for nodes, taken, *_ in db.query(text).fetchall())

    assert found(f"MATCH q = {form} RETURN {asked}") == first
    assert found(f"MATCH q = {form} WITH q, b RETURN {asked}") == first
    longer = Counter({key: count for key, count in first.items() if len(key[1]) > 1})
    assert found(f"MATCH q = {form} WHERE length(q) > 1 RETURN {asked}") == longer
    lengths = Counter(len(taken) for _, taken in first.elements())
    assert Counter(n for (n,) in db.query(f"MATCH q = {form} RETURN length(q)").fetchall()) == lengths
    paths = db.query(f"MATCH q = {form} RETURN q").fetchall()
    seen = Counter(
        (tuple(node.properties["k"] for node in q.nodes), tuple(edge.properties["n"] for edge in q.relationships))
        for (q,) in paths
    )
    assert seen == first


def test_shortest_paths_beside_a_named_path(db: graphdb.Database, edges: list[Edge]) -> None:
    """Of another clause: any of its edges may be taken again.  They are found where they are asked for, not for lengths."""
    ways: dict[int, int] = {}
    waiting = deque([(0, 0)])
    while waiting:
        at, length = waiting.popleft()
        for _, to in _steps(edges, at, "<-"):
            if to not in ways:
                ways[to] = length + 1
                waiting.append((to, length + 1))
    want = Counter((s, t, 1, ways[t]) for s, t, _ in edges if t in ways and t != 0)
    text = """MATCH q = (a:N)-[:K]->(b) WHERE b.k <> 0 MATCH s = shortestPath((b)-[:K*]->(c:N {k: 0}))
        RETURN a.k, b.k, length(q), length(s)"""
    for asked, times in (text, 0), (text.replace("length(s)", "size(relationships(s))"), 1):
        assert Counter(db.query(asked).fetchall()) == want
        explained = [line for (line,) in db.query(f"EXPLAIN {asked}").fetchall()]
        assert sum("edges of a path" in line for line in explained) == times


@pytest.mark.parametrize(
    "text",
    [
        "MATCH q = (a:N {k: 1})-[:K]->(b) WITH q, b MATCH (b)-[:K]->(c) RETURN q, c.k",
        "MATCH q = (a:N {k: 1})-[:K]->(b)<-[:K]-(c) WITH q LIMIT 9 RETURN q",
        "MATCH q = (a:N {k: 1})-[:K]->(b), (c:N) WITH q, c ORDER BY c.k LIMIT 3 MATCH (c)-->(d) RETURN q, d",
    ],
)
def test_a_path_of_single_edges_is_its_bindings(db: graphdb.Database, text: str) -> None:
    """No search for it goes through the edges of a label."""
    explained = "\n".join(line for (line,) in db.query(f"EXPLAIN {text}").fetchall())
    assert "edges of a path" not in explained
    assert "TRAIL" not in explained
