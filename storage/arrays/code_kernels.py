"""Rows counted by what several columns have, each value gathered where it stands, as machine code.

A column is a row of cells (:data:`CELLS`), with which a number is made of each value; the numbers of a row's values
make one, by which it is counted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.compile.kernels import entry, fetch, inlined, load, load_real

Ints = NDArray[np.int64]

DATA, SIZE, VALID, PLACES, FIRST, IDS, ID_SIZE, LEAST, SHIFT, UNIT, CYCLE, TABLE, SPAN = range(13)
CELLS = 13
"""Cells of a column.

``DATA``, ``SIZE``, ``PLACES`` are where its values are, the bytes of one, and how many there are; ``VALID`` says where
it is said which are not null, 0 where none is.  ``IDS`` and ``ID_SIZE`` are the rows' ids, as which the values from
``FIRST`` on go; 0 where each row has the value in its place.  A value's number is how far it is above ``LEAST``, in
units of ``UNIT << SHIFT``; with a ``CYCLE``, the rest that division by it leaves, and with a ``TABLE``, which is of
int32, what stands there.  Numbers are below ``SPAN - 1``,
which is that of null.
"""

_AHEAD = 64
"""Rows from which on the value that is read then is brought into the cache."""

BLOCK = 4096
"""Rows whose numbers are made at a time: they stay in the cache."""


@inlined
def _divided(number: int, by: int, inverse: float) -> Any:
    """A quotient, by a product and a look at the remainder: a division takes ten times as long."""
    quotient = np.int64(np.float64(number) * inverse)
    left = number - quotient * by
    if left < 0:
        quotient -= 1
    elif left >= by:
        quotient += 1
    return quotient


@inlined
def _number(cells: Ints, inverse: float, like: Any, id_like: Any, begin: int, end: int, numbers: Any) -> None:
    data, size, valid, places, first = cells[DATA], cells[SIZE], cells[VALID], cells[PLACES], cells[FIRST]
    ids, least, shift, unit, cycle, table, span = (
        cells[IDS], cells[LEAST], cells[SHIFT], cells[UNIT], cells[CYCLE], cells[TABLE], cells[SPAN],
    )  # fmt: skip
    rounds = 1.0 / np.float64(max(cycle, 1))
    for i in range(begin, end):
        at = i
        if ids != 0:
            if i + _AHEAD < end:
                fetch(data + (load(ids, i + _AHEAD, id_like) - first) * size)
            at = load(ids, i, id_like) - first
        number = span - 1
        if at >= 0 and at < places and (valid == 0 or load(valid, at, np.uint8(0)) != 0):
            number = load(data, at, like) - least
            if unit > 1:
                number = _divided(number >> shift, unit, inverse)
            if cycle != 0:
                number -= _divided(number, cycle, rounds) * cycle
            if table != 0:
                number = load(table, number, np.int32(0))
        numbers[i - begin] = np.int32(numbers[i - begin] * span + number)


@inlined
def _by_ids(cells: Ints, inverse: float, like: Any, begin: int, end: int, numbers: Any) -> None:
    if cells[ID_SIZE] == 4:
        _number(cells, inverse, like, np.int32(0), begin, end, numbers)
    else:
        _number(cells, inverse, like, np.int64(0), begin, end, numbers)


@inlined
def _numbers(columns: Ints, inverses: Any, begin: int, end: int, numbers: Any) -> None:
    """Write the numbers of some rows."""
    for i in range(end - begin):
        numbers[i] = 0
    for column in range(len(columns)):
        cells = columns[column]
        if cells[SIZE] == 8:
            _by_ids(cells, inverses[column], np.int64(0), begin, end, numbers)
        elif cells[SIZE] == 4:
            _by_ids(cells, inverses[column], np.int32(0), begin, end, numbers)
        else:
            _by_ids(cells, inverses[column], np.uint8(0), begin, end, numbers)


@entry("i8[:, :], f8[:], i8, i8, i4[:], i4[:], i4[:]")
def count_numbers(
    columns: Ints,
    inverses: NDArray[np.float64],
    begin: int,
    end: int,
    numbers: NDArray[np.int32],
    counts: NDArray[np.int32],
    last: NDArray[np.int32],
) -> None:
    """Count rows by the numbers of their values.

    Parameters
    ----------
    columns : int64[columns, CELLS]
    inverses : float64[columns]
        ``1 / UNIT``.
    begin, end
        The rows; fewer than 2**31, as there are numbers.
    numbers : int32[BLOCK]
        Scratch.
    counts, last : int32[product of all SPAN]
        To each is added how many rows have it; where one of them stands is written.
    """
    at = begin
    while at < end:
        until = min(at + BLOCK, end)
        _numbers(columns, inverses, at, until, numbers)
        for i in range(until - at):
            counts[numbers[i]] += 1
            last[numbers[i]] = np.int32(at + i)
        at = until


@entry("i8[:, :], f8[:], i8, i8, i4[:], i4[:], i4[:]")
def write_numbers(
    columns: Ints,
    inverses: NDArray[np.float64],
    begin: int,
    end: int,
    scratch: NDArray[np.int32],
    numbers: NDArray[np.int32],
    last: NDArray[np.int32],
) -> None:
    """Write the numbers of rows (int32[rows]), and where one row of each number stands; as :func:`count_numbers`."""
    at = begin
    while at < end:
        until = min(at + BLOCK, end)
        _numbers(columns, inverses, at, until, scratch)
        for i in range(until - at):
            numbers[at + i] = scratch[i]
            last[scratch[i]] = np.int32(at + i)
        at = until


@inlined
def _add(cells: Ints, id_like: Any, is_real: bool, begin: int, end: int, numbers: Any, sums: Any, there: Any) -> None:
    """Add values to ``sums``, those of integers and those of floating-point numbers."""
    data, valid, places, first, ids = cells[DATA], cells[VALID], cells[PLACES], cells[FIRST], cells[IDS]
    whole, real = sums
    for i in range(begin, end):
        at = i
        if ids != 0:
            if i + _AHEAD < end:
                fetch(data + (load(ids, i + _AHEAD, id_like) - first) * 8)
            at = load(ids, i, id_like) - first
        if at >= 0 and at < places and (valid == 0 or load(valid, at, np.uint8(0)) != 0):
            number = numbers[i - begin]
            if is_real:
                real[number] += load_real(data, at)
            else:
                whole[number] += load(data, at, np.int64(0))
            there[number] += 1


@entry("i8[:, :], f8[:], i8[:, :], b1[:], i8, i8, i4[:], i4[:], i4[:], i8[:, :], f8[:, :], i4[:, :]")
def add_by_numbers(
    columns: Ints,
    inverses: NDArray[np.float64],
    added: Ints,
    are_real: NDArray[np.bool_],
    begin: int,
    end: int,
    numbers: NDArray[np.int32],
    counts: NDArray[np.int32],
    last: NDArray[np.int32],
    whole: Ints,
    real: NDArray[np.float64],
    there: NDArray[np.int32],
) -> None:
    """Count rows as :func:`count_numbers` does, and add further values of those that have the same number.

    Parameters
    ----------
    added : int64[columns, CELLS]
        Where these values are, of eight bytes each: floating-point numbers where they ``are_real``, else integers.
    whole, real, there : int64[columns, …], float64[columns, …], int32[columns, …]
        To each of ``whole`` or ``real`` is added what the values of its rows add up to, and to ``there`` how many of
        them are not null.
    """
    at = begin
    while at < end:
        until = min(at + BLOCK, end)
        _numbers(columns, inverses, at, until, numbers)
        for i in range(until - at):
            counts[numbers[i]] += 1
            last[numbers[i]] = np.int32(at + i)
        for column in range(len(added)):
            cells, sums = added[column], (whole[column], real[column])
            if cells[ID_SIZE] == 4:
                _add(cells, np.int32(0), are_real[column], at, until, numbers, sums, there[column])
            else:
                _add(cells, np.int64(0), are_real[column], at, until, numbers, sums, there[column])
        at = until
