"""The CUDA executor: physical plans on one device, by join, by search, or counted as sums of products.

Strategies are classes with ``run`` and ``count`` for a plan; :data:`STRATEGIES` names them.  Both give the same rows.
Sums (:mod:`graphdb.gpu.counting.counter`) count without enumerating the matches.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphdb.common.errors import MemoryLimitError
from graphdb.gpu.calibration import calibrate, remember
from graphdb.gpu.counting.counter import Counter
from graphdb.gpu.graph import DeviceGraph
from graphdb.gpu.join.distinct import reduces
from graphdb.gpu.join.refine import DeviceRefiner
from graphdb.gpu.join.run import Join
from graphdb.gpu.join.segmentation import STEP
from graphdb.gpu.launch import Device, faults
from graphdb.gpu.mining import domains, extension
from graphdb.gpu.overtaking import Overtaken, UntilReady
from graphdb.gpu.residency import Lists, lists_of_plan
from graphdb.gpu.search.row_queue import RowQueue
from graphdb.gpu.search.run import Search
from graphdb.plan.candidates.refinement import Refinement, Sets
from graphdb.plan.domains import DomainSearch, LabelledLists
from graphdb.plan.executor import Block, Control, OutOfRange, Refused
from graphdb.plan.extension import Adjacency, Extender
from graphdb.plan.joint import JointCount
from graphdb.plan.physical import PhysicalPlan, VertexStep
from graphdb.plan.shares import Division, Partial, root_weights
from graphdb.plan.ski_rental import WORSE, Bias, Decision, ExpectedCost, StrategyTimings
from graphdb.plan.trials import in_turns

_log = logging.getLogger("graphdb")
Ints = NDArray[np.int64]
Hint = Literal["auto", "join", "search", "sums"]
Counted = TypeVar("Counted")

RACE = 8.0
"""Matches are enumerated while sums are got ready unless that is expected to take so many times as long."""


class Strategy(Protocol):
    """A way to run plans on a device."""

    name: str

    def supports(self, plan: PhysicalPlan) -> bool:
        """Whether it can run the plan; the join runs every one."""

    def memory(self, plan: PhysicalPlan) -> int:
        """Bytes that a run takes on the device, besides the graph."""

    def run(self, plan: PhysicalPlan, control: Control, limit: int | None) -> Iterator[tuple[NDArray[Any], int]]:
        """Give the matches as arrays [outputs, rows], images included, each with its number of rows.

        ``limit`` bounds the matches that have to be found, before images; slightly more may come.
        """

    def count(self, plan: PhysicalPlan, control: Control, limit: int | None) -> int:
        """How many matches are found, before images; with a limit, that many or more will do."""


STRATEGIES: dict[str, Callable[[Device, DeviceGraph], Strategy]] = {"join": Join, "search": Search}


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
        self.graph = DeviceGraph(self.device.memory)
        self.hint = hint
        self._beside_host = beside_host
        self.strategies: dict[str, Strategy] = {}
        self._bias = Bias()
        """Of the estimates of going through the matches."""
        self._counter = Counter(self.device, self.graph, pinned=hint == "sums")
        self._reading: list[RowQueue] = []
        """Searches whose rows are being read."""
        self.refiner = DeviceRefiner(self.device, self.graph)

    def calibrate(self) -> threading.Thread:
        """Have a thread measure how fast the device is, unless that is known: estimates go by it from then on, and by
        what earlier processes learned of them.
        """
        remember(self.device, {"join": self._bias, **self._counter.biases}, self)
        return calibrate(self.device)

    def supports(self, plan: PhysicalPlan) -> bool:
        """Whether the plan's graph can be read beside the smallest run, from host memory where it has to be."""
        if self.graph.residency.possible(self._lists(plan, plan.count_only)):
            return True
        return self.join.segments(plan, plan.count_only) is not None

    def strategy(self, plan: PhysicalPlan) -> Strategy:
        """The strategy that enumerates a plan's matches: the search where it is requested and possible, else the
        join.
        """
        return self._strategy("search" if self.hint == "search" and not self._no_search(plan) else "join")

    def _no_search(self, plan: PhysicalPlan) -> str:
        """Why the search does not run a plan; empty where it does."""
        if plan.row_steps < len(plan.steps):
            return "a row stands for several matches"
        refused: str | None = plan.cache.get("search refused")
        if refused is not None:
            return refused
        if self.join.segments(plan, plan.count_only) is not None:
            return "lists that do not fit the device are read by segments"
        if self.device.limits.launch_seconds < math.inf:
            return "a display waits for the device, and a search is one launch"
        return "" if self._strategy("search").supports(plan) else "a list is too long"

    def off_hint(self, plan: PhysicalPlan, counting: bool) -> str:
        """Why a run (or with ``counting``, a count) does not go the way that is pinned; empty where it does."""
        if self.hint == "search":
            return self._no_search(plan)
        if self.hint != "sums" or "count" in self._strategy_costs(plan, counting):
            return ""
        return f"there are no sums for {'this count' if counting else 'these rows'}"

    @property
    def milliseconds(self) -> float:
        """After a count without enumeration: the device's time, from the first kernel to the last."""
        return self._counter.milliseconds

    @property
    def join(self) -> Join:
        """The join, which alone tells how many matches a row stands for."""
        found = self._strategy("join")
        assert isinstance(found, Join)
        return found

    def _strategy(self, name: str) -> Strategy:
        if name not in self.strategies:
            self.strategies[name] = STRATEGIES[name](self.device, self.graph)
        return self.strategies[name]

    def describe(self, plan: PhysicalPlan) -> str:
        """The device, and how it runs the plan: by a strategy, or as sums of products where it only counts (all, or by
        vertex).
        """
        way = _timings(plan, plan.count_only).choose(self._strategy_costs(plan, plan.count_only))
        by = self._counter.describe(plan, plan.count_only) if way == "count" else self.strategy(plan).name
        told = f"{self.name} by {by}{self._within}"
        if way != "count" and (where := self._where(plan)):
            told = f"{told}, {where}"
        why_not = self.off_hint(plan, plan.count_only)
        if why_not:
            return f"{told}, not by {self.hint}: {why_not}"
        if way != "count" and self._counter.preparing(plan, plan.count_only):
            return f"{told} while sums are compiled"
        return told

    def _where(self, plan: PhysicalPlan) -> str:
        """Where the lists stand that matches read, as a phrase for EXPLAIN; empty where all are on the device."""
        segments = self.join.segments(plan, plan.count_only)
        return segments.describe() if segments else self.graph.residency.describe(self._lists(plan, plan.count_only))

    def expected(self, plan: PhysicalPlan, counting: bool) -> ExpectedCost:
        """What a run (or with ``counting``, a count) is expected to take, and to copy and compile first."""
        costs = self._strategy_costs(plan, counting)
        return costs[_timings(plan, counting).choose(costs)]

    def _strategy_costs(self, plan: PhysicalPlan, counting: bool) -> dict[str, ExpectedCost]:
        """What each strategy is expected to take: ``"match"`` enumerates the matches, ``"count"`` counts without
        enumeration.
        """
        seconds = self._match_seconds(plan, counting)
        counted = self._counter.expected(plan, counting) if self.hint in ("auto", "sums") else None
        if counted is not None and counted.seconds > self.device.limits.launch_seconds:
            counted = None  # a single launch, which a display waits for
        if counted is not None:
            # What matches would copy, their program tells: one that nobody wrote is not written to be found slower.
            timings = _timings(plan, counting)
            surely = counted.seconds + counted.setup <= seconds and not timings.runs
            if surely or (self.hint == "sums" and timings.measured("count") != math.inf):
                return {"count": counted}
        seconds += self._away_seconds(plan, counting)
        costs = {"match": ExpectedCost(seconds, self.missing_bytes(plan) / self.device.rates.upload)}
        return costs if counted is None else costs | {"count": counted}

    def _match_seconds(self, plan: PhysicalPlan, counting: bool) -> float:
        """What enumerating the matches is expected to take, with all that they read on the device; infinite where sums
        may not fit, and another can count.
        """
        rates = self.device.rates
        seconds = self._starting(plan) + self._bias.factor * plan.cost / rates.intersected
        uncertain = plan.counting is not None and plan.counting.uncertain
        if self._beside_host and (uncertain or self._counter.too_wide(plan, counting)):
            seconds = math.inf
        if not counting and plan.steps:
            rows = plan.steps[plan.row_steps - 1].estimate * len(plan.columns)
            seconds += rows * len(plan.outputs) * np.dtype(plan.dtype).itemsize / rates.pinned_download
        return seconds

    def _starting(self, plan: PhysicalPlan) -> float:
        """Seconds that a join takes for its steps, however little there is to scan."""
        return STEP * self.device.rates.answer * (len(plan.steps) + 1)

    def _away_seconds(self, plan: PhysicalPlan, counting: bool) -> float:
        """What it is expected to take beside, that not all of the graph fits the device."""
        segments = self.join.segments(plan, counting)
        if segments is not None:
            return segments.seconds
        lists, residency = self._lists(plan, counting), self.graph.residency
        residency.place(lists)
        return residency.away(lists) * plan.cost * np.dtype(plan.dtype).itemsize / self.device.rates.linked

    def _lists(self, plan: PhysicalPlan, counting: bool) -> list[Lists]:
        """What matches of a plan read; its program tells, unless it counts cliques."""
        key = ("lists", counting and plan.clique is not None)
        found: list[Lists] | None = plan.cache.get(key)
        if found is None:
            found = plan.cache[key] = lists_of_plan(plan, counting)
        return found

    @contextmanager
    def _using(self, plan: PhysicalPlan, counting: bool, *, summing: bool = False) -> Iterator[None]:
        """Have what a plan reads stay on the device meanwhile; where not all of it fits, choose what is copied.

        Sums place their own lists (:mod:`graphdb.gpu.counting.lists`), and need no program of the matches.
        """
        used: list[object] = [plan, plan.counting]
        if counting and plan.clique is not None:
            used.append(plan.clique.graph)
        elif not summing:
            used += plan.partitions
        if not summing or (counting and plan.clique is not None):
            lists = self._lists(plan, counting)
            if self.join.segments(plan, counting) is None:
                self.graph.residency.place(lists)
            used += [each.elements for each in lists]
        with self.device.memory.using(used):
            yield

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
        return min(self.strategy(plan).memory(plan), self.device.memory.budget // 2)

    def missing_bytes(self, plan: PhysicalPlan) -> int:
        """Bytes that a run would have to copy to the device first."""
        return sum(map(self.graph.missing_bytes, plan.partitions))

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
        self._drain_searches(control)
        counted = self._counted_by_vertex(plan, control) if limit is None else None
        if counted is not None:
            vertices, numbers = counted
            control.seconds = time.monotonic() - started
            cells = vertices.astype(plan.dtype)
            yield Block({plan.outputs[0]: cells}, len(cells), numbers if plan.duplicates == "count" else None)
            return
        with self._using(plan, False):
            yield from self._enumerated(plan, control, limit)

    def _enumerated(self, plan: PhysicalPlan, control: Control, limit: int | None) -> Iterator[Block]:
        """The rows of all matches that start from the control's share of the roots."""
        started, left, taken = time.monotonic(), limit, 0.0
        found = self._blocks(plan, control, _ceil(limit, len(plan.columns)))
        try:
            while left != 0:
                asked = time.monotonic()
                with faults(self.name):
                    block = next(found, None)
                taken += time.monotonic() - asked
                if block is None:
                    whole = limit is None and control.share is None
                    if whole and len(self._strategy_costs(plan, counting=False)) > 1:
                        _timings(plan, False).note("match", taken)
                        self._counter.missed(plan, False, taken)
                    break
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
        finally:
            control.seconds = time.monotonic() - started

    def _blocks(
        self, plan: PhysicalPlan, control: Control, limit: int | None
    ) -> Iterator[tuple[NDArray[Any], int, NDArray[np.int64] | None]]:
        """The blocks of a run; where the last steps make no rows of their own, with the matches of each row."""
        if plan.row_steps < len(plan.steps):
            yield from self.join.tallied(plan, control, limit)
            return
        if limit is None and self.hint != "search" and reduces(plan, self.device.rates):
            yield from self.join.grouped(plan, control)
            return
        strategy = self.strategy(plan)
        blocks = strategy.run(plan, control, limit)
        if strategy.name != "search":
            for cells, rows in blocks:
                yield cells, rows, None
            return
        queue = RowQueue(blocks, control.buffer_bytes)
        self._reading.append(queue)
        begun, waiting = False, iter(queue)
        try:
            while True:
                with faults(self.name):
                    block = next(waiting, None)
                if block is None:
                    return
                begun = True
                yield *block, None
        except Refused as error:
            if begun:
                raise
            plan.cache["search refused"] = error.message
        finally:
            self._reading.remove(queue)
        for cells, rows in self.join.run(plan, control, limit):
            yield cells, rows, None

    def _drain_searches(self, control: Control) -> None:
        """Drain the searches that this thread is reading: their rows leave the device, so that no kernel waits for
        it.
        """
        for queue in [queue for queue in self._reading if queue.reader == threading.get_ident()]:
            with faults(self.name):
                queue.empty(control)

    def count(self, plan: PhysicalPlan, control: Control | None = None) -> int:
        """Run the plan for the number of its matches; raises like :meth:`run`."""
        control = control or Control()
        limit = control.limit_of(plan)
        if not plan.steps:
            return 1 if limit is None else min(limit, 1)
        started = time.monotonic()
        self._drain_searches(control)
        try:
            if limit is None:
                return self._whole_count(plan, control)
            found = self._found(plan, control, _ceil(limit, plan.automorphisms))
            return min(found * plan.automorphisms, limit)
        finally:
            control.seconds = time.monotonic() - started

    def _whole_count(self, plan: PhysicalPlan, control: Control) -> int:
        """Count all matches, as sums or by finding them: whichever is done first."""
        timings, decided = _timings(plan, True), self._decision(plan)
        if decided is None or not decided.again():
            anew = self._strategy_costs(plan, counting=True)
            decided = Decision.after(decided, timings.choose(anew, runs=True), anew)
            plan.cache["decision", self.name, self.hint] = decided
        costs = decided.costs

        def found(ready: Callable[[], bool] | None = None) -> tuple[str, int, float]:
            started = time.monotonic()
            total = self._found(plan, control, None, ready) * plan.automorphisms
            return "match", total, time.monotonic() - started

        def counted() -> tuple[str, int, float]:
            started = time.monotonic()
            total = self._summed(plan, True, lambda: self._counter.count(plan, control))
            return found() if total is None else ("count", total, time.monotonic() - started)

        ready = self._begun(plan)
        if ready is not None:
            try:
                way, total, taken = found(ready)
            except Overtaken:
                way, total, taken = counted()
        else:
            turns = {"match": found, "count": counted}
            way, total, taken = in_turns(costs, decided.chosen, timings, control, lambda name: turns[name]())[1]
        if way != decided.chosen or taken > WORSE * timings.seconds.get(way, math.inf):
            decided.left = 0
        if way == "match" and len(costs) > 1:
            if timings.runs:  # the first has copied and compiled, too
                self._bias.note(plan.cost / self.device.rates.intersected, taken - self._starting(plan))
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
        if self.hint != "auto" or _timings(plan, True).runs:
            return None
        seconds, counted = self._match_seconds(plan, True), self._counter.expected(plan, True)
        if counted is None or counted.seconds > self.device.limits.launch_seconds:
            return None
        long = seconds > RACE * (counted.seconds + counted.setup)
        return None if long else self._counter.begin(plan, True, seconds)

    def _found(
        self, plan: PhysicalPlan, control: Control, limit: int | None, ready: Callable[[], bool] | None = None
    ) -> int:
        """How many matches are found, before images: by the join where the search is refused.

        Raises :class:`~graphdb.gpu.overtaking.Overtaken` once ``ready`` says so.
        """
        if ready is not None:
            until = UntilReady.of(control, ready)
            try:
                return self._found(plan, until, limit)
            finally:
                until.report_to(control)
        strategy = self.strategy(plan)
        try:
            with self._using(plan, True), faults(self.name):
                return strategy.count(plan, control, limit)
        except Refused as error:
            if strategy.name != "search":
                raise
            plan.cache["search refused"] = error.message
        with self._using(plan, True), faults(self.name):
            return self.join.count(plan, control, limit)

    def count_jointly(self, joint: JointCount, control: Control | None = None) -> list[int]:
        """Count several patterns together, as sums; one after the other where another way is pinned.

        Raises like :meth:`run`, and :class:`~graphdb.plan.executor.OutOfRange` where sums may not fit 64 bits, or where
        there are no kernels for them.
        """
        control, started = control or Control(), time.monotonic()
        if self.hint not in ("auto", "sums"):
            return [self.count(plan, control) for plan in joint.plans]
        self._drain_searches(control)
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
        self._drain_searches(control)
        if limit is None and not search:
            costs, timings = self._strategy_costs(plan, counting), _timings(plan, counting)
            if "count" in costs and timings.choose(costs, runs=counting) == "count":
                try:
                    with faults(self.name):
                        return self._counter.division(plan, counting, control)
                except Refused:
                    timings.rule_out("count")
        first = plan.steps[0] if len(plan.steps) > 1 else None
        if not isinstance(first, VertexStep) or first.scan is None:
            return None
        if counting and plan.clique is not None and limit is None and self.strategy(plan).name == "join":
            return Division("ranks", np.diff(plan.clique.graph.work) + 1.0)
        grouped = not counting and limit is None and reduces(plan, self.device.rates)
        ordered = self.strategy(plan).name == "join" and not grouped and self.join.segments(plan, counting) is None
        return Division("roots", root_weights(plan), ordered)

    def rows_of(self, plan: PhysicalPlan, division: Division, control: Control) -> Iterator[Block]:
        """Run a share; raises as :meth:`run` does."""
        if division.unit != "vertices":
            with self._using(plan, False):
                yield from self._enumerated(plan, control, control.limit_of(plan))
            return
        try:
            with faults(self.name):
                counted = self._counter.count_by_vertex(plan, control, control.share)
        except Refused:
            _timings(plan, False).rule_out("count")
            counted = None
        if counted is None:
            raise OutOfRange
        cells, numbers = counted[0].astype(plan.dtype), counted[1]
        yield Block({plan.outputs[0]: cells}, len(cells), numbers if plan.duplicates == "count" else None)

    def partial(self, plan: PhysicalPlan, division: Division, control: Control) -> Partial:
        """Count a share; raises as :meth:`run` does."""
        limit = control.limit_of(plan)
        with faults(self.name):
            if division.unit != "roots" and "count" in self._strategy_costs(plan, counting=True):
                try:
                    with self._using(plan, True, summing=True):
                        return self._counter.partial(plan, division, control, control.share)
                except Refused as error:  # these sums, by this device: the matches are left
                    _timings(plan, True).rule_out("count")
                    raise OutOfRange from error
            found = self._found(plan, control, _ceil(limit, plan.automorphisms)) * plan.automorphisms
        return (found if limit is None else min(found, limit),)

    def total(self, plan: PhysicalPlan, division: Division, sums: Partial) -> int:
        """The number of matches, from the sums over all shares."""
        return self._counter.total(plan, sums) if division.unit == "vertices" else sums[0]

    def _counted_by_vertex(self, plan: PhysicalPlan, control: Control) -> tuple[Ints, Ints] | None:
        """The different rows and their numbers of matches, where that is possible and expected to be sooner."""
        costs, timings = self._strategy_costs(plan, counting=False), _timings(plan, False)
        if "count" not in costs or timings.choose(costs) != "count":
            return None
        started = time.monotonic()
        counted = self._summed(plan, False, lambda: self._counter.count_by_vertex(plan, control))
        if counted is not None:
            timings.note("count", time.monotonic() - started)
        return counted

    def _summed(self, plan: PhysicalPlan, counting: bool, count: Callable[[], Counted | None]) -> Counted | None:
        """What ``count`` gives; None where matches have to be found."""
        try:
            with self._using(plan, counting, summing=True), faults(self.name):
                return count()
        except OutOfRange:
            if self._beside_host:
                raise
        except Refused as error:  # these sums, by this device: the matches are left
            _log.info("a query is not counted by sums: %s", error)
            _timings(plan, counting).rule_out("count")
        return None


def _timings(plan: PhysicalPlan, counting: bool) -> StrategyTimings:
    """What is known of a plan's runs on a device."""
    found: StrategyTimings = plan.cache.setdefault(("how", counting), StrategyTimings())
    return found


def _ceil(limit: int | None, share: int) -> int | None:
    """How many matches to find where each stands for ``share``."""
    return None if limit is None else -(-limit // share)
