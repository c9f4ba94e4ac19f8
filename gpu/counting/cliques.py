"""Counts cliques on a device: see ``kernels/counting/clique.cu``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphdb.gpu.card import Limits
from graphdb.gpu.code.launch import BLOCK, SAMPLES, VARIANTS, Device, StopFlag
from graphdb.gpu.data.graph import DeviceGraph, address
from graphdb.gpu.watch import Watch, wait_for
from graphdb.plan.counting.programs import Bundle, Intersect, Load, Local, Part, Through
from graphdb.plan.physical import CliqueCount

SIZES = range(3, 9)
"""Cliques of so many vertices have kernels."""
WARP_BYTES = 8 << 10
"""Shared memory that a warp may take, beyond which a block works on one vertex; less where a block may not take as
much for each of its warps."""
SPARSEST = 1 / 16
"""Ranks that have a bit, at least, where not all do: the others' lists, in which neighbours are searched, are short."""

DIVIDED = 5
"""The least cliques for which blocks help each other with one vertex."""

VARIANTS["clique"] = tuple({"SIZE": "3", "WORDS": "1", "TEAM": team} for team in ("Warp", "Block"))
SAMPLES["clique"] = (
    {"SIZE": "4", "WORDS": "3", "TEAM": "Warp"},
    {"SIZE": "5", "WORDS": "16", "TEAM": "Block", "DIVIDED": "1"},
    {"SIZE": "8", "WORDS": "16", "TEAM": "Block", "DIVIDED": "1"},
    {"SIZE": "3", "WORDS": "1", "TEAM": "Block", "SPARSE": "1"},
    {"SIZE": "4", "WORDS": "16", "TEAM": "Block", "SPARSE": "1"},
    {"SIZE": "6", "WORDS": "16", "TEAM": "Block", "SPARSE": "1", "DIVIDED": "1"},
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

    @property
    def macros(self) -> dict[str, object]:
        """For the compiler."""
        more = {name: 1 for name in ("SPARSE", "DIVIDED", "WIDE") if getattr(self, name.lower())}
        return {"SIZE": self.size, "WORDS": self.words, "TEAM": self.team, **more}

    @property
    def divided(self) -> bool:
        """Whether blocks share the rows of a vertex: of small cliques its lists, which are read once, take longer."""
        return self.team == "Block" and self.size >= DIVIDED


def shape_of(size: int, ranks: int, longest: int, limits: Limits) -> Shape | None:
    """How cliques of ``size`` are counted in a graph of so many ranks and a longest list, by a card with such limits.

    None where they cannot be.
    """
    words = max((longest + 31) // 32, 1)
    if size == 3:
        words = 1  # there is no matrix
    elif words > 4:
        words = (words + 3) // 4 * 4  # fewer kernels to compile
    bits = (ranks + 31) // 32
    matrix = 0 if size == 3 else longest * words
    taken = bits + matrix + (0 if size == 3 else (bits + 1) // 2)
    chosen = 0 if size == 3 else words * 16 + 1
    if size not in SIZES or longest >= 1 << 16:
        return None
    if 4 * (taken + chosen) <= min(WARP_BYTES, limits.shared // (BLOCK // 32)):
        return Shape(size, words, "Warp", 4 * (taken + chosen) * (BLOCK // 32), matrix, ranks)
    shared = 4 * (taken + chosen * (BLOCK // 32))
    if shared <= limits.shared:
        return Shape(size, words, "Block", shared, matrix, ranks)
    room = limits.shared // 4 - matrix - chosen * (BLOCK // 32)
    bits = room if size == 3 else (2 * room - 1) // 3
    if 32 * bits < SPARSEST * ranks:
        return None
    taken = bits + matrix + (0 if size == 3 else (bits + 1) // 2)
    return Shape(size, words, "Block", 4 * (taken + chosen * (BLOCK // 32)), matrix, 32 * bits, sparse=True)


def shape_for(plan: CliqueCount, limits: Limits) -> Shape | None:
    """How a plan is run by a card with such limits; None where it is not."""
    if plan.graph.neighbours.dtype != np.int32:
        return None
    shape = shape_of(plan.size, len(plan.graph.offsets) - 1, plan.graph.longest, limits)
    return None if shape is None else replace(shape, wide=plan.graph.short_offsets is None)


def launch_cliques(
    device: Device,
    graph: DeviceGraph,
    plan: CliqueCount,
    shape: Shape,
    stop: int,
    next_task: int,
    total: int,
    last: int | None = None,
) -> None:
    """Start to count each clique once.

    Parameters
    ----------
    stop, next_task, total
        Addresses: of a flag that says stop, of the first task's number, and of one that is 0 and becomes the count.
    last
        Tasks before this one; by default all ranks, each of which is one.
    """
    oriented = graph.oriented(plan.graph)
    module = device.module("clique", shape.macros)
    ranks = len(plan.graph.offsets) - 1
    blocks = min(module.resident("cliques", BLOCK, shape.shared), ranks)
    published: Any = np.uint64(0)
    if shape.divided:
        published = device.memory.empty(blocks, np.uint64)
        published.fill(0)
    module.launch(
        "cliques",
        blocks,
        *(address(oriented.offsets), address(oriented.neighbours), ranks, shape.span, ranks if last is None else last),
        shape.matrix_words,
        *(next_task, total, stop, published),
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
        device, ranks = self._device, len(plan.graph.offsets) - 1
        first, end = (0, ranks) if share is None else share
        with device.active():
            device.module("clique", shape.macros, check=watch.check)
            self._graph.oriented(plan.graph)
            cells: Any = device.memory.empty(2, np.uint64)
            cells.fill(0)
            if end < ranks:
                cells[:1] = ranks - end
            begin = device.event()
            cell = address(cells)
            launch_cliques(device, self._graph, plan, shape, self._stop.address, cell, cell + 8, ranks - first)
            cells[1:].get(out=self._found, stream=device.stream, blocking=False)
            done = device.event()
            wait_for(done, watch, self._stop, lambda: None)
            self.milliseconds = device.milliseconds(begin, done)
            return int(self._found[0])
