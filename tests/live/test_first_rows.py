"""ORDER BY with LIMIT by delta plans: the first rows follow batches, and are asked for anew once too few are left."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import graphdb
from graphdb.live.forms import window
from graphdb.live.rows.whole import WholeAnswers
from tests.fuzz import scaled
from tests.live.test_parallel_edges import explained
from tests.live.writes import Draw, bag, begin, check, check_history, create, opened, statement, strategies

BODIES = (
    ("MATCH (a)-[:R]->(b)", "a.i AS i, b.k AS k", ("b.i", "a.i + coalesce(k, 0)", "a.absent")),
    ("MATCH (a:A)", "a.i AS i, a.k AS k", ("COUNT { (a)-[:R]->() }", "i % 3", "a:B")),
    ("MATCH (a:A) OPTIONAL MATCH (a)-[:S]->(b)", "a.i AS i, b.i AS j", ("b.k", "EXISTS { (a)-[:R]->() }")),
    ("MATCH (a)-[:R]->(b)", "a.i AS i, count(*) AS n, min(b.i) AS m", ("n % 2", "n + i")),
    ("MATCH (a:A)-[:R]-(b)", "DISTINCT b.i AS i, a:B AS l", ()),
    ("MATCH (a)-[:R]->(b) WITH a, count(b) AS n WHERE n > 1", "a.i AS i, n", ("n * 2", "a.k")),
    ("MATCH (a)-[:R]->(b) WITH a.i AS i, sum(b.i) AS n", "i, n", ("-n",)),
    ("MATCH (a)-[:R*1..2]->(b:B)", "a.i AS i, b.i AS j", ()),
    ("CALL { MATCH (a:A) RETURN a UNION ALL MATCH (a)-[:S]->() RETURN a } MATCH (a)-[:R]->(b)", "a.i AS i", ("b.i",)),
)


def query(draw: Draw) -> str:
    """Return a query whose answer is one alone: it is ordered by all of its columns, after others."""
    body, columns, others = BODIES[int(draw.integers(len(BODIES)))]
    names = [column.rpartition(" ")[2] for column in columns.split(", ")]
    keys = [str(draw.choice(others))] if others and draw.random() < 0.5 else []
    keys += draw.permutation(names).tolist()
    order = ", ".join(key + str(draw.choice(["", " DESC", " DESC NULLS LAST"])) for key in keys)
    skip = f" SKIP {draw.integers(3)}" if draw.random() < 0.4 else ""
    return f"{body} RETURN {columns} ORDER BY {order}{skip} LIMIT {draw.choice([0, 1, 2, 3, 5, 9])}"


@settings(
    max_examples=scaled(8),
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 1 << 32), more=st.sampled_from([0, 1, 4]))
def test_answers_follow_every_batch(seed: int, more: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(seed)
    monkeypatch.setattr(window, "MORE", more)

    def begun(db: graphdb.Database) -> dict[str, str]:
        begin(db, draw, 0)
        queries = {f"q{number}": query(draw) for number in range(5)}
        create(db, queries)
        return queries

    with tempfile.TemporaryDirectory() as folder:
        check_history(Path(folder) / "a.duckdb", draw, begun, statement)


def test_rows_are_asked_for_anew_only_where_too_few_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[str]()
    first = WholeAnswers.first
    monkeypatch.setattr(
        WholeAnswers, "first", lambda *of, **how: (asked.append(of[2].definition.name), first(*of, **how))
    )
    monkeypatch.setattr(window, "MORE", 1)
    with opened(None) as db:
        db.query("UNWIND range(0, 29) AS x CREATE (:A {i: x, k: x % 10})-[:R]->(:B)")
        text = "MATCH (a)-[:R]->() RETURN a.i AS i ORDER BY a.k DESC, i LIMIT 2"
        made = str(db.query(f"CREATE CONTINUOUS QUERY q AS {text}"))
        assert made == "continuous query q, maintained by delta plans"
        assert "the first 5 rows are stored, and asked for anew once fewer than 2 of them" in explained(db, "q")
        stored = {"q": bag(db, "FROM q")}
        assert stored["q"] == {"[9.0]": 1, "[19.0]": 1}
        asked.clear()
        changed = []
        for i in (3, 19, 8, 29, 9, 18, 28):  # the first rows: 9, 19, 29, 8, 18
            db.query(f"MATCH (a:A {{i: {i}}}) DETACH DELETE a")
            check(db, {"q": text}, stored)
            changed.append((i, len(asked)))
        assert changed == [(3, 0), (19, 0), (8, 0), (29, 0), (9, 1), (18, 1), (28, 1)]
        db.query("CREATE (:A {i: 50, k: 0})-[:R]->(:B), (:A {i: 51, k: 11})-[:R]->(:B)")
        check(db, {"q": text}, stored)
        assert set(strategies(db)) == {"delta plans"}


def test_first_rows_without_a_table_of_the_answer() -> None:
    with opened(None) as db:
        begin(db, np.random.default_rng(3), 0)
        texts = {
            "q": "MATCH (a)-[:R]->(b) RETURN a.i AS i, b.i AS j ORDER BY j DESC, i LIMIT 3",
            "p": "MATCH (a)-[:R]->(b) RETURN a.i AS i, count(*) AS n ORDER BY n DESC, i SKIP 1 LIMIT 2",
        }
        found = {name: bag(db, f"SELECT * FROM cypher($$ {text} $$)") for name, text in texts.items()}
        for name, text in texts.items():
            db.query(f"CREATE CONTINUOUS QUERY {name} WITH (table = false) AS {text}")
        for i in range(6):
            db.query(f"MATCH (a {{i: {i}}}), (b {{i: {7 - i}}}) MERGE (a)-[:R]->(b)")
            db.query(f"MATCH (a {{i: {i}}}) SET a.i = {i + 9}")
        for name, text in texts.items():
            for change in (1, -1):
                rows = bag(db, f"SELECT * EXCLUDE (batch, change) FROM {name}_changes WHERE change = {change}")
                found[name].update({row: change * number for row, number in rows.items()})
            assert +found[name] == bag(db, f"SELECT * FROM cypher($$ {text} $$)")
        assert strategies(db)["compared"] == 0
