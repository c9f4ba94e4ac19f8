"""N-Triples to batches of numbered terms: the state around the kernel, and words for what it finds wrong.

A :class:`Parser` takes blocks of whole lines, of one file after another, and collects distinct terms and triples
over them in a :class:`Batch`; the caller takes the batch when it is big enough for his memory, or at the end.
"""

from __future__ import annotations

import numpy as np

from graphdb.storage.append import Batch
from graphdb.storage.loaders import ntriples_kernels as kernels
from graphdb.storage.loaders import scan_kernels as scan
from graphdb.storage.loaders.streams import BadLine
from graphdb.storage.terms import DATATYPE

_XSD_STRING = np.frombuffer(b"http://www.w3.org/2001/XMLSchema#string", np.uint8)

_MESSAGES: dict[int, tuple[str, str | None]] = {
    scan.SUBJECT: ("expected a subject: an IRI <…> or a blank node _:…", None),
    scan.LITERAL_SUBJECT: (
        "expected a subject: an IRI <…> or a blank node _:…",
        "a literal can only be an object",
    ),
    scan.DIRECTIVE: (
        "expected a subject: an IRI <…> or a blank node _:…",
        "N-Triples has no directives; is this a Turtle file?",
    ),
    scan.PREDICATE: ("expected a predicate: an IRI <…>", None),
    scan.PREDICATE_NOT_IRI: ("expected a predicate: an IRI <…>", "only an IRI can be a predicate"),
    scan.OBJECT: (
        'expected an object: an IRI <…>, a blank node _:… or a literal "…"',
        None,
    ),
    scan.DOT: ("expected '.' after the object", "in N-Triples each line is one triple"),
    scan.LINE_END: ("expected the end of the line or a comment after '.'", "in N-Triples each line is one triple"),
    scan.IRI_CHARACTER: (
        "this character cannot stand in an IRI",
        'write it percent-encoded; spaces, < " { } | ^ ` and control characters are not allowed',
    ),
    scan.IRI_END: ("the IRI has no closing '>'", None),
    scan.IRI_RELATIVE: ("expected an absolute IRI, with a scheme such as http:", None),
    scan.IRI_ESCAPE: (r"in an IRI only the escapes \uXXXX and \UXXXXXXXX are allowed", None),
    scan.IRI_ESCAPED: ("this escape stands for a character that cannot stand in an IRI", "write it percent-encoded"),
    scan.STRING_ESCAPE: (
        "unknown escape in a literal",
        r"the escapes are \t \b \n \r \f \" \' \\ \uXXXX \UXXXXXXXX",
    ),
    scan.STRING_END: ("the literal has no closing '\"'", r"a line break within a literal is written \n"),
    scan.HEXADECIMAL: (r"expected hexadecimal digits: four after \u, eight after \U", None),
    scan.CODE_POINT: ("this escape stands for no character: a surrogate, or beyond U+10FFFF", None),
    scan.BAD_TAG: ("expected a language tag such as en or de-AT after '@'", None),
    scan.DATATYPE_IRI: ("expected a datatype: ^^ and an IRI <…>", None),
    scan.LABEL: ("expected a blank node label after '_:'", "it begins with a letter, a digit or _"),
    scan.FOURTH: ("expected '.' after the object", "a fourth term names a graph: this may be an N-Quads file (.nq)"),
    scan.REIFIES: (
        "a triple term can only be the object of rdf:reifies here",
        "say it as <reifier> <http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies> <<( … )>>",
    ),
    scan.NESTED: ("a triple term within a triple term is not supported", None),
    scan.TERM_END: ("expected ')>>' after the triple term", None),
    scan.UTF8: ("these bytes are not UTF-8", "convert the file to UTF-8"),
}


class Parser:
    """Collects the triples of N-Triples text.

    Parameters
    ----------
    stop
        End each :meth:`feed` at the first bad line; else go on behind it.
    """

    def __init__(self, *, stop: bool = True) -> None:
        self._state = np.zeros(6, np.int64)
        self._spans = np.zeros((2, scan.SPANS), np.int64)
        self._errors = np.empty((1 if stop else 4096, 5), np.int64)
        self._stop = stop
        self._lines = self._before = 0
        self._prefix = np.empty(0, np.uint8)
        self._source = ""
        self._triples = np.empty((1 << 16, 4), np.int32)
        self._pool = np.empty(1 << 20, np.uint8)
        self._terms = np.empty((1 << 15, 4), np.int64)
        self._slots = np.empty(1 << 17, np.int32)
        self._begin()

    def open(self, source: str, number: int, *, quads: bool = False) -> None:
        """Go on to another file: its name for messages, its number for the names of its blank nodes.

        ``quads`` says that a fourth term may name a graph.
        """
        self._source = source
        self._state[kernels.QUADS] = quads
        self._prefix = np.frombuffer(f"_:f{number}_".encode(), np.uint8)
        self._lines = 0

    @property
    def fresh(self) -> int:
        """Triples that the last block added."""
        return self.triples - self._before

    @property
    def triples(self) -> int:
        """Triples in the batch so far, repeated ones included."""
        return int(self._state[kernels.TRIPLES])

    @property
    def size(self) -> int:
        """Bytes that the batch takes, roughly."""
        terms = int(self._state[kernels.TERMS])
        return int(self._terms[terms, kernels.START]) + 50 * terms + 16 * self.triples

    def feed(self, block: bytes | memoryview, lines: int | None = None) -> list[BadLine]:
        """Parse whole lines and return the bad ones.

        ``lines`` says how many lines come before it in its file; by default those that this parser has seen.
        """
        if lines is not None:
            self._lines = lines
        text = np.frombuffer(block, np.uint8)
        self._state[kernels.POSITION] = 0
        self._state[kernels.LINE] = self._lines
        self._reserve(len(text) + len(text) // 3 * (1 + len(self._prefix)))
        self._before = self.triples
        bad: list[BadLine] = []
        while True:
            self._state[kernels.ERRORS] = 0
            status = kernels.parse(
                text,
                self._prefix,
                self._state,
                self._spans,
                self._triples,
                self._errors,
                self._pool,
                self._terms,
                self._slots,
            )
            bad += [self._describe(block, row) for row in self._errors[: self._state[kernels.ERRORS]].tolist()]
            if status == kernels.DONE or (bad and self._stop):
                break
            if status == kernels.TERMS_FULL:
                self._grow_terms()
            elif status == kernels.TRIPLES_FULL:
                self._triples = np.concatenate([self._triples, np.empty_like(self._triples)])
        self._lines = int(self._state[kernels.LINE])
        return bad

    def take(self) -> Batch:
        """Return what was collected, and begin anew.  The arrays are the caller's."""
        import pyarrow as pa

        terms = int(self._state[kernels.TERMS])
        tags = self._terms[:terms, kernels.TAG]
        offsets = self._terms[: terms + 1, kernels.START].copy()
        pool = self._pool[: offsets[-1]].copy()
        text = pa.LargeStringArray.from_buffers(terms, pa.py_buffer(offsets), pa.py_buffer(pool))
        rows = self._triples[: self.triples]
        (reifying,) = np.nonzero(rows[:, 1] == kernels.REIFIED)
        reified = np.column_stack([rows[reifying, :1], rows[reifying + 1, :3]])
        rows = np.delete(rows, np.concatenate([reifying, reifying + 1]), axis=0) if len(reifying) else rows.copy()
        named = rows[:, 3] >= 0
        batch = Batch(
            text,
            (tags & 7).astype(np.uint8),
            ((tags >> 3) - 1).astype(np.int32),
            np.ascontiguousarray(rows[~named, :3]),
            rows[named],
            reified,
        )
        self._begin()
        return batch

    def _begin(self) -> None:
        """Empty the batch, but for the datatype that the kernel needs to know: xsd:string is term 0."""
        self._state[kernels.TRIPLES] = 0
        self._slots.fill(-1)
        size = len(_XSD_STRING)
        self._pool[:size] = _XSD_STRING
        self._terms[:2, kernels.START] = 0, size
        self._terms[0, kernels.TAG] = DATATYPE
        self._terms[0, kernels.HASH] = kernels.hash_bytes(self._pool.ctypes.data, size, DATATYPE)
        self._state[kernels.TERMS] = 1
        kernels.rehash(self._terms, 1, self._slots)

    def _reserve(self, more: int) -> None:
        """Make room for ``more`` bytes in the pool."""
        used = int(self._terms[self._state[kernels.TERMS], kernels.START])
        if used + more > len(self._pool):
            pool = np.empty(max(used + more, 2 * len(self._pool)), np.uint8)
            pool[:used] = self._pool[:used]
            self._pool = pool

    def _grow_terms(self) -> None:
        """Make room for twice as many terms."""
        self._terms = np.concatenate([self._terms, np.empty_like(self._terms)])
        self._slots = np.full(2 * len(self._slots), -1, np.int32)
        kernels.rehash(self._terms, int(self._state[kernels.TERMS]), self._slots)

    def _describe(self, block: bytes | memoryview, row: list[int]) -> BadLine:
        line, start, end, place, error = row
        message, hint = _MESSAGES[error]
        before = bytes(block[start:place]).decode("utf-8", "replace")
        if line == 1 and bytes(block[start : start + 3]) == b"\xef\xbb\xbf" and place == start:
            hint = "the file begins with a byte order mark; remove it"
        text = bytes(block[start:end]).decode("utf-8", "replace")
        return BadLine(self._source, line, len(before) + 1, message, hint, text)
