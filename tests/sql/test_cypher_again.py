"""SQL with pattern queries that is asked again: it is not read or made known to DuckDB again, and follows the data."""

import pytest

import graphdb
from graphdb.common.duckdb import windows

TWO = """
SELECT count(*) AS n FROM cypher($$ MATCH (a:A) RETURN a.x AS x $$) JOIN cypher($$ MATCH (a:A) RETURN a.x AS x $$) USING (x);
SELECT sum(x) AS n FROM cypher($$ MATCH (a:A) WHERE a.x > $least RETURN a.x AS x $$)
"""


@pytest.fixture
def db():
    with graphdb.connect() as db:
        db.query("UNWIND [1, 2, 3] AS x CREATE (:A {x: x})")
        yield db


def test_a_text_that_comes_again_is_not_registered_again(db, monkeypatch):
    text = "SELECT sum(x) FROM cypher($$ MATCH (a:A) RETURN a.x AS x $$)"
    registered = []

    def counted(raw, name, table, register=windows.register):
        registered.append(name)
        return register(raw, name, table)

    assert db.sql(text).scalar() == 6
    monkeypatch.setattr(windows, "register", counted)
    for x in (10, 20):
        db.query("CREATE (:A {x: $x})", x=x)
        assert db.sql(text).scalar() == 6 + (x if x == 10 else 30)
    assert not registered
    assert db.sql("SELECT count(*) FROM duckdb_views() WHERE view_name LIKE '_graphdb_%cypher%'").scalar() == 0


def test_several_statements_and_queries_each_have_their_own_rows(db):
    for least, total in ((0, 6), (1, 5), (2, 3), (0, 6)):
        assert db.sql(TWO, {"least": least}).scalar() == total
    text = (
        "SELECT a.x, b.x FROM cypher($$ MATCH (a:A) RETURN a.x AS x $$) a, cypher($$ MATCH (a:A) RETURN -a.x AS x $$) b"
    )
    for _ in range(2):
        assert sorted(db.sql(text).fetchall()) == [(x, -y) for x in (1, 2, 3) for y in (3, 2, 1)]


def test_types_may_change_between_two_runs(db):
    text = "SELECT max(x) AS x FROM cypher($$ MATCH (a:A) RETURN a.x AS x $$)"
    assert db.sql(text).scalar() == 3
    db.query("MATCH (a:A) SET a.x = 'text ' + a.x")
    assert db.sql(text).scalar() == "text 3"


def test_within_a_transaction_that_is_rolled_back(db):
    text = "SELECT sum(x) FROM cypher($$ MATCH (a:A) RETURN a.x AS x $$)"
    assert db.sql(text).scalar() == 6
    db.query("BEGIN")
    db.query("CREATE (:A {x: 4})")
    assert db.sql(text).scalar() == 10
    db.query("ROLLBACK")
    assert db.sql(text).scalar() == 6
    db.query("BEGIN")
    assert db.sql(text + " WHERE x > 1").scalar() == 5
    db.query("ROLLBACK")
    assert db.sql(text + " WHERE x > 1").scalar() == 5


def test_an_error_leaves_the_text_to_be_asked_again(db):
    text = "SELECT x // (x - $zero) FROM cypher($$ MATCH (a:A) RETURN a.x AS x $$) WHERE error('no') IS NULL"
    for _ in range(2):
        with pytest.raises(graphdb.GraphDBError, match="no"):
            db.sql(text, {"zero": 0})
    assert db.sql("SELECT sum(x) FROM cypher($$ MATCH (a:A) RETURN a.x AS x $$)").scalar() == 6
