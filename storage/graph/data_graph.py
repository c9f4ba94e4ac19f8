"""The data graph: triples on one side, the derived structures that matching reads on the other.

A :class:`TripleSource` hands out sorted triples, one edge label at a time; :class:`DataGraph` derives PCSR partitions,
signature columns and vertex sets from them when they are first asked for, and keeps them in memory within a budget, the
least recently used going first.  Nothing here is ever a second source of truth.

Vertex ids: resources ``0 … resources-1``, then literals up to ``resources + literals - 1``.  An edge label is the
resource id of its predicate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.arrays.sorted_sets import both, each_once, unique
from graphdb.storage.graph.changes import Changes, ends_of, moved_column, subjects_of
from graphdb.storage.graph.degree_sketch import OUT, DegreeSketch
from graphdb.storage.graph.derived.closure import (
    Closure,
    Forest,
    Tops,
    closure_of,
    fits,
    forest_of,
    partition_of_paths,
    without_self,
)
from graphdb.storage.graph.derived.edge_subset import is_one_label
from graphdb.storage.graph.derived.orientation import Oriented, orient
from graphdb.storage.graph.derived_structures import QUICK, DerivedStructures
from graphdb.storage.graph.following.partitions import with_gaps
from graphdb.storage.graph.pcsr import OPPOSITE, Direction, Layer, Partition, build_partition
from graphdb.storage.graph.signatures import build_column, mend_column
from graphdb.storage.graph.source import LabelStatistics, TripleSource
from graphdb.storage.persisted.store import NOTHING, StateStructures

Ints = NDArray[np.int64]
T = TypeVar("T")

_WAYS: tuple[Direction, Direction] = ("out", "in")

DEFAULT_BUDGET = 4 << 30
_MENDED = 8
"""A signature is made anew where the vertices whose labels changed have one edge in so many."""

_LOOKED_FOR = 10_000
"""Resources without a vertex label that are looked for among the triples; for more, all of these are read."""

_LABELS_READ = 8
"""Vertex labels whose members are read one by one; for more, a partition of all is derived once."""


class DataGraph(DerivedStructures):
    """What plans read: partitions, signatures and vertex sets, derived on demand.  Safe to share between threads.

    Parameters
    ----------
    source
        The triples.
    memory_budget_bytes
        How much the derived structures may hold together; those that a running plan reads stay alive with it.
    dtype
        The vertex id type of partitions and bindings; by default int32 while all ids and edge codes fit.
    layer
        Forces one offset layer for all partitions (tests).
    persisted
        What was derived of the same triples before.
    """

    def __init__(
        self,
        source: TripleSource,
        memory_budget_bytes: int = DEFAULT_BUDGET,
        *,
        dtype: type[np.signedinteger[Any]] | None = None,
        layer: Layer | None = None,
        persisted: StateStructures = NOTHING,
    ) -> None:
        super().__init__(source, memory_budget_bytes, persisted)
        self.vertices = source.resources + source.literals
        self.dtype: type[np.signedinteger[Any]] = dtype or (np.int32 if self.vertices < 1 << 30 else np.int64)
        self._layer = layer
        self._statistics: dict[tuple[int, ...] | None, LabelStatistics] = {}
        self._sketches: dict[tuple[tuple[int, ...] | None, int | None], DegreeSketch] = {}
        self._labels_read = 0

    def follow(self, previous: DerivedStructures, changes: Iterable[Changes]) -> None:
        """See :meth:`.DerivedStructures.follow`; vertex ids of another type are not taken over."""
        if isinstance(previous, DataGraph) and previous.dtype == self.dtype:
            super().follow(previous, changes)

    def partition(self, labels: tuple[int, ...] | None, direction: Direction, *, parallel: bool = False) -> Partition:
        """The partition of a set of edge labels; None is any edge between resources other than ``rdf:type``.

        With ``parallel``, each of parallel edges has a code: their number is how many edges join a pair.
        """
        if parallel:
            return self._cached(("parallel", labels, direction), lambda: self._build_parallel(labels, direction))
        return self._cached(("partition", labels, direction), lambda: self._build(labels, direction))

    def keys(self, labels: tuple[int, ...] | None, direction: Direction) -> Ints:
        """The vertices that have neighbours by a set of edge labels, in one direction: sorted int64.

        Where only the opposite partition is in memory, they are its neighbours: to mark them takes a tenth of the time
        that it takes to build the other.  Where neither is, a label's edges alone are read.
        """
        opposite, key = OPPOSITE[direction], ("keys", labels, direction)
        if self.has_partition(labels, direction):
            return self.partition(labels, direction).keys
        if self.has_partition(labels, opposite):
            other = self.partition(labels, opposite)
            if other.layer != "spans":  # between which there are neighbours of nobody
                return self.derived(key, lambda: each_once(other.neighbours, self.vertices))
        elif direction != "both" and labels is not None and is_one_label(labels):
            end = _WAYS.index(direction)
            return self.derived(key, lambda: each_once(self.source.edges(labels[0])[end], self.vertices))
        return self.partition(labels, direction).keys

    def _lengths(self, labels: tuple[int, ...] | None, direction: Direction) -> tuple[Ints, Ints]:
        """The vertices of :meth:`keys`, and how many neighbours each has: int64 both."""
        counts = self._counts(labels, direction)
        if counts is None:
            partition = self.partition(labels, direction)
            return partition.keys, partition.lengths()
        keys = np.flatnonzero(counts)
        return keys, counts[keys]

    def _counts(self, labels: tuple[int, ...] | None, direction: Direction) -> Ints | None:
        """How many neighbours each of the first vertices has, others none: int64; None where the partition says it.

        Where only the opposite partition is in memory, its neighbours are counted: to build the other takes longer.
        Those of a closure are counted without any.
        """
        opposite, key = OPPOSITE[direction], ("neighbours", labels, direction)
        if self.has_partition(labels, direction):
            return None
        if (closure := _closure_in(labels)) is not None and direction != "both":
            if (whole := self._with_self(closure, direction)) is not None:
                return self.derived(key, lambda: np.diff(whole.offsets) - 1)
            paths = self._paths(closure)
            return self.derived(key, lambda: paths.lengths(closure, direction))
        if self.has_partition(labels, opposite) and (other := self.partition(labels, opposite)).layer != "spans":
            return self.derived(key, lambda: np.bincount(other.neighbours))
        return None

    def closure(self, label: int, low: int, high: int | None, within: int | None = None) -> int | None:
        """The number of an edge label's transitive closure, to be used as an edge label is; None where it has none.

        It has one where two vertices are joined by at most one path of that label, and where it is not too large.
        ``within`` is a vertex label: then no vertex with that label may be above another one in the forest.
        """
        number = Closure(label, low, high, within).number
        known = self.source.statistics(label)
        if number is None or not known.triples or min(known.max_out_degree, known.max_in_degree) > 1:
            return None

        def build() -> NDArray[np.bool_]:
            forest, share = self.forest(label), self.memory_budget_bytes // 4
            if not len(forest.parents):
                return np.array([False])
            if within is not None:  # it has no more pairs than there are vertices
                return np.array([len(self._tops(label, within).tops) > 0])
            return np.array([fits(forest.pairs(low, high), low, self.resources, known.triples, share)])

        return number if self.derived(("closure fits", number), build)[0] else None

    def upwards(self, label: int) -> Direction:
        """The direction in which an edge label would lead to parents, if it was a forest."""
        return "out" if self.source.statistics(label).max_out_degree <= 1 else "in"

    def _tops(self, label: int, within: int) -> Tops:
        """Which vertex with a vertex label is above each vertex of a forest; of none where a vertex has several."""

        def build() -> Tops:
            forest, members = self.forest(label), self.members(within)
            return self._derive(self.resources, lambda: forest.tops(members))

        return self._cached(("tops", label, within), build)

    def _paths(self, closure: Closure) -> Forest | Tops:
        """What a closure that there is consists of."""
        return self.forest(closure.label) if closure.within is None else self._tops(closure.label, closure.within)

    def forest(self, label: int) -> Forest:
        """An edge label as a forest; one without parents where it is none."""

        def build() -> Forest:
            ends = self._edges_of(label)
            upwards = self.upwards(label)
            children, above = ends if upwards == "out" else ends[::-1]
            return self._derive(n, lambda: forest_of(children, above, upwards, n, self.dtype))

        n = self.resources
        return self._cached(("forest", label), build)

    def has_partition(self, labels: tuple[int, ...] | None, direction: Direction) -> bool:
        """Whether that partition is in memory already."""
        return any(("partition", labels, direction) in cache for cache in (self._cache, self._stale))

    def signature(self, label: int, direction: Direction) -> NDArray[np.uint32]:
        """The signature column uint32 [vertices] of one edge label and direction."""

        def build() -> NDArray[np.uint32]:
            types = None if self.type_label is None else self.partition((self.type_label,), "out")
            edges = self.partition((label,), direction)
            return self._derive(
                len(edges.neighbours), lambda: build_column(edges, types, self.vertices, self.resources)
            )

        key = ("signature", label, direction)
        with self._lock:
            if key not in self._cache and (mended := self._mended_signature(key, label, direction)) is not None:
                self._put(key, mended)
            return self._cached(key, build)

    def _mended_signature(self, key: tuple[Any, ...], label: int, direction: Direction) -> NDArray[np.uint32] | None:
        """The column of an earlier graph, vertices that changes concern counted anew; None where all are to be."""
        typed = () if self.type_label is None else (self.type_label,)
        if closure_of(label) is not None or (found := self._stale.behind(key, frozenset((label, *typed)))) is None:
            return None
        column, before, changes = found
        concerned, retyped = ends_of(changes, label, direction, self.resources), subjects_of(changes, self.type_label)
        if len(retyped):
            if not self.has_partition((label,), OPPOSITE[direction]):
                return None
            back = self.partition((label,), OPPOSITE[direction])
            near = back.neighbours_of_all(retyped, len(back.neighbours) // _MENDED)
            if near is None:
                return None
            concerned = unique(np.concatenate([concerned, near]))
        types = self.partition(typed, "out") if typed else None
        edges = self.partition((label,), direction)
        return mend_column(moved_column(column, before, self.sizes), edges, types, concerned, self.resources)

    def oriented(self, labels: tuple[int, ...] | None) -> Oriented:
        """The graph of a set of edge labels, direction aside, oriented by degree."""

        def build() -> Oriented:
            edges = self.partition(labels, "both")
            return self._derive(len(edges.neighbours), lambda: orient(edges, self.vertices))

        return self._cached(("oriented", labels), build)

    def has_signature(self, label: int, direction: Direction) -> bool:
        """Whether that column is in memory already."""
        key = "signature", label, direction
        return key in self._cache or key in self._stale

    def members_among(self, vertices: Ints, class_id: int) -> Ints:
        """Return those of a handful of vertices, sorted, that have a vertex label: without a copy after each change."""
        with self._lock:
            if self.type_label is not None and ("members", class_id) not in self._cache:
                found = self._stale.members_among(vertices, class_id)
                if found is not None:
                    return found
        return both(vertices, self.members(class_id))

    def members(self, class_id: int) -> Ints:
        """The vertices with vertex label ``class_id``: sorted int64."""
        if self.type_label is None:
            return np.empty(0, np.int64)
        typed = self.type_label

        def build() -> Ints:
            known = self.source.statistics(typed).triples <= QUICK or self.has_partition((typed,), "in")
            if known or self._labels_read == _LABELS_READ:
                return self.partition((typed,), "in").neighbours_of(class_id).astype(np.int64)
            self._labels_read += 1
            return self.source.subjects(typed, class_id)

        return self._cached(("members", class_id), build)

    def universe(self) -> Ints:
        """What an unconstrained pattern vertex ranges over: sorted int64.

        The resources that are a subject, or an object of anything but ``rdf:type``.
        """
        return self._cached(("universe",), self._build_universe)

    def statistics(self, labels: tuple[int, ...] | None) -> LabelStatistics:
        """Statistics of a set of edge labels (None: any edge between resources other than ``rdf:type``)."""
        known = self._statistics.get(labels)
        if known is None and (subset := self._subset_in(labels)) is not None:
            return self._cached(("statistics", labels), lambda: subset.statistics(self.resources))
        if known is None:
            known = self._statistics[labels] = self._sum_statistics(labels)
        return known

    def degrees(self, labels: tuple[int, ...] | None, direction: int | None) -> DegreeSketch:
        """How degrees are distributed by a set of edge labels: ``OUT``, ``IN``, or None for both, direction aside.

        The catalog knows single labels and directions.  Direction aside, the partition is asked.
        """
        key = (labels, direction)
        known = self._sketches.get(key)
        if known is None and (subset := self._subset_in(labels)) is not None:

            def sketch() -> DegreeSketch:
                if direction is None:
                    return DegreeSketch.of(self.partition(labels, "both").lengths())
                return DegreeSketch.of(subset.degrees(direction == OUT))

            return self._cached(("degrees", *key), sketch)
        if known is None:
            if direction is None or _closure_in(labels):
                way: Direction = "both" if direction is None else "out" if direction == OUT else "in"
                known = DegreeSketch.of(self._lengths(labels, way)[1])
            elif labels is not None and len(labels) == 1:
                known = self.source.degrees(labels[0], direction)
            else:
                chosen = labels if labels is not None else self.source.edge_labels()
                known = DegreeSketch.union(
                    self.source.degrees(x, direction) for x in chosen if labels or x != self.type_label
                )
            self._sketches[key] = known
        return known

    def at_class(self, label: int, direction: int, class_id: int) -> tuple[int, int] | None:
        """(edges of a label that start, or end, at vertices with a vertex label; such vertices); None if unknown."""
        if (subset := self._subset_in((label,))) is not None:
            key = ("at-class", label, direction, class_id)
            return self._cached(key, lambda: subset.at(self.members(class_id), direction == OUT))
        if closure_of(label) is None:
            return self.source.at_class(label, direction, class_id)

        def count() -> Ints:
            from graphdb.storage.graph.derived.closure_kernels import counted_at

            way: Direction = "out" if direction == OUT else "in"
            members, counts = self.members(class_id), self._counts((label,), way)
            if counts is None:
                lengths = self.partition((label,), way).ranges_of(members)[1]
                return np.array([lengths.sum(), np.count_nonzero(lengths)])
            return np.array(counted_at(counts, members))

        edges, active = self.derived(("at-class", label, direction, class_id), count).tolist()
        return edges, active

    def has_loops(self, labels: tuple[int, ...] | None) -> bool:
        """Whether some edge of these labels joins a vertex with itself."""

        def find() -> NDArray[np.bool_]:
            if labels is None:
                _, s, o = self.source.any_edges()
                return np.array([np.any(s == o)])
            if (subset := self._subset_in(labels)) is not None:
                return np.array([subset.loops])
            if (closure := _closure_in(labels)) is not None:  # of a forest: only paths without edges are loops
                within = closure.within
                return np.array(
                    [closure.low == 0 and (self.resources if within is None else len(self.members(within))) > 0]
                )
            return np.array([any(np.any(np.equal(*self.source.edges(label))) for label in labels)])

        return bool(self.derived(("loops", labels), find)[0])

    def _sum_statistics(self, labels: tuple[int, ...] | None) -> LabelStatistics:
        if _closure_in(labels):
            counts = [self._counts(labels, way) for way in _WAYS]
            known = zip(_WAYS, counts, strict=True)
            out, into = (self.partition(labels, way).lengths() if each is None else each for way, each in known)
            count, starts, ends = int(out.sum()), int(np.count_nonzero(out)), int(np.count_nonzero(into))
            return LabelStatistics(count, count, starts, ends, int(out.max(initial=0)), int(into.max(initial=0)))
        if labels is not None and len(labels) == 1:
            return self.source.statistics(labels[0])
        chosen = labels if labels is not None else [x for x in self.source.edge_labels() if x != self.type_label]
        parts = [self.source.statistics(label) for label in chosen]
        if labels is None:  # literal objects are out of its range
            parts = [part for part in parts if part.resource_triples]
        resource_triples = sum(part.resource_triples for part in parts)
        return LabelStatistics(
            triples=resource_triples if labels is None else sum(part.triples for part in parts),
            resource_triples=resource_triples,
            subjects=min(self.resources, sum(part.subjects for part in parts)),
            objects=min(self.vertices, sum(part.objects for part in parts)),
            max_out_degree=sum(part.max_out_degree for part in parts),
            max_in_degree=sum(part.max_in_degree for part in parts),
        )

    def _build(self, labels: tuple[int, ...] | None, direction: Direction) -> Partition:
        found: Ints | int
        if labels is not None and (closure := _closure_in(labels)) is not None:
            paths, (number,) = self._paths(closure), labels
            if (whole := self._with_self(closure, direction)) is not None:
                return self._derive(
                    len(whole.neighbours), lambda: self._in_layer(lambda layer: without_self(whole, layer))
                )
            counted = self._cache.get(("derived", "neighbours", labels, direction))
            lengths = None if counted is None else counted[0]
            return self._derive(
                self.resources,
                lambda: self._in_layer(
                    lambda layer: partition_of_paths(
                        paths, closure, number, direction, self.vertices, self.dtype, layer, lengths
                    )
                ),
            )
        if (subset := self._subset_in(labels)) is not None:
            found, s, o = subset.kinds, subset.subjects, subset.objects
        elif labels is None:
            found, s, o = self.source.any_edges()
        elif len(labels) == 1:
            found, (s, o) = labels[0], self._edges_of(labels[0])
        else:
            runs = [(label, *self.source.edges(label)) for label in labels]
            s = np.concatenate([run[1] for run in runs]) if runs else np.empty(0, np.int64)
            o = np.concatenate([run[2] for run in runs]) if runs else np.empty(0, np.int64)
            found = np.repeat(np.array(labels, np.int64), [len(run[1]) for run in runs])
        return self._partition_of(found, s, o, direction)

    def _with_self(self, closure: Closure, direction: Direction) -> Partition | None:
        """The partition of the same closure with paths without edges, too, if it is in memory and of use."""
        if closure.low != 1 or closure.within is not None:
            return None
        number = Closure(closure.label, 0, closure.high).number
        cached = self._cache.get(("partition", (number,), direction))
        return cached[0] if cached is not None and cached[0].layer == "direct" and direction != "both" else None

    def _edges_of(self, label: int) -> tuple[Ints, Ints]:
        """Subjects and objects of one label, sorted: of a partition in memory sooner than of the triples."""
        cached = self._cache.get(("partition", (label,), "out"))
        if cached is None or cached[0].layer != "direct":
            return self.source.edges(label)
        known: Partition = cached[0]
        return np.repeat(np.arange(known.groups), np.diff(known.offsets)), known.neighbours.astype(np.int64)

    def _build_parallel(self, labels: tuple[int, ...] | None, direction: Direction) -> Partition:
        found, s, o = self.source.parallel_edges(labels)
        return self._partition_of(found, s, o, direction)

    def _partition_of(self, labels: Ints | int, subjects: Ints, objects: Ints, direction: Direction) -> Partition:
        def build(layer: Layer | None) -> Partition:
            return build_partition(labels, subjects, objects, direction, self.vertices, self.dtype, layer)

        return self._derive(len(subjects), lambda: self._in_layer(build))

    def _in_layer(self, build: Callable[[Layer | None], Partition]) -> Partition:
        """Build a partition in the layer that is forced, if one is; ``spans`` are what changes make of others."""
        return with_gaps(build(None)) if self._layer == "spans" else build(self._layer)

    def _build_universe(self) -> Ints:
        seen = np.zeros(self.resources, bool)
        if self.type_label is not None:
            seen[self.source.edges(self.type_label)[0]] = True
            if len(rest := np.flatnonzero(~seen)) <= _LOOKED_FOR:  # where nearly all have a label, triples are not read
                seen[self.source.occurring(rest)] = True
                return np.flatnonzero(seen)
        typed = -1 if self.type_label is None else self.type_label
        for labels, s, o in self.source.triples():
            seen[s] = True
            seen[o[(o < self.resources) & (labels != typed)]] = True
        return np.flatnonzero(seen)


def _closure_in(labels: tuple[int, ...] | None) -> Closure | None:
    """Return the closure that stands in the place of edge labels, which then is the only one."""
    return closure_of(labels[0]) if labels is not None and len(labels) == 1 else None
