"""Terms of blocks to numbered terms, as machine code: a hash table of fingerprints over all blocks.

The table has open addressing and holds no text: only the upper 96 bits of each term's fingerprint
(:func:`~graphdb.storage.loaders.ntriples.line_kernels.fingerprint`) and the term's code, 16 bytes in all, so looking a
term up touches memory once. Two of a billion terms share 96 bits once in 10 to the 11th loads, and as the key is
secret, nobody can make it happen.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphdb.common.values.terms import BLANK, DATATYPE, IRI
from graphdb.storage.arrays.batch import LITERAL, NOTE
from graphdb.storage.compile.kernels import copy, entry, fetch, kernel, load, store
from graphdb.storage.loaders.ntriples.line_kernels import ASIDE, HIGH, LOW, PLACE, REIFIED, TAG

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Codes = NDArray[np.uint32]
Numbers = NDArray[np.int32]

RESOURCES, LITERALS, NOTES = range(3)
"""Sorts of terms, each numbered from 0."""

DONE, FULL = range(2)
"""Why :func:`encode` returned."""

NEXT, ENTRIES, SORT, LENGTH = range(4)
"""Places in its ``state``: the next term of the block, entries of the table; the sort of term that found no room, and
the bytes that it needs."""

DATA, ENDS, USED, COUNT, BYTES, ROOM, TOTAL, TAGS = range(8)
"""Columns of the table of pieces, one row per sort of term: the addresses of its bytes and of their ends (int32); the
bytes and terms in it, and those it has room for; the terms of the sort in all; and the address of what comes with each
(int32): of a literal the number of its note plus one, of a note what it is."""

_AHEAD = 24
"""How many terms ahead memory is asked for."""

_LOWER = 0xFFFFFFFF
_U32, _I32, _I64 = np.uint32(0), np.int32(0), np.int64(0)


@kernel
def _slot(high: int, size: int) -> int:
    """Return where the search for a fingerprint begins: the slots are in the order of the fingerprints."""
    return ((high >> 32 & _LOWER) * size) >> 32


@entry("i8[:, :], i8[:, :]")
def enter(old: Ints, table: Ints) -> None:
    """Enter what is in a table into a larger one (int64[slots, 2], all -1)."""
    size = len(table)
    for i in range(len(old)):
        if old[i, 1] != -1:
            slot = _slot(old[i, 0], size)
            while table[slot, 1] != -1:
                slot = slot + 1 if slot + 1 < size else 0
            table[slot, 0], table[slot, 1] = old[i, 0], old[i, 1]


@entry("i8[:, :], u1[:], u1[:], i8[:, :], i8[:, :], i8[:], u4[:] -> i8")
def encode(terms: Ints, text: Bytes, beside: Bytes, table: Ints, pieces: Ints, state: Ints, codes: Codes) -> int:
    """Give the terms of a block their codes, from ``state[NEXT]`` on; those that are new are added to the pieces.

    Parameters
    ----------
    terms : int64[n, 4]
        See :func:`~graphdb.storage.loaders.ntriples.line_kernels.parse`, as for ``text`` and ``beside``.
    table : int64[slots, 2]
        The upper half of each fingerprint; and ``code << 32`` with the lower 32 bits of the other half, -1 where empty.
        Must have room for all ``terms``.
    pieces : int64[3, 8]
        See :data:`DATA` and its neighbours.
    state : int64[4]
        See :data:`NEXT` and its neighbours.
    codes : uint32[n]
        Receives for each term its code.
    """
    size, count = len(table), len(terms)
    source, aside = text.ctypes.data, beside.ctypes.data
    slots, at_pieces, found = table.ctypes.data, pieces.ctypes.data, terms.ctypes.data
    for term in range(state[NEXT], count):
        if term + _AHEAD < count:
            fetch(slots + 16 * _slot(load(found, 4 * (term + _AHEAD) + HIGH, _I64), size))
        high, low = load(found, 4 * term + HIGH, _I64), load(found, 4 * term + LOW, _I64) & _LOWER
        slot = _slot(high, size)
        entry = load(slots, 2 * slot + 1, _I64)
        while entry != -1 and (entry & _LOWER != low or load(slots, 2 * slot, _I64) != high):
            slot = slot + 1 if slot + 1 < size else 0
            entry = load(slots, 2 * slot + 1, _I64)
        if entry != -1:
            codes[term] = entry >> 32 & _LOWER
            continue
        tag, place = load(found, 4 * term + TAG, _I64), load(found, 4 * term + PLACE, _I64)
        what, note, start, length = tag & 7, (tag >> 4) - 1, place >> 32, place & _LOWER
        sort = RESOURCES if what in (IRI, BLANK) else NOTES if what >= DATATYPE else LITERALS
        piece = at_pieces + 64 * sort
        used, within = load(piece, USED, _I64), load(piece, COUNT, _I64)
        if used + length > load(piece, BYTES, _I64) or within == load(piece, ROOM, _I64):
            state[NEXT], state[SORT], state[LENGTH] = term, sort, length
            return FULL
        copy(load(piece, DATA, _I64) + used, (aside if tag & ASIDE else source) + start, length)
        store(load(piece, ENDS, _I64), within + 1, used + length, _I32)
        if sort == LITERALS:
            store(load(piece, TAGS, _I64), within, (int(codes[note]) ^ NOTE) + 1 if note >= 0 else 0, _I32)
        elif sort == NOTES:
            store(load(piece, TAGS, _I64), within, what, _I32)
        store(piece, USED, used + length, _I64)
        store(piece, COUNT, within + 1, _I64)
        number = load(piece, TOTAL, _I64)
        store(piece, TOTAL, number + 1, _I64)
        code = number | LITERAL if sort == LITERALS else number | NOTE if sort == NOTES else number
        store(slots, 2 * slot, high, _I64)
        store(slots, 2 * slot + 1, code << 32 | low, _I64)
        codes[term] = code
        state[ENTRIES] += 1
    state[NEXT] = count
    return DONE


@entry("i4[:, :], u4[:], u4[:, :], i8[:, :] -> i8, i8")
def translate(rows: Numbers, codes: Codes, triples: Codes, others: Ints) -> tuple[int, int]:
    """Turn rows of a block's terms into triples of codes, and into others; return how many there are of each.

    Parameters
    ----------
    rows : int32[n, 4]
        See :func:`~graphdb.storage.loaders.ntriples.line_kernels.parse`.
    codes : uint32[terms]
        The codes of the block's terms.
    triples : uint32[n, 3]
        Receives subject, label and object of the triples in no named graph.
    others : int64[n, 5]
        Receives subject, label, object, graph and reifier of all others, -1 where there is none.
    """
    plain = rest = 0
    reifier = -1
    for row in range(len(rows)):
        if rows[row, 1] == REIFIED:
            reifier = int(codes[rows[row, 0]])
        elif rows[row, 3] < 0 and reifier < 0:
            for column in range(3):
                triples[plain, column] = codes[rows[row, column]]
            plain += 1
        else:
            for column in range(3):
                others[rest, column] = codes[rows[row, column]]
            others[rest, 3] = codes[rows[row, 3]] if rows[row, 3] >= 0 else -1
            others[rest, 4] = reifier
            rest += 1
            reifier = -1
    return plain, rest
