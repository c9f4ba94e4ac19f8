"""Rows between the steps of a program, as a table that SQL sees: in memory where they are small, else of DuckDB's.

Small rows are most of those between clauses: to make a table of them, to drop it and to ask it which vertices the next
match starts from takes longer than the rest of their SQL.  In memory they are a view like the bindings of matches, with
columns of properties beside their vertices, and the vertices are there as arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal

import numpy as np

from graphdb.common import arrow
from graphdb.common.arrow import numbers
from graphdb.common.duckdb.connection import Connection
from graphdb.common.duckdb.fetch import small_rows
from graphdb.common.values.types import NODE
from graphdb.relational.program import Joined, Rows
from graphdb.relational.projection.arrays import Beside, with_columns
from graphdb.relational.snapshot import Snapshot
from graphdb.sql.from_clause import Rows as Joins
from graphdb.sql.parameters import Parameters
from graphdb.sql.value import column


@contextmanager
def materialized(
    snapshot: Snapshot, rows: Rows, most: int, seconds: float | None, made: arrow.Table | None = None
) -> Iterator[arrow.Table | None]:
    """Show rows to SQL under their name; yield them, or None where they take more than ``most`` bytes.

    They have a column ``rowid``, as rows of DuckDB's tables do.  ``made`` are the rows where no SQL has to be run.
    """
    connection = snapshot.connection
    found: Sequence[arrow.RecordBatch] | None
    if made is not None:
        found = [arrow.record_batch(batch, made.schema) for batch in made.batches()] if made.nbytes <= most else None
    else:
        with connection.guard(seconds) as raw:
            connection.promised.make(rows.sql)
            found = small_rows(raw, rows.sql, rows.parameters, most)
    if found is None:
        with _spilled(snapshot, rows, seconds):
            yield None
        return
    table = arrow.concat_tables(list(_pieces(snapshot, found, rows.beside)))
    with connection.view(rows.view, table, lasting=True):
        yield table


def _pieces(
    snapshot: Snapshot, batches: Sequence[arrow.RecordBatch], beside: Sequence[Beside]
) -> Iterator[arrow.Table]:
    """Yield rows as tables with their numbers and properties."""
    first = 0
    for batch in batches:
        table = with_columns(arrow.Table.of_batches([batch], batch.schema), beside, snapshot.properties, snapshot.graph)
        yield table.append_column("rowid", numbers(np.arange(first, first + len(batch))))
        first += len(batch)


@contextmanager
def joined_by_sql(
    snapshot: Snapshot, step: Joined, tables: Mapping[str, arrow.Table], seconds: float | None
) -> Iterator[None]:
    """Show rows that are not joined by arrays to SQL: as a view, or as a table where they are to have numbers."""
    connection = snapshot.connection
    sql = step.sql("l.*" if step.rows in tables else "l.*, l.rowid AS rowid")
    sql = _with_beside(snapshot, sql, step.beside)
    kind: Literal["TABLE", "VIEW"] = "TABLE" if step.numbered else "VIEW"
    with connection.temporary_table(step.view, kind):
        with connection.guard(seconds) as raw:
            connection.promised.make(sql)
            raw.execute(
                f"CREATE OR REPLACE TEMP {kind} {step.view} AS FROM ({_with_beside(snapshot, sql, step.beside)})"
            )
        yield


@contextmanager
def _spilled(snapshot: Snapshot, rows: Rows, seconds: float | None) -> Iterator[None]:
    """Show rows to SQL as a temporary table, which DuckDB may spill."""
    connection: Connection = snapshot.connection
    sql = _with_beside(snapshot, rows.sql, rows.beside)
    with connection.temporary_table(rows.view):
        with connection.guard(seconds) as raw:
            connection.promised.make(sql)
            raw.execute(f"CREATE OR REPLACE TEMP TABLE {rows.view} AS FROM ({sql})", dict(rows.parameters))
        yield


def _with_beside(snapshot: Snapshot, sql: str, beside: Sequence[Beside]) -> str:
    """Return SQL of rows with properties of their vertices in further columns."""
    if not beside:
        return sql
    properties, edges, type_label = snapshot.properties, snapshot.edges, snapshot.store.type_label
    joins = Joins(Parameters(), type_label, properties, edges)
    chosen = "".join(f", {_beside(joins, one)} AS {one.name}" for one in beside)
    return f"SELECT b.*{chosen} FROM ({sql}) b {joins.joins}"


def _beside(joins: Joins, one: Beside) -> str:
    """Return SQL of a property or label of the vertices in a column."""
    vertex = column(one.column, NODE)
    if one.described is not None:
        return joins.described(vertex, one.described.function, one.described.bits, one.described.aspect)
    return joins.has_label(vertex, one.classes) if one.label is None else joins.value(vertex, one.label).sql
