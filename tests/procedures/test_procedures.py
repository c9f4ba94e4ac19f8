"""Procedures: those that every database has, and Python functions that users register."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import graphdb
from graphdb import BindError, ExecutionError, GraphDBError, ParameterError, ParseError, QueryTimeout, TypeMismatchError
from graphdb.procedures.registry import Procedure, Seen
from graphdb.procedures.signature import signature_of
from tests.stops import Stopwatch


@pytest.fixture
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(threads=1) as database:
        database.query("CREATE (:A {name: 'a'})-[:R {w: 1}]->(:B:C {name: 'b'})")
        yield database


def rows(db: graphdb.Database, query: str, **parameters: object) -> list[tuple[Any, ...]]:
    return db.query(query, parameters).fetchall()


# --- those that every database has


def test_labels_types_and_keys(db: graphdb.Database) -> None:
    assert rows(db, "CALL db.labels()") == [("A",), ("B",), ("C",)]
    assert rows(db, "CALL db.relationshipTypes") == [("R",)]
    assert rows(db, "CALL db.propertyKeys()") == [("name",), ("w",)]
    assert db.query("CALL db.labels() YIELD label AS l").columns == ("l",)
    db.query("MATCH (n:A) REMOVE n:A SET n.size = 1")
    assert rows(db, "CALL db.labels()") == [("B",), ("C",)]
    assert rows(db, "CALL db.propertyKeys()") == [("name",), ("size",), ("w",)]
    db.query("MATCH (n) DETACH DELETE n")
    for name in ("labels", "relationshipTypes", "propertyKeys"):
        assert rows(db, f"CALL db.{name}()") == []


def test_names_of_rdf_are_as_written(tmp_path: Any) -> None:
    (tmp_path / "g.ttl").write_text(
        "@prefix e: <http://e/> . @prefix o: <http://other/> . e:a a e:T ; e:p e:b ; e:q 1 . <http://x/y> e:p e:a ."
    )
    with graphdb.connect(threads=1) as db:
        db.load(tmp_path / "g.ttl")
        assert rows(db, "CALL db.labels()") == [("e:T",)]
        assert rows(db, "CALL db.relationshipTypes()") == [("e:p",)]
        assert rows(db, "CALL db.propertyKeys()") == [("e:q",)]
        found = rows(db, "CALL db.labels() YIELD label MATCH (n) WHERE label IN labels(n) RETURN count(n)")
        assert found == [(1,)]


def test_graph_of_labels(db: graphdb.Database) -> None:
    db.query("MATCH (a:A), (b:B) CREATE (a)-[:R]->(b), (b)-[:S]->()")
    ((nodes, edges),) = rows(db, "CALL db.schema.visualization()")
    assert nodes == [{"name": name, "count": 1} for name in "ABC"]
    assert edges == [
        {"type": "R", "start": "A", "end": "B", "count": 2},
        {"type": "R", "start": "A", "end": "C", "count": 2},
        {"type": "S", "start": "B", "end": None, "count": 1},
        {"type": "S", "start": "C", "end": None, "count": 1},
    ]
    query = (
        "CALL db.schema.visualization() YIELD relationships UNWIND relationships AS r RETURN r.type, sum(r.count) AS n"
    )
    assert sorted(rows(db, query)) == [("R", 4), ("S", 2)]


def test_what_runs_here(db: graphdb.Database) -> None:
    assert rows(db, "CALL dbms.components() YIELD name, versions") == [("graphdb", [graphdb.__version__])]
    db.register_procedure("my.one", lambda: None, description="Does nothing.")
    listed = {name: (signature, words) for name, signature, words in rows(db, "CALL dbms.procedures()")}
    assert listed["my.one"] == ("my.one() :: ()", "Does nothing.")
    assert listed["db.labels"][0] == "db.labels() :: (label :: STRING)"
    assert db.procedures() == [signature for _, (signature, _) in sorted(listed.items())]


def test_a_statement_sees_what_it_wrote(db: graphdb.Database) -> None:
    query = "CREATE (:D) WITH 1 AS one CALL db.labels() YIELD label RETURN collect(label)"
    assert rows(db, query) == [(["A", "B", "C", "D"],)]


# --- calling


def letters(word: str, count: int = 2) -> Iterator[tuple[str, int]]:
    """Yield a word with numbers."""
    return ((f"{word}{i}", i) for i in range(count))


@pytest.fixture
def called(db: graphdb.Database) -> list[tuple[str, int]]:
    calls: list[tuple[str, int]] = []

    def function(word: str, count: int = 2) -> Iterator[tuple[str, int]]:
        calls.append((word, count))
        return letters(word, count)

    db.register_procedure("my.letters", function, columns={"text": str, "i": int})
    return calls


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("CALL my.letters('x')", [("x0", 0), ("x1", 1)]),
        ("CALL my.letters('x', 1) YIELD *", [("x0", 0)]),
        ("CALL my.letters('x') YIELD i, text AS t", [(0, "x0"), (1, "x1")]),
        ("CALL my.letters('x') YIELD i WHERE i > 0", [(1,)]),
        ("CALL my.letters('x') YIELD i AS n WHERE n > 0 RETURN n + 1 AS m", [(2,)]),
        ("MATCH (n) CALL my.letters(n.name, 1) YIELD text RETURN text ORDER BY text", [("a0",), ("b0",)]),
        ("MATCH (n) CALL my.letters(n.name) YIELD i RETURN count(*), sum(i)", [(4, 2)]),
        ("MATCH (n) CALL my.letters(n.name, 0) YIELD i RETURN count(*)", [(0,)]),
        ("MATCH (n) OPTIONAL CALL my.letters(n.name, 0) YIELD i RETURN n.name, i ORDER BY n.name", [("a", None), ("b", None)]),
        ("MATCH (n:A) OPTIONAL CALL my.letters(n.name) YIELD i WHERE i > 5 RETURN n.name, i", [("a", None)]),
        ("OPTIONAL CALL my.letters('x', 0) YIELD i", [(None,)]),
        ("CALL my.letters('A', 1) YIELD text MATCH (n) RETURN count(n), min(text)", [(2, "A0")]),
        ("CALL my.letters('x') YIELD i WITH count(*) AS c CALL my.letters('y', c) YIELD i RETURN c, i ORDER BY i", [(2, 0), (2, 1)]),
        ("MATCH (n) RETURN COUNT { CALL my.letters(n.name) YIELD i WHERE i = 1 } AS c", [(1,), (1,)]),
        ("MATCH (n:A) CALL (n) { CALL my.letters(n.name) YIELD text RETURN max(text) AS t } RETURN t", [("a1",)]),
        ("CALL my.letters('x', 1) YIELD text RETURN text UNION CALL my.letters('y', 1) YIELD text RETURN text", [("x0",), ("y0",)]),
        ("UNWIND [1, null, 2] AS c WITH c WHERE c > 1 CALL my.letters('x', c) YIELD i RETURN collect(i)", [([0, 1],)]),
    ],
)  # fmt: skip
def test_calls(db: graphdb.Database, called: object, query: str, found: list[Any]) -> None:
    assert rows(db, query) == found


@pytest.mark.parametrize("word", ["'x'", "[x IN ['x'] | x][0]", "CASE WHEN n IS NULL THEN 'y' ELSE {x: 'x'}.x END"])
def test_a_function_is_called_once_for_equal_arguments(db: graphdb.Database, called: list[Any], word: str) -> None:
    query = f"UNWIND range(1, 3000) AS n CALL my.letters({word}, n % 3) YIELD i RETURN count(*), sum(i)"
    assert rows(db, query) == [(3000, 1000)]
    assert sorted(called) == [("x", 0), ("x", 1), ("x", 2)]
    called.clear()
    rows(db, query)
    assert len(called) == 3, "another statement calls it again"


def test_parameters_of_their_names_are_the_arguments(db: graphdb.Database, called: object) -> None:
    assert rows(db, "CALL my.letters", word="z") == [("z0", 0), ("z1", 1)]
    assert rows(db, "CALL my.letters YIELD i", word="z", count=1) == [(0,)]
    with pytest.raises(ParameterError, match=r"parameter \$word has no value"):
        db.query("CALL my.letters")
    with pytest.raises(ParameterError, match=r"no parameter \$words"):
        db.query("CALL my.letters", word="z", words="z")


def test_without_columns_rows_stay_what_they_are(db: graphdb.Database) -> None:
    seen: list[Any] = []
    db.register_procedure("my.log(what :: ANY?) :: VOID", seen.append)
    assert rows(db, "MATCH (n) CALL my.log(n.name) RETURN count(*)") == [(2,)]
    assert db.query("MATCH (n) CALL my.log(n)").columns == ()
    assert db.query("CALL my.log(1)").columns == ()
    assert seen[:2] == ["a", "b"]
    assert [node.labels for node in seen[2:4]] == [("A",), ("B", "C")]
    assert seen[4:] == [1]
    with pytest.raises(BindError, match="does not yield 'x'"):
        db.query("CALL my.log(1) YIELD x")


def test_what_it_yields_is_written(db: graphdb.Database, called: object) -> None:
    db.query("UNWIND range(1, 2000) AS x CALL my.letters('w', 2) YIELD text, i CREATE (:E {text: text, i: i, x: x})")
    assert rows(db, "MATCH (e:E) RETURN count(*), sum(e.i), count(DISTINCT e.x)") == [(4000, 2000, 2000)]
    db.query("CREATE TABLE t AS CALL my.letters('x')")
    assert rows(db, "SELECT * FROM t ORDER BY i") == [("x0", 0), ("x1", 1)]
    assert db.sql("SELECT sum(i) FROM cypher($$ CALL my.letters('x', 4) $$)").scalar() == 6


def test_elements_come_and_go(db: graphdb.Database) -> None:
    def around(node: graphdb.Node, edge: graphdb.Relationship, path: Any) -> Any:
        return [(node, f"{edge.type} {edge.properties['w']} {len(path)}", [1, None, "x"], {"k": node.labels})]

    db.register_procedure(
        "my.around(n :: NODE, r :: RELATIONSHIP, p :: PATH) :: (m :: NODE?, t :: STRING, l :: LIST OF ANY, d :: MAP)",
        around,
    )
    query = "MATCH p = (a:A)-[r]->(b) CALL my.around(b, r, p) YIELD m, t, l, d RETURN m = b, m.name, t, l, d"
    assert rows(db, query) == [(True, "b", "R 1 1", [1, None, "x"], {"k": ["B", "C"]})]


# --- what a function may return


TABLE = {"n": [1, 2], "t": ["x", None]}


@pytest.mark.parametrize(
    "returned",
    [
        [(1, "x"), (2, None)],
        ([1, "x"], [2, None]),
        [{"n": 1, "t": "x"}, {"t": None, "n": 2}],
        [(1, "x"), {"n": 2, "t": None}],
        iter([(1, "x"), (2, None)]),
        pa.table(TABLE),
        pa.table({"t": TABLE["t"], "n": pa.array([1, 2], pa.int8()), "more": [0, 0]}),
        pd.DataFrame(TABLE),
        pa.table(TABLE).to_reader(),
    ],
    ids=lambda returned: type(returned).__name__,
)
def test_rows_in_many_forms(db: graphdb.Database, returned: Any) -> None:
    db.register_procedure("my.table() :: (n :: INTEGER, t :: STRING?)", lambda: returned)
    assert rows(db, "CALL my.table()") == [(1, "x"), (2, None)]


def test_rows_in_a_polars_frame(db: graphdb.Database) -> None:
    import polars

    db.register_procedure("my.table() :: (n :: INTEGER, t :: STRING?)", lambda: polars.DataFrame(TABLE))
    assert rows(db, "CALL my.table()") == [(1, "x"), (2, None)]


@pytest.mark.parametrize(
    ("type", "returned", "found"),
    [
        ("INTEGER", 7, [7]),
        ("STRING", "text", ["text"]),
        ("INTEGER", [1, 2], [1, 2]),
        ("INTEGER", [(1,), (2,)], [1, 2]),
        ("LIST OF INTEGER", [[1, 2], [3]], [[1, 2], [3]]),
        ("LIST OF FLOAT?", [[1, None], []], [[1.0, None], []]),
        ("FLOAT", [1, 2.5], [1.0, 2.5]),
        ("MAP", [{"a": 1}], [{"a": 1}]),
        ("ANY?", [1, "x", None, [2]], [1, "x", None, [2]]),
        ("INTEGER?", None, []),
        ("BOOLEAN", {"x": True}, [True]),
        ("INTEGER", pa.chunked_array([[1], [2]]).to_numpy(), [1, 2]),
    ],
)
def test_values_of_a_single_column(db: graphdb.Database, type: str, returned: Any, found: list[Any]) -> None:
    db.register_procedure(f"my.column() :: (x :: {type})", lambda: returned)
    result = [value for (value,) in rows(db, "CALL my.column()")]
    assert [(value, value.__class__) for value in result] == [(value, value.__class__) for value in found]


@pytest.mark.parametrize(
    ("columns", "returned", "words"),
    [
        ("x :: INTEGER", ["text"], "returned 'text' for 'x', which is INTEGER"),
        ("x :: INTEGER", [1, True], "returned True for 'x', which is INTEGER"),
        ("x :: INTEGER", [1, None], "returned null for 'x', which is INTEGER"),
        ("x :: INTEGER", [2**63], "for 'x', which is INTEGER"),
        ("x :: STRING", ["\ud800"], "lone surrogate"),
        ("x :: LIST OF INTEGER", [[1, "x"]], "returned 'x' for 'x', which is LIST OF INTEGER"),
        ("x :: INTEGER, y :: INTEGER", [(1, 2, 3)], "a row of 3 values, but yields 2"),
        ("x :: INTEGER, y :: INTEGER", [1, 2], "returned 1 as a row"),
        ("x :: INTEGER, y :: INTEGER", [{"x": 1}], "a row without 'y'"),
        ("x :: INTEGER, y :: INTEGER", [{"x": 1, "y": 1, "z": 1}], "a row with 'z'"),
        ("x :: INTEGER", pa.table({"y": [1]}), "a table without a column 'x'"),
        ("x :: INTEGER", pa.table({"x": ["1"]}), "returned '1' for 'x'"),
        ("x :: INTEGER", pa.table({"x": [1, None]}), "returned null for 'x'"),
        ("", [1], "but yields nothing"),
    ],
)  # fmt: skip
def test_wrong_rows_are_errors(db: graphdb.Database, columns: str, returned: Any, words: str) -> None:
    db.register_procedure(f"my.wrong() :: ({columns})", lambda: returned)
    for query in (
        "CALL my.wrong()",
        "UNWIND [1, 2] AS x CALL my.wrong()" + (" YIELD x AS z RETURN z" if columns else ""),
    ):
        with pytest.raises(ExecutionError, match=r"procedure my\.wrong") as caught:
            db.query(query)
        assert words in str(caught.value)
        assert caught.value.column == query.index("my.wrong") + 1
    assert rows(db, "MATCH (n) RETURN count(*)") == [(2,)]


# --- mistakes


@pytest.mark.parametrize(
    ("query", "kind", "words"),
    [
        ("CALL db.lables()", BindError, "unknown procedure 'db.lables' (line 1, column 6)"),
        ("CALL db.lables()", BindError, "hint: did you mean 'db.labels'?"),
        ("CALL DB.LABELS()", BindError, "did you mean 'db.labels'?"),
        ("MATCH (n) CALL nothing.like.it(n) YIELD x RETURN x", BindError, "hint: CALL dbms.procedures() lists them"),
        ("CALL my.letters() YIELD i RETURN i", BindError, "my.letters takes 1 to 2 arguments, found 0 (line 1, column 6)"),
        ("CALL db.labels(1)", BindError, "db.labels takes 0 arguments, found 1"),
        ("CALL my.letters('x') YIELD txet", BindError, "does not yield 'txet' (line 1, column 28)"),
        ("CALL my.letters('x') YIELD txet", BindError, "hint: did you mean 'text'?"),
        ("CALL my.letters('x', true)", TypeMismatchError, "'count' of my.letters is INTEGER, found a boolean"),
        ("CALL my.letters(null)", TypeMismatchError, "'word' of my.letters is STRING, found null"),
        ("MATCH (n) CALL my.letters(n.name, n.name) YIELD i RETURN i", TypeMismatchError, "is INTEGER, found 'a' (line 1, column 35)"),
        ("MATCH (n) CALL my.letters(n.none) YIELD i RETURN i", TypeMismatchError, "is STRING, found null"),
        ("MATCH (n) CALL my.letters(n) YIELD i RETURN i", TypeMismatchError, "is STRING, found a vertex"),
        ("MATCH (n) CALL my.letters(count(n)) YIELD i RETURN i", ParseError, "an aggregate cannot stand here"),
        ("MATCH (n) CALL my.letters YIELD i RETURN i", ParseError, "hint: write CALL my.letters(…)"),
        ("CALL my.letters('x') YIELD * RETURN 1 AS x", ParseError, "names what it yields"),
        ("CALL my.letters('x') RETURN 1 AS x", ParseError, "hint: write YIELD text, i"),
        ("WITH 1 AS i CALL my.letters('x') YIELD i RETURN i", BindError, "'i' is there already (line 1, column 40)"),
        ("CALL my.letters('x') YIELD i, text AS i", BindError, "'i' is there already"),
        ("CALL my.letters(x) YIELD i", BindError, "unknown variable 'x'"),
        ("OPTIONAL CALL my.letters('x')", ParseError, "OPTIONAL CALL needs YIELD"),
        ("CALL my.letters('x') YIELD i AS", ParseError, "expected a name"),
    ],
)  # fmt: skip
def test_mistakes_are_shown(
    db: graphdb.Database, called: list[Any], query: str, kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind) as caught:
        db.query(query)
    assert type(caught.value) is kind
    assert words in str(caught.value)
    assert not called
    if "(n.n" not in query:  # what a property is only a run tells
        with pytest.raises(kind):
            db.query("EXPLAIN " + query)
    assert rows(db, "CALL db.labels() YIELD label RETURN count(*)") == [(3,)]


def test_a_failing_function(db: graphdb.Database) -> None:
    def fail(x: int) -> Iterator[int]:
        yield 1 // x

    db.register_procedure("my.fail", fail, columns={"y": int})
    query = "UNWIND [1, 0] AS x CALL my.fail(x) YIELD y CREATE (:New {y: y})"
    with pytest.raises(ExecutionError, match=r"procedure my\.fail failed: ZeroDivisionError") as caught:
        db.query(query)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert caught.value.column == query.index("my.fail") + 1
    assert rows(db, "MATCH (n:New) RETURN count(*)") == [(0,)]


def test_a_function_cannot_use_the_database_that_calls_it(db: graphdb.Database) -> None:
    ways = [
        lambda: db.query("CREATE (:Ghost)").message,
        lambda: db.sql("SELECT 1").scalar(),
        lambda: db.explain("MATCH (n) RETURN n"),
        lambda: db.load("nothing.nt"),
    ]
    db.register_procedure("my.way(i :: INTEGER) :: (x :: ANY?)", lambda i: ways[i]())
    for i in range(len(ways)):
        for query in (f"CALL my.way({i})", f"MATCH (n) CALL my.way({i}) YIELD x RETURN x"):
            with pytest.raises(ExecutionError, match="a procedure cannot use the database that calls it"):
                db.query(query)
    assert rows(db, "MATCH (n) RETURN count(*)") == [(2,)]


def test_timeouts_and_interrupts_end_a_call(db: graphdb.Database) -> None:
    def forever() -> Iterator[int]:
        while True:
            yield 1

    def interrupted() -> Iterator[int]:
        raise KeyboardInterrupt
        yield 1

    db.register_procedure("my.forever", forever, columns={"x": int})
    db.register_procedure("my.interrupted", interrupted, columns={"x": int})
    for query in ("CALL my.forever()", "MATCH (n) CALL my.forever() YIELD x RETURN count(x)"):
        watch = Stopwatch()
        with pytest.raises(QueryTimeout):
            db.query(query, timeout=0.2)
        assert watch.seconds() < 5
    with pytest.raises(KeyboardInterrupt):
        db.query("CALL my.interrupted()")
    assert rows(db, "MATCH (n) RETURN count(*)") == [(2,)]


def test_a_procedure_of_ours_that_is_stopped_has_not_failed(db: graphdb.Database) -> None:
    """db.schema.visualization() asks DuckDB, which stops at the timeout: the error is the statement's."""

    def asking(seen: Seen) -> list[object]:
        return list(seen.connection.rows("SELECT count(*) FROM range(100000000000) r WHERE hash(r.range) = 1"))

    procedure = Procedure(signature_of("my.asking() :: (x :: INTEGER)", asking), asking, "", sees=True)
    db._state.procedures.add(procedure, False)
    with pytest.raises(QueryTimeout):
        db.query("CALL my.asking()", timeout=0.3)


# --- registering


def test_replacing_and_forgetting(db: graphdb.Database) -> None:
    db.register_procedure("my.number() :: (x :: INTEGER)", lambda: 1)
    assert rows(db, "CALL my.number() YIELD x RETURN x") == [(1,)]
    with pytest.raises(GraphDBError, match=r"there is a procedure 'my\.number' already"):
        db.register_procedure("my.number() :: (x :: INTEGER)", lambda: 2)
    db.register_procedure("my.number() :: (x :: STRING)", lambda: "two", replace=True)
    assert rows(db, "CALL my.number() YIELD x RETURN x") == [("two",)]
    db.unregister_procedure("my.number")
    with pytest.raises(BindError):
        db.query("CALL my.number() YIELD x RETURN x")
    for name in ("my.number", "db.labels"):
        with pytest.raises(GraphDBError, match="no procedure"):
            db.unregister_procedure(name)
    with pytest.raises(GraphDBError, match="already"):
        db.register_procedure("db.labels", lambda: None, replace=True)


def test_other_databases_do_not_know_it(db: graphdb.Database) -> None:
    db.register_procedure("my.number() :: (x :: INTEGER)", lambda: 1)
    with graphdb.connect(threads=1) as other, pytest.raises(BindError):
        other.query("CALL my.number()")


def test_functions_of_duckdb_stay_in_reach(db: graphdb.Database) -> None:
    assert len(rows(db, "CALL pragma_version()")) == 1
    assert len(rows(db, "CALL main.pragma_version()")) == 1
    db.register_procedure("main.pragma_version() :: (x :: INTEGER)", lambda: 1)
    assert rows(db, "CALL main.pragma_version()") == [(1,)]


def test_explain_and_profile_name_the_call(db: graphdb.Database, called: list[Any]) -> None:
    query = "MATCH (n) CALL my.letters(n.name) YIELD i RETURN sum(i)"
    plan = db.explain(query)
    assert "my.letters(word :: STRING, count :: INTEGER) :: (text :: STRING, i :: INTEGER) for each" in plan
    assert not called
    profile = "\n".join(line for (line,) in rows(db, f"PROFILE {query}"))
    assert "call " in profile
    assert len(called) == 2
