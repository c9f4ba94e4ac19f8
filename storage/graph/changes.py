"""Changes of the graph, and what they do to sets of its vertices.

Vertex ids are dense, resources before literals, so new resources move all literals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common.values.terms import LITERAL_BASE
from graphdb.storage.arrays.sorted_sets import joined, unique, without
from graphdb.storage.file.prepared_sql import execute

if TYPE_CHECKING:
    import duckdb

Ints = NDArray[np.int64]

MOST = 200_000
"""Triples up to which changes are followed; beyond, deriving anew is as quick."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many terms there are: what vertex ids depend on."""

    resources: int
    literals: int

    @property
    def vertices(self) -> int:
        """How many vertices there are."""
        return self.resources + self.literals


@dataclass(frozen=True, slots=True)
class Counted:
    """What is counted of labels after a change, and that this was all but for what is written of single edges."""

    edge_labels: Mapping[int, tuple[int, ...] | None] = field(default_factory=dict)
    """Rows of ``edge_label`` without their ids, by id; None for those without a triple."""
    vertex_labels: Mapping[int, int] = field(default_factory=dict)
    """Vertices of vertex labels, by id."""
    sizes: Sizes | None = None
    """How many terms there are now, where there may be more."""
    pairs: Ints | None = field(default_factory=lambda: np.empty((0, 5), np.int64))
    """What is added to edges and vertices of an edge label, direction and vertex label: int64 [pairs, 5], as (label,
    class, direction, edges, vertices); None where the file is to be asked."""


@dataclass(frozen=True, slots=True)
class EdgeRows:
    """The edge labels of which rows of single edges were written."""

    come: frozenset[int] = frozenset()
    """Labels of rows that came, …"""
    parallel: frozenset[int] = frozenset()
    """… some of them of a parallel edge."""
    gone: frozenset[int] = frozenset()
    """Labels of rows that may have gone."""
    triples: Ints | None = field(default_factory=lambda: np.empty((0, 3), np.int64), compare=False)
    """Whose rows were written, int64 [triples, 3], some of them more than once; None where that is not known."""


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """Triples of term ids that the graph lost and then gained: int64 [triples, 3], as (label, subject, object)."""

    removed: Ints = field(default_factory=lambda: np.empty((0, 3), np.int64))
    added: Ints = field(default_factory=lambda: np.empty((0, 3), np.int64))
    counted: Counted | None = None
    """What the file says of their labels now; None where it is to be asked."""
    edges: EdgeRows = EdgeRows()
    """What is written of single edges beside."""
    values: Mapping[int, int | str] = field(default_factory=dict)
    """Values of literals, by id: of integers and plain strings among the objects, as far as they are known."""

    @classmethod
    def read(cls, connection: duckdb.DuckDBPyConnection, removed: str | None, added: str | None) -> Changes:
        """Changes from tables of triples, at most :data:`MOST` rows; None is no row."""

        def rows(table: str | None) -> Ints:
            if table is None:
                return np.empty((0, 3), np.int64)
            found = execute(connection, f"SELECT label, subject, object FROM {table}").fetchnumpy()
            return np.column_stack([found[name] for name in ("label", "subject", "object")])

        return cls(rows(removed), rows(added))

    @property
    def triples(self) -> int:
        """How many triples came and went."""
        return len(self.removed) + len(self.added)

    @property
    def labels(self) -> frozenset[int]:
        """The edge labels of all triples."""
        return frozenset(self.removed[:, 0].tolist()).union(self.added[:, 0].tolist())

    def relabel(self, type_label: int | None, classes: frozenset[int]) -> bool:
        """Whether vertices get or lose one of some vertex labels; ``type_label`` is the edge label of `rdf:type`."""
        if type_label is None:
            return False
        typed = (rows[rows[:, 0] == type_label, 2] for rows in (self.removed, self.added))
        return any(not classes.isdisjoint(rows.tolist()) for rows in typed)

    @property
    def literals(self) -> bool:
        """Whether there is a literal among the objects."""
        return any(bool((rows[:, 2] >= LITERAL_BASE).any()) for rows in (self.removed, self.added))


def moved_ids(vertices: NDArray[Any], before: Sizes, now: Sizes) -> NDArray[Any]:
    """The ids that vertices have by now, in an array of the same type."""
    if before.resources == now.resources or not len(vertices):
        return vertices
    return np.where(vertices >= before.resources, vertices + (now.resources - before.resources), vertices).astype(
        vertices.dtype, copy=False
    )


def moved_column(column: NDArray[Any], before: Sizes, now: Sizes) -> NDArray[Any]:
    """One entry per vertex, with zeros for new ones; the same array where there are none."""
    if before == now:
        return column
    resources = np.zeros(now.resources - before.resources, column.dtype)
    literals = np.zeros(now.literals - before.literals, column.dtype)
    return np.concatenate([column[: before.resources], resources, column[before.resources :], literals])


def subjects_of(changes: Iterable[Changes], label: int | None) -> Ints:
    """The subjects of what came and went of an edge label: sorted."""
    rows = [rows[rows[:, 0] == label, 1] for change in changes for rows in (change.removed, change.added)]
    return unique(np.concatenate([np.empty(0, np.int64), *rows]))


def ends_of(changes: Iterable[Changes], label: int, direction: str, resources: int) -> Ints:
    """The vertices, sorted, of which what came and went of an edge label leaves, enters, or either (``both``)."""
    found = [np.empty(0, np.int64)]
    for change in changes:
        for rows in (change.removed, change.added):
            _, subject, object = rows[rows[:, 0] == label].T
            found += [] if direction == "in" else [subject]
            vertex = np.where(object >= LITERAL_BASE, object - LITERAL_BASE + resources, object)
            found += [] if direction == "out" else [vertex]
    return unique(np.concatenate(found))


def members(vertices: Ints, class_id: int, type_label: int | None, changes: Iterable[Changes]) -> Ints:
    """The vertices with a vertex label, with those that got it and without those that lost it."""
    for change in changes:
        gone, come = (
            rows[(rows[:, 0] == type_label) & (rows[:, 2] == class_id), 1] for rows in (change.removed, change.added)
        )
        if len(gone):
            vertices = without(vertices, unique(gone))
        if len(come):
            vertices = joined(vertices, unique(come))
    return vertices


def grown(
    universe: Ints, type_label: int | None, changes: Iterable[Changes], occurring: Callable[[Ints], Ints]
) -> Ints:
    """The vertices that a pattern vertex ranges over, with those that came, and without those that are gone.

    ``occurring`` returns those of some resources that are in a triple that counts.
    """
    doubtful = [np.empty(0, np.int64)]
    for change in changes:
        doubtful += _ends(change.removed, type_label)
        universe = joined(universe, unique(np.concatenate(_ends(change.added, type_label))))
    asked = unique(np.concatenate(doubtful))
    return without(universe, without(asked, occurring(asked))) if len(asked) else universe


def _ends(triples: Ints, type_label: int | None) -> list[Ints]:
    """The resources that triples have by their ends: subjects, and objects of anything but ``rdf:type``."""
    labels, subjects, objects = triples.T
    return [subjects, objects[(objects < LITERAL_BASE) & among(labels, None, type_label)]]


def having(flags: NDArray[np.bool_], label: int, now: Sizes, changes: Iterable[Changes]) -> NDArray[np.bool_] | None:
    """Which resources have a literal by a label; None where one may have lost its last."""
    found = np.zeros(now.resources, np.bool_)
    found[: len(flags)] = flags
    for change in changes:
        gone, come = (
            rows[(rows[:, 0] == label) & (rows[:, 2] >= LITERAL_BASE), 1] for rows in (change.removed, change.added)
        )
        if not set(gone.tolist()) <= set(come.tolist()):
            return None
        found[come] = True
    return found


def loops(
    there: NDArray[Any], labels: tuple[int, ...] | None, type_label: int | None, changes: Iterable[Changes]
) -> Any:
    """Whether some edge of these labels joins a vertex with itself, as one bool; None where the last may have gone."""
    for change in changes:
        gone, come = (
            bool(np.any((rows[:, 1] == rows[:, 2]) & among(rows[:, 0], labels, type_label)))
            for rows in (change.removed, change.added)
        )
        if gone:
            return None
        there = there | come
    return there


def among(found: Ints, labels: tuple[int, ...] | None, type_label: int | None) -> NDArray[np.bool_]:
    """Which of some edge labels are among others; None stands for any but ``rdf:type``."""
    return found != (-1 if type_label is None else type_label) if labels is None else np.isin(found, labels)
