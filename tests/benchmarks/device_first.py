"""The first counts of a fresh process on a device: with empty caches, and with what the process before left in them.

    python -m tests.benchmarks.device_first --graphs wiki-Vote --device cuda:0

The graph is in a file before.  Each row is a process of its own, which imports, connects and counts; times are
milliseconds on the wall, of a count from ``db.query`` to its value, *connect + triangle* of both.  The caches are those of
kernels for the host and the device, CuPy's and the driver's.  To measure what users have, install a wheel with the code
of devices (``GRAPHDB_BUILD_KERNELS=all``) and run it in a folder without a checkout; ``code`` says where the host's
kernels came from, and whether the package has an archive of the device's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from tests.benchmarks.harness import Table, main, options, scratch, surroundings
from tests.datasets import SHARED

PATTERNS = ("triangle", "diamond", "4-clique", "4-cycle")
CACHES = ("GRAPHDB_CACHE_DIR", "CUPY_CACHE_DIR", "CUDA_CACHE_PATH")

MAKE = """
import sys
from tests.benchmarks.device_queries import edges_of
import graphdb, pyarrow as pa
u, v = edges_of(sys.argv[2])
with graphdb.connect(sys.argv[1], device="cpu") as db:
    db.load(pa.table({":START_ID": u, ":END_ID": v}), type="e")
"""

COUNT = """
import json, sys, time
times, counts = {}, []
def timed(what, call):
    began = time.perf_counter()
    found = call()
    times[what] = (time.perf_counter() - began) * 1000
    return found
path, device, *texts = sys.argv[1:]
graphdb = timed("import", lambda: __import__("graphdb"))
db = timed("connect", lambda: graphdb.connect(path, device=device))
for i, text in enumerate(texts):
    counts.append(timed(i, lambda: db.query(text).scalar()))
from graphdb.storage.compile import library
home = __import__("pathlib").Path(graphdb.__file__).parent / "gpu" / "binaries"
where = library.level() if library.loaded() else "jit"
print(json.dumps([list(times.values()), counts, where + (", archive" if any(home.glob("*.zip")) else "")]))
db.close()
"""


def run(argv: list[str]) -> list[Table]:
    """Measure and return a table for each graph."""
    parser = options(__doc__, (), repeat=3, limit=120)
    parser.add_argument("--graphs", nargs="+", default=["wiki-Vote"])
    parser.add_argument("--device", default="cuda:0")
    given = parser.parse_args(argv)
    published = json.loads((SHARED / "data" / "snap" / "matchers-h200.json").read_text())
    return [_table(graph, published, given.device, given.repeat, given.limit) for graph in given.graphs]


def _table(
    graph: str, published: dict[str, dict[str, dict[str, dict[str, int]]]], device: str, runs: int, limit: float
) -> Table:
    heads = ["caches", "import", "connect", *PATTERNS, "connect + triangle", "right", "code"]
    table = Table(f"{graph} on {device}: first counts of a process, ms", heads)
    patterns = [published["patterns"][name] for name in PATTERNS]
    texts = [_text(pattern["edges"]) for pattern in patterns]  # type: ignore[arg-type]
    wanted = [published["graphs"][graph][name]["count"] for name in PATTERNS]
    with scratch() as folder:
        file = str(folder / "graph.duckdb")
        _python(MAKE, [file, graph], folder / "making", limit)
        for number in range(runs):
            caches = folder / f"caches-{number}"
            for filled in ("empty", "full", "full"):
                times, counts, code = json.loads(_python(COUNT, [file, device, *texts], caches, limit))
                found = [
                    count // int(pattern["automorphisms"]) for count, pattern in zip(counts, patterns, strict=True)
                ]
                both = times[1] + times[2]
                right = "yes" if found == wanted else "NO"
                table.add(filled, *(f"{each:,.0f}" for each in (*times, both)), right, code)
    table.notes.append(surroundings("graphdb"))
    return table


def _text(edges: list[list[int]]) -> str:
    return f"MATCH DIFFERENT NODES {', '.join(f'(v{a})-[:e]-(v{b})' for a, b in edges)} RETURN count(*)"


def _python(program: str, arguments: list[str], caches: Path, limit: float) -> str:
    caches.mkdir(mode=0o700, exist_ok=True)
    environment = os.environ | {name: str(caches / name.lower()) for name in CACHES}
    time.sleep(0.5)  # the driver closes the device of the process before
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], env=environment, capture_output=True, text=True, timeout=limit
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout


if __name__ == "__main__":
    main(run)
