"""Derived structures follow changes: what is taken over equals what is derived anew, however the graph changed."""

from __future__ import annotations

import pathlib
from collections.abc import Set as AbstractSet
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphdb
from graphdb.common.values.terms import LITERAL_BASE
from graphdb.storage.graph import data_graph, derived_structures
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.changes import Changes, Sizes
from graphdb.storage.graph.data_graph import DataGraph
from graphdb.storage.graph.following import partitions
from graphdb.storage.graph.following import stale as stale_structures
from graphdb.storage.graph.following.stale import StaleStructures
from graphdb.storage.graph.in_place import spans
from graphdb.storage.graph.pcsr import Partition
from graphdb.storage.statistics import labels as statistics
from graphdb.storage.statistics import tables as label_tables
from tests.fuzz import scaled
from tests.interrupted import interrupted

TYPE = 0
resources = st.integers(1, 70)
literals = st.integers(LITERAL_BASE, LITERAL_BASE + 9)
triples = st.sets(st.tuples(st.sampled_from([TYPE, 1, 2]), resources, st.one_of(resources, literals)), max_size=40)

Triples = AbstractSet[tuple[int, int, int]]
KEYS: list[tuple[str, tuple[Any, ...]]] = [
    *(("partition", ((label,), direction)) for label in range(3) for direction in ("out", "in", "both")),
    *(("partition", (labels, "out")) for labels in ((1, 2), None)),
    *(("signature", (label, direction)) for label in (1, 2) for direction in ("out", "in")),
    *(("members", (vertex,)) for vertex in (1, 2, 3)),
    ("oriented", ((1,),)),
    ("universe", ()),
    *(("has_loops", (labels,)) for labels in ((1,), (2,), (0, 1, 2), None)),
]


def graph_of(data: Triples, layer: Any) -> DataGraph:
    """The graph of triples of term ids, with as many terms as the largest ids say."""
    most = max([3, *(s for _, s, _ in data), *(o for *_, o in data if o < LITERAL_BASE)]) + 1
    values = max((o - LITERAL_BASE + 1 for *_, o in data if o >= LITERAL_BASE), default=0)
    rows = np.array(sorted(data), np.int64).reshape(-1, 3)
    objects = np.where(rows[:, 2] >= LITERAL_BASE, rows[:, 2] - LITERAL_BASE + most, rows[:, 2])
    return DataGraph(ArraySource(rows[:, 1], rows[:, 0], objects, most, values, TYPE), layer=layer)


def edges(partition: Partition, vertices: int) -> list[Any]:
    """What a partition says, whatever its offset layer."""
    neighbours = [partition.neighbours_of(vertex).tolist() for vertex in range(vertices)]
    codes = [
        [partition.codes_of(v, other).tolist() for other in neighbours[v]] if partition.codes is not None else []
        for v in range(vertices)
    ]
    return [neighbours, codes, partition.keys.tolist()]


def bounded(partition: Partition, vertices: int) -> None:
    """What a partition says of all its lists may be that of former ones: it is never too little."""
    lists = [partition.neighbours_of(vertex).tolist() for vertex in range(vertices)]
    assert partition.max_degree >= max(map(len, lists), default=0)
    assert partition.loops or not any(vertex in own for vertex, own in enumerate(lists))
    several = [
        len(partition.codes_of(v, u)) > 1 for v, own in enumerate(lists) for u in own if partition.codes is not None
    ]
    assert not partition.simple or not any(several)


def arrays(found: Any) -> list[Any]:
    """All arrays and numbers of a derived structure."""
    if isinstance(found, np.ndarray | list):
        return list(found)
    fields = (name for name in type(found).__dataclass_fields__ if name != "row")
    values = (getattr(found, name) for name in fields)
    return [value.tolist() if isinstance(value, np.ndarray) else value for value in values]


@settings(max_examples=scaled(60), deadline=None)
@given(
    triples,
    st.lists(st.tuples(triples, triples, st.sampled_from([0, 1, 3])), min_size=1, max_size=3),
    st.sampled_from([None, "direct"]),
)
def test_what_follows_equals_what_is_derived(
    data: Triples, steps: list[tuple[Triples, Triples, int]], layer: Any
) -> None:
    """When it is asked for, or all together before, on one thread or on several."""
    graph = graph_of(data, layer)
    for name, arguments in KEYS:
        getattr(graph, name)(*arguments)
    for number, (wanted, unwanted, threads) in enumerate(steps):
        removed = data & unwanted
        left = data - removed
        added = wanted - left
        # Terms stay when their triples go: the dictionary never shrinks.
        data = left | added
        follower = graph_of(data, layer)
        if follower.resources < graph.resources or follower.source.literals < graph.source.literals:
            return
        changes = Changes(*(np.array(sorted(rows), np.int64).reshape(-1, 3) for rows in (removed, added)))
        follower.follow(graph, [changes])
        if threads:
            with (
                mock.patch.object(derived_structures, "_MANY", 0),
                mock.patch.object(spans, "_SLACK", 0),
                mock.patch.multiple(spans, _LISTS=3, _ENTRIES=4),
            ):
                follower.catch_up(threads)
        fresh = graph_of(data, layer)
        for name, arguments in KEYS[number % 2 :: 2]:
            found, expected = getattr(follower, name)(*arguments), getattr(fresh, name)(*arguments)
            if name == "partition":  # in either layer
                bounded(found, fresh.vertices)
                found, expected = (edges(structure, fresh.vertices) for structure in (found, expected))
            same = found == expected if name == "has_loops" else arrays(found) == arrays(expected)
            assert same, (name, arguments)
        graph = follower


def test_a_graph_that_follows_without_a_change_has_all() -> None:
    data = {(TYPE, 1, 5), (1, 1, 2), (2, 2, 3)}
    graph, later = graph_of(data, None), graph_of(data, None)
    for labels in ((1,), None):
        for direction in ("out", "in", "both"):
            graph.partition(labels, direction)
    later.follow(graph, [])
    for labels in ((1,), None):
        for direction in ("out", "in", "both"):
            found = later.partition(labels, direction)
            assert edges(found, 6) == edges(graph_of(data, None).partition(labels, direction), 6)


def test_a_signature_stays_where_its_label_does_not_change() -> None:
    """The same array, so that copies of it elsewhere stay, too."""
    data = {(1, 1, 2), (1, 2, 3), (2, 3, 3), (TYPE, 1, 2)}
    graph = graph_of(data, None)
    before = graph.signature(1, "out")
    follower = graph_of(data | {(2, 1, 1)}, None)
    follower.follow(graph, [Changes(added=np.array([(2, 1, 1)], np.int64))])
    assert follower.signature(1, "out") is before


def test_whether_there_are_loops_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    data = {(1, 1, 2), (1, 2, 3), (2, 3, 3)}
    graph = graph_of(data, None)
    assert [graph.has_loops(labels) for labels in ((1,), (2,), None)] == [False, True, True]
    follower = graph_of(data | {(1, 3, 1), (2, 1, 1)}, None)
    follower.follow(graph, [Changes(added=np.array([(1, 3, 1), (2, 1, 1)], np.int64))])
    monkeypatch.setattr(ArraySource, "edges", None)
    monkeypatch.setattr(ArraySource, "any_edges", None)
    assert [follower.has_loops(labels) for labels in ((1,), (2,), None)] == [False, True, True]


def test_queries_between_changes(tmp_path: pathlib.Path) -> None:
    """Loads and statements that write, with queries between them: as from a file that is opened anew."""
    queries = (
        "MATCH (a)-[:knows]->(b) RETURN a.name, b.name",
        "MATCH (a:Person) WHERE a.age > 3 RETURN a.name, a.age",
        "MATCH (a:Person)-[:knows]->()-[:knows]->(b) RETURN a.name, b.name",
        "MATCH (a)-[e]->(b) RETURN count(*)",
        "MATCH (a) RETURN count(*)",
    )
    name, age, knows = (f"urn:graphdb:{word}" for word in ("name", "age", "knows"))
    lines = [
        f'<ex:{i}> <{name}> "n{i}" .\n<ex:{i}> <{age}> "{i}"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
        f"<ex:{i}> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <urn:graphdb:Person> .\n"
        f"<ex:{i}> <{knows}> <ex:{i * 7 % 5}> .\n"
        for i in range(9)
    ]
    steps: list[Any] = [
        "".join(lines[:3]),
        f"<ex:0> <{knows}> <ex:2> .\n",
        "MATCH (a:Person {name: 'n1'}) SET a.age = 9, a.name = 'm1'",
        "CREATE (:Person {name: 'new', age: 5})-[:knows]->(:Person {name: 'newer'})",
        "".join(lines[3:7]),
        "MATCH (a {name: 'n0'})-[e:knows]->() DELETE e",
        "MATCH (a {name: 'new'}) DETACH DELETE a",
        "BEGIN; CREATE (:Person {name: 'lost', age: 7}); ROLLBACK",
        "MERGE (a:Person {name: 'n8'}) SET a.age = 4",
        "".join(lines[7:]),
    ]
    path = tmp_path / "db.duckdb"
    with graphdb.connect(path) as db:
        for step in steps:
            if step.startswith("<"):
                (tmp_path / "part.nt").write_text(step)
                db.load(tmp_path / "part.nt")
            else:
                db.query(step)
            found = [sorted(db.query(query).fetchall(), key=str) for query in queries]
            with graphdb.connect(path) as again:
                assert found == [sorted(again.query(query).fetchall(), key=str) for query in queries], step


def test_what_point_writes_change_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    """Names, vertex sets, property columns and statistics follow single writes, and go back with a transaction."""
    monkeypatch.setattr(label_tables, "MOST", 100)
    file = tmp_path / "points.duckdb"
    with graphdb.connect(file, device="cpu") as db:

        def count(text: str) -> int:
            return int(db.query(f"MATCH {text} RETURN count(*)").scalar())

        for i in range(6):
            db.query("CREATE (:T {k: $i, name: 'n'})-[:R {w: $i}]->(:P {x: $i})", i=i)
            db.query("MATCH (n:T {k: $i}) SET n.k = $i + 100, n:Seen", i=i)
            assert (count(f"(:T {{k: {i}}})"), count(f"(:Seen {{k: {i + 100}}})"), count("(:T)-[:R]->(:P)")) == (
                0,
                1,
                i + 1,
            )
        db.sql("BEGIN")
        db.query("MATCH (n:T {k: 100}) SET n.k = 'text', n.new = 1.5")
        db.query("MATCH (n:T {k: 101}) DETACH DELETE n")
        db.query("CREATE (:Other {k: 7})")
        assert (count("(:T {k: 'text'})"), count("(:T {k: 100})"), count("(:T)"), count("(:Other {k: 7})")) == (
            1,
            0,
            5,
            1,
        )
        db.sql("ROLLBACK")
        assert (count("(:T {k: 100})"), count("(:T)"), count("(n) WHERE n.new = 1.5"), count("(:Other)")) == (
            1,
            6,
            0,
            0,
        )
        db.query("MATCH (n:T {k: 103}) DETACH DELETE n")
        db.query("MATCH (n:T {k: 104}) REMOVE n.name, n:Seen")
        db.query("MERGE (n:T {k: 105}) ON MATCH SET n.k = [1, 2]")
        expected = {("T", 5), ("P", 6), ("Seen", 4)}
        assert {*db.vertex_labels()} == expected
        raw = db._state.connection.raw
        labels = [label_tables.current(name) for name in ("edge_label", "vertex_label")]
        known = [sorted(raw.execute(f"FROM {rows}").fetchall()) for rows in labels]
        known += [sorted(raw.execute(label_tables.summed(name)).fetchall()) for name in label_tables.APPENDED]
        raw.begin()
        statistics.refresh(raw, np.arange(1000))
        tables = ("edge_label", "vertex_label", *label_tables.APPENDED)
        assert known == [sorted(raw.execute(f"FROM _graphdb.{name}").fetchall()) for name in tables]
        raw.rollback()
        [(length,)] = raw.execute("SELECT sum(length(rows)) FROM _graphdb.counted").fetchall()
        assert length <= 10 * 100
    with graphdb.connect(file, device="cpu") as db:
        assert {*db.vertex_labels()} == expected
        assert db.query("MATCH (n:T {k: 100}) RETURN n.name").scalar() == "n"


def test_an_interrupt_while_changes_are_taken_over_leaves_none_half_taken() -> None:
    """Ctrl-C at every sixth line of it: what was derived before is derived anew, and misses nothing."""
    files = ("following/stale.py", "snapshot/key_index.py")
    reads = [
        "MATCH (a:T)-[:R]->(b)-[:R]->(c:T) RETURN count(*)",
        "MATCH (a:T {k: 1})-[r:R]->() RETURN sum(r.w)",
        "MATCH (a:T) RETURN sum(a.k)",
    ]
    with graphdb.connect(device="cpu") as db:
        db.query("UNWIND range(0, 9) AS i CREATE (:T {k: i})-[:R {w: i}]->(:T {k: i})")
        at, stopped = 0, True
        while stopped:
            for read in reads:
                db.query(read)
            db.query("MATCH (a:T {k: 1}) WITH a LIMIT 1 CREATE (a)-[:R {w: 1}]->(:T {k: $k})", k=at)
            stopped = interrupted(lambda: db.query(reads[0]), at, files) is not None
            for after in ("CREATE (:T {k: 1})-[:R {w: 5}]->(:T {k: 0})", None):
                found = [db.query(read).scalar() for read in reads]
                if after is not None:
                    db.query(after)
            db._state.forget()
            assert found == [db.query(read).scalar() for read in reads], f"after an interrupt at line {at}"
            at += 6
        assert at > 60


def test_a_statement_that_wrote_few_rows_may_write_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphdb.writing.reading.LEAST", 3)
    with graphdb.connect(device="cpu") as db:
        db.query("UNWIND range(1, 9) AS i CREATE (:T {k: i / 4})")
        text = "MATCH (n:T {k: $k}) SET n.seen = n.k"
        for k, rows in ((0, 3), (1, 4), (2, 2), (0, 3)):
            assert db.query(text, k=k).message == f"{rows} properties set"
        assert db.query("MATCH (n:T) WHERE n.seen = n.k RETURN count(*)").scalar() == 9


@pytest.mark.parametrize("seed", range(20))
def test_structures_are_behind_by_what_changed_since_they_were_added(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is told what came and went since, however many changes there were, unless these have too many triples."""
    draw, sizes, most = np.random.default_rng(seed), Sizes(10_000, 0), 12
    monkeypatch.setattr(stale_structures, "MOST", most)
    monkeypatch.setattr(stale_structures, "_BEHIND", [4, 1024][seed % 2])
    monkeypatch.setattr(stale_structures, "_NOTED", [2, 1000][seed // 2 % 2])
    stale, known, behind = StaleStructures(), {label: set[int]() for label in range(4)}, dict[int, int]()
    for _ in range(200):
        label, some = int(draw.integers(4)), np.unique(draw.integers(0, 40, draw.integers(1, 5)))
        match draw.integers(6):
            case 0 if label not in behind:
                stale.add(("members", label), np.array(sorted(known[label]), np.int64), sizes)
                behind[label] = 0
            case 1 if label in behind:
                found = stale.updated(("members", label), sizes, TYPE, lambda ids: ids)
                del behind[label]
                assert found.tolist() == sorted(known[label])
                assert stale.updated(("members", label), sizes, TYPE, lambda ids: ids) is None
            case 2:
                found = stale.members_among(some, label)
                assert found is None or found.tolist() == sorted(known[label] & set(some.tolist()))
                assert found is not None or label not in behind or seed % 4 < 3
            case _:
                gone = draw.choice(some, draw.integers(0, len(some)), replace=False)
                rows = [np.array([[TYPE, vertex, label] for vertex in each], np.int64).reshape(-1, 3)
                        for each in (gone, some)]  # fmt: skip
                rows = rows[:: draw.choice([1, -1])]  # what came after it went is there
                known[label] = (known[label] - set(rows[0][:, 1].tolist())) | set(rows[1][:, 1].tolist())
                stale.note(Changes(*rows), TYPE)
                changed = len(gone) + len(some)
                behind = {
                    each: count + changed for each, count in behind.items() if count <= most
                }  # others are dropped
                assert [each for each in range(4) if ("members", each) in stale] == sorted(behind)


def test_estimates_are_made_anew_once_much_has_changed() -> None:
    made, vertices = list[int](), 6400
    data = {(1, number, number + 1) for number in range(vertices)}
    graph = graph_of(data, None)

    def estimate() -> np.ndarray[Any, Any]:
        made.append(len(made))
        return np.array([made[-1]])

    found = []
    for number in range(30):
        row = (1, number, number + 7)
        data.add(row)
        follower = graph_of(data, None)
        follower.follow(graph, [Changes(added=np.array([row] * 20, np.int64))])
        graph = follower
        found.append(int(graph.estimate(("one",), estimate)[0]))
    assert found == sorted(found)
    assert len(made) == 1 + 29 // 6, "once more than a hundred triples have changed, and not for each change"


@settings(max_examples=scaled(60), deadline=None)
@given(st.integers(0, 300), st.sampled_from([2, 9, 1 << 20, 1 << 30, 1 << 40]), st.integers(0, 1 << 30))
def test_changes_are_in_order_by_vertex_neighbour_and_code(rows: int, vertices: int, seed: int) -> None:
    """Of equal ones the last, also where ids and number are too large for one integer."""
    draw = np.random.default_rng(seed)
    source, target, code = (draw.integers(7, 7 + most, rows) for most in (vertices, vertices, 4))
    comes = draw.integers(0, 2, rows)
    found = partitions._latest(source, target, code, comes)
    happened = dict(
        zip(zip(*(each.tolist() for each in (source, target, code)), strict=True), comes.tolist(), strict=True)
    )
    assert list(zip(*(each.tolist() for each in found), strict=True)) == [
        (*key, happened[key]) for key in sorted(happened)
    ]


def test_edges_at_vertex_labels_follow_batches() -> None:
    """They are those of the file after each batch, and are not asked for again; vertices get and lose labels, too."""
    draw, people = np.random.default_rng(5), 12
    possible = [
        (f"ex:{s}", label, f"ex:{o}")
        for label in ("ex:knows", "ex:likes")
        for s in range(people)
        for o in range(people)
    ]
    possible += [(f"ex:{s}", "rdf:type", f"ex:{name}") for s in range(people) for name in ("Person", "Robot")]
    typed = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    rows = [tuple(typed if term == "rdf:type" else f"<{term}>" for term in row) for row in possible]
    there, followed = np.zeros(len(rows), bool), 0
    with graphdb.connect() as db:
        db.apply([rows[0], rows[-1]])
        for _ in range(40):
            db._state.snapshot().store.class_pairs()
            chosen = draw.choice(len(rows), 6, replace=False)
            come, gone = chosen[:4], chosen[4:]
            db.apply([rows[i] for i in come], [rows[i] for i in gone])
            there[gone], there[come] = False, True
            store = db._state.snapshot().store
            followed += store._classes is not None
            found, complete = store.class_pairs()
            store._classes = None
            assert (found, complete) == (store.class_pairs()[0], True)
            assert all(edges > 0 for edges, _ in found.values())
        assert followed == 40


def test_a_signature_follows_what_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Edges, labels of neighbours and new vertices: without all being counted anew."""
    draw = np.random.default_rng(2)
    data = {(1, s, o) for s, o in draw.integers(5, 60, (100, 2)).tolist()} | {(TYPE, v, 3) for v in range(5, 40)}
    graph = graph_of(data, None)
    for direction in ("out", "in"):
        graph.partition((1,), direction)
        graph.signature(1, direction)
    added = {(1, 7, 61), (1, 62, 8), (1, 9, 9), (TYPE, 45, 4)} - data
    removed = {(TYPE, 20, 3), next(iter(sorted(row for row in data if row[0] == 1)))}
    data = (data | added) - removed
    follower, fresh = graph_of(data, None), graph_of(data, None)
    assert follower.resources > graph.resources
    follower.follow(graph, [Changes(*(np.array(sorted(rows), np.int64) for rows in (removed, added)))])
    expected = [fresh.signature(1, direction).tolist() for direction in ("out", "in")]
    monkeypatch.setattr(data_graph, "build_column", None)
    assert [follower.signature(1, direction).tolist() for direction in ("out", "in")] == expected
