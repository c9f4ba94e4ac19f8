"""The loops behind :mod:`graphdb.plan.candidates.space`: candidate sets made smaller, and joined along pattern
edges.

Membership is stored as one int64 per data vertex: bit ``u`` of ``fits[x]`` says that ``x`` is a
candidate of pattern vertex ``u``.  So one pass over the neighbours of a candidate tests all pattern edges of one
relation at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.plan.candidates.refinement import LAST_PASS
from graphdb.storage.compile.kernels import entry, kernel, load
from graphdb.storage.graph.pcsr_kernels import LONG, PARTITION_BYTES, neighbours_of

Ints = NDArray[np.int64]

MOST_GROUPS = 64
"""Groups of one arc; there is at most one per pattern vertex."""


@kernel
def holds_at(address: int, begin: int, end: int, value: int, like: Any) -> bool:
    """Whether the sorted ``[begin, end)`` holds a value."""
    last = end
    while begin < end:
        middle = (begin + end) >> 1
        if load(address, middle, like) < value:
            begin = middle + 1
        else:
            end = middle
    return begin < last and load(address, begin, like) == value


@kernel
def supported(partitions: int, arc: Ints, groups: Ints, x: int, fits: Ints, counts: Ints, like: Any) -> int:
    """Pass over the neighbours of ``x`` in an arc's relation: the neighbours looked at, or minus as many less one where
    the arc does not let ``x`` be a candidate.
    """
    row, need, first, last = arc[1], arc[2], arc[3], arc[4]
    begin, end = neighbours_of(partitions, row, x)
    if end - begin < arc[5]:
        return -1
    neighbours = load(partitions + row * PARTITION_BYTES, 3, LONG)
    seen, missing = 0, last - first
    for g in range(first, last):
        counts[g - first] = groups[g, 1]
    for at in range(begin, end):
        found = fits[load(neighbours, at, like)]
        seen |= found
        for g in range(first, last):
            if found & groups[g, 0] != 0:
                counts[g - first] -= 1
                missing -= counts[g - first] == 0
        if missing <= 0 and seen & need == need:
            return at - begin + 1
    return begin - end - 1


@entry("i8, i8[:], i8[:, :], i8[:, :], i8[:], i8[:], i8[:], i8[:], i8[:], i8[:], i8[:], i8, i8, i8[:], T -> b1")
def refine(
    partitions: int,
    first_arc: Ints,
    arcs: Ints,
    groups: Ints,
    near: Ints,
    order: Ints,
    candidates: Ints,
    starts: Ints,
    sizes: Ints,
    fits: Ints,
    state: Ints,
    passes: int,
    budget: int,
    counts: Ints,
    like: Any,
) -> bool:
    """Drop candidates without a partner along some pattern edge, until few are left to drop, or it has been enough.

    Parameters
    ----------
    partitions
        The address of the table of the relations' partitions.
    first_arc, arcs
        Int64 [vertices + 1]; int64 [arcs, 6]: (vertex, partition, the neighbours it needs as bits, groups begin, end,
        how many it needs at least).
    groups
        Int64 [groups, 2]: so many different neighbours must each fit one of these pattern vertices (bits).
    near
        Int64 [vertices]: the pattern vertices joined with it, as bits.
    order
        The pattern vertices in the order of the first pass; every other pass goes backwards.
    candidates, starts, sizes
        The candidates of ``u`` are ``candidates[starts[u] : starts[u] + sizes[u]]``; changed in place.
    fits
        Int64 [data vertices]: see the module; changed in place.
    state
        Int64 [6], where it goes on: (the pattern vertices to look at again, as bits; the pass; in it the vertex; of
        its candidates those looked at, and the survivors; how many the pass has dropped).  At first all bits, zeros.
    passes, budget
        At most so many passes, and in this call about so many neighbours to look at.
    counts
        Int64 [:data:`MOST_GROUPS`]: scratch.

    Returns
    -------
    bool
        Whether it is done; call again if not.
    """
    vertices = len(sizes)
    stale, number, i, at, survivors, dropped = state
    work = 0
    while number < passes and stale != 0:
        while i < vertices:
            u = order[i] if number % 2 == 0 else order[vertices - 1 - i]
            if stale >> u & 1 == 0 and at == 0:
                i += 1
                continue
            stale &= ~(1 << u)
            while at < sizes[u]:
                if work > budget:
                    state[:] = stale, number, i, at, survivors, dropped
                    return False
                x = candidates[starts[u] + at]
                good = True
                for a in range(first_arc[u], first_arc[u + 1]):
                    looked = supported(partitions, arcs[a], groups, x, fits, counts, like)
                    work += abs(looked)
                    if looked < 0:
                        good = False
                        break
                if good:
                    candidates[starts[u] + survivors] = x
                    survivors += 1
                else:
                    fits[x] &= ~(1 << u)
                at += 1
            if survivors < sizes[u]:
                stale |= near[u]
                dropped += sizes[u] - survivors
                sizes[u] = survivors
                if survivors == 0:
                    return True
            i, at, survivors = i + 1, 0, 0
        if LAST_PASS * dropped < sizes.sum():
            break
        number, i, dropped = number + 1, 0, 0
    return True


@entry("i8[:], i8[:], i8[:], i8[:], i8[:]")
def common_fits(candidates: Ints, starts: Ints, sizes: Ints, fits: Ints, shared: Ints) -> None:
    """Add to ``shared``, for each pattern vertex, the ones (bits, itself too) with which it shares a candidate."""
    for u in range(len(sizes)):
        for at in range(starts[u], starts[u] + sizes[u]):
            shared[u] |= fits[candidates[at]]


@entry("i8, i8[:, :], i8[:], i8[:], i8[:], i8[:], i8[:], i8[:, :], T[:], i8[:], i8[:], T -> i8")
def join_candidates(
    partitions: int,
    links: Ints,
    rows: Ints,
    candidates: Ints,
    starts: Ints,
    sizes: Ints,
    fits: Ints,
    offsets: Ints,
    out: NDArray[Any],
    counter: Ints,
    longest: Ints,
    like: Any,
) -> int:
    """For each pair of joined pattern vertices, the candidates of one that are neighbours of each of the other's.

    Parameters
    ----------
    links, rows
        Int64 [links, 4]: (u, w, rows begin, end); ``rows`` are the partitions, seen from ``u``, in all of which they
        must be neighbours.
    offsets
        Int64 [2 * links, data vertices + 1]: row ``2 i`` tells where in ``out`` the partners of a candidate of ``u``
        begin and end, row ``2 i + 1`` those of ``w``; only the cells of candidates (and the next) are written.
    out
        Vertex ids: the partners; too small where -1 is returned.
    counter
        Int64 [data vertices]: zeros, and zeros again afterwards.
    longest
        Int64 [2 * links]: the most partners.

    Returns
    -------
    int
        How much of ``out`` is used, or -1.
    """
    at = 0
    for i in range(len(links)):
        u, w, first, last = links[i]
        there, back = offsets[2 * i], offsets[2 * i + 1]
        row = rows[first]
        neighbours = load(partitions + row * PARTITION_BYTES, 3, LONG)
        began = at
        for c in range(starts[u], starts[u] + sizes[u]):
            x = candidates[c]
            begin, end = neighbours_of(partitions, row, x)
            if at + end - begin > len(out):
                for y in out[began:at]:
                    counter[y] = 0
                return -1
            there[x] = at
            for k in range(begin, end):
                y = load(neighbours, k, like)
                if fits[y] >> w & 1 == 0:
                    continue
                joined = True
                for r in range(first + 1, last):
                    other_begin, other_end = neighbours_of(partitions, rows[r], x)
                    others = load(partitions + rows[r] * PARTITION_BYTES, 3, LONG)
                    joined = joined and holds_at(others, other_begin, other_end, y, like)
                if joined:
                    out[at] = y
                    counter[y] += 1
                    at += 1
            there[x + 1] = at
            longest[2 * i] = max(longest[2 * i], at - there[x])
        ended = at
        if at + ended - began > len(out):
            for y in out[began:at]:
                counter[y] = 0
            return -1
        for c in range(starts[w], starts[w] + sizes[w]):
            y = candidates[c]
            count = counter[y]
            back[y], back[y + 1] = at, at + count
            longest[2 * i + 1] = max(longest[2 * i + 1], count)
            counter[y] = at
            at += count
        for c in range(starts[u], starts[u] + sizes[u]):
            x = candidates[c]
            for k in range(there[x], there[x + 1]):
                y = out[k]
                out[counter[y]] = x
                counter[y] += 1
        for c in range(starts[w], starts[w] + sizes[w]):
            counter[candidates[c]] = 0
    return at
