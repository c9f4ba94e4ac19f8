"""The data graph as mining reads it: a simple graph of dense vertex numbers, with labels of vertices and edges.

Edges are (source, label, target), each once, whatever parallel edges the data have of one label; an edge from a vertex
to itself is left out.  Two vertices may be joined by several edges, of different labels or directions: they are
*adjacent* once, and the set of their edges has a number, the pair's *state*.  Vertices without edges are left out: no
connected pattern of two vertices has them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphdb.common.lazy import lazy
from graphdb.plan.extension import Adjacency
from graphdb.storage.arrays.sorted_sets import unique
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph
from graphdb.storage.graph.derived.orientation import Oriented, by_degree

Ints = NDArray[np.int64]
Positions = NDArray[np.int32]

UNLABELLED, ONE_WAY = 0, 1
"""The edge labels of :attr:`MiningGraph.data`: of edges whose direction does not matter, as there is none, or as there
are edges both ways; and of edges one way."""


@dataclass(frozen=True, eq=False)
class MiningGraph:
    """A graph to mine; :meth:`of` makes one.

    Attributes
    ----------
    ids
        int64 [n]: the data's ids of the vertices, rising; everything else here says ``0 … n-1``.
    source, target, label
        int64 [edges]: sorted by (source, target, label), each edge once.  Where edges have no direction, the lower
        vertex is the source.  ``label`` counts the entries of ``edge_labels``.
    edge_labels, vertex_labels
        int64: the data's ids of labels; of edges without labels, and of vertices without any, -1.
    labelled
        int64 [pairs, 2]: (vertex, its label, an index of ``vertex_labels``), sorted; a vertex may have several, and
        then is in as many pairs.
    directed
        Whether edges have a direction.
    offsets, neighbours
        int64 [n + 1] and int32: the adjacent vertices of each, sorted, whatever the direction of edges.
    states
        int64, beside ``neighbours``: what joins the two, seen from the vertex whose neighbour it is.
    codes
        For each state the codes of its edges, sorted: ``2 * label``, and 1 more for an edge that comes from the
        neighbour.
    """

    ids: Ints
    source: Ints
    target: Ints
    label: Ints
    edge_labels: Ints
    vertex_labels: Ints
    labelled: Ints
    directed: bool
    offsets: Ints
    neighbours: Positions
    states: Ints
    codes: tuple[tuple[int, ...], ...] = field(repr=False)

    @classmethod
    def of(
        cls,
        source: ArrayLike,
        target: ArrayLike,
        labels: ArrayLike | None = None,
        *,
        directed: bool = False,
        vertex_labels: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> MiningGraph:
        """Make a graph of edges.

        Parameters
        ----------
        source, target
            int64 [edges]: ids of vertices, any numbers that are not negative.
        labels
            int64 [edges]: ids of edge labels; None for edges without.
        directed
            Whether (a, b) and (b, a) are different edges.
        vertex_labels
            (vertex ids, label ids), int64, each pair once: vertices may have several labels, or none.
        """
        ends = np.stack([np.asarray(source, np.int64).reshape(-1), np.asarray(target, np.int64).reshape(-1)])
        kinds = np.full(ends.shape[1], -1) if labels is None else np.asarray(labels, np.int64).reshape(-1)
        proper = ends[0] != ends[1]
        ends, kinds = ends[:, proper], kinds[proper]
        ids, ends = _numbered(ends)
        if not directed:
            ends = np.sort(ends, axis=0)
        if labels is None:
            edge_labels, label = np.array([-1]), np.zeros(len(kinds), np.int64)
        else:
            edge_labels, label = np.unique(kinds, return_inverse=True)
        rows = _sorted(len(ids), len(edge_labels), ends[0], ends[1], label.astype(np.int64))
        new = _new(*rows)
        rows = (rows[0][new], rows[1][new], rows[2][new])
        offsets, neighbours, states, codes = _adjacency(*rows, len(ids), len(edge_labels), directed)
        names, labelled = _labelled(ids, vertex_labels)
        return cls(ids, *rows, edge_labels, names, labelled, directed, offsets, neighbours, states, codes)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def edges(self) -> int:
        """How many edges there are."""
        return len(self.source)

    @property
    def pairs(self) -> int:
        """How many pairs of vertices are adjacent."""
        return len(self.neighbours) // 2

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        arrays = (self.ids, self.source, self.target, self.label, self.labelled, self.offsets)
        return sum(array.nbytes for array in (*arrays, self.neighbours, self.states))

    @lazy
    def label_of(self) -> Ints:
        """int64 [n]: a number for the labels of each vertex; two have the same where all their labels are."""
        found = np.zeros(len(self), np.int64)
        if len(self.labelled) == len(self):  # one label each
            found[self.labelled[:, 0]] = self.labelled[:, 1]
            return found
        rank = np.arange(len(self.labelled)) - np.searchsorted(self.labelled[:, 0], self.labelled[:, 0])
        for i in range(int(rank.max(initial=-1)) + 1):
            vertices, labels = self.labelled[rank == i].T
            key = np.zeros(len(self), np.int64)
            key[vertices] = 1 + found[vertices] * (len(self.vertex_labels) + 1) + labels
            found = np.unique(np.stack([found, key]), axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)
        return found

    @lazy
    def oriented(self) -> Oriented:
        """Adjacent vertices oriented by degree: vertices by their ranks, see :attr:`ranked`."""
        return self.undirected.oriented((UNLABELLED,))

    @lazy
    def ranked(self) -> Ints:
        """int64 [n]: the vertex of each rank."""
        return by_degree(np.diff(self.offsets))

    @lazy
    def data(self) -> DataGraph:
        """The graph as the matcher reads it, without labels of ours: each adjacent pair is one edge."""
        new = _new(self.source, self.target)
        source, target = self.source[new], self.target[new]
        if not self.directed:
            return DataGraph(ArraySource(source, np.full(len(source), UNLABELLED), target, len(self)))
        keys, back = source * len(self) + target, target * len(self) + source
        mutual = np.isin(keys, back, assume_unique=True)
        once = ~mutual | (source < target)
        kinds = np.where(mutual, UNLABELLED, ONE_WAY)
        return DataGraph(ArraySource(source[once], kinds[once], target[once], len(self)))

    @lazy
    def ways(self) -> NDArray[np.uint8]:
        """uint8, beside the neighbours: 1 for edges to the neighbour, 2 for edges from it, 3 for both."""
        of_state = [np.bitwise_or.reduce([1 << (code & 1) for code in codes]) for codes in self.codes]
        return np.array(of_state, np.uint8)[self.states]

    @lazy
    def adjacency(self) -> Adjacency:
        """The adjacent vertices, as devices extend embeddings along them."""
        return Adjacency(self.offsets, self.neighbours, ways=self.ways)

    @lazy
    def incidence(self) -> Adjacency:
        """The edges at each vertex, as devices extend embeddings along them."""
        offsets, incident = self.incident
        return Adjacency(offsets, *_narrow(incident, self.source, self.target))

    @lazy
    def undirected(self) -> DataGraph:
        """The adjacent pairs as the matcher reads them: one edge each, whatever joins the two."""
        if not self.directed:
            return self.data
        owner = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        upwards = owner < self.neighbours
        source, target = owner[upwards], self.neighbours[upwards].astype(np.int64)
        return DataGraph(ArraySource(source, np.full(len(source), UNLABELLED), target, len(self)))

    @lazy
    def plans(self) -> dict[object, Any]:
        """What was planned over these, by what it counts: executors cache with a plan what they need for it."""
        return {}

    @lazy
    def incident(self) -> tuple[Ints, Ints]:
        """int64 [n + 1] and [2 * edges]: the edges at each vertex, sorted."""
        ends = np.concatenate([self.source, self.target])
        edges = np.tile(np.arange(self.edges), 2)
        order = np.lexsort((edges, ends))
        offsets = np.zeros(len(self) + 1, np.int64)
        np.cumsum(np.bincount(ends, minlength=len(self)), out=offsets[1:])
        return offsets, np.ascontiguousarray(edges[order])


def _narrow(first: Ints, second: Ints, third: Ints) -> tuple[Positions, Positions, Positions]:
    return first.astype(np.int32), second.astype(np.int32), third.astype(np.int32)


def _sorted(n: int, kinds: int, source: Ints, target: Ints, kind: Ints) -> tuple[Ints, Ints, Ints]:
    """Return rows of two vertices below ``n`` and a number below ``kinds``, sorted."""
    if n * n * kinds < 1 << 63:  # as one number each, which is sorted much faster
        keys = np.sort((source * n + target) * kinds + kind)
        pairs = keys // kinds if kinds > 1 else keys
        source = pairs // n
        return source, pairs - source * n, keys - pairs * kinds if kinds > 1 else np.zeros_like(keys)
    order = np.lexsort((kind, target, source))
    return source[order], target[order], kind[order]


def _new(*columns: Ints) -> NDArray[np.bool_]:
    """Which of sorted rows differ from the row before."""
    new = np.zeros(len(columns[0]), bool)
    new[:1] = True
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return new


def _adjacency(
    source: Ints, target: Ints, label: Ints, n: int, labels: int, directed: bool
) -> tuple[Ints, Positions, Ints, tuple[tuple[int, ...], ...]]:
    """Return the neighbour lists with the states of pairs, and the codes of states."""
    owner, other = np.concatenate([source, target]), np.concatenate([target, source])
    code = np.concatenate([2 * label, 2 * label + directed])
    owner, other, code = _sorted(n, 2 * labels, owner, other, code)
    first = np.flatnonzero(_new(owner, other))
    sizes = np.diff(np.append(first, len(owner)))
    used = unique(code[first]) if labels > 1 else np.flatnonzero(np.bincount(code[first], minlength=2))
    state = np.searchsorted(used, code[first])
    codes = [(int(kind),) for kind in used]
    for i in range(1, int(sizes.max(initial=1))):  # the edges of pairs that have several, one more at a time
        more = np.flatnonzero(sizes > i)
        longer, place = np.unique(np.stack([state[more], code[first[more] + i]]), axis=1, return_inverse=True)
        state[more] = len(codes) + place.reshape(-1)
        codes += [(*codes[before], int(kind)) for before, kind in longer.T]
    offsets = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(owner[first], minlength=n), out=offsets[1:])
    return offsets, other[first].astype(np.int32), state.astype(np.int64), tuple(codes)


def _numbered(ends: Ints) -> tuple[Ints, Ints]:
    """Return the ids of vertices, rising, and the ends with each id's place among them."""
    most = int(ends.max(initial=-1)) + 1
    if most > 16 * ends.size + 1024:
        ids, places = np.unique(ends, return_inverse=True)
        return ids, places.reshape(ends.shape).astype(np.int64)
    seen = np.zeros(most, bool)
    seen[ends.reshape(-1)] = True
    return np.flatnonzero(seen), (np.cumsum(seen) - 1)[ends]


def _labelled(ids: Ints, given: tuple[ArrayLike, ArrayLike] | None) -> tuple[Ints, Ints]:
    """Return the labels of vertices, and the pairs (vertex, label); what has none is in a pair with -1."""
    empty = np.empty(0, np.int64)
    vertices, labels = (empty, empty) if given is None else (np.asarray(column, np.int64) for column in given)
    place = np.minimum(np.searchsorted(ids, vertices), max(len(ids) - 1, 0))
    here = ids[place] == vertices if len(ids) else np.zeros(len(vertices), bool)
    place, labels = place[here], labels[here]
    without = np.ones(len(ids), bool)
    without[place] = False
    bare = np.flatnonzero(without)
    place, labels = np.concatenate([place, bare]), np.concatenate([labels, np.full(len(bare), -1)])
    names, index = np.unique(labels, return_inverse=True)
    keys = unique(place.astype(np.int64) * len(names) + index.reshape(-1))
    return names, np.stack(np.divmod(keys, max(len(names), 1)), axis=1)
