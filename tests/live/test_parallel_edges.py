"""Continuous queries over graphs with parallel edges and edges with properties follow batches by delta plans."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import graphdb
from tests.fuzz import scaled
from tests.live.writes import Draw, check, check_history, created, opened, strategies

QUERIES = {
    "edges": "MATCH (a)-[e:R]->(b) RETURN a.i AS a, e.w AS w, b.i AS b",
    "chosen": "MATCH (a)-[e:R {w: 1}]->(b)-[:S]->(c) RETURN a.i AS a, c.i AS c",
    "chains": "MATCH (a)-[:R]->(b)-[:R]-(c) RETURN a.i AS a, c.i AS c",
    "there_and_back": "MATCH (a)-[:R]->(b)-[f:R]->(a) RETURN a.i AS a, f.w AS w",
    "twice": "MATCH (a)-[:R]-(b), (a)-[:R|S]-(b) RETURN a.i AS a, b.i AS b",
    "again": "MATCH REPEATABLE ELEMENTS (a)-[:R]->(b), (a)-[:R]->(b) RETURN a.i AS a, b.i AS b",
    "nodes": "MATCH DIFFERENT NODES (a)-[:R]->(b), (a)-[:R]->(b)-[:S]->(c) RETURN a.i AS a, b.i AS b, c.i AS c",
    "counted": "MATCH (a)-[:R]->(b)<-[:R]-(c) RETURN a.i AS a, count(*) AS n",
    "summed": "MATCH (a)-[e:R]->(b) RETURN b.i AS b, sum(e.w) AS s, min(e.w) AS m, count(DISTINCT e.w) AS n",
    "loops": "MATCH (a)-[e]->(a) RETURN a.i AS a, e.w AS w",
    "different": "MATCH (a)-[e:R]->()-[f:R]->() RETURN DISTINCT e.w AS v, f.w AS w",
}


def write(draw: Draw) -> str:
    """Return a statement that changes edges between four vertices, mostly parallel ones."""
    a, b = (f"({name} {{i: {draw.integers(4)}}})" for name in "ab")
    label, value = draw.choice(["R", "S"], p=[0.8, 0.2]), draw.integers(3)
    match int(draw.choice(7, p=[0.3, 0.15, 0.15, 0.1, 0.1, 0.1, 0.1])):
        case 0:
            return f"MATCH {a}, {b} CREATE (a)-[:{label}]->(b)"
        case 1:
            return f"MATCH {a}, {b} CREATE (a)-[:{label} {{w: {value}}}]->(b)"
        case 2:
            return f"MATCH {a}-[e:{label}]->(b) WITH e LIMIT 1 DELETE e"
        case 3:
            return f"MATCH {a}-[e:{label}]->(b) WITH e LIMIT 2 SET e.w = {value}"
        case 4:
            return f"MATCH {a}-[e:{label}]->(b) REMOVE e.w"
        case 5:
            return f"UNWIND range(0, 2) AS x MATCH {a}, (b {{i: x}}) CREATE (a)-[:{label} {{w: x}}]->(b), (b)-[:S]->(a)"
    return f"MATCH {a} SET a.i = {draw.integers(4)}"


@settings(max_examples=scaled(12), deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(st.integers(0, 1 << 32))
def test_answers_follow_single_edges(seed: int) -> None:
    draw = np.random.default_rng(seed)

    def begun(db: graphdb.Database) -> dict[str, str]:
        db.query("UNWIND range(0, 3) AS x CREATE (:A {i: x})")
        db.query("MATCH (a {i: 0}), (b {i: 1}) CREATE (a)-[:R {w: 1}]->(b), (a)-[:R]->(b)-[:R]->(a), (b)-[:S]->(a)")
        queries = {name: QUERIES[name] for name in draw.choice(sorted(QUERIES), 4, replace=False).tolist()}
        for name, text in queries.items():
            db.query(f"CREATE CONTINUOUS QUERY `{name}` AS {text}")
        return queries

    with tempfile.TemporaryDirectory() as folder:
        check_history(Path(folder) / "a.duckdb", draw, begun, write, loads=0)


def test_delta_plans_are_used() -> None:
    draw = np.random.default_rng(2)
    with opened(None) as db:
        db.query("UNWIND range(0, 3) AS x CREATE (:A {i: x})")
        db.query("MATCH (a {i: 0}), (b {i: 1}) CREATE (a)-[:R {w: 1}]->(b), (a)-[:R]->(b)-[:R]->(a), (b)-[:S]->(a)")
        db.query("MATCH (a {i: 1}), (b {i: 0}) CREATE (a)-[:S]->(b)")  # whose edges are parallel, too
        for name, text in QUERIES.items():
            db.query(f"CREATE CONTINUOUS QUERY {name} AS {text}")
            assert "maintained by delta plans" in explained(db, name)
        for _ in range(10):
            db.query(write(draw))
        assert strategies(db)["compared"] == 0
        assert strategies(db)["delta plans"] > 50


def test_groups_of_edges_tell_parallel_ones_apart() -> None:
    queries = {
        "each": "MATCH (a)-[e:R]->(b) RETURN DISTINCT e, b.i AS i",
        "counted": "MATCH (a)-[e:R]->(b) RETURN b.i AS i, count(DISTINCT e) AS n",
    }
    with opened(None) as db:
        db.query("UNWIND range(0, 3) AS x CREATE (:A {i: x})-[:R]->(:B {i: x})")
        stored = created(db, queries)
        for number in (0, 1, 1, 2):
            db.query(f"MATCH (a:A {{i: {number}}})-[:R]->(b) WITH DISTINCT a, b CREATE (a)-[:R]->(b)")
            check(db, queries, stored)
        db.query("MATCH (a:A {i: 1})-[e:R]->() WITH e LIMIT 1 DELETE e")
        check(db, queries, stored)


def explained(db: graphdb.Database, name: str) -> str:
    return "\n".join(line for (line,) in db.query(f"EXPLAIN CONTINUOUS QUERY {name}").fetchall())
