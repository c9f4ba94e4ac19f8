"""The result of a statement that writes row by row: Python values that are there already."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from graphdb.common import arrow
from graphdb.results.display import array_of, shown
from graphdb.results.python_columns import column_of
from graphdb.results.result import Home, Result


class ValuesResult(Result):
    """Rows of Python values, which become columns of one type when they are asked for."""

    def __init__(
        self,
        home: Home,
        columns: list[str],
        values: list[list[Any]],
        count: int,
        *,
        elapsed: float,
        message: str | None,
    ) -> None:
        super().__init__(home, None, elapsed=elapsed, message=message)
        self._names = tuple(columns)
        self._values = values
        self._count = count

    def __len__(self) -> int:
        return self._count if self.columns else 0

    def _rows(self, *, whole: bool) -> Iterator[tuple[Any, ...]]:
        return iter(zip(*self._values, strict=True))

    def presented(self) -> arrow.Table:
        """Return the rows as SQL sees them: columns of several types, but of numbers, hold texts."""
        if self._presented is None:
            names = [name if self.columns.count(name) == 1 else f"{name}_{i}" for i, name in enumerate(self.columns)]
            arrays = [array_of([shown(value) for value in column]) for column in self._values]
            self._presented = arrow.table(dict(zip(names, arrays, strict=True)))
        return self._presented

    def _without_elements(self) -> arrow.Table:
        columns = [arrow.ChunkedArray([column_of(column)]) for column in self._values]
        return arrow.Table(columns, self.columns, self._count if self.columns else 0)

    def into(self, name: str, *, replace: bool = False) -> int:
        """Keep the rows as a table of the database, and return their number."""
        return self._home.store(self.presented(), name, replace)

    def _first(self, limit: int) -> Iterable[tuple[Any, ...]] | None:
        return list(self)[:limit] if self.columns else None
