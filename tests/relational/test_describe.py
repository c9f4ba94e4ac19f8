"""DESCRIBE: every triple that a resource is in."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest

import graphdb

DATA = b"""
@prefix ex: <http://example.org/> .
ex:tom a ex:Cat ; ex:name "Tom" ; ex:age 3 ; ex:nick "T", "Tommy" ; ex:knows ex:jerry , ex:tom .
ex:jerry a ex:Mouse ; ex:knows ex:tom ; ex:name "Jerry" .
ex:spike a ex:Dog ; ex:knows ex:jerry .
"""


@pytest.fixture
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(threads=1) as database:
        database.load(io.BytesIO(DATA), format="turtle")
        database.query("PREFIX ex: <http://example.org/>")
        yield database


@pytest.mark.parametrize("text", ["DESCRIBE <http://example.org/tom>", "describe ex:tom;", "/* all */ DESCRIBE ex:tom"])
def test_all_triples_of_a_resource(db: graphdb.Database, text: str) -> None:
    result = db.query(text)
    assert result.columns == ("subject", "predicate", "object")
    tom, jerry = "http://example.org/tom", "http://example.org/jerry"
    assert sorted(map(str, result)) == sorted(
        map(
            str,
            [
                (tom, "a", "ex:Cat"),
                (tom, "ex:name", "Tom"),
                (tom, "ex:age", 3),
                (tom, "ex:nick", "T"),
                (tom, "ex:nick", "Tommy"),
                (tom, "ex:knows", jerry),
                (tom, "ex:knows", tom),
                (jerry, "ex:knows", tom),
            ],
        )
    )


def test_as_many_as_the_view_of_triples_has(db: graphdb.Database) -> None:
    for name in ("tom", "jerry", "spike", "nobody"):
        iri = f"http://example.org/{name}"
        count = db.sql("SELECT count(*) FROM triples WHERE subject = $iri OR object = $iri", iri=iri).scalar()
        assert len(db.query(f"DESCRIBE <{iri}>")) == count


def test_other_statements_of_that_name_are_sqls(db: graphdb.Database) -> None:
    assert db.query("DESCRIBE triples").columns[0] == "column_name"
    assert db.query("DESCRIBE SELECT 1 AS x").fetchall()[0][0] == "x"
    with pytest.raises(graphdb.BindError, match="unknown prefix 'exx'") as error:
        db.query("DESCRIBE exx:tom")
    assert error.value.hint == "did you mean 'ex:tom'?"
    with pytest.raises(graphdb.GraphDBError):
        db.query("DESCRIBE <http://example.org/tom> <http://example.org/tom>")
