"""Compression of long texts: a load chooses DuckDB's method.

For texts DuckDB chooses DICT_FSST where it expects that to be the smallest.  Of texts of ten thousand bytes that packs
20 to 50 MB a second, zstd four times as many, into as few bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

LONG = 1 << 12
"""Bytes of a text, in the mean, from which on DuckDB considers zstd."""

_SETTING = "disabled_compression_methods"


@contextmanager
def compressing(connection: duckdb.DuckDBPyConnection) -> Iterator[Callable[[], None]]:
    """While something is written: what is yielded is called where its texts are long.

    Few rows are compressed at the next checkpoint only, so there is one in the end, unless a transaction of somebody
    else is in the way.  Whoever has chosen what is not to be used is left alone.
    """
    import duckdb

    chosen = False

    def long() -> None:
        nonlocal chosen
        [(before,)] = connection.execute("SELECT current_setting($name)", {"name": _SETTING}).fetchall()
        if not before:
            connection.execute(f"SET {_SETTING} = 'dict_fsst'")
            chosen = True

    try:
        yield long
        if chosen:
            with suppress(duckdb.Error):
                connection.execute("CHECKPOINT")
    finally:
        if chosen:
            connection.execute(f"RESET {_SETTING}")
