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


@kernel
def bind(
    i: int,
    step: Ints,
    lists: Ints,
    apart: Ints,
    table: int,
    lists_of: Ints,
    through: int,
    values: Ints,
    random: Ints,
    like: Any,
) -> tuple[int, int]:
    """Bind step ``i`` to a random value in ``values[i]``: (how many values that one stands for, how many were there).

    Of a list of more than ``through`` elements any is taken, and nothing is bound (0) where that does not fit; a
    shorter one is gone through, and any of those that fit is taken, so that more walks arrive (Kim, Kim, Hwang, Moon,
    Park, Han, SIGMOD 2021, §4.1: random walks with intersection).  ``random`` is the state of the random numbers.
    """
    first, last = step[1], step[2]
    state = next_random(random[0])
    if first == last:
        found = length = step[4]
        if length > 0:
            values[i] = load(step[3], pick(state, length), LONG)
            if not fits(values[i], step, lists, apart, table, lists_of, values, -1, like):
                found = 0
    else:
        shortest, begin, length = first, 0, -1
        for k in range(first, last):
            near, far = neighbours_of(table, lists[k, 0], values[lists[k, 1]])
            if length < 0 or far - near < length:
                shortest, begin, length = k, near, far - near
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
    random[0] = state
    return found, length


@kernel
def effort(step: Ints, length: int, search: float) -> float:
    """Elements that a search scans to bind a step whose shortest list is so long."""
    lists = step[2] - step[1]
    scanned: float = 1.0 + length * (1.0 + search * (lists - 1)) if lists else length
    return scanned


@entry("i8[:, :], i8[:, :], i8[:], i8[:, :], i8[:], i8, i8, f8, f8[:], f8[:], i8[:], i8[:], f8[:], i8[:], T")
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
    random: Ints,
    like: Any,
) -> None:
    """Walk ``walks`` times down a tree; per step, add up rows and work, each walk for as many as it stands for.

    ``steps`` is int64 [steps, STEP_CELLS], ``lists`` (row of the partition, step that it hangs on), ``lists_of`` the
    addresses of the partitions' neighbours.  ``alive`` counts the walks that came past each step; ``values`` and
    ``weights`` are scratch, a cell for each step, ``through`` and ``random`` are :func:`bind`'s.  Where several steps
    go on from one, each walk goes down all branches.
    """
    count = len(steps)
    table = partitions.ctypes.data
    for _ in range(walks):
        for i in range(count):
            step = steps[i]
            weight = weights[step[0]] if step[0] >= 0 else 1.0
            weights[i] = 0.0
            if weight == 0.0:
                continue
            found, length = bind(i, step, lists, apart, table, lists_of, through, values, random, like)
            work[i] += weight * effort(step, length, search)
            if found == 0:
                continue
            weight *= found
            weights[i] = weight
            rows[i] += weight
            alive[i] += 1


@entry("i8[:, :], i8[:, :], i8[:], i8[:, :], i8[:], i8, f8, f8[:], f8[:], i8[:], i8[:, :, :], f8[:, :], i8[:], T")
def walk_together(
    steps: Ints,
    lists: Ints,
    apart: Ints,
    partitions: Ints,
    lists_of: Ints,
    walks: int,
    search: float,
    rows: Floats,
    work: Floats,
    alive: Ints,
    values: Ints,
    sums: Floats,
    random: Ints,
    like: Any,
) -> None:
    """Walk along an order, all walks a step at a time: those that arrived go on in the place of those that did not.

    From each step, ``walks`` go on that arrived there, each as often as it stands for matches (sequential Monte Carlo:
    Doucet, de Freitas, Gordon 2001, §1.3).  Walks that take one way each and end where a vertex does not fit hardly
    ever get past the third label.  ``rows`` and ``work`` are per step, as is how many arrived, ``alive``.
    ``values`` [2, walks, steps] and ``sums`` [2, walks] are scratch, all else is as :func:`walk` has it.
    """
    table = partitions.ctypes.data
    stands, came = 1.0, 1
    for i in range(len(steps)):
        step = steps[i]
        here, there, before, after = values[i % 2], values[1 - i % 2], sums[i % 2], sums[1 - i % 2]
        scanned, reached, arrived = 0.0, 0.0, 0
        for _ in range(walks):
            row = there[arrived]
            if i > 0:
                random[0] = next_random(random[0])
                wanted = before[came - 1] * (pick(random[0], 1 << 30) / float(1 << 30))
                low, high = 0, came - 1
                while low < high:
                    middle = (low + high) // 2
                    if before[middle] > wanted:
                        high = middle
                    else:
                        low = middle + 1
                for k in range(i):
                    row[k] = here[low, k]
            found, length = bind(i, step, lists, apart, table, lists_of, 0, row, random, like)
            scanned += effort(step, length, search)
            if found > 0:
                reached += found
                after[arrived] = reached
                arrived += 1
        work[i], rows[i] = stands * scanned / walks, stands * reached / walks
        alive[i] = arrived
        if arrived == 0:
            return
        stands, came = rows[i], arrived
