"""What functions make of immutable objects, remembered by which object it is.

Syntax trees are frozen, and the parser returns the same tree for the same text: a statement that runs again asks the
same of the same nodes.  Comparing them, as :func:`functools.lru_cache` does, takes longer than most of what is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class ByIdentity(Generic[T]):
    """At most so many results; all are dropped when there are more."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: dict[int, tuple[object, T]] = {}
        """By id, the object, which keeps its id as long as it is here, and the result."""

    def get(self, asked: object) -> T | None:
        """Return what is remembered of an object."""
        found = self._known.get(id(asked))
        return None if found is None else found[1]

    def put(self, asked: object, result: T) -> T:
        """Remember and return a result."""
        if len(self._known) >= self._most:
            self._known.clear()
        self._known[id(asked)] = asked, result
        return result

    def get_or_make(self, asked: object, make: Callable[[], T]) -> T:
        """Return what is remembered of an object, or what is made now."""
        found = self._known.get(id(asked))
        return self.put(asked, make()) if found is None else found[1]

    def clear(self) -> None:
        """Forget all."""
        self._known.clear()
