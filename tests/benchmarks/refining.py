"""Candidates of labelled patterns refined by the planner, and by a device: what is left, and what it takes.

    python -m tests.benchmarks.refining [github hprd yeast rmat16 rmat18]

Milliseconds, the least of some: refining by the ``planner`` (one thread) and by the ``device``, its ``kernels`` alone,
and their ``floor``, the bytes of the first pass (of each neighbour its id, and what it fits) at the memory's bandwidth;
``joining``, what the planner takes for the rest of a candidate space; then, of github's, planning and running a text never seen on the device, with refinement ``off`` there and ``on``.
``pays`` is what the device expects.  R-MAT graphs have labels drawn at random, and a pattern of ten vertices.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar
from unittest import mock

import numpy as np

from graphdb.gpu.executor import GpuExecutor
from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import Clause, PatternEdge, PatternGraph, PatternVertex
from graphdb.plan.candidates import space
from graphdb.plan.candidates.refine import refined
from graphdb.plan.candidates.refinement import Refinement, Sets
from graphdb.plan.executor import Control
from graphdb.plan.passes.pipeline import make_plan
from graphdb.storage.graph.data_graph import DataGraph
from tests.benchmarks.device import BANDWIDTH, KernelTimes
from tests.benchmarks.device_counting import graph_of, labelled

RUNS = 5
PASS_BYTES = 12
"""What is read of a neighbour: its id, and what it fits."""
COLUMNS = ("candidates", "left", "neighbours", "planner", "device", "kernels", "floor", "joining", "off", "on")

T = TypeVar("T")


def least(run: Callable[[], T]) -> tuple[float, T]:
    """The least milliseconds of some runs, after one that is not counted; and what it gave."""
    found, taken = run(), []
    for _ in range(RUNS):
        started = time.perf_counter()
        found = run()
        taken.append((time.perf_counter() - started) * 1000)
    return min(taken), found


def drawn(name: str, classes: int = 16) -> tuple[DataGraph, dict[str, PatternGraph]]:
    """An R-MAT graph with labels drawn at random, and a pattern: two triangles and a square on a path."""
    graph, label = graph_of(name)
    labels = np.random.default_rng(1).integers(0, classes, graph.vertices)
    sets = [np.flatnonzero(labels == number) for number in range(classes)]
    joins = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 3), (5, 6), (6, 7), (7, 8), (8, 9), (9, 6)]
    vertices = tuple(PatternVertex(f"v{v}", sets[3 * v % classes]) for v in range(10))
    edges = tuple(PatternEdge(f"e{i}", a, b, (label,), False, 0) for i, (a, b) in enumerate(joins))
    clause = Clause(MatchMode.DIFFERENT_NODES, tuple(range(10)))
    return graph, {"beads": PatternGraph(vertices, edges, (clause,), count_only=True)}


def task_of(pattern: PatternGraph, graph: DataGraph) -> Refinement | None:
    """What a planner asks to be refined, however much it is."""
    asked: list[Refinement] = []

    def ask(task: Refinement) -> Sets | None:
        asked.append(task)
        return None

    with mock.patch.object(space, "CHEAP", 1e12):
        space.candidate_space(pattern, graph, lambda: 0.0, ask)
    return asked[0] if asked else None


def whole(pattern: PatternGraph, graph: DataGraph, executor: GpuExecutor, *, on: bool) -> tuple[float, int]:
    """The least milliseconds in which a text never seen is planned and counted; and how many matches it has."""
    with mock.patch.object(executor.refiner, "pays", return_value=on):
        return least(lambda: executor.count(make_plan(pattern, graph, refine=executor.refine), Control(timeout=5.0)))


def main(names: list[str]) -> None:
    """Print a line for each query of github and R-MAT, and means of all."""
    executor = GpuExecutor(0)
    refiner = executor.refiner
    print(f"{'query':<16} same pays" + "".join(f"{title:>11}" for title in COLUMNS), flush=True)
    for name in names:
        graph, queries = drawn(name) if name.startswith("rmat") else labelled(name)
        report: dict[bool, list[list[float]]] = {False: [], True: []}
        wrong = 0
        for query, pattern in queries.items():
            task = task_of(pattern, graph)
            if task is None:
                continue
            here, own = least(partial(refined, task))
            device, left = least(partial(refiner.refine, task))
            with KernelTimes(executor) as times:
                refiner.refine(task)
            taken = [here, device, times.by_kernel().total(), task.work * PASS_BYTES / BANDWIDTH * 1000]
            with mock.patch.object(space, "CHEAP", 1e12):
                joined = partial(space.candidate_space, pattern, graph, lambda: 0.0, lambda _, sets=left: sets)  # type: ignore[misc]
                taken.append(least(joined)[0])
            if name == "github":
                (off, count), (on, again) = (whole(pattern, graph, executor, on=on) for on in (False, True))
                assert count == again, "counts differ"
                taken += [off, on]
            there = refined(task, lambda _, sets=left: sets)  # type: ignore[misc]
            same, pays = np.array_equal(there.fits, own.fits), refiner.pays(task)
            wrong += not same
            report[pays].append(taken)
            if len(queries) < 20 or not same:
                sizes = f"{sum(map(len, task.sets)):>11,}{int(own.sizes.sum()):>11,}{task.work:>11,.0f}"
                line = f"{f'{name} {query}':<16} {'yes' if same else 'NO':>4} {'yes' if pays else 'no':>4}{sizes}"
                print(line + "".join(f"{ms:>11.3f}" for ms in taken), flush=True)
        for pays, rows in report.items():
            if rows:
                means = "".join(f"{statistics.fmean(column):>11.3f}" for column in zip(*rows, strict=True))
                said = f"{name}, mean of {len(rows)}, it {'pays' if pays else 'does not pay'}"
                print(f"{said:<59}{means}", flush=True)
        print(
            f"{name}: {sum(map(len, report.values()))} refined, {wrong} of them otherwise than by the planner",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:] or ["github", "hprd", "yeast", "rmat16", "rmat18"])
