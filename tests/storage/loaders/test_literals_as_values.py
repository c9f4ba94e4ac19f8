"""Numbers and times of tables are handed over as values: the dictionary has of them what it reads in their texts."""

from __future__ import annotations

import re
import struct
from typing import Any

import duckdb
import pytest

import graphdb
from graphdb.common.values.terms import XSD, Kind
from graphdb.storage.catalog import SCHEMA_VERSION
from graphdb.storage.file import ddl

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


CLOCKS = {
    "12:30:05": "12:30:05",
    "00:00:00": "00:00:00",
    "24:00:00": "24:00:00",
    "12:30": "12:30:00",
    "12:30:05.5": "12:30:05.5",
    "12:30:05.500": "12:30:05.500",
    "12:30:05.123456789": "12:30:05.123456789",
    "12:30:05+02": "12:30:05+02:00",
    "12:30z": "12:30:00Z",
    " 12:30:05-0330 ": "12:30:05-03:30",
}
"""Times of day, and their lexical forms."""

SPANS = ["P1Y2M", "-P3DT4H", "PT0.5S", "P1D", "PT36H", "P0M"]
"""Durations of XML Schema's."""


def test_times_of_day_and_durations_as_they_are_written(tmp_path: Any) -> None:
    path = tmp_path / "data.csv"
    spans = [SPANS[i % len(SPANS)] for i in range(len(CLOCKS))]
    path.write_text(
        "\n".join([":ID,t:time,d:duration", *map(",".join, zip("abcdefghij", CLOCKS, spans, strict=True)), "k,,"])
    )
    with graphdb.connect(threads=1) as db:
        db.load(str(path), label="P")
        found = db.sql("SELECT lexical, datatype FROM _graphdb.literal ORDER BY id").fetchall()
        assert found == [(text, f"{XSD}time") for text in CLOCKS.values()] + [
            (text, f"{XSD}duration") for text in SPANS
        ]
        bad = tmp_path / "bad.csv"
        for text in ("25:00:00", "12", "12:30:61", "1:30:00"):
            bad.write_text(f":ID,t:time\nx,{text}\n")
            with pytest.raises(graphdb.LoadError, match="no time of day"):
                db.load(str(bad))


@pytest.mark.parametrize(("copies", "beside"), [(1, []), (30, []), (1, ["1 month -1 day"]), (1, ["-1 days 2 hours"])])
def test_intervals(copies: int, beside: list[str]) -> None:
    texts = {
        "1 year 2 months 3 days 04:05:06.5": "P14M3DT14706.500000S",
        "-90 minutes": "-P0M0DT5400.000000S",
        "0 days": "P0M0DT0.000000S",
        "30 days": "P0M30DT0.000000S",
        "1 month": "P1M0DT0.000000S",
        "-1 microseconds": "-P0M0DT0.000001S",
    }
    values = ", ".join(["(NULL)", *(f"('{text}')" for text in [*texts, *beside] * copies)])
    with graphdb.connect(threads=1) as db:
        found = rows(db, values, "INTERVAL")
        plain = [db.sql(f"SELECT (INTERVAL '{text}')::VARCHAR").fetchone()[0] for text in beside]
    expected = [(text, f"{XSD}duration", Kind.TEMPORAL, None, None, None) for text in texts.values()]
    expected += [(text, None, Kind.STRING, None, None, None) for text in plain]
    assert found == sorted(expected, key=lambda row: row[0])


def test_edges_with_durations_have_no_reifiers(tmp_path: Any) -> None:
    path = tmp_path / "data.csv"
    path.write_text(":START_ID,:END_ID,d:duration,t:localtime\na,b,P1Y,10:00\na,b,PT1S,11:00:00\nb,a,,\n")
    with graphdb.connect(threads=1) as db:
        db.load(str(path), type="KNOWS")
        assert db.sql("SELECT count(*) FROM _graphdb.reifier").fetchall() == [(0,)]
        assert db.query("MATCH ()-[e]->() RETURN toString(e.d), toString(e.t) ORDER BY e.t").fetchall() == [
            ("P1Y", "10:00"), ("PT1S", "11:00"), (None, None)]  # fmt: skip


@pytest.mark.parametrize(
    "others", [[], ["5"], ["urn:graphdb:5"], ["-1"], ["urn:graphdb:7"], ["7", "-1x", "5/7"], ["1e"]]
)
def test_names_like_those_of_integers(others: list[str]) -> None:
    """What is called as the vertex of an integer is that vertex; integers with and without a group are two."""
    tables = [
        graphdb.Table(sql='SELECT unnest([7, -1]) AS ":ID"', label="L"),
        graphdb.Table(sql='SELECT 7 AS ":ID(5)"', label="7"),
        *(graphdb.Table(sql=f"SELECT '{name}' AS \":ID\", 1 AS k", label="L") for name in others),
    ]
    with graphdb.connect(threads=1) as db:
        db.load(tables)
        expected = {name if ":" in name else f"urn:graphdb:{name}" for name in ["7", "-1", *others]}
        assert {iri for (iri,) in db.query("MATCH (n:L) RETURN iri(n)").fetchall()} == expected
        assert db.query("MATCH (n:`7`) RETURN iri(n)").fetchall() == [("urn:graphdb:5/7",)]
        assert db.sql("SELECT count(*) = count(DISTINCT iri) FROM _graphdb.resource").fetchall() == [(True,)]


def test_floats_without_texts_are_found_again(tmp_path: Any) -> None:
    """However they are looked for: a handful or many of them, in a small dictionary and in one with an index."""
    texts = [text for sql, text in DOUBLES.items() if sql != "5.0"]
    many = 130_000
    with graphdb.connect(threads=1) as db:
        given = ", ".join(f"('{sql}')" for sql in DOUBLES)
        db.load([graphdb.Table(sql=f'SELECT v AS ":ID", v::DOUBLE AS v FROM (VALUES {given}) AS t(v)')])
        db.load([graphdb.Table(sql='SELECT 5 AS ":ID", 5 AS v')])
        before = literals(db)
        assert db.sql(
            "SELECT lexical FROM _graphdb.literal WHERE kind = 4 AND text IS NULL ORDER BY 1"
        ).fetchall() == sorted(
            (text,) for text in DOUBLES.values() if text not in ("0.0", "-0.0", "INF", "-INF", "NaN")
        )
        for text in texts:
            db.apply([("ex:a", "ex:p", f'"{text}"^^<{XSD}double>')])
        db.query("CREATE ({v: 0.1}), ({v: -2.5}), ({v: 1e300})")
        assert literals(db) == before
        path = tmp_path / "data.nt"
        path.write_text("".join(f'<ex:b> <ex:p> "{text}"^^<{XSD}double> .\n' for text in texts))
        db.load(str(path))
        assert literals(db) == before
        assert db.query("MATCH (n {v: 0.1}) RETURN count(*)").scalar() == 2
    with graphdb.connect(threads=1) as db:
        sql = f'SELECT range AS ":ID", (range + 1) / 1024 AS v FROM range({many})'
        db.load([graphdb.Table(sql=sql)])
        for _ in range(3):
            db.apply([("ex:a", "ex:p", f'"{7 / 1024}"^^<{XSD}double>'), ("ex:a", "ex:p", f'"0.123"^^<{XSD}double>')])
        assert db.load([graphdb.Table(sql=sql)]).new_triples == 0
        assert db.sql(
            "SELECT count(*), count(DISTINCT lexical), min(lexical = number::VARCHAR) FROM _graphdb.literal"
        ).fetchall() == [(many + 1, many + 1, True)]


def literals(db: Any) -> list[Any]:
    return db.sql("SELECT id, lexical, datatype FROM _graphdb.literal ORDER BY id").fetchall()


def test_floats_without_texts_are_written_as_others(tmp_path: Any) -> None:
    values = ", ".join(f"('{sql}')" for sql in DOUBLES)
    sql = f'SELECT v AS ":ID", v::DOUBLE AS v FROM (VALUES {values}) AS t(v)'
    with graphdb.connect(threads=1) as plain, graphdb.connect(threads=1) as texts:
        texts.query("CREATE (:Other)")
        for db, name in ((plain, "a"), (texts, "b")):
            db.load([graphdb.Table(sql=sql, label="P")])
            db.query("MATCH (n:Other) DELETE n")
            db.export(str(tmp_path / f"{name}.nt"))
            db.export(str(tmp_path / f"{name}.graphml"))
        for suffix in ("nt", "graphml"):
            files = [(tmp_path / f"{name}.{suffix}").read_text() for name in "ab"]
            one, other = (sorted(re.sub('"n[0-9]+"', '"key"', text).splitlines()) for text in files)
            assert one == other
        for text in DOUBLES.values():
            assert f'"{text}"^^<{XSD}double>' in (tmp_path / "a.nt").read_text()


def test_a_file_whose_floats_have_texts_is_brought_up_to_date(tmp_path: Any) -> None:
    path = tmp_path / "old.duckdb"
    with graphdb.connect(path) as db:
        db.query("CREATE ({v: 0.1, w: 12, x: 'a'})")
    with duckdb.connect(path) as old:
        columns = "id, text, datatype, language, kind, integer, number, moment"
        old.execute("CREATE TABLE rows AS SELECT * EXCLUDE (lexical) FROM _graphdb.literal")
        old.execute(f"CREATE OR REPLACE TABLE _graphdb.literal ({ddl.FORMER['literal'][11]})")
        old.execute(f"INSERT INTO _graphdb.literal SELECT {columns} FROM rows")
        old.execute("DROP TABLE rows")
        old.execute("UPDATE _graphdb.meta SET value = '11' WHERE key = 'schema_version'")
    with graphdb.connect(path) as db:
        before = db.sql("SELECT id, lexical FROM _graphdb.literal ORDER BY id").fetchall()
        assert sorted(text for _, text in before) == ["0.1", "12", "a"]
        db.query("CREATE ({v: 0.1, w: 12, x: 'a'})")
        assert db.sql("SELECT id, lexical FROM _graphdb.literal ORDER BY id").fetchall() == before
        assert db.sql("SELECT value FROM _graphdb.meta WHERE key = 'schema_version'").fetchall() == [
            (str(SCHEMA_VERSION),)
        ]
