"""Continuous queries with paths of any length follow batches: for the vertices that reach what changed, and those reached.

Graphs are such that trails are not very many: most edges lead to vertices of higher numbers.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import graphdb
from graphdb.live.matches import reaching
from tests.fuzz import scaled
from tests.live.test_parallel_edges import explained
from tests.live.writes import Draw, bag, check, check_history, create, created, opened, strategies

VERTICES = 9
FAR = (
    "-[:R*]->", "<-[:R*]-", "-[:R|S*]->", "-[:R*0..]->", "-[:S*]-", "-[:S*0..2]->", "-[:R*2..]->", "-[:R]->+",
    "-[*]->", "-[:R {w: 1}]->*", "(() -[:R]-> (:A) <-[:S]- ())+", "((x)-[:R]->(y) WHERE x.k <= y.k)+", "-[:R*3..14]->",
    "-[:R*]->()-[:S]->", "-[:S]->()-[:R*]->", "-[:R*]->(m)-[:S*0..]->", "-[:R*]->(m:B)<-[:S]-", "-[e:R*]->",
)  # fmt: skip
NEAR = ("-[:R]->", "-[:S]->", "<-[:S]-", "-[:S*1..2]->", "-[:R|S]-")
LABELS = ("", "", ":A", ":B", ":!A", " {k: 1}")
MODES = ("", "", "", "REPEATABLE ELEMENTS ACYCLIC ", "DIFFERENT NODES ", "TRAIL ", "ACYCLIC ", "SIMPLE ")
AFTER = (
    "", "", "", "", " WHERE a.k > 0", " WHERE a.i < b.i OR b.k = 1", " WHERE EXISTS { (b)-[:R*]->(:B) }",
    " WHERE NOT (b)-[:S*0..]->(:A {k: 2})", " WHERE COUNT { (a)-[:R]->+(z) WHERE z.k > 0 } > 1",
    " OPTIONAL MATCH (b)-[:R*]->(c:B)", " OPTIONAL MATCH (b)-[:S]->(c)", " MATCH (c)-[:S]->(a)",
    " OPTIONAL MATCH (c)-[:S]->()-[:R*]->(a)", " MATCH (b)-[:S*]->(c {k: 1})", " WITH a, b WHERE b.k > 0",
    " WITH a, count(*) AS n MATCH (a)-[:R*]->(b)", ", (a)-[:S]->(c)", " MATCH (c:A) WHERE c.k = a.k",
)  # fmt: skip
COLUMNS = (
    "a.i AS x, b.i AS y",
    "a.k AS x, count(*) AS n",
    "count(*) AS n",
    "b.i AS y, max(a.i) AS m",
    "b AS v, a.k AS x",
)


def query(draw: Draw) -> str:
    """Return a random query."""

    def one(options: tuple[str, ...]) -> str:
        return str(draw.choice(options))

    mode, far, labels, after = one(MODES), one(FAR), (one(LABELS), one(LABELS)), one(AFTER)
    path = f"(a{labels[0]}){far}(b{labels[1]})"
    columns = one(COLUMNS)
    if not mode and draw.random() < 0.3 and not after.startswith(" WITH"):  # which would not pass the path on
        path, columns = f"p = {path}", f"{columns}, length(p) AS l, [n IN nodes(p) | n.k] AS o"
    if draw.random() < 0.2:
        return f"MATCH (a{labels[0]}){one(NEAR)}(b) OPTIONAL MATCH {path} RETURN a.i AS x, b.i AS y"
    return f"MATCH {mode}{path}{after} RETURN {columns}"


def begin(db: graphdb.Database, draw: Draw) -> None:
    db.query(f"UNWIND range(0, {VERTICES}) AS x CREATE (:A {{i: x, k: x % 3}})")
    db.query("MATCH (a:A) WHERE a.i % 2 = 1 SET a:B REMOVE a:A")
    for label, count in (("R", 7), ("S", 5)):
        for _ in range(count):
            db.query(edge(draw, label))


def edge(draw: Draw, label: str) -> str:
    """Return a statement that creates an edge, most often to a higher vertex."""
    one, other = sorted(draw.choice(VERTICES + 1, 2, replace=False).tolist(), reverse=draw.random() < 0.1)
    said = " {w: 1}" if draw.random() < 0.05 else ""
    verb = "CREATE" if said or draw.random() < 0.1 else "MERGE"
    return f"MATCH (a {{i: {one}}}), (b {{i: {other}}}) {verb} (a)-[:{label}{said}]->(b)"


def write(draw: Draw) -> str:
    """Return a statement that changes an edge, or a label or property of a vertex."""
    number, label = int(draw.integers(VERTICES + 1)), str(draw.choice(["R", "S"]))
    match int(draw.choice(7, p=[0.34, 0.3, 0.12, 0.1, 0.05, 0.05, 0.04])):
        case 0:
            return edge(draw, label)
        case 1:
            return f"MATCH ({{i: {number}}})-[e:{label}]-() WITH e LIMIT 1 DELETE e"
        case 2:
            return f"MATCH (a {{i: {number}}}) SET a.k = {draw.integers(3)}"
        case 3:
            return f"MATCH (a {{i: {number}}}) {draw.choice(['SET', 'REMOVE'])} a:{draw.choice(['A', 'B'])}"
        case 4:
            return f"MATCH ({{i: {number}}})-[e:{label}]->() WITH e LIMIT 1 SET e.w = {draw.integers(2)}"
        case 5:
            return f"MATCH (a {{i: {number}}}) DETACH DELETE a CREATE (:A {{i: {number}, k: 1}})-[:S]->(:B)"
    return f"MATCH (a {{i: {number}}}) CREATE (:B {{k: 1}})-[:{label}]->(a), (:A)"


@settings(max_examples=scaled(12), deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(st.integers(0, 1 << 32))
def test_answers_follow_every_batch(seed: int) -> None:
    draw = np.random.default_rng(seed)

    def begun(db: graphdb.Database) -> dict[str, str]:
        begin(db, draw)
        queries = {f"q{number}": query(draw) for number in range(4)}
        create(db, queries)
        return queries

    with tempfile.TemporaryDirectory() as folder:
        check_history(Path(folder) / "a.duckdb", draw, begun, write, loads=0.0)


MAINTAINED = {
    "rows": "MATCH (a)-[:R*]->(b:B) RETURN a.i AS x, b.i AS y",
    "groups": "MATCH (a:A)<-[:R*0..]-(b) RETURN a.i AS x, count(*) AS n",
    "between": "MATCH (c)-[:S]->(a)-[:R]->()-[:R*]->(b) RETURN c.i AS x, b.k AS y",
    "optional": "MATCH (a:A) OPTIONAL MATCH (a)-[:S]->(m)-[:R*]->(b) RETURN a.i AS x, m.i AS y, b.i AS z",
    "exists": "MATCH (a:A) WHERE NOT EXISTS { (a)-[:R*]->(:B {k: 1}) } RETURN a.i AS x",
    "path": "MATCH p = TRAIL (a)-[:R|S]-+(b:B) RETURN length(p) AS n, [v IN nodes(p) | v.k] AS k",
    "ring": "MATCH (a)-[:R*]->(a) RETURN a.i AS x",
}


def test_only_what_is_reached_is_asked_for() -> None:
    with opened(None) as db:
        begin(db, np.random.default_rng(5))
        queries = {f"q_{name}": text for name, text in MAINTAINED.items()}
        stored = created(db, queries)
        assert "[:R] on a path of any length changed, then back to a and on to b" in explained(db, "q_rows")
        assert "[:S] or [:R] on a path of any length changed, then back to a" in explained(db, "q_optional")
        for text in (
            "MATCH (a {i: 1}), (b {i: 8}) CREATE (a)-[:R]->(b)",
            "MATCH (a {i: 8}), (b {i: 1}) CREATE (a)-[:R]->(b)",
            "MATCH (a {i: 1})-[e:R]->({i: 8}) DELETE e",
            "MATCH (a {i: 8}) SET a.k = 1",
        ):
            db.query(text)
            check(db, queries, stored)
        assert set(strategies(db)) == {"delta plans"}


def test_a_vertex_between_two_parts_of_a_path_is_no_end() -> None:
    text = "MATCH SIMPLE (a)-[:R*]->(m)-[:S*0..]->(b) RETURN count(*) AS n"
    with opened(None) as db:
        db.query("UNWIND range(0, 5) AS x CREATE ({i: x})")
        db.query("MATCH (a {i: 0}), (b {i: 1}) CREATE (a)-[:R]->(b), (a)-[:S]->(b)")
        db.query(f"CREATE CONTINUOUS QUERY q AS {text}")
        stored = {"q": bag(db, "FROM q")}
        for change in (
            "MATCH (a {i: 2}), (b {i: 3}), (c {i: 4}) CREATE (a)-[:R]->(b), (c)-[:S]->(b)",
            "MATCH (a {i: 2})-[e:R]->()<-[f:S]-() DELETE e, f",
        ):
            db.query(change)
            check(db, {"q": text}, stored)


def test_what_reaches_very_much_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reaching, "MOST", 4)
    text = "MATCH (a)-[:R*]->(b) RETURN a.i AS x, b.i AS y"
    with opened(None) as db:
        db.query("UNWIND range(0, 19) AS x CREATE ({i: x})")
        db.query("UNWIND range(1, 19) AS x MATCH (a {i: x}), (b {i: x - 1}) CREATE (a)-[:R]->(b)")
        db.query(f"CREATE CONTINUOUS QUERY q AS {text}")
        stored = {"q": bag(db, "FROM q")}
        for number, found in ((18, "delta plans"), (3, "delta plans"), (10, "compared")):
            before = strategies(db)
            db.query(f"MATCH ({{i: {number}}})-[e:R]->() DELETE e")
            check(db, {"q": text}, stored)
            assert set(strategies(db) - before) == {found}, number
