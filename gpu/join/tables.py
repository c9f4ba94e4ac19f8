"""Tables of partial matches on the device, and how large pieces of them are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphdb.gpu.data.graph import address


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of pieces.

    Attributes
    ----------
    block, tile
        Threads of a block, and the elements that it goes through.
    rows
        Rows of a table, at most.
    span
        Elements that one launch scans, at most: whole tiles.
    out_bytes
        Bytes of an output block, images included.
    parts
        Pieces take this part of the memory that is free (1 / parts): more where a run got too little.
    """

    block: int
    tile: int
    rows: int
    span: int
    out_bytes: int
    parts: int = 1


@dataclass(slots=True)
class Table:
    """Rows of partial matches: ``cells`` is [columns, stride], of which the first ``rows`` from ``at`` are meant."""

    cells: Any
    stride: int
    at: int
    rows: int
    width: int
    matches: Any = None
    """How many matches each row stands for, where that is counted."""

    @property
    def address(self) -> np.uint64:
        """Where the first of the rows stands."""
        return np.uint64(address(self.cells) + self.at * self.width)

    def after(self, rows: int) -> Table:
        """A table without so many of the first rows, of which its columns are all."""
        matches = None if self.matches is None else self.matches[rows:].copy()
        left = self.rows - rows
        return Table(self.cells[:, self.at + rows : self.at + self.rows].copy(), left, 0, left, self.width, matches)


@dataclass(slots=True)
class Elements:
    """The elements of the rows of a table: what ``bounds`` found."""

    descriptor: Any
    begins: Any
    lengths: Any
    which: Any
    first: Any
    offsets: Any
    total: int


@dataclass(slots=True)
class Marks:
    """Which of the elements [begin, end) are bindings: one bit each (None: all), and how many, tile by tile."""

    begin: int
    end: int
    starts: Any
    bits: Any
    positions: Any
    found: int


def divided(room: float, wanted: Sequence[float]) -> list[float]:
    """Divide room among those who want some: equally, but what some do not want goes to the others.

    Whoever wants little gets a quarter of an equal part all the same, as what it wants is an estimate.

    >>> divided(120, [10, 1000, 50]), divided(120, [1, 1000, 1000])
    ([10, 60.0, 50], [10.0, 55.0, 55.0])
    """
    least = room / max(len(wanted), 1) / 4
    parts, left = [0.0] * len(wanted), room
    order = sorted(range(len(wanted)), key=lambda at: wanted[at])
    for number, at in enumerate(order):
        parts[at] = min(max(wanted[at], least), left / (len(order) - number))
        left -= parts[at]
    return parts
