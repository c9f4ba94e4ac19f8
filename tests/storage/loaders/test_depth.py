"""Files in which things stand within each other too deeply are refused, with the place, and soon.

``GRAPHDB_FUZZ`` multiplies the number of random texts.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import subprocess
import sys
from dataclasses import replace
from itertools import count, pairwise
from pathlib import Path
from typing import Any
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphdb
from graphdb.common.errors import LoadError
from graphdb.storage.loaders.files import DataFile
from graphdb.storage.loaders.formats import JSON_LD, RDF_XML, TURTLE, Format
from graphdb.storage.loaders.rdf.depth import DEEPEST, DEEPEST_JSON, DEEPEST_TERM, NESTINGS, Depth
from tests.fuzz import scaled

pyoxigraph = pytest.importorskip("pyoxigraph")

DEEP = 100_000

GRAPHML = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:g="urn:x-graphdb:list">\n'

JSON = {
    "nodes": ('{"e:p":', "1", "}"),
    "arrays": ('{"e:p":[', "1", "]}"),
    "lists": ('{"e:p":{"@list":[', "1", "]}}"),
    "graphs": ('{"@graph":', "[]", "}"),
    "reverse": ('{"@reverse":{"e:p":', "[]", "}}"),
    "contexts": ('{"@context":{"p":{"@id":"e:p","@context":', "{}", "}}}"),
    "hidden by strings": ('{"e:}}]]\\"}}":', "1", "}"),
    "never closed": ('{"e:p":', "", ""),
}

XML = {
    "graphs": ("<graph>", "", "</graph>"),
    "vertices": ('<graph><node id="a">', "", "</node></graph>"),
    "of others": ('<x xmlns="e:">', "", "</x>"),
    "never closed": ("<graph>", "", ""),
}


@pytest.fixture
def db() -> Any:
    with graphdb.connect(device="cpu") as db:
        yield db


def nested(parts: tuple[str, str, str], times: int) -> str:
    before, within, after = parts
    return before * times + within + after * times


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("kind", JSON)
def test_json(db: graphdb.Database, tmp_path: Path, kind: str, skip: bool) -> None:
    path = tmp_path / "deep.jsonld"
    path.write_text('{"@id":\n"e:a", "é": ' + nested(JSON[kind], DEEP) + "}")
    with pytest.raises(LoadError, match=f"nested deeper than {DEEPEST_JSON}") as refused:
        db.load(path, on_error="skip" if skip else "stop")
    before = JSON[kind][0]
    marks = [at for at, mark in enumerate(before.replace('e:}}]]\\"}}', "." * 10)) if mark in "[{"]  # of names, none
    times, last = divmod(DEEPEST_JSON - 1, len(marks))
    column = len('"e:a", "é": ') + times * len(before) + marks[last] + 1
    assert (refused.value.source, refused.value.line, refused.value.column) == (str(path), 2, column)
    assert db.query("MATCH (n) RETURN count(*)").scalar() == 0
    db.query("CREATE (:After)")


def test_json_that_is_not_too_deep(db: graphdb.Database, tmp_path: Path) -> None:
    (tmp_path / "a.jsonld").write_text(nested(JSON["nodes"], DEEPEST_JSON))
    assert db.load(tmp_path / "a.jsonld").triples == DEEPEST_JSON


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("kind", XML)
def test_graphml(db: graphdb.Database, tmp_path: Path, kind: str, skip: bool) -> None:
    path = tmp_path / "deep.graphml"
    path.write_text(GRAPHML + nested(XML[kind], DEEP) + "</graphml>")
    with pytest.raises(LoadError, match=f"nested deeper than {DEEPEST:,}") as refused:
        db.load(path, on_error="skip" if skip else "stop")
    assert (refused.value.source, refused.value.line) == (str(path), 2)
    assert refused.value.column is not None
    assert db.query("MATCH (n) RETURN count(*)").scalar() == 0
    (tmp_path / "good.graphml").write_text(GRAPHML + nested(XML["graphs"], DEEPEST - 1) + "</graphml>")
    assert db.load(tmp_path / "good.graphml").triples == 0


REIFIES = "http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies"
HEAD = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="e:">'
TAGS = "<rdf:Description><e:p>", "x", "</e:p></rdf:Description>"
RDF = {
    "plain": (HEAD, TAGS),
    "hidden by values": (HEAD, ("<rdf:Description e:q='/>'><e:p>", "x", TAGS[2])),
    "hidden by text": (HEAD, ("<rdf:Description>/><e:p>", "x", TAGS[2])),
    "hidden by comments": (HEAD + "<!-- </ /> ' -->" * DEEPEST, TAGS),
    "behind the end": (HEAD + "</rdf:RDF>" + HEAD, TAGS),
    "never closed": (HEAD, (TAGS[0], "", "")),
}


@pytest.mark.parametrize("how", ["path", "stream", "packed stream", "skip"])
@pytest.mark.parametrize("kind", RDF)
def test_rdf_xml(db: graphdb.Database, tmp_path: Path, kind: str, how: str) -> None:
    """Of every source alike; the place is that of the first element that is too deep."""
    head, parts = RDF[kind]
    text = head + "\n<e:é>" + nested(parts, DEEP // 10)
    path = tmp_path / "deep.rdf"
    path.write_text(text, encoding="utf-8")
    packed = gzip.compress(text.encode()) if how == "packed stream" else text.encode()
    options: dict[str, Any] = (
        {"format": "rdf"} if "stream" in how else {"on_error": "skip" if how == "skip" else "stop"}
    )
    with pytest.raises(LoadError, match=f"nested deeper than {DEEPEST:,}") as refused:
        db.load(io.BytesIO(packed) if "stream" in how else path, **options)
    times, second = divmod(DEEPEST - 2, 2)
    column = len("<e:é>") + times * len(parts[0]) + (parts[0].index("<e:p>") if second else 0) + 1
    assert (refused.value.line, refused.value.column) == (2, column)
    assert db.query("MATCH (n) RETURN count(*)").scalar() == 0


LINES = {
    "terms": ("<e:a> <e:b> ", ("<<( <e:a> <e:b> ", "<e:c>", " )>>"), " ."),
    "terms, joined": ("<e:a><e:b>", ("<<(<e:a><e:b>", "<e:c>", ")>>"), "."),
    "terms, hidden": ("<e:a> <e:b> ", ("<<( <e:)> <e:b> #)>>\n", r"' )>>\\\' )>>'", " )>>"), " ."),
    "terms, never closed": ("<e:a> <e:b> ", ("<<( <e:a> <e:b> ", "", ""), ""),
    "reified": ("", ("<< ", "<e:a>", " <e:b> <e:c> >>"), " <e:b> 1 ."),
    "blank nodes": ("<e:a> <e:b> ", ("[ <e:b> ", "1", " ]"), " ."),
    "collections": ("<e:a> <e:b> ", ("( ", "1", " )"), " ."),
    "annotations": ("<e:a> <e:b> <e:c> ", ("{| <e:b> <e:c> ", "", " |}"), " ."),
    "graphs": ("", ("<e:g> { ", "<e:a> <e:b> <e:c>", " }"), ""),
}

PROGRAM = """
import io, json, sys
import graphdb
from graphdb.common.errors import LoadError

with graphdb.connect(device="cpu") as db:
    for kind, (before, (begin, within, end), after) in json.loads(sys.argv[1]).items():
        for depth in (1000, 1001, 100_000) if "terms" in kind else (10, 5_000):
            text = before + begin * depth + within + end * depth + after
            try:
                db.load(io.BytesIO(text.encode()), format=sys.argv[2], on_error=sys.argv[3])
            except LoadError as error:
                assert error.line and error.column, (kind, depth, error)
                print(kind, depth, str(error).splitlines()[0], sep="|")
"""


@pytest.mark.parametrize(("format", "skip"), [("ttl", "stop"), ("trig", "skip")])
def test_rdf_text(format: str, skip: str) -> None:
    """What is nested however deeply is loaded, or refused with its place: in a process of its own, which might crash."""
    command = [sys.executable, "-c", PROGRAM, json.dumps(LINES), format, skip]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    refused = {(kind, int(depth)): said for kind, depth, said in (line.split("|") for line in done.stdout.splitlines())}
    too_deep = {case for case, said in refused.items() if f"more than {DEEPEST_TERM:,} deep" in said}
    assert too_deep == {(kind, depth) for kind in LINES if "terms" in kind for depth in (1001, 100_000)}
    broken = {"terms, never closed", "graphs"} if skip == "stop" else set()
    assert {kind for kind, _ in refused.keys() - too_deep} == broken


# --- against models


def followed(text: bytes, format: Format, most: int, chance: random.Random) -> LoadError | None:
    """What following a text, cut anywhere, says."""
    ends = sorted({0, len(text), *(chance.randrange(len(text) + 1) for _ in range(chance.randrange(9)))})
    follower = Depth(DataFile(Path("a"), len(text), None, format), replace(NESTINGS[format], most=most))
    try:
        for start, end in pairwise(ends):
            follower.follow(text[start:end])
    except LoadError as error:
        return error
    return None


def deepest(text: bytes, format: Format, chance: random.Random) -> int:
    """How deep things are nested, by following the text."""
    return next(most for most in count() if followed(text, format, most, chance) is None)


def height(value: object) -> int:
    """How deeply objects and arrays stand within each other."""
    if isinstance(value, dict):
        return 1 + max(map(height, value.values()), default=0)
    return 1 + max(map(height, value), default=0) if isinstance(value, list) else 0


TEXTS = st.text(st.sampled_from('{}[]"\\\n,:a é'), max_size=8)
VALUES = st.recursive(
    TEXTS | st.none() | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=20,
)
CHANCE = st.randoms(use_true_random=False)


@settings(max_examples=scaled(100), deadline=None)
@given(VALUES, st.booleans(), st.none() | st.integers(0, 2), CHANCE)
def test_json_is_followed(value: object, ascii: bool, indent: int | None, chance: random.Random) -> None:
    text = json.dumps([value], ensure_ascii=ascii, indent=indent).encode()
    assert followed(text, JSON_LD, height([value]), chance) is None
    found = followed(text, JSON_LD, height([value]) - 1, chance)
    assert found is not None
    assert found.line
    assert found.column
    assert text.decode().split("\n")[found.line - 1][found.column - 1] in "[{"


def elements(text: bytes) -> int:
    """How deeply elements stand within each other, by an XML parser."""
    parser, heights = expat.ParserCreate(), [0]
    parser.StartElementHandler = lambda *_: heights.append(heights[-1] + 1)
    parser.EndElementHandler = lambda *_: heights.append(heights[-1] - 1)
    parser.Parse(text, True)
    return max(heights)


PIECES = st.sampled_from(
    ["é", "/>", ">", "'", '"', "<!-- <a> - -->", "<!---->", "<!-->-->", "<!--->-->", "<![CDATA[<a>]]]>", "<![CDATA[]]>",
     "<?p <a> ??>", "<?p?>", "\n"]
)  # fmt: skip
TREES = st.recursive(
    PIECES,
    lambda inner: st.builds(
        lambda name, value, space, children: (
            f"<{name} x{space}={quoteattr(value).replace('&gt;', '>')}{space}"
            + (">" + "".join(children) + f"</{name}{space}>" if children else "/>")
        ),
        st.sampled_from(["a", "é:b"]),
        st.text(st.sampled_from("/>'\" a"), max_size=4),
        st.sampled_from(["", " ", "\n"]),
        st.lists(inner, max_size=3),
    ),
    max_leaves=20,
)


@settings(max_examples=scaled(100), deadline=None)
@given(TREES, CHANCE)
def test_xml_is_followed(tree: str, chance: random.Random) -> None:
    text = f"<?xml version='1.0'?><!DOCTYPE r [<!ENTITY e 'x'>]><r>{tree}</r>".encode()
    assert deepest(text, RDF_XML, chance) == elements(text)


def terms(term: Any) -> int:
    """How deeply triple terms stand within each other."""
    return 1 + terms(term.object) if isinstance(term, pyoxigraph.Triple) else 0


def library(text: bytes) -> tuple[int, bool]:
    """How deeply the library nests the triple terms of a text, errors left out, and whether there were none."""
    found, before = 0, None
    parser = pyoxigraph.parse(text, pyoxigraph.RdfFormat.TRIG, base_iri="e:")
    while True:
        try:
            for quad in parser:
                found = max(found, terms(quad.object) - (quad.predicate.value == REIFIES))  # of << … >>
            return found, before is None
        except SyntaxError as error:
            if error.args == before:
                return found, False
            before = error.args


LEAVES = ["<e:)>", "<>", "<e:#>", "''", '""', "'<<('", '''"""<<( "" \\""" """''', "\'\'\'<<( \' \'\'\'", "p:a\\(b", "p:", "_:b", "1", "()",
          "(<e:a> ())", "[]", "[<e:b> 'x'@en]", r"'\'<<('", r'"\\"', "true", "# <<( '\n<e:c>", "<< <e:a> <e:b> <e:c> >>"]  # fmt: skip
TERMS = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.builds(
        "<<({0}{1}{0}<e:b>{0}{2}{0})>>".format,
        st.sampled_from(["", " ", "#)>>\n"]),
        st.sampled_from(["<e:a>", "_:b", "p:a"]),
        inner,
    ),
)
STATEMENTS = st.lists(TERMS.map("<e:a> <e:b> {} .\n".format), max_size=4).map("".join)


@settings(max_examples=scaled(100), deadline=None)
@given(STATEMENTS, CHANCE)
def test_turtle_is_followed(statements: str, chance: random.Random) -> None:
    text = b"@prefix p: <e:> .\n" + statements.encode()
    found, good = library(text)
    if good:
        assert deepest(text, TURTLE, chance) == found
