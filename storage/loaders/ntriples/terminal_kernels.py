"""The terminals of N-Triples and N-Quads as machine code: IRIs, blank nodes, strings, language tags, brackets.

Each function that scans one returns the position behind it, or that of its error, and the error (:mod:`.faults`); it
notes the terminal's span: (start, end, what, escaped), as :mod:`.scan_kernels` has it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphdb.common.values.terms import BLANK, IRI, LANGUAGE, PLAIN
from graphdb.storage.compile.kernels import kernel, load, store
from graphdb.storage.loaders.ntriples.faults import (
    BAD_TAG,
    CODE_POINT,
    HEXADECIMAL,
    IRI_CHARACTER,
    IRI_END,
    IRI_ESCAPE,
    IRI_ESCAPED,
    IRI_RELATIVE,
    LABEL,
    LONG_TAG,
    OK,
    STRING_END,
    STRING_ESCAPE,
    UTF8,
)

_TAB, _LF, _CR, _SPACE, _QUOTE = 9, 10, 13, 32, 34
_OPEN, _CLOSE, _MINUS, _DOT, _COLON, _LESS, _GREATER = 40, 41, 45, 46, 58, 60, 62
_BACKSLASH, _LOWER_U, _UPPER_U = 92, 117, 85

_SUBTAG = 8
"""Letters and digits that a part of a language tag has at most (BCP 47, §2.1)."""

_U8, _I64 = np.uint8(0), np.int64(0)


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
def span(spans: int, at: int, start: int, end: int, what: int, escaped: int) -> None:
    """Note where a term stands."""
    store(spans, at, start, _I64)
    store(spans, at + 1, end, _I64)
    store(spans, at + 2, what, _I64)
    store(spans, at + 3, escaped, _I64)


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
def names(text: int, i: int, end: int, iri: NDArray[np.uint8]) -> bool:
    """Is ``iri`` the one between ``i`` and ``end``?  Escapes, valid ones by now, count as what they mean."""
    k = 0
    while i < end and k < len(iri):
        point, width = byte(text, i) + 0, 1
        if point == _BACKSLASH:
            point, width, _ = uchar(text, i, end)
        if point != iri[k]:
            return False
        k += 1
        i += width
    return i == end and k == len(iri)


@kernel
def scan_iri(text: int, start: int, end: int, spans: int, at: int, known: int) -> tuple[int, int]:
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
            span(spans, at, start + 1, i, IRI, escaped)
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
def scan_blank(text: int, start: int, end: int, spans: int, at: int) -> tuple[int, int]:
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
    span(spans, at, start + 2, behind, BLANK, 0)
    return behind, OK


@kernel
def scan_string(text: int, start: int, end: int, spans: int, at: int) -> tuple[int, int]:
    """STRING_LITERAL_QUOTE, whose first quote stands at ``start``."""
    escaped = 0
    i = start + 1
    while i < end:
        found = byte(text, i)
        if _IN_STRING[found]:
            i += 1
        elif found == _QUOTE:
            span(spans, at, start + 1, i, PLAIN, escaped)
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
def scan_tag(text: int, start: int, end: int, spans: int, at: int) -> tuple[int, int]:
    """LANGTAG or, with a base direction, LANG_DIR, whose ``@`` stands at ``start``."""
    i = start + 1
    while i < end and _LETTER[byte(text, i)]:
        i += 1
    if i == start + 1:
        return i, BAD_TAG
    if i - start - 1 > _SUBTAG:
        return start + 1 + _SUBTAG, LONG_TAG
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
        if i - part > _SUBTAG:
            return part + _SUBTAG, LONG_TAG
    span(spans, at, start + 1, i, LANGUAGE, 0)
    return i, OK


@kernel
def opens_term(text: int, i: int, end: int) -> bool:
    """Does a triple term begin at ``i``: ``<<(``?"""
    return i + 2 < end and byte(text, i) == _LESS and byte(text, i + 1) == _LESS and byte(text, i + 2) == _OPEN


@kernel
def closes_term(text: int, i: int, end: int) -> bool:
    """Does a triple term end at ``i``: ``)>>``?"""
    return i + 2 < end and byte(text, i) == _CLOSE and byte(text, i + 1) == _GREATER and byte(text, i + 2) == _GREATER


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
