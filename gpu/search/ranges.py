"""Searches of lists that do not fit the device, range by range of the vertices that they belong to (SGSI §6.2).

A list that is found in host memory comes over the link each time.  So the vertices of a slot are divided into ranges,
and for each, its lists are copied once, and all matches searched that bind the slot to one of them: the lists of others
are empty then.  Where two slots are divided, a search goes through the combinations of their ranges.  What is read of
other slots' lists stands on the device as far as there is room, and in host memory else: lists of the first vertices
are read there one behind the other.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.gpu.card import Rates
from graphdb.gpu.code.launch import Device
from graphdb.gpu.data.divided import can_be_divided
from graphdb.gpu.data.graph import DEVICE_LAYERS, DeviceGraph, segment_layer, segment_offsets
from graphdb.gpu.data.pinned import pinned
from graphdb.gpu.data.residency import TABLES, coded_rows
from graphdb.gpu.data.searched import reads_of
from graphdb.gpu.search.program import SearchTables, device_program, tables_of
from graphdb.gpu.search.reads import lists_found
from graphdb.gpu.segments import (
    Part,
    SegmentStream,
    Window,
    above_of,
    bounds_of,
    bytes_before,
    combinations_of,
    window_sizes,
)
from graphdb.plan.physical import CHECK_COLUMNS, Op, PhysicalPlan, StepColumn, VertexStep
from graphdb.storage.graph.pcsr import PARTITION, Partition

Ints = NDArray[np.int64]

MEASURED = False
"""Whether such searches have run on a device: until then they are not chosen."""
RANGES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32)
MOST = 64
"""Combinations of ranges, at most."""
PASS = 4.0
"""Answers that a combination takes: its copies are started, and a search is launched, whose last warps end alone."""
_READING = (Op.EDGE, Op.NO_EDGE, Op.EDGE_COUNT)
"""Checks that search lists of any vertex."""


@dataclass(frozen=True, slots=True)
class DividedSlot:
    """A slot whose lists are read by ranges.

    Attributes
    ----------
    slot, level
        It, and the step that binds it.
    rows
        The partitions that are read for it, as rows of the program's table.
    bounds
        int64 [ranges + 1]: the vertices that begin and end the ranges.
    above
        The divided slots before it, as places among these, whose vertices its own exceeds.
    """

    slot: int
    level: int
    rows: tuple[int, ...]
    bounds: Ints
    above: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class RangedSearch:
    """How a search is divided: the last of ``slots`` changes most often.

    Attributes
    ----------
    whole
        The partitions whose other lists stand on the device.
    link
        Bytes that are expected to be copied, or read in host memory.
    seconds
        What this, and going from one combination to the next, is expected to take.
    """

    slots: tuple[DividedSlot, ...]
    whole: frozenset[int]
    link: float
    seconds: float

    @cached_property
    def combinations(self) -> list[tuple[int, ...]]:
        """The combinations of ranges that matches may have; each slot's go up and down in turns, so that the range that
        was read last is read first.
        """
        return combinations_of(self.slots)

    def roots(self, chosen: tuple[int, ...], scan: Ints) -> tuple[int, int]:
        """Which values of the first step's scan a combination has: first and last + 1."""
        first = self.slots[0]
        if first.level:
            return 0, len(scan)
        begin, end = np.searchsorted(scan, first.bounds[chosen[0] : chosen[0] + 2]).tolist()
        return begin, end

    def describe(self, size: int) -> str:
        """A phrase for EXPLAIN, of lists of so many bytes."""
        ranges = " x ".join(str(len(slot.bounds) - 1) for slot in self.slots)
        return f"{size / 2**20:,.0f} MiB of lists by ranges ({ranges}), {self.link / 2**20:,.0f} MiB over the link"


def ranged_search(plan: PhysicalPlan, room: float, rates: Rates) -> RangedSearch | None:
    """Divide a search whose lists have so much room: the way that is expected to be the quickest; None where there is
    none.
    """
    checks = plan.program.checks.reshape(-1, CHECK_COLUMNS)[:, 0]
    if any(not isinstance(step, VertexStep) for step in plan.steps) or np.isin(checks, _READING).any():
        return None
    if coded_rows(plan) or any(each.spans is not None for each in plan.partitions):
        return None
    ways = _Ways(plan, room, rates)
    found = min(ways.all(), default=None)
    return None if found is None else ways.made(*found)


class _Ways:
    """How a search can be divided."""

    def __init__(self, plan: PhysicalPlan, room: float, rates: Rates) -> None:
        self._plan, self._room, self._rates = plan, room, rates
        program, partitions = plan.program, plan.partitions
        self._levels = {int(step[StepColumn.SLOT]): level for level, step in enumerate(program.steps)}
        rows: dict[int, list[int]] = {}
        for row, slot in lists_found(plan):
            if can_be_divided(partitions[row]) and partitions[row].neighbours.size and slot in self._levels:
                rows.setdefault(slot, []).append(row)
        self._rows = {slot: tuple(rows[slot]) for slot in sorted(rows, key=self._levels.__getitem__)}
        self._reads = list(reads_of(plan))
        self._first_read = {
            slot: min((step for row, of, step, _ in self._reads if of == slot and row in own), default=0)
            for slot, own in self._rows.items()
        }
        self._sizes = [_copied_bytes(each) for each in partitions]
        self._before = {slot: bytes_before([partitions[row] for row in own]) for slot, own in self._rows.items()}
        self._window = cache(self._window_bytes)

    def all(self) -> Iterator[tuple[float, float, tuple[int, ...], tuple[int, ...], frozenset[int]]]:
        """Seconds, bytes of the link, slots, ranges of each, and partitions that are copied whole."""
        choices = [each for count in (1, 2) for each in itertools.combinations(self._rows, count)]
        for slots in choices:
            for ranges in itertools.product(RANGES[1:], repeat=len(slots)):
                if math.prod(ranges) <= MOST and (found := self._way(slots, ranges)) is not None:
                    yield (*found[:2], slots, ranges, found[2])

    def _way(self, slots: tuple[int, ...], ranges: tuple[int, ...]) -> tuple[float, float, frozenset[int]] | None:
        room = self._room - sum(self._window(slot, count) for slot, count in zip(slots, ranges, strict=True))
        if room < 0:
            return None
        read = self._read(slots, ranges)
        order = sorted(read, key=lambda row: read[row] / max(self._sizes[row], 1), reverse=True)
        whole, link, passes = set[int](), 0.0, 1
        for row in order:
            if self._sizes[row] <= room:
                whole.add(row)
                room -= self._sizes[row]
            else:
                link += read[row]
        for slot, count in zip(slots, ranges, strict=True):
            link += passes * sum(self._sizes[row] for row in self._rows[slot])
            passes *= count
        seconds = link / self._rates.linked + passes * PASS * self._rates.answer
        return seconds, link, frozenset(whole)

    def _read(self, slots: tuple[int, ...], ranges: tuple[int, ...]) -> dict[int, float]:
        """Bytes of the link for what is not divided, by partition: what is read before a divided slot's lists are, is
        read again for each of its ranges, unless that is the first, whose vertices are divided themselves.
        """
        found: dict[int, float] = {}
        for row, slot, step, read in self._reads:
            if slot in slots and row in self._rows[slot]:
                continue
            again = [(self._first_read[of], count) for of, count in zip(slots, ranges, strict=True) if self._levels[of]]
            opened = math.prod(count for first, count in again if first >= step)
            scanned = math.prod(count for first, count in again if first > step)
            found[row] = found.get(row, 0.0) + read.offsets * opened + (read.scanned + read.found) * scanned
        return found

    def _window_bytes(self, slot: int, count: int) -> int:
        """Bytes of the room for one range of a slot."""
        bounds, those = bounds_of(self._before[slot], count), [self._plan.partitions[row] for row in self._rows[slot]]
        parts = [np.diff(each.offsets[bounds]) * each.neighbours.itemsize for each in those]
        parts += [(np.diff(bounds) + 1) * segment_offsets(each).itemsize for each in those]
        return int(window_sizes(parts).sum(axis=0).max())

    def made(
        self, seconds: float, link: float, slots: tuple[int, ...], ranges: tuple[int, ...], whole: frozenset[int]
    ) -> RangedSearch:
        """A way as a search runs it."""
        those = list(slots)
        divided = tuple(
            DividedSlot(
                slot,
                self._levels[slot],
                self._rows[slot],
                bounds_of(self._before[slot], count),
                tuple(at for at in above_of(self._plan, self._levels[slot], those) if at < those.index(slot)),
            )
            for slot, count in zip(slots, ranges, strict=True)
        )
        return RangedSearch(divided, whole, link, seconds)


def _copied_bytes(partition: Partition) -> int:
    """Bytes of a partition on the device, its offsets among them."""
    direct = partition.layer == "direct"
    width = segment_offsets(partition).itemsize if direct else partition.offsets.itemsize
    return int(partition.offsets.size * width + partition.neighbours.nbytes)


@dataclass(eq=False)
class Passes:
    """The combinations of a search on a device, one after the other."""

    device: Device
    graph: DeviceGraph
    plan: PhysicalPlan
    ranged: RangedSearch
    _tables: SearchTables = field(init=False)
    _windows: list[tuple[Window, Any, Sequence[Any]]] = field(init=False)

    def opened(self) -> SearchTables:
        """Make room for the ranges, and return the plan's tables, which say nothing of lists that are divided."""
        self._windows = self._opened()
        plan, graph, whole = self.plan, self.graph, self.ranged.whole

        def made() -> SearchTables:
            program = device_program(plan, graph, whole)
            for row, each in enumerate(plan.partitions):
                if row not in whole:
                    program.partitions[row] = _in_host(graph, each)
            return tables_of(plan, graph, program)

        self._tables = graph.memory.cached_or_built(f"{TABLES} by ranges", plan.program, made)
        return self._tables

    def _opened(self) -> list[tuple[Window, Any, Sequence[Any]]]:
        partitions, slots, memory = self.plan.partitions, self.ranged.slots, self.graph.memory
        windows: list[tuple[Window, Any, Sequence[Any]]] = []
        for at, each in enumerate(slots):  # room for two would be twice as many ranges, and less is found in each
            first, last, parts, keys = each.bounds[:-1], each.bounds[1:], list[Part](), list[Any]()
            for row in each.rows:
                offsets, neighbours = partitions[row].offsets, partitions[row].neighbours
                parts.append(Part(pinned(memory, offsets, segment_offsets(partitions[row])), first, last + 1))
                parts.append(Part(pinned(memory, neighbours), offsets[first], offsets[last]))
                keys += [(row, each.slot, cell) for cell in ("offsets", "neighbours")]
            windows.append((Window(self.device, parts, 1), itemgetter(at), keys))
        return windows

    def through(self) -> Iterator[tuple[int, tuple[int, int]]]:
        """For each combination, once what is launched next may read its lists: where its table of partitions stands,
        and which roots it has.
        """
        partitions, slots = self.plan.partitions, self.ranged.slots
        with self.device.active():
            stream, rows = SegmentStream(self.device, self._windows), self._tables.rows.copy()
        places = {each: len(partitions) + at for at, each in enumerate(lists_found(self.plan))}
        layer, first = DEVICE_LAYERS["short"], self.plan.steps[0]
        assert isinstance(first, VertexStep)
        assert first.scan is not None
        combinations = stream.through(self.ranged.combinations)
        while True:
            with self.device.active():
                chosen, bases = next(combinations, ((), {}))
                if not chosen:
                    return
                for at, each in enumerate(slots):
                    begin, end = each.bounds[chosen[at] : chosen[at] + 2].tolist()
                    for row in each.rows:
                        cells = [bases[row, each.slot, cell] for cell in ("offsets", "neighbours")]
                        rows[places[row, each.slot]] = (layer, cells[0], begin | end - begin << 32, cells[1], 0, 0)
                table = self.graph.memory.upload(rows)
            yield int(table.data.ptr), self.ranged.roots(chosen, first.scan)


def _in_host(graph: DeviceGraph, partition: Partition) -> tuple[int, ...]:
    """The row of a partition whose lists are read in host memory."""
    direct = partition.layer == "direct"
    offsets = pinned(graph.memory, partition.offsets, segment_offsets(partition) if direct else None)
    neighbours = pinned(graph.memory, partition.neighbours)
    cells = (int(offsets.ctypes.data), partition.groups, int(neighbours.ctypes.data))
    row = (DEVICE_LAYERS[segment_layer(partition)], *cells, 0, 0)
    assert len(row) == len(PARTITION)
    return row
