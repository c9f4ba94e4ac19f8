"""Maximal cliques of the graph oriented by degree, and the first clique of a size.

For each vertex, the cliques of which it is the lowest are searched for among its higher neighbours, a small graph of
bits, by Bron and Kerbosch's algorithm with pivots (Tomita et al. 2006; the outer order is Eppstein, Löffler and
Strash's).  What excludes a clique from being maximal is a higher neighbour that was searched before, a bit too, or a
lower neighbour of the vertex.  Lower neighbours can be many: of each only its row of bits is there, the higher
neighbours that it is adjacent to; those still adjacent to all that is chosen come first in one array, of which every
depth knows how many these are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.compile.kernels import entry, kernel, lowest, ones

Ints = NDArray[np.int64]
Narrow = NDArray[np.int32]

VERTEX, END, DEPTH, READY, FOUND = 0, 1, 2, 3, 4
"""Cells of the state: the rank that goes on next and the one to stop at, the vertices chosen so far beside it, whether
its rows of bits are there, and the size of the clique that was looked for, once it is found."""


@kernel
def fill_rows(
    offsets: Ints, neighbours: Narrow, below: Ints, lower: Narrow, vertex: int, places: Ints, inner: Ints, outer: Ints
) -> int:
    """Write the rows of bits of a vertex's higher neighbours, and of its lower ones: the work.

    ``places`` (int64 [ranks], zeros) is as before afterwards.
    """
    begin, size = offsets[vertex], offsets[vertex + 1] - offsets[vertex]
    words = (size + 63) >> 6
    work = 0
    for i in range(size):
        places[neighbours[begin + i]] = i + 1
    for i in range(size * words):
        inner[i] = 0
    for i in range(size):
        other = neighbours[begin + i]
        for j in range(offsets[other], offsets[other + 1]):
            place = places[neighbours[j]] - 1
            if place >= 0:
                inner[i * words + (place >> 6)] |= 1 << (place & 63)
                inner[place * words + (i >> 6)] |= 1 << (i & 63)
        work += offsets[other + 1] - offsets[other] + words
    first = below[vertex]
    for i in range(below[vertex + 1] - first):
        other = lower[first + i]
        for w in range(words):
            outer[i * words + w] = 0
        for j in range(offsets[other], offsets[other + 1]):
            place = places[neighbours[j]] - 1
            if place >= 0:
                outer[i * words + (place >> 6)] |= 1 << (place & 63)
        work += offsets[other + 1] - offsets[other] + words
    for i in range(size):
        places[neighbours[begin + i]] = 0
    return work


@kernel
def covered(left: Ints, row: Ints, begin: int, words: int) -> int:
    """How many bits of ``left`` are set in the row that begins there."""
    count = 0
    for w in range(words):
        count += ones(left[w] & row[begin + w])
    return count


@kernel
def branch(
    left: Ints, done: Ints, inner: Ints, outer: Ints, alive: Narrow, live: int, words: int, branches: Ints
) -> bool:
    """Write the vertices to go on with: those that a pivot does not cover.  False where no clique here is maximal."""
    total = 0
    for w in range(words):
        total += ones(left[w])
    best, pivot, outside = -1, 0, False
    for i in range(live):
        count = covered(left, outer, alive[i] * words, words)
        if count == total:
            return False
        if count > best:
            best, pivot, outside = count, alive[i] * words, True
    for w in range(words):
        bits = done[w]
        while bits != 0:
            row = ((w << 6) + lowest(bits)) * words
            count = covered(left, inner, row, words)
            if count == total:
                return False
            if count > best:
                best, pivot, outside = count, row, False
            bits &= bits - 1
    for w in range(words):
        bits = left[w]
        while bits != 0 and best < total - 1:
            row = ((w << 6) + lowest(bits)) * words
            count = covered(left, inner, row, words)
            if count > best:
                best, pivot, outside = count, row, False
            bits &= bits - 1
    for w in range(words):
        branches[w] = left[w] & ~(outer[pivot + w] if outside else inner[pivot + w])
    return True


@entry(
    "i8[:], i4[:], i8[:], i4[:], i8, i8, b1, i8[:], i8[:], i8[:], i8[:], i4[:], i8[:], i8[:, :, :], i8[:], i8[:, :],"
    " i8 -> b1"
)
def maximal_cliques(
    offsets: Ints,
    neighbours: Narrow,
    below: Ints,
    lower: Narrow,
    least: int,
    most: int,
    first: bool,
    state: Ints,
    places: Ints,
    inner: Ints,
    outer: Ints,
    alive: Narrow,
    lives: Ints,
    sets: Ints,
    counts: Ints,
    examples: Ints,
    budget: int,
) -> bool:
    """Count on: maximal cliques of ``least`` to ``most`` vertices, by size; whether all is done.

    Parameters
    ----------
    offsets, neighbours, below, lower
        Higher and lower neighbours of each rank, sorted.
    first
        Stop at the first clique of ``most`` vertices, maximal or not.
    state, places, inner, outer, alive, lives, sets
        See ``VERTEX`` and the others; scratch of one worker: int64 [ranks], rows of bits of higher and of lower
        neighbours, int32 [lower neighbours], int64 [depths + 1] and int64 [depths + 1, 4, words]: at each depth what is
        left, what was searched, what to go on with; and what is chosen, in the first word of the fourth.
    counts, examples
        int64 [most + 1] and [most + 1, most]: cliques by size, and the ranks of the first of each.
    """
    while state[VERTEX] < state[END] and budget > 0:
        vertex = state[VERTEX]
        size = offsets[vertex + 1] - offsets[vertex]
        if size < least - 1:
            state[VERTEX] += 1
            budget -= 1
            continue
        words = (size + 63) >> 6
        depth = state[DEPTH]
        if state[READY] == 0:
            budget -= fill_rows(offsets, neighbours, below, lower, vertex, places, inner, outer)
            state[READY] = 1
            lives[0] = below[vertex + 1] - below[vertex]
            for i in range(lives[0]):
                alive[i] = i
            for w in range(words):
                sets[0, 0, w] = -1
                sets[0, 1, w] = 0
                sets[0, 2, w] = 0
            if size & 63 != 0:
                sets[0, 0, words - 1] = (1 << (size & 63)) - 1
            depth = 0
            budget -= lives[0] * words
            branch(sets[0, 0], sets[0, 1], inner, outer, alive, lives[0], words, sets[0, 2])
        while depth >= 0 and budget > 0:
            w = 0
            while w < words and sets[depth, 2, w] == 0:
                w += 1
            if w == words:
                depth -= 1
                if depth >= 0:  # the vertex that was gone on with is done
                    chosen = sets[depth, 3, 0]
                    sets[depth, 0, chosen >> 6] &= ~(1 << (chosen & 63))
                    sets[depth, 1, chosen >> 6] |= 1 << (chosen & 63)
                budget -= words
                continue
            chosen = (w << 6) + lowest(sets[depth, 2, w])
            sets[depth, 2, w] &= sets[depth, 2, w] - 1
            sets[depth, 3, 0] = chosen
            row = chosen * words
            empty, excluded = True, False
            for v in range(words):
                sets[depth + 1, 0, v] = sets[depth, 0, v] & inner[row + v]
                sets[depth + 1, 1, v] = sets[depth, 1, v] & inner[row + v]
                sets[depth + 1, 2, v] = 0
                empty = empty and sets[depth + 1, 0, v] == 0
                excluded = excluded or sets[depth + 1, 1, v] != 0
            live = 0
            for i in range(lives[depth]):
                other = alive[i]
                if outer[other * words + (chosen >> 6)] >> (chosen & 63) & 1 != 0:
                    alive[i] = alive[live]
                    alive[live] = other
                    live += 1
            lives[depth + 1] = live
            budget -= lives[depth] + 2 * words
            reached = depth + 2
            found = empty and not excluded and live == 0 and reached >= least and reached <= most
            if first:
                found = reached == most
            if found:
                if counts[reached] == 0:
                    examples[reached, 0] = vertex
                    for d in range(depth + 1):
                        examples[reached, d + 1] = neighbours[offsets[vertex] + sets[d, 3, 0]]
                counts[reached] += 1
                if first:
                    state[FOUND] = reached
                    return True
            if not empty and reached < most:
                budget -= live * words + 64
                if branch(sets[depth + 1, 0], sets[depth + 1, 1], inner, outer, alive, live, words, sets[depth + 1, 2]):
                    depth += 1
                    continue
            sets[depth, 0, chosen >> 6] &= ~(1 << (chosen & 63))
            sets[depth, 1, chosen >> 6] |= 1 << (chosen & 63)
        state[DEPTH] = depth
        if depth < 0:
            state[VERTEX] += 1
            state[READY] = 0
    done: bool = state[VERTEX] >= state[END]
    return done
