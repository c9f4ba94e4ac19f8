"""Edges as structs of Arrow and as Python's values: from columns in memory they are what SQL makes of the same edges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import graphdb
from graphdb.relational import entity_fetch
from graphdb.snapshot.edges import DescribedEdges, Edges

PEOPLE = "UNWIND range(0, 29) AS i CREATE (:P {k: i})"
KNOWS = """
UNWIND range(0, 199) AS i MATCH (a:P {k: i % 30}), (b:P {k: (i * 7 + i / 30) % 29})
CREATE (a)-[:K {since: i, weight: CASE i % 3 WHEN 0 THEN null ELSE i / 4.0 END, on: i % 2 = 0, word: CASE i % 4 WHEN 0 THEN null ELSE 'w' + toString(i) END,
                day: date('2020-01-01') + duration({days: i})}]->(b)
"""  # fmt: skip
TEXTS = [
    "MATCH (a:P)-[r:K]->(b:P) RETURN r, a.k AS k ORDER BY r.since",
    "MATCH (a:P)-[r:K]->(b:P) WHERE r.since % 3 = 0 RETURN r ORDER BY r.since DESC",
    "MATCH (a:P) OPTIONAL MATCH (a)-[r:K]->(b:P) WHERE r.since > 150 RETURN a.k AS k, r ORDER BY k, r.since",
    "MATCH p = (a:P {k: 3})-[:K]->(b)-[:K]->(c) RETURN p ORDER BY [r IN relationships(p) | r.since]",
    "MATCH (a:P)-[r:K]->(b:P) WITH a, collect(r) AS l RETURN l ORDER BY a.k",
]


@pytest.fixture(scope="module")
def database() -> Iterator[graphdb.Database]:
    with graphdb.connect(device="cpu", threads=1) as opened:
        opened.query(PEOPLE)
        opened.query(KNOWS)
        for _ in range(2):  # parallel edges
            opened.query(KNOWS.replace("range(0, 199)", "range(40, 60)"))
        yield opened


@pytest.mark.parametrize("text", TEXTS)
def test_columns_are_what_sql_makes(database: graphdb.Database, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    found: list[DescribedEdges | None] = []
    described_by = Edges.described_by
    monkeypatch.setattr(Edges, "described_by", lambda *given: found.append(described_by(*given)) or found[-1])
    for _ in range(3):  # the dictionary is in memory from the second time on
        mine = database.query(text).to_arrow()
    assert all(found)
    assert len(found) == 3
    monkeypatch.setattr(Edges, "described_by", lambda *_: None)
    by_sql = database.query(text).to_arrow()
    assert mine.schema == by_sql.schema
    assert mine.equals(by_sql)


@pytest.mark.parametrize("text", TEXTS)
def test_python_values_are_what_sql_makes(
    database: graphdb.Database, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(5):  # the properties of a handful are looked up by SQL before all of them are columns
        mine = database.query(text).fetchall()
    with monkeypatch.context() as patched:
        patched.setattr(entity_fetch, "_facts_by_sql", None)
        assert repr(database.query(text).fetchall()) == repr(mine)
    monkeypatch.setattr(Edges, "described_by", lambda *_: None)
    by_sql = database.query(text).fetchall()
    assert repr(by_sql) == repr(mine)
    assert by_sql == mine


def test_columns_of_a_transaction_and_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with graphdb.connect(device="cpu", threads=1) as database:
        database.query(PEOPLE)
        database.query(KNOWS)
        text = "MATCH (a:P)-[r:K]->(b:P) RETURN r, properties(r) AS p ORDER BY id(r)"

        def checked() -> list[tuple[Any, ...]]:
            mine = database.query(text).fetchall()
            assert [(dict(r.properties),) for r, _ in mine] == [(p,) for _, p in mine]
            with monkeypatch.context() as patched:
                patched.setattr(Edges, "described_by", lambda *_: None)
                assert repr(database.query(text).fetchall()) == repr(mine)
            return mine

        before = checked()
        database.sql("BEGIN")
        for change in (
            "MATCH ()-[r:K]->() WHERE r.since < 50 SET r.word = 'x', r.weight = null",
            "MATCH ()-[r:K]->() WHERE r.since > 180 DELETE r",
            "MATCH (a:P {k: 1}), (b:P {k: 2}) CREATE (a)-[:K {since: -1, later: true}]->(b)",
        ):
            database.query(change)
            assert repr(checked()) != repr(before)
        database.sql("ROLLBACK")
        assert repr(checked()) == repr(before)


def test_what_columns_do_not_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values of several types, several of one edge, and parallel edges of which one was removed are for SQL."""
    pytest.importorskip("pyarrow")
    with graphdb.connect(device="cpu", threads=1) as database:
        database.query(PEOPLE)
        database.query(KNOWS)
        database.query(KNOWS)
        text = "MATCH (a:P)-[r:K]->(b:P) RETURN r ORDER BY r.since, id(r)"
        for change in (
            "MATCH ()-[r:K]->() WHERE r.since % 5 = 0 WITH r ORDER BY id(r) LIMIT 7 DELETE r",
            "MATCH ()-[r:K]->() WHERE r.since = 44 SET r.word = 4",
            "MATCH ()-[r:K]->() WHERE r.since = 45 SET r.day = [1, 2]",
        ):
            database.query(change)
            mine = database.query(text).to_arrow()
            with monkeypatch.context() as patched:
                patched.setattr(Edges, "described_by", lambda *_: None)
                assert mine.equals(database.query(text).to_arrow())
