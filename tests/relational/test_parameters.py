"""Parameters of queries: values of Python and NumPy, vertices, lists and numbers of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime, time
from decimal import Decimal
from enum import IntEnum
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphdb
from tests.fuzz import scaled
from tests.people import names, opened, value


class Level(IntEnum):
    """An integer of a subclass, for which Python would look through a range number by number."""

    LOW = 2**40


class Name(str):
    """A text of a subclass."""


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
        (Level.LOW, 2**40),
        ([Level.LOW, None], [2**40, None]),
        (Name("x"), "x"),
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


_values = st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from([0.5, 2.0]), st.sampled_from("ab"))
_of_one_type = st.one_of(st.integers(-3, 3), st.none())
_maps = st.one_of(
    st.lists(st.fixed_dictionaries({"k": _of_one_type, "v": st.sampled_from("ab")}), max_size=8),
    st.lists(st.dictionaries(st.sampled_from("kv"), _values, max_size=2), max_size=4),
)


@settings(max_examples=scaled(60), deadline=None)
@given(_maps)
def test_lists_of_maps(db: graphdb.Database, rows: list[dict[str, Any]]) -> None:
    """Lists of maps are unwound, and vertices found by what is in them, as Python does it."""
    found = db.query("UNWIND $rows AS r RETURN r, r.k, r.other", rows=rows).fetchall()
    assert [repr((sorted(row.items()), k, other)) for row, k, other in found] == [
        repr((sorted(row.items()), row.get("k"), None)) for row in rows
    ]
    ages = db.query("MATCH (a) WHERE a.age IS NOT NULL RETURN a.age % 7 - 3, a.name").fetchall()
    found = db.query(
        "UNWIND $rows AS r MATCH (a) WHERE a.age IS NOT NULL AND a.age % 7 - 3 = r.k RETURN r.v, a.name", rows=rows
    ).fetchall()
    numbers = [row for row in rows if not isinstance(row.get("k"), bool)]
    expected = [(row.get("v"), name) for row in numbers for age, name in ages if age == row.get("k")]
    assert Counter(map(repr, found)) == Counter(map(repr, expected))


def test_a_short_list_of_maps_gives_the_vertices_of_a_match() -> None:
    """However few the maps are: vertices are looked up by a key of theirs, not compared one by one."""
    with graphdb.connect(device="cpu") as database:
        database.query("UNWIND range(1, 1000) AS i CREATE (:P {id: i})")
        rows = [{"id": 5, "v": "five"}, {"id": 7, "v": "seven"}]
        text = "UNWIND $rows AS r MATCH (n:P {id: r.id}) RETURN n.id, r.v"
        assert database.query(text, rows=rows).fetchall() == [(5, "five"), (7, "seven")]
        plan = "\n".join(line for (line,) in database.query(f"EXPLAIN {text}", rows=rows))
        assert "planned when the rows give n" in plan
        assert "computed in Python" not in plan
