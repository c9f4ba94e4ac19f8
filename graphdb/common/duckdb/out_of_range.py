"""Numbers that are out of range, told by a value where an error of DuckDB's would end a transaction.

Statements run as if no number were out of range, and once more with care where one is.  Within a transaction the first
run must not fail: SQL tries each sum, difference and product of integers, and calls Python where one has no value
though its operands have.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from graphdb.common.duckdb.connection import Connection


class OutOfRange:
    """What SQL calls where numbers are out of range, on one connection, which has one (:meth:`.Connection.callee`)."""

    def __init__(self, connection: Connection) -> None:
        self._connection = weakref.ref(connection)  # which holds this
        self._number = connection.calls.enter(self)
        self.noted = False
        """Whether a number was out of range since somebody set this to false."""

    def told(self, operands: Sequence[str], sql: str) -> str:
        """Return SQL of an integer that some operands make by other SQL: any number where it is out of range."""
        connection = self._connection()
        assert connection is not None, "it is asked by its owner"
        with connection.guard() as raw:
            function = connection.calls.function(raw, "BIGINT", False, connection.transactions.inside)
        there = " AND ".join(f"{operand} IS NOT NULL" for operand in operands)
        # The operands are arguments so that DuckDB does not call it as a constant.
        call = f"{function}({', '.join([str(self._number), '0', *operands])})"
        return f"coalesce(TRY({sql}), CASE WHEN {there} THEN {call} END)"

    def answer(self, asked: int, *given: Any) -> int:
        """Note that a number is out of range; what comes of it is thrown away."""
        self.noted = True
        return 0
