"""N-Triples text to Python terms, by the parser and collector of loads."""

from __future__ import annotations

from dataclasses import replace
from tempfile import gettempdir
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.storage.arrays.batch import LITERAL, Batch
from graphdb.storage.loaders.ntriples.reader import Parser
from graphdb.storage.loaders.streams import BadLine
from graphdb.storage.loaders.terms.collect import Collector, secret

Term = tuple[str, ...]
"""What it is, its text, and its datatype or language where it has one."""


class Reader:
    """Collects the triples of blocks, of one file after another."""

    def __init__(self, *, stop: bool = True) -> None:
        self._parser = Parser(secret(), stop=stop)
        self._collector = Collector(gettempdir(), 1 << 28)  # so little is never spilled
        self._lines = 0

    def open(self, source: str, number: int) -> None:
        """Go on to another file."""
        self._parser.open(source, number)
        self._lines = 0

    def feed(self, block: bytes | memoryview) -> list[BadLine]:
        """Parse whole lines and return the bad ones."""
        parsed = self._parser.parse(block, first=not self._lines)
        self._collector.add(parsed)
        bad = [replace(line, line=self._lines + (line.line or 0)) for line in parsed.bad]
        self._lines += parsed.lines
        return bad

    def take(self) -> Batch:
        """Return what was collected, and begin anew."""
        return self._collector.take()


def terms(batch: Batch) -> list[tuple[Term, ...]]:
    """The triples of a batch in no named graph as tuples of Python terms, in their order."""
    return _named(batch, np.concatenate([np.empty((0, 3), np.uint32), *batch.rows()]))


def triples(batch: Batch) -> list[tuple[Term, ...]]:
    """All triples of a batch; those of named graphs as three terms, the reified ones behind their reifiers as four."""
    others = np.concatenate([np.empty((0, 5), np.int64), *(kept.get() for kept in batch.others)])
    reified = others[:, 4] >= 0
    return [*terms(batch), *_named(batch, others[~reified, :3]), *_named(batch, others[reified][:, [4, 0, 1, 2]])]


def _named(batch: Batch, rows: NDArray[Any]) -> list[tuple[Term, ...]]:
    """Rows of codes as tuples of terms."""
    resources = [text for texts in batch.resources for text in arrow.pylist(texts.array())]
    literals: list[Term] = []
    for texts in batch.literals:
        columns = (arrow.pylist(column) for column in batch.literal_columns(texts))
        for lexical, datatype, language in zip(*columns, strict=True):
            note = (datatype,) if datatype is not None else (language,) if language is not None else ()
            literals.append(("typed" if datatype is not None else "tagged" if note else "plain", lexical, *note))

    def term(code: int) -> Term:
        if code >= LITERAL:
            return literals[code - LITERAL]
        return ("blank" if resources[code].startswith("_:") else "iri", resources[code])

    return [tuple(map(term, row)) for row in rows.tolist()]
