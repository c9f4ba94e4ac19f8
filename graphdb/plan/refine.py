"""Candidate sets made smaller along the edges of a pattern: what is asked, and who answers.

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

from graphdb.storage.pcsr import Partition

Ints = NDArray[np.int64]
Sets = tuple[Ints, ...]
"""Per pattern vertex its candidates: sorted int64."""

FEW = 64
"""A pass that drops less than one of so many candidates is the last."""
_SLICE = 1 << 20
"""Neighbours that are looked at between two questions whether to go on: some milliseconds."""


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
        What a candidate needs in each: see :func:`graphdb.plan.space_kernels.refine`.
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


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Candidate sets one after the other, and the same the other way round.

    Attributes
    ----------
    flat, starts, sizes
        The candidates of ``u`` are ``flat[starts[u] : starts[u] + sizes[u]]``, sorted.
    fits
        Int64 [data vertices]: bit ``u`` of ``fits[x]`` says that ``x`` is a candidate of ``u``.
    """

    flat: Ints
    starts: Ints
    sizes: Ints
    fits: Ints

    @classmethod
    def of(cls, sets: Sets, vertices: int) -> Candidates:
        """The same sets, over so many data vertices."""
        sizes = np.array([len(found) for found in sets], np.int64)
        flat = np.concatenate([np.empty(0, np.int64), *sets])
        fits = np.zeros(vertices, np.int64)
        for u, found in enumerate(sets):
            fits[found] |= 1 << u
        return cls(flat, np.cumsum(sizes) - sizes, sizes, fits)


def refined(task: Refinement, elsewhere: Refine | None = None) -> Candidates:
    """Refine candidates ``elsewhere`` if they are taken there, or here; all sets are empty where one is."""
    sets = None if elsewhere is None else elsewhere(task)
    found = _refined_here(task) if sets is None else Candidates.of(sets, task.vertices)
    if not found.sizes.all():  # nothing can match
        found.sizes[:] = 0
        found.fits[:] = 0
    return found


def _refined_here(task: Refinement) -> Candidates:
    from graphdb.plan import space_kernels as kernels

    found, count = Candidates.of(task.sets, task.vertices), len(task.sets)
    table = np.array([partition.row for partition in task.partitions], np.int64).reshape(-1, 6)
    fixed = (table.ctypes.data, task.first_arc, task.arcs, task.groups, task.near, task.order)
    state = np.array([(1 << count) - 1, 0, 0, 0, 0, 0], np.int64)
    cells = (found.flat, found.starts, found.sizes, found.fits)
    while not kernels.refine(*fixed, *cells, state, task.passes, _SLICE, np.dtype(task.dtype).type(0)):
        task.check()
    return found
