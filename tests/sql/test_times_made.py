"""Dates and times made of texts and maps that rows bring: by SQL, and as Python says wherever SQL reads them otherwise."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest

import graphdb
from graphdb.evaluate.compute import Computation

_TEXTS = [
    "2020-02-29", "0001-01-01", "9999-12-31", "2020-02-29T10:11:12", "2020-02-29T00:00:00.5Z", "1999-12-31T23:59:59+02:00",
    "2020-06-01T23:59:59.123456-05:30", "0001-01-01T00:00:00+14:59", "9999-12-31T23:59:59-14:00", "2020-01-01T00:00:00+00:00",
]  # fmt: skip
_OTHERS = [
    "2020-02-30", "20200229", "2020", "2020-W05", "2020-060", "0000-01-01", "+12020-01-01", "-0044-03-15", "2020-02-29T10",
    "2020-02-29T10:11", "2020-02-29T24:00:00", "2020-02-29T10:11:12.1234567Z", "2020-02-29T10:11:12+18:00", "abc", "",
    "2020-06-01T10:00:00+02:00[Europe/Stockholm]", "2020-06-01T10:00:00[Europe/Stockholm]", "2020-02-29T10:11:12z", " 2020-02-29",
    "2020-02-29t10:11:12", "2020-02-29 10:11:12", "2020-02-29T10:11:12,5", "10:11:12", "10:11:12.25", "2020-02-29T10:11:60Z",
]  # fmt: skip
_MADE = ["date", "localtime", "localdatetime", "datetime"]
_MAPS = [
    (2020, 2, 29, 10, 11, 12), (2021, 2, 29, 1, 1, 1), (1, 1, 1, 0, 0, 0), (9999, 12, 31, 23, 59, 59), (0, 1, 1, 0, 0, 0),
    (2020, 13, 1, 0, 0, 0), (2020, 1, 1, 24, 0, 0), (2020, 1, 1, 0, 60, 0), (-44, 3, 15, 0, 0, 0), (None, 1, 1, 0, 0, 0),
    (2020, None, 1, 0, 0, 0), (2020, 1, 1, 0, 0, None), (12020, 1, 1, 0, 0, 0),
]  # fmt: skip
_KEYS = ["year", "month", "day", "hour", "minute", "second"]


@pytest.fixture(scope="module")
def database() -> graphdb.Database:
    database = graphdb.connect(device="cpu")
    database.query("UNWIND $l AS t CREATE (:T {text: t})", {"l": _TEXTS + _OTHERS})
    return database


def _outcome(database: graphdb.Database, query: str, given: dict[str, Any]) -> object:
    try:
        return database.query(query, given).fetchall()
    except graphdb.GraphDBError as error:
        return error.message


@pytest.mark.parametrize("made", _MADE)
@pytest.mark.parametrize("text", _TEXTS + _OTHERS)
def test_a_text_of_rows_is_what_it_is_as_a_constant(database: graphdb.Database, made: str, text: str) -> None:
    constant = _outcome(database, f"RETURN {made}($t) AS x, toString({made}($t)) AS s", {"t": text})
    query = f"MATCH (n:T {{text: $t}}) RETURN {made}(n.text) AS x, toString({made}(n.text)) AS s"
    assert _outcome(database, query, {"t": text}) == constant


@pytest.mark.parametrize(("made", "most"), [("date", 3), ("localdatetime", 6), ("datetime", 6)])
@pytest.mark.parametrize("values", _MAPS)
def test_a_map_of_rows_is_what_it_is_as_a_constant(
    database: graphdb.Database, made: str, most: int, values: tuple[int | None, ...]
) -> None:
    for size in range(1, most + 1):
        given = dict(zip(_KEYS[:size], values, strict=False))
        constant = _outcome(database, f"RETURN {made}({{{', '.join(f'{k}: ${k}' for k in given)}}}) AS x", given)
        parts = f"{{{', '.join(f'{k}: row.{k}' for k in given)}}}"
        query = f"UNWIND [{{{', '.join(f'{k}: ${k}' for k in given)}}}] AS row RETURN {made}({parts}) AS x"
        assert _outcome(database, query, given) == constant, given


def test_python_makes_none_of_what_sql_reads(database: graphdb.Database) -> None:
    with patch.object(Computation, "_of_row", side_effect=AssertionError("one row after the other")):
        rows = database.query(
            "MATCH (n:T) WHERE n.text IN $l RETURN datetime(n.text).year AS y, count(*) AS n ORDER BY y",
            {"l": _TEXTS[3:]},
        ).fetchall()
        found = database.query("MATCH (n:T) WHERE n.text IN $l RETURN max(date(n.text))", {"l": _TEXTS[:3]}).fetchall()
        database.query("UNWIND range(1, 9) AS i RETURN localdatetime({year: 2000 + i, month: i, day: i, hour: i}) AS x")
    assert rows == [(1, 1), (1999, 1), (2020, 4), (9999, 1)]
    assert [str(day) for (day,) in found] == ["9999-12-31"]


def test_a_time_at_an_offset_is_read_so_in_a_transaction_too(database: graphdb.Database) -> None:
    query = "MATCH (n:T) WHERE n.text STARTS WITH '2020-06-01' RETURN toString(datetime(n.text)) AS s ORDER BY s"
    outside = database.query(query).fetchall()
    database.query("BEGIN")
    inside = database.query(query).fetchall()
    database.query("ROLLBACK")
    assert inside == outside
    zone = "2020-06-01T10:00+02:00[Europe/Stockholm]"
    assert [s for (s,) in outside] == [zone, zone, "2020-06-01T23:59:59.123456-05:30"]
