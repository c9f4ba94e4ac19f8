"""Bindings beyond their memory share spill to a temporary table; the answer is the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest

import graphdb
import graphdb.common.errors
from graphdb.data import GEOGRAPHY
from graphdb.execute.host import HostExecutor
from graphdb.grammar.parser import parse
from graphdb.relational.query import QueryRun

QUERIES = [
    "MATCH (a:City)-[:parentCountry]->(b) RETURN a.name, b.name, a.population, b.areaTotal, a, a.lat",
    "MATCH (a)-[:parentCountry]->(b {name: 'Malta'}) RETURN b.name, b.areaTotal SKIP 1 LIMIT 500",
    "MATCH (a:Country)-[:neighbour]->(b)-[:neighbour]->(c) RETURN a, b, c",
    "MATCH (a:Country)-[e]->(b) RETURN a, e, b",
    "MATCH (a:Country)-[:name]->(text) RETURN a, text",
    "MATCH (a:Country)-[:neighbour]->(b) RETURN a.name, count(*) AS n ORDER BY n DESC, a.name",
    "MATCH (a:Country)-[:neighbour]->(b) WHERE a.population > b.population RETURN a, b",
    "MATCH (a:Country {name: 'nowhere'})-[:neighbour]->(b) RETURN a, b",
]


def bag(table: pa.Table) -> Counter[str]:
    """The rows of a table, whatever their order: only ORDER BY promises one."""
    return Counter(map(repr, pa.table(table).to_pylist()))


@pytest.fixture(scope="module")
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect() as database:
        database.load(GEOGRAPHY)
        yield database


@pytest.mark.parametrize("text", QUERIES)
def test_bindings_that_spill_give_the_same_rows(db: graphdb.Database, text: str) -> None:
    expected = db.query(text)
    for block_rows in (1, 7):
        executor = HostExecutor(block_rows=block_rows)
        with QueryRun(db._state.snapshot(), executor, text, {}, bindings_bytes=100) as run:
            prepared = run.prepare(parse(text))  # type: ignore[arg-type]
            table = run.run(prepared)
        assert bag(table) == bag(expected._table)  # type: ignore[arg-type]
    # Nothing stays behind.
    assert db.sql("SELECT count(*) FROM duckdb_tables() WHERE table_name = '_graphdb_bindings'").scalar() == 0


@pytest.mark.parametrize("text", QUERIES)
def test_projection_without_sql_gives_what_sql_gives(db: graphdb.Database, text: str) -> None:
    with QueryRun(db._state.snapshot(), HostExecutor(), text, {}, bindings_bytes=1 << 20) as run:
        prepared = run.prepare(parse(text))  # type: ignore[arg-type]
        direct = run.run(prepared)
        with_sql = run.run(replace(prepared, projection=replace(prepared.projection, direct=None)))
    assert bag(direct) == bag(with_sql)
    assert direct.num_rows == len(db.query(text))


def test_some_queries_need_no_sql(db: graphdb.Database) -> None:
    with QueryRun(db._state.snapshot(), HostExecutor(), QUERIES[0], {}, bindings_bytes=1 << 20) as run:
        assert run.prepare(parse(QUERIES[0])).projection.direct is not None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "pattern",
    ["(a:Country {name: 'nowhere'})-[:neighbour]->(b)", "(a:Country)-[:neighbour]->(b)-[:<urn:no:edge>]->(c)"],
)
def test_what_is_known_to_have_no_match_is_not_planned(db: graphdb.Database, pattern: str) -> None:
    assert db.query(f"MATCH {pattern} RETURN count(*)").scalar() == 0
    assert db.query(f"MATCH {pattern} RETURN count(*) AS n, count(*) AS m").fetchall() == [(0, 0)]
    assert "\n  2 " not in db.explain(f"MATCH {pattern} RETURN count(*)")
    assert "\n  2 " in db.explain(f"MATCH {pattern} RETURN a, b")
    assert db.query(f"MATCH {pattern} RETURN a.name, b.name").fetchall() == []
