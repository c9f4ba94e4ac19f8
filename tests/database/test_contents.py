"""What a database says of its graph: tables of labels, types of edges, property keys, and what leads where."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import graphdb
from tests.fuzz import scaled
from tests.people import EX, opened


@pytest.fixture
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(threads=1) as database:
        yield database


def test_an_empty_database(db: graphdb.Database) -> None:
    assert [len(table) for table in db.schema().tables] == [0, 0, 0, 0]
    assert db.labels.columns == ("label", "vertices")
    assert db.relationship_types.columns == ("type", "edges")
    assert db.property_keys.columns == ("key", "of", "values", "types")
    assert db.schema().connections.columns == ("start", "type", "end", "edges")


def test_a_property_graph(db: graphdb.Database) -> None:
    db.query(
        "CREATE (a:Person {name: 'Ada', born: 1815})-[:KNOWS {since: 1833}]->(b:Person:Poet {name: 'George', born: 'early'}), "
        "(a)-[:LIVES_IN]->(:City {name: 'London', at: [1.5, 2.5]}), (b)-[:KNOWS]->()"
    )
    assert db.labels.fetchall() == [("Person", 2), ("City", 1), ("Poet", 1)]
    assert db.relationship_types.fetchall() == [("KNOWS", 2), ("LIVES_IN", 1)]
    assert db.property_keys.fetchall() == [
        ("at", "vertices", 1, ["LIST"]),
        ("born", "vertices", 2, ["INTEGER", "STRING"]),
        ("name", "vertices", 3, ["STRING"]),
        ("since", "edges", 1, ["INTEGER"]),
    ]
    assert sorted(db.schema().connections.fetchall()) == [
        ("Person", "KNOWS", "", 1),
        ("Person", "KNOWS", "Person", 1),
        ("Person", "KNOWS", "Poet", 1),
        ("Person", "LIVES_IN", "City", 1),
        ("Poet", "KNOWS", "", 1),
    ]
    assert "LIVES_IN" in repr(db.schema())
    assert "<table" in db.schema()._repr_html_()
    db.query("MATCH (c:City) DETACH DELETE c")
    assert db.labels.fetchall() == [("Person", 2), ("Poet", 1)]
    assert db.labels.to_polars()["vertices"].to_list() == [2, 1]


def test_rdf(tmp_path: Path) -> None:
    with opened(tmp_path) as db:
        assert (EX + "Person", 3) in db.labels.fetchall()
        assert dict(db.relationship_types.fetchall())[EX + "knows"] == 5
        keys = {key: types for key, _, _, types in db.property_keys}
        assert keys[EX + "age"] == ["INTEGER"]
        assert keys[EX + "both"] == ["STRING"]
        assert not any("rdf-syntax" in key for key in [*keys, *dict(db.relationship_types.fetchall())])
        db.query(f"PREFIX ex: <{EX}>")
        assert ("ex:Person", 3) in db.labels.fetchall()


@pytest.mark.parametrize("number", range(scaled(10)))
def test_counts_of_random_graphs(db: graphdb.Database, number: int) -> None:
    draw = random.Random(number)
    labels = [draw.sample(["A", "B", "C"], draw.randint(0, 2)) for _ in range(draw.randint(1, 8))]
    for i, some in enumerate(labels):
        db.query(f"CREATE ({''.join(':' + label for label in some)} {{i: {i}}})")
    edges = [
        (draw.randrange(len(labels)), draw.choice("RS"), draw.randrange(len(labels)))
        for _ in range(draw.randint(0, 12))
    ]
    for a, type, b in edges:
        db.query(f"MATCH (a {{i: {a}}}), (b {{i: {b}}}) CREATE (a)-[:{type}]->(b)")
    assert dict(db.labels.fetchall()) == Counter(label for some in labels for label in some)
    assert dict(db.relationship_types.fetchall()) == Counter(type for _, type, _ in edges)
    expected = Counter((s, type, e) for a, type, b in edges for s in labels[a] or [""] for e in labels[b] or [""])
    assert {row[:3]: row[3] for row in db.schema().connections} == expected
