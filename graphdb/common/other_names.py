"""Methods of other libraries that are typed by habit: the error says what does the same here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, NoReturn


class OtherNames:
    """Base of what users call; a class has hints for names that are not its own in :attr:`_elsewhere`.

    Each is an attribute that raises: a ``__getattr__`` would make every attribute of ours slower to read (CPython
    specialises no class that has one), a tenth of what a small count takes.
    """

    _elsewhere: ClassVar[Mapping[str, str]] = {}
    """What other libraries call a method, and what to write here."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, hint in cls._elsewhere.items():
            setattr(cls, name, _Elsewhere(name, hint))

    def __dir__(self) -> list[str]:
        """Return the names that are there: nobody is offered the others."""
        return [name for name in super().__dir__() if name not in self._elsewhere]


class _Elsewhere:
    """A name that an object does not have, and what to write in its place."""

    def __init__(self, name: str, hint: str) -> None:
        self._name, self._hint = name, hint

    def __get__(self, instance: object, owner: type) -> NoReturn:
        message = f"{owner.__name__!r} object has no attribute {self._name!r}; here: {self._hint}"
        raise AttributeError(message, name=self._name, obj=instance)


def by_name(hints: Mapping[str, str]) -> dict[str, str]:
    """Return hints by each of the names that are written in one text, with blanks between them.

    >>> by_name({"one two": "three"})
    {'one': 'three', 'two': 'three'}
    """
    return {name: hint for names, hint in hints.items() for name in names.split()}
