"""More memory for DuckDB while a piece of work needs it."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import TYPE_CHECKING
from uuid import uuid4

from graphdb.common.config import memory_bytes
from graphdb.common.duckdb.temporary import Owner
from graphdb.common.forks import lock_at_fork

if TYPE_CHECKING:
    import duckdb


class MoreMemory:
    """Lets DuckDB have some bytes more than its limit until a piece of work is done, however that ends.

    A class of its own, not a generator: where an interrupt comes before it is undone, it is undone before the next
    statement.  The limit is that of the whole of DuckDB, which may have several databases of ours
    (:func:`graphdb.attach`): what their pieces of work need at once is added up.
    """

    __slots__ = ("_more", "_owner")

    def __init__(self, owner: Owner, more: int) -> None:
        self._owner, self._more = owner, more

    def __enter__(self) -> None:
        self._owner.transactions.leftovers.append(self._back)
        with _LOCK:
            cursor = self._owner.raw.cursor()
            limit = next((each for each in _RAISED if each.is_of(cursor)), None)
            if limit is None:
                limit = _RaisedLimit(cursor)
                _RAISED.append(limit)
            limit.more[self] = self._more
            limit.set()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._back()
        self._owner.transactions.leftovers.remove(self._back)

    def _back(self) -> None:
        with _LOCK:
            for limit in list(_RAISED):
                if self in limit.more or not limit.more:  # none, where an interrupt came between
                    limit.set(without=self)
                    limit.more.pop(self, None)
                    if not limit.more:
                        _RAISED.remove(limit)


class _RaisedLimit:
    """The limit of one DuckDB, which pieces of work raise.

    A cursor of its own sets it, which no stop of the work interrupts and no aborted transaction refuses.  DuckDB has no
    name for itself.  So while its limit is raised it has one in a setting that it ignores (``username``, of older
    interfaces), which all of its connections see.
    """

    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        self._cursor = cursor
        said = _setting(cursor, "memory_limit")
        # DuckDB says its limit in tenths of a unit, cut off: by half of one more it says the same the next time.
        number, unit = said.split()
        self._former = f"{float(number) + 0.05:.2f} {unit}"
        self._bytes = memory_bytes(said)
        self._name, self._former_name = f"limit of {uuid4()}", _setting(cursor, "username")
        self.more: dict[MoreMemory, int] = {}
        """Bytes that each piece of work under way needs."""

    def set(self, without: MoreMemory | None = None) -> None:
        """Set the limit to what is needed by now, or once a piece of work is done."""
        needed = [more for work, more in self.more.items() if work is not without]
        self._set("memory_limit", f"{self._bytes + sum(needed)}B" if needed else self._former)
        self._set("username", self._name if needed else self._former_name)

    def is_of(self, cursor: duckdb.DuckDBPyConnection) -> bool:
        """Whether this is the limit of a cursor's DuckDB."""
        return _setting(cursor, "username") == self._name

    def _set(self, name: str, value: str) -> None:
        self._cursor.execute(f"SET GLOBAL {name} = $value", {"value": value})


def _setting(cursor: duckdb.DuckDBPyConnection, name: str) -> str:
    """Return a setting of a cursor's DuckDB, as that says it."""
    [(value,)] = cursor.execute("SELECT current_setting($name)", {"name": name}).fetchall()
    return str(value)


_LOCK = threading.RLock()
"""Held while a limit is looked at and set; reentrant, for what undoes interrupted work takes it again."""

_RAISED: list[_RaisedLimit] = []
"""The limits that are raised."""

lock_at_fork(lambda: _LOCK)
