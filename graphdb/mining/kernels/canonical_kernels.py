"""The loop behind canonical labels: the least code of a pattern over the orders of its vertices."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.compile.kernels import entry, kernel

Ints = NDArray[np.int64]

_MASK = (1 << 62) - 1
_FACTOR = 0x2545F4914F6CDD1D


@kernel
def hashed(a: int, b: int) -> int:
    """A number of two numbers."""
    mixed = (a + 0x632BE5AB) * _FACTOR & _MASK
    mixed = ((mixed >> 29) + b + 0x1B873593) * _FACTOR & _MASK
    return mixed >> 27 ^ mixed


@kernel
def root_of(parents: Ints, vertex: int) -> int:
    """The vertex that stands for a vertex's orbit."""
    while parents[vertex] != vertex:
        vertex = parents[vertex]
    return vertex


@kernel
def sort_vertices(labels: Ints, cells: Ints, keys: Ints, sorted: Ints) -> None:
    """Sort vertices by label and then by what is around them: what isomorphisms preserve.

    ``keys`` is int64 [2, n]; afterwards its second row has what vertices are sorted by, beside their labels.
    """
    n = len(labels)
    for v in range(n):
        keys[0, v] = hashed(labels[v], 0)
    for step in range(2):
        for v in range(n):
            around = 0
            for u in range(n):
                if cells[v, u] != 0:
                    around = (around + hashed(cells[v, u], keys[0, u])) & _MASK
            keys[1, v] = hashed(keys[0, v], around)
        if step == 0:
            for v in range(n):
                keys[0, v] = keys[1, v]
    for v in range(n):
        at = v
        while at > 0 and (
            labels[sorted[at - 1]] > labels[v]
            or (labels[sorted[at - 1]] == labels[v] and keys[1, sorted[at - 1]] > keys[1, v])
        ):
            sorted[at] = sorted[at - 1]
            at -= 1
        sorted[at] = v


@kernel
def compared(cells: Ints, order: Ints, best: Ints, at: int) -> int:
    """How the code of ``order`` at one place compares with that of ``best``: less than 0, 0, or more."""
    for s in range(at):
        new, old = cells[order[s], order[at]], cells[best[s], best[at]]
        if new != old:
            return -1 if new < old else 1
    return 0


@entry("i8[:, :], i8[:, :, :], i8[:, :], i8[:, :], i8[:, :]")
def canonical_orders(labels: Ints, cells: Ints, orders: Ints, orbits: Ints, scratch: Ints) -> None:
    """Write the canonical order of the vertices of each pattern.

    Parameters
    ----------
    labels
        int64 [patterns, n]: of the vertices.
    cells
        int64 [patterns, n, n]: what joins two vertices, 0 where nothing does; ``cells[j, i]`` follows from
        ``cells[i, j]``, whichever vertices they are.
    orders
        int64 [patterns, n]: gets, at each place of the canonical order, the vertex that stands there.
    orbits
        int64 [patterns, n]: gets, for each place, the first place that an automorphism takes it to.
    scratch
        int64 [7, n].
    """
    n = labels.shape[1]
    keys, sorted, order = scratch[0:2], scratch[2], scratch[3]
    tried, state, parents = scratch[4], scratch[5], scratch[6]
    for p in range(len(labels)):
        own, joined, best = labels[p], cells[p], orders[p]
        sort_vertices(own, joined, keys, sorted)
        for v in range(n):
            parents[v] = v
        found = False
        at = 0
        tried[0] = -1
        # state[at]: whether the order up to there is less than the best one, or as yet equal.
        while at >= 0:
            if tried[at] >= 0:
                order[at] = -1
            tried[at] += 1
            while tried[at] < n:
                vertex, place = sorted[tried[at]], sorted[at]
                fits = own[vertex] == own[place] and keys[1, vertex] == keys[1, place]
                for s in range(at):
                    fits = fits and order[s] != vertex
                if fits:
                    break
                tried[at] += 1
            if tried[at] == n:
                at -= 1
                continue
            order[at] = sorted[tried[at]]
            less = not found or (at > 0 and state[at - 1] == 1)
            if not less:
                sign = compared(joined, order, best, at)
                if sign > 0:
                    continue
                less = sign < 0
            state[at] = 1 if less else 0
            if at + 1 < n:
                at += 1
                tried[at] = -1
                continue
            if less:
                for s in range(n):
                    best[s] = order[s]
                    state[s] = 0
                found = True
            else:
                for s in range(n):
                    a, b = root_of(parents, best[s]), root_of(parents, order[s])
                    parents[max(a, b)] = min(a, b)
        for t in range(n):
            orbits[p, t] = t
            for s in range(t - 1, -1, -1):
                if root_of(parents, best[s]) == root_of(parents, best[t]):
                    orbits[p, t] = s
