"""DuckDB's own progress bar, which is shown nowhere: ours says what is done."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb


def hide(connection: duckdb.DuckDBPyConnection) -> None:
    """Have DuckDB show no bar, in notebooks neither."""
    import duckdb

    try:
        connection.execute("SET enable_progress_bar = false")
    except duckdb.InvalidInputException:
        # In a notebook without ipywidgets the bar is off, and none of its settings can be changed.
        ((shown,),) = connection.execute("SELECT current_setting('enable_progress_bar')").fetchall()
        if shown:
            raise
