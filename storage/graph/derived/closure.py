"""Transitive closures of edge labels that are forests, as edge labels of their own.

Where every vertex has at most one edge of a label, or at most one leads to every vertex, and no path leads back to its
start, there is at most one path of that label between two vertices.  The pairs of vertices that paths of ``low`` to
``high`` edges join are then a relation as the edges of a label are, and a pattern edge such as
``-[:REPLY_OF*0..]->`` is a single edge of it: it is ordered, intersected and counted like any other.

The closure of a long chain has as many pairs as the square of its edges.  Where a pattern gives the upper end of a path
a vertex label, as ``-[:REPLY_OF*0..]->(:Post)`` does, and no vertex with that label is above another one, each vertex
has at most one such end: the closure *within* the label has at most a pair for each vertex, and is taken.

A closure has a number, as an edge label has an id; the number says what it is the closure of.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.graph.pcsr import Direction, Layer, Partition, build_partition, partition_of_runs
from graphdb.storage.persisted.packing import persistable

Ints = NDArray[np.int64]

_IS_CLOSURE = 1 << 60
"""Beyond all ids; a code (twice the number) is still an int64."""
_LENGTH_BITS = 6
_ANY = (1 << _LENGTH_BITS) - 1
_WITHIN = 1 << 59
_LABELS = 1 << 59 - 2 * _LENGTH_BITS
_CLASSES = 1 << 24
"""Within a vertex label, labels of edges and of vertices share the bits of ``_LABELS``."""

_NOT_KNOWN = -2
"""A vertex whose ancestor is not known yet."""

_PAIRS_PER_EDGE = 32
_PAIRS = 1 << 20
"""A closure has at most so many pairs, or so many for each edge: one of a long chain grows by the square of that."""


@dataclass(frozen=True, slots=True)
class Closure:
    """The pairs that ``low`` to ``high`` edges of a label join one after the other (``high`` None: any number).

    Those whose upper end has the vertex label ``within``, if that is not None.
    """

    label: int
    low: int
    high: int | None
    within: int | None = None

    @property
    def number(self) -> int | None:
        """Its number; None where the lengths are too large for one."""
        high = _ANY if self.high is None else self.high
        if not (0 <= self.low < _ANY and high <= _ANY and self.high != _ANY and self.label < _LABELS):
            return None
        labels = self.label
        if self.within is not None:
            if not (self.label < _LABELS // _CLASSES and 0 <= self.within < _CLASSES):
                return None
            labels = self.label * _CLASSES + self.within
        number = _IS_CLOSURE | labels << 2 * _LENGTH_BITS | self.low << _LENGTH_BITS | high
        return number if self.within is None else number | _WITHIN

    @property
    def words(self) -> str:
        """Its lengths as in a pattern: ``*0..``."""
        return f"*{self.low}..{'' if self.high is None else self.high}"


def closure_of(number: int) -> Closure | None:
    """Return the closure of a number; None of an edge label, or of a subset of edges."""
    if not _IS_CLOSURE <= number < 2 * _IS_CLOSURE:
        return None
    high = number & _ANY
    labels = (number & _WITHIN - 1) >> 2 * _LENGTH_BITS
    label, within = divmod(labels, _CLASSES) if number & _WITHIN else (labels, None)
    return Closure(label, number >> _LENGTH_BITS & _ANY, None if high == _ANY else high, within)


def named(label: Callable[[int], str]) -> Callable[[int], str]:
    """Return what writes edge labels and closures, of what writes edge labels: ``REPLY_OF*0..``."""

    def write(number: int) -> str:
        closure = closure_of(number)
        return label(number) if closure is None else f"{label(closure.label)}{closure.words}"

    return write


@persistable
@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Forest:
    """An edge label as a forest.

    Attributes
    ----------
    upwards
        The direction in which its edges lead to parents: ``out`` or ``in``.
    parents
        int32 or int64 [resources]: of each vertex its parent, or -1; empty where the label is no forest.
    depths
        int32 [resources]: how many ancestors each has.
    """

    upwards: Direction
    parents: NDArray[Any]
    depths: NDArray[np.int32]

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        return self.parents.nbytes + self.depths.nbytes

    def grown(self, resources: int) -> Forest:
        """Return it among so many vertices: new ones have no edge."""
        new = resources - len(self.parents)
        if not len(self.parents) or not new:
            return self
        parents = np.append(self.parents, np.full(new, -1, self.parents.dtype))
        return replace(self, parents=parents, depths=np.append(self.depths, np.zeros(new, np.int32)))

    def pairs(self, low: int, high: int | None) -> int:
        """Return how many pairs of vertices are joined by ``low`` to ``high`` edges."""
        from graphdb.storage.graph.derived.closure_kernels import ancestors_counted

        return ancestors_counted(self.depths, low, len(self.parents) if high is None else high)

    def lengths(self, closure: Closure, direction: Direction) -> Ints:
        """Return how many neighbours each vertex has in a closure, out or in, without finding these: int64."""
        from graphdb.storage.graph.derived.closure_kernels import descendants_counted

        low, high = closure.low, len(self.parents) if closure.high is None else closure.high
        if direction == self.upwards:
            counts: Ints = np.minimum(self.depths, high, dtype=np.int64)  # in one array: each costs its page faults
            counts -= low - 1
            return np.maximum(counts, 0, out=counts)
        counts = np.zeros(len(self.parents), np.int64)
        descendants_counted(self.parents, self.depths, low, high, counts)
        return counts

    def fill(self, closure: Closure, direction: Direction, offsets: Ints, neighbours: NDArray[Any]) -> None:
        """Write the neighbours of each vertex in a closure, sorted, from where ``offsets`` says that they begin."""
        from graphdb.storage.graph.derived.closure_kernels import ancestors_of, descendants_of

        low, high = closure.low, len(self.parents) if closure.high is None else closure.high
        write = ancestors_of if direction == self.upwards else descendants_of
        write(self.parents, self.depths, low, high, offsets, neighbours)

    def tops(self, members: Ints) -> Tops:
        """Return which of some vertices is above each vertex, or itself; of none where one of them is above another.

        ``members`` are int64.
        """
        from graphdb.storage.graph.derived.closure_kernels import tops_of

        tops, distances = np.full(len(self.parents), _NOT_KNOWN, self.parents.dtype), np.empty_like(self.depths)
        tops[members] = members
        if not tops_of(self.parents, self.depths, members, tops, distances):
            tops, distances = tops[:0].copy(), distances[:0].copy()
        return Tops(self.upwards, tops, distances)


@persistable
@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Tops:
    """Of a forest, the one ancestor of each vertex among some vertices, each being its own ancestor, too.

    Attributes
    ----------
    upwards
        The direction in which edges lead to parents: ``out`` or ``in``.
    tops
        int32 or int64 [resources]: that ancestor, or -1; empty where a vertex has several.
    distances
        int32 [resources]: how many edges are between.
    """

    upwards: Direction
    tops: NDArray[Any]
    distances: NDArray[np.int32]

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        return self.tops.nbytes + self.distances.nbytes

    def grown(self, resources: int) -> Tops:
        """Return it among so many vertices: new ones have no edge, and are no ancestors."""
        new = resources - len(self.tops)
        if not len(self.tops) or not new:
            return self
        tops = np.append(self.tops, np.full(new, -1, self.tops.dtype))
        return replace(self, tops=tops, distances=np.append(self.distances, np.zeros(new, np.int32)))

    def lengths(self, closure: Closure, direction: Direction) -> Ints:
        """Return how many neighbours each vertex has in a closure, out or in: int64."""
        from graphdb.storage.graph.derived.closure_kernels import tops_counted

        counts = np.zeros(len(self.tops), np.int64)
        tops_counted(self.tops, self.distances, *self._range(closure), direction == self.upwards, counts)
        return counts

    def fill(self, closure: Closure, direction: Direction, offsets: Ints, neighbours: NDArray[Any]) -> None:
        """See :meth:`Forest.fill`."""
        from graphdb.storage.graph.derived.closure_kernels import below_tops, tops_above

        if direction == self.upwards:
            tops_above(self.tops, offsets, neighbours)
        else:
            below_tops(self.tops, self.distances, *self._range(closure), offsets, neighbours)

    def _range(self, closure: Closure) -> tuple[int, int]:
        return closure.low, len(self.tops) if closure.high is None else closure.high


def partition_of_paths(
    paths: Forest | Tops,
    closure: Closure,
    number: int,
    direction: Direction,
    vertices: int,
    dtype: type[np.signedinteger[Any]],
    layer: Layer | None,
    lengths: Ints | None = None,
) -> Partition:
    """Build the partition of a closure, as that of an edge label with its number.

    ``lengths`` is what ``paths.lengths`` says of it, where somebody asked.
    """
    if direction == "both":
        out = partition_of_paths(paths, closure, number, "out", vertices, dtype, "direct")
        subjects, objects = np.repeat(out.keys, out.lengths()), out.neighbours.astype(np.int64)
        return build_partition(number, subjects, objects, direction, vertices, dtype, layer)
    lengths = paths.lengths(closure, direction) if lengths is None else lengths
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    neighbours = np.empty(offsets[-1], dtype)
    paths.fill(closure, direction, offsets, neighbours)
    return partition_of_runs(offsets, neighbours, closure.low == 0 and len(neighbours) > 0, layer)


def forest_of(
    children: Ints, above: Ints, upwards: Direction, resources: int, dtype: type[np.signedinteger[Any]]
) -> Forest:
    """Return edges as a forest in which each of some vertices has one above it; one without parents if they are none.

    Parameters
    ----------
    children, above
        int64 [edges]: resources, and what their edges lead to.
    dtype
        Of ``parents``.
    """
    from graphdb.storage.graph.derived.closure_kernels import depths_of

    parents, depths = np.full(resources, -1, dtype), np.full(resources, -1, np.int32)
    if not depths_of(children, above, parents, depths, np.empty(resources, np.int64)):
        return Forest(upwards, np.empty(0, dtype), np.empty(0, np.int32))
    return Forest(upwards, parents, depths)


def without_self(partition: Partition, layer: Layer | None) -> Partition:
    """Return the partition of paths of at least one edge, of that in which each resource is its own neighbour, too.

    It is a direct one.
    """
    from graphdb.storage.graph.derived.closure_kernels import others_of

    neighbours = np.empty(len(partition.neighbours) - partition.groups, partition.neighbours.dtype)
    others_of(partition.offsets, partition.neighbours, neighbours)
    return partition_of_runs(partition.offsets - np.arange(len(partition.offsets)), neighbours, False, layer)


def fits(pairs: int, low: int, resources: int, edges: int, memory: int) -> bool:
    """Whether a closure of so many pairs is worth building; ``memory`` is what its partitions may take, in bytes."""
    further = pairs - resources if low == 0 else pairs
    return further <= max(_PAIRS_PER_EDGE * edges, _PAIRS) and 16 * (pairs + resources) <= memory
