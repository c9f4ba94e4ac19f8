"""The CUDA executor: physical plans on one device, by join, by search, or counted as sums of products.

Matches are enumerated by one of the :mod:`graphdb.gpu.strategies`, or counted without enumeration
(:mod:`graphdb.gpu.counting.counter`): whichever is expected (:mod:`graphdb.gpu.costs`), or was seen, to be done first.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from graphdb.common.errors import MemoryLimitError, QueryTimeout
from graphdb.gpu.calibration import calibrate, remember
from graphdb.gpu.code.launch import Device, faults
from graphdb.gpu.costs import Costs, timings_of
from graphdb.gpu.counting.counter import Counter
from graphdb.gpu.data.graph import DeviceGraph
from graphdb.gpu.data.residency import lists_read
from graphdb.gpu.join.distinct import reduces
from graphdb.gpu.join.refine import DeviceRefiner
from graphdb.gpu.mining import compression, domains, extension
from graphdb.gpu.overtaking import Overtaken
from graphdb.gpu.strategies import Hint, Strategies, ceil_of
from graphdb.plan.candidates.refinement import Refinement, Sets
from graphdb.plan.domains import DomainSearch, LabelledLists
from graphdb.plan.executor import Block, Control, OutOfRange, Refused, Traffic
from graphdb.plan.extension import Adjacency, Compressor, Extender
from graphdb.plan.joint import JointCount
from graphdb.plan.physical import PhysicalPlan, VertexStep
from graphdb.plan.shares import Division, Partial, rank_division, root_division
from graphdb.plan.strategy.ski_rental import WORSE, Decision, ExpectedCost
from graphdb.plan.strategy.timed_blocks import timed
from graphdb.plan.strategy.trials import in_turns

_log = logging.getLogger("graphdb")
Ints = NDArray[np.int64]
Counted = TypeVar("Counted")

RACE = 8.0
"""Matches are enumerated while sums are got ready unless that is expected to take so many times as long."""


class GpuExecutor:
    """Runs plans on a CUDA device.

    Parameters
    ----------
    number
        Which device.
    memory_limit
        Bytes that it may hold on the device; by default nine tenths of what is free.
    hint
        Pins a way for all plans that can go it, the join for others; ``"auto"`` chooses for each plan.
    beside_host
        Whether the caller has an executor whose counts have no bound: where sums do not fit 64 bits here,
        :class:`~graphdb.plan.executor.OutOfRange` is raised instead of going through all matches.
    """

    def __init__(
        self,
        number: int = 0,
        *,
        memory_limit: int | None = None,
        hint: Hint = "auto",
        beside_host: bool = False,
    ) -> None:
        self.name = f"cuda:{number}"
        with faults(self.name):
            self.device = Device(number, memory_limit)
        self._within = "" if memory_limit is None else f" within {self.device.memory.budget / 1e9:,.2f} GB"
        """The budget, where one was set."""
        self.graph = DeviceGraph(self.device.memory, self.device.scatter)
        self._beside_host = beside_host
        self.strategies = Strategies(self.device, self.graph, hint)
        self._counter = Counter(self.device, self.graph, pinned=hint == "sums", beside_host=beside_host)
        self.costs = Costs(self.device, self.graph, self._counter, self.strategies, beside_host=beside_host)
        self.refiner = DeviceRefiner(self.device, self.graph)

    def calibrate(self) -> threading.Thread:
        """Have a thread measure how fast the device is, unless that is known: estimates go by it from then on, and by
        what earlier processes learned of them.
        """
        remember(self.device, {"join": self.costs.matching, **self._counter.biases}, self)
        return calibrate(self.device)

    @property
    def hint(self) -> Hint:
        """The strategy that is pinned for all plans that it runs, or ``"auto"``."""
        return self.strategies.hint

    @hint.setter
    def hint(self, hint: Hint) -> None:
        self.strategies.hint = hint

    def supports(self, plan: PhysicalPlan) -> bool:
        """Whether the plan's graph can be read beside the smallest run, from host memory where it has to be."""
        residency = self.graph.residency
        if residency.surely_fits(plan) or residency.possible(lists_read(plan, plan.count_only)):
            return True
        return self.strategies.join.segments(plan, plan.count_only) is not None

    def off_hint(self, plan: PhysicalPlan, counting: bool) -> str:
        """Why a run (or with ``counting``, a count) does not go the way that is pinned; empty where it does."""
        if self.hint == "search":
            return self.strategies.no_search(plan)
        if self.hint != "sums" or "count" in self.costs.of(plan, counting):
            return ""
        return f"there are no sums for {'this count' if counting else 'these rows'}"

    @property
    def milliseconds(self) -> float:
        """After a count without enumeration: the device's time, from the first kernel to the last."""
        return self._counter.milliseconds

    def describe(self, plan: PhysicalPlan) -> str:
        """The device, and how it runs the plan: by a strategy, or as sums of products where it only counts (all, or by
        vertex).
        """
        way = timings_of(plan, plan.count_only).quickest(self.costs.of(plan, plan.count_only))
        counting = plan.count_only
        strategy = self.strategies.of_all(plan, counting) if plan.limit is None else self.strategies.of(plan)
        by = self._counter.describe(plan, counting) if way == "count" else strategy.name
        text = f"{self.name} by {by}{self._within}"
        if way != "count" and (where := self.strategies.where(plan, strategy.name)):
            text = f"{text}, {where}"
        why_not = self.off_hint(plan, plan.count_only)
        if why_not:
            return f"{text}, not by {self.hint}: {why_not}"
        if way != "count" and self._counter.preparing(plan, plan.count_only):
            return f"{text} while sums are compiled"
        return text

    def expected(self, plan: PhysicalPlan, counting: bool, below: float = math.inf) -> ExpectedCost:
        """What a run (or with ``counting``, a count) is expected to take, and to copy and compile first.

        If that is more than ``below``, the seconds of another executor, perhaps not the least
        (:meth:`graphdb.gpu.costs.Costs.of`).
        """
        costs = self.costs.of(plan, counting, below)
        return costs[timings_of(plan, counting).quickest(costs)]

    @property
    def preparing(self) -> bool:
        """Whether a thread writes and compiles kernels now: what other threads do meanwhile takes longer."""
        return self._counter.busy or self.strategies.compiling

    def missed(self, plan: PhysicalPlan, counting: bool, seconds: float) -> None:
        """A run took so long elsewhere: what would make it quicker here is got ready by a thread, if that pays."""
        self._counter.missed(plan, counting, seconds)

    def refine(self, task: Refinement) -> Sets | None:
        """Refine a pattern's candidates (:data:`graphdb.plan.candidates.refine.Refine`); None where the planner is
        quicker.

        Raises
        ------
        DeviceError
            Where the device fails.
        """
        if not self.refiner.pays(task):
            return None
        try:
            with faults(self.name):
                return self.refiner.refine(task)
        except MemoryLimitError:
            return None  # the host has memory

    def memory(self, plan: PhysicalPlan) -> int:
        """Bytes that a run needs on the device besides the data graph."""
        return min(self.strategies.of(plan).memory(plan), self.device.memory.budget // 2)

    def run(self, plan: PhysicalPlan, control: Control | None = None) -> Iterator[Block]:
        """Run the plan and give its matches block by block.

        Raises
        ------
        QueryTimeout, ExecutionError, MemoryLimitError, DeviceError
            When the time is over, when cancelled, where the device has too little memory, and where it fails.
        """
        control = control or Control()
        limit = control.limit_of(plan)
        if not plan.steps:
            if limit != 0:
                yield Block({}, 1)
            return
        started = time.monotonic()
        self.strategies.drain(control)
        counted = self._counted_by_vertex(plan, control) if limit is None else None
        if counted is not None:
            vertices, numbers = counted
            control.seconds = time.monotonic() - started
            cells = vertices.astype(plan.dtype)
            yield Block({plan.outputs[0]: cells}, len(cells), numbers if plan.duplicates == "count" else None)
            return
        yield from self._enumerated(plan, control)

    def _enumerated(self, plan: PhysicalPlan, control: Control) -> Iterator[Block]:
        """The rows of all matches that start from the control's share of the roots."""
        started = time.monotonic()

        def note(taken: float) -> None:
            whole = control.limit_of(plan) is None and control.share is None
            if whole and len(self.costs.of(plan, counting=False)) > 1:
                timings_of(plan, False).note("match", taken)
                self._counter.missed(plan, False, taken)

        try:
            yield from timed(self.strategies.run(plan, control), note)
        finally:
            control.seconds = time.monotonic() - started

    def count(self, plan: PhysicalPlan, control: Control | None = None) -> int:
        """Run the plan for the number of its matches; raises like :meth:`run`."""
        control = control or Control()
        limit = control.limit_of(plan)
        if not plan.steps:
            return 1 if limit is None else min(limit, 1)
        started = time.monotonic()
        self.strategies.drain(control)
        try:
            if limit is None:
                return self._whole_count(plan, control)
            found = self.strategies.count(plan, control, ceil_of(limit, plan.automorphisms))
            return min(found * plan.automorphisms, limit)
        finally:
            control.seconds = time.monotonic() - started

    def _whole_count(self, plan: PhysicalPlan, control: Control) -> int:
        """Count all matches, as sums or by finding them: whichever is done first."""
        timings, decided = timings_of(plan, True), self._decision(plan)
        if decided is None or not decided.again():
            anew = self.costs.of(plan, counting=True)
            decided = Decision.after(decided, timings.choose(anew, runs=True), anew, timings)
            plan.cache["decision", self.name, self.hint] = decided
        costs = decided.costs

        def found(ready: Callable[[], bool] | None = None) -> tuple[str, int, float]:
            started = time.monotonic()
            total = self.strategies.count(plan, control, None, ready) * plan.automorphisms
            return "match", total, time.monotonic() - started

        def counted() -> tuple[str, int, float]:
            started = time.monotonic()
            total = self._summed(plan, True, lambda: self._counter.count(plan, control))
            return found() if total is None else ("count", total, time.monotonic() - started)

        ready, overtaken = self._begun(plan), False
        if ready is not None:
            try:
                way, total, taken = found(ready)
            except Overtaken:  # which keeps the join's tables until it is left
                overtaken = True
        if overtaken:
            way, total, taken = counted()
        elif ready is None:
            turns, began = {"match": found, "count": counted}, time.monotonic()
            control.disturbed |= timings.tried(decided.chosen)
            try:
                way, total, taken = in_turns(costs, decided.chosen, timings, control, lambda name: turns[name]())[1]
            except QueryTimeout:  # of whoever has called: the next run would end there again
                timings.overran(decided.chosen, time.monotonic() - began)
                decided.left = 0
                raise
        if way != decided.chosen or taken > WORSE * timings.seconds.get(way, math.inf):
            decided.left = 0
        if way == "match":
            self.costs.note_match(plan, taken)
        if way == "match" and self.hint == "auto":
            self._counter.missed(plan, True, taken)
        if way == "count" or len(costs) > 1:
            timings.note(way, taken)
        return total

    def _decision(self, plan: PhysicalPlan) -> Decision | None:
        """How a plan was counted last, as far as that holds still."""
        found: Decision | None = plan.cache.get(("decision", self.name, self.hint))
        return found

    def _begun(self, plan: PhysicalPlan) -> Callable[[], bool] | None:
        """Have a thread get a count's sums ready, where they are not, while the matches are enumerated.

        Returns what says that they are ready; None where waiting is expected to be much quicker, or not to pay.
        """
        if self.hint != "auto" or timings_of(plan, True).runs:
            return None
        seconds, counted = self.costs.match_seconds(plan, True), self.costs.counted(plan, True)
        if counted is None:
            return None
        long = seconds > RACE * (counted.seconds + counted.setup)
        return None if long else self._counter.begin(plan, True, seconds)

    def count_jointly(self, joint: JointCount, control: Control | None = None) -> list[int]:
        """Count several patterns together, as sums; one after the other where another way is pinned.

        Raises like :meth:`run`, and :class:`~graphdb.plan.executor.OutOfRange` where sums may not fit 64 bits, or where
        there are no kernels for them.
        """
        control, started = control or Control(), time.monotonic()
        if self.hint not in ("auto", "sums"):
            return [self.count(plan, control) for plan in joint.plans]
        self.strategies.drain(control)
        try:
            with faults():
                return self._counter.count_jointly(joint, control)
        finally:
            control.seconds = time.monotonic() - started

    def counts_cliques(self, plan: PhysicalPlan) -> bool:
        """Whether there is a kernel for them, or another way is pinned."""
        return self.hint in ("join", "search") or self._counter.counts_cliques(plan)

    def describe_jointly(self, joint: JointCount) -> str:
        """The device, and how it counts."""
        return f"{self.name} by {'sums' if self.hint in ('auto', 'sums') else self.hint}"

    def domain_search(
        self, lists: LabelledLists, scanned: float, control: Control, host_memory: int | None
    ) -> DomainSearch | None:
        """What finds domains of patterns here; None where the graph does not fit the budget.

        Raises
        ------
        DeviceError
            The device fails.
        """
        if not self.graph.residency.possible([domains.lists_of(lists)]):
            return None
        return domains.DeviceDomains(self.device, self.graph, lists, control, host_memory=host_memory)

    def extender(self, lists: Adjacency, scanned: float, control: Control) -> Extender | None:
        """What extends embeddings here; None where the graph does not fit the budget.

        Raises
        ------
        DeviceError
            The device fails.
        """
        if not self.graph.residency.possible([extension.lists_of(lists)]):
            return None
        return extension.DeviceExtension(self.device, self.graph, lists, control)

    def traffic(self) -> Traffic:
        """What was copied here so far, and which lists by pages."""
        return Traffic(self.device.memory.uploaded, self.graph.residency.summary)

    def compressor(self, rows: int, nbytes: int, control: Control) -> Compressor | None:
        """What filters embedding tables here; None where the budget has too little room for marks of so many rows."""
        if not compression.fits(rows, self.device.memory.budget):
            return None
        return compression.DeviceCompressor(self.device, control)

    def expected_jointly(self, joint: JointCount) -> ExpectedCost:
        """What counting several patterns together is expected to take, and to copy and compile first."""
        expected = self._counter.expected_of(joint.counting) or ExpectedCost(math.inf)
        return ExpectedCost(expected.seconds, expected.setup)  # nobody prepares it beside other work

    # --- shares of a run, beside other devices

    def seconds(self, plan: PhysicalPlan, counting: bool) -> float:
        """The seconds that a run or a count is expected to take here alone."""
        expected = self.expected(plan, counting).seconds
        if counting and plan.clique is not None:  # of which is only known that no search is sooner
            scanned = float(plan.clique.graph.work[-1]) * (plan.clique.size - 2)
            expected = max(expected, scanned / self.device.rates.intersected)
        return expected

    def division(
        self, plan: PhysicalPlan, counting: bool, control: Control, *, search: bool = False
    ) -> Division | None:
        """How a run or a count divides: as :meth:`graphdb.plan.shares.Divisible.division` says.

        Raises :class:`graphdb.plan.executor.OutOfRange` where sums are known not to fit.
        """
        limit = control.limit_of(plan)
        self.strategies.drain(control)
        if limit is None and not search:
            costs, timings = self.costs.of(plan, counting), timings_of(plan, counting)
            if "count" in costs and timings.choose(costs, runs=counting) == "count":
                try:
                    with faults(self.name):
                        return self._counter.division(plan, counting, control)
                except Refused:
                    timings.rule_out("count")
        first = plan.steps[0] if len(plan.steps) > 1 else None
        if not isinstance(first, VertexStep) or first.scan is None:
            return None
        if counting and plan.clique is not None and limit is None and self.strategies.of(plan).name == "join":
            return rank_division(plan.clique)
        grouped = not counting and limit is None and reduces(plan, self.device.rates)
        divided = self.strategies.join.segments(plan, counting) is not None
        ordered = self.strategies.of(plan).name == "join" and not (grouped or divided)
        return root_division(plan, ordered)

    def rows_of(self, plan: PhysicalPlan, division: Division, control: Control) -> Iterator[Block]:
        """Run a share; raises as :meth:`run` does."""
        if division.unit != "vertices":
            yield from self._enumerated(plan, control)
            return
        try:
            with faults(self.name):
                counted = self._counter.count_by_vertex(plan, control, control.share)
        except Refused:
            timings_of(plan, False).rule_out("count")
            counted = None
        if counted is None:
            raise OutOfRange
        cells, numbers = counted[0].astype(plan.dtype), counted[1]
        yield Block({plan.outputs[0]: cells}, len(cells), numbers if plan.duplicates == "count" else None)

    def partial(self, plan: PhysicalPlan, division: Division, control: Control) -> Partial:
        """Count a share; raises as :meth:`run` does."""
        limit = control.limit_of(plan)
        with faults(self.name):
            if division.unit != "roots" and "count" in self.costs.of(plan, counting=True):
                try:
                    with self._summing(plan, True):
                        return self._counter.partial(plan, division, control, control.share)
                except Refused as error:  # these sums, by this device: the matches are left
                    timings_of(plan, True).rule_out("count")
                    raise OutOfRange from error
            if division.unit == "vertices":  # of another device, which could sum up what this one cannot
                raise OutOfRange
            found = self.strategies.count(plan, control, ceil_of(limit, plan.automorphisms)) * plan.automorphisms
        return (found if limit is None else min(found, limit),)

    def total(self, plan: PhysicalPlan, division: Division, sums: Partial) -> int:
        """The number of matches, from the sums over all shares."""
        return self._counter.total(plan, sums) if division.unit == "vertices" else sums[0]

    def seconds_jointly(self, joint: JointCount) -> float:
        """The seconds that a joint count is expected to take here alone."""
        return self.expected_jointly(joint).seconds

    def division_jointly(self, joint: JointCount, control: Control) -> Division | None:
        """How a joint count divides; None also where another way than sums is pinned."""
        if self.hint not in ("auto", "sums"):
            return None
        self.strategies.drain(control)
        with faults(self.name):
            return self._counter.division_jointly(joint, control)

    def partial_jointly(self, joint: JointCount, control: Control) -> Partial:
        """Count a share; raises as :meth:`run` does."""
        with faults(self.name):
            return self._counter.partial_jointly(joint, control, control.share)

    def _counted_by_vertex(self, plan: PhysicalPlan, control: Control) -> tuple[Ints, Ints] | None:
        """The different rows and their numbers of matches, where that is possible and expected to be sooner."""
        costs, timings = self.costs.of(plan, counting=False), timings_of(plan, False)
        if "count" not in costs or timings.choose(costs) != "count":
            return None
        started = time.monotonic()
        counted = self._summed(plan, False, lambda: self._counter.count_by_vertex(plan, control))
        if counted is not None:
            timings.note("count", time.monotonic() - started)
        return counted

    @contextmanager
    def _summing(self, plan: PhysicalPlan, counting: bool) -> Iterator[None]:
        """Have what sums read stay on the device meanwhile: they place their lists (:mod:`graphdb.gpu.counting.lists`),
        and need no program of the matches.
        """
        used: list[object] = [plan, plan.counting]
        if counting and plan.clique is not None:
            used += [plan.clique.graph, *(each.elements for each in self._counter.cliques.place(plan, plan.clique))]
        with self.device.memory.using(used):
            yield

    def _summed(self, plan: PhysicalPlan, counting: bool, count: Callable[[], Counted | None]) -> Counted | None:
        """What ``count`` gives; None where matches have to be found."""
        try:
            with self._summing(plan, counting), faults(self.name):
                return count()
        except OutOfRange:
            if self._beside_host:
                raise
        except MemoryLimitError as error:
            if self.hint == "sums":
                raise
            _log.info("the matches of a query are enumerated, since sums need more memory: %s", error)
            timings_of(plan, counting).rule_out("count")
        except Refused as error:  # these sums, by this device: the matches are left
            _log.info("the matches of a query are enumerated, not counted by programs: %s", error)
            timings_of(plan, counting).rule_out("count")
        return None
