"""Rows of a few matches that all come, or all go, written to the tables of a continuous query by one statement.

Its bindings are parameters: to show them to SQL as a table, and to make tables of their rows, took most of the time of
a batch of one edge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from graphdb.common import arrow
from graphdb.common.duckdb.identifiers import quoted
from graphdb.live.answers import Answer, Columns, deletion, differ
from graphdb.relational.projection.presentation import presented
from graphdb.relational.projection.relation import BINDINGS
from graphdb.storage.file.prepared_sql import execute

if TYPE_CHECKING:
    from graphdb.common.duckdb.connection import Connection
    from graphdb.relational.query import Prepared

MOST = 1000
"""Matches whose bindings are parameters."""
_TYPES = {
    "b": "BOOLEAN", "c": "TINYINT", "C": "UTINYINT", "s": "SMALLINT", "S": "USMALLINT", "i": "INTEGER",
    "I": "UINTEGER", "l": "BIGINT", "L": "UBIGINT", "f": "FLOAT", "g": "DOUBLE", "u": "VARCHAR", "U": "VARCHAR",
}  # fmt: skip
"""By Arrow's formats, types whose values a parameter has as a column has them."""
_ROWS = "_graphdb_rows"


class AtOnce(NamedTuple):
    """The statements of one query, over what was prepared of it.

    Attributes
    ----------
    prepared
        What makes rows of matches: the tables have its types.
    schema
        The columns of its bindings.
    come, goes
        The statement for rows that come, and the one for rows that go; "" where SQL has to read a table.
    """

    prepared: Prepared
    schema: arrow.Schema
    come: str
    goes: str

    @classmethod
    def of(cls, connection: Connection, answer: Answer, prepared: Prepared, bindings: arrow.Table) -> AtOnce:
        """Return them for bindings with these columns."""
        projection, own = prepared.projection, answer.definition
        types = [_type_of(field.type) for field in bindings.schema.fields]
        shown = presented(f"({projection.sql})", projection.columns, ordered=False)
        if None in types or "rowid" in shown:
            return cls(prepared, bindings.schema, "", "")
        columns = ", ".join(
            f"unnest(CAST($bindings_{i} AS {type}[])) AS {quoted(field.name)}"
            for i, (type, field) in enumerate(zip(types, bindings.schema.fields, strict=True))
        )
        rows = f"WITH {BINDINGS} AS (SELECT {columns}), {_ROWS} AS MATERIALIZED ({shown})"
        connection.promised.make(shown)
        made = connection.raw.sql(
            f"{rows} FROM {_ROWS} LIMIT 0", params=dict(projection.parameters) | parameters(bindings)
        )
        found: Columns = list(zip(made.columns, made.types, strict=True))
        tables = [answer.columns(own.log)[2:], *([answer.columns(own.answer)] if own.stored else [])]
        if any([name for name, _ in table] != made.columns or differ(table, found) for table in tables):
            return cls(prepared, bindings.schema, "", "")
        names = ", ".join(quoted(name) for name, _ in found)
        log = f"INSERT INTO {own.log} SELECT CAST($batch AS BIGINT), CAST($change AS TINYINT), {names} FROM {_ROWS}"
        insertion = f"INSERT INTO {own.answer} SELECT {names} FROM {_ROWS}"
        changes = insertion, deletion(own.answer, found, f"FROM {_ROWS}")
        both = (f"{rows}{f', _graphdb_answer AS ({change})' * own.stored} {log}" for change in changes)
        return cls(prepared, bindings.schema, *both)

    def write(self, connection: Connection, bindings: arrow.Table, batch: int, *, come: bool) -> int:
        """Write the rows of some bindings; return how many they are."""
        sql = self.come if come else self.goes
        connection.promised.make(sql)
        given = {**self.prepared.projection.parameters, **parameters(bindings), "batch": batch, "change": 2 * come - 1}
        return int(execute(connection.raw, sql, given).fetchall()[0][0])


def parameters(bindings: arrow.Table) -> dict[str, Any]:
    """Return bindings as parameters."""
    return {f"bindings_{i}": arrow.pylist(column) for i, column in enumerate(bindings.columns)}


def _type_of(type: arrow.DataType) -> str | None:
    """Return the type of SQL's whose values are passed as they are; None for others."""
    plain = not type.extension and type.values is None
    return _TYPES.get(type.format) if plain else None
