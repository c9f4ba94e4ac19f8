"""What a batch changes of a pattern's matches, found in the neighbourhood of what it changes.

A match that comes or goes has a changed edge, and all its other edges lie within the pattern's reach of that.  So a
batch on a graph of which nothing is in memory yet reads these edges, hop by hop, where following all batches to come
would take the edges of the whole graph (:class:`.matching.Matcher`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphdb.incremental.changes import VertexChanges
from graphdb.incremental.induced import is_induced
from graphdb.incremental.matcher import IncrementalMatcher
from graphdb.live.matches.delta import DeltaQuery
from graphdb.live.matches.matching import Batch, Take, edges_at, triples_without
from graphdb.relational.filtering.candidates import Candidates
from graphdb.storage.arrays.small_joins import distinct
from graphdb.storage.arrays.sorted_sets import both, either, unique, without
from graphdb.storage.graph.array_source import ArraySource

if TYPE_CHECKING:
    from graphdb.pattern.graph import PatternGraph
    from graphdb.relational.snapshot import Snapshot

Ints = NDArray[np.int64]

MOST_VERTICES = 20_000
"""Vertices whose edges are read for one hop; …"""
MOST_EDGES = 200_000
"""… and edges in all: a larger neighbourhood is worth reading the graph."""


def find_near(
    delta: DeltaQuery,
    batch: Batch,
    snapshot: Snapshot,
    former: Callable[[Ints], list[Ints | None]],
    take: Take,
    check: Callable[[], None],
) -> bool:
    """Hand over what a batch changes of a query's matches; False where the neighbourhood is too large.

    Parameters
    ----------
    delta, batch, snapshot
        The query and the batch over the state after it.
    former
        Returns, by vertex of the pattern, which of some sorted vertices were candidates before the batch.
    check
        Called every few milliseconds, and may raise.
    take
        Is given the matches.
    """
    edges = np.concatenate([batch.gone, batch.come, batch.around])
    near = _around(delta, snapshot, unique(edges[:, 1:]), check)
    if near is None:
        return False
    before = distinct(
        np.concatenate([triples_without(near, batch.come), batch.gone, triples_without(batch.around, batch.come)])
    )
    changed = [ids for change in batch.vertices.candidates for ids in (change.gained, change.lost)]
    region = unique(np.concatenate([before[:, 1:].reshape(-1), edges[:, 1:].reshape(-1), *map(np.asarray, changed)]))
    pattern = _with_candidates(delta, batch, snapshot, region, former)
    inner = _inner(batch, region)
    labels, subjects, objects = _renumbered(before, region).T
    source = ArraySource(subjects, labels, objects, len(region), type_label=snapshot.store.type_label)
    vertices = [column for column, name in enumerate(pattern.outputs) if name in {v.name for v in pattern.vertices}]

    def outer(*sides: Ints) -> None:
        for rows in sides:
            if len(rows):
                rows[:, vertices] = region[rows[:, vertices]]
        take(*sides)

    inner.find(IncrementalMatcher(source, [pattern], [delta.conditions], counted=delta.counted), outer, check)
    return True


def _around(delta: DeltaQuery, snapshot: Snapshot, seeds: Ints, check: Callable[[], None]) -> Ints | None:
    """Return the edges of now that a match may have which binds an edge between some vertices; None for too many."""
    found, known, frontier = np.empty((0, 3), np.int64), seeds, seeds
    for _ in range(_reach(delta.pattern)):
        check()
        if len(frontier) > MOST_VERTICES:
            return None
        fresh = edges_at(snapshot, frontier, delta)
        found = distinct(np.concatenate([found, fresh]))
        if len(found) > MOST_EDGES:
            return None
        frontier = without(unique(fresh[:, 1:]), known)
        known = either(known, frontier)
    return found


def _reach(pattern: PatternGraph) -> int:
    """Return within how many hops of an edge all others of a connected pattern begin or end, whichever it is.

    Of INDUCED matches all edges at all vertices matter, and the edge may join any two of them.
    """
    if is_induced(pattern):
        pairs = combinations_with_replacement(range(len(pattern.vertices)), 2)
        return 1 + max(max(_hops(pattern, a, b).values()) for a, b in pairs)
    most = 0
    for seed in pattern.edges:
        hops = _hops(pattern, seed.source, seed.target)
        others = [edge for edge in pattern.edges if edge is not seed]
        most = max([most, *(min(hops[edge.source], hops[edge.target]) + 1 for edge in others)])
    return most


def _hops(pattern: PatternGraph, a: int, b: int) -> dict[int, int]:
    """Return how many hops the vertices of a connected pattern are from one of two."""
    hops = {a: 0, b: 0}
    while len(hops) < len(pattern.vertices):
        ends = [(edge.source, edge.target) for edge in pattern.edges]
        ends += [(b, a) for a, b in ends]
        fresh = {b: hops[a] + 1 for a, b in ends if a in hops and b not in hops}
        if not fresh:
            break
        hops |= fresh
    return hops


def _with_candidates(
    delta: DeltaQuery, batch: Batch, snapshot: Snapshot, region: Ints, former: Callable[[Ints], list[Ints | None]]
) -> PatternGraph:
    """Return the pattern with its candidates before the batch, by their places in a region."""
    if not any(delta.conditions):
        return delta.pattern
    new = np.concatenate([np.asarray(change.gained, np.int64) for change in batch.vertices.candidates] or [region[:0]])
    concerned = either(batch.read, new)
    same, then = without(region, concerned), both(region, concerned)
    found = Candidates(snapshot, delta.text, {}).among(delta.bound, same)
    others = former(then) if len(then) else [None] * len(found)
    vertices = []
    for vertex, now, before in zip(delta.pattern.vertices, found, others, strict=True):
        if now is not None:
            own = now if before is None else either(now, before)
            vertex = replace(vertex, candidates=np.searchsorted(region, own))
        vertices.append(vertex)
    return replace(delta.pattern, vertices=tuple(vertices))


def _inner(batch: Batch, region: Ints) -> Batch:
    """Return a batch by the places of its vertices in a region."""
    changes = tuple(
        change._replace(gained=np.searchsorted(region, change.gained), lost=np.searchsorted(region, change.lost))
        for change in batch.vertices.candidates
    )
    gone, come, around = (_renumbered(rows, region) for rows in (batch.gone, batch.come, batch.around))
    return batch._replace(gone=gone, come=come, around=around, vertices=VertexChanges(changes))


def _renumbered(rows: Ints, region: Ints) -> Ints:
    return np.column_stack([rows[:, 0], np.searchsorted(region, rows[:, 1:])])
