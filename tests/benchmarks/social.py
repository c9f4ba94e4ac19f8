"""Subgraphs of social networks through the whole database: query text to count, warm.

    python -m tests.benchmarks.social [--repeat 5]

Triangles and 5-cliques of two graphs, the nine patterns of two others, under DIFFERENT NODES; every count is compared
with the published one (times the pattern's automorphisms).
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import statistics
import tempfile
import time
from pathlib import Path

import graphdb
from tests.datasets import SHARED

Edges = list[tuple[int, int]]

TRIANGLE: Edges = [(0, 1), (0, 2), (1, 2)]
FIVE_CLIQUE: Edges = [(a, b) for b in range(5) for a in range(b)]


def load(database: graphdb.Database, name: str) -> None:
    """Load an edge list as N-Triples of one predicate."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "graph.nt"
        with gzip.open(SHARED / "data" / "snap" / f"{name}.txt.gz", "rt") as lines, file.open("w") as out:
            for line in lines:
                if not line.startswith("#"):
                    source, target = line.split()
                    out.write(f"<urn:v:{source}> <urn:p:e> <urn:v:{target}> .\n")
        database.load(file)


def measure(name: str, patterns: list[tuple[str, Edges, int]], repeat: int) -> None:
    """Print the median milliseconds of each pattern's count."""
    with graphdb.connect() as database:
        load(database, name)
        for title, edges, expected in patterns:
            drawn = ", ".join(f"(v{a})-[:e]-(v{b})" for a, b in edges)
            text = f"MATCH DIFFERENT NODES {drawn} RETURN count(*)"
            right = database.query(text).scalar() == expected
            times = []
            for _ in range(repeat):
                started = time.perf_counter()
                database.query(text)
                times.append(time.perf_counter() - started)
            verdict = "" if right else "  WRONG COUNT"
            print(f"{name:18} {title:36} {statistics.median(times) * 1000:8.1f} ms{verdict}", flush=True)


def main() -> None:
    """Run all of it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeat", type=int, default=5)
    repeat = parser.parse_args().repeat
    snap = SHARED / "data" / "snap"
    counts = json.loads((snap / "counts.json").read_text())["graphs"]
    known = json.loads((snap / "matchers-h200.json").read_text())
    for name in ("facebook-combined", "ca-AstroPh-cc1"):
        cliques = [("triangle", TRIANGLE, counts[name]["triangles"] * 6)]
        measure(name, [*cliques, ("5-clique", FIVE_CLIQUE, counts[name]["5-cliques"] * 120)], repeat)
    for name in ("wiki-Vote", "email-Enron"):
        stated = known["graphs"][name]
        patterns = [
            (title, [(a, b) for a, b in found["edges"]], stated[title]["count"] * found["automorphisms"])
            for title, found in known["patterns"].items()
        ]
        measure(name, patterns, repeat)
    print(f"load average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
