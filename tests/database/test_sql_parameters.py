"""Parameters of SQL statements, by name and by position, and of the pattern queries within them."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Iterator

import numpy as np
import pytest

import graphdb


@pytest.fixture
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(threads=1) as database:
        database.query("CREATE (:P {n: 1, name: 'x'})-[:K]->(:P {n: 2, name: 'y'})-[:K]->(:P {n: 3, name: 'x'})")
        yield database


@pytest.mark.parametrize(
    "value",
    [1, -(2**100), 1.5, "a'b\"c; DROP TABLE t", "", True, None, b"bytes", [1, 2, 3], ["a", None], {"a": [{"b": "c"}]},
     decimal.Decimal("1.25"), datetime.date(2020, 2, 29), datetime.datetime(2020, 2, 29, 1, 2, 3), datetime.time(1, 2)],
)  # fmt: skip
def test_values_come_back(db: graphdb.Database, value: object) -> None:
    for run in (db.sql, db.query, db.execute):
        assert run("SELECT $x AS x", {"x": value}).fetchall() == [(value,)]
        assert run("SELECT ? AS x", [value]).fetchall() == [(value,)]
        assert run("SELECT $1 AS x", (value,)).fetchall() == [(value,)]
        assert run("SELECT $x AS x", x=value).fetchall() == [(value,)]


def test_values_of_other_libraries_and_of_results(db: graphdb.Database) -> None:
    assert db.sql("SELECT ? + ?", [np.int64(2), np.float64(0.5)]).scalar() == 2.5
    assert db.sql("SELECT list_sum(?)", [np.array([1, 2, 3])]).scalar() == 6
    node = db.query("MATCH (p:P {n: 2}) RETURN p").scalar()
    db.query("CREATE TABLE people AS MATCH (p:P) RETURN p, p.n AS n")
    assert db.sql("SELECT n FROM people WHERE p = $node", node=node).fetchall() == [(2,)]
    edge = db.query("MATCH (:P {n: 1})-[e:K]->() RETURN e").scalar()
    assert db.sql("SELECT ($edge).type", edge=edge).scalar() == "K"
    two_months = db.query("RETURN duration('P2MT1S')").scalar()
    later = db.sql("SELECT DATE '2020-01-31' + $d", d=two_months).scalar()
    assert later == datetime.datetime(2020, 3, 31, 0, 0, 1)


def test_pattern_queries_within_have_them_too(db: graphdb.Database) -> None:
    text = "SELECT count(*) FROM cypher($$ MATCH (p:P) WHERE p.name = $name RETURN p.n AS n $$) WHERE n > $least"
    assert db.sql(text, name="x", least=0).scalar() == 2
    assert db.sql(text, name="x", least=1).scalar() == 1
    own = "SELECT n FROM cypher($$ MATCH (p:P) WHERE p.name IN $names RETURN p.n AS n $$, {names: ['x', $more]}) ORDER BY n"
    assert db.sql(own, more="y").fetchall() == [(1,), (2,), (3,)]
    assert db.query(own, {"more": "z"}).fetchall() == [(1,), (3,)]
    both = "SELECT (SELECT count(*) FROM cypher('MATCH (p:P {n: $n}) RETURN p')) + $n"
    assert db.sql(both, n=1).scalar() == 2


def test_numbers_stay_those_of_the_whole_statement(db: graphdb.Database) -> None:
    text = "SELECT n, $2 AS two FROM cypher($$ MATCH (p:P) WHERE p.n > $least RETURN p.n AS n $$, {least: $1}) WHERE n < $3"
    assert db.sql(text, [1, "x", 3]).fetchall() == [(2, "x")]
    after = "SELECT n FROM cypher($$ MATCH (p:P) RETURN p.n AS n $$) WHERE n = ? OR n = ? ORDER BY n"
    assert db.sql(after, [3, 1]).fetchall() == [(1,), (3,)]
    with pytest.raises(graphdb.ParameterError, match="need names or numbers"):
        db.sql("FROM cypher($$ MATCH (p {n: $n}) RETURN p.n AS n $$, {n: ?}) WHERE n = ?", [1, 2])


def test_each_statement_takes_its_own(db: graphdb.Database) -> None:
    db.query("CREATE (:Q {n: $n}); CREATE TABLE t AS SELECT $m AS m; INSERT INTO t VALUES ($k)", n=1, m=2, k=3)
    assert db.sql("SELECT * FROM t").fetchall() == [(2,), (3,)]
    statement = db.prepare("INSERT INTO t SELECT m + $by FROM t WHERE m = $at; SELECT max(m) FROM t")
    assert statement.parameters == ("at", "by")
    assert [statement.run(at=2, by=by).scalar() for by in (5, 10)] == [7, 12]


def test_mistakes_name_the_parameter(db: graphdb.Database) -> None:
    for text, instead in ("RETURN $1", "query(…, […])"), ("RETURN $`a b`", "query(…, {'a b': …})"):
        with pytest.raises(graphdb.ParameterError, match=r"\$.* has no value") as missing:
            db.query(text)
        assert instead in str(missing.value)
    with pytest.raises(graphdb.ParameterError, match=r"\$name has no value") as missing:
        db.sql("SELECT 1,\n  $name")
    assert (missing.value.line, missing.value.column) == (2, 3)
    with pytest.raises(graphdb.ParameterError, match=r"no parameter \$nam") as unknown:
        db.sql("SELECT $name", name=1, nam=1)
    assert "did you mean $name?" in str(unknown.value)
    with pytest.raises(graphdb.ParameterError, match="number 2 has no value"):
        db.sql("SELECT ? + ?", [1])
    with pytest.raises(graphdb.ParameterError, match="no parameter number 2"):
        db.sql("SELECT ?", [1, 2])
    for value in (object(), {1: 2}, {"a": [object()]}, 3j):
        with pytest.raises(graphdb.ParameterError, match=r"\$x is of type"):
            db.sql("SELECT $x", x=value)
    with pytest.raises(graphdb.ParameterError, match="surrogate"):
        db.sql("SELECT $x", x="\ud800")
    with pytest.raises(graphdb.GraphDBError):
        db.sql("SELECT $x", x=10**60)
    with pytest.raises(graphdb.ParameterError, match="a dictionary or a list"):
        db.query("SELECT $x", "text")
    with pytest.raises(graphdb.ParameterError, match=r"\$n has no value"):
        db.sql("FROM cypher('MATCH (p {n: $n}) RETURN p.n')")
    with pytest.raises(graphdb.ParameterError, match="a struct or a map"):
        db.sql("FROM cypher('MATCH (p {n: $n}) RETURN p.n', [1])")
    with pytest.raises(graphdb.ParseError, match="cypher needs a string"):
        db.sql("FROM cypher('MATCH (p {n: $n}) RETURN p.n', {n: 1}, 2)")
    assert db.sql("SELECT 1").scalar() == 1
