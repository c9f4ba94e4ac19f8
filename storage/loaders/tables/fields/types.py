"""The types in which DuckDB reads the columns of a delimited text, where all their fields show these as they are
written: then nothing is rounded, and nothing has to be asked of texts afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from graphdb.storage.loaders.tables.fields import field_kernels as kernels
from graphdb.storage.loaders.tables.headers import IDENTIFIERS, Column, Dialect

_STEP = 4 << 20
"""Bytes between two looks at whether to stop."""

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
    quote = dialect.quote
    if not (delimiter + quote).isascii() or {delimiter, quote} & set("+-.0123456789"):
        return None
    if not any(map(_is_asked, columns)):
        return ["VARCHAR"] * len(columns)
    seen = np.array([0 if _is_asked(column) else kernels.TEXT for column in columns])
    text = np.asarray(np.memmap(path, np.uint8, "r"))
    how = ord(delimiter), ord(quote) if quote else -1, np.frombuffer(dialect.null.encode(), np.uint8)
    at = len(_MARK) if text[: len(_MARK)].tobytes() == _MARK else 0
    if dialect.header:
        at = kernels.look(text, at, at + 1, *how, np.full_like(seen, kernels.TEXT))
    while 0 <= at < len(text):
        watch()
        at = kernels.look(text, at, min(at + _STEP, len(text)), *how, seen)
    found = [_type(column, shown) for column, shown in zip(columns, seen.tolist(), strict=True)]
    return None if at < 0 or None in found else [type for type in found if type]


def _is_asked(column: Column) -> bool:
    """Whether the fields of a column may be read as something else than texts."""
    if column.role:
        return column.role in IDENTIFIERS and column.type in (None, "BIGINT")
    return not column.list and (column.type is None or column.type in _ACCEPTED)


def _type(column: Column, seen: int) -> str | None:
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
