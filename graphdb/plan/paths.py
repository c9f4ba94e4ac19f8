"""A step of a plan that finds shortest paths along one repeated edge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.graph.pcsr import Direction, Partition
from graphdb.storage.persisted.packing import persistable

Ints = NDArray[np.int64]
T = TypeVar("T")

Mode = Literal["WALK", "TRAIL", "SIMPLE", "ACYCLIC", "SIMPLE WALK"]
"""GQL's path modes; a simple walk is simple by its vertices alone: it may go back over the edge that it came by."""

MAY_GO_BACK: tuple[Mode, ...] = ("WALK", "SIMPLE WALK")
"""Modes of which u-v-u over one edge is a path."""

EVERY = 1 << 62
"""More paths than there can be: all of them are wanted."""


@dataclass(frozen=True, slots=True, eq=False)
class Along:
    """What a path goes along where that is not every edge of some labels, as the steps before it found it.

    A pattern of several parts is an automaton, and a path of it a walk in the product of data graph and automaton:
    state ``s`` at vertex ``v`` is number ``s * vertices + v``.  Its first state is 0; a state stands for the edge that
    led to it, and the last one, past all others, is led to by edges of code -1, which are none of the path's, wherever
    it may end.

    Attributes
    ----------
    away, back
        Where a step leads to, and where it comes from.
    pieces
        Of each state but the last, the part of the pattern whose edge led to it (-1: none); empty where the graph's
        vertices are all there is.
    cuts
        How many places there are between two parts.
    """

    away: Partition
    back: Partition
    pieces: tuple[int, ...] = ()
    cuts: int = 0


@persistable
@dataclass(frozen=True, slots=True, eq=False)
class Ends:
    """The edges of a path, int64 [edges] each: ``left`` and ``right`` their ends as the path goes along them.

    ``codes`` as a path has them.
    """

    left: Ints
    right: Ints
    codes: Ints
    _derived: dict[Callable[[Ends], Any], Any] = field(default_factory=dict)

    @classmethod
    def of(cls, columns: Sequence[NDArray[Any]]) -> Ends:
        """Return them of three columns of integers."""
        left, right, codes = (column.astype(np.int64) for column in columns)
        return cls(left, right, codes)

    @property
    def nbytes(self) -> int:
        """Bytes of the edges, and as much again for each way that a search sorts them."""
        return 3 * (self.left.nbytes + self.right.nbytes + self.codes.nbytes)

    def derive(self, make: Callable[[Ends], T]) -> T:
        """Return what a search makes of the edges, made once."""
        if make not in self._derived:
            self._derived[make] = make(self)
        return self._derived[make]  # type: ignore[no-any-return]


@persistable
@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Weighted:
    """The edges of a path with what each costs: float64 [edges], none of them negative."""

    ends: Ends
    costs: NDArray[np.float64]
    _derived: dict[Callable[[Weighted], Any], Any] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Bytes of the edges and costs, and as much again for each way that a search sorts them."""
        return self.ends.nbytes + 3 * self.costs.nbytes

    def derive(self, make: Callable[[Weighted], T]) -> T:
        """Return what a search makes of the edges and their costs, made once."""
        if make not in self._derived:
            self._derived[make] = make(self)
        return self._derived[make]  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class Cost:
    """What an edge of a path costs: in words, for EXPLAIN; ``integral``: an integer, so that the whole is one."""

    words: str
    integral: bool


@dataclass(frozen=True, slots=True)
class PathEdges:
    """Which edges a path goes along where that is not every edge of some labels.

    Attributes
    ----------
    words
        The pattern, for EXPLAIN.
    several
        Whether it has several parts: an automaton, of which the path is a walk.
    cuts
        How many places there are between two parts.
    """

    words: str
    several: bool = False
    cuts: int = 0


@dataclass(frozen=True, slots=True)
class PathStep:
    """The shortest paths of ``low`` to ``high`` edges between two vertices (``high`` None: of any length).

    Attributes
    ----------
    labels, direction
        The partition that the path goes along, seen from its source.
    count, groups
        For each two ends so many paths, or with ``groups`` all paths of so many lengths.
    ties
        Whether all paths that are as long as the last of them come with them.
    materialized
        Whether their vertices and edges are wanted; without, lengths and numbers are.
    bound
        Whether both ends are known together, pair by pair.
    only
        The one end that is wanted, in no matter how many ways it is reached; "" where both are.
    apart
        Whether the end that is wanted must be another vertex than the other one, of which there is one.
    cost, weighted
        By what the shortest is shortest (None: the number of edges), and its edges, once the steps before it have run.
    edges, along
        What it goes along instead of that partition: as the pattern says, and, once the steps before it have run, as
        they found it.  Of several parts the lengths are in the pattern.
    """

    source: str
    target: str
    labels: tuple[int, ...] | None
    direction: Direction
    low: int
    high: int | None
    mode: Mode
    count: int = 1
    groups: bool = False
    materialized: bool = False
    bound: bool = False
    only: Literal["", "source", "target"] = ""
    edges: PathEdges | None = None
    along: Along | None = None
    ties: bool = False
    apart: bool = False
    cost: Cost | None = None
    weighted: Weighted | None = None

    @property
    def walks(self) -> bool:
        """Whether there is a path wherever there is a walk, between two vertices: the shortest one is a path."""
        return self.edges is None or not self.edges.several or self.mode == "WALK"

    @property
    def numbered(self) -> bool:
        """Whether one row may stand for several paths."""
        return not self.materialized and (self.groups or 1 < self.count < EVERY)

    @property
    def single(self) -> bool:
        """Whether the shortest walks will do, one length for each two ends."""
        return self.count == 1 and self.low <= 1 and self.walks

    def describe(self, label: Callable[[int], str]) -> str:
        """The step in words, for EXPLAIN."""
        left, right = {"out": ("-", "->"), "in": ("<-", "-"), "both": ("-", "-")}[self.direction]
        labels = "" if self.labels is None else ":" + "|".join(map(label, self.labels))
        high = "" if self.high is None else self.high
        edge = f"({self.source}){left}[{labels}]{right}{{{self.low},{high}}}({self.target})"
        if self.edges is not None:
            edge = f"({self.source}) {self.edges.words} ({self.target})"
        if self.cost is not None:
            every = "all cheapest" if self.groups else "cheapest"
            start = (
                "each end, for the ends that go with it"
                if self.bound
                else "each start, or from each end if those are fewer"
            )
            return f"{every} {self.mode} {edge} by {self.cost.words}: Dijkstra's algorithm from {start}"
        if self.count == EVERY:
            wanted = "materialized" if self.materialized else "not materialized"
            return f"every {self.mode} {edge}, {wanted}: longer and longer ones that can still reach an end"
        many = "" if self.count == 1 else f" {self.count} lengths of" if self.groups else f" {self.count}"
        if self.ties and not self.groups:
            many += " (and those as short)"
        wanted = "materialized" if self.materialized else "counted, not enumerated" if self.groups else "by length"
        if self.only:
            near = "end" if self.only == "source" else "start"
            ways = f"the {near} to others" if self.apart else f"all {near}s"
            return f"reachability {self.mode} {edge}: one search from {ways}"
        if self.single and not self.bound:
            how = "frontier: breadth first from each start to all ends"
        elif self.single and not self.groups:
            how = "bidirectional: breadth first from both ends"
        elif self.single:
            how = "frontier: breadth first back from each end"
        else:
            how = "deepening: breadth first back from each end, then longer and longer paths that still reach it"
        return f"{'all ' if self.groups else ''}shortest{many} {self.mode} {edge}, {wanted}; {how}"
