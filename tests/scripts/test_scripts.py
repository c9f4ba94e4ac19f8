"""Golden scripts: statements, what each pass of the planner makes of them, EXPLAIN, and the rows.

A script is a text of sections with an empty line between them.  A section is a statement, a line ``----``, and what
comes out: for a query its pattern graphs with what each pass changed, then EXPLAIN without the SQL, then its rows; of
a statement that begins with EXPLAIN or writes, what it prints.  An error is printed as a user sees it.  Lines that
begin with ``#`` are comments; a section ``graph: FILE`` at the head says what is loaded first (from ``docs/language``,
or the shipped data set).

``GRAPHDB_REWRITE_SCRIPTS=1 pytest tests/scripts`` writes the scripts anew: read the difference before committing it.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

import pytest

import graphdb
from graphdb.data import GEOGRAPHY, PREFIXES
from graphdb.grammar import syntax as ast
from graphdb.grammar.parser import parse_script
from graphdb.storage.graph.derived.closure import named
from tests.scripts.trace import traced

FOLDER = Path(__file__).parent
LANGUAGE = FOLDER.parents[1] / "docs" / "language"
SCRIPTS = sorted(FOLDER.glob("*.script"))
REWRITE = bool(os.environ.get("GRAPHDB_REWRITE_SCRIPTS"))

# What differs from run to run, or from machine to machine.
BYTES = re.compile(r"; [\d,]+ bytes of buffers per thread")
SQL = re.compile(r"  \(*(SELECT|FROM|WITH)\b")
TIME = re.compile(r" in [\d.,]+ m?s$")


def sections(script: str) -> list[tuple[str, str, str]]:
    """The sections of a script: (comments before the statement, statement, what is expected of it)."""
    found = []
    for section in re.split(r"\n{2,}", script.strip("\n")):
        lines = section.splitlines()
        comments = next((i for i, line in enumerate(lines) if not line.startswith("#")), len(lines))
        statement, _, expected = "\n".join(lines[comments:]).partition("\n----")
        found.append(("\n".join(lines[:comments]), statement, expected.removeprefix("\n")))
    return found


def written(parts: list[tuple[str, str, str]]) -> str:
    """A script from its sections."""
    texts = []
    for comments, statement, output in parts:
        body = [statement, "----", output] if statement and not statement.startswith("graph:") else [statement]
        texts.append("\n".join(part for part in (comments, *body) if part))
    return "\n\n".join(texts) + "\n"


def opened(graph: str) -> graphdb.Database:
    """A database on one thread of the CPU, with the graph that a script names."""
    database = graphdb.connect(device="cpu", threads=1, memory_limit="1GB")
    if graph == "geography":
        database.load(str(GEOGRAPHY))
        database.query("; ".join(f"PREFIX {prefix}: <{iri}>" for prefix, iri in PREFIXES.items()))
    elif graph.endswith(".cypher"):
        database.query((LANGUAGE / graph).read_text(encoding="utf-8"))
    elif graph:
        database.load(str(LANGUAGE / graph))
    return database


def run(database: graphdb.Database, statement: str) -> str:
    """What comes out of a statement."""
    try:
        return "\n".join(_lines(database, statement))
    except graphdb.GraphDBError as error:
        return f"error {type(error).__name__}\n{error}"


def _lines(database: graphdb.Database, statement: str) -> list[str]:
    lines: list[str] = []
    with suppress(graphdb.GraphDBError):  # running it says what is wrong
        if _reads(statement):
            names = {label.id: database.written(label.iri) for label in database.edge_labels()}
            with traced(named(lambda id: names.get(id, "<absent>"))) as trace:
                plan = database.explain(statement)
            lines = [*trace, *_without_sql(plan)]
    result = database.query(statement)
    text = result.text() if result.message is None else TIME.sub("", result.message)
    return [*lines, *(line.rstrip() for line in BYTES.sub("", text).splitlines())]


def _reads(statement: str) -> bool:
    """Whether a statement is a query that only reads."""
    parsed = parse_script(statement)
    return len(parsed) == 1 and (
        isinstance(parsed[0], ast.Query) or (isinstance(parsed[0], ast.Composite) and not parsed[0].writes)
    )


def _without_sql(plan: str) -> list[str]:
    """The lines of EXPLAIN, but for SQL, which names temporary tables, and for bytes."""
    lines = (re.sub(r"^((?:rows|call) \w+): .*", r"\1", line) for line in BYTES.sub("", plan).splitlines())
    return [line for line in lines if not SQL.match(line)]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.chdir(LANGUAGE)
    script = path.read_text(encoding="utf-8")
    parts = sections(script)
    graph = next((text.removeprefix("graph:").strip() for _, text, _ in parts if text.startswith("graph:")), "")
    found = []
    with opened(graph) as database:
        for comments, statement, expected in parts:
            if not statement or statement.startswith("graph:"):
                found.append((comments, statement, ""))
                continue
            output = run(database, statement)
            assert "\n\n" not in output, "an empty line would end the section"
            if not REWRITE:
                assert output == expected, statement
            found.append((comments, statement, output))
    if REWRITE:
        path.write_text(written(found), encoding="utf-8")
    else:
        assert written(found) == script, "a script is written as it would be written anew"


def test_there_are_scripts() -> None:
    assert len(SCRIPTS) >= 15
