"""Columns of properties and indexes of keys take in a batch within its transaction."""

from __future__ import annotations

from typing import Any
from unittest import mock

import graphdb
from graphdb.snapshot.key_index import KeyIndex
from graphdb.snapshot.properties import Properties

INTEGER = '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'
QUERIES = (
    "MATCH (a) WHERE a.age < 10 RETURN count(*)",
    "MATCH (a {number: 1077}) RETURN a.age",
    "MATCH (a {number: 77}) RETURN a.age",
    "MATCH (a) RETURN sum(a.number), count(a.age)",
)

Rows = list[tuple[str, str, str]]


def rows(first: int, last: int, more: int = 0) -> Rows:
    """An age and a number of each vertex: those of the vertex so many behind it, and a thousand times as many more."""
    numbers = range(first, last)
    ages = [(f"<ex:{i}>", "<ex:age>", INTEGER.format((i + more) % 50)) for i in numbers]
    return ages + [(f"<ex:{i}>", "<ex:number>", INTEGER.format(i + more * 1000)) for i in numbers]


def answers(db: graphdb.Database) -> list[Any]:
    """The queries' rows, each asked often enough that columns and indexes are made."""
    return [sorted(db.query(text).fetchall()) for text in QUERIES for _ in range(4)]


def test_a_batch_is_taken_in_within_its_transaction() -> None:
    with graphdb.connect() as db, graphdb.connect() as fresh:
        db.apply(rows(0, 3000))
        answers(db)
        db.apply(rows(0, 300, 1) + rows(3000, 3100), rows(0, 300))
        with (
            mock.patch.object(Properties, "_looked_up", side_effect=AssertionError),
            mock.patch.object(KeyIndex, "_read_anew", side_effect=AssertionError),
        ):
            found = answers(db)
        fresh.apply(rows(300, 3100) + rows(0, 300, 1))
        assert found == answers(fresh)


def test_a_batch_that_is_rolled_back_leaves_nothing() -> None:
    with graphdb.connect() as db:
        db.apply(rows(0, 3000))
        before = answers(db)
        for _ in range(2):
            db.query("BEGIN")
            db.apply(rows(0, 300, 1) + rows(3000, 3300), rows(0, 300))
            assert answers(db) != before
            db.query("ROLLBACK")
            assert answers(db) == before
