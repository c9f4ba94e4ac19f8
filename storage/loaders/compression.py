"""Decompression of gzip, zstd, bzip2 and xz, piece by piece, and the refusal of text that is not UTF-8."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from graphdb.common.errors import LoadError


class Damaged(Exception):
    """The compressed bytes are not what their format allows."""


def refuse_utf16(head: bytes, name: str) -> None:
    """Refuse text that begins as UTF-16 does: with its byte order mark, or two characters with a zero in each.

    Or as UTF-32 does.
    """
    if head.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        raise LoadError(f"'{name}' is text in UTF-32", hint="convert the file to UTF-8")
    zeros = tuple(not byte for byte in head[:4])
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or zeros in ((False, True) * 2, (True, False) * 2):
        raise LoadError(f"'{name}' is text in UTF-16", hint="convert the file to UTF-8")


def decompressed(raw: BinaryIO | io.RawIOBase, packed: str | None, size: int) -> Iterator[bytes]:
    """Yield the decompressed bytes behind ``raw``; EOFError where they are cut short, or :class:`Damaged`."""
    match packed:
        case "gzip":
            yield from _gzip_chunks(raw, size)
        case "zstd":
            yield from _zstd_chunks(raw, size)
        case "bzip2" | "xz":
            yield from _other_chunks(raw, packed, size)
        case _:
            while chunk := raw.read(size):
                yield chunk


def _gzip_chunks(raw: BinaryIO | io.RawIOBase, size: int) -> Iterator[bytes]:
    """Decompress a gzip file of any number of members."""
    from isal import igzip, isal_zlib

    stream = igzip.open(raw, "rb")  # type: ignore[no-untyped-call]
    try:
        while chunk := stream.read(size):
            yield chunk
    except (isal_zlib.error, zlib.error) as error:  # type: ignore[misc]  # isal's is untyped
        raise Damaged(error) from error


def _zstd_chunks(raw: BinaryIO | io.RawIOBase, size: int) -> Iterator[bytes]:
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
                raise Damaged(error) from error
            compressed = frame.unused_data if frame.eof else b""
            if frame.eof:
                frame = None
            for start in range(0, len(text), size):
                yield text[start : start + size]
    if frame is not None:
        raise EOFError


def _other_chunks(raw: BinaryIO | io.RawIOBase, packed: str, size: int) -> Iterator[bytes]:
    """Decompress any number of bzip2 or xz streams; the files that Python opens would not mind what is behind one."""
    import bz2
    import lzma

    stream: Any = None
    while compressed := raw.read(max(size // 16, 1)):
        while compressed or not (stream is None or stream.needs_input):
            if stream is None:
                compressed = compressed.lstrip(b"\0") if packed == "xz" else compressed  # streams of xz may be padded
                if not compressed:
                    break
                stream = bz2.BZ2Decompressor() if packed == "bzip2" else lzma.LZMADecompressor()
            try:
                text = stream.decompress(compressed, size)
            except (OSError, lzma.LZMAError, ValueError) as error:
                raise Damaged(error) from error
            compressed = stream.unused_data if stream.eof else b""
            stream = None if stream.eof else stream
            if text:
                yield text
    if stream is not None:
        raise EOFError
