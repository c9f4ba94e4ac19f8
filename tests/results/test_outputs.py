"""Results elsewhere: as tables of the file, within SQL, as Arrow tables and data frames."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import graphdb
from graphdb.common.duckdb.connection import Connection
from graphdb.relational.session.embedded import caller_tables
from tests.people import EX, opened


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[graphdb.Database]:
    with opened(tmp_path_factory.mktemp("queries")) as database:
        yield database


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[graphdb.Database]:
    with opened(tmp_path) as database:
        yield database


def test_create_table_as(fresh: graphdb.Database) -> None:
    fresh.query("CREATE TABLE people AS MATCH (a:Person) RETURN a, a.name, a.mixed, a.nick ORDER BY a.name")
    rows = fresh.sql("SELECT a, name, mixed::VARCHAR, nick FROM people ORDER BY name").fetchall()
    assert rows[0] == (EX + "ada", "Ada", "1", ["A", "Countess"])
    fresh.query("CREATE TABLE IF NOT EXISTS people AS MATCH (a:Firm) RETURN a.name")
    assert fresh.sql("SELECT count(*) FROM people").scalar() == 3
    fresh.query("CREATE OR REPLACE TABLE people AS MATCH (a:Person) WHERE a.age > $least RETURN a.name", least=37)
    assert fresh.sql("SELECT * FROM people").fetchall() == [("Bob",)]
    fresh.query('CREATE TEMP TABLE "odd ""name""" AS MATCH (a:Firm) RETURN a.name')
    assert fresh.sql('SELECT * FROM "odd ""name"""').scalar() == "Acme"
    fresh.query("CREATE TABLE none AS MATCH (a:Person) WHERE a.age > 99 RETURN a, a.age AS age")
    assert fresh.sql("SELECT * FROM none").columns == ("a", "age")


def test_cypher_in_sql(db: graphdb.Database) -> None:
    people = "cypher($$ MATCH (a:Person) RETURN a.name AS n, a.age AS age $$)"
    assert db.sql(f"SELECT n FROM {people} WHERE age > 38").fetchall() == [("Bob",)]
    assert db.sql(f"SELECT 'é', count(*) FROM {people} x JOIN {people} y ON x.n < y.n").fetchall() == [("é", 3)]
    assert db.sql("SELECT * FROM cypher('MATCH (a {name: ''Ada''}) RETURN a.age')").scalar() == 36
    assert db.sql("SELECT 'cypher($$ no $$)' AS text, 1 AS cypher").fetchall() == [("cypher($$ no $$)", 1)]
    assert db.query(f"SELECT count(*) FROM {people}").scalar() == 3
    assert db.sql("SELECT * FROM cypher /* a comment */ ($$ MATCH (a:Firm) RETURN a.name $$)").scalar() == "Acme"


def test_results_by_their_python_names(db: graphdb.Database) -> None:
    found = db.query("MATCH (a:Person) RETURN a, a.name, a.mixed")
    assert found is not None
    assert db.sql("SELECT count(*) FROM found WHERE name < 'B'").scalar() == 1
    assert db.sql("WITH found AS (SELECT 7 AS x) SELECT x FROM found").scalar() == 7


def test_arrow_and_frames_take_everything(db: graphdb.Database) -> None:
    result = db.query(
        "MATCH (a:Person)-[e:likes]->(b) RETURN a, e, a.mixed, a.nick, [a, b] AS l, collect(e) AS es, a.price, a.zoned, "
        "null AS none, labels(b) AS ls ORDER BY a.name"
    )
    first = result.to_arrow().to_pylist()[0]
    assert (first["a"]["id"], first["a"]["labels"]) == (EX + "ada", [EX + "Person", EX + "Woman"])
    assert {**first["e"], "id": 0} == {
        "id": 0, "type": EX + "likes", "start": EX + "ada", "end": EX + "bob", "properties": None
    }  # fmt: skip
    assert [node["id"] for node in first["l"]] == [EX + "ada", EX + "bob"]
    assert first["es"] == [first["e"]]
    assert first["ls"] == [EX + "Person"]
    frame = result.to_pandas()
    assert [a["id"] for a in frame["a"]] == [EX + "ada", EX + "bob"]
    assert list(frame["a.mixed"]) == ["1", "one"]
    assert result.to_polars()["a.price"].to_list() == [Decimal("0.10"), Decimal("0.20")]


def test_arrow_distinguishes_null_from_an_empty_list(db: graphdb.Database) -> None:
    text = "UNWIND [{a: 1}, {a: 2}, {a: 3}] AS m WITH m.a AS a RETURN CASE a WHEN 1 THEN [{k: a}] WHEN 2 THEN [] END AS l, "
    text += "CASE WHEN a > 1 THEN {k: [{j: a}], o: null} END AS m ORDER BY a"
    assert db.query(text).to_arrow().to_pylist() == [
        {"l": [{"k": 1}], "m": None},
        {"l": [], "m": {"k": [{"j": 2}], "o": None}},
        {"l": None, "m": {"k": [{"j": 3}], "o": None}},
    ]


def test_columns_of_lists_of_several_types_are_lists_to_all_who_take_them(db: graphdb.Database) -> None:
    text = "UNWIND [[1, 'x'], [2, null], [1, 'x']] AS p WITH toInteger(p[0]) AS a, toString(p[1]) AS b WITH [a, b, a > 1] AS l, "
    text += "count(*) AS n RETURN l, n, size(l) AS s, l[0] AS i, 'x' IN l AS x, [l, l] AS ll ORDER BY i"
    rows = [
        ([1, "x", False], 2, 3, 1, True, [[1, "x", False]] * 2),
        ([2, None, True], 1, 3, 2, None, [[2, None, True]] * 2),
    ]
    result = db.query(text)
    assert result.fetchall() == rows
    texts = [[None if item is None else str(item).lower() for item in row[0]] for row in rows]
    assert [(row["l"], row["ll"]) for row in result.to_arrow().to_pylist()] == [(text, [text] * 2) for text in texts]
    db.query(f"CREATE TABLE mixed AS {text}")
    assert db.sql("SELECT l FROM mixed ORDER BY i").fetchall() == [(row[0],) for row in rows]
    either = "MATCH (p:Person) RETURN [p.age, p.name] AS l UNION MATCH (p:Person) RETURN [p.name, p.age] AS l"
    ages = db.query("MATCH (p:Person) RETURN DISTINCT p.age, p.name").fetchall()
    assert sorted(map(str, db.query(either))) == sorted(str((list(l),)) for a, n in ages for l in ((a, n), (n, a)))


def test_frames_take_lists_of_several_types(db: graphdb.Database) -> None:
    result = db.query("MATCH (a) WHERE a.several IS NOT NULL RETURN a.several AS s")
    assert list(result.to_pandas()["s"][0]) == ["1", "x"]
    try:
        polars = result.to_polars()
    except BaseException as error:  # Polars panics outside the Exception tree
        pytest.fail(f"to_polars: {type(error).__name__}")
    assert polars["s"].to_list() == [["1", "x"]]


def test_into_and_scalar(fresh: graphdb.Database) -> None:
    result = fresh.query("MATCH (a:Person) RETURN a.name ORDER BY a.name")
    assert result.into('we"ird') == 3
    assert fresh.sql('SELECT count(*) FROM "we""ird"').scalar() == 3
    with pytest.raises(graphdb.GraphDBError, match=r"already exists(.|\n)*hint: into\(name, replace=True\)"):
        result.into('we"ird')
    assert result.into('we"ird', replace=True) == 3
    for query in ("MATCH (a) RETURN a", "MATCH (a) RETURN a LIMIT 0", "RETURN 1, 2", "PREFIX x: <http://x/>"):
        with pytest.raises(graphdb.GraphDBError):
            fresh.query(query).scalar()
    with pytest.raises(graphdb.GraphDBError):
        fresh.query("PREFIX x: <http://x/>").into("nothing")


@pytest.mark.parametrize(
    ("items", "type", "shown"),
    [
        ("[{k: 1}, {k: [2, 3]}, null]", "STRUCT(k BIGINT[])", [{"k": [1]}, {"k": [2, 3]}, None]),
        ("[[{k: 1}], [{k: [2]}, {j: 1}]]", "STRUCT(k BIGINT[], j BIGINT)[]",
         [[{"k": [1], "j": None}], [{"k": [2], "j": None}, {"k": None, "j": 1}]]),
        ("[{m: {k: 1}}, {m: {k: [2]}}]", "STRUCT(m STRUCT(k BIGINT[]))", [{"m": {"k": [1]}}, {"m": {"k": [2]}}]),
        ("[{k: 1, K: 2}, {k: [1]}]", "VARCHAR", ["{'k': 1, 'K': 2}", "{'k': [1]}"]),
    ],
)  # fmt: skip
def test_sql_has_lists_where_maps_have_one_value_or_several(items: str, type: str, shown: list[object]) -> None:
    with graphdb.connect(":memory:", device="cpu") as db:
        rows = db.sql(f"SELECT x, typeof(x) FROM cypher($$ UNWIND {items} AS x RETURN x $$)").fetchall()
    assert rows == [(value, type) for value in shown]


def test_variables_that_are_no_tables_ask_nothing(db: graphdb.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def noted(connection: Connection, sql: str, *given: Any, rows: Any = Connection.rows) -> Any:
        asked.append(sql)
        return rows(connection, sql, *given)

    monkeypatch.setattr(Connection, "rows", noted)
    number, empty = 3, dict[str, object]()
    assert caller_tables(db._state.connection, f"SELECT number FROM range({number}) t(number), empty") == {}
    assert not empty
    assert not asked
    frame, numbers = pd.DataFrame({"n": [1, 2]}), {"n": np.arange(3)}
    found = caller_tables(db._state.connection, "FROM frame, numbers, number")
    assert {name: len(table) for name, table in found.items()} == {"frame": len(frame), "numbers": len(numbers["n"])}
    assert asked
