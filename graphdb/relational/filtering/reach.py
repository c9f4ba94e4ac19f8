"""Which vertices a pattern vertex may be, known from the candidates of another one: its neighbours along the pattern.

A condition on a property that most vertices have is tested for these alone, where they are far fewer: a semi-join along
the pattern, before the match.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from graphdb.pattern.graph import PatternEdge
from graphdb.storage.arrays.sorted_sets import both, each_once
from graphdb.storage.graph.data_graph import DataGraph
from graphdb.storage.graph.pcsr import Direction

Ids = NDArray[np.int64]


def reachable(
    graph: DataGraph, edges: Sequence[PatternEdge], found: Sequence[Ids | None], vertex: int, most: int
) -> Ids | None:
    """Return a sorted superset of what a pattern vertex is bound to in any match; None where that takes too long.

    Parameters
    ----------
    edges
        The pattern's edges.
    found
        The candidates of each pattern vertex, sorted; None where any vertex is one, or they are not known yet.
    most
        Neighbours that are looked at for one edge, at most.
    """
    near = {number: ids for number, ids in enumerate(found) if ids is not None and len(ids) <= most}
    near.pop(vertex, None)
    done: set[int] = set()
    while left := near.keys() - done:
        source = min(left, key=lambda number: len(near[number]))  # from the fewest, as what they reach is fewest
        if source == vertex:
            return near[vertex]
        done.add(source)
        for edge in edges:
            target = edge.target if edge.source == source else edge.source
            if source not in (edge.source, edge.target) or target in done or edge.labels is None:
                continue
            direction: Direction = "both" if not edge.directed else "out" if source == edge.source else "in"
            ids = _neighbours(graph, edge.labels, direction, near[source], most)
            if ids is not None:
                known = near.get(target, found[target])
                near[target] = ids if known is None else both(ids, known)
    return None


def _neighbours(graph: DataGraph, labels: tuple[int, ...], direction: Direction, ids: Ids, most: int) -> Ids | None:
    """Return the neighbours of vertices, if these are at most so many and the partition is in memory."""
    if not graph.has_partition(labels, direction):
        return None
    found = graph.partition(labels, direction).neighbours_of_all(ids, most)
    return None if found is None else each_once(found, graph.vertices)
