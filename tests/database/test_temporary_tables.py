"""Temporary tables and views of a statement go with it, wherever it is stopped; the next one finds none of them."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

import graphdb
from graphdb.common.errors import GraphDBError, QueryTimeout
from graphdb.relational.paths.base import Waiting
from tests.fuzz import scaled
from tests.stops import interrupted

SPILLING = {
    "paths around a match": "MATCH (a:P)-[:NEXT]->(b), ANY SHORTEST (b)-[:NEXT*1..5]->(c:P) RETURN sum(a.k + c.k)",
    "versions of a path": "MATCH (a:P)-[r:NEXT*1..3]->(b:P) RETURN sum(a.k * b.k), count(r)",
    "bindings": "MATCH (a:P)-[:NEXT]->(b)-[:NEXT]->(c)-[:NEXT]->(d) RETURN sum(a.k * c.k + d.k)",
    "rows": "MATCH (a:P) WITH a ORDER BY a.k LIMIT 30 MATCH (a)-[:NEXT*1..2]->(b) WITH a, count(b) AS n "
    "OPTIONAL MATCH (a)-[:NEXT]->(c) WHERE c.k > n RETURN sum(a.k * n), count(c)",
    "no columns": "MATCH (a:P)-[:NEXT]->(b), (c:P {k: 1})-[:NEXT]->(d) RETURN 1 AS one, count(*) AS n",
    "written rows": "MATCH (a:P) WHERE a.k > 1 WITH a, a.k * 2 AS double SET a.double = double",
}


@pytest.fixture
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(device="cpu", threads=2) as database:
        database.query("UNWIND range(1, 60) AS i CREATE (:P {k: i})")
        database.query("MATCH (a:P), (b:P) WHERE b.k IN [a.k + 1, a.k + 2, a.k + 7] CREATE (a)-[:NEXT]->(b)")
        database._state.budget = replace(database._state.budget, bindings=1 << 13)  # everything spills
        yield database


def left_over(db: graphdb.Database) -> set[str]:
    """Return the temporary tables and views that are there, but for cached properties and the windows of writing."""
    state = db._state
    state.connection.undo_leftovers()
    state.connection.windows.close_unused()  # as SQL of the user's does: those that show something stay
    rows = state.connection.rows("SELECT table_name FROM duckdb_tables() WHERE temporary")
    views = state.connection.rows("SELECT view_name FROM duckdb_views() WHERE temporary AND NOT internal")
    cached = {column.relation for column in state.snapshot().properties._tables.values()}
    found = {name for (name,) in rows + views}
    windows = re.compile(r".*_names|_graphdb_(given_\w+|term|page|wanted)")  # an ArrowViews shows nothing afterwards
    return {name for name in found if f"temp.{name}" not in cached and not windows.fullmatch(name)}


@pytest.mark.parametrize("form", SPILLING)
def test_every_form_leaves_nothing(db: graphdb.Database, form: str) -> None:
    before = db.query(SPILLING[form]).fetchall()
    assert left_over(db) == set()
    assert db.query(SPILLING[form]).fetchall() == before


@pytest.mark.parametrize(
    ("form", "number"), [("paths around a match", 1), ("versions of a path", 1), ("versions of a path", 2)]
)
def test_rows_that_wait_go_where_a_search_ends_early(
    db: graphdb.Database, monkeypatch: pytest.MonkeyPatch, form: str, number: int
) -> None:
    """They are in a table of the same name as the view that the next statement makes: it would exist already."""
    db._state.budget = replace(db._state.budget, bindings=1 << 8)
    add, calls = Waiting.add, []

    def stopped(self: Waiting, table: object) -> None:
        add(self, table)  # type: ignore[arg-type]
        calls.append(self._spilled)
        if sum(calls) == number:
            raise QueryTimeout("the statement ran longer than its timeout")

    with monkeypatch.context() as patched:
        patched.setattr(Waiting, "add", stopped)
        with pytest.raises(QueryTimeout):
            db.query(SPILLING[form])
    assert any(calls), "nothing spilled"
    db._state.budget = replace(db._state.budget, bindings=1 << 28)
    found = db.query(SPILLING[form]).fetchall()
    assert left_over(db) == set()
    with graphdb.connect(device="cpu") as other:
        other.query("UNWIND range(1, 60) AS i CREATE (:P {k: i})")
        other.query("MATCH (a:P), (b:P) WHERE b.k IN [a.k + 1, a.k + 2, a.k + 7] CREATE (a)-[:NEXT]->(b)")
        assert other.query(SPILLING[form]).fetchall() == found


def test_stops_at_random_moments(db: graphdb.Database) -> None:
    chance = random.Random(os.environ.get("GRAPHDB_STOPS_SEED", "11"))
    expected = {form: db.query(text).fetchall() for form, text in SPILLING.items()}
    stopped = 0
    for _ in range(scaled(40)):
        form, how = chance.choice(list(SPILLING)), chance.choice(["timeout", "interrupt", "signal"])
        after = 0.12 * chance.random() ** 2
        try:
            with interrupted(db, how, after):
                db.query(SPILLING[form], timeout=after if how == "timeout" else 60)
        except (GraphDBError, KeyboardInterrupt):
            stopped += 1
        for _ in range(3):  # what was said to an earlier statement is said once
            try:
                assert db.query(SPILLING[form]).fetchall() == expected[form], (form, how, after)
                break
            except KeyboardInterrupt:
                continue
        assert left_over(db) == set(), (form, how, after)
    assert stopped
