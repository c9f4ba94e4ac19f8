"""Conditions that are tested near the few candidates of another vertex find what brute force finds."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest

import graphdb
from graphdb.pattern.graph import PatternEdge
from graphdb.relational.filtering import candidates
from graphdb.relational.filtering.reach import reachable
from tests.fuzz import scaled


@pytest.mark.parametrize("seed", range(scaled(6)))
def test_conditions_near_a_vertex(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    random = Random(seed)
    size = random.choice([8, 40, 300])
    ages = {n: random.choice([None, random.randrange(50)]) for n in range(size)}
    pairs = {kind: {(random.randrange(size), random.randrange(size)) for _ in range(2 * size)} for kind in "AB"}
    found = []

    def spied(*arguments: object) -> object:
        near = reachable(*arguments)  # type: ignore[arg-type]
        found.append(near)
        return near

    monkeypatch.setattr(candidates, "_BROAD", 1)
    monkeypatch.setattr(candidates, "_NEAR", 1)
    monkeypatch.setattr(candidates, "reachable", spied)
    with graphdb.connect(tmp_path / "g.duckdb", device="cpu") as db:
        db.query("UNWIND $people AS p CREATE (n:N) SET n = p", people=[{"id": n, "age": a} for n, a in ages.items()])
        for kind, some in pairs.items():
            edges = [{"a": a, "b": b} for a, b in some]
            db.query(
                f"UNWIND $edges AS e MATCH (a:N {{id: e.a}}), (b:N {{id: e.b}}) CREATE (a)-[:{kind}]->(b)", edges=edges
            )
        for _ in range(12):
            start, most = random.randrange(size), random.randrange(50)
            query = "MATCH (a:N {id: $start})-[:A]->(b:N)<-[:B]-(c:N) WHERE c.age < $most RETURN b.id, c.id"
            rows = [
                (b, c)
                for a, b in pairs["A"]
                if a == start
                for c, other in pairs["B"]
                if other == b and ages[c] is not None and ages[c] < most
            ]
            assert sorted(db.query(query, start=start, most=most).fetchall()) == sorted(rows)
            query = "MATCH (a:N {id: $start})-[:A]-(b:N) WHERE b.age + 1 > $most RETURN count(*)"
            both = pairs["A"] | {(b, a) for a, b in pairs["A"]}
            many = sum(a == start and ages[b] is not None and ages[b] + 1 > most for a, b in both)
            twice = sum((b, a) in pairs["A"] and a != b for a, b in pairs["A"] if a == start and _over(ages[b], most))
            assert db.query(query, start=start, most=most).scalar() == many + twice
    assert size < 40 or any(near is not None for near in found)  # of eight vertices all may be near


def _over(age: int | None, most: int) -> bool:
    return age is not None and age + 1 > most


def test_it_goes_from_the_fewest_and_not_too_far() -> None:
    with graphdb.connect(device="cpu") as db:
        db.query("UNWIND range(1, 30) AS i CREATE (:N {id: i})")
        db.query("MATCH (a:N), (b:N) WHERE b.id = a.id + 1 CREATE (a)-[:NEXT]->(b)")
        rows = db.query("MATCH (a:N)-[:NEXT]->(b:N) RETURN id(a), id(b) ORDER BY a.id").fetchall()
        db.query("MATCH (a:N {id: 1})-[:NEXT]->()-[:NEXT]->(b) RETURN b")
        snapshot = db._state.snapshot()
        (label,) = (label.id for label in snapshot.names.edge_labels.values() if label.iri.endswith("NEXT"))
        snapshot.graph.partition((label,), "out")
        edges = [PatternEdge(f"e{i}", i, i + 1, (label,), True, 0) for i in range(2)]
        ids = np.array([row[0] for row in rows], np.int64)
        some: list[np.ndarray | None] = [ids[:3], ids, None]
        near = reachable(snapshot.graph, edges, some, 2, 30)
        assert near is not None
        assert near.tolist() == ids[2:5].tolist()
        assert reachable(snapshot.graph, edges, some, 2, 2) is None
        assert reachable(snapshot.graph, edges, [None, None, None], 2, 30) is None
