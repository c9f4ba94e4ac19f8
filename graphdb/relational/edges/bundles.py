"""Bundles of pattern edges: several between the same two vertices, of which only the number of choices is wanted.

A search binds the edges of a bundle one by one, so that *k* undirected ones over two data edges are 2^k matches.  Here
the vertices alone are matched, with one pattern edge of each kind between two, and the edges' choices are multiplied
for each binding: *m* data edges, which a partition with parallel edges knows, give m^k where elements may repeat, and
m (m - 1) … (m - k + 1) where edges differ.  Edges that differ choose after those that admit less (the sets that they
choose from are nested or disjoint, a laminar family), so that what an edge has left is known by number; where the sets
overlap otherwise, injective assignments are counted (:mod:`graphdb.relational.edges.injections`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from graphdb.execute.counting.crt import Numbers, narrowed, products
from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.bind import BoundPattern, Choice
from graphdb.pattern.graph import PatternEdge, PatternGraph, Wanted
from graphdb.plan.executor import Block
from graphdb.plan.injectivity import choice_order, unequal_vertices
from graphdb.plan.physical import PhysicalPlan
from graphdb.relational.edges.edge_classes import Conditions, atoms
from graphdb.relational.edges.edge_numbers import EdgeNumbers
from graphdb.relational.edges.injections import Injections, are_countable
from graphdb.relational.snapshot import Snapshot
from graphdb.storage.graph.data_graph import DataGraph
from graphdb.storage.graph.derived.closure import closure_of
from graphdb.storage.graph.pcsr import Direction

Ids = NDArray[np.int64]

_BLOCK = 1 << 16
"""Bindings whose choices are multiplied at a time."""


def is_searched(plan: PhysicalPlan) -> bool:
    """Whether the rows of a plan, or their number, are found by a search for all of a pattern's edges."""
    others = (plan.weighed, plan.counting, plan.tree, plan.clique, plan.twins, plan.scan)
    return not plan.doubtful and all(other is None for other in others)


def vertices_alone(
    bound: BoundPattern, pattern: PatternGraph, needs: Wanted, type_label: int | None
) -> PatternGraph | None:
    """Return the pattern of which the bindings of vertices are those of ``pattern``, each once.

    None where edges themselves are wanted or tested, no two join the same vertices, or choices are no product.
    """
    only_numbers = needs.count_only or needs.nothing or needs.duplicates != "keep"
    if not only_numbers or needs.edges or needs.facts or needs.limit is not None:
        return None
    ends = {frozenset((edge.source, edge.target)) for edge in pattern.edges}
    if len(ends) == len(pattern.edges) or any(edge.among is not None or _is_path(edge) for edge in pattern.edges):
        return None
    if any(clause.mode is MatchMode.INDUCED for clause in pattern.clauses):
        return None
    conditions = Conditions(pattern, bound.choices)
    if _products_order(pattern, conditions, type_label) is None and not are_countable(pattern, conditions.admitted):
        return None
    kinds = {(edge.source, edge.target, edge.labels, edge.directed): edge for edge in reversed(pattern.edges)}
    repeat = MatchMode.REPEATABLE_ELEMENTS
    return replace(
        pattern,
        edges=tuple(replace(edge, parallel=False) for edge in kinds.values()),
        clauses=tuple(replace(clause, mode=repeat) for clause in pattern.clauses),
        unequal=tuple(sorted(unequal_vertices(pattern))),
        outputs=tuple(vertex.name for vertex in pattern.vertices),
        count_only=False,
        limit=None,
        duplicates="drop",
    )


def numbers_bytes(graph: DataGraph, pattern: PatternGraph, choices: Mapping[int, Choice]) -> int:
    """Return the bytes that :func:`multiplied` takes, about: where each list begins and ends, by vertex and kind.

    The edges that conditions were tested for are copied, and numbered by what they fulfil.
    """
    kinds: set[tuple[tuple[int, ...] | None, bool]] = {(edge.labels, edge.directed) for edge in pattern.edges}
    if choice_order(pattern, graph.type_label) is None:
        kinds = {(labels, True) for _, labels in atoms((edge.labels for edge in pattern.edges), graph.type_label)}
    tested = [choice.fulfil for choice in Conditions(pattern, choices).tested if choice.fulfil is not None]
    return 16 * (graph.vertices * (len(kinds) + 2 * len(tested)) + sum(map(len, tested)))


def _is_path(edge: PatternEdge) -> bool:
    return any(closure_of(label) is not None for label in edge.labels or ())


def multiplied(
    snapshot: Snapshot,
    bound: BoundPattern,
    pattern: PatternGraph,
    needs: Wanted,
    blocks: Iterable[Block],
    check: Callable[[], None],
) -> Iterator[Block]:
    """Give the bindings that have choices of edges for ``pattern``, with their numbers where these are wanted.

    The numbers are int64 if they fit, else Python's integers.
    """
    graph, conditions = snapshot.graph, Conditions(pattern, bound.choices)
    order = _products_order(pattern, conditions, graph.type_label)
    choices = Injections(snapshot, pattern, conditions) if order is None else _Products(graph, pattern, order)
    names = [vertex.name for vertex in pattern.vertices]
    counts = needs.count_only or needs.nothing or needs.duplicates == "count"
    for whole in blocks:
        for begin in range(0, whole.count, _BLOCK):
            check()
            columns = {name: column[begin : begin + _BLOCK] for name, column in whole.columns.items()}
            matches = choices([columns[name] for name in names], min(_BLOCK, whole.count - begin), check)
            alive: NDArray[np.bool_] = matches > 0
            columns = {name: column[alive] for name, column in columns.items()}
            yield Block(columns, int(np.count_nonzero(alive)), narrowed(matches[alive]) if counts else None)


def _products_order(
    pattern: PatternGraph, conditions: Conditions, type_label: int | None
) -> list[tuple[int, tuple[int, ...]]] | None:
    """The order in which edges choose, each among what is left; None where choices are no product."""
    return None if conditions.tested else choice_order(pattern, type_label)


class _Products:
    """How many choices of edges there are, as products of what each edge has left."""

    def __init__(self, graph: DataGraph, pattern: PatternGraph, order: list[tuple[int, tuple[int, ...]]]) -> None:
        self._edges, self._order = pattern.edges, order
        self._numbers: dict[tuple[object, ...], EdgeNumbers] = {}
        for edge in pattern.edges:
            kind = _kind(edge)
            if kind not in self._numbers:
                direction: Direction = "out" if edge.directed else "both"
                partition = graph.partition(edge.labels, direction, parallel=edge.parallel)
                self._numbers[kind] = EdgeNumbers.of(partition, graph.vertices)

    def __call__(self, vertices: list[Ids], rows: int, check: Callable[[], None]) -> Numbers:
        ends = [(vertices[edge.source], vertices[edge.target]) for edge in self._edges]
        matches: Numbers = np.ones(rows, np.int64)
        known: dict[tuple[object, ...], Ids] = {}
        for number, before in self._order:
            edge = self._edges[number]
            between = (*_kind(edge), edge.source, edge.target)
            if between not in known:
                known[between] = self._numbers[_kind(edge)](*ends[number])
            left = known[between]
            for other in before:
                left = left - _coincide(ends[number], ends[other], edge.directed)
            matches = products(matches, np.maximum(left, 0))
        return matches


def _kind(edge: PatternEdge) -> tuple[object, ...]:
    """What the number of a pattern edge's choices depends on, beside the vertices at its ends."""
    return edge.labels, edge.directed, edge.parallel


def _coincide(late: tuple[Ids, Ids], early: tuple[Ids, Ids], directed: bool) -> NDArray[np.bool_]:
    """Whether what an earlier edge is bound to is among the choices of a later one."""
    same: NDArray[np.bool_] = (late[0] == early[0]) & (late[1] == early[1])
    return same if directed else same | ((late[0] == early[1]) & (late[1] == early[0]))
