"""Domains of patterns: which data vertices each place of a pattern takes over all its embeddings.

What finds them, on the host (:mod:`graphdb.mining.domains`) or a device (:mod:`graphdb.gpu.mining.domains`), is given
the patterns of a level, and stores the domains of those that are frequent for the next.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

PLACES, EDGES = 6, 5
"""Vertices and edges of a pattern, at most."""


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class LabelledLists:
    """A data graph as domains are found in it.

    Attributes
    ----------
    offsets, keys
        int64 [n + 1] and [entries]: for each vertex ``code * n + neighbour`` of its edges, sorted.
    directed
        Whether the code of an edge seen from its target is another than from its source, in the last bit.
    members, spans
        int32 and int64 [labels, 2]: the vertices with each label, sorted, and where they begin and end.
    """

    offsets: Ints
    keys: Ints
    directed: bool
    members: NDArray[np.int32]
    spans: Ints

    @property
    def vertices(self) -> int:
        """How many vertices there are."""
        return len(self.offsets) - 1

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        return self.offsets.nbytes + self.keys.nbytes + self.members.nbytes + self.spans.nbytes


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Patterns to look at.

    Attributes
    ----------
    sizes
        int64 [patterns, 2]: numbers of places and of edges.
    edges
        int64 [patterns, 5, 3]: (place, place, code seen from the first).
    orbits
        int64 [patterns, 6]: the first place that an automorphism takes each place to.
    sources
        int64 [patterns, 6]: the set of each place's candidates: below the number of labels a label's vertices, else a
        domain, as :meth:`DomainSearch.keep` numbered them.
    """

    sizes: Ints
    edges: Ints
    orbits: Ints
    sources: Ints

    def __len__(self) -> int:
        return len(self.sizes)


class DomainSearch(Protocol):
    """Finds domains."""

    name: str

    @property
    def summary(self) -> str:
        """What it took so far: a phrase for PROFILE; empty where there is nothing to say."""

    def find(
        self, candidates: Candidates, support: int, keep: bool, share: Callable[[float], float]
    ) -> tuple[Ints, Ints]:
        """Find the domains of patterns.

        Parameters
        ----------
        keep
            Whether :meth:`keep` is called next.
        share
            Returns the share of the run that is done where so much of this call is.

        Returns
        -------
        tuple
            int64 [patterns], the least domain's size, or 0 where that is below ``support``; and int64 [patterns, 6],
            the vertices of an embedding of those where it is not.

        Raises
        ------
        QueryTimeout, QueryInterrupted, MemoryLimitError
            As the limits of the run say.
        """

    def keep(self, frequent: Ints) -> Ints:
        """Drop all domains but those of some patterns of the last call; int64 [patterns, 6]: the numbers of these."""
