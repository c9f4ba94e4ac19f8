"""Edges with properties and parallel edges: what SQL answers, and what EXPLAIN says of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
import pytest

import graphdb


@pytest.fixture(scope="module")
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(device="cpu") as database:
        database.query(
            "CREATE (a:P {name: 'a'}), (b:P {name: 'b'}), (c:P {name: 'c'}), (a)-[:K {since: 2010, w: 1.5}]->(b), "
            "(a)-[:K {since: 2012}]->(b), (b)-[:K]->(c), (c)-[:L {since: 1}]->(a), (b)-[:M]->(c), (c)-[:L {since: 7}]->(c)"
        )
        yield database


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("MATCH (a)-[r:K]->(b) RETURN a.name, r.since ORDER BY r.since", [("a", 2010), ("a", 2012), ("b", None)]),
        ("MATCH (a)-[r:K {since: 2012}]->(b) RETURN r.w, b.name", [(None, "b")]),
        ("MATCH (a)-[r:L|M]->(b) RETURN r.since, a.name ORDER BY r.since LIMIT 2", [(1, "c"), (7, "c")]),
        ("MATCH (a)-[r:K]->(b) RETURN a.name AS n, r.w AS w ORDER BY w DESC SKIP 2 LIMIT 1", [("a", 1.5)]),
        ("MATCH (a)-[r:K]->(b) RETURN sum(r.since), count(r), count(*)", [(4022, 3, 3)]),
        ("MATCH (a)-[:K]->(b)<-[:K]-(c) RETURN count(*)", [(2,)]),
        ("MATCH DIFFERENT NODES (a)-[:K]->(b), (a)-[:K]->(b) RETURN count(*)", [(2,)]),
        ("MATCH (a)-[s:L]->(a), (a)-[t:K|L]->(a) RETURN count(*)", [(0,)]),
        ("MATCH (a)-[r:L]-(a) RETURN r.since", [(7,)]),
        ("MATCH (a {name: 'a'})-[r:K*1..2 {since: 2010}]->(b) RETURN size(r)", [(1,)]),
        ("MATCH (a:P) WHERE EXISTS { (a)-[r:K]->() WHERE r.since > 2011 } RETURN a.name", [("a",)]),
        ("MATCH (a)-[r:K {since: 2010}]->(b) WITH r, b MATCH (b)-[t]->(c) WHERE t.since IS NULL RETURN r.w, type(t) AS t "
         "ORDER BY t", [(1.5, "K"), (1.5, "M")]),
        ("MATCH (a)-[r:L]->(b) RETURN properties(r), keys(r) ORDER BY r.since", [({"since": 1}, ["since"]), ({"since": 7}, ["since"])]),
    ],
)  # fmt: skip
def test_rows(db: graphdb.Database, query: str, rows: list[tuple[object, ...]]) -> None:
    assert db.query(query).fetchall() == rows


def test_edges_of_results_have_their_properties(db: graphdb.Database) -> None:
    found = [edge.properties for (edge,) in db.query("MATCH ()-[r:K]->({name: 'b'}) RETURN r ORDER BY r.since")]
    assert found == [{"since": 2010, "w": 1.5}, {"since": 2012}]
    ((path,),) = db.query("MATCH p = ({name: 'c'})-[:L]->({name: 'a'}) RETURN p")
    assert path.relationships[0].properties == {"since": 1}


def test_what_changes_is_seen() -> None:
    with graphdb.connect(device="cpu") as db:
        db.query("CREATE (a {id: 1})-[:K {x: 1}]->(b {id: 2}), (a)-[:K {x: 2}]->(b)")
        query = "MATCH ()-[r:K]->() RETURN r.x AS x, r ORDER BY x"
        assert [x for x, _ in db.query(query)] == [1, 2]
        db.query("MATCH ()-[r:K {x: 2}]->() SET r.x = 5")
        db.query("MATCH (a {id: 1}), (b {id: 2}) CREATE (a)-[:K {x: 3}]->(b)")
        assert [(x, edge.properties["x"]) for x, edge in db.query(query)] == [(1, 1), (3, 3), (5, 5)]
        db.query("MATCH ()-[r:K {x: 1}]->() DELETE r")
        assert [x for x, _ in db.query(query)] == [3, 5]


def test_explain_says_what_is_settled_where(db: graphdb.Database) -> None:
    scanned = db.explain("MATCH (a)-[r:K]->(b) WHERE r.since > 2010 RETURN a.name")
    assert "goes through 1 edges as they are numbered" in scanned
    assert "edges of r before the match: r.since > 2010 leaves 1 of 3 edges" in scanned
    matched = db.explain("MATCH (a)-[r:K]->(b)-[:M]->(c) RETURN a.name")
    assert "edges of r after the match: each of parallel ones" in matched


def test_parallel_edges_are_counted_by_weights() -> None:
    with graphdb.connect(device="cpu", threads=2) as db:
        ends = [(i * i % 97, (7 * i + i // 97) % 97) for i in range(3000)]
        pairs = [*ends, *ends[::3], (5, 5), (5, 5)]
        db.load(
            pa.table(
                {":START_ID": [s for s, _ in pairs], ":END_ID": [o for _, o in pairs], ":TYPE": ["K"] * len(pairs)}
            )
        )
        starts, ends_at = Counter(s for s, _ in pairs), Counter(o for _, o in pairs)
        loops = sum(s == o for s, o in pairs)
        hops = sum(number * starts[vertex] for vertex, number in ends_at.items()) - loops
        query = "MATCH (a)-[:K]->(b)-[:K]->(c) RETURN "
        assert "counted without enumerating: inclusion–exclusion over 2 patterns" in db.explain(query + "count(*)")
        assert db.query(query + "count(*)").scalar() == hops
        assert sum(n for _, n in db.query(query + "b, count(*)")) == hops
