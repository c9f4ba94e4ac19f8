"""How deeply things are nested in a text, byte by byte, as machine code: elements, JSON, triple terms.

Each kernel follows the tokens of its format as the parser library reads them, also where the text breaks the grammar,
so that what the library would nest is counted.  It takes the next part of a text, wherever that was cut, and returns
how many of its bytes it read up to the first mark that goes deeper than ``most``, that one included; -1 where none
does.  ``state`` (int64[:data:`STATE`]) is what it knows at the end, all 0 at first.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.compile.kernels import entry

_IN_NAME = np.zeros(256, np.bool_)
"""Bytes behind which a backslash in Turtle may escape what follows: those of names."""
_IN_NAME[[*b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz-.:%", *range(0x80, 0x100)]] = True

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]

STATE = 6
"""Numbers in a state."""

MODE, DEPTH, SEEN, MARK, REIFIED, TERM = range(STATE)
"""Places in the state: the token that is being read, what is open, what was seen of that token; how many bytes the
mark has that goes too deep; of Turtle, open reified triples, and how deep the triple term was that just ended."""

_LF, _CR, _QUOTE, _HASH, _APOSTROPHE = 10, 13, 34, 35, 39
_OPEN, _CLOSE, _DASH, _SLASH, _LESS, _GREATER, _QUESTION = 40, 41, 45, 47, 60, 62, 63
_BANG, _BRACKET, _BACKSLASH, _END_BRACKET, _BRACE, _END_BRACE = 33, 91, 92, 93, 123, 125
_TAB, _SPACE, _BAR, _TILDE = 9, 32, 124, 126

_BETWEEN = 0
_ESCAPE, _STRING, _LONG_STRING, _COMMENT = 1, 2, 4, 6
"""Modes of Turtle and JSON; a string's is one more where its quote is the apostrophe."""
_IRI, _FIRST_LESS, _SECOND_LESS, _FIRST_CLOSE, _SECOND_CLOSE, _QUOTED = 8, 9, 10, 11, 12, 13
_FIRST_GREATER, _FIRST_BRACE = 15, 16

_MARKUP, _TAG, _END_TAG, _DECLARATION, _XML_COMMENT, _CDATA, _INSTRUCTION, _DOCTYPE, _VALUE = range(1, 10)
"""Modes of XML: behind ``<``, and the kinds of markup that it begins; within the value of an attribute."""


@entry("u1[:], i8[:], i8 -> i8")
def json(text: Bytes, state: Ints, most: int) -> int:
    """Follow objects and arrays."""
    mode, depth = state[MODE], state[DEPTH]
    for i in range(len(text)):
        byte = text[i]
        if mode == _ESCAPE:
            mode = _STRING
        elif mode == _STRING:
            if byte == _QUOTE:
                mode = _BETWEEN
            elif byte == _BACKSLASH:
                mode = _ESCAPE
        elif byte == _QUOTE:
            mode = _STRING
        elif byte in (_BRACKET, _BRACE):
            depth += 1
            if depth > most:
                state[MARK] = 1
                return i + 1
        elif byte in (_END_BRACKET, _END_BRACE):
            depth = max(depth - 1, 0)
    state[MODE], state[DEPTH] = mode, depth
    return -1


@entry("u1[:], i8[:], i8 -> i8")
def turtle(text: Bytes, state: Ints, most: int) -> int:
    """Follow the triple terms of Turtle or TriG, ``<<( … )>>``.  What else nests there takes no stack.

    A triple that is reified, ``<< … >>``, or annotated, by ``~`` or ``{|``, becomes a triple term itself, one deeper
    than its object.
    """
    mode, depth, seen, reified, term = state[MODE], state[DEPTH], state[SEEN], state[REIFIED], state[TERM]
    for i in range(len(text)):
        byte = text[i]
        if mode == _STRING or mode == _STRING + 1:
            if seen:
                seen = 0
            elif byte == _BACKSLASH:
                seen = 1
            elif byte == (_QUOTE if mode == _STRING else _APOSTROPHE):
                mode = _BETWEEN
            continue
        if mode == _LONG_STRING or mode == _LONG_STRING + 1:
            if seen < 0:
                seen = 0
            elif byte == _BACKSLASH:
                seen = -1
            elif byte == (_QUOTE if mode == _LONG_STRING else _APOSTROPHE):
                seen += 1
                if seen == 3:
                    mode, seen = _BETWEEN, 0
            else:
                seen = 0
            continue
        if mode == _IRI:
            if byte == _GREATER:
                mode = _BETWEEN
            continue
        if mode == _COMMENT:
            if byte in (_LF, _CR):
                mode = _BETWEEN
            continue
        if mode == _ESCAPE:
            mode = _BETWEEN
            continue
        if mode == _QUOTED or mode == _QUOTED + 1:  # behind a first quote, or a second
            if byte == (_QUOTE if seen == 0 else _APOSTROPHE):
                if mode == _QUOTED:
                    mode = _QUOTED + 1
                else:
                    mode, seen = _LONG_STRING + seen, 0
                continue
            if mode == _QUOTED:
                mode, seen = _STRING + seen, 1 if byte == _BACKSLASH else 0
                continue
            mode, seen = _BETWEEN, 0  # the string was empty
        elif mode == _FIRST_LESS:
            if byte != _LESS:
                mode = _BETWEEN if byte == _GREATER else _IRI
            else:
                mode = _SECOND_LESS
            continue
        elif mode == _SECOND_LESS:
            mode = _BETWEEN
            if byte == _OPEN:
                depth += 1
                if depth + (reified > 0) > most:
                    state[MARK] = 3
                    return i + 1
                continue
            reified += 1
        elif mode == _FIRST_CLOSE:
            mode = _SECOND_CLOSE if byte == _GREATER else _BETWEEN
            if byte == _GREATER:
                continue
            term = 0
        elif mode == _SECOND_CLOSE:
            mode = _BETWEEN
            if byte == _GREATER:
                term, depth = term + 1, max(depth - 1, 0)
                continue
        elif mode == _FIRST_GREATER:
            mode = _BETWEEN
            if byte == _GREATER:
                reified = max(reified - 1, 0)
                continue
        elif mode == _FIRST_BRACE:
            mode = _BETWEEN
            if byte == _BAR and term >= most:
                state[MARK] = 2
                return i + 1
            term = 0
        if byte == _TILDE and term >= most:
            state[MARK] = 1
            return i + 1
        if byte not in (_SPACE, _TAB, _LF, _CR, _HASH, _CLOSE, _BRACE):
            term = 0
        if byte == _LESS:
            mode = _FIRST_LESS
        elif byte == _GREATER:
            mode = _FIRST_GREATER
        elif byte == _BRACE:
            mode = _FIRST_BRACE
        elif byte == _CLOSE:
            mode = _FIRST_CLOSE
        elif byte in (_QUOTE, _APOSTROPHE):
            mode = _QUOTED
        elif byte == _HASH:
            mode = _COMMENT
        elif byte == _BACKSLASH and seen:
            mode = _ESCAPE
        else:
            seen = 1 if _IN_NAME[byte] else 0
            continue
        seen = 1 if mode == _ESCAPE or byte == _APOSTROPHE else 0
    state[MODE], state[DEPTH], state[SEEN], state[REIFIED], state[TERM] = mode, depth, seen, reified, term
    return -1


@entry("u1[:], i8[:], i8 -> i8")
def xml(text: Bytes, state: Ints, most: int) -> int:
    """Follow the elements of XML."""
    mode, depth, seen = state[MODE], state[DEPTH], state[SEEN]
    for i in range(len(text)):
        byte = text[i]
        if mode == _BETWEEN:
            if byte == _LESS:
                mode = _MARKUP
        elif mode == _MARKUP:
            seen = 0
            if byte == _SLASH:
                mode = _END_TAG
            elif byte == _BANG:
                mode = _DECLARATION
            elif byte == _QUESTION:
                mode = _INSTRUCTION
            else:
                depth += 1
                if depth > most:
                    state[MARK] = 1
                    return i
                mode = _BETWEEN if byte == _GREATER else _TAG
                if byte in (_QUOTE, _APOSTROPHE):
                    mode, seen = _VALUE, np.int64(byte)
        elif mode == _TAG:
            if byte in (_QUOTE, _APOSTROPHE):
                mode, seen = _VALUE, np.int64(byte)
            elif byte == _GREATER:
                depth -= seen
                mode = _BETWEEN
            else:
                seen = 1 if byte == _SLASH else 0
        elif mode == _VALUE:
            if byte == seen:
                mode, seen = _TAG, 0
        elif mode == _END_TAG:
            if byte == _GREATER:
                mode, depth = _BETWEEN, max(depth - 1, 0)
        elif mode == _DECLARATION:
            if byte == _DASH:
                mode, seen = _XML_COMMENT, -1
            elif byte == _BRACKET:
                mode = _CDATA
            else:
                mode, seen = _DOCTYPE, 1 if byte != _GREATER else 0
                if byte == _GREATER:
                    mode = _BETWEEN
        elif mode == _DOCTYPE:  # the library counts its angle brackets, in whatever they stand
            if byte == _LESS:
                seen += 1
            elif byte == _GREATER:
                seen -= 1
                if seen == 0:
                    mode = _BETWEEN
        elif byte == _GREATER and seen >= (1 if mode == _INSTRUCTION else 2):
            mode = _BETWEEN
        elif mode == _XML_COMMENT and seen < 0:
            seen = 0  # the second dash of its beginning
        elif byte == (_DASH if mode == _XML_COMMENT else _END_BRACKET if mode == _CDATA else _QUESTION):
            seen += 1
        else:
            seen = 0
    state[MODE], state[DEPTH], state[SEEN] = mode, depth, seen
    return -1
