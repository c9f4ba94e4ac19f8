"""Statements of thousands of parts have their answers: what DuckDB would plan for too long is several SQL statements."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

import graphdb
from graphdb.common.errors import NotSupportedError
from tests.fuzz import scaled
from tests.oracle.routes import in_python
from tests.stops import answered


@pytest.fixture(scope="module")
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(threads=1, device="cpu") as database:
        database.query("CREATE (:P {k: 1})-[:K]->(:P {k: 2})-[:K]->(:P {k: 3})")
        yield database


def joined(pieces: list[str], between: str) -> str:
    return between.join(pieces)


FORMS: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "alternatives": (f"MATCH (n:P) WHERE {joined([f'n.k = {-i}' for i in range(-2, 1500)], ' OR ')} RETURN n.k", [(1,), (2,)]),
    "conditions": (f"MATCH (n:P) WHERE {joined([f'n.k <> {i}' for i in range(3, 1500)], ' AND ')} RETURN n.k", [(1,), (2,)]),
    "conditions on pairs": (
        f"MATCH (n:P), (m:P) WHERE {joined([f'n.k + {i} <> m.k' for i in range(450)], ' AND ')} RETURN n.k, m.k",
        [(2, 1), (3, 1), (3, 2)],
    ),
    "every second": (
        f"MATCH (n:P) WHERE {joined([f'n.k > {i}' for i in range(501)], ' XOR ')} RETURN n.k", [(1,), (3,)]
    ),
    "conditions on numbers": (
        f"UNWIND [1, 2, 3] AS x WITH x WHERE {joined([f'x <> {i}' for i in range(3, 700)], ' AND ')} RETURN x", [(1,), (2,)]
    ),
    "unions": (joined([f"RETURN {i % 3} AS x" for i in range(1000)], " UNION "), [(0,), (1,), (2,)]),
    "unions of types": (
        joined([f"RETURN {[0, 0.5, repr('a'), '[1]', 'null'][i % 5]} AS x" for i in range(200)], " UNION "),
        [(0,), (0.5,), ("a",), ([1],), (None,)],
    ),
    "unions of matches": (
        joined([f"MATCH (n:P) WHERE n.k > {i} RETURN n.k AS x" for i in range(100)], " UNION ALL "),
        [(1,), (2,), (2,), (3,), (3,), (3,)],
    ),
    "withs": ("WITH 1 AS x, 'a' AS y " + "WITH x + 1 AS x, y " * 1500 + "RETURN x, y", [(1501, "a")]),
    "unwinds": (joined([f"UNWIND [{i}] AS x{i}" for i in range(300)], " ") + " RETURN x0 + x299 AS x", [(299,)]),
    "within rows": (
        "UNWIND [1, 2] AS r CALL (r) { WITH r AS x " + "WITH x + 1 AS x " * 100 + "RETURN x } RETURN x", [(101,), (102,)]
    ),
    "orders": ("UNWIND [3, 1, 2] AS x " + "WITH x ORDER BY x DESC LIMIT 2 " * 100 + "RETURN collect(x) AS l", [([3, 2],)]),
    "matches": (joined([f"MATCH (n{i}:P {{k: 1}})" for i in range(150)], " ") + " RETURN n149.k", [(1,)]),
    "chain": (
        "MATCH (n0:P {k: 1}) "
        + joined([f"MATCH (n{i}){'<' if i % 2 else ''}-[:K]-{'' if i % 2 else '>'}(n{i + 1}:P)" for i in range(140)], " ")
        + " RETURN DISTINCT n140.k", [(1,)]
    ),
    "vertices": (
        f"MATCH {joined([f'(n{i}:P {{k: 1}})' for i in range(150)], ', ')}, (n9)-[:K]->(x) RETURN x.k", [(2,)]
    ),
    "edges": (f"MATCH {joined([f'(n{i})-[e{i}:K]->()' for i in range(130)], ', ')} RETURN count(*)", [(0,)]),
    "optional": (
        f"MATCH (p:P) OPTIONAL MATCH {joined([f'(n{i}:P {{k: p.k + 1}})' for i in range(130)], ', ')} RETURN p.k, n9.k",
        [(1, 2), (2, 3), (3, None)],
    ),
    "choices": (
        f"MATCH (n:P) RETURN CASE n.k {joined([f'WHEN {i} THEN {-i}' for i in range(2, 3000)], ' ')} END AS x",
        [(None,), (-2,), (-3,)],
    ),
    "items": (f"MATCH (n:P) RETURN size([{joined([f'n.k + {i}' for i in range(2000)], ', ')}]) AS x", [(2000,)] * 3),
    "keys": (f"MATCH (n:P {{k: 2}}) RETURN {{{joined([f'a{i}: n.k' for i in range(1500)], ', ')}}}.a1000 AS x", [(2,)]),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_large_statements_are_answered(db: graphdb.Database, form: str) -> None:
    text, expected = FORMS[form]
    assert sorted(map(repr, answered(db, text, within=60))) == sorted(map(repr, expected))


@pytest.mark.parametrize("seed", range(scaled(4)))
def test_alternatives_are_the_same_in_python(seed: int) -> None:
    dice = random.Random(seed)
    with graphdb.connect(threads=1, device="cpu") as db:
        db.query(
            "CREATE (:P {k: 1, s:'a'}), (:P {k: 2, s: 'b'}), (:P {s: 'c'}), (:P {k: 1.0}), (:P {k: 'a'}), (:P {k: 5})"
        )
        forms = ("n.k = {0}", "n.k = '{1}'", "n.s = '{1}'", "n.k > {0} + 300", "n.k = true", "n.k = {0}.0")
        tests = (dice.choice(forms).format(dice.randrange(-300, 300), dice.choice("abcxyz")) for _ in range(450))
        condition = " OR ".join(tests)
        text = f"MATCH (n:P) WITH n, {condition} AS x RETURN id(n), x"
        values = sorted(db.query(text))
        assert values == sorted(in_python(db, text))
        found = sorted(db.query(f"MATCH (n:P) WHERE {condition} RETURN id(n)"))
        assert found == [(id,) for id, holds in values if holds is True]


def test_a_large_connected_pattern_is_refused_with_a_hint(db: graphdb.Database) -> None:
    with pytest.raises(NotSupportedError, match="a pattern of more than 128 vertices or edges") as caught:
        db.query("MATCH (a)" + "-[:K]-()" * 140 + " RETURN count(*)")
    assert "several MATCH clauses" in str(caught.value)
    assert caught.value.column is not None
