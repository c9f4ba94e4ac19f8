"""Whether there are paths, of which nobody asks how many: as their number says, wherever the question stands."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

import graphdb
from tests.stops import answered

PATTERNS = [
    "(a)-[:K*]->(:P {{i: {i}}})",
    "(a)-[:K*2..]->(b)",
    "(a)-[:K|L*1..3]->(b)<-[:L*]-(c)",
    "(a)<-[:L*0..]-(b {{k: {k}}})",
    "MATCH (a)-[:K*1..4]->(b) WHERE b.k = {k}",
    "MATCH (a)-[:K*]->(b) MATCH (b)-[:L*]->(c) WHERE c.k <> a.k",
    "MATCH (a)-[:K]->(b) OPTIONAL MATCH (b)-[:L*]->(c)",
    "MATCH (a)-[:L*]->(b) WHERE COUNT {{ (b)-[:K*1..2]->() }} > {k}",
    "MATCH (a)-[:L*]->(b) WHERE EXISTS {{ (b)-[:K*1..2]->({{k: {k}}}) }}",
    "MATCH (a)-[:L*1..2]->(b) WITH b, count(*) AS n WHERE n > 1 RETURN b",
    "MATCH (a)-[:L*]->(b) RETURN b UNION MATCH (a)<-[:K*1..2]-(b) WHERE b.k = {k} RETURN b",
]


@pytest.fixture(scope="module")
def database() -> Iterator[graphdb.Database]:
    draw = Random(7)
    with graphdb.connect(device="cpu", threads=1) as opened:
        opened.query("UNWIND range(0, 24) AS i CREATE (:P {i: i, k: i % 4})")
        for kind, count in (("K", 26), ("L", 18)):
            pairs = [[draw.randrange(25), draw.randrange(25)] for _ in range(count)]
            text = f"UNWIND $pairs AS p MATCH (a:P {{i: p[0]}}) MATCH (b:P {{i: p[1]}}) MERGE (a)-[:{kind}]->(b)"
            opened.query(text, pairs=pairs)
        yield opened


@pytest.mark.parametrize("pattern", PATTERNS)
def test_existence_is_a_number_above_zero(database: graphdb.Database, pattern: str) -> None:
    draw = Random(pattern)
    for _ in range(3):
        asked = pattern.format(i=draw.randrange(25), k=draw.randrange(4))
        texts = [
            "MATCH (a:P) WITH a, {0} AS e RETURN a.i, e ORDER BY a.i",
            "MATCH (a:P) WHERE {0} RETURN a.i, true AS e ORDER BY a.i",
            "UNWIND range(0, 40) AS x MATCH (a:P {{i: x % 25}}) RETURN a.i, {0} AS e ORDER BY x",
        ]
        for text in texts:
            exists = database.query(text.format(f"EXISTS {{ {asked} }}")).fetchall()
            counted = database.query(text.format(f"COUNT {{ {asked} }} > 0")).fetchall()
            assert exists == counted, (asked, text)


def test_paths_within_a_count_keep_their_number(database: graphdb.Database) -> None:
    """Around a question whether there are paths, paths are counted, and within it, too."""
    rows = database.query("MATCH (a:P)-[:K*1..3]->(b:P) RETURN a.i, b.i").fetchall()
    reach = {a for (a,) in database.query("MATCH (a:P)-[:L*]->() RETURN DISTINCT a.i").fetchall()}
    text = "MATCH (a:P) RETURN a.i, COUNT { MATCH (a)-[:K*1..3]->(b) WHERE EXISTS { (b)-[:L*]->() } } AS n"
    found = {a: n for a, n in database.query(text).fetchall() if n}
    expected = {a: sum(1 for one, b in rows if one == a and b in reach) for a, _ in rows}
    assert found == {a: n for a, n in expected.items() if n}
    text = "MATCH (a:P) WHERE EXISTS { MATCH (a)-[:L]->(c) WHERE COUNT { (c)-[:K*1..3]->() } > 2 } RETURN a.i"
    paths = {a: sum(1 for one, _ in rows if one == a) for a, _ in rows}
    links = database.query("MATCH (a:P)-[:L]->(c) RETURN a.i, c.i").fetchall()
    assert {a for (a,) in database.query(text).fetchall()} == {a for a, c in links if paths.get(c, 0) > 2}


def test_between_two_vertices_paths_are_not_enumerated() -> None:
    """Of 300 edges between 50 vertices there are more trails than anybody could list."""
    draw = Random(3)
    pairs = sorted({(draw.randrange(40), draw.randrange(50)) for _ in range(300)})
    reached = {i: {b for a, b in pairs if a == i} for i in range(50)}
    for _ in range(6):  # lengths double
        reached = {i: ends.union(*(reached[end] for end in ends)) for i, ends in reached.items()}
    with graphdb.connect(device="cpu", threads=1) as db:
        db.query("UNWIND range(0, 49) AS i CREATE (:P {i: i})")
        text = "UNWIND $pairs AS p MATCH (a:P {i: p[0]}) MATCH (b:P {i: p[1]}) CREATE (a)-[:K]->(b)"
        db.query(text, pairs=[list(pair) for pair in pairs])
        text = "MATCH (a:P)-[:K]->(b:P) WHERE EXISTS { MATCH (b)-[:K*]->(a) } RETURN a.i, b.i"
        found = answered(db, text, within=20).fetchall()
        text = "MATCH (a:P), (b:P) WHERE a.i < 5 AND NOT EXISTS { (a)-[:K*]->(b) } RETURN a.i, b.i"
        none = answered(db, text, within=20).fetchall()
    assert sorted(found) == [(a, b) for a, b in pairs if a in reached[b]]
    assert sorted(none) == [(a, b) for a in range(5) for b in range(50) if b not in reached[a]]
