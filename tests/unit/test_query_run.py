"""Bindings beyond their share of memory wait in a temporary table; the answer is the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import graphdb
from graphdb.data import GEOGRAPHY
from graphdb.execute.choose import choose_executor
from graphdb.grammar.parser import parse
from graphdb.query import QueryRun

QUERIES = [
    "MATCH (a:Country)-[:neighbour]->(b)-[:neighbour]->(c) RETURN a, b, c",
    "MATCH (a:Country)-[e]->(b) RETURN a, e, b",
    "MATCH (a:Country)-[:name]->(text) RETURN a, text",
    "MATCH (a:Country)-[:neighbour]->(b) RETURN a.name, count(*) AS n ORDER BY n DESC, a.name",
    "MATCH (a:Country)-[:neighbour]->(b) WHERE a.population > b.population RETURN a, b",
    "MATCH (a:Country {name: 'nowhere'})-[:neighbour]->(b) RETURN a, b",
]


@pytest.fixture(scope="module")
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect() as database:
        database.load(GEOGRAPHY)
        yield database


@pytest.mark.parametrize("text", QUERIES)
def test_bindings_that_spill_give_the_same_rows(db: graphdb.Database, text: str) -> None:
    expected = db.query(text)
    for block_rows in (1, 7):
        executor = choose_executor("cpu")
        executor.block_rows = block_rows  # type: ignore[attr-defined]
        with QueryRun(db._snapshot(), executor, text, {}, bindings_bytes=100) as run:
            prepared = run.prepare(parse(text))  # type: ignore[arg-type]
            table = run.run(prepared)
        assert table.to_pylist() == expected._table.to_pylist()  # type: ignore[union-attr]
    # Nothing stays behind.
    assert db.sql("SELECT count(*) FROM duckdb_tables() WHERE table_name = '_bindings'").scalar() == 0
    assert db.query(text).fetchall() == expected.fetchall()
