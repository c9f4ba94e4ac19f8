"""The types in which DuckDB reads the columns of a delimited text, where all their fields show these as they are
written: then nothing is rounded, and nothing has to be asked of texts afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.loaders.tables.fields import field_kernels as kernels
from graphdb.storage.loaders.tables.headers import IDENTIFIERS, Column, Dialect

_STEP = 4 << 20
"""Bytes between two looks at whether to stop."""

_How: TypeAlias = "tuple[int, int, NDArray[np.uint8]]"
"""The delimiter, the quote (-1 for none), and the text of a missing value."""

_MARK = b"\xef\xbb\xbf"

_INTEGER = kernels.INTEGER | kernels.LOOSE
_MOMENT = kernels.DATE | kernels.MOMENT

_ACCEPTED = {"BIGINT": _INTEGER, "DOUBLE": _INTEGER | kernels.DOUBLE, "BOOLEAN": kernels.BOOLEAN,
             "DATE": kernels.DATE, "TIMESTAMP": _MOMENT, "TIMESTAMPTZ": _MOMENT | kernels.ZONED}  # fmt: skip
"""What fields may show that DuckDB reads as values of a stated type."""

_SORTS = (
    (kernels.INTEGER, "BIGINT"),
    (kernels.INTEGER | kernels.DOUBLE, "DOUBLE"),
    (kernels.BOOLEAN, "BOOLEAN"),
    (kernels.DATE, "DATE"),
    (_MOMENT, "TIMESTAMP"),
    (kernels.ZONED, "TIMESTAMPTZ"),
)
"""The type of a column without a stated one whose fields show nothing else, as :func:`.delimited.types` finds it."""


def types(
    path: str, delimiter: str, dialect: Dialect, columns: Sequence[Column], watch: Callable[[], object]
) -> list[str] | None:
    """Return the types in which DuckDB may read the columns of a file, whose header is its first line if it has one.

    It is None where SQL has to be asked: of fields that may be of rare types, and where the file is written in other
    ways than RFC 4180 has it.  ``watch`` is called again and again, and may raise.
    """
    if not _is_told(delimiter, dialect):
        return None
    if not any(map(_is_asked, columns)):
        return ["VARCHAR"] * len(columns)
    text = np.asarray(np.memmap(path, np.uint8, "r"))
    how = _how(delimiter, dialect)
    at = len(_MARK) if text[: len(_MARK)].tobytes() == _MARK else 0
    if dialect.header:
        at = kernels.look(text, at, at + 1, *how, np.append(np.full(len(columns), kernels.TEXT), 0))
    seen = _seen(text, at, how, columns, watch)
    if seen is None:
        return None
    found = [type_of(column, shown) for column, shown in zip(columns, seen[:-1].tolist(), strict=True)]
    return None if None in found else [type for type in found if type]


def shown(text: bytes, delimiter: str, dialect: Dialect, columns: Sequence[Column]) -> NDArray[np.int64] | None:
    """Return what the fields of each column of a text without header show, and how many rows it has: int64[columns + 1]
    in all.

    It is None where that is written in other ways than RFC 4180 has it.
    """
    if not _is_told(delimiter, dialect):
        return None
    return _seen(np.frombuffer(text, np.uint8), 0, _how(delimiter, dialect), columns, lambda: None)


def _is_told(delimiter: str, dialect: Dialect) -> bool:
    """Whether the characters that are around fields are not among those that are looked for within."""
    return (delimiter + dialect.quote).isascii() and not {delimiter, dialect.quote} & set("+-.0123456789")


def _how(delimiter: str, dialect: Dialect) -> _How:
    quote = dialect.quote
    return ord(delimiter), ord(quote) if quote else -1, np.frombuffer(dialect.null.encode(), np.uint8)


def _seen(
    text: NDArray[np.uint8], at: int, how: _How, columns: Sequence[Column], watch: Callable[[], object]
) -> NDArray[np.int64] | None:
    """Return what the fields of each column show from a place on, and how many rows there are."""
    seen = np.array([*(0 if _is_asked(column) else kernels.TEXT for column in columns), 0])
    while 0 <= at < len(text):
        watch()
        at = kernels.look(text, at, min(at + _STEP, len(text)), *how, seen)
    return None if at < 0 else seen


def _is_asked(column: Column) -> bool:
    """Whether the fields of a column may be read as something else than texts."""
    if column.role:
        return column.role in IDENTIFIERS and column.type in (None, "BIGINT")
    return not column.list and (column.type is None or column.type in _ACCEPTED)


def type_of(column: Column, seen: int) -> str | None:
    """Return the type in which a column is read whose fields show this; None where SQL has to be asked."""
    if not _is_asked(column):
        return "VARCHAR"
    stated = "BIGINT" if column.epoch else column.type
    if stated:
        return stated if not seen & ~_ACCEPTED[stated] else "VARCHAR"
    if column.role:  # ids are integers, or what they are called
        return "BIGINT" if seen == kernels.INTEGER else "VARCHAR"
    if not seen or seen & kernels.TEXT:
        return "VARCHAR"
    if seen & kernels.UNSURE:
        return None
    return next((type for sort, type in _SORTS if not seen & ~sort), "VARCHAR")
