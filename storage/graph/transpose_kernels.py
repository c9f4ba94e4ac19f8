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


@entry("i8[:], i8[:], i8[:], i8[:], i8, i8[:], i8[:], i8[:], i8[:] -> i8")
def merge_both(
    subjects: Ints,
    objects: Ints,
    offsets: Ints,
    entering: Ints,
    code: int,
    source: Ints,
    target: Ints,
    code_offsets: Ints,
    codes: Ints,
) -> int:
    """Merge the run of edges that leave each vertex with the run of those that enter it; return the entries.

    Parameters
    ----------
    subjects, objects
        int64 [edges], sorted by (subject, object): at least one.
    offsets, entering
        The same by object, as :func:`transpose` writes them.
    code
        The code of an edge that leaves; of one that enters it is one more.  A self-loop leaves.
    source, target, code_offsets, codes
        Receive vertex and neighbour of each entry, where its codes begin, and the codes: room for twice the edges,
        and one more offset.
    """
    edge, entries, placed, edges = 0, 0, 0, len(subjects)
    for vertex in range(max(subjects[edges - 1] + 1, len(offsets) - 1)):
        at, end = 0, 0
        if vertex + 1 < len(offsets):
            at, end = offsets[vertex], offsets[vertex + 1]
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
            source[entries], target[entries], code_offsets[entries] = vertex, neighbour, placed
            entries += 1
            if leaves and objects[edge] == neighbour:
                codes[placed] = code
                placed += 1
                edge += 1
            if at < end and entering[at] == neighbour:
                codes[placed] = code + 1
                placed += 1
                at += 1
    code_offsets[entries] = placed
    return entries
