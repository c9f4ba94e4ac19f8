"""Changes of the graph, and derived structures brought up to date with them, so that the first query after a small load
or update does not derive everything anew.

Vertex ids are dense, resources before literals, so new resources move all literals.  A structure of edge labels that
did not change is moved (:func:`moved`); a partition of one that did is merged with what came and went (:func:`merged`).
Whatever is neither is derived anew when it is next asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common.values.terms import LITERAL_BASE
from graphdb.storage.arrays.sorted_sets import places
from graphdb.storage.file.prepared_sql import execute
from graphdb.storage.graph.derived.closure import closure_of
from graphdb.storage.graph.pcsr import Direction, Partition, partition_of_runs

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


@dataclass(frozen=True, slots=True)
class EdgeRows:
    """The edge labels of which rows of single edges were written."""

    come: frozenset[int] = frozenset()
    """Labels of rows that came, …"""
    parallel: frozenset[int] = frozenset()
    """… some of them of a parallel edge."""
    gone: frozenset[int] = frozenset()
    """Labels of rows that may have gone."""


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """Triples of term ids that the graph lost and then gained: int64 [triples, 3], as (label, subject, object)."""

    removed: Ints = field(default_factory=lambda: np.empty((0, 3), np.int64))
    added: Ints = field(default_factory=lambda: np.empty((0, 3), np.int64))
    counted: Counted | None = None
    """What the file says of their labels now; None where it is to be asked."""
    edges: EdgeRows = EdgeRows()
    """What is written of single edges beside."""

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
    def labels(self) -> frozenset[int]:
        """The edge labels of all triples."""
        return frozenset(np.concatenate([self.removed[:, 0], self.added[:, 0]]).tolist())

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
    """One entry per vertex, with zeros for new ones."""
    resources = np.zeros(now.resources - before.resources, column.dtype)
    literals = np.zeros(now.literals - before.literals, column.dtype)
    return np.concatenate([column[: before.resources], resources, column[before.resources :], literals])


def moved(partition: Partition, before: Sizes, now: Sizes) -> Partition | None:
    """A partition whose edges are as before, among the vertices of now; None where it is to be derived anew."""
    if before == now:
        return partition
    keys = moved_ids(partition.keys, before, now)
    offsets = partition.offsets
    if partition.layer == "direct":
        at = before.resources
        offsets = np.concatenate([
            offsets[: at + 1], np.full(now.resources - at, offsets[at]),
            offsets[at + 1 :], np.full(now.literals - before.literals, offsets[-1]),
        ])  # fmt: skip
    elif keys is not partition.keys and len(keys) and keys[-1] != partition.keys[-1]:
        return None  # where a vertex is hashed to depends on its id
    neighbours = moved_ids(partition.neighbours, before, now)
    return replace(partition, offsets=offsets, neighbours=neighbours, keys=keys)


def merged(
    partition: Partition, label: int, direction: Direction, before: Sizes, now: Sizes, changes: Iterable[Changes]
) -> Partition | None:
    """The partition of one label and direction with what came and went; None where it is to be derived anew.

    It takes two copies of its arrays, and of what changed a search in the neighbours of its vertex.
    """
    if partition.layer != "direct" or partition.codes is not None:
        return None
    own = moved(partition, before, now)
    assert own is not None  # as a direct one always is
    offsets, neighbours, loops = own.offsets, own.neighbours, own.loops
    for (source, target), comes in zip(_net(changes, label, direction, now), (False, True), strict=True):
        at = _lower_bound(neighbours, offsets[source], offsets[source + 1], target)
        wanted = at < offsets[source + 1]
        wanted[wanted] = neighbours[at[wanted]] == target[wanted]
        wanted ^= comes
        if not wanted.any():
            continue
        at, source, target = at[wanted], source[wanted], target[wanted]
        neighbours = np.insert(neighbours, at, target) if comes else np.delete(neighbours, at)
        counted = np.bincount(source + 1, minlength=len(offsets)).astype(np.int64, copy=False)
        np.cumsum(counted, out=counted)
        offsets = offsets + counted if comes else offsets - counted
        if bool((source == target).any()):  # the last loop may have gone
            loops = comes or bool((np.repeat(np.arange(now.vertices), np.diff(offsets)) == neighbours).any())
    return partition_of_runs(offsets, neighbours, loops, now.vertices, None)


def _net(
    changes: Iterable[Changes], label: int, direction: Direction, now: Sizes
) -> tuple[tuple[Ints, Ints], tuple[Ints, Ints]]:
    """What changes do to a label in all: (sources, targets) of the edges that go, then of those that come, sorted."""
    steps = [rows[rows[:, 0] == label] for change in changes for rows in (change.removed, change.added)]
    comes = np.repeat(np.arange(len(steps)) % 2 == 1, [len(rows) for rows in steps])
    _, subjects, objects = np.concatenate(steps).T
    objects = np.where(objects >= LITERAL_BASE, objects - LITERAL_BASE + now.resources, objects)
    source, target = (subjects, objects) if direction == "out" else (objects, subjects)
    pairs, last = np.unique((source * now.vertices + target)[::-1], return_index=True)
    found = [np.divmod(pairs[comes[::-1][last] == side], now.vertices) for side in (False, True)]
    return found[0], found[1]


def _lower_bound(values: NDArray[Any], begin: Ints, end: Ints, wanted: Ints) -> Ints:
    """Where, in sorted runs ``begin … end-1`` of some values, the first one stands that is not below a wanted one."""
    low, high = begin.copy(), end.copy()
    while (open := low < high).any():
        middle = (low + high) // 2
        below = open.copy()
        below[open] = values[middle[open]] < wanted[open]
        low[below] = middle[below] + 1
        high[open & ~below] = middle[open & ~below]
    return low


def members(vertices: Ints, class_id: int, type_label: int | None, changes: Iterable[Changes]) -> Ints:
    """The vertices with a vertex label, with those that got it and without those that lost it."""
    for change in changes:
        gone, come = (
            np.unique(rows[(rows[:, 0] == type_label) & (rows[:, 2] == class_id), 1])
            for rows in (change.removed, change.added)
        )
        vertices = _with(_without(vertices, gone), come)
    return vertices


def _without(numbers: Ints, gone: Ints) -> Ints:
    """A sorted array without some numbers."""
    at, there = places(numbers, gone)
    return np.delete(numbers, at[there]) if there.any() else numbers


def _with(numbers: Ints, come: Ints) -> Ints:
    """A sorted array with some numbers, sorted, that it may have already."""
    at, there = places(numbers, come)
    return numbers if there.all() else np.insert(numbers, at[~there], come[~there])


def grown(universe: Ints, type_label: int | None, changes: Iterable[Changes]) -> Ints | None:
    """The vertices that a pattern vertex ranges over, with those that came; None where some may have gone."""
    for change in changes:
        if len(change.removed):
            return None
        labels, subjects, objects = change.added.T
        come = [subjects, objects[(objects < LITERAL_BASE) & (labels != (-1 if type_label is None else type_label))]]
        universe = _with(universe, np.unique(np.concatenate(come)))
    return universe


def loops(
    there: NDArray[Any], labels: tuple[int, ...] | None, type_label: int | None, changes: Iterable[Changes]
) -> Any:
    """Whether some edge of these labels joins a vertex with itself, as one bool; None where the last may have gone."""
    for change in changes:
        gone, come = (
            bool(np.any((rows[:, 1] == rows[:, 2]) & _among(rows[:, 0], labels, type_label)))
            for rows in (change.removed, change.added)
        )
        if gone:
            return None
        there = there | come
    return there


def _among(found: Ints, labels: tuple[int, ...] | None, type_label: int | None) -> NDArray[np.bool_]:
    return found != (-1 if type_label is None else type_label) if labels is None else np.isin(found, labels)


class StaleStructures:
    """Derived structures of an earlier graph, until they are asked for or dropped.

    Each is stored with the sizes that the graph had, and where in the log the changes since begin.
    """

    def __init__(self) -> None:
        self._entries: dict[tuple[Any, ...], tuple[Any, Sizes, int]] = {}
        self._log: list[tuple[Changes, frozenset[int]]] = []
        """Changes in their order, with their labels: as long as some structure needs them."""
        self._totals = [0]
        """How many triples changed before each, and with all of them."""

    def __contains__(self, key: tuple[Any, ...]) -> bool:
        return key in self._entries

    def add(self, key: tuple[Any, ...], value: Any, sizes: Sizes) -> None:
        """Add a structure of the graph as it is."""
        self._entries[key] = (value, sizes, len(self._log))

    def note(self, changes: Changes) -> None:
        """Note a change for all of them; those behind by more than :data:`MOST` triples are dropped."""
        least, totals = self._totals[-1] - MOST, self._totals
        self._entries = {key: entry for key, entry in self._entries.items() if totals[entry[2]] >= least}
        if not self._entries:
            self._log, self._totals = [], [0]
            return
        self._log.append((changes, changes.labels))
        self._totals.append(self._totals[-1] + len(changes.added) + len(changes.removed))

    def updated(self, key: tuple[Any, ...], now: Sizes, type_label: int | None) -> Any:
        """The structure ``key`` as it is now; None where it is to be derived anew."""
        if key not in self._entries:
            return None
        value, before, begin = self._entries.pop(key)
        since = [changes for changes, _ in self._log[begin:]]
        touched = frozenset[int]().union(*(labels for _, labels in self._log[begin:]))
        match key:
            case ("partition", (label,), _) if (closure := closure_of(label)) is not None:
                if closure.label in touched or (closure.low == 0 and before.resources != now.resources):
                    return None  # of 0 edges, each vertex is joined with itself
                return moved(value, before, now)
            case ("forest", label) if label not in touched:
                return value.grown(now.resources)
            case ("signature", label, _) if closure_of(label) is not None:
                return None
            case ("partition", labels, _) if labels is not None and not touched.intersection(labels):
                return moved(value, before, now)
            case ("partition", (label,), "out" | "in" as direction):
                return merged(value, label, direction, before, now, since)
            case ("signature", label, _) if not touched & {label, type_label}:
                return moved_column(value, before, now)
            case ("oriented", labels) if labels is not None and before == now and not touched.intersection(labels):
                return value
            case ("members", class_id):
                return members(value, class_id, type_label, since)
            case ("universe",):
                return grown(value, type_label, since)
            case ("derived", "loops", labels) if labels is None or not any(map(closure_of, labels)):
                return loops(value, labels, type_label, since)
        return None
