"""The edges that triples stand for: which rows of the table ``edge`` belong to a triple, found for many at once.

A triple of a label without such rows is one edge without properties.  Of the other labels (the *described* ones) an
:class:`EdgeTable` numbers every edge, in the order of (label, start, end, ordinal).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.graph.changes import Sizes, moved_ids
from graphdb.storage.persisted.packing import persistable

Ints = NDArray[np.int64]
Columns = Callable[[str], dict[str, Ints]]
"""Runs SQL and returns its columns."""
Ends = Callable[[dict[str, Ints]], tuple[Ints, Ints]]
"""Makes vertices of the terms in the columns ``subject`` and ``object``, once they are checked."""

_EDGES = """
SELECT t.label, t.subject, t.object, coalesce(e.ordinal, 0) AS ordinal FROM _graphdb.triple t
LEFT JOIN (FROM _graphdb.edge WHERE label IN ({0})) e USING (label, subject, object)
WHERE t.label IN ({0}) ORDER BY t.label ASC, t.subject ASC, t.object ASC, ordinal ASC
"""

_DENSE = 4
"""Vertices for each triple up to which every vertex has an entry in the offsets of its triples."""


@persistable
@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class EdgeTable:
    """The edges of some labels, numbered.

    Attributes
    ----------
    labels
        int64: the labels, sorted.
    kind
        int64 [edges]: which of ``labels`` it is.
    starts, ends
        The vertices at its ends, in the graph's id type [edges].
    ordinals
        Integers [edges], or None where all are 0.
    """

    labels: Ints
    kind: Ints
    starts: NDArray[Any]
    ends: NDArray[Any]
    ordinals: NDArray[np.integer[Any]] | None
    _first: Ints = field(repr=False)
    """int64 [triples + 1]: the first edge of each triple."""
    _runs: Ints = field(repr=False)
    """int64 [labels + 1]: where the triples of a label begin."""
    _offsets: Ints = field(repr=False)
    """int64 [labels, vertices + 1] flat: where the triples of a vertex begin; empty where those are searched for."""
    _starts_of: NDArray[Any] = field(repr=False)
    _ends_of: NDArray[Any] = field(repr=False)
    """The ends of each triple [triples]."""

    @classmethod
    def read(
        cls,
        labels: tuple[int, ...],
        columns: Columns,
        ends_of: Ends,
        vertices: int,
        dtype: type[np.signedinteger[Any]],
    ) -> EdgeTable:
        """Read the edges of some labels; there are so many ``vertices``, which ``ends_of`` numbers."""
        rows = columns(_EDGES.format(", ".join(str(int(label)) for label in labels) or "NULL"))
        known = np.array(labels, np.int64)
        kind = np.searchsorted(known, rows["label"])
        starts, ends = ends_of(rows)
        ordinals = None
        if rows["ordinal"].any():  # in as few bytes as they need
            ordinals = rows["ordinal"].astype(np.min_scalar_type(rows["ordinal"].max()))
        return cls._of(known, kind, starts.astype(dtype), ends.astype(dtype), ordinals, vertices)

    @classmethod
    def of_triples(
        cls,
        labels: tuple[int, ...],
        triples: Callable[[int], tuple[Ints, Ints]],
        vertices: int,
        dtype: type[np.signedinteger[Any]],
    ) -> EdgeTable:
        """Return the edges of labels none of which has parallel ones; ``triples`` returns the ends of one, sorted."""
        each = [triples(label) for label in labels]
        kind = np.repeat(np.arange(len(labels)), [len(starts) for starts, _ in each])
        starts, ends = (
            np.concatenate([np.empty(0, dtype), *(one[i].astype(dtype, copy=False) for one in each)]) for i in (0, 1)
        )
        return cls._of(np.array(labels, np.int64), kind, starts, ends, None, vertices)

    @classmethod
    def _of(
        cls,
        labels: Ints,
        kind: Ints,
        starts: NDArray[Any],
        ends: NDArray[Any],
        ordinals: NDArray[np.integer[Any]] | None,
        vertices: int,
    ) -> EdgeTable:
        """Number edges, sorted by (label, start, end, ordinal)."""
        first = np.arange(len(starts) + 1)
        if ordinals is not None:
            new = np.ones(len(starts), bool)
            new[1:] = (starts[1:] != starts[:-1]) | (ends[1:] != ends[:-1]) | (kind[1:] != kind[:-1])
            first = np.append(np.flatnonzero(new), len(starts)).astype(np.int64)
        triples = first[:-1]
        runs = np.searchsorted(kind[triples], np.arange(len(labels) + 1)).astype(np.int64)
        starts_of, offsets = starts[triples], [np.empty(0, np.int64)]
        if len(labels) * (vertices + 1) <= _DENSE * len(triples):
            every = np.arange(vertices + 1, dtype=starts.dtype)
            offsets = [begin + np.searchsorted(starts_of[begin:end], every) for begin, end in pairwise(runs)]
        return cls(labels, kind, starts, ends, ordinals, first, runs, np.concatenate(offsets), starts_of, ends[triples])

    def moved(self, before: Sizes, now: Sizes) -> EdgeTable:
        """Return the table of the same edges among the vertices of now: more resources move the literals."""
        if before == now:
            return self
        offsets = self._offsets
        if len(offsets):
            rows, at = offsets.reshape(len(self.labels), before.vertices + 1), before.resources
            resources = np.repeat(rows[:, at : at + 1], now.resources - before.resources, axis=1)
            literals = np.repeat(rows[:, -1:], now.literals - before.literals, axis=1)
            offsets = np.concatenate([rows[:, : at + 1], resources, rows[:, at + 1 :], literals], axis=1).reshape(-1)
        ends, ends_of = (moved_ids(column, before, now) for column in (self.ends, self._ends_of))
        return replace(self, ends=ends, _ends_of=ends_of, _offsets=offsets)

    def with_edges_of(
        self,
        triples: tuple[Ints, NDArray[Any], NDArray[Any]],
        edges: tuple[Ints, NDArray[Any], NDArray[Any], Ints],
        vertices: int,
    ) -> EdgeTable:
        """Return the table in which a handful of distinct triples have the edges that they have now.

        Parameters
        ----------
        triples
            [triples] each: labels, which are of this table, starts and ends, in its types, among so many ``vertices``.
        edges
            [edges] each: the same of all edges that these triples stand for now, and their ordinals.
        """
        found, columns = self.find(*triples), (self.kind, self.starts, self.ends)
        written = (np.searchsorted(self.labels, triples[0]), *triples, *found)
        now: dict[tuple[int, ...], list[int]] = {}
        for label, start, end, ordinal in zip(*(column.tolist() for column in edges), strict=True):
            now.setdefault((label, start, end), []).append(ordinal)
        splices = []
        for kind, label, start, end, first, count in sorted(zip(*(each.tolist() for each in written), strict=True)):
            place, gone = (first, count) if first >= 0 else (_place(columns, (kind, start, end)), 0)
            come = sorted(now.get((label, start, end), ()))
            had = [0] * gone if self.ordinals is None else self.ordinals[place : place + gone].tolist()
            if come != had:
                splices.append(_Splice(kind, start, end, place, gone, tuple(come)))
        if not splices:  # properties alone were written
            return self
        return self._spliced(splices, vertices)

    def _spliced(self, splices: Sequence[_Splice], vertices: int) -> EdgeTable:
        """Return the table in which some triples, in order, have other edges: what is between them is copied."""
        every = [(each.place, each.gone, each) for each in splices]
        starts = _replaced(self.starts, [(place, gone, [each.start] * len(each.come)) for place, gone, each in every])
        ends = _replaced(self.ends, [(place, gone, [each.end] * len(each.come)) for place, gone, each in every])
        kind = np.zeros(len(starts), np.int64)
        if len(self.labels) > 1:
            kind = _replaced(self.kind, [(place, gone, [each.kind] * len(each.come)) for place, gone, each in every])
        ordinals = self._spliced_ordinals(splices)
        runs, offsets, moved, begin = self._runs.copy(), self._offsets.copy(), 0, 0
        for each in splices:
            runs[each.kind + 1 :] += each.triples
            if len(offsets):
                at = each.kind * (vertices + 1) + each.start + 1
                offsets[begin:at] += moved
                moved, begin = moved + each.triples, at
        offsets[begin:] += moved
        if ordinals is None:
            first, starts_of, ends_of = np.arange(len(starts) + 1), starts, ends
        else:
            first, starts_of, ends_of = self._spliced_triples(splices)
        return EdgeTable(self.labels, kind, starts, ends, ordinals, first, runs, offsets, starts_of, ends_of)

    def _spliced_ordinals(self, splices: Sequence[_Splice]) -> NDArray[np.integer[Any]] | None:
        """Return the ordinals of edges, those of some triples for others; None where all are 0."""
        most = max((ordinal for each in splices for ordinal in each.come), default=0)
        if self.ordinals is None and not most:
            return None
        own = np.zeros(len(self), np.uint8) if self.ordinals is None else self.ordinals
        own = own.astype(np.promote_types(own.dtype, np.min_scalar_type(most)), copy=False)
        found = _replaced(own, [(each.place, each.gone, each.come) for each in splices])
        most = int(found.max(initial=0))
        return found.astype(np.min_scalar_type(most), copy=False) if most else None

    def _spliced_triples(self, splices: Sequence[_Splice]) -> tuple[Ints, NDArray[Any], NDArray[Any]]:
        """Return the first edge of each triple, and the ends of each, where some triples have other edges."""
        places = np.searchsorted(self._first, [each.place for each in splices]).tolist()
        every = [(place, each.gone > 0, each) for place, each in zip(places, splices, strict=True)]
        starts_of = _replaced(self._starts_of, [(at, gone, [each.start][: len(each.come)]) for at, gone, each in every])
        ends_of = _replaced(self._ends_of, [(at, gone, [each.end][: len(each.come)]) for at, gone, each in every])
        found, moved, begin, done = np.empty(len(starts_of) + 1, np.int64), 0, 0, 0
        for at, gone, each in every:
            np.add(self._first[begin:at], moved, out=found[done : (done := done + at - begin)])
            if each.come:
                found[done], done = each.place + moved, done + 1
            moved, begin = moved + len(each.come) - each.gone, at + gone
        np.add(self._first[begin:], moved, out=found[done:])
        return found, starts_of, ends_of

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def simple(self) -> bool:
        """Whether each triple is one edge."""
        return len(self._first) - 1 == len(self)

    def labels_of(self, edges: Ints | range) -> Ints:
        """Return the labels of some edges, by their numbers: int64 [edges]; one label with a stride of 0 bytes."""
        if len(self.labels) == 1:
            return np.broadcast_to(self.labels[0], len(edges))
        return self.labels[self.kind[edges.start : edges.stop] if isinstance(edges, range) else self.kind[edges]]

    def numbered(self, edges: Ints | range) -> Ints:
        """Return the numbers of some edges: int64 [edges], of a run of them without a copy where that can be."""
        if not isinstance(edges, range):
            return edges
        return self._first[edges.start : edges.stop] if self.simple else np.arange(edges.start, edges.stop)

    def starting_at(self, vertices: NDArray[Any]) -> tuple[Ints, Ints]:
        """Return where the edges that start at some vertices begin, and how many they are; the table has one label.

        int64 [vertices] both.
        """
        if len(self._offsets):
            begins, ends = self._first[self._offsets[vertices]], self._first[self._offsets[vertices + 1]]
        else:
            begins, ends = (np.searchsorted(self.starts, vertices, side) for side in ("left", "right"))
        return begins, ends - begins

    def find(self, labels: NDArray[Any], starts: NDArray[Any], ends: NDArray[Any]) -> tuple[Ints, Ints]:
        """Find the edges of some triples.

        Parameters
        ----------
        labels
            int64 [triples]: term ids of their labels.
        starts, ends
            int32 or int64 [triples]: vertex ids of their ends.

        Returns
        -------
        tuple
            int64 [triples] each: the number of a triple's first edge, and how many edges it has.  A triple of a label
            that is not of this table is one edge, of the number -1.
        """
        from graphdb.storage.graph.edge_kernels import find_edges

        if len(self.labels) == 1:
            which = np.where(labels == self.labels[0], 0, -1)
        else:
            which = np.searchsorted(self.labels, labels)
            which[self.labels[np.minimum(which, len(self.labels) - 1)] != labels] = -1
        found = np.empty((2, len(which)), np.int64)
        find_edges(
            which,
            starts,
            ends,
            self._runs,
            self._offsets,
            self._starts_of,
            self._ends_of,
            self._first,
            found[0],
            found[1],
        )
        return found[0], found[1]

    def parallel(self, labels: NDArray[Any], starts: NDArray[Any], ends: NDArray[Any]) -> tuple[Ints, Ints]:
        """Return which of some triples, given as to :meth:`find`, have several edges, and how many: int64 both.

        Of many none is looked for that starts, or ends, at a vertex where no parallel edge does.
        """
        if self.simple:
            return _NONE, _NONE
        if (found := _AT_PARALLEL.get(self)) is None and len(starts) * _LOOKED_FOR >= len(self._first):
            found = _AT_PARALLEL[self] = self._at_parallel()
        some = np.arange(len(starts)) if found is None else _among(*found, starts, ends)
        counts = self.find(*(column[some] for column in (labels, starts, ends)))[1]
        several = np.flatnonzero(counts > 1)
        return some[several], counts[several]

    def _at_parallel(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which vertices parallel edges start at, and end at."""
        parallel = np.flatnonzero(np.diff(self._first) > 1)
        masks = []
        for side in (self._starts_of, self._ends_of):
            mask = np.zeros(int(side.max(initial=0)) + 1, bool)
            mask[side[parallel]] = True
            masks.append(mask)
        return masks[0], masks[1]


@dataclass(frozen=True, slots=True)
class _Splice:
    """A triple that has other edges by now."""

    kind: int
    start: int
    end: int
    place: int
    """Where its edges stand, or would stand, …"""
    gone: int
    """… how many it had there, …"""
    come: tuple[int, ...]
    """… and the ordinals of those that it has."""

    @property
    def triples(self) -> int:
        """How many triples more there are."""
        return bool(self.come) - bool(self.gone)


def _replaced(column: NDArray[Any], parts: Sequence[tuple[int, int, Sequence[int]]]) -> NDArray[Any]:
    """Return a column in which, from some places on, so many values gave way to others; the places are in order."""
    pieces, begin = [], 0
    for place, gone, come in parts:
        pieces += [column[begin:place], np.array(come, column.dtype)]
        begin = place + gone
    return np.concatenate([*pieces, column[begin:]])


def _place(columns: Sequence[NDArray[Any]], row: Sequence[int]) -> int:
    """Return where a row belongs among rows that are sorted by these columns."""
    begin, end = 0, len(columns[0])
    for column, value in zip(columns, row, strict=True):
        begin, end = (begin + int(column[begin:end].searchsorted(value, side)) for side in ("left", "right"))
    return begin


def _among(from_some: NDArray[np.bool_], to_some: NDArray[np.bool_], starts: NDArray[Any], ends: NDArray[Any]) -> Ints:
    """Return which triples start and end at vertices that masks name, each of which ends with the last that it does."""
    from graphdb.storage.graph.edge_kernels import among

    places = np.empty(len(starts), np.int64)
    starts, ends = np.ascontiguousarray(starts), np.ascontiguousarray(ends)
    return places[: among(from_some, to_some, starts, ends, places)]


_NONE = np.empty(0, np.int64)

_LOOKED_FOR = 64
"""Triples that a table has for each that is looked for, at most, where it is worth while to find out which vertices
have parallel edges."""

_AT_PARALLEL: WeakKeyDictionary[EdgeTable, tuple[NDArray[np.bool_], NDArray[np.bool_]]] = WeakKeyDictionary()
"""The vertices of tables that parallel edges start at, and end at."""


def edge_numbers(labels: Ints, starts: Ints, ends: Ints, ordinals: Ints) -> Ints:
    """Return :func:`~graphdb.common.values.types.edge_number` of edges: int64 [edges] of their labels, starts, ends
    (terms) and ordinals (int64 [edges] each).
    """
    from graphdb.storage.graph.edge_kernels import identify

    ids = np.empty(len(labels), np.int64)
    labels, starts, ends, ordinals = map(np.ascontiguousarray, (labels, starts, ends, ordinals))
    identify(labels, starts, ends, ordinals, ids)
    return ids


def spread(first: Ints, count: Ints, edges: int) -> tuple[Ints, Ints]:
    """Return of triples with ``count`` edges from ``first`` on, ``edges`` in all: which triple each is of, and itself.

    int64 [edges] both.
    """
    from graphdb.storage.graph.edge_kernels import spread_edges

    found = np.empty((2, edges), np.int64)
    spread_edges(np.ascontiguousarray(first), np.ascontiguousarray(count), found[0], found[1])
    return found[0], found[1]
