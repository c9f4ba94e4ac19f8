"""Sorting more keys than a device has memory for, by segments, checkpoints and multi-merge (GAMMA §6.2, optimisation 4).

What aggregation does without: quick patterns are found by hashing, and the vertices that they take are marked as bits.
This is what it is compared with (:mod:`tests.benchmarks.mining_ablations`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from graphdb.gpu.code.launch import BLOCK, Device, defines
from graphdb.gpu.code.machine_code import Source

Keys = NDArray[np.uint64]
Merge = Literal["all", "half", "sort"]
"""Keys are searched in all other lists; in those before their own; or a part is sorted anew."""

ROOM = 1024
"""Keys of a part that a warp merges, at most."""


class ExternalSort:
    """Sorts uint64 keys within a budget of device memory.

    Parameters
    ----------
    segment
        Keys that are sorted at a time: the device holds them twice, or so many of several segments and their merge.
    """

    def __init__(self, device: Device, segment: int, merge: Merge = "half") -> None:
        self._device, self._segment, self._merge = device, segment, merge
        text = Path(__file__).with_name("multi_merge.cu").read_text()
        self._module = device.compile(Source("multi_merge", text, defines({"ROOM": ROOM})))
        self.sorting, self.merging = 0.0, 0.0
        """Milliseconds of the device, copies left out."""
        self.moved = 0
        """Bytes that were copied to the device and from it."""

    def segments(self, keys: Keys) -> list[Keys]:
        """Sorted segments of keys that lie in host memory."""
        found = []
        for begin in range(0, len(keys), self._segment):
            part = self._device.memory.upload(keys[begin : begin + self._segment])
            found.append(self.sorted_segment(part))
            self.moved += part.nbytes
        return found

    def sorted_segment(self, keys: Any, *, distinct: bool = False) -> Keys:
        """A segment that lies on the device, sorted, in host memory; of equal keys one, if so wanted."""
        begin = self._device.event()
        keys.sort()
        if distinct:
            keys = self._distinct(keys)
        self.sorting += self._device.milliseconds(begin, self._device.event())
        self.moved += keys.nbytes
        found: Keys = keys.get()
        return found

    def merged(self, segments: list[Keys]) -> Iterator[Any]:
        """Yield all keys in order, a piece on the device at a time."""
        if len(segments) == 1:
            yield self._device.memory.upload(segments[0])
            return
        cuts = self._pieces(segments)
        for begins, ends in pairwise(cuts):
            yield self._merged([s[b:e] for s, b, e in zip(segments, begins, ends, strict=True)])

    def sort(self, keys: Keys) -> Keys:
        """The keys in order, in host memory."""
        out, at = np.empty_like(keys), 0
        for piece in self.merged(self.segments(keys)):
            out[at : at + len(piece)] = piece.get()
            at += len(piece)
            self.moved += piece.nbytes
        return out

    def images(self, pieces: Iterable[tuple[Any, Any]], slots: Any, count: int, vertices: int) -> NDArray[np.int64]:
        """How many vertices each slot takes, of rows of vertices (:meth:`graphdb.plan.extension.Extender.images`)."""
        device, empty = self._device, self._device.memory.empty
        width, table, segments = slots.shape[1], device.memory.upload(slots), list[Keys]()
        waiting, filled = empty(self._segment, np.uint64), 0
        for rows, quick_of_row in pieces:
            own, quick, (rows_here, size) = device.memory.upload(rows), device.memory.upload(quick_of_row), rows.shape
            if filled + rows_here * size > self._segment:
                segments.append(self.sorted_segment(waiting[:filled], distinct=True))
                filled = 0
            keys = waiting[filled : filled + rows_here * size]
            begin = device.event()
            self._launch("image_keys", rows.size, own, quick, rows_here, size, table, width, vertices, keys)
            self.sorting += device.milliseconds(begin, device.event())
            self.moved += rows.nbytes + quick_of_row.nbytes
            filled += rows_here * size
        segments.append(self.sorted_segment(waiting[:filled], distinct=True))
        del waiting
        images = empty(count, np.uint64)
        images.fill(0)
        last, some = 0, 0
        for keys in self.merged(segments):
            begin = device.event()
            self._launch("count_distinct", len(keys), keys, len(keys), np.uint64(last), some, vertices, images)
            self.merging += device.milliseconds(begin, device.event())
            last, some = int(keys[-1:].get()[0]), 1
        return images.get().astype(np.int64)

    def _pieces(self, segments: list[Keys]) -> list[list[int]]:
        """Where segments are cut so that pieces of all of them fit the device: by checkpoints of all segments together."""
        step = max(self._segment // (2 * len(segments)), 1)
        checkpoints = np.sort(np.concatenate([segment[step::step] for segment in segments]))
        # There is one for so many keys: a piece has about half of what a segment has, and is merged to as many.
        chosen = checkpoints[:: len(segments)]
        cuts = [np.searchsorted(segment, chosen) for segment in segments]
        rows = np.stack([np.zeros(len(segments), np.int64), *np.stack(cuts, axis=1), list(map(len, segments))])
        return [row.tolist() for row in rows]

    def _merged(self, lists: list[Keys]) -> Any:
        """Merge lists on the device (algorithm 3)."""
        device, memory, count = self._device, self._device.memory, len(lists)
        starts = np.cumsum([0, *map(len, lists)])
        keys = memory.empty(int(starts[-1]), np.uint64)
        for begin, each in zip(starts, lists, strict=False):
            if len(each):
                keys[begin : begin + len(each)].set(each)
        self.moved += keys.nbytes
        begun = device.event()
        if self._merge == "sort":
            keys.sort()
            self.merging += device.milliseconds(begun, device.event())
            return keys
        step = ROOM // count
        ends = list(pairwise(starts))
        points = [len(range(b + step, e, step)) for b, e in ends]
        at = np.cumsum([0, *points])
        checkpoints, out = memory.empty(int(at[-1]), np.uint64), memory.empty(len(keys), np.uint64)
        for first, number, (b, e) in zip(at, points, ends, strict=False):
            if number:
                checkpoints[first : first + number] = keys[b + step : e : step]
        checkpoints.sort()
        parts = len(checkpoints) + 1
        cuts, own = memory.empty((parts + 1) * count, np.int64), memory.upload(starts)
        cuts[:count] = own[:-1]
        cuts[parts * count :] = own[1:]
        self._launch("cut", (parts - 1) * count, keys, own, count, checkpoints, parts - 1, cuts)
        shared = 4 * 8 * (2 * ROOM + 1) if self._merge == "half" else 0
        blocks = min(-(-parts // 8), self._module.resident(f"merge_{self._merge}", shared=shared) * 4)
        self._module.launch(f"merge_{self._merge}", blocks, keys, own, count, cuts, parts, out, shared=shared)
        self.merging += device.milliseconds(begun, device.event())
        return out

    def _distinct(self, keys: Any) -> Any:
        """Sorted keys, each once."""
        marks = self._device.memory.empty(len(keys), np.int64)
        self._launch("mark_new", len(keys), keys, len(keys), marks)
        places = self._device.offsets(marks)
        out = self._device.memory.empty(self._device.last(places), np.uint64)
        self._launch("take_new", len(keys), keys, len(keys), places, out)
        return out

    def _launch(self, kernel: str, threads: int, *arguments: Any) -> None:
        self._module.launch(kernel, min(-(-threads // BLOCK), 32 * self._device.processors), *arguments)
