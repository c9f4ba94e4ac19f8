"""What counting is expected to cost: degrees as a search meets them, and the closure of wedges (clustering).

The neighbour of a random vertex has more neighbours than a random vertex: lists found along an edge are as long as the
mean of the squared degrees over the mean degree.  And friends of friends are friends: how often two neighbours of a
vertex are joined is asked of a sample of wedges.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphdb.plan.counting.inclusion_exclusion import Member
from graphdb.storage.graph.data_graph import DataGraph
from graphdb.storage.graph.derived.edge_subset import is_one_label, joins_once
from graphdb.storage.graph.pcsr import OPPOSITE, Partition

Ints = NDArray[np.int64]

SAMPLES = 400
"""Wedges that are looked at."""
_GUESS = 0.05
"""How often wedges close where nobody looked."""


class CountingCosts:
    """Figures about the relations of one data graph; each is computed once and cached with the graph.

    Parameters
    ----------
    filters
        The candidate sets that quotients know by number.
    """

    def __init__(self, graph: DataGraph, filters: list[Ints]) -> None:
        self._graph = graph
        self.filters = filters
        self.vertices = graph.vertices
        self._figures: dict[Member, tuple[float, float]] = {}
        self._overlaps: dict[tuple[Member, Member], float] = {}

    def check(self) -> None:
        """Raise if whoever plans wants no more."""
        self._graph.check()

    def keys(self, member: Member) -> float:
        """How many vertices have a neighbour."""
        return self._of(member)[0]

    def mean(self, member: Member) -> float:
        """How many neighbours those have on average."""
        return self._of(member)[1]

    def biased(self, member: Member, arrival: Member | None = None) -> float:
        """How many neighbours a vertex has that an edge (of ``arrival``; by default, of its own kind) leads to."""
        arrival = member if arrival is None else arrival
        if (member, arrival) not in self._overlaps:
            kinds = (member.labels, member.direction, arrival.labels, arrival.direction)
            found = self._graph.estimate(("overlap", *kinds), lambda: np.array([self._overlap(member, arrival)]))
            self._overlaps[member, arrival] = float(found[0])
        return self._overlaps[member, arrival]

    def loop_free(self, member: Member) -> bool:
        """Whether no vertex is its own neighbour."""
        return not self._graph.has_loops(member.labels)

    def oriented_work(self, member: Member) -> float:
        """The neighbours' neighbours in the graph oriented by degree."""
        return float(self._graph.oriented(member.labels).work[-1])

    def closure(self, members: tuple[Member, ...]) -> float:
        """The share of two steps' ends that such an edge joins; more than one condition counts as half each."""
        member = members[0]
        key = ("closure", member.labels, member.direction)
        share = float(self._graph.estimate(key, lambda: np.array([self._sampled(member)]))[0])
        return float(share * 0.5 ** (len(members) - 1))

    def _of(self, member: Member) -> tuple[float, float]:
        if member not in self._figures:
            key = ("degrees", member.labels, member.direction)
            keys, mean = self._graph.estimate(key, lambda: self._degrees(member)).tolist()
            self._figures[member] = (keys, mean)
        return self._figures[member]

    def _degrees(self, member: Member) -> NDArray[np.float64]:
        if member.direction != "both" and joins_once(member.labels):  # statistics say the same, without a partition
            known = self._graph.statistics(member.labels)
            count = known.subjects if member.direction == "out" else known.objects
            return np.array([count, known.triples / max(count, 1)])
        labels, direction = member.labels, member.direction
        opposite = OPPOSITE[direction]
        if self._graph.has_partition(labels, opposite) and not self._graph.has_partition(labels, direction):
            entries, keys = self._graph.partition(labels, opposite), self._graph.keys(labels, direction)
        else:
            entries = self._graph.partition(labels, direction)
            keys = entries.keys
        return np.array([len(keys), len(_neighbours(entries)) / max(len(keys), 1)])

    def _overlap(self, member: Member, arrival: Member) -> float:
        # An edge leads to a vertex with probability proportional to how many of its kind do.
        if (read := self._edges_alone(member)) is not None:
            own = np.bincount(read[0])
        else:
            partition = self._graph.partition(member.labels, member.direction)
            own = np.zeros(int(partition.keys.max(initial=-1)) + 1, np.int64)
            own[partition.keys] = partition.lengths()
        same = read is not None and (member.labels, member.direction) == (arrival.labels, arrival.direction)
        leading = read if same else self._edges_alone(arrival)
        if leading is None:
            reached = _neighbours(self._graph.partition(arrival.labels, arrival.direction))
        else:
            reached = leading[1]
        return float(own[reached[reached < len(own)]].sum() / max(len(reached), 1))

    def _edges_alone(self, member: Member) -> tuple[Ints, Ints] | None:
        """Where edges begin and where they lead; None where a partition says it that is there, or needed to say it."""
        if member.direction == "both" or not is_one_label(member.labels):
            return None
        if self._graph.has_partition(member.labels, member.direction):
            return None
        assert member.labels is not None
        subjects, objects = self._graph.source.edges(member.labels[0])
        return (subjects, objects) if member.direction == "out" else (objects, subjects)

    def _sampled(self, member: Member) -> float:
        """The share of sampled wedges y - x - z whose ends are joined; the same sample every time."""
        partition = self._graph.partition(member.labels, member.direction)
        floor = self.biased(member) / max(self._graph.vertices, 1)
        neighbours = partition.neighbours
        if not len(neighbours) or partition.layer != "direct":
            return float(min(1.0, max(floor, _GUESS)))
        rng = np.random.default_rng(0)
        x = neighbours[rng.integers(0, len(neighbours), SAMPLES)]
        begin, length = partition.ranges_of(x)
        begin, length = begin[length > 1], length[length > 1]
        first = (rng.random(len(length)) * length).astype(np.int64)
        second = (first + 1 + (rng.random(len(length)) * (length - 1)).astype(np.int64)) % np.maximum(length, 1)
        y, z = neighbours[begin + first], neighbours[begin + second]
        low, length = partition.ranges_of(y)
        high = end = low + length
        while np.any(low < high):
            middle = (low + high) >> 1
            right = neighbours[np.minimum(middle, len(neighbours) - 1)] < z
            low, high = np.where((low < high) & right, middle + 1, low), np.where(right, high, np.minimum(middle, high))
        closed = (low < end) & (neighbours[np.minimum(low, len(neighbours) - 1)] == z)
        return float(min(1.0, max((closed.sum() + 0.5) / (len(closed) + 1), floor)))


def _neighbours(partition: Partition) -> NDArray[np.signedinteger]:
    """The neighbours of all vertices, of each in one run."""
    return partition.laid_out()[1] if partition.layer == "spans" else partition.neighbours
