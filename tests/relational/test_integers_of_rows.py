"""Rows joined with bindings by integers: an item of a list, or a property, is a property of a vertex."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

import graphdb
from graphdb.relational.running import array_joins

PEOPLE = 3000


@pytest.fixture(scope="module")
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(threads=1) as database:
        database.query(f"UNWIND range(0, {PEOPLE - 1}) AS i CREATE (:P {{id: i, k: i % 7, boss: (i * 13) % 50}})")
        database.query("UNWIND range(0, 99) AS i CREATE (:P {id: 5000 + i}), (:Q {id: i % 10})")
        database.query("MATCH (a:P), (b:P) WHERE a.id < 40 AND b.id < 40 AND a.k = b.k CREATE (a)-[:r]->(b)")
        yield database


@pytest.mark.parametrize("length", [1200, 4000])
def test_items_of_a_list_find_vertices(db: graphdb.Database, length: int) -> None:
    text = "UNWIND $some AS x MATCH (p:P {id: x}) RETURN x, p.k AS k"
    for start in (0, 1000, 2900):  # one text, lists of other items
        some = [None if i % 11 == 5 else (start + i * 3) % 6000 for i in range(length)]
        found = Counter(db.query(text, some=some).fetchall())
        there = [x for x in some if x is not None and (x < PEOPLE or 5000 <= x < 5100)]
        assert found == Counter((x, x % 7 if x < PEOPLE else None) for x in there)


@pytest.mark.parametrize("some", [[*map(str, range(1500))], [i / 2 for i in range(1500)], [], [1, 2], [True] * 1200])
def test_items_of_other_types_in_the_same_text(db: graphdb.Database, some: list[object]) -> None:
    text = "UNWIND $some AS x MATCH (p:P {id: x}) RETURN count(p), count(x)"
    for given in ([*range(1500)], some, [*range(100, 2000)], some):
        integers = [x for x in given if type(x) in (int, float) and x == int(x) and x < PEOPLE]  # type: ignore[call-overload]
        assert db.query(text, some=given).fetchall() == [(len(integers), len(integers))]


def test_maps_and_several_lists(db: graphdb.Database) -> None:
    rows = [{"a": i, "b": i % 3} for i in range(1500)]
    text = "UNWIND $rows AS r MATCH (p:P {id: r.a}) WHERE p.k = r.b RETURN count(p)"
    assert db.query(text, rows=rows).scalar() == sum(i % 7 == i % 3 for i in range(1500))
    text = "UNWIND $one AS x UNWIND $other AS y MATCH (p:P {id: x + y}) RETURN sum(p.id)"
    assert db.query(text, one=[0, 1000] * 500, other=[1, 2]).scalar() == 500 * (1 + 2 + 1001 + 1002)


def test_lists_within_what_follows_a_match(db: graphdb.Database) -> None:
    text = "MATCH (q:Q) WITH count(q) AS c UNWIND $some AS x MATCH (p:P {id: x}) RETURN c, count(p)"
    assert db.query(text, some=[*range(2990, 4990)]).fetchall() == [(100, 10)]


@pytest.mark.parametrize("arrays", [True, False])
def test_properties_of_rows_are_properties_of_bindings(
    db: graphdb.Database, monkeypatch: pytest.MonkeyPatch, arrays: bool
) -> None:
    if not arrays:
        monkeypatch.setattr(array_joins, "_matched", lambda *given: None)
    text = "MATCH (a:P) WITH a, a.boss AS boss MATCH (b:P {id: boss}) RETURN a.id AS a, b.id AS b"
    assert sorted(db.query(text).fetchall()) == [(i, (i * 13) % 50) for i in range(PEOPLE)]
    text = (
        "MATCH (a:P) WHERE a.id < 40 WITH a, a.k AS k MATCH (a)-[:r]->(b:P) WHERE b.boss = k AND b.id > 5 "
        "RETURN count(*), sum(b.id)"
    )
    pairs = [(i, j) for i in range(40) for j in range(40) if i % 7 == j % 7 == (j * 13) % 50 and j > 5]
    assert db.query(text).fetchall() == [(len(pairs), sum(j for _, j in pairs) if pairs else 0)]
    text = "MATCH (a:P) WITH a, a.boss AS boss OPTIONAL MATCH (b:Q {id: boss}) RETURN count(a), count(b)"
    expected = [10 if (i * 13) % 50 < 10 else 0 for i in range(PEOPLE)] + [0] * 100
    assert db.query(text).fetchall() == [(sum(max(n, 1) for n in expected), sum(expected))]
