"""The walk along an AND/OR tree (:mod:`graphdb.plan.counting.tree`), which can stop and go on; all its state lies in
arrays.

A node is *asked* for its count when its ancestors are bound.  It looks whether it has counted that before; if not, it
goes through the candidates that are joined with all its bound neighbours, and for each asks its children, one after
the other, until one has none.  A leaf counts its candidates without going through them.

All kernels share the parameters of :func:`walk`; ``node`` is a row of ``nodes``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.execute.search.set_kernels import LONG, holds, intersect
from graphdb.storage.compile.kernels import entry, kernel, load, store

Ints = NDArray[np.int64]

DONE, YIELD, OVERFLOW = 0, 1, 2
ASK, NEXT, ANSWER = 0, 1, 2
"""What the walk does at its node: ask it for its count, take its next candidate, hand its count to its parent."""

VERTEX, PARENT, CHILD, SIBLING, LISTS, LISTS_END, CONFLICTS, CONFLICTS_END, DEPENDS, DEPENDS_END, SLOTS = range(11)
NODE_COLUMNS = 11
"""A node: pattern vertex; parent, first child, next sibling (or -1); ranges of the tables ``lists``, ``conflicts``
and ``depends``; how many results it can keep (a power of two, or 0)."""
BUFFER, LIST, AT, END, SUM, PRODUCT, CELL, CACHED = range(8)
STACK_COLUMNS = 8
"""A node's state: its buffer; the list it goes through, position and end; the sum so far and the product for the
candidate at hand; where in ``CACHED``, the memory for its results, its count belongs."""
NODE, PHASE, RESULT, PIECE, PIECES = range(5)
STATE_CELLS = 5
LARGEST = float(1 << 62)
STRIDE = 8
"""What a move from node to node costs, in elements of a list."""


@kernel
def cached_cell(node: int, nodes: Ints, depends: Ints, fits: Ints, values: Ints, stack: Ints) -> int:
    """The address of the place for the count that a node is asked for, if it is there; minus that, if not."""
    first, last = nodes[node, DEPENDS], nodes[node, DEPENDS_END]
    mixed = 0
    for d in range(first, last):
        x = values[depends[d, 0]]
        # A vertex that only must differ does not matter where it is no candidate.
        if fits[x] & depends[d, 1] == 0:
            x = -1
        mixed = (mixed ^ x) * -7046029254386353131
    place = (mixed >> 24 ^ mixed >> 44) & nodes[node, SLOTS] - 1
    cell: int = stack[node, CACHED] + place * (last - first + 1) * 8
    same = load(cell, last - first, LONG) != 0
    for d in range(first, last):
        x = values[depends[d, 0]]
        if fits[x] & depends[d, 1] == 0:
            x = -1
        if load(cell, d - first, LONG) != x:
            same = False
            store(cell, d - first, x, LONG)
    if same:
        return cell
    store(cell, last - first, 0, LONG)
    return -cell


@kernel
def span(lists: Ints, k: int, values: Ints) -> tuple[int, int]:
    """Where a list begins and ends among the values behind its address."""
    if lists[k, 0] == 0:
        return 0, lists[k, 2]
    x = values[lists[k, 2]]
    return load(lists[k, 0], x, LONG), load(lists[k, 0], x + 1, LONG)


@kernel
def listed(node: int, nodes: Ints, lists: Ints, values: Ints, stack: Ints, width: int, like: Any) -> int:
    """Find the candidates of a node that are joined with its bound neighbours: the work."""
    first, last = nodes[node, LISTS], nodes[node, LISTS_END]
    shortest, address, n = -1, 0, 0
    for k in range(first, last):
        begin, end = span(lists, k, values)
        if shortest < 0 or end - begin < n:
            shortest, address, n = k, lists[k, 1] + begin * width, end - begin
    work = 2
    for k in range(first, last):
        if k != shortest and n > 0:
            begin, end = span(lists, k, values)
            work += n
            n = intersect(address, n, lists[k, 1] + begin * width, end - begin, stack[node, BUFFER], like)
            address = stack[node, BUFFER]
    stack[node, LIST], stack[node, AT], stack[node, END] = address, 0, n
    return work


@kernel
def leaf_count(node: int, nodes: Ints, conflicts: Ints, fits: Ints, values: Ints, stack: Ints, like: Any) -> int:
    """How many candidates of a leaf differ from the bound vertices that they must differ from."""
    address, n = stack[node, LIST], stack[node, END]
    vertex, first = nodes[node, VERTEX], nodes[node, CONFLICTS]
    count: int = n
    for c in range(first, nodes[node, CONFLICTS_END]):
        x = values[conflicts[c]]
        if fits[x] >> vertex & 1 and holds(address, n, x, like):
            repeated = False
            for other in range(first, c):
                repeated = repeated or values[conflicts[other]] == x
            count -= not repeated
    return count


@kernel
def taken(node: int, x: int, nodes: Ints, conflicts: Ints, values: Ints) -> bool:
    """Whether a vertex that must differ from the node's is bound to ``x``."""
    found = False
    for c in range(nodes[node, CONFLICTS], nodes[node, CONFLICTS_END]):
        found = found or values[conflicts[c]] == x
    return found


@entry("i8[:, :], i8[:, :], i8[:], i8[:, :], i8[:], i8[:], i8[:, :], i8[:], i8[:], i8, i8, i8, T -> i8")
def walk(
    nodes: Ints,
    lists: Ints,
    conflicts: Ints,
    depends: Ints,
    fits: Ints,
    values: Ints,
    stack: Ints,
    rows: Ints,
    state: Ints,
    modulus: int,
    budget: int,
    width: int,
    like: Any,
) -> int:
    """Go on with a walk.

    Parameters
    ----------
    nodes, lists, conflicts, depends
        The tree: int64 [nodes, NODE_COLUMNS], [lists, 3] (offsets' and neighbours' address, pattern vertex; or 0, the
        address of candidates, how many), [conflicts] and [depends, 2] (pattern vertex; where it matters only to some
        that must differ: these, as bits).
    fits
        int64 [data vertices]: which pattern vertices each is a candidate of, as bits
        (:class:`graphdb.plan.candidates.space.CandidateSpace`).
    values
        int64 [pattern vertices]: what they are bound to.
    stack, rows, state
        Int64 [nodes, STACK_COLUMNS], [nodes] (how often each was worked out) and [STATE_CELLS].
    modulus
        Count modulo this, or 0.
    budget
        Elements to go through before yielding.
    width, like
        The bytes and a scalar of the candidates' type, int32 or int64.

    Returns
    -------
    int
        ``DONE`` (the root's count is in ``state[RESULT]``), ``YIELD`` or ``OVERFLOW``.
    """
    node, phase, result = state[NODE], state[PHASE], state[RESULT]
    work = 0
    while work <= budget:
        work += STRIDE
        if phase == ASK:
            if nodes[node, SLOTS] > 0:
                cell = cached_cell(node, nodes, depends, fits, values, stack)
                if cell > 0:
                    result = load(cell, nodes[node, DEPENDS_END] - nodes[node, DEPENDS], LONG) - 1
                    phase = ANSWER
                    continue
                stack[node, CELL] = -cell
            work += listed(node, nodes, lists, values, stack, width, like)
            rows[node] += 1
            if nodes[node, CHILD] < 0:
                result = leaf_count(node, nodes, conflicts, fits, values, stack, like)
                phase = ANSWER
                if nodes[node, SLOTS] > 0:
                    store(stack[node, CELL], nodes[node, DEPENDS_END] - nodes[node, DEPENDS], result + 1, LONG)
                continue
            if state[PIECES] > 1 and nodes[nodes[node, PARENT], PARENT] < 0:
                length = stack[node, END]
                stack[node, AT] = length * state[PIECE] // state[PIECES]
                stack[node, END] = length * (state[PIECE] + 1) // state[PIECES]
            stack[node, SUM] = 0
            phase = NEXT
        elif phase == NEXT:
            at = stack[node, AT]
            if at == stack[node, END]:
                result = stack[node, SUM]
                phase = ANSWER
                if nodes[node, SLOTS] > 0:
                    store(stack[node, CELL], nodes[node, DEPENDS_END] - nodes[node, DEPENDS], result + 1, LONG)
                continue
            stack[node, AT] = at + 1
            x = load(stack[node, LIST], at, like)
            if taken(node, x, nodes, conflicts, values):
                continue
            values[nodes[node, VERTEX]] = x
            stack[node, PRODUCT] = 1
            node = nodes[node, CHILD]
            phase = ASK
        else:
            parent = nodes[node, PARENT]
            if parent < 0:
                state[RESULT] = result
                return DONE
            phase = NEXT
            if result != 0:
                product = stack[parent, PRODUCT]
                if modulus > 0:
                    product = product * result % modulus
                else:
                    if float(product) * float(result) > LARGEST:
                        return OVERFLOW
                    product *= result
                stack[parent, PRODUCT] = product
                if nodes[node, SIBLING] >= 0:
                    node = nodes[node, SIBLING]
                    phase = ASK
                    continue
                total = stack[parent, SUM] + product
                if modulus > 0:
                    total %= modulus
                elif float(total) > LARGEST:
                    return OVERFLOW
                stack[parent, SUM] = total
            node = parent
    state[NODE], state[PHASE], state[RESULT] = node, phase, result
    return YIELD
