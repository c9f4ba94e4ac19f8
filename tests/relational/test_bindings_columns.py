"""What is gathered for bindings and for results without SQL: labels as columns, and the first property that is there."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest

import graphdb
from graphdb.snapshot.columns import ValueColumn


@pytest.fixture(scope="module")
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(device="cpu", threads=1) as database:
        database.query(
            "CREATE (a:A {id: 1, x: 'x1', n: 1})-[:K {w: 5}]->(b:A:B {id: 2, y: 'y2', m: 2}), (b)-[:K]->(c:B {id: 3, z: 3.5, n: 7}), "
            "(d:C {id: 4, x: 'x4', y: 'y4'})"
        )
        yield database


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("MATCH (v) RETURN v.id AS id, v:A AS a ORDER BY id", [(1, True), (2, True), (3, False), (4, False)]),
        ("MATCH (v) WITH v.id AS id, v:A:B AS both, v:A|C AS either RETURN * ORDER BY id",
         [(False, True, 1), (True, True, 2), (False, False, 3), (False, True, 4)]),
        ("MATCH (v) RETURN v:B AS b, count(*) AS n ORDER BY n, b", [(False, 2), (True, 2)]),
        ("MATCH (v) WHERE v.id < 9 OR v:B RETURN count(*), count(CASE WHEN NOT v:C THEN 1 END)", [(4, 3)]),
        ("MATCH (v:A) OPTIONAL MATCH (v)-[:K]->(w:B {id: 3}) RETURN v.id AS id, w:B AS b ORDER BY id", [(1, None), (2, True)]),
        ("MATCH (v) WITH count(*) AS n MATCH (w) WITH n, w:A AS a, w:B AS b RETURN n, a, b, count(*) AS m ORDER BY a, b",
         [(4, False, False, 1), (4, False, True, 1), (4, True, False, 1), (4, True, True, 1)]),
        ("MATCH (v)-[:K]->(w) RETURN v:B AS b, w:B AS c ORDER BY b", [(False, True), (True, True)]),
        ("MATCH (v {id: 1}) RETURN coalesce(v.x, v.y)", [("x1",)]),
        ("MATCH (v {id: 2}) RETURN v.m, coalesce(v.x, v.y), coalesce(v.n, v.m)", [(2, "y2", 2)]),
        ("MATCH (v:B) RETURN coalesce(v.y, v.x) AS t", [("y2",), (None,)]),
        ("MATCH (v:C) RETURN coalesce(v.n, v.m), coalesce(v.y, v.x)", [(None, "y4")]),
        ("MATCH (v {id: 3}) RETURN coalesce(v.x, v.z, v.n)", [(3.5,)]),
        ("MATCH (v {id: 3}) RETURN coalesce(v.x, 'none'), coalesce(v.n)", [("none", 7)]),
        ("MATCH (v {id: 1})-[e:K]->(w) RETURN coalesce(e.w, v.n), coalesce(e.w, e.w)", [(5, 5)]),
        ("MATCH (v {id: 2})-[e:K]->(w) RETURN coalesce(e.w, w.n, v.m), coalesce(w, v).id", [(7, 3)]),
    ],
)  # fmt: skip
def test_rows(db: graphdb.Database, query: str, rows: list[tuple[Any, ...]]) -> None:
    found = db.query(query).fetchall()
    assert (found if "ORDER BY" in query else sorted(found, key=str)) == (
        rows if "ORDER BY" in query else sorted(rows, key=str)
    )


def test_labels_are_columns_of_the_bindings(db: graphdb.Database) -> None:
    plan = db.explain("MATCH (v) WITH v.id AS id, v:A AS a WHERE id > 1 RETURN a, count(*)")
    assert "whether v0 is A" in plan
    assert "_graphdb.triple" not in plan


def test_changes_of_labels_are_seen() -> None:
    with graphdb.connect(device="cpu", threads=1) as database:
        database.query("UNWIND range(1, 20) AS i CREATE (:A {id: i})")
        query = "MATCH (v) RETURN v:B AS b, count(*) AS n ORDER BY b"
        assert database.query("MATCH (v) RETURN v:A AS b, count(*) AS n").fetchall() == [(True, 20)]
        database.query("MATCH (v:A) WHERE v.id <= 5 SET v:B")
        assert database.query(query).fetchall() == [(False, 15), (True, 5)]
        database.query("MATCH (v:B {id: 3}) REMOVE v:B")
        database.query("CREATE (:B {id: 30})")
        assert database.query(query).fetchall() == [(False, 16), (True, 5)]


def test_properties_that_no_statement_reads_are_not_gathered_for_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[int] = []
    with graphdb.connect(device="cpu", threads=1) as db:
        names, ends = [f"name {i}" for i in range(900)], [i // 90 for i in range(900)]
        vertices = {":ID": range(900), "name": names, "w": range(900), ":LABEL": ["P"] * 900}
        db.load([pa.table(vertices), pa.table({":START_ID": range(900), ":END_ID": ends, ":TYPE": ["K"] * 900})])
        query = "MATCH (a:P)-[:K]->(b:P) RETURN b.name AS name, max(a.w) AS w ORDER BY w DESC LIMIT 2"
        assert db.query(query).fetchall() == [("name 9", 899), ("name 8", 809)]
        gather = ValueColumn.gather

        def counted(own: ValueColumn, ids: Any) -> Any:
            texts.append(len(ids) if own.longest else 0)
            return gather(own, ids)

        monkeypatch.setattr(ValueColumn, "gather", counted)
        assert db.query(query).fetchall() == [("name 9", 899), ("name 8", 809)]
    assert sum(texts) < 90


def test_what_conditions_of_optional_matches_ask_for_is_read_once() -> None:
    """A number that some lack, a point in time with an offset, a label and a property of an edge, against Python."""
    draw, zone = random.Random(5), timezone(timedelta(hours=2))
    numbers = [draw.choice([None, *range(9)]) for _ in range(40)]
    times = [datetime(2020, 1, 1 + draw.randrange(20), tzinfo=zone) for _ in range(40)]
    edges = sorted({(draw.randrange(40), draw.randrange(40)) for _ in range(160)})
    with graphdb.connect(device="cpu", threads=1) as database:
        rows = [{"i": i, "k": k, "t": t} for i, (k, t) in enumerate(zip(numbers, times, strict=True))]
        database.query("UNWIND $rows AS r CREATE (:A {i: r.i, k: r.k, t: r.t})", rows=rows)
        database.query("MATCH (v:A) WHERE v.i % 3 = 0 SET v:B")
        text = "UNWIND $rows AS r MATCH (a:A {i: r[0]}), (b:A {i: r[1]}) CREATE (a)-[:K {w: r[0] + r[1]}]->(b)"
        database.query(text, rows=[list(pair) for pair in edges])
        text = (
            "MATCH (a:A) OPTIONAL MATCH (a)-[e:K]->(b) WHERE b.k > a.k AND b.t >= a.t AND e.w % 5 <> a.i % 5 "
            "AND (NOT b:B OR a.i < 7) WITH a, count(CASE WHEN b.k < 6 THEN b END) AS n, min(b.t) AS t, sum(e.w) AS w, "
            "count(CASE WHEN b:B THEN 1 END) AS l RETURN a.i, n, t, w, l ORDER BY a.i"
        )
        wanted: list[tuple[Any, ...]] = []
        for i, (k, t) in enumerate(zip(numbers, times, strict=True)):
            found = [b for a, b in edges if a == i and k is not None and (numbers[b] or -1) > k and times[b] >= t]
            found = [b for b in found if (i + b) % 5 != i % 5 and (b % 3 or i < 7)]
            least = min((times[b] for b in found), default=None)
            small, of_b = sum((numbers[b] or 0) < 6 for b in found), sum(b % 3 == 0 for b in found)
            wanted.append((i, small, least, sum(i + b for b in found), of_b))
        assert sum(w > 0 for *_, w, _ in wanted) > 10
        assert database.query(text).fetchall() == wanted
        (statement,) = [line for line in database.explain(text).splitlines() if "LEFT JOIN (SELECT" in line]
        assert statement.count(" JOIN ") == 3, "rows with the match, all rows with these, what the result is ordered by"
