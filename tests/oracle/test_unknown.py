"""Conditions on properties that are missing, or have several values: WHERE keeps the rows that they are true for.

The oracle is the same condition as a value of each row, where no condition is tested before the match; and as Python
computes it, which knows nothing of SQL's nulls.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import graphdb
from tests.oracle.databases import loaded
from tests.oracle.routes import in_python

GRAPH = """
@prefix : <urn:x:> .
:a a :A ; :id 1 ; :k 1, "a" ; :y "a" .
:b a :A ; :id 2 ; :k 2 .
:c a :A ; :id 3 ; :y "b" .
"""
LISTS: dict[str, Any] = {"empty": [], "other": [9, None], "some": ["a"], "null": [None]}
CONDITIONS = (
    *(f"n.{key} IN ${name}" for key in "ky" for name in LISTS),
    *(f"NOT n.{key} IN ${name}" for key in "ky" for name in LISTS),
    "n.y = 'a' OR NOT n.y IN $empty",
    "NOT (n.y = 'a' AND n.y IN $empty)",
    "n.y IN $empty = false",
    "NOT n.y IN range(1, 0)",
    "NOT n.y IN split('', '')",
    "NOT toString(n.y) IN $empty",
    "NOT n.y IN $empty + $empty",
    "NOT n.k > 5",
    "NOT n.k STARTS WITH 'z'",
    "NOT exists(n.y)",
    "NOT {a: n.y} = {}",
    "reduce(s = 0, x IN $empty | s + size(n.y)) = 0",
    "none(x IN $empty WHERE x = n.y)",
)


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[graphdb.Database]:
    with loaded(tmp_path_factory.mktemp("unknown"), [GRAPH.splitlines()]) as (db,):
        yield db


@pytest.mark.parametrize("condition", CONDITIONS)
def test_where_keeps_what_is_true(db: graphdb.Database, condition: str) -> None:
    arguments = {name: value for name, value in LISTS.items() if f"${name}" in condition}
    found = db.query(f"MATCH (n:A) WHERE {condition} RETURN n.id ORDER BY n.id", **arguments).fetchall()
    values = db.query(f"MATCH (n:A) RETURN n.id, {condition} ORDER BY n.id", **arguments).fetchall()
    rows = f"MATCH (n:A) WITH collect(n) AS all UNWIND all AS n RETURN n.id, {condition} ORDER BY n.id"
    assert values == in_python(db, rows, arguments)
    assert found == [(id,) for id, holds in values if holds is True]


def test_arguments_tell_what_is_empty(db: graphdb.Database) -> None:
    """One prepared query, whose list is empty now and then."""
    for names, expected in [(["a"], 1), ([], 3), (["b"], 1), ([None], 0), ([], 3)]:
        assert db.query("MATCH (n:A) WHERE NOT n.y IN $names RETURN count(*)", names=names).scalar() == expected
