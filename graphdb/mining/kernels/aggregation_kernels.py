"""The loops of aggregation: what joins the vertices of each embedding."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphdb.mining.kernels.extension_kernels import adjacent
from graphdb.storage.compile.kernels import entry, kernel

Ints = NDArray[np.int64]
Narrow = NDArray[np.int32]


@entry("i8[:], i4[:], i8[:], i8[:, :], i8[:, :]")
def read_states(offsets: Ints, neighbours: Narrow, states: Ints, rows: Ints, cells: Ints) -> None:
    """Write for each row of vertices, for all pairs of its places, 1 more than the pair's state, or 0.

    The pair of the places i < j is column ``j * (j - 1) / 2 + i``; its state is seen from that at i.
    """
    for r in range(len(rows)):
        for j in range(1, rows.shape[1]):
            for i in range(j):
                at = adjacent(offsets, neighbours, rows[r, i], rows[r, j])
                cells[r, j * (j - 1) // 2 + i] = 0 if at < 0 else states[at] + 1


@kernel
def with_code(cell: int, code: int, base: int) -> int:
    """A cell with one more code among its digits, which never rise; codes are above 0."""
    below, scale = 0, 1
    while cell != 0 and cell % base < code:
        below += cell % base * scale
        scale *= base
        cell //= base
    return (cell * base + code) * scale + below


@entry("i8[:], i8[:], i8[:], b1, i8, i8[:, :], i8[:, :], i8[:, :]")
def read_edges(
    source: Ints, target: Ints, label: Ints, directed: bool, base: int, rows: Ints, vertices: Ints, cells: Ints
) -> None:
    """Write the vertices of each row of edges, as they come, and what its edges make of all pairs of them.

    ``vertices`` gets -1 behind the last; ``cells`` gets numbers whose digits to the ``base`` are 1 more than codes.
    """
    for r in range(len(rows)):
        count = 0
        for k in range(vertices.shape[1]):
            vertices[r, k] = -1
        for k in range(cells.shape[1]):
            cells[r, k] = 0
        for k in range(rows.shape[1]):
            edge = rows[r, k]
            first = second = -1
            for v in range(count):
                if vertices[r, v] == source[edge]:
                    first = v
                if vertices[r, v] == target[edge]:
                    second = v
            if first < 0:
                first = count
                vertices[r, count] = source[edge]
                count += 1
            if second < 0:
                second = count
                vertices[r, count] = target[edge]
                count += 1
            low, high = min(first, second), max(first, second)
            code = 1 + 2 * label[edge] + (1 if directed and first > second else 0)
            at = high * (high - 1) // 2 + low
            cells[r, at] = with_code(cells[r, at], code, base)


@entry("i8[:], i8, b1, i8[:]")
def turn(cells: Ints, base: int, directed: bool, turned: Ints) -> None:
    """Write cells of :func:`read_edges` as the other vertex of the pair sees them."""
    for i in range(len(cells)):
        cell, result = cells[i], 0
        while cell != 0:
            code = cell % base
            result = with_code(result, ((code - 1) ^ 1) + 1 if directed else code, base)
            cell //= base
        turned[i] = result


@entry("i8[:, :], i8[:], i8[:], i8[:] -> i8")
def number_rows(cells: Ints, slots: Ints, firsts: Ints, numbers: Ints) -> int:
    """Write the first of each of the distinct rows, in their order, and for every row which it is; return how many.

    ``slots`` is a table of zeros, of a power of two and more than there are rows: its slots are 1 more than a number.
    """
    mask, found = len(slots) - 1, 0
    for r in range(len(cells)):
        mixed = 0
        for k in range(cells.shape[1]):
            mixed = (mixed ^ cells[r, k]) * 0x1B873593CC9E2D51
            mixed ^= mixed >> 29
        at = (mixed ^ (mixed >> 32)) & mask
        while True:
            there = slots[at] - 1
            if there < 0:
                slots[at] = found + 1
                firsts[found] = r
                numbers[r] = found
                found += 1
                break
            same = True
            for k in range(cells.shape[1]):
                if cells[r, k] != cells[firsts[there], k]:
                    same = False
                    break
            if same:
                numbers[r] = there
                break
            at = (at + 1) & mask
    return found


@entry("i8[:, :], i8[:], i4[:, :], u1[:, :]")
def mark_images(vertices: Ints, quick_of_row: Ints, slots: NDArray[np.int32], flags: NDArray[np.uint8]) -> None:
    """Set the flag of each vertex at the slot that it takes in its row; ``slots`` are by quick pattern and place."""
    for r in range(len(vertices)):
        for i in range(vertices.shape[1]):
            slot = slots[quick_of_row[r], i]
            if slot >= 0:
                flags[slot, vertices[r, i]] = 1
