"""Names of any characters come back from every format; where an export spills, and what it says of that."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
from tempfile import TemporaryDirectory

import duckdb
import pyoxigraph
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

import graphdb
from graphdb.errors import StorageError
from graphdb.storage.terms import default_iri

ROUNDS = int(os.environ.get("GRAPHDB_NAMES", "2"))
"""How many graphs of random names go through every format."""

FORMATS = ("nt", "nq", "ttl", "trig", "graphml", "parquet")

ASCII = [chr(code) for code in range(128)]

SORTED = {
    "labels": "MATCH (n) UNWIND labels(n) AS name RETURN name, count(*) ORDER BY name",
    "edge labels": "MATCH ()-[r]->() RETURN type(r) AS name, count(*) ORDER BY name",
    "keys": "MATCH (n:Other) UNWIND keys(n) AS name RETURN name, count(*) ORDER BY name",
}

OTHERS = [
    *"\x80\x85\x9f\xa0é€\u2028\ud7ff\ue000\uf8ff\ufdd0\ufeff\ufff0\ufffd\ufffe\uffff😀\U0001fffe\U000e0001\U000f0000\U0010ffff"
]
"""Of all that IRIs have, and have not."""

KNOWN = ["", "\0", "a\0b", "a\0", "_:b", "_:", ":ID", ":", "x:int", "name:", "labels", "label", "type", "id", "key", "rdf", "n", "N",
         "http://x/y", "urn:graphdb:x", "%00", "a;b", " ", "name", "Name", "NAME", "a#b#c", "#", "##", "a[0]", "[", "%5B", "a%5Bb", "//", "a/../b", "?#"]  # fmt: skip

NAMES = st.sampled_from(KNOWN) | st.text(
    st.sampled_from(ASCII + OTHERS) | st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6
)


def made(names: list[str], *, plain: bool = False) -> graphdb.Database:
    """A graph in which each name is a label, a property, an edge label and, unless ``plain``, a property of edges."""
    db = graphdb.connect(device="cpu")
    written = ["`" + name.replace("`", "``") + "`" for name in names]
    for number, word in enumerate(written):
        other = written[(number + 1) % len(written)]
        value = ("1", "'x'", "true", "1.5")[number % 4]
        edge = word if plain else f"{word} {{{other}: 'v'}}"
        db.query(f"CREATE (:{word}:Known {{{word}: {value}, number: {number}}})-[:{edge}]->(:Known)")
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


@pytest.mark.parametrize("format", FORMATS)
def test_characters(tmp_path: pathlib.Path, format: str) -> None:
    """Names of every character of ASCII, and of one of each kind of others."""
    path, names = tmp_path / f"graph.{format}", []
    with graphdb.connect(device="cpu") as db:
        for character in ASCII + OTHERS:
            names.append("`" + character.replace("`", "``") + "`")
        db.query("CREATE " + ", ".join(f"(:{name})-[:{name}]->(:Other {{{name}: 1}})" for name in names))
        wanted = {what: db.query(sql).fetchall() for what, sql in SORTED.items()}
        assert [len(rows) for rows in wanted.values()] == [len(names) + 1, len(names), len(names)]
        with again(db, path) as other:
            for what, sql in SORTED.items():
                assert other.query(sql).fetchall() == wanted[what], what


@settings(max_examples=ROUNDS, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(names=st.lists(NAMES, min_size=1, max_size=6, unique=True))
@example(names=["a[b", "]", "C#", "a#b#c"])
def test_random_names(names: list[str]) -> None:
    with TemporaryDirectory() as folder, made(names) as db:
        for format in FORMATS:
            with again(db, pathlib.Path(folder) / f"graph.{format}") as other:
                assert seen(other) == seen(db), format


@settings(max_examples=ROUNDS, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(names=st.lists(NAMES, min_size=1, max_size=6, unique=True))
@example(names=["a[b", "]", "C#", "a#b#c"])
def test_other_programs(names: list[str]) -> None:
    """What another program writes of an export, in formats that only it writes, has the same names."""
    with TemporaryDirectory() as folder, made(names, plain=True) as db:
        path = pathlib.Path(folder)
        db.export(path / "graph.ttl")
        triples = [quad.triple for quad in pyoxigraph.parse(path=path / "graph.ttl")]
        formats = {"jsonld": pyoxigraph.RdfFormat.JSON_LD}
        if all(re.search(r"[A-Za-z_][\w.-]*\Z", triple.predicate.value, re.ASCII) for triple in triples):
            formats["rdf"] = pyoxigraph.RdfFormat.RDF_XML  # which makes elements of predicates
        for suffix, format in formats.items():
            pyoxigraph.serialize(triples, path / f"graph.{suffix}", format)
            with graphdb.connect(device="cpu") as other:
                other.load(path / f"graph.{suffix}")
                assert seen(other) == seen(db), suffix


def test_names_of_older_files(tmp_path: pathlib.Path) -> None:
    """Files of version 6 have brackets in IRIs: they get those of today, and their names mean the same."""
    path = tmp_path / "old.duckdb"
    names = ["a[b", "a b", "C#", "a#b#c", "%5B", "\x85", "[taken]"]
    with graphdb.connect(path, device="cpu") as db:
        for name in names:
            db.query(f"CREATE (:`{name}`:Known {{`{name}`: 1}})-[:`{name}` {{`{name}`: 2}}]->(:Known)")
        expected = seen(db)
    with duckdb.connect(path) as old:
        for name in ("a[b", "a#b#c", "\x85"):
            changed = "UPDATE _graphdb.resource SET iri = 'urn:graphdb:' || $name WHERE iri = 'urn:graphdb:' || url_encode($name)"
            assert old.execute(changed, {"name": name}).fetchall() == [(1,)]
        old.execute("INSERT INTO _graphdb.resource SELECT max(id) + 1, 'urn:graphdb:[taken]' FROM _graphdb.resource")
        old.execute("INSERT INTO _graphdb.meta VALUES ('resource_key', 'wanted')")
        old.execute("UPDATE _graphdb.meta SET value = '6' WHERE key = 'schema_version'")
    with graphdb.connect(path, device="cpu") as db:
        assert seen(db) == expected
        with again(db, tmp_path / "graph.ttl") as other:
            assert seen(other) == expected
        db.query("MATCH (a:`a[b`) SET a.`a[b` = 5")
        assert db.query("MATCH (a) WHERE a.`a[b` = 5 RETURN count(*)").scalar() == 1
    with duckdb.connect(path) as new:
        found = {iri for (iri,) in new.execute("SELECT iri FROM _graphdb.resource").fetchall()}
        assert not new.execute("SELECT 1 FROM _graphdb.meta WHERE key = 'resource_key'").fetchall()
    assert {default_iri(name) for name in names} | {"urn:graphdb:[taken]"} <= found


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
