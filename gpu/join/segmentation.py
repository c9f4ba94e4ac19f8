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
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphdb.gpu.card import Rates
from graphdb.gpu.code.launch import Device
from graphdb.gpu.data.graph import segment_offsets
from graphdb.gpu.data.residency import Residency, lists_read, reads_candidate_space
from graphdb.gpu.join.grid import Grid, scanned_once
from graphdb.gpu.join.segmented import Segmentation, Segmented
from graphdb.gpu.segments import above_of, bounds_of, bytes_before, window_sizes, within
from graphdb.plan.physical import CHECK_COLUMNS, Op, PhysicalPlan, StepColumn, VertexStep
from graphdb.storage.graph.pcsr import Partition

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
STEP = 10.0
"""Answers that the smallest level of a join takes: some launches, and two that are waited for."""
COMBINED = 1.6
"""The tables that take as long as to go on to the next combination of segments: its copies, and where they stand."""
LISTS = 0.7
"""Of the budget, so much is for lists at most; the rest is for what runs make."""
ALONE, OTHERS = 0.85, 1 << 18
"""The same where the last two levels make no table, less bytes for all that is small."""
LEAST = 1 << 12
"""Bytes that the smallest pieces take beside that."""
TABLES, ONLY_TABLE = 0.6, 0.9
"""Of what is left, so much is for tables; and for what is found for the rows of one, where nothing else is made."""
FOUND = 32
"""Bytes for each row of a table, for what is found of its lists."""
RANGES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128)
MOST = 2048
"""Combinations, at most."""
FEW = 3
"""Slots that are divided where that is enough: each more of them has lists copied anew for ranges of those before."""
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


def segments_of(plan: PhysicalPlan, counting: bool, device: Device, residency: Residency) -> Segmentation | None:
    """How a join (or with ``counting``, a count) reads its lists by segments; None where it does not.

    It does where not all of them fit, and to read the coldest from host memory, page by page, is expected to take
    longer.  Lists of a candidate space have offsets of candidates alone, which tell of no ranges.
    """
    if (counting and plan.clique is not None) or reads_candidate_space(plan):
        return None
    key = ("segments", counting, device.number, device.memory.budget)
    if key not in plan.cache:
        plan.cache[key] = _chosen(plan, counting, device, residency)
    found: Segmentation | None = plan.cache[key]
    return found


def _chosen(plan: PhysicalPlan, counting: bool, device: Device, residency: Residency) -> Segmentation | None:
    lists, rates = lists_read(plan, counting), device.rates
    if residency.fits(lists) or not (counting or plan.row_steps == len(plan.steps)):
        return None
    found = segmentation(plan, device.memory.budget, rates, counting)
    if found is None or not residency.possible(lists):  # which asks for the driver
        return found
    residency.place_for(plan, counting)
    return found if max(found.seconds, 0.0) < residency.away_seconds(lists, plan, rates) else None


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
    ways = _Ways(plan, budget, rates, counting, reads)
    for uneven in (*UNEVEN, math.inf):
        if uneven == math.inf:
            ways.read_no_blocks()
        for way in ways.quickest(uneven):
            if (made := ways.made(way)) is not None:
                return made
    return None


class _Way(NamedTuple):
    """Ranges of each slot whose lists are read, and whether the last one's segments are copied ahead: what that is
    expected to take and to move.
    """

    seconds: float
    moved: float
    ranges: tuple[int, ...]
    ahead: bool

    @property
    def divided(self) -> tuple[int, ...]:
        """The slots that are divided, as places among those whose lists are read."""
        return tuple(at for at, count in enumerate(self.ranges) if count > 1)

    def buffers(self, at: int) -> int:
        """How many segments of a slot there is room for."""
        return 1 + (self.ahead and at == self.divided[-1])


class _Shape(NamedTuple):
    """What follows from which slots are divided, whatever their ranges.

    Attributes
    ----------
    own
        By place of a divided slot: the partitions that are read for it list by list.
    grids
        The lists that are read by blocks: the partition, and the places of the slots that they are divided by.
    blocked
        Bytes of their offsets, and of their neighbours.
    resident
        Bytes of the lists that are copied whole.
    sizes
        Bytes of each divided slot's own lists.
    share
        Of the combinations of ranges, the share that restrictions and lists leave, about.
    """

    own: dict[int, tuple[int, ...]]
    grids: list[tuple[int, int, int]]
    blocked: list[tuple[int, int]]
    resident: int
    sizes: tuple[int, ...]
    share: float


class _Ways:
    """How a join can be divided within a budget."""

    def __init__(
        self, plan: PhysicalPlan, budget: int, rates: Rates, counting: bool, reads: dict[int, list[int]]
    ) -> None:
        self._plan, self._budget, self._rates, self._reads = plan, budget, rates, reads
        self._partitions = partitions = plan.partitions
        self._divisible = {
            slot: [row for row in rows if partitions[row].layer == "direct"] for slot, rows in reads.items()
        }
        self._slots = slots = [slot for slot in reads if self._divisible[slot]]
        self._alone = counting and _counts_pairs(plan)
        first = plan.steps[0]
        scan = 0 if not isinstance(first, VertexStep) or first.scan is None else len(first.scan)
        scanned = scan * np.dtype(plan.dtype).itemsize
        alone = min(ALONE * budget, (1 + ALONE) / 2 * budget - scanned) - OTHERS
        self._room = max(LISTS * budget - LEAST, alone if self._alone else 0.0)
        self._before = [bytes_before([partitions[row] for row in self._divisible[slot]]) for slot in slots]
        self._levels = {int(row[StepColumn.SLOT]): level for level, row in enumerate(plan.program.steps)}
        self._rows = [float(each.estimate) for each in plan.steps]
        self._size = sum(map(_bytes, partitions))
        first, width, count = plan.program.steps[0], np.dtype(plan.dtype).itemsize, len(self._rows)
        self._scanned = count > 1 and _scans(plan) and first[StepColumn.CHECKS] == first[StepColumn.CHECKS_END]
        self._row_bytes = [(level + 2) * width + FOUND * (level + 2 < count) for level in range(count)]
        """Of the table after each level: what the last level finds takes no room, where it only counts."""
        self._blocked = [
            (row, slots.index(slot), slots.index(by))
            for (row, slot), by in scanned_once(plan).items()
            if slot in slots and by in slots
        ]
        """The lists that can be read by blocks: the partition, and the places of the slots that they are divided by."""
        self._block_offsets, self._window = cache(self._offset_bytes), cache(self._window_bytes)
        self._shape, self._ranges = cache(self._shape_of), cache(self._ranges_of)

    def read_no_blocks(self) -> None:
        """From now on no list is read by blocks."""
        self._blocked.clear()
        self._shape.cache_clear()

    def quickest(self, uneven: float) -> list[_Way]:
        """The ways that fit, those that are expected to take least and of these at most :data:`TRIED`, if the largest
        blocks have so many times the mean's elements.
        """
        slots = len(self._slots)
        ways = [(np.empty(0), np.empty(0), np.empty((0, slots), np.int64), np.empty(0, bool))]
        for count in range(slots + 1) if 1 in RANGES else [slots]:
            if count > FEW and any(len(each[0]) for each in ways):
                break
            for divided in itertools.combinations(range(slots), count):
                if self._shape(divided).resident <= self._room:
                    ways += [self._fitting(divided, ahead, uneven) for ahead in (False, True)]
        seconds, moved, ranges, ahead = (np.concatenate(each) for each in zip(*ways, strict=True))
        order = np.lexsort((moved, seconds))
        moderate = order[moved[order] <= MOVED * self._size]
        if len(moderate) and seconds[moderate[0]] <= PATIENCE * seconds[order[0]]:
            order = moderate
        return [
            _Way(float(seconds[at]), float(moved[at]), tuple(ranges[at].tolist()), bool(ahead[at]))
            for at in order[:TRIED].tolist()
        ]

    def made(self, way: _Way) -> Segmentation | None:
        """A way, unless its blocks need more room than there is."""
        ranges, divided, partitions = way.ranges, way.divided, self._partitions
        those, levels, shape = [self._slots[at] for at in divided], self._levels, self._shape(divided)
        bounds = [bounds_of(self._before[at], ranges[at]) for at in divided]
        own = shape.own
        places = [(row, divided.index(at), divided.index(by)) for row, at, by in shape.grids]
        grids = tuple(Grid(row, those[at], at, by, partitions[row], bounds[at], bounds[by]) for row, at, by in places)
        slots = tuple(
            Segmented(
                slot,
                levels[slot],
                own[at],
                bounds[place],
                above_of(self._plan, levels[slot], those),
                tuple(_reached(self._plan, levels[slot], place, those, bounds)),
            )
            for place, (at, slot) in enumerate(zip(divided, those, strict=True))
        )
        taken = shape.resident + sum(grid.window * way.buffers(divided[grid.by]) for grid in grids)
        taken += sum(self._window(at, ranges[at], own[at]) * way.buffers(at) for at in divided)
        return (
            Segmentation(slots, way.seconds, self._size, shape.sizes, way.ahead, grids) if taken <= self._room else None
        )

    def _fitting(
        self, divided: tuple[int, ...], ahead: bool, uneven: float
    ) -> tuple[Floats, Floats, Ints, NDArray[np.bool_]]:
        """The ways to divide these slots that fit, as columns: what :class:`_Way` says of each."""
        shape, rates, ranges = self._shape(divided), self._rates, self._ranges(divided)
        buffers = [1 + (ahead and at in divided[-1:]) for at in range(len(self._slots))]
        chosen = np.searchsorted(RANGES, ranges)
        taken, blocks = np.full(len(ranges), float(shape.resident)), np.zeros(len(ranges))
        for at in divided:
            windows = np.array([self._window(at, count, shape.own[at]) for count in RANGES])
            taken += windows[chosen[:, at]] * buffers[at]
        for (row, at, by), (_, neighbours) in zip(shape.grids, shape.blocked, strict=True):
            offsets = np.array([self._block_offsets(row, at, count) for count in RANGES])
            blocks += (offsets[chosen[:, at]] + neighbours / ranges[:, at] / ranges[:, by]) * buffers[by]
        fits = taken + (uneven * blocks if shape.grids else 0.0) <= self._room
        ranges, taken, moved = ranges[fits], taken[fits], np.zeros(int(fits.sum()))
        before = np.cumprod(ranges, axis=1) // ranges
        for at, size in zip(divided, shape.sizes, strict=True):
            moved += size * (before[:, at] * (ranges[:, at] - buffers[at]) + 1) / ranges[:, at]
        for (_, _, by), (offset_bytes, neighbours) in zip(shape.grids, shape.blocked, strict=True):
            moved += offset_bytes * ranges[:, by] + neighbours
        moved *= shape.share
        joins = ranges.prod(axis=1) * shape.share
        again, launched = self._repeated(divided, ranges, joins, taken)
        launched += COMBINED * (joins - 1)
        matched = self._plan.cost / rates.intersected
        seconds = again / rates.intersected + np.maximum(moved / rates.linked - ahead * matched, 0.0)
        seconds += (launched - len(self._rows)) * STEP * rates.answer
        return seconds, moved, ranges, np.full(len(ranges), ahead)

    def _ranges_of(self, divided: tuple[int, ...]) -> Ints:
        """The ranges of every slot where these are divided: int64 [ways, slots]."""
        counts = np.array([count for count in RANGES if count > 1], np.int64)
        ranges = np.ones((1 if MOST else 0, len(self._slots)), np.int64)
        for at in divided:
            ranges = np.repeat(ranges, len(counts), axis=0)
            ranges[:, at] = np.tile(counts, len(ranges) // max(len(counts), 1))
            ranges = ranges[ranges.prod(axis=1) <= MOST]
        return ranges

    def _repeated(self, divided: tuple[int, ...], ranges: Ints, joins: Floats, taken: Floats) -> tuple[Floats, Floats]:
        """Rows that are made more than once, and how many tables are made, of each way."""
        rows, levels, slots, row_bytes = self._rows, self._levels, self._slots, self._row_bytes
        room = TABLES * np.minimum(self._budget - taken, self._budget / 2)
        capacity = room / max(len(rows) - 2 - self._alone, 1)  # the first is small
        # The first level's table is the scan, or stands while the ranges of later slots change, where it is whole.
        firsts = ranges[:, [at for at in divided if levels[slots[at]] == 0]].prod(axis=1)
        stands = (rows[0] * row_bytes[0] / firsts < capacity) & (len(rows) > 1)
        again, tables, launched = np.zeros(len(ranges)), joins.copy(), joins.copy()
        for level in range(len(rows)):
            if level == 0 and self._scanned:
                scan = rows[0] * np.dtype(self._plan.dtype).itemsize
                left = ONLY_TABLE * (self._budget - taken - scan) if self._alone and len(rows) == 3 else capacity
                launched += joins * np.maximum(rows[0] / firsts * FOUND / np.maximum(left, 1.0) - 1.0, 0.0)
                continue
            repeats = ranges[:, [at for at in divided if levels[slots[at]] > level]].prod(axis=1)
            anew = ~stands if level == 0 else np.ones(len(ranges), bool)
            launched += np.where(anew, 0, firsts)
            again += np.where(anew, rows[level] * (repeats - 1), 0.0)
            if level + 1 < len(rows) - self._alone:
                tables = np.where(anew, np.maximum(tables, rows[level] * repeats * row_bytes[level] / capacity), tables)
                launched += np.where(anew, tables, 0.0)
        return again, launched

    def _shape_of(self, divided: tuple[int, ...]) -> _Shape:
        """What is copied where these slots are divided."""
        reads, divisible, partitions, slots = self._reads, self._divisible, self._partitions, self._slots
        whole = {row for at, slot in enumerate(slots) if at not in divided for row in reads[slot]}
        whole |= {row for slot in reads for row in reads[slot] if row not in divisible[slot]}
        grids = [(row, at, by) for row, at, by in self._blocked if at in divided and by in divided]
        by_blocks = {(row, at) for row, at, _ in grids}
        own = {at: tuple(row for row in divisible[slots[at]] if (row, at) not in by_blocks) for at in divided}
        lists = [partitions[row] for row, _, _ in grids]
        return _Shape(
            own,
            grids,
            [(_streamed_bytes(each) - each.neighbours.nbytes, each.neighbours.nbytes) for each in lists],
            sum(_copied_bytes(partitions[row]) for row in whole),
            tuple(sum(_streamed_bytes(partitions[row]) for row in own[at]) for at in divided),
            self._share(divided),
        )

    def _offset_bytes(self, row: int, at: int, count: int) -> int:
        """Bytes of the offsets of one block of a partition, about."""
        lists, bounds = self._partitions[row], bounds_of(self._before[at], count)
        return int(np.diff(within(lists, bounds)).max()) * segment_offsets(lists).itemsize

    def _window_bytes(self, at: int, count: int, own: tuple[int, ...]) -> int:
        """Bytes of the room for one segment of a slot."""
        bounds, those = bounds_of(self._before[at], count), [self._partitions[row] for row in own]
        if not those:
            return 0
        pairs = [(each, within(each, bounds)) for each in those]
        parts = [np.diff(each.offsets[own]) * each.neighbours.itemsize for each, own in pairs]
        parts += [(np.diff(own) + 1) * segment_offsets(each).itemsize for each, own in pairs]
        return int(window_sizes(parts).sum(axis=0).max())

    def _share(self, divided: tuple[int, ...]) -> float:
        """Of the combinations of ranges, the share that restrictions and lists leave, about."""
        those, levels = [self._slots[at] for at in divided], self._levels
        share = 0.5 ** sum(len(above_of(self._plan, levels[slot], those)) for slot in those)
        coarse = [bounds_of(self._before[at], COARSE) for at in divided]
        for at, slot in enumerate(those):
            for _, reached in _reached(self._plan, levels[slot], at, those, coarse):
                share *= float(reached.mean())
        return share


def _bytes(partition: Partition) -> int:
    """Bytes of a partition's lists, and of the offsets by which they are found."""
    return partition.offsets.nbytes + partition.neighbours.nbytes


def _streamed_bytes(partition: Partition) -> int:
    """The same where they are read by segments."""
    return partition.offsets.size * segment_offsets(partition).itemsize + partition.neighbours.nbytes


def _copied_bytes(partition: Partition) -> int:
    """The same where they are copied whole beside segments."""
    return _streamed_bytes(partition) if partition.layer == "direct" else _bytes(partition)


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
    begins, ends = offsets, np.append(offsets[1:], offsets[-1])  # the last vertex stands for all without neighbours
    first = neighbours[np.minimum(begins, len(neighbours) - 1)].astype(np.int64)
    least = np.where(ends > begins, first, np.iinfo(np.int64).max)
    greatest = np.where(ends > begins, neighbours[ends - 1], -1)
    own = within(partition, bounds[:-1])
    return np.minimum.reduceat(least, own), np.maximum.reduceat(greatest, own)
