"""Searches in the place of joins whose tables do not fit: a search takes no more memory for more matches.

It is not much slower than a join, but its kernel is written for the plan.  So the join goes on, piece by piece, until a
thread has compiled that; and it is compiled once runs have taken so much longer for their pieces that this pays.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import Future, wait

from graphdb.common.errors import GraphDBError
from graphdb.gpu.background import in_background, while_alive
from graphdb.gpu.code.compiler import Cancelled
from graphdb.gpu.code.launch import Device, faults
from graphdb.gpu.join.crowding import piece_seconds
from graphdb.gpu.join.segmentation import STEP
from graphdb.gpu.search.run import Search
from graphdb.plan.physical import PhysicalPlan

LONGER = 0.25
"""Of what is expected to be scanned, a search takes so much longer than a join, about."""
COMPILED, BESIDE = 1.0, 0.02
"""Seconds of a thread that compiles a search; and what each of them is worth, of those that queries would take less."""

_log = logging.getLogger("graphdb")


class SearchesBeside:
    """Which plans are searched because a join's tables would not fit the device."""

    def __init__(self, device: Device, search: Search) -> None:
        self._device, self._search = device, search
        self._compiling: dict[PhysicalPlan, Future[None]] = {}

    def saved(self, plan: PhysicalPlan, counting: bool) -> float:
        """Seconds that a search is expected to take less than a join; 0 where it takes longer."""
        rates, budget = self._device.rates, self._device.memory.budget
        key = ("saved by search", counting, self._device.number, budget)
        if key not in plan.cache:
            least = STEP * rates.answer * (len(plan.steps) + 1) + LONGER * plan.cost / rates.intersected
            plan.cache[key] = max(piece_seconds(plan, counting, budget, rates) - least, 0.0)
        found: float = plan.cache[key]
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
            except (GraphDBError, Cancelled) as error:
                plan.cache["search refused"] = str(error)
                _log.info("a plan is joined piece by piece: %s", error)
            finally:
                self._compiling.pop(plan, None)
                done.set_result(None)

        threading.Thread(target=compiled, name="graphdb-search").start()
