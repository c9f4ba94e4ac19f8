"""What is kept of statements for the next time: so many things, of so many bytes, those used longest ago make room."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

Thing = TypeVar("Thing")

MAX_ENTRIES = 256
"""Things that are kept at most."""


class LRUCache(Generic[Thing]):
    """Things by their keys.

    Parameters
    ----------
    limit_bytes
        What they may hold of memory together; the one that came last stays, however large.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._bytes = 0
        self._things: dict[Hashable, tuple[Thing, int]] = {}

    def __len__(self) -> int:
        return len(self._things)

    def get(self, key: Hashable) -> Thing | None:
        """Return what is kept under a key, or None.  Raises TypeError where the key cannot be hashed."""
        found = self._things.get(key)  # pop would not look at the key where nothing is kept
        if found is None:
            return None
        self._things[key] = self._things.pop(key)  # now it is the one used last
        return found[0]

    def put(self, key: Hashable, thing: Thing, size: int) -> None:
        """Keep a thing of ``size`` bytes."""
        self._bytes += size - self._things.pop(key, (None, 0))[1]
        self._things[key] = (thing, size)
        while len(self._things) > 1 and (len(self._things) > MAX_ENTRIES or self._bytes > self._limit):
            self._bytes -= self._things.pop(next(iter(self._things)))[1]

    def clear(self) -> None:
        """Keep nothing."""
        self._things.clear()
        self._bytes = 0
