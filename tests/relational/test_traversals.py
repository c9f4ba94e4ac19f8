"""Paths of any kind run as steps of a program: forms that no search set by set takes, and what EXPLAIN says of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

import graphdb
from graphdb.common.errors import TypeMismatchError
from graphdb.execute.paths import enumeration_kernels

GRAPH = """
CREATE (a:A {n: 1})-[:R {w: 1}]->(b:B {n: 2})-[:S {w: 2}]->(c:A {n: 3}), (a)-[:S {w: 5}]->(c), (c)-[:R {w: 3}]->(a),
       (b)-[:R {w: 4}]->(b)
"""


@pytest.fixture(scope="module")
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(threads=1, device="cpu") as database:
        database.query(GRAPH)
        yield database


FORMS: list[tuple[str, list[tuple[Any, ...]]]] = [
    (
        "MATCH ()-[r {w: 4}]-() MATCH p = (n)-[*0..1]-()-[r]-()-[*0..1]-(m) RETURN length(p)",
        [(1,)] + [(2,)] * 4 + [(3,)] * 2,
    ),
    ("MATCH (x {n: 1})-[r]->() MATCH (y)-[r]->(z) RETURN y.n, z.n", [(1, 2), (1, 3)]),
    ("MATCH (:A)-[q {w: 1}]->()-[r:S]->() WITH [q, r] AS rs MATCH (x)-[rs*]->(y) RETURN x.n, y.n", [(1, 3)]),
    ("MATCH ()-[r*2 {w: 4}]->() WITH r MATCH (x)-[r*]->(y) RETURN x.n", []),
    ("WITH null AS r MATCH (x)-[r*]->(y) RETURN x.n", []),
    ("MATCH p = (a)-[*0..0]->(b) RETURN a.n, b.n, length(p)", [(1, 1, 0), (2, 2, 0), (3, 3, 0)]),
    ("MATCH (a:B) MATCH (a)-[*0]->(b) RETURN b.n", [(2,)]),
    ("MATCH (a:A)-[*2..1]->(b) RETURN b.n", []),
    ("MATCH (a:A) MATCH (a)-[:S*..0]->(b) RETURN b.n", []),
    ("MATCH (a:A) OPTIONAL MATCH (a)-[:S*2..1]->(b) RETURN a.n, b.n", [(1, None), (3, None)]),
    ("WITH null AS a MATCH (a) RETURN a", []),
    ("WITH null AS a OPTIONAL MATCH (a)-->(b) RETURN a, b", [(None, None)]),
    ("MATCH p = (a:A) WITH p RETURN [v IN nodes(p) | v.n], length(p)", [([1], 0), ([3], 0)]),
    ("MATCH p = (a:A) WITH p, a MATCH (a)-[:R]->(b) RETURN size(nodes(p)), b.n", [(1, 2), (1, 1)]),
    ("UNWIND [1, 2] AS k MATCH (a:A)-[r*1..3 {w: k}]->(b) RETURN k, b.n, size(r)", [(1, 2, 1)]),
    (
        "UNWIND [1, 2] AS k MATCH (a:A)((x)-[r:R|S]->(y) WHERE y.n > k){2}(b) RETURN k, [v IN y | v.n]",
        [(1, [2, 2]), (1, [2, 3])],
    ),
    (
        "MATCH (z:B) MATCH p = ANY SHORTEST (a:A)((x)-->(y) WHERE y.n <> z.n)+(a) RETURN a.n, length(p)",
        [(1, 2), (3, 2)],
    ),
    ("MATCH DIFFERENT NODES (a)-[*1..3]->(b)-->(c) RETURN a.n, b.n, c.n", [(1, 2, 3), (2, 3, 1), (3, 1, 2)]),
    ("MATCH INDUCED (a)-[:S*1..2]->(b:A), (a)<-[q]-(b) RETURN a.n, b.n, q.w", [(1, 3, 3)]),
    ("MATCH SIMPLE (a:B)-[*1..3]->(b:B), (b)-[s:R]->(c) RETURN b.n, c.n, s.w", [(2, 2, 4)]),
    (
        "MATCH p = ANY SHORTEST (a:A)-->+(b:B), (b)-[s]->(c) RETURN a.n, s.w, length(p)",
        [(1, 2, 1), (1, 4, 1), (3, 2, 2), (3, 4, 2)],
    ),
    ("MATCH (a:A) WHERE EXISTS { MATCH (a)-[r*1..2 {w: a.n}]->(b:B) } RETURN a.n", [(1,)]),
    ("MATCH (a:A) RETURN a.n, COUNT { (a)-[r*1..2 {w: a.n}]->(:B) } AS c", [(1, 1), (3, 0)]),
    ("MATCH (a) WITH a.n AS n ORDER BY n LIMIT 2 WHERE a:A RETURN n", [(1,)]),
    ("MATCH (a) WITH a.n AS n WHERE EXISTS { (a)-[:R]->(:A) } RETURN n", [(3,)]),
    (
        "MATCH (a:A)((x)-[r]->(y) WHERE EXISTS { (y)-->(:B) })+(b) RETURN a.n, b.n",
        [(1, 2)] * 2 + [(3, 1), (3, 2), (3, 2)],
    ),
    (
        "UNWIND [1, 2] AS k MATCH (a:B)-[r*1..2 WHERE COUNT { ()-[r]->() } = k]->(b) RETURN k, b.n, size(r)",
        [(1, 3, 1), (1, 2, 1), (1, 1, 2), (1, 3, 2)],
    ),
    ("MATCH TRAIL (a:A)-[r]->{1,3}(b WHERE b.n = size(r)) RETURN a.n, b.n", [(1, 2), (1, 3), (3, 1), (3, 2), (3, 3)]),
    ("MATCH (a)-[r*0..1]->(b) WITH r, b MATCH (b)-[r*1..2]->(c) RETURN b.n, c.n", [(2, 2)]),
    ("MATCH ()-[r:S]->() OPTIONAL MATCH (c)-[r]->(d {n: 2}) RETURN r.w, c.n, d.n", [(2, None, None), (5, None, None)]),
    ("MATCH (n {n: 1}) MATCH ({n: COUNT { (n)-->() }})-[{w: COUNT { (n)-->() }}]->(b) RETURN b.n", [(3,)]),
    (
        "UNWIND [1, 2] AS k MATCH (a:B) MATCH (a)-[*0..1]-(b), (b)-[:R*1..9]-({n: k}) RETURN DISTINCT b.n",
        [(2,), (3,)],
    ),
    (
        "MATCH REPEATABLE ELEMENTS p = (a)-[*1..2]->(b), (d {n: b.n})-[e {w: a.n}]->(x WHERE x.n >= a.n)"
        " RETURN a.n, b.n, x.n",
        [(1, 1, 2), (2, 2, 3), (2, 2, 3)],
    ),
    ("MATCH SHORTEST 1 GROUPS (d:A {n: 1}), (c:B)<-[:R]-?()<--(x WHERE x.n > d.n) RETURN c.n, x.n", [(2, 2), (2, 3)]),
    ("MATCH () WITH * RETURN 1 AS x", [(1,)] * 3),
    ("MATCH () WITH * LIMIT 2 MATCH (b:B) RETURN b.n", [(2,)] * 2),
    ("MATCH (n) WITH n LIMIT toInteger(ceil(1.7)) RETURN count(*) AS c", [(2,)]),
    ("MATCH (n:A) RETURN n.n ORDER BY n.n SKIP size(['a']) LIMIT toInteger('1')", [(3,)]),
    ("MATCH (n:A) CALL (n) { RETURN randomUUID() AS u } RETURN count(DISTINCT u) AS c", [(2,)]),
    ("MATCH (n:A) CALL { RETURN randomUUID() AS u } RETURN count(DISTINCT u) AS c", [(2,)]),
]


@pytest.mark.parametrize(("text", "expected"), FORMS)
def test_every_form_is_a_program(
    db: graphdb.Database, text: str, expected: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Counter(map(repr, db.query(text))) == Counter(map(repr, expected))


PARALLEL: list[tuple[str, list[tuple[Any, ...]]]] = [
    ("MATCH INDUCED (a)-[r]->(b), (a)-[s]->(b), (b)-[t]->(a) RETURN a.n, r.w, s.w, t.w", [(1, 1, 9, 8), (1, 9, 1, 8)]),
    ("MATCH INDUCED (a)-[r]->(b), (b)-[t]->(a) RETURN a.n", []),
    ("MATCH (x {n: 2}) RETURN COUNT { MATCH INDUCED (a)-[r]->(x), (a)-[s]->(x), (x)-[t]->(a) } AS c", [(2,)]),
    (
        "MATCH (x) OPTIONAL MATCH INDUCED (a)-[r]->(x), (a)-[s]->(x), (x)-[t]->(a) RETURN x.n, t.w",
        [(1, None), (2, 8), (2, 8)],
    ),
]


@pytest.mark.parametrize(("text", "expected"), PARALLEL)
def test_induced_matches_leave_out_no_parallel_edge(
    text: str, expected: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with graphdb.connect(threads=1, device="cpu") as database:
        database.query("CREATE (a {n: 1})-[:R {w: 1}]->(b {n: 2}), (a)-[:R {w: 9}]->(b), (b)-[:S {w: 8}]->(a)")
        assert Counter(map(repr, database.query(text))) == Counter(map(repr, expected))


def test_a_call_ends_a_query(db: graphdb.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    called = []
    db.register_procedure("test.note", lambda value: called.append(value), {"value": int})
    result = db.query("UNWIND [1, 2] AS x CALL test.note(x)")
    assert (sorted(called), len(result), result.columns) == ([1, 2], 0, ())


def test_procedures_take_and_yield_values_of_any_type(db: graphdb.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    db.register_procedure("test.inside(value :: ANY?) :: (item :: ANY?)", lambda value: [(each,) for each in value])
    found = db.query("MATCH (b:B) UNWIND [[b, 1], [{n: 'x'}]] AS l CALL test.inside(l) YIELD item AS x RETURN x")
    assert sorted(repr(getattr(x, "labels", x)) for (x,) in found) == ["('B',)", "1", "{'n': 'x'}"]
    found = db.query("MATCH (b:B) CALL test.inside([b, null]) YIELD item AS x MATCH (x)-[r:S]->(c) RETURN c.n, r.w")
    assert found.fetchall() == [(3, 2)]


def test_explain_names_the_step(db: graphdb.Database) -> None:
    told = db.explain("UNWIND [1, 2] AS k MATCH (a:A)-[r* {w: k}]->(b) RETURN k, b.n")
    assert "search path by path, (a:A)-[r* {w: k}]->(b), as _applied" in told


def test_edges_from_before_are_edges(db: graphdb.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TypeMismatchError, match="'r' is an integer, not an edge"):
        db.query("WITH $x AS r MATCH ()-[r*]->() RETURN r", x=1)


@pytest.fixture(scope="module")
def tree() -> Iterator[graphdb.Database]:
    with graphdb.connect(threads=1, device="cpu") as database:
        database.query("UNWIND range(0, 6) AS i CREATE (:W {id: i})")
        database.query("UNWIND range(0, 199) AS i MATCH (w:W {id: i % 7}) CREATE (:V {id: i})-[:T]->(w)")
        parents = [(child, child // 3) for child in range(1, 200)]
        database.query("UNWIND $rows AS r MATCH (a:V {id: r[0]}), (b:V {id: r[1]}) CREATE (a)-[:UP]->(b)", rows=parents)
        yield database


def above(vertex: int) -> list[int]:
    """The vertices of the tree from one up to the root."""
    return [vertex, *above(vertex // 3)] if vertex else [0]


@pytest.mark.parametrize("ends", ["", "MATCH (a:V) WITH a MATCH (b)<-[:UP]-() WITH DISTINCT a, b "])
def test_paths_from_all_vertices_are_found_together(
    tree: graphdb.Database, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    runs = []
    found = enumeration_kernels.enumerate_paths

    def counted(*arguments: Any) -> Any:
        runs.append(1)
        return found(*arguments)

    monkeypatch.setattr(enumeration_kernels, "enumerate_paths", counted)
    rows = tree.query(ends + "MATCH p = (a)-[:UP*]->(b) RETURN [x IN nodes(p) | x.id]").fetchall()
    ways = [above(vertex)[:end] for vertex in range(200) for end in range(2, len(above(vertex)) + 1)]
    assert sorted(row[0] for row in rows) == sorted(ways)
    assert 0 < len(runs) <= 10  # one for each length, none for each vertex


def test_rows_say_where_paths_begin(tree: graphdb.Database) -> None:
    text = "UNWIND [5, 150] AS k MATCH (x:V {id: k})-[r:UP*0..]->(y)-[:T]->(z:W) RETURN k, size(r), z.id"
    assert " ON TRUE" not in str(tree.query("EXPLAIN " + text))
    expected = [(k, steps, y % 7) for k in (5, 150) for steps, y in enumerate(above(k))]
    assert Counter(tree.query(text)) == Counter(expected)


def test_paths_of_one_label_are_joined_one_after_the_other(tree: graphdb.Database) -> None:
    text = "MATCH (x:V {id: 150})-[:UP*]->(y), (y)<-[:UP*]-(z:V)-[:T]->(w) RETURN y.id, z.id, w.id"
    steps = [line.split()[0] for line in str(tree.query("EXPLAIN " + text)).splitlines() if line[:1] not in ("", " ")]
    assert [step for step in steps if step in ("match", "paths", "join")] == ["paths", "paths", "join"]
    expected = []
    for y in above(150)[1:]:
        taken = {*above(150)[: above(150).index(y)]}  # each stands for the edge above it
        for z in range(200):
            if z != y and y in above(z) and taken.isdisjoint(above(z)[: above(z).index(y)]):
                expected.append((y, z, z % 7))
    assert Counter(tree.query(text)) == Counter(expected)
