"""Times of day with an offset: in SQL as in the query; zones of bare machines."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tomllib
from datetime import time, timedelta, timezone
from pathlib import Path

import pytest

import graphdb
from graphdb.shown import array_of
from graphdb.storage import timetz


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
    assert timetz.to_times(timetz.of_times(given)) == given
    assert timetz.to_times(timetz.of_times(given).slice(5, 7)) == given[5:12]
    assert timetz.to_times(array_of([None, *times])) == [None, *times]
    assert array_of([times[0], time(1)]).to_pylist() == [str(times[0]), "01:00:00"]


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
