"""What the answer of a continuous query is after a batch, written to its tables, and what batches left of changes."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from graphdb.live.aggregates.groups import TABLES, Groups
from graphdb.live.answers import ADDED, FORMER, FRESH, NOTHING, REMOVED, Answer, Written
from graphdb.live.rows.first_rows import FirstRows
from graphdb.live.rows.whole import WholeAnswers
from graphdb.live.standing import Standing
from graphdb.storage.file.prepared_sql import execute

if TYPE_CHECKING:
    import duckdb

_EXCESS = 10
"""Changes are dropped once there are more than their budget by this part of it."""
_AGED = 60.0
"""Seconds between two looks for changes that are too old."""


class AnswerWriter:
    """Writes the answers of continuous queries, within the transaction that is open."""

    def __init__(self, whole: WholeAnswers) -> None:
        self._whole = whole

    def make(self, raw: duckdb.DuckDBPyConnection, each: Standing) -> None:
        """Make a table of the whole answer, and what is stored to follow it."""
        begun = time.perf_counter()
        self._whole.make(raw, each)
        self._note(raw, each, begun)

    def write(
        self, raw: duckdb.DuckDBPyConnection, each: Standing, answer: Answer, batch: int, why: str | None
    ) -> tuple[str | None, Written]:
        """Write what the tables of rows added and removed have, or the whole answer where ``why`` says so.

        Returns why the whole answer was written, or None; and what is written.
        """
        found = True
        if why is None:
            if each.accumulators is not None:
                Groups(raw, each.definition, each.accumulators).follow(partial(self._whole.aggregate, raw, each))
            asked = each.accumulators is None and any(branch.way.asked_anew for branch in each.branches)
            answer.net(likely=asked)  # what is asked for anew is asked for with what it was before
            if each.window is not None:
                found = FirstRows(raw, answer, each).follow(partial(self._whole.first, raw, each))
            if found and answer.hides():
                why = "its rows have other types by now, among which those of before are not found"
        if why is not None:
            begun = time.perf_counter()
            self._whole.anew(raw, each)
            answer.compare()
            self._note(raw, each, begun)
        written = answer.write(batch, whole=why is not None) if found else NOTHING
        for branch in each.branches:
            branch.at_once = None  # the tables may have other types
        self.drop(raw, ADDED, REMOVED, FRESH, FORMER, *(TABLES if each.grouping is not None else ()))
        return why, written

    @staticmethod
    def lacks(raw: duckdb.DuckDBPyConnection, each: Standing) -> str | None:
        """Return what of a query is to be stored, and is not; None where all is."""
        if each.accumulators is not None and not each.grouped:
            each.grouped = Groups(raw, each.definition, each.accumulators).are_there()
            if not each.grouped:
                return "its groups are not stored yet"
        if each.window is not None and not FirstRows(raw, Answer(raw, each.definition), each).are_there():
            return "its first rows are not stored yet"
        return None

    @staticmethod
    def _note(raw: duckdb.DuckDBPyConnection, each: Standing, begun: float) -> None:
        """Note what an answer that aggregates took anew."""
        if each.accumulators is not None:
            seconds = time.perf_counter() - begun
            each.pace.compared(seconds, Groups(raw, each.definition, each.accumulators).matches())

    def prune(self, answer: Answer, each: Standing, rows: int) -> None:
        """Note that so many rows of changes came, and drop old ones as the query's options have it."""
        own, now = each.definition, time.monotonic()
        each.stored_rows = answer.rows() if each.stored_rows is None else each.stored_rows + rows
        due = each.stored_rows > own.changes + own.changes // _EXCESS
        if own.retention is not None and now - each.looked > _AGED:
            each.looked, due = now, True
        if due:
            answer.prune()
            each.stored_rows = answer.rows()

    @staticmethod
    def drop(raw: duckdb.DuckDBPyConnection, *tables: str) -> None:
        """Drop what a batch made for a query."""
        for table in tables:
            execute(raw, f"DROP TABLE IF EXISTS {table}")
