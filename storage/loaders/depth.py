"""How deeply the elements of an XML document, or the objects and arrays of one of JSON, are nested.

What takes a time quadratic in it, or a stack, is refused.  Tags are counted by their marks, a piece at a time, which
takes next to nothing.  Text in CDATA or a comment may look like tags: before a document is refused, an XML parser
counts.  In JSON only brackets outside of strings count, and all of them.
"""

from __future__ import annotations

from contextlib import suppress
from xml.parsers import expat

import numpy as np

from graphdb.errors import LoadError
from graphdb.storage.loaders.files import DataFile
from graphdb.storage.loaders.streams import chunks

DEEPEST = 2000
"""Elements that may stand within each other."""

DEEPEST_JSON = 500
"""Objects and arrays that may stand within each other: the parser library takes a stack, and memory quadratic in it."""

_PIECE = 16 << 10
"""Bytes between two looks: elements that begin and end within are not worth one."""


_OTHERS = bytes(set(range(256)) - {*b'[]{}"'})
"""What neither begins nor ends anything in JSON."""

_STEPS = np.zeros(256, np.int8)
_STEPS[[*b"[{"]] = 1
_STEPS[[*b"]}"]] = -1


class Depth:
    """Follows the text of a document, and refuses it where it goes too deep."""

    def __init__(self, file: DataFile) -> None:
        self._file = file
        self._read = self._depth = 0
        self._most = DEEPEST
        self._rest = b""

    def follow(self, chunk: bytes) -> None:
        """Take the next part of the text.

        Raises
        ------
        LoadError
            Elements are nested deeper than :data:`DEEPEST`.
        """
        for start in range(0, len(chunk), _PIECE):
            piece = self._rest + chunk[start : start + _PIECE]
            self._rest = piece[-1:] if piece.endswith((b"<", b"/")) else b""
            piece = piece[: len(piece) - len(self._rest)]
            marks = (piece.count(b"</") * 2, piece.count(b"/>"), piece.count(b"<!"), piece.count(b"<?"))
            self._depth += piece.count(b"<") - sum(marks)
            self._read += len(piece)
            if self._depth > self._most:
                self._check()
                self._most = 2 * self._depth  # it looks deeper than it is

    def _check(self) -> None:
        """Count the elements that are open in what was read."""
        parser, depth = expat.ParserCreate(), 0
        left = self._read

        def enter(*_: object) -> None:
            nonlocal depth
            depth += 1
            if depth > DEEPEST:
                message = f"elements are nested deeper than {DEEPEST:,}"
                raise LoadError(message, source=self._file.name, line=parser.CurrentLineNumber)

        def leave(*_: object) -> None:
            nonlocal depth
            depth -= 1

        parser.StartElementHandler, parser.EndElementHandler = enter, leave
        with suppress(expat.ExpatError):  # which is for the reader to say
            for chunk, _ in chunks(self._file, 1 << 18):
                parser.Parse(chunk[:left], False)
                left -= len(chunk)
                if left <= 0:
                    return


class JsonDepth:
    """Follows the text of a JSON document, and refuses it where it goes too deep."""

    def __init__(self, file: DataFile) -> None:
        self._file = file
        self._depth = 0
        self._line = self._column = 1
        self._within = False
        """Whether a string is open."""
        self._escaping = False
        """Whether the next character is escaped."""

    def follow(self, chunk: bytes) -> None:
        """Take the next part of the text.

        Raises
        ------
        LoadError
            Objects and arrays are nested deeper than :data:`DEEPEST_JSON`.
        """
        if not chunk:
            return
        plain = b"x" + chunk[1:] if self._escaping else chunk
        plain = plain.replace(b"\\\\", b"xx")
        self._escaping = plain.endswith(b"\\")
        plain = plain.replace(b'\\"', b"xx")
        marks = np.frombuffer(plain.translate(None, _OTHERS), np.uint8)
        if not len(marks):
            self._pass(chunk)
            return
        within = (np.cumsum(marks == ord('"'), dtype=np.uint8) & 1 != 0) ^ self._within
        depths = self._depth + np.cumsum(_STEPS[marks] * ~within, dtype=np.int32)
        if depths.max() > DEEPEST_JSON:
            places = np.flatnonzero(np.isin(np.frombuffer(plain, np.uint8), marks))
            self._pass(chunk[: places[np.argmax(depths > DEEPEST_JSON)]])
            raise LoadError(
                f"objects and arrays are nested deeper than {DEEPEST_JSON}",
                source=self._file.name,
                line=self._line,
                column=self._column,
            )
        self._depth, self._within = int(depths[-1]), bool(within[-1])
        self._pass(chunk)

    def _pass(self, text: bytes) -> None:
        """Go on in lines and columns, which are counted in characters."""
        self._line += text.count(b"\n")
        last = text[text.rfind(b"\n") + 1 :]
        started = 1 if len(last) < len(text) else self._column
        self._column = started + int(np.count_nonzero(np.frombuffer(last, np.uint8) & 0xC0 != 0x80))
