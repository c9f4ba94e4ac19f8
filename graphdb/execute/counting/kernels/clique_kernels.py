"""Cliques of k vertices, counted over the graph oriented by degree.

For each vertex, the neighbours of higher rank become a small graph of its own: a matrix of bits.  In it the other
``k - 1`` vertices are chosen in rising order; what can still be chosen is a row of bits, ANDed with the row of each
choice, and the last choice is a count of bits.  Triangles need no matrix: one row of bits over all vertices does.
"""

from __future__ import annotations

from typing import Any

from graphdb.execute.search.set_kernels import LONG, clear_bits, count_bits, mark_bits
from graphdb.storage.compile.kernels import entry, kernel, load, lowest, ones, store

VERTEX, END, PLACE, FOUND, DEPTH = 0, 1, 2, 3, 4
"""Cells of the state: the vertex that goes on next and the one to stop at, how many of its neighbours are done, the
cliques found, and how many vertices are chosen where a choice goes on."""
_LEAST = 1 << 16
"""Words to go through once a matrix is made: or it would be made again and again."""


@entry("i8, i8, i8, i8, i8, T, i8 -> b1")
def count_triangles(offsets: int, neighbours: int, state: int, bits: int, width: int, like: Any, budget: int) -> bool:
    """Count on; ``bits`` is the address of one bit per vertex, all clear.  Whether all is done."""
    vertex, end, found = load(state, VERTEX, LONG), load(state, END, LONG), load(state, FOUND, LONG)
    while vertex < end and budget > 0:
        begin, after = load(offsets, vertex, LONG), load(offsets, vertex + 1, LONG)
        if after - begin > 1:
            mark_bits(neighbours + begin * width, after - begin, bits, like)
            for i in range(begin, after):
                other = load(neighbours, i, like)
                first, last = load(offsets, other, LONG), load(offsets, other + 1, LONG)
                found += count_bits(neighbours + first * width, last - first, bits, like)
                budget -= last - first + 1
            clear_bits(neighbours + begin * width, after - begin, bits, like)
        budget -= 1
        vertex += 1
    store(state, VERTEX, vertex, LONG)
    store(state, FOUND, found, LONG)
    return vertex == end


@kernel
def fill_matrix(offsets: int, neighbours: int, vertex: int, places: int, matrix: int, words: int, like: Any) -> int:
    """Write the edges among the neighbours of ``vertex`` as rows of bits: the work.

    ``places`` holds an int64 per vertex, all 0, and does so again afterwards.
    """
    begin, end = load(offsets, vertex, LONG), load(offsets, vertex + 1, LONG)
    for i in range((end - begin) * words):
        store(matrix, i, 0, LONG)
    for i in range(begin, end):
        store(places, load(neighbours, i, like), i - begin + 1, LONG)
    work = (end - begin) * (words + 2)
    for i in range(begin, end):
        other = load(neighbours, i, like)
        row = matrix + (i - begin) * words * 8
        first, last = load(offsets, other, LONG), load(offsets, other + 1, LONG)
        for j in range(first, last):
            place = load(places, load(neighbours, j, like), LONG) - 1
            if place >= 0:
                word = place >> 6
                store(row, word, load(row, word, LONG) | 1 << (place & 63), LONG)
        work += last - first
    for i in range(begin, end):
        store(places, load(neighbours, i, like), 0, LONG)
    return work


@entry("i8, i8, i8, i8, i8, i8, i8, T, i8 -> b1")
def count_cliques(
    offsets: int, neighbours: int, k: int, state: int, places: int, matrix: int, chosen: int, like: Any, budget: int
) -> bool:
    """Count on, for ``k`` of at least 4.

    Parameters
    ----------
    offsets, neighbours
        Addresses of an :class:`graphdb.storage.graph.derived.orientation.Oriented` graph's arrays.
    state
        The address of int64 [5]: see ``VERTEX`` and the others.
    places
        int64 [vertices], all 0.
    matrix
        uint64 [largest degree, words], with words = (largest degree + 63) // 64.
    chosen
        uint64 [k, words + 2]: at each depth the word that goes on next and what is left of it, then the candidates.
    budget
        Words to go through before returning.

    Returns
    -------
    bool
        Whether all is done.
    """
    vertex, end = load(state, VERTEX, LONG), load(state, END, LONG)
    first, found = load(state, PLACE, LONG), load(state, FOUND, LONG)
    depth = load(state, DEPTH, LONG)  # vertices chosen so far
    while vertex < end and budget > 0:
        degree = load(offsets, vertex + 1, LONG) - load(offsets, vertex, LONG)
        if degree < k - 1:
            vertex += 1
            budget -= 1
            continue
        words = (degree + 63) >> 6
        size = (words + 2) * 8
        budget -= fill_matrix(offsets, neighbours, vertex, places, matrix, words, like)
        budget = max(budget, _LEAST)
        while first < degree and budget > 0:
            level = chosen + max(depth - 2, 0) * size
            if depth == 0:
                row = matrix + first * words * 8
                store(level, 0, first >> 6, LONG)
                for w in range(first >> 6, words):
                    store(level, w + 2, load(row, w, LONG), LONG)
                store(level, 1, load(level, 2 + (first >> 6), LONG), LONG)
                depth = 2
            while depth > 1 and budget > 0:
                word, left = load(level, 0, LONG), load(level, 1, LONG)
                while left == 0 and word + 1 < words:
                    word += 1
                    left = load(level, word + 2, LONG)
                if left == 0:
                    depth -= 1
                    level -= size
                    budget -= 1
                    continue
                place = (word << 6) + lowest(left)
                store(level, 0, word, LONG)
                store(level, 1, left & (left - 1), LONG)
                row = matrix + place * words * 8
                budget -= words - word
                if depth == k - 2:
                    for w in range(word, words):
                        found += ones(load(level, w + 2, LONG) & load(row, w, LONG))
                    continue
                for w in range(word, words):
                    store(level + size, w + 2, load(level, w + 2, LONG) & load(row, w, LONG), LONG)
                level += size
                depth += 1
                store(level, 0, word, LONG)
                store(level, 1, load(level, word + 2, LONG), LONG)
            if depth > 1:
                break
            depth = 0
            first += 1
        if first == degree:
            vertex += 1
            first = 0
    store(state, VERTEX, vertex, LONG)
    store(state, PLACE, first, LONG)
    store(state, FOUND, found, LONG)
    store(state, DEPTH, depth, LONG)
    return vertex == end
