"""Parameters of queries: values of Python and NumPy, vertices, lists and numbers of rows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import graphdb
from tests.people import names, opened, value


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[graphdb.Database]:
    with opened(tmp_path_factory.mktemp("queries")) as database:
        yield database


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (1, 1),
        (1.5, 1.5),
        (True, True),
        (None, None),
        ("é\U0001f600", "é\U0001f600"),
        ("x" * 1_000_000, "x" * 1_000_000),
        ("'; DROP TABLE t; --", "'; DROP TABLE t; --"),
        (date(2020, 1, 2), date(2020, 1, 2)),
        (datetime(2020, 1, 2, 3), datetime(2020, 1, 2, 3)),
        (time(1, 2), time(1, 2)),
        (Decimal("1.25"), Decimal("1.25")),
        ([1, None, "a"], [1, None, "a"]),
        ([], []),
        ((1, 2), [1, 2]),
        ([[1], [2]], [[1], [2]]),
        (np.int64(3), 3),
        (np.float32(1.5), 1.5),
        (np.bool_(True), True),
        (np.str_("x"), "x"),
        ([np.int64(1)], [1]),
        (np.array([1, 2]), [1, 2]),
        (np.datetime64("2020-01-02"), date(2020, 1, 2)),
        (np.datetime64("2020-01-02T03:00:00", "ns"), datetime(2020, 1, 2, 3)),
    ],
    ids=lambda given: repr(given)[:30],
)
def test_parameters_come_back(db: graphdb.Database, given: Any, expected: Any) -> None:
    found = value(db, "$x", x=given)
    assert found == expected
    assert type(found) is type(expected)


def test_vertices_as_parameters(db: graphdb.Database) -> None:
    ((ada,),) = db.query("MATCH (a {name: 'Ada'}) RETURN a")
    assert names(db, "MATCH (a) WHERE a = $x", x=ada) == ["Ada"]
    assert names(db, "MATCH (a) WHERE a IN $x", x=[ada]) == ["Ada"]
    assert names(db, "MATCH (a)-[:likes]->(b) WHERE b = $x", x=ada) == ["Bob"]
    ((blank,),) = db.query("MATCH (a {name: 'Blank'}) RETURN a")
    assert names(db, "MATCH (a) WHERE a = $x", x=blank) == ["Blank"]


def test_parameters_for_pages_and_lists(db: graphdb.Database) -> None:
    rows = db.query("MATCH (a) RETURN a.name ORDER BY a.name SKIP $s LIMIT $n", s=1, n=2).fetchall()
    assert rows == [("Ada",), ("Blank",)]
    assert names(db, "MATCH (a) WHERE a.age IN $ages", ages=list(range(5000))) == ["Ada", "Bob"]
    assert db.query("MATCH (a {name: $name}) RETURN a.age", {"name": "Ada"}).scalar() == 36
