"""The W3C RDF 1.1 N-Triples test suite: 41 files that must load, 29 that must not; one test each."""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any

import duckdb
import pytest

from graphdb.common.errors import LoadError
from graphdb.storage.catalog import Catalog
from graphdb.storage.loaders.load import load

SHARED = pathlib.Path(os.environ.get("GRAPHDB_SHARED", pathlib.Path(__file__).resolve().parents[2] / "../shared"))
SUITE = SHARED / "suites/rdf-tests"


def _cases(kind: str) -> list[Any]:
    index = SUITE / "tests.json"
    if not index.exists():
        return [pytest.param(None, marks=pytest.mark.skip(reason=f"the W3C suite is not at {SUITE}"), id="absent")]
    tests = json.loads(index.read_text())["tests"]
    return [
        pytest.param(test, id=test["id"])
        for test in tests
        if test["suite"] == "n-triples" and test["version"] == "1.1" and test["kind"] == kind
    ]


@pytest.fixture
def database() -> tuple[duckdb.DuckDBPyConnection, Catalog]:
    connection = duckdb.connect()
    catalog = Catalog(connection)
    catalog.create()
    return connection, catalog


@pytest.mark.parametrize("case", _cases("positive"))
def test_positive(case: dict[str, Any], database: tuple[duckdb.DuckDBPyConnection, Catalog]) -> None:
    """The file loads, with as many triples as the suite states, and the same terms as pyoxigraph reads."""
    report = load(*database, SUITE / case["file"])
    assert report.triples == case["expected_statements"]
    pyoxigraph = pytest.importorskip("pyoxigraph")
    text = (SUITE / case["file"]).read_bytes()
    expected = {_row(quad, pyoxigraph) for quad in pyoxigraph.parse(text, pyoxigraph.RdfFormat.N_TRIPLES)}
    rows = database[0].execute("SELECT * FROM main.triples").fetchall()
    assert {tuple(_name(term) for term in row) for row in rows} == expected
    assert len(rows) == len(expected)


@pytest.mark.parametrize("case", _cases("negative"))
def test_negative(case: dict[str, Any], database: tuple[duckdb.DuckDBPyConnection, Catalog]) -> None:
    """The file is refused, with a place, and nothing is kept."""
    with pytest.raises(LoadError) as caught:
        load(*database, SUITE / case["file"])
    assert caught.value.line is not None
    assert caught.value.column is not None
    assert database[0].execute("SELECT count(*) FROM main.triples").fetchall() == [(0,)]


def _name(term: str | None) -> str | None:
    """A blank node is stored under its file's number, ``_:f0_label``: take that away."""
    return "_:" + term.split("_", 2)[2] if term and term.startswith("_:f0_") else term


def _row(quad: Any, pyoxigraph: Any) -> tuple[str | None, ...]:
    """A triple of pyoxigraph as a row of the view ``triples``."""
    terms = [quad.subject, quad.predicate, quad.object]
    names = [str(term) if isinstance(term, pyoxigraph.BlankNode) else term.value for term in terms]
    value = quad.object
    if isinstance(value, pyoxigraph.Literal):
        return (*names, value.datatype.value, value.language.lower() if value.language else None)
    return (*names, None, None)
