"""Match modes beside paths, by hand: what one vertex is, what may repeat, and what an unwritten edge or vertex does.

:mod:`tests.oracle.test_match_modes` has random queries for all of it.
"""

from __future__ import annotations

from typing import Any

import pytest

import graphdb

TWO = "CREATE ({k: 0}), ({k: 1})"
CHAIN = "CREATE ({k: 3})-[:R]->({k: 4})-[:R]->({k: 5})"
LOOP = "CREATE (x:B {k: 3})-[:R]->(x)"
TWO_LOOPS = "CREATE (x:B {k: 3})-[:R]->(x), (x)-[:R]->(x)"
EDGE = "CREATE ({k: 0})-[:R]->({k: 1})"
BOTH_WAYS = "CREATE (a {k: 0})-[:R]->(b {k: 1})-[:R]->(a)"
TRIANGLE = "CREATE (a {k: 0})-[:R]->(b {k: 1})-[:R]->(c {k: 2})-[:R]->(a)"
MISSING = "CREATE (x {k: 3})-[:R {w: 1}]->(x)-[:R {w: 2}]->({k: 4})"

MERGED = [
    "MATCH (c)-[*0..1]->(b), (a)-[*0..1]->(b) RETURN a.k, b.k, c.k",
    "MATCH (c)-->?(b), (a)-->?(b) RETURN a.k, b.k, c.k",
    "MATCH (c)-[*0..1]-(b) MATCH (a)-[*0..1]-(b) RETURN a.k, b.k, c.k",
    "MATCH (b)<-[*0..1]-(c) MATCH (b)--?(a) WITH a, b, c RETURN a.k, b.k, c.k",
    "MATCH (c)-[*0..1]->(b)<-[*0..2]-(a)-->?(c) RETURN a.k, b.k, c.k",
]

CASES: list[tuple[str, str, list[tuple[Any, ...]]]] = [
    *((TWO, text, [(0, 0, 0), (1, 1, 1)]) for text in MERGED),
    (TWO, "MATCH (c)-[*0..1]->(b), (a)-[*0..1]->(b) RETURN count(*)", [(2,)]),
    # What another clause makes one is not two vertices.
    (LOOP, "MATCH (a)-[*0..1]->(b) MATCH DIFFERENT NODES (a)-[]->(c), (b) RETURN a.k", []),
    (BOTH_WAYS, "MATCH (a)-[*0..0]->(b) MATCH ACYCLIC (a)-[*0..1]->(b) RETURN a.k", [(0,), (1,)]),
    (LOOP, "MATCH (a)-[*0..1]->(b) MATCH ACYCLIC (a)-[*1..1]->(b) RETURN a.k", []),
    (CHAIN, "MATCH (a) MATCH DIFFERENT NODES (c)-[*]->(b), (b)-[*]->(a) RETURN a.k, c.k", [(5, 3)]),
    (LOOP, "MATCH (a) WHERE EXISTS { MATCH DIFFERENT NODES (a)-[*]->(b:B) } RETURN a.k", []),
    (LOOP, "MATCH DIFFERENT NODES (a)-[*]->(b:B) RETURN DISTINCT a.k", []),
    (LOOP, "MATCH ACYCLIC (a)-[*]->(b:B) RETURN count(DISTINCT a)", [(0,)]),
    (BOTH_WAYS, "MATCH DIFFERENT NODES (a)-[*]->(b) RETURN DISTINCT a.k", [(0,), (1,)]),
    # Closed paths: the same variable is one vertex.
    *(
        (LOOP, f"MATCH DIFFERENT NODES (a)-{edge}->(a) RETURN a.k", [(3,)])
        for edge in ("[]", "[*]", "[*1..1]", "[*1..2]")
    ),
    (LOOP, "MATCH DIFFERENT NODES (a)-[*0..1]->(a) RETURN a.k", [(3,), (3,)]),
    (LOOP, "MATCH DIFFERENT NODES (a)-[*0..1]->(b) RETURN a.k", []),
    (BOTH_WAYS, "MATCH DIFFERENT NODES p = (a)-[*]->(a) RETURN a.k, length(p)", [(0, 2), (1, 2)]),
    (TRIANGLE, "MATCH DIFFERENT NODES (a {k: 0})-[*]->(b)-[*]->(a) RETURN b.k", [(1,), (2,)]),
    (TRIANGLE, "MATCH DIFFERENT NODES (a {k: 0})-[*]->(b), (b)-[*]->(a) RETURN b.k", [(1,), (2,)]),
    (TRIANGLE, "MATCH INDUCED (a {k: 0})-[*]->(a) RETURN a.k", [(0,)]),
    (EDGE, "MATCH DIFFERENT NODES (a)-[*]-(a) RETURN a.k", []),
    (TRIANGLE, "MATCH DIFFERENT NODES ANY SHORTEST (a {k: 0})-[*]->(b)-[*]->(a) RETURN count(*)", [(1,)]),
    # Written modes: a walk obeys them, a simple path is simple by its vertices where elements may repeat.
    (EDGE, "MATCH p = WALK (a {k: 0})-[:R]-{2}(b) RETURN b.k", [(0,)]),
    (EDGE, "MATCH DIFFERENT EDGES p = WALK (a {k: 0})-[:R]-{2}(b) RETURN b.k", []),
    (EDGE, "MATCH DIFFERENT EDGES WALK (a {k: 0})-[:R]-*(b) RETURN b.k", [(0,), (1,)]),
    (EDGE, "MATCH DIFFERENT EDGES WALK (a)-[:R]->{1,2}(b), (c)-[:R]->(d) RETURN b.k", []),
    (EDGE, "MATCH WALK (a)-[:R]->{1,2}(b), (c)-[:R]->(d) RETURN b.k", [(1,)]),
    (EDGE, "MATCH DIFFERENT NODES WALK (a)-[:R]-{2}(a) RETURN a.k", []),
    (EDGE, "MATCH REPEATABLE ELEMENTS SIMPLE (a {k: 0})-[:R]-{2}(b) RETURN b.k", [(0,)]),
    (EDGE, "MATCH REPEATABLE ELEMENTS ANY SHORTEST SIMPLE (a {k: 0})-[:R]-+(b) RETURN b.k", [(0,), (1,)]),
    (EDGE, "MATCH REPEATABLE ELEMENTS TRAIL (a {k: 0})-[:R]-{2}(b) RETURN b.k", []),
    (EDGE, "MATCH SIMPLE (a {k: 0})-[:R]-{2}(b) RETURN b.k", []),
    # A label that nothing has.
    (MISSING, "MATCH (a)-[:Nope {w: 1}]->(b) MATCH p = (b)-[:R]->(c) RETURN p", []),
    (MISSING, "MATCH (a)-[:Nope {w: 1}]->(b), p = (b)-[:R*1..2]->(c) RETURN count(*)", [(0,)]),
    # Which edges a path takes is asked for: any one path will not do.
    (LOOP, "MATCH ()-[e]->*() RETURN DISTINCT size(e)", [(0,), (1,)]),
    (TWO_LOOPS, "MATCH ()-[e]->+() WITH DISTINCT e RETURN size(e)", [(1,), (1,), (2,), (2,)]),
    (LOOP, "MATCH (a)-[*]->(b)-[e*]->(c), (d)-[*]->(f) RETURN size(e)", []),
    (EDGE, "MATCH (a)-[*0..]->(b)-[e*]->(c), (d)-[*]->(f) RETURN size(e)", []),
    # An end that differs from what is not asked for.
    (CHAIN, "MATCH (d), (c)-[:R*1..2]->() WHERE d <> c RETURN DISTINCT c.k", [(3,), (4,)]),
    (EDGE, "MATCH (d:B), (c)-[:R*]->() WHERE d <> c RETURN DISTINCT c.k", []),
    # What a subquery names for itself is nothing that comes later.
    (TWO, "MATCH () WHERE EXISTS { (d {k: 1}) } MATCH (d) RETURN d.k", [(0,), (0,), (1,), (1,)]),
    (TWO, "MATCH () WHERE EXISTS { (d {k: 1}) } MATCH SIMPLE ()<-[*0..1]-(d) RETURN d.k", [(0,), (0,), (1,), (1,)]),
    (EDGE, "MATCH () WHERE EXISTS { (d {k: 0})-[*]->() } MATCH ()-[*0..0]-(d) RETURN d.k", [(0,), (0,), (1,), (1,)]),
    (EDGE, "MATCH () WHERE EXISTS { (d {k: 0})-[*]->() } MATCH (d) RETURN d.k", [(0,), (0,), (1,), (1,)]),
    # A path is selected when the rest is known.
    (TWO_LOOPS, "MATCH ANY ()-[]->(), p = (a)-[]->(b) RETURN length(p)", [(1,), (1,)]),
    # A vertex that a path passes twice is one vertex.
    (TRIANGLE, "MATCH TRAIL (a {k: 0})-[]->(b)-[]->(b) RETURN b.k", []),
    (TRIANGLE, "MATCH TRAIL (a {k: 0})-[]->(b)-[*]->(a)-[*]->(b) RETURN b.k", []),
    (BOTH_WAYS, "MATCH WALK (a {k: 0})-[]->(b)-[]->(c)-[]->(b) RETURN b.k, c.k", [(1, 0)]),
]


@pytest.mark.parametrize(("graph", "query", "rows"), CASES, ids=[query for _, query, _ in CASES])
def test_rows(graph: str, query: str, rows: list[tuple[Any, ...]]) -> None:
    with graphdb.connect(threads=1, device="cpu") as database:
        database.query(graph)
        assert sorted(database.query(query)) == rows


def test_a_self_loop_has_one_direction() -> None:
    """Paths over it are equal whichever way they go."""
    paths = [
        "(a)-[]->(a)",
        "(a)<-[]-(a)",
        "(a)-[]-(a)",
        "(a)<-[*1..1]-(a)",
        "ANY SHORTEST (a)<-[]-+(a)",
        "TRAIL (a)<-[*]-(a)",
    ]
    with graphdb.connect(threads=1, device="cpu") as database:
        database.query(LOOP)
        for one in paths:
            for other in paths:
                assert database.query(f"MATCH p = {one} MATCH q = {other} RETURN p = q").scalar() is True
        union = " UNION ".join(f"MATCH p = {path} RETURN p" for path in paths)
        assert len(database.query(union)) == 1
