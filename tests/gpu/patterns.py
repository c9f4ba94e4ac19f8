"""Graphs and patterns that tests of a device count, and the comparison with the host's search."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from graphdb.execute.host import HostExecutor
from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import Clause, PatternEdge, PatternGraph, PatternVertex
from graphdb.plan.executor import Control
from graphdb.plan.passes.pipeline import make_plan
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph
from tests import emulator
from tests.fuzz import scaled
from tests.gpu.executors import WHERE

EXAMPLES = settings(
    max_examples=scaled(2),
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
HOST = HostExecutor(1)

Edges = tuple[tuple[int, int], ...]
PATTERNS: dict[str, Edges] = {
    "diamond": ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3)),
    "4-cycle": ((0, 1), (0, 2), (1, 3), (2, 3)),
    "diamond closed by a vertex": ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 4), (3, 4)),
    "4-clique with a triangle on an edge": ((0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (1, 4), (2, 3)),
    "4-wheel": ((0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (2, 4), (3, 4)),
    "bow tie": ((0, 1), (0, 2), (1, 2), (0, 3), (0, 4), (3, 4)),
    "5-clique minus an edge": ((0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (1, 4), (2, 3), (2, 4)),
}


@pytest.fixture(params=WHERE)
def executor(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A device's executor."""
    with ExitStack() as stack:
        if request.param == "emulated":
            stack.enter_context(emulator.installed())
        from graphdb.gpu.executor import GpuExecutor

        yield GpuExecutor(0, memory_limit=1 << 30)


def graph_of(size: int, edges: int, seed: int) -> tuple[DataGraph, int]:
    """A random graph of one edge label with some hubs, and the label."""
    rng = np.random.default_rng(seed)
    a, b = (rng.random(edges) ** 2 * size).astype(np.int64), rng.integers(0, size, edges)
    pairs = np.unique(np.sort(np.stack([a[a != b], b[a != b]], axis=1), axis=1), axis=0)
    return DataGraph(ArraySource(pairs[:, 0], np.full(len(pairs), size), pairs[:, 1], size + 1)), size


def pattern_of(edges: Edges, label: int, candidates: tuple[Any, ...] = ()) -> PatternGraph:
    """An undirected pattern under DIFFERENT NODES that is only counted; the first vertices have ``candidates``."""
    count = 1 + max(max(edge) for edge in edges)
    return PatternGraph(
        tuple(PatternVertex(f"v{i}", candidates[i] if i < len(candidates) else None) for i in range(count)),
        tuple(PatternEdge(f"e{i}", a, b, (label,), False, 0) for i, (a, b) in enumerate(edges)),
        (Clause(MatchMode.DIFFERENT_NODES, tuple(range(count))),),
        count_only=True,
    )


def counted(pattern: PatternGraph, graph: DataGraph, executor: Any) -> bool:
    """Compare with the host's search; whether the device counted without searching."""
    plan = make_plan(pattern, graph, counting="always")
    want = HOST.count(make_plan(pattern, graph, counting="never"))
    found = executor._counter.count(plan, Control())
    assert found in (None, want)
    assert executor.count(plan) == want
    return found is not None
