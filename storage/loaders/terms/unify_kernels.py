"""Terms that several batches have, found by their fingerprints, as machine code: see :mod:`.unify`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.arrays.batch import LITERAL, NOTE
from graphdb.storage.compile.kernels import entry, ones

Ints = NDArray[np.int64]
Codes = NDArray[np.uint32]

_LOWER = 0xFFFFFFFF


@entry("i8[:, :], i8, i8, i8[:, :] -> i8")
def choose(table: Ints, part: int, parts: int, found: Ints) -> int:
    """Write the entries of a part of all fingerprints, without those of notes; return how many there are.

    Parameters
    ----------
    table : int64[slots, 2]
        See :func:`.collect_kernels.encode`: its slots are in the order of the fingerprints, but for those that were
        moved on to the next free one.
    found : int64[n, 2]
        Receives them, as far as there is room.
    """
    size, count = len(table), 0
    first, last = (part << 32) // parts * size >> 32, (part + 1 << 32) // parts * size >> 32
    for step in range(size):
        slot = first + step if first + step < size else first + step - size
        high, entry = table[slot, 0], table[slot, 1]
        if entry == -1:
            if first + step > last:
                break
        elif (high >> 32 & _LOWER) * parts >> 32 == part and (entry >> 32 & LITERAL or not entry >> 32 & NOTE):
            if count < len(found):
                found[count, 0], found[count, 1] = high, entry
            count += 1
    return count


@entry("i8[:, :], i8, i8, i8[:, :], i8[:], i8[:], u4[:, :] -> i8")
def find_earlier(
    entries: Ints, first_resource: int, first_literal: int, table: Ints, resources: Ints, literals: Ints, owned: Codes
) -> int:
    """Find the terms of a batch that earlier ones have; return how many there are.

    Terms have provisional codes: those of the batch, behind those of all batches before it.

    Parameters
    ----------
    entries : int64[n, 2]
        A part of the terms of the batch (see :func:`choose`).
    first_resource, first_literal
        How many resources and literals the batches before it have.
    table : int64[slots, 2]
        The terms of this part that earlier batches have, with provisional codes: -1 where empty.  Receives the others.
    resources, literals : int64[]
        A bit for each provisional code, cleared for those that earlier batches have.
    owned : uint32[n, 2]
        Receives codes of the batch, and the provisional codes of the same terms in earlier batches.
    """
    size, count = len(table), 0
    for i in range(len(entries)):
        high, low, code = entries[i, 0], entries[i, 1] & _LOWER, entries[i, 1] >> 32 & _LOWER
        own = code + (first_literal if code & LITERAL else first_resource)
        slot = (high & _LOWER) * size >> 32  # within a part, the upper half is much the same
        while table[slot, 1] != -1 and (table[slot, 1] & _LOWER != low or table[slot, 0] != high):
            slot = slot + 1 if slot + 1 < size else 0
        if table[slot, 1] == -1:
            table[slot, 0], table[slot, 1] = high, own << 32 | low
        else:
            owned[count, 0], owned[count, 1] = code, table[slot, 1] >> 32 & _LOWER
            count += 1
            number = own & ~LITERAL
            fresh = literals if code & LITERAL else resources
            fresh[number >> 6] &= ~(1 << (number & 63))
    return count


@entry("u4[:], i8[:], i8[:]")
def rank(codes: Codes, fresh: Ints, before: Ints) -> None:
    """Replace provisional codes, without the bit of literals, by the number of bits before theirs.

    ``before`` (int64[words]) counts those before each word of ``fresh``.
    """
    for i in range(len(codes)):
        code = np.int64(codes[i])
        at = code >> 6
        codes[i] = before[at] + ones(fresh[at] & ((1 << (code & 63)) - 1))


@entry("u4[:, :], u4[:], u4[:]")
def translate(triples: Codes, resources: Codes, literals: Codes) -> None:
    """Replace the codes in triples (uint32[n, 3]) by what is in the arrays for them."""
    for row in range(len(triples)):
        triples[row, 0] = resources[triples[row, 0]]
        triples[row, 1] = resources[triples[row, 1]]
        found = np.int64(triples[row, 2])
        triples[row, 2] = literals[found - LITERAL] | LITERAL if found >= LITERAL else resources[found]
