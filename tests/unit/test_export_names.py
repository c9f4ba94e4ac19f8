"""Names of any characters come back from every format; where an export spills, and what it says of that."""

from __future__ import annotations

import os
import pathlib
import random
import subprocess
import sys

import pytest

import graphdb
from graphdb.errors import StorageError

ROUNDS = int(os.environ.get("GRAPHDB_NAMES", "2"))
"""How many graphs of random names go through every format."""

FORMATS = ("nt", "nq", "ttl", "trig", "graphml", "parquet")

CHARACTERS = "\0\x01\t\n\r\x1f\x7f\x85 aAbB019.:;,_-%/\\\"'`<>{}()^|&#?=@$*~é€\u2028\ufeff\ufffe\uffff😀"
"""Without brackets, which our own namespace does not escape and the parser of Turtle refuses."""

KNOWN = ["", "\0", "a\0b", "a\0", "_:b", "_:", ":ID", ":", "x:int", "name:", "labels", "label", "type", "id", "key", "rdf", "n", "N",
         "http://x/y", "urn:graphdb:x", "%00", "a;b", " ", "name", "Name", "NAME"]  # fmt: skip


def name(chance: random.Random) -> str:
    if chance.random() < 0.5:
        return chance.choice(KNOWN)
    return "".join(chance.choice(CHARACTERS) for _ in range(chance.randrange(1, 6)))


def made(names: list[str]) -> graphdb.Database:
    """A graph in which each name is a label, a property, an edge label and a property of edges."""
    db = graphdb.connect(device="cpu")
    written = ["`" + name.replace("`", "``") + "`" for name in names]
    for number, word in enumerate(written):
        other = written[(number + 1) % len(written)]
        value = ("1", "'x'", "true", "1.5")[number % 4]
        db.query(f"CREATE (:{word}:Known {{{word}: {value}, number: {number}}})-[:{word} {{{other}: 'v'}}]->(:Known)")
    return db


def seen(db: graphdb.Database) -> list[tuple[object, ...]]:
    """The graph without the names of its vertices, which have none."""
    vertices = db.query("MATCH (a) RETURN labels(a), properties(a)").fetchall()
    edges = db.query("MATCH (a)-[r]->(b) RETURN properties(a), type(r), properties(r)").fetchall()
    told = [(sorted(labels), sorted(properties.items())) for labels, properties in vertices]
    told += [(sorted(start.items()), type, sorted(properties.items())) for start, type, properties in edges]
    return sorted(told, key=repr)


def again(db: graphdb.Database, path: pathlib.Path) -> graphdb.Database:
    db.export(path)
    other = graphdb.connect(device="cpu")
    other.load(f"{path}/*" if path.suffix == ".parquet" else path)
    return other


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("names", [["a\0b", "a"], ["", "x"], ["\0", "\0\0"], ["_:b", "b"], ["name", "Name"]], ids=repr)
def test_names(tmp_path: pathlib.Path, names: list[str], format: str) -> None:
    with made(names) as db, again(db, tmp_path / f"graph.{format}") as other:
        assert seen(other) == seen(db)


def test_random_names(tmp_path: pathlib.Path) -> None:
    seed = int(os.environ.get("GRAPHDB_SEED", "16"))
    for number in range(ROUNDS):
        chance = random.Random(seed * 1000 + number)
        names = sorted({name(chance) for _ in range(chance.randrange(1, 7))})
        with made(names) as db:
            for format in FORMATS:
                with again(db, tmp_path / f"{number}.{format}") as other:
                    assert seen(other) == seen(db), (names, format)


# --- where it spills


def test_the_directory_is_made(tmp_path: pathlib.Path) -> None:
    for number, format in enumerate(FORMATS):
        spill = tmp_path / f"spill{number}" / "deeper"
        with graphdb.connect(device="cpu", spill=spill) as db:
            db.query("CREATE (:A {x: 1})")
            assert db.export(tmp_path / f"graph.{format}") > 0
        assert not spill.exists() or not [*spill.iterdir()]


def test_errors_name_the_right_path(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_text("")
    with graphdb.connect(device="cpu", spill=tmp_path / "file" / "spill") as db:
        db.query("CREATE (:A {x: 1})")
        with pytest.raises(
            StorageError, match=r"cannot write to '.*/file/spill'.*\nhint: choose another with spill="
        ) as told:
            db.export(tmp_path / "graph.nt")
        assert "graph.nt" not in str(told.value)
    with graphdb.connect(device="cpu", spill=tmp_path / "spill") as db:
        db.query("CREATE (:A {x: 1})")
        for format in FORMATS:
            with pytest.raises(StorageError, match=rf"cannot write '.*/missing/graph.{format}'") as told:
                db.export(tmp_path / "missing" / f"graph.{format}")
            assert "spill" not in str(told.value)


FULL = """
import resource, signal, sys
import graphdb
db = graphdb.connect(device="cpu", spill=sys.argv[1] + "/spill")
db.sql("CREATE TABLE t AS SELECT repeat('x', 1000) || range AS x FROM range(2000)")
db.load(db.sql('SELECT x AS ":ID" , x AS text FROM t').to_arrow())
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 19, 1 << 19))
try:
    db.export(sys.argv[1] + "/graph.nt.zst")
except graphdb.StorageError as error:
    print(error)
"""


def test_a_full_disk_where_it_spills(tmp_path: pathlib.Path) -> None:
    """What is written would fit, compressed as it is: what is spilled does not."""
    ran = subprocess.run([sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, check=True)
    assert f"cannot write to '{tmp_path}/spill': File too large" in ran.stdout, ran.stdout + ran.stderr
    assert "graph.nt" not in ran.stdout
