"""Where lists stand for a plan that is searched: by what this plan reads of them, in all the room that a search leaves.

A join makes tables, and its lists leave room for these; they are placed by how often a list is found whatever the plan
(:mod:`graphdb.gpu.data.residency`).  A search makes no tables, and of one plan is known which partition it reads how
often: neighbours of the first vertices come over the link once, one list behind the other, and those of vertices that
are found later come line by line, each time.  So placed, lists stand in few bits (:mod:`graphdb.gpu.data.bit_packed`).
To place lists anew is to copy them: a plan's are, once its searches have lost as much time to the link as that takes
(ski rental, as in :mod:`graphdb.plan.strategy.ski_rental`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from graphdb.gpu.card import Rates
from graphdb.gpu.data.bit_packed import Packing, packing_of
from graphdb.gpu.data.memory import DeviceMemory
from graphdb.gpu.data.pages import Floats, hottest
from graphdb.gpu.data.residency import BESIDE, FOUND, PAGED, Lists, Parts, Placement, Residency, coded_rows, lists_read
from graphdb.plan.physical import SHARE_COLUMNS, SHARED_LIST, PhysicalPlan, StepColumn, VertexStep
from graphdb.storage.graph.pcsr import Partition

Ints = NDArray[np.int64]

LINE, PROBED = 64.0, 2048.0
"""Bytes of the link for a pair of offsets that is found; and at most for a list in which a warp searches."""
TASKS, HEADS = 1 << 18, 320.0
"""Tasks of a search, at most; and bytes of the link for the offsets of a warp's roots, which each task finds."""
BATCH = 32
"""Partial matches, or elements, of a warp: those that bind the same vertex read its list at the same time."""
GATHERED = 5e8
"""Bytes of lists in a second of which the host picks those that are copied."""
LOOKED_AT = 1 << 22
"""Neighbours of a partition that tell how often vertices are found among them, at most."""
MOST_OFTEN = 64
"""Each time that lists are placed anew which stood where another plan's searches read them, twice as much has to be
lost before the next time, up to so many times."""


@dataclass(frozen=True, slots=True)
class Spread:
    """How partial matches are spread over the vertices that a slot may be bound to.

    Attributes
    ----------
    partition
        As often as a vertex is found among the neighbours of this partition, …
    extended
        … or as long as its own list there is, along which partial matches of the first step were extended.
    """

    partition: Partition
    extended: bool = False

    @property
    def weights(self) -> Floats:
        """How many partial matches each vertex has of all that there are, about: float64, by vertex."""
        known = _WEIGHTS.setdefault(self.partition, {})
        if self.extended not in known:
            known[self.extended] = self._weights()
        return known[self.extended]

    def _weights(self) -> Floats:
        if self.extended:
            return np.diff(self.partition.offsets).astype(np.float64)
        neighbours = self.partition.neighbours
        return np.bincount(neighbours[:: -(-neighbours.size // LOOKED_AT) or 1]).astype(np.float64)

    def mean_bytes(self, partition: Partition, width: float) -> float:
        """Bytes of a vertex' list in a partition, whose neighbours have so many bytes, in the mean over partial
        matches; of long lists, those that searches in them read.
        """
        lengths, weights = np.diff(partition.offsets), self.weights
        most = min(len(lengths), len(weights))
        sizes = np.minimum(lengths[:most] * width, PROBED)
        return float(sizes @ weights[:most]) / max(float(weights.sum()), 1.0)


_WEIGHTS: WeakKeyDictionary[Partition, dict[bool, Floats]] = WeakKeyDictionary()
"""What is known of partitions, by whether matches were extended along them."""


@dataclass(slots=True)
class LinkBytes:
    """What a search reads of a partition, in bytes of the link if all of it stands in host memory.

    Attributes
    ----------
    offsets
        Of the offset layer.
    scanned
        Of lists of the first vertices, one behind the other.
    found
        Of lists that are read in no order, by how the partial matches that read them are spread.
    """

    offsets: float = 0.0
    scanned: float = 0.0
    found: dict[Spread | None, float] = field(default_factory=dict)

    def of_parts(self, parts: Parts, partition: Partition) -> Floats:
        """The same of each part of the partition's lists: float64 [parts]."""
        of_lists = slice(parts.blocks is not None, None)
        sizes = parts.sizes[of_lists].astype(np.float64)
        lists = sizes * (self.scanned / max(float(sizes.sum()), 1.0))
        for spread, moved in self.found.items():
            heats = parts.heats[of_lists]
            if spread is not None and parts.blocks is not None:
                own = parts.blocks.heats_of(partition, spread.weights)
                heats = own if own.any() else heats
            lists += heats * (moved / max(float(heats.sum()), 1e-9))
        return lists if parts.blocks is None else np.concatenate([[self.offsets], lists])


def stored_bytes(elements: NDArray[Any], packing: Packing | None) -> float:
    """Bytes of a neighbour as it is stored."""
    return elements.itemsize if packing is None else packing.bits / 8


def link_bytes(plan: PhysicalPlan, packings: Sequence[Packing | None]) -> list[LinkBytes]:
    """What a search of a plan reads, by partition, of lists that are packed so: the shortest of a step's lists is
    scanned, others are searched.
    """
    program, rows = plan.program, [1.0, *(step.estimate for step in plan.steps)]
    levels = {int(step[StepColumn.SLOT]): level for level, step in enumerate(program.steps)}
    found, spreads = [LinkBytes() for _ in plan.partitions], dict[int, Spread]()
    lengths = [each.neighbours.size / max(len(each.keys), 1) for each in plan.partitions]
    widths = [stored_bytes(each.neighbours, how) for each, how in zip(plan.partitions, packings, strict=True)]
    for number, step in enumerate(program.steps):
        lists = [each for each in _lists_read(plan, step) if each[1] in levels and levels[each[1]] < number]
        shortest = min(lists, key=lambda each: lengths[each[0]], default=None)
        scanned = lengths[shortest[0]] if shortest else 0.0
        for row, slot in lists:
            partition, known, level, spread = plan.partitions[row], found[row], levels[slot], spreads.get(slot)
            size = lengths[row] * widths[row]
            times = max(rows[level + 1], rows[number] / BATCH)
            moved = times * (size if level == 0 else min(FOUND - LINE, BESIDE * size))
            if (row, slot) != shortest:
                searched = min(size, PROBED)
                if spread is not None and partition.layer == "direct":
                    searched = spread.mean_bytes(partition, widths[row])
                if level + 1 < number:  # a warp's elements are searched in one list
                    moved = max(moved, rows[number] * scanned / BATCH * searched)
                else:
                    moved = max(moved, rows[number] * min(searched, PROBED * scanned / BATCH))
            if level > 0:
                known.offsets += times * LINE
            elif row == program.second:  # by whose lists roots are divided among tasks
                known.offsets += HEADS * min(TASKS, max(rows[number + 1], rows[1] / BATCH))
            else:
                known.offsets += min(times * LINE, 4.0 * len(partition.offsets))
            if level == 0 and spread is None:
                known.scanned += moved
            else:
                known.found[spread] = known.found.get(spread, 0.0) + moved
        if shortest is not None:
            row, slot = shortest
            spreads[int(step[StepColumn.SLOT])] = Spread(plan.partitions[row])
            if levels[slot] == 0 and slot not in spreads and plan.partitions[row].layer == "direct":
                spreads[slot] = Spread(plan.partitions[row], extended=True)
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
        Bytes of the link for each of their parts, packed.
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
            moved = 0.0
            for lists, reads, wanted, each in zip(self.lists, self.reads, self.placements, placed, strict=True):
                if each is not None:
                    wider = stored_bytes(lists.elements, each.packing) / stored_bytes(lists.elements, wanted.packing)
                    moved += wider * float(reads[~each.resident].sum())
            self.now = placed, moved
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

    def in_few_bits(self, plan: PhysicalPlan, counting: bool, beside: int, rates: Rates) -> bool:
        """Whether a search may find some of a plan's lists in few bits, with so many bytes beside them: from the first
        time on, since its code is written for that, which reads lists as they are, too.
        """
        key = ("lists in few bits", counting, self._memory.number, self._memory.budget)
        if not plan.cache.get(key, False):
            wanted = self._wanted(plan, counting, beside, rates)
            plan.cache[key] = wanted is not None and any(each.packing is not None for each in wanted.placements)
        found: bool = plan.cache[key]
        return found

    def link_bytes(self, plan: PhysicalPlan, counting: bool, beside: int, rates: Rates) -> float | None:
        """Bytes of the link that a search is expected to take once its lists are placed for it, with so many bytes
        beside them; None where they never are.
        """
        wanted = self._wanted(plan, counting, beside, rates)
        if wanted is None:
            return None
        # Lists of hubs are longer than others, and found more often: the plan's cost tells what is scanned of them.
        away = wanted.least / max(sum(each.everywhere for each in wanted.placements), 1.0)
        stored = sum(int(each.sizes.sum()) for each in wanted.placements)
        width = stored / max(sum(each.nbytes for each in wanted.lists), 1) * np.dtype(plan.dtype).itemsize
        return wanted.least + away * plan.cost * width

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
        packings = [None if each.partition is None else packing_of(each.partition) for each in lists]
        packed = {id(each.elements): how for each, how in zip(lists, packings, strict=True)}
        of_rows = link_bytes(plan, [packed.get(id(each.neighbours)) for each in plan.partitions])
        parts = [self._residency.parts(each, how) for each, how in zip(lists, packings, strict=True)]
        reads = [
            sum(
                (
                    read.of_parts(own, of)
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
            self._residency.placement(each, own, heats, resident, searched=True, packing=how)
            for each, own, heats, resident, how in zip(lists, parts, reads, chosen, packings, strict=True)
        ]
        cost = sum(each.elements.nbytes for each in lists) / GATHERED + max(room, 0) / rates.upload
        return _Wanted(lists, placements, reads, cost, sum(each.everywhere - each.here for each in placements))


def same(some: Sequence[Placement | None], others: Sequence[Placement | None]) -> bool:
    """Whether placements are the same ones."""
    return len(some) == len(others) and all(a is b for a, b in zip(some, others, strict=True))
