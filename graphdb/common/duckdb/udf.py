"""Calls from SQL back into Python: functions of ours, which one connection's SQL can name.

DuckDB calls such a function for one row after the other, with Python values: whole columns would come as objects of
PyArrow, which need not be there.  There is one function for each type of result; who is called is its first argument, a
number, so that nothing has to be created for a query.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import weakref
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import duckdb

_NUMBERS = itertools.count(1)
_FIRST = 64
"""Callees that are entered before those that are gone are first looked for."""

STOPPED = "the statement stopped in a call"
"""What a callee raises that stops because the statement must: DuckDB reports errors as text."""

_NATIVE: Any = "native"
_WITH_NULLS: Any = "special"


class Callee(Protocol):
    """What SQL can call."""

    def answer(self, asked: int, *values: Any) -> Any:
        """Return a value for a row."""


class Calls:
    """The functions of one connection, and who answers them.

    It knows nothing of the connection, which holds it: DuckDB holds the functions, and they would keep it alive.  Other
    connections cannot call them: where they were created in a transaction that is open, DuckDB shows them to nobody
    else, and with their connection they are closed.
    """

    def __init__(self) -> None:
        self._number = next(_NUMBERS)
        self._names: dict[tuple[str, bool], str] = {}
        self._function_numbers = itertools.count()
        self._uncommitted: list[tuple[str, bool]] = []
        """The functions that were created within a transaction, which its ROLLBACK takes away."""
        self._callees: dict[int, weakref.ref[Callee]] = {}
        """References without callbacks: Python drops an interrupt that reaches it within one."""
        self._callee_numbers = itertools.count()
        self._many = _FIRST

    def enter(self, callee: Callee) -> int:
        """Return the number by which SQL calls somebody, for as long as somebody else holds it."""
        number = next(self._callee_numbers)
        self._callees[number] = weakref.ref(callee)
        if len(self._callees) > self._many:
            for gone in [known for known, reference in self._callees.items() if reference() is None]:
                del self._callees[gone]
            self._many = max(_FIRST, 2 * len(self._callees))
        return number

    def committed(self) -> None:
        """Note that the functions of a transaction stay: no later ROLLBACK takes them away."""
        self._uncommitted.clear()

    def rolled_back(self) -> None:
        """Forget the functions of a transaction that was rolled back; DuckDB creates none of the same name again."""
        while self._uncommitted:
            self._names.pop(self._uncommitted[-1], None)
            self._uncommitted.pop()

    def function(self, raw: duckdb.DuckDBPyConnection, sql_type: str, volatile: bool, uncommitted: bool) -> str:
        """Return the name of the function with results of a type, which takes a callee's number and any values.

        If ``volatile``, it is called for each row even where its arguments are constants.  ``uncommitted`` says that a
        transaction is open, which may be rolled back.
        """
        name = self._names.get((sql_type, volatile))
        if name is None:
            name = f"_graphdb_call{self._number}_{next(self._function_numbers)}"
            callees = self._callees

            def call(number: int, *values: Any) -> Any:
                callee = callees[number]()
                assert callee is not None, "whoever runs the statement holds it"
                return callee.answer(*values)

            if uncommitted:  # noted first: an interrupt may come after each line
                self._uncommitted.append((sql_type, volatile))
            raw.create_function(
                name, call, None, sql_type, type=_NATIVE, null_handling=_WITH_NULLS, side_effects=volatile
            )
            _REGISTERED.add(raw)
            self._names[sql_type, volatile] = name
        return name


_REGISTERED: weakref.WeakSet[duckdb.DuckDBPyConnection] = weakref.WeakSet()


@atexit.register
def _close() -> None:
    """Close the connections that nobody closed: DuckDB complains of functions that outlive the interpreter."""
    for raw in _REGISTERED:
        with contextlib.suppress(Exception):
            raw.close()
