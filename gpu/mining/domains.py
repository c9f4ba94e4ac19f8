"""Domains of patterns on a device: a block for each pattern of a level, candidates and domains as rows of bits.

The domains of frequent patterns stay for the next level: on the device while they fit half of its budget, else in host
memory, where kernels read each once, when its pattern is looked at (GAMMA §5.2).  Patterns whose domains are wanted are
looked at in pieces, so that what kernels write has a place that was taken before; what stays is compacted after each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common.errors import MemoryLimitError
from graphdb.gpu.code.launch import VARIANTS, Device, StopFlag, faults
from graphdb.gpu.code.layout import PatternCell
from graphdb.gpu.data.graph import DeviceGraph, address
from graphdb.gpu.data.residency import Lists, lists_of_steps
from graphdb.gpu.mining.clock import Clock
from graphdb.gpu.watch import Watch
from graphdb.plan.domains import PLACES, Candidates, LabelledLists

Ints = NDArray[np.int64]
Words = NDArray[np.uint32]

THREADS = 256
"""Threads of a block."""
SHARED = 100 << 10
"""Bytes of shared memory that a block's rows of bits may take: two blocks fit a processor."""
ON_DEVICE = 0.5
"""The share of the device's budget that domains may take there."""
_PATTERN = 8 * (PatternCell.PATTERN_CELLS + 1) + 4 * PLACES
"""Bytes on the device for each pattern that is looked at, beside its domains."""
_PIECE = 1 << 16
"""Patterns that are looked at in one launch, at most."""

VARIANTS["domains"] = ({"THREADS": str(THREADS)},)


@dataclass(frozen=True, slots=True)
class _Stored:
    """The domains of some patterns of a level: uint32 [patterns, 6, words], on the device or in pinned host memory."""

    numbers: Ints
    rows: Any
    address: int
    on_host: bool


class DeviceDomains:
    """Finds domains on a device (:class:`graphdb.plan.domains.DomainSearch`).

    Parameters
    ----------
    watch
        Deadline and cancellation.
    host_memory
        Bytes that domains may take in host memory; None for any.
    threads
        Threads of a block (tests make them few).

    Raises
    ------
    MemoryLimitError
        The graph does not fit the device's budget.
    """

    def __init__(
        self,
        device: Device,
        graph: DeviceGraph,
        lists: LabelledLists,
        watch: Watch,
        *,
        host_memory: int | None = None,
        threads: int = THREADS,
    ) -> None:
        self.name = f"cuda:{device.number}"
        self._device, self._lists, self._watch, self._threads = device, lists, watch, threads
        self._host_memory, self._stop = host_memory, StopFlag(device)
        self._words = max((lists.vertices + 31) // 32, 1)
        self.clock = Clock(device)
        """The time of its kernels."""
        self.spilled = 0
        """Bytes of domains that were written to host memory."""
        with faults(), device.active():
            self._where = graph.residency.require(lists_of(lists))
            self._offsets, self._keys = graph.array(lists.offsets), graph.array(lists.keys)
            self._bits = device.memory.cached_or_built("labels", lists, self._label_rows)
            self._module = device.module("domains", {"THREADS": threads}, check=watch.check)
        first = address(self._bits)
        self._labels = first + 4 * self._words * np.arange(len(lists.spans), dtype=np.uint64)
        self._rows = self._labels
        self._stored: list[_Stored] = []
        self._written: list[_Stored] = []

    def _label_rows(self) -> Any:
        return self._device.memory.upload(label_rows(self._lists, self._words))

    @property
    def summary(self) -> str:
        """What it took so far: a phrase for PROFILE."""
        took = self.clock.milliseconds
        text = f"{self.name}: {took:,.1f} ms of kernels, {self.spilled:,} bytes of domains in host memory"
        return f"{text}; {self._where}" if self._where else text

    def find(
        self, candidates: Candidates, support: int, keep: bool, share: Callable[[float], float]
    ) -> tuple[Ints, Ints]:
        """Find the domains of patterns (:meth:`graphdb.plan.domains.DomainSearch.find`)."""
        count, memory = len(candidates), self._device.memory
        supports, examples = np.zeros(count, np.int64), np.zeros((count, PLACES), np.int64)
        self._written = []
        with faults(), self._device.active():
            row = 4 * PLACES * self._words
            places = int(candidates.sizes[:, 0].max(initial=2))
            scratch_row = 2 * 4 * places * self._words
            shared = scratch_row if scratch_row <= SHARED else 0
            blocks = self._module.resident("domains", self._threads, shared)
            each = _PATTERN + (row if keep else 0)
            free = memory.reserve(2 * (blocks * scratch_row + 2 * each * count))
            if not shared:
                blocks = max(min(blocks, free // 2 // scratch_row), 1)
            blocks = min(blocks, max(count, 1))
            scratch = None if shared else memory.empty(blocks * scratch_row // 4, np.uint32)
            piece = min(max(free // 4 // each, 1), _PIECE)
            rows = memory.upload(self._rows.astype(np.uint64))
            for begin in range(0, count, piece):
                self._watch.check()
                part = slice(begin, min(begin + piece, count))
                self._find(candidates, part, support, keep, (rows, scratch, blocks, shared, places), supports, examples)
        return supports, examples

    def _find(
        self,
        candidates: Candidates,
        part: slice,
        support: int,
        keep: bool,
        room: tuple[Any, Any, int, int, int],
        supports: Ints,
        examples: Ints,
    ) -> None:
        """Find the domains of a piece of the patterns."""
        memory, words = self._device.memory, self._words
        rows, scratch, blocks, shared, places = room
        table = pattern_table(candidates, part)
        count = len(table)
        patterns, taken = memory.upload(table), memory.empty(count, np.int64)
        found, next_task = memory.empty((count, PLACES), np.int32), memory.empty(1, np.uint64)
        out = memory.empty((count, PLACES, words), np.uint32) if keep else None
        next_task.fill(0)
        with self.clock.watched(self._watch, self._stop):
            self._module.launch(
                "domains",
                min(blocks, count),
                *(self._offsets, self._keys, self._lists.vertices, int(self._lists.directed), patterns, count, rows),
                *(words, places, support, address(scratch), taken, found, address(out), next_task, self._stop.address),
                threads=self._threads,
                shared=shared,
            )
        supports[part] = taken.get()
        frequent = np.flatnonzero(supports[part])
        examples[part][frequent] = found.get()[frequent]
        if out is not None and len(frequent):
            self._written.append(self._compacted(out, frequent, part.start))

    def _compacted(self, out: Any, frequent: Ints, first: int) -> _Stored:
        """Store the domains of frequent patterns without those between: on the device, or else on the host."""
        device, memory = self._device, self._device.memory
        shape = (len(frequent), PLACES, self._words)
        size = 4 * int(np.prod(shape))
        size_so_far = sum(int(each.rows.nbytes) for each in (*self._written, *self._stored) if not each.on_host)
        on_host = size_so_far + size > ON_DEVICE * memory.budget or size > memory.free_bytes() // 2
        rows: Any
        if on_host:
            spilled = size + sum(each.rows.nbytes for each in (*self._written, *self._stored) if each.on_host)
            if self._host_memory is not None and spilled > self._host_memory:
                raise MemoryLimitError(
                    f"the domains of a level need {spilled:,} bytes of host memory, "
                    f"{self._host_memory:,} of the memory limit are for them",
                    hint="ask for more support or fewer edges, or raise memory_limit",
                )
            rows = device.pinned(shape, np.uint32)
            self.spilled += size
            where = int(rows.ctypes.data)
        else:
            rows = memory.empty(shape, np.uint32)
            where = address(rows)
        which = memory.upload(frequent)
        width = PLACES * self._words
        blocks = min(-(-len(frequent) * width // self._threads), 32 * device.processors)
        with self.clock.timed():
            self._module.launch("gather", blocks, out, which, len(frequent), width, where, threads=self._threads)
        return _Stored(frequent + first, rows, where, on_host)

    def keep(self, frequent: Ints) -> Ints:
        """Drop all domains but those of some patterns of the last call; their numbers."""
        self._stored, self._written = self._written, []
        step = 4 * self._words
        found = [
            each.address + step * np.arange(len(each.numbers) * PLACES, dtype=np.uint64).reshape(-1, PLACES)
            for each in self._stored
        ]
        numbers = np.concatenate([np.empty(0, np.int64), *(each.numbers for each in self._stored)])
        rows = np.concatenate([np.empty((0, PLACES), np.uint64), *found])
        self._rows = np.concatenate([self._labels, rows[np.searchsorted(numbers, frequent)].reshape(-1)])
        return len(self._labels) + np.arange(len(frequent) * PLACES).reshape(-1, PLACES)


def lists_of(lists: LabelledLists) -> Lists:
    """Return what is read of a graph."""
    rows = np.broadcast_to(np.uint32(0), (len(lists.spans), (lists.vertices + 31) // 32))
    return lists_of_steps(lists.keys, lists.offsets, (lists.offsets, rows))


def label_rows(lists: LabelledLists, words: int) -> Words:
    """Return the vertices of each label as bits: uint32 [labels, words]."""
    found = np.zeros(len(lists.spans) * words, np.uint32)
    label = np.repeat(np.arange(len(lists.spans)), lists.spans[:, 1] - lists.spans[:, 0])
    place = label * words + (lists.members >> 5)
    first = np.flatnonzero(np.append(True, place[1:] != place[:-1])[: len(place)])
    if len(first):
        bits = np.left_shift(np.uint32(1), (lists.members & 31).astype(np.uint32))
        found[place[first]] = np.bitwise_or.reduceat(bits, first)
    return found.reshape(-1, words)


def pattern_table(candidates: Candidates, part: slice) -> Ints:
    """Return patterns as kernels read them: int64 [patterns, cells] (:class:`graphdb.gpu.code.layout.PatternCell`)."""
    columns = (candidates.sizes, candidates.edges.reshape(len(candidates), -1), candidates.orbits, candidates.sources)
    table = np.concatenate([column[part] for column in columns], axis=1)
    assert table.shape[1] == PatternCell.PATTERN_CELLS
    return np.ascontiguousarray(table, np.int64)
