"""Random queries whose rows are asked for anew, for the vertices that delta plans find: against the queries run anew.

They have subqueries, paths of several lengths, optional clauses, INDUCED among edges with properties and parallel ones,
vertices without labels, and what only values join, in all match modes.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

import graphdb
from tests.fuzz import scaled
from tests.live.test_parallel_edges import explained
from tests.live.test_parallel_edges import write as write_edges
from tests.live.writes import Draw, bag, begin, check, check_history, create, opened, statement, strategies

MODES = ("", "", "REPEATABLE ELEMENTS ", "DIFFERENT NODES ", "INDUCED ", "DIFFERENT EDGES ")
LABELS = ("", "", ":A", ":B", ":A|B", ":!A", ":New")
EDGES = ("-[:R]->", "<-[:R]-", "-[:S]->", "-[:R]-", "-[:R|S]->", "-[]->", "-[:!S]->", "-[:T]->")
LENGTHS = ("-[:R*1..2]->", "-[:R]->{1,2}", "-[:S*2]-", "<-[:R|S*1..3]-", "-[:R {w: 1}]->{1,2}")
CONDITIONS = (
    "a.k > 1",
    "a.k = 1 OR a.i < 3",
    "a.k IS NULL",
    "NOT a:A",
    "a.i IN [1, 2, 5]",
    "any(x IN [1, 2] WHERE x = a.k)",
)
SUBQUERIES = (
    "EXISTS {{ ({0})-[:S]->() }}",
    "NOT EXISTS {{ ({0})-[:S]->(z:A) }}",
    "EXISTS {{ ({0})-[:R]->(z) WHERE z.k > coalesce({0}.k, 0) }}",
    "EXISTS {{ MATCH ({0})-[:R]->(z) WHERE NOT (z)-[:S]->() RETURN z }}",
    "EXISTS {{ ({0})-[e:R]->() WHERE e.w > 0 }}",
    "EXISTS {{ ({0})-[:R]->(z) WHERE EXISTS {{ (z)-[:S]->({{k: 1}}) }} }}",
    "COUNT {{ ({0})-[:R]->() }} > 1",
    "COUNT {{ MATCH ({0})-[:R]->(z) MATCH (z)-[:S]-(w) RETURN w }} = 1",
    "({0})-[:S]->()",
    "NOT ({0})-[:R]->(:B)",
    "NOT ({0})<-[:R]-({1})",
    "({0})-[:S]-({1})",
    "EXISTS {{ ({0})-[:R*1..2]->(:B) }}",
    "EXISTS {{ ({0})-[:R]->(z)-[:S]->({1}) }}",
)
COLUMNS = (
    "{0}.i", "{1}.k", "{0}.i + coalesce({1}.i, 0)", "COUNT {{ ({0})-[:S]->() }}", "EXISTS {{ ({1})-[:R]->(:A) }}",
    "COUNT {{ ({1})-[:R*1..2]->(z) WHERE z.k > 0 }}", "{0} {{.i, .k}}", "[x IN [{0}.i, {1}.i] WHERE x > 1]", "{0}",
    "labels({1})", "size(keys({0}))", "({0})-[:S]->({1})",
)  # fmt: skip
MEASURES = ("count(*)", "count({1})", "sum({1}.i)", "min({1}.i)", "max({0}.i)", "count(DISTINCT {1})", "avg({0}.i)")


def one(draw: Draw, options: tuple[str, ...]) -> str:
    return str(draw.choice(options))


def path(draw: Draw, first: str, last: str, most: float) -> str:
    """Return a path from one vertex to another, of one edge or, with a probability, several lengths."""
    between = one(draw, LENGTHS if draw.random() < most else EDGES)
    if draw.random() < 0.25:
        between += f"({one(draw, LABELS)}){one(draw, EDGES)}"
    return f"({first}{one(draw, LABELS)}){between}({last}{one(draw, LABELS)})"


def query(draw: Draw) -> str:
    """Return a random query."""
    names = ["a", "b"]
    if draw.random() < 0.35:
        text, names = f"MATCH (a{one(draw, LABELS)})", ["a", "a"]
    else:
        mode = one(draw, MODES)
        text = f"MATCH {mode}{path(draw, 'a', 'b', 0.0 if mode == 'INDUCED ' else 0.3)}"
    conditions = []
    if not text.startswith("MATCH INDUCED") and draw.random() < 0.25:
        text += f", (x{one(draw, (':A', ':B', ''))}){one(draw, ('', '', '-[:S]->()', '-[:R]->(y)'))}"
        conditions.append(one(draw, ("a.k = x.k", "a.i = x.i", "x.k = 1", "x.i < a.i")))
        names += ["x"]
    if draw.random() < 0.3:
        conditions.append(one(draw, CONDITIONS))
    if draw.random() < 0.5:
        conditions.append(one(draw, SUBQUERIES).format(*names))
    if conditions:
        text += f" WHERE {' OR '.join(conditions) if draw.random() < 0.2 else ' AND '.join(conditions)}"
    passed = ", ".join(dict.fromkeys(names))
    if draw.random() < 0.15:
        text = f"CALL {{ {text} RETURN {passed} }}"
    elif draw.random() < 0.2:
        text += f" WITH {passed}{one(draw, ('', ' WHERE a.k > 0', ' WHERE NOT (a)-[:S]->(:A)'))}"
    for new in "cd"[: int(draw.choice(3, p=[0.4, 0.4, 0.2]))]:
        start = one(draw, tuple(names))
        mode = one(draw, MODES)
        text += f" OPTIONAL MATCH {mode}{path(draw, start, new, 0.0 if mode == 'INDUCED ' else 0.3)}"
        if draw.random() < 0.5:
            text += f" WHERE {one(draw, SUBQUERIES).format(new, start)}"
        names.append(new)
    columns = draw.choice(COLUMNS, int(draw.integers(1, 4)), replace=False).tolist()
    if draw.random() < 0.3:
        keys = [column for column in columns[:1] if column.startswith("{0}.i")]
        columns = keys + draw.choice(MEASURES, int(draw.integers(1, 3)), replace=False).tolist()
    ends = names[0], names[-1]
    shown = ", ".join(f"{column.format(*ends)} AS c{i}" for i, column in enumerate(columns))
    return f"{text} RETURN {'DISTINCT ' if draw.random() < 0.1 else ''}{shown}"


def created(db: graphdb.Database, draw: Draw, count: int) -> dict[str, str]:
    """Create so many random queries, and return them."""
    queries = {f"q{number}": query(draw) for number in range(count)}
    create(db, queries)
    return queries


@settings(max_examples=scaled(12), deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@example(972)  # the field of a map has several values of one vertex at last
@given(st.integers(0, 1 << 32))
def test_answers_follow_every_batch(seed: int) -> None:
    draw = np.random.default_rng(seed)

    def begun(db: graphdb.Database) -> dict[str, str]:
        begin(db, draw, 0)
        return created(db, draw, 5)

    def write(draw: Draw) -> str:
        return write_edges(draw) if draw.random() < 0.3 else statement(draw)

    with tempfile.TemporaryDirectory() as folder:
        check_history(Path(folder) / "a.duckdb", draw, begun, write)


MAINTAINED = {
    "exists": "MATCH (a)-[:R]->(b) WHERE EXISTS { (b)-[:S]->(c) WHERE c.k > a.k } RETURN a.i AS i, b.i AS j",
    "none": "MATCH (a:A) WHERE NOT (a)-[:R]->() RETURN a.i AS i",
    "counted": "MATCH (a:A) RETURN a.i AS i, COUNT { (a)-[:R]->(b)-[:S]->() } AS n",
    "optional": "MATCH (a:A) OPTIONAL MATCH (a)-[:S]->(b) WHERE NOT EXISTS { (b)-[:R]->(:B) } RETURN a.i AS i, b.i AS j",
    "column": "MATCH (a:A) OPTIONAL MATCH (a)-[:S]->(b) RETURN a.i AS i, COUNT { (b)-[:R]->() } AS n",
    "nested": "MATCH (a)-[:R]->(b) WHERE EXISTS { (b)-[:S]->(c) WHERE NOT (c)-[:R]->() } RETURN a.i AS i, count(*) AS n",
    "lengths": "MATCH (a:A)-[:R*1..2]->(b:B) RETURN a.i AS i, b.k AS k",
    "walks": "MATCH REPEATABLE ELEMENTS (a:A)-[:R]->{2}(b)-[:S]-(c) RETURN a.i AS i, count(*) AS n",
    "bracketed": "MATCH (a:A) ((x)-[:R]->(y)-[:S]->(z) WHERE y.k > 0){1,2} (b) RETURN a.i AS i, b.i AS j",
    "reached": "MATCH (a:B) OPTIONAL MATCH (a)-[:S*1..2]->(b:A) RETURN a.i AS i, b.i AS j",
    "path": "MATCH p = (a:A)-[:R]->(b) RETURN length(p) AS n, b.i AS j",
    "induced": "MATCH INDUCED (a)-[e:R]->(b)-[:R]->(c) RETURN a.i AS i, e.w AS w",
    "listed": "MATCH (a)-[:R]->(b) RETURN [x IN [a.i, b.i] WHERE x > 1] AS l, a {.i, .k} AS m",
    "any": "MATCH (a) WHERE a.k > 1 RETURN a.i AS i",
    "others": "MATCH (a:!A) OPTIONAL MATCH (a)-[:R]->(b) RETURN a.i AS i, b.i AS j",
    "joined": "MATCH (a:A), (b:B) WHERE a.k = b.k RETURN a.i AS i, b.i AS j",
    "beside": "MATCH (a:A)-[:R]->(b), (c:B) WHERE c.i = a.i OPTIONAL MATCH (c)-[:S]->(d) RETURN b.i AS i, d.k AS j",
    "product": "MATCH (a:A), (b), (c:B) WHERE b.k = 1 AND a.i < 2 RETURN count(*) AS n, sum(c.i) AS s",
    "all": "MATCH (a) RETURN count(*) AS n, max(a.i) AS m",
}


def test_delta_plans_are_used() -> None:
    draw = np.random.default_rng(3)
    with opened(None) as db:
        begin(db, draw, 0)
        db.query("MATCH (a:A {i: 1}), (b:B {i: 1}) CREATE (a)-[:R {w: 1}]->(b)")
        for name, text in MAINTAINED.items():
            db.query(f"CREATE CONTINUOUS QUERY q_{name} AS {text}")
            assert "maintained by delta plans" in explained(db, f"q_{name}"), text
        stored = {f"q_{name}": bag(db, f"FROM q_{name}") for name in MAINTAINED}
        for number in (0, 5):
            db.query(f"MATCH (a:A {{i: {number % 4}}}), (b:B {{i: {number}}}) MERGE (a)-[:R]->(b) MERGE (b)-[:S]->(a)")
            db.query(f"MATCH (a:A {{i: {number}}})-[e:R]->() SET a.k = {number % 3}, e.w = {number}")
            db.query(f"MATCH (a:B {{i: {number}}})-[e:S]->() DELETE e")
            db.query(f"MATCH (b:B {{i: {number}}}) CREATE (b)-[:R]->(:B {{i: 7, k: 2}})-[:S]->(:A {{i: 8}})-[:S]->(b)")
            check(db, {f"q_{name}": text for name, text in MAINTAINED.items()}, stored)
        assert strategies(db)["compared"] == 0
        assert all(db.sql(f"FROM {name}_changes LIMIT 1").fetchall() for name in stored), "every answer changes"


def test_only_what_changed_is_asked_for() -> None:
    with opened(None) as db:
        db.query("UNWIND range(0, 99) AS x CREATE (:A {i: x})-[:R]->(:B {i: x})-[:S]->(:C {i: x})")
        db.query("CREATE CONTINUOUS QUERY q AS MATCH (a:A) WHERE EXISTS { (a)-[:R]->()-[:S]->() } RETURN a.i AS i")
        db.query("CREATE CONTINUOUS QUERY p AS MATCH (a:A)-[*1..2]->(c:C) RETURN a.i AS i, c.i AS j")
        db.query("MATCH (b:B {i: 7})-[e:S]->() DELETE e")
        db.query("MATCH (b:B {i: 8}), (c:C {i: 7}) CREATE (b)-[:S]->(c)")
        assert db.sql("SELECT batch, change, i FROM q_changes").fetchall() == [(1, -1, 7)]
        changes = db.sql("SELECT batch, change, i, j FROM p_changes ORDER BY ALL").fetchall()
        assert changes == [(1, -1, 7, 7), (2, 1, 8, 7)]
        assert set(strategies(db)) == {"delta plans"}


def test_conditions_on_single_edges_follow_all_edges_of_a_label() -> None:
    text = "MATCH (a:A)-[e:R {w: 1}]->(b) OPTIONAL MATCH (b)-[:S]->(c) RETURN a.i AS i, c.i AS j"
    with opened(None) as db:
        db.query("UNWIND range(0, 9) AS x CREATE (:A {i: x})-[:R {w: x % 2}]->(:B {i: x})-[:S]->(:B {i: -x})")
        db.query(f"CREATE CONTINUOUS QUERY q AS {text}")
        stored = {"q": bag(db, "FROM q")}
        for change in (
            "MATCH (b:B {i: 1})-[e:S]->() DELETE e",
            "MATCH (a:A {i: 4}), (b:B {i: 5}) CREATE (a)-[:R]->(b)",  # all edges of R have other places
            "MATCH (b:B {i: 7})-[e:S]->() DELETE e",
        ):
            db.query(change)
            check(db, {"q": text}, stored)


def test_least_values_go_where_both_of_two_components_change() -> None:
    text = "MATCH (a:A)-[:R]->(), (x:B) WHERE a.i = x.i OPTIONAL MATCH (x)-[:S]->(d) RETURN a.i AS i, min(d.i) AS m"
    with opened(None) as db:
        db.query("CREATE (a:A {i: 1})-[:R]->({i: 5}), (a)-[:R]->({i: 6}), (:B {i: 1})-[:S]->({i: 2})")
        db.query(f"CREATE CONTINUOUS QUERY q AS {text}")
        stored = {"q": bag(db, "FROM q")}
        db.query("MATCH (:A)-[e:R]->({i: 5}), (:B)-[f:S]->() DELETE e, f")
        check(db, {"q": text}, stored)
        assert set(strategies(db)) == {"delta plans"}


def test_induced_goes_on_where_edges_become_parallel() -> None:
    text = "MATCH INDUCED (a)-[:R]->(b)-[:R]->(c) RETURN a.i AS i, c.i AS j"
    with opened(None) as db:
        db.query("UNWIND range(0, 4) AS x CREATE (:A {i: x})-[:R]->(:B {i: x})-[:R]->(:B {i: -x})")
        db.query(f"CREATE CONTINUOUS QUERY q AS {text}")
        stored = {"q": bag(db, "FROM q")}
        for number in range(4):
            db.query(f"MATCH (a:A {{i: {number}}})-[:R]->(b) CREATE (a)-[:R]->(b)")
            check(db, {"q": text}, stored)
        db.query("MATCH (a:A)-[e:R]->(b) WITH a, b, collect(e) AS l WHERE size(l) > 1 UNWIND l[1..] AS e DELETE e")
        check(db, {"q": text}, stored)
        assert strategies(db)["delta plans"] >= 3


def test_paths_go_on_where_a_label_is_no_forest_any_more() -> None:
    text = "MATCH (a:A)-[:R*1..2]->(b) WHERE EXISTS { (b)-[:S]->() } RETURN a.i AS i, b.i AS j"
    with opened(None) as db:
        db.query("UNWIND range(0, 9) AS x CREATE (:A {i: x})")
        db.query("UNWIND range(1, 9) AS x MATCH (a:A {i: x}), (b:A {i: x / 2}) CREATE (a)-[:R]->(b)")
        db.query(f"CREATE CONTINUOUS QUERY q AS {text}")
        stored = {"q": bag(db, "FROM q")}
        for change in (
            "MATCH (a:A {i: 1}), (b:A {i: 0}) CREATE (a)-[:S]->(b)",
            "MATCH (a:A {i: 2}), (b:A {i: 7}) CREATE (a)-[:R]->(b), (b)-[:S]->(a)",  # 2 has two parents
            "MATCH (a:A {i: 5}) CREATE (a)-[:S]->(a)",
        ):
            db.query(change)
            check(db, {"q": text}, stored)
        assert set(strategies(db)) == {"delta plans"}
