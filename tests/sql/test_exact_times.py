"""Times of day at offsets, and times of nanoseconds: SQL says of them what the evaluator says, and Python computes none."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import Any

import pytest

import graphdb
from graphdb.common.values.temporal import DateTime, LocalDateTime, LocalTime, Time
from tests.fuzz import scaled
from tests.oracle.routes import in_python

KINDS = ("lt", "t", "ld", "z")
"""Properties: local times, times, local dates and times, points in time; some of each have nanoseconds."""


def _clock(dice: random.Random) -> str:
    hour, minute, second = (dice.choice([0, last, dice.randrange(last + 1)]) for last in (23, 59, 59))
    fraction = dice.choice(["", ".000000001", ".999999999", ".123456", f".{dice.randrange(10**9):09d}"])
    return f"{hour:02d}:{minute:02d}:{second:02d}{fraction}"


def _day(dice: random.Random) -> str:
    years = ["-0044", "0001", "1066", "1600", "1969", "1970", "2000", "2023", "2024", "2300", "9998", "+12024", "-4711"]
    return (
        f"{dice.choice(years)}-{dice.randint(1, 12):02d}-{dice.randint(1, 28):02d}"
        if dice.random() < 0.8
        else (f"2024-{dice.choice(['01-31', '02-29', '03-31', '12-31'])}")
    )


def _offset(dice: random.Random) -> str:
    return dice.choice(["Z", "Z", "+01:00", "-01:00", "+05:30", "-18:00", "+18:00", "+00:00:01", "-12:34:56"])


def _texts(dice: random.Random) -> dict[str, str]:
    return {
        "lt": _clock(dice),
        "t": _clock(dice) + _offset(dice),
        "ld": f"{_day(dice)}T{_clock(dice)}",
        "z": f"{_day(dice)}T{_clock(dice)}{_offset(dice)}",
    }


MAKE = {"lt": "localtime", "t": "time", "ld": "localdatetime", "z": "datetime"}
SET = ", ".join(f"{key}: {make}(row.{key})" for key, make in MAKE.items())


@pytest.fixture(scope="module")
def db() -> Iterator[graphdb.Database]:
    """Vertices and edges with such times, and durations."""
    dice = random.Random(7)
    with graphdb.connect(device="cpu", threads=1) as database:
        rows = [{"k": k, "n": k - 20, **_texts(dice)} for k in range(50)]
        rows += [{**rows[k], "k": k + 50, "n": k} for k in range(5)]
        database.query(f"UNWIND $rows AS row CREATE (:E {{k: row.k, n: row.n, {SET}}})", rows=rows)
        # The same points in time elsewhere.
        database.query("MATCH (e:E) WHERE e.k >= 50 SET e.z = datetime({datetime: e.z, timezone: '+02:00'})")
        database.query(
            "MATCH (e:E) SET e.d = duration({months: e.n, days: e.n % 5, seconds: e.n * 1000, nanoseconds: e.n * 111111111})"
        )
        database.query("CREATE (:E {k: -1})")
        database.query(
            f"UNWIND $rows AS row MATCH (a:E {{k: row.k}}), (b:E {{k: row.k + 1}}) CREATE (a)-[:NEXT {{{SET}}}]->(b)",
            rows=rows[:30],
        )
        yield database


def _check(db: graphdb.Database, text: str) -> None:
    """A query has the rows that it has where Python computes its expressions, and Python computes none of them."""
    used = {name: ARGUMENTS[name] for name in re.findall(r"\$(\w+)", text)}
    assert _shown(db.query(text, used).fetchall()) == _shown(in_python(db, text, used)), text
    plan = "\n".join(line for (line,) in db.query(f"EXPLAIN {text}", used).fetchall())
    assert "computed in Python" not in plan, (text, plan)


def _shown(rows: list[tuple[Any, ...]]) -> list[str]:
    return [repr(row) for row in rows]


ARGUMENTS = {
    "lt": LocalTime(36_000_000_000_001),
    "t": time(10, tzinfo=timezone(timedelta(hours=-1))),
    "ld": LocalDateTime(19_000, 999),
    "z": DateTime(19_000, 86_399_999_999_999, -3600),
    "moment": datetime(2024, 2, 29, 12, tzinfo=UTC),
    "clock": time(23, 59, 59, 999_999),
    "there": datetime(2024, 1, 31),
}
OF_DAYS = "year quarter month week weekYear day ordinalDay weekDay dayOfWeek dayOfQuarter".split()
OF_CLOCKS = "hour minute second millisecond microsecond nanosecond".split()
OF_OFFSETS = "timezone offset offsetMinutes offsetSeconds".split()
PARTS = {
    "lt": OF_CLOCKS,
    "t": [*OF_CLOCKS, *OF_OFFSETS],
    "ld": [*OF_DAYS, *OF_CLOCKS],
    "z": [*OF_DAYS, *OF_CLOCKS, *OF_OFFSETS, "epochSeconds", "epochMillis"],
}
CLOCKS = "hour minute second millisecond microsecond".split()
UNITS = ["millennium", "century", "decade", "year", "weekYear", "quarter", "month", "week", "day"]
DURATIONS = (
    "duration({days: 1})",
    "duration({months: -13, days: 3, hours: 5})",
    "duration('P1Y2M-3DT-4H5.000006007S')",
    "duration({nanoseconds: 1})",
    "duration({months: e.n, seconds: e.n})",
    "duration({hours: e.n, nanoseconds: e.n})",
    "e.d",
)
OTHERS = ("date('2024-02-29')", "localtime('12:00')", "$clock", "$moment", "$there", *(f"${kind}" for kind in KINDS))


def _expressions(kind: str) -> Iterator[str]:
    dated = kind in ("ld", "z")
    yield from (f"{{0}}.{part}" for part in PARTS[kind])
    yield from (f"{{0}} {sign} {each}" for each in DURATIONS for sign in "+-")
    yield from (f"({{0}} + {each} - e.d).{part}" for each in DURATIONS[2:4] for part in ("hour", "nanosecond"))
    yield from (
        "e.d + {0}",
        "{0} IS NULL",
        "toString({0})",
        "toString({0} + e.d)",
        "'at ' + toString({0})",
        "{0} = {0}",
    )
    yield from (f"{name}({{0}})" for name in ("localtime", "time"))
    yield from (f"{name}.truncate('{unit}', {{0}})" for name in ("localtime", "time") for unit in [*CLOCKS, "day"])
    if dated:
        yield from (f"{name}({{0}})" for name in ("date", "localdatetime", "datetime"))
        yield from (
            f"{name}.truncate('{unit}', {{0}})" for name in ("datetime", "localdatetime", "time") for unit in UNITS
        )
        yield from (f"{name}.truncate('{unit}', {{0}})" for name in ("datetime", "localdatetime") for unit in CLOCKS)
        yield from (f"date.truncate('{unit}', {{0}})" for unit in UNITS)
    for unit in ("between", "inMonths", "inDays", "inSeconds"):
        yield from (f"duration.{unit}({{0}}, {other}), duration.{unit}({other}, {{0}})" for other in OTHERS)
        yield f"duration.{unit}(e.lt, {{0}}), duration.{unit}({{0}}, e.t), duration.{unit}({{0}}, e.z)"
    for operator in ("=", "<", ">="):
        yield from (f"{{0}} {operator} {other}" for other in OTHERS)
    yield from (
        "{0} < e.lt",
        "{0} < e.t",
        "{0} <= e.ld",
        "{0} = e.z",
        f"{{0}} IN [{OTHERS[2]}, ${kind}, {{0}}, 1, 'a']",
    )
    yield from (f"[{{0}}, ${kind}]", "[{0}, e.n, e.d, $there]", "{a: {0}, b: e.n}", f"coalesce({{0}}, ${kind})")
    yield f"CASE WHEN e.n > 0 THEN {{0}} ELSE ${kind} END, any(x IN [{{0}}, ${kind}] WHERE x < ${kind})"
    yield f"[x IN [{{0}}, ${kind}] | x.nanosecond], reverse([{{0}}, ${kind}]), size([{{0}}])"


@pytest.mark.parametrize("kind", KINDS)
def test_expressions_are_what_the_evaluator_says(db: graphdb.Database, kind: str) -> None:
    """Every operation of them, and not one row of it in Python."""
    asked = [expression.replace("{0}", f"e.{kind}") for expression in _expressions(kind)]
    for i in range(0, len(asked), 16):  # some at once take less time
        _check(db, f"MATCH (e:E) RETURN e.k, {', '.join(asked[i : i + 16])} ORDER BY e.k")


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_them_are_what_the_evaluator_says(db: graphdb.Database, kind: str) -> None:
    """Handed on, grouped, ordered, gathered and compared."""
    x = f"e.{kind}"
    for text in (
        f"MATCH (e:E) WITH e.k AS k, {x} AS x RETURN k, x, x.hour, x + duration({{nanoseconds: 1}}) ORDER BY k",
        f"MATCH (e:E) WITH e, {x} AS x ORDER BY x, e.k RETURN e.k, x",
        f"MATCH (e:E) RETURN e.k ORDER BY {x} DESC, e.k SKIP 3 LIMIT 20",
        f"MATCH (e:E) RETURN min({x}), max({x}), count({x}), count(DISTINCT {x})",
        f"MATCH (e:E) RETURN e.n % 3 AS m, max({x}), min({x} + e.d) ORDER BY m",
        f"MATCH (e:E) WITH {x} AS x, count(*) AS n RETURN x, n ORDER BY x",
        f"MATCH (e:E) WITH DISTINCT {x} AS x RETURN x ORDER BY x",
        f"MATCH (e:E) WITH e.k AS k, {x} AS x ORDER BY k WITH collect(x) AS xs UNWIND xs AS y RETURN y, y.minute",
        f"MATCH (e:E) WITH e.k AS k, [{x}, e.n] AS l ORDER BY l, k RETURN k, l",
        f"MATCH (e:E), (f:E) WHERE {x} = f.{kind} AND e.k < f.k RETURN e.k, f.k ORDER BY e.k, f.k",
        f"MATCH (e:E)-[n:NEXT]->(f) WHERE n.{kind} < ${kind} RETURN e.k, n.{kind}, n.{kind}.hour ORDER BY e.k",
        f"MATCH (e:E) WHERE {x} < ${kind} + duration({{hours: 5}}) RETURN e.k ORDER BY e.k",
        f"UNWIND [{MAKE[kind]}($text), ${kind}, null] AS x WITH x, [{MAKE[kind]}($text), ${kind}] AS l "
        "RETURN x, [y IN l WHERE y < x], x IN l, size(l) ORDER BY x".replace("$text", f"'{TEXTS[kind]}'"),
    ):
        _check(db, text.replace("$text", f"'{TEXTS[kind]}'"))


TEXTS = {"lt": "10:00:00.5", "t": "10:00+02:00", "ld": "2020-01-01T00:00:00.000000001", "z": "2020-01-01T00:00-02:00"}


def test_values_are_those_that_were_given() -> None:
    """Times as they were written, as SQL's tables have them, and once more from a copy and a text."""
    dice = random.Random(12)
    for _ in range(scaled(10)):
        rows = [{"k": k, **_texts(dice)} for k in range(20)]
        with graphdb.connect(device="cpu", threads=1) as db:
            db.query(f"UNWIND $rows AS row CREATE (:E {{k: row.k, {SET}}})", rows=rows)
            db.query("MATCH (e:E) CREATE (:F {k: e.k, lt: e.lt, t: e.t, ld: e.ld, z: e.z})")
            given = [(*(row[kind] for kind in KINDS),) for row in rows]
            for label in "EF":
                texts = ", ".join(f"toString(e.{kind})" for kind in KINDS)
                found = db.query(f"MATCH (e:{label}) RETURN {texts} ORDER BY e.k").fetchall()
                assert found == [tuple(map(_usual, row)) for row in given]
            values = db.query("MATCH (e:E) RETURN e.lt, e.t, e.ld, e.z ORDER BY e.k").fetchall()
            for row, value in zip(given, values, strict=True):
                assert [_parts(each) for each in value] == [_parts_of(text) for text in row]
            same = " AND ".join(f"e.{kind} = row.{kind}" for kind in KINDS)
            back = [dict(zip(("k", *KINDS), (k, *value), strict=True)) for k, value in enumerate(values)]
            asked = f"UNWIND $rows AS row MATCH (e:F {{k: row.k}}) WHERE {same} RETURN count(*)"
            assert db.query(asked, rows=back).scalar() == len(rows)


def _usual(text: str) -> str:
    """Return a text without seconds that are zero, zeros at the end of a fraction, and a plus before four digits."""
    day, t, clock = text.rpartition("T")
    at = next((i for i, character in enumerate(clock) if character in "Z+-"), len(clock))
    time, offset = clock[:at], clock[at:]
    if "." in time:
        time = time.rstrip("0").rstrip(".")
    return day + t + time.removesuffix(":00" if time.count(":") == 2 else " ") + offset


def _parts_of(text: str) -> tuple[int, ...]:
    """Return the day of a text, its nanoseconds, and its offset in seconds, each if it has one."""
    day, _, clock = text.rpartition("T")
    at = next((i for i, character in enumerate(clock) if character in "Z+-"), len(clock))
    (whole, _, fraction), offset = clock[:at].partition("."), clock[at:]
    hour, minute, second = map(int, whole.split(":"))
    found = [((hour * 60 + minute) * 60 + second) * 10**9 + int(fraction.ljust(9, "0"))]
    if offset:
        units = [int(unit) for unit in offset[1:].split(":")] if offset != "Z" else [0]
        found.append((-1 if offset[0] == "-" else 1) * sum(u * s for u, s in zip(units, (3600, 60, 1), strict=False)))
    if day:
        year, month, of_month = day[:1] + day[1:].replace("-", " "), 0, 0
        number, month, of_month = map(int, year.split())
        shifted = date(number % 400 + 2000, month, of_month).toordinal()  # the calendar repeats every 400 years
        found.append(shifted + (number // 400 - 5) * 146_097 - date(1970, 1, 1).toordinal())
    return tuple(found)


def _parts(value: Any) -> tuple[int, ...]:
    """The same of a value, of Python's own types or of ours."""
    if isinstance(value, (LocalTime, Time, LocalDateTime, DateTime)):
        return (value.nanoseconds, *(getattr(value, name) for name in ("offset", "days") if hasattr(value, name)))
    found = [((value.hour * 60 + value.minute) * 60 + value.second) * 10**9 + value.microsecond * 1000]
    offset = value.utcoffset()
    if offset is not None:
        found.append(int(offset.total_seconds()))
    if isinstance(value, datetime):
        found.append(value.toordinal() - date(1970, 1, 1).toordinal())
    return tuple(found)


def test_times_beyond_columns_are_an_error(db: graphdb.Database) -> None:
    for kind in ("ld", "z"):
        with pytest.raises(graphdb.GraphDBError, match="a date and time is out of range"):
            db.query(f"MATCH (e:E) RETURN e.{kind} + duration({{years: 400000}})").fetchall()


@pytest.mark.parametrize(
    ("made", "type", "texts"),
    [
        ("localdatetime", "TIMESTAMP_NS", ["1677-09-22T00:00:00.000000001", "2262-04-11T23:47:16.854773999"]),
        ("localdatetime", "VARCHAR", ["1677-09-21T00:00:00.000000001", "2000-01-01T00:00:00"]),
        ("localdatetime", "VARCHAR", ["-0044-03-15T00:00:00.000000001", "+12024-01-01T12:00:00.5"]),
        ("datetime", "VARCHAR", ["2000-01-01T00:00:00.000000001Z", "2000-01-01T00:00:00-18:00"]),
        ("time", "TIME WITH TIME ZONE", ["10:00:00+15:59:59", "10:00:00.5-15:59"]),
        ("time", "VARCHAR", ["10:00:00+16:00", "10:00:00Z"]),
        ("localtime", "VARCHAR", ["10:00:00.000000001", "10:00:00"]),
    ],
)
def test_tables_have_them_in_duckdbs_types(made: str, type: str, texts: list[str]) -> None:
    """Where one has all values of a column, and as ISO 8601 where none has; what is moved to the microsecond, as usual."""
    usual = {"localdatetime": "TIMESTAMP", "datetime": "TIMESTAMP WITH TIME ZONE", "localtime": "TIME"}
    with graphdb.connect(device="cpu", threads=1) as db:
        db.query(f"UNWIND $texts AS t CREATE (:E {{t: t, p: {made}(t)}})", texts=texts)
        db.query("CREATE (:E)")
        db.query("CREATE TABLE made AS MATCH (e:E) RETURN e.t AS t, e.p AS p")
        result = db.query("MATCH (e:E) RETURN e.t AS t, e.p AS p")
        result.into("kept")
        for table in ("made", "kept", "result", "cypher($$ MATCH (e:E) RETURN e.t AS t, e.p AS p $$)"):
            rows = db.sql(f"SELECT t, p, typeof(p), p = t::{type.replace('VARCHAR', 'TEXT')} FROM {table}").fetchall()
            assert {row[2] for row in rows} == {type}, table
            found = {text: (same, shown) for text, shown, _, same in rows}
            assert found.pop(None) == (None, None)
            assert found.keys() == {*texts}
            for text, (same, shown) in found.items():
                assert same or shown == text, (table, text, shown)
        assert result.to_arrow().num_rows == len(texts) + 1
        if made in usual:
            same = "duration({nanoseconds: 1000 * e.n})"
            asked = f"MATCH (e:E) WITH {made}.truncate('microsecond', e.p) + {same} AS p RETURN p"
            [[found]] = db.sql(f"SELECT DISTINCT typeof(p) FROM cypher($$ {asked} $$)").fetchall()
            assert found == usual[made]
