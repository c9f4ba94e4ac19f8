"""Frequent patterns: connected patterns with labels whose minimum image support reaches a threshold.

Level by level (Algorithm 2 of GAMMA, with domains in place of embeddings): a pattern of ``k + 1`` edges is a frequent
one of ``k`` edges and one edge more, to a new vertex or between two that are there, and it can be frequent only if
every single edge of it is.  Support never grows with a pattern, since the domain of a place shrinks; so a place's
candidates are its domain in the smaller pattern.  Patterns of a level are made once each, by canonical labels, and
their domains found by kernels (:mod:`.frequent_kernels`), which threads share.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.execute.host import HostExecutor
from graphdb.execute.scheduler import Pause
from graphdb.grammar.syntax import MatchMode
from graphdb.mining.canonical import canonical, distinct
from graphdb.mining.graph import MiningGraph
from graphdb.mining.limits import BUDGET, Limits
from graphdb.mining.patterns import NAMES, Pattern
from graphdb.pattern.graph import Clause, PatternEdge, PatternGraph, PatternVertex
from graphdb.plan.passes.pipeline import make_plan
from graphdb.storage.graph.data_graph import ArraySource, DataGraph

Ints = NDArray[np.int64]

MOST = 5
"""Edges of a pattern."""
_PLACES = 6
_PIECE = 8
"""Patterns that a worker takes at a time."""
_BYTES = 1200
"""Bytes of memory that a pattern takes while its level is made, roughly."""
_OUT = 1 << 18
"""Numbers of domains that a worker writes before they are taken away, at least."""


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
    """The frequent patterns of a level, their domains as lists, and the lists of labels before these."""

    patterns: tuple[Pattern, ...]
    orbits: Ints
    lists: Ints
    """int64 [patterns, 6]: the list of each place."""
    spans: Ints
    items: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class _Candidates:
    """Patterns of one level to look at, each once, as kernels read them."""

    patterns: tuple[Pattern, ...]
    sizes: Ints
    edges: Ints
    orbits: Ints
    sources: Ints

    def __len__(self) -> int:
        return len(self.patterns)


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
    miner = _Miner(graph, support, limits)
    found = miner.levels(edges, 0.6 if matches else 1.0)
    if matches:
        found = _counted(graph, found, limits)
    limits.control.report(1.0)
    return found


def memory(graph: MiningGraph, threads: int) -> int:
    """Return the bytes that finding domains takes beside the graph and the domains themselves."""
    each = 2 * 8 * _PLACES * ((len(graph) + 63) // 64) + 4 * max(_OUT, _PLACES * len(graph))
    return threads * each + 16 * graph.edges + 4 * len(graph.labelled)


class _Miner:
    """The levels of one run."""

    def __init__(self, graph: MiningGraph, support: int, limits: Limits) -> None:
        limits.need(memory(graph, limits.threads), "domains")
        self._graph, self._support, self._limits = graph, support, limits
        self._n = len(graph)
        self._workers: dict[int, _Worker] = {}
        order = np.argsort(graph.labelled[:, 1], kind="stable")
        self._members = graph.labelled[order, 0].astype(np.int32)
        ends = np.searchsorted(graph.labelled[order, 1], np.arange(len(graph.vertex_labels) + 1))
        self._spans = np.stack([ends[:-1], ends[1:]], axis=1).astype(np.int64)
        self._entries = self._neighbours()

    def _neighbours(self) -> tuple[Ints, Ints]:
        """For each vertex ``code * n + neighbour`` of its edges, sorted."""
        graph, n = self._graph, self._n
        owner = np.concatenate([graph.source, graph.target])
        code = np.concatenate([2 * graph.label, 2 * graph.label + graph.directed])
        keys = code * n + np.concatenate([graph.target, graph.source])
        codes = 2 * len(graph.edge_labels) * n
        if n * codes < 1 << 63:
            keys = np.sort(owner * codes + keys) % codes
        else:
            keys = keys[np.lexsort((keys, owner))]
        offsets = np.zeros(n + 1, np.int64)
        np.cumsum(np.bincount(owner, minlength=n), out=offsets[1:])
        return offsets, keys

    def levels(self, most: int, share: float) -> list[Frequent]:
        """All levels; they are done at ``share`` of the run."""
        found: list[Frequent] = []
        pairs = self._limits.cancellable(self._graph.edges, self._single_edges)
        labels = np.full((0, _PLACES), -1)
        level = _Level((), labels, labels, self._spans, self._members)
        # By the labels of the vertex that they start from: what can be added to it.
        by_label: dict[int, list[tuple[int, int, bool]]] = {}
        for number in range(most):
            made = self._raw_edges(pairs) if number == 0 else self._larger(level, by_label)
            candidates = self._distinct(made)
            begin, end = (share * at / most for at in (number, number + 1))
            level, more = self._domains(candidates, level, number + 1 < most, begin, end)
            found += more
            if number == 0:
                by_label = _extensions(level.patterns, self._graph.directed)
            if not level.patterns:
                break
        return found

    def _single_edges(self) -> Ints:
        """The (label, edge label, label) that edges have: int64 [triples, 3]; of labels that are frequent."""
        graph = self._graph
        sizes = self._spans[:, 1] - self._spans[:, 0]
        kept = graph.labelled[sizes[graph.labelled[:, 1]] >= self._support]
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
                    if level.orbits[number, place] == place and size < _PLACES:
                        edge = (place, size, kind) if onwards else (size, place, kind)
                        yield (*pattern.labels, label), (*pattern.edges, edge), (*lists, label)
                    for other in range(size) if directed else range(place + 1, size):
                        edge = (place, other, kind)
                        if onwards and other != place and pattern.labels[other] == label and edge not in known:
                            yield pattern.labels, (*pattern.edges, edge), lists

    def _distinct(self, made: Iterator[Raw]) -> _Candidates:
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
            none = np.empty((0, _PLACES), np.int64)
            return _Candidates((), np.empty((0, 2), np.int64), np.empty((0, MOST, 3), np.int64), none, none)
        return _Candidates(patterns, *joined)

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
        orbits, sources = np.zeros((len(rows), _PLACES), np.int64), np.zeros((len(rows), _PLACES), np.int64)
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

    def _domains(
        self, candidates: _Candidates, level: _Level, emit: bool, begin: float, end: float
    ) -> tuple[_Level, list[Frequent]]:
        """Find the domains of patterns: the level of those that are frequent, and these."""
        count = len(candidates)
        supports, examples = np.zeros(count, np.int64), np.zeros((count, _PLACES), np.int64)
        written = np.zeros((count, _PLACES, 2), np.int64)
        worker_of = np.zeros(count, np.int64)
        arrays = (candidates.sizes, candidates.edges, candidates.orbits, candidates.sources, level.spans, level.items)
        results = (supports, examples, written)
        done = [0]
        self._workers.clear()

        def work(first: int, worker: int, pause: Pause) -> None:
            own = self._workers.get(worker) or self._workers.setdefault(worker, _Worker(self._n))
            last = min(first + _PIECE, count)
            worker_of[first:last] = worker
            pattern = (*self._entries, self._n, self._graph.directed, *arrays, self._support, emit)
            own.run(pattern, results, first, last, pause)
            done.append(last - first)

        self._limits.each(range(0, count, _PIECE), work, lambda: begin + (end - begin) * sum(done) / max(count, 1))
        frequent = np.flatnonzero(supports).tolist()
        ids = self._graph.ids
        found = []
        for number in frequent:
            example = examples[number, : len(candidates.patterns[number])]
            found.append(Frequent(candidates.patterns[number], int(supports[number]), tuple(ids[example].tolist())))
        return self._kept(candidates, frequent, written, worker_of, emit), found

    def _kept(self, candidates: _Candidates, frequent: list[int], written: Ints, worker_of: Ints, emit: bool) -> _Level:
        """The frequent patterns with their domains as lists, behind those of labels."""
        if not emit:
            return _Level((), written[:0, :, 0], written[:0, :, 0], self._spans, self._members)
        parts, starts = [self._members], np.zeros(max(self._workers, default=0) + 1, np.int64)
        for worker, own in sorted(self._workers.items()):
            starts[worker] = sum(map(len, parts))
            parts += own.written
        items = np.concatenate(parts)
        self._limits.need(items.nbytes * 2 + memory(self._graph, self._limits.threads), "domains")
        spans = (written[frequent] + starts[worker_of[frequent], None, None]).reshape(-1, 2)
        lists = len(self._spans) + np.arange(len(frequent) * _PLACES).reshape(-1, _PLACES)
        patterns = tuple(candidates.patterns[number] for number in frequent)
        return _Level(patterns, candidates.orbits[frequent], lists, np.concatenate([self._spans, spans]), items)


class _Worker:
    """One thread's scratch memory, and the domains that it found."""

    def __init__(self, n: int) -> None:
        from graphdb.mining.frequent_kernels import CELLS

        words = (n + 63) // 64
        self._state = np.zeros(CELLS, np.int64)
        self._scratch = (
            np.zeros((_PLACES, words), np.int64),
            np.zeros((_PLACES, words), np.int64),
            np.zeros((2, _PLACES), np.int64),
            np.zeros((30, 3), np.int64),
            np.zeros((_PLACES, 12), np.int64),
            np.zeros((3, _PLACES), np.int64),
        )
        self._out = np.empty(max(_OUT, _PLACES * n), np.int32)
        self._taken: list[NDArray[np.int32]] = []

    @property
    def written(self) -> list[NDArray[np.int32]]:
        """All domains that were written, one after the other."""
        self._take()
        return self._taken

    def _take(self) -> None:
        from graphdb.mining.frequent_kernels import BASE, USED

        used = int(self._state[USED])
        self._taken.append(self._out[:used].copy())
        self._state[BASE] += used
        self._state[USED] = 0

    def run(self, pattern: tuple[Any, ...], results: tuple[Ints, ...], first: int, last: int, pause: Pause) -> None:
        """Find the domains of some patterns."""
        from graphdb.mining.frequent_kernels import DONE, END, INIT, PATTERN, PHASE, SPACE, find_domains

        state = self._state
        state[PATTERN], state[END], state[PHASE] = first, last, INIT
        while True:
            pause()
            arguments: tuple[Any, ...] = (*pattern, state, *self._scratch, *results, self._out, BUDGET)
            said = find_domains(*arguments)
            if said == DONE:
                return
            if said == SPACE:
                self._take()


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
