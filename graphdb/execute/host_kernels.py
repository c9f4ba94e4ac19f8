"""The CPU search: one depth-first search for every plan, driven by the plan's tables, that can stop and go on.

It is compiled once per vertex id type and never per query.  All its state lies in arrays: the values bound so far,
and per step the list it goes through and where it stands there.  So it returns whenever its output block is full or
it has worked for a while, and continues just there when called again.  Between calls Python sees Ctrl-C, timeouts and
limits.

A step *opens* when all before it are bound: its lists are found, and narrowed to what the restrictions allow.  Then it
is *filled*, a window at a time: the shortest list is intersected with the others and passed through the checks, one
tight loop for each, so that all that is left in the window is a binding.  Going on to the next is then one read, the
last step's bindings are copied to the output block together, or only counted.

Lists that stay while the steps between go on are worked on once: as bits (a list that many others are intersected
with), and as shared intersections (STMatch §VII), both made when they are first needed and kept until a value that
they depend on changes.

Everything is reached through the *frame*, an array of int64 whose cells are numbered below.
"""

from __future__ import annotations

from typing import Any

from graphdb.execute.set_kernels import (
    LONG,
    PARTITION_BYTES,
    clear_bits,
    count_bits,
    count_common,
    drop_value,
    find,
    gallop,
    holds,
    intersect,
    keep_bits,
    keep_listed,
    keep_signatures,
    mark_bits,
    neighbour_at,
    neighbours_of,
    subtract,
)
from graphdb.plan.physical import DETOUR, WINDOW
from graphdb.storage.jit import kernel, load, store

DONE, FULL, YIELD = 0, 1, 2

# The frame: addresses of the program's tables, …
STEPS, LISTS, CHECKS, UNCERTAIN, PARTITIONS, OUTPUTS, SHARES = 0, 1, 2, 3, 4, 5, 6
RESOURCES, TYPE_LABEL, LAST, COLUMNS = 7, 8, 9, 10
# … of the worker's arrays, …
VALUES, STACK, ROWS, SPANS, BITS, SHARED = 11, 12, 13, 14, 15, 16
# … and its state: the step that goes on next, matches found since the block was emptied, work done so far, and which
# of how many pieces of the second step's list are wanted; …
LEVEL, MATCHES, WORK, PIECE, PIECES = 17, 18, 19, 20, 21
# … and for rows that stand for several matches: the last step that makes them, the address of the rows' numbers of
# matches (0: one match does), and the matches of the row under way.
KEPT, NUMBERS, TOTAL = 22, 23, 24
FRAME_CELLS = 25

STEP_BYTES, LIST_BYTES, CHECK_BYTES, SHARE_BYTES = 12 * 8, 4 * 8, 7 * 8, 3 * 8
"""Rows of the program's tables (:mod:`graphdb.plan.physical`)."""
STACK_CELLS = 9
"""Per step: the window's address, position and end; its buffer; the list's address, position and end; for a scan its
length, for a join which of its lists it goes through; where in the list it began."""
STACK_BYTES = STACK_CELLS * 8
SPAN_CELLS = 2
"""Per list: the address and length of what it is now."""
SPAN_BYTES = SPAN_CELLS * 8
BITS_CELLS = 4
"""Per list kept as bits: their address, the vertex whose neighbours they are, the vertex asked for, and how much."""
BITS_BYTES = BITS_CELLS * 8
SHARED_CELLS = 6
"""Per shared intersection: address, length, the value of its last slot, its version, its parent's, its buffer."""
SHARED_BYTES = SHARED_CELLS * 8

PEEK = 64
"""The window of steps of which one binding does."""

SCAN, JOIN, EDGES = 0, 1, 2
"""Kinds of steps: through a list of int64, through an intersection, through the codes of a bound pair."""


@kernel
def add_work(frame: int, level: int, work: int) -> None:
    """Note what a step went through, behind all steps' rows: PROFILE tells."""
    at = load(frame, LAST, LONG) + 1 + level
    store(load(frame, ROWS, LONG), at, load(load(frame, ROWS, LONG), at, LONG) + work, LONG)


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


@kernel
def fill(frame: int, level: int, width: int, like: Any) -> int:
    """Fill a step's window with its next bindings: the work."""
    step, stack = load(frame, STEPS, LONG) + level * STEP_BYTES, load(frame, STACK, LONG) + level * STACK_BYTES
    kind, slot = load(step, 1, LONG), load(step, 0, LONG)
    first_check, last_check = load(step, 5, LONG), load(step, 6, LONG)
    at, end, buffer = load(stack, 5, LONG), load(stack, 6, LONG), load(stack, 3, LONG)
    checks = load(frame, CHECKS, LONG)
    address = load(stack, 4, LONG)
    n = end - at
    work = 0
    window = PEEK if level > load(frame, KEPT, LONG) and load(frame, NUMBERS, LONG) == 0 else WINDOW
    if kind == JOIN:
        address += at * width
        first, last = load(step, 2, LONG), load(step, 3, LONG)
        if n > window and (last - first > 1 or first_check < last_check):
            n = window
        at += n
        shortest = load(stack, 7, LONG)
        for k in range(first, last):
            if k != shortest and n > 0:
                entry, span = load(frame, LISTS, LONG) + k * LIST_BYTES, load(frame, SPANS, LONG) + k * SPAN_BYTES
                other, m = load(span, 0, LONG), load(span, 1, LONG)
                bits = bits_of(frame, entry, span, n, width, like)
                if bits:
                    work += n
                    n = keep_bits(address, n, bits, buffer, like)
                else:
                    low = gallop(other, 0, m, load(address, 0, like), like)
                    high = gallop(other, low, m, load(address, n - 1, like) + 1, like)
                    work += min(n + high - low, 8 * n)
                    n = intersect(address, n, other + low * width, high - low, buffer, like)
                address = buffer
    else:
        n = min(n, window)
        flip = load(step, 11, LONG)
        for i in range(n):
            store(buffer, i, load(address, at + i, LONG) ^ flip, like)
        at += n
        address = buffer
    for c in range(first_check, last_check):
        if n == 0:
            break
        work += n
        left = keep(frame, checks + c * CHECK_BYTES, slot, address, n, buffer, width, like)
        if left < n or load(checks + c * CHECK_BYTES, 0, LONG) != 2:
            address, n = buffer, left
    rows = load(frame, ROWS, LONG)
    store(rows, level, load(rows, level, LONG) + n, LONG)
    store(stack, 0, address, LONG)
    store(stack, 1, 0, LONG)
    store(stack, 2, n, LONG)
    store(stack, 5, at, LONG)
    return work


@kernel
def in_all(frame: int, step: int, value: int, like: Any) -> bool:
    """Whether a value is in every list of an opened join."""
    for k in range(load(step, 2, LONG), load(step, 3, LONG)):
        span = load(frame, SPANS, LONG) + k * SPAN_BYTES
        if not holds(load(span, 0, LONG), load(span, 1, LONG), value, like):
            return False
    return True


@kernel
def count_step(frame: int, level: int, width: int, like: Any) -> int:
    """How many bindings an opened join of one or two lists has, whose only checks are inequalities.  Closes it."""
    step, stack = load(frame, STEPS, LONG) + level * STEP_BYTES, load(frame, STACK, LONG) + level * STACK_BYTES
    address, at, end = load(stack, 4, LONG), load(stack, 5, LONG), load(stack, 6, LONG)
    first, last, shortest = load(step, 2, LONG), load(step, 3, LONG), load(stack, 7, LONG)
    store(stack, 5, end, LONG)
    count = n = end - at
    if n <= 0:
        return 0
    work = 4
    if last - first == 2:
        k = first + last - 1 - shortest
        entry, span = load(frame, LISTS, LONG) + k * LIST_BYTES, load(frame, SPANS, LONG) + k * SPAN_BYTES
        other, m = load(span, 0, LONG), load(span, 1, LONG)
        bits = bits_of(frame, entry, span, n, width, like)
        if bits:
            count = count_bits(address + at * width, n, bits, like)
            work += n
        else:
            low = find(other, 0, m, load(address, at, like), like)
            count = count_common(address + at * width, n, other + low * width, m - low, like)
            work += min(n + m - low, 8 * n)
    slot, values, checks = load(step, 0, LONG), load(frame, VALUES, LONG), load(frame, CHECKS, LONG)
    begin, after = load(step, 5, LONG), load(step, 6, LONG)
    least, most = load(address, at, like), load(address, end - 1, like)
    for i in range(begin, after):
        other = other_of(checks + i * CHECK_BYTES, 1, slot, values)
        if least <= other <= most and in_all(frame, step, other, like):
            repeated = False
            for j in range(begin, i):
                repeated = repeated or other_of(checks + j * CHECK_BYTES, 1, slot, values) == other
            count -= not repeated
    store(frame, WORK, load(frame, WORK, LONG) + work, LONG)
    add_work(frame, level, work)
    rows = load(frame, ROWS, LONG)
    store(rows, level, load(rows, level, LONG) + count, LONG)
    return count


@kernel
def emit(frame: int, level: int, n: int, matches: int, block: int, capacity: int, width: int, like: Any) -> None:
    """Write the next ``n`` bindings of the last step, with the values of all others, behind ``matches`` rows."""
    stack = load(frame, STACK, LONG) + level * STACK_BYTES
    window, at = load(stack, 0, LONG), load(stack, 1, LONG)
    slot = load(load(frame, STEPS, LONG) + level * STEP_BYTES, 0, LONG)
    outputs, values = load(frame, OUTPUTS, LONG), load(frame, VALUES, LONG)
    for column in range(load(frame, COLUMNS, LONG)):
        out = block + (column * capacity + matches) * width
        source = load(outputs, column, LONG)
        if source == slot:
            for i in range(n):
                store(out, i, load(window, at + i, like), like)
        else:
            value = load(values, source, LONG)
            for i in range(n):
                store(out, i, value, like)


@kernel
def emit_row(frame: int, matches: int, total: int, block: int, capacity: int, width: int, like: Any) -> None:
    """Write the values bound so far as one row behind ``matches`` rows, and how many matches it stands for."""
    outputs, values = load(frame, OUTPUTS, LONG), load(frame, VALUES, LONG)
    for column in range(load(frame, COLUMNS, LONG)):
        value = load(values, load(outputs, column, LONG), LONG)
        store(block + (column * capacity + matches) * width, 0, value, like)
    if load(frame, NUMBERS, LONG):
        store(load(frame, NUMBERS, LONG), matches, total, LONG)


@kernel
def search(
    frame: int,
    like: Any,
    width: int,
    block: int,
    capacity: int,
    wanted: int,
    counting: bool,
    count_last: bool,
    budget: int,
) -> int:
    """Go on with a search.

    Parameters
    ----------
    frame
        The address of the frame.
    like, width
        A zero of the vertex id type, and its bytes.
    block, capacity
        The address of vertex ids [columns, capacity]: the matches; ``counting`` writes none.
    wanted
        How many matches to stop at, at most ``capacity``.
    count_last
        Whether the last step may be counted by :func:`count_step`.

    Where steps follow the last that makes a row, each row is written once: as soon as there is a match, or when its
    matches have been counted.

    budget
        Elements to go through before yielding.

    Returns
    -------
    int
        ``DONE``, ``FULL`` (the block holds ``wanted`` matches) or ``YIELD``.
    """
    last, level = load(frame, LAST, LONG), load(frame, LEVEL, LONG)
    stacks, steps, values = load(frame, STACK, LONG), load(frame, STEPS, LONG), load(frame, VALUES, LONG)
    matches, total = load(frame, MATCHES, LONG), load(frame, TOTAL, LONG)
    kept, numbers = load(frame, KEPT, LONG), load(frame, NUMBERS, LONG)
    work = 0
    result = DONE
    store(frame, WORK, 0, LONG)
    while level >= 0:
        if total > 0 and level <= kept:
            emit_row(frame, matches, total, block, capacity, width, like)
            matches += 1
            total = 0
            if matches == wanted:
                result = FULL
                break
        if work + load(frame, WORK, LONG) > budget:
            result = YIELD
            break
        work += 1
        stack = stacks + level * STACK_BYTES
        at, end = load(stack, 1, LONG), load(stack, 2, LONG)
        if at == end:
            if load(stack, 5, LONG) < load(stack, 6, LONG):
                done = fill(frame, level, width, like)
                add_work(frame, level, done)
                work += done
            else:
                level -= 1
            continue
        if level == last:
            if counting:
                matches += end - at
                store(stack, 1, end, LONG)
                continue
            if kept < last:
                total += end - at
                store(stack, 1, end, LONG)
                if numbers == 0:
                    level = kept
                continue
            n = min(end - at, wanted - matches)
            emit(frame, level, n, matches, block, capacity, width, like)
            add_work(frame, level, n)
            store(stack, 1, at + n, LONG)
            matches += n
            work += n
            if matches == wanted:
                result = FULL
                break
            continue
        store(values, load(steps + level * STEP_BYTES, 0, LONG), load(load(stack, 0, LONG), at, like), LONG)
        store(stack, 1, at + 1, LONG)
        level += 1
        done = open_step(frame, level, width, like)
        add_work(frame, level, done)
        work += done
        if level == last and count_last:
            if counting:
                matches += count_step(frame, level, width, like)
            else:
                total += count_step(frame, level, width, like)
            level -= 1
    store(frame, LEVEL, level, LONG)
    store(frame, MATCHES, matches, LONG)
    store(frame, TOTAL, total, LONG)
    return result
