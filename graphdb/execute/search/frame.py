"""The frame of the CPU's search, one array of int64 that points to all others; its cells are numbered here.

So is what stands in the rows of the tables that it points to; the program's are written by :mod:`graphdb.plan.lower`.
"""

from graphdb.plan import physical

# The frame: addresses of the program's tables, its numbers and from how many bindings on lists are prefetched, …
STEPS, LISTS, CHECKS, UNCERTAIN, PARTITIONS, OUTPUTS, SHARES = 0, 1, 2, 3, 4, 5, 6
RESOURCES, TYPE_LABEL, LAST, COLUMNS, FETCHED = 7, 8, 9, 10, 11
# … of the worker's arrays, …
VALUES, STACK, ROWS, SPANS, BITS, SHARED = 12, 13, 14, 15, 16, 17
# … and its state: the step that goes on next, matches found since the block was emptied, work done so far, and which
# of how many pieces of the second step's list are wanted; …
LEVEL, MATCHES, WORK, PIECE, PIECES = 18, 19, 20, 21, 22
# … and for rows that stand for several matches: the last step that makes them, the address of the rows' numbers of
# matches (0: one match does), and the matches of the row under way.
ROW_LEVEL, NUMBERS, TOTAL = 23, 24, 25
FRAME_CELLS = 26

STEP_BYTES, LIST_BYTES = physical.STEP_COLUMNS * 8, physical.LIST_COLUMNS * 8
CHECK_BYTES, SHARE_BYTES = physical.CHECK_COLUMNS * 8, physical.SHARE_COLUMNS * 8
"""Rows of the program's tables (:mod:`graphdb.plan.physical`)."""
STACK_CELLS = 9
"""Per step: the window's address, position and end; its buffer; the list's address, position and end; for a scan its
length, for a join which of its lists it scans; where in the list it began."""
STACK_BYTES = STACK_CELLS * 8
SPAN_CELLS = 2
"""Per list: the address and length of what it is now."""
SPAN_BYTES = SPAN_CELLS * 8
BITS_CELLS = 4
"""Per list stored as bits: their address, the vertex whose neighbours they are, the vertex asked for, and how much."""
BITS_BYTES = BITS_CELLS * 8
SHARED_CELLS = 6
"""Per shared intersection: address, length, the value of its last slot, its version, its parent's, its buffer."""
SHARED_BYTES = SHARED_CELLS * 8

SCAN, JOIN, EDGES = physical.SCAN, physical.JOIN, physical.EDGES
