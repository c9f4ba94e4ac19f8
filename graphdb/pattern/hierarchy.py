"""The class hierarchy: the transitive closure of rdfs:subClassOf.

RDF Schema (W3C, 2014, section 3.4) says that what is of a class is of every class above it.  A database that is opened
with ``subclasses=True`` reads a vertex label so: as the label or any label below it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.catalog import VertexLabel


class Hierarchy:
    """The triples of rdfs:subClassOf, as two columns of term ids (int64, of equal length).

    ``classes`` are the classes with an IRI that stand in one of them.
    """

    def __init__(self, below: NDArray[np.int64], above: NDArray[np.int64], classes: Mapping[int, VertexLabel]) -> None:
        order = np.argsort(above, kind="stable")
        self._below, self._above = below[order], above[order]
        self.classes = classes
        self._under: dict[int, tuple[int, ...]] = {}

    def under(self, label: int) -> tuple[int, ...]:
        """Return a class and all below it, the class first; what is above itself comes once.

        >>> Hierarchy(np.array([2, 3, 1]), np.array([1, 2, 3]), {}).under(2)
        (2, 1, 3)
        """
        found = self._under.get(label)
        if found is None:
            known = frontier = np.array([label], np.int64)
            while len(frontier):  # once for each level
                start, end = (np.searchsorted(self._above, frontier, side) for side in ("left", "right"))
                length = end - start
                at = np.repeat(start - (np.cumsum(length) - length), length) + np.arange(length.sum())
                frontier = np.array(sorted({*self._below[at].tolist()} - {*known.tolist()}), np.int64)
                known = np.concatenate([known, frontier])
            found = self._under[label] = (label, *sorted(known[1:].tolist()))
        return found
