"""Parquet files, which a DuckDB of their own writes: nothing but the rows that it is given passes through it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphdb.common import arrow
from graphdb.common.duckdb.connection import quoted

if TYPE_CHECKING:
    import duckdb

_ROWS = 100_000
"""Rows of a group of rows in a file."""


def _text(path: Path | str) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def column_names(connection: duckdb.DuckDBPyConnection, path: str) -> list[str]:
    """Return the names of a file's columns as they are: DuckDB itself renames what differs in case only.

    Raises
    ------
    duckdb.Error
        The file cannot be read.
    """
    rows = connection.execute(f"SELECT name, num_children FROM parquet_schema({_text(path)})").fetchall()
    names, inside = [], 0
    for name, children in rows[1:]:  # the first is the table
        if not inside:
            names.append(name)
            inside = 1
        inside += (children or 0) - 1
    return names


class ParquetFile:
    """A Parquet file that is written table by table; they wait in memory, or in a folder if they are many.

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
        self._raw.execute(f"COPY waiting TO {_text(self.path)} (FORMAT parquet)")
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


def write(path: Path, batches: Callable[[], Iterator[arrow.Reader]], memory: int) -> None:
    """Write the rows of several readers, which have the same columns, to a file; one is open at a time.

    Raises
    ------
    Exception
        What the readers raise; ``duckdb.Error`` where the file cannot be written.
    """
    import duckdb

    readers = batches()
    first = next(readers)
    failures: list[BaseException] = []

    def pieces() -> Iterator[Sequence[arrow.Array]]:
        reader: arrow.Reader | None = first
        try:
            while reader is not None:
                with reader:
                    for batch in reader:
                        yield batch.columns
                reader = next(readers, None)
        except BaseException as error:  # DuckDB knows it as text alone
            failures.append(error)
            raise

    raw = _connected(path.parent, memory)
    names = [f"c{i}" for i in range(len(first.schema))]  # DuckDB renames what differs in case only
    fields = [field.with_name(name) for name, field in zip(names, first.schema, strict=True)]
    chosen = ", ".join(f"{name} AS {quoted(field.name)}" for name, field in zip(names, first.schema, strict=True))
    try:
        raw.register("rows", arrow.Reader(arrow.schema(fields), pieces()))
        raw.execute(
            f"COPY (SELECT {chosen} FROM rows) TO {_text(path)} "
            f"(FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {_ROWS})"
        )
    except duckdb.Error:
        if failures:
            raise failures[0] from None
        raise
    finally:
        first.close()
        raw.close()
