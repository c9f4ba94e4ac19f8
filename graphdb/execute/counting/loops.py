"""Loops over a core: how a counting plan's cycles are counted (:mod:`graphdb.plan.counting.nested_loops`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.execute.counting.run import CountRun
from graphdb.execute.counting.weights import Weights
from graphdb.plan.counting.programs import (
    Accumulate,
    Bundle,
    Closed,
    Instruction,
    Intersect,
    Load,
    Local,
    Part,
    Through,
    Total,
)
from graphdb.storage.graph.pcsr import Partition

Ints = NDArray[np.int64]

_ROOM = 1 << 22
"""Ids that local lists may hold, per set of lists and thread; what does not fit is read where it lies."""
_CLOSED = 1 << 24
"""Ids that closed lists may hold; longer ones are not made."""


class Loops:
    """Runs the programs of cores, and keeps the closed lists that they read."""

    def __init__(self, run: CountRun, weights: Weights) -> None:
        from graphdb.execute.counting.kernels import nested_kernels

        self._run, self._weights, self._kernels = run, weights, nested_kernels
        self._pairs: dict[Closed, tuple[tuple[int, int, int], Any]] = {}

    def total(self, part: Part, roots: Ints, root: Ints, modulus: int, by_root: Ints) -> int:
        """The sum over a core; with ``by_root`` (int64 [vertices]; else empty) the summands of each root there."""
        weights = [self._weights.values(weight, None, modulus) for weight in part.weights]
        addresses = np.array([weight.ctypes.data for weight in weights], np.int64)
        bundles = list(dict.fromkeys(b for level in part.levels for i in level.instructions for b in _bundles(i)))
        numbers = {bundle: number for number, bundle in enumerate(bundles)}
        tables = self._run.tables(bundles)
        tables_of_pairs = self._closed(part)
        closed = {of: number for number, of in enumerate(tables_of_pairs)}
        pairs = np.array([found[0] for found in tables_of_pairs.values()], np.int64).reshape(-1, 3)
        code: list[tuple[int, ...]] = []
        levels: list[tuple[int, int, int]] = []
        for level in part.levels:
            begin = len(code)
            code += [_row(instruction, numbers, closed) for instruction in level.instructions]
            levels.append((begin, len(code), level.register))
        text = (np.array(levels, np.int64), np.array(code, np.int64).reshape(-1, 15))
        program = (*text, *tables, self._run.partitions, addresses)
        lengths = list_lengths(self._run.partition(part.root_bundles[0].members[0]), roots)
        order = np.argsort(-lengths, kind="stable")
        roots = roots[order]
        shares = np.cumsum((lengths[order] + 1.0) ** 2)
        pieces = self._run.pieces(part.cost)
        cuts = np.searchsorted(shares, shares[-1] * np.arange(1, pieces) / pieces, side="right") if len(roots) else []
        bounds = sorted({0, len(roots), *(int(cut) for cut in cuts)})
        sums = np.zeros((self._run.threads, 3), np.int64)
        scratch = [self._scratch(part) if worker == 0 else None for worker in range(self._run.threads)]

        def run(begin: int, end: int, worker: int) -> None:
            cells = scratch[worker] = scratch[worker] or self._scratch(part)
            found = (pairs, sums[worker], by_root, modulus, self._run.flags, self._run.like)
            self._kernels.nested(*program, roots, root, begin, end, *cells[:7], *found)

        self._run.schedule(run, bounds, part.cost, sums[:, 2])
        return int(sums[:, 0].sum()) + (int(sums[:, 1].sum()) << 32)

    def _closed(self, part: Part) -> dict[Closed, tuple[tuple[int, int, int], Any]]:
        """The closed lists that a part reads, as rows of addresses, with what these are of; none that are too large."""
        wanted = [i.closed for level in part.levels for i in level.instructions if isinstance(i, Through) and i.closed]
        for closed in dict.fromkeys(wanted):
            if closed in self._pairs:
                continue
            entries = self._run.partition(closed.first.members[0])
            if 2 * len(entries.neighbours) > self._run.room:  # where each entry's list begins
                continue
            bundles = (closed.first, closed.second, closed.back)
            rows = np.array([self._run.relations[bundle.members[0].relation] for bundle in bundles], np.int64)
            marks = [np.zeros(self._run.plan.vertices, np.int8) for _ in range(self._run.threads)]
            starts = np.zeros(len(entries.neighbours) + 1, np.int64)
            ids = self._run.like

            def fill(
                begin: int, end: int, worker: int, fixed: Any = (self._run.partitions, rows, entries.keys)
            ) -> None:
                cells = (closed.back.order, marks[worker], starts, ids, self._run.flags, self._run.like)  # noqa: B023
                self._kernels.closed_lists(*fixed, begin, end, *cells)

            bounds = self._run.even_bounds(len(entries.keys), len(starts))
            self._run.schedule(fill, bounds, len(starts))
            np.cumsum(starts, out=starts)
            if 0 < starts[-1] <= min(_CLOSED, self._run.room):
                ids = np.empty(int(starts[-1]), self._run.plan.dtype)
                self._run.schedule(fill, bounds, len(starts))
                row = int(rows[0]), starts.ctypes.data, ids.ctypes.data
                self._pairs[closed] = (row, (starts, ids))
        return {closed: self._pairs[closed] for closed in wanted if closed in self._pairs}

    def _scratch(self, part: Part) -> tuple[Any, ...]:
        """A worker's registers and local lists."""
        size, dtype = self._run.plan.vertices, self._run.plan.dtype
        rooms = []
        for level in part.levels:
            for instruction in level.instructions:
                if isinstance(instruction, Local):
                    entries = len(self._run.partition(instruction.bundle.members[0]).neighbours)
                    room = min(entries, _ROOM, self._run.room // (self._run.threads * part.locals))
                    rooms.append(np.empty(room, dtype))
        pool = np.array([(room.ctypes.data, len(room)) for room in rooms], np.int64).reshape(-1, 2)
        return (
            np.zeros((max(part.registers, 1), size), np.int64),
            np.zeros((max(part.registers, 1), size + 1), dtype),
            np.zeros(max(part.registers, 1), np.int64),
            np.full((len(rooms), size), -1, np.int64),
            np.zeros((len(rooms), size), np.int64),
            pool,
            np.zeros((4, max(len(part.levels), part.registers, 1)), np.int64),
            rooms,
        )


def list_lengths(partition: Partition, vertices: Ints) -> Ints:
    """How many neighbours each of some vertices has: int64 [vertices] both."""
    if not len(partition.keys):
        return np.zeros(len(vertices), np.int64)
    at = np.minimum(np.searchsorted(partition.keys, vertices), len(partition.keys) - 1)
    lengths: Ints = np.where(partition.keys[at] == vertices, partition.lengths()[at], 0)
    return lengths


def _bundles(instruction: Instruction) -> tuple[Bundle, ...]:
    match instruction:
        case Total():
            return ()
        case Through():
            return instruction.forward, instruction.backward
        case _:
            return (instruction.bundle,)


def _row(instruction: Instruction, numbers: dict[Bundle, int], numbers_of_closed: dict[Closed, int]) -> tuple[int, ...]:
    """An instruction as a kernel reads it.

    (what, out, a, b, bundle, back, weight, power, local, local back, certain, total,
    closed, anchor, mirrored)
    """
    match instruction:
        case Load(out, at, bundle, weight):
            return (0, out, at, -1, numbers[bundle], -1, weight, 1, -1, -1, 0, 0, -1, 0, 0)
        case Intersect(out, source, at, bundle, local):
            return (1, out, source, at, numbers[bundle], -1, -1, 1, local, -1, 0, 0, -1, 0, 0)
        case Through(out, source, mask, forward, backward, weight, power, local, back, certain, total):
            pairs = -1 if instruction.closed is None else numbers_of_closed.get(instruction.closed, -1)
            how = (weight, power, local, back, int(certain), total, pairs)
            ends, anchor = (numbers[forward], numbers[backward]), max(instruction.anchor, 0)
            return (2, out, source, mask, *ends, *how, anchor, int(instruction.mirrored))
        case Total(source, power):
            return (3, -1, source, -1, -1, -1, -1, power, -1, -1, 0, 0, -1, 0, 0)
        case Accumulate(source, at, bundle, power, local):
            return (4, -1, source, at, numbers[bundle], -1, -1, power, local, -1, 0, 0, -1, 0, 0)
        case Local(number, source, target, bundle, parent):
            return (5, number, source, target, numbers[bundle], -1, -1, 1, parent, -1, 0, 0, -1, 0, 0)
