"""Continuous queries with UNION, WITH, UNWIND and CALL follow batches by what delta plans find of what they are made of."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import graphdb
from tests.fuzz import scaled
from tests.live.test_parallel_edges import explained
from tests.live.writes import bag, begin, check, check_history, create, created, opened, statement, strategies

QUERIES = {
    "union": "MATCH (a:A)-[:R]->(b) RETURN a.i AS i, b.k AS k UNION ALL MATCH (a)-[:S]->(b) RETURN a.i AS i, b.k AS k",
    "once": "MATCH (a:A)-[:R]->(b) RETURN a.i AS i UNION MATCH (a)-[:S]->(b:A) RETURN b.i AS i",
    "mixed": (
        "MATCH (a:A)-[:R]->(b) RETURN a.i AS i, b.i AS j UNION ALL MATCH (a:B) OPTIONAL "
        "MATCH (a)-[:S]->(b) RETURN a.i AS i, b.i AS j UNION ALL MATCH (a:A) "
        "RETURN a.i AS i, a.i + 1 AS j"
    ),
    "vertices": "MATCH (a:A)-[:R]->(b) RETURN a AS v UNION MATCH (a)-[:S]->(b) RETURN b AS v",
    "with": "MATCH (a)-[:R]->(b) WITH a, b WHERE a.k > b.k RETURN a.i AS i, b.i AS j",
    "renamed": (
        "MATCH (a)-[:R]->(b) WITH b AS a, a.k AS k MATCH (a)-[:S]->(b) WHERE b.k >= k RETURN a.i AS i, b.i AS j, k"
    ),
    "dropped": "MATCH (a:A)-[:R]->(b) WITH a MATCH (a)-[:R]->(b) RETURN a.i AS i, b.i AS j",
    "computed": "MATCH (a)-[:R]->(b) WITH *, a.k + b.k AS s WHERE s > 2 WITH s * 2 AS t, a RETURN t, a.i AS i",
    "swapped": "MATCH (a:A)-[:R]->(b) WITH a AS b, b AS a WHERE NOT (a)-[:S]->(b) RETURN a.i AS i, b.i AS j",
    "optional": (
        "MATCH (a:A) OPTIONAL MATCH (a)-[:R]->(b) WITH a, b WHERE b IS NULL OR b.k > 1 RETURN a.i AS i, b.i AS j"
    ),
    "later": "MATCH (a:A) OPTIONAL MATCH (a)-[:R]->(b) MATCH (a)-[:S]->(c) RETURN a.i AS i, b.i AS j, c.i AS k",
    "null": "MATCH (a:A) OPTIONAL MATCH (a)-[:R]->(b) MATCH (b)-[:S]->(c) RETURN a.i AS i, b.i AS j, c.i AS k",
    "product": "MATCH (a:A) OPTIONAL MATCH (a)-[:R]->(b) MATCH (c:B {i: b.i}) RETURN a.i AS i, c.k AS k",
    "unwound": "MATCH (a:A)-[:R]->(b) UNWIND [1, 2, 3] AS x WITH a, b, x WHERE b.k < x RETURN a.i AS i, x",
    "first": "UNWIND [1, 2, 2, 7] AS x MATCH (a:A {i: x})-[:R]->(b) RETURN x, b.i AS j",
    "single": "UNWIND [1, 2, 2, 7] AS x MATCH (a:A {i: x}) RETURN x, a.k AS k",
    "nodes": "MATCH p = (a:A)-[:R]->(b) UNWIND nodes(p) AS n RETURN n.k AS k, labels(n) AS l",
    "grouped": "MATCH (a:A)-[:R]->(b) UNWIND [a.i, b.i] AS x RETURN x, count(*) AS n, min(b.i) AS m",
    "call": "CALL { MATCH (a:A)-[:R]->(b) RETURN a, b.k AS k } MATCH (a)-[:S]->(c) RETURN a.i AS i, k, c.i AS j",
    "correlated": "MATCH (a:A) CALL (a) { MATCH (a)-[:R]->(b) WHERE b.k > 0 RETURN b.i AS j } RETURN a.i AS i, j",
    "old": "MATCH (a:A) CALL { WITH a MATCH (a)-[:R]->(b) RETURN b } RETURN a.i AS i, b.k AS k",
    "aggregated": (
        "MATCH (a:A) CALL (a) { MATCH (a)-[:R]->(b) RETURN count(b) AS n, max(b.i) AS m } RETURN a.i AS i, n, m"
    ),
    "called": (
        "CALL { MATCH (a:A) RETURN a UNION ALL MATCH (b:B) WHERE b.k > 1 "
        "RETURN b AS a } MATCH (a)-[:R]->(c) RETURN a.i AS i, c.i AS j"
    ),
    "counted": (
        "CALL { MATCH (a:A)-[:R]->(b) RETURN a.k AS k, b UNION ALL MATCH (b)-[:S]->(a) "
        "RETURN a.k AS k, b } RETURN k, count(*) AS n, max(b.i) AS m, count(DISTINCT b) AS d"
    ),
    "total": (
        "CALL { MATCH (a:A)-[:R]->(b) RETURN b.i AS x UNION ALL MATCH (b:B) RETURN b.i AS x } "
        "RETURN count(*) AS n, sum(x) AS s"
    ),
    "branches": (
        "MATCH (a:A) CALL (a) { MATCH (a)-[:R]->(b) RETURN b UNION ALL MATCH (a)<-[:S]-(b) RETURN b } "
        "RETURN a.i AS i, b.i AS j"
    ),
    "either": (
        "MATCH (a:A) CALL (a) { MATCH (a)-[:R]->(b) RETURN b.k AS k UNION MATCH (a)<-[:S]-(b) "
        "RETURN b.k AS k } RETURN a.i AS i, k"
    ),
    "maybe": "MATCH (a:A) OPTIONAL CALL (a) { MATCH (a)-[:R]->(b) WHERE b.k > 1 RETURN b } RETURN a.i AS i, b.i AS j",
    "exists": (
        "MATCH (a)-[:R]->(b) WITH a, b, EXISTS { (b)-[:S]->(c) WHERE c.k > 1 } AS e WHERE e OR a.k = 1 "
        "RETURN a.i AS i, b.i AS j, e"
    ),
    "inner": "MATCH (a:A)-[:R]->(b) WITH a WHERE COUNT { (a)-[:R]->(b:B) } > 1 RETURN a.i AS i",
    "list": "MATCH (a)-[:R]->(b) WITH a, a.k AS x WHERE any(a IN [1, 2] WHERE a = x) RETURN a.i AS i, x",
    "edges": "MATCH (a)-[e:R]->(b) WITH e AS f, b RETURN f.w AS w, b.i AS i",
    "modes": (
        "MATCH DIFFERENT NODES (a)-[:R]-(b)-[:R]-(c) WITH a, c MATCH INDUCED (c)-[:S]-(d) "
        "RETURN a.i AS i, c.i AS j, d.i AS k"
    ),
    "repeat": "MATCH REPEATABLE ELEMENTS (a)-[:R]->(b)<-[:R]-(c) WITH b WHERE b.k > 0 RETURN b.i AS i, count(*) AS n",
    "having": "MATCH (a)-[:R]->(b) WITH a, count(b) AS n WHERE n > 1 RETURN a.i AS i, n",
    "value": "MATCH (a)-[:R]->(b) WITH a.k AS k, count(*) AS n, max(b.i) AS m WHERE n + m > 3 RETURN k, n * 2 AS d, m",
    "all": "MATCH (a:A)-[:R]->(b) WITH count(*) AS n, sum(b.i) AS s WHERE n > 2 RETURN s / n AS q, n",
    "whole": "MATCH (a:A)-[:R]->(b) WITH count(*) AS n RETURN n, n + 1 AS m",
    "least": "MATCH (a:A)-[:R]->(b) WITH a, min(b.i) AS m WHERE m < a.i RETURN a.i AS i, m",
    "mean": "MATCH (a)-[:R]->(b) WITH b, avg(a.i) AS v WHERE v > 1.5 RETURN b.i AS i, b.k AS k, v",
    "different": "MATCH (a)-[:R]->(b) WITH DISTINCT b.i AS i, a:A AS l WHERE i > 2 RETURN i, l",
    "unique": "MATCH (a)-[:R]->(b) WITH DISTINCT b RETURN b.i AS i, labels(b) AS l",
    "beside": "MATCH (a:A)-[:R]->(b) RETURN a.i AS i, a.i + count(*) AS n, count(*) AS m",
    "twice": "MATCH (a:A)-[:R]->(b) WITH a, count(*) AS n WITH a.i + n AS s, n WHERE s > 2 RETURN s, n",
    "without": "MATCH (a:A) OPTIONAL MATCH (a)-[:S]->(b) WITH a, count(b) AS n WHERE n = 0 RETURN a.i AS i",
    "or_exists": (
        "MATCH (a:A)-[:R]->(b) WITH a, count(*) AS n WHERE n > 1 OR EXISTS { (a)-[:S]->(:A) } RETURN a.i AS i, n"
    ),
    "of_calls": (
        "CALL { MATCH (a:A)-[:R]->(b) RETURN b UNION ALL MATCH (b)-[:S]->() RETURN b } "
        "WITH b, count(*) AS n WHERE n > 1 RETURN b.i AS i, n"
    ),
    "lists": "MATCH (a:A)-[:R]->(b) WITH a, collect(DISTINCT b.k) AS l RETURN a.i AS i",
    "case": (
        "MATCH (a:A)-[:R]->(b) WITH a, count(*) AS n RETURN CASE WHEN n > 1 THEN 'many' ELSE 'one' END AS w, a.i AS i"
    ),
    "vertex": "MATCH (a:A)-[:R]->(b) WITH a, count(*) AS n WHERE a.k > 0 RETURN a, n",
    "after": "MATCH (a)-[:R]->(b) WITH a, count(b) AS n MATCH (a)-[:S]->(c) WHERE c.k < n RETURN a.i AS i, n, c.i AS j",
    "histogram": "MATCH (a)-[:R]->(b) WITH a, count(b) AS n RETURN n, count(*) AS m, max(a.i) AS x",
    "again": "MATCH (a:A)-[:R]->(b) WITH DISTINCT a MATCH (a)-[:R]->(b) RETURN a.i AS i, b.i AS j",
    "chosen": (
        "MATCH (a)-[:R]->(b) WITH a, count(b) AS n WHERE n > 1 OPTIONAL MATCH (a)-[:S]->(c) "
        "RETURN a.i AS i, n, c.i AS j"
    ),
    "unless": (
        "MATCH (a)-[:R]->(b) WITH a, max(b.i) AS n WHERE n > 1 AND NOT EXISTS { (a)-[:S]->(:A) } "
        "MATCH (a)-[:R]->(c) RETURN a.i AS i, n, c.i AS j"
    ),
    "pair": (
        "MATCH (a)-[:R]->(b)-[:S]->(c) WITH a, c, count(*) AS n MATCH (c)-[:R]->(d) "
        "RETURN a.i AS i, c.i AS j, d.i AS k, n"
    ),
    "values": "MATCH (a)-[:R]->(b) WITH a, b.i AS k, count(*) AS n UNWIND [n, k] AS x RETURN a.i AS i, x",
    "or_none": (
        "MATCH (a:A) OPTIONAL MATCH (a)-[:R]->(b) WITH a, count(b) AS n, min(b.i) AS m OPTIONAL "
        "MATCH (a)-[:S]->(c) RETURN a.i AS i, n, m, c.i AS j"
    ),
    "in_turn": (
        "MATCH (a)-[:R]->(b) WITH a, b, count(*) AS n WITH a, max(n) AS m, count(b) AS c "
        "RETURN m + c AS s, count(*) AS z"
    ),
    "chain": (
        "MATCH (a:A)-[:R]->(b) WITH b AS a, count(a) AS n MATCH (a)-[:R]->(b) WITH b, max(n) AS m RETURN b.i AS i, m"
    ),
    "added": "MATCH (a:A) CALL (a) { MATCH (a)-[:R]->(b) RETURN sum(b.i) AS n, avg(b.i) AS v } RETURN a.i AS i, n, v",
    "sums": "MATCH (a)-[:R]->(b) WITH a, sum(b.i) AS n RETURN n, count(*) AS m",
    "numbers": "MATCH (a:A)-[:R]->(b) WITH a, count(DISTINCT b.k) AS n RETURN DISTINCT n",
    "of_groups": (
        "MATCH (a:A)-[:R]->(b) WITH a, count(*) AS n CALL (a) { MATCH (a)-[:S]->(c) RETURN c UNION ALL "
        "MATCH (a)-[:R]->(c) RETURN c } RETURN a.i AS i, n, c.i AS j"
    ),
    "as_other": (
        "MATCH (a:A)-[:R]->(b) WITH a AS x, count(b) AS a MATCH (x)-[:R]->(b) WHERE b.i <> a "
        "RETURN x.i AS i, a, b.i AS j"
    ),
}


@settings(max_examples=scaled(10), deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(st.integers(0, 1 << 32))
def test_answers_follow_every_batch(seed: int) -> None:
    draw = np.random.default_rng(seed)

    def begun(db: graphdb.Database) -> dict[str, str]:
        begin(db, draw, 0)
        names = draw.choice(sorted(QUERIES), 6, replace=False).tolist()
        queries = {f"q_{name}": QUERIES[name] for name in names}
        create(db, queries)
        return queries

    with tempfile.TemporaryDirectory() as folder:
        check_history(Path(folder) / "a.duckdb", draw, begun, statement)


def test_delta_plans_are_used() -> None:
    with opened(None) as db:
        begin(db, np.random.default_rng(2), 0)
        queries = {f"q_{name}": text for name, text in QUERIES.items()}
        for name, text in queries.items():
            made = str(db.query(f"CREATE CONTINUOUS QUERY {name} AS {text}"))
            assert "maintained by delta plans" in made, text
        parts = [line for line in explained(db, "q_mixed").splitlines() if "delta plan" not in line]
        assert [line for line in parts if line.startswith("  part ")] == [f"  part {i} of 3" for i in (1, 2, 3)]
        stored = {name: bag(db, f"FROM {name}") for name in queries}
        for text in (
            "MATCH (a:A {i: 1}), (b:B {i: 2}) MERGE (a)-[:R]->(b) MERGE (b)-[:S]->(a)",
            "MATCH (a:A {i: 1})-[e:R]->(b) WHERE b.i <> 2 SET b.k = 1 DELETE e",
        ):
            db.query(text)
            check(db, queries, stored)
        assert set(strategies(db)) == {"delta plans"}


COMPARED = {
    "reach": "MATCH (a)-[:R*]->(b) WHERE a.i > b.i RETURN a.i AS i, count(DISTINCT b) AS n",
    "labels": "MATCH (a:A)-[:R*]->(b) RETURN DISTINCT a.i AS i, b.i AS j",
    "far": "MATCH p = ANY SHORTEST (a:A)-[:R]->+(b:B) RETURN length(p) AS n, a.i AS i, b.i AS j",
    "first": "MATCH (a)-[:R]->(b) WITH a, b ORDER BY a.i, b.i LIMIT 4 RETURN a.i AS i, b.i AS j",
    "within": "MATCH (a)-[:R*]->(b) WHERE EXISTS { (b)-[:R*]->(a) } RETURN DISTINCT a.i AS i",
    "zero": "MATCH (a)-[:R*0..]->(b) RETURN max(b.i) AS n",
    "any": "MATCH (a)-[*2..]->(b) RETURN count(DISTINCT a) AS n",
    "alone": "MATCH (a) WITH a.i AS i ORDER BY i LIMIT 3 RETURN i",
    "later": "MATCH (a)-[:T*]->(b) RETURN DISTINCT a.i AS i, b.i AS j",
}
"""Queries that delta plans do not maintain."""


def test_answers_are_compared_where_something_that_they_read_changes() -> None:
    with opened(None) as db:
        begin(db, np.random.default_rng(1), 0)
        queries = {f"q_{name}": text for name, text in COMPARED.items()}
        stored = created(db, queries)
        assert "not where a batch changes nothing of what it reads: R, i" in explained(db, "q_reach")
        for text, passed in (
            ("MATCH (a:A {i: 1}), (b:B {i: 2}) CREATE (a)-[:S]->(b)", 6),
            ("MATCH (a:A {i: 1}) SET a.k = 9", 6),
            ("MATCH (a:A {i: 2}) SET a:New", 4),
            ("CREATE (:B {i: 3})", 0),
            ("MATCH (a:A {i: 1}), (b:B {i: 2}) CREATE (a)-[:R]->(b), (b)-[:R]->(a)", 1),
            ("MATCH (a:A {i: 1}), (b:B {i: 2}) CREATE (a)-[:T]->(b)", 5),
            ("MATCH (a:A {i: 1}), (b:B {i: 2}) CREATE (a)-[:T {w: 1}]->(b)", 0),
            ("MATCH (a:A {i: 1})-[e:R]->() DELETE e", 1),
            ("MATCH (a:A {i: 1})-[e:T]->() DELETE e", 0),
        ):
            before = strategies(db)
            db.query(text)
            check(db, queries, stored)
            assert (strategies(db) - before)["not compared"] == passed, text


OTHERS = [
    ("MATCH (a)-[:R]->(b) WITH a LIMIT 3 RETURN a", "SKIP and LIMIT choose among all rows"),
    ("MATCH (a)-[:R]->(b) RETURN count(*) AS n UNION ALL MATCH (a) RETURN count(*) AS n", "its UNION aggregates"),
    ("MATCH (a)-[:R]->(b) RETURN a.i AS i UNION ALL MATCH (a:A) RETURN 'x' AS i", "columns of different types"),
    ("MATCH (a)-[:R]->(b) UNWIND [a, b] AS x MATCH (x)-[:S]->(c) RETURN c", "a pattern goes on from values"),
    ("MATCH (a) WITH [a][0] AS b MATCH (b)-[:R]->(c) RETURN c", "goes on from what an expression yields"),
    ("MATCH (a:A) CALL { MATCH (b:B) RETURN count(b) AS n } RETURN a, n", "a pattern that its row says nothing of"),
    ("MATCH (a:A) CALL (a) { MATCH (a)-[:R]->(b) RETURN collect(b.k) AS v } RETURN a, v", "with the order of its rows"),
    (
        "MATCH (a:A) CALL (a) { MATCH (a)-[:R]->(b) RETURN b LIMIT 1 } RETURN b",
        "SKIP and LIMIT choose among all rows",
    ),
    ("MATCH (a)-[:R]->(b) WITH a.i AS i, collect(b.i) AS l RETURN i, size(l) AS n", "of other types than SQL has"),
    ("MATCH (a)-[:R]->(b) WITH a, stdev(b.k) AS n MATCH (a)-[:S]->(c) RETURN n, c", "with the order of its rows"),
    ("MATCH (a:A), (b:B) WITH a, count(b) AS n MATCH (a)-[:R]->(c) RETURN n, c", "by none of the vertices"),
    ("UNWIND [1, 2] AS x RETURN x", "its rows are not the matches of one pattern"),
]


def test_others_are_compared() -> None:
    with opened(None) as db:
        begin(db, np.random.default_rng(0), 0)
        for text, why in OTHERS:
            made = str(db.query(f"CREATE OR REPLACE CONTINUOUS QUERY q AS {text}"))
            assert "comparing its answers" in made, text
            assert why in made
