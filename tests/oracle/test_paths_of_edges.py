"""Paths along edges that are distinguished (by their properties, or as parallel ones) against the search path by path.

``GRAPHDB_FUZZ`` multiplies the number of graphs.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import graphdb
from tests.fuzz import scaled
from tests.oracle.routes import path_by_path
from tests.oracle.test_path_plans import rows

SOME = settings(max_examples=scaled(2), deadline=None, suppress_health_check=list(HealthCheck))
edge = st.tuples(st.integers(0, 3), st.sampled_from("EF"), st.integers(0, 3), st.integers(0, 2))
multigraphs = st.lists(edge, min_size=5, max_size=8)

QUERIES = """MATCH p = (a)-[:E]->(b) RETURN p
MATCH p = (a)-[*1..2]-(b) RETURN p, length(p)
MATCH p = (a)-[r:E*1..2]-(b) RETURN r, [e IN relationships(p) | e.w]
MATCH p = (a {id: 0})-[:E|F*0..2]->(b) RETURN nodes(p), [e IN relationships(p) WHERE e.w > 0 | id(e)]
MATCH p = (a)-[r:E|F*0..2]->(b) RETURN reduce(s = 0.5, e IN r | s + e.w * a.id), reduce(s = true, e IN r | s AND e.w > 0)
MATCH (a)-[r]->(b) RETURN id(r), elementId(r), a.id ORDER BY id(r) LIMIT 100
MATCH (a)-[r:E]->(b) WITH collect(id(r)) AS ids MATCH (c)-[s]->() WHERE id(s) IN ids RETURN c.id, s.w
MATCH p = ANY SHORTEST (a)-[r:E WHERE r.w > 0]->+(b) RETURN a.id, b.id, length(p)
MATCH p = ALL SHORTEST (a)-[r:E|F WHERE r.w < 2]-*(b) RETURN p, [e IN r | e.w]
MATCH p = shortestPath((a {id: 0})-[:E* {w: 1}]->(b {id: 2})) RETURN length(p)
MATCH p = SHORTEST 2 GROUPS (a)-[:E|F {w: 1}]->{0,4}(b {id: 1}) RETURN p
MATCH (a)-[r:E* {w: 1}]->(b) RETURN a.id, r, b.id
MATCH (a)-[:E* {w: $w}]->(b) RETURN DISTINCT a.id, b.id
MATCH (a) WHERE EXISTS { (a)-[r:E|F WHERE r.w > 0]-+(b {id: 1}) } RETURN a.id
MATCH (a:N) OPTIONAL MATCH p = ANY SHORTEST (a)-[r:F WHERE r.w <> 1]->+(b) RETURN a.id, b.id, length(p)
MATCH p = ALL SHORTEST (a)-[:E]-+(b) RETURN p
MATCH p = ANY SHORTEST TRAIL (a)-[:E|F]-+(a) RETURN a.id, length(p)
MATCH (a)-[:E*]->(b) RETURN DISTINCT a.id, b.id
MATCH p = ACYCLIC (a)-[:E|F]-*(b) RETURN p
MATCH p = ALL SHORTEST (a) ((x)-[r:E]->(y WHERE y.id > 0) WHERE r.w <= x.id)+ (b) RETURN x, r, y, length(p)
MATCH p = (a) ((x)-[r]-(y) WHERE r.w > 0 AND x.id < y.id)+ (b) RETURN p, x
MATCH p = (a)-[:E]->(b)-[:F*]->(c) RETURN p, b.id
MATCH p = (a)-[:E*]->(b:N)<-[f:F]-(c) WHERE b.half = 0 RETURN length(p), f.w, c.id
MATCH p = ALL SHORTEST (a)-[:E]->*(b)-[r:F]->*(c) RETURN b.id, r, p
MATCH p = ALL SHORTEST (a)-[:E]->(b)-[:F]->{1,3}(c) RETURN p
MATCH p = ALL SHORTEST (a) ((x)-[:E]->(y)-[f:F]->(z)){1,3} (c) RETURN x, y, f, z, p
MATCH (a) ((x)-[:E]->()-[:F]->(z))+ (c) RETURN a.id, c.id, count(*)
MATCH p = ACYCLIC (a)-[:E]->*(b)-[:F]->(c) RETURN p
MATCH p = ALL SHORTEST WALK (a)-[:E]->{2,3}(b)<-[:E]-(c) RETURN count(*)
MATCH (a {id: 0}) OPTIONAL MATCH p = ALL SHORTEST (a)-[:E]->(b)-[:F]->*(c) RETURN p, b.id
MATCH (a)-[:E]->(b) MATCH p = ALL SHORTEST (b)-[:F]-*(m)-[e:E]->(a) RETURN a.id, m.id, e.w, length(p)
MATCH (a:N) RETURN a.id, COUNT { ALL SHORTEST (a)-[r:E WHERE r.w > 0]->+(b) } AS n
MATCH (a:N), (b:N) WHERE a.id < b.id RETURN a.id, b.id, length(shortestPath((a)-[:E|F*]-(b)))
MATCH (a:N {id: 0}), (b:N) RETURN b.id, size(allShortestPaths((a)-[:E*]->(b))), shortestPath((a)-[:E*]->(b)) IS NULL
MATCH (a {id: 0}) OPTIONAL MATCH (a)-[:F]->(b) WITH a, b, shortestPath((a)-[:E*]->(b)) AS p RETURN length(p), b.id
MATCH (a:N)-[:E]->(b) WHERE length(shortestPath((b)-[:F*]->(a))) > 1 RETURN a.id, b.id
MATCH (x)-[e:E]->(a), p = ANY SHORTEST (a)-[:E]->+(b) RETURN x.id, e.w, a.id, b.id, length(p)
MATCH (a)-[:E]->(b), p = shortestPath((b)-[:E|F*]-(a)) RETURN a.id, b.id, length(p)
MATCH (a)-[:E]->(b), p = ALL SHORTEST (b)-[:E|F]->*(c) RETURN a.id, p
MATCH (a)-[:F]->(b), p = ALL SHORTEST (b)-[r:E|F WHERE r.w > 0]->+(c) RETURN a.id, c.id, count(*)
MATCH (a)-[:F]->(b), p = ANY SHORTEST (b)-[:E]->(m)-[:F]->*(c) RETURN a.id, b.id, c.id, length(p)
MATCH p = (a) ((x)-[e:E]->(y)-[f:E|F]->(z) WHERE e.w <> f.w)+ (b) RETURN p, x, e, y, f, z
MATCH p = ALL SHORTEST (a) ((x)-[e:E]-(y)-[f:E|F]-(z)-[g]-(w) WHERE e.w < f.w OR x.id <> w.id)+ (b) RETURN p
MATCH p = (a) ((x)-[e]-(y)-[f]-(x)){1,2} (b) RETURN p, x, y
MATCH (a) RETURN a.id, COUNT { (a) ((x)-[e:E]->(w)-[f:F]->(v) WHERE x.id < v.id)+ (b) } AS n
MATCH p = (a) (((x)-[:E]->(y) WHERE x.id < 3)+ (u WHERE u.id > 0)-[:F]->(v))+ (b) RETURN p
MATCH p = (a)-[:E]->(c) ((x)-[:E]->{0,1}(w)-[:F]->(v))? (b)-[g]->(d) RETURN p, c.id, b.id, g
MATCH INDUCED (a)-[e:E WHERE e.w > 0]->(b)<-[f:F]-(a) RETURN a.id, e, f.w, b.id
MATCH INDUCED p = (a)-[:E|F*0..2]-(b) RETURN p
MATCH DIFFERENT NODES (a)-[:E*]->(b)-[:F]->(c) RETURN a.id, c.id
MATCH (x)-[e:E]->(a), p = SHORTEST 2 (a)-[:E]->+(b) RETURN x.id, e.w, a.id, b.id, length(p)
MATCH p = ALL SHORTEST (a)-[:E]->+(b), q = ALL SHORTEST (b)-[:E|F]->+(c) RETURN p, q
MATCH p = (a)-[:E*]->(b {id: 0}), q = ANY SHORTEST (b)-[:E]->+(c) RETURN p, length(q), c.id
MATCH p = (a {id: 0})-[:E*]->(b)-[:F]->(c) WITH p, b LIMIT 100 RETURN length(p), count(DISTINCT b)""".splitlines()


def given_to(text: str) -> dict[str, int] | None:
    return {"w": 1} if "$w" in text else None


def created(edges: list[tuple[int, str, int, int]]) -> graphdb.Database:
    database = graphdb.connect(threads=1)
    database.query("UNWIND range(0, 3) AS i CREATE (:N {id: i, half: i / 2})")
    for label in "EF":
        database.query(
            f"UNWIND $edges AS e MATCH (a:N {{id: e[0]}}), (b:N {{id: e[1]}}) CREATE (a)-[:{label} {{w: e[2]}}]->(b)",
            edges=[[a, b, w] for a, name, b, w in edges if name == label],
        )
    return database


@SOME
@given(multigraphs)
def test_planned_paths_are_those_of_the_search(edges: list[tuple[int, str, int, int]]) -> None:
    with created(edges) as database:
        planned = {text: rows(database, text, given_to(text)) for text in QUERIES}
        database.query("PREFIX forget: <http://what.was/prepared>")
        with pytest.MonkeyPatch.context() as patch:
            path_by_path(patch)
            for text, found in planned.items():
                assert found == rows(database, text, given_to(text)), text


def test_these_queries_are_planned() -> None:
    with created([(0, "E", 1, 0), (0, "E", 1, 2), (1, "F", 2, 1), (2, "E", 0, 1)]) as database:
        for text in QUERIES:
            table = f"CREATE OR REPLACE TABLE kept AS {text}"
            count = len(database.query(text, given_to(text)))
            database.query(table, given_to(text))
            assert len(database.sql("FROM kept")) == count
