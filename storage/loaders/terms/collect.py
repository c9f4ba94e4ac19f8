"""Blocks to batches: one numbering of terms over all that is loaded.

A :class:`Collector` takes what parsers made of blocks, in the order of the file, so terms have the numbers of their
first occurrence, however many parsers there were.
"""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.arrays.batch import NOTE, Batch, Texts
from graphdb.storage.arrays.spill import SpillArray, SpillFile
from graphdb.storage.loaders.ntriples.reader import Parsed
from graphdb.storage.loaders.terms import collect_kernels as kernels
from graphdb.storage.loaders.terms.unify import entries

_PIECE, _TEXTS = 4 << 20, 122_880
"""Bytes and texts of a piece: as many as are in a row group of DuckDB's, which writes smaller ones anew in the end."""

_LEAST_PIECE = 4096
"""Bytes of the pieces of a small text, at least."""

_SLOTS = 1 << 12
"""Slots of a table at first."""

_FILLED = 0.75
"""The share of its slots that a table fills before it grows, by half."""

_NEARLY = 0.7
"""The share from which on a table that must not grow is full."""


def secret() -> NDArray[np.int64]:
    """Return a key for fingerprints (int64[4])."""
    return np.frombuffer(os.urandom(32), np.int64)


class Collector:
    """Collects terms and triples.

    Parameters
    ----------
    folder
        Where texts and triples go that do not fit.
    memory
        Bytes that it may take.
    text
        Bytes of the text that is collected, where that is known: little needs small pieces.
    """

    def __init__(self, folder: str, memory: int, text: int | None = None) -> None:
        self._piece = _PIECE if text is None else min(_PIECE, max(text, _LEAST_PIECE))
        self._folder = Path(folder)
        self._memory = memory
        self._names = count()
        self._codes = np.empty(1 << 15, np.uint32)
        self._state = np.zeros(4, np.int64)
        self._pieces = np.zeros((3, 8), np.int64)
        self._table = np.empty((0, 2), np.int64)
        self._begin()

    @property
    def full(self) -> bool:
        """Whether its table of terms should grow, and memory does not allow that (the old one is there meanwhile)."""
        entries = int(self._state[kernels.ENTRIES])
        large = int(2.5 * self._table.nbytes) > self._memory - self._memory // 4
        return (large and entries > _NEARLY * len(self._table)) or entries >= NOTE // 2

    @property
    def spilled(self) -> bool:
        """Whether texts and triples did not fit."""
        return self._spill.spilled

    def add(self, parsed: Parsed) -> None:
        """Add the terms and triples of a block."""
        terms = len(parsed.terms)
        if self._state[kernels.ENTRIES] + terms > _FILLED * len(self._table):
            table = np.full((len(self._table) * 3 // 2 + 2 * terms, 2), -1, np.int64)
            kernels.enter(self._table, table)
            self._table = table
        if terms > len(self._codes):
            self._codes = np.empty(2 * terms, np.uint32)
        self._state[kernels.NEXT] = 0
        while kernels.encode(
            parsed.terms, parsed.text, parsed.beside, self._table, self._pieces, self._state, self._codes
        ):
            self._next_piece(int(self._state[kernels.SORT]), int(self._state[kernels.LENGTH]))
        triples = np.empty((len(parsed.rows), 3), np.uint32)
        others = np.empty((len(parsed.rows), 5), np.int64)
        plain, rest = kernels.translate(parsed.rows, self._codes, triples, others)
        if plain:
            self._triples.append(self._spill.add(triples[:plain]))
        if rest:
            self._others.append(self._spill.add(others[:rest].copy()))

    def take(self) -> Batch:
        """Return what was collected, and begin anew."""
        batch = self._batch()
        self._begin()
        return batch

    def last(self) -> Batch:
        """Return what was collected; nothing else is added."""
        return self._batch()

    def cut(self) -> Batch:
        """Return what was collected as one batch of several, with its entries, and go on with the next.

        The table keeps its size, and the next batch is spilled whole.
        """
        batch = replace(self._batch(), entries=entries(self._table, self._spill))
        self._begin(self._table, memory=0)
        return batch

    def close(self) -> None:
        """Drop what was collected."""
        self._spill.close()

    def _batch(self) -> Batch:
        for sort in range(3):
            self._close_piece(sort)
        resources, literals, notes = self._texts
        return Batch(self._spill, resources, literals, self._join(notes), self._triples, self._others)

    def _begin(self, table: NDArray[np.int64] | None = None, memory: int | None = None) -> None:
        memory = self._memory // 4 if memory is None else memory
        self._spill = SpillFile(self._folder / f"batch{next(self._names)}", memory)
        self._table = np.empty((_SLOTS, 2), np.int64) if table is None else table
        self._table.fill(-1)
        self._state.fill(0)
        self._pieces.fill(0)
        self._texts: list[list[Texts]] = [[], [], []]
        self._arrays = [self._arrange(sort, self._piece) for sort in range(3)]
        self._triples: list[SpillArray] = []
        self._others: list[SpillArray] = []

    def _arrange(self, sort: int, size: int) -> tuple[NDArray[np.uint8], NDArray[np.int32], NDArray[np.int32]]:
        """Make an empty piece, and say in the table of pieces where it is."""
        texts = min(_TEXTS, size)
        data, ends, tags = np.empty(size, np.uint8), np.empty(texts + 1, np.int32), np.empty(texts, np.int32)
        ends[0] = 0
        row = self._pieces[sort]
        row[[kernels.DATA, kernels.ENDS, kernels.TAGS]] = data.ctypes.data, ends.ctypes.data, tags.ctypes.data
        row[[kernels.BYTES, kernels.ROOM, kernels.USED, kernels.COUNT]] = size, texts, 0, 0
        return data, ends, tags

    def _next_piece(self, sort: int, length: int) -> None:
        """Begin another piece, in which a text of ``length`` bytes finds room."""
        self._close_piece(sort)
        self._arrays[sort] = self._arrange(sort, max(self._piece, length))

    def _close_piece(self, sort: int) -> None:
        used, texts = self._pieces[sort, [kernels.USED, kernels.COUNT]].tolist()
        if texts:
            data, ends, tags = self._arrays[sort]
            keep = self._spill.add
            self._texts[sort].append(Texts(keep(data[:used]), keep(ends[: texts + 1]), keep(tags[:texts])))

    def _join(self, pieces: list[Texts]) -> Texts:
        """Return several pieces as one, or one without texts for none."""
        data = np.concatenate([np.empty(0, np.uint8), *(piece.data.get() for piece in pieces)])
        tags = np.concatenate([np.empty(0, np.int32), *(piece.tags.get() for piece in pieces)])
        lengths = np.concatenate([np.zeros(1, np.int32), *(np.diff(piece.ends.get()) for piece in pieces)])
        keep = self._spill.add
        return Texts(keep(data), keep(np.cumsum(lengths, dtype=np.int32)), keep(tags))
