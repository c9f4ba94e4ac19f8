"""Numbers and times of tables are handed over as values: the dictionary has of them what it reads in their texts."""

from __future__ import annotations

import struct
from typing import Any

import pytest

import graphdb
from graphdb.common.values.terms import XSD, Kind

DOUBLES = {
    "0.1": "0.1",
    "-2.5": "-2.5",
    "5.0": "5.0",
    "0.0": "0.0",
    "-0.0": "-0.0",
    "1e300": "1e+300",
    "5e-324": "5e-324",
    "1.7976931348623157e308": "1.7976931348623157e+308",
    "9007199254740993": "9007199254740992.0",
    "inf": "INF",
    "-inf": "-INF",
    "nan": "NaN",
}
"""Floats as texts of SQL, and how they are written."""

DAYS = {"1970-01-01": 0, "1969-12-31": -1, "0001-01-01": -719162, "9999-12-31": 2932896, "2024-02-29": 19782}
"""Days, and how many they are after 1970."""

DAY = 86_400_000_000


def rows(db: Any, values: str, type: str) -> list[Any]:
    """Load values of SQL as a property; return what the dictionary has of them, floats by their bits."""
    db.load([graphdb.Table(sql=f'SELECT row_number() OVER () AS ":ID", v::{type} AS v FROM (VALUES {values}) AS t(v)')])
    found = db.sql("SELECT lexical, datatype, kind, integer, number, moment FROM _graphdb.literal").fetchall()
    assert db.query("MATCH (n) RETURN count(n.v)").fetchone()[0] == values.count("), (") + 1 - values.count("(NULL)")
    as_bits = ((*row[:4], None if row[4] is None else struct.pack("d", row[4]), row[5]) for row in found)
    return sorted(as_bits, key=lambda row: str(row[0]))


def of_a_graph_that_had_some(values: str, type: str) -> list[Any]:
    """What :func:`rows` returns where there was something before: then values go as texts, and their texts are read."""
    with graphdb.connect(threads=1) as db:
        db.query("CREATE (:Other)")
        return rows(db, values, type)


@pytest.mark.parametrize("copies", [1, 40])
def test_floats(copies: int) -> None:
    values = ", ".join(f"({sql})" for sql in [*(f"'{text}'" for text in DOUBLES), "NULL"] * copies)
    with graphdb.connect(threads=1) as db:
        found = rows(db, values, "DOUBLE")
    expected = [
        (text, f"{XSD}double", Kind.DOUBLE, None, struct.pack("d", float(sql)), None) for sql, text in DOUBLES.items()
    ]
    assert found == sorted(expected, key=lambda row: row[0]) == of_a_graph_that_had_some(values, "DOUBLE")


@pytest.mark.parametrize("type", ["DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP_S", "TIMESTAMP_MS"])
def test_days_and_times(type: str) -> None:
    is_date, fine = type == "DATE", type in ("TIMESTAMP", "TIMESTAMPTZ")
    clocks = [("", 0)] if is_date else [(" 00:00:00", 0), (" 12:30:05", 45_005_000_000)]
    clocks += [(" 23:59:59.000001", DAY - 999_999)] if fine else []
    values = ", ".join(f"('{day}{clock}')" for day in DAYS for clock, _ in clocks) + ", (NULL)"
    zone = "Z" if type == "TIMESTAMPTZ" else ""
    kind = Kind.DATE if is_date else Kind.ZONED if zone else Kind.DATETIME
    with graphdb.connect(threads=1) as db:
        found = rows(db, values, type)
    assert found == of_a_graph_that_had_some(values, type)
    assert found == sorted(
        (f"{day}{clock.replace(' ', 'T')}{zone}", f"{XSD}date{'' if is_date else 'Time'}", kind, None, None,
         number if is_date else number * DAY + micros)
        for day, number in DAYS.items() for clock, micros in clocks
    )  # fmt: skip


@pytest.mark.parametrize(
    ("type", "values", "texts"),
    [
        ("DATE", ["2020-01-01", "10000-01-01"], ["10000-01-01", "2020-01-01"]),
        ("DATE", ["2020-01-01", "0044-03-15 (BC)"], ["-0043-03-15", "2020-01-01"]),
        ("DATE", ["2020-01-01", "infinity"], ["2020-01-01", "infinity"]),
        ("TIMESTAMP", ["2020-01-01 00:00:00", "290000-01-01"], ["2020-01-01T00:00:00", "290000-01-01T00:00:00"]),
        (
            "TIMESTAMPTZ",
            ["2020-01-01 05:00:00+05", "0001-01-01 (BC)"],
            ["0000-01-01T00:00:00Z", "2020-01-01T00:00:00Z"],
        ),
        ("TIMESTAMP", ["-infinity", "2020-01-01"], ["-infinity", "2020-01-01T00:00:00"]),
    ],
)
def test_times_that_are_written_otherwise(type: str, values: list[str], texts: list[str]) -> None:
    given = ", ".join(f"('{value}')" for value in values)
    with graphdb.connect(threads=1) as db:
        found = rows(db, given, type)
    assert [row[0] for row in found] == texts
    assert found == of_a_graph_that_had_some(given, type)


def test_equal_literals_of_several_columns_are_one() -> None:
    sql = """SELECT 1 AS ":ID", 0.5::DOUBLE AS a, 0.5::FLOAT AS b, TIMESTAMP '2020-01-01' AS c,
             TIMESTAMPTZ '2020-01-01 00:00:00+00' AS d, DATE '2020-01-01' AS e, TIMESTAMP_NS '2020-01-01 00:00:00' AS f"""
    with graphdb.connect(threads=1) as db:
        db.load([graphdb.Table(sql=sql)])
        texts = db.sql("SELECT lexical, datatype FROM _graphdb.literal ORDER BY ALL").fetchall()
        assert [(text, datatype.removeprefix(XSD)) for text, datatype in texts] == [
            ("0.5", "double"), ("2020-01-01", "date"), ("2020-01-01T00:00:00", "dateTime"),
            ("2020-01-01T00:00:00Z", "dateTime")]  # fmt: skip
        one = "MATCH (n) WHERE n.a = n.b AND n.c = n.f RETURN count(*)"
        assert db.query(one).fetchall() == [(1,)]


def test_values_beside_texts_and_integers(tmp_path: Any) -> None:
    path = tmp_path / "data.csv"
    lines = [
        f"{i},{i * 7},{i / 8},2020-01-{i % 28 + 1:02},2020-01-01T00:00:{i % 60:02},text {i % 5}" for i in range(3000)
    ]
    path.write_text("\n".join([":ID,i,f,d,t,s", *lines]))
    with graphdb.connect(threads=1) as db:
        db.load(str(path))
        found = db.query("MATCH (n) RETURN n.i AS i, n.f AS f, n.d AS d, n.t AS t, n.s AS s ORDER BY i ASC").fetchall()
        assert [(i, f, str(d), str(t)[-2:], s) for i, f, d, t, s in found] == [
            (i * 7, i / 8, f"2020-01-{i % 28 + 1:02}", f"{i % 60:02}", f"text {i % 5}") for i in range(3000)
        ]
        kinds = db.sql("SELECT kind, count(*) FROM _graphdb.literal GROUP BY ALL ORDER BY ALL").fetchall()
        assert kinds == [
            (Kind.STRING, 5),
            (Kind.INTEGER, 3000),
            (Kind.DOUBLE, 3000),
            (Kind.DATE, 28),
            (Kind.DATETIME, 60),
        ]
