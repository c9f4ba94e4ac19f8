"""Checks: conditions on bound slots, which a physical plan tests as soon as the last slot of each is bound.

A :class:`Relation` names a partition of the data graph; conditions on edges are stated in it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.graph.pcsr import Direction

Ints = NDArray[np.int64]


class Relation(NamedTuple):
    """A partition by name: a set of edge labels (None: any between resources but ``rdf:type``) and a direction."""

    labels: tuple[int, ...] | None
    direction: Direction
    pair: tuple[int, int] | None = None
    """From candidates of the first pattern vertex to those of the second, in a partition of the plan's own, which
    stands for all that joins the two (:mod:`graphdb.plan.candidates.space`)."""
    parallel: bool = False
    """Whether each of parallel edges has a code: only what counts reads such partitions."""


class Neighbours(NamedTuple):
    """The neighbour list of a bound vertex."""

    relation: Relation
    of: int


@dataclass(frozen=True, slots=True)
class Never:
    """No match can pass: two pattern edges must differ and can only bind the same data edge."""


@dataclass(frozen=True, slots=True)
class Above:
    """``vertex`` has a greater id than ``lower``: a restriction, which leaves one of several automorphic matches."""

    vertex: int
    lower: int


@dataclass(frozen=True, slots=True)
class Unequal:
    """Two vertices differ."""

    left: int
    right: int


@dataclass(frozen=True, slots=True)
class NotBothEqual:
    """Not (a = b and c = d): two edges known by their ends differ."""

    a: int
    b: int
    c: int
    d: int


@dataclass(frozen=True, slots=True)
class EdgesDiffer:
    """Two pattern edges bind different data edges, by their codes and ends."""

    first: int
    second: int


@dataclass(frozen=True, slots=True)
class IsCandidate:
    """The vertex is in its candidate set, found there by binary search, or as one bit where ``many`` will ask."""

    vertex: int
    candidates: Ints = field(compare=False)
    many: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class HasSignature:
    """The vertex's signature column of ``relation`` holds all ``required`` bits."""

    vertex: int
    relation: Relation
    required: int


@dataclass(frozen=True, slots=True)
class HasEdge:
    """``other`` is (or with ``negated``, is not) a neighbour of ``vertex``."""

    relation: Relation
    vertex: int
    other: int
    negated: bool


@dataclass(frozen=True, slots=True)
class EdgeCount:
    """INDUCED: just ``expected`` data edges join the two vertices.

    ``uncertain`` are pattern edges that count too, unless they bind ``rdf:type``.  A literal passes: no edge between
    resources reaches it.
    """

    vertex: int
    other: int
    expected: int
    uncertain: tuple[int, ...]


Check: TypeAlias = (
    Above | Never | Unequal | NotBothEqual | EdgesDiffer | IsCandidate | HasSignature | HasEdge | EdgeCount
)
