"""Changes given as relations: what is in the tables afterwards equals a model of sets, whatever their size."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from unittest import mock

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.values.terms import LITERAL_BASE, RDF_TYPE, XSD
from graphdb.storage.catalog import Catalog
from graphdb.storage.dictionary import hash_index
from graphdb.storage.graph import changes
from graphdb.storage.statistics import incremental, labels, streaming
from graphdb.storage.statistics import tables as label_tables
from graphdb.storage.updates import apply
from graphdb.storage.updates.apply import Scratch, Update
from tests.fuzz import scaled

TRIPLE = ("label", "subject", "object")
EDGE = (*TRIPLE, "ordinal")
PROPERTY = (*EDGE, "key", "value")
TYPE = 0
Rows = Iterable[tuple[int, ...]]

vertices = st.integers(1, 6)
some_triples = st.sets(st.tuples(st.sampled_from([TYPE, 7, 8]), vertices, vertices), max_size=12)
some_values = st.sets(st.tuples(st.just(9), vertices, st.integers(LITERAL_BASE, LITERAL_BASE + 3)), max_size=6)


def opened() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    Catalog(connection).create()
    connection.begin()
    writer = Update(connection)
    assert writer.resources([RDF_TYPE]) == [TYPE]
    writer.vertices(10)
    writer.literals([(str(i), XSD + "integer", None) for i in range(4)])
    writer.take_changes()  # what waits is written
    return connection


def array(names: tuple[str, ...], rows: Rows) -> NDArray[np.int64]:
    return np.array(list(rows), np.int64).reshape(-1, len(names))


def made(connection: duckdb.DuckDBPyConnection, name: str, names: tuple[str, ...], rows: Rows) -> str:
    """A temporary table of some rows."""
    connection.register("given", arrow.table(dict(zip(names, array(names, rows).T, strict=True))))
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS FROM given")
    connection.unregister("given")
    return f"temp.{name}"


def held(connection: duckdb.DuckDBPyConnection, relation: str) -> list[Any]:
    return sorted(connection.execute(f"FROM {relation}").fetchall())


@settings(max_examples=scaled(15), deadline=None)
@given(
    st.lists(st.tuples(some_triples, some_triples, some_values), min_size=1, max_size=3),
    st.sampled_from([None, 0, 8, 4096]),
)
def test_triples_follow_a_model(steps: list[tuple[Any, Any, Any]], most: int | None) -> None:
    """Removed ones go, then added ones come, and the statistics are those of a recount.

    They are given as tables where there is a number up to which these are read, and others are left to SQL.
    """
    with mock.patch.object(incremental, "MOST", incremental.MOST if most is None else most):
        _follow_a_model(steps, tables=most is not None)


def _follow_a_model(steps: list[tuple[Any, Any, Any]], *, tables: bool) -> None:
    connection = opened()
    writer = Update(connection)
    model: set[Any] = set()
    for removed, added, values in steps:
        gone, come = [*removed, *removed], [*added, *values, *added]
        if tables:
            writer.apply(made(connection, "gone", TRIPLE, gone), made(connection, "come", TRIPLE, come))
        else:
            writer.apply(array(TRIPLE, gone) if gone else None, array(TRIPLE, come) if come else None)
        before, model = model, (model - removed) | added | values
        assert held(connection, "_graphdb.triple") == sorted(model)
        report = writer.changes.pop() if writer.changes else None
        if report is None:
            assert before == model
        else:
            assert {tuple(row) for row in report.removed.tolist()} == before & removed
            assert {tuple(row) for row in report.added.tolist()} == model - (before - removed)
    added_up = [held(connection, f"({label_tables.summed(name)})") for name in label_tables.APPENDED]
    label_tables.merge_log(connection)
    counted = [held(connection, f"_graphdb.{name}") for name in ("edge_label", "vertex_label", "degree", "label_pair")]
    assert counted[2:] == added_up
    labels.refresh(connection, np.arange(10))
    assert counted == [
        held(connection, f"_graphdb.{name}") for name in ("edge_label", "vertex_label", "degree", "label_pair")
    ]
    wanted = made(connection, "wanted", ("vertex",), [(1,), (2,)])
    near = {triple for triple in model if {1, 2} & {*triple[1:]} and triple[0] != TYPE and triple[2] < LITERAL_BASE}
    assert held(connection, apply.incident(wanted, TYPE)) == sorted(near)
    said = {triple for triple in model if triple[1] in (1, 2) and (triple[0] == TYPE or triple[2] >= LITERAL_BASE)}
    assert held(connection, apply.facts(wanted, TYPE)) == sorted(said)


@settings(max_examples=scaled(8), deadline=None)
@given(st.lists(st.lists(st.tuples(st.integers(1, 2), st.integers(1, 2)), max_size=4), min_size=1, max_size=3))
def test_parallel_edges_are_numbered_on(steps: list[list[tuple[int, int]]]) -> None:
    """New edges come after those that are there, which a triple without rows counts as one."""
    connection = opened()
    writer = Update(connection)
    model: dict[tuple[int, ...], int] = {}
    for step in steps:
        wanted = made(connection, "wanted", ("row", *TRIPLE), [(i, 7, *ends) for i, ends in enumerate(step)])
        connection.execute(f"CREATE OR REPLACE TEMP TABLE new AS FROM {apply.numbered(wanted)} ORDER BY row")
        expected = []
        for i, ends in enumerate(step):
            triple = (7, *ends)
            expected.append((i, *triple, model.get(triple, 0)))
            model[triple] = model.get(triple, 0) + 1
        assert held(connection, "temp.new") == expected
        connection.execute(
            "CREATE OR REPLACE TEMP TABLE several AS SELECT DISTINCT label, subject, object FROM new WHERE ordinal > 0"
        )
        connection.execute(
            f"CREATE OR REPLACE TEMP TABLE every AS FROM {apply.edges_of('several')}"
            " UNION ALL SELECT * EXCLUDE row FROM new SEMI JOIN several USING (label, subject, object)"
        )
        writer.apply(added="temp.new", touched="temp.several", edges="temp.every")
    edges = [(*triple, ordinal) for triple, count in model.items() if count > 1 for ordinal in range(count)]
    assert held(connection, "_graphdb.edge") == sorted(edges)


def test_edges_are_replaced_with_their_properties() -> None:
    connection = opened()
    writer = Update(connection)
    edge = (7, 1, 2, 0)
    writer.apply(
        added=array(TRIPLE, [edge[:3], (7, 2, 1)]),
        touched=array(TRIPLE, [edge[:3]]),
        edges=array(EDGE, [edge]),
        properties=array(PROPERTY, [(*edge, 9, LITERAL_BASE), (*edge, 8, LITERAL_BASE + 1)]),
    )
    connection.execute("INSERT INTO _graphdb.reifier VALUES (5, 7, 1, 2, 0), (6, 7, 1, 2, 1)")
    assert held(connection, apply.properties_of("(SELECT 7 AS label, 1 AS subject, 2 AS object)")) == [
        (*edge, 8, LITERAL_BASE + 1),
        (*edge, 9, LITERAL_BASE),
    ]
    assert held(connection, apply.edges_of("_graphdb.triple")) == [edge, (7, 2, 1, 0)]
    writer.apply(touched=array(TRIPLE, [edge[:3]]), edges=array(EDGE, [edge]))
    assert held(connection, "_graphdb.edge") == [edge]
    assert held(connection, "_graphdb.edge_property") == []
    assert held(connection, "_graphdb.reifier") == [(5, *edge)]  # the other one stood for an edge that is no more
    writer.apply(removed=array(TRIPLE, [edge[:3]]), touched=array(TRIPLE, [edge[:3]]))
    assert held(connection, "_graphdb.triple") == [(7, 2, 1)]
    assert held(connection, "_graphdb.edge") == held(connection, "_graphdb.reifier") == []


def test_much_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond so many triples it is only said that something changed."""
    monkeypatch.setattr(apply, "MOST", 50)
    monkeypatch.setattr(incremental, "MOST", 0)
    connection = opened()
    writer = Update(connection)
    first = writer.vertices(200).start
    writer.apply(added=f"(SELECT 7 AS label, {first} + range AS subject, 3 AS object FROM range(200))")
    writer.apply(removed=f"(SELECT 7 AS label, {first} + range AS subject, 3 AS object FROM range(2))")
    much, little = writer.changes
    assert much is None
    assert isinstance(little, changes.Changes)
    assert len(little.removed) == 2
    assert connection.execute("SELECT triples, max_in_degree FROM _graphdb.edge_label").fetchall() == [(198, 198)]


@pytest.mark.parametrize("small", [hash_index.SMALL, 3])
def test_literals_of_a_relation(monkeypatch: pytest.MonkeyPatch, small: int) -> None:
    """Known literals keep their ids, new ones get the next ones, one each, with their values."""
    monkeypatch.setattr(hash_index, "SMALL", small)
    monkeypatch.setattr(hash_index, "RUN", small)
    monkeypatch.setattr(hash_index, "SHARE", 0)
    connection = opened()
    writer = Update(connection)
    connection.execute(
        "CREATE TEMP TABLE said AS SELECT (range % 7)::VARCHAR AS lexical,"
        f" CASE WHEN range % 2 = 0 THEN '{XSD}integer' END AS datatype,"
        " CASE WHEN range % 3 = 1 AND range % 2 = 1 THEN 'en' END AS language FROM range(200)"
    )
    writer.literals_of("temp.said", "numbers")
    numbers = connection.execute("SELECT value, lexical, datatype, language FROM temp.numbers").fetchall()
    distinct = connection.execute("SELECT DISTINCT lexical, datatype, language FROM said").fetchall()
    assert sorted((row[1:] for row in numbers), key=str) == sorted(distinct, key=str)
    assert {row[0] for row in numbers if row[2] and int(row[1]) < 4} == {LITERAL_BASE + i for i in range(4)}
    ids = [row[0] for row in held(connection, "_graphdb.literal")]
    assert ids == list(range(LITERAL_BASE, LITERAL_BASE + len(distinct)))
    assert connection.execute(
        "SELECT count(*) FROM _graphdb.literal WHERE (datatype IS NULL) <> (integer IS NULL)"
    ).fetchall() == [(0,)]
    assert writer.literals([("9", None, None), ("6", XSD + "integer", None)]) == [
        ids[-1] + 1,
        next(row[0] for row in numbers if row[1:] == ("6", XSD + "integer", None)),
    ]


def test_triples_of_new_subjects_are_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each comes once; beside an old subject all are looked for, where SQL counts them."""
    monkeypatch.setattr(incremental, "MOST", 0)
    connection = opened()
    writer = Update(connection)
    writer.apply(added=made(connection, "old", TRIPLE, [(7, 1, 2)]))
    first, second = writer.vertices(2)
    asked: list[str] = []
    run = writer._run
    writer._run = lambda sql, *given: (asked.append(sql), run(sql, *given))[1]  # type: ignore[method-assign]
    new = {(7, first, 2), (7, second, first)}
    writer.apply(added=made(connection, "new", TRIPLE, [*new, (7, first, 2)]))
    assert not any("ANTI JOIN" in sql for sql in asked)
    assert set(held(connection, "_graphdb.triple")) == {(7, 1, 2), *new}
    writer.apply(added=made(connection, "new", TRIPLE, [*new, (7, 1, 2), (8, second, 1)]))
    assert any("ANTI JOIN" in sql for sql in asked)
    assert held(connection, "_graphdb.triple") == sorted([(7, 1, 2), (8, second, 1), *new])


def test_large_changes_are_counted_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counting all triples gives what adding up a change does."""
    random, counts, recounted = np.random.default_rng(2), [], []
    recount = streaming.recount
    monkeypatch.setattr(incremental, "MOST", 0)
    monkeypatch.setattr(streaming, "recount", lambda *given: (recounted.append(1), recount(*given)))
    rows = np.column_stack([random.choice([TYPE, 7, 8], 400), random.integers(1, 11, 400), random.integers(1, 11, 400)])
    values = np.column_stack([np.full(40, 9), random.integers(1, 11, 40), LITERAL_BASE + random.integers(0, 4, 40)])
    triples = list(map(tuple, np.concatenate([rows, values]).tolist()))
    for scratch in (None, Scratch(1 << 26)):
        connection = opened()
        writer = Update(connection, scratch=scratch)
        writer.apply(added=made(connection, "come", TRIPLE, triples[::2]))
        writer.apply(
            removed=made(connection, "gone", TRIPLE, triples[::6]), added=made(connection, "come", TRIPLE, triples)
        )
        degrees = "SELECT label, direction, bucket, sum(vertices), sum(edges), sum(squares) FROM _graphdb.degree"
        pairs = "SELECT label, class, direction, sum(edges), sum(vertices) FROM _graphdb.label_pair"
        found = [held(connection, f"({sql} GROUP BY ALL HAVING sum(edges) <> 0)") for sql in (degrees, pairs)]
        counts.append([*found, held(connection, "_graphdb.edge_label"), held(connection, "_graphdb.vertex_label")])
    assert recounted == [1, 1]
    assert counts[0] == counts[1]
