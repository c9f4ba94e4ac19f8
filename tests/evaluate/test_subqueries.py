"""Subqueries that only the evaluator can start: from what ``reduce`` accumulated, and along a path, against Python."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest

import graphdb
from graphdb.common.errors import ExecutionError
from tests.fuzz import scaled


@dataclass
class Graph:
    """A random graph: vertices 0 … with an age each, and edges of two kinds."""

    database: graphdb.Database
    ages: list[int]
    edges: set[tuple[int, str, int]]

    def after(self, vertex: int, kind: str) -> list[int]:
        return [end for start, name, end in self.edges if start == vertex and name == kind]


@pytest.fixture
def graph(request: pytest.FixtureRequest) -> Iterator[Graph]:
    dice = random.Random(request.param)
    ages = [dice.randrange(6) for _ in range(5)]
    pairs = {(dice.randrange(5), dice.choice("KKL"), dice.randrange(5)) for _ in range(9)}
    with graphdb.connect(device="cpu", threads=1) as database:
        database.query("UNWIND range(0, 4) AS i CREATE (:P {id: i, age: $ages[i]})", ages=ages)
        for kind in "KL":
            given = [[a, b] for a, name, b in pairs if name == kind]
            database.query(
                f"UNWIND $given AS e MATCH (a:P {{id: e[0]}}), (b:P {{id: e[1]}}) CREATE (a)-[:{kind}]->(b)",
                given=given,
            )
        yield Graph(database, ages, pairs)


seeds = pytest.mark.parametrize("graph", range(scaled(3)), indirect=True)


@seeds
def test_a_fold_counts_what_is_beyond_the_sum_so_far(graph: Graph) -> None:
    text = (
        "MATCH (m:P) RETURN m.id, reduce(t = m.age, x IN [1, 0, 2, m.id] |"
        " t + x * COUNT { MATCH (n:P) WHERE n.age > t AND (n.age > m.age OR x = 0) }) AS r"
    )

    def folded(id: int) -> int:
        total = graph.ages[id]
        for x in (1, 0, 2, id):
            total += x * sum(age > total and (age > graph.ages[id] or not x) for age in graph.ages)
        return total

    assert Counter(graph.database.query(text)) == Counter((id, folded(id)) for id in range(5))


@seeds
def test_a_fold_goes_from_vertex_to_vertex(graph: Graph) -> None:
    text = (
        "MATCH (m:P) RETURN m.id, reduce(seen = [m], kind IN ['K', 'L', 'K'] |"
        " seen + [(s)-[e]->(w) WHERE s = last(seen) AND type(e) = kind AND NOT w IN seen | w]) AS r"
    )

    def folded(id: int) -> Counter[int]:
        """The ids that are reached, where each step adds but one: then their order is certain."""
        seen = [id]
        for kind in "KLK":
            new = [end for end in graph.after(seen[-1], kind) if end not in seen]
            if len(new) > 1:
                return Counter()
            seen += new
        return Counter(seen)

    for id, found in graph.database.query(text):
        expected = folded(id)
        assert not expected or Counter(_id(vertex, graph) for vertex in found) == expected, (id, graph.edges)


def _id(vertex: Any, graph: Graph) -> int:
    return next(id for iri, id in graph.database.query("MATCH (n:P) RETURN iri(n), n.id") if iri == vertex.iri)


@seeds
def test_a_repeated_part_looks_around_two_of_its_vertices(graph: Graph) -> None:
    text = (
        "MATCH WALK (a:P) ((x)-[:K]->(y)-[:K]->(z) WHERE EXISTS { (x)-[:L]->(w)<-[:L]-(z) }){1,2} (b) RETURN a.id, b.id"
    )
    steps = Counter(
        (x, z)
        for x in range(5)
        for y in graph.after(x, "K")
        for z in graph.after(y, "K")
        if not {*graph.after(x, "L")}.isdisjoint(graph.after(z, "L"))
    )
    # An edge to w is taken once: from x itself, two L edges to one vertex are one edge.
    steps = Counter({(x, z): count for (x, z), count in steps.items() if x != z})
    twice = Counter[tuple[int, int]]()
    for (a, b), one in steps.items():
        for (c, d), other in steps.items():
            twice[a, d] += one * other * (b == c)
    expected = +(steps + twice)
    assert Counter(graph.database.query(text)) == expected, graph.edges


def test_what_fails_within_is_reported_in_its_place() -> None:
    with graphdb.connect(device="cpu", threads=1) as db:
        db.query("CREATE (:P {age: 3})")
        text = "RETURN reduce(t = 0, x IN [1] | t + COUNT { MATCH (n:P) WHERE n.age > 1 / t }) AS r"
        with pytest.raises(ExecutionError, match="division by zero") as caught:
            db.query(text).fetchall()
        assert caught.value.column == text.index("1 / t") + 1
        assert db.query(text.replace("t = 0", "t = 1")).scalar() == 2


def test_what_a_clause_writes_may_fold_subqueries() -> None:
    with graphdb.connect(device="cpu", threads=1) as db:
        db.query("UNWIND [1, 2, 3] AS i CREATE (:P {age: i})")
        fold = "reduce(t = 0, x IN [1, 2] | t + COUNT { MATCH (n:P) WHERE n.age > t })"
        assert db.query(f"MATCH (m:P) SET m.sum = {fold} RETURN m.sum").fetchall() == [(3,)] * 3
        db.query(f"FOREACH (i IN [1] | CREATE (:Q {{sum: {fold}}}))")
        assert db.query("MATCH (q:Q) RETURN q.sum").scalar() == 3


def test_pairs() -> None:
    """Of folds within folds each has its own sum."""
    with graphdb.connect(device="cpu", threads=1) as db:
        db.query("UNWIND [1, 2, 3] AS i CREATE (:P {age: i})")
        inner = "reduce(u = t, y IN [1, 2] | u + COUNT { MATCH (n:P) WHERE n.age > u + t })"
        found = db.query(f"RETURN reduce(t = 0, x IN [1, 2] | t + {inner}) AS r").scalar()
        total = 0
        for _ in pairwise(range(3)):
            part = total
            for _ in (1, 2):
                part += sum(age > part + total for age in (1, 2, 3))
            total += part
        assert found == total
