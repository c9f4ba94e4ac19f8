"""N-Triples and N-Quads to numbered terms as machine code: one pass over a block of lines.

Each line is first scanned whole (:mod:`.scan_kernels`); only a line without an error has its terms numbered, so that a
bad line leaves nothing behind.  Numbering goes through a hash table with open addressing over a pool of decoded bytes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.jit import copy, kernel, load, store, word
from graphdb.storage.loaders.scan_kernels import (
    ECHAR,
    GRAPH_AT,
    NOTE_AT,
    OBJECT_AT,
    OK,
    PREDICATE_AT,
    SUBJECT_AT,
    TERM_AT,
    byte,
    line_end,
    scan_line,
    uchar,
)
from graphdb.storage.terms import BLANK, LANGUAGE, PLAIN, TYPED

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Codes = NDArray[np.int32]

POSITION, LINE, TERMS, TRIPLES, ERRORS, QUADS = range(6)
"""Places in the ``state`` array: bytes consumed, lines seen, terms, triples and errors written, and whether a fourth
term may name a graph."""

START, TAG, HASH = range(3)
"""Columns of the table of terms (the fourth makes a row half a cache line)."""

DONE, TERMS_FULL, TRIPLES_FULL, ERRORS_FULL = range(4)
"""Why :func:`parse` returned."""

REIFIED = -2
"""What stands for the predicate of a row whose subject reifies the triple of the row behind it."""

_LF, _CR, _BACKSLASH, _LOWER_U, _UPPER_U = 10, 13, 92, 117, 85

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_SEED = np.uint64(0xCBF29CE484222325)
_HALF, _THIRD = np.uint64(32), np.uint64(29)
_U8, _I32, _I64 = np.uint8(0), np.int32(0), np.int64(0)


@kernel
def _put(pool: int, at: int, point: int) -> int:
    """Write the character ``point`` as UTF-8 and return the position behind it."""
    if point < 0x80:
        store(pool, at, point, _U8)
        return at + 1
    if point < 0x800:
        store(pool, at, 0xC0 | point >> 6, _U8)
        store(pool, at + 1, 0x80 | point & 0x3F, _U8)
        return at + 2
    if point < 0x10000:
        store(pool, at, 0xE0 | point >> 12, _U8)
        store(pool, at + 1, 0x80 | point >> 6 & 0x3F, _U8)
        store(pool, at + 2, 0x80 | point & 0x3F, _U8)
        return at + 3
    store(pool, at, 0xF0 | point >> 18, _U8)
    store(pool, at + 1, 0x80 | point >> 12 & 0x3F, _U8)
    store(pool, at + 2, 0x80 | point >> 6 & 0x3F, _U8)
    store(pool, at + 3, 0x80 | point & 0x3F, _U8)
    return at + 4


@kernel
def hash_bytes(source: int, length: int, seed: int) -> int:
    """Return a 64-bit hash of the ``length`` bytes at address ``source``."""
    value = _SEED ^ (np.uint64(seed) * _MULTIPLIER) ^ np.uint64(length)
    if length >= 8:
        i = 0
        while i + 8 < length:
            value = (value ^ word(source + i)) * _MULTIPLIER
            value ^= value >> _HALF
            i += 8
        value = (value ^ word(source + length - 8)) * _MULTIPLIER
    else:
        rest = np.uint64(0)
        for i in range(length):
            rest = rest << np.uint64(8) | np.uint64(byte(source, i))
        value = (value ^ rest) * _MULTIPLIER
    value ^= value >> _THIRD
    value *= _MULTIPLIER
    return int(np.int64(value ^ (value >> _HALF)))


@kernel
def _same(left: int, right: int, length: int) -> bool:
    """Are the ``length`` bytes at two addresses the same?"""
    k = 0
    if length < 8:
        while k < length and byte(left, k) == byte(right, k):
            k += 1
        return k == length
    while k + 8 < length:
        if word(left + k) != word(right + k):
            return False
        k += 8
    return bool(word(left + length - 8) == word(right + length - 8))


@kernel
def rehash(terms: Ints, count: int, slots: Codes) -> None:
    """Enter the first ``count`` terms into an empty table ``slots`` (all -1, its length a power of two)."""
    mask = len(slots) - 1
    for term in range(count):
        slot = terms[term, HASH] & mask
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = term


@kernel
def _decode(text: int, i: int, end: int, pool: int, at: int) -> int:
    """Write ``text[i:end]`` with its escapes replaced to ``pool[at:]`` and return the position behind it."""
    while i < end:
        found = byte(text, i)
        if found != _BACKSLASH:
            store(pool, at, found, _U8)
            i += 1
            at += 1
        elif byte(text, i + 1) == _LOWER_U or byte(text, i + 1) == _UPPER_U:
            point, width, _ = uchar(text, i, end)
            at = _put(pool, at, point)
            i += width
        else:
            store(pool, at, ECHAR[byte(text, i + 1)], _U8)
            i += 2
            at += 1
    return at


@kernel
def _number(
    text: int, spans: int, at: int, note: int, prefix: int, width: int, state: int, pool: int, terms: int, slots: int,
    mask: int,
) -> int:  # fmt: skip
    """Return the number of the term whose span stands at ``at``; a new term gets the next one.

    ``note`` is the number of its datatype or language, or -1; ``width`` the length of the prefix of blank nodes.
    """
    start, end, what = load(spans, at, _I64), load(spans, at + 1, _I64), load(spans, at + 2, _I64)
    term = load(state, TERMS, _I64)
    tail = load(terms, 4 * term + START, _I64)
    source, length = text + start, end - start
    if what in (BLANK, LANGUAGE) or load(spans, at + 3, _I64):
        # What is not kept as it is written goes to the pool's unused tail first.
        behind = tail
        if what == BLANK:
            copy(pool + behind, prefix, width)
            behind += width
        behind = _decode(text, start, end, pool, behind)
        if what == LANGUAGE:
            for k in range(tail, behind):
                found = byte(pool, k)
                if 65 <= found <= 90:
                    store(pool, k, found | 0x20, _U8)
        source, length = pool + tail, behind - tail
    elif what == TYPED and note == 0:  # "x"^^xsd:string is "x" (RDF 1.1 Concepts, §3.3)
        what, note = PLAIN, -1
    tag = what | (note + 1) << 3
    value = hash_bytes(source, length, tag)
    slot = value & mask
    while True:
        known = load(slots, slot, _I32)
        if known < 0:
            break
        begin = load(terms, 4 * known + START, _I64)
        if (
            load(terms, 4 * known + HASH, _I64) == value
            and load(terms, 4 * known + TAG, _I64) == tag
            and load(terms, 4 * known + 4 + START, _I64) - begin == length
            and _same(pool + begin, source, length)
        ):
            return known
        slot = (slot + 1) & mask
    if source != pool + tail:
        copy(pool + tail, source, length)
    store(terms, 4 * term + 4 + START, tail + length, _I64)
    store(terms, 4 * term + TAG, tag, _I64)
    store(terms, 4 * term + HASH, value, _I64)
    store(slots, slot, term, _I32)
    store(state, TERMS, term + 1, _I64)
    return term


@kernel
def _repeats(text: int, spans: int, at: int, before: int) -> bool:
    """Is the term that ``spans[at]`` shows written as the one that ``before[at]`` shows?"""
    start = load(spans, at, _I64)
    length = load(spans, at + 1, _I64) - start
    begin = load(before, at, _I64)
    return (
        load(spans, at + 2, _I64) == load(before, at + 2, _I64)
        and length == load(before, at + 1, _I64) - begin
        and _same(text + start, text + begin, length)
    )


@kernel
def parse(
    text: Bytes,
    prefix: Bytes,
    state: Ints,
    spans: Ints,
    triples: Codes,
    errors: Ints,
    pool: Bytes,
    terms: Ints,
    slots: Codes,
) -> int:
    """Parse lines of ``text`` from ``state[POSITION]`` on, until it ends or an array is full; say which.

    Parameters
    ----------
    text : uint8[bytes]
        Whole lines; the last may lack its line end.
    prefix : uint8[]
        What comes before the label of a blank node.
    state : int64[6]
        Where the work stands; see :data:`POSITION` and its neighbours.
    spans : int64[2, SPANS]
        Room for the places of the terms of a line, and of the line before.
    triples : int32[n, 4]
        Receives subject, predicate, object and graph (or -1) as numbers of terms.  After a row whose predicate is
        :data:`REIFIED` comes the triple that its subject reifies.
    errors : int64[m, 5]
        Receives line number, start and end of the line, position of the error, what is wrong.
    pool : uint8[]
        The terms' UTF-8 bytes, term after term; must have room for the rest of ``text`` and a prefix per line.
    terms : int64[t, 4]
        Per term, side by side so that looking one up touches memory once: :data:`START` in the pool (the next one's is
        its end), :data:`TAG`, which is ``what | (note + 1) << 3``, and :data:`HASH`.
    slots : int32[power of two]
        The hash table: numbers of terms, -1 where empty.  Term 0 must be the datatype ``xsd:string``.
    """
    end, mask, width = len(text), len(slots) - 1, len(prefix)
    source, label, at_state, now = text.ctypes.data, prefix.ctypes.data, state.ctypes.data, spans.ctypes.data
    at_pool, at_terms, at_slots, rows = pool.ctypes.data, terms.ctypes.data, slots.ctypes.data, triples.ctypes.data
    before = now + 8 * spans.shape[1]
    store(before, SUBJECT_AT + 2, -1, _I64)  # the line before: dumps repeat subjects, and often predicates
    store(before, PREDICATE_AT + 2, -1, _I64)
    subject = predicate = -1
    while state[POSITION] < end:
        if state[TERMS] + 9 > len(terms) or 2 * (state[TERMS] + 9) > len(slots):
            return TERMS_FULL
        if state[TRIPLES] + 2 > len(triples):
            return TRIPLES_FULL
        if state[ERRORS] >= len(errors):
            return ERRORS_FULL
        start = state[POSITION]
        i, error = scan_line(source, start, end, now, state[QUADS])
        state[LINE] += 1
        if error != OK:
            place = i
            i = line_end(source, i, end)
            row = state[ERRORS]
            errors[row, 0], errors[row, 1], errors[row, 2] = state[LINE], start, i
            errors[row, 3], errors[row, 4] = place, error
            state[ERRORS] += 1
        elif load(now, SUBJECT_AT + 2, _I64) >= 0:
            row = state[TRIPLES]
            if not _repeats(source, now, SUBJECT_AT, before):
                subject = _number(source, now, SUBJECT_AT, -1, label, width, at_state, at_pool, at_terms, at_slots,
                                  mask)  # fmt: skip
            store(rows, 4 * row, subject, _I32)
            base = 0
            if load(now, TERM_AT + 2, _I64) >= 0:
                store(rows, 4 * row + 1, REIFIED, _I32)
                store(rows, 4 * row + 2, -1, _I32)
                store(rows, 4 * row + 3, -1, _I32)
                row += 1
                base = TERM_AT
                inner = _number(source, now, base, -1, label, width, at_state, at_pool, at_terms, at_slots, mask)
                store(rows, 4 * row, inner, _I32)
            if base or not _repeats(source, now, PREDICATE_AT, before):
                predicate = _number(source, now, base + PREDICATE_AT, -1, label, width, at_state, at_pool, at_terms,
                                    at_slots, mask)  # fmt: skip
            store(rows, 4 * row + 1, predicate, _I32)
            note = -1
            if load(now, base + NOTE_AT + 2, _I64) >= 0:  # the object's identity includes its number
                note = _number(source, now, base + NOTE_AT, -1, label, width, at_state, at_pool, at_terms, at_slots,
                               mask)  # fmt: skip
            found = _number(source, now, base + OBJECT_AT, note, label, width, at_state, at_pool, at_terms, at_slots,
                            mask)  # fmt: skip
            store(rows, 4 * row + 2, found, _I32)
            graph = -1
            if load(now, GRAPH_AT + 2, _I64) >= 0:
                graph = _number(source, now, GRAPH_AT, -1, label, width, at_state, at_pool, at_terms, at_slots, mask)
            store(rows, 4 * row + 3, graph, _I32)
            for k in range(PREDICATE_AT + 4):
                store(before, k, load(now, k, _I64), _I64)
            if base:
                store(before, PREDICATE_AT + 2, -1, _I64)
            state[TRIPLES] = row + 1
        if i < end:  # the line's end: LF, CR or CR LF
            i += 2 if text[i] == _CR and i + 1 < end and text[i + 1] == _LF else 1
        state[POSITION] = i
    return DONE
