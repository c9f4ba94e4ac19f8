"""The tables of incremental matching as kernels see them: arrays that point to all others, by numbered cells."""

from __future__ import annotations

import numpy as np

LONG, INT = 0, np.int32(0)
"""Stand for int64 and int32 in ``load`` and ``store`` (:mod:`graphdb.storage.compile.kernels`)."""

# The graph: rows of all lists, their entries, vertices, free blocks by size, units used and allocated.
ROWS, NEIGHBOURS, CODES, STRIDE, FREE, USED, UNITS = 0, 1, 2, 3, 4, 5, 6
# Bits [vertices, 2, words] of the relations that a vertex may be the near, and the far end of; bits [labels, words] of
# the relations that take an edge label forwards, or backwards; how many vertices have a number.
ENDS, WORDS, FORWARDS, BACKWARDS, VERTEX_COUNT = 7, 8, 9, 10, 11
# Candidates (§IV-B): by relation the counters that matter, the pattern vertices that they matter to, all counters of
# these, and the candidate table.
COUNTER_STARTS, COUNTERS, VERTICES, NEEDS, TABLE = 12, 13, 14, 15, 16
# The batch: its records, how many there are and may be.
RECORDS, RECORD_COUNT, RECORD_CAPACITY = 17, 18, 19
# By relation, how many entries more than pairs of vertices it has.
PARALLEL = 20
# By relation, the vertices that have consecutive rows; a hash table of the rows of others, its places less one; rows in
# use and allocated.
RANGES, LATE, LATE_MASK, ROWS_USED, ROW_CAPACITY = 21, 22, 23, 24, 25
# Bitmaps of long lists, of their far ends and behind them of those that the batch touches, in words: in use and
# allocated; entries that a list has at least that gets one.
MARKS, MARKS_USED, MARK_CAPACITY, LEAST_MARKED = 26, 27, 28, 29
# Changes of lists that are staged next, at least :data:`MOST_WAITING`: relation, near end, far end, key, update.
WAITING = 30
# Of the next :data:`MOST_WAITING` updates, those that some relation may take.
WANTED = 31
# Whether the batch has changed an entry that it had touched before.
TOUCHED_AGAIN = 32
GRAPH_CELLS = 33

MOST_WAITING = 64
CHANGE_BYTES = 40

ROW_CELLS = 8
ROW_BYTES = ROW_CELLS * 4
"""A list: (where it begins, in units; entries; entries that it has room for; entries in the old version, in the new
one, in both; first word of its bitmap or 0), int32; a cell is free, so that no list's lie in two cache lines."""
RANGE_CELLS = 5
"""(first vertex, vertices, the first one's row; the same of far ends: first vertex, vertices)."""
LATE_CELLS = 2
"""(vertex and relation, or -1; row).  Row 0 is empty, and stands for all that are not there."""
RELATION_BITS = 20
UNIT = 4
"""Entries in a unit, in which lists are allocated."""
SIZES = 32
"""Sizes of free blocks: powers of two, in units."""

COUNTER_CELLS = 2
"""(pattern vertex, entries needed)."""
VERTEX_CELLS = 4
"""(row of the candidate table, bit, first and after last of its needs)."""
NEED_CELLS = 2
"""(relation, entries needed)."""
RECORD_CELLS = 7
"""A list's entry that the batch touched: (relation, near end, far end, key, versions that it is in; the list's row, in
bytes, and the place in the list where it was)."""
CHANGE_CELLS = 5
"""What devices have of a record."""

OLD, NEW, BOTH, TOUCHED, KEY_SHIFT = 1, 2, 3, 4, 3
"""An entry's code: the versions that it is in, whether a record tells of it, and above them its key: the number of the
edge label, and in the lowest bit whether the edge leads from the far end to the near one."""

# A pattern's search: the graph, the delta plans' tables, by relation the first of its plans among their numbers, …
GRAPH, PLANS, PLAN_STARTS, PLAN_NUMBERS, STEPS, LEGS, CHECKS, COLUMNS = 0, 1, 2, 3, 4, 5, 6, 7
# … what it has bound, where it stands in each step's list and in each leg, …
VALUES, STACK, SPANS = 8, 9, 10
# … the record that is searched, the next of its relation's plans, the level that goes on next, the version searched,
# rows written, matches gained and lost so far.
RECORD, PLAN, LEVEL, SIGN, FOUND, GAINED, LOST = 11, 12, 13, 14, 15, 16, 17
# … and the relations that must join two vertices by one edge at most, for this search to be used.
PLAIN, PLAIN_COUNT = 18, 19
# While counting, the product of what the steps have counted that depend on the changed edge alone.
PRODUCT = 20
# Which of a plan's orders the changed edge under way is searched in; the pattern's row of the candidate table.
ORDER, TABLE_ROW = 21, 22
# The changed edge under way: its label's number, source and target.
SEED_LABEL, SEED_SOURCE, SEED_TARGET = 23, 24, 25
# What each column of each copy of a match is, and the most copies that a plan has.
COPIES, MOST_COPIES = 26, 27
# After the last record that is searched.
LAST_RECORD = 28
# By step, a block of vertices that it is bound to next: :data:`CHUNK` of them.
CHUNKS = 29
# Of a step whose bindings are counted in pairs, by vertex in how many of them the next step may bind it; the vertices
# that any counts, and how many these are.
PAIRED, PAIRED_VERTICES, PAIRED_COUNT = 30, 31, 32
# What only counting reads of a step.
COUNTED = 33
# What several lists share, hoisted: :data:`HOISTED_ENTRIES` for each step of a plan, and the bytes of an entry.
HOISTED, ENTRY_BYTES = 34, 35
# Opened steps so far.
OPENED = 36
SEARCH_CELLS = 37

PAIRS, DISTINCT_PAIRS = 2, 3
"""A step's bindings are counted in pairs, by what the next step may bind: any two of them, or different ones."""
CHUNK = 64
"""Entries that are looked at together."""

PLAN_CELLS = 16
"""(relation, source, target, the edge's slot, first and after last step, first and after last check, whether source and
target are one, orders from this one on, work expected for each entry of the first step's list, first copy, copies,
whether only edges that lead from source to target are bound, one cell that devices use, last step that counted programs
enumerate or -1)."""
COPY_CELLS = 3
"""(slot, and for an edge that is bound from its other end, the slots of its ends; else -1 twice)."""
STEP_CELLS = 13
"""(kind, slot bound, first and after last leg, first and after last check, bit of the candidate table or -1, how many
twins are counted before it or -1 where its entries must be looked at, after last check but those of twins; parent,
first child and next sibling or -1; of a vertex with children, 1 where they have none, :data:`PAIRS` or
:data:`DISTINCT_PAIRS` where its bindings are counted in pairs, else 0; of a leaf, whether it is what two or three lists
share but for vertices that are bound)."""
LEG_CELLS = 5
"""(relation, slot of the bound near end, whether its pattern edge comes after the plan's own, whether its relation can
join two vertices by several edges, for a step that binds an edge the slot of the far end)."""
CHECK_CELLS = 7
"""(operation, its slots): see :mod:`.delta_plan`."""
BINDING = 64
"""The work of a vertex that is bound: what tables say of work is in such parts."""
COUNTED_CELLS = 6
"""(the next step that may begin its subtree instead, or -1; the place of what its lists share where that is hoisted, or
-1; whether it is a leaf whose vertex must differ from others, and nothing else; when it is hoisted; of a leaf that is
counted without being opened the leg to its parent's vertex, else -1; work expected for each entry of its shortest list,
in :data:`BINDING`)."""
HOISTED_ENTRIES = 1 << 12
"""Vertices that are hoisted at most."""
ONCE, EACH, ABOVE_IT = 0, 1, 2
"""When what a step's lists share is written down: once for all bindings of its parent, each time that it is opened, or
when its parent was opened, whose lists are the same."""
STACK_CELLS = 12
"""(position, end, the leg that is scanned; while counting the sum over the bindings before, and the product of
what the children have counted of this one; the leg whose list is asked first, or -1; 1 where what is scanned is
hoisted; the next vertex of its block, and how many this has; of a step with children, a number that it has since it was
opened; its parent's when it was opened or hoisted last; how many vertices are hoisted, -1 for too many)."""
SPAN_CELLS = 7
"""(position, end, entries that are not in both versions; bitmap or 0, its first vertex and vertices; where the list
begins)."""

VERTEX, EDGE = 0, 1
"""Kinds of steps."""
UNEQUAL, NOT_BOTH_EQUAL, EDGES_DIFFER, ABOVE = 0, 1, 2, 3
"""Operations of checks."""
DONE, FULL, YIELD = 0, 1, 2
"""What a search returns."""
