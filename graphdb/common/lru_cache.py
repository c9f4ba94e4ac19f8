"""An LRU cache: values by keys, bounded in number and in bytes; the least recently used are evicted."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")

MAX_ENTRIES = 256
"""Entries, at most."""


class LRUCache(Generic[Value]):
    """Values by their keys, the least recently used first.

    Parameters
    ----------
    limit_bytes
        Bytes that the values may take together; the value put last stays, however large it is.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._bytes = 0
        self._entries: dict[Hashable, tuple[Value, int]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Hashable) -> Value | None:
        """Return the value of a key, or None.  Raises TypeError where the key cannot be hashed."""
        found = self._entries.get(key)  # pop would not hash the key of an empty dictionary
        if found is None:
            return None
        self._entries[key] = self._entries.pop(key)  # now it is the one used last
        return found[0]

    def put(self, key: Hashable, value: Value, size: int) -> None:
        """Store a value of ``size`` bytes."""
        self._bytes += size - self._entries.pop(key, (None, 0))[1]
        self._entries[key] = (value, size)
        while len(self._entries) > 1 and (len(self._entries) > MAX_ENTRIES or self._bytes > self._limit):
            self._bytes -= self._entries.pop(next(iter(self._entries)))[1]

    def clear(self) -> None:
        """Drop all values."""
        self._entries.clear()
        self._bytes = 0
