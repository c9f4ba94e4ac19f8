"""The loops behind partitions by object, and both ways: edges sorted by subject, put into runs by object."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.compile.kernels import entry

Ints = NDArray[np.int64]


@entry("i8[:], i8[:], i8[:], T[:]")
def transpose(subjects: Ints, objects: Ints, offsets: Ints, neighbours: NDArray[Any]) -> None:
    """Write the subjects of each object, one object after the other, in the order in which they come.

    ``offsets`` (int64 [vertices + 1], zeros) becomes where those of each vertex begin, and the last ones end.
    """
    for i in range(len(objects)):
        offsets[objects[i] + 1] += 1
    for vertex in range(len(offsets) - 1):
        offsets[vertex + 1] += offsets[vertex]
    for i in range(len(objects)):
        at = offsets[objects[i]]
        neighbours[at] = subjects[i]
        offsets[objects[i]] = at + 1
    for vertex in range(len(offsets) - 1, 0, -1):  # each has moved to where the next one begins
        offsets[vertex] = offsets[vertex - 1]
    offsets[0] = 0


@entry("i8[:], i8[:], i8[:], T[:], i8, T[:], i8[:], i8[:] -> i8")
def merge_both(
    subjects: Ints,
    objects: Ints,
    offsets: Ints,
    entering: NDArray[Any],
    code: int,
    neighbours: NDArray[Any],
    code_offsets: Ints,
    codes: Ints,
) -> int:
    """Merge the run of edges that leave each vertex with the run of those that enter it; return the entries.

    Parameters
    ----------
    subjects, objects
        int64 [edges], sorted by (subject, object): at least one.
    offsets, entering
        The same by object, as :func:`transpose` writes them, with an offset for each vertex that has edges.  The
        offsets become those of the entries.
    code
        The code of an edge that leaves; of one that enters it is one more.  A self-loop leaves.
    neighbours, code_offsets, codes
        Receive the neighbour of each entry, where its codes begin, and the codes: room for twice the edges, and one
        more offset.
    """
    edge, entries, placed, edges, end = 0, 0, 0, len(subjects), 0
    for vertex in range(len(offsets) - 1):
        at, end = end, offsets[vertex + 1]
        while True:
            if at < end and entering[at] == vertex:
                at += 1
                continue
            leaves = edge < edges and subjects[edge] == vertex
            if not leaves and at == end:
                break
            if leaves and (at == end or objects[edge] <= entering[at]):
                neighbour = objects[edge]
            else:
                neighbour = entering[at]
            neighbours[entries], code_offsets[entries] = neighbour, placed
            entries += 1
            if leaves and objects[edge] == neighbour:
                codes[placed] = code
                placed += 1
                edge += 1
            if at < end and entering[at] == neighbour:
                codes[placed] = code + 1
                placed += 1
                at += 1
        offsets[vertex + 1] = entries
    code_offsets[entries] = placed
    return entries


@entry("i8[:], i8[:]")
def begin_runs(sources: Ints, offsets: Ints) -> None:
    """Write where the run of each vertex begins among sorted ``sources``, and where the last one ends.

    ``offsets`` is int64 [vertices + 1], of at least those that have a run.
    """
    at = 0
    for vertex in range(len(offsets)):
        while at < len(sources) and sources[at] < vertex:
            at += 1
        offsets[vertex] = at


@entry("i8[:] -> i8, i8")
def runs_measured(offsets: Ints) -> tuple[int, int]:
    """Return how many runs are not empty, and how long the longest is, from where each begins and the last one ends."""
    count, longest = 0, 0
    for vertex in range(len(offsets) - 1):
        length = offsets[vertex + 1] - offsets[vertex]
        if length > 0:
            count += 1
        longest = max(longest, length)
    return count, longest
