"""How shares of a run spread over executors: measured on those there are, and simulated for up to 1,024 workers.

    python -m tests.benchmarks.scheduling tasks --graphs rmat16 wiki-Vote --on cpu
    python -m tests.benchmarks.scheduling tasks --graphs rmat20 --on cuda --shares 4096
    python -m tests.benchmarks.scheduling several --graphs rmat18 --on cuda --executors 2

``tasks`` divides a count or a match into shares, times each alone on one executor (one thread, or one device), and
simulates list scheduling: whoever is done takes the next share, of a count the heaviest by expectation first.  A column is
the speed-up over one worker, which has the same tasks; below it, in brackets, that of as many parts as there are workers,
each of as many tasks that follow one another.
``several`` times the whole run on one executor and on several, which on a machine of one device have that one, with the
same part of its memory each: what the deal itself costs.  Times are the caller's, in milliseconds, medians; those of
tasks on the CPU are processor time.
"""

from __future__ import annotations

import argparse
import heapq
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from graphdb.execute.host import HostExecutor
from graphdb.execute.multi import MultiExecutor
from graphdb.grammar.syntax import MatchMode
from graphdb.plan.executor import Control
from graphdb.plan.passes.pipeline import make_plan
from graphdb.plan.physical import PhysicalPlan
from graphdb.plan.shares import Divisible
from tests.benchmarks.counting import pattern
from tests.benchmarks.device_counting import graph_of

WORKERS = (1, 2, 4, 16, 64, 256, 1024)
RUNS = 3


def plans_of(name: str, sizes: Sequence[int]) -> Iterable[tuple[str, PhysicalPlan, bool]]:
    """(title, plan, whether it is counted) over a graph: cliques of some sizes, and diamonds."""
    graph, label = graph_of(name)
    nodes = MatchMode.DIFFERENT_NODES
    for size in sizes:
        yield f"{size}-cliques", make_plan(pattern(list(combinations(range(size), 2)), label, nodes), graph), True
    diamond = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3)]
    yield "diamonds, searched", make_plan(pattern(diamond, label, nodes), graph, counting="never"), True
    yield "diamonds, summed", make_plan(pattern(diamond, label, nodes), graph, counting="always"), True


def executors(where: str, count: int) -> list[Any]:
    """So many executors of one thread, or of devices: those there are, one after the other."""
    if where == "cpu":
        return [HostExecutor(1) for _ in range(count)]
    from graphdb.gpu.executor import GpuExecutor
    from graphdb.gpu.probe import probe

    there = [device.number for device in probe().devices]
    memory = probe().devices[0].memory // (2 * -(-count // len(there)))
    return [GpuExecutor(there[i % len(there)], memory_limit=memory) for i in range(count)]


def tasks(executor: Divisible, plan: PhysicalPlan, counting: bool, shares: int) -> dict[tuple[int, int], float]:
    """The seconds of each share alone, the better of two runs, as they are dealt; checked against the whole."""
    division = executor.division(plan, counting, Control())
    if division is None:
        return {}
    clock = time.thread_time if isinstance(executor, HostExecutor) else time.perf_counter
    found: dict[tuple[int, int], float] = {}
    sums: tuple[int, ...] = ()
    for cut in division.shares(shares, heaviest_first=counting)[0]:
        best = float("inf")
        for _ in range(2):
            started = clock()
            partial = executor.partial(plan, division, Control(share=cut))
            best = min(best, clock() - started)
        found[cut] = best
        sums = tuple(a + b for a, b in zip(sums, partial, strict=True)) if sums else partial
    assert executor.total(plan, division, sums) == executor.count(plan), "the shares do not add up"
    return found


def scheduled(seconds: Sequence[float], workers: int) -> float:
    """When all tasks are done, where whoever is free takes the next.

    >>> scheduled([3.0, 1.0, 1.0, 1.0], 2)
    3.0
    """
    free = [0.0] * workers
    for each in seconds:
        heapq.heapreplace(free, free[0] + each)
    return max(free)


def equal(seconds: Sequence[float], workers: int) -> float:
    """When all are done, where each worker has as many tasks, those that follow one another."""
    bounds = np.linspace(0, len(seconds), workers + 1).astype(int)
    sums = np.append(0.0, np.cumsum(seconds))
    return float((sums[bounds[1:]] - sums[bounds[:-1]]).max())


def simulate(names: list[str], where: str, shares: int, sizes: Sequence[int]) -> None:
    """Print the speed-ups."""
    (executor,) = executors(where, 1)
    print(f"{'graph':<12} {'pattern':<18} {'tasks':>6} {'all s':>8} {'longest ms':>10} ", end="")
    print(" ".join(f"{workers:>8,}" for workers in WORKERS), flush=True)
    for name in names:
        for title, plan, counting in plans_of(name, sizes):
            executor.count(plan)
            if where == "cuda":
                executor._counter.wait_for_all()
            timed = tasks(executor, plan, counting, shares)
            if not timed:
                continue
            seconds, rising = list(timed.values()), [timed[cut] for cut in sorted(timed)]
            whole = sum(seconds)
            print(f"{name:<12} {title:<18} {len(seconds):>6,} {whole:>8.3f} {max(seconds) * 1000:>10.2f} ", end="")
            print(" ".join(f"{whole / scheduled(seconds, workers):>8.1f}" for workers in WORKERS))
            print(f"{'':<58} " + " ".join(f"{f'({whole / equal(rising, n):.1f})':>8}" for n in WORKERS), flush=True)


def median(run: Callable[[], object]) -> float:
    """The median of some runs, in milliseconds, after two that are not counted."""
    taken = []
    for _ in range(RUNS + 2):
        started = time.perf_counter()
        run()
        taken.append((time.perf_counter() - started) * 1000)
    return statistics.median(taken[2:])


def several(names: list[str], where: str, count: int, sizes: Sequence[int]) -> None:
    """Print the times of one executor and of several."""
    one, *_ = executors(where, 1)
    together = MultiExecutor(executors(where, count))
    print(
        f"{'graph':<12} {'pattern':<18} {'one ms':>10} {f'{count} ms':>10} {'ratio':>6} {'shares':>6}  busy ms of each"
    )
    for name in names:
        for title, plan, _ in plans_of(name, sizes):
            assert one.count(plan) == together.count(plan)
            alone = median(lambda plan=plan: one.count(plan))  # type: ignore[misc]
            together.tasks = []
            shared = median(lambda plan=plan: together.count(plan))  # type: ignore[misc]
            busy = [sum(t.ended - t.started for t in together.tasks if t.executor == i) * 1000 for i in range(count)]
            told = " ".join(f"{each:.0f}" for each in busy)
            line = f"{name:<12} {title:<18} {alone:>10.1f} {shared:>10.1f} {alone / shared:>6.2f}"
            print(f"{line} {len(together.tasks):>6,}  {told}", flush=True)


def main() -> None:
    """Read the arguments, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("tasks", "several"))
    parser.add_argument("--graphs", nargs="+", default=["rmat16"])
    parser.add_argument("--on", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--shares", type=int, default=16 * 1024, help="about so many tasks")
    parser.add_argument("--executors", type=int, default=2)
    parser.add_argument("--cliques", type=int, nargs="*", default=[4, 5], help="sizes")
    given = parser.parse_args()
    if given.what == "tasks":
        simulate(given.graphs, given.on, given.shares, given.cliques)
    else:
        several(given.graphs, given.on, given.executors, given.cliques)


if __name__ == "__main__":
    main()
