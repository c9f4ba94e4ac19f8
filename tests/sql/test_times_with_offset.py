"""Times of day with an offset: the same in SQL and in queries; time zones on machines without a database of them."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tomllib
from datetime import date, datetime, time, timedelta, timezone
from pathlib import Path

import pytest

import graphdb
from graphdb.common import arrow
from graphdb.results.display import array_of
from graphdb.storage.arrays import times_with_offset
from tests.oracle.routes import in_python


def _random_time(dice: random.Random) -> time:
    zone = timezone(timedelta(minutes=dice.randint(-14 * 60, 14 * 60)))
    return time(dice.randrange(24), dice.randrange(60), dice.randrange(60), dice.choice([0, 1, 999_999, 500_000]), zone)


def _instant(value: time) -> float:
    """Seconds since midnight in UTC."""
    offset = value.utcoffset()
    assert offset is not None
    return value.hour * 3600 + value.minute * 60 + value.second + value.microsecond / 1e6 - offset.total_seconds()


@pytest.fixture(scope="module")
def times() -> list[time]:
    dice = random.Random(11)
    return [_random_time(dice) for _ in range(300)]


def test_columns_of_times_keep_their_offsets(times: list[time]) -> None:
    given = [*times, None, *times[:3]]
    assert times_with_offset.to_times(times_with_offset.of_times(given)) == given
    assert times_with_offset.to_times(times_with_offset.of_times(given).slice(5, 7)) == given[5:12]
    assert times_with_offset.to_times(array_of([None, *times])) == [None, *times]
    assert arrow.pylist(array_of([times[0], time(1)])) == [str(times[0]), "01:00:00"]


def test_sql_has_the_times_of_a_query(times: list[time]) -> None:
    with graphdb.connect(device="cpu", threads=1) as db:
        db.query(
            "UNWIND $rows AS row CREATE (:N {id: row.id, at: row.at})",
            rows=[{"id": i, "at": t} for i, t in enumerate(times)],
        )
        db.query("CREATE (:N {id: -1})")
        expected = sorted([(-1, None), *enumerate(times)])
        text = "MATCH (n:N) RETURN n.id AS id, n.at AS t"
        assert sorted(db.query(text).fetchall()) == expected
        assert sorted(db.sql(f"SELECT * FROM cypher($$ {text} $$)").fetchall()) == expected
        db.query(f"CREATE TABLE made AS {text}")
        db.query(text).into("kept")
        result = db.query(text)
        for table in ("made", "kept", "result"):
            assert sorted(db.sql(f"SELECT id, t FROM {table}").fetchall()) == expected
        assert db.sql("SELECT DISTINCT typeof(t) FROM made").fetchall() == [("TIME WITH TIME ZONE",)]
        # Both languages order by the time in UTC.
        for ordered in (
            db.query(f"{text} ORDER BY n.at"),
            db.sql("SELECT id, t FROM made ORDER BY t"),
            db.sql(f"SELECT * FROM cypher($$ {text} $$) ORDER BY t"),
        ):
            rows = ordered.fetchall()
            assert rows[-1] == (-1, None)
            instants = [_instant(at) for _, at in rows[:-1]]
            assert instants == sorted(instants)
        assert result.to_arrow().column("t").to_pylist().count(None) == 1
        assert set(result.to_pandas()["t"].dropna()) == {t.isoformat() for t in times}


def test_sql_has_the_time_of_a_literal() -> None:
    at = time(10, tzinfo=timezone(timedelta(hours=1)))
    with graphdb.connect(device="cpu", threads=1) as db:
        text = "SELECT t, CAST(timezone('UTC', t) AS VARCHAR) AS utc FROM cypher($$ RETURN time('10:00+01:00') AS t $$)"
        assert db.sql(text).fetchall() == [(at, "09:00:00+00")]
        assert db.sql("SELECT TIMETZ '10:00:00+01:00' AS t, 1 AS t, NULL::TIMETZ AS u").fetchall() == [(at, 1, None)]
        inside = db.sql("SELECT * FROM cypher($$ RETURN [time('10:00+01:00')] AS l, {a: time('10:00+01:00')} AS m $$)")
        assert inside.fetchall() == [(["10:00:00+01:00"], {"a": "10:00:00+01:00"})]
        # Of several types, as everywhere: texts.
        mixed = db.sql("SELECT * FROM cypher($$ UNWIND [time('10:00+01:00'), localtime('10:00')] AS t RETURN t $$)")
        assert sorted(mixed.fetchall()) == [("10:00:00",), ("10:00:00+01:00",)]


def test_zones_are_there_where_the_system_has_none() -> None:
    """Python looks for zones on the system first; where there is nothing, in the package ``tzdata``."""
    program = (
        "import zoneinfo, graphdb\n"
        "assert zoneinfo.TZPATH == (), zoneinfo.TZPATH\n"
        "with graphdb.connect() as db:\n"
        "    print(db.query(\"RETURN toString(datetime('2020-07-01T12:00[Europe/Stockholm]')) AS t\").scalar())\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONTZPATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stdout.strip() == "2020-07-01T12:00+02:00[Europe/Stockholm]", found.stderr
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert any(dependency.startswith("tzdata") for dependency in project["dependencies"])


def _far_time(dice: random.Random) -> time:
    """A time at an offset of any seconds up to 18 hours, or at one beside a limit of XML Schema's or DuckDB's."""
    limits = [hours * 3600 + step for hours in (14, 16, 18) for step in (-60, -1, 0, 1, 60)]
    far = dice.choice([dice.randrange(18 * 3600 + 1), dice.choice([limit for limit in limits if limit <= 18 * 3600])])
    return _random_time(dice).replace(tzinfo=timezone(timedelta(seconds=far * dice.choice([1, -1]))))


def test_offsets_up_to_eighteen_hours() -> None:
    """As they were given, however they come in and are read."""
    dice = random.Random(5)
    for _ in range(4):
        times = [_far_time(dice) for _ in range(12)]
        dates = [datetime.combine(date(2020, 1, 1 + i), at) for i, at in enumerate(times)]
        rows = [{"id": i, "at": at, "on": on} for i, at, on in zip(range(12), times, dates, strict=True)]
        texts = [
            {"id": i, "at": at.isoformat(), "on": on.isoformat()}
            for i, at, on in zip(range(12), times, dates, strict=True)
        ]
        expected = list(zip(range(len(rows)), times, dates, strict=True))
        for given, at, on in ((rows, "row.at", "row.on"), (texts, "time(row.at)", "datetime(row.on)")):
            with graphdb.connect(device="cpu", threads=1) as db:
                returned = f"UNWIND $rows AS row RETURN row.id AS id, {at} AS at, {on} AS on"
                assert db.query(returned, rows=given).fetchall() == expected
                db.query(
                    f"UNWIND $rows AS row CREATE (:N {{id: row.id, at: {at}, on: {on}, all: [{at}, {on}]}})", rows=given
                )
                text = "MATCH (n:N) RETURN n.id AS id, n.at AS at, n.on AS on ORDER BY id"
                for found in (db.query(text).fetchall(), in_python(db, text)):
                    assert found == expected
                    assert [v.utcoffset() for _, *both in found for v in both] == [
                        v.utcoffset() for pair in zip(times, dates, strict=True) for v in pair
                    ]
                lists = db.query("MATCH (n:N) RETURN n.all ORDER BY n.id").fetchall()
                assert lists == [([at, on],) for at, on in zip(times, dates, strict=True)]
                shown = db.sql(
                    'SELECT id, "on" FROM cypher($$ MATCH (n:N) RETURN n.id AS id, n.on AS on $$) ORDER BY id'
                )
                assert shown.fetchall() == list(enumerate(dates))
                (equal,) = db.query("MATCH (a:N), (b:N) RETURN count(*), sum(CASE WHEN a.at = b.at THEN 1 ELSE 0 END)")
                same = sum((a, a.utcoffset()) == (b, b.utcoffset()) for a in times for b in times)
                assert equal == (len(times) ** 2, same)


def test_offsets_beyond_eighteen_hours_are_refused() -> None:
    far = timezone(timedelta(hours=18, seconds=1))
    with graphdb.connect(device="cpu", threads=1) as db:
        for value in (time(10, tzinfo=far), datetime(2020, 1, 1, tzinfo=far), [datetime(2020, 1, 1, tzinfo=far)]):
            for text in ("RETURN $v", "CREATE (:N {v: $v})", "RETURN [$v] AS l"):
                with pytest.raises(graphdb.ParameterError, match="18 hours"):
                    db.query(text, v=value)
        for text in (
            "time('10:00+18:00:01')",
            "datetime('2020-01-01T10:00-18:01')",
            "time({hour: 1, timezone: '+19:00'})",
        ):
            with pytest.raises(graphdb.GraphDBError, match="18 hours"):
                db.query(f"RETURN {text}")


def test_times_are_equal_where_clock_and_offset_are() -> None:
    """As in Neo4j; dates and times go by the moment."""
    with graphdb.connect(device="cpu", threads=1) as db:
        text = "WITH time('10:00+01:00') AS a, time('09:00Z') AS b RETURN a = b, a > b, a >= b, a < b, a <= b"
        assert db.query(text).fetchall() == in_python(db, text) == [(False, True, True, False, False)]
        text = "UNWIND [time('10:00+01:00'), time('09:00Z'), time('09:00Z')] AS t RETURN count(DISTINCT t)"
        assert db.query(text).fetchall() == in_python(db, text) == [(2,)]
        text = text.replace("time('", "datetime('2020-01-01T")
        assert db.query(text).fetchall() == in_python(db, text) == [(1,)]
