"""Which batches a device searches, and how its lists follow the host's."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphdb.common.errors import DeviceError, MemoryLimitError
from graphdb.gpu.code.launch import faults
from graphdb.incremental import frame
from graphdb.incremental.delta_plan import VertexStep
from graphdb.incremental.device.lists import DeviceLists, Staged, device_bytes
from graphdb.incremental.device.search import DeviceProgram, DeviceSearch
from graphdb.incremental.lists import NARROW
from graphdb.plan.strategy.ski_rental import Bias

if TYPE_CHECKING:
    from graphdb.gpu.code.launch import Device
    from graphdb.incremental.lists import Lists
    from graphdb.incremental.searches import Searches, Take

Ints = NDArray[np.int64]
Changes = NDArray[np.int32]
_Found = TypeVar("_Found")

FEWEST = 1 << 10
"""Records of a batch that is worth a look at what it is expected to take."""
HOST_BINDING = 3e-8
"""Seconds that the host takes for a binding, about, in one thread: what it takes is learned from its runs."""
START = 2e-3
"""Seconds that the smallest batch takes on a device, …"""
RECORD = 2e-8
"""… so many for each record more, to be sent and merged, …"""
BINDING = 1e-9
"""… and for each binding."""
MOST_AHEAD = 1 << 20
"""Updates that the device has had at most before the host does."""
OPENING = 1.0
"""Seconds until a device is open and its kernels are compiled; …"""
LINK = 3e9
"""… and bytes of the lists that go there in one."""
_LOGGED = 4
"""A copy that would have to make up for more than one part in so many of its entries is dropped."""
_log = logging.getLogger("graphdb")


class DeviceMatching:
    """Searches large batches on a device.

    Parameters
    ----------
    device
        Opens it; None where there is none.
    lists, threads
        The host's lists, and how many threads search them else.
    put
        Stages updates in the host's lists.
    pinned
        Whether all batches are searched there, whatever they are expected to take.
    """

    def __init__(
        self,
        device: Callable[[], Device | None],
        lists: Lists,
        put: Callable[[Ints], None],
        threads: int = 1,
        *,
        pinned: bool = False,
    ) -> None:
        self._opens, self._lists, self._put = device, lists, put
        self._threads, self._pinned = threads, pinned
        self._copy: DeviceLists | None = None
        self._search: DeviceSearch | None = None
        self._staged: Staged | None = None
        self._behind: list[Changes] = []
        """What the copy has not had yet of what was committed."""
        self._behind_count = 0
        self._alone: Ints | None = None
        """The updates of the batch under way, where the device has it and the host does not."""
        self._committed = False
        """Whether the device has committed the batch under way already."""
        self._ahead: list[Ints] = []
        """Updates of batches, committed, that the host has not had yet, …"""
        self._ahead_count = 0
        """… and how many they are."""
        self._usual = 0.0
        """Bindings that are expected for each update, as of the latest batch that the host staged."""
        self._given_up = lists.like.dtype != np.int32 or lists.relations.vertices > NARROW
        self._programs: dict[int, DeviceProgram] = {}
        self._made_for: Searches | None = None
        self._weights: NDArray[np.float64] = np.empty(0)
        self._host_bias, self._device_bias = Bias(), Bias()
        self._missed = 0.0
        self._merging: tuple[Any, Any] = (None, None)
        self.updates = 0
        """Of the batch that the host has staged."""
        self.batches = 0
        """Batches that were searched on the device."""
        self.place = "cpu"
        """Where the latest batch was searched: ``"cpu"`` or ``"cuda:0"`` and so on."""
        self.merged = self.searched = 0.0
        """Milliseconds of the device: for the latest batch to be merged into the lists, and to be searched."""
        self.stolen = 0
        """Pieces of work that its warps left to others."""
        self.steal = True
        """Whether warps without work take some from others; read when a copy is made."""

    @property
    def follows(self) -> bool:
        """Whether it must see every batch: the device has a copy of the lists, or is to have one."""
        return self._copy is not None or (self._pinned and not self._given_up)

    @property
    def copy_bytes(self) -> int:
        """What the copy takes on the device; 0 without one."""
        return 0 if self._copy is None else self._copy.bytes

    # --- a batch that the device alone has

    def takes(self, count: int) -> bool:
        """Whether a batch of so many updates is to be staged and searched on the device alone (:meth:`stage`)."""
        copy = self._copy
        if copy is None or copy.device.memory.streaming:
            return False
        if self._ahead_count + count > MOST_AHEAD:
            return False
        return self._pinned or (count >= FEWEST and self._pays(self._usual * count))

    def stage(self, updates: Ints) -> bool:
        """Stage a batch on the device alone: the host follows when it is needed.  False where the device fails."""
        copy = self._copy
        if copy is None:
            return False
        try:
            with faults(), copy.device.active():
                self._catch_up(copy)
                begin = copy.device.event()
                self._staged, self._alone = copy.stage_updates(updates), updates
                self._merging = begin, copy.device.event()
        except (DeviceError, MemoryLimitError) as error:
            self._give_up(error)
            return False
        except BaseException:
            self._drop()
            raise
        return True

    def behind(self) -> Ints | None:
        """Return the updates that the host has not had, which it is to commit; None where there are none."""
        found, self._ahead, self._ahead_count = self._ahead, [], 0
        return np.concatenate(found) if found else None

    # --- a batch that is staged

    def rows(self, searches: Searches, check: Callable[[], None], take: Take) -> None:
        """Find what a staged batch changes: see :meth:`..searches.Searches.rows`.

        A device counts whole matches, or enumerates them; what is partly enumerated and partly counted, the host finds.
        """
        counted = searches.counted
        if counted and not any(pattern.outputs for pattern in searches.patterns):
            for number, (gained, lost) in enumerate(self.counts(searches, check)().tolist()):
                if rows := [[version, n] for version, n in ((frame.NEW, gained), (frame.OLD, lost)) if n]:
                    take(number, np.array(rows, np.int64))
            return

        def on_device(search: DeviceSearch, staged: Staged, expected: float) -> Callable[[], None]:
            self._staged = staged = search.lists.settle(staged)
            programs = self._programs_of(searches, staged.parallel)
            found = [search.rows(program, staged, check) for program in programs]
            self._note(search, expected)

            def hand_over() -> None:
                for number, rows in enumerate(found):
                    if len(rows):
                        take(number, rows)

            return hand_over

        def on_host(check: Callable[[], None]) -> Callable[[], None]:
            searches.rows(check, take)
            return lambda: None

        self._choose(searches, check, None if counted else on_device, on_host)()

    def counts(self, searches: Searches, check: Callable[[], None]) -> Callable[[], Ints]:
        """Begin to count what a staged batch changes; return what waits for it: [patterns, 2], matches gained and lost.

        The batch may be ended meanwhile, and the next one be staged on the host (§IV-A).
        """

        def on_device(search: DeviceSearch, staged: Staged, expected: float) -> Callable[[], Ints]:
            # It most likely has space, and no parallel edges that there were none of: who waits to know loses time.
            programs = self._programs_of(searches, staged.parallel)
            running = [search.count(program, staged, check) for program in programs]
            self._staged = settled = search.lists.settle(staged)
            suited = self._programs_of(searches, settled.parallel)
            if settled is not staged or suited != programs:
                running = [search.count(program, settled, check) for program in suited]

            def found() -> Ints:
                try:
                    with faults(), search.device.active():
                        if self._alone is not None and self._staged is settled:  # the device goes on to that at once
                            search.lists.finish(settled, frame.NEW)
                            self._committed = True
                        # The last one first: who stops it has stopped all before it.
                        each = [search.wait(one, check) for one in reversed(running)][::-1]
                        self._note(search, expected)
                except DeviceError as error:
                    self._give_up(error)
                    raise
                return np.array([[one.gained, one.lost] for one in each], np.int64).reshape(-1, 2)

            return found

        def on_host(check: Callable[[], None]) -> Callable[[], Ints]:
            found = searches.counts(check)
            return lambda: found

        return self._choose(searches, check, on_device, on_host)

    def end(self, version: int) -> None:
        """Commit or roll back, before the host does."""
        staged, self._staged = self._staged, None
        alone, self._alone = self._alone, None
        committed, self._committed = self._committed, False
        if alone is not None and version == frame.NEW:
            self._ahead.append(alone)
            self._ahead_count += len(alone)
        if self._copy is None:
            return
        if committed:
            if version == frame.OLD:  # the copy has what is not to be
                self._drop()
            return
        try:
            if staged is not None:
                with faults(), self._copy.device.active():
                    self._copy.finish(staged, version)
            elif version == frame.NEW:
                self._log_changes()
        except (DeviceError, MemoryLimitError) as error:
            self._give_up(error)

    # --- choice

    def _choose(
        self,
        searches: Searches,
        check: Callable[[], None],
        on_device: Callable[[DeviceSearch, Staged, float], _Found] | None,
        on_host: Callable[[Callable[[], None]], _Found],
    ) -> _Found:
        """Search a batch where it is expected to be done first; on the host where the device fails, or does not."""
        work = self._work(searches)
        if on_device is not None and work and (self._alone is not None or self._pays(work)):
            try:
                with faults():
                    found = self._on_device(on_device, self._device_seconds(work), check)
            except (DeviceError, MemoryLimitError) as error:
                self._give_up(error)
            else:
                if found is not None:
                    self.batches += 1
                    return found
        if self._alone is not None:
            updates, self._alone = self._alone, None
            self._put(updates)
        self.place = "cpu"
        started = time.perf_counter()
        result = on_host(check)
        if work:
            self._host_bias.note(self._host_seconds(work), time.perf_counter() - started)
        return result

    def _note(self, search: DeviceSearch, expected: float) -> None:
        """Note what a batch took on the device, and how many seconds were expected, once it is searched."""
        self.merged = search.device.milliseconds(*self._merging)
        self.searched, self.stolen = search.milliseconds, search.stolen
        self._device_bias.note(expected, START + (self.merged + self.searched) / 1e3)

    def _work(self, searches: Searches) -> float:
        """Return how many bindings a batch is expected to search; 0 where it is not worth a look."""
        worth = self._alone is not None or self._pinned or len(self._lists.records) >= FEWEST
        if self._given_up or not worth:
            return 0.0
        if self._made_for is not searches:
            self._made_for, self._programs, self._weights = searches, {}, self._weigh(searches)
        if self._alone is not None:
            return max(self._usual * len(self._alone), 1.0)
        numbers = np.bincount(self._changed()[:, 0], minlength=len(self._weights))
        work = float(numbers @ self._weights)
        self._usual = work / max(self.updates, 1)
        return work

    def _weigh(self, searches: Searches) -> NDArray[np.float64]:
        """Return by relation how many bindings are expected for each changed entry."""
        weights, sizes = np.zeros(len(self._lists.sizes)), self._lists.sizes
        for search in searches.chosen():
            for orders in search.program.plans:
                plan, first = orders[0], next((s for s in orders[0].steps if isinstance(s, VertexStep)), None)
                fans = (
                    [sizes[leg.relation].entries / max(1, sizes[leg.relation].near) for leg in first.legs]
                    if first
                    else []
                )
                weights[plan.relation] += 1 + plan.work * min(fans, default=1.0)
        return weights

    def _host_seconds(self, work: float) -> float:
        return work * HOST_BINDING / (1 + (self._threads - 1) / 2)

    def _device_seconds(self, work: float) -> float:
        return START + len(self._lists.records) * RECORD + work * BINDING

    def _pays(self, work: float) -> bool:
        """Whether to search a batch on the device: without a copy once what it would have saved makes up for one."""
        if self._pinned:
            return True
        saved = self._host_seconds(work) * self._host_bias.factor
        saved -= self._device_seconds(work) * self._device_bias.factor
        if self._copy is not None or saved <= 0:
            return saved > 0
        self._missed += saved
        return self._missed >= OPENING + device_bytes(self._lists) / LINK

    # --- the copy

    def _on_device(
        self, search: Callable[[DeviceSearch, Staged, float], _Found], expected: float, check: Callable[[], None]
    ) -> _Found | None:
        """Stage a batch on the device and search it there; None where there is no device, or not now."""
        device = self._opens() if self._copy is None else self._copy.device
        if device is None:
            self._given_up = True
            return None
        if self._alone is None and device.memory.streaming:  # who takes those matches away may be who waits
            return None
        with device.active():
            if self._alone is None:
                self._stage(device, check)
            own = self._search
            assert own is not None
            assert self._staged is not None
            own.milliseconds, own.stolen = 0.0, 0
            self.place = f"cuda:{device.number}"
            return search(own, self._staged, expected)

    def _stage(self, device: Device, check: Callable[[], None]) -> None:
        """Stage a batch that the host has staged; make the copy where there is none."""
        if fresh := self._copy is None:
            if device_bytes(self._lists) > device.memory.reserve(device_bytes(self._lists)) // 2:
                raise MemoryLimitError("the lists of continuous queries take more than half of the device's memory")
            self._copy = DeviceLists(device, self._lists, check)
            self._search = DeviceSearch(self._copy, steal=self.steal)
            self._behind, self._behind_count = [], 0
        try:
            self._catch_up(self._copy)
            changes = self._changed(cancelled=fresh)
            begin = device.event()
            self._staged = self._copy.stage(changes, there=fresh)
            self._merging = begin, device.event()
        except BaseException:
            self._drop()
            raise

    def _programs_of(self, searches: Searches, parallel: Ints) -> list[DeviceProgram]:
        """Return the programs that search relations of so many parallel edges, with their tables on the device."""
        found = []
        assert self._copy is not None
        for search in searches.suited(parallel):
            known = self._programs.get(id(search))
            if known is None:
                known = self._programs[id(search)] = DeviceProgram(self._copy.device, search.program, search.table_row)
            found.append(known)
        return found

    def _changed(self, *, cancelled: bool = False) -> Changes:
        """Return the entries that the batch under way changes; ``cancelled``: also those in neither version."""
        from graphdb.incremental.kernels.batch_kernels import pack_records

        packed = np.empty((len(self._lists.records), frame.CHANGE_CELLS), np.int32)
        return packed[: pack_records(self._lists.address, packed, int(cancelled))]

    def _log_changes(self) -> None:
        """Have the copy follow a batch that the host searched, when it is next needed."""
        assert self._copy is not None
        changed = self._changed()
        if len(changed):
            self._behind.append(changed.copy() if len(changed) < len(self._lists.records) else changed)
            self._behind_count += len(changed)
        if self._behind_count > self._copy.entries // _LOGGED + FEWEST:
            self._drop()

    def _catch_up(self, copy: DeviceLists) -> None:
        """Have the copy be as the host's lists were before the batch under way."""
        if not self._behind:
            return
        changes = _net(np.concatenate(self._behind))
        self._behind, self._behind_count = [], 0
        if len(changes):
            copy.finish(copy.stage(changes), frame.NEW)

    def _drop(self) -> None:
        """Forget the copy."""
        self._copy = self._search = self._staged = None
        self._behind, self._behind_count, self._programs, self._missed = [], 0, {}, 0.0
        self._made_for = None

    def _give_up(self, error: Exception) -> None:
        """Have the host search from now on."""
        self._drop()
        self._given_up = True
        _log.warning("batches of continuous queries are searched on the CPU: %s", error)


def _net(changes: Changes) -> Changes:
    """Return what several batches, one after the other, change in all."""
    order = np.lexsort((changes[:, 3], changes[:, 2], changes[:, 1], changes[:, 0]))  # which is stable
    entries = changes[order]
    new = np.append(True, (entries[1:, :4] != entries[:-1, :4]).any(axis=1))
    first = np.flatnonzero(new)
    last = np.append(first[1:], len(entries)) - 1
    changed = entries[first, 4] == entries[last, 4]  # what was inserted first was not there before
    return np.ascontiguousarray(entries[last[changed]])
