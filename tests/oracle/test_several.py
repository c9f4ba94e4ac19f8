"""Properties of several values compared with one another: as SQL over the bindings, the rows of Python.

Where nothing else connects two patterns, what they share is found by a join of the values, each pair once.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

import graphdb
from tests.oracle.databases import loaded
from tests.oracle.routes import in_python

VALUES = {
    "x": ["1", "2", "3", "4", '"01"^^<http://www.w3.org/2001/XMLSchema#integer>'],
    "y": ["2", "3", "4", "5"],
    "m": ["1", "2.5e0", '"a"', '"b"', "true"],
    "s": ['"a"', '"b"', '"c"', '"a"@en'],
    "t": ["1", "2", "3", "4"],
    "w": ["1.5e0", "2", "'NaN'^^<http://www.w3.org/2001/XMLSchema#double>"],
}
"""What a vertex may have of each property: none, one (but of ``t``) or some; numbers that are equal are written in two ways."""


def _graph(seed: int) -> Iterator[str]:
    dice = random.Random(seed)
    for i in range(7):
        yield f"<urn:x:v{i}> <urn:x:id> {i} ; <urn:x:z> {dice.randrange(5)} ."
        for key, values in VALUES.items():
            for value in dice.sample(values, dice.choice([0, 1, 2, 3] if key != "t" else [0, 2, 3])):
                yield f"<urn:x:v{i}> <urn:x:{key}> {value} ."
        yield f"<urn:x:v{i}> <urn:x:E> <urn:x:v{dice.randrange(7)}>, <urn:x:v{dice.randrange(7)}> ."
    yield '<urn:x:v0> <urn:x:x> 1, 2 ; <urn:x:y> 2, 3 ; <urn:x:s> "a", "b" ; <urn:x:m> 1, "a" ; <urn:x:t> 1, 3 ; <urn:x:w> 2, 1.5e0 .'


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[graphdb.Database]]:
    with loaded(tmp_path_factory.mktemp("several"), map(_graph, range(2))) as found:
        yield found


def _check(database: graphdb.Database, text: str, joined: bool = False) -> None:
    report = database.explain(text)
    assert "in Python" not in report
    if joined:
        assert "unnest(" in report
        assert "list_transform" not in report
    expected = in_python(database, text)  # type: ignore[arg-type]
    assert Counter(map(repr, database.query(text).fetchall())) == Counter(map(repr, expected)), text


PAIRS = [("x", "y"), ("x", "x"), ("x", "z"), ("z", "y"), ("m", "m"), ("m", "x"), ("s", "s"), ("s", "m"), ("w", "w")]


@pytest.mark.parametrize("operator", ["=", "<>", "<", ">=", "IN"])
def test_what_an_edge_connects(databases: list[graphdb.Database], operator: str) -> None:
    pairs = PAIRS if operator != "IN" else [("x", "t"), ("z", "t"), ("m", "t"), ("t", "t")]
    for number, (one, other) in enumerate(pairs):
        database = databases[number % 2]
        condition = f"a.{one} {operator} b.{other}"
        _check(database, f"MATCH (a)-[:E]->(b) RETURN a.id, b.id, {condition}, NOT {condition}")
        _check(database, f"MATCH (a)-[:E]->(b) WHERE {condition} RETURN a.id, b.id")
        _check(database, f"MATCH (a)-[:E]->(b) WHERE NOT {condition} RETURN a.id, b.id")


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_what_nothing_connects(databases: list[graphdb.Database], pair: tuple[str, str]) -> None:
    one, other = pair
    joined = pair in [("x", "y"), ("x", "x"), ("x", "z"), ("z", "y"), ("s", "s")]  # others have values of several types
    equal = f"a.{one} = b.{other}"
    for database in databases:
        _check(database, f"MATCH (a), (b) WHERE {equal} RETURN a.id, b.id", joined)
    database = databases[PAIRS.index(pair) % 2]
    _check(database, f"MATCH (a), (b)-[:E]->(c) WHERE {equal} AND b.id > 2 AND c.id < 5 RETURN a.id, c.id", joined)
    _check(database, f"MATCH (a)-[:E]->(c), (b) WHERE {equal} RETURN a.id, count(*)", joined)
    _check(database, f"MATCH (a) WITH a, a.{one} AS v MATCH (b) WHERE v = b.{other} RETURN a.id, b.id", joined)
    _check(database, f"MATCH (a) OPTIONAL MATCH (b)-[:E]->(c) WHERE {equal} RETURN a.id, b.id, c.id")
    _check(database, f"MATCH (a) WHERE EXISTS {{ MATCH (b) WHERE {equal} AND b.id > a.id }} RETURN a.id", joined)
    _check(database, f"MATCH (a), (b) WHERE NOT {equal} RETURN count(*)")
    _check(database, f"MATCH (a), (b) WHERE {equal} AND a.y = b.x RETURN a.id, b.id")
    _check(database, f"MATCH (a), (b) WHERE {equal} OR a.id = b.id RETURN a.id, b.id")
