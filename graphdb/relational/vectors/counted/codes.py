"""Rows counted by what a clause takes of them, in one pass that reads each value where it stands.

A property of a vertex is gathered by its id: where few values differ, the rows need no column of them, but a number of
each (:mod:`graphdb.storage.arrays.code_kernels`), and the numbers of all columns make one, by which rows are counted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.relational.vectors.algebra import ColumnOf, Constant, LabelOf, OfItems, Operation, PropertyOf, Vector
from graphdb.relational.vectors.counted.narrowed import results_in_place, results_of_values
from graphdb.relational.vectors.numbers import FITS, is_repeated, ordinal
from graphdb.relational.vectors.pieces import in_pieces
from graphdb.relational.vectors.typed.temporal import DAY, NARROWING, UNITS, is_instant, part_of_days
from graphdb.snapshot.properties import Properties
from graphdb.storage.arrays.arrow import values
from graphdb.storage.arrays.texts import codes_of_texts, taken

Ints = NDArray[np.int64]

_MOST = 1 << 16
"""Numbers of rows that may differ, at most: how often each came stays in the processor's cache."""

_FEWER = 8
"""Times by which they must be fewer than the rows."""

_OFTEN = 2
"""Rows for each value, at least, where expressions are computed of all values of a property."""

_PIECE = 1 << 18
"""Rows of a piece: they take a millisecond or two."""

_NEAR = 1 << 52
"""How far values may be apart of which days are made: float64 has all such integers."""


class Parts(ABC):
    """What expressions consist of: values such that all rows that have the same have the same results."""

    def take(self, vector: Vector) -> bool:
        """Take in what an expression consists of; False where that has too many values."""
        match vector:
            case Constant():
                return True
            case ColumnOf() | PropertyOf():
                return self.number(vector)
            case LabelOf(numbers):
                return self.take(numbers)
            case OfItems():
                return all(map(self.take, beside_items(vector)))
            case Operation(operator, operands):
                return all(map(self.take, operands)) or (operator in NARROWING and self.number(vector))

    @abstractmethod
    def number(self, vector: Vector) -> bool:
        """Take in the values of an expression as one part; False where they are too many."""


class Counted(NamedTuple):
    """Rows that have been counted by their numbers."""

    places: Ints
    """Where a row of each number stands."""
    counts: Ints
    """How many rows have it."""
    totals: dict[Vector, tuple[arrow.Array, Ints]]
    """What some values of these add up to, null where all are, and how many are not."""


def beside_items(vector: OfItems) -> list[Vector]:
    """Return what is taken of the rows of lists: the lists, and what is computed of their items takes besides these."""
    outer = [vector.lists] if vector.start is None else [vector.lists, vector.start]
    return [*outer, *(each for inner in vector.inner for each in leaves(inner, {vector.name}))]


def leaves(vector: Vector, items: AbstractSet[str] = frozenset()) -> list[Vector]:
    """Return the columns, properties and labels that an expression takes, those of items of lists left out."""
    match vector:
        case ColumnOf(name) | PropertyOf(ColumnOf(name)) | LabelOf(ColumnOf(name)):
            return [] if name in items else [vector]
        case Operation(_, operands):
            return [each for operand in operands for each in leaves(operand, items)]
        case OfItems():
            return [each for part in beside_items(vector) for each in leaves(part, items)]
        case Constant():
            return []


@dataclass
class Codes(Parts):
    """Numbers of rows of a table, by the values that expressions consist of."""

    table: arrow.Table
    properties: Properties
    columns: dict[Vector, tuple[list[int], float] | None] = field(default_factory=dict)
    """The cells that say how an expression's numbers are made; None of one that is the same for all rows."""
    count: int = 1
    """A bound of how many different numbers there are."""
    arrays: list[object] = field(default_factory=list)
    """What is read by its address."""
    ids: dict[tuple[int, ...], NDArray[np.signedinteger[Any]]] = field(default_factory=dict)
    """The ids of rows, by the pieces that they were in."""
    added: dict[Vector, tuple[list[int], bool]] = field(default_factory=dict)
    """The cells that say where values are that are added up, and whether these are floating-point numbers."""

    def take(self, vector: Vector) -> bool:
        """Take in what an expression consists of: its results, where these are fewer than the values of the column or
        property that it is computed of alone.
        """
        if isinstance(vector, Operation) and (vector in self.columns or self._narrow(vector)):
            return True
        return super().take(vector)

    def _narrow(self, vector: Operation) -> bool:
        """Say how the results of an expression over one column are numbered, by a table; False where these are many."""
        of = set(leaves(vector))
        leaf = next(iter(of), None)
        if len(of) != 1 or leaf in self.columns or not isinstance(leaf, ColumnOf | PropertyOf):
            return False
        if vector.operator == "items":  # are several values
            return False
        source = self._place(leaf)
        if source is None or len(source.values) > _FEWER * len(self.table):
            return False
        most = min(_MOST, len(self.table) / _FEWER)
        texts = codes_of_texts(source.values)
        array = source.values if texts is None else texts[0]
        bounds = _bounds(array)
        if bounds is not None and bounds[1] - bounds[0] < most:
            found = results_of_values(vector, leaf, source.values, array, bounds, self.properties)
        elif self._source(leaf) is not None and _OFTEN * len(source.values) <= len(self.table):
            found = results_in_place(vector, leaf, source.values, self.properties)
            array = source.values if found is None else arrow.numbers(found[0])
            bounds = None
        else:
            return False
        if found is None or self.count * found[1] > most:
            return False
        self.arrays.append(found[0])
        by_value = (0, 0) if bounds is None else (bounds[0], found[0].ctypes.data)
        self.columns[vector] = [*self._cells(array, source), by_value[0], 0, 1, 0, by_value[1], found[1]], 1.0
        self.count *= found[1]
        return True

    def number(self, vector: Vector) -> bool:
        """Say how an expression is numbered; False where it has too many values, or they do not stand in an array."""
        if vector in self.columns:
            return True
        part, values_of = "", vector
        if isinstance(vector, Operation):
            part, (values_of,) = vector.operator, vector.operands
        source = self._source(values_of)
        if source is not None:
            return self._put(vector, source, part)
        if part or not isinstance(vector, ColumnOf):
            return False
        column = self.table.column(vector.name)
        if isinstance(column, arrow.DelayedArray) and column.is_made_in_parts:
            return False
        if the_one(column) is not None:
            self.columns[vector] = None
            return True
        return self._put(vector, arrow.Gathered(column.combine_chunks(), 0, _NO_IDS))

    def _place(self, vector: Vector) -> arrow.Gathered | None:
        """Return where the values of a column or property stand; None where that is not one array."""
        source = self._source(vector)
        if source is not None or not isinstance(vector, ColumnOf):
            return source
        column = self.table.column(vector.name)
        if isinstance(column, arrow.DelayedArray) and column.is_made_in_parts:
            return None
        return arrow.Gathered(column.combine_chunks(), 0, _NO_IDS)

    def _source(self, vector: Vector) -> arrow.Gathered | None:
        """Return what a column, or a property of the vertices in one, is gathered from."""
        match vector:
            case ColumnOf(name):
                return _source(self.table.column(name))
            case PropertyOf(vertex, label):
                ids = self.table.column(vertex.name)
                found = self.properties.source(label, len(ids))
                return None if found is None else found.delayed(ids).source
        return None

    def _put(self, vector: Vector, source: arrow.Gathered, part: str = "") -> bool:
        """Say how values, or a part of days or of the time of a day, are numbered."""
        many = len(source.values) > _FEWER * len(self.table)  # to number them would take longer than to count
        texts = None if part or many else codes_of_texts(source.values)
        array = _in_utc(source.values) if texts is None else texts[0]
        bounds = _bounds(array)
        if bounds is None or array.data is None:
            return False
        least, most = bounds
        unit, cycle, lookup = 1, 0, None
        if part:
            of_moments = arrow.is_timestamp(array.type)
            if most - least >= _NEAR or not (of_moments or arrow.is_date(array.type)):
                return False
            if of_moments:
                least, most = least // DAY * DAY, most // DAY
                unit = DAY
            first = least // DAY if of_moments else least
        if part in UNITS:
            if not of_moments:
                return False
            unit, cycle = UNITS[part]
            span = cycle + 1
        elif part:
            if most - first >= _MOST:
                return False
            lookup, span = _numbered_days(part, first, most)
        else:
            span = most - least + 2
        if self.count * span > min(_MOST, len(self.table) / _FEWER):
            return False
        self.arrays.append(lookup)
        shift = (unit & -unit).bit_length() - 1
        table = 0 if lookup is None else lookup.ctypes.data
        cells = [*self._cells(array, source), least, shift, unit >> shift, cycle, table, span]
        self.columns[vector] = cells, 1 / (unit >> shift)
        self.count *= span
        return True

    def _cells(self, array: arrow.Array, source: arrow.Gathered) -> list[int]:
        """Return the cells that say where values are, and which of them each row has."""
        assert array.data is not None
        data = np.ascontiguousarray(array.data)
        valid = None if array.valid is None else np.ascontiguousarray(array.valid)
        ids = None if source.ids is _NO_IDS else self._ids(source)
        self.arrays += [data, valid]
        at = [0 if each is None else each.ctypes.data for each in (valid, ids)]
        return [
            data.ctypes.data,
            data.itemsize,
            at[0],
            len(data),
            source.first,
            at[1],
            8 if ids is None else ids.itemsize,
        ]

    def add(self, vector: Vector) -> arrow.DataType | None:
        """Take in values that are added up where rows have the same number; return their type, None of others than
        integers and floating-point numbers of eight bytes that stand in an array, and have sums of any rows.
        """
        source = self._place(vector)
        if source is None or source.values.type not in (arrow.INT64, arrow.FLOAT64) or source.values.data is None:
            return None
        if source.values.type == arrow.INT64:
            bounds = _bounds(source.values)
            if bounds is None or max(-bounds[0], bounds[1]) * len(self.table) >= FITS:
                return None
        if vector not in self.added:
            from graphdb.storage.arrays.code_kernels import CELLS, ID_SIZE

            unused = [0] * (CELLS - ID_SIZE - 1)
            self.added[vector] = [*self._cells(source.values, source), *unused], source.values.type == arrow.FLOAT64
        return source.values.type

    def _ids(self, source: arrow.Gathered) -> NDArray[np.signedinteger[Any]]:
        """Return the ids of rows, in one array: those of columns beside each other are the same pieces."""
        key = tuple(map(id, source.ids.chunks))
        if key not in self.ids:
            self.ids[key] = np.ascontiguousarray(values(source.ids))
        return self.ids[key]

    def counted(self, threads: int, check: Callable[[], None]) -> Counted:
        """Return a row of each number, how many rows have it, and what values that are added up come to."""
        from graphdb.storage.arrays import code_kernels as kernels

        cells, inverses = self._columns()
        added = np.array([each for each, _ in self.added.values()], np.int64).reshape(-1, kernels.CELLS)
        are_real = np.array([real for _, real in self.added.values()], bool)
        rows, shape = len(self.table), (len(added), self.count)

        def count(number: int) -> tuple[NDArray[Any], ...]:
            counts, last = np.zeros(self.count, np.int32), np.zeros(self.count, np.int32)
            begin, end = number * _PIECE, min((number + 1) * _PIECE, rows)
            scratch = np.empty(kernels.BLOCK, np.int32)
            if not len(added):
                kernels.count_numbers(cells, inverses, begin, end, scratch, counts, last)
                return counts, last
            sums = np.zeros(shape, np.int64), np.zeros(shape), np.zeros(shape, np.int32)
            kernels.add_by_numbers(
                cells, inverses, added, are_real, begin, end, scratch, counts, last, sums[0], sums[1], sums[2]
            )
            return counts, last, *sums

        found = in_pieces(count, -(-rows // _PIECE), threads, check)
        counts, last, *sums = (np.array(each) for each in zip(*found, strict=True))
        counts = counts.sum(axis=0, dtype=np.int64)
        some = np.flatnonzero(counts)
        whole, real, there = (each.sum(axis=0)[:, some] for each in sums) if sums else ([], [], [])
        totals = {
            vector: (arrow.numbers(real[i] if are_real[i] else whole[i], there[i] > 0), there[i].astype(np.int64))
            for i, vector in enumerate(self.added)
        }
        return Counted(last.max(axis=0)[some].astype(np.int64), counts[some], totals)

    def numbered(self, threads: int, check: Callable[[], None]) -> tuple[NDArray[np.int32], Ints]:
        """Return the number of each row, and a row (its place) of each number, 0 of those that no row has."""
        from graphdb.storage.arrays import code_kernels as kernels

        cells, inverses = self._columns()
        rows = len(self.table)
        numbers = np.empty(rows, np.int32)

        def write(piece: int) -> NDArray[np.int32]:
            last = np.zeros(self.count, np.int32)
            begin, end = piece * _PIECE, min((piece + 1) * _PIECE, rows)
            kernels.write_numbers(cells, inverses, begin, end, np.empty(kernels.BLOCK, np.int32), numbers, last)
            return last

        found = in_pieces(write, -(-rows // _PIECE), threads, check)
        return numbers, np.max(found, axis=0).astype(np.int64)

    def _columns(self) -> tuple[Ints, NDArray[np.float64]]:
        """Return the cells of all columns whose numbers differ, and what these are divided by."""
        from graphdb.storage.arrays import code_kernels as kernels

        columns = [each for each in self.columns.values() if each is not None]
        cells = np.array([each for each, _ in columns], np.int64).reshape(-1, kernels.CELLS)
        return cells, np.array([inverse for _, inverse in columns], np.float64)

    def rows_at(self, names: Sequence[str], places: Ints) -> dict[str, arrow.Array]:
        """Return some columns of the rows at some places; what is gathered, of these rows alone."""
        columns = {}
        for name in names:
            column = self.table.column(name)
            source = _source(column)
            if source is None:
                columns[name] = taken(column.combine_chunks(), places)
                continue
            at = self._ids(source)[places].astype(np.int64) - source.first
            at[(at < 0) | (at >= len(source.values))] = -1
            columns[name] = taken(source.values, at)
        return columns


@lru_cache(64)
def _numbered_days(part: str, first: int, last: int) -> tuple[NDArray[np.int32], int]:
    """Return a part of each of some days, less the least of them, and a bound of these numbers, null's among them."""
    parts = part_of_days(part, first, last)
    numbers = (parts - parts.min()).astype(np.int32)
    return numbers, int(numbers.max()) + 2


_NO_IDS = arrow.ChunkedArray([], arrow.INT64)
"""The ids of a column that has a value for each row."""

_known: WeakKeyDictionary[arrow.Array, tuple[int, int] | None] = WeakKeyDictionary()
"""The bounds of columns in memory: they are asked for again and again."""


def _bounds(array: arrow.Array) -> tuple[int, int] | None:
    """Return the least and the greatest of integers of four or eight bytes, truth values, dates or moments; None of
    others, or of none.
    """
    if array.type == arrow.BOOL:
        return 0, 1
    if array in _known:
        return _known[array]
    found = None
    whole = arrow.is_integer(array.type) and array.type != arrow.UINT64
    microseconds = arrow.is_timestamp(array.type) and array.type.unit == "us"
    if (whole or microseconds or arrow.is_date(array.type)) and array.type.dtype in (np.int32, np.int64):
        data = ordinal(array)
        some = data if array.valid is None else data[array.valid]
        if len(some):
            found = int(some.min()), int(some.max())
    _known[array] = found
    return found


_moments: WeakKeyDictionary[arrow.Array, arrow.Array | None] = WeakKeyDictionary()
"""Points in time in UTC without their offsets; None of those that have some."""


def _in_utc(array: arrow.Array) -> arrow.Array:
    """Return points in time at offsets as plain ones, where all offsets are 0; any other array as it is."""
    if not is_instant(array.type) or not array.children:
        return array
    if array not in _moments:
        moments, offsets = array.field("moment"), array.field("offset")
        assert offsets.data is not None
        valid = [each for each in (array.valid, moments.valid) if each is not None]
        there = np.logical_and.reduce(valid) if valid else None
        _moments[array] = None if offsets.data.any() else arrow.Array(moments.type, len(array), there, moments.data)
    found = _moments[array]
    return array if found is None else found


def _source(column: arrow.ChunkedArray) -> arrow.Gathered | None:
    return column.source if isinstance(column, arrow.DelayedArray) else None


def the_one(column: arrow.ChunkedArray) -> int | None:
    """Return the integer that all rows have, as far as that is seen without reading them: it is in memory once in each
    piece; None where they may have several.
    """
    parts = [chunk.data for chunk in column.chunks if chunk.valid is None and chunk.data is not None]
    if len(parts) < len(column.chunks) or not all(map(is_repeated, parts)):
        return None
    found = {int(part[0]) for part in parts if len(part)}
    return found.pop() if len(found) == 1 else None
