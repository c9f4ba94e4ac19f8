"""The W3C's RDF 1.1 and 1.2 suites: N-Quads, Turtle, TriG, RDF/XML, and what 1.2 adds to N-Triples.

What must load loads (and gives the graph that the suite states), what must not is refused and leaves nothing.  The
list below names every test that goes otherwise, and why.
"""

from __future__ import annotations

import functools
import json
import os
import pathlib
from collections.abc import Iterator
from typing import Any, Protocol

import duckdb
import pytest

from graphdb.common.errors import LoadError
from graphdb.storage.catalog import Catalog
from graphdb.storage.file.prepared_sql import execute, execute_script, filled
from graphdb.storage.loaders.load import load
from graphdb.storage.loaders.sources import Options

SHARED = pathlib.Path(os.environ.get("GRAPHDB_SHARED", pathlib.Path(__file__).resolve().parents[2] / "../shared"))
SUITE = SHARED / "suites/rdf-tests"

LIBRARY = set(
    "xml-1.1-xml-canon-test001 xml-1.1-xml-canon-test002 xml-1.2-rdf12-xml-an-13 xml-1.2-rdf12-xml-an-14".split()
)
"""Tests that the parser library itself fails: it keeps an XML literal as it is written, and does not canonicalise it."""


def _cases(*kinds: str) -> list[Any]:
    index = SUITE / "tests.json"
    if not index.exists():
        return [pytest.param(None, marks=pytest.mark.skip(reason=f"the W3C suite is not at {SUITE}"), id="absent")]
    tests = json.loads(index.read_text())["tests"]
    return [
        pytest.param(test, id=f"{test['suite']}-{test['version']}-{test['id']}")
        for test in tests
        if test["kind"] in kinds and (test["suite"], test["version"]) != ("n-triples", "1.1")
    ]


class _HasRows(Protocol):
    """A database."""

    def rows(self, table: str, columns: str, joined: str = "") -> list[Any]:
        """Return rows of a table, and what is joined with it."""


class _Database:
    """A database, which a file is loaded into at a time."""

    def __init__(self) -> None:
        self.connection = duckdb.connect(config={"threads": 1})  # files are small
        self._catalog = Catalog(self.connection, in_memory=True)
        self._catalog.create()
        tables = self.connection.execute("SELECT table_name FROM duckdb_tables() WHERE schema_name = '_graphdb'")
        self._tables = [table for (table,) in tables.fetchall() if table not in ("meta", "prefix")]
        self._filled: list[str] | None = []

    def load(self, case: dict[str, Any]) -> None:
        """Load the file of a test."""
        self._filled = None
        load(self.connection, self._catalog, SUITE / case["file"], Options(base=case["base"]))

    def filled(self) -> list[str]:
        """Return which tables have rows, of those that a load fills."""
        if self._filled is None:
            self._filled = filled(self.connection, *self._tables)
        return self._filled

    def rows(self, table: str, columns: str, joined: str = "") -> list[Any]:
        """Return rows of a table, and what is joined with it."""
        if table not in self.filled():
            return []
        return execute(self.connection, f"SELECT {columns} FROM _graphdb.{table} {joined}").fetchall()

    def clear(self) -> None:
        """Take all that was loaded out of it."""
        if written := self.filled():
            tables = (f"TRUNCATE _graphdb.{table}" for table in written)
            execute_script(self.connection, "; ".join(["BEGIN", *tables, "COMMIT"]))
            self._filled = []


@functools.cache
def _database() -> _Database:
    """One database for all."""
    return _Database()


@pytest.fixture
def database() -> Iterator[_Database]:
    """The database, empty; what is in it afterwards is taken out of it."""
    found = _database()
    yield found
    found.clear()


def _name(case: dict[str, Any]) -> str:
    return f"{case['suite']}-{case['version']}-{case['id']}"


@pytest.mark.parametrize("case", _cases("positive", "eval", "c14n"))
def test_positive(case: dict[str, Any], database: _Database) -> None:
    """The file loads; where the suite states a result, it is the graph in the database, blank nodes renamed."""
    database.load(case)
    pyoxigraph = pytest.importorskip("pyoxigraph")
    result = SUITE / (case["result"] or case["file"])
    if not case["result"] and case["kind"] != "eval":
        return
    format = pyoxigraph.RdfFormat.from_extension(result.suffix[1:])
    expected = pyoxigraph.Dataset(
        _lower(quad, pyoxigraph) for quad in pyoxigraph.parse(result.read_bytes(), format, base_iri=case["base"])
    )
    found = pyoxigraph.Dataset(_quads(database, pyoxigraph))
    for dataset in (expected, found):
        dataset.canonicalize(pyoxigraph.CanonicalizationAlgorithm.UNSTABLE)
    if _name(case) in LIBRARY:
        text = (SUITE / case["file"]).read_bytes()
        theirs = pyoxigraph.Dataset(pyoxigraph.parse(text, pyoxigraph.RdfFormat.RDF_XML, base_iri=case["base"]))
        theirs.canonicalize(pyoxigraph.CanonicalizationAlgorithm.UNSTABLE)
        assert found == theirs != expected
    else:
        assert found == expected


@pytest.mark.parametrize("index", _cases("positive", "eval", "c14n")[:1])
def test_the_list_names_tests(index: dict[str, Any]) -> None:
    """What is excluded is there; that it still goes otherwise is tested with each."""
    assert not LIBRARY - {case.id for case in _cases("positive", "eval", "c14n")}


@pytest.mark.parametrize("case", _cases("negative"))
def test_negative(case: dict[str, Any], database: _Database) -> None:
    with pytest.raises(LoadError):
        database.load(case)
    assert database.filled() == []


def _lower(quad: Any, pyoxigraph: Any) -> Any:
    """Language tags are kept in lower case."""

    def lower(term: Any) -> Any:
        if isinstance(term, pyoxigraph.Literal) and term.language:
            return pyoxigraph.Literal(term.value, language=term.language.lower(), direction=term.direction)
        if isinstance(term, pyoxigraph.Triple):
            return pyoxigraph.Triple(term.subject, term.predicate, lower(term.object))
        return term

    return pyoxigraph.Quad(quad.subject, quad.predicate, lower(quad.object), quad.graph_name)


def _quads(database: _HasRows, pyoxigraph: Any) -> list[Any]:
    """All that the database holds, as the library's quads."""
    terms: dict[int, Any] = {}
    for number, iri in database.rows("resource", "id, iri"):
        if iri.startswith("<<("):
            [quad] = pyoxigraph.parse(f"<e:s> <e:p> {iri} .", pyoxigraph.RdfFormat.N_TRIPLES)
            terms[number] = quad.object
        else:
            blank = iri.startswith("_:")
            terms[number] = pyoxigraph.BlankNode(iri[2:]) if blank else pyoxigraph.NamedNode(iri)
    for number, text, datatype, language in database.rows("literal", "id, lexical, datatype, language"):
        if language:
            tag, _, direction = language.partition("--")
            way = {"ltr": pyoxigraph.BaseDirection.LTR, "rtl": pyoxigraph.BaseDirection.RTL}.get(direction)
            terms[number] = pyoxigraph.Literal(text, language=tag, direction=way)
        else:
            terms[number] = pyoxigraph.Literal(text, datatype=pyoxigraph.NamedNode(datatype) if datatype else None)
    named = database.rows("quad", "subject, label, object, graph")
    in_graphs = {row[:3] for row in named}
    rows = database.rows("triple", "subject, label, object")
    quads = [pyoxigraph.Quad(*(terms[i] for i in row)) for row in rows if row not in in_graphs]
    terms[-1] = pyoxigraph.DefaultGraph()
    quads += [pyoxigraph.Quad(*(terms[i] for i in row)) for row in named]
    reifies = pyoxigraph.NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies")
    for reifier, graph, *edge in database.rows(
        "reifier",
        "reifier, coalesce(graph, -1), subject, label, object",
        "LEFT JOIN _graphdb.edge_graph USING (label, subject, object, ordinal)",
    ):
        triple = pyoxigraph.Triple(*(terms[i] for i in edge))
        quads.append(pyoxigraph.Quad(terms[reifier], reifies, triple, terms[graph]))
    quads += [
        pyoxigraph.Quad(terms[reifier], terms[key], terms[value])
        for reifier, key, value in database.rows(
            "reifier", "reifier, key, value", "JOIN _graphdb.edge_property USING (label, subject, object, ordinal)"
        )
    ]
    return quads
