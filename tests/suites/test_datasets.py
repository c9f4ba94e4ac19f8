"""The shared data sets: every query gives the stated count, counted and enumerated."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import graphdb
from tests.datasets import SHARED, pattern_query, queries, shared

FILES = {
    "watdiv": "watdiv.sf1.nt.gz",
    "lubm": "lubm.u1.nt.gz",
    "wikidata": "wikidata-1hop.nt.gz",
    "lsqb": "lsqb-sf0.1.nt.gz",
}
ENUMERATED = 500_000
"""Counts up to which the rows are enumerated too."""


@pytest.fixture(scope="module", params=FILES)
def loaded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Any]]:
    path = shared("data", request.param, FILES[request.param])
    with graphdb.connect(tmp_path_factory.mktemp("data") / f"{request.param}.duckdb") as database:
        report = database.load(path)
        assert report.errors == 0
        stated = json.loads((path.parent / "queries.json").read_text()).get("distinct_triples")
        assert stated is None or report.new_triples == stated
        yield request.param, database


def test_every_query_gives_the_stated_count(loaded: tuple[str, graphdb.Database]) -> None:
    name, database = loaded
    for query in queries(name):
        assert database.query(pattern_query(query)).scalar() == query["count"], query["name"]


def test_enumeration_gives_as_many_rows(loaded: tuple[str, graphdb.Database]) -> None:
    name, database = loaded
    for query in queries(name):
        if "patterns" not in query or query["count"] > ENUMERATED:
            continue
        variables = ", ".join(sorted({term[1:] for pattern in query["patterns"] for term in pattern if term[0] == "?"}))
        assert len(database.query(pattern_query(query, variables))) == query["count"], query["name"]


def edge_list(name: str) -> Iterator[tuple[str, str]]:
    with gzip.open(shared("data", "snap", f"{name}.txt.gz"), "rt") as lines:
        for line in lines:
            if not line.startswith("#"):
                source, target = line.split()
                yield source, target


@pytest.mark.parametrize("name", ["facebook-combined", "wiki-Vote", "email-Enron", "ca-AstroPh-cc1"])
def test_subgraphs_of_social_networks(name: str, tmp_path: Path) -> None:
    """Unlabelled patterns under subgraph isomorphism: each subgraph once per automorphism."""
    stated = json.loads(shared("data", "snap", "counts.json").read_text())["graphs"][name]
    file = tmp_path / "graph.nt"
    edges = edge_list(name)
    file.write_text("".join(f"<urn:v:{a}> <urn:p:e> <urn:v:{b}> .\n" for a, b in edges))
    with graphdb.connect() as database:
        assert database.load(file).new_triples == stated["edges"]
        for pattern, automorphisms, key in [
            ("(a)-[:e]-(b)-[:e]-(c), (a)-[:e]-(c)", 6, "triangles"),
            ("(a)-[:e]-(b), (b)-[:e]-(c)", 2, "wedges"),
        ]:
            found = database.query(f"MATCH DIFFERENT NODES {pattern} RETURN count(*)").scalar()
            assert found == stated[key] * automorphisms


@pytest.mark.skipif(not SHARED.exists(), reason=f"{SHARED} is not here; set GRAPHDB_SHARED")
def test_the_data_sets_are_found() -> None:
    assert all(queries(name) for name in FILES)
