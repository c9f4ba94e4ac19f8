"""Searches in the place of joins whose tables or lists do not fit: a search takes no more memory for more matches.

It is not much slower than a join, but its kernel is written for the plan.  So the join goes on, piece by piece, until a
thread has compiled that; and it is compiled once runs have taken so much longer for their pieces that this pays, or one
run alone takes longer than that.  A count that is joined meanwhile is overtaken.  From then on, what runs take decides.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait

from graphdb.common.errors import GraphDBError
from graphdb.gpu.background import in_background, while_alive
from graphdb.gpu.code.compiler import Cancelled
from graphdb.gpu.code.launch import Device, faults
from graphdb.gpu.data.residency import Residency
from graphdb.gpu.join.crowding import piece_seconds
from graphdb.gpu.join.run import Join
from graphdb.gpu.join.segmentation import STEP
from graphdb.gpu.search.reordered import REORDERED, ReorderedSearch
from graphdb.gpu.search.run import Search
from graphdb.plan.executor import Refused
from graphdb.plan.physical import PhysicalPlan
from graphdb.plan.strategy.ski_rental import WORSE, ExpectedCost, StrategyTimings

LONGER = 0.25
"""Of what is expected to be scanned, a search takes so much longer than a join, about."""
LINKED = 0.6
"""Of the time that a join takes for lists in host memory, what a search does: it has more reads under way at a time."""
COMPILED, BESIDE = 1.0, 0.02
"""Seconds of a thread that compiles a search; and what each of them is worth, of those that queries would take less."""

ENQUEUED = 1e-5
"""Seconds that a join by segments takes longer, at least: what is copied may be expected to take none of them."""
ASKED = 0.005
"""A join asks so many seconds apart whether its search is compiled."""

_log = logging.getLogger("graphdb")


class SearchesBeside:
    """Which plans are searched because a join's tables, or its lists, would not fit the device."""

    def __init__(self, device: Device, join: Join, search: Search, residency: Residency) -> None:
        self._device, self._join, self._search, self._residency = device, join, search, residency
        self.reordered = ReorderedSearch(search)
        self._compiling: dict[PhysicalPlan, Future[None]] = {}

    def saved(self, plan: PhysicalPlan, counting: bool) -> float:
        """Seconds that a search is expected to take less than a join, which may be known to take longer than was
        expected; 0 where it takes longer.
        """
        (joined, searched), timings = self._seconds(plan, counting), self._timings(plan, counting)
        known = timings.measured("join") or timings.stopped.get("join", 0.0)
        return max(joined - searched, known - searched, 0.0)

    def _seconds(self, plan: PhysicalPlan, counting: bool) -> tuple[float, float]:
        """Seconds that a join is expected to take for pieces, and for lists that do not fit; and a search instead."""
        rates, budget = self._device.rates, self._device.memory.budget
        key = ("seconds beside", counting, self._device.number, budget)
        if key not in plan.cache:
            lists, segments = self._residency.place_for(plan, counting), self._join.segments(plan, counting)
            pieces, away = (
                piece_seconds(plan, counting, budget, rates),
                self._residency.away_seconds(lists, plan, rates),
            )
            joined = pieces + (away if segments is None else max(segments.seconds, ENQUEUED))
            plan.cache[key] = joined, self._searched(plan, plan.cost, counting)
        found: tuple[float, float] = plan.cache[key]
        return found

    def _searched(self, plan: PhysicalPlan, cost: float, counting: bool) -> float:
        """Seconds that a search is expected to take, beside those of a join that has all it needs, where it scans so
        many elements.
        """
        rates = self._device.rates
        seconds = STEP * rates.answer + LONGER * cost / rates.intersected
        return seconds + LINKED * self._search.link_seconds(plan, counting)

    def chosen(self, plan: PhysicalPlan, counting: bool, *, runs: bool) -> str:
        """Of a join and the searches that are compiled, the one that took least, or is expected to.

        Where the plan's own search was compiled before, by an earlier process perhaps, a thread still has to look for
        another order.  Of two orders that were measured, the slower one is not measured again: each has its lists
        placed for it, which takes longer than many runs.
        """
        if runs and plan not in self._compiling and not self.reordered.looked(plan, counting):
            self._compile(plan, counting)
        costs = dict(zip(("join", "search"), map(ExpectedCost, self._seconds(plan, counting)), strict=True))
        timings = self._timings(plan, counting)
        if (other := self.reordered.of(plan, counting)) is not None:
            costs[REORDERED] = ExpectedCost(self._searched(other.plan, other.cost, counting))
            own, another = timings.measured("search"), timings.measured(REORDERED)
            if own is not None and another is not None:
                del costs["search" if another < own else REORDERED]
        return timings.choose(costs, runs=runs)

    def note(self, plan: PhysicalPlan, counting: bool, strategy: str, seconds: float) -> None:
        """Learn what a run of all matches took, unless it shared the host with a compiler: also where a join is
        expected to be sooner, since its lists may come more slowly than was expected.
        """
        if not self.busy and self._seconds(plan, counting)[0] > 0.0:
            self._timings(plan, counting).note(strategy, seconds)

    def crowded(self, plan: PhysicalPlan, counting: bool) -> bool:
        """Whether a join is expected to take longer for its pieces, or for lists that do not fit."""
        return self._seconds(plan, counting)[0] > 0.0

    def overran(self, plan: PhysicalPlan, counting: bool, strategy: str, seconds: float) -> None:
        """Learn that a run of all matches was stopped after so many seconds."""
        self._timings(plan, counting).overran(strategy, seconds)

    def overtakes(self, plan: PhysicalPlan, counting: bool, possible: Callable[[], bool]) -> Callable[[], bool]:
        """A join begins: return what says whether a search, if one is ``possible``, is compiled and expected to be
        done before it.

        What is left of the join is taken to be as long as what is over, if it was not expected to take longer.  Where
        it is known what a search takes, that was weighed before: the join ends, so that it is known, too, unless it
        takes twice as long.  Once it has taken as long as a compiler does, a thread compiles the search, whatever was
        expected.
        """
        started = asked = time.monotonic()
        joined, searched = self._seconds(plan, counting)
        known = self._timings(plan, counting).measured("search")

        def ready() -> bool:
            nonlocal asked
            now = time.monotonic()
            if now - asked < ASKED or plan in self._compiling:
                return False
            asked, passed = now, now - started
            left = max(joined - passed, passed)
            if (left < searched if known is None else passed < WORSE * known) or not possible():
                return False
            try:
                if self.ready(plan, counting):
                    return True
            except Refused as error:
                self._search.refuse(plan, error.message)
                return False
            if passed > COMPILED:
                self._compile(plan, counting)
            return False

        return ready

    def _timings(self, plan: PhysicalPlan, counting: bool) -> StrategyTimings:
        key = ("timings beside", counting, self._device.number, self._device.memory.budget)
        found: StrategyTimings = plan.cache.setdefault(key, StrategyTimings())
        return found

    def ready(self, plan: PhysicalPlan, counting: bool) -> bool:
        """Whether its search is compiled; raises as :meth:`graphdb.gpu.search.run.Search.code` does."""
        return self._search.is_ready(plan, counting=counting)

    def missed(self, plan: PhysicalPlan, counting: bool) -> None:
        """A join runs all the same: have a thread compile the search, if that adds up."""
        if plan in self._compiling:
            return
        key = ("missed search", counting, self._device.number)
        plan.cache[key] = plan.cache.get(key, 0.0) + self.saved(plan, counting)
        if plan.cache[key] >= BESIDE * COMPILED:
            self._compile(plan, counting)

    @property
    def busy(self) -> bool:
        """Whether a thread compiles one."""
        return bool(self._compiling)

    def wait_for_all(self) -> None:
        """Wait for all that is compiled beside queries."""
        wait(list(self._compiling.values()))

    def _compile(self, plan: PhysicalPlan, counting: bool) -> None:
        done = self._compiling[plan] = Future[None]()

        def compiled() -> None:
            try:
                with faults(), in_background():
                    self._search.compile(plan, while_alive, counting=counting)
                    self._compile_reordered(plan, counting)
            except (GraphDBError, Cancelled) as error:
                self._search.refuse(plan, str(error))
                _log.info("a plan is joined piece by piece: %s", error)
            finally:
                self._compiling.pop(plan, None)
                done.set_result(None)

        threading.Thread(target=compiled, name="graphdb-search").start()

    def _compile_reordered(self, plan: PhysicalPlan, counting: bool) -> None:
        try:
            with faults():
                self.reordered.compile(plan, counting, while_alive)
        except GraphDBError as error:  # the plan's own order is compiled
            _log.info("a plan is searched in its own order: %s", error)
