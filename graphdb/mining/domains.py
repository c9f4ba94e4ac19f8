"""Domains of patterns on the host: threads share the patterns of a level (:mod:`.kernels.frequent_kernels`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.execute.scheduler import Pause
from graphdb.mining.limits import BUDGET, Limits
from graphdb.plan.domains import PLACES, Candidates, LabelledLists

Ints = NDArray[np.int64]

_PIECE = 8
"""Patterns that a worker takes at a time."""
_OUT = 1 << 18
"""Numbers of domains that a worker writes before they are taken away, at least."""


def memory(lists: LabelledLists, threads: int) -> int:
    """Return the bytes that finding domains takes beside the domains themselves."""
    return memory_of(lists.vertices, threads) + lists.nbytes


def memory_of(vertices: int, threads: int) -> int:
    """Return the bytes that threads take to find domains among so many vertices."""
    return threads * (2 * 8 * PLACES * ((vertices + 63) // 64) + 4 * max(_OUT, PLACES * vertices))


class HostDomains:
    """Finds domains on threads; those of a level are lists behind the vertices of each label.

    Raises
    ------
    MemoryLimitError
        There is too little memory for it.
    """

    name = "cpu"
    summary = ""

    def __init__(self, lists: LabelledLists, limits: Limits) -> None:
        limits.need(memory(lists, limits.threads), "domains")
        self._lists, self._limits = lists, limits
        self._spans, self._items = lists.spans, lists.members
        self._workers: dict[int, _Worker] = {}
        self._written = np.empty((0, PLACES, 2), np.int64)
        self._worker_of = np.empty(0, np.int64)

    def find(
        self, candidates: Candidates, support: int, keep: bool, share: Callable[[float], float]
    ) -> tuple[Ints, Ints]:
        """Find the domains of patterns (:meth:`graphdb.plan.domains.DomainSearch.find`)."""
        count, lists = len(candidates), self._lists
        supports, examples = np.zeros(count, np.int64), np.zeros((count, PLACES), np.int64)
        self._written, self._worker_of = np.zeros((count, PLACES, 2), np.int64), np.zeros(count, np.int64)
        arrays = (candidates.sizes, candidates.edges, candidates.orbits, candidates.sources, self._spans, self._items)
        results = (supports, examples, self._written)
        done = [0]
        self._workers.clear()

        def work(first: int, worker: int, pause: Pause) -> None:
            own = self._workers.get(worker) or self._workers.setdefault(worker, _Worker(lists.vertices))
            last = min(first + _PIECE, count)
            self._worker_of[first:last] = worker
            pattern = (lists.offsets, lists.keys, lists.vertices, lists.directed, *arrays, support, keep)
            own.run(pattern, results, first, last, pause)
            done.append(last - first)

        self._limits.each(range(0, count, _PIECE), work, lambda: share(sum(done) / max(count, 1)))
        return supports, examples

    def keep(self, frequent: Ints) -> Ints:
        """Put the domains of frequent patterns behind the vertices of labels, as lists."""
        own = self._lists
        parts, starts = [own.members], np.zeros(max(self._workers, default=0) + 1, np.int64)
        for worker, found in sorted(self._workers.items()):
            starts[worker] = sum(map(len, parts))
            parts += found.written
        self._items = np.concatenate(parts)
        self._limits.need(self._items.nbytes * 2 + memory(own, self._limits.threads), "domains")
        spans = (self._written[frequent] + starts[self._worker_of[frequent], None, None]).reshape(-1, 2)
        self._spans = np.concatenate([own.spans, spans])
        return len(own.spans) + np.arange(len(frequent) * PLACES).reshape(-1, PLACES)


class _Worker:
    """One thread's scratch memory, and the domains that it found."""

    def __init__(self, n: int) -> None:
        from graphdb.mining.kernels.frequent_kernels import CELLS

        words = (n + 63) // 64
        self._state = np.zeros(CELLS, np.int64)
        self._scratch = (
            np.zeros((PLACES, words), np.int64),
            np.zeros((PLACES, words), np.int64),
            np.zeros((2, PLACES), np.int64),
            np.zeros((30, 3), np.int64),
            np.zeros((PLACES, 12), np.int64),
            np.zeros((3, PLACES), np.int64),
        )
        self._out = np.empty(max(_OUT, PLACES * n), np.int32)
        self._taken: list[NDArray[np.int32]] = []

    @property
    def written(self) -> list[NDArray[np.int32]]:
        """All domains that were written, one after the other."""
        self._take()
        return self._taken

    def _take(self) -> None:
        from graphdb.mining.kernels.frequent_kernels import BASE, USED

        used = int(self._state[USED])
        self._taken.append(self._out[:used].copy())
        self._state[BASE] += used
        self._state[USED] = 0

    def run(self, pattern: tuple[Any, ...], results: tuple[Ints, ...], first: int, last: int, pause: Pause) -> None:
        """Find the domains of some patterns."""
        from graphdb.mining.kernels.frequent_kernels import DONE, END, INIT, PATTERN, PHASE, SPACE, find_domains

        state = self._state
        state[PATTERN], state[END], state[PHASE] = first, last, INIT
        while True:
            pause()
            arguments: tuple[Any, ...] = (*pattern, state, *self._scratch, *results, self._out, BUDGET)
            said = find_domains(*arguments)
            if said == DONE:
                return
            if said == SPACE:
                self._take()
