"""What people type who know other shells, and files that answers cannot be written to as text."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

import graphdb
from graphdb.shell.commands import DOT_COMMANDS
from graphdb.shell.repl import Shell


@pytest.fixture(scope="module")
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(threads=1) as database:
        yield database


def said(db: graphdb.Database, *entered: str) -> tuple[str, str]:
    """What a shell prints, and complains, when these are entered."""
    output, errors = io.StringIO(), io.StringIO()
    shell = Shell(db, output, errors)
    for each in entered:
        shell.accept(each)
    return output.getvalue(), errors.getvalue()


@pytest.mark.parametrize("word", [":help", "?", r"\?", "help;", ":HELP"])
def test_help_by_other_names(db: graphdb.Database, word: str) -> None:
    assert said(db, word) == said(db, ".help")
    assert ".maxrows" in said(db, word)[0]


@pytest.mark.parametrize("word", [":exit", ":q", r"\q", "quit;"])
def test_leaving_by_other_names_at_the_prompt(db: graphdb.Database, word: str) -> None:
    output = io.StringIO()
    shell = Shell(db, output, interactive=True)
    with create_pipe_input() as keys:
        keys.send_text(f"{word}\nRETURN 'still here';\n\x03\x04")
        assert shell.converse(keys, DummyOutput()) == 0
    assert "still here" not in output.getvalue()


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        (r"\dt", ".tables"),
        (":schema", "did you mean .schema?"),
        (":param x => 1", "did you mean .param?"),
        (":use neo4j", "ATTACH"),
        (".open other.duckdb", "ATTACH"),
        (".databases", "SHOW DATABASES"),
        (".dump", ".export"),
        (".headers on", ".mode"),
        (".load people.csv", ".import people.csv AS LABEL Person"),
        (r"\timing", ".timer on"),
        (":begin", "BEGIN"),
        (".mod csv", "did you mean .mode?"),
        (".zzzzzz 1", ".help lists the commands"),
    ],
)
def test_commands_of_other_shells_are_answered_at_once(db: graphdb.Database, typed: str, hint: str) -> None:
    output, errors = io.StringIO(), io.StringIO()
    shell = Shell(db, output, errors, interactive=True)
    with create_pipe_input() as keys:
        keys.send_text(f"{typed}\nRETURN 'next';\n.quit\n\x03\x04")
        assert shell.converse(keys, DummyOutput()) == 0
    first, _, rest = errors.getvalue().partition("\n")
    assert first == f"unknown command {typed.split()[0]}"
    assert hint in rest
    assert "next" in output.getvalue()  # and what is typed then is no continuation of it


def test_help_of_one_command(db: graphdb.Database) -> None:
    for about in "maxrows", ".maxrows":
        (line,) = said(db, f".help {about}")[0].splitlines()
        assert line.startswith(".maxrows")
        assert DOT_COMMANDS[".maxrows"][1] in line
    assert "did you mean .mode?" in said(db, ".help mod")[1]


@pytest.mark.parametrize(
    ("file", "hint"),
    [
        ("answer.parquet", "COPY (MATCH"),
        ("answer.csv.gz", "TO 'answer.csv.gz'"),
        ("answer.XLSX", ".once answer.csv"),
        ("answer.arrow", "to_arrow()"),
        ("graph.ttl", ".export"),
    ],
)
def test_no_text_in_files_that_are_none(tmp_path: Path, db: graphdb.Database, file: str, hint: str) -> None:
    """They held a table for people, under a name that says something else."""
    for command in ".once", ".output":
        output, errors = said(db, f"{command} {tmp_path / file}", "RETURN 1 AS x;")
        assert hint in errors
        assert "1" in output
        assert not (tmp_path / file).exists()


def test_what_the_hint_says_writes_parquet(tmp_path: Path, db: graphdb.Database) -> None:
    said(db, f"COPY (UNWIND [1, 2] AS x RETURN x) TO '{tmp_path / 'answer.parquet'}';")
    assert db.sql(f"SELECT sum(x) FROM '{tmp_path / 'answer.parquet'}'").scalar() == 3


@pytest.mark.parametrize(
    "options", ["as label P COLUMNS {id: ':ID'}", "COLUMNS {id: ':ID'} LABEL P", "AS LABEL P COLUMNS (':ID', NULL)"]
)
def test_imports_take_the_options_of_loads(tmp_path: Path, options: str) -> None:
    (tmp_path / "my people.csv").write_text("id,name\n1,Ada\n", encoding="utf-8")
    with graphdb.connect(threads=1) as own:
        _, errors = said(own, f".import {tmp_path / 'my people.csv'} {options}")
        assert errors == ""
        assert own.query("MATCH (p:P) RETURN p.name").fetchall() == [("Ada",)]
