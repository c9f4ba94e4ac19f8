"""The plans of a pattern that bind its vertices in other orders: for who pays for more than what is scanned.

The order that scans least is no longer the best one where most lists are read from a slower memory than others: one
that scans more may read the lists that do not fit once, one behind the other, and find only those that do.
"""

from __future__ import annotations

from collections.abc import Iterator

from graphdb.plan.estimates.cost import Estimates, estimate
from graphdb.plan.ordering.order import near
from graphdb.plan.ordering.sample import Forecast, modelled
from graphdb.plan.passes.pipeline import make_plan
from graphdb.plan.physical import PhysicalPlan, VertexStep

LARGEST = 6
"""Vertices of a pattern whose connected orders are all looked at: at most 720."""
MOST = 24
"""Orders that are planned, at most: those that are expected to scan least."""


def in_all_orders(plan: PhysicalPlan) -> list[PhysicalPlan]:
    """Return plans for the matches of a plan: the first binds the vertices in its order, others in other orders.

    All cost what the statistics say, whatever a sample said of the plan's own order.  Empty where the pattern is not
    known, has more than :data:`LARGEST` vertices or several components, or a row stands for several matches.  Builds
    the partitions that they read, where they are missing.
    """
    origin = plan.origin
    if origin is None or plan.duplicates != "keep" or not 2 < len(origin.pattern.vertices) <= LARGEST:
        return []
    pattern, graph = origin.pattern, origin.graph
    own = tuple(step.vertex for step in plan.steps if isinstance(step, VertexStep))
    estimates = estimate(pattern, graph)
    cheapest = sorted(_connected(estimates), key=lambda forecast: forecast.cost)[:MOST]
    orders = [own, *(forecast.order for forecast in cheapest if forecast.order != own)] if cheapest else []
    plans = [make_plan(pattern, graph, counting="never", order=order) for order in orders]
    alike = [each for each in plans if each.automorphisms == plan.automorphisms]
    return alike if alike[:1] == plans[:1] else []


def _connected(estimates: Estimates) -> Iterator[Forecast]:
    """Orders in which every vertex but the first is joined to an earlier one; of those that do the same, the first."""
    vertices, known = range(len(estimates.sizes)), set[tuple[object, ...]]()
    joined = near(estimates, vertices)

    def orders(bound: tuple[int, ...], reached: int) -> Iterator[tuple[int, ...]]:
        if len(bound) == len(vertices):
            yield bound
        for v in vertices:
            if v not in bound and (reached >> v & 1 or not bound):
                yield from orders((*bound, v), reached | joined[v])

    for order in orders((), 0):
        forecast = modelled(estimates, order)
        steps = tuple(round(each, 3) for each in (*forecast.rows, *forecast.work))
        if steps not in known:
            known.add(steps)
            yield forecast
