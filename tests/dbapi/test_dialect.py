"""SQLAlchemy: engines, pandas, reflection, transactions, through graphdb:// URLs."""

from __future__ import annotations

import pathlib
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pandas
import pytest
import sqlalchemy
from sqlalchemy import exc
from sqlalchemy.dialects import registry

from graphdb.relational.session import turns

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="module", autouse=True)
def _registered() -> None:
    """As the entry point of an installed package says it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    module, _, name = project["entry-points"]["sqlalchemy.dialects"]["graphdb"].partition(":")
    registry.register("graphdb", module, name)


@pytest.fixture
def engine(tmp_path: pathlib.Path) -> Iterator[sqlalchemy.Engine]:
    made = sqlalchemy.create_engine(f"graphdb:///{tmp_path}/x.duckdb?threads=1")
    with made.begin() as connection:
        connection.exec_driver_sql("CREATE (:P {n: 1, name: 'a'})-[:K]->(:P {n: 2, name: 'b'})")
        connection.exec_driver_sql("CREATE TABLE people AS MATCH (p:P) RETURN p.n AS n, p.name AS name")
        connection.exec_driver_sql("CREATE VIEW names AS SELECT name FROM people")
    yield made
    made.dispose()


def test_pandas_reads_patterns_and_sql(engine: sqlalchemy.Engine) -> None:
    frame = pandas.read_sql("MATCH (p:P) RETURN p.n AS n, p.name AS name ORDER BY n", engine)
    assert frame.to_dict("list") == {"n": [1, 2], "name": ["a", "b"]}
    frame = pandas.read_sql("MATCH (p:P) WHERE p.name = $1 RETURN p.n AS n", engine, params=("b",))
    assert frame["n"].tolist() == [2]
    frame = pandas.read_sql(sqlalchemy.text("SELECT n FROM people WHERE name = :name"), engine, params={"name": "a"})
    assert frame["n"].tolist() == [1]
    joined = "SELECT count(*) AS n FROM people JOIN cypher($$ MATCH (p:P)-[:K]->(q) RETURN q.n AS n $$) USING (n)"
    assert pandas.read_sql(joined, engine)["n"].tolist() == [1]


def test_pandas_writes(engine: sqlalchemy.Engine) -> None:
    pandas.DataFrame({"a": [1, 2, 3], "b": ["x", None, "z"]}).to_sql("frame", engine, index=False)
    assert pandas.read_sql_table("frame", engine)["a"].tolist() == [1, 2, 3]


def test_threads_that_write_at_once_wait_for_each_other(
    engine: sqlalchemy.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Patterns and SQL that read what they change lose nothing of what others did."""
    monkeypatch.setattr(turns, "LONGEST_WAIT", 600.0)

    def count(_: int) -> None:
        with engine.begin() as connection:
            connection.exec_driver_sql("MATCH (p:P {n: 1}) SET p.count = coalesce(p.count, 0) + 1 CREATE (:Q)")
            connection.exec_driver_sql("UPDATE people SET n = n + 1 WHERE name = 'a'")
        with engine.begin() as connection:
            connection.exec_driver_sql("UPDATE people SET n = n + 1 WHERE name = 'a'")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(count, range(12)))
    with engine.connect() as connection:
        found = connection.exec_driver_sql("MATCH (p:P {n: 1}), (q:Q) RETURN p.count, count(q)").one()
        assert found == (12, 12)
        assert connection.exec_driver_sql("SELECT n FROM people WHERE name = 'a'").scalar() == 25


def test_reflection(engine: sqlalchemy.Engine) -> None:
    inspector = sqlalchemy.inspect(engine)
    assert inspector.get_table_names() == ["people"]
    assert set(inspector.get_view_names()) == {"names", "triples"}
    assert not any("_graphdb" in name for name in inspector.get_schema_names())
    assert [(column["name"], str(column["type"])) for column in inspector.get_columns("people")] == [
        ("n", "BIGINT"), ("name", "VARCHAR"),
    ]  # fmt: skip
    metadata = sqlalchemy.MetaData()
    metadata.reflect(engine)
    people = metadata.tables["people"]
    query = sqlalchemy.select(people.c.name, sqlalchemy.func.sum(people.c.n)).group_by(people.c.name).order_by("name")
    with engine.connect() as connection:
        assert connection.execute(query).all() == [("a", 1), ("b", 2)]


def test_core(engine: sqlalchemy.Engine) -> None:
    metadata = sqlalchemy.MetaData()
    table = sqlalchemy.Table(
        "made",
        metadata,
        sqlalchemy.Column("id", sqlalchemy.Integer, primary_key=True, autoincrement=False),
        sqlalchemy.Column("text", sqlalchemy.String),
        sqlalchemy.Column("number", sqlalchemy.Numeric(10, 2)),
        sqlalchemy.Column("day", sqlalchemy.Date),
    )
    metadata.create_all(engine)
    rows = [{"id": i, "text": f"t{i}", "number": i, "day": None} for i in range(50)]
    with engine.begin() as connection:
        connection.execute(table.insert(), rows)
        assert connection.execute(table.update().where(table.c.id < 10).values(text="low")).rowcount == 10
        returned = connection.execute(table.insert().values(id=99).returning(table.c.id)).all()
        assert returned == [(99,)]
    with engine.connect() as connection:
        low = sqlalchemy.select(sqlalchemy.func.count()).where(table.c.text == "low")
        assert connection.execute(low).scalar() == 10
        connection.execute(table.delete())
        connection.rollback()
        assert connection.execute(sqlalchemy.select(sqlalchemy.func.count()).select_from(table)).scalar() == 51
    with pytest.raises(exc.IntegrityError), engine.begin() as connection:
        connection.execute(table.insert(), rows[:1])
    metadata.drop_all(engine)
    assert "made" not in sqlalchemy.inspect(engine).get_table_names()


def test_connections_see_what_is_committed(engine: sqlalchemy.Engine) -> None:
    with engine.connect() as one, engine.connect() as other:
        one.exec_driver_sql("INSERT INTO people VALUES (9, 'z')")
        assert other.exec_driver_sql("SELECT count(*) FROM people").scalar() == 2
        one.commit()
        assert other.exec_driver_sql("SELECT count(*) FROM people").scalar() == 3
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("CREATE (:Q)")
    with engine.connect() as connection:
        assert connection.exec_driver_sql("MATCH (q:Q) RETURN count(*)").scalar() == 1


def test_wrong_urls_and_statements(engine: sqlalchemy.Engine, tmp_path: pathlib.Path) -> None:
    with pytest.raises(exc.ArgumentError, match="no option colour"):
        sqlalchemy.create_engine("graphdb:///x.duckdb?colour=red").connect()
    with pytest.raises(exc.ArgumentError, match="true or false"):
        sqlalchemy.create_engine("graphdb:///x.duckdb?read_only=perhaps").connect()
    with pytest.raises(exc.ProgrammingError, match="MATCH"), engine.connect() as connection:
        connection.exec_driver_sql("MATCH (a RETURN a")
    engine.dispose()
    reading = sqlalchemy.create_engine(f"graphdb:///{tmp_path}/x.duckdb?read_only=true")
    with pytest.raises(exc.DBAPIError), reading.connect() as connection:
        connection.exec_driver_sql("CREATE (:P)")
    reading.dispose()
