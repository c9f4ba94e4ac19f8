"""The fingerprints of terms that are stored, as machine code: those that parsers give them (see :mod:`.stored`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphdb.common.values.terms import BLANK, DATATYPE, IRI, LANGUAGE, LITERAL_BASE, PLAIN, TAGGED, TYPED
from graphdb.storage.arrays.batch import LITERAL
from graphdb.storage.compile.kernels import entry
from graphdb.storage.loaders.ntriples.line_kernels import fingerprint
from graphdb.storage.loaders.ntriples.terminal_kernels import byte

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]

_LOWER = 0xFFFFFFFF
_UNDERSCORE = 95


@entry("u1[:], i8[:], i8[:, :], i8")
def resources(text: Bytes, ends: Ints, entries: Ints, key: int) -> None:
    """Make entries of ids.

    Parameters
    ----------
    text : uint8[]
        The IRIs and blank nodes.
    ends : int64[n + 1]
        Where each begins, and the last ends.
    entries : int64[n, 2]
        Has the ids in its second column; receives what :func:`.collect_kernels.encode` has in its table.
    key
        The address of the secret numbers; see :func:`~graphdb.storage.loaders.ntriples.line_kernels.fingerprint`.
    """
    start = text.ctypes.data
    for i in range(len(entries)):
        source, length = start + ends[i], ends[i + 1] - ends[i]
        what = BLANK if length > 0 and byte(source, 0) == _UNDERSCORE else IRI  # no scheme begins with an underscore
        high, low = fingerprint(source, length, what, what, key)
        entries[i, 0], entries[i, 1] = high, entries[i, 1] << 32 | low & _LOWER


@entry("u1[:], i8[:], u1[:], i8[:], u1[:], i8[:], i8[:, :], i8")
def literals(
    text: Bytes, ends: Ints, datatypes: Bytes, datatype_ends: Ints, languages: Bytes, language_ends: Ints,
    entries: Ints, key: int,
) -> None:  # fmt: skip
    """Make entries of the ids of literals (see :func:`resources`); datatypes and languages may be empty."""
    start, datatype, language = text.ctypes.data, datatypes.ctypes.data, languages.ctypes.data
    for i in range(len(entries)):
        first = second = what = PLAIN
        width, tag = datatype_ends[i + 1] - datatype_ends[i], language_ends[i + 1] - language_ends[i]
        if tag:
            first = second = what = TAGGED
            high, low = fingerprint(language + language_ends[i], tag, LANGUAGE, LANGUAGE, key)
            first, second = what ^ high, what ^ low
        elif width:
            what = TYPED
            high, low = fingerprint(datatype + datatype_ends[i], width, DATATYPE, DATATYPE, key)
            first, second = what ^ high, what ^ low
        high, low = fingerprint(start + ends[i], ends[i + 1] - ends[i], first, second, key)
        code = entries[i, 1] - LITERAL_BASE | LITERAL
        entries[i, 0], entries[i, 1] = high, code << 32 | low & _LOWER


@entry("i8[:, :], i8[:], i8[:, :]")
def scatter(entries: Ints, ends: Ints, scattered: Ints) -> None:
    """Sort entries by the part that they are in (see :func:`.unify_kernels.choose`).

    Parameters
    ----------
    entries : int64[n, 2]
        See :func:`resources`.
    ends : int64[parts + 1]
        Receives where each part begins, and the last ends.
    scattered : int64[n, 2]
        Receives the entries.
    """
    parts = len(ends) - 1
    ends[:] = 0
    for i in range(len(entries)):
        ends[((entries[i, 0] >> 32 & _LOWER) * parts >> 32) + 1] += 1
    for part in range(parts):
        ends[part + 1] += ends[part]
    for i in range(len(entries)):
        part = (entries[i, 0] >> 32 & _LOWER) * parts >> 32
        scattered[ends[part], 0], scattered[ends[part], 1] = entries[i, 0], entries[i, 1]
        ends[part] += 1
    for part in range(parts, 0, -1):  # each stands where it ends
        ends[part] = ends[part - 1]
    ends[0] = 0
