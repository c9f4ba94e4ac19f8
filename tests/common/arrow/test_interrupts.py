"""An interrupt at any line while rows come from DuckDB leaves no result open, which would refuse every later statement."""

from __future__ import annotations

import sys
from typing import Any

import duckdb

from graphdb.common.duckdb.fetch import batches, fetched, rows_of, small_rows

_FILES = ("common/duckdb/fetch.py", "common/arrow/imported.py", "common/arrow/tables.py")


def _interrupted(run: Any, at: int) -> bool:
    """Run with an interrupt at the given line of those files; return whether it came to that."""
    left = at

    def line(frame: Any, event: str, argument: object) -> Any:
        nonlocal left
        if event == "line":
            left -= 1
            if left == -1:
                raise KeyboardInterrupt
        return line

    def called(frame: Any, event: str, argument: object) -> Any:  # what comes within a finalizer, Python drops
        code = frame.f_code
        return line if code.co_filename.endswith(_FILES) and code.co_name != "_given_back" else None

    sys.settrace(called)
    try:
        run()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False


def test_an_interrupt_leaves_no_result_open() -> None:
    rows = "SELECT i, 'text' || i AS t FROM range(5000) r (i)"
    with duckdb.connect(config={"threads": 1}) as raw:
        runs = (
            lambda: rows_of(raw, rows),
            lambda: fetched(raw.sql(rows)),
            lambda: small_rows(raw, rows, {}, 1 << 10),
            lambda: list(batches(raw.sql(rows), 1 << 11)),
        )
        for run in runs:
            run()  # once without: what is cached is cached
            at = 0
            while _interrupted(run, at):
                raw.execute("BEGIN")
                raw.rollback()
                at += 1
            assert at > 10
