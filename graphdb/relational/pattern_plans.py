"""Plans by pattern: texts that ask for the same pattern over the same data share one plan.

The plan cache (:mod:`graphdb.relational.session.plan_cache`) finds a plan by its text.  Texts that a program writes
differ by blanks, by the names of columns, by constants that say the same: their pattern is bound anew, and here the
plan of an equal pattern is found again, with all that its runs have learned and what an executor has prepared for it.

Plans are referred to weakly: they live as long as the plan cache, or a run, has them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from graphdb.pattern.graph import PatternGraph
from graphdb.plan.physical import PhysicalPlan

COMPARED_BYTES = 1 << 12
"""Candidates up to this size are compared by value; longer ones are the same only as one array."""


@dataclass(frozen=True, slots=True, eq=False)
class _Same:
    """An array that equals itself alone; it stays in memory, so that no other one gets its identity."""

    array: NDArray[Any]

    def __hash__(self) -> int:
        return id(self.array)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.array is self.array


_Key: TypeAlias = tuple[PatternGraph, tuple[object, ...]]


class PatternPlans:
    """The plans in use over one state of the data, by pattern."""

    def __init__(self) -> None:
        self._plans: WeakValueDictionary[_Key, PhysicalPlan] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._plans)

    def clear(self) -> None:
        """Share no plan with what was asked before."""
        self._plans.clear()

    def get_or_make(self, pattern: PatternGraph, make: Callable[[], PhysicalPlan]) -> PhysicalPlan:
        """Return the plan of an equal pattern with equal candidates; where none is in use, the one that ``make`` gives.

        What ``make`` raises is raised.
        """
        key = pattern, tuple(_comparable(vertex.candidates) for vertex in pattern.vertices)
        found = self._plans.get(key)
        if found is None:
            found = self._plans[key] = make()
        return found


def _comparable(candidates: NDArray[np.int64] | None) -> object:
    """What candidates are compared by: nothing else is compared with arrays."""
    if candidates is None:
        return None
    return candidates.tobytes() if candidates.nbytes <= COMPARED_BYTES else _Same(candidates)
