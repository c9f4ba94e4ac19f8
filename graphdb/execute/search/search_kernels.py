"""The CPU search: one depth-first search for every plan, driven by the plan's tables, that can stop and go on.

It is compiled once per vertex id type and never per query.  All its state lies in arrays: the values bound so far,
and per step the list it goes through and where it stands there.  So it returns whenever its output block is full or
it has worked for a while, and continues just there when called again.  Between calls Python sees Ctrl-C, timeouts and
limits.

A step *opens* when all before it are bound: its lists are found, and narrowed to what the restrictions allow.  Then it
is *filled*, a window at a time: the shortest list is intersected with the others and passed through the checks, one
tight loop for each, so that all that is left in the window is a binding, and the lists that later steps read of these
are prefetched.  Going on to the next is then one read, the
last step's bindings are copied to the output block together, or only counted.

Everything is reached through the *frame* (:mod:`graphdb.execute.search.frame`).
"""

from __future__ import annotations

from typing import Any

from graphdb.execute.search.check_kernels import keep, other_of
from graphdb.execute.search.frame import (
    CHECK_BYTES,
    CHECKS,
    COLUMNS,
    FETCHED,
    JOIN,
    LAST,
    LEVEL,
    LIST_BYTES,
    LISTS,
    MATCHES,
    NUMBERS,
    OUTPUTS,
    PARTITIONS,
    PIECE,
    PIECES,
    ROW_LEVEL,
    ROWS,
    SPAN_BYTES,
    SPANS,
    STACK,
    STACK_BYTES,
    STEP_BYTES,
    STEPS,
    TOTAL,
    VALUES,
    WORK,
)
from graphdb.execute.search.list_kernels import bits_of, open_step
from graphdb.execute.search.set_kernels import (
    LONG,
    PARTITION_BYTES,
    count_bits,
    count_common,
    find,
    gallop,
    holds,
    intersect,
    keep_bits,
)
from graphdb.plan.physical import WINDOW
from graphdb.storage.compile.kernels import entry, fetch, kernel, load, store
from graphdb.storage.graph.pcsr_kernels import SPANS as SPANS_LAYER

DONE, FULL, YIELD = 0, 1, 2
"""What a search returns."""

PEEK = 64
"""The window of steps of which one binding does."""


@kernel
def add_work(frame: int, level: int, work: int) -> None:
    """Note what a step went through, behind all steps' rows: PROFILE tells."""
    at = load(frame, LAST, LONG) + 1 + level
    store(load(frame, ROWS, LONG), at, load(load(frame, ROWS, LONG), at, LONG) + work, LONG)


@kernel
def fetch_lists(frame: int, level: int, address: int, n: int, width: int, like: Any) -> None:
    """Prefetch the neighbour lists that later steps read of a step's next ``n`` bindings.

    Read one by one, each list is two cache misses, one after the other: its offset, and its beginning.
    """
    steps, lists, partitions = load(frame, STEPS, LONG), load(frame, LISTS, LONG), load(frame, PARTITIONS, LONG)
    slot = load(steps + level * STEP_BYTES, 0, LONG)
    last = steps + load(frame, LAST, LONG) * STEP_BYTES
    for k in range(load(steps + level * STEP_BYTES, 3, LONG), load(last, 3, LONG)):
        row = load(lists + k * LIST_BYTES, 0, LONG)
        if row >= 0 and load(lists + k * LIST_BYTES, 1, LONG) == slot:
            partition = partitions + row * PARTITION_BYTES
            direct, table, neighbours = load(partition, 0, LONG), load(partition, 1, LONG), load(partition, 3, LONG)
            known = load(partition, 2, LONG)
            if direct >= 0:
                for i in range(n):
                    vertex = load(address, i, like)
                    if vertex < direct:
                        fetch(neighbours + load(table, vertex, LONG) * width)
            elif direct == SPANS_LAYER:
                for i in range(n):
                    vertex = load(address, i, like)
                    if vertex < known:
                        fetch(neighbours + load(table, 2 * vertex, LONG) * width)


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
    window = PEEK if level > load(frame, ROW_LEVEL, LONG) and load(frame, NUMBERS, LONG) == 0 else WINDOW
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
    if n >= load(frame, FETCHED, LONG) and level < load(frame, LAST, LONG):
        fetch_lists(frame, level, address, n, width, like)
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


@entry("i8, T, i8, i8, i8, i8, b1, b1, i8 -> i8")
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
    row_level, numbers = load(frame, ROW_LEVEL, LONG), load(frame, NUMBERS, LONG)
    work = 0
    result = DONE
    store(frame, WORK, 0, LONG)
    while level >= 0:
        if total > 0 and level <= row_level:
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
            if row_level < last:
                total += end - at
                store(stack, 1, end, LONG)
                if numbers == 0:
                    level = row_level
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


@entry("i8, T, i8, i8, b1, i8 -> i8")
def count_all(frame: int, like: Any, width: int, roots: int, count_last: bool, budget: int) -> int:
    """Begin a count with all ``roots`` values of the first step's scan: one call from Python does for a small one.

    Returns
    -------
    int
        The number of matches, or -1 where the budget is spent before that is known.
    """
    stack, rows = load(frame, STACK, LONG), load(frame, ROWS, LONG)
    for cell in (1, 2, 5, 8):
        store(stack, cell, 0, LONG)
    store(stack, 6, roots, LONG)
    for cell in (LEVEL, MATCHES, PIECE, NUMBERS, TOTAL):
        store(frame, cell, 0, LONG)
    store(frame, PIECES, 1, LONG)
    for i in range(2 * (load(frame, LAST, LONG) + 1)):
        store(rows, i, 0, LONG)
    if search(frame, like, width, 0, 1, 1, True, count_last, budget) != DONE:
        return -1
    return load(frame, MATCHES, LONG)
