"""Breadth-first search as a queue that can be left and gone on with, and what is read from it: paths, and their number.

``partition`` is always int64 [6], :attr:`graphdb.storage.graph.pcsr.Partition.row`, ``neighbours`` the partition's own
array; ``depths`` int32 [vertices], -1 where the search has not come.  What takes long takes a ``budget``, in
neighbours looked at, and returns when that is spent.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.execute.search.set_kernels import LONG, find, neighbours_of
from graphdb.storage.compile.kernels import entry, kernel, load

Ints = NDArray[np.int64]
Depths = NDArray[np.int32]


@kernel
def codes_at(partition: Ints, place: int) -> tuple[int, int]:
    """Where the codes of an entry begin and end; (0, 1) where one label in one direction has no codes."""
    if partition[4] == 0:
        return 0, 1
    return load(partition[4], place, LONG), load(partition[4], place + 1, LONG)


@entry("i8[:], T[:], i4[:], i8[:], i8[:], i8[:], b1[:], i8, i8 -> b1")
def bfs(
    partition: Ints,
    neighbours: NDArray[Any],
    depths: Depths,
    before: Ints,
    queue: Ints,
    state: Ints,
    wanted: NDArray[np.bool_],
    longest: int,
    budget: int,
) -> bool:
    """Go on with a breadth-first search; return whether it has ended.

    Parameters
    ----------
    before
        int64 [vertices]: from where each vertex was reached first.
    queue
        int64 [vertices]: the vertices in the order in which they were reached.
    state
        int64 [3]: how many of ``queue`` are done, how many are in it, and how many that are wanted are missing.
    wanted
        bool [vertices], or empty: then the search goes on to the end.
    longest
        Edges after which it ends.
    """
    head, tail, missing = state[0], state[1], state[2]
    work = 0
    ended = False
    while not ended:
        if head == tail or depths[queue[head]] >= longest:
            ended = True
            break
        if work > budget:
            break
        vertex = queue[head]
        head += 1
        depth = depths[vertex] + 1
        begin, end = neighbours_of(partition.ctypes.data, 0, vertex)
        work += end - begin + 1
        for place in range(begin, end):
            other = neighbours[place]
            if depths[other] < 0:
                depths[other] = depth
                before[other] = vertex
                queue[tail] = other
                tail += 1
                if len(wanted) > 0 and wanted[other]:
                    missing -= 1
                    if missing == 0:
                        ended = True
    state[0], state[1], state[2] = head, tail, missing
    return ended


@entry("i8[:], T[:], i8[:], i8, b1, i8, b1[:], i8, i4[:], i8[:], i8[:], i8[:], i8[:], i4[:], i8 -> b1")
def bfs_each(
    partition: Ints,
    neighbours: NDArray[Any],
    starts: Ints,
    low: int,
    rounds: bool,
    longest: int,
    wanted: NDArray[np.bool_],
    members: int,
    depths: Depths,
    queue: Ints,
    state: Ints,
    counts: Ints,
    ends: Ints,
    lengths: Depths,
    budget: int,
) -> bool:
    """Go on with searches from one start after the other, each to its end; return whether all have ended.

    Parameters
    ----------
    low, rounds
        0 takes each start as an end, of no edge; else ``rounds`` says that one is where an edge leads back to it.
    wanted, members
        bool [vertices]: which may be ends, and how many of them there are; or empty, for all.
    state
        int64 [6]: which start is next, how many of ``queue`` are done and are in it, the length of the way back to the
        start (0: none was met), how many of ``ends`` are filled, and how many that are wanted are missing.
    counts
        int64 [starts]: how many ends each has.
    ends, lengths
        int64 and int32: where they are written; a search begins only where there is room for all vertices.
    """
    vertices = len(depths)
    at, head, tail, back, filled, missing = state[0], state[1], state[2], state[3], state[4], state[5]
    work = 0
    every = len(wanted) == 0
    while at < len(starts) and work <= budget:
        start = starts[at]
        if tail == 0:
            if filled + vertices + 1 > len(ends):
                break
            depths[start] = 0
            queue[0] = start
            head, tail, back = 0, 1, 0
            missing = vertices + 1 if every else members - int(wanted[start] and (low == 0 or not rounds))
        while missing > 0 and head < tail and depths[queue[head]] < longest and work <= budget:
            vertex = queue[head]
            head += 1
            depth = depths[vertex] + 1
            begin, end = neighbours_of(partition.ctypes.data, 0, vertex)
            work += end - begin + 1
            for place in range(begin, end):
                other = neighbours[place]
                if depths[other] < 0:
                    depths[other] = depth
                    queue[tail] = other
                    tail += 1
                    missing -= every or wanted[other]
                elif other == start and back == 0:
                    back = depth
                    missing -= rounds and low > 0 and not every and wanted[start]
        if missing > 0 and head < tail and depths[queue[head]] < longest:
            break
        begun = filled
        if (every or wanted[start]) and (low == 0 or (rounds and back > 0)):
            ends[filled] = start
            lengths[filled] = 0 if low == 0 else back
            filled += 1
        for i in range(1, tail):
            if every or wanted[queue[i]]:
                ends[filled] = queue[i]
                lengths[filled] = depths[queue[i]]
                filled += 1
        for i in range(tail):
            depths[queue[i]] = -1
        work += tail + 1
        counts[at] = filled - begun
        at += 1
        tail = 0
    state[0], state[1], state[2], state[3], state[4], state[5] = at, head, tail, back, filled, missing
    return bool(at == len(starts))


@entry("i4[:], i8[:], i8")
def forget(depths: Depths, queue: Ints, count: int) -> None:
    """Take the first ``count`` vertices of a queue out of ``depths``."""
    for i in range(count):
        depths[queue[i]] = -1


@entry("i8[:], T[:], i4[:], i8[:], i8, i8, f8[:]")
def count_ways(
    partition: Ints,
    neighbours: NDArray[Any],
    depths: Depths,
    queue: Ints,
    begin: int,
    end: int,
    ways: NDArray[np.float64],
) -> None:
    """Hand the number of shortest paths on from ``queue[begin:end]`` to what they reach first.

    ``ways`` is float64 [vertices]: exact below 2**53.
    """
    for i in range(begin, end):
        vertex = queue[i]
        depth = depths[vertex] + 1
        first, last = neighbours_of(partition.ctypes.data, 0, vertex)
        for place in range(first, last):
            other = neighbours[place]
            if depths[other] == depth:
                low, high = codes_at(partition, place)
                ways[other] += ways[vertex] * (high - low)


@entry("i8[:], i8[:], i8[:], i8[:]")
def read_back(before: Ints, ends: Ints, starts: Ints, walks: Ints) -> None:
    """Write the path that ends at ``ends[i]`` to ``walks[starts[i]:starts[i + 1]]``, from its start on."""
    for i in range(len(ends)):
        vertex = ends[i]
        for at in range(starts[i + 1] - 1, starts[i] - 1, -1):
            walks[at] = vertex
            vertex = before[vertex]


@entry("i8[:], T[:], i8, i8[:], i8[:], i8[:]")
def first_codes(partition: Ints, neighbours: NDArray[Any], only: int, starts: Ints, walks: Ints, codes: Ints) -> None:
    """Write which data edge leads from each vertex of some walks to the next: the first of those that do.

    ``only`` is the code of all edges of a partition that has no codes; ``codes`` is int64 [walks' length - walks].
    """
    for i in range(len(starts) - 1):
        for at in range(starts[i], starts[i + 1] - 1):
            code = only
            if partition[4] != 0:
                begin, end = neighbours_of(partition.ctypes.data, 0, walks[at])
                like = neighbours.dtype.type(0)
                place = find(partition[3], begin, end, walks[at + 1], like)
                code = load(partition[5], load(partition[4], place, LONG), LONG)
            codes[at - i] = code
