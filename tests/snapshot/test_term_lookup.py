"""Terms looked up in memory equal what SQL says they are: nodes, values, tables, whatever the data and settings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import graphdb
from graphdb.data import GEOGRAPHY
from graphdb.snapshot import terms
from graphdb.snapshot.terms import Lookup
from graphdb.storage.arrays.python_values import pylist

XSD = "http://www.w3.org/2001/XMLSchema#"
LINES = f"""
<http://e/a> <http://e/p> <http://e/b> .
<http://e/b> <http://e/p> <http://e/c> .
<http://e/a> <http://e/p> "a text" .
<http://e/a> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://e/Z> .
<http://e/a> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://e/A> .
<http://e/a> <http://e/name> "zwei"@de .
<http://e/a> <http://e/name> "eins"@de .
<http://e/a> <http://e/size> "10"^^<{XSD}integer> .
<http://e/a> <http://e/size> "9.50"^^<{XSD}decimal> .
<http://e/a> <http://e/size> "1e3"^^<{XSD}double> .
<http://e/b> <http://e/size> "-7"^^<{XSD}integer> .
<http://e/b> <http://e/when> "2001-02-03"^^<{XSD}date> .
<http://e/b> <http://e/when> "0001-01-01T00:00:00"^^<{XSD}dateTime> .
<http://e/b> <http://e/when> "2020-06-01T12:00:00Z"^^<{XSD}dateTime> .
<http://e/c> <http://e/when> "99999-02-03"^^<{XSD}date> .
<http://e/c> <http://e/odd> "x"^^<http://e/mine> .
<http://e/c> <http://e/odd> "true"^^<{XSD}boolean> .
_:blank <http://e/p> <http://e/a> .
""".strip()

QUERIES = [
    "MATCH (a)-[:p]->(b) RETURN a, b",
    "MATCH (a)-[:size]->(b) RETURN a, b",
    "MATCH (a)-[:name]->(b) RETURN b, a.size",
    "MATCH (a)-[:when]->(b) RETURN b AS x",
    "MATCH (a)-[e:p|name|when]->(b) RETURN e, a",
    "MATCH (a:A) RETURN a, a.name, a.odd",
    "MATCH (a)-[:<http://e/no>]->(b) RETURN a",
    "MATCH (a) RETURN count(*) AS n, collect(a) AS all_of_them",
    "RETURN 1 AS one",
]

PLACES = [
    "MATCH (a:Country) RETURN a SKIP 3 LIMIT 40",
    "MATCH (a:City)-[:parentCountry]->(b) RETURN a, b, a.name LIMIT 200",
    "MATCH (a:Country)-[:name]->(text) RETURN text",
    "MATCH (a:Country)-[:population]->(n) RETURN n, a.name",
    "MATCH (a:Country)-[e]->(b) RETURN e, b LIMIT 50",
]


@pytest.fixture
def db(tmp_path: Path) -> Iterator[graphdb.Database]:
    (tmp_path / "some.nt").write_text(LINES)
    with graphdb.connect() as database:
        database.load(tmp_path / "some.nt")
        yield database


@pytest.fixture(scope="module")
def places() -> Iterator[graphdb.Database]:
    with graphdb.connect() as database:
        database.load(GEOGRAPHY)
        yield database


def seen(db: graphdb.Database, text: str) -> tuple[object, ...]:
    """All that a caller sees of a result, in any order of the rows: only ORDER BY promises one."""
    result = db.query(text)
    table = result.presented()
    rows = zip(*map(pylist, table.columns), strict=True)
    printed = result.text(1000).splitlines()
    return sorted(map(repr, map(_whole, result))), sorted(map(repr, rows)), table.schema, sorted(printed)


def _whole(row: tuple[object, ...]) -> list[object]:
    return [(v.iri, v.labels, dict(v.properties)) if isinstance(v, graphdb.Node) else v for v in row]


def compare(db: graphdb.Database, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(Lookup, "ready", lambda *_, **__: False)
        by_sql = seen(db, text)
    with monkeypatch.context() as patched:
        patched.setattr(Lookup, "ready", lambda *_, **__: True)
        assert seen(db, text) == by_sql


@pytest.mark.parametrize("text", QUERIES)
def test_terms_of_every_kind(db: graphdb.Database, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compare(db, text, monkeypatch)


@pytest.mark.parametrize("text", PLACES)
def test_terms_of_the_geography(places: graphdb.Database, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compare(places, text, monkeypatch)


def test_it_is_used_from_the_second_question_on_and_where_it_fits() -> None:
    with graphdb.connect() as db:
        db.load(GEOGRAPHY)
        snapshot = db._state.snapshot()
        assert [snapshot.lookup.ready(wanted=1) for _ in range(3)] == [False, True, True]
        small = Lookup(snapshot.connection, snapshot.store, 1 << 20)
        assert [small.ready(wanted=1) for _ in range(3)] == [False, False, False]


def test_each_part_that_fits_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a large dictionary once a share of it was asked for: to read all IRIs for one takes longer."""
    with graphdb.connect() as db:
        db.load(GEOGRAPHY)
        snapshot = db._state.snapshot()
        iris = 64 * snapshot.store.resources
        for room, resources, literals in ((iris - 1, False, False), (iris, True, False), (1 << 30, True, True)):
            lookup = Lookup(snapshot.connection, snapshot.store, room)
            assert [lookup.ready("resources", wanted=1) for _ in range(2)] == [False, resources]
            assert lookup.ready("resources", "literals", wanted=1) == literals
            assert lookup.ready(wanted=1) == literals
        monkeypatch.setattr(terms, "_MANY", snapshot.store.resources)
        lookup = Lookup(snapshot.connection, snapshot.store, iris)
        share = snapshot.store.resources // 160
        assert [lookup.ready("resources", wanted=share) for _ in range(3)] == [False, False, True]


def test_results_are_the_same_where_some_parts_fit(db: graphdb.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    for text in QUERIES:
        expected = seen(db, text)
        for parts in ([], ["resources"], ["resources", "literals"]):
            with monkeypatch.context() as patched:
                patched.setattr(db._state.snapshot().lookup, "_fits", set(parts))
                assert seen(db, text) == expected


def test_small_dictionaries_are_used_at_once(db: graphdb.Database) -> None:
    snapshot = db._state.snapshot()
    assert [snapshot.lookup.ready(wanted=1) for _ in range(2)] == [True, True]
    none = Lookup(snapshot.connection, snapshot.store, 0)  # a former version: nothing of it is in memory
    assert not none.ready(wanted=1)


def test_new_data_is_seen(db: graphdb.Database, tmp_path: Path) -> None:
    text = "MATCH (a <http://e/a>)-[:p]->(b <http://e/b>) RETURN a"
    for _ in range(3):
        ((node,),) = db.query(text).fetchall()
        assert node.properties["http://e/name"] == ["eins", "zwei"]
        assert node.labels == ("http://e/A", "http://e/Z")
    (tmp_path / "more.nt").write_text(
        '<http://e/a> <http://e/name> "drei" .\n<http://e/a> <http://e/new> <http://e/d> .'
    )
    db.load(tmp_path / "more.nt")
    for _ in range(3):
        ((node,),) = db.query(text).fetchall()
        assert node.properties["http://e/name"] == ["drei", "eins", "zwei"]
        ((d,),) = db.query("MATCH (a)-[:new]->(d) RETURN d").to_polars().rows()
        assert d == {"id": "http://e/d", "labels": [], "properties": None}


def test_the_time_zone_is_the_one_that_is_set(db: graphdb.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lookup, "ready", lambda *_, **__: True)
    text = "MATCH (a)-[:when]->(b) RETURN b"
    for zone in ("UTC", "Asia/Tokyo", "UTC"):
        db.sql(f"SET TimeZone = '{zone}'")
        compare(db, text, monkeypatch)


def test_iris_are_scanned_for_and_then_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    iris = ["http://e/", "http://e/a", "http://e/aa", "http://e/Z", "http://e/é", "http://e/ﻮ", "http://e/\U0001f600"]
    (tmp_path / "some.nt").write_text("".join(f"<{iri}> <urn:p> <http://e/a> .\n" for iri in iris))
    with graphdb.connect() as db:
        db.load(tmp_path / "some.nt")
        lookup = db._state.snapshot().lookup
        asked = [*iris, "", "http://d", "http://e/ab", "http://e/\U0001f601"]
        scanned = lookup.ids(asked)
        assert scanned.keys() == {*iris}
        lookup._scanning = 1.0
        assert lookup.ids(asked) == scanned
        monkeypatch.setattr(lookup, "_connection", None)  # it scans no more
        assert lookup.ids(asked) == scanned
