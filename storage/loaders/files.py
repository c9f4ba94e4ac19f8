"""Data files: which ones a load means, how they are compressed, and what format each has."""

from __future__ import annotations

import glob
import io
import os
import re
import stat
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote, urlsplit

from graphdb.common.duckdb.open_files import name_of
from graphdb.common.errors import LoadError, nearest
from graphdb.storage.file.pipes import Reader, is_pipe, read_pipe
from graphdb.storage.loaders.compression import Damaged, decompressed, refuse_utf16
from graphdb.storage.loaders.formats import COMPRESSIONS, SUFFIXES, Format, by_suffix, compression, sniff, stated

STANDARD_INPUT = "-"

_HEAD = 1 << 16
"""Bytes that are looked at where a name does not tell the format."""

_MAGIC = 8
"""Bytes that tell how a file is compressed."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """One file to load: its path, its size on disk in bytes (0 where it has none), its compression and format.

    ``compression`` is ``"gzip"``, ``"zstd"``, ``"bzip2"``, ``"xz"`` or None.  ``stream`` is what can be read only once:
    standard input, or a pipe that was looked into.
    """

    path: Path
    size: int
    compression: str | None
    format: Format
    stream: BinaryIO | None = None

    @property
    def name(self) -> str:
        """The file as messages show it."""
        return "standard input" if str(self.path) == STANDARD_INPUT else str(self.path)

    @property
    def iri(self) -> str | None:
        """The IRI that relative ones in it are relative to, where it states none itself."""
        return None if str(self.path) == STANDARD_INPUT or self.path.name[:1] == "<" else self.path.absolute().as_uri()

    def open(self) -> BinaryIO:
        """Open the file's bytes on disk."""
        return self.stream or open(self.path, "rb")  # the caller closes it


def find(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], format: str | None = None) -> list[DataFile]:
    """Return the files that ``paths`` mean, wildcards expanded in name order; ``-`` is standard input.

    Raises
    ------
    LoadError
        Where nothing is found, a path is a directory, or neither a file's name nor its content tells its format.
    NotSupportedError
        For a format that graphdb knows but cannot read.
    """
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    wanted = stated(format) if format is not None else None
    found = [path for given in paths for path in _expand(os.path.expanduser(os.fspath(given)))]
    if not found:
        raise LoadError("no file to load was given")
    return [_data_file(path, wanted) for path in found]


def opened(stream: BinaryIO, format: str | None = None) -> DataFile:
    """Return what is to be read of an open binary file, or of bytes in memory: from where it stands to its end.

    Raises
    ------
    LoadError
        Where it is open as text, or its content does not tell its format.
    """
    name = getattr(stream, "name", None)
    if isinstance(stream, io.TextIOBase):
        raise LoadError(f"{name or 'this stream'} is open as text", hint="open it as bytes: open(…, 'rb'), io.BytesIO")
    path = Path(name if isinstance(name, str) else f"<{type(stream).__name__}>")
    wanted = stated(format) if format is not None else None
    return _look(path, wanted, _once(stream, ours=False), is_open=True)


def _expand(given: str) -> list[Path]:
    if given == STANDARD_INPUT or os.path.exists(given):
        return [Path(given)]
    if glob.has_magic(given) and "://" not in given:
        matches = sorted(path for path in glob.glob(given, recursive=True) if not os.path.isdir(path))
        if not matches:
            raise LoadError(f"no file matches '{given}'", hint=_neighbours(Path(given)))
        return [Path(path) for path in matches]
    if scheme := re.match(r"([A-Za-z][A-Za-z0-9+.-]+)://", given):
        if scheme[1].lower() == "file" and os.path.exists(path := unquote(urlsplit(given).path)):
            return [Path(path)]
        raise LoadError(f"'{given}' is no file, and nothing is fetched", hint=_FETCH)
    raise LoadError(f"there is no file '{given}'", hint=_neighbours(Path(given)))


_FETCH = "fetch it first, as in: curl … | graphdb load DATABASE -"


def _neighbours(path: Path) -> str | None:
    """Say which files lie where ``path`` was looked for."""
    folder = path.parent
    if not folder.is_dir():
        return None if glob.has_magic(str(folder)) else f"there is no folder '{folder}'"
    names = sorted(entry.name for entry in folder.iterdir() if entry.is_file())
    if similar := nearest(path.name, names):
        return "did you mean " + " or ".join(f"'{folder / name}'" for name in similar) + "?"
    readable = [f"'{folder / name}'" for name in names if _content_suffix(name) in SUFFIXES]
    more = " and more" if len(readable) > 3 else ""
    return f"there are {', '.join(readable[:3])}{more}" if readable else None


def _content_suffix(name: str) -> str:
    """Return the suffix of what a file has in it, that of its compression left out."""
    path = Path(name)
    return Path(path.stem).suffix if path.suffix in COMPRESSIONS else path.suffix


def _data_file(path: Path, format: Format | None) -> DataFile:
    """Look at one file: at its name, and at its first bytes where the name does not say enough."""
    is_input = str(path) == STANDARD_INPUT
    return _look(path, format, _once(sys.stdin.buffer, ours=False) if is_input else None)


def _look(path: Path, format: Format | None, stream: io.BufferedReader | None, *, is_open: bool = False) -> DataFile:
    """Look at a file or stream; ``is_open`` says that it is one of the caller's, which has a name at best."""
    try:
        if is_open:
            status = os.stat_result([0] * 10)
        else:
            status = os.fstat(0) if stream else path.stat()
        if stat.S_ISREG(status.st_mode) and name_of(status) is not None:
            raise LoadError(
                f"'{path}' is a database that is open here",
                hint="its graph is loaded already; a pattern may leave it out, as '*.nt' does",
            )
        if stat.S_ISDIR(status.st_mode):
            raise LoadError(f"'{path}' is a directory", hint=f"name the files in it: '{path}/*{path.suffix or '.nt'}'")
        suffixes = [suffix.lower() for suffix in path.suffixes]
        packed = COMPRESSIONS.get(suffixes[-1]) if suffixes else None
        if packed:
            suffixes.pop()
        format = format or by_suffix(suffixes[-1] if suffixes else "", str(path))
        regular = not stream and stat.S_ISREG(status.st_mode)
        if not regular:
            stream = stream or _once(read_pipe(path) if is_pipe(status) else open(path, "rb"))  # noqa: SIM115  # it stays open
            head = stream.peek(_HEAD)
        else:
            with open(path, "rb") as raw:
                head = raw.read(_HEAD if format is None else _MAGIC)
    except OSError as error:
        raise LoadError(f"cannot read '{path}': {error.strerror}") from error
    # What a file's first bytes say goes before its name: much that is called .gz has been unpacked on its way.
    packed = compression(head) or (packed if not head and not is_open else None)
    size = status.st_size if regular else 0
    if format is None:
        text = _head_of(path, packed) if regular and packed else _unpacked(io.BytesIO(head), packed)
        format = sniff(text)
    if format is None:
        refuse_utf16(text, str(path))
        empty = "the compressed file is cut short or damaged" if head else "it is empty"
        raise LoadError(
            f"neither the name '{path}' nor the content tells the file's format{'' if text else f': {empty}'}",
            hint=_ROWS.get(suffixes[-1] if suffixes else "", "state it: FORMAT ntriples, turtle, csv, …"),
        )
    return DataFile(path, size, packed, format, stream)


_ROWS = {
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), "rows of JSON: LOAD FROM (FROM '….json') AS LABEL …"),
    ".xlsx": "rows of a sheet: LOAD FROM (FROM read_xlsx('….xlsx')) AS LABEL …",
}
"""How rows are loaded that DuckDB reads, by the suffix of their file."""


def _once(stream: BinaryIO | io.FileIO, *, ours: bool = True) -> io.BufferedReader:
    """A reader that can look ahead of what is read; a pipe is waited for until it says something.

    What is ``ours`` is closed with it.
    """
    return io.BufferedReader(Reader(stream, ours=ours), _HEAD)


def _head_of(path: Path, packed: str) -> bytes:
    """Return the first bytes of the text in a packed file."""
    with open(path, "rb") as raw:
        return _unpacked(raw, packed)


def _unpacked(raw: BinaryIO, packed: str | None) -> bytes:
    """Return the first bytes of the text behind the bytes of a file, or the first of them."""
    if packed is None:
        return raw.read()
    text = b""
    try:
        for chunk in decompressed(raw, packed, 128):  # a file that is cut short says what it can
            text += chunk
            if len(text) >= _HEAD:
                break
    except (OSError, EOFError, Damaged):
        pass  # the head is cut somewhere; what came before is enough
    return text
