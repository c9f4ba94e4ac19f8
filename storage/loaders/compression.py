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
        case "zstd" | "bzip2" | "xz":
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


def _other_chunks(raw: BinaryIO | io.RawIOBase, packed: str, size: int) -> Iterator[bytes]:
    """Decompress any number of streams; the files that Python opens would not mind what is behind one."""
    begin, error_of_format = _decompressor(packed)
    stream: Any = None
    while compressed := raw.read(max(size // 16, 1)):
        while compressed or not (stream is None or stream.needs_input):
            if stream is None:
                compressed = compressed.lstrip(b"\0") if packed == "xz" else compressed  # streams of xz may be padded
                if not compressed:
                    break
                stream = begin()
            try:
                text = stream.decompress(compressed, size)
            except (error_of_format, ValueError) as error:
                raise Damaged(error) from error
            compressed = stream.unused_data if stream.eof else b""
            stream = None if stream.eof else stream
            if text:
                yield text
    if stream is not None:
        raise EOFError


def _decompressor(packed: str) -> tuple[Callable[[], Any], type[Exception]]:
    """Return what decompresses one stream, and the error of bytes that are not what the format allows."""
    match packed:
        case "bzip2":
            import bz2

            return bz2.BZ2Decompressor, OSError
        case "xz":
            import lzma

            return lzma.LZMADecompressor, lzma.LZMAError
        case _:
            from graphdb.storage.zstd import ZstdDecompressor, ZstdError

            return ZstdDecompressor, ZstdError
