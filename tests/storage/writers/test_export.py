"""Export: what is written loads again as the same graph, whatever the format and whatever is in it."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import duckdb
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

import graphdb
from graphdb.common.duckdb.memory_limit import MoreMemory
from graphdb.common.errors import GraphDBError, LoadError, StorageError
from tests.fuzz import scaled
from tests.interrupted import interrupted
from tests.suites.test_w3c_rdf import _quads

pyoxigraph = pytest.importorskip("pyoxigraph")

XSD = "http://www.w3.org/2001/XMLSchema#"
REIFIES = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies>"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"

nodes = st.sampled_from(["<e:a>", "<e:b>", "<urn:graphdb:1>", "_:x", "_:y", "<http://x/ü#%20>"])
keys = st.sampled_from(["<e:p>", "<urn:graphdb:name>", "<http://x/q:int>", "<urn:graphdb:x:ID>", TYPE])
text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=6)
literals = st.builds(
    lambda value, tag: '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r") + '"' + tag,
    text | st.sampled_from(["1", "-7", "007", "1.50", "true", "2020-02-29", "2020-02-29T10:00:00", "1.5", "1e3", "NaN", ""]),
    st.sampled_from(["", "", "@en", "@de-at", *(f"^^<{XSD}{name}>" for name in
                     ("integer", "double", "decimal", "boolean", "date", "dateTime", "anyURI"))]),
)  # fmt: skip
terms = st.builds("<<( {} {} {} )>>".format, nodes, keys, nodes | literals)
terms |= st.builds("<<( {} {} {} )>>".format, nodes, keys, terms)
triples = st.builds(" ".join, st.tuples(nodes, keys, nodes | literals | terms))
reified = st.builds(
    lambda asserted, name, triple, more: [
        *([f"{triple} ."] if asserted else []), f"{name} {REIFIES} <<( {triple} )>> .", *(f"{name} {m} ." for m in more)
    ],
    st.booleans(), st.sampled_from(["_:r", "<e:r>", "_:s"]),
    st.builds(" ".join, st.tuples(nodes, st.sampled_from(["<e:p>", TYPE]), nodes | literals | terms)),
    st.lists(st.builds(" ".join, st.tuples(st.sampled_from(["<e:since>", "<urn:graphdb:w>"]), literals)), max_size=2),
)  # fmt: skip
graphs = st.builds(
    lambda plain, edges, named: "".join(
        line + "\n"
        for line in [
            *(f"{triple} ." for triple in plain),
            *(line for edge in edges for line in edge),
            *(f"{triple} {graph} ." for triple, graph in named),
        ]
    ),
    st.lists(triples, max_size=8),
    st.lists(reified, max_size=2),
    st.lists(
        st.tuples(triples | triples.map(f"_:r {REIFIES} <<( {{}} )>>".format), st.sampled_from(["<e:g>", "_:x"])),
        max_size=3,
    ),
)


class _Rows:
    """The tables of a database that is open."""

    def __init__(self, db: Any) -> None:
        self._connection = db._state.connection.raw

    def rows(self, table: str, columns: str, joined: str = "") -> list[Any]:
        rows: list[Any] = self._connection.execute(f"SELECT {columns} FROM _graphdb.{table} {joined}").fetchall()
        return rows


def canonical(db: Any, quads: bool) -> Any:
    """The graph, blank nodes renamed; without ``quads`` the names of its graphs do not count."""
    found = _quads(_Rows(db), pyoxigraph)
    if not quads:
        found = [pyoxigraph.Quad(quad.subject, quad.predicate, quad.object) for quad in found]
    dataset = pyoxigraph.Dataset(found)
    dataset.canonicalize(pyoxigraph.CanonicalizationAlgorithm.UNSTABLE)
    return dataset


def exported(db: Any) -> Any:
    """The graph as it is exported, blank nodes renamed: edges with properties are stored in more than one way."""
    with tempfile.TemporaryDirectory() as folder:
        db.export(pathlib.Path(folder) / "g.nt")
        with open(pathlib.Path(folder) / "g.nt", "rb") as file:
            dataset = pyoxigraph.Dataset(pyoxigraph.parse(file, pyoxigraph.RdfFormat.N_TRIPLES))
    dataset.canonicalize(pyoxigraph.CanonicalizationAlgorithm.UNSTABLE)
    return dataset


LIMIT = "SELECT current_setting('memory_limit')"


def test_exports_leave_the_memory_limit_as_it_is(tmp_path: pathlib.Path) -> None:
    """DuckDB says its limit in tenths of a GiB, cut off: each export took up to a tenth away."""
    with graphdb.connect(memory_limit=20_000_000_000) as db:
        db.query("CREATE (:A {x: 1})")
        before = db.sql(LIMIT).scalar()
        for _ in range(3):
            db.export(tmp_path / "a.nt")
            assert db.sql(LIMIT).scalar() == before


def test_an_interrupt_at_any_line_of_an_export_leaves_the_memory_limit_as_it_is(tmp_path: pathlib.Path) -> None:
    files = "interface/transfer.py", "writers/export.py", "duckdb/memory_limit.py"
    with graphdb.connect() as db:
        db.query("CREATE (:A {x: 1})")
        before, at, stopped = db.sql(LIMIT).scalar(), 0, True
        while stopped:
            stopped = interrupted(lambda: db.export(tmp_path / "a.nt"), at, files) is not None
            assert db.query("MATCH (n:A) RETURN n.x").scalar() == 1
            assert db.sql(LIMIT).scalar() == before, f"after an interrupt at line {at}"
            at += 1
        assert at > 20
        elsewhere = threading.Thread(target=lambda: db.export(tmp_path / "b.nt"), daemon=True)
        elsewhere.start()
        elsewhere.join(20)
        assert not elsewhere.is_alive(), "a lock was left behind"


@pytest.mark.own_duckdb
def test_exports_at_once_leave_the_memory_limit_as_it_is(tmp_path: pathlib.Path) -> None:
    """Two databases of one DuckDB share its limit, whichever export ends first; another DuckDB has one of its own."""

    def limit(connection: duckdb.DuckDBPyConnection) -> str:
        return str(connection.sql(LIMIT).fetchall()[0][0])

    with duckdb.connect(config={"memory_limit": "4GiB"}) as raw, graphdb.connect(memory_limit="16GiB") as apart:
        apart.sql("SET memory_limit = '4GiB'")
        raw.execute(f"ATTACH '{tmp_path / 'a.duckdb'}' AS a; ATTACH '{tmp_path / 'b.duckdb'}' AS b")
        raw.execute("USE a; SET username = 'it''s me'")
        with graphdb.attach(raw) as a:
            raw.execute("USE b")
            with graphdb.attach(raw) as b:
                connection = apart._state.connection
                first, second = MoreMemory(a._state.connection, 1 << 30), MoreMemory(b._state.connection, 2 << 30)
                with MoreMemory(connection, 8 << 30):
                    first.__enter__()
                    assert limit(raw) == "5.0 GiB"
                    second.__enter__()
                    assert limit(raw) == "7.0 GiB"
                    first.__exit__(None, None, None)
                    assert limit(raw) == "6.0 GiB"
                    assert limit(connection.raw) == "12.0 GiB"
                    second.__exit__(None, None, None)
                    assert limit(raw) == "4.0 GiB"
                assert limit(connection.raw) == "4.0 GiB"
        assert raw.execute("SELECT current_setting('username')").fetchall() == [("it's me",)]


@settings(max_examples=scaled(8), deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(graphs)
@example(
    f"""_:x <e:p> <<( _:x <e:p> <<( <e:a> <e:p> "; \\n"@en )>> )>> .
<e:a> {TYPE} <<( _:x <e:p> "; \\"" )>> .
<e:a> {TYPE} <<( _:x <e:p> <e:a> )>> <e:g> .
<e:r> {REIFIES} <<( _:x <e:p> <<( <e:a> <e:p> <e:b> )>> )>> .
<e:r> {REIFIES} <<( _:x <e:p> <<( <e:a> <e:p> <e:b> )>> )>> <e:g> .
<e:s> {REIFIES} <<( _:x <e:p> "c" )>> _:x .
<e:s> {REIFIES} <<( _:x <e:p> "c" )>> <e:h> .
<e:s> <e:since> "2020" .
<e:s> {REIFIES} <<( _:x <e:p> <e:b> )>> _:x .
_:x <e:p> <e:b> <e:i> .
_:x <e:p> <e:b> <e:g> .
<e:r> <e:since> "2020" .
"""
)
def test_round_trip(written: str) -> None:
    folder = pathlib.Path(tempfile.mkdtemp())
    try:
        (folder / "g.nq").write_text(written, encoding="utf-8", newline="")
        with graphdb.connect() as db:
            db.load(folder / "g.nq")
            for name in ("out.nt", "out.nq.gz", "out.ttl", "out.trig.zst", "out.parquet", "out.graphml"):
                quads = name.startswith(("out.nq", "out.trig", "out.parquet"))
                if name == "out.graphml" and re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", written):
                    continue  # XML cannot hold it
                db.export(folder / name, graphs=None if quads else "union")
                with graphdb.connect() as other:
                    other.load(str(folder / name / "*") if name == "out.parquet" else folder / name)
                    assert canonical(other, quads) == canonical(db, quads), name
    finally:
        shutil.rmtree(folder)


def _people(tmp_path: pathlib.Path) -> Any:
    db = graphdb.connect()
    (tmp_path / "people.csv").write_text(":ID,name,age:int,:LABEL\n1,Ada & <co>,36,Person;Author\n2,Bo,,Person\n3,,,\n")
    (tmp_path / "knows.csv").write_text(
        ":START_ID,:END_ID,:TYPE,since:int\n1,2,knows,1999\n1,2,knows,2000\n2,1,likes,\n"
    )
    db.load(str(tmp_path / "*.csv"))
    return db


def _edges(graph: Any) -> list[Any]:
    return sorted((s, o, d["type"], d.get("since", 0)) for s, o, d in graph.edges(data=True))


def test_networkx_and_graphml(tmp_path: pathlib.Path) -> None:
    networkx = pytest.importorskip("networkx")
    with _people(tmp_path) as db:
        graph = db.to_networkx()
        assert graph.nodes["1"] == {"name": "Ada & <co>", "age": 36, "labels": ["Person", "Author"]}
        assert graph.nodes["3"] == {}
        assert _edges(graph) == [("1", "2", "knows", 1999), ("1", "2", "knows", 2000), ("2", "1", "likes", 0)]
        with graphdb.connect() as other:
            other.load(graph)
            assert exported(other) == exported(db)
        assert db.export(tmp_path / "g.graphml") == 3 + 3
    drawn = networkx.read_graphml(tmp_path / "g.graphml")
    assert _edges(drawn) == _edges(graph)
    assert drawn.nodes["1"] == {"name": "Ada & <co>", "age": 36, "labels": "Author;Person"}
    with graphdb.connect() as other, _people(tmp_path) as db:
        other.load(tmp_path / "g.graphml")
        assert exported(other) == exported(db)


ODD = """
CREATE (), (a:`A B`:`C;D` {labels: 'x', label: 1, type: true, `p<q`: ' '}), (b {v: 'x', old: date('-0044-03-15')}), (c {v: 1.5})
CREATE (a)-[:`r s` {type: 'y', label: 2, `w x`: 1}]->(b), (a)-[:T {v: 'x'}]->(b), (a)-[:T {v: 1}]->(b), (b)-[:T]->(b)
"""


def test_odd_names_and_mixed_values(tmp_path: pathlib.Path) -> None:
    """Names that can stand in no IRI, or that formats use themselves, and properties of several types."""

    def seen(db: Any) -> list[list[str]]:
        vertices = db.query("MATCH (n) RETURN labels(n), properties(n)")
        edges = db.query("MATCH (a)-[r]->(b) RETURN properties(a), type(r), properties(r), properties(b)")
        return [sorted(map(str, rows.fetchall())) for rows in (vertices, edges)]

    with graphdb.connect() as db:
        db.query(ODD)
        assert db.query("MATCH (n:`A B`) RETURN n.`p<q`").scalar() == " "
        for name in ("o.nt", "o.ttl", "o.parquet", "o.graphml"):
            db.export(tmp_path / name)
            with graphdb.connect() as other:
                other.load(str(tmp_path / name / "*") if name == "o.parquet" else tmp_path / name)
                assert seen(other) == seen(db), name
        db.query("MATCH (n) REMOVE n.old")  # NetworkX has it as one of our dates
        with graphdb.connect() as other:
            other.load(db.to_networkx())
            assert seen(other) == seen(db)


names = st.sampled_from(["1", "a b", "é&<", "http://x/y"])
values = st.one_of(st.integers(-9, 9), st.booleans(), st.floats(allow_nan=False, allow_infinity=False), text.filter(
    lambda value: value.isprintable() and value.strip() == value))  # fmt: skip


@settings(max_examples=scaled(8), deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(
    st.dictionaries(names, st.dictionaries(st.sampled_from(["p", "q", "http://x/n"]), values, max_size=3), min_size=1),
    st.lists(st.tuples(names, names, st.sampled_from(["knows", "http://x/e"]), values), max_size=4),
)
def test_graphml_of_others(vertices: dict[str, dict[str, Any]], edges: list[tuple[Any, ...]]) -> None:
    """What NetworkX writes as GraphML, and what we write of it, is the graph that NetworkX holds."""
    networkx = pytest.importorskip("networkx")
    graph = networkx.MultiDiGraph()
    kinds: dict[str, type] = {}
    for name, held in vertices.items():  # GraphML has one type for a key
        kept = {key: value for key, value in held.items() if kinds.setdefault(key, type(value)) is type(value)}
        graph.add_node(name, **kept)
    for start, end, label, value in edges:
        if start in vertices and end in vertices:
            same = kinds.setdefault("w", type(value)) is type(value)
            graph.add_edge(start, end, type=label, **({"w": value} if same else {}))
    folder = pathlib.Path(tempfile.mkdtemp())
    try:
        networkx.write_graphml(graph, folder / "theirs.graphml")
        with graphdb.connect() as expected, graphdb.connect() as theirs, graphdb.connect() as ours:
            expected.load(graph)
            expected.export(folder / "ours.graphml.gz")
            theirs.load(folder / "theirs.graphml")
            ours.load(folder / "ours.graphml.gz")
            assert exported(theirs) == exported(expected)
            assert exported(ours) == exported(expected)
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("written", "message", "line"),
    [
        ("<graphml>\n<graph><node id='1'/>", "no element found", 2),
        ("<gexf/>", "expected the element graphml", 1),
        ("<graphml>\n<key id='k' attr.type='int'/>\n<graph><node id='1'><data key='k'>x</data></node></graph></graphml>",
         "'x' is no int", 3),
        ("<graphml><graph>\n<node id='1'><data key='k'>x</data></node></graph></graphml>", "no key 'k'", 2),
        ("<graphml><graph>\n<edge source='1'/></graph></graphml>", "this edge has no target", 2),
        ("<graphml><graph>\n<hyperedge/></graph></graphml>", "a hyperedge cannot be loaded", 2),
        ("<graphml>\n<graph><node id='\x00'/></graph></graphml>", "not well-formed", 2),
    ],
)  # fmt: skip
def test_graphml_that_cannot_be_read(tmp_path: pathlib.Path, written: str, message: str, line: int) -> None:
    (tmp_path / "bad.graphml").write_text(written)
    with graphdb.connect() as db:
        with pytest.raises(LoadError, match=message) as found:
            db.load(tmp_path / "bad.graphml")
        assert found.value.line == line
        assert db.sql("SELECT count(*) FROM _graphdb.triple").scalar() == 0


NAMED = """<e:s> <e:p> <e:o> <e:g> . <e:s> <e:p> <e:o> . <e:s> <e:p> <e:x> _:h . <e:s> <e:n> "1" <e:g> . <e:s> <e:n> "2" .
<e:s> <e:n> "3" _:h . <e:s> <e:p> <e:y> <e:i> . <e:r> REIFIES <<( <e:s> <e:p> <e:y> )>> . <e:r> <e:since> "2000" .
<e:q> REIFIES <<( <e:s> <e:p> <e:z> )>> . <e:q> <e:since> "2001" . <e:t> REIFIES <<( <e:s> <e:p> "w" )>> <e:g> .""".replace(
    "REIFIES", REIFIES
).replace(" . ", " .\n")


@pytest.mark.parametrize("graphs", ["default", "e:g", "x:i", ["e:g", "default"], "union"], ids=str)
def test_named_graphs_that_are_chosen(tmp_path: pathlib.Path, graphs: Any) -> None:
    """What is chosen is written, in every format, and nothing else."""
    names = [graphs.replace("x:", "e:")] if isinstance(graphs, str) else graphs
    wanted = set()
    for line in NAMED.split("\n"):
        [quad] = pyoxigraph.parse(line, pyoxigraph.RdfFormat.N_QUADS)
        name = getattr(quad.graph_name, "value", "default")
        of = "e:i" if "<e:r>" in line else name  # what is said of an edge goes with it
        if names == ["union"] or of in names:
            wanted.add(pyoxigraph.Quad(quad.subject, quad.predicate, quad.object, quad.graph_name))
    (tmp_path / "g.nq").write_text(NAMED)
    with graphdb.connect() as db:
        db.load(tmp_path / "g.nq")
        db.query("PREFIX x: <e:>")
        for name in ("out.nt", "out.ttl", "out.nq", "out.trig", "out.parquet"):
            db.export(tmp_path / name, graphs=graphs)
            with graphdb.connect() as other:
                other.load(str(tmp_path / name / "*") if name == "out.parquet" else tmp_path / name)
                found = _quads(_Rows(other), pyoxigraph)
            apart = name not in ("out.nt", "out.ttl") and names != ["union"]
            assert set(found) == {
                quad if apart else pyoxigraph.Quad(quad.subject, quad.predicate, quad.object) for quad in wanted
            }, name
        triples = {quad.triple for quad in wanted if str(quad.predicate) != REIFIES and quad.subject.value == "e:s"}
        edges = {str(triple.object)[1:-1] for triple in triples if triple.predicate.value == "e:p"}
        literals = sorted(triple.object.value for triple in triples if triple.predicate.value == "e:n")
        network = db.to_networkx(graphs=graphs)
        db.export(tmp_path / "out.graphml", graphs=graphs)
        with graphdb.connect() as other:
            other.load(tmp_path / "out.graphml")
            for graph in (network, other.to_networkx()):
                assert {end for _, end in graph.edges()} == edges
                held = graph.nodes["e:s"].get("e:n", []) if graph else []
                assert (held if isinstance(held, list) else [held]) == literals
                assert [w for *_, w in graph.edges(data="e:since") if w] == (["2000"] if "e:y" in edges else [])


def test_named_graphs_are_not_lost_without_a_word(tmp_path: pathlib.Path) -> None:
    (tmp_path / "g.nq").write_text(NAMED)
    with graphdb.connect() as db:
        db.load(tmp_path / "g.nq")
        ways: list[Any] = [lambda path=tmp_path / f"g.{name}": db.export(path) for name in ("nt", "ttl", "graphml")]
        for way in (*ways, db.to_networkx):
            with pytest.raises(GraphDBError, match=r"6 triples are in 3 named graphs, and .* cannot tell which"):
                way()
        with pytest.raises(GraphDBError, match="there is no graph 'e:k'") as found:
            db.export(tmp_path / "g.nt", graphs=["default", "e:k"])
        assert found.value.hint.startswith("did you mean 'e:")
        assert [path.name for path in tmp_path.iterdir()] == ["g.nq"]
        db.query("MATCH (s)-[e:<e:p>]->() RETURN count(*)")
        assert db.sql("SELECT count(*) FROM duckdb_views() WHERE view_name LIKE '%chosen%'").scalar() == 0


def test_where_it_goes(tmp_path: pathlib.Path) -> None:
    """A link stays one, a pipe is written to, and nothing that is no export is written over."""
    (tmp_path / "a.nt").write_text('<e:a> <e:p> <e:b> .\n<e:a> <e:n> "x"@en .\n')
    for name in ("tables.parquet", "other.parquet", ".graphdb-leftleft.scratch"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "nodes.parquet").write_text("old")
    (tmp_path / "other.parquet" / "mine.txt").write_text("mine")
    (tmp_path / "old.nt").write_text("old")
    (tmp_path / "old.nt").chmod(0o640)
    (tmp_path / "link.nt").symlink_to("old.nt")
    os.mkfifo(tmp_path / "pipe.nt")
    report: list[tuple[float, float, int, str]] = []
    with graphdb.connect(tmp_path / "db.duckdb") as db:
        db.load(tmp_path / "a.nt")
        for name, message in (
            ("db.duckdb", "is the database itself"), ("other.parquet", "has other files, such as mine.txt"),
            ("old.nt", "are a folder"), ("tables.parquet", "is a directory"), ("-", "standard output does not tell"),
        ):  # fmt: skip
            format = {"db.duckdb": "nt", "old.nt": "parquet", "tables.parquet": "nt"}.get(name)
            with pytest.raises(GraphDBError, match=message):
                db.export(pathlib.Path("-") if name == "-" else tmp_path / name, format)
        assert db.export(tmp_path / "link.nt", progress=lambda *now: report.append(now)) == 2
        with ThreadPoolExecutor() as pool:
            read = pool.submit((tmp_path / "pipe.nt").read_text)
            db.export(tmp_path / "pipe.nt")
        db.export(tmp_path / "tables.parquet")
        assert db.query("MATCH (a)-[:<e:p>]->(b) RETURN count(*)").scalar() == 1
    assert (tmp_path / "link.nt").is_symlink()
    assert (tmp_path / "pipe.nt").is_fifo()
    assert (tmp_path / "old.nt").read_text() == read.result() == (tmp_path / "a.nt").read_text()
    assert (tmp_path / "old.nt").stat().st_mode & 0o777 == 0o640
    assert (report[0][:3], report[-1][:3]) == ((0, 1, 0), (1, 1, 2))
    files = {path.name: sorted(os.listdir(path)) for path in tmp_path.iterdir() if path.is_dir()}
    names = ["edges.parquet", "literals.parquet", "nodes.parquet"]
    assert files == {"tables.parquet": names, "other.parquet": ["mine.txt", "nodes.parquet"]}, "what was left is gone"


def test_prefixes_are_written(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.ttl").write_text("@prefix ex: <http://ex/> . ex:a ex:p ex:b , ex:c .")
    with graphdb.connect() as db:
        db.load(tmp_path / "a.ttl")
        db.export(tmp_path / "b.ttl")
    written = (tmp_path / "b.ttl").read_text()
    assert "ex:a ex:p ex:b , ex:c ." in written


def test_what_cannot_be_written(tmp_path: pathlib.Path) -> None:
    with _people(tmp_path) as db:
        for name, message in (("x.docx", "does not tell"), ("x", "does not tell")):
            with pytest.raises(GraphDBError, match=message):
                db.export(tmp_path / name)
        with pytest.raises(GraphDBError, match="unknown format 'turtel'"):
            db.export(tmp_path / "x", format="turtel")
        db.query("MATCH (p:Person {name: 'Bo'}) SET p.name = $name", name="B\0o\ufffe")
        with pytest.raises(GraphDBError, match="a text has a character that GraphML, being XML, cannot hold"):
            db.export(tmp_path / "x.graphml")
        with pytest.raises(StorageError, match="cannot write"):
            db.export(tmp_path / "nowhere" / "x.nt")
        (tmp_path / "old.nt").write_text("old")
        db._state.connection.raw.execute("DROP TABLE _graphdb.edge_property")
        with pytest.raises(GraphDBError):
            db.export(tmp_path / "old.nt")
        assert (tmp_path / "old.nt").read_text() == "old", "what was there stays until the new is whole"
        assert {path.name for path in tmp_path.iterdir()} == {"people.csv", "knows.csv", "old.nt"}
