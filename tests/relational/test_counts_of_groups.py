"""Whole queries as subqueries, counted for each vertex by columns in memory, give what DuckDB's SQL gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

import graphdb
from graphdb.relational import query
from graphdb.relational.running import program_run
from graphdb.relational.vectors.run import run

SUBQUERIES = [
    "EXISTS {{ MATCH (a)-[:K]->(b:P) WITH count(b) AS n WHERE n {compared} RETURN n }}",
    "EXISTS {{ MATCH (a)-[:K]->(b) WITH sum(b.k) AS n, max(b.k) AS m WHERE n {compared} OR m IS NULL RETURN n }}",
    "EXISTS {{ MATCH (a)-[:K]->(b) WITH b, count(*) AS n WHERE n {compared} RETURN b }}",
    "EXISTS {{ MATCH (a)-[:K]->(b) WITH DISTINCT b.k AS k WHERE k {compared} RETURN k }}",
    "EXISTS {{ MATCH (a)-[:K]->(b) RETURN b UNION MATCH (a)<-[:L]-(b) RETURN b }}",
    "COUNT {{ MATCH (a)-[:K]->(b) RETURN b UNION MATCH (a)-[:L]->(b) RETURN b }}",
    "COUNT {{ MATCH (a)-[:K]->(b) RETURN b.k AS k UNION ALL MATCH (a)-[:L]->(b) WHERE b.k {compared} RETURN b.k AS k }}",
    "COUNT {{ MATCH (a)-[:K]->(b) RETURN b.k AS k, b.name AS name UNION MATCH (a)-[:L]->(b) RETURN b.k AS k, b.name AS name }}",
    "COUNT {{ MATCH (a)-[:K]->(b) WITH b.k AS k, count(*) AS n WHERE n {compared} RETURN k }}",
    "COUNT {{ MATCH (a)-[:K]->(b) RETURN DISTINCT b.k }}",
    "COUNT {{ MATCH (a)-[:K]->(b) RETURN count(DISTINCT b.k) AS n, avg(b.k) AS m, min(b.k) AS o }}",
    "COUNT {{ MATCH (a)-[:K]->(b) WITH min(b.k) AS k, avg(b.k) AS m MATCH (c:P {{k: k}}) RETURN c, m }}",
]  # fmt: skip
AROUND = [
    "MATCH (a:P) RETURN a.i, {0} AS n",
    "MATCH (a:P) WHERE {0} {compared} RETURN count(*), sum(a.i)",
    "MATCH (a:P) WITH a, {0} AS n, a.k AS k RETURN k, n, count(*)",
    "MATCH (a:P) WHERE a.k {compared} WITH a, {0} AS n MATCH (a)-[:K]->(c) RETURN a.i, n, c.i",
    "MATCH (a:P)-[:K]->(c) RETURN c.k, {0} AS n, count(*)",
    "MATCH (c:P) OPTIONAL MATCH (c)-[:L]->(a) RETURN c.i, {0} AS n",
]


@pytest.fixture(scope="module")
def database() -> Iterator[graphdb.Database]:
    draw = Random(19)
    with graphdb.connect(device="cpu", threads=1) as opened:
        rows = [
            {"i": i, "k": None if draw.random() < 0.2 else draw.randrange(6), "name": draw.choice("xyz")}
            for i in range(60)
        ]
        opened.query("UNWIND $rows AS r CREATE (a:P) SET a = r", rows=rows)
        for kind, count in (("K", 150), ("L", 40)):
            pairs = [[draw.randrange(50), draw.randrange(60)] for _ in range(count)]
            text = f"UNWIND $pairs AS p MATCH (a:P {{i: p[0]}}) MATCH (b:P {{i: p[1]}}) MERGE (a)-[:{kind}]->(b)"
            opened.query(text, pairs=pairs)
        yield opened


@pytest.mark.parametrize("around", AROUND)
def test_as_sql_counts_them(database: graphdb.Database, around: str, monkeypatch: pytest.MonkeyPatch) -> None:
    draw, made = Random(around), 0

    def counted(*given: Any, **more: Any) -> Any:
        nonlocal made
        found = run(*given, **more)
        made += found is not None
        return found

    for subquery in SUBQUERIES:
        compared = f"{draw.choice(['>', '=', '<', '<>'])} {draw.randrange(5)}"
        number = subquery.format(compared=compared)
        number = f"CASE WHEN {number} THEN 1 ELSE 0 END" if subquery.startswith("EXISTS") else number
        text = around.format(number, compared=compared)
        monkeypatch.setattr(program_run, "run", counted)
        mine = sorted(database.query(text).fetchall(), key=repr)
        monkeypatch.setattr(program_run, "run", lambda *_, **__: None)
        assert mine == sorted(database.query(text).fetchall(), key=repr), text
    assert made >= len(SUBQUERIES), "most were made by SQL"


def test_no_statement_of_sql_is_run(database: graphdb.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes no order, no list and one vertex needs none."""

    def selected(*_: object) -> None:
        raise AssertionError("it was asked of SQL")

    monkeypatch.setattr(query.QueryRun, "_selected", selected)
    for subquery in (SUBQUERIES[0], SUBQUERIES[4], SUBQUERIES[5], SUBQUERIES[8]):
        database.query(f"MATCH (a:P) WITH a, {subquery.format(compared='> 1')} AS n RETURN n, count(*)").fetchall()


@pytest.mark.parametrize("shared", ["a", "c", "ac"])
def test_conditions_on_several_vertices_are_tested_before_rows_are_joined(
    database: graphdb.Database, shared: str
) -> None:
    """Compared with the matches, and their properties, one by one."""
    vertices = {i: (k, name) for i, k, name in database.query("MATCH (a:P) RETURN a.i, a.k, a.name").fetchall()}
    matches = database.query("MATCH (a:P)-[:K]->(b)<-[:K]-(c:P) RETURN a.i, b.i, c.i").fetchall()

    def fulfilled(a: int, b: int, c: int) -> tuple[bool, bool]:
        (k, name), (other, _), (third, last) = vertices[a], vertices[b], vertices[c]
        less = k is not None and other is not None and k < other
        return less or name == last, None not in (k, third) and k + third > 5

    for at, condition in enumerate(("a.k < b.k OR a.name = c.name", "a.k + c.k > 5")):
        expected = Counter[tuple[int, ...]]()
        for a, b, c in matches:
            if fulfilled(a, b, c)[at]:
                expected[tuple({"a": a, "c": c}[name] for name in shared)] += 1
        start = "MATCH (a:P)" if shared == "a" else "MATCH (c:P)" if shared == "c" else "MATCH (a:P)-[:L|K]-(c:P)"
        keys = ", ".join(f"{name}.i" for name in shared)
        inner = f"{{ MATCH (a)-[:K]->(b)<-[:K]-(c:P) WHERE {condition} }}"
        inner = inner if shared != "c" else inner.replace("(a)", "(a:P)").replace("(c:P)", "(c)")
        found = database.query(f"{start} RETURN DISTINCT {keys}, COUNT {inner} AS n, EXISTS {inner} AS e").fetchall()
        assert {tuple(key): (n, e) for *key, n, e in found} == {
            tuple(key): (expected[tuple(key)], expected[tuple(key)] > 0) for *key, _, _ in found
        }
        assert any(n for *_, n, _ in found)
        plan = str(database.query(f"EXPLAIN {start} RETURN {keys}, COUNT {inner} AS n"))
        assert "group join" in plan


def test_conditions_that_fail_are_tested_of_rows_alone(database: graphdb.Database) -> None:
    """Bindings that no row has are not asked: a division by zero among them is nobody's error."""
    inner = "{ (a)-[:K]->(b)<-[:K]-(c) WHERE 7 / (a.k - c.k) > 1 }"
    text = f"MATCH (a:P)-[:K]->(c:P) WHERE a.k <> c.k RETURN a.i, c.i, COUNT {inner} AS n"
    assert any(n for *_, n in database.query(text).fetchall())
