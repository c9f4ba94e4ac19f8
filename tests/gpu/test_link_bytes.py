"""What searches read in host memory, counted: kernels run in the emulator, and each warp has a cache of some lines."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import pytest

from graphdb.execute.host import HostExecutor
from graphdb.gpu.data.memory import DeviceMemory
from graphdb.gpu.data.residency import lists_read
from graphdb.grammar.syntax import MatchMode
from graphdb.plan.passes.pipeline import make_plan
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph
from tests import emulator
from tests.emulator.compiler import Compiler
from tests.execute.test_host import pattern
from tests.gpu.executors import EMULATED
from tests.gpu.test_searched_lists import searching

SECTOR = 32
"""Bytes that come over the link at least."""
COUNTED = f"""
extern "C" unsigned long long linked_sectors, linked_ranges[64];
unsigned long long linked_sectors, linked_ranges[64], linked_seen[64][128];
template <typename T> static T counted_ldg(const T *address) {{
  const unsigned long long at = (unsigned long long)address, sector = at / {SECTOR};
  for (int i = 0; linked_ranges[i]; i += 2)
    if (at >= linked_ranges[i] && at < linked_ranges[i + 1]) {{
      unsigned long long &seen = linked_seen[(blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32) % 64][sector % 128];
      linked_sectors += seen != sector;
      seen = sector;
    }}
  return *address;
}}
"""


class _Counted:
    """Bytes that a search's kernels have read in pinned memory."""

    def __init__(self) -> None:
        self.libraries: list[Any] = []
        self.pinned: list[Any] = []

    def begin(self) -> None:
        """Count from now on."""
        bounds = [bound for each in self.pinned for bound in (each.ctypes.data, each.ctypes.data + each.nbytes)]
        for library in self.libraries:
            cells = (ctypes.c_ulonglong * 64).in_dll(library, "linked_ranges")
            cells[: len(bounds) + 1] = [*bounds, 0]
            ctypes.c_ulonglong.in_dll(library, "linked_sectors").value = 0

    @property
    def bytes(self) -> int:
        """How many they are."""
        return SECTOR * sum(ctypes.c_ulonglong.in_dll(each, "linked_sectors").value for each in self.libraries)


@contextmanager
def counting() -> Iterator[_Counted]:
    """Searches that are compiled meanwhile count what they read."""
    counted, compiled, load, pinned = _Counted(), Compiler.compile, emulator.Module.load, DeviceMemory.pinned

    def compiling(self: Any, text: str, *more: Any, **how: Any) -> bytes:
        if " search(const Run *given)" in text:
            text = COUNTED + text.replace("__ldg(", "counted_ldg(")
        return compiled(self, text, *more, **how)

    def loading(self: Any, code: bytes) -> None:
        load(self, code)
        if hasattr(self._library, "linked_sectors"):
            counted.libraries.append(self._library)

    def pinning(self: Any, *how: Any) -> Any:
        made = pinned(self, *how)
        counted.pinned.append(made)
        return made

    compiler = mock.patch.object(Compiler, "compile", compiling)
    with (
        compiler,
        mock.patch.object(emulator.Module, "load", loading),
        mock.patch.object(DeviceMemory, "pinned", pinning),
    ):
        yield counted


def skewed(vertices: int, edges: int) -> DataGraph:
    """Some vertices have most edges."""
    ends = (np.random.default_rng(5).random((2, edges)) ** 3 * vertices).astype(np.int64)
    source, target = np.unique(ends[:, ends[0] != ends[1]], axis=1)
    return DataGraph(ArraySource(source, np.full(len(source), vertices), target, vertices + 1), layer="direct")


@EMULATED
@pytest.mark.parametrize("part", [2, 8, 16])
def test_bytes_over_the_link(part: int) -> None:
    """About as many as the plan tells, and with room for an eighth of the lists at most three times what these have; with
    room for half of them, all are on the device, in few bits.
    """
    graph = skewed(2_000, 12_000)
    edges = [(0, 1, (2_000,), True), (1, 2, (2_000,), True), (0, 2, (2_000,), True)]
    plan = make_plan(pattern(3, edges, MatchMode.DIFFERENT_NODES, count_only=True), graph, counting="never")
    wanted = HostExecutor(1).count(plan)
    with counting() as counted, searching(part, plan, 16_000) as device:
        for _ in range(4):
            assert device.count(plan) == wanted > 0
        counted.begin()
        assert device.count(plan) == wanted
        assert (counted.bytes == 0) is (part == 2)
        assert counted.bytes <= 1.5 * device.strategies.link_bytes(plan, True, "search")
        if part == 8:
            assert counted.bytes <= 3 * sum(each.nbytes for each in lists_read(plan, True))
