"""Frequent patterns: connected patterns with labels whose minimum image support reaches a threshold.

Level by level (Algorithm 2 of GAMMA, with domains in place of embeddings): a pattern of ``k + 1`` edges is a frequent
one of ``k`` edges and one edge more, to a new vertex or between two that are there, and it can be frequent only if
every single edge of it is.  Support never grows with a pattern, since the domain of a place shrinks; so a place's
candidates are its domain in the smaller pattern.  Patterns of a level are made once each, by canonical labels, and
their domains found on the host (:mod:`.domains`) or on a device (:mod:`graphdb.gpu.mining.domains`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common.errors import DeviceError, MemoryLimitError
from graphdb.grammar.syntax import MatchMode
from graphdb.mining import domains
from graphdb.mining.graph import MiningGraph
from graphdb.mining.growth import Additions, Shapes, candidates_of, distinct_shapes, joined, larger, single_edges
from graphdb.mining.limits import Limits
from graphdb.mining.patterns import NAMES, Pattern
from graphdb.pattern.graph import Clause, PatternEdge, PatternGraph, PatternVertex
from graphdb.plan.domains import EDGES, PLACES, DomainSearch, LabelledLists
from graphdb.plan.passes.pipeline import make_plan
from graphdb.storage.arrays.sorted_sets import unique
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph

Ints = NDArray[np.int64]

MOST = EDGES
"""Edges of a pattern."""
_BYTES = 1200
"""Bytes of memory that a pattern takes while its level is made, roughly."""
_STEPS = 1 << 17
"""Elements that are looked at to find embeddings one by one: as many as the matcher's plan takes."""
_DERIVED = 88
"""Bytes that lists of edges take for each while they are made, at most."""
_GROWTH = 4
"""By so much the work grows with each edge, roughly: what a device is expected to be worth."""


@dataclass(frozen=True, slots=True)
class Frequent:
    """A frequent pattern.

    Attributes
    ----------
    pattern
        Labels of its vertices are indices of the graph's ``vertex_labels``, of edges of its ``edge_labels``.
    support
        The minimum image support.
    example
        The vertices of one embedding (ids of the data), by place.
    matches
        How many embeddings there are, where they were asked for.
    """

    pattern: Pattern
    support: int
    example: tuple[int, ...]
    matches: int | None = None


def frequent_patterns(
    graph: MiningGraph, support: int, edges: int, *, matches: bool = False, limits: Limits | None = None
) -> list[Frequent]:
    """Find all patterns of up to ``edges`` (1 to 5) edges with a support of at least ``support``.

    An embedding maps the pattern's vertices to different vertices that have their labels (those of a vertex with
    several labels each; one without is a label of its own), and its edges to edges of the data; there may be other
    edges among them.

    Parameters
    ----------
    matches
        Count the embeddings of each pattern, too.

    Returns
    -------
    list of Frequent
        By the number of edges, then by canonical label; of isomorphic patterns one.

    Raises
    ------
    MemoryLimitError, QueryTimeout, QueryInterrupted
        As ``limits`` say.
    """
    limits = limits or Limits()
    if not graph.edges:
        return []
    share = 0.6 if matches else 1.0
    try:
        found = Miner(graph, support, edges, limits).levels(edges, share)
    except DeviceError:
        if limits.executor is None or limits.executor.name != "auto":
            raise
        found = Miner(graph, support, edges, replace(limits, executor=None)).levels(edges, share)
    if matches:
        found = _counted(graph, found, limits)
    limits.control.report(1.0)
    return found


def memory(graph: MiningGraph, threads: int) -> int:
    """Return the bytes that finding domains takes on the host, beside the graph and the domains themselves."""
    return domains.memory_of(len(graph), threads) + 16 * graph.edges + 4 * len(graph.labelled)


def search_of(graph: MiningGraph, edges: int, limits: Limits) -> DomainSearch:
    """Return what finds the domains of patterns of up to so many edges, on the host or on a device.

    Raises
    ------
    MemoryLimitError
        There is too little memory for it.
    """
    lists = lists_of(graph, limits)
    if limits.executor is None:
        return domains.HostDomains(lists, limits)
    scanned = float(graph.edges) * _GROWTH**edges
    found = limits.executor.domain_search(lists, scanned, limits.control, limits.memory)
    return found or domains.HostDomains(lists, limits)


def lists_of(graph: MiningGraph, limits: Limits) -> LabelledLists:
    """Return the graph as domains are found in it; made once."""
    found: LabelledLists | None = graph.plans.get("lists")
    if found is None:
        limits.need(_DERIVED * graph.edges, "lists of edges by their labels")
        found = graph.plans["lists"] = limits.cancellable(graph.edges, lambda: _lists_of(graph))
    return found


def where(graph: MiningGraph, edges: int, limits: Limits) -> str:
    """Return the name of what would find domains."""
    try:
        return search_of(graph, edges, limits).name
    except MemoryLimitError:
        return "cpu"


def _lists_of(graph: MiningGraph) -> LabelledLists:
    """The graph as domains are found in it."""
    n, directed = len(graph), graph.directed
    owner = np.concatenate([graph.source, graph.target])
    code = np.concatenate([2 * graph.label, 2 * graph.label + directed])
    keys = code * n + np.concatenate([graph.target, graph.source])
    codes = 2 * len(graph.edge_labels) * n
    if n * codes < 1 << 63:
        keys = np.sort(owner * codes + keys) % codes
    else:
        keys = keys[np.lexsort((keys, owner))]
    offsets = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(owner, minlength=n), out=offsets[1:])
    order = np.argsort(graph.labelled[:, 1], kind="stable")
    members = graph.labelled[order, 0].astype(np.int32)
    ends = np.searchsorted(graph.labelled[order, 1], np.arange(len(graph.vertex_labels) + 1))
    return LabelledLists(offsets, keys, directed, members, np.stack([ends[:-1], ends[1:]], axis=1).astype(np.int64))


class Miner:
    """The levels of one run.

    Attributes
    ----------
    search
        What finds the domains.
    """

    def __init__(self, graph: MiningGraph, support: int, edges: int, limits: Limits) -> None:
        self._graph, self._support, self._limits = graph, support, limits
        self._n = len(graph)
        self.search = search_of(graph, edges, limits)
        self._members = np.bincount(graph.labelled[:, 1], minlength=len(graph.vertex_labels))

    def levels(self, most: int, share: float) -> list[Frequent]:
        """All levels; they are done at ``share`` of the run."""
        found: list[Frequent] = []
        pairs = self._limits.cancellable(self._graph.edges, self._single_edges)
        level: list[Shapes] = [single_edges(pairs)]
        additions: Additions | None = None
        for number in range(most):
            if additions is not None:
                level = self._larger(level, additions)
            begin, part = share * number / most, share / most
            level, more = self._found(
                self._limits.cancellable(sum(map(len, level)) * 64, lambda level=level: self._distinct(level)),  # type: ignore[misc]
                number + 1 < most,
                lambda done, begin=begin, part=part: begin + part * done,  # type: ignore[misc]
            )
            found += more
            if not more or number + 1 == most:
                break
            additions = additions or Additions(level[0], len(self._graph.vertex_labels), self._graph.directed)
        if self.search.summary:
            self._limits.notes.append(self.search.summary)
        return found

    def _single_edges(self) -> Ints:
        """The (label, edge label, label) that edges have: int64 [triples, 3]; of labels that are frequent."""
        graph = self._graph
        labels = graph.labelled[self._members[graph.labelled[:, 1]] >= self._support]
        offsets = np.searchsorted(labels[:, 0], np.arange(self._n + 1))
        several = np.diff(offsets)
        total = several[graph.source] * several[graph.target]
        self._limits.need(int(total.sum()) * 40, "the labels of the edges' ends")
        edge = np.repeat(np.arange(graph.edges), total)
        rank = np.arange(len(edge)) - np.repeat(np.cumsum(total) - total, total)
        width = several[graph.target[edge]]
        first = labels[offsets[graph.source[edge]] + rank // np.maximum(width, 1), 1]
        second = labels[offsets[graph.target[edge]] + rank % np.maximum(width, 1), 1]
        names, kinds = len(graph.vertex_labels), len(graph.edge_labels)
        keys = unique((first * kinds + graph.label[edge]) * names + second)
        return np.stack([keys // names // kinds, keys // names % kinds, keys % names], axis=1)

    def _larger(self, level: list[Shapes], additions: Additions) -> list[Shapes]:
        """The patterns of a level with one edge more."""
        made: list[Shapes] = []
        for shapes in level:
            size = shapes.size
            count = sum(additions.count(shapes.labels[:, place]) for place in range(size)) * (size + 1)
            self._limits.need(count * _BYTES // (size + 1), f"{count // (size + 1):,} patterns")
            made += self._limits.cancellable(
                count * 8,
                lambda shapes=shapes: list(larger(shapes, additions, self._graph.directed)),  # type: ignore[misc]
            )
        return made

    def _distinct(self, made: list[Shapes]) -> list[Shapes]:
        """Each of isomorphic patterns once, in canonical order; by their numbers of vertices."""
        directed, kinds = self._graph.directed, len(self._graph.edge_labels)
        sizes = sorted({each.size for each in made if len(each)})
        together = (joined([each for each in made if each.size == size]) for size in sizes)
        return [distinct_shapes(shapes, directed, kinds) for shapes in together]

    def _found(
        self, made: list[Shapes], keep: bool, share: Callable[[float], float]
    ) -> tuple[list[Shapes], list[Frequent]]:
        """Find the domains of patterns; return the frequent ones, for the next level and as they are reported."""
        supports, examples = self.search.find(candidates_of(made), self._support, keep, share)
        frequent, ids = np.flatnonzero(supports), self._graph.ids
        lists = self.search.keep(frequent) if keep else np.zeros((len(frequent), PLACES), np.int64)
        found: list[Frequent] = []
        level, begin = [], 0
        for shapes in made:
            part = slice(begin, begin + len(shapes))
            which = supports[part] > 0
            patterns = shapes.patterns(which, self._graph.directed)
            level.append(shapes.chosen(which, lists[len(found) : len(found) + len(patterns)]))
            placed = ids[examples[part][which, : shapes.size]].tolist()
            columns = zip(patterns, supports[part][which].tolist(), placed, strict=True)
            found += [Frequent(pattern, support, tuple(example)) for pattern, support, example in columns]
            begin = part.stop
        return level, found


def _counted(graph: MiningGraph, found: list[Frequent], limits: Limits) -> list[Frequent]:
    """The same with how many embeddings there are: found one by one where few, else counted by the matcher."""
    lists = lists_of(graph, limits)
    data = DataGraph(ArraySource(graph.source, graph.label, graph.target, len(graph)))
    executor, one_by_one, result = limits.host, _OneByOne(lists), []
    with data.watched(limits.control.check):
        for number, each in enumerate(found):
            control = limits.control.within(*(0.6 + 0.4 * at / len(found) for at in (number, number + 1)))
            control.check()
            matches = one_by_one.count(each.pattern)
            if matches < 0:
                plan = make_plan(_matched(each.pattern, graph, lists), data)
                matches = executor.count(plan, control)
            control.report(1.0)
            result.append(replace(each, matches=matches))
    return result


def _matched(pattern: Pattern, graph: MiningGraph, lists: LabelledLists) -> PatternGraph:
    """A pattern as the matcher takes it, to be counted."""
    labelled = len(lists.spans) > 1
    members = lists.members.astype(np.int64)
    places = tuple(
        PatternVertex(NAMES[i], members[slice(*lists.spans[label])] if labelled else None)
        for i, label in enumerate(pattern.labels)
    )
    edges = tuple(
        PatternEdge(f"e{i}", a, b, (kind,), pattern.directed, 0) for i, (a, b, kind) in enumerate(pattern.edges)
    )
    clause = Clause(MatchMode.DIFFERENT_NODES, tuple(range(len(pattern))))
    return PatternGraph(places, edges, (clause,), count_only=True)


class _OneByOne:
    """Finds the embeddings of a pattern one by one, while that takes less than planning to count them."""

    def __init__(self, lists: LabelledLists) -> None:
        self._lists, self._rows = lists, dict[int, Ints]()
        self._candidates = np.zeros((PLACES, (lists.vertices + 63) // 64), np.int64)
        self._scratch = np.zeros((PLACES, 12), np.int64), np.zeros((3, PLACES), np.int64)

    def count(self, pattern: Pattern) -> int:
        """Return how many there are; -1: too many."""
        from graphdb.mining.kernels.frequent_kernels import count_embeddings

        lists, spans = self._lists, self._lists.spans[list(pattern.labels)]
        sizes = spans[:, 1] - spans[:, 0]
        if sizes.min() > _STEPS or sizes.sum() > _STEPS:
            return -1
        for place, label in enumerate(pattern.labels):
            self._candidates[place] = self._row(label)
        root = int(np.argmin(sizes))
        edges = np.array([(a, b, 2 * kind) for a, b, kind in pattern.edges], np.int64)
        roots = lists.members[slice(*spans[root])]
        arguments: tuple[Any, ...] = (
            *(lists.offsets, lists.keys, lists.vertices, lists.directed, len(pattern), len(edges), edges),
            *(self._candidates, roots, root, *self._scratch, _STEPS),
        )
        return int(count_embeddings(*arguments))

    def _row(self, label: int) -> Ints:
        """The vertices with a label as bits; made once."""
        if label not in self._rows:
            flags = np.zeros(64 * self._candidates.shape[1], bool)
            flags[self._lists.members[slice(*self._lists.spans[label])]] = True
            self._rows[label] = np.packbits(flags, bitorder="little").view(np.int64)
        return self._rows[label]
