"""The kernels of a wheel's library against those that Numba compiles for this very processor, in one process and in turns.

    python -m tests.benchmarks.library_or_jit [--graphs NAME …] [--data NAME …] [--repeat N] [--library FILE]

Counts and rows over the SNAP graphs run through the executor alone, the sets' queries through ``db.query``, loads through
``db.load``.  Each side runs as often as makes a tenth of a second of processor time, one after the other; the least of
all turns counts, of one thread.  The library is that of ``python -m graphdb.storage.compile.build FOLDER``, from the present
kernels; without ``--library`` it is built.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tests.benchmarks.harness import geomean, progress, scratch, surroundings

TURN = 0.1
"""Seconds of processor time that a turn of one side takes at least."""


class Sides:
    """Binds all entries to the library's code or to the compiler's; each is made when it is first needed."""

    def __init__(self) -> None:
        from graphdb.storage.compile import jit, library

        def from_library(entry: Any, variant: str) -> None:
            if not library.bind(entry):
                raise SystemExit(f"the library has no {entry.symbol}: it was made from other kernels")

        self._find = {"library": from_library, "jit": jit.bind}
        self._bound: dict[str, dict[str, tuple[Any, ...]]] = {side: {} for side in self._find}
        self._now = "library"

    def choose(self, side: str) -> None:
        """Have all entries call one side's code."""
        from graphdb.storage.compile.entries import entries
        from graphdb.storage.compile.layout import MISFIT

        if side != self._now:
            before, after = self._bound[self._now], self._bound[side]
            for symbol, entry in entries.items():
                before[symbol] = entry._calls, entry._first, entry._variants
                unbound = (), lambda *arguments: MISFIT, frozenset()
                entry._calls, entry._first, entry._variants = after.get(symbol, unbound)
            self._now = side
        for entry in entries.values():
            entry._find = self._find[side]


def graphs(names: list[str]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the cases of the benchmark of kernels, each with what runs it."""
    import json

    from graphdb.execute.host import HostExecutor
    from graphdb.plan.passes.pipeline import make_plan
    from tests.benchmarks import kernels
    from tests.datasets import SHARED

    executor = HostExecutor(1)

    def rows_of(plan: Any) -> int:
        return sum(block.count for block in executor.run(plan))

    counts = json.loads((SHARED / "data/snap/counts.json").read_text())["graphs"]
    for name in names:
        graph = kernels.snap(name)
        for what, pattern, rows, _ in kernels.cases(graph, counts[name]):
            plan = make_plan(pattern, graph)
            yield f"{name}: {what}", partial(rows_of if rows else executor.count, plan)


def sets(names: list[str], folder: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield a load and the queries of each data set."""
    import graphdb
    from tests.benchmarks.datasets import queries, source

    def load(name: str) -> int:
        with graphdb.connect(threads=1, device="cpu") as database:
            return database.load(source(name)).triples

    for name in names:
        yield f"{name}: load", partial(load, name)
        with graphdb.connect(folder / f"{name}.duckdb", threads=1, device="cpu") as database:
            database.load(source(name))
            for query in queries(name):
                yield f"{name}: {query.name}", lambda text=query.text: database.query(text).scalar()


def compared(sides: Sides, run: Callable[[], Any], repeat: int) -> tuple[float, float]:
    """Return the least seconds of processor time of a run by the library, and by the compiler's code."""
    least, found, times = {"library": 1e9, "jit": 1e9}, {}, 1
    for side in least:  # what is made once, and how long a run takes
        sides.choose(side)
        found[side] = run()
        took = _took(run, 1)
        times = max(times, min(1000, int(TURN / max(took, 1e-6)) + 1)) if took < TURN else times
    if found["library"] != found["jit"]:
        raise SystemExit(f"the library finds {found['library']}, the compiler's code {found['jit']}")
    for turn in range(repeat):
        for side in ("library", "jit") if turn % 2 else ("jit", "library"):
            sides.choose(side)
            least[side] = min(least[side], _took(run, times))
    return least["library"], least["jit"]


def _took(run: Callable[[], Any], times: int) -> float:
    began = time.process_time()
    for _ in range(times):
        run()
    return (time.process_time() - began) / times


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="*", default=["facebook-combined", "email-Enron", "ca-AstroPh-cc1"])
    parser.add_argument("--data", nargs="*", default=["watdiv", "lubm", "lsqb"])
    parser.add_argument("--repeat", type=int, default=6)
    parser.add_argument("--library", type=Path)
    arguments = parser.parse_args()
    with scratch() as folder:
        from graphdb.storage.compile import library

        if arguments.library is not None:
            shutil.copy(arguments.library, folder)
        else:
            progress("building the library")
            command = [sys.executable, "-m", "graphdb.storage.compile.build", str(folder)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        library.HOME = folder
        if library.loaded() is None:
            raise SystemExit("no library fits, or it was made from other kernels")
        sides, ratios = Sides(), dict[str, float]()
        print(f"{library.level()}; {surroundings('graphdb', 'numba')}\n{'':<44}{'library':>10}{'jit':>10}{'ratio':>8}")
        for cases in (graphs(arguments.graphs), sets(arguments.data, folder)):
            for name, run in cases:
                ours, theirs = compared(sides, run, arguments.repeat)
                ratios[name] = ours / theirs
                print(f"{name:<44}{ours * 1e3:>10.3f}{theirs * 1e3:>10.3f}{ratios[name]:>8.3f}", flush=True)
        over = [f"{name} {ratio:.2f}" for name, ratio in ratios.items() if ratio > 1.1]
        print(
            f"geometric mean {geomean(list(ratios.values())):.3f} over {len(ratios)}; over 1.1: {', '.join(over) or 'none'}"
        )


if __name__ == "__main__":
    main()
