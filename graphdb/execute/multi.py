"""Several executors as one: GPUs of one host, each of which has a copy of what a run reads, or executors of one device.

A run is divided into shares (:mod:`graphdb.plan.shares`), which the executors take as they become free
(:mod:`graphdb.execute.guided_scheduling`).  Counts add up, and rows follow one another in the order in which one
executor alone gives them.  What is small, or cannot be divided, runs on the first executor.  One that fails leaves its
share to the others; where its device is lost, it is not asked again.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

import numpy as np

from graphdb.common.errors import DeviceError, GraphDBError
from graphdb.execute.divided_domains import DividedDomains
from graphdb.execute.divided_extension import DividedExtension
from graphdb.execute.guided_scheduling import FAILURES, GuidedSchedule, Task
from graphdb.execute.work_profile import LastRun, WorkProfile
from graphdb.plan.candidates.refinement import Refinement, Sets
from graphdb.plan.domains import DomainSearch, LabelledLists
from graphdb.plan.executor import Block, Control, OutOfRange, Refused, Traffic
from graphdb.plan.extension import Adjacency, Compressor, Extender
from graphdb.plan.joint import JointCount
from graphdb.plan.physical import PhysicalPlan
from graphdb.plan.shares import Divisible, Division, Partial
from graphdb.plan.strategy.ski_rental import ExpectedCost, StrategyTimings
from graphdb.plan.strategy.timed_blocks import timed

T = TypeVar("T")

SHARES = 64
"""The last shares are so small a part of what each executor works: as long the last to end works alone, about."""
WAITING, MOST = 2, 1 << 6
"""So many shares' rows of each executor find room while they wait for those before them; and shares, at most, for
that."""
SHARED_ROWS = 256 << 20
"""Bytes of a share's rows: what waits is page-locked, which takes 0.16 ms a MiB where it is not used again."""
LEAST = 1e-2
"""Seconds that a share is expected to take at least: some launches, and an answer to wait for, are a tenth of that."""
MINED_ALONE = 1e8
"""Elements that mining is expected to scan, below which one device does it.  A level takes as long as its longest
patterns, one to a block: of seven runs that scan up to 2e7 (31 ms on an H200), half of the patterns took at most 1.4 ms
less."""
TOGETHER, ALONE = "together", "alone"
"""How a run that can be divided is done: by all executors, or by the first."""
_log = logging.getLogger("graphdb")


class MultiExecutor:
    """Runs plans on several executors.

    Parameters
    ----------
    executors
        They, all of a kind, with the same graph and plans.
    shares, least
        How many shares each gets, and the seconds that one takes at least.
    alike
        Whether they are equally fast: then a run that is known is divided into shares of equal time.
    """

    def __init__(
        self, executors: Sequence[Divisible], *, shares: int = SHARES, least: float | None = None, alike: bool = True
    ) -> None:
        self._executors, self._alike = list(executors), alike
        self._shares, self._least = shares, LEAST if least is None else least
        self.name = _together([executor.name for executor in executors])
        self.tasks: list[Task] = []
        """After a run: the shares, in the order in which they ended."""

    @property
    def first(self) -> Divisible:
        """Who runs what is not divided."""
        return self._executors[0]

    def supports(self, plan: PhysicalPlan) -> bool:
        """Whether all can run the plan."""
        return all(executor.supports(plan) for executor in self._executors)

    def memory(self, plan: PhysicalPlan) -> int:
        """Bytes that each needs."""
        return max(executor.memory(plan) for executor in self._executors)

    def describe(self, plan: PhysicalPlan) -> str:
        """How one runs the plan, and into how many shares it is divided."""
        text = self.first.describe(plan)
        wanted = self._wanted(plan, plan.count_only)
        if wanted < 2 or len(self._executors) < 2:
            return text
        return f"{self.name}{text.removeprefix(self.first.name)}, in shares"

    def refine(self, task: Refinement) -> Sets | None:
        """Refine candidates on the first; where it fails, the planner does that itself."""
        try:
            return self.first.refine(task)
        except FAILURES as error:
            self._leave_out(self.first, error)
            return None

    def run(self, plan: PhysicalPlan, control: Control | None = None) -> Iterator[Block]:
        """Run the plan and give its matches block by block, in the order in which the first executor alone would.

        Raises
        ------
        QueryTimeout, ExecutionError, MemoryLimitError, DeviceError
            When the time is over, when cancelled, and where none of the executors can go on.
        """
        control = control or Control()
        started, limit = time.monotonic(), control.limit_of(plan)
        try:
            division = self._division(plan, False, control)
            learned = division is not None and limit is None
            if division is None or (learned and not self._pays(plan, False)):
                found, way = self._alone_rows(plan, control), ALONE
            else:
                found, way = self._rows(plan, division, control, limit), TOGETHER
            left = limit
            for block in timed(found, partial(self._timings(plan, False).note, way)) if learned else found:
                count = block.count if left is None else min(block.count, left)
                yield block if count == block.count else _first(block, count)
                if left is not None:
                    left -= count
                    if left == 0:
                        return
        finally:
            control.seconds = time.monotonic() - started

    def _rows(self, plan: PhysicalPlan, division: Division, control: Control, limit: int | None) -> Iterator[Block]:
        # Rows wait in the buffer for all before them: who fills it waits, too.
        rows_bytes = plan.steps[plan.row_steps - 1].estimate * plan.columns.size * np.dtype(plan.dtype).itemsize
        room = min(control.buffer_bytes / (WAITING * len(self._executors)), SHARED_ROWS)
        most = room / max(rows_bytes, 1.0)
        wanted, key = self._wanted(plan, False, int(min(1 / most, MOST))), ("last run", False)
        schedule = self._scheduled(division, plan.cache.get(key), wanted, control, limit, most)
        blocks = schedule.rows(lambda executor, own: executor.rows_of(plan, division, own))
        try:
            # A number for each vertex: all, before any is given, since one may not fit.
            yield from blocks if division.unit != "vertices" else list(blocks)
            if limit is None:
                plan.cache[key] = _after(plan.cache.get(key), division, schedule)
            return
        except OutOfRange:
            pass
        finally:
            self._note_failures(schedule)
        again = self._division(plan, False, control, search=True)
        if again is None:
            yield from self._alone_rows(plan, control)
        else:
            yield from self._rows(plan, again, control, limit)

    def count(self, plan: PhysicalPlan, control: Control | None = None) -> int:
        """Run the plan for the number of its matches; raises like :meth:`run`."""
        control = control or Control()
        started, limit = time.monotonic(), control.limit_of(plan)
        try:
            division = self._division(plan, True, control)
            learned = division is not None and limit is None
            if learned and not self._pays(plan, True):
                division = None
            if division is not None:
                try:
                    found = self._counted(plan, division, control, limit)
                except OutOfRange:
                    division = self._division(plan, True, control, search=True)
                    if division is not None:
                        found = self._counted(plan, division, control, limit)
                if division is not None:
                    if learned:
                        self._timings(plan, True).note(TOGETHER, time.monotonic() - started)
                    return found if limit is None else min(found, limit)
            found = self._alone(lambda executor: executor.count(plan, control))
            if learned:
                self._timings(plan, True).note(ALONE, time.monotonic() - started)
            return found
        finally:
            control.seconds = time.monotonic() - started

    def _counted(self, plan: PhysicalPlan, division: Division, control: Control, limit: int | None) -> int:
        started = time.monotonic()
        key = ("last run", True)
        schedule = self._scheduled(division, plan.cache.get(key), self._wanted(plan, True), control, limit)
        sums = self._added_up(schedule, lambda executor, own: executor.partial(plan, division, own))
        control.report(1.0)
        if limit is None:
            plan.cache[key] = _after(plan.cache.get(key), division, schedule)
        if division.unit == "roots" and limit is None:
            for executor in self._executors:
                executor.missed(plan, True, time.monotonic() - started)
        return self._alone(lambda executor: executor.total(plan, division, sums)) if sums else 0

    def _added_up(self, schedule: GuidedSchedule, count: Callable[[Divisible, Control], Partial]) -> Partial:
        """What the shares of a count add up to, place by place."""
        sums: Partial = ()
        try:
            for partial in schedule.partials(count):
                sums = tuple(a + b for a, b in zip(sums, partial, strict=True)) if sums else partial
        finally:
            self._note_failures(schedule)
        return sums

    def count_jointly(self, joint: JointCount, control: Control | None = None) -> list[int]:
        """Count several plans together; raises like :meth:`run`."""
        control, started = control or Control(), time.monotonic()
        wanted = self._worth(joint.cache.get("last run"), lambda: self.first.seconds_jointly(joint))
        try:
            divided = len(self._executors) > 1 and wanted > 1
            division = self._alone(lambda executor: executor.division_jointly(joint, control)) if divided else None
            if division is None:
                return self._alone(lambda executor: executor.count_jointly(joint, control))
            schedule = self._scheduled(division, joint.cache.get("last run"), wanted, control, None)
            try:
                sums = self._added_up(schedule, lambda executor, own: executor.partial_jointly(joint, own))
            except OutOfRange:
                return self._alone(lambda executor: executor.count_jointly(joint, control))
            joint.cache["last run"] = _after(joint.cache.get("last run"), division, schedule)
            control.report(1.0)
            return joint.numbers_of(sums)
        finally:
            control.seconds = time.monotonic() - started

    def counts_cliques(self, plan: PhysicalPlan) -> bool:
        """Whether the first does: all have the same kernels."""
        return self.first.counts_cliques(plan)

    def describe_jointly(self, joint: JointCount) -> str:
        """How the first counts them, and whether all do."""
        text = self.first.describe_jointly(joint)
        wanted = self._worth(joint.cache.get("last run"), lambda: self.first.seconds_jointly(joint))
        if wanted < 2 or len(self._executors) < 2:
            return text
        return f"{self.name}{text.removeprefix(self.first.name)}, in shares"

    def domain_search(
        self, lists: LabelledLists, scanned: float, control: Control, host_memory: int | None
    ) -> DomainSearch | None:
        """What finds domains on all that can, of patterns that are scheduled; on the first, where that is little work;
        None where none can.
        """
        if len(self._executors) < 2 or scanned < MINED_ALONE:
            return self._alone(lambda executor: executor.domain_search(lists, scanned, control, host_memory))
        room, stop = None if host_memory is None else host_memory // len(self._executors), threading.Event()
        own = Control(cancelled=stop)
        found, failed = self._each(lambda executor: executor.domain_search(lists, scanned, own, room))
        return DividedDomains(found, len(lists.spans), control, stop, failed) if found else None

    def extender(self, lists: Adjacency, scanned: float, control: Control) -> Extender | None:
        """What extends embeddings on all devices that can, or, where that is little work, on the first; None where none
        can.
        """
        if len(self._executors) < 2 or scanned < MINED_ALONE:
            return self._alone(lambda executor: executor.extender(lists, scanned, control))
        stop = threading.Event()
        own = Control(cancelled=stop)
        found, failed = self._each(lambda executor: executor.extender(lists, scanned, own))
        return DividedExtension(found, control, stop, failed) if found else None

    def _each(self, ask: Callable[[Divisible], T | None]) -> tuple[dict[int, T], Callable[[int, GraphDBError], None]]:
        """What every executor gives that gives something, by its number; and what leaves one out by that number.

        Raises what the last one does, where all fail.
        """
        executors, found = list(self._executors), dict[int, T]()
        for number, executor in enumerate(executors):
            try:
                given = ask(executor)
            except FAILURES as error:
                self._leave_out(executor, error)
                if number == len(executors) - 1 and not found:
                    raise
            else:
                found |= {} if given is None else {number: given}

        def failed(number: int, error: GraphDBError) -> None:
            self._leave_out(executors[number], error)

        return found, failed

    def traffic(self) -> Traffic:
        """All executors' together."""
        found = [executor.traffic() for executor in self._executors]
        return Traffic(sum(each.copied for each in found), "; ".join(each.paged for each in found if each.paged))

    def compressor(self, rows: int, nbytes: int, control: Control) -> Compressor | None:
        """What filters tables on the first device."""
        return self._alone(lambda executor: executor.compressor(rows, nbytes, control))

    # --- who runs what

    def _wanted(self, plan: PhysicalPlan, counting: bool, shares: int = 0) -> int:
        """How many shares a run is worth."""
        last = plan.cache.get(("last run", counting))
        return self._worth(last, lambda: self.first.seconds(plan, counting), shares)

    def _worth(self, last: LastRun | None, expected: Callable[[], float], shares: int = 0) -> int:
        """How many shares a run is worth, by what its last run took, or by what is expected: at most as many as keep
        the executors busy, or ``shares``.
        """
        many = max(self._shares * len(self._executors), shares)
        if not self._least or len(self._executors) < 2:
            return many
        return int(min(many, (expected() if last is None else last.seconds) / self._least))

    def _pays(self, plan: PhysicalPlan, counting: bool) -> bool:
        """Whether a run is divided that can be: where its rows have one link, or take as long to wait for each other
        as to be found, one executor may be done sooner.  What runs took decides, once they are known.
        """
        last: LastRun | None = plan.cache.get(("last run", counting))
        if last is None or not self._least:
            return True
        costs = {TOGETHER: last.seconds / len(self._executors), ALONE: last.seconds}
        expected = {way: ExpectedCost(seconds) for way, seconds in costs.items()}
        return self._timings(plan, counting).choose(expected, runs=True) == TOGETHER

    def _timings(self, plan: PhysicalPlan, counting: bool) -> StrategyTimings:
        key = ("timings of devices", counting, len(self._executors))
        found: StrategyTimings = plan.cache.setdefault(key, StrategyTimings())
        return found

    def _division(
        self, plan: PhysicalPlan, counting: bool, control: Control, *, search: bool = False
    ) -> Division | None:
        """How a run divides; None where one executor runs it alone."""
        if len(self._executors) < 2 or self._wanted(plan, counting) < 2:
            return None
        try:
            return self._alone(lambda executor: executor.division(plan, counting, control, search=search))
        except OutOfRange:
            return self._alone(lambda executor: executor.division(plan, counting, control, search=True))

    def _scheduled(
        self,
        division: Division,
        last: LastRun | None,
        wanted: int,
        control: Control,
        limit: int | None,
        most: float = 1.0,
    ) -> GuidedSchedule:
        """The shares of a run, none more than ``most`` of it, or a ``MOST``-th: by its last run of equal time, or about
        as many as wanted.
        """
        count = len(self._executors)
        profile = None if last is None or not self._alike else last.profile_of(division)
        most = max(most, 1 / MOST)
        if last is None or profile is None or not self._least:
            cuts, parts = division.factored(count, wanted, most)
        elif most * count < 1:
            number = count * math.ceil(1 / most / count)
            cuts, parts = profile.shares([1 / number] * number)
        else:
            cuts, parts = last.shares(count, self._least)
        schedule = GuidedSchedule(self._executors, cuts, parts, control, limit, ordered=division.ordered)
        self.tasks = schedule.tasks
        return schedule

    def _note_failures(self, schedule: GuidedSchedule) -> None:
        """Leave out those whose device was lost in a run."""
        for number, error in schedule.failed.items():
            self._leave_out(schedule.executors[number], error)

    def _alone(self, ask: Callable[[Divisible], T]) -> T:
        """Ask the first executor, and the next where it fails."""
        for executor in list(self._executors):
            try:
                return ask(executor)
            except FAILURES as error:
                self._leave_out(executor, error)
                last = error
        raise last

    def _alone_rows(self, plan: PhysicalPlan, control: Control) -> Iterator[Block]:
        """The rows of one executor; of the next, where it fails before it has given any."""
        for executor in list(self._executors):
            given = False
            try:
                for block in executor.run(plan, control):
                    given = True
                    yield block
                return
            except FAILURES as error:
                self._leave_out(executor, error)
                last = error
                if given:
                    raise
        raise last

    def _leave_out(self, executor: Divisible, error: GraphDBError) -> None:
        """Ask an executor no more, if others are left, unless only memory was short."""
        if executor in self._executors:
            _log.warning("%s leaves its work to others: %s", executor.name, str(error))
        lost = isinstance(error, DeviceError) and not isinstance(error, Refused)
        if lost and len(self._executors) > 1 and executor in self._executors:
            self._executors.remove(executor)
            self.name = _together([other.name for other in self._executors])


def _after(before: LastRun | None, division: Division, schedule: GuidedSchedule) -> LastRun:
    """What is known once a run has ended, of which something was known before."""
    known = None if before is None else before.profile_of(division)
    profile = WorkProfile.expected(division.weights) if known is None else known
    return LastRun.after(
        division.unit, profile, [(one.begin, one.end, one.ended - one.started) for one in schedule.tasks]
    )


def _together(names: Sequence[str]) -> str:
    """The names of several devices as one: ``"cuda:0,1"``."""
    kinds = {name.partition(":")[0] for name in names}
    if len(kinds) == 1 and all(":" in name for name in names):
        return f"{kinds.pop()}:{','.join(name.partition(':')[2] for name in names)}"
    return " and ".join(names)


def _first(block: Block, rows: int) -> Block:
    """The first rows of a block."""
    columns = {name: cells[:rows] for name, cells in block.columns.items()}
    return Block(columns, rows, None if block.matches is None else block.matches[:rows])
