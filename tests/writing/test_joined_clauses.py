"""Clauses that are written together: the same graph as one after the other, whatever they read of each other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

import pytest

import graphdb
from graphdb.grammar.parser import parse_script
from graphdb.writing.stages import stages_of
from tests.writing.test_writing import graph_of

START = (
    "CREATE (:A {k: 0, x: 0, y: 0}), (:A {k: 1, x: 1, y: 1}), (:A {k: 2, x: 2}),"
    " (:A {k: 3})-[:S]->(:A {k: 4, x: 4, y: 4})"
)
MATCHES = [
    "MATCH (a:A), (b:A) WHERE a.k < b.k WITH a, b ORDER BY a.k, b.k",
    "MATCH (a:A)-[:S]->(b)",
    "UNWIND [3, 1, 2] AS i",
]


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[graphdb.Database, graphdb.Database]]:
    with graphdb.connect(device="cpu", threads=1) as one, graphdb.connect(device="cpu", threads=1) as other:
        yield one, other


def create(random: Random, names: list[str], number: int) -> str:
    """Return a CREATE that may read what those before it make, and may name it."""
    value = random.choice([*(f"{name}.x" for name in names), "1", "'s'", "size('abc')", "COUNT { MATCH (:N) }"])
    new = f"n{number}"
    start = random.choice([*names, ""])
    patterns = [f"({new}:N {{x: {value}}})", f"({start})-[:R {{w: {value}}}]->({new}:N)"]
    if names:
        patterns.append(f"({start or names[0]})-[:R {{w: {value}}}]->({random.choice(names)})")
    pattern = random.choice(patterns)
    names += [new] * (f"({new}:N" in pattern)
    return f"CREATE {pattern}"


def change(random: Random, names: list[str]) -> str:
    """Return a SET of one or two items, which may read what is set."""
    items = []
    for _ in range(random.randint(1, 2)):
        name, key = random.choice(names), random.choice("xyz")
        other = random.choice(names)
        value = random.choice(
            [f"{other}.{random.choice('xyz')}", "1", "'s'", f"size(keys({other}))", f"{other}.k + 1", "null"]
        )
        items.append(random.choice([f"{name}.{key} = {value}"] * 4 + [f"{name}:L{random.randint(0, 1)}"]))
        if random.random() < 0.1:
            items[-1] = f"{name} += {{{key}: 7}}"
    return f"SET {', '.join(items)}"


@pytest.mark.parametrize("seed", range(16))
def test_joined_clauses_write_what_they_write_apart(pair: tuple[graphdb.Database, graphdb.Database], seed: int) -> None:
    random = Random(seed)
    match = random.choice(MATCHES)
    names = re.findall(r"\b[ab]\b", match)[:2]
    clauses = []
    for number in range(random.randint(2, 6)):
        as_create = not names or random.random() < 0.6
        clauses.append(create(random, names, number) if as_create else change(random, names))
    for database, between in zip(pair, (" ", " WITH * "), strict=True):
        database.query("MATCH (n) DETACH DELETE n")
        database.query(START)
        database.query(match + " " + between.join(clauses))
    assert graph_of(pair[0]) == graph_of(pair[1]), (match, clauses)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("CREATE (a:X {v: 1}) CREATE (a)-[:R {w: 2}]->(b) CREATE (b)-[:R]->(a)", 1),
        ("CREATE (a:X {v: 1}) CREATE ({v: a.v})", 2),
        ("CREATE (a) CREATE ({n: COUNT { MATCH (n) }})", 2),
        ("MATCH (a) SET a.x = 1 SET a.y = a.z + 1, a:L", 1),
        ("MATCH (a) SET a.x = 1 SET a.y = a.x", 2),
        ("MATCH (a), (b) SET a.x = 1 SET b.x = 2", 2),
        ("MATCH (a) SET a = {x: 1} SET a.y = 2", 2),
        ("MATCH (a) SET a:L SET a.y = labels(a)", 2),
        ("MATCH (a) SET a.x = 1 SET a.y = a['x']", 2),
        ("CREATE (a) SET a.x = 1 CREATE (b)", 3),
    ],
)
def test_which_clauses_are_joined(text: str, count: int) -> None:
    (query,) = parse_script(text)
    assert len(stages_of(query.parts[0])) == count


def test_a_statement_of_hundreds_of_clauses_is_written_at_once(pair: tuple[graphdb.Database, graphdb.Database]) -> None:
    database, _ = pair
    database.query("MATCH (n) DETACH DELETE n")
    database.query("UNWIND range(1, 70) AS i " + " ".join(f"CREATE (:M {{at: {k}, i: i}})" for k in range(200)))
    assert database.query("MATCH (n:M) RETURN count(*), count(DISTINCT n.at), sum(n.i)").fetchall() == [
        (14_000, 200, 200 * 35 * 71)
    ]
