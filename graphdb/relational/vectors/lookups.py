"""Columns that rows get of others by an integer that only one of these has: an outer join that is a gather."""

from __future__ import annotations

import numpy as np

from graphdb.common import arrow
from graphdb.relational.vectors.algebra import Lookup
from graphdb.relational.vectors.frames import Frame, Ints, Maker
from graphdb.relational.vectors.numbers import numeric, require
from graphdb.storage.arrays.texts import filled, gathered, taken

_SPREAD = 16
"""Places for each of the others, at most, of an array that has one for each key."""


def looked_up(lookup: Lookup, frame: Frame, others: Frame) -> Frame:
    """Return rows with the columns that others have for their keys.

    Raises
    ------
    NotVectorized
        SQL has to join them: a key is null, comes twice, or is far from the others.
    """
    mine, theirs = frame.column(lookup.key[0]), others.column(lookup.key[1])
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
            return filled(found, arrow.numbers(np.full(len(found), default)))

        return make

    return Frame(len(frame), maker_of)


def _places(mine: Ints, theirs: Ints) -> Ints:
    """Return where each key stands among others; -1 for nowhere."""
    if not len(theirs):
        return np.full(len(mine), -1)
    low, high = int(theirs.min()), int(theirs.max())
    require(high - low < _SPREAD * len(theirs) + 4096)
    place = np.full(high - low + 1, -1)
    place[theirs - low] = np.arange(len(theirs))
    require(int(np.count_nonzero(place >= 0)) == len(theirs))
    found = gathered(arrow.numbers(place), low, mine)
    assert found is not None
    array = found[0]
    assert array.data is not None
    return array.data if array.valid is None else np.where(array.valid, array.data, -1)
