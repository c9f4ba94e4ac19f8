"""Property columns in memory: the values of one property by dense vertex id, so that reading some is a gather.

A column is an Arrow array of typed values with a null mask.  Where a property's vertices lie close together, as those
of one label do, the array has a place for each id between the first and the last of them; elsewhere it has the values
alone, and a binary search among the sorted ids finds the place.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.storage.arrays.arrow import values
from graphdb.storage.arrays.texts import taken

Ids = NDArray[np.int64]

_SPREAD = 4
"""Places for each value, at most, of an array that has one for each id."""


@dataclass(frozen=True, slots=True)
class ValueColumn:
    """The values of a property that has one value for each vertex at most."""

    first: int
    """The id of the first vertex that has a value."""
    values: arrow.Array
    """By id from ``first`` on, null where a vertex has none; or of ``subjects``, in their order."""
    subjects: Ids | None
    """The ids of the vertices with a value, sorted; None where each id between the first and the last has a place."""

    @classmethod
    def of(cls, subjects: Ids, found: arrow.ChunkedArray) -> ValueColumn:
        """Return the column of vertices (int64 term ids, sorted, each once) with values, in the same order."""
        array = found.combine_chunks()
        if not len(subjects):
            return cls(0, array, subjects)
        first, span = int(subjects[0]), int(subjects[-1] - subjects[0]) + 1
        if span == len(subjects):
            return cls(first, array, None)
        if span > _SPREAD * len(subjects):
            return cls(first, array, subjects)
        places = np.full(span, -1, np.int64)
        places[subjects - first] = np.arange(len(subjects))
        return cls(first, taken(array, places), None)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        own = 0 if self.subjects is None else self.subjects.nbytes
        return own + int(self.values.nbytes)

    def gather(self, ids: arrow.Array | arrow.ChunkedArray) -> arrow.Array:
        """Return the values of vertices (int64 term ids, or null), row for row; null where one has none."""
        wanted = values(ids).astype(np.int64, copy=False)  # anything where they are null
        if self.subjects is None:
            at = wanted - self.first
            there = at.view(np.uint64) < len(self.values)  # what is below the first one wraps around
        elif len(self.subjects):
            at = np.minimum(np.searchsorted(self.subjects, wanted), len(self.subjects) - 1)
            there = self.subjects[at] == wanted
        else:
            at, there = wanted, np.zeros(len(wanted), bool)
        if ids.null_count:
            there &= ids.is_valid()
        elif there.all() and _is_run(at):
            return self.values.slice(int(at[0]), len(at))
        return taken(self.values, at if there.all() else np.where(there, at, -1))


def _is_run(places: Ids) -> bool:
    """Whether places follow one another."""
    if not len(places) or places[-1] - places[0] != len(places) - 1:
        return False
    return bool((np.diff(places) == 1).all())
