"""Methods of other libraries that are typed by habit: the error says what does the same here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar


class OtherNames:
    """Base of what users call; a class has hints for names that are not its own in :attr:`_elsewhere`."""

    _elsewhere: ClassVar[Mapping[str, str]] = {}
    """What other libraries call a method, and what to write here."""

    if not TYPE_CHECKING:  # a type checker is to know that there is no such name

        def __getattr__(self, name: str) -> object:
            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            hint = self._elsewhere.get(name)
            raise AttributeError(message if hint is None else f"{message}; here: {hint}", name=name, obj=self)


def by_name(hints: Mapping[str, str]) -> dict[str, str]:
    """Return hints by each of the names that are written in one text, with blanks between them.

    >>> by_name({"one two": "three"})
    {'one': 'three', 'two': 'three'}
    """
    return {name: hint for names, hint in hints.items() for name in names.split()}
