"""How a run divides into shares that several executors run: which units there are, and what a share of them gives.

Every executor that runs shares of a plan must have the same plan, over the same state of the graph: a share is a range
of numbers.  Shares of one run are independent (SMOG §IV-A: matching tasks that start from different vertices are);
counts add up, and rows follow one another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from graphdb.plan.executor import Block, Control, Executor
from graphdb.plan.joint import JointCount
from graphdb.plan.physical import CliqueCount, PhysicalPlan, VertexStep
from graphdb.storage.graph.pcsr import Partition

Unit = Literal["roots", "ranks", "vertices"]
Partial = tuple[int, ...]
"""What a share of a count gives: numbers that are added up over the shares, place by place."""


@dataclass(frozen=True, slots=True)
class Division:
    """How a run divides.

    Attributes
    ----------
    unit
        ``"roots"``: values of the first step's scan.  ``"ranks"``: vertices in the order of an oriented graph, whose
        cliques are counted.  ``"vertices"``: roots of sums, in the executor's own numbers.
    weights
        float64 [units]: about how much work each is.
    ordered
        Whether every executor gives the rows of a share in the same order.
    """

    unit: Unit
    weights: NDArray[np.float64]
    ordered: bool = True

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

        >>> Division("roots", np.ones(64)).factored(2, 16)[0][:5]
        [(0, 16), (16, 32), (32, 40), (40, 48), (48, 52)]
        >>> Division("roots", np.ones(64)).factored(2, 16, 1 / 8)[0][:5]
        [(0, 8), (8, 16), (16, 24), (24, 32), (32, 40)]
        """
        left, sizes = 1.0, list[float]()
        while left > 1e-9:
            each = max(min(left / (2 * workers), most), 1 / max(wanted, 1))
            sizes += [each] * workers
            left -= each * workers
        ends = np.append(0.0, np.cumsum(self.weights + 1e-9))
        bounds = np.searchsorted(ends, ends[-1] * (np.cumsum(sizes) - 1e-9), side="left")
        bounds = np.unique(np.clip(np.append(bounds, len(self.weights)), 0, len(self.weights)))
        cuts = list(pairwise(np.unique(np.append(0, bounds)).tolist()))
        return cuts, [float(ends[end] - ends[begin]) / float(ends[-1]) for begin, end in cuts]

    def cuts(self, wanted: int) -> list[tuple[int, int]]:
        """Ranges of units, about ``wanted`` of them, of about the same work; a unit that is more is one by itself.

        >>> Division("roots", np.array([1.0, 1.0, 8.0, 1.0, 1.0])).cuts(3)
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


def rank_weights(clique: CliqueCount) -> NDArray[np.float64]:
    """About how much work the cliques from each rank are: float64 [ranks], the neighbours' neighbours, and 1."""
    return np.diff(clique.graph.work) + 1.0


def root_weights(plan: PhysicalPlan) -> NDArray[np.float64]:
    """About how much work each root is: float64 [roots], how many neighbours it has in the second step, and 1.

    Cached with the plan: to find them takes 40 ns a root, serially, before any share of a run begins.
    """
    if "root weights" not in plan.cache:
        plan.cache["root weights"] = _root_weights(plan)
    found: NDArray[np.float64] = plan.cache["root weights"]
    return found


def _root_weights(plan: PhysicalPlan) -> NDArray[np.float64]:
    first, program = plan.steps[0], plan.program
    assert isinstance(first, VertexStep)
    assert first.scan is not None
    weights = np.ones(len(first.scan))
    if program.second >= 0:
        row = tuple(program.partitions[program.second].tolist())
        partition = next(item for item in program.alive if isinstance(item, Partition) and item.row == row)
        if len(partition.keys):
            at = np.minimum(np.searchsorted(partition.keys, first.scan), len(partition.keys) - 1)
            weights += np.where(partition.keys[at] == first.scan, partition.lengths()[at], 0)
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
