"""DISTINCT, count(DISTINCT) and grouped counts on real data: what DuckDB's joins over all triples say."""

from __future__ import annotations

from collections.abc import Iterator
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
"""
WALK = "FROM knows k1 JOIN knows k2 ON k1.o = k2.s AND k1.s <> k2.o JOIN interest i ON i.s = k2.o"
TRIANGLE = "FROM knows a JOIN knows b ON a.o = b.s JOIN knows c ON b.o = c.s AND c.o = a.s"

LSQB = [
    ("(a)-[:knows]-(b)-[:knows]-(c)-[:hasInterest]->(t)", "a", "count(*)", f"SELECT k1.s, count(*) {WALK} GROUP BY 1"),
    ("(a)-[:knows]-(b)-[:knows]-(c)-[:hasInterest]->(t)", "t", "count(*)", f"SELECT i.o, count(*) {WALK} GROUP BY 1"),
    ("(a)-[:knows]-(b)-[:knows]-(c)-[:hasInterest]->(t)", "a, b", "count(*)",
     f"SELECT k1.s, k1.o, count(*) {WALK} GROUP BY 1, 2"),
    ("(a)-[:knows]-(b)-[:knows]-(c)-[:hasInterest]->(t)", "b", "count(DISTINCT a)",
     f"SELECT k1.o, count(DISTINCT k1.s) {WALK} GROUP BY 1"),
    ("(a)-[:knows]-(b)-[:knows]-(c)-[:knows]-(a)", "a", "count(*)", f"SELECT a.s, count(*) {TRIANGLE} GROUP BY 1"),
    ("(a)-[:knows]-(b)-[:knows]-(c)-[:knows]-(a), (a)-[:isLocatedIn]->(x)<-[:isLocatedIn]-(b)", "x", "count(*)",
     f"SELECT x.o, count(*) {TRIANGLE} JOIN city x ON x.s = a.s JOIN city y ON y.s = a.o AND y.o = x.o GROUP BY 1"),
]  # fmt: skip


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
    with graphdb.connect(tmp_path / "wikidata.duckdb") as database:
        database.load(shared("data", "wikidata", "wikidata-1hop.nt.gz"))
        want = database.sql(
            "SELECT x.object, count(*) AS n, count(DISTINCT x.subject) AS d FROM triples x JOIN triples y "
            "ON x.object = y.subject WHERE y.datatype IS NULL AND x.predicate NOT LIKE '%22-rdf-syntax-ns#type' "
            "AND y.predicate NOT LIKE '%22-rdf-syntax-ns#type' GROUP BY 1 ORDER BY n DESC, 1 LIMIT 25"
        ).fetchall()
        pattern = "MATCH REPEATABLE ELEMENTS (a)-->(b)-->(c)"
        order = "ORDER BY n DESC, x LIMIT 25"
        found = database.query(f"{pattern} RETURN iri(b) AS x, count(*) AS n, count(DISTINCT a) AS d {order}")
        assert found.fetchall() == want
        found = database.query(f"{pattern} RETURN iri(b) AS x, count(*) AS n {order}")
        assert found.fetchall() == [row[:2] for row in want]
