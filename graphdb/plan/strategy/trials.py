"""Counts in turns: what an estimate that is wrong by a thousand times costs.

The way that is expected to be done first gets as long as the next best is expected to take, with all that has to be
made ready for that.  Who is not done by then is stopped, and the next one gets twice what was spent so far; and so on,
in turns.  Whose progress says earlier that the rest takes longer than the next best does is stopped at once.  So all of
them together spend a few times what the fastest needs, whatever was expected: searching in an unknown environment by
doubling (Kao, Reif, Tate, Information and Computation 1996).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import cycle
from typing import TypeVar

from graphdb.plan.executor import Control, Overran
from graphdb.plan.strategy.ski_rental import LONGER, ExpectedCost, StrategyTimings

PATIENCE = 1.5
"""A way gets so many times what it is expected to take, at least; and the rest of its work may take so many times what
the next best is expected to take."""
LEAST = 5e-3
"""Seconds that it gets in any case: to stop and to begin again takes about one."""

Counted = TypeVar("Counted")


def in_turns(
    costs: Mapping[str, ExpectedCost],
    chosen: str,
    timings: StrategyTimings,
    control: Control,
    run: Callable[[str], Counted],
) -> tuple[str, Counted]:
    """Count by the ``chosen`` way, and where that takes too long by others; who was done, and what it counted.

    Parameters
    ----------
    costs
        What each way is expected to take.
    timings
        What they were seen to take; learns which ways were stopped.
    run
        Counts by a way, under ``control``; what it raises is raised.
    """
    expected = {way: timings.expected(way, cost) + cost.setup for way, cost in costs.items()}
    others = sorted((way for way in costs if way != chosen and expected[way] < math.inf), key=expected.__getitem__)
    if not others:
        return chosen, run(chosen)
    spent = expected[others[0]]
    for way in cycle((chosen, *others)):
        time = max(spent, PATIENCE * expected[way], LEAST)
        if math.isinf(time):
            return way, run(way)
        best = min(timings.expected(other, costs[other]) + costs[other].setup for other in expected if other != way)
        before, control.disturbed = control.disturbed, False
        try:
            with control.at_most(time, PATIENCE * best):
                return way, run(way)
        except Overran as stopped:
            if not control.disturbed or timings.measured(way) is None:  # a known one has tried another within
                timings.overran(way, max(stopped.passed, stopped.whole / LONGER))
            spent = 2 * stopped.passed
        finally:
            control.disturbed |= before
    raise AssertionError("turns have no end")
