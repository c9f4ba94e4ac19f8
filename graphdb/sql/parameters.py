"""The parameters of one SQL statement: the values of its literals and parameters, and long lists as columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from graphdb.common import arrow
from graphdb.common.duckdb.connection import Connection
from graphdb.common.values.types import BOOLEAN, DATE, FLOAT, INTEGER, STRING, Type

_PARAMETER = re.compile(r"\$(p\d+)\b")

_VIEWED = 1000
"""Items from which on a list is a view of its own: DuckDB takes the items of a parameter one by one."""

_ARRAYS = {
    BOOLEAN: arrow.BOOL,
    INTEGER: arrow.INT64,
    FLOAT: arrow.FLOAT64,
    STRING: arrow.STRING,
    DATE: arrow.DATE,
}


class Parameters:
    """The parameters of one SQL statement.

    Parameters
    ----------
    view
        Returns a name for a view; None where the statement sees no tables but those of the database.
    """

    def __init__(self, view: Callable[[], str] | None = None) -> None:
        self.values: dict[str, object] = {}
        self._lists: dict[tuple[int, str], tuple[object, str]] = {}
        self._view = view
        self._tables: dict[str, arrow.Table] = {}

    def add(self, value: object, sql_type: str | None = None) -> str:
        """Return SQL that stands for ``value``."""
        name = f"p{len(self.values)}"
        self.values[name] = value
        return f"CAST(${name} AS {sql_type})" if sql_type else f"${name}"

    def add_once(self, given: object, items: list[object], sql_type: str) -> str:
        """The same for the items of a list, which DuckDB takes one by one: however often the list is named."""
        key = (id(given), sql_type)
        if key not in self._lists:
            self._lists[key] = given, self.add(items, sql_type)  # an id is its own while the list is there
        return self._lists[key][1]

    def rows_of(self, items: Sequence[object], type: Type) -> str | None:
        """Return SQL of rows, one of each of the items of a long list, as a column: DuckDB takes long for parameters.

        None of a short list, of items that are not of a type or null, and where there are no views.
        """
        if self._view is None or len(items) < _VIEWED:
            return None
        key = (id(items), "")
        if key not in self._lists:
            try:
                column = arrow.array(items, _ARRAYS[type])
            except (arrow.ArrowTypeError, KeyError, OverflowError, UnicodeEncodeError):
                return None
            name = self._view()
            self._tables[name] = arrow.table({"item": column})
            self._lists[key] = items, f"SELECT item FROM {name}"
        return self._lists[key][1]

    @contextmanager
    def views(self, connection: Connection) -> Iterator[None]:
        """Show the lists that are columns meanwhile."""
        with ExitStack() as shown:
            for name, table in self._tables.items():
                shown.enter_context(connection.view(name, table))
            yield

    def used(self, sql: str) -> dict[str, object]:
        """Return the values that ``sql`` names: not every expression that was compiled ends in the statement."""
        return {name: self.values[name] for name in set(_PARAMETER.findall(sql))}
