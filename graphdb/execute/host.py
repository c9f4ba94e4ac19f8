"""The CPU executor: searches in kernels without the GIL, and counts that do not enumerate the matches.

Small runs stay on the calling thread; larger ones are scheduled on threads (:mod:`graphdb.execute.search.chunks`).  The
kernels return every few milliseconds, so Ctrl-C, a timeout, cancellation and a limit stop any run at once.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common.errors import MemoryLimitError, QueryTimeout
from graphdb.execute.counting.cliques import count_cliques
from graphdb.execute.counting.crt import Numbers, times
from graphdb.execute.counting.plan_run import count_by_vertex, count_matches, part_totals, vertex_division
from graphdb.execute.counting.trees import count_along_tree
from graphdb.execute.counting.twins import count_twins, table_bytes
from graphdb.execute.search.chunks import ParallelRun, SingleThreadRun, scan_of
from graphdb.execute.search.scans import DegreesRun, EdgesRun, ScanRun, counts_edges, is_scan, lists_edges
from graphdb.execute.search.worker import Sizes, recount
from graphdb.plan.candidates.refinement import Refinement, Sets
from graphdb.plan.counting.plan import CountingPlan, added_up, parts_of
from graphdb.plan.counting.tree import TreeCount
from graphdb.plan.counting.twins import TwinCount
from graphdb.plan.domains import DomainSearch, LabelledLists
from graphdb.plan.executor import Block, Control, OutOfRange, Overran, Traffic
from graphdb.plan.extension import Adjacency, Compressor, Extender
from graphdb.plan.joint import JointCount
from graphdb.plan.passes.counting import QUICK
from graphdb.plan.physical import PhysicalPlan
from graphdb.plan.shares import Division, Partial, rank_division, root_division
from graphdb.plan.strategy.ski_rental import LONGER, OFTEN, Decision, ExpectedCost, StrategyTimings

BLOCK_ROWS = 1 << 16
YIELD_WORK = 1 << 20
"""Elements that a kernel call scans at most, roughly: some milliseconds."""
INLINE_COST = 300_000.0
"""Plans expected to do less than this run on the calling thread."""
SOON, PATIENCE = 5e-4, 4.0
"""A search that counts instead of sums gets so many seconds, or so many times what these take, before it is stopped."""
SOON_WORK = 1 << 15
"""Elements that such a search scans between two looks at the clock."""
RATE, CLIQUE = 1e8, 0.15
"""Elements that a thread scans in a second, about, and how many of these an element takes that is read for cliques."""
_KNOWN = "counted on the cpu by"
"""In a plan's cache: :class:`_Known`."""
_SEARCH = "search"
_CACHE_BYTES = 1 << 18
"""Buffers up to this size (or a 64th of the memory limit) stay with their plan for its next run."""


_HANDED_OVER = 2.0
"""Times as much as what is counted on one thread is found on one where rows are handed over, block by block, to the
caller's."""


@dataclass(slots=True)
class _Known:
    """What counts of a plan took by a search and without one, and which of them counts now."""

    costs: dict[str, ExpectedCost]
    decided: Decision | None
    timings: StrategyTimings = field(default_factory=StrategyTimings)


class HostExecutor:
    """Runs plans on the CPU.

    Parameters
    ----------
    threads
        How many workers a large run has; by default as many as the process may use CPUs.
    memory_limit
        Bytes that a run may take for its buffers; fewer workers are used where all would take more.
    block_rows, yield_work, inline_cost
        Sizes of output blocks and of kernel calls, and what runs without workers (tests make them tiny).
    """

    name = "cpu"

    def __init__(
        self,
        threads: int | None = None,
        *,
        memory_limit: int | None = None,
        block_rows: int = BLOCK_ROWS,
        yield_work: int = YIELD_WORK,
        inline_cost: float = INLINE_COST,
    ) -> None:
        self.threads = threads or len(os.sched_getaffinity(0))
        self.memory_limit = memory_limit
        cache_bytes = _CACHE_BYTES if memory_limit is None else min(_CACHE_BYTES, memory_limit // 64)
        self._sizes = Sizes(block_rows, yield_work, cache_bytes)
        self.inline_cost = inline_cost

    def supports(self, plan: PhysicalPlan) -> bool:
        """Every plan runs on the CPU."""
        return True

    def describe(self, plan: PhysicalPlan) -> str:
        """The CPU: there is one way."""
        return self.name

    def refine(self, task: Refinement) -> Sets | None:
        """Nothing: the planner is on the CPU itself."""
        return None

    def memory(self, plan: PhysicalPlan) -> int:
        """Bytes of the workers' intersection buffers and output blocks, or of the vectors that count."""
        if plan.counting is not None:
            return plan.counting.shared_bytes + self.threads * plan.counting.worker_bytes
        if plan.tree is not None:
            return self.threads * plan.tree.worker_bytes
        return self._workers(plan) * self._worker_bytes(plan)

    def run(self, plan: PhysicalPlan, control: Control | None = None) -> Iterator[Block]:
        """Run the plan and give its matches block by block, in an order that depends on the plan alone.

        Raises
        ------
        QueryTimeout, ExecutionError, MemoryLimitError
            When the time is over, when cancelled, and where not even one worker fits the memory limit.
        """
        control = control or Control()
        limit = control.limit_of(plan)
        if not plan.steps:
            if limit != 0:
                yield Block({}, 1)
            return
        started = time.monotonic()
        if plan.counting is not None and limit is None:
            try:
                counted = count_by_vertex(plan.counting, control, self.threads, self.memory_limit)
            finally:
                control.seconds = time.monotonic() - started
            if counted is not None:
                yield from self._counted_rows(plan, *counted)
                return
        yield from self._searched_rows(plan, control, limit)

    def _searched_rows(self, plan: PhysicalPlan, control: Control, limit: int | None) -> Iterator[Block]:
        """The rows of a search over the control's share of the roots."""
        started, left = time.monotonic(), limit
        schedule = self._search_run(plan, control, self._sizes, counting=False, limit=_ceil(limit, len(plan.columns)))
        try:
            for matches in schedule.blocks():
                found, numbers = matches
                count = found.shape[1] * len(plan.columns)
                count = count if left is None else min(count, left)
                columns = zip(plan.outputs, plan.columns.T, strict=True)
                if plan.duplicates == "count":
                    once = numbers is None and plan.automorphisms == 1  # for all rows, which is in memory once
                    numbers = np.ones(1 if once else count, np.int64) if numbers is None else numbers
                    numbers = np.broadcast_to(numbers, count) if once else times(numbers, plan.automorphisms)
                yield Block({name: _images(found, moved)[:count] for name, moved in columns}, count, numbers)
                if left is not None:
                    left -= count
                    if left == 0:
                        break
        finally:
            schedule.close()
            control.seconds = time.monotonic() - started

    def _counted_rows(self, plan: PhysicalPlan, vertices: NDArray[np.int64], numbers: Numbers) -> Iterator[Block]:
        size = self._sizes.block_rows
        for at in range(0, len(vertices), size):
            part = vertices[at : at + size].astype(plan.dtype)
            matches = numbers[at : at + size] if plan.duplicates == "count" else None
            yield Block({plan.outputs[0]: part}, len(part), matches)

    def count(self, plan: PhysicalPlan, control: Control | None = None) -> int:
        """Run the plan for the number of its matches; raises like :meth:`run`."""
        control = control or Control()
        limit = control.limit_of(plan)
        if not plan.steps:
            return 1 if limit is None else min(limit, 1)
        started = time.monotonic()
        try:
            counted = self._counted(plan, control) if limit is None else None
            return self._searched(plan, control, limit) if counted is None else counted
        finally:
            control.seconds = time.monotonic() - started

    def count_jointly(self, joint: JointCount, control: Control | None = None) -> list[int]:
        """Count several patterns together: one after the other where their vectors do not fit the memory limit."""
        control, started = control or Control(), time.monotonic()
        totals = part_totals(joint.counting, control, self.threads, self.memory_limit)
        if totals is None:
            shares = [i / len(joint.plans) for i in range(len(joint.plans) + 1)]
            parts = [control.within(begin, end) for begin, end in pairwise(shares)]
            return [self.count(plan, part) for plan, part in zip(joint.plans, parts, strict=True)]
        control.seconds = time.monotonic() - started
        return joint.numbers(totals)

    def domain_search(
        self, lists: LabelledLists, scanned: float, control: Control, host_memory: int | None
    ) -> DomainSearch | None:
        """Nothing: there is no device here."""
        return None

    def extender(self, lists: Adjacency, scanned: float, control: Control) -> Extender | None:
        """Nothing, as above."""
        return None

    def traffic(self) -> Traffic:
        """None."""
        return Traffic()

    def compressor(self, rows: int, nbytes: int, control: Control) -> Compressor | None:
        """Nothing, as above."""
        return None

    def counts_cliques(self, plan: PhysicalPlan) -> bool:
        """Always."""
        return True

    def describe_jointly(self, joint: JointCount) -> str:
        """As :meth:`describe`."""
        return self.name

    def _counted(self, plan: PhysicalPlan, control: Control) -> int | None:
        """The number of matches by the plan's way to count them without a search; None where there is none."""
        if plan.clique is not None:
            found = count_cliques(plan.clique, self.threads, control)
            control.rows = np.zeros(len(plan.steps), np.int64)
            control.rows[-1] = found  # the steps before it were not taken
            return found * plan.automorphisms
        sums = self._sums(plan)
        if sums is None:
            return None
        known = self._known(plan, sums)
        if known.decided is None or not known.decided.again():
            chosen = known.timings.choose(known.costs, runs=True)
            known.decided = Decision.after(known.decided, chosen, known.costs, known.timings)
        if known.decided.chosen == _SEARCH:
            control.disturbed |= known.timings.tried(_SEARCH)
            counted = self._searched_soon(plan, control, sums, known)
            if counted is not None:
                return counted
        started = time.perf_counter()
        counted = self._summed(plan, sums, control)
        if counted is not None:  # there was memory for it
            known.timings.note(sums, time.perf_counter() - started)
        return counted

    def _sums(self, plan: PhysicalPlan) -> str | None:
        """How a plan is counted without a search; None where there is no way, or no memory for it."""
        if plan.twins is not None and table_bytes(plan.twins) <= (self.memory_limit or sys.maxsize):
            return "twins"
        if plan.tree is not None and self._fits(plan.tree):
            return "tree"
        return "sums" if plan.counting is not None or plan.doubtful else None

    def _known(self, plan: PhysicalPlan, sums: str) -> _Known:
        """What is known of a plan's counts.

        The first is without a search, which needs a program that is not written then, unless a search is expected to be
        so quick that sums are planned only once it was not; later ones go by what was measured, or is expected.
        """
        known: _Known | None = plan.cache.get(_KNOWN)
        if known is None:
            work = {"twins": plan.twins, "tree": plan.tree, "sums": plan.counting}[sums]
            summed = (
                float(work.choices[-1]) if isinstance(work, TwinCount) else work.cost if work is not None else QUICK
            )
            costs = {sums: ExpectedCost(summed / RATE), _SEARCH: ExpectedCost(plan.cost / RATE)}
            known = plan.cache[_KNOWN] = _Known(costs, Decision(_SEARCH if work is None else sums, costs, 1))
        return known

    def _summed(self, plan: PhysicalPlan, sums: str, control: Control) -> int | None:
        if sums == "twins":
            assert plan.twins is not None
            return count_twins(plan.twins, control)
        if sums == "tree":
            assert plan.tree is not None
            return count_along_tree(
                plan.tree, control, self.threads, yield_work=self._sizes.yield_work, inline_cost=self.inline_cost
            )
        counting = plan.sums
        return None if counting is None else count_matches(counting, control, self.threads, self.memory_limit)

    def _searched_soon(self, plan: PhysicalPlan, control: Control, sums: str, known: _Known) -> int | None:
        """The number of matches by a search, unless that takes much longer than what counts without one."""
        sizes, started = self._sizes._replace(yield_work=SOON_WORK), time.perf_counter()
        timings = known.timings
        usual, stopped = timings.measured(sums), timings.stopped.get(_SEARCH, 0.0)
        most = max(SOON, PATIENCE * (known.costs[_SEARCH].seconds if usual is None else usual), LONGER * stopped)
        try:
            with control.at_most(most):
                found = self._searched(plan, control, None, sizes)
        except Overran:
            timings.overran(_SEARCH, most)
            known.decided = Decision(sums, known.costs, OFTEN, OFTEN)
            return None
        except QueryTimeout:  # of whoever has called: the next run would end there again
            taken = time.perf_counter() - started
            if usual is not None and taken > usual:
                timings.overran(_SEARCH, taken)
                known.decided = Decision(sums, known.costs, OFTEN, OFTEN)
            raise
        timings.note(_SEARCH, time.perf_counter() - started)
        return found

    def _searched(self, plan: PhysicalPlan, control: Control, limit: int | None, sizes: Sizes | None = None) -> int:
        """The number of matches (not over the limit) by a search."""
        sizes = sizes or self._sizes
        if limit is None and control.progress is None and control.share is None:
            found = recount(plan, sizes, control)
            if found is not None:
                return found * plan.automorphisms
        most = _ceil(limit, plan.automorphisms)
        schedule = self._search_run(plan, control, sizes, counting=True, limit=most)
        try:
            for _ in schedule.blocks():
                pass
        finally:
            schedule.close()
        total = schedule.total * plan.automorphisms
        return total if limit is None else min(total, limit)

    # --- shares of a run, beside other executors

    def seconds(self, plan: PhysicalPlan, counting: bool) -> float:
        """The seconds that a run or a count is expected to take on all threads."""
        work = plan.cost
        if counting and plan.clique is not None:
            work = CLIQUE * plan.clique.cost
        elif (counting or plan.duplicates != "keep") and plan.counting is not None:
            work = plan.counting.cost
        return work / (RATE * self.threads)

    def missed(self, plan: PhysicalPlan, counting: bool, seconds: float) -> None:
        """Nothing would make a run quicker."""

    def division(
        self, plan: PhysicalPlan, counting: bool, control: Control, *, search: bool = False
    ) -> Division | None:
        """How a run or a count divides: as :meth:`graphdb.plan.shares.Divisible.division` says."""
        if not plan.steps or plan.scan is not None:
            return None
        if control.limit_of(plan) is None and not search:
            if counting and plan.clique is not None:
                return rank_division(plan.clique)
            if counting and (plan.twins is not None or plan.tree is not None):
                return None  # linear
            if (sums := plan.sums) is not None:
                return vertex_division(sums)
        return root_division(plan)

    def rows_of(self, plan: PhysicalPlan, division: Division, control: Control) -> Iterator[Block]:
        """Run a share."""
        if division.unit == "vertices":
            assert plan.counting is not None
            counted = count_by_vertex(plan.counting, control, self.threads, self.memory_limit)
            if counted is None:
                raise OutOfRange  # no memory for the vectors
            yield from self._counted_rows(plan, *counted)
            return
        yield from self._searched_rows(plan, control, control.limit_of(plan))

    def partial(self, plan: PhysicalPlan, division: Division, control: Control) -> Partial:
        """Count a share."""
        if division.unit == "ranks":
            assert plan.clique is not None
            return (count_cliques(plan.clique, self.threads, control) * plan.automorphisms,)
        if division.unit == "vertices":
            assert plan.sums is not None
            return self._part_sums(plan.sums, control)
        return (self._searched(plan, control, control.limit_of(plan)),)

    def total(self, plan: PhysicalPlan, division: Division, sums: Partial) -> int:
        """The number of matches, from the sums over all shares."""
        if division.unit == "vertices":
            assert plan.sums is not None
            terms = plan.sums.terms
            return added_up(terms, dict(zip(parts_of(terms), sums, strict=True)))
        return sums[0]

    def seconds_jointly(self, joint: JointCount) -> float:
        """The seconds that a joint count is expected to take on all threads."""
        return joint.counting.cost / (RATE * self.threads)

    def division_jointly(self, joint: JointCount, control: Control) -> Division | None:
        """How a joint count divides."""
        return vertex_division(joint.counting)

    def partial_jointly(self, joint: JointCount, control: Control) -> Partial:
        """Count a share."""
        return self._part_sums(joint.counting, control)

    def _part_sums(self, plan: CountingPlan, control: Control) -> Partial:
        """What each part of a plan adds up to over a share."""
        totals = part_totals(plan, control, self.threads, self.memory_limit)
        if totals is None:
            raise OutOfRange  # no memory for the vectors
        return tuple(totals[part] for part in parts_of(plan.terms))

    def _search_run(
        self, plan: PhysicalPlan, control: Control, sizes: Sizes, *, counting: bool, limit: int | None
    ) -> ScanRun | EdgesRun | DegreesRun | SingleThreadRun | ParallelRun:
        if is_scan(plan):
            return ScanRun(plan, control, counting, limit)
        control.threads = self._workers(plan, 1.0 if counting else _HANDED_OVER)
        if limit is None and not counting and lists_edges(plan):
            return EdgesRun(plan, control, sizes.block_rows)
        if limit is None and not counting and counts_edges(plan):
            return DegreesRun(plan, control, sizes.block_rows)
        return (SingleThreadRun if control.threads == 1 else ParallelRun)(plan, sizes, control, counting, limit)

    def _fits(self, tree: TreeCount) -> bool:
        """Whether all workers of a count along a tree fit the memory limit."""
        return self.memory_limit is None or self.threads * tree.worker_bytes <= self.memory_limit

    def _worker_bytes(self, plan: PhysicalPlan) -> int:
        block = self._sizes.block_rows * len(plan.program.outputs) * np.dtype(plan.dtype).itemsize
        return plan.worker_bytes + block

    def _workers(self, plan: PhysicalPlan, alone: float = 1.0) -> int:
        """How many workers a run gets: one for what costs less than what is small, so many times."""
        scan = scan_of(plan)
        workers = 1 if plan.cost < alone * self.inline_cost else min(self.threads, len(scan))
        if self.memory_limit is not None:
            fitting = self.memory_limit // max(self._worker_bytes(plan), 1)
            if fitting < 1:
                raise MemoryLimitError(
                    f"the query needs {self._worker_bytes(plan):,} bytes of buffers, "
                    f"and the memory limit leaves {self.memory_limit:,}",
                    hint="raise memory_limit",
                )
            workers = min(workers, fitting)
        return max(workers, 1)


def _ceil(limit: int | None, share: int) -> int | None:
    """How many matches to find where each stands for ``share``."""
    return None if limit is None else -(-limit // share)


def _images(matches: NDArray[Any], moved: NDArray[np.int64]) -> NDArray[Any]:
    """One output's column: for each match, one after the other, the values of its automorphic images."""
    if len(moved) == 1:
        column: NDArray[Any] = matches[moved[0]]
        return column
    return np.take(matches, moved, axis=0).T.reshape(-1)
