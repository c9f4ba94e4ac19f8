"""``IN`` of lists of any values: found by hashes, and what openCypher says of null and of numbers of two types."""

from __future__ import annotations

import datetime
import io
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import graphdb
from graphdb.evaluate.compute import Computation

_DAY = datetime.date(2020, 2, 3)
_TABLES = (
    "id:ID{long},mix:int,whole:int,real:float,text,day:date\n0,1,1,1.0,a,2020-02-03\n1,7,,7.5,b,2021-02-03\n2,3,9,,c,\n",
    "id:ID{long},mix:float,whole:int,real:float,text,day:date\n3,2.5,2,3.0,,2020-02-03\n4,4.0,4,2.5,d,2020-02-04\n",
    "id:ID{long},mix:string,whole:int\n5,a,5\n6,1,6\n7,x,9007199254740993\n",
)
_FILLER = [f"filler {i}" for i in range(120)]
_LISTS: dict[str, list[Any]] = {
    "integers": [*range(5, 1200), 1],
    "integers and null": [None, *range(5, 1200), 1],
    "texts and null": [*_FILLER, "a", None],
    "several": [*_FILLER, 1, 2.5, True, "a", 3.0, 9007199254740992.0, _DAY],
    "several and null": [*_FILLER, 4, 7.5, None, False, "x"],
    "floats": [*(i + 0.5 for i in range(150)), float("nan"), float("inf"), 4.0],
    "days": [_DAY + datetime.timedelta(100 * i) for i in range(110)],
    "nulls": [None] * 130,
}


@pytest.fixture(scope="module")
def database() -> graphdb.Database:
    database = graphdb.connect(device="cpu")
    database.load([graphdb.Table(io.BytesIO(each.encode()), format="csv", label="V") for each in _TABLES])
    return database


def _is_in(value: Any, items: list[Any]) -> bool | None:
    """What openCypher says: numbers are equal whatever their types, a truth value is no number."""
    if value is None:
        return None
    found = any(value == item and isinstance(value, bool) == isinstance(item, bool) for item in items)
    return True if found else None if None in items else False


@pytest.mark.parametrize("name", _LISTS)
@pytest.mark.parametrize("key", ["mix", "whole", "real", "text", "day"])
def test_a_value_is_one_of_a_long_list(database: graphdb.Database, name: str, key: str) -> None:
    given = {"l": _LISTS[name]}
    values = dict(database.query(f"MATCH (v:V) RETURN v.id, v.{key}").fetchall())
    expected = {id: _is_in(value, given["l"]) for id, value in values.items()}
    with patch.object(Computation, "_of_row", side_effect=AssertionError("one row after the other")):
        answers = dict(database.query(f"MATCH (v:V) RETURN v.id, v.{key} IN $l", given).fetchall())
        positive = database.query(f"MATCH (v:V) WHERE v.{key} IN $l RETURN v.id", given).fetchall()
        negative = database.query(f"MATCH (v:V) WHERE NOT v.{key} IN $l RETURN v.id", given).fetchall()
    assert answers == expected
    assert sorted(positive) == sorted((id,) for id, found in expected.items() if found)
    assert sorted(negative) == sorted((id,) for id, found in expected.items() if found is False)


@pytest.mark.parametrize("of", [np.array, set, tuple])
def test_what_a_list_is_given_as_makes_no_difference(database: graphdb.Database, of: Any) -> None:
    given = {"l": of(list(range(2, 2000)))}
    assert database.query("MATCH (v:V) WHERE v.whole IN $l RETURN count(*)", given).fetchall() == [(5,)]


@pytest.mark.parametrize("wrong", [1 << 70, "\ud800"])
def test_an_item_that_is_no_value_is_refused(database: graphdb.Database, wrong: Any) -> None:
    items = [wrong] * 1000
    with pytest.raises(graphdb.ParameterError):
        database.query("MATCH (v:V) WHERE v.whole IN $l OR v.text IN $l RETURN v.id", {"l": items}).fetchall()


def test_a_list_is_one_of_a_long_list_of_lists(database: graphdb.Database) -> None:
    given = {"l": [[i, i + 1] for i in range(3, 130)] + [[5], [6, 2], []]}
    query = "MATCH (v:V) RETURN v.id, [v.id, v.whole] IN $l, [v.id] IN $l, CASE WHEN v.id > 3 THEN [v.whole] END IN $l"
    with patch.object(Computation, "_of_row", side_effect=AssertionError("one row after the other")):
        rows = {row[0]: row[1:] for row in database.query(query, given).fetchall()}
    assert [rows[id] for id in (4, 5, 6, 7)] == [(False,) * 3, (False, True, True), (False,) * 3, (False,) * 3]
    assert rows[0] == rows[1] == (False, False, None)  # [1, null] is none: 1 begins no list
    query = "MATCH (v:V) RETURN v.id, [v.id + 5, v.whole] IN $l"
    with patch.object(Computation, "_of_row", side_effect=AssertionError("one row after the other")):
        assert dict(database.query(query, given).fetchall())[1] is None  # [6, null] may be [6, 7]
