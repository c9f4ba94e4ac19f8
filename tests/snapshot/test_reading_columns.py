"""Columns are read from the file by gathers: they have what DuckDB's joins say, however ids lie, and damage is noticed."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise, product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import graphdb
from graphdb.common import arrow
from graphdb.common.errors import StorageError
from graphdb.common.values.types import INTEGER, literal_sql
from graphdb.relational import snapshot as relational_snapshot
from graphdb.snapshot import columns, edges, large_columns, property_arrays
from graphdb.snapshot.columns import read_columns
from graphdb.snapshot.edge_values import EdgeValues
from graphdb.snapshot.large_columns import read_large_column
from graphdb.snapshot.property_arrays import LOOKS
from graphdb.snapshot.property_types import property_relation
from graphdb.storage import triples
from graphdb.storage.graph import data_graph
from graphdb.storage.persisted import files, room
from graphdb.storage.persisted.room import Room
from tests.fuzz import scaled

KEYS = {
    "number": lambda draw: draw.randrange(-50, 50),
    "share": lambda draw: draw.randrange(9) / 8,
    "text": lambda draw: draw.choice("abc") * draw.randrange(40),
    "true": lambda draw: draw.random() < 0.5,
    "day": lambda draw: dt.date(2000, 1, 1) + dt.timedelta(draw.randrange(99)),
    "at": lambda draw: dt.datetime(2000, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=draw.randrange(3)))),
}
LITERALS = 1 << 40


@pytest.fixture
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(threads=1) as database:
        yield database


def filled(db: graphdb.Database, draw: Random) -> None:
    """Create vertices in several statements, so that neither their triples nor their literals are in one order."""
    for _ in range(4):
        some = [{key: value(draw) for key, value in KEYS.items() if draw.random() < 0.6} for _ in range(60)]
        db.query("UNWIND $some AS each CREATE (a:A) SET a = each", some=some)
        db.query("UNWIND range(1, $n) AS i CREATE (:B {other: toString(i) + 'x'})", n=draw.choice([1, 300]))
        db.query("MATCH (a:A) WHERE a.number < -30 SET a.text = 'late', a.share = $share", share=draw.random())


def label_of(db: graphdb.Database, key: str) -> Any:
    return next(each for each in db._state.snapshot().names.edge_labels.values() if each.iri.endswith(f":{key}"))


def test_a_column_is_what_a_join_says(db: graphdb.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(db, Random(1))
    snapshot = db._state.snapshot()
    for key in KEYS:
        label = label_of(db, key)
        value = literal_sql("l", snapshot.properties.type_of(label))
        expected = snapshot.connection.rows(f"FROM ({property_relation(label, value)}) ORDER BY subject")
        for spread, marked, (gap, most) in product((1, 4, 10**6), (1, 64), ((16_384, 32), (1, 32), (1, 2), (3, 1))):
            monkeypatch.setattr(columns, "SPREAD", spread)
            monkeypatch.setattr(columns, "MARKED", marked)
            monkeypatch.setattr(columns, "_GAP", gap)
            monkeypatch.setattr(columns, "_RANGES", most)
            found = read_columns(snapshot.connection, snapshot.store.ids, [label.id], value, 1 << 20)
            assert found is not None
            vertices, values = found[0].rows()
            assert list(zip(vertices.tolist(), arrow.pylist(values), strict=True)) == expected
        assert read_columns(snapshot.connection, snapshot.store.ids, [label.id], value, 0) is None


def test_a_column_read_in_passes_is_what_a_join_says(
    db: graphdb.Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Vertices and literals lie close together or far apart, arrays are in memory or mapped, and batches are small."""
    filled(db, Random(2))
    snapshot = db._state.snapshot()
    monkeypatch.setattr(large_columns, "BATCH", 64)
    monkeypatch.setattr(room, "_OFTEN", 2)
    for key in KEYS:
        label = label_of(db, key)
        value = literal_sql("l", snapshot.properties.type_of(label))
        expected = snapshot.connection.rows(f"FROM ({property_relation(label, value)}) ORDER BY subject")
        given = snapshot.connection, snapshot.store.ids, label.id, value
        for spread, memory in product((0, 4, 10**6), (0, 2000, 1 << 20)):
            monkeypatch.setattr(large_columns, "SPREAD", spread)
            monkeypatch.setattr(large_columns, "MARKED", 10**6)
            column = read_large_column(*given, Room(tmp_path, memory, lambda: 1 << 30))
            assert column is not None
            vertices, values = column.rows()
            assert list(zip(vertices.tolist(), arrow.pylist(values), strict=True)) == expected
            assert files.unmapped_bytes(column) <= memory
            if not memory:
                assert read_large_column(*given, Room(None, memory)) is None, "there is no room"
                assert read_large_column(*given, Room(tmp_path, memory, lambda: 100)) is None, "nor on the disk"
        monkeypatch.setattr(large_columns, "MARKED", 1 / 1000)
        assert read_large_column(*given, Room(tmp_path, 1 << 20)) is None, "the literals lie far apart"
    assert not [*tmp_path.iterdir()], "the files have no names"


@pytest.mark.parametrize("most", [1, 2, 5, 1000])
def test_ranges_leave_out_the_widest_gaps(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All ids are in one range each, and no choice of so many ranges has less between them."""
    monkeypatch.setattr(columns, "_GAP", 3)
    monkeypatch.setattr(columns, "_RANGES", most)
    for seed in range(40):
        draw = Random(seed)
        ids = sorted(draw.sample(range(300), draw.randrange(1, 60)))
        begins, ends = (each.tolist() for each in columns._ranges(np.array(ids)))
        inside = [id for begin, end in zip(begins, ends, strict=True) for id in range(begin, end + 1)]
        assert inside == sorted(set(inside))
        assert set(ids) <= set(inside)
        gaps = sorted((b - a for a, b in pairwise(ids) if b - a > 3), reverse=True)[: most - 1]
        assert len(begins) == len(gaps) + 1
        assert len(inside) == ids[-1] - ids[0] + 1 - sum(gap - 1 for gap in gaps)


@pytest.mark.parametrize(
    "damage",
    [
        f"UPDATE _graphdb.literal SET id = id + 1 WHERE id = {LITERALS} + 3",
        f"DELETE FROM _graphdb.literal WHERE id = {LITERALS} + 3",
        f"UPDATE _graphdb.triple SET object = {LITERALS} + 9000 WHERE object = {LITERALS} + 3",
        "UPDATE _graphdb.triple SET subject = -1 WHERE subject = 7",
        "UPDATE _graphdb.triple SET subject = 100000 WHERE subject = 7",
        "UPDATE _graphdb.triple SET subject = 6 WHERE subject = 7",
    ],
)
def test_damage_is_noticed(db: graphdb.Database, damage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    db.query("UNWIND range(1, 50) AS i CREATE (:A {key: 'x' + i})")
    db.query("CREATE (:B {other: 'y'})")
    snapshot, label = db._state.snapshot(), label_of(db, "key")
    snapshot.connection.raw.execute(damage)
    for labels in ([label.id], [label.id, label_of(db, "other").id]):
        with pytest.raises(StorageError):
            read_columns(snapshot.connection, snapshot.store.ids, labels, "l.lexical", 1 << 20)
    for spread, value in product((0, large_columns.SPREAD), ("l.text", "l.id")):
        monkeypatch.setattr(large_columns, "SPREAD", spread)
        with pytest.raises(StorageError):
            read_large_column(snapshot.connection, snapshot.store.ids, label.id, value, Room(None, 1 << 20))


def test_properties_that_are_read_together_are_those_read_alone(
    db: graphdb.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice, texts, numbers = Random(3), [f"{'long ' * (i % 3)}{i}" for i in range(20)], range(9)
    some: dict[str, Any] = {"a": texts, "b": texts, "c": numbers, "d": numbers}
    rows = [{key: dice.choice([None, dice.choice(values)]) for key, values in some.items()} for _ in range(60)]
    rows[0] = {"a": "x", "b": "y", "c": 1, "d": 2, "e": True}
    db.query("UNWIND $rows AS row CREATE (n:N) SET n = row, n.number = 1", rows=rows)
    read: list[int] = []

    def reading(*arguments: Any) -> Any:
        read.append(len(arguments[2]))
        return read_columns(*arguments)

    monkeypatch.setattr(property_arrays, "read_columns", reading)
    names = sorted("abcde")
    found = db.query("MATCH (n:N) RETURN " + ", ".join(f"n.{name}" for name in names)).fetchall()
    assert Counter(found) == Counter(tuple(row.get(name) for name in names) for row in rows)
    assert sorted(read) == [1, 2, 2]
    snapshot = db._state.snapshot()
    for name in names:
        column = snapshot.properties.array(label_of(db, name))
        assert column is not None
        assert column.nbytes < 2500


@pytest.mark.parametrize(("small", "looks"), [(property_arrays.SMALL, LOOKS), (99, 10)])
def test_a_handful_is_looked_up_before_all_are_read(
    db: graphdb.Database, monkeypatch: pytest.MonkeyPatch, small: int, looks: int
) -> None:
    """Of many values as often as takes as long as to read them all."""
    monkeypatch.setattr(property_arrays, "_LARGE", 50)
    monkeypatch.setattr(property_arrays, "SMALL", small)
    monkeypatch.setattr(property_arrays, "_PER_LOOK", 10)
    db.query("UNWIND range(1, 100) AS i CREATE (:A {id: i, name: 'x' + i})")
    read = []

    def reading(*arguments: Any) -> Any:
        read.extend(arguments[2])
        return read_columns(*arguments)

    monkeypatch.setattr(property_arrays, "read_columns", reading)
    for i in range(looks + 3):
        assert db.query("MATCH (a:A {id: $i}) RETURN a.name", i=i).fetchall() == [(f"x{i}",)] * (i > 0)
        assert read == [label_of(db, "name").id] * (i >= looks)


def test_large_columns_that_push_each_other_out_are_left_to_duckdb(
    db: graphdb.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(property_arrays, "SMALL", 99)
    monkeypatch.setattr(property_arrays, "_READ_BYTES", 8)
    db.query("UNWIND range(1, 100) AS i CREATE (:A {id: i, next: i * 7, last: i / 2})")
    properties = db._state.snapshot().properties
    properties._memory = 900  # bytes, of which a column takes 800
    read = []

    def reading(*arguments: Any) -> Any:
        read.extend(arguments[2])
        return read_columns(*arguments)

    monkeypatch.setattr(property_arrays, "read_columns", reading)
    for _ in range(5):
        for key, total in (("id", 5050), ("next", 35350), ("last", 2500)):
            assert db.query(f"MATCH (a:A) RETURN sum(a.{key})").scalar() == total
    labels = [label_of(db, key) for key in ("id", "next", "last")]
    assert {label.id: read.count(label.id) for label in labels} == {label.id: 2 for label in labels}
    assert sum(map(properties.in_memory, labels)) <= 1
    ids = arrow.array(np.arange(0, 2000, 7))
    for label in labels:
        known = dict(db._state.connection.rows(property_relation(label, literal_sql("l", INTEGER))))
        assert arrow.pylist(properties.gather(label, ids)) == [known.get(i) for i in range(0, 2000, 7)]


def test_all_properties_are_columns_where_they_fit_the_memory(
    db: graphdb.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(property_arrays, "SMALL", 10)
    db.query("UNWIND range(1, 9) AS i CREATE (:A {id: i, name: 'x' + i})")
    expected = [({"id": i, "name": f"x{i}"},) for i in range(1, 10)]
    for memory, in_python in ((18 * 16 - 1, True), (9 * 64, False)):
        db._state.snapshot().properties._memory = memory
        text = f"MATCH (a:A) RETURN properties(a) ORDER BY a.id LIMIT {memory}"
        assert ("computed in Python" in str(db.query("EXPLAIN " + text).fetchall())) == in_python
        assert db.query(text).fetchall() == expected


def test_members_of_labels_are_read_one_by_one(db: graphdb.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_graph, "QUICK", 10)
    monkeypatch.setattr(data_graph, "_LABELS_READ", 3)
    for _ in range(2):
        for label in "ABCDE":
            db.query(f"UNWIND range(1, 40) AS i CREATE (:{label} {{id: i}})")
    graph = db._state.snapshot().graph
    for number, label in enumerate("ABCDE"):
        assert db.query(f"MATCH (a:{label}) WHERE a.id < 30 RETURN count(*)").scalar() == 58
        assert graph.has_partition((graph.type_label,), "in") == (number >= 3)
    db.query("MATCH (a:A {id: 3}) REMOVE a:A")
    assert [db.query(f"MATCH (a:{label}) RETURN count(*)").scalar() for label in "AB"] == [78, 80]
    db.query("MATCH (a:B {id: 3}) SET a:A")
    assert [db.query(f"MATCH (a:{label}) RETURN count(*)").scalar() for label in "AB"] == [80, 80]


@pytest.mark.parametrize("seed", range(scaled(1)))
@pytest.mark.parametrize("how", ["joined", "merged", "mapped"])
def test_values_of_edges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, how: str) -> None:
    """Edges come in any order, lack values and are parallel in the end; DuckDB joins, or the arrays are merged, which
    are read into files where they do not fit into memory.
    """
    draw, streamed = Random(seed), Counter[bool]()
    if how == "joined":
        monkeypatch.setattr(EdgeValues, "places_of", lambda *_: None)
    if how == "mapped":
        monkeypatch.setattr(relational_snapshot, "Edges", lambda *given: edges.Edges(*given[:5], 0, *given[6:]))
        monkeypatch.setattr(edges, "BATCH", 16)
    columns_into = Room.columns

    def counted(self: Room, *given: Any) -> Any:
        streamed[True] += 1
        return columns_into(self, *given)

    monkeypatch.setattr(Room, "columns", counted)
    with graphdb.connect(tmp_path / "graph.duckdb", threads=1) as db:
        check_values_of_edges(db, draw)
    assert streamed[True] > 0 if how == "mapped" else not streamed


def check_values_of_edges(db: graphdb.Database, draw: Random) -> None:
    db.query("UNWIND range(1, 30) AS i CREATE (:A {id: i})")
    known: list[tuple[int, int, str, Any]] = []
    create = "UNWIND $rows AS r MATCH (a:A {id: r[0]}), (b:A {id: r[1]}) CREATE (a)-[e:%s]->(b) SET e.w = r[2]"
    for step in range(5):
        for type in ("R", "S"):
            new = {(draw.randrange(1, 31), draw.randrange(1, 31)) for _ in range(20)}
            if step < 4:
                new -= {(a, b) for a, b, t, _ in known if t == type}
            rows = [(a, b, draw.choice([None, draw.randrange(9), draw.randrange(9)])) for a, b in new]
            draw.shuffle(rows)
            db.query(create % type, rows=rows)
            known += [(a, b, type, w) for a, b, w in rows]
        for types in ("R", "S", "R|S"):
            expected = [row for row in known if row[2] in types]
            found = db.query(f"MATCH (a)-[e:{types}]->(b) RETURN a.id, b.id, type(e), e.w").fetchall()
            assert sorted(found, key=repr) == sorted(expected, key=repr)


def test_triples_are_read_into_files_where_they_do_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are sorted where they come in another order, and nothing is left of the files."""
    draw, known = Random(5), set[tuple[int, int]]()
    monkeypatch.setattr(triples, "_MANY", 20)
    monkeypatch.setattr(triples, "_COPIED", 10)
    monkeypatch.setattr(triples, "_BATCH", 16)
    read, columns_into = [], Room.columns

    def counted(self: Room, *given: Any) -> Any:
        self._left = 0
        read.append(columns_into(self, *given))
        return read[-1]

    monkeypatch.setattr(Room, "columns", counted)
    with graphdb.connect(tmp_path / "graph.duckdb", threads=1) as db:
        db.query("UNWIND range(1, 30) AS i CREATE (:A {id: i})")
        for _ in range(4):
            new = {(draw.randrange(1, 31), draw.randrange(1, 31)) for _ in range(40)} - known
            known |= new
            db.query("UNWIND $rows AS r MATCH (a:A {id: r[0]}), (b:A {id: r[1]}) CREATE (a)-[:R]->(b)", rows=[*new])
    with graphdb.connect(tmp_path / "graph.duckdb", threads=1) as db:
        read.clear()
        found = db.query("MATCH (a)-[:R]->(b) RETURN a.id, b.id").fetchall()
        assert sorted(found) == sorted(known)
        assert read
        assert all(files.unmapped_bytes(column) == 0 for columns in read for column in columns)
        assert [each.name for each in tmp_path.iterdir()] == ["graph.duckdb"]


def test_columns_larger_than_the_memory_are_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are read in passes, once: the others do not push them out, and of texts none is looked up."""
    read = Counter[int]()

    def counted(connection: Any, ids: Any, label: int, *given: Any) -> Any:
        read[label] += 1
        return read_large_column(connection, ids, label, *given)

    monkeypatch.setattr(property_arrays, "read_large_column", counted)
    monkeypatch.setattr(property_arrays, "SMALL", 100)
    monkeypatch.setattr(property_arrays, "_LARGE", 10)
    monkeypatch.setattr(files, "_MAPPED", 1)
    with graphdb.connect(tmp_path / "graph.duckdb", threads=1) as db:
        db.query("UNWIND range(1, 500) AS i CREATE (:A {number: i, share: i / 4.0, text: 'x' + toString(i)})")
        properties = db._state.snapshot().properties
        properties._memory = 1000  # 500 numbers take four times as much
        for _ in range(LOOKS + 1):
            found = db.query("MATCH (a:A) RETURN sum(a.number) AS n, max(a.share) AS m, count(a.text) AS t").fetchall()
            assert found == [(125_250, 125.0, 500)]
            assert db.query("MATCH (a:A {number: 77}) RETURN a.text").scalar() == "x77"
        assert sorted(read.values()) == [1, 1, 1]
        looks = properties._looks.total()
        assert db.query("MATCH (a:A {number: 78}) RETURN a.text").scalar() == "x78"
        assert properties._looks.total() == looks
        assert None not in [properties.array(label_of(db, key)) for key in ("number", "text")]
        db.query("MATCH (a:A {number: 7}) SET a.number = -7, a.text = 'seven'")
        found = db.query("MATCH (a:A) WHERE a.number < 4 RETURN a.number AS n, a.text ORDER BY n").fetchall()
        assert found == [(-7, "seven"), (1, "x1"), (2, "x2"), (3, "x3")]


def test_texts_that_do_not_fit_are_looked_up_for_a_handful(
    db: graphdb.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No table of all of them is made for it."""
    monkeypatch.setattr(property_arrays, "SMALL", 50)
    db.query("UNWIND range(1, 100) AS i CREATE (:A {id: i, text: 'text ' + toString(i)})")
    db.query("UNWIND range(101, 110) AS i CREATE (:A {id: i, other: 'other'})")
    properties = db._state.snapshot().properties
    properties._memory = 1000  # bytes, of which 100 texts may take 6,400
    text = label_of(db, "text").id
    for i in range(1, 10):
        found = db.query("MATCH (a:A) WHERE a.id IN [$i, 105] RETURN a.text ORDER BY a.id", i=i).fetchall()
        assert found == [(f"text {i}",), (None,)]
        found = db.query("MATCH (a:A {id: $i}) RETURN coalesce(a.text, a.other)", i=100 + i).fetchall()
        assert found == [("other",)]
        assert text not in properties._tables
    for query in ("MATCH (a:A) RETURN a.id, a.text", "MATCH (a:A) WITH a ORDER BY a.id LIMIT 40 RETURN a.id, a.text"):
        found = db.query(query).fetchall()
        count = 40 if "LIMIT" in query else 110
        assert sorted(found) == [(i, f"text {i}" if i <= 100 else None) for i in range(1, count + 1)]
