"""Small relations of integers: joined and summed by NumPy, since DuckDB takes longer to plan that; and given to SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.arrays.arrow import unnested

if TYPE_CHECKING:
    import duckdb

Ints = NDArray[np.int64]

SMALL = 200
"""Values up to which SQL is given each by itself, rows up to which all pairs are compared, and triples of a statement
up to which :mod:`graphdb.storage.statistics.incremental` counts what it changes."""


_NONE = np.empty(0, np.intp)


def rows_of_columns(*columns: NDArray[Any]) -> Ints:
    """Return columns of one length as rows, int64 [rows, columns]: sooner than ``numpy.column_stack`` does."""
    return np.array(columns, np.int64).T


def _begins(rows: Ints) -> NDArray[np.intp]:
    """Return where in sorted rows other ones begin."""
    is_first = np.ones(len(rows), bool)
    is_first[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    return is_first.nonzero()[0]


def rows_of(result: duckdb.DuckDBPyConnection) -> Ints:
    """Return the rows of a SELECT: int64 [rows, columns]."""
    return rows_of_columns(*result.fetchnumpy().values())


def listed_rows(names: Sequence[str], rows: Ints) -> tuple[str, dict[str, list[int]]]:
    """Return rows as what can stand after FROM, with its parameters."""
    return unnested(dict.fromkeys(names, "BIGINT")), dict(zip(names, rows.T.tolist(), strict=True))


def in_list(values: Ints) -> tuple[str, list[Any]]:
    """Return what stands in ``IN (…)`` for some values, and its parameters.

    Few values are listed one by one: DuckDB plans that faster than a join.
    """
    if len(values) > SMALL:
        return "SELECT unnest(?::BIGINT[])", [values.tolist()]
    return ", ".join("?" * len(values)), values.tolist()


def summed(keys: Ints, values: Ints, *, all: bool = False) -> tuple[Ints, Ints]:
    """Return distinct keys, sorted, with the sums of their values; those alone that come to something, or all."""
    if not len(keys):
        return keys, values
    distinct, sums = keys, values
    if len(keys) > 1:
        order = np.lexsort(keys.T[::-1])
        keys = keys[order]
        begins = _begins(keys)
        distinct, sums = keys[begins], np.add.reduceat(values[order], begins)
    if all:
        return distinct, sums
    chosen = sums.any(axis=1)
    return distinct[chosen], sums[chosen]


_LISTED = 64
"""Rows up to which Python sorts them sooner than NumPy begins."""


def distinct(rows: Ints) -> Ints:
    """Return the different rows, sorted.

    ``numpy.unique`` compares rows as records; Ctrl-C within that comparison comes out as a TypeError of NumPy's.
    """
    if len(rows) < 2:
        return rows
    if len(rows) <= _LISTED:
        return np.array(sorted(set(map(tuple, rows.tolist()))), np.int64)
    rows = rows[np.lexsort(rows.T[::-1])]
    return rows[_begins(rows)]


def looked_up(table: Ints, keys: Ints) -> Ints:
    """Return what a table has for each key in the columns after those of the key; 0 where it has none."""
    width = keys.shape[1]
    found = np.zeros((len(keys), table.shape[1] - width), np.int64)
    left, right = equal(keys, table[:, :width])
    found[left] = table[right, width:]
    return found


def equal(left: Ints, right: Ints) -> tuple[Ints, Ints]:
    """Return the places of rows in ``left`` and in ``right`` that are equal: a join."""
    if not len(left) or not len(right):
        return _NONE, _NONE
    if len(left) * len(right) <= SMALL * SMALL:
        at, there = np.nonzero((left[:, None, :] == right[None, :, :]).all(axis=2))
        return at, there
    rows = np.concatenate([left, right])
    order = np.lexsort(rows.T[::-1])
    number = np.empty(len(rows), np.int64)
    number[order] = np.cumsum(np.concatenate([[False], (rows[order][1:] != rows[order][:-1]).any(axis=1)]))
    mine, theirs = number[: len(left)], number[len(left) :]
    by = np.argsort(theirs, kind="stable")
    begins, ends = (np.searchsorted(theirs, mine, side, sorter=by) for side in ("left", "right"))
    lengths = ends - begins
    firsts = np.repeat(begins - np.cumsum(lengths) + lengths, lengths)
    return np.repeat(np.arange(len(left)), lengths), by[firsts + np.arange(len(firsts))]


def among(rows: Ints, others: Ints) -> NDArray[np.bool_]:
    """Which rows are among others."""
    there = np.zeros(len(rows), bool)
    if len(others) and len(rows) <= _LISTED and len(others) <= _LISTED:
        known = set(map(tuple, others.tolist()))
        there[:] = [tuple(row) in known for row in rows.tolist()]
    elif len(others):
        there[equal(rows, others)[0]] = True
    return there
