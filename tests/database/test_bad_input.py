"""Bad input of every kind: a GraphDBError that says what is wrong, where, and how to correct it; the database stays usable."""

from __future__ import annotations

import contextlib
import gzip
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphdb

TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
EX = "http://ex.org/"
DATA = f"""
<{EX}ada> {TYPE} <{EX}Person> .
<{EX}bob> {TYPE} <{EX}Person> .
<{EX}ada> <{EX}knows> <{EX}bob> .
<{EX}ada> <{EX}name> "Ada" .
<{EX}ada> <{EX}name> "Countess" .
<{EX}bob> <{EX}name> "Bob" .
<{EX}bob> <{EX}age> "40"^^<http://www.w3.org/2001/XMLSchema#integer> .
"""

OF_DUCKDB = ("Binder Error", "Conversion Error", "Catalog Error", "Parser Error", "INTERNAL", "LINE 1:", "_graphdb")
"""What an error of a pattern query never says: it is of SQL that the user did not write."""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bad") / "good.nt"
    path.write_text(DATA, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def shared_db(file: Path) -> Iterator[graphdb.Database]:
    with graphdb.connect() as opened:
        opened.load(file)
        opened.query(f"PREFIX ex: <{EX}>; CREATE TABLE kept AS MATCH (a:Person) RETURN a")
        yield opened


@pytest.fixture
def db(shared_db: graphdb.Database) -> Iterator[graphdb.Database]:
    """A database that must work as before after every test."""
    yield shared_db
    assert shared_db.query("MATCH (a:ex:Person)-[:knows]->(b) RETURN b.age").fetchall() == [(40,)]
    assert shared_db.sql("SELECT count(*) FROM kept").scalar() == 2
    assert shared_db.sql("SELECT count(*) FROM triples").scalar() == 7


def failure(action: Callable[[], object]) -> graphdb.GraphDBError | None:
    """The error that an action ends with, or None if it succeeds; any other exception is a failure of the test."""
    try:
        action()
    except graphdb.GraphDBError as error:
        return error
    return None


def refused(action: Callable[[], object], kind: type[graphdb.GraphDBError] = graphdb.GraphDBError) -> str:
    with pytest.raises(kind) as caught:
        action()
    return str(caught.value)


# --- names and syntax ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "kind", "at", "says"),
    [
        ("MATCH (a:Persn) RETURN a", "BindError", "Persn", "did you mean 'Person'"),
        ("MATCH (a) WHERE a:Persn RETURN a", "BindError", "Persn", "did you mean 'Person'"),
        ("MATCH (a)-[:knws]->(b) RETURN a", "BindError", "knws", "did you mean 'knows'"),
        ("MATCH (a) WHERE (a)-[:knws]->() RETURN a", "BindError", "knws", "did you mean 'knows'"),
        ("MATCH (a) RETURN a.nmae", "BindError", "nmae", "did you mean 'name'"),
        ("MATCH (a {nmae: 1}) RETURN a", "BindError", "nmae", "did you mean 'name'"),
        ("MATCH (a) WHERE a.nmae = 1 RETURN a", "BindError", "nmae", "did you mean 'name'"),
        ("MATCH (a) RETURN a.knows", "BindError", "knows", "is no property"),
        ("MATCH (person) RETURN persn", "BindError", "persn", "did you mean 'person'"),
        ("MATCH (a) WHERE b.name = 'x' RETURN a", "BindError", "b.name", "unknown variable 'b'"),
        ("MATCH (a) WHERE b.name = 'x' RETURN a", "BindError", "b.name", "known here: a"),
        ("MATCH (a) RETURN name", "BindError", "name", "its variable, a.name; a text stands in quotes, 'name'"),
        ("MATCH ()-[e]->() RETURN since", "BindError", "since", "its variable, e.since"),
        ("UNWIND [1] AS a RETURN a = Ada", "BindError", "Ada", "a text stands in quotes, 'Ada'"),
        (
            "MATCH (a) WITH a.name AS n RETURN a.age",
            "BindError",
            "a.age",
            "WITH hands on what it names alone: WITH a, …",
        ),
        (
            "UNWIND [1] AS x WITH count(*) AS n RETURN x",
            "BindError",
            "x",
            "WITH hands on what it names alone: WITH x, …",
        ),
        ("MATCH (a) WHERE a.name STARTS WITH 'A' RETURN bb.x", "BindError", "bb.x", "known here: a"),
        ("RETURN 'abc'[0]", "TypeMismatchError", "'abc'", "substring(text, 0, 1)"),
        (
            "RETURN date('2020-01-02') - date('2020-01-01')",
            "TypeMismatchError",
            "date",
            "duration.between(earlier, later)",
        ),
        ("RETURN current_date", "BindError", "current_date", "did you mean date()?"),
        ("MATCH (person) RETURN persn", "BindError", "persn", "did you mean 'person'?"),
        ("MATCH (a) RETURN a.name ORDER BY zzz", "BindError", "zzz", "unknown variable 'zzz'"),
        ("MATCH (a:exx:Person) RETURN a", "BindError", "exx", "did you mean 'ex:Person'"),
        ("MATCH (a) RETURN a.xe:name", "BindError", "xe", "unknown prefix 'xe'"),
        ("MATCH (a:ex:Persn) RETURN a", "BindError", "ex:Persn", "did you mean 'Person'"),
        ("MATCH (a) RETURN a.name -- all", "BindError", "all", "a comment begins with //"),
        ("MATCH (a) RETURN toUper(a.name)", "BindError", "toUper", "did you mean toUpper()"),
        ("MATCH (a) RETURN toUpper(a.name, 1)", "BindError", "toUpper", "takes 1 argument"),
        ("MATCH (a) RETURN count(count(a))", "ParseError", "count(a))", "an aggregate cannot stand"),
        ("MATCH (a) WHERE count(a) > 1 RETURN a", "ParseError", "count(a)", "an aggregate cannot stand"),
        ("MATCH (a) RETURN count(*) + a.age", "BindError", "a.age", "grouping key"),
        ("MATCH (a) RETURN a.name AS x, a.age AS x", "BindError", "a.age", "two columns"),
        ("MATCH (a)-[a]->(b) RETURN 1", "BindError", "a]", "is a vertex, not an edge"),
        ("MATCH (a)-[e]->(e) RETURN 1", "BindError", "e]", "is a vertex, not an edge"),
        ("MATCH (a) WHERE a.name RETURN a", "TypeMismatchError", "a.name", "expected a condition"),
        ("MATCH (a) WHERE a RETURN a", "TypeMismatchError", "a RETURN", "expected a condition"),
        ("MATCH (a) RETURN a + 1", "TypeMismatchError", "a + 1", "+ cannot take a vertex and an integer"),
        ("MATCH (a) RETURN 'x' * 2", "TypeMismatchError", "'x'", "* cannot take a string and an integer"),
        ("MATCH (a) RETURN 1 IN 2", "TypeMismatchError", "2", "IN needs a list"),
        ("MATCH (a) RETURN toUpper(1)", "TypeMismatchError", "1)", "needs a string"),
        ("MATCH (a) RETURN sum(a.name)", "TypeMismatchError", "a.name", "needs a number"),
        ("MATCH (a RETURN a", "ParseError", "RETURN", ")"),
        ("MATCH (a)-[:knows->(b) RETURN a", "ParseError", "->", "]"),
        ("MATCH (a) RETURN", "ParseError", None, ""),
        ("MATCH (a)", "ParseError", None, "RETURN"),
        ("MATCH (a) RETURN a.name = 'x", "ParseError", "'x", ""),
        ("MATCH (a) RETURN 99999999999999999999", "ParseError", "99999", "64 bits"),
        ("MTCH (a) RETURN a", "GraphDBError", None, ""),
    ],
)
def test_mistakes_in_queries(db: graphdb.Database, query: str, kind: str, at: str | None, says: str) -> None:
    with pytest.raises(graphdb.GraphDBError) as caught:
        db.query(query)
    error = caught.value
    assert kind in (type(error).__name__, "GraphDBError")
    assert says in str(error)
    assert not any(word in str(error) for word in OF_DUCKDB)
    if at is not None:
        assert error.line == 1
        assert error.column is not None
        assert query[error.column - 1 :].startswith(at)
        assert "^" in str(error)


def test_the_place_is_that_of_the_statement_in_a_script(db: graphdb.Database) -> None:
    with pytest.raises(graphdb.BindError) as caught:
        db.query("RETURN 1;\n\nMATCH (a)\nWHERE a.nmae = 1 RETURN a")
    assert (caught.value.line, caught.value.column) == (4, 9)


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("MATCH (a) RETURN DISTINCT a.age ORDER BY a.name", "DISTINCT"),
        ("MATCH (a) RETURN a.age, count(*) ORDER BY a.name", "aggregat"),
    ],
)
def test_a_known_variable_is_never_called_unknown(db: graphdb.Database, query: str, says: str) -> None:
    report = refused(lambda: db.query(query))
    assert "unknown variable" not in report
    assert says in report


@pytest.mark.parametrize(
    "query",
    [
        "RETURN date('nonsense')",
        "RETURN 'a' =~ '('",
        "RETURN 9223372036854775807 + 1",
        "RETURN 1 / 0",
        "RETURN 1 % 0",
        "MATCH (a) RETURN a.name + 'x'",
        "MATCH (a) RETURN date(a.name)",
        "MATCH (a) RETURN null AS n ORDER BY n",
        "MATCH (a) RETURN a.age ORDER BY true",
        "MATCH (a) RETURN sum(a.age * 4611686018427387904)",
        "MATCH (a), (b) RETURN sum(9223372036854775807)",
    ],
)
def test_errors_while_running_do_not_show_generated_sql(db: graphdb.Database, query: str) -> None:
    error = failure(lambda: db.query(query))
    assert not any(word in str(error) for word in (*OF_DUCKDB, "TRY(", "//", "$p")), str(error)


# --- parameters ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        b"x",
        {"a": 1},
        object(),
        1j,
        2**70,
        [2**70],
        Decimal("NaN"),
        Decimal("1e30"),
        Decimal("12345678901234567890.1234567890123456789"),
        "\ud800",
        np.array([[1, 2], [3, 4]], dtype=object),
        np.array([object()]),
        graphdb.Relationship("t", "a", "b"),
    ],
    ids=lambda given: repr(given)[:20],
)
def test_parameters_that_cannot_be_passed(db: graphdb.Database, given: object) -> None:
    error = failure(lambda: db.query("RETURN $x AS x", x=given))
    assert error is None or isinstance(error, graphdb.ParameterError), error
    assert not any(word in str(error) for word in OF_DUCKDB)


def test_parameters_that_are_missing_or_extra(db: graphdb.Database) -> None:
    assert "$nmae" in refused(lambda: db.query("RETURN $nmae", name=1), graphdb.ParameterError)
    assert "did you mean $name" in refused(lambda: db.query("RETURN $nmae", name=1), graphdb.ParameterError)
    assert "$x" in refused(lambda: db.query("RETURN 1", x=1), graphdb.ParameterError)
    assert "a list" in refused(lambda: db.query("RETURN $a", {1: 2}), graphdb.ParameterError)
    refused(lambda: db.sql("SELECT $x"))


@pytest.mark.parametrize("given", [-1, "3", 2.5, None, True, 10**30])
@pytest.mark.parametrize("clause", ["SKIP", "LIMIT"])
def test_pages_need_a_number_of_rows(db: graphdb.Database, clause: str, given: object) -> None:
    report = refused(lambda: db.query(f"MATCH (a) RETURN a {clause} $n", n=given), graphdb.ParameterError)
    assert clause in report


@pytest.mark.parametrize("given", [3, ["a"], date(2020, 1, 1), 1.5, True, None])
def test_an_iri_compared_with_something_else_is_not_equal(db: graphdb.Database, given: object) -> None:
    assert db.query("MATCH (a) WHERE iri(a) = $x RETURN a", x=given).fetchall() == []


# --- injection -------------------------------------------------------------------------------------------------

EVIL = [
    "'; DROP TABLE kept; --",
    '"; DROP TABLE kept; --',
    "') OR true --",
    "x`; DROP TABLE kept; --",
    "$p0",
    "$1",
    "?",
    "{0}",
    "%s",
    "\\",
    "\\'; DROP TABLE kept; --",
    "$$; DROP TABLE kept; $$",
    "\0",
    "/* */ -- x",
]


@pytest.mark.parametrize("evil", EVIL)
def test_values_and_names_never_become_sql(db: graphdb.Database, evil: str, tmp_path: Path) -> None:
    assert db.query("MATCH (a {name: $x}) RETURN count(*)", x=evil).scalar() == 0
    assert db.query("MATCH (a) WHERE a.name IN $x OR iri(a) = $y RETURN count(*)", x=[evil], y=evil).scalar() == 0
    assert db.query("RETURN $x", x=evil).scalar() == evil
    literal = evil.replace("\\", "\\\\").replace("'", "\\'")
    assert db.query(f"RETURN '{literal}' AS x").scalar() == evil
    assert db.query(f"MATCH (a) WHERE a.name = '{literal}' RETURN count(*)").scalar() == 0
    name = "`" + evil.replace("`", "``") + "`"
    for query in (
        f"MATCH ({name}:Person) RETURN count(*)",
        f"MATCH (a:Person) RETURN a.age AS {name} ORDER BY {name}",
        f"MATCH (a:{name}) RETURN a",
        f"MATCH (a)-[:{name}]->(b) RETURN a",
        f"MATCH (a) RETURN a.{name}",
        f"MATCH (a) RETURN a.{name}:{name}",
    ):
        error = failure(lambda query=query: db.query(query).to_arrow())  # type: ignore[misc]
        assert error is None or isinstance(error, (graphdb.BindError, graphdb.ParseError)), (query, error)
    # Its text cannot leave an IRI that was not one.
    with contextlib.suppress(graphdb.GraphDBError):
        db.query(f"MATCH (a <{evil}>) RETURN a; MATCH (a:<{evil}>) RETURN a")


# A backslash before the closing quote reads as an escape there: such a name is refused, which is no way out either.
@pytest.mark.parametrize("evil", [text for text in EVIL if "\0" not in text and not text.endswith("\\")])
def test_table_names_never_become_sql(db: graphdb.Database, evil: str) -> None:
    quoted = '"' + evil.replace('"', '""') + '"'
    db.query(f"CREATE TABLE {quoted} AS MATCH (a:Person) RETURN a")
    try:
        assert evil in db.tables()
        assert db.sql(f"SELECT count(*) FROM {quoted}").scalar() == 2
    finally:
        db.sql(f"DROP TABLE {quoted}")
    result = db.query("MATCH (a:Person) RETURN a")
    assert result.into(evil.replace(".", "")) == 2
    db.sql(f"DROP TABLE {quoted}")


@pytest.mark.parametrize("evil", [text for text in EVIL if "\0" not in text and "/" not in text])
def test_files_and_prefixes_never_become_sql(db: graphdb.Database, evil: str, tmp_path: Path, file: Path) -> None:
    literal = evil.replace("\\", "\\\\").replace("'", "\\'")
    refused(lambda: db.query(f"LOAD '{literal}'"), graphdb.LoadError)
    path = tmp_path / f"{evil}.nt"
    path.write_text(DATA, encoding="utf-8")
    with graphdb.connect(tmp_path / f"{evil}.duckdb") as other:
        assert other.load(path).triples == 7
        try:
            other.query(f"PREFIX `{evil.replace('`', '``')}`: <{EX}>")
            assert evil in other.prefixes()
        except graphdb.ParseError:
            pass
        assert other.query("MATCH (a:Person) RETURN count(*)").scalar() == 2


def test_iris_with_quotes_in_the_data(tmp_path: Path) -> None:
    data = tmp_path / "odd.nt"
    data.write_text("<urn:it's> <urn:p:it's> \"'; DROP TABLE x; --\" .\n<urn:it's> <urn:p:$p0> <urn:it's> .\n")
    with graphdb.connect() as db:
        db.load(data)
        assert db.query("MATCH (a) RETURN a.<urn:p:it's>").scalar() == "'; DROP TABLE x; --"
        assert db.query("MATCH (a)-[e:`$p0`]->(a) RETURN type(e), iri(a)").fetchall() == [("urn:p:$p0", "urn:it's")]
        assert db.query("MATCH (a) RETURN a").scalar().properties == {"urn:p:it's": "'; DROP TABLE x; --"}


# --- SQL -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM nosuch",
        "SELEC 1",
        "SELECT 1 +",
        "SELECT nosuch FROM kept",
        "SELECT 'a'::INTEGER",
        "INSERT INTO kept VALUES (1, 2)",
        "CREATE TABLE kept AS SELECT 1",
        "SELECT * FROM cypher()",
        "SELECT * FROM cypher(1)",
        "SELECT * FROM cypher($$ MATCH (a:Persn) RETURN a $$)",
        "SELECT * FROM cypher($$ MATCH (a RETURN a $$)",
    ],
)
def test_mistakes_in_sql(db: graphdb.Database, sql: str) -> None:
    refused(lambda: db.sql(sql))
    refused(lambda: db.query(sql))


def test_cypher_takes_only_queries(db: graphdb.Database) -> None:
    refused(lambda: db.sql("SELECT * FROM cypher('CREATE TABLE made AS SELECT 1 AS x')"))
    assert "made" not in db.tables()
    refused(lambda: db.sql("SELECT * FROM cypher('DROP TABLE kept')"))


def test_a_view_over_cypher_works_or_is_refused(db: graphdb.Database) -> None:
    try:
        db.sql("CREATE VIEW later AS SELECT * FROM cypher($$ MATCH (a:Person) RETURN a $$)")
    except graphdb.GraphDBError:
        return
    try:
        assert db.sql("SELECT count(*) FROM later").scalar() == 2
    finally:
        db.sql("DROP VIEW later")


def test_create_table_over_what_exists(db: graphdb.Database) -> None:
    with pytest.raises(graphdb.ExecutionError, match=r'"kept" already exists \(line 1, column 14\)') as error:
        db.query("CREATE TABLE kept AS MATCH (a) RETURN a")
    assert "CREATE OR REPLACE TABLE" in (error.value.hint or "")
    assert "triples" in refused(lambda: db.query("CREATE OR REPLACE TABLE triples AS MATCH (a) RETURN a"))
    assert "nosuch" in refused(lambda: db.query("CREATE TABLE nosuch.t AS MATCH (a) RETURN a"))


# --- files -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("bad.nt", b"<urn:a> <urn:new> <urn:b> .\n<urn:a> <urn:p> oops .\n", "line 2, column 17"),
        ("bytes.nt", b'<urn:a> <urn:new> "\xff" .\n', "UTF-8"),
        ("false.nt.gz", b"this is no gzip file", "gz"),
        ("cut.nt.gz", gzip.compress(b"<urn:a> <urn:new> <urn:b> .\n" * 5000 + os.urandom(5000))[:-3000], "cut"),
        ("data.ttl", b"<urn:a> <urn:new> ex:b .\n", "prefix ex:"),
        ("data.hdt", b"", "HDT"),
        ("data.unknown", b"", "format"),
    ],
)
def test_loads_that_fail_keep_nothing(
    db: graphdb.Database, name: str, content: bytes, says: str, tmp_path: Path
) -> None:
    good, bad = tmp_path / "first.nt", tmp_path / name
    good.write_text("<urn:x> <urn:new> <urn:y> .\n" * 3)
    bad.write_bytes(content)
    report = refused(lambda: db.load([good, bad]))
    assert says in report
    assert name in report
    assert "new" not in [label.iri for label in db.edge_labels()]
    refused(lambda: db.query("MATCH ()-[:new]->() RETURN 1"), graphdb.BindError)


def test_files_that_are_not_there(db: graphdb.Database, tmp_path: Path, file: Path) -> None:
    assert "good.nt" in refused(lambda: db.load(file.with_name("god.nt")), graphdb.LoadError)
    for paths in (tmp_path / "*.nt", [], tmp_path, "", "a\0b.nt"):
        refused(lambda paths=paths: db.load(paths), graphdb.LoadError)  # type: ignore[misc]
    refused(lambda: db.load([file, tmp_path / "none.nt"]), graphdb.LoadError)
    refused(lambda: db.load(file, on_error="ignore"))
    refused(lambda: db.load(file, format="nosuch"))


def test_load_without_quotes_says_how_to_write_it(db: graphdb.Database) -> None:
    report = refused(lambda: db.query("LOAD good.nt"))
    assert "LOAD 'good.nt'" in report


def test_a_failing_progress_callback_leaves_nothing_behind(db: graphdb.Database, tmp_path: Path) -> None:
    data = tmp_path / "more.nt"
    data.write_text("<urn:x> <urn:new> <urn:y> .\n")

    def fail(*_: Any) -> None:
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        db.load(data, progress=fail)


# --- opening and closing ---------------------------------------------------------------------------------------


def test_files_that_are_no_database(tmp_path: Path, file: Path) -> None:
    assert "is not a database" in refused(lambda: graphdb.connect(file), graphdb.StorageError)
    assert "is a directory" in refused(lambda: graphdb.connect(tmp_path), graphdb.StorageError)
    assert "no directory" in refused(lambda: graphdb.connect(tmp_path / "none" / "x.duckdb"), graphdb.StorageError)
    assert file.read_text() == DATA


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        report = refused(lambda: graphdb.connect(tmp_path / "x.duckdb"), graphdb.StorageError)
    finally:
        tmp_path.chmod(0o700)
    assert "permission" in report


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no /proc here")
def test_a_path_that_even_root_cannot_write() -> None:
    assert "/proc/x.duckdb" in refused(lambda: graphdb.connect("/proc/x.duckdb"), graphdb.StorageError)


def test_a_database_that_another_process_has_open(tmp_path: Path) -> None:
    path = tmp_path / "mine.duckdb"
    code = "import graphdb, sys\ntry: graphdb.connect(sys.argv[1])\nexcept graphdb.StorageError as e: print(e)"
    with graphdb.connect(path) as db:
        report = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=False).stdout
        assert "open in another process" in report
        assert str(os.getpid()) in report
        assert db.query("RETURN 1").scalar() == 1


@pytest.mark.parametrize(
    "options",
    [
        {"threads": 0},
        {"threads": "2"},
        {"device": "gpu"},
        {"device": None},
        {"memory_limit": "lots"},
        {"memory_limit": -1},
        {"memory_limit": "1"},
        {"path": ""},
        {"read_only": "yes"},
        {"untrusted": "false"},
    ],
    ids=str,
)
def test_arguments_of_connect(options: dict[str, Any]) -> None:
    refused(lambda: graphdb.connect(**options))


def test_use_after_close(file: Path) -> None:
    db = graphdb.connect()
    db.load(file)
    result = db.query("MATCH (a:Person) RETURN a.age AS age ORDER BY age")
    nodes = db.query("MATCH (a:Person) RETURN a")
    db.close()
    db.close()
    for action in (
        lambda: db.query("RETURN 1"),
        lambda: db.sql("SELECT 1"),
        lambda: db.explain("RETURN 1"),
        lambda: db.load(file),
        db.vertex_labels,
        db.edge_labels,
        db.prefixes,
        db.tables,
        nodes.fetchall,
    ):
        assert "closed" in refused(action, graphdb.StorageError)
    assert "closed" in repr(db)
    assert result.fetchall() == [(40,), (None,)]
    repr(nodes)  # a traceback in a notebook shows it
    db.interrupt()  # nothing runs, nothing to stop
