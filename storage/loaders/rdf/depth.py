"""How deeply the elements of an XML document, the objects and arrays of one of JSON, or triple terms are nested.

What takes a time quadratic in it, or a stack, is refused before the parser library sees it: a text is followed as it is
read, whether from a file or a stream (:mod:`.depth_kernels`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphdb.common.errors import LoadError
from graphdb.storage.loaders.files import DataFile
from graphdb.storage.loaders.formats import JSON_LD, RDF_XML, TRIG, TURTLE, Format
from graphdb.storage.loaders.ntriples.faults import DEEPEST as DEEPEST_TERM
from graphdb.storage.loaders.ntriples.faults import MESSAGES, TERM_DEPTH
from graphdb.storage.loaders.rdf import depth_kernels as kernels

DEEPEST = 2000
"""Elements that may stand within each other: the parser library takes a time quadratic in it."""

DEEPEST_JSON = 500
"""Objects and arrays that may stand within each other: the parser library takes a stack, and memory quadratic in it."""


@dataclass(frozen=True, slots=True)
class Nesting:
    """What nests in a format: a kernel that follows it, how deep it may go, in words, and the bytes of its mark."""

    follow: Callable[[NDArray[np.uint8], NDArray[np.int64], int], int]
    most: int
    message: str
    mark: int


_ELEMENTS = Nesting(kernels.xml, DEEPEST, f"elements are nested deeper than {DEEPEST:,}", len("<"))
_VALUES = Nesting(kernels.json, DEEPEST_JSON, f"objects and arrays are nested deeper than {DEEPEST_JSON}", len("["))
_TERMS = Nesting(kernels.turtle, DEEPEST_TERM, MESSAGES[TERM_DEPTH][0], len("<<("))

NESTINGS: dict[Format, Nesting] = {RDF_XML: _ELEMENTS, JSON_LD: _VALUES, TURTLE: _TERMS, TRIG: _TERMS}


class Depth:
    """Follows the text of a document, and refuses it where it goes too deep."""

    def __init__(self, file: DataFile, nesting: Nesting | None = None) -> None:
        self._file = file
        self._nesting = nesting or NESTINGS[file.format]
        self._state = np.zeros(3, np.int64)
        self._line = self._column = 1

    def follow(self, chunk: bytes) -> None:
        """Take the next part of the text.

        Raises
        ------
        LoadError
            It is nested too deeply.
        """
        nesting = self._nesting
        read = nesting.follow(np.frombuffer(chunk, np.uint8), self._state, nesting.most) if chunk else -1
        self._pass(chunk if read < 0 else chunk[:read])
        if read >= 0:
            column = self._column - nesting.mark
            raise LoadError(nesting.message, source=self._file.name, line=self._line, column=column)

    def _pass(self, text: bytes) -> None:
        """Go on in lines and columns, which are counted in characters."""
        self._line += text.count(b"\n")
        last = text[text.rfind(b"\n") + 1 :]
        started = 1 if len(last) < len(text) else self._column
        self._column = started + int(np.count_nonzero(np.frombuffer(last, np.uint8) & 0xC0 != 0x80))
