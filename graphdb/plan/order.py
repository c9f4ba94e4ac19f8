"""The matching order: the cheapest connected order, found exactly for small patterns and by a beam beyond.

A component of the pattern is never left before it is done, since a Cartesian product multiplies whatever follows it.
Components are put in the order that multiplies least.
"""

from __future__ import annotations

from graphdb.plan.cost import Estimates, extend

EXACT = 10
"""Components of up to so many vertices are searched exactly, over all connected subsets."""
BEAM = 12
"""Partial orders that are gone on with in larger components, …"""
BEAM_WORK = 4096
"""… fewer in very large ones, where each has so many ways to go on: planning stays within milliseconds."""

_Partial = tuple[float, float, tuple[int, ...], int, int]
"""(work, rows, order, the vertices bound and those near them as bit sets)."""


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
    """(work, rows, order) of one component."""
    if len(component) > EXACT:
        return min(_beam(estimates, component), _greedy(estimates, component))
    pending = _pending(estimates, component)
    best: dict[int, tuple[float, float, tuple[int, ...]]] = {
        1 << v: (estimates.sizes[v], estimates.sizes[v], (v,)) for v in component
    }
    for _ in range(len(component) - 1):
        longer: dict[int, tuple[float, float, tuple[int, ...]]] = {}
        for bound, (work, rows, order) in best.items():
            near = {other for u in order for other, _, _ in estimates.links[u] if not bound >> other & 1}
            for v in near - set(sorted(near & pending.keys(), key=pending.__getitem__)[1:]):
                new_rows, new_work = extend(estimates, bound, rows, v)
                found = (work + new_work + new_rows, new_rows, (*order, v))
                key = bound | 1 << v
                if key not in longer or (found[0], found[2]) < (longer[key][0], longer[key][2]):
                    longer[key] = found
        best = longer
    return next(iter(best.values()))


def _beam(estimates: Estimates, component: list[int]) -> tuple[float, float, tuple[int, ...]]:
    """Build orders vertex by vertex, and go on with the cheapest of each length; equal sets of vertices count once."""
    width = max(4, min(BEAM, BEAM_WORK // len(component) ** 2))
    near = {v: sum(1 << u for u in {other for other, _, _ in estimates.links[v]}) for v in component}
    kept: list[_Partial] = [(estimates.sizes[v], estimates.sizes[v], (v,), 1 << v, near[v]) for v in component]
    for _ in range(len(component) - 1):
        longer: dict[int, _Partial] = {}
        for work, rows, order, bound, reached in kept:
            left = reached & ~bound
            while left:
                bit = left & -left
                left ^= bit
                v = bit.bit_length() - 1
                new_rows, step = extend(estimates, bound, rows, v)
                key = bound | bit
                if key not in longer or work + step + new_rows < longer[key][0]:
                    longer[key] = (work + step + new_rows, new_rows, (*order, v), key, reached | near[v])
        kept = sorted(longer.values(), key=lambda found: found[:3])[:width]
    return kept[0][:3]


def _pending(estimates: Estimates, component: list[int]) -> dict[int, tuple[float, int]]:
    """The vertices that hang on one other, with what decides which of them to bind first: the least.

    Such a vertex multiplies rows by f, at a cost of c for each, whatever else is bound, and nothing depends on it: of
    two the one with the lesser (f - 1) / c comes first in some cheapest order (Ibaraki and Kameda 1984).
    """
    found = {}
    for v in component if len(component) > 2 else ():
        near = {other for other, _, _ in estimates.links[v]}
        if len(near) == 1:
            rows, work = extend(estimates, 1 << next(iter(near)), 1.0, v)
            found[v] = ((rows - 1.0) / max(work + rows, 1e-9), v)
    return found


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
