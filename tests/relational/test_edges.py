"""Edges with properties and parallel edges: what SQL answers, and what EXPLAIN says of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import graphdb
from graphdb.relational.edges import assignment
from graphdb.relational.elements import fetch


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
        ("MATCH (a)-[r:K]->(b) WITH count(r) AS n RETURN n", [(3,)]),
        ("MATCH (a)-[r:K]->(b) OPTIONAL MATCH (b)-->(c) WHERE a.name > c.name RETURN r.since, c.name ORDER BY r.since",
         [(2010, None), (2012, None), (None, "a")]),
        ("MATCH (a:P {name: 'b'}) RETURN COUNT { MATCH ()-[r:L]->() RETURN count(r) AS n } AS n", [(1,)]),
        ("MATCH (a)-[r:K]->(b) WHERE EXISTS { MATCH (c:P) WHERE r.w > 1 RETURN c, count(*) AS n } RETURN a.name", [("a",)]),
    ],
)  # fmt: skip
def test_rows(db: graphdb.Database, query: str, rows: list[tuple[object, ...]]) -> None:
    assert db.query(query).fetchall() == rows


def test_edges_of_results_have_their_properties(db: graphdb.Database) -> None:
    found = [edge.properties for (edge,) in db.query("MATCH ()-[r:K]->({name: 'b'}) RETURN r ORDER BY r.since")]
    assert found == [{"since": 2010, "w": 1.5}, {"since": 2012}]
    ((path,),) = db.query("MATCH p = ({name: 'c'})-[:L]->({name: 'a'}) RETURN p")
    assert path.relationships[0].properties == {"since": 1}


def test_properties_of_few_edges_are_those_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    queries = [
        "MATCH (a)-[r]->(b) WHERE a.id < 6 RETURN r ORDER BY a.id, b.id, r.w",
        "MATCH ({id: 1})-[r]->(b)-[t]->(c) RETURN r, t ORDER BY r.w, c.id",
        "MATCH p = ({id: 1})-[:K*1..3]->(b) RETURN p ORDER BY length(p), b.id",
    ]
    with graphdb.connect(device="cpu") as db:
        db.query("UNWIND range(0, 9) AS i CREATE (:P {id: i})")
        db.query(
            "MATCH (a), (b) WHERE b.id IN [a.id + 1, a.id + 3] CREATE (a)-[:K {w: a.id * b.id, at: date('2020-01-02')}]->(b)"
        )
        db.query("MATCH (a {id: 1}), (b {id: 2}) CREATE (a)-[:K {w: 0.5, tags: ['x', 'y']}]->(b), (a)-[:L]->(b)")

        def answers() -> list[Any]:
            found = [db.query(query).fetchall() for query in queries]
            paths = [[edge.properties for edge in path.relationships] for (path,) in found[2]]
            return [[[edge.properties for edge in row] for row in rows] for rows in found[:2]] + paths

        few = answers()
        monkeypatch.setattr(fetch, "_FEW", 0)
        assert few == answers()
        assert {"w": 0.5, "tags": ["x", "y"]} in [edge for (edge,) in few[0]]


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


@pytest.fixture(scope="module")
def network() -> Iterator[tuple[graphdb.Database, pa.Table]]:
    """Return 300 vertices and 3,000 edges, some parallel, some without a property."""
    rng = np.random.default_rng(5)
    ends = rng.integers(0, 300, (2, 2900))
    ends = np.concatenate([ends, ends[:, :100]], axis=1)
    since = [None if i % 7 == 0 else int(year) for i, year in enumerate(rng.integers(1990, 2025, 3000))]
    columns = {
        ":START_ID": ends[0],
        ":END_ID": ends[1],
        ":TYPE": ["K"] * 3000,
        "since": since,
        "w": np.arange(3000) / 8,
    }
    edges = pa.table(columns)
    with graphdb.connect(device="cpu") as database:
        database.load([pa.table({":ID": np.arange(300), "id": np.arange(300), ":LABEL": ["P"] * 300}), edges])
        yield database, edges


LATEST = "(SELECT *, max(since) OVER (PARTITION BY s) AS last FROM e)"


@pytest.mark.parametrize(
    ("query", "sql"),
    [
        (
            "MATCH (a)-[r:K]->(b) WITH b, r ORDER BY r.w LIMIT 200 MATCH (b)-[t:K]->(c) "
            "RETURN c.id, t.since - r.since, r.w",
            "SELECT l.o, l.since - k.since, k.w FROM (FROM e ORDER BY w LIMIT 200) k JOIN e l ON l.s = k.o",
        ),
        (
            "MATCH (a)-[r:K]->(b) WITH b AS x, r AS y, a WHERE y.since > 2015 WITH x, y MATCH (x)-[t:K]->(c) RETURN t.w, y.w",
            "SELECT l.w, k.w FROM e k JOIN e l ON l.s = k.o WHERE k.since > 2015",
        ),
        (
            "MATCH (a:P) OPTIONAL MATCH (a)-[r:K]->(b) WHERE r.since = 2020 RETURN a.id, r.w, b.id",
            "SELECT i, e.w, e.o FROM range(300) t(i) LEFT JOIN e ON e.s = i AND e.since = 2020",
        ),
        (
            "MATCH (a:P) OPTIONAL MATCH (a)-[r:K]->(b) WHERE r.since = 2020 WITH a, r WHERE r.since IS NULL "
            "RETURN a.id, r IS NULL, r.w",
            "SELECT i, true, NULL FROM range(300) t(i) WHERE i NOT IN (SELECT s FROM e WHERE since = 2020)",
        ),
        (
            "MATCH (a)-[r:K]->(b)-[t:K]->(c) WHERE r.since < t.since RETURN r.w, t.w",
            "SELECT k.w, l.w FROM e k JOIN e l ON l.s = k.o WHERE k.since < l.since",
        ),
        (
            "MATCH REPEATABLE ELEMENTS (a)-[r:K]->(b)-[t:K]->(c) WHERE a.id < 250 AND c.id > 20 RETURN r.w + t.w AS w, c.id",
            "SELECT k.w + l.w, l.o FROM e k JOIN e l ON l.s = k.o WHERE k.s < 250 AND l.o > 20",
        ),
        (
            "MATCH (a)-[r:K]->(b), (a)-[t:K]->(c) WHERE t.since > 2000 RETURN r.w, t.w",
            "SELECT k.w, l.w FROM e k JOIN e l ON l.s = k.s AND l.w <> k.w WHERE l.since > 2000",
        ),
        (
            "MATCH (a)-[r:K]->(b)-[t:K]->(c), (b)-[u:K]->(d) WHERE r.since < t.since AND t.since < u.since "
            "RETURN a.id, count(*), max(u.w)",
            "SELECT k.s, count(*), max(m.w) FROM e k JOIN e l ON l.s = k.o JOIN e m ON m.s = k.o "
            "WHERE k.since < l.since AND l.since < m.since AND l.w <> m.w AND k.w <> l.w AND k.w <> m.w GROUP BY k.s",
        ),
        (
            "MATCH (a)-[r:K]->(b)<-[t:K]-(a) RETURN r.w, t.w, a.id",
            "SELECT k.w, l.w, k.s FROM e k JOIN e l ON l.s = k.s AND l.o = k.o WHERE k.w <> l.w",
        ),
        (
            "MATCH (a)-[r:K]->() WITH a, max(r.since) AS last MATCH (a)-[:K {since: last}]->(b) "
            "RETURN a.id, count(*), min(b.id)",
            f"SELECT s, count(*), min(o) FROM {LATEST} WHERE since = last GROUP BY s",
        ),
        (
            "MATCH (a)-[r:K]->() WITH a, max(r.since) AS last MATCH (a)-[t:K]->(b) WHERE t.since > last - 3 "
            "RETURN a.id, b.id, last",
            f"SELECT s, o, last FROM {LATEST} WHERE since > last - 3",
        ),
        (
            "MATCH (a)-[r:K]->() WITH a, max(r.since) AS last MATCH (a)-[t:K]->(b) WHERE t.since > last - 3 "
            "WITH a, b WHERE t.w > 100 RETURN a.id, b.id",
            f"SELECT s, o FROM {LATEST} WHERE since > last - 3 AND w > 100",
        ),
        (
            "MATCH (a)-[r:K]->() WITH a, max(r.since) AS last OPTIONAL MATCH (a)-[:K {since: last - 1}]->(b) "
            "RETURN a.id, b.id",
            "SELECT k.s, e.o FROM (SELECT s, max(since) AS last FROM e GROUP BY s) k LEFT JOIN e ON e.s = k.s "
            "AND since = last - 1",
        ),
        (
            "MATCH (a)-[r:K]->(b)<-[t:K]-(c) WHERE r.since = t.since RETURN a.id, c.id",
            "SELECT k.s, l.s FROM e k JOIN e l ON l.o = k.o AND l.w <> k.w WHERE k.since = l.since",
        ),
        (
            "MATCH (a)-[r:K]->(b) WITH r LIMIT 5000 RETURN r.since AS s, count(*)",
            "SELECT since, count(*) FROM e GROUP BY ALL",
        ),
    ],
)
def test_properties_of_edges_in_rows(network: tuple[graphdb.Database, pa.Table], query: str, sql: str) -> None:
    db, edges = network
    with duckdb.connect() as peer:
        peer.register("rows", edges)
        peer.execute('CREATE VIEW e AS SELECT ":START_ID" AS s, ":END_ID" AS o, since, w FROM rows')
        expected = Counter(peer.execute(sql).fetchall())
    assert Counter(db.query(query).fetchall()) == expected


AGGREGATES = "sum(r.since), min(r.since), max(r.since), avg(r.since), count(r.since), count(DISTINCT r.since), count(*)"
OF_WEIGHTS = "sum(r.w), min(r.w), max(r.w), avg(r.w), count(r.w)"


@pytest.mark.parametrize("piece", [700, 1 << 18])
@pytest.mark.parametrize("values", [AGGREGATES, OF_WEIGHTS, f"{AGGREGATES}, {OF_WEIGHTS}"])
@pytest.mark.parametrize(
    ("query", "sql"),
    [
        ("MATCH (a:P)-[r:K]->(b:P)", "e r"),
        ("MATCH ()-[r:K]->()", "e r"),
        ("MATCH (a)-[r:K]->(b) WHERE r.w > 200", "e r WHERE w > 200"),
        ("MATCH (a)-[r:K]->(b) WHERE r.since IS NULL", "e r WHERE since IS NULL"),
        ("MATCH (a)-[r:K]->(b) WHERE r.w < 0", "e r WHERE w < 0"),
        ("MATCH (a)-[r:K]->(b) WHERE a.id < 70", "e r WHERE s < 70"),
        ("MATCH (a)-[r:K]->(b) WHERE b.id > 50", "e r WHERE o > 50"),
        ("MATCH (a)-[r:K]->(b) WHERE a.id < 200 AND b.id > 50", "e r WHERE s < 200 AND o > 50"),
        ("MATCH (a)-[r:K]->(b) WHERE a.id < 200 AND r.since > 2000", "e r WHERE s < 200 AND since > 2000"),
        ("MATCH (a)-[r:K]->(b) WHERE a.id < b.id", "e r WHERE s < o"),
        ("MATCH (a)-[r:K]->(a)", "e r WHERE s = o"),
        ("MATCH (a)-[r:K]-(b)", "(FROM e UNION ALL FROM e WHERE s <> o) r"),
        ("MATCH (a)-[r:K]-(b) WHERE a.id < 90", "(FROM e WHERE s < 90 UNION ALL FROM e WHERE s <> o AND o < 90) r"),
    ],
)
def test_aggregates_of_edge_properties(
    network: tuple[graphdb.Database, pa.Table],
    query: str,
    sql: str,
    values: str,
    piece: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(assignment, "_BLOCK", piece)
    db, edges = network
    with duckdb.connect() as peer:
        peer.register("rows", edges)
        peer.execute('CREATE VIEW e AS SELECT ":START_ID" AS s, ":END_ID" AS o, since, w FROM rows')
        expected = peer.execute(f"SELECT {values} FROM {sql}").fetchone()
    assert expected is not None
    found = db.query(f"{query} RETURN {values}").fetchone()
    each = zip(expected, values.split(", "), strict=True)
    wanted = [0 if value is None and name.startswith("sum") else value for value, name in each]
    assert list(found) == wanted


@pytest.mark.parametrize(
    "query",
    [
        "MATCH (a)-[r:K]->(b) WITH b, r ORDER BY r.w LIMIT 200 MATCH (b)-[t:K]->(c) RETURN c.id, t.since - r.since",
        "MATCH (a:P) OPTIONAL MATCH (a)-[r:K]->(b) WHERE r.since = 2020 RETURN a.id, r.w, b.id",
    ],
)
def test_properties_of_edges_are_columns_beside_their_matches(
    network: tuple[graphdb.Database, pa.Table], query: str
) -> None:
    """Nothing joins a table of an edge property: an edge of which only properties are read is not handed on."""
    steps = _profile(network[0], query)
    assert "taken from columns in memory without SQL" in steps
    assert "struct_pack" not in steps


def test_an_edge_that_is_compared_by_a_property_is_not_handed_on(network: tuple[graphdb.Database, pa.Table]) -> None:
    steps = _profile(
        network[0],
        "MATCH (a)-[r:K]->() WITH a, max(r.since) AS last MATCH (a)-[:K {since: last}]->(b) RETURN a.id, min(b.id)",
    )
    assert "struct_pack" not in steps
    assert "joined _joined" in steps


@pytest.mark.parametrize(
    ("pattern", "scans"),
    [
        ("(a)-[r:K]->(b)-[t:K]->(c)", True),
        ("(a)-[r:K]->(b), (a)-[t:K]->(c)", True),
        ("(a)-[r:K]->(b)<-[t:K]-(c)", False),
        ("(a)-[r:K]->(b)-[t:K]-(c)", False),
        ("(a)-[r:K]->(b)-[t:K]->(a)", False),
    ],
)
def test_edges_that_lead_away_from_a_vertex_are_not_looked_for_again(
    network: tuple[graphdb.Database, pa.Table], pattern: str, scans: bool
) -> None:
    steps = _profile(network[0], f"MATCH {pattern} WHERE r.since < t.since RETURN count(*)")
    assert ("edges as they are numbered and along those that start where they end" in steps) is scans


def _profile(db: graphdb.Database, query: str) -> str:
    return "\n".join(line for (line,) in db.query(f"PROFILE {query}"))
