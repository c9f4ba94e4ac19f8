"""The grammar of N-Triples and N-Quads as machine code: a line of text to the places of its terms.

The grammar is the one of W3C RDF 1.1 N-Triples (§7) and N-Quads (§5), with the erratum that a colon does not belong in
a blank node label, and of RDF 1.2's additions: a triple term as the object of ``rdf:reifies``, and the base direction
of a language-tagged string (which stays part of its tag).

Arrays come as addresses: one that is handed to a function is a counted reference, which costs as much as scanning a
term.  Whoever passes an address keeps its array alive.  Positions are byte offsets into ``text``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.jit import kernel, load, lowest, store, word
from graphdb.storage.terms import BLANK, DATATYPE, IRI, LANGUAGE, PLAIN, RDF_REIFIES, TAGGED, TYPED

SUBJECT_AT, PREDICATE_AT, OBJECT_AT, NOTE_AT, GRAPH_AT, TERM_AT = 0, 4, 8, 12, 16, 20
"""Where the spans of a line's terms stand: each is (start, end, what, escaped); a note is a literal's datatype or
language.  From TERM_AT on, the subject, predicate, object and note of a triple term."""

SPANS = 36
"""Numbers that the spans of a line take."""

AGAIN = 2
"""In place of ``escaped``: the term that was guessed."""

(
    OK,
    SUBJECT,
    LITERAL_SUBJECT,
    PREDICATE,
    PREDICATE_NOT_IRI,
    OBJECT,
    DOT,
    LINE_END,
    IRI_CHARACTER,
    IRI_END,
    IRI_RELATIVE,
    IRI_ESCAPE,
    IRI_ESCAPED,
    STRING_ESCAPE,
    STRING_END,
    HEXADECIMAL,
    CODE_POINT,
    BAD_TAG,
    DATATYPE_IRI,
    LABEL,
    UTF8,
    DIRECTIVE,
    FOURTH,
    REIFIES,
    NESTED,
    TERM_END,
) = range(26)
"""What is wrong with a line."""

_TAB, _LF, _CR, _SPACE, _QUOTE, _HASH = 9, 10, 13, 32, 34, 35
_MINUS, _DOT, _COLON, _LESS, _GREATER, _AT = 45, 46, 58, 60, 62, 64
_BACKSLASH, _CARET, _UNDERSCORE, _LOWER_U, _UPPER_U = 92, 94, 95, 117, 85

_OPEN, _CLOSE = 40, 41

_U8, _I64 = np.uint8(0), np.int64(0)
_REIFIES = np.frombuffer(RDF_REIFIES.encode(), np.uint8)


def _table(characters: bytes) -> NDArray[np.bool_]:
    table = np.zeros(256, np.bool_)
    table[list(characters)] = True
    return table


_LETTERS = bytes([*range(65, 91), *range(97, 123)])
_DIGITS = b"0123456789"
_IN_IRI = _table(bytes(set(range(0x21, 0x80)) - set(b'<>"{}|^`\\')))
_IN_STRING = _table(bytes(set(range(0x80)) - set(b'"\\\n\r')))
_IN_LABEL = _table(_LETTERS + _DIGITS + b"_-.")
_STARTS_LABEL = _table(_LETTERS + _DIGITS + b"_")
_IN_SCHEME = _table(_LETTERS + _DIGITS + b"+-.")
_LETTER = _table(_LETTERS)
_ALPHANUMERIC = _table(_LETTERS + _DIGITS)

ECHAR = np.zeros(256, np.uint8)
"""The character that a backslash and a letter stand for; 0 where they stand for none."""
for _letter, _meaning in zip(b"tbnrf\"'\\", b"\t\b\n\r\f\"'\\", strict=True):
    ECHAR[_letter] = _meaning

_HEX = np.full(256, -1, np.int64)
for _digit in b"0123456789abcdefABCDEF":
    _HEX[_digit] = int(chr(_digit), 16)


@kernel
def byte(text: int, i: int) -> int:
    """Return ``text[i]``."""
    return load(text, i, _U8)


@kernel
def _span(spans: int, at: int, start: int, end: int, what: int, escaped: int) -> None:
    """Note where a term stands."""
    store(spans, at, start, _I64)
    store(spans, at + 1, end, _I64)
    store(spans, at + 2, what, _I64)
    store(spans, at + 3, escaped, _I64)


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
        _span(spans, at, i + 2, behind, what, AGAIN)
    else:
        _span(spans, at, i + 1, behind - 1, what, AGAIN)
    return behind


# --- characters ------------------------------------------------------------------------------------------------


@kernel
def utf8(text: int, i: int, end: int) -> tuple[int, int]:
    """Return the character at ``i`` and its width in bytes; the width is 0 where the bytes are not UTF-8."""
    first = byte(text, i) + 0
    if first < 0x80:
        return first, 1
    if first < 0xC2 or first > 0xF4:
        return 0, 0
    width = 2 if first < 0xE0 else 3 if first < 0xF0 else 4
    if i + width > end:
        return 0, 0
    point = first & (0x7F >> width)
    for k in range(1, width):
        found = byte(text, i + k) + 0
        if found & 0xC0 != 0x80:
            return 0, 0
        point = point << 6 | found & 0x3F
    if width == 3 and (point < 0x800 or 0xD800 <= point < 0xE000):
        return 0, 0
    if width == 4 and (point < 0x10000 or point > 0x10FFFF):
        return 0, 0
    return point, width


@kernel
def uchar(text: int, i: int, end: int) -> tuple[int, int, int]:
    r"""Return the character that the ``\uXXXX`` or ``\UXXXXXXXX`` at ``i`` stands for, its width, and the error."""
    width = 6 if byte(text, i + 1) == _LOWER_U else 10
    point = 0
    for k in range(2, width):
        digit = _HEX[byte(text, i + k)] if i + k < end else -1
        if digit < 0:
            return 0, 0, HEXADECIMAL
        point = point << 4 | digit
    if point > 0x10FFFF or 0xD800 <= point < 0xE000:
        return 0, 0, CODE_POINT
    return point, width, OK


@kernel
def _in_label(point: int) -> bool:
    """Is this character beyond ASCII in PN_CHARS?"""
    return _starts_label(point) or point == 0xB7 or 0x300 <= point <= 0x36F or point == 0x203F or point == 0x2040


@kernel
def _starts_label(point: int) -> bool:
    """Is this character beyond ASCII in PN_CHARS_BASE?"""
    return (
        (0xC0 <= point <= 0x2FF and point != 0xD7 and point != 0xF7)
        or (0x370 <= point <= 0x1FFF and point != 0x37E)
        or 0x200C <= point <= 0x200D
        or 0x2070 <= point <= 0x218F
        or 0x2C00 <= point <= 0x2FEF
        or 0x3001 <= point <= 0xD7FF
        or 0xF900 <= point <= 0xFDCF
        or 0xFDF0 <= point <= 0xFFFD
        or 0x10000 <= point <= 0xEFFFF
    )


# --- terminals: each returns the position behind it (or of the error) and the error ------------------------------


@kernel
def _absolute(text: int, i: int, end: int) -> bool:
    """Does the IRI at ``i`` begin with a scheme and a colon?  Escapes, valid ones by now, count as what they mean."""
    first = True
    while i < end:
        point, width = byte(text, i) + 0, 1
        if point == _BACKSLASH:
            point, width, _ = uchar(text, i, end)
        if point >= 0x80:
            return False
        if point == _COLON:
            return not first
        if not (_LETTER[point] if first else _IN_SCHEME[point]):
            return False
        first = False
        i += width
    return False


@kernel
def _scan_iri(text: int, start: int, end: int, spans: int, at: int, known: int) -> tuple[int, int]:
    """IRIREF, whose ``<`` stands at ``start``; its first ``known`` bytes are those of one without escapes."""
    escaped = 0
    i = start + max(known, 1)
    while i > start + 1 and byte(text, i - 1) >= 0x80:  # the last of them may be half a character
        i -= 1
    while i < end:
        found = byte(text, i)
        if _IN_IRI[found]:
            i += 1
        elif found == _GREATER:
            if not _absolute(text, start + 1, i):
                return start, IRI_RELATIVE
            _span(spans, at, start + 1, i, IRI, escaped)
            return i + 1, OK
        elif found == _BACKSLASH:
            if i + 1 >= end or (byte(text, i + 1) != _LOWER_U and byte(text, i + 1) != _UPPER_U):
                return i, IRI_ESCAPE
            point, width, error = uchar(text, i, end)
            if error != OK:
                return i, error
            if point < 0x80 and not _IN_IRI[point]:
                return i, IRI_ESCAPED
            escaped = 1
            i += width
        elif found >= 0x80:
            _, width = utf8(text, i, end)
            if width == 0:
                return i, UTF8
            i += width
        else:
            return i, IRI_END if found in (_LF, _CR) else IRI_CHARACTER
    return i, IRI_END


@kernel
def _scan_blank(text: int, start: int, end: int, spans: int, at: int) -> tuple[int, int]:
    """BLANK_NODE_LABEL, whose ``_`` stands at ``start``; the span is the label without ``_:``."""
    i = start + 2
    if start + 1 >= end or byte(text, start + 1) != _COLON:
        return start, LABEL
    behind = i
    while i < end:
        found = byte(text, i)
        width = 1
        if found >= 0x80:
            point, width = utf8(text, i, end)
            if width == 0:
                return i, UTF8
            if not (_starts_label(point) if i == start + 2 else _in_label(point)):
                break
        elif not (_STARTS_LABEL[found] if i == start + 2 else _IN_LABEL[found]):
            break
        i += width
        if found != _DOT:
            behind = i
    if behind == start + 2:
        return behind, LABEL
    _span(spans, at, start + 2, behind, BLANK, 0)
    return behind, OK


@kernel
def _scan_string(text: int, start: int, end: int, spans: int, at: int) -> tuple[int, int]:
    """STRING_LITERAL_QUOTE, whose first quote stands at ``start``."""
    escaped = 0
    i = start + 1
    while i < end:
        found = byte(text, i)
        if _IN_STRING[found]:
            i += 1
        elif found == _QUOTE:
            _span(spans, at, start + 1, i, PLAIN, escaped)
            return i + 1, OK
        elif found == _BACKSLASH:
            escaped = 1
            if i + 1 < end and (byte(text, i + 1) == _LOWER_U or byte(text, i + 1) == _UPPER_U):
                _, width, error = uchar(text, i, end)
                if error != OK:
                    return i, error
                i += width
            elif i + 1 < end and ECHAR[byte(text, i + 1)]:
                i += 2
            else:
                return i, STRING_ESCAPE
        elif found >= 0x80:
            _, width = utf8(text, i, end)
            if width == 0:
                return i, UTF8
            i += width
        else:
            break
    return i, STRING_END


@kernel
def _direction(text: int, i: int, end: int) -> int:
    """Return the position behind ``ltr`` or ``rtl`` at ``i``, or -1: the base direction of a text."""
    if i + 3 > end or (i + 3 < end and _ALPHANUMERIC[byte(text, i + 3)]):
        return -1
    first, second, third = byte(text, i), byte(text, i + 1), byte(text, i + 2)
    right = first == 114 and third == 108
    left = first == 108 and third == 114
    return i + 3 if second == 116 and (left or right) else -1


@kernel
def _scan_tag(text: int, start: int, end: int, spans: int, at: int) -> tuple[int, int]:
    """LANGTAG or, with a base direction, LANG_DIR, whose ``@`` stands at ``start``."""
    i = start + 1
    while i < end and _LETTER[byte(text, i)]:
        i += 1
    if i == start + 1:
        return i, BAD_TAG
    while i < end and byte(text, i) == _MINUS:
        part = i + 1
        i = part
        while i < end and _ALPHANUMERIC[byte(text, i)]:
            i += 1
        if i == part:
            if byte(text, i - 1) == _MINUS and i < end and byte(text, i) == _MINUS:
                i = _direction(text, i + 1, end)
                if i > 0:
                    break
                i = part
            return i, BAD_TAG
    _span(spans, at, start + 1, i, LANGUAGE, 0)
    return i, OK


@kernel
def blanks(text: int, i: int, end: int) -> int:
    """Return the first position from ``i`` that holds neither space nor tab."""
    while i < end and (byte(text, i) == _SPACE or byte(text, i) == _TAB):
        i += 1
    return i


@kernel
def line_end(text: int, i: int, end: int) -> int:
    """Return the first position from ``i`` that holds a line feed or a carriage return, or ``end``."""
    while i < end and byte(text, i) != _LF and byte(text, i) != _CR:
        i += 1
    return i


@kernel
def _scan_object(text: int, start: int, end: int, spans: int, at: int, guess: int) -> tuple[int, int]:
    """An IRI, a blank node or a literal; the span of its note follows its own."""
    store(spans, at + 6, -1, _I64)
    first = byte(text, start) if start < end else _LF
    if first == _LESS:
        known = _common(text, start, end, guess, OBJECT_AT)
        if known > 0 and known == _length(guess, OBJECT_AT):
            return _again(start, spans, at, guess, OBJECT_AT), OK
        return _scan_iri(text, start, end, spans, at, known)
    if first == _UNDERSCORE:
        return _scan_blank(text, start, end, spans, at)
    if first != _QUOTE:
        return start, OBJECT
    i, error = _scan_string(text, start, end, spans, at)
    if error != OK:
        return i, error
    behind = blanks(text, i, end)
    mark = byte(text, behind) if behind < end else _LF
    if mark == _AT:
        store(spans, at + 2, TAGGED, _I64)
        return _scan_tag(text, behind, end, spans, at + 4)
    if mark == _CARET:
        if behind + 1 >= end or byte(text, behind + 1) != _CARET:
            return behind, DATATYPE_IRI
        i = blanks(text, behind + 2, end)
        if i >= end or byte(text, i) != _LESS:
            return i, DATATYPE_IRI
        store(spans, at + 2, TYPED, _I64)
        if _repeats(text, i, end, guess, NOTE_AT):
            return _again(i, spans, at + 4, guess, NOTE_AT), OK
        i, error = _scan_iri(text, i, end, spans, at + 4, 0)
        store(spans, at + 6, DATATYPE, _I64)
    return i, error


@kernel
def _scan_subject(text: int, i: int, end: int, spans: int, at: int) -> tuple[int, int]:
    """An IRI or a blank node."""
    first = byte(text, i) if i < end else _LF
    if first == _LESS:
        return _scan_iri(text, i, end, spans, at, 0)
    if first == _UNDERSCORE:
        return _scan_blank(text, i, end, spans, at)
    return i, DIRECTIVE if first == _AT else LITERAL_SUBJECT if first == _QUOTE else SUBJECT


@kernel
def _scan_predicate(text: int, i: int, end: int, spans: int, at: int) -> tuple[int, int]:
    """An IRI."""
    first = byte(text, i) if i < end else _LF
    if first == _LESS:
        return _scan_iri(text, i, end, spans, at, 0)
    return i, PREDICATE_NOT_IRI if first in (_UNDERSCORE, _QUOTE) else PREDICATE


@kernel
def _opens_term(text: int, i: int, end: int) -> bool:
    """Does a triple term begin at ``i``: ``<<(``?"""
    return i + 2 < end and byte(text, i) == _LESS and byte(text, i + 1) == _LESS and byte(text, i + 2) == _OPEN


@kernel
def _scan_term(text: int, start: int, end: int, spans: int, guess: int) -> tuple[int, int]:
    """A triple term (RDF 1.2 N-Triples, §2.4) whose ``<<(`` stands at ``start``, behind the predicate rdf:reifies."""
    begin, behind = load(spans, PREDICATE_AT, _I64), load(spans, PREDICATE_AT + 1, _I64)
    if behind - begin != len(_REIFIES):
        return start, REIFIES
    for k in range(len(_REIFIES)):
        if byte(text, begin + k) != _REIFIES[k]:
            return start, REIFIES
    i, error = _scan_subject(text, blanks(text, start + 3, end), end, spans, TERM_AT)
    if error == OK:
        i, error = _scan_predicate(text, blanks(text, i, end), end, spans, TERM_AT + PREDICATE_AT)
    if error == OK:
        i = blanks(text, i, end)
        if _opens_term(text, i, end):
            return i, NESTED
        i, error = _scan_object(text, i, end, spans, TERM_AT + OBJECT_AT, guess)
    if error != OK:
        return i, error
    i = blanks(text, i, end)
    if i + 2 >= end or byte(text, i) != _CLOSE or byte(text, i + 1) != _GREATER or byte(text, i + 2) != _GREATER:
        return i, TERM_END
    return i + 3, OK


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
            i, error = _scan_subject(text, i, end, spans, SUBJECT_AT)
            if error != OK:
                return i, error
        i = blanks(text, i, end)
        if _repeats(text, i, end, guess, PREDICATE_AT):
            i = _again(i, spans, PREDICATE_AT, guess, PREDICATE_AT)
        else:
            i, error = _scan_predicate(text, i, end, spans, PREDICATE_AT)
            if error != OK:
                return i, error
        i = blanks(text, i, end)
        if _opens_term(text, i, end):
            i, error = _scan_term(text, i, end, spans, guess)
        else:
            i, error = _scan_object(text, i, end, spans, OBJECT_AT, guess)
        if error != OK:
            return i, error
        i = blanks(text, i, end)
        if i < end and (byte(text, i) == _LESS or byte(text, i) == _UNDERSCORE):
            if not quads:
                return i, FOURTH
            i, error = _scan_subject(text, i, end, spans, GRAPH_AT)
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
