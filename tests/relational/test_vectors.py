"""Clauses by columns in memory: the same rows as SQL makes of them, in the same order where they have one."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, cast

import numpy as np
import pytest

import graphdb
from graphdb.common import arrow
from graphdb.common.errors import ExecutionError
from graphdb.relational.running import program_run
from graphdb.relational.vectors import order as ordering
from graphdb.relational.vectors import run as clauses
from graphdb.relational.vectors.algebra import ColumnOf, Key
from graphdb.relational.vectors.counted import codes, compressed
from graphdb.relational.vectors.frames import Frame
from graphdb.relational.vectors.grouped import groups as grouping
from graphdb.relational.vectors.numbers import NotVectorized
from graphdb.relational.vectors.run import run
from graphdb.snapshot.properties import Properties

DATA = """
UNWIND range(0, 399) AS i
CREATE (:Person {id: i, name: CASE i % 7 WHEN 0 THEN null ELSE 'n' + toString(i % 50) END, age: CASE i % 5 WHEN 0 THEN null ELSE i % 11 END,
                 city: 'c' + toString(i % 9), size: i * 0.5, at: datetime('2019-12-31T23:30:00+01:00') + duration({hours: i % 40}), on: i % 3 = 0,
                 born: CASE i % 6 WHEN 0 THEN null ELSE date('1899-12-28') + duration({days: i % 70}) END,
                 seen: localdatetime('1969-12-31T22:00:00') + duration({hours: i % 50})})
"""  # fmt: skip
EDGES = """
MATCH (a:Person), (b:Person) WHERE b.id = (a.id * 7 + 3) % 400 OR b.id = (a.id * 11 + 1) % 400 OR (a.id % 4 = 0 AND b.id = a.id / 4)
CREATE (a)-[:KNOWS {since: 2000 + (a.id + b.id) % 20}]->(b)
"""
NEXT = "MATCH (a:Person), (b:Person) WHERE b.id = a.id + 1 AND a.id % 3 = 0 CREATE (a)-[:NEXT]->(b)"

ORDERED = [
    "MATCH (a:Person) RETURN a.id, a.name ORDER BY a.age DESC, a.id LIMIT 7",
    "MATCH (a:Person) RETURN a.id, a.name ORDER BY a.name, a.id SKIP 5 LIMIT 300",
    "MATCH (a:Person) RETURN a.id, a.name ORDER BY a.name DESC NULLS LAST, a.id DESC SKIP 390",
    "MATCH (a:Person)-[:KNOWS]->(b) RETURN a.id, count(*) AS n, count(b.age) AS m ORDER BY n DESC, m, a.id LIMIT 20",
    "MATCH (a:Person)-[:KNOWS]->(b) RETURN a.city AS city, count(DISTINCT b.city) AS n, sum(b.age), avg(b.age), min(b.age), max(b.age) ORDER BY city",
    "MATCH (a:Person)-[:KNOWS]->(b) RETURN a.name AS name, a.age AS age, count(b) AS n ORDER BY n DESC, name, age LIMIT 40",
    "MATCH (a:Person)-[:KNOWS]->(b) RETURN b.id, b.name, b.at, count(DISTINCT a) AS n ORDER BY n DESC, b.id LIMIT 12",
    "MATCH (a:Person)-[:KNOWS]-(b)-[:KNOWS]-(c) RETURN a.id AS x, c.id AS y, count(DISTINCT b) AS n, count(*) AS m ORDER BY n DESC, x, y LIMIT 40",
    "MATCH (a:Person)-[:KNOWS]-(b)-[:KNOWS]-(c) WHERE b.id = 7 RETURN a.id AS x, c.id AS y, count(DISTINCT b) AS n ORDER BY n DESC, x, y",
    "MATCH (a:Person)-[:KNOWS]->(b)-[:KNOWS]-(c)-[:KNOWS]-(d) WHERE b.id % 90 = 7 RETURN b.id, c.id, count(DISTINCT d), count(DISTINCT a) ORDER BY 1, 2",
    "MATCH (a:Person) OPTIONAL MATCH (a)-[:KNOWS]->(b {on: true}) WITH a, count(b) AS n WHERE n <> 1 RETURN n, count(a) AS m ORDER BY n",
    "MATCH (a:Person) OPTIONAL MATCH (a)-[:KNOWS]->(b {age: 3}) RETURN b.id AS id, count(*) AS n ORDER BY id",
    "MATCH (a:Person) OPTIONAL MATCH (a)-[:KNOWS]->(b) WHERE b.age > a.age RETURN a.id AS id, count(b) AS n ORDER BY id",
    "MATCH (a:Person) OPTIONAL MATCH (a)-[:KNOWS]->(b) WHERE b.age > a.age WITH a, b RETURN a {.id}, b {.id, .name}, a.age ORDER BY a.id, b.id",
    "MATCH (a:Person) OPTIONAL MATCH (a)-[:KNOWS]->(b) WHERE b.age > a.age RETURN a.city AS city, count(b) AS n, count(b.name) AS m, count(*) AS o ORDER BY city",
    "MATCH (a:Person) OPTIONAL MATCH (a)-[:KNOWS]->(b) WHERE b.age > a.age WITH a.age AS age, count(b) AS n WHERE n > 2 RETURN age, n ORDER BY age",
    "MATCH (a:Person) WHERE a.id < 0 OPTIONAL MATCH (a)-[:KNOWS]->(b) WHERE b.age > a.age RETURN count(b) AS n",
    "MATCH (a:Person) OPTIONAL MATCH (a)-[:KNOWS]->(b) WHERE b.age > a.age RETURN count(b) AS n",
    "MATCH (a:Person) OPTIONAL MATCH (a)-[:KNOWS]->(b) WHERE b.age > a.age + 100 RETURN a.id, b.id ORDER BY a.id",
    "MATCH (a:Person) OPTIONAL MATCH (a)-[:KNOWS]->(b) WHERE b.age < a.age WITH a, b OPTIONAL MATCH (b)-[:KNOWS]->(c) WHERE c.age > a.age RETURN a.id, b.id, c.id, c.name ORDER BY a.id, b.id, c.id",
    "MATCH (a:Person) OPTIONAL MATCH (a)-[:KNOWS]->(b) WHERE b.age < a.age RETURN b.age AS age, count(*) AS n, count(DISTINCT a.city), max(b.id), sum(a.id) ORDER BY age",
    "MATCH (a:Person) OPTIONAL MATCH (a)-[:KNOWS*1..2]->(b) WHERE b.age < a.age RETURN a.id, count(b) AS n ORDER BY a.id",
    "MATCH (a:Person) WITH a.at.year AS year, a.on AS on, a.age AS age RETURN year, on, count(*), avg(age), sum(age) ORDER BY year, on",
    "MATCH (a:Person) WITH a, CASE WHEN a.age < 3 THEN 0 WHEN a.age < 7 THEN 1 ELSE 2 END AS c RETURN c, count(*), sum(a.id - 2 * c) ORDER BY c",
    "MATCH (a:Person)-[:KNOWS]->(b) WITH a, b ORDER BY b.id, a.id LIMIT 50 MATCH (b)-[:KNOWS]->(c) RETURN a.id, b.name, c.id ORDER BY c.id, b.id, a.id",
    "MATCH (a:Person) WITH a ORDER BY a.age DESC, a.id LIMIT 9 WITH collect(a) AS all, count(*) AS n UNWIND all AS a RETURN a.id, n",
    "MATCH (a:Person) WHERE a.id < 30 RETURN a.id, EXISTS { (a)-[:KNOWS]->({on: true}) } AS e, COUNT { (a)<-[:KNOWS]-() } AS n ORDER BY e DESC, n, a.id",
    "MATCH (a:Person) WITH a.age AS age WHERE NOT (age > 5 OR age IS NULL) AND age <> 2 RETURN age, count(*) ORDER BY age",
    "MATCH (a:Person) WITH a, coalesce(a.age, -1) AS age RETURN age, min(a.on), max(a.id) ORDER BY age DESC",
    "MATCH (a:Person) RETURN a.born.year AS y, a.born.quarter AS q, a.born.month AS m, a.born.day AS d, count(*) AS n ORDER BY y, q, m, d",
    "MATCH (a:Person) WITH a, date(a.seen) AS s, date(a.at) AS t RETURN s, t, date(t) = date(a.born) AS same, max(a.id), count(*) ORDER BY s, t, same",
    "MATCH (a:Person) WITH date(a.at) AS t, date(a.born) AS b, a.id AS id WHERE t > b RETURN t, b, count(*), min(t), max(id) ORDER BY t, b",
    "MATCH (a:Person) WITH a, a.seen.year AS y, a.seen.month AS m, a.at.day AS d RETURN y, m, d, max(a.id), count(*) ORDER BY y, m, d",
    "MATCH (a:Person) WITH CASE WHEN a.age < 3 THEN 'few ü' WHEN a.age < 7 THEN '' ELSE a.city END AS c, a.id AS id RETURN c, count(*), max(id) ORDER BY c",
    "MATCH (a:Person) WITH CASE WHEN a.age < 3 THEN a.name ELSE 'none' END AS c, 'all' AS e RETURN c, e, count(*) ORDER BY c",
    "MATCH (a:Person) WHERE a.id < 0 RETURN 'none' AS c, 1 AS d, count(*)",
    "MATCH (a:Person) WITH 'all' AS c, 2 AS d, a.age AS age RETURN c, d, sum(age), max(age)",
    "MATCH (a:Person)-[:KNOWS*1..2]-(b) WITH DISTINCT a, b WHERE a.id < 9 RETURN a.id, count(b) AS n ORDER BY a.id",
    "MATCH (a:Person) WHERE a.id < 0 RETURN count(*), sum(a.age), avg(a.age), min(a.age), count(DISTINCT a.name)",
    "MATCH (a:Person) RETURN sum(a.size), avg(a.size), min(a.size), max(a.size), count(a.size)",
    "MATCH (a:Person) OPTIONAL MATCH (a)-[:KNOWS]->(b {age: 3}) WITH a.age AS age, b.size AS x RETURN age, sum(x), avg(x), min(x), max(x) ORDER BY age",
    "MATCH (a:Person) WHERE a.id < 0 RETURN sum(a.size), avg(a.size), min(a.size), max(a.size)",
    "MATCH (a:Person)-[:KNOWS]->(b) WHERE a.id < 50 RETURN a.city, avg(b.size), sum(b.size) ORDER BY a.city",
    "MATCH (a:Person) WHERE a.id < 0 WITH a.city AS city, count(*) AS n RETURN city, n ORDER BY n",
    "MATCH (a:Person) RETURN a.id, a.size ORDER BY a.size DESC LIMIT 3",
    "MATCH (a:Person)-[:KNOWS]->(b) RETURN a.age AS g, count(DISTINCT [a.city, b.name]) AS x, count(DISTINCT [b.on, b.age, b.size]) AS y, count(DISTINCT b.size) AS z ORDER BY g",
    "MATCH (a:Person) OPTIONAL MATCH (a)-[:KNOWS]->(b {age: 3}) RETURN a.city AS c, count(DISTINCT [b, b.name]) AS x, count(DISTINCT [b.city]) AS y, count(DISTINCT b.city) AS z ORDER BY c",
    "MATCH (a:Person) OPTIONAL MATCH (a)-[:KNOWS]->(b {age: 3}) RETURN a.age AS g, min(a.name), max(b.name), min(b.city), max(a.city), count(DISTINCT b.name) ORDER BY g",
    "MATCH (a:Person) WHERE a.id < 0 RETURN min(a.name), max(a.name), percentileCont(a.size, 0.5), percentileDisc(a.id, 1)",
    "MATCH (a:Person) OPTIONAL MATCH (a)-[:KNOWS]->(b {age: 3}) RETURN a.age AS g, percentileCont(a.size, 0.75), percentileDisc(b.size, 0.9), percentileDisc(a.id, 0), percentileCont(b.id, 1) ORDER BY g",
    "MATCH (a:Person)-[:KNOWS]->(b) UNWIND [b.size + 0.25, b.age] AS x WITH a.name AS c, x RETURN c, max(x), sum(x), min(x), count(*) ORDER BY c",
    "MATCH (a:Person)-[:KNOWS]->(b) UNWIND [b.size, b.age, a.id] AS x WITH a.city AS c, x WHERE x <> 3 RETURN c, max(x), min(x) ORDER BY c",
    "MATCH (a:Person) WITH a, toFloat(a.id - 200) / 8 AS x ORDER BY x LIMIT 300 RETURN x, a.id ORDER BY x DESC LIMIT 290",
    "MATCH (a:Person) OPTIONAL MATCH (a)-[:KNOWS]->(b {age: 3}) WITH a, b RETURN b {.name, .born, .age, .on} AS m, {k: a.id, s: a.size} AS o ORDER BY a.id, b.id",
    "MATCH (a:Person) RETURN a {.name, .city, more: a.id + 1} AS m, a.id ORDER BY a.id DESC LIMIT 30",
    "MATCH (a:Person) RETURN a {.seen, .size} AS m, {a: a.name, c: a.city} AS n ORDER BY a.id LIMIT 30",
    "MATCH (a:Person)-[r:KNOWS]->(b) RETURN r, a.id, r.since ORDER BY a.id, b.id LIMIT 40",
    "MATCH (a:Person) WITH a ORDER BY a.size DESC RETURN a.city AS c, collect(a.name)[..3] AS l, collect(a.id)[1..2] AS m, size(collect(a.age)) AS n ORDER BY c",
    "MATCH (a:Person) WITH a ORDER BY a.id WITH a.city AS c, collect(a.name) AS l, collect(a.age) AS m RETURN c, l[0], l[-2], m[50], head(m), last(l), size(m), l[2..4] ORDER BY c",
    "MATCH (a:Person) RETURN a.age AS age, 100.0 * sum(a.id) / count(*) AS x, max(a.id) - min(a.id) + count(a.name) AS y ORDER BY y DESC, age LIMIT 5",
    "UNWIND $rows AS r MATCH (a:Person {id: r.id}) WHERE a.age > r.k RETURN r.id, r.t, a.name, a.age - r.k ORDER BY r.id, r.k",
    "MATCH (a:Person), (b:Person) WHERE abs(a.size - b.size) < 1.2 AND a.id < 90 RETURN a.id, b.id ORDER BY a.id, b.id",
    "MATCH (a:Person), (b:Person) WHERE a.name = b.name AND a.id < b.id AND b.id <= a.id + 50 RETURN a.id, b.id, a.size + b.size ORDER BY a.id, b.id",
    "MATCH (a:Person), (b:Person) WHERE a.born < b.born AND a.size - b.size > 150 RETURN a.city AS c, count(*) AS n, max(b.born) ORDER BY c",
    "MATCH (a:Person {age: 3}) CALL (a) { MATCH (a)-[:KNOWS]->(b) RETURN b UNION MATCH (a)<-[:KNOWS]-(b) RETURN b } RETURN a.id, count(b), max(b.id) ORDER BY a.id",
    "MATCH (a:Person) CALL (a) { MATCH (a)-[:NEXT]->(b) RETURN stDev(b.size) AS s, percentileCont(b.size, 0.5) AS p, min(b.name) AS m } RETURN a.id, s, p, m ORDER BY a.id",
    "MATCH (a:Person) RETURN datetime.truncate('day', a.at) AS x, datetime.truncate('hour', a.at) AS y, date.truncate('month', a.at) AS z, a.id ORDER BY a.id",
    "MATCH (a:Person)-[:KNOWS]->(b) WITH a, b ORDER BY b.id WITH a, collect(b) AS l RETURN a.id, [x IN l WHERE x.age > 3 | x.name], any(x IN l WHERE x.on), [x IN l WHERE x.size < a.size | x.id][0] ORDER BY a.id",
    "MATCH (a:Person)-[:KNOWS]->(b) WITH a, b ORDER BY b.id WITH a, collect(b.age) AS l UNWIND l AS age WITH a, age WHERE age > a.age RETURN a.id, age ORDER BY a.id, age",
    "MATCH (a:Person) CALL (a) { MATCH (a)-[:KNOWS]->(b) RETURN b.name AS x, b.id AS y ORDER BY x DESC, y SKIP 1 LIMIT 2 } RETURN a.id, x, y ORDER BY a.id, x DESC, y",
    "MATCH (a:Person) CALL (a) { MATCH (a)-[:KNOWS]->(b) WITH b ORDER BY b.size, b.id LIMIT 2 RETURN b.name AS x, count(*) AS n } RETURN a.id, x, n ORDER BY a.id, x",
    "MATCH (a:Person) CALL (a) { MATCH (a)-[:KNOWS]->(b) WITH b ORDER BY b.age DESC, b.id RETURN b.id AS x LIMIT 1 } RETURN a.id, x ORDER BY a.id",
    "MATCH (a:Person) RETURN a.id, COLLECT { MATCH (a)-[:KNOWS]->(b) RETURN b.name ORDER BY b.age, b.id LIMIT 2 } AS l, COLLECT { MATCH (a)-[:NEXT]->(b) RETURN b.id } AS m ORDER BY a.id",
    "MATCH (a:Person) WHERE a.id < 50 RETURN a.id, COLLECT { MATCH (a)-[:KNOWS]-(b) RETURN b.name + a.city ORDER BY b.id DESC } AS l, COUNT { MATCH (a)-[:KNOWS]->(b) RETURN b.age ORDER BY b.age LIMIT 2 } AS n ORDER BY a.id",
    "MATCH (a:Person) RETURN a.id, size([(a)-[:KNOWS]->(b) WHERE b.age > 3 | b.name]) AS n, [(a)-[:NEXT]->(b) | b.name] AS l, [(a)<-[:NEXT]-(b) | b.size + a.id][0] AS m ORDER BY a.id",
    "MATCH (a:Person)-[:NEXT]->(c) CALL (c) { MATCH (c)-[:KNOWS]->(b) RETURN b.id AS x, 'to' AS t UNION ALL MATCH (c)<-[:KNOWS]-(b) WHERE b.on RETURN b.id AS x, 'from' AS t } RETURN a.id, c.id, x, t ORDER BY a.id, t, x",
    "MATCH (a:Person) OPTIONAL MATCH (a)-[:NEXT]->(b) RETURN {n: a.name, o: {on: a.on, b: b {.id, .name}}, l: a.age} AS m, a.id ORDER BY a.id LIMIT 40",
    "MATCH (a:Person)-[r:KNOWS]-(b) RETURN r, type(r), a.id, b.id ORDER BY a.id, b.id, r.since LIMIT 90",
    "MATCH (a:Person)-[r:KNOWS|NEXT]-(b) RETURN type(r) AS t, a.city AS c, count(*), min(b.id) ORDER BY c, t",
    "MATCH (a:Person)-[r:KNOWS|NEXT]->(b) RETURN type(r) AS t, a.on AS on, count(r), count(DISTINCT b.city) ORDER BY t, on",
    "MATCH (a:Person)-[r:KNOWS]->(b) WITH b, r ORDER BY r.since DESC, b.id, a.id LIMIT 30 MATCH (b)-[t:KNOWS]->(c) RETURN r, t.since - r.since AS d, c.id ORDER BY d, c.id, b.id",
]  # fmt: skip
ROWS = [{"id": i * 7 % 450, "k": i % 5, "t": None if i % 3 else "t"} for i in range(90)]
SETS = [
    "MATCH (a:Person) RETURN DISTINCT a.name, a.age",
    "MATCH (a:Person)-[:KNOWS]->(b) RETURN DISTINCT a.city, b.on",
    "MATCH (a:Person {on: true}) RETURN a.name AS name, a.age AS age UNION ALL MATCH (a:Person {age: 3}) RETURN a.name AS name, a.age AS age",
    "MATCH (a:Person {on: true}) RETURN a.name AS name, a.age AS age UNION MATCH (a:Person {age: 3}) RETURN a.name AS name, a.age AS age",
    "MATCH (a:Person) WHERE a.id < 9 RETURN a.id AS x ORDER BY a.id LIMIT 3 UNION MATCH (a:Person) RETURN a.age AS x",
    "MATCH (a:Person)-[:KNOWS]->(b) WITH DISTINCT b MATCH (b)-[:KNOWS]->(c) RETURN b.id, c.id",
    "MATCH (a:Person)-[:KNOWS]->(b) WITH a.city AS c, {lo: min(b.age), hi: max(b.size), n: count(*)} AS m RETURN c, m.hi - m.lo, m.n ORDER BY c",
    "MATCH (a:Person)-[:KNOWS]->(b) WITH a.age AS k, {lo: min(b.name), n: sum(b.age) + 1, in: {l: max(b.born)}} AS m RETURN k, m ORDER BY k",
    "MATCH (a:Person)-[:KNOWS]->(b) WHERE a.id < 0 WITH {lo: min(b.age), n: count(b)} AS m RETURN m, m.lo, m.n",
    "MATCH (a:Person)-[:KNOWS]->(b) WITH a, max(b.age) AS oldest MATCH (a)-[:KNOWS]->(c) WHERE c.age = oldest RETURN a.id, c.id",
]


@pytest.fixture(scope="module")
def database() -> Iterator[graphdb.Database]:
    with graphdb.connect(device="cpu", threads=1) as opened:
        opened.query(DATA)
        opened.query(EDGES)
        opened.query(NEXT)
        yield opened


@pytest.mark.parametrize("text", ORDERED + SETS)
def test_as_sql_does(database: graphdb.Database, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    def counted(*given: Any, **named: Any) -> Any:
        made.append(run(*given, **named))
        return made[-1]

    monkeypatch.setattr(program_run, "run", counted)
    given = {"rows": ROWS} if "$rows" in text else {}
    mine = database.query(text, given).fetchall()
    assert [table for table in made if table is not None], "nothing of it was made without SQL"
    monkeypatch.setattr(program_run, "run", lambda *_, **__: None)
    rows = database.query(text, given).fetchall()
    assert (mine if text in ORDERED else sorted(mine, key=repr)) == (
        rows if text in ORDERED else sorted(rows, key=repr)
    )


def test_deviations_are_those_of_the_groups(database: graphdb.Database) -> None:
    text = "MATCH (a:Person)-[:KNOWS]->(b) RETURN a.age AS age, stDev(b.size) AS s, stDevP(b.age) AS p"
    given = database.query("MATCH (a:Person)-[:KNOWS]->(b) RETURN a.age, b.size, b.age").fetchall()
    for age, s, p in database.query(text).fetchall():
        sizes = [size for of, size, _ in given if of == age]
        ages = [other for of, _, other in given if of == age and other is not None]
        assert s == pytest.approx(statistics.stdev(sizes))
        assert p == pytest.approx(statistics.pstdev(ages))
    alone = database.query("MATCH (a:Person {id: 7}) RETURN stDev(a.id) AS s, stDevP(a.id) AS p, stDev(null) AS n")
    assert alone.fetchall() == [(0.0, 0.0, 0.0)]


_FIRST = datetime(2019, 12, 31, 20, 30, tzinfo=UTC)
GIVEN = [
    ("MATCH (a:Person) WHERE a.age > $x RETURN a.id, a.age ORDER BY a.id", [4, -1]),
    ("MATCH (a:Person) WHERE a.size < $x RETURN a.id, abs(a.size - 9), abs(3 - a.age) ORDER BY a.id", [7.25, 100.0]),
    ("MATCH (a:Person) WHERE a.name = $x OR a.age = 3 RETURN a.id ORDER BY a.id", ["n3", "none"]),
    ("MATCH (a:Person) WHERE a.on <> $x RETURN a.id ORDER BY a.id", [True, False]),
    (
        "MATCH (a:Person) WHERE a.at >= $x WITH a RETURN a.city AS city, count(CASE WHEN a.age < 4 THEN a.name "
        "WHEN a.on THEN a.city END) AS n, count(CASE WHEN a.at = $x THEN 1 END) AS m ORDER BY city",
        [_FIRST + timedelta(hours=9), (_FIRST + timedelta(hours=20)).astimezone(timezone(timedelta(hours=3)))],
    ),
    (
        "WITH $x + duration({hours: 12}) AS middle, $x + duration({hours: 30}) AS last MATCH (a:Person {on: true}) "
        "OPTIONAL MATCH (a)-[:KNOWS]->(b) WHERE $x <= b.at < last WITH a, count(CASE WHEN b.at < middle THEN b END) AS n, "
        "count(CASE WHEN b.at >= middle THEN b.name END) AS m RETURN a.id, n, m, abs(n - m) AS d ORDER BY d DESC, a.id LIMIT 90",
        [_FIRST, (_FIRST + timedelta(hours=10)).astimezone(timezone(timedelta(hours=-2)))],
    ),
]


@pytest.mark.parametrize(("text", "given"), GIVEN)
def test_arguments_are_constants(
    database: graphdb.Database, text: str, given: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []

    def counted(*arguments: Any, **named: Any) -> Any:
        made.append(run(*arguments, **named))
        return made[-1]

    found = []
    for ask in (counted, lambda *_, **__: None):
        monkeypatch.setattr(program_run, "run", ask)
        found.append([database.query(text, x=x).fetchall() for x in given])
    assert len([table for table in made if table is not None]) >= len(given)
    assert found[0] == found[1]
    assert found[0][0] != found[0][1]


@pytest.mark.parametrize("keys", ["x, b.id", "b.id, x", "b.name, x", "x, b.id, b.age"])
def test_many_rows_that_stand_together(database: graphdb.Database, keys: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of one value after those of another: each of these has a table of its own for the rest."""
    text = f"MATCH (a:Person)-[:KNOWS]->(b) WITH b, a.id % 100 AS x ORDER BY x RETURN DISTINCT {keys}"
    used: list[int] = []
    number = grouping.number_pairs

    def counted(*given: Any) -> Any:
        used.append(len(given[0]))
        return number(*given)

    monkeypatch.setattr(grouping, "_MANY", 0)
    monkeypatch.setattr(grouping, "number_pairs", counted)
    mine = database.query(text).fetchall()
    assert used, "they were numbered in one table"
    monkeypatch.setattr(program_run, "run", lambda *_, **__: None)
    assert sorted(mine, key=repr) == sorted(database.query(text).fetchall(), key=repr)


@pytest.mark.parametrize(
    "text",
    [
        "MATCH (a:Person)-[:KNOWS]->(b) RETURN b.at AS at, count(DISTINCT a) AS n ORDER BY n DESC, at LIMIT 12",
        "MATCH (a:Person) WITH a.on AS on, 1e306 * a.id AS x RETURN on, sum(x) ORDER BY on",
        "MATCH (a:Person) RETURN a.on AS on, min(a.at), max(a.size), collect(DISTINCT a.city)[0] IS NULL ORDER BY on",
    ],
)
def test_what_is_for_sql(database: graphdb.Database, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Moments with different offsets may be equal; what columns do not know is SQL's as a whole."""
    mine = database.query(text).fetchall()
    monkeypatch.setattr(program_run, "run", lambda *_, **__: None)
    assert database.query(text).fetchall() == mine


MANY = "MATCH (a:Person)-[:KNOWS]->(b) WITH a, b "
COUNTED = [
    "MATCH (a:Person) WITH a.at.year AS year, a.on AS on, a.age AS age RETURN year, on, count(*), avg(age), sum(age) ORDER BY year, on",
    MANY + "WITH CASE WHEN b.age < 3 THEN 0 WHEN b.age < 7 THEN 1 ELSE 2 END AS c, b.age AS age RETURN c, count(*), count(age), sum(age * 2), avg(age), min(age), max(age - c) ORDER BY c",
    MANY + "WHERE b.age > 1 WITH b.on AND a.on AS on, b.age AS age RETURN on, count(DISTINCT age), max(age), min(on) ORDER BY on",
    MANY + "WITH b.at.year AS y, b.age AS age WHERE age <> 4 WITH y, coalesce(age, 99) AS age RETURN y, age, sum(age), count(age) ORDER BY y, age",
    MANY + "WITH CASE WHEN a.age > b.age THEN 'more' WHEN a.age < b.age THEN 'less' ELSE 'same' END AS how RETURN how, count(*) ORDER BY how",
    MANY + "WITH b.born.month AS m, b.born.year AS y, a.on AS on RETURN y, m, on, count(*), count(m) ORDER BY y, m, on",
    MANY + "WITH a.age > b.age AS more, b.on AS on RETURN more, count(*), max(on) ORDER BY more",
    MANY + "WHERE a.id < 0 WITH b.age * 2 AS x RETURN count(*), sum(x), avg(x), min(x)",
    MANY + "WITH date(b.at) AS d, b.age AS age RETURN d, count(*), sum(age), max(d) ORDER BY d",
    MANY + "WITH b.age + 1 AS x, a.age AS age RETURN sum(x), count(x), avg(age)",
    MANY + "WITH b.at.hour AS h, a.at.dayOfWeek AS d RETURN h, d, count(*) ORDER BY h, d",
    MANY + "WITH a, b RETURN a.on AS on, sum(size([x IN [a.age, b.age, 3] WHERE x > 4])) AS n, max(reduce(s = 0, x IN [a.age, 2] | s + x)) AS m ORDER BY on",
    MANY + "WITH b.age AS age, a.age AS other RETURN age, count(CASE WHEN any(x IN [1, other] WHERE x = age) THEN 1 END) AS n ORDER BY age",
    MANY + "WITH a, b RETURN a.on AS on, percentileDisc(b.age, 0.3) AS p, percentileCont(b.age, 0.7) AS q, count(*) AS s ORDER BY on",
    MANY + "WITH a.age AS age, b.age AS other WHERE age < 9 RETURN age, percentileDisc(other, 1.0) AS p, percentileCont(other, 0.0) AS q ORDER BY age",
]  # fmt: skip


@pytest.mark.parametrize("text", COUNTED)
@pytest.mark.parametrize("piece", [499, 1 << 16])
def test_rows_that_are_counted_first(
    database: graphdb.Database, text: str, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups by what is computed of a handful of values: rows with the same of them are counted, piece by piece."""
    monkeypatch.setattr(program_run, "run", lambda *_, **__: None)
    by_sql = database.query(text).fetchall()
    monkeypatch.undo()
    used: list[bool] = []
    count = compressed.compressed
    monkeypatch.setattr(clauses, "_LARGE", 0)
    monkeypatch.setattr(clauses, "compressed", lambda *given, **how: (count(*given, **how), used.append(True))[0])
    monkeypatch.setattr(compressed, "_FEWER", 1)
    monkeypatch.setattr(compressed, "_PIECE", piece)
    monkeypatch.setattr(codes, "_FEWER", 0.001)
    monkeypatch.setattr(codes, "_PIECE", piece)
    assert database.query(text).fetchall() == by_sql
    assert used, "no rows were counted first"
    monkeypatch.setattr(codes.Codes, "number", lambda *_: False)  # as columns, then
    assert database.query(text).fetchall() == by_sql
    assert len(used) > 1, "no rows were counted first"


def test_many_rows_are_computed_by_columns_where_threads_are_few(
    database: graphdb.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as the memory takes; with more threads DuckDB computes them."""
    text = "MATCH (a:Person) RETURN duration({days: a.age, hours: a.id % 24}) AS d, a.id ORDER BY d, a.id"
    monkeypatch.setattr(program_run, "run", lambda *given, **named: made.append(run(*given, **named)) or made[-1])
    monkeypatch.setattr(clauses, "_LARGE", 2)
    made: list[Any] = []
    found = []
    for threads, row_bytes in ((1 << 10, 256), (0, 256), (1 << 10, 1 << 60)):
        monkeypatch.setattr(clauses, "_THREADS", threads)
        monkeypatch.setattr(clauses, "_ROW_BYTES", row_bytes)
        found.append(database.query(text).fetchall())
    assert [each is None for each in made] == [False, True, True]
    assert found[0] == found[1] == found[2]


def test_rows_of_which_too_many_differ(database: graphdb.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where most rows have values of their own, or their order matters, DuckDB groups them."""
    monkeypatch.setattr(clauses, "_LARGE", 0)
    for text in (
        MANY + "WITH b.id + 1 AS x, count(*) AS n RETURN x, n ORDER BY x",
        MANY + "WITH b.age + 1 AS x, collect(a.id) AS l RETURN x, size(l) ORDER BY x",
        MANY + "WITH b.name AS name, b.age + 1 AS x, count(*) AS n RETURN name, x, n ORDER BY name, x",
    ):
        mine = database.query(text).fetchall()
        with monkeypatch.context() as patched:
            patched.setattr(program_run, "run", lambda *_, **__: None)
            assert database.query(text).fetchall() == mine


@pytest.mark.parametrize(("few", "span"), [(30, 30), (30, 4000), (900, 4000)])
@pytest.mark.parametrize("rows", [0, 1, 5000])
def test_pairs_of_numbers_are_grouped_in_their_order(few: int, span: int, rows: int) -> None:
    """With and without a hash table, and the different values of each group."""
    draw = np.random.default_rng(rows + few)
    pair = [np.sort(draw.permutation(span)[:few])[draw.integers(0, few, rows)] for _ in range(2)]
    most = 4 * rows + 256
    ours, bound, theirs, other = grouping._closer(pair[0], span, pair[1], span, most)
    assert bound * other <= most or few**2 > most or rows == 1
    found = grouping._as_they_come(*grouping.paired(ours, bound, theirs, other), most)
    groups: dict[tuple[int, ...], list[int]] = {}
    for place, each in enumerate(zip(*(column.tolist() for column in pair), strict=True)):
        groups.setdefault(each, []).append(place)
    assert found.firsts.tolist() == [places[0] for places in groups.values()]
    assert all(set(found.numbers[places].tolist()) == {number} for number, places in enumerate(groups.values()))
    values = draw.integers(0, span, rows)
    expected = [len(set(values[places].tolist())) for places in groups.values()]
    assert grouping._distinct(found.numbers, values, span, len(found)).tolist() == expected
    if rows:
        assert grouping._distinct_by_group(found.numbers, values, span, len(found)).tolist() == expected


@pytest.mark.parametrize("kind", ["rising", "one again", "one back", "last alike"])
def test_pairs_in_their_order_are_groups(kind: str) -> None:
    """Rows that come in the order of their pairs are groups each; where one of them does not, it is seen."""
    draw, rows = np.random.default_rng(5), 3000
    pairs = np.unique(draw.integers(0, [900, 70_000], (rows, 2)), axis=0)
    if kind == "one again":
        pairs = np.concatenate((pairs, pairs[1000:1001]))
    if kind == "one back":
        pairs[[2000, 2100]] = pairs[[2100, 2000]]
    if kind == "last alike":
        pairs[-1] = pairs[-2]
    frame = Frame.of(arrow.table({"x": np.ascontiguousarray(pairs[:, 0]), "y": np.ascontiguousarray(pairs[:, 1])}))
    found = grouping._by([ColumnOf("x"), ColumnOf("y")], frame, cast("Any", None))
    firsts: dict[tuple[int, ...], int] = {}
    for place, pair in enumerate(map(tuple, pairs.tolist())):
        firsts.setdefault(pair, place)
    assert sorted(found.firsts.tolist()) == sorted(firsts.values())
    assert found.firsts[found.numbers].tolist() == [firsts[pair] for pair in map(tuple, pairs.tolist())]


def test_large_sums(database: graphdb.Database) -> None:
    """Sums that int64 takes and float64 does not are exact, and what it does not take fails as SQL does."""
    text = "MATCH (a:Person) WITH a.id * 4611686018427387 AS x WHERE a.id < $n RETURN sum(x) AS s"
    assert database.query(text, {"n": 3}).fetchall() == [(3 * 4611686018427387,)]
    assert database.query(text, {"n": 40}).fetchall() == [(sum(range(40)) * 4611686018427387,)]
    with pytest.raises(ExecutionError, match="out of range"):
        database.query(text, {"n": 400}).fetchall()


@pytest.mark.parametrize("kind", ["few", "rising", "falling", "any"])
def test_the_last_of_the_first_rows_is_that_of_sorted_ones(kind: str) -> None:
    draw = np.random.default_rng(7)
    for count in (300, 16_384, 20_000, 100_001):
        ranks = {
            "few": draw.integers(0, 5, count),
            "rising": np.arange(count),
            "falling": -np.arange(count),
            "any": draw.integers(-(2**62), 2**62, count),
        }[kind]
        for most in (1, 2, 100, count // 3, count // 2):
            assert ordering._last(ranks, most) == np.sort(ranks)[most - 1]


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("kind", ["few", "rising", "floats", "some greatest"])
def test_the_first_of_many_rows_are_those_of_sorted_ones(
    kind: str, descending: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ordering, "_SAMPLED", 256)
    draw = np.random.default_rng(11)
    numbers = {
        "few": draw.integers(0, 5, 5000),
        "rising": np.arange(5000),
        "floats": draw.normal(size=5000).round(2),
        "some greatest": np.where(draw.random(5000) < 0.01, np.inf, draw.normal(size=5000)),
    }[kind]
    others = draw.integers(0, 9, 5000)
    rows = Frame.of(arrow.table({"x": numbers, "y": others, "row": np.arange(5000)}))
    keys = [Key(ColumnOf("x"), descending, False), Key(ColumnOf("y"), False, False)]
    signs = -numbers if descending else numbers
    expected = np.lexsort((np.arange(5000), others, signs))
    made: list[bool] = []
    likely = ordering._likely
    monkeypatch.setattr(
        ordering, "_likely", lambda *given: (found := likely(*given), made.append(found is not None))[0]
    )
    for skip, limit in ((0, 1), (3, 20), (0, 600), (0, 4000)):
        found = ordering.ordered(keys, (skip, limit), rows, cast("Properties", None))
        assert arrow.pylist(found.column("row")) == expected[skip : skip + limit].tolist()
    assert made[:2] == [True, True]
    assert not made[-1]


@pytest.mark.parametrize("kind", ["positive", "zeros", "any", "infinite", "none"])
def test_floats_are_ordered_by_their_bits(kind: str) -> None:
    draw = np.random.default_rng(3)
    numbers = {
        "positive": draw.random(500) * 1e9,
        "zeros": draw.choice([0.0, -0.0, 1e-320], 500),
        "any": draw.normal(size=500) * 10.0 ** draw.integers(-300, 300, 500),
        "infinite": draw.choice([np.inf, -np.inf, 1.0, -1.0], 500),
        "none": np.empty(0),
    }[kind]
    ranks = ordering.of_floats(numbers)
    assert numbers[np.argsort(ranks, kind="stable")].tolist() == np.sort(numbers).tolist()
    assert len(np.unique(ranks)) == len(np.unique(numbers))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_what_is_no_number_is_left_to_sql(sign: float) -> None:
    for others in (1.0, -1.0, np.inf):
        with pytest.raises(NotVectorized):
            ordering.of_floats(np.array([others, np.copysign(np.nan, sign)]))


@pytest.mark.parametrize("most", [1, 1 << 40, (1 << 63) - 1])
def test_sums_of_one_group_are_exact(most: int) -> None:
    draw = np.random.default_rng(5)
    for count in (0, 1, 3, 1000):
        data = draw.integers(-most, most, count, dtype=np.int64)
        expected = sum(data.tolist())
        if -(1 << 63) <= expected < 1 << 63:
            assert grouping.sums(np.zeros(count, np.int64), data, 1).tolist() == [expected]
        else:
            with pytest.raises(NotVectorized):
                grouping.sums(np.zeros(count, np.int64), data, 1)


def test_extremes_of_what_is_no_number_warn_nobody() -> None:
    """NumPy warns of NaN; the greatest is NaN, the least is a number."""
    with graphdb.connect(threads=1) as db:
        db.query("UNWIND range(0, 9) AS i CREATE (:A {i: i % 2, f: CASE WHEN i > 7 THEN 0.0 / 0 ELSE i * 0.5 END})")
        found = db.query("MATCH (a:A) RETURN a.i, max(a.f), min(a.f) ORDER BY a.i").fetchall()
        assert [(i, str(most), least) for i, most, least in found] == [(0, "nan", 0.0), (1, "nan", 0.5)]
