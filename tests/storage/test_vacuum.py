"""VACUUM: what nothing refers to leaves the file, everything else stays as it is."""

from __future__ import annotations

import io
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import graphdb
from graphdb.relational.session import versions
from graphdb.storage.dictionary.hash_index import SMALL_LOOKUP
from graphdb.storage.file import schema
from graphdb.storage.statistics import tables as label_tables
from graphdb.storage.updates import vacuum
from tests.oracle.test_versions import HISTORIES, rows

REIFIER = re.compile(r"_:e\d+_\d+_\d+_\d+")
"""Names that exports make of ids."""

TRIG = """
@prefix : <http://x/> .
:a :knows :b {| :since 2020 ; :note "α"@en |} .
:a :knows :c {| :since 2021 |} .
:a :name "a" ; a :Person . :b :name "b", "bb" . :c :age 3.50, 4 .
:d :says <<( :a :knows "x" )>> .
:g1 { :a :knows :b . :e :knows :f {| :by :h |} . }
:g2 { :e :name "e" ; :born "2020-01-01"^^<http://www.w3.org/2001/XMLSchema#date> . }
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "g.duckdb"


@pytest.fixture
def db(path: Path) -> Iterator[graphdb.Database]:
    with graphdb.connect(path) as db:
        yield db


def exported(db: graphdb.Database, folder: Path) -> list[str]:
    """Everything that the graph says; an edge's reifier without a name is named by what is said of it."""
    db.export(folder / "all.nq")
    lines = (folder / "all.nq").read_text().splitlines()
    about: dict[str, list[str]] = {}
    for line in lines:
        for name in REIFIER.findall(line):
            about.setdefault(name, []).append(REIFIER.sub("_:e", line))
    return sorted(REIFIER.sub(lambda name: repr(sorted(about[name[0]])), line) for line in lines)


def terms(db: graphdb.Database) -> tuple[int, int]:
    (counts,) = db.sql(
        "SELECT (SELECT count(*) FROM _graphdb.resource), (SELECT count(*) FROM _graphdb.literal)"
    ).fetchall()
    return counts


def counted(db: graphdb.Database) -> list[Any]:
    """All statistics, by names."""
    edges = (
        f"SELECT iri, edge_label.* EXCLUDE id FROM ({label_tables.current('edge_label')}) AS edge_label"
        " JOIN _graphdb.resource USING (id)"
    )
    vertices = f"SELECT iri, vertices FROM ({label_tables.current('vertex_label')}) JOIN _graphdb.resource USING (id)"
    degrees = (
        f"SELECT iri, degree.* EXCLUDE label FROM ({label_tables.summed('degree')}) AS degree"
        " JOIN _graphdb.resource ON id = label"
    )
    pairs = (
        f"SELECT a.iri, b.iri, pair.* EXCLUDE (label, class) FROM ({label_tables.summed('label_pair')}) AS pair"
        " JOIN _graphdb.resource a ON a.id = label JOIN _graphdb.resource b ON b.id = class"
    )
    return [sorted(db.sql(sql).fetchall(), key=repr) for sql in (edges, vertices, degrees, pairs)]


def fill(db: graphdb.Database, folder: Path) -> None:
    """A graph of all that there can be, of which a part has gone."""
    db.load(io.BytesIO(TRIG.encode()), format="trig")
    db.query("UNWIND range(1, 300) AS i CREATE (:Old {k: i, t: 'old ' + toString(i)})")
    db.query("UNWIND range(1, 300) AS i CREATE (:New {k: i})-[:R {w: i}]->(:New {t: 'new ' + toString(i)})")
    db.query("MATCH (a:New)-[:R]->(b) WITH a, b LIMIT 5 CREATE (a)-[:R {w: 0}]->(b)")
    db.query("MATCH (n:Old) DETACH DELETE n")
    db.query("MATCH (n:New) WHERE n.k % 3 = 0 DETACH DELETE n")


def test_every_column_of_ids_is_known() -> None:
    """A table that somebody adds has to be thought of."""
    no_ids = {"ordinal", "triples", "resource_triples", "subjects", "objects", "max_out_degree", "max_in_degree"}
    no_ids |= {"max_values", "vertices", "edges", "number", "changes", "since", "query", "batch", "added", "removed"}
    known = vacuum.REFERENCES | vacuum.STATISTICS | {"resource": ("id",), "literal": ("id",)}
    for name, table in schema.metadata.tables.items():
        table_name = name.removeprefix("_graphdb.")
        integers = {c.name for c in table.columns if type(c.type).__name__ == "BigInteger"} - no_ids
        if table_name != "source":
            assert integers - {"integer", "moment"} == set(known.get(table_name, ())), table_name


def test_the_graph_stays_as_it_is(db: graphdb.Database, path: Path, tmp_path: Path) -> None:
    fill(db, tmp_path)
    texts = ["MATCH (n) RETURN n", "MATCH (a)-[e]->(b) RETURN a, e, b", "MATCH (n:New) WHERE n.k > 7 RETURN n.k, n"]
    before, said, numbers = exported(db, tmp_path), [rows(db.query(text)) for text in texts], counted(db)
    message = db.query("VACUUM").message
    resources, literals = terms(db)
    assert message is not None
    assert message.startswith("reclaimed 4")
    assert exported(db, tmp_path) == before
    assert [rows(db.query(text)) for text in texts] == said
    assert counted(db) == numbers
    used = db.sql("SELECT count(*) FROM (SELECT subject FROM triples UNION SELECT object FROM triples WHERE datatype IS NULL"
                  " UNION SELECT predicate FROM triples)").scalar()  # fmt: skip
    assert used <= resources < used + 10  # and graphs, reifiers and keys of edges
    assert db.query("VACUUM").message == f"reclaimed 0 of {resources:,} resources and 0 of {literals:,} literals"
    (dense,) = db.sql(
        "SELECT (SELECT max(id) + 1 FROM _graphdb.resource), (SELECT max(id) + 1 - (1::BIGINT << 48) FROM _graphdb.literal)"
    ).fetchall()
    db.close()
    with graphdb.connect(path) as again:
        assert terms(again)[0] == dense[0]
        assert exported(again, tmp_path) == before
        again.query("CREATE (:New {k: 1000})-[:R {w: 1}]->(:Other)")
        assert again.query("MATCH (n:New)-[:R]->(:Other) RETURN n.k").scalar() == 1000


def test_cycles_of_creating_and_deleting_keep_the_file_small(db: graphdb.Database, path: Path) -> None:
    sizes = []
    for cycle in range(4):
        db.query("UNWIND range(1, 5000) AS i CREATE (:P {k: i + $n, t: 'text ' + toString(i + $n)})", n=cycle * 5000)
        db.query("MATCH (n) DETACH DELETE n")
        db.query("VACUUM")
        sizes.append(path.stat().st_size)
        assert sum(terms(db)) == 0
    assert max(sizes) <= 2 * sizes[0]


def test_a_file_that_was_large_is_free_again(db: graphdb.Database, path: Path) -> None:
    """DuckDB cuts off what is free at a file's end; what is free before it is taken by what comes next."""
    lines = "\n".join(f'<http://x/{i}> <http://x/p> "{os.urandom(40).hex()}" .' for i in range(60_000))
    used = "SELECT used_blocks FROM pragma_database_size() WHERE database_name = current_database()"
    db.load(io.BytesIO(lines.encode()), format="ntriples")
    db.sql("CHECKPOINT")
    large, blocks = path.stat().st_size, db.sql(used).scalar()
    db.query("MATCH (n) WHERE iri(n) <> 'http://x/7' DETACH DELETE n")
    db.query("VACUUM")
    assert db.sql(used).scalar() < blocks * 0.6
    assert path.stat().st_size < large * 1.3
    db.load(io.BytesIO(lines.encode()), format="ntriples")
    db.sql("CHECKPOINT")
    assert path.stat().st_size < large * 1.3


def test_names_of_vertices_never_come_again(db: graphdb.Database) -> None:
    seen: set[str] = set()
    for _ in range(3):
        made = {node.iri for (node,) in db.query("UNWIND range(1, 40) AS i CREATE (n:P) RETURN n")}
        made |= {db.query("CREATE (n:P) RETURN n").scalar().iri for _ in range(3)}
        assert len(made) == 43
        assert not made & seen
        seen |= made
        db.query("MATCH (n:P) WITH n LIMIT 30 DETACH DELETE n")
        db.query("VACUUM")


def test_where_it_cannot_run(db: graphdb.Database, path: Path) -> None:
    db.query("CREATE (:P {k: 1})")
    db.query("BEGIN")
    db.query("CREATE (:P {k: 2})")
    with pytest.raises(graphdb.GraphDBError, match="within a transaction"):
        db.query("VACUUM")
    db.query("COMMIT")
    assert db.query("MATCH (n:P) RETURN count(*)").scalar() == 2
    db.close()
    with graphdb.connect(path, read_only=True) as reader:
        with pytest.raises(graphdb.StorageError, match="read-only"):
            reader.query("VACUUM")
        assert reader.query("MATCH (n:P) RETURN count(*)").scalar() == 2


@pytest.mark.parametrize("text", ["vacuum", "VACUUM;", "-- all of it\nVacuum ;", "/* now */ VACUUM -- later"])
def test_how_it_is_written(db: graphdb.Database, text: str) -> None:
    db.query("CREATE (:P {k: 1})")
    db.query("MATCH (n) DETACH DELETE n")
    message = db.sql(text).message
    assert message is not None
    assert message.startswith("reclaimed")


def test_other_statements_are_duckdbs(db: graphdb.Database) -> None:
    db.query("CREATE (:P {k: 1})")
    db.query("MATCH (n) DETACH DELETE n")
    before = terms(db)
    db.sql("CREATE TABLE vacuum_log AS SELECT 1 AS x")
    db.sql("VACUUM ANALYZE vacuum_log")
    assert db.sql("SELECT 'VACUUM'").scalar() == "VACUUM"
    assert terms(db) == before


@pytest.mark.parametrize("large", [0, 10_000])
def test_results_are_what_they_were(db: graphdb.Database, monkeypatch: pytest.MonkeyPatch, large: int) -> None:
    monkeypatch.setattr(versions, "LARGE", large)
    db.query("UNWIND range(1, 50) AS i CREATE (:P {k: i})-[:R {w: i}]->(:Q {k: i})")
    text = "MATCH (a:P)-[e:R]->(b) RETURN a, e, b, a.k"
    wanted, result, table = rows(db.query(text)), db.query(text), db.query(text).to_arrow()
    db.query("MATCH (n) WHERE n.k < 40 DETACH DELETE n")
    left = db.query(text)
    copied = rows(db.query(text))
    db.query("VACUUM")
    db.query("UNWIND range(1, 70) AS i CREATE (:Other {k: -i})")  # takes the ids that are free now
    assert rows(result) == wanted
    assert result.to_arrow().equals(table)
    assert rows(left) == copied
    assert db.query("VACUUM").message is not None


def test_what_is_interrupted_leaves_everything_as_it_was(
    db: graphdb.Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(db, tmp_path)
    before, there = exported(db, tmp_path), terms(db)
    rewrite = vacuum._rewrite
    for stop in (1, 5, 11):
        calls = iter(range(100))

        def stopping(*given: Any, calls: Iterator[int] = calls, stop: int = stop) -> None:
            if next(calls) == stop:
                raise KeyboardInterrupt
            rewrite(*given)

        monkeypatch.setattr(vacuum, "_rewrite", stopping)
        with pytest.raises(KeyboardInterrupt):
            db.query("VACUUM")
        assert exported(db, tmp_path) == before
        assert terms(db) == there
        db.query("CREATE (:Passing {k: 1})")
        db.query("MATCH (n:Passing) DETACH DELETE n")
        there = terms(db)
    monkeypatch.setattr(vacuum, "_rewrite", rewrite)
    db.query("VACUUM")
    assert exported(db, tmp_path) == before


KILLED = """
import itertools, os, sys, graphdb
from graphdb.storage.updates import vacuum
rewrite, calls, stop = vacuum._rewrite, itertools.count(), int(sys.argv[2])
def killed(*given):
    if next(calls) == stop:
        os.kill(os.getpid(), 9)
    rewrite(*given)
vacuum._rewrite = killed
graphdb.connect(sys.argv[1]).query("VACUUM")
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("stop", [3, 100])
def test_a_killed_vacuum_is_whole_or_nothing(db: graphdb.Database, path: Path, tmp_path: Path, stop: int) -> None:
    fill(db, tmp_path)
    before, there = exported(db, tmp_path), terms(db)
    db.close()
    done = subprocess.run([sys.executable, "-c", KILLED, str(path), str(stop)], check=False)
    assert done.returncode == -9
    with graphdb.connect(path) as again:
        assert exported(again, tmp_path) == before
        assert (terms(again) == there) == (stop < 100)
        again.query("VACUUM")
        assert exported(again, tmp_path) == before


def test_a_load_reclaims_what_is_mostly_unused(db: graphdb.Database, tmp_path: Path) -> None:
    db.query("UNWIND range(1, 6000) AS i CREATE (:P {k: i, t: 'text ' + toString(i)})")
    db.query("MATCH (n:P) WHERE n.k > 3 DETACH DELETE n")
    kept = db.query("MATCH (n:P) RETURN n ORDER BY n.k")
    lines = b'<http://x/a> <http://x/p> "new" .\n<http://x/b> <http://x/p> "newer" .\n'
    before = exported(db, tmp_path)
    with pytest.raises(graphdb.LoadError):
        db.load(io.BytesIO(lines + b"what is this\n"), format="ntriples")
    assert sum(terms(db)) > 12_000  # nothing of it was kept
    assert exported(db, tmp_path) == before
    db.load(io.BytesIO(lines), format="ntriples")
    assert sum(terms(db)) < 30
    assert set(exported(db, tmp_path)) == {*before, *lines.decode().splitlines()}
    assert db.query("MATCH (n:P) RETURN n.k ORDER BY n.k").fetchall() == [(1,), (2,), (3,)]
    assert [node.properties["t"] for (node,) in kept] == ["text 1", "text 2", "text 3"]


def test_terms_are_found_by_their_hashes_afterwards(db: graphdb.Database) -> None:
    """Pages of hashes are made for large dictionaries, of the ids as they are then."""
    lines = "\n".join(f"<http://x/{i}> <http://x/p> <http://x/{i + 1}> ." for i in range(130_000))
    db.load(io.BytesIO(lines.encode()), format="ntriples")
    few = b"".join(
        b"<http://x/%d> <http://x/q> <http://x/0> .\n" % i for i in range(125_000, 125_000 + SMALL_LOOKUP // 2)
    )
    db.load(io.BytesIO(few), format="ntriples")  # makes them
    assert db.sql("SELECT count(*) FROM duckdb_tables() WHERE table_name = 'resource_key'").scalar() == 1
    db.query("MATCH (a)-[e:p]->(b) WHERE iri(a) < 'http://x/101' DELETE e")
    db.query("VACUUM")
    resources = terms(db)[0]
    db.load(io.BytesIO(few.replace(b"/q", b"/r")), format="ntriples")
    assert terms(db)[0] == resources + 1
    assert db.query("MATCH (a)-[:<http://x/r>]->(b) RETURN count(*)").scalar() == SMALL_LOOKUP // 2


STATEMENTS = (
    "CREATE (:A {k: $i})-[:R {w: $i}]->(:B {k: $i + 1})",
    "UNWIND range(1, 30) AS j CREATE (:A {k: j * $i, t: 'x' + toString(j)})",
    "MATCH (n:A) WHERE n.k % 3 = $i % 3 DETACH DELETE n",
    "MATCH (n) SET n.k = n.k + $i",
    "MATCH (a:A), (b:B) WHERE a.k = b.k - 1 CREATE (a)-[:S {of: $i}]->(b)",
    "MATCH ()-[e:S]->() WHERE e.of % 2 = 0 DELETE e",
    "MERGE (n:A {k: $i}) ON CREATE SET n.made = $i",
    "MATCH (n) DETACH DELETE n",
)


def report(db: graphdb.Database, text: str, given: dict[str, int]) -> str | None:
    """What a statement says."""
    try:
        return db.query(text, given).message
    except graphdb.GraphDBError as error:
        return str(error)


def ranked(lines: list[str]) -> list[str]:
    """Number new vertices by the order in which they were made."""
    numbers = sorted({int(number) for line in lines for number in re.findall(r"_:v(\d+)", line)})
    rank = {number: i for i, number in enumerate(numbers)}
    return sorted(re.sub(r"_:v(\d+)", lambda name: f"_:v{rank[int(name[1])]}", line) for line in lines)


@pytest.mark.parametrize("seed", range(max(HISTORIES // 4, 1)))
def test_a_database_that_is_vacuumed_says_what_another_says(seed: int, tmp_path: Path) -> None:
    """Two databases run the same statements, one of them VACUUM between them."""
    chance = random.Random(seed)
    (tmp_path / "left").mkdir()
    (tmp_path / "right").mkdir()
    with graphdb.connect() as left, graphdb.connect(tmp_path / "right.duckdb") as right:
        for _ in range(16):
            text, i = chance.choice(STATEMENTS), chance.randrange(1, 20)
            said = [report(db, text, {"i": i} if "$i" in text else {}) for db in (left, right)]
            assert said[0] == said[1]
            if chance.random() < 0.3:
                line = f'<http://x/{i}> <urn:graphdb:p> "{i}" .'.encode()
                for db in (left, right):
                    db.load(io.BytesIO(line), format="ntriples")
            if chance.random() < 0.5:
                right.query("VACUUM")
        assert ranked(exported(left, tmp_path / "left")) == ranked(exported(right, tmp_path / "right"))
        assert counted(left) == counted(right)
        text = "MATCH (a)-[e]->(b) RETURN a, e, b"
        assert ranked(rows(left.query(text))) == ranked(rows(right.query(text)))
