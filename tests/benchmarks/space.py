"""Space and snapshots: cycles of creating and deleting with VACUUM, and what a result that is alive costs a write.

Run as ``python -m tests.benchmarks.space --rows 20000 --cycles 31 --alive 1000000``.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import graphdb


def seconds(work: Callable[[], Any]) -> float:
    """How long something takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def cycles(path: Path, rows: int, count: int) -> None:
    """Create and delete vertices again and again."""
    sizes, took = [], []
    with graphdb.connect(path) as db:
        for cycle in range(count):
            db.query(f"UNWIND range(1, {rows}) AS i CREATE (:P {{k: i + $n}})", n=rows * cycle)
            db.query("MATCH (n:P) DETACH DELETE n")
            took.append(seconds(lambda: db.query("VACUUM")))
            sizes.append(path.stat().st_size / 1e6)
    print(f"{'cycles':>8}{'rows':>10}{'first MB':>10}{'last MB':>10}{'most MB':>10}{'VACUUM s':>10}")
    print(f"{count:8}{rows:10,}{sizes[0]:10.2f}{sizes[-1]:10.2f}{max(sizes):10.2f}{statistics.median(took):10.3f}")


def alive(path: Path, rows: int) -> None:
    """Write while a large result waits to be read."""
    source = path.with_suffix(".nt")
    with source.open("w") as file:
        file.writelines(f'<e:{i}> <e:k> "{i}" .\n' for i in range(rows))
    with graphdb.connect(path) as db:
        db.load(source)
        db.query("CREATE (:X {k: 0})")
        for what in ("nothing", f"{rows:,} vertices"):
            took = []
            for i in range(9):
                result = db.query("MATCH (n) RETURN n") if what != "nothing" else None
                took.append(seconds(lambda i=i: db.query("CREATE (:X {k: $i})", i=i)))  # type: ignore[misc]
            print(f"CREATE with {what} alive: {statistics.median(took) * 1000:.1f} ms")
        if result is not None:
            print(f"the rows of the former version: {seconds(result.fetchall):.2f} s", end="")
            print(f"; of the present one: {seconds(db.query('MATCH (n) RETURN n').fetchall):.2f} s")


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--cycles", type=int, default=31)
    parser.add_argument("--alive", type=int, default=1_000_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cycles(Path(folder) / "cycles.duckdb", arguments.rows, arguments.cycles)
        alive(Path(folder) / "alive.duckdb", arguments.alive)


if __name__ == "__main__":
    main()
