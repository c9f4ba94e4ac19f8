"""Matching orders that bind the returned vertices first, where equal rows may be given once and that is cheap.

The steps up to the last returned vertex make the rows.  What follows them need not be enumerated: where duplicates may
be dropped, the search goes back to the row's last step as soon as there is one match (a semi-join); where they are
counted, each row comes with its number of matches.  Any order is right, so the choice is one of cost: the order that
is best for enumerating has perhaps a long prefix with few rows, one that begins with the returned vertices has a short
prefix with many.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from graphdb.pattern.graph import Duplicates, PatternGraph
from graphdb.plan.estimates.cost import Estimates, extend

ROW = 20.0
"""What a row costs once it leaves the search, in elements scanned: it is written, read, and grouped by SQL."""
_WINDOW = 64.0
"""Values that a test for existence looks at before it knows, at least."""


def output_vertices(pattern: PatternGraph) -> frozenset[int]:
    """The vertices that the outputs name, the ends of output edges among them."""
    found = {v for v, vertex in enumerate(pattern.vertices) if vertex.name in pattern.outputs}
    for edge in pattern.edges:
        if edge.name in pattern.outputs:
            found |= {edge.source, edge.target}
    return frozenset(found)


def rows_first(estimates: Estimates, order: tuple[int, ...], pattern: PatternGraph) -> tuple[int, ...]:
    """Return ``order``, or one that binds the outputs early, whichever is expected to cost less."""
    outputs = output_vertices(pattern)
    orders = [order, *_early(estimates, outputs)]
    costs = [search_cost(estimates, found, outputs, pattern.duplicates) for found in orders]
    return orders[costs.index(min(costs))]


def search_cost(estimates: Estimates, order: tuple[int, ...], outputs: frozenset[int], duplicates: Duplicates) -> float:
    """Elements that a search in this order is expected to scan, and what its rows cost after it."""
    needed = max((order.index(v) + 1 for v in outputs), default=len(order))
    bound, rows, cost = 0, 1.0, 0.0
    suffix = made = 0.0
    for i, v in enumerate(order):
        rows, work = extend(estimates, bound, rows, v)
        bound |= 1 << v
        if i < needed:
            cost, made = cost + work + rows, rows
        else:
            suffix += work + rows
    if duplicates == "drop" and needed < len(order):
        # The share of the suffix that is scanned before the first match, but never nothing.
        matches = max(rows / max(made, 1e-9), 1.0)
        suffix = min(suffix, suffix / matches + made * (len(order) - needed) * _WINDOW)
    return cost + suffix + min(made, rows) * ROW


def _early(estimates: Estimates, outputs: frozenset[int]) -> Iterator[tuple[int, ...]]:
    """One order for each output to begin with: always on to the next output on the shortest way."""
    for start in sorted(outputs):
        order, bound, rows = [start], 1 << start, estimates.sizes[start]
        while len(order) < len(estimates.sizes):
            wanted = outputs - set(order)
            near = {u for v in order for u, _, _ in estimates.links[v] if not bound >> u & 1}
            far = _distances(estimates, wanted, bound)
            near = near & far.keys() if wanted and near & far.keys() else set() if wanted else near
            # Another component begins at its smallest vertex, those with an output first.
            free = near or wanted or set(range(len(estimates.sizes))) - set(order)
            options = [(far.get(u, 0), *extend(estimates, bound, rows, u), u) for u in free]
            _, rows, _, v = min(options)
            order.append(v)
            bound |= 1 << v
        yield tuple(order)


def _distances(estimates: Estimates, sources: Collection[int], bound: int) -> dict[int, int]:
    """How many edges each unbound vertex is from the nearest source."""
    found = dict.fromkeys(sources, 0)
    frontier = list(sources)
    for v in frontier:  # which grows while it is scanned
        for u, _, _ in estimates.links[v]:
            if u not in found and not bound >> u & 1:
                found[u] = found[v] + 1
                frontier.append(u)
    return found
