"""Which lists a join reads by segments, where they do not fit the device (SGSI §6.2 and 6.3).

Of the slots whose neighbours are read, some are *segmented*: their vertices are divided into ranges whose lists have
about as many bytes each.  Each combination of one range of each is a join by itself, of the matches that bind every
segmented slot to a vertex of its range; together they are all matches, each once.  What such a join reads of a slot's
lists stands in one segment, so all rows that need it use it while it is there.  Ranges that no match can combine are
left out: where a restriction says that one vertex is above another, half of the pairs; and pairs of which no list of
one reaches the other, as where edges lead from older vertices to newer ones.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.gpu.card import Rates
from graphdb.gpu.code.launch import Device
from graphdb.gpu.data.graph import segment_offsets
from graphdb.gpu.data.residency import Residency, lists_of_plan
from graphdb.gpu.join.grid import Grid, scanned_once
from graphdb.gpu.segments import Part, SegmentStream, Window, pinned, window_sizes
from graphdb.plan.physical import CHECK_COLUMNS, Op, PhysicalPlan, StepColumn, VertexStep
from graphdb.storage.graph.pcsr import Partition

Ints = NDArray[np.int64]

STEP = 10.0
"""Answers that the smallest level of a join takes: some launches, and two that are waited for."""
LISTS = 0.7
"""Of the budget, so much is for lists at most; the rest is for what runs make."""
ALONE, OTHERS = 0.85, 1 << 18
"""The same where the last two levels make no table, less bytes for all that is small."""
LEAST = 1 << 12
"""Bytes that the smallest pieces take beside that."""
TABLES = 0.6
"""Of what is left, so much is for tables."""
FOUND = 32
"""Bytes for each row of a table, for what is found of its lists."""
RANGES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128)
MOST = 2048
"""Combinations, at most."""
COARSE = 16
"""Ranges by which is judged how many combinations there are."""
UNEVEN = (1.1, 1.6, 2.5)
"""The largest block of a grid has so many times the elements of the mean, about.  Where those of the best ways have
more, the next is taken to be true; and at last no list is read by blocks."""
MOVED, PATIENCE = 3.0, 1.25
"""What is copied stays below so many times the lists' bytes, where that is expected to take at most so many times as
long: another run may need the link."""
TRIED = 8
"""Ways whose blocks are counted, at most."""
_READING = (Op.EDGE, Op.NO_EDGE, Op.EDGE_COUNT)
"""Checks that search lists of any vertex."""


@dataclass(frozen=True, slots=True)
class Segmented:
    """A slot whose vertices are divided.

    Attributes
    ----------
    level
        Which step binds it.
    rows
        The partitions that are read for it, as rows of the program's table.
    bounds
        int64 [ranges + 1]: the vertices that begin and end the ranges.
    above
        The segmented slots, as places among these, whose vertices its own exceeds.
    reached
        By segmented slots before it, as places among these, whose lists it is bound from: bool [their ranges, its own],
        whether a vertex of the one may have a neighbour in the other.
    """

    slot: int
    level: int
    rows: tuple[int, ...]
    bounds: Ints
    above: tuple[int, ...]
    reached: tuple[tuple[int, NDArray[np.bool_]], ...] = ()

    @property
    def ranges(self) -> int:
        """How many ranges there are."""
        return len(self.bounds) - 1

    def range(self, number: int) -> tuple[int, int]:
        """The least vertex of a range, and the one behind the greatest."""
        return int(self.bounds[number]), int(self.bounds[number + 1])


@dataclass(frozen=True, eq=False)
class Segmentation:
    """How a join is divided: ``slots`` in the order in which they are bound, of which the last changes most often.

    Attributes
    ----------
    seconds
        What a run is expected to take longer than one whose lists are on the device.
    size
        Bytes of all the lists.
    sizes
        Bytes of those that are read for each of the slots, but those of ``grids``.
    ahead
        The last slot's segments are copied while those before are read: there is room for two.
    grids
        The lists that are read by blocks.
    """

    slots: tuple[Segmented, ...]
    seconds: float
    size: int
    sizes: tuple[int, ...]
    ahead: bool
    grids: tuple[Grid, ...] = ()

    @property
    def streamed(self) -> set[tuple[int, int]]:
        """The lists that are not copied whole, by (partition, slot)."""
        return {(row, each.slot) for each in self.slots for row in each.rows} | {
            (grid.row, grid.slot) for grid in self.grids
        }

    @cached_property
    def combinations(self) -> list[tuple[int, ...]]:
        """The combinations of ranges that matches may have.

        Each slot's ranges go up and down in turns: where one that was bound before goes on to its next range, the
        segment that was read last is read first.
        """
        return list(self._combined((), [False] * len(self.slots)))

    def _combined(self, chosen: tuple[int, ...], down: list[bool]) -> Iterator[tuple[int, ...]]:
        at = len(chosen)
        if at == len(self.slots):
            yield chosen
            return
        slot = self.slots[at]
        least = max((int(self.slots[other].bounds[chosen[other]]) + 1 for other in slot.above), default=0)
        ranges = [
            number
            for number in range(slot.ranges)
            if int(slot.bounds[number + 1]) > least
            and all(reached[chosen[other], number] for other, reached in slot.reached)
        ]
        for number in reversed(ranges) if down[at] else ranges:
            yield from self._combined((*chosen, number), down)
        down[at] = not down[at]

    @cached_property
    def moved(self) -> int:
        """Bytes that a run copies to the device, about."""
        chosen = np.array(self.combinations, np.int64).reshape(len(self.combinations), len(self.slots))
        total = 0.0
        for at, (size, slot) in enumerate(zip(self.sizes, self.slots, strict=True)):
            read = chosen[np.insert(chosen[1:, at] != chosen[:-1, at], 0, True), at]
            again = (read[2:] == read[:-2]).sum() if self.buffers(at) > 1 else 0
            total += (len(read) - again) * size / slot.ranges
        for grid in self.grids:
            blocks = chosen[:, grid.at] * grid.shape[1] + chosen[:, grid.by]
            read = blocks[np.insert(blocks[1:] != blocks[:-1], 0, True)]
            total += float(sum(sizes[read].sum() for sizes in grid.parts))
        return int(total)

    def buffers(self, at: int) -> int:
        """How many segments of a slot there is room for."""
        return 2 if self.ahead and at == len(self.slots) - 1 else 1

    def describe(self) -> str:
        """A phrase for EXPLAIN."""
        ranges = " x ".join(str(slot.ranges) for slot in self.slots)
        return (
            f"{self.size / 2**20:,.0f} MiB of lists by segments ({ranges or 'one'}),"
            f" {self.moved / 2**20:,.0f} MiB to copy"
        )


def segments_of(plan: PhysicalPlan, counting: bool, device: Device, residency: Residency) -> Segmentation | None:
    """How a join (or with ``counting``, a count) reads its lists by segments; None where it does not.

    It does where not all of them fit, and to read the coldest from host memory, page by page, is expected to take
    longer.
    """
    if counting and plan.clique is not None:
        return None
    key = ("segments", counting, device.number, device.memory.budget)
    if key not in plan.cache:
        plan.cache[key] = _chosen(plan, counting, device, residency)
    found: Segmentation | None = plan.cache[key]
    return found


def _chosen(plan: PhysicalPlan, counting: bool, device: Device, residency: Residency) -> Segmentation | None:
    lists, rates = lists_of_plan(plan, counting), device.rates
    if residency.fits(lists) or not (counting or plan.row_steps == len(plan.steps)):
        return None
    found = segmentation(plan, device.memory.budget, rates, counting)
    if found is None or residency.driver is None:
        return found
    residency.place(lists)
    return found if found.seconds < residency.away_seconds(lists, plan, rates) else None


def segmentation(plan: PhysicalPlan, budget: int, rates: Rates, counting: bool = False) -> Segmentation | None:
    """Divide a join whose lists do not fit: the way that is expected to be the quickest; None where there is none.

    Parameters
    ----------
    budget
        Bytes of the device.
    """
    reads = _reads(plan)
    if reads is None:
        return None
    partitions = plan.partitions
    width = np.dtype(plan.dtype).itemsize
    divisible = {slot: [row for row in rows if partitions[row].layer == "direct"] for slot, rows in reads.items()}
    slots = [slot for slot in reads if divisible[slot]]
    alone = counting and _counts_pairs(plan)
    room = max(LISTS * budget - LEAST, ALONE * budget - OTHERS if alone else 0.0)
    before = [_bytes_before([partitions[row] for row in divisible[slot]]) for slot in slots]
    levels = {int(row[StepColumn.SLOT]): level for level, row in enumerate(plan.program.steps)}
    rows, size = np.array([each.estimate for each in plan.steps]), sum(map(_bytes, partitions))

    def resident(ranges: tuple[int, ...]) -> int:
        whole = {row for slot, count in zip(slots, ranges, strict=True) if count == 1 for row in reads[slot]}
        whole |= {row for slot in reads for row in reads[slot] if row not in divisible[slot]}
        return sum(_bytes(partitions[row]) for row in whole)

    first = plan.program.steps[0]
    scanned = len(rows) > 1 and _scans(plan) and first[StepColumn.CHECKS] == first[StepColumn.CHECKS_END]
    row_bytes = [(level + 2) * width + FOUND * (level + 2 < len(rows)) for level in range(len(rows))]
    """Of the table after each level: what the last level finds takes no room, where it only counts."""

    blocked = [
        (row, slots.index(slot), slots.index(by))
        for (row, slot), by in scanned_once(plan).items()
        if slot in slots and by in slots
    ]

    def own_rows(ranges: tuple[int, ...], at: int) -> tuple[int, ...]:
        """The partitions that are read for a slot and not by blocks."""
        gone = [row for row, own, by in blocked if own == at and ranges[own] > 1 and ranges[by] > 1]
        return tuple(row for row in divisible[slots[at]] if row not in gone)

    def grids_of(ranges: tuple[int, ...]) -> list[tuple[int, int, int]]:
        return [(row, at, by) for row, at, by in blocked if ranges[at] > 1 and ranges[by] > 1]

    @cache
    def block(row: int, at: int, count: int, others: int) -> float:
        """Bytes of the room for one block, about."""
        offsets = int(np.diff(_bounds(before[at], count)).max()) * segment_offsets(partitions[row]).itemsize
        return offsets + partitions[row].neighbours.nbytes / count / others

    @cache
    def window(at: int, count: int, own: tuple[int, ...]) -> int:
        """Bytes of the room for one segment of a slot."""
        bounds = _bounds(before[at], count)
        those = [partitions[row] for row in own]
        if not those:
            return 0
        parts = [np.diff(each.offsets[bounds]) * each.neighbours.itemsize for each in those]
        parts += [(np.diff(bounds) + 1) * segment_offsets(each).itemsize for each in those]
        return int(window_sizes(parts).sum(axis=0).max())

    @cache
    def met(divided: tuple[int, ...]) -> float:
        """Of the combinations of ranges, the share that restrictions and lists leave, about."""
        those = [slots[at] for at in divided]
        share = 0.5 ** sum(len(_above(plan, levels[slot], those)) for slot in those)
        coarse = [_bounds(before[at], COARSE) for at in divided]
        for at, slot in enumerate(those):
            for _, reached in _reached(plan, levels[slot], at, those, coarse):
                share *= float(reached.mean())
        return share

    def ways_of(uneven: float) -> list[tuple[float, float, tuple[int, ...], bool]]:
        """The ways that fit, the quickest first: seconds, bytes moved, ranges, whether segments are copied ahead."""
        ways = []
        for ranges, ahead in itertools.product(itertools.product(RANGES, repeat=len(slots)), (False, True)):
            if math.prod(ranges) > MOST:
                continue
            divided = tuple(at for at, count in enumerate(ranges) if count > 1)
            own, grids = {at: own_rows(ranges, at) for at in divided}, grids_of(ranges)

            def buffers(at: int, ahead: bool = ahead, divided: tuple[int, ...] = divided) -> int:
                return 1 + (ahead and at == divided[-1])

            taken = resident(ranges) + sum(window(at, ranges[at], own[at]) * buffers(at) for at in divided)
            if (
                taken + sum(uneven * block(row, at, ranges[at], ranges[by]) * buffers(by) for row, at, by in grids)
                > room
            ):
                continue
            share = met(divided)
            loads = [math.prod(ranges[:at]) * (ranges[at] - buffers(at)) + 1 for at in divided]
            sizes = [sum(_streamed_bytes(partitions[row]) for row in own[at]) for at in divided]
            moved = sum(size * load / ranges[at] for size, load, at in zip(sizes, loads, divided, strict=True)) * share
            for row, _, by in grids:
                lists = partitions[row]
                moved += (_streamed_bytes(lists) - lists.neighbours.nbytes) * ranges[by] * share
                moved += lists.neighbours.nbytes * share
            joins = math.prod(ranges) * share
            capacity = TABLES * min(budget - taken, budget / 2) / max(len(rows) - 2 - alone, 1)  # the first is small
            # The first level's table is the scan, or stands while the ranges of later slots change, where it is whole.
            firsts = math.prod(ranges[at] for at in divided if levels[slots[at]] == 0)
            stands = len(rows) > 1 and float(rows[0]) * row_bytes[0] / firsts < capacity
            again, tables, launched = 0.0, joins, joins
            for level in range(len(rows)):
                if level == 0 and (scanned or stands):
                    launched += 0.0 if scanned else firsts
                    continue
                repeats = math.prod(ranges[at] for at in divided if levels[slots[at]] > level)
                again += float(rows[level]) * (repeats - 1)
                if level + 1 < len(rows) - alone:
                    tables = max(tables, float(rows[level]) * repeats * row_bytes[level] / capacity)
                    launched += tables
            matched = plan.cost / rates.intersected
            seconds = again / rates.intersected + max(moved / rates.linked - ahead * matched, 0.0)
            seconds += (launched - len(rows)) * STEP * rates.answer
            ways.append((seconds, moved, ranges, ahead))
        ways.sort()
        moderate = [way for way in ways if way[1] <= MOVED * size]
        return moderate if moderate and moderate[0][0] <= PATIENCE * ways[0][0] else ways

    def made(ranges: tuple[int, ...], ahead: bool, seconds: float) -> Segmentation | None:
        """A way, unless its blocks need more room than there is."""
        divided = tuple(at for at, count in enumerate(ranges) if count > 1)
        those, bounds = [slots[at] for at in divided], [_bounds(before[at], ranges[at]) for at in divided]
        own = {at: own_rows(ranges, at) for at in divided}
        places = [(row, divided.index(at), divided.index(by)) for row, at, by in grids_of(ranges)]
        blocks = tuple(Grid(row, those[at], at, by, partitions[row], bounds[at], bounds[by]) for row, at, by in places)
        found = tuple(
            Segmented(
                slots[at],
                levels[slots[at]],
                own[at],
                bounds[place],
                _above(plan, levels[slots[at]], those),
                tuple(_reached(plan, levels[slots[at]], place, those, bounds)),
            )
            for place, at in enumerate(divided)
        )
        bytes_of = tuple(sum(_streamed_bytes(partitions[row]) for row in own[at]) for at in divided)
        way = Segmentation(found, seconds, size, bytes_of, ahead, blocks)
        taken = resident(ranges) + sum(grid.window * way.buffers(grid.by) for grid in blocks)
        taken += sum(window(at, ranges[at], own[at]) * way.buffers(place) for place, at in enumerate(divided))
        return way if taken <= room else None

    for uneven in (*UNEVEN, math.inf):
        if uneven == math.inf:
            blocked.clear()
        for seconds, _, ranges, ahead in ways_of(uneven)[:TRIED]:
            if (found := made(ranges, ahead, seconds)) is not None:
                return found
    return None


def _bytes(partition: Partition) -> int:
    """Bytes of a partition's lists, and of the offsets by which they are found."""
    return partition.offsets.nbytes + partition.neighbours.nbytes


def _streamed_bytes(partition: Partition) -> int:
    """The same where they are read by segments."""
    return partition.offsets.size * segment_offsets(partition).itemsize + partition.neighbours.nbytes


def segment_stream(device: Device, plan: PhysicalPlan, segments: Segmentation) -> SegmentStream:
    """Make room for the segments of a run: by (partition, slot), and the cell of the partition's row that they are."""
    partitions = plan.partitions
    windows: list[tuple[Window, Callable[[tuple[int, ...]], int], list[Any]]] = []
    with device.active():
        for at, each in enumerate(segments.slots):
            first, last = each.bounds[:-1], each.bounds[1:]
            parts, keys = [], list[Any]()
            for row in each.rows:
                offsets, neighbours = partitions[row].offsets, partitions[row].neighbours
                parts.append(Part(pinned(device, offsets, segment_offsets(partitions[row])), first, last + 1))
                parts.append(Part(pinned(device, neighbours), offsets[first], offsets[last]))
                keys += [((row, each.slot), cell) for cell in ("offsets", "neighbours")]
            if parts:
                windows.append((Window(device, parts, segments.buffers(at)), itemgetter(at), keys))
        for grid in segments.grids:
            keys = [((grid.row, grid.slot), cell) for cell in ("offsets", "neighbours")]
            windows.append((Window(device, grid.windowed(device), segments.buffers(grid.by)), grid.block, keys))
        return SegmentStream(device, windows)


def _scans(plan: PhysicalPlan) -> bool:
    """Whether the first level's bindings are values that the plan has."""
    first = plan.steps[0]
    return isinstance(first, VertexStep) and first.scan is not None


def _counts_pairs(plan: PhysicalPlan) -> bool:
    """Whether the last two levels of a count make no table, as far as the plan shows: the last intersects two lists."""
    program, row = plan.program, plan.program.steps[-1]
    checks = program.checks[row[StepColumn.CHECKS] : row[StepColumn.CHECKS_END], 0]
    two = int(row[StepColumn.LISTS_END] - row[StepColumn.LISTS]) == 2
    return len(plan.steps) > 2 and two and bool(np.isin(checks, (Op.UNEQUAL, Op.CANDIDATE_BIT)).all())


def _reads(plan: PhysicalPlan) -> dict[int, list[int]] | None:
    """By slot, in the order of binding: the partitions whose lists are read for it; None where other lists are, too."""
    program = plan.program
    if any(not isinstance(step, VertexStep) for step in plan.steps):
        return None
    if np.isin(program.checks.reshape(-1, CHECK_COLUMNS)[:, 0], _READING).any():
        return None
    found: dict[int, list[int]] = {int(row[StepColumn.SLOT]): [] for row in program.steps}
    lists = [(row, slot) for row, slot, *_ in program.lists.tolist() if row >= 0]
    for row, slot in dict.fromkeys([*lists, *((row, slot) for _, row, slot in program.shares.tolist())]):
        found[slot].append(row)
    return {slot: rows for slot, rows in found.items() if rows}


def _bytes_before(partitions: list[Partition]) -> Ints:
    """The bytes of some partitions' lists and offsets before each vertex, together: int64 [vertices + 1]."""
    places = np.arange(len(partitions[0].offsets), dtype=np.int64)
    return sum(
        (each.offsets * each.neighbours.itemsize + places * segment_offsets(each).itemsize for each in partitions),
        np.zeros(len(places), np.int64),
    )


def _bounds(before: Ints, ranges: int) -> Ints:
    """Vertices between which lists and offsets have about as many bytes: int64 [ranges + 1].

    By entries alone the range of short lists would have most of the vertices, and offsets as many.
    """
    inner = np.searchsorted(before, before[-1] * np.arange(1, ranges) / ranges)
    return np.unique(np.concatenate([[0], inner, [len(before) - 1]])).astype(np.int64)


def _above(plan: PhysicalPlan, level: int, slots: list[int]) -> tuple[int, ...]:
    """Which of some slots a level's vertex exceeds, as places among them."""
    row = plan.program.steps[level]
    lower = plan.program.checks[row[StepColumn.ABOVES] : row[StepColumn.CHECKS], 2].tolist()
    return tuple(at for at, slot in enumerate(slots) if slot in lower)


def _reached(
    plan: PhysicalPlan, level: int, at: int, slots: list[int], bounds: list[Ints]
) -> Iterator[tuple[int, NDArray[np.bool_]]]:
    """Of slots before the one at a place, whose lists a level scans: their place, and which ranges reach which.

    Parameters
    ----------
    slots, bounds
        Some slots in the order of binding, and the vertices between their ranges.
    """
    row = plan.program.steps[level]
    for partition, slot, *_ in plan.program.lists[row[StepColumn.LISTS] : row[StepColumn.LISTS_END]].tolist():
        if partition >= 0 and slot in slots[:at] and plan.partitions[partition].layer == "direct":
            other = slots.index(slot)
            least, greatest = _extremes(plan.partitions[partition], bounds[other])
            begins, ends = bounds[at][:-1], bounds[at][1:]
            yield other, (least[:, None] < ends) & (greatest[:, None] >= begins)


def _extremes(partition: Partition, bounds: Ints) -> tuple[Ints, Ints]:
    """The least and the greatest neighbour of each range of vertices: int64 [ranges]; of none, they exclude all."""
    offsets, neighbours = partition.offsets, partition.neighbours
    if not len(neighbours):
        return np.full((2, len(bounds) - 1), [[np.iinfo(np.int64).max], [-1]])  # type: ignore[return-value]
    some = np.diff(offsets) > 0
    first = neighbours[np.minimum(offsets[:-1], len(neighbours) - 1)].astype(np.int64)
    least = np.where(some, first, np.iinfo(np.int64).max)
    greatest = np.where(some, neighbours[offsets[1:] - 1], -1)
    return np.minimum.reduceat(least, bounds[:-1]), np.maximum.reduceat(greatest, bounds[:-1])
