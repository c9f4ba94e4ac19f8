"""MINE … by statement: tables, scopes, explanations, limits and mistakes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import graphdb
from graphdb.common.errors import (
    BindError,
    GraphDBError,
    MemoryLimitError,
    NotSupportedError,
    ParameterError,
    ParseError,
    QueryInterrupted,
    QueryTimeout,
    StorageError,
    TypeMismatchError,
)
from graphdb.data import GEOGRAPHY
from tests.fuzz import FUZZ
from tests.stops import Stopwatch, interrupted

PEOPLE = """
@prefix : <http://x/> .
:ann a :Person ; :knows :bob , :cid , :ann ; :likes :bob ; :name "Ann" .
:bob a :Person ; :knows :cid , :ann .
:cid a :Person , :Artist ; :knows :dan .
:dan a :Robot ; :likes :ann , :bob , :cid .
:eve :knows :dan .
"""


@pytest.fixture
def db(tmp_path: Path) -> Iterator[graphdb.Database]:
    (tmp_path / "people.ttl").write_text(PEOPLE)
    with graphdb.connect(device="cpu") as db:
        db.load(tmp_path / "people.ttl")
        yield db


@pytest.fixture(scope="module")
def large() -> Iterator[graphdb.Database]:
    """A graph with more cliques and motifs than can be counted in seconds."""
    random = np.random.default_rng(0)
    ends = np.argwhere(random.random((150, 150)) < 0.7)
    with graphdb.connect(device="cpu") as db:
        db.load(graphdb.Table(pa.table({":START_ID": ends[:, 0], ":END_ID": ends[:, 1]}), type="E"))
        yield db


def names(example: list[graphdb.Node]) -> set[str]:
    return {node.iri.rpartition("/")[2] for node in example}


def test_cliques(db: graphdb.Database) -> None:
    result = db.query("MINE CLIQUES OF SIZE 3..8")
    assert result.columns == ("size", "cliques", "example")
    rows = result.fetchall()
    assert [row[:2] for row in rows] == [(3, 4), (4, 1)]
    assert names(rows[1][2]) == {"ann", "bob", "cid", "dan"}
    assert db.query("MINE CLIQUES OF SIZE 3").fetchall()[0][1] == 4
    assert [row[:2] for row in db.query("MINE CLIQUES OF SIZE 3..20 MAXIMAL")] == [(4, 1)]


def test_motifs(db: graphdb.Database) -> None:
    result = db.query("MINE MOTIFS OF SIZE 3")
    assert result.columns == ("motif", "count", "example", "drawing")
    assert [(motif, count, drawing) for motif, count, _, drawing in result] == [
        ("(a)--(b), (a)--(c)", 3, "a-b\n -c"),
        ("(a)--(b), (a)--(c), (b)--(c)", 4, "a-b-c-(a)"),
    ]
    assert sum(row[1] for row in db.query("MINE MOTIFS OF SIZE 3 DIRECTED")) == 7
    assert len(db.query("MINE MOTIFS OF SIZE 5")) == 21


@pytest.mark.parametrize("directed", [False, True])
def test_motifs_are_what_match_finds(directed: bool) -> None:
    """Each pattern, pasted into MATCH INDUCED, is found at as many sets of vertices."""
    random = np.random.default_rng(4)
    ends = np.argwhere(np.triu(random.random((12, 12)) < 0.35, 1))
    if directed:
        ends = np.concatenate([ends, ends[::3, ::-1]])
    with graphdb.connect(device="cpu") as db:
        db.load(graphdb.Table(pa.table({":START_ID": ends[:, 0], ":END_ID": ends[:, 1]}), type="E"))
        for size in (3, 4):
            found = db.query(f"MINE MOTIFS OF SIZE {size}{' DIRECTED' if directed else ''}").fetchall()
            assert len(found) >= 6 if size == 4 else len(found) in (2, 13)
            for motif, count, _, _ in found:
                rows = db.query(f"MATCH INDUCED {motif} RETURN {', '.join('abcd'[:size])}")
                assert len({frozenset(row) for row in rows}) == count, motif


def pasted(db: graphdb.Database, pattern: str, directed: bool) -> tuple[int, int]:
    """What MATCH says of a pattern: its minimum image support, and how many matches it has."""
    places = sorted(set(re.findall(r"\((\w)\b", pattern)))
    if directed:
        counts = ", ".join(f"count(DISTINCT {place})" for place in places)
        *images, matches = db.query(f"MATCH DIFFERENT NODES {pattern} RETURN {counts}, count(*)").fetchone()  # type: ignore[misc]
    else:  # an edge in either direction is one
        rows = db.query(f"MATCH DIFFERENT NODES {pattern} RETURN DISTINCT {', '.join(places)}").fetchall()
        images, matches = [len(set(column)) for column in zip(*rows, strict=True)], len(rows)
    return min(images), matches


def test_frequent_patterns(db: graphdb.Database) -> None:
    result = db.query("MINE FREQUENT PATTERNS WITH SUPPORT >= 2 UP TO 3 EDGES COUNTING MATCHES")
    assert result.columns == ("pattern", "edges", "support", "matches", "example")
    rows = result.fetchall()
    assert {edges for _, edges, *_ in rows} == {1, 2}
    assert any("!%" in pattern for pattern, *_ in db.query("MINE FREQUENT PATTERNS WITH SUPPORT >= 1 UP TO 1 EDGE"))
    for pattern, _, support, matches, example in rows:
        assert pasted(db, pattern, True) == (support, matches), pattern
        assert len(example) == len(set(re.findall(r"\((\w)\b", pattern)))
    plain = db.query("MINE FREQUENT PATTERNS WITH SUPPORT >= 2 UP TO 3 EDGES")
    assert plain.fetchall() == [(*row[:3], row[4]) for row in rows]
    for pattern, _, support, matches, _ in db.query(
        "MINE FREQUENT PATTERNS UNDIRECTED WITH SUPPORT >= 2 UP TO 2 EDGES COUNTING MATCHES OVER :knows"
    ):
        assert pasted(db, pattern, False) == (support, matches), pattern


def test_frequent_patterns_of_the_shipped_data() -> None:
    """Each can be pasted into MATCH, which then finds as many matches, and as many vertices at each place."""
    with graphdb.connect(device="cpu") as db:
        db.load(GEOGRAPHY)
        rows = db.query("MINE FREQUENT PATTERNS WITH SUPPORT >= 100 UP TO 3 EDGES COUNTING MATCHES").fetchall()
        small = [row for row in rows if row[3] < 200_000]
        assert len(small) > 700
        for pattern, _, support, matches, _ in small[:: 1 if FUZZ >= 1 else 25]:
            assert pasted(db, pattern, True) == (support, matches), pattern


def test_frequent_patterns_of_vertices_without_edges(db: graphdb.Database) -> None:
    """Two vertices of a row are joined by an edge without a label."""
    text = (
        "MINE FREQUENT PATTERNS WITH SUPPORT >= 2 UP TO 1 EDGE FROM (MATCH (a)-[:knows]->()-[:knows]->(b) RETURN a, b)"
    )
    assert [row[0] for row in db.query(text)] == ["(a:Person)-->(b:Person)"]


def test_names_that_need_quotes() -> None:
    with graphdb.connect(device="cpu") as db:
        db.query("CREATE (:`a b`)-[:`is-in`]->(:`c``d`), (:`a b`)-[:`is-in`]->(:`c``d`)")
        ((pattern, _, support, matches, _),) = db.query(
            "MINE FREQUENT PATTERNS WITH SUPPORT >= 2 UP TO 1 EDGE COUNTING MATCHES"
        )
        assert pasted(db, pattern, True) == (support, matches) == (2, 2)


def test_scopes(db: graphdb.Database) -> None:
    def triangles(scope: str, **given: object) -> int:
        return sum(row[1] for row in db.query(f"MINE CLIQUES OF SIZE 3 {scope}", given))

    assert triangles("OVER :knows") == 1
    assert triangles("OVER :knows|likes") == triangles("OVER :<http://x/knows>|:likes") == 4
    assert triangles("AMONG :Person") == triangles("AMONG :Person|Artist") == 1
    assert triangles("OVER :likes AMONG :Person") == 0
    assert triangles("OVER :<http://x/none>") == 0, "a whole IRI that the data lack"
    assert triangles("FROM (MATCH (a)-[e]->(b) RETURN e)") == 4
    assert triangles("FROM (MATCH (a)-[e:knows]->(b) WHERE b.name IS NULL RETURN a, b)") == 1
    assert triangles("FROM (MATCH (a)-[e]->(b) WHERE a.name = $n RETURN e)", n="Ann") == 0
    assert triangles("FROM (MATCH (a)-[e]->(b) RETURN e UNION MATCH (a)<-[e]-(b) RETURN e)") == 4
    assert triangles("FROM (MATCH (a) OPTIONAL MATCH (a)-[e:likes]->() RETURN e)") == 1
    db.query("PREFIX x: <http://x/>")
    assert triangles("OVER :x:knows AMONG :x:Person|x:Artist") == 1


def test_parameters(db: graphdb.Database) -> None:
    assert [row[1] for row in db.query("MINE CLIQUES OF SIZE $low..$high", low=3, high=4)] == [4, 1]
    with pytest.raises(ParameterError, match="from 3 to 8, found True"):
        db.query("MINE CLIQUES OF SIZE $low", low=True)
    with pytest.raises(ParameterError, match=r"\$low has no value"):
        db.query("MINE CLIQUES OF SIZE $low")


def test_tables(db: graphdb.Database) -> None:
    assert db.query("CREATE TABLE found AS MINE MOTIFS OF SIZE 3").message == "table found: 2 rows"
    assert db.sql("SELECT sum(count), max(len(example)) FROM found").fetchall() == [(7, 3)]
    with pytest.raises(GraphDBError, match="already exists"):
        db.query("CREATE TABLE found AS MINE CLIQUES OF SIZE 3")
    db.query("CREATE OR REPLACE TEMP TABLE cliques AS MINE CLIQUES OF SIZE 3..8")
    assert db.sql("SELECT cliques FROM cliques ORDER BY size").fetchall() == [(4,), (1,)]


def test_a_file_open_for_reading(db: graphdb.Database, tmp_path: Path) -> None:
    (tmp_path / "more.ttl").write_text(PEOPLE)
    with graphdb.connect(tmp_path / "file.duckdb") as file:
        file.load(tmp_path / "more.ttl")
    with graphdb.connect(tmp_path / "file.duckdb", read_only=True) as file:
        with pytest.raises(StorageError, match="read-only"):
            file.query("CREATE TABLE found AS MINE CLIQUES OF SIZE 3..8")
        assert file.tables() == ["triples"]
        assert len(file.query("MINE CLIQUES OF SIZE 3..8")) == 2
        file.query("CREATE TEMP TABLE found AS MINE CLIQUES OF SIZE 3..8")
        assert file.sql("SELECT count(*) FROM found").scalar() == 2


def test_writes_are_seen(db: graphdb.Database) -> None:
    before = [row[1] for row in db.query("MINE CLIQUES OF SIZE 3..5")]
    db.query("MATCH (e:<http://x/none>) RETURN e")
    db.query("MATCH (d:Robot), (e) WHERE NOT (e)-->(d) AND d <> e CREATE (e)-[:knows]->(d)")
    after = [row[1] for row in db.query("MINE CLIQUES OF SIZE 3..5")]
    assert before == after  # all of them knew the robot already
    db.query("MATCH (d:Robot), (p:Person) CREATE (q:Person), (q)-[:knows]->(p), (q)-[:knows]->(d)")
    assert [row[1] for row in db.query("MINE CLIQUES OF SIZE 3..5")] != before


@pytest.mark.parametrize(
    ("text", "kind", "message", "hint"),
    [
        ("MINE", ParseError, "CLIQUES", ""),
        ("MINE CLIQUE OF SIZE 3", ParseError, "unexpected CLIQUE", "did you mean CLIQUES"),
        ("MINE CLIQUES OF SIZE 2..4", ParameterError, "from 3 to 8, found 2", ""),
        ("MINE CLIQUES OF SIZE 3..9", ParameterError, "from 3 to 8, found 9", ""),
        ("MINE CLIQUES OF SIZE 5..4", ParameterError, "from 5 to 8, found 4", ""),
        ("MINE CLIQUES OF SIZE 3..1001 MAXIMAL", ParameterError, "from 3 to 1,000", ""),
        ("MINE FREQUENT PATTERNS WITH SUPPORT >= 0 UP TO 2 EDGES", ParameterError, "of 1 or more, found 0", ""),
        ("MINE FREQUENT PATTERNS WITH SUPPORT >= 9 UP TO 6 EDGES", ParameterError, "from 1 to 5, found 6", ""),
        ("MINE FREQUENT PATTERNS WITH SUPPORT > 9 UP TO 6 EDGES", ParseError, "expected '>='", ""),
        ("MINE MOTIFS OF SIZE 6", ParameterError, "from 3 to 5, found 6", ""),
        ("MINE MOTIFS OF SIZE 3 OVER :know", BindError, "unknown edge label 'know'", "did you mean 'knows'"),
        ("MINE MOTIFS OF SIZE 3 AMONG :Persom", BindError, "unknown label 'Persom'", "did you mean 'Person'"),
        ("MINE MOTIFS OF SIZE 3 OVER :name", BindError, "leads to values only", ""),
        (
            "MINE MOTIFS OF SIZE 3 FROM (MATCH (a) RETURN a)",
            TypeMismatchError,
            "one edge or of two vertices",
            "RETURN e",
        ),
        ("MINE MOTIFS OF SIZE 3 FROM (MATCH (a) RETURN a, a.name)", TypeMismatchError, "of two vertices", ""),
        ("MINE MOTIFS OF SIZE 3 FROM (CREATE (a) RETURN a)", NotSupportedError, "only reads", ""),
        ("MINE MOTIFS OF SIZE 3 FROM (MATCH (a) RETURN b)", GraphDBError, "b", ""),
    ],
)
def test_mistakes(db: graphdb.Database, text: str, kind: type[GraphDBError], message: str, hint: str) -> None:
    with pytest.raises(kind) as raised:
        db.query(text)
    assert message in str(raised.value)
    assert "^" in str(raised.value)
    assert hint in (raised.value.hint or "")
    assert db.tables() == ["triples"]
    assert len(db.query("MINE CLIQUES OF SIZE 3..8")) == 2, "usable as before"


def test_explain_and_profile(db: graphdb.Database) -> None:
    text = db.query("EXPLAIN MINE CLIQUES OF SIZE 3..8").text()
    assert "oriented by degree" in text
    assert "bytes for" in text
    assert "over 5 vertices and 9 edges, whatever their direction: 7 adjacent pairs" in text
    assert db.explain("MINE MOTIFS OF SIZE 4") == db.query("EXPLAIN MINE MOTIFS OF SIZE 4").text()
    assert "6 patterns" in db.explain("MINE MOTIFS OF SIZE 4")
    assert all(
        "bytes for" in db.explain(f"MINE MOTIFS OF SIZE {size}{way}") for size in (3, 4, 5) for way in ("", " DIRECTED")
    )
    assert "on cpu" in db.explain("MINE MOTIFS OF SIZE 4")
    assert "on cpu" in text
    assert "199 patterns" in db.explain("MINE MOTIFS OF SIZE 4 DIRECTED")
    assert "visited once" in db.explain("MINE MOTIFS OF SIZE 5 DIRECTED")
    assert "ms in all" in db.query("PROFILE MINE CLIQUES OF SIZE 3..8").text()
    assert "2 rows" in db.query("PROFILE MINE CLIQUES OF SIZE 3..8").text()


def test_progress(db: graphdb.Database, large: graphdb.Database) -> None:
    told: list[float] = []
    large.progress = lambda done, total, triples, phase: told.append(done / total)
    try:
        large.query("MINE CLIQUES OF SIZE 3..5")
    finally:
        large.progress = None
    assert told == sorted(told)
    assert told[-1] == 1


@pytest.mark.parametrize("how", ["timeout", "interrupt", "signal"])
@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("MINE CLIQUES OF SIZE 3..8", 0.3),
        ("MINE CLIQUES OF SIZE 3..1000 MAXIMAL", 0.3),
        ("MINE MOTIFS OF SIZE 5 DIRECTED", 0.3),
        # Which takes a tenth of a second on fast machines, and is run again until it is stopped; the others many seconds.
        ("MINE FREQUENT PATTERNS WITH SUPPORT >= 1 UP TO 5 EDGES FROM (MATCH (a)-->()-->(b) RETURN a, b)", 0.04),
    ],
)
def test_mining_is_stopped(large: graphdb.Database, text: str, after: float, how: str) -> None:
    large.query("MINE CLIQUES OF SIZE 3")  # the graph is there, and kernels are compiled
    watch = Stopwatch()
    stopped = {"timeout": QueryTimeout, "interrupt": QueryInterrupted, "signal": KeyboardInterrupt}[how]
    with interrupted(large, how, after), pytest.raises(stopped):  # noqa: PT012
        for _ in range(1000):
            large.query(text, timeout=after if how == "timeout" else None)
    assert watch.seconds() < 5, "not after all work"
    assert len(large.query("MINE CLIQUES OF SIZE 3")) == 1


def test_memory_limit(tmp_path: Path) -> None:
    with graphdb.connect(device="cpu", memory_limit="64MiB") as db:
        ends = np.random.default_rng(0).integers(0, 12_000, (20_000, 2))
        db.load([graphdb.Table(pa.table({":START_ID": ends[:, 0], ":END_ID": ends[:, 1]}), type="E")])
        with pytest.raises(MemoryLimitError, match="memory limit"):
            db.query("MINE MOTIFS OF SIZE 5 DIRECTED")
        assert len(db.query("MINE MOTIFS OF SIZE 3")) == 2
