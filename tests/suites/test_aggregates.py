"""DISTINCT, count(DISTINCT) and grouped counts on real data: what DuckDB's joins over all triples say."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

import graphdb
from tests.datasets import shared
from tests.suites.test_datasets import edge_list

KNOWS = """
CREATE TEMP TABLE knows AS
SELECT subject AS s, object AS o FROM triples WHERE predicate = 'http://ldbcouncil.org/lsqb/knows'
UNION SELECT object, subject FROM triples WHERE predicate = 'http://ldbcouncil.org/lsqb/knows';
CREATE TEMP TABLE interest AS
SELECT subject AS s, object AS o FROM triples WHERE predicate = 'http://ldbcouncil.org/lsqb/hasInterest';
CREATE TEMP TABLE city AS
SELECT subject AS s, object AS o FROM triples WHERE predicate = 'http://ldbcouncil.org/lsqb/isLocatedIn';
CREATE TEMP TABLE wedge AS
SELECT k1.s AS a, k1.o AS b, k2.o AS c FROM knows k1 JOIN knows k2 ON k1.o = k2.s AND k1.s <> k2.o;
CREATE TEMP TABLE triangle AS SELECT a, b FROM wedge JOIN knows ON s = c AND o = a;
CREATE TEMP TABLE interests AS SELECT s, count(*) AS n FROM interest GROUP BY s;
"""
INTERESTS = "FROM wedge JOIN interests ON s = c"  # n of them end each wedge

LSQB = [
    ("(a)-[:knows]-(b)-[:knows]-(c)-[:hasInterest]->(t)", "a", "count(*)",
     f"SELECT a, sum(n)::BIGINT {INTERESTS} GROUP BY 1"),
    ("(a)-[:knows]-(b)-[:knows]-(c)-[:hasInterest]->(t)", "t", "count(*)",
     "SELECT o, sum(n)::BIGINT FROM (SELECT c, count(*) AS n FROM wedge GROUP BY c) JOIN interest ON s = c GROUP BY 1"),
    ("(a)-[:knows]-(b)-[:knows]-(c)-[:hasInterest]->(t)", "a, b", "count(*)",
     f"SELECT a, b, sum(n)::BIGINT {INTERESTS} GROUP BY 1, 2"),
    ("(a)-[:knows]-(b)-[:knows]-(c)-[:hasInterest]->(t)", "b", "count(DISTINCT a)",
     f"SELECT b, count(DISTINCT a) {INTERESTS} GROUP BY 1"),
    ("(a)-[:knows]-(b)-[:knows]-(c)-[:knows]-(a)", "a", "count(*)", "SELECT a, count(*) FROM triangle GROUP BY 1"),
    ("(a)-[:knows]-(b)-[:knows]-(c)-[:knows]-(a), (a)-[:isLocatedIn]->(x)<-[:isLocatedIn]-(b)", "x", "count(*)",
     "SELECT x.o, count(*) FROM triangle JOIN city x ON x.s = a JOIN city y ON y.s = b AND y.o = x.o GROUP BY 1"),
]  # fmt: skip
"""Patterns, keys, numbers, and SQL for the rows: what many walks share is counted once."""


@pytest.fixture(scope="module")
def lsqb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[graphdb.Database]:
    with graphdb.connect(tmp_path_factory.mktemp("lsqb") / "lsqb.duckdb") as database:
        database.load(shared("data", "lsqb", "lsqb-sf0.1.nt.gz"))
        database.sql(KNOWS)
        yield database


@pytest.mark.parametrize(("pattern", "keys", "number", "sql"), LSQB)
def test_groups_of_a_social_network(lsqb: graphdb.Database, pattern: str, keys: str, number: str, sql: str) -> None:
    returned = ", ".join(f"iri({key})" for key in keys.split(", "))
    want = sorted(lsqb.sql(sql).fetchall())
    assert sorted(lsqb.query(f"MATCH {pattern} RETURN {returned}, {number}").fetchall()) == want
    distinct = lsqb.query(f"MATCH {pattern} RETURN DISTINCT {returned}").fetchall()
    assert sorted(distinct) == [row[:-1] for row in want]
    first = keys.split(", ")[0]
    assert lsqb.query(f"MATCH {pattern} RETURN count(DISTINCT {first})").scalar() == len({row[0] for row in want})


@pytest.mark.parametrize("mode", ["REPEATABLE ELEMENTS", "DIFFERENT NODES", "DIFFERENT EDGES"])
def test_wedges_by_centre(mode: str, tmp_path: Path) -> None:
    """A directed graph with edges both ways: what must differ decides."""
    file = tmp_path / "graph.nt"
    edges = edge_list("wiki-Vote")
    file.write_text("".join(f"<urn:v:{a}> <urn:p:e> <urn:v:{b}> .\n" for a, b in edges))
    differ = {
        "REPEATABLE ELEMENTS": "true",
        "DIFFERENT NODES": "e.subject <> f.object AND e.object <> e.subject AND f.object <> f.subject",
        "DIFFERENT EDGES": "(e.subject, e.object) <> (f.subject, f.object)",
    }[mode]
    with graphdb.connect() as database:
        database.load(file)
        want = database.sql(
            f"SELECT e.object, count(*) AS n FROM triples e JOIN triples f ON e.object = f.subject AND {differ} "
            "GROUP BY 1 ORDER BY n DESC, 1 LIMIT 20"
        ).fetchall()
        found = database.query(
            f"MATCH {mode} (a)-[:e]->(b)-[:e]->(c) RETURN iri(b) AS b, count(*) AS n ORDER BY n DESC, b LIMIT 20"
        )
        assert found.fetchall() == want


def test_groups_of_wikidata(tmp_path: Path) -> None:
    """Any edge label, a variable number of data edges between two vertices."""
    file = tmp_path / "part.nt"
    with gzip.open(shared("data", "wikidata", "wikidata-1hop.nt.gz"), "rb") as lines:
        file.write_bytes(b"".join(islice(lines, 150_000)))
    with graphdb.connect(tmp_path / "wikidata.duckdb") as database:
        database.load(file)
        # Of edges in and edges out any two go together.
        edges = "FROM triples WHERE datatype IS NULL AND predicate NOT LIKE '%22-rdf-syntax-ns#type'"
        want = database.sql(
            f"WITH ends AS (SELECT object AS b, count(*) AS i, count(DISTINCT subject) AS d {edges} GROUP BY 1), "
            f"starts AS (SELECT subject AS b, count(*) AS o {edges} GROUP BY 1) "
            "SELECT b, i * o AS n, d FROM ends JOIN starts USING (b) ORDER BY n DESC, 1 LIMIT 25"
        ).fetchall()
        assert len(want) == 25
        pattern = "MATCH REPEATABLE ELEMENTS (a)-->(b)-->(c)"
        order = "ORDER BY n DESC, x LIMIT 25"
        found = database.query(f"{pattern} RETURN iri(b) AS x, count(*) AS n, count(DISTINCT a) AS d {order}")
        assert found.fetchall() == want
        found = database.query(f"{pattern} RETURN iri(b) AS x, count(*) AS n {order}")
        assert found.fetchall() == [row[:2] for row in want]
