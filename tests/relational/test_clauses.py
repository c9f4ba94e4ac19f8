"""Queries of several clauses: what runs as SQL over bindings, what EXPLAIN says of it, and what is kept and cleared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import graphdb
from graphdb.execute.host import HostExecutor
from graphdb.grammar.parser import parse
from graphdb.relational.paths.run import PathRun

GRAPH = """
CREATE (ada:P {name: 'Ada', age: 36}), (bob:P {name: 'Bob', age: 40}), (cy:P:Q {name: 'Cy'}), (dan:Q {name: 'Dan', age: 5}),
       (ada)-[:KNOWS]->(bob), (bob)-[:KNOWS]->(cy), (ada)-[:KNOWS]->(dan), (cy)-[:KNOWS]->(cy), (ada)-[:LIKES]->(cy)
"""


@pytest.fixture(scope="module")
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(threads=1, device="cpu") as database:
        database.query(GRAPH)
        yield database


def _rows(db: graphdb.Database, text: str, **arguments: object) -> Counter[tuple[Any, ...]]:
    return Counter(map(tuple, db.query(text, **arguments).fetchall()))  # type: ignore[arg-type]


JOINS: list[tuple[str, list[tuple[Any, ...]]]] = [
    (
        "MATCH (a:P) OPTIONAL MATCH (a)-[:LIKES]->(b) RETURN a.name, b.name",
        [("Ada", "Cy"), ("Bob", None), ("Cy", None)],
    ),
    (
        "MATCH (a:P) OPTIONAL MATCH (a)-[r:KNOWS]->(b) WHERE b.age > a.age RETURN a.name, b.name, type(r), labels(b), b:P",
        [("Ada", "Bob", "KNOWS", "P", True), ("Bob", None, None, None, None), ("Cy", None, None, None, None)],
    ),
    (
        "OPTIONAL MATCH (a:P {name: 'Eve'}) RETURN a, a.name, id(a), labels(a)",
        [(None, None, None, None)],
    ),
    (
        "MATCH (a:P {name: 'Ada'}) OPTIONAL MATCH (a)-[:LIKES]->(b) OPTIONAL MATCH (b)-[:KNOWS]->(c)-[:KNOWS]->(d) "
        "RETURN b.name, c.name, d.name",
        [("Cy", None, None)],
    ),
    (
        "MATCH (a:P)-[:KNOWS]->(b) WITH a, count(b) AS n WHERE n > 1 MATCH (a)-[:LIKES]->(c) RETURN a.name, n, c.name",
        [("Ada", 2, "Cy")],
    ),
    (
        "MATCH (a) WITH a ORDER BY a.name DESC LIMIT 2 MATCH (a)<-[:KNOWS]-(b) RETURN a.name, b.name",
        [("Dan", "Ada"), ("Cy", "Bob"), ("Cy", "Cy")],
    ),
    (
        "MATCH (:P {name: 'Ada'})-[r]->(x:Q) WITH r, x MATCH (y)-[r]->(x) RETURN y.name, type(r), x.name",
        [("Ada", "KNOWS", "Dan"), ("Ada", "LIKES", "Cy")],
    ),
    (
        "UNWIND ['Bob', 'Cy', 'Bob'] AS n MATCH (p:P {name: n}) RETURN n, p.age",
        [("Bob", 40), ("Bob", 40), ("Cy", None)],
    ),
    ("UNWIND [36, 41] AS n OPTIONAL MATCH (p:P {age: n}) RETURN n, p.name", [(36, "Ada"), (41, None)]),
    ("UNWIND [] AS x RETURN x", []),
    ("UNWIND null AS x RETURN x", []),
    ("UNWIND 7 AS x RETURN x", [(7,)]),
    ("MATCH (a:P) RETURN a.age AS x UNION MATCH (a:Q) RETURN a.age AS x", [(36,), (40,), (None,), (5,)]),
    ("RETURN 1 AS x UNION ALL RETURN 1 AS x UNION ALL RETURN null AS x", [(1,), (1,), (None,)]),
    ("MATCH (a:P) WHERE EXISTS { (a)-[:LIKES]->() } RETURN a.name", [("Ada",)]),
    ("MATCH (a:P) WHERE NOT EXISTS { MATCH (a)-[:KNOWS]->(b) WHERE b.age > a.age } RETURN a.name", [("Bob",), ("Cy",)]),
    ("MATCH (a:P) RETURN a.name, COUNT { (a)-[:KNOWS]->() } AS n", [("Ada", 2), ("Bob", 1), ("Cy", 1)]),
    ("MATCH (a:P) RETURN a.name, COUNT { (a)-->(b:Q) WHERE b.age > 1 } AS n", [("Ada", 1), ("Bob", 0), ("Cy", 0)]),
    ("MATCH (a:Q) RETURN a.name, EXISTS { MATCH (:P {name: 'Eve'}) } AS x", [("Cy", False), ("Dan", False)]),
    ("MATCH (a:Q) RETURN a.name, [(a)<-[:LIKES]-(b) | b.name] AS l", [("Cy", "Ada"), ("Dan", "")]),
    (
        "MATCH (a:P) WHERE EXISTS { MATCH (a)-[:KNOWS]->(b) WHERE EXISTS { (b)-[:KNOWS]->(b) } } RETURN a.name",
        [("Bob",), ("Cy",)],
    ),
    (
        "MATCH (a:P) RETURN a.name, COLLECT { MATCH (a)-->(b) RETURN b.name ORDER BY b.name DESC LIMIT 1 } AS l",
        [("Ada", "Dan"), ("Bob", "Cy"), ("Cy", "Cy")],
    ),
    (
        "MATCH (a) RETURN a.name, size(COLLECT { MATCH (a)-->(b) RETURN b.age ORDER BY b.age SKIP 1 LIMIT 2 }) AS n",
        [("Ada", 2), ("Bob", 0), ("Cy", 0), ("Dan", 0)],
    ),
    (
        "MATCH (a:P) RETURN a.name, COLLECT { MATCH (a)-->(b) RETURN b.name ORDER BY b.age NULLS FIRST, b.name LIMIT 2 } AS l",
        [("Ada", "Cy,Dan"), ("Bob", "Cy"), ("Cy", "Cy")],
    ),
    (
        "MATCH (a:P) RETURN a.name, COLLECT { MATCH (a)-->(b) WITH b ORDER BY b.name DESC RETURN b.name LIMIT 2 } AS l",
        [("Ada", "Dan,Cy"), ("Bob", "Cy"), ("Cy", "Cy")],
    ),
    (
        "MATCH (a) WHERE EXISTS { MATCH (a)-->(b) WITH a, count(b) AS n WHERE n = 0 OR n > 2 RETURN n } RETURN a.name",
        [("Ada",)],
    ),
    ("MATCH (a) WHERE EXISTS { MATCH (a)-->(b) WITH count(b) AS n WHERE n = 0 RETURN n } RETURN a.name", [("Dan",)]),
    (
        "MATCH (a) RETURN a.name, COUNT { MATCH (a)-->(b) RETURN b UNION MATCH (a)<--(b) RETURN b } AS n",
        [("Ada", 3), ("Bob", 2), ("Cy", 3), ("Dan", 1)],
    ),
    (
        "MATCH (a) RETURN a.name, COUNT { MATCH (a)-->(b) RETURN DISTINCT b.age AS x, b UNION ALL MATCH (a)<--(b) RETURN b.age AS x, b } AS n",
        [("Ada", 3), ("Bob", 2), ("Cy", 4), ("Dan", 1)],
    ),
    (
        "MATCH (a:P) WITH a.age AS x RETURN x, COUNT { MATCH (b) WHERE b.age < x RETURN DISTINCT b.age > 6 } AS n",
        [(36, 1), (40, 2), (None, 0)],
    ),
    (
        "MATCH (a:Q) RETURN a.name, COUNT { MATCH (b) WHERE EXISTS { WITH b MATCH (b)-->(a) WITH DISTINCT b SKIP 1 RETURN b } } AS n",
        [("Cy", 0), ("Dan", 0)],
    ),
    (
        "MATCH (a:Q) RETURN COLLECT { MATCH (b:P) RETURN b.name ORDER BY b.name } AS l",
        [("Ada,Bob,Cy",), ("Ada,Bob,Cy",)],
    ),
    (
        "MATCH (a) WHERE (a)-[:KNOWS*2]->(a) OR EXISTS { (a)-[*1..2]->(:Q) } RETURN a.name",
        [("Ada",), ("Bob",), ("Cy",)],
    ),
    ("MATCH (a) WHERE EXISTS { (a)-[:KNOWS*]->(:Q) } OR a.name = 'x' RETURN a.name", [("Ada",), ("Bob",), ("Cy",)]),
    ("MATCH (a:P), (b:Q) WHERE NOT (a)-[:KNOWS*]->(b) RETURN a.name, b.name", [("Bob", "Dan"), ("Cy", "Dan")]),
    ("MATCH (a:P) WITH a MATCH (a)-[:KNOWS*]->(b) RETURN count(DISTINCT b) AS n", [(3,)]),
    ("MATCH (a:P) WITH a MATCH (a)-[:KNOWS*]->(b) RETURN a.name, count(*) AS n", [("Ada", 4), ("Bob", 2), ("Cy", 1)]),
    (
        "MATCH (a:P), (b:Q) WITH a, b MATCH p = ANY SHORTEST (a)-[]->+(b) RETURN a.name, b.name, length(p) AS n",
        [("Ada", "Cy", 1), ("Ada", "Dan", 1), ("Bob", "Cy", 1), ("Cy", "Cy", 1)],
    ),
    (
        "MATCH (a) OPTIONAL MATCH p = SHORTEST 2 GROUPS (a)-[:KNOWS]->+(b:Q) WHERE length(p) > 1 RETURN a.name, b.name, length(p)",
        [("Ada", "Cy", 2), ("Ada", "Cy", 3), ("Bob", "Cy", 2), ("Cy", None, None), ("Dan", None, None)],
    ),
    (
        "MATCH (a:P) WITH a MATCH p = ACYCLIC (a)-[:KNOWS]->*(b) WITH p, b WHERE length(p) > 0 RETURN b.name, size(nodes(p)) AS n",
        [("Bob", 2), ("Cy", 3), ("Dan", 2), ("Cy", 2)],
    ),
    (
        "MATCH (a:P {name: 'Ada'})-[:KNOWS*]->(b)<-[:KNOWS*]-(c:P) RETURN b.name, c.name",
        [("Cy", "Cy")],
    ),
    ("MATCH (a:P) WITH a MATCH (a)-[r:KNOWS*]->(a) RETURN a.name, size(r) AS n", [("Cy", 1)]),
    (
        "MATCH (a:P)-[:KNOWS]->(b) WITH b AS a, a AS b WHERE b.age > 0 MATCH (a)-[:KNOWS]->(c) RETURN a.name, b.name, c.name",
        [("Bob", "Ada", "Cy"), ("Cy", "Bob", "Cy")],
    ),
    ("MATCH (a:P) WITH a.name AS n WHERE a.age > 36 RETURN n", [("Bob",)]),
    ("MATCH (a:P) WITH collect(a) AS l UNWIND l AS p WITH p WHERE p.age > 36 RETURN p.name", [("Bob",)]),
    (
        "MATCH (a:P) RETURN CASE WHEN a.age > 36 THEN 'old' WHEN a.age > 0 THEN 'young' END AS c",
        [("old",), ("young",), (None,)],
    ),
    ("MATCH (a:P) RETURN CASE a.name WHEN 'Ada', 'Bob' THEN 1 ELSE 0 END AS c", [(1,), (1,), (0,)]),
]


def _flat(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row with its lists joined, so that it can be counted."""
    return tuple(",".join(value) if isinstance(value, list) else value for value in row)


@pytest.mark.parametrize(("text", "expected"), JOINS)
def test_clauses_are_sql_over_bindings(db: graphdb.Database, text: str, expected: list[tuple[Any, ...]]) -> None:
    assert Counter(map(_flat, db.query(text).fetchall())) == Counter(expected)


@pytest.mark.parametrize("text", [text for text, _ in JOINS])
def test_rows_that_spill_are_the_same(db: graphdb.Database, text: str) -> None:
    expected = Counter(map(repr, pa.table(db.query(text)._table).to_pylist()))  # type: ignore[union-attr]
    executor = HostExecutor(block_rows=1)
    with PathRun(db._state.snapshot(), executor, text, {}, bindings_bytes=20) as run:
        table = run.run(run.prepare(parse(text)))  # type: ignore[arg-type]
    assert Counter(map(repr, pa.table(table).to_pylist())) == expected  # type: ignore[union-attr]
    left = "SELECT count(*) FROM duckdb_tables() WHERE table_name LIKE '\\_rows%' ESCAPE '\\' OR table_name LIKE '\\_bind%' ESCAPE '\\'"
    assert db.sql(left).scalar() == 0


def test_a_step_with_many_rows_takes_what_others_leave_of_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """MATCH (a:N {i: 0}) OPTIONAL MATCH (a)-[:NO]->(x) OPTIONAL MATCH (a)-[:NO]->(y) OPTIONAL MATCH (a)-[:NO]->(z)
              OPTIONAL MATCH (a)-[:ALL]->(d) RETURN a.i, x.i, y.i, z.i, d.i"""
    spilled, spill = list[str](), PathRun._spill

    def noted(run: PathRun, batches: Any, view: str, *, first: bool) -> None:
        spilled.append(view)
        spill(run, batches, view, first=first)

    monkeypatch.setattr(PathRun, "_spill", noted)
    with graphdb.connect(threads=1, device="cpu") as database:
        database.query("UNWIND range(0, 999) AS i CREATE (:N {i: i})")
        database.query("MATCH (a:N {i: 0}), (b:N) CREATE (a)-[:ALL]->(b)")
        expected = [(0, None, None, None, i) for i in range(1000)]
        for memory, spills in ((64_000, False), (8_000, True)):  # of 1,000 rows of 16 bytes or less
            spilled.clear()
            with PathRun(database._state.snapshot(), HostExecutor(), text, {}, bindings_bytes=memory) as run:
                found = pa.table(run.run(run.prepare(parse(text))))  # type: ignore[arg-type]
            assert sorted(tuple(row.values()) for row in found.to_pylist()) == expected
            assert bool(spilled) == spills


VALUES: list[tuple[str, Any]] = [
    ("[1, 2, 3][0]", 1),
    ("[1, 2, 3][-1]", 3),
    ("[1, 2, 3][3]", None),
    ("[1, 2, 3][null]", None),
    ("[1, 2, 3][1..]", [2, 3]),
    ("[1, 2, 3][..-1]", [1, 2]),
    ("[1, 2, 3][-2..9]", [2, 3]),
    ("[1, 2, 3][2..1]", []),
    ("[1, 2, 3][null..1]", None),
    ("head([])", None),
    ("last([1, null])", None),
    ("tail([1, 2])", [2]),
    ("reverse([1, 2])", [2, 1]),
    ("size(range(1, 10, 3))", 4),
    ("range(3, 1, -1)", [3, 2, 1]),
    ("range(3, 1)", []),
    ("isEmpty([])", True),
    ("[x IN [1, 2, null] WHERE x > 1 | x * 10]", [20]),
    ("[x IN [1, 2] | null]", [None, None]),
    ("[x IN null | x]", None),
    ("[x IN [[1], []] | size(x)]", [1, 0]),
    ("[x IN [1, 2] | [y IN [10, 20] | x + y]]", [[11, 21], [12, 22]]),
    ("any(x IN [1, null] WHERE x > 1)", None),
    ("any(x IN [2, null] WHERE x > 1)", True),
    ("all(x IN [] WHERE x > 1)", True),
    ("none(x IN [0, null] WHERE x > 1)", None),
    ("single(x IN [2, 3] WHERE x > 1)", False),
    ("single(x IN [2, 0] WHERE x > 1)", True),
    ("2 IN [1, null]", None),
    ("[1, 2] + 3", [1, 2, 3]),
    ("CASE null WHEN null THEN 1 ELSE 2 END", 2),
    ("CASE WHEN null THEN 1 END", None),
    ("CASE WHEN true THEN [] ELSE [1] END", []),
    ("coalesce(null, head([]), 3)", 3),
    ("exists(null)", False),
]


@pytest.mark.parametrize(("expression", "expected"), VALUES)
def test_lists_and_case(db: graphdb.Database, expression: str, expected: Any) -> None:
    """The same from rows of numbers and from rows of maps."""
    text = f"UNWIND [1] AS one RETURN {expression} AS x"
    assert db.query(text).scalar() == expected
    assert db.query(f"UNWIND [{{one: 1}}] AS one RETURN {expression} AS x").scalar() == expected


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("NOT a.age IN []", 4),
        ("NOT (a.age = 1 AND false)", 4),
        ("a.age = 1 OR true", 4),
        ("size([a.age]) = 1", 4),
        ("CASE WHEN a.age > 5 THEN false ELSE true END", 2),
        ("none(x IN [a.age] WHERE x IS NOT NULL)", 1),
        ("a.age > 5 OR a.age < 6", 3),
    ],
)
def test_a_condition_may_hold_without_the_property(db: graphdb.Database, condition: str, count: int) -> None:
    assert db.query(f"MATCH (a) WHERE {condition} RETURN count(*)").scalar() == count
    assert db.query(f"UNWIND [{{one: 1}}] AS one MATCH (a) WHERE {condition} RETURN count(*)").scalar() == count


@pytest.mark.parametrize(
    "text", ["UNWIND [2, 0] AS x RETURN 1 / x", "MATCH (a) WHERE a.age = 5 RETURN 7 % (a.age - 5)"]
)
def test_what_fails_while_sql_runs_has_its_place(db: graphdb.Database, text: str) -> None:
    with pytest.raises(graphdb.ExecutionError, match=r"division by zero \(line 1, column") as failure:
        db.query(text)
    assert failure.value.column == text.index("RETURN ") + 8
    assert db.query("UNWIND [-7] AS x RETURN x / 2 + x % 2 AS y").scalar() == -4


def test_what_is_looked_up_of_aggregates() -> None:
    with graphdb.connect(threads=1) as db:
        db.query("CREATE (:T {i: 1, l: [1, 2]})-[:R]->(:U)")
        for text, found in {
            "head(collect(a)).i": 1,
            "collect(a)[0].i + max(a.i)": 2,
            "labels(head(collect(a)))": ["T"],
            "keys(head(collect(a)))": ["i", "l"],
            "properties(head(collect(a)))": {"i": 1, "l": [1, 2]},
            "startNode(head(collect(r))).i": 1,
            "head(collect(a)):T": True,
        }.items():
            assert db.query(f"MATCH (a)-[r]->() RETURN {text}").scalar() == found, text
            assert db.query(f"MATCH (a)-[r]->() WITH type(r) AS k, {text} AS x RETURN x").scalar() == found, text


# --- EXPLAIN ---------------------------------------------------------------------------------------------------


def test_edges_of_optional_matches_are_counted_where_they_are(db: graphdb.Database) -> None:
    some = 0
    for optional in (
        "OPTIONAL MATCH (a)-[r]->()",
        "OPTIONAL MATCH (x:Q)<-[r]-(a)",
        "OPTIONAL MATCH (a)-[r]->(a)",
        "OPTIONAL MATCH (a)-[r]->()-[s]->(c) WHERE c.age < 36",
        "OPTIONAL MATCH (a)-[s]->(b) OPTIONAL MATCH (b)-[r]->()",
        "OPTIONAL MATCH (a)-[r]->(b) OPTIONAL MATCH (b)-[r]->(c)",
        "OPTIONAL MATCH (a)-[s]-(b) WITH DISTINCT a, b OPTIONAL MATCH (b)-[r]->(a)",
        "MATCH (a)-[r]->() OPTIONAL MATCH ()-[r]->(:Q)",
        "OPTIONAL MATCH (a)-[r*1..2]->(b)",
    ):
        absent = "sum(CASE WHEN r IS NULL THEN 0 ELSE 1 END)"
        found = db.query(f"MATCH (a) {optional} RETURN a.name AS name, count(r) AS n, {absent} AS m").fetchall()
        alone = db.query(f"MATCH (a) {optional} WITH a.name AS name, count(r) AS n RETURN name, n").fetchall()
        assert {n - m for _, n, m in found} == {0}, optional
        assert sorted(alone) == sorted((name, n) for name, n, _ in found), optional
        some += sum(n for _, n, _ in found)
    assert some > 20


def test_explain_says_how_matches_are_joined(db: graphdb.Database) -> None:
    text = "MATCH (a:P) OPTIONAL MATCH (a)-[:LIKES]->(b) WHERE EXISTS { (b)-->() } RETURN a.name, b.name"
    lines = db.explain(text).splitlines()
    assert lines[0].startswith("match _bindings1 on cpu")
    assert any(line.startswith("join with") and "planned when the rows give a" in line for line in lines)
    assert any(line.startswith("group join with") and "planned when the rows give b" in line for line in lines)
    profiled = db.query("PROFILE " + text).text(100)
    assert "planned when" not in profiled
    assert "ms in all" in profiled


def test_matches_that_only_rows_connect_are_joined_one_by_one(db: graphdb.Database) -> None:
    """What the rows say narrows either: the product of what they match is never made."""
    text = "UNWIND ['Ada', 'Cy'] AS n MATCH (a:P {name: n}) MATCH (b:P {name: 'Bob'}) RETURN a.name, b.name"
    assert db.explain(text).count("join with") == 2
    assert sorted(db.query(text).fetchall()) == [("Ada", "Bob"), ("Cy", "Bob")]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("CREATE (:Never)", "there are few rows"),
        ("MATCH (a:P) MERGE p = (a)-[:KNOWS]->(b) RETURN p", "a path that is made has a name"),
        ("MATCH (a:P) CREATE p = (a)-[:KNOWS]->() RETURN p", "a path that is made has a name"),
        ("MATCH (a:P)-[:KNOWS]->(b) DELETE [a][0] RETURN b", "an expression yields what is deleted"),
    ],
)
def test_explain_says_why_a_clause_goes_row_by_row(db: graphdb.Database, text: str, why: str) -> None:
    lines = db.explain(text).splitlines()
    assert lines[0].startswith("written row by row")
    assert f"  row by row: {why}" in lines


# --- what is kept, and what is left ----------------------------------------------------------------------------


def test_counts_of_paths_are_not_enumerated(db: graphdb.Database) -> None:
    """Numbers of matches travel with distinct rows; the size of a neighbourhood is what one search reached."""
    report = [
        ("MATCH (a:P)-[:KNOWS*1..2]->(b) WITH a, count(*) AS n RETURN a.name, n", [("Ada", 3), ("Bob", 2), ("Cy", 1)]),
        ("MATCH (a:P)-[:KNOWS*1..2]->(b) WITH count(*) AS n RETURN n + 1 AS n", [(7,)]),
        ("MATCH (a:P) WITH a MATCH (a)-[]->()-[]->(b) RETURN a.name, count(*) AS n", [("Ada", 2), ("Bob", 1)]),
        (
            "MATCH (a) OPTIONAL MATCH (a)-[:KNOWS]->()-[:KNOWS]->(b) RETURN a.name, count(*) AS n, count(b) AS m",
            [("Ada", 1, 1), ("Bob", 1, 1), ("Cy", 1, 0), ("Dan", 1, 0)],
        ),
        (
            "MATCH (a:P {name: 'Ada'})-[:KNOWS*1..3]->(b) RETURN count(DISTINCT b) AS n, count(DISTINCT b) AS m",
            [(3, 3)],
        ),
        ("MATCH (a:P)-[:KNOWS*]->(b:Q) RETURN count(DISTINCT a) AS n", [(3,)]),
        ("MATCH (a:P)-[:KNOWS*]->(b:Q) RETURN count(DISTINCT a) AS n SKIP 1", []),
    ]
    for text, expected in report:
        assert _rows(db, text) == Counter(expected), text


def test_a_later_match_is_planned_once_for_the_same_rows(db: graphdb.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "MATCH (a:P) WITH a ORDER BY a.name LIMIT 2 MATCH (a)-[:KNOWS]->(b) RETURN b.name"
    expected = _rows(db, text)
    with monkeypatch.context() as patched:
        patched.setattr("graphdb.relational.match_planner.make_plan", lambda *_: pytest.fail("planned again"))
        assert _rows(db, text) == expected
    db.query("MATCH (a {name: 'Ada'}), (b {name: 'Bob'}) CREATE (a)-[:KNOWS]->(:P {name: 'Aaron'})-[:KNOWS]->(b)")
    try:
        assert _rows(db, text) == Counter([("Aaron",), ("Bob",), ("Bob",), ("Dan",)])
    finally:
        db.query("MATCH (a {name: 'Aaron'}) DETACH DELETE a")
    assert _rows(db, text) == expected


@pytest.mark.parametrize("text", ["UNWIND [{a: 1}] AS m RETURN m.a AS x", "UNWIND [1] AS x RETURN x"])
def test_what_sql_can_and_cannot_do_is_kept(db: graphdb.Database, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    assert db.query(text).scalar() == 1
    monkeypatch.setattr(PathRun, "prepare", lambda *_: pytest.fail("prepared again"))
    assert db.query(text).scalar() == 1


def test_a_value_that_fails_where_others_did_not(db: graphdb.Database) -> None:
    text = "UNWIND [1] AS i MATCH (a:P {name: $name}) RETURN a.age % $x AS n"
    assert db.query(text, name="Ada", x=5).scalar() == 1
    assert db.query(text, name="Bob", x=7).scalar() == 5
    with pytest.raises(graphdb.ExecutionError, match=r"division by zero \(line 1, column"):
        db.query(text, name="Ada", x=0)
    assert db.query("MATCH (a:P {name: 'Ada'}) WITH a MATCH (a)-[:LIKES]->(b) RETURN b.name").scalar() == "Cy"


def test_long_lists_are_columns(db: graphdb.Database) -> None:
    text = "UNWIND $l AS x RETURN count(x) AS n, min(x) AS low, max(x) AS high"
    for given, expected in [
        (list(range(5000)), (5000, 0, 4999)),
        (np.arange(5000), (5000, 0, 4999)),
        ([None, *range(5000)], (5000, 0, 4999)),
        ([0.5] * 2000, (2000, 0.5, 0.5)),
        (["b", "a"] * 1000, (2000, "a", "b")),
        ([True] * 1000, (1000, True, True)),
    ]:
        assert db.query(text, l=given).fetchall() == [expected]
    with pytest.raises(graphdb.GraphDBError, match="64 bits"):
        db.query(text, l=[2**70] * 2000)
    assert db.query("UNWIND $l AS x RETURN count(x) AS n", l=[1, "a"] * 1000).scalar() == 2000


def test_within_a_transaction_and_into_a_table(tmp_path: Path) -> None:
    with graphdb.connect(tmp_path / "g.duckdb", threads=1, device="cpu") as database:
        database.query(GRAPH)
        database.sql("BEGIN")
        database.query("CREATE TABLE liked AS MATCH (a:P) OPTIONAL MATCH (a)-[:LIKES]->(b) RETURN a.name AS a, b AS b")
        assert database.sql("SELECT count(b) FROM liked").scalar() == 1
        database.sql("COMMIT")
    with graphdb.connect(tmp_path / "g.duckdb", read_only=True, threads=1, device="cpu") as database:
        text = "MATCH (a:P) OPTIONAL MATCH (a)-[:LIKES]->(b) RETURN a.name, b.name"
        assert len(database.query(text)) == 3
        joined = (
            "SELECT count(name) FROM cypher($$ MATCH (a:P) OPTIONAL MATCH (a)-[:LIKES]->(b) RETURN b.name AS name $$)"
        )
        assert database.sql(joined).scalar() == 1


def test_a_timeout_stops_the_joins(db: graphdb.Database) -> None:
    text = "UNWIND range(1, 100000) AS x UNWIND range(1, 100000) AS y WITH x, y WHERE x % y = 1 RETURN count(*) AS n"
    with pytest.raises(graphdb.QueryTimeout):
        db.query(text, timeout=0.3)
    assert db.query("UNWIND [1] AS x RETURN x").scalar() == 1


@pytest.mark.parametrize(
    "text", ["[x IN [1, true] | toFloat(x)]", "[x IN [true, 1.0] | toBoolean(x)]", "toFloat(true)"]
)
def test_conversions_refuse_what_they_do_not_take(db: graphdb.Database, text: str) -> None:
    """What a list of several types holds is known only when SQL runs."""
    with pytest.raises(graphdb.TypeMismatchError, match="does not take") as raised:
        db.query(f"MATCH (a:P) RETURN {text} AS v").fetchall()
    assert raised.value.column is not None


@pytest.mark.parametrize("words", ["x at offset 3 as nothing", "x at offset 3 as re", "x at offset 3 as ParseError"])
def test_sql_of_the_users_own_fails_with_its_own_words(db: graphdb.Database, words: str) -> None:
    with pytest.raises(graphdb.ExecutionError) as raised:
        db.query(f"SELECT error('{words}')").fetchall()
    assert words in raised.value.message


@pytest.mark.parametrize(
    "query", ["RETURN toUpper(ALL 'a')", "MATCH (n) SET n.x = toUpper(all 'a')", "RETURN size(DISTINCT [1])"]
)
def test_only_aggregates_take_quantifiers(query: str) -> None:
    with graphdb.connect(device="cpu") as db:
        with pytest.raises(graphdb.GraphDBError, match=r"takes no (ALL|DISTINCT) \(line 1, column \d+\)"):
            db.query(query)
        assert db.query("UNWIND [1, 1] AS x RETURN sum(ALL x), count(DISTINCT x)").fetchall() == [(2, 1)]


@pytest.mark.parametrize(
    ("query", "offsets"),
    [
        ("MATCH (n) RETURN n.at ORDER BY n.id", [2, 0, 1, None]),
        ("MATCH (n) WHERE n.id < 4 RETURN n.at AS t, n.id ORDER BY t DESC, n.id", [2, 0, 1]),
        ("MATCH (n) WITH n ORDER BY n.id DESC OPTIONAL MATCH (n)-[:K]->(m) RETURN n.at", [None, 1, 0, 2]),
        ("MATCH (n {id: 1}) RETURN n.at UNION ALL MATCH (n {id: 3}) RETURN n.at", [2, 1]),
        ("MATCH p = (n {id: 3})<-[:K*0..1]-(m) RETURN m.at ORDER BY length(p) DESC", [2, 1]),
        ("MATCH (n) RETURN DISTINCT n.at ORDER BY n.at", [0, None]),  # one moment, in UTC
        ("MATCH (n {id: 1}) WITH n.at AS t RETURN t", [2]),
        ("MATCH (n) WITH n.at AS t, n.id AS id ORDER BY [t], id DESC WHERE id < 4 RETURN [t][0]", [1, 0, 2]),
    ],
)
def test_zoned_properties_keep_their_offset(query: str, offsets: list[int | None]) -> None:
    with graphdb.connect(device="cpu") as db:
        db.query(
            "CREATE (a {id: 1, at: datetime('2020-01-01T10:00:00+02:00')}), (b {id: 2, at: datetime('2020-01-01T08:00:00Z')}), "
            "(c {id: 3, at: datetime('2020-01-01T09:00:00+01:00')}), (d {id: 4}), (a)-[:K]->(c)"
        )
        found = db.query(query)
        moments = [row[0] for row in found]
        assert [None if at is None else at.utcoffset().seconds // 3600 for at in moments] == offsets
        assert {at for at in moments if at is not None} == {datetime(2020, 1, 1, 8, tzinfo=UTC)}
        assert "timestamp[us, tz=" in str(found.to_arrow().schema.types[0])
