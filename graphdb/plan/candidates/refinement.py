"""The task of refining candidate sets along the edges of a pattern (arc consistency), for planner or executor.

A :class:`Refinement` says which neighbours a candidate needs to stay one.  Executors may refine where their graph is
(:data:`Refine`): a device does when that is quicker, and leaves to the planner what is not.  Whoever does, the passes
go over the pattern vertices in the same order and end at the same time, so the same candidates are left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.graph.pcsr import Partition

Ints = NDArray[np.int64]
Sets = tuple[Ints, ...]
"""Per pattern vertex its candidates: sorted int64."""

ARC = ("vertex", "partition", "need", "first", "last", "least")
"""A row of ``arcs``: the pattern vertex, the partition, the pattern vertices that its neighbours must fit (bits), the
groups among which more is asked, and how many neighbours there are at least."""
GROUP = ("fits", "least")
"""A row of ``groups``: so many different neighbours must each fit one of these pattern vertices (bits)."""

LAST_PASS = 64
"""A pass that drops less than one of so many candidates is the last."""


@dataclass(frozen=True, slots=True, eq=False)
class Refinement:
    """What is to be refined.

    Attributes
    ----------
    sets
        The candidates to begin with.
    partitions
        The relations that the pattern's edges go along.
    arcs, first_arc, groups
        What a candidate needs in each, int64 [arcs, 6] and [groups, 2]: see :data:`ARC` and :data:`GROUP`.
    near
        Int64 [pattern vertices]: those joined with it, as bits.
    vertices, dtype
        How many the data graph has, and the type of their ids.
    passes
        At most so many, forwards and backwards in turn.
    work
        The neighbours that one pass is expected to look at.
    check
        Asked every few milliseconds; what it raises ends it.
    """

    sets: Sets
    partitions: tuple[Partition, ...]
    arcs: Ints
    first_arc: Ints
    groups: Ints
    near: Ints
    vertices: int
    dtype: type[np.signedinteger[Any]]
    passes: int
    work: float
    check: Callable[[], None]
    order: Ints = field(init=False)
    """The pattern vertices in the order of the first pass: those with few candidates first."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", np.argsort([len(found) for found in self.sets], kind="stable"))


Refine = Callable[[Refinement], Sets | None]
"""The candidates that are left; None where the planner is to refine them itself."""
