"""Partitions that take batches in place: the same lists as partitions built anew, in a pool that does not grow for ever."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from graphdb.storage.graph.changes import Changes, Sizes
from graphdb.storage.graph.following.partitions import merged, moved, with_gaps
from graphdb.storage.graph.in_place import spans
from graphdb.storage.graph.pcsr import Direction, Partition, build_partition

TYPE = 0


def lists(partition: Partition, vertices: int) -> list[Any]:
    """The neighbours of every vertex, with the codes of their edges."""
    own = [partition.neighbours_of(v).tolist() for v in range(vertices)]
    if partition.codes is None:
        return own
    return [[(u, partition.codes_of(v, u).tolist()) for u in near] for v, near in enumerate(own)]


def built(edges: set[tuple[int, int, int]], labels: tuple[int, ...] | None, way: Direction, n: int) -> Partition:
    """The partition of edges (label, subject, object), as a graph derives it."""
    rows = np.array(sorted(e for e in edges if (e[0] != TYPE if labels is None else e[0] in labels)), np.int64)
    kinds, subjects, objects = rows.reshape(-1, 3).T.copy()
    one = labels is not None and len(labels) == 1
    return build_partition(labels[0] if one and labels else kinds, subjects, objects, way, n)


@pytest.mark.parametrize("labels", [(1,), (1, 2), None])
@pytest.mark.parametrize("way", ["out", "in", "both"])
@pytest.mark.parametrize("seed", range(3))
def test_batches_in_place_are_as_built_anew(
    labels: tuple[int, ...] | None, way: Direction, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the pool has space for many batches, or is copied within each, and however many threads write lists."""
    if seed == 1:
        monkeypatch.setattr(spans, "_FREE", 0)
        monkeypatch.setattr(spans, "_SLACK", 3)
    if seed:
        monkeypatch.setattr(spans, "_LISTS", 4)
    draw, n = np.random.default_rng(seed), 60
    hub = 7  # a vertex that every third edge has: its list is long, and changes with every batch
    edges = set[tuple[int, int, int]]()

    def some(count: int, vertices: int) -> set[tuple[int, int, int]]:
        s, o = draw.integers(0, vertices, (2, count))
        s = np.where(draw.integers(0, 3, count) == 0, hub, s)
        return set(zip(draw.integers(0, 4, count).tolist(), s.tolist(), o.tolist(), strict=True))

    edges = some(150, n)
    partition, sizes = built(edges, labels, way, n), Sizes(n, 0)
    for _ in range(40):
        gone = {edge for edge in edges if draw.integers(12) == 0}
        come = some(12, n + 3) - (edges - gone)
        edges, before = (edges - gone) | come, sizes
        n += 3
        sizes = Sizes(n, 0)
        changes = Changes(*(np.array(sorted(rows), np.int64).reshape(-1, 3) for rows in (gone, come)))
        after = merged(partition, labels, way, TYPE, before, sizes, [changes], threads=1 + 2 * seed)
        assert after is not None
        partition, expected = after, built(edges, labels, way, n)
        assert lists(partition, n) == lists(expected, n)
        assert partition.keys.tolist() == expected.keys.tolist()
        assert lists(partition.contiguous(), n) == lists(expected, n)
        starts, neighbours, code_offsets, codes = partition.laid_out()
        assert starts[-1] == len(neighbours) == len(expected.neighbours)
        assert (codes is None) == (expected.codes is None)
        assert code_offsets is None or len(code_offsets) == len(neighbours) + 1


def test_a_batch_writes_the_lists_of_its_vertices_only() -> None:
    n, degree = 4000, 50
    subjects = np.repeat(np.arange(n), degree)
    objects = (subjects * 31 + np.tile(np.arange(degree), n) * 77) % n
    pairs = np.unique(np.column_stack([subjects, objects]), axis=0)
    partition: Partition | None = build_partition(1, *pairs.T.copy(), "out", n)
    row = np.array([[1, 17, 4001]], np.int64)
    partition = merged(partition, (1,), "out", TYPE, Sizes(n, 0), Sizes(n + 2, 0), [Changes(added=row)])  # type: ignore[arg-type]
    used = len(partition.neighbours)  # type: ignore[union-attr]
    for number in range(2000):
        change = Changes(removed=row) if number % 2 == 0 else Changes(added=row)
        assert partition is not None
        pool = partition.neighbours.base
        partition = merged(partition, (1,), "out", TYPE, Sizes(n + 2, 0), Sizes(n + 2, 0), [change])
        assert partition is not None
        if partition.neighbours.base is pool:  # else it had no space left, or was laid out again
            assert len(partition.neighbours) - used <= degree + 2
        used = len(partition.neighbours)
    assert used < 2.5 * len(pairs) + 10_000
    assert partition.neighbours_of(17).tolist() == [*sorted(pairs[pairs[:, 0] == 17, 1].tolist()), 4001]
    assert moved(partition, Sizes(n + 2, 0), Sizes(n + 9, 4)) is partition, "new vertices change nothing"
    assert len(partition.neighbours_of(n + 8)) == 0


@pytest.mark.parametrize("way", ["out", "both"])
def test_pools_are_laid_out_by_several_threads(way: Direction, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same lists one after the other, whatever the number of threads; a hub's list is longer than what each writes."""
    monkeypatch.setattr(spans, "_ENTRIES", 10)
    draw, n = np.random.default_rng(4), 50
    hub = np.zeros(40, np.int64)
    subjects, objects = np.append(hub, draw.integers(0, n, 150)), np.append(np.arange(40), draw.integers(0, n, 150))
    edges = set(zip([1] * 190, subjects.tolist(), objects.tolist(), strict=True))
    partition = with_gaps(built(edges, (1,), way, n))
    assert partition.spans is not None
    wanted = lists(built(edges, (1,), way, n), n)
    for threads in (1, 2, 5, 30):
        found = partition.spans.laid_out(threads)
        neighbours, code_offsets, codes = found.arrays
        made = replace(
            partition,
            offsets=found.table.reshape(-1),
            neighbours=neighbours,
            code_offsets=code_offsets,
            codes=codes,
            spans=found,
        )
        assert lists(made, n) == wanted
        assert len(neighbours) == sum(map(len, wanted))
        begins, ends = found.table[found.table[:, 1] > 0].T
        assert np.array_equal(begins[1:], ends[:-1])
