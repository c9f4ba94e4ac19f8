"""EXPLAIN and PROFILE of continuous queries, and the shell that follows them."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from graphdb.common.errors import BindError
from graphdb.shell.repl import Shell
from tests.live.test_statements import know
from tests.live.writes import opened

CIRCLE = "MATCH (a:Person)-[:KNOWS]->(b)-[:KNOWS]->(c)-[:KNOWS]->(a) RETURN a.name AS a, c.name AS c"


def test_delta_plans_are_printed() -> None:
    with opened(None) as db:
        know(db, "Ada", "Bob")
        planned = [line for (line,) in db.query(f"EXPLAIN CREATE CONTINUOUS QUERY q AS {CIRCLE}").fetchall()]
        assert planned[0] == f"continuous query q: {CIRCLE}"
        assert planned[1].startswith("maintained by delta plans")
        plans = [line for line in planned if line.startswith("  delta plan ")]
        assert plans[0].startswith("  delta plan 1: (a)-[:KNOWS]->(b) changed, then c by (")
        assert db.query("SHOW CONTINUOUS QUERIES").fetchall() == []
        db.query(f"CREATE CONTINUOUS QUERY q AS {CIRCLE}")
        assert [line for (line,) in db.query("EXPLAIN CONTINUOUS QUERY q").fetchall()] == planned
        with pytest.raises(BindError, match="no continuous query 'p'"):
            db.query("EXPLAIN CONTINUOUS QUERY p")


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("MATCH INDUCED (a), (b) RETURN count(*) AS n", "its pattern has a vertex without edges"),
        ("MATCH (a)-->(b) RETURN DISTINCT *", "its columns are those of the pattern"),
        ("MATCH (a)-->(b) RETURN a.i AS i, collect(b) + a.i AS l", "of other types than SQL has"),
        ("MATCH (a)-->(b) RETURN a LIMIT 2", "SKIP and LIMIT choose among all rows"),
        (
            "MATCH (a)-->(b) WITH a, collect(b) AS l MATCH (a)-->(c) RETURN c, l",
            "may differ with the order of its rows",
        ),
        (
            "MATCH (a)-->(b) WITH b.i AS i, count(*) AS n RETURN n, count(*) AS m",
            "by none of the vertices of a pattern",
        ),
        ("MATCH (a)-->(b), (:C) RETURN a.name AS n", "its pattern has a vertex without edges"),
        ("MATCH (a)-->(b) WHERE COUNT { ()-->() } > 1 RETURN a, b", "has a pattern that its row says nothing of"),
    ],
)
def test_why_answers_are_compared(query: str, why: str) -> None:
    with opened(None) as db:
        know(db, "Ada", "Bob")
        lines = [line for (line,) in db.query(f"EXPLAIN CREATE CONTINUOUS QUERY q AS {query}").fetchall()]
        assert lines[1].startswith("maintained by comparing its answers after and before each batch, because ")
        assert why in lines[1]


def test_profile_has_a_line_for_each_batch() -> None:
    with opened(None) as db:
        know(db, "Ada", "Bob")
        db.query(f"CREATE CONTINUOUS QUERY q AS {CIRCLE}")
        assert db.query("PROFILE CONTINUOUS QUERY q").fetchall()[-1] == ("no batch since the database was opened",)
        know(db, "Bob", "Cy")
        know(db, "Cy", "Ada")
        db.query("MATCH (a {name: 'Ada'}) SET a.name = 'A'")
        lines = [line for (line,) in db.query("PROFILE CONTINUOUS QUERY q").fetchall()]
        assert any(line.startswith("  batch 1: ") and "3 rows added" in line for line in lines)
        assert any("2 rows added, 2 removed" in line and "delta plans" in line for line in lines)


def test_the_shell_follows_a_query() -> None:
    with opened(None) as db:
        output, errors = io.StringIO(), io.StringIO()
        shell = Shell(db, output, errors, mode="csv")
        assert shell.run_lines(["CREATE CONTINUOUS QUERY q AS MATCH (a)-[:KNOWS]->(b) RETURN b.name AS name;\n"]) == 0
        know(db, "Ada", "Bob")
        know(db, "Bob", "Cy")
        assert shell.run_lines([".watch q\n"]) == 0
        printed = output.getvalue().replace("\r", "")
        assert "batch 1:\n,name\n+,Bob\n" in printed
        assert "batch 2:\n,name\n+,Cy\n" in printed
        assert shell.run_lines([".watch p\n"]) == 1
        assert "no continuous query 'p'" in errors.getvalue()
        assert shell.run_lines([".watch\n"]) == 1


def test_an_explanation_within_a_transaction_changes_nothing(tmp_path: Path) -> None:
    with opened(tmp_path / "a.duckdb") as db:
        know(db, "Ada", "Bob")
        db.query("CREATE CONTINUOUS QUERY q AS MATCH (a)-[:KNOWS]->(b) RETURN b.name AS name")
    with opened(tmp_path / "a.duckdb") as db:
        db.query("BEGIN")
        know(db, "Bob", "Cy")
        db.query("EXPLAIN CONTINUOUS QUERY q")
        db.query("COMMIT")
        assert sorted(db.sql("FROM q").fetchall()) == [("Bob",), ("Cy",)]
