"""The checks that a step of the CPU's search passes its values through, a list at a time."""

from __future__ import annotations

from typing import Any

from graphdb.execute.search.frame import PARTITIONS, RESOURCES, TYPE_LABEL, UNCERTAIN, VALUES
from graphdb.execute.search.set_kernels import (
    LONG,
    PARTITION_BYTES,
    drop_value,
    find,
    intersect,
    keep_bits,
    keep_listed,
    keep_signatures,
    neighbour_at,
    neighbours_of,
    subtract,
)
from graphdb.storage.compile.kernels import kernel, load, store


@kernel
def other_of(check: int, left: int, slot: int, values: int) -> int:
    """The value that a check compares with: that of its slot (columns ``left`` and next) that is not ``slot``."""
    near, far = load(check, left, LONG), load(check, left + 1, LONG)
    return load(values, far if near == slot else near, LONG)


@kernel
def same_edge(check: int, values: int) -> bool:
    """Whether two bound pattern edges (slot, source, target) bind the same data edge."""
    first, second = load(values, load(check, 1, LONG), LONG), load(values, load(check, 4, LONG), LONG)
    if first >> 1 != second >> 1:
        return False
    a, b = load(values, load(check, 2, LONG), LONG), load(values, load(check, 3, LONG), LONG)
    c, d = load(values, load(check, 5, LONG), LONG), load(values, load(check, 6, LONG), LONG)
    if first & 1:
        a, b = b, a
    if second & 1:
        c, d = d, c
    return a == c and b == d


@kernel
def joined_by(frame: int, check: int, values: int, like: Any) -> bool:
    """INDUCED: whether just the expected number of data edges joins two bound vertices."""
    u, w = load(values, load(check, 2, LONG), LONG), load(values, load(check, 3, LONG), LONG)
    resources = load(frame, RESOURCES, LONG)
    if u >= resources or w >= resources:
        return True
    expected = load(check, 4, LONG)
    for i in range(load(check, 5, LONG), load(check, 6, LONG)):
        code = load(values, load(load(frame, UNCERTAIN, LONG), i, LONG), LONG)
        if code >> 1 != load(frame, TYPE_LABEL, LONG):
            expected += 1
    partitions, row = load(frame, PARTITIONS, LONG), load(check, 1, LONG)
    at = neighbour_at(partitions, row, u, w, like)
    if at < 0:
        return expected == 0
    offsets = load(partitions + row * PARTITION_BYTES, 4, LONG)
    return load(offsets, at + 1, LONG) - load(offsets, at, LONG) == expected


@kernel
def passes(frame: int, check: int, values: int, like: Any) -> bool:
    """Whether the bound values pass one of the rarer checks.  The numbers are those of ``physical.Op``."""
    op = load(check, 0, LONG)
    if op == 3:
        return load(values, load(check, 1, LONG), LONG) != load(values, load(check, 2, LONG), LONG) or load(
            values, load(check, 3, LONG), LONG
        ) != load(values, load(check, 4, LONG), LONG)
    if op == 4:
        return not same_edge(check, values)
    if op == 8 or op == 9:
        vertex, other = load(values, load(check, 2, LONG), LONG), load(values, load(check, 3, LONG), LONG)
        place = neighbour_at(load(frame, PARTITIONS, LONG), load(check, 1, LONG), vertex, other, like)
        return (place >= 0) == (op == 8)
    if op == 10:
        return joined_by(frame, check, values, like)
    return False


@kernel
def keep(frame: int, check: int, slot: int, address: int, n: int, out: int, width: int, like: Any) -> int:
    """Pass a list of values for ``slot`` through one check, into ``out``: how many are left.

    Where all are left, it may be that nothing was written.
    """
    values = load(frame, VALUES, LONG)
    op = load(check, 0, LONG)
    if op == 2:
        other = other_of(check, 1, slot, values)
        at = find(address, 0, n, other, like)
        if at < n and load(address, at, like) == other:
            drop_value(address, n, at, out, like)
            return n - 1
        return n
    if op == 5:
        return keep_listed(address, n, load(check, 2, LONG), load(check, 3, LONG), out, like)
    if op == 6:
        return keep_bits(address, n, load(check, 2, LONG), out, like)
    if op == 7:
        return keep_signatures(address, n, load(check, 2, LONG), load(check, 3, LONG), out, like)
    none = op == 10 and load(check, 4, LONG) == 0 and load(check, 5, LONG) == load(check, 6, LONG)
    if (none or op == 8 or op == 9) and load(check, 2, LONG) != load(check, 3, LONG):
        partitions, row = load(frame, PARTITIONS, LONG), load(check, 1, LONG)
        begin, end = neighbours_of(partitions, row, other_of(check, 2, slot, values))
        neighbours = load(partitions + row * PARTITION_BYTES, 3, LONG) + begin * width
        if op == 8:
            return intersect(address, n, neighbours, end - begin, out, like)
        return subtract(address, n, neighbours, end - begin, out, like)
    found = 0
    for i in range(n):
        value = load(address, i, like)
        store(values, slot, value, LONG)
        store(out, found, value, like)
        found += passes(frame, check, values, like)
    return found
