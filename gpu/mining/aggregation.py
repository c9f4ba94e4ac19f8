"""Aggregation on a device: quick patterns of rows, by hashing, and the vertices that patterns take, as bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.gpu.code.launch import BLOCK, VARIANTS, Device
from graphdb.gpu.data.graph import DeviceGraph, address
from graphdb.gpu.mining.clock import Clock
from graphdb.plan.extension import Adjacency, Aggregated

Ints = NDArray[np.int64]
Narrow = NDArray[np.int32]

VARIANTS["aggregation"] = ({},)


def quick_patterns(
    device: Device, clock: Clock, graph: DeviceGraph, lists: Adjacency, rows: Narrow, task: Aggregated
) -> tuple[Ints, Ints, Ints]:
    """Find the distinct quick patterns of rows (:meth:`graphdb.plan.extension.Extender.quick`).

    Returns
    -------
    tuple
        int64 [patterns, width]; int64 [patterns]: the first row that has each, ascending; and int64 [rows]: the pattern
        of each row.
    """
    memory, codes = device.memory, task.codes
    count, size = rows.shape
    places = size if codes is None else size + 1
    width = places + places * (places - 1) // 2
    bits = max(int(2 * count - 1).bit_length(), 1)
    module = device.module("aggregation", {})
    own, named = memory.upload(rows), memory.empty(count, np.int32)
    quick, slot_of = memory.empty((count, width), np.int64), memory.empty(count, np.int32)
    slots, firsts = memory.empty(1 << bits, np.uint32), memory.empty(1 << bits, np.uint32)
    slots.fill(0)
    firsts.fill((1 << 32) - 1)
    blocks = min(-(-count // BLOCK), 32 * device.processors)
    beside: tuple[int, ...] = ()
    arrays: tuple[NDArray[Any] | None, ...]
    if codes is None:
        kernel, arrays = "quick_of_vertices", (lists.offsets, lists.ids, task.states, task.labels)
    else:
        kernel, arrays = "quick_of_edges", (lists.source, lists.target, codes.kinds, task.labels)
        beside = (int(codes.directed), codes.base)
    read = [graph.array(array) for array in arrays if array is not None]
    with clock.timed():
        module.launch(kernel, blocks, *read, *beside, own, count, size, width, quick)
        module.launch("find_slots", blocks, quick, count, width, slots, bits, firsts, slot_of)
        module.launch("name_firsts", blocks, firsts, slot_of, count, named)
    first = named.get()
    begins = first == np.arange(count, dtype=np.int32)
    which = np.flatnonzero(begins)
    number: Ints = (np.cumsum(begins) - 1)[first]
    out = memory.empty((len(which), width), np.int64)
    module.launch("gather_patterns", blocks, quick, memory.upload(which), len(which), width, out)
    return out.get(), which, number


class Images:
    """Which vertices take the slots of patterns: a bit for each slot and vertex."""

    def __init__(
        self,
        device: Device,
        clock: Clock,
        graph: DeviceGraph,
        lists: Adjacency,
        slots: Narrow,
        count: int,
        task: Aggregated,
    ) -> None:
        self._device, self._clock, self._count, self._width = device, clock, count, slots.shape[1]
        self._words = _words(task)
        self._bits = device.memory.empty((count, self._words), np.uint32)
        self._bits.fill(0)
        self._slots = device.memory.upload(slots)
        ends = (None, None) if task.codes is None else (lists.source, lists.target)
        self._ends = [None if array is None else graph.array(array) for array in ends]
        self._module = device.module("aggregation", {})

    @classmethod
    def of(
        cls,
        device: Device,
        clock: Clock,
        graph: DeviceGraph,
        lists: Adjacency,
        slots: Narrow,
        count: int,
        task: Aggregated,
    ) -> Images | None:
        """No vertices yet; None where the bits would take more than half of the memory that is free."""
        size = 4 * count * _words(task)
        if not count or size > device.memory.reserve(2 * size) // 2:
            return None
        return cls(device, clock, graph, lists, slots, count, task)

    def mark(self, rows: Narrow, quick_of_row: Narrow) -> None:
        """Mark the vertices of rows, given the quick pattern of each."""
        device = self._device
        count, size = rows.shape
        own, quick = device.memory.upload(rows), device.memory.upload(quick_of_row)
        with self._clock.timed():
            self._module.launch(
                "mark_images",
                min(-(-count // BLOCK), 32 * device.processors),
                *(*map(address, self._ends), own, quick, count, size),
                *(self._slots, self._width, self._words, self._bits),
            )

    def counts(self) -> Ints:
        """How many vertices each slot takes."""
        counts = self._device.memory.empty(self._count, np.int64)
        blocks = min(-(-self._count * 32 // BLOCK), 32 * self._device.processors)
        with self._clock.timed():
            self._module.launch("count_images", blocks, self._bits, self._count, self._words, counts)
        found: Ints = counts.get()
        return found


def _words(task: Aggregated) -> int:
    """Words of 32 bits that have a bit for each vertex."""
    return (len(task.labels) + 31) // 32
