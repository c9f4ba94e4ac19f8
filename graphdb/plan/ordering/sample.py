"""Estimates corrected by sampling: random walks along a matching order, after which the order is planned again.

A walk binds one vertex after the other, each to a random element of the shortest neighbour list, and stands for as many
partial matches as there were choices (Wander Join: Li, Wu, Yi, Zhao, SIGMOD 2016, §3): the mean over all walks is an
unbiased estimate of the rows after every step.  Those that end at a step are replaced by others that did not
(:func:`graphdb.plan.ordering.sample_kernels.walk_together`).  Where the rows are far from what the model says, the
links bound there are corrected and the order is chosen again, some times; the order that is sampled to be cheapest
wins.

The walks are the same every time.  They take up to a millisecond, so they are asked only for plans that are
expected to take several times as long; how many they are depends on that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import PatternGraph
from graphdb.plan.estimates.cost import SEARCH, Estimates, extend, links_of
from graphdb.plan.estimates.ends import is_label
from graphdb.plan.ordering.order import EXACT
from graphdb.storage.graph.data_graph import DataGraph
from graphdb.storage.graph.pcsr import Direction, Partition

if TYPE_CHECKING:
    from graphdb.plan.candidates.space import CandidateSpace

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Order = tuple[int, ...]
_Kind = tuple[tuple[int, ...] | None, Direction]

WORTH = 50_000.0
"""Plans that are expected to scan fewer elements are not sampled."""
WALKS = (256, 4096)
"""The fewest and the most walks of a step: one for each 400 elements that the plan is expected to scan."""
SPACE_WALKS = (192, 1280)
"""Walks over a candidate space; and where few of them arrive somewhere, so many."""
MIN_ARRIVALS = 4
"""They arrive nowhere by chance, so fewer say something than of walks that take any way (:data:`ENOUGH`)."""
THROUGH = 64
"""The longest lists that they go through to find where they can go on."""
ENOUGH = 12
"""Fewer that arrive say little: from there on the model goes on from the last step that more arrived at."""
_ROUNDS = 3
"""Orders that are looked at; of large patterns two, since choosing takes longer than looking."""
_TRUSTED = 1.5
"""Corrections by less than this factor are left alone."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What an order is expected to do, step by step."""

    order: Order
    rows: tuple[float, ...]
    work: tuple[float, ...]

    @property
    def cost(self) -> float:
        """Elements to go through."""
        return sum(self.rows) + sum(self.work)


def modelled(estimates: Estimates, order: Order) -> Forecast:
    """What the statistics say."""
    rows, steps, bound = 1.0, [], 0
    for v in order:
        rows, work = extend(estimates, bound, rows, v)
        bound |= 1 << v
        steps.append((rows, work))
    return Forecast(order, tuple(r for r, _ in steps), tuple(w for _, w in steps))


def best_order(
    pattern: PatternGraph,
    graph: DataGraph,
    estimates: Estimates,
    choose: Callable[[Estimates], Order],
    forecast: Forecast | None = None,
) -> Forecast:
    """Choose an order by the model (or take ``forecast``); where that is expected to take long, look, and again."""
    forecast = forecast or modelled(estimates, choose(estimates))
    if forecast.cost < WORTH or pattern.limit is not None or len(forecast.order) < 2:
        return forecast
    if _is_counted(pattern, graph):
        return forecast
    walks = Walks(pattern, graph, int(min(max(forecast.cost / 400, WALKS[0]), WALKS[1])))
    looked: dict[Order, Forecast] = {}
    order = forecast.order
    rounds = _ROUNDS if len(order) <= EXACT else 2
    while True:
        looked[order] = found = walks.forecast(estimates, order)
        if len(looked) == rounds:
            break
        estimates = _corrected(estimates, modelled(estimates, order), found)
        order = choose(estimates)
        if order in looked:
            break
        # What another order needs has to be made first, where it is missing.
        if found.cost < modelled(estimates, order).cost + walks.missing(order):
            break
    return min(looked.values(), key=lambda each: each.cost)


def _is_counted(pattern: PatternGraph, graph: DataGraph) -> bool:
    """Whether statistics count what a pattern asks for: one edge, at vertices that are as many as have such edges."""
    if len(pattern.edges) != 1 or pattern.edge_tests:
        return False
    (edge,), known = pattern.edges, graph.statistics(pattern.edges[0].labels)
    ends = {edge.source: known.subjects, edge.target: known.objects}

    def is_wide(v: int) -> bool:
        vertex = pattern.vertices[v]
        if vertex.candidates is None or is_label(graph, vertex):
            return True
        return len(vertex.candidates) >= (ends[v] if edge.directed else known.subjects + known.objects)

    return all(is_wide(v) for v in ends)


def _corrected(estimates: Estimates, expected: Forecast, found: Forecast) -> Estimates:
    """Estimates whose links give what was found, for this order."""
    links = [list(each) for each in estimates.links]
    bound, before = 0, (1.0, 1.0)
    for i, v in enumerate(expected.order):
        grown = (expected.rows[i] / max(before[0], 1e-9), found.rows[i] / max(before[1], 1e-9))
        factor = grown[1] / max(grown[0], 1e-9)
        reaching = [other for other, _, _ in links[v] if bound >> other & 1]
        if reaching and not 1 / _TRUSTED < factor < _TRUSTED:
            each = factor ** (1 / len(reaching))
            links[v] = [(u, s * each if u in reaching else s, d) for u, s, d in links[v]]
            for u in reaching:
                links[u] = [(w, s * each if w == v else s, d) for w, s, d in links[u]]
        bound |= 1 << v
        before = (expected.rows[i], found.rows[i])
    return replace(estimates, links=tuple(map(tuple, links)))


class Walks:
    """Random walks over one data graph along orders of one pattern."""

    def __init__(self, pattern: PatternGraph, graph: DataGraph, number: int = WALKS[0]) -> None:
        self._pattern, self._graph, self._number = pattern, graph, number
        self._links = [link for link in links_of(pattern) if link.source != link.target]
        self._apart = _apart(pattern)

    def missing(self, order: Order) -> float:
        """Elements of the partitions that an order needs and that are not there yet."""
        needed = {relation for lists in self._lists(order) for relation, _ in lists}
        missing = [labels for labels, direction in needed if not self._graph.has_partition(labels, direction)]
        return float(sum(4 * self._graph.statistics(labels).triples for labels in missing))

    def forecast(self, estimates: Estimates, order: Order) -> Forecast:
        """What the walks say about an order, and from where too few of them arrive, the model."""
        rows, work, alive = self._walk(order)
        steps: list[tuple[float, float]] = []
        bound, now = 0, 1.0
        for i, v in enumerate(order):
            now, expected = extend(estimates, bound, now, v)
            bound |= 1 << v
            if alive[i] >= ENOUGH:
                now, expected = float(rows[i]), float(work[i])
            elif i and alive[i - 1] >= ENOUGH:  # at most a few of them went on
                now = min(now, float(rows[i - 1]) * ENOUGH / self._number) if not alive[i] else float(rows[i])
                expected = float(work[i])
            steps.append((now, expected))
        return Forecast(order, tuple(r for r, _ in steps), tuple(w for _, w in steps))

    def _lists(self, order: Order) -> list[list[tuple[_Kind, int]]]:
        """Per step: the relations whose lists it intersects, and the steps that they hang on."""
        position = {v: i for i, v in enumerate(order)}
        found: list[list[tuple[_Kind, int]]] = [[] for _ in order]
        for link in self._links:
            first, then = sorted((position[link.source], position[link.target]))
            forward: Direction = "out" if position[link.source] == first else "in"
            entry: tuple[_Kind, int] = ((link.labels, forward if link.directed else "both"), first)
            if entry not in found[then]:
                found[then].append(entry)
        return found

    def _walk(self, order: Order) -> tuple[Floats, Floats, Ints]:
        """(rows, work, walks that arrived) of each step."""
        graph, vertices = self._graph, self._pattern.vertices
        position = {v: i for i, v in enumerate(order)}
        numbers: dict[_Kind, int] = {}
        partitions: list[Partition] = []
        lists: list[tuple[int, int]] = []
        apart: list[int] = []
        steps: list[tuple[int, ...]] = []
        alive: list[Ints] = []
        for i, (v, reaching) in enumerate(zip(order, self._lists(order), strict=True)):
            begin, differ = len(lists), len(apart)
            for relation, at in reaching:
                if relation not in numbers:
                    numbers[relation] = len(partitions)
                    partitions.append(graph.partition(*relation))
                lists.append((numbers[relation], at))
            apart += [position[u] for u in self._apart.get(v, ()) if position[u] < i]
            candidates = vertices[v].candidates
            if candidates is None and not reaching:
                candidates = self._scan(v)
            address = size = 0
            if candidates is not None:  # an empty set has an address too: nothing is found in it
                alive.append(np.ascontiguousarray(candidates, np.int64))
                address, size = alive[-1].ctypes.data, len(candidates)
            steps.append((i - 1, begin, len(lists), address, size, differ, len(apart)))
        return _walked_together(steps, lists, apart, partitions, self._number, np.empty(0, graph.dtype))

    def _scan(self, vertex: int) -> Ints:
        """What a vertex without candidates or bound neighbours ranges over."""
        keys = []
        for link in self._links:
            if vertex in (link.source, link.target):
                way: Direction = "both" if not link.directed else "out" if link.source == vertex else "in"
                keys.append(self._graph.keys(link.labels, way))
        return min(keys, key=len) if keys else self._graph.universe()


def walked_order(space: CandidateSpace, forecast: Forecast, unequal: Collection[tuple[int, int]]) -> Forecast:
    """What random walks over a candidate space say about an order, and where too few arrive, the model.

    ``unequal`` are the pairs (lower number first) that must differ.
    """
    order = forecast.order
    conflicts = [[u for u in order[:i] if (min(u, v), max(u, v)) in unequal] for i, v in enumerate(order)]
    rows, work, arrived = walked_tree(space, order, range(-1, len(order) - 1), conflicts)
    found_rows, found_work = [1.0], []
    for i in range(len(order)):
        known = not i or arrived[i - 1] >= MIN_ARRIVALS
        growth = forecast.rows[i] / max(forecast.rows[i - 1], 1e-9) if i else forecast.rows[0]
        found_work.append(float(work[i]) if known else found_rows[-1] * (1.0 + growth))
        found_rows.append(float(rows[i]) if known and arrived[i] else found_rows[-1] * growth)
    return Forecast(order, tuple(found_rows[1:]), tuple(found_work))


def walked_tree(
    space: CandidateSpace, vertices: Sequence[int], parents: Sequence[int], conflicts: Sequence[Iterable[int]]
) -> tuple[Floats, Floats, Ints]:
    """Walk down a tree over a candidate space: per node (rows, elements scanned and compared, walks that arrived).

    Parameters
    ----------
    vertices, parents
        The tree's vertices, parents first, and the positions of those above them (-1 for roots).
    conflicts
        Per node, the vertices above it that it must differ from.
    """
    numbers: dict[tuple[int, int], int] = {}
    partitions: list[Partition] = []
    lists: list[tuple[int, int]] = []
    apart: list[int] = []
    steps: list[tuple[int, ...]] = []
    above: list[dict[int, int]] = []
    for i, (vertex, parent) in enumerate(zip(vertices, parents, strict=True)):
        path = {} if parent < 0 else {**above[parent], vertices[parent]: parent}
        above.append(path)
        begin, differ = len(lists), len(apart)
        for other, at in path.items():
            if (other, vertex) in space.pairs:
                if (other, vertex) not in numbers:
                    numbers[other, vertex] = len(partitions)
                    partitions.append(space.partition((other, vertex)))
                lists.append((numbers[other, vertex], at))
        apart += [path[other] for other in conflicts[i]]
        candidates = space.candidates[vertex]
        scanned = (0, 0) if len(lists) > begin else (candidates.ctypes.data, len(candidates))
        steps.append((parent, begin, len(lists), *scanned, differ, len(apart)))
    like = space.neighbours[:0]
    for walks in SPACE_WALKS:
        found = _walked(steps, lists, apart, partitions, (walks, THROUGH, 1.0), like)
        if found[2].min(initial=walks) >= ENOUGH:
            break
    return found


def _walked(
    steps: list[tuple[int, ...]],
    lists: list[tuple[int, int]],
    apart: list[int],
    partitions: list[Partition],
    how: tuple[int, int, float],
    like: Any,
) -> tuple[Floats, Floats, Ints]:
    """(rows, work, walks that arrived) per step, of :func:`graphdb.plan.ordering.sample_kernels.walk`; ``how`` is
    (walks, the longest list that they go through, what one more list costs).
    """
    from graphdb.plan.ordering import sample_kernels as kernels

    rows, work, arrived = np.zeros(len(steps)), np.zeros(len(steps)), np.zeros(len(steps), np.int64)
    scratch = np.empty(len(steps), np.int64), np.empty(len(steps))
    kernels.walk(*_tables(steps, lists, apart, partitions), *how, rows, work, arrived, *scratch, _seeded(), like)
    return rows / how[0], work / how[0], arrived


def _walked_together(
    steps: list[tuple[int, ...]],
    lists: list[tuple[int, int]],
    apart: list[int],
    partitions: list[Partition],
    walks: int,
    like: Any,
) -> tuple[Floats, Floats, Ints]:
    """(rows, work, walks that arrived) per step, of :func:`graphdb.plan.ordering.sample_kernels.walk_together`."""
    from graphdb.plan.ordering import sample_kernels as kernels

    rows, work, arrived = np.zeros(len(steps)), np.zeros(len(steps)), np.zeros(len(steps), np.int64)
    kernels.walk_together(
        *_tables(steps, lists, apart, partitions),
        walks,
        SEARCH,
        rows,
        work,
        arrived,
        np.empty((2, walks, len(steps)), np.int64),
        np.empty((2, walks)),
        _seeded(),
        like,
    )
    return rows, work, arrived


def _tables(
    steps: list[tuple[int, ...]], lists: list[tuple[int, int]], apart: list[int], partitions: list[Partition]
) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """What both kernels read."""
    from graphdb.plan.ordering.sample_kernels import STEP_CELLS

    return (
        np.array(steps, np.int64).reshape(-1, STEP_CELLS),
        np.array(lists, np.int64).reshape(-1, 2),
        np.array(apart, np.int64),
        np.array([partition.row for partition in partitions], np.int64).reshape(-1, 6),
        np.array([partition.row[3] for partition in partitions], np.int64),
    )


def _seeded() -> Ints:
    """The state of the pseudo-random numbers: the walks are the same every time."""
    return np.array([0x2545F4914F6CDD1D])


def _apart(pattern: PatternGraph) -> dict[int, set[int]]:
    """Vertices that must differ: all of a clause, or those that edges of one kind lead to from the same vertex."""
    pairs = set(pattern.unequal)
    for number, clause in enumerate(pattern.clauses):
        if clause.mode in (MatchMode.DIFFERENT_NODES, MatchMode.INDUCED):
            pairs |= {(u, v) for u in clause.vertices for v in clause.vertices if u < v}
        elif clause.mode is MatchMode.DIFFERENT_EDGES:
            ends: dict[object, list[int]] = {}
            for edge in pattern.edges:
                if edge.clause == number:
                    for v, other, way in ((edge.source, edge.target, 0), (edge.target, edge.source, 1)):
                        ends.setdefault((v, edge.labels, way if edge.directed else None), []).append(other)
            for others in ends.values():
                pairs |= {(u, v) for u in others for v in others if u < v}
    apart: dict[int, set[int]] = {}
    for u, v in pairs:
        apart.setdefault(u, set()).add(v)
        apart.setdefault(v, set()).add(u)
    return apart
