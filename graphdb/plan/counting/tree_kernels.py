"""The loops behind :mod:`graphdb.plan.counting.tree`: AND/OR trees of a pattern, built and compared by cost.

Sets of pattern vertices are bits of an int64.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.compile.kernels import entry, kernel, lowest

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

RULES = 4
"""Ways to choose the next vertex: fewest rows; smallest parts left, then fewest rows; both weighed; most neighbours."""
CLOSING = 0.5
"""Friends of friends are friends: all but the most selective edge of a vertex count with this power of their shares."""
_COMPARE = 0.25
"""How much a vertex in the largest part left weighs against a factor of e in rows, where both are weighed."""


@kernel
def part_of(start: int, within: int, near: Ints) -> int:
    """The vertices of ``within`` connected with one of them."""
    part = frontier = 1 << start
    while frontier != 0:
        v = lowest(frontier)
        frontier &= frontier - 1
        fresh = near[v] & within & ~part
        part |= fresh
        frontier |= fresh
    return part


@kernel
def size_of(bits: int) -> int:
    """How many bits are set."""
    count = 0
    while bits != 0:
        bits &= bits - 1
        count += 1
    return count


@kernel
def rows_of(v: int, path: int, sizes: Floats, shares: Floats, links: Ints) -> tuple[float, float, int]:
    """(bindings of ``v`` for each binding of ``path``, length of the shortest list, lists) expected."""
    product = least = 1.0
    lists = 0
    left = links[v] & path
    while left != 0:
        u = lowest(left)
        left &= left - 1
        product *= shares[u, v]
        least = min(least, shares[u, v])
        lists += 1
    shortest = sizes[v] * least
    return shortest * (product / max(least, 1e-300)) ** CLOSING, shortest, lists


@kernel
def choose(part: int, path: int, rule: int, sizes: Floats, shares: Floats, links: Ints, near: Ints) -> int:
    """The vertex of ``part`` to bind next, joined with ``path`` where one is."""
    best, best_score, best_rows = -1, 0.0, 0.0
    options = 0
    left = part
    while left != 0:
        v = lowest(left)
        left &= left - 1
        if links[v] & path != 0:
            options |= 1 << v
    if options == 0:
        options = part
    while options != 0:
        v = lowest(options)
        options &= options - 1
        rows, _, _ = rows_of(v, path, sizes, shares, links)
        score = 0.0
        if rule == 1 or rule == 2:
            rest, largest = part & ~(1 << v), 0
            while rest != 0:
                piece = part_of(lowest(rest), rest, near)
                rest &= ~piece
                largest = max(largest, size_of(piece))
            score = largest if rule == 1 else largest * _COMPARE + np.log(rows + 1e-9)
        elif rule == 3:
            score = -size_of(near[v] & part)
        if best < 0 or score < best_score or (score == best_score and rows < best_rows):
            best, best_score, best_rows = v, score, rows
    return best


@kernel
def grow(
    root: int,
    rule: int,
    caching: bool,
    sizes: Floats,
    shares: Floats,
    links: Ints,
    near: Ints,
    found: Ints,
    figures: Floats,
    pending: Ints,
    entries: Floats,
    limit: float,
) -> float:
    """Grow one tree (a forest for parts that nothing joins): the work expected, or more than ``limit`` given up at.

    Parameters
    ----------
    root, rule
        The first vertex (of its part), and how the others are chosen.
    caching
        Whether parts that nothing joins are searched apart, and results cached by what they depend on: a tree; if not,
        it is a plain matching order.
    sizes, shares, links
        Candidates per vertex; the share of pairs of them that are joined [vertices, vertices]; the joined vertices.
    near
        Those that are joined or must differ.
    found
        Int64 [vertices, 4]: in the order of a walk, (vertex, position of its parent or -1, what its subtree depends
        on, its subtree), the last two as bits.
    figures
        Float64 [vertices, 2]: times that the vertex is asked for, and times that it is worked out.
    pending, entries
        Int64 [vertices + 1, 3] and float64 [vertices + 1]: scratch.
    """
    count = len(sizes)
    cost: float = 0.0
    depth, n = 0, 0
    everything = (1 << count) - 1
    left = everything
    while left != 0:
        part = part_of(lowest(left), left, near) if caching else left
        left &= ~part
        pending[depth] = part, -1, 0
        entries[depth] = 1.0
        depth += 1
    while depth > 0:
        depth -= 1
        part, parent, path = pending[depth]
        asked = entries[depth]
        v = root if path == 0 and part >> root & 1 else choose(part, path, rule, sizes, shares, links, near)
        needs, rest = 0, part
        while rest != 0:
            u = lowest(rest)
            rest &= rest - 1
            needs |= near[u]
        needs &= path
        worked = asked
        if caching:
            ways, rest = 1.0, needs
            while rest != 0:
                u = lowest(rest)
                rest &= rest - 1
                ways *= sizes[u]
            worked = min(asked, ways)
        rows, shortest, lists = rows_of(v, path, sizes, shares, links)
        found[n] = v, parent, needs, part
        figures[n] = asked, worked
        cost += asked + worked * (2.0 + (shortest * (lists - 1) if lists > 1 else 0.0))
        rest = part & ~(1 << v)
        if rest != 0 or not caching:
            cost += worked * rows
        if cost > limit:
            return cost
        while rest != 0:
            piece = part_of(lowest(rest), rest, near) if caching else rest
            rest &= ~piece
            pending[depth] = piece, n, path | 1 << v
            entries[depth] = worked * rows
            depth += 1
        n += 1
    return cost


@entry(
    "i8[:], b1, f8, f8[:], f8[:, :], i8[:], i8[:], f8[:], i8[:, :], f8[:, :], i8[:, :], f8[:, :], i8[:, :], f8[:] -> b1"
)
def try_roots(
    roots: Ints,
    caching: bool,
    attempt: float,
    sizes: Floats,
    shares: Floats,
    links: Ints,
    near: Ints,
    state: Floats,
    best_found: Ints,
    best_figures: Floats,
    found: Ints,
    figures: Floats,
    pending: Ints,
    entries: Floats,
) -> bool:
    """Grow trees by every rule from some roots while an attempt costs less than the best is expected to cost still.

    ``state`` is float64 [2], the work of the best tree so far (at first infinite) and what the attempts have cost,
    ``best_found`` and ``best_figures`` that tree; the others are scratch, as :func:`grow` takes it.  Returns whether it
    has been enough.
    """
    for root in roots:
        for rule in range(RULES):
            cost = grow(root, rule, caching, sizes, shares, links, near, found, figures, pending, entries, state[0])
            if cost < state[0]:
                state[0] = cost
                for i in range(len(found)):
                    for cell in range(4):
                        best_found[i, cell] = found[i, cell]
                    best_figures[i, 0], best_figures[i, 1] = figures[i, 0], figures[i, 1]
            state[1] += attempt
            if state[1] > state[0]:
                return True
    return False
