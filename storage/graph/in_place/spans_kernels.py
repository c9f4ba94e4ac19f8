"""The loop behind :mod:`.spans`: changed neighbour lists are written anew behind the others."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.compile.kernels import entry

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


@entry("i8[:], i8[:], i8[:], i8[:], i8[:], i8[:, :], T[:], i8[:], i8[:], i8[:]")
def rewrite_lists(
    vertices: Ints,
    begins: Ints,
    targets: Ints,
    codes: Ints,
    comes: Ints,
    table: Ints,
    neighbours: NDArray[Any],
    code_offsets: Ints,
    all_codes: Ints,
    state: Ints,
) -> None:
    """Merge the lists of some vertices with what comes and goes.

    Parameters
    ----------
    vertices, begins
        Those of which something changes; the changes of the ``i``-th one are ``begins[i]:begins[i + 1]``.
    targets, codes, comes
        By change: neighbour, code, and 1 where the edge comes, 0 where it goes; sorted by neighbour, then code.  What
        is there already does not come again, and what is not there does not go.
    table
        [vertices of the data graph, 2]: where the list of each begins and ends.
    neighbours, code_offsets, all_codes
        The pool, with enough space; without ``code_offsets`` (of length 0) entries have no codes.
    state
        The cells named above.
    """
    coded = len(code_offsets) > 0
    for i in range(len(vertices)):
        vertex = vertices[i]
        old, end = table[vertex, 0], table[vertex, 1]
        first, written, code_at = state[USED], state[USED], state[CODES]
        at, last = begins[i], begins[i + 1]
        while old < end or at < last:
            if at == last or (old < end and neighbours[old] < targets[at]):
                neighbours[written] = neighbours[old]
                if coded:
                    code_offsets[written] = code_at
                    for c in range(code_offsets[old], code_offsets[old + 1]):
                        all_codes[code_at] = all_codes[c]
                        code_at += 1
                written += 1
                old += 1
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
                while c < stop or (at < last and targets[at] == target):
                    change = at < last and targets[at] == target
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
        before, now = end - table[vertex, 0], written - first
        if (before == 0) != (now == 0):
            state[KEYS] = 1
        table[vertex, 0], table[vertex, 1] = (first, written) if now else (0, 0)
        state[USED], state[CODES] = written, code_at
        state[LIVE] += now - before
        state[LONGEST] = max(state[LONGEST], now)


@entry("i8[:, :], T[:], i8[:], i8[:], i8[:, :], T[:], i8[:], i8[:]")
def lay_out(
    table: Ints,
    neighbours: NDArray[Any],
    code_offsets: Ints,
    codes: Ints,
    new_table: Ints,
    new_neighbours: NDArray[Any],
    new_code_offsets: Ints,
    new_codes: Ints,
) -> None:
    """Write all lists of a pool one after the other into another one, which has space for them.

    Parameters
    ----------
    table, neighbours, code_offsets, codes
        As of :func:`rewrite_lists`.
    new_table, new_neighbours, new_code_offsets, new_codes
        What is written; the table has zeros.
    """
    written = code_at = 0
    coded = len(code_offsets) > 0
    for vertex in range(len(table)):
        begin, end = table[vertex, 0], table[vertex, 1]
        if begin == end:
            continue
        new_table[vertex, 0] = written
        for at in range(begin, end):
            new_neighbours[written] = neighbours[at]
            if coded:
                new_code_offsets[written] = code_at
                for c in range(code_offsets[at], code_offsets[at + 1]):
                    new_codes[code_at] = codes[c]
                    code_at += 1
            written += 1
        new_table[vertex, 1] = written
    if coded:
        new_code_offsets[written] = code_at
