"""Sorted neighbour lists that change in place, and the candidate table that follows their lengths (GAMMA §IV-B, §V-C).

The lists of all relations lie in one pool of entries.  A list that outgrows its block moves to one of twice the size,
and leaves its own to others: so an insertion costs the move of the entries behind it, and amortised constant time else.
GAMMA's packed memory array reserves space in segments of one array; here each list is a segment.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.incremental.frame import (
    BOTH,
    CODES,
    COUNTER_CELLS,
    COUNTER_STARTS,
    COUNTERS,
    FREE,
    INT,
    KEY_SHIFT,
    LATE,
    LATE_CELLS,
    LATE_MASK,
    LEAST_MARKED,
    LONG,
    MARK_CAPACITY,
    MARKS,
    MARKS_USED,
    NEED_CELLS,
    NEEDS,
    NEIGHBOURS,
    NEW,
    OLD,
    PARALLEL,
    RANGE_CELLS,
    RANGES,
    RECORD_CAPACITY,
    RECORD_CELLS,
    RECORD_COUNT,
    RECORDS,
    RELATION_BITS,
    ROW_BYTES,
    ROW_CAPACITY,
    ROWS,
    ROWS_USED,
    STRIDE,
    TABLE,
    TOUCHED,
    TOUCHED_AGAIN,
    UNIT,
    UNITS,
    USED,
    VERTEX_CELLS,
    VERTICES,
)
from graphdb.storage.compile.kernels import entry, kernel, load, store
from graphdb.storage.graph.pcsr_kernels import find

Ints = NDArray[np.int64]


@kernel
def late_place(graph: int, key: int) -> int:
    """The address of a key's place in the table of rows out of range, or of the place where it would be."""
    late, mask = load(graph, LATE, LONG), load(graph, LATE_MASK, LONG)
    place = (key * 0x2545F4914F6CDD1D) >> 32 & mask
    while True:
        address = late + place * LATE_CELLS * 8
        found = load(address, 0, LONG)
        if found == key or found < 0:
            return address
        place = place + 1 & mask


@kernel
def row_of(graph: int, relation: int, vertex: int) -> int:
    """The address of a list's row; of the empty one where it has none."""
    span, rows = load(graph, RANGES, LONG) + relation * RANGE_CELLS * 8, load(graph, ROWS, LONG)
    offset = vertex - load(span, 0, LONG)
    if offset >= 0 and offset < load(span, 1, LONG):
        return rows + (load(span, 2, LONG) + offset) * ROW_BYTES
    place = late_place(graph, vertex << RELATION_BITS | relation)
    return rows + (load(place, 1, LONG) * ROW_BYTES if load(place, 0, LONG) >= 0 else 0)


@kernel
def make_row(graph: int, relation: int, vertex: int) -> int:
    """Give a list that has no row one: its address, 0 where there is no space."""
    row = load(graph, ROWS_USED, LONG)
    if row == load(graph, ROW_CAPACITY, LONG):
        return 0
    key = vertex << RELATION_BITS | relation
    place = late_place(graph, key)
    store(place, 0, key, LONG)
    store(place, 1, row, LONG)
    store(graph, ROWS_USED, row + 1, LONG)
    return load(graph, ROWS, LONG) + row * ROW_BYTES


@entry("i8, i8[:, :]")
def rehash(graph: int, late: Ints) -> None:
    """Write rows out of range into a new table, which is empty."""
    for i in range(len(late)):
        place = late_place(graph, late[i, 0])
        store(place, 0, late[i, 0], LONG)
        store(place, 1, late[i, 1], LONG)


@kernel
def place_of(graph: int, begin: int, end: int, far: int, key: int, like: Any) -> int:
    """The place in the pool of a list's first entry that is not below (far end, key)."""
    neighbours, codes = load(graph, NEIGHBOURS, LONG), load(graph, CODES, LONG)
    at = find(neighbours, begin, end, far, like)
    while at < end and load(neighbours, at, like) == far and load(codes, at, INT) >> KEY_SHIFT < key:
        at += 1
    return at


@kernel
def encode(graph: int, vertex: int, pattern_vertex: int) -> None:
    """Set a vertex's bit in the candidate table if all its counters are as a pattern vertex needs them."""
    row = load(graph, VERTICES, LONG) + pattern_vertex * VERTEX_CELLS * 8
    needs = load(graph, NEEDS, LONG)
    for i in range(load(row, 2, LONG), load(row, 3, LONG)):
        relation = load(needs, i * NEED_CELLS, LONG)
        if load(row_of(graph, relation, vertex), 1, INT) < load(needs, i * NEED_CELLS + 1, LONG):
            return
    at = load(row, 0, LONG) * load(graph, STRIDE, LONG) + vertex
    table = load(graph, TABLE, LONG)
    store(table, at, load(table, at, LONG) | 1 << load(row, 1, LONG), LONG)


@kernel
def lengthened(graph: int, relation: int, vertex: int, length: int) -> None:
    """Encode a vertex for the pattern vertices that need a counter to be as it now is."""
    starts, counters = load(graph, COUNTER_STARTS, LONG), load(graph, COUNTERS, LONG)
    for i in range(load(starts, relation, LONG), load(starts, relation + 1, LONG)):
        if load(counters, i * COUNTER_CELLS + 1, LONG) == length:
            encode(graph, vertex, load(counters, i * COUNTER_CELLS, LONG))


@kernel
def shortened(graph: int, relation: int, vertex: int, length: int) -> None:
    """Clear a vertex's bits of the pattern vertices that needed a counter to be one more than it now is."""
    starts, counters = load(graph, COUNTER_STARTS, LONG), load(graph, COUNTERS, LONG)
    for i in range(load(starts, relation, LONG), load(starts, relation + 1, LONG)):
        if load(counters, i * COUNTER_CELLS + 1, LONG) == length + 1:
            row = load(graph, VERTICES, LONG) + load(counters, i * COUNTER_CELLS, LONG) * VERTEX_CELLS * 8
            at = load(row, 0, LONG) * load(graph, STRIDE, LONG) + vertex
            table = load(graph, TABLE, LONG)
            store(table, at, load(table, at, LONG) & ~(1 << load(row, 1, LONG)), LONG)


@kernel
def size_class(units: int) -> int:
    """The largest power of two that a block of so many units has room for, by its exponent."""
    exponent = 0
    while 2 << exponent <= units:
        exponent += 1
    return exponent


@kernel
def grow(graph: int, row: int, like: Any) -> bool:
    """Move a full list to a block of twice the size; False where the pool has none."""
    neighbours, codes, free = load(graph, NEIGHBOURS, LONG), load(graph, CODES, LONG), load(graph, FREE, LONG)
    start, size, room = load(row, 0, INT), load(row, 1, INT), load(row, 2, INT) // UNIT
    exponent = size_class(room) + 1 if room > 0 else 0
    block = load(free, exponent, LONG)
    if block >= 0:
        store(free, exponent, load(neighbours, block * UNIT, like), LONG)
    else:
        block = load(graph, USED, LONG)
        if block + (1 << exponent) > load(graph, UNITS, LONG):
            return False
        store(graph, USED, block + (1 << exponent), LONG)
    for i in range(size):
        store(neighbours, block * UNIT + i, load(neighbours, start * UNIT + i, like), like)
        store(codes, block * UNIT + i, load(codes, start * UNIT + i, INT), INT)
    if room > 0:
        exponent = size_class(room)
        store(neighbours, start * UNIT, load(free, exponent, LONG), like)
        store(free, exponent, start, LONG)
        room = 2 << exponent
    store(row, 0, block, INT)
    store(row, 2, max(room, 1) * UNIT, INT)
    return True


@kernel
def mark(graph: int, relation: int, row: int, far: int, touched: bool, there: bool) -> None:
    """Have a list's bitmap say whether it has an entry of a far end in range, or the second whether one is touched."""
    span = load(graph, RANGES, LONG) + relation * RANGE_CELLS * 8
    offset, word = far - load(span, 3, LONG), load(row, 6, INT)
    if word != 0 and offset >= 0 and offset < load(span, 4, LONG):
        word += (load(span, 4, LONG) >> 6) + 1 if touched else 0
        address = load(graph, MARKS, LONG) + (word + (offset >> 6)) * 8
        bit = 1 << (offset & 63)
        store(address, 0, load(address, 0, LONG) | bit if there else load(address, 0, LONG) & ~bit, LONG)


@kernel
def mark_list(graph: int, relation: int, row: int, like: Any) -> None:
    """Give a list its bitmaps if it is long enough that they are not much larger, and there is space."""
    span, size = load(graph, RANGES, LONG) + relation * RANGE_CELLS * 8, load(row, 1, INT)
    far, used = load(span, 4, LONG), load(graph, MARKS_USED, LONG)
    words = 2 * ((far >> 6) + 1)
    if size < load(graph, LEAST_MARKED, LONG) or 16 * size < words or used + words > load(graph, MARK_CAPACITY, LONG):
        return
    store(graph, MARKS_USED, used + words, LONG)
    store(row, 6, used, INT)
    begin = load(row, 0, INT) * UNIT
    neighbours, codes = load(graph, NEIGHBOURS, LONG), load(graph, CODES, LONG)
    for at in range(begin, begin + size):
        mark(graph, relation, row, load(neighbours, at, like), False, True)
        if load(codes, at, INT) & TOUCHED:
            mark(graph, relation, row, load(neighbours, at, like), True, True)


@entry("i8, T, i8")
def mark_lists(graph: int, like: Any, relations: int) -> None:
    """Give all long lists that lie in range a bitmap."""
    for relation in range(relations):
        span = load(graph, RANGES, LONG) + relation * RANGE_CELLS * 8
        for i in range(load(span, 1, LONG)):
            mark_list(graph, relation, load(graph, ROWS, LONG) + (load(span, 2, LONG) + i) * ROW_BYTES, like)


@kernel
def note(graph: int, relation: int, near: int, far: int, key: int, version: int, row: int, place: int) -> None:
    """Write a record of an entry that the batch touches for the first time, at a place of its list, and its version."""
    count = load(graph, RECORD_COUNT, LONG)
    record = load(graph, RECORDS, LONG) + count * RECORD_CELLS * 8
    store(record, 0, relation, LONG)
    store(record, 1, near, LONG)
    store(record, 2, far, LONG)
    store(record, 3, key, LONG)
    store(record, 4, version, LONG)
    store(record, 5, row - load(graph, ROWS, LONG), LONG)
    store(record, 6, place, LONG)
    store(graph, RECORD_COUNT, count + 1, LONG)


@kernel
def entry_of(graph: int, record: int, like: Any) -> int:
    """The place in the pool of a record's entry: where it was, unless others came or went before it."""
    neighbours, codes = load(graph, NEIGHBOURS, LONG), load(graph, CODES, LONG)
    row, far, key = load(graph, ROWS, LONG) + load(record, 5, LONG), load(record, 2, LONG), load(record, 3, LONG)
    begin = load(row, 0, INT) * UNIT
    end = begin + load(row, 1, INT)
    at = begin + load(record, 6, LONG)
    if at < end and load(neighbours, at, like) == far and load(codes, at, INT) >> KEY_SHIFT == key:
        return at
    return place_of(graph, begin, end, far, key, like)


@kernel
def count_versions(row: int, before: int, after: int) -> None:
    """Count an entry of a list by the versions that it is in after a change."""
    store(row, 3, load(row, 3, INT) + (after & OLD != 0) - (before & OLD != 0), INT)
    store(row, 4, load(row, 4, INT) + (after & NEW != 0) - (before & NEW != 0), INT)
    store(row, 5, load(row, 5, INT) + (after & BOTH == BOTH) - (before & BOTH == BOTH), INT)


@kernel
def joined(neighbours: int, begin: int, end: int, at: int, far: int, like: Any) -> bool:
    """Whether the entry before or at a place of a list has a far end."""
    return (at > begin and load(neighbours, at - 1, like) == far) or (at < end and load(neighbours, at, like) == far)


@kernel
def count_parallel(graph: int, relation: int, difference: int) -> None:
    """Change the number of entries that a relation has more than pairs of vertices."""
    parallel = load(graph, PARALLEL, LONG)
    store(parallel, relation, load(parallel, relation, LONG) + difference, LONG)


@kernel
def change(graph: int, relation: int, near: int, far: int, key: int, inserted: bool, like: Any) -> bool:
    """Have an entry be in the new version, or not; False where there is no space for it: then nothing is changed."""
    row = row_of(graph, relation, near)
    neighbours, codes = load(graph, NEIGHBOURS, LONG), load(graph, CODES, LONG)
    begin, size = load(row, 0, INT) * UNIT, load(row, 1, INT)
    at = place_of(graph, begin, begin + size, far, key, like)
    full = load(graph, RECORD_COUNT, LONG) == load(graph, RECORD_CAPACITY, LONG)
    if at < begin + size and load(neighbours, at, like) == far:
        code = load(codes, at, INT)
        if code >> KEY_SHIFT == key:
            after = code | NEW if inserted else code & ~NEW
            if after == code:
                return True
            if code & TOUCHED:
                store(graph, TOUCHED_AGAIN, 1, LONG)
            elif full:
                return False
            else:  # it was in both versions
                note(graph, relation, near, far, key, OLD, row, at - begin)
                mark(graph, relation, row, far, True, True)
            store(codes, at, after | TOUCHED, INT)
            count_versions(row, code, after)
            return True
    if not inserted:
        return True
    if full:
        return False
    if row == load(graph, ROWS, LONG):
        row = make_row(graph, relation, near)
        if row == 0:
            return False
    if size == load(row, 2, INT):
        if not grow(graph, row, like):
            return False
        at += load(row, 0, INT) * UNIT - begin
        begin = load(row, 0, INT) * UNIT
    if joined(neighbours, begin, begin + size, at, far, like):
        count_parallel(graph, relation, 1)
    i = begin + size
    while i > at:
        store(neighbours, i, load(neighbours, i - 1, like), like)
        store(codes, i, load(codes, i - 1, INT), INT)
        i -= 1
    store(neighbours, at, far, like)
    store(codes, at, key << KEY_SHIFT | TOUCHED | NEW, INT)
    store(row, 1, size + 1, INT)
    count_versions(row, 0, NEW)
    if load(row, 6, INT) != 0:
        mark(graph, relation, row, far, False, True)
        mark(graph, relation, row, far, True, True)
    else:
        mark_list(graph, relation, row, like)
    note(graph, relation, near, far, key, NEW, row, at - begin)
    lengthened(graph, relation, near, size + 1)
    return True


@kernel
def leave(graph: int, record: int, version: int, like: Any) -> None:
    """Have the entry of a record be in both versions if it is in ``version``, in none if it is not."""
    relation, near = load(record, 0, LONG), load(record, 1, LONG)
    row = load(graph, ROWS, LONG) + load(record, 5, LONG)
    neighbours, codes = load(graph, NEIGHBOURS, LONG), load(graph, CODES, LONG)
    begin, size, key = load(row, 0, INT) * UNIT, load(row, 1, INT), load(record, 3, LONG)
    at = entry_of(graph, record, like)
    versions = load(codes, at, INT) & BOTH
    mark(graph, relation, row, load(record, 2, LONG), True, False)
    if versions & version:
        count_versions(row, versions, BOTH)
        store(codes, at, key << KEY_SHIFT | BOTH, INT)
        return
    count_versions(row, versions, 0)
    for i in range(at, begin + size - 1):
        store(neighbours, i, load(neighbours, i + 1, like), like)
        store(codes, i, load(codes, i + 1, INT), INT)
    if joined(neighbours, begin, begin + size - 1, at, load(record, 2, LONG), like):
        count_parallel(graph, relation, -1)
    else:
        mark(graph, relation, row, load(record, 2, LONG), False, False)
    store(row, 1, size - 1, INT)
    shortened(graph, relation, near, size - 1)
