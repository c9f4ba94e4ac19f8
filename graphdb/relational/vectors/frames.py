"""Frames: rows of which a column is made when it is first asked for, of those of them that are left by then."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.storage.arrays.texts import taken

Ints = NDArray[np.int64]

Maker = Callable[[Ints | None], arrow.Array]
"""Makes a column of the rows at some places; of all for None."""


class Frame:
    """Rows whose columns are arrays; late materialization: what nobody asks for is not made.

    Parameters
    ----------
    maker_of
        What makes a column, by its name.
    """

    def __init__(self, length: int, maker_of: Callable[[str], Maker]) -> None:
        self._length = length
        self._maker_of = maker_of
        self._made: dict[str, arrow.Array] = {}
        self._table: arrow.Table | None = None

    @classmethod
    def of(cls, table: arrow.Table) -> Frame:
        """Return the rows of a table."""
        columns = zip(table.column_names, table.columns, strict=True)
        found = cls(len(table), {name: made_once(column.combine_chunks) for name, column in columns}.__getitem__)
        found._table = table
        return found

    def __len__(self) -> int:
        return self._length

    def column(self, name: str) -> arrow.Array:
        """Return a column."""
        found = self._made.get(name)
        if found is None:
            found = self._made[name] = self._maker_of(name)(None)
        return found

    def chunked(self, name: str) -> arrow.ChunkedArray:
        """Return a column, a union in the pieces that it stands in: all its members would have to be put together."""
        if self._table is not None and name not in self._made and arrow.is_union(self._table.column(name).type):
            return self._table.column(name)
        return arrow.ChunkedArray([self.column(name)])

    def some(self, name: str, places: Ints | None) -> arrow.Array:
        """Return what a column has at some places; all of it for None."""
        if places is None:
            return self.column(name)
        return taken(self._made[name], places) if name in self._made else self._maker_of(name)(places)

    def at(self, places: Ints) -> Frame:
        """Return the rows at some places."""

        def maker_of(name: str) -> Maker:
            return lambda further: self.some(name, places if further is None else places[further])

        return Frame(len(places), maker_of)


def made_once(make: Callable[[], arrow.Array]) -> Maker:
    """Return what makes a column as a whole, whichever rows are asked for."""
    found: list[arrow.Array] = []

    def maker(places: Ints | None) -> arrow.Array:
        if not found:
            found.append(make())
        return found[0] if places is None else taken(found[0], places)

    return maker
