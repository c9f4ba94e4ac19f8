"""Do with an installed wheel what users do, and see that nothing asks for a compiler of kernels: Numba or llvmlite.

Run it with the Python of the environment where the wheel is installed, with what the examples need besides, in an empty
folder: ``python tour.py EXAMPLES``.
"""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from urllib.request import urlopen

COMPILER = ("numba", "llvmlite")
FORMATS = ("all.nt", "all.nq", "all.ttl", "all.trig", "all.nt.gz", "all.nt.zst", "all.graphml", "all.parquet")

asked: set[str] = set()


class Watch:
    """Notes who is looked for, whether it is there or not."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Find nothing."""
        if name.partition(".")[0] in COMPILER:
            asked.add(name)
        return None


def check(done: str) -> None:
    """Say what was done, if nothing asked for the compiler meanwhile."""
    there = asked | {name for name in sys.modules if name.partition(".")[0] in COMPILER}
    if there:
        sys.exit(f"{done}: {', '.join(sorted(there))} imported, or looked for")
    print(f"{done}: no compiler")


sys.meta_path.insert(0, Watch)  # type: ignore[arg-type]

import graphdb  # noqa: E402 - whoever it imports is to be seen
from graphdb.data import GEOGRAPHY  # noqa: E402
from graphdb.shell.cli import run  # noqa: E402
from graphdb.workbench.server import Workbench  # noqa: E402

assert "site-packages" in str(graphdb.__file__), graphdb.__file__
with contextlib.redirect_stdout(io.StringIO()):
    assert run(["demo"]) == 0
check("demo")

for example in sorted(Path(sys.argv[1]).glob("*.py")):
    with contextlib.redirect_stdout(io.StringIO()):
        runpy.run_path(str(example), run_name="__main__")
    check(example.name)

sys.stdin = io.StringIO(f"LOAD '{GEOGRAPHY}';\n.schema\nMATCH (c:Country) RETURN count(*);\nSELECT 1;\n")
with contextlib.redirect_stdout(io.StringIO()) as said:
    assert run(["shell.duckdb"]) == 0
assert "250\n(1 row)" in said.getvalue(), said.getvalue()
check("shell")

QUERIES = (
    "MATCH (a:Country)-[:neighbour]->(b)-[:neighbour]->(c), (a)-[:neighbour]->(c) RETURN count(*)",
    "MATCH INDUCED (a:Country)-[:neighbour]->(b)-[:neighbour]->(c) RETURN count(*)",
    "MATCH (a:Country)-[:neighbour]->(b)-[:neighbour]->(c) RETURN a.name, c.name",
    "MATCH p = ANY SHORTEST (a:Country {name: 'Spain'})-[:neighbour]->+(b {name: 'China'}) RETURN p",
    "MATCH p = (a:Country {name: 'Spain'})-[:neighbour]->{1,3}(b) RETURN p",
    "MATCH p = SHORTEST 2 GROUPS (a:Country {name: 'Spain'})-[:neighbour]->+(b {name: 'Poland'}) RETURN length(p)",
    "MATCH TRAIL (a:Country {name: 'Spain'})-[:neighbour]->{2,3}(b:Country) RETURN count(*)",
    "MATCH (a:Country)-[:neighbour]->(b)-[:neighbour]->(c)-[:neighbour]->(d)-[:neighbour]->(a) RETURN count(*)",
    "MINE CLIQUES OF SIZE 3..5 OVER :neighbour",
    "MINE CLIQUES OF SIZE 3..20 MAXIMAL OVER :neighbour",
    "MINE MOTIFS OF SIZE 4 OVER :neighbour",
    "MINE FREQUENT PATTERNS WITH SUPPORT >= 20 UP TO 2 EDGES OVER :neighbour",
    "MATCH (a:Country) OPTIONAL MATCH (a)-[:neighbour]->(b) RETURN a.name, collect(b.name)",
    "UNWIND range(1, 9) AS i RETURN reduce(s = 0, x IN range(0, i) | s + x)",
    "MATCH (a:Country) WHERE EXISTS { (a)-[:neighbour]->() } RETURN DISTINCT a.name ORDER BY a.name LIMIT 3",
    "UNWIND range(1, 2000) AS i CREATE (:N {k: i})-[:next {w: i}]->(:M {k: i})",
    "MATCH p = ANY SHORTEST (a:N {k: 5})-[r:next]->+(b) COST BY r.w RETURN length(p)",
    "MATCH (n:N)-[r:next]->(m) WHERE n.k % 2 = 0 SET n.half = n.k / 2, r.w = 0",
    "MERGE (n:N {k: 7}) ON MATCH SET n.seen = true",
    "MATCH (n:N) WHERE n.k > 1000 DETACH DELETE n",
    "CREATE TABLE names AS MATCH (c:Country) RETURN c.name AS name",
)
with graphdb.connect("tour.duckdb") as db:
    db.load(GEOGRAPHY)
    check("load")
    for query in QUERIES:
        db.query(query).fetchall()
        check(query)
    for name in FORMATS:
        db.export(name)
        with graphdb.connect() as again:
            again.load(f"{name}/*.parquet" if name == "all.parquet" else name)
            assert again.query("MATCH (n:N) RETURN count(*)").scalar() == 1000, name
        check(f"export and load of {name}")
    db.query("CREATE CONTINUOUS QUERY near AS MATCH (:Country {name: 'Spain'})-[:neighbour]->(n) RETURN n.name AS name")
    [(spain, norway)] = db.query("MATCH (a:Country {name: 'Spain'}), (b:Country {name: 'Norway'}) RETURN a, b")
    with db.watch("near") as watch:
        db.apply([(spain, "neighbour", norway)])
        assert watch.next(timeout=10).added.to_pylist() == [{"name": "Norway"}]
        db.query("MATCH (:Country {name: 'Spain'})-[e:neighbour]->(:Country {name: 'Norway'}) DELETE e")
        assert watch.next(timeout=10).removed.to_pylist() == [{"name": "Norway"}]
    check("a continuous query, and changes by apply and by a statement")
    db.sql("VACUUM")
    drawn = db.query("MATCH (a:Country {name: 'Spain'})-[e:neighbour]->(b) RETURN a, e, b").graph().html()
    assert "ForceGraph" in drawn
    with Workbench(db, 0) as workbench:
        for path in re.findall(r'(?:src|href)="/([^"]+)"', urlopen(workbench.url).read().decode()):
            assert urlopen(workbench.url.partition("#")[0] + path).read(), path
    check("pictures and the workbench")
check("all")
