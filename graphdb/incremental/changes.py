"""What a batch is to a matcher: changed edges and vertices; and what it changes of a pattern's matches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ints = NDArray[np.int64]


class Updates(NamedTuple):
    """Changed edges, in order: what counts of one that is changed several times is how it is at the end.

    To insert an edge that is there, or to delete one that is not, changes nothing.
    """

    labels: ArrayLike
    """Integers [updates]: edge labels."""
    sources: ArrayLike
    targets: ArrayLike
    """Integers [updates]: vertices of the data graph."""
    inserted: ArrayLike
    """Bools [updates]: False for a deletion."""


class CandidateChange(NamedTuple):
    """Vertices that become candidates of a pattern vertex, or are so no longer: their labels or properties changed.

    All pattern vertices whose candidates are known by the same condition change with it.  To gain what is a
    candidate, or to lose what is none, changes nothing.
    """

    pattern: int
    vertex: int
    """The numbers of the pattern and of its vertex."""
    gained: ArrayLike
    lost: ArrayLike
    """Integers: vertices of the data graph."""


class VertexChanges(NamedTuple):
    """What a batch changes of vertices, beside its changed edges.

    The matcher has none of the edges that concerned no pattern: where vertices become candidates, the batch is to
    insert all edges at them that the graph has after it.
    """

    candidates: Sequence[CandidateChange] = ()
    resources: int | None = None
    literals: int | None = None
    """How many the data graph has from this batch on, the ids of literals following those of resources; None: as
    before.  All ids of the batch and of its changes are of that numbering."""


NO_VERTICES = VertexChanges()


class Changes(NamedTuple):
    """What a batch changed of a pattern's matches: int64 [matches, outputs] each, in no particular order.

    An edge is given by its code, twice its label and 1 where it leads from the pattern edge's target to its source.
    Of a matcher that counts, [rows, outputs + 1]: last, of how many matches a row is; several rows may be equal else.
    """

    added: Ints
    removed: Ints
