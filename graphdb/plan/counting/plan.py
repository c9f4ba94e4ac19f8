"""A counting plan: the number of matches as a sum of products, term by term, and what it reads.

How the terms come about is the matter of :mod:`graphdb.plan.counting.inclusion_exclusion` and
:mod:`graphdb.plan.counting.components`; whether they are counted instead of a search, of
:mod:`graphdb.plan.passes.counting`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.plan.checks import Relation
from graphdb.plan.counting.inclusion_exclusion import Quotient
from graphdb.plan.counting.programs import Bundle, Part, Weight
from graphdb.storage.graph.derived.orientation import Oriented
from graphdb.storage.graph.pcsr import Partition

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Term:
    """A quotient, how often its homomorphisms count, and how they are counted, component by component."""

    coefficient: int
    quotient: Quotient
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class CountingPlan:
    """The number of matches as a sum.

    Attributes
    ----------
    filters
        The candidate sets that weights know by number.
    partitions, oriented
        All that weights and loops read, and that cliques are counted over.
    vertices, dtype
        How many vertices the data graph has, and their type.
    cost, instead_of
        Elements that counting, and that the search, is expected to scan.
    """

    terms: tuple[Term, ...]
    filters: tuple[Ints, ...]
    partitions: dict[Relation, Partition] = field(repr=False)
    oriented: dict[Relation, Oriented] = field(repr=False)
    vertices: int
    dtype: type[np.signedinteger[Any]]
    cost: float
    instead_of: float
    root: int = -1
    """The pattern vertex by which matches are counted; -1: all together."""

    @property
    def worker_bytes(self) -> int:
        """Bytes of the vectors that a worker holds at most."""
        width = np.dtype(self.dtype).itemsize
        parts = [part for term in self.terms for part in term.parts]
        return self.vertices * max((part.registers * (8 + width) + part.locals * 16 for part in parts), default=0)

    @property
    def shared_bytes(self) -> int:
        """Bytes of the vectors that all workers share: one for each weight, and for each sum sent along an edge."""
        weights: set[Weight] = set()
        messages: set[tuple[Bundle, Weight]] = set()
        pending = [weight for term in self.terms for part in term.parts for weight in (part.root, *part.weights)]
        while pending:
            weight = pending.pop()
            if weight not in weights:
                weights.add(weight)
                messages.update(weight.messages)
                pending += [child for _, child in weight.messages]
        vectors = len(weights) + len(messages) + (2 if self.root >= 0 else 0)
        return self.vertices * 8 * vectors


def parts_of(terms: Iterable[Term]) -> list[Part]:
    """Return the parts of all terms, each once."""
    return list(dict.fromkeys(part for term in terms for part in term.parts))


def added_up(terms: Iterable[Term], totals: Mapping[Part, int]) -> int:
    """Return the number of matches, given what each part adds up to."""
    return sum(term.coefficient * prod(totals[part] for part in term.parts) for term in terms)
