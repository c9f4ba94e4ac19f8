"""How a run divides into shares that several executors run: which units there are, and what a share of them gives.

Every executor that runs shares of a plan must have the same plan, over the same state of the graph: a share is a range
of numbers.  Shares of one run are independent (SMOG §IV-A: matching tasks that start from different vertices are);
counts add up, and rows follow one another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from graphdb.common.lazy import lazy
from graphdb.plan.executor import Block, Control, Executor
from graphdb.plan.joint import JointCount
from graphdb.plan.physical import CliqueCount, PhysicalPlan, VertexStep
from graphdb.storage.arrays.sorted_sets import places, unique
from graphdb.storage.graph.pcsr import Partition

Unit = Literal["roots", "ranks", "vertices"]
Partial = tuple[int, ...]
"""What a share of a count gives: numbers that are added up over the shares, place by place."""


@dataclass(frozen=True)
class Division:
    """How a run divides.

    Attributes
    ----------
    unit
        ``"roots"``: values of the first step's scan.  ``"ranks"``: vertices in the order of an oriented graph, whose
        cliques are counted.  ``"vertices"``: roots of sums, in the executor's own numbers.
    units
        How many there are.
    weigh
        Gives :attr:`weights`.  It is asked where no earlier run of the plan has shown how its work is spread: for
        millions of roots it takes tens of milliseconds.
    ordered
        Whether every executor gives the rows of a share in the same order.
    """

    unit: Unit
    units: int
    weigh: Callable[[], NDArray[np.float64]]
    ordered: bool = True

    @classmethod
    def of_weights(cls, unit: Unit, weights: NDArray[np.float64], ordered: bool = True) -> Division:
        """Return the division whose weights are known: float64 [units]."""
        return cls(unit, len(weights), lambda: weights, ordered)

    @lazy
    def weights(self) -> NDArray[np.float64]:
        """About how much work each unit is: float64 [units]."""
        return self.weigh()

    def without_weights(self) -> Division:
        """The same for who runs its shares, and need not know how they were cut: it can be sent to other processes."""
        return replace(self, weigh=_no_weights)

    def shares(self, wanted: int, *, heaviest_first: bool) -> tuple[list[tuple[int, int]], list[float]]:
        """About so many ranges, and each one's part of the work.

        With ``heaviest_first``, where the order of results is nobody's concern, so that no one is left alone with a
        heavy one at the end (list scheduling by longest processing time; Graham, SIAM J. Appl. Math. 1969).
        """
        cuts = self.cuts(wanted)
        ends = np.append(0.0, np.cumsum(self.weights))
        whole = max(float(ends[-1]), 1e-9)
        parts = [float(ends[end] - ends[begin]) / whole for begin, end in cuts]
        if heaviest_first:
            order = np.argsort(parts, kind="stable")[::-1].tolist()
            cuts, parts = [cuts[i] for i in order], [parts[i] for i in order]
        return cuts, parts

    def factored(self, workers: int, wanted: int, most: float = 1.0) -> tuple[list[tuple[int, int]], list[float]]:
        """Ranges that become smaller, and each one's part of the work.

        In turns half of what is left is divided among the workers, down to a ``wanted``-th of the whole (factoring;
        Hummel, Schonberg and Flynn, Communications of the ACM 35, 1992): fewer shares than equal ones, and as little is
        left to the last.  None is expected to be more than ``most`` of the whole.

        >>> Division.of_weights("roots", np.ones(64)).factored(2, 16)[0][:5]
        [(0, 16), (16, 32), (32, 40), (40, 48), (48, 52)]
        >>> Division.of_weights("roots", np.ones(64)).factored(2, 16, 1 / 8)[0][:5]
        [(0, 8), (8, 16), (16, 24), (24, 32), (32, 40)]
        """
        left, sizes = 1.0, list[float]()
        while left > 1e-9:
            each = max(min(left / (2 * workers), most), 1 / max(wanted, 1))
            sizes += [each] * workers
            left -= each * workers
        ends = np.append(0.0, np.cumsum(self.weights + 1e-9))
        bounds = np.searchsorted(ends, ends[-1] * (np.cumsum(sizes) - 1e-9), side="left")
        bounds = unique(np.clip(np.append(bounds, self.units), 0, self.units))
        cuts = list(pairwise(unique(np.append(0, bounds)).tolist()))
        return cuts, [float(ends[end] - ends[begin]) / float(ends[-1]) for begin, end in cuts]

    def cuts(self, wanted: int) -> list[tuple[int, int]]:
        """Ranges of units, about ``wanted`` of them, of about the same work; a unit that is more is one by itself.

        >>> Division.of_weights("roots", np.array([1.0, 1.0, 8.0, 1.0, 1.0])).cuts(3)
        [(0, 2), (2, 3), (3, 5)]
        """
        weights = self.weights + 1e-9
        ends = np.cumsum(weights)
        if not len(ends):
            return []
        share = float(ends[-1]) / max(wanted, 1)
        number = ((ends - weights / 2) // share).astype(np.int64)
        heavy = weights > share
        fresh = np.append(True, (number[1:] != number[:-1]) | heavy[1:] | heavy[:-1])
        return list(pairwise([*np.flatnonzero(fresh).tolist(), len(ends)]))


def _no_weights() -> NDArray[np.float64]:
    return np.empty(0)


def rank_division(clique: CliqueCount) -> Division:
    """How a count of cliques divides: by ranks, of which each is as much work as its neighbours' neighbours are."""
    work = clique.graph.work
    return Division("ranks", len(work) - 1, lambda: np.diff(work) + 1.0)


def root_division(plan: PhysicalPlan, ordered: bool = True) -> Division:
    """How a search divides: by the values of the first step's scan."""
    first = plan.steps[0]
    assert isinstance(first, VertexStep)
    assert first.scan is not None
    return Division("roots", len(first.scan), lambda: _root_weights(plan), ordered)


def _root_weights(plan: PhysicalPlan) -> NDArray[np.float64]:
    """About how much work each root is: float64 [roots], how many neighbours it has in the second step, and 1."""
    first, program = plan.steps[0], plan.program
    assert isinstance(first, VertexStep)
    assert first.scan is not None
    weights = np.ones(len(first.scan))
    if program.second >= 0:
        row = tuple(program.partitions[program.second].tolist())
        partition = next(item for item in program.alive if isinstance(item, Partition) and item.row == row)
        if len(partition.keys):
            at, there = places(partition.keys, first.scan)
            weights[there] += partition.lengths()[at[there]]
    return weights


class Divisible(Executor, Protocol):
    """An executor that can run shares of plans, beside others."""

    def seconds(self, plan: PhysicalPlan, counting: bool) -> float:
        """The seconds that a run, or with ``counting`` a count, is expected to take without being divided."""

    def missed(self, plan: PhysicalPlan, counting: bool, seconds: float) -> None:
        """A run took so long without what would make it quicker: that is got ready, if that pays."""

    def division(
        self, plan: PhysicalPlan, counting: bool, control: Control, *, search: bool = False
    ) -> Division | None:
        """How a run, or with ``counting`` a count, divides; None where it is one piece.

        With ``search``, the matches are enumerated, even where sums would be sooner.
        """

    def rows_of(self, plan: PhysicalPlan, division: Division, control: Control) -> Iterator[Block]:
        """Run the share that the control names; with a limit, that many rows will do."""

    def partial(self, plan: PhysicalPlan, division: Division, control: Control) -> Partial:
        """Count the share that the control names; with a limit, that many matches will do.

        Raises :class:`graphdb.plan.executor.OutOfRange` where a number does not fit.
        """

    def total(self, plan: PhysicalPlan, division: Division, sums: Partial) -> int:
        """The number of matches, from the sums over all shares."""

    def seconds_jointly(self, joint: JointCount) -> float:
        """The seconds that a joint count is expected to take without being divided."""

    def division_jointly(self, joint: JointCount, control: Control) -> Division | None:
        """How a joint count divides; None where it is one piece, or is not counted as sums."""

    def partial_jointly(self, joint: JointCount, control: Control) -> Partial:
        """Count the share that the control names: what each part adds up to; raises as :meth:`partial` does."""
