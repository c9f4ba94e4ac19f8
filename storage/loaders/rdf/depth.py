"""How deeply the elements of an XML document, the objects and arrays of one of JSON, or triple terms are nested.

What takes a time quadratic in it, or a stack, is refused before the parser library sees it: a text is followed as it is
read, whether from a file or a stream (:mod:`.depth_kernels`).  Where the library skips what it cannot parse, what it
has not parsed yet is bounded besides (:class:`Unparsed`).
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

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
    """What nests in a format: a kernel that follows it, how deep it may go, and in words."""

    follow: Callable[[NDArray[np.uint8], NDArray[np.int64], int], int]
    most: int
    message: str


_ELEMENTS = Nesting(kernels.xml, DEEPEST, f"elements are nested deeper than {DEEPEST:,}")
_VALUES = Nesting(kernels.json, DEEPEST_JSON, f"objects and arrays are nested deeper than {DEEPEST_JSON}")
_TERMS = Nesting(kernels.turtle, DEEPEST_TERM, MESSAGES[TERM_DEPTH][0])

NESTINGS: dict[Format, Nesting] = {RDF_XML: _ELEMENTS, JSON_LD: _VALUES, TURTLE: _TERMS, TRIG: _TERMS}


class Depth:
    """Follows the text of a document, and refuses it where it goes too deep."""

    def __init__(self, file: DataFile, nesting: Nesting | None = None) -> None:
        self._file = file
        self._nesting = nesting or NESTINGS[file.format]
        self._state = np.zeros(kernels.STATE, np.int64)
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
            raise self.error(nesting.message, int(self._state[kernels.MARK]))

    def error(self, message: str, back: int = 0, hint: str | None = None) -> LoadError:
        """Return an error ``back`` characters before what comes next."""
        return LoadError(message, source=self._file.name, line=self._line, column=self._column - back, hint=hint)

    def skip(self, text: bytes) -> None:
        """Take the next part of the text, whatever is nested there."""
        self._pass(text)

    def _pass(self, text: bytes) -> None:
        """Go on in lines and columns, which are counted in characters."""
        self._line += text.count(b"\n")
        last = text[text.rfind(b"\n") + 1 :]
        started = 1 if len(last) < len(text) else self._column
        self._column = started + int(np.count_nonzero(np.frombuffer(last, np.uint8) & 0xC0 != 0x80))


_TERM = re.compile(rb"<<\(")


class Unparsed:
    """Bounds the triple terms that the library may nest, of what it was handed and has not parsed yet.

    Behind an error the library goes on within the token that it could not read, so that what is in a string for a
    reader of the whole text may be none for it.  Of such a text every ``<<(`` counts, wherever it stands: those since
    the library last yielded a triple, or found an error in a later line.

    Parameters
    ----------
    depth
        Follows the text up to the first error.
    most
        How many may count beside those of one part that is handed on.
    part
        How many of them a part that is handed on may have.

    Attributes
    ----------
    count
        How many count now: the library nests no more.
    yielded
        Whether the library has yielded anything since it was handed something.
    """

    def __init__(self, depth: Depth, most: int = DEEPEST_TERM, part: int = 500) -> None:
        self._depth = depth
        self._most = most + part + 1
        self._part = part
        self._handed: deque[tuple[int, int]] = deque()
        """The line in which each part ends, and how many ``<<(`` it has."""
        self.count = 0
        self._line = 1
        self._last = b""
        self._failed = False
        self.yielded = False

    def hand_on(self, text: bytes) -> bytes:
        """Return a first part of ``text`` that the library may read.

        Raises
        ------
        LoadError
            It might nest too many.
        """
        if self.yielded:
            self._drop(len(self._handed) - 1)
            self.yielded = False
        if text.count(b"<<(") > self._part:
            text = text[: [mark.end() for mark in islice(_TERM.finditer(text), self._part)][-1]]
        if self._failed:
            self._depth.skip(text)
        else:
            self._depth.follow(text)
        count = (self._last + text).count(b"<<(")
        # The library takes CR, LF and CR LF for one end of a line each; CR LF counts twice, lest it ever counts more.
        self._line += text.count(b"\n") + text.count(b"\r")
        self._last = (self._last + text)[-2:]
        self._handed.append((self._line, count))
        self.count += count
        if self.count > self._most:
            raise self._depth.error(
                f"more than {DEEPEST_TERM:,} <<( without a triple",
                hint="on_error='skip' cannot tell how deep they are behind an error: correct the text before",
            )
        return text

    def failed(self, line: int) -> None:
        """Note an error: what is before its line is not parsed again."""
        self._failed = True
        self._drop(next((i for i, (end, _) in enumerate(self._handed) if end >= line), len(self._handed)))

    def _drop(self, parts: int) -> None:
        for _ in range(parts):
            self.count -= self._handed.popleft()[1]
