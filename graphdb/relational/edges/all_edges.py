"""Counts of all edges of some labels, or of each, parallel ones too: no match is run for them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from graphdb.pattern.bind import BoundPattern
from graphdb.pattern.graph import PatternGraph, Wanted
from graphdb.plan.executor import Block
from graphdb.plan.passes.edge_counts import counted_plan
from graphdb.plan.physical import PhysicalPlan
from graphdb.relational.snapshot import Snapshot

Ids = NDArray[np.int64]


def with_all_edges(
    snapshot: Snapshot, pattern: PatternGraph, bound: BoundPattern, needs: Wanted
) -> PhysicalPlan | None:
    """Return a plan that counts all edges of each label, or all of those that may be parallel; None of other matches.

    Triples alone do not say how many edges are parallel: the table of the edges does.
    """
    choice, edges = bound.choices.get(0), snapshot.edges
    if not (needs.by_label or (needs.count_only and choice is not None)):
        return None
    if choice is not None and choice.fulfil is not None:
        return None

    def numbers(label: int) -> tuple[int, int, int] | None:
        if label not in edges.parallel:
            return None
        table = edges.table((label,))
        resources = np.count_nonzero(table.ends < snapshot.graph.sizes.resources)
        return len(table), int(resources), int(np.count_nonzero(table.starts == table.ends))

    counting = replace(pattern, count_only=True, outputs=())
    return counted_plan(counting, snapshot.graph, by_label=needs.by_label, numbers=numbers)


def of_each_label(labels: Ids, counts: Ids, bound: BoundPattern, needs: Wanted, names: Iterable[str]) -> Block:
    """Return a row for each label of the only edge, which leads from any vertex: only its label is read.

    Its columns go by the ``names`` of the pattern's elements.
    """
    columns = dict.fromkeys(names, np.zeros(len(labels), np.int64))
    columns |= {bound.edges[edge].name: labels << 1 for edge in needs.edges}
    columns |= {f"#n{edge}": np.full(len(labels), -1) for edge in needs.edges}  # no edge by itself
    return Block(columns, len(labels), counts if needs.duplicates == "count" else None)
