"""PCSR: the data graph, one partition per edge label and direction (SGSI §4).

A :class:`Partition` answers "the neighbours of v" as one sorted run of an array.  Its offset layer finds the run: an
array of offsets up to the last vertex that has neighbours where the label touches many of these, else hashed groups of
128 bytes, so that a sparse label costs memory only for the vertices it touches and is still found with one read.  So
labels that join resources alone have no offsets of literals, whose ids come last.  Where the graph has
changed since, it is a table of where each run begins and ends (:mod:`.in_place.spans`).

Several data edges can join one pair of vertices (several labels, or both directions of an undirected edge).  Each pair
stands once among the neighbours, and its *codes* say which edges they are: ``label * 2 + orientation``, with
orientation 0 where the vertex itself is the subject and 1 where it is the object.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.arrays.sorted_sets import places
from graphdb.storage.graph.in_place.spans import Spans
from graphdb.storage.persisted.packing import persistable

Ints = NDArray[np.int64]
Direction = Literal["out", "in", "both"]
OPPOSITE: dict[Direction, Direction] = {"out": "in", "in": "out", "both": "both"}
Layer = Literal["direct", "hashed", "spans"]

GROUP_BYTES = 128
LAYERS: dict[Layer, int] = {"hashed": -1, "spans": -2}
"""What stands for an offset layer in a partition's row, in the place of how many vertices have direct offsets: so that
one comparison tells that it is direct, and that a vertex has offsets."""
PARTITION = ("direct", "offsets", "groups", "neighbours", "code_offsets", "codes")
"""The row of a partition that kernels read, each an int64: two numbers, and addresses of arrays (0: none)."""
_DIRECT_FAVOUR = 4
"""The direct layer is taken up to this multiple of the hashed layer's bytes: it saves the hash and the probe."""


@persistable
@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Partition:
    """The neighbours of every vertex by one set of edge labels, in one direction.

    Attributes
    ----------
    layer, offsets, groups
        The offset layer: ``hashed``: int64 [groups * 16], eight pairs per group; ``direct``: int64 [groups + 1], and
        ``spans``: int64 [groups * 2], of the first so many vertices, others having no neighbours.
    neighbours
        int32 or int64 [entries]: the neighbours, sorted and unique within each vertex; between ``spans`` there may be
        others, which are nobody's.
    code_offsets, codes
        int64 [entries + 1] and int64 [data edges]; None for one directed label, whose code is known.
    known_keys
        int64: the vertices that have neighbours, sorted; None where they are to be found out (:attr:`keys`).
    max_degree
        The longest run of neighbours; of ``spans``, no run is longer.
    simple
        No pair of vertices is joined by more than one data edge; of ``spans``, True only where that is certain.
    loops
        Some vertex is its own neighbour; of ``spans``, False only where that is certain.
    spans
        What changes the arrays in place.
    """

    layer: Layer
    offsets: Ints
    groups: int
    neighbours: NDArray[Any]
    code_offsets: Ints | None
    codes: Ints | None
    known_keys: Ints | None
    max_degree: int
    simple: bool
    loops: bool
    spans: Spans | None = None
    row: tuple[int, int, int, int, int, int] = field(init=False)
    """What a kernel reads, in the order of :data:`PARTITION`."""
    without_gaps: Partition | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        code_offsets = 0 if self.code_offsets is None else self.code_offsets.ctypes.data
        codes = 0 if self.codes is None else self.codes.ctypes.data
        row = (
            LAYERS.get(self.layer, self.groups),
            self.offsets.ctypes.data,
            self.groups,
            self.neighbours.ctypes.data,
            code_offsets,
            codes,
        )
        object.__setattr__(self, "row", row)

    @property
    def nbytes(self) -> int:
        """Bytes of all its arrays."""
        arrays = (self.offsets, self.neighbours, self.code_offsets, self.codes, self.known_keys)
        return sum(array.nbytes for array in arrays if array is not None)

    @property
    def keys(self) -> Ints:
        """The vertices that have neighbours, sorted: int64."""
        if self.known_keys is None:
            direct = self.layer == "direct"
            begins, ends = (self.offsets[:-1], self.offsets[1:]) if direct else self.offsets.reshape(-1, 2).T
            object.__setattr__(self, "known_keys", np.flatnonzero(ends > begins))
        assert self.known_keys is not None
        return self.known_keys

    def lengths(self) -> Ints:
        """How many neighbours each of ``keys`` has: int64 [keys]."""
        return self.ranges()[1]

    def ranges(self) -> tuple[Ints, Ints]:
        """Where the neighbours of each of ``keys`` begin, and how many they are; groups have their own order."""
        if self.layer != "hashed":
            return self._ranges_within(self.keys)
        if not self.groups:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        pairs = self.offsets.reshape(self.groups, -1, 2)
        vertices, lengths = pairs[:, :-1, 0], np.diff(pairs[:, :, 1], axis=1)
        used = vertices >= 0
        order = np.argsort(vertices[used])
        return pairs[:, :-1, 1][used][order], lengths[used][order]

    def _ranges_within(self, vertices: Ints) -> tuple[Ints, Ints]:
        """Where the neighbours of some of the first ``groups`` vertices begin, and how many they are."""
        if self.layer == "direct":
            begins = self.offsets[vertices]
            return begins, self.offsets[vertices + 1] - begins
        begins, ends = self.offsets.reshape(-1, 2)[vertices].T
        return begins, ends - begins

    def range_of(self, vertex: int) -> tuple[int, int]:
        """Where the neighbours of ``vertex`` stand in ``neighbours``: ``(begin, end)``."""
        if self.groups == 0 or (self.layer != "hashed" and not 0 <= vertex < self.groups):
            return 0, 0
        if self.layer != "hashed":
            at = vertex if self.layer == "direct" else 2 * vertex
            return int(self.offsets[at]), int(self.offsets[at + 1])
        from graphdb.storage.graph.pcsr_kernels import PAIRS, home_group

        group = int(home_group(vertex, self.groups))
        table = self.offsets.reshape(self.groups, PAIRS, 2)
        while group >= 0:
            for i in range(PAIRS - 1):
                if table[group, i, 0] == vertex:
                    return int(table[group, i, 1]), int(table[group, i + 1, 1])
            group = int(table[group, PAIRS - 1, 0])
        return 0, 0

    def neighbours_of(self, vertex: int) -> NDArray[Any]:
        """The sorted neighbours of ``vertex``: a view."""
        begin, end = self.range_of(vertex)
        return self.neighbours[begin:end]

    def ranges_of(self, vertices: Ints) -> tuple[Ints, Ints]:
        """Where the neighbours of some vertices, sorted, begin, and how many they are."""
        found = np.zeros((2, len(vertices)), np.int64)
        if self.layer == "hashed":
            at, there = places(self.keys, vertices)
            found[:, there] = [each[at[there]] for each in self.ranges()]
        else:
            inside = vertices < self.groups
            found[:, inside] = self._ranges_within(vertices[inside])
        return found[0], found[1]

    def neighbours_of_all(self, vertices: Ints, most: int) -> NDArray[Any] | None:
        """The neighbours of sorted vertices, one vertex after the other; None where they are more than ``most``."""
        begins, lengths = self.ranges_of(vertices)
        return None if int(lengths.sum()) > most else self.neighbours[elements_of(begins, lengths)]

    def codes_of(self, vertex: int, neighbour: int) -> Ints:
        """The codes (int64) of the data edges between ``vertex`` and ``neighbour``, sorted: a view.

        Raises
        ------
        ValueError
            The partition keeps none: it is of one label in one direction.
        """
        if self.codes is None or self.code_offsets is None:
            raise ValueError("a partition of one directed label keeps no codes")
        begin, end = self.range_of(vertex)
        at = begin + int(np.searchsorted(self.neighbours[begin:end], neighbour))
        if at == end or self.neighbours[at] != neighbour:
            return self.codes[:0]
        return self.codes[self.code_offsets[at] : self.code_offsets[at + 1]]

    def laid_out(self) -> tuple[Ints, NDArray[Any], Ints | None, Ints | None]:
        """(starts, neighbours, code_offsets, codes) in the order of ``keys``: the lists of these, one after the other.

        ``starts`` is one longer than ``keys``.
        """
        begins, lengths = self.ranges()
        starts = np.append(0, np.cumsum(lengths))
        elements = elements_of(begins, lengths)
        neighbours = self.neighbours[elements]
        if self.code_offsets is None or self.codes is None:
            return starts, neighbours, None, None
        code_begins = self.code_offsets[elements]
        counts = self.code_offsets[elements + 1] - code_begins
        return starts, neighbours, np.append(0, np.cumsum(counts)), self.codes[elements_of(code_begins, counts)]

    def contiguous(self) -> Partition:
        """The partition without places between its lists that are nobody's: O(edges), once."""
        if self.layer != "spans":
            return self
        if self.without_gaps is None:
            starts, neighbours, code_offsets, codes = self.laid_out()
            source = np.repeat(self.keys, np.diff(starts))
            made = _laid_out(source, neighbours, code_offsets, codes, neighbours.dtype.type, None)
            object.__setattr__(self, "without_gaps", made)
        assert self.without_gaps is not None
        return self.without_gaps


def elements_of(begins: Ints, lengths: Ints) -> Ints:
    """The places of the elements of some runs, one run after the other."""
    starts = np.cumsum(lengths) - lengths
    places: Ints = np.repeat(begins - starts, lengths) + np.arange(int(lengths.sum()))
    return places


def build_partition(
    labels: Ints | int,
    subjects: Ints,
    objects: Ints,
    direction: Direction,
    vertices: int,
    dtype: type[np.signedinteger[Any]] = np.int32,
    layer: Layer | None = None,
) -> Partition:
    """Build the partition of the given data edges.

    Parameters
    ----------
    labels
        int64 [edges], or one int where all edges have the same label.
    subjects, objects
        int64 [edges], unique together with the label; sorted by (subject, object) where there is one label.
    direction
        Whose neighbours: of the subjects (``out``), of the objects (``in``), or of both.
    vertices
        How many vertices the data graph has.
    layer
        The offset layer; by default the one that pays.
    """
    if isinstance(labels, int) and direction == "both":
        bound = max(int(subjects[-1]), int(objects.max())) + 1 if len(subjects) else 0
        if _by_counting(2 * len(subjects), bound):
            return _merged(labels, subjects, objects, bound, dtype, layer)
    if not isinstance(labels, int) or direction == "both":
        return partition_of(*_with_codes(labels, subjects, objects, direction), vertices, dtype, layer)
    source, target = (subjects, objects) if direction == "out" else (objects, subjects)
    if _by_counting(len(source), bound := int(source.max(initial=-1)) + 1):
        from graphdb.storage.graph.transpose_kernels import begin_runs, transpose

        offsets = np.zeros(bound + 1, np.int64)
        if direction == "in":
            transpose(subjects, objects, offsets, neighbours := np.empty(len(source), dtype))
        else:
            begin_runs(subjects, offsets)
            neighbours = objects.astype(dtype)
        return partition_of_runs(offsets, neighbours, bool((source == target).any()), layer)
    if direction == "in":  # sorted by (subject, object): a stable sort by object leaves the subjects sorted
        order = stable_order(source, vertices)
        source, target = source[order], target[order]
    return _laid_out(source, target, None, None, dtype, layer)


def partition_of(
    source: Ints,
    target: Ints,
    codes: Ints,
    vertices: int,
    dtype: type[np.signedinteger[Any]] = np.int32,
    layer: Layer | None = None,
) -> Partition:
    """Build the partition in which vertices have given neighbours, over edges of given codes.

    Parameters
    ----------
    source, target, codes
        int64 [edges]: vertex, neighbour and code of each, unique together.
    """
    if bool((codes[1:] >= codes[:-1]).all()):  # those of one label are, in one direction after the other
        order = stable_order(target, vertices)
    else:
        order = np.argsort(codes, kind="stable")
        order = order[stable_order(target[order], vertices)]
    order = order[stable_order(source[order], vertices)]
    source, target, codes = source[order], target[order], codes[order]
    first = np.ones(len(source), bool)
    first[1:] = (source[1:] != source[:-1]) | (target[1:] != target[:-1])
    if first.all():  # as it mostly is: nothing is copied
        return _laid_out(source, target, np.arange(len(source) + 1), codes, dtype, layer)
    entries = np.flatnonzero(first)
    code_offsets = np.append(entries, len(source)).astype(np.int64)
    return _laid_out(source[entries], target[entries], code_offsets, codes, dtype, layer)


def partition_of_runs(
    offsets: Ints,
    neighbours: NDArray[Any],
    loops: bool,
    layer: Layer | None,
    code_offsets: Ints | None = None,
    codes: Ints | None = None,
) -> Partition:
    """Build the partition in which the neighbours of each vertex are a sorted run.

    Parameters
    ----------
    offsets
        int64: where the run of each vertex begins, and the last one ends; further vertices have none.
    neighbours
        int32 or int64 [entries].
    loops
        Whether some vertex is its own neighbour.
    code_offsets, codes
        int64 [entries + 1] and int64 [data edges]; None for one directed label.
    """
    from graphdb.storage.graph.transpose_kernels import runs_measured

    vertices = len(offsets) - 1
    keys, longest = runs_measured(offsets)
    if (layer or _layer_for(vertices, keys)) == "hashed":
        known, groups = np.flatnonzero(offsets[1:] > offsets[:-1]), keys
        begins = offsets[known]
        runs = _hashed(known, begins, offsets[known + 1] - begins, neighbours, code_offsets, codes)
        return _of_layer("hashed", known, groups, int(longest), loops, *runs)
    return _of_layer("direct", None, vertices, int(longest), loops, offsets, neighbours, code_offsets, codes)


def _layer_for(vertices: int, keys: int) -> Layer:
    """Return the offset layer that pays, where so many of the first ``vertices`` have neighbours, and no others."""
    return "direct" if 8 * (vertices + 1) <= _DIRECT_FAVOUR * GROUP_BYTES * keys else "hashed"


def _laid_out(
    source: Ints,
    neighbours: Ints,
    code_offsets: Ints | None,
    codes: Ints | None,
    dtype: type[np.signedinteger[Any]],
    layer: Layer | None,
) -> Partition:
    """Build the offset layer over entries that are sorted by (vertex, neighbour)."""
    loops = bool((source == neighbours).any())
    starts = np.flatnonzero(np.append(True, source[1:] != source[:-1])) if len(source) else np.empty(0, np.int64)
    keys = np.ascontiguousarray(source[starts], dtype=np.int64)
    starts = np.append(starts, len(source)).astype(np.int64)
    degrees = np.diff(starts)
    groups = int(keys[-1]) + 1 if len(keys) else 0
    if layer is None:
        layer = _layer_for(groups, len(keys))
    if layer == "direct":
        offsets = np.zeros(groups + 1, np.int64)
        offsets[keys + 1] = degrees
        np.cumsum(offsets, out=offsets)
    else:
        groups = len(keys)
        offsets, neighbours, code_offsets, codes = _hashed(
            keys, starts[:-1], degrees, np.ascontiguousarray(neighbours, dtype=dtype), code_offsets, codes
        )
    neighbours = np.ascontiguousarray(neighbours, dtype=dtype)
    return _of_layer(layer, keys, groups, int(degrees.max(initial=0)), loops, offsets, neighbours, code_offsets, codes)


def _of_layer(
    layer: Layer,
    keys: Ints | None,
    groups: int,
    longest: int,
    loops: bool,
    offsets: Ints,
    neighbours: NDArray[Any],
    code_offsets: Ints | None,
    codes: Ints | None,
) -> Partition:
    return Partition(
        layer=layer,
        offsets=offsets,
        groups=groups,
        neighbours=neighbours,
        code_offsets=code_offsets,
        codes=codes,
        known_keys=keys,
        max_degree=longest,
        simple=codes is None or len(codes) == len(neighbours),
        loops=loops,
    )


def _hashed(
    keys: Ints, begins: Ints, lengths: Ints, neighbours: NDArray[Any], code_offsets: Ints | None, codes: Ints | None
) -> tuple[Ints, NDArray[Any], Ints | None, Ints | None]:
    """Return groups (flat), neighbours, code offsets and codes, of the runs of neighbours of ``keys``, put by group."""
    from graphdb.storage.graph.pcsr_kernels import PAIRS, fill_groups, home_groups

    groups = len(keys)
    homes = np.empty(groups, np.int64)
    home_groups(keys, max(groups, 1), homes)
    by_home = np.argsort(homes, kind="stable")
    begins, lengths = begins[by_home], lengths[by_home]
    starts = np.zeros(groups + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    table = np.full((groups, PAIRS, 2), -1, np.int64)
    fill_groups(keys[by_home], homes[by_home], starts, table)
    moved = _runs_moved(begins, starts, neighbours)
    if code_offsets is None or codes is None:
        return table.reshape(-1), moved, None, None
    if len(codes) == len(neighbours):  # each neighbour has one: they move alike
        return table.reshape(-1), moved, code_offsets, _runs_moved(begins, starts, codes)
    begins, lengths = (_runs_moved(begins, starts, each) for each in (code_offsets[:-1], np.diff(code_offsets)))
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return table.reshape(-1), moved, starts, _runs_moved(begins, starts, codes)


def _runs_moved(begins: Ints, starts: Ints, elements: NDArray[Any]) -> NDArray[Any]:
    """Return runs of elements that begin at some places, one after the other: each at its start, the last one more."""
    from graphdb.storage.graph.pcsr_kernels import move_runs

    moved = np.empty_like(elements)
    move_runs(np.ascontiguousarray(begins), starts, np.ascontiguousarray(elements), moved)
    return moved


def _merged(
    label: int, subjects: Ints, objects: Ints, bound: int, dtype: type[np.signedinteger[Any]], layer: Layer | None
) -> Partition:
    """Build the partition of one label both ways: from its edges by object, in as little memory.

    All vertices are below a bound.
    """
    from graphdb.storage.graph.transpose_kernels import merge_both, transpose

    edges = len(subjects)
    offsets, entering = np.zeros(bound + 1, np.int64), np.empty(edges, dtype)
    transpose(subjects, objects, offsets, entering)
    neighbours, codes = np.empty(2 * edges, dtype), np.empty(2 * edges, np.int64)
    code_offsets = np.empty(2 * edges + 1, np.int64)
    entries = merge_both(subjects, objects, offsets, entering, 2 * label, neighbours, code_offsets, codes)
    if entries < 2 * edges:
        neighbours, code_offsets = neighbours[:entries].copy(), code_offsets[: entries + 1].copy()
        codes = codes[: code_offsets[-1]].copy()
    return partition_of_runs(offsets, neighbours, bool((subjects == objects).any()), layer, code_offsets, codes)


def _with_codes(labels: Ints | int, subjects: Ints, objects: Ints, direction: Direction) -> tuple[Ints, Ints, Ints]:
    """Return (vertex, neighbour, code) of every entry."""
    code = np.broadcast_to(np.asarray(labels, np.int64) * 2, subjects.shape)
    if direction == "out":
        source, target = subjects, objects
    elif direction == "in":
        source, target, code = objects, subjects, code + 1
    else:
        proper = subjects != objects  # a self loop is one way to go, not two
        source = np.concatenate([subjects, objects[proper]])
        target = np.concatenate([objects, subjects[proper]])
        code = np.concatenate([code, code[proper] + 1])
    return source, target, np.ascontiguousarray(code)


def stable_order(keys: Ints, bound: int) -> Ints:
    """The stable order that sorts ``keys``: by counting, unless they are few among many vertices."""
    if not _by_counting(len(keys), bound):
        return np.argsort(keys, kind="stable")
    from graphdb.storage.graph.pcsr_kernels import counting_order

    order = np.empty(len(keys), np.int64)
    counts = np.zeros(int(keys.max()) + 2, np.int64)  # fewer than for all, where keys are resources
    counting_order(np.ascontiguousarray(keys, dtype=np.int64), counts, order)
    return order


def _by_counting(keys: int, bound: int) -> bool:
    """Whether so many keys below a bound are sorted sooner by counting them."""
    return keys >= 64 and keys * 16 >= bound
