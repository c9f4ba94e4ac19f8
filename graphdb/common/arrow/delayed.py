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
    part
        Gives the column of ``length`` values from a start on, which is delayed as well.
    """

    __slots__ = ("_length", "_made", "_make", "_nbytes", "_part")

    def __init__(
        self,
        type: DataType,
        length: int,
        nbytes: int,
        make: Callable[[], list[Array]],
        part: Callable[[int, int], ChunkedArray] | None = None,
    ) -> None:
        self.type = type
        self._length, self._nbytes, self._make, self._part = length, nbytes, make, part
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

    def part(self, start: int, length: int) -> ChunkedArray:
        """Return ``length`` values from ``start`` on, as :meth:`slice` does, without making the others."""
        if self._made is not None or self._part is None:
            return self.slice(start, length)
        return self._part(start, max(min(length, self._length - start), 0))

    @classmethod
    def together(cls, columns: Sequence[DelayedArray]) -> DelayedArray:
        """Return such columns of one type as one, one after the other."""
        length, nbytes = sum(map(len, columns)), sum(column.nbytes for column in columns)

        def make(parts: Sequence[ChunkedArray] = columns) -> list[Array]:
            return [chunk for one in parts for chunk in one.chunks]

        def part(start: int, length: int) -> ChunkedArray:
            parts: list[ChunkedArray] = []
            left = length
            for one in columns:
                if start < len(one) and left > 0:
                    parts.append(one.part(start, left))
                    left -= len(parts[-1])
                start = max(start - len(one), 0)
            if len(parts) == 1:
                return parts[0]
            return cls(columns[0].type, length, sum(each.nbytes for each in parts), lambda: make(parts))

        return cls(columns[0].type, length, nbytes, make, part)
