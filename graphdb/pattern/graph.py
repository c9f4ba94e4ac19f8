"""The logical pattern graph: what the binder hands to the planner, all names already ids.

Ids here are *vertex ids of the data graph* (:class:`graphdb.storage.graph.data_graph.DataGraph`): resources first
(``0 … resources-1``), then literals.  An edge label is the resource id of its predicate.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from graphdb.grammar.syntax import MatchMode

Duplicates = Literal["keep", "drop", "count"]


@dataclass(frozen=True, slots=True)
class PatternVertex:
    """A vertex of the pattern.

    ``candidates`` holds all data vertices it may be bound to (sorted, unique, int64), or is None where only the
    pattern's edges constrain it.  It stands for labels, property predicates and constants together.
    """

    name: str
    candidates: NDArray[np.int64] | None = field(default=None, compare=False)
    condition: str = ""
    """The same in words, for EXPLAIN: ``":Person, age > 30"``."""
    labels: tuple[int, ...] = ()
    """Vertex labels (class ids) that every candidate certainly has; its neighbours' signatures are tested for them."""


@dataclass(frozen=True, slots=True)
class PatternEdge:
    """An edge of the pattern from vertex number ``source`` to ``target``.

    ``labels`` lists the edge labels it may take (sorted); None means any edge between resources but ``rdf:type``.
    An undirected edge matches a data edge in either direction, a data self loop once.  With more than one label
    (or undirected) one pair of vertices may be joined by several data edges: each is a match of its own.
    """

    name: str
    source: int
    target: int
    labels: tuple[int, ...] | None
    directed: bool
    clause: int
    """The MATCH clause it belongs to: match modes hold within one clause."""
    parallel: bool = False
    """A triple may stand for several edges here: two such pattern edges may bind one, and which of its edges each of
    them takes is decided after the match (:mod:`graphdb.relational.edges.parallel_edges`)."""
    among: tuple[int, ...] | None = None
    """Where ``labels`` is the number of a subset of edges (:mod:`graphdb.storage.graph.derived.edge_subset`), their
    labels.
    """

    @property
    def admitted(self) -> tuple[int, ...] | None:
        """The labels of the data edges that it may take."""
        return self.labels if self.among is None else self.among


@dataclass(frozen=True, slots=True)
class EdgeTest:
    """A condition on two bound vertices (which may be the same one): such an edge exists, or with ``negated`` none.

    It multiplies nothing.
    """

    source: int
    target: int
    labels: tuple[int, ...] | None
    directed: bool
    negated: bool


@dataclass(frozen=True, slots=True)
class Clause:
    """One MATCH clause: its mode and the pattern vertices that it mentions (its edges know it by number)."""

    mode: MatchMode
    vertices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PatternGraph:
    """All MATCH clauses of one query together.

    ``outputs`` names the vertices and edges whose bindings are wanted.  Every match gives a row, also where the
    rows are equal because a vertex or edge is not an output.  With ``count_only`` just the number of matches is
    wanted, and ``outputs`` is empty.

    ``duplicates`` says what else will do: equal rows may be given once (``drop``), or come with the number of matches
    that they stand for (``count``).  Either way some rows may still be equal.
    """

    vertices: tuple[PatternVertex, ...]
    edges: tuple[PatternEdge, ...]
    clauses: tuple[Clause, ...]
    edge_tests: tuple[EdgeTest, ...] = ()
    unequal: tuple[tuple[int, int], ...] = ()
    """Pairs of vertices that must differ, whatever the mode (from ``a <> b``)."""
    outputs: tuple[str, ...] = ()
    count_only: bool = False
    limit: int | None = None
    """At most so many matches are wanted, whichever they are; so many distinct rows, where duplicates are dropped."""
    duplicates: Duplicates = "keep"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the clauses after MATCH need of it."""

    vertices: tuple[int, ...]
    edges: tuple[int, ...]
    count_only: bool
    """Only the number of matches is needed, as the bindings' one row ``count``."""
    limit: int | None
    """So many matches (or, where duplicates are dropped, distinct rows) suffice."""
    duplicates: Duplicates = "keep"
    """What is needed of equal bindings: each of them, one of them, or one (column ``n``: how many they are)."""
    facts: tuple[int, ...] = ()
    """Edges of which only properties are needed that are columns of the bindings, whatever they are bound to."""
    by_label: bool = False
    """Nothing is needed but the labels of edges, each once or with its number: any binding of one stands for all."""

    @property
    def nothing(self) -> bool:
        """Whether no column of the match is needed."""
        return not (self.vertices or self.facts)
