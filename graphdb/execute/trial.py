"""Tries whether a device works, by the smallest plan that there is."""

from __future__ import annotations

import time

import numpy as np

from graphdb.common.errors import GraphDBError
from graphdb.execute.choose import open_device
from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import Clause, PatternEdge, PatternGraph, PatternVertex
from graphdb.plan.passes.pipeline import make_plan
from graphdb.plan.physical import PhysicalPlan
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph


def smallest_plan() -> PhysicalPlan:
    """Triangles in a clique of four vertices: four, each in six ways."""
    source, target = np.triu_indices(4, 1)
    graph = DataGraph(ArraySource(source, np.full(len(source), 4), target, 5))
    names = ("a", "b", "c")
    pattern = PatternGraph(
        tuple(map(PatternVertex, names)),
        tuple(PatternEdge(f"e{i}", a, b, (4,), False, 0) for i, (a, b) in enumerate([(0, 1), (0, 2), (1, 2)])),
        (Clause(MatchMode.DIFFERENT_NODES, (0, 1, 2)),),
        outputs=names,
        count_only=False,
    )
    return make_plan(pattern, graph, counting="never")


def try_device(number: int, memory: int | None = None) -> str:
    """Open a device, run the smallest pattern on it and say how that went: ``graphdb doctor``."""
    started = time.perf_counter()
    try:
        device = open_device(number, memory=memory)
        found = device.count(smallest_plan())
    except GraphDBError as error:
        return f"cannot be used, queries run on the CPU: {error.message}"
    if found != 24:
        return f"cannot be used, queries run on the CPU: it counts {found} triangles, and there are 24"
    free = device.device.memory.free_bytes() / 2**30
    return f"runs a query ({time.perf_counter() - started:.1f} s to open and compile), {free:.1f} GiB to work with"
