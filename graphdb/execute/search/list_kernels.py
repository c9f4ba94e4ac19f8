"""How a step of the CPU's search opens: its lists are found, and which of them the search goes through.

Lists that stay while the steps between go on are worked on once: as bits (a list that many others are intersected
with), and as shared intersections (STMatch §VII), both made when they are first needed and cached until a value that
they depend on changes.
"""

from __future__ import annotations

from typing import Any

from graphdb.execute.search.frame import (
    BITS,
    BITS_BYTES,
    CHECK_BYTES,
    CHECKS,
    JOIN,
    LIST_BYTES,
    LISTS,
    PARTITIONS,
    PIECE,
    PIECES,
    SCAN,
    SHARE_BYTES,
    SHARED,
    SHARED_BYTES,
    SHARES,
    SPAN_BYTES,
    SPANS,
    STACK,
    STACK_BYTES,
    STEP_BYTES,
    STEPS,
    VALUES,
)
from graphdb.execute.search.set_kernels import (
    LONG,
    PARTITION_BYTES,
    clear_bits,
    find,
    intersect,
    mark_bits,
    neighbour_at,
    neighbours_of,
)
from graphdb.plan.physical import DETOUR
from graphdb.storage.compile.kernels import kernel, load, store


@kernel
def next_share(shares: int, share: int, above: int) -> int:
    """The share on the way down to ``share`` whose parent is ``above``."""
    while load(shares + share * SHARE_BYTES, 0, LONG) != above:
        share = load(shares + share * SHARE_BYTES, 0, LONG)
    return share


@kernel
def share(frame: int, wanted: int, width: int, like: Any) -> int:
    """Bring a shared intersection up to date, and those that it is made from: the work."""
    shares, shared = load(frame, SHARES, LONG), load(frame, SHARED, LONG)
    values, partitions = load(frame, VALUES, LONG), load(frame, PARTITIONS, LONG)
    work, above, version = 0, -1, 0
    while above != wanted:
        at = next_share(shares, wanted, above)
        plan, now = shares + at * SHARE_BYTES, shared + at * SHARED_BYTES
        value = load(values, load(plan, 2, LONG), LONG)
        if load(now, 2, LONG) != value or load(now, 4, LONG) != version:
            row = load(plan, 1, LONG)
            begin, end = neighbours_of(partitions, row, value)
            address, length = load(partitions + row * PARTITION_BYTES, 3, LONG) + begin * width, end - begin
            if above >= 0:
                parent = shared + above * SHARED_BYTES
                buffer, n = load(now, 5, LONG), load(parent, 1, LONG)
                work += min(length + n, 8 * min(length, n)) + 8
                length = intersect(address, length, load(parent, 0, LONG), n, buffer, like)
                address = buffer
            store(now, 0, address, LONG)
            store(now, 1, length, LONG)
            store(now, 2, value, LONG)
            store(now, 3, load(now, 3, LONG) + 1, LONG)
            store(now, 4, version, LONG)
        version = load(now, 3, LONG)
        above = at
    return work


@kernel
def bits_of(frame: int, entry: int, span: int, uses: int, width: int, like: Any) -> int:
    """The address of a list as bits, or 0 while it is not worth making: until it has been used on enough values."""
    number = load(entry, 3, LONG)
    if number < 0:
        return 0
    bits = load(frame, BITS, LONG) + number * BITS_BYTES
    value = load(load(frame, VALUES, LONG), load(entry, 1, LONG), LONG)
    owner = load(bits, 1, LONG)
    if owner == value:
        return load(bits, 0, LONG)
    if load(bits, 2, LONG) != value:
        store(bits, 2, value, LONG)
        store(bits, 3, 0, LONG)
    uses += load(bits, 3, LONG)
    store(bits, 3, uses, LONG)
    length = load(span, 1, LONG)
    if uses < length >> 2:
        return 0
    row, partitions = load(entry, 0, LONG), load(frame, PARTITIONS, LONG)
    if owner >= 0:
        begin, end = neighbours_of(partitions, row, owner)
        old = load(partitions + row * PARTITION_BYTES, 3, LONG) + begin * width
        clear_bits(old, end - begin, load(bits, 0, LONG), like)
    mark_bits(load(span, 0, LONG), length, load(bits, 0, LONG), like)
    store(bits, 1, value, LONG)
    return load(bits, 0, LONG)


@kernel
def open_step(frame: int, level: int, width: int, like: Any) -> int:
    """Find the lists of a step whose predecessors are bound, and where in the shortest the search goes: the work."""
    step, stack = load(frame, STEPS, LONG) + level * STEP_BYTES, load(frame, STACK, LONG) + level * STACK_BYTES
    values, partitions = load(frame, VALUES, LONG), load(frame, PARTITIONS, LONG)
    kind = load(step, 1, LONG)
    work = 4
    begin = address = end = 0
    if kind == JOIN:
        lists, spans = load(frame, LISTS, LONG), load(frame, SPANS, LONG)
        first, last = load(step, 2, LONG), load(step, 3, LONG)
        shortest, shortest_plain = -1, -1
        length = plain_length = 0
        for k in range(first, last):
            entry, span = lists + k * LIST_BYTES, spans + k * SPAN_BYTES
            row = load(entry, 0, LONG)
            if row >= 0:
                near, far = neighbours_of(partitions, row, load(values, load(entry, 1, LONG), LONG))
                n = far - near
                at = load(partitions + row * PARTITION_BYTES, 3, LONG) + near * width
            elif row == -1:
                at, n = load(entry, 1, LONG), load(entry, 2, LONG)
            else:
                work += share(frame, load(entry, 1, LONG), width, like)
                shared = load(frame, SHARED, LONG) + load(entry, 1, LONG) * SHARED_BYTES
                at, n = load(shared, 0, LONG), load(shared, 1, LONG)
            store(span, 0, at, LONG)
            store(span, 1, n, LONG)
            if shortest < 0 or n < length:
                shortest, length = k, n
            if load(entry, 3, LONG) < 0 and (shortest_plain < 0 or n < plain_length):
                shortest_plain, plain_length = k, n
        # To go through a list that is somewhat longer is cheaper where the shorter one can be asked bit by bit.
        if shortest_plain >= 0 and plain_length <= DETOUR * length:
            shortest, length = shortest_plain, plain_length
        store(stack, 7, shortest, LONG)
        address, end = load(spans + shortest * SPAN_BYTES, 0, LONG), length
    elif kind == SCAN:
        address, end = load(stack, 4, LONG), load(stack, 7, LONG)
    else:
        row = load(step, 8, LONG)
        left, right = load(values, load(step, 9, LONG), LONG), load(values, load(step, 10, LONG), LONG)
        place = neighbour_at(partitions, row, left, right, like)
        address = load(partitions + row * PARTITION_BYTES, 5, LONG)
        if place >= 0:
            offsets = load(partitions + row * PARTITION_BYTES, 4, LONG)
            begin, end = load(offsets, place, LONG), load(offsets, place + 1, LONG)
    checks = load(frame, CHECKS, LONG)
    least = 0
    for c in range(load(step, 4, LONG), load(step, 5, LONG)):
        least = max(least, load(values, load(checks + c * CHECK_BYTES, 2, LONG), LONG) + 1)
    if least > 0:
        if kind == JOIN:
            begin = find(address, begin, end, least, like)
        else:
            begin = find(address, begin, end, least, LONG)
    if level == 1 and load(frame, PIECES, LONG) > 1:
        piece, pieces, length = load(frame, PIECE, LONG), load(frame, PIECES, LONG), end - begin
        begin, end = begin + length * piece // pieces, begin + length * (piece + 1) // pieces
    store(stack, 1, 0, LONG)
    store(stack, 2, 0, LONG)
    store(stack, 4, address, LONG)
    store(stack, 5, begin, LONG)
    store(stack, 6, end, LONG)
    store(stack, 8, begin, LONG)
    return work
