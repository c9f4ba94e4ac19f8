"""What queries read of arrays does not import pandas, which takes longer than any small query."""

from __future__ import annotations

import subprocess
import sys

QUERIES = """
import sys, graphdb
db = graphdb.connect(device="cpu")
db.query("UNWIND range(1, 40) AS i CREATE (:P {id: i, name: 'p' + i})")
db.query("MATCH (a:P), (b:P) WHERE b.id = a.id + 1 CREATE (a)-[:K {since: a.id}]->(b)")
db.query("MATCH (:P {id: 3})-[k:K]-(b) RETURN b.name, k.since ORDER BY k.since").fetchall()
for _ in range(3):
    db.query("MATCH (a:P)-[:K*1..3]->(b) RETURN a, labels(b), count(*)").fetchall()
    db.query("MATCH p = ANY SHORTEST (a:P {id: 1})-[:K]->+(b:P {id: 9}) RETURN length(p)").fetchall()
print("pandas" in sys.modules)
"""


def test_pandas_is_not_imported() -> None:
    done = subprocess.run([sys.executable, "-c", QUERIES], capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout.strip() == "False", done.stderr
