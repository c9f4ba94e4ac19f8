"""Frequent patterns: connected patterns with labels whose minimum image support reaches a threshold.

Level by level (Algorithm 2 of GAMMA, with domains in place of embeddings): a pattern of ``k + 1`` edges is a frequent
one of ``k`` edges and one edge more, to a new vertex or between two that are there, and it can be frequent only if
every single edge of it is.  Support never grows with a pattern, since the domain of a place shrinks; so a place's
candidates are its domain in the smaller pattern.  Patterns of a level are made once each, by canonical labels, and
their domains found on the host (:mod:`.domains`) or on a device (:mod:`graphdb.gpu.mining.domains`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from graphdb.common.errors import DeviceError, MemoryLimitError
from graphdb.execute.host import HostExecutor
from graphdb.grammar.syntax import MatchMode
from graphdb.mining import domains
from graphdb.mining.canonical import canonical, distinct
from graphdb.mining.graph import MiningGraph
from graphdb.mining.limits import Limits
from graphdb.mining.patterns import NAMES, Pattern
from graphdb.pattern.graph import Clause, PatternEdge, PatternGraph, PatternVertex
from graphdb.plan.domains import EDGES, PLACES, Candidates, DomainSearch, LabelledLists
from graphdb.plan.passes.pipeline import make_plan
from graphdb.storage.graph.data_graph import ArraySource, DataGraph

Ints = NDArray[np.int64]

MOST = EDGES
"""Edges of a pattern."""
_BYTES = 1200
"""Bytes of memory that a pattern takes while its level is made, roughly."""
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


@dataclass(frozen=True, eq=False)
class _Level:
    """The frequent patterns of a level, and the number of each place's domain: int64 [patterns, 6]."""

    patterns: tuple[Pattern, ...]
    orbits: Ints
    lists: Ints


@dataclass(frozen=True, eq=False)
class _Made:
    """Patterns of one level to look at, each once; and as their domains are searched for."""

    patterns: tuple[Pattern, ...]
    candidates: Candidates


Raw = tuple[tuple[int, ...], tuple[tuple[int, int, int], ...], tuple[int, ...]]
"""A pattern as it is made: labels, edges (place, place, label), and the list of each place's candidates."""


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
    lists: LabelledLists | None = graph.plans.get("lists")
    if lists is None:
        lists = graph.plans["lists"] = limits.cancellable(graph.edges, lambda: _lists_of(graph))
    if limits.executor is None:
        return domains.HostDomains(lists, limits)
    scanned = float(graph.edges) * _GROWTH**edges
    found = limits.executor.domain_search(lists, scanned, limits.control, limits.memory)
    return found or domains.HostDomains(lists, limits)


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
        nothing = np.full((0, PLACES), -1)
        level = _Level((), nothing, nothing)
        # By the labels of the vertex that they start from: what can be added to it.
        by_label: dict[int, list[tuple[int, int, bool]]] = {}
        for number in range(most):
            made = self._raw_edges(pairs) if number == 0 else self._larger(level, by_label)
            begin, part = share * number / most, share / most
            level, more = self._found(
                self._distinct(made),
                number + 1 < most,
                lambda done, begin=begin, part=part: begin + part * done,  # type: ignore[misc]
            )
            found += more
            if number == 0:
                by_label = _extensions(level.patterns, self._graph.directed)
            if not level.patterns:
                break
        if self.search.summary:
            self._limits.notes.append(self.search.summary)
        return found

    def _single_edges(self) -> Ints:
        """The (label, edge label, label) that edges have: int64 [triples, 3]; of labels that are frequent."""
        graph = self._graph
        kept = graph.labelled[self._members[graph.labelled[:, 1]] >= self._support]
        offsets = np.searchsorted(kept[:, 0], np.arange(self._n + 1))
        several = np.diff(offsets)
        total = several[graph.source] * several[graph.target]
        self._limits.need(int(total.sum()) * 40, "the labels of the edges' ends")
        edge = np.repeat(np.arange(graph.edges), total)
        rank = np.arange(len(edge)) - np.repeat(np.cumsum(total) - total, total)
        width = several[graph.target[edge]]
        first = kept[offsets[graph.source[edge]] + rank // np.maximum(width, 1), 1]
        second = kept[offsets[graph.target[edge]] + rank % np.maximum(width, 1), 1]
        names, kinds = len(graph.vertex_labels), len(graph.edge_labels)
        keys = np.unique((first * kinds + graph.label[edge]) * names + second)
        return np.stack([keys // names // kinds, keys // names % kinds, keys % names], axis=1)

    def _raw_edges(self, triples: Ints) -> Iterator[Raw]:
        for first, kind, second in triples.tolist():
            yield (first, second), ((0, 1, kind),), (first, second)

    def _larger(self, level: _Level, by_label: dict[int, list[tuple[int, int, bool]]]) -> Iterator[Raw]:
        """The patterns of a level with one edge more."""
        directed = self._graph.directed
        for number, pattern in enumerate(level.patterns):
            self._limits.control.check()
            size, known = len(pattern), set(pattern.edges)
            lists = tuple(level.lists[number, :size].tolist())
            for place in range(size):
                for kind, label, onwards in by_label.get(pattern.labels[place], ()):
                    if level.orbits[number, place] == place and size < PLACES:
                        edge = (place, size, kind) if onwards else (size, place, kind)
                        yield (*pattern.labels, label), (*pattern.edges, edge), (*lists, label)
                    for other in range(size) if directed else range(place + 1, size):
                        edge = (place, other, kind)
                        if onwards and other != place and pattern.labels[other] == label and edge not in known:
                            yield pattern.labels, (*pattern.edges, edge), lists

    def _distinct(self, made: Iterator[Raw]) -> _Made:
        """Each of isomorphic patterns once, in canonical order."""
        by_size: dict[int, list[Raw]] = {}
        for count, raw in enumerate(made):
            if count % 1024 == 0:
                self._limits.control.check()
                self._limits.need(count * _BYTES, f"{count:,} patterns")
            by_size.setdefault(len(raw[0]), []).append(raw)
        parts = [self._canonical(size, raws) for size, raws in sorted(by_size.items())]
        joined = [np.concatenate(arrays) for arrays in zip(*(part[1:] for part in parts), strict=True)]
        patterns = tuple(pattern for part in parts for pattern in part[0])
        if not patterns:
            none = np.empty((0, PLACES), np.int64)
            return _Made((), Candidates(np.empty((0, 2), np.int64), np.empty((0, MOST, 3), np.int64), none, none))
        return _Made(patterns, Candidates(*joined))

    def _canonical(self, size: int, raws: Sequence[Raw]) -> tuple[tuple[Pattern, ...], Ints, Ints, Ints, Ints]:
        directed, cells_of = self._graph.directed, _Cells(self._graph.directed)
        labels = np.array([raw[0] for raw in raws], np.int64)
        cells = np.zeros((len(raws), size, size), np.int64)
        for i, (_, edges, _) in enumerate(raws):
            cells_of.write(edges, cells[i])
        found = canonical(labels, cells)
        first, _, _ = distinct(found.codes)
        rows = first.tolist()
        patterns = []
        sizes = np.empty((len(rows), 2), np.int64)
        written = np.zeros((len(rows), MOST, 3), np.int64)
        orbits, sources = np.zeros((len(rows), PLACES), np.int64), np.zeros((len(rows), PLACES), np.int64)
        orbits[:, :size] = found.orbits[first]
        given = np.array([raws[row][2] for row in rows], np.int64)
        sources[:, :size] = np.take_along_axis(given, found.orders[first], axis=1)
        places = np.argsort(found.orders[first], axis=1).tolist()
        ordered = found.labels[first].tolist()
        for i, row in enumerate(rows):
            place = places[i]
            moved = [(place[a], place[b], kind) for a, b, kind in raws[row][1]]
            if not directed:
                moved = [(min(a, b), max(a, b), kind) for a, b, kind in moved]
            moved.sort()
            patterns.append(Pattern(tuple(ordered[i]), tuple(moved), directed))
            sizes[i] = size, len(moved)
            written[i, : len(moved)] = moved
        written[:, :, 2] *= 2  # labels as codes
        return tuple(patterns), sizes, written, orbits, sources

    def _found(self, made: _Made, keep: bool, share: Callable[[float], float]) -> tuple[_Level, list[Frequent]]:
        """Find the domains of patterns: the level of those that are frequent, and these."""
        supports, examples = self.search.find(made.candidates, self._support, keep, share)
        frequent, ids = np.flatnonzero(supports), self._graph.ids
        found = []
        for number in frequent.tolist():
            example = examples[number, : len(made.patterns[number])]
            found.append(Frequent(made.patterns[number], int(supports[number]), tuple(ids[example].tolist())))
        lists = self.search.keep(frequent) if keep else np.empty((0, PLACES), np.int64)
        patterns = tuple(each.pattern for each in found) if keep else ()
        return _Level(patterns, made.candidates.orbits[frequent], lists), found


class _Cells:
    """Numbers for the sets of edges that join two places, each seen from both."""

    def __init__(self, directed: bool) -> None:
        self._directed = directed
        self._numbers: dict[tuple[int, ...], int] = {}

    def write(self, edges: Sequence[tuple[int, int, int]], cells: Ints) -> None:
        """Write the cells of a pattern: int64 [n, n], zeros."""
        codes: dict[tuple[int, int], tuple[int, ...]] = {}
        for a, b, kind in edges:
            codes[a, b] = (*codes.get((a, b), ()), 2 * kind)
            codes[b, a] = (*codes.get((b, a), ()), 2 * kind + self._directed)
        for pair, found in codes.items():
            several = tuple(sorted(found)) if len(found) > 1 else found
            cells[pair] = self._numbers.setdefault(several, len(self._numbers) + 1)


def _extensions(patterns: Sequence[Pattern], directed: bool) -> dict[int, list[tuple[int, int, bool]]]:
    """What frequent single edges add to a vertex with a label: (edge label, label, whether the edge leads onwards)."""
    found: dict[int, list[tuple[int, int, bool]]] = {}
    for pattern in patterns:
        ((a, b, kind),) = pattern.edges
        source, target = pattern.labels[a], pattern.labels[b]
        found.setdefault(source, []).append((kind, target, True))
        if directed or source != target:
            found.setdefault(target, []).append((kind, source, not directed))
    return found


def _counted(graph: MiningGraph, found: list[Frequent], limits: Limits) -> list[Frequent]:
    """The same with how many embeddings there are: counted by the matcher."""
    data = DataGraph(ArraySource(graph.source, graph.label, graph.target, len(graph)))
    executor = HostExecutor(limits.threads, memory_limit=limits.memory)
    order = np.argsort(graph.labelled[:, 1], kind="stable")
    ends = np.searchsorted(graph.labelled[order, 1], np.arange(len(graph.vertex_labels) + 1))
    vertices, result = graph.labelled[order, 0], []
    with data.watched(limits.control.check):
        for number, each in enumerate(found):
            limits.control.check()
            pattern = each.pattern
            places = tuple(
                PatternVertex(NAMES[i], None if len(ends) == 2 else vertices[ends[label] : ends[label + 1]])
                for i, label in enumerate(pattern.labels)
            )
            edges = tuple(
                PatternEdge(f"e{i}", a, b, (kind,), graph.directed, 0) for i, (a, b, kind) in enumerate(pattern.edges)
            )
            clause = Clause(MatchMode.DIFFERENT_NODES, tuple(range(len(pattern))))
            plan = make_plan(PatternGraph(places, edges, (clause,), count_only=True), data)
            begin, end = (0.6 + 0.4 * at / len(found) for at in (number, number + 1))
            result.append(replace(each, matches=executor.count(plan, limits.control.within(begin, end))))
    return result
