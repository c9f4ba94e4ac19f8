"""AND/OR search: parts of a pattern that nothing joins once some vertices are bound are counted separately.

A matching order binds all vertices one after the other, so what two parts have found is multiplied by going through
it.  An AND/OR search tree (Dechter and Mateescu, *AND/OR search spaces for graphical models*, 2007) branches instead
where the vertices bound so far separate what is left: the count of a vertex is the sum, over its candidates, of the
product of its branches' counts.  A branch without a match ends its product at once, and what a branch has counted is
cached for when the vertices that it depends on are bound to the same values again.  Vertices that must differ and share
a candidate count as joined; that is what makes counts exact under DIFFERENT NODES.  Leaves are counted, not scanned,
and so are forests: the core-forest-leaf decomposition of CFL-Match is such a tree.

Trees are grown over a candidate space (:mod:`graphdb.plan.candidates.space`), whose sizes tell what they cost.  What
the one that is chosen costs, and where it is worth keeping counts, random walks down the tree tell better.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphdb.plan.bits import members
from graphdb.plan.candidates.space import CandidateSpace
from graphdb.plan.ordering.sample import MIN_ARRIVALS, walked_tree

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Pair = tuple[int, int]

DEAR = 1e7
"""Trees that are expected to scan so many elements (a tenth of a second) are compared with what a device sums up."""
LOOK = 5_000.0
"""Trees that are expected to scan fewer elements are not looked at with random walks (some 0.2 ms)."""
CACHED = 1.5
"""Results are cached where they are expected to be looked up so many times as often as they are computed."""
MOST_CACHED = 1 << 16
"""Results that a node caches at most; beyond, new ones take the places of old ones."""
_ATTEMPT = 60.0
"""What growing one tree costs, in elements per pattern vertex and vertex."""
_ROOTS = 4096
"""Roots of a pattern of one vertex that are tried between two questions whether to go on; of others, by the square of
their vertices."""


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A vertex of an AND/OR tree."""

    vertex: int
    parent: int
    """The node above (nodes stand behind their parents), or -1."""
    lists: tuple[int, ...]
    """The vertices above that it is joined with; without any, all its candidates are scanned."""
    conflicts: tuple[int, ...]
    """The vertices above that it must differ from, and might not."""
    depends: tuple[tuple[int, int], ...]
    """The vertices above that its count depends on, and the vertices from it on down that must differ from them, as
    bits: only where a binding is a candidate of one of these does it matter.  -1: it always matters."""
    cache_slots: int
    """Slots of the cache of counts, by what they depend on: a power of two, or 0."""
    leaf: bool
    estimate: float
    """How often its count is expected to be worked out."""


@dataclass(frozen=True, slots=True, eq=False)
class TreeCount:
    """Instead of the steps: count along an AND/OR tree over the plan's candidate space
    (:mod:`graphdb.plan.counting.tree`).
    """

    nodes: tuple[TreeNode, ...]
    space: CandidateSpace
    cost: float
    """Elements that it is expected to scan."""

    @property
    def worker_bytes(self) -> int:
        """Bytes that a worker needs for lists and for the counts it caches."""
        longest = max((len(found) for found in self.space.candidates), default=0)
        cached = sum(node.cache_slots * (len(node.depends) + 1) * 8 for node in self.nodes)
        return cached + longest * self.space.neighbours.itemsize * len(self.nodes)


def tree_order(space: CandidateSpace, check: Callable[[], None]) -> tuple[int, ...]:
    """A matching order for enumerating: the cheapest of those that some rules grow from some vertices."""
    sizes, shares, links = _figures(space)
    _, found, _ = _best_tree(False, sizes, shares, links, links, check)
    return tuple(found[:, 0].tolist())


def tree_count(space: CandidateSpace, unequal: set[Pair], check: Callable[[], None]) -> TreeCount:
    """Plan to count the homomorphisms over a candidate space in which some pairs of vertices differ.

    Parameters
    ----------
    unequal
        Pairs of vertices (lower number first) that must differ.
    check
        Called every few milliseconds; what it raises stops the planning.
    """
    sizes, shares, links = _figures(space)
    joined, apart = links.tolist(), [0] * len(sizes)
    for a, b in unequal - space.apart:
        if space.overlaps[a] >> b & 1:
            apart[a] |= 1 << b
            apart[b] |= 1 << a
    differ = np.array(apart, np.int64)
    cost, found, figures = _best_tree(True, sizes, shares, links, links | differ, check)
    if cost > LOOK:
        cost, figures = _looked(space, found, figures, sizes, differ)
    nodes: list[TreeNode] = []
    paths: list[tuple[int, ...]] = []
    for (vertex, parent, needs, part), (asked, worked) in zip(found.tolist(), figures.tolist(), strict=True):
        path = (*paths[parent], nodes[parent].vertex) if parent >= 0 else ()
        paths.append(path)
        depends = [(v, -1 if joined[v] & part else apart[v] & part) for v in path if needs >> v & 1]
        lists = tuple(v for v in path if joined[vertex] >> v & 1)
        conflicts = tuple(v for v in path if apart[vertex] >> v & 1)
        trivial = part == 1 << vertex and len(lists) < 2
        caches = asked > CACHED * worked and parent >= 0 and nodes[parent].parent >= 0 and not trivial
        nodes.append(
            TreeNode(
                vertex=vertex,
                parent=parent,
                lists=lists,
                conflicts=conflicts,
                depends=tuple(depends),
                cache_slots=min(1 << max(int(2 * worked), 15).bit_length(), MOST_CACHED) if caches else 0,
                leaf=part == 1 << vertex,
                estimate=worked,
            )
        )
    return TreeCount(tuple(nodes), space, cost)


def _looked(space: CandidateSpace, found: Ints, figures: Floats, sizes: Floats, differ: Ints) -> tuple[float, Floats]:
    """(work, ``figures``) of a tree by random walks down it; where too few of them arrive, by the model.

    Candidates with many partners are met more often than others, and lead to such: the model does not see that.
    """
    vertices, parents = found[:, 0].tolist(), found[:, 1].tolist()
    paths: list[int] = []
    for parent in parents:
        paths.append(0 if parent < 0 else paths[parent] | 1 << vertices[parent])
    conflicts = [list(members(int(differ[v]) & path)) for v, path in zip(vertices, paths, strict=True)]
    rows, work, arrived = walked_tree(space, vertices, parents, conflicts)
    looked, growth = np.empty_like(figures), np.ones(len(found))
    for i, parent in enumerate(parents):
        if parent >= 0:
            growth[parent] = figures[i, 0] / max(figures[parent, 1], 1e-9)
    cost = 0.0
    for i, (vertex, parent, needs, part) in enumerate(found.tolist()):
        asked, entered, known = 1.0, 1.0, True
        if parent >= 0:
            asked, entered = looked[parent, 1] * growth[parent], float(rows[parent])
            known = arrived[parent] >= MIN_ARRIVALS
        worked = min(asked, float(np.prod(sizes[list(members(needs))])))
        each = 2.0 + growth[i]
        if part == 1 << vertex and (paths[i] & needs).bit_count() < 2:
            each = 2.0  # a list that is counted, not scanned
        elif known:
            each = 1.0 + float(work[i]) / entered
        if known and arrived[i]:
            growth[i] = float(rows[i]) / entered
        looked[i] = asked, worked
        cost += asked + worked * each
    return cost, looked


def _best_tree(
    caching: bool, sizes: Floats, shares: Floats, links: Ints, near: Ints, check: Callable[[], None]
) -> tuple[float, Ints, Floats]:
    """The cheapest of some trees, those tried first that promise most: (work, ``found``, ``figures``) of
    :func:`graphdb.plan.counting.tree_kernels.grow`.
    """
    from graphdb.plan.counting.tree_kernels import try_roots

    count = len(sizes)
    found, figures, state = np.empty((count, 4), np.int64), np.empty((count, 2)), np.array([np.inf, 0.0])
    scratch = (found.copy(), figures.copy(), np.empty((count + 1, 3), np.int64), np.empty(count + 1))
    roots, some = np.argsort(sizes, kind="stable"), max(_ROOTS // count**2, 1)
    for at in range(0, count, some):
        check()
        fixed = (caching, _ATTEMPT * count**2, sizes, shares, links, near, state, found, figures)
        if try_roots(roots[at : at + some], *fixed, *scratch):
            break
    return float(state[0]), found, figures


def _figures(space: CandidateSpace) -> tuple[Floats, Floats, Ints]:
    """Candidates per vertex, the share of pairs that are joined, and which vertices are joined, as bits."""
    count = len(space.candidates)
    sizes = np.array([max(len(found), 1e-3) for found in space.candidates], np.float64)
    shares, links = np.zeros((count, count)), np.zeros(count, np.int64)
    for (a, b), pairs in space.pairs.items():
        shares[a, b] = pairs / (sizes[a] * sizes[b])
        links[a] |= 1 << b
    return sizes, shares, links
