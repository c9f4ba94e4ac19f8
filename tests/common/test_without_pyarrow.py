"""All but tables of PyArrow works where PyArrow is not installed, and it is never imported where it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TOUR = """
import sys
sys.modules["pyarrow"] = None  # as if it were not installed
import graphdb
from importlib.resources import files
db = graphdb.connect()
db.load(files("graphdb.data") / "geography.nt.gz")
rows = db.query("MATCH (c:Country {name: 'Spain'})-[e:neighbour]->(n) RETURN n, e, n.name, n.population, [n.name], {a: n.name} ORDER BY n.name")
assert [row[2] for row in rows.fetchall()] == ["Andorra", "France", "Gibraltar", "Morocco", "Portugal"]
assert db.query("MATCH p = (:Country {name: 'Spain'})-[:neighbour]->{1,2}(n) RETURN p LIMIT 300").fetchall()
assert db.sql("SELECT count(*) FROM rows WHERE name < 'G'").scalar() == 2
assert db.sql("SELECT 1 AS a, 'x' AS b, [1] AS c, {'d': 1} AS e, DATE '2020-01-01' AS f, 1::HUGEINT AS g").fetchall()
db.query("UNWIND range(1, 2000) AS i CREATE (:N {k: i, text: 'text ' + toString(i)})-[:next {w: i * 0.5}]->(:M)")
db.query("MATCH (n:N) WHERE n.k % 2 = 0 SET n.half = n.k / 2")
assert db.query("MATCH (n:N) RETURN sum(reduce(s = 0, x IN [n.k, n.half] | s + coalesce(x, 0)))").scalar() == 2001000 + 500500
db.query("MATCH (n:N) WHERE n.k > 1000 DETACH DELETE n")
db.query("CREATE TABLE t AS MATCH (n:N) RETURN n.k AS k")
assert db.sql("SELECT sum(k) FROM cypher($$ MATCH (n:N) RETURN n.k AS k $$)").scalar() == 500500
assert db.query("MATCH (n:N) RETURN n.k AS k, n.text AS s").to_polars().shape == (1000, 2)
for name in ("all.nt", "all.ttl", "all.nq", "all.graphml", "all.parquet", "all.nt.gz"):
    db.export(name)
    with graphdb.connect() as again:
        again.load(name + "/*.parquet" if name == "all.parquet" else name)
        assert again.query("MATCH (n:N) RETURN count(*)").scalar() == 1000, name
import polars
db.load(polars.DataFrame({":ID": ["p", "q"], ":LABEL": ["P", "P"], "size:int": [1, 2]}))
assert db.query("MATCH (p:P) RETURN sum(p.size)").scalar() == 3
((spain, norway),) = db.query("MATCH (c:Country {name: 'Spain'}), (n:Country {name: 'Norway'}) RETURN c, n")
db.query("CREATE CONTINUOUS QUERY near AS MATCH (c:Country)-[:neighbour]->(n) WHERE c.name = 'Spain' RETURN n.name AS name")
assert "delta plan" in str(db.query("EXPLAIN CONTINUOUS QUERY near").fetchall())
with db.watch("near") as watch:
    db.apply([(spain, "neighbour", norway)])
    added = watch.next(timeout=60).added
    assert added.to_pylist() == [{"name": "Norway"}] and polars.DataFrame(added).shape == (1, 1)
import pandas
triple = {"s": [spain.iri], "p": ["neighbour"], "o": [norway.iri]}
assert db.apply(None, polars.DataFrame(triple)).deletions == db.apply(pandas.DataFrame(triple, index=[7])).additions == 1
assert db.apply(patch=[f"D <{spain.iri}> <http://www.geonames.org/ontology#neighbour> <{norway.iri}> ."]).deletions == 1
assert len(db.sql("FROM near")) == 5
for method in ("to_arrow", "to_pandas"):
    try:
        getattr(rows, method)()
    except graphdb.ExecutionError as error:
        assert "pip install 'graphdb-duckdb[arrow]'" in str(error), error
    else:
        raise AssertionError(method)
"""


def test_a_tour_without_pyarrow(tmp_path: Path) -> None:
    ran = subprocess.run([sys.executable, "-c", TOUR], cwd=tmp_path, capture_output=True, text=True, timeout=200)
    assert ran.returncode == 0, ran.stderr
