"""Formats: whatever a graph is written in, the same graph is loaded; named graphs, edges with properties."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import pathlib
import sys
import threading
from typing import Any

import pytest

import graphdb
from graphdb.common.errors import LoadError
from graphdb.storage import zstd
from graphdb.storage.loaders.formats import sniff
from tests.storage.loaders.files import PACK, RDF, RDF_HEAD, XSD, refused, rows, write

pytestmark = pytest.mark.usefixtures("in_a_folder")

NT = f'<e:a> <e:p> <e:b> .\n<e:a> <e:n> "1"^^<{XSD}integer> .\n<e:a> <e:l> "x"@en .\n'
SAME = {
    "a.nt": NT,
    "a.nq": NT,
    "a.ttl": '@prefix e: <e:> .\ne:a e:p e:b ;\n  e:n 1 ; e:l "x"@en .\n',
    "a.trig": '@prefix e: <e:> .\n{ e:a e:p e:b ; e:n 1 ; e:l "x"@en }\n',
    "a.rdf": '<?xml version="1.0"?>\n<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="e:">\n'
    f'<rdf:Description rdf:about="e:a"><e:p rdf:resource="e:b"/><e:n rdf:datatype="{XSD}integer">1</e:n>'
    '<e:l xml:lang="en">x</e:l></rdf:Description></rdf:RDF>',
    "a.jsonld": '{"@id": "e:a", "e:p": {"@id": "e:b"}, "e:n": 1, "e:l": {"@value": "x", "@language": "en"}}',
}
ROWS = {
    ("e:a", "e:p", "e:b", None, None),
    ("e:a", "e:n", "1", XSD + "integer", None),
    ("e:a", "e:l", "x", "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString", "en"),
}


@pytest.mark.parametrize(
    ("name", "packed"), [*((name, "") for name in SAME), *(("a.nt", packed) for packed in PACK), ("a.ttl", ".gz")]
)
def test_all_formats_say_the_same(db: Any, name: str, packed: str) -> None:
    """By its name, and by its content where the name says nothing."""
    data = PACK.get(packed, bytes)(SAME[name].encode())
    db.load(write(name + packed, data))
    assert rows(db) == ROWS
    if name != "a.nq":  # without a graph's name it is N-Triples
        with graphdb.connect() as other:
            other.load(write("data", data))
            assert rows(other) == ROWS


@pytest.mark.parametrize(("text", "name"), [
    ("# a comment\n1\t2\n3\t4\n", "edge list"), ("t 2 1\nv 0 1 1\n", "labelled graph"), ("PAR1", "Parquet"),
    (":ID,name\n1,x\n", "CSV"), ("<e:a> <e:b> <e:c> <e:g> .", "N-Quads"), ("<e:a> <e:b> <e:c> ; <e:d> <e:e> .", None),
    ("PREFIX e: <e:>\nGRAPH e:g { e:a e:b e:c }", "TriG"), ("@prefix e: <e:> . e:g { e:a e:b e:c }", "TriG"), ('{"a": 1}', None), ("<?xml version='1.0'?><html/>", None),
    ("", None),
])  # fmt: skip
def test_formats_are_recognised_by_content(text: str, name: str | None) -> None:
    found = sniff(text.encode())
    assert (found and found.name) == name


def test_stated_format_wins(db: Any) -> None:
    db.load(write("a.txt", SAME["a.ttl"]), format="Turtle")
    assert rows(db) == ROWS


@pytest.mark.parametrize("name", SAME)
def test_marks_and_line_ends_of_other_systems(db: Any, name: str) -> None:
    """A byte order mark is no part of a text, and lines may end as on Windows."""
    db.load(write(name, b"\xef\xbb\xbf" + SAME[name].replace("\n", "\r\n").encode()))
    assert rows(db) == ROWS
    with graphdb.connect() as other:
        other.load(write(name + ".zst", zstd.compress(b"\xef\xbb\xbf" + SAME[name].encode())))
        assert rows(other) == ROWS


def test_names_that_say_otherwise(db: Any) -> None:
    """The first bytes say how a file is packed, whatever it is called; what is elsewhere is not fetched."""
    text = b"<e:a> <e:b> <e:c> .\n"
    for number, pack in enumerate((bytes, gzip.compress, zstd.compress, bz2.compress, lzma.compress)):
        for suffix in ("", ".gz", ".zst", ".bz2", ".xz"):
            assert db.load(write(f"{number}.nt{suffix}", pack(text))).triples == 1
    assert db.load(pathlib.Path("0.nt").absolute().as_uri()).triples == 1
    with graphdb.connect() as empty:
        refused(empty, "https://e/x.nt", "nothing is fetched")
        refused(empty, write("a.nt", "<!DOCTYPE html><html>404</html>"), "this is a web page", (1, 10))


def test_standard_input_and_pipes(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for data in (SAME["a.ttl"].encode(), gzip.compress(NT.encode())):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        db.load("-")
        assert rows(db) == ROWS
    os.mkfifo("pipe.nt")
    writer = threading.Thread(target=lambda: write("pipe.nt", NT + '<e:a> <e:p> "cut'))
    writer.start()
    with pytest.raises(LoadError, match="the literal has no closing"):
        db.load("pipe.nt")
    writer.join()
    assert rows(db) == ROWS


def test_prefixes_and_base_are_taken_over(db: Any) -> None:
    db.query("PREFIX mine: <http://mine/>")
    db.load(write("a.ttl", "@prefix f: <http://f/> . @prefix mine: <http://other/> . <x> f:p <#y> ."))
    assert db.prefixes()["f"] == "http://f/"
    assert db.prefixes()["mine"] == "http://mine/", "what is declared stays"
    here = pathlib.Path("a.ttl").absolute().as_uri()
    assert rows(db) == {(here[: -len("a.ttl")] + "x", "http://f/p", here + "#y", None, None)}
    with graphdb.connect() as other:
        other.load("a.ttl", base="http://base/dir/file")
        assert rows(other) == {("http://base/dir/x", "http://f/p", "http://base/dir/file#y", None, None)}


def test_named_graphs_are_one_graph(db: Any) -> None:
    db.load(write("a.nq", "<e:s> <e:p> <e:o> <e:g> .\n<e:s> <e:p> <e:o> .\n<e:s> <e:p> <e:x> _:h .\n"))
    assert {row[2] for row in rows(db)} == {"e:o", "e:x"}
    graphs = db.sql("SELECT coalesce(iri, '') FROM _graphdb.quad LEFT JOIN _graphdb.resource ON graph = id").fetchall()
    assert sorted(graphs) == [("",), ("_:f0_h",), ("e:g",)]
    db.load("a.nq")
    assert db.sql("SELECT count(*) FROM _graphdb.quad").scalar() == 3 + 1, "another blank node is another graph"


def test_annotations_are_edge_properties(db: Any) -> None:
    db.load(write("a.ttl", "@prefix e: <e:> . e:a e:knows e:b {| e:since 2020 |} ~ e:second {| e:by e:c |} ."))
    edges = db.sql("SELECT ordinal FROM _graphdb.edge ORDER BY ALL").fetchall()
    assert edges == [(0,), (1,)], "two reifiers: parallel edges"
    properties = "SELECT k.iri, v.lexical FROM _graphdb.edge_property JOIN _graphdb.resource AS k ON k.id = key"
    assert db.sql(properties + " JOIN _graphdb.literal AS v ON v.id = value").fetchall() == [("e:since", "2020")]
    assert rows(db) == {("e:a", "e:knows", "e:b", None, None), ("e:second", "e:by", "e:c", None, None)}
    assert db.query("MATCH ()-[e:knows]->() RETURN e.since, e.e:since ORDER BY e.since").fetchall() == [
        (2020, 2020), (None, None)
    ]  # fmt: skip
    # Interpreted, row by row:
    assert db.query("MATCH ()-[e:knows {since: 2020}]->() SET e.since = 7 RETURN e.since, keys(e)").fetchall() == [
        (7, ["e:since"])
    ]
    db.load(write("b.ttl", "@prefix e: <e:> . e:second e:note 'later' ."))
    assert db.sql("SELECT count(*) FROM _graphdb.edge_property").scalar() == 2, "a reifier that is known"


def test_triple_terms_are_vertices(db: Any) -> None:
    """But for what rdf:reifies says: that is an edge, which may lead to one."""
    a = "<<( <e:a> <e:b> <e:c> )>>"
    lines = (f"_:x <e:says> <<(_:x<e:b>\"c\\u000a\"@EN)>> .\n<e:a> <e:says> <<(<e:a> <e:b> {a} )>> .\n_:x <e:thinks> {a} .\n"
             f"<e:r> <{RDF}reifies> <<( <e:a> <e:says> {a} )>> .\n<e:r> <e:since> 'now' .\n")  # fmt: skip
    db.load([write("a.nt", lines.replace("'", '"')), write("b.nt", lines.splitlines()[1])])
    says = db.query("MATCH (a)-[:says]->(x) RETURN iri(a), x ORDER BY iri(x)").fetchall()
    first, second = '<<( _:f0_x <e:b> "c\\n"@en )>>', f"<<( <e:a> <e:b> {a} )>>"
    assert {(start, str(end)) for start, end in says} == {("_:f0_x", first), ("e:a", second)}
    assert db.query("MATCH (x) WHERE iri(x) = $a MATCH (y)-[:thinks]->(x) RETURN iri(y)", a=a).scalar() == "_:f0_x"
    edge = "SELECT iri FROM _graphdb.edge_property JOIN _graphdb.resource ON id = object"
    assert db.sql(edge).fetchall() == [(a,)]
    assert db.sql("SELECT object FROM triples WHERE predicate = 'e:thinks'").scalar() == a
    db.query("MATCH (x) WHERE iri(x) = $a SET x.n = 1", a=a)
    with pytest.raises(graphdb.GraphDBError, match="only be an object"):
        db.export("b.ttl")


def test_bad_triple_terms_are_skipped(db: Any) -> None:
    """The other triples are loaded, and the error has its place."""
    line = f"<e:r> <{RDF}reifies> <<( <e:a> <e:b> <<( <e:a> <e:b> <e:c> )>> ."
    refused(db, write("a.nt", line), "after the triple term", (1, len(line)))
    write("a.nt", f"<e:a> <e:b> <e:c> .\n{line}\n<e:a> <e:p> <<( <e:a> 'b' <e:c> )>> .\n")
    assert db.load("a.nt", on_error="skip").errors == 2
    assert rows(db) == {("e:a", "e:b", "e:c", None, None)}
    assert db.sql('SELECT line, "column" FROM load_errors ORDER BY ALL').fetchall() == [(2, len(line)), (3, 23)]


@pytest.mark.parametrize("suffix", ["nt", "ttl"])
def test_triple_terms_are_not_too_deep(db: Any, suffix: str) -> None:
    for depth, more in ((1_000, False), (1_001, True)):
        file = write(
            f"a{depth}.{suffix}", "<e:a> <e:b> " + "<<( <e:a> <e:b> " * depth + "<e:c>" + " )>>" * depth + " ."
        )
        if more:
            with pytest.raises(LoadError, match="within each other more than 1,000 deep"):
                db.load(file)
        else:
            db.load(file)
            assert db.export("a.trig") == 1


def test_entities_that_grow_are_refused(db: Any) -> None:
    """A few hundred bytes that stand for a hundred million."""
    entities = '<!ENTITY a "aaaaaaaaaa">' + "".join(
        f'<!ENTITY {name} "{f"&{before};" * 10}">' for before, name in zip("abcdefg", "bcdefgh", strict=True)
    )
    rdf = f"<!DOCTYPE r [{entities}]>{RDF_HEAD}<rdf:Description rdf:about='x:1'><n>&h;</n></rdf:Description></rdf:RDF>"
    graphml = f"<!DOCTYPE graphml [{entities}]><graphml><graph><node id='&h;'/></graph></graphml>"
    for name, text in (("a.rdf", rdf), ("a.graphml", graphml)):
        with pytest.raises(LoadError, match="amplification"):
            db.load(write(name, text))
    assert not rows(db)


def test_open_files(db: Any) -> None:
    """What is open as bytes is read from where it stands, and stays open; its content tells what it is."""
    with open(write("a.data", "oops\n<e:a> <e:b> <e:c> .\n"), "rb") as file:
        file.readline()
        read = db.load([file, io.BytesIO(gzip.compress(b":ID,n\n1,2\n")), write("a.nt", "<e:a> <e:b> <e:d> .")])
        assert (read.triples, read.files, file.closed) == (3, 3, False)
    with graphdb.connect() as empty:
        refused(empty, io.StringIO("<e:a> <e:b> <e:c> ."), "open as text")
        refused(empty, io.BytesIO(b"<a> <e:b> <e:c> ."), "relative IRIs need a base", (1, 1), format="ttl")
        refused(empty, {":ID": [1]}, "an object of type dict")
        for columns in ({"a": 5}, [5], ":ID"):
            refused(empty, "a.nt", "columns is", columns=columns)
