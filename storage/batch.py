"""Batches: distinct terms and triples of their codes, as loads collect them, in memory or spilled.

A term's code is its number among the batch's resources, or among its literals with the bit :data:`LITERAL` set.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from graphdb.errors import StorageError
from graphdb.storage.arrow import numbers
from graphdb.storage.terms import DATATYPE, LANGUAGE

if TYPE_CHECKING:
    import pyarrow as pa

LITERAL = 1 << 31
"""The bit of a literal's code."""

Codes = NDArray[np.uint32]


class Spool:
    """Arrays that are written once and read in order: in memory up to ``memory`` bytes, then in a file."""

    def __init__(self, path: Path, memory: int) -> None:
        self._path = path
        self._left = memory
        self._file: BinaryIO | None = None

    def add(self, array: NDArray[Any]) -> Kept:
        """Keep an array, which is the spool's from now on.

        Raises `StorageError` where the disk is full.
        """
        if array.nbytes <= self._left:
            self._left -= array.nbytes
            return Kept(self, array.dtype, array.shape, array, 0)
        try:
            if self._file is None:
                self._file = open(self._path, "w+b")  # noqa: SIM115  # open until the batch is gone
            at = self._file.seek(0, 2)
            self._file.write(np.ascontiguousarray(array).data)
            self._file.flush()
        except OSError as error:
            raise StorageError(f"cannot spill to '{self._path.parent}': {error.strerror}") from error
        return Kept(self, array.dtype, array.shape, None, at)

    @property
    def spilled(self) -> bool:
        """Whether something is in the file."""
        return self._file is not None

    def read(self, at: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
        """Return an array that is in the file."""
        if self._file is None:
            raise ValueError("nothing was spilled")
        self._file.seek(at)
        return np.fromfile(self._file, dtype, math.prod(shape)).reshape(shape)

    def close(self) -> None:
        """Remove the file."""
        if self._file is not None:
            self._file.close()
            self._path.unlink(missing_ok=True)
            self._file = None


@dataclass(frozen=True, slots=True)
class Kept:
    """An array in a spool."""

    spool: Spool
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    array: NDArray[Any] | None
    at: int

    def get(self) -> NDArray[Any]:
        """Return the array."""
        return self.array if self.array is not None else self.spool.read(self.at, self.dtype, self.shape)


@dataclass(frozen=True, slots=True)
class Texts:
    """Some hundred thousand texts: their bytes, where each ends (int32[n + 1]), what comes with each (int32[n])."""

    data: Kept
    ends: Kept
    tags: Kept

    def __len__(self) -> int:
        return self.tags.shape[0]

    def array(self) -> pa.StringArray:
        """Return the texts."""
        import pyarrow as pa

        return pa.StringArray.from_buffers(len(self), pa.py_buffer(self.ends.get()), pa.py_buffer(self.data.get()))


@dataclass(frozen=True, slots=True)
class Batch:
    """Distinct terms, and triples of their codes.

    Attributes
    ----------
    resources
        The IRIs and blank nodes, in the order of their codes.
    literals
        The lexical forms; each with the number of its note, plus one, or 0.
    notes
        Datatypes and languages; each with which of them it is.
    triples
        uint32[n, 3] each: subject, label, object of the triples in no named graph, in their order.
    others
        int64[m, 5]: subject, label, object, graph and reifier of all others, -1 where there is none.  A triple that
        has a reifier is not in the graph by that.
    """

    spool: Spool
    resources: Sequence[Texts]
    literals: Sequence[Texts]
    notes: Texts
    triples: Sequence[Kept]
    others: NDArray[np.int64]

    def literal_columns(self, texts: Texts) -> tuple[pa.Array, pa.Array, pa.Array]:
        """Return lexical forms, datatypes and languages (NULL where there is none) of some literals."""
        import pyarrow as pa

        notes, tags = self.notes.array(), texts.tags.get() - 1
        whats = self.notes.tags.get()[tags] if len(notes) else tags
        columns = (
            pa.DictionaryArray.from_arrays(numbers(tags, (tags >= 0) & (whats == what)), notes)
            for what in (DATATYPE, LANGUAGE)
        )
        return texts.array(), *columns

    def rows(self) -> Iterator[Codes]:
        """Yield the triples, piece by piece."""
        for kept in self.triples:
            yield kept.get()

    def close(self) -> None:
        """Give back what it takes on disk."""
        self.spool.close()
