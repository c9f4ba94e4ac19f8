"""Counting subgraphs as users ask for it, by ``db.query``, beside published GPU matchers.

    python -m tests.benchmarks.device_queries --graphs wiki-Vote email-Enron --devices cuda:0 auto

Nothing is pinned: the planner and the executor choose.  Times are milliseconds on the wall around ``db.query(text)``:
*first* of a text in the process, *warm* of a text the plan cache knows, *new* of a text that then differs by a space (so
kernels are there), medians.  *best* is the best published kernel time, and *over* what *warm* adds to it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from typing import Any

import numpy as np

import graphdb
from tests.benchmarks.counting import rmat
from tests.datasets import SHARED


def edges_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Both ends of each edge of a SNAP graph or of ``rmat18``, once, the smaller first."""
    if name.startswith("rmat"):
        _, u, v = rmat(int(name.removeprefix("rmat")), 16)
    else:
        u, v = np.loadtxt(SHARED / "data" / "snap" / f"{name}.txt.gz", dtype=np.int64, comments="#").T
    ends = np.unique(np.stack([np.minimum(u, v), np.maximum(u, v)]), axis=1)
    return tuple(ends[:, ends[0] != ends[1]])  # type: ignore[return-value]


def opened(name: str, device: str) -> graphdb.Database:
    """Return a database with the graph, in memory."""
    import pyarrow as pa

    database = graphdb.connect(device=device)
    u, v = edges_of(name)
    database.load(pa.table({":START_ID": u, ":END_ID": v}), type="e")
    return database


def text_of(edges: list[list[int]]) -> str:
    """Return a pattern's query: each match once for each automorphism."""
    return f"MATCH DIFFERENT NODES {', '.join(f'(v{a})-[:e]-(v{b})' for a, b in edges)} RETURN count(*)"


def asked(database: graphdb.Database, text: str) -> tuple[int, float]:
    """Return a count, and its milliseconds."""
    started = time.perf_counter()
    found = database.query(text).scalar()
    return int(found), (time.perf_counter() - started) * 1000


def way(database: graphdb.Database, text: str) -> str:
    """Return what EXPLAIN says of who runs the match and how."""
    lines = [str(row[0]) for row in database.query(f"EXPLAIN {text}").fetchall()]
    return " | ".join(
        line.strip() for line in "\n".join(lines).splitlines() if line.strip().startswith("match") or "count" in line
    )


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="+", default=["wiki-Vote", "email-Enron", "rmat18"])
    parser.add_argument("--devices", nargs="+", default=["cuda:0", "auto"])
    parser.add_argument("--runs", type=int, default=11)
    parser.add_argument("--settle", type=float, default=2.0, help="seconds in which a text is asked before it is warm")
    parser.add_argument("--explain", action="store_true")
    given = parser.parse_args()
    known = json.loads((SHARED / "data" / "snap" / "matchers-h200.json").read_text())
    print(
        f"{'graph':<12} {'pattern':<36} {'device':<8} {'right':>5} {'first':>9} {'new':>8} {'warm':>8} {'best':>8} {'over':>8}"
    )
    for name in given.graphs:
        for device in given.devices:
            with opened(name, device) as database:
                for title, pattern in known["patterns"].items():
                    published: dict[str, Any] = known["graphs"][name].get(title) or {}
                    text = text_of(pattern["edges"])
                    found, first = asked(database, text)
                    until = time.monotonic() + given.settle
                    while time.monotonic() < until:  # kernels that a thread compiles meanwhile
                        asked(database, text)
                    warm = statistics.median(asked(database, text)[1] for _ in range(given.runs))
                    new = statistics.median(asked(database, text + " " * (i + 1))[1] for i in range(3))
                    right = found // pattern["automorphisms"] == published.get("count")
                    best = published.get("best ms", float("nan"))
                    print(
                        f"{name:<12} {title:<36} {device:<8} {'yes' if right else 'NO' if published else '?':>5}"
                        f" {first:>9.2f} {new:>8.2f} {warm:>8.3f} {best:>8.3f} {warm - best:>8.3f}",
                        flush=True,
                    )
                    if given.explain:
                        print("    " + way(database, text), flush=True)


if __name__ == "__main__":
    main()
