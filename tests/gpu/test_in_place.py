"""Device copies of a graph that changes: they follow batch by batch, and what they are sent is the batch's."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphdb.execute.host import HostExecutor
from graphdb.gpu.data import in_place
from graphdb.gpu.data.in_place import SPANS
from graphdb.pattern.graph import PatternGraph
from graphdb.plan.passes.pipeline import make_plan
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.changes import Changes
from graphdb.storage.graph.data_graph import DataGraph
from graphdb.storage.graph.in_place import spans
from tests.execute.test_host import REPEATABLE, pattern
from tests.gpu.executors import EXAMPLES, EXECUTORS, opened

Edges = set[tuple[int, int, int]]
VERTICES = 12
triples = st.sets(st.tuples(st.integers(0, 1), *[st.integers(0, VERTICES - 1)] * 2), max_size=40)
PATTERNS: list[PatternGraph] = [
    pattern(3, edges, REPEATABLE)
    for edges in (
        [(0, 1, (0,), True), (1, 2, (1,), True)],
        [(0, 1, (0,), True), (1, 2, (0,), True), (0, 2, (1,), True)],
        [(0, 1, (0, 1), True), (1, 2, (1,), False)],
        [(0, 1, None, False), (1, 2, (0,), False)],
    )
]


@pytest.fixture(params=[name for name in EXECUTORS if name.id != "host"])
def device(request: pytest.FixtureRequest) -> Iterator[Any]:
    with opened(request.param) as found:
        yield found


def graph_of(edges: Edges, vertices: int = VERTICES) -> DataGraph:
    rows = np.array(sorted(edges), np.int64).reshape(-1, 3)
    return DataGraph(ArraySource(rows[:, 1], rows[:, 0], rows[:, 2], vertices))


def changes_of(removed: Edges, added: Edges) -> Changes:
    return Changes(*(np.array(sorted(rows), np.int64).reshape(-1, 3) for rows in (removed, added)))


def rows_of(executor: Any, wanted: PatternGraph, graph: DataGraph) -> list[tuple[int, ...]]:
    plan = make_plan(wanted, graph, counting="never")
    blocks = [block.columns for block in executor.run(plan)]
    rows = [row for columns in blocks for row in zip(*(columns[name].tolist() for name in plan.outputs), strict=True)]
    assert executor.count(plan) == len(rows)
    return sorted(rows)


@EXAMPLES
@given(
    data=triples,
    steps=st.lists(st.tuples(triples, triples, st.booleans()), min_size=1, max_size=5),
    larger=st.sampled_from([0, 0, 7]),
    slack=st.sampled_from([0, 2, 4096]),
    logged=st.sampled_from([1, 4]),
)
def test_answers_are_those_of_a_graph_made_anew(
    device: Any, data: Edges, steps: list[tuple[Edges, Edges, bool]], larger: int, slack: int, logged: int
) -> None:
    """After insertions, deletions and new vertices; whether each version is asked or some are skipped."""
    host = HostExecutor(1)
    graph, vertices = graph_of(data), VERTICES
    with ExitStack() as sizes:
        sizes.enter_context(mock.patch.object(spans, "_SLACK", slack))
        sizes.enter_context(mock.patch.object(spans, "_FREE", min(slack, 1.5)))
        sizes.enter_context(mock.patch.object(in_place, "_SLACK", slack))
        sizes.enter_context(mock.patch.object(spans, "_LOGGED", logged))
        for wanted in PATTERNS:
            rows_of(device, wanted, graph)
        for come, go, asked in steps:
            removed = data & go
            added = come - (data - removed)
            data = (data - removed) | added
            if larger:  # new vertices, which the last of them has edges with
                vertices += larger
                added |= {(0, vertices - 1, 1), (1, 2, vertices - 1)}
                data |= added
            follower = graph_of(data, vertices)
            follower.follow(graph, [changes_of(removed, added)])
            graph = follower
            graph.catch_up()
            for wanted in PATTERNS if asked else ():
                assert rows_of(device, wanted, graph) == rows_of(host, wanted, graph_of(data, vertices))
        for wanted in PATTERNS:
            assert rows_of(device, wanted, graph) == rows_of(host, wanted, graph_of(data, vertices))


@pytest.mark.parametrize("name", [name for name in EXECUTORS if name.id in ("emulated-join", "cuda-join")])
def test_what_is_sent_is_the_batchs(name: str) -> None:
    """A batch of 20 changes of a graph of 20,000 edges costs some lists, in both directions and with codes; the
    copies go with the graph.
    """
    draw, vertices = np.random.default_rng(3), 5_000
    edges = {(0, s, o) for s, o in draw.integers(0, vertices, (20_000, 2)).tolist()}
    keys: list[tuple[Any, Any]] = [((0,), "out"), ((0,), "in"), ((0,), "both")]
    with opened(name) as device:
        memory, copies = device.device.memory, device.graph
        graph, sent = graph_of(edges, vertices), []
        for number in range(6):
            removed = set(sorted(edges)[number::2_000])
            added = {(0, s, o) for s, o in draw.integers(0, vertices, (10, 2)).tolist()} - edges
            edges = (edges - removed) | added
            follower = graph_of(edges, vertices)
            follower.follow(graph, [changes_of(removed, added)])
            graph, before = follower, memory.uploaded
            with device.device.active():
                for key in keys:
                    partition = graph.partition(*key)
                    missing, uploaded = copies.missing_bytes(partition), memory.uploaded
                    copy = copies.partition(partition)
                    assert memory.uploaded - uploaded == missing
                    assert copies.missing_bytes(partition) == 0
                    if partition.spans is None:
                        continue
                    found = copy.offsets.get().reshape(-1, 2)
                    assert np.array_equal(found, partition.spans.table)
                    assert np.array_equal(copy.neighbours.get(), partition.neighbours)
                    if partition.codes is not None and partition.code_offsets is not None:
                        assert np.array_equal(copy.codes.get(), partition.codes)
                        assert np.array_equal(copy.code_offsets.get(), partition.code_offsets)
            sent.append(memory.uploaded - before)
        whole = sum(graph.partition(*key).nbytes for key in keys)
        assert max(sent[2:]) * 50 < whole
        del graph, follower, partition, copy
        gc.collect()
        assert not [what for what, _ in memory._cache if what == SPANS]
