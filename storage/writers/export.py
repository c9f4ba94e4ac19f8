"""Exporting the graph: which format, and how it is written; :mod:`.targets` opens the file or folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from graphdb.common.errors import GraphDBError, StorageError, nearest
from graphdb.storage.file.scratch import spill_folder
from graphdb.storage.writers.graphs import Graphs, chosen
from graphdb.storage.writers.progress import ExportProgress
from graphdb.storage.writers.targets import STREAM, opened, refuse_databases, whole_folder

if TYPE_CHECKING:
    import duckdb

    from graphdb.common.progress import Progress

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
    progress: Progress | None = None,
    spill: str | None = None,
    memory: int = 256 << 20,
) -> int:
    """Write the graph to ``path``, in place of what is there; return the number of statements written.

    Parameters
    ----------
    path
        A file, or for Parquet a folder.  ``.gz`` and ``.zst`` compress.  ``-`` is standard output.
    format
        ``"ntriples"``, ``"nquads"``, ``"turtle"``, ``"trig"``, ``"graphml"`` or ``"parquet"``, where the name does not
        tell.
    prefixes
        Prefixes that Turtle and TriG are written with.
    graphs
        Which graphs: see :mod:`.graphs`.
    progress
        Called with the share that is written, and how many statements these are.
    spill
        The directory for what does not fit into memory.
    memory
        Bytes that the work may take, beside what DuckDB may.

    Raises
    ------
    GraphDBError
        Where neither name nor ``format`` is of a format that is written; where there are named graphs, the format holds
        one, and ``graphs`` is not stated; for an IRI or a text that the format cannot hold.
    StorageError
        Where it cannot be written there.  Nothing is left behind.
    """
    target = Path(path)
    wanted = _format(target, format)
    refuse_databases(connection, target)
    with chosen(connection, graphs, prefixes, one=_ONE.get(wanted)):
        pace = ExportProgress(connection, f"writing {target.name}", progress)
        try:
            return _written(connection, target, wanted, prefixes, pace, spill, memory)
        except OSError as error:
            raise _io_error(error, target) from error


def _written(
    connection: duckdb.DuckDBPyConnection,
    target: Path,
    wanted: str,
    prefixes: dict[str, str],
    pace: ExportProgress,
    spill: str | None,
    memory: int,
) -> int:
    """Write the chosen graphs in a format."""
    from graphdb.storage.writers import graphml, parquet, text

    if wanted == "parquet":
        with whole_folder(target, parquet.FILES) as folder:
            return parquet.write(connection, folder, pace, memory)
    if wanted == "graphml":
        with opened(target) as file:
            return graphml.write(connection, file, pace, memory)
    with spill_folder(spill) as folder, opened(target) as file:
        return text.write(connection, file, wanted, prefixes, pace, folder, memory)


def _io_error(error: OSError, target: Path) -> Exception:
    """Return what to raise for an error of writing, or one of DuckDB's that came through Arrow as one."""
    import duckdb

    said = str(error)
    if error.errno is None and "Out of Memory" in said:
        return duckdb.OutOfMemoryException(said.splitlines()[0])
    if error.errno is None and "interrupt" in said.lower():
        return duckdb.InterruptException(said)
    if isinstance(error, BrokenPipeError) and str(target) == STREAM:
        return error  # who reads standard output has enough
    return StorageError(f"cannot write '{target}': {error.strerror or error}")


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
    if str(path) == STREAM:
        raise GraphDBError("standard output does not tell the format", hint="state it: nt, nq, ttl, trig or graphml")
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in _PACKED:
        suffixes.pop()
    if not suffixes or suffixes[-1] not in _FORMATS:
        raise GraphDBError(
            f"the name '{path}' does not tell the format",
            hint="name it .nt, .nq, .ttl, .trig, .graphml or .parquet (.gz and .zst compress), or state the format",
        )
    return _FORMATS[suffixes[-1]]
