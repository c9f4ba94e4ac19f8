"""Paths as steps of a plan against the exhaustive search, path by path."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import graphdb
from graphdb.common.errors import NotSupportedError
from graphdb.relational.paths.run import PathRun
from tests.fuzz import scaled
from tests.oracle.routes import path_by_path

SOME = settings(max_examples=scaled(4), deadline=None, suppress_health_check=list(HealthCheck))
triples = st.sets(st.tuples(st.integers(0, 4), st.sampled_from("EF"), st.integers(0, 4)), min_size=2, max_size=9)

QUERIES = """MATCH (a)-[:E*1..3]->(b) RETURN count(*)
MATCH (a:N)-[:E|F*0..2]->(b) WHERE a.half < 2 RETURN a.id, b.id, count(*)
MATCH p = (a)-[:E*1..2]-(b) RETURN p, length(p)
MATCH p = (a)<-[r:E*2..3]-(b:N) RETURN a, r, b.id
MATCH (a)-[:E]->(b)-[*1..2]-(c) WHERE a.id <> c.id RETURN a.id, c.id
MATCH (a)-[:E*1..2]->(b), (b)-[:F]->(c) RETURN DISTINCT a.id, c.id
MATCH REPEATABLE ELEMENTS (a)-[*0..3]->(b) RETURN a.id, b.id, count(*)
MATCH DIFFERENT NODES (a)-[:E*1..3]-(b) RETURN count(*)
MATCH ACYCLIC (a)-[:E|F]-{1,3}(b) RETURN a.id, count(b)
MATCH p = WALK (a)-[:E]-{0,3}(b), (b)-[:F]->(c) WHERE length(p) > 1 RETURN length(p), c.id, count(*)
MATCH p = (a) ((x)-[:E]->(y:N WHERE y.half = 1)){1,3} (b) RETURN p
MATCH (a) ((x)-[e]->()-[:F]->(y) WHERE x.id <= y.id){1,2} (b) RETURN a.id, b.id
MATCH p = (a)-[:E]->(b) RETURN p, nodes(p), relationships(p) LIMIT 100
MATCH p = (a)-[:E*0..1]->(b)-[:F*0..1]->(c) RETURN p
MATCH (a)-[:E*1..2]->(b) MATCH (b)-[:E*1..2]->(c) RETURN a.id, c.id, count(*)
MATCH (a {id: 0})-[:E*1..4]->(b) RETURN DISTINCT b.id
MATCH p = (a)-[:E*1..2]->(a) RETURN p
MATCH p = ANY SHORTEST (a)-[:E]->+(b) RETURN a.id, b.id, length(p)
MATCH p = ANY SHORTEST (a)-[:E|F]-*(b) RETURN a.id, b.id, length(p)
MATCH p = ANY SHORTEST (a:N {id: 0})<-[:E]-{1,3}(b) RETURN b.id, length(p)
MATCH p = ALL SHORTEST (a)-[:E|F]-+(b) RETURN p
MATCH p = ALL SHORTEST (a)-[:E|F]->*(b) RETURN a.id, b.id, count(p)
MATCH p = ALL SHORTEST (a {id: 0})-[]-{0,3}(b {id: 1}) RETURN p
MATCH p = ALL SHORTEST WALK (a)-[:E]-+(b) RETURN a.id, b.id, count(*)
MATCH p = SHORTEST 2 GROUPS (a {id: 0})-[:E|F]->{0,4}(b {id: 1}) RETURN p
MATCH p = SHORTEST 3 (a {id: 0})-[:E|F]->{1,4}(b {id: 0}) RETURN length(p)
MATCH p = SHORTEST 2 ACYCLIC GROUPS (a {id: 0})-[:E|F]-{0,4}(b) WHERE b.id < 3 RETURN length(p), b.id, count(*)
MATCH p = SHORTEST 2 SIMPLE GROUPS (a {id: 0})-[:E|F]-{1,4}(b) WHERE b.id < 3 RETURN p
MATCH p = SHORTEST 4 WALK (a {id: 0})-[:E]-{2,5}(b {id: 1}) RETURN length(p)
MATCH p = ALL SHORTEST (a {id: 0})-[:E|F]->{2,4}(b {id: 1}) RETURN p
MATCH (x)-[:F]->(a) MATCH p = ANY SHORTEST (a)-[:E]->*(b) WHERE length(p) > 0 RETURN x.id, b.id, length(p)
MATCH (x)-[:F]->(a), p = ALL SHORTEST (a)-[:E]-+(b), (b)-[:F]->(y) RETURN x.id, y.id, length(p)
MATCH (x)-[:F]->(y) MATCH p = ALL SHORTEST (x)-[:E]-*(y) RETURN p
MATCH p = ANY SHORTEST (a)-[:E]->+(b) WHERE a <> b AND a.half = b.half RETURN length(p)
MATCH p = ALL SHORTEST (a)-[:E]-+(b) RETURN DISTINCT a.id
MATCH p = shortestPath((a:N {id: 0})-[:E*]-(b:N {id: 2})) RETURN length(p)
MATCH p = allShortestPaths((a)-[:E*..2]->(b)) WHERE a.id < b.id RETURN nodes(p)
MATCH p = ALL SHORTEST (a {id: 0})-[r:E]-+(b {id: 2}) RETURN r, length(p)
MATCH ANY (a {id: 0})-[:E]->*(b) RETURN count(*)
MATCH (a)-[:E*]->(b) RETURN DISTINCT b.id
MATCH (a)-[:E|F*]-(b) WHERE b.id < 3 RETURN DISTINCT a.id
MATCH (a)-[:E*1..2]-(b) WHERE b.half = 0 RETURN count(DISTINCT a)
MATCH (a {id: 0})-[:E*0..3]-(b:N) RETURN max(b.id)
MATCH (x)-[:F]->(a)-[:E*]->(b) RETURN DISTINCT x.id, b.id
MATCH (a {id: 0})-[:E|F*0..3]-(b) WHERE a <> b RETURN count(DISTINCT b)
MATCH (a)-[:E*1..2]->(b {id: 1}) WHERE b <> a RETURN DISTINCT a.id
MATCH (a)-[:E|F*1..2]->(b) WHERE a.half = 0 AND a <> b RETURN DISTINCT b.id
MATCH (a {id: 0})-[:E*1..2]->(b) WHERE a <> a RETURN count(DISTINCT b)
MATCH WALK (a {id: 0}) ((x)-[:E]->()-[:E|F]-(y)){1,2} (b) WHERE a <> b RETURN count(DISTINCT b)
MATCH (a) WHERE EXISTS { (a)-[:E*]->(b {id: 1}) } RETURN a.id
MATCH (a)-[:F]->(c) WHERE NOT EXISTS { MATCH (b)-[:E*0..2]->(a) WHERE b.half = 1 } RETURN a.id, c.id
MATCH (a:N) WHERE (a)-[:E|F*]-(:N {id: 1}) AND a.id > 0 RETURN count(*)
MATCH p = (a)-[:E*1..2]->(b) WHERE EXISTS { (b)-[:F*]-() } RETURN p
MATCH (a:N) WITH a WHERE a.half = 0 MATCH (a)-[:E*1..2]->(b) RETURN a.id, b.id
MATCH (a:N) OPTIONAL MATCH (a)-[:E*1..3]-(b) RETURN a.id, b.id
MATCH (a:N) OPTIONAL MATCH (a)-[:E*0..2]->(b)-[:F]->(c) WHERE b.id <> c.id RETURN a.id, b.id, count(c)
UNWIND [0, 1, 7] AS i MATCH (a {id: i})-[:E|F*0..2]-(b) RETURN i, b.id, count(*)
MATCH (a)-[:E*1..3]->(b) WITH b, count(*) AS n WHERE n > 1 RETURN b.id, n
MATCH (a)-[:E*0..2]->(b) WITH a, b MATCH (b)-[:E]->{1,2}(a) RETURN a.id, b.id
MATCH (a)-[:E*1..2]->(b) WITH count(*) AS n RETURN n
MATCH (a {id: 0})-[:E*1..2]->(b) RETURN b.id UNION MATCH (a {id: 0})-[:F*0..2]->(b) RETURN b.id
MATCH (a:N) WITH a MATCH (a)-[e:F]->(c)-[:E*1..2]->(b) WHERE EXISTS { (b)-[:F]->() } RETURN type(e), a.id, b.id
MATCH (a:N {id: 1}) OPTIONAL MATCH (a) ((x)-[:E]->(y WHERE y.half = 1)){1,2} (b) RETURN a.id, b.id
MATCH p = (a)-[:E*0..2]->(b) RETURN [x IN nodes(p) | x.id], [x IN nodes(p) WHERE x.half = a.half | x.id * b.id]
MATCH p = (a)-[:E|F*1..2]-(b) WHERE all(x IN nodes(p) WHERE x.half >= a.half OR x = b) RETURN p
MATCH p = (a)-[r:E|F*1..2]-(b) RETURN [e IN relationships(p) WHERE type(e) = 'E' | endNode(e).id], [e IN r | e = r[0]]
MATCH p = ALL SHORTEST (a)-[:E|F]->*(b) WHERE none(x IN nodes(p)[1..] WHERE x.id = 2) RETURN a.id, b.id, length(p)
MATCH p = ANY SHORTEST (a)-[:E]-*(b) WHERE single(x IN nodes(p) WHERE x.missing IS NULL) RETURN a.id, b.id
MATCH p = (a)-[:E|F*1..2]->(b) RETURN reduce(s = a.half, x IN nodes(p) | CASE WHEN x.id > s THEN x.id - b.id ELSE s END)
MATCH p = (a)-[:E*0..2]-(b) WHERE reduce(s = '', x IN nodes(p) | s + x.half) > '0' RETURN reduce(l = [], x IN nodes(p) | l + x.id)
MATCH p = (a)-[:E]->(b) WHERE any(x IN nodes(p) WHERE x.half = 0 AND any(y IN nodes(p) WHERE y.id > x.id)) RETURN p
MATCH p = (a)-[:E*0..1]->(b) RETURN [x IN nodes(p) WHERE x:N | labels(x)] AS l, count(*) ORDER BY l LIMIT 100
MATCH (a)-[:E]->(b) WITH a, collect(b) AS bs RETURN a.id, size([x IN bs WHERE x.id < 3]), all(x IN bs WHERE x.half < 1)
MATCH (a) OPTIONAL MATCH (a)-[:F]->(b) WITH a, collect(b) AS bs RETURN a.id, size([x IN bs | x]), none(x IN bs WHERE x.id > 1)
MATCH p = (a:N)-[:E*0..]->(b) WHERE b.half > 0 RETURN p
MATCH p = (a)-[:E*]-(b:N {id: 1}) RETURN a.id, length(p)
MATCH (a)-[:F]->(b) MATCH p = (a)-[:E*]->(b) RETURN a.id, b.id, [x IN nodes(p) | x.id]
UNWIND [0, 1, 7] AS i MATCH (a:N {id: i})-[r:E*0..]->(b)<-[:F]-(c) RETURN i, size(r), c.id
UNWIND [[0, 1], [2, 2]] AS i MATCH (a:N), (b:N) WHERE a.id = i[0] AND b.id = i[1] MATCH p = (a)-[:E*]-(b) RETURN i, length(p)
MATCH (a {id: 0})-[:E*]->(b:N), (b)<-[:E*]-(c)-[:F]->(d) RETURN c.id, d.id, count(*)
MATCH p = SIMPLE (a)-[:E|F]-{3}(a) RETURN a.id, count(*)
MATCH (a {id: 0})-[q:E*]->(b), (b)-[r:E*]->(c), (c)-[:E*]-(d {id: 1})-[:F]->() RETURN size(q), size(r), c.id""".splitlines()


def plain(value: Any) -> Any:
    return tuple(map(plain, value)) if isinstance(value, list) else value


def rows(database: graphdb.Database, text: str, arguments: Any = None) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(map(plain, row)) for row in database.query(text, arguments))


def refuse(*_: object) -> None:
    raise NotSupportedError("to compare")


def created(edges: set[tuple[int, str, int]]) -> graphdb.Database:
    database = graphdb.connect(threads=1)
    database.query("UNWIND range(0, 4) AS i CREATE (:N {id: i, half: i / 2})")
    for label in "EF":
        database.query(
            f"UNWIND $edges AS e MATCH (a:N {{id: e[0]}}), (b:N {{id: e[1]}}) CREATE (a)-[:{label}]->(b)",
            edges=[[a, b] for a, name, b in edges if name == label],
        )
    return database


@SOME
@given(triples)
def test_planned_paths_are_those_of_the_search(edges: set[tuple[int, str, int]]) -> None:
    with created(edges) as database:
        planned = {text: rows(database, text) for text in QUERIES}
        database.query("PREFIX forget: <http://what.was/prepared>")
        with pytest.MonkeyPatch.context() as patch:
            path_by_path(patch)
            for text, found in planned.items():
                assert found == rows(database, text), text


OF_ITEMS = """MATCH p = (a)-[:E*1..2]->(b) RETURN a.id, reduce(s = b.id, r IN relationships(p) | s + r.w), length(p)
MATCH p = (a)-[r:E|F*0..2]-(b) RETURN b.id, [x IN r WHERE x.w > a.id | x.t], r[1].w, count(*)
MATCH p = (a)-[:E*2]->(b) WHERE none(a IN relationships(p) WHERE a.w > 1 OR a.t = 'x') RETURN a.id, last(nodes(p)).id
MATCH p = (a)-[x:E]->()-[:F*0..1]->(b) RETURN max(reduce(s = 0, n IN nodes(p) | CASE WHEN n.id > s THEN n.id ELSE s END))
MATCH p = (a)-[:E|F*1..2]->(b) WHERE single(x IN relationships(p) WHERE x.t = 'x') OR length(p) = 2 RETURN a.id, b.id
MATCH p = (a)-[:E*1..2]-(b) RETURN [b IN nodes(p) | b.id + a.id] AS l, all(r IN relationships(p) WHERE r.w < 2) ORDER BY l
MATCH p = (a)-[:E*0..2]->(b) RETURN size([n IN nodes(p) WHERE n.id > b.half]), size([r IN relationships(p) WHERE r.t = 'x' | r])
MATCH p = (a)-[:E*0..2]->(b) RETURN DISTINCT CASE length(p) WHEN 2 THEN relationships(p)[-1].w ELSE head(nodes(p)).half END
MATCH p = (a)-[:E|F]->(b)-[:E]->(c) WITH p RETURN [x IN relationships(p) | type(x) + x.t], any(n IN nodes(p) WHERE n:N)
MATCH p = (a)-[:E*1..2]->(b) RETURN reduce(s = 1, r IN relationships(p) | s * 10 / r.w), [n IN nodes(p) | n] LIMIT 100"""

OF_ITEMS_LATER = """MATCH (a:N) OPTIONAL MATCH p = (a)-[:E]->(b)-[:F]->(c) RETURN a.id, nodes(p), [r IN relationships(p) | r.w], size(nodes(p)), length(p)
MATCH (a:N) OPTIONAL MATCH p = (a)-[r:E|F*0..2]->(b {half: 1}) WHERE any(x IN r WHERE x.w > a.id) RETURN a.id, r, [x IN r | x.t], count(p)
MATCH p = (a)-[:E*1..2]->(b) WITH p, b, a.id AS i WHERE all(r IN relationships(p) WHERE r.w > 1) MATCH (b)-[:F]->(c) RETURN i, c.id, last(nodes(p)).id, length(p)
MATCH p = (a)-[:E|F]->(b)-[:E]->(c) WITH p, a WITH a, p, a.half AS h RETURN a.id, max(reduce(s = 0, r IN relationships(p) | s + r.w)), h
MATCH (a:N) WITH a WHERE a.id < 4 MATCH p = (a)-[:E*0..2]-(b) UNWIND nodes(p) AS n RETURN a.id, n.id, count(*), sum(length(p))
MATCH (a:N) ((x)-[r:E]->(y) WHERE x.half <> y.half){1,3} (b) RETURN a.id, b.id, size(r), [e IN r | e.w]
MATCH p = (a) ((x)-[r:E|F]->()-[s:E]->(z)){0,2} (b) RETURN a.id, r, [e IN s WHERE e.w > 1 | e.w], length(p)
MATCH (a) ((x)-[r:E]-(y) WHERE r.w > 1){1,2} (b) WITH a, r, b MATCH (b)-[:F]->(c) RETURN a.id, c.id, reduce(s = 0, e IN r | s + e.w)
MATCH (a:N) OPTIONAL MATCH (a) ((x)-[r:F]->(y)){1,2} (b {half: 1}) RETURN a.id, size(r), r[0].w, any(e IN r WHERE e.w > 1)
MATCH (a) ((x)-[r:E]->(y)){1,2} (b) WHERE all(e IN r WHERE e.w < 3) AND size(r) = 2 RETURN count(*), count(DISTINCT r)
MATCH (a) ((x)-[r:E]->(y)){0,2} (b), (b)-[f:F]->(c) RETURN a.id, [n IN y | n.id], r, f.w
MATCH (a:N) WHERE EXISTS { (a) ((x)-[r:E]->(y)){1,2} (b) WHERE r[-1].w = 1 } RETURN a.id, COUNT { (a) ((x)-[r:F]->(y)){1,2} (b) WHERE size(r) = b.half }
MATCH p = (a)-[f:E|F*1..2]->(b) WITH a, f, nodes(p) AS l RETURN a.id, [i IN [1, 0, 7] | l[i].id], any(i IN [0, 1] WHERE type(f[i]) = 'F')
MATCH p = (a)-[:E*0..2]->(b) WITH p UNWIND [0, 1] AS j RETURN [i IN range(j, 2) WHERE nodes(p)[i].half = j | labels(nodes(p)[i])]
MATCH p = (a)-[f:E|F*1..3]->(b) WHERE all(i IN range(0, length(p) - 2) WHERE relationships(p)[i].w < f[i + 1].w) RETURN a.id, b.id, size(f)
MATCH p = (a)-[f:E|F*0..2]->(b) WHERE any(i IN range(1, size(f)) WHERE nodes(p)[i].half > nodes(p)[i - 1].half) RETURN a.id, b.id
MATCH p = (a)-[f:E|F*0..2]->(b) RETURN [i IN range(0, length(p)) WHERE nodes(p)[i].half = 1 | nodes(p)[i].id + i], none(i IN range(0, 1) WHERE f[i].w > 1)
MATCH p = (a)-[:E*1..2]->(b) RETURN reduce(a = 0, b IN range(-1, size(nodes(p)) - 1) | a + nodes(p)[b].id * b), [i IN range(0, 2) WHERE type(relationships(p)[i]) = 'E']
MATCH p = (a)-[:E*1..2]->(b) WHERE single(i IN range(0, length(p)) WHERE nodes(p)[i].half = i) RETURN a.id, [i IN range(0, 1) | relationships(p)[-i]]
MATCH p = (a)-[:E*2]->(b) WHERE all(i IN range(0, 1) WHERE nodes(p)[i + 1].id <> nodes(p)[i].id) RETURN a.id, [i IN range(length(p), 1) | nodes(p)[i].id], size([i IN range(0, 2) WHERE nodes(p)[i].id > i])
MATCH (a:N) OPTIONAL MATCH p = (a)-[f:E*1..2]->(b {id: 0}) RETURN a.id, [i IN range(0, 1) | nodes(p)[i].id], any(i IN range(0, 2) WHERE f[i] IS NULL), all(i IN range(1, 0) WHERE f[i].w > 1), reduce(s = 0, i IN range(1, 0) | s + f[i].w)
MATCH (a:N) OPTIONAL MATCH p = (a)-[:E*1..2]->(b) WITH p, a RETURN a.id, [i IN range(0, coalesce(length(p), 0) - 1) | nodes(p)[i + 1].id], all(i IN range(0, 1) WHERE nodes(p)[i].id < 3)
MATCH (a)-[e:E]->(b) MATCH p = (b)-[f:F*1..2]->(c) WHERE f[0].w >= e.w RETURN a.id, relationships(p)[-1].t, nodes(p)[1], size(f), f[5]
MATCH (a:N) OPTIONAL MATCH p = (a)-[:E*2]->(a) WITH a, p WHERE p IS NULL OR length(p) = 2 RETURN a.id, p IS NULL, head(relationships(p)).w
MATCH p = (a)-[:E*1..2]->(b) WITH p, a ORDER BY reduce(s = 0, r IN relationships(p) | s + r.w) DESC, [n IN nodes(p) | n.id] LIMIT 3 RETURN a.id, [n IN nodes(p) | n.id]
MATCH p = (a)-[:E*1..2]->(b) WITH p, count(*) AS n RETURN n, [x IN nodes(p) | x.id] AS l UNION ALL MATCH p = (a)-[:F]->(b) RETURN length(p) AS n, [x IN nodes(p) | x.id] AS l
MATCH (a:N) WHERE EXISTS { MATCH p = (a)-[:E*1..2]->(b) WHERE none(r IN relationships(p) WHERE r.w = 1) } UNWIND [q = (a)-[:E|F*1..2]-(c) WHERE size(nodes(q)) > 2 | reduce(s = c.id, r IN relationships(q) | s + r.w)] AS l RETURN a.id, l
MATCH p = (a)-[:E*1..2]->(b) WITH p, 2 AS k, b AS a UNWIND [1, k] AS x RETURN a.id, x, [r IN relationships(p) WHERE r.w >= x | r.w * k], nodes(p)[x], p
MATCH (a:N) OPTIONAL MATCH p = (a)-[:E|F*1..2]->(b), q = (b)-[:E]->(c) WITH p, q, c WHERE c IS NOT NULL RETURN [n IN nodes(p) | n.id] + [n IN tail(nodes(q)) | n.half], relationships(p)[0].w
MATCH p = (a)-[:E*1..2]-(b) WITH a, p CALL (a) { MATCH q = (a)-[:F*0..1]->(d) RETURN d, reduce(s = '', n IN nodes(q) | s + n.id) AS s } RETURN s, d.id, [e IN relationships(p) | type(e)], count(*)
MATCH p = (a)-[:E*1..2]->(b) WITH p, b OPTIONAL MATCH (b)-[e:F]->(c) WHERE c.id IN [n IN nodes(p) | n.id] RETURN size(relationships(p)), startNode(relationships(p)[0]).id, e.w, c.id
MATCH (a:N {id: 0}) OPTIONAL MATCH p = (a)-[:E*1..2]->(b) WITH DISTINCT p, a RETURN a.id, [r IN relationships(p) | coalesce(r.t, 'none')]
MATCH p = (a)-[:E*1..2]->(b) WITH p, b MATCH (b)-[:F]->(c) WHERE c.id <> reduce(s = 0, n IN nodes(p) | s + n.id) RETURN c.id, [r IN relationships(p) | 1.5 * 10 / r.w], reduce(s = 0, r IN relationships(p) | s + 6 / r.w)"""


@SOME
@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from("EF"), st.integers(0, 4), st.integers(1, 3)), max_size=8))
def test_items_of_paths_are_asked_one_by_one(edges: list[tuple[int, str, int, int]]) -> None:
    with created(set()) as database:
        for label in "EF":
            database.query(
                f"UNWIND $edges AS e MATCH (a:N {{id: e[0]}}), (b:N {{id: e[1]}}) CREATE (a)-[r:{label} {{w: e[2]}}]->(b) "
                "SET r.t = CASE WHEN e[2] > 1 THEN 'x' END",
                edges=[[a, b, w] for a, name, b, w in edges if name == label],
            )
        planned = {text: rows(database, text) for text in [*OF_ITEMS.splitlines(), *OF_ITEMS_LATER.splitlines()]}
        database.query("PREFIX forget: <http://what.was/prepared>")
        with pytest.MonkeyPatch.context() as patch:
            path_by_path(patch)
            for text, found in planned.items():
                assert found == rows(database, text), text


ENDS = [
    "MATCH p = ANY SHORTEST (a)-[:E|F]-+(b) WHERE iri(a) = $a AND iri(b) = $b RETURN p",
    "MATCH p = ALL SHORTEST (a)-[:E|F]->*(b) WHERE iri(b) = $b AND iri(a) = $a RETURN a.id, b.id, length(p)",
    "MATCH p = ANY SHORTEST (a:N)-[:E|F]-*(b) WHERE iri(a) = $a AND b.id > 0 AND iri(b) = $b RETURN length(p)",
    "MATCH p = SHORTEST 2 (a)-[:E]->{0,4}(b) WHERE iri(a) = $a AND iri(b) = $b RETURN length(p) ORDER BY length(p)",
    "MATCH p = ANY SHORTEST (a)-[:E|F]-*(b) WHERE iri(a) = $a AND iri(b) <> $b RETURN b.id, length(p)",
    "MATCH (a)-[:E|F*]->(b) WHERE iri(a) = $a AND iri(a) <> $b RETURN DISTINCT b.id",
]


@SOME
@given(triples)
def test_other_ends_are_put_into_what_was_prepared(edges: set[tuple[int, str, int]]) -> None:
    with created(edges) as database:
        known = [iri for (iri,) in database.query("MATCH (a:N) RETURN iri(a) ORDER BY a.id")]
        pairs = [(a, b) for a in [*known, "urn:absent"] for b in [*known[:2], "urn:absent"]]
        for text in ENDS:
            first = [Counter(map(repr, database.query(text, a=a, b=b))) for a, b in pairs]
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(PathRun, "for_arguments", lambda *_: None)
                anew = [Counter(map(repr, database.query(text, a=a, b=b))) for a, b in pairs]
            assert first == anew, text


def test_other_ends_are_not_prepared_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with created({(0, "E", 1), (1, "F", 2), (2, "E", 0)}) as database:
        a, b, c = (iri for (iri,) in database.query("MATCH (a:N) WHERE a.id < 3 RETURN iri(a) ORDER BY a.id"))
        lengths = [len(p) for (p,) in database.query(ENDS[0], a=a, b=b)]
        monkeypatch.setattr(PathRun, "prepare", refuse)
        assert [len(p) for (p,) in database.query(ENDS[0], a=b, b=c)] == lengths == [1]


def test_of_two_paths_that_may_cross_each_is_one_of_the_shortest() -> None:
    with created({(0, "E", 1), (1, "E", 0), (1, "E", 2), (2, "E", 0), (2, "E", 3), (0, "E", 2)}) as database:
        text = "MATCH p = {0} SHORTEST (a)-[:E]->+(b), q = {0} SHORTEST (b)-[:E]->+(c) RETURN p, q"
        every, some = (list(database.query(text.format(which))) for which in ("ALL", "ANY"))
        first = [p for (p,) in database.query("MATCH p = ALL SHORTEST (a)-[:E]->+(b) RETURN p")]
    assert set(some) <= set(every)
    ends = Counter((p.nodes[0], q.nodes[0], q.nodes[-1]) for p, q in some)
    assert set(ends.values()) == {1}
    for a, b, c in {(p.nodes[0], q.nodes[0], q.nodes[-1]) for p, q in every} - ends.keys():
        crossed = [
            p
            for p in first
            if (p.nodes[0], p.nodes[-1]) == (a, b) and not any(p == o and q.nodes[-1] == c for o, q in every)
        ]
        assert crossed, "a first path that leaves nothing to the second"


def test_these_queries_are_planned() -> None:
    with created({(0, "E", 1), (1, "F", 2), (2, "E", 0)}) as database:
        for text in QUERIES:
            table = f"CREATE OR REPLACE TABLE kept AS {text}"
            count = len(database.query(text))
            database.query(table)
            assert len(database.sql("FROM kept")) == count
