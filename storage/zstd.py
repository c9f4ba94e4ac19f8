"""Zstandard: Python's own module from 3.14 on, and before its backport, which has the same names."""

from __future__ import annotations

import sys

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdDecompressor, ZstdError, ZstdFile, compress
else:
    from backports.zstd import ZstdDecompressor, ZstdError, ZstdFile, compress

__all__ = ["ZstdDecompressor", "ZstdError", "ZstdFile", "compress"]
