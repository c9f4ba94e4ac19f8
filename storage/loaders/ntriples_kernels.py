"""The N-Triples grammar as machine code: one pass that validates, decodes and numbers the terms of a block of lines.

The grammar is the one of W3C RDF 1.1 N-Triples (§7), with the erratum that a colon does not belong in a blank node label.
Each line is first scanned whole; only a line without an error has its terms numbered, so that a bad line
leaves nothing behind.  Numbering goes through a hash table with open addressing over a pool of decoded UTF-8 bytes.

All positions are byte offsets into ``text``, a ``uint8`` array that ends with a line's end (or with the file).
"""

from __future__ import annotations

import numpy as np

from graphdb.storage.jit import kernel

IRI, BLANK, PLAIN, TAGGED, TYPED, DATATYPE, LANGUAGE = range(7)
"""What a term of a batch is; the last two are no terms themselves but the annotations of literals."""

POSITION, LINE, TERMS, TRIPLES, ERRORS = range(5)
"""Places in the ``state`` array: bytes consumed, lines seen, terms, triples and errors written."""

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
    TAG,
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


def _table(characters: bytes) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
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
def _utf8(text, i, end):
    """Return the character at ``i`` and its width in bytes; the width is 0 where the bytes are not UTF-8."""
    first = np.int64(text[i])
    if first < 0x80:
        return first, 1
    if first < 0xC2 or first > 0xF4:
        return 0, 0
    width = 2 if first < 0xE0 else 3 if first < 0xF0 else 4
    if i + width > end:
        return 0, 0
    point = first & (0x7F >> width)
    for k in range(1, width):
        byte = np.int64(text[i + k])
        if byte & 0xC0 != 0x80:
            return 0, 0
        point = point << 6 | byte & 0x3F
    if width == 3 and (point < 0x800 or 0xD800 <= point < 0xE000):
        return 0, 0
    if width == 4 and (point < 0x10000 or point > 0x10FFFF):
        return 0, 0
    return point, width


@kernel
def _uchar(text, i, end):
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
def _put(pool, at, point):
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
def _in_label(point):
    """Is this character beyond ASCII in PN_CHARS?"""
    return _starts_label(point) or point == 0xB7 or 0x300 <= point <= 0x36F or point == 0x203F or point == 0x2040


@kernel
def _starts_label(point):
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
def _absolute(text, i, end):
    """Does the IRI at ``i`` begin with a scheme and a colon?  (Escapes, as valid as they are here, count as what they mean.)"""
    first = True
    while i < end:
        point, width = np.int64(text[i]), 1
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
def _scan_iri(text, start, end, span):
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
            span[0], span[1], span[2], span[3] = start + 1, i, IRI, escaped
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
            return i, IRI_END if byte == _LF or byte == _CR else IRI_CHARACTER
    return i, IRI_END


@kernel
def _scan_blank(text, start, end, span):
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
    span[0], span[1], span[2], span[3] = start + 2, behind, BLANK, 0
    return behind, OK


@kernel
def _scan_string(text, start, end, span):
    """STRING_LITERAL_QUOTE, whose first quote stands at ``start``."""
    escaped = 0
    i = start + 1
    while i < end:
        byte = text[i]
        if _IN_STRING[byte]:
            i += 1
        elif byte == _QUOTE:
            span[0], span[1], span[2], span[3] = start + 1, i, PLAIN, escaped
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
def _scan_tag(text, start, end, span):
    """LANGTAG, whose ``@`` stands at ``start``."""
    i = start + 1
    while i < end and _LETTER[text[i]]:
        i += 1
    if i == start + 1:
        return i, TAG
    while i < end and text[i] == _MINUS:
        part = i + 1
        i = part
        while i < end and _ALPHANUMERIC[text[i]]:
            i += 1
        if i == part:
            return i, TAG
    span[0], span[1], span[2], span[3] = start + 1, i, LANGUAGE, 0
    return i, OK


@kernel
def _blanks(text, i, end):
    """Return the first position from ``i`` that holds neither space nor tab."""
    while i < end and (text[i] == _SPACE or text[i] == _TAB):
        i += 1
    return i


@kernel
def _line_end(text, i, end):
    """Return the first position from ``i`` that holds a line feed or a carriage return, or ``end``."""
    while i < end and text[i] != _LF and text[i] != _CR:
        i += 1
    return i


@kernel
def _scan_line(text, start, end, spans):
    """Scan one line into ``spans``: rows subject, predicate, object, annotation of (start, end, what, escaped).

    ``spans[0, 2]`` is -1 for a line without a triple, ``spans[3, 2]`` for an object without annotation.
    """
    spans[0, 2] = spans[3, 2] = -1
    i = _blanks(text, start, end)
    if i < end and text[i] != _LF and text[i] != _CR and text[i] != _HASH:
        if text[i] == _LESS:
            i, error = _scan_iri(text, i, end, spans[0])
        elif text[i] == _UNDERSCORE:
            i, error = _scan_blank(text, i, end, spans[0])
        else:
            error = DIRECTIVE if text[i] == _AT else LITERAL_SUBJECT if text[i] == _QUOTE else SUBJECT
        if error != OK:
            return i, error

        i = _blanks(text, i, end)
        if i >= end or text[i] != _LESS:
            return i, PREDICATE_NOT_IRI if i < end and (text[i] == _UNDERSCORE or text[i] == _QUOTE) else PREDICATE
        i, error = _scan_iri(text, i, end, spans[1])
        if error != OK:
            return i, error

        i = _blanks(text, i, end)
        if i < end and text[i] == _LESS:
            i, error = _scan_iri(text, i, end, spans[2])
        elif i < end and text[i] == _UNDERSCORE:
            i, error = _scan_blank(text, i, end, spans[2])
        elif i < end and text[i] == _QUOTE:
            i, error = _scan_string(text, i, end, spans[2])
            if error == OK:
                i = _blanks(text, i, end)
                if i < end and text[i] == _AT:
                    i, error = _scan_tag(text, i, end, spans[3])
                    spans[2, 2] = TAGGED
                elif i < end and text[i] == _CARET:
                    if i + 1 >= end or text[i + 1] != _CARET:
                        return i, DATATYPE_IRI
                    i = _blanks(text, i + 2, end)
                    if i >= end or text[i] != _LESS:
                        return i, DATATYPE_IRI
                    i, error = _scan_iri(text, i, end, spans[3])
                    spans[2, 2] = TYPED
                    spans[3, 2] = DATATYPE
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
def _word(source, i):
    """Return eight bytes as one number."""
    word = np.uint64(source[i])
    for k in range(1, 8):
        word |= np.uint64(source[i + k]) << np.uint64(8 * k)
    return word


@kernel
def _hash(source, start, length, seed):
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
    return value ^ (value >> _HALF)


@kernel
def _same(left, i, right, j, length):
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
def intern(source, start, length, what, annotation, state, pool, offsets, kinds, annotations, hashes, slots):
    """Return the number of a term, giving it the next one if it is new.

    A term is its bytes ``source[start : start + length]``, what it is and the number of its annotation (-1: none).
    ``source`` may be the pool's own unused tail.
    """
    value = _hash(source, start, length, what + 8 * (annotation + 1))
    mask = len(slots) - 1
    slot = np.int64(value) & mask
    while slots[slot] >= 0:
        term = np.int64(slots[slot])
        if (
            hashes[term] == value
            and offsets[term + 1] - offsets[term] == length
            and kinds[term] == what
            and annotations[term] == annotation
            and _same(pool, offsets[term], source, start, length)
        ):
            return term
        slot = (slot + 1) & mask
    term = state[TERMS]
    at = offsets[term]
    for k in range(length):
        pool[at + k] = source[start + k]
    offsets[term + 1] = at + length
    kinds[term] = what
    annotations[term] = annotation
    hashes[term] = value
    slots[slot] = term
    state[TERMS] = term + 1
    return term


@kernel
def rehash(hashes, terms, slots):
    """Enter the first ``terms`` terms into an empty table ``slots`` (all -1, its length a power of two)."""
    mask = len(slots) - 1
    for term in range(terms):
        slot = np.int64(hashes[term]) & mask
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = term


@kernel
def _decode(text, i, end, pool, at):
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
def _number(text, span, annotation, prefix, state, pool, offsets, kinds, annotations, hashes, slots):
    """Return the number of the term that ``span`` shows."""
    start, end, what = span[0], span[1], span[2]
    tail = offsets[state[TERMS]]
    if what == BLANK:
        for k in range(len(prefix)):
            pool[tail + k] = prefix[k]
        behind = tail + len(prefix)
        for k in range(start, end):
            pool[behind + k - start] = text[k]
        length = len(prefix) + end - start
    elif what == LANGUAGE:
        for k in range(start, end):
            byte = text[k]
            pool[tail + k - start] = byte | 0x20 if 65 <= byte <= 90 else byte
        length = end - start
    elif span[3]:
        length = _decode(text, start, end, pool, tail) - tail
    else:
        return intern(
            text, start, end - start, what, annotation, state, pool, offsets, kinds, annotations, hashes, slots
        )
    return intern(pool, tail, length, what, annotation, state, pool, offsets, kinds, annotations, hashes, slots)


@kernel
def parse(text, prefix, state, triples, errors, pool, offsets, kinds, annotations, hashes, slots):
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
    offsets : int64[t + 1], kinds : uint8[t], annotations : int32[t], hashes : uint64[t]
        Per term: where its bytes begin (the next one's begin is its end), what it is, its annotation's number or -1.
    slots : int32[power of two]
        The hash table: numbers of terms, -1 where empty.  Term 0 must be the datatype ``xsd:string``.
    """
    end = len(text)
    spans = np.zeros((4, 4), np.int64)
    while state[POSITION] < end:
        if state[TERMS] + 5 > len(kinds) or 2 * (state[TERMS] + 5) > len(slots):
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
            row = errors[state[ERRORS]]
            row[0], row[1], row[2], row[3], row[4] = state[LINE], start, i, place, error
            state[ERRORS] += 1
        elif spans[0, 2] >= 0:
            annotation = -1
            if spans[3, 2] >= 0:
                annotation = _number(
                    text, spans[3], -1, prefix, state, pool, offsets, kinds, annotations, hashes, slots
                )
                if annotation == 0:  # "x"^^xsd:string is "x" (RDF 1.1 Concepts, §3.3)
                    annotation = -1
                    spans[2, 2] = PLAIN
            triple = triples[state[TRIPLES]]
            triple[0] = _number(text, spans[0], -1, prefix, state, pool, offsets, kinds, annotations, hashes, slots)
            triple[1] = _number(text, spans[1], -1, prefix, state, pool, offsets, kinds, annotations, hashes, slots)
            triple[2] = _number(
                text, spans[2], annotation, prefix, state, pool, offsets, kinds, annotations, hashes, slots
            )
            state[TRIPLES] += 1
        if i < end:  # the line's end: LF, CR or CR LF
            i += 2 if text[i] == _CR and i + 1 < end and text[i + 1] == _LF else 1
        state[POSITION] = i
    return DONE
