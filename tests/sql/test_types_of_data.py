"""Types that only the data knows: an error is one of the rows that have a value of the wrong type, and of no others."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest

import graphdb
from graphdb.common.errors import ExecutionError, TypeMismatchError

VALUES = {"s": "abc", "i": 1, "f": 1.5, "b": True, "d": date(2020, 1, 2), "l": [1, 2]}

TAKES = {
    "-n.{}": "if",
    "n.{} * 2": "if",
    "2 - n.{}": "if",
    "abs(n.{})": "if",
    "toUpper(n.{})": "s",
    "[x IN n.{} | x]": "l",
    "n.{}[0]": "l",
    "n.{}[0..1]": "l",
    "[7, 8][n.{}]": "i",
    "NOT n.{}": "b",
    "n.{} AND n.id = 1": "b",
    "CASE WHEN n.{} THEN 1 END": "b",
    "n.{}.year": "d",
    "size(n.{})": "sl",
    "1 IN n.{}": "l",
    "reduce(t = 0, x IN n.{} | t + x)": "l",
    "sum(n.{})": "if",
    "avg(n.{})": "if",
}
"""Expressions, and the properties that they take."""


@pytest.fixture(scope="module")
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(device="cpu", threads=1) as database:
        database.query("CREATE (:With {id: 1, s: $s, i: $i, f: $f, b: $b, d: $d, l: $l}), (:Without {id: 1})", VALUES)
        database.query("CREATE (:Mixed {id: 1, m: 1}), (:Mixed {id: 2, m: 'a'}), (:Mixed {id: 3, m: [1]})")
        yield database


@pytest.mark.parametrize("expression", TAKES)
def test_a_wrong_type_is_an_error_of_the_rows_that_have_it(db: graphdb.Database, expression: str) -> None:
    for name in VALUES:
        written = expression.format(name)
        nothing = 0 if expression.startswith("sum") else None
        for condition in ("", "WHERE n.id < 5 "):
            query = f"MATCH (n:Without) {condition}RETURN {written} AS v"
            assert db.query(query).fetchall() == [(nothing,)], query
        query = f"MATCH (n:With) RETURN {written} AS v"
        if name in TAKES[expression]:
            assert db.query(query).fetchall() != [(None,)], query
            continue
        with pytest.raises((TypeMismatchError, ExecutionError)) as caught:
            db.query(query).fetchall()
        assert caught.value.column is not None, query
        guarded = f"MATCH (n:With) RETURN CASE WHEN n.id > 1 THEN {written} END AS v"
        if not expression.startswith(("sum", "avg")):
            assert db.query(guarded).fetchall() == [(None,)], guarded


@pytest.mark.parametrize(
    ("expression", "rows"),
    [
        ("n.m + 1", [2, "a1", [1, 1]]),
        ("[n.m, 'z']", [[1, "z"], ["a", "z"], [[1], "z"]]),
        ("CASE n.id WHEN 1 THEN -n.m WHEN 3 THEN n.m[0] END", [-1, None, 1]),
        ("n.id = 1 AND n.m * 2 = 2", [True, False, False]),
        ("coalesce(n.m, -n.m)", [1, "a", [1]]),
    ],
)
def test_mixed_properties(db: graphdb.Database, expression: str, rows: list[Any]) -> None:
    found = db.query(f"MATCH (n:Mixed) RETURN {expression} AS v ORDER BY n.id").fetchall()
    assert [value for (value,) in found] == rows


def test_null_is_of_no_type(db: graphdb.Database) -> None:
    query = "WITH null AS m RETURN m.a, m['a'], m[0], labels(m), type(null), id(null), toUpper(m), -m, m:With"
    assert db.query(query).fetchall() == [(None,) * 9]
    assert db.query("MATCH (n:Without) UNWIND n.s AS x RETURN x").fetchall() == []
