"""The lists of an oriented graph in fewer bytes, where a budget has no room for all of them.

Nine tenths of what counts of cliques read are the lists of the last ranks, the vertices of highest degree; and what
these lists name are ranks after their own.  So of the last 65,536 ranks two bytes say each neighbour, as its distance
from the first of them, and twice as many of the lists that are read most stand on a device.
"""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from graphdb.gpu.data.residency import Expected, Lists, Runs, offsets_of, times_read
from graphdb.storage.graph.derived.orientation import Oriented

RANKS = 1 << 16
"""So many of the last ranks."""


@dataclass(frozen=True, slots=True, eq=False)
class NarrowLists:
    """All lists of an oriented graph, in two arrays.

    Attributes
    ----------
    first
        The first rank whose list is one of distances.
    begin
        Where its list begins among all.
    head
        int32 [begin]: the lists before it, of ranks.
    tail
        uint16 [edges - begin]: the others, of distances from ``first``.
    """

    first: int
    begin: int
    head: NDArray[np.int32]
    tail: NDArray[np.uint16]


_KNOWN: WeakKeyDictionary[Oriented, NarrowLists] = WeakKeyDictionary()


def narrow(oriented: Oriented) -> NarrowLists:
    """The narrow lists of an oriented graph, which are made once."""
    found = _KNOWN.get(oriented)
    if found is None:
        first = max(len(oriented.offsets) - 1 - RANKS, 0)
        begin = int(oriented.offsets[first])
        tail = (oriented.neighbours[begin:] - np.int32(first)).astype(np.uint16)
        found = _KNOWN.setdefault(oriented, NarrowLists(first, begin, oriented.neighbours[:begin], tail))
    return found


def expected_bytes(oriented: Oriented, room: int) -> Expected:
    """What stands on a device that has so much room for narrow lists, and what a count reads of others."""
    widths = np.full(len(oriented.offsets) - 1, 2)
    widths[:-RANKS] = 4
    sizes = widths * np.diff(oriented.offsets)
    behind = np.cumsum(sizes[::-1])[::-1] + offsets_of(oriented).nbytes
    away, size = behind > room, offsets_of(oriented).nbytes + int(sizes.sum())
    return Expected(size, size - int(sizes[away].sum()), int((sizes * times_read(oriented))[away].sum()))


def lists_of_narrow(oriented: Oriented) -> list[Lists]:
    """Return what is read of the narrow lists of an oriented graph."""
    lists, offsets = narrow(oriented), oriented.offsets

    def head() -> Runs:
        first = lists.first
        return offsets[:first], np.diff(offsets[: first + 1]), times_read(oriented)[:first]

    def tail() -> Runs:
        first = lists.first
        return offsets[first:-1] - lists.begin, np.diff(offsets[first:]), times_read(oriented)[first:]

    return [Lists(lists.head, (offsets_of(oriented),), head), Lists(lists.tail, (), tail)]
