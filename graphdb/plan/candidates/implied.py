"""Whether edges lead to nothing but candidates of a vertex, as far as statistics say it: no edge is read."""

from __future__ import annotations

from graphdb.pattern.graph import PatternVertex
from graphdb.plan.estimates.ends import is_label
from graphdb.storage.graph.data_graph import DataGraph


def ends_within(graph: DataGraph, labels: tuple[int, ...], direction: int, vertex: PatternVertex) -> bool | None:
    """Return whether all edges of some labels start (``OUT``), or end (``IN``), at candidates of a pattern vertex.

    None where statistics do not say: they count edges at the vertices that have one label.
    """
    if not is_label(graph, vertex):
        return None
    found = [graph.at_class(label, direction, vertex.labels[0]) for label in labels]
    if None in found:
        return None
    counted = [graph.statistics((label,)).triples for label in labels]
    return [each[0] for each in found if each is not None] == counted
