"""Values of tables as numbers: those of one sort, whichever columns they come from, get theirs from one hash table.

That numbering is the dictionary.  A table is numbered while the next is read, its names by one thread and its literals
by another, and of each of its values four bytes are left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.values.terms import XSD, Kind
from graphdb.storage.arrays.texts import Different, DifferentTexts, is_word, numbered_texts
from graphdb.storage.loaders.tables.headers import Column, Mapping
from graphdb.storage.loaders.tables.staging import Sort, Staged

Ints = NDArray[np.int64]
Numbers = NDArray[np.int32]

NAME = Sort(False, "VARCHAR")
"""Labels, of vertices and of edges."""

INTEGER = Sort(True, "BIGINT", datatype=f"{XSD}integer")
"""Integers as literals."""

VALUED = {
    Kind.INTEGER: INTEGER,
    Kind.DOUBLE: Sort(True, "DOUBLE", datatype=f"{XSD}double"),
    Kind.DATE: Sort(True, "DATE", datatype=f"{XSD}date"),
    Kind.DATETIME: Sort(True, "TIMESTAMP", datatype=f"{XSD}dateTime"),
    Kind.ZONED: Sort(True, "TIMESTAMPTZ", datatype=f"{XSD}dateTime"),
}
"""Literals of which the dictionary takes values: see :class:`graphdb.storage.arrays.batch.Valued`."""


@dataclass(frozen=True, slots=True)
class Values:
    """The values of a column: their numbers among those of the sort, -1 where there is none, and the row of each.

    ``rows`` is None where each row has one, or none.
    """

    column: Column
    sort: Sort
    numbers: Numbers
    rows: Ints | None


@dataclass(frozen=True, slots=True)
class Encoded:
    """A table whose values have numbers, which :meth:`Encoder.dictionaries` explains."""

    mapping: Mapping
    columns: Sequence[Values]
    distinct: bool = False


class Encoder:
    """Numbers the values of tables, one after the other."""

    def __init__(self) -> None:
        self.tables: list[Encoded] = []
        self._names: dict[Sort, _Dictionary] = {}
        self._literals: dict[Sort, _Dictionary] = {}

    def add(self, table: Staged) -> tuple[Callable[[], None], Callable[[], None]]:
        """Return what numbers the names in a table and what numbers its literals, which two threads may do.

        Names, and literals, have to be numbered in the order in which their tables were added.
        """
        found: list[Values] = []
        self.tables.append(Encoded(table.mapping, found, table.distinct))
        return partial(self._number, table, self._names, found), partial(self._number, table, self._literals, found)

    def _number(self, table: Staged, sorts: dict[Sort, _Dictionary], found: list[Values]) -> None:
        """Number the values of a table that are of some sorts."""
        for column, sort, values, rows in _uses(table, literal=sorts is self._literals):
            if sort not in sorts:
                sorts[sort] = _Fixed() if is_word(values.type) else _Texts()
            found.append(Values(column, sort, sorts[sort].number(values), rows))

    def dictionaries(self) -> dict[Sort, arrow.Array | arrow.ChunkedArray]:
        """Return the different values of each sort, in the order of their numbers, once all tables are there."""
        return {sort: each.values() for sorts in (self._names, self._literals) for sort, each in sorts.items()}


class _Dictionary(Protocol):
    """The values of a sort."""

    def number(self, values: arrow.ChunkedArray) -> Numbers:
        """Return the numbers of some."""

    def values(self) -> arrow.Array | arrow.ChunkedArray:
        """Return the different ones."""


class _Fixed:
    """Values that are numbered with all those before."""

    def __init__(self) -> None:
        self._different = Different()

    def number(self, values: arrow.ChunkedArray) -> Numbers:
        self._type = values.type
        return _by_chunks(values, self._different.number_array)

    def values(self) -> arrow.Array:
        return self._different.array(self._type)


class _Texts:
    """Texts that are numbered with all those before."""

    def __init__(self) -> None:
        self._different = DifferentTexts()

    def number(self, values: arrow.ChunkedArray) -> Numbers:
        return _by_chunks(values, self._different.number)

    def values(self) -> arrow.ChunkedArray:
        return self._different.values()


def _by_chunks(values: arrow.ChunkedArray, number: Callable[[arrow.Array, Numbers], object]) -> Numbers:
    """Return the numbers of values, int32 [values]: ``number`` writes those of a chunk."""
    numbers, at = np.empty(len(values), np.int32), 0
    for chunk in values.chunks:
        number(chunk, numbers[at : at + len(chunk)])
        at += len(chunk)
    return numbers


def _uses(table: Staged, *, literal: bool) -> Iterator[tuple[Column, Sort, arrow.ChunkedArray, Ints | None]]:
    """Yield the columns of a table that are names, or literals, as values that are to be numbered; see :class:`Values`.

    Of lists these are what is in them.
    """
    for column, sort, given in table.columns:
        if literal and column.role == "ID" and column.name:
            yield Column(column.column, "", column.name), _id_property(sort), given, None
        if literal is not sort.literal:
            continue
        if column.role == "LABEL":
            names, rows = _names(given.combine_chunks(), table.mapping.dialect.list_delimiter)
            yield column, NAME, names, rows
        elif arrow.is_list(given.type):
            lists = given.combine_chunks()
            yield column, sort, arrow.ChunkedArray([lists.flatten()]), parents(lists)
        else:
            yield column, sort, given, None


def _id_property(sort: Sort) -> Sort:
    """Return what ids are as properties."""
    return INTEGER if sort.type == "BIGINT" else Sort(True, sort.type)


def _names(given: arrow.Array, delimiter: str) -> tuple[arrow.ChunkedArray, Ints]:
    """Return the names that stand in texts, or in lists of such, and the rows of each; empty ones are none."""
    rows = np.arange(len(given))
    if arrow.is_list(given.type):
        given, rows = given.flatten(), parents(given)
    distinct, which = numbered_texts(given)
    parts = [[part.strip(" ") for part in text.split(delimiter)] for text in arrow.pylist(distinct)]
    lists = arrow.array([[part for part in some if part] for some in parts], arrow.list_of(arrow.STRING))
    chosen = lists.take(which[which >= 0])
    return arrow.ChunkedArray([chosen.flatten()]), rows[which >= 0][parents(chosen)]


def parents(lists: arrow.Array) -> Ints:
    """Return the rows of the values in lists."""
    return np.repeat(np.arange(len(lists)), lists.lengths())
