"""Literals that are lists, matched as vertices: they are lists to functions and operators, not texts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import graphdb


@pytest.fixture
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(device="cpu") as db:
        db.query("CREATE (:A {x: [1, 2]}), (:A {x: 'ab'}), (:A {x: [1, 2]}), (:A {x: ['b', 'a', 'c']})")
        yield db


@pytest.mark.parametrize(
    "function", ["toUpper(l)", "toLower(l)", "trim(l)", "left(l, 1)", "split(l, ',')", "toString(l)"]
)
def test_a_function_of_texts_refuses_them(db: graphdb.Database, function: str) -> None:
    with pytest.raises(graphdb.GraphDBError, match="list"):
        db.query(f"MATCH (:A)-[:x]->(l) RETURN {function}")
    assert len(db.query("MATCH (:A)-[:x]->(l) RETURN l").fetchall()) == 4  # it stays usable


@pytest.mark.parametrize(
    ("of", "as_property"),
    [
        ("size(l)", "size(a.x)"),
        ("reverse(l)", "reverse(a.x)"),
        ("l + 'x'", "a.x + 'x'"),
        ("l = [1, 2]", "a.x = [1, 2]"),
        ("l <> 'ab'", "a.x <> 'ab'"),
        ("CASE WHEN l = 'ab' THEN 1 ELSE 2 END", "CASE WHEN a.x = 'ab' THEN 1 ELSE 2 END"),
        ("l IN [[1, 2]]", "a.x IN [[1, 2]]"),
    ],
)
def test_they_are_what_the_property_is(db: graphdb.Database, of: str, as_property: str) -> None:
    matched = db.query(f"MATCH (a:A)-[:x]->(l) RETURN {of}").fetchall()
    assert sorted(map(repr, matched)) == sorted(map(repr, db.query(f"MATCH (a:A) RETURN {as_property}").fetchall()))
    counted = db.query(f"MATCH (a:A)-[:x]->(l) WHERE size(l) = 2 AND ({of}) IS NOT NULL RETURN count(*)").scalar()
    assert counted == 3


def test_they_are_still_sorted_grouped_and_aggregated(db: graphdb.Database) -> None:
    match = "MATCH (:A)-[:x]->(l)"
    assert db.query(f"{match} RETURN count(DISTINCT l), count(l)").fetchall() == [(3, 4)]
    assert [n for _, n in db.query(f"{match} RETURN l, count(*) AS n ORDER BY n DESC").fetchall()] == [2, 1, 1]
    assert len(db.query(f"{match} RETURN l ORDER BY l").fetchall()) == 4
    assert len(db.query(f"{match} RETURN max(l), collect(l)").fetchall()[0][1]) == 4
