"""INDUCED matches: those of the pattern's edges between whose vertices there are no others.

A batch changes such matches in two ways.  A match of the edges comes or goes, and is induced in the version that it is
in.  Or the edges stay, and another edge between two of its vertices comes or goes: so each pair of vertices has a
pattern of its own, with an *extra* edge between them, whose one delta plan begins there.  A match that several such
edges concern is taken at the first of them.  Mostly it is induced where the extra edge is not; but where edges of the
pattern are the same one of the graph, it can be induced only with another one beside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from graphdb.common.errors import NotSupportedError
from graphdb.grammar.syntax import MatchMode
from graphdb.incremental.lists import Lists
from graphdb.incremental.relations import Relation
from graphdb.pattern.graph import PatternEdge, PatternGraph

Ints = NDArray[np.int64]

EVERY = Relation(None, "either", 0, 0)
"""All edges between resources, by either end."""
MOST_INDUCED = 12
"""Vertices of an INDUCED clause, of which each pair has a delta plan."""


@dataclass(frozen=True)
class Part:
    """One of the patterns whose matches the induced ones of a pattern are chosen from."""

    owner: int
    """The number of the pattern with INDUCED clauses."""
    pattern: PatternGraph
    """Its edges, and with an extra one; its outputs are all vertices and edges, the extra one last."""
    pairs: Ints
    """[pairs, 3]: the columns of two vertices in a match's row, and how many edges join them in the pattern."""
    extra: int
    """Which pair the extra edge joins, or -1."""
    columns: Ints
    """Of the outputs that are wanted."""

    @property
    def seed(self) -> int | None:
        """The one edge that has a delta plan; None where all have one."""
        return len(self.pattern.edges) - 1 if self.extra >= 0 else None

    def choose(self, lists: Lists, relations: Sequence[Relation], rows: Ints, *, counted: bool) -> Ints:
        """Return of a staged batch's rows those that are induced matches, gained or lost.

        Parameters
        ----------
        lists, relations
            The graph, and the relation of each edge of the part, seen from its source.
        rows
            [matches, outputs + 1]: their version first.
        counted
            Whether a 1 stands last in what is returned: of how many matches a row is.
        """
        from graphdb.incremental.kernels.induced_kernels import choose_induced

        own, every = np.ascontiguousarray(rows), lists.relations.numbers[EVERY]
        edges = self._edges([lists.relations.numbers[relation] for relation in relations])
        found = choose_induced(lists.address, lists.like, every, own, edges, self.pairs, self.extra)
        chosen = own[:found, np.concatenate([[0], self.columns])]
        return np.column_stack([chosen, np.ones(found, np.int64)]) if counted else chosen

    def _edges(self, relations: Sequence[int]) -> Ints:
        """[edges, 4]: of each edge but the extra one its relation and the columns of its code, source and target."""
        own, vertices = self.pattern.edges[: self.seed], len(self.pattern.vertices)
        rows = [(relations[e], 1 + vertices + e, 1 + edge.source, 1 + edge.target) for e, edge in enumerate(own)]
        return np.array(rows, np.int64).reshape(-1, 4)


def is_induced(pattern: PatternGraph) -> bool:
    """Whether a pattern has INDUCED clauses."""
    return any(clause.mode is MatchMode.INDUCED for clause in pattern.clauses)


def refuse_induced(pattern: PatternGraph, literals: int, type_label: int | None) -> None:
    """Raise NotSupportedError where a pattern's INDUCED clauses are not matched incrementally in a graph of so many
    literals, in which a label says what classes vertices have.
    """
    if not is_induced(pattern):
        return
    labels = {label for edge in pattern.edges for label in edge.labels or ()}
    if literals or type_label in labels:
        raise NotSupportedError("INDUCED matches with literals or rdf:type are not matched incrementally")
    if any(len(own) > MOST_INDUCED for own in _members(pattern).values()):
        raise NotSupportedError(f"INDUCED matches of more than {MOST_INDUCED} vertices are not matched incrementally")


def parts(owner: int, pattern: PatternGraph) -> list[Part]:
    """Return the parts of a pattern with INDUCED clauses: that of its edges first."""
    names = [vertex.name for vertex in pattern.vertices] + [edge.name for edge in pattern.edges]
    clauses = tuple(
        replace(clause, mode=MatchMode.DIFFERENT_NODES) if clause.mode is MatchMode.INDUCED else clause
        for clause in pattern.clauses
    )
    plain = replace(pattern, clauses=clauses, outputs=tuple(names))
    pairs, of_clause = list[tuple[int, int, int]](), list[int]()
    for number, members in _members(pattern).items():
        own = [{edge.source, edge.target} for edge in pattern.edges if edge.clause == number]
        for u, w in [*combinations(members, 2), *zip(members, members, strict=True)]:
            pairs.append((1 + u, 1 + w, own.count({u, w})))
            of_clause.append(number)
    rows = np.array(pairs, np.int64).reshape(-1, 3)
    columns = np.array([1 + names.index(name) for name in pattern.outputs], np.int64)
    found = [Part(owner, plain, rows, -1, columns)]
    for extra, ((u, w, _), clause) in enumerate(zip(pairs, of_clause, strict=True)):
        edge = PatternEdge(" extra", u - 1, w - 1, None, u == w, clause)
        longer = replace(plain, edges=(*plain.edges, edge), outputs=(*names, edge.name))
        found.append(Part(owner, longer, rows, extra, columns))
    return found


def _members(pattern: PatternGraph) -> dict[int, Sequence[int]]:
    """Return the vertices of each INDUCED clause."""
    found: dict[int, Sequence[int]] = {}
    for number, clause in enumerate(pattern.clauses):
        if clause.mode is MatchMode.INDUCED:
            ends = {end for edge in pattern.edges if edge.clause == number for end in (edge.source, edge.target)}
            found[number] = sorted({*clause.vertices, *ends})
    return found
