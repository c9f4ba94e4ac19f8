"""Points in time at offsets from UTC: SQL says of them what the evaluator and Python's own calendar say."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import graphdb
from tests.fuzz import scaled
from tests.oracle.routes import in_python


def _draw(dice: random.Random) -> datetime:
    offset = dice.choice([0, 0, 60, -60, 330, dice.randint(-14 * 60, 14 * 60)])
    day = date(dice.choice([1066, 1900, 1969, 1970, 2000, 2023, 2024, 9998]), dice.randint(1, 12), dice.randint(1, 28))
    clock = [dice.choice([0, dice.randrange(limit)]) for limit in (24, 60, 60, 10**6)]
    if dice.random() < 0.2:
        day = date(2024, dice.choice([1, 2, 3, 12]), dice.choice([29, 28]))
    return datetime(day.year, day.month, day.day, *clock, tzinfo=timezone(timedelta(minutes=offset)))


@pytest.fixture(scope="module")
def moments() -> list[datetime]:
    dice = random.Random(19)
    return [_draw(dice) for _ in range(60)]


@pytest.fixture(scope="module")
def db(moments: list[datetime]) -> Iterator[graphdb.Database]:
    """Vertices with points in time (all at offsets, all in UTC, or null), and edges that have them, too."""
    with graphdb.connect(device="cpu", threads=1) as database:
        rows = [{"k": k, "at": at, "utc": at.astimezone(UTC), "n": k - 20} for k, at in enumerate(moments)]
        database.query("UNWIND $rows AS row CREATE (:E {k: row.k, at: row.at, utc: row.utc, n: row.n})", rows=rows)
        database.query("CREATE (:E {k: -1})")
        database.query("MATCH (a:E), (b:E) WHERE b.k = a.k + 1 CREATE (a)-[:NEXT {at: a.at}]->(b)")
        yield database


def _check(db: graphdb.Database, text: str) -> None:
    """A query has the rows that it has where Python computes its expressions, and Python computes none of them."""
    used = {name: ARGUMENTS[name] for name in re.findall(r"\$(\w+)", text)}
    _expect(db, text, in_python(db, text, used))


def _expect(db: graphdb.Database, text: str, rows: list[tuple[Any, ...]]) -> None:
    """A query has these rows, and Python computes none of its expressions."""
    used = {name: ARGUMENTS[name] for name in re.findall(r"\$(\w+)", text)}
    assert _shown(db.query(text, used).fetchall()) == _shown(rows), text
    plan = "\n".join(line for (line,) in db.query(f"EXPLAIN {text}", used).fetchall())
    assert "computed in Python" not in plan, text


def _shown(rows: list[tuple[Any, ...]]) -> list[str]:
    """Rows as texts: Python takes points in time at different offsets for equal."""
    return [repr(row) for row in rows]


PARTS = (
    "year quarter month week weekYear day ordinalDay weekDay dayOfWeek dayOfQuarter hour minute second millisecond "
    "microsecond nanosecond epochSeconds epochMillis timezone offset offsetMinutes offsetSeconds"
).split()
DURATIONS = (
    "duration({days: 1})",
    "duration({months: 1})",
    "duration({months: -13, days: 3, hours: 5})",
    "duration('P1Y2M-3DT-4H5.000006S')",
    "duration({hours: $delta})",
    "duration({days: e.n})",
    "duration({months: e.n, seconds: e.n})",
)
UNITS = (
    "millennium century decade year weekYear quarter month week day hour minute second millisecond microsecond".split()
)
EXPRESSIONS = [
    *(f"{{0}}.{part}" for part in PARTS),
    *(f"{{0}} {sign} {each}" for each in DURATIONS for sign in "+-"),
    *(f"({{0}} + {each}).{part}" for each in DURATIONS[1:4] for part in ("day", "epochMillis", "offset")),
    *(f"datetime.truncate('{unit}', {{0}})" for unit in UNITS),
    *(f"localdatetime.truncate('{unit}', {{0}})" for unit in UNITS),
    *(f"date.truncate('{unit}', {{0}})" for unit in UNITS[:9]),
    *(f"duration.{name}({{0}}, $d)" for name in ("between", "inMonths", "inDays", "inSeconds")),
    *(f"duration.{name}($o, {{0}})" for name in ("between", "inMonths", "inDays", "inSeconds")),
    *(f"{name}({{0}})" for name in ("date", "localdatetime", "localtime", "datetime", "toString")),
    "datetime(localdatetime({0}))",
    "datetime(date({0}))",
    "datetime({epochMillis: e.n * 86400001})",
    "datetime({epochSeconds: e.n})",
    "datetime.fromEpochMillis(e.n)",
    "[{0}, $d]",
    "{a: {0}, b: e.n}",
    "coalesce({0}, $o)",
    "CASE WHEN e.n > 0 THEN {0} ELSE $d END",
    "{0} IN [$d, {0}]",
    "any(x IN [{0}, $d] WHERE x < $o)",
    "[x IN [{0}, $d] | x.year]",
    *(f"{{0}} {operator} $o" for operator in ("=", "<>", "<", "<=", ">", ">=")),
    "{0} < $p",
    "{0} < $p + duration({days: 1})",
    "{0} < datetime('2000-01-01T00:00[Europe/Stockholm]')",
    "$d - duration({days: 1}) < {0} <= $d + duration({months: 1})",
]
ARGUMENTS = {
    "delta": 7,
    "d": datetime(2000, 2, 29, 12, tzinfo=UTC),
    "o": datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=timezone(timedelta(hours=-3, minutes=-30))),
    "p": datetime(2023, 7, 1, tzinfo=ZoneInfo("Europe/Paris")),
}


@pytest.mark.parametrize("given", ["e.at", "e.utc"])
def test_expressions_are_what_the_evaluator_says(db: graphdb.Database, given: str) -> None:
    """Every operation of points in time, and not one row of it in Python."""
    asked = [expression.replace("{0}", given) for expression in EXPRESSIONS]
    rows = in_python(db, f"MATCH (e:E) RETURN e.k, {', '.join(asked)} ORDER BY e.k", ARGUMENTS)  # at once: less time
    for number, value in enumerate(asked, 1):
        _expect(db, f"MATCH (e:E) RETURN e.k, {value} ORDER BY e.k", [(row[0], row[number]) for row in rows])


@pytest.mark.parametrize("given", ["e.at", "e.utc"])
def test_rows_of_them_are_what_the_evaluator_says(db: graphdb.Database, given: str) -> None:
    """Handed on, grouped, ordered, gathered and compared, where those at one point in time are one."""
    for text in (
        f"MATCH (e:E) WITH e.k AS k, {given} AS x RETURN k, x, x.day, x + duration({{days: 1}}) ORDER BY k",
        f"MATCH (e:E) WITH e, {given} AS x ORDER BY x, e.k RETURN e.k, x",
        f"MATCH (e:E) RETURN min({given}), max({given}), count({given}), count(DISTINCT {given})",
        f"MATCH (e:E) WITH DISTINCT datetime.truncate('year', {given}) AS x RETURN x ORDER BY x",
        f"MATCH (e:E) WITH datetime.truncate('day', {given}) AS x, count(*) AS n RETURN x, n ORDER BY x",
        f"MATCH (e:E) WITH e.k AS k, {given} AS x ORDER BY k WITH collect(x) AS xs UNWIND xs AS y RETURN y, y.hour",
        f"MATCH (e:E), (f:E) WHERE {given} = f.at AND e.k <= f.k RETURN e.k, f.k, {given}, f.at ORDER BY e.k, f.k",
        "MATCH (e:E)-[n:NEXT]->(f) WHERE n.at < $d + duration({hours: $delta}) RETURN e.k, n.at, n.at.hour ORDER BY e.k",
        "MATCH (e:E)-[n:NEXT]->(f) WHERE e.at < f.at + duration({days: 1}) RETURN e.k ORDER BY e.k",
    ):
        _check(db, text)


def test_values_are_those_of_pythons_calendar(db: graphdb.Database, moments: list[datetime]) -> None:
    rows = db.query(
        "MATCH (e:E) WHERE e.k >= 0 RETURN e.at, e.at.year, e.at.week, e.at.hour, e.at.epochSeconds, date(e.at), "
        "e.at + duration({hours: 5}), [e.at][0] ORDER BY e.k"
    ).fetchall()
    for at, (kept, year, week, hour, seconds, day, later, item) in zip(moments, rows, strict=True):
        assert (year, week, hour, day) == (at.year, at.isocalendar().week, at.hour, at.date())
        assert seconds == (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)
        assert repr((kept, later, item)) == repr(tuple(_named(x) for x in (at, at + timedelta(hours=5), at)))


def _named(at: datetime) -> datetime:
    """As results have it: UTC by its own name."""
    return at.replace(tzinfo=timezone(at.utcoffset() or timedelta()))


def test_drawn_sums_are_what_the_evaluator_says(db: graphdb.Database) -> None:
    """Sums of sums of durations that are written out, made of properties, or both."""
    dice = random.Random(4)
    units = "years months weeks days hours minutes seconds".split()
    for _ in range(scaled(30)):
        parts = [
            "duration({" + ", ".join(f"{unit}: {dice.choice([dice.randint(-40, 40), 'e.n'])}" for unit in chosen) + "})"
            for chosen in (dice.sample(units, dice.randint(1, 3)) for _ in range(dice.randint(1, 3)))
        ]
        whole = dice.choice(["e.at", "e.utc"]) + "".join(f" {dice.choice('+-')} {part}" for part in parts)
        text = f"MATCH (e:E) WHERE 1000 < e.at.year < 9000 RETURN e.k, {whole}, ({whole}).{dice.choice(PARTS)} ORDER BY e.k"
        assert _shown(db.query(text).fetchall()) == _shown(in_python(db, text)), text


def test_far_points_in_time(db: graphdb.Database) -> None:
    """Years that Python's calendar does not have are values of our own; what DuckDB does not have, an error."""
    far = "datetime({epochSeconds: e.n * 10000000000})"
    _check(db, f"MATCH (e:E) RETURN e.k, {far}, toString({far} + duration({{months: 1}})) ORDER BY e.k")
    _check(db, f"MATCH (e:E) WITH e.k AS k, {far} AS x RETURN [x, $o], x.year, x.week ORDER BY k")
    with pytest.raises(graphdb.GraphDBError, match="out of range"):
        db.query("MATCH (e:E) WHERE e.k = 50 RETURN datetime({epochMillis: e.n * 1000000000000000})")
