"""The vertices that rows give a match to start from: as arrays where the rows are in memory, by an index, or by SQL."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.values.types import INTEGER, STRING
from graphdb.relational.program import Given
from graphdb.relational.projection.lookups import LOOKED_FOR
from graphdb.relational.snapshot import Snapshot
from graphdb.storage.arrays.arrow import values
from graphdb.storage.arrays.sorted_sets import each_once
from graphdb.storage.arrays.texts import number_integers

Ids = NDArray[np.int64]

_LARGE = 1 << 17
"""Vertices with a property up to which all are looked at for the values of some rows, ..."""

_MORE = 16
"""... and of more so many for each row."""


_AS_MANY = 4
"""Vertices with a property for each row, at most, where all of them are joined."""


def given_vertices(given: Given, tables: Mapping[str, arrow.Table], snapshot: Snapshot) -> Ids:
    """Return the vertices that rows give, each once, sorted.

    Parameters
    ----------
    tables
        The rows in memory, by their names.
    """
    column = _column(given.column, tables)
    if column is not None:
        found = values(column.drop_null())
    elif (whole := _of_many(given, tables, snapshot)) is not None:
        return snapshot.store.to_vertices(whole)
    elif (indexed := _by_key(given, tables, snapshot)) is not None:
        found = indexed
    elif (scanned := _by_column(given, tables, snapshot)) is not None:
        return snapshot.store.to_vertices(scanned)
    else:
        found = snapshot.connection.columns(f"SELECT id FROM ({given.sql})", given.parameters)["id"]
    return each_once(snapshot.store.to_vertices(np.asarray(found, np.int64)), snapshot.graph.vertices)


def _of_many(given: Given, tables: Mapping[str, arrow.Table], snapshot: Snapshot) -> Ids | None:
    """Return all vertices that have a property, where rows with texts, dates or moments of it are about as many: that
    others have none of these the join finds sooner.
    """
    column = None if given.key is None else _column(given.key.column, tables)
    if given.key is None or column is None or len(column) <= LOOKED_FOR:
        return None
    text = arrow.is_string(column.type)
    if not text and not arrow.is_date(column.type) and not arrow.is_timestamp(column.type):
        return None
    label, properties = given.key.label, snapshot.properties
    if label.triples > _AS_MANY * len(column) or not properties.in_memory(label):
        return None
    if text and properties.type_of(label) != STRING:
        return None
    if (stored := properties.array(label)) is None:
        return None
    return stored.vertices() if text or stored.values.type == column.type else None


def _by_key(given: Given, tables: Mapping[str, arrow.Table], snapshot: Snapshot) -> Ids | None:
    """Return the vertices that have one of the rows' values of a property; None where no index says which."""
    if given.key is None:
        return None
    column = _column(given.key.column, tables)
    if column is not None and len(column) <= LOOKED_FOR:
        found = list(dict.fromkeys(arrow.pylist(column.drop_null())))
    elif column is not None and arrow.is_integer(column.type):
        some = number_integers(values(column.drop_null()))[0]
        if len(some) > LOOKED_FOR:
            return None
        found = some.tolist()
    else:
        found = [value for (value,) in snapshot.connection.rows(given.key.values, given.parameters)]
    return None if len(found) > LOOKED_FOR else snapshot.keys.find(given.key.label, found)


def _by_column(given: Given, tables: Mapping[str, arrow.Table], snapshot: Snapshot) -> Ids | None:
    """Return the vertices that have one of the rows' integers as a property, of all that have it, if these are not
    many more than the rows; None where it is in no column.
    """
    if given.key is None or (column := _column(given.key.column, tables)) is None:
        return None
    label, properties = given.key.label, snapshot.properties
    if label.triples > _MORE * len(column) + _LARGE or not properties.in_memory(label):
        return None
    if properties.type_of(label) != INTEGER or not arrow.is_integer(column.type):
        return None
    if (stored := properties.array(label)) is None:
        return None
    vertices, found = stored.rows()
    wanted = values(column.drop_null()).astype(np.int64, copy=False)
    return vertices[np.isin(values(found), wanted)]


def _column(of: tuple[str, ...] | None, tables: Mapping[str, arrow.Table]) -> arrow.Array | None:
    """Return a column of rows in memory, the items of its lists, or a field of its structs that are not null."""
    rows = None if of is None else tables.get(of[0])
    if rows is None or of is None:
        return None
    found = rows.column(of[1]).combine_chunks()
    if arrow.is_list(found.type):
        return found.flatten()
    return found.drop_null().field(of[2]) if len(of) > 2 else found
