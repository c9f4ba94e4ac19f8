"""Cliques counted over the oriented graph on a device, real or emulated: the host's numbers, whoever works on a vertex."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from math import comb
from typing import Any
from unittest import mock

import numpy as np
import pytest

from graphdb.gpu.code import launch
from graphdb.gpu.counting import clique_counter, cliques
from graphdb.gpu.counting.cliques import FEW, SIZES, Shape, matrix_of, shape_of
from graphdb.gpu.data import narrow, packed
from graphdb.plan.executor import Control
from graphdb.plan.passes.pipeline import make_plan
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph
from tests import emulator
from tests.gpu.executors import EMULATED
from tests.gpu.patterns import HOST, executor, graph_of, pattern_of

__all__ = ["executor"]

CLIQUE = launch.source("clique")


@pytest.mark.parametrize("size", [3, 4, 5])
def test_cliques_of_more_ranks_than_there_are_bits(executor: Any, size: int) -> None:
    """Vertices before the last ranks ask their own lists; of few neighbours and of many; shares of the ranks, too;
    matrices in scratch memory, lists of two bytes a neighbour, and packed ones of which not all stand on the device.
    """
    graph, label = graph_of(400, 14_000, 3)
    plan = make_plan(pattern_of(tuple(combinations(range(size), 2)), label), graph)
    assert plan.clique is not None
    ranks, longest = len(plan.clique.graph.offsets) - 1, plan.clique.graph.longest
    words = 1 if longest <= 32 else (longest + 31) // 32
    assert 1 < words <= 4 or size == 3
    lengths = np.diff(plan.clique.graph.offsets)
    assert min((lengths[:200] > FEW).sum(), (lengths[200:] > FEW).sum(), (lengths <= FEW).sum()) > 20
    least = 4 * (6 if size == 3 else 9 + matrix_of(longest) + FEW * 2)
    limits = executor.device.limits
    with mock.patch.object(cliques, "MOST_THREADS", dict.fromkeys(SIZES, 64)):
        shapes = [shape_of(size, ranks, longest, replace(limits, shared=least + more)) for more in (0, 20)]
        room = replace(limits, shared=least + 20 + 4 * (longest + (FEW * 2 if size == 3 else 0)))
        shapes.append(shape_of(size, ranks, longest, room, packed=True))
    shapes.append(replace(shapes[1], narrow=True))  # type: ignore[type-var]
    if size > 3:
        shapes.append(replace(shapes[0], matrix_words=70, scratch=matrix_of(longest)))
        shapes.append(replace(shapes[2], matrix_words=70, scratch=matrix_of(longest)))
    want = HOST.count(plan)
    assert want > 0
    for shape in shapes:
        assert shape is not None
        assert shape.sparse
        assert ranks / 16 <= shape.span < ranks
        with (
            mock.patch.object(clique_counter, "shape_for", return_value=shape),
            mock.patch.object(narrow, "RANKS", 150),
            mock.patch.object(packed, "room_of", return_value=packed.packed(plan.clique.graph).bytes_from(150)),
        ):
            assert executor._counter.count(plan, Control()) == want
            division = executor._counter.division(plan, True, Control())
            cuts = [(0, 30), (30, ranks - 20), (ranks - 20, ranks)]
            found = [executor._counter.partial(plan, division, Control(), cut)[0] for cut in cuts]
            assert sum(found) == want
            assert found[1] > 0


@pytest.mark.parametrize("size", [3, 4, 5, 6])
def test_cliques(executor: Any, size: int) -> None:
    graph, label = graph_of(50, 600, 2)
    pattern = pattern_of(tuple(combinations(range(size), 2)), label)
    plan = make_plan(pattern, graph)
    want = HOST.count(make_plan(pattern, graph, counting="never"))
    assert want > 0
    assert executor._counter.count(replace(plan, counting=None), Control()) == want


@EMULATED
@pytest.mark.parametrize(("size", "sparse"), [(5, False), (5, True), (6, False)])
def test_a_block_without_vertices_helps_with_those_of_others(size: int, sparse: bool) -> None:
    """A vertex of 59 neighbours and one of 9, on two blocks: the rows of the first are drawn by both, each once."""
    complete = [(i, j) for j in range(60) for i in range(j)]
    few = [(60 + i, (7 * i + j) % 60) for i in range(4) for j in range(9)]
    source, target = np.array(complete + few).T
    graph, label = DataGraph(ArraySource(source, np.full(len(source), 64), target, 65)), 64
    plan = make_plan(pattern_of(tuple(combinations(range(size), 2)), label), graph)
    assert plan.clique is not None
    oriented = plan.clique.graph
    shape = Shape(size, 2, "Block", 1 << 16, 60 * 2, 32 if sparse else 64, sparse)
    assert shape.divided
    own = {**shape.macros, "LARGE": 10, "LEFT": 1}
    found = []
    with emulator.installed(together=2):
        from graphdb.gpu.executor import GpuExecutor

        for text in (CLIQUE, CLIQUE.replace("found += matrix.count_drawn(other", "matrix.count_drawn(other")):
            executor = GpuExecutor(0, memory_limit=1 << 30)
            with (
                mock.patch.object(clique_counter, "shape_for", return_value=shape),
                mock.patch.object(Shape, "macros", own),
                mock.patch.object(launch, "source", return_value=text),
            ):
                division = executor._counter.division(plan, True, Control())
                found.append(executor._counter.partial(plan, division, Control(), (3, 5))[0] // plan.automorphisms)
    assert np.diff(oriented.offsets)[3:5].tolist() == [9, 59]
    assert found[0] == comb(9, size - 1) + comb(59, size - 1)
    assert comb(9, size - 1) < found[1] < found[0]  # without what the other finds
