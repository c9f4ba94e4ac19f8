"""Counts whose lists do not fit the device: sums that go through lists, in passes (:mod:`.ranges`).

All terms that are linear are added up on the host, once (:mod:`graphdb.gpu.counting.linear`).  A run takes as much
memory as there is, in a few pieces, and leaves none of it taken.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common.errors import MemoryLimitError
from graphdb.gpu.code.launch import VARIANTS, Device, Module, StopFlag
from graphdb.gpu.counting.linear import by_rank, total
from graphdb.gpu.counting.lists import ranks_of
from graphdb.gpu.counting.passes.blocks import HIGH, LOW, OFFSETS, blocks_of, planes_of_roots
from graphdb.gpu.counting.passes.pipeline import SIDES, through
from graphdb.gpu.counting.passes.ranges import Lengths, Passes, is_wide, least_room, passes_of
from graphdb.gpu.counting.passes.streaming import Sent, Streamable, known_passes, lengths_of, room_of, span_of
from graphdb.gpu.counting.ranks import Ranks
from graphdb.gpu.counting.registers import range_bytes, threads_of_ranges
from graphdb.gpu.counting.run import Share
from graphdb.gpu.counting.weights import EXACT, candidates_of
from graphdb.gpu.data.graph import DeviceGraph, address
from graphdb.gpu.watch import Watch, wait_for
from graphdb.plan.counting.plan import CountingPlan, Term, added_up, parts_of
from graphdb.plan.counting.programs import Part, Weight
from graphdb.plan.shares import Division

Ints = NDArray[np.int64]
_log = logging.getLogger("graphdb")

VARIANTS["count_ranges"] = tuple({"THREADS": "512", "HALVES": halves} for halves in "01")

PARTS = (1.0, 0.8, 0.6, 0.4, 0.2)
"""Of nine tenths of the budget, so much is tried, where others have taken the rest."""


@dataclass(eq=False)
class StreamedCount:
    """One counting plan on one device, prepared, whose lists do not fit that.

    Parameters
    ----------
    device, graph
        Where to count, and what of.
    plan
        What.
    found
        How: :func:`streamable`.

    Raises
    ------
    Unsupported
        Where lists cannot be ranked.
    """

    device: Device
    graph: DeviceGraph
    plan: CountingPlan
    found: Streamable
    check: Callable[[], None] | None = None
    """Called while the kernel is compiled; what it raises ends the preparation."""
    milliseconds: float = 0.0
    """After a run: the device's time, from the first kernel to the last."""
    passes: Passes | None = None
    """How the last run went through the lists."""
    stop: StopFlag = field(init=False)
    _terms: tuple[Term, ...] = field(init=False)
    _ranks: Ranks = field(init=False)
    _lengths: Lengths = field(init=False)
    _known: dict[Part, int] = field(init=False)
    """What the linear parts add up to, …"""
    _rooted: dict[Part, Ints] = field(init=False)
    """… and those by vertex: for each rank."""
    _bits: dict[Weight, Any] = field(init=False, default_factory=dict)
    _module: Module = field(init=False)
    _running: threading.Lock = field(init=False, default_factory=threading.Lock)

    def __post_init__(self) -> None:
        device, plan = self.device, self.plan
        self.stop, self._terms = StopFlag(device), plan.terms
        with device.active():
            self._lengths = lengths_of(self.graph, plan, self.found)
            self._span, halves = span_of(self._lengths, device.limits)
            self._threads = threads_of_ranges(device.limits)
            macros = {"THREADS": self._threads, "HALVES": int(halves)}
            self._module = device.module("count_ranges", macros, check=self.check)
            self._ranks = ranks_of(self.graph, plan.partitions, plan.vertices)
            linear = [part for part in parts_of(plan.terms) if part not in self.found.sent]
            known = {part: by_rank(part.root, self._ranks, plan.filters) for part in linear if part.rooted}
            self._rooted = known
            summed = {part: total(part.root, self._ranks, plan.filters) for part in linear if not part.rooted}
            self._known = {part: part.multiple * number for part, number in summed.items()}
            for sent in self.found.sent.values():
                for weight in (sent.root, sent.middle, sent.end):
                    if weight is not None and weight.filters and weight not in self._bits:
                        bits = self._ranks.bits(candidates_of(weight, plan.filters))
                        self._bits[weight] = device.memory.upload(bits)
        self._answer = device.pinned((2, len(self.found.sent)), np.int64)
        self.check = None
        del self.plan  # what is cached as long as the plan must not keep the plan alive

    @property
    def nbytes(self) -> int:
        """Bytes of its own arrays on the device between runs."""
        return sum(int(array.nbytes) for array in self._bits.values())

    # --- a run

    def run(self, watch: Watch) -> int | None:
        """Count; as :meth:`graphdb.gpu.counting.run.DeviceCount.run`, and raises :class:`MemoryLimitError`, too."""
        totals = self.totals(watch)
        return None if totals is None else added_up(self._terms, totals)

    def totals(self, watch: Watch, share: Share | None = None) -> dict[Part, int] | None:
        """As :meth:`graphdb.gpu.counting.run.DeviceCount.totals`.

        Raises
        ------
        MemoryLimitError
            The budget, or what is free of it, has no room for a block and two segments.
        """
        with self._running, self.device.active():
            cells, _ = self._launched(watch, share)
        if (cells[1].view(np.float64) > EXACT).any():
            return None
        sums = {part: int(cells[0, at]) * part.multiple for at, part in enumerate(self.found.sent)}
        known = self._known if share is None or share[0] == 0 else dict.fromkeys(self._known, 0)
        return {part: {**known, **sums}[part] for part in parts_of(self._terms)}

    def run_by_vertex(self, watch: Watch, share: Share | None = None) -> tuple[Ints, Ints] | None:
        """As :meth:`graphdb.gpu.counting.run.DeviceCount.run_by_vertex`; raises what :meth:`totals` does."""
        with self._running, self.device.active():
            cells, by_root = self._launched(watch, share)
        sizes = dict(zip(self.found.sent, cells[1].view(np.float64).tolist(), strict=True))
        sums = dict(zip(self.found.sent, cells[0].tolist(), strict=True))
        numbers, greatest = np.zeros(len(self._ranks.vertices), np.int64), 0
        for term in self._terms:
            rooted, *others = term.parts
            factor = term.coefficient * rooted.multiple
            for part in others:
                factor *= self._known[part] if part in self._known else sums[part] * part.multiple
            values = self._rooted[rooted] if rooted in self._rooted else by_root[rooted]
            greatest += abs(factor) * (int(sizes[rooted]) + 1 if rooted in sizes else int(values.max(initial=0)))
            if greatest >= EXACT / 2:
                return None
            numbers += factor * values
        first, last = share or (0, len(numbers))
        matched = first + np.flatnonzero(numbers[first:last])
        return self._ranks.vertices[matched], numbers[matched]

    def division(self) -> Division:
        """How sums divide by the ranks that are their roots."""
        ranked = self._ranks.relations[self.found.roots]
        return Division("vertices", len(self._ranks.vertices), lambda: 1.0 + ranked.work())

    def _launched(self, watch: Watch, share: Share | None) -> tuple[Ints, dict[Part, Ints]]:
        """What all parts tell, sums and estimates, and of those by vertex numbers by rank: in what memory there is."""
        memory = self.device.memory
        if share is not None and share[0] >= share[1]:
            nothing = np.zeros(len(self._ranks.vertices), np.int64)
            return np.zeros_like(self._answer), {part: nothing for part in self.found.sent if part.rooted}
        for passes in self._possible(share):
            try:
                return self._in_passes(passes, watch)
            except MemoryLimitError:
                _log.info("sums are counted in smaller passes: memory is not free in pieces of these")
            memory.evict(None)
        least = least_room(self._lengths) + self.found.kept(len(self._ranks.vertices))
        raise MemoryLimitError(
            f"sums need {least:,} bytes on the device cuda:{self.device.number}, and "
            f"{memory.free_bytes():,} of its budget of {memory.budget:,} are free",
            hint='raise device_memory, or use device="cpu"',
        )

    def _possible(self, share: Share | None) -> Iterator[Passes]:
        """The passes for less and less memory, as far as so much can be had."""
        memory, kept = self.device.memory, self.found.kept(len(self._ranks.vertices))
        for part in PARTS:
            room = int(part * room_of(memory.budget)) - kept
            passes = known_passes(self.graph, self._lengths, room) if share is None else None
            if share is not None:
                passes = passes_of(self._lengths, room, share)
            if passes is not None and memory.reserve(passes.room + kept) >= passes.room + kept:
                yield passes

    def _in_passes(self, passes: Passes, watch: Watch) -> tuple[Ints, dict[Part, Ints]]:
        """Go through the lists, and wait for what all parts tell."""
        device, memory, parts = self.device, self.device.memory, len(self.found.sent)
        relations = self._ranks.relations
        roots = planes_of_roots(memory, relations[self.found.roots])
        blocks = blocks_of(memory, relations[self.found.along], passes.bounds)
        cells = memory.empty((2 + SIDES) * parts, np.int64)
        windows = blocks.window(device, passes), roots.segments(device, passes)
        cells.fill(0)
        by_root = {part: memory.empty(len(self._ranks.vertices), np.uint64) for part in self.found.sent if part.rooted}
        for numbers in by_root.values():
            numbers.fill(0)

        def launch(number: int, bases: list[list[int]], side: int) -> None:
            pass_number, segment = passes.steps[number]
            bounds = passes.bounds[pass_number], passes.bounds[pass_number + 1]
            lists = (*_addresses(bases[1], 0, len(self._ranks.vertices)), *_addresses(bases[0], *bounds))
            if number >= SIDES:
                cells[(2 + side) * parts : (3 + side) * parts].fill(0)
            for at, (part, sent) in enumerate(self.found.sent.items()):
                sums, sizes, following = (address(cells) + 8 * (row * parts + at) for row in (0, 1, 2 + side))
                own = sums, sizes, address(by_root.get(part)), following
                self._launch(sent, lists, passes.segments[segment], bounds, own)

        begin = device.event()
        through(device, windows, passes.steps, launch)
        cells[: 2 * parts].get(out=self._answer.reshape(-1), stream=device.stream, blocking=False)
        end = device.event()
        wait_for(end, watch, self.stop, lambda: None)
        self.milliseconds, self.passes = device.milliseconds(begin, end), passes
        return self._answer.copy(), {part: numbers.get().view(np.int64) for part, numbers in by_root.items()}

    def _launch(
        self,
        sent: Sent,
        lists: tuple[int, ...],
        segment: tuple[int, int],
        bounds: tuple[int, int],
        cells: tuple[int, ...],
    ) -> None:
        """Start a kernel; ``cells``: addresses of its part's sum, the estimate, the roots' own and the next root."""
        first_root = max(segment[0], bounds[0]) if sent.mirrored else segment[0]
        roots = segment[1] - first_root
        if roots < 1:
            return
        bits = (
            0 if weight is None else address(self._bits.get(weight)) for weight in (sent.root, sent.middle, sent.end)
        )
        shared = range_bytes(self.device.limits) // 256 * 256
        self._module.launch(
            "ranges",
            min(self._module.resident("ranges", self._threads, shared), roots),
            *(*lists, *bits, first_root, segment[1], *bounds, self._span, sent.power, int(sent.mirrored)),
            *(*cells, self.stop.address),
            threads=self._threads,
            shared=shared,
        )


def _addresses(bases: list[int], first: int, last: int) -> tuple[int, int, int]:
    """What a kernel is told of lists within a range of ranks."""
    return bases[OFFSETS], bases[LOW], bases[HIGH] if is_wide(first, last) else 0
