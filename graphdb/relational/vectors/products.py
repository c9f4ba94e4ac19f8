"""All pairs of some rows with others, of which conditions leave those that are equal, or within intervals.

Several equations are one: of the values of a row one integer is made, and pairs are joined by its hashes.  Else, of
the conditions that compare something of one side with something of the other, those are taken that leave the fewest
pairs: the values of one side are sorted, and each row of the other finds its interval by binary search.  An equation is
an interval of one value.  No pair is made that they do not leave.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.relational.vectors.algebra import Operation, Vector, names_of
from graphdb.relational.vectors.expressions import evaluated
from graphdb.relational.vectors.frames import Frame, Maker, made_once
from graphdb.relational.vectors.numbers import numeric, ordinal, require
from graphdb.relational.vectors.pieces import in_pieces
from graphdb.snapshot.properties import Properties
from graphdb.storage.arrays.arrow import values
from graphdb.storage.arrays.texts import number_integers, numbered_texts

Ints = NDArray[np.int64]

_MOST = 1 << 20
"""Pairs that are made, at most."""

_PIECE = 1 << 14
"""Rows of a piece, at least: to start a thread takes as long as to look for the pairs of a thousand or two."""

_FEW = 8
"""Pairs for each row of both sides that are not worth to look for fewer."""

_SPREAD = 4
"""Integers for each value, at most, where intervals are looked up by these themselves."""

_PACKED = 1 << 63
"""Values of several columns up to which one integer has a place for each."""

_WHOLE = 1 << 53
"""Integers up to here are floating-point numbers, too."""

ROW = "row"
"""The column of pairs that says which of the rows each is of."""

_MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class Product:
    """All pairs of some rows with others."""

    rows: arrow.Table
    others: arrow.Table
    retained: tuple[str, ...]
    """The columns of the rows that the pairs have, …"""
    added: Mapping[str, str]
    """… and the names of further ones, with the columns of the others that they are."""
    same: tuple[tuple[str, str], ...] = ()
    """The columns of the rows, and those of the others, that have to be equal."""


class _Compared(NamedTuple):
    """A condition: what it compares of the rows, by which operator, with what of the others."""

    mine: Vector
    operator: str
    theirs: Vector


_Keys: TypeAlias = tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_], NDArray[np.bool_]]
"""Numbers in the order of the values of the rows, and of the others, and which of both can be compared."""


def pairs(
    product: Product, where: Sequence[Vector], properties: Properties, threads: int, check: Callable[[], None]
) -> tuple[Frame, tuple[Vector, ...]]:
    """Return pairs that include all those which fulfil some conditions, and the conditions that are still to be tested.

    So many threads work at most; ``check`` is called now and then, and may raise.

    Raises
    ------
    NotVectorized
        There are too many of them, or no condition compares both sides.
    """
    left = Frame.of(arrow.table({name: product.rows.column(name) for name in product.retained}))
    right = Frame.of(arrow.table({name: product.others.column(at) for name, at in product.added.items()}))
    conditions = [part for condition in where for part in _parts(condition)]
    compared = {one: found for one in conditions if (found := _compared(one, product.retained, product.added))}
    equations = {one: found for one, found in compared.items() if found.operator == "="}
    same = [
        _comparable(product.rows.column(one).combine_chunks(), product.others.column(two).combine_chunks())
        for one, two in product.same
    ]
    together: tuple[Ints, Ints] | None = None
    chosen: Collection[Vector] = equations
    if same or len(equations) > 1:
        equal = [*same, *(_both(each, left, right, properties) for each in equations.values())]
        condition, less = _integers_compared(compared, left, right, properties)
        chosen = {*equations, condition} if condition is not None else equations
        mirrored = condition is not None and compared[condition].operator == ">"
        together = _equal_pairs(equal, less, mirrored, threads, check)
    if together is not None:
        mine, theirs = together
    else:
        chosen, mine, theirs = _within(compared, left, right, properties)
        for keys, others, there, others_there in same:
            equals = np.flatnonzero((keys[mine] == others[theirs]) & there[mine] & others_there[theirs])
            mine, theirs = mine[equals], theirs[equals]

    def maker_of(name: str) -> Maker:
        if name == ROW:
            return made_once(lambda: arrow.numbers(mine))
        side, places = (left, mine) if name in product.retained else (right, theirs)
        return made_once(lambda: side.some(name, places))

    return Frame(len(mine), maker_of), tuple(condition for condition in conditions if condition not in chosen)


def _both(compared: _Compared, left: Frame, right: Frame, properties: Properties) -> _Keys:
    return _comparable(evaluated(compared.mine, left, properties), evaluated(compared.theirs, right, properties))


def _integers_compared(
    compared: Mapping[Vector, _Compared], left: Frame, right: Frame, properties: Properties
) -> tuple[Vector | None, _Keys | None]:
    """Return a condition that integers are less, or greater, than others, and these; None where there is none."""
    for condition, each in compared.items():
        if each.operator in ("<", ">"):
            found = _both(each, left, right, properties)
            if found[0].dtype == np.int64 == found[1].dtype:
                return condition, found
    return None, None


def _equal_pairs(
    equal: Sequence[_Keys], less: _Keys | None, mirrored: bool, threads: int, check: Callable[[], None]
) -> tuple[Ints, Ints] | None:
    """Return the places of the rows, and of the others, of all pairs that are equal in several columns of both, and of
    integers of which the first are less (greater if ``mirrored``); None where there are too many of them.
    """
    from graphdb.storage.arrays.column_kernels import chain_by_hash, equal_pairs

    compared = [*equal, *([] if less is None else [less])]
    some = _places([each[2] for each in compared])
    others = _places([each[3] for each in compared])
    columns = [
        (_bits(mine if some is None else mine[some]), _bits(theirs if others is None else theirs[others]))
        for mine, theirs, _, _ in compared
    ]
    bounds = columns.pop() if less is not None else (np.empty(0, np.int64), np.empty(0, np.int64))
    keys = _packed(columns)
    if len(keys[1]) >= 1 << 31:
        return None
    bits = max(1, len(keys[1]).bit_length())
    heads, following = np.full(1 << bits, -1, np.int32), np.empty(len(keys[1]), np.int32)
    chain_by_hash(keys[1], 64 - bits, heads, following)
    step = max(-(-len(keys[0]) // threads), _PIECE)

    def found_of(piece: int) -> tuple[Ints, Ints] | None:
        begin = piece * step
        mine, low = (each[begin : begin + step] for each in (keys[0], bounds[0]))
        room = min(_MOST, 2 * len(mine))
        for _ in range(2):
            pair = np.empty(room, np.int64), np.empty(room, np.int64)
            room = equal_pairs(mine, keys[1], low, bounds[1], int(mirrored), 64 - bits, heads, following, _MOST, *pair)
            if room > _MOST:
                return None
            if room <= len(pair[0]):
                break
        return pair[0][:room] + begin, pair[1][:room]

    pieces = in_pieces(found_of, max(1, -(-len(keys[0]) // step)), threads, check)
    found = [piece for piece in pieces if piece is not None]
    if len(found) < len(pieces) or sum(len(mine) for mine, _ in found) > _MOST:
        return None
    mine, theirs = (np.concatenate(each) for each in zip(*found, strict=True))
    return mine if some is None else some[mine], theirs if others is None else others[theirs]


def _places(valid: Sequence[NDArray[np.bool_]]) -> Ints | None:
    """Return the places of the rows that have all of some values; None where all do."""
    there = np.logical_and.reduce(valid)
    return None if there.all() else np.flatnonzero(there)


def _bits(keys: NDArray[Any]) -> Ints:
    """Return integers that are equal where numbers are: 0.0 and -0.0 are."""
    return (keys + 0.0).view(np.int64) if keys.dtype == np.float64 else np.ascontiguousarray(keys, np.int64)


def _packed(columns: Sequence[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    """Return integers of the rows, and of the others, that are equal where these are in each column."""
    mine, theirs = columns[0]
    if not len(mine) or not len(theirs):
        return mine, theirs
    least, span = _range(mine, theirs)
    for one, other in columns[1:]:
        low, size = _range(one, other)
        if span * size > _PACKED:
            mine, theirs, least, span = _numbered(mine, theirs)
        if span * size > _PACKED:
            one, other, low, size = _numbered(one, other)
        mine = (mine - least) * size + (one - low)
        theirs = (theirs - least) * size + (other - low)
        least, span = 0, span * size
    return mine, theirs


def _range(mine: Ints, theirs: Ints) -> tuple[int, int]:
    """Return the least of some integers, and how many there may be from it to the largest."""
    least = min(int(mine.min()), int(theirs.min()))
    return least, max(int(mine.max()), int(theirs.max())) - least + 1


def _numbered(mine: Ints, theirs: Ints) -> tuple[Ints, Ints, int, int]:
    """Return numbers of integers, the same for equal ones, the least of them, and how many there are."""
    different, numbers = number_integers(np.concatenate((mine, theirs)))
    return numbers[: len(mine)], numbers[len(mine) :], 0, len(different)


def _within(
    conditions: Mapping[Vector, _Compared], left: Frame, right: Frame, properties: Properties
) -> tuple[Collection[Vector], Ints, Ints]:
    """Return which conditions were taken, and the places of both sides of all pairs that fulfil them.

    Raises
    ------
    NotVectorized
        There are too many of them, or no condition.
    """
    by_theirs: dict[Vector, dict[Vector, _Compared]] = {}
    for condition, compared in conditions.items():
        by_theirs.setdefault(compared.theirs, {})[condition] = compared
    require(bool(by_theirs))
    by_equation = sorted(by_theirs.values(), key=lambda each: all(one.operator != "=" for one in each.values()))
    chosen = by_equation[0]
    low, high, order = _intervals([*chosen.values()], left, right, properties)
    total = int((high - low).sum())
    for each in by_equation[1:]:
        if total <= _FEW * (len(left) + len(right)):
            break
        others = _intervals([*each.values()], left, right, properties)
        if (fewer := int((others[1] - others[0]).sum())) < total:
            chosen, total, (low, high, order) = each, fewer, others
    require(total <= _MOST)
    counts = high - low
    mine = np.repeat(np.arange(len(counts)), counts)
    ends = np.cumsum(counts)
    theirs = order[np.repeat(low - (ends - counts), counts) + np.arange(total)]
    return chosen, mine, theirs


def _parts(condition: Vector) -> Iterator[Vector]:
    """Yield the conditions all of which hold where one does."""
    if isinstance(condition, Operation) and condition.operator == "AND":
        for operand in condition.operands:
            yield from _parts(operand)
    else:
        yield condition


def _compared(condition: Vector, mine: Collection[str], theirs: Collection[str]) -> _Compared | None:
    """Return what a condition compares, one side being of the rows alone and the other of the others."""
    match condition:
        case Operation("=" | "<" | "<=" | ">" | ">=" | "same text" as operator, (one, other)):
            operator = "=" if operator == "same text" else operator
            first, second = names_of(one), names_of(other)
            if first and second and first <= {*mine} and second <= {*theirs}:
                return _Compared(one, operator, other)
            if first and second and first <= {*theirs} and second <= {*mine}:
                return _Compared(other, _MIRRORED[operator], one)
    return None


def _intervals(
    compared: Sequence[_Compared], left: Frame, right: Frame, properties: Properties
) -> tuple[Ints, Ints, Ints]:
    """Return for each of the rows from where up to where the others fulfil conditions on one value of theirs, in the
    order of that; and that order.
    """
    theirs = evaluated(compared[0].theirs, right, properties)
    low, high = np.zeros(len(left), np.int64), np.full(len(left), len(right))
    order: Ints | None = None
    for each in compared:
        mine = evaluated(each.mine, left, properties)
        keys, others, there, others_there = _comparable(mine, theirs)
        order = np.flatnonzero(others_there)
        if each.operator == "=" and len(compared) == 1 and (found := _equal(keys, others, there, order)) is not None:
            return found
        order = order[np.argsort(others[order], kind="stable")]
        sorted_keys = others[order]
        high = np.minimum(high, len(order))
        if each.operator in ("=", "<", "<="):  # theirs are not less than mine
            begins = np.searchsorted(sorted_keys, keys, "right" if each.operator == "<" else "left")
            low = np.maximum(low, begins)
        if each.operator in ("=", ">", ">="):
            ends = np.searchsorted(sorted_keys, keys, "left" if each.operator == ">" else "right")
            high = np.minimum(high, ends)
        high = np.where(there, high, 0)
    assert order is not None
    return low, np.maximum(high, low), order


def _equal(
    keys: NDArray[Any], others: NDArray[Any], there: NDArray[np.bool_], some: Ints
) -> tuple[Ints, Ints, Ints] | None:
    """Return what :func:`_intervals` does for an equation of integers in a small range; None for others.

    ``there`` says which of the keys can be compared, and ``some`` which of the others.
    """
    if keys.dtype != np.int64 or others.dtype != np.int64 or not len(some):
        return None
    theirs = others[some]
    least, span = int(theirs.min()), int(theirs.max()) - int(theirs.min()) + 1
    if span > _SPREAD * (len(keys) + len(theirs)):
        return None
    theirs = theirs - least
    ends = np.append(0, np.cumsum(np.bincount(theirs, minlength=span)))
    order = some[np.argsort(theirs.astype(np.min_scalar_type(span)), kind="stable")]
    within = there & (keys >= least) & (keys < least + span)
    at = np.where(within, keys - least, 0)
    return np.where(within, ends[at], 0), np.where(within, ends[at + 1], 0), order


def _comparable(mine: arrow.Array, theirs: arrow.Array) -> _Keys:
    """Return numbers in the order of the values of two columns, and which of these can be compared: NaN is not."""
    there, others_there = mine.is_valid(), theirs.is_valid()
    if arrow.is_string(mine.type):
        require(arrow.is_string(theirs.type) and mine.type == theirs.type)
        numbers = numbered_texts(arrow.concat_arrays([mine.decoded(), theirs.decoded()]))[1]
        return numbers[: len(mine)], numbers[len(mine) :], there, others_there
    if arrow.FLOAT64 in (mine.type, theirs.type):
        keys, others = map(_real, (mine, theirs))
        return keys, others, there & ~np.isnan(keys), others_there & ~np.isnan(others)
    both_integers = arrow.is_integer(mine.type) and arrow.is_integer(theirs.type)
    require(both_integers or mine.type == theirs.type)
    return ordinal(mine), ordinal(theirs), there, others_there


def _real(array: arrow.Array) -> NDArray[np.float64]:
    if array.type == arrow.FLOAT64:
        floats: NDArray[np.float64] = values(array)
        return floats
    found = numeric(array)
    require(not len(found) or max(abs(int(found.min())), abs(int(found.max()))) <= _WHOLE)
    return found.astype(np.float64)
