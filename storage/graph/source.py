"""Where a data graph's triples come from: what it asks of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.graph.degree_sketch import DegreeSketch

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LabelStatistics:
    """What the catalog knows of an edge label, or of several together (then distinct counts are upper bounds)."""

    triples: int = 0
    resource_triples: int = 0
    """Those whose object is a resource."""
    subjects: int = 0
    """Distinct subjects."""
    objects: int = 0
    """Distinct objects."""
    max_out_degree: int = 0
    max_in_degree: int = 0


class TripleSource(Protocol):
    """Where the triples come from."""

    @property
    def resources(self) -> int:
        """How many resources there are."""

    @property
    def literals(self) -> int:
        """How many literals there are."""

    @property
    def type_label(self) -> int | None:
        """The edge label ``rdf:type``, if the data has it."""

    def edge_labels(self) -> tuple[int, ...]:
        """All edge labels, sorted."""

    def edges(self, label: int) -> tuple[Ints, Ints]:
        """Subjects and objects of one label: int64, sorted by (subject, object), unique; empty if unknown."""

    def subjects(self, label: int, object: int) -> Ints:
        """Subjects of the triples of one label with one object: int64, sorted, unique."""

    def occurring(self, resources: Ints) -> Ints:
        """Those of some resources that are a subject, or an object of anything but ``rdf:type``: int64, sorted."""

    def triples(self) -> Iterator[tuple[int | Ints, Ints, Ints]]:
        """Labels (one for all, or int64), subjects and objects of all triples: in pieces, in any order."""

    def any_edges(self) -> tuple[Ints, Ints, Ints]:
        """Labels, subjects and objects of all edges between resources other than ``rdf:type``, in any order."""

    def parallel_edges(self, labels: tuple[int, ...] | None) -> tuple[Ints, Ints, Ints]:
        """Labels, subjects and objects of some labels (None: as :meth:`any_edges`), each of parallel edges a row."""

    def statistics(self, label: int) -> LabelStatistics:
        """Statistics of one label; cheap, for planning.  Zeros if unknown."""

    def degrees(self, label: int, direction: int) -> DegreeSketch:
        """How the degrees of one label in a direction (``OUT``, ``IN``) are distributed."""

    def at_class(self, label: int, direction: int, class_id: int) -> tuple[int, int] | None:
        """(edges of a label that start, or end, at vertices with a vertex label; such vertices); None if unknown."""
