"""Arrow's buffers, where their bytes are wanted and not their values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa


def string_bytes(array: pa.Array) -> memoryview:
    """Return the bytes of the strings of an array (string of any sort), one after the other; NULL has none."""
    import pyarrow as pa

    array = array.cast(pa.large_string())
    if not len(array):
        return memoryview(b"")
    buffers: Any = array.buffers()
    _, offsets, data = buffers
    at = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    return memoryview(data).cast("B")[at[0] : at[-1]] if data is not None else memoryview(b"")
