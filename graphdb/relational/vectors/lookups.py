"""Columns that rows get of others by an integer: outer joins that are gathers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from graphdb.common import arrow
from graphdb.relational.vectors.algebra import (
    Aggregate,
    Clause,
    ColumnOf,
    Constant,
    Inner,
    Lookup,
    Operation,
    Outer,
    Unwound,
    Vector,
    names_of,
)
from graphdb.relational.vectors.expressions import evaluated
from graphdb.relational.vectors.frames import Frame, Ints, Maker, made_once
from graphdb.relational.vectors.numbers import numeric, require
from graphdb.relational.vectors.typed.lists import items_of, lists_of
from graphdb.relational.vectors.typed.unions import as_union
from graphdb.snapshot.properties import Properties
from graphdb.storage.arrays.texts import filled, gathered, taken

_SPREAD = 16
"""Places for each of the others, at most, of an array that has one for each key."""

_ORDERED = 1 << 16
"""Rows up to which they are put in order: their numbers have 16 bits."""


def looked_up(lookup: Lookup, frame: Frame, others: Frame) -> Frame:
    """Return rows with the columns that others have for their keys.

    Raises
    ------
    NotVectorized
        SQL has to join them: a key is null, or comes twice.
    """
    key, theirs = lookup.key[0], others.column(lookup.key[1])
    mine = arrow.numbers(np.arange(len(frame))) if key is None else frame.column(key)
    require(not mine.null_count and not theirs.null_count)
    at = _places(numeric(mine), numeric(theirs))
    whole = bool((at >= 0).all())
    added = {name: (column, default) for name, column, default in lookup.added}

    def maker_of(name: str) -> Maker:
        if name not in added:
            return lambda places: frame.some(name, places)
        column, default = added[name]

        def make(places: Ints | None) -> arrow.Array:
            found = taken(others.column(column), at if places is None else at[places])
            if whole or default is None:
                return found
            if default == "empty":
                items = items_of(found)
                return lists_of(items.rows, items.values, len(found), None)
            return filled(found, arrow.numbers(np.full(len(found), default)))

        return make

    return Frame(len(frame), maker_of)


def outer_joined(join: Outer, frame: Frame, others: Frame) -> Frame:
    """Return rows once for each of the others that belongs to one, and those without any; few in the order of the rows.

    Raises
    ------
    NotVectorized
        A place is null.
    """
    column = others.column(join.place)
    require(not column.null_count)
    mine, alone = numeric(column), np.ones(len(frame), bool)
    alone[mine] = False
    without = np.flatnonzero(alone)
    mine = np.concatenate((mine, without)) if len(without) else mine
    order = None
    if max(len(mine), len(frame)) <= _ORDERED and not bool((mine[1:] >= mine[:-1]).all()):
        order = np.argsort(mine.astype(np.uint16), kind="stable")  # 16 bits are sorted by radix
        mine = mine[order]
    added = dict(join.added)

    def theirs(name: str) -> arrow.Array:
        found = others.column(added[name])
        found = arrow.concat_arrays([found, arrow.nulls(len(without), found.type)]) if len(without) else found
        return found if order is None else taken(found, order)

    def maker_of(name: str) -> Maker:
        if name in added:
            return made_once(lambda: theirs(name))
        return lambda places: frame.some(name, mine if places is None else mine[places])

    return Frame(len(mine), maker_of)


def inner_joined(join: Inner, frame: Frame, others: Frame, most: int) -> Frame:
    """Return rows once for each of the others with their key, in the order of the rows.

    Raises
    ------
    NotVectorized
        A key is null, or there are more than ``most`` pairs.
    """
    mine, theirs = frame.column(join.key[0]), others.column(join.key[1])
    require(not mine.null_count and not theirs.null_count)
    keys, others_keys = numeric(mine), numeric(theirs)
    added = dict(join.added)
    once = _each_once(keys, others_keys)
    if once is not None:  # at most one each: nothing has to be sorted
        which = None if (once >= 0).all() else np.flatnonzero(once >= 0)
        places = once if which is None else once[which]
        require(len(places) <= most)
        return _paired(frame, others, added, which, places)
    order = np.argsort(others_keys, kind="stable")
    others_keys = others_keys[order]
    low = np.searchsorted(others_keys, keys)
    counts = np.searchsorted(others_keys, keys, "right") - low
    total = int(counts.sum())
    require(total <= most)
    which = np.repeat(np.arange(len(keys)), counts)
    places = order[np.repeat(low - (np.cumsum(counts) - counts), counts) + np.arange(total)]
    return _paired(frame, others, added, which, places)


def _paired(frame: Frame, others: Frame, added: Mapping[str, str], which: Ints | None, places: Ints) -> Frame:
    """Return rows at some places (None: all) with columns of others at as many of theirs."""

    def maker_of(name: str) -> Maker:
        if name in added:
            return lambda some: others.some(added[name], places if some is None else places[some])
        return lambda some: frame.some(name, some if which is None else which if some is None else which[some])

    return Frame(len(places), maker_of)


def _each_once(mine: Ints, theirs: Ints) -> Ints | None:
    """Return where each key stands among others, -1 for nowhere; None where some come twice, or lie far apart."""
    if not len(theirs) or int(theirs.max()) - int(theirs.min()) >= _SPREAD * len(theirs) + 4096:
        return None
    low = int(theirs.min())
    place = np.full(int(theirs.max()) - low + 1, -1)
    place[theirs - low] = np.arange(len(theirs))
    if int(np.count_nonzero(place >= 0)) < len(theirs):
        return None
    found = gathered(arrow.numbers(place), low, mine)
    assert found is not None
    array = found[0]
    assert array.data is not None
    return array.data if array.valid is None else np.where(array.valid, array.data, -1)


def counts_before(clause: Clause, join: Outer) -> Clause | None:
    """Return a clause that groups joined rows as one that groups those before the join, which have numbers of others.

    Eager aggregation, as in :mod:`graphdb.relational.vectors.counted.compressed`: what is grouped are rows, not pairs.
    None where more is asked of the others than how many values a column of theirs has, or how many matches a row stands
    for matters.
    """
    added = {ColumnOf(name) for name, _ in join.added}
    columns: list[tuple[str, Vector | Aggregate]] = []
    for name, each in clause.columns:
        if isinstance(each, Aggregate):
            if each != Aggregate("count", each.operand) or each.operand not in added:
                return None
            columns.append((name, Aggregate("sum", each.operand)))
        elif names_of(each) & {column.name for column in added}:
            return None
        else:
            columns.append((name, each))
    return replace(clause, columns=tuple(columns)) if clause.grouped and not clause.where else None


def counted_before(join: Outer, frame: Frame, others: Frame) -> Frame:
    """Return rows with how many values, not null, those have that belong to each, instead of the values."""
    column = others.column(join.place)
    require(not column.null_count)
    mine, added = numeric(column), dict(join.added)

    def number(name: str) -> arrow.Array:
        found = others.column(added[name])
        there = mine[found.is_valid()] if found.null_count else mine
        return arrow.numbers(np.bincount(there, minlength=len(frame)))

    def maker_of(name: str) -> Maker:
        if name in added:
            return made_once(lambda: number(name))
        return lambda places: frame.some(name, places)

    return Frame(len(frame), maker_of)


def _places(mine: Ints, theirs: Ints) -> Ints:
    """Return where each key stands among others; -1 for nowhere."""
    if not len(theirs):
        return np.full(len(mine), -1)
    found = _each_once(mine, theirs)
    if found is None:
        order = np.argsort(theirs)
        keys = theirs[order]
        require(bool((keys[1:] > keys[:-1]).all()))
        at = np.minimum(np.searchsorted(keys, mine), len(keys) - 1)
        return np.where(keys[at] == mine, order[at], -1)
    return found


def summed_before(clause: Clause, step: Unwound) -> Clause | None:
    """Return a clause that groups rows of which values are unwound as one that groups the rows themselves.

    Eager aggregation, as in :func:`counts_before`.  None where more is asked of the values than their sum, least and
    greatest, and how many rows there are.
    """
    if step.listed:
        return None
    item = ColumnOf(step.name)
    columns: list[tuple[str, Vector | Aggregate]] = []
    for name, each in clause.columns:
        if not isinstance(each, Aggregate):
            if step.name in names_of(each):
                return None
            columns.append((name, each))
        elif each == Aggregate(each.function, item, matches=each.matches) and each.function in ("sum", "min", "max"):
            columns.append((name, replace(each, operand=Operation("items", step.items))))
        elif each == Aggregate("count", None, matches=each.matches):
            columns.append((name, replace(each, function="sum", operand=Constant(len(step.items)))))
        else:
            return None
    if not clause.grouped or any(step.name in names_of(condition) for condition in clause.where):
        return None
    return replace(clause, rows=step.rows, where=(*step.where, *clause.where), columns=tuple(columns))


def unwound(step: Unwound, frame: Frame, properties: Properties, most: int) -> Frame:
    """Return rows once for each of some values of theirs.

    Raises
    ------
    NotVectorized
        They are many, or the values are not of one type.
    """
    if step.listed:
        return _unwound_lists(step, evaluated(step.items[0], frame, properties), frame, most)
    count, times = len(frame), len(step.items)
    require(count * times <= most)

    def items() -> arrow.Array:
        each = [evaluated(item, frame, properties).decoded() for item in step.items]
        if len({array.type for array in each}) > 1:
            each = [as_union(array, properties.unions()) for array in each]
        at = np.arange(count * times)
        return taken(arrow.concat_arrays(each), at % times * count + at // times)

    def maker_of(name: str) -> Maker:
        if name == step.name:
            return made_once(items)
        return lambda places: frame.some(name, (np.arange(count * times) if places is None else places) // times)

    return Frame(count * times, maker_of)


def _unwound_lists(step: Unwound, lists: arrow.Array, frame: Frame, most: int) -> Frame:
    """Return rows once for each item of their lists; null has none."""
    items = items_of(lists)
    require(len(items.rows) <= most)

    def maker_of(name: str) -> Maker:
        if name == step.name:
            return made_once(lambda: items.values)
        return lambda places: frame.some(name, items.rows if places is None else items.rows[places])

    return Frame(len(items.rows), maker_of)
