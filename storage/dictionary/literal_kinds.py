"""The kinds of the literals that a transaction has seen, so that statistics need not look them up again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.arrays.sorted_sets import places
from graphdb.storage.file.prepared_sql import execute

if TYPE_CHECKING:
    import duckdb

Ids = NDArray[np.int64]

MOST = 65_536
"""Literals whose kinds are recorded, at most: with more, the statistics are counted in another way."""

_HANDFUL = 64
"""Literals that are noted one by one: NumPy takes longer to begin."""


class Kinds:
    """The :class:`~graphdb.common.values.terms.Kind` of some literals, by id."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._handful: dict[int, int] = {}  # kinds of those that came a handful at a time
        self._rows = np.empty((0, 2), np.int64)  # (id, kind), sorted
        self._pieces: list[Ids] = []  # such rows as they came
        self._size = 0
        self._unread = (0, 0)  # ids of literals in the file that are not among the pieces yet

    def add(self, ids: Sequence[int] | NDArray[Any], kinds: Sequence[int] | NDArray[Any]) -> None:
        """Note the kinds of some."""
        new = len(ids)
        if new <= _HANDFUL and len(self._handful) + new <= MOST:
            self._handful.update(zip(map(int, ids), map(int, kinds), strict=True))
            return
        if self._size + new > MOST:
            self._rows, self._pieces, self._size = self._rows[:0], [], 0
        if 0 < new <= MOST:
            self._pieces.append(np.array([ids, kinds], np.int64).T)
            self._size += new

    def expect(self, first: int, end: int) -> None:
        """Note that the literals from ``first`` to ``end - 1`` are written: they are read once kinds are wanted."""
        begin, before = self._unread
        self._unread = (begin if begin < before else first, end)

    def of_handful(self, ids: Sequence[int]) -> dict[int, int] | None:
        """Return the kinds of some by id; None where some did not come a handful at a time."""
        return {id: self._handful[id] for id in ids} if all(map(self._handful.__contains__, ids)) else None

    def of(self, ids: Ids) -> tuple[NDArray[np.bool_], Ids]:
        """Return which of some ids (int64) have a known kind, and the kinds; 0 for others."""
        known, kinds = self._all()
        at, there = places(known, ids)
        found = np.zeros(len(ids), np.int64)
        found[there] = kinds[at[there]]
        return there, found

    def _all(self) -> tuple[Ids, Ids]:
        """Return all ids (int64) that have a known kind, sorted, and the kinds."""
        first, end = self._unread
        if first < end:
            self._unread = (0, 0)
            if end - first <= MOST:
                sql = "SELECT id, kind FROM _graphdb.literal WHERE id >= ? AND id < ?"
                self.add(*execute(self._connection, sql, [first, end]).fetchnumpy().values())
        if self._handful:
            self._pieces.append(np.array([*self._handful.items()], np.int64))
            self._handful = {}
        if self._pieces:
            rows = np.concatenate([self._rows, *self._pieces])
            self._rows, self._pieces = rows[np.unique(rows[:, 0], return_index=True)[1]], []
            self._size = len(self._rows)
        return self._rows[:, 0], self._rows[:, 1]
