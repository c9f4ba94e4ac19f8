"""The stored terms, for large appends: looked up by their fingerprints, all in one pass.

A few terms are looked for in the dictionary by DuckDB (:mod:`graphdb.storage.dictionary.terms`).  Where an append has
several batches of them, joining each with the whole dictionary costs the more the more there are.  So the dictionary
is read once, and its fingerprints are cut into the parts into which those of the batches are cut (:mod:`.unify`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.duckdb.fetch import batches
from graphdb.storage.arrays.arrow import string_places, values
from graphdb.storage.arrays.spill import SpillArray, SpillFile
from graphdb.storage.dictionary.terms import term_counts
from graphdb.storage.loaders.terms import stored_kernels as kernels

if TYPE_CHECKING:
    import duckdb

Ints = NDArray[np.int64]

_ROWS = 1 << 19
"""Terms that are read at a time."""

_RESOURCES = "SELECT id, iri FROM _graphdb.resource"
_LITERALS = (
    "SELECT id, lexical, coalesce(datatype, '') AS datatype, coalesce(language, '') AS language FROM _graphdb.literal"
)


class Known:
    """The terms of a dictionary, by their fingerprints, part by part.

    Parameters
    ----------
    key
        int64[4]: the secret numbers of fingerprints.
    parts
        How many parts there are.
    folder, memory
        Where those go that take more bytes than that.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, key: Ints, parts: int, folder: Path, memory: int) -> None:
        self._connection = connection
        self._spill = SpillFile(folder / "known", memory)
        self._parts: list[list[SpillArray]] = [[] for _ in range(parts)]
        self.counts = term_counts(connection)
        """How many resources and literals there are: the numbers from which on new ones get theirs."""
        secret = key.ctypes.data
        self._read(_RESOURCES, lambda rows, found: kernels.resources(*_strings(rows, "iri"), found, secret))
        self._read(
            _LITERALS,
            lambda rows, found: kernels.literals(
                *_strings(rows, "lexical"), *_strings(rows, "datatype"), *_strings(rows, "language"), found, secret
            ),
        )

    def sizes(self) -> Ints:
        """Return how many terms each part has."""
        return np.array([sum(map(len, spilled)) for spilled in self._parts], np.int64)

    def part(self, number: int) -> Iterator[Ints]:
        """Yield fingerprints and codes, int64[n, 2] (see :attr:`.Batch.entries`)."""
        for spilled in self._parts[number]:
            yield spilled.get()

    def close(self) -> None:
        """Give back what it takes on disk."""
        self._spill.close()

    def _read(self, sql: str, name: Callable[[arrow.RecordBatch, Ints], None]) -> None:
        """Read terms, and keep their entries: ``name`` writes the fingerprints beside their ids."""
        ends = np.empty(len(self._parts) + 1, np.int64)
        for rows in batches(self._connection, sql, _ROWS):
            found = np.empty((len(rows), 2), np.int64)
            found[:, 1] = values(rows["id"])
            name(rows, found)
            entries = np.empty_like(found)
            kernels.scatter(found, ends, entries)
            for spilled, (begin, end) in zip(self._parts, pairwise(ends.tolist()), strict=True):
                if end > begin:
                    spilled.append(self._spill.add(entries[begin:end]))


def _strings(rows: arrow.RecordBatch, name: str) -> tuple[NDArray[np.uint8], Ints]:
    """Return the bytes of a column of strings, none of them NULL, and where each begins and the last ends."""
    return string_places(rows[name])
