"""Shortest paths between pairs of vertices by bidirectional BFS: from both ends of each pair, until the searches
meet.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from graphdb.execute.paths.path_rows import BLOCK, PathRows
from graphdb.execute.paths.traversal import BUDGET, Traversal

Ints = NDArray[np.int64]


def shortest_paths_between(traversal: Traversal, sources: Ints, targets: Ints) -> Iterator[PathRows]:
    """Yield a shortest path for each pair of different vertices that one joins: int64 [pairs] each."""
    from graphdb.execute.paths.bidirectional_bfs_kernels import FILLED, PAIR, STATE, bidirectional_bfs

    step, nodes = traversal.step, traversal.nodes
    depths = np.full((2, nodes), -1, np.int32)
    before, queues = (np.empty((2, nodes), np.int64) for _ in range(2))
    state = np.zeros(STATE, np.int64)
    lengths, starts = np.empty(len(sources), np.int32), np.zeros(len(sources) + 1, np.int64)
    there, back = (np.array(partition.row, np.int64) for partition in (traversal.away, traversal.back))
    room = (nodes + BLOCK) if step.materialized else 0
    done, first = False, 0
    while not done:
        walks = np.empty(room, np.int64)
        while not done and (state[FILLED] <= room - nodes - 1 or not step.materialized):
            traversal.control.check()
            done = bidirectional_bfs(
                there,
                traversal.away.neighbours,
                back,
                traversal.back.neighbours,
                sources,
                targets,
                depths,
                before,
                queues,
                state,
                traversal.longest,
                lengths,
                walks,
                starts,
                step.materialized,
                BUDGET,
            )
        last = int(state[PAIR])
        here = slice(first, last)
        joined = np.flatnonzero(lengths[here] >= 0) + first
        found = PathRows(sources[joined], targets[joined], lengths[joined].astype(np.int64))
        if step.materialized:
            begun = np.append(starts[:-1][joined], state[FILLED])
            begun[0:1] = 0
            yield traversal.coded(found, begun, walks[: int(state[FILLED])])
        else:
            yield found
        first, state[FILLED], starts[last] = last, 0, 0
