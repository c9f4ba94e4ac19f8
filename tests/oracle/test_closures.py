"""Paths along edges of which two vertices have at most one path, in every place of a query, against all trails."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import graphdb
from tests.fuzz import scaled

SOME = settings(max_examples=scaled(24), deadline=None, suppress_health_check=list(HealthCheck))
COUNT = 8

Edges = tuple[tuple[int, int], ...]
Trails = Counter[tuple[int, int]]


@st.composite
def graphs(draw: Callable[..., Any]) -> tuple[Edges, Edges]:
    """Edges of two labels among vertices: of U a forest, upwards or downwards, and sometimes more; of E any."""
    order = draw(st.permutations(range(COUNT)))
    parents = [draw(st.one_of(st.none(), st.integers(0, i))) for i in range(COUNT - 1)]
    up = [(order[i + 1], order[p]) for i, p in enumerate(parents) if p is not None]
    if draw(st.booleans()):
        up = [(b, a) for a, b in up]
    up += draw(st.lists(st.tuples(*[st.integers(0, COUNT - 1)] * 2), max_size=draw(st.sampled_from([0, 0, 3]))))
    other = draw(st.lists(st.tuples(*[st.integers(0, COUNT - 1)] * 2), max_size=6, unique=True))
    return tuple(dict.fromkeys(up)), tuple(other)


lengths = st.sampled_from([(0, None), (1, None), (0, 2), (1, 3), (2, None), (2, 4), (0, 1)])


def text_of(length: tuple[int, int | None]) -> str:
    low, high = length
    return f"*{low}..{'' if high is None else high}"


def trails(edges: Edges, length: tuple[int, int | None]) -> Trails:
    """How many trails of a length there are between each two vertices."""
    low, high = length[0], len(edges) if length[1] is None else length[1]
    found: Trails = Counter()

    def go_on(start: int, at: int, taken: tuple[int, ...]) -> None:
        if len(taken) >= low:
            found[start, at] += 1
        if len(taken) == high:
            return
        for k, (a, b) in enumerate(edges):
            if a == at and k not in taken:
                go_on(start, b, (*taken, k))

    for start in range(COUNT):
        go_on(start, start, ())
    return found


def is_even(vertex: int) -> bool:
    return vertex % 2 == 0


def created(up: Edges, other: Edges) -> graphdb.Database:
    database = graphdb.connect(threads=1)
    made = [f"(v{i}:N{':Even' if is_even(i) else ''} {{id: {i}}})" for i in range(COUNT)]
    made += [f"(v{a})-[:U]->(v{b})" for a, b in up] + [f"(v{a})-[:E]->(v{b})" for a, b in other]
    database.query(f"CREATE {', '.join(made)}")
    return database


def asked(repeat: str, paths: Trails, other: Edges) -> Iterator[tuple[str, Counter[Any]]]:
    """Yield queries, with their rows by definition."""
    way = {v: [(b, n) for (a, b), n in paths.items() if a == v] for v in range(COUNT)}
    yield (
        f"MATCH (a:N)-[:U{repeat}]->(b:Even) RETURN a.id, b.id",
        Counter({(a, b): n for (a, b), n in paths.items() if is_even(b)}),
    )
    one = [(b, c) for b, n in way[3] for x, c in other if x == b for _ in range(n)]
    yield f"MATCH (:N {{id: 3}})-[:U{repeat}]->(b)-[:E]->(c:N) RETURN b.id, c.id", Counter(one)
    back = [(a, c) for (a, b), n in paths.items() for x, c in other if x == b and c == 2 for _ in range(n)]
    yield f"MATCH (a:N)-[:U{repeat}]->(b)-[:E]->(c:N) WHERE c.id = 2 RETURN a.id, c.id", Counter(back)
    yield (
        f"MATCH (a:N)-[:U{repeat}]->(b:N)-[:E]->(c) RETURN count(*)",
        Counter([(sum(n for (_, b), n in paths.items() for x, _ in other if x == b),)]),
    )
    two = Counter(
        (c, b, d)
        for (a, b), n in paths.items()
        for c, x in other
        for y, d in other
        if (x, y) == (a, b) and (c, x) != (y, d)
        for _ in range(n)
    )
    yield f"MATCH (c:N)-[:E]->(a), (a)-[:U{repeat}]->(b:N)-[:E]->(d) RETURN c.id, b.id, d.id", two
    pairs = Counter((a, c) for (a, b), n in paths.items() for x, c in other if x == b and a < c for _ in range(n))
    yield f"MATCH (a:N)-[:U{repeat}]->(b), (b)-[:E]->(c) WHERE a.id < c.id AND b.id >= 0 RETURN a.id, c.id", pairs
    chained = Counter(
        (a, d) for (a, b), n in paths.items() for (c, d), m in paths.items() if (b, c) in other for _ in range(n * m)
    )
    yield f"MATCH (a:N)-[:U{repeat}]->(b)-[:E]->(c) MATCH (c)-[:U{repeat}]->(d:N) RETURN a.id, d.id", chained
    yield (
        f"MATCH (a:N) OPTIONAL MATCH (a)-[:U{repeat}]->(b:Even) WHERE b.id > 2 RETURN a.id, count(b)",
        Counter((a, sum(n for b, n in way[a] if is_even(b) and b > 2)) for a in range(COUNT)),
    )
    yield (
        f"MATCH (a:N) WHERE EXISTS {{ (a)-[:U{repeat}]->(:Even)-[:E]->(:N) }} RETURN a.id",
        Counter((a,) for a in range(COUNT) if any(is_even(b) and x == b for b, _ in way[a] for x, _ in other)),
    )
    yield (
        f"MATCH (a:N), (b:Even) WHERE NOT (a)-[:U{repeat}]->(b) RETURN a.id, b.id",
        Counter((a, b) for a in range(COUNT) for b in range(0, COUNT, 2) if not paths[a, b]),
    )
    yield (
        f"MATCH (a:N) RETURN a.id, COUNT {{ (a)<-[:U{repeat}]-(:N) }} AS n",
        Counter((a, sum(n for (_, b), n in paths.items() if b == a)) for a in range(COUNT)),
    )
    lists = [(a, tuple(sorted(b for b, n in way[a] if is_even(b) for _ in range(n)))) for a in range(COUNT)]
    yield f"MATCH (a:N) RETURN a.id, [(a)-[:U{repeat}]->(b:Even) | b.id] AS found", Counter(lists)
    yield (
        f"UNWIND [3, 5, 3] AS i MATCH (a:N {{id: i}}) MATCH (a)-[:U{repeat}]->(b:N) RETURN i, b.id",
        Counter({(i, b): n * (2 if i == 3 else 1) for i in (3, 5) for b, n in way[i]}),
    )


def sorted_lists(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(tuple(sorted(part)) if isinstance(part, list) else part for part in row)


@SOME
@given(graphs(), lengths)
def test_every_place_of_a_path(graph: tuple[Edges, Edges], length: tuple[int, int | None]) -> None:
    up, other = graph
    paths = trails(up, length)
    with created(up, other) as database:
        for text, rows in asked(text_of(length), paths, other):
            found = Counter(map(sorted_lists, database.query(text).fetchall()))
            assert found == Counter({row: n for row, n in rows.items() if n}), text


@SOME
@given(graphs(), lengths, st.integers(0, COUNT - 1), st.integers(0, COUNT - 1))
def test_paths_after_an_update(graph: tuple[Edges, Edges], length: tuple[int, int | None], a: int, b: int) -> None:
    """An edge that comes or goes may make a forest of what was none, and the other way about."""
    up, other = graph
    text = f"MATCH (a:N)-[:U{text_of(length)}]->(b:N) RETURN a.id, b.id"
    with created(up, other) as database:
        assert Counter(database.query(text).fetchall()) == +trails(up, length)
        after = tuple(edge for edge in up if edge != (a, b))
        if after == up:
            after = (*up, (a, b))
            database.query("MATCH (a:N {id: $a}), (b:N {id: $b}) CREATE (a)-[:U]->(b)", a=a, b=b)
        else:
            database.query("MATCH (:N {id: $a})-[e:U]->(:N {id: $b}) DELETE e", a=a, b=b)
        assert Counter(database.query(text).fetchall()) == +trails(after, length)


@SOME
@given(graphs(), lengths, st.integers(0, COUNT - 1), st.booleans())
def test_paths_to_a_label_after_vertices_get_it(
    graph: tuple[Edges, Edges], length: tuple[int, int | None], a: int, gone: bool
) -> None:
    """Of vertices with a label, one more may be above another one, or none any more."""
    up, other = graph
    text = f"MATCH (x:N)-[:U{text_of(length)}]->(y:Even) RETURN x.id, y.id"
    back = f"MATCH (x:Even)-[:U{text_of(length)}]->(y:N) WHERE y.id >= 0 RETURN x.id, y.id"
    found = trails(up, length)
    with created(up, other) as database:
        for even in ({0, 2, 4, 6}, {0, 2, 4, 6} - {a} if gone else {0, 2, 4, 6, a}):
            for asked_for, end in ((text, 1), (back, 0)):
                rows = {pair: n for pair, n in found.items() if pair[end] in even}
                assert Counter(database.query(asked_for).fetchall()) == Counter(rows), asked_for
            database.query(f"MATCH (n:N {{id: $a}}) {'REMOVE' if gone else 'SET'} n:Even", a=a)


@pytest.fixture
def thread() -> Iterator[graphdb.Database]:
    """Messages that answer each other, in forums."""
    with graphdb.connect() as database:
        database.query("UNWIND range(0, 199) AS i CREATE (:Message {id: i})")
        database.query("MATCH (m:Message) WHERE m.id % 10 = 0 SET m:Post")
        database.query(
            "MATCH (m:Message), (n:Message) WHERE m.id % 10 > 0 AND n.id = m.id - 1 CREATE (m)-[:REPLY_OF]->(n)"
        )
        database.query(
            "UNWIND range(0, 3) AS f CREATE (b:Forum {id: f}) WITH b, f "
            "MATCH (p:Post) WHERE (p.id / 10) % 4 = f CREATE (b)-[:CONTAINER_OF]->(p)"
        )
        yield database


def test_a_path_is_matched_from_its_bound_end(thread: graphdb.Database) -> None:
    text = "MATCH (m:Message {id: 57})-[:REPLY_OF*0..]->(p:Post)<-[:CONTAINER_OF]-(f:Forum) RETURN p.id, f.id"
    assert thread.query(text).fetchall() == [(50, 1)]
    plan = thread.explain(text)
    assert "(m)-[:REPLY_OF*0..]->" in plan
    assert "REPLY_OF*0.. is reachability: at most one path of these edges joins two vertices" in plan
    assert "paths _paths" not in plan


def test_of_a_long_chain_a_path_to_what_is_once_above_is_an_edge() -> None:
    """All pairs that a chain joins are too many; each vertex with the one that begins it is one."""
    with graphdb.connect() as database:
        database.query("UNWIND range(0, 5999) AS i CREATE (:N {id: i})")
        database.query("MATCH (m:N), (n:N) WHERE m.id = n.id + 1 CREATE (m)-[:REPLY_OF]->(n)")
        database.query("MATCH (n:N) WHERE n.id = 0 SET n:First")
        edge = "REPLY_OF*0.. is reachability"
        for text, count in (
            ("MATCH (m:N)-[:REPLY_OF*0..]->(:First) RETURN count(m)", 6_000),
            ("MATCH (:First)<-[:REPLY_OF*0..]-(m:N) RETURN count(m)", 6_000),
            ("MATCH (m:N)-[:REPLY_OF*0..]->(n), (n:First&N) RETURN count(m)", 6_000),
            ("MATCH (m:N)-[:REPLY_OF*1..9]->(:N:First) RETURN count(m)", 9),
        ):
            assert database.query(text).fetchall() == [(count,)]
            assert edge.replace("*0..", "*1..9" if count == 9 else "*0..") in database.explain(text)
        assert edge not in database.explain("MATCH (m:N)-[:REPLY_OF*0..]->(:N) RETURN count(m)")
        database.query("MATCH (n:N {id: 1}) SET n:First")
        text = "MATCH (m:N)-[:REPLY_OF*0..]->(:First) WHERE m.id < 3 RETURN count(m)"
        assert database.query(text).fetchall() == [(1 + 2 + 2,)]
        assert edge not in database.explain(text)


def test_a_path_that_is_searched_for_starts_at_its_bound_end(thread: graphdb.Database) -> None:
    """A message with two answers above it has several paths: they are searched for from the message alone."""
    thread.query("MATCH (m:Message {id: 57}), (n:Message {id: 52}) CREATE (m)-[:REPLY_OF]->(n)")
    for before in ("MATCH (m:Message {id: 57})", "MATCH (m:Message {id: 57}) OPTIONAL MATCH"):
        text = f"{before} MATCH" if not before.endswith("MATCH") else before
        text = f"{text} (m)-[:REPLY_OF*0..]->(p:Post)<-[:CONTAINER_OF]-(f:Forum) RETURN p.id, f.id"
        assert thread.query(text).fetchall() == [(50, 1), (50, 1)]
        plan = thread.explain(text)
        assert "every TRAIL (m)-[:REPLY_OF]->{0,}(" in plan
        assert " AS t FROM" not in plan
        assert "is reachability" not in plan


def test_conditions_within_a_path_see_closures(thread: graphdb.Database) -> None:
    thread.query("MATCH (m:Message {id: 57}), (n:Message {id: 58}) CREATE (m)-[:NEXT]->(n)")
    text = """MATCH (:Message {id: 57})((x)-[:NEXT]->(y) WHERE EXISTS {
                  MATCH (x)-[:REPLY_OF*0..]->(:Post)<-[:CONTAINER_OF]-(f:Forum) WHERE f.id = 1
              })+(z) RETURN z.id"""
    assert thread.query(text).fetchall() == [(58,)]
    assert "REPLY_OF*0.. is reachability" in thread.explain(text)


def test_edges_that_must_differ_are_searched_for(thread: graphdb.Database) -> None:
    """The edge beside a path may be none of the path's, so that the path is no single edge."""
    text = "MATCH (m:Message {id: 57})-[:REPLY_OF*0..]->(p)-[:REPLY_OF]->(q:Post) RETURN p.id, q.id"
    assert thread.query(text).fetchall() == [(51, 50)]
    assert "is reachability" not in thread.explain(text)


def test_a_way_round_is_no_closure(thread: graphdb.Database) -> None:
    """What was prepared while there was one is prepared anew."""
    text = "MATCH (m:Message {id: 53})-[:REPLY_OF*0..]->(p:Post) RETURN p.id"
    counted = "MATCH (m:Message)-[:REPLY_OF*1..]->(p) RETURN count(*)"
    optional = "MATCH (m:Message) OPTIONAL MATCH (m)-[:REPLY_OF*1..]->(p:Post) RETURN count(p)"
    assert [thread.query(each).fetchall() for each in (text, counted, optional)] == [[(50,)], [(20 * 45,)], [(180,)]]
    thread.query("MATCH (m:Post {id: 50}), (n:Message {id: 52}) CREATE (m)-[:REPLY_OF]->(n)")
    assert thread.query(text).fetchall() == [(50,)]
    assert "is reachability" not in thread.explain(text)
    # From 50, 51 and 52 three trails lead round, of 0, 1 and 2 before; 53 to 59 come to 52 once more.
    assert thread.query(counted).fetchall() == [(20 * 45 + 3 + 2 + 1 + 7,)]
    assert thread.query(optional).fetchall() == [(181,)]


def test_parallel_edges_are_several_paths(thread: graphdb.Database) -> None:
    thread.query("MATCH (m:Message {id: 53})-[:REPLY_OF]->(n) CREATE (m)-[:REPLY_OF]->(n)")
    text = "MATCH (m:Message {id: 55})-[:REPLY_OF*0..]->(p:Post) RETURN p.id"
    assert thread.query(text).fetchall() == [(50,), (50,)]


def test_interpreted_subqueries_see_paths(thread: graphdb.Database) -> None:
    text = """MATCH (m:Message) WHERE m.id IN [53, 57]
              RETURN m.id, reduce(n = 0, x IN [1, 2] | n + x * COUNT { (m)-[:REPLY_OF*1..]->(:Message) }) ORDER BY m.id"""
    assert thread.query(text).fetchall() == [(53, 9), (57, 21)]
