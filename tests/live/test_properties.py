"""Changed labels and properties by delta plans: after each batch the answer is that of the query, run anew."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import graphdb
from graphdb.snapshot.properties import Properties, PropertyColumn
from graphdb.storage.catalog import EdgeLabel
from tests.fuzz import scaled
from tests.live.writes import bag, check, create, created, opened, small_graph, strategies

QUERIES = (
    "MATCH (a)-[:R]->(b) RETURN a.i AS i, b.k AS k",
    "MATCH (a:A)-[:R]->(b:B) RETURN a, b",
    "MATCH (a:A)-[e:R]->(b) WHERE a.k < 3 RETURN e, b.s AS s",
    "MATCH (a:A)-[:R]->(b)-[:R]->(c:A) WHERE a.k = c.k RETURN a.i AS i, c.s AS s",
    "MATCH (a:A|C)-[:R]-(b:!A) WHERE b.s IS NULL RETURN a.i AS i, b.k AS k",
    "MATCH DIFFERENT NODES (a:A {k: 1})-[:R]-(b)-[:S]-(c:A {k: 1}) RETURN a.s AS s, c.i AS i",
    "MATCH (a:A)-[:R]->(b) WHERE a.k + 1 > 2 AND a.s <> 's1' RETURN labels(a) AS l, properties(b) AS p",
    "MATCH (a:C)-[:R]->(b) RETURN a.fresh AS f, b.i AS i",
    "MATCH (a:A)-->(b)-->(a) WHERE a.k >= 1 RETURN a.i AS i, b.i AS j",
    "MATCH (a:A)-[:R]->(b) RETURN a.k AS k, count(*) AS n, sum(b.k) AS s, min(b.k) AS m",
    "MATCH (a)-[:R]->(b:B) RETURN a, max(b.k) AS m, count(b.s) AS n, avg(b.k) AS v",
    "MATCH (a:A)-[:R]->(b) WHERE b.k > 1 RETURN DISTINCT b.s AS s",
    "MATCH (a:A)-[:R]->(:B) RETURN count(*) AS n",
    "MATCH (a)-[:R]->(b) WHERE b.k > 0 RETURN sum(b.k) AS s, max(b.k) AS m, count(DISTINCT a.s) AS d",
    "MATCH (a:A)-[e]->(b) WHERE type(e) <> 'S' RETURN a.i AS i, b.k AS k",
)


def change(draw: np.random.Generator) -> str:
    """Return a statement that changes labels and properties, some with edges beside."""
    a, b = (f"({name} {{i: {draw.integers(6)}}})" for name in "ab")
    label, key = draw.choice(["A", "B", "C"], p=[0.4, 0.4, 0.2]), draw.choice(["k", "s", "fresh"], p=[0.6, 0.3, 0.1])
    value = f"'s{draw.integers(3)}'" if key == "s" else str(draw.integers(4))
    match int(draw.integers(8)):
        case 0 | 1:
            return f"MATCH {a} SET a.{key} = {value}"
        case 2:
            return f"MATCH {a} REMOVE a.{key}"
        case 3:
            return f"MATCH {a} SET a:{label}"
        case 4:
            return f"MATCH {a} REMOVE a:{label}"
        case 5:
            return f"MATCH {a}, {b} MERGE (a)-[:R]->(b) SET a.k = {draw.integers(4)}, b:{label}"
        case 6:
            return f"MATCH {a}-[e:R]->(c) WITH a, e, c LIMIT 2 DELETE e SET a.{key} = {value}, c.k = 2"
    return f"MATCH {a} WITH a LIMIT 1 DETACH DELETE a CREATE (:{label} {{i: 2, k: 1}})-[:R]->(:B {{i: 5, k: 3}})"


def begin(db: graphdb.Database) -> None:
    small_graph(db, "k: x % 4, s: 's' + (x % 3)", "(2 * a.i + b.i) % 7 < 2")


@pytest.mark.parametrize("seed", range(scaled(6)))
def test_answers_follow_labels_and_properties(seed: int, tmp_path: Path) -> None:
    draw = np.random.default_rng(seed)
    path = tmp_path / "a.duckdb" if seed % 2 else None
    db = opened(path)
    begin(db)
    chosen = draw.choice(len(QUERIES), 4, replace=False).tolist()
    queries = {f"q{number}": QUERIES[number] for number in chosen}
    stored = created(db, queries)
    compared = 0
    for _ in range(8):
        if draw.random() < 0.25:
            db.query("BEGIN")
            for _ in range(3):
                db.query(change(draw))
            db.query("ROLLBACK" if draw.random() < 0.4 else "COMMIT")
        else:
            db.query(change(draw))
        check(db, queries, stored)
        if path is not None and draw.random() < 0.2:
            compared += strategies(db)["compared"]
            db.close()
            db = opened(path)
    assert compared + strategies(db)["compared"] == 0
    db.close()


@pytest.mark.parametrize(
    "text", ["MATCH (a {i: 1}) SET a.s = 'new'", "MATCH (a {i: 2}) SET a:C", "MATCH (a {i: 3}) REMOVE a:A"]
)
def test_the_first_batch_after_opening_may_change_properties(text: str, tmp_path: Path) -> None:
    query = "MATCH (a:A)-[:R]->(b) RETURN a.s AS s, b.i AS i"
    with opened(tmp_path / "a.duckdb") as db:
        begin(db)
        db.query(f"CREATE CONTINUOUS QUERY q AS {query}")
        stored = {"q": bag(db, "FROM q")}
    with opened(tmp_path / "a.duckdb") as db:
        db.query(text)
        check(db, {"q": query}, stored)
        assert strategies(db) == {"delta plans": 1}


def test_a_name_that_comes_to_be_another_is_compared() -> None:
    with opened(None) as db:
        query = "MATCH (a)-[:R]->(b) RETURN a.k AS k"
        db.apply([("http://x/1", "urn:graphdb:R", "http://x/2"), ("http://x/1", "http://other/k", 7)])
        db.query(f"CREATE CONTINUOUS QUERY q AS {query}")
        stored = {"q": bag(db, "FROM q")}
        db.apply([("http://x/2", "urn:graphdb:k", 3)])  # the database's own name goes before others
        check(db, {"q": query}, stored)
        assert strategies(db)["compared"] == 1


def test_edge_labels_that_come_and_go() -> None:
    with opened(None) as db:
        begin(db)
        queries = {
            "p": "MATCH (a)-[:R]->(b)-[:T]->(c) RETURN a.i AS i, c.i AS j",
            "q": "MATCH (a)-[:R|T]->(b) RETURN a.i AS i, b.i AS j",
            "class": "MATCH (a)-[:A]->(b) RETURN a.i AS i, b.i AS j",
            "labelled": "MATCH (a)-[e]->(b) WHERE e:T RETURN a.i AS i, b.i AS j",
            "negated": "MATCH (a)-[e]->(b) WHERE NOT e:R RETURN a.i AS i, b.i AS j",
            "typed": "MATCH (a)-[e:R|S|T]->(b)-[f]->(c) WHERE type(e) > 'R' AND type(f) IN ['R', 'k'] RETURN a.i AS i",
        }
        stored = created(db, queries)
        for text in (
            "MATCH (a:A {i: 1}), (b:B {i: 5}) MERGE (a)-[:R]->(b)",
            "MATCH (a:A {i: 1}), (b:B {i: 5}) CREATE (b)-[:T]->(a)",
            "MATCH (a:A {i: 2}), (b:B {i: 5}) MERGE (a)-[:R]->(b)",
            "MATCH ()-[e:T]->() DELETE e",
            "MATCH (a:A {i: 3}), (b:B {i: 5}) MERGE (b)-[:T]->(a) MERGE (a)-[:R]->(b)",
            "MATCH (a:A {i: 3}), (b:B {i: 5}) CREATE (b)-[:k]->(a), (a)-[:A]->(b)",  # a property and a label, too
            "MATCH ()-[e:R]->() DELETE e",
            "MATCH (n) DETACH DELETE n",
            "CREATE (:A {i: 1})-[:R]->(:B {i: 2})-[:T]->(:A {i: 3})",
        ):
            db.query(text)
            check(db, queries, stored)
        assert strategies(db)["compared"] == 0


def test_one_group_whose_rows_come_again_as_they_were() -> None:
    with opened(None) as db:
        begin(db)
        query = "MATCH (a:A)-[:R]->(b) WHERE b.k > 0 RETURN count(*) AS n, sum(b.i) AS s, max(b.i) AS m"
        db.query(f"CREATE CONTINUOUS QUERY q AS {query}")
        stored = {"q": bag(db, "FROM q")}
        db.query("MATCH (b) WHERE b.k = 2 SET b.k = 3")
        check(db, {"q": query}, stored)
        assert db.sql("FROM q_changes").fetchall() == []
        assert strategies(db) == {"delta plans": 1}


def test_what_had_no_value_goes_once_others_have_several_types() -> None:
    with opened(None) as db:
        db.query("CREATE (:A {i: 1, k: 2})-[:R]->(:A {i: 2}), (:A {i: 3})-[:R]->(:A {i: 4})")
        values = "a.k", "[a.k, a.i]", "{k: a.k, l: [[a.k]]}"
        queries = {f"q{n}": f"MATCH (a:A)-[:R]->(b) RETURN a.i AS i, {value} AS k" for n, value in enumerate(values)}
        stored = created(db, queries)
        for write in ("CREATE (:A {i: 5, k: 'x'})-[:R]->(:A {i: 6})", "MATCH (a:A {i: 3})-[r:R]->() DELETE r"):
            db.query(write)
            check(db, queries, stored)


@pytest.mark.parametrize("several", [False, True])
def test_integers_that_were_floats_beside_floats_go_as_what_they_are(several: bool) -> None:
    queries = {
        "q": "MATCH (a)-[:R]->(b) RETURN b.k AS k, EXISTS { (b)-[:R]->(:A) } AS e",
        "m": "MATCH (a)-[:R]->(b) RETURN b.k AS k, b.i AS i",
        "n": "MATCH (a)-[:R]->(b) RETURN b.k AS k, count(*) AS n",
        "o": "MATCH (a)-[:R]->(b) RETURN b.k AS k ORDER BY b.i LIMIT 3",
    }
    with opened(None) as db:
        db.query("UNWIND range(0, 3) AS x CREATE (:A {i: x, k: x})-[:R]->(:B {i: x, k: x})")
        stored = created(db, queries)
        db.query("MATCH (a {i: 2}) CREATE (a)-[:R]->(:B {i: 2, k: 2.5})")  # from here on 3 is 3.0 in a column
        check(db, queries, stored)
        if several:
            number = '"%d"^^<http://www.w3.org/2001/XMLSchema#integer>'
            db.load(io.BytesIO(f"<x:x> <urn:graphdb:k> {number % 1}, {number % 2} .".encode()), format="turtle")
        else:
            db.query("CREATE ({k: 'x'})")  # from here on it says that it is an integer
        for change in ("MATCH (a {i: 3}) REMOVE a.k", "MATCH (a:A {i: 1})-[e:R]->() DELETE e"):
            check(db, queries, stored)
            db.query(change)
        check(db, queries, stored)
        assert strategies(db)["delta plans"] >= 6


@pytest.mark.parametrize("condition", ["NOT a:A", "a.k = 9 OR a.i > 2", "a.k IS NULL", "coalesce(a.k, 0) = 0", "a:!A"])
def test_a_vertex_gets_its_first_edge_of_the_pattern(condition: str) -> None:
    vertex, where = ("(a:!A)", "") if condition == "a:!A" else ("(a)", f" WHERE {condition}")
    queries = {
        "q": f"MATCH {vertex}-[:R]->(b){where} RETURN a.i AS i, b.i AS j",
        "p": f"MATCH {vertex}-[:R]->(b), (a)-[:S]->(c){where} RETURN a.i AS i, b.i AS j, c.i AS k",
    }
    with opened(None) as db:
        db.query("UNWIND range(0, 3) AS x CREATE (:A {i: x, k: 1})-[:R]->(:C {i: x}), (:B {i: x})-[:S]->(:C {i: x})")
        stored = created(db, queries)
        for number in range(4):
            db.query(f"MATCH (a:B {{i: {number}}}), (b:C {{i: 0}}) CREATE (a)-[:R]->(b)")
            check(db, queries, stored)
        assert db.sql("SELECT count(*) FROM q_changes").fetchall()[0][0] > 0
        assert set(strategies(db)) == {"delta plans"}


FACTS = {
    "q_start": "MATCH (a)-[e:R]->(b) RETURN labels(startNode(e)) AS l, b.i AS i",
    "q_any": "MATCH (a)-[:R]->(b) WHERE any(x IN [a, b] WHERE 'C' IN labels(x)) RETURN a.i AS i, b.i AS j",
    "q_head": "MATCH (a)-[:R]->(b) RETURN labels(head([a, b])) AS l",
    "q_end": "MATCH (a)-[e:R]->(b) RETURN properties(endNode(e)) AS p",
    "q_other": "MATCH (a)-[:R]->(b) RETURN <http://x/1>.k AS k, b.i AS i",
    "q_beside": "MATCH (a:A) OPTIONAL MATCH (a)-[:R]->(b) WHERE <http://x/1>:C RETURN a.i AS i, b.i AS j",
    "q_text": "MATCH (a)-[:R]->(b) WHERE iri('http://x/1').k > 1 RETURN a.i AS i",
    "q_label": "MATCH (a)-[e:R]->(b) RETURN predicate(e).k AS k, b.i AS i",
    "q_later": "MATCH (a)-[:R]->(b) RETURN b.i AS i, <http://x/9> AS v",
    "q_equal": "MATCH (a)-[:R]->(b) RETURN b = <http://x/9> AS v, a <> <http://x/9> OR a.k > 1 AS w, iri(b) AS x",
}
"""Queries that read labels and properties of what an expression yields."""


def test_facts_of_what_an_expression_yields() -> None:
    with opened(None) as db:
        begin(db)
        db.apply([("http://x/1", "urn:graphdb:R", "http://x/2"), ("http://x/1", "urn:graphdb:k", 1)])
        for name, text in FACTS.items():
            db.query(f"CREATE CONTINUOUS QUERY {name} AS {text}")
        stored = {name: bag(db, f"FROM {name}") for name in FACTS}
        for subject, label, value in (
            ("http://x/1", "urn:graphdb:k", 2),
            ("http://x/1", "http://www.w3.org/1999/02/22-rdf-syntax-ns#type", "urn:graphdb:C"),
            ("urn:graphdb:R", "urn:graphdb:k", 3),
            ("http://x/2", "urn:graphdb:fresh", 4),
            ("http://x/2", "urn:graphdb:R", "http://x/9"),
        ):
            db.apply([(subject, label, value)])
            check(db, FACTS, stored)


def test_only_the_properties_of_the_matches_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch asks for no table of a property's values, which takes as long as all vertices have it."""
    db, text, asked = opened(None), "MATCH (a:A)-[:R]->(b) RETURN a.s AS s, b.s AS t", list[str]()
    begin(db)
    db.query(f"CREATE CONTINUOUS QUERY q AS {text}")
    column = Properties.column

    def asking(self: Properties, label: EdgeLabel, *, make: bool = True) -> PropertyColumn:
        asked.append(label.iri)
        return column(self, label, make=make)

    for change in ("CREATE (:A {i: 91, s: 'x'})-[:R]->(:A {i: 92, s: 'y'})", "MATCH (:A {i: 91})-[e:R]->() DELETE e"):
        with monkeypatch.context() as patched:
            patched.setattr(Properties, "column", asking)
            db.query(change)
        assert Counter(db.query("FROM q")) == Counter(db.query(text))
    assert not [iri for iri in asked if iri.endswith("s")]


def test_conditions_that_python_computes_by_now() -> None:
    text = "MATCH (a)-[:R]->(b) WHERE coalesce(a.k, 0) < 2 RETURN a.i AS i, b.i AS j"
    one, two = (f'<http://x/1> <urn:graphdb:k> "{n}"^^<http://www.w3.org/2001/XMLSchema#integer> .\n' for n in (1, 2))
    with opened(None) as db:
        db.query("UNWIND range(0, 3) AS x CREATE (:A {i: x, k: x})-[:R]->(:B {i: x, k: x})")
        db.query(f"CREATE CONTINUOUS QUERY q AS {text}")
        stored = {"q": bag(db, "FROM q")}
        edges = ("<http://x/1> <urn:graphdb:R> <http://x/2> .\n", "<http://x/3> <urn:graphdb:R> <http://x/1> .\n")
        for lines in (one + two + edges[0], edges[1]):
            db.load(io.BytesIO(lines.encode()), format="ntriples")
            check(db, {"q": text}, stored)
        assert strategies(db) == {"compared": 2}
        db.query("MATCH (a) WHERE a.i IS NULL REMOVE a.k")
        check(db, {"q": text}, stored)
        for number in range(2):
            db.query(f"MATCH (a:A {{i: 3}}) SET a.k = {number}")
            check(db, {"q": text}, stored)
        assert strategies(db)["delta plans"] > 0


def test_few_matches_are_written_at_once() -> None:
    with graphdb.connect(device="cpu") as db:
        db.query("UNWIND range(0, 5) AS x CREATE (:A {i: x, f: x / 4.0, s: 'it''s ' + toString(x), b: x % 2 = 0})")
        db.query("MATCH (a:A) WHERE a.i = 3 REMOVE a.s, a.f")
        db.query("MATCH (a:A {i: 0}), (b:A {i: 1}) CREATE (a)-[:R]->(b), (a)-[:S]->(b)")
        queries = {
            "values": "MATCH (a)-[:R]->(b) RETURN a, b.i AS i, b.f AS f, b.s AS s, b.b AS b",
            "equal": "MATCH (a)-[:R]->(b) WHERE a.i + b.i > 1 RETURN a.i % 2 AS r",
            "other": "MATCH (a)-[:S]->(b) RETURN a.i AS i, b.i AS j",
        }
        create(db, queries)
        for a, b in ((1, 2), (3, 4), (3, 2), (2, 3), (5, 0)):
            db.query("MATCH (a:A {i: $a}), (b:A {i: $b}) CREATE (a)-[:R]->(b)", a=a, b=b)
        db.query("MATCH (a:A {i: 3})-[e:R]->(b:A {i: 4}) DELETE e")
        for name, text in queries.items():
            assert bag(db, f"FROM {name}") == bag(db, f"SELECT * FROM cypher($$ {text} $$)")
        changes = "SELECT batch, change, count(*) FROM {}_changes GROUP BY ALL ORDER BY ALL"
        assert db.sql(changes.format("equal")).fetchall() == [(i, 1, 1) for i in range(1, 6)] + [(6, -1, 1)]
        assert not db.sql(changes.format("other")).fetchall()
        standing = db._statements().live.maintenance._standing.values()
        written = [each.branches[0].at_once for each in standing]
        assert all(at_once is not None and at_once.come and at_once.goes for at_once in written[:2])
        assert written[2] is None
