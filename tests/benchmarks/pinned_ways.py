"""The ways to count a pattern that the benchmark of the choice compares it with, each pinned, on plans of their own."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from graphdb.common.errors import DeviceError
from graphdb.execute.choose import ChoosingExecutor
from graphdb.execute.host import HostExecutor
from graphdb.gpu.code import compiler
from graphdb.pattern.graph import PatternGraph
from graphdb.plan.executor import Executor
from graphdb.plan.passes.pipeline import make_plan
from graphdb.plan.physical import PhysicalPlan
from graphdb.storage.graph.data_graph import DataGraph

LARGEST_ALWAYS = 8
"""Patterns of so many vertices are summed up whatever the planner says; larger ones take it seconds to write down."""

Make = Callable[[], PhysicalPlan | None]
"""Makes the plan of one way; None where it does not go that way."""


def plans_of(
    pattern: PatternGraph, graph: DataGraph, chosen: PhysicalPlan, planning: float
) -> Iterator[tuple[str, Make, float]]:
    """The ways to count on the CPU: what makes the plan of each, and the seconds of the choice's ``planning`` that it
    does without.
    """
    nothing: dict[str, Any] = {"counting": None, "clique": None, "twins": None, "tree": None}
    yield "search", lambda: replace(make_plan(pattern, graph, counting="never"), **nothing), planning
    for name, known in (("cliques", "clique"), ("twins", "twins"), ("tree", "tree")):
        if getattr(chosen, known) is not None:
            yield name, partial(replace, chosen, **nothing | {known: getattr(chosen, known)}), 0.0
    sums = chosen.counting
    if sums is not None:  # a counting plan of its own each time: what is prepared for one is cached with it
        yield "sums", lambda: replace(chosen, **nothing | {"counting": replace(sums)}), 0.0
    elif len(pattern.vertices) <= LARGEST_ALWAYS:
        yield "sums", lambda: _with_sums(make_plan(pattern, graph, counting="always")), planning


def _with_sums(plan: PhysicalPlan) -> PhysicalPlan | None:
    return None if plan.counting is None else replace(plan, clique=None, twins=None, tree=None)


def device_ways(device: Any) -> dict[str, Executor]:
    """Executors of one device that go one way each."""
    from graphdb.gpu.costs import Costs
    from graphdb.gpu.counting.counter import Counter
    from graphdb.gpu.strategies import Strategies

    found: dict[str, Any] = {way: copy.copy(device) for way in ("join", "search", "sums")}
    for way, executor in found.items():
        where, executor._beside_host = (device.device, device.graph), False
        executor.strategies, executor._counter = Strategies(*where, way), Counter(*where, pinned=way == "sums")
        executor.costs = Costs(*where, executor._counter, executor.strategies, beside_host=False)
    return found


def executors(executor: Executor) -> tuple[HostExecutor, Any]:
    """The CPU's, and the device's where one is open."""
    if isinstance(executor, ChoosingExecutor):
        return executor.host, executor._device
    return HostExecutor(), None if isinstance(executor, HostExecutor) else executor


def compile_anew() -> bool:
    """Have NVRTC compile whatever it is given, also what it was given before; whether it knows how.

    Where a driver is installed, it caches machine code on its own: a text that was compiled once takes a fifth of the
    time from then on, and the ways that are measured after the choice would be flattered.
    """
    os.environ["CUDA_CACHE_DISABLE"] = "1"
    try:
        found = compiler.of_cupy()
        found.compile("", ("--no-cache",), found.target(90))
    except ImportError:  # nothing is compiled
        return True
    except DeviceError:
        return False
    compiler.OPTIONS = (*compiler.OPTIONS, "--no-cache")
    return True


def rank_lists(device: Any, plan: PhysicalPlan) -> None:
    """Have the lists that a plan's sums read on a device in the order of ranks."""
    from graphdb.gpu.counting.lists import device_lists

    if plan.counting is not None:
        with device.device.active():
            device_lists(device.graph, plan.counting.partitions, plan.counting.vertices)


def forget_code(device: Any) -> None:
    """Unload and delete all device code that is written per plan."""
    from graphdb.gpu.code.launch import modules as all_modules
    from graphdb.gpu.code.launch import written_per_plan

    device._counter.wait_for_all()
    device._counter._known = {part for part in device._counter._known if not part.levels}
    code, modules = device.device.code, device.device._modules
    wait([compilation.done for compilation in code._compilations.values()])
    for key in [key for key in modules if written_per_plan(key[0])]:
        del modules[key]
    code._compilations.clear()
    if code.disk is not None:
        for file in Path(code.disk.folder()).iterdir():
            name = file.name.rsplit("-", 1)[0]
            if name in all_modules() and written_per_plan(name):  # others are benchmarks' own
                file.unlink(missing_ok=True)
