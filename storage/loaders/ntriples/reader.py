"""N-Triples to terms and rows: the state around the kernel, and words for what it finds wrong.

A :class:`Parser` takes blocks of whole lines, of one file after another; what it makes of each (:class:`Parsed`) is
collected by :mod:`graphdb.storage.loaders.terms.collect`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphdb.common.values.terms import DATATYPE
from graphdb.storage.loaders.formats import N_TRIPLES, mistaken
from graphdb.storage.loaders.ntriples import line_kernels as kernels
from graphdb.storage.loaders.ntriples.faults import MESSAGES
from graphdb.storage.loaders.ntriples.scan_kernels import SPANS
from graphdb.storage.loaders.streams import BadLine

_HEAD = 1 << 12
"""Bytes of a file that tell another format."""

_XSD_STRING = np.frombuffer(b"http://www.w3.org/2001/XMLSchema#string", np.uint8)


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a block of lines holds: views of its parser's arrays, to be read before it parses the next.

    Attributes
    ----------
    text, beside
        uint8: the bytes that the terms are in.
    terms
        int64[terms, 4]: see :data:`.line_kernels.PLACE` and its neighbours.
    rows
        int32[n, 4]: see :func:`.line_kernels.parse`.
    lines
        How many lines it has, up to the first bad one where the parser stops there.
    bad
        The bad lines, numbered from the block's first, which is 1.
    """

    text: NDArray[np.uint8]
    beside: NDArray[np.uint8]
    terms: NDArray[np.int64]
    rows: NDArray[np.int32]
    lines: int
    bad: list[BadLine]


class Parser:
    """Reads N-Triples text.

    Parameters
    ----------
    key
        int64[4]: secret numbers for fingerprints, the same for all parsers of a load.
    stop
        End each block at its first bad line; else go on behind it.
    """

    def __init__(self, key: NDArray[np.int64], *, stop: bool = True) -> None:
        self._key = key
        self._stop = stop
        self._prefix = np.empty(0, np.uint8)
        self._source = ""
        self._state = np.zeros(7, np.int64)
        self._spans = np.empty((2, SPANS), np.int64)
        self._errors = np.empty((1 if stop else 4096, 5), np.int64)
        self._rows = np.empty((1 << 15, 4), np.int32)
        self._terms = np.empty((1 << 15, 4), np.int64)
        self._habits = np.empty((1 << 15, 2), np.int32)
        self._recent = np.empty(kernels.RECENT, np.int32)
        self._beside = np.empty(1 << 16, np.uint8)

    def open(self, source: str, number: int, *, quads: bool = False) -> None:
        """Go on to another file: its name for messages, its number for the names of its blank nodes.

        ``quads`` says that a fourth term may name a graph.
        """
        self._source = source
        self._state[kernels.QUADS] = quads
        self._prefix = np.frombuffer(f"_:f{number}_".encode(), np.uint8)

    def parse(self, block: bytes | memoryview, *, first: bool = True) -> Parsed:
        """Parse whole lines; ``first`` says that they are the first of their file."""
        text = np.frombuffer(block, np.uint8)
        self._begin(len(text))
        state, bad = self._state, list[BadLine]()
        while True:
            state[kernels.ERRORS] = 0
            status = kernels.parse(
                text,
                self._prefix,
                state,
                self._spans,
                self._rows,
                self._errors,
                self._beside,
                self._terms,
                self._habits,
                self._recent,
                self._key,
            )
            bad += [self._describe(block, row, first) for row in self._errors[: state[kernels.ERRORS]].tolist()]
            if status == kernels.DONE or (bad and self._stop):
                break
            if status == kernels.TERMS_FULL:
                self._terms = np.concatenate([self._terms, np.empty_like(self._terms)])
                self._habits = np.concatenate([self._habits, np.empty_like(self._habits)])
            elif status == kernels.ROWS_FULL:
                self._rows = np.concatenate([self._rows, np.empty_like(self._rows)])
        terms, rows = self._terms[: state[kernels.TERMS]], self._rows[: state[kernels.ROWS]]
        return Parsed(text, self._beside, terms, rows, int(state[kernels.LINE]), bad)

    def _begin(self, size: int) -> None:
        """Forget the block before, but for the datatype that the kernel needs to know: xsd:string is term 0."""
        width = len(_XSD_STRING)
        most = width + size + size // 3 * len(self._prefix)
        if most > len(self._beside):
            self._beside = np.empty(most, np.uint8)
        self._state[[kernels.POSITION, kernels.LINE, kernels.ROWS]] = 0
        self._state[[kernels.TERMS, kernels.BESIDE]] = 1, width
        self._spans.fill(-1)
        self._recent.fill(-1)
        self._beside[:width] = _XSD_STRING
        self._habits[0] = -1
        name = kernels.fingerprint(self._beside.ctypes.data, width, DATATYPE, DATATYPE, self._key.ctypes.data)
        self._terms[0] = width, DATATYPE | kernels.ASIDE, *name

    def _describe(self, block: bytes | memoryview, row: list[int], first: bool) -> BadLine:
        line, start, end, place, error = row
        message, hint = MESSAGES[error]
        before = bytes(block[start:place]).decode("utf-8", "replace")
        if first and line == 1 and bytes(block[start : start + 3]) == b"\xef\xbb\xbf" and place == start:
            hint = "the file begins with a byte order mark; remove it"
        elif first and line == 1:
            hint = mistaken(bytes(block[:_HEAD]), N_TRIPLES) or hint
        text = bytes(block[start:end]).decode("utf-8", "replace")
        return BadLine(self._source, line, len(before) + 1, message, hint, text)
