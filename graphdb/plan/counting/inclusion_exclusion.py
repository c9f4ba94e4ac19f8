"""Inclusion–exclusion: a pattern whose vertices or edges must differ as a sum of patterns where nothing must.

Every condition that says "not" is one minus its opposite: two vertices that differ are one minus the two being the
same vertex, a negated edge test (INDUCED: one for every pair that the pattern does not join) is one minus the test, two
edges that differ are one minus both being one data edge.
Multiplied out, the number of matches is a sum, with whole coefficients, of numbers of homomorphisms of *quotients*:
patterns in which vertices (and edges) have been merged or tests added.  Conditions are multiplied in one by one and
equal quotients meet at once, so there are as many as there are partitions, not subsets (the coefficients are then the
Möbius function of the partition lattice; Lovász, *Large Networks and Graph Limits*, §5.2.3).  Quotients that nothing
can match are dropped, and those that are isomorphic are counted once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, permutations, product
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphdb.common.lazy import lazy
from graphdb.pattern.graph import EdgeTest, PatternEdge, PatternGraph
from graphdb.plan.checks import Check, EdgeCount, EdgesDiffer, Never, NotBothEqual, Relation, Unequal
from graphdb.plan.counting.stars import alike_leaves, all_different
from graphdb.plan.injectivity import closure, coincidences
from graphdb.storage.graph.data_graph import DataGraph
from graphdb.storage.graph.derived.edge_subset import joins_once
from graphdb.storage.graph.pcsr import OPPOSITE, Direction

Ints = NDArray[np.int64]


MOST_STATES = 5000
"""Beyond so many quotients (before isomorphic ones are merged) inclusion–exclusion is given up."""
_ALIKE = 20
"""So many quotients are expected to be isomorphic at most, where symmetric patterns make many of a few."""
_MOST_PERMUTATIONS = 1500
"""Relabellings that the search for a canonical form tries at most."""


_Key: TypeAlias = tuple[bool, tuple[int, ...], str, bool]
_Keys: TypeAlias = tuple[_Key, ...]


class Member(NamedTuple):
    """One relation between two vertices: it multiplies by its data edges, or (unless ``weighted``) only tests."""

    labels: tuple[int, ...] | None
    direction: Direction
    weighted: bool
    parallel: bool = False
    """Whether it multiplies by parallel edges too."""

    @property
    def relation(self) -> Relation:
        """The partition it reads, from the first vertex's side."""
        return Relation(self.labels, self.direction, parallel=self.parallel)

    def reversed(self) -> Member:
        """The same, seen from the other vertex."""
        return Member(self.labels, OPPOSITE[self.direction], self.weighted, self.parallel)

    @property
    def key(self) -> _Key:
        """Something to sort by."""
        return self.labels is None, self.labels or (), self.direction, self.weighted


@dataclass(frozen=True, slots=True)
class Quotient:
    """A pattern under homomorphism: every vertex with its own conditions, every joined pair with what joins it."""

    filters: tuple[tuple[int, ...], ...]
    """Per vertex: the numbers of the candidate sets that it must be in."""
    loops: tuple[tuple[Member, ...], ...]
    """Per vertex: the relations in which it must be its own neighbour."""
    links: tuple[tuple[int, int, tuple[Member, ...]], ...]
    """(a, b, members seen from ``a``) with a < b, sorted."""
    root: int = -1
    """The vertex by which the matches are counted; -1: all together."""
    falls: tuple[int, ...] = ()
    """Per vertex: the leaves that it stands for, which must differ (:mod:`graphdb.plan.counting.stars`); mostly 1."""
    origins: tuple[tuple[int, ...], ...] = field(default=(), compare=False)
    """For EXPLAIN: the pattern vertices that became this one."""


@dataclass(frozen=True, slots=True)
class _Condition:
    """One minus this: all ``merged`` pairs are equal, edge ``dropped`` is edge ``kept``, and ``test`` holds."""

    merged: tuple[tuple[int, int], ...] = ()
    kept: int = -1
    dropped: int = -1
    test: int = -1


class _State(NamedTuple):
    """What has been merged so far: the representative of every vertex and edge, and the tests that were added."""

    vertices: tuple[int, ...]
    edges: tuple[int, ...]
    tests: frozenset[int] = frozenset()


class Expansion:
    """Multiplies out the conditions of one pattern.

    Parameters
    ----------
    checks
        What must differ (:func:`graphdb.plan.injectivity.distinctness`), and for INDUCED the edges that must not be
        there.
    root
        The pattern vertex by which the matches are counted; -1: all together.
    """

    def __init__(self, pattern: PatternGraph, graph: DataGraph, checks: Iterable[Check], root: int = -1) -> None:
        self._pattern, self._graph, self._root = pattern, graph, root
        self._edge_tests = list(pattern.edge_tests)
        self.filters: list[Ints] = []
        """The candidate sets, by number."""
        self._own = [self._filter_of(v) for v in range(len(pattern.vertices))]
        self._disjoint: dict[tuple[int, int], bool] = {}
        self._within: dict[int, NDArray[np.bool_]] = {}
        """Per vertex, whether it is in a candidate set: of those that were asked."""
        self._loop_free: dict[tuple[int, ...] | None, bool] = {}
        self._simple: dict[tuple[tuple[int, ...] | None, Direction], bool] = {}
        """What relations are like: of those that were asked."""
        self._classes: dict[tuple[int, ...], tuple[list[int], list[int]]] = {}
        """By representatives of all vertices: per representative, the vertices of its class, and those that none of it
        can be, as bits."""
        self._conditions = self._conditions_of(checks)
        self._falls: dict[int, int] = {}
        """Leaves that stand for several that differ, with their number, …"""
        self._gone: set[int] = set()
        """… and those that they stand for."""
        self._contract()

    def _contract(self) -> None:
        """Let one leaf of a star stand for all that are alike, where nothing is asked but that they differ."""
        wanted: list[tuple[frozenset[int], frozenset[int]]] = []
        for condition in self._conditions or ():
            vertices = {v for pair in condition.merged for v in pair}
            if condition.test >= 0:
                test = self._edge_tests[condition.test]
                vertices |= {test.source, test.target, -1}  # -1: this is no matter of leaves alone
            wanted.append((frozenset(vertices), frozenset({condition.kept, condition.dropped} - {-1})))
        groups = alike_leaves(self._pattern, self._own, (self._root,)) if wanted else []
        for group in groups:
            if all_different(group, wanted, lambda e: self._member(self._pattern.edges[e], True).weighted):
                leaves = {leaf for leaf, _ in group}
                self._falls[min(leaves)] = len(leaves)
                self._gone |= leaves - {min(leaves)}
                self._conditions = [
                    condition
                    for condition in self._conditions or ()
                    if not any(v in leaves for pair in condition.merged for v in pair)
                ]

    def __len__(self) -> int:
        """How many conditions there are."""
        return len(self._conditions or ())

    def quotients(self, most: int = MOST_STATES) -> list[tuple[int, Quotient]] | None:
        """(coefficient, quotient) of the sum; None where there are more than ``most``, or no way to say it.

        Up to :data:`_ALIKE` times as many are looked at, before isomorphic ones meet.
        """
        if self._conditions is None:
            return None
        most_states = min(most * _ALIKE, MOST_STATES)
        start = self._start
        states = {start: 1} if self._matchable(start) else {}
        for condition in self._conditions:
            self._graph.check()
            more = states.copy()
            for state, coefficient in states.items():
                merged = self._apply(state, condition)
                if merged is not None:
                    more[merged] = more.get(merged, 0) - coefficient
            states = {state: coefficient for state, coefficient in more.items() if coefficient}
            if len(states) > most_states:
                return None
        if len(states) == 1:  # nothing that it could be isomorphic to
            return [(coefficient, self._quotient(state)) for state, coefficient in states.items()]
        found: dict[Quotient, int] = {}
        shown: dict[Quotient, Quotient] = {}
        for state, coefficient in states.items():
            self._graph.check()
            quotient = self._quotient(state)
            key = canonical(quotient)
            found[key] = found.get(key, 0) + coefficient
            shown.setdefault(key, quotient)
            if len(found) > most:
                return None
        return [(coefficient, shown[key]) for key, coefficient in found.items() if coefficient]

    # --- conditions

    def _conditions_of(self, checks: Iterable[Check]) -> list[_Condition] | None:
        conditions: list[_Condition] = []
        for check in checks:
            match check:
                case Never():
                    conditions.append(_Condition())
                # A condition whose opposite nothing can match always holds.
                case Unequal(left, right):
                    if not self._apart(left, right):
                        conditions.append(_Condition(((left, right),)))
                case NotBothEqual(a, b, c, d):
                    if not (self._apart(a, b) or self._apart(c, d)):
                        conditions.append(_Condition(((a, b), (c, d))))
                case EdgesDiffer(i, j):
                    found = self._same_edge(i, j)
                    if found is None:
                        return None
                    conditions += found
                case EdgeCount(vertex, other, 0, ()):
                    self._edge_tests.append(EdgeTest(vertex, other, self._any_label, directed=False, negated=True))
                case _:
                    return None
        conditions += [_Condition(test=t) for t, test in enumerate(self._edge_tests) if test.negated]
        # What merges least comes first: then equal quotients meet early.
        return list(dict.fromkeys(conditions))

    @lazy
    def _start(self) -> _State:
        """Nothing merged."""
        return _State(tuple(range(len(self._pattern.vertices))), tuple(range(len(self._pattern.edges))))

    def _apart(self, a: int, b: int) -> bool:
        """Whether two pattern vertices are never the same, by their candidates or by what joins them."""
        if (min(a, b), max(a, b)) in self._joined:
            return True
        return any(self._are_disjoint(*sorted((i, j))) for i in self._own[a] for j in self._own[b] if i != j)

    @lazy
    def _joined(self) -> set[tuple[int, int]]:
        """Pairs of vertices (lower number first) with an edge between them that no data vertex has to itself."""
        links: list[PatternEdge | EdgeTest] = [*self._pattern.edges, *self._tests(self._start)]
        return {
            (min(link.source, link.target), max(link.source, link.target))
            for link in links
            if self._is_loop_free(link.labels)
        }

    @lazy
    def _any_label(self) -> tuple[int, ...] | None:
        """What stands for any edge between resources: the one label there is, so that its tests meet the pattern's."""
        source, graph = self._graph.source, self._graph
        labels = [x for x in source.edge_labels() if x != graph.type_label and source.statistics(x).resource_triples]
        alone = (
            len(labels) == 1 and source.statistics(labels[0]).triples == source.statistics(labels[0]).resource_triples
        )
        return (labels[0],) if alone else None

    def _same_edge(self, i: int, j: int) -> list[_Condition] | None:
        """The ways in which two pattern edges are one data edge; None where ends and labels do not decide."""
        first, second = self._pattern.edges[i], self._pattern.edges[j]
        kept, dropped = (i, j) if first.directed or not second.directed else (j, i)
        ways = []
        distinct: list[frozenset[tuple[int, int]]] = []
        for way in sorted(coincidences(first, second), key=len):
            if any(other <= closure(way) for other in distinct):
                continue  # what coincides this way does so the other way, too: a self loop
            distinct.append(way)
            if self._apply(self._start, _Condition(tuple(way))) is not None:
                ways.append(_Condition(tuple(sorted(way)), kept, dropped))
        if ways and (first.labels != second.labels or not (self._is_loop_free(first.labels) or len(ways) == 1)):
            return None
        return ways

    def _apply(self, state: _State, condition: _Condition) -> _State | None:
        """The state with the condition's opposite; None where nothing can match it."""
        vertices, edges, tests = state
        for a, b in condition.merged:
            if vertices[a] == vertices[b]:
                continue
            members, apart = self._classes.get(vertices) or self._classes_of(vertices)
            if members[vertices[a]] & apart[vertices[b]]:
                return None
            vertices = _merge(vertices, a, b)
        if condition.test < 0 and condition.kept < 0 and not tests:
            return _State(vertices, edges, tests)
        if condition.kept >= 0:
            # Two directed edges may meet by way of an undirected one: then their ends do.
            one, other = (self._pattern.edges[edges[e]] for e in (condition.kept, condition.dropped))
            if one.directed and other.directed:
                vertices = _merge(_merge(vertices, one.source, other.source), one.target, other.target)
            edges = _merge(edges, condition.kept, condition.dropped, self._directed_first)
        if condition.test >= 0:
            tests = tests | {condition.test}
        merged = _State(vertices, edges, tests)
        return merged if self._matchable(merged) else None

    def _classes_of(self, vertices: tuple[int, ...]) -> tuple[list[int], list[int]]:
        members, apart = [0] * len(vertices), [0] * len(vertices)
        for v, representative in enumerate(vertices):
            members[representative] |= 1 << v
            apart[representative] |= self._apart_from[v]
        self._classes[vertices] = members, apart
        return members, apart

    @lazy
    def _apart_from(self) -> list[int]:
        """Per vertex, those that it can never be, as bits: what makes a state unmatchable, but for tests that were
        added, is always two vertices of one class.
        """
        bits = [0] * len(self._own)
        for a in range(len(bits)):
            for b in range(a):
                if self._apart(b, a):
                    bits[a] |= 1 << b
                    bits[b] |= 1 << a
        return bits

    def _directed_first(self, edge: int) -> tuple[bool, int]:
        """Of edges that are the same data edge, a directed one says which way it goes."""
        return not self._pattern.edges[edge].directed, edge

    def _matchable(self, state: _State) -> bool:
        conditions: list[PatternEdge | EdgeTest] = [*self._pattern.edges, *self._tests(state)]
        for edge in conditions:
            if state.vertices[edge.source] == state.vertices[edge.target] and self._is_loop_free(edge.labels):
                return False
        classes: dict[int, set[int]] = {}
        for v, representative in enumerate(state.vertices):
            classes.setdefault(representative, set()).update(self._own[v])
        return not any(self._are_disjoint(a, b) for own in classes.values() for a in own for b in own if a < b)

    def _are_disjoint(self, a: int, b: int) -> bool:
        if (a, b) not in self._disjoint:
            small, large = sorted((a, b), key=lambda number: len(self.filters[number]))
            if large not in self._within:
                self._within[large] = np.zeros(self._graph.vertices, bool)
                self._within[large][self.filters[large]] = True
            self._disjoint[a, b] = not self._within[large][self.filters[small]].any()
        return self._disjoint[a, b]

    def _is_loop_free(self, labels: tuple[int, ...] | None) -> bool:
        known = self._loop_free.get(labels)
        if known is None:
            known = self._loop_free[labels] = not self._graph.has_loops(labels)
        return known

    def _is_simple(self, labels: tuple[int, ...] | None, direction: Direction) -> bool:
        if direction != "both" and joins_once(labels):
            return True
        known = self._simple.get((labels, direction))
        if known is None:
            known = self._simple[labels, direction] = self._graph.partition(labels, direction).simple
        return known

    def _tests(self, state: _State) -> list[EdgeTest]:
        return [test for t, test in enumerate(self._edge_tests) if not test.negated or t in state.tests]

    # --- quotients

    def _filter_of(self, v: int) -> tuple[int, ...]:
        """The candidate set of a pattern vertex; one that no edge touches ranges over the universe."""
        values = self._pattern.vertices[v].candidates
        if values is None:
            if any(v in (edge.source, edge.target) for edge in self._pattern.edges):
                return ()
            values = self._graph.universe()
        for number, known in enumerate(self.filters):
            if known is values or (len(known) == len(values) and np.array_equal(known, values)):
                return (number,)
        self.filters.append(np.ascontiguousarray(values, dtype=np.int64))
        return (len(self.filters) - 1,)

    def _quotient(self, state: _State) -> Quotient:
        origins = sorted(set(state.vertices) - self._gone)
        place = {representative: i for i, representative in enumerate(origins)}
        filters: list[set[int]] = [set() for _ in origins]
        for v, representative in enumerate(state.vertices):
            if representative not in self._gone:
                filters[place[representative]].update(self._own[v])
        loops: list[list[Member]] = [[] for _ in origins]
        links: dict[tuple[int, int], list[Member]] = {}
        remaining = [self._pattern.edges[e] for e in sorted(set(state.edges))]
        remaining = [edge for edge in remaining if edge.source not in self._gone and edge.target not in self._gone]
        conditions: list[PatternEdge | EdgeTest] = [*remaining, *self._tests(state)]
        for i, edge in enumerate(conditions):
            member = self._member(edge, i < len(remaining))
            a, b = place[state.vertices[edge.source]], place[state.vertices[edge.target]]
            if a == b:
                loops[a].append(member if member.direction == "both" else member._replace(direction="out"))
            else:
                links.setdefault((min(a, b), max(a, b)), []).append(member if a < b else member.reversed())
        return Quotient(
            tuple(tuple(sorted(own)) for own in filters),
            tuple(_simplified(own) for own in loops),
            tuple((a, b, _simplified(members)) for (a, b), members in sorted(links.items())),
            -1 if self._root < 0 else place[state.vertices[self._root]],
            tuple(self._falls.get(origin, 1) for origin in origins),
            tuple(tuple(v for v, c in enumerate(state.vertices) if c == origin) for origin in origins),
        )

    def _member(self, edge: PatternEdge | EdgeTest, weighs: bool) -> Member:
        direction: Direction = "out" if edge.directed else "both"
        parallel = weighs and isinstance(edge, PatternEdge) and edge.parallel
        weighted = parallel or (weighs and not self._is_simple(edge.labels, direction))
        return Member(edge.labels, direction, weighted, parallel)


def _simplified(members: list[Member]) -> tuple[Member, ...]:
    """Sorted, each test once; a test is dropped where the same relation is counted anyway."""
    counted = [member for member in members if member.weighted]
    said = {(member.labels, member.direction) for member in counted}
    tests = {member for member in members if not member.weighted and (member.labels, member.direction) not in said}
    return tuple(sorted([*counted, *tests], key=lambda member: member.key))


def _merge(
    classes: tuple[int, ...], a: int, b: int, rank: Callable[[int], tuple[bool, int]] = lambda x: (False, x)
) -> tuple[int, ...]:
    """Join the classes of two elements; every element knows its class by the representative of lowest rank."""
    low, high = sorted((classes[a], classes[b]), key=rank)
    return tuple(low if c == high else c for c in classes)


def canonical(quotient: Quotient) -> Quotient:
    """A form that isomorphic quotients share, where the search for it is short; else the quotient itself.

    Vertices are distinguished by colours that are refined to a fixed point; the least of the relabellings that keep the
    order of the colours is the form.
    """
    count = len(quotient.filters)
    near: list[list[tuple[int, _Keys]]] = [[] for _ in range(count)]
    links = []
    for a, b, members in quotient.links:
        keys = tuple(m.key for m in members), tuple(m.key for m in _reversed(members))
        links.append((a, b, *keys))
        near[a].append((b, keys[0]))
        near[b].append((a, keys[1]))
    colours: list[int] = [0] * count
    kinds = 0
    signatures: Sequence[object] = [
        (v == quotient.root, quotient.falls[v], quotient.filters[v], tuple(m.key for m in quotient.loops[v]))
        for v in range(count)
    ]
    while len(ordered := sorted(set(signatures))) > kinds:  # type: ignore[type-var]
        kinds = len(ordered)
        colours = [ordered.index(signature) for signature in signatures]
        signatures = [(colours[v], tuple(sorted((colours[u], keys) for u, keys in near[v]))) for v in range(count)]
    cells = [[v for v in range(count) if colours[v] == colour] for colour in range(max(colours, default=-1) + 1)]
    tries = 1
    for cell in cells:
        for i in range(2, len(cell) + 1):
            tries *= i
    if tries > _MOST_PERMUTATIONS:
        return quotient
    places = [0] * count
    least: list[tuple[int, int, _Keys]] | None = None
    order_of: tuple[int, ...] = ()
    for choice in product(*(permutations(cell) for cell in cells)):
        order = tuple(chain.from_iterable(choice))
        for place, v in enumerate(order):
            places[v] = place
        relabelled = sorted(
            (places[a], places[b], along) if places[a] < places[b] else (places[b], places[a], against)
            for a, b, along, against in links
        )
        if least is None or relabelled < least:
            least, order_of = relabelled, order
    return Quotient(
        tuple(quotient.filters[v] for v in order_of),
        tuple(quotient.loops[v] for v in order_of),
        _relabelled(quotient.links, order_of),
        -1 if quotient.root < 0 else order_of.index(quotient.root),
        tuple(quotient.falls[v] for v in order_of),
    )


def _reversed(members: tuple[Member, ...]) -> tuple[Member, ...]:
    """What joins two vertices, seen from the other one: sorted."""
    return tuple(sorted((member.reversed() for member in members), key=lambda member: member.key))


def _relabelled(
    links: tuple[tuple[int, int, tuple[Member, ...]], ...], order_of: tuple[int, ...]
) -> tuple[tuple[int, int, tuple[Member, ...]], ...]:
    place = {v: i for i, v in enumerate(order_of)}
    moved = []
    for a, b, members in links:
        x, y = place[a], place[b]
        if x > y:
            x, y, members = y, x, _reversed(members)
        moved.append((x, y, members))
    return tuple(sorted(moved, key=lambda link: link[:2]))
