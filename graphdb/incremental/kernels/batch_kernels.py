"""Batches: staged into the lists, committed or rolled back, and counted one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.incremental.frame import (
    BACKWARDS,
    BOTH,
    CHANGE_BYTES,
    CHANGE_CELLS,
    CODES,
    ENDS,
    FORWARDS,
    FOUND,
    GAINED,
    GRAPH,
    INT,
    KEY_SHIFT,
    LAST_RECORD,
    LEVEL,
    LONG,
    LOST,
    MOST_WAITING,
    NEIGHBOURS,
    NEW,
    PARALLEL,
    PLAIN,
    PLAIN_COUNT,
    PLAN,
    RECORD,
    RECORD_CELLS,
    RECORD_COUNT,
    RECORDS,
    TOUCHED_AGAIN,
    UNIT,
    WAITING,
    WANTED,
    WORDS,
    YIELD,
)
from graphdb.incremental.kernels.counting_kernels import forget_pairs
from graphdb.incremental.kernels.list_kernels import change, entry_of, leave, row_of
from graphdb.incremental.kernels.search_kernels import count
from graphdb.storage.compile.kernels import entry, fetch, inlined, kernel, load, lowest, store

Ints = NDArray[np.int64]

AHEAD = 8
"""Updates whose vertices are fetched into the cache before they are needed."""
LISTS_AHEAD = 8
"""Changes of lists whose entries are."""
FEWEST_AHEAD = 4
"""Updates of which anything is fetched before it is needed."""
UPDATE_BYTES = 32
"""An update: (label, source, target, whether it is an insertion)."""
SPACE = 3
"""What :func:`count_batches` returns where the lists or the records need more space."""


@inlined
def forwards_of(graph: int, w: int, label: int, source: int, target: int) -> int:
    """A word of the relations that have an edge by its source: bits."""
    words, ends = load(graph, WORDS, LONG), load(graph, ENDS, LONG)
    near, far = load(ends, source * words * 2 + w, LONG), load(ends, (target * 2 + 1) * words + w, LONG)
    return load(load(graph, FORWARDS, LONG), label * words + w, LONG) & near & far


@inlined
def backwards_of(graph: int, w: int, label: int, source: int, target: int) -> int:
    """A word of those that have it by its target; a loop is one edge, also where the direction does not matter."""
    words, ends = load(graph, WORDS, LONG), load(graph, ENDS, LONG)
    near, far = load(ends, target * words * 2 + w, LONG), load(ends, (source * 2 + 1) * words + w, LONG)
    ways = load(load(graph, FORWARDS, LONG), label * words + w, LONG) if source == target else 0
    return load(load(graph, BACKWARDS, LONG), label * words + w, LONG) & near & far & ~ways


@kernel
def change_edge(graph: int, label: int, source: int, target: int, inserted: bool, like: Any) -> bool:
    """Change an edge in all relations that it belongs to; False where there is no space: then it can be done again."""
    for w in range(load(graph, WORDS, LONG)):
        bits = forwards_of(graph, w, label, source, target)
        while bits != 0:
            if not change(graph, w * 64 + lowest(bits), source, target, 2 * label, inserted, like):
                return False
            bits &= bits - 1
        bits = backwards_of(graph, w, label, source, target)
        while bits != 0:
            if not change(graph, w * 64 + lowest(bits), target, source, 2 * label + 1, inserted, like):
                return False
            bits &= bits - 1
    return True


@kernel
def write_changes(graph: int, label: int, source: int, target: int, update: int, count: int) -> int:
    """Write which lists an update changes, behind ``count`` others: how many there are then."""
    for w in range(load(graph, WORDS, LONG)):
        bits = forwards_of(graph, w, label, source, target)
        while bits != 0:
            write_change(graph, w * 64 + lowest(bits), source, target, 2 * label, update, count)
            count += 1
            bits &= bits - 1
        bits = backwards_of(graph, w, label, source, target)
        while bits != 0:
            write_change(graph, w * 64 + lowest(bits), target, source, 2 * label + 1, update, count)
            count += 1
            bits &= bits - 1
    return count


@kernel
def those_concerned(graph: int, updates: Ints, begin: int, end: int, last: int) -> int:
    """Write which updates of ``begin … end-1`` some relation may take: how many.

    There is no branch in it that depends on an update: most of them would be foretold wrongly.
    """
    ends, words, out = load(graph, ENDS, LONG), load(graph, WORDS, LONG), load(graph, WANTED, LONG)
    forwards, backwards, count = load(graph, FORWARDS, LONG), load(graph, BACKWARDS, LONG), 0
    stride, own = 2 * words, updates.ctypes.data
    for i in range(begin, end):
        ahead, row = own + min(i + AHEAD, last - 1) * UPDATE_BYTES, own + i * UPDATE_BYTES
        fetch(ends + load(ahead, 1, LONG) * stride * 8)
        fetch(ends + load(ahead, 2, LONG) * stride * 8)
        label, near, far, bits = load(row, 0, LONG) * words, load(row, 1, LONG) * stride, load(row, 2, LONG) * stride, 0
        for w in range(words):
            bits |= load(forwards, label + w, LONG) & load(ends, near + w, LONG) & load(ends, far + words + w, LONG)
            bits |= load(backwards, label + w, LONG) & load(ends, far + w, LONG) & load(ends, near + words + w, LONG)
        store(out, count, i, LONG)
        count += bits != 0
    return count


@inlined
def write_change(graph: int, relation: int, near: int, far: int, key: int, update: int, number: int) -> None:
    """Write which list an update changes, whose row is then on its way to the cache."""
    out = load(graph, WAITING, LONG) + number * CHANGE_BYTES
    store(out, 0, relation, LONG)
    store(out, 1, near, LONG)
    store(out, 2, far, LONG)
    store(out, 3, key, LONG)
    store(out, 4, update, LONG)
    fetch(row_of(graph, relation, near))


@kernel
def change_waiting(graph: int, updates: Ints, count: int, like: Any) -> int:
    """Change the lists that were written down: the update for which there was no space, -1 where there was for all."""
    waiting, inserted = load(graph, WAITING, LONG), updates.ctypes.data + 24
    for i in range(count):
        if i + LISTS_AHEAD < count:
            later = waiting + (i + LISTS_AHEAD) * CHANGE_BYTES
            row = row_of(graph, load(later, 0, LONG), load(later, 1, LONG))
            fetch(load(graph, NEIGHBOURS, LONG) + load(row, 0, INT) * UNIT * 4)  # of ids of 64 bits elsewhere
        own = waiting + i * CHANGE_BYTES
        relation, near, far = load(own, 0, LONG), load(own, 1, LONG), load(own, 2, LONG)
        update = load(own, 4, LONG)
        if not change(graph, relation, near, far, load(own, 3, LONG), load(inserted, update * 4, LONG) != 0, like):
            return update
    return -1


@entry("i8[:], i8[:], i8[:], b1[:], i8, i8, i8[:], i8[:, :], i8[:] -> i8")
def number_updates(
    labels: Ints,
    sources: Ints,
    targets: Ints,
    inserted: NDArray[np.bool_],
    label: int,
    number: int,
    numbers: Ints,
    rows: Ints,
    ends: Ints,
) -> int:
    """Write updates as :func:`stage` takes them: those whose ends both concern some pattern.

    ``numbers`` are those of all resources, and ``ends``, where batches end, become the same of the rows.  Returns how
    many rows there are; -1 where an update has another label than ``label``, which has a ``number``, or an end that is
    no resource.
    """
    count, written, begin = len(numbers), 0, 0
    label_of, source_of, target_of = labels.ctypes.data, sources.ctypes.data, targets.ctypes.data
    number_of, out = numbers.ctypes.data, rows.ctypes.data
    for batch in range(len(ends)):
        for i in range(begin, ends[batch]):
            source, target = load(source_of, i, LONG), load(target_of, i, LONG)
            if load(label_of, i, LONG) != label or not (0 <= source < count and 0 <= target < count):
                return -1
            near, far = load(number_of, source, LONG), load(number_of, target, LONG)
            row = out + written * UPDATE_BYTES
            store(row, 0, number, LONG)
            store(row, 1, near, LONG)
            store(row, 2, far, LONG)
            store(row, 3, inserted[i], LONG)
            written += near != 0 and far != 0
        begin = ends[batch]
        ends[batch] = written
    return written


@entry("i8, T, i8[:, :], i8, i8 -> i8")
def stage(graph: int, like: Any, updates: Ints, begin: int, end: int) -> int:
    """Put updates ``begin … end-1`` into the new version, in order.

    ``updates`` is [updates, 4]: the number of the edge label, source, target, and 1 for an insertion, 0 for a deletion.
    Returns the first update for which there was no space; ``end`` where there was for all.
    """
    if end - begin < FEWEST_AHEAD:
        for i in range(begin, end):
            if not change_edge(graph, updates[i, 0], updates[i, 1], updates[i, 2], updates[i, 3] != 0, like):
                return i
        return end
    at, wanted, count = begin, load(graph, WANTED, LONG), 0
    while at < end:
        stop = min(at + MOST_WAITING, end)
        found = those_concerned(graph, updates, at, stop, end)
        at = stop
        for number in range(found):
            i = load(wanted, number, LONG)
            row = updates.ctypes.data + i * UPDATE_BYTES
            count = write_changes(graph, load(row, 0, LONG), load(row, 1, LONG), load(row, 2, LONG), i, count)
            if count >= MOST_WAITING:
                failed = change_waiting(graph, updates, count, like)
                if failed >= 0:
                    return failed
                count = 0
    failed = change_waiting(graph, updates, count, like)
    return end if failed < 0 else failed


@entry("i8, T, i8[:], i8[:, :], i8 -> i8")
def withdraw(graph: int, like: Any, vertices: Ints, relations: Ints, begin: int) -> int:
    """Take the entries of vertices ``begin …`` out of the new version, from their lists of some relations and back.

    ``relations`` is [relations, 3]: a relation, its reverse, and whether their edges have no direction.  Returns as
    :func:`stage` does.
    """
    neighbours, codes = load(graph, NEIGHBOURS, LONG), load(graph, CODES, LONG)
    for i in range(begin, len(vertices)):
        vertex = vertices[i]
        for r in range(len(relations)):
            row = row_of(graph, relations[r, 0], vertex)
            first = load(row, 0, INT) * UNIT
            for at in range(first, first + load(row, 1, INT)):
                far, key = load(neighbours, at, like), load(codes, at, INT) >> KEY_SHIFT
                back = key if far == vertex and relations[r, 2] != 0 else key ^ 1
                if not change(graph, relations[r, 0], vertex, far, key, False, like):
                    return i
                if not change(graph, relations[r, 1], far, vertex, back, False, like):
                    return i
    return len(vertices)


@entry("i8, T -> i8")
def note_versions(graph: int, like: Any) -> int:
    """Write the versions into the records of entries that have changed since: how many are in one version alone."""
    if load(graph, TOUCHED_AGAIN, LONG) == 0:
        return load(graph, RECORD_COUNT, LONG)
    records, codes = load(graph, RECORDS, LONG), load(graph, CODES, LONG)
    changed = 0
    for i in range(load(graph, RECORD_COUNT, LONG)):
        record = records + i * RECORD_CELLS * 8
        versions = load(codes, entry_of(graph, record, like), INT) & BOTH
        store(record, 4, versions, LONG)
        changed += versions not in (0, BOTH)
    return changed


@entry("i8, i4[:, :], i8 -> i8")
def pack_records(graph: int, packed: NDArray[np.int32], cancelled: int) -> int:
    """Write the records of entries that are in one version alone in 32 bits, and how many they are.

    ``cancelled`` of 1 is for those in neither version, too.
    """
    records, count = load(graph, RECORDS, LONG), 0
    for i in range(load(graph, RECORD_COUNT, LONG)):
        record = records + i * RECORD_CELLS * 8
        versions = load(record, 4, LONG)
        if versions == BOTH or (versions == 0 and cancelled == 0):
            continue
        for cell in range(CHANGE_CELLS):
            packed[count, cell] = load(record, cell, LONG)
        count += 1
    return count


@entry("i8, T, i8")
def finish(graph: int, like: Any, version: int) -> None:
    """End the batch: ``NEW`` commits it, ``OLD`` rolls it back."""
    records = load(graph, RECORDS, LONG)
    for i in range(load(graph, RECORD_COUNT, LONG)):
        leave(graph, records + i * RECORD_CELLS * 8, version, like)
    store(graph, RECORD_COUNT, 0, LONG)
    store(graph, TOUCHED_AGAIN, 0, LONG)


@entry("i8, T, i8[:, :], i8[:, :], i8[:], i8[:, :, :], i8[:], i8 -> i8")
def count_batches(
    graph: int, like: Any, searches: Ints, updates: Ints, ends: Ints, counts: Ints, state: Ints, budget: int
) -> int:
    """Go on with counting batches of updates, each staged, searched by every pattern and committed.

    Parameters
    ----------
    graph, like
        The graph's frame, and an array of the type of its neighbours.
    searches
        [patterns, 2]: the addresses of their frames, that of plain searches first (:func:`search_of`).
    updates, ends
        As :func:`stage` takes them, and where each batch ends.
    counts
        [batches, patterns, 2], zeros: matches gained and lost.
    state
        [3], zeros at first: the batch, the next update, and the pattern that goes on (one more; 0 while staging).
    budget
        Entries to look at before yielding.

    Returns
    -------
    int
        ``DONE``, ``YIELD``, or ``SPACE`` where more of it is needed to go on.
    """
    while state[0] < len(ends):
        batch = state[0]
        if state[2] == 0 and state[1] == ends[batch]:  # nothing in it concerns any pattern
            state[0] += 1
            continue
        if state[2] == 0:
            state[1] = stage(graph, like, updates, state[1], ends[batch])
            if state[1] < ends[batch]:
                return SPACE
            if note_versions(graph, like) == 0:
                finish(graph, like, NEW)
                state[0] += 1
                continue
            state[2] = 1
            begin_search(search_of(graph, searches[0, 0], searches[0, 1]))
        while state[2] <= len(searches):
            pattern = state[2] - 1
            search = search_of(graph, searches[pattern, 0], searches[pattern, 1])
            if count(search, like, 0, 0, budget) == YIELD:
                return YIELD
            counts[batch, pattern, 0] = load(search, GAINED, LONG)
            counts[batch, pattern, 1] = load(search, LOST, LONG)
            state[2] += 1
            if state[2] <= len(searches):
                begin_search(search_of(graph, searches[pattern + 1, 0], searches[pattern + 1, 1]))
        finish(graph, like, NEW)
        state[0] += 1
        state[2] = 0
    return 0


@kernel
def search_of(graph: int, plain: int, full: int) -> int:
    """The plain search of a pattern where none of the relations that it names has parallel edges, else the full one."""
    relations, parallel = load(plain, PLAIN, LONG), load(graph, PARALLEL, LONG)
    for i in range(load(plain, PLAIN_COUNT, LONG)):
        if load(parallel, load(relations, i, LONG), LONG) != 0:
            return full
    return plain


@entry("i8, i8, i8 -> i8")
def choose(graph: int, plain: int, full: int) -> int:
    """The frame of a pattern's search: see :func:`search_of`."""
    return search_of(graph, plain, full)


@entry("i8, i8, i8")
def begin(search: int, first: int, last: int) -> None:
    """Have a search begin, which goes from record ``first`` to before ``last``."""
    begin_search(search)
    store(search, RECORD, first, LONG)
    store(search, LAST_RECORD, last, LONG)


@kernel
def begin_search(search: int) -> None:
    """Have a search begin with the first record; what one that was stopped has counted in pairs is forgotten."""
    forget_pairs(search)
    store(search, PLAN, -1, LONG)
    store(search, RECORD, 0, LONG)
    store(search, LAST_RECORD, load(load(search, GRAPH, LONG), RECORD_COUNT, LONG), LONG)
    store(search, LEVEL, -1, LONG)
    store(search, FOUND, 0, LONG)
    store(search, GAINED, 0, LONG)
    store(search, LOST, 0, LONG)
