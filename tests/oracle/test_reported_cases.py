"""Small cases that were answered wrongly once, each as it was reported, with the answer worked out by hand."""

from __future__ import annotations

import pytest

import graphdb
from tests.stops import answered

PARALLEL = "CREATE (a:A), (b:B) WITH a, b UNWIND range(1, 4) AS i CREATE (a)-[:R {i: i}]->(b)"
LOOP = "CREATE (x:B {k: 3})-[:R]->(x)"
TWICE = "CREATE (a:A)-[:R]->(b:B), (a)-[:R]->(b)"
STAR = "CREATE (a:A), (a)-[:R]->({k: 2}), (a)-[:R]->({k: 0})"
NUMBERS = "MATCH (a)-[:R]->(b) RETURN size(range(0, b.k))"
TWO = "CREATE ({k: 0}), ({k: 1})"
MIXED = "CREATE (:N {k: 1}), (:N {k: 1.0}), (:N {k: 'a'})"
ROUND = "CREATE (:N {k: 1})-[:E]->(b:M {k: 2}), (b)-[:F]->(:Q {k: 3})-[:F]->(b)"
LISTS = "CREATE (:N {k: 1, t: ['a']})-[:R]->(:N {k: 2, t: [1, 2]})"
CHAIN = "CREATE ({k: 1})-[:R {k: 1}]->({k: 2})-[:R {k: 2}]->({k: 3})"
TIMES = "UNWIND [time('10:00+01:00'), time('09:30Z'), time('08:59Z')] AS t"

CASES: list[tuple[str, str, list[tuple[object, ...]]]] = [
    (PARALLEL, f"MATCH REPEATABLE ELEMENTS {', '.join(['(a)-[:R]->(b)'] * 32)} RETURN count(*)", [(4**32,)]),
    (PARALLEL, f"MATCH {', '.join(['(a)-[:R]->(b)'] * 4)} RETURN count(*)", [(24,)]),
    (PARALLEL, "MATCH (a:Nope)-[r:R {i: 1}]->(b) MATCH p = (a)-->(c) RETURN p", []),
    (PARALLEL, "MATCH p = (a:Nope)-[r {i: 1}]->(b), q = (b)-[*]->(c) RETURN p, q", []),
    (MIXED, "RETURN 1 IN ['a', 1.0], 1.0 IN [1, 'a'], 2 IN ['a', 1.0, null]", [(True, True, None)]),
    (MIXED, "MATCH (n:N) WHERE n.k IN ['a', 1.0] RETURN count(*)", [(3,)]),
    (MIXED, "MATCH (n:N) WITH DISTINCT n.k AS k RETURN count(*)", [(2,)]),
    (MIXED, "MATCH (n:N) WHERE n.k <> 'a' RETURN n.k, count(*)", [(1, 2)]),
    (MIXED, "RETURN 1 AS k UNION RETURN 1.0 AS k", [(1,)]),
    (MIXED, "UNWIND [null, 1] AS x RETURN x + [1, 'a'], [1] + x", [(None, None), ([1, 1, "a"], [1, 1])]),
    (
        "CREATE (:A)-[:T]->(:B)",
        "MATCH (a)-[t:T]->(b) DELETE t MERGE (a)-[n:T {name: 'new'}]->(b) RETURN n.name",
        [("new",)],
    ),
    (
        "CREATE (:A {name: 'x'}), (:A {name: 'y'})",
        "MATCH (a) WITH DISTINCT a.name AS name WHERE a.name = 'x' RETURN name",
        [("x",)],
    ),
    (LOOP, "MATCH REPEATABLE ELEMENTS p = (a)-[:R]->(b), q = (b)<-[:R]-(a) RETURN p = q", [(True,)]),
    (LOOP, "MATCH p = (a)-[:R]->(a) MATCH q = (a)<-[:R]-(a) RETURN p = q", [(True,)]),
    (LOOP, "MATCH p = (a)-[:R]->(a) WITH p AS r RETURN count(*) UNION MATCH p = (a)<-[:R]-(a) RETURN count(*)", [(1,)]),
    (LOOP, "MATCH (a) WHERE EXISTS { MATCH DIFFERENT NODES (a)-[*]->(b:B) } RETURN a.k", []),
    (LOOP, "MATCH DIFFERENT NODES (a)-[*]->(a) RETURN count(*)", [(1,)]),
    (LOOP, "MATCH DIFFERENT NODES (a)-[*1..1]->(a) RETURN count(*)", [(1,)]),
    (LOOP, "MATCH DIFFERENT NODES (a)-[]->(a) RETURN count(*)", [(1,)]),
    (TIMES, f"{TIMES} RETURN toString(t) ORDER BY t", [("08:59Z",), ("10:00+01:00",), ("09:30Z",)]),
    (TWO, "MATCH (c)-[*0..1]->(b), (a)-[*0..1]->(b) RETURN count(*)", [(2,)]),
    (TWO, "MATCH (c)-->?(b), (a)-->?(b) RETURN count(*)", [(2,)]),
    (TWO, "MATCH (c)-[*0..1]-(b) MATCH (a)-[*0..1]-(b) RETURN count(*)", [(2,)]),
    (
        "CREATE ({k: 3})-[:R]->({k: 4})-[:R]->({k: 5})",
        "MATCH (a) MATCH DIFFERENT NODES (c)-[*]->(b), (b)-[*]->(a) RETURN a.k, c.k",
        [(5, 3)],
    ),
    (
        "CREATE (a)-[:S {w: 2}]->(b)-[:R {w: 1}]->(c), (b)-[:R {w: 2}]->(c)",
        "RETURN EXISTS { MATCH (a)-[r0:R]-(b), (a)-[r1:S]-(c) WHERE r1.w >= 0 RETURN 1 AS one }",
        [(True,)],
    ),
    (STAR, f"MATCH (a:A) CALL (a) {{ {NUMBERS} AS n ORDER BY n DESC LIMIT 1 }} RETURN n", [(3,)]),
    (STAR, f"MATCH (a:A) RETURN COLLECT {{ {NUMBERS} AS n ORDER BY n SKIP 1 }}", [([3],)]),
    (
        "CREATE (:A)-[:R]->(:B)",
        "OPTIONAL MATCH p = ANY SHORTEST (:A)-[:R]->*(:B) CALL (*) { RETURN 1 AS one } RETURN length(p) + one",
        [(2,)],
    ),
    (
        "CREATE (:A)-[:R]->(:B)",
        "MATCH p = ANY SHORTEST (:A)-[:R]->*(b:B) RETURN COLLECT { MATCH (b) WITH *, 1 AS one CALL (*) { RETURN length(p) AS n } RETURN n + length(p) }",
        [([2],)],
    ),
    (PARALLEL, "MATCH (x) MATCH INDUCED TRAIL (a:A)-[:R*2..2]-(a) RETURN count(*)", [(0,)]),
    (TWICE, "MATCH (x) MATCH INDUCED TRAIL (a:A)-[:R*2..2]-(a) RETURN count(*)", [(4,)]),
    ("CREATE (:A)-[:R]->(:B)", "MATCH (a) WITH (a)-->() AS keep WHERE keep RETURN count(*)", [(1,)]),
    ("CREATE (:A)-[:R]->(:B)", "MATCH (a) RETURN ((a)-->()) IS NULL AS n, count(*)", [(False, 2)]),
    (TWO, "MATCH (a) RETURN a.k IN [] AS none ORDER BY none DESC, a.k IN [] LIMIT 1", [(False,)]),
    (TWO, "MATCH (a) WITH DISTINCT a.k AS k MATCH (b) WHERE k > 0 AND b.k = 3 / k - 2 RETURN b.k", [(1,)]),
    (TWO, "MATCH (a) WITH DISTINCT a.k AS k MATCH (b) WHERE b.k IN [3 / k - 2] AND k > 0 RETURN b.k", [(1,)]),
    (TWO, "MATCH (a) OPTIONAL MATCH (b) WHERE a.k > 0 AND b.k = 3 / a.k - 2 RETURN b.k ORDER BY b.k", [(1,), (None,)]),
    (TWO, "MATCH (a) RETURN COUNT { (b) WHERE a.k > 0 AND b.k = 3 / a.k - 2 } AS n ORDER BY n", [(0,), (1,)]),
    (CHAIN, "MATCH ()-[p*0..1]->()-[e]->() WHERE any(q IN p WHERE q.k < e.k) WITH e, p RETURN e.k, size(p)", [(2, 1)]),
    (
        CHAIN,
        "MATCH (x) WITH x MATCH (x)-[p*0..1]->()-[e]->() WHERE any(q IN p WHERE q.k < e.k) WITH e, p RETURN e.k, size(p)",
        [(2, 1)],
    ),
    (CHAIN, "MATCH ()-[e*1..2]->(b) MATCH ()-[f {k: size(e)}]->(b) RETURN b.k, f.k ORDER BY b.k", [(2, 1), (3, 2)]),
    (CHAIN, "MATCH p = (x)-[*]->(y) MATCH (z WHERE z.k = x.k + 1)-[:R]->(y) RETURN length(p)", [(2,)]),
    (
        CHAIN,
        "MATCH (x)-->(y) MATCH (y)-[e WHERE EXISTS { (x)-->() }]->*(z) RETURN y.k, size(e) ORDER BY y.k, size(e)",
        [(2, 0), (2, 1), (3, 0)],
    ),
    (
        "CREATE (a {k: 1})-[:R]->(b {k: 2}), (a)-[:R]->(b)",
        "MATCH (a)-->?(b) RETURN a.k, b.k, count(*) AS n ORDER BY a.k, b.k",
        [(1, 1, 1), (1, 2, 2), (2, 2, 1)],
    ),
    (CHAIN, "MATCH p = (x {k: 1})-->() CALL { WITH p MATCH (y) RETURN sum(length(p)) AS n } RETURN n", [(3,)]),
    (
        CHAIN,
        "MATCH p = ({k: 1})-[*]->() RETURN COUNT { WITH p, 1 AS i MATCH (y) WHERE y.k > length(p) } AS n ORDER BY n",
        [(1,), (2,)],
    ),
    # Vertices that are one where a path has no edge: subqueries name that one, and have names of their own.
    (LOOP, "MATCH ()-[*0..1]->(n) WHERE (n)-[:R*1..2]->(n) RETURN n.k", [(3,), (3,)]),
    (
        CHAIN,
        "MATCH ()-[*0..1]->(n) WHERE COUNT { ()-[:R*0..1]->(n) } = 2 RETURN n.k, count(*) ORDER BY n.k",
        [(2, 2), (3, 2)],
    ),
    # What must differ beside paths that are searched for.
    (ROUND, "MATCH DIFFERENT NODES (:N), (n:N) MATCH (x:M)-[:F*]->(x) WITH DISTINCT n, x RETURN n.k", []),
    (ROUND, "MATCH INDUCED (:N), (n:M) MATCH (x)-[:F*]->(x) WITH DISTINCT n, x RETURN n.k", []),
    (
        ROUND,
        "MATCH ()-[:F]->(), (n)-[:F]->() MATCH (x:M)-[:F*]->(x) MATCH (y:M)-[:F*]->(y) WITH DISTINCT n, x, y RETURN n.k ORDER BY n.k",
        [(2,), (3,)],
    ),
    (ROUND, "MATCH DIFFERENT NODES (n)-[e:F*0..0]->(:M), (m) RETURN n.k, e", []),
    (
        "CREATE (a {k: 2})-[:F]->(a), (:M)-[:E]->(a), (:M)",
        "MATCH (), (n)<-[e:E]-?(:M) WHERE EXISTS { (n)-[:F*0..1]-(m) WHERE size(e) = 1 } MATCH (:M) RETURN n.k",
        [(2,)] * 6,
    ),
    # Ends of repeated edges that are pairs of a closure.
    (CHAIN, "MATCH ({k: 1})-[:R*]->(y) WHERE y.v IS NULL RETURN y.k ORDER BY y.k", [(2,), (3,)]),
    (CHAIN, "MATCH ({k: 2})-[:R*0..1]->(y) WHERE coalesce(y.v, 1) = 1 RETURN y.k ORDER BY y.k", [(2,), (3,)]),
    (
        CHAIN,
        "MATCH (n)<-[:R*0..]-() RETURN n.k, EXISTS { (n)<-[:R]-() } AS e, count(*) ORDER BY n.k",
        [(1, False, 1), (2, True, 2), (3, True, 3)],
    ),
    # Edges of ends of paths to themselves.
    (ROUND, "MATCH (n)-[:F*]->() WHERE (n)-[:E]->(n) RETURN n.k", []),
    (
        "CREATE (a {k: 1})-[:R]->(b {k: 2})-[:R]->(a), (b)-[:E]->(b)",
        "MATCH (n)-[:R*]->(m) WHERE NOT (n)-[:E]->(n) AND (m)-[:E]-(m) RETURN n.k, m.k",
        [(1, 2)],
    ),
    (LISTS, "MATCH (n) CALL (n) { UNWIND [1] AS i RETURN n.t AS t } RETURN t ORDER BY n.k", [(["a"],), ([1, 2],)]),
]


@pytest.mark.parametrize(("setup", "query", "rows"), CASES)
def test_as_reported(setup: str, query: str, rows: list[tuple[object, ...]]) -> None:
    with graphdb.connect(device="cpu", threads=1) as db:
        if setup.startswith("CREATE"):
            db.query(setup)
        assert answered(db, query, within=20).fetchall() == rows
