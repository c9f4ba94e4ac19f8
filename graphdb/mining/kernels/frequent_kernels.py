"""The loop behind frequent patterns: the exact domains of patterns, one pattern after the other.

The *domain* of a place of a pattern are the data vertices that it takes over all embeddings; the support is the size of
the least domain (Bringmann and Nijssen, "What is frequent in a single graph?", PAKDD 2008).  For each pattern:

1. Candidates are the domains of the pattern that it was made of by one more edge, as bits; for a new vertex those that
   have its label.
2. Candidates without a neighbour among those of the next place go, along a spanning tree up and down again, and along
   the other edges.  Of a tree whose places cannot take the same vertex, what is left are the domains (Yannakakis).
3. Elsewhere each candidate that is in no embedding found so far is searched for one (as in Elseidy et al., "GraMi",
   VLDB 2014); all vertices of an embedding are in the domains of their places, and of those that automorphisms take
   these to.  Once too few candidates are left for the support, the pattern is given up.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.compile.kernels import entry, kernel, lowest

Ints = NDArray[np.int64]
Narrow = NDArray[np.int32]

PATTERN, END, PHASE, STEP, AT, DEPTH, LEFT, USED, BASE, TREE = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
"""Cells of the state: the pattern that goes on next and the one to stop at; what is being done with it; the step of the
join, or the place whose candidates are verified; the word, or the vertex, that it goes on with; how deep the search is
(0: none is under way); candidates that are not excluded yet; numbers written to ``out``, and before; and the number of
join steps."""
CELLS = 10
INIT, JOIN, VERIFY, EMIT = 0, 1, 2, 3
RUNNING, DONE, SPACE = 0, 1, 2
"""What the kernel returns: it goes on, all is done, ``out`` is full."""
MOST = 6
"""Places of a pattern."""


@kernel
def first_at_least(keys: Ints, begin: int, end: int, least: int) -> int:
    """The first place in a sorted run with a key of ``least`` or more."""
    while begin < end:
        middle = (begin + end) >> 1
        if keys[middle] < least:
            begin = middle + 1
        else:
            end = middle
    return begin


@kernel
def has(bits: Ints, vertex: int) -> bool:
    """Whether a bit is set."""
    found: bool = bits[vertex >> 6] >> (vertex & 63) & 1 != 0
    return found


@kernel
def seen_from(edge: Ints, place: int, directed: bool) -> int:
    """The code of an edge as one of its places sees it."""
    code: int = edge[2]
    return code ^ 1 if directed and place == edge[1] else code


@kernel
def join_steps(size: int, count: int, edges: Ints, directed: bool, steps: Ints) -> int:
    """Write the steps of the join, (place, neighbour, code): how many there are.

    ``steps`` is int64 [3 * 10, 3]; its last rows are scratch.
    """
    reached, inside, used = 1, 1, 0
    tree = 0
    total = 0
    # A spanning tree from the first place, its edges as they are found in rows from 20 on: (parent, child, edge).
    while reached < size:
        for e in range(count):
            a, b = edges[e, 0], edges[e, 1]
            ins, other = inside >> a & 1, inside >> b & 1
            if ins != other:
                parent, child = (a, b) if ins == 1 else (b, a)
                steps[20 + tree, 0], steps[20 + tree, 1], steps[20 + tree, 2] = parent, child, e
                inside |= 1 << child
                used |= 1 << e
                tree += 1
                reached += 1
    for e in range(count):
        if used >> e & 1 == 0:
            for end in range(2):
                steps[total, 0], steps[total, 1] = edges[e, end], edges[e, 1 - end]
                steps[total, 2] = seen_from(edges[e], edges[e, end], directed)
                total += 1
    for t in range(tree - 1, -1, -1):
        parent, child, e = steps[20 + t, 0], steps[20 + t, 1], steps[20 + t, 2]
        steps[total, 0], steps[total, 1], steps[total, 2] = parent, child, seen_from(edges[e], parent, directed)
        total += 1
    for t in range(tree):
        parent, child, e = steps[20 + t, 0], steps[20 + t, 1], steps[20 + t, 2]
        steps[total, 0], steps[total, 1], steps[total, 2] = child, parent, seen_from(edges[e], child, directed)
        total += 1
    return total


@kernel
def search_plan(root: int, size: int, count: int, edges: Ints, directed: bool, plan: Ints) -> None:
    """Write the order in which places are bound from ``root`` on: int64 [size, 12].

    A row is (place, number of its edges to places before it, then for each of them that place and the code seen from
    there).  Next comes a place with most such edges.
    """
    inside = 1 << root
    plan[0, 0], plan[0, 1] = root, 0
    for d in range(1, size):
        best, most = -1, 0
        for place in range(size):
            if inside >> place & 1 == 0:
                joined = 0
                for e in range(count):
                    a, b = edges[e, 0], edges[e, 1]
                    if (a == place and inside >> b & 1 == 1) or (b == place and inside >> a & 1 == 1):
                        joined += 1
                if joined > most:
                    best, most = place, joined
        plan[d, 0], plan[d, 1] = best, most
        at = 2
        for e in range(count):
            a, b = edges[e, 0], edges[e, 1]
            other = b if a == best else a
            if (a == best or b == best) and inside >> other & 1 == 1:
                plan[d, at], plan[d, at + 1] = other, seen_from(edges[e], other, directed)
                at += 2
        inside |= 1 << best


@kernel
def apart(size: int, count: int, edges: Ints, candidates: Ints) -> bool:
    """Whether a pattern is a tree whose places cannot take the same vertex: those joined never do."""
    if count != size - 1:
        return False
    for a in range(size):
        for b in range(a + 1, size):
            joined = False
            for e in range(count):
                joined = joined or (edges[e, 0] == a and edges[e, 1] == b) or (edges[e, 0] == b and edges[e, 1] == a)
            if not joined:
                for w in range(candidates.shape[1]):
                    if candidates[a, w] & candidates[b, w] != 0:
                        return False
    return True


@kernel
def enter(offsets: Ints, keys: Ints, n: int, plan: Ints, depth: int, stack: Ints) -> None:
    """Begin with the neighbours that the place at a depth may take: those of its first edge."""
    vertex, code = stack[0, plan[depth, 2]], plan[depth, 3]
    begin = first_at_least(keys, offsets[vertex], offsets[vertex + 1], code * n)
    stack[1, depth] = begin
    stack[2, depth] = first_at_least(keys, begin, offsets[vertex + 1], (code + 1) * n)


@kernel
def search(
    offsets: Ints, keys: Ints, n: int, size: int, plan: Ints, candidates: Ints, stack: Ints, depth: int, budget: int
) -> tuple[int, int]:
    """Search on for an embedding: the depth (``size``: found; 0: there is none) and what is left of the budget.

    ``stack`` is int64 [3, 6]: the vertex of each place, and where each depth's neighbours go on and end.
    """
    while 0 < depth < size:
        if budget <= 0:
            return depth, budget
        if stack[1, depth] == stack[2, depth]:
            depth -= 1
            continue
        key = keys[stack[1, depth]]
        stack[1, depth] += 1
        budget -= 1
        place, vertex = plan[depth, 0], key - plan[depth, 3] * n
        fits = has(candidates[place], vertex)
        for d in range(depth):
            fits = fits and stack[0, plan[d, 0]] != vertex
        for c in range(1, plan[depth, 1]):
            if fits:
                other, wanted = stack[0, plan[depth, 2 + 2 * c]], plan[depth, 3 + 2 * c] * n + vertex
                at = first_at_least(keys, offsets[other], offsets[other + 1], wanted)
                fits = at < offsets[other + 1] and keys[at] == wanted
                budget -= 4
        if fits:
            stack[0, place] = vertex
            depth += 1
            if depth < size:
                enter(offsets, keys, n, plan, depth, stack)
    return depth, budget


@entry(
    "i8[:], i8[:], i8, b1, i8[:, :], i8[:, :, :], i8[:, :], i8[:, :], i8[:, :], i4[:], i8, b1, i8[:], i8[:, :],"
    " i8[:, :], i8[:, :], i8[:, :], i8[:, :], i8[:, :], i8[:], i8[:, :], i8[:, :, :], i4[:], i8 -> i8"
)
def find_domains(
    offsets: Ints,
    keys: Ints,
    n: int,
    directed: bool,
    sizes: Ints,
    edges: Ints,
    orbits: Ints,
    sources: Ints,
    spans: Ints,
    items: Narrow,
    support: int,
    emit: bool,
    state: Ints,
    candidates: Ints,
    domains: Ints,
    counts: Ints,
    steps: Ints,
    plan: Ints,
    stack: Ints,
    supports: Ints,
    examples: Ints,
    written: Ints,
    out: Narrow,
    budget: int,
) -> int:
    """Go on with the patterns ``state[PATTERN] … state[END] - 1``.

    Parameters
    ----------
    offsets, keys
        int64 [n + 1] and [entries]: for each vertex ``code * n + neighbour`` of its edges, sorted.
    sizes, edges, orbits
        int64 [patterns, 2], [patterns, 5, 3] and [patterns, 6]: numbers of places and edges; (place, place, code seen
        from the first); the first place that an automorphism takes each place to.
    sources, spans, items
        int64 [patterns, 6], int64 [lists, 2] and int32: the list of each place's candidates, and where each list
        begins and ends.
    emit
        Whether the domains of frequent patterns are wanted.
    state, candidates, domains, counts, steps, plan, stack
        Scratch of a worker: int64 [CELLS], [6, words], [6, words], [2, 6], [30, 3], [6, 12], [3, 6].
    supports, examples
        int64 [patterns] and [patterns, 6]: get the support (0 where it is too small), and an embedding.
    written
        int64 [patterns, 6, 2]: gets where the domain of each place begins and ends in what was written in all.
    out
        int32: gets domains.
    """
    words = candidates.shape[1]
    while state[PATTERN] < state[END]:
        if budget <= 0:
            return RUNNING
        q = state[PATTERN]
        size, count = sizes[q, 0], sizes[q, 1]
        given_up = False
        if state[PHASE] == INIT:
            for p in range(size):
                for w in range(words):
                    candidates[p, w] = 0
                    domains[p, w] = 0
                begin, end = spans[sources[q, p], 0], spans[sources[q, p], 1]
                for i in range(begin, end):
                    candidates[p, items[i] >> 6] |= 1 << (items[i] & 63)
                counts[0, p], counts[1, p] = end - begin, 0
                given_up = given_up or counts[0, p] < support
                budget -= end - begin + 2 * words
            state[TREE] = join_steps(size, count, edges[q], directed, steps)
            state[PHASE], state[STEP], state[AT] = JOIN, 0, 0
        if state[PHASE] == JOIN and not given_up:
            while state[STEP] < state[TREE] and budget > 0 and not given_up:
                x, y, code = steps[state[STEP], 0], steps[state[STEP], 1], steps[state[STEP], 2]
                w = state[AT]
                while w < words and budget > 0:
                    bits = candidates[x, w]
                    while bits != 0:
                        vertex = (w << 6) + lowest(bits)
                        bits &= bits - 1
                        least, end = code * n, offsets[vertex + 1]
                        at = first_at_least(keys, offsets[vertex], end, least)
                        joined = False
                        while at < end and keys[at] < least + n:
                            budget -= 1
                            if has(candidates[y], keys[at] - least):
                                joined = True
                                break
                            at += 1
                        if not joined:
                            candidates[x, w] &= ~(1 << (vertex & 63))
                            counts[0, x] -= 1
                        budget -= 2
                    budget -= 1
                    w += 1
                state[AT] = w
                if w == words:
                    state[STEP] += 1
                    state[AT] = 0
                given_up = counts[0, x] < support
            if state[STEP] == state[TREE] and not given_up:
                state[PHASE], state[STEP], state[AT], state[DEPTH] = VERIFY, 0, 0, 0
                if apart(size, count, edges[q], candidates):
                    for p in range(size):
                        for w in range(words):
                            domains[p, w] = candidates[p, w]
                        counts[1, p] = counts[0, p]
                    search_plan(0, size, count, edges[q], directed, plan)
                    vertex = 0
                    while not has(candidates[0], vertex):
                        vertex += 1
                    stack[0, 0] = vertex
                    enter(offsets, keys, n, plan, 1, stack)
                    search(offsets, keys, n, size, plan, candidates, stack, 1, 1 << 60)
                    for p in range(size):
                        examples[q, p] = stack[0, p]
                    state[PHASE] = EMIT
                else:  # the domains of places that automorphisms exchange are the same
                    for p in range(size):
                        r = orbits[q, p]
                        if r != p:
                            for w in range(words):
                                candidates[r, w] &= candidates[p, w]
                    for p in range(size):
                        for w in range(words):
                            candidates[p, w] = candidates[orbits[q, p], w]
                    state[LEFT] = -1
        while state[PHASE] == VERIFY and budget > 0 and not given_up:
            p = state[STEP]
            if p == size:
                state[PHASE] = EMIT
                break
            if orbits[q, p] != p:
                state[STEP] += 1
                continue
            if state[LEFT] < 0:
                left = 0
                for w in range(words):
                    bits = candidates[p, w]
                    while bits != 0:
                        left += 1
                        bits &= bits - 1
                state[LEFT] = left
                search_plan(p, size, count, edges[q], directed, plan)
                budget -= words + left
                given_up = left < support
            while state[AT] < n and budget > 0 and not given_up:
                vertex = state[AT]
                if state[DEPTH] == 0:
                    rest = candidates[p, vertex >> 6] & ~domains[p, vertex >> 6]
                    if rest >> (vertex & 63) & 1 == 0:  # to the next candidate of this word, or the next word
                        state[AT] = ((vertex >> 6) << 6) + lowest(rest & ~((1 << (vertex & 63)) - 1))
                        budget -= 1
                        continue
                    stack[0, p] = vertex
                    state[DEPTH] = 1
                    enter(offsets, keys, n, plan, 1, stack)
                    budget -= 8
                depth, budget = search(offsets, keys, n, size, plan, candidates, stack, state[DEPTH], budget)
                state[DEPTH] = depth
                if depth == size:
                    for place in range(size):
                        r, value = orbits[q, place], stack[0, place]
                        if not has(domains[r], value):
                            if counts[1, r] == 0 and r == 0:
                                for each in range(size):
                                    examples[q, each] = stack[0, each]
                            domains[r, value >> 6] |= 1 << (value & 63)
                            counts[1, r] += 1
                elif depth == 0:
                    candidates[p, vertex >> 6] &= ~(1 << (vertex & 63))
                    state[LEFT] -= 1
                    given_up = state[LEFT] < support
                if depth == size or depth == 0:
                    state[DEPTH] = 0
                    state[AT] += 1
            if state[AT] >= n and not given_up:
                for other in range(size):  # what is excluded of a place is so of those exchanged with it
                    if orbits[q, other] == p:
                        for w in range(words):
                            candidates[other, w] = domains[p, w]
                given_up = counts[1, p] < support
                state[STEP] += 1
                state[AT], state[LEFT] = 0, -1
        if state[PHASE] == EMIT and not given_up:
            least, total = counts[1, 0], 0
            for p in range(size):
                if orbits[q, p] == p:
                    least = min(least, counts[1, p])
                    total += counts[1, p]
            if emit:
                if state[USED] + total > len(out):
                    return SPACE
                at = state[USED]
                for p in range(size):
                    if orbits[q, p] == p:
                        written[q, p, 0] = state[BASE] + at
                        for w in range(words):
                            bits = domains[p, w]
                            while bits != 0:
                                out[at] = (w << 6) + lowest(bits)
                                at += 1
                                bits &= bits - 1
                        written[q, p, 1] = state[BASE] + at
                    else:
                        written[q, p, 0], written[q, p, 1] = written[q, orbits[q, p], 0], written[q, orbits[q, p], 1]
                state[USED] = at
                budget -= total
            supports[q] = least
        if given_up:
            supports[q] = 0
        if given_up or state[PHASE] == EMIT:
            state[PATTERN] += 1
            state[PHASE] = INIT
    return DONE


@entry("i8[:], i8[:], i8, b1, i8, i8, i8[:, :], i8[:, :], i4[:], i8, i8[:, :], i8[:, :], i8 -> i8")
def count_embeddings(
    offsets: Ints,
    keys: Ints,
    n: int,
    directed: bool,
    size: int,
    count: int,
    edges: Ints,
    candidates: Ints,
    roots: Narrow,
    root: int,
    plan: Ints,
    stack: Ints,
    budget: int,
) -> int:
    """The number of a pattern's embeddings, found one by one from the candidates of a place; -1: there are too many.

    ``plan`` and ``stack`` are scratch, as above; ``budget`` is how many elements are looked at.
    """
    search_plan(root, size, count, edges, directed, plan)
    total = 0
    for i in range(len(roots)):
        stack[0, root] = roots[i]
        enter(offsets, keys, n, plan, 1, stack)
        depth = 1
        budget -= 4
        while depth > 0:
            depth, budget = search(offsets, keys, n, size, plan, candidates, stack, depth, budget)
            if budget <= 0:
                return -1
            if depth == size:
                total += 1
                depth -= 1
    return total
