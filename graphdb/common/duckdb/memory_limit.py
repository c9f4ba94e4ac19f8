"""More memory for DuckDB while a piece of work needs it."""

from __future__ import annotations

from types import TracebackType

from graphdb.common.config import memory_bytes
from graphdb.common.duckdb.temporary import Owner


class MoreMemory:
    """Lets DuckDB have some bytes more than its limit until a piece of work is done, however that ends.

    A class of its own, not a generator: where an interrupt comes before it is undone, it is undone before the next
    statement.  The limit is that of the whole database, so another cursor sets it, which no stop of the work interrupts
    and no aborted transaction refuses.
    """

    __slots__ = ("_former", "_more", "_owner")

    def __init__(self, owner: Owner, more: int) -> None:
        self._owner, self._more = owner, more
        self._former = ""

    def __enter__(self) -> None:
        [(limit,)] = self._owner.raw.execute("SELECT current_setting('memory_limit')").fetchall()
        # DuckDB says its limit in tenths of a unit, cut off: by half of one more it says the same the next time.
        number, unit = limit.split()
        self._former = f"{float(number) + 0.05:.2f} {unit}"
        self._owner.transactions.leftovers.append(self._back)
        self._set(f"{memory_bytes(limit) + self._more}B")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._back()
        self._owner.transactions.leftovers.remove(self._back)

    def _back(self) -> None:
        self._set(self._former)

    def _set(self, limit: str) -> None:
        with self._owner.raw.cursor() as cursor:
            cursor.execute(f"SET memory_limit = '{limit}'")
