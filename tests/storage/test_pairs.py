"""Cached pairs of an edge label, compared with a set of Python's."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphdb
from graphdb.storage.dictionary import known_hashes
from graphdb.storage.statistics import degrees
from graphdb.storage.statistics import pairs as module
from graphdb.storage.statistics.pairs import Pairs

pair = st.tuples(st.integers(0, 6), st.integers(0, 6))
batch = st.tuples(st.lists(pair, max_size=8), st.lists(pair, max_size=8))


def rows(found: list[tuple[int, int]]) -> np.ndarray:
    return np.array(found, np.int64).reshape(-1, 2)


@settings(deadline=None)
@given(st.sets(pair), st.lists(batch, max_size=8), st.sampled_from([0, 3, 1024]))
def test_pairs_follow_changes(there: set[tuple[int, int]], batches: list, least: int) -> None:
    subjects, objects = rows(sorted(there)).T
    found = Pairs(subjects, objects)
    before, module._LEAST = module._LEAST, least
    try:
        for come, gone in batches:
            found.change(rows(come), rows(gone))
            there = (there - set(gone)) | set(come)
            known = [found.objects_of(subject) for subject in range(8)]
            assert known == [{o for s, o in there if s == subject} for subject in range(8)]
            assert there == {(s, o) for s in range(8) for o in range(8) if found.has(s, o)}
    finally:
        module._LEAST = before


def test_they_are_what_the_file_has(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After writes of all kinds, rolled back ones, those of another connection, and loads among them."""
    monkeypatch.setattr(known_hashes, "LOOKS", 1)
    monkeypatch.setattr(module, "_BLOCK", 6)
    random, compared, remembered, around = np.random.default_rng(3), 0, 0, 0
    path = str(tmp_path / "graph.duckdb")
    other = [("<ex:5>", "<ex:knows>", "<ex:6>"), ("<ex:5>", "<ex:knows>", "<ex:99>")]
    with graphdb.connect(path) as db, graphdb.connect(path) as second:
        db.query("UNWIND range(0, 9) AS i CREATE (:P {n: i})")
        for step in range(120):
            monkeypatch.setattr(degrees, "LOOKS", step // 15 % 2 * 1000)  # all pairs of a label, or blocks of them
            s, o = (f"<ex:{each}>" for each in random.integers(0, 12, 2))
            n, m = random.integers(0, 10, 2).tolist()
            match int(random.integers(9)):
                case 0 | 1:
                    db.apply([(s, "<ex:knows>", o), (s, "<ex:likes>", o)], [(o, "<ex:knows>", s)])
                case 2:
                    db.query("MATCH (a {n: $n}), (b {n: $m}) CREATE (a)-[:knows]->(b)-[:likes]->(:Q {n: $n})", n=n, m=m)
                case 3:
                    db.query("MATCH (a {n: $n}) SET a:R REMOVE a:P", n=n)
                case 4:
                    db.query("MATCH (a {n: $n})-[e:knows]->() DELETE e", n=n)
                case 5:
                    db.query("BEGIN")
                    db.apply([(s, "<ex:knows>", o), (s, "<ex:new>", o)])
                    db.query("MATCH (a {n: $n}) SET a:P", n=n)
                    db.query("ROLLBACK" if n % 2 else "COMMIT")
                case 6:
                    with pytest.raises(graphdb.GraphDBError):
                        db.query("MATCH (a) WITH a LIMIT 3 SET a:S CREATE (a)-[:likes]->(:T) SET a.n = {x: 1}")
                case 7:
                    second.apply(other[:1], other[1:]) if n % 2 else second.apply(other[1:], other[:1])
                case 8:
                    (tmp_path / "more.nt").write_text(f"{s} <ex:knows> {o} .\n{o} <ex:likes> <ex:new{step}> .\n")
                    db.load(tmp_path / "more.nt")
            db._state.refresh()
            for label, found in db._state.degrees()._pairs.items():
                sql = "SELECT subject, object FROM _graphdb.triple WHERE label = $label"
                there = db._state.connection.rows(sql, {"label": label})
                subjects = sorted({subject for subject, _ in there} | {0, 1})
                known = [found.objects_of(subject) for subject in subjects]
                assert known == [{o for s, o in there if s == subject} for subject in subjects]
                compared += 1
            for label, blocks in db._state.degrees()._blocks.items():
                sql = "SELECT subject, object FROM _graphdb.triple WHERE label = $label"
                there = db._state.connection.rows(sql, {"label": label})
                read = [each for each in range(400) if blocks.have([each])]
                assert [*map(blocks.objects_of, read)] == [{o for s, o in there if s == subject} for subject in read]
                around += len(read)
            rows = db._state.connection.rows("SELECT iri, id FROM _graphdb.resource")
            literals = db._state.connection.rows("SELECT lexical, datatype, language, id, kind FROM _graphdb.literal")
            hashes = db._state.degrees().hashes
            remembered += len(hashes["resource"]._rows) + len(hashes["literal"]._rows)
            assert hashes["resource"]._rows.items() <= {(iri, (id,)) for iri, id in rows}
            assert hashes["literal"]._rows.items() <= {(row[:3], row[3:]) for row in literals}
    assert compared > 100
    assert around > 200
    assert remembered > 100
