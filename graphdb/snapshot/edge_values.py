"""The values of properties of edges: which edges they are of (label, ends, ordinal), and where in a table those are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.values.types import Type
from graphdb.storage.arrays.sorted_sets import places
from graphdb.storage.graph.edges import EdgeTable
from graphdb.storage.triples import TripleStore

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class EdgeValues:
    """The values of a property of edges: int64 [values] each."""

    labels: Ints
    starts: Ints
    ends: Ints
    """The vertices at their ends."""
    ordinals: Ints
    values: Ints
    """Ids of literals."""

    def several(self, vertices: int) -> bool:
        """Whether an edge has several values: there are so many ``vertices``."""
        labels, which = numbered(self.labels)
        width = int(self.ordinals.max(initial=0)) + 1
        if len(labels) * width * vertices**2 < 1 << 62:
            edges = self._numbers(which, vertices)
            if width > 1:
                edges = edges * width + self.ordinals
            edges.sort()
            return bool((edges[1:] == edges[:-1]).any())
        columns = (self.ordinals, self.ends, self.starts, which)
        order = np.lexsort(columns)
        return bool(np.logical_and.reduce([column[order[1:]] == column[order[:-1]] for column in columns]).any())

    def of(self, labels: Ints) -> EdgeValues:
        """Return those of edges of some labels."""
        mine = np.isin(self.labels, labels)
        if mine.all():
            return self
        return EdgeValues(*(getattr(self, each.name)[mine] for each in fields(self)))

    def places_of(self, table: EdgeTable, vertices: int, among: Ints | None = None) -> Ints | None:
        """Return of each edge of a table which row is of it, or -1; None where parallel edges have rows.

        ``among``: of some of the edges, by their numbers.  No edge has several values, and none is of a label that the
        table has not.
        """
        if table.ordinals is not None or self.ordinals.any() or len(table.labels) * vertices**2 >= 1 << 62:
            return None
        which = np.searchsorted(table.labels, self.labels)
        ours = self._numbers(which, vertices)
        order = np.argsort(ours)
        ours = ours[order]
        kind, starts, ends = (each if among is None else each[among] for each in (table.kind, table.starts, table.ends))
        theirs = (kind * vertices + starts.astype(np.int64)) * vertices + ends
        if np.array_equal(ours, theirs):
            return order
        at, there = places(ours, theirs)
        found = np.full(len(theirs), -1, np.int64)
        found[there] = order[at[there]]
        return found

    def _numbers(self, which: Ints, vertices: int) -> Ints:
        """Return a number for each edge, ordinals aside, of its label's number and its ends: sorted as these are."""
        numbers = which * vertices
        numbers += self.starts  # in place: fresh memory takes longer than to add
        numbers *= vertices
        numbers += self.ends
        return numbers


@dataclass(frozen=True, slots=True, eq=False)
class DescribedEdges:
    """Edges of some labels with all of their properties, as columns in memory of one state of the data."""

    properties: Mapping[str, tuple[Type, arrow.Array]]
    """By the IRI of a key: the type of its values, and these in the order of the table, null where an edge has none."""
    _table: EdgeTable
    _store: TripleStore
    every: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """Which edges of the table those are that they were asked for."""

    def numbers(self, edges: Sequence[Ints], provenance: arrow.Provenance | None = None) -> Ints | None:
        """Return which edges of the table some are: label, start, end (terms) and ordinal; None where one is absent.

        They are not searched for where their ``provenance`` is this table.
        """
        if provenance is not None and provenance.table is self._table and int(provenance.rows.min(initial=0)) >= 0:
            return provenance.rows
        labels, starts, ends, ordinals = edges
        dtype = self._table.starts.dtype
        starts, ends = (self._store.to_vertices(each).astype(dtype, copy=False) for each in (starts, ends))
        first, count = self._table.find(np.ascontiguousarray(labels), starts, ends)
        found = first + ordinals
        if ((first < 0) | (ordinals >= count)).any():
            return None
        if self._table.ordinals is not None and not np.array_equal(self._table.ordinals[found], ordinals):
            return None  # between parallel edges one was removed
        return found


def numbered(labels: Ints) -> tuple[Ints, Ints]:
    """Return the labels of rows, each once and sorted, and of each row which of them it has: rows come in runs."""
    begins = np.flatnonzero(np.append(True, labels[1:] != labels[:-1])) if len(labels) else np.empty(0, np.int64)
    distinct, which = np.unique(labels[begins], return_inverse=True)
    return distinct, np.repeat(which, np.diff(np.append(begins, len(labels))))
