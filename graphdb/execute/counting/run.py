"""One run of a counting plan: what its weights and its loops share, how their work is scheduled, and how progress is
reported.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.execute.scheduler import Pause, schedule
from graphdb.plan.counting.inclusion_exclusion import Member
from graphdb.plan.counting.plan import CountingPlan
from graphdb.plan.counting.programs import Bundle, Part
from graphdb.plan.executor import Control
from graphdb.storage.graph.pcsr import Partition

Ints = NDArray[np.int64]

PIECES, _FEWEST = 64, 8
"""Pieces per thread that the work is cut into, at most and at least."""
_PIECE = 100_000.0
"""Pieces are not made smaller than this, in elements: to begin one, a thread waits until it may run Python."""
_SMALL = 100_000
"""Work expected to be less than this is not scheduled, and each thread gets as much."""


class CountRun:
    """The plan's partitions as kernels read them, and the flags that all threads watch.

    Parameters
    ----------
        cache_bytes
        Bytes for a cache of lists: it makes counting faster and is never required.
    """

    def __init__(self, plan: CountingPlan, control: Control, threads: int, cache_bytes: int) -> None:
        self.plan, self.threads = plan, threads
        self.flags = np.zeros(2, np.int64)
        """(stop, a number did not fit)."""
        self.like: NDArray[Any] = np.empty(0, plan.dtype)
        self.relations = {relation: row for row, relation in enumerate(plan.partitions)}
        rows = [partition.row for partition in plan.partitions.values()]
        self.partitions = np.array(rows, np.int64).reshape(len(rows), 6)
        self.room = cache_bytes // (2 * np.dtype(plan.dtype).itemsize)
        """Ids that closed lists, and that all local lists together may hold: half of the cache each."""
        self.share = control.range_of(plan.vertices)
        """The vertices that are roots in this run: first and last + 1."""
        self._control = control
        self._share, self._to, self._expected = 0.0, 1.0, 1.0

    def partition(self, member: Member) -> Partition:
        """What one member of a bundle leads along."""
        return self.plan.partitions[member.relation]

    def member(self, member: Member) -> tuple[int, int]:
        """A member as kernels read it: (partition, weighted)."""
        return self.relations[member.relation], int(member.weighted)

    def tables(self, bundles: list[Bundle]) -> tuple[Ints, Ints]:
        """Bundles and their members as kernels read them."""
        rows: list[tuple[int, ...]] = []
        members: list[tuple[int, int]] = []
        for bundle in bundles:
            begin = len(members)
            members += [self.member(member) for member in bundle.members]
            rows.append((begin, len(members), bundle.order, 0, int(bundle.plain)))
        return np.array(rows, np.int64).reshape(-1, 5), np.array(members, np.int64).reshape(-1, 2)

    def pieces(self, expected: float) -> int:
        """How many pieces to cut work into that is scheduled."""
        return int(min(max(expected / _PIECE, self.threads * _FEWEST), self.threads * PIECES))

    def even_bounds(self, size: int, expected: float) -> list[int]:
        """Where to cut so many things into pieces of one size."""
        pieces = self.pieces(expected)
        return [size * i // pieces for i in range(pieces + 1)]

    def as_control(self) -> Control:
        """A control for another counting algorithm: the share that it reports is a share of the current part."""
        return self._control.within(self._share, self._to)

    def expect(self, part: Part, begin: float, end: float) -> None:
        """The share of the whole that counting a part leads from and to: from now on progress is reported within
        them.
        """
        self._share, self._to, self._expected = begin, end, max(part.cost, 1.0)

    def schedule(
        self, work: Callable[[int, int, int], None], bounds: list[int], expected: float, done: Ints | None = None
    ) -> None:
        """Schedule pieces on the threads; raises what a worker raised, and stops them at the deadline.

        In ``done`` (int64 [threads]) the kernels write down how much of its piece each worker has done.
        """
        control = self._control
        control.check()
        begin = self._share
        self._share = min(self._to, begin + (self._to - begin) * expected / self._expected)
        unwatched = control.cancelled is None and control.timeout is None and control.progress is None
        if expected < _SMALL or (self.threads == 1 and unwatched):
            work(bounds[0], bounds[-1], 0)
            return
        pieces = [piece for piece in pairwise(bounds) if piece[0] < piece[1]]
        finished, lengths = np.zeros(self.threads), np.ones(self.threads)
        done = np.zeros(self.threads, np.int64) if done is None else done

        def run(piece: tuple[int, int], worker: int, _: Pause) -> None:
            lengths[worker] = piece[1] - piece[0]
            work(*piece, worker)
            done[worker] = 0
            finished[worker] += 1

        def share() -> float:
            return begin + (self._share - begin) * float((finished + done / lengths).sum()) / max(len(pieces), 1)

        def halt() -> None:
            self.flags[0] = 1

        workers = min(self.threads, int(expected / _SMALL) + 1)
        schedule(pieces, run, workers, lambda: control.watch(share), halt, control.wait)
