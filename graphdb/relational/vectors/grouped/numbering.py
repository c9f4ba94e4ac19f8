"""Numbers of values, the same for equal ones: what rows are grouped by, and their different values are counted by."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.relational.vectors.algebra import PropertyOf, Vector
from graphdb.relational.vectors.expressions import evaluated, texts_by_numbers
from graphdb.relational.vectors.frames import Frame
from graphdb.relational.vectors.numbers import SPREAD, NotVectorized, ordinal
from graphdb.relational.vectors.typed.mixed import reals_of_property
from graphdb.relational.vectors.typed.unions import as_floats
from graphdb.snapshot.properties import Properties
from graphdb.storage.arrays.texts import number_integers, numbered

Ints = NDArray[np.int64]


def numbered_key(key: Vector, frame: Frame, properties: Properties) -> tuple[Ints, int]:
    """Return numbers of the values of an expression, the same for equal ones, and a bound of them."""
    if (coded := texts_by_numbers(key, frame, properties)) is not None:
        numbers, texts = coded
        return numbers + 1, len(texts) + 1
    if isinstance(key, PropertyOf) and (of_vertices := texts_of_vertices(key, frame, properties)) is not None:
        return numbered_values(of_vertices)
    if isinstance(key, PropertyOf) and (reals := reals_of_property(key, frame, properties)) is not None:
        return numbered_values(reals)
    return numbered_values(evaluated(key, frame, properties))


def texts_of_vertices(key: PropertyOf, frame: Frame, properties: Properties) -> arrow.Array | None:
    """Return numbers of the texts of vertices, the same for equal ones; None where these are not numbered."""
    ids = frame.column(key.vertex.name)
    column = properties.source(key.label, len(ids))
    if column is None or len(column.values) > SPREAD * len(ids) + 256 or (coded := column.codes()) is None:
        return None
    found = coded[0].gather(ids)
    return found if isinstance(found, arrow.Array) else found.combine_chunks()


def numbered_values(array: arrow.Array) -> tuple[Ints, int]:
    """Return numbers of values, the same for equal ones, and a bound of them."""
    if arrow.is_string(array.type):
        distinct, found = numbered(array)
        return (found + 1, len(distinct) + 1) if array.null_count else (found, max(len(distinct), 1))
    if arrow.is_struct(array.type):
        return _numbered_struct(array)
    if arrow.is_union(array.type) or array.type.format == "g":
        return _numbered_floats(*as_floats(array))
    within = within_range(array, SPREAD * len(array) + 256)
    if within is not None:
        return within
    data = ordinal(array)
    if not array.null_count:
        different, numbers = number_integers(data)
        return numbers, len(different)
    there = array.is_valid()
    different, numbers = number_integers(np.where(there, data, data[there][0]))
    return np.where(there, numbers, len(different)), len(different) + 1


def _numbered_struct(array: arrow.Array) -> tuple[Ints, int]:
    """Return numbers of structs by those of their fields; of null, a number of its own."""
    if array.type.fields[0].name == "moment":
        raise NotVectorized  # equal moments may have different offsets
    codes, bound = np.zeros(len(array), np.int64), 1
    for field in array.children:
        codes, bound = paired(codes, bound, *numbered_values(field))
    return (codes, bound) if not array.null_count else (np.where(array.is_valid(), codes, bound), bound + 1)


def _numbered_floats(floats: NDArray[np.float64], there: NDArray[np.bool_]) -> tuple[Ints, int]:
    """Return numbers of floating-point numbers; NaN is NaN, and those that are not ``there`` have one of their own."""
    floats[np.isnan(floats)] = np.nan  # of all that are, one
    different, numbers = number_integers(floats.view(np.int64))
    return np.where(there, numbers, len(different)), len(different) + 1


def paired(codes: Ints, bound: int, found: Ints, span: int) -> tuple[Ints, int]:
    """Return numbers of pairs of numbers, of which the first are below ``bound`` and the second below ``span``."""
    if float(bound) * span >= 2.0**62:
        codes, bound = dense(codes, bound)
    return (codes * span + found, bound * span) if bound > 1 else (found, span)


def within_range(array: arrow.Array, most: int) -> tuple[Ints, int] | None:
    """Return integers, truth values or dates less the least of them, and a bound of these numbers; None above ``most``.

    Null has a number of its own, the last.
    """
    found = range_of(array, most)
    return None if found is None else (found[0] - found[1], found[2])


def range_of(array: arrow.Array, most: int) -> tuple[Ints, int, int] | None:
    """Return integers, truth values or dates as integers, the least of them, and a bound of how many there may be; None
    above ``most``.

    Null has an integer of its own, the last.
    """
    data = ordinal(array)
    there = array.is_valid() if array.null_count else None
    some = data if there is None else data[there]
    if not len(some):
        return np.zeros(len(data), np.int64), 0, 1
    low = int(some.min())
    span = int(some.max()) - low + 1
    if span > most:
        return None
    return (data, low, span) if there is None else (np.where(there, data, low + span), low, span + 1)


def dense(codes: Ints, bound: int) -> tuple[Ints, int]:
    """Return numbers without gaps in the place of others below a bound."""
    if bound <= SPREAD * len(codes) + 256:
        there = np.zeros(bound, bool)
        there[codes] = True
        return (np.cumsum(there) - 1)[codes], int(np.count_nonzero(there))
    distinct, found = number_integers(codes)
    return found, len(distinct)
