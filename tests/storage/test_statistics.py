"""The statistics of labels equal what SQL counts in one pass, in whatever order the triples came."""

from __future__ import annotations

import collections
import pathlib
from collections.abc import Set as AbstractSet
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphdb
from graphdb.common.values.terms import LITERAL_BASE, RDF_TYPE
from graphdb.storage.arrays import small_joins
from graphdb.storage.catalog import SCHEMA_VERSION, Catalog
from graphdb.storage.file import ddl
from graphdb.storage.file.prepared_sql import Insertions
from graphdb.storage.graph.changes import Changes
from graphdb.storage.statistics import few_triples, incremental, labels
from graphdb.storage.statistics import known as held_of_file
from graphdb.storage.statistics import tables as label_tables
from graphdb.storage.statistics.degrees import Degrees
from graphdb.storage.statistics.known import KnownStatistics
from tests.fuzz import scaled

TYPE, RESOURCES, LITERALS = 0, 9, 3
TABLES = ("edge_label", "vertex_label", "degree", "label_pair")

resources = st.integers(1, RESOURCES - 1)
objects = st.one_of(resources, resources, st.integers(LITERAL_BASE, LITERAL_BASE + LITERALS - 1))
triples = st.sets(st.tuples(st.sampled_from([TYPE, TYPE, 1, 2, 3]), resources, objects), max_size=40)

Triples = AbstractSet[tuple[int, int, int]]


def empty() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    Catalog(connection).create()
    connection.execute("INSERT INTO _graphdb.resource VALUES (0, $type)", {"type": RDF_TYPE})
    connection.execute(f"INSERT INTO _graphdb.resource SELECT i, 'ex:' || i FROM range(1, {RESOURCES}) t(i)")
    connection.execute(
        f"INSERT INTO _graphdb.literal (id, text, kind) SELECT {LITERAL_BASE} + i, i, i FROM range({LITERALS}) t(i)"
    )
    return connection


def insert(connection: duckdb.DuckDBPyConnection, table: str, data: Triples) -> None:
    rows = [list(triple) for triple in sorted(data)]
    connection.execute(
        f"INSERT INTO {table} SELECT t[1], t[2], t[3] FROM (SELECT unnest($rows::BIGINT[][]) AS t)", {"rows": rows}
    )


def change(
    connection: duckdb.DuckDBPyConnection,
    added: Triples,
    removed: Triples = frozenset(),
    *,
    by_few: bool = False,
    degrees: Degrees | None = None,
) -> None:
    """Remove triples, then append others, as loads and updates do."""
    for name, data in (("added", added), ("removed", removed)):
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} (label BIGINT, subject BIGINT, object BIGINT)")
        insert(connection, name, data)
    connection.execute("DELETE FROM _graphdb.triple t USING removed r WHERE (t.label, t.subject, t.object) = "
                       "(r.label, r.subject, r.object)")  # fmt: skip
    rows = tables(connection, "edge_label", "vertex_label")
    insertions, columns = Insertions(connection), zip(*sorted(added), strict=True)
    if added:
        names = zip(("label", "subject", "object"), columns, strict=True)
        insertions.add("triple", {name: [*column] for name, column in names})
    if not by_few or len(added) % 2:  # others wait until they are looked for, or something else is written
        insertions.run()
    if by_few:
        of = Changes.read(connection, "removed", "added")
        others = {v for triple in tables(connection, "triple")["triple"] if triple not in added for v in triple[1:]}
        others |= {v for triple in removed for v in triple[1:]}
        fresh, literals = (
            1 + max((v for v in others if (v >= LITERAL_BASE) is which), default=-1) for which in (False, True)
        )
        edge_labels: dict[int, tuple[int, ...]] = {label: tuple(row) for label, *row in rows["edge_label"]}
        known = KnownStatistics(None, None, TYPE, edge_labels, dict(rows["vertex_label"]), degrees)
        known = known if degrees is not None else KnownStatistics()
        incremental.change(connection, of, fresh, max(literals, LITERAL_BASE), known, insertions=insertions)
        insertions.run()
        if degrees is not None:
            degrees.follow([of])
        return
    labels.change(connection, "added", "removed")
    if degrees is not None:
        degrees.follow([None])


def tables(connection: duckdb.DuckDBPyConnection, *names: str) -> dict[str, list[Any]]:
    """The rows of tables; those that are added up when they are read, added up."""
    rows = {
        name: label_tables.summed(name)
        if name in label_tables.APPENDED
        else f"FROM {label_tables.current(name) if name in TABLES else f'_graphdb.{name}'}"
        for name in names or TABLES
    }
    return {name: connection.execute(f"FROM ({sql}) ORDER BY ALL").fetchall() for name, sql in rows.items()}


def counted(data: Triples) -> tuple[list[Any], list[Any]]:
    """Degrees and pairs, counted by plain Python."""
    degrees: dict[tuple[int, int, int], list[int]] = collections.defaultdict(lambda: [0, 0, 0])
    pairs: dict[tuple[int, int, int], list[int]] = collections.defaultdict(lambda: [0, 0])
    classes = collections.defaultdict(set)
    for label, s, o in data:
        if label == TYPE and o < LITERAL_BASE:
            classes[s].add(o)
    for direction in (0, 1):
        for (label, vertex), degree in collections.Counter((t[0], t[1 + direction]) for t in data).items():
            for cell, amount in enumerate((1, degree, degree * degree)):
                degrees[label, direction, degree.bit_length() - 1][cell] += amount
            for c in classes[vertex]:
                pairs[label, c, direction][0] += degree
                pairs[label, c, direction][1] += 1
    return sorted((*k, *v) for k, v in degrees.items()), sorted((*k, *v) for k, v in pairs.items())


@settings(max_examples=scaled(15), deadline=None)
@given(
    st.lists(st.tuples(triples, triples, st.sampled_from([None, small_joins.SMALL, 1])), min_size=1, max_size=4),
    st.booleans(),
)
def test_changes_equal_a_recount(changes: list[tuple[Triples, Triples, int | None]], hold: bool) -> None:
    """Whether SQL or NumPy finds the difference, looking for one vertex after the other or for all of a label.

    Degrees that are held were counted in the change before, or in one before that and followed.
    """
    changed, known = empty(), set[tuple[int, int, int]]()
    degrees = Degrees(1 << 20) if hold else None
    for wanted, unwanted, apart in changes:
        removed = known & unwanted
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(small_joins, "SMALL", apart or small_joins.SMALL)
            patch.setattr(held_of_file, "_GROUPS", 2)
            patch.setattr("graphdb.storage.statistics.degrees.LOOKS", 1)
            patch.setattr("graphdb.storage.statistics.degrees._SEVERAL", 1)
            change(changed, wanted - (known - removed), removed, by_few=apart is not None, degrees=degrees)
        known = (known - removed) | wanted
        fresh = empty()
        insert(fresh, "_graphdb.triple", known)
        labels.refresh(fresh, np.array([label for label, _, _ in known], np.int64))
        found = tables(changed)
        assert found == tables(fresh)
        assert (found["degree"], found["label_pair"]) == counted(known)
        fresh.close()
    labels.refresh(changed, np.array([1, 2], np.int64))
    assert (tables(changed)["degree"], tables(changed)["label_pair"]) == counted(known)
    changed.close()


def test_few_triples_equal_a_recount(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is counted one triple after the other, where memory has all that it takes; a change merges one table at most."""
    monkeypatch.setattr(label_tables, "MOST", 150)
    monkeypatch.setattr("graphdb.storage.statistics.degrees.LOOKS", 0)
    random, connection, known = np.random.default_rng(5), empty(), set[tuple[int, int, int]]()
    degrees, one_by_one = Degrees(1 << 20), 0
    few, merge, merged = few_triples.counted, label_tables.merge, list[str]()

    def merging(file: duckdb.DuckDBPyConnection, table: str, *args: Any, **options: Any) -> int:
        merged.append(table)
        return merge(file, table, *args, **options)

    monkeypatch.setattr(label_tables, "merge", merging)

    def noted(lookup: held_of_file.StatisticsLookup, added: np.ndarray) -> few_triples.Counts | None:
        nonlocal one_by_one
        found = few(lookup, added)
        one_by_one += found is not None
        return found

    monkeypatch.setattr(few_triples, "counted", noted)
    for step in range(40):
        ends = [*range(1, RESOURCES), *range(LITERAL_BASE, LITERAL_BASE + LITERALS)]
        s, o = random.integers(1, min(3 + step // 4, RESOURCES), 4).tolist(), random.choice(ends, 4).tolist()
        some = set(zip(random.choice([TYPE, 1, 2, 3], 4).tolist(), s, o, strict=True)) - known
        gone = {min(known)} if step % 10 == 9 else set()
        before = len(merged)
        change(connection, some, gone, by_few=True, degrees=degrees)
        assert len(merged) <= before + 1
        known = (known - gone) | some
        if step % 5 == 4:
            fresh = empty()
            insert(fresh, "_graphdb.triple", known)
            labels.refresh(fresh, np.array([label for label, _, _ in known], np.int64))
            assert tables(connection) == tables(fresh)
            fresh.close()
    assert one_by_one > 15
    assert set(merged) == set(TABLES)
    connection.close()


@pytest.mark.parametrize("by_few", [False, True])
def test_only_the_pairs_with_most_edges_are_stored(monkeypatch: pytest.MonkeyPatch, by_few: bool) -> None:
    monkeypatch.setattr(labels, "PAIRS", 4)
    data = {(TYPE, v, 1 + v % 3) for v in range(1, 9)} | {(1 + v % 3, v, o) for v in range(1, 9) for o in range(1, v)}
    every = counted(data)[1]
    most = sorted(every, key=lambda row: (-row[3], row[0], row[1], row[2]))[:4]
    assert len(every) > 4
    connection, before = empty(), {triple for triple in data if triple[1] % 2}
    change(connection, before, by_few=by_few)
    change(
        connection, data - before, by_few=by_few
    )  # so much that all are counted again: what the first let go is not missed
    assert tables(connection)["label_pair"] == sorted(most)
    one = next(row for row in data if row[0] == most[0][0])
    change(connection, set(), {one}, by_few=by_few)  # a little: what is kept is brought up to date, and stays
    left = {row[:3]: row[3:] for row in counted(data - {one})[1]}
    assert tables(connection)["label_pair"] == sorted((*row[:3], *left.get(row[:3], (0, 0))) for row in most)
    gone = {triple for triple in data - {one} if triple[1] % 4}  # much: the largest degrees are others, too
    change(connection, set(), gone, by_few=by_few)
    fresh = empty()
    insert(fresh, "_graphdb.triple", data - {one} - gone)
    labels.refresh(fresh, np.arange(10))
    assert tables(connection) == tables(fresh)


def test_a_file_of_version_1_is_brought_up_to_date(tmp_path: pathlib.Path) -> None:
    lines = tmp_path / "data.nt"
    lines.write_text(f"<ex:a> <{RDF_TYPE}> <ex:T> .\n<ex:a> <ex:p> <ex:b> .\n<ex:a> <ex:p> <ex:c> .\n")
    with graphdb.connect(tmp_path / "old.duckdb") as database:
        database.load(lines)
    with duckdb.connect(tmp_path / "old.duckdb") as old:
        expected = tables(old)
        later = ("degree", "label_pair", "quad", "edge", "edge_property", "reifier", "edge_graph")
        for table in (*later, "continuous_query", "batch", "counted"):
            old.execute(f"DROP TABLE _graphdb.{table}")
        old.execute(f"CREATE OR REPLACE TABLE _graphdb.literal ({ddl.FORMER['literal'][10]})")
        old.execute("UPDATE _graphdb.meta SET value = '1' WHERE key = 'schema_version'")
    with graphdb.connect(tmp_path / "old.duckdb") as database:
        assert database.query("MATCH (a)-[:<ex:p>]->(b) RETURN count(*)").scalar() == 2
    with duckdb.connect(tmp_path / "old.duckdb") as upgraded:
        assert tables(upgraded) == expected
        assert len(expected["label_pair"]) == 2
        assert Catalog(upgraded).schema_version == SCHEMA_VERSION


@pytest.mark.parametrize("version", [8, 9])
def test_a_file_of_before_has_its_changes_elsewhere(tmp_path: pathlib.Path, version: int) -> None:
    """Version 9 has a log of lists, with rows of all tables in each; version 8 several rows for a bucket or pair."""
    batches = (
        [("ex:a", "ex:p", "ex:b"), ("ex:a", RDF_TYPE, "ex:T")],
        [("ex:b", "ex:p", "ex:c")],
        [("ex:a", "ex:p", "ex:c")],
    )
    for name in ("old", "new"):
        with graphdb.connect(tmp_path / f"{name}.duckdb") as database:
            for batch in batches[:2] if name == "old" else batches:
                database.apply(batch)
    with duckdb.connect(tmp_path / "old.duckdb") as old:
        assert old.execute("SELECT count(*) FROM _graphdb.counted").fetchall() == [(6,)]
        if version == 9:
            rows = "SELECT flatten(list(rows::BIGINT[][] ORDER BY rowid)) AS rows FROM _graphdb.counted"
            changes = f"{rows} GROUP BY rowid < 4 ORDER BY min(rowid)"
            old.execute(f"CREATE OR REPLACE TABLE _graphdb.counted AS {changes}")
            old.execute("ALTER TABLE _graphdb.counted ALTER rows SET NOT NULL")
        else:
            label_tables.merge_log(old)
            old.execute("DROP TABLE _graphdb.counted")
            old.execute("INSERT INTO _graphdb.degree SELECT label, direction, bucket, 0, 0, 0 FROM _graphdb.degree")
            old.execute("INSERT INTO _graphdb.label_pair SELECT label, class, direction, 0, 0 FROM _graphdb.label_pair")
        old.execute(f"CREATE OR REPLACE TABLE _graphdb.literal ({ddl.FORMER['literal'][10]})")
        old.execute(f"UPDATE _graphdb.meta SET value = '{version}' WHERE key = 'schema_version'")
    with graphdb.connect(tmp_path / "old.duckdb") as database:
        database.apply(batches[2])
    with duckdb.connect(tmp_path / "old.duckdb") as upgraded, duckdb.connect(tmp_path / "new.duckdb") as new:
        for _ in range(2):
            assert tables(upgraded) == tables(new)
            label_tables.merge_log(upgraded)
        assert upgraded.execute("FROM _graphdb.counted").fetchall() == []
        assert Catalog(upgraded).schema_version == SCHEMA_VERSION


def joined(connection: duckdb.DuckDBPyConnection, table: str) -> list[tuple[Any, ...]]:
    """The rows of labels with those of the log, as DuckDB has them."""
    columns = ", ".join(label_tables.columns_of(table)[1:])
    return connection.execute(
        f"SELECT l.id, iri, {columns} FROM {label_tables.current(table)} l JOIN _graphdb.resource USING (id) ORDER BY id"
    ).fetchall()


@pytest.mark.parametrize("count", [6, 90])
def test_labels_with_the_log_are_what_sql_says(count: int) -> None:
    """What the log has of labels follows rows of its own and of the tables, is one text, or several, and can be nothing."""
    both = ("edge_label", "vertex_label")
    connection, draw = duckdb.connect(), np.random.default_rng(count)
    Catalog(connection).create()
    connection.execute("INSERT INTO _graphdb.resource SELECT i, 'ex:' || i FROM range(?) t(i)", [count - 1])
    for table, width in zip(both, (8, 1), strict=True):
        rows = [[id, *draw.integers(1, 9, width).tolist()] for id in range(0, count, 2)]
        connection.executemany(f"INSERT INTO _graphdb.{table} VALUES ({', '.join('?' * (width + 1))})", rows)
    assert label_tables.labels(connection, *both) == [joined(connection, table) for table in both]
    for step in range(4):
        texts = []
        for number, width in enumerate((8, 1)):
            ids = draw.choice(count, count // 2, replace=False).tolist()
            texts.append([[number, id, *draw.integers(0, 3, width).tolist()] for id in ids])
        together = [f"[{', '.join(map(str, texts[0] + texts[1]))}]"]
        given = together if step == 2 else [f" {text}" for text in texts]
        connection.execute("INSERT INTO _graphdb.counted SELECT unnest(?)", [given])
        found = [joined(connection, table) for table in both]
        assert label_tables.labels(connection, *both) == found
        assert label_tables.labels(connection, "vertex_label") == found[1:]
    assert all(0 < len(rows) < count - 1 for rows in found)
    label_tables.merge_log(connection)
    assert label_tables.labels(connection, *both) == found


@pytest.mark.parametrize(
    "text", [" [[0, x]]", " [[1, 9223372036854775808, 3]]", " [[1, 4, 3]", " [[1, 01, 3]", "[[1, 2, 3], 4]"]
)
def test_a_log_that_cannot_be_is_refused_by_duckdb(text: str) -> None:
    connection = empty()
    connection.execute("INSERT INTO _graphdb.counted VALUES (?)", [text])
    with pytest.raises(duckdb.ConversionException):
        label_tables.labels(connection, "edge_label", "vertex_label")
