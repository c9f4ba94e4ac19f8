"""Queries whose rows are asked for anew with each batch: prepared once, until what they read of is another table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphdb.live.matches.delta import is_fact
from graphdb.relational.paths.unrolled import Unrolled
from graphdb.relational.program import Program

if TYPE_CHECKING:
    from graphdb.pattern.bind import BoundPattern
    from graphdb.relational.query import Prepared
    from graphdb.relational.snapshot import Snapshot
    from graphdb.storage.graph.changes import Changes

Key = tuple[int, int]
"""The number of a continuous query, and that of a branch of it."""


class PreparedQueries:
    """What was prepared of the branches of continuous queries, over states of one connection that follow each other.

    It reads tables of properties: these go on from state to state until a property changes, or a state is read anew.
    """

    def __init__(self) -> None:
        self._found: dict[Key, tuple[object, Prepared | Program]] = {}
        self._chosen: dict[Key, frozenset[int]] = {}
        """By the same keys, the labels among whose single edges they choose, by places in tables of all."""

    def get(self, key: Key, snapshot: Snapshot) -> Prepared | Program | None:
        """Return what was prepared of a branch, if its tables are there."""
        lineage, found = self._found.get(key, (None, None))
        return found if lineage is snapshot.properties.lineage else None

    def put(self, key: Key, snapshot: Snapshot, prepared: Prepared | Program) -> None:
        """Note what was prepared of a branch over a state."""
        self._found[key] = snapshot.properties.lineage, prepared
        choices = (choice for bound in _bounds(prepared) for choice in bound.choices.values())
        self._chosen[key] = frozenset(label for choice in choices for label in choice.labels)

    def drop(self, number: int) -> None:
        """Forget the branches of a query, whose names stand for something else."""
        for key in [key for key in self._found if key[0] == number]:
            del self._found[key]

    def follow(self, changes: Changes, type_label: int | None) -> None:
        """Forget all where more changed than edges without properties, and those of which chosen edges did."""
        rows, single = np.concatenate([changes.removed, changes.added]), changes.edges
        if is_fact(rows, type_label).any() or single.triples is None or len(single.triples):
            self._found.clear()
        for key in [*self._found]:
            if not self._chosen[key].isdisjoint(changes.labels):
                del self._found[key]


def _bounds(prepared: Prepared | Program) -> list[BoundPattern]:
    """Return the patterns that were bound for a query."""
    if isinstance(prepared, Program):
        return [step.bound for step in prepared.matches]
    parts = prepared.parts if isinstance(prepared, Unrolled) else ()
    return [prepared.bound, *(part.bound for part in parts)]
