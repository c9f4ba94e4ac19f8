"""Partitions narrowed to a candidate set, made on the device: every list of a step holds candidates only (SGSI §3.1).

A step whose vertex must be a candidate asks one bit per element, level after level.  One pass over the partition leaves
those elements out for good: lists get shorter, and the bit needs no asking.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphdb.gpu.code.launch import BLOCK, IDS, VARIANTS, Device
from graphdb.gpu.data.graph import DevicePartition

TILE = 8 * BLOCK
"""Entries that a block of threads marks."""

VARIANTS["filter"] = tuple({"ID": name} for name in IDS.values())


def narrowed(
    device: Device, partition: DevicePartition, candidates: int, dtype: type[np.signedinteger[Any]]
) -> DevicePartition:
    """A partition without the neighbours that are no candidates, and without codes.

    ``candidates`` is the address of one bit per vertex.
    """
    module, memory = device.module("filter", {"ID": IDS[dtype]}), device.memory
    entries = int(partition.neighbours.size)
    tiles = -(-entries // TILE)
    bits, counts = memory.empty(tiles * TILE // 32, np.uint32), memory.empty(tiles, np.int64)
    module.launch("mark_candidates", tiles, partition.neighbours, entries, np.uint64(candidates), bits, counts)
    positions = device.offsets(counts)
    neighbours = memory.empty(device.last(positions), dtype)
    marks = (bits, positions)
    module.launch("keep_candidates", -(-entries // BLOCK), partition.neighbours, entries, *marks, neighbours)
    offsets, cells = memory.empty(partition.offsets.shape, np.int64), int(partition.offsets.size)
    hashed = int(partition.layer == "hashed")
    module.launch("move_offsets", -(-cells // BLOCK), partition.offsets, cells, hashed, *marks, offsets)
    return DevicePartition(partition.layer, partition.groups, offsets, neighbours, None, None, partition.max_degree)
