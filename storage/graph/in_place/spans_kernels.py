"""The loop behind :mod:`.spans`: changed neighbour lists are written anew behind the others."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.compile.kernels import entry, fetch, kernel

Ints = NDArray[np.int64]

USED = 0
"""Cells of the state: entries of the pool, …"""
CODES = 1
"""… codes in use, …"""
LIVE = 2
"""… entries of lists, which are fewer than those of the pool, …"""
LONGEST = 3
"""… the longest list that was written, …"""
SEVERAL = 4
"""… whether one of its entries has several codes, …"""
KEYS = 5
"""… and whether a vertex got its first neighbour or lost its last one."""
CELLS = 6

_ROWS, _LISTS, _CODES = 24, 16, 8
"""How many vertices ahead rows of the table are fetched, lists where the rows are there, and codes where lists are."""
_LINE, _LINES = 64, 4
"""Bytes of a line of the cache, and how many of a list are fetched: its other ones follow these."""


@kernel
def _fetch(
    vertices: Ints, i: int, last: int, table: Ints, neighbours: NDArray[Any], code_offsets: Ints, all_codes: Ints
) -> None:
    """Have what lists of later vertices begin with brought into the cache: they lie anywhere in memory."""
    if i + _ROWS < last:
        fetch(table.ctypes.data + 16 * vertices[i + _ROWS])
    if i + _LISTS < last:
        _fetch_list(vertices[i + _LISTS], table, neighbours, code_offsets)
    if i + _CODES < last:
        _fetch_codes(vertices[i + _CODES], table, code_offsets, all_codes)


@kernel
def _fetch_list(vertex: int, table: Ints, neighbours: NDArray[Any], code_offsets: Ints) -> None:
    begin, end = table[vertex, 0], table[vertex, 1]
    _fetch_lines(neighbours.ctypes.data, begin * neighbours.itemsize, end * neighbours.itemsize)
    if len(code_offsets) > 0:
        _fetch_lines(code_offsets.ctypes.data, 8 * begin, 8 * end)


@kernel
def _fetch_codes(vertex: int, table: Ints, code_offsets: Ints, all_codes: Ints) -> None:
    begin, end = table[vertex, 0], table[vertex, 1]
    if len(code_offsets) > 0 and end > begin:
        _fetch_lines(all_codes.ctypes.data, 8 * code_offsets[begin], 8 * code_offsets[end])


@kernel
def _fetch_lines(array: int, begin: int, end: int) -> None:
    for at in range(begin, min(end, begin + _LINES * _LINE), _LINE):
        fetch(array + at)


@entry("i8, i8, i8[:], i8[:, :], i8[:] -> i8, i8")
def count_lists(first: int, last: int, vertices: Ints, table: Ints, code_offsets: Ints) -> tuple[int, int]:
    """Return how many entries, and codes, the lists of some vertices have, ``first`` to ``last - 1`` of these."""
    entries, codes, coded = 0, 0, len(code_offsets) > 0
    for i in range(first, last):
        if i + _ROWS < last:
            fetch(table.ctypes.data + 16 * vertices[i + _ROWS])
        if coded and i + _LISTS < last:
            fetch(code_offsets.ctypes.data + 8 * table[vertices[i + _LISTS], 0])
            fetch(code_offsets.ctypes.data + 8 * table[vertices[i + _LISTS], 1])
        begin, end = table[vertices[i], 0], table[vertices[i], 1]
        entries += end - begin
        if coded and end > begin:
            codes += code_offsets[end] - code_offsets[begin]
    return entries, codes


@entry("i8, i8, i8[:], i8[:], i8[:], i8[:], i8[:], i8[:, :], i8[:], i8[:, :], T[:], i8[:], i8[:], i8[:]")
def rewrite_lists(
    first: int,
    last: int,
    vertices: Ints,
    begins: Ints,
    targets: Ints,
    codes: Ints,
    comes: Ints,
    rows: Ints,
    lengths: Ints,
    table: Ints,
    neighbours: NDArray[Any],
    code_offsets: Ints,
    all_codes: Ints,
    state: Ints,
) -> None:
    """Merge the lists of some vertices with what comes and goes.

    Parameters
    ----------
    first, last
        Those whose lists are merged, the second one excluded.
    vertices, begins
        Those of which something changes; the changes of the ``i``-th one are ``begins[i]:begins[i + 1]``.
    targets, codes, comes
        By change: neighbour, code, and 1 where the edge comes, 0 where it goes; sorted by neighbour, then code.  What
        is there already does not come again, and what is not there does not go.
    rows, lengths
        [vertices, 2] and [vertices], written: the new rows of the table, and how long the lists were.
    table
        [vertices of the data graph, 2]: where the list of each begins and ends.
    neighbours, code_offsets, all_codes
        The pool, with enough space; without ``code_offsets`` (of length 0) entries have no codes.
    state
        The cells named above.
    """
    coded = len(code_offsets) > 0
    for i in range(first, last):
        _fetch(vertices, i, last, table, neighbours, code_offsets, all_codes)
        vertex = vertices[i]
        old, end = table[vertex, 0], table[vertex, 1]
        new, written, code_at = state[USED], state[USED], state[CODES]
        at, stop_at = begins[i], begins[i + 1]
        while old < end or at < stop_at:
            begin = old
            while old < end and (at == stop_at or neighbours[old] < targets[at]):
                old += 1
            if old > begin:  # what stays as it is, whole
                for k in range(old - begin):
                    neighbours[written + k] = neighbours[begin + k]
                if coded:
                    c, stop = code_offsets[begin], code_offsets[old]
                    for k in range(old - begin):
                        code_offsets[written + k] = code_offsets[begin + k] + (code_at - c)
                    for k in range(stop - c):
                        all_codes[code_at + k] = all_codes[c + k]
                    code_at += stop - c
                written += old - begin
                continue
            target = targets[at]
            there = old < end and neighbours[old] == target
            if not coded:
                if comes[at] == 1:
                    neighbours[written] = target
                    written += 1
                at += 1
            else:
                code_offsets[written] = code_at
                c = code_offsets[old] if there else 0
                stop = code_offsets[old + 1] if there else 0
                while c < stop or (at < stop_at and targets[at] == target):
                    change = at < stop_at and targets[at] == target
                    if not change or (c < stop and all_codes[c] < codes[at]):
                        all_codes[code_at] = all_codes[c]
                        code_at += 1
                        c += 1
                        continue
                    if comes[at] == 1:
                        all_codes[code_at] = codes[at]
                        code_at += 1
                    if c < stop and all_codes[c] == codes[at]:
                        c += 1
                    at += 1
                if code_at > code_offsets[written]:
                    neighbours[written] = target
                    if code_at - code_offsets[written] > 1:
                        state[SEVERAL] = 1
                    written += 1
            if there:
                old += 1
        if coded:
            code_offsets[written] = code_at
        before, now = end - table[vertex, 0], written - new
        if (before == 0) != (now == 0):
            state[KEYS] = 1
        lengths[i] = before
        rows[i, 0], rows[i, 1] = (new, written) if now else (0, 0)
        table[vertex, 0], table[vertex, 1] = rows[i, 0], rows[i, 1]
        state[USED], state[CODES] = written, code_at
        state[LIVE] += now - before
        state[LONGEST] = max(state[LONGEST], now)


@entry("i8, i8, i8[:, :], i8[:] -> i8")
def count_codes(first: int, last: int, table: Ints, code_offsets: Ints) -> int:
    """Return how many codes the lists of vertices ``first`` to ``last - 1`` have."""
    count = 0
    for vertex in range(first, last):
        if vertex + _LISTS < last:
            fetch(code_offsets.ctypes.data + 8 * table[vertex + _LISTS, 0])
            fetch(code_offsets.ctypes.data + 8 * table[vertex + _LISTS, 1])
        count += code_offsets[table[vertex, 1]] - code_offsets[table[vertex, 0]]
    return count


@entry("i8, i8, i8, i8, i8[:, :], T[:], i8[:], i8[:], i8[:, :], T[:], i8[:], i8[:]")
def lay_out(
    first: int,
    last: int,
    written: int,
    code_at: int,
    table: Ints,
    neighbours: NDArray[Any],
    code_offsets: Ints,
    codes: Ints,
    new_table: Ints,
    new_neighbours: NDArray[Any],
    new_code_offsets: Ints,
    new_codes: Ints,
) -> None:
    """Write lists of a pool one after the other into another one, which has space for them.

    Parameters
    ----------
    first, last
        The vertices whose lists are written, the second one excluded.
    written, code_at
        How many entries, and codes, the vertices before have.
    table, neighbours, code_offsets, codes
        As of :func:`rewrite_lists`.
    new_table, new_neighbours, new_code_offsets, new_codes
        What is written; the table has zeros.
    """
    coded = len(code_offsets) > 0
    for vertex in range(first, last):
        if vertex + _LISTS < last:
            _fetch_list(vertex + _LISTS, table, neighbours, code_offsets)
        if vertex + _CODES < last:
            _fetch_codes(vertex + _CODES, table, code_offsets, codes)
        begin, end = table[vertex, 0], table[vertex, 1]
        if begin == end:
            continue
        for k in range(end - begin):
            new_neighbours[written + k] = neighbours[begin + k]
        if coded:
            c, stop = code_offsets[begin], code_offsets[end]
            for k in range(end - begin):
                new_code_offsets[written + k] = code_offsets[begin + k] + (code_at - c)
            for k in range(stop - c):
                new_codes[code_at + k] = codes[c + k]
            code_at += stop - c
        new_table[vertex, 0], new_table[vertex, 1] = written, written + end - begin
        written += end - begin
    if coded:
        new_code_offsets[written] = code_at
