"""Several batches as one, where their terms together do not fit into memory.

A collector whose table of terms is full begins another batch, with an empty table, and writes down the fingerprints
that it had, cut into :data:`PARTS` by their first bits.  In the end the parts are looked at one by one, each in all
batches, in memory that is a small part of what all terms would take (a partitioned hash join, as in Grace; Kitsuregawa
et al., 1983).  A term belongs to the first batch that has it: so terms get the numbers that one batch would have given
them, those of their first occurrence.  What stays in memory is a bit for each term.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.errors import LoadError
from graphdb.storage.arrays.batch import LITERAL, Batch, Texts, Valued
from graphdb.storage.arrays.spill import SpillArray, SpillFile
from graphdb.storage.arrays.texts import taken
from graphdb.storage.loaders.terms import unify_kernels as kernels

if TYPE_CHECKING:
    from graphdb.storage.loaders.terms.stored import Known

Codes = NDArray[np.uint32]
Ints = NDArray[np.int64]

PARTS = 256
"""How many parts fingerprints are cut into."""


def entries(table: Ints, spill: SpillFile) -> list[SpillArray]:
    """Keep the fingerprints and codes of a table of terms (see :func:`.collect_kernels.encode`), part by part."""
    spilled = []
    for part in range(PARTS):
        found = np.empty((kernels.choose(table, part, PARTS, np.empty((0, 2), np.int64)), 2), np.int64)
        kernels.choose(table, part, PARTS, found)
        spilled.append(spill.add(found))
    return spilled


class Union:
    """Batches with :attr:`~.Batch.entries` as one batch; of terms that are ``known``, it has the ids as codes.

    Raises `LoadError` for more terms than there are codes.
    """

    def __init__(self, batches: Sequence[Batch], known: Known | None = None) -> None:
        self._batches = batches
        self._known = known
        counts = np.array([(0, 0) if known is None else known.counts, *(batch.counts for batch in batches)], np.int64)
        self._firsts = np.cumsum(counts, axis=0)[:-1]
        totals = counts.sum(axis=0).tolist()
        if max(totals) >= LITERAL:
            raise LoadError(f"these are {max(totals):,} terms, more than a load can have", hint="load it in parts")
        self._fresh = [np.full((total + 63) // 64 + 1, -1, np.int64) for total in totals]
        owned = self._find_shared()
        before = [np.cumsum(np.bitwise_count(words.view(np.uint64)), dtype=np.int64) for words in self._fresh]
        self._before = [np.concatenate([np.zeros(1, np.int64), ends[:-1]]) for ends in before]
        last = [np.array([total], np.uint32) for total in totals]
        for codes, fresh, ranks in zip(last, self._fresh, self._before, strict=True):
            kernels.rank(codes, fresh, ranks)
        self.counts = (int(last[0][0]), int(last[1][0]))
        for number, batch in enumerate(batches):
            self._translate(number, batch, owned[number])

    @property
    def valued(self) -> Sequence[Valued]:
        """None: all literals are texts."""
        return ()

    def iris(self) -> Iterator[arrow.Array]:
        """Yield the distinct IRIs and blank nodes, piece by piece."""
        for number, batch in enumerate(self._batches):
            for texts, mask in self._pieces(0, number, batch.resources):
                yield texts.array() if mask is None else taken(texts.array(), mask)

    def values(self) -> Iterator[tuple[arrow.Array, ...]]:
        """Yield the distinct literals, piece by piece (see :meth:`~.Batch.literal_columns`)."""
        for number, batch in enumerate(self._batches):
            for texts, mask in self._pieces(1, number, batch.literals):
                lexical, *notes = batch.literal_columns(texts)
                if mask is None:
                    yield lexical, *notes
                else:
                    yield taken(lexical, mask), *(column.take(mask) for column in notes)

    @property
    def datatypes(self) -> set[str | None] | None:
        """The datatypes of all literals: not known."""
        return None

    def rows(self) -> Iterator[Codes]:
        """Yield the triples, piece by piece."""
        return chain.from_iterable(batch.rows() for batch in self._batches)

    def forget_terms(self) -> None:
        """Give back the memory that the texts of terms take."""
        for batch in self._batches:
            batch.forget_terms()

    def forget_triples(self) -> None:
        """Give back the memory that the triples take."""
        for batch in self._batches:
            batch.forget_triples()

    @property
    def triples(self) -> Sequence[SpillArray]:
        """The triples."""
        return [spilled for batch in self._batches for spilled in batch.triples]

    @property
    def others(self) -> Sequence[SpillArray]:
        """The triples in named graphs, and those that have reifiers."""
        return [spilled for batch in self._batches for spilled in batch.others]

    def close(self) -> None:
        """Give back what the batches take on disk."""
        for batch in self._batches:
            batch.close()

    def _find_shared(self) -> list[list[SpillArray]]:
        """Find what earlier batches have: for each batch, codes and provisional codes."""
        owned: list[list[SpillArray]] = [[] for _ in self._batches]
        sizes = np.zeros(PARTS, np.int64) if self._known is None else self._known.sizes()
        for part in range(PARTS):
            room = 2 * (int(sizes[part]) + sum(len(batch.entries[part]) for batch in self._batches)) + 2
            table = np.full((room, 2), -1, np.int64)
            fresh_resources, fresh_literals = self._fresh
            for some in () if self._known is None else self._known.part(part):
                none = np.empty((len(some), 2), np.uint32)  # the dictionary repeats no term
                kernels.find_earlier(some, 0, 0, table, fresh_resources, fresh_literals, none)
            for batch, (resources, literals), spilled in zip(self._batches, self._firsts.tolist(), owned, strict=True):
                some = batch.entries[part].get()
                found = np.empty((len(some), 2), np.uint32)
                count = kernels.find_earlier(some, resources, literals, table, fresh_resources, fresh_literals, found)
                if count:
                    spilled.append(batch.spill.add(found[:count].copy()))
        return owned

    def _translate(self, number: int, batch: Batch, owned: list[SpillArray]) -> None:
        """Give the triples of a batch the codes that its terms have among all."""
        codes = [
            np.arange(first, first + count, dtype=np.uint32)
            for first, count in zip(self._firsts[number].tolist(), batch.counts, strict=True)
        ]
        for spilled in owned:
            own, other = spilled.get().T
            literal = own >= LITERAL
            codes[0][own[~literal]] = other[~literal]
            codes[1][own[literal] - LITERAL] = other[literal] - LITERAL
        for found, fresh, before in zip(codes, self._fresh, self._before, strict=True):
            kernels.rank(found, fresh, before)
        for spilled in batch.triples:
            rows = spilled.get()
            kernels.translate(rows, *codes)
            spilled.put(rows)
        for spilled in batch.others:
            others = spilled.get()
            literal = others >= LITERAL
            resource = (others >= 0) & ~literal
            others[resource] = codes[0][others[resource]]
            others[literal] = codes[1][others[literal] - LITERAL].astype(np.int64) + LITERAL
            spilled.put(others)

    def _pieces(
        self, sort: int, number: int, pieces: Sequence[Texts]
    ) -> Iterator[tuple[Texts, NDArray[np.int64] | None]]:
        """Yield the texts of a batch that are in no earlier one, with which of them these are; None for all."""
        first = int(self._firsts[number, sort])
        for texts in pieces:
            some = self._fresh[sort].view(np.uint8)[first // 8 : (first + len(texts)) // 8 + 1]
            mask = np.unpackbits(some, bitorder="little")[first % 8 :][: len(texts)]
            first += len(texts)
            if mask.all():
                yield texts, None
            elif mask.any():
                yield texts, np.flatnonzero(mask)
