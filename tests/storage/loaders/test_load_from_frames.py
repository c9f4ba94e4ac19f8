"""LOAD FROM finds the caller's data frames by their names, as SQL does."""

from __future__ import annotations

import pytest

import graphdb


def test_a_frame_is_loaded_by_its_name() -> None:
    pandas = pytest.importorskip("pandas")
    people = pandas.DataFrame({"id": [1, 2], "name": ["Ada", "Mary"]})
    knows = pandas.DataFrame({"a": [1], "b": [2]})
    with graphdb.connect(threads=1) as db:
        db.query(
            'LOAD FROM (SELECT id AS "id:ID", name FROM people) AS LABEL Person, '
            "FROM (FROM knows) AS TYPE KNOWS COLUMNS {a: ':START_ID', b: ':END_ID'}"
        )
        assert db.query("MATCH (a)-[:KNOWS]->(b) RETURN a.name, b.name").fetchall() == [("Ada", "Mary")]
        with pytest.raises(graphdb.LoadError, match="nobody does not exist"):
            db.query("LOAD FROM (FROM nobody) AS LABEL Person")
        with pytest.raises(graphdb.GraphDBError) as raised:
            db.query("LOAD FROM people AS LABEL Person")
        assert "LOAD FROM (FROM people)" in (raised.value.hint or "")
    assert len(people) + len(knows) == 3


def test_strangers_name_no_frame_of_the_caller() -> None:
    pandas = pytest.importorskip("pandas")
    secret = pandas.DataFrame({"id": [1]})
    with graphdb.connect(untrusted=True) as db, pytest.raises(graphdb.GraphDBError):
        db.query('LOAD FROM (SELECT id AS "id:ID" FROM secret) AS LABEL Person')
    assert len(secret) == 1
