"""Runs a :class:`graphdb.plan.physical.CliqueCount`: ranges of vertices, scheduled on threads."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from graphdb.execute.scheduler import Pause, schedule
from graphdb.plan.executor import Control
from graphdb.plan.physical import CliqueCount

_BUDGET = 1 << 22
"""What a kernel call scans at most, roughly: some milliseconds."""
_INLINE_WORK = 2_000_000
"""Work that is done on the calling thread; of more, each thread gets as much."""
_CHUNKS_PER_THREAD, _CHUNK = 16, 250_000
"""Chunks per thread at most, and the least work of one: to begin one, a thread waits until it may run Python."""


def count_cliques(plan: CliqueCount, threads: int, control: Control) -> int:
    """Count the cliques whose first vertex is in the control's share, each once; raises what ``control`` does."""
    graph = plan.graph
    first, last = control.range_of(len(graph.work) - 1)
    begun, ended = int(graph.work[first]), int(graph.work[last])
    work = (ended - begun) * (plan.size - 2)
    workers = min(threads, work // _INLINE_WORK + 1)
    shares = np.linspace(begun, ended, min(workers * _CHUNKS_PER_THREAD, work // _CHUNK + 1) + 1)[1:-1]
    cuts = np.searchsorted(graph.work, shares).tolist() if workers > 1 else []
    bounds = [first, *cuts, last]
    control.threads = workers
    # The densest part of the graph is at the end: it goes first, so that no worker is left alone with it.
    chunks = [(begin, end) for begin, end in pairwise(bounds) if begin < end][::-1]
    counters: dict[int, _Counter] = {}
    whole = max(ended - begun, 1)

    def count(chunk: tuple[int, int], worker: int, pause: Pause) -> None:
        counter = counters.get(worker) or counters.setdefault(worker, _Counter(plan))
        counter.start(*chunk)
        while not counter.advance():
            pause()

    def share() -> float:
        return sum(counter.work for counter in list(counters.values())) / whole

    schedule(chunks, count, workers if workers > 1 else 0, lambda: control.watch(share), wait=control.wait)
    control.report(1.0)
    return sum(counter.found for counter in counters.values())


class _Counter:
    """One thread's kernel state and scratch memory."""

    def __init__(self, plan: CliqueCount) -> None:
        self._begin = self._found = self._work = 0
        self._plan, graph = plan, plan.graph
        ranks = len(graph.offsets) - 1
        widest = graph.longest
        words = (widest + 63) // 64
        self._state = np.zeros(5, np.int64)
        self._places = np.zeros(ranks + 8 if plan.size > 3 else ranks // 64 + 1, np.int64)
        self._matrix = np.zeros((widest, words) if plan.size > 3 else (0, 0), np.int64)
        self._chosen = np.zeros((plan.size, words + 2), np.int64)
        self._like = graph.neighbours[:0]

    @property
    def found(self) -> int:
        """The cliques found so far."""
        return self._found + int(self._state[3])

    @property
    def work(self) -> int:
        """The part of the graph's work that is done."""
        return self._work + int(self._plan.graph.work[self._state[0]] - self._plan.graph.work[self._begin])

    def start(self, begin: int, end: int) -> None:
        """Go on with vertices ``begin … end-1``."""
        self._found, done = self.found, self.work
        # In this order, a concurrent progress report never shows too much: chunks come from the end.
        self._begin = int(self._state[0])
        self._work = done
        self._state[:] = (begin, end, 0, 0, 0)
        self._begin = begin

    def advance(self) -> bool:
        """Go on for some milliseconds: whether all is done."""
        from graphdb.execute.counting.kernels import clique_kernels as kernels

        graph, state = self._plan.graph, self._state.ctypes.data
        arrays = (graph.offsets.ctypes.data, graph.neighbours.ctypes.data)
        places = self._places.ctypes.data
        if self._plan.size == 3:
            width = graph.neighbours.itemsize
            return bool(kernels.count_triangles(*arrays, state, places, width, self._like, _BUDGET))
        scratch = (places, self._matrix.ctypes.data, self._chosen.ctypes.data)
        return bool(kernels.count_cliques(*arrays, self._plan.size, state, *scratch, self._like, _BUDGET))
