"""Small CSV files with the same header, read as one: to plan and run a statement takes longer than to read some rows.

Their rows are joined in one file, and DuckDB reads that.  The columns of each file have the types that its own values
show, as if it were read by itself; files that show others are joined by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, TypeVar

from graphdb.common.stopping import check_stop
from graphdb.storage.loaders.tables.fields import types as fields

if TYPE_CHECKING:
    from graphdb.storage.loaders.files import DataFile
    from graphdb.storage.loaders.tables.headers import Column, Dialect, Mapping

Item = TypeVar("Item")

_SMALL = 1 << 18
"""Bytes of a file that is joined with others: to read it takes about as long as to plan a statement."""

_TOGETHER = 16 << 20
"""Bytes that are joined, at most."""


@dataclass(slots=True)
class Joined:
    """Files that are one: the types of their columns, None where no file has a value, and the texts of their rows."""

    types: list[str | None]
    texts: list[bytes] = field(default_factory=list)

    def takes(self, types: Sequence[str | None]) -> bool:
        """Whether a file whose columns have these types is one of them, and note them if so."""
        both = list(zip(self.types, types, strict=True))
        if any(one != other for one, other in both if one is not None and other is not None):
            return False
        self.types = [other if one is None else one for one, other in both]
        return True


def groups(items: Sequence[Item], of: Callable[[Item], tuple[DataFile, Mapping] | None]) -> Iterator[list[Item]]:
    """Yield items in groups of those that follow each other and may be joined: small files that are read alike.

    ``of`` returns what an item is read from, and how; None for what is never joined.
    """
    size = number = 0

    def key(item: Item) -> tuple[object, ...]:
        nonlocal size, number
        number += 1
        found = of(item)
        if found is None or not 0 < found[0].size <= _SMALL:
            return (number,)
        file, mapping = found
        size += file.size
        return id(mapping), file.path.suffix, size // _TOGETHER

    for _, some in groupby(items, key):
        yield list(some)


def header(text: bytes, dialect: Dialect) -> bytes | None:
    """Return the first line of a file where it is all of its header, and there is one; else None."""
    head = text[: text.find(b"\n") + 1]
    quoted = dialect.quote and dialect.quote.encode() in head
    one = head.strip() and b"\r" not in head[:-2]
    return head if dialect.header and one and not quoted else None


def joined(
    texts: Sequence[bytes], head: bytes, delimiter: str, dialect: Dialect, columns: Sequence[Column]
) -> tuple[list[Joined], list[int]] | None:
    """Return the texts of files below their header, joined by their types, and how many rows each has.

    None where they are to be read one by one: SQL has to be asked for types, or a file is written in another way.
    """
    found: list[Joined] = []
    rows = []
    for text in texts:
        check_stop()
        if not text.startswith(head) or b"\0" in text:
            return None
        body = text[len(head) :]
        shown = fields.shown(body, delimiter, dialect, columns)
        if shown is None:
            return None
        types = [fields.type_of(column, each) for column, each in zip(columns, shown.tolist(), strict=False)]
        if None in types:
            return None
        seen = [
            type if each or column.role or column.type else None
            for type, each, column in zip(types, shown.tolist(), columns, strict=False)
        ]
        rows.append(int(shown[-1]))
        one = next((some for some in found if some.takes(seen)), None)
        if one is None:
            found.append(one := Joined(seen))
        one.texts.append(body if body.endswith(b"\n") else body + b"\n")
    return found, rows
