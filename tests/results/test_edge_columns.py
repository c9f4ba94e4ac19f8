"""Elements as structs of Arrow and as Python's values: from columns in memory they are what SQL makes of the same ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import graphdb
from graphdb.relational.elements import fetch, structs
from graphdb.snapshot.edge_values import DescribedEdges
from graphdb.snapshot.edges import Edges

PEOPLE = "UNWIND range(0, 29) AS i CREATE (:P {k: i})"
KNOWS = """
UNWIND range(0, 199) AS i MATCH (a:P {k: i % 30}), (b:P {k: (i * 7 + i / 30) % 29})
CREATE (a)-[:K {since: i, weight: CASE i % 3 WHEN 0 THEN null ELSE i / 4.0 END, on: i % 2 = 0, word: CASE i % 4 WHEN 0 THEN null ELSE 'w' + toString(i) END,
                day: date('2020-01-01') + duration({days: i}), clock: localtime({hour: i % 24}),
                moment: datetime({year: 2020, hour: 3, minute: i % 60, timezone: CASE i % 5 WHEN 0 THEN '+02:00' ELSE 'Z' END}),
                tags: CASE i % 7 WHEN 0 THEN [] ELSE ['t', 'u' + i] END}]->(b)
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
    monkeypatch.setattr(
        Edges, "described_by", lambda *given, **more: found.append(described_by(*given, **more)) or found[-1]
    )
    for _ in range(3):  # the dictionary is in memory from the second time on
        mine = database.query(text).to_arrow()
    assert all(found)
    assert len(found) == 3
    monkeypatch.setattr(Edges, "described_by", lambda *_, **__: None)
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
        patched.setattr(fetch, "_facts_by_sql", None)
        assert repr(database.query(text).fetchall()) == repr(mine)
    monkeypatch.setattr(Edges, "described_by", lambda *_, **__: None)
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
                patched.setattr(Edges, "described_by", lambda *_, **__: None)
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
                patched.setattr(Edges, "described_by", lambda *_, **__: None)
                assert mine.equals(database.query(text).to_arrow())


def test_vertices_from_columns_are_what_sql_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    with graphdb.connect(device="cpu", threads=1) as database:
        database.query(
            "UNWIND range(0, 99) AS i CREATE (:P {k: i, name: CASE i % 3 WHEN 0 THEN null ELSE 'n' + i END, w: i / 4.0, "
            "day: date('2020-01-01'), at: localdatetime('2020-01-01T10:00'), ok: i % 2 = 0, clock: localtime('10:00'), "
            "moment: CASE i % 3 WHEN 1 THEN datetime('2020-01-01T10:00:00+02:00') END, "
            "tags: CASE WHEN i % 4 = 0 THEN [] ELSE ['a', 'b' + i] END})"
        )
        database.query("MATCH (p:P) WHERE p.k % 5 = 0 SET p:Q:A")
        database.query("CREATE (:Z {z: 1})-[:K]->({u: 2}), (:P)")
        texts = [
            "MATCH (p) RETURN p ORDER BY id(p)",
            "MATCH (p:Z) RETURN p",
            "MATCH (p:P) WHERE p.k % 3 = 0 RETURN p ORDER BY p.k",
            "MATCH (p:P) OPTIONAL MATCH (p)-[:K]->(q) RETURN q, p ORDER BY id(p)",
            "MATCH p = (a)-[:K]->(b) RETURN p",
            "MATCH (p) WITH p ORDER BY id(p) RETURN collect(p) AS l",
        ]

        def checked() -> None:
            gathered = structs._vertices_in_memory
            found = []
            for text in texts:
                with monkeypatch.context() as patched:
                    patched.setattr(
                        structs,
                        "_vertices_in_memory",
                        lambda *given: found.append(gathered(*given)) or found[-1],
                    )
                    mine = database.query(text).to_arrow()
                    patched.setattr(structs, "_vertices_in_memory", lambda *_: None)
                    by_sql = database.query(text).to_arrow()
                assert mine.schema == by_sql.schema
                assert mine.equals(by_sql)
            assert all(found) is gathers
            assert found

        gathers = True
        checked()
        database.sql("BEGIN")
        database.query("MATCH (p:P) WHERE p.k < 9 SET p.name = 'x' + p.k, p.w = null REMOVE p:Q")
        database.query("MATCH (p:P) WHERE p.k > 90 DELETE p")
        checked()
        database.sql("ROLLBACK")
        checked()
        database.query("MATCH (p:P) WHERE p.k = 7 SET p.name = ['x', 'y']")  # for SQL
        gathers = False
        checked()


@pytest.mark.parametrize(
    "steps",
    [
        "-[r:K]->",
        "<-[r:K]-",
        "-[r:K]-",
        "-[:K]->()-[r:K]->",
        "-[:K*2]->(m)<-[r:K]-",
        "-[r:K]->()-[:K*0..2]->",
        "<-[:K*1..2]-()-[r:K]-",
    ],
)
def test_first_paths_in_order(database: graphdb.Database, steps: str) -> None:
    alone = database.query("MATCH p = (a:P) RETURN p, a.k AS k ORDER BY a.k DESC LIMIT 3").fetchall()
    assert [(len(p.nodes), p.relationships, p.nodes[0].properties["k"], k) for p, k in alone] == [
        (1, (), k, k) for k in (29, 28, 27)
    ]
    match = f"MATCH p = (a:P){steps}(b:P) WHERE a.k < 9"
    key = "r.since DESC, a.k, id(b), id(r), length(p), [e IN relationships(p) | id(e)]"
    whole = database.query(f"{match} WITH * ORDER BY {key} RETURN p, length(p) AS n, r.since AS s").fetchall()
    assert len({s for *_, s in whole}) > 9
    for window in ("SKIP 3 LIMIT 40", "LIMIT 1"):
        skip, limit = (3, 40) if "SKIP" in window else (0, 1)
        short = "r.since DESC, a.k, id(b), id(r), length(p)"
        found = database.query(f"{match} RETURN p, length(p) AS n, r.since AS s ORDER BY {short} {window}").fetchall()
        assert [(p.nodes[0], p.nodes[-1], n, s) for p, n, s in found] == [
            (p.nodes[0], p.nodes[-1], n, s) for p, n, s in whole[skip : skip + limit]
        ]
        assert {*found} <= {*whole}
        nodes = database.query(f"{match} RETURN nodes(p) AS l ORDER BY {short} {window}").fetchall()
        assert [(l[0], l[-1]) for (l,) in nodes] == [(p.nodes[0], p.nodes[-1]) for p, *_ in found]


def test_all_properties_of_edges_are_columns_of_their_match() -> None:
    """Maps of all properties, and their keys, are what the edges themselves have, of several labels and parallel ones."""
    with graphdb.connect(device="cpu", threads=1) as database:
        database.query(PEOPLE)
        for _ in range(2):
            database.query(KNOWS)
        database.query(
            "MATCH (a:P), (b:P) WHERE b.k = a.k + 1 CREATE (a)-[:L {pay: a.k * 2, word: 'l'}]->(b), (a)-[:M]->(b)"
        )
        for edge in ("[r:K]", "[r:L]", "[r:K|L]", "[r]", "[r:M]", "[r:L|M]"):
            for arrows in ("-{}->", "<-{}-", "-{}-"):
                match = f"MATCH (a:P){arrows.format(edge)}(b:P) WHERE a.k < 20"
                both = "RETURN r, properties(r) AS p, keys(r) AS k, r {.*} AS m, r.word AS w, r.since AS s"
                rows = database.query(f"{match} {both}").fetchall()
                assert rows
                for r, *found in rows:
                    has = dict(r.properties)
                    assert found == [has, sorted(has), has, has.get("word"), has.get("since")]
                for rest in ("WITH r, a ORDER BY id(r) LIMIT 50", "WITH r AS a, b AS r WHERE a.pay IS NULL"):
                    name = "r" if "ORDER" in rest else "a"
                    rows = database.query(f"{match} {rest} RETURN {name}, properties({name}) AS p").fetchall()
                    assert all(dict(e.properties) == p for e, p in rows)
                several = database.query(f"{match} RETURN DISTINCT keys(r) AS k").fetchall()
                assert sorted(k for (k,) in several) == sorted(
                    {
                        tuple(sorted(r.properties)): sorted(r.properties)
                        for (r,) in database.query(f"{match} RETURN r")
                    }.values()
                )
        missing = database.query("MATCH (a:P) OPTIONAL MATCH (a)-[r:L]->() RETURN properties(r) AS p, keys(r) AS k, r")
        for p, k, r in missing.fetchall():
            assert (p, k) == ((None, None) if r is None else (dict(r.properties), sorted(r.properties)))
