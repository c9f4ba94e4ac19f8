"""Cardinality and cost estimates of a plan, from label and degree statistics and the sizes of candidate sets.

The model is the textbook's, with two corrections that skewed and labelled graphs ask for.  A join of ``|A|`` and
``|B|`` rows over a relation of T pairs with S and O distinct ends keeps ``|A| |B| T / (max(|A|, S) max(|B|, O))`` rows;
where the ends have vertex labels, T, S and O are those of the edges between vertices so labelled.  And where one edge
of a kind has led to a vertex, the next of that kind has more to choose from than at a vertex taken at random
(:mod:`graphdb.storage.graph.degree_sketch`).  How many edges join the candidates of two vertices is asked of lists of
neighbours that are in memory (:mod:`graphdb.plan.estimates.ends`).  Otherwise conditions are independent; whether they
are, :mod:`graphdb.plan.ordering.sample` looks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import EdgeTest, PatternEdge, PatternGraph, PatternVertex
from graphdb.plan.estimates.ends import End, corrected
from graphdb.storage.graph.data_graph import DataGraph
from graphdb.storage.graph.degree_sketch import IN, OUT

_LOOP = 0.05
"""The share of vertices guessed to have a self loop; the same for a condition that nothing is known about."""
_LEAST = 0.5
"""Edges between vertices of two labels where the statistics know of none."""
SEARCH = 4.0
"""What one more neighbour list in an intersection costs, in elements per candidate."""
MOMENTS = 4
"""Edges of a kind at one vertex whose skew is distinguished; further ones are taken to be like the last."""
LOOKS = 16
"""Edges of a pattern up to which lists of neighbours are looked at; those of larger ones are compared as a whole
(:mod:`graphdb.plan.candidates.space`)."""
_EVEN = 1.2
"""Degrees that grow by less than this factor are taken to be even."""


@dataclass(frozen=True, slots=True)
class Estimates:
    """Sizes of the pattern vertices' candidate sets, the links between them, and how uneven degrees are."""

    sizes: tuple[float, ...]
    links: tuple[tuple[tuple[int, float, float], ...], ...]
    """Per vertex: (neighbour, the share of pairs of candidates that are joined, average length of the *neighbour's*
    list that leads here)."""
    skew: tuple[tuple[tuple[int, int, tuple[float, ...]], ...], ...] = field(default=())
    """Per vertex that can be bound next: (where several edges of a kind meet, the vertices they lead to as a bit set,
    the factors by which a second, third … of them has more to choose from); empty where nothing is skewed."""


Kinds = dict[tuple[int, tuple[int, ...] | None, int | None], list[tuple[int, PatternEdge, End]]]
"""Per vertex, edge labels and direction: the edges of that kind there, what they lead to, and this end."""


def estimate(pattern: PatternGraph, graph: DataGraph) -> Estimates:
    """Estimate every vertex and link of a pattern."""
    count = len(pattern.vertices)
    sizes = [float(graph.vertices)] * count
    isolated = [True] * count
    conditions: list[tuple[PatternEdge | EdgeTest, float, float, float]] = []
    for edge in links_of(pattern):
        known = graph.statistics(edge.labels)
        triples, subjects, objects = float(known.triples), float(known.subjects), float(known.objects)
        if not edge.directed:
            subjects = objects = min(subjects + objects, float(graph.vertices))
            triples *= 2
        conditions.append((edge, triples, max(subjects, 1.0), max(objects, 1.0)))
        if isinstance(edge, PatternEdge):
            isolated[edge.source] = isolated[edge.target] = False
            sizes[edge.source] = min(sizes[edge.source], subjects)
            sizes[edge.target] = min(sizes[edge.target], objects)
    for v, vertex in enumerate(pattern.vertices):
        if vertex.candidates is not None:
            sizes[v] = float(len(vertex.candidates))
        elif isolated[v]:
            sizes[v] = float(len(graph.universe()))
    links: list[list[tuple[int, float, float]]] = [[] for _ in range(count)]
    kinds: Kinds = {}
    looks = 1 < len(conditions) <= LOOKS
    for edge, triples, subjects, objects in conditions:
        a, b = edge.source, edge.target
        if a == b:
            sizes[a] *= _LOOP
            continue
        start = _end(graph, edge, OUT, pattern.vertices[a], End(triples, max(sizes[a], subjects), subjects))
        finish = _end(graph, edge, IN, pattern.vertices[b], End(triples, max(sizes[b], objects), objects))
        if looks:
            start, finish, share = corrected(graph, edge, (pattern.vertices[a], pattern.vertices[b]), (start, finish))
        else:
            share = start.edges * finish.edges / max(triples, 1.0) / (start.population * finish.population)
        if isinstance(edge, EdgeTest):
            share = min(share, 1.0)
        else:
            for v, other, direction, end in ((a, b, OUT, start), (b, a, IN, finish)):
                kind = (v, edge.labels, direction if edge.directed else None)
                kinds.setdefault(kind, []).append((other, edge, end))
        links[b].append((a, share, start.edges / start.active))
        links[a].append((b, share, finish.edges / finish.active))
    return Estimates(tuple(sizes), tuple(map(tuple, links)), _skew(pattern, graph, kinds))


def links_of(pattern: PatternGraph) -> Iterator[PatternEdge | EdgeTest]:
    """The pattern's edges, and the tests that ask for one."""
    yield from pattern.edges
    yield from (test for test in pattern.edge_tests if not test.negated)


def _end(graph: DataGraph, edge: PatternEdge | EdgeTest, direction: int, vertex: PatternVertex, plain: End) -> End:
    """What is known of an end: by the vertex label that says most, or else ``plain``."""
    if edge.labels is None or len(edge.labels) != 1 or not vertex.labels:
        return plain
    best: End | None = None
    ways = (direction,) if edge.directed else (OUT, IN)
    for label in vertex.labels:
        known = [graph.at_class(edge.labels[0], way, label) for way in ways]
        members = float(max(len(graph.members(label)), 1))
        edges = max(float(sum(each[0] for each in known if each)), _LEAST)
        active = min(max(float(sum(each[1] for each in known if each)), _LEAST), members)
        if None not in known and (best is None or members < best.population):
            best = End(edges, members, active)
    return best or plain


def _skew(
    pattern: PatternGraph, graph: DataGraph, kinds: Kinds
) -> tuple[tuple[tuple[int, int, tuple[float, ...]], ...], ...]:
    """Where edges of one kind meet, and how degrees grow there."""
    found: list[list[tuple[int, int, tuple[float, ...]]]] = [[] for _ in pattern.vertices]
    for (v, labels, direction), ends in kinds.items():
        mask = sum({1 << other for other, _, _ in ends}) if len(ends) > 1 else 0
        if mask.bit_count() < 2:
            continue
        _, edge, end = ends[0]
        falling = pattern.clauses[edge.clause].mode is not MatchMode.REPEATABLE_ELEMENTS
        sketch = graph.degrees(labels, direction)
        if not sketch.edges:
            continue
        # Vertices with the label are taken to have degrees like all others', but for their mean.
        usual = sketch.edges / sketch.vertices / (end.population / end.active)
        growth = [sketch.growth(k, falling) / usual for k in range(1, min(mask.bit_count(), MOMENTS))]
        if all(1 / _EVEN < factor < _EVEN for factor in growth):
            continue
        entry = (v, mask, tuple(growth))
        for u in {other for other, _, _ in ends} | {v}:
            found[u].append(entry)
    return tuple(map(tuple, found)) if any(found) else ()


def extend(estimates: Estimates, bound: int, rows: float, vertex: int) -> tuple[float, float]:
    """(rows, work) of binding ``vertex`` next, given ``rows`` bindings of the vertices in the bit set ``bound``."""
    expected = estimates.sizes[vertex]
    shortest, lists = expected, 0
    for other, share, degree in estimates.links[vertex]:
        if bound >> other & 1:
            expected *= share
            if not lists or degree < shortest:
                shortest = degree
            lists += 1
    if estimates.skew:
        for at, mask, growth in estimates.skew[vertex]:
            joined = (bound & mask).bit_count()
            if at == vertex:  # all that it is joined to is bound already
                for k in range(joined - 1):
                    expected *= growth[min(k, len(growth) - 1)]
            elif joined and bound >> at & 1:
                factor = growth[min(joined, len(growth)) - 1]
                expected *= factor
                shortest = shortest * factor if lists == 1 else shortest
    if lists > 1:
        shortest *= 1.0 + SEARCH * (lists - 1)
    return rows * expected, rows * (1.0 + shortest)
