"""Statements of strangers: none reaches files, the network, settings or our tables; what else they ask is answered."""

from __future__ import annotations

import io
import os
import pathlib
import random
from contextlib import suppress

import pyarrow as pa
import pytest

import graphdb
from graphdb.common.errors import AccessError, GraphDBError
from tests.programs import command

SEED = int(os.environ.get("GRAPHDB_SEED", "16"))


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A folder with a file that must not be read, where nothing may be written; the current one."""
    (tmp_path / "secret.csv").write_text("a,b\nhidden,1\n")
    (tmp_path / "secret.nt").write_text('<e:hidden> <e:p> "1" .\n')
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump" / "schema.sql").write_text("CREATE TABLE hidden(a INTEGER);")
    (tmp_path / "dump" / "load.sql").write_text("")
    graphdb.connect(tmp_path / "other.duckdb").close()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def listing(folder: pathlib.Path) -> dict[str, int]:
    return {str(path): path.stat().st_size for path in folder.rglob("*") if "mine" not in path.name}


FILES = """
LOAD 'secret.nt'
LOAD '*.nt'
LOAD '-'
FROM 'secret.csv'
FROM read_csv('secret.csv')
FROM read_csv_auto('secret.csv')
FROM read_text('secret.csv')
FROM read_text('/etc/passwd')
FROM read_blob('secret.csv')
FROM read_json('secret.csv')
FROM read_ndjson_objects('secret.csv')
FROM read_parquet('secret.csv')
FROM parquet_metadata('secret.csv')
FROM parquet_schema('secret.csv')
FROM sniff_csv('secret.csv')
FROM glob('*')
FROM read_duckdb('other.duckdb')
FROM query('FROM read_text(''secret.csv'')')
FROM query_table('secret.csv')
FROM 'https://example.org/x.csv'
FROM read_parquet('s3://bucket/x.parquet')
CREATE TABLE t AS FROM 'secret.csv'
CREATE VIEW v AS FROM 'secret.csv'; FROM v
CREATE MACRO f() AS TABLE FROM read_text('secret.csv'); FROM f()
SET VARIABLE x = (SELECT content FROM read_text('secret.csv'))
COPY (SELECT 1) TO 'written.csv'
COPY (SELECT 1) TO 'written.parquet' (FORMAT parquet)
COPY (SELECT 1) TO '/dev/stdout'
COPY (SELECT 1) TO '/proc/self/fd/1' (FORMAT csv)
CREATE TABLE u(a VARCHAR, b INTEGER); COPY u FROM 'secret.csv'
EXPORT DATABASE 'written'
IMPORT DATABASE 'dump'
PRAGMA import_database('dump')
ATTACH 'other.duckdb' AS other
ATTACH 'written.duckdb'
ATTACH 'other.duckdb' AS other (READ_ONLY)
ATTACH 'secret.csv' (TYPE sqlite)
ATTACH 'host=localhost' (TYPE postgres)
INSTALL httpfs
INSTALL httpfs FROM community
LOAD httpfs
LOAD 'evil.duckdb_extension'
UPDATE EXTENSIONS
CONNECT 'other.duckdb'
SET enable_external_access = true
SET GLOBAL enable_external_access = true
RESET enable_external_access
SET allowed_paths = ['secret.csv']
SET allowed_directories = ['.']
SET allowed_configs = ['threads']
SET lock_configuration = false
RESET lock_configuration
SET allow_unsigned_extensions = true
SET extension_directory = '.'
SET secret_directory = '.'
SET home_directory = '.'
SET file_search_path = '.'
SET temp_directory = 'written'
SET memory_limit = '100GB'
SET threads = 64
SET python_enable_replacements = true
SET python_scan_all_frames = true
SET custom_user_agent = 'x'
SET log_query_path = 'written.log'
PRAGMA log_query_path = 'written.log'
SET profiling_output = 'written.json'
PRAGMA enable_profiling = 'json'
PRAGMA profiling_output = 'written.json'
SET logging_storage = 'file'
CALL enable_logging('QueryLog', storage = 'file', storage_config = {'path': 'written'})
CREATE PERSISTENT SECRET s (TYPE s3, KEY_ID 'a', SECRET 'b')
SELECT * FROM cypher($$ RETURN 1 AS one $$), read_text('secret.csv')
EXPLAIN ANALYZE COPY (SELECT 1) TO 'written.csv'
PREPARE p AS COPY (SELECT 1) TO 'written.csv'; EXECUTE p
FROM pandas_scan(12345)
FROM arrow_scan(1, 2, 3)
FROM python_map_function((FROM range(3)))
SELECT getenv('HOME')
FROM hidden_frame
FROM hidden_result
""".strip().splitlines()


def test_hostile_statements(folder: pathlib.Path) -> None:
    hidden_frame = pa.table({"secret": ["hidden"]})
    with graphdb.connect(folder / "mine.duckdb", device="cpu", untrusted=True) as db:
        db.query("CREATE (:A {x: 1})-[:R]->(:A {x: 2})")
        hidden_result = db.query("MATCH (a:A) RETURN 'hidden' AS secret")
        assert len(hidden_frame) == 1
        assert len(hidden_result) == 2
        before = listing(folder)
        for statement in FILES:
            for run in (db.query, db.sql):
                with pytest.raises(GraphDBError) as caught:
                    print(statement, run(statement).fetchall())
                assert "hidden" not in str(caught.value).replace("hidden_", ""), statement
        assert listing(folder) == before
        assert db.query("MATCH (a:A) RETURN sum(a.x)").scalar() == 3
        assert db.sql("SELECT current_setting('enable_external_access'), current_setting('lock_configuration')").fetchall() == [(False, True)]  # fmt: skip


def test_spellings(folder: pathlib.Path) -> None:
    """The same statements in other capitals, blanks and comments, and one behind the other."""
    chance = random.Random(SEED)
    with graphdb.connect(folder / "mine.duckdb", device="cpu", untrusted=True) as db:
        before = listing(folder)
        for statement in FILES:
            words = statement.split(" ")
            spelled = "".join(
                (word if "'" in word or "." in word else chance.choice((word.lower(), word.upper(), word)))
                + chance.choice((" ", "\n", "\t ", " /* ; */ "))
                for word in words
            )
            with pytest.raises(GraphDBError):
                db.sql(chance.choice(("", "SELECT 1; ", "BEGIN; ", ";;")) + spelled).fetchall()
            with suppress(GraphDBError):
                db.sql("ROLLBACK")
        assert listing(folder) == before


def test_what_is_allowed(folder: pathlib.Path) -> None:
    with graphdb.connect(folder / "mine.duckdb", device="cpu", untrusted=True) as db:
        assert db.untrusted
        assert db.load(io.BytesIO(b'<e:a> <e:p> "x" .\n'), format="nt").new_triples == 1
        assert db.load(pa.table({":ID": ["1"], "name": ["n" * 10_000]})).new_triples > 0
        assert db.sql("CREATE TABLE t AS SELECT range AS n FROM range(5)") is not None
        assert db.sql("SELECT sum(n) FROM t").scalar() == 10
        assert db.query("CREATE TABLE u AS MATCH (a)-[:<e:p>]->(b) RETURN a, b").message
        assert db.tables() == ["t", "triples", "u"]
        db.sql("ATTACH ':memory:' AS other; USE other; CREATE TABLE x(a INTEGER)")
        assert db.query("MATCH (a {name: $name}) RETURN count(*)", name="n" * 10_000).scalar() == 1
        db.sql("SET VARIABLE v = 3")
        for refused in (lambda: db.export("written.nt"), lambda: db.load("secret.nt"), lambda: db.export("-", "nt"),
                        lambda: db.load([io.BytesIO(b""), "secret.nt"]), lambda: db.load(pathlib.Path("secret.nt"))):  # fmt: skip
            with pytest.raises(AccessError, match="files are out of reach"):
                refused()


def test_it_spills(folder: pathlib.Path) -> None:
    with graphdb.connect(folder / "mine.duckdb", device="cpu", untrusted=True, memory_limit="600MB", threads=2,
                         spill=folder / "mine.spilled") as db:  # fmt: skip
        db.sql("CREATE TEMP TABLE large AS SELECT uuid() || uuid() || uuid() AS x FROM range(2000000)")
        assert db.sql("SELECT count(DISTINCT x) FROM large").scalar() == 2_000_000
        assert db.sql("SELECT sum(size) FROM duckdb_temporary_files()").scalar() > 0


@pytest.mark.own_duckdb
def test_setting_implies_it(folder: pathlib.Path) -> None:
    """DuckDB's own setting holds for LOAD and exports, too."""
    with graphdb.connect(device="cpu") as db:
        db.sql("SET enable_external_access = false")
        for refused in (
            lambda: db.query("LOAD 'secret.nt'"),
            lambda: db.load("secret.nt"),
            lambda: db.export("written.nt"),
        ):
            with pytest.raises(AccessError, match="files are out of reach"):
                refused()
        with pytest.raises(AccessError, match="disabled by configuration"):
            db.sql("FROM 'secret.csv'")
        assert not db.untrusted


def test_safe_mode_of_the_shell(folder: pathlib.Path) -> None:
    (folder / "script").write_text("RETURN 1;\n")
    before = listing(folder)
    for line in (
        ".read script",
        ".export written.nt",
        "LOAD 'secret.nt';",
        "FROM 'secret.csv';",
        "COPY (SELECT 1) TO 'written.csv';",
    ):
        ran = command("--safe", "mine.duckdb", stdin=line + "\n")
        assert ran.returncode == 1, line
        assert "safe mode" in ran.stderr or "out of reach" in ran.stderr or "disabled by configuration" in ran.stderr
    assert listing(folder) == before
    ran = command("--safe", "mine.duckdb", stdin="CREATE (:A {x: 1});\n.schema\nMATCH (a:A) RETURN a.x;\n")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert command("sql", "--safe", "mine.duckdb", "FROM 'secret.csv'").returncode == 1
    assert command("query", "--safe", "mine.duckdb", "LOAD 'secret.nt'").returncode == 1
    assert command("sql", "mine.duckdb", "FROM 'secret.csv'").returncode == 0


# --- our tables


WRITES = """
INSERT INTO _graphdb.triple VALUES (0, 0, 0)
INSERT INTO {home}._graphdb.triple VALUES (0, 0, 0)
INSERT INTO "_graphdb"."triple" VALUES (0, 0, 0)
INSERT INTO `_graphdb`.triple VALUES (0, 0, 0)
INSERT INTO _GraphDB.Triple VALUES (0, 0, 0)
INSERT INTO _graphdb /* x */ . triple VALUES (0, 0, 0)
INSERT INTO _graphdb.triple BY NAME SELECT 0 AS label, 0 AS subject, 0 AS object
INSERT OR REPLACE INTO _graphdb.meta VALUES ('schema_version', '99')
WITH x AS (SELECT 0 AS a) INSERT INTO _graphdb.triple SELECT a, a, a FROM x
UPDATE _graphdb.triple SET subject = 99
UPDATE _graphdb.triple AS t SET subject = 99 FROM _graphdb.resource
DELETE FROM _graphdb.triple
DELETE FROM _graphdb.triple USING _graphdb.resource WHERE id = subject
DELETE FROM {home}._graphdb.triple RETURNING *
TRUNCATE _graphdb.triple
TRUNCATE TABLE _graphdb.triple
MERGE INTO _graphdb.triple USING (SELECT 0 AS s) ON s = subject WHEN MATCHED THEN DELETE
WITH x AS (DELETE FROM _graphdb.triple RETURNING *) SELECT * FROM x
WITH x AS MATERIALIZED (UPDATE _graphdb.triple SET subject = 9 RETURNING *) FROM x
WITH x AS (INSERT INTO _graphdb.triple VALUES (0, 0, 0) RETURNING *) FROM x
WITH x AS (DELETE FROM _graphdb.triple RETURNING *) INSERT INTO mine SELECT label FROM x
FROM json_execute_serialized_sql(json_serialize_sql('WITH x AS (DELETE FROM _graphdb.triple RETURNING *) FROM x'))
PRAGMA json_execute_serialized_sql(json_serialize_sql('WITH x AS (DELETE FROM _graphdb.triple RETURNING *) FROM x'))
FROM "json_execute_serialized_sql"(json_serialize_sql('WITH x AS (DELETE FROM _graphdb.triple RETURNING *) FROM x'))
EXPLAIN ANALYZE DELETE FROM _graphdb.triple
EXPLAIN ANALYZE WITH x AS (DELETE FROM _graphdb.triple RETURNING *) FROM x
EXPLAIN (ANALYZE) DELETE FROM _graphdb.triple
PREPARE p AS DELETE FROM _graphdb.triple; EXECUTE p
PREPARE p AS INSERT INTO _graphdb.triple VALUES ($1, $1, $1); EXECUTE p(0)
COPY _graphdb.triple FROM '{csv}'
COPY _graphdb.triple (label, subject, object) FROM '{csv}'
ALTER TABLE _graphdb.triple RENAME TO other
ALTER TABLE _graphdb.triple ADD COLUMN more BIGINT
ALTER TABLE IF EXISTS _graphdb.triple DROP COLUMN object
COMMENT ON TABLE _graphdb.triple IS 'mine'
DROP TABLE _graphdb.triple
DROP TABLE IF EXISTS {home}._graphdb.triple CASCADE
DROP SCHEMA _graphdb CASCADE
DROP SCHEMA '_graphdb' CASCADE
DROP SCHEMA IF EXISTS "_graphdb" CASCADE
CREATE TABLE _graphdb.mine(a INTEGER)
CREATE OR REPLACE TABLE _graphdb.triple AS SELECT 1 AS label
CREATE VIEW _graphdb.seen AS SELECT 1
CREATE MACRO _graphdb.f(x) AS x
CREATE TYPE _graphdb.mood AS ENUM ('sad')
CREATE SEQUENCE _graphdb.numbers
CREATE INDEX i ON _graphdb.triple(subject)
CREATE TRIGGER t AFTER INSERT ON mine FOR EACH STATEMENT DELETE FROM _graphdb.triple
CREATE TRIGGER t AFTER INSERT ON _graphdb.triple FOR EACH STATEMENT DELETE FROM mine
USE _graphdb; DELETE FROM triple
USE {home}._graphdb; DELETE FROM triple
SET search_path = '_graphdb'; DELETE FROM triple
SET search_path = 'main,_graphdb'; DELETE FROM triple
SET search_path = '_gra' || 'phdb'; DELETE FROM triple
SET schema = concat('_gra', 'phdb'); DELETE FROM triple
PRAGMA search_path = '_graphdb'; DELETE FROM triple
ATTACH ':memory:' AS _graphdb
ATTACH ':memory:' AS o; USE o; DETACH {home}
ATTACH ':memory:' AS o; COPY FROM DATABASE o TO {home}
IMPORT DATABASE '{dump}'
PRAGMA import_database('{dump}')
CREATE TABLE _graphdb.mine AS MATCH (a) RETURN a
CREATE OR REPLACE TABLE _graphdb.triple AS MATCH (a) RETURN a
CREATE MACRO lower(x) AS 'hijacked'
CREATE OR REPLACE TEMP MACRO "LOWER"(x) AS 'hijacked'
CREATE MACRO main.list_sort(x) AS x
CREATE FUNCTION IF NOT EXISTS "+"(a, b) AS 42
CREATE TEMP TABLE _graphdb_new(a INTEGER)
CREATE TEMP VIEW _graphdb_names AS SELECT 1
CREATE TEMP TABLE _graphdb_rows AS MATCH (a) RETURN a
""".strip().splitlines()

READS = """
SELECT count(*) FROM _graphdb.triple
FROM _graphdb.triple, _graphdb.resource WHERE id = subject
SELECT (SELECT max(id) FROM _graphdb.resource) AS m
CREATE TABLE own AS FROM _graphdb.triple
CREATE VIEW ours AS SELECT * FROM _graphdb.triple JOIN _graphdb.resource ON id = label
INSERT INTO mine SELECT subject FROM _graphdb.triple
INSERT INTO mine VALUES (1)
DELETE FROM mine USING _graphdb.triple WHERE a = subject
UPDATE mine SET a = 1 FROM _graphdb.triple WHERE a = subject
EXPLAIN SELECT * FROM _graphdb.triple
DESCRIBE _graphdb.triple
SHOW TABLES FROM _graphdb
COPY _graphdb.triple TO '{out}'
COPY (SELECT label FROM _graphdb.triple) TO '{out}'
CREATE MACRO doubled(x) AS 2 * x
CREATE TABLE texts AS SELECT 'DELETE FROM _graphdb.triple' AS t, '_graphdb' AS u
CREATE TABLE _graphdb_1 AS SELECT 42 AS x
USE main
SET search_path = 'main'
""".strip().splitlines()


@pytest.fixture(scope="module")
def writable(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("tables")
    (folder / "x.csv").write_text("label,subject,object\n0,0,0\n")
    (folder / "dump").mkdir()
    (folder / "dump" / "schema.sql").write_text("DELETE FROM _graphdb.triple;")
    (folder / "dump" / "load.sql").write_text("")
    return folder


def run_all(db: graphdb.Database, statement: str, folder: pathlib.Path) -> None:
    given = statement.replace("{home}", "memory").replace("{csv}", f"{folder}/x.csv")
    given = given.replace("{dump}", f"{folder}/dump").replace("{out}", f"{folder}/out.csv")
    for part in given.split("; "):
        db.query(part)


@pytest.mark.parametrize("statement", WRITES)
def test_our_tables_are_closed(writable: pathlib.Path, statement: str) -> None:
    with graphdb.connect(device="cpu") as db:
        db.query("CREATE (:A {name: 'Ada'})-[:R]->(:A {name: 'Bob'})")
        db.sql("CREATE TABLE mine(a BIGINT)")
        before = db.sql("SELECT schema_name, table_name, sql FROM duckdb_tables() ORDER BY ALL").fetchall()
        rows = db.sql("FROM _graphdb.triple ORDER BY ALL").fetchall()
        with pytest.raises(AccessError):
            run_all(db, statement, writable)
        assert db.query("MATCH (a:A)-[:R]->(b) RETURN toLower(a.name), b.name").fetchall() == [("ada", "Bob")]
        assert db.sql("FROM memory._graphdb.triple ORDER BY ALL").fetchall() == rows
        after = db.sql(
            "SELECT schema_name, table_name, sql FROM duckdb_tables() WHERE database_name = 'memory' ORDER BY ALL"
        )
        assert after.fetchall() == before


def test_reading_our_tables(writable: pathlib.Path) -> None:
    with graphdb.connect(device="cpu") as db:
        db.query("CREATE (:A {name: 'Ada'})-[:R]->(:A {name: 'Bob'})")
        db.sql("CREATE TABLE mine(a BIGINT)")
        for statement in READS:
            run_all(db, statement, writable)


def test_results_are_stored_elsewhere() -> None:
    with graphdb.connect(device="cpu") as db:
        result = db.query("CREATE (a:A {name: 'Ada'}) RETURN a.name AS name")
        for name in ("_graphdb.triple", "memory._GRAPHDB.triple"):
            with pytest.raises(AccessError):
                result.into(name)


def test_names_like_ours() -> None:
    """A table of the user's by a name that ours might have: neither is taken for the other."""
    with graphdb.connect(device="cpu") as db:
        db.query("CREATE (:A {name: 'Ada'})-[:R]->(:A {name: 'Bob'})")
        names = [f"_graphdb_{i}" for i in range(30)]
        names += [f"_graphdb_{name}" for name in ("names", "block", "rows", "wanted", "new", "batch", "gone")]
        names += ["_labels", "_universe", "_bindings", "given"]
        for name in names:
            db.sql(f"CREATE TABLE {name} AS SELECT 42 AS x")
        for name in ("_labels", "_universe", "_bindings", "given"):
            db.sql(f"CREATE TEMP TABLE {name} AS SELECT 43 AS x")
        pattern = "MATCH (a:A)-[r]->(b) WHERE a.name <> b.name AND type(r) = 'R' RETURN a, b.name AS name"
        for name in names:
            expected = 43 if name in ("_labels", "_universe", "_bindings", "given") else 42
            sql = f"SELECT {name}.x, c.name FROM {name}, cypher($${pattern}$$) AS c, cypher($${pattern}$$) AS d"
            assert db.sql(sql).fetchall() == [(expected, "Bob")], name
        assert db.query("MATCH (a:A) WHERE NOT (a)-->() AND size(a.name) = 3 RETURN a").fetchall()[0][0].labels == (
            "A",
        )
        db.query("MATCH (a:A) SET a.x = 1")
        assert db.query("MATCH (a) RETURN sum(a.x)").scalar() == 2
