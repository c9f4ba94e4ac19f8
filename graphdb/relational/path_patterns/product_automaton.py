"""The product of a data graph with the automaton of a path pattern, while it is put together (Glushkov 1961).

A state stands for an edge that the pattern names, repetitions written out.  What a piece of the pattern adds is a
:class:`Fragment`: the edges that lead into it, and the states in which it may end.  State ``s`` at vertex ``v`` is the
node ``s * vertices + v``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphdb.common.errors import MemoryLimitError
from graphdb.storage.arrays.sorted_sets import unique

Ids = NDArray[np.int64]
_HINT = "raise memory_limit, or ask for shorter paths"
Mask: TypeAlias = NDArray[np.bool_] | None
"""Which vertices may be at some place; None for any."""


@dataclass(frozen=True, slots=True)
class Edges:
    """Data edges seen from the left: the vertices at their ends (or the nodes of a product), and their codes."""

    left: Ids
    right: Ids
    codes: Ids

    def __len__(self) -> int:
        return len(self.codes)

    def from_(self, mask: Mask) -> Edges:
        """Those that begin at some vertices."""
        if mask is None:
            return self
        chosen = mask[self.left]
        return Edges(self.left[chosen], self.right[chosen], self.codes[chosen])


@dataclass(frozen=True, slots=True)
class Fragment:
    """A piece of the pattern in the product.

    Attributes
    ----------
    firsts
        The edges that lead into it, from vertices to nodes.
    lasts
        The states in which it may end, each with where.
    skips, skip
        Whether it may be nothing, and where.
    """

    firsts: Sequence[Edges]
    lasts: Sequence[tuple[int, Mask]]
    skips: bool = False
    skip: Mask = None

    def between(self, first: Mask, last: Mask) -> Fragment:
        """Return it where it begins at some vertices and ends at others."""
        return Fragment(
            [edges.from_(first) for edges in self.firsts],
            [(state, both(mask, last)) for state, mask in self.lasts],
            self.skips,
            both(self.skip, both(first, last)),
        )


@dataclass(frozen=True, slots=True)
class Size:
    """How large a piece of the pattern is in the product, at most.

    Attributes
    ----------
    states, edges
        What it adds.
    firsts
        The edges that lead into it.
    lasts
        The states in which it may end.
    skips
        Whether it may be nothing.
    """

    states: int
    edges: int
    firsts: int
    lasts: int = 1
    skips: bool = False

    def then(self, other: Size) -> Size:
        """Return the size of two pieces, one after the other."""
        return Size(
            self.states + other.states,
            self.edges + other.edges + self.lasts * other.firsts,
            self.firsts + (other.firsts if self.skips else 0),
            other.lasts + (self.lasts if other.skips else 0),
            self.skips and other.skips,
        )

    def repeated(self, low: int, high: int | None) -> Size:
        """Return the size of a piece that comes several times."""
        if low == high == 1:
            return self
        copies = max(low, 1) if high is None else high
        between = (copies if high is None else copies - 1) * self.lasts * self.firsts
        lasts = (copies - max(low, 1) + 1) * self.lasts
        return Size(copies * self.states, copies * self.edges + between, self.firsts, lasts, low == 0)

    def whole(self, vertices: int) -> Size:
        """Return the size of a whole pattern, with where it begins and the last state."""
        ends = (self.lasts + self.skips) * vertices
        return Size(self.states + 2, self.edges + self.firsts + ends, 0)


BEGIN = Fragment((), ((0, None),))
"""Where a path begins."""


@dataclass(slots=True)
class Product:
    """The edges of a product; ``most``: so many of them, and of its nodes."""

    vertices: int
    most: int
    pieces: list[int] = field(default_factory=lambda: [-1])
    """Of each state, the part whose edge led to it."""
    _parts: list[Edges] = field(default_factory=list)
    _reached: dict[int, Ids] = field(default_factory=dict)
    """Vertices at which a state may be."""
    _left: int = -1

    def __post_init__(self) -> None:
        self._left = self.most

    @property
    def edges(self) -> Edges:
        """All edges, between nodes."""
        sides = (part.left for part in self._parts), (part.right for part in self._parts)
        return Edges(*(np.concatenate(list(side)) for side in (*sides, (part.codes for part in self._parts))))

    def state(self, piece: int, vertices: Ids) -> int:
        """Add a state of a part, which may be at some vertices."""
        self.pieces.append(piece)
        self._reached[len(self.pieces) - 1] = unique(vertices)
        if len(self.pieces) * self.vertices > self.most:
            raise MemoryLimitError("the states of a path of several parts do not fit in memory", hint=_HINT)
        return len(self.pieces) - 1

    def add(self, edges: Edges) -> None:
        """Add edges between nodes."""
        self._left -= len(edges)
        if self._left < 0:
            raise MemoryLimitError("the edges of a path of several parts do not fit in memory", hint=_HINT)
        self._parts.append(edges)

    def edge(self, piece: int, edges: Edges) -> Fragment:
        """Add an edge of the pattern, as the data edges that it takes."""
        state = self.state(piece, edges.right)
        return Fragment([replace(edges, right=edges.right + state * self.vertices)], [(state, None)])

    def chain(self, piece: int, vertices: Sequence[Ids], codes: Sequence[Ids]) -> Fragment:
        """Add a chain of edges of which only some go together: the vertices and edges of each match of all of it.

        What a match has in common with others up to some edge is one node: there are as many states of an edge as
        there are ways to come to one vertex.
        """
        before, firsts = vertices[0], []
        nodes = before
        for at, code in enumerate(codes):
            steps = np.stack([before, code, vertices[at + 1]])
            (prior, along, here), before = np.unique(steps, axis=1, return_inverse=True)
            before = before.reshape(-1)
            rank = np.zeros(len(here), np.int64)
            if at < len(codes) - 1:
                order = np.argsort(here, kind="stable")
                first = np.searchsorted(here[order], here[order])
                rank[order] = np.arange(len(here)) - first
            states = [self.state(piece, here[rank == i]) for i in range(int(rank.max(initial=0)) + 1)]
            beyond = np.array(states)[rank] * self.vertices + here
            if at:
                self.add(Edges(nodes[prior], beyond, along))
            else:
                firsts = [Edges(prior, beyond, along)]
            nodes = beyond
        return Fragment(firsts, [(states[0], None)])

    def follow(self, lasts: Sequence[tuple[int, Mask]], firsts: Sequence[Edges]) -> None:
        """Lead from some states to what comes next."""
        for state, mask in lasts:
            for edges in firsts:
                chosen = edges.from_(mask)
                self.add(replace(chosen, left=chosen.left + state * self.vertices))

    def joined(self, one: Fragment, other: Fragment) -> Fragment:
        """Put two fragments together, one after the other."""
        self.follow(one.lasts, other.firsts)
        firsts, lasts = list(one.firsts), list(other.lasts)
        if one.skips:
            firsts += [edges.from_(one.skip) for edges in other.firsts]
        if other.skips:
            lasts += [(state, both(mask, other.skip)) for state, mask in one.lasts]
        return Fragment(firsts, lasts, one.skips and other.skips, both(one.skip, other.skip))

    def finish(self, whole: Fragment) -> None:
        """Lead to the last state, past all others, from where a path may end."""
        end = len(self.pieces)
        for state, mask in whole.lasts:
            there = self._reached.get(state, np.arange(self.vertices))
            ends = Edges(there, there + end * self.vertices, np.full(len(there), -1))
            self.follow([(state, mask)], [ends])


def both(one: Mask, other: Mask) -> Mask:
    """Return where both are."""
    return other if one is None else one if other is None else one & other
