"""The N-Triples grammar as machine code: one pass that validates, decodes and numbers the terms of a block of lines.

The grammar is the one of W3C RDF 1.1 N-Triples (§7), with the erratum that a colon does not belong in a
blank node label.  Each line is first scanned whole; only a line without an error has its terms numbered, so that a
bad line leaves nothing behind.  Numbering goes through a hash table with open addressing over a pool of decoded bytes.

All positions are byte offsets into ``text``, a ``uint8`` array that ends with a line's end (or with the file).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.jit import kernel

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Codes = NDArray[np.int32]

IRI, BLANK, PLAIN, TAGGED, TYPED, DATATYPE, LANGUAGE = range(7)
"""What a term of a batch is; the last two are no terms themselves but the annotations of literals."""

POSITION, LINE, TERMS, TRIPLES, ERRORS = range(5)
"""Places in the ``state`` array: bytes consumed, lines seen, terms, triples and errors written."""

START, TAG, HASH = range(3)
"""Columns of the table of terms (the fourth makes a row half a cache line)."""

DONE, TERMS_FULL, TRIPLES_FULL, ERRORS_FULL = range(4)
"""Why :func:`parse` returned."""

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
) = range(22)
"""What is wrong with a line."""

_TAB, _LF, _CR, _SPACE, _QUOTE, _HASH = 9, 10, 13, 32, 34, 35
_MINUS, _DOT, _COLON, _LESS, _GREATER, _AT = 45, 46, 58, 60, 62, 64
_BACKSLASH, _CARET, _UNDERSCORE, _LOWER_U, _UPPER_U = 92, 94, 95, 117, 85

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_SEED = np.uint64(0xCBF29CE484222325)
_HALF, _THIRD = np.uint64(32), np.uint64(29)


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

_ECHAR = np.zeros(256, np.uint8)
"""The character that a backslash and a letter stand for; 0 where they stand for none."""
for _letter, _meaning in zip(b"tbnrf\"'\\", b"\t\b\n\r\f\"'\\", strict=True):
    _ECHAR[_letter] = _meaning

_HEX = np.full(256, -1, np.int64)
for _digit in b"0123456789abcdefABCDEF":
    _HEX[_digit] = int(chr(_digit), 16)


# --- characters ------------------------------------------------------------------------------------------------


@kernel
def _utf8(text: Bytes, i: int, end: int) -> tuple[int, int]:
    """Return the character at ``i`` and its width in bytes; the width is 0 where the bytes are not UTF-8."""
    first = text[i] + 0
    if first < 0x80:
        return first, 1
    if first < 0xC2 or first > 0xF4:
        return 0, 0
    width = 2 if first < 0xE0 else 3 if first < 0xF0 else 4
    if i + width > end:
        return 0, 0
    point = first & (0x7F >> width)
    for k in range(1, width):
        byte = text[i + k] + 0
        if byte & 0xC0 != 0x80:
            return 0, 0
        point = point << 6 | byte & 0x3F
    if width == 3 and (point < 0x800 or 0xD800 <= point < 0xE000):
        return 0, 0
    if width == 4 and (point < 0x10000 or point > 0x10FFFF):
        return 0, 0
    return point, width


@kernel
def _uchar(text: Bytes, i: int, end: int) -> tuple[int, int, int]:
    r"""Return the character that the ``\uXXXX`` or ``\UXXXXXXXX`` at ``i`` stands for, its width, and the error."""
    width = 6 if text[i + 1] == _LOWER_U else 10
    point = 0
    for k in range(2, width):
        digit = _HEX[text[i + k]] if i + k < end else -1
        if digit < 0:
            return 0, 0, HEXADECIMAL
        point = point << 4 | digit
    if point > 0x10FFFF or 0xD800 <= point < 0xE000:
        return 0, 0, CODE_POINT
    return point, width, OK


@kernel
def _put(pool: Bytes, at: int, point: int) -> int:
    """Write the character ``point`` as UTF-8 and return the position behind it."""
    if point < 0x80:
        pool[at] = point
        return at + 1
    if point < 0x800:
        pool[at] = 0xC0 | point >> 6
        pool[at + 1] = 0x80 | point & 0x3F
        return at + 2
    if point < 0x10000:
        pool[at] = 0xE0 | point >> 12
        pool[at + 1] = 0x80 | point >> 6 & 0x3F
        pool[at + 2] = 0x80 | point & 0x3F
        return at + 3
    pool[at] = 0xF0 | point >> 18
    pool[at + 1] = 0x80 | point >> 12 & 0x3F
    pool[at + 2] = 0x80 | point >> 6 & 0x3F
    pool[at + 3] = 0x80 | point & 0x3F
    return at + 4


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
def _absolute(text: Bytes, i: int, end: int) -> bool:
    """Does the IRI at ``i`` begin with a scheme and a colon?  Escapes, valid ones by now, count as what they mean."""
    first = True
    while i < end:
        point, width = text[i] + 0, 1
        if point == _BACKSLASH:
            point, width, _ = _uchar(text, i, end)
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
def _scan_iri(text: Bytes, start: int, end: int, spans: Ints, at: int) -> tuple[int, int]:
    """IRIREF, whose ``<`` stands at ``start``."""
    escaped = 0
    i = start + 1
    while i < end:
        byte = text[i]
        if _IN_IRI[byte]:
            i += 1
        elif byte == _GREATER:
            if not _absolute(text, start + 1, i):
                return start, IRI_RELATIVE
            spans[at], spans[at + 1], spans[at + 2], spans[at + 3] = start + 1, i, IRI, escaped
            return i + 1, OK
        elif byte == _BACKSLASH:
            if i + 1 >= end or (text[i + 1] != _LOWER_U and text[i + 1] != _UPPER_U):
                return i, IRI_ESCAPE
            point, width, error = _uchar(text, i, end)
            if error != OK:
                return i, error
            if point < 0x80 and not _IN_IRI[point]:
                return i, IRI_ESCAPED
            escaped = 1
            i += width
        elif byte >= 0x80:
            _, width = _utf8(text, i, end)
            if width == 0:
                return i, UTF8
            i += width
        else:
            return i, IRI_END if byte in (_LF, _CR) else IRI_CHARACTER
    return i, IRI_END


@kernel
def _scan_blank(text: Bytes, start: int, end: int, spans: Ints, at: int) -> tuple[int, int]:
    """BLANK_NODE_LABEL, whose ``_`` stands at ``start``; the span is the label without ``_:``."""
    i = start + 2
    if start + 1 >= end or text[start + 1] != _COLON:
        return start, LABEL
    behind = i
    while i < end:
        byte = text[i]
        width = 1
        if byte >= 0x80:
            point, width = _utf8(text, i, end)
            if width == 0:
                return i, UTF8
            if not (_starts_label(point) if i == start + 2 else _in_label(point)):
                break
        elif not (_STARTS_LABEL[byte] if i == start + 2 else _IN_LABEL[byte]):
            break
        i += width
        if byte != _DOT:
            behind = i
    if behind == start + 2:
        return behind, LABEL
    spans[at], spans[at + 1], spans[at + 2], spans[at + 3] = start + 2, behind, BLANK, 0
    return behind, OK


@kernel
def _scan_string(text: Bytes, start: int, end: int, spans: Ints, at: int) -> tuple[int, int]:
    """STRING_LITERAL_QUOTE, whose first quote stands at ``start``."""
    escaped = 0
    i = start + 1
    while i < end:
        byte = text[i]
        if _IN_STRING[byte]:
            i += 1
        elif byte == _QUOTE:
            spans[at], spans[at + 1], spans[at + 2], spans[at + 3] = start + 1, i, PLAIN, escaped
            return i + 1, OK
        elif byte == _BACKSLASH:
            escaped = 1
            if i + 1 < end and (text[i + 1] == _LOWER_U or text[i + 1] == _UPPER_U):
                _, width, error = _uchar(text, i, end)
                if error != OK:
                    return i, error
                i += width
            elif i + 1 < end and _ECHAR[text[i + 1]]:
                i += 2
            else:
                return i, STRING_ESCAPE
        elif byte >= 0x80:
            _, width = _utf8(text, i, end)
            if width == 0:
                return i, UTF8
            i += width
        else:
            break
    return i, STRING_END


@kernel
def _scan_tag(text: Bytes, start: int, end: int, spans: Ints, at: int) -> tuple[int, int]:
    """LANGTAG, whose ``@`` stands at ``start``."""
    i = start + 1
    while i < end and _LETTER[text[i]]:
        i += 1
    if i == start + 1:
        return i, BAD_TAG
    while i < end and text[i] == _MINUS:
        part = i + 1
        i = part
        while i < end and _ALPHANUMERIC[text[i]]:
            i += 1
        if i == part:
            return i, BAD_TAG
    spans[at], spans[at + 1], spans[at + 2], spans[at + 3] = start + 1, i, LANGUAGE, 0
    return i, OK


@kernel
def _blanks(text: Bytes, i: int, end: int) -> int:
    """Return the first position from ``i`` that holds neither space nor tab."""
    while i < end and (text[i] == _SPACE or text[i] == _TAB):
        i += 1
    return i


@kernel
def _line_end(text: Bytes, i: int, end: int) -> int:
    """Return the first position from ``i`` that holds a line feed or a carriage return, or ``end``."""
    while i < end and text[i] != _LF and text[i] != _CR:
        i += 1
    return i


@kernel
def _scan_line(text: Bytes, start: int, end: int, spans: Ints) -> tuple[int, int]:
    """Scan one line into ``spans``: (start, end, what, escaped) of subject, predicate, object and annotation.

    ``spans[2]`` is -1 for a line without a triple, ``spans[14]`` for an object without annotation.  (Sixteen numbers
    in a row: slices of an array would be counted references, once per term.)
    """
    spans[2] = spans[14] = -1
    i = _blanks(text, start, end)
    if i < end and text[i] != _LF and text[i] != _CR and text[i] != _HASH:
        if text[i] == _LESS:
            i, error = _scan_iri(text, i, end, spans, 0)
        elif text[i] == _UNDERSCORE:
            i, error = _scan_blank(text, i, end, spans, 0)
        else:
            error = DIRECTIVE if text[i] == _AT else LITERAL_SUBJECT if text[i] == _QUOTE else SUBJECT
        if error != OK:
            return i, error

        i = _blanks(text, i, end)
        if i >= end or text[i] != _LESS:
            return i, PREDICATE_NOT_IRI if i < end and (text[i] == _UNDERSCORE or text[i] == _QUOTE) else PREDICATE
        i, error = _scan_iri(text, i, end, spans, 4)
        if error != OK:
            return i, error

        i = _blanks(text, i, end)
        if i < end and text[i] == _LESS:
            i, error = _scan_iri(text, i, end, spans, 8)
        elif i < end and text[i] == _UNDERSCORE:
            i, error = _scan_blank(text, i, end, spans, 8)
        elif i < end and text[i] == _QUOTE:
            i, error = _scan_string(text, i, end, spans, 8)
            if error == OK:
                i = _blanks(text, i, end)
                if i < end and text[i] == _AT:
                    i, error = _scan_tag(text, i, end, spans, 12)
                    spans[10] = TAGGED
                elif i < end and text[i] == _CARET:
                    if i + 1 >= end or text[i + 1] != _CARET:
                        return i, DATATYPE_IRI
                    i = _blanks(text, i + 2, end)
                    if i >= end or text[i] != _LESS:
                        return i, DATATYPE_IRI
                    i, error = _scan_iri(text, i, end, spans, 12)
                    spans[10] = TYPED
                    spans[14] = DATATYPE
        else:
            error = OBJECT
        if error != OK:
            return i, error

        i = _blanks(text, i, end)
        if i >= end or text[i] != _DOT:
            return i, DOT
        i = _blanks(text, i + 1, end)
        if i < end and text[i] != _LF and text[i] != _CR and text[i] != _HASH:
            return i, LINE_END
    while i < end and text[i] != _LF and text[i] != _CR:  # a comment: any characters
        _, width = _utf8(text, i, end)
        if width == 0:
            return i, UTF8
        i += width
    return i, OK


# --- terms -----------------------------------------------------------------------------------------------------


@kernel
def _word(source: Bytes, i: int) -> np.uint64:
    """Return eight bytes as one number."""
    word = np.uint64(source[i])
    for k in range(1, 8):
        word |= np.uint64(source[i + k]) << np.uint64(8 * k)
    return word


@kernel
def hash_bytes(source: Bytes, start: int, length: int, seed: int) -> np.int64:
    """Return a 64-bit hash of ``source[start : start + length]``."""
    value = _SEED ^ (np.uint64(seed) * _MULTIPLIER)
    i = start
    end = start + length
    while i + 8 <= end:
        value = (value ^ _word(source, i)) * _MULTIPLIER
        value ^= value >> _HALF
        i += 8
    while i < end:
        value = (value ^ np.uint64(source[i])) * _MULTIPLIER
        i += 1
    value ^= value >> _THIRD
    value *= _MULTIPLIER
    return np.int64(value ^ (value >> _HALF))


@kernel
def _same(left: Bytes, i: int, right: Bytes, j: int, length: int) -> bool:
    """Are the ``length`` bytes at ``left[i]`` and ``right[j]`` the same?"""
    k = 0
    while k + 8 <= length:
        if _word(left, i + k) != _word(right, j + k):
            return False
        k += 8
    while k < length:
        if left[i + k] != right[j + k]:
            return False
        k += 1
    return True


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
def _decode(text: Bytes, i: int, end: int, pool: Bytes, at: int) -> int:
    """Write ``text[i:end]`` with its escapes replaced to ``pool[at:]`` and return the position behind it."""
    while i < end:
        byte = text[i]
        if byte != _BACKSLASH:
            pool[at] = byte
            i += 1
            at += 1
        elif text[i + 1] == _LOWER_U or text[i + 1] == _UPPER_U:
            point, width, _ = _uchar(text, i, end)
            at = _put(pool, at, point)
            i += width
        else:
            pool[at] = _ECHAR[text[i + 1]]
            i += 2
            at += 1
    return at


@kernel
def _repeats(text: Bytes, spans: Ints, at: int, before: Ints) -> bool:
    """Is the term that ``spans[at]`` shows written as the one that ``before[at]`` shows?"""
    length = spans[at + 1] - spans[at]
    return (
        spans[at + 2] == before[at + 2]
        and length == before[at + 1] - before[at]
        and _same(text, spans[at], text, before[at], length)
    )


@kernel
def _number_line(
    text: Bytes,
    spans: Ints,
    before: Ints,
    prefix: Bytes,
    state: Ints,
    triples: Codes,
    pool: Bytes,
    terms: Ints,
    slots: Codes,
) -> None:
    """Write the line's terms as numbers to ``triples``, giving new terms the next numbers.

    One function for the whole line: an array handed to a function is a counted reference, which costs as much as
    looking a term up.
    """
    row = state[TRIPLES]
    mask = len(slots) - 1
    annotation = -1
    for part in range(4):
        at = (part + 3) % 4 * 4  # the annotation first: the object's identity includes its number
        start, end, what = spans[at], spans[at + 1], spans[at + 2]
        if what < 0:
            continue
        if at <= 4 and _repeats(text, spans, at, before):
            triples[row, at // 4] = triples[row - 1, at // 4]
            continue

        # The term's bytes go to the pool's unused tail.
        term = state[TERMS]
        tail = terms[term, START]
        behind = tail
        if what == BLANK:
            for byte in prefix:
                pool[behind] = byte
                behind += 1
        if spans[at + 3]:
            behind = _decode(text, start, end, pool, behind)
        else:
            for k in range(end - start):
                pool[behind + k] = text[start + k]
            behind += end - start
        if what == LANGUAGE:
            for k in range(tail, behind):
                if 65 <= pool[k] <= 90:
                    pool[k] |= 0x20
        elif what == TYPED and annotation == 0:  # "x"^^xsd:string is "x" (RDF 1.1 Concepts, §3.3)
            what = PLAIN
            annotation = -1

        # Look it up; where it is new, the tail becomes part of the pool.
        tag = what | (annotation + 1) << 3 if at == 8 else what
        value = hash_bytes(pool, tail, behind - tail, tag)
        slot = value & mask
        while True:
            known = slots[slot] + 0
            if known < 0:
                terms[term + 1, START] = behind
                terms[term, TAG] = tag
                terms[term, HASH] = value
                slots[slot] = term
                state[TERMS] = term + 1
                known = term
                break
            if (
                terms[known, HASH] == value
                and terms[known, TAG] == tag
                and terms[known + 1, START] - terms[known, START] == behind - tail
                and _same(pool, terms[known, START], pool, tail, behind - tail)
            ):
                break
            slot = (slot + 1) & mask
        if at == 12:
            annotation = known
        else:
            triples[row, at // 4] = known
    for k in range(8):
        before[k] = spans[k]
    state[TRIPLES] = row + 1


@kernel
def parse(
    text: Bytes,
    prefix: Bytes,
    state: Ints,
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
    state : int64[5]
        Where the work stands; see :data:`POSITION` and its neighbours.
    triples : int32[n, 3]
        Receives subject, predicate and object as numbers of terms.
    errors : int64[m, 5]
        Receives line number, start and end of the line, position of the error, what is wrong.
    pool : uint8[]
        The terms' UTF-8 bytes, term after term; must have room for the rest of ``text`` and a prefix per line.
    terms : int64[t, 4]
        Per term, side by side so that looking one up touches memory once: :data:`START` in the pool (the next one's is
        its end), :data:`TAG`, which is ``what | (annotation + 1) << 3``, and :data:`HASH`.
    slots : int32[power of two]
        The hash table: numbers of terms, -1 where empty.  Term 0 must be the datatype ``xsd:string``.
    """
    end = len(text)
    spans = np.zeros(16, np.int64)
    before = np.full(16, -1, np.int64)  # the line before: dumps repeat subjects, and often predicates
    while state[POSITION] < end:
        if state[TERMS] + 5 > len(terms) or 2 * (state[TERMS] + 5) > len(slots):
            return TERMS_FULL
        if state[TRIPLES] >= len(triples):
            return TRIPLES_FULL
        if state[ERRORS] >= len(errors):
            return ERRORS_FULL
        start = state[POSITION]
        i, error = _scan_line(text, start, end, spans)
        state[LINE] += 1
        if error != OK:
            place = i
            i = _line_end(text, i, end)
            row = state[ERRORS]
            errors[row, 0], errors[row, 1], errors[row, 2] = state[LINE], start, i
            errors[row, 3], errors[row, 4] = place, error
            state[ERRORS] += 1
        elif spans[2] >= 0:
            _number_line(text, spans, before, prefix, state, triples, pool, terms, slots)
        if i < end:  # the line's end: LF, CR or CR LF
            i += 2 if text[i] == _CR and i + 1 < end and text[i + 1] == _LF else 1
        state[POSITION] = i
    return DONE
