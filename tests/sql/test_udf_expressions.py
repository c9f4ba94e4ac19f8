"""UDF expressions: what Python computes for SQL, once per distinct input; what EXPLAIN says, and what an error does."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest

import graphdb
from graphdb.common.errors import TypeMismatchError
from graphdb.common.stopping import stopping
from graphdb.common.values.temporal import Date, DateTime, Duration, LocalTime
from graphdb.evaluate.columns.order_key import order_key
from graphdb.evaluate.values import group_key, sort_key
from tests.oracle.routes import in_python
from tests.stops import Stopwatch


@pytest.fixture
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(device="cpu", threads=1) as database:
        database.query("UNWIND range(0, 9) AS i CREATE (:P {id: i, days: i % 3, text: '200' + (i % 2) + '-01-01'})")
        yield database


def test_explain_names_what_python_computes(db: graphdb.Database) -> None:
    report = db.explain(
        "MATCH (n:P) WHERE duration('P' + n.days + 'D') = duration('P1D') RETURN n.id AS id, [n.id, 'a'][0] AS l"
    )
    assert "computed in Python, once for each distinct input: duration('P' + n.days + 'D')\n" in f"{report}\n"
    assert "[n.id, 'a']" not in report


def test_distinct_inputs_are_computed_once(db: graphdb.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    from graphdb.common.values import temporal_build

    asked = []
    parse = temporal_build.parse_duration
    monkeypatch.setattr(temporal_build, "parse_duration", lambda text: asked.append(text) or parse(text))
    rows = db.query("MATCH (n:P) RETURN duration('P' + n.days + 'W') AS d, count(*) AS k ORDER BY d").fetchall()
    assert [(row[0].days, row[1]) for row in rows] == [(0, 4), (7, 3), (14, 3)]
    assert sorted(asked) == ["P0W", "P1W", "P2W"]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("MATCH (n:P) RETURN DISTINCT {a: n.days} AS m ORDER BY m", [({"a": 0},), ({"a": 1},), ({"a": 2},)]),
        ("MATCH (n:P {id: 3}) RETURN n {.id, b: 1} AS m", [({"id": 3, "b": 1},)]),
        ("MATCH (n:P {id: 4}) RETURN properties(n) AS m", [({"days": 1, "id": 4, "text": "2000-01-01"},)]),
        ("MATCH (n:P) RETURN date(n.text).year AS y, count(*) AS k ORDER BY y", [(2000, 5), (2001, 5)]),
        ("MATCH (n:P) WITH collect({a: n.id}) AS l RETURN reduce(t = 0, m IN l | t + m.a) AS t", [(45,)]),
        ("UNWIND [[1], 'a', null, 2.5] AS x RETURN x ORDER BY x DESC", [(None,), (2.5,), ("a",), ([1],)]),
        ("UNWIND [1, ['a', [2.5]], [], null] AS l UNWIND l AS x UNWIND x AS y RETURN y", [(1,), ("a",), (2.5,)]),
        ("MATCH (n:P) WITH CASE n.id WHEN 1 THEN 1 WHEN 2 THEN 'b' ELSE [] END AS l UNWIND l AS x RETURN x ORDER BY x",
         [("b",), (1,)]),
        ("MATCH (n:P) WITH CASE n.days WHEN 1 THEN 1 ELSE -2.5 END AS x, n "
         "RETURN count(DISTINCT abs(abs(CASE n.days WHEN 1 THEN 1 ELSE -2.5 END))) AS c, "
         "sum(abs(abs(abs(CASE n.days WHEN 1 THEN 1 ELSE -2.5 END)))) AS s, max(abs(abs(x))) AS m", [(2, 20.5, 2.5)]),
        # What is looked up for an expression stands in a subquery, and in no lambda.
        ("MATCH (n:P) WHERE range(3, n['id']) >= [3, 4, 5] RETURN n.id AS i ORDER BY i", [(5,), (6,), (7,), (8,), (9,)]),
        ("MATCH (n:P {id: 4}) RETURN duration.between(date.truncate('year', date('2020-05-01')), "
         "date({year: 2020, month: n['id']})).months AS m", [(3,)]),
        ("MATCH (n:P {id: 4}) RETURN max([x IN [n, n] | x.days]) AS m", [([1, 1],)]),
        ("MATCH (n:P {id: 4}) RETURN [x IN [n, n] | x.id] IN COLLECT { MATCH (m:P) RETURN m.id } AS i", [(False,)]),
        ("MATCH (n:P {id: 4}) RETURN reduce(t = COUNT { MATCH (m:P) WHERE m.id < n.id }, x IN [1] | t + x) AS t", [(5,)]),
        ("RETURN {a: 1, A: 2} AS m, {a: 1, A: 2}.A AS a, {} AS none", [({"a": 1, "A": 2}, 2, {})]),
        ("MATCH (n:P) RETURN avg(duration({days: n.days, hours: 5})).days AS d, sum(duration({months: n.id})).years AS y",
         [(0, 3)]),
        ("MATCH (n:P) RETURN DISTINCT date('2000-02-29') + duration({years: n.days}) AS d ORDER BY d DESC LIMIT 1",
         [(date(2002, 2, 28),)]),
        ("MATCH (n:P) RETURN percentileCont(n.id, 0.5) AS c, percentileDisc(n.id, 0.5) AS d, stDevP(n.days) > 0.8 AS s",
         [(4.5, 4, True)]),
    ],
)  # fmt: skip
def test_values(db: graphdb.Database, text: str, rows: list[Any]) -> None:
    assert db.query(text).fetchall() == rows
    assert db.query(text).fetchall() == rows  # prepared already


def test_equivalent_values_are_two(db: graphdb.Database) -> None:
    text = "UNWIND [1, 1.0, 1] AS x RETURN DISTINCT [x, 'a'] AS l"
    assert db.query(text).fetchall() == [([1, "a"],)]
    both = db.query("UNWIND [1, 1.0] AS x RETURN [x, 'a'] AS l").fetchall()
    assert [repr(row) for row in both] == ["([1, 'a'],)", "([1.0, 'a'],)"]


def test_a_table_of_values(db: graphdb.Database) -> None:
    db.query("CREATE TABLE t AS MATCH (n:P {id: 5}) RETURN {a: n.id} AS m, duration('P1D') AS d, [n.id, 'x'] AS l")
    assert db.sql("SELECT m.a, d FROM t").fetchall() == [(5, "P1D")]
    table = db.query("MATCH (n:P) RETURN properties(n) AS m ORDER BY n.id").to_arrow()
    assert table.column("m")[9].as_py() == {"days": 0, "id": 9, "text": "2001-01-01"}


def test_a_first_value_within_a_transaction() -> None:
    """The function that SQL calls goes with the transaction, if that is rolled back."""
    for end in ("ROLLBACK", "COMMIT"):
        with graphdb.connect(device="cpu", threads=1) as db:
            for _ in range(3):
                db.sql("BEGIN")
                for text, value in {
                    "duration('P1D').days": 1,
                    "date('2001-02-03').year": 2001,
                    "[1, 'a'][1]": "a",
                }.items():
                    assert db.query(f"RETURN {text} AS d").scalar() == value
                db.sql(end)
            db.sql("BEGIN")
            assert db.query("RETURN [2, 'b'][1] AS d").scalar() == "b"
            with pytest.raises(graphdb.GraphDBError):
                db.sql("SELECT error('x')")
            db.sql("ROLLBACK")
            assert db.query("UNWIND ['P1D', 'P2D'] AS x RETURN sum(duration(x)).days AS d").scalar() == 3


def test_keys_are_in_the_order_of_values() -> None:
    values: list[Any] = [
        None, True, False, 0, -1, 1, 2**60, 2**60 + 1, -(2**63), 0.5, -0.5, 1e300, float("inf"), float("-inf"), float("nan"),
        "", "a", "ab", "a\x00", "b", "é", [], [1], [1, 2], [None], ["a"], [[1]], {}, {"a": 1}, {"a": 2}, {"b": 0}, {"a": None},
        Date(0), Date(-1), LocalTime(5), Duration(1), Duration(0, 30), Duration(0, 0, 2_629_746), DateTime(0, 0, 0),
        DateTime(0, 3600 * 10**9, 3600),
    ]  # fmt: skip
    keys = [order_key(value) for value in values]
    for value, key in zip(values, keys, strict=True):
        for other, its in zip(values, keys, strict=True):
            assert (key == its) == (group_key(value) == group_key(other)), (value, other)
            if key != its and sort_key(value) != sort_key(other):  # of one moment two zones have one key
                assert (key < its) == (sort_key(value) < sort_key(other)), (value, other)
    assert order_key([1, {"a": 2}]) == order_key([1.0, {"a": 2.0}])


def test_a_key_of_many_parts_stops_with_its_statement(db: graphdb.Database) -> None:
    """On whichever thread DuckDB asks for it: the last map has 5 million numbers."""
    value: Any = {"a": 1}
    for _ in range(14):
        value = {"a": value, "b": value, "c": value}
    with stopping(0.0), pytest.raises(graphdb.QueryTimeout):
        order_key(value)
    watch = Stopwatch()
    with pytest.raises(graphdb.QueryTimeout):
        db.query("WITH {a: 1} AS m " + "WITH {a: m, b: m, c: m} AS m " * 14 + "RETURN m", timeout=0.05)
    assert watch.seconds() < 2


def test_lists_and_exact_times_of_vertices_and_edges(db: graphdb.Database) -> None:
    """What SQL does not hold is read from its text when a vertex or edge becomes a value of Python's."""
    db.query(
        "CREATE (:Q {id: 1, list: [1, 'a', 2.5], took: duration('P1M'), at: localtime('10:00:00.000000001')})"
        "-[:KNOWS {since: duration('P2D'), years: [1, 2]}]->(:Q {id: 2})"
    )
    for _ in range(3):  # at last from memory
        text = "MATCH (a:Q)-[e:KNOWS]->(b:Q) RETURN a, e, {v: a} AS m, [a, b] AS l"
        a, e, m, l = db.query(text).fetchall()[0]
        assert a.properties == {
            "at": LocalTime(36_000_000_000_001),
            "id": 1,
            "list": [1, "a", 2.5],
            "took": Duration(1),
        }
        assert e.properties == {"since": Duration(0, 2), "years": [1, 2]}
        assert m["v"].properties == l[0].properties == a.properties
    assert db.query("MATCH (a:Q {id: 1}) RETURN a.list[1] AS x, a.took.months AS m, size(a.list) AS s").fetchall() == [
        ("a", 1, 3)
    ]


def test_durations_are_written_as_text_in_sql(db: graphdb.Database) -> None:
    parts = [(0, 0, 0, 0), (-13, 40, 3600, 0), (12, 0, -1, 500_000_000), (0, -1, -3661, 1), (1, 0, 59, 999_999_999)]
    parts += [(0, 0, -60, 0), (25, -7, 86_399, 1_000), (0, 0, -86_401, 0)]
    texts = [str(Duration(*part)) for part in parts]
    names = ("months", "days", "seconds", "nanoseconds")
    asked = {"all": [dict(zip(names, part, strict=True)) for part in parts]}
    made = "duration({months: p.months, days: p.days, seconds: p.seconds, nanoseconds: p.nanoseconds})"
    query = f"UNWIND $all AS p WITH p, {made} AS d RETURN d, toString(d) AS text, [d] AS l"
    found = db.query(query, asked)
    assert [row[1] for row in found] == texts
    assert found.to_arrow().to_pydict() == {"d": texts, "text": texts, "l": [[text] for text in texts]}


def test_multiples_of_durations_are_exact_in_sql(db: graphdb.Database) -> None:
    texts = "P1Y2M3DT4H5M6.789S -P1M PT-0.5S P13M-40DT1H PT0.000000001S -P1Y2M3DT4H5M6.7S P100Y PT100000H PT0S".split()
    factors = ("2", "0.5", "-3", "-0.7", "1.0e-3", "7", "12.345", "$third")
    made = ", ".join(f"d {operator} {factor}" for factor in factors for operator in "*/")
    query = f"UNWIND $texts AS text WITH duration(text) AS d RETURN {made}, d.nanoseconds"
    asked = {"texts": texts, "third": 0.333333}
    assert "Python" not in db.explain(query, asked)
    assert db.query(query, asked).fetchall() == in_python(db, query, asked)
    with pytest.raises(TypeMismatchError):
        db.query("UNWIND ['P1D'] AS text RETURN duration(text) / 0")


@pytest.mark.parametrize(
    "query",
    [
        "MATCH (n) RETURN properties(n) AS m, keys(n) AS k, n.age AS x ORDER BY m",
        "MATCH (n) RETURN DISTINCT n {.*} AS m ORDER BY m DESC",
        "MATCH (n) WITH properties(n) AS m RETURN m.age, m['name'], keys(m), m ORDER BY m.age, m.name, m.w",
        "MATCH (n) UNWIND keys(n) AS k RETURN k, count(*) ORDER BY k",
        "MATCH (n) RETURN max(properties(n)) AS most, min(n {.*}) AS least",
        "MATCH (n) OPTIONAL MATCH (n)-[r:K]->(x) RETURN n.age AS a, properties(x), keys(x), properties(r) AS p ORDER BY a, p",
        "MATCH (n) WITH n ORDER BY n.age, n.name, n.w RETURN collect(properties(n)) AS l",
        "MATCH (n) RETURN n {.*, d: count { (n)-[:K]->() }, age: n.w} AS m, keys(n {.*, z: null}) AS k ORDER BY m DESC, k",
        "MATCH (n) WITH n {.*, w: null, q: n.name + 'x'} AS m RETURN DISTINCT m, m.w, m.q, keys(m) AS k ORDER BY m, m.age",
        "MATCH (n) WITH n {.*, .id, y: n.y} AS m RETURN m, properties(m) AS p, size(keys(m)) AS s ORDER BY m",
        "MATCH (a)-[r:K]->(b) OPTIONAL MATCH (b)-[s:K]->(c) RETURN r {.*, to: b.name} AS m, s {.*, n: c.id} AS o ORDER BY m, o",
    ],
)
def test_all_properties_are_columns(query: str) -> None:
    with graphdb.connect(device="cpu", threads=1) as db:
        db.query(
            "CREATE (a:P {name: 'a', age: 1}), (b:P {name: 'b', w: 1.5}), (c:Q {id: 3}), (:P {name: 'a'}), (:P {age: 1, w: 2.5}), "
            "(:P {age: 1, name: 'a', w: 2.5}), (a)-[:K {x: 1}]->(b), (a)-[:K {y: 'q'}]->(b), (b)-[:K]->(c)"
        )
        report = db.explain(query)
        assert "computed" not in report
        assert db.query(query).fetchall() == list(in_python(db, query))  # type: ignore[arg-type]


def test_equal_inputs_of_several_types_are_different(db: graphdb.Database) -> None:
    db.query("UNWIND [1, true, 6, 1] AS x CREATE (:Mixed {x: x})")
    query = "UNWIND ['a'] AS key MATCH (n:Mixed) UNWIND [n.x] + ['z'] AS v RETURN v, {a: [v, 1]}[key] AS l"
    assert "computed in Python" in db.explain(query)
    expected = [(x, [x, 1]) for x in (1, True, 6, 1, *"zzzz")]
    assert sorted(map(repr, db.query(query))) == sorted(map(repr, expected))
