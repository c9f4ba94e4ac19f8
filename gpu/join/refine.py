"""Candidates refined on the device: those dropped that lack a neighbour along some pattern edge (SGSI §3.1).

The passes are those of :func:`graphdb.plan.candidates.space_kernels.refine`, and so is what they leave.  There one
pattern vertex comes after the other; here those that no pattern edge joins are looked at together, level after level
of the pattern: none of them asks what another one is about to change.
"""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from graphdb.gpu.code.launch import BLOCK, IDS, VARIANTS, Device
from graphdb.gpu.code.layout import LEVEL, VERTEX
from graphdb.gpu.data.graph import DeviceGraph, address
from graphdb.plan.bits import members
from graphdb.plan.candidates.refinement import LAST_PASS, Refinement, Sets

Ints = NDArray[np.int64]

START = 20.0
"""Answers that the smallest refinement takes: tables to lay out, a launch, and one to wait for."""
LOOKED_UP = 20.0
"""Elements that are looked up for each neighbour of one pass: the others follow."""
HOST_RATE = 1.3e8
"""Neighbours of one pass that the planner looks at in a second, in one thread."""
SHARE = 4
"""Its blocks wait for each other, so all must run: one of so many that have room on an idle device."""

VARIANTS["refine"] = tuple({"ID": name} for name in IDS.values())


_alone = threading.Lock()
"""Of two whose blocks wait for each other, each could have some that the other one leaves no room."""


class DeviceRefiner:
    """Refines candidates on one device.

    Parameters
    ----------
    block, longest, blocks
        Threads of a block, the longest list that a warp scans alone, and how many blocks there are at most
        (tests make them few).
    """

    def __init__(
        self,
        device: Device,
        graph: DeviceGraph,
        *,
        block: int = BLOCK,
        longest: int | None = None,
        blocks: int | None = None,
    ) -> None:
        self._device, self._graph, self._block, self._blocks = device, graph, block, blocks
        self._macros = {} if block == BLOCK else {"THREADS": block}
        self._macros |= {} if longest is None else {"LONG": longest}

    def pays(self, task: Refinement) -> bool:
        """Whether the device is expected to be done first, with all that it must be given."""
        if self._device.memory.streaming:  # who takes those matches away may be who waits
            return False
        missing = sum(map(self._graph.missing_bytes, task.partitions))
        needed = sum(partition.nbytes for partition in task.partitions) + 8 * task.vertices
        fits = needed < self._device.memory.budget // 2
        rates = self._device.rates
        here = START * rates.answer + missing / rates.upload + LOOKED_UP * task.work / rates.intersected
        return fits and here < task.work / HOST_RATE

    def refine(self, task: Refinement) -> Sets:
        """The candidates that are left of each pattern vertex."""
        task.check()
        with self._device.active(), _alone:
            return self._refined(task)

    def _refined(self, task: Refinement) -> Sets:
        """Lay out the tables that the kernel reads (``refine.cu`` says how), launch it, and read its marks."""
        module = self._device.module("refine", {"ID": IDS[task.dtype], **self._macros}, check=task.check)
        memory, count = self._device.memory, len(task.sets)
        level = _levels(task)
        order = np.argsort(level, kind="stable")
        sizes = np.array([len(found) for found in task.sets], np.int64)
        pieces, tiles = -(-sizes[order] // (self._block // 32)), -(-sizes[order] // self._block)
        ends = np.searchsorted(level[order], np.arange(level.max() + 2))
        of_level = {"first": ends[:-1], "last": ends[1:], "pieces": np.add.reduceat(pieces, ends[:-1])}
        levels = np.stack([of_level[name] for name in LEVEL], axis=1)
        first_piece, first_tile = np.cumsum(pieces) - pieces, np.cumsum(tiles) - tiles
        first_piece -= first_piece[ends[:-1]][level[order]]
        copies = [self._graph.array(found, task.dtype) for found in task.sets]
        partitions = [self._graph.partition(partition) for partition in task.partitions]
        addresses = np.array([address(copy) for copy in copies], np.int64)[order]
        columns = {
            "number": order,
            "near": task.near[order],
            "first_arc": task.first_arc[order],
            "last_arc": task.first_arc[order + 1],
            "candidates": addresses,
            "size": sizes[order],
            "pieces": first_piece,
            "tiles": first_tile,
        }
        rows = np.array([partition.row for partition in partitions], np.int64)
        state = (np.full(count, -1), np.zeros(task.passes + 1, np.int64))
        parts = (np.stack([columns[name] for name in VERTEX], axis=1), levels, task.arcs, task.groups, rows, *state)
        cells = memory.upload(np.concatenate([part.ravel() for part in parts]))
        begins = np.cumsum([0, *(part.size for part in parts)]).tolist()
        at = [np.uint64(address(cells) + 8 * begin) for begin in begins]
        fits, total = memory.empty(task.vertices, np.uint64), int(tiles.sum())
        words = memory.empty(total * self._block // 32, np.uint32)
        read = (at[0], count, total, at[1], len(levels), at[2], at[3], at[4], fits, task.vertices)
        # The state: when each vertex was changed, what each pass has dropped, and who has arrived.
        changed = (at[5], at[6], np.uint64(int(at[7]) - 8))
        ends_when = (task.passes, LAST_PASS, int(sizes.sum()))
        blocks = self._blocks or max(module.resident("refine", self._block) // SHARE, 1)
        blocks = min(blocks, max(int(of_level["pieces"].max()), 1))
        module.launch("refine", blocks, *read, *changed, *ends_when, words, threads=self._block)
        marked = np.unpackbits(words.get().view(np.uint8), bitorder="little").view(bool)
        first = np.empty(count, np.int64)
        first[order] = first_tile * self._block
        return tuple(found[marked[begin : begin + len(found)]] for found, begin in zip(task.sets, first, strict=True))


def _levels(task: Refinement) -> Ints:
    """Per pattern vertex, how long the longest way to it is along joined ones, each later in the passes' order."""
    levels = np.full(len(task.sets), -1, np.int64)
    for vertex in task.order:
        levels[vertex] = 1 + max((levels[other] for other in members(int(task.near[vertex]))), default=-1)
    return levels
