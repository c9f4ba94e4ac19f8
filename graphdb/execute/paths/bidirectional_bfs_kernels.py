"""Shortest paths between many pairs of vertices: for each a search from both ends, until they meet.

Arrays over the vertices are made once for all pairs, and only what a pair has touched is cleaned after it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.execute.paths.bfs_kernels import Depths, forget
from graphdb.execute.search.set_kernels import neighbours_of
from graphdb.storage.compile.kernels import entry, kernel

Ints = NDArray[np.int64]

PAIR, UNDER_WAY, SIDE, MET, FILLED = 0, 1, 2, 3, 4
"""Places in ``state``: the pair, whether it is begun, the side that goes on (-1: to choose), where the sides met (-1),
how much of ``walks`` is filled.  Each side then has four: head, end of its level, tail, depth."""
STATE = 13


@kernel
def _expand(
    partition: Ints,
    neighbours: NDArray[Any],
    mine: Depths,
    theirs: Depths,
    before: Ints,
    queue: Ints,
    state: Ints,
    side: int,
    budget: int,
) -> int:
    """Expand the level of one side; return the work left, negative where the level is not done."""
    at = 5 + 4 * side
    depth = state[at + 3]
    while state[at] < state[at + 1]:
        if budget < 0:
            return budget
        vertex = queue[state[at]]
        state[at] += 1
        begin, end = neighbours_of(partition.ctypes.data, 0, vertex)
        budget -= end - begin + 1
        for place in range(begin, end):
            other = neighbours[place]
            if mine[other] < 0:
                mine[other] = depth
                before[other] = vertex
                queue[state[at + 2]] = other
                state[at + 2] += 1
                if theirs[other] >= 0:
                    state[MET] = other
                    return budget
    return max(budget, 0)


@entry(
    "i8[:], T[:], i8[:], T[:], i8[:], i8[:], i4[:, :], i8[:, :], i8[:, :], i8[:], i8, i4[:], i8[:], i8[:], b1, i8 -> b1"
)
def bidirectional_bfs(
    there: Ints,
    there_neighbours: NDArray[Any],
    back: Ints,
    back_neighbours: NDArray[Any],
    sources: Ints,
    targets: Ints,
    depths: NDArray[np.int32],
    before: Ints,
    queues: Ints,
    state: Ints,
    longest: int,
    lengths: NDArray[np.int32],
    walks: Ints,
    starts: Ints,
    materialized: bool,
    budget: int,
) -> bool:
    """Find a shortest path for each pair of different vertices; return whether all are done.

    Parameters
    ----------
    depths, before, queues
        [2, vertices]: for both sides; all of ``depths`` is -1.
    lengths
        int32 [pairs]: the result, -1 where there is no path of at most ``longest`` edges.
    walks, starts
        Where ``materialized``: the paths' vertices, and int64 [pairs + 1] where each begins.  When ``walks`` has less
        than ``vertices`` cells left it returns, so that the caller can put another in place and set ``state[FILLED]``
        to 0.
    """
    while state[PAIR] < len(sources):
        pair = state[PAIR]
        if state[UNDER_WAY] == 0:
            state[UNDER_WAY], state[SIDE], state[MET] = 1, -1, -1
            for side in range(2):
                vertex = sources[pair] if side == 0 else targets[pair]
                at = 5 + 4 * side
                depths[side, vertex] = 0
                queues[side, 0] = vertex
                state[at], state[at + 1], state[at + 2], state[at + 3] = 0, 0, 1, 0
        found = False
        while not found:
            if state[SIDE] < 0:
                mine, theirs = state[7] - state[5], state[11] - state[9]
                if mine == 0 or theirs == 0 or state[8] + state[12] >= longest:
                    break
                side = 0 if mine <= theirs else 1
                at = 5 + 4 * side
                state[SIDE], state[at + 1], state[at + 3] = side, state[at + 2], state[at + 3] + 1
            if state[SIDE] == 0:
                budget = _expand(there, there_neighbours, depths[0], depths[1], before[0], queues[0], state, 0, budget)
            else:
                budget = _expand(back, back_neighbours, depths[1], depths[0], before[1], queues[1], state, 1, budget)
            if state[MET] >= 0:
                found = True
            elif budget < 0:
                return False
            else:
                state[SIDE] = -1
        lengths[pair] = state[8] + state[12] if found else -1
        if materialized:
            filled = state[FILLED]
            if found:
                middle = filled + depths[0, state[MET]]
                vertex = state[MET]
                for place in range(middle, filled - 1, -1):
                    walks[place] = vertex
                    vertex = before[0, vertex]
                vertex = state[MET]
                for place in range(middle + 1, filled + lengths[pair] + 1):
                    vertex = before[1, vertex]
                    walks[place] = vertex
                state[FILLED] = filled + lengths[pair] + 1
            starts[pair + 1] = state[FILLED]
        forget(depths[0], queues[0], state[7])
        forget(depths[1], queues[1], state[11])
        state[PAIR], state[UNDER_WAY] = pair + 1, 0
        if budget <= 0 or (materialized and len(walks) - state[FILLED] <= depths.shape[1]):
            return bool(state[PAIR] == len(sources))
    return True
