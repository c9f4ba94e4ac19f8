"""The loop behind motifs that are enumerated: connected sets of vertices, by what joins them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphdb.mining.kernels.extension_kernels import lower_bound
from graphdb.storage.compile.kernels import entry, kernel

Ints = NDArray[np.int64]
Narrow = NDArray[np.int32]
Bytes = NDArray[np.uint8]


@kernel
def mark_ways(offsets: Ints, neighbours: Narrow, ways: Bytes, vertex: int, place: int, marks: Narrow) -> int:
    """Set two bits of the marks of all neighbours to how they are joined with the vertex: how many there are."""
    for k in range(offsets[vertex], offsets[vertex + 1]):
        marks[neighbours[k]] |= ways[k] << (2 * place)
    count: int = offsets[vertex + 1] - offsets[vertex]
    return count


@entry("i8[:], i4[:], u1[:], i8[:, :], i8, i8, i4[:], i8[:], i4[:, :] -> i8")
def count_codes(
    offsets: Ints,
    neighbours: Narrow,
    ways: Bytes,
    rows: Ints,
    at: int,
    budget: int,
    marks: Narrow,
    counts: Ints,
    examples: Narrow,
) -> int:
    """Count the connected sets of one more vertex by their codes, from row ``at`` on: the row to go on with.

    Parameters
    ----------
    ways
        uint8, beside ``neighbours``: 1 for an edge to the neighbour, 2 for one from it, 3 for both.
    rows
        int64 [rows, size]: embeddings in their canonical order, as
        :func:`graphdb.mining.kernels.extension_kernels.extend_any` takes them.
    marks
        int32 [n], zeros, and so again afterwards.
    counts, examples
        int64 [codes] and int32 [codes, size + 1]: sets by code, and the first of each.  The two bits at
        ``2 * (j * (j - 1) / 2 + i)`` of a code are how the set's vertices i < j are joined, seen from i.
    """
    size = rows.shape[1]
    shift = size * (size - 1)
    while at < len(rows) and budget > 0:
        row, base = rows[at], 0
        for i in range(size):
            base |= marks[row[i]] << (i * (i - 1))
            budget -= 3 * mark_ways(offsets, neighbours, ways, row[i], i, marks) + 4
        for i in range(size):
            least = row[0] + 1
            for j in range(i + 1, size):
                least = max(least, row[j] + 1)
            vertex, before = row[i], (1 << (2 * i)) - 1
            begin = lower_bound(neighbours, offsets[vertex], offsets[vertex + 1], least)
            for k in range(begin, offsets[vertex + 1]):
                u = neighbours[k]
                new = marks[u] & before == 0
                for j in range(i):
                    new = new and row[j] != u
                if new:
                    code = base | marks[u] << shift
                    if counts[code] == 0:
                        for j in range(size):
                            examples[code, j] = row[j]
                        examples[code, size] = u
                    counts[code] += 1
        for i in range(size):
            for k in range(offsets[row[i]], offsets[row[i] + 1]):
                marks[neighbours[k]] = 0
        at += 1
    return at
