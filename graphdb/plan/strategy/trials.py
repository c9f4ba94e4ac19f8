"""Counts in turns: what an estimate that is wrong by a thousand times costs.

The way that is expected to be done first gets as long as the next best is expected to take, with all that has to be
made ready for that.  Who is not done by then is stopped, and the next one gets twice what was spent so far; and so on,
in turns.  So all of them together spend a few times what the fastest needs, whatever was expected: searching in an
unknown environment by doubling (Kao, Reif, Tate, Information and Computation 1996).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import cycle
from typing import TypeVar

from graphdb.plan.executor import Control, Overran
from graphdb.plan.strategy.ski_rental import ExpectedCost, StrategyTimings

PATIENCE = 2.0
"""A way gets so many times what it is expected to take, at least."""
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
        before, control.disturbed = control.disturbed, False
        try:
            with control.at_most(time):
                return way, run(way)
        except Overran:
            if not control.disturbed or timings.measured(way) is None:  # a known one has tried another within
                timings.overran(way, time)
            spent = 2 * time
        finally:
            control.disturbed |= before
    raise AssertionError("turns have no end")
