"""Long texts go to Python one by one: DuckDB looks for a stop only after 2,048 of them.

A function that takes nanoseconds for each byte takes seconds for 2,048 texts of a megabyte.  So where some text of the
database or among the arguments is long, its SQL is within a CASE that hands long texts to Python, which looks before
each; where none is, there is no CASE, which DuckDB takes a tenth of a millisecond to plan.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from graphdb.common.duckdb.connection import Connection
from graphdb.common.duckdb.udf import STOPPED
from graphdb.common.errors import ExecutionError
from graphdb.common.values.types import Type, sql_type
from graphdb.functions.texts import TEXTS

_NANOSECONDS = {
    "toupper": 2.2,
    "tolower": 1.6,
    "trim": 3.6,
    "btrim": 3.6,
    "ltrim": 0.2,
    "rtrim": 3.6,
    "normalize": 14.0,
    "replace": 1.8,
    "reverse": 11.0,
    "split": 3.5,
    "substring": 0.6,
    "left": 0.6,
    "right": 0.7,
    "CONTAINS": 0.6,
    "=~": 2.3,
    "||": 0.3,
}
"""What a function takes for each byte of a text, measured; the others take less than copying it."""

LONG = {name: int(0.1e9 / 2048 / each) for name, each in _NANOSECONDS.items()}
"""Bytes of a text that is long for a function: 2,048 of them take a tenth of a second."""

SHORTEST = min(LONG.values())
"""Bytes of the shortest text that is long for any function."""

_NUMBERS = {name: number for number, name in enumerate(LONG)}
_CALLS = [TEXTS[name] for name in LONG]


def is_long(value: object) -> bool:
    """Whether a value is a text that is long for some function."""
    return type(value) is str and len(value) >= SHORTEST // 4  # a character has four bytes at most


class LongTexts:
    """What SQL calls for long texts, on one connection, which has one (:meth:`.Connection.callee`)."""

    def __init__(self, connection: Connection) -> None:
        self._connection = weakref.ref(connection)  # which holds this
        self._number = connection.calls.enter(self)

    def guarded(
        self, name: str, texts: Sequence[str], operands: Sequence[str], type: Type, sql: str, otherwise: str | None
    ) -> str:
        """Return SQL of a function that hands long texts to Python.

        Parameters
        ----------
        name
            The function, one of :data:`LONG`.
        texts
            SQL of the texts that its operands are made of, whose lengths bound theirs.
        operands
            SQL of what it takes.
        type
            The type of its value.
        sql
            What yields the value of texts that are not long.
        otherwise
            What yields the value of long ones where Python has none; None where that is null.
        """
        connection = self._connection()
        assert connection is not None, "it is asked by its owner"
        with connection.guard() as raw:
            function = connection.calls.function(raw, sql_type(type), False, connection.transactions.inside)
        call = f"{function}({', '.join([str(self._number), str(_NUMBERS[name]), *operands])})"
        long = " OR ".join(f"strlen({text}) >= {LONG[name]}" for text in dict.fromkeys(texts))
        found = call if otherwise is None else f"coalesce({call}, {otherwise})"
        return f"CASE WHEN {long} THEN {found} ELSE {sql} END"

    def answer(self, asked: int, *given: Any) -> Any:
        """Return a function's value; null where an operand is."""
        connection = self._connection()
        if connection is None or connection.must_stop:
            raise RuntimeError(STOPPED)
        with suppress(ExecutionError):  # no regular expression, of which SQL says so
            return None if None in given else _CALLS[asked](*given)
