"""Formats: whatever a graph is written in, the same graph is loaded; what is wrong is told with its place."""

from __future__ import annotations

import bz2
import datetime
import decimal
import gzip
import io
import lzma
import os
import pathlib
import subprocess
import sys
import threading
from typing import Any

import duckdb
import pytest
import zstandard

import graphdb
from graphdb.common.errors import LoadError
from graphdb.storage.loaders import streams
from graphdb.storage.loaders.formats import sniff

OWN = "urn:graphdb:"
XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"

RDF_HEAD = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://x/">\n'
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
PACK = {".gz": gzip.compress, ".zst": zstandard.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


@pytest.fixture
def db() -> Any:
    with graphdb.connect() as database:
        yield database


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(name: str, text: str | bytes) -> str:
    pathlib.Path(name).write_bytes(text.encode() if isinstance(text, str) else text)
    return name


def rows(db: Any) -> set[Any]:
    return set(db.sql("FROM triples").fetchall())


def refused(
    db: Any, data: Any, message: str, place: tuple[int | None, int | None] = (None, None), **how: Any
) -> LoadError:
    with pytest.raises(LoadError) as caught:
        db.load(data, **how)
    assert message in str(caught.value)
    assert (caught.value.line, caught.value.column) == place
    assert not rows(db), "nothing is kept"
    assert "load_errors" not in db.tables()
    return caught.value


# --- which format ---


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
def test_content_tells(text: str, name: str | None) -> None:
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
        other.load(write(name + ".zst", zstandard.compress(b"\xef\xbb\xbf" + SAME[name].encode())))
        assert rows(other) == ROWS


def test_names_that_say_otherwise(db: Any) -> None:
    """The first bytes say how a file is packed, whatever it is called; what is elsewhere is not fetched."""
    text = b"<e:a> <e:b> <e:c> .\n"
    for number, pack in enumerate((bytes, gzip.compress, zstandard.compress, bz2.compress, lzma.compress)):
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


# --- named graphs, edges with properties ---


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
    """The rest is kept, and the place is told."""
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


# --- tables ---


def test_node_and_edge_tables(db: Any) -> None:
    write("people.csv", "id:ID(P),name,age:int,:LABEL,tags:string[],born:date\n"
          '007,"Ada ""L"" \\, Byron",36,Person;Author,a;b,1815-12-10\n2,Bo,,Person,,\n"x y",,,,,\n')  # fmt: skip
    write("knows.csv", ":START_ID(P),:END_ID(P),:TYPE,since:int\n007,2,knows,1999\n007,2,knows,2000\n2,x y,likes,\n")
    db.load("*.csv")
    a, b, c = (OWN + f"P/{name}" for name in ("007", "2", "x%20y"))
    text = XSD + "string"
    assert rows(db) == {
        (a, TYPE, OWN + "Person", None, None), (a, TYPE, OWN + "Author", None, None), (b, TYPE, OWN + "Person", None, None),
        (a, OWN + "id", "007", text, None), (b, OWN + "id", "2", text, None), (c, OWN + "id", "x y", text, None),
        (a, OWN + "name", 'Ada "L" \\, Byron', text, None), (b, OWN + "name", "Bo", text, None),
        (a, OWN + "age", "36", XSD + "integer", None), (a, OWN + "born", "1815-12-10", XSD + "date", None),
        (a, OWN + "tags", "a", text, None), (a, OWN + "tags", "b", text, None),
        (a, OWN + "knows", b, None, None), (b, OWN + "likes", c, None, None),
    }  # fmt: skip
    two = db.query(
        "MATCH (a:Person {name: 'Bo'})<-[k:knows]-(b:Author) RETURN b.age, k.since ORDER BY k.since"
    ).fetchall()
    assert two == [(36, 1999), (36, 2000)]
    since = "SELECT v.lexical FROM _graphdb.edge_property JOIN _graphdb.literal AS v ON v.id = value ORDER BY ALL"
    assert db.sql(since).fetchall() == [("1999",), ("2000",)]


def test_mapped_columns(db: Any) -> None:
    write("flights.csv", "from,to,km\nFRA,LIS,1870\n")
    columns = {"from": ":START_ID(Airport)", "to": ":END_ID(Airport)", "km": "http://x/km:int"}
    db.load("flights.csv", columns=columns, type="flight")
    assert (OWN + "Airport/FRA", OWN + "flight", OWN + "Airport/LIS", None, None) in rows(db)
    assert "http://x/km" in {iri for (iri,) in db.sql("SELECT iri FROM _graphdb.resource").fetchall()}


def test_data_frames_and_parquet_say_the_same() -> None:
    """One table as pandas, Polars and Arrow, from Parquet, and as a result of ours."""
    pandas, polars, pa = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    import pyarrow.parquet

    table = pa.table({":ID": ["a", "b"], "n": [1, None], "x": [1.5, float("inf")], "t": [True, False]})
    pyarrow.parquet.write_table(table, "t.parquet")
    expected = None
    for data in (table, pandas.DataFrame(table.to_pandas()), polars.from_arrow(table), "t.parquet"):
        with graphdb.connect() as db:
            db.load(data, label="Thing")
            found = {(s, p, o if p != OWN + "n" else str(int(float(o))), *rest[1:]) for s, p, o, *rest in rows(db)}
            expected = expected or found
            assert found == expected
    assert len(expected or ()) == 7


def test_networkx(db: Any) -> None:
    networkx = pytest.importorskip("networkx")
    graph = networkx.MultiDiGraph()
    graph.add_node(1, label="Person", name="x", wide=10**30, wider=10**50)
    graph.add_edge(1, 2, type="knows", since=3)
    graph.add_edge(1, 2, type="knows")
    graph.add_node("alone")
    db.load(graph)
    assert (OWN + "1", OWN + "knows", OWN + "2", None, None) in rows(db)
    assert (OWN + "1", OWN + "wide", str(10**30), XSD + "integer", None) in rows(db)
    assert (OWN + "1", OWN + "wider", str(10**50), XSD + "string", None) in rows(db), (
        "no integer of DuckDB's is as wide"
    )
    assert {row[0] for row in rows(db)} == {OWN + "1", OWN + "2", OWN + "alone"}
    assert db.sql("SELECT count(*) FROM _graphdb.edge").scalar() == 2


def test_attributes_of_any_type(db: Any) -> None:
    """Several types are several, what is no value is none, and vertices whose names are one text are refused."""
    networkx, pandas = pytest.importorskip("networkx"), pytest.importorskip("pandas")
    graph = networkx.Graph()
    for node, value in enumerate([1, "1", True, {"x"}, pandas.NaT, pandas.NA, None, 2**70, 1 + 2j]):
        graph.add_node(node, v=value)
    graph.add_node(9, v=pandas.Timestamp("2020-01-01", tz="Europe/Berlin"))
    db.load(graph)
    assert {row[2:4] for row in rows(db) if row[1] == OWN + "v"} == {
        ("1", XSD + "integer"), ("1", XSD + "string"), ("true", XSD + "boolean"), ("x", XSD + "string"),
        (str(2**70), XSD + "integer"), ("(1+2j)", XSD + "string"), ("2019-12-31T23:00:00Z", XSD + "dateTime"),
    }  # fmt: skip
    graph.add_node("9")
    with graphdb.connect() as empty:
        refused(empty, graph, "the vertices 9 and '9' would be one")


def test_attributes_of_networks_are_no_headers(db: Any) -> None:
    """Only tables say types and roles in names; in a network a name is a name."""
    networkx = pytest.importorskip("networkx")
    graph = networkx.DiGraph()
    graph.add_node("a", **{"x:int": "seven", ":ID": "b", "Name": 1, "name": 2, "n:IGNORE": 3})
    graph.add_edge("a", "b", **{"w:float": "heavy"})
    db.load(graph, label="Thing", type="knows", columns={"Name": "age:int"})
    text = XSD + "string"
    assert {row[1:4] for row in rows(db) if row[0] == OWN + "a"} == {
        ("x:int", "seven", text), (OWN + ":ID", "b", text), (OWN + "age", "1", XSD + "integer"),
        (OWN + "name", "2", XSD + "integer"), ("n:IGNORE", "3", XSD + "integer"),
        (TYPE, OWN + "Thing", None), (OWN + "knows", OWN + "b", None),
    }  # fmt: skip
    assert db.query("MATCH (a)-[e:knows]->(b) RETURN e.<w:float>").scalar() == "heavy"
    back = db.to_networkx()
    assert back.nodes["a"] == {"x:int": "seven", ":ID": "b", "age": 1, "name": 2, "n:IGNORE": 3, "labels": ["Thing"]}


def test_frames_say_what_their_files_say() -> None:
    """Headers of a frame, types included, are read as those of the file that it comes from."""
    pandas, polars = (pytest.importorskip(name) for name in ("pandas", "polars"))
    write("a.csv", ":ID(P),age:int,tags:string[],Name,name,:LABEL\n1,36,a;b,x,y,Person;Author\n2,,,z,,\n")
    expected = None
    for data in (
        "a.csv",
        pandas.read_csv("a.csv", dtype=str),
        polars.scan_csv("a.csv"),
        polars.read_csv("a.csv").to_arrow(),
    ):
        with graphdb.connect() as db:
            db.load(data)
            expected = expected or rows(db)
            assert rows(db) == expected
    assert {(OWN + "P/1", OWN + name, value) for name, value in (("Name", "x"), ("name", "y"), ("tags", "b"))} <= {
        row[:3] for row in expected or ()
    }


@pytest.mark.parametrize(
    "thing", [5, None, b"a.nt", [1.5], {"a": 1}.keys(), [[1]], object()], ids=lambda thing: type(thing).__name__
)
def test_what_is_nothing_to_load(db: Any, thing: Any) -> None:
    refused(db, thing, "there is no file 'a'" if isinstance(thing, type({}.keys())) else "cannot be loaded")


def test_frames_that_are_none(db: Any) -> None:
    pandas = pytest.importorskip("pandas")
    refused(db, pandas.DataFrame({":ID": ["a", "b"], "o": [1, "x"]}), "Conversion failed")
    refused(db, pandas.Series([1]), "Series")
    refused(db, pandas.DataFrame([["a", 1, 2]], columns=[":ID", "o", "o"]), "Duplicate column names")


def test_intervals_are_durations(db: Any) -> None:
    table = duckdb.sql(
        "SELECT unnest(['a', 'b', 'c', 'd']) AS \":ID\", unnest([INTERVAL '1 year 2 months 3 days 04:05:06.5',"
        " INTERVAL '-90 minutes', INTERVAL '0 days', INTERVAL '1 month -1 day']) AS x"
    )
    db.load(table.to_arrow_table())
    assert {row[0][-1]: row[2:4] for row in rows(db)} == {
        "a": ("P14M3DT14706.500000S", XSD + "duration"), "b": ("-P0M0DT5400.000000S", XSD + "duration"),
        "c": ("P0M0DT0.000000S", XSD + "duration"), "d": ("1 month -1 day", XSD + "string"),
    }  # fmt: skip
    assert db.query("MATCH (v <urn:graphdb:b>) RETURN v.x + duration('PT2H') = duration('PT30M')").scalar() is True


def test_one_mapping_for_several_tables(db: Any) -> None:
    """A mapping names the columns of all tables together; one that none of them has is a mistake."""
    write("people.csv", "person,name\n1,Ada\n")
    write("knows.csv", "from,to\n1,2\n")
    columns = {"person": ":ID", "from": ":START_ID", "to": ":END_ID"}
    db.load("*.csv", columns=columns, type="knows")
    assert {row[:3] for row in rows(db)} == {
        (OWN + "1", OWN + "name", "Ada"), (OWN + "1", OWN + "knows", OWN + "2"),
    }  # fmt: skip
    with graphdb.connect() as other:
        refused(other, ["people.csv", "knows.csv"], "no column 'nmae'", columns={**columns, "nmae": "n"}, type="knows")
        refused(other, "people.csv", "no column 'persn'", columns={"persn": ":ID"})


def test_what_is_stated_is_read_as_it_is(db: Any) -> None:
    """Casts that would change a value are errors; what text says is kept: zones, digits, clocks in UTC."""
    head = ":ID,i:int,b:boolean,t:time,at:datetime,local:localdatetime,d:duration,f:float\n"
    write("a.csv", head + "1, 7 , TRUE ,10:00+02,2020-01-01T10:00:00,2020-01-01 10:00:00.123456789,P1Y2M,1e3\n")
    db.load("a.csv")
    assert {row[1:4] for row in rows(db)} == {
        (OWN + "i", "7", XSD + "integer"), (OWN + "b", "true", XSD + "boolean"), (OWN + "t", "10:00:00+02:00", XSD + "time"),
        (OWN + "at", "2020-01-01T10:00:00Z", XSD + "dateTime"), (OWN + "f", "1000.0", XSD + "double"),
        (OWN + "local", "2020-01-01T10:00:00.123456789", XSD + "dateTime"), (OWN + "d", "P1Y2M", XSD + "duration"),
    }  # fmt: skip
    for header, value in {"i:int": "0x10", "i:long": "1_000", "i:byte": "1e3", "f:float": "1_0", "d:date": "2020-01-01T10:00",
                          "b:boolean": "ja", "t:time": "25:00", "d:duration": "1 year", "l:int[]": "1;2.5"}.items():  # fmt: skip
        with graphdb.connect() as empty:
            refused(empty, write("b.csv", f":ID,{header}\n1,{value}\n"), "that is no", (2, 3))
    program = (
        "import graphdb; db = graphdb.connect(); db.load('a.csv'); print(db.query('MATCH (n) RETURN n.at').scalar())"
    )
    elsewhere = {**os.environ, "TZ": "America/New_York"}
    assert subprocess.check_output([sys.executable, "-c", program], env=elsewhere, text=True).startswith(
        "2020-01-01 10:00"
    )


def test_types_of_frames(db: Any) -> None:
    """Whatever Arrow's types are: nothing is rounded, and years before our era count."""
    pa = pytest.importorskip("pyarrow")
    day = datetime.date(2020, 1, 1)
    table = {
        ":ID": pa.array([1.0, None, 2.5]).cast(pa.float64()),
        "ns": pa.array([1577836800123456789] * 3, pa.timestamp("ns")),
        "zoned": pa.array([1577836800123456789] * 3, pa.timestamp("ns", "Asia/Tokyo")),
        "early": pa.array([-100_000_000_000] * 3, pa.timestamp("s")),
        "day": pa.array([-800_000] * 3, pa.date32()), "clock": pa.array([3723000000001] * 3, pa.time64("ns")),
        "pair": pa.array([[1, 2]] * 3, pa.list_(pa.int64(), 2)), "nested": pa.array([[[1], [2, 3]]] * 3),
        "texts": pa.array([["", " x", None]] * 3), "half": pa.array([1.5] * 3, pa.float32()).cast(pa.float16()),
        "whole:int": pa.array([3.0] * 3), "date:date": pa.array([datetime.datetime(2020, 1, 1)] * 3),
    }  # fmt: skip
    assert db.load(pa.table(table), on_error="skip").errors == 1
    assert {row[1:4] for row in rows(db) if row[0] == OWN + "1"} == {
        (OWN + "ns", "2020-01-01T00:00:00.123456789", XSD + "dateTime"),
        (OWN + "zoned", "2020-01-01T00:00:00.123456789Z", XSD + "dateTime"),
        (OWN + "early", "-1199-02-15T14:13:20", XSD + "dateTime"), (OWN + "day", "-0221-09-04", XSD + "date"),
        (OWN + "clock", "01:02:03.000000001", XSD + "time"), (OWN + "pair", "1", XSD + "integer"),
        (OWN + "pair", "2", XSD + "integer"), (OWN + "nested", "[1]", RDF + "JSON"), (OWN + "nested", "[2,3]", RDF + "JSON"),
        (OWN + "texts", "", XSD + "string"), (OWN + "texts", " x", XSD + "string"), (OWN + "half", "1.5", XSD + "double"),
        (OWN + "whole", "3", XSD + "integer"), (OWN + "date", "2020-01-01", XSD + "date"),
    }  # fmt: skip
    assert {row[0] for row in rows(db)} == {OWN + "1", OWN + "2.5"}
    pandas = pytest.importorskip("pandas")
    with graphdb.connect() as empty:
        refused(empty, pa.table({":ID": [1], "n:int": [4.7]}), "that is no BIGINT: 4.7", (1, None))
        refused(empty, pa.table({":ID": [1], "d:date": [datetime.datetime(2020, 1, 1, 10)]}), "no DATE", (1, None))
        wide = pa.array([decimal.Decimal(1)], pa.decimal256(50))
        refused(empty, pa.table({":ID": [1], "d": wide}), "column 'd' has the type")
        months = pandas.period_range("2020", periods=1, freq="M")
        refused(empty, pandas.DataFrame({":ID": [1], "p": months}), "column 'p' has the type")
    frame = pandas.DataFrame({":ID": [7, 8, 9], "day": [day] * 3})
    assert db.load(frame[frame[":ID"] != 8]).new_triples == 2, "the numbers of rows are no property"


def test_streams_of_tables(db: Any) -> None:
    """What can be read once, or is read as it is needed: readers, data sets, lazy frames, relations of DuckDB."""
    pa, dataset, duckdb = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.dataset", "duckdb"))
    table = pa.table({":ID": ["a", "b", "b"], "n:int": [1, 2, 3]})
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(1))
    for thing in (reader, dataset.dataset(table), dataset.dataset(table).scanner(), duckdb.from_arrow(table)):
        with graphdb.connect() as other:
            assert other.load(thing).new_triples == 3
            assert {row[2] for row in rows(other)} == {"1", "2", "3"}


def test_edge_lists_and_labelled_graphs(db: Any) -> None:
    db.load(write("a.txt", "# from to\n0\t1\n1 2\n\n0,2\n"), type="cites")
    assert rows(db) == {(OWN + s, OWN + "cites", OWN + o, None, None) for s, o in ("01", "12", "02")}
    with graphdb.connect() as other:
        other.load(write("g.graph", "t 3 2\nv 0 1 1\nv 1 2 1\nv 2 1 1\ne 0 1\ne 1 2 7\n"))
        assert rows(other) == {
            *((OWN + v, TYPE, OWN + label, None, None) for v, label in (("0", "L1"), ("1", "L2"), ("2", "L1"))),
            (OWN + "0", OWN + "edge", OWN + "1", None, None), (OWN + "1", OWN + "E7", OWN + "2", None, None),
        }  # fmt: skip


# --- what goes wrong ---


@pytest.mark.parametrize(("name", "text", "message", "place"), [
    ("a.ttl", "@prefix e: <e:> .\ne:a e:b f:c .\n", "f: has not been declared", (2, 9)),
    ("a.ttl", "<e:a> <e:b> \x00 .", "", (1, 13)),
    ("a.ttl", b'<e:a> <e:b> "\xe9" .', "UTF-8", (1, 14)),
    ("a.nt", b'<e:a> <e:b> "\xe9" .', "not UTF-8", (1, 14)),
    ("a.nt", "<e:a> <e:b> \x00 .", "expected an object", (1, 13)),
    ("a.nt", "<e:a> <e:b> <e:c> <e:g> .", "expected '.'", (1, 19)),
    ("a.nt", "<e:a> <e:b> <e:c> .".encode("utf-16"), "UTF-16", (None, None)),
    ("a.nt", "<e:a> <e:b> <e:c> .".encode("utf-16-le"), "UTF-16", (None, None)),
    ("a.ttl", "<e:a> <e:b> <e:c> .".encode("utf-16-be"), "UTF-16", (None, None)),
    ("a.rdf", "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'><rdf:a></rdf:b>", "ill-formed", (1, 75)),
    ("a.rdf", RDF_HEAD + "<rdf:Description rdf:about='e:a'><n>1</n></rdf:Description>\n <rdf:Description rdf:ID='1 2'/></rdf:RDF>",
     "not a valid rdf:ID", (3, 2)),
    ("a.rdf.gz", gzip.compress((RDF_HEAD + "<n rdf:about='http://[' /></rdf:RDF>").encode(), mtime=0), "IRI", (2, 1)),
    ("a.jsonld", '[{"@id": "e:a"},\n {"@id": 5}]', "must be a string", (2, 10)),
    ("a.graphml", '<graphml><graph>\n <node/></graph></graphml>', "has no id", (2, 2)),
    ("a.graphml", '<graphml><graph>\n <node id="a"></graph></graphml>', "mismatched tag", (2, 17)),
    ("a.jsonld", '{"@id": "e:a", }', "comma", (1, 16)),
    ("a.jsonld", '{"@context": "http://x/"}', "not fetched", (None, None)),
    ("a.csv", ":ID,n:int\n1,2\n3,x\n", "a value of n that is no BIGINT: x", (3, 3)),
    ("a.csv", '\n:ID,n:int,m\n1,2,"a\nb"\n\n3,4.0,\n', "no BIGINT: 4.0", (6, 3)),
    ("a.csv", "\ufeff:ID|n:date\r\n1|2020-01-01\r\n\r\n3|2020-01-01 10:00\r\n", "no DATE: 2020-01-01 10:00", (4, 3)),
    ("a.csv", ":ID,n\n1,2\n\n3,4,5\n", "Expected Number of Columns: 2 Found: 3", (4, 4)),
    ("a.csv", ":ID,n:int\n1,2\n,3\n", "this row has no :ID", (3, 1)),
    ("a.csv", "x,y\n1,2\n", "no column says", (None, None)),
    ("a.csv", ":START_ID,:END_ID\n1,2\n", "which edge label", (None, None)),
    ("a.csv", "a:ID,b:ID\n1,2\n", "two columns are :ID: 'a:ID' and 'b:ID'", (None, None)),
    ("a.csv", ':ID,n\n1,"x\n2,y\n', "unterminated quote", (2, 3)),
    ("a.csv", "", "no header", (None, None)),
    ("a.csv", "\n:ID,n,a:intt\n1,2,3\n", "unknown type 'intt' of a column", (2, 9)),
    ("a.csv", ":ID,:LABBEL\n1,2\n", "unknown role 'LABBEL' of a column", (1, 6)),
    ("a.csv", ":ID,n\n1,2\n3,é\x00x\n", "a NUL byte is no text", (3, 4)),
    ("a.csv.gz", gzip.compress(b":ID,n\n1,\0", mtime=0), "a NUL byte is no text", (2, 3)),
    ("a.edges", "1 2\n3 4\x00\n", "a NUL byte is no text", (2, 4)),
    ("a.graph", "t 1 0\nv 0 \x00\n", "a NUL byte is no text", (2, 5)),
    ("a.rdf", RDF_HEAD + "<rdf:Description rdf:about='x:1'><n>\x00</n></rdf:Description></rdf:RDF>", "in XML", (2, 37)),
    ("a.csv", b":ID,n\n1,\xff\xfe\n", "convert the file to UTF-8", (2, 3)),
    ("a.parquet", "PAR1 not at all", "a.parquet", (None, None)),
    ("a.edges", "1 2\n3\n", "expected two vertices", (2, 2)),
    ("a.edges", "# a comment\n \n1 2\n\n1 2 friend\n", "at most a weight", (5, 5)),
    ("a.edges", " 1 2,3\t4\n", "at most a weight", (1, 8)),
    ("a.csv", ":ID,n\n1,2\n".encode("utf-16"), "UTF-16", (None, None)),
    ("a.csv", ":ID,n\n1,2\n".encode("utf-16-le"), "UTF-16", (None, None)),
    ("a.edges", "1 2\n".encode("utf-16"), "UTF-16", (None, None)),
    ("a.nt", "<e:a> <e:b> <e:c> .".encode("utf-32"), "UTF-32", (None, None)),
    ("a.nt.gz", b"", "cut short", (None, None)),
    ("a.csv.xz", b"", "cut short", (None, None)),
    ("a.graph", "t 1 0\nx\n", "expected 't", (2, 1)),
    ("a.graph", "t 1 0\nv 0\n", "expected 't", (2, 4)),
])  # fmt: skip
def test_bad_files(db: Any, name: str, text: Any, message: str, place: tuple[int | None, int | None]) -> None:
    """Told with its place; nothing is kept."""
    error = refused(db, write(name, text), message, place)
    assert name in str(error)


@pytest.mark.parametrize(
    ("name", "packed"), [("a.ttl", ".gz"), ("a.csv", ".gz"), ("a.csv", ".zst"), ("a.nt", ".bz2"), ("a.nt", ".xz")]
)
def test_packed_files_that_are_cut(db: Any, name: str, packed: str) -> None:
    text = "".join(f"<e:{i}> <e:p> <e:{i * i}> .\n" for i in range(9_000))
    if name == "a.csv":
        text = ":ID,n\n" + "".join(f"{i},{i * i}\n" for i in range(9_000))
    whole = PACK[packed](text.encode())
    refused(db, write(name + packed, whole[: len(whole) // 2]), "")
    refused(db, write(name + packed, whole + b"what is behind may be the rest of the data"), "")
    if name == "a.nt":
        assert db.load(write("a" + packed, whole)).new_triples == 9_000, (
            "the content tells, however long its first block"
        )


@pytest.mark.parametrize(("name", "text", "kept", "bad"), [
    ("a.ttl", "@prefix e: <e:> .\ne:a e:b e:c .\ne:a e:b f:c .\ne:a e:b e:d .", 2, [(3, 9)]),
    ("a.nq", "<e:a> <e:b> <e:c> <e:g> .\noops\n<e:a> <e:b> <e:d> .", 2, [(2, 1)]),
    ("a.rdf", RDF_HEAD + "<rdf:Description rdf:ID='1 2'><n>lost</n></rdf:Description>\n<rdf:Description rdf:about='e:a'><n>"
     "1</n></rdf:Description>\n<n rdf:about='e:b'><n><n rdf:about='http://['/></n></n><n rdf:about='e:c'/></rdf:RDF>",
     3, [(2, 1), (4, 23)]),
    ("a.rdf", RDF_HEAD + "<n rdf:about='e:a'/>\n<n rdf:about='e:b'></rdf:RDF>", 2, [(3, 22)]),
    ("a.jsonld", '[{"@id": "e:a", "e:p": 1},\n{"@id": 5},\n{"@id": "e:b", "e:p": 2}]', 2, [(2, 9)]),
    ("a.graphml", '<graphml><graph>\n<node id="a"/><edge source="a"/>\n<node/></graph></graphml>', 1, [(2, 15), (3, 1)]),
    ("a.csv", ":ID,n:int\n1,2\n3,x\n4,5\n", 2, [(3, 3)]),
    ("a.csv", ':ID,n:int\n1,2\n"3\n",x\n4\n\n5,"6""7"\n8,9\n\n,1\n', 2, [(5, 2), (4, 3), (7, 3), (10, 1)]),
    ("a.csv", b":ID,n\n1,2\n3,\xff\n4,5\n", 2, [(3, 3)]),
    pytest.param("a.csv", ":ID,n:int\n1,2\n" + "3,x\n" * 5_000, 1, [(i, 3) for i in range(3, 5_003)], id="many"),
    ("a.csv", ":ID,n:int\n1,2\n,3\n4,5\n", 2, [(3, 1)]),
    ("a.edges", "1 2\n3\n4 5\n", 2, [(2, 2)]),
    ("a.edges", "1 2\n3 4 5 6\n7 8\x00\n9 10\n", 2, [(2, 7), (3, 4)]),
    ("a.csv", ":ID,n\n1,2\n3,x\x00\n4,5\n", 2, [(3, 3)]),
])  # fmt: skip
def test_bad_lines_are_skipped(db: Any, name: str, text: str, kept: int, bad: list[Any]) -> None:
    report = db.load(write(name, text), on_error="skip")
    assert (len(rows(db)), report.errors) == (kept, len(bad))
    assert db.sql('SELECT line, "column" FROM load_errors WHERE message IS NOT NULL').fetchall() == bad


LONG = {
    "a.nt": '<e:a> <e:p> <e:b> .\n<e:a> <e:b> "{}" .\n', "a.nq": '<e:a> <e:p> <e:b> .\n<e:a> <e:b> "{}" <e:g> .\n',
    "a.ttl": '<e:a> <e:p> <e:b> .\n<e:a> <e:b> "{}" .\n', "a.trig": '<e:a> <e:p> <e:b> .\n<e:g> {{ <e:a> <e:b> "{}" }}\n',
    "a.rdf": RDF_HEAD + '<rdf:Description rdf:about="x:1"><n>{}</n></rdf:Description></rdf:RDF>',
    "a.jsonld": '{{"@id": "e:a",\n"e:b": "{}"}}',
    "a.csv": ":ID,name\n1,{}\n", "b.csv": ':ID,name\n1,"{}"\n', "a.edges": "1 2\n1 {}\n", "a.graph": "t 1 0\nv 0 {}\n",
    "a.graphml": '<graphml><key id="n" for="node"/><graph>\n<node id="a"><data key="n">{}</data></node></graph></graphml>',
}  # fmt: skip


@pytest.mark.parametrize("name", LONG)
def test_lines_and_tokens_without_end(db: Any, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """What is too long is refused before it fills the memory, with its limit and its line, first or last of its file."""
    for limit in ("LONGEST_LINE", "LONGEST_ROW", "LONGEST_TOKEN"):
        monkeypatch.setattr(streams, limit, 1 << 20)
    monkeypatch.setattr(streams, "BLOCK", 1 << 16)
    size = 17 << 20 if name in ("a.ttl", "a.trig", "a.jsonld") else 2 << 20  # the library has a limit of its own
    text = LONG[name].format("x" * size)
    refused(db, write(name, text), f"is longer than {16 if size > 16 << 20 else 1} MiB", (2, None))
    if name == "a.nt":
        refused(db, write(name + ".gz", gzip.compress(text.encode(), 1)), "longer than 1 MiB", (2, None))


def test_csv_is_read_to_its_end(db: Any) -> None:
    """Nothing is guessed from the first rows: quotes, texts among numbers and long rows may come late."""
    text = ":ID,zip,n,when\n" + "".join(f"{i},10000,{i},2020-01-01\n" for i in range(30_000))
    text += f'a,01234,1.5,"new\nyear"\nb,"say ""no""",7,2020-01-01\nc,{"x" * (4 << 20)},,\n'
    db.load(write("a.csv", text))
    assert {row[1:] for row in rows(db) if row[0] in (OWN + "a", OWN + "b")} == {
        (OWN + "zip", "01234", XSD + "string", None), (OWN + "n", "1.5", XSD + "double", None),
        (OWN + "when", "new\nyear", XSD + "string", None), (OWN + "zip", 'say "no"', XSD + "string", None),
        (OWN + "n", "7.0", XSD + "double", None), (OWN + "when", "2020-01-01", XSD + "string", None),
    }  # fmt: skip
    assert db.query("MATCH (n) WHERE size(n.zip) = 4194304 RETURN count(*)").scalar() == 1


@pytest.mark.parametrize(("values", "datatype"), [
    ("0 -7 123", "integer"), ("1 12345678901234567890", "integer"), ("1 2.5 1e3 nan", "double"), ("true FALSE", "boolean"),
    ("2020-02-29", "date"), ("2020-02-30", "string"), ("12:30:00", "time"), ("2020-01-01T00:00:00 2020-01-02", "dateTime"),
    ("2020-01-01T00:00:00Z", "dateTime"), ("007 1", "string"), ("+1", "string"), ("1 x", "string"), ("1 true", "string"),
    ("1_000", "string"), ("9" * 40, "string"), ("01/02/2020", "string"), ("inf", "double"), ("t f", "string"),
])  # fmt: skip
def test_types_of_values(db: Any, values: str, datatype: str) -> None:
    """A column without a type has that of all its values, where they have one."""
    db.load(write("a.csv", ":ID,x\n" + "".join(f"{i},{value}\n" for i, value in enumerate(values.split()))))
    found = {(row[2], row[3]) for row in rows(db) if row[1] == OWN + "x"}
    assert {type for _, type in found} == {XSD + datatype}
    if datatype in ("integer", "string"):
        assert {text for text, _ in found} == set(values.split())


def test_headers_as_people_write_them(db: Any) -> None:
    """Spaces, roles in lower case, columns without names, empty lines, what comes twice, colons in names."""
    head = "\n\n,:id, Name ,name,:IGNORE,:label,:IGNORE,,x:y:string,urn:z:a\n"
    db.load(write("a.csv", head + "0,1,x,y,-,P; Q,-,,seven,eight\n"))
    assert {row[:3] for row in rows(db)} == {
        (OWN + "1", OWN + "column0", "0"), (OWN + "1", OWN + "Name", "x"), (OWN + "1", OWN + "name", "y"),
        (OWN + "1", TYPE, OWN + "P"), (OWN + "1", TYPE, OWN + "Q"),
        (OWN + "1", "x:y", "seven"), (OWN + "1", "urn:z:a", "eight"),
    }  # fmt: skip


def test_values_that_are_not_of_their_type() -> None:
    """Told with their rows, or skipped, wherever a table comes from: in lists, in frames, in Parquet."""
    polars = pytest.importorskip("polars")
    write("a.csv", ":ID,x:int[],y:float\n1,1;zwei,\n2,3;4,1.5\n3,,2\n")
    frame = polars.read_csv("a.csv", schema_overrides={"y:float": polars.String})
    frame.write_parquet("a.parquet")
    for data, line, column in (("a.csv", 2, 3), (frame, 1, None), ("a.parquet", 1, None)):
        with graphdb.connect() as db:
            refused(db, data, "a value of x that is no BIGINT: zwei", (line, column))
            assert db.load(data, on_error="skip").errors == 1
            assert {row[1:4] for row in rows(db)} == {
                (OWN + "x", "3", XSD + "integer"), (OWN + "x", "4", XSD + "integer"), (OWN + "y", "1.5", XSD + "double"),
                (OWN + "y", "2.0", XSD + "double"),
            }  # fmt: skip


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
        for columns in ({"a": 5}, [":ID"]):
            refused(empty, "a.nt", "columns is", columns=columns)


def test_long_pipes(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe cannot be read again to count its lines."""
    monkeypatch.setattr(streams, "LONGEST_LINE", 1 << 20)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'<e:a> <e:b> "' + b"x" * (2 << 20))))
    refused(db, "-", "longer than 1 MiB", format="nt")
    refused(db, ".", "is a directory")


def test_load_says_what_the_python_call_says(tmp_path: pathlib.Path) -> None:
    """The options of LOAD are those of ``load``: a base, the headers of columns, labels for all vertices and edges."""
    (tmp_path / "a.ttl").write_text("<x> <p> <#y> .")
    (tmp_path / "who.csv").write_text("person,full name,age\n1,Ada,36\n")
    (tmp_path / "knows.csv").write_text("from,to,since\n1,2,1999\n")
    columns = {"person": ":ID(Person)", "full name": "name", "age": "age:int"}
    ends = {"from": ":START_ID(Person)", "to": ":END_ID(Person)", "since": "since:int"}
    with graphdb.connect() as said, graphdb.connect() as called:
        said.query(f"""
            LOAD '{tmp_path}/a.ttl' BASE <http://b/c>;
            LOAD '{tmp_path}/who.csv' COLUMNS {{person: ':ID(Person)', "full name": 'name', age: 'age:int'}} LABEL Person;
            LOAD '{tmp_path}/knows.csv' TYPE knows
                COLUMNS {{`from`: ':START_ID(Person)', to: ':END_ID(Person)', since: 'since:int'}}
        """)
        called.load(tmp_path / "a.ttl", base="http://b/c")
        called.load(tmp_path / "who.csv", columns=columns, label="Person")
        called.load(tmp_path / "knows.csv", columns=ends, type="knows")
        rows = [sorted(db.sql("FROM triples").fetchall(), key=str) for db in (said, called)]
        assert rows[0] == rows[1]
        assert ("http://b/x", "http://b/p", "http://b/c#y", None, None) in rows[0]
        assert said.query("MATCH (a:Person)-[e:knows]->() RETURN a.name, a.age, e.since").fetchall() == [
            ("Ada", 36, 1999)
        ]


NAMES = [f"näme {i * 7919 % 1000}" for i in range(40)]
SOUND = {
    "csv": ":ID,name,:LABEL\n" + "".join(f"{i},{name},P\n" for i, name in enumerate(NAMES)),
    "ttl": "".join(f'<x:a{i}> <x:name> "{name}" .\n' for i, name in enumerate(NAMES)),
    "trig": "".join(f'<x:g> {{ <x:a{i}> <x:name> "{name}" }}\n' for i, name in enumerate(NAMES)),
    "jsonld": "[" + ",\n".join(f'{{"@id": "x:a{i}", "x:name": "{name}"}}' for i, name in enumerate(NAMES)) + "]",
    "rdf": RDF_HEAD
    + "".join(f'<rdf:Description rdf:about="x:{i}"><n>{name}</n></rdf:Description>\n' for i, name in enumerate(NAMES))
    + "</rdf:RDF>",
    "graphml": '<graphml><key id="n" for="node"/><graph>\n'
    + "".join(f'<node id="a{i}"><data key="n">{name}</data></node>\n' for i, name in enumerate(NAMES))
    + "</graph></graphml>",
}


def test_files_that_are_damaged(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut, packed and cut, wrongly encoded, with a NUL in its syntax, overlong, or no file: an error, nothing kept."""
    monkeypatch.setattr(streams, "LONGEST_TOKEN", 1 << 20)
    with graphdb.connect() as db:
        for suffix, text in SOUND.items():
            sound, half = text.encode(), len(text.encode()) // 2
            half = sound.rindex("ä".encode(), 0, half) + 2  # within a value
            packed, framed = gzip.compress(sound), zstandard.compress(sound)
            damaged = {
                f"a.{suffix}.gz": (packed + packed[:-9], "cut short"),
                f"b.{suffix}.zst": (framed + framed[:-9], "cut short"),
                f"c.{suffix}": (sound[:half], suffix),
                f"d.{suffix}": (text.encode("utf-16"), "UTF-"),
                f"e.{suffix}": (text.encode("latin-1"), "UTF-8"),
            }
            if suffix != "csv":  # where NUL is a character like others
                damaged[f"f.{suffix}"] = (sound.replace(b"<" if b"<" in sound else b"{", b"<\0", 3), suffix)
            if suffix in ("rdf", "graphml"):
                damaged[f"g.{suffix}"] = (sound.replace(b"me", b"x" * (3 << 20), 1), "longer than 1 MiB")
            for name, (content, says) in damaged.items():
                (tmp_path / name).write_bytes(content)
                with pytest.raises(LoadError, match=says):
                    db.load(tmp_path / name)
            (tmp_path / f"h.{suffix}").mkdir()
            with pytest.raises(LoadError, match="is a directory"):
                db.load(tmp_path / f"h.{suffix}")
            os.mkfifo(tmp_path / f"i.{suffix}")
            writer = threading.Thread(target=(tmp_path / f"i.{suffix}").write_bytes, args=(sound[:half],))
            writer.start()
            with pytest.raises(LoadError):
                db.load(tmp_path / f"i.{suffix}")
            writer.join()
        assert db.sql("SELECT count(*) FROM triples").scalar() == 0
        (tmp_path / "cut.csv").write_bytes(SOUND["csv"].encode()[:-3])
        with pytest.raises(LoadError, match="Expected Number of Columns: 3 Found: 2") as found:
            db.load(tmp_path / "cut.csv")
        assert found.value.line == len(NAMES) + 1
        assert db.load(tmp_path / "cut.csv", on_error="skip").errors == 1
