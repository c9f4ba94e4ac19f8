"""CREATE, DROP and SHOW of continuous queries: what they do, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import graphdb
from graphdb.common.errors import (
    AccessError,
    BindError,
    ExecutionError,
    GraphDBError,
    NotSupportedError,
    ParameterError,
    ParseError,
    StorageError,
)
from tests.live.writes import opened

FRIENDS = "MATCH (a:Person)-[:KNOWS]->(b:Person) RETURN a.name AS a, b.name AS b"


@pytest.fixture
def db() -> Iterator[graphdb.Database]:
    with opened(None) as found:
        found.query("CREATE (:Person {name: 'Ada'})-[:KNOWS]->(:Person {name: 'Bob'})")
        yield found


def know(db: graphdb.Database, a: str, b: str) -> None:
    db.query(f"MERGE (a:Person {{name: '{a}'}}) MERGE (b:Person {{name: '{b}'}}) MERGE (a)-[:KNOWS]->(b)")


def test_the_answer_and_its_changes_are_tables(db: graphdb.Database) -> None:
    assert db.query(f"CREATE CONTINUOUS QUERY friends AS {FRIENDS}").message is not None
    assert db.sql("FROM friends").fetchall() == [("Ada", "Bob")]
    assert db.sql("FROM friends_changes").fetchall() == []
    know(db, "Bob", "Cy")
    db.query("MATCH ({name: 'Ada'})-[e:KNOWS]->() DELETE e")
    assert db.sql("FROM friends").fetchall() == [("Bob", "Cy")]
    assert db.sql("FROM friends_changes").fetchall() == [(1, 1, "Bob", "Cy"), (2, -1, "Ada", "Bob")]


def test_a_transaction_is_one_batch(db: graphdb.Database) -> None:
    db.query(f"CREATE CONTINUOUS QUERY friends AS {FRIENDS}")
    db.query("BEGIN")
    know(db, "Bob", "Cy")
    know(db, "Cy", "Di")
    db.query("MATCH ({name: 'Bob'})-[e:KNOWS]->() DELETE e")
    assert db.sql("FROM friends").fetchall() == [("Ada", "Bob")]
    db.query("COMMIT")
    assert db.sql("FROM friends_changes").fetchall() == [(1, 1, "Cy", "Di")]
    db.query("BEGIN")
    know(db, "Di", "Ed")
    db.query("ROLLBACK")
    know(db, "Ed", "Flo")
    assert db.sql("SELECT * EXCLUDE change FROM friends_changes").fetchall() == [(1, "Cy", "Di"), (2, "Ed", "Flo")]


def test_it_is_alive_after_reopening(tmp_path: Path) -> None:
    with opened(tmp_path / "a.duckdb") as db:
        db.query(f"CREATE CONTINUOUS QUERY friends AS {FRIENDS}")
        know(db, "Ada", "Bob")
    with opened(tmp_path / "a.duckdb") as db:
        know(db, "Bob", "Cy")
        assert db.sql("FROM friends_changes").fetchall() == [(1, 1, "Ada", "Bob"), (2, 1, "Bob", "Cy")]
    with duckdb.connect(str(tmp_path / "a.duckdb")) as alone:  # which asks nobody
        alone.execute("DROP VIEW friends; DROP VIEW friends_changes; CREATE VIEW friends_changes AS SELECT 1")
    with opened(tmp_path / "a.duckdb") as db:
        assert len(db.sql("FROM friends")) == 2
        assert db.sql("FROM friends_changes").fetchall() == [(1,)], "what somebody else made stays"
    with graphdb.connect(tmp_path / "a.duckdb", read_only=True) as db:
        assert db.query("SHOW CONTINUOUS QUERIES").fetchall() == [("friends", FRIENDS, True, 1_000_000, None, 1, 2)]
        assert len(db.sql("FROM friends")) == 2
        for text in ("DROP CONTINUOUS QUERY friends", f"CREATE CONTINUOUS QUERY more AS {FRIENDS}"):
            with pytest.raises(StorageError, match="read-only"):
                db.query(text)


def test_without_a_table_changes_alone_are_stored(db: graphdb.Database) -> None:
    db.query(f"CREATE CONTINUOUS QUERY friends WITH (table = false) AS {FRIENDS}")
    know(db, "Bob", "Cy")
    db.query("MATCH (p {name: 'Bob'}) SET p.name = 'Bo'")
    assert db.sql("SELECT * EXCLUDE batch FROM friends_changes ORDER BY ALL").fetchall() == [
        (-1, "Ada", "Bob"),
        (-1, "Bob", "Cy"),
        (1, "Ada", "Bo"),
        (1, "Bo", "Cy"),
        (1, "Bob", "Cy"),
    ]
    with pytest.raises(GraphDBError, match="friends"):
        db.sql("FROM friends")


def test_old_changes_go_by_batches(db: graphdb.Database) -> None:
    db.query(f"CREATE CONTINUOUS QUERY friends WITH (changes = 3) AS {FRIENDS}")
    for number in range(10):
        know(db, f"x{number}", f"x{number + 1}")
    batches = [batch for batch, *_ in db.sql("FROM friends_changes ORDER BY batch").fetchall()]
    assert batches == [8, 9, 10]
    [(*_, first, last)] = db.query("SHOW CONTINUOUS QUERIES").fetchall()
    assert (first, last) == (8, 10)
    assert len(db.sql("FROM friends")) == 11


def test_replacing_and_dropping(db: graphdb.Database) -> None:
    db.query(f"CREATE CONTINUOUS QUERY friends AS {FRIENDS}")
    with pytest.raises(BindError, match="already") as caught:
        db.query(f"CREATE CONTINUOUS QUERY Friends AS {FRIENDS}")
    assert caught.value.hint == "CREATE OR REPLACE CONTINUOUS QUERY takes its place"
    know(db, "Bob", "Cy")
    db.query("CREATE OR REPLACE CONTINUOUS QUERY friends AS MATCH (a)-[:KNOWS]->(b) RETURN count(*) AS n")
    know(db, "Cy", "Di")
    assert db.sql("FROM friends").fetchall() == [(3,)]
    assert db.sql("FROM friends_changes").fetchall() == [(2, -1, 2), (2, 1, 3)]
    with pytest.raises(BindError, match="no continuous query 'friend'") as caught:
        db.query("DROP CONTINUOUS QUERY friend")
    assert caught.value.hint == "did you mean friends?"
    assert caught.value.column == 23
    assert db.query("DROP CONTINUOUS QUERY IF EXISTS friend").message == "no changes"
    db.query("DROP CONTINUOUS QUERY friends")
    assert db.query("SHOW CONTINUOUS QUERIES").fetchall() == []
    tables = db.sql("SELECT table_name FROM duckdb_tables() WHERE table_name SIMILAR TO '(answer|changes)_.*'")
    assert tables.fetchall() == []
    assert "friends" not in db.tables()
    know(db, "Di", "Ed")
    db.query(f"CREATE CONTINUOUS QUERY fr AS {FRIENDS}")
    with db._state.connection.guard() as raw:  # as older versions stored it
        raw.execute("UPDATE _graphdb.continuous_query SET name = 'fr' || chr(0) || 's'")
    with pytest.raises(ParseError, match="NUL"):
        db.query(f"CREATE OR REPLACE CONTINUOUS QUERY `fr\0s` AS {FRIENDS}")
    db.query("DROP CONTINUOUS QUERY `fr\0s`")
    assert db.query("SHOW CONTINUOUS QUERIES").fetchall() == []


def test_names_that_are_taken(db: graphdb.Database) -> None:
    db.sql("CREATE TABLE mine AS SELECT 1 AS x")
    db.sql("CREATE VIEW his_changes AS SELECT 1 AS x")
    for name, what in (("mine", "table 'mine'"), ("his", "view 'his_changes'"), ("triples", "view 'triples'")):
        with pytest.raises(BindError, match=f"there is a {what} already"):
            db.query(f"CREATE OR REPLACE CONTINUOUS QUERY {name} AS {FRIENDS}")
    assert db.sql("FROM mine").fetchall() == [(1,)]
    with pytest.raises(BindError, match="cannot be called 'batch'"):
        db.query("CREATE CONTINUOUS QUERY b AS MATCH (a) RETURN a AS batch")
    assert db.query("SHOW CONTINUOUS QUERIES").fetchall() == []
    know(db, "Bob", "Cy")


@pytest.mark.parametrize(
    ("query", "kind", "said"),
    [
        ("MATCH (a) WHERE a.x = rand() RETURN a", NotSupportedError, "rand changes without the graph"),
        ("MATCH (a) RETURN a, date() AS d", NotSupportedError, "date changes without the graph"),
        ("MATCH (a) RETURN datetime.statement() AS d", NotSupportedError, "changes without the graph"),
        ("MATCH (a) SET a.x = 1 RETURN a", NotSupportedError, "only reads"),
        ("CALL db.labels() YIELD label RETURN label", NotSupportedError, "cannot call procedures"),
        ("MATCH (a:Person) RETURN b", BindError, "b"),
    ],
)
def test_what_cannot_be_one(db: graphdb.Database, query: str, kind: type[GraphDBError], said: str) -> None:
    with pytest.raises(kind, match=said) as caught:
        db.query(f"CREATE CONTINUOUS QUERY q AS {query}")
    assert caught.value.column is not None
    assert caught.value.column > 25


def test_parameters_have_no_values_later(db: graphdb.Database) -> None:
    with pytest.raises(ParameterError, match="nobody gives them values later"):
        db.query("CREATE CONTINUOUS QUERY q AS MATCH (a {name: $name}) RETURN a", name="Ada")
    with pytest.raises(ParameterError, match="nobody gives them values later"):
        db.query("CREATE CONTINUOUS QUERY q AS MATCH (a {name: $name}) RETURN a")


@pytest.mark.parametrize(
    ("options", "said", "hint"),
    [
        ("tabel = false", "unknown option tabel", "did you mean table?"),
        ("table = 1", "table takes true or false", None),
        ("changes = 'x'", "changes takes a number of rows", None),
        ("table = true, table = true", "given twice", None),
        ("retention = '7 dys'", "retention takes a text", "'7 dys' is none, as DuckDB writes intervals"),
    ],
)
def test_options(db: graphdb.Database, options: str, said: str, hint: str | None) -> None:
    with pytest.raises(ParameterError, match=said) as caught:
        db.query(f"CREATE CONTINUOUS QUERY q WITH ({options}) AS {FRIENDS}")
    assert caught.value.hint == hint


def test_neither_within_a_transaction(db: graphdb.Database) -> None:
    db.query("BEGIN")
    with pytest.raises(ExecutionError, match="cannot run within a transaction"):
        db.query(f"CREATE CONTINUOUS QUERY q AS {FRIENDS}")
    know(db, "Bob", "Cy")
    db.query("COMMIT")
    db.query(f"CREATE CONTINUOUS QUERY q AS {FRIENDS}")
    assert len(db.sql("FROM q")) == 2


WAITING = {
    "label": "MATCH (a:Later) RETURN a.name AS n",
    "edge": "MATCH (a)-[:LATER]->(b) RETURN a.name AS n",
    "key": "MATCH (a:Person) WHERE a.later = 1 RETURN a.name AS n",
    "edge_key": "MATCH (a)-[e:KNOWS]->(b) WHERE e.later = 1 RETURN a.name AS n",
    "test": "MATCH (a:Person) WHERE a:Later OR a.later = 1 RETURN a.name AS n",
    "paths": "MATCH (a:Person)-[:LATER*]->(b:Later) RETURN a.name AS n",
    "anew": "MATCH (a:Person)-[:KNOWS]->() OPTIONAL MATCH (a)-[:LATER]->(b:Later) RETURN a.name AS n, b.later AS m",
    "groups": "MATCH (a:Person)-[:KNOWS]->(b) RETURN b.later AS n, count(*) AS c ORDER BY n LIMIT 2",
    "computed": "MATCH p = (a:Person)-[*]->(b) RETURN [v IN nodes(p) WHERE v:Later | v.later] AS n",
    "nested": "MATCH (a:Person) RETURN [x IN [(a)-[:LATER]->(b:Later) | b.later] WHERE x = 1] AS n",
}


def test_names_yet_to_come_fail_no_batch_that_brings_rdf(tmp_path: Path) -> None:
    def check() -> None:
        for name, text in WAITING.items():
            known = db.query(text).fetchall() if come else empty[name]
            assert sorted(map(str, db.sql(f"FROM q_{name}").fetchall())) == sorted(map(str, known)), name

    with opened(tmp_path / "a.duckdb") as db:
        db.query("CREATE (:Person {name: 'Ada'})-[:KNOWS]->(:Person {name: 'Bob'})")
        for name, text in WAITING.items():
            db.query(f"CREATE CONTINUOUS QUERY q_{name} AS {text}")
        empty, come = {name: db.query(text).fetchall() for name, text in WAITING.items()}, False
        db.apply([("http://e/a", "http://e/p", "http://e/b")])
        check()
        with pytest.raises(BindError, match="unknown label 'Later'"):  # it would be a slip in a query of now
            db.query("CREATE CONTINUOUS QUERY other AS MATCH (a:Later) RETURN a")
        with pytest.raises(BindError, match="unknown label 'Later'"):
            db.query("EXPLAIN CREATE CONTINUOUS QUERY other AS MATCH (a:Later) RETURN a")
    with opened(tmp_path / "a.duckdb") as db:
        assert len(db.query("SHOW CONTINUOUS QUERIES").fetchall()) == len(WAITING)
        db.query("MATCH (a {name: 'Ada'}) SET a.x = 1")
        check()
        for name in WAITING:
            db.query(f"EXPLAIN CONTINUOUS QUERY q_{name}")
        come = True
        db.query("MATCH (a {name: 'Ada'}) CREATE (a)-[:LATER]->(:Person:Later {name: 'Cy', later: 1})")
        db.query("MATCH (a {name: 'Cy'}) CREATE (a)-[:KNOWS {later: 1}]->(a)")
        check()
        assert db.sql("FROM q_edge_key").fetchall() == [("Cy",)]


def test_names_that_nothing_has_are_warned_of_as_match_does(db: graphdb.Database) -> None:
    text = "MATCH (a:Persn)-[:KNOWS]->(b) RETURN a.nme AS n, b.name AS m"
    created = db.query(f"CREATE CONTINUOUS QUERY q AS {text}").warnings
    assert [each.partition(" (line")[0] for each in created] == ["unknown label 'Persn'", "unknown property 'nme'"]
    assert len(created) == len(db.query(text).warnings)
    assert db.query(f"CREATE CONTINUOUS QUERY friends AS {FRIENDS}").warnings == []


def test_sql_reads_and_does_not_write(db: graphdb.Database) -> None:
    db.query(f"CREATE CONTINUOUS QUERY friends AS {FRIENDS}")
    for text in ("DELETE FROM friends", "INSERT INTO friends VALUES ('x', 'y')", "DROP TABLE _graphdb.answer_1"):
        with pytest.raises(GraphDBError):
            db.sql(text)


def test_its_views_go_with_it_alone(db: graphdb.Database) -> None:
    """Without them the query would be maintained, and nobody could read what it answers."""
    db.query(f"CREATE CONTINUOUS QUERY friends AS {FRIENDS}")
    db.sql("CREATE SCHEMA s; ATTACH ':memory:' AS other")
    for text in (
        "DROP VIEW friends",
        'DROP VIEW IF EXISTS memory.main."Friends" CASCADE',
        "SELECT 1; /* of */ DROP VIEW main.friends_changes",
        "USE s; DROP VIEW friends",
        "EXPLAIN ANALYZE DROP VIEW friends",
        "ALTER VIEW friends RENAME TO former",
        "ALTER TABLE friends RENAME TO former",
        "CREATE OR REPLACE VIEW friends AS SELECT 1",
        "CREATE OR REPLACE RECURSIVE VIEW friends(x) AS SELECT 1",
        f"CREATE OR REPLACE VIEW friends AS {FRIENDS}",
        f"CREATE OR REPLACE VIEW main.friends AS {FRIENDS}",
    ):
        for run in (db.query, db.sql) if "MATCH" not in text else (db.query,):
            with pytest.raises(AccessError, match="continuous query 'friends'") as caught:
                run(text)
            assert "DROP CONTINUOUS QUERY friends" in str(caught.value)
            db.sql("USE memory.main")
    for text in (
        "CREATE VIEW s.friends AS SELECT 1; CREATE OR REPLACE VIEW s.friends AS SELECT 2; DROP VIEW s.friends",
        "USE s; CREATE OR REPLACE VIEW friends AS SELECT 1; DROP VIEW friends; USE memory.main",
        "CREATE OR REPLACE TEMP VIEW friends AS SELECT 1; DROP VIEW temp.friends",
        "USE other; CREATE OR REPLACE VIEW main.friends AS SELECT 1; DROP VIEW other.main.friends; USE memory.main",
    ):
        db.sql(text)
    know(db, "Bob", "Cy")
    assert db.sql("FROM friends ORDER BY a").fetchall() == [("Ada", "Bob"), ("Bob", "Cy")]
    assert len(db.sql("FROM friends_changes")) == 1
    db.query("DROP CONTINUOUS QUERY friends")
    db.sql("CREATE OR REPLACE VIEW friends AS SELECT 1; DROP VIEW friends")


def test_a_query_that_fails_keeps_what_breaks_it_out(db: graphdb.Database) -> None:
    db.query("CREATE CONTINUOUS QUERY q AS MATCH (a:Person)-[:KNOWS]->(b) RETURN 10 / size(b.name) AS x")
    with pytest.raises(ExecutionError, match="the continuous query 'q' cannot be brought up to date") as caught:
        know(db, "Bob", "")
    assert "DROP CONTINUOUS QUERY q" in str(caught.value.hint)
    assert db.sql("FROM q").fetchall() == [(3,)]
    assert db.query("MATCH (a {name: ''}) RETURN count(*)").scalar() == 0
    know(db, "Bob", "Cy")
    assert sorted(db.sql("FROM q").fetchall()) == [(3,), (5,)]
    db.query("BEGIN")
    know(db, "Cy", "")
    with pytest.raises(ExecutionError, match="'q'"):
        db.query("COMMIT")
    db.query("ROLLBACK")
    db.query("DROP CONTINUOUS QUERY q")
    know(db, "Cy", "")


def test_an_error_says_where_in_the_query_it_is(db: graphdb.Database) -> None:
    failing = "MATCH (a:Person)-[:KNOWS]->(b) RETURN 1 / (a.i - 3) AS i"
    db.query("MATCH (a {name: 'Ada'}) SET a.i = 3")
    with pytest.raises(ExecutionError, match="division by zero") as caught:
        db.query(f"CREATE CONTINUOUS QUERY q AS {failing}")
    assert caught.value.excerpt == failing
    assert caught.value.column == failing.index("1 /") + 1
    db.query("MATCH (a {name: 'Ada'}) SET a.i = 4")
    db.query(f"CREATE CONTINUOUS QUERY q AS {failing}")
    with pytest.raises(ExecutionError, match=rf"division by zero \(line 1, column {caught.value.column}\)"):
        db.query("MATCH (a {name: 'Ada'}) SET a.i = 3")


def test_types_of_columns_follow_the_data(db: graphdb.Database) -> None:
    db.query("CREATE CONTINUOUS QUERY q AS MATCH (a:Person)-[:KNOWS]->(b) RETURN b.age AS age")
    for value in ("1", "'x'", "2.5", "true"):
        db.query(f"MATCH (a {{name: 'Ada'}}) CREATE (a)-[:KNOWS]->(:Person {{age: {value}}})")
    assert [row for (row,) in db.sql("SELECT age FROM q_changes ORDER BY batch").fetchall()] == [1, "x", 2.5, True]
    assert len(db.sql("FROM q")) == 5
    db.query("MATCH (b) WHERE b.age = 'x' SET b.age = [1, 2]")
    assert len(db.sql("FROM q")) == 5


def test_numbers_of_several_types_are_numbers_in_changes_too() -> None:
    with graphdb.connect(device="cpu") as db:
        db.query("CREATE (:P {k: 1, b: 2.5})")
        text = "MATCH (a:P) UNWIND [a.k, a.b] AS x RETURN x"
        db.query(f"CREATE CONTINUOUS QUERY numbers AS {text}")
        db.query("CREATE (:P {k: 5, b: 7.5})")
        changed = db.sql("SELECT x FROM numbers_changes WHERE change = 1 ORDER BY x").fetchall()
        assert changed == [(5,), (7.5,)]
        assert sorted(db.sql("FROM numbers").fetchall()) == sorted(db.query(text).fetchall())
