"""Random walks through the data graph along a matching order or a tree; see
:mod:`graphdb.plan.ordering.sample`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.compile.kernels import entry, kernel, load
from graphdb.storage.graph.pcsr_kernels import LONG, find, neighbours_of

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

STEP_CELLS = 7
"""A step: the step that it goes on from (-1: none); its lists begin, end; the address and length of its candidates (0
for none); those it must differ from begin, end."""


@kernel
def next_random(state: int) -> int:
    """The next of a sequence of pseudo-random numbers of 63 bits (Marsaglia's xorshift, 13 7 17)."""
    word = np.uint64(state)
    word ^= word << np.uint64(13)
    word ^= word >> np.uint64(7)
    word ^= word << np.uint64(17)
    result: int = np.int64(word)  # type: ignore[assignment]
    return result


@kernel
def pick(state: int, length: int) -> int:
    """A number below ``length``."""
    chosen: int = np.int64(np.uint64(state) % np.uint64(length))  # type: ignore[assignment]
    return chosen


@kernel
def fits(
    value: int, step: Ints, lists: Ints, apart: Ints, table: int, lists_of: Ints, values: Ints, but: int, like: Any
) -> bool:
    """Whether a step may be bound to a value that is in its list ``but``: all other lists hold it, and so on."""
    for k in range(step[1], step[2]):
        if k != but:
            begin, end = neighbours_of(table, lists[k, 0], values[lists[k, 1]])
            at = find(lists_of[lists[k, 0]], begin, end, value, like)
            if at >= end or load(lists_of[lists[k, 0]], at, like) != value:
                return False
    if step[3] and but >= 0:
        at = find(step[3], 0, step[4], value, LONG)
        if at >= step[4] or load(step[3], at, LONG) != value:
            return False
    differs = True
    for k in range(step[5], step[6]):
        differs = differs and values[apart[k]] != value
    return differs


@entry("i8[:, :], i8[:, :], i8[:], i8[:, :], i8[:], i8, i8, f8, f8[:], f8[:], i8[:], i8[:], f8[:], T")
def walk(
    steps: Ints,
    lists: Ints,
    apart: Ints,
    partitions: Ints,
    lists_of: Ints,
    walks: int,
    through: int,
    search: float,
    rows: Floats,
    work: Floats,
    alive: Ints,
    values: Ints,
    weights: Floats,
    like: Any,
) -> None:
    """Walk ``walks`` times; per step, add up rows and work, each walk for as many as it stands for.

    ``steps`` is int64 [steps, STEP_CELLS], ``lists`` (row of the partition, step that it hangs on), ``lists_of`` the
    addresses of the partitions' neighbours.  ``alive`` counts the walks that came past each step; ``values`` and
    ``weights`` are scratch, a cell for each step.  Along a tree, where
    several steps go on from one, each walk goes down all branches.

    Of a list of more than ``through`` elements, a walk takes any, and ends where that does not fit; a shorter one it
    goes through, and takes any of those that fit, so that more walks arrive (Kim, Kim, Hwang, Moon, Park, Han, SIGMOD
    2021, §4.1: random walks with intersection).
    """
    count = len(steps)
    table = partitions.ctypes.data
    state = 0x2545F4914F6CDD1D
    for _ in range(walks):
        for i in range(count):
            step = steps[i]
            weight = weights[step[0]] if step[0] >= 0 else 1.0
            weights[i] = 0.0
            if weight == 0.0:
                continue
            first, last = step[1], step[2]
            state = next_random(state)
            if first == last:
                if step[4] == 0:
                    continue
                work[i] += weight * step[4]
                weight *= step[4]
                values[i] = load(step[3], pick(state, step[4]), LONG)
                if not fits(values[i], step, lists, apart, table, lists_of, values, -1, like):
                    continue
            else:
                shortest, begin, length = first, 0, -1
                for k in range(first, last):
                    near, far = neighbours_of(table, lists[k, 0], values[lists[k, 1]])
                    if length < 0 or far - near < length:
                        shortest, begin, length = k, near, far - near
                work[i] += weight * (1.0 + length * (1.0 + search * (last - first - 1)))
                if length == 0:
                    continue
                ids, found = lists_of[lists[shortest, 0]], 0
                if length > through:
                    values[i] = load(ids, begin + pick(state, length), like)
                    if fits(values[i], step, lists, apart, table, lists_of, values, shortest, like):
                        found = length
                else:
                    for at in range(begin, begin + length):
                        value = load(ids, at, like)
                        if fits(value, step, lists, apart, table, lists_of, values, shortest, like):
                            found += 1
                            state = next_random(state)
                            if pick(state, found) == 0:
                                values[i] = value
                if found == 0:
                    continue
                weight *= found
            weights[i] = weight
            rows[i] += weight
            alive[i] += 1
