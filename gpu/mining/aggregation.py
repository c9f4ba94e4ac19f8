"""Quick patterns on a device: of a piece of an embedding table, which rows have the same, by hashing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.gpu.code.launch import BLOCK, VARIANTS, Device
from graphdb.gpu.data.graph import DeviceGraph
from graphdb.plan.extension import Adjacency, Aggregated

Ints = NDArray[np.int64]
Narrow = NDArray[np.int32]

VARIANTS["aggregation"] = ({},)


def quick_patterns(
    device: Device, graph: DeviceGraph, lists: Adjacency, rows: Narrow, task: Aggregated
) -> tuple[Ints, Ints, float]:
    """Find the distinct quick patterns of rows (:meth:`graphdb.plan.extension.Extender.quick`).

    Returns
    -------
    tuple
        int64 [patterns, width]; int64 [rows]: the first row with the pattern of each; and the device's milliseconds.
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
    begin = device.event()
    module.launch(kernel, blocks, *read, *beside, own, count, size, width, quick)
    module.launch("find_slots", blocks, quick, count, width, slots, bits, firsts, slot_of)
    module.launch("name_firsts", blocks, firsts, slot_of, count, named)
    took = device.milliseconds(begin, device.event())
    first: Ints = named.get().astype(np.int64)
    which = np.unique(first)
    out = memory.empty((len(which), width), np.int64)
    module.launch("gather_patterns", blocks, quick, memory.upload(which), len(which), width, out)
    return out.get(), first, took
