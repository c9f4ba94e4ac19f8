"""Exporting the graph: which format, which compression, and a file that is there as a whole or not at all."""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from graphdb.errors import GraphDBError, StorageError, nearest
from graphdb.storage.writers.graphs import Graphs, chosen

if TYPE_CHECKING:
    import duckdb

Write = Callable[[Any, Any], int]
"""Writes the graph behind a connection to a file; returns how many statements (vertices and edges) it wrote."""

_FORMATS = {
    ".nt": "ntriples", ".ntriples": "ntriples", ".nq": "nquads", ".nquads": "nquads", ".ttl": "turtle",
    ".turtle": "turtle", ".trig": "trig", ".graphml": "graphml", ".parquet": "parquet",
}  # fmt: skip
_PACKED = (".gz", ".zst")


_ONE = {"ntriples": "N-Triples", "turtle": "Turtle", "graphml": "GraphML"}
"""Formats that hold one graph."""


def export(
    connection: duckdb.DuckDBPyConnection,
    path: str | os.PathLike[str],
    format: str | None,
    prefixes: dict[str, str],
    graphs: Graphs | None = None,
) -> int:
    """Write the graph to ``path``, in place of what is there; return the number of statements written.

    Parameters
    ----------
    path
        A file, or for Parquet a folder.  ``.gz`` and ``.zst`` compress.
    format
        ``"ntriples"``, ``"nquads"``, ``"turtle"``, ``"trig"``, ``"graphml"`` or ``"parquet"``, where the name does not
        tell.
    prefixes
        Prefixes that Turtle and TriG are written with.
    graphs
        Which graphs: see :mod:`.graphs`.

    Raises
    ------
    GraphDBError
        Where neither name nor ``format`` is of a format that is written; where there are named graphs, the format holds
        one, and ``graphs`` is not stated.
    StorageError
        Where it cannot be written there.  Nothing is left behind.
    """
    target = Path(path)
    wanted = _format(target, format)
    with chosen(connection, graphs, prefixes, one=_ONE.get(wanted)):
        return _export(connection, target, wanted, prefixes)


def _export(connection: duckdb.DuckDBPyConnection, target: Path, wanted: str, prefixes: dict[str, str]) -> int:
    """Write the chosen graphs in a format."""
    from graphdb.storage.writers import graphml, parquet, text

    try:
        if wanted == "parquet":
            with _whole(target) as folder:
                folder.mkdir()
                return parquet.write(connection, folder)
        with _whole(target) as made, _opened(made, target.suffix.lower()) as file:
            if wanted == "graphml":
                return graphml.write(connection, file)
            return text.write(connection, file, wanted, prefixes)
    except OSError as error:
        raise StorageError(f"cannot write '{target}': {error.strerror or error}") from error


def _format(path: Path, format: str | None) -> str:
    if format is not None:
        name = format.lower().replace("-", "")
        name = _FORMATS.get(f".{name}", name)
        if name not in _FORMATS.values():
            close = nearest(name, _FORMATS.values())
            known = ", ".join(dict.fromkeys(_FORMATS.values()))
            raise GraphDBError(
                f"unknown format '{format}'", hint=f"did you mean {close[0]}?" if close else f"the formats are {known}"
            )
        return name
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in _PACKED:
        suffixes.pop()
    if not suffixes or suffixes[-1] not in _FORMATS:
        raise GraphDBError(
            f"the name '{path}' does not tell the format",
            hint="name it .nt, .nq, .ttl, .trig, .graphml or .parquet (.gz and .zst compress), or state the format",
        )
    return _FORMATS[suffixes[-1]]


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """Yield a path to write to; what is there at the end takes the place of ``path``."""
    with TemporaryDirectory(prefix=".graphdb-", dir=path.absolute().parent) as folder:
        made = Path(folder) / "made"
        yield made
        if made.is_dir() and path.is_dir():
            shutil.rmtree(path)
        os.replace(made, path)


@contextmanager
def _opened(path: Path, suffix: str) -> Iterator[Any]:
    """Open a file for writing, compressed as the name says."""
    with ExitStack() as stack:
        raw = stack.enter_context(path.open("wb"))
        if suffix == ".gz":
            yield stack.enter_context(gzip.GzipFile("", "wb", 6, raw))
        elif suffix == ".zst":
            import zstandard

            yield stack.enter_context(zstandard.ZstdCompressor().stream_writer(raw, closefd=False))
        else:
            yield raw
