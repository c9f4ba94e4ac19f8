"""Copies of the lists in a device's memory, which take batches in place.

A list is a segment of a pool, sorted, with free space behind it, like the packed memory array of GAMMA §V-C, whose
segments hold the edges of many vertices.  Against levels (a sorted base, and deltas beside it) speaks that every search
would look into each of them, and reads far outnumber writes; what a write moves is one list, at the memory's speed.
A batch so takes time proportional to its changes and to the lists that they are in.  Lists that have a bitmap on the
host when the copy is made have one here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphdb.gpu.code.launch import BLOCK
from graphdb.gpu.data.graph import address
from graphdb.incremental import frame
from graphdb.incremental.device.layout import CHANGE, LISTS, ROW

if TYPE_CHECKING:
    from graphdb.gpu.code.launch import Device
    from graphdb.incremental.lists import Lists

Ints = NDArray[np.int64]

_NO_KEY = np.uint64((1 << 64) - 1)
_LEAST_PLACES = 1 << 8
_SPARE = 4
"""A pool has so many parts, and one more that is free at first."""
_RANKERS = 8
"""``RANKERS`` of ``delta_lists.cu``."""
RANKED = 1 << 14
"""Changes at most that are sorted by counting those before each: that is one launch, which takes no longer."""
LARGEST = 1 << 31
"""Entries that a pool may have at most: places are 32 bits wide."""


def device_bytes(lists: Lists) -> int:
    """Return about what a copy of the lists takes."""
    image = lists.image()
    entries = len(image.neighbours) * 8 * (_SPARE + 1) // _SPARE
    return entries + image.rows.nbytes + 16 * len(image.late) * len(ROW) + image.table.nbytes


@dataclass(frozen=True, slots=True)
class Staged:
    """A batch in the lists, by arrays on the device.

    Attributes
    ----------
    changes
        int32 [count, 5]: entries, each in one version alone.
    keys, order
        int64 [count]: the list and far end of each, and what sorts them.
    starts
        Where the changes of each list begin among those sorted; behind them ``count``.
    places
        int32 [count]: by change sorted, its place in its list.
    groups
        Lists that change.
    parallel
        By relation, how many entries more than pairs of vertices it has, on the host.
    """

    changes: Any
    count: int
    keys: Any
    order: Any
    starts: Any
    places: Any
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
        self._followed: tuple[int, int] | None = None
        self._late_used = 0
        """Rows out of range, at most."""
        self._module = device.module("delta_lists", {}, check=check)
        image, upload, empty = lists.image(), device.memory.upload, device.memory.empty
        self._in_range, self._used = image.in_range, len(image.neighbours) // frame.UNIT
        pool = len(image.neighbours) + len(image.neighbours) // _SPARE + BLOCK
        self._neighbours, self._codes = (self._longer(found, pool) for found in (image.neighbours, image.codes))
        self._ranges = upload(image.ranges)
        self._constants = [
            upload(table) for table in (image.counter_starts, image.counters, image.vertices, image.needs)
        ]
        self._table, self._marks = upload(image.table), upload(image.marks)
        self._parallel = upload(image.parallel)
        self._told = device.pinned((3 + len(image.parallel),), np.int64)
        """What the device tells the host of a batch."""
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
        upload, count = self._device.memory.upload, len(changes)
        moved, left = upload(changes), upload(np.array([count], np.int64))
        return self._merge(moved, count, address(left), *self._sorted(moved, count), there)

    def stage_updates(self, updates: Ints) -> Staged:
        """Put the entries of updates into the new version, or take them out of it, as the host's ``stage`` does.

        ``updates`` are [updates, 4], as :meth:`..lists.Lists` numbers labels and vertices.  Of an entry that several
        change, the last one counts; what changes nothing is left out.
        """
        memory, device = self._device.memory, self._device
        self._follow(self._host.rows_out_of_range)
        moved, numbers = memory.upload(updates, np.int32), memory.empty(len(updates), np.int64)
        self._launch("count_entries", len(updates), self._cells, moved, len(updates), numbers)
        places = device.offsets(numbers)
        late, count = divmod(device.last(places), 1 << 32)
        self._follow(self._late_used + late)
        self._late_used += late
        changes = memory.empty((count, len(CHANGE)), np.int32)
        self._launch("expand", len(updates), self._cells, moved, len(updates), places, changes)
        keys, order = self._sorted(changes, count)
        wanted = memory.empty(count, np.int64)
        self._launch("find_wanted", count, self._cells, changes, keys, order, count, wanted)
        places = device.offsets(wanted)
        found, sorted_keys = memory.empty((count, len(CHANGE)), np.int32), memory.empty(count, np.int64)
        identity = memory.empty(count, np.int64)
        self._launch("gather", count, changes, keys, order, count, places, found, sorted_keys, identity)
        left = address(places) + count * places.itemsize
        return self._merge(found, count, left, sorted_keys, identity, there=False)

    def _sorted(self, changes: Any, count: int) -> tuple[Any, Any]:
        """Return the keys of changes, and what sorts them: which is stable."""
        keys = self._device.memory.empty(count, np.int64)
        self._launch("locate", count, self._cells, changes, count, keys)
        if count <= RANKED:
            order = self._device.memory.empty(count, np.int64)
            self._launch("rank", _RANKERS * count, changes, keys, count, order)
            return keys, order
        order = keys.argsort()
        self._launch("untie", count, changes, keys, count, order)
        return keys, order

    def _merge(self, changes: Any, bound: int, left: int, keys: Any, order: Any, there: bool) -> Staged:
        """Merge entries, each of which changes, into the lists, if they are not there already.

        There are at most ``bound``, and so many as the number says whose address on the device is ``left``.
        """
        memory, device = self._device.memory, self._device
        sums, places = memory.empty(bound + 1, np.int64), memory.empty(bound, np.int32)
        starts, units = (memory.empty(bound + 1, np.int64) for _ in range(2))
        self._launch("group", bound, changes, keys, order, left, bound, sums[1:])
        device.sum_up(sums[1:], sums)
        self._launch("place", bound, self._cells, changes, keys, order, left, sums, int(there), starts, places)
        if not there:
            self._launch("space", bound, self._cells, keys, order, starts, left, bound, sums, units[1:])
            device.sum_up(units[1:], units)
        told = self._told
        needed = 0 if there else address(units) + bound * units.itemsize
        answer = (len(told) - 3, int(told.ctypes.data))
        self._launch("tell", 1, self._cells, left, sums, needed, *answer)
        device.stream.synchronize()
        count, groups, more = told[:3].tolist()
        staged = Staged(changes, count, keys, order, starts, places, groups, told[3:].copy())
        if not there:
            self._reserve(self._used + more)
            tables = (changes, keys, order, starts, sums, places, units)
            self._launch("merge", 32 * groups, self._cells, *tables, self._used, groups)
            self._used += more
            self._encode(staged)
        return staged

    def finish(self, staged: Staged, version: int) -> None:
        """End a batch: ``NEW`` commits it, ``OLD`` rolls it back."""
        tables = (staged.changes, staged.keys, staged.order, staged.starts, staged.places)
        self._launch("finish", 32 * staged.groups, self._cells, *tables, staged.groups, version)
        self._encode(staged)

    def _encode(self, staged: Staged) -> None:
        own = (staged.changes, staged.order, staged.starts, staged.groups)
        self._launch("encode", staged.groups, self._cells, *own)

    def _launch(self, kernel: str, threads: int, *arguments: Any) -> None:
        self._module.launch(kernel, -(-threads // BLOCK), *arguments)

    def _follow(self, late: int) -> None:
        """Have space for the vertices that the host has by now, and for so many rows out of range."""
        host, upload, empty = self._host, self._device.memory.upload, self._device.memory.empty
        stride = host.vertices.capacity
        if stride > self._table.shape[1]:
            table = empty((self._table.shape[0], stride), np.uint64)
            table.fill(0)
            table[:, : self._table.shape[1]] = self._table
            self._table = table
        if self._followed != (state := (host.vertices.state, len(host.labels))):
            self._ends, self._followed = upload(host.vertices.ends.reshape(-1)), state
            self._forwards, self._backwards = (upload(table.reshape(-1)) for table in host.label_bits)
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
