"""Plans survive changes that do not concern them, and answer as plans made anew do."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

import graphdb
from graphdb.dispatch.queries import Queries

QUERIES = (
    "MATCH (a:A)-[:r]->(b) RETURN count(*)",
    "MATCH (a)-[:s]->(b)-[:r]->(c) RETURN count(*)",
    "MATCH (a)-[:s]->(b) RETURN a.n, b.m ORDER BY a.n, b.m",
    "MATCH (a:B) RETURN count(*)",
    "MATCH (a:B&!A) RETURN count(*)",
    "MATCH (a {n: 3})-[:r]->(b) RETURN b.n ORDER BY b.n",
    "MATCH (a)-[:r|s]->(b) RETURN count(*)",
    "MATCH (a)-[:t]-(b) RETURN count(*)",
    "MATCH (a)-[]->(b) RETURN count(*)",
    "MATCH (a) RETURN count(*)",
    "MATCH (a) WHERE a.m > 4 RETURN count(*)",
    "MATCH (a)-[:r]->(b) WHERE a.m < b.m RETURN count(*)",
    "MATCH (a)-[:n]->(v)<-[:n]-(b) RETURN count(*)",
    "MATCH (a)-[:r]->(b) RETURN a.n AS n, count(*) AS c ORDER BY n, c",
    "MATCH (a:A)-[:t]->(b:B) RETURN labels(a), b.n ORDER BY b.n, a.n",
    "MATCH (a)-[:r]->(b) WHERE NOT (b)-[:s]->() RETURN count(*)",
    "MATCH (a)-[:r*1..2]->(b) RETURN count(*)",
    "MATCH (a)-[e:s]->(b) WHERE e.w IS NULL RETURN count(*)",
    "MATCH (a)-[e:r]->(b) RETURN a.n, e.w ORDER BY a.n, e.w",
    "MATCH (a:A {n: 3}) OPTIONAL MATCH (b:B) WHERE b.m IN [1, 2] WITH a, collect(b) AS l RETURN size(l)",
    "MATCH (a:A) WITH a ORDER BY a.n LIMIT 5 MATCH (a)-[:r]->(b:B) RETURN a.n, b.m ORDER BY a.n, b.m",
    "MATCH (a:A) WITH a MATCH (a)-[:s]->(b {m: a.m}) RETURN count(*)",
)


@pytest.fixture
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(threads=1) as database:
        database.query("UNWIND range(0, 19) AS i CREATE (:A {n: i, m: i % 7})")
        database.query("MATCH (a), (b) WHERE (a.n * 3 + b.n * 5) % 11 = 1 CREATE (a)-[:r]->(b)")
        database.query("MATCH (a), (b) WHERE (a.n * 7 + b.n) % 13 = 2 CREATE (a)-[:s]->(b), (b)-[:t]->(a)")
        database.query("MATCH (a) WHERE a.n % 3 = 0 SET a:B")
        yield database


PARAMETRISED = (
    "MATCH (a)-[:r]->(b) WHERE a.m = $m RETURN count(*)",
    "MATCH (a {m: $m})-[:s]->(b) RETURN a.n, b.n ORDER BY a.n, b.n",
    "MATCH (a {m: $m})-[:r*1..2]->(b) RETURN count(*)",
    "MATCH (a:A {m: $m}) OPTIONAL MATCH (a)-[:r]->(b:B {m: 2}) WITH a, count(b) AS c RETURN sum(a.n), c ORDER BY c",
    "MATCH (a:A {n: $m}) RETURN a.n, a.m",
    "MATCH (a:A {n: $m}) RETURN a.x, coalesce(a.y, a.m), a.w",
    "MATCH (a:A {n: $m})-[:r]->(b) RETURN b.n, b.m ORDER BY b.n",
    "MATCH (a {n: $m})-[:r]-(b)-[:s]->(c:B) RETURN count(*)",
)
"""Plans of one value serve the next one."""


def answers(db: graphdb.Database) -> list[object]:
    found = [db.query(text).fetchall() for text in QUERIES]
    return [*found, *(db.query(text, m=m).fetchall() for text in PARAMETRISED for m in (1, 4))]


def cached(db: graphdb.Database, text: str) -> bool:
    return db._state.plans.get(text, 0, {}) is not None


KINDS = 10
"""Of writes."""


def write(db: graphdb.Database, draw: random.Random, kind: int) -> None:
    one, other, new = draw.randrange(20), draw.randrange(20), draw.randrange(10**6)
    label = draw.choice("rst")
    match kind:
        case 0:
            db.query(f"MATCH (a {{n: {one}}}), (b {{n: {other}}}) CREATE (a)-[:{label}]->(b)")
        case 1:
            db.query(f"MATCH (a {{n: {one}}})-[e:{label}]->() DELETE e")
        case 2:
            db.query(f"MATCH (a {{n: {one}}}) SET a.m = {new % 9}")
        case 3:
            db.query(f"MATCH (a {{n: {one}}}) SET a.{draw.choice(['x', 'y'])} = 'v{new}'")
        case 4:
            db.query(f"MATCH (a {{n: {one}}}) {draw.choice(['SET', 'REMOVE'])} a:{draw.choice('ABC')}")
        case 5:
            db.query(f"CREATE (:{draw.choice('AC')} {{n: {20 + new}}})")
        case 6:
            db.query(f"MATCH (a {{n: {one}}}) DETACH DELETE a")
        case 7:
            db.query("BEGIN")
            db.query(f"MATCH (a {{n: {one}}}), (b {{n: {other}}}) CREATE (a)-[:{label}]->(b)-[:r]->({{m: 5}})")
            answers(db)
            db.query("ROLLBACK")
        case 8:
            db.query(f"MATCH (a {{n: {one}}})-[e:t]->() SET e.w = {draw.choice(['1', '2', 'null', chr(39) * 2])}")
        case _:
            db.apply([(f"urn:graphdb:v{new % 7}", label, f"urn:graphdb:v{one}")])


@pytest.mark.parametrize("seed", range(4))
def test_what_survives_answers_as_what_is_made_anew(db: graphdb.Database, seed: int) -> None:
    """Writes of each kind, in another order with each seed, and some more."""
    draw = random.Random(seed)
    answers(db)
    for kind in [*draw.sample(range(KINDS), KINDS), *draw.choices(range(KINDS), k=5)]:
        answers(db)  # counts that are asked twice are found by their text
        write(db, draw, kind)
        found = answers(db)
        db._state.plans.clear()
        db._state.snapshot().plans.clear()
        assert found == answers(db)


def test_only_what_a_change_concerns_is_prepared_again(db: graphdb.Database) -> None:
    db.query("MATCH (a {n: 1}) SET a.x = 'v'")

    def survivors(statement: str) -> set[str]:
        answers(db)
        db.query(statement)
        return {text for text in QUERIES if cached(db, text)}

    edges, others, rows = QUERIES[0], QUERIES[1], QUERIES[2]
    assert {edges, QUERIES[7]} <= survivors("MATCH (a {n: 1}), (b {n: 2}) CREATE (a)-[:s]->(b)")
    assert not {others, rows, QUERIES[8]} & survivors("MATCH (a {n: 2}), (b {n: 2}) CREATE (a)-[:s]->(b)")
    assert {edges, others, rows, QUERIES[3]} <= survivors("MATCH (a {n: 1}) SET a.x = 'w'")
    assert rows not in survivors("MATCH (a {n: 1}) SET a.m = 6")
    assert QUERIES[3] not in survivors("MATCH (a {n: 1}) SET a:B")
    assert {others, QUERIES[7]} <= survivors("MATCH (a {n: 2}) SET a:B")
    assert not survivors("MATCH (a {n: 2}) SET a:Other"), "a name may stand for something else by now"


def test_a_count_that_a_change_concerns_is_planned_anew_and_nothing_else(
    db: graphdb.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, rows = QUERIES[0], QUERIES[2]
    before = [db.query(each).fetchall() for each in (text, rows)]
    db.query("MATCH (a {n: 1}), (b {n: 3}) CREATE (a)-[:r]->(b), (a)-[:s]->(b)")
    plans = db._state.plans
    assert plans.get(text, 0, {}) is None
    left = plans.unplanned(text, 0, {})
    assert left is not None
    assert left.plan is None, "no partition of before stays in memory with it"
    assert plans.unplanned(rows, 0, {}) is None
    monkeypatch.setattr("graphdb.relational.query.bind", None)
    assert db.query(text).scalar() == before[0][0][0] + 1
    assert plans.get(text, 0, {}) is not None
    assert plans.unplanned(text, 0, {}) is None
    monkeypatch.undo()
    assert len(db.query(rows).fetchall()) == len(before[1]) + 1
    db.query("MATCH (a {n: 1}), (b {n: 3}) CREATE (a)-[:r]->(b)")  # another one beside it
    assert plans.unplanned(text, 0, {}) is None, "edges of this label are told from one another by now"
    assert db.query(text).scalar() == before[0][0][0] + 2


@pytest.mark.parametrize("text", PARAMETRISED)
def test_a_plan_that_a_change_concerns_serves_other_values(db: graphdb.Database, text: str) -> None:
    db.apply([("urn:graphdb:v1", "m", 1), ("urn:graphdb:v2", "m", 2)])
    before = [db.query(text, m=m).fetchall() for m in (0, 1, 2)]
    assert len({str(rows) for rows in before}) > 1
    db.apply([("urn:graphdb:v1", "r", "urn:graphdb:v2")])
    found = [db.query(text, m=m).fetchall() for m in (3, 2, 1, 0)]
    db._state.plans.clear()
    assert found == [db.query(text, m=m).fetchall() for m in (3, 2, 1, 0)]


KEYED = "MATCH (a:A {n: $n}) RETURN a.m, a.x"
"""Gathers all that it returns."""


@pytest.mark.parametrize("transaction", [False, True])
def test_a_key_is_read_after_changes_without_being_bound_or_looked_up_again(
    db: graphdb.Database, monkeypatch: pytest.MonkeyPatch, transaction: bool
) -> None:
    db.query("UNWIND range(0, 19) AS i MATCH (a:A {n: i}) SET a.x = 'v' + i")
    there = {n: (n % 7, f"v{n}") for n in range(20)}

    def found(numbers: range = range(34)) -> dict[int, object]:
        return {n: row for n in numbers for row in db.query(KEYED, n=n).fetchall()}

    assert [found() for _ in range(3)][-1] == there  # by now they are in memory
    if transaction:
        db.query("BEGIN")
        found()  # statements within a transaction have plans of their own
    monkeypatch.setattr("graphdb.relational.query.bind", None)
    monkeypatch.setattr("graphdb.snapshot.property_arrays.PropertyArrays._looked_up", None)
    for n in range(30, 33):
        db.query("CREATE (:A {n: $n, m: 1, x: $x})", n=n, x=f"ü{n}")
        there[n] = (1, f"ü{n}")
        assert found(range(n, 34)) == {n: there[n]}
        assert found() == there
    db.query("MATCH (a:A {n: 3}) SET a.x = 'other'")
    db.query("MATCH (a:A {n: 3}) SET a.x = 'v3', a.m = 5")
    db.query("MATCH (a:A {n: 4}) REMOVE a.x")
    there |= {3: (5, "v3"), 4: (4, None)}
    assert found() == there
    db.query("MATCH (a:A {n: 31}) DETACH DELETE a")
    db.query("CREATE (:A {n: 33, m: 0})")
    del there[31]
    there[33] = (0, None)
    assert found() == there
    if transaction:
        monkeypatch.undo()
        db.query("ROLLBACK")
        assert found() == {n: (n % 7, f"v{n}") for n in range(20)}


def test_a_plan_of_before_is_not_used_where_its_sql_may_be_asked(
    db: graphdb.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, prepared = "MATCH (a:A {m: $m}) RETURN a.n", []
    before = sorted(db.query(text, m=2).fetchall())

    def noted(self: Queries, *arguments: Any, prepare: Any = Queries.prepare_anew) -> Any:
        prepared.append(arguments)
        return prepare(self, *arguments)

    monkeypatch.setattr(Queries, "prepare_anew", noted)
    db.query("CREATE (:A {n: 77, m: 2})")
    assert sorted(db.query(text, m=2).fetchall()) == [*before, (77,)]
    assert not prepared
    monkeypatch.setattr("graphdb.relational.query._HANDFUL", 2)
    db.query("CREATE (:A {n: 78, m: 2})")
    assert sorted(db.query(text, m=2).fetchall()) == [*before, (77,), (78,)]
    assert prepared


CLAUSES = (
    "MATCH (a:A {m: $m}) OPTIONAL MATCH (a)-[:r]->(b:B) WHERE b.n > 3 WITH a, collect(b) AS l RETURN size(l), count(a)"
)


@pytest.mark.parametrize("ask", [CLAUSES, CLAUSES.replace("$m", "2")])
def test_clauses_whose_candidates_a_change_concerns_are_not_compiled_again(
    db: graphdb.Database, monkeypatch: pytest.MonkeyPatch, ask: str
) -> None:
    values: list[dict[str, object]] = [{"m": 2}, {"m": 3}] if "$m" in ask else [{}]
    before = [sorted(db.query(ask, **given).fetchall()) for given in values]
    db.query("MATCH (a {n: 1})-[:r]->(b) SET a.m = 2, b.n = 9")
    monkeypatch.setattr("graphdb.relational.query.Lowering", None)
    found = [sorted(db.query(ask, **given).fetchall()) for given in values]
    monkeypatch.undo()
    assert found != before
    db._state.plans.clear()
    assert found == [sorted(db.query(ask, **given).fetchall()) for given in values]


@pytest.mark.parametrize(
    "change", ["SET a.n = 'text'", "SET a.n = [1, 2]", "REMOVE a.n", "SET a.n = date('2020-01-01')", "SET a.n = 1.5"]
)
@pytest.mark.parametrize(
    "text",
    [
        "MATCH (a:A) WITH a ORDER BY a.n LIMIT 30 MATCH (a)-[:r]->(b) RETURN a.n, b.n",
        "MATCH (a:A) WITH a, a.n AS n MATCH (b:B {n: n}) RETURN count(*)",
        "UNWIND [1, 2, 3] AS x MATCH (b {n: x}) RETURN count(*), max(b.n)",
        "MATCH (a:A {m: 1}) RETURN a.n",
        "MATCH (a:A) OPTIONAL MATCH (a)-[:r]->(b) WHERE b.n <> a.n WITH a, count(b) AS c RETURN c, count(*)",
    ],
)
def test_values_of_another_type_are_read_by_other_sql(db: graphdb.Database, text: str, change: str) -> None:
    db.query(text).fetchall()
    db.query(f"MATCH (a:A {{n: 2}}) {change}")
    found = sorted(map(str, db.query(text).fetchall()))
    db._state.plans.clear()
    assert found == sorted(map(str, db.query(text).fetchall()))


@pytest.mark.parametrize(
    "text",
    [
        "MATCH (a)-[e:r]->(b) WHERE e.w IS NULL RETURN count(*)",
        "MATCH (a)-[e:r]->(b) WHERE e.w = $w RETURN a.n, b.n",
        "MATCH (a)-[:r {w: 1}]->(b) RETURN count(*)",
        "MATCH (a)-[e:r]->(b) RETURN a.n, e.w ORDER BY a.n LIMIT 3",
        "MATCH (a)-[e:r]->(b) RETURN e.w, count(*)",
    ],
)
def test_properties_of_edges_that_only_others_have(db: graphdb.Database, text: str) -> None:
    """Their tables hold the edges of all labels, and go when any of these changes."""
    given = {"w": 1} if "$w" in text else {}
    db.query("MATCH (a {n: 1}), (b {n: 2}) CREATE (a)-[:t {w: 1}]->(b)-[:t {w: 2}]->(a)")
    before = db.query(text, **given).fetchall()
    for change in (
        "MATCH ()-[e:t {w: 1}]->() SET e.w = 3",
        "MATCH ()-[e:t {w: 3}]->() SET e.w = 'three'",
        "MATCH ()-[e:t {w: 2}]->() DELETE e",
        "MATCH (a {n: 3}), (b {n: 4}) CREATE (a)-[:s {w: 1}]->(b)",
    ):
        db.query(change)
        assert db.query(text, **given).fetchall() == before
    db.query("MATCH (a {n: 3}), (b {n: 4}) CREATE (a)-[:r {w: 1}]->(b)")
    found = db.query(text, **given).fetchall()
    db._state.plans.clear()
    assert found == db.query(text, **given).fetchall()


def test_a_label_that_nothing_has_any_more_has_no_members() -> None:
    """Its name is unknown then; the partition of labels, which took the change in place, has a list behind all others."""
    with graphdb.connect(threads=1, device="cpu") as db:
        db.query("UNWIND range(1, 5) AS i CREATE (:P {k: i})")
        db.query("CREATE (:C)")
        db.query("MATCH (a:P) SET a:H")
        assert db.query("MATCH (a:H) RETURN count(*)").scalar() == 5
        db.query("MATCH (c:C) DETACH DELETE c")
        assert db.query("MATCH (c:C) RETURN count(*)").scalar() == 0
        assert not db.query("MATCH (c:C) RETURN c").fetchall()


def test_induced_patterns_are_planned_again_after_changes_of_any_edge() -> None:
    text = "MATCH INDUCED (a)-[:R]->(b)<-[:R]-(c) RETURN b.i AS i, count(*) AS n ORDER BY i"

    def answer(asked: bool) -> list[tuple[object, ...]]:
        with graphdb.connect(device="cpu") as db:
            for label in "AB":
                db.query(f"UNWIND range(0, 7) AS x CREATE (:{label} {{i: x}})")
            db.query("MATCH (a:A), (b:B) WHERE (a.i + 3 * b.i) % 5 = 0 CREATE (a)-[:R]->(b)")
            db.query("MATCH (a:A), (b:A) WHERE (2 * a.i + b.i) % 7 = 0 CREATE (a)-[:S]->(b)")
            if asked:
                db.query(text)
            db.query("MATCH (:A {i: 0})-[e:S]->() DELETE e")
            return db.query(text).fetchall()

    assert answer(asked=True) == answer(asked=False) == [(0, 2), (3, 2), (5, 2)]
