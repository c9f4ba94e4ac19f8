"""The grammar of N-Triples and N-Quads as machine code: a line of text to the places of its terms.

The grammar is the one of W3C RDF 1.1 N-Triples (§7) and N-Quads (§5), with the erratum that a colon does not belong in
a blank node label, and of RDF 1.2's additions: triple terms as objects, and the base direction of a language-tagged
string (which stays part of its tag).  The triple that ``rdf:reifies`` names is scanned into spans of its own; any other
triple term is one span, to be written by :mod:`.stored_form_kernels`.

Arrays come as addresses: one that is handed to a function is a counted reference, which costs as much as scanning a
term.  Whoever passes an address keeps its array alive.  Positions are byte offsets into ``text``.
"""

from __future__ import annotations

import numpy as np

from graphdb.common.values.terms import BLANK, DATATYPE, IRI, RDF, RDF_REIFIES, TAGGED, TYPED
from graphdb.storage.compile.kernels import kernel, load, lowest, store, word
from graphdb.storage.loaders.ntriples.faults import (
    DATATYPE_IRI,
    DEEPEST,
    DIRECTIVE,
    DOT,
    FOURTH,
    LINE_END,
    LITERAL_SUBJECT,
    NO_TAG,
    OBJECT,
    OK,
    PREDICATE,
    PREDICATE_NOT_IRI,
    SUBJECT,
    TERM_DEPTH,
    TERM_END,
    UTF8,
)
from graphdb.storage.loaders.ntriples.terminal_kernels import (
    blanks,
    byte,
    closes_term,
    names,
    opens_term,
    scan_blank,
    scan_iri,
    scan_string,
    scan_tag,
    span,
    utf8,
)

SUBJECT_AT, PREDICATE_AT, OBJECT_AT, NOTE_AT, GRAPH_AT, TERM_AT = 0, 4, 8, 12, 16, 20
"""Where the spans of a line's terms stand: each is (start, end, what, escaped); a note is a literal's datatype or
language.  From TERM_AT on, the subject, predicate, object and note of a triple term."""

INNER_AT = 36
"""Where the spans of a triple term are noted that has no place of its own, one within the other's."""

SPANS = 52
"""Numbers that the spans of a line take."""

AGAIN, WITHIN = 2, 3
"""In place of ``escaped``: the term that was guessed; a triple term, with its brackets."""

_TAB, _LF, _CR, _SPACE, _QUOTE, _HASH = 9, 10, 13, 32, 34, 35
_DOT, _LESS, _GREATER, _AT, _CARET, _UNDERSCORE = 46, 60, 62, 64, 94, 95

_U8, _I64 = np.uint8(0), np.int64(0)
_REIFIES, _LANGUAGE_STRING, _DIRECTED_STRING = (
    np.frombuffer(name.encode(), np.uint8) for name in (RDF_REIFIES, RDF + "langString", RDF + "dirLangString")
)


# --- terms that come again ---------------------------------------------------------------------------------------


@kernel
def same_bytes(left: int, right: int, limit: int) -> int:
    """Return how many of the first ``limit`` bytes at two addresses are the same, up to the first that differs."""
    k = 0
    while k + 8 <= limit:
        different = word(left + k) ^ word(right + k)
        if different:
            return k + (lowest(int(np.int64(different))) >> 3)
        k += 8
    while k < limit and byte(left, k) == byte(right, k):
        k += 1
    return k


@kernel
def _length(guess: int, at: int) -> int:
    """Return how many bytes the term takes that ``guess`` shows."""
    return load(guess, at + 1, _I64) - load(guess, at, _I64)


@kernel
def _common(text: int, i: int, end: int, guess: int, at: int) -> int:
    """Return how many bytes at ``i`` are as in the term that ``guess`` shows."""
    if load(guess, at + 2, _I64) < 0:
        return 0
    return same_bytes(text + i, text + load(guess, at, _I64), min(_length(guess, at), end - i))


@kernel
def _repeats(text: int, i: int, end: int, guess: int, at: int) -> bool:
    """Does the term that ``guess`` shows stand at ``i``?"""
    length = _length(guess, at)
    if load(guess, at + 2, _I64) < 0 or _common(text, i, end, guess, at) < length:
        return False
    if load(guess, at + 2, _I64) != BLANK:
        return True
    behind = byte(text, i + length) if i + length < end else _LF  # a label may go on
    return behind in (_SPACE, _TAB, _LESS)


@kernel
def _again(i: int, spans: int, at: int, guess: int, guessed: int) -> int:
    """Note that the term that ``guess`` shows stands at ``i``, and return the position behind it."""
    behind = i + _length(guess, guessed)
    what = load(guess, guessed + 2, _I64)
    if what == BLANK:
        span(spans, at, i + 2, behind, what, AGAIN)
    else:
        span(spans, at, i + 1, behind - 1, what, AGAIN)
    return behind


# --- terms and lines -----------------------------------------------------------------------------------------------


@kernel
def scan_object(text: int, start: int, end: int, spans: int, at: int, guess: int) -> tuple[int, int]:
    """An IRI, a blank node or a literal; the span of its note follows its own."""
    store(spans, at + 6, -1, _I64)
    first = byte(text, start) if start < end else _LF
    if first == _LESS:
        known = _common(text, start, end, guess, OBJECT_AT)
        if known > 0 and known == _length(guess, OBJECT_AT):
            return _again(start, spans, at, guess, OBJECT_AT), OK
        return scan_iri(text, start, end, spans, at, known)
    if first == _UNDERSCORE:
        return scan_blank(text, start, end, spans, at)
    if first != _QUOTE:
        return start, OBJECT
    i, error = scan_string(text, start, end, spans, at)
    if error != OK:
        return i, error
    behind = blanks(text, i, end)
    mark = byte(text, behind) if behind < end else _LF
    if mark == _AT:
        store(spans, at + 2, TAGGED, _I64)
        return scan_tag(text, behind, end, spans, at + 4)
    if mark == _CARET:
        if behind + 1 >= end or byte(text, behind + 1) != _CARET:
            return behind, DATATYPE_IRI
        i = blanks(text, behind + 2, end)
        if i >= end or byte(text, i) != _LESS:
            return i, DATATYPE_IRI
        store(spans, at + 2, TYPED, _I64)
        if _repeats(text, i, end, guess, NOTE_AT):
            return _again(i, spans, at + 4, guess, NOTE_AT), OK
        begin = i
        i, error = scan_iri(text, begin, end, spans, at + 4, 0)
        store(spans, at + 6, DATATYPE, _I64)
        if error == OK and (
            names(text, begin + 1, i - 1, _LANGUAGE_STRING) or names(text, begin + 1, i - 1, _DIRECTED_STRING)
        ):
            return begin, NO_TAG
    return i, error


@kernel
def scan_subject(text: int, i: int, end: int, spans: int, at: int) -> tuple[int, int]:
    """An IRI or a blank node."""
    first = byte(text, i) if i < end else _LF
    if first == _LESS:
        return scan_iri(text, i, end, spans, at, 0)
    if first == _UNDERSCORE:
        return scan_blank(text, i, end, spans, at)
    return i, DIRECTIVE if first == _AT else LITERAL_SUBJECT if first == _QUOTE else SUBJECT


@kernel
def scan_predicate(text: int, i: int, end: int, spans: int, at: int) -> tuple[int, int]:
    """An IRI."""
    first = byte(text, i) if i < end else _LF
    if first == _LESS:
        return scan_iri(text, i, end, spans, at, 0)
    return i, PREDICATE_NOT_IRI if first in (_UNDERSCORE, _QUOTE) else PREDICATE


@kernel
def _scan_ends(text: int, start: int, end: int, spans: int, at: int) -> tuple[int, int]:
    """The subject and the predicate of a triple term (RDF 1.2 N-Triples, §2.4) whose ``<<(`` stands at ``start``."""
    i, error = scan_subject(text, blanks(text, start + 3, end), end, spans, at)
    if error == OK:
        i, error = scan_predicate(text, blanks(text, i, end), end, spans, at + PREDICATE_AT)
    return (blanks(text, i, end) if error == OK else i), error


@kernel
def _scan_value(text: int, start: int, end: int, spans: int, at: int, guess: int) -> tuple[int, int]:
    """What any object can be; a triple term is one span, with those that are its object within."""
    if not opens_term(text, start, end):
        return scan_object(text, start, end, spans, at, guess)
    i, depth = start, 0
    while opens_term(text, i, end):
        if depth == DEEPEST:
            return i, TERM_DEPTH
        depth += 1
        i, error = _scan_ends(text, i, end, spans, INNER_AT)
        if error != OK:
            return i, error
    i, error = scan_object(text, i, end, spans, INNER_AT + OBJECT_AT, guess)
    if error != OK:
        return i, error
    for _ in range(depth):
        i = blanks(text, i, end)
        if not closes_term(text, i, end):
            return i, TERM_END
        i += 3
    store(spans, at + 6, -1, _I64)
    span(spans, at, start, i, IRI, WITHIN)
    return i, OK


@kernel
def _scan_reified(text: int, start: int, end: int, spans: int, guess: int) -> tuple[int, int]:
    """The triple term whose ``<<(`` stands at ``start``, behind the predicate rdf:reifies."""
    i, error = _scan_ends(text, start, end, spans, TERM_AT)
    if error == OK:
        i, error = _scan_value(text, i, end, spans, TERM_AT + OBJECT_AT, guess)
    if error != OK:
        return i, error
    i = blanks(text, i, end)
    return (i + 3, OK) if closes_term(text, i, end) else (i, TERM_END)


@kernel
def scan_line(text: int, start: int, end: int, spans: int, guess: int, quads: int) -> tuple[int, int]:
    """Scan one line into ``spans`` (int64[SPANS]); return the position of its end or of its error, and the error.

    The third number of a span is -1 where there is no such term: of the subject for a line without a triple.
    ``guess`` (int64[SPANS]) shows terms elsewhere in ``text`` that are likely to come again, IRIs with their brackets
    and blank nodes with their mark: where one does, its bytes need no scan, and the fourth number of the span is
    :data:`AGAIN`.  ``quads`` says that a fourth term may follow, which names a graph.
    """
    store(spans, SUBJECT_AT + 2, -1, _I64)
    store(spans, GRAPH_AT + 2, -1, _I64)
    store(spans, TERM_AT + 2, -1, _I64)
    i = blanks(text, start, end)
    if i < end and byte(text, i) != _LF and byte(text, i) != _CR and byte(text, i) != _HASH:
        error = OK
        if _repeats(text, i, end, guess, SUBJECT_AT):
            i = _again(i, spans, SUBJECT_AT, guess, SUBJECT_AT)
        else:
            i, error = scan_subject(text, i, end, spans, SUBJECT_AT)
            if error != OK:
                return i, error
        i = blanks(text, i, end)
        if _repeats(text, i, end, guess, PREDICATE_AT):
            i = _again(i, spans, PREDICATE_AT, guess, PREDICATE_AT)
        else:
            i, error = scan_predicate(text, i, end, spans, PREDICATE_AT)
            if error != OK:
                return i, error
        i = blanks(text, i, end)
        if opens_term(text, i, end):
            if names(text, load(spans, PREDICATE_AT, _I64), load(spans, PREDICATE_AT + 1, _I64), _REIFIES):
                i, error = _scan_reified(text, i, end, spans, guess)
            else:
                i, error = _scan_value(text, i, end, spans, OBJECT_AT, guess)
        else:
            i, error = scan_object(text, i, end, spans, OBJECT_AT, guess)
        if error != OK:
            return i, error
        i = blanks(text, i, end)
        if i < end and (byte(text, i) == _LESS or byte(text, i) == _UNDERSCORE):
            if not quads:
                return i, FOURTH
            i, error = scan_subject(text, i, end, spans, GRAPH_AT)
            if error != OK:
                return i, error
            i = blanks(text, i, end)
        if i >= end or byte(text, i) != _DOT:
            return i, DOT
        i = blanks(text, i + 1, end)
        if i < end and byte(text, i) != _LF and byte(text, i) != _CR and byte(text, i) != _HASH:
            return i, LINE_END
    while i < end and byte(text, i) != _LF and byte(text, i) != _CR:  # a comment: any characters
        _, width = utf8(text, i, end)
        if width == 0:
            return i, UTF8
        i += width
    return i, OK
