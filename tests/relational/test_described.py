"""Rows grouped by ``labels(v)`` and ``keys(v)``: by the bits of the names, whatever the rows are made by."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

import graphdb
from graphdb.relational.projection import relation_sql
from graphdb.relational.running import materialized, program_run
from graphdb.storage.graph.data_graph import DataGraph
from tests.oracle.routes import bag, every_route, in_python

LABELS, KEYS = ("A", "B", "C D", "ex:E"), ("id", "x", "y", "tags", "two words")
QUERIES = [
    "MATCH (a) RETURN labels(a) AS l, count(*) AS n",
    "MATCH (a) RETURN keys(a) AS k, labels(a) AS l, count(*) AS n, min(a.x) AS x",
    "MATCH (a) RETURN DISTINCT keys(a) AS k",
    "MATCH (a) RETURN DISTINCT labels(a) AS l ORDER BY l LIMIT 3",
    "MATCH (a) WITH a.x AS x, keys(a) AS k, count(*) AS n WHERE n > 1 RETURN size(k), k, x, n",
    "MATCH (a) OPTIONAL MATCH (a)-[:R]->(b) RETURN labels(b) AS l, keys(b) AS k, count(*) AS n",
    "MATCH (a) OPTIONAL MATCH (a)-[:R]->(b) WITH a, b, count(*) AS m MATCH (a) RETURN labels(b) AS l, keys(a) AS k, sum(m) AS n",
    "MATCH (a) RETURN keys(a) AS k, count(DISTINCT a.y) AS n ORDER BY n DESC, k SKIP 1",
    "MATCH (a) RETURN labels(a) AS l, collect(a.id) AS ids",
    "MATCH (a) RETURN labels(a)[0] AS l, size(keys(a)) AS k, count(*) AS n",
    "MATCH (a) RETURN a.id AS i, labels(a) AS l, keys(a) AS k, head(keys(a)) AS h, size(labels(a)) AS n",
    "MATCH (a) OPTIONAL MATCH (a)-[:R]->(b) RETURN b.id, labels(b) AS l, keys(b)[0] AS k, size(keys(b)) AS n, labels(a)[1] AS s",
    "MATCH (a)-[:R]->(b) WHERE size(keys(a)) > size(keys(b)) OR head(labels(a)) = labels(b)[0] RETURN a.id, labels(b)",
    "MATCH (a) WITH a, labels(a) AS l WHERE size(l) > 1 UNWIND keys(a) AS k RETURN l, k, count(*), 'C D' IN labels(a) AS t",
    "MATCH (a) RETURN keys(a) AS k, a.id AS i ORDER BY size(keys(a)) DESC, head(labels(a)), i LIMIT 20",
    "MATCH (a) WITH a ORDER BY a.id LIMIT 9 MATCH (a)-[:R*0..2]->(b) RETURN [a IN [1, 2] | size([x IN labels(b) | x + a])], keys(b)",
    "MATCH (a) RETURN count(DISTINCT head(keys(a))), collect(size(labels(a))), sum(size(keys(a)))",
    "MATCH (a)-[r]->(b) RETURN labels(b)[0] AS l, labels(a)[-1] AS k, labels(b)[5] AS m, type(r) AS t, count(*) AS n",
    "MATCH (a) RETURN a.id, labels(a)[1], keys(a)[0], head(keys(a)), last(labels(a)), [a IN [1, 2] | a][1] AS o",
]  # fmt: skip


@pytest.fixture(scope="module")
def rows() -> list[tuple[list[str], dict[str, Any]]]:
    chosen = random.Random(7)
    found: list[tuple[list[str], dict[str, Any]]] = []
    for i in range(150):
        has = {key: i if key == "id" else chosen.randrange(4) for key in KEYS if chosen.random() < 0.6}
        if "tags" in has:
            has["tags"] = [0, 1][: 1 + has["tags"] % 2]  # several values
        if "y" in has and i % 5 == 0:
            has["y"] = f"t{has['y']}"  # several types
        found.append(([label for label in LABELS if chosen.random() < 0.3], has))
    return found


@pytest.fixture(scope="module")
def database(rows: list[tuple[list[str], dict[str, Any]]]) -> Iterator[graphdb.Database]:
    with graphdb.connect(device="cpu", threads=1) as db:
        for labels, has in rows:
            db.query(f"CREATE (a{''.join(f':`{label}`' for label in labels)}) SET a = $has", {"has": has})
        db.query("MATCH (a), (b) WHERE a.id = b.id - 1 AND a.id % 3 > 0 CREATE (a)-[:R {w: 1}]->(b)")
        yield db


def test_groups(database: graphdb.Database, rows: list[tuple[list[str], dict[str, Any]]]) -> None:
    expected = Counter((tuple(sorted(labels)), tuple(sorted(has))) for labels, has in rows)
    found = database.query("MATCH (a) RETURN labels(a), keys(a), count(*)").fetchall()
    assert {(tuple(labels), tuple(keys)): n for labels, keys, n in found} == expected
    assert len(found) == len(expected) > 60
    first = database.query("MATCH (a) RETURN DISTINCT labels(a) AS l ORDER BY l DESC").fetchall()
    assert first == [(list(labels),) for labels in sorted({labels for labels, _ in expected}, reverse=True)]


def test_after_changes(database: graphdb.Database) -> None:
    text = "MATCH (a {id: 1000}) RETURN labels(a) AS l, keys(a) AS k, count(*) AS n"
    database.query("CREATE (:A {id: 1000})")
    assert database.query(text).fetchall() == [(["A"], ["id"], 1)]
    database.query("MATCH (a {id: 1000}) SET a:New, a.new = 1")
    assert database.query(text).fetchall() == [(["A", "New"], ["id", "new"], 1)]
    database.query("MATCH (a {id: 1000}) REMOVE a:A, a.new")
    assert database.query(text).fetchall() == [(["New"], ["id"], 1)]
    database.query("MATCH (a {id: 1000}) DELETE a")
    assert database.query(text).fetchall() == []


@pytest.mark.parametrize("text", QUERIES)
def test_every_way(database: graphdb.Database, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(relation_sql, "described", lambda *_: None)
        expected = bag(in_python(database, text))
    found = every_route(database, text)
    assert found == dict.fromkeys(found, expected)
    with monkeypatch.context() as patched:  # rows are tables
        patched.setattr(materialized, "small_rows", lambda *_: None)
        patched.setattr(program_run, "run", lambda *_, **__: None)
        assert bag(database.query(text).fetchall()) == expected


def test_without_sql(database: graphdb.Database) -> None:
    profile = str(database.query(f"PROFILE {QUERIES[1]}").fetchall())
    assert "without SQL" in profile
    assert "the labels of v0, as bits" in profile


def test_labels_are_counted_without_looking_for_the_vertices_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """All are read at once: a graph of many labels has as many lists of vertices."""
    expected: Counter[tuple[str, ...]] = Counter()
    with graphdb.connect(device="cpu", threads=1) as database:
        for i in range(12):
            labels = sorted({f"L{i}", f"L{i * 5 % 12}", f"L{i // 3}"})
            database.query(f"UNWIND range(0, {i}) AS n CREATE (:{':'.join(labels)})-[:R]->()")
            expected[tuple(labels)] += i + 1
            expected[()] += i + 1
        monkeypatch.setattr(DataGraph, "members", None)
        rows = database.query("MATCH (n) RETURN labels(n) AS l, count(*)").fetchall()
    assert {tuple(labels): count for labels, count in rows} == expected
