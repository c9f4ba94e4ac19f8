"""Regular expressions (``=~``): RE2's syntax and its time, linear in the text whatever the pattern.

SQL has them by DuckDB, which is built with RE2; what is evaluated in Python has them by ``google-re2``.  Both give the
same answers, and the same errors.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from graphdb.common.errors import ExecutionError

_SHOWN = 100
"""Characters of a pattern that an error shows."""

_NAMED = re.compile(r"\\Q.*?(?:\\E|\Z)|\\.|\[\^?\]?(?:\\.|\[:\w+:\]|[^\]\\])*\]|(?P<named>\(\?<)", re.DOTALL)
"""What may hold ``(?<`` as text, or begins a group with a name in the syntax that only newer versions know."""

_FAULTS = re.compile(
    r"(?:Invalid Input Error: )?("
    r"(?:invalid (?:escape sequence|character class(?: range)?|repetition size|perl operator|UTF-8|named capture group)"
    r"|missing [\])]|unexpected \)|trailing \\|no argument for repetition operator|bad repetition operator"
    r"|pattern too large).*)",
    re.DOTALL,
)
"""What RE2 says of a text that is no regular expression."""


def full_match(pattern: str, text: str) -> bool:
    """Whether all of a text is of a pattern.

    Raises
    ------
    ExecutionError
        The pattern is no regular expression.
    """
    return compiled(pattern).fullmatch(text) is not None


@lru_cache(maxsize=256)
def compiled(pattern: str) -> Any:
    """Return a pattern as ``re2`` matches it; raises as :func:`full_match`."""
    import re2

    if any(found["named"] for found in _NAMED.finditer(pattern)):
        raise fault("invalid perl operator: (?<", pattern)
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        said = error.args[0]
        raise fault(said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said), pattern) from None


def fault(said: str, pattern: str | None = None) -> ExecutionError:
    """Return the error of what is no regular expression."""
    shown = "a text" if pattern is None else repr(pattern if len(pattern) <= _SHOWN else pattern[:_SHOWN] + "…")
    return ExecutionError(f"{shown} is no regular expression: {said}", hint="the syntax is RE2's")


def fault_in(message: str) -> ExecutionError | None:
    """Return the error that a message of DuckDB's tells, if it is of a regular expression."""
    found = _FAULTS.fullmatch(message)
    return None if found is None else fault(found[1])
