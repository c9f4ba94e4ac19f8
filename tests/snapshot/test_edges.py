"""Edges with properties: what is derived of them stays right while vertices, literals and other edges come and go."""

from __future__ import annotations

import random

import numpy as np
import pytest

import graphdb
from graphdb.snapshot import edges
from graphdb.snapshot.edge_values import EdgeValues
from graphdb.storage.graph.edges import EdgeTable
from tests.fuzz import scaled


@pytest.mark.parametrize("seed", range(scaled(8)))
def test_edges_are_followed(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two labels with properties, dense and sparse, parallel edges and deletions, between writes of all other sorts."""
    draw = random.Random(seed)
    monkeypatch.setattr(edges, "_ONE_OF", 1)
    monkeypatch.setattr(edges, "_LARGE", draw.choice([0, 50_000]))
    with graphdb.connect(threads=1) as db:
        db.query("UNWIND range(0, 9) AS i CREATE (:V {id: i})")
        model: dict[str, list[tuple[int, int, object]]] = {"A": [], "B": []}
        vertices = list(range(10))

        def add(label: str, start: int, end: int, weight: object) -> None:
            db.query(
                f"MATCH (a:V {{id: $a}}), (b:V {{id: $b}}) CREATE (a)-[:{label} {{w: $w}}]->(b)",
                a=start,
                b=end,
                w=weight,
            )
            model[label].append((start, end, weight))

        for i in range(20):
            add("A", draw.choice(vertices), draw.choice(vertices), i)
        add("B", 0, 1, 5)
        for step in range(25):
            match draw.randrange(8):
                case 0 | 1:
                    db.query("CREATE (:V {id: $id, text: $t})", id=100 + step, t=f"text {step}")
                    vertices.append(100 + step)
                case 2:
                    db.query("MATCH (v:V {id: $id}) SET v.text = $t", id=draw.choice(vertices), t=f"t{step}")
                case 3:
                    add(draw.choice("AB"), draw.choice(vertices), draw.choice(vertices), step)
                case 4:
                    add("B", draw.choice(vertices), draw.choice(vertices), draw.choice([1, 2.5, "w"]))
                case 5:
                    label = draw.choice("AB")
                    if model[label]:
                        start, end, _ = draw.choice(model[label])
                        text = f"MATCH (:V {{id: $a}})-[e:{label}]->(:V {{id: $b}}) DELETE e"
                        db.query(text, a=start, b=end)
                        model[label] = [edge for edge in model[label] if edge[:2] != (start, end)]
                case 6:
                    gone = draw.choice(vertices)
                    db.query("MATCH (v:V {id: $id}) DETACH DELETE v", id=gone)
                    vertices.remove(gone)
                    for label in model:
                        model[label] = [edge for edge in model[label] if gone not in edge[:2]]
                case 7:
                    db.query(
                        "MATCH (a:V {id: $a}), (b:V {id: $b}) CREATE (a)-[:PLAIN]->(b)", a=vertices[0], b=vertices[-1]
                    )
            for label in draw.sample("AB", draw.randrange(1, 3)):
                found = db.query(f"MATCH (a)-[e:{label}]->(b) RETURN a.id, b.id, e.w").fetchall()
                assert sorted(found, key=repr) == sorted(model[label], key=repr), (step, label)
            at = draw.choice(vertices)
            found = db.query("MATCH (:V {id: $id})-[e:A|B]->(b) RETURN b.id, e.w, type(e)", id=at).fetchall()
            expected = [(end, w, label) for label, edges in model.items() for start, end, w in edges if start == at]
            assert sorted(found, key=repr) == sorted(expected, key=repr), step


def test_a_new_vertex_leaves_the_edges_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first read after a write that no edge has to do with reads no edges."""
    text = "MATCH (a:V {id: 3})-[e:A]-(b) RETURN b.id, e.w ORDER BY b.id"
    with graphdb.connect(threads=1) as db:
        db.query("UNWIND range(0, 200) AS i CREATE (:V {id: i})")
        db.query("MATCH (a:V), (b:V) WHERE b.id = a.id + 1 CREATE (a)-[:A {w: a.id}]->(b)")
        expected = db.query(text).fetchall()
        assert expected == [(2, 2), (4, 3)]
        read = EdgeTable._of
        monkeypatch.setattr(EdgeTable, "_of", lambda *_: pytest.fail("edges were read anew"))
        db.query("CREATE (:V {id: 999, name: 'new'})-[:PLAIN]->(:W)")
        assert db.query(text).fetchall() == expected
        monkeypatch.setattr(EdgeTable, "_of", read)
        db.query("MATCH (a:V {id: 3}), (b:V {id: 999}) CREATE (b)-[:A {w: -1}]->(a)")
        assert db.query(text).fetchall() == [*expected, (999, -1)]


@pytest.mark.parametrize("seed", range(scaled(20)))
def test_which_value_is_of_which_edge(seed: int) -> None:
    """Values of a property in any order, of some of the edges of two labels, and of edges of a third one."""
    draw = random.Random(seed)
    there = sorted({(draw.randrange(1, 3), draw.randrange(9), draw.randrange(9)) for _ in range(40)})
    rows = [(*edge, 0, value) for value, edge in enumerate(there) if draw.randrange(3)]
    others = [(3, draw.randrange(9), start, 0, 100 + start) for start in range(draw.randrange(4))]
    rows = draw.sample([*rows, *others], len(rows) + len(others))
    found = EdgeValues(*np.array(rows, np.int64).reshape(-1, 5).T)
    ends = {label: np.array([edge[1:] for edge in there if edge[0] == label]).reshape(-1, 2).T for label in (1, 2)}
    table = EdgeTable.of_triples((1, 2), lambda label: tuple(ends[label]), 9, np.int32)
    mine = found.of(np.array([1, 2]))
    places = mine.places_of(table, 9)
    assert places is not None
    expected = {row[:3]: row[4] for row in rows}
    assert [int(mine.values[at]) if at >= 0 else None for at in places] == [expected.get(edge) for edge in there]
    for vertices in (9, 1 << 40):  # too many for a number for each edge
        assert not found.several(vertices)
        if rows:
            label, start, end, ordinal, _ = draw.choice(rows)
            again = [*rows, (label, start, end, ordinal, 999)]
            assert EdgeValues(*np.array(draw.sample(again, len(again))).T).several(vertices)
            parallel = [*rows, (label, start, end, 1, 999)]
            assert not EdgeValues(*np.array(parallel).T).several(vertices)
