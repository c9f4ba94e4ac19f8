"""Counting programs: weights of vertices, and loops whose instructions fill sparse vectors.

A *weight* is a number per data vertex: how often what hangs off a pattern vertex is matched there.  The weight of a
leaf is 0 or 1, and a leaf's parent multiplies its own by the sum over its neighbours.  A *level* is a loop that binds
one vertex; its instructions fill registers, the sparse vectors over which inner levels loop.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from graphdb.common.lazy import lazy
from graphdb.plan.counting.inclusion_exclusion import Member


class Bundle(NamedTuple):
    """All that joins two vertices, seen from the first.

    With ``order`` 1 only greater neighbours count, with -1 only smaller ones.  The first member's lists are
    scanned, the others are looked up.
    """

    members: tuple[Member, ...]
    order: int = 0

    def reversed(self) -> Bundle:
        """The same, seen from the other vertex."""
        return Bundle(tuple(member.reversed() for member in self.members), -self.order)

    @property
    def key(self) -> tuple[object, ...]:
        """Something to sort by."""
        return self.order, tuple(member.key for member in self.members)

    @property
    def plain(self) -> bool:
        """Whether it is one relation that only tests."""
        return len(self.members) == 1 and not self.members[0].weighted


@dataclass(frozen=True)
class Weight:
    """A number per data vertex: the conditions on one pattern vertex, and what hangs off it."""

    filters: tuple[int, ...] = ()
    loops: tuple[Member, ...] = ()
    messages: tuple[tuple[Bundle, Weight], ...] = ()
    """(what leads to the child, the child's weight)."""
    fall: int = 1
    """So many leaves that differ: of the sum over neighbours, n, its parent takes n (n - 1) … (n - fall + 1)."""

    @property
    def is_one(self) -> bool:
        """Whether it is 1 everywhere."""
        return not (self.filters or self.loops or self.messages)

    @lazy
    def _hash(self) -> int:
        return hash((self.filters, self.loops, self.messages, self.fall))

    def __hash__(self) -> int:  # a tree is hashed often, and each time all of it
        return self._hash


# --- instructions: what happens each time that a level's vertex is bound ------------------------------------------


@dataclass(frozen=True, slots=True)
class Load:
    """Register ``out`` becomes the neighbour list of the vertex bound at level ``at``, times a weight."""

    out: int
    at: int
    bundle: Bundle
    weight: int


@dataclass(frozen=True, slots=True)
class Intersect:
    """``out`` becomes ``source`` times the neighbour list of the vertex bound at level ``at``."""

    out: int
    source: int
    at: int
    bundle: Bundle
    local: int = -1


@dataclass(frozen=True, slots=True)
class Closed:
    """For every entry (b, y) of ``first``: the neighbours of y in ``back`` that ``second`` leads to from b."""

    first: Bundle
    second: Bundle
    back: Bundle


@dataclass(frozen=True, slots=True)
class Through:
    """``out[y]`` becomes ``mask[y] * weight[y] * (sum of source[x] over the neighbours x of y) ** power``."""

    out: int
    source: int
    mask: int
    forward: Bundle
    backward: Bundle
    weight: int
    power: int
    local_forward: int = -1
    local_backward: int = -1
    certain: bool = False
    """The local lists hold nothing but what the mask holds."""
    total: int = 0
    """Nothing reads the result but a :class:`Total` of this power, which it stands for; 0: it is read."""
    closed: Closed | None = None
    """What both ends have in common with the vertex bound at level ``anchor``, found once for all: the backward lists
    are shorter for it."""
    anchor: int = -1
    mirrored: bool = False
    """Receivers are to the root what the root is to them: those before it stand for both and count twice, the root
    itself counts once, and nothing is sent to those behind it."""


@dataclass(frozen=True, slots=True)
class Total:
    """The matches so far are multiplied by the sum of ``source``, ``power`` times."""

    source: int
    power: int


@dataclass(frozen=True, slots=True)
class Accumulate:
    """A :class:`Intersect` that only :class:`Total` reads."""

    source: int
    at: int
    bundle: Bundle
    power: int
    local: int = -1


@dataclass(frozen=True, slots=True)
class Local:
    """The bundle's lists of all vertices in ``source``, cut down to what is in ``target``, are stored as ``number``."""

    number: int
    source: int
    target: int
    bundle: Bundle
    parent: int = -1


Instruction: TypeAlias = Load | Intersect | Through | Total | Accumulate | Local


@dataclass(frozen=True, slots=True)
class Level:
    """One loop: over ``register`` (the outermost: over all vertices), and what is done for each value."""

    vertex: int = field(compare=False)
    register: int
    instructions: tuple[Instruction, ...]


@dataclass(frozen=True)
class Part:
    """How one connected component is counted: the sum of a weight, loops over a core, or cliques.

    ``weights[i]`` is what instructions call weight ``i``; ``root`` is that of the first level's vertex.
    """

    root: Weight
    root_bundles: tuple[Bundle, ...] = ()
    levels: tuple[Level, ...] = ()
    weights: tuple[Weight, ...] = ()
    registers: int = 0
    locals: int = 0
    multiple: int = 1
    """How many matches each one found stands for: interchangeable vertices are bound in ascending order only."""
    rooted: bool = False
    """Whether the sum is wanted for each vertex that the root (or the first level's vertex) is bound to."""
    clique: int = 0
    """So many vertices, any two joined by ``root_bundles[0]`` alone, are counted as cliques; 0: they are not."""
    cost: float = field(default=0.0, compare=False)
    origin: int = field(default=0, compare=False)
    """For EXPLAIN: the vertex of the pattern where a tree's counts are added up."""

    @lazy
    def _hash(self) -> int:
        return hash((self.root, self.root_bundles, self.levels, self.weights, self.multiple, self.rooted, self.clique))

    def __hash__(self) -> int:  # as a weight's
        return self._hash
