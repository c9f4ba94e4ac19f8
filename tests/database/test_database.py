"""A database from its opening to its closing: empty, reopened, several at once, threads, transactions, settings."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, time
from decimal import Decimal
from pathlib import Path

import pytest

import graphdb
from tests.people import DATA, EX, TYPE, XSD, names, opened


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[graphdb.Database]:
    with opened(tmp_path_factory.mktemp("queries")) as database:
        yield database


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[graphdb.Database]:
    with opened(tmp_path) as database:
        yield database


def test_an_empty_database_answers(tmp_path: Path) -> None:
    with graphdb.connect() as db:
        assert db.query("MATCH (a) RETURN count(*)").scalar() == 0
        result = db.query("MATCH (a)-[e]->(b) WHERE (a)-->() RETURN a, e, labels(b) AS l")
        assert (result.columns, result.fetchall()) == (("a", "e", "l"), [])
        assert result.to_arrow().num_rows == 0
        assert db.query("MATCH (a:%) RETURN a").fetchall() == []
        assert db.sql("SELECT count(*) FROM triples").scalar() == 0
        assert db.query("MATCH (a:Person) RETURN a").fetchall() == []


def test_everything_is_there_after_reopening(tmp_path: Path) -> None:
    file = tmp_path / "kept.duckdb"
    data = tmp_path / "data.nt"
    data.write_text(DATA, encoding="utf-8")
    query = "MATCH (a:ex:Person)-[:knows]->(b) RETURN a.name, b.name, a.mixed, a.zoned, a.price ORDER BY a.name, b.name"
    with graphdb.connect(file) as db:
        db.load(data)
        db.query("PREFIX ex: <http://ex.org/>; CREATE TABLE kept AS MATCH (a:ex:Person) RETURN a, a.mixed, null AS n")
        before = db.query(query).fetchall()
    with graphdb.connect(file) as db:
        assert db.query(query).fetchall() == before
        assert db.sql("SELECT count(*) FROM kept").scalar() == 3


def test_several_databases_at_once(tmp_path: Path) -> None:
    with opened(tmp_path) as one, opened(tmp_path, '<urn:a> <urn:p:name> "x" .\n') as other:
        assert one.query("MATCH (a) RETURN count(*)").scalar() == 5
        assert other.query("MATCH (a) RETURN a.name").scalar() == "x"


def test_a_second_connection_to_the_file_sees_a_load(tmp_path: Path) -> None:
    data = tmp_path / "data.nt"
    data.write_text(DATA, encoding="utf-8")
    with graphdb.connect(tmp_path / "two.duckdb") as one, graphdb.connect(tmp_path / "two.duckdb") as two:
        assert two.query("MATCH (a) RETURN count(*)").scalar() == 0
        one.load(data)
        assert two.query("MATCH (a) RETURN count(*)").scalar() == 5


def test_results_after_more_was_loaded(fresh: graphdb.Database, tmp_path: Path) -> None:
    result = fresh.query("MATCH (a {name: 'Ada'})-[e:likes]->(b) RETURN a, b, e")
    more = tmp_path / "more.nt"
    more.write_text("".join(f"<urn:a{i}> <urn:p> <http://ex.org/ada> .\n" for i in range(100)))
    fresh.load(more)
    ((a, b, e),) = result.fetchall()
    assert (a.iri, b.iri, e.type) == (EX + "ada", EX + "bob", EX + "likes")


def test_threads_may_query_at_once(db: graphdb.Database) -> None:
    wrong: list[object] = []

    def work(number: int) -> None:
        name, friends = [("Ada", ["Ada", "Bob"]), ("Bob", ["Cy"]), ("Cy", ["Ada"])][number % 3]
        try:
            for _ in range(10):
                rows = db.query("MATCH (a {name: $n})-[:knows]->(b) RETURN b.name, b ORDER BY b.name", n=name)
                if [row[0] for row in rows] != friends:
                    wrong.append((name, rows.fetchall()))
                if db.sql("SELECT count(*) FROM cypher($$ MATCH (a:Person) RETURN a.name $$)").scalar() != 3:
                    wrong.append("sql")
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_transactions_in_sql(fresh: graphdb.Database, tmp_path: Path) -> None:
    more = tmp_path / "more.nt"
    more.write_text("<urn:a> <urn:p:new> <urn:b> .\n")
    fresh.query("BEGIN")
    assert fresh.query("MATCH (a) RETURN count(*)").scalar() == 5
    fresh.query("CREATE TABLE t AS MATCH (a:Firm) RETURN a.name")
    fresh.query("PREFIX gone: <http://gone.org/>")
    with pytest.raises(graphdb.GraphDBError, match="transaction"):
        fresh.load(more)
    fresh.query("ROLLBACK")
    assert "t" not in fresh.tables()
    assert "gone" not in fresh.prefixes()
    assert fresh.query("MATCH (a) RETURN count(*)").scalar() == 5
    fresh.load(more)
    assert fresh.query("MATCH (a)-[:new]->(b) RETURN count(*)").scalar() == 1


@pytest.mark.own_duckdb
def test_settings_of_sql_do_not_change_what_patterns_mean(fresh: graphdb.Database) -> None:
    fresh.sql("SET default_null_order = 'nulls_first'; SET default_order = 'DESC'; SET TimeZone = 'America/New_York'")
    fresh.sql("CREATE SCHEMA s; USE s")
    assert fresh.query("MATCH (a:Person) RETURN a.name ORDER BY a.age, a.name").fetchall() == [
        ("Ada",),
        ("Bob",),
        ("Cy",),
    ]
    assert names(fresh, "MATCH (a) WHERE a.zoned < datetime('2020-01-01T10:00:00Z')") == ["Bob"]
    fresh.sql("ATTACH ':memory:' AS elsewhere; USE elsewhere")
    assert names(fresh, "MATCH (a:Person)") == ["Ada", "Bob", "Cy"]


def test_unicode_names_and_long_strings(tmp_path: Path) -> None:
    long = "å" * 300_000
    data = f'<http://ex.org/é> <http://ex.org/größe> "{long}" .\n<http://ex.org/é> {TYPE} <http://ex.org/日本> .\n'
    with opened(tmp_path, data) as db:
        assert db.query("MATCH (n:日本) RETURN n.größe AS wie_groß").scalar() == long
        assert db.query("MATCH (n:`日本`) WHERE n.`größe` = $x RETURN count(*)", x=long).scalar() == 1
        assert db.query("MATCH (n <http://ex.org/é>) RETURN size(n.größe)").scalar() == 300_000


def test_dates_before_our_era_and_numbers_beyond_64_bits_can_be_read(tmp_path: Path) -> None:
    """Real data has both; Python's dates begin with the year 1, so that such a value may come as text."""
    data = (
        f'<urn:a> <urn:p:died> "-0044-03-15"^^<{XSD}date> .\n<urn:a> <urn:p:at> "-0044-03-15T12:00:00"^^<{XSD}dateTime> .\n'
        f'<urn:a> <urn:p:big> "123456789012345678901234567890"^^<{XSD}integer> .\n<urn:a> <urn:p:died> "none" .\n'
    )
    with opened(tmp_path, data) as db:
        assert db.query("MATCH (a)-[:died]->(d) RETURN count(*)").scalar() == 2
        assert db.query("MATCH (a) WHERE a.at < datetime('0001-01-01T00:00:00') RETURN count(*)").scalar() == 1
        assert len(db.query("MATCH (a) RETURN a.big").fetchall()) == 1
        assert len(db.query("MATCH (a) RETURN a").fetchall()) == 1
        assert len(db.query("MATCH (a)-[:died]->(d) RETURN d").fetchall()) == 2
        assert "44" in str(db.query("MATCH (a) RETURN a.at").scalar())
        assert "44" in str(db.query("MATCH (a) RETURN a.died").scalar())


def test_the_midnight_that_ends_a_day_is_the_next_ones(tmp_path: Path) -> None:
    """XML Schema 1.1, Datatypes, §3.3.7.2; of one value and of one among several, which are read in another way."""
    texts = [
        ("2024-02-29T24:00:00", "dateTime", datetime(2024, 3, 1)),
        ("2024-12-31T24:00:00.00Z", "dateTime", datetime(2025, 1, 1, tzinfo=UTC)),
        ("2024-12-31T24:00:00-05:00", "dateTime", datetime(2025, 1, 1, 5, tzinfo=UTC)),
        ("24:00:00", "time", time(0)),
        ("24:00:00.0+00:00", "time", time(0, tzinfo=UTC)),
        ("2024-02-29T24:00:01", "dateTime", "2024-02-29T24:00:01"),
        ("2024-02-30T24:00:00", "dateTime", "2024-02-30T24:00:00"),
    ]
    data = "".join(
        f'<urn:a> <urn:p:all> "{text}"^^<{XSD}{type}> .\n<urn:a> <urn:p:p{i}> "{text}"^^<{XSD}{type}> .\n'
        for i, (text, type, _) in enumerate(texts)
    )
    with opened(tmp_path, data) as db:
        expected = [value for *_, value in texts]
        single = ", ".join(f"a.p{i}" for i in range(len(texts)))
        assert [*db.query(f"MATCH (a) RETURN {single}").fetchall()[0]] == expected
        found = [value for (value,) in db.query("MATCH (a)-[:all]->(v) RETURN v").fetchall()]
        assert {(type(v), v) for v in found} == {(type(v), v) for v in expected}
        several = db.query("MATCH (a) RETURN a.all").scalar()
        assert {(type(v), v) for v in several} == {(type(v), v) for v in expected}


def test_a_timeout_error_names_the_timeout(db: graphdb.Database) -> None:
    cross = ", ".join(f"(v{i})" for i in range(12))
    with pytest.raises(graphdb.QueryTimeout) as caught:
        db.query(f"MATCH {cross} RETURN v0.name, v11.name", timeout=0.5)
    assert "0.5 s" in str(caught.value)
    assert db.query("MATCH (a) RETURN count(*)").scalar() == 5


def test_equal_parameters_of_different_types_are_distinguished(db: graphdb.Database) -> None:
    """A prepared query comes back for the same text, not for an argument that is only equal."""
    for given in (1, 1.0, True, 0.0, -0.0, Decimal(1)):
        found = db.query("RETURN $x AS x", x=given).scalar()
        assert (type(found), str(found)) == (type(given), str(given))


@pytest.mark.own_duckdb
def test_labels_and_values_are_sorted_whatever_sql_prefers(fresh: graphdb.Database) -> None:
    query = "MATCH (a:Person) RETURN a"
    before = [node for (node,) in fresh.query(query)]
    fresh.sql("SET default_order = 'DESC'")
    after = [node for (node,) in fresh.query(query)]
    # By their text: a NaN among the values does not equal itself.
    assert sorted(map(repr, after)) == sorted(map(repr, before))
    assert all(node.labels == tuple(sorted(node.labels)) for node in after)
