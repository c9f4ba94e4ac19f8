"""The hashes of a handful of terms: DuckDB's own function, in Python, since a statement takes longer to plan.

DuckDB hashes a text eight bytes at a time, each block by exclusive or and a multiplication, as MurmurHash does
(Appleby, 2008), mixes the result by shifts and multiplications, and combines columns likewise.  That may change with a
version of DuckDB, so the function here is compared with the one of this process first, over texts of many lengths and
over nulls; where one differs, or a text is long, DuckDB is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.file.prepared_sql import execute

if TYPE_CHECKING:
    import duckdb

Hashes = NDArray[np.uint64]
Term: TypeAlias = "Sequence[str | None]"
"""The columns that identify a term."""

_MASK = (1 << 64) - 1
_SEED = 0xE17A1465
_LENGTH = 0xC6A4A7935BD1E995
_FACTOR = 0xD6E8FEB86659FD93
_NULL = 0xBF58476D1CE4E5B9

_LONGEST = 512
"""Characters of a text up to which Python takes less time than a statement."""

_SAMPLES = [
    ("Zürich, 1290693317161 ≈ x/y#𝔘; " * 18)[start : start + size]
    for start in (0, 5)
    for size in (*range(40), 63, 64, 65, 120, 127, 128, 129, 255, 256, 257, 400, 511, 512)
]
"""Texts by which the function here is compared with DuckDB's: of many lengths, with bytes of all sorts."""

_same: bool | None = None
"""Whether that comes to the same; None before it was asked."""


def hashes_of(connection: duckdb.DuckDBPyConnection, terms: Sequence[Term]) -> Hashes:
    """Return DuckDB's ``hash`` of the columns of each of some terms: uint64 [terms]."""
    global _same
    if _same is None:
        rows: list[Term] = list(zip(_SAMPLES, [None, *_SAMPLES], reversed(_SAMPLES), strict=False))
        texts: list[Term] = [(text,) for text in _SAMPLES]
        _same = all(np.array_equal(_asked(connection, some), _computed(some)) for some in (rows, texts))
    if not _same or any(text is not None and len(text) > _LONGEST for term in terms for text in term):
        return _asked(connection, terms)
    return _computed(terms)


def _asked(connection: duckdb.DuckDBPyConnection, terms: Sequence[Term]) -> Hashes:
    """Return what DuckDB says."""
    columns = [f"unnest(?::VARCHAR[]) AS c{i}" for i in range(len(terms[0]))]
    names = ", ".join(f"c{i}" for i in range(len(terms[0])))
    sql = f"SELECT hash({names}) AS hash FROM (SELECT {', '.join(columns)})"
    found = execute(connection, sql, [[*column] for column in zip(*terms, strict=True)]).fetchnumpy()["hash"]
    return np.asarray(found, np.uint64)


def _computed(terms: Sequence[Term]) -> Hashes:
    """Return what the function here says."""
    return np.array([_hash(term) for term in terms], np.uint64)


def _hash(term: Term) -> int:
    """Return the hash of the columns of a term."""
    first, *others = term
    found = _hash_of_text(first)
    for text in others:
        found = ((found ^ found >> 32) * _FACTOR & _MASK) ^ _hash_of_text(text)
    return found


@lru_cache(256)
def _hash_of_text(text: str | None) -> int:
    """Return the hash of a text: those of datatypes come again and again."""
    if text is None:
        return _NULL
    data = text.encode()
    size, found = len(data), _SEED ^ (len(data) * _LENGTH & _MASK)
    for begin in range(0, size, 8):
        found = (found ^ int.from_bytes(data[begin : begin + 8], "little")) * _FACTOR & _MASK
    return _finished(found)


def _finished(found: int) -> int:
    """Spread what was found over all bits."""
    found = (found ^ found >> 32) * _FACTOR & _MASK
    found = (found ^ found >> 32) * _FACTOR & _MASK
    return found ^ found >> 32
