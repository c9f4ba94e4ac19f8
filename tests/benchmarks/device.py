"""The CUDA executor alone: counts and rows over graphs, with kernel times, on whatever device is here.

    python -m tests.benchmarks.device [graph …] [--strategy join] [--repeat N]

Every count is compared with the published one.  ``ms`` is the call's time, ``kernels`` that of our kernels between
CUDA events, both medians, warm; ``floor`` is the time in which the device's memory moves what must be moved: the
graph's bytes once, the tables' twice, at 4.3 TB/s.  ``best`` is the fastest published matcher's kernel time on an H200.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import time
from collections import Counter
from typing import Any
from unittest import mock

import numpy as np

from graphdb.execute.host import HostExecutor
from graphdb.gpu.code import launch
from graphdb.gpu.executor import GpuExecutor
from graphdb.grammar.syntax import MatchMode
from graphdb.plan.executor import Control
from graphdb.plan.passes.pipeline import make_plan
from graphdb.plan.physical import PhysicalPlan
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph
from tests.benchmarks.kernels import KNOWS, snap, undirected
from tests.datasets import SHARED

BANDWIDTH = 4.3e12
"""Bytes per second that a copy on an H200 moves, read and written."""


def graph_of(name: str) -> DataGraph:
    """A SNAP graph, or ``rmatN``."""
    if not name.startswith("rmat"):
        return snap(name)
    specification = importlib.util.spec_from_file_location("rmat", SHARED / "data" / "rmat.py")
    assert specification is not None
    assert specification.loader is not None
    rmat = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(rmat)
    vertices, u, v = rmat.rmat(int(name.removeprefix("rmat")), 16)
    return DataGraph(ArraySource(u, np.full(len(u), KNOWS), v, vertices))


class KernelTimes:
    """Times every launch with events, while it is active."""

    def __init__(self, executor: GpuExecutor) -> None:
        self._device = executor.device
        self._events: list[tuple[str, Any, Any]] = []

    def __enter__(self) -> KernelTimes:
        plain, device, events = launch.Module.launch, self._device, self._events

        def timed(module: launch.Module, kernel: str, blocks: int, *arguments: Any, **more: Any) -> None:
            begin = device.event()
            plain(module, kernel, blocks, *arguments, **more)
            events.append((kernel, begin, device.event()))

        self._patch = mock.patch.object(launch.Module, "launch", timed)
        self._patch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._patch.stop()

    def by_kernel(self) -> Counter[str]:
        """Milliseconds by kernel."""
        found: Counter[str] = Counter()
        for kernel, begin, end in self._events:
            found[kernel] += self._device.milliseconds(begin, end)
        return found


def moved_bytes(plan: PhysicalPlan, control: Control) -> int:
    """What a run moves at least: the graph once; every table but the last written and read."""
    graph = sum(partition.neighbours.nbytes + partition.offsets.nbytes for partition in plan.partitions)
    width = np.dtype(plan.dtype).itemsize
    return graph + sum(2 * int(rows) * (i + 1) * width for i, rows in enumerate(control.rows[:-1]))


def count_times(executor: GpuExecutor, plan: PhysicalPlan, repeat: int) -> tuple[int, float, Counter[str], Control]:
    """(count, median ms of the call, ms by kernel, the control of the last run)."""
    count = executor.count(plan)
    times = []
    for _ in range(repeat):
        control = Control()
        started = time.perf_counter()
        executor.count(plan, control)
        times.append((time.perf_counter() - started) * 1000)
    with KernelTimes(executor) as kernels:
        executor.count(plan)
    return count, statistics.median(times), kernels.by_kernel(), control


def row_times(executor: Any, plan: PhysicalPlan, repeat: int, keep: bool = False) -> tuple[int, float]:
    """(rows, median ms) of a run whose blocks are dropped, or kept."""
    times, rows = [], 0
    for _ in range(repeat + 1):
        kept = []
        started = time.perf_counter()
        rows = 0
        for block in executor.run(plan):
            rows += block.count
            if keep:
                kept.append(block)
        times.append((time.perf_counter() - started) * 1000)
    return rows, statistics.median(times[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="*", default=["wiki-Vote", "email-Enron", "ca-AstroPh-cc1", "cit-HepTh"])
    parser.add_argument("--strategy", default="join")
    parser.add_argument("--patterns", default="triangle,4-clique,5-clique,diamond")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--counting", default="never", help="auto also uses what counts without enumerating")
    parser.add_argument("--layer", default=None, help="direct or hashed")
    parser.add_argument("--host", action="store_true", help="the CPU's times beside")
    parser.add_argument("--rows", action="store_true", help="rows too, not counts alone")
    given = parser.parse_args()
    known = json.loads((SHARED / "data/snap/matchers-h200.json").read_text())
    executor = GpuExecutor(0, hint=given.strategy)
    print(f"{executor.device.name}, {executor.device.memory.budget / 2**30:.0f} GiB budget; {given.strategy}")
    for name in given.graphs:
        graph = graph_of(name)
        if given.layer:
            graph = DataGraph(graph.source, layer=given.layer)
        for shape in given.patterns.split(","):
            edges, share = known["patterns"][shape]["edges"], known["patterns"][shape]["automorphisms"]
            pattern = undirected(edges, MatchMode.DIFFERENT_NODES, count_only=True)
            plan = make_plan(pattern, graph, counting=given.counting)
            count, ms, kernels, control = count_times(executor, plan, given.repeat)
            best = known["graphs"].get(name, {}).get(shape, {})
            right = "" if best.get("count", count // share) == count // share else f"  WRONG, not {best['count']}"
            floor = moved_bytes(plan, control) / BANDWIDTH * 1000
            parts = ", ".join(f"{kernel} {spent:.3f}" for kernel, spent in kernels.most_common(4))
            host = ""
            if given.host:
                cpu = HostExecutor()
                cpu.count(plan)
                started = time.perf_counter()
                cpu.count(plan)
                host = f"  host {(time.perf_counter() - started) * 1000:9.2f} ms"
            print(
                f"{name:16} {shape:10} {count // share:14,} {ms:9.3f} ms  kernels {kernels.total():9.3f}"
                f"  best {best.get('best ms', float('nan')):9.3f}  floor {floor:7.4f}{host}  [{parts}]{right}",
                flush=True,
            )
        if given.rows:
            pattern = undirected([(0, 1), (1, 2), (0, 2)], MatchMode.DIFFERENT_NODES)
            plan = make_plan(pattern, graph)
            for keep in (False, True):
                rows, ms = row_times(executor, plan, given.repeat, keep)
                size = rows * len(plan.outputs) * np.dtype(plan.dtype).itemsize
                what = "kept" if keep else "dropped"
                print(f"{name:16} triangle rows {rows:,} {what}: {ms:.2f} ms, {size / ms / 1e6:.2f} GB/s", flush=True)
    used = executor.device.memory
    print(f"used {used.used_bytes:,} bytes, of which kept {used.cached_bytes:,}")


if __name__ == "__main__":
    main()
