"""The benchmark of one join step: whatever the output and the intersection, the same rows."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

from tests import emulator, nvrtc
from tests.benchmarks.extension import BLOCK_CELLS, KERNELS
from tests.gpu.executors import WHERE
from tests.gpu.patterns import graph_of


@pytest.mark.parametrize("where", WHERE)
def test_every_way_gives_the_same_rows(where: str) -> None:
    graph, label = graph_of(60, 500, 3)
    oriented = graph.oriented((label,))
    begins, ids = oriented.offsets, oriented.neighbours
    lists = [set(ids[begins[v] : begins[v + 1]].tolist()) for v in range(len(begins) - 1)]
    source = np.repeat(np.arange(len(lists)), np.diff(begins))
    want = {(e, x) for e, (u, v) in enumerate(zip(source, ids, strict=True)) for x in lists[u] & lists[v]}
    with ExitStack() as stack:
        if where == "emulated":
            stack.enter_context(emulator.installed())
        from graphdb.gpu.code.launch import Device
        from tests.benchmarks.extension import Extension

        device = Device(0, 1 << 28)
        step = Extension(device, oriented)

        def pairs(rows: Any) -> set[tuple[int, int]]:
            return set(map(tuple, rows.tolist()))

        with device.active():
            for way in (step.two_steps, step.prealloc, step.bits):
                out, found, _ = way()
                assert found == len(want)
                assert pairs(out.get().T[:found]) == want
            pool, found, _ = step.blocks(len(want))
            cells = [block[:used].reshape(-1, 2) for block, used in zip(pool.get(), step.taken, strict=True)]
            assert found == len(want)
            assert pairs(np.concatenate(cells)) == want
            for kernel in ("search_lists", "filter_lists", "collect_lists"):
                assert step.intersected(kernel) == len(want)


def test_its_kernels_compile_for_every_architecture() -> None:
    for target in nvrtc.targets():
        assert nvrtc.is_code(nvrtc.compiled(KERNELS, (f"-DBLOCK={BLOCK_CELLS}",), target), target)
