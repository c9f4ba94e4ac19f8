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
# The batch: its records, how many there are and may be, and by relation the first of the list of those that changed.
RECORDS, RECORD_COUNT, RECORD_CAPACITY, HEADS = 17, 18, 19, 20
# By relation, how many entries more than pairs of vertices it has.
PARALLEL = 21
# By relation, the vertices that have consecutive rows; a hash table of the rows of others, its places less one; rows in
# use and allocated.
RANGES, LATE, LATE_MASK, ROWS_USED, ROW_CAPACITY = 22, 23, 24, 25, 26
GRAPH_CELLS = 27

ROW_CELLS = 8
ROW_BYTES = ROW_CELLS * 4
"""A list: (where it begins, in units; entries; entries that it has room for; entries in the old version, in the new
one, in both), int32; two cells are free, so that no list's lie in two cache lines."""
RANGE_CELLS = 3
"""(first vertex, vertices, the first one's row)."""
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
RECORD_CELLS = 6
"""A list's entry that the batch touched: (relation, near end, far end, key, versions that it is in, next record)."""

OLD, NEW, BOTH, TOUCHED, KEY_SHIFT = 1, 2, 3, 4, 3
"""An entry's code: the versions that it is in, whether a record tells of it, and above them its key: the number of the
edge label, and in the lowest bit whether the edge leads from the far end to the near one."""

# A pattern's search: the graph, the delta plans' tables, …
GRAPH, PLANS, PLAN_COUNT, STEPS, LEGS, CHECKS, OUTPUTS, COLUMNS = 0, 1, 2, 3, 4, 5, 6, 7
# … what it has bound, where it stands in each step's list and in each leg, …
VALUES, STACK, SPANS = 8, 9, 10
# … the plan, record and level that go on next, the version searched, rows written, matches gained and lost so far.
PLAN, RECORD, LEVEL, SIGN, FOUND, GAINED, LOST = 11, 12, 13, 14, 15, 16, 17
# … and the relations that must join two vertices by one edge at most, for this search to be used.
PLAIN, PLAIN_COUNT = 18, 19
# While counting, the product of what the steps have counted that depend on the changed edge alone.
PRODUCT = 20
# Which of a plan's orders the changed edge under way is searched in.
ORDER = 21
SEARCH_CELLS = 22

PLAN_CELLS = 12
"""(relation, source, target, the edge's slot, first and after last step, first and after last check, row of the
candidate table, whether source and target are one, orders from this one on, work expected for each entry of the first
step's list)."""
STEP_CELLS = 12
"""(kind, slot bound, first and after last leg, first and after last check, bit of the candidate table or -1, how many
twins are counted before it or -1 where its entries must be looked at, after last check but those of twins)."""
LEG_CELLS = 5
"""(relation, slot of the bound near end, whether its pattern edge comes after the plan's own, whether its relation can
join two vertices by several edges, for a step that binds an edge the slot of the far end)."""
CHECK_CELLS = 7
"""(operation, its slots): see :mod:`.delta_plan`."""
STACK_CELLS = 5
"""(position, end, the leg that is gone through; while counting the sum over the bindings before, and the product of
what the children have counted of this one)."""
SPAN_CELLS = 3
"""(position, end, entries that may not be bound)."""

VERTEX, EDGE = 0, 1
"""Kinds of steps."""
UNEQUAL, NOT_BOTH_EQUAL, EDGES_DIFFER = 0, 1, 2
"""Operations of checks."""
DONE, FULL, YIELD = 0, 1, 2
"""What a search returns."""
