"""Values that consist of several as columns in memory: durations, maps, lists of several types, what lies between times.

Random rows, among them null ones and times before 1970, give what DuckDB's SQL makes of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from random import Random
from typing import Any

import pytest

import graphdb
from graphdb.relational.running import program_run
from graphdb.relational.vectors.run import run

ROWS = 700

TEXTS = [
    "RETURN duration.between(a.born, a.seen).{months} AS x, count(*) AS n ORDER BY x",
    "RETURN duration.between(a.seen, a.born).{months} AS x, duration.inMonths(a.born, a.died).{months} AS y, a.i ORDER BY x, y, a.i",
    "RETURN duration.inDays(a.seen, a.born).{days} AS x, duration.inSeconds(a.born, a.seen).{seconds} AS y, a.i ORDER BY x, y, a.i",
    "WHERE duration.between(a.died, a.born).{months} > a.k % 7 RETURN a.i ORDER BY a.i",
    "RETURN duration({{days: a.k, hours: a.k % 5}}) AS d, a.i ORDER BY d, a.i",
    "RETURN duration({{months: a.k % 3, weeks: a.k, minutes: -a.k}}) AS d, a.i ORDER BY d DESC, a.i SKIP 3 LIMIT 40",
    "RETURN duration({{years: a.k, quarters: 1, days: -91 - 365 * a.k, seconds: a.j}}) AS d, a.i ORDER BY d DESC NULLS LAST, a.i DESC",
    "WITH a, duration({{months: a.k, days: -30 * a.k, seconds: -37800 * a.k}}) AS d ORDER BY d, a.i LIMIT 90 RETURN d, a.i, a.j",
    "WITH a, duration({{days: a.j}}) AS d WHERE d IS NOT NULL RETURN a.i, a.k, d ORDER BY a.i",
    "WHERE a.k > 3 RETURN properties(a) AS m, a.i",
    "WITH [a.k, a.j > 40, a.born.year, a.name] AS l RETURN l, count(*) AS n",
    "WITH {{k: a.k % 4, b: a.born.month, on: a.on}} AS m RETURN m, count(*) AS n",
    "RETURN DISTINCT a {{.name, .on}} AS m, a.k % 2 AS r",
    "WITH [a.name, a.on] AS l, a.k / 9 AS q, a.j % 3 AS r, a.i AS i RETURN l, q, r, max(i), count(*)",
    "RETURN split(a.code, '-')[0] AS x, split(a.code, '-')[2] AS y, split(a.code, '-')[-1] AS z, count(*) AS n",
    "RETURN toInteger(split(a.code, '-')[1]) AS x, sum(toInteger(split(a.code, '-')[0])) AS n ORDER BY x, n",
    "WITH a WHERE head(split(a.word, 'ab')) <> 'b' RETURN a.i, last(split(a.word, 'ab')) AS l, toInteger(left(a.code, 1)) AS c ORDER BY a.i",
    "RETURN a.i, toUpper(a.word), toLower(a.word), substring(a.word, 1), substring(a.word, 1, 2), left(a.word, 2), right(a.word, 2) ORDER BY a.i",
    "RETURN a.i, size(a.mark), replace(a.mark, 'a', 'ää'), replace(a.word, 'ab', ''), toString(a.k), a.mark = 'üa', a.mark <> a.word ORDER BY a.i",
    "WITH a WHERE a.word = 'abB' OR a.word = a.mark RETURN a.i, CASE a.word WHEN a.mark THEN 'both' WHEN 'B' THEN 'B' WHEN '' THEN null ELSE '' END AS c ORDER BY a.i",
    "RETURN CASE a.on WHEN true THEN 'on' ELSE 'off' END AS c, sum(CASE a.word WHEN 'a' THEN 0.5 WHEN 'B' THEN 2.0 ELSE 0.25 END) AS n ORDER BY c",
    "RETURN date.truncate('{unit}', a.born) AS d, count(*) AS n, date.truncate('{unit}', a.died) AS e ORDER BY d, e",
    "RETURN a.i, round(a.k * 0.3), floor(a.k / 7.0), ceil(a.j / -3.0), toInteger(a.k * 0.7), a.k * 0.5 >= a.j ORDER BY a.i",
    "WITH a, a.k * 0.5 AS h WHERE h > 3 OR h = -1.5 RETURN a.i, h ORDER BY a.i",
    "WITH a ORDER BY a.word DESC, a.i WITH a.j % 5 AS j, collect(DISTINCT a.mark) AS l, collect(a.word) AS w RETURN j, l, w ORDER BY j",
    "WITH a ORDER BY a.mark, a.k, a.i WITH a.on AS on, collect(DISTINCT a.k) AS l, collect(DISTINCT a.born) AS b RETURN on, l, b ORDER BY on",
    "RETURN a.code, a.word, a.mark, a.i ORDER BY a.mark DESC, a.word, a.code, a.i",
    "RETURN localdatetime.truncate('{part}', a.seen) AS x, datetime.truncate('{part}', a.seen) AS y, a.i ORDER BY x, a.i",
    "RETURN datetime.truncate('{part}', a.seen) AS x, date.truncate('{unit}', a.seen) AS y, count(*) AS n ORDER BY x, y",
    "RETURN a.i, a.born + duration({{months: a.k, days: a.j}}) AS x, a.seen - duration({{years: 1, months: a.j, days: 3, hours: a.k, seconds: -a.j}}) AS y ORDER BY a.i",
    "RETURN a.i, a.born - duration({{days: 30}}) AS x, a.seen + duration({{months: 1}}) AS y, a.born + duration({{months: -13}}) AS z ORDER BY a.i",
    "RETURN a.i, trim(a.blank), ltrim(a.blank) AS l, rtrim(a.blank) AS r, trim(a.blank) + '|' + a.blank AS s ORDER BY s, a.i",
    "RETURN a.i, toString(a.k * a.i * 9999) AS x, toString(a.born) AS y, a.mark + '' + a.word AS z, 'ü' + a.k + '/' + a.i AS s, a.word + a.i AS t ORDER BY a.i",
    "RETURN a.i, toString(a.large) AS x, a.large + ':' + a.name AS y, 'a' + 'b' AS z, a.word || a.mark || '.' AS w ORDER BY a.i",
    "WITH a, coalesce(a.j, 5) AS j, coalesce(a.k, 9) AS k RETURN a.i, range(k, j) AS r, range(j, k, -7) AS s, [x IN range(0, j) WHERE x % 7 = a.k % 7 | x * a.k] AS l ORDER BY a.i",
    "RETURN a.i, split(a.code, '-') AS s, split(a.mark, 'ü') AS t, size(split(a.code, '-')) AS n, [x IN split(a.code, '-') WHERE size(x) > 1 | left(x, 1) + a.name] AS l ORDER BY a.i",
    "RETURN a.i, any(x IN split(a.code, '-') WHERE x = a.word OR x = '7') AS b, single(x IN split(a.code, '-') WHERE x = '00') AS c, a.name IN split(a.code, '-') AS d ORDER BY a.i",
    "WITH a, [a.k, a.j, a.i] AS l RETURN a.i, l, all(x IN l WHERE x > 3) AS b, any(x IN l WHERE x > 80) AS c, none(x IN l WHERE x = a.j) AS d, single(x IN l WHERE x % 2 = 0) AS e ORDER BY a.i",
    "WITH a, [a.k, a.j, a.i] AS l RETURN a.i, a.k IN l AS b, 7 IN l AS c, a.k IN [1, 7, -3, $x] AS d, a.word IN ['a', 'aB'] AS e, reduce(s = 1, x IN l | s + x * 2) AS t ORDER BY a.i",
    "WITH a, coalesce(a.j, 5) AS j RETURN a.i, reduce(s = 0.0, x IN range(0, j) | x * 0.1 + s) AS t, reduce(s = a.k, x IN range(0, j) | s + x * a.k) AS u, [a.born, a.died][1] AS w ORDER BY a.i",
    "WITH a.word AS w, a.mark AS m, a.i AS i WHERE w STARTS WITH 'a' AND NOT m CONTAINS 'üa' RETURN i, w ENDS WITH 'bB' AS e, w CONTAINS 'aa' AS c, m STARTS WITH 'ü' AS s, reverse(w) AS r ORDER BY i",
    "WITH a ORDER BY a.word, a.i DESC RETURN a.k % 3 AS k, collect({{w: a.word, n: a.j, on: a.on}}) AS l, collect(a {{.k, .name}})[1..3] AS m ORDER BY k",
    "RETURN a {{.*}} AS m, a.i",
    "UNWIND split(a.code, '-') AS x RETURN x, count(*) AS n, min(a.i) AS m, max(a.word) AS w",
    "UNWIND range(coalesce(a.k, 9), coalesce(a.j, 5), 3) AS x WITH a, x WHERE x <> a.i RETURN a.i, x ORDER BY x, a.i LIMIT 500",
    "WITH a.k % 5 AS k, collect(a.j) AS l, collect(a.word) AS w RETURN k, size([x IN l WHERE x > k | x + k]) AS n, any(x IN w WHERE x = 'aB') AS b, size([w IN w WHERE w = '' | size(w)]) AS m ORDER BY k",
    "WITH a.i % 90 AS i, collect(a.j) AS l WHERE any(x IN l WHERE x = 3) OR NOT all(x IN l WHERE x < 70) RETURN i, size(l) AS n ORDER BY i",
    "RETURN a.k % 5 AS k, sum(CASE WHEN a.on THEN null WHEN a.j > 50 THEN 0.5 ELSE a.j END), count(CASE WHEN a.on THEN null WHEN a.j > 9 THEN a.word END) AS n ORDER BY k",
    "RETURN a.i, [x IN range(0, a.i % 5) | size([y IN range(0, x) WHERE y <> a.k])] AS l, [x IN range(1, 3) | [y IN range(0, x) | y + x + a.k][1]] AS m ORDER BY a.i",
    "RETURN a.k % 5 AS k, min(a.word), max(a.word), min(a.mark), max(a.mark), count(DISTINCT [a.word, a.mark, a.on]) AS n ORDER BY k",
    "RETURN a.k % 9 AS k, percentileDisc(a.j, 0.35), percentileCont(a.k, 0.75), percentileDisc(a.j * -0.5, 0.7), percentileCont(a.j - 40.5, 0.25) ORDER BY k",
    "RETURN a.k % 7 AS x, a.k % -7 AS y, -a.k / 7 AS z, a.k / -7 AS w, a.i ORDER BY x, y, z, w, a.i",
]  # fmt: skip

MONTHS = ["years", "quarters", "months", "monthsOfYear", "quartersOfYear", "monthsOfQuarter"]
DAYS = ["weeks", "days", "daysOfWeek"]
SECONDS = ["hours", "minutes", "seconds", "minutesOfHour", "secondsOfMinute"]


def row(draw: Random, i: int) -> dict[str, Any]:
    """Return a person with properties some of which are null."""

    def some(value: Any) -> Any:
        return None if draw.random() < 0.08 else value

    day = date(1969, 12, 1) + timedelta(days=draw.choice([draw.randrange(-40, 90), draw.randrange(-60_000, 60_000)]))
    died = draw.choice([day, date(day.year + 1, day.month, 1), date(9999, 12, 31), date(1, 1, 1)])
    seen = datetime(day.year, day.month, 1) + timedelta(seconds=draw.randrange(-(10**8), 10**8), microseconds=i)
    numbers = {"k": some(draw.randrange(-60, 60)), "j": some(draw.randrange(90))}
    return {"i": i, "born": some(day), "died": some(died), "seen": some(seen), **numbers} | {
        "name": some(draw.choice(["", "ü", "name"])),
        "code": some("-".join(draw.choice(["", "7", "+12", "x", "00", "130"]) for _ in range(draw.randrange(4)))),
        "word": some("".join(draw.choice("abB\0") for _ in range(draw.choice([1, 2, 5, 30])))),
        "mark": some("".join(draw.choice("aüB") for _ in range(draw.randrange(3)))),
        "on": some(draw.random() < 0.5),
        "blank": some("".join(draw.choice(" \n\t aü") for _ in range(draw.randrange(7)))),
        "large": some(
            draw.choice([0, -1, 10 ** draw.randrange(19), -(10 ** draw.randrange(19)) + 1, 2**63 - 1, -(2**63)])
        ),
    }


@pytest.fixture(scope="module")
def database() -> Iterator[graphdb.Database]:
    draw = Random(20261127)
    with graphdb.connect(device="cpu", threads=1) as opened:
        opened.query("UNWIND $rows AS r CREATE (a:P) SET a = r", {"rows": [row(draw, i) for i in range(ROWS)]})
        opened.query("CREATE (:Q {i: -1, name: 'none of them'})")
        yield opened


@pytest.mark.parametrize("text", TEXTS)
def test_as_sql_makes_them(database: graphdb.Database, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    draw, made = Random(text), []

    def counted(*given: Any, **named: Any) -> Any:
        made.append(run(*given, **named))
        return made[-1]

    for _ in range(3 if any(name in text for name in ("{months}", "{days}", "{unit}", "{part}")) else 1):
        parts = {"months": draw.choice(MONTHS), "days": draw.choice(DAYS), "seconds": draw.choice(SECONDS)}
        parts["unit"] = draw.choice(["year", "quarter", "month", "week", "day"])
        parts["part"] = draw.choice([parts["unit"], "hour", "minute", "second"])
        whole = f"MATCH (a:P) {text.format(**parts)}"
        monkeypatch.setattr(program_run, "run", counted)
        given = {"x": 12} if "$x" in text else {}
        mine = database.query(whole, given).fetchall()
        assert made[-1] is not None, "it was made by SQL"
        monkeypatch.setattr(program_run, "run", lambda *_, **__: None)
        others = database.query(whole, given).fetchall()
        if "ORDER BY" not in whole:
            mine, others = sorted(mine, key=repr), sorted(others, key=repr)
        assert mine == others, whole


def test_texts_of_nodes_of_paths_are_reversed() -> None:
    """Each item of the lists is a column that begins within another."""
    texts = ["ab", "cde", "", "f"]
    with graphdb.connect(device="cpu", threads=1) as opened:
        opened.query("UNWIND range(0, 3) AS i CREATE (:P {i: i, s: $texts[i]})", texts=texts)
        opened.query("MATCH (a:P), (b:P) WHERE b.i = a.i + 1 CREATE (a)-[:r]->(b)")
        found = opened.query(
            "MATCH p = (a)-[:r*2]->() RETURN reduce(s = '', n IN nodes(p) | s + reverse(n.s)) AS s ORDER BY a.i"
        ).fetchall()
    assert found == [("".join(text[::-1] for text in texts[i : i + 3]),) for i in range(2)]
