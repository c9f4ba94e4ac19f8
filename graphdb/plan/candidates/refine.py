"""Arc consistency: candidates without a partner along some pattern edge are dropped, on the host or by an executor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphdb.plan.candidates.refinement import Refine, Refinement, Sets

Ints = NDArray[np.int64]

_SLICE = 1 << 20
"""Neighbours that are looked at between two questions whether to go on: some milliseconds."""


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
    from graphdb.plan.candidates import space_kernels as kernels

    found, count = Candidates.of(task.sets, task.vertices), len(task.sets)
    table = np.array([partition.row for partition in task.partitions], np.int64).reshape(-1, 6)
    fixed = (table.ctypes.data, task.first_arc, task.arcs, task.groups, task.near, task.order)
    state = np.array([(1 << count) - 1, 0, 0, 0, 0, 0], np.int64)
    cells = (found.flat, found.starts, found.sizes, found.fits)
    scratch, like = np.zeros(kernels.MOST_GROUPS, np.int64), np.empty(0, task.dtype)
    while not kernels.refine(*fixed, *cells, state, task.passes, _SLICE, scratch, like):
        task.check()
    return found
