"""Files are not trusted: damaged or hostile ones end in an error or the right answer, never in a crash or in their code."""

from __future__ import annotations

import ast
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress

import duckdb
import pytest

import graphdb
from graphdb.common.errors import GraphDBError, StorageError
from graphdb.storage.file import ddl, verify
from tests.database import read_everything

ROUNDS = int(os.environ.get("GRAPHDB_MUTANTS", "3"))
"""How many mutants of a file are opened."""

HOME = pathlib.Path(graphdb.__file__).parent


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("file") / "graph.duckdb"
    read_everything.make(path)
    return path


def changed(original: pathlib.Path, tmp_path: pathlib.Path, *statements: str) -> pathlib.Path:
    path = tmp_path / "changed.duckdb"
    shutil.copy(original, path)
    with duckdb.connect(str(path)) as connection:
        for statement in statements:
            connection.execute(statement)
    return path


def ask(path: pathlib.Path) -> list[object]:
    with graphdb.connect(path, device="cpu") as db:
        return [*db.query("MATCH (a:Person)-[:KNOWS]->(b) RETURN lower(a.name), b.name ORDER BY a.name, b.name")]


def test_an_honest_file_opens(original: pathlib.Path, tmp_path: pathlib.Path) -> None:
    expected = [("ada", "Charles"), ("charles", "Mary"), ("mary", "Ada")]
    assert ask(original) == expected
    own = "CREATE MACRO doubled(x) AS 2 * x", "CREATE TYPE mood AS ENUM ('sad')", "CREATE TABLE mine(a INTEGER)", \
        "CREATE VIEW seen AS FROM mine", "CREATE INDEX i ON mine(a)", "CREATE SEQUENCE numbers"  # fmt: skip
    assert ask(changed(original, tmp_path, *own)) == expected


def test_a_newer_version_may_have_other_tables(original: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Its file was said to be damaged, as soon as one of its tables was another than here."""
    later = "ALTER TABLE _graphdb.literal ADD COLUMN extra INTEGER", "CREATE TABLE _graphdb.later(a INTEGER)"
    for version in "99", "9" * 20:
        stated = f"UPDATE _graphdb.meta SET value = '{version}' WHERE key = 'schema_version'"
        with pytest.raises(StorageError, match=r"'.*\.duckdb' was written by a newer version of graphdb"):
            ask(changed(original, tmp_path, *later, stated))


VIEWS = [f"ALTER TABLE _graphdb.{table} RENAME TO old_{table}" for table in ("prefix", "triple", "literal", "meta")]


@pytest.mark.parametrize(
    "statements",
    [
        *([rename, f"CREATE VIEW {rename.split()[2]} AS FROM _graphdb.{rename.split()[-1]}"] for rename in VIEWS),
        ["DROP TABLE _graphdb.prefix", "CREATE VIEW _graphdb.prefix AS SELECT * FROM read_csv('{secret}')"],
        ["DROP TABLE _graphdb.prefix"],
        ["DROP TABLE _graphdb.edge", "CREATE TABLE _graphdb.edge (label BIGINT NOT NULL)"],
        ["ALTER TABLE _graphdb.triple ADD COLUMN more BIGINT"],
        ["ALTER TABLE _graphdb.triple ALTER subject TYPE VARCHAR"],
        ["ALTER TABLE _graphdb.triple ALTER subject DROP NOT NULL"],
        ["ALTER TABLE _graphdb.triple ALTER subject SET DEFAULT 7"],
        ["ALTER TABLE _graphdb.triple RENAME subject TO \"subject \""],
        ["DROP TABLE _graphdb.resource", "CREATE TABLE _graphdb.resource (\"id BIGINT NOT NULL, iri\" VARCHAR NOT NULL)"],
        ["DROP TABLE _graphdb.resource",
         "CREATE TABLE _graphdb.resource (id BIGINT NOT NULL, iri VARCHAR AS ('x' || id))"],
        ["DROP TABLE _graphdb.resource",
         "CREATE TABLE _graphdb.resource (id BIGINT NOT NULL, iri VARCHAR NOT NULL, CHECK (id > 5))"],
        ["DROP TABLE _graphdb.literal", ddl.CREATE[ddl.CREATE.index("CREATE TABLE _graphdb.literal") :].split(";")[0]
         .replace("CAST(integer AS", "CAST(number AS")],
        ["CREATE INDEX i ON _graphdb.triple(subject)"],
        ["CREATE TABLE mine(a BIGINT)",
         "CREATE TRIGGER t AFTER INSERT ON mine FOR EACH STATEMENT DELETE FROM _graphdb.triple"],
        ["CREATE TABLE mine(a BIGINT)",
         "CREATE TRIGGER t AFTER INSERT ON _graphdb.resource FOR EACH STATEMENT DELETE FROM main.mine"],
        *([f"CREATE MACRO {macro}"] for macro in (
            "lower(x) AS 'hijacked'", "LOWER(x) AS 'hijacked'", "list_sort(x) AS x", "unnest(x) AS 1", '"+"(a, b) AS 42',
            '"||"(a, b) AS \'hijacked\'', "coalesce(a, b) AS a", "count(x) AS 7", "duckdb_tables() AS TABLE SELECT 1",
            "current_database() AS 'nowhere'", "struct_extract(a, b) AS 1", "_graphdb_call0_0(x) AS x",
            "range(x) AS TABLE SELECT content FROM read_text('{secret}')")),
    ],
    ids=lambda statements: statements[-1][:70],
)  # fmt: skip
def test_names_of_ours(original: pathlib.Path, tmp_path: pathlib.Path, statements: list[str]) -> None:
    """Views, other columns, triggers and macros in the file's own words never run."""
    secret = tmp_path / "secret.csv"
    secret.write_text("prefix,iri\nstolen,http://stolen/\n")
    path = changed(original, tmp_path, *(statement.replace("{secret}", str(secret)) for statement in statements))
    for read_only in (False, True):
        with pytest.raises(StorageError, match=r"damaged|not a table|columns|macro|trigger|index"):
            ask_as(path, read_only)


def ask_as(path: pathlib.Path, read_only: bool) -> None:
    with graphdb.connect(path, device="cpu", read_only=read_only) as db:
        db.query("MATCH (a:Person) RETURN a.name")


@pytest.mark.parametrize(
    "statement",
    ["CREATE MACRO lower(x) AS 'hijacked'", "CREATE SCHEMA _graphdb; CREATE TABLE _graphdb.meta (key INTEGER)"],
)
def test_what_stands_in_the_log_alone(tmp_path: pathlib.Path, statement: str) -> None:
    """A file without a block is new, and not looked into: but not one whose write-ahead log has something."""
    path = tmp_path / "log.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("SET checkpoint_threshold = '1GB'")
        connection.execute("PRAGMA disable_checkpoint_on_shutdown")
        connection.execute(statement)
    assert path.with_name("log.duckdb.wal").exists()
    with pytest.raises(StorageError, match=r"has a macro|columns"), graphdb.connect(path, device="cpu") as db:
        db.query("CREATE (:Person {name: 'Ada'})")


def test_a_view_of_ours_is_not_asked(original: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Not even what its columns are: that would open the file that it names."""
    trap = tmp_path / "trap.csv"
    trap.write_text("prefix,iri\nx,y\n")
    path = changed(
        original, tmp_path, "DROP TABLE _graphdb.prefix", f"CREATE VIEW _graphdb.prefix AS FROM read_csv('{trap}')"
    )
    trap.unlink()
    os.mkfifo(trap)  # who opens it waits for ever
    code = (
        "import graphdb, sys\ntry: graphdb.connect(sys.argv[1])\nexcept graphdb.StorageError as e: print('refused', e)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=60, check=True
    )
    assert ran.stdout.startswith("refused _graphdb.prefix is not a table")


IDS = ("triple.label", "triple.subject", "triple.object", "resource.id", "literal.id", "edge.subject", "edge.object",
       "edge.label", "edge.ordinal", "edge_property.key", "edge_property.value", "edge_property.subject",
       "edge_label.id", "vertex_label.id", "literal.kind", "edge_label.triples", "edge_label.kinds",
       "edge_label.max_values", "edge_label.max_out_degree", "vertex_label.vertices", "degree.vertices", "degree.edges",
       "degree.bucket", "degree.direction", "label_pair.edges", "quad.graph", "quad.subject", "reifier.reifier",
       "edge_graph.graph", "source.id", "label_pair.class", "degree.squares")  # fmt: skip
VALUES = (
    -1,
    0,
    1,
    7,
    11,
    255,
    1 << 31,
    (1 << 40) - 1,
    1 << 40,
    (1 << 40) + 3,
    (1 << 40) + 10**6,
    (1 << 62),
    -(1 << 63),
    10**9,
)


def mutations(random: random.Random) -> list[str]:
    """Return statements that damage a file: ids, rows, texts and columns."""
    made = []
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        table, column = random.choice(IDS).split(".")
        value = random.choice(VALUES)
        where = random.choice(("", f" WHERE rowid % 3 = {random.randrange(3)}", " WHERE rowid = 0"))
        type = {"kind": "UTINYINT", "kinds": "UINTEGER", "bucket": "UTINYINT", "direction": "UTINYINT"}.get(column)
        value = value % 250 if type == "UTINYINT" else value % (1 << 32) if type else value
        made.append(
            random.choice(
                (
                    f'UPDATE _graphdb.{table} SET "{column}" = {value}{where}',
                    f'UPDATE _graphdb.{table} SET "{column}" = {value}{where}',
                    f"DELETE FROM _graphdb.{table}{where}",
                    f"INSERT INTO _graphdb.{table} FROM _graphdb.{table}{where}",
                    "UPDATE _graphdb.resource SET iri = repeat('\u00e9<>\"\\', 50)" + where,
                    "UPDATE _graphdb.literal SET text = chr(0) || 'x', datatype = 'http://' || id" + where,
                    f"UPDATE _graphdb.literal SET integer = NULL, number = NULL, moment = {value}, kind = {value % 13}{where}",
                    f"UPDATE _graphdb.meta SET value = '{value}' WHERE key = 'schema_version'",
                    f"INSERT OR REPLACE INTO _graphdb.meta VALUES ('{random.choice(('resource_key', 'literal_key', 'work', 'settled'))}', 'v {value},1 x')",
                )
            )
        )
    return made


def test_mutants(original: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Ids out of range, rows that are there twice or no more, other kinds: errors of ours, or answers."""
    seed = int(os.environ.get("GRAPHDB_SEED", "16"))
    listed = []
    for number in range(ROUNDS):
        path = tmp_path / f"{number}.duckdb"
        shutil.copy(original, path)
        statements = mutations(random.Random(seed * 1000 + number))
        with duckdb.connect(str(path)) as connection:
            for statement in statements:
                with suppress(duckdb.Error):  # a key that would be there twice, a number too large for its column
                    connection.execute(statement)
        listed.append((path, statements))
    ran = subprocess.run(
        [sys.executable, "-m", "tests.database.read_everything", *(str(path) for path, _ in listed)],
        capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip
    report = ran.stdout.splitlines()
    bad = [line for line in report if line.startswith("BAD")]
    where = listed[min(len([line for line in report if line.startswith("FILE")]) - 1, len(listed) - 1)]
    assert ran.returncode == 0, (ran.returncode, where, ran.stderr[-2000:])
    assert not bad, [(line, dict(listed)[pathlib.Path(line.split()[1])]) for line in bad[:5]]
    assert sum(line.startswith("FILE") for line in report) == ROUNDS


LIVE = {
    "pairs": "MATCH (a:P)-[:R]->(b) RETURN a.k AS a, b.k AS b",
    "totals": "MATCH (a:P)-[:R]->(b) RETURN a.k AS a, count(*) AS c, min(b.k) AS m, count(DISTINCT b.k) AS d",
    "ends": "MATCH (a:P)-[:R]->(b) RETURN DISTINCT b.k AS b",
}
"""Continuous queries: their answers, changes, groups and values are tables of the file."""


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("live") / "graph.duckdb"
    with graphdb.connect(path, device="cpu") as db:
        db.query("UNWIND [1, 2, 3] AS k CREATE (:P {k: k})-[:R]->(:P {k: k + 1})")
        for name, text in LIVE.items():
            db.query(f"CREATE CONTINUOUS QUERY {name} AS {text}")
        db.query("CREATE (:P {k: 1})-[:R]->(:P {k: 2})")
    return path


def test_tables_of_continuous_queries(followed: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Whatever is done to them, a change of the graph says so or is made, and nothing is half there."""
    random_ = random.Random(int(os.environ.get("GRAPHDB_SEED", "16")))
    with duckdb.connect(str(followed), read_only=True) as connection:
        columns = connection.execute(
            "SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE schema_name = '_graphdb' AND"
            " regexp_matches(table_name, '^(answer|changes|groups|values)_|^batch$|^continuous_query$')"
        ).fetchall()
    drops = [(f'ALTER TABLE _graphdb."{table}" DROP COLUMN "{column}"',) for table, column, _ in columns]
    damages = random_.sample(drops, min(len(drops), 4 * ROUNDS)) + [
        (f'UPDATE _graphdb."{table}" SET "{column}" = NULL',) for table, column, _ in random_.sample(columns, ROUNDS)
    ]
    for statements in damages:
        try:
            path = changed(followed, tmp_path, *statements)
        except duckdb.Error:
            continue  # it may not be null, or is a table's only column
        try:
            with graphdb.connect(path, device="cpu") as db:
                before = db.query("MATCH (n:P) RETURN count(n)").scalar()
                with suppress(GraphDBError):
                    db.query("CREATE (:P {k: 5})-[:R]->(:P {k: 6})")
                    before += 2
                assert db.query("MATCH (n:P) RETURN count(n)").scalar() == before, statements
                for name in LIVE:
                    with suppress(GraphDBError):
                        db.query(f"SELECT * FROM {name}").fetchall()
        except StorageError:
            continue  # it was found when the file was opened


def texts(tree: ast.AST) -> Iterator[str]:
    """Return the texts in code, but those that stand alone: they describe it."""
    left = [tree]
    while left:
        node = left.pop()
        for value in vars(node).values():
            for each in value if type(value) is list else (value,):
                if type(each) is ast.Constant:
                    if type(each.value) is str and type(node) is not ast.Expr:
                        yield each.value
                elif isinstance(each, ast.AST):
                    left.append(each)


def test_the_list_of_called_functions() -> None:
    """What our SQL calls is what no file may redefine: every name of DuckDB's in a text of the code is listed."""
    known = {
        name
        for (name,) in duckdb.sql(
            "SELECT DISTINCT lower(function_name) FROM duckdb_functions() WHERE internal"
        ).fetchall()
    }
    found = set()
    # The parts beside the package are links within it, which rglob does not follow.
    folders = [HOME, *(path.resolve() for path in HOME.iterdir() if path.is_symlink())]
    for path in (path for folder in folders for path in folder.rglob("*.py")):
        for text in texts(ast.parse(path.read_text())):
            found.update(re.findall(r"([a-z_][a-z0-9_]*)\(", text.lower()) if "(" in text else ())
            found.add(text)
    missing = sorted(name for name in known & found if not verify.is_called(name))
    assert not missing, f"to be listed in storage.verify.CALLED: {missing}"
    assert not sorted(
        name for name in known if not re.fullmatch(r"[a-z_][a-z0-9_ ]*", name) and not verify.is_called(name)
    )
    assert not verify.is_called("add")
