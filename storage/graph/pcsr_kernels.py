"""The loops behind :mod:`graphdb.storage.graph.pcsr` and :mod:`graphdb.storage.graph.signatures`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.compile.kernels import entry, inlined, kernel, load

Ints = NDArray[np.int64]

PAIRS = 8
"""Pairs of int64 in a hashed group of 128 bytes: seven (vertex, offset) and one (overflow group, end)."""

LONG = 0
"""Stands for int64 in ``load`` and ``store`` (:mod:`graphdb.storage.compile.kernels`)."""
PARTITION_BYTES = 48
"""A row of the table of partitions: (direct, offsets' address, groups, neighbours', code_offsets', codes')."""
SPANS = -2
"""What stands for ``direct`` where the offset layer is a table of where each list begins and ends."""


@entry("i8, i8 -> i8")
def home_group(vertex: int, groups: int) -> int:
    """The group a vertex is hashed to: a multiplicative hash, so that runs of ids spread."""
    mixed = np.uint64(vertex) * np.uint64(0x9E3779B97F4A7C15)
    group: int = np.int64((mixed >> np.uint64(20)) % np.uint64(groups))  # type: ignore[assignment]
    return group


@entry("i8[:], i8, i8[:]")
def home_groups(keys: Ints, groups: int, homes: Ints) -> None:
    """Write the :func:`home_group` of every key."""
    for i in range(len(keys)):
        homes[i] = home_group(keys[i], groups)


@entry("i8[:], i8[:], i8[:]")
def counting_order(keys: Ints, starts: Ints, order: Ints) -> None:
    """Write the stable order that sorts ``keys`` (each in ``0 … bound-1``), in O(len + bound).

    ``starts`` is scratch: int64 [bound + 1], zeros.
    """
    for i in range(len(keys)):
        starts[keys[i] + 1] += 1
    for i in range(len(starts) - 1):
        starts[i + 1] += starts[i]
    for i in range(len(keys)):
        key = keys[i]
        order[starts[key]] = i
        starts[key] += 1


@entry("i8[:], i8[:], i8[:], i8[:, :, :]")
def fill_groups(keys: Ints, homes: Ints, starts: Ints, table: Ints) -> None:
    """Lay out the hashed offset layer.

    ``keys`` come ordered by their home group, ``starts`` (one longer) holds where their neighbours begin.  A group
    that overflows goes on in an empty one (SGSI §4, claim 1: with as many groups as keys there are always enough).
    Unused pairs hold (-1, end), so the end of a vertex is always the offset of the next pair.

    ``table`` is int64 [groups, PAIRS, 2], -1 everywhere.
    """
    for i in range(len(homes)):
        table[homes[i], 0, 0] = 0  # marks the homes, so that overflow takes none of them
    empty = 0
    i = 0
    while i < len(keys):
        home = homes[i]
        group = home
        while True:
            filled = 0
            while filled < PAIRS - 1 and i < len(keys) and homes[i] == home:
                table[group, filled, 0] = keys[i]
                table[group, filled, 1] = starts[i]
                filled += 1
                i += 1
            for j in range(filled, PAIRS):
                table[group, j, 0] = -1
                table[group, j, 1] = starts[i]
            if i == len(keys) or homes[i] != home:
                break
            while table[empty, 0, 0] >= 0:
                empty += 1
            table[group, PAIRS - 1, 0] = empty
            group = empty


@entry("i8[:], i8[:], T[:], T[:]")
def move_runs(begins: Ints, starts: Ints, elements: NDArray[Any], moved: NDArray[Any]) -> None:
    """Copy runs of elements that begin at ``begins`` to ``starts``, which are one more: where the last one ends."""
    for i in range(len(begins)):
        for j in range(starts[i + 1] - starts[i]):
            moved[starts[i] + j] = elements[begins[i] + j]


@entry("i8[:], i8[:], i8[:], i8[:], i8[:], u4[:]")
def count_neighbour_labels(
    keys: Ints,
    starts: Ints,
    neighbours: Ints,
    class_starts: Ints,
    classes: Ints,
    column: NDArray[np.uint32],
) -> None:
    """Fill a signature column: see :mod:`graphdb.storage.graph.signatures`.

    ``classes[class_starts[u]:class_starts[u+1]]`` are the label buckets (1 … 15) of vertex ``u``.
    """
    for i in range(len(keys)):
        bits = np.uint32(0)
        for at in range(starts[i], starts[i + 1]):
            bits |= (bits & np.uint32(1)) << np.uint32(1) | np.uint32(1)
            u = neighbours[at]
            for c in range(class_starts[u], class_starts[u + 1]):
                shift = np.uint32(2 * classes[c])
                seen = (bits >> shift) & np.uint32(1)
                bits |= (seen << np.uint32(1) | np.uint32(1)) << shift
        column[keys[i]] = bits


@kernel
def find(address: int, begin: int, end: int, value: int, like: Any) -> int:
    """The first place in the sorted ``[begin, end)`` whose element is not below ``value``."""
    while begin < end:
        middle = (begin + end) >> 1
        if load(address, middle, like) < value:
            begin = middle + 1
        else:
            end = middle
    return begin


@inlined
def neighbours_at_once(partitions: int, row: int, vertex: int) -> tuple[int, int]:
    """:func:`neighbours_of` without a call, for loops that do little else."""
    entry = partitions + row * PARTITION_BYTES
    table = load(entry, 1, LONG)
    direct = load(entry, 0, LONG)
    if vertex < direct:
        return load(table, vertex, LONG), load(table, vertex + 1, LONG)
    if direct >= 0:
        return 0, 0
    groups = load(entry, 2, LONG)
    if direct == SPANS:
        if vertex >= groups:
            return 0, 0
        return load(table, 2 * vertex, LONG), load(table, 2 * vertex + 1, LONG)
    group = home_group(vertex, groups) if groups > 0 else -1
    while group >= 0:
        at = group * 16
        for pair in range(7):
            key = load(table, at + 2 * pair, LONG)
            if key == vertex:
                return load(table, at + 2 * pair + 1, LONG), load(table, at + 2 * pair + 3, LONG)
            if key < 0:
                break
        group = load(table, at + 14, LONG)
    return 0, 0


@kernel
def neighbours_of(partitions: int, row: int, vertex: int) -> tuple[int, int]:
    """Where the neighbours of a vertex begin and end in their partition."""
    return neighbours_at_once(partitions, row, vertex)


@kernel
def neighbour_at(partitions: int, row: int, vertex: int, other: int, like: Any) -> int:
    """The place of ``other`` among the neighbours of ``vertex``, or -1."""
    begin, end = neighbours_of(partitions, row, vertex)
    neighbours = load(partitions + row * PARTITION_BYTES, 3, LONG)
    at = find(neighbours, begin, end, other, like)
    if at < end and load(neighbours, at, like) == other:
        return at
    return -1
