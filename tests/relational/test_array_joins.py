"""Rows joined with bindings by arrays give what DuckDB gives, however ids are numbered."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import graphdb
from graphdb.relational.running import array_joins, program_run

QUERIES = [
    "MATCH (a:P) WITH a ORDER BY a.k LIMIT 7 MATCH (a)-[:K]->(b) RETURN a.k, b.k",
    "UNWIND [1, 1, 2, 3] AS k MATCH (a:P {k: k}) MATCH (a)-[:K]->(b) RETURN k, a.k, b.k",
    "MATCH (a:P)-[:K]->(b) WITH a, b MATCH (a)-[:K]->(c)-[:K]->(b) RETURN a.k, b.k, c.k",
    "MATCH (a:P) OPTIONAL MATCH (a)-[:K]->(b) WITH a, b OPTIONAL MATCH (b)-[:L]->(c) RETURN a.k, b.k, c.k",
    "MATCH (a:P) OPTIONAL MATCH (a)-[:L]->(b) WITH a, b MATCH (x:P {k: 1}) RETURN a.k, b.k, x.k",
    "MATCH (a:P) OPTIONAL MATCH (a)-[:L]->(b) RETURN a.k, COUNT { (b)-[:K]->() } AS n, EXISTS { (a)-[:K]->(b) } AS e",
    "MATCH (a:P), (b:P) WHERE a.k < 3 RETURN a.k, b.k, COUNT { (a)-[:K]->()-[:K]->(b) } AS n, EXISTS { (b)-[:L]->() } AS e",
    "MATCH (a:P) OPTIONAL MATCH (a)-[:K]->(b)-[:L]->(c) WITH a, count(b) AS n MATCH (a)-[:K]->(d) RETURN a.k, n, d.k",
    "MATCH (a:P) WHERE a.k < 9 RETURN a.k, [(a)-[:K]->(b) WHERE b.k > a.k | b.k] AS l ORDER BY a.k",
    "MATCH (a:P) WHERE NOT EXISTS { (a)-[:L]->() } WITH a MATCH (a)-[r:K]->(b) RETURN a.k, r.w, [(b)-[:L]->(c) | c.k] AS l",
    "MATCH (a:P)-[:K]->(b) WITH a, b WHERE COUNT { (b)-[:K]->() } > 1 MATCH (b)-[:K]->(c) WHERE c.k > a.k RETURN a.k, c.k",
    "MATCH (a:P) WHERE EXISTS { (b:P {k: 3}) } AND NOT EXISTS { (:P {k: 99}) } RETURN a.k",
    "MATCH (a:P) RETURN a.k, COUNT { (b)-[:K]->(c) } AS n, COUNT { (b:P {k: 99}) } AS none, EXISTS { (:P {k: 99}) } AS e, EXISTS { ()-[:L]->() } AS f",
    "MATCH (a:P) OPTIONAL MATCH (a)-[:L]->(b) RETURN a.k, b.k, COUNT { (x:P) WHERE x.k > 3 } AS n, COUNT { (a)-[:K]->() } AS own",
]  # fmt: skip


@pytest.fixture(scope="module")
def db() -> Any:
    draw = random.Random(5)
    edges = [(draw.randrange(12), draw.randrange(12), draw.choice("KKKL"), i) for i in range(40)]
    with graphdb.connect() as database:
        database.query("UNWIND range(0, 11) AS k CREATE (:P {k: k})")
        for type in "KL":
            rows = [{"s": s, "t": t, "w": w} for s, t, kind, w in edges if kind == type]
            text = f"UNWIND $rows AS r MATCH (a:P {{k: r.s}}), (b:P {{k: r.t}}) CREATE (a)-[:{type} {{w: r.w}}]->(b)"
            database.query(text, rows=rows)
        yield database


def rows_of(db: graphdb.Database, text: str) -> list[Any]:
    found = [
        [sorted(value) if isinstance(value, list) else value for value in row] for row in db.query(text).fetchall()
    ]
    return sorted(found, key=repr)


@pytest.mark.parametrize("text", QUERIES)
def test_arrays_join_rows_as_duckdb_does(db: graphdb.Database, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [rows_of(db, text)]
    default = array_joins._LARGE
    for spread, large in ((1 << 20, default), (0, default), (0, 0), (1 << 20, 0)):
        monkeypatch.setattr(array_joins, "_SMALL", 0)
        monkeypatch.setattr(array_joins, "_SPREAD", spread)
        monkeypatch.setattr(array_joins, "_LARGE", large)
        monkeypatch.setattr(array_joins, "_FEWER", 0)
        found.append(rows_of(db, text))
    joined: list[bool] = []
    monkeypatch.setattr(program_run, "joined", lambda *_: joined.append(True))
    by_sql = rows_of(db, text)
    assert joined, "nothing is joined by arrays"
    assert by_sql
    assert found == [by_sql] * 5


OPERANDS = [
    ("b.k", "a.k + 1"),
    ("b.k", "(a.k * 5 + 1) % 12"),
    ("b.k", "-a.k"),
    ("b.k", "abs(a.k - 6)"),
    ("b.k", "a.k * 0.5"),
    ("b.k", "toInteger(toString(a.k) + '0')"),
    ("toString(b.k)", "toString(a.k) + '0'"),
    ("b.k + 1", "a.k * 2"),
    ("b.k * 0.5", "a.k - 1"),
    ("abs(b.k - 6)", "abs(a.k - 3) + 1"),
]


@pytest.mark.parametrize(("one", "other"), OPERANDS)
def test_what_is_computed_of_rows_is_a_column_that_they_are_joined_by(
    db: graphdb.Database, one: str, other: str
) -> None:
    """Computed on each pair of a row and a binding, it makes a join of both take the product of their numbers."""
    text = f"MATCH (a:P), (b:P) WHERE {one} = {other} RETURN a.k, b.k"
    product = f"MATCH (a:P), (b:P) RETURN a.k, b.k, {one} = {other} AS same"
    expected = sorted((row[:2] for row in rows_of(db, product) if row[2]), key=repr)
    assert rows_of(db, text) == rows_of(db, text.replace(f"{one} = {other}", f"{other} = {one}")) == expected
    assert len(expected) > 0
    optional = f"MATCH (a:P) OPTIONAL MATCH (b:P) WHERE {one} = {other} RETURN a.k, b.k"
    alone = [[k, None] for k in range(12) if k not in [row[0] for row in expected]]
    assert rows_of(db, optional) == sorted(expected + alone, key=repr)
    assert are_columns(db, text), "DuckDB makes a hash join of columns that are equal"


def test_items_of_lists_are_columns_that_rows_are_joined_by(db: graphdb.Database) -> None:
    """Edges that are written down as lists of two keys: tested on each pair, some thousands took minutes."""
    ends = [[k, (5 * k + 1) % 12] for k in range(12)] + [[3, None], [100, 1]]
    text = "UNWIND $ends AS e MATCH (a:P {k: e[0]}) MATCH (b:P {k: e[1]}) RETURN a.k, b.k"
    assert sorted(db.query(text, ends=ends).fetchall()) == sorted((a, b) for a, b in ends if b is not None and a < 12)
    plan = "\n".join(str(row[0]) for row in db.query(f"EXPLAIN {text}", ends=ends).fetchall())
    assert "ON TRUE" not in plan


def are_columns(db: graphdb.Database, text: str) -> bool:
    plan = "\n".join(str(row[0]) for row in db.query(f"EXPLAIN {text}").fetchall())
    return "$" not in plan.split("then SQL")[1]


SIDES = ["{x}.k", "{x}.k + {n}", "{x}.k * {n} - 3", "abs({x}.k - {n})", "{x}.k / {n}.0", "-{x}.k", "{x}.k % 5 + {n}"]


def test_what_is_computed_of_both_sides_is_compared_as_on_each_pair(db: graphdb.Database) -> None:
    draw = random.Random(3)
    for _ in range(60):
        conditions = []
        for _ in range(draw.randint(1, 2)):
            a, b = (draw.choice(SIDES).format(x=x, n=draw.randint(1, 9)) for x in "ab")
            conditions.append(f"{a} {draw.choice(['=', '<', '<=', '>', '>=', '<>'])} {b}")
        where = " AND ".join(conditions)
        product = rows_of(db, f"MATCH (a:P), (b:P) RETURN a.k, b.k, {where} AS holds")
        expected = sorted((row[:2] for row in product if row[2]), key=repr)
        assert rows_of(db, f"MATCH (a:P), (b:P) WHERE {where} RETURN a.k, b.k") == expected, where
        found = [
            row
            for row in rows_of(db, f"MATCH (a:P) OPTIONAL MATCH (b:P) WHERE {where} RETURN a.k, b.k")
            if row[1] is not None
        ]
        assert found == expected, where
        counts = db.query(f"MATCH (a:P) RETURN a.k, COUNT {{ (b:P) WHERE {where} }} AS n").fetchall()
        assert sorted(counts) == [(k, sum(row[0] == k for row in expected)) for k in range(12)], where


def test_an_interval_is_a_join_of_columns(db: graphdb.Database) -> None:
    """Of columns one of which is less than the other DuckDB makes a join of sorted ones."""
    text = "MATCH (a:P), (b:P) WHERE a.k < b.k AND b.k < a.k + 3 RETURN a.k, b.k"
    assert are_columns(db, text)
    assert rows_of(db, text) == sorted(([a, b] for a in range(12) for b in range(a + 1, min(a + 3, 12))), key=repr)


@pytest.mark.parametrize("where", ["10 / a.k < b.k + 1", "b.k - 1 = 10 / a.k", "a.k * 9223372036854775807 = b.k + 1"])
def test_what_is_computed_of_one_side_fails_only_if_there_is_the_other(db: graphdb.Database, where: str) -> None:
    for text in (
        "MATCH (a:P), (b:P)-[:K|L {w: -1}]->(b) WHERE %s RETURN a.k",
        "MATCH (b:P)-[:K {w: -1}]->(b) MATCH (a:P) WHERE %s RETURN a.k",
    ):
        assert rows_of(db, text % where) == []
    guarded = where.replace("a.k", "(a.k - c.k)") + " AND a.k <> c.k AND a.k - c.k < 2"
    sides = "(a:P)-[:K]->(c:P)", "(b:P)"
    if "9223" not in where:
        found = [
            rows_of(db, f"MATCH {x} MATCH {y} WHERE {guarded} RETURN a.k, b.k, c.k") for x, y in (sides, sides[::-1])
        ]
        assert found[0] == found[1] != []
    with pytest.raises(graphdb.GraphDBError, match=r"by zero|out of range"):
        db.query(f"MATCH (a:P), (b:P) WHERE {where} RETURN a.k")


def test_columns_of_bindings_with_one_row_each_are_not_copied() -> None:
    """So they may be more than the pairs that are."""
    rows, bindings = [np.arange(5)], [np.array([3, 3, 1])]
    pairs = array_joins._pairs(rows, bindings, None, 5, 3, 0, 3)
    assert pairs is not None
    assert pairs[0].tolist() == [3, 3, 1]
    assert pairs[1] is None
    assert array_joins._pairs(rows, bindings, None, 5, 3, 3, 2) is None
    assert array_joins._pairs(rows, [np.array([3, 9, 1])], None, 5, 3, 1, 3) is None, "two are copied"
