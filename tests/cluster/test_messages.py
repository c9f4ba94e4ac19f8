"""What a worker makes of a message: arrays in it may begin anywhere."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from numpy.typing import NDArray

from graphdb.execute.host import HostExecutor
from graphdb.pattern.graph import PatternVertex
from graphdb.plan.executor import Control
from graphdb.plan.passes.pipeline import make_plan
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph
from tests.execute.test_host import REPEATABLE, pattern
from tests.gpu.test_several_devices import SQUARE

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'graphdb-duckdb[dask]'")

from graphdb.cluster import tasks


def unaligned(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same array where no item of its type begins."""
    found = np.frombuffer(b"..." + values.tobytes(), np.int64, len(values), offset=3)
    assert not found.flags.aligned
    return found


def test_arrays_that_are_not_aligned() -> None:
    rng = np.random.default_rng(1)
    ends = rng.integers(0, 300, (2, 4_000))
    labels, some = np.ones(4_000, np.int64), np.arange(0, 300, 2)
    graph = DataGraph(ArraySource(ends[0], labels, ends[1], 300))
    tail: list[tuple[int, int, Any, bool]] = [(0, 4, (1,), True), (4, 5, (1,), True)]
    wanted = pattern(6, [*SQUARE, *tail], REPEATABLE, count_only=True)
    wanted = replace(wanted, vertices=(*wanted.vertices[:4], PatternVertex("some", some), wanted.vertices[5]))
    sent = replace(wanted, vertices=(*wanted.vertices[:4], PatternVertex("some", unaligned(some)), wanted.vertices[5]))
    plan = make_plan(wanted, graph, counting="always")
    job = tasks.Job("job", (sent,), False, "always", "cpu", tasks.digest_of(plan))
    sent_labels, subjects, objects = map(unaligned, (labels, ends[0], ends[1]))
    source = tasks.Triples("arrays", sent_labels, subjects, objects, 300, 0, None)
    worker = SimpleNamespace(get_current_task=lambda: "one", state=SimpleNamespace(tasks={}))
    division = HostExecutor(1).division(plan, True, Control())
    assert division is not None
    shares = [(0, 40), (40, division.units)]
    limits: Any = tasks.Limits(None, None)
    with (
        mock.patch("distributed.get_worker", return_value=worker),
        mock.patch.object(tasks, "POLL", 60.0),
        mock.patch.object(tasks, "_ready", tasks._Ready()),
    ):
        found = [tasks.counted(job, source, division, share, limits) for share in shares]
    sums = tuple(map(sum, zip(*found, strict=True)))
    assert HostExecutor(1).total(plan, division, sums) == HostExecutor(1).count(plan) > 0
