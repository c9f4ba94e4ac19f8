"""Candidates refined on the device: those dropped that lack a neighbour along some pattern edge (SGSI §3.1).

The passes are those of :func:`graphdb.plan.space_kernels.refine`, and so is what they leave.  There one pattern vertex
comes after the other; here those that no pattern edge joins are looked at together, level after level of the pattern:
none of them asks what another one is about to change.
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.gpu.graph import DeviceGraph, address
from graphdb.gpu.launch import BLOCK, IDS, VARIANTS, Device, Module
from graphdb.plan.bits import members
from graphdb.plan.refine import FEW, Refinement, Sets

Ints = NDArray[np.int64]

START = 3e-4
"""Seconds that the smallest refinement takes: some launches, and an answer to wait for after each pass."""
RATE = 2e9
"""Neighbours (of one pass; the others follow) that a device looks at in a second, …"""
HOST_RATE = 1.5e8
"""… and that the planner does, in one thread."""
LINK = 1e10
"""Bytes that are copied to the device in a second."""

VARIANTS["refine"] = tuple({"ID": name} for name in IDS.values())


class DeviceRefiner:
    """Refines candidates on one device.

    Parameters
    ----------
    block, longest
        Threads of a block, and the longest list that a warp goes through alone (tests make them tiny).
    """

    def __init__(self, device: Device, graph: DeviceGraph, *, block: int = BLOCK, longest: int | None = None) -> None:
        self._device, self._graph, self._block = device, graph, block
        self._macros = {} if block == BLOCK else {"THREADS": block}
        self._macros |= {} if longest is None else {"LONG": longest}

    def pays(self, task: Refinement) -> bool:
        """Whether the device is expected to be done first, with all that it must be given."""
        missing = sum(map(self._graph.missing_bytes, task.partitions))
        needed = sum(partition.nbytes for partition in task.partitions) + 8 * task.vertices
        fits = needed < self._device.memory.budget // 2
        return fits and START + missing / LINK + task.work / RATE < task.work / HOST_RATE

    def refine(self, task: Refinement) -> Sets:
        """The candidates that are left of each pattern vertex."""
        with self._device.active():
            module = self._device.module("refine", {"ID": IDS[task.dtype], **self._macros}, check=task.check)
            run = _Run(self._device, self._graph, module, self._block, task)
            run.drop(task)
            return run.left(task)


@dataclass(slots=True)
class _Run:
    """One refinement: what its kernels read (``kernels/refine.cu`` says how), and what they change."""

    device: Device
    graph: DeviceGraph
    module: Module
    block: int
    task: InitVar[Refinement]
    levels: list[tuple[int, int, int]] = field(init=False)
    """Of each level: its first row in the table of vertices, the next level's, and the blocks that look at it."""
    begins: Ints = field(init=False)
    """Per pattern vertex: the first of the bits that say which candidates are left."""
    blocks: int = field(init=False)
    """So many have a thread per candidate."""
    cells: Any = field(init=False)
    """The tables of vertices, arcs, groups and partitions, when each vertex was changed, and how many are left."""
    at: list[np.uint64] = field(init=False)
    """The addresses of these."""
    fits: Any = field(init=False)
    _held: list[Any] = field(init=False)

    def __post_init__(self, task: Refinement) -> None:
        memory, count = self.device.memory, len(task.sets)
        level = _levels(task)
        order = np.argsort(level, kind="stable")
        sizes = np.array([len(found) for found in task.sets], np.int64)
        self._held = [self.graph.array(found, task.dtype) for found in task.sets]
        partitions = [self.graph.partition(partition) for partition in task.partitions]
        looks, goes = -(-sizes[order] // (self.block // 32)), -(-sizes[order] // self.block)
        arcs = task.first_arc[order], task.first_arc[order + 1]
        addresses = np.array([address(copy) for copy in self._held], np.int64)[order]
        first_looks, first_goes = np.cumsum(looks) - looks, np.cumsum(goes) - goes
        columns = (order, task.near[order], *arcs, addresses, sizes[order], first_looks, first_goes)
        rows = np.array([partition.row for partition in partitions], np.int64)
        parts = (np.stack(columns, axis=1), task.arcs, task.groups, rows, np.full(count, -1), sizes)
        self.cells = memory.upload(np.concatenate([part.ravel() for part in parts]))
        self.at = [np.uint64(address(self.cells) + 8 * at) for at in np.cumsum([0, *(part.size for part in parts)])]
        ends = np.searchsorted(level[order], np.arange(level.max() + 2)).tolist()
        self.levels = [(first, last, int(looks[first:last].sum())) for first, last in pairwise(ends)]
        self.begins, self.blocks = np.empty(count, np.int64), int(goes.sum())
        self.begins[order] = first_goes * self.block
        self._held += partitions
        self.fits = memory.empty(task.vertices, np.uint64)
        self.fits.fill(0)
        self.module.launch("spread", self.blocks, self.at[0], count, self.fits, threads=self.block)

    def drop(self, task: Refinement) -> None:
        """Pass over the levels, forwards and backwards in turn, until few are left to drop."""
        vertices, arcs, groups, partitions, changed, left = self.at[:6]
        count, deep = len(task.sets), len(self.levels)
        known = sum(map(len, task.sets))
        for number in range(task.passes):
            task.check()
            for step, (first, last, blocks) in enumerate(self.levels[:: -1 if number % 2 else 1]):
                now = number * deep + step
                before = 2 * number * deep - 1 - now if number else -1  # the last pass went the other way
                tables = (vertices, first, last, arcs, groups, partitions)
                state = (self.fits, changed, left, now, before)
                self.module.launch("drop_unsupported", blocks, *tables, *state, threads=self.block)
            sizes = self.cells[-count:].get()
            dropped, known = known - int(sizes.sum()), int(sizes.sum())
            if not sizes.all() or FEW * dropped < known:
                break

    def left(self, task: Refinement) -> Sets:
        """Which candidates are left."""
        words = self.device.memory.empty(self.blocks * self.block // 32, np.uint32)
        marks = (self.at[0], len(task.sets), self.fits, words)
        self.module.launch("mark_left", self.blocks, *marks, threads=self.block)
        kept = np.unpackbits(words.get().view(np.uint8), bitorder="little").view(bool)
        return tuple(found[kept[at : at + len(found)]] for found, at in zip(task.sets, self.begins, strict=True))


def _levels(task: Refinement) -> Ints:
    """Per pattern vertex, how long the longest way to it is along joined ones, each later in the passes' order."""
    levels = np.full(len(task.sets), -1, np.int64)
    for vertex in task.order:
        levels[vertex] = 1 + max((levels[other] for other in members(int(task.near[vertex]))), default=-1)
    return levels
