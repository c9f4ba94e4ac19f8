"""The loop behind partitions by object: edges sorted by subject, put into runs by object."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.compile.kernels import entry

Ints = NDArray[np.int64]


@entry("i8[:], i8[:], i8[:], T[:]")
def transpose(subjects: Ints, objects: Ints, offsets: Ints, neighbours: NDArray[Any]) -> None:
    """Write the subjects of each object, one object after the other, in the order in which they come.

    ``offsets`` (int64 [vertices + 1], zeros) becomes where those of each vertex begin, and the last ones end.
    """
    for i in range(len(objects)):
        offsets[objects[i] + 1] += 1
    for vertex in range(len(offsets) - 1):
        offsets[vertex + 1] += offsets[vertex]
    for i in range(len(objects)):
        at = offsets[objects[i]]
        neighbours[at] = subjects[i]
        offsets[objects[i]] = at + 1
    for vertex in range(len(offsets) - 1, 0, -1):  # each has moved to where the next one begins
        offsets[vertex] = offsets[vertex - 1]
    offsets[0] = 0
