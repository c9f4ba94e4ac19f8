"""The strategies that enumerate matches on a device: which one a plan takes, its rows and their number.

Strategies are classes with ``run`` and ``count`` for a plan; :data:`STRATEGIES` names them.  Both give the same rows.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Literal, Protocol

import numpy as np

from graphdb.common.errors import MemoryLimitError, QueryTimeout
from graphdb.gpu.beside import SearchesBeside
from graphdb.gpu.code.launch import Device, faults
from graphdb.gpu.data.graph import WHOLE_LISTS, DeviceGraph
from graphdb.gpu.data.residency import copy_of, lists_read
from graphdb.gpu.data.searched import SearchedLists
from graphdb.gpu.join.distinct import reduces
from graphdb.gpu.join.run import Join
from graphdb.gpu.overtaking import Overtaken, UntilReady
from graphdb.gpu.search.reordered import REORDERED
from graphdb.gpu.search.row_queue import RowQueue
from graphdb.gpu.search.run import Search
from graphdb.gpu.stream import HostRows
from graphdb.plan.executor import Block, Control, Refused
from graphdb.plan.physical import PhysicalPlan
from graphdb.plan.strategy.timed_blocks import timed

Hint = Literal["auto", "join", "search", "sums"]


class Strategy(Protocol):
    """A way to run plans on a device."""

    name: str

    def supports(self, plan: PhysicalPlan) -> bool:
        """Whether it can run the plan; the join runs every one."""

    def memory(self, plan: PhysicalPlan) -> int:
        """Bytes that a run takes on the device, besides the graph."""

    def run(self, plan: PhysicalPlan, control: Control, limit: int | None) -> Iterator[HostRows]:
        """Give the matches as blocks of rows, images included.

        ``limit`` bounds the matches that have to be found, before images; slightly more may come.
        """

    def count(self, plan: PhysicalPlan, control: Control, limit: int | None) -> int:
        """How many matches are found, before images; with a limit, that many or more will do."""


STRATEGIES: dict[str, Callable[[Device, DeviceGraph], Strategy]] = {"join": Join, "search": Search}
SUMS, SEARCH = "sums", "search"
"""What overtakes a join."""


class Strategies:
    """The strategies of one device, made when they are first asked for.

    Parameters
    ----------
    device, graph
        Where they run.
    hint
        Which one is pinned, if one is; the join for plans that the search does not run.
    """

    def __init__(self, device: Device, graph: DeviceGraph, hint: Hint) -> None:
        self._device, self._graph, self.hint = device, graph, hint
        self._where = f"cuda:{device.number}"
        self.by_name: dict[str, Strategy] = {}
        self._reading: list[RowQueue] = []
        """Searches whose rows are being read."""
        self._beside: SearchesBeside | None = None
        self._searched = SearchedLists(device.memory, graph.residency)

    def of(self, plan: PhysicalPlan) -> Strategy:
        """The strategy that enumerates a plan's matches: the search where it is requested and possible, else the
        join.
        """
        return self._strategy("search" if self.hint == "search" and not self.no_search(plan) else "join")

    def of_all(self, plan: PhysicalPlan, counting: bool, *, runs: bool = False) -> Strategy:
        """The strategy for all matches of a plan at once: also the search where the join's tables would not fit, once
        it is compiled.  A join that ``runs`` all the same is what that is compiled for.
        """
        found = self.of(plan)
        if self.hint != "auto" or (counting and plan.clique is not None):
            return found
        try:
            if not self.beside.saved(plan, counting) or self.no_search(plan):
                if runs:
                    self.search.passed_over(plan)
                return found
            if self.beside.ready(plan, counting):
                return self._strategy(self.beside.chosen(plan, counting, runs=runs))
            if runs:
                self.beside.missed(plan, counting)
        except Refused as error:
            self.search.refuse(plan, error.message)
        return found

    @property
    def compiling(self) -> bool:
        """Whether a thread compiles a search."""
        return self._beside is not None and self._beside.busy

    @property
    def beside(self) -> SearchesBeside:
        """The searches that are compiled beside joins."""
        if self._beside is None:
            self._beside = SearchesBeside(self._device, self.join, self.search, self._graph.residency)
        return self._beside

    def no_search(self, plan: PhysicalPlan) -> str:
        """Why the search does not run a plan; empty where it does."""
        if plan.row_steps < len(plan.steps):
            return "a row stands for several matches"
        if refused := self.search.refused(plan):
            return refused
        if not self._graph.residency.possible(lists_read(plan, plan.count_only)):
            return "lists that do not fit the device are read by segments"
        if self._device.limits.launch_seconds < math.inf:
            return "a display waits for the device, and a search is one launch"
        return "" if self.search.supports(plan) else "a list is too long"

    def where(self, plan: PhysicalPlan, strategy: str = "join") -> str:
        """Where the lists stand that matches read, as a phrase for EXPLAIN; empty where all are on the device."""
        counting = plan.count_only
        segments = self.join.segments(plan, counting) if strategy == "join" else None
        if segments is not None:
            return segments.describe()
        return self._graph.residency.describe(lists_read(self._as_run(plan, counting, strategy), counting))

    def link_bytes(self, plan: PhysicalPlan, counting: bool, strategy: str) -> float:
        """Bytes that a run by a strategy is expected to copy over the link, or to read there, once its lists stand
        where it reads them.
        """
        residency, rates = self._graph.residency, self._device.rates
        plan = self._as_run(plan, counting, strategy)
        if strategy != "join":
            beside = self.search.beside_lists(plan, counting)
            found = self._searched.link_bytes(plan, counting, beside, rates)
            if found is not None:
                return found
        elif (segments := self.join.segments(plan, counting)) is not None:
            return float(segments.moved)
        return residency.away_seconds(residency.place_for(plan, counting), plan, rates) * rates.linked

    @property
    def join(self) -> Join:
        """The join, which alone tells how many matches a row stands for."""
        found = self._strategy("join")
        assert isinstance(found, Join)
        return found

    @property
    def search(self) -> Search:
        """The search, which remembers the plans that it did not run."""
        found = self._strategy("search")
        assert isinstance(found, Search)
        return found

    def _as_run(self, plan: PhysicalPlan, counting: bool, strategy: str) -> PhysicalPlan:
        """The plan that a strategy runs: in another order, perhaps."""
        other = self.beside.reordered.of(plan, counting) if strategy == REORDERED else None
        return plan if other is None else other.plan

    def _strategy(self, name: str) -> Strategy:
        if name == REORDERED:
            return self.beside.reordered
        if name not in self.by_name:
            self.by_name[name] = STRATEGIES[name](self._device, self._graph)
        return self.by_name[name]

    def run(self, plan: PhysicalPlan, control: Control) -> Iterator[Block]:
        """The rows of all matches that start from the control's share of the roots, block by block."""
        left = limit = control.limit_of(plan)
        with closing(self._blocks(plan, control, ceil_of(limit, len(plan.columns)))) as found:
            while left != 0:
                with faults(self._where):
                    block = next(found, None)
                if block is None:
                    return
                control.check()
                cells, rows, matches = block
                count = rows if left is None else min(rows, left)
                if plan.duplicates == "count":
                    matches = np.ones(count, np.int64) if matches is None else matches[:count]
                    if int(matches.max(initial=0)) * plan.automorphisms >= 1 << 63:
                        matches = matches.astype(object)
                    matches = matches * plan.automorphisms
                else:
                    matches = None
                if count:
                    yield Block({name: cells[i, :count] for i, name in enumerate(plan.outputs)}, count, matches)
                if left is not None:
                    left -= count

    def _blocks(self, plan: PhysicalPlan, control: Control, limit: int | None) -> Generator[HostRows]:
        """The blocks of a run; where the last steps make no rows of their own, with the matches of each row."""
        counted = plan.row_steps < len(plan.steps)
        if not counted and limit is None and self.hint != "search" and reduces(plan, self._device.rates):
            with self._using(plan, False):
                yield from self.join.grouped(plan, control)
            return
        whole = limit is None and control.share is None
        strategy = self.of_all(plan, False, runs=True) if whole else self.of(plan)

        def blocks() -> Iterator[HostRows]:
            found = strategy.run(plan, control, limit)
            if not whole or self._beside is None:
                return found
            return timed(found, partial(self._note, plan, False, strategy.name))

        if strategy.name == "join":
            with self._using(plan, False):
                yield from blocks()
            return
        for again in (False, True):
            queue = RowQueue(blocks(), control.buffer_bytes)
            self._reading.append(queue)
            begun, waiting = False, iter(queue)
            try:
                with self._using(plan, False, strategy.name):
                    while True:
                        with faults(self._where):
                            block = next(waiting, None)
                        if block is None:
                            return
                        begun = True
                        yield block
            except (Refused, MemoryLimitError) as error:
                if begun or (self.hint == "search" and not isinstance(error, Refused)):
                    raise
                failed = error if again or isinstance(error, Refused) or self._begins_again(plan) else None
            finally:
                self._reading.remove(queue)
            joined = failed is not None
            if failed is not None:
                self._failed(plan, False, failed, strategy.name)
            failed = None  # whose traceback holds all that the search had on the device
            self._device.memory.evict(None)  # a search, or a join by segments, wants its room in one piece
            if joined:
                break
        with self._using(plan, False):
            yield from self.join.run(plan, control, limit)

    def count(
        self, plan: PhysicalPlan, control: Control, limit: int | None, ready: Callable[[], bool] | None = None
    ) -> int:
        """How many matches are found, before images: by the join where the search is refused, and until that is
        compiled.

        Raises :class:`~graphdb.gpu.overtaking.Overtaken` once sums are ``ready``.
        """
        whole = limit is None and control.share is None
        watched = whole and self._may_be_searched(plan)
        strategy = self.of_all(plan, True, runs=True) if whole else self.of(plan)
        ways = {} if ready is None else {SUMS: ready}
        if watched and strategy.name == "join":
            ways[SEARCH] = self.beside.overtakes(plan, True, lambda: not self.no_search(plan))
        if not ways:
            return self._count_by(strategy, plan, control, limit)
        until = UntilReady.of(control, ways)
        try:
            return self._count_by(strategy, plan, until, limit)
        except Overtaken as overtaken:
            if overtaken.by != SEARCH:
                raise
        finally:
            until.report_to(control)
        return self._count_by(self.search, plan, control, limit)

    def _may_be_searched(self, plan: PhysicalPlan) -> bool:
        """Whether a count by a join may turn out to take longer than a search that is compiled meanwhile: its tables,
        or its lists, do not fit.
        """
        if self.hint != "auto" or plan.clique is not None:
            return False
        return self.beside.crowded(plan, True) and not self.search.refused(plan)

    def _count_by(self, strategy: Strategy, plan: PhysicalPlan, control: Control, limit: int | None) -> int:
        """Count by a strategy, or by the join where that is a search which is refused, or has too little memory."""
        whole, started = limit is None and control.share is None, time.monotonic()
        try:
            found = self._counted(strategy, plan, control, limit)
            if whole and self._beside is not None:
                self._note(plan, True, strategy.name, time.monotonic() - started)
            return found
        except (Overtaken, QueryTimeout):
            if whole and self._beside is not None:
                self._beside.overran(plan, True, strategy.name, time.monotonic() - started)
            raise
        except (Refused, MemoryLimitError) as error:
            if strategy.name == "join" or (self.hint == "search" and not isinstance(error, Refused)):
                raise
            self._failed(plan, True, error, strategy.name)
        return self._counted(self.join, plan, control, limit)

    def _note(self, plan: PhysicalPlan, counting: bool, strategy: str, seconds: float) -> None:
        """Learn what a run of all matches took, unless it copied what later ones find on the device."""
        if strategy == "join" or not self._searched.copies(self._as_run(plan, counting, strategy), counting):
            self.beside.note(plan, counting, strategy, seconds)

    def _counted(self, strategy: Strategy, plan: PhysicalPlan, control: Control, limit: int | None) -> int:
        """Count by a strategy; once more where memory is too little: what is cached may stand in the midst of what is
        free, which is in one piece when all of that is evicted.
        """
        try:
            with self._using(plan, True, strategy.name), faults(self._where):
                return strategy.count(plan, control, limit)
        except MemoryLimitError:
            if self._device.memory.streaming or (strategy.name != "join" and self._begins_again(plan)):
                raise
        self._device.memory.evict(None)
        with self._using(plan, True, strategy.name), faults(self._where):
            return strategy.count(plan, control, limit)

    def _begins_again(self, plan: PhysicalPlan) -> bool:
        """Whether a search of a plan has begun again before, for want of memory in one piece: it would in every run,
        and copy all that it reads.
        """
        key = ("begun again", self._device.number, self._device.memory.budget)
        before: bool = plan.cache.get(key, False)
        plan.cache[key] = True
        return before

    def _failed(self, plan: PhysicalPlan, counting: bool, error: Refused | MemoryLimitError, strategy: str) -> None:
        """A search did not run: the plan is joined, for some runs at least, unless its lists had left too little."""
        if strategy == REORDERED:
            other = self._as_run(plan, counting, strategy)
            if isinstance(error, Refused) or not self._searched.give_up(other, counting):
                self.beside.reordered.give_up(plan, counting)
        elif isinstance(error, Refused):
            self.search.refuse(plan, error.message)
        elif not self._searched.give_up(plan, counting):
            self.search.postpone(plan, error.message)

    def drain(self, control: Control) -> None:
        """Drain the searches that this thread is reading: their rows leave the device, so that no kernel waits for
        it.
        """
        for queue in [queue for queue in self._reading if queue.reader == threading.get_ident()]:
            with faults(self._where):
                queue.empty(control)

    @contextmanager
    def _using(self, plan: PhysicalPlan, counting: bool, strategy: str = "join") -> Iterator[None]:
        """Have what a strategy reads for a plan stay on the device meanwhile; where not all of it fits, choose what is
        copied.

        A join by segments reads none of the copies that others do, and needs their room.  Of two orders of a plan, the
        one that is tried has its lists placed for it at once: else it would be known by what other lists made it take.
        """
        residency, searched = self._graph.residency, strategy != "join"
        key = ("searched last", counting, self._device.number, self._device.memory.budget)
        anew = searched and plan.cache.get(key, "search") != strategy
        if searched:
            plan.cache[key] = strategy
        plan = self._as_run(plan, counting, strategy)
        by_segments = not searched and self.join.segments(plan, counting) is not None
        beside = self.search.beside_lists(plan, counting) if searched else 0
        if not by_segments:  # a search does with half as much as it would like beside lists, in fewer blocks
            anew |= residency.make_room(lists_read(plan, counting), beside // 2 if searched else None)
        lists = residency.place_for(plan, counting)
        if searched:
            self._searched.place(plan, counting, beside, self._device.rates, at_once=anew)
        used: list[object] = [plan.program if searched else plan]
        if by_segments:
            copies = [(WHOLE_LISTS, array) for each in lists for array in (each.elements, *each.beside)]
        else:
            cliques = counting and plan.clique is not None
            used += [plan.clique.graph] if cliques and plan.clique is not None else plan.partitions
            used += [each.spans for each in plan.partitions]
            undivided = [each.elements for each in lists if residency.divided(each.partition) is None]
            copies = [(copy_of(elements), elements) for elements in undivided]
        with self._device.memory.using(used, copies):
            yield


def ceil_of(limit: int | None, share: int) -> int | None:
    """How many matches to find where each stands for ``share``."""
    return None if limit is None else -(-limit // share)
