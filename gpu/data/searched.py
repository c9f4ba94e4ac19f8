"""Where lists stand for a plan that is searched: by what this plan reads of them, in all the room that a search leaves.

A join makes tables, and its lists leave room for these; they are placed by how often a list is found whatever the plan
(:mod:`graphdb.gpu.data.residency`).  A search makes no tables, and of one plan is known which partition it reads how
often: neighbours of the first vertices come over the link once, one list behind the other, and those of vertices that
are found later come line by line, each time.  To place lists anew is to copy them: a plan's are, once its searches have
lost as much time to the link as that takes (ski rental, as in :mod:`graphdb.plan.strategy.ski_rental`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphdb.gpu.card import Rates
from graphdb.gpu.data.memory import DeviceMemory
from graphdb.gpu.data.pages import Floats, hottest
from graphdb.gpu.data.residency import BESIDE, FOUND, PAGED, Lists, Parts, Placement, Residency, coded_rows, lists_read
from graphdb.plan.physical import SHARE_COLUMNS, SHARED_LIST, PhysicalPlan, StepColumn, VertexStep

Ints = NDArray[np.int64]

LINE, PROBED = 64.0, 2048.0
"""Bytes of the link for a pair of offsets that is found; and at most for a list in which a warp searches."""
TASKS, HEADS = 1 << 18, 320.0
"""Tasks of a search, at most; and bytes of the link for the offsets of a warp's roots, which each task finds."""
BATCH = 32
"""Partial matches, or elements, of a warp: those that bind the same vertex read its list at the same time."""
GATHERED = 5e8
"""Bytes of lists in a second of which the host picks those that are copied."""
MOST_OFTEN = 64
"""Each time that lists are placed anew which stood where another plan's searches read them, twice as much has to be
lost before the next time, up to so many times."""


@dataclass(slots=True)
class LinkBytes:
    """What a search reads of a partition, in bytes of the link if all of it stands in host memory.

    Attributes
    ----------
    offsets
        Of the offset layer.
    scanned, found
        Of lists: those of the first vertices, one behind the other, and those of vertices that are found in no order.
    """

    offsets: float = 0.0
    scanned: float = 0.0
    found: float = 0.0

    def of_parts(self, parts: Parts) -> Floats:
        """The same of each part: float64 [parts]."""
        of_lists = slice(parts.blocks is not None, None)
        heats, sizes = parts.heats[of_lists], parts.sizes[of_lists].astype(np.float64)
        lists = sizes * (self.scanned / max(float(sizes.sum()), 1.0))
        lists += heats * (self.found / max(float(heats.sum()), 1e-9))
        return lists if parts.blocks is None else np.concatenate([[self.offsets], lists])


def link_bytes(plan: PhysicalPlan) -> list[LinkBytes]:
    """What a search of a plan reads, by partition: the shortest of a step's lists is scanned, others are searched."""
    program, rows = plan.program, [1.0, *(step.estimate for step in plan.steps)]
    levels = {int(step[StepColumn.SLOT]): level for level, step in enumerate(program.steps)}
    found = [LinkBytes() for _ in plan.partitions]
    lengths = [each.neighbours.size / max(len(each.keys), 1) for each in plan.partitions]
    for number, step in enumerate(program.steps):
        lists = [each for each in _lists_read(plan, step) if each[1] in levels and levels[each[1]] < number]
        shortest = min(lists, key=lambda each: lengths[each[0]], default=None)
        for row, slot in lists:
            partition, known, level = plan.partitions[row], found[row], levels[slot]
            size, scanned = lengths[row] * partition.neighbours.itemsize, lengths[shortest[0]] if shortest else 0.0
            times = max(rows[level + 1], rows[number] / BATCH)
            each = size if level == 0 else min(FOUND - LINE, BESIDE * size)
            moved = times * each
            if (row, slot) != shortest and level + 1 < number:  # a warp's elements are searched in one list
                moved = max(moved, rows[number] * scanned / BATCH * min(size, PROBED))
            elif (row, slot) != shortest:
                moved = max(moved, rows[number] * min(size, PROBED * scanned / BATCH))
            if level > 0:
                known.offsets += times * LINE
            elif row == program.second:  # by whose lists roots are divided among tasks
                known.offsets += HEADS * min(TASKS, max(rows[number + 1], rows[1] / BATCH))
            else:
                known.offsets += min(times * LINE, 4.0 * len(partition.offsets))
            known.scanned += moved * (level == 0)
            known.found += moved * (level > 0)
    return found


def _lists_read(plan: PhysicalPlan, step: Ints) -> list[tuple[int, int]]:
    """The lists of a step, as (partition, slot): in the place of a shared intersection, what that is made of."""
    found: list[tuple[int, int]] = []
    shares = plan.program.shares.reshape(-1, SHARE_COLUMNS).tolist()
    for row, slot, *_ in plan.program.lists[step[StepColumn.LISTS] : step[StepColumn.LISTS_END]].tolist():
        share = slot if row == SHARED_LIST else -1
        while share >= 0:
            share, partition, own = shares[share]
            found.append((partition, own))
        if row >= 0:
            found.append((row, slot))
    return list(dict.fromkeys(found))


@dataclass(slots=True)
class _Wanted:
    """How a plan's lists are to stand, and what its searches have lost because they do not.

    Attributes
    ----------
    lists, placements
        What is placed, and how.
    reads
        Bytes of the link for each of their parts.
    cost
        Seconds that it takes to place them.
    least
        Bytes of the link that a search takes then.
    fresh
        Whether they were placed for the latest search, which copies them.
    """

    lists: Sequence[Lists]
    placements: Sequence[Placement]
    reads: Sequence[Floats]
    cost: float
    least: float
    lost: float = 0.0
    times: int = 1
    fresh: bool = False
    now: tuple[Sequence[Placement | None], float] = (), 0.0
    """What :meth:`bytes` said last, of which placements."""

    def bytes(self, placed: Sequence[Placement | None]) -> float:
        """Bytes of the link that a search takes with some placements; without one, all of a list is on the device."""
        if not same(placed, self.now[0]):
            known = ((reads, each) for reads, each in zip(self.reads, placed, strict=True) if each is not None)
            self.now = placed, sum(float(reads[~each.resident].sum()) for reads, each in known)
        return self.now[1]


class SearchedLists:
    """Places the lists of plans that are searched."""

    def __init__(self, memory: DeviceMemory, residency: Residency) -> None:
        self._memory, self._residency = memory, residency

    def give_up(self, plan: PhysicalPlan, counting: bool) -> bool:
        """A search got too little memory: whether its lists were placed for it.  From now on they leave twice as much,
        as long as that is less than what lists of joins leave.
        """
        key = self._key(counting)
        wanted: _Wanted | None = plan.cache.get(key)
        if wanted is None or not same([self._residency.placed(each) for each in wanted.lists], wanted.placements):
            return False
        del plan.cache[key]
        plan.cache["left", *key] = 2 * plan.cache.get(("left", *key), 1)
        self._residency.make_room(wanted.lists)
        return True

    def _key(self, counting: bool) -> tuple[object, ...]:
        return "searched lists", counting, self._memory.number, self._memory.budget

    def link_bytes(self, plan: PhysicalPlan, counting: bool, beside: int, rates: Rates) -> float | None:
        """Bytes of the link that a search is expected to take once its lists are placed for it, with so many bytes
        beside them; None where they never are.
        """
        wanted = self._wanted(plan, counting, beside, rates)
        if wanted is None:
            return None
        # Lists of hubs are longer than others, and found more often: the plan's cost tells what is scanned of them.
        away = wanted.least / max(sum(each.everywhere for each in wanted.placements), 1.0)
        return wanted.least + away * plan.cost * np.dtype(plan.dtype).itemsize

    def seconds(self, plan: PhysicalPlan, counting: bool, beside: int, rates: Rates) -> float | None:
        """Seconds of the link that this is expected to take."""
        found = self.link_bytes(plan, counting, beside, rates)
        return None if found is None else found / rates.linked

    def place(self, plan: PhysicalPlan, counting: bool, beside: int, rates: Rates, *, at_once: bool = False) -> None:
        """Place the lists of a plan that is to be searched, if that pays by now, or ``at_once``."""
        wanted = self._wanted(plan, counting, beside, rates)
        if wanted is None:
            return
        wanted.fresh = False
        placed = [self._residency.placed(each) for each in wanted.lists]
        if same(placed, wanted.placements):
            return
        gained = wanted.bytes(placed) - wanted.least
        wanted.lost += max(gained, 0.0) / rates.linked
        if (
            gained <= 0.0
            or (wanted.lost < wanted.cost * wanted.times and not at_once)
            or any(self._memory.is_used(each.original) for each in wanted.lists)
        ):
            return
        # Others that were placed for another plan's searches are lost to that.
        wanted.lost, wanted.fresh = 0.0, True
        others = any(each is not None and each.searched for each in placed)
        wanted.times = min(2 * wanted.times, MOST_OFTEN) if others else 1
        self._residency.replace(wanted.lists, wanted.placements)

    def copies(self, plan: PhysicalPlan, counting: bool) -> bool:
        """Whether a plan's latest search copied lists that were placed for it: those to come do not."""
        wanted: _Wanted | None = plan.cache.get(self._key(counting))
        return wanted is not None and wanted.fresh

    def _wanted(self, plan: PhysicalPlan, counting: bool, beside: int, rates: Rates) -> _Wanted | None:
        key = self._key(counting)
        if key not in plan.cache:
            lists = lists_read(plan, counting)
            # What fits may have been placed for a plan that reads more.
            placed = any(self._residency.placed(each) is not None for each in lists)
            if not placed and self._residency.fits(lists):
                return None
            parts = self._residency.possible(lists) and self._residency.divides(lists)
            parts = parts and all(each.spans is None for each in lists) and not coded_rows(plan)
            times: int = plan.cache.get(("left", *key), 1)
            room = self._memory.budget - times * beside
            parts = parts and (times == 1 or room > PAGED * self._memory.budget)
            plan.cache[key] = self._chosen(plan, lists, room, rates) if parts else None
        found: _Wanted | None = plan.cache[key]
        return found

    def _chosen(self, plan: PhysicalPlan, lists: Sequence[Lists], room: int, rates: Rates) -> _Wanted:
        of_rows, parts = link_bytes(plan), [self._residency.parts(each) for each in lists]
        reads = [
            sum(
                (
                    read.of_parts(own)
                    for read, of in zip(of_rows, plan.partitions, strict=True)
                    if of.neighbours is each.elements
                ),
                np.zeros(len(own.sizes)),
            )
            for each, own in zip(lists, parts, strict=True)
        ]
        first, sizes = plan.steps[0], [each.sizes for each in parts]
        roots = first.scan.size if isinstance(first, VertexStep) and first.scan is not None else 0
        for aside in (roots * np.dtype(plan.dtype).itemsize, 0):  # roots are copied where all lists are
            chosen = hottest(reads, sizes, room - aside - sum(each.beside_bytes for each in lists))
            if all(each.all() for each in chosen):
                break
        placements = [
            self._residency.placement(each, own, heats, resident, searched=True)
            for each, own, heats, resident in zip(lists, parts, reads, chosen, strict=True)
        ]
        cost = sum(each.elements.nbytes for each in lists) / GATHERED + max(room, 0) / rates.upload
        return _Wanted(lists, placements, reads, cost, sum(each.everywhere - each.here for each in placements))


def same(some: Sequence[Placement | None], others: Sequence[Placement | None]) -> bool:
    """Whether placements are the same ones."""
    return len(some) == len(others) and all(a is b for a, b in zip(some, others, strict=True))
