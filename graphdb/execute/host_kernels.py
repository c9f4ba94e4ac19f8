"""The CPU search: one depth-first search for every plan, driven by the plan's tables, that can stop and go on.

It is compiled once per vertex id type and never per query.  All its state lies in arrays: the values bound so far,
and per step the list it goes through and where it stands there.  So it returns whenever its output block is full or
it has worked for a while, and continues just there when called again.  Between calls Python sees Ctrl-C, timeouts and
limits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.jit import kernel, load, store
from graphdb.storage.pcsr_kernels import home_group

Ints = NDArray[np.int64]
Ids = NDArray[Any]

DONE, FULL, YIELD = 0, 1, 2

LEVEL, MATCHES, WORK = 0, 1, 2
"""Cells of the state: the step that goes on next, matches found since the block was emptied, work done so far."""

_WIDE = np.empty(0, np.int64)
_COLUMN = np.empty(0, np.uint32)
_BYTES = np.empty(0, np.uint8)

_GALLOP = 24
"""Lists whose lengths differ by more than this factor are intersected by searching, not by merging."""


@kernel
def find(address: int, begin: int, end: int, value: int, like: Ids) -> int:
    """The first place in the sorted ``[begin, end)`` whose element is not below ``value``."""
    while begin < end:
        middle = (begin + end) >> 1
        if load(address, middle, like) < value:
            begin = middle + 1
        else:
            end = middle
    return begin


@kernel
def neighbours_of(partitions: Ints, row: int, vertex: int) -> tuple[int, int]:
    """Where the neighbours of a vertex begin and end in their partition."""
    table = partitions[row, 1]
    if partitions[row, 0] == 0:
        return load(table, vertex, _WIDE), load(table, vertex + 1, _WIDE)
    groups = partitions[row, 2]
    group = home_group(vertex, groups) if groups > 0 else -1
    while group >= 0:
        at = group * 16
        for pair in range(7):
            key = load(table, at + 2 * pair, _WIDE)
            if key == vertex:
                return load(table, at + 2 * pair + 1, _WIDE), load(table, at + 2 * pair + 3, _WIDE)
            if key < 0:
                break
        group = load(table, at + 14, _WIDE)
    return 0, 0


@kernel
def neighbour_at(partitions: Ints, row: int, vertex: int, other: int, like: Ids) -> int:
    """The place of ``other`` among the neighbours of ``vertex``, or -1."""
    begin, end = neighbours_of(partitions, row, vertex)
    at = find(partitions[row, 3], begin, end, other, like)
    if at < end and load(partitions[row, 3], at, like) == other:
        return at
    return -1


@kernel
def same_edge(values: Ints, first: int, a: int, b: int, second: int, c: int, d: int) -> bool:
    """Whether two bound pattern edges (slot, source, target) bind the same data edge."""
    if values[first] >> 1 != values[second] >> 1:
        return False
    s1, o1 = (values[b], values[a]) if values[first] & 1 else (values[a], values[b])
    s2, o2 = (values[d], values[c]) if values[second] & 1 else (values[c], values[d])
    return bool(s1 == s2 and o1 == o2)


@kernel
def joined_by(
    check: Ints, values: Ints, uncertain: Ints, partitions: Ints, resources: int, type_label: int, like: Ids
) -> bool:
    """INDUCED: whether just the expected number of data edges joins two bound vertices."""
    u, w = values[check[2]], values[check[3]]
    if u >= resources or w >= resources:
        return True
    expected = check[4]
    for i in range(check[5], check[6]):
        if values[uncertain[i]] >> 1 != type_label:
            expected += 1
    at = neighbour_at(partitions, check[1], u, w, like)
    if at < 0:
        return bool(expected == 0)
    offsets = partitions[check[1], 4]
    return bool(load(offsets, at + 1, _WIDE) - load(offsets, at, _WIDE) == expected)


@kernel
def passes(
    checks: Ints,
    begin: int,
    end: int,
    values: Ints,
    uncertain: Ints,
    partitions: Ints,
    resources: int,
    type_label: int,
    like: Ids,
) -> bool:
    """Whether the bound values pass checks ``begin … end-1``.  The numbers are those of ``physical.Op``."""
    for i in range(begin, end):
        op = checks[i, 0]
        if op == 1:
            if values[checks[i, 1]] == values[checks[i, 2]]:
                return False
        elif op == 2:
            if values[checks[i, 1]] == values[checks[i, 2]] and values[checks[i, 3]] == values[checks[i, 4]]:
                return False
        elif op == 3:
            if same_edge(values, checks[i, 1], checks[i, 2], checks[i, 3], checks[i, 4], checks[i, 5], checks[i, 6]):
                return False
        elif op == 4:
            value = values[checks[i, 1]]
            at = find(checks[i, 2], 0, checks[i, 3], value, _WIDE)
            if at == checks[i, 3] or load(checks[i, 2], at, _WIDE) != value:
                return False
        elif op == 5:
            value = values[checks[i, 1]]
            if not load(checks[i, 2], value >> 3, _BYTES) >> (value & 7) & 1:
                return False
        elif op == 6:
            if load(checks[i, 2], values[checks[i, 1]], _COLUMN) & checks[i, 3] != checks[i, 3]:
                return False
        elif op == 7:
            if neighbour_at(partitions, checks[i, 1], values[checks[i, 2]], values[checks[i, 3]], like) < 0:
                return False
        elif op == 8:
            if neighbour_at(partitions, checks[i, 1], values[checks[i, 2]], values[checks[i, 3]], like) >= 0:
                return False
        elif op == 9:
            if not joined_by(checks[i], values, uncertain, partitions, resources, type_label, like):
                return False
        else:
            return False
    return True


@kernel
def intersect(a: int, a_length: int, b: int, b_length: int, out: int, like: Ids) -> int:
    """Intersect the shorter sorted list ``a`` with ``b`` into ``out`` (which may be ``a``): the length."""
    found = 0
    if b_length > _GALLOP * a_length:
        low = 0
        for i in range(a_length):
            value = load(a, i, like)
            step = 1
            while low + step < b_length and load(b, low + step, like) < value:
                step <<= 1
            low = find(b, low + (step >> 1), min(low + step + 1, b_length), value, like)
            if low == b_length:
                break
            if load(b, low, like) == value:
                store(out, found, value, like)
                found += 1
        return found
    i = j = 0
    while i < a_length and j < b_length:
        x, y = load(a, i, like), load(b, j, like)
        if x == y:
            store(out, found, x, like)
            found += 1
        i += x <= y
        j += y <= x
    return found


@kernel
def gather(
    step: Ints, lists: Ints, partitions: Ints, values: Ints, scratch: Ints, buffer: int, width: int, like: Ids
) -> tuple[int, int, int]:
    """Intersect the lists of a vertex step: (address, length, work).  One list is taken where it lies."""
    first, last = step[2], step[3]
    shortest = 0
    for k in range(last - first):
        entry = lists[first + k]
        if entry[0] < 0:
            scratch[k, 0], scratch[k, 1] = entry[1], entry[2]
        else:
            begin, end = neighbours_of(partitions, entry[0], values[entry[1]])
            scratch[k, 0], scratch[k, 1] = partitions[entry[0], 3] + begin * width, end - begin
        if scratch[k, 1] < scratch[shortest, 1]:
            shortest = k
    address, length = scratch[shortest, 0], scratch[shortest, 1]
    work = length
    if last - first == 1:
        return address, length, 4
    for k in range(last - first):
        if k != shortest and length > 0:
            work += min(scratch[k, 1], 8 * length)
            length = intersect(address, length, scratch[k, 0], scratch[k, 1], buffer, like)
            address = buffer
    return address, length, work


@kernel
def count_rest(
    checks: Ints, begin: int, end: int, slot: int, values: Ints, address: int, low: int, high: int, like: Ids
) -> int:
    """How many elements in ``[low, high)`` differ from the values that ``slot`` must not have."""
    count = high - low
    for i in range(begin, end):
        other = values[checks[i, 2] if checks[i, 1] == slot else checks[i, 1]]
        repeated = False
        for j in range(begin, i):
            repeated = repeated or values[checks[j, 2] if checks[j, 1] == slot else checks[j, 1]] == other
        if not repeated:
            at = find(address, low, high, other, like)
            if at < high and load(address, at, like) == other:
                count -= 1
    return count


@kernel
def search(
    steps: Ints,
    lists: Ints,
    checks: Ints,
    uncertain: Ints,
    partitions: Ints,
    outputs: Ints,
    resources: int,
    type_label: int,
    state: Ints,
    values: Ints,
    stack: Ints,
    rows: Ints,
    scratch: Ints,
    block: Ids,
    capacity: int,
    counting: bool,
    count_last: bool,
    budget: int,
) -> int:
    """Go on with a search.

    Parameters
    ----------
    steps … type_label
        The plan's tables (:class:`graphdb.plan.physical.Program`).
    state
        int64 [3]: see ``LEVEL``, ``MATCHES``, ``WORK``.
    values
        int64 [slots]: the bindings.
    stack
        int64 [steps, 4]: per step the address of its list, its position and end there, and its buffer's address.
    rows
        int64 [steps]: bindings that passed each step, ever.
    block
        Vertex ids [columns, capacity]: the matches; ``counting`` writes none.
    budget
        Elements to go through before yielding.

    Returns
    -------
    int
        ``DONE``, ``FULL`` (the block holds ``capacity`` matches) or ``YIELD``.
    """
    last = len(steps) - 1
    level = state[LEVEL]
    matches = state[MATCHES]
    work = 0
    width = block.itemsize
    result = DONE
    while level >= 0:
        if work > budget:
            result = YIELD
            break
        work += 1
        slot, address, at, end = steps[level, 0], stack[level, 0], stack[level, 1], stack[level, 2]
        wide = steps[level, 6] != 0
        if level == last and count_last:
            if wide:
                fresh = count_rest(checks, steps[level, 4], steps[level, 5], slot, values, address, at, end, _WIDE)
            else:
                fresh = count_rest(checks, steps[level, 4], steps[level, 5], slot, values, address, at, end, block)
            matches += fresh
            rows[level] += fresh
            level -= 1
            continue
        # Go on to the next value that passes; inequalities come first and are most often all there is.
        first, after, flip = steps[level, 4], steps[level, 5], steps[level, 11]
        found = False
        while at < end and not found:
            values[slot] = load(address, at, _WIDE) ^ flip if wide else load(address, at, block)
            at += 1
            work += 1
            found = True
            check = first
            while found and check < after and checks[check, 0] == 1:
                found = values[checks[check, 1]] != values[checks[check, 2]]
                check += 1
            if found and check < after:
                found = passes(checks, check, after, values, uncertain, partitions, resources, type_label, block)
            if work > budget:
                break
        stack[level, 1] = at
        if not found:
            if at >= end:
                level -= 1
            continue
        rows[level] += 1
        if level == last:
            if not counting:
                for column in range(len(outputs)):
                    block[column, matches] = values[outputs[column]]
            matches += 1
            if matches == capacity and not counting:
                result = FULL
                break
            continue
        level += 1
        if steps[level, 1]:
            place = neighbour_at(partitions, steps[level, 8], values[steps[level, 9]], values[steps[level, 10]], block)
            stack[level, 0] = partitions[steps[level, 8], 5]
            stack[level, 1] = stack[level, 2] = 0
            if place >= 0:
                stack[level, 1] = load(partitions[steps[level, 8], 4], place, _WIDE)
                stack[level, 2] = load(partitions[steps[level, 8], 4], place + 1, _WIDE)
        elif steps[level, 2] == steps[level, 3]:
            stack[level, 1] = 0  # a scan: its address and end were set at the start
        else:
            address, length, cost = gather(
                steps[level], lists, partitions, values, scratch, stack[level, 3], width, block
            )
            stack[level, 0], stack[level, 1], stack[level, 2] = address, 0, length
            work += cost
    state[LEVEL] = level
    state[MATCHES] = matches
    state[WORK] += work
    return result
