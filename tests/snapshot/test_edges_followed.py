"""Edges by those of the state before are what would be read of the file, whatever small statements wrote."""

from __future__ import annotations

import random
from dataclasses import fields

import numpy as np
import pytest

import graphdb
from graphdb.relational.snapshot import _edges_counted
from graphdb.storage.graph.edges import EdgeTable

WRITES = (
    "MATCH (a {n: $a}), (b {n: $b}) CREATE (a)-[:R {w: $c}]->(b)",
    "MATCH (a {n: $a}), (b {n: $b}) CREATE (a)-[:S]->(b)",
    "MATCH (a {n: $a})-[e:R]->(b) WITH e LIMIT 1 DELETE e",
    "MATCH (a {n: $a})-[e:R|S]->(b {n: $b}) DELETE e",
    "MATCH (a {n: $a})-[e:S]->() SET e.w = $c",
    "MATCH (a {n: $a})-[e]->() REMOVE e.w",
    "CREATE (:A {n: $c + 100})-[:R]->(:A {n: $c})",
    "MATCH (a {n: $a}) DETACH DELETE a",
    "MATCH (a {n: $a}), (b {n: $b}) CREATE (a)-[:R]->(b) CREATE (a)-[:R]->(b) WITH a MATCH (a)-[e:R]->() DELETE e",
    "MATCH (a {n: $a})-[e:R]->(b) SET e.w = a.n + $c",
)


@pytest.mark.parametrize("seed", range(3))
def test_tables_of_edges(seed: int) -> None:
    draw, compared = random.Random(seed), 0
    with graphdb.connect(threads=1) as database:
        database.query("UNWIND range(0, 14) AS i CREATE (:A {n: i})")
        text = "MATCH (a), (b) WHERE (a.n * 3 + b.n * 5) % 7 = 1 CREATE (a)-[:R {w: a.n}]->(b), (b)-[:S]->(a)"
        database.query(text)
        for _ in range(60):
            text = draw.choice(WRITES)
            given = {"a": draw.randint(0, 14), "b": draw.randint(0, 14), "c": draw.randint(0, 50)}
            database.query(text, {name: value for name, value in given.items() if f"${name}" in text})
            if draw.random() < 0.5:  # or several writes are followed at once
                continue
            state = database._state
            snapshot, read = state.snapshot(), state.connection.columns
            edges, graph = snapshot.edges, snapshot.graph
            with state.connection.guard() as raw:
                assert _edges_counted(raw) == (edges.described, edges.parallel)
            labels = sorted(edges.described)
            for some in [(label,) for label in labels] + [tuple(labels)] * (len(labels) > 1):
                mine = edges.table(some)
                anew = EdgeTable.read(some, read, snapshot.store.ends, graph.vertices, graph.dtype)
                for field in fields(EdgeTable):
                    one, other = (getattr(table, field.name) for table in (mine, anew))
                    if field.name == "_offsets" and not (len(one) and len(other)):
                        continue  # whether vertices have entries depends on how many there are
                    assert np.array_equal(one, other) if other is not None else one is None, (text, field.name)
                compared += 1
    assert compared > 20
