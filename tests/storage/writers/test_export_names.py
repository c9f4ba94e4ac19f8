"""Export of any names and texts: what is written loads again as the same graph, or the error says what cannot be.

``GRAPHDB_FUZZ`` multiplies the number of examples.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

import graphdb
from graphdb.common.errors import GraphDBError
from tests.fuzz import scaled

FORMATS = ("nt", "nq", "ttl", "trig", "parquet", "graphml")

CHARACTERS = st.characters(exclude_categories=["Cs"])
ODD = st.sampled_from(
    [*"[]%#|{}\\^`<>\"';:/?@ \t\n\r\0\x0b\x7f\x85\u2028\ufeff\ufffe\U000e0001", "%b", "%20", "]]>", "&lt;"]
)
NAMES = st.lists(CHARACTERS | ODD, min_size=1, max_size=4).map("".join)
TEXTS = st.lists(CHARACTERS | ODD, max_size=4).map("".join)
IN_IRI = TEXTS.map(lambda text: re.sub(r'[\x00-\x20<>"{}|^`\\]', "", text))
"""What N-Triples lets stand in an IRI (RDF 1.1 N-Triples, §7, IRIREF)."""
IRIS = st.builds(str.__add__, st.sampled_from(["http://x/", "http://x/#", "urn:x:", "http://"]), IN_IRI)

STATEMENT = """
MATCH (a) WHERE iri(a) = $a MATCH (b) WHERE iri(b) = $b
CREATE (a)-[:{edge} {{{key}: $value}}]->(b) SET a:{label}, b.{key} = $value, b.{other} = 1
"""


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def shown(iri: str) -> str:
    """An IRI as messages show it."""
    return iri.replace("\x7f", "\u2421")


def seen(db: graphdb.Database) -> Any:
    vertices = db.query("MATCH (n) RETURN iri(n), labels(n), properties(n)").fetchall()
    edges = db.query("MATCH (a)-[r]->(b) RETURN iri(a), type(r), properties(r), iri(b)").fetchall()
    return sorted(map(repr, vertices)), sorted(map(repr, edges))


def exported(db: graphdb.Database, path: Path, graph: Any = None) -> str | None:
    """Export and load again; return why that was refused, or None where the graph is the same as :func:`seen`."""
    try:
        db.export(path)
    except GraphDBError as error:
        assert not path.exists()
        return str(error)
    with graphdb.connect(device="cpu") as other:
        other.load(str(path / "*") if path.suffix == ".parquet" else path)
        assert seen(other) == (graph or seen(db)), path.suffix
    return None


@settings(max_examples=scaled(2), deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(IRIS, IRIS, IRIS, NAMES, NAMES, NAMES, NAMES, TEXTS)
@example("http://x/[", "http://x/%b", "http://x/p]", "e[", "k`", "l;", "m\t", "\t\n\r\0")
@example("http://x/a", "http://x/b", "http://x/p", "\ufffe", "a:ID", ":TYPE", "type", "]]>&\\")
def test_any_names(a: str, b: str, p: str, edge: str, key: str, other: str, label: str, text: str) -> None:
    names = dict(zip(("edge", "key", "other", "label"), map(quoted, (edge, key, other, label)), strict=True))
    with tempfile.TemporaryDirectory() as folder, graphdb.connect(device="cpu") as db:
        (Path(folder) / "a.nt").write_text(f"<{a}> <{p}> <{b}> .\n", encoding="utf-8", newline="")
        db.load(Path(folder) / "a.nt")
        try:
            db.query(STATEMENT.format_map(names), a=a, b=b, value=text)
        except GraphDBError:  # two keys of one name, or a name that none can have
            return
        graph = seen(db)
        for format in FORMATS:
            refused = exported(db, Path(folder) / f"out.{format}", graph)
            if refused is None:
                continue
            assert format in ("ttl", "trig", "graphml"), refused
            if format == "graphml":
                assert "being XML, cannot hold" in refused
            else:
                assert any(f"<{shown(iri)}> cannot be written" in refused for iri in (a, b, p)), refused


@pytest.mark.parametrize("odd", ["[", "]", "%b", "##", "\ue000", "\x7f"])
def test_what_turtle_refuses(tmp_path: Path, odd: str) -> None:
    iri = f"http://x/é{odd}"
    lines = [*(f"<e:{i}> <e:p> <e:o> .\n" for i in range(2000)), f"<e:z> <e:p> <<( <e:a> <e:p> <{iri}> )>> .\n"]
    (tmp_path / "a.nt").write_text("".join(lines), encoding="utf-8")
    with graphdb.connect(device="cpu") as db:
        db.load(tmp_path / "a.nt")
        for format in ("ttl", "trig"):
            assert f"<{shown(iri)}> cannot be written" in str(exported(db, tmp_path / f"out.{format}"))
        assert exported(db, tmp_path / "out.nt") is None


def test_blanks_in_triple_terms(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text('<e:a> <e:p> <<( <e:a> <e:p> "\t" )>> .\n<e:a> <e:p> <e:b> .\n')
    with graphdb.connect(device="cpu") as db:
        db.load(tmp_path / "a.nt")
        assert exported(db, tmp_path / "out.graphml") is None


@pytest.mark.parametrize(
    "line", ["<e:a\ufffe> <e:p> <e:b> .", '<e:a> <e:p> <<( <e:a> <e:p> "\x0b" )>> .', '<e:a> <e:\uffff> "1" .']
)
def test_names_that_xml_cannot_hold(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.nt").write_text(line, encoding="utf-8")
    with graphdb.connect(device="cpu") as db:
        db.load(tmp_path / "a.nt")
        assert "being XML, cannot hold" in str(exported(db, tmp_path / "out.graphml"))
