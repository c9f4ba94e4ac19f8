"""Runs that scan and do nothing else: the matches of a pattern of one vertex are its candidates, and those of one edge
are the neighbours of these.

No search looks at them: a count is a length, rows of vertices are slices, and rows of edges are lists that are copied.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.execute.search.worker import Found
from graphdb.plan.executor import Control
from graphdb.plan.physical import PhysicalPlan, Step, VertexStep

_ROWS = 1 << 18
"""Rows of a block: some milliseconds of what is done with them."""


def is_scan(plan: PhysicalPlan) -> bool:
    """Whether a plan's matches are the values that its one step scans."""
    if len(plan.steps) != 1 or not (plan.count_only or plan.row_steps == 1):
        return False
    return _only_scans(plan.steps[0])


def _only_scans(step: Step) -> bool:
    """Whether a step binds a vertex to each of some values."""
    if not isinstance(step, VertexStep) or step.scan is None:
        return False
    return not step.neighbours and step.constants is None and not step.checks


def lists_edges(plan: PhysicalPlan) -> bool:
    """Whether a plan's matches are the pairs of a value that its first step scans and a neighbour of that."""
    return plan.row_steps == 2 and _lists(plan)


def counts_edges(plan: PhysicalPlan) -> bool:
    """Whether a plan's rows are the values that its first step scans and that have neighbours, with how many they have
    if that is asked for.
    """
    return plan.row_steps == 1 and plan.duplicates != "keep" and _lists(plan)


def _lists(plan: PhysicalPlan) -> bool:
    """Whether a plan scans values and then their neighbours, and nothing else."""
    if len(plan.steps) != 2 or plan.count_only:
        return False
    first, second = plan.steps
    if not _only_scans(first) or not isinstance(second, VertexStep) or second.checks:
        return False
    return len(second.neighbours) == 1 and second.scan is None and second.constants is None


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


class DegreesRun:
    """One run of a plan of which :func:`counts_edges` is true: its rows are those that a search gives, in its order."""

    def __init__(self, plan: PhysicalPlan, control: Control, block_rows: int) -> None:
        scan, degrees = _degrees(plan, control)
        there = np.flatnonzero(degrees)
        self._found, self._numbers = scan[there], degrees[there]
        self.total = len(there)
        self._plan, self._control, self._block_rows = plan, control, block_rows
        control.threads = 1
        control.rows = control.work = np.array([len(scan), int(self._numbers.sum())], np.int64)

    def blocks(self) -> Iterator[Found]:
        """The matches."""
        columns = len(self._plan.program.outputs)
        for begin in range(0, self.total, self._block_rows):
            self._control.check()
            some = slice(begin, begin + self._block_rows)
            part = self._found[some].astype(self._plan.dtype)
            numbers = self._numbers[some] if self._plan.duplicates == "count" else None
            yield np.repeat(part[np.newaxis], columns, 0), numbers
        self._control.report(1.0)

    def close(self) -> None:
        """Nothing is left."""


def _degrees(plan: PhysicalPlan, control: Control) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the values of the control's share that the first step scans, and how many neighbours each has."""
    from graphdb.execute.search.set_kernels import add_degrees

    first = plan.steps[0]
    assert isinstance(first, VertexStep)
    assert first.scan is not None
    begin, end = control.range_of(len(first.scan))
    scan, degrees = first.scan[begin:end], np.zeros(end - begin, np.int64)
    add_degrees(plan.program.partitions.ctypes.data, int(plan.program.lists[0, 0]), scan, degrees)
    return scan, degrees


class EdgesRun:
    """One run of a plan of which :func:`lists_edges` is true: its rows are those that a search gives, in its order."""

    def __init__(self, plan: PhysicalPlan, control: Control, block_rows: int) -> None:
        self._scan, degrees = _degrees(plan, control)
        self._partitions = plan.program.partitions.ctypes.data, int(plan.program.lists[0, 0])
        self._ends = np.cumsum(degrees)
        self.total = int(self._ends[-1]) if len(self._ends) else 0
        self._plan, self._control, self._block_rows = plan, control, block_rows
        control.threads = 1
        control.rows = control.work = np.array([len(self._scan), self.total], np.int64)

    def blocks(self) -> Iterator[Found]:
        """The matches."""
        for begin in range(0, self.total, self._block_rows):
            self._control.check()
            self._control.report(begin / self.total)
            yield self._block(begin, min(begin + self._block_rows, self.total)), None
        self._control.report(1.0)

    def _block(self, begin: int, end: int) -> NDArray[Any]:
        from graphdb.execute.search.set_kernels import list_pairs

        program, (first, second) = self._plan.program, self._plan.steps
        assert isinstance(first, VertexStep)
        assert isinstance(second, VertexStep)
        pairs = np.empty((2, end - begin), self._plan.dtype)
        root = int(np.searchsorted(self._ends, begin, side="right"))
        before = int(self._ends[root - 1]) if root else 0
        list_pairs(*self._partitions, self._scan, root, begin - before, pairs)
        slots = [first.vertex, second.vertex]
        if program.outputs.tolist() == slots:
            return pairs
        columns = [pairs[slots.index(slot)] if slot in slots else None for slot in program.outputs.tolist()]
        found = np.empty((len(columns), end - begin), self._plan.dtype)
        codes = program.constants.astype(self._plan.dtype)  # a closure's has more bits, and is nobody's
        for row, (column, slot) in zip(found, zip(columns, program.outputs, strict=True), strict=True):
            row[:] = codes[slot] if column is None else column  # the code of an edge that has just one
        return found

    def close(self) -> None:
        """Nothing is left."""
