"""Partitions brought up to date: their vertices move, and edges come and go.

Vertex ids are dense, resources before literals, so new resources move all literals.  Between resources nothing moves;
what changes of a partition is written in place (:mod:`graphdb.storage.graph.in_place.spans`): that takes as long as the
lists of these vertices are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from graphdb.common.values.terms import LITERAL_BASE
from graphdb.storage.arrays.sorted_sets import joined, without
from graphdb.storage.graph.changes import Changes, Sizes, among, moved_ids
from graphdb.storage.graph.following.order_kernels import DIGIT, sort_changes
from graphdb.storage.graph.in_place.spans import Spans
from graphdb.storage.graph.pcsr import Direction, Partition

Ints = NDArray[np.int64]
Edges = tuple[Ints, Ints, Ints, Ints]
"""By entry of a partition, sorted: source, target, code, and 1 where the edge comes, 0 where it goes."""

_MANY = 64
"""Rows from which on they are sorted as numbers."""
NO_EDGES: Edges = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))


def changed(partition: Partition, edges: Edges, threads: int = 1) -> Partition:
    """The partition after edges came and went (:meth:`.Spans.change`); the one before is not to be read any more.

    At most so many threads write its lists.
    """
    spans = partition.spans
    if spans is None:
        begins, lengths = partition.ranges()
        spans = Spans(partition.keys, begins, lengths, partition.neighbours, partition.code_offsets, partition.codes)
    elif spans.sparse:
        spans = spans.laid_out(threads)
    (come, gone), (source, target, *_) = spans.change(*edges, threads), edges
    neighbours, code_offsets, codes = spans.arrays
    return replace(
        partition,
        layer="spans",
        offsets=spans.table.reshape(-1),
        groups=len(spans.table),
        neighbours=neighbours,
        code_offsets=code_offsets,
        codes=codes,
        known_keys=None if partition.known_keys is None else without(joined(partition.known_keys, come), gone),
        max_degree=spans.max_degree,
        simple=spans.simple,
        loops=partition.loops or bool((source == target).any()),
        spans=spans,
    )


def with_gaps(partition: Partition) -> Partition:
    """The same partition as if an edge of every other vertex had gone and come again (tests)."""
    source = partition.keys[::2]
    if not len(source):
        return changed(partition, NO_EDGES)
    at = partition.ranges()[0][::2]
    target, codes = partition.neighbours[at].astype(np.int64), np.zeros(len(at), np.int64)
    if partition.code_offsets is not None and partition.codes is not None:
        codes = partition.codes[partition.code_offsets[at]]
    for comes in (np.zeros(len(at), np.int64), np.ones(len(at), np.int64)):
        partition = changed(partition, (source, target, codes, comes))
    return partition


def moved(partition: Partition, before: Sizes, now: Sizes) -> Partition | None:
    """A partition whose edges are as before, among the vertices of now; None where it is to be derived anew.

    Between resources nothing moves, and new ones have no neighbours: it gets ``spans``, which say so.
    """
    if before == now:
        return partition
    if partition.layer == "spans":
        assert partition.spans is not None
        if partition.spans.most < before.resources:
            return partition
        partition = partition.contiguous()
    keys = partition.keys
    last = max(int(keys[-1]) if len(keys) else -1, int(partition.neighbours.max(initial=-1)))
    if last < before.resources:
        return changed(partition, NO_EDGES)
    keys, offsets = moved_ids(keys, before, now), partition.offsets
    groups, at = partition.groups, before.resources
    if partition.layer == "direct" and groups > at:
        groups, new = groups + now.resources - at, np.full(now.resources - at, offsets[at])
        offsets = np.concatenate([offsets[: at + 1], new, offsets[at + 1 :]])
    elif partition.layer == "hashed" and len(keys) and keys[-1] != partition.keys[-1]:
        return None  # where a vertex is hashed to depends on its id
    neighbours = moved_ids(partition.neighbours, before, now)
    return replace(partition, offsets=offsets, groups=groups, neighbours=neighbours, known_keys=keys)


def merged(
    partition: Partition,
    labels: tuple[int, ...] | None,
    direction: Direction,
    type_label: int | None,
    before: Sizes,
    now: Sizes,
    changes: Iterable[Changes],
    threads: int = 1,
) -> Partition | None:
    """The partition of some labels and a direction with what came and went; None where it is to be derived anew.

    It takes what the lists of the changed vertices have, which at most so many threads write.
    """
    own, changes = moved(partition, before, now), list(changes)
    if own is None or not changes:
        return own
    net = _net(changes, labels, direction, type_label, now)
    return changed(own, net, threads) if len(net[0]) else own


def _net(
    changes: Iterable[Changes], labels: tuple[int, ...] | None, direction: Direction, type_label: int | None, now: Sizes
) -> Edges:
    """What changes do to some labels in all."""
    steps = [rows for change in changes for rows in (change.removed, change.added)]
    label, subject, object = np.concatenate(steps).T
    comes = np.repeat(np.arange(len(steps)) % 2, [len(rows) for rows in steps])
    mine = among(label, labels, type_label)
    if labels is None:  # such an edge is one between resources
        mine &= object < LITERAL_BASE
    label, subject, object, comes = label[mine], subject[mine], object[mine], comes[mine]
    object = np.where(object >= LITERAL_BASE, object - LITERAL_BASE + now.resources, object)
    columns = [(subject, object, 2 * label, comes), (object, subject, 2 * label + 1, comes)]
    if direction == "both":
        proper = subject != object  # a loop is one way to go, not two
        columns[1] = (object[proper], subject[proper], 2 * label[proper] + 1, comes[proper])
        source, target, code, comes = (np.concatenate(column) for column in zip(*columns, strict=True))
    else:
        source, target, code, comes = columns[direction == "in"]
    return _latest(source, target, code, comes)


def _latest(source: Ints, target: Ints, code: Ints, comes: Ints) -> Edges:
    """Rows sorted by source, target and code; of equal ones that which happened last.

    As one number each, of which the row's own is the last digit, they are sorted by their other digits; where 63 bits
    are too short for that, or rows are a handful, by columns.
    """
    rows, columns = len(code), (source, target, code)
    if rows >= _MANY:
        least = np.array([column.min() for column in columns])
        widths = [int(column.max() - low).bit_length() for column, low in zip(columns, least, strict=True)]
        if sum(widths) + rows.bit_length() <= 63:
            numbers, spare, counts = np.empty(rows, np.int64), np.empty(rows, np.int64), np.empty(1 << DIGIT, np.int64)
            found = np.empty((4, rows), np.int64)
            count = sort_changes(*columns, comes, least, np.array(widths), numbers, spare, counts, found)
            return found[0, :count], found[1, :count], found[2, :count], found[3, :count]
    order = np.lexsort((code, target, source))
    source, target, code, comes = source[order], target[order], code[order], comes[order]
    last = np.ones(rows, bool)
    last[:-1] = (np.diff(source) != 0) | (np.diff(target) != 0) | (np.diff(code) != 0)
    return source[last], target[last], code[last], comes[last]
