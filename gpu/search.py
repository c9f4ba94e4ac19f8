"""The depth-first search on a device: one persistent kernel per plan (``kernels/search.cu``).

Counts come back as a number.  Matches leave while the kernel runs, through a ring of blocks in the host's page-locked
memory: the kernel fills them in any order and says when one is complete, the host takes them in their order and says
how many it has taken.  So a run needs no more memory than the ring, however many matches there are.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.execute.executor import Control
from graphdb.gpu.graph import DeviceGraph, address
from graphdb.gpu.launch import IDS, Device, StopFlag
from graphdb.gpu.program import DeviceProgram, device_program
from graphdb.gpu.specialise import search_text
from graphdb.plan.physical import PhysicalPlan

PIECES = 64
"""Tasks per warp that the work is dealt into, …"""
LEAST = 32
"""… unless they had fewer elements than this."""
BLOCK_ROWS = 1 << 15
RING_BLOCKS = 32
SHARED = 200 << 10


class Search:
    """Runs plans by depth-first search.

    Parameters
    ----------
    pieces, least, block_rows, blocks
        How finely work is dealt, and the ring's blocks (tests make them tiny).
    most
        Blocks of threads at most.
    motion
        Whether shared intersections are kept (:func:`graphdb.gpu.specialise.search_text`).
    """

    name = "search"

    def __init__(
        self,
        device: Device,
        graph: DeviceGraph,
        *,
        pieces: int = PIECES,
        least: int = LEAST,
        block_rows: int = BLOCK_ROWS,
        blocks: int = RING_BLOCKS,
        most: int | None = None,
        motion: bool = True,
    ) -> None:
        self._device, self._graph, self._stop = device, graph, StopFlag(device)
        self._pieces, self._least, self._block_rows, self._blocks = pieces, least, block_rows, blocks
        self._most, self._motion = most, motion
        self.milliseconds = 0.0
        """After a run: the device's time."""

    def memory(self, plan: PhysicalPlan) -> int:
        """Bytes that a run takes on the device, besides the graph: a sum per root."""
        ids = sum(max(int(entries), 1) for entries in plan.program.share_capacity)
        warps = 16 * self._device.processors
        return 24 * int(plan.program.steps[0, 7]) + 32 * warps * ids * np.dtype(plan.dtype).itemsize + (1 << 16)

    def count(self, plan: PhysicalPlan, control: Control, limit: int | None) -> int:
        """How many matches are found, before images; with a limit, that many or more will do."""
        if limit == 0:
            return 0
        run = _Run(self, plan, limit, counting=True)
        try:
            run.wait(control)
        finally:
            run.close()
        self.milliseconds = run.milliseconds
        return run.found

    def run(self, plan: PhysicalPlan, control: Control, limit: int | None) -> Iterator[tuple[NDArray[Any], int]]:
        """Give the matches as arrays [outputs, rows], images included, each with its number of rows."""
        if limit == 0:
            return
        run = _Run(self, plan, limit, counting=False)
        try:
            for cells in run.blocks(control):
                yield _images(cells, plan), cells.shape[1] * plan.automorphisms
        finally:
            run.close()
        self.milliseconds = run.milliseconds


class _Run:
    """One launch of a plan's kernel, and what it writes."""

    def __init__(self, search: Search, plan: PhysicalPlan, limit: int | None, *, counting: bool) -> None:
        device = self._device = search._device
        self._stop, self._rows, self._blocks = search._stop, search._block_rows, search._blocks
        self._limit, self._plan = limit, plan
        self.milliseconds = 0.0
        with device.active():
            program = device_program(plan, search._graph)
        second = plan.program.second
        text = search_text(plan, counting, second, search._motion)
        self._columns = 0 if counting else len(plan.program.outputs)
        threads = 256
        while threads > 32 and threads // 32 * text.room * np.dtype(plan.dtype).itemsize > SHARED:
            threads //= 2
        shared = threads // 32 * text.room * np.dtype(plan.dtype).itemsize
        with device.active():
            self._module = device.module("search", {"ID": IDS[plan.dtype], "THREADS": threads}, text.plan)
            scan = program.scans[0]
            ends, elements = self._ends(program, scan, second)
            blocks = self._module.resident("search", threads, shared)
            if search._most is not None:
                blocks = min(blocks, search._most)
            width = threads // 32 * np.dtype(plan.dtype).itemsize
            if text.shares:
                room = device.memory.reserve(2 * blocks * text.shares * width) // 2
                blocks = max(min(blocks, room // (text.shares * width)), 1)
            shares = device.memory.empty(blocks * text.shares * width, np.uint8)
            warps = blocks * (threads // 32)
            piece = max(elements // (warps * search._pieces), search._least)
            self._ring(counting)
            cells = self._cells = device.memory.empty(4, np.int64)
            cells.fill(0)
            cell = address(cells)
            uploaded = [
                device.memory.upload(table.reshape(-1))
                for table in (
                    program.partitions,
                    program.lists,
                    program.checks,
                    program.uncertain,
                    plan.program.constants,
                )
            ]
            scans = np.zeros((len(plan.steps), 2), np.int64)
            for step, values in program.scans.items():
                scans[step] = address(values), len(values)
            uploaded.append(device.memory.upload(scans.reshape(-1)))
            tables = [address(table) for table in uploaded]
            given = [
                *tables[:5],
                plan.program.resources,
                plan.program.type_label,
                tables[5],
                *(address(scan), len(scan), 0 if ends is None else address(ends) + 8, elements, piece),
                *(cell, cell + 8, self._stop.address, cell + 16, -1 if limit is None else limit),
                *(address(shares), text.shares),
                *(self._block.ctypes.data, self._rows, self._blocks, cell + 24, address(self._filled)),
                *(self._ready.ctypes.data, self._taken.ctypes.data),
            ]
            run = device.memory.upload(np.array(given, np.int64))
            self._alive = (program, scan, ends, uploaded, run, shares)
            self._begin = device.event()
            tasks = -(-elements // piece)
            self._module.launch("search", min(blocks, max(tasks, 1)), run, threads=threads, shared=shared)
            self._end = device.event()

    def _ends(self, program: DeviceProgram, scan: Any, second: int) -> tuple[Any, int]:
        """Where each root's elements end, and how many there are: those of its list in partition ``second``."""
        if second < 0 or not len(scan):
            return None, len(scan)
        device = self._device
        degrees = device.memory.empty(len(scan), np.int64)
        row = device.memory.upload(program.partitions[second])
        self._module.launch("degrees", -(-len(scan) // 256), row, scan, len(scan), degrees)
        ends = device.offsets(degrees)
        return ends, device.last(ends)

    def _ring(self, counting: bool) -> None:
        blocks = 1 if counting else self._blocks
        columns = max(self._columns, 1)
        device = self._device
        rows = 1 if counting else self._rows
        self._block: NDArray[Any] = device.pinned((blocks, columns, rows), self._plan.dtype)
        self._ready: NDArray[np.uint64] = device.pinned((blocks,), np.uint64)
        self._taken: NDArray[np.uint64] = device.pinned((1,), np.uint64)
        self._ready[:] = 0
        self._taken[:] = 0
        self._filled = device.memory.empty(blocks, np.uint32)
        self._filled.fill(0)

    @property
    def found(self) -> int:
        """The matches counted."""
        return int(self._cells.get()[2])

    def wait(self, control: Control) -> None:
        """Wait for the kernel to end."""
        pause = 0.0
        while not self._end.done:
            control.check()
            time.sleep(pause)
            pause = min(pause + 2e-5, 2e-3)
        self.milliseconds = self._device.milliseconds(self._begin, self._end)

    def blocks(self, control: Control) -> Iterator[NDArray[Any]]:
        """The matches, block by block: [columns, rows] each."""
        number = 0
        while True:
            ended = self._end.done  # asked first: what was written before is there then
            at = number % self._blocks
            if int(self._ready[at]) == number + 1:
                yield self._block[at, : self._columns].copy()
                number += 1
                self._taken[0] = number
                continue
            if ended:
                break
            control.check()
            time.sleep(2e-5)
        head = int(self._cells.get()[3])
        rest = (head if self._limit is None else min(head, self._limit)) - number * self._rows
        if rest > 0:
            yield self._block[number % self._blocks, : self._columns, :rest].copy()
        self.milliseconds = self._device.milliseconds(self._begin, self._end)

    def close(self) -> None:
        """Stop the kernel if it runs still."""
        if not self._end.done:
            self._stop.set()
            self._end.synchronize()
            self._stop.clear()


def _images(cells: NDArray[Any], plan: PhysicalPlan) -> NDArray[Any]:
    """The automorphic images of matches, each match's one after the other: [outputs, rows * automorphisms]."""
    moved = plan.columns
    if len(moved) == 1:
        return cells[moved[0]] if moved.shape[1] else cells
    if not moved.shape[1]:
        return np.empty((0, cells.shape[1] * len(moved)), cells.dtype)
    return np.stack([np.take(cells, column, axis=0).T.reshape(-1) for column in moved.T])
