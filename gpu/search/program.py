"""A plan's tables with device addresses: what the host's kernels read, as the device's kernels read it.

The tables are those of :class:`graphdb.plan.physical.Program`, cell by cell; only addresses change, and large
candidate sets are always asked as bits.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common.classes.records import dataclass
from graphdb.gpu.data.graph import DeviceGraph, DevicePartition, address
from graphdb.plan.physical import CONSTANT_LIST, Op, PhysicalPlan, VertexStep
from graphdb.storage.graph.pcsr import PARTITION

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class DeviceProgram:
    """The tables, still in host memory, with the addresses of device arrays; ``alive`` are those.

    Attributes
    ----------
    steps, lists, checks, uncertain, partitions, shares
        int64, as in :class:`graphdb.plan.physical.Program`.
    scans
        By step: the values of its scan on the device, in the vertex id type.
    copies
        The partitions, by their row in the table.
    """

    steps: Ints
    lists: Ints
    checks: Ints
    uncertain: Ints
    partitions: Ints
    shares: Ints
    scans: dict[int, Any]
    copies: tuple[DevicePartition, ...]
    alive: tuple[Any, ...]


def device_program(plan: PhysicalPlan, graph: DeviceGraph, whole: Set[int] | None = None) -> DeviceProgram:
    """Copy what a plan reads to the device, as far as it is not there, and write its tables anew.

    With ``whole``, only the lists of these partitions are copied, and no codes.
    """
    program = plan.program
    arrays = {item.ctypes.data: item for item in program.alive if isinstance(item, np.ndarray)}
    alive: list[Any] = []

    def copied(at: int, dtype: Any = None) -> int:
        alive.append(graph.array(arrays[at], dtype))
        return address(alive[-1])

    lists, checks = program.lists.copy(), program.checks.copy()
    for row in lists:
        if row[0] == CONSTANT_LIST:
            row[1] = copied(int(row[1]))
    for row in checks:
        if row[0] == Op.CANDIDATE_SEARCH:
            alive.append(graph.bits(arrays[int(row[2])], program.bits_bytes * 8))
            row[:] = (Op.CANDIDATE_BIT, row[1], address(alive[-1]), 0, 0, 0, 0)
        elif row[0] in (Op.CANDIDATE_BIT, Op.SIGNATURE):
            row[2] = copied(int(row[2]))
    scans = {
        i: graph.array(step.scan, plan.dtype)
        for i, step in enumerate(plan.steps)
        if isinstance(step, VertexStep) and step.scan is not None
    }
    if whole is None:
        copies = tuple(map(graph.partition, plan.partitions))
    else:
        copies = tuple(graph.lists(each, row in whole) for row, each in enumerate(plan.partitions))
    rows = np.array([copy.row for copy in copies], np.int64).reshape(len(copies), len(PARTITION))
    return DeviceProgram(
        program.steps, lists, checks, program.uncertain, rows, program.shares, scans, copies, tuple(alive)
    )
