"""The rows that path searches find, as arrays; small blocks are concatenated before they are handed on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

BLOCK = 1 << 16
"""Rows that are handed on together."""
_NONE = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class PathRows:
    """Some rows of a step: for each the ends (vertex ids), the length, and how many paths it stands for.

    Where paths are materialized, row ``i`` has the vertices ``walks[starts[i]:starts[i + 1]]``, and the codes of its
    edges are ``codes[starts[i] - i : starts[i + 1] - i - 1]``, each seen from the vertex before it; ``cuts`` says, for
    each place between two parts of its pattern, how many of its edges are before it.
    """

    sources: Ints
    targets: Ints
    lengths: Ints
    counts: Ints | None = None
    starts: Ints = field(default_factory=lambda: np.zeros(1, np.int64))
    walks: Ints = field(default_factory=lambda: _NONE)
    codes: Ints = field(default_factory=lambda: _NONE)
    cuts: tuple[Ints, ...] = ()
    costs: NDArray[np.float64] | None = None
    """What each path costs, where its edges cost something: float64."""

    def __len__(self) -> int:
        return len(self.sources)

    def only(self, chosen: NDArray[np.bool_]) -> PathRows:
        """Return some of its rows, which are all of one length."""
        if chosen.all():
            return self
        at = np.flatnonzero(chosen)
        ends = self.sources[at], self.targets[at], self.lengths[at]
        if not len(self.walks):
            return PathRows(*ends)
        walks, codes = self.walks.reshape(len(self), -1)[at], self.codes.reshape(len(self), -1)[at]
        return PathRows(*ends, None, self.starts[: len(at) + 1], walks.reshape(-1), codes.reshape(-1))


def of_one_length(walks: Ints, edges: Ints) -> PathRows:
    """Paths of one length as rows, from int64 [paths, length + 1] vertices and int64 [paths, length] codes of edges."""
    count, width = walks.shape
    starts = np.arange(0, count * width + 1, width)
    length = np.full(count, width - 1)
    return PathRows(walks[:, 0].copy(), walks[:, -1].copy(), length, None, starts, walks.reshape(-1), edges.reshape(-1))


def gathered(blocks: Iterable[PathRows]) -> Iterator[PathRows]:
    """Hand small blocks on together."""
    waiting: list[PathRows] = []
    rows = 0
    for block in blocks:
        if len(block):
            waiting.append(block)
            rows += len(block) + len(block.walks) // 4
        if rows >= BLOCK:
            yield _joined(waiting)
            waiting, rows = [], 0
    if waiting:
        yield _joined(waiting)


def _joined(blocks: list[PathRows]) -> PathRows:
    if len(blocks) == 1:
        return blocks[0]

    def all_of(part: Callable[[PathRows], Ints]) -> Ints:
        return np.concatenate([part(block) for block in blocks])

    counts = None
    if any(block.counts is not None for block in blocks):
        counts = all_of(lambda block: np.ones(len(block), np.int64) if block.counts is None else block.counts)
    starts = np.append(0, np.cumsum(all_of(lambda block: np.diff(block.starts))))
    return PathRows(
        all_of(lambda block: block.sources),
        all_of(lambda block: block.targets),
        all_of(lambda block: block.lengths),
        counts,
        starts,
        all_of(lambda block: block.walks),
        all_of(lambda block: block.codes),
    )
