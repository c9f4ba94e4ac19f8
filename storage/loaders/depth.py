"""How deeply the elements of an XML document are nested: what takes a time quadratic in it is refused.

Tags are counted by their marks, a piece at a time, which takes next to nothing.  Text in CDATA or a comment may look
like tags: before a document is refused, an XML parser counts.
"""

from __future__ import annotations

from contextlib import suppress
from xml.parsers import expat

from graphdb.errors import LoadError
from graphdb.storage.loaders.files import DataFile
from graphdb.storage.loaders.streams import chunks

DEEPEST = 2000
"""Elements that may stand within each other."""

_PIECE = 16 << 10
"""Bytes between two looks: elements that begin and end within are not worth one."""


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
