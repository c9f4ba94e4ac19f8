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


class PreparedQueries:
    """What was prepared of continuous queries, by their numbers, over states of one connection that follow each other.

    It reads tables of properties: these go on from state to state until a property changes, or a state is read anew.
    """

    def __init__(self) -> None:
        self._found: dict[int, tuple[object, Prepared | Program]] = {}
        self._chosen: dict[int, frozenset[int]] = {}
        """By the numbers of queries, the labels among whose single edges they choose, by places in tables of all."""

    def get(self, number: int, snapshot: Snapshot) -> Prepared | Program | None:
        """Return what was prepared of a query, if its tables are there."""
        lineage, found = self._found.get(number, (None, None))
        return found if lineage is snapshot.properties.lineage else None

    def put(self, number: int, snapshot: Snapshot, prepared: Prepared | Program) -> None:
        """Note what was prepared of a query over a state."""
        self._found[number] = snapshot.properties.lineage, prepared
        choices = (choice for bound in _bounds(prepared) for choice in bound.choices.values())
        self._chosen[number] = frozenset(label for choice in choices for label in choice.labels)

    def drop(self, number: int) -> None:
        """Forget a query, whose names stand for something else."""
        self._found.pop(number, None)

    def follow(self, changes: Changes, type_label: int | None) -> None:
        """Forget all where more changed than edges without properties, and those of which chosen edges did."""
        rows, single = np.concatenate([changes.removed, changes.added]), changes.edges
        if is_fact(rows, type_label).any() or single.triples is None or len(single.triples):
            self._found.clear()
        for number in [*self._found]:
            if not self._chosen[number].isdisjoint(changes.labels):
                self.drop(number)


def _bounds(prepared: Prepared | Program) -> list[BoundPattern]:
    """Return the patterns that were bound for a query."""
    if isinstance(prepared, Program):
        return [step.bound for step in prepared.matches]
    parts = prepared.parts if isinstance(prepared, Unrolled) else ()
    return [prepared.bound, *(part.bound for part in parts)]
