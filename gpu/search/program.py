"""A plan's tables with device addresses: what the host's kernels read, as the device's kernels read it.

The tables are those of :class:`graphdb.plan.physical.Program`, cell by cell; only addresses change, and large
candidate sets are always asked as bits.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.gpu.data.graph import DeviceGraph, DevicePartition, address
from graphdb.gpu.data.pinned import Pinned, pinned
from graphdb.gpu.data.residency import TABLES, coded_rows, lists_read
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
        By step: the values of its scan as the device reads them, in the vertex id type.
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


def device_program(
    plan: PhysicalPlan,
    graph: DeviceGraph,
    whole: Set[int] | None = None,
    *,
    roots_away: bool = False,
    packed: bool = False,
) -> DeviceProgram:
    """Copy what a plan reads to the device, as far as it is not there, and write its tables anew.

    With ``whole``, only the lists of these partitions are copied, and no codes; with ``roots_away``, what the first
    step scans is read in pinned memory of the host; with ``packed``, lists may stand in few bits.
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
        i: Pinned(pinned(graph.memory, step.scan, np.dtype(plan.dtype)))
        if roots_away and i == 0
        else graph.array(step.scan, plan.dtype)
        for i, step in enumerate(plan.steps)
        if isinstance(step, VertexStep) and step.scan is not None
    }
    if whole is None:
        coded = coded_rows(plan)
        copies = tuple(graph.partition(each, row in coded, packed=packed) for row, each in enumerate(plan.partitions))
    else:
        copies = tuple(graph.lists(each, row in whole) for row, each in enumerate(plan.partitions))
    rows = np.array([copy.row for copy in copies], np.int64).reshape(len(copies), len(PARTITION))
    return DeviceProgram(
        program.steps, lists, checks, program.uncertain, rows, program.shares, scans, copies, tuple(alive)
    )


@dataclass(frozen=True, slots=True, eq=False)
class SearchTables:
    """A plan's tables on the device, as a search's kernel reads them, one behind the other.

    Attributes
    ----------
    addresses
        Where each stands, by the member of the kernel's ``Run``.
    blocks
        For how many blocks of threads runs found memory, by what they compiled: as long as lists stand where they do,
        later runs would ask for more in vain, which has the pool give back all that it has.
    """

    program: DeviceProgram
    cells: Any
    addresses: dict[str, int]
    blocks: dict[int, int] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Bytes of the tables."""
        return int(self.cells.nbytes)


@dataclass(frozen=True, slots=True, eq=False)
class Ends:
    """Where the elements of each warp's roots end: int64 [warps + 1] on the device, None where each root is one; and
    how many there are.
    """

    ends: Any
    elements: int

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return 0 if self.ends is None else int(self.ends.nbytes)


def search_tables(plan: PhysicalPlan, graph: DeviceGraph, packed: bool) -> SearchTables:
    """Those of a plan, for code that may read lists in few bits or not, cached as long as the plan's program: to write
    them takes as long as a short search.
    """

    def made() -> SearchTables:
        # A search reads its roots in order: where there is too little room, lists need it more.
        placed = [known for each in lists_read(plan, plan.count_only) if (known := graph.residency.placed(each))]
        away = any(each.searched and not each.resident.all() for each in placed)
        program = device_program(plan, graph, roots_away=away, packed=packed)
        scans = np.zeros((len(plan.steps), 2), np.int64)
        for step, values in program.scans.items():
            scans[step] = address(values), len(values)
        tables = {
            "partitions": program.partitions,
            "lists": program.lists,
            "checks": program.checks,
            "uncertain": program.uncertain,
            "constants": plan.program.constants,
            "scans": scans,
        }
        cells = graph.memory.upload(np.concatenate([table.ravel() for table in tables.values()]).astype(np.int64))
        begins = address(cells) + 8 * np.cumsum([0, *(table.size for table in tables.values())])
        return SearchTables(program, cells, dict(zip(tables, begins.tolist(), strict=False)))

    return graph.memory.cached_or_built(f"{TABLES}, packed" if packed else TABLES, plan.program, made)
