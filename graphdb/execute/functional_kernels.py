"""The loops behind :mod:`graphdb.execute.functional`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.compile.kernels import entry
from graphdb.storage.graph.pcsr_kernels import neighbours_at_once

_INSERTED = 32
"""Numbers that are put in order by insertion; of more, …"""

_LOOKED_AT = 8
"""… all that there are are looked at, where they are not so many times as many."""


@entry("i8[:], T[:], T[:], T[:] -> i8")
def only_neighbours(
    partition: NDArray[np.int64], neighbours: NDArray[Any], vertices: NDArray[Any], found: NDArray[Any]
) -> int:
    """Write the only neighbour of each vertex, or -1; return how many have none.

    Parameters
    ----------
    partition, neighbours
        The row and the neighbours of a partition in which no vertex has two.
    """
    missing = 0
    for i in range(len(vertices)):
        begin, end = neighbours_at_once(partition.ctypes.data, 0, vertices[i])
        found[i] = neighbours[begin] if begin < end else -1
        if begin == end:
            missing += 1
    return missing


@entry("i8[:], b1[:], T[:], i8, b1[:], i8[:], i8[:] -> i8")
def pairs_left(
    starts: NDArray[np.int64],
    sources: NDArray[np.bool_],
    neighbours: NDArray[Any],
    least: int,
    targets: NDArray[np.bool_],
    from_source: NDArray[np.int64],
    to_target: NDArray[np.int64],
) -> int:
    """Write the edges whose ends are both wanted; return how many they are.

    Parameters
    ----------
    starts : int64[n + 1]
        Where the neighbours of each source begin, and those of the last one end.
    sources : bool[n]
        Which are wanted, …
    least, targets
        … and which vertices from ``least`` on; all neighbours are among these.
    from_source, to_target : int64[edges]
        What is written: which source, and how far its neighbour is from ``least``.
    """
    count = 0
    for source in range(len(sources)):
        if sources[source]:
            for i in range(starts[source], starts[source + 1]):
                target = np.int64(neighbours[i]) - least
                if targets[target]:
                    from_source[count] = source
                    to_target[count] = target
                    count += 1
    return count


@entry("i8[:], b1[:], T[:], i8, i4[:], i8[:], i8[:], i8[:], i8[:] -> i8")
def pairs_counted(
    starts: NDArray[np.int64],
    sources: NDArray[np.bool_],
    neighbours: NDArray[Any],
    least: int,
    numbers: NDArray[np.int32],
    sums: NDArray[np.int64],
    from_source: NDArray[np.int64],
    to_number: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> int:
    """Write each pair of a source and a number of its neighbours once, and how many of these have it.

    Numbers of a source are mostly written in their order: whoever groups by them sees that they are different.

    Parameters
    ----------
    numbers : int32[vertices]
        Of the vertices from ``least`` on; below 0 where they are not wanted.
    sums : int64[numbers]
        Scratch, zeros.
    from_source, to_number, counts : int64[edges]
        What is written; otherwise as :func:`pairs_left`.
    """
    count = 0
    for source in range(len(sources)):
        if not sources[source]:
            continue
        begin = count
        for i in range(starts[source], starts[source + 1]):
            number = np.int64(numbers[np.int64(neighbours[i]) - least])
            if number >= 0:
                if sums[number] == 0:
                    at = count
                    while at > begin and count - begin < _INSERTED and to_number[at - 1] > number:
                        to_number[at] = to_number[at - 1]
                        at -= 1
                    to_number[at] = number
                    from_source[count] = source
                    count += 1
                sums[number] += 1
        if count - begin > _INSERTED and len(sums) < _LOOKED_AT * (count - begin):
            at = begin
            for each in range(len(sums)):
                if sums[each] > 0:
                    to_number[at] = each
                    at += 1
        for at in range(begin, count):
            counts[at] = sums[to_number[at]]
            sums[to_number[at]] = 0
    return count
