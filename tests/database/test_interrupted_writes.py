"""Ctrl-C at any call of DuckDB's that a statement makes leaves all of what it writes, or nothing, and blocks nothing."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import graphdb
from tests.fuzz import FUZZ
from tests.interrupted import Interrupting

STEP = 1 if FUZZ >= 1 else 7
"""Every so many calls are interrupted, from the last one on."""

WRITES = {
    "unwind": "UNWIND range(10, 20) AS i CREATE (:P {k: i, f: i / 2.0})-[:S]->(:Q {k: i + 100})",
    "merge": "UNWIND range(1, 9) AS i MERGE (p:P {k: i}) ON CREATE SET p.t = 'new' ON MATCH SET p.t = 'old'",
    "merge edges": "MATCH (a:P), (b:P) WHERE a.k < 3 AND b.k > 2 MERGE (a)-[r:T]->(b) ON CREATE SET r.w = 1 RETURN r",
    "set": "MATCH (p:P)-[r:R]->() SET p.k = p.k + 50, p.n = 'x', p:L, r.w = 7",
    "delete": "MATCH (p:P) WHERE p.k > 2 DETACH DELETE p",
    "load": "LOAD '{}'",
    "continuous query": "CREATE CONTINUOUS QUERY new AS MATCH (a:P)-[:R]->(b) RETURN a.k, count(*) AS n",
    "dropped query": "DROP CONTINUOUS QUERY found",
}


def opened() -> graphdb.Database:
    db = graphdb.connect(device="cpu", threads=1)
    db.query("UNWIND range(1, 4) AS i CREATE (:P {k: i, t: 'x' + i})")
    db.query("MATCH (a:P), (b:P) WHERE b.k = a.k + 1 CREATE (a)-[:R {w: a.k}]->(b)")
    db.query("CREATE CONTINUOUS QUERY found AS MATCH (a:P)-[:R]->(b) RETURN a.k, b.k")
    return db


def state(db: graphdb.Database) -> list[Any]:
    """What there is, and that continuous queries have the answers that they are to have."""
    queries = {name for name, *_ in db.query("SHOW CONTINUOUS QUERIES").fetchall()}
    for name, text in {
        "found": "MATCH (a:P)-[:R]->(b) RETURN a.k, b.k",
        "new": "MATCH (a:P)-[:R]->(b) RETURN a.k, count(*) AS n",
    }.items():
        if name in queries:
            assert sorted(db.sql(f"FROM {name}").fetchall()) == sorted(db.query(text).fetchall())
    texts = (
        "MATCH (n) RETURN labels(n), properties(n)",
        "MATCH (a)-[r]->(b) RETURN properties(a), type(r), properties(r), properties(b)",
    )
    tables = db.sql("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main' AND NOT temporary").fetchall()
    return [queries, sorted(tables), *(Counter(map(repr, db.query(text).fetchall())) for text in texts)]


@pytest.mark.parametrize("form", WRITES)
def test_all_or_nothing_is_written_whenever_ctrl_c_comes(tmp_path: Path, form: str) -> None:
    (tmp_path / "data.nt").write_text(
        "".join(f'<u:{i}> <u:p> "{i}" .\n<u:{i}> <u:q> <u:{i + 1}> .\n' for i in range(9))
    )
    text = WRITES[form].replace("{}", str(tmp_path / "data.nt"))
    with opened() as db:
        before, raw = state(db), Interrupting(db)
        db.query(text)
        calls, after = raw.calls, state(db)
    assert before != after
    assert calls > 1
    db = opened()
    raw = Interrupting(db)
    for late, at in product((False, True), range(calls - 1, -1, -STEP)):
        raw.run(lambda: db.query(text), at, late)  # noqa: B023
        found = state(db)
        assert found in (before, after), (at, late)
        if found == after:
            db.close()
            db = opened()
            raw = Interrupting(db)
    db.close()


def test_ctrl_c_while_tables_are_dropped_blocks_nothing() -> None:
    """What undoes its own leftovers takes itself away; what is undone after it was taken for undone, too."""
    text = "MATCH (a:P), (b:P) WHERE a.k < 3 AND b.k > 4 MERGE (a)-[r:T]->(b) ON CREATE SET r.w = 1 RETURN count(*)"
    with graphdb.connect(device="cpu", threads=1) as db:
        db.query("UNWIND range(1, 6) AS i CREATE (:P {k: i})")
        at, came, raw = 10, True, Interrupting(db)
        while came:
            came = raw.run(lambda: db.query(text), at, after=False)
            assert db.query("MATCH ()-[r:T]->() RETURN count(*)").scalar() in (0, 4)
            at += 1
        assert at > 12
