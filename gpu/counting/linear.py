"""Linear parts of counting plans on the host: numbers by rank, sent along the edges of a tree."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.gpu.counting.ranks import Ranks
from graphdb.gpu.counting.registers import TooWide
from graphdb.gpu.counting.weights import EXACT, candidates_of
from graphdb.plan.counting.programs import Weight

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def is_linear(weight: Weight) -> bool:
    """Whether a weight is a product of sums over lists, each of one relation that only tests."""
    plain = all(bundle.plain and not bundle.order and is_linear(child) for bundle, child in weight.messages)
    return plain and not weight.loops


def total(root: Weight, ranks: Ranks, filters: tuple[Ints, ...]) -> int:
    """What a weight adds up to over all vertices; raises :class:`TooWide` where that may not fit 64 bits.

    ``filters`` are the candidate sets that weights know by number.
    """
    if not root.messages:
        return len(candidates_of(root, filters)) if root.filters else 0
    return int(by_rank(root, ranks, filters).sum())


def by_rank(root: Weight, ranks: Ranks, filters: tuple[Ints, ...]) -> Ints:
    """A weight by rank, int64 [ranks]; raises :class:`TooWide` where what it adds up to may not fit 64 bits."""
    numbers, sizes = _values(root, ranks, filters)
    if float(sizes.sum()) > EXACT:
        raise TooWide("numbers that may not fit 64 bits")
    return numbers


def _values(weight: Weight, ranks: Ranks, filters: tuple[Ints, ...]) -> tuple[Ints, Floats]:
    """A weight by rank: int64 [ranks], right as long as it fits, and about how large it is."""
    numbers = np.ones(len(ranks.vertices), np.int64)
    if weight.filters:
        numbers[:] = 0
        numbers[ranks.of(candidates_of(weight, filters))] = 1
    sizes = numbers.astype(np.float64)
    for bundle, child in weight.messages:
        ranked = ranks.relations[bundle.members[0].relation]
        if child.is_one:
            sums, about = ranked.lengths, ranked.lengths.astype(np.float64)
        else:
            own, roughly = _values(child, ranks, filters)
            sums, about = (_over_lists(each[ranked.ids], ranked.begin) for each in (own, roughly))
        for less in range(child.fall):
            numbers = numbers * np.maximum(sums - less, 0)
            sizes = sizes * np.maximum(about - less, 0.0)
    return numbers, sizes


def _over_lists(values: NDArray[Any], begin: NDArray[np.uint32]) -> NDArray[Any]:
    """The sums of values over lists, which begin and end there."""
    ends = np.concatenate([np.zeros(1, values.dtype), np.cumsum(values)])
    sums: NDArray[Any] = ends[begin[1:]] - ends[begin[:-1]]
    return sums
