"""Writing by sets against writing row by row: the same graph, the same numbers of changes, the same rows and errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphdb
from graphdb.common.errors import ExecutionError, GraphDBError, NotSupportedError, ParameterError, QueryTimeout
from graphdb.common.values.elements import Node, Relationship
from graphdb.grammar.parser import parse_script
from graphdb.writing.run import Writing
from tests.fuzz import scaled
from tests.stops import Stopwatch

START = (
    "CREATE (a:A {x: 1, y: 'one'}), (b:A:B {x: 2}), (c:B {x: 2, y: 2.5}), (:C), "
    "(a)-[:R {w: 1}]->(b), (b)-[:R]->(c), (a)-[:R {w: 3}]->(b), (c)-[:S]->(c), (a)-[:S {w: 'w'}]->(c)"
)


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[graphdb.Database, graphdb.Database]]:
    with graphdb.connect(device="cpu", threads=1) as one, graphdb.connect(device="cpu", threads=1) as other:
        yield one, other


@pytest.fixture(autouse=True)
def _all_by_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphdb.writing.reading.LEAST", 0)


def written(
    db: graphdb.Database, text: str, least: int, why: list[str] | None = None, **arguments: object
) -> graphdb.Result:
    """Run a statement by sets from so many rows on; ``why`` gets the reasons why clauses went row by row."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("graphdb.writing.reading.LEAST", least)
        (query,) = parse_script(text)
        queries = db._statements().queries
        queries.check(query, text)
        writing = queries.writing(query, text, arguments, None)
        try:
            return writing.run()
        finally:
            if why is not None:
                why += writing.row_by_row


def by_rows(db: graphdb.Database, text: str, **arguments: object) -> graphdb.Result:
    return written(db, text, 1 << 60, **arguments)


def seen(value: Any) -> str:
    """What a value looks like, without the names of blank nodes."""
    if isinstance(value, Node):
        return f"({value.labels} {sorted(value.properties.items())!r})"
    if isinstance(value, Relationship):
        return f"[{value.type} {sorted(value.properties.items())!r}]"
    return repr(value)


def rows_of(result: graphdb.Result) -> Counter[tuple[str, ...]]:
    return Counter(tuple(map(seen, row)) for row in result)


def graph_of(db: graphdb.Database) -> list[Counter[tuple[str, ...]]]:
    return [rows_of(db.query(text)) for text in ("MATCH (n) RETURN n", "MATCH (a)-[r]->(b) RETURN a, r, b")]


def ran(run: Any, db: graphdb.Database, text: str, **arguments: object) -> tuple[Any, ...]:
    try:
        result = run(db, text, **arguments)
    except NotSupportedError:
        raise
    except GraphDBError as error:
        return type(error), error.message
    return rows_of(result), result.columns, result.message


def same(
    pair: tuple[graphdb.Database, graphdb.Database], text: str, *, looks: bool = True, **arguments: object
) -> bool:
    """Run a statement both ways; whether it went by sets where it was asked to."""
    one, other = pair
    why: list[str] = []

    def by_sets(db: graphdb.Database, text: str, **arguments: object) -> graphdb.Result:
        return written(db, text, 0, why, **arguments)

    assert ran(by_sets, one, text, **arguments) == ran(by_rows, other, text, **arguments), text
    assert not looks or graph_of(one) == graph_of(other), text
    return not why


ROWS = [{"name": f"n{i % 30}", "age": None if i % 7 == 0 else i, "f": i / 4, "t": i % 2 == 0} for i in range(120)]

KNOWN = [
    "MATCH (n:A) SET n.x = n.x + 1",
    "MATCH (b:C), (a:A {y: 'one'}) SET b += a",
    "MATCH (b:C), (a:B {y: 2.5}) SET b = a RETURN b",
    "MATCH ()-[r:R]->(b) SET r = b",
    "MATCH (n:A) WITH n UNWIND [3, 1, 2] AS i WITH n, i ORDER BY i SET n.y = i RETURN n.y",
    "MATCH (n) SET n.y = n.x, n.z = [1, 2], n:Seen:B",
    "MATCH (n:B) SET n += {q: 1.5, y: null} RETURN n",
    "MATCH (n:C) SET n = {only: true, x: 0.1}",
    "MATCH (n:C) SET n = {}",
    "MATCH (n:A) SET n += $map",
    "MATCH (n:Seen) REMOVE n:Seen, n.z, n.never",
    "MATCH (a)-[r]->(b) SET r.w = r.w, r.v = a.x, b.got = true",
    "MATCH (a:A)-[r:R]->() SET r += {u: 'u', w: null} RETURN r.u, r",
    "MATCH (a:A)-[r:R]->() SET r = {k: 1}",
    "MATCH (a:A), (b:B) CREATE (a)-[r:R {w: b.x}]->(b) RETURN r.w",
    "MATCH (a:A)-[:R]->(b) CREATE (b)<-[:T]-(a), (a)-[:T]->(b)",
    "MATCH (a:B) CREATE (n:New {x: a.x})-[:S]->(a), (n)-[:S]->(a), (m:New:Other)-[:S]->(n) RETURN n, m, n.x",
    "UNWIND $rows AS r CREATE (n:Person {name: r.name, age: r.age, f: r.f, t: r.t}) RETURN count(*)",
    "UNWIND $rows AS r MATCH (n:Person {name: r.name}) WITH n, r ORDER BY r.f SET n += r RETURN count(n)",
    "MATCH (n) SET n.copy = n.y RETURN n.copy",
    "UNWIND [true, null] AS v CREATE (:V {v: v, d: date('2020-01-02')}) RETURN v",
    "UNWIND [0.1, 1e22, -0.0, 1e-7, 0.0/0.0, 1.0/0.0, -1.0/0.0] AS f CREATE (:F {f: f, l: [f]})",
    "UNWIND ['', ' x ', 'a\"b', 'c\\\\d'] AS s CREATE (:L {l: [s, null]})",
    "MATCH (n:Person) WHERE n.age > 60 DETACH DELETE n RETURN count(n)",
    "MATCH (n:A) WITH n, n.x AS x DETACH DELETE n WITH x MATCH (m:B) RETURN x, count(m)",
    "MATCH ()-[r:S]->() DELETE r RETURN count(*)",
    "OPTIONAL MATCH (n:Never) SET n.x = 1 REMOVE n.y DELETE n",
    "MATCH (n:Never) CREATE (n)-[r:R]->(m:M) RETURN n, r, m",
    "MATCH (n:B) DELETE n",
    "MATCH (n:A) SET n.x = 1 / (n.x - n.x)",
    "UNWIND [datetime('2020-01-02T03:04Z'), datetime('1999-12-31T23:59:59.5-03:30'), null] AS d CREATE (:T {d: d})",
    "MATCH (n:T) SET n.e = n.d + duration('PT1H'), n.u = datetime({epochMillis: 1500})",
    "MATCH ()-[r:S]->() SET r = {d: duration({days: 1, hours: -2}), v: [1, 'a', null, 1.5, true]}",
    "MATCH (n:B) SET n.d = datetime('2020-01-02T03:04:05+02:00'), n.l = [date('2020-01-02')] RETURN n.d, n.l",
    "UNWIND [$dec, 2.5] AS v CREATE (:Dec {v: v, w: $dec, u: time('10:00+01:00'), t: duration('P1DT2H')})",
    "UNWIND [$exact, -$exact] AS v CREATE (:Exact {v: v, l: [v]}) RETURN v",
    "MATCH (n:B) SET n += {d: null, l: null, e: duration('PT-1.5S')} RETURN n.e",
    "MATCH (a:B {x: 2}), (n:Person {name: 'n1'}) WITH DISTINCT a, n ORDER BY n.f LIMIT 1 SET n = a RETURN n",
    "MATCH ()-[r:S]->(n:B) SET n += r",
    "MATCH (n:Dec) SET n = n",
    "MATCH ()-[r:S]->() REMOVE r.d, r.v",
    "MATCH (n:B) REMOVE n.e",
    "MATCH (n) WHERE id(n) IN [3, 7, 'x'] OR n = <urn:no> SET n.w = id(n) RETURN n.w",
    "MATCH (n), (m) WHERE id(n) = 7 AND elementId(m) = '8' AND iri(m) <> 'urn:no' SET n.v = id(m)",
    "CREATE (:One {x: 1, y: true, z: 1.0})",
    "MATCH (n:One) SET n.a = 1, n.b = true, n.c = 1.0 CREATE (n)-[r:R]->(n) SET r.q = n.x REMOVE n:One RETURN n, r",
]


def test_both_ways_are_the_same(pair: tuple[graphdb.Database, graphdb.Database]) -> None:
    same(pair, START)
    for number, text in enumerate(KNOWN):
        given = {"rows": ROWS} if "$rows" in text else {"map": {"m": 1, "x": None}} if "$map" in text else {}
        given |= {"dec": Decimal("1.50")} if "$dec" in text else {}
        given |= {"exact": Decimal("12345678901234567890.123456789012345678")} if "$exact" in text else {}
        assert same(pair, text, looks=number % 5 == 0 or text is KNOWN[-1], **given), text


READS = {
    "MATCH (a:A)": "a",
    "MATCH (a:A), (b:B)": "ab",
    "MATCH (a)-[r]->(b)": "abr",
    "MATCH (a:A)-[r:R]->(b)": "abr",
    "UNWIND [1, 2, 2] AS i MATCH (a {x: i})": "a",
    "MATCH (a) WITH a WHERE a.x > 1": "a",
    "OPTIONAL MATCH (a:C)-[r:R]->(b)": "abr",
    "MATCH (a:B)-[*1..2]->(b)": "ab",
}
WRITES = {
    "CREATE (:A {x: 1, y: a.y})": "a",
    "CREATE (a)-[:R]->(b)": "ab",
    "CREATE (a)-[:R {w: a.x}]->(:B {x: a.x + 1})": "a",
    "CREATE (a)-[p:R]->(b)<-[:R {w: 0}]-(a)": "ab",
    "SET a.x = a.x + 1": "a",
    "SET a.y = a.x, a:B": "a",
    "SET a.x = null, b.z = 1": "ab",
    "SET a += {x: 7, z: true}": "a",
    "SET a = {y: 'new'}": "a",
    "SET r.w = 3, a.z = [1, 2]": "ar",
    "SET r.w = null": "r",
    "SET a.x = b.x": "ab",
    "REMOVE a.x, a:A": "a",
    "REMOVE r.w": "r",
    "DELETE r": "r",
    "DELETE r, a": "ar",
    "DELETE a": "a",
    "DETACH DELETE a": "a",
    "DETACH DELETE a, b": "ab",
}
ENDS = {"": "", "RETURN count(*) AS n": "", "RETURN a.x AS x": "a", "WITH a MATCH (a)-[s]->(c) RETURN c, s": "a"}


@st.composite
def statements(draw: st.DrawFn) -> str:
    read = draw(st.sampled_from(list(READS)))

    def one_of(choices: dict[str, str]) -> str:
        return draw(st.sampled_from([text for text, names in choices.items() if set(names) <= set(READS[read])]))

    writes = [one_of(WRITES) for _ in range(draw(st.integers(1, 2)))]
    return " ".join([read, *writes, one_of(ENDS)]).strip()


@settings(max_examples=scaled(5), deadline=None)
@given(st.lists(statements(), min_size=3, max_size=3))
def test_random_statements_both_ways(pair: tuple[graphdb.Database, graphdb.Database], texts: list[str]) -> None:
    for db in pair:
        by_rows(db, "MATCH (n) DETACH DELETE n")
        by_rows(db, START)
    for text in texts:
        if "SET a.x = b.x" in text and text.startswith("MATCH"):  # whose b is the last, nobody says
            continue
        same(pair, text)


def test_what_cannot_go_by_sets_goes_row_by_row(pair: tuple[graphdb.Database, graphdb.Database]) -> None:
    for db in pair:
        by_rows(db, "MATCH (n) DETACH DELETE n")
    for text in (
        "MATCH (a)-[:R]->(b) WITH a, b ORDER BY a.x, b.x SET b.x = a.x + 1",
        "MATCH (n:A) UNWIND [1, 2] AS i SET n.x = n.x + i",
        "MATCH (n:A) SET n.x = 1, n.y = keys(n)",
        "MATCH p = (:A)-->(:B) DETACH DELETE p",
        "MATCH (a:A) CREATE p = (a)-[:R]->() RETURN length(p)",
        "MATCH (a:A) SET a.d = {x: 1}.x, a += properties(a)",
        "MATCH (a:A) SET a[a.y] = 2",
        "MATCH (a:A) DETACH DELETE a RETURN a",
        "UNWIND [{x: 1}, {x: 'a'}, {}] AS m CREATE (n:M) SET n = m RETURN m",
    ):
        for db in pair:
            by_rows(db, START)
        assert not same(pair, text), text


def test_explain_says_how_clauses_are_applied() -> None:
    with graphdb.connect(device="cpu") as db:
        by_rows(db, START)
        before = graph_of(db)
        for text in ("MATCH (a)-[:R]->(b) SET b.x = a.x + 1", "MATCH (n:A) UNWIND [1, 2] AS i SET n.x = n.x + i"):
            assert "unless a row reads what one before it has set" in db.explain(text)
        for text, why in (
            ("MATCH (n:A) SET n.x = 1, n.y = keys(n)", "an item reads what an earlier one has set"),
            ("MATCH p = (:A)-->() DELETE p", "what is deleted is a path"),
            ("MATCH (a:A) CREATE p = (a)-[:R]->() RETURN p", "a path that is made has a name"),
            ("MATCH (a:A) SET a.d = {x: 1}.x, a += properties(a)", "an item reads what an earlier one has set"),
        ):
            report = db.explain(text)
            assert report.startswith("written row by row"), text
            assert f"row by row: {why}" in report, text
        report = db.explain("MATCH (n:A) FOREACH (i IN [1, 2] | CREATE (:A {x: i})) RETURN n").splitlines()
        assert "  CREATE (:A {x: i})" in report
        assert graph_of(db) == before
        assert db.explain("MATCH (n:A) SET n.x = n.x + 1").startswith("written by sets")
        report = db.explain(
            "MATCH (n:A) SET n.x = 0 WITH n MATCH (n)-[:R]->(b) CREATE (:New) WITH b MATCH (o:New) RETURN o"
        )
        assert "planned when the rows give n" in report  # the second stage
        assert "scan 0 vertices New" in report  # the last one
        report = db.explain("MATCH (n:A) SET n.x = 0 WITH n MATCH p = (n)-->() DELETE p")
        assert report.startswith("written by sets and row by row")
        report = [line for (line,) in db.query("PROFILE MATCH (n:A) SET n.x = n.x + 1")]
        assert "2 rows" in [line.strip() for line in report]
        assert report[-1].endswith("2 properties set")


def test_errors_and_interrupts_leave_nothing() -> None:
    with graphdb.connect(device="cpu") as db:
        db.query(START)
        before = graph_of(db)
        with pytest.raises(ExecutionError, match="still has"):
            db.query("MATCH (n:A) SET n.x = 5 WITH n DELETE n")
        with pytest.raises(ExecutionError, match="division by zero"):
            db.query("MATCH (n:A) SET n:Odd WITH n SET n.x = 1 / 0")
        with pytest.raises(QueryTimeout):
            db.query("UNWIND range(1, 3000000) AS i CREATE (:Big {i: i})", timeout=0.3)
        assert graph_of(db) == before
        db.sql("BEGIN")
        db.query("MATCH (n:A) SET n.x = 77")
        db.sql("ROLLBACK")
        assert graph_of(db) == before


def test_few_rows_are_found_by_worked_out_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is the same for every row is tested before the match: two keys do not make a product of all pairs."""
    monkeypatch.setattr("graphdb.writing.reading.LEAST", 64)
    with graphdb.connect() as db:
        db.query("UNWIND range(1, 1500) AS i CREATE (:P {id: i})")
        text = "MATCH (a:P {id: $i + 7}), (b:P {id: $i * 2}) CREATE (a)-[:R]->(b)"
        assert db.explain(text, i=5).startswith("written row by row")
        watch = Stopwatch()
        db.query(text, i=5)
        assert watch.seconds() < 3
        assert db.query("MATCH (a)-[:R]->(b) RETURN a.id, b.id").fetchall() == [(12, 10)]
        db.query("MATCH (a:P {id: 3 / 0}), (b:Q) CREATE (a)-[:R]->(b)")  # of no rows, nothing is asked


def test_few_rows_are_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphdb.writing.reading.LEAST", 64)
    with graphdb.connect() as db:
        db.query("UNWIND range(1, 300) AS i CREATE (:P {id: i})")
        id, iri = db.query("MATCH (n:P {id: 9}) RETURN id(n), iri(n)").fetchall()[0]
        for which in (
            f"id(n) = {id}",
            f"elementId(n) = '{id}'",
            f"'{iri}' = iri(n)",
            "n.id IN [9]",
            f"id(n) IN [{id}]",
        ):
            text = f"MATCH (n) WHERE {which} SET n.x = coalesce(n.x, 0) + 1"
            assert db.explain(text).startswith("written row by row"), text
            db.query(text)
        for text in (
            "MATCH (n:P) WHERE toString(n.id) = '9' SET n.x = n.x + 1",
            "MATCH (m:P {id: 8}), (n:P) WHERE n.id = m.id + 1 SET n.x = n.x + 1",
            "UNWIND [9] AS i MATCH (n:P {id: i}) SET n.x = n.x + 1",
        ):
            db.query(text)
        assert db.query("MATCH (n) WHERE n.x IS NOT NULL RETURN n.id, n.x").fetchall() == [(9, 8)]


def test_what_the_rows_give_is_counted_before_it_is_decided() -> None:
    """How many rows a match has whose vertices the rows give, only a run tells: it goes by what is found."""
    with graphdb.connect(device="cpu", threads=1) as db:
        db.query("UNWIND range(1, 600) AS i CREATE (:P {id: i, half: i % 2})")
        text = "UNWIND $rows AS r MATCH (n:P {%s: r.value}) SET n.x = r.value"
        why: list[str] = []
        written(db, text % "id", 64, why, rows=[{"value": 7}, {"value": 9}])
        assert why == ["there are few rows"]
        assert db.query("MATCH (n) WHERE n.x IS NOT NULL RETURN n.id, n.x").fetchall() == [(7, 7), (9, 9)]
        why = []
        written(db, text % "half", 64, why, rows=[{"value": 0}])
        assert not why
        assert db.query("MATCH (n) WHERE n.x = 0 RETURN count(*), min(n.half), max(n.half)").fetchall() == [(300, 0, 0)]


def test_several_stages_within_the_callers_transaction(pair: tuple[graphdb.Database, graphdb.Database]) -> None:
    """What goes by sets outside of a transaction does within one, and what fails leaves nothing."""
    rows = [{"id": i % 5, "name": f"n{i}"} for i in range(100)]
    texts = {
        "UNWIND $rows AS r MERGE (n:T {id: r.id}) ON CREATE SET n.made = r.name ON MATCH SET n.seen = true": True,
        "UNWIND $rows AS r MERGE (n:T {id: r.id}) SET n += r": True,
        "UNWIND $rows AS r CREATE (n:U {id: r.id}) SET n:V, n.x = $x CREATE (n)-[:E {w: r.id}]->(:W)": True,
        "UNWIND [{id: 1}, null] AS r CREATE (n:U) SET n += r": False,
        "UNWIND $rows AS r CREATE (n:U {id: r.id}) SET n.copy = n.id": True,
        "UNWIND $rows AS r CREATE (n:U {id: r.id}) SET n.d = date('2020-01-01')": True,
        "UNWIND $rows AS r CREATE (n:U {id: r.id}) WITH n MATCH (m:T) CREATE (n)-[:E]->(m)": True,
    }
    for db in pair:
        db.query("MATCH (n) DETACH DELETE n CREATE (:T {id: 3}), (:T {id: 4})")
    for text, by_sets_too in texts.items():
        given = {name: value for name, value in (("rows", rows), ("x", 1)) if f"${name}" in text}
        for db in pair:
            db.sql("BEGIN")
        fails = "null]" in text
        assert same(pair, text, looks=not fails, **given) is by_sets_too, text
        for db in pair:
            assert db._state.transactions.failed is fails
            db.sql("ROLLBACK" if fails else "COMMIT")
    assert graph_of(pair[0]) == graph_of(pair[1])


def test_nothing_more_is_read_once_no_rows_are_left(pair: tuple[graphdb.Database, graphdb.Database]) -> None:
    """Clauses after one without rows are left out, unless something comes of no rows: an aggregate, or a result."""
    for db in pair:
        db.query("MATCH (n) DETACH DELETE n")
        db.query("CREATE (:P {k: 1})")
    none = "MATCH (n:P {k: 2}) SET n.x = 1"
    with pytest.MonkeyPatch.context() as patch:
        asked: list[object] = []
        matches = Writing._read_rows
        patch.setattr(
            Writing, "_read_rows", lambda self, stage, *rest: asked.append(stage) or matches(self, stage, *rest)
        )
        patch.setattr("graphdb.writing.reading.LEAST", 64)
        pair[0].query(f"{none} WITH n MATCH (m:P) SET m.x = 1 CREATE (:Q)-[:R]->(m) FOREACH (i IN [1] | CREATE (:Q))")
        assert len(asked) == 1
    assert pair[0].query("MATCH (n) RETURN n.k, n.x").fetchall() == [(1, None)]
    for rest in (
        "WITH count(*) AS c CREATE (:Q {c: c})",
        "WITH n MATCH (m:P) WITH max(m.k) AS k CREATE (:Q {k: k})",
        "RETURN count(n)",
        "WITH n MATCH (m:P) SET m.x = 1 RETURN m.x",
        "WITH n CREATE (m:Q) WITH collect(m) AS l CREATE (:Q {c: size(l)})",
    ):
        assert same(pair, f"{none} {rest}"), rest
    assert pair[0].query("MATCH (n:Q) RETURN count(*)").scalar() == 3


@pytest.mark.parametrize("least", [0, 100])
def test_decimals_are_read_as_they_were_written(least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the data cannot have exactly is refused, or a float from the beginning: never a decimal that is read as one."""
    monkeypatch.setattr("graphdb.writing.reading.LEAST", least)
    with graphdb.connect(threads=1) as db:
        for text in ("0.1234567890123456789", "123456789012345678901", "1E+30", "NaN"):
            for form in ("CREATE (:N {d: $d})", "UNWIND [$d] AS d CREATE (:N {d: d})", "MERGE (:N {d: $d.x})"):
                given = {"x": Decimal(text)} if ".x" in form else Decimal(text)
                with pytest.raises(ParameterError, match="does not fit a decimal of 20 digits before and 18 after"):
                    db.query(form, d=given)
        for text in ("-0.0", "1.50", "0.12345678901234", "99999999999999999999.999999999999999999"):
            assert db.query("CREATE (n:N {d: $d}) RETURN n.d", d=Decimal(text)).scalar() == Decimal(text)
        products = sorted(db.query("MATCH (n:N) WHERE n.d < 2 CREATE (m:M {e: n.d * n.d}) RETURN m.e").fetchall())
        assert sorted(db.query("MATCH (m:M) RETURN m.e").fetchall()) == products
        assert [type(e) for (e,) in products] == [type(e) for (e,) in sorted(db.query("MATCH (m:M) RETURN m.e"))]
