"""N-Triples and N-Quads to terms and rows as machine code: one pass over a block of lines.

Each line is first scanned whole (:mod:`.scan_kernels`); only a line without an error has its terms found, so that a bad
line leaves nothing behind.  A term that is found gets the next number of its block and a fingerprint, by which it is
numbered among the terms of all blocks (:mod:`graphdb.storage.loaders.terms.collect_kernels`).  One that was just there
keeps its number: most terms repeat within a few lines, and where that can be guessed they are neither scanned nor
hashed again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphdb.common.values.terms import BLANK, DATATYPE, IRI, LANGUAGE, PLAIN, TYPED
from graphdb.storage.compile.kernels import entry, kernel, load, mix, store, word
from graphdb.storage.loaders.ntriples.faults import OK
from graphdb.storage.loaders.ntriples.scan_kernels import (
    AGAIN,
    GRAPH_AT,
    NOTE_AT,
    OBJECT_AT,
    PREDICATE_AT,
    SUBJECT_AT,
    TERM_AT,
    WITHIN,
    scan_line,
)
from graphdb.storage.loaders.ntriples.stored_form_kernels import decode, keep_blank, keep_tag, keep_term
from graphdb.storage.loaders.ntriples.terminal_kernels import byte, line_end

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Codes = NDArray[np.int32]

POSITION, LINE, TERMS, ROWS, ERRORS, QUADS, BESIDE = range(7)
"""Places in the ``state`` array: bytes consumed, lines seen, terms, rows and errors written, whether a fourth term may
name a graph, and bytes written beside the text."""

PLACE, TAG, HIGH, LOW = range(4)
"""Columns of the table of terms: where its bytes are, which is ``start << 32 | length``; what it is, whether its bytes
are beside the text, and its note, which is ``what | ASIDE | (note + 1) << 4``; and its fingerprint."""

ASIDE = 8
"""The bit of a tag that says that the bytes are beside the text."""

FOLLOWER, VALUE = range(2)
"""Columns of the table of habits: of a term as predicate, the predicate that came after it, and its object."""

DONE, TERMS_FULL, ROWS_FULL, ERRORS_FULL = range(4)
"""Why :func:`parse` returned."""

RECENT = 1 << 14
"""How many terms are remembered, each in a place that its fingerprint says (a power of two)."""

REIFIED = -2
"""What stands for the predicate of a row whose subject reifies the triple of the row behind it."""

_LF, _CR = 10, 13

_U8, _I32, _I64 = np.uint8(0), np.int32(0), np.int64(0)
_LENGTH = 0xFFFFFFFF


@entry("i8, i8, i8, i8, i8 -> i8, i8")
def fingerprint(source: int, length: int, first: int, second: int, key: int) -> tuple[int, int]:
    """Return 128 bits of hash of the ``length`` bytes at ``source``, as two numbers.

    ``first`` and ``second`` tell apart what has the same bytes.  Each half is a chain of multiplications to 128 bits,
    folded (as in wyhash), with secret numbers of its own out of ``key`` (uint64[4]): who does not know them cannot make
    two terms that collide.
    """
    k0, k1, k2, k3 = word(key), word(key + 8), word(key + 16), word(key + 24)
    high, low = mix(k0 ^ np.uint64(first), k1 ^ np.uint64(length)), mix(k2 ^ np.uint64(second), k3 ^ np.uint64(length))
    i = 0
    while i + 16 < length:
        left, right = word(source + i), word(source + i + 8)
        high, low = mix(left ^ k1, right ^ high), mix(left ^ low, right ^ k3)
        i += 16
    left = right = np.uint64(0)
    if length >= 16:
        left, right = word(source + length - 16), word(source + length - 8)
    elif length >= 8:
        left, right = word(source), word(source + length - 8)
    else:
        for k in range(length):
            left = left << np.uint64(8) | np.uint64(byte(source, k))
    high, low = mix(left ^ k1, right ^ high), mix(left ^ low, right ^ k3)
    return int(np.int64(mix(high ^ k2, k0))), int(np.int64(mix(low ^ k1, k2)))


@kernel
def _find(
    text: int, spans: int, at: int, guess: int, guessed: int, note: int, prefix: int, width: int, state: int,
    beside: int, terms: int, habits: int, recent: int, key: int,
) -> int:  # fmt: skip
    """Return the number of the term whose span stands at ``at``; one that was not just there gets the next.

    ``note`` is the number of its datatype or language, or -1; ``width`` the length of the prefix of blank nodes.
    """
    start, end, what = load(spans, at, _I64), load(spans, at + 1, _I64), load(spans, at + 2, _I64)
    if load(spans, at + 3, _I64) == AGAIN:
        return load(guess, guessed + 3, _I64)
    source, length, place, aside = text + start, end - start, start, 0
    if what in (BLANK, LANGUAGE) or load(spans, at + 3, _I64):
        # What is not stored as it is written goes beside the text.
        place, aside = load(state, BESIDE, _I64), ASIDE
        if load(spans, at + 3, _I64) == WITHIN:
            behind = keep_term(text, start, end, spans, guess, prefix, width, beside, place)
        elif what == BLANK:
            behind = keep_blank(text, start, end, prefix, width, beside, place)
        elif what == LANGUAGE:
            behind = keep_tag(text, start, end, beside, place)
        else:
            behind = decode(text, start, end, beside, place)
        source, length = beside + place, behind - place
    if what == TYPED and note == 0:  # "x"^^xsd:string is "x" (RDF 1.1 Concepts, §3.3)
        what, note = PLAIN, -1
    first = second = what
    if note >= 0:
        first ^= load(terms, 4 * note + HIGH, _I64)
        second ^= load(terms, 4 * note + LOW, _I64)
    high, low = fingerprint(source, length, first, second, key)
    slot = high & (RECENT - 1)
    known = load(recent, slot, _I32)
    if known >= 0 and load(terms, 4 * known + HIGH, _I64) == high and load(terms, 4 * known + LOW, _I64) == low:
        return known
    if what == DATATYPE and load(terms, HIGH, _I64) == high and load(terms, LOW, _I64) == low:
        return 0
    term = load(state, TERMS, _I64)
    store(state, TERMS, term + 1, _I64)
    if aside:
        store(state, BESIDE, place + length, _I64)
    store(terms, 4 * term + PLACE, place << 32 | length, _I64)
    store(terms, 4 * term + TAG, what | aside | (note + 1) << 4, _I64)
    store(terms, 4 * term + HIGH, high, _I64)
    store(terms, 4 * term + LOW, low, _I64)
    store(habits, 2 * term + FOLLOWER, -1, _I32)
    store(habits, 2 * term + VALUE, -1, _I32)
    store(recent, slot, term, _I32)
    return term


@kernel
def _expect(guess: int, at: int, terms: int, term: int, what: int) -> None:
    """Guess that a term comes again, if it is one of that sort as it is written."""
    store(guess, at + 2, -1, _I64)
    if term >= 0 and load(terms, 4 * term + TAG, _I64) & (ASIDE | 7) == what:
        place = load(terms, 4 * term + PLACE, _I64)
        start, length = place >> 32, place & _LENGTH
        store(guess, at, start - 1, _I64)
        store(guess, at + 1, start + length + 1, _I64)
        store(guess, at + 2, what, _I64)
        store(guess, at + 3, term, _I64)


@kernel
def _guess(guess: int, spans: int, subject: int, predicate: int, terms: int, habits: int) -> None:
    """Guess the line behind one: its subject, the predicate that came after its predicate, and the object there."""
    what = load(spans, SUBJECT_AT + 2, _I64)
    width = 2 if what == BLANK else 1  # the mark of a blank node, or an IRI's bracket
    store(guess, SUBJECT_AT, load(spans, SUBJECT_AT, _I64) - width, _I64)
    store(guess, SUBJECT_AT + 1, load(spans, SUBJECT_AT + 1, _I64) + (what == IRI), _I64)
    store(guess, SUBJECT_AT + 2, what, _I64)
    store(guess, SUBJECT_AT + 3, subject, _I64)
    follower = load(habits, 2 * predicate + FOLLOWER, _I32)
    _expect(guess, PREDICATE_AT, terms, follower, IRI)
    value = load(habits, 2 * follower + VALUE, _I32) if follower >= 0 else -1
    _expect(guess, OBJECT_AT, terms, value, IRI)
    note = (load(terms, 4 * value + TAG, _I64) >> 4) - 1 if value >= 0 else -1
    _expect(guess, NOTE_AT, terms, note, DATATYPE)


@entry("u1[:], u1[:], i8[:], i8[:, :], i4[:, :], i8[:, :], u1[:], i8[:, :], i4[:, :], i4[:], i8[:] -> i8")
def parse(
    text: Bytes,
    prefix: Bytes,
    state: Ints,
    spans: Ints,
    rows: Codes,
    errors: Ints,
    beside: Bytes,
    terms: Ints,
    habits: Codes,
    recent: Codes,
    key: Ints,
) -> int:
    """Parse lines of ``text`` from ``state[POSITION]`` on, until it ends or an array is full; say which.

    Parameters
    ----------
    text : uint8[bytes]
        Whole lines; the last may lack its line end.
    prefix : uint8[]
        What comes before the label of a blank node.
    state : int64[7]
        Where the work stands; see :data:`POSITION` and its neighbours.
    spans : int64[2, SPANS]
        Room for the places of the terms of a line, and of those that are guessed: -1 at first.
    rows : int32[n, 4]
        Receives subject, predicate, object and graph (or -1) as numbers of terms.  After a row whose predicate is
        :data:`REIFIED` comes the triple that its subject reifies.
    errors : int64[m, 5]
        Receives line number, start and end of the line, position of the error, what is wrong.
    beside : uint8[]
        The bytes of terms that are not stored as they are written; must have room for ``text`` and a prefix per line.
    terms : int64[t, 4]
        Per term, side by side so that looking one up touches memory once: see :data:`PLACE` and its neighbours.  Term 0
        must be the datatype ``xsd:string``.
    habits : int32[t, 2]
        What came with a term as predicate; see :data:`FOLLOWER`.
    recent : int32[RECENT]
        The terms that were there last, -1 at first.
    key : int64[4]
        See :func:`fingerprint`.
    """
    end, width = len(text), len(prefix)
    source, label, at_state, now = text.ctypes.data, prefix.ctypes.data, state.ctypes.data, spans.ctypes.data
    aside, found, lines, last = beside.ctypes.data, terms.ctypes.data, rows.ctypes.data, recent.ctypes.data
    at_habits, secret = habits.ctypes.data, key.ctypes.data
    guess = now + 8 * spans.shape[1]
    before = -1
    while state[POSITION] < end:
        if state[TERMS] + 9 > len(terms):
            return TERMS_FULL
        if state[ROWS] + 2 > len(rows):
            return ROWS_FULL
        if state[ERRORS] >= len(errors):
            return ERRORS_FULL
        start = state[POSITION]
        i, error = scan_line(source, start, end, now, guess, state[QUADS])
        state[LINE] += 1
        if error != OK:
            place = i
            i = line_end(source, i, end)
            row = state[ERRORS]
            errors[row, 0], errors[row, 1], errors[row, 2] = state[LINE], start, i
            errors[row, 3], errors[row, 4] = place, error
            state[ERRORS] += 1
        elif load(now, SUBJECT_AT + 2, _I64) >= 0:
            row = state[ROWS]
            subject = _find(source, now, SUBJECT_AT, guess, SUBJECT_AT, -1, label, width, at_state, aside, found,
                            at_habits, last, secret)  # fmt: skip
            store(lines, 4 * row, subject, _I32)
            base = 0
            if load(now, TERM_AT + 2, _I64) >= 0:
                store(lines, 4 * row + 1, REIFIED, _I32)
                store(lines, 4 * row + 2, -1, _I32)
                store(lines, 4 * row + 3, -1, _I32)
                row += 1
                base = TERM_AT
                inner = _find(source, now, base, guess, SUBJECT_AT, -1, label, width, at_state, aside, found, at_habits,
                              last, secret)  # fmt: skip
                store(lines, 4 * row, inner, _I32)
            predicate = _find(source, now, base + PREDICATE_AT, guess, PREDICATE_AT, -1, label, width, at_state, aside,
                              found, at_habits, last, secret)  # fmt: skip
            store(lines, 4 * row + 1, predicate, _I32)
            note = -1
            if load(now, base + NOTE_AT + 2, _I64) >= 0:  # the object's identity includes its number
                note = _find(source, now, base + NOTE_AT, guess, NOTE_AT, -1, label, width, at_state, aside, found,
                             at_habits, last, secret)  # fmt: skip
            value = _find(source, now, base + OBJECT_AT, guess, OBJECT_AT, note, label, width, at_state, aside, found,
                          at_habits, last, secret)  # fmt: skip
            store(lines, 4 * row + 2, value, _I32)
            graph = -1
            if load(now, GRAPH_AT + 2, _I64) >= 0:
                graph = _find(source, now, GRAPH_AT, guess, GRAPH_AT, -1, label, width, at_state, aside, found,
                              at_habits, last, secret)  # fmt: skip
            store(lines, 4 * row + 3, graph, _I32)
            state[ROWS] = row + 1
            if before >= 0:
                store(at_habits, 2 * before + FOLLOWER, predicate, _I32)
            store(at_habits, 2 * predicate + VALUE, value, _I32)
            _guess(guess, now, subject, predicate, found, at_habits)
            before = predicate
        if i < end:  # the line's end: LF, CR or CR LF
            i += 2 if text[i] == _CR and i + 1 < end and text[i + 1] == _LF else 1
        state[POSITION] = i
    return DONE
