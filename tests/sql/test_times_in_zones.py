"""Points in time in zones that have names: SQL says of them what the evaluator says, by the rules of Python's zones."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import duckdb
import pytest

import graphdb
from graphdb.common.values import zones
from graphdb.common.values.temporal import DAY, SECOND, DateTime, at_instant, zoned
from graphdb.common.values.terms import ZONED_DATATYPE
from graphdb.evaluate.compute import Computation
from tests.fuzz import scaled
from tests.oracle.routes import in_python

ZONES = (
    *("Europe/Stockholm", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Antarctica/Troll"),
    *("Asia/Pyongyang", "America/Caracas", "Asia/Kathmandu", "UTC"),
)
CHANGES = (  # days on which some of them change their clocks, and the days around one that Apia skipped
    *("2020-03-29", "2020-10-25", "2020-03-08", "2020-11-01", "2011-12-29", "2011-12-30", "2011-12-31", "2011-04-02"),
    *("2020-04-05", "2020-10-04", "2015-08-14", "2018-05-04", "2016-05-01", "2007-12-09"),
)
CLOCKS = ("02:30", "01:30", "02:00", "03:00", "00:00", "12:00:00.000000001", "01:59:59.999999999", "23:59:59.123456")
FAR = ("1965-06-15", "2040-07-01", "0001-01-01", "9998-12-31", "-0044-03-15", "+12024-07-01")


def _text(dice: random.Random, days: tuple[str, ...]) -> str:
    day = dice.choice(days) if dice.random() < 0.5 else f"{dice.randint(1971, 2036)}-{dice.randint(1, 12):02d}-31"
    day = day if day[-2:] != "31" or day in days else f"{day[:-2]}{dice.choice(['01', '15', '28'])}"
    clock = dice.choice(CLOCKS) if dice.random() < 0.6 else f"{dice.randrange(24):02d}:{dice.randrange(60):02d}"
    zone = f"[{dice.choice(ZONES)}]" if dice.random() < 0.85 else dice.choice(["Z", "+01:00", "-05:30"])
    return f"{day}T{clock}{zone}"


@contextmanager
def filled() -> Iterator[graphdb.Database]:
    """A database of vertices and edges with such points in time: ``z`` and ``y`` in years of SQL's rules, ``far`` in any."""
    dice = random.Random(5)
    with graphdb.connect(device="cpu", threads=1) as database:
        rows = [
            {"k": k, "n": k - 30, "z": _text(dice, CHANGES), "y": _text(dice, CHANGES), "far": _text(dice, FAR)}
            for k in range(60)
        ]
        made = "z: datetime(row.z), y: datetime(row.y), far: datetime(row.far)"
        database.query(f"UNWIND $rows AS row CREATE (:E {{k: row.k, n: row.n, {made}}})", rows=rows)
        database.query(
            "MATCH (e:E) SET e.d = duration({months: e.n % 7, days: e.n % 5, seconds: e.n, nanoseconds: e.n})"
        )
        database.query("CREATE (:E {k: -1})")
        database.query(
            "UNWIND $rows AS row MATCH (a:E {k: row.k}), (b:E {k: row.k + 1}) CREATE (a)-[:NEXT {z: datetime(row.z)}]->(b)",
            rows=rows[:30],
        )
        yield database


@pytest.fixture(scope="module")
def db() -> Iterator[graphdb.Database]:
    with filled() as database:
        yield database


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows that Python computes something of, by the numbers of the expressions."""
    found: list[int] = []
    of_row = Computation._of_row

    def counted(self: Computation, number: int, given: tuple[Any, ...]) -> Any:
        found.append(number)
        return of_row(self, number, given)

    monkeypatch.setattr(Computation, "_of_row", counted)
    return found


ARGUMENTS = {
    "later": datetime(2020, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Stockholm")),
    "moment": datetime(2020, 3, 8, 7, tzinfo=UTC),
    "exact": DateTime(18_000, 999, 7200, "Europe/Stockholm"),
}


def _check(db: graphdb.Database, text: str, computed: list[int] | None = None) -> None:
    """A query has the rows that it has where Python computes its expressions; ``computed`` are then none."""
    used = {name: ARGUMENTS[name] for name in re.findall(r"\$(\w+)", text)}
    if computed is not None:
        computed.clear()
    found = [repr(row) for row in db.query(text, used).fetchall()]
    assert not computed, text
    assert found == [repr(row) for row in in_python(db, text, used)], text


OF_DAYS = "year quarter month week weekYear day ordinalDay weekDay dayOfWeek dayOfQuarter".split()
OF_CLOCKS = "hour minute second millisecond microsecond nanosecond".split()
PARTS = [*OF_DAYS, *OF_CLOCKS, *"timezone offset offsetMinutes offsetSeconds epochSeconds epochMillis".split()]
UNITS = "year weekYear quarter month week day hour minute second millisecond microsecond".split()
DURATIONS = (
    *("duration({days: 1})", "duration({months: -3, days: 3, hours: 5})", "duration('P1M-3DT-4H5.000006007S')"),
    *("duration({hours: 24})", "duration({months: 1})", "duration({months: e.n % 8, hours: e.n})", "e.d"),
)
OTHERS = ("e.y", "$later", "$moment", "$exact", "time('12:00+01:00')", "e.{0} + duration('PT1H')")
LOCALS = ("date('2020-03-29')", "localdatetime('2020-10-25T02:30')", "date(e.y)", "localdatetime(e.y)")
EXPRESSIONS = [
    *(f"e.{{0}}.{part}" for part in PARTS),
    *(f"e.{{0}} {sign} {each}" for each in DURATIONS for sign in "+-"),
    *(f"datetime.truncate('{unit}', e.{{0}})" for unit in UNITS),
    *(f"{name}.truncate('day', e.{{0}})" for name in ("date", "time", "localtime", "localdatetime")),
    *(f"{name}(e.{{0}})" for name in ("date", "localtime", "time", "localdatetime", "datetime", "toString")),
    *(f"(e.{{0}} + e.d - {DURATIONS[1]}).{part}" for part in ("hour", "offset", "nanosecond")),
    *(f"duration.{unit}(e.{{0}}, {other})" for unit in ("between", "inMonths") for other in (*OTHERS, *LOCALS)),
    *(f"duration.{unit}({other}, e.{{0}})" for unit in ("between", "inDays") for other in (*OTHERS, *LOCALS)),
    *(f"duration.{unit}(e.{{0}}, e.y)" for unit in ("inDays", "inSeconds")),
    *("toString(e.{0} + e.d)", "e.d + e.{0}", "e.{0} + (e.d + e.d)", "duration.between(e.{0}, e.y).days"),
    *(f"e.{{0}} {operator} {other}" for operator in ("=", "<", ">=") for other in ("e.y", "$later", "$moment")),
    *(
        "e.{0} IN [$later, e.y, 1]",
        "[e.{0}, $later]",
        "[e.{0}, e.n, e.d]",
        "{a: e.{0}, b: e.n}",
        "coalesce(e.{0}, $later)",
    ),
    *("CASE WHEN e.n > 0 THEN e.{0} ELSE $moment END", "[x IN [e.{0}, $exact] | x.hour]", "reverse([e.{0}, $later])"),
    *("$later + duration('P6M')", "e.{0} + duration.between(e.{0}, e.y) = e.y", "e.{0} = e.{0} + duration('PT0S')"),
]


def _asked(name: str) -> Iterator[str]:
    for i in range(0, len(EXPRESSIONS), 6):  # some at once take less time
        yield f"MATCH (e:E) RETURN e.k, {', '.join(EXPRESSIONS[i : i + 6])} ORDER BY e.k".replace("{0}", name)


def test_expressions_are_what_the_evaluator_says(db: graphdb.Database, computed: list[int]) -> None:
    """Every operation of them, and not one row of it in Python, but where clocks show what they skip."""
    for text in _asked("z"):
        _check(db, text, computed)


def test_other_years_are_what_the_evaluator_says(db: graphdb.Database, computed: list[int]) -> None:
    """Also of years of which SQL has no rules; what is read of them needs none."""
    for text in _asked("far"):
        _check(db, text)
    _check(db, f"MATCH (e:E) RETURN {', '.join(f'e.far.{part}' for part in PARTS)}", computed)


def test_what_lies_between_about_changes_of_clocks(db: graphdb.Database, computed: list[int]) -> None:
    """Where the months or days of clocks lead past the second: one less, and not computed in Python either."""
    dice = random.Random(8)
    pairs = []
    for _ in range(scaled(300)):
        zone = dice.choice(ZONES)
        other = dice.choice([zone, zone, *ZONES])
        texts = [f"{dice.choice(CHANGES)}T{dice.choice(CLOCKS)}[{name}]" for name in (zone, other)]
        pairs.append(dict(zip("ab", texts, strict=True)))
    db.query("UNWIND $pairs AS pair CREATE (:Pair {a: datetime(pair.a), b: datetime(pair.b)})", pairs=pairs)
    asked = ", ".join(f"duration.{unit}(p.a, p.b)" for unit in ("between", "inMonths", "inDays", "inSeconds"))
    _check(db, f"MATCH (p:Pair) RETURN p.a, p.b, {asked} ORDER BY p.a, p.b", computed)


def test_what_is_compared_stands_in_sql_once(db: graphdb.Database) -> None:
    """DuckDB plans as long as its SQL is."""
    moved, near = "e.z + duration.between(e.z, e.y)", "BETWEEN TIMESTAMP"
    asked = (moved, f"{moved} < e.y", f"({moved}).offset", f"({moved}).epochMillis")
    times = [db.explain(f"MATCH (e:E) RETURN {each} AS x").count(near) for each in asked]
    assert times[0] > 0
    assert {*times} == {times[0]}


def test_other_zones_are_what_the_evaluator_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where DuckDB has other rules than Python, or none: a database remembers of its values whether it has."""
    monkeypatch.setattr(zones, "_AGREE", dict.fromkeys(ZONES[:4], False))
    with filled() as database:
        for text in ("e.z + e.d", "datetime.truncate('month', e.z)", "duration.between(e.z, e.y)"):
            _check(database, f"MATCH (e:E) RETURN e.k, {text} ORDER BY e.k")


def test_rows_of_them_are_what_the_evaluator_says(db: graphdb.Database, computed: list[int]) -> None:
    """Handed on, grouped, ordered, gathered and compared."""
    for text in (
        "MATCH (e:E) WITH e.k AS k, e.z AS x RETURN k, x, x.hour, x + duration({days: 1}) ORDER BY k",
        "MATCH (e:E) WITH e, e.z AS x ORDER BY x, e.k RETURN e.k, x",
        "MATCH (e:E) RETURN e.k ORDER BY e.z DESC, e.k SKIP 3 LIMIT 20",
        "MATCH (e:E) RETURN min(e.z), max(e.z), count(e.z), count(DISTINCT e.z)",
        "MATCH (e:E) RETURN e.n % 3 AS m, max(e.z), min(e.z + e.d) ORDER BY m",
        "MATCH (e:E) RETURN e.z.timezone AS zone, count(*) AS n ORDER BY zone",
        "MATCH (e:E) RETURN datetime.truncate('month', e.z) AS x, count(*) AS n ORDER BY x, n",
        "MATCH (e:E) WITH DISTINCT e.z AS x RETURN x.epochMillis AS x ORDER BY x",
        "MATCH (e:E) WITH e.k AS k, e.z AS x ORDER BY k WITH collect(x) AS xs UNWIND xs AS y RETURN y, y.minute",
        "MATCH (e:E) WITH e.k AS k, [e.z, e.n] AS l ORDER BY l, k RETURN k, l",
        "MATCH (e:E), (f:E) WHERE e.z = f.y RETURN e.k, f.k ORDER BY e.k, f.k",
        "MATCH (e:E)-[n:NEXT]->(f) WHERE n.z < $later RETURN e.k, n.z, n.z.hour, n.z - e.d ORDER BY e.k",
        "MATCH (e:E) WHERE e.z < $later + duration({hours: 5}) RETURN e.k ORDER BY e.k",
        "UNWIND [datetime('2020-10-25T02:30[Europe/Stockholm]'), $later, $exact, null] AS x RETURN x, x.offset ORDER BY x",
    ):
        _check(db, text, computed)


def test_zones_that_agree_have_pythons_rules() -> None:
    """Every half hour of some year, and what clocks show then."""
    dice = random.Random(9)
    connection = duckdb.connect()
    names = dice.sample(sorted(available_timezones()), scaled(40))

    class Rows:
        def rows(self, sql: str, given: Any = None) -> list[tuple[Any, ...]]:
            return connection.execute(sql, given).fetchall()

    zones.compare(Rows(), names)  # type: ignore[arg-type]
    assert len({*names} & {*zones.agreed()}) > len(names) * 0.8
    for name in {*names} & {*zones.agreed()}:
        first = int(datetime(dice.randint(1971, 2036), 1, 1, tzinfo=UTC).timestamp())
        seconds = list(range(first, first + 366 * 86_400, 1800))
        shown = connection.execute(
            f"SELECT epoch_us(timezone($zone, make_timestamptz(i * 1000000))) // 1000000 - i, "
            f"{zones.by_rules('$zone', 'make_timestamp(i * 1000000)')} // 1000000 "
            "FROM (SELECT unnest($seconds::BIGINT[]) AS i)",
            {"zone": name, "seconds": seconds},
        ).fetchall()
        info = ZoneInfo(name)
        offsets = [datetime.fromtimestamp(each, UTC).astimezone(info).utcoffset() for each in seconds]
        assert [timedelta(seconds=offset) for offset, _ in shown] == offsets, name
        at = dice.sample(range(len(seconds)), 500)
        when = [zoned(*divmod(seconds[i] * SECOND, DAY), name).instant // SECOND for i in at]  # type: ignore[call-arg]
        assert [shown[i][1] for i in at] == when, name


@pytest.mark.parametrize(
    ("texts", "in_sql"),
    [
        (["2020-03-29T03:30:00+02:00[Europe/Stockholm]", "2020-10-25T02:30+01:00[Europe/Stockholm]"], True),
        (["1880-01-01T00:00:00-04:56:02[America/New_York]", "2300-07-01T12:00-04:00[America/New_York]"], True),
        (["2020-07-01T12:00Z[UTC]", "2020-07-01T12:00+02:00[Europe/Stockholm]"], True),
        (["2020-03-29T02:30+01:00[Europe/Stockholm]"], False),  # clocks skip that
        (["2020-07-01T12:00+05:00[Europe/Stockholm]"], False),
        (["2020-07-01T12:00[Europe/Stockholm]"], False),
        (["2020-07-01T12:00+02:00[Europe/Stockholm]", "2020-07-01T12:00+02:00[Europe/Nowhere]"], False),
    ],
)
def test_texts_are_what_they_say(tmp_path: Path, texts: list[str], in_sql: bool) -> None:
    """From RDF, in tables, once more from a copy: the values that the texts say, also at offsets that no clock has."""
    file = tmp_path / "times.nt"
    file.write_text("".join(f'<urn:{i}> <urn:at> "{text}"^^<{ZONED_DATATYPE}> .\n' for i, text in enumerate(texts)))
    with graphdb.connect(device="cpu", threads=1) as db:
        db.load(file)
        asked = "MATCH (n) RETURN n.at AS t, toString(n.at) AS s ORDER BY s"
        _check(db, asked)
        if "Nowhere" not in texts[-1]:
            _check(db, "MATCH (n) RETURN n.at.hour AS h, n.at + duration('P1M') AS u ORDER BY h, u")
        assert ("Python" not in db.explain(asked)) == in_sql
        found = db.query(asked).fetchall()
        db.query("MATCH (n) CREATE (:Copy {at: n.at})")
        assert db.query("MATCH (n:Copy) RETURN n.at AS t, toString(n.at) AS s ORDER BY s").fetchall() == found
        db.query("CREATE TABLE made AS MATCH (n:Copy) RETURN n.at AS t")
        instants = {value.timestamp() for value, _ in found if isinstance(value, datetime)}
        if len(instants) == len(texts):
            assert {row[0] for row in db.sql("SELECT epoch(t) FROM made").fetchall()} == instants


def test_an_offset_that_a_zone_does_not_have_then() -> None:
    """Is given by a value of ours alone, which stays what it is."""
    with graphdb.connect(device="cpu", threads=1) as db:
        value = DateTime(18_000, 999, 3600, "Europe/Stockholm")
        assert db.query("RETURN $value", value=value).scalar() == value
        found = db.query("RETURN $value < datetime('2019-04-14T00:00+01:00') AS x", value=value).scalar()
        assert found is False


def test_an_unknown_zone() -> None:
    """Is refused as a parameter, by its name; among the items of one it stays what it is."""
    value = DateTime(18_000, 0, 3600, "Europe/Stokholm")
    with graphdb.connect(device="cpu", threads=1) as db:
        for text in ("RETURN $value", "MATCH (n) WHERE n.at < $value RETURN n", "CREATE ({at: $value})"):
            with pytest.raises(graphdb.ParameterError, match="unknown time zone, 'Europe/Stokholm'") as raised:
                db.query(text, value=value)
            assert "'Europe/Stockholm'" in str(raised.value)
        assert db.query("RETURN $values", values=[value]).scalar() == [value]
        for made in ("'2020-01-01T00:00[Europe/Stokholm]'", "{year: 2020, timezone: 'Europe/Stokholm'}"):
            with pytest.raises(graphdb.ExecutionError, match="unknown time zone 'Europe/Stokholm'") as failed:
                db.query(f"RETURN datetime({made})").fetchall()
            assert "did you mean 'Europe/Stockholm'" in str(failed.value)


def test_changed_values_are_read_again() -> None:
    with graphdb.connect(device="cpu", threads=1) as db:
        db.query("CREATE (:E {k: 1, at: datetime('2020-07-01T12:00[Europe/Stockholm]')})")
        asked = "MATCH (e:E) RETURN e.k AS k, e.at, e.at.timezone, e.at + duration('P6M') ORDER BY k"
        for change in (
            "CREATE (:E {k: 2, at: datetime('2020-07-01T12:00[Asia/Tehran]')})",
            "MATCH (e:E {k: 2}) SET e.at = datetime('2020-07-01T12:00+02:00')",
            "CREATE (:E {k: 3, at: time('10:00')})",
            "MATCH (e:E {k: 3}) DELETE e",
        ):
            _check(db, asked)
            db.query(change)
        _check(db, asked)


def test_instants_of_any_zone(db: graphdb.Database) -> None:
    """A point in time, moved by time that passes, is as long after in any zone."""
    dice = random.Random(3)
    for _ in range(scaled(20)):
        name, seconds = dice.choice(ZONES), dice.randrange(10**9, 2 * 10**9)
        value = at_instant(seconds * SECOND, name)
        later = db.query(
            "MATCH (e:E {k: 3}) RETURN ($at + duration({seconds: e.n + 27 + $by})).epochSeconds", at=value, by=10**7
        ).scalar()
        assert later == seconds + 10**7
