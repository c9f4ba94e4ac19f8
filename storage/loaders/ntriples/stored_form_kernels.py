"""Terms as they are stored, where that is not as N-Triples writes them, as machine code.

A blank node is named with its file's prefix, a language in lower case, and what is escaped without its escapes.  A
triple term is stored as RDF text, one text for each that there is: its parts as they are stored, one space between
them, in a literal only what must be escaped, ``xsd:string`` left away.
"""

from __future__ import annotations

import numpy as np

from graphdb.common.values.terms import BLANK, IRI, TAGGED, TYPED, XSD
from graphdb.storage.compile.kernels import copy, kernel, load, store
from graphdb.storage.loaders.ntriples.scan_kernels import (
    INNER_AT,
    OBJECT_AT,
    PREDICATE_AT,
    scan_object,
    scan_predicate,
    scan_subject,
)
from graphdb.storage.loaders.ntriples.terminal_kernels import ECHAR, blanks, byte, names, opens_term, uchar

_LF, _CR, _SPACE, _QUOTE, _OPEN, _CLOSE = 10, 13, 32, 34, 40, 41
_LESS, _GREATER, _AT, _BACKSLASH, _CARET, _LOWER_U, _UPPER_U = 60, 62, 64, 92, 94, 117, 85
_LETTER_N, _LETTER_R = 110, 114

_U8, _I64 = np.uint8(0), np.int64(0)
_STRING = np.frombuffer((XSD + "string").encode(), np.uint8)


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
def decode(text: int, i: int, end: int, pool: int, at: int) -> int:
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
def keep_blank(text: int, start: int, end: int, prefix: int, width: int, pool: int, at: int) -> int:
    """Write ``prefix``, of so many bytes, and the label ``text[start:end]``; return the position behind it."""
    copy(pool + at, prefix, width)
    copy(pool + at + width, text + start, end - start)
    return at + width + end - start


@kernel
def keep_tag(text: int, start: int, end: int, pool: int, at: int) -> int:
    """Write the language tag ``text[start:end]`` in lower case and return the position behind it."""
    for k in range(start, end):
        found = byte(text, k)
        store(pool, at, found | 0x20 if 65 <= found <= 90 else found, _U8)
        at += 1
    return at


@kernel
def _mark(pool: int, at: int, mark: int) -> int:
    """Write one byte and return the position behind it."""
    store(pool, at, mark, _U8)
    return at + 1


@kernel
def _keep_iri(text: int, start: int, end: int, pool: int, at: int) -> int:
    """Write an IRI with its brackets and return the position behind it."""
    return _mark(pool, decode(text, start, end, pool, _mark(pool, at, _LESS)), _GREATER)


@kernel
def _keep_string(text: int, i: int, end: int, pool: int, at: int) -> int:
    """Write ``text[i:end]`` with no escapes but those that must be, and return the position behind it."""
    at = _mark(pool, at, _QUOTE)
    while i < end:
        point, width = byte(text, i) + 0, 1
        if point != _BACKSLASH:
            at = _mark(pool, at, point)
        else:
            if byte(text, i + 1) == _LOWER_U or byte(text, i + 1) == _UPPER_U:
                point, width, _ = uchar(text, i, end)
            else:
                point, width = ECHAR[byte(text, i + 1)] + 0, 2
            if point in (_QUOTE, _BACKSLASH):
                at = _mark(pool, _mark(pool, at, _BACKSLASH), point)
            elif point in (_LF, _CR):
                at = _mark(pool, _mark(pool, at, _BACKSLASH), _LETTER_N if point == _LF else _LETTER_R)
            else:
                at = _put(pool, at, point)
        i += width
    return _mark(pool, at, _QUOTE)


@kernel
def _keep_part(text: int, spans: int, part: int, prefix: int, width: int, pool: int, at: int) -> int:
    """Write the term whose span stands at ``part``, and a space; return the position behind them."""
    start, end, what = load(spans, part, _I64), load(spans, part + 1, _I64), load(spans, part + 2, _I64)
    if what == BLANK:
        at = keep_blank(text, start, end, prefix, width, pool, at)
    elif what == IRI:
        at = _keep_iri(text, start, end, pool, at)
    else:
        at = _keep_string(text, start, end, pool, at)
        start, end = load(spans, part + 4, _I64), load(spans, part + 5, _I64)  # the note
        if what == TAGGED:
            at = keep_tag(text, start, end, pool, _mark(pool, at, _AT))
        elif what == TYPED and not names(text, start, end, _STRING):
            at = _keep_iri(text, start, end, pool, _mark(pool, _mark(pool, at, _CARET), _CARET))
    return _mark(pool, at, _SPACE)


@kernel
def keep_term(
    text: int, start: int, end: int, spans: int, guess: int, prefix: int, width: int, pool: int, at: int
) -> int:
    """Write the triple term ``text[start:end]``, which was scanned before; return the position behind it.

    The parts that begin at ``spans[INNER_AT]`` are used.
    """
    i, depth = start, 0
    while opens_term(text, i, end):
        depth += 1
        for mark in (_LESS, _LESS, _OPEN, _SPACE):
            at = _mark(pool, at, mark)
        i, _ = scan_subject(text, blanks(text, i + 3, end), end, spans, INNER_AT)
        i, _ = scan_predicate(text, blanks(text, i, end), end, spans, INNER_AT + PREDICATE_AT)
        at = _keep_part(text, spans, INNER_AT, prefix, width, pool, at)
        at = _keep_part(text, spans, INNER_AT + PREDICATE_AT, prefix, width, pool, at)
        i = blanks(text, i, end)
    scan_object(text, i, end, spans, INNER_AT + OBJECT_AT, guess)
    at = _keep_part(text, spans, INNER_AT + OBJECT_AT, prefix, width, pool, at)
    for level in range(depth):
        if level:
            at = _mark(pool, at, _SPACE)
        for mark in (_CLOSE, _GREATER, _GREATER):
            at = _mark(pool, at, mark)
    return at
