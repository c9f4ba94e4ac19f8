"""What all lists of a step share, found once for all bindings of the step above (STMatch §VII: code motion).

Two vertices with the same neighbours are bound one after the other, and the second has the same lists whatever the
first is.  So what they share is written down when the first one is opened.  Where lists are the same for all bindings
of the step above for another reason, that is done when the step is opened first below a binding of the one above that.
"""

from __future__ import annotations

from typing import Any

from graphdb.incremental.frame import (
    ABOVE_IT,
    CHUNK,
    EACH,
    ENTRY_BYTES,
    GRAPH,
    HOISTED,
    HOISTED_ENTRIES,
    LONG,
    NEIGHBOURS,
    ONCE,
    OPENED,
    SPAN_CELLS,
    SPANS,
)
from graphdb.incremental.kernels.step_kernels import block_of, counted_of, next_block, open_step, stack_of, step_of
from graphdb.storage.compile.kernels import kernel, load, store


@kernel
def note_opened(search: int, level: int) -> None:
    """Number an opened step, on whose bindings others depend."""
    opened = load(search, OPENED, LONG) + 1
    store(search, OPENED, opened, LONG)
    store(stack_of(search, level), 9, opened, LONG)


@kernel
def hoisted_place(search: int, level: int) -> int:
    """The address of what a step's lists share."""
    entries = load(counted_of(search, level), 1, LONG) * HOISTED_ENTRIES
    return load(search, HOISTED, LONG) + entries * load(search, ENTRY_BYTES, LONG)


@kernel
def hoist(search: int, level: int, table_row: int, like: Any) -> int:
    """Write down the candidates that an opened step's lists share: how many, -1 for too many."""
    step, stack, block = step_of(search, level), stack_of(search, level), block_of(search, level)
    place, count = hoisted_place(search, level), 0
    while load(stack, 0, LONG) < load(stack, 1, LONG):
        if count + CHUNK > HOISTED_ENTRIES:
            return -1
        found = next_block(search, level, table_row, load(step, 4, LONG), block, like)
        for i in range(found):
            store(place, count + i, load(block, i, LONG), like)
        count += found
    return count


@kernel
def open_counted(search: int, level: int, table_row: int, like: Any) -> int:
    """Open a step that is counted: how many entries were looked at for what is hoisted."""
    row, step, stack = counted_of(search, level), step_of(search, level), stack_of(search, level)
    parent, when, work = load(step, 9, LONG), load(row, 3, LONG), 0
    above = stack_of(search, max(0, parent))
    count, opened = load(above if when == ABOVE_IT else stack, 11, LONG), load(above, 9, LONG)
    if load(row, 1, LONG) < 0:
        again = parent >= 0 and load(stack, 10, LONG) == opened
        open_step(search, level, load(step_of(search, parent), 1, LONG) if again else -1, like)
        store(stack, 10, opened, LONG)
        return 0
    if when == EACH or (when == ONCE and load(stack, 10, LONG) != opened):
        open_step(search, level, -1, like)
        work = -load(stack, 0, LONG)
        count = hoist(search, level, table_row, like)
        work += load(stack, 0, LONG)
        store(stack, 10, opened, LONG)
    store(stack, 11, count, LONG)
    if count < 0:
        open_step(search, level, -1, like)
        return work
    first = load(step, 2, LONG)
    begin = hoisted_place(search, level) - load(load(search, GRAPH, LONG), NEIGHBOURS, LONG)
    begin //= load(search, ENTRY_BYTES, LONG)
    span = load(search, SPANS, LONG) + first * SPAN_CELLS * 8
    store(span, 0, begin, LONG)
    store(span, 1, begin + count, LONG)
    store(span, 2, 0, LONG)
    store(span, 3, 0, LONG)
    store(stack, 0, begin, LONG)
    store(stack, 1, begin + count, LONG)
    store(stack, 2, first, LONG)
    store(stack, 5, -1, LONG)
    store(stack, 6, 1, LONG)
    store(stack, 7, 0, LONG)
    store(stack, 8, 0, LONG)
    return work
