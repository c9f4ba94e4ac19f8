"""What callers hand to the methods of the package, looked at where it arrives: Python does not check their types."""

from __future__ import annotations

import os

from graphdb.common.errors import ParameterError


def text_of(given: object, what: str = "a statement") -> str:
    """Return a text that a caller gave.

    Raises
    ------
    ParameterError
        It is none.
    """
    if not isinstance(given, str):
        raise ParameterError(f"{what} is a text, found {type(given).__name__}")
    return given


def brief(given: object) -> str:
    """Return an argument as an error shows it: as Python writes it, where that is short, or its type.

    >>> brief(3.5), brief(10**5000), brief("x" * 500)
    ('3.5', 'a value of type int', 'a value of type str')
    """
    try:
        written = repr(given)
    except Exception:  # an integer of very many digits, a list that is nested very deeply
        written = ""
    return written if 0 < len(written) <= 60 else f"a value of type {type(given).__name__}"


def path_of(given: object, what: str) -> str:
    """Return a path that a caller gave, as a text or an object of `pathlib`.

    Raises
    ------
    ParameterError
        It is none.
    """
    if not isinstance(given, str | os.PathLike):
        raise ParameterError(f"{what} is a path, found {type(given).__name__}")
    return os.fsdecode(given)


def flag_of(given: object, what: str) -> bool:
    """Return whether a caller said yes: a text says neither, for ``"false"`` would be true.

    Raises
    ------
    ParameterError
        It is a text.
    """
    if isinstance(given, str | bytes):
        raise ParameterError(f"{what} is True or False, found {brief(given)}")
    return bool(given)


def number_of(given: object, what: str, least: int = 0) -> int:
    """Return a whole number that a caller gave.

    Raises
    ------
    ParameterError
        It is none, or less than ``least``, or does not fit 64 bits.
    """
    if isinstance(given, bool) or not hasattr(given, "__index__"):
        raise ParameterError(f"{what} is a whole number, found {type(given).__name__}")
    number = int(given.__index__())
    if not least <= number < 1 << 63:
        raise ParameterError(f"{what} is a number from {least:,}, found {brief(number)}")
    return number


def encodes(text: str) -> bool:
    """Whether a text has characters only: a lone surrogate is none."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


_MISSING = frozenset({"NAType", "NaTType"})
"""Classes of pandas, of which there is one value each."""


def is_missing(value: object) -> bool:
    """Whether a value is one of those that pandas and NumPy have where there is none; NaN is a number."""
    if type(value).__name__ in _MISSING:
        return True
    dtype = getattr(value, "dtype", None)
    return getattr(dtype, "kind", "") in ("m", "M") and getattr(value, "ndim", 1) == 0 and bool(value != value)
