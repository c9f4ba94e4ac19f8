"""The rows of a statement between two clauses, and the temporary tables that it makes on its way."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from graphdb.common import arrow
from graphdb.common.duckdb.connection import Connection
from graphdb.common.values.types import INTEGER, Base, Type
from graphdb.relational.projection.relation import ORDER, Relation, Source
from graphdb.sql.value import SqlValue, column


@dataclass(frozen=True, slots=True)
class Materialized:
    """Rows that are there."""

    source: Source
    """What stands after FROM; its column ``at`` numbers the rows from 0."""
    count: int
    values: Mapping[str, SqlValue] = field(default_factory=dict)
    """The SQL of each name, over the alias ``b``: those of the user's variables, and ``#0 …`` of computed values."""

    @property
    def relation(self) -> Relation:
        """The rows as those that later clauses start from, in their order."""
        named = {name: value for name, value in self.values.items() if not name.startswith("#")}
        return Relation(self.source, {**named, ORDER: column("at", INTEGER)})

    def where(self, condition: str) -> Materialized:
        """Return the rows that fulfil a condition, which is SQL over the alias ``b``."""
        return replace(self, source=Source.made(f"(SELECT b.* FROM {self.source} b WHERE {condition})", self.source))

    def without(self, names: Collection[str]) -> Materialized:
        """Return the rows without some names."""
        return Materialized(self.source, self.count, {n: value for n, value in self.values.items() if n not in names})


class Tables:
    """Temporary tables of one statement."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._made: list[str] = []

    def name(self) -> str:
        """Return the name of a temporary table that the caller is about to make."""
        name = self._connection.temporary()
        if not self._made:
            self._connection.transactions.leftovers.append(self.drop)
        self._made.append(name)
        return name

    def make(self, sql: str, parameters: Mapping[str, object] | None = None) -> str:
        """Make a table of some SQL; return what stands for it after FROM."""
        return self.rows(sql, parameters).sql

    def rows(self, sql: str, parameters: Mapping[str, object] | None = None) -> Source:
        """Make a table of some SQL; return its rows."""
        name = self.name()
        with self._connection.guard() as raw:
            self._connection.promised.make(sql)
            raw.execute(f"CREATE TEMP TABLE {name} AS {sql}", dict(parameters or {}))
        return Source.of_table(name)

    def of_arrow(self, arrays: Mapping[str, arrow.Array | arrow.ChunkedArray]) -> Source:
        """Make a table of columns; return its rows."""
        view = self._connection.temporary()
        with self._connection.view(view, arrow.table(dict(arrays))):
            return self.rows(f"FROM {view}")

    def arrow(self, sql: str) -> arrow.Table:
        """Return the rows of some SQL."""
        return self._connection.arrow(sql)

    def number(self, sql: str) -> int:
        """Return the one number that some SQL yields."""
        ((found,),) = self._connection.rows(sql)
        return int(found)

    def count(self, relation: Source | str) -> int:
        """Return how many rows a relation has."""
        return self.number(f"SELECT count(*) FROM {relation}")

    def drop(self) -> None:
        """Drop all of them."""
        import duckdb

        for name in self._made:
            with suppress(duckdb.Error):  # a transaction that was aborted takes them away itself
                self._connection.raw.execute(f"DROP TABLE IF EXISTS temp.{name}")
        self._made.clear()
        with suppress(ValueError):  # there were none, or they are dropped because an interrupt left them
            self._connection.transactions.leftovers.remove(self.drop)


def of_elements(type: Type) -> bool:
    """Whether values of a type are vertices, edges or paths, or have some in them."""
    if type.base is Base.LIST:
        return type.element is not None and of_elements(type.element)
    if type.base in (Base.MAP, Base.CHOICE):
        return any(of_elements(each) for _, each in type.fields)
    return type.base in (Base.NODE, Base.EDGE, Base.TERM, Base.PATH)
