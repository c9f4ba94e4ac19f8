"""Cliques: complete subgraphs, counted by size, over the graph oriented by degree.

All cliques of a size are counted by the matcher (:class:`graphdb.plan.physical.CliqueCount`), on the host or a device.
Maximal ones are enumerated (:mod:`.kernels.clique_kernels`), and so is the first of each size, which is the example.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from graphdb.execute.scheduler import Pause
from graphdb.grammar.syntax import MatchMode
from graphdb.mining.graph import UNLABELLED, MiningGraph
from graphdb.mining.limits import BUDGET, Limits
from graphdb.pattern.graph import Clause, PatternEdge, PatternGraph, PatternVertex
from graphdb.plan.executor import Control
from graphdb.plan.passes.pipeline import make_plan
from graphdb.plan.physical import PhysicalPlan
from graphdb.storage.graph.pcsr import stable_order

Ints = NDArray[np.int64]

LEAST, MOST = 3, 8
"""Sizes of cliques."""
MOST_MAXIMAL = 1000
"""Vertices of maximal cliques."""
_PIECES = 64
"""Pieces of work for each thread."""


@dataclass(frozen=True, slots=True)
class Cliques:
    """The cliques of one size: how many there are, and the vertices of one (ids of the data), rising."""

    size: int
    count: int
    example: tuple[int, ...]


def cliques(
    graph: MiningGraph, least: int = LEAST, most: int = MOST, *, maximal: bool = False, limits: Limits | None = None
) -> list[Cliques]:
    """Count the cliques of ``least`` to ``most`` vertices, whatever the direction and labels of edges.

    Parameters
    ----------
    maximal
        Count those only that are part of no larger clique.

    Returns
    -------
    list of Cliques
        One for each size; none for sizes that the graph has no such clique of.

    Raises
    ------
    MemoryLimitError, QueryTimeout, QueryInterrupted
        As ``limits`` say.
    """
    limits = limits or Limits()
    limits.need(memory(graph, limits.threads, maximal), "rows of bits")
    if maximal:
        return _enumerated(graph, least, most, limits)
    found: list[Cliques] = []
    control, sizes = limits.control, range(least, most + 1)
    for size in sizes:
        part = control.within((size - least) / len(sizes), (size - least + 1) / len(sizes))
        count = _counted(graph, size, limits, part)
        control.threads = max(control.threads, part.threads)
        if not count:  # nor is there a larger one
            break
        found.append(Cliques(size, count, _first(graph, size, limits)))
    control.report(1.0)
    return found


def _counted(graph: MiningGraph, size: int, limits: Limits, control: Control) -> int:
    """Count the cliques of one size: where the executor has a kernel for them, else on the host."""
    plan = clique_plan(graph, size)
    executor = limits.counts
    if not executor.counts_cliques(plan):
        executor = limits.host
    return executor.count(plan, control) // plan.automorphisms


def clique_plan(graph: MiningGraph, size: int) -> PhysicalPlan:
    """Return the plan that counts cliques; made once for a graph."""
    found: PhysicalPlan | None = graph.plans.get(("clique", size))
    if found is None:
        vertices = tuple(PatternVertex(f"v{place}") for place in range(size))
        edges = tuple(
            PatternEdge(f"e{number}", a, b, (UNLABELLED,), False, 0)
            for number, (a, b) in enumerate(combinations(range(size), 2))
        )
        clause = Clause(MatchMode.DIFFERENT_NODES, tuple(range(size)))
        found = make_plan(PatternGraph(vertices, edges, (clause,), count_only=True), graph.undirected)
        graph.plans["clique", size] = found
    return found


def memory(graph: MiningGraph, threads: int, maximal: bool) -> int:
    """Return the bytes that counting cliques takes beside the graph."""
    degrees = np.diff(graph.offsets)
    widest = int(np.diff(graph.oriented.offsets).max(initial=0))
    words = (widest + 63) // 64
    each = 8 * (len(graph) + words * widest)
    if maximal:
        each += 8 * (_outer(graph) + 4 * (widest + 2) * words) + 4 * int(degrees.max(initial=0))
    made = 8 * len(graph) + 36 * len(graph.oriented.neighbours)  # lower neighbours, and what they are sorted with
    return threads * each + graph.oriented.nbytes + made


def _lower(graph: MiningGraph) -> tuple[Ints, NDArray[np.int32]]:
    """The lower neighbours of each rank: int64 [n + 1], where they begin, and int32; made once for a graph."""
    found: tuple[Ints, NDArray[np.int32]] | None = graph.plans.get("lower")
    if found is None:
        oriented, ranks = graph.oriented, len(graph)
        source = np.repeat(np.arange(ranks, dtype=np.int32), np.diff(oriented.offsets))
        target = oriented.neighbours.astype(np.int64)
        below = np.zeros(ranks + 1, np.int64)
        np.cumsum(np.bincount(target, minlength=ranks), out=below[1:])
        found = graph.plans["lower"] = below, source[stable_order(target, ranks)]
    return found


def _outer(graph: MiningGraph) -> int:
    """The words of the most that lower neighbours of one vertex take."""
    higher = np.diff(graph.oriented.offsets)
    lower = np.diff(graph.offsets)[graph.ranked] - higher
    return int((lower * ((higher + 63) // 64)).max(initial=0))


def _first(graph: MiningGraph, size: int, limits: Limits) -> tuple[int, ...]:
    """The first clique of a size, which is known to be there."""
    search = _Search(graph, size, size, first=True)
    search.start(0, len(graph))
    while not search.advance():
        limits.control.check()
    return _example(graph, search.examples[size, :size])


def _example(graph: MiningGraph, ranks: Ints) -> tuple[int, ...]:
    return tuple(sorted(graph.ids[graph.ranked[ranks]].tolist()))


def _enumerated(graph: MiningGraph, least: int, most: int, limits: Limits) -> list[Cliques]:
    """Enumerate maximal cliques: ranges of ranks, scheduled on threads."""
    ranks = len(graph)
    work = np.append(0, np.cumsum(np.diff(graph.offsets)[graph.ranked]))
    shares = np.linspace(0, work[-1], limits.threads * _PIECES + 1)[1:-1]
    bounds = sorted({0, ranks, *np.searchsorted(work, shares).tolist()})
    # The densest part is at the end: it goes first, so that no worker is left alone with it.
    searches: dict[int, _Search] = {}
    done = [0]

    def search(bounds: tuple[int, int], worker: int, pause: Pause) -> None:
        found = searches.get(worker) or searches.setdefault(worker, _Search(graph, least, most))
        found.start(*bounds)
        while not found.advance():
            pause()
        done.append(int(work[bounds[1]] - work[bounds[0]]))

    pieces = list(pairwise(bounds))[::-1]
    limits.each(pieces, search, lambda: sum(done) / max(int(work[-1]), 1))
    limits.control.report(1.0)
    counts = sum((found.counts for found in searches.values()), np.zeros(most + 1, np.int64))
    sizes = np.flatnonzero(counts).tolist()
    # Of several workers' examples the least is taken: the same one every time.
    examples = {
        size: min(_example(graph, found.examples[size, :size]) for found in searches.values() if found.counts[size])
        for size in sizes
    }
    return [Cliques(size, int(counts[size]), examples[size]) for size in sizes]


class _Search:
    """One worker's search, with its scratch memory."""

    def __init__(self, graph: MiningGraph, least: int, most: int, *, first: bool = False) -> None:
        from graphdb.mining.kernels.clique_kernels import FOUND

        oriented, ranks = graph.oriented, len(graph)
        below, lower = _lower(graph)
        widest = int(np.diff(oriented.offsets).max(initial=0))
        words, depths = (widest + 63) // 64, min(widest, most) + 2
        self._lists = (oriented.offsets, oriented.neighbours, below, lower, least, most, first)
        self._state = np.zeros(FOUND + 1, np.int64)
        self.counts = np.zeros(most + 1, np.int64)
        self.examples = np.zeros((most + 1, most), np.int64)
        self._scratch = (
            np.zeros(ranks, np.int64),
            np.zeros(widest * words, np.int64),
            np.zeros(_outer(graph), np.int64),
            np.zeros(int(np.diff(below).max(initial=0)), np.int32),
            np.zeros(depths + 1, np.int64),
            np.zeros((depths + 1, 4, max(words, 1)), np.int64),
        )

    def start(self, begin: int, end: int) -> None:
        """Search the cliques whose lowest rank is ``begin … end-1``."""
        self._state[:] = (begin, end, 0, 0, 0)

    def advance(self) -> bool:
        """Go on for some milliseconds: whether all is done."""
        from graphdb.mining.kernels.clique_kernels import maximal_cliques

        found = (self.counts, self.examples, BUDGET)
        return bool(maximal_cliques(*self._lists, self._state, *self._scratch, *found))
