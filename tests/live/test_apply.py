"""Batches from outside: tables, rows, N-Triples and RDF patches, each one transaction."""

from __future__ import annotations

import datetime
import io
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import graphdb
from graphdb.common.errors import LoadError, StorageError
from graphdb.common.values.terms import RDF_TYPE
from graphdb.relational.session.state import State
from tests.fuzz import scaled
from tests.live.writes import begin, check, opened

EDGES = [("http://x/a", "http://x/p", "http://x/b"), ("http://x/b", "http://x/p", "http://x/c")]
LINES = b"<http://x/a> <http://x/p> <http://x/b> .\n# so far\n\n<http://x/b> <http://x/p> <http://x/c> .\n"


def triples(db: graphdb.Database) -> set[tuple[Any, ...]]:
    return set(db.sql("SELECT subject, predicate, object, datatype FROM triples").fetchall())


@pytest.mark.parametrize(
    "form", ["rows", "in brackets", "arrow", "pandas", "bytes", "path", "gz", "file", "zst", "packed file", "several"]
)
def test_forms(form: str, tmp_path: Path) -> None:
    import gzip

    import pandas as pd

    from graphdb.storage import zstd

    path, packed = tmp_path / "a.nt", tmp_path / "a.nt.gz"
    path.write_bytes(LINES)
    packed.write_bytes(gzip.compress(LINES))
    columns = dict(zip(["s", "p", "o"], map(list, zip(*EDGES, strict=True)), strict=True))
    given: dict[str, Any] = {
        "rows": EDGES,
        "in brackets": [tuple(f"<{iri}>" for iri in edge) for edge in EDGES],
        "arrow": pa.table(columns),
        "pandas": pd.DataFrame(columns),
        "bytes": LINES,
        "path": path,
        "gz": str(packed),
        "file": io.BytesIO(LINES),
        "zst": tmp_path / "a.nt.zst",
        "packed file": io.BytesIO(gzip.compress(LINES)),
        "several": tmp_path / "part*.nt",
    }
    (tmp_path / "a.nt.zst").write_bytes(zstd.compress(LINES))
    for number, line in enumerate(LINES.splitlines(keepends=True)):
        (tmp_path / f"part{number}.nt").write_bytes(line)
    with opened(None) as db:
        found = db.apply(given[form])
        assert (found.additions, found.deletions) == (2, 0)
        assert triples(db) == {(*edge, None) for edge in EDGES}
        assert db.apply(deletions=EDGES[:1]).deletions == 1
        assert triples(db) == {(*EDGES[1], None)}
        db.apply(additions=EDGES[1:], deletions=EDGES[1:])  # deletions first
        assert triples(db) == {(*EDGES[1], None)}


def test_objects_and_names() -> None:
    xsd = "http://www.w3.org/2001/XMLSchema#"
    with opened(None) as db:
        db.query("CREATE (:Person {name: 'Ada'})")
        ada = db.query("MATCH (a:Person) RETURN a").scalar()
        values = [1, 2.5, True, Decimal("1.50"), datetime.date(2020, 1, 2), 'say "x"\n\\', '"ja"@de', "_:no iri"]
        db.apply([(ada, "name", "Lovelace")] + [(ada, "v", value) for value in values[:-1]])
        assert set(db.query("MATCH (a:Person) UNWIND a.name AS n RETURN n").fetchall()) == {("Ada",), ("Lovelace",)}
        found = {(o, d) for _, p, o, d in triples(db) if p == "urn:graphdb:v"}
        assert found == {
            ("1", xsd + "integer"),
            ("2.5", xsd + "double"),
            ("true", xsd + "boolean"),
            ("1.50", xsd + "decimal"),
            ("2020-01-02", xsd + "date"),
            ('say "x"\n\\', xsd + "string"),
            ("ja", "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"),
        }
        numbers = [np.int64(3), np.float32(0.5), float("nan"), float("-inf"), np.bool_(False)]
        db.apply([(ada, "w", value) for value in numbers])
        found = {(o, d.removeprefix(xsd)) for _, p, o, d in triples(db) if p == "urn:graphdb:w"}
        assert found == {
            ("3", "integer"),
            ("0.5", "double"),
            ("NaN", "double"),
            ("-INF", "double"),
            ("false", "boolean"),
        }
        db.apply(pa.table({"s": ["http://x/1", "http://x/2"], "p": ["n", "n"], "o": [7, 8]}))
        assert db.query("MATCH (a) WHERE a.n > 7 RETURN iri(a)").fetchall() == [("http://x/2",)]


def test_a_patch_is_one_transaction() -> None:
    patch = """H version 1 .
TX .
PA x <http://x/> .
A <http://x/a> <http://x/p> <http://x/b> .
D <http://x/a> <http://x/p> <http://x/b> .
A <http://x/a>  <http://x/p> <http://x/c> .
D <http://x/a> <http://x/q> "1" .
  A <http://x/a> <http://x/q> "1" .
TC .
TX .
A <http://x/never> <http://x/p> <http://x/c> .
TA .
"""
    with opened(None) as db:
        db.query("CREATE CONTINUOUS QUERY q AS MATCH (a)-[:<http://x/p>]->(b) RETURN iri(b) AS b")
        found = db.apply(patch=patch)
        assert (found.additions, found.deletions) == (2, 1)
        assert {(s, o) for s, _, o, _ in triples(db)} == {("http://x/a", "http://x/c"), ("http://x/a", "1")}
        assert db.sql("FROM q_changes").fetchall() == [(1, 1, "http://x/c")]
        db.apply(patch=["D <http://x/a> <http://x/p> <http://x/c> ."])
        assert db.sql("FROM q").fetchall() == []
        db.apply(patch="A <http://x/a> <http://x/p> <http://x/d> .")  # one line is no path
        assert db.sql("FROM q").fetchall() == [("http://x/d",)]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"additions": [("http://x/a", "http://x/p")]}, "three columns"),
        ({"additions": [("http://x/a", "http://x/p", None)]}, "no term"),
        ({"additions": [("http://x/a", "http://x/p", np.datetime64("NaT", "ns"))]}, "no term"),
        ({"additions": [("not an iri", "http://x/p", "http://x/b")]}, None),
        ({"additions": [("_:new", "http://x/p", "http://x/b")]}, "no blank node _:new"),
        ({"additions": b"<http://x/a> <http://x/p> .\n"}, None),
        ({"additions": b"<http://x/a> <http://x/p> <http://x/b> <http://x/g> .\n"}, None),
        ({"additions": pa.table({"s": ["http://x/a"], "p": ["p"]})}, "three columns"),
        (
            {"additions": pa.table({"s": ["http://x/a"], "p": ["p"], "o": pa.array([None], pa.int64())})},
            "missing value",
        ),
        ({"patch": "A <http://x/a> <http://x/p> <http://x/b> .\nX <http://x/a> .\n"}, "begins with X"),
        ({"patch": "A <x> .", "additions": []}, "a patch says itself"),
        ({"additions": "absent.nt"}, "there is no file 'absent.nt'"),
    ],
)
def test_what_is_no_batch_changes_nothing(given: dict[str, Any], said: str | None) -> None:
    with opened(None) as db:
        db.apply(EDGES)
        with pytest.raises(LoadError, match=said):
            db.apply(**given)
        assert len(triples(db)) == 2
        db.apply(deletions=EDGES)
        assert triples(db) == set()


def test_read_only_and_transactions(tmp_path: Path) -> None:
    with opened(tmp_path / "a.duckdb") as db:
        db.apply(EDGES)
        db.query("BEGIN")
        db.apply(deletions=EDGES)
        assert triples(db) == set()
        db.query("ROLLBACK")
        assert len(triples(db)) == 2
    with (
        graphdb.connect(tmp_path / "a.duckdb", read_only=True) as db,
        pytest.raises((StorageError, graphdb.GraphDBError)),
    ):
        db.apply(deletions=EDGES)


def test_edges_with_properties_go_with_their_triples() -> None:
    with opened(None) as db:
        db.query("CREATE (:A {i: 1})-[:R {w: 1}]->(:A {i: 2})")
        [(a, b)] = db.query("MATCH (a)-[:R]->(b) RETURN a, b").fetchall()
        db.apply(deletions=[(a, "R", b)])
        assert db.query("MATCH ()-[e:R]->() RETURN count(*)").scalar() == 0
        db.apply([(a, "R", b)])
        assert db.query("MATCH ()-[e:R]->() RETURN e.w").fetchall() == [(None,)]


TEXTS = ["x", "http://x/y", "http://x/a b", "<http://x/z>", '"ja"@de', 'a "q" \\ \n\r\t', "", "a:b", "http://x/é", "1"]


def test_rows_and_tables_are_read_alike() -> None:
    rows = [(f"http://x/{i}", "v", text) for i, text in enumerate(TEXTS)] + [("<http://x/0>", "http://x/p", "z")]
    found = []
    for given in (rows, pa.table(dict(zip("spo", map(list, zip(*rows, strict=True)), strict=True)))):
        with opened(None) as db:
            db.apply(given)
            found.append(triples(db))
    assert found[0] == found[1]
    assert len(found[0]) == len(rows)


@pytest.mark.parametrize("seed", range(scaled(6)))
def test_answers_after_random_batches(seed: int) -> None:
    draw = np.random.default_rng(seed)
    with opened(None) as db:
        queries, stored = begin(db, draw, 4)
        there: Counter[tuple[str, str, str]] = Counter()
        for _ in range(8):
            come = [_edge(draw) for _ in range(int(draw.integers(6)))]
            gone = [edge for edge in there if draw.random() < 0.3] + [_edge(draw)]
            db.apply(come, gone)
            for edge in gone:
                there.pop(edge, None)
            there.update(dict.fromkeys(come, 1))
            check(db, queries, stored)
        own = {(s, p, o) for s, p, o, _ in triples(db) if s.startswith("http://x/")}
        assert own == {(s, f"urn:graphdb:{p}", o) for s, p, o in there}


def _edge(draw: np.random.Generator) -> tuple[str, str, str]:
    return f"http://x/{draw.integers(5)}", str(draw.choice(["R", "S"])), f"http://x/{draw.integers(5)}"


def test_a_large_batch_brings_up_to_date_what_queries_derived() -> None:
    """The next query finds partitions and members with the batch in them, also where it is rolled back."""
    random = np.random.default_rng(5)

    def some(count: int) -> list[tuple[str, str, str]]:
        names = ("http://x/p", "http://x/q")
        pairs = random.integers(0, 40, (count, 2)).tolist()
        return [(f"http://x/{s}", names[(s + o) % 2], f"http://x/{o}") for s, o in pairs]

    def counted(edges: set[tuple[str, str, str]]) -> int:
        ends = Counter((p, o) for _, p, o in edges)
        return sum(ends["http://x/p", s] for s, p, _ in edges if p == "http://x/q")

    text = "MATCH (a)-[:p]->(b)-[:q]->(c) RETURN count(*)"
    with graphdb.connect() as db:
        there = set(some(300))
        db.apply(sorted(there))
        db.query("MATCH (a)-[:p]->(b)-[:q]->(c) RETURN a, c").fetchall()
        for step in range(6):
            come, gone = some(150), sorted(there)[step::3]
            if step % 3 == 2:
                db.query("BEGIN")
            db.apply(come, gone)
            graph = db._state.snapshot().graph
            assert not any(key[0] == "partition" for key in graph._stale.waiting())
            assert any(key[0] == "partition" for key in graph._cache)
            now = (there - set(gone)) | set(come)
            assert db.query(text).scalar() == counted(now)
            if step % 3 == 2:
                db.query("ROLLBACK")
            else:
                there = now
            assert db.query(text).scalar() == counted(there)
            db.query("MATCH (a)-[:p]->(b)-[:q]->(c) RETURN a, c").fetchall()


def test_a_handful_of_edges_is_what_the_same_lines_are() -> None:
    draw = np.random.default_rng(4)
    odd = ["http://x/ä", "http://x/a%20b", "urn:x:'(1)'", "http://x/?q=1&r=[2]#f", "mailto:a@b.c", "x-1.2+y:"]
    iris = [*odd, *(f"http://x/{n}" for n in range(4))]

    def lines(rows: list[tuple[str, ...]]) -> str:
        return "".join(f"<{s}> <{p}> <{o}> .\n" for s, p, o in rows)

    with graphdb.connect(device="cpu") as one, graphdb.connect(device="cpu") as other:
        for _ in range(scaled(30)):
            rows = [tuple(map(str, draw.choice(iris, 3))) for _ in range(int(draw.integers(1, 6)))]
            gone = [*rows[: int(draw.integers(len(rows) + 1))], tuple(map(str, draw.choice(iris, 3)))]
            left, right = one.apply(rows, gone), other.apply(lines(rows).encode(), lines(gone).encode())
            assert (left.additions, left.deletions) == (right.additions, right.deletions)
            assert triples(one) == triples(other)
        for wrong in ("http://x/a b", "http://x/<", "no iri", "http://x/a\n"):
            with pytest.raises(LoadError):
                one.apply([(wrong, "http://x/p", "http://x/o")])


def test_a_stream_of_batches_takes_few_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a batch leaves known is known to the next one; queries and rollbacks between see all of them, and no other."""
    db, taken, original = graphdb.connect(), list[bool](), State.snapshot

    def noted(self: State) -> object:
        taken.append(self._lazy_snapshot is None)
        return original(self)

    db.apply([("<ex:a>", "<ex:knows>", "<ex:b>"), ("<ex:a>", f"<{RDF_TYPE}>", "<ex:Person>")])
    monkeypatch.setattr(State, "snapshot", noted)
    for i in range(40):
        db.apply([(f"<ex:a{i}>", "<ex:knows>", "<ex:b>"), (f"<ex:a{i}>", f"<{RDF_TYPE}>", "<ex:Person>")])
    assert sum(taken) <= 4
    assert db.query("MATCH (p:Person)-[:knows]->(b) RETURN count(*)").fetchall() == [(41,)]
    db.query("BEGIN")
    db.apply([("<ex:c>", "<ex:likes>", "<ex:b>"), ("<ex:c>", f"<{RDF_TYPE}>", "<ex:Other>")])
    db.query("ROLLBACK")
    db.apply([("<ex:d>", "<ex:likes>", "<ex:b>")], [("<ex:a1>", "<ex:knows>", "<ex:b>")])
    rows = db.query("MATCH (a)-[e]->(b) RETURN type(e), count(*) AS n ORDER BY type(e)").fetchall()
    assert rows == [("ex:knows", 40), ("ex:likes", 1)]
    assert db.query("MATCH (p) WHERE labels(p) <> ['ex:Person'] RETURN count(*)").fetchall() == [(2,)]  # b and d


def test_the_first_label_is_counted_with_its_batch(tmp_path: Path) -> None:
    """Its rdf:type waited to be inserted with everything else, and what counts labels asked the file for it."""
    with graphdb.connect(tmp_path / "db.duckdb") as db:
        for number in range(3):
            db.apply([(f"http://x/{number}", RDF_TYPE, "http://x/A"), (f"http://x/{number}", "http://x/k", number)])
            assert db.query("MATCH (a:A) RETURN count(*)").scalar() == number + 1
        assert db.query("CALL db.labels() YIELD label RETURN label").fetchall() == [("http://x/A",)]
