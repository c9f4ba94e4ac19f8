"""Counts cliques on a device: see ``kernels/counting/clique.cu``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from graphdb.gpu.card import Limits
from graphdb.gpu.code.launch import BLOCK, SAMPLES, VARIANTS, Device, StopFlag
from graphdb.gpu.data.graph import DeviceGraph, address
from graphdb.gpu.data.packed import can_be_packed
from graphdb.gpu.watch import Watch, wait_for
from graphdb.plan.counting.programs import Bundle, Intersect, Load, Local, Part, Through
from graphdb.plan.physical import CliqueCount

SIZES = range(3, 9)
"""Cliques of so many vertices have kernels."""
WARP_BYTES = 8 << 10
"""Shared memory that a warp may take, beyond which a block works on one vertex; less where a block may not take as
much for each of its warps."""
SPARSEST = 1 / 64
"""Ranks that have a bit, at least, where not all do: the others' lists, in which neighbours are searched, are short."""

DIVIDED = 5
"""The least cliques for which blocks help each other with one vertex."""
FEW = 32
"""A vertex with no more neighbours of higher rank is a warp's (``clique.cu``)."""
MOST_THREADS = {3: 1024, 4: 1024, 5: 1024}
"""Of a block that works on one vertex, by the size of cliques; 512 of larger ones, whose candidates take registers."""
SCRATCH = {4: 8 << 20, 5: 8 << 20}
"""Bytes of a block's scratch memory for a matrix that shared memory has no room for, at most, by the size of cliques:
the rows of larger ones would not fit registers."""

REGISTERS = 4
"""Cliques of no more vertices need no row in registers: one kernel does for lists of any length."""


def _macros(size: int, words: int, team: str, threads: int, *more: str) -> dict[str, str]:
    return {"SIZE": f"{size}", "WORDS": f"{words}", "TEAM": team, "THREADS": f"{threads}", **dict.fromkeys(more, "1")}


VARIANTS["clique"] = (
    *(_macros(size, 1, "Warp", BLOCK) for size in (3, 4)),
    *(_macros(size, 1, "Block", 1024) for size in (3, 4)),
    *(_macros(size, 1, "Block", 1024, "SPARSE") for size in (3, 4)),
)
SAMPLES["clique"] = (
    _macros(5, 3, "Warp", BLOCK),
    _macros(5, 16, "Block", 1024, "DIVIDED"),
    _macros(8, 16, "Block", 512, "DIVIDED"),
    _macros(4, 1, "Block", 1024, "SPARSE", "SCRATCH"),
    _macros(6, 16, "Block", 512, "SPARSE", "DIVIDED"),
    _macros(4, 1, "Block", 1024, "SPARSE", "NARROW"),
    _macros(3, 1, "Block", 1024, "PACKED"),
    _macros(6, 16, "Block", 512, "SPARSE", "DIVIDED", "PACKED"),
)


@dataclass(frozen=True, slots=True)
class Shape:
    """The constants that a kernel is compiled with, its shared memory in bytes, and how many of the last ranks have a
    bit there: all, unless it is ``sparse``.
    """

    size: int
    words: int
    team: str
    shared: int
    matrix_words: int
    span: int
    sparse: bool = False
    wide: bool = False
    """Whether offsets have 64 bits."""
    narrow: bool = False
    """Whether lists are read as :mod:`graphdb.gpu.data.narrow` has them, …"""
    packed: bool = False
    """… or as :mod:`graphdb.gpu.data.packed` does."""
    list_words: int = 0
    """Words of shared memory for a vertex's own list."""
    threads: int = BLOCK
    """Of a block."""
    scratch: int = 0
    """Words of a block's scratch memory."""

    @property
    def macros(self) -> dict[str, object]:
        """For the compiler."""
        more = {
            name: 1
            for name in ("SPARSE", "SCRATCH", "DIVIDED", "WIDE", "NARROW", "PACKED")
            if getattr(self, name.lower())
        }
        return {"SIZE": self.size, "WORDS": self.words, "TEAM": self.team, "THREADS": self.threads, **more}

    def aside(self, processors: int) -> int:
        """Bytes of scratch memory that a run takes beside lists, about."""
        return 4 * self.scratch * processors

    @property
    def divided(self) -> bool:
        """Whether blocks share the rows of a vertex: of small cliques its lists, which are read once, take longer."""
        return self.team == "Block" and self.size >= DIVIDED


def matrix_of(length: int) -> int:
    """Words of the matrix of so many vertices: in each row those from the diagonal on."""
    width, rest = -(-length // 32), length % 32
    whole = length // 32
    return 32 * whole * width - 16 * whole * (whole - 1) + rest * (width - whole)


def shape_of(size: int, ranks: int, longest: int, limits: Limits, *, packed: bool = False) -> Shape | None:
    """How cliques of ``size`` are counted in a graph of so many ranks and a longest list, by a card with such limits.

    None where they cannot be, or not of lists that are ``packed``: a vertex's own is unpacked in shared memory.
    """
    words = max((longest + 31) // 32, 1)
    if size <= REGISTERS:
        words = 1
    elif words > 4:
        words = (words + 3) // 4 * 4  # fewer kernels to compile
    if size not in SIZES or longest >= 1 << 16:
        return None
    matrix = 0 if size == 3 else matrix_of(longest)
    own, unpacked = FEW if size > 3 or packed else 0, longest if packed else 0
    shape = Shape(size, words, "Warp", 0, matrix, ranks, packed=packed, list_words=unpacked)

    def shared(bits: int, warps: int) -> int:
        return 4 * (bits + (0 if size == 3 else (bits + 1) // 2) + matrix + unpacked + own * warps)

    every, warps = (ranks + 31) // 32, BLOCK // 32
    if shared(every, 1) <= min(WARP_BYTES, limits.shared // warps):
        return replace(shape, shared=shared(every, 1) * warps)
    threads = MOST_THREADS.get(size, 512)
    warps = threads // 32
    shape = replace(shape, team="Block", threads=threads)
    if shared(every, warps) <= limits.shared:
        return replace(shape, shared=shared(every, warps))
    room = limits.shared // 4 - own * warps - unpacked
    matrices = [(matrix, 0), (room // 3, matrix)] if 4 * matrix <= SCRATCH.get(size, 0) else [(matrix, 0)]
    for kept, scratch in matrices:
        bits = min(room - kept if size == 3 else (2 * (room - kept) - 1) // 3, every)
        if 32 * bits >= SPARSEST * ranks:
            taken, span = 4 * (room + own * warps + unpacked), min(32 * bits, ranks)
            return replace(shape, shared=taken, matrix_words=kept, span=span, sparse=True, scratch=scratch)
    return None


Kind = Literal["plain", "narrow", "packed"]
"""How lists are read: four bytes a neighbour, two (:mod:`graphdb.gpu.data.narrow`), or few bits
(:mod:`graphdb.gpu.data.packed`)."""


def shape_for(plan: CliqueCount, limits: Limits, kind: Kind = "plain") -> Shape | None:
    """How a plan is run by a card with such limits; None where it is not.

    Lists that cannot be packed are ``narrow``.
    """
    if plan.graph.neighbours.dtype != np.int32:
        return None
    known = plan.size, len(plan.graph.offsets) - 1, plan.graph.longest, limits
    if kind == "packed" and can_be_packed(plan.graph):
        shape = shape_of(*known, packed=True)
        if shape is not None:
            return shape
    shape = shape_of(*known)
    wide = plan.graph.short_offsets is None
    return None if shape is None else replace(shape, wide=wide, narrow=kind != "plain")


def lists_of(graph: DeviceGraph, plan: CliqueCount, shape: Shape, processors: int) -> tuple[Any, ...]:
    """What a kernel is told of the lists that cliques are found in, which are copied."""
    if shape.packed:
        return graph.packed(plan.graph, shape.aside(processors)).arguments
    if shape.narrow:
        return graph.narrow(plan.graph).arguments
    oriented = graph.oriented(plan.graph)
    return address(oriented.offsets), address(oriented.neighbours), np.uint64(0), 0, 0


def launch_cliques(
    device: Device,
    graph: DeviceGraph,
    plan: CliqueCount,
    shape: Shape,
    stop: int,
    next_task: int,
    total: int,
    share: tuple[int, int] | None = None,
) -> None:
    """Start to count each clique once.

    Parameters
    ----------
    stop, next_task, total
        Addresses: of a flag that says stop, and of two numbers that are 0, of which the second becomes the count.
    share
        Only cliques whose first vertex has a rank in it: first and last + 1.
    """
    arrays = lists_of(graph, plan, shape, device.processors)
    module = device.module("clique", shape.macros)
    ranks = len(plan.graph.offsets) - 1
    first, end = share or (0, ranks)
    blocks = min(module.resident("cliques", shape.threads, shape.shared), end - first)
    published: Any = np.uint64(0)
    if shape.divided:
        published = device.memory.empty(blocks, np.uint64)
        published.fill(0)
    scratch: Any = device.memory.empty(blocks * shape.scratch, np.uint32) if shape.scratch else np.uint64(0)
    module.launch(
        "cliques",
        blocks,
        *(*arrays, ranks, shape.span),
        *(first, end, plan.graph.short_until(FEW), shape.matrix_words, shape.list_words, scratch, shape.scratch),
        *(next_task, total, stop, published),
        threads=shape.threads,
        shared=shape.shared,
    )


def book_of(part: Part) -> int:
    """The power, if a part is triangles times a power of how many vertices all three know; else 0."""
    if len(part.levels) != 2 or part.weights or not part.root.is_one:
        return 0
    first, second = ([i for i in level.instructions if not isinstance(i, Local)] for level in part.levels)
    match first, second:
        case (
            [Load(near, 0, up), Load(every, 0, free)],
            [
                Intersect(later, source, 1, again),
                Intersect(common, of, 1, once),
                Through(_, counted, mask, _, back) as last,
            ],
        ):
            bundles = {Bundle(bundle.members) for bundle in (up, free, again, once, last.forward, back)}
            member = free.members[0]
            shape = (
                (source, of, counted, mask, part.levels[1].register) == (near, every, common, later, near)
                and up == again
                and up.order != 0
                and {free.order, once.order, last.forward.order, back.order} == {0}
                and len(bundles) == 1
                and free.plain
                and member.direction == "both"
                and last.total == 1
            )
            return last.power if shape else 0
    return 0


class DeviceCliques:
    """Counts cliques on one device, one run at a time; ``milliseconds`` is what the last one took there."""

    def __init__(self, device: Device, graph: DeviceGraph) -> None:
        self._device, self._graph, self._stop = device, graph, StopFlag(device)
        self._found = device.pinned((1,), np.uint64)
        self.milliseconds = 0.0

    def count(self, plan: CliqueCount, shape: Shape, watch: Watch, share: tuple[int, int] | None = None) -> int:
        """Count each clique once; raises what ``watch`` does.

        With a share, those whose first vertex has a rank in it: first and last + 1.
        """
        device = self._device
        with device.active():
            device.module("clique", shape.macros, check=watch.check)
            lists_of(self._graph, plan, shape, device.processors)
            cells: Any = device.memory.empty(2, np.uint64)
            cells.fill(0)
            begin = device.event()
            cell = address(cells)
            launch_cliques(device, self._graph, plan, shape, self._stop.address, cell, cell + 8, share)
            cells[1:].get(out=self._found, stream=device.stream, blocking=False)
            done = device.event()
            wait_for(done, watch, self._stop, lambda: None)
            self.milliseconds = device.milliseconds(begin, done)
            return int(self._found[0])
