"""The loops of extension: what each embedding can be extended by.

An embedding is found once though its vertices could be added in many orders: of these only the *canonical* one is
extended (Teixeira et al., "Arabesque", SOSP 2015, §5.1).  Its first vertex is the lowest, and each other comes as soon
as it can, lower ones first.  So vertex ``u``, first adjacent to the embedding's ``i``-th vertex, extends it if it is
above the first vertex and above all after the ``i``-th.  The same holds of edges, which are adjacent where they share
an end.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.compile.kernels import entry, kernel

Ints = NDArray[np.int64]
Narrow = NDArray[np.int32]
Bytes = NDArray[np.uint8]


@kernel
def lower_bound(values: Narrow, begin: int, end: int, least: int) -> int:
    """The first place in a sorted run with a value of ``least`` or more."""
    while begin < end:
        middle = (begin + end) >> 1
        if values[middle] < least:
            begin = middle + 1
        else:
            end = middle
    return begin


@kernel
def adjacent(offsets: Ints, neighbours: Narrow, u: int, v: int) -> int:
    """The place of ``v`` among the neighbours of ``u``; -1 where it is none."""
    at = lower_bound(neighbours, offsets[u], offsets[u + 1], v)
    return at if at < offsets[u + 1] and neighbours[at] == v else -1


@kernel
def mark(offsets: Ints, neighbours: Narrow, vertex: int, bit: int, marks: Bytes) -> int:
    """Set a bit of the marks of all neighbours: how many there are."""
    for k in range(offsets[vertex], offsets[vertex + 1]):
        marks[neighbours[k]] |= bit
    count: int = offsets[vertex + 1] - offsets[vertex]
    return count


@kernel
def clear(offsets: Ints, neighbours: Narrow, vertex: int, marks: Bytes) -> None:
    """Clear the marks of all neighbours."""
    for k in range(offsets[vertex], offsets[vertex + 1]):
        marks[neighbours[k]] = 0


@entry("i8[:], i4[:], i8[:, :], i8, i8, i8[:], i4[:], u1[:], b1 -> i8")
def extend_any(
    offsets: Ints,
    neighbours: Narrow,
    rows: Ints,
    at: int,
    budget: int,
    places: Ints,
    found: Narrow,
    marks: Bytes,
    write: bool,
) -> int:
    """Extend by neighbours of any vertex, from row ``at`` on: the row to go on with.

    Parameters
    ----------
    rows
        int64 [rows, size]: embeddings in their canonical order.
    places
        int64 [rows]: gets the number of extensions of each row; with ``write``, says where they go in ``found``.
    marks
        uint8 [n], zeros, and so again afterwards: bit ``i`` of those that the row's ``i``-th vertex is adjacent to.
    """
    size = rows.shape[1]
    while at < len(rows) and budget > 0:
        row, count = rows[at], 0
        for i in range(size):
            budget -= 2 * mark(offsets, neighbours, row[i], 1 << i, marks) + 4
        for i in range(size):
            least = row[0] + 1
            for j in range(i + 1, size):
                least = max(least, row[j] + 1)
            vertex, before = row[i], (1 << i) - 1
            begin = lower_bound(neighbours, offsets[vertex], offsets[vertex + 1], least)
            for k in range(begin, offsets[vertex + 1]):
                u = neighbours[k]
                new = marks[u] & before == 0
                for j in range(i):  # those behind are below `least`
                    new = new and row[j] != u
                if new:
                    if write:
                        found[places[at] + count] = u
                    count += 1
            budget -= offsets[vertex + 1] - begin
        for i in range(size):
            clear(offsets, neighbours, row[i], marks)
        if not write:
            places[at] = count
        at += 1
    return at


@entry("i8[:], i4[:], i8[:, :], i8, i8, i8[:], i4[:], i4[:], i8[:], b1 -> i8")
def extend_all(
    offsets: Ints,
    neighbours: Narrow,
    rows: Ints,
    at: int,
    budget: int,
    places: Ints,
    found: Narrow,
    shared: Narrow,
    state: Ints,
    write: bool,
) -> int:
    """Extend by higher common neighbours of all vertices, from row ``at`` on: the row to go on with.

    What all vertices but the last have in common is intersected once for all rows with that prefix (GAMMA §6.1):
    it is in ``shared`` (int32 [largest degree]), its length in ``state[0]``, the row it is of in ``state[1]``.
    """
    size = rows.shape[1]
    while at < len(rows) and budget > 0:
        row, count = rows[at], 0
        last = row[size - 1]
        if size == 1:
            begin = lower_bound(neighbours, offsets[last], offsets[last + 1], last + 1)
            for k in range(begin, offsets[last + 1]):
                if write:
                    found[places[at] + count] = neighbours[k]
                count += 1
            budget -= count + 1
        else:
            same = state[1] >= 0
            if same:
                before = rows[state[1]]
                for j in range(size - 1):
                    same = same and before[j] == row[j]
            if not same:
                length = 0
                for k in range(offsets[row[0]], offsets[row[0] + 1]):
                    u = neighbours[k]
                    common = True
                    for j in range(1, size - 1):
                        common = common and adjacent(offsets, neighbours, row[j], u) >= 0
                    if common:
                        shared[length] = u
                        length += 1
                budget -= (offsets[row[0] + 1] - offsets[row[0]]) * size
                state[0], state[1] = length, at
            i = lower_bound(shared, 0, state[0], last + 1)
            k = lower_bound(neighbours, offsets[last], offsets[last + 1], last + 1)
            end = offsets[last + 1]
            while i < state[0] and k < end:
                u, v = shared[i], neighbours[k]
                if u == v:
                    if write:
                        found[places[at] + count] = u
                    count += 1
                i += u <= v
                k += v <= u
                budget -= 1
            budget -= 4
        if not write:
            places[at] = count
        at += 1
    return at


@kernel
def touches(source: Ints, target: Ints, e: int, f: int) -> bool:
    """Whether two edges share an end."""
    joined: bool = source[f] in (source[e], target[e]) or target[f] in (source[e], target[e])
    return joined


@entry("i8[:], i8[:], i8[:], i8[:], i8[:, :], i8, i8, i8[:], i8[:], b1 -> i8")
def extend_edges(
    offsets: Ints,
    incident: Ints,
    source: Ints,
    target: Ints,
    rows: Ints,
    at: int,
    budget: int,
    places: Ints,
    found: Ints,
    write: bool,
) -> int:
    """Extend by edges that touch any edge, from row ``at`` on: the row to go on with; as :func:`extend_any`."""
    size = rows.shape[1]
    while at < len(rows) and budget > 0:
        row, count = rows[at], 0
        for i in range(size):
            least = row[0] + 1
            for j in range(i + 1, size):
                least = max(least, row[j] + 1)
            for end in range(2):
                vertex = source[row[i]] if end == 0 else target[row[i]]
                for k in range(offsets[vertex], offsets[vertex + 1]):
                    edge = incident[k]
                    fresh = edge >= least and edge != row[i]
                    if end == 1:  # seen from the other end already
                        fresh = fresh and source[edge] != source[row[i]] and target[edge] != source[row[i]]
                    for j in range(size):
                        fresh = fresh and edge != row[j]
                    for j in range(i):
                        fresh = fresh and not touches(source, target, row[j], edge)
                    if fresh:
                        if write:
                            found[places[at] + count] = edge
                        count += 1
                budget -= (offsets[vertex + 1] - offsets[vertex]) * (i + 1) + 4
        if not write:
            places[at] = count
        at += 1
    return at
