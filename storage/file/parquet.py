"""Parquet files: the names of their columns, and files of rows that are in memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphdb.common import arrow

if TYPE_CHECKING:
    import duckdb


def path_sql(path: Path | str) -> str:
    """Return the name of a file as a text of SQL."""
    return "'" + str(path).replace("'", "''") + "'"


def column_names(connection: duckdb.DuckDBPyConnection, path: str) -> list[str]:
    """Return the names of a file's columns as they are: DuckDB itself renames what differs in case only.

    Raises
    ------
    duckdb.Error
        The file cannot be read.
    """
    rows = connection.execute(f"SELECT name, num_children FROM parquet_schema({path_sql(path)})").fetchall()
    names, inside = [], 0
    for name, children in rows[1:]:  # the first is the table
        if not inside:
            names.append(name)
            inside = 1
        inside += (children or 0) - 1
    return names


class ParquetFile:
    """A Parquet file that is written table by table, by a DuckDB of its own, where the rows wait.

    Parameters
    ----------
    path
        The file; its folder is where rows wait.
    memory
        Bytes of memory for rows.
    """

    def __init__(self, path: Path, memory: int) -> None:
        self.path = path
        self._memory = memory
        self._raw: duckdb.DuckDBPyConnection | None = None

    def add(self, table: arrow.Table) -> None:
        """Take some rows; all have the columns of the first."""
        first = self._raw is None
        raw = self._raw = self._raw or _connected(self.path.parent, self._memory)
        raw.register("rows", table)
        raw.execute("CREATE TABLE waiting AS FROM rows" if first else "INSERT INTO waiting FROM rows")
        raw.unregister("rows")

    def close(self) -> bool:
        """Write the file, if there are rows; return whether there are any."""
        if self._raw is None:
            return False
        self._raw.execute(f"COPY waiting TO {path_sql(self.path)} (FORMAT parquet)")
        self._raw.close()
        return True

    def remove(self) -> None:
        """Drop what there is of it."""
        if self._raw is not None:
            self._raw.close()
        self.path.unlink(missing_ok=True)


def _connected(folder: Path, memory: int) -> duckdb.DuckDBPyConnection:
    import duckdb

    config: dict[str, Any] = {
        "temp_directory": str(folder / "parquet"),
        "memory_limit": f"{max(memory, 256 << 20)}B",
        "threads": 1,
        "python_enable_replacements": False,
    }
    raw = duckdb.connect(":memory:", config=config)
    raw.execute("SET enable_progress_bar = false")
    return raw
