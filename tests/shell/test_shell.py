"""The shell: statements, dot commands, completion, colours, Ctrl-C and Ctrl-D, on pipes and on a terminal."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

import graphdb
from graphdb.common.errors import GraphDBError
from graphdb.shell.commands import DOT_COMMANDS
from graphdb.shell.completion import Names, PatternCompleter
from graphdb.shell.highlighting import KEYWORDS, PatternLexer
from graphdb.shell.repl import Shell

ROOT = Path(__file__).resolve().parents[2]

FAMILY = """\
<http://example.org/ada> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://example.org/Person> .
<http://example.org/bob> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://example.org/Person> .
<http://example.org/ada> <http://example.org/knows> <http://example.org/bob> .
<http://example.org/ada> <http://example.org/name> "Ada" .
<http://example.org/bob> <http://example.org/name> "Bob" .
"""


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A small database in memory."""
    data = tmp_path_factory.mktemp("shell") / "family.nt"
    data.write_text(FAMILY, encoding="utf-8")
    with graphdb.connect() as database:
        database.load(data)
        yield database


def said(database: Any, *entered: str, mode: str = "csv") -> tuple[str, str]:
    """What a shell prints, and complains, when these are entered."""
    output, errors = io.StringIO(), io.StringIO()
    shell = Shell(database, output, errors, mode)
    for each in entered:
        shell.accept(each)
    return output.getvalue(), errors.getvalue()


# --- statements and dot commands -------------------------------------------------------------------------------


def test_every_statement_of_a_line_answers(family: Any) -> None:
    assert said(family, "SELECT 1 AS a; SELECT 2 AS b;") == ("a\n1\nb\n2\n", "")
    assert Shell(family, output := io.StringIO()).run_lines(["SELECT 1 AS a;\n", "quit;\n", "SELECT 2 AS b;\n"]) == 0
    assert "2" not in output.getvalue()


def test_an_error_has_a_caret_and_the_shell_goes_on(family: Any) -> None:
    output, errors = said(family, "MATCH (a RETURN a;", "SELECT 1 AS a;")
    assert "line 1, column 10" in errors
    assert "  MATCH (a RETURN a\n           ^" in errors
    assert output == "a\n1\n"


def test_modes(family: Any) -> None:
    statement = "MATCH (p:Person {name: 'Ada'})-[:knows]->(q) RETURN q.name AS q;"
    assert said(family, ".mode line", statement)[0] == "q = Bob\n"
    assert said(family, ".mode json", statement)[0] == '[{"q": "Bob"}\n]\n'
    assert said(family, ".mode markdown", statement)[0] == "| q |\n|---|\n| Bob |\n"
    assert said(family, ".mode table", statement)[0] == " q\n─────\n Bob\n(1 row)\n"
    assert said(family, ".mode", mode="line")[0] == "line\n"


def test_export(family: Any, tmp_path: Path) -> None:
    file = tmp_path / "a graph.nt"
    assert said(family, f".export {file}")[0] == said(family, f".export '{file}' graphs default union;")[0]
    assert "there is no graph 'x'" in said(family, f".export {file} graphs x")[1]


def test_timer(family: Any) -> None:
    assert "ms)" in said(family, ".timer on", "SELECT 1 AS a;", mode="table")[0]
    assert said(family, ".timer on", "EXPLAIN MATCH (p:Person) RETURN p;", mode="table")[0].lstrip().startswith("match")
    assert "ms" not in said(family, ".timer off", "SELECT 1 AS a;", mode="table")[0]


def test_schema_says_what_there_is(family: Any) -> None:
    output, errors = said(family, ".schema")
    assert errors == ""
    lines = [[cell.strip() for cell in line.split("│")] for line in output.splitlines()]
    assert ["Person", "2", "http://example.org/Person"] in lines
    assert {tuple(line[:3]) for line in lines} >= {("knows", "1", "vertices"), ("name", "2", "string")}
    with graphdb.connect() as empty:
        assert "empty" in said(empty, ".schema")[0]


def test_tables_and_prefixes() -> None:
    with graphdb.connect() as database:
        assert "friends" not in said(database, ".tables")[0].splitlines()
        made = said(database, "CREATE TABLE friends (a INTEGER);", "PREFIX ex: <http://example.org/>;", ".tables;")
        assert "friends" in made[0].splitlines()
        assert "PREFIX ex: <http://example.org/>" in said(database, ".prefixes")[0].splitlines()


def test_comments_may_stand_before_dot_commands(family: Any) -> None:
    output = io.StringIO()
    lines = ["// what is there\n", "-- and how\n", ".mode csv\n", "/* a\n", ".quit\n", "*/ SELECT 1 AS a;\n"]
    assert Shell(family, output, output).run_lines(lines) == 0
    assert output.getvalue() == "a\n1\n"


def test_read_runs_a_file_up_to_its_first_error(family: Any, tmp_path: Path) -> None:
    script = tmp_path / "script.txt"
    script.write_text(".mode csv\nSELECT 1\n  AS a;\nSELECT nonsense;\nSELECT 2 AS b;\n", encoding="utf-8")
    output, errors = said(family, f".read {script};")
    assert output == "a\n1\n"
    assert "nonsense" in errors
    assert errors.endswith(f"\nin the statement that begins in line 4 of {script}\n")
    assert "absent" in said(family, ".read absent")[1]


def test_an_error_of_a_script_says_where_its_statement_begins(family: Any, tmp_path: Path) -> None:
    def where(*lines: str) -> str:
        errors = io.StringIO()
        assert Shell(family, io.StringIO(), errors).run_lines(f"{line}\n" for line in lines) == 1
        return errors.getvalue().partition("in the statement that begins in ")[2]

    assert where("RETURN 1 +;") == ""  # its own lines are the script's
    assert where("RETURN 1;", "", "-- two", "RETURN 2; RETURN", " 3 +;") == "line 4\n"
    assert where("RETURN 1;", "RETURN 2;", ".mdoe csv") == "line 3\n"
    assert where("", "RETURN 'a;") == "line 2\n"
    inner = tmp_path / "inner.txt"
    inner.write_text("RETURN 1;\nRETURN x;\n", encoding="utf-8")
    assert where("RETURN 1;", f".read {inner}") == f"line 2 of {inner}\n"


def test_scripts_are_utf_8_with_or_without_a_byte_order_mark(family: Any, tmp_path: Path) -> None:
    script = tmp_path / "script.txt"
    script.write_bytes("\ufeffRETURN 'é' AS a;\r\n".encode())
    assert said(family, f".read {script}") == ("a\né\n", "")
    script.write_bytes("RETURN 1 AS a;\n-- é\n".encode("latin-1"))
    output, errors = said(family, f".read {script}", "RETURN 2 AS b;")
    assert output == "a\n1\nb\n2\n"
    assert errors.startswith("what is read is not UTF-8 (line 2, column 4)")


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        (".tabels", ".tables"),
        (".mode tabel", "table"),
        (".xyz", ".help"),
        (".tables x", "no argument"),
    ],
)
def test_slips_in_dot_commands(family: Any, command: str, hint: str) -> None:
    output, errors = said(family, command)
    assert output == ""
    assert hint in errors


def test_help_names_every_command(family: Any) -> None:
    output, _ = said(family, ".help")
    assert all(command in output and f"  {meaning}" in output for command, (_, meaning) in DOT_COMMANDS.items())


def test_long_tables_are_cut_for_people_only(family: Any) -> None:
    output = io.StringIO()
    shell = Shell(family, output, interactive=True)
    shell.accept("SELECT * FROM range(1000);")
    assert "(1,000 rows, the first 100 shown, " in output.getvalue()
    assert len(output.getvalue().splitlines()) == 103
    assert len(said(family, "SELECT * FROM range(1000);", mode="table")[0].splitlines()) == 1003


def test_ctrl_c_interrupts_the_statement_only() -> None:
    class Slow:
        """A database whose statements run until they are interrupted."""

        def __init__(self) -> None:
            self.stopped = threading.Event()

        def query(self, statement: str) -> None:
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
            assert self.stopped.wait(20)
            raise GraphDBError("interrupted")

        def interrupt(self) -> None:
            self.stopped.set()

    slow = Slow()
    output, errors = said(slow, "MATCH (a) RETURN a;", ".mode")
    assert slow.stopped.is_set()
    assert errors == "interrupted\n"
    assert output == "csv\n"


# --- completion and colours ------------------------------------------------------------------------------------


def completions(text: str) -> list[str]:
    """What is offered after ``text``."""
    completer = PatternCompleter({name: choices for name, (choices, _) in DOT_COMMANDS.items()})
    completer.names = Names(
        ("Person", "City"),
        ("knows", "lives_in"),
        ("name", "age", "area"),
        {"Person": ("name", "age"), "City": ("name", "area")},
        ("since",),
        ("foaf",),
        {"friends": ("a", "born"), "cities": ("name", "mayor")},
        ("db.labels", "my.own"),
    )
    return [found.text for found in completer.get_completions(Document(text), CompleteEvent(completion_requested=True))]


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("MATCH (p:Pe", ["Person"]),
        ("MATCH (p:", ["Person", "City", "foaf:"]),
        ("MATCH (p:Person|", ["Person", "City", "foaf:"]),
        ("MATCH (p)-[:kn", ["knows"]),
        ("MATCH (p)-[e:", ["knows", "lives_in", "foaf:"]),
        ("MATCH (p)-[e:knows|", ["knows", "lives_in", "foaf:"]),
        ("MATCH (p) WHERE p.na", ["name"]),
        ("MATCH (p) RETURN p.", ["name", "age", "area"]),
        ("MATCH (p:Person) RETURN p.", ["name", "age"]),
        ("MATCH (p:Person)-[:lives_in]->(c:City) RETURN c.", ["name", "area"]),
        ("MATCH (p:Person|City) RETURN p.a", ["age", "area"]),
        ("MATCH (p:Nobody) RETURN p.a", ["age", "area"]),
        ("MATCH (p)-[e:knows]->(q) RETURN e.", ["since"]),
        ("MATCH (p {na", ["name"]),
        ("MATCH (p:City {", ["name", "area"]),
        ("MATCH (:City {a", ["area"]),
        ("MATCH ()-[:knows {", ["since"]),
        ("MATCH (p:Person {name: RETU", ["RETURN"]),
        ("MATCH (p:Person {name: 'x', a", ["age"]),
        ("SELECT * FROM fr", ["friends"]),
        ("SELECT f.b FROM friends f WHERE f.", ["a", "born"]),
        ("SELECT * FROM friends JOIN cities AS c ON c.m", ["mayor"]),
        ("SELECT mayo", ["mayor"]),
        ("SELECT * FROM friends WHERE bor", ["born"]),
        ("SELECT * FROM friends WHERE mayo", []),
        ("CALL ", ["db.labels", "my.own"]),
        ("MATCH (n) call DB.la", ["db.labels"]),
        ("CALL db.labels", []),
        ("MATCH (p) RETU", ["RETURN"]),
        ("match (p) retu", ["return"]),
        (".ta", [".tables"]),
        (".mode c", ["csv"]),
        (".timer o", ["on", "off"]),
        ("", []),
    ],
)
def test_completion(text: str, offered: list[str]) -> None:
    assert completions(text) == offered


def test_completion_reads_names_from_the_database(family: Any) -> None:
    names = Names.read(family)
    assert names.vertex_labels == ("Person",)
    assert "knows" in names.types
    assert "name" in names.keys
    assert not {*names.types} & {*names.keys}
    assert "db.relationshipTypes" in names.procedures
    assert names.columns["triples"][0] == "subject"


def test_completion_knows_which_label_has_which_property() -> None:
    with graphdb.connect(threads=1) as db:
        db.query(
            "CREATE (:Film {title: 'Speed', year: 1994})<-[:ACTED_IN {role: 'Annie'}]-(:Person {name: 'S', born: 1964})"
        )
        names = Names.read(db)
        assert {label: sorted(keys) for label, keys in names.keys_of.items()} == {
            "Film": ["title", "year"],
            "Person": ["born", "name"],
        }
        assert (names.types, names.edge_keys) == (("ACTED_IN",), ("role",))
        db.query("MATCH (p:Person) SET p.alive = true")
        assert "alive" in Names.read(db).keys_of["Person"]


@pytest.mark.parametrize(
    "text",
    [
        "LOAD '",
        "LOAD 'x.csv' AS LABEL X, '",
        "COPY t FROM '",
        "SELECT * FROM read_csv('",
        "COPY (MATCH (n) RETURN n) TO '",
    ],
)
def test_files_are_completed_within_quotes(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "people.csv").write_text("a")
    monkeypatch.chdir(tmp_path)
    assert completions(text + "peo") == ["ple.csv"]
    assert "ple.csv" not in completions(text + "people.csv' AS LABEL peo")
    assert completions("MATCH (n {name: 'peo") == []


@pytest.mark.parametrize("typed", "CALL DETACH YIELD CONTINUOUS MINE OFFSET ROLLBACK".split())
def test_words_of_statements_complete(typed: str) -> None:
    assert typed in completions(typed[:-1])


def test_keywords_of_the_grammar_are_coloured() -> None:
    tokens = {text: str(kind) for kind, text in PatternLexer().get_tokens("match (a:Person)-[:knows]->(b) // x")}
    assert tokens["match"] == "Token.Keyword"
    assert tokens["Person"] == "Token.Name.Class"
    assert tokens["// x"] == "Token.Comment.Single"
    assert "-" in tokens, "an edge is no comment"
    assert not {"MATCH", "RETURN", "INDUCED", "SELECT"} - set(KEYWORDS)


def test_colouring_loses_nothing() -> None:
    text = "SELECT '$$ it''s' -- rest\nMATCH (a <http://x.org/#y>)--(b {c: \"d\\\"e\", f: 1.5e3})"
    text += "\nRETURN `g h`, $p /* i\nj */;\n"
    assert "".join(part for _, part in PatternLexer().get_tokens(text)) == text


# --- the prompt ------------------------------------------------------------------------------------------------


def test_prompt_takes_several_lines_and_leaves_at_ctrl_d(
    family: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    output = io.StringIO()
    with create_pipe_input() as keys:
        keys.send_text("MATCH (p:Person)\rRETURN p.name AS n ORDER BY n;\r.mode csv\rSELECT 3 AS three;\r\x04")
        shell = Shell(family, output, interactive=True)
        assert shell.converse(keys, DummyOutput()) == 0
    assert " n\n─────\n Ada\n Bob\n(2 rows, " in output.getvalue()
    assert "three\n3\n" in output.getvalue()
    history = (tmp_path / "graphdb" / "history").read_text(encoding="utf-8")
    assert "+RETURN p.name AS n ORDER BY n;" in history


def test_on_a_terminal(tmp_path: Path) -> None:
    pexpect = pytest.importorskip("pexpect")
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "XDG_STATE_HOME": str(tmp_path),
        "TERM": "xterm",
        "PROMPT_TOOLKIT_NO_CPR": "1",
    }
    child = pexpect.spawn(
        sys.executable, ["-m", "graphdb"], env=environment, encoding="utf-8", timeout=60, dimensions=(40, 100)
    )
    child.expect("graphdb>")
    child.send("SELECT 6 * 7\rAS answer;\r")
    child.expect(r"42\s")
    child.expect(r"\(1 row, ")
    child.expect("graphdb>")
    child.send("SELECT nonsense;\r")
    child.expect("\x1b\\[31m[^\x1b]*nonsense")
    child.expect("graphdb>")  # before it, Ctrl-C would be a signal
    child.send("SELECT 1\x03")
    child.expect("graphdb>")
    child.send(".quit\r")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0


def test_progress_of_a_load(tmp_path: Path) -> None:
    """A person at a terminal sees how far a LOAD is; a pipe sees nothing."""
    from graphdb.shell.terminal import Status

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for stream, shown in ((Terminal(), True), (io.StringIO(), False)):
        status = Status(stream)
        status._start -= 10
        status.hear(25, 100, 5_000_000, "parsing")
        status.tick()
        assert ("parsing: 25%, 5,000,000 triples" in stream.getvalue()) is shown
        assert ("left" in stream.getvalue()) is shown
    (tmp_path / "a.nt").write_text("<e:a> <e:p> <e:b> .\n")
    calls: list[tuple[float, float, int, str]] = []
    with graphdb.connect(progress=lambda *call: calls.append(call)) as db:
        db.query(f"LOAD '{tmp_path / 'a.nt'}'")
        assert calls[-1][2:] == (1, "done")
        calls.clear()
        db.load(tmp_path / "a.nt", progress=False)
        assert not calls


def test_progress_of_a_query() -> None:
    """A progress callback receives the share of a long match, rising to the whole."""
    calls: list[tuple[float, float, int, str]] = []
    pairs = np.unique(np.random.default_rng(1).integers(0, 600, (20_000, 2)), axis=0).astype(str)
    edges = pa.table({":START_ID": pairs[:, 0], ":END_ID": pairs[:, 1]})
    with graphdb.connect(progress=lambda *call: calls.append(call), threads=1) as db:
        db.load(edges, type="e")
        calls.clear()
        db.query("MATCH (a)-[:e]->(b)-[:e]->(c)-[:e]->(d) WHERE a < d RETURN count(*)")
    assert calls
    assert {call[1:] for call in calls} == {(1.0, 0, "matching")}
    assert all(0 < call[0] <= 1 for call in calls)


def test_bars() -> None:
    """A bar shows phase, share and rate, on terminals and in notebooks; elsewhere there is nothing to call."""
    from rich.console import Console

    from graphdb.common import progress

    with progress.watching(True) as tick:
        assert tick is None, "nobody sees the tests' standard error"
    shown = io.StringIO()
    with progress.bar(0, Console(file=shown, force_terminal=True, width=150)) as tick:
        assert tick is not None
        tick(25 << 20, 100 << 20, 5_000_000, "parsing")
        tick(50 << 20, 100 << 20, 9_000_000, "parsing")
        time.sleep(0.15)
    assert "parsing" in shown.getvalue()
    assert "9,000,000 triples" in shown.getvalue()
    assert "52.4/104.9 MB" in shown.getvalue()
    shown = io.StringIO()
    with progress.bar(60, Console(file=shown, force_terminal=True)) as tick:
        assert tick is not None
        tick(0.5, 1.0, 0, "matching")
    assert not shown.getvalue(), "what is done soon needs no bar"


def test_bars_in_notebooks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell's bar is one output that is replaced, and ends whole or says where it stopped; it is text too."""
    from graphdb.common import progress

    outputs: list[dict[str, str]] = []

    class Handle:
        def update(self, shown: dict[str, str], raw: bool) -> None:
            outputs[-1] = shown

    def show(shown: dict[str, str], raw: bool, display_id: bool) -> Handle:
        outputs.append(shown)
        return Handle()

    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", cast(ModuleType, SimpleNamespace(display=show)))
    monkeypatch.setattr(progress, "_in_notebook", lambda: True)
    monkeypatch.setattr(progress, "_STROKE", 0.0)
    with progress.bar(0) as tick:
        assert tick is not None
        tick(25e6, 100e6, 5_000_000, "parsing")
        assert 'value="0.2500"' in outputs[0]["text/html"]
        assert "parsing, 25%, 25.0/100.0 MB, 5,000,000 triples" in outputs[0]["text/plain"]
        assert outputs[0]["text/plain"].endswith(" left")
        tick(100e6, 100e6, 9_000_000, "a < b")
        assert "a &lt; b" in outputs[0]["text/html"]
    assert len(outputs) == 1
    assert 'value="1.0000"' in outputs[0]["text/html"]
    assert outputs[0]["text/plain"].startswith("done in ")

    def interrupted() -> None:
        with progress.bar(0) as tick:
            assert tick is not None
            tick(0.5, 1.0, 0, "matching")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert 'value="0.5000"' in outputs[1]["text/html"]
    assert outputs[1]["text/plain"].startswith("stopped after ")
    with progress.bar(60) as tick:
        assert tick is not None
        tick(0.5, 1.0, 0, "matching")
    assert len(outputs) == 2, "what is done soon needs no bar"


def test_results_in_notebooks() -> None:
    """A result is a table of HTML, escaped, numbers to the right; what has no rows is text."""
    with graphdb.connect() as db:
        shown = db.query("UNWIND range(1, 12) AS n RETURN n AS `<n>`, '<b>' AS t, null AS x")._repr_html_()
        assert shown is not None
        assert '<th style="text-align: right">&lt;n&gt;</th><th style="text-align: left">t</th>' in shown
        assert '<td style="text-align: left">&lt;b&gt;</td><td style="text-align: left"><em>null</em></td>' in shown
        assert shown.count("<tr>") == 11
        assert shown.endswith("<p>12 rows, the first 10 shown</p>")
        mixed = db.query("UNWIND [1, 'x', {a: 1}] AS v RETURN v")
        assert "<td" in (mixed._repr_html_() or "")
        assert db.query("CREATE TABLE t AS MATCH (a) RETURN a")._repr_html_() is None
        assert db.query("EXPLAIN MATCH (a) RETURN a")._repr_html_() is None
        assert "<td" in (db.sql("SELECT 'x' AS y")._repr_html_() or "")
        assert 'right">0</td>' in (db.query("MATCH (a) RETURN count(*)")._repr_html_() or "")
