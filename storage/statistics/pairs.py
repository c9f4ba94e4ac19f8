"""The pairs of an edge label, cached between changes: whether a triple is there, which labels a vertex has.

A small change looks for its triples, and for the vertex labels at their ends.  Each look is a statement of SQL, which
DuckDB takes longer to plan than to run; a process that looks again and again reads the pairs of a label once (ski
rental).  What changes since stands beside them, by subject, and is merged when it is a share of the rest.

Until then a look for objects reads the pairs of all subjects nearby (:class:`PairBlocks`): that takes DuckDB about as
long as to find one of them, and a third of what it takes for four.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from graphdb.common.values.terms import LITERAL_BASE
from graphdb.storage.arrays.small_joins import Ints, among, distinct
from graphdb.storage.file.prepared_sql import execute

if TYPE_CHECKING:
    import duckdb

ChangedPairs: TypeAlias = tuple[Ints, Ints]
"""Pairs (subject, object) that came and that went: int64 [pairs, 2] each."""

PAIR_BYTES = 16
"""What a pair takes."""

_SHARE = 8
"""What changed is merged when it is this part of the rest, …"""

_LEAST = 1024
"""… and more than so many pairs."""

_BLOCK = 1 << 15
"""Pairs of a block, about."""

_LISTED = 64
"""Objects among which Python finds one sooner than NumPy begins."""

_AT_ONCE = 4
"""Blocks that one look reads: for more, their subjects are looked for."""


class Pairs:
    """The pairs of one edge label, sorted by subject: int64 [pairs] each.

    Parameters
    ----------
    subjects, objects
        The pairs, in the order of the subjects.
    """

    __slots__ = ("_changed", "_changes", "_objects", "_subjects")

    def __init__(self, subjects: Ints, objects: Ints) -> None:
        self._subjects, self._objects = subjects, objects
        self._changed: dict[int, dict[int, bool]] = {}
        """By subject, whether the pairs with some objects are there."""
        self._changes = 0

    @classmethod
    def read(cls, connection: duckdb.DuckDBPyConnection, label: int, first: int = 0, end: int = LITERAL_BASE) -> Pairs:
        """Return the pairs that the file has, of subjects from ``first`` to ``end - 1``."""
        sql = "SELECT subject, object FROM _graphdb.triple WHERE label = ? AND subject >= ? AND subject < ?"
        subjects, objects = execute(connection, sql, [label, first, end]).fetchnumpy().values()
        subjects, objects = np.asarray(subjects, np.int64), np.asarray(objects, np.int64)
        if (subjects[1:] >= subjects[:-1]).all():  # as loads leave them
            return cls(subjects, objects)
        order = np.argsort(subjects, kind="stable")  # runs of them are sorted in the file
        return cls(subjects[order], objects[order])

    @property
    def nbytes(self) -> int:
        """How many bytes they take."""
        return self._subjects.nbytes + self._objects.nbytes + 4 * PAIR_BYTES * self._changes

    def has(self, subject: int, object: int) -> bool:
        """Whether a pair is there."""
        changed = self._changed.get(subject)
        if changed is not None and object in changed:
            return changed[object]
        found = self._sorted(subject)
        return object in found.tolist() if len(found) <= _LISTED else bool((found == object).any())

    def objects_of(self, subject: int) -> set[int]:
        """Return the objects of one subject."""
        objects = set(self._sorted(subject).tolist())
        for object, there in self._changed.get(subject, {}).items():
            (objects.add if there else objects.discard)(object)
        return objects

    def _sorted(self, subject: int) -> Ints:
        """Return the objects of one subject among the sorted pairs."""
        view = self._subjects.data  # of which Python finds single numbers sooner than NumPy
        begin = bisect_left(view, subject)
        return self._objects[begin : bisect_right(view, subject, begin)]

    def change(self, come: Ints, gone: Ints) -> None:
        """Take pairs away that went, then add those that came: int64 [pairs, 2] each."""
        if self._are_many(len(come) + len(gone)):
            self._merge_noted()
            self._merge(come, gone)
            return
        for pairs, there in ((gone, False), (come, True)):
            for subject, object in pairs.tolist():
                self.note(subject, object, there=there)

    def note(self, subject: int, object: int, *, there: bool) -> None:
        """Note that a pair is there, or is not."""
        if self._are_many(1):
            self._merge_noted()
        self._changed.setdefault(subject, {})[object] = there
        self._changes += 1

    def _are_many(self, more: int) -> bool:
        return self._changes + more > max(_LEAST, len(self._subjects) // _SHARE)

    def _merge_noted(self) -> None:
        """Merge what was noted into the sorted pairs."""
        since = [(s, o, there) for s, objects in self._changed.items() for o, there in objects.items()]
        rows = np.array(since, np.int64).reshape(-1, 3)
        self._changed, self._changes = {}, 0
        self._merge(rows[rows[:, 2] == 1, :2], rows[rows[:, 2] == 0, :2])

    def _merge(self, come: Ints, gone: Ints) -> None:
        """Do so in the sorted pairs."""
        both = np.concatenate([come, gone])
        touched = np.isin(self._subjects, both[:, 0])
        old = np.column_stack([self._subjects[touched], self._objects[touched]])
        new = np.concatenate([old[~among(old, both)], distinct(come)])
        subjects = np.concatenate([self._subjects[~touched], new[:, 0]])
        order = np.argsort(subjects, kind="stable")
        self._subjects = subjects[order]
        self._objects = np.concatenate([self._objects[~touched], new[:, 1]])[order]


class PairBlocks:
    """The pairs of some blocks of subjects of one edge label, which had so many subjects and triples."""

    def __init__(self, subjects: int, triples: int) -> None:
        self._width = max(1, _BLOCK * subjects // max(triples, 1))
        self._blocks: dict[int, Pairs] = {}
        self.nbytes = 0
        """How many bytes they take."""

    def have(self, subjects: Sequence[int]) -> bool:
        """Whether the blocks of all of some subjects are read."""
        return not self._missing(subjects)

    def _missing(self, subjects: Sequence[int]) -> set[int]:
        return {subject // self._width for subject in subjects} - self._blocks.keys()

    def read(
        self,
        file: Callable[[], duckdb.DuckDBPyConnection],
        label: int,
        subjects: Sequence[int],
        changed: ChangedPairs,
        memory: int,
    ) -> bool:
        """Read the blocks of some subjects; return whether they are there, which they are not where that are many.

        What is read may take about so many bytes of memory.  ``changed`` are pairs that came to the file and went,
        which the blocks are without.
        """
        missing = self._missing(subjects)
        if len(missing) > _AT_ONCE or len(missing) * _BLOCK * PAIR_BYTES > memory:
            return False
        connection, (come, gone) = file(), changed
        for at in missing:
            made = Pairs.read(connection, label, at * self._width, (at + 1) * self._width)
            made.change(*(rows[rows[:, 0] // self._width == at] for rows in (gone, come)))
            self._blocks[at] = made
            self.nbytes += made.nbytes
        return True

    def objects_of(self, subject: int) -> set[int]:
        """Return the objects of one subject whose block is read."""
        return self._blocks[subject // self._width].objects_of(subject)

    def note(self, subject: int, object: int, *, there: bool) -> None:
        """Note that a pair is there, or is not, where its block is read."""
        block = self._blocks.get(subject // self._width)
        if block is not None:
            before = block.nbytes
            block.note(subject, object, there=there)
            self.nbytes += block.nbytes - before

    def change(self, come: Ints, gone: Ints) -> None:
        """Take pairs away that went, then add those that came, where their blocks are read."""
        changed = [rows[:, 0] // self._width for rows in (come, gone)]
        for at in self._blocks.keys() & set(np.concatenate(changed).tolist()):
            before = self._blocks[at].nbytes
            self._blocks[at].change(*(rows[own == at] for rows, own in zip((come, gone), changed, strict=True)))
            self.nbytes += self._blocks[at].nbytes - before
