"""Columns that are made when somebody reads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from graphdb.common.arrow.arrays import Array, ChunkedArray
from graphdb.common.arrow.types import DataType


class Gathered(NamedTuple):
    """What a column is gathered from: whoever needs but a few of its values, or numbers of them, need not make it."""

    values: Array
    """Those of the ids from ``first`` on."""
    first: int
    ids: ChunkedArray
    """Of each row (int32 or int64), none of them null: null is the value of those that ``values`` has no place for."""

    @classmethod
    def together(cls, parts: Sequence[Gathered | None]) -> Gathered | None:
        """Return that of columns one after the other; None where they are not all gathered from one array."""
        known = [each for each in parts if each is not None]
        first = known[0] if len(known) == len(parts) else None
        if first is None or not all(first._is_like(each) for each in known):
            return None
        return cls(*first[:2], ChunkedArray([chunk for each in known for chunk in each.ids.chunks]))

    def _is_like(self, other: Gathered) -> bool:
        """Whether another column is gathered from the same array."""
        mine, theirs = self.values, other.values
        plain = mine.data is not None and mine.valid is None and mine.type == theirs.type and theirs.valid is None
        return self.first == other.first and (mine is theirs or (plain and mine.data is theirs.data))


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
    source
        What the values are gathered from, where that is all there is to them.
    """

    __slots__ = ("_length", "_made", "_make", "_nbytes", "_part", "source")

    def __init__(
        self,
        type: DataType,
        length: int,
        nbytes: int,
        make: Callable[[], list[Array]],
        part: Callable[[int, int], ChunkedArray] | None = None,
        source: Gathered | None = None,
    ) -> None:
        self.type, self.source = type, source
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

    @property
    def is_made_in_parts(self) -> bool:
        """Whether its values are not made yet, and :meth:`part` makes some without the others."""
        return self._made is None and self._part is not None

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

        source = Gathered.together([column.source for column in columns])
        return cls(columns[0].type, length, nbytes, make, part, source)
