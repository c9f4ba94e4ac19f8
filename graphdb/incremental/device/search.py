"""Searches of a staged batch on a device: a pattern's tables there, launches, and what they find."""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphdb.common.errors import MemoryLimitError
from graphdb.gpu.code.launch import BLOCK, STATIC_SHARED, StopFlag
from graphdb.gpu.data.graph import address
from graphdb.gpu.watch import wait_for
from graphdb.incremental import frame
from graphdb.incremental.device.layout import (
    BATCH,
    DIVISIBLE,
    LEVEL_WORDS,
    LISTS,
    MAIL_HEADER,
    MOST_PIECES,
    PLAN_DIVISIBLE,
    PLAN_FIRST,
    SEARCH,
    SPAN_WORDS,
    Desk,
    State,
)
from graphdb.incremental.searches import most_copies

if TYPE_CHECKING:
    from graphdb.gpu.code.launch import Device
    from graphdb.incremental.device.lists import DeviceLists, Staged
    from graphdb.incremental.program import Program

Ints = NDArray[np.int64]

_LEFT = 8 * BATCH.index("left")
_ALL = 1 << 62
_FIRST_ROWS = 1 << 16
_SHARE = 2
"""Rows take at most one part in so many of the memory that is free."""
_WAITING = 4
"""Warps are launched for so many times the changed edges, if there is space for them: those without any steal."""
_SHARED = STATIC_SHARED - 8 * (len(SEARCH) + len(LISTS))
"""Bytes of shared memory that the warps of a block may have."""
_TABLES = {
    "plans": frame.PLANS,
    "plan_starts": frame.PLAN_STARTS,
    "plan_numbers": frame.PLAN_NUMBERS,
    "steps": frame.STEPS,
    "legs": frame.LEGS,
    "checks": frame.CHECKS,
    "copies": frame.COPIES,
    "values": frame.VALUES,
}


class Found(NamedTuple):
    """What a search of a batch found."""

    lost: int
    gained: int
    rows: int
    """How many rows the matches take that were to be written."""


class Running(NamedTuple):
    """A search that was launched: see :meth:`DeviceSearch.wait`."""

    state: Any
    begin: Any
    end: Any
    alive: tuple[Any, ...]
    """What it reads."""


class DeviceProgram:
    """A pattern's delta plans on a device."""

    def __init__(self, device: Device, program: Program, table_row: int) -> None:
        self.program, self.table_row = program, table_row
        tables = dict(program.tables)
        plans, steps = tables[frame.PLANS], tables[frame.STEPS]
        tables[frame.PLANS], tables[frame.STEPS] = plans.copy(), steps.copy()
        for plan in tables[frame.PLANS]:
            own = tables[frame.STEPS][plan[4] : plan[5]]
            plan[PLAN_FIRST], plan[PLAN_DIVISIBLE] = _order_siblings(own, int(plan[4]))
        self._uploaded = {
            name: device.memory.upload(tables[cell].reshape(-1), np.int32) for name, cell in _TABLES.items()
        }
        self.slots, self.columns = len(program.tables[frame.VALUES]), len(program.pattern.outputs)
        self.levels = max((int(plan[5] - plan[4]) for plan in plans), default=0)
        spans = [steps[plan[4] : plan[5], 2:4] for plan in plans if plan[4] < plan[5]]
        self.most_legs = max((int(own.max() - own.min()) for own in spans), default=0)
        self.most_plans = int(np.diff(tables[frame.PLAN_STARTS]).max(initial=0))
        self.cells = {name: address(table) for name, table in self._uploaded.items()}

    @property
    def warp_bytes(self) -> int:
        """Shared memory of a warp."""
        words = self.levels * LEVEL_WORDS + self.most_legs * SPAN_WORDS + (self.slots + 1) // 2
        return 8 * words


class DeviceSearch:
    """Searches the batches that are staged in the lists of one device.

    Parameters
    ----------
    steal
        Whether warps without work take some from others (tests and benchmarks switch it off).
    most
        Blocks at most.
    """

    macros: ClassVar[dict[str, object]] = {}
    """What the kernel is compiled with (benchmarks have others)."""

    def __init__(
        self, lists: DeviceLists, *, steal: bool = True, most: int | None = None, rows: int = _FIRST_ROWS
    ) -> None:
        self._lists, self._device, self._steal, self._most = lists, lists.device, steal, most
        self._stop = StopFlag(self._device)
        self._rows: Any = None
        self._first_rows = rows
        self._queue: Any = None
        self._turns: Any = None
        self._desk: Any = None
        self.milliseconds, self.stolen = 0.0, 0
        """Of the device's time, and the pieces of work that warps left to others, since they were set to 0."""

    @property
    def lists(self) -> DeviceLists:
        """What it searches."""
        return self._lists

    @property
    def device(self) -> Device:
        """Where it searches."""
        return self._device

    def count(self, program: DeviceProgram, staged: Staged, check: Callable[[], None]) -> Running:
        """Begin to count the matches that a batch takes away and adds; how many changes it has need not be known."""
        return self._start(program, staged, 0, _ALL, -1, check)

    def rows(self, program: DeviceProgram, staged: Staged, check: Callable[[], None]) -> Ints:
        """Return the matches that a settled batch changes: [matches, outputs + 1], the version of each first.

        Where there are more than there is space for, the search begins again with as much as they need; where that is
        too much, it takes the changed edges by halves.

        Raises
        ------
        MemoryLimitError
            The device has too little memory for the matches of one changed edge.
        """
        pieces, parts = [(0, staged.count)], list[Ints]()
        columns, copies = program.columns + 1, most_copies(program.program)
        while pieces:
            first, last = pieces.pop()
            space = max(self._space(columns), copies)
            written = self.wait(self._start(program, staged, first, last, space, check), check).rows
            if written <= space:
                parts.append(self._rows[: written * columns].get().reshape(-1, columns).astype(np.int64))
            elif self._fits(4 * written * columns):
                self._rows = None
                self._rows = self._device.memory.empty(written * columns, np.int32)
                pieces.append((first, last))
            elif last - first > 1:
                middle = (first + last) // 2
                pieces += [(middle, last), (first, middle)]
            else:
                raise MemoryLimitError(f"one changed edge has {written:,} matches, for which the device has no space")
        return np.concatenate(parts) if parts else np.empty((0, columns), np.int64)

    def _space(self, columns: int) -> int:
        """Return how many rows there is space for."""
        if self._rows is None:
            self._rows = self._device.memory.empty(self._first_rows * columns, np.int32)
        return len(self._rows) // columns

    def _fits(self, wanted: int) -> bool:
        """Whether rows of so many bytes take no more than their share of the memory."""
        own = 0 if self._rows is None else int(self._rows.nbytes)
        return wanted * _SHARE <= self._device.memory.reserve(wanted * _SHARE - own) + own

    def wait(self, running: Running, check: Callable[[], None]) -> Found:
        """Wait for a search, and return what it found; what ``check`` raises stops it."""
        wait_for(running.end, _Watch(check), self._stop, self._forget_queue)
        numbers = running.state.get()
        self.milliseconds += self._device.milliseconds(running.begin, running.end)
        self.stolen += int(numbers[State.STOLEN])
        return Found(*(int(numbers[cell]) for cell in (State.LOST, State.GAINED, State.WRITTEN)))

    def _start(
        self, program: DeviceProgram, staged: Staged, first: int, last: int, limit: int, check: Callable[[], None]
    ) -> Running:
        """Have some changes searched, and the matches written, or counted where ``limit`` is -1."""
        check()
        device, memory = self._device, self._device.memory
        module = device.module("delta_search", self.macros, check=check)
        threads = BLOCK
        while threads > 32 and threads // 32 * program.warp_bytes > _SHARED:
            threads //= 2
        warps, shared = threads // 32, threads // 32 * program.warp_bytes
        expected = min(last, staged.given) - first
        wanted = max(-(-expected * _WAITING // warps), device.processors)
        kernel = "count_matches" if limit < 0 else "write_matches"
        blocks = min(module.resident(kernel, threads, shared), wanted, self._most or wanted)
        places = self._queue_for(blocks * warps, MAIL_HEADER + program.slots) if self._steal else 0
        given = memory.empty(len(SEARCH) + len(State), np.int64)
        state = given[len(SEARCH) :]
        cells = {
            **program.cells,
            "lists": address(self._lists.cells),
            "changes": staged.changes,
            "starts": staged.starts,
            "left": staged.batch + _LEFT,
            "first": first,
            "last": last,
            "slots": program.slots,
            "levels": program.levels,
            "most_legs": program.most_legs,
            "columns": program.columns,
            "table_row": program.table_row,
            "most_plans": program.most_plans,
            "limit": limit,
            "rows": 0 if limit < 0 else address(self._rows),
            "state": address(state),
            "stop": self._stop.address,
            "turns": address(self._turns),
            "queue": address(self._queue),
            "desk": address(self._desk),
            "queue_places": places,
        }
        memory.write(given, np.array([cells[name] for name in SEARCH] + [0] * len(State), np.int64))
        begin = device.event()
        module.launch(kernel, blocks, given, threads=threads, shared=shared)
        return Running(state, begin, device.event(), (given, staged))

    def _queue_for(self, warps: int, cells: int) -> int:
        """Have a queue for pieces of work, of so many cells each; return how many it has space for.

        Who leaves pieces there leaves some only where more wait than there are pieces, so that warps which all do so at
        once leave no more than there are places for: who waited for one might wait for good.
        """
        places = 1
        while places < (MOST_PIECES + 1) * warps:
            places *= 2
        if self._turns is None or len(self._turns) != places or len(self._queue) < places * cells:
            self._desk = self._device.memory.upload(np.zeros(len(Desk), np.uint64))
            self._turns = self._device.memory.upload(np.arange(places, dtype=np.uint64))
            self._queue = self._device.memory.empty(places * cells, np.int32)
        return places

    def _forget_queue(self) -> None:
        """Have a new queue next time: a search that was stopped has left something in this one."""
        self._turns = None


class _Watch:
    """Has ``check`` asked while a kernel runs."""

    def __init__(self, check: Callable[[], None]) -> None:
        self.check = check


def _order_siblings(steps: Ints, first: int) -> tuple[int, int]:
    """Have steps with the fewest below them counted before their siblings.

    Parameters
    ----------
    steps
        Rows of a plan's steps, which are changed, …
    first
        … and where in the table they begin.

    Returns
    -------
    tuple[int, int]
        Which of them is the first of those without a parent, -1 where there are no steps; and which may be divided,
        as bits: that have steps below them, and neither they nor one above them a sibling that is counted later.
    """
    parents = [int(parent) - first if parent >= 0 else -1 for parent in steps[:, 9]]
    heights = [0] * len(steps)
    for number, parent in reversed(list(enumerate(parents))):
        if parent >= 0:
            heights[parent] = max(heights[parent], heights[number] + 1)
    firsts = {}
    for parent in {-1, *parents}:
        own = sorted((heights[number], number) for number, of in enumerate(parents) if of == parent)
        family = [number for _, number in own]
        for number, after in zip_longest(family, family[1:]):
            steps[number, 11] = -1 if after is None else after + first
        firsts[parent] = family[0] if family else -1
        if parent >= 0:
            steps[parent, 10] = firsts[parent] + first
    last, divisible = list[bool](), 0
    for number, parent in enumerate(parents):
        last.append(steps[number, 11] < 0 and (parent < 0 or last[parent]))
        if last[number] and heights[number] and number < DIVISIBLE:
            divisible |= 1 << number
    return firsts[-1], divisible
