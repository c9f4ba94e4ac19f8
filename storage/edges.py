"""The edges that triples stand for: which rows of the table ``edge`` belong to a triple, found for many at once.

A triple of a label without such rows is one edge without properties.  Of the other labels (the *described* ones) an
:class:`EdgeTable` numbers every edge, in the order of (label, start, end, ordinal).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Columns = Callable[[str], dict[str, Ints]]
"""Runs SQL and returns its columns."""

_EDGES = """
SELECT t.label, t.subject, t.object, coalesce(e.ordinal, 0) AS ordinal FROM _graphdb.triple t
LEFT JOIN (FROM _graphdb.edge WHERE label IN ({0})) e USING (label, subject, object)
WHERE t.label IN ({0}) ORDER BY t.label ASC, t.subject ASC, t.object ASC, ordinal ASC
"""

_DENSE = 4
"""Resources for each triple up to which every vertex has an entry in the offsets of its triples."""


@dataclass(frozen=True, slots=True, eq=False)
class EdgeTable:
    """The edges of some labels, numbered.

    Attributes
    ----------
    labels
        The labels, sorted.
    kind, starts, ends
        int64 [edges]: which of ``labels`` it is, and the term ids of its ends.
    ordinals
        int64 [edges], or None where all are 0.
    """

    labels: tuple[int, ...]
    kind: Ints
    starts: Ints
    ends: Ints
    ordinals: Ints | None
    _first: Ints = field(repr=False)
    """int64 [triples + 1]: the first edge of each triple."""
    _offsets: Ints = field(repr=False)
    """int64 [labels, resources + 1] flat: where the triples of a vertex begin; empty where those are searched for."""
    _runs: Ints = field(repr=False)
    """int64 [labels + 1]: where the triples of a label begin."""
    _ends_of: Ints = field(repr=False)
    _starts_of: Ints = field(repr=False)

    @classmethod
    def read(cls, labels: tuple[int, ...], columns: Columns, resources: int) -> EdgeTable:
        """Read the edges of some labels."""
        listed = ", ".join(str(int(label)) for label in labels) or "NULL"
        rows = {name: np.ascontiguousarray(column, np.int64) for name, column in columns(_EDGES.format(listed)).items()}
        kind = np.searchsorted(np.array(labels, np.int64), rows["label"]).astype(np.int64)
        starts, ends, ordinals = rows["subject"], rows["object"], rows["ordinal"]
        new = np.ones(len(starts), bool)
        new[1:] = (starts[1:] != starts[:-1]) | (ends[1:] != ends[:-1]) | (kind[1:] != kind[:-1])
        first = np.append(np.flatnonzero(new), len(starts)).astype(np.int64)
        triples = first[:-1]
        runs = np.searchsorted(kind[triples], np.arange(len(labels) + 1)).astype(np.int64)
        starts_of = starts[triples]
        offsets = np.empty(0, np.int64)
        if len(labels) * (resources + 1) <= _DENSE * len(triples):
            every = np.arange(resources + 1)
            offsets = np.concatenate(
                [run + np.searchsorted(starts_of[run:end], every) for run, end in pairwise(runs)]
            ).astype(np.int64)
        given = ordinals if ordinals.any() else None
        return cls(labels, kind, starts, ends, given, first, offsets, runs, ends[triples], starts_of)

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def simple(self) -> bool:
        """Whether each triple is one edge."""
        return len(self._first) - 1 == len(self)

    def find(self, labels: Ints, starts: NDArray[Any], ends: NDArray[Any]) -> tuple[Ints, Ints]:
        """Find the edges that some triples of term ids stand for: the first one's number, and how many there are.

        A triple of another label is one edge, of the number -1.
        """
        from graphdb.storage.edge_kernels import find_edges

        known = np.array(self.labels, np.int64)
        which = np.searchsorted(known, labels)
        which[known[np.minimum(which, len(known) - 1)] != labels] = -1
        first, count = np.empty(len(which), np.int64), np.empty(len(which), np.int64)
        find_edges(
            which,
            np.ascontiguousarray(starts, np.int64),
            np.ascontiguousarray(ends, np.int64),
            self._runs,
            self._offsets,
            self._starts_of,
            self._ends_of,
            self._first,
            first,
            count,
        )
        return first, count
