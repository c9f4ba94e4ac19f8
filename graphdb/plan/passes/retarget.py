"""The plan of a pattern with other candidates: where they are as few as before, what was decided for those holds.

What a statement asks of one key it asks of the next.  The order, the lists of each step and the checks follow from how
many candidates there are, not from which, as long as nothing was looked at that they lead to: plans that are expected
to take long are made anew, which random walks correct.  Where more than a handful were looked at
(:mod:`graphdb.plan.estimates.ends`), as many others are taken to be like them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from graphdb.pattern.graph import PatternGraph
from graphdb.plan.counting.plan import CountingPlan
from graphdb.plan.lower import rewritten
from graphdb.plan.ordering.sample import WORTH
from graphdb.plan.passes.pipeline import make_plan
from graphdb.plan.passes.steps import SMALL
from graphdb.plan.physical import Origin, PhysicalPlan, Step, VertexStep
from graphdb.storage.graph.data_graph import DataGraph


def retargeted(plan: PhysicalPlan, pattern: PatternGraph, graph: DataGraph) -> PhysicalPlan | None:
    """Return a plan of a pattern by that of one which differs in the candidates alone; None where it is made anew."""
    origin = plan.origin
    if origin is None or origin.graph is not graph or origin.pattern != pattern or not _is_plain(plan):
        return None
    changed: dict[int, NDArray[np.int64]] = {}
    for number, (before, now) in enumerate(zip(origin.pattern.vertices, pattern.vertices, strict=True)):
        if before.candidates is now.candidates:
            continue
        if before.candidates is None or now.candidates is None:
            return None
        if len(before.candidates) != len(now.candidates) or len(now.candidates) > SMALL:
            return None
        changed[number] = now.candidates
    steps, listed = list[Step](), False
    for step in plan.steps:
        if isinstance(step, VertexStep) and (ids := changed.pop(step.vertex, None)) is not None:
            if step.scan is not None:
                step = replace(step, scan=np.ascontiguousarray(ids, np.int64))
            elif step.constants is not None:
                step, listed = replace(step, constants=ids.astype(graph.dtype)), True
            else:
                return None
        steps.append(step)
    if changed:
        return None
    return replace(
        plan,
        steps=tuple(steps),
        conditions=tuple(vertex.condition for vertex in pattern.vertices),
        text=rewritten(plan, pattern, graph, tuple(steps)) if listed else plan.text,  # scans stand in no table
        otherwise=None if plan.otherwise is None else cache(partial(_sums, pattern, graph)),
        origin=Origin(pattern, graph, origin.counting),
    )


def _is_plain(plan: PhysicalPlan) -> bool:
    """Whether a plan is a search for all matches, of which no step was decided by what the candidates lead to."""
    if plan.cost >= WORTH or plan.automorphisms > 1 or plan.known or plan.fulfilled or plan.subsets:
        return False
    counts = plan.counting or plan.clique or plan.twins or plan.tree or plan.weighed
    if counts or plan.by_label or plan.bundled or plan.scan or plan.functional:
        return False
    lists = (near for step in plan.steps if isinstance(step, VertexStep) for near in step.neighbours)
    return all(near.relation.pair is None for near in lists)


def _sums(pattern: PatternGraph, graph: DataGraph) -> CountingPlan | None:
    """Plan sums that count the matches, as :attr:`.PhysicalPlan.otherwise` does."""
    plan = make_plan(pattern, graph)
    return plan.counting if plan.otherwise is None else plan.otherwise()
