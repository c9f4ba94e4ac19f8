"""The matching order: the cheapest connected order, found exactly for small patterns and by a beam beyond.

A component of the pattern is never left before it is done, since a Cartesian product multiplies whatever follows it.
Components are put in the order that multiplies least.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from math import inf

from graphdb.plan.estimates.cost import Estimates, extend

EXACT = 10
"""Components of up to so many vertices are searched exactly, over all connected subsets."""
BEAM = 12
"""Partial orders that are gone on with in larger components, …"""
BEAM_WORK = 4096
"""… fewer in very large ones, where each has so many ways to go on: planning stays within milliseconds."""

_Partial = tuple[float, float, tuple[int, ...], int, int]
"""(work, rows, order, the vertices bound and those near them as bit sets)."""
_Begun = tuple[float, tuple[int, ...], float, int, int]
"""(work, order, rows, and the same sets)."""


def matching_order(estimates: Estimates) -> tuple[int, ...]:
    """Return the pattern vertices in matching order."""
    planned = [_component_order(estimates, component) for component in _components(estimates)]
    # A before B costs work(A) + rows(A) work(B): compare, and it is (rows - 1) / work that decides.
    planned.sort(key=lambda plan: ((plan[1] - 1.0) / max(plan[0], 1e-9), plan[2]))
    return tuple(vertex for _, _, order in planned for vertex in order)


def _components(estimates: Estimates) -> list[list[int]]:
    """The pattern's connected components, each sorted."""
    left = set(range(len(estimates.sizes)))
    components = []
    while left:
        start = min(left)
        reached, frontier = {start}, [start]
        while frontier:
            for other, _, _ in estimates.links[frontier.pop()]:
                if other not in reached:
                    reached.add(other)
                    frontier.append(other)
        left -= reached
        components.append(sorted(reached))
    return components


def _component_order(estimates: Estimates, component: list[int]) -> tuple[float, float, tuple[int, ...]]:
    """(work, rows, order) of one component.

    The cheapest order that was begun goes on first, and no set of vertices is gone on from twice (Dijkstra): sets that
    cost more than the whole are never looked at.
    """
    if len(component) > EXACT:
        return min(_beam(estimates, component), _greedy(estimates, component))
    joined, pending = near(estimates, component), _pending(estimates, component)
    hanging, whole = sum(1 << v for v in pending), sum(1 << v for v in component)
    begun: list[_Begun] = [(estimates.sizes[v], (v,), estimates.sizes[v], 1 << v, joined[v]) for v in component]
    heapify(begun)
    least: dict[int, float] = {}
    """Of sets of vertices, the cheapest order so far; -1 where that was gone on from."""
    while True:
        work, order, rows, bound, reached = heappop(begun)
        if bound == whole:
            return work, rows, order
        if least.get(bound) == -1.0:
            continue
        least[bound] = -1.0
        left = reached & ~bound
        if (left & hanging).bit_count() > 1:
            first = next(v for v in pending if left >> v & 1)
            left = left & ~hanging | 1 << first
        while left:
            bit = left & -left
            left ^= bit
            key = bound | bit
            known = least.get(key, inf)
            if known > work:
                v = bit.bit_length() - 1
                new_rows, step = extend(estimates, bound, rows, v)
                cost = work + step + new_rows
                if cost <= known:
                    least[key] = cost
                    heappush(begun, (cost, (*order, v), new_rows, key, reached | joined[v]))


def _beam(estimates: Estimates, component: list[int]) -> tuple[float, float, tuple[int, ...]]:
    """Build orders vertex by vertex, and go on with the cheapest of each length; equal sets of vertices count once."""
    width = max(4, min(BEAM, BEAM_WORK // len(component) ** 2))
    joined = near(estimates, component)
    beam: list[_Partial] = [(estimates.sizes[v], estimates.sizes[v], (v,), 1 << v, joined[v]) for v in component]
    for _ in range(len(component) - 1):
        longer: dict[int, _Partial] = {}
        for work, rows, order, bound, reached in beam:
            left = reached & ~bound
            while left:
                bit = left & -left
                left ^= bit
                v = bit.bit_length() - 1
                new_rows, step = extend(estimates, bound, rows, v)
                key = bound | bit
                if key not in longer or work + step + new_rows < longer[key][0]:
                    longer[key] = (work + step + new_rows, new_rows, (*order, v), key, reached | joined[v])
        beam = sorted(longer.values(), key=lambda found: found[:3])[:width]
    return beam[0][:3]


def near(estimates: Estimates, vertices: Iterable[int]) -> dict[int, int]:
    """What each vertex is joined to, as a bit set."""
    found = {}
    for v in vertices:
        found[v] = 0
        for other, _, _ in estimates.links[v]:
            found[v] |= 1 << other
    return found


def _pending(estimates: Estimates, component: list[int]) -> list[int]:
    """The vertices that hang on one other, in the order in which to bind them.

    Such a vertex multiplies rows by f, at a cost of c for each, whatever else is bound, and nothing depends on it: of
    two the one with the lesser (f - 1) / c comes first in some cheapest order (Ibaraki and Kameda 1984).
    """
    found = []
    for v, others in near(estimates, component).items() if len(component) > 2 else ():
        if others.bit_count() == 1:
            rows, work = extend(estimates, others, 1.0, v)
            found.append(((rows - 1.0) / max(work + rows, 1e-9), v))
    return [v for _, v in sorted(found)]


def _greedy(estimates: Estimates, component: list[int]) -> tuple[float, float, tuple[int, ...]]:
    """Start at the smallest candidate set, and go on where the fewest rows come out."""
    start = min(component, key=lambda v: (estimates.sizes[v], v))
    work = rows = estimates.sizes[start]
    order, bound = [start], 1 << start
    while len(order) < len(component):
        near = {other for u in order for other, _, _ in estimates.links[u] if not bound >> other & 1}
        options = [(*extend(estimates, bound, rows, v), v) for v in sorted(near)]
        rows, step, v = min(options)
        work += step + rows
        order.append(v)
        bound |= 1 << v
    return work, rows, tuple(order)
