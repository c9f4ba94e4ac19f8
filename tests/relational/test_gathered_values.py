"""Lists, and values of several types, are gathered by the vertices' ids: no join fetches them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import graphdb

_SIZE = 300
_LISTS = [[i % 7, i % 5] if i % 3 else [] for i in range(_SIZE)]
_WORDS = [["a", 'b"', "\n"][: i % 4] for i in range(_SIZE)]
_MIXED: list[Any] = [i % 11 if i % 3 == 0 else i / 4 if i % 3 == 1 else f"t{i % 13}" for i in range(_SIZE)]
_SPARSE: list[Any] = [None if i % 5 < 3 else mixed for i, mixed in enumerate(_MIXED)]
_NUMBERS: list[Any] = [i % 11 if i % 2 else i / 4 for i in range(_SIZE)]


def _made(path: Path | None = None) -> graphdb.Database:
    database = graphdb.connect(path, device="cpu") if path else graphdb.connect(device="cpu")
    values = {"list": _LISTS, "words": _WORDS, "mixed": _MIXED, "number": _NUMBERS, "sparse": _SPARSE}
    rows = [{"id": i, **{key: column[i] for key, column in values.items()}} for i in range(_SIZE)]
    for kind in (int, float, str):
        for of in (int, float):
            some = [row for row in rows if type(row["mixed"]) is kind and type(row["number"]) is of]
            database.query("UNWIND $l AS r CREATE (n:V) SET n = r", {"l": some})
    return database


@pytest.fixture(scope="module")
def database() -> graphdb.Database:
    return _made()


def _by_id(database: graphdb.Database, expression: str) -> list[Any]:
    rows = dict(database.query(f"MATCH (n:V) RETURN n.id, {expression} AS x").fetchall())
    return [rows[i] for i in range(_SIZE)]


@pytest.mark.parametrize("key", ["list", "words", "mixed", "number", "sparse"])
def test_no_join_fetches_what_only_the_result_needs(database: graphdb.Database, key: str) -> None:
    plan = str(database.query(f"EXPLAIN MATCH (n:V) WHERE n.id < 200 RETURN n.id AS id, n.{key} AS x").fetchall())
    assert "JOIN" not in plan
    values = {"list": _LISTS, "words": _WORDS, "mixed": _MIXED, "number": _NUMBERS, "sparse": _SPARSE}
    expected = values[key]
    found = _by_id(database, f"n.{key}")
    assert found == expected
    assert [*map(type, found)] == [*map(type, expected)]


def test_lists_in_memory_are_what_lists_are(database: graphdb.Database) -> None:
    assert _by_id(database, "size(n.list[0..1]) + size([x IN n.list WHERE x > 2])") == [
        len(each[:1]) + sum(x > 2 for x in each) for each in _LISTS
    ]
    assert _by_id(database, "reduce(t = 0, x IN n.list | t + x)") == [*map(sum, _LISTS)]
    assert _by_id(database, "head(n.words)") == [(each or [None])[0] for each in _WORDS]
    counted = database.query("MATCH (n:V) RETURN n.list AS l, count(*)").fetchall()
    assert {tuple(each): n for each, n in counted} == {tuple(each): _LISTS.count(each) for each in _LISTS}
    ordered = database.query("MATCH (n:V) RETURN n.list AS l ORDER BY l DESC, n.id LIMIT 9").fetchall()
    assert [l for (l,) in ordered] == sorted(_LISTS, reverse=True)[:9]


def test_numbers_of_two_types_are_computed_with(database: graphdb.Database) -> None:
    assert _by_id(database, "n.number * 2 + 1") == [x * 2 + 1 for x in _NUMBERS]
    assert [*map(type, _by_id(database, "n.number - 1"))] == [*map(type, _NUMBERS)]
    assert _by_id(database, "n.number * 0.5") == [x * 0.5 for x in _NUMBERS]
    assert _by_id(database, "n.number ^ 2") == [x**2 for x in _NUMBERS]
    assert _by_id(database, "-n.number") == [-x for x in _NUMBERS]
    assert _by_id(database, "n.number + n.missing") == [None] * _SIZE
    assert _by_id(database, "n.number + 'x'")[1] == "1x"
    found = database.query("MATCH (n:V) WHERE n.number * 2 > 40 RETURN count(*)").fetchall()
    assert found == [(sum(x * 2 > 40 for x in _NUMBERS),)]
    with pytest.raises(graphdb.GraphDBError, match="division by zero"):
        database.query("MATCH (n:V) RETURN n.id / n.number").fetchall()
    with pytest.raises(graphdb.GraphDBError, match=r"\* needs numbers"):
        database.query("MATCH (n:V) RETURN n.mixed * 2").fetchall()


def test_values_that_are_set_are_gathered(tmp_path: Path) -> None:
    with _made(tmp_path / "graph.duckdb") as database:
        assert _by_id(database, "n.list") == _LISTS
        database.query("MATCH (n:V {id: 5}) SET n.list = [9, 8, 7], n.mixed = 'new', n.number = 0.5")
        changed = [*_LISTS[:5], [9, 8, 7], *_LISTS[6:]]
        assert _by_id(database, "n.list") == changed
        assert _by_id(database, "n.mixed")[5] == "new"
        assert _by_id(database, "n.sparse") == _SPARSE
        for id, value in ((3, None), (5, 0.25), (9, 7)):
            database.query("MATCH (n:V {id: $id}) SET n.sparse = $value", {"id": id, "value": value})
            assert _by_id(database, "n.sparse")[id] == value
        changed_too = [*_SPARSE[:3], None, _SPARSE[4], 0.25, *_SPARSE[6:9], 7, *_SPARSE[10:]]
        assert _by_id(database, "n.sparse") == changed_too
        database.query("MATCH (n:V {id: 6}) SET n.list = ['of', 'texts']")
        assert _by_id(database, "n.list")[5:7] == [[9, 8, 7], ["of", "texts"]]
        database.query("MATCH (n:V {id: 6}) REMOVE n.list")
        assert _by_id(database, "n.list")[5:8] == [[9, 8, 7], None, _LISTS[7]]
    with graphdb.connect(tmp_path / "graph.duckdb", device="cpu") as database:
        assert _by_id(database, "n.list")[4:6] == [_LISTS[4], [9, 8, 7]]
        assert _by_id(database, "n.number")[4:6] == [_NUMBERS[4], 0.5]
        assert _by_id(database, "n.sparse") == changed_too
        database.query("CREATE TABLE made AS MATCH (n:V) RETURN n.number AS x, n.sparse AS y")
        there = sum(each is not None for each in changed_too)
        assert database.sql("SELECT count(x), count(y) FROM made").fetchall() == [(_SIZE, there)]
