"""Batches of triples that come and go: N-Triples, and RDF Patch, whose lines begin with what becomes of a triple.

An RDF patch has lines ``A <s> <p> <o> .`` and ``D <s> <p> <o> .``; ``TX`` and ``TC`` around them are read over, for a
patch is one transaction anyway, and so are headers (``H``), prefixes (``PA``, ``PD``) and comments.  What stands
between ``TX`` and ``TA`` was given up, and is not applied.  Blank nodes have the names that the database shows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.errors import LoadError
from graphdb.storage.arrays.arrow import string_places
from graphdb.storage.arrays.batch import Batch
from graphdb.storage.arrays.texts import beginning_with
from graphdb.storage.file.scratch import spill_folder

Codes = NDArray[np.uint32]

_MEMORY = 64 << 20
_SMALL = 1 << 20
"""Bytes of text that certainly need no more memory than there is."""
_ABORTED = re.compile(rb"^[ \t]*TX\b(?:(?!^[ \t]*T[CA]\b).)*^[ \t]*TA\b[^\n]*", re.MULTILINE | re.DOTALL)
_OPERATION = re.compile(rb"^[ \t]*([AD])[ \t]", re.MULTILINE)
_OTHER = re.compile(rb"^[ \t]*(?:(?:TX|TC|TA|H|PA|PD)\b|#)[^\n]*", re.MULTILINE)
_UNKNOWN = re.compile(rb"^[ \t]*(?![AD][ \t])(\S+)[^\n]*", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Operations:
    """Triples in the order of their lines, with what becomes of each.

    Attributes
    ----------
    resources
        The IRIs and blank nodes, distinct: strings; a list where they are a handful of IRIs, without literals.
    literals
        The literals, distinct: lexical forms, datatypes and languages.
    triples
        uint32 [n, 3]: subject, label and object of each line, as codes: those of literals are from
        :data:`graphdb.storage.arrays.batch.LITERAL` on.
    added
        bool [n]: False for one that goes.
    """

    resources: arrow.Array | list[str]
    literals: tuple[arrow.Array, arrow.Array, arrow.Array]
    triples: Codes
    added: NDArray[np.bool_]


def lines_of_patch(text: bytes) -> tuple[bytes, NDArray[np.bool_]]:
    """Return the triples of an RDF patch as lines of N-Triples, in their places, and whether each comes.

    Raises
    ------
    LoadError
        A line begins with something else.
    """
    text = _ABORTED.sub(lambda found: b"\n" * found[0].count(b"\n"), text)
    text = _OTHER.sub(b"", text)
    unknown = _UNKNOWN.search(text)
    if unknown is not None:
        raise LoadError(
            f"a line of an RDF patch begins with {unknown[1].decode('utf-8', 'replace')}",
            source="patch",
            line=text.count(b"\n", 0, unknown.start(1)) + 1,
            column=1,
            text=unknown[0].decode("utf-8", "replace"),
            hint="A adds the triple after it, and D deletes it",
        )
    added = np.frombuffer(b"".join(_OPERATION.findall(text)), np.uint8) == ord("A")
    return _OPERATION.sub(b"", text), added


def operations(text: bytes, added: NDArray[np.bool_], source: str, folder: str | None = None) -> Operations:
    """Parse lines of N-Triples, of which each but empty ones is a triple that comes or goes.

    Raises
    ------
    LoadError
        A line is no triple.
    """
    from graphdb.storage.loaders.ntriples.reader import Parser
    from graphdb.storage.loaders.terms.collect import Collector, secret

    with spill_folder(folder) if len(text) > _SMALL else nullcontext("") as made:
        parser, collector = Parser(secret()), Collector(str(made), _MEMORY, len(text))
        try:
            parser.open(source, 0)
            parsed = parser.parse(text if text.endswith(b"\n") else text + b"\n")
            if parsed.bad:
                raise parsed.bad[0].error()
            collector.add(parsed)
            batch = collector.last()
            triples = np.concatenate([np.empty((0, 3), np.uint32), *(piece.copy() for piece in batch.rows())])
            if len(batch.others) or len(triples) != len(added):
                raise LoadError("a batch has plain triples: none that stands for an edge, or is in a named graph")
            resources = _as_written(arrow.concat_arrays([*batch.iris()], arrow.STRING))
            return Operations(resources, _literals(batch), triples, added)
        finally:
            collector.close()


_SOURCE = b"f0_"
"""What the parser puts before the names of the blank nodes of its first source."""


def _as_written(resources: arrow.Array) -> arrow.Array:
    """Return resources with the names that blank nodes have in the text."""
    data, offsets = string_places(resources)
    blank = beginning_with(b"_:" + _SOURCE, resources)
    if not len(blank):
        return resources
    rest = np.ones(len(data), bool)
    rest[offsets[blank][:, np.newaxis] + np.arange(2, 2 + len(_SOURCE))] = False
    shorter = np.zeros(len(resources), np.int64)
    shorter[blank] = len(_SOURCE)
    return arrow.text_array(data[rest], offsets - np.append(0, np.cumsum(shorter)))


def _literals(batch: Batch) -> tuple[arrow.Array, arrow.Array, arrow.Array]:
    lexical, datatypes, languages = map(_joined, [*zip(*batch.values(), strict=True)] or [()] * 3)
    return lexical, datatypes, languages


def _joined(pieces: Sequence[arrow.Array]) -> arrow.Array:
    return arrow.concat_arrays([piece.cast(arrow.STRING) for piece in pieces], arrow.STRING)


def last_of_each(found: Operations) -> tuple[Codes, Codes]:
    """Return the distinct triples that go and that come: what counts is the last line of each."""
    rows, flags = found.triples[::-1], found.added[::-1]
    order = np.lexsort(rows.T[::-1])  # stable: the first of equal rows stays first
    rows = rows[order]
    is_first = np.ones(len(rows), bool)
    is_first[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    distinct, comes = rows[is_first], flags[order[is_first]]
    return distinct[~comes], distinct[comes]
