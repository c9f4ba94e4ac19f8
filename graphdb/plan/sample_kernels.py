"""Random walks through the data graph along a matching order (Numba); see :mod:`graphdb.plan.sample`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.jit import kernel, load
from graphdb.storage.pcsr_kernels import LONG, find, neighbours_of

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

STEP_CELLS = 6
"""A step: its lists begin, end; the address and length of its candidates (0 for none); those it must differ from
begin, end."""


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
def walk(
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
    like: Any,
) -> None:
    """Walk ``walks`` times; per step, add up rows and work, each walk for as many as it stands for.

    ``steps`` is int64 [steps, STEP_CELLS], ``lists`` (row of the partition, step that it hangs on), ``lists_of`` the
    addresses of the partitions' neighbours.  ``alive`` counts the walks that came past each step.
    """
    count = len(steps)
    values = np.empty(count, np.int64)
    table = partitions.ctypes.data
    state = 0x2545F4914F6CDD1D
    for _ in range(walks):
        weight = 1.0
        for i in range(count):
            first, last = steps[i, 0], steps[i, 1]
            candidates, size = steps[i, 2], steps[i, 3]
            state = next_random(state)
            if first == last:
                if size == 0:
                    break
                work[i] += weight * size
                weight *= size
                values[i] = load(candidates, pick(state, size), LONG)
            else:
                shortest, begin, length = first, 0, -1
                for k in range(first, last):
                    near, far = neighbours_of(table, lists[k, 0], values[lists[k, 1]])
                    if length < 0 or far - near < length:
                        shortest, begin, length = k, near, far - near
                work[i] += weight * (1.0 + length * (1.0 + search * (last - first - 1)))
                if length == 0:
                    break
                weight *= length
                value = load(lists_of[lists[shortest, 0]], begin + pick(state, length), like)
                values[i] = value
                fits = True
                for k in range(first, last):
                    if k != shortest and fits:
                        near, far = neighbours_of(table, lists[k, 0], values[lists[k, 1]])
                        at = find(lists_of[lists[k, 0]], near, far, value, like)
                        fits = at < far and load(lists_of[lists[k, 0]], at, like) == value
                if fits and candidates:
                    at = find(candidates, 0, size, value, LONG)
                    fits = at < size and load(candidates, at, LONG) == value
                if not fits:
                    break
            differs = True
            for k in range(steps[i, 4], steps[i, 5]):
                differs = differs and values[apart[k]] != values[i]
            if not differs:
                break
            rows[i] += weight
            alive[i] += 1
