"""The candidate space of a large pattern: candidates of each vertex, made arc-consistent and joined along its edges.

Candidate sets are refined along all pattern edges until nothing changes (arc consistency; the "dynamic programming" of
Han et al., *Efficient Subgraph Matching*, SIGMOD 2019, §4), where vertices that differ also need that many different
neighbours (neighbourhood label frequency, GraphQL and CFL; Hall's condition for whole groups).  What is left is joined
into partitions of the plan's own, one per pair of joined pattern vertices and direction, in PCSR's shape: a search
that reads these meets candidates only, in short lists, and needs to know nothing of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.pattern.graph import EdgeTest, PatternEdge, PatternGraph
from graphdb.plan.bits import members
from graphdb.plan.candidates.refine import refined
from graphdb.plan.candidates.refinement import ARC, GROUP, Refine, Refinement, Sets
from graphdb.plan.checks import Relation
from graphdb.plan.estimates.cost import Estimates
from graphdb.plan.injectivity import unequal_vertices
from graphdb.storage.graph.data_graph import DataGraph
from graphdb.storage.graph.pcsr import Direction, Partition

Ints = NDArray[np.int64]
Pair = tuple[int, int]

SMALLEST = 8
"""Patterns of fewer vertices are searched as they are."""
LEAST_CONDITIONS = 0.5
"""The share of vertices that must have a candidate set: where few have, there is little to refine."""
LARGEST = 62
"""Vertices of a pattern must be bits of an int64."""
CHEAP = 3_000_000.0
"""Neighbours that may be looked at without asking whether it pays: some milliseconds."""
PASSES = 6
"""Later passes seldom find anything."""
MOST_CELLS = 1 << 25
"""Cells of the offset layers together (one per data vertex, joined pair and direction; few are ever touched)."""


@dataclass(slots=True, eq=False)
class CandidateSpace:
    """Candidates and how they are joined.

    Attributes
    ----------
    candidates
        Per pattern vertex: sorted int64.
    fits
        Int64 [data vertices]: bit ``u`` of ``fits[x]`` says that ``x`` is a candidate of ``u``.
    overlaps
        Per pattern vertex: those with which it shares a candidate, as bits.
    pairs
        How many pairs of candidates each pair of joined pattern vertices has, both ways round.
    apart
        Joined pattern vertices (lower number first) that differ since no data vertex is joined with itself there.
    """

    candidates: tuple[Ints, ...]
    fits: Ints
    overlaps: tuple[int, ...]
    pairs: dict[Pair, int]
    apart: frozenset[Pair]
    offsets: Ints = field(repr=False)
    neighbours: NDArray[Any] = field(repr=False)
    longest: Ints = field(repr=False)
    rows: dict[Pair, int] = field(repr=False)
    """The row of ``offsets`` that leads from one pattern vertex to the other."""
    _partitions: dict[Pair, Partition] = field(default_factory=dict, repr=False)

    @property
    def bytes(self) -> int:
        """What its arrays take."""
        return self.fits.nbytes + self.offsets.nbytes + self.neighbours.nbytes

    def relation(self, a: int, b: int) -> Relation:
        """How a search goes from ``a`` to ``b``."""
        return Relation(None, "out", (a, b))

    def partition(self, pair: Pair) -> Partition:
        """The partners of the first vertex' candidates among the second's; only candidates may be looked up in it."""
        if pair not in self._partitions:
            row = self.rows[pair]
            self._partitions[pair] = Partition(
                layer="direct",
                offsets=self.offsets[row],
                groups=self.offsets.shape[1] - 1,
                neighbours=self.neighbours,
                code_offsets=None,
                codes=None,
                known_keys=self.candidates[pair[0]],
                max_degree=int(self.longest[row]),
                simple=True,
                loops=False,
            )
        return self._partitions[pair]

    def estimates(self) -> Estimates:
        """The same as figures for the cost model."""
        sizes = [max(len(found), 1e-3) for found in self.candidates]
        links: list[list[tuple[int, float, float]]] = [[] for _ in sizes]
        for (a, b), pairs in self.pairs.items():
            links[b].append((a, pairs / (sizes[a] * sizes[b]), pairs / sizes[a]))
        return Estimates(tuple(sizes), tuple(map(tuple, links)))


def candidate_space(
    pattern: PatternGraph, graph: DataGraph, expected: Callable[[], float], refine: Refine | None = None
) -> CandidateSpace | None:
    """Refine and join the candidates of a pattern; None where that does not pay.

    Parameters
    ----------
    expected
        A function that says how many elements a search without it is expected to scan: asked only where
        refining is not cheap.
    refine
        Refines candidates elsewhere, if it takes them.
    """
    conditions = sum(vertex.candidates is not None for vertex in pattern.vertices)
    count = len(pattern.vertices)
    if not SMALLEST <= count <= LARGEST or conditions < LEAST_CONDITIONS * count:
        return None
    links: list[PatternEdge | EdgeTest] = [*pattern.edges]
    links += [test for test in pattern.edge_tests if not test.negated]
    links = [link for link in links if link.source != link.target]
    joined = {(min(link.source, link.target), max(link.source, link.target)) for link in links}
    sets = [vertex.candidates for vertex in pattern.vertices if vertex.candidates is not None]
    if not all(found[0] >= 0 and found[-1] < graph.vertices for found in sets if len(found)):
        return None  # which is an error, raised when the steps are lowered
    if 2 * len(joined) * (graph.vertices + 1) > MOST_CELLS:
        return None
    work = _work(pattern, graph, links)
    if work > CHEAP and (work > expected() or 64 * work > graph.memory_budget_bytes):
        return None
    return _build(pattern, graph, links, work, refine)


def _work(pattern: PatternGraph, graph: DataGraph, links: list[PatternEdge | EdgeTest]) -> float:
    """The neighbours that one pass over all candidates is expected to look at."""
    work: dict[tuple[int, object, bool, bool], float] = {}
    for link in links:
        known = graph.statistics(link.labels)
        for end, keys in ((link.source, known.subjects), (link.target, known.objects)):
            candidates = pattern.vertices[end].candidates
            size = graph.vertices if candidates is None else len(candidates)
            kind = (end, link.labels, link.directed, end == link.source and link.directed)
            work[kind] = min(size, keys) * known.triples * (1 if link.directed else 2) / max(keys, 1)
    return sum(work.values())


def _build(
    pattern: PatternGraph,
    graph: DataGraph,
    links: list[PatternEdge | EdgeTest],
    work: float,
    refine: Refine | None,
) -> CandidateSpace:
    from graphdb.plan.candidates import space_kernels as kernels

    count = len(pattern.vertices)
    partitions: list[Partition] = []
    ways: dict[tuple[tuple[int, ...] | None, bool], tuple[int, int]] = {}
    towards: dict[tuple[int, int], int] = defaultdict(int)
    between: dict[Pair, set[int]] = defaultdict(set)
    near = [0] * count
    apart: set[Pair] = set()
    for link in links:
        a, b, kind = link.source, link.target, (link.labels, link.directed)
        if kind not in ways:
            ways[kind] = (len(partitions), len(partitions) + link.directed)
            directions: tuple[Direction, ...] = ("out", "in") if link.directed else ("both",)
            partitions += [graph.partition(link.labels, direction) for direction in directions]
        outward, inward = ways[kind]
        towards[a, outward] |= 1 << b
        towards[b, inward] |= 1 << a
        pair = (a, b) if a < b else (b, a)
        between[pair].add(outward if a < b else inward)
        if not partitions[outward].loops:
            apart.add(pair)
        near[a] |= 1 << b
        near[b] |= 1 << a
    sets = tuple(_initial(pattern, graph, v, partitions, towards) for v in range(count))
    arcs, groups, first_arc = _arcs(pattern, sets, towards)
    needs = (arcs, first_arc, groups, np.array(near, np.int64))
    task = Refinement(sets, tuple(partitions), *needs, graph.vertices, graph.dtype, PASSES, work, graph.check)
    found = refined(task, refine)
    candidates, starts, sizes, fits = found.flat, found.starts, found.sizes, found.fits
    table = np.array([partition.row for partition in partitions], np.int64).reshape(-1, len(ARC))
    like, address = np.empty(0, graph.dtype), table.ctypes.data
    pairs = sorted(between)
    flat = [r for pair in pairs for r in sorted(between[pair])]
    ends = np.cumsum([len(between[pair]) for pair in pairs])
    table_of_links = np.array(
        [(*pair, end - len(between[pair]), end) for pair, end in zip(pairs, ends.tolist(), strict=True)], np.int64
    ).reshape(-1, 4)
    offsets = np.empty((2 * len(pairs), graph.vertices + 1), np.int64)
    counter, longest = np.zeros(graph.vertices, np.int64), np.zeros(2 * len(pairs), np.int64)
    room, used = 1 << 16, -1
    while used < 0:
        graph.check()
        out = np.empty(room, graph.dtype)
        cells = (candidates, starts, sizes, fits, offsets, out, counter, longest, like)
        used = kernels.join_candidates(address, table_of_links, np.array(flat, np.int64), *cells)
        room *= 4
    left = tuple(candidates[start : start + size] for start, size in zip(starts, sizes, strict=True))
    joins = [0] * len(pairs)
    if sizes.all() and pairs:
        ones = table_of_links[:, 0]
        begin, end = candidates[starts[ones]], candidates[starts[ones] + sizes[ones] - 1] + 1
        forth = np.arange(0, 2 * len(pairs), 2)
        joins = (offsets[forth, end] - offsets[forth, begin]).tolist()
    known: dict[Pair, int] = {}
    numbers: dict[Pair, int] = {}
    for i, (a, b) in enumerate(pairs):
        known[a, b] = known[b, a] = joins[i]
        numbers[a, b], numbers[b, a] = 2 * i, 2 * i + 1
    overlaps = np.zeros(len(sizes), np.int64)
    kernels.common_fits(candidates, starts, sizes, fits, overlaps)
    return CandidateSpace(left, fits, tuple(overlaps.tolist()), known, frozenset(apart), offsets, out, longest, numbers)


def _initial(
    pattern: PatternGraph,
    graph: DataGraph,
    vertex: int,
    partitions: list[Partition],
    towards: dict[tuple[int, int], int],
) -> Ints:
    """The candidates to begin with: the vertex's own, or all that have the rarest of its edges.

    A vertex that only edge tests speak of ranges over the universe: a test binds no literal.
    """
    candidates = pattern.vertices[vertex].candidates
    if candidates is not None:
        return candidates
    if not any(vertex in (edge.source, edge.target) for edge in pattern.edges):
        return graph.universe()
    keys = [partitions[row].keys for v, row in towards if v == vertex]
    return min(keys, key=len) if keys else graph.universe()


def _arcs(pattern: PatternGraph, sets: Sets, towards: dict[tuple[int, int], int]) -> tuple[Ints, Ints, Ints]:
    """The tables ``arcs``, ``groups`` and ``first_arc`` of :func:`graphdb.plan.candidates.space_kernels.refine`.

    ``towards`` says to which vertices (as bits) the edges of a vertex lead that are in a partition (its row).
    """
    differ = [0] * len(sets)
    for a, b in unequal_vertices(pattern):
        differ[b] |= 1 << a
    alike: dict[int, int] = defaultdict(int)
    for v, found in enumerate(sets):
        alike[id(found)] |= 1 << v
    several = [together for together in alike.values() if together & (together - 1)]
    arcs: list[tuple[int, ...]] = []
    groups: list[tuple[int, int]] = []
    for (v, row), others in towards.items():
        first, least = len(groups), 1
        parts = [others & together for together in several] if others & (others - 1) else []
        parts = sorted((part for part in parts if part & (part - 1)), key=lambda part: part & -part)
        whole = [others] if others & (others - 1) and others not in parts else []
        for group in parts + whole:
            below = 0
            for b in members(group):
                if below & ~differ[b]:
                    break
                below |= 1 << b
            else:
                groups.append((group, group.bit_count()))
                least = max(least, group.bit_count())
        arcs.append((v, row, others, first, len(groups), least))
    arcs.sort(key=lambda arc: arc[0])
    table = np.array(arcs, np.int64).reshape(-1, len(ARC))
    first_arc = np.searchsorted(table[:, 0], np.arange(len(pattern.vertices) + 1)).astype(np.int64)
    return table, np.array(groups, np.int64).reshape(-1, len(GROUP)), first_arc
