"""Searches of plans in other orders than theirs, where lists do not fit the device: in that which reads least of what
stands in host memory.

A plan's order scans least.  Another one may scan the lists that do not fit once, one behind the other, and find only
lists that do; the executor times both, and goes on with the quicker one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from graphdb.gpu.search.run import Search
from graphdb.gpu.stream import HostRows
from graphdb.plan.executor import Control, Refused
from graphdb.plan.passes.reordered import in_all_orders
from graphdb.plan.physical import PhysicalPlan

REORDERED = "search in another order"
SHARE = 0.1
"""The share of a search's seconds that reads of host memory are expected to take, at least, where other orders are
looked at."""
LESS = 0.5
"""The share of these seconds that another order may take for its own reads of host memory, at most."""


@dataclass(frozen=True, slots=True)
class Reordering:
    """A plan in another order.

    Attributes
    ----------
    plan
        That plan.
    cost
        Elements that it is expected to scan, where the cost of the plan's own order is right: a sample may have
        corrected that.
    """

    plan: PhysicalPlan
    cost: float


class ReorderedSearch:
    """Searches plans in another order.

    Parameters
    ----------
    search
        What runs them.
    """

    name = REORDERED

    def __init__(self, search: Search) -> None:
        self._search = search

    def of(self, plan: PhysicalPlan, counting: bool) -> Reordering | None:
        """The plan in another order, if that is compiled."""
        found: Reordering | None = plan.cache.get(self._key(counting))
        return found

    def looked(self, plan: PhysicalPlan, counting: bool) -> bool:
        """Whether another order was looked for, or need not be: where a search takes no time for what does not fit."""
        key = self._key(counting)
        if key not in plan.cache and self._link(plan, counting) < SHARE * self._seconds(plan, plan.cost, counting):
            plan.cache[key] = None
        return key in plan.cache

    def compile(self, plan: PhysicalPlan, counting: bool, check: Callable[[], None]) -> None:
        """Compile the search in another order that is expected to be the quickest, if one reads less over the link.

        Raises
        ------
        Refused
            A warp takes more shared memory than a block has.
        GraphDBError
            The patterns' partitions in other directions could not be built, or the kernel not compiled.
        """
        if self.looked(plan, counting):
            return
        plan.cache[self._key(counting)] = None
        orders = in_all_orders(plan)
        if not orders:
            return
        own, *others = orders
        correction, most = plan.cost / max(own.cost, 1.0), LESS * self._link(plan, counting)
        better = [
            Reordering(each, each.cost * correction)
            for each in others
            if self._search.supports(each) and self._link(each, counting) <= most
        ]
        best = min(better, key=lambda each: self._seconds(each.plan, each.cost, counting), default=None)
        if best is None or self._seconds(best.plan, best.cost, counting) > self._seconds(plan, plan.cost, counting):
            return
        self._search.compile(best.plan, check, counting=counting)
        plan.cache[self._key(counting)] = best

    def give_up(self, plan: PhysicalPlan, counting: bool) -> None:
        """Never search a plan in another order: that failed."""
        plan.cache[self._key(counting)] = None

    def _key(self, counting: bool) -> tuple[object, ...]:
        device = self._search.device
        return REORDERED, counting, device.number, device.memory.budget

    def _link(self, plan: PhysicalPlan, counting: bool) -> float:
        """Seconds that a search is expected to take for lists in host memory."""
        return self._search.link_seconds(plan, counting)

    def _seconds(self, plan: PhysicalPlan, cost: float, counting: bool) -> float:
        """Seconds that a search is expected to take, where it scans so many elements."""
        return cost / self._search.device.rates.intersected + self._link(plan, counting)

    # --- as a strategy

    def supports(self, plan: PhysicalPlan) -> bool:
        """Whether it can run the plan: where that is compiled in another order."""
        return self.of(plan, plan.count_only) is not None

    def memory(self, plan: PhysicalPlan) -> int:
        """Bytes that a run takes on the device, besides the graph."""
        return self._search.memory(self._plan(plan, plan.count_only))

    def run(self, plan: PhysicalPlan, control: Control, limit: int | None) -> Iterator[HostRows]:
        """Give the matches as blocks of rows, images included, each of which is a match."""
        yield from self._search.run(self._plan(plan, False), control, limit)

    def count(self, plan: PhysicalPlan, control: Control, limit: int | None) -> int:
        """How many matches are found, before images; with a limit, that many or more will do."""
        return self._search.count(self._plan(plan, True), control, limit)

    def _plan(self, plan: PhysicalPlan, counting: bool) -> PhysicalPlan:
        found = self.of(plan, counting)
        if found is None:
            raise Refused("the plan is searched in its own order")
        return found.plan
