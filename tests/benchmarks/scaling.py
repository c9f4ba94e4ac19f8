"""How work is shared out to threads, by their CPU time: a machine that others use too tells nothing by the clock.

    python -m tests.benchmarks.scaling [--graph email-Enron] [--threads 1,2] [--repeat 5]

A count with n threads takes no less time than its busiest thread, the caller's included, works.  ``speed-up`` is what
one thread worked, by that: what n free cores would gain at most.  ``work`` is the CPU time of all threads together.
"""

from __future__ import annotations

import argparse
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import graphdb
from tests.benchmarks.harness import Table, main, progress, surroundings
from tests.benchmarks.social import FIVE_CLIQUE, TRIANGLE, Edges, load

PATTERNS: dict[str, tuple[str, Edges]] = {
    "triangle": ("DIFFERENT NODES", TRIANGLE),
    "4-cycle": ("DIFFERENT NODES", [(0, 1), (1, 2), (2, 3), (0, 3)]),
    "4-cycle, induced": ("INDUCED", [(0, 1), (1, 2), (2, 3), (0, 3)]),
    "diamond closed by a vertex": ("DIFFERENT NODES", [(0, 1), (1, 2), (2, 3), (0, 3), (0, 4), (1, 4), (2, 4)]),
    "5-clique": ("DIFFERENT NODES", FIVE_CLIQUE),
}


@contextmanager
def watched() -> Iterator[list[float]]:
    """The CPU seconds of every thread that is started and ends within."""
    seconds: list[float] = []
    original = threading.Thread.run

    def run(self: threading.Thread) -> None:
        try:
            original(self)
        finally:
            seconds.append(time.thread_time())

    with mock.patch.object(threading.Thread, "run", run):
        yield seconds


def run(argv: list[str]) -> list[Table]:
    """Measure and return the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", default="email-Enron")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args(argv)
    title = f"{arguments.graph}: CPU ms per count, medians"
    table = Table(title, ["pattern", "threads", "matches", "work", "busiest thread", "speed-up"])
    alone: dict[str, tuple[int, float]] = {}
    for threads in map(int, arguments.threads.split(",")):
        with graphdb.connect(threads=threads, device="cpu") as database:
            progress(f"loading, {threads} threads")
            load(database, arguments.graph)
            for name, (mode, edges) in PATTERNS.items():
                progress(f"{name}, {threads} threads")
                drawn = ", ".join(f"(v{a})-[:e]-(v{b})" for a, b in edges)
                text = f"MATCH {mode} {drawn} RETURN count(*)"
                count, work, busiest = database.query(text).scalar(), [], []
                for _ in range(arguments.repeat):
                    with watched() as seconds:
                        started = time.thread_time()
                        assert database.query(text).scalar() == count
                        own = time.thread_time() - started
                    work.append(own + sum(seconds))
                    busiest.append(own + max(seconds, default=0.0))
                total, most = statistics.median(work), statistics.median(busiest)
                known, one = alone.setdefault(name, (count, most))
                assert known == count, f"{name}: {count} matches with {threads} threads, {known} with fewer"
                figures = f"{count:,}", f"{total * 1e3:.1f}", f"{most * 1e3:.1f}", f"{one / most:.2f}"
                table.add(name, str(threads), *figures)
    table.notes.append(f"{surroundings('graphdb')}; {arguments.repeat} runs")
    return [table]


if __name__ == "__main__":
    main(run)
