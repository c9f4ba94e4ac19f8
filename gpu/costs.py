"""What each strategy for a plan on a device is expected to take: enumeration, or counting without it."""

from __future__ import annotations

import math
from itertools import compress

import numpy as np

from graphdb.gpu.code.launch import Device
from graphdb.gpu.counting.counter import Counter
from graphdb.gpu.data.graph import DeviceGraph
from graphdb.gpu.data.residency import coded_rows
from graphdb.gpu.join.segmentation import STEP
from graphdb.gpu.strategies import Strategies
from graphdb.plan.checks import Above, IsCandidate, Unequal
from graphdb.plan.physical import PhysicalPlan, VertexStep
from graphdb.plan.strategy.ski_rental import Bias, ExpectedCost, StrategyTimings
from graphdb.plan.strategy.trials import LEAST as SOON

NARROWED = 1e6
"""Elements that a plan is expected to scan from which on lists are narrowed to candidates: of eight times as many
entries, which lists seldom have."""
LEVEL = 2.5e-4
"""Seconds in which a join's tables of a step are written and copied, when a plan first runs."""
LEAST = 0.1
"""What a count takes at least beside its steps, in what these take: the clock says no more than that."""


class Costs:
    """The expected costs of plans on one device.

    Parameters
    ----------
    device, graph, counter
        Where they run, and what counts there without enumeration.
    strategies
        What enumerates the matches, which says what is pinned.
    beside_host
        Whether the caller has an executor whose counts have no bound: where sums may not fit 64 bits, enumerating the
        matches is no choice then.
    """

    def __init__(
        self, device: Device, graph: DeviceGraph, counter: Counter, strategies: Strategies, *, beside_host: bool
    ) -> None:
        self._device, self._graph, self._counter = device, graph, counter
        self._strategies, self._beside_host = strategies, beside_host
        self.matching = Bias()
        """Of the estimates of enumerating the matches."""

    def of(self, plan: PhysicalPlan, counting: bool, below: float = math.inf) -> dict[str, ExpectedCost]:
        """What each strategy is expected to take: ``"match"`` enumerates the matches, ``"count"`` counts without
        enumeration.  Of two, matches may be left out that take longer than ``below``, the seconds of another executor.
        """
        seconds, timings = self.match_seconds(plan, counting), timings_of(plan, counting)
        counted = self.counted(plan, counting)
        if counted is not None:
            # What matches would copy, their program tells: one that nobody wrote is not written to be found slower.
            least = timings.expected("count", counted) + counted.setup
            surely = (least <= seconds or (least <= SOON and below <= seconds)) and not timings.runs
            if surely or (self._strategies.hint == "sums" and timings.measured("count") != math.inf):
                return {"count": counted}
        seconds += self._away_seconds(plan, counting)
        setup = self.missing_bytes(plan) / self._device.rates.upload
        setup += 0.0 if self._strategies.join.is_prepared(plan, counting) else LEVEL * len(plan.steps)
        costs = {"match": ExpectedCost(seconds, setup)}
        return costs if counted is None else costs | {"count": counted}

    def match_seconds(self, plan: PhysicalPlan, counting: bool) -> float:
        """What enumerating the matches is expected to take, with all that they read on the device; infinite where sums
        may not fit, and another can count.
        """
        rates = self._device.rates
        seconds = self.starting(plan) + self.matching.factor * scanned(plan, counting) / rates.intersected
        if self._beside_host and self._counter.too_wide(plan, counting):
            seconds = math.inf
        if not counting and plan.steps:
            rows = plan.steps[plan.row_steps - 1].estimate * len(plan.columns)
            seconds += rows * len(plan.outputs) * np.dtype(plan.dtype).itemsize / rates.pinned_download
        return seconds

    def note_match(self, plan: PhysicalPlan, taken: float) -> None:
        """Learn from what a count by enumerating took, once a plan: its first run has copied and compiled, too, and a
        plan that runs a thousand times says no more of others than its second run does.
        """
        runs = plan.cache["enumerated"] = plan.cache.get("enumerated", 0) + 1
        start, estimated = self.starting(plan), scanned(plan, True) / self._device.rates.intersected
        if runs == 2 and max(taken - start, self.matching.factor * estimated) > start:
            self.matching.note(estimated, max(taken - start, LEAST * start))

    def starting(self, plan: PhysicalPlan) -> float:
        """Seconds that a join takes for its steps, however little there is to scan."""
        return STEP * self._device.rates.answer * (len(plan.steps) + 1)

    def _away_seconds(self, plan: PhysicalPlan, counting: bool) -> float:
        """What it is expected to take beside, that not all of the graph fits the device."""
        segments = self._strategies.join.segments(plan, counting)
        if segments is not None:
            return segments.seconds
        residency = self._graph.residency
        lists = residency.place_for(plan, counting)
        return residency.away_seconds(lists, plan, self._device.rates)

    def missing_bytes(self, plan: PhysicalPlan) -> int:
        """Bytes that a run would have to copy to the device first."""
        coded = coded_rows(plan)
        return sum(self._graph.missing_bytes(each, row in coded) for row, each in enumerate(plan.partitions))

    def counted(self, plan: PhysicalPlan, counting: bool) -> ExpectedCost | None:
        """What counting without enumeration is expected to take; None where that is not possible."""
        found = self._counter.expected(plan, counting) if self._strategies.hint in ("auto", "sums") else None
        if found is not None and found.seconds > self._device.limits.launch_seconds:
            return None  # a single launch, which a display waits for
        return found


def scanned(plan: PhysicalPlan, counting: bool) -> float:
    """Elements that a join is expected to scan for a plan.

    A single list whose elements must be candidates is one of candidates alone, made once
    (:func:`graphdb.gpu.join.filter.narrowed`): scanned and found are about as many.  A count takes the lengths of the
    last step's lists, of which nothing but bound vertices is left out: each row before it costs that look-up, and no
    match is scanned or written (``Level.counts_rows`` of :mod:`graphdb.gpu.join.levels`).
    """
    cost = plan.cost
    known: tuple[type, ...] = (Above, Unequal)
    if cost >= NARROWED:
        alone = [step for step in plan.steps if isinstance(step, VertexStep) and _lists(step) == 1]
        bits = [any(isinstance(check, IsCandidate) and check.many for check in step.checks) for step in alone]
        cost -= sum(max(step.work - step.estimate, 0.0) for step in compress(alone, bits))
        known = (*known, IsCandidate)
    last = plan.steps[-1] if len(plan.steps) > 1 else None
    if not counting or not isinstance(last, VertexStep) or last.constants is not None or _lists(last) != 1:
        return cost
    if not all(isinstance(check, known) for check in last.checks):
        return cost
    return max(cost - 2.0 * last.estimate, plan.steps[-2].estimate)


def _lists(step: VertexStep) -> int:
    """How many lists are intersected for a step: what an earlier one intersected is one."""
    return len(step.neighbours) - max(step.shared - 1, 0)


def timings_of(plan: PhysicalPlan, counting: bool) -> StrategyTimings:
    """What is known of a plan's runs on a device."""
    found: StrategyTimings = plan.cache.setdefault(("how", counting), StrategyTimings())
    return found
