"""Runs a :class:`graphdb.plan.counting.twins.TwinCount`: one hash table, root after root."""

from __future__ import annotations

from itertools import pairwise
from math import perm

import numpy as np

from graphdb.plan.counting.twins import TwinCount
from graphdb.plan.executor import Control

_PIECE = 1 << 18
"""Choices that a kernel call counts, roughly: some milliseconds."""


def table_bytes(plan: TwinCount) -> int:
    """Bytes of the hash table that a count takes."""
    choices = int(plan.choices[-1])
    return 16 << max(choices + choices // 2, 16).bit_length()


def count_twins(plan: TwinCount, control: Control) -> int:
    """Count the matches; raises what ``control`` does."""
    from graphdb.execute.counting.kernels.twin_kernels import count_choices

    control.threads = 1
    table = np.zeros((table_bytes(plan) // 16, 2), np.int64)
    partitions = np.array([partition.row for partition in plan.partitions], np.int64)
    marks = np.array([0 if mark is None else mark.ctypes.data for mark in plan.marks], np.int64)
    width = np.dtype(plan.dtype).itemsize
    scratch, like = np.zeros((4, max(len(partitions), 1)), np.int64), np.empty(0, plan.dtype)
    cuts = np.searchsorted(plan.choices, np.arange(_PIECE, int(plan.choices[-1]), _PIECE))
    for begin, end in pairwise(sorted({0, *cuts.tolist(), len(plan.roots)})):
        control.check()
        count_choices(partitions, marks, plan.roots, begin, end, plan.vertices, table, scratch, width, like)
    times = np.bincount(table[:, 1])
    shared, twins = np.flatnonzero(times).tolist(), len(plan.twins)
    return sum((perm(n, twins) if plan.differ else n**twins) * int(times[n]) for n in shared if n)
