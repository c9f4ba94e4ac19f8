"""How the homomorphisms of one connected pattern are counted: trees along their edges, the rest by conditioning.

Cliques are counted over the graph oriented by degree.  A tree is counted in time linear in the edges, as the weight of
its root (:mod:`graphdb.plan.counting.programs`), and what hangs off a cycle becomes weights of the cycle's vertices.
What is left, the cyclic *core*, is counted by loops over few vertices (:mod:`graphdb.plan.counting.nested_loops`).
"""

from __future__ import annotations

from math import factorial

from graphdb.plan.counting.costs import CountingCosts
from graphdb.plan.counting.inclusion_exclusion import Quotient
from graphdb.plan.counting.nested_loops import cheapest_loops
from graphdb.plan.counting.programs import Bundle, Part, Weight

MOST_CORE = 9
"""Cores of more vertices are left to the search, …"""
MOST_DEMANDED_CORE = 12
"""… or of more than these, where counting is demanded whatever it costs, …"""
MOST_LARGE_CORE = 64
"""… or of more than these, where the search is expected to take so long that looking for loops is nothing: a cycle
takes one loop, a grid about one for every third vertex."""
_CLIQUE = 2.0
"""What a neighbour's neighbour costs in a search for cliques, per vertex after the second, in elements scanned."""


def parts_of(quotient: Quotient, costs: CountingCosts, most: int = MOST_CORE) -> tuple[Part, ...] | None:
    """Plan every connected component; None where a core has more than ``most`` vertices.

    Where matches are counted by a vertex, its component comes first.
    """
    near: dict[int, dict[int, Bundle]] = {v: {} for v in range(len(quotient.filters))}
    for a, b, members in quotient.links:
        bundle = Bundle(tuple(sorted(members, key=lambda m: (costs.mean(m), m.key))))
        near[a][b], near[b][a] = bundle, bundle.reversed()
    parts, left = [], set(near)
    while left:
        start = quotient.root if quotient.root in left else min(left)
        component, frontier = {start}, [start]
        while frontier:
            fresh = set(near[frontier.pop()]) - component
            component |= fresh
            frontier += fresh
        left -= component
        part = _part(quotient, {v: near[v] for v in component}, costs, most)
        if part is None:
            return None
        parts.append(part)
    return tuple(parts)


def _part(quotient: Quotient, near: dict[int, dict[int, Bundle]], costs: CountingCosts, most: int) -> Part | None:
    below: dict[tuple[int, int], Weight] = {}

    def weight(v: int, hanging: list[int]) -> Weight:
        messages = [(near[v][u], child(u, v)) for u in hanging]
        messages.sort(key=lambda message: message[0].key)
        return Weight(quotient.filters[v], quotient.loops[v], tuple(messages), quotient.falls[v])

    def child(v: int, parent: int) -> Weight:
        if (v, parent) not in below:
            below[v, parent] = weight(v, [u for u in near[v] if u != parent])
        return below[v, parent]

    # The vertex that matches are counted by stays: it is the tree's root, or bound first.
    root = quotient.root if quotient.root in near else -1
    if root < 0 and (joined := _clique(quotient, near, costs)) is not None:
        size, member = len(near), joined.members[0]
        cost = costs.oriented_work(member) * (size - 2) * _CLIQUE
        return Part(Weight(), (joined,), clique=size, multiple=factorial(size), cost=cost)
    core = {v: set(found) for v, found in near.items()}
    while leaves := [v for v, found in core.items() if len(found) <= 1 and v != root]:
        for leaf in leaves:
            for other in core.pop(leaf):
                if other in core:
                    core[other].discard(leaf)
    if len(core) == (root >= 0):
        trees = []
        for v in sorted(v for v in core or near if quotient.falls[v] == 1):
            tree = weight(v, list(near[v]))
            trees.append((_tree_cost(tree, costs), v, tree))
        cost, v, tree = min(trees, key=lambda found: found[:2])
        return Part(tree, tuple(near[v].values()), cost=cost, origin=v, rooted=v == root)
    if len(core) > most:
        return None
    weights = {v: weight(v, [u for u in near[v] if u not in core]) for v in core}
    bundles = {(a, b): near[a][b] for a in core for b in core[a]}
    multiple = _order_twins(weights, bundles, costs, root)
    outside = sum(_tree_cost(w, costs) for w in dict.fromkeys(weights.values()))
    return cheapest_loops(weights, bundles, costs, root, multiple=multiple, outside=outside)


def _clique(quotient: Quotient, near: dict[int, dict[int, Bundle]], costs: CountingCosts) -> Bundle | None:
    """What joins any two of the vertices, where that is the same undirected relation and nothing else is asked."""
    bundles = {bundle for found in near.values() for bundle in found.values()}
    free = not any(quotient.filters[v] or quotient.loops[v] for v in near)
    if len(near) < 3 or len(bundles) != 1 or not free or any(len(found) < len(near) - 1 for found in near.values()):
        return None
    (joined,) = bundles
    member = joined.members[0]
    return joined if joined.plain and member.direction == "both" and costs.loop_free(member) else None


def _tree_cost(weight: Weight, costs: CountingCosts) -> float:
    """Elements scanned to compute a weight everywhere (or just where a small root leads to)."""
    start = float(costs.vertices)
    for number in weight.filters:
        start = min(start, float(len(costs.filters[number])))
    seen: set[tuple[Bundle, Weight]] = set()

    def below(at: Weight, size: float) -> float:
        total = size
        for message in at.messages:
            if message in seen:
                continue
            seen.add(message)
            bundle, child = message
            keys = costs.keys(bundle.members[0])
            size_here = min(size, keys)
            reached = size_here * costs.mean(bundle.members[0])
            total += reached * len(bundle.members) + below(child, min(reached, float(costs.vertices)))
        return total

    return below(weight, start)


def _order_twins(
    weights: dict[int, Weight], bundles: dict[tuple[int, int], Bundle], costs: CountingCosts, root: int
) -> int:
    """Bind interchangeable, adjacent vertices (not the root) in ascending order: the matches that each stands for."""

    def twins(u: int, v: int) -> bool:
        joined = bundles.get((u, v))
        if joined is None or joined != joined.reversed() or weights[u] != weights[v]:
            return False
        if not any(costs.loop_free(member) for member in joined.members):
            return False
        return all(bundles.get((u, w)) == bundles.get((v, w)) for w in weights if w not in (u, v))

    multiple, left = 1, sorted(weights.keys() - {root})
    groups = []
    while left:
        first = left.pop(0)
        group = [first, *(v for v in left if twins(first, v))]
        left = [v for v in left if v not in group]
        groups.append(group)
    for group in groups:
        multiple *= factorial(len(group))
        for i, u in enumerate(group):
            for v in group[i + 1 :]:
                bundles[u, v] = Bundle(bundles[u, v].members, 1)
                bundles[v, u] = Bundle(bundles[v, u].members, -1)
    return multiple
