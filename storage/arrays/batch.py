"""Batches: distinct terms and triples of their codes, as loads collect them, in memory or spilled (:mod:`.spill`).

A term's code is its number among the batch's resources, or among its literals with the bit :data:`LITERAL` set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.arrow import numbers
from graphdb.common.values.terms import DATATYPE, LANGUAGE, LITERAL_BASE, Kind
from graphdb.storage.arrays.external_sort import sort_keys
from graphdb.storage.arrays.spill import SpillArray, SpillFile
from graphdb.storage.arrays.texts import number_rows

_LITERAL_BIT = 31
LITERAL = 1 << _LITERAL_BIT
"""The bit of a literal's code."""

NOTE = 1 << 30
"""The bit of a note's code, while terms are collected."""

_FEW_NOTES = 100
"""Datatypes and languages that are listed."""

Codes = NDArray[np.uint32]
Ids = NDArray[np.int64]


def ids(codes: NDArray[np.integer[Any]]) -> Ids:
    """Return the ids (int64) of codes that are those of the dictionary: all of its terms, in their order."""
    wide = codes.astype(np.int64)
    literal = wide >> _LITERAL_BIT
    literal *= LITERAL_BASE - LITERAL
    wide += literal
    return wide


class Terms(Protocol):
    """Distinct terms and triples of their codes: a :class:`Batch`, or several as one."""

    @property
    def counts(self) -> tuple[int, int]:
        """How many resources and literals there are."""

    @property
    def triples(self) -> Sequence[SpillArray]:
        """The triples, piece by piece: uint32[n, 3] each."""

    @property
    def others(self) -> Sequence[SpillArray]:
        """What is in named graphs or reified: see :attr:`Batch.others`."""

    @property
    def valued(self) -> Sequence[Valued]:
        """The literals that come first and are their values: see :attr:`Batch.valued`."""

    def iris(self) -> Iterator[arrow.Array]:
        """Yield the IRIs and blank nodes in the order of their codes, piece by piece."""

    def values(self) -> Iterator[tuple[arrow.Array, ...]]:
        """Yield the other literals in the order of their codes, piece by piece: lexical forms, datatypes, languages."""

    @property
    def datatypes(self) -> set[str | None] | None:
        """The datatypes of the other literals, None for strings; None where they are many, or not known."""

    def forget_terms(self) -> None:
        """Give back the memory that the texts of terms take."""

    def forget_triples(self) -> None:
        """Give back the memory that the triples take."""


@dataclass(frozen=True, slots=True)
class Texts:
    """Some hundred thousand texts: their bytes, where each ends (int32[n + 1]), what comes with each (int32[n])."""

    data: SpillArray
    ends: SpillArray
    tags: SpillArray

    def __len__(self) -> int:
        return self.tags.shape[0]

    def array(self) -> arrow.Array:
        """Return the texts."""
        return arrow.text_array(self.data.get(), self.ends.get())


@dataclass(frozen=True, slots=True)
class Valued:
    """Distinct literals in their canonical form, as their values.

    Attributes
    ----------
    kind
        INTEGER, of xsd:integer; DOUBLE, of xsd:double; DATE, of xsd:date; DATETIME or ZONED, of xsd:dateTime without a
        time zone, or in UTC.
    pieces
        int64[n] each, as the table ``literal`` has them; of DOUBLE float64[n].
    """

    kind: Kind
    pieces: list[SpillArray]

    def __len__(self) -> int:
        return sum(map(len, self.pieces))


@dataclass(frozen=True, slots=True)
class Batch:
    """Distinct terms, and triples of their codes.

    Attributes
    ----------
    resources
        The IRIs and blank nodes, in the order of their codes.
    literals
        The lexical forms; each with the number of its note, plus one, or 0.
    notes
        Datatypes and languages; each with which of them it is.
    triples
        uint32[n, 3] each: subject, label, object of the triples in no named graph, in their order.
    others
        int64[m, 5] each: subject, label, object, graph and reifier of all others, -1 where there is none.  A triple
        that has a reifier is not in the graph by that.
    entries
        int64[m, 2] each: the fingerprints and codes of all terms, part by part, where other batches may have some of
        them (see :mod:`graphdb.storage.loaders.terms.unify`).
    valued
        Literals whose codes come before those of ``literals``, one after the other; only of a batch that becomes a
        graph by itself.
    """

    spill: SpillFile
    resources: list[Texts]
    literals: list[Texts]
    notes: Texts
    triples: list[SpillArray]
    others: Sequence[SpillArray]
    entries: Sequence[SpillArray] = ()
    valued: list[Valued] = field(default_factory=list)

    @property
    def counts(self) -> tuple[int, int]:
        """How many resources and literals it has."""
        return sum(map(len, self.resources)), sum(map(len, self.valued)) + sum(map(len, self.literals))

    def iris(self) -> Iterator[arrow.Array]:
        """Yield the IRIs and blank nodes, piece by piece."""
        for texts in self.resources:
            yield texts.array()

    def values(self) -> Iterator[tuple[arrow.Array, arrow.Array, arrow.Array]]:
        """Yield the literals that are texts, piece by piece."""
        yield from map(self.literal_columns, self.literals)

    @property
    def datatypes(self) -> set[str | None] | None:
        """The datatypes of all literals, where they are not many."""
        return {None, *arrow.pylist(self.notes.array())} if len(self.notes) <= _FEW_NOTES else None

    def literal_columns(self, texts: Texts) -> tuple[arrow.Array, arrow.Array, arrow.Array]:
        """Return lexical forms, datatypes and languages (NULL where there is none) of some literals."""
        notes, tags = self.notes.array(), texts.tags.get() - 1
        whats = self.notes.tags.get()[tags] if len(notes) else tags
        datatypes, languages = (
            arrow.dictionary_array(numbers(tags, (tags >= 0) & (whats == what)), notes) for what in (DATATYPE, LANGUAGE)
        )
        return texts.array(), datatypes, languages

    def forget_terms(self) -> None:
        """Give back the memory that the texts of terms take."""
        self.resources.clear()
        self.valued.clear()
        self.literals.clear()

    def forget_triples(self) -> None:
        """Give back the memory that the triples take."""
        self.triples.clear()

    def rows(self) -> Iterator[Codes]:
        """Yield the triples, piece by piece."""
        for spilled in self.triples:
            yield spilled.get()

    def close(self) -> None:
        """Give back what it takes on disk."""
        self.spill.close()


@dataclass(frozen=True, slots=True)
class Edges:
    """Edges of a batch that their triples do not identify: those with properties, and parallel ones.

    Attributes
    ----------
    edges
        uint32[edges, 3]: subject, label and object of each, as codes.
    owners
        int64[properties]: the edges that have properties, by number.
    properties
        uint32[properties, 2]: key and value of each property, as codes.
    """

    edges: Codes
    owners: Ids
    properties: Codes

    def __len__(self) -> int:
        return len(self.edges)

    def ordinals(self) -> Ids:
        """Return for each edge how many of those before it are parallel to it (int64[edges])."""
        ordinals = np.zeros(len(self), np.int64)
        rows = np.flatnonzero(repeated(self.edges))
        if len(rows):
            which = number_rows(self.edges[rows].T)
            sizes = np.bincount(which)
            order = np.argsort(which, kind="stable")
            ordinals[rows[order]] = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return ordinals


def repeated(rows: Codes) -> NDArray[np.bool_]:
    """Return which triples (uint32[n, 3]) are there more than once (bool[n])."""
    keys = rows[:, 0].astype(np.uint64) << np.uint64(32) | rows[:, 2]
    more = np.zeros(len(rows), bool)
    if (keys[1:] > keys[:-1]).all():  # as where a file is sorted by its start
        return more
    found = keys.copy()
    sort_keys(found)
    same = found[1:] == found[:-1]
    if same.any():
        perhaps = np.flatnonzero(np.isin(keys, found[1:][same]))
        which = number_rows(rows[perhaps].T)  # np.unique takes thirty times as long, and holds the GIL
        more[perhaps] = np.bincount(which)[which] > 1
    return more
