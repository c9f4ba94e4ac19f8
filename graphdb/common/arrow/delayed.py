"""Columns that are made when somebody reads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graphdb.common.arrow.arrays import Array, ChunkedArray
from graphdb.common.arrow.types import DataType


class DelayedArray(ChunkedArray):
    """A column that is made when its values are first asked for.

    Parameters
    ----------
    length, nbytes
        How many values there will be, and about how many bytes they will take.
    make
        Makes the pieces; called once, on whatever thread asks.
    """

    __slots__ = ("_length", "_made", "_make", "_nbytes")

    def __init__(self, type: DataType, length: int, nbytes: int, make: Callable[[], list[Array]]) -> None:
        self.type = type
        self._length, self._nbytes, self._make = length, nbytes, make
        self._made: list[Array] | None = None

    @property
    def chunks(self) -> list[Array]:  # type: ignore[override]
        """The pieces."""
        if self._made is None:
            self._made = self._make()
        return self._made

    def __len__(self) -> int:
        return self._length

    @property
    def nbytes(self) -> int:
        """Bytes of the values, or about as many, while they are not made."""
        return self._nbytes if self._made is None else sum(chunk.nbytes for chunk in self._made)

    @classmethod
    def together(cls, columns: Sequence[DelayedArray]) -> DelayedArray:
        """Return such columns of one type as one, one after the other."""
        length, nbytes = sum(map(len, columns)), sum(column.nbytes for column in columns)
        return cls(columns[0].type, length, nbytes, lambda: [chunk for one in columns for chunk in one.chunks])
