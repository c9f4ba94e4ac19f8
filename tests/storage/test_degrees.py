"""Degree sketches kept between changes equal the degrees in the file, whichever connection changes it."""

from __future__ import annotations

import collections
import pathlib

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphdb
from graphdb.common.values.terms import LITERAL_BASE
from graphdb.storage.graph.changes import Changes
from graphdb.storage.graph.degree_sketch import IN, OUT
from graphdb.storage.statistics import degrees
from graphdb.storage.statistics.degrees import Degrees, Table
from graphdb.storage.statistics.labels import refresh
from graphdb.storage.statistics.tables import current
from tests.fuzz import scaled

ends = st.one_of(st.integers(0, 300), st.integers(1 << 33, (1 << 33) + 3), st.integers(LITERAL_BASE, LITERAL_BASE + 3))
pairs = st.sets(st.tuples(ends, ends), max_size=30)


LABEL = 7

Pairs = set[tuple[int, int]]


def triples(pairs: Pairs) -> np.ndarray:
    return np.array([(LABEL, *pair) for pair in sorted(pairs)], np.int64).reshape(-1, 3)


@settings(max_examples=scaled(100), deadline=None)
@given(
    pairs,
    st.lists(st.tuples(pairs, pairs), min_size=1, max_size=5),
    st.sampled_from([OUT, IN]),
    st.fixed_dictionaries({"_SMALL": st.sampled_from([0, 3, 64]), "_NOTED": st.sampled_from([1, 5, 1024])}),
)
def test_a_table_is_what_the_file_says(
    known: Pairs, changes: list[tuple[Pairs, Pairs]], direction: int, sizes: dict[str, int]
) -> None:
    """Counted once, while a change is under way, and followed ever since: by arrays, or one vertex after the other."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in sizes.items():
            patch.setattr(degrees, name, value)
        _follow(known, changes, direction)


def _follow(known: Pairs, changes: list[tuple[Pairs, Pairs]], direction: int) -> None:
    held = Degrees(1 << 20)
    for wanted, unwanted in changes:
        removed, added = unwanted & known, wanted - (known - unwanted)
        before, known = known, (known - removed) | added
        change = Changes(triples(removed), triples(added))
        if held.table(direction, LABEL) is None:
            with duckdb.connect() as connection:
                connection.execute("CREATE SCHEMA _graphdb")
                connection.execute("CREATE TABLE _graphdb.triple (label BIGINT, subject BIGINT, object BIGINT)")
                rows = [*triples(known).tolist(), [LABEL + 1, 5, 5]]
                connection.execute(
                    "INSERT INTO _graphdb.triple SELECT t[1], t[2], t[3] FROM (SELECT unnest($1::BIGINT[][]) AS t)",
                    [rows],
                )
                _, vertices, counts = degrees.changed(change, direction)  # all of one label
                held.count(connection, direction, LABEL, vertices, counts)
        table = held.table(direction, LABEL)
        assert table is not None
        for there in (before, known):
            degrees_of = collections.Counter(pair[direction] for pair in there)
            literals = collections.Counter(s for s, o in there if o >= LITERAL_BASE and direction == OUT)
            asked = sorted({*degrees_of, 0, 5, 77, 1 << 33, LITERAL_BASE, LITERAL_BASE + 9, 1 << 50})
            assert table.look(np.array(asked)).tolist() == [[degrees_of[v], literals[v]] for v in asked]
            for left_out in ([], asked[::2], [vertex for vertex, _ in degrees_of.most_common(2)]):
                most = max((count for vertex, count in degrees_of.items() if vertex not in left_out), default=0)
                assert table.largest_but(np.array(left_out, np.int64)) == most
            if there is before:
                held.follow([change])


def test_only_what_is_asked_for_again_and_fits_is_counted() -> None:
    held = Degrees(1000)
    assert [held.wanted(IN, 1, 1, 10, 10) for _ in range(4)] == [False, False, False, True]
    large = 8 * degrees._SORTED
    known = Degrees(9 * large)
    assert [known.wanted(OUT, 1, 1, 10, large) for _ in range(9)] == [False] * 8 + [True]
    assert [held.wanted(OUT, 1, 20, 10, 10) for _ in range(4)] == [False, False, False, True]
    assert not held.wanted(OUT, 1, 20, 100, 100)
    assert not held.wanted(OUT, 1, 20, 1, 1000)


def load(db: graphdb.Database, folder: pathlib.Path, lines: list[tuple[int, str, str]]) -> None:
    file = folder / "part.nt"
    file.write_text("".join(f"<ex:{s}> <ex:{p}> {o} .\n" for s, p, o in lines))
    db.load(file)


def test_loads_and_statements_in_turns(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a database that holds degrees keeps is what one that never does keeps: rollbacks and SQL between them."""
    monkeypatch.setattr(degrees, "LOOKS", 1)
    monkeypatch.setattr(degrees, "_SEVERAL", 1)
    looked: list[int] = []
    look = Table.look

    def noted(table: Table, vertices: np.ndarray) -> np.ndarray:
        looked.append(len(vertices))
        return look(table, vertices)

    monkeypatch.setattr(Table, "look", noted)
    tables = ("edge_label", "vertex_label", "degree", "label_pair")
    sums = {"degree": ("label, direction, bucket", "vertices, edges, squares"),
            "label_pair": ("label, class, direction", "edges, vertices")}  # fmt: skip

    def kept(path: str) -> list[list[tuple[object, ...]]]:
        with duckdb.connect(path, read_only=True) as connection:
            found = []
            for table in tables:
                sql = f"FROM {current(table)}"
                if table in sums:
                    keys, values = sums[table]
                    added = ", ".join(f"sum({name})::BIGINT AS {name}" for name in values.split(", "))
                    sql = f"SELECT {keys}, {added} {sql} GROUP BY ALL HAVING sum(vertices) <> 0"
                found.append(connection.execute(f"FROM ({sql}) ORDER BY ALL").fetchall())
            return found

    for name in ("held", "asked"):
        with graphdb.connect(tmp_path / name) as db:
            for step in range(8):
                load(db, tmp_path, [(i, "knows", f"<ex:{i * step % 7}>") for i in range(step, step + 5)])
                load(db, tmp_path, [(i, "age", f'"{i % 3}"') for i in range(step, step + 3)])
                if step % 3 == 1:
                    db.query("MATCH (a)-[e:knows]->(b) WHERE a = b DELETE e")
                if step % 3 == 2:
                    db.query("BEGIN")
                    db.query(f"CREATE (a:New {{age: {step}}})-[:knows]->(a)")
                    db.query("ROLLBACK" if step % 2 else "COMMIT")
                if name == "asked":
                    db.query("SET threads = 1")
                    db._state.forget()
                if step == 5:
                    db.query("MATCH (a {age: '1'}) SET a.age = '2'")
    assert looked
    assert kept(str(tmp_path / "held")) == kept(str(tmp_path / "asked"))


def test_what_is_deleted_with_its_edges_is_counted_without_asking(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Vertices with labels, classes among them, edges of which there are many or one, and what comes after, recounted."""
    monkeypatch.setattr(degrees, "LOOKS", 0)
    monkeypatch.setattr(degrees, "_SEVERAL", 1)
    sums = {"degree": ("label, direction, bucket", "vertices, edges, squares"),
            "label_pair": ("label, class, direction", "edges, vertices")}  # fmt: skip
    with graphdb.connect(tmp_path / "graph") as db:

        def kept() -> list[list[tuple[object, ...]]]:
            found = []
            for table in ("edge_label", "vertex_label", "degree", "label_pair"):
                sql = f"FROM {current(table)}"
                if table in sums:
                    keys, values = sums[table]
                    added = ", ".join(f"sum({name})::BIGINT AS {name}" for name in values.split(", "))
                    sql = f"SELECT {keys}, {added} {sql} GROUP BY ALL HAVING sum(vertices) <> 0"
                found.append(sorted(db._state.connection.rows(sql)))
            return found

        db.query("UNWIND range(0, 19) AS i CREATE (:P {n: i, m: i % 2})")
        db.query("MATCH (a:P) WHERE a.n % 3 = 0 SET a:Q")
        for other in (1, 4, 7):
            db.query(
                "MATCH (a:P), (b:P) WHERE b.n = (a.n * 2 + $other) % 20 CREATE (a)-[:K {since: a.n}]->(b)", other=other
            )
        db.query("MATCH (a:P {n: 5}), (b:P) WHERE b.n < 9 CREATE (a)-[:L]->(b)")
        load(db, tmp_path, [(1, "likes", "<ex:2>")])
        load_types = "<ex:2> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <ex:C> .\n"
        (tmp_path / "types.nt").write_text(
            load_types + '<ex:C> <ex:n> "1" .\n' + load_types.replace("ex:2", "ex:C").replace("<ex:C> .", "<ex:D> .")
        )
        db.load(tmp_path / "types.nt")
        for text in (
            "MATCH (a:P {n: 3}) DETACH DELETE a",
            "MATCH (a:P {n: 4})-[e:K]->() DELETE e",
            "MATCH (a:P {n: 5}) DETACH DELETE a",
            "MATCH (a:P) WHERE a.n IN [6, 7] DETACH DELETE a",
            "MATCH (c) WHERE iri(c) = 'ex:C' DETACH DELETE c",
            "MATCH (a:P {n: 8}) OPTIONAL MATCH (a)-[e]-() DELETE e, a",
            "CREATE (:P {n: 30})-[:K {since: 1}]->(:Q {n: 31})",
            "MATCH (a:P {n: 30}) DETACH DELETE a",
        ):
            db.query(text)
            found = kept()
            with db._state.connection.guard() as raw:
                raw.execute("BEGIN")
                labels = raw.execute(
                    "SELECT label FROM _graphdb.triple UNION SELECT id FROM _graphdb.edge_label"
                ).fetchall()
                refresh(raw, np.array(labels, np.int64).ravel())
                recounted = kept()
                raw.execute("ROLLBACK")
            assert found == recounted, text
