"""Tables of properties are made when SQL first reads them, in whatever transaction that is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import graphdb

BY_SQL = "MATCH (a:P) RETURN toUpper(a.name) + '!' AS x ORDER BY x"
DIRECT = "MATCH (a:P) RETURN a.name, coalesce(a.other, a.name)"


@pytest.fixture
def database() -> Iterator[graphdb.Database]:
    with graphdb.connect(device="cpu", threads=1) as opened:
        opened.query(
            "UNWIND range(0, 9) AS i CREATE (:P {name: 'n' + toString(i), other: CASE i % 2 WHEN 0 THEN 'o' END})"
        )
        yield opened


def tables(database: graphdb.Database) -> int:
    sql = "SELECT count(*) FROM duckdb_tables() WHERE temporary AND starts_with(table_name, '_graphdb_')"
    (row,) = database._state.connection.rows(sql)  # a user's SQL does not see them
    return int(row[0])


def rows(count: int) -> list[tuple[str]]:
    return [(f"N{i}!",) for i in sorted(range(count), key=str)]


def test_none_is_made_for_what_is_gathered(database: graphdb.Database) -> None:
    assert len(database.query(DIRECT).fetchall()) == 10
    assert tables(database) == 0


def test_one_is_made_by_the_first_sql(database: graphdb.Database) -> None:
    for _ in range(2):
        assert database.query(BY_SQL).fetchall() == rows(10)
    for i in range(10, 13):
        database.query("CREATE (:P {name: 'n' + $i})", {"i": str(i)})
        assert database.query(BY_SQL).fetchall() == rows(i + 1)


@pytest.mark.parametrize("end", ["ROLLBACK", "COMMIT"])
def test_in_a_transaction(database: graphdb.Database, end: str) -> None:
    """What was prepared before it runs in it for the first time; ROLLBACK takes its tables away."""
    database.query("EXPLAIN " + BY_SQL).fetchall()
    assert tables(database) == 0
    prepared = database.prepare(BY_SQL)
    database.query("BEGIN")
    assert prepared.run().fetchall() == rows(10)
    database.query("CREATE (:P {name: 'n10'})")
    assert prepared.run().fetchall() == rows(11)
    assert database.query(BY_SQL).fetchall() == rows(11)
    database.query(end)
    for _ in range(2):
        assert prepared.run().fetchall() == rows(10 if end == "ROLLBACK" else 11)
    database.query("MATCH (a:P {name: 'n3'}) SET a.name = 'm'")
    assert prepared.run().fetchall() == [
        ("M!",),
        *(row for row in rows(10 if end == "ROLLBACK" else 11) if row != ("N3!",)),
    ]


def test_reading_before_writing(database: graphdb.Database) -> None:
    """What a statement reads with SQL is from before it writes."""
    text = "MATCH (a:P) WITH a, toUpper(a.name) AS n SET a.name = n + 'x' WITH n RETURN n ORDER BY n"
    assert database.query(text).fetchall() == [(f"N{i}",) for i in range(10)]
    assert database.query(BY_SQL).fetchall() == [(f"N{i}X!",) for i in range(10)]


def test_a_promise_from_before_a_transaction(database: graphdb.Database) -> None:
    """A statement compiled before it reads its table within it, once made; each state has its own rows."""
    connection = database._state.connection

    def column() -> str:
        with database._state.hold():
            snapshot = database._state.snapshot()
            (label,) = (label for label in snapshot.names.edge_labels.values() if label.iri.endswith("name"))
            return snapshot.properties.column(label).relation

    def count() -> int:
        column()  # of the state of now
        return int(connection.rows(f"SELECT count(*) FROM {relation}")[0][0])

    relation = column()

    database.query("BEGIN")
    assert [count(), count()] == [10, 10]
    database.query("CREATE (:P {name: 'n10'})")
    assert [count(), count()] == [11, 11]
    database.query("ROLLBACK")
    assert tables(database) == 0
    relation = column()
    assert [count(), count()] == [10, 10]
    assert tables(database) == 1
