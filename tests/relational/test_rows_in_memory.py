"""Rows between clauses: in memory or in a table of DuckDB's, they are the same, and their names are nobody's after."""

from __future__ import annotations

import contextlib
import gc
import re
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import graphdb
from graphdb.common import arrow
from graphdb.common.duckdb import windows
from graphdb.common.duckdb.connection import Connection
from graphdb.common.duckdb.fetch import small_rows
from graphdb.common.duckdb.temporary import PromisedTables
from graphdb.relational.running import materialized, program_run

DATA = """
CREATE (a:Person:Author {id: 1, name: 'Ada', at: datetime('2020-01-02T03:04:05+02:00')}), (b:Person {id: 2, name: 'Bob', tags: ['x', 'y']}),
       (c:Person:Author {id: 3, at: datetime('2021-01-02T03:04:05Z')}), (d:Person {id: 4, name: 'Dan', born: date('2000-02-03')}),
       (a)-[:KNOWS {since: 2001}]->(b), (b)-[:KNOWS {since: 2002}]->(c), (c)-[:KNOWS]->(a), (a)-[:LIKES]->(d), (b)-[:LIKES]->(d)
"""  # fmt: skip
QUERIES = [
    "MATCH (p:Person) WITH DISTINCT p OPTIONAL MATCH (p)-[:LIKES]->(q) WITH p, q MATCH (p)-[:KNOWS]->(r) RETURN p.id, q.name, r.name, q:Author, r:Author",
    "MATCH (p:Person) WITH p ORDER BY p.id SKIP 1 OPTIONAL MATCH (p)-[k:KNOWS]->(q) WITH p, k, q WHERE q IS NULL OR q.id > 0 RETURN p.name, k.since, q.at, q.tags ORDER BY p.id",
    "MATCH (p:Person) WITH p.name AS name, collect(p) AS all UNWIND all AS q MATCH (q)-[:KNOWS]-(r) RETURN name, q.id, count(r)",
    "MATCH (p:Person) WITH DISTINCT p MATCH (p)-[:KNOWS]->(q) WITH p, q, COUNT { (p)-[:LIKES]->() } AS n RETURN p.id, q.born, n, p:Author",
    "UNWIND [{id: 1, x: 0.5}, {id: 3, x: null}] AS row MATCH (p {id: row.id}) OPTIONAL MATCH (p)-[:KNOWS]->(q) RETURN row.x, p.at, q.name",
    "MATCH (p:Person) WITH max(p.at) AS last, count(p) AS n MATCH (q:Person) WHERE q.at = last RETURN q.id, n",
    "MATCH path = (p:Person {id: 1})-[:KNOWS*1..2]->(q) WITH path, q MATCH (q)-[:KNOWS]->(r) RETURN length(path), q.id, r.id",
    "MATCH (p:Person) WITH p, duration({days: p.id}) AS d, p.id * 1.5 AS x, p.id > 1 AS t MATCH (p)-[:KNOWS]->(q) RETURN d, x, t, q.id",
    "MATCH (p:Person) WITH p WHERE p.id < 4 MATCH (p)-[:KNOWS*]->(q:Person) RETURN p.id, count(DISTINCT q)",
    "MATCH (p:Person) WITH p ORDER BY p.id LIMIT 3 MATCH path = ANY SHORTEST (p)-[:KNOWS]->+(q) RETURN p.id, q.id, length(path)",
    "MATCH (p:Person) OPTIONAL MATCH (p)-[:LIKES]->(d) WITH p, d MATCH (q)-[:KNOWS*0..]->(p) RETURN q.id, p.id, d.name",
]  # fmt: skip


@pytest.fixture
def database() -> Iterator[graphdb.Database]:
    with graphdb.connect(device="cpu", threads=1) as opened:
        opened.query(DATA)
        yield opened


def _rows(database: graphdb.Database) -> list[list[str]]:
    return [sorted(map(repr, database.query(text).fetchall())) for text in QUERIES]


def test_in_memory_or_not(database: graphdb.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    in_memory = _rows(database)
    seen: list[int] = []

    def too_large(raw: Any, sql: str, parameters: Any, most: int) -> None:
        seen.append(most)

    with monkeypatch.context() as patched:
        patched.setattr(materialized, "small_rows", too_large)
        patched.setattr(program_run, "run", lambda *_, **__: None)  # nor do columns in memory make rows
        assert _rows(database) == in_memory
    assert len(seen) >= len(QUERIES)
    assert _rows(database) == in_memory  # names were tables between, and are views again


def test_what_they_hold(database: graphdb.Database) -> None:
    assert database.query(QUERIES[1]).fetchall()[0][:2] == ("Bob", 2002)
    assert sorted(database.query(QUERIES[0]).fetchall(), key=repr) == [
        (1, "Dan", "Bob", False, False),
        (2, "Dan", None, False, True),
        (3, None, "Ada", None, True),
    ]


@pytest.mark.parametrize(
    ("value", "same"),
    [
        *((value, True) for value in ("1::TINYINT", "1", "1::BIGINT", "1::UBIGINT", "1.5::FLOAT", "1.5::DOUBLE", "true", "'x'")),
        *((value, True) for value in ("'x'::BLOB", "1.25::DECIMAL(38, 0)", "1.25::DECIMAL(10, 2)", "DATE '2020-01-01'")),
        *((value, True) for value in ("TIMESTAMPTZ '2020-01-01 00:00:00+01'", "[1, NULL]", "[['a'], []]", "{'f0': 1, 'uuid': ['x']}")),
        *((value, True) for value in ("{'moment': TIMESTAMPTZ '2020-01-01 00:00:00+01', 'offset': 3600}", "TIMESTAMP_NS '2020-01-01'")),
        *((value, False) for value in ("1::HUGEINT", "TIMETZ '10:00:00+02'", "uuid()", "'101'::BIT", "row(1, 2)", "[1::HUGEINT]")),
        *((value, False) for value in ("{'a': uuid()}", "'a'::ENUM('a', 'b')")),
    ],
)  # fmt: skip
def test_types_that_come_back(value: str, same: bool) -> None:
    connection = Connection(":memory:")
    sql = f"SELECT {value} AS x UNION ALL SELECT NULL"
    with connection.guard() as raw:
        found = small_rows(raw, sql, {}, 1 << 20)
        if not same or "TIMESTAMP_NS" in value:
            assert found is None
        else:
            assert found is not None
            with connection.view("back", arrow.Table.of_batches(found, found[0].schema)):
                expected = raw.execute(f"SELECT typeof(x), x FROM ({sql})").fetchall()
                assert raw.execute("SELECT typeof(x), x FROM back").fetchall() == expected
    connection.close()


def test_more_than_a_limit() -> None:
    connection = Connection(":memory:")
    with connection.guard() as raw:
        assert small_rows(raw, "SELECT range AS x FROM range(1000000)", {}, 1 << 20) is None
        found = small_rows(raw, "SELECT range AS x FROM range($n) WHERE range < 0", {"n": 5}, 1 << 20)
        assert found is not None
        assert sum(map(len, found)) == 0
    connection.close()


def test_names_are_the_users(database: graphdb.Database) -> None:
    for name in ("_bindings1", "_rows2", "_bindings3", "_graphdb_bindings"):
        database.sql(f"CREATE TABLE {name} AS SELECT 7 AS x")
    for text in QUERIES:
        database.query(text)
    assert database.sql("SELECT a.x + b.x AS x FROM _bindings1 a, _rows2 b").scalar() == 14
    views = "SELECT count(*) FROM duckdb_views() WHERE NOT internal AND temporary AND NOT starts_with(view_name, '_graphdb_')"
    assert database.sql(views).scalar() == 0
    assert database.query(QUERIES[0]).fetchall()


def test_names_after_a_rollback(database: graphdb.Database) -> None:
    expected = _rows(database)
    database.sql("BEGIN")
    assert _rows(database) == expected
    database.query("CREATE (:Person {id: 9})")
    database.query(QUERIES[0])
    database.sql("ROLLBACK")
    assert _rows(database) == expected
    database.sql("BEGIN")
    database.sql("ROLLBACK")
    assert _rows(database) == expected


def test_a_rollback_brings_names_back(database: graphdb.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Views that SQL of the user's had DuckDB drop within the transaction; tables need their names later."""
    database.query("BEGIN")
    database.query("ROLLBACK")
    monkeypatch.setattr(program_run, "run", lambda *_, **__: None)
    expected = _rows(database)
    database.query("BEGIN")
    database.sql("SELECT 1")
    database.query("ROLLBACK")
    monkeypatch.setattr(materialized, "small_rows", lambda *_: None)
    assert _rows(database) == expected


def _registered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what will hold the names that DuckDB is told from now on."""
    names: list[str] = []

    def noted(raw: Any, name: str, table: object, register: Any = windows.register) -> Any:
        names.append(name)
        return register(raw, name, table)

    monkeypatch.setattr(windows, "register", noted)
    return names


GIVEN = "UNWIND $given AS x MATCH (p:Person) WHERE p.id = x WITH x, p WHERE sin(x) <= 1 RETURN x, p.name"
"""A statement that registers a window, which SQL reads, of a type that the parameter says."""


def _read_texts(database: graphdb.Database) -> None:
    """Have the texts read that begin and end transactions: what DuckDB is asked for that takes names away."""
    for text in ("BEGIN", "COMMIT", "BEGIN", "ROLLBACK"):
        database.query(text)


def _given(database: graphdb.Database, *given: object) -> list[Any]:
    return sorted(database.query(GIVEN, given=[*given, 99]).fetchall())


def test_names_of_a_transaction_stay_within_it_and_after_its_commit(
    database: graphdb.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    _read_texts(database)
    names = _registered(monkeypatch)
    database.query("BEGIN")
    assert _given(database, 1) == [(1, "Ada")]
    assert names
    names.clear()
    assert _given(database, 2, 4) == [(2, "Bob"), (4, "Dan")]
    database.query("CREATE (:Person {id: 5, name: 'Eve'})")
    assert _given(database, 5) == [(5, "Eve")]
    database.query("COMMIT")
    assert _given(database, 1, 5) == [(1, "Ada"), (5, "Eve")]
    assert not names


@pytest.mark.parametrize("before", [(), (1,), (1.0,)], ids=["new", "of the same type", "of another type"])
@pytest.mark.parametrize("how", ["ROLLBACK", "failed", "failed in DuckDB"])
def test_names_of_a_transaction_that_is_rolled_back(
    database: graphdb.Database, before: tuple[object, ...], how: str
) -> None:
    """The names, of which there may have been one for rows of the same or of another type before, are told again."""
    _read_texts(database)
    expected = {1: [(1, "Ada")], 2: [(2, "Bob")]}
    if before:
        assert _given(database, *before) == expected[1]
    database.query("BEGIN")
    for each in (1, 2):
        assert _given(database, each) == expected[each]
    database.query("CREATE (:Person {id: 5, name: 'Eve'})")
    assert _given(database, 5) == [(5, "Eve")]
    if how == "failed":  # while it writes
        with pytest.raises(graphdb.GraphDBError, match="still has"):
            database.query("MATCH (p:Person {id: 1}) DELETE p")
    elif how == "failed in DuckDB":
        with pytest.raises(graphdb.GraphDBError, match="by DuckDB"):
            database.sql("SELECT error('by DuckDB')")
    if how != "ROLLBACK":
        with pytest.raises(graphdb.GraphDBError, match="failed"):
            _given(database, 1)
    database.query("ROLLBACK")
    for each in (1, 2, 1.0, 1):
        assert _given(database, each) == expected[each]
    assert _given(database, 5) == []
    database.query("BEGIN")
    assert _given(database, 2) == expected[2]
    database.query("COMMIT")
    assert _given(database, 1) == expected[1]


def test_names_of_statements_that_fail_on_their_own(database: graphdb.Database) -> None:
    """What a statement registered in a transaction of its own goes with it, where it fails after it has written."""
    text = "UNWIND $given AS x MATCH (p:Person) WHERE p.id = x SET p.seen = true WITH p, x UNWIND $given AS y MATCH (q:Person) WHERE q.id = y AND q.id = x DELETE q"
    for _ in range(2):
        with pytest.raises(graphdb.GraphDBError, match="still has"):
            database.query(text, given=[1, 2, 4])
        assert _given(database, 1, 2) == [(1, "Ada"), (2, "Bob")]
    assert database.query("MATCH (p:Person) WHERE p.seen RETURN count(*)").fetchall() == [(0,)]


def test_names_hold_no_rows() -> None:
    connection = Connection(":memory:")
    numbers = np.arange(1, 3)
    first, gone = arrow.table({"x": numbers}), weakref.ref(numbers)
    del numbers
    with connection.view("seen", first, lasting=True):
        assert connection.rows("SELECT sum(x) FROM seen") == [(3,)]
    del first
    gc.collect()
    assert gone() is None
    with connection.view("seen", arrow.table({"x": np.array([4])}), lasting=True):
        assert connection.rows("SELECT sum(x) FROM seen") == [(4,)]
    with connection.view("seen", arrow.table({"y": arrow.strings(["a"])}), lasting=True):
        assert connection.rows("SELECT y FROM seen") == [("a",)]
    with connection.temporary_table("seen"), connection.guard() as raw:
        raw.execute("CREATE TEMP TABLE seen AS SELECT 5 AS x")
    with connection.guard(ours=False) as raw, pytest.raises(Exception, match="seen"):
        raw.execute("FROM seen")
    connection.close()


def test_names_that_sql_does_not_read_are_not_registered(
    database: graphdb.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [
        GIVEN.replace("$given", "[1, 2]").replace("sin(x)", "0 * x"),
        "MATCH (p:Person)-[:KNOWS]->(q) WITH p, q WHERE q.id > 1 RETURN p.id, q.id",
    ]
    names, opened = _registered(monkeypatch), database._state.connection.promised._makers
    found = [sorted(database.query(text).fetchall()) for text in texts]
    assert found == [[(1, "Ada"), (2, "Bob")], [(1, 2), (2, 3)]]
    assert not names
    assert not {name for name in opened if re.match(r"_(graphdb_bindings|bindings|joined|rows)", name)}
    assert _given(database, 1) == [(1, "Ada")]
    assert len(names) == 1


def test_a_name_is_registered_once_sql_reads_it() -> None:
    with contextlib.closing(Connection(":memory:")) as connection:
        numbers = arrow.table({"x": np.arange(3)})
        with connection.view("seen", numbers, lasting=True):
            with pytest.raises(Exception, match="seen"), connection.guard() as raw:
                raw.execute("FROM seen")
            for _ in range(2):
                assert connection.rows("SELECT sum(x) FROM seen") == [(3,)]
        with connection.view("seen", arrow.table({"y": np.arange(3)}), lasting=True):  # nobody reads it
            pass
        with connection.view("seen", numbers, lasting=True):
            assert connection.rows("SELECT max(x) FROM seen") == [(2,)]
        assert not connection.promised._makers


def test_tables_that_are_made_of_others_which_the_same_sql_reads() -> None:
    promised, made = PromisedTables(), list[str]()

    def of_another() -> bool:
        promised.make("FROM _other")
        made.append("_whole")
        return True

    promised.add("_whole", of_another)
    promised.add("_other", lambda: not made.append("_other"))
    promised.make("FROM _whole JOIN _other")
    assert made == ["_other", "_whole"]


def test_paths_join_rows_as_arrays(database: graphdb.Database) -> None:
    steps = "\n".join(line for (line,) in database.query(f"PROFILE {QUERIES[-3]}"))
    assert "paths _paths" in steps
    assert "taken from columns in memory without SQL" in steps
