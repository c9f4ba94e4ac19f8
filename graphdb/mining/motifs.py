"""Motifs: how often each connected pattern of a size is an induced subgraph.

*By linear relations* (Pinar, Seshadhri and Vishal, "ESCAPE", WWW 2017): the matcher counts the copies of all patterns,
induced or not, as sums of products, without enumerating them, each product once (:mod:`graphdb.plan.joint`).  A copy of
H lies in the induced subgraph K of its vertices, and K has a known number of copies of H; so the counts of copies are a
triangular system of equations in the counts of induced subgraphs, which is solved from the complete graph down.  With
directions, what a copy has are adjacent pairs: each is joined one way, the other way, or both ways, as it is in K.

*By enumeration*, where there are too many patterns for that (with directions 9,364 of five vertices): every connected
set of vertices is visited once, by extension, and the sets are counted by what joins their vertices as they stand; only
the codes that occur get canonical labels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common.errors import MemoryLimitError, QueryTimeout
from graphdb.execute.host import HostExecutor
from graphdb.execute.scheduler import Pause
from graphdb.grammar.syntax import MatchMode
from graphdb.mining.graph import ONE_WAY, UNLABELLED, MiningGraph
from graphdb.mining.limits import BUDGET, Limits
from graphdb.mining.patterns import NAMES, Pattern
from graphdb.mining.primitives.canonical import canonical, distinct
from graphdb.mining.primitives.extension import DEVICE_PIECE, vertex_extension
from graphdb.mining.primitives.table import Column, EmbeddingTable
from graphdb.pattern.graph import Clause, PatternEdge, PatternGraph, PatternVertex
from graphdb.plan.executor import Control, Executor, OutOfRange
from graphdb.plan.extension import Extender
from graphdb.plan.joint import JointCount
from graphdb.plan.passes.pipeline import make_plan
from graphdb.plan.physical import PhysicalPlan
from graphdb.storage.arrays.sorted_sets import unique

Ints = NDArray[np.int64]

_ALONE = 0.02
"""Seconds that one thread looks for an example before all do."""
_DERIVED = 320
"""Bytes that the lists which matches are counted from take for each edge while they are made, at most."""

LEAST, MOST = 3, 5
"""Sizes of motifs."""
_LISTED = 21
"""Of more patterns, those that occur are listed."""
_SHARES = 128
"""Pieces for each thread."""
_PIECE = 1 << 10
"""Rows that a worker takes at a time."""


@dataclass(frozen=True, slots=True)
class Motif:
    """A pattern, how many induced subgraphs are isomorphic to it, and the vertices of one (ids of the data), if any."""

    pattern: Pattern
    count: int
    example: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Motifs:
    """The connected patterns of a size, and how many copies of each every one has.

    Attributes
    ----------
    patterns
        In the order of their numbers of edges, then of their canonical labels.
    automorphisms
        Of each pattern.
    copies
        int64 [patterns, patterns]: how many subgraphs of the second, with all its vertices, are isomorphic to the
        first.
    """

    patterns: tuple[Pattern, ...]
    automorphisms: tuple[int, ...]
    copies: Ints


def is_enumerated(size: int, directed: bool) -> bool:
    """Whether motifs are enumerated: there are too many patterns to count them one by one."""
    return directed and size > 4


def motifs(graph: MiningGraph, size: int, limits: Limits | None = None) -> list[Motif]:
    """Count the induced subgraphs of ``size`` (3 to 5) vertices by pattern; labels of vertices and edges are ignored.

    Directions are those of the graph.

    Returns
    -------
    list of Motif
        For all connected patterns; with directions those of four and five vertices that occur.

    Raises
    ------
    MemoryLimitError, QueryTimeout, QueryInterrupted
        As ``limits`` say.
    """
    limits = limits or Limits()
    if is_enumerated(size, graph.directed):
        return _enumerated(graph, size, limits)
    return _solved(graph, size, limits)


# --- by linear relations


@cache
def known_motifs(size: int, directed: bool) -> Motifs:
    """Return the connected patterns of a size."""
    ends = np.array([(i, j) for j in range(1, size) for i in range(j)], np.int64)
    radix = 4 if directed else 2
    codes = np.arange(radix ** len(ends), dtype=np.int64)
    digits = codes[:, None] // radix ** np.arange(len(ends)) % radix
    found = canonical(np.zeros((len(codes), size), np.int64), _cells(digits, ends, size))
    first, place, labelled = distinct(found.codes)
    whole = [index for index, code in enumerate(first) if _connected(digits[code], ends, size)]
    whole.sort(key=lambda index: (int(_arcs(digits[first[index]])), found.codes[first[index]].tolist()))
    number = np.full(len(first), -1)
    number[whole] = np.arange(len(whole))
    patterns = tuple(_pattern(found.cells[first[index]], directed) for index in whole)
    copies = np.zeros((len(whole), len(whole)), np.int64)
    for index in whole:  # every subset of its adjacent pairs
        own = digits[first[index]]
        parts = number[place[((digits == 0) | (digits == own)).all(axis=1)]]
        np.add.at(copies[:, number[index]], parts[parts >= 0], 1)
    factorial = int(np.prod(np.arange(1, size + 1)))
    # Each labelled graph comes once: so many are isomorphic as there are orders without automorphisms.
    automorphisms = tuple(factorial // int(labelled[index]) for index in whole)
    return Motifs(patterns, automorphisms, copies)


def _arcs(digits: Ints) -> Ints:
    """How many edges there are; 3 stands for one in either direction."""
    arcs: Ints = np.array([0, 1, 1, 2])[digits].sum(axis=-1)
    return arcs


def _cells(digits: Ints, ends: Ints, size: int) -> Ints:
    """The cells of graphs that are written as a digit for each pair: bit 0 for an edge onwards, bit 1 for one back."""
    cells = np.zeros((len(digits), size, size), np.int64)
    cells[:, ends[:, 0], ends[:, 1]] = digits
    cells[:, ends[:, 1], ends[:, 0]] = digits if digits.max(initial=0) < 2 else (digits & 1) << 1 | digits >> 1
    return cells


def _connected(digits: Ints, ends: Ints, size: int) -> bool:
    reached = {0}
    for _ in range(size):
        for (i, j), digit in zip(ends.tolist(), digits.tolist(), strict=True):
            if digit and (i in reached or j in reached):
                reached |= {i, j}
    return len(reached) == size


def _pattern(cells: Ints, directed: bool) -> Pattern:
    """The pattern of cells in canonical order."""
    size = len(cells)
    edges = []
    for i, j in combinations(range(size), 2):
        if cells[i, j] & 1:
            edges.append((i, j, 0))
        if cells[i, j] & 2:
            edges.append((j, i, 0))
    return Pattern((0,) * size, tuple(sorted(edges)), directed)


def derived_memory(graph: MiningGraph) -> int:
    """Return the bytes that lists of neighbours take while sums over them are made."""
    return _DERIVED * graph.edges


def matched(pattern: Pattern, mode: MatchMode, *, limit: int | None = None) -> PatternGraph:
    """A pattern as the matcher takes it: to be counted, or to find so many matches of it."""
    vertices = tuple(PatternVertex(NAMES[place]) for place in range(len(pattern)))
    pairs = {(source, target) for source, target, _ in pattern.edges}
    joined = [
        (source, target, (target, source) in pairs if pattern.directed else True)
        for source, target in sorted(pairs)
        if (target, source) not in pairs or source < target
    ]
    edges = tuple(
        PatternEdge(f"e{number}", source, target, (UNLABELLED if mutual else ONE_WAY,), not mutual, 0)
        for number, (source, target, mutual) in enumerate(joined)
    )
    clauses = (Clause(mode, tuple(range(len(vertices)))),)
    outputs = () if limit is None else tuple(NAMES[: len(pattern)])
    return PatternGraph(vertices, edges, clauses, outputs=outputs, count_only=limit is None, limit=limit)


def _solved(graph: MiningGraph, size: int, limits: Limits) -> list[Motif]:
    """Count the copies of all patterns, and solve for the induced ones."""
    control, known = limits.control, known_motifs(size, graph.directed)
    limits.need(derived_memory(graph), "lists of neighbours")
    total = len(known.patterns)
    with graph.data.watched(control.check):
        joint = joint_count(graph, known.patterns)
        part = control.within(0.0, 0.9)
        try:
            matches = counter(size, graph.directed, limits).count_jointly(joint, part)
        except OutOfRange:
            matches = limits.host.count_jointly(joint, part)
        control.threads = max(control.threads, part.threads)
        counts = [found // ways for found, ways in zip(matches, known.automorphisms, strict=True)]
        for large in range(total - 1, -1, -1):  # larger patterns have more edges
            for small in range(large):
                counts[small] -= int(known.copies[small, large]) * counts[large]
        found = [
            Motif(pattern, count, _example(pattern, graph, limits) if count else ())
            for pattern, count in zip(known.patterns, counts, strict=True)
        ]
    control.report(1.0)
    return [each for each in found if each.count or total <= _LISTED]


def counter(size: int, directed: bool, limits: Limits) -> Executor:
    """Return what counts the patterns of a size: the host the 199 directed ones of four vertices, whose sums are 262
    kernels on a device, which take a minute to compile.
    """
    return limits.host if directed and size > 3 else limits.counts


def joint_count(graph: MiningGraph, patterns: tuple[Pattern, ...]) -> JointCount:
    """Return the plan that counts the copies of all patterns together; made once for a graph."""
    found: JointCount | None = graph.plans.get(patterns)
    if found is None:
        wanted = (matched(pattern, MatchMode.DIFFERENT_NODES) for pattern in patterns)
        found = JointCount.of([make_plan(pattern, graph.data, counting="always") for pattern in wanted])
        graph.plans[patterns] = found
    return found


def _example(pattern: Pattern, graph: MiningGraph, limits: Limits) -> tuple[int, ...]:
    """The vertices of one induced match, which is known to be there."""
    plan: PhysicalPlan | None = graph.plans.get(pattern)
    if plan is None:
        plan = make_plan(matched(pattern, MatchMode.INDUCED, limit=1), graph.data)
        graph.plans[pattern] = plan
    limits.control.check()
    try:  # most are found in less time than threads take to start
        block = next(HostExecutor(1, memory_limit=limits.memory).run(plan, Control(timeout=_ALONE)))
    except QueryTimeout:
        block = next(limits.host.run(plan, limits.control.within(1.0, 1.0)))
    return tuple(int(graph.ids[block.columns[NAMES[place]][0]]) for place in range(len(pattern)))


# --- by enumeration


def _enumerated(graph: MiningGraph, size: int, limits: Limits) -> list[Motif]:
    """Visit every connected set of vertices; all but the last vertex are in a table, piece by piece."""
    from graphdb.mining.kernels.motif_kernels import count_codes

    codes = 1 << size * (size - 1)
    ways = graph.ways
    workers: dict[int, tuple[NDArray[np.int32], Ints, NDArray[np.int32]]] = {}
    done: list[float] = []

    def work(piece: _Pairs, worker: int, pause: Pause) -> None:
        cells = workers.get(worker) or workers.setdefault(
            worker, (np.zeros(len(graph), np.int32), np.zeros(codes, np.int64), np.zeros((codes, size), np.int32))
        )
        table = _extended(graph, piece.table, size - 1, pause, limits)
        for begin in range(0, len(table), _PIECE):
            rows, at = table.rows(begin, begin + _PIECE), 0
            while at < len(rows):
                pause()
                at = int(count_codes(graph.offsets, graph.neighbours, ways, rows, at, BUDGET, *cells))
        done.append(piece.work)

    extender = None
    if limits.executor is not None and graph.edges:
        scanned = float(len(graph)) * (graph.pairs / len(graph)) ** (size - 1)
        extender = limits.executor.extender(graph.adjacency, scanned, limits.control)
    threads = limits.threads if extender is None else 1
    limits.need(memory(graph, size, threads), f"the codes of sets of {size} vertices")
    if extender is not None:
        return _by_code(graph, size, [_counted(graph, size, extender, limits)])
    limits.each(_divided(graph, size, limits), work, lambda: sum(done))
    limits.control.report(1.0)
    return _by_code(graph, size, list(workers.values()))


def _counted(graph: MiningGraph, size: int, extender: Extender, limits: Limits) -> tuple[NDArray[np.int32], Ints, Any]:
    """Count connected sets on a device; roots are halved where their sets of one vertex fewer take too much memory."""
    codes = 1 << size * (size - 1)
    counts, firsts = extender.code_cells(codes)
    examples: dict[int, Ints] = {}
    known = np.zeros(codes, bool)
    step = max(1, len(graph) // 64)
    pending = [(begin, min(begin + step, len(graph))) for begin in range(0, len(graph), step)][::-1]
    while pending:
        limits.control.watch(lambda begin=pending[-1][0]: begin / len(graph))  # type: ignore[misc]
        begin, end = pending.pop()
        table = EmbeddingTable.of_vertices(graph, np.arange(begin, end))
        inner = replace(limits, control=limits.control.within(0.0, 0.0), notes=[])
        try:
            for _ in range(size - 2):
                table = vertex_extension(table, graph, limits=inner)
        except MemoryLimitError:
            if end - begin == 1:
                raise
            middle = (begin + end) // 2
            pending += [(middle, end), (begin, middle)]
            continue
        firsts.fill((1 << 64) - 1)
        for number, rows in enumerate(table.pieces(DEVICE_PIECE)):
            extender.count_codes(rows, number * DEVICE_PIECE, counts, firsts)
        found = firsts.get()
        for code in np.flatnonzero(~known & (found != found.dtype.type((1 << 64) - 1))).tolist():
            row, vertex = divmod(int(found[code]), 1 << 31)
            examples[code] = np.append(table.rows(row, row + 1)[0], vertex)
            known[code] = True
    limits.control.report(1.0)
    limits.notes.append(extender.summary)
    return np.empty(0, np.int32), counts.get().astype(np.int64), examples


def memory(graph: MiningGraph, size: int, threads: int) -> int:
    """Return the bytes that enumerated motifs take beside the graph and the tables of sets."""
    return threads * (4 * len(graph) + (8 + 4 * size) * (1 << size * (size - 1)))


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Some pairs of adjacent vertices, and the part of all work that the sets are which begin with them."""

    table: EmbeddingTable
    work: float


def _divided(graph: MiningGraph, size: int, limits: Limits) -> list[_Pairs]:
    """The pairs of a graph in pieces of about the same work, so that what is done says what is left."""
    pairs = vertex_extension(EmbeddingTable.of_vertices(graph), graph, limits=replace(limits, executor=None, notes=[]))
    if not len(pairs):
        return []
    first, second = pairs.columns
    degrees = np.diff(graph.offsets).astype(np.float64)
    # Each further vertex is a neighbour of what is there; sets begin with their lowest vertex, so some are left out.
    reached = degrees[first.values[second.parents]] + degrees[second.values]
    work = (reached * (1 - second.parents / max(len(graph), 1))) ** (size - 2)
    ends = np.cumsum(work + 1e-9)
    cuts = np.searchsorted(ends, ends[-1] * np.arange(1, _SHARES * limits.threads) / (_SHARES * limits.threads))
    bounds = unique([0, *cuts, len(work)]).tolist()
    parts = np.diff(np.append(0.0, ends)[bounds]) / ends[-1]
    return [
        _Pairs(EmbeddingTable("vertex", (first, Column(second.values[a:b], second.parents[a:b]))), float(part))
        for (a, b), part in zip(pairwise(bounds), parts, strict=True)
    ]


def _extended(graph: MiningGraph, table: EmbeddingTable, size: int, pause: Pause, limits: Limits) -> EmbeddingTable:
    """The embeddings of ``size`` vertices that begin with those of a table."""
    inner = Limits(threads=1, memory=limits.memory, control=limits.control.within(0.0, 0.0))
    inner.control.progress = None
    for _ in range(size - table.size):
        pause()
        table = vertex_extension(table, graph, limits=inner)
    return table


def _by_code(graph: MiningGraph, size: int, workers: list[tuple[NDArray[np.int32], Ints, Any]]) -> list[Motif]:
    """Put the codes together that are of the same pattern."""
    counts = sum((worker[1] for worker in workers), np.zeros(1 << size * (size - 1), np.int64))
    codes = np.flatnonzero(counts)
    ends = np.array([(i, j) for j in range(1, size) for i in range(j)], np.int64)
    digits = codes[:, None] >> 2 * np.arange(len(ends)) & 3
    found = canonical(np.zeros((len(codes), size), np.int64), _cells(digits, ends, size))
    first, place, _ = distinct(found.codes)
    totals = np.zeros(len(first), np.int64)
    np.add.at(totals, place, counts[codes])
    result = []
    for number, row in enumerate(first.tolist()):
        code, order = codes[row], found.orders[row]
        example = min(tuple(worker[2][code][order].tolist()) for worker in workers if worker[1][code])
        pattern = _pattern(found.cells[row], graph.directed)
        result.append(Motif(pattern, int(totals[number]), tuple(graph.ids[list(example)].tolist())))
    return sorted(result, key=lambda motif: (len(motif.pattern.edges), motif.pattern))
