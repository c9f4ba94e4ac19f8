"""What it takes a join that its tables do not fit: each piece of a table is launched, and waited for, by itself."""

from __future__ import annotations

import numpy as np

from graphdb.gpu.card import Rates
from graphdb.gpu.data.residency import PAGED, lists_of_plan
from graphdb.gpu.join.segmentation import FOUND, TABLES
from graphdb.gpu.join.tables import divided
from graphdb.plan.physical import PhysicalPlan, StepColumn

PIECE = 20.0
"""Answers that a piece of a table takes, with what the next level does with it."""


def piece_seconds(plan: PhysicalPlan, counting: bool, budget: int, rates: Rates) -> float:
    """Return what a join (or with ``counting``, a count) is expected to take for more than one piece of each table.

    Parameters
    ----------
    budget
        Bytes of the device, all lists among them, or the pages of those that are read most.
    """
    steps, width = plan.program.steps, np.dtype(plan.dtype).itemsize
    lists = steps[:, StepColumn.LISTS_END] - steps[:, StepColumn.LISTS]
    # What the last step finds is counted, or an output; and what it finds it for, may be counted with it.
    tables = len(steps) - 1 - (counting and len(steps) > 2)
    needed = [
        plan.steps[level].estimate * ((level + 2) * width + FOUND + 12 * int(lists[level + 1] > 1) * lists[level + 1])
        for level in range(tables)
    ]
    left = budget - sum(each.nbytes for each in lists_of_plan(plan, counting))
    room = TABLES * max(left, (1 - PAGED) * budget)
    parts = divided(room, needed)
    pieces = sum(max(float(each) / max(part, 1.0) - 1.0, 0.0) for each, part in zip(needed, parts, strict=True))
    return PIECE * rates.answer * pieces
