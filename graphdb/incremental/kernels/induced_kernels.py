"""Which rows of a batch's search are induced matches, gained or lost: see :mod:`graphdb.incremental.induced`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.incremental.frame import BOTH, CODES, INT, KEY_SHIFT, LONG, NEIGHBOURS, UNIT
from graphdb.incremental.kernels.list_kernels import place_of, row_of
from graphdb.storage.compile.kernels import entry, kernel, load

Ints = NDArray[np.int64]


@kernel
def edges_between(graph: int, relation: int, u: int, w: int, version: int, like: Any) -> int:
    """How many edges join two vertices in a version, in the list of a relation."""
    row = row_of(graph, relation, u)
    neighbours, codes = load(graph, NEIGHBOURS, LONG), load(graph, CODES, LONG)
    begin = load(row, 0, INT) * UNIT
    end = begin + load(row, 1, INT)
    at, count = place_of(graph, begin, end, w, 0, like), 0
    while at < end and load(neighbours, at, like) == w:
        count += load(codes, at, INT) & version == version
        at += 1
    return count


@kernel
def first_change(graph: int, relation: int, u: int, w: int, like: Any) -> int:
    """The key of the first edge between two vertices that is in one version alone; -1 where there is none."""
    row = row_of(graph, relation, u)
    neighbours, codes = load(graph, NEIGHBOURS, LONG), load(graph, CODES, LONG)
    begin = load(row, 0, INT) * UNIT
    end = begin + load(row, 1, INT)
    at = place_of(graph, begin, end, w, 0, like)
    while at < end and load(neighbours, at, like) == w:
        versions = load(codes, at, INT) & BOTH
        if versions != 0 and versions != BOTH:
            return load(codes, at, INT) >> KEY_SHIFT
        at += 1
    return -1


@kernel
def lasts(graph: int, relation: int, source: int, target: int, key: int, like: Any) -> bool:
    """Whether an edge of a relation is in both versions."""
    row = row_of(graph, relation, source)
    begin = load(row, 0, INT) * UNIT
    at = place_of(graph, begin, begin + load(row, 1, INT), target, key, like)
    return load(load(graph, CODES, LONG), at, INT) & BOTH == BOTH


@kernel
def is_induced(graph: int, relation: int, row: Ints, pairs: Ints, version: int, like: Any) -> bool:
    """Whether just as many edges as the pattern has join each two vertices of a match in a version."""
    for k in range(len(pairs)):
        if edges_between(graph, relation, row[pairs[k, 0]], row[pairs[k, 1]], version, like) != pairs[k, 2]:
            return False
    return True


@entry("i8, T, i8, i8[:, :], i8[:, :], i8[:, :], i8 -> i8")
def choose_induced(graph: int, like: Any, relation: int, rows: Ints, edges: Ints, pairs: Ints, extra: int) -> int:
    """Move the rows that are induced matches gained or lost to the front, and write which they are: how many.

    Parameters
    ----------
    graph, like, relation
        The graph's frame, an array of the type of its neighbours, and the relation of all edges in either direction.
    rows
        [matches, columns]: the version that a match of the edges is in, vertices, edges and the extra edge, if any.
    edges
        [edges, 4]: of each edge of the pattern its relation and the columns of its code, source and target.
    pairs
        [pairs, 3]: the columns of two vertices, and how many edges join them in the pattern.
    extra
        Which pair the extra edge joins; -1 for matches without one.
    """
    found, columns = 0, rows.shape[1]
    for i in range(len(rows)):
        version, fits = rows[i, 0], True
        if extra >= 0:
            for k in range(len(edges)):
                key, source, target = rows[i, edges[k, 1]], rows[i, edges[k, 2]], rows[i, edges[k, 3]]
                fits = fits and lasts(graph, edges[k, 0], source, target, key, like)
            for k in range(extra + 1):  # once for all that came, or went, between its vertices
                u, w = rows[i, pairs[k, 0]], rows[i, pairs[k, 1]]
                if fits:
                    first = first_change(graph, relation, u, w, like)
                    fits = first == (rows[i, columns - 1] if k == extra else -1)
        if fits:
            fits = is_induced(graph, relation, rows[i], pairs, version, like)
            if extra >= 0:  # mostly in the other version; in this one, edges of the pattern are one of the graph's
                other = is_induced(graph, relation, rows[i], pairs, version ^ BOTH, like)
                version, fits = version if fits else version ^ BOTH, fits != other
        if fits:
            for column in range(1, columns):
                rows[found, column] = rows[i, column]
            rows[found, 0] = version
            found += 1
    return found
