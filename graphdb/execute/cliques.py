"""Runs a :class:`graphdb.plan.physical.CliqueCount`: ranges of vertices, dealt out to threads."""

from __future__ import annotations

import threading
from itertools import pairwise

import numpy as np

from graphdb.execute.executor import Control
from graphdb.plan.physical import CliqueCount

_BUDGET = 1 << 22
"""What a kernel call goes through at most, roughly: some milliseconds."""
_INLINE_WORK = 2_000_000
_CHUNKS_PER_THREAD = 16


def count_cliques(plan: CliqueCount, threads: int, control: Control) -> int:
    """Count the cliques, each once; raises what ``control`` does."""
    graph = plan.graph
    ranks = len(graph.work) - 1
    work = int(graph.work[-1]) * (plan.size - 2)
    workers = threads if work > _INLINE_WORK else 1
    shares = np.linspace(0, int(graph.work[-1]), workers * _CHUNKS_PER_THREAD + 1)[1:-1]
    cuts = np.searchsorted(graph.work, shares).tolist() if workers > 1 else []
    bounds = [0, *cuts, ranks]
    control.threads = workers
    # The densest part of the graph is at the end: it goes first, so that no worker is left alone with it.
    chunks = [(begin, end) for begin, end in pairwise(bounds) if begin < end][::-1]
    counter = _Counter(plan, chunks)
    whole = max(int(graph.work[-1]), 1)
    if workers == 1:
        while not counter.finished:
            control.check()
            if control.due:
                control.report(counter.done / whole)
            counter.work(once=True)
        control.report(1.0)
        return counter.total
    crew = [threading.Thread(target=counter.work, name=f"graphdb-{i}", daemon=True) for i in range(workers)]
    for thread in crew:
        thread.start()
    try:
        while not counter.finished:
            control.check()
            if control.due:
                control.report(counter.done / whole)
            counter.changed.wait(0.02)
        if counter.error is None:
            control.report(1.0)
    finally:
        counter.stop = True
        for thread in crew:
            thread.join()
    if counter.error is not None:
        raise counter.error
    return counter.total


class _Counter:
    """The chunks that are left, and what was found."""

    def __init__(self, plan: CliqueCount, chunks: list[tuple[int, int]]) -> None:
        self.total = 0
        self.stop = False
        self.error: BaseException | None = None
        self.changed = threading.Event()
        self._plan, self._chunks, self._open = plan, chunks, len(chunks)
        self._lock = threading.Lock()
        self._kept: _Worker | None = None
        self._workers: list[_Worker] = []
        self._done = 0

    @property
    def done(self) -> int:
        """The part of the graph's work that is done."""
        with self._lock:
            return self._done + sum(worker.work for worker in self._workers if not worker.done)

    @property
    def finished(self) -> bool:
        """Whether all chunks are done, or one has failed."""
        return self._open == 0 or self.error is not None

    def work(self, once: bool = False) -> None:
        """Take chunks until none is left; with ``once`` only go on for a while."""
        try:
            worker = self._kept or _Worker(self._plan)
            if worker not in self._workers:
                self._workers.append(worker)
            if once:
                self._kept = worker
            while not self.stop:
                if worker.done:
                    with self._lock:
                        if not self._chunks:
                            return
                        begin, end = self._chunks.pop(0)
                    worker.start(begin, end)
                if worker.advance():
                    with self._lock:
                        self.total += worker.found
                        self._done += worker.work
                        self._open -= 1
                        if self._open == 0:
                            self.changed.set()
                if once:
                    return
        except BaseException as error:  # whatever it is, the caller's thread raises it
            self.error = error
            self.changed.set()
            if once:
                raise


class _Worker:
    """One thread's kernel state and scratch memory."""

    def __init__(self, plan: CliqueCount) -> None:
        self.done = True
        self._begin = 0
        self._plan, graph = plan, plan.graph
        ranks = len(graph.offsets) - 1
        widest = int(np.diff(graph.offsets).max(initial=0))
        words = (widest + 63) // 64
        self._state = np.zeros(5, np.int64)
        self._places = np.zeros(ranks + 8 if plan.size > 3 else ranks // 64 + 1, np.int64)
        self._matrix = np.zeros((widest, words) if plan.size > 3 else (0, 0), np.int64)
        self._chosen = np.zeros((plan.size, words + 2), np.int64)
        self._like = graph.neighbours.dtype.type(0)

    def start(self, begin: int, end: int) -> None:
        """Begin with vertices ``begin … end-1``."""
        self._state[:] = (begin, end, 0, 0, 0)
        self._begin = begin
        self.done = False

    @property
    def found(self) -> int:
        """The cliques found since the start."""
        return int(self._state[3])

    @property
    def work(self) -> int:
        """The part of the graph's work that was done since the start."""
        return int(self._plan.graph.work[self._state[0]] - self._plan.graph.work[self._begin])

    def advance(self) -> bool:
        """Go on for some milliseconds: whether all is done."""
        from graphdb.execute import clique_kernels as kernels

        graph, state = self._plan.graph, self._state.ctypes.data
        arrays = (graph.offsets.ctypes.data, graph.neighbours.ctypes.data)
        places = self._places.ctypes.data
        if self._plan.size == 3:
            width = graph.neighbours.itemsize
            self.done = bool(kernels.count_triangles(*arrays, state, places, width, self._like, _BUDGET))
        else:
            scratch = (places, self._matrix.ctypes.data, self._chosen.ctypes.data)
            self.done = bool(kernels.count_cliques(*arrays, self._plan.size, state, *scratch, self._like, _BUDGET))
        return self.done
