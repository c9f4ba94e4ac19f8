"""LOAD FROM finds the caller's data frames by their names, as SQL does."""

from __future__ import annotations

import numpy
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


@pytest.mark.parametrize("ids", [[1, 2, 3], [7, 8, 10]])
def test_an_index_with_a_name_is_a_column(ids: list[int]) -> None:
    """Arrow leaves out an index of pandas whose numbers happen to be consecutive."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"id": ids, "name": ["Ada", "Mary", "Ann"]}).set_index("id")
    with graphdb.connect(threads=1) as db:
        db.load(frame, label="Person", columns={"id": "id:ID"})
        found = db.query("MATCH (p:Person) RETURN p.id, p.name ORDER BY p.id").fetchall()
        assert found == list(zip(ids, frame["name"], strict=True))
        assert list(frame.columns) == ["name"]


@pytest.mark.parametrize(
    ("data", "hint"),
    [
        ([{"id": 1}], "pandas.DataFrame(rows)"),
        ({"id": 1}, "UNWIND $rows AS row CREATE"),
        ([("a", "b")], "pandas.DataFrame(rows)"),
        (numpy.array([[1, 2]]), ':START_ID", ":END_ID'),
    ],
)
def test_rows_that_are_no_frame(data: object, hint: str) -> None:
    with graphdb.connect(threads=1) as db, pytest.raises(graphdb.LoadError, match="cannot be loaded") as error:
        db.load(data)
    assert error.value.hint is not None
    assert hint in error.value.hint
