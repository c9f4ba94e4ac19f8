"""Data files: which ones a load means, how they are compressed, and their bytes in blocks of whole lines.

A thread reads and decompresses ahead while the blocks before are parsed.
"""

from __future__ import annotations

import glob
import os
import queue
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from graphdb.errors import LoadError, NotSupportedError, nearest

BLOCK = 4 << 20
"""Bytes of text read at a time."""

LONGEST_LINE = 1 << 30
"""Bytes that a line may have."""

_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
_FORMATS = {".nt": "N-Triples", ".ntriples": "N-Triples"}
_FORMAT_NAMES = {"nt": "N-Triples", "ntriples": "N-Triples", "n-triples": "N-Triples"}
_OTHER_FORMATS = {
    ".ttl": "Turtle",
    ".turtle": "Turtle",
    ".nq": "N-Quads",
    ".nquads": "N-Quads",
    ".trig": "TriG",
    ".rdf": "RDF/XML",
    ".owl": "RDF/XML",
    ".n3": "Notation3",
    ".jsonld": "JSON-LD",
    ".hdt": "HDT",
    ".csv": "CSV",
    ".parquet": "Parquet",
    ".json": "JSON",
    ".xml": "XML",
    ".trix": "TriX",
}


@dataclass(frozen=True, slots=True)
class DataFile:
    """One file to load: its path, its size on disk in bytes, and ``"gzip"``, ``"zstd"`` or None."""

    path: Path
    size: int
    compression: str | None

    @property
    def name(self) -> str:
        """The file as messages show it."""
        return str(self.path)


def find(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], format: str | None = None) -> list[DataFile]:
    """Return the files that ``paths`` mean, wildcards expanded in name order.

    Raises
    ------
    LoadError
        Where nothing is found, a path is a directory, or a file's name does not tell its format.
    NotSupportedError
        For a format that graphdb knows but cannot read.
    """
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    found = [path for given in paths for path in _expand(os.path.expanduser(os.fspath(given)))]
    if not found:
        raise LoadError("no file to load was given")
    return [_data_file(path, format) for path in found]


def _expand(given: str) -> list[Path]:
    if os.path.exists(given):
        return [Path(given)]
    if glob.has_magic(given):
        matches = sorted(path for path in glob.glob(given, recursive=True) if not os.path.isdir(path))
        if not matches:
            raise LoadError(f"no file matches '{given}'", hint=_neighbours(Path(given)))
        return [Path(path) for path in matches]
    raise LoadError(f"there is no file '{given}'", hint=_neighbours(Path(given)))


def _neighbours(path: Path) -> str | None:
    """Say which files lie where ``path`` was looked for."""
    folder = path.parent
    if not folder.is_dir():
        return None if glob.has_magic(str(folder)) else f"there is no folder '{folder}'"
    names = sorted(entry.name for entry in folder.iterdir() if entry.is_file())
    similar = nearest(path.name, names) or [name for name in names if Path(name).suffix in _FORMATS][:3]
    return "did you mean " + " or ".join(f"'{folder / name}'" for name in similar) + "?" if similar else None


def _data_file(path: Path, format: str | None) -> DataFile:
    if path.is_dir():
        raise LoadError(f"'{path}' is a directory", hint=f"name the files in it: '{path / '*.nt'}'")
    suffixes = [suffix.lower() for suffix in path.suffixes]
    compression = _COMPRESSIONS.get(suffixes[-1]) if suffixes else None
    if compression:
        suffixes.pop()
    if format is not None:
        _check_format(format)
    else:
        suffix = suffixes[-1] if suffixes else ""
        if suffix in _OTHER_FORMATS:
            raise NotSupportedError(f"{_OTHER_FORMATS[suffix]} files cannot be loaded yet: '{path}'", hint=_CONVERT)
        if suffix not in _FORMATS:
            raise LoadError(
                f"the name '{path}' does not tell the file's format",
                hint="N-Triples is read from .nt, .nt.gz and .nt.zst; for other names, state FORMAT ntriples",
            )
    try:
        return DataFile(path, path.stat().st_size, compression)
    except OSError as error:
        raise LoadError(f"cannot read '{path}': {error.strerror}") from error


_CONVERT = "convert it to N-Triples (.nt, .nt.gz, .nt.zst)"


def _check_format(format: str) -> None:
    if format.lower() in _FORMAT_NAMES:
        return
    for suffix, name in _OTHER_FORMATS.items():
        if format.lower() in (suffix[1:], name.lower()):
            raise NotSupportedError(f"{name} files cannot be loaded yet", hint=_CONVERT)
    close = nearest(format, _FORMAT_NAMES)
    raise LoadError(
        f"unknown format '{format}'", hint=f"did you mean {close[0]}?" if close else "the format is ntriples"
    )


# --- bytes -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines of a file, and how many of its bytes on disk were read so far."""

    text: bytes
    consumed: int


def blocks(file: DataFile, size: int = BLOCK, ahead: int = 4) -> Iterator[Block]:
    """Yield the decompressed text of ``file`` in blocks of about ``size`` bytes, cut at line ends.

    The last block may lack its line end.  A thread keeps up to ``ahead`` blocks ready.

    Raises
    ------
    LoadError
        Where the file cannot be opened, read or decompressed, or has a line of more than 1 GiB.
    """
    ready: queue.Queue[Block | BaseException | None] = queue.Queue(ahead)
    stopped = threading.Event()

    def put(item: Block | BaseException | None) -> bool:
        while not stopped.is_set():
            try:
                ready.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def read() -> None:
        try:
            for block in _lines(file, size):
                if not put(block):
                    return
            put(None)
        except BaseException as error:  # handed to the consumer, who raises it
            put(error)

    thread = threading.Thread(target=read, name="graphdb-read", daemon=True)
    thread.start()
    try:
        while (item := ready.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stopped.set()
        thread.join()


def _lines(file: DataFile, size: int) -> Iterator[Block]:
    """Yield the file's text in blocks that end where a line ends."""
    pieces: list[bytes] = []
    length = 0
    for chunk, consumed in _chunks(file, size):
        cut = _cut(chunk)
        if cut:
            yield Block(b"".join([*pieces, chunk[:cut]]), consumed)
            pieces, length = [], 0
        pieces.append(chunk[cut:])
        length += len(chunk) - cut
        if length > LONGEST_LINE:
            raise LoadError("a line is longer than 1 GiB", source=file.name, hint="is this an N-Triples file?")
    if length:
        yield Block(b"".join(pieces), file.size)


def _cut(chunk: bytes) -> int:
    """Return the position behind the last line end in ``chunk``; a carriage return at its end may be half of one."""
    cut = chunk.rfind(b"\n") + 1
    return cut or chunk.rfind(b"\r", 0, len(chunk) - 1) + 1


def _chunks(file: DataFile, size: int) -> Iterator[tuple[bytes, int]]:
    """Yield decompressed bytes, at most ``size`` at a time where possible, and the position in the file on disk."""
    try:
        with open(file.path, "rb") as raw:
            if file.compression == "zstd":
                yield from _zstd_chunks(raw, size)
            else:
                chunks = _gzip_chunks(raw, size) if file.compression == "gzip" else iter(lambda: raw.read(size), b"")
                for chunk in chunks:
                    yield chunk, raw.tell()
    except OSError as error:
        # gzip.BadGzipFile is an OSError without a number
        reason = error.strerror or f"it is not a valid gzip file ({error})"
        raise LoadError(f"cannot read '{file.name}': {reason}") from error
    except EOFError as error:
        raise LoadError(f"cannot read '{file.name}': the compressed file is cut short", hint=_AGAIN) from error
    except _Damaged as error:
        raise LoadError(f"cannot read '{file.name}': the compressed file is damaged ({error})", hint=_AGAIN) from error


_AGAIN = "fetch or compress the file again"


class _Damaged(Exception):
    """The compressed bytes are not what their format allows."""


def _gzip_chunks(raw: BinaryIO, size: int) -> Iterator[bytes]:
    """Decompress a gzip file of any number of members."""
    from isal import igzip, isal_zlib

    stream = igzip.open(raw, "rb")  # type: ignore[no-untyped-call]
    try:
        while chunk := stream.read(size):
            yield chunk
    except (isal_zlib.error, zlib.error) as error:  # type: ignore[misc]  # isal's is untyped
        raise _Damaged(error) from error


def _zstd_chunks(raw: BinaryIO, size: int) -> Iterator[tuple[bytes, int]]:
    """Decompress any number of zstd frames; the stream reader of zstandard would not notice a missing end."""
    import zstandard

    frame = None
    read: Callable[[], bytes] = lambda: raw.read(max(size // 16, 1))  # noqa: E731
    while compressed := read():
        while compressed:
            frame = frame or zstandard.ZstdDecompressor().decompressobj()
            try:
                text = frame.decompress(compressed)
            except zstandard.ZstdError as error:
                raise _Damaged(error) from error
            compressed = frame.unused_data if frame.eof else b""
            if frame.eof:
                frame = None
            for start in range(0, len(text), size):
                yield text[start : start + size], raw.tell()
    if frame is not None:
        raise EOFError
