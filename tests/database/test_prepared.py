"""Prepared statements: parsed once, run with other parameters each time, on whatever the data are then."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import graphdb


@pytest.fixture
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(threads=1) as database:
        yield database


def test_it_runs_with_parameters_of_its_own(db: graphdb.Database) -> None:
    create = db.prepare("CREATE (:Person {id: $id, name: $name})")
    find = db.prepare("MATCH (p:Person {id: $id}) RETURN p.name")
    assert create.parameters == ("id", "name")
    assert find.parameters == ("id",)
    assert "Person {id: $id})" in repr(find)
    for i in range(20):
        assert find.run(id=i).fetchall() == []
        create.run({"id": i}, name=f"p{i}")
        assert find.run({"id": i}).scalar() == f"p{i}"
    assert [find.run(id=i).scalar() for i in range(20)] == [f"p{i}" for i in range(20)]


def test_names_may_come_later(db: graphdb.Database) -> None:
    late = db.prepare("MATCH (c:City)-[:IN]->(k) RETURN c.name, k.name")
    assert late.run().fetchall() == []
    db.query("CREATE (:City {name: 'Ulm'})-[:IN]->(:Country {name: 'Germany'})")
    assert late.run().fetchall() == [("Ulm", "Germany")]


def test_several_statements(db: graphdb.Database) -> None:
    both = db.prepare("CREATE (:A {n: $x}); MATCH (a:A) RETURN sum(a.n)")
    assert [both.run(x=x).scalar() for x in (1, 2, 3)] == [1, 3, 6]


def test_sql_is_prepared_too(db: graphdb.Database) -> None:
    assert db.prepare("SELECT 42").run().scalar() == 42


def test_what_is_wrong_is_said_when_it_is_prepared_or_run(db: graphdb.Database) -> None:
    with pytest.raises(graphdb.ParseError):
        db.prepare("MATCH (a RETURN a")
    with pytest.raises(graphdb.ParameterError, match="a statement is a text"):
        db.prepare(1)  # type: ignore[arg-type]
    one = db.prepare("RETURN $x + 1")
    with pytest.raises(graphdb.ParameterError, match=r"\$x has no value"):
        one.run()
    with pytest.raises(graphdb.ParameterError, match=r"no parameter \$y"):
        one.run(x=1, y=2)
    with pytest.raises(graphdb.QueryTimeout):
        db.prepare(
            "UNWIND range(1, 3000) AS a UNWIND range(1, 3000) AS b UNWIND range(1, 3000) AS c RETURN sum(a * b * c), $x"
        ).run({"x": "x"}, timeout=0.05)
    assert one.run(x=1).scalar() == 2
    db.close()
    with pytest.raises(graphdb.StorageError, match="closed"):
        one.run(x=1)
    with pytest.raises(graphdb.StorageError, match="closed"):
        db.prepare("RETURN 1")
