"""Cartesian products: patterns that only values connect are matched one by one, and joined by SQL."""

from __future__ import annotations

import datetime
import math
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import graphdb
from graphdb.common import arrow
from graphdb.common.errors import ExecutionError
from graphdb.grammar import syntax as ast
from graphdb.grammar.parser import parse
from graphdb.pattern.apart import apart
from graphdb.relational.program import Joined, Matched, Program
from graphdb.relational.running import array_joins
from graphdb.relational.vectors import products
from tests.oracle.routes import in_python
from tests.stops import answered

APART = [
    "MATCH (a:A), (b:B) WHERE a.x = b.x RETURN a.x, b.y",
    "MATCH (a:A) MATCH (b:B) WHERE a.x = b.x + 1 RETURN a.x, b.y",
    "MATCH (a:A) MATCH (b:B {x: a.x}) RETURN a.x, b.y, count(*)",
    "MATCH (b:B {x: a.x}), (a:A) RETURN a.x, b.y",
    "MATCH (a:A)-[:E]->(c), (b:B) WHERE c.x < b.x AND a.x < 2 AND b.y <> 'y2' RETURN a.x, c.x, b.x",
    "MATCH (a:A)-[r:E]->(c) MATCH (b:B)-[s:E]->(d) WHERE c.x = d.x RETURN a.x, b.x, r = s",
    "MATCH REPEATABLE ELEMENTS (a)-[r:E]->(c), (b)-[s:E]->(d) WHERE a.x = d.x RETURN a.x, b.x, r = s",
    "MATCH (a:A), (b:B), (c) WHERE a.x = b.x AND b.x = c.x RETURN a.x, b.y, c.y",
    "MATCH (a:A), (b:B), (c) WHERE a.x = b.x RETURN count(*)",
    "MATCH (a:A), (b:A) WHERE a <> b AND a.x < b.x RETURN a.x, b.x",
    "MATCH (a:A), (b:B) WHERE a.x = b.x OR a.y = b.y RETURN DISTINCT a.x, b.x",
    "MATCH (a:A), (b:B) WHERE coalesce(a.x, b.x) = b.x RETURN a.x, b.y ORDER BY a.x, b.y LIMIT 3",
    "UNWIND [1, 2] AS i MATCH (a:A {x: i}), (b:B) WHERE a.x = b.x RETURN i, a.y, b.y",
    "MATCH (o:B) WITH o MATCH (o)-[:E]->(a), (b) WHERE a.x = b.x RETURN o.x, a.x, b.y",
    "MATCH (a:A), (b:B WHERE b.x = a.x) RETURN a.x, b.y",
    "UNWIND [[0, 1], [1, 2]] AS p MATCH (a:A {x: p[0]}), (b:B {x: p[1]}) RETURN a.y, b.y",
]
TOGETHER = [
    "MATCH (a:A), (b:B) RETURN count(*)",
    "WITH 1 AS one MATCH (a:A), (b:B) RETURN one, count(*)",
    "MATCH (a:A), (b:B) WHERE a <> b RETURN count(*)",
    "MATCH (a:A)-[:E]->(c), (b:B)-[:E]->(d) WHERE c.x = d.x RETURN a.x, b.x",
    "MATCH DIFFERENT NODES (a:A), (b) WHERE a.x = b.x RETURN a.x, b.x",
    "MATCH (a:A)-[:E]->(b:B) WHERE a.x = b.x RETURN a.x",
    "MATCH (a:A), (b:B) WHERE a.x = 1 AND b.x = 1 RETURN a.x, b.y",
    "MATCH (a:A), (b:B) WHERE a.x = b.x AND EXISTS { (a)-->(b) } RETURN a.x, b.y",
]


@pytest.fixture(scope="module")
def db() -> Iterator[graphdb.Database]:
    database = graphdb.connect(device="cpu", threads=1)
    made = [f"({'ab'[i % 2]}{i}:{'AB'[i % 2]} {{x: {i % 3}, y: 'y{i % 4}'}})" for i in range(9)]
    made += [f"(a{i - i % 2})-[:E]->({'ab'[j % 2]}{j})" for i, j in ((0, 2), (0, 3), (2, 5), (4, 4), (6, 1))]
    made += ["(b1)-[:E]->(a0)", "(b3)-[:E]->(b5)", "(b5)-[:E]->(a8)", "(:A)", "(:B {y: 'y1'})"]
    database.query(f"CREATE {', '.join(made)}")
    yield database
    database.close()


@pytest.mark.parametrize("text", APART)
def test_what_is_taken_apart_has_the_same_rows(db: graphdb.Database, text: str) -> None:
    statements = db._statements()
    with statements.queries.new_run(text, {}, None) as run:
        program = run.prepare(parse(text))  # type: ignore[arg-type]
    assert isinstance(program, Program)
    assert len(program.matches) > 1
    want = Counter(in_python(db, text))
    assert want
    if "LIMIT" in text:
        assert sum(want.values()) == 3
    assert Counter(db.query(text).fetchall()) == want


@pytest.mark.parametrize("text", TOGETHER)
def test_what_one_plan_does_as_well_stays_together(db: graphdb.Database, text: str) -> None:
    query = parse(text)
    clauses = query.matches if isinstance(query, ast.Query) else query.parts[0]  # type: ignore[union-attr]
    assert len(apart([clause for clause in clauses if isinstance(clause, ast.MatchClause)])) == 1
    want = Counter(in_python(db, text))
    assert want
    assert Counter(db.query(text).fetchall()) == want


def test_paths_that_name_each_other_stay_together() -> None:
    query = parse("MATCH (a {x: b.x}), (b {x: a.x}) RETURN a, b")
    assert len(apart(query.matches)) == 1  # type: ignore[union-attr]


def test_large_sets_are_joined_by_a_hash(db: graphdb.Database) -> None:
    """The product has 400 million rows."""
    with graphdb.connect(device="cpu", threads=1) as large:
        large.query("UNWIND range(1, 20000) AS i CREATE (:T {i: i})")
        query = "MATCH (a:T), (b:T) WHERE b.i = a.i + 1 RETURN count(*)"
        assert answered(large, query, within=10).fetchall() == [(19999,)]
        large.query("MATCH (a:T) SET a.x = a.i * 1.5")
        for condition, count in (
            ("a.i + b.i = 10", 9),
            ("abs(a.x - b.x) < 3", 59998),
            ("4 > abs(2 * a.i - b.i)", 69996),
        ):
            query = f"MATCH (a:T), (b:T) WHERE {condition} RETURN count(*)"
            assert answered(large, query, within=10).fetchall() == [(count,)], condition


def test_an_interval_beside_an_equation_of_a_handful_of_values() -> None:
    """By the equation half of 10 billion pairs would be tested."""
    count = 100_000
    times, kinds = np.arange(count) * 7919 % 999_983, np.arange(count) % 3
    order = np.lexsort((times, kinds))
    keys = (kinds * 10**7 + times)[order]  # sorted by kinds, then by times
    with graphdb.connect(device="cpu") as large:
        large.query("UNWIND range(0, $n - 1) AS i CREATE (:T {t: i * 7919 % 999983, k: 'k' + i % 3})", n=count)
        large.query("CREATE (:T {t: 5}), (:T {k: 'k1'})")
        for condition, low, high in (
            ("a.k = b.k AND a.t <= b.t AND b.t < a.t + 10", 0, 9),
            ("abs(a.t - b.t) < 3 AND b.k = a.k", -2, 2),
            ("a.k = b.k AND a.t - 5 < b.t <= a.t + 2", -4, 2),
        ):
            found = np.searchsorted(keys, keys + high, "right") - np.searchsorted(keys, keys + low)
            query = f"MATCH (a:T), (b:T) WHERE {condition} RETURN count(*)"
            assert answered(large, query, within=20).fetchall() == [(int(found.sum()),)], condition
        # Of times that are all the same but for one, the equation leaves fewer.
        large.query(
            "MATCH (a:T) WHERE a.t IS NOT NULL SET a.u = CASE a.t WHEN 5 THEN 1000000000 ELSE 7 END, a.l = a.t / 10"
        )
        # Nor are pairs tested one by one of two equations that leave all.
        query = "MATCH (a:T), (b:T) WHERE a.u = b.u AND a.u / 10 = b.u / 10 AND b.t < a.t - 1000000 RETURN count(*)"
        assert answered(large, query, within=20).fetchall() == [(0,)]
        query = "MATCH (a:T), (b:T) WHERE a.l = b.l AND a.u - 1 < b.u AND b.u < a.u + 1 RETURN count(*)"
        whole = np.append(times, 5)
        _, each = np.unique(whole // 10 * 2 + (whole == 5), return_counts=True)
        assert answered(large, query, within=20).fetchall() == [(int((each**2).sum()),)]


SEVERAL = [
    "a.i = b.i AND b.d = a.d AND a.id < b.id",
    "a.i = b.i AND a.f = b.f AND b.i2 < a.i2 AND a <> b",
    "a.big = b.big AND a.f = b.f AND a.d = b.d",
    "a.big = b.big AND a.small = b.small AND a.i = b.i",
    "a.s = b.s AND a.f = b.f AND a.d < b.d AND a.id > b.id",
    "b.i = a.i AND a.i2 = b.i2 AND a.f < b.f AND a.id <= b.id",
    "a.d = b.d AND a.f = b.i",
]


def test_several_equations_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Joined by one integer for the values of all, of pairs on which further conditions are tested at once, or later."""
    draw = random.Random(17)
    day = datetime.date(1999, 12, 30)
    kinds: dict[str, list[Any]] = {
        "i": [None, -2, 0, 1, 2],
        "i2": [None, *range(-6, 7)],
        "big": [None, -(2**63) + 1, 2**63 - 1, 0, 5],
        "small": [2**40, -(2**40), 7],
        "f": [math.nan, -0.0, 0.0, 1.0, 2.0, None, math.inf],
        "s": ["", "a", "ab", None],
        "d": [None, *(day + datetime.timedelta(n) for n in range(5))],
    }
    rows = [{"id": n, **{name: draw.choice(some) for name, some in kinds.items()}} for n in range(150)]
    joined = []
    equal_pairs = products._equal_pairs
    monkeypatch.setattr(products, "_equal_pairs", lambda *of: joined.append(of) or equal_pairs(*of))
    monkeypatch.setattr(array_joins, "_MANY", 0)  # as if there were more pairs
    monkeypatch.setattr(products, "_PIECE", 40)
    with graphdb.connect(device="cpu", threads=2) as some:
        properties = ", ".join(f"{name}: row.{name}" for name in rows[0])
        some.query(f"UNWIND $rows AS row CREATE (:T {{{properties}}})", rows=rows)
        for condition in SEVERAL:
            text = f"MATCH (a:T), (b:T) WHERE {condition} RETURN a.id, b.id"
            want = Counter(in_python(some, text))
            assert want, condition
            assert Counter(some.query(text).fetchall()) == want, condition
            counted = f"MATCH (a:T), (b:T) WHERE {condition} RETURN count(*), max(a.id), sum(b.id)"
            figures = (want.total(), max(a for a, _ in want), sum(b * n for (_, b), n in want.items()))
            assert some.query(counted).fetchall() == [figures], condition
    assert len(joined) > len(SEVERAL)


MIXED = [
    "a.i + b.i = 3",
    "a.i - b.i > -2",
    "2 * a.i - 3 * b.i <= 1 + b.i",
    "1 < a.i + b.i <= 4",
    "-a.i - 1 = b.i - 2",
    "abs(a.i - b.i) < 2",
    "2 >= abs(b.i - 2 * a.i) AND a.i <> b.i",
    "abs(a.x - b.x) <= 0.1",
    "abs(b.x - a.i) < 1",
    "abs(a.x - b.x) < -1",
    "abs(a.i - b.i) > 3",
    "a.i + b.i <> 3 AND a.i - b.i = a.i - b.i",
    "a.i + b.x = 1.5",
    "a.i + b.i = 2 * b.i",
]


def test_sides_that_mix_two_patterns_are_separated() -> None:
    numbers: list[Any] = [None, 0, 1, 2, 3, -1, -4, 7]
    floats = [math.nan, math.inf, -math.inf, -0.0, 0.1, 0.2, 0.1 + 0.2, 1e16, 1e16 + 2, 5e-324, None, 1.5]
    with graphdb.connect(device="cpu", threads=1) as mixed:
        mixed.query("UNWIND $i AS i CREATE (:T {i: i})", i=numbers)
        mixed.query("UNWIND $x AS x CREATE (:T {x: x, i: 1})", x=floats)
        for largest in (0, 2**61, 2**63 - 1):
            mixed.query("CREATE (:T {i: $i, x: 0.3})", i=largest)
            for condition in MIXED:
                text = f"MATCH (a:T), (b:T) WHERE {condition} RETURN a.i, a.x, b.i, b.x"
                try:
                    want = Counter(map(repr, in_python(mixed, text)))
                except ExecutionError:
                    with pytest.raises(ExecutionError):
                        mixed.query(text)
                    continue
                assert Counter(map(repr, mixed.query(text))) == want, condition


@pytest.mark.parametrize(
    "pattern",
    [
        "(b:B), (c:C), (a:Absent) WHERE",
        "(b:B)-[:R]->(c:C), (a:B&Absent) WHERE",
        "(b:B), (c:C), (a)-[:NOTHING]->() WHERE",
        "(b:B), (c:C), (a {nowhere: 1}) WHERE",
        "(b:B), (c:C), (a) WHERE a:Absent AND",
        "(b:B), (c:C), (a) WHERE a.nowhere > 1 AND",
    ],
)
@pytest.mark.parametrize("condition", ["1 / b.x = c.x", "c.x / b.x > 1", "range(1, 2, b.x) = [c.x]", "1 / b.x > 0"])
def test_nothing_is_computed_where_a_part_has_no_match(pattern: str, condition: str) -> None:
    with graphdb.connect(threads=1) as db:
        db.query("UNWIND range(0, 5) AS i CREATE (:B {x: i})-[:R]->(:C {x: i})")
        for returned in ("b.x, c.x", "count(*)"):
            rows = db.query(f"MATCH {pattern} {condition} RETURN {returned}").fetchall()
            assert rows == ([] if returned != "count(*)" else [(0,)])
        with pytest.raises(ExecutionError):  # where there are rows, it fails
            db.query(f"MATCH {pattern.partition(', (a')[0]} WHERE {condition} RETURN b.x")


ALONE = {
    "a.i % 10 = 0": lambda a, b: a[0] % 10 == 0,
    "a.i % 10 < a.y - 7": lambda a, b: a[0] % 10 < a[2] - 7,
    "b.i % 10 = 0 AND -b.y > -3": lambda a, b: b[0] % 10 == 0 and -b[2] > -3,
    "a.i + 1 = 11": lambda a, b: a[0] + 1 == 11,
}


@pytest.mark.parametrize("alone", ALONE)
def test_conditions_on_one_variable_are_tested_before_the_join(alone: str) -> None:
    """Arithmetic among them, whatever stands before it: the join is of what is left."""
    rows = [(i, i % 4, i * 7 % 9) for i in range(60)]
    with graphdb.connect(threads=1) as db:
        db.query("UNWIND $rows AS r CREATE (:P {i: r[0], x: r[1], y: r[2]})", rows=rows)
        text = f"MATCH (a:P), (b:P) WHERE a.x = b.x AND a.y < b.y AND {alone} RETURN a.i, b.i"
        pairs = ((a, b) for a in rows for b in rows if a[1] == b[1] and a[2] < b[2])
        assert Counter(db.query(text).fetchall()) == Counter((a[0], b[0]) for a, b in pairs if ALONE[alone](a, b))
        explained = "\n".join(line for (line,) in db.query(f"EXPLAIN {text}").fetchall())
        _, _, after = explained.partition("then SQL over the bindings")
        assert not any(operator in after for operator in "%+-")


def test_one_row_beside_many_bindings_takes_no_memory() -> None:
    """Their own columns are not copied, and an integer of the row is there once; a text would be there for each."""
    step = Joined("j", "rows", Matched("found", (), ("n",), (("v", "v0"),), False), "", "", frozenset())
    found = arrow.table({"v0": np.arange(10, 1010)})
    for value, is_joined in ((7, True), ("seven", False)):
        rows = arrow.table({"n": [value]})
        made = array_joins.joined(step, {"rows": rows, "found": found}, 100)
        assert (made is not None) == is_joined
        if made is not None:
            assert made.to_pydict() == {"n": [7] * 1000, "row": [0] * 1000, "v": [*range(10, 1010)]}
            assert made.column("v") is found.column("v0")
    rows = arrow.table({"n": [1, 2]})
    assert array_joins.joined(step, {"rows": rows, "found": found}, 100) is None
