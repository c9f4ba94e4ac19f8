"""One run of a join: tables of partial matches, piece by piece, each joined to the end before the next is made."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.gpu.code.launch import Device, Module, StopFlag
from graphdb.gpu.data.graph import address
from graphdb.gpu.join.kernels import Kernels
from graphdb.gpu.join.levels import ALL, Level, Levels, Share, View
from graphdb.gpu.join.segmentation import ONLY_TABLE, TABLES
from graphdb.gpu.join.segmented import Segmentation, segment_stream
from graphdb.gpu.join.tables import Elements, Marks, Sizes, Table, divided
from graphdb.gpu.watch import wait_for
from graphdb.plan.executor import Control
from graphdb.plan.physical import PhysicalPlan, VertexStep

Ints = NDArray[np.int64]

LAUNCH = 0.02
"""Seconds that one launch scans for, about: after that a run can be stopped."""
TELLING = 3
"""So many of the first levels say how far a run is."""
FIRST = 1 << 14
"""With a limit, so many elements at first; then twice as many each time."""
COUNTED = {"intersect_two": "count_two", "mark_two": "count_two_others"}
"""The kernels of levels that are counted in one launch, by those that mark their bindings."""
CROWDED = 16
"""Pieces of the table before the last level from which its rows are made where they are counted, without a table: that
takes up to half as long again."""
CHOSEN = 1 / 8
"""Of the elements of a shared intersection's lists, so many are in all of them, at most: where more are, pieces that
got too little memory are made smaller."""
PAIRED = 8
"""Columns of a table that is never written, at most: ``MADE_COLUMNS`` of the kernel."""
LONGEST = 1 << 27
"""Elements of a list, at most, where a warp counts those of 32 lists in 32 bits."""
OUT = 0.1
"""Of what is free, so much is for an output block: others are copied to the host meanwhile."""
SENT, SOON = 4, 8
"""Output blocks that one launch should find, about, so that some are copied while the next ones are found; and the part
of what it would scan else, of which the first one looks for them (1 / SOON)."""
BEHIND = 2
"""Launches that count, of which the host waits for none."""


@dataclass(slots=True)
class _Made:
    """The shares that exist now: their arrays, and the addresses that descriptors need."""

    arrays: dict[int, tuple[Any, Any]] = field(default_factory=dict)

    def addresses(self) -> dict[int, tuple[int, int]]:
        return {slot: (address(values), address(offsets)) for slot, (values, offsets) in self.arrays.items()}


class Run:
    """One run of one plan."""

    def __init__(
        self,
        device: Device,
        module: Module,
        sizes: Sizes,
        plan: PhysicalPlan,
        levels: Levels,
        segments: Segmentation | None,
        control: Control,
        *,
        counting: bool,
        limit: int | None,
    ) -> None:
        self.total = 0
        self._sizes, self._levels, self._control = sizes, levels, control
        self._device, self._memory, self._module = device, device.memory, module
        self._dtype, self._width = plan.dtype, np.dtype(plan.dtype).itemsize
        self._kernels = Kernels(device, module, sizes, plan)
        self._counting, self._limit = counting, limit
        self._segments = segments
        self._stream = None if segments is None else segment_stream(device, plan, segments)
        try:
            if self._stream is not None and segments is not None and segments.combinations and limit != 0:
                self._stream.begin(segments.combinations[0])  # what else is found is found meanwhile
            self._find_sizes(plan)
        except BaseException:
            if self._stream is not None:
                self._stream.end()
            raise

    def _find_sizes(self, plan: PhysicalPlan) -> None:
        """Find what the run goes through at a time, by the memory that is left."""
        device, levels, sizes, counting, limit = self._device, self._levels, self._sizes, self._counting, self._limit
        self._view, self._root = ALL, Table(self._memory.empty(1, self._dtype), 1, 0, 1, self._width)
        first_step = plan.steps[0]
        scan = first_step.scan if isinstance(first_step, VertexStep) else None
        self._scan: Ints = np.empty(0, np.int64) if scan is None else scan
        self._first: tuple[Any, Table] | None = None
        """The first level's table, where it is in one piece, and the range of vertices that it has."""
        self._counted: Any = None
        """Where bindings are counted of all rows, and of the level before: uint64 [2]."""
        self._launched: deque[Any] = deque()
        """Events behind the launches that do."""
        self._stop = StopFlag(device)
        self._last = len(levels.levels) - 1
        self._made = _Made()
        self._tallies: Any = None
        self._matches: Any = None
        """Where matches are added up: of all rows, and of those that are scanned now."""
        images = 1 if counting else plan.automorphisms * max(len(plan.outputs), 1)
        steps = len(levels.levels)
        room = self._memory.reserve(self._memory.budget // 2) // sizes.parts
        out_bytes = min(sizes.out_bytes, int(room * OUT))
        self._out_rows = max(out_bytes // (images * self._width), sizes.tile)
        estimates = None if counting and plan.clique is not None else [step.estimate for step in plan.steps]
        self._crowded = estimates is not None and self._is_crowded(estimates, int(room * TABLES))
        only = self._last == 2 and self._counts_pairs(1)
        self._most = self._most_rows(estimates, int(room * (ONLY_TABLE if only else TABLES)))
        most = min(sizes.span, int(min(LAUNCH, device.limits.launch_seconds) * device.rates.intersected))
        # A bit per element that is marked, and for a share its value too, if it comes to the worst.
        marked = [
            not (level.plain or (counting and number == self._last)) for number, level in enumerate(levels.levels)
        ]
        each = [16 / sizes.tile + bits / 8 for bits in marked]
        spans = [min(most, int(room / 4 / steps / size)) for size in each]
        self._spans = [max(span // sizes.tile, 1) * sizes.tile for span in spans]
        chosen = 16 / sizes.tile + 1 / 8 + CHOSEN * self._width
        share_span = min(most, int(room / 4 / max(len(levels.shares), 1) / chosen))
        self._share_span = max(share_span // sizes.tile, 1) * sizes.tile
        self._span = max(self._spans) if limit is None else max(FIRST // sizes.tile, 1) * sizes.tile
        self._leaving = max(max(self._spans) // SOON // sizes.tile, 1) * sizes.tile
        """Elements that one launch scans where rows leave the device."""
        self._control.rows = np.zeros(steps, np.int64)
        self._control.threads = 0

    def _row_bytes(self) -> list[int]:
        """Bytes of a row of the table after each level, with what is found for it."""
        levels = self._levels.levels
        needed = [(len(level.columns) + 1) * self._width for level in levels]
        for number, level in enumerate(levels[1:]):
            if not self._counts_at_once(number + 1):
                lists = len(level.lists)
                needed[number] += 32 if lists == 1 else 33 + 12 * lists
        if self._scans:
            needed[0] = max(needed[0] - (len(levels[0].columns) + 1) * self._width, 1)
        return needed

    @property
    def _scans(self) -> bool:
        """Whether the first level's scan is its table."""
        levels = self._levels
        return levels.roots is not None and self._limit is None and levels.row_levels != 1 and self._last > 0

    def _is_crowded(self, estimates: list[float], room: int) -> bool:
        """Whether the table that the last level of a count reads is expected to be in many pieces in so many bytes."""
        before = self._last - 1
        return before > 0 and estimates[before] * self._row_bytes()[before] > CROWDED * room / self._last

    def _most_rows(self, estimates: list[float] | None, room: int) -> list[int]:
        """Rows of each table, at most, that fit so many bytes together.

        The first has one for each root at most, and may take half of the room: each piece of it costs as many launches
        as what it leads to.  Others that are expected to be small leave their part to those that are not.
        """
        levels, sizes, needed = self._levels.levels, self._sizes, self._row_bytes()
        tables = self._last - self._counts_pairs(self._last - 1)
        needed = needed[:tables] if self._counting and tables else needed
        roots = min((each.length for each in levels[0].lists if each.length), default=sizes.rows)
        roots = min(roots, self._most_roots())
        share = max(room // len(needed) // max(needed), room // 2 // needed[0])
        first = max(min(roots, sizes.rows, share), sizes.tile)
        wanted = [4.0 * rows for rows in estimates] if estimates else [np.inf] * len(levels)
        wanted[self._rows_level] = min(wanted[self._rows_level], self._out_rows)
        asked = [rows * size for rows, size in zip(wanted[1:], needed[1:], strict=False)]
        parts = divided(room - first * needed[0], asked)
        fitting = (int(part / size) for part, size in zip(parts, needed[1:], strict=True))
        others = [max(min(sizes.rows, rows), sizes.tile) for rows in fitting]
        return [first, *others, *[sizes.tile] * (len(levels) - len(needed))]

    @property
    def _rows_level(self) -> int:
        """The level that makes rows: a block of them has few enough for the copies to the host."""
        return self._levels.row_levels - 1 if self._levels.row_levels else self._last

    def _most_roots(self) -> int:
        """Vertices of the longest range of the first slot, or of all where it has none."""
        ranges = [] if self._segments is None else [each for each in self._segments.slots if each.level == 0]
        return max((int(np.diff(each.bounds).max()) for each in ranges), default=1 << 62)

    def _counts_at_once(self, number: int) -> bool:
        """Whether a level is counted in one launch: the last, of two lists, without a limit."""
        level = self._levels.levels[number]
        two = self._counting and number == self._last > 0 and level.kernel in COUNTED
        return two and self._limit is None and self._levels.longest < LONGEST

    def _counts_pairs(self, number: int) -> bool:
        """Whether a level's bindings are made where those of the last are counted, and nowhere else.

        They are where lists are read by segments, or where it is expected to have more rows than there is room for:
        their table would take the room of segments, or be in many pieces.
        """
        levels, last = self._levels, number == self._last - 1 > 0
        if not (last and self._counting and self._limit is None) or levels.shares_after(number):
            return False
        if self._segments is None and not self._crowded:
            return False
        counted = self._counts_at_once(self._last) or levels.levels[self._last].counts_rows
        return counted and len(levels.levels[number].columns) <= PAIRED

    # --- the way down

    def tables(self) -> Iterator[Table]:
        """The tables of matches, one after the other; counting gives none and leaves ``total``."""
        root = self._root
        if self._limit != 0:
            for view, done, share in self._views():
                self._view = view
                if self._scans:
                    yield from self._scanned(done, share)
                elif self._first is not None and self._first[0] == self._first_range:
                    yield from self._with_shares(0, self._first[1], done, share)
                else:
                    self._first = None
                    yield from self._extend(0, root, done, share)
            self._add_counted()
            self._control.report(1.0)

    def _scanned(self, done: float, share: float) -> Iterator[Table]:
        """Go on with the first level's scan, which is its table: nothing is launched for it, or waited for."""
        roots = self._levels.roots
        first, last = self._control.range_of(roots.size)
        if self._first_range is not None:
            begin, end = np.searchsorted(self._scan, self._first_range).tolist()
            first, last = max(first, begin), min(last, end)
        for begin in range(first, last, self._most[0]):
            self._control.check()
            rows = min(self._most[0], last - begin)
            self._control.rows[0] += rows
            part = Table(roots, roots.size, begin, rows, self._width)
            before = done + share * (begin - first) / (last - first)
            yield from self._with_shares(0, part, before, share * rows / (last - first))
            if self._control.due:
                self._control.report(before)

    def _views(self) -> Iterator[tuple[View, float, float]]:
        """What stands on the device, one after the other; how far the run is by then, and the share that this is."""
        if self._segments is None or self._stream is None:
            yield ALL, 0.0, 1.0
            return
        combinations, slots = self._segments.combinations, self._segments.slots
        share = 1 / max(len(combinations), 1)
        for number, (chosen, bases) in enumerate(self._stream.through(combinations)):
            if self._enough():
                return
            table = self._memory.upload(self._levels.rows_at(bases))
            rows = {self._levels.streamed[key]: base for (key, cell), base in bases.items() if cell == "neighbours"}
            ranges = {each.slot: each.range(at) for each, at in zip(slots, chosen, strict=True)}
            yield View(address(table), rows, ranges), number * share, share

    @property
    def _first_range(self) -> tuple[int, int] | None:
        """The vertices that the first slot is bound to now; None for all."""
        return self._view.ranges.get(self._levels.levels[0].slot)

    def _enough(self) -> bool:
        return self._limit is not None and self.total >= self._limit

    def _extend(self, number: int, table: Table, done: float, share: float) -> Iterator[Table]:
        """Join a table with all levels from ``number`` on; the run is ``done`` so far, this is a ``share`` of it."""
        level, counting = self._levels.levels[number], self._counting and number == self._last
        with_counts = number == self._last and self._levels.row_levels > 0
        by_row = (counting or with_counts) and level.counts_rows
        descriptor = self._levels.descriptor(number, self._made.addresses(), self._view)
        if self._counts_at_once(number):
            kernel, which = COUNTED[level.kernel], (table.address, table.stride, table.rows)
            cells = self._memory.upload(np.append(descriptor, 0))
            self._start_count(kernel, -(-table.rows // self._sizes.block), cells, *which)
            return
        if self._counts_pairs(number):
            self._count_pairs(descriptor, level, table)
            return
        cells = self._memory.upload(descriptor)
        elements = self._kernels.elements(cells, level, table, discounted=by_row and bool(level.differs))
        if by_row:
            self._control.rows[number] += elements.total
            if with_counts:
                self._kernels.launch(
                    "add_list_lengths", table.rows, elements.offsets, table.rows, self._origins(table), self._matches
                )
            else:
                self.total += elements.total
            return
        begin, last = (0, elements.total) if number else self._roots(elements)
        whole = (begin, last)
        while begin < last and not self._enough():
            self._control.check()
            leaves = not self._counting and number == self._rows_level
            span = min(self._span, self._spans[number], self._leaving if leaves else self._span)
            end = min(begin + span, last)
            if self._limit is not None:
                self._span = min(2 * self._span, max(self._spans))
            marks = self._kernels.marks(level, table, elements, begin, end, write=not counting)
            self._control.rows[number] += marks.found
            if leaves:
                wanted = span * min(max(SENT * self._out_rows / max(marks.found, 1), 0.5), 2.0)
                self._leaving = max(int(wanted) // self._sizes.tile, 1) * self._sizes.tile
            if number == self._last and not with_counts:
                self.total += marks.found
            if not counting:
                yield from self._pieces(number, table, elements, marks, done, share, stays=whole == (begin, end))
            begin = end
            if number < TELLING and self._control.due:
                self._control.report(done + share * begin / elements.total)

    def _count_pairs(self, before: Ints, level: Level, table: Table) -> None:
        """Start to count the bindings of the last level from a table of the one two before it."""
        last = self._last
        descriptor = self._levels.descriptor(last, self._made.addresses(), self._view)
        cells = self._memory.upload(np.concatenate([before, descriptor, [0]]))
        found = self._kernels.elements(cells[: len(before)], level, table, waits=False)
        which = (found.descriptor, len(before), table.address, table.stride, table.rows)
        bounds = (found.begins, found.lengths, found.which, found.first, found.offsets)
        kernel = "count_pairs" if self._counts_at_once(last) else "count_lists"
        self._start_count(kernel, 1 << 30, cells[len(before) :], *which, *bounds)

    def _start_count(self, kernel: str, blocks: int, cells: Any, *which: Any) -> None:
        """Start to count the bindings of some rows, without an array of their lists: they take no other room.

        ``cells`` are the descriptor on the device, and behind it a 0, where warps draw their rows from.
        """
        if self._counted is None:
            self._counted = self._memory.upload(np.zeros(2, np.uint64))
        block, count = self._sizes.block, len(cells) - 1
        blocks = min(self._module.resident(kernel, block), blocks)
        to = (self._counted, np.uint64(address(cells) + 8 * count), self._stop.address)
        self._module.launch(kernel, blocks, cells, count, *which, *to, threads=block)
        self._launched.append(self._device.event())
        if len(self._launched) > BEHIND:
            wait_for(self._launched.popleft(), self._control, self._stop, self._wait)

    def _wait(self) -> None:
        """Wait for the launches that count; those that go on after this one was stopped are short."""
        while self._launched:
            self._launched.popleft().synchronize()

    def _add_counted(self) -> None:
        """Add what was counted by rows, once it is."""
        if self._counted is None:
            return
        while self._launched:
            wait_for(self._launched.popleft(), self._control, self._stop, self._wait)
        found, before = self._counted.get().tolist()
        self.total += found
        self._control.rows[self._last] += found
        self._control.rows[self._last - 1] += before

    def _roots(self, elements: Elements) -> tuple[int, int]:
        """The elements of the first level that are of the run's share: first and last + 1."""
        if self._view is ALL or self._control.share is None:
            return self._control.range_of(elements.total)
        before = int(elements.first.get()[0])  # those below the view's range
        first, last = (min(max(root - before, 0), elements.total) for root in self._control.share)
        return first, last

    def _pieces(
        self, number: int, table: Table, elements: Elements, marks: Marks, done: float, share: float, *, stays: bool
    ) -> Iterator[Table]:
        """Combine what was marked into tables that are not too large, and go on with each.

        The first level's table ``stays`` for other segments, where it is one.
        """
        last, row_levels = number == self._last, self._levels.row_levels
        whole = share * (marks.end - marks.begin) / elements.total
        done += share * marks.begin / elements.total
        made = 0
        makes_rows = number == self._rows_level
        most = min(self._out_rows, self._most[number]) if makes_rows else self._most[number]
        for first, tiles, rows in self._tiles(marks, most):
            if self._enough_before(marks, made) if last and not row_levels else self._enough():
                return
            if rows == 0:
                continue
            columns = self._levels.levels[number].columns
            following = self._kernels.combine(table, elements, marks, first, tiles, rows, len(columns))
            before, part = done + whole * made / marks.found, whole * rows / marks.found
            if last and row_levels:
                self._kernels.launch("add_matches", rows, following.cells, rows, self._matches)
            elif last:
                yield following
            elif makes_rows:
                yield from self._with_counts(number, following, before, part)
            else:
                if number == 0 and stays and rows == marks.found and self._segments is not None:
                    self._first = self._first_range, following
                yield from self._with_shares(number, following, before, part)
            made += rows

    def _with_counts(self, number: int, table: Table, done: float, share: float) -> Iterator[Table]:
        """Of the rows that are made, those that some match belongs to, and how many do."""
        matches = self._memory.empty(table.rows, np.int64)
        matches[...] = 0
        self._tallies = matches
        for _ in self._with_shares(number, table, done, share):
            pass  # the last tables are only counted
        fits = self._memory.empty(table.rows, np.int64)
        self._kernels.launch("matched", table.rows, matches, table.rows, fits)
        positions = self._kernels.sums(fits)
        found = self._device.last(positions)
        self.total += found
        if found == 0:
            return
        columns, constants = self._memory.upload(self._levels.output_columns), self._levels.tables[2]
        outputs = len(self._levels.outputs)
        out, numbers = self._memory.empty((outputs, found), self._dtype), self._memory.empty(found, np.int64)
        which = (table.address, table.stride, table.rows, columns, outputs, constants, matches, positions)
        self._kernels.launch("keep_rows", table.rows, *which, out, found, numbers)
        yield Table(out, found, 0, found, self._width, numbers)

    def _origins(self, table: Table) -> Any:
        """The column that says which row a partial match belongs to; 0 in the table of rows itself."""
        if self._levels.row_levels == self._last:
            return np.uint64(0)
        columns = self._levels.levels[self._last - 1].columns
        at = columns.index(self._levels.origin) * table.stride * self._width
        return np.uint64(int(table.address) + at)

    def _enough_before(self, marks: Marks, made: int) -> bool:
        """Whether the limit was reached before these marks' rows from ``made`` on."""
        return self._limit is not None and self.total - marks.found + made >= self._limit

    def _tiles(self, marks: Marks, most: int) -> Iterator[tuple[int, int, int]]:
        """Divide the tiles of some marks into runs (first, how many, rows in them) of at most ``most`` rows each."""
        tile = self._sizes.tile
        tiles = -(-(marks.end - marks.begin) // tile)
        if marks.found <= most:
            yield 0, tiles, marks.found
            return
        if marks.positions is None:
            before = np.minimum(np.arange(tiles + 1) * tile, marks.found)
        else:
            before = marks.positions.get()
        first = 0
        while first < tiles:
            until = int(np.searchsorted(before, before[first] + most, side="right")) - 1
            until = max(until, first + 1)
            yield first, until - first, int(before[until] - before[first])
            first = until

    # --- shared intersections

    def _with_shares(self, number: int, table: Table, done: float, share: float) -> Iterator[Table]:
        """Make the shares of a table's rows, as many rows at a time as there is memory for, and go on."""
        shares = self._levels.shares_after(number)
        makes_rows = number == self._levels.row_levels - 1
        if makes_rows:
            self._matches = self._tallies
        if not shares:
            yield from self._extend(number + 1, table, done, share)
            return
        for begin, end in self._room_for(shares, table):
            part = Table(table.cells, table.stride, table.at + begin, end - begin, table.width)
            for wanted in shares:
                self._make(wanted, part)
            if makes_rows:
                self._matches = self._tallies[begin:end]
            width = share / table.rows
            yield from self._extend(number + 1, part, done + width * begin, width * part.rows)
            for wanted in shares:
                del self._made.arrays[wanted.slot]

    def _room_for(self, shares: tuple[Share, ...], table: Table) -> Iterator[tuple[int, int]]:
        """Divide rows so that each part's elements, for the largest share, are about a span."""
        made = self._made.addresses()
        cuts = {0, table.rows}
        for share in shares:
            if any(source.slot == other.slot for other in shares for source in share.lists):
                continue  # what it is made of is not there yet, and it has fewer elements
            level = Level(share.slot, share.lists)
            cells = self._memory.upload(self._levels.share_descriptor(share, made, self._view))
            elements = self._kernels.elements(cells, level, table)
            span = min(self._span, self._share_span)
            if elements.total > span:
                cuts |= set(self._kernels.rows_at(elements, table, 0, elements.total, span).get().tolist())
        yield from pairwise(sorted(cuts))

    def _make(self, share: Share, table: Table) -> None:
        level = Level(share.slot, share.lists, columns=(share.slot,))
        descriptor = self._levels.share_descriptor(share, self._made.addresses(), self._view)
        elements = self._kernels.elements(self._memory.upload(descriptor), level, table)
        offsets = self._memory.empty(table.rows + 1, np.int64)
        if elements.total == 0:
            offsets[:] = 0
            values = self._memory.empty(1, self._dtype)
        else:
            marks = self._kernels.marks(level, table, elements, 0, elements.total, write=True)
            tiles = -(-elements.total // self._sizes.tile)
            values = self._kernels.combine(table, elements, marks, 0, tiles, marks.found, 1).cells
            arguments = (elements.offsets, table.rows, marks.bits, marks.positions, offsets)
            self._kernels.launch("row_offsets", table.rows + 1, *arguments)
        self._made.arrays[share.slot] = (values, offsets)
