"""The errors that users see: few types under one base, each with its place in the text and a hint.

Every error that graphdb raises on purpose is a :class:`GraphDBError`.  Where the mistake stands in a text (a
statement, a data file), the error knows the text and the place, and prints them with a caret:

>>> print(ParseError("expected ')'", text="MATCH (a RETURN a", position=9, hint="close the node pattern"))
expected ')' (line 1, column 10)
  MATCH (a RETURN a
           ^
hint: close the node pattern
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Self

_WIDEST = 100
"""Characters of a line that an error shows at most; the caret stays inside them."""


class GraphDBError(Exception):
    """The base of all errors that graphdb raises.

    Parameters
    ----------
    message
        What is wrong, in one sentence without a full stop.
    text
        The whole text in which it is wrong (a statement), if there is one.
    position
        Offset in characters into ``text``.
    hint
        What would be right, if that is known.
    line, column, source
        The place where it is known directly (data files), counted from 1; ``source`` is the file.
    """

    def __init__(
        self,
        message: str,
        *,
        text: str | None = None,
        position: int | None = None,
        hint: str | None = None,
        line: int | None = None,
        column: int | None = None,
        source: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.source = source
        self.line = line
        self.column = column
        self.excerpt = text
        if text is not None and position is not None:
            position = min(max(position, 0), len(text))
            self.line = text.count("\n", 0, position) + 1
            start = text.rfind("\n", 0, position) + 1
            self.column = position - start + 1
            self.excerpt = text[start:].split("\n", 1)[0]

    def __str__(self) -> str:
        place = [f"{self.source}"] if self.source else []
        if self.line is not None:
            place.append(f"line {self.line}")
        if self.column is not None:
            place.append(f"column {self.column}")
        lines = [f"{self.message} ({', '.join(place)})" if place else self.message]
        if self.excerpt is not None and self.column is not None:
            lines += _caret(self.excerpt, self.column)
        if self.hint:
            lines.append(f"hint: {self.hint}")
        description = "\n".join(lines).translate(_CONTROLS)
        return description.encode(errors="backslashreplace").decode()  # what is no character cannot be printed

    def _render_traceback_(self) -> list[str]:
        """Return what IPython and Jupyter print of the error: the message, not the frames that led to it."""
        return [f"{type(self).__name__}: {self}"]


_CONTROLS = {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"} | {127: 0x2421}
_CONTROLS |= dict.fromkeys((*range(128, 160), 1564, 8206, 8207), 65533)
_CONTROLS |= dict.fromkeys((*range(8234, 8239), *range(8294, 8298)), 65533)
"""Pictures of control characters, those that turn the direction of text among them: in data they do nothing to a
terminal, and the caret stands below what it means."""

_PLACE = re.compile(r"(.*) at offset (\d+)(?: as (MemoryLimitError|TypeMismatchError))?", re.DOTALL)
"""What :func:`with_place` makes; SQL of the user's own may fail with any words, which stay as they are."""


def with_place(message: str, position: int, kind: type[GraphDBError] | None = None) -> str:
    """Return a message for SQL to fail with, which tells where the statement is wrong, and how; see :func:`placed`."""
    return f"{message} at offset {position}" + (f" as {kind.__name__}" if kind else "")


def placed(error: GraphDBError, text: str) -> GraphDBError:
    """Return an error that SQL failed with as one that shows its place in the statement, if it knows one."""
    found = _PLACE.fullmatch(error.message)
    if found is None or error.line is not None:
        return error
    kinds = {kind.__name__: kind for kind in (MemoryLimitError, TypeMismatchError)}
    return kinds.get(found[3], type(error))(found[1], text=text, position=int(found[2]), hint=error.hint)


class ParseError(GraphDBError):
    """The statement does not follow the grammar."""


class NotSupportedError(GraphDBError):
    """The statement is openCypher or GQL that this version does not run yet."""


class BindError(GraphDBError):
    """A name means nothing here: an unknown label, edge label, property, variable, prefix or function."""


class TypeMismatchError(GraphDBError):
    """An operation is applied to values that it does not take."""


class ParameterError(GraphDBError):
    """A query parameter is missing, unknown or of a type that cannot be passed."""

    @classmethod
    def missing(cls, name: str, given: Iterable[str], text: str, position: int) -> Self:
        """Return the error that a parameter has no value, which others, ``given``, have."""
        near = nearest(name, given)
        if name in ("text", "parameters", "timeout"):  # arguments of query() have these names
            pass_it = f"pass it in the second argument: query(…, {{{name!r}: …}})"
        elif name.isidentifier():
            pass_it = f"pass it: query(…, {name}=…); in the shell .param {name} …, on the command line -p {name}=…"
        else:  # a place in a list, or a name in back-quotes
            listed = "[…]" if name.isdecimal() else f"{{{name!r}: …}}"
            pass_it = f"pass it: query(…, {listed})" + f"; in the shell .param {name} …" * name.isdecimal()
        message, hint = f"parameter ${name} has no value", f"did you mean ${near[0]}?" if near else pass_it
        return cls(message, text=text, position=position, hint=hint)


class LoadError(GraphDBError):
    """A data file cannot be read, or a line of it is malformed; nothing of the load was stored."""


class StorageError(GraphDBError):
    """The database file cannot be opened, is not one of ours, is locked, or cannot be written."""


class AccessError(GraphDBError):
    """What is asked for is not allowed: files from an untrusted query, SQL that writes to graphdb's own tables."""


class ExecutionError(GraphDBError):
    """The statement was understood but failed while it ran (SQL errors of DuckDB included)."""


class QueryTimeout(ExecutionError):
    """The statement ran longer than its ``timeout``; the database is unchanged."""


class QueryInterrupted(ExecutionError):
    """The statement was stopped by :meth:`~graphdb.Database.interrupt`; the database is unchanged."""


class MemoryLimitError(ExecutionError):
    """The statement needs more memory than the database's ``memory_limit`` allows."""


class DeviceError(ExecutionError):
    """The CUDA device is not there, cannot be used, or failed."""


def nearest(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    """Return up to ``count`` known names that resemble ``name``, best first; case does not matter.

    >>> nearest("persn", ["Person", "City", "knows"])
    ['Person']
    """
    by_lower: dict[str, str] = {}
    for candidate in known:
        by_lower.setdefault(candidate.lower(), candidate)
    close = difflib.get_close_matches(name.lower(), by_lower, n=count, cutoff=0.6)
    return [by_lower[match] for match in close]


def _caret(text: str, column: int) -> list[str]:
    """Return the line and the caret under ``column``, both cut to a window that shows the place."""
    at = column - 1
    text = text.replace("\t", " ").replace("\r", " ")
    if len(text) > _WIDEST:
        start = max(0, min(at - _WIDEST // 2, len(text) - _WIDEST))
        cut = text[start : start + _WIDEST]
        left, right = ("…" if start else ""), ("…" if start + _WIDEST < len(text) else "")
        text, at = left + cut + right, at - start + len(left)
    return ["  " + text, "  " + " " * at + "^"]
