"""The rows that a batch changes of several branches, added up: what each makes is in tables of the same names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphdb.live.aggregates.groups import MOVED, merge_moved
from graphdb.live.answers import ADDED, REMOVED, Answer

if TYPE_CHECKING:
    import duckdb

    from graphdb.live.standing import Standing

_ALL = "_all"
"""What the names of the tables of all branches end with."""


class Gathered:
    """The tables of one continuous query, in the transaction that is open on ``raw``."""

    def __init__(self, raw: duckdb.DuckDBPyConnection, each: Standing) -> None:
        self._raw, self._each = raw, each
        self._tables = (ADDED, REMOVED) if each.accumulators is None else (MOVED,)
        self._several = len(each.branches) > 1
        self.some = False
        """Whether there are tables."""

    def add(self, *, some: bool) -> None:
        """Add the rows of one branch, where there are ``some``."""
        for table in self._tables if some and self._several else ():
            if self.some:
                Answer(self._raw, self._each.definition).append(table, table + _ALL)
            else:
                self._copy(table, table + _ALL)
        self.some = self.some or some

    def finish(self) -> None:
        """Have the tables be those of all branches."""
        if not (self.some and self._several):
            return
        for table in self._tables:
            self._copy(table + _ALL, table)
            self._raw.execute(f"DROP TABLE {table}{_ALL}")
        if MOVED in self._tables:
            merge_moved(self._raw)

    def _copy(self, table: str, to: str) -> None:
        self._raw.execute(f"CREATE OR REPLACE TEMP TABLE {to[5:]} AS FROM {table}")
