"""The interface through which the compiler has Python compute the expressions that SQL cannot express."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from graphdb.common import arrow
from graphdb.common.errors import GraphDBError
from graphdb.common.values.types import Type
from graphdb.grammar import syntax as ast
from graphdb.pattern.paths.search import Differing, PathSearch
from graphdb.plan.executor import Control
from graphdb.procedures.registry import Call

ITEMS = 1 << 21
"""Items that the lists of a chunk's rows may have together, whatever the memory limit is.

DuckDB makes a list for each of 2,048 rows before it goes on; it neither counts the bytes nor stops meanwhile.  With
what a lambda makes of them, so many take some 200 MB, and half a second.
"""
_MOST = 1 << 25
"""Items that they may have at most: DuckDB makes them in ten seconds."""


def items_within(limit: int) -> int:
    """Return how many items the lists of a chunk's rows may have together, where DuckDB has a limit of memory."""
    return min(max(ITEMS, limit // 200), _MOST)


VARIANT = 16
"""Bytes at the end of a value's key that say which of the equivalent values it is."""


@dataclass(frozen=True, slots=True)
class Input:
    """A column that an expression takes, and how its values are read."""

    sql: str
    type: Type
    read: str = "value"
    """``value``; ``several`` values of a property; ``literal`` or ``literals``, as they are written; ``properties``;
    ``term``, a vertex or a literal as it is written.
    """


class Beforehand(GraphDBError):
    """An expression has to be a column of the rows before what is around it can be compiled.

    Python computes it for whole tables of rows, between two statements of SQL, because it looks into the graph.
    """

    def __init__(self, node: ast.Expression) -> None:
        super().__init__("this is computed before the rest is compiled")
        self.node = node


class Applying(Protocol):
    """Who makes rows of the rows of a table."""

    def tables(self, rows: arrow.Table, new_control: Callable[[], Control]) -> Iterator[arrow.Table]:
        """Yield what is made: the number ``g`` of the row that it is made of, and ``c0`` …, the columns in order."""

    def table(self) -> arrow.Table:
        """Return a table of these columns, without rows."""


class Computing(Protocol):
    """Who computes the expressions of one statement."""

    def add(
        self,
        node: ast.Expression,
        inputs: list[Input],
        source: ast.Expression,
        wanted: Type | None,
        *,
        volatile: bool = False,
        mixed: bool = False,
    ) -> Type:
        """Take an expression whose inputs are variables ``#0 …``; return the type of what it will yield.

        Parameters
        ----------
        source
            The expression as it was written.
        wanted
            The type that it must be of: a boolean (a condition), a list (whose items become rows), a duration (to add).
        volatile
            Whether it may yield another value for each row with the same inputs.
        mixed
            Whether vertices, edges and paths may be in its values.

        Raises
        ------
        NotSupportedError
            It needs more than its inputs.
        """

    def call(self, type: Type, columns: list[str], *, volatile: bool = False) -> str:
        """Return SQL that computes what was added last, of some columns."""

    def over_rows(self) -> Callable[[arrow.Table], arrow.Table]:
        """Return the function that computes what was added last for the rows of a table: it may look into the graph.

        It must not be called while SQL runs: nothing else can be asked of DuckDB then.  It returns the columns
        ``value`` and ``failed``, the number of an error where there is no value because of one.
        """

    def fails(self, type: Type, failed: str) -> str:
        """Return SQL, of a type, that ends the run with the error whose number a column has."""

    def fits(self, items: str, *, volatile: bool) -> str:
        """Return SQL that is true, and ends the run where the rows of a chunk have more items than fit in memory.

        ``items`` is how many a row has; ``volatile`` says that this does not differ between rows.
        """

    def constant(self, node: ast.Expression) -> object:
        """Return the value of an expression without variables.

        Raises
        ------
        GraphDBError
            Something is wrong with it.
        """

    def applied(
        self,
        function: PathSearch | Differing | Call,
        given: Mapping[str, Input],
        yields: Mapping[str, Type],
        used: Sequence[str] = (),
    ) -> Applying:
        """Return what makes rows of rows: the paths of a search, the row itself if its vertices differ, or a call's.

        Parameters
        ----------
        given
            What rows hold, by name: their columns are ``c0`` … in this order, beside their number ``g``.
        yields
            The types of what is wanted of each new row, by name.
        used
            The names of edges and paths among what is given whose edges a path may not take.

        Raises
        ------
        GraphDBError
            Something is wrong with the pattern.
        """

    def sources(self) -> list[str]:
        """Return the expressions as they were written."""

    def run(self, known: dict[bytes, Any] | None = None) -> AbstractContextManager[Callable[[bytes], object]]:
        """Begin a run; yield what returns the value behind a key, vertices by ids in it, during the run and after it.

        ``known`` has the values behind the keys of the rows that the query starts from, and gets those it computes.

        Raises
        ------
        GraphDBError
            An expression failed that some row needs.
        """
