"""Runs that scan and do nothing else: the matches of a pattern of one vertex are its candidates.

No kernel looks at them: a count is a length, and rows are slices.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from graphdb.execute.search.worker import Found
from graphdb.plan.executor import Control
from graphdb.plan.physical import PhysicalPlan, VertexStep

_ROWS = 1 << 18
"""Rows of a block: some milliseconds of what is done with them."""


def is_scan(plan: PhysicalPlan) -> bool:
    """Whether a plan's matches are the values that its one step scans."""
    if len(plan.steps) != 1 or not (plan.count_only or plan.row_steps == 1):
        return False
    (step,) = plan.steps
    if not isinstance(step, VertexStep) or step.scan is None:
        return False
    return not step.neighbours and step.constants is None and not step.checks


class ScanRun:
    """One run of such a plan, as those in :mod:`graphdb.execute.search.chunks` are."""

    def __init__(self, plan: PhysicalPlan, control: Control, counting: bool, limit: int | None) -> None:
        (step,) = plan.steps
        assert isinstance(step, VertexStep)
        assert step.scan is not None
        first, last = control.range_of(len(step.scan))
        self._found = step.scan[first : last if limit is None else min(last, first + limit)]
        self.total = len(self._found)
        self._plan, self._control, self._counting = plan, control, counting
        control.threads = 1
        control.rows = control.work = np.array([self.total], np.int64)

    def blocks(self) -> Iterator[Found]:
        """The matches; counting gives none."""
        self._control.check()
        columns = len(self._plan.program.outputs)
        for begin in range(0, 0 if self._counting else self.total, _ROWS):
            self._control.check()
            part = self._found[begin : begin + _ROWS].astype(self._plan.dtype)
            yield np.repeat(part[np.newaxis], columns, 0), None
        self._control.report(1.0)

    def close(self) -> None:
        """Nothing is left."""
