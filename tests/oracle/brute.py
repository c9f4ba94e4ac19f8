"""The oracle: what a pattern matches, by plain Python over all assignments, straight from the definitions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, combinations_with_replacement, product

from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import EdgeTest, PatternEdge, PatternGraph

Triple = tuple[int, int, int]


class Data:
    """Triples (subject, label, object) as a set."""

    def __init__(self, triples: set[Triple], resources: int, literals: int, type_label: int | None) -> None:
        self.triples = triples
        self.resources = resources
        self.vertices = resources + literals
        self.type_label = type_label

    def between(self, triple: Triple) -> bool:
        """Whether it is an edge between resources other than rdf:type."""
        return triple[1] != self.type_label and triple[2] < self.resources

    def options(self, edge: PatternEdge | EdgeTest, source: int, target: int) -> list[tuple[int, Triple]]:
        """(code, triple) of every data edge that the pattern edge may bind between the two vertices."""
        found = []
        for triple in sorted(self.triples):
            s, label, o = triple
            fits = self.between(triple) if edge.labels is None else label in edge.labels
            if fits and (s, o) == (source, target):
                found.append((2 * label, triple))
            elif fits and not edge.directed and (o, s) == (source, target):
                found.append((2 * label + 1, triple))
        return found

    def universe(self) -> list[int]:
        """What an unconstrained vertex ranges over."""
        subjects = {s for s, _, _ in self.triples}
        return sorted(subjects | {o for _, label, o in self.triples if label != self.type_label and o < self.resources})


def matches(pattern: PatternGraph, data: Data) -> Iterator[dict[str, int]]:
    """Every match: the bindings of all vertices and edges, by name."""
    touched = {end for edge in pattern.edges for end in (edge.source, edge.target)}
    domains = []
    for v, vertex in enumerate(pattern.vertices):
        if vertex.candidates is not None:
            domains.append([int(x) for x in vertex.candidates])
        else:
            domains.append(list(range(data.vertices)) if v in touched else data.universe())
    cache: dict[tuple[int, int, int], list[tuple[int, Triple]]] = {}

    def options(e: int, a: int, b: int) -> list[tuple[int, Triple]]:
        if (e, a, b) not in cache:
            cache[e, a, b] = data.options(pattern.edges[e], a, b)
        return cache[e, a, b]

    def assign(bound: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        """All assignments of vertices between which every pattern edge has an option."""
        if len(bound) == len(domains):
            yield bound
            return
        v = len(bound)
        for value in domains[v]:
            longer = (*bound, value)
            near = [
                (e, edge)
                for e, edge in enumerate(pattern.edges)
                if v in (edge.source, edge.target) and max(edge.source, edge.target) == v
            ]
            if all(options(e, longer[edge.source], longer[edge.target]) for e, edge in near):
                yield from assign(longer)

    for bound in assign(()):
        if any(bound[a] == bound[b] for a, b in pattern.unequal):
            continue
        if any(bool(data.options(t, bound[t.source], bound[t.target])) == t.negated for t in pattern.edge_tests):
            continue
        choices = [options(e, bound[edge.source], bound[edge.target]) for e, edge in enumerate(pattern.edges)]
        for chosen in product(*choices):
            if all(_clause_holds(pattern, c, data, bound, [t for _, t in chosen]) for c in range(len(pattern.clauses))):
                row = {vertex.name: bound[v] for v, vertex in enumerate(pattern.vertices)}
                row |= {edge.name: code for edge, (code, _) in zip(pattern.edges, chosen, strict=True)}
                yield row


def _clause_holds(
    pattern: PatternGraph, number: int, data: Data, bound: tuple[int, ...], triples: list[Triple]
) -> bool:
    clause = pattern.clauses[number]
    own = [(edge, triples[e]) for e, edge in enumerate(pattern.edges) if edge.clause == number]
    if clause.mode is MatchMode.REPEATABLE_ELEMENTS:
        return True
    if any(a == b and not (one.parallel and other.parallel) for (one, a), (other, b) in combinations(own, 2)):
        return False
    if clause.mode is MatchMode.DIFFERENT_EDGES:
        return True
    if len({bound[v] for v in clause.vertices}) < len(clause.vertices):
        return False
    if clause.mode is MatchMode.DIFFERENT_NODES:
        return True
    for u, w in combinations_with_replacement(clause.vertices, 2):
        ends = {bound[u], bound[w]}
        there = sum(data.between(t) and {t[0], t[2]} == ends for t in data.triples)
        wanted = sum({edge.source, edge.target} == {u, w} and data.between(t) for edge, t in own)
        if there != wanted:
            return False
    return True
