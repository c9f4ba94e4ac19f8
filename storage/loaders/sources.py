"""What a load is given: files, open files and objects in memory, and which reader turns each into blocks of lines.

Readers of formats that few loads need are imported when a source of that format comes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Mapping as Mapped
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

from graphdb.common.errors import LoadError
from graphdb.storage.loaders.files import find, opened
from graphdb.storage.loaders.formats import GRAPHML, N_QUADS, Family
from graphdb.storage.loaders.streams import Put, read_lines
from graphdb.storage.loaders.tables.headers import Mapping
from graphdb.storage.loaders.tables.objects import is_object, tables


@dataclass(frozen=True, slots=True)
class Options:
    """How a load reads what it is given.

    Parameters
    ----------
    format
        The format, where neither names nor contents tell it; see :mod:`.formats`.
    on_error
        ``"stop"`` at the first malformed line, keeping nothing, or ``"skip"`` such lines: each becomes a row of the
        table ``load_errors``.
    base
        The IRI that relative IRIs are relative to, where a file states none; by default the file's own.
    mapping
        What the columns of tables are, where their headers do not say it.
    spill
        The directory for what does not fit into memory.
    batch
        Bytes of memory for what is collected before it goes to DuckDB.
    """

    format: str | None = None
    on_error: str = "stop"
    base: str | None = None
    mapping: Mapping = field(default_factory=Mapping)
    spill: str | None = None
    batch: int | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """One thing to read: what messages call it, its size in bytes, and what produces its blocks.

    ``plain`` says that these are the lines of the file itself.
    """

    name: str
    size: int
    quads: bool
    table: bool
    produce: Callable[[Put], None]
    plain: bool = False


def names_files(data: Any) -> bool:
    """Whether something that is loaded is named by a path, rather than there already."""
    if isinstance(data, str | bytes | os.PathLike):
        return True
    return isinstance(data, list | tuple | set | frozenset) and any(isinstance(x, str | os.PathLike) for x in data)


def sources_of(data: Any, options: Options, folder: str, memory: int) -> Iterator[Source]:
    """Say how each thing that is given is read.

    Parameters
    ----------
    folder, memory
        Where a reader of tables may spill what takes more bytes than that.
    """
    skip = options.on_error == "skip"

    def table(thing: Any, name: str, size: int) -> Source:
        from graphdb.storage.loaders.tables.reader import read_table

        number = next(numbers)
        read = partial(read_table, thing, name, number, options.mapping, skip, folder=folder, memory=memory)
        return Source(name, size, True, True, partial(_put_to, read))

    numbers = count()
    one = is_object(data) or isinstance(data, str | bytes | os.PathLike | Mapped) or hasattr(data, "read")
    things = [data] if one or not isinstance(data, Iterable) else list(data)
    for thing in things:
        if not (is_object(thing) or isinstance(thing, str | os.PathLike) or hasattr(thing, "read")):
            what = f"{type(thing).__module__}.{type(thing).__name__}".removeprefix("builtins.")
            raise LoadError(
                f"an object of type {what} cannot be loaded",
                hint="paths, open files, data frames, Arrow tables and NetworkX graphs can",
            )
    paths = [thing for thing in things if isinstance(thing, str | os.PathLike)]
    files = find(paths, options.format) if paths or not things else []
    for file in [*files, *(opened(thing, options.format) for thing in things if hasattr(thing, "read"))]:
        match file.format.family:
            case Family.LINES:
                yield Source(file.name, file.size, file.format is N_QUADS, False, partial(read_lines, file), plain=True)
            case Family.RDF:
                from graphdb.storage.loaders.rdf.reader import read_rdf

                yield Source(file.name, file.size, True, False, partial(read_rdf, file, options.base, skip))
            case Family.TABLE if file.format is GRAPHML:
                from graphdb.storage.loaders.tables.graphml import read_graphml

                read = partial(read_graphml, file, next(numbers), options.mapping, skip, folder=folder, memory=memory)
                yield Source(file.name, file.size, False, True, partial(_put_to, read))
            case Family.TABLE:
                yield table(file, file.name, file.size)
    for thing in things:
        if is_object(thing):
            for name, made, columns in tables(thing, options.mapping):
                yield table((made, columns), name, getattr(made, "nbytes", 0))


def _put_to(read: Callable[..., None], put: Put) -> None:
    """Let a reader of tables hand on its blocks."""
    read(put=put)
