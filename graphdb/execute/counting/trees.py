"""Counts along an AND/OR tree on the CPU (:mod:`graphdb.plan.counting.tree`): pieces of the root's candidates,
scheduled on threads.

Every worker has a cache of its own.  The kernel returns every few milliseconds; small counts stay on the calling
thread.  Where numbers pass int64 the count is made again modulo primes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.execute.counting.crt import Overflow, by_remainders
from graphdb.execute.scheduler import Pause, schedule
from graphdb.plan.counting.tree import TreeCount
from graphdb.plan.executor import Control

Ints = NDArray[np.int64]

PIECES, _FEWEST, _PIECE = 32, 4, 100_000.0
"""Pieces per thread, at most and at least, and the least elements of one: to begin one, a thread waits until it may run
Python."""


def count_along_tree(
    tree: TreeCount,
    control: Control,
    threads: int,
    *,
    yield_work: int,
    inline_cost: float,
) -> int:
    """Count.

    Parameters
    ----------
    yield_work
        Elements that a kernel call scans at most, roughly.
    inline_cost
        Trees expected to cost less than this are walked on the calling thread.

    Raises
    ------
    QueryTimeout, ExecutionError
        When the time is over, and when cancelled.
    """
    threads = 1 if tree.cost < inline_cost else threads
    control.threads = threads
    control.rows = np.zeros(len(tree.nodes), np.int64)
    product, roots = 1, [root for root, node in enumerate(tree.nodes) if node.parent < 0]
    for number, root in enumerate(roots):
        if product:
            node, shares = tree.nodes[root], (number / len(roots), (number + 1) / len(roots))
            greatest = math.prod(max(len(found), 1) for found in tree.space.candidates)
            run = _Run(tree, root, control, shares, threads, yield_work)
            product *= len(tree.space.candidates[node.vertex]) if node.leaf else by_remainders(run.total, greatest)
    return product


class _Tables:
    """A tree as kernels read it."""

    def __init__(self, tree: TreeCount) -> None:
        from graphdb.execute.counting.kernels import tree_kernels as kernels

        lists: list[tuple[int, int, int]] = []
        conflicts: list[int] = []
        depends: list[tuple[int, int]] = []
        space, rows = tree.space, []
        # All partitions of a space lie in these two: nothing need be made of each for its address.
        self.alive: list[object] = [space.offsets, space.neighbours]
        offsets, neighbours = space.offsets.ctypes.data, space.neighbours.ctypes.data
        children: list[list[int]] = [[] for _ in tree.nodes]
        for i, node in enumerate(tree.nodes):
            begins = len(lists), len(conflicts), len(depends)
            for other in node.lists:
                row = space.rows[other, node.vertex]
                lists.append((offsets + row * space.offsets.strides[0], neighbours, other))
            if not node.lists and node.parent >= 0:  # it only has to differ from some above
                every = space.candidates[node.vertex].astype(space.neighbours.dtype)
                self.alive.append(every)
                lists.append((0, every.ctypes.data, len(every)))
            conflicts += node.conflicts
            depends += node.depends
            ends = len(lists), len(conflicts), len(depends)
            spans = [place for pair in zip(begins, ends, strict=True) for place in pair]
            rows.append([node.vertex, node.parent, -1, -1, *spans, node.cache_slots])
            if node.parent >= 0:
                children[node.parent].append(i)
        for i, found in enumerate(children):
            # The branch expected to cost least is asked first: where it has none, the others need not be.
            found.sort(key=lambda child: (tree.nodes[child].estimate, child))
            for child, sibling in zip(found, [*found[1:], -1], strict=False):
                rows[child][kernels.SIBLING] = sibling
            rows[i][kernels.CHILD] = found[0] if found else -1
        self.children = children
        self.nodes = np.array(rows, np.int64).reshape(-1, kernels.NODE_COLUMNS)
        self.lists = np.array(lists, np.int64).reshape(-1, 3)
        self.conflicts = np.array(conflicts, np.int64)
        self.depends = np.array(depends, np.int64).reshape(-1, 2)


class _Walk:
    """One worker's walk: its buffers and what it keeps."""

    def __init__(self, tree: TreeCount, tables: _Tables, root: int, scan: NDArray[Any], modulus: int) -> None:
        from graphdb.execute.counting.kernels import tree_kernels as kernels

        self._kernel: Any = kernels.walk
        width = scan.itemsize
        capacity = max(len(found) for found in tree.space.candidates)
        several = [len(node.lists) > 1 for node in tree.nodes]
        self._buffers = np.empty((sum(several), capacity), scan.dtype)
        self._caches = [np.zeros(node.cache_slots * (len(node.depends) + 1), np.int64) for node in tree.nodes]
        self._stack = np.zeros((len(tree.nodes), kernels.STACK_COLUMNS), np.int64)
        self._stack[several, kernels.BUFFER] = self._buffers.ctypes.data + np.arange(sum(several)) * capacity * width
        self._stack[:, kernels.CACHED] = [cached.ctypes.data for cached in self._caches]
        self._stack[root, kernels.LIST] = scan.ctypes.data
        self._root, self._scan, self._kernels = root, scan, kernels
        self.rows = np.zeros(len(tree.nodes), np.int64)
        self._state = np.zeros(kernels.STATE_CELLS, np.int64)
        values = np.zeros(len(tree.space.candidates), np.int64)
        fixed = (tables.nodes, tables.lists, tables.conflicts, tables.depends, tree.space.fits)
        self._arguments = (*fixed, values, self._stack, self.rows, self._state, modulus)
        self._like = (width, scan[:0])

    def start(self, begin: int, end: int, piece: int, pieces: int) -> None:
        """Begin with some of the root's candidates, and a piece of what its only child scans."""
        kernels = self._kernels
        self._stack[self._root, kernels.AT : kernels.PRODUCT] = begin, end, 0
        self._state[:] = self._root, kernels.NEXT, 0, piece, pieces

    def advance(self, budget: int) -> int | None:
        """Walk on for a while: the count, once it is known."""
        kernels = self._kernels
        result = self._kernel(*self._arguments, budget, *self._like)
        if result == kernels.OVERFLOW:
            raise Overflow
        return int(self._state[kernels.RESULT]) if result == kernels.DONE else None


class _Run:
    """The count of one tree of a forest; the share of the whole that is done meanwhile leads from one to another."""

    def __init__(
        self,
        tree: TreeCount,
        root: int,
        control: Control,
        shares: tuple[float, float],
        threads: int,
        yield_work: int,
    ) -> None:
        self._tree, self._root, self._control, self._shares = tree, root, control, shares
        self._threads, self._yield_work = threads, yield_work
        self._tables = _Tables(tree)
        space = tree.space
        self._scan = np.ascontiguousarray(space.candidates[tree.nodes[root].vertex], space.neighbours.dtype)

    def total(self, modulus: int) -> int:
        """The count modulo a prime, or for 0 in int64."""
        walks: dict[int, _Walk] = {}
        totals, finished = [0] * self._threads, [0] * self._threads
        pieces, (begin, end) = self._pieces(), self._shares

        def count(piece: tuple[int, int, int, int], worker: int, pause: Pause) -> None:
            if worker not in walks:
                walks[worker] = _Walk(self._tree, self._tables, self._root, self._scan, modulus)
            walk = walks[worker]
            walk.start(*piece)
            while (found := walk.advance(self._yield_work)) is None:
                pause()
            totals[worker] += found
            finished[worker] += 1

        def share() -> float:
            return begin + (end - begin) * sum(finished) / len(pieces)

        try:
            workers = self._threads if self._threads > 1 else 0
            schedule(pieces, count, workers, lambda: self._control.watch(share), wait=self._control.wait)
        finally:
            for walk in walks.values():
                self._control.rows += walk.rows
        return sum(totals)

    def _pieces(self) -> list[tuple[int, int, int, int]]:
        """(first and last candidate, piece, of how many) of the root."""
        size = len(self._scan)
        if self._threads == 1 or not size:
            return [(0, size, 0, 1)]
        wanted = self._threads * int(min(max(self._tree.cost / self._threads / _PIECE, _FEWEST), PIECES))
        only = self._tables.children[self._root]
        if size < wanted and len(only) == 1 and not self._tree.nodes[only[0]].leaf:
            pieces = -(-wanted // size)
            return [(i, i + 1, piece, pieces) for i in range(size) for piece in range(pieces)]
        wanted = min(wanted, size)
        return [(size * i // wanted, size * (i + 1) // wanted, 0, 1) for i in range(wanted)]
