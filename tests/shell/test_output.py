"""Where the shell's answers go and how they look: modes, files, numbers of rows, parameters, loads."""

from __future__ import annotations

import csv
import io
import itertools
import json
import pathlib
from collections.abc import Iterator

import pytest

import graphdb
from graphdb.common import render
from graphdb.shell.repl import Shell


@pytest.fixture
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(threads=1) as database:
        database.query("UNWIND range(1, 300) AS n CREATE (:N {n: n, text: 'a_' + n + '\\t&'})")
        yield database


def told(db: graphdb.Database, *lines: str, interactive: bool = False) -> tuple[str, str]:
    """What a shell prints, and what it complains of."""
    output, errors = io.StringIO(), io.StringIO()
    shell = Shell(db, output=output, errors=errors, interactive=interactive)
    shell.timer = False
    for line in lines:
        shell.accept(line)
    return output.getvalue(), errors.getvalue()


QUERY = "MATCH (a:N) WHERE a.n < 3 RETURN a.n AS n, a.text AS text ORDER BY n;"


def test_boxes(db: graphdb.Database) -> None:
    output, _ = told(db, ".mode box", "RETURN 1 AS n, 'x' AS name;")
    assert output.splitlines() == [
        "┌───┬──────┐",
        "│ n │ name │",
        "├───┼──────┤",
        "│ 1 │ x    │",
        "└───┴──────┘",
        "(1 row)",
    ]
    narrow = list(render.box(["a", "b"], [["x" * 100, "y" * 100]], 50))
    (width,) = {len(line) for line in narrow}
    assert 45 <= width <= 50


def test_tables_wider_than_the_terminal_leave_out_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    for width, count in itertools.product(range(1, 150, 7), (1, 2, 3, 6, 7, 12, 300)):
        names = [f"a long name {i}" for i in range(count)]
        for draw, header in (render.table, 0), (render.box, 1):
            lines = list(draw(names, [range(count), ["a longer value"] * count], width))
            cells = [cell.strip() for cell in lines[header].strip("│").split("│")]
            left_out = [int(cell.split()[1]) for cell in cells if cell.endswith(" more")]
            assert sum(cell.startswith("a long na") for cell in cells) + sum(left_out) == count
            assert len(left_out) <= 1
            assert max(map(len, lines)) <= max(width, 27)  # two columns that are as narrow as they can be
    monkeypatch.setenv("COLUMNS", "40")
    with graphdb.connect(threads=1) as db:
        query = "RETURN " + ", ".join(f"{i} AS column_{i}" for i in range(20)) + ";"
        cut, whole = told(db, query, interactive=True)[0], told(db, query)[0]
    assert "… 18 more" in cut
    assert "column_7" in whole


def test_tabs_and_lines_of_json_are_read_back(db: graphdb.Database) -> None:
    rows = [[1, "a_1\t&"], [2, "a_2\t&"]]
    output, _ = told(db, ".mode tsv", QUERY)
    assert list(csv.reader(io.StringIO(output), delimiter="\t")) == [
        ["n", "text"],
        ["1", rows[0][1]],
        ["2", rows[1][1]],
    ]
    output, _ = told(db, ".mode jsonl", QUERY)
    assert [list(json.loads(line).values()) for line in output.splitlines()] == rows


def test_latex_and_html(db: graphdb.Database) -> None:
    output, _ = told(db, ".mode latex", "RETURN 1 AS a_b, '50% ~ {x} \\\\ ^' AS t;")
    assert output.splitlines() == [
        r"\begin{tabular}{rl}",
        r"a\_b & t \\ \hline",
        r"1 & 50\% \textasciitilde{} \{x\} \textbackslash{} \textasciicircum{} \\",
        r"\end{tabular}",
    ]
    output, _ = told(db, ".mode html", "RETURN '<b>' AS t;")
    assert "<td" in output
    assert "&lt;b&gt;" in output


@pytest.mark.parametrize("mode", list(render.MODES))
def test_every_mode_takes_no_rows_and_every_value(db: graphdb.Database, mode: str) -> None:
    db.query("MATCH (a:N {n: 1}), (b:N {n: 2}) CREATE (a)-[:R {w: 1}]->(b)")
    output, errors = told(
        db,
        f".mode {mode}",
        "MATCH (a:None) RETURN a AS a;",
        "MATCH p = (a)-[e:R]->(b) RETURN p, a, e, [a, null] AS l, {x: date()} AS m, 1.5 AS f;",
    )
    assert not errors.replace("warning: unknown label 'None'", "").strip().startswith("internal")
    assert output


def test_answers_go_to_files(db: graphdb.Database, tmp_path: pathlib.Path) -> None:
    one, many = tmp_path / "one.csv", tmp_path / "many.csv"
    output, errors = told(
        db,
        ".mode csv",
        f".once {one}",
        "RETURN 1 AS x;",
        "RETURN 2 AS x;",
        f".output '{many}'",
        "RETURN 3 AS x;",
        "RETURN 4 AS x;",
        ".output",
        "RETURN 5 AS x;",
        f".output {tmp_path / 'no' / 'folder'}",
        "RETURN 6 AS x;",
        ".once",
    )
    assert output == "x\n2\nx\n5\nx\n6\n"
    assert (one.read_text(), many.read_text()) == ("x\n1\n", "x\n3\nx\n4\n")
    assert "No such file" in errors
    assert ".once needs a file" in errors


@pytest.mark.skipif(not pathlib.Path("/dev/full").exists(), reason="no file that is full")
def test_a_full_disk_ends_the_redirection_only(db: graphdb.Database) -> None:
    """Whether it is seen when a file's buffer is written, when the file is closed, or when the shell ends."""
    full = "/dev/full: No space left on device\n"
    many = "MATCH (a:N), (b:N) RETURN a.text, b.text;"
    rows = ["RETURN 1 AS x;", ".once /dev/full", "RETURN 2 AS x;", "RETURN 3 AS x;"]
    assert told(db, ".mode csv", ".output /dev/full", many, *rows) == ("x\n1\nx\n3\n", full * 2)
    assert told(db, ".output /dev/full", rows[0], "RETURN nothing;", ".output")[1].endswith(full)
    output, errors = io.StringIO(), io.StringIO()
    shell = Shell(db, output=output, errors=errors, mode="csv")
    assert shell.run_lines([".output /dev/full\n", "RETURN 1 AS x;\n"]) == 1
    assert (output.getvalue(), errors.getvalue().splitlines()[0] + "\n") == ("", full)


def test_what_gives_no_rows_is_done_and_plans_are_laid_out(db: graphdb.Database) -> None:
    made = told(
        db, "CREATE TABLE made (a INT);", "INSERT INTO made VALUES (1);", "SET threads = 1;", "DROP TABLE made;"
    )
    assert made == ("done\n Count\n───────\n     1\n(1 row)\ndone\ndone\n", "")
    output, _ = told(
        db, "EXPLAIN SELECT 1 + range FROM range(3);", "RETURN 1 AS plan;", 'SELECT 1 "Success" WHERE 0 = 1;'
    )
    plan, _, rows = output.partition(" plan\n")
    assert plan.startswith("╭─")
    assert "\\n" not in plan
    assert len({len(line) for line in plan.splitlines()}) == 1
    assert rows == "──────\n    1\n(1 row)\n Success\n─────────\n(0 rows)\n"


def test_a_files_suffix_is_its_mode(db: graphdb.Database, tmp_path: pathlib.Path) -> None:
    table, page = tmp_path / "a.csv", tmp_path / "b.MD"
    output, errors = told(
        db, ".timer on", f".once {table}", "RETURN 1 AS x;", f".output {page}", "RETURN 2 AS x;", ".output", ".mode"
    )
    assert (table.read_text(), page.read_text()) == ("x\n1\n", "| x |\n|---|\n| 2 |\n")
    assert (output, errors) == ("table\n", "")


def test_plans_by_a_dot_command(db: graphdb.Database) -> None:
    output, errors = told(db, ".explain MATCH (a:N) RETURN count(*);", ".explain", ".explain MATCH (a RETURN a")
    assert output.startswith("match on cpu")
    assert ".explain needs a query" in errors
    assert "is a ) missing?" in errors


def test_as_many_rows_as_asked_for(db: graphdb.Database) -> None:
    output, errors = told(db, ".maxrows 7", "MATCH (a:N) RETURN a.n;", ".maxrows", ".maxrows all", interactive=True)
    assert "(300 rows, the first 7 shown)" in output
    assert len(output.splitlines()) == 2 + 7 + 1 + 1
    assert output.splitlines()[-1] == "7"
    assert ".maxrows needs a number, found all" in errors


def test_parameters(db: graphdb.Database) -> None:
    output, errors = told(
        db,
        ".mode csv",
        ".param least 290 + 8",
        ".param $most $least + 1",
        ".param",
        "MATCH (a:N) WHERE a.n > $least RETURN count(*) AS n;",
        "SELECT $most AS m;",
        "RETURN $other;",
        ".param wrong 1 +",
        ".param clear",
        ".param who 'Eve'",
        ".param",
    )
    assert output == "$least: 298\n$most: 299\nn\n2\nm\n299\n$who: Eve\n"
    assert "parameter $other has no value" in errors
    assert "ends too early: expected CASE or an expression (line 1, column 4)" in errors


def test_imports(db: graphdb.Database, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "it's.csv"
    file.write_text("id:ID,name\n1,Ada\n2,Mary\n")
    output, errors = told(db, f".import {file} AS LABEL Person", ".mode csv", "MATCH (p:Person) RETURN count(*) AS n;")
    assert errors == ""
    assert output.endswith("n\n2\n")


def test_answers_are_drawn(db: graphdb.Database, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    page = tmp_path / "picture.html"
    pair = "MATCH (a:N {n: 1}), (b:N {n: 2}) RETURN a, b;"
    output, errors = told(db, ".view", pair, f".view {page}", ".view", "RETURN 1 AS x;", ".view")
    assert "there is no answer to draw yet" in errors
    assert "the result has no vertices, edges or paths" in errors
    assert f"2 vertices, 0 edges in {page}" in output
    drawn = pathlib.Path(opened[0].removeprefix("file://"))
    assert drawn.read_bytes() == page.read_bytes()
    drawn.unlink()


def test_safe_mode_writes_no_file(tmp_path: pathlib.Path) -> None:
    with graphdb.connect(threads=1, untrusted=True) as db:
        for command in (".output", ".once", ".read", ".import", ".view"):
            _, errors = told(db, f"{command} {tmp_path / 'x.csv'}")
            assert "safe mode" in errors or "untrusted" in errors
    assert not list(tmp_path.iterdir())
