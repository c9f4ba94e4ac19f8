"""Caches of what is made of syntax trees, by which tree it is, and of texts, by their characters.

Syntax trees are frozen, and the parser returns the same tree for the same text: a statement that runs again asks the
same of the same nodes.  Comparing them, as :func:`functools.lru_cache` does, takes longer than most of what is asked.

What is made of a text takes memory in proportion to it, and garbage collections walk over it: a cache that counts texts
holds gigabytes once these are long.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
T = TypeVar("T")


class ByIdentity(Generic[T]):
    """What functions make of immutable objects: at most so many results; all are dropped when there are more."""

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

    def take(self, asked: object) -> T | None:
        """Return what is remembered of an object, and forget it."""
        found = self._known.pop(id(asked), None)
        return None if found is None else found[1]

    def get_or_make(self, asked: object, make: Callable[[], T]) -> T:
        """Return what is remembered of an object, or what is made now."""
        found = self._known.get(id(asked))
        return self.put(asked, make()) if found is None else found[1]

    def clear(self) -> None:
        """Forget all."""
        self._known.clear()


class Latest(OrderedDict[K, T]):
    """A mapping of at most so many entries: what was set longest ago goes first."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: K, value: T) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        while len(self) > self._most:
            self.popitem(last=False)


class TextCache(Generic[T]):
    """What texts were made into, in two generations: when the younger is full, the elder goes, with what nobody wanted.

    No lock is needed, which an interrupt or a fork could leave locked: at worst a text is read twice.

    Parameters
    ----------
    most
        Texts of a generation.
    characters
        Characters of a generation; a longer text is a generation of its own.
    """

    def __init__(self, most: int, characters: int) -> None:
        self._most = most
        self._characters = characters
        self._generations: tuple[dict[str, T], dict[str, T]] = ({}, {})
        self._size = 0
        """Characters of the younger generation."""

    def get(self, text: str) -> T | None:
        """Return what was made of a text, if it is here."""
        younger, elder = self._generations
        found = younger.get(text)
        if found is None and (found := elder.get(text)) is not None:
            self.put(text, found)
        return found

    def put(self, text: str, made: T) -> None:
        """Remember what was made of a text."""
        younger, _ = self._generations
        if younger and (len(younger) >= self._most or self._size + len(text) > self._characters):
            self._generations, self._size = ({}, younger), 0
            younger = self._generations[0]
        younger[text] = made
        self._size += len(text)
