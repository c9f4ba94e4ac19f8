"""Relations by rank: vertices numbered from the one with most neighbours down, as counting reads them.

Conditions of order then go from greater to smaller degree or back: an edge is seen from the end whose list is made
into bits, and the shorter list is scanned.  Vertices that many lists hold have small numbers, close together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.plan.checks import Relation
from graphdb.storage.graph.pcsr import Partition
from graphdb.storage.graph.signatures import runs

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """One relation's neighbour lists by rank.

    Attributes
    ----------
    begin, less, more
        uint32 [ranks + 1], [ranks], [ranks]: where a list begins, where its smaller ranks end, where greater begin.
    ids
        int32 [entries]: the neighbours, sorted and unique within each list.
    """

    begin: NDArray[np.uint32]
    less: NDArray[np.uint32]
    more: NDArray[np.uint32]
    ids: NDArray[np.int32]

    @property
    def longest(self) -> int:
        """The length of the longest list."""
        return int(self.lengths.max(initial=0))

    @property
    def lengths(self) -> Ints:
        """How long the lists are: int64 [ranks]."""
        begin = self.begin.astype(np.int64)
        return begin[1:] - begin[:-1]

    def work(self) -> NDArray[np.float64]:
        """How long the lists of each rank's neighbours are together: float64 [ranks]."""
        sums = np.append(0, np.cumsum(self.lengths[self.ids])).astype(np.float64)
        found: NDArray[np.float64] = sums[self.begin[1:]] - sums[self.begin[:-1]]
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Ranks:
    """Some relations of one data graph by rank.

    Attributes
    ----------
    vertices
        int64 [ranks]: which vertex has a rank; those without any neighbour have none.
    rank
        int32 [vertices of the data graph]: -1 for those.
    """

    vertices: Ints
    rank: NDArray[np.int32]
    relations: dict[Relation, Ranked]

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        lists = [(r.begin, r.less, r.more, r.ids) for r in self.relations.values()]
        return self.vertices.nbytes + self.rank.nbytes + sum(array.nbytes for arrays in lists for array in arrays)

    def of(self, vertices: Ints) -> Ints:
        """The ranks of some vertices, sorted, without those that have none."""
        ranks = self.rank[vertices].astype(np.int64)
        return np.sort(ranks[ranks >= 0])

    def bits(self, vertices: Ints) -> NDArray[np.uint32]:
        """Some vertices as bits by rank: uint32 [(ranks + 31) / 32]."""
        flags = np.zeros((len(self.vertices) + 31) // 32 * 32, bool)
        flags[self.of(vertices)] = True
        return np.packbits(flags, bitorder="little").view(np.uint32)


def rank_relations(partitions: Mapping[Relation, Partition], vertices: int) -> Ranks | None:
    """Rank vertices by how many neighbours they have in all of ``partitions``; None where 32 bits do not do."""
    if vertices >= 1 << 31 or any(len(partition.neighbours) >= 1 << 32 for partition in partitions.values()):
        return None
    lists = {id(partition): runs(partition) for partition in partitions.values()}
    order = by_degree(partitions.values(), vertices)
    rank = np.full(vertices, -1, np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    ranked = {at: _ranked(*found, rank, len(order)) for at, found in lists.items()}
    return Ranks(order, rank, {relation: ranked[id(partition)] for relation, partition in partitions.items()})


def by_degree(partitions: Iterable[Partition], vertices: int) -> Ints:
    """The vertices that have neighbours in some partitions, those with most of them first."""
    degrees = np.zeros(vertices, np.int64)
    for partition in {id(each): each for each in partitions}.values():
        degrees[partition.keys] += partition.lengths()
    return np.argsort(-degrees, kind="stable")[: int(np.count_nonzero(degrees))]


def _ranked(keys: Ints, starts: Ints, neighbours: NDArray[Any], rank: NDArray[np.int32], count: int) -> Ranked:
    # A list's target may be a vertex without a list here, but it has a rank: somebody's lists reach it backwards.
    from graphdb.gpu.counting.rank_kernels import rank_lists

    lengths = np.zeros(count, np.int64)
    lengths[rank[keys]] = np.diff(starts)
    begin = np.zeros(count + 1, np.uint32)
    np.cumsum(lengths, out=begin[1:])
    less, more, ids = begin[:-1].copy(), begin[:-1].copy(), np.empty(len(neighbours), np.int32)
    rank_lists(keys, starts, neighbours, rank, begin, less, more, ids)
    return Ranked(begin, less, more, ids)
