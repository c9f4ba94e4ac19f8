"""Copies of the lists in a device's memory, which take batches in place.

A list is a segment of a pool, sorted, with free space behind it, like the packed memory array of GAMMA §V-C, whose
segments hold the edges of many vertices.  Against levels (a sorted base, and deltas beside it) speaks that every search
would look into each of them, and reads far outnumber writes; what a write moves is one list, at the memory's speed.
A batch so takes time proportional to its changes and to the lists that they are in.  Lists that have a bitmap on the
host when the copy is made have one here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from graphdb.gpu.code.launch import BLOCK
from graphdb.gpu.data.graph import address
from graphdb.incremental import frame
from graphdb.incremental.device.layout import BATCH, BATCH_BYTES, LISTS, ROW

if TYPE_CHECKING:
    from graphdb.gpu.code.launch import Device
    from graphdb.incremental.lists import Lists

Ints = NDArray[np.int64]

_NO_KEY = np.uint64((1 << 64) - 1)
_LEAST_PLACES = 1 << 8
_SPARE = 4
"""A pool has so many parts, and one more that is free at first; …"""
_LEAST_SPARE = 1 << 8
"""… and so many entries more."""
_RANKERS = 8
"""``RANKERS`` of ``delta_lists.cu``."""
RANKED = 1 << 14
"""Updates at most whose entries are sorted by counting those before each: that is one launch, which takes no longer."""
UNCOUNTED = 1 << 18
"""Entries at most for which there is space before it is known how many there are: what they take is some 30 MB."""
_BLOCKS = 8
"""Blocks a processor, at most, where the host does not know how much there is to do."""
_ANY = 1 << 62
"""Rows out of range that are given where there are enough."""
_TOLD = 5
"""Numbers that the device tells the host of a batch, before those of each relation."""
LARGEST = 1 << 31
"""Entries that a pool may have at most: places are 32 bits wide."""


def device_bytes(lists: Lists) -> int:
    """Return about what a copy of the lists takes."""
    image = lists.image()
    entries = len(image.neighbours) * 8 * (_SPARE + 1) // _SPARE
    return entries + image.rows.nbytes + 16 * len(image.late) * len(ROW) + image.table.nbytes


@dataclass(slots=True)
class Staged:
    """A batch in the lists, by arrays on the device; the host knows the last three once it is settled.

    Attributes
    ----------
    batch
        The address of ``Batch``.
    changes
        The address of int32 [count, 5]: entries, each in one version alone, sorted by list and far end.
    starts
        The address of where the changes of each list begin; behind them ``count``.
    held
        The memory of all that.
    given, bound
        How many updates or entries there were, and how many changes there are at most.
    rows
        The updates; None where it was entries.
    there
        Whether the lists had the changes already.
    answered
        When the device has told of it; None once it is settled.
    count, groups
        Changes, and lists that change.
    parallel
        By relation, how many entries more than pairs of vertices it has.
    """

    batch: int
    changes: int
    starts: int
    held: Any
    given: int
    bound: int
    rows: Ints | None
    there: bool
    answered: Any
    count: int
    groups: int
    parallel: Ints


class DeviceLists:
    """The lists of standing patterns on one device.

    Parameters
    ----------
    device, lists
        Where, and of what: the copy is as they are now, also within a batch.
    check
        Called while kernels are compiled; may raise.

    Raises
    ------
    MemoryLimitError
        The device has too little memory.  The same holds for all methods; the copy is useless then.
    """

    def __init__(self, device: Device, lists: Lists, check: Callable[[], None]) -> None:
        self._device, self._host = device, lists
        self._written: list[int] = []
        self._ends = self._forwards = self._backwards = None
        self._followed: tuple[int, int, int] | None = None
        self._late_used = 0
        """Rows out of range, at most."""
        self._module = device.module("delta_lists", {}, check=check)
        image, upload, empty = lists.image(), device.memory.upload, device.memory.empty
        self._in_range, self._used = image.in_range, len(image.neighbours) // frame.UNIT
        pool = len(image.neighbours) + len(image.neighbours) // _SPARE + _LEAST_SPARE
        self._neighbours, self._codes = (self._longer(found, pool) for found in (image.neighbours, image.codes))
        self._ranges = upload(image.ranges)
        self._constants = [
            upload(table) for table in (image.counter_starts, image.counters, image.vertices, image.needs)
        ]
        self._table, self._marks = upload(image.table), upload(image.marks)
        self._parallel = upload(image.parallel)
        self.parallel: Ints = image.parallel.copy()
        """What a :class:`Staged` has of that name, as of the latest batch that was settled."""
        self._told = device.pinned((_TOLD + len(image.parallel),), np.int64)
        """What the device tells the host of a batch."""
        self._sent = device.pinned((len(BATCH),), np.int64)
        """What the host sends of one."""
        self._ways = 0
        """Entries that an update has at most."""
        self._late_places = _LEAST_PLACES
        while self._late_places < 2 * len(image.late):
            self._late_places *= 2
        self._rows = empty((self._in_range + self._late_places, len(ROW)), np.int32)
        self._rows.fill(0)
        self._rows[: self._in_range] = upload(image.rows[: self._in_range])
        self._late = upload(np.full(self._late_places, _NO_KEY))
        self._write()
        if len(image.late):
            self._adopt(upload(image.late[:, 0].astype(np.uint64)), upload(image.rows[image.late[:, 1]]))

    @property
    def cells(self) -> Any:
        """``Lists`` of the kernels: its address stays the same until the next batch is staged."""
        return self._cells

    @property
    def device(self) -> Device:
        """Where it is."""
        return self._device

    @property
    def entries(self) -> int:
        """Entries that its pool has space for."""
        return len(self._neighbours)

    @property
    def bytes(self) -> int:
        """What its arrays take."""
        arrays = (
            self._neighbours,
            self._codes,
            self._rows,
            self._late,
            self._table,
            self._marks,
            self._ranges,
            *self._constants,
        )
        return sum(int(array.nbytes) for array in arrays)

    def stage(self, changes: NDArray[np.int32], *, there: bool = False) -> Staged:
        """Put entries into the new version, or take them out of it; ``there``: the copy was made with them."""
        self._follow(self._host.rows_out_of_range)
        return self._stage(changes, len(changes), "entries", _ANY, there=there, sort=len(changes) > RANKED)

    def stage_updates(self, updates: Ints) -> Staged:
        """Put the entries of updates into the new version, or take them out of it, as the host's ``stage`` does.

        ``updates`` are [updates, 4], as :meth:`..lists.Lists` numbers labels and vertices.  Of an entry that several
        change, the last one counts; what changes nothing is left out.  Counts may begin at once; else it is to be
        settled first.
        """
        self._follow(self._host.rows_out_of_range)
        bound = self._ways * len(updates)
        if len(updates) <= RANKED and bound <= UNCOUNTED:
            return self._stage(updates, bound, "updates", self._late_places // 2 - self._late_used)
        return self._stage_counted(updates)

    def settle(self, staged: Staged) -> Staged:
        """Wait until the host knows a batch, and return it: another one where something had no space and now has.

        What was counted of the first one is void then.
        """
        if staged.answered is None:
            return staged
        staged.answered.synchronize()
        staged.answered = None
        left, units, full, waiting, late = self._told[:_TOLD].tolist()
        self.parallel = self._told[_TOLD:].copy()
        if full:
            assert staged.rows is not None
            self._over("leave", staged.bound, self._cells, staged.batch)
            return self.settle(self._stage_counted(staged.rows))
        if staged.rows is not None:
            self._late_used += late
        if not staged.there:
            self._used = units
        groups, count = divmod(left, 1 << 32)
        staged.count, staged.groups, staged.parallel = count, groups, self.parallel
        if not waiting:
            return staged
        self._reserve(units)
        self._over("merge_rest", 32 * groups, self._cells, staged.batch)
        self._over("encode", groups, self._cells, staged.batch, 0, 0)
        return replace(staged)

    def _stage_counted(self, updates: Ints) -> Staged:
        """Stage updates once it is known how many entries they have."""
        batch, held = self._send(updates, 0, "updates")
        self._over("count_entries", len(updates), self._cells, batch)
        self._module.launch("tell_entries", 1, batch, int(self._told.ctypes.data), threads=1)
        self._device.stream.synchronize()
        count, late = self._told[:2].tolist()
        del held
        self._follow(self._late_used + late)
        return self._stage(updates, count, "updates", _ANY, sort=len(updates) > RANKED)

    def _stage(
        self,
        rows: Ints | NDArray[np.int32],
        bound: int,
        given: str,
        late_room: int,
        *,
        there: bool = False,
        sort: bool = False,
    ) -> Staged:
        """Have what changes by updates, or by entries, merged into the lists.

        Parameters
        ----------
        rows, given
            What is given, and of which name in ``Batch``.
        bound
            Entries at most.
        late_room
            Entries of vertices out of range that may get rows.
        there
            Whether the lists have the changes already.
        sort
            Whether the entries, which are ``bound`` then, are sorted together, not each in its list.
        """
        cells, of_updates = self._cells, given == "updates"
        batch, (held, places) = self._send(rows, bound, given, there=int(there), late_room=late_room)
        self._over("expand" if of_updates else "locate", len(rows), cells, batch)
        if sort:
            order = held[places["keys"] : places["keys"] + bound].argsort()
            self._launch("untie", bound, batch, order)
            self._launch("line_up", bound, cells, batch, order)
        else:
            self._over("divide", bound, cells, batch)
            self._over("deal", bound, cells, batch)
            self._over("rank", _RANKERS * bound, cells, batch)
        self._over("merge", 32 * bound, cells, batch)
        told = self._told
        self._over("encode", max(bound, 1), cells, batch, int(told.ctypes.data), len(told) - _TOLD)
        changes, starts = (address(held) + 8 * places[name] for name in ("changes", "starts"))
        kept = cast("Ints", rows) if of_updates else None
        answered = self._device.event()
        return Staged(batch, changes, starts, held, len(rows), bound, kept, there, answered, 0, 0, self.parallel)

    def _send(
        self, rows: Ints | NDArray[np.int32], bound: int, given: str, **cells: int
    ) -> tuple[int, tuple[Any, dict[str, int]]]:
        """Send a batch; return the address of ``Batch``, its memory, and where in it each array begins, in words."""
        head = len(BATCH) + -(-rows.size // 2)
        places, end = dict[str, int](), head
        for name, width in BATCH_BYTES.items():
            if name != given:
                end += end % 2  # those of 16 bytes are read at once
                places[name] = end
                end += -(-width * (bound + 1) // 8)
        places[given] = len(BATCH)
        memory = self._device.memory
        held = memory.empty(end, np.int64)
        base = address(held)
        values = {name: base + 8 * place for name, place in places.items()}
        values |= {"count": len(rows), "room": len(self._neighbours) // frame.UNIT, "units": self._used, **cells}
        if len(self._sent) < head:
            self._sent = self._device.pinned((2 * head,), np.int64)
        self._sent[: len(BATCH)] = [values.get(name, 0) for name in BATCH]
        self._sent[len(BATCH) : head].view(np.int32)[: rows.size] = rows.reshape(-1)
        memory.copied(base, int(self._sent.ctypes.data), 8 * head, self._device.stream)
        return base, (held, places)

    def finish(self, staged: Staged, version: int) -> None:
        """End a batch: ``NEW`` commits it, ``OLD`` rolls it back."""
        staged = self.settle(staged)
        self._launch("finish", 32 * staged.groups, self._cells, staged.batch, version)
        self._launch("encode", staged.groups, self._cells, staged.batch, 0, 0)

    def _launch(self, kernel: str, threads: int, *arguments: Any) -> None:
        self._module.launch(kernel, -(-threads // BLOCK), *arguments)

    def _over(self, kernel: str, most: int, *arguments: Any) -> None:
        """Launch a kernel that goes on by as many threads as there are, for what takes at most so many."""
        self._module.launch(kernel, min(-(-most // BLOCK), _BLOCKS * self._device.processors), *arguments)

    def _follow(self, late: int) -> None:
        """Have space for the vertices that the host has by now, and for so many rows out of range."""
        host, upload, empty = self._host, self._device.memory.upload, self._device.memory.empty
        stride, state = host.vertices.capacity, (host.vertices.state, host.vertices.count, len(host.labels))
        if self._followed == state and 2 * max(late, self._late_used) <= self._late_places:
            self._late_used = max(self._late_used, host.rows_out_of_range)
            return  # as before nearly every batch
        if stride > self._table.shape[1]:
            table = empty((self._table.shape[0], stride), np.uint64)
            table.fill(0)
            table[:, : self._table.shape[1]] = self._table
            self._table = table
        if self._followed != state:
            self._ends, self._followed = upload(host.vertices.ends.reshape(-1)), state
            self._forwards, self._backwards = (upload(table.reshape(-1)) for table in host.label_bits)
            self._ways = _most_ways(*host.label_bits)
        if 2 * max(late, self._late_used) > self._late_places:
            # What updates were counted for may be fewer rows.
            self._late_used = int(np.count_nonzero(self._late.get() != _NO_KEY))
        self._late_used = max(self._late_used, host.rows_out_of_range)
        if 2 * late > self._late_places:
            keys, rows = self._late, self._rows
            while 2 * late > self._late_places:
                self._late_places *= 2
            self._late_places *= 2
            self._late = upload(np.full(self._late_places, _NO_KEY))
            self._rows = empty((self._in_range + self._late_places, len(ROW)), np.int32)
            self._rows.fill(0)
            self._rows[: self._in_range] = rows[: self._in_range]
            self._write()
            self._adopt(keys, rows[self._in_range :])
        self._write()

    def _adopt(self, keys: Any, rows: Any) -> None:
        """Give vertices out of range the rows that they had."""
        self._launch("adopt", len(keys), self._cells, keys, rows, len(keys))

    def _reserve(self, units: int) -> None:
        """Have space in the pool for so many units."""
        size = units * frame.UNIT
        if size <= len(self._neighbours):
            return
        size = max(size, 2 * len(self._neighbours))
        self._neighbours, self._codes = (self._longer(array, size) for array in (self._neighbours, self._codes))
        self._write()

    def _longer(self, array: Any, size: int) -> Any:
        """Return a copy of an array, of the host or the device, in more space."""
        from graphdb.common.errors import MemoryLimitError

        if size >= LARGEST:
            raise MemoryLimitError(f"the lists of continuous queries have {size:,} entries: too many for a device")
        more = self._device.memory.empty(size, np.int32)
        if isinstance(array, type(more)):
            more[: len(array)] = array
        elif len(array):
            more[: len(array)] = self._device.memory.upload(array, np.int32)
        return more

    def _write(self) -> None:
        """Write what the kernels read."""
        starts, counters, vertices, needs = self._constants
        cells = {
            "rows": address(self._rows),
            "neighbours": address(self._neighbours),
            "codes": address(self._codes),
            "ranges": address(self._ranges),
            "late": address(self._late),
            "late_base": self._in_range,
            "late_mask": self._late_places - 1,
            "table": address(self._table),
            "stride": self._table.shape[1],
            "vertices": self._host.vertices.count,
            "counter_starts": address(starts),
            "counters": address(counters),
            "pattern_vertices": address(vertices),
            "needs": address(needs),
            "ends": address(self._ends),
            "forwards": address(self._forwards),
            "backwards": address(self._backwards),
            "words": self._host.words,
            "marks": address(self._marks),
            "parallel": address(self._parallel),
        }
        written = [cells[name] for name in LISTS]
        if written != self._written:
            self._cells, self._written = self._device.memory.upload(np.array(written, np.int64)), written


def _most_ways(*tables: NDArray[np.uint64]) -> int:
    """Return how many bits one row of some tables has at most, all together."""
    bits = np.hstack([np.ascontiguousarray(table).view(np.uint8) for table in tables])
    return int(np.unpackbits(bits, axis=1).sum(axis=1, dtype=np.int64).max(initial=0))
