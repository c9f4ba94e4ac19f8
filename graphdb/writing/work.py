"""What all writing clauses of a statement share, and the pieces that they write with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from graphdb.common.values.terms import RDF_TYPE, VERTEX
from graphdb.evaluate.context import Context
from graphdb.grammar import syntax as ast
from graphdb.relational.projection.relation import Relation, Source
from graphdb.sql.value import SqlValue
from graphdb.storage.updates.apply import Update
from graphdb.writing.changes import Changes
from graphdb.writing.items import RowByRow
from graphdb.writing.literals import Written
from graphdb.writing.materialized import Materialized, Tables
from graphdb.writing.naming import Naming

NO_TEXT = "CAST(NULL AS VARCHAR)"


@dataclass(slots=True)
class Work:
    """One statement's writing, within its transaction."""

    context: Context
    tables: Tables
    update: Update
    naming: Naming
    read: Callable[[ast.Query | ast.Composite, Relation], Materialized]
    """Runs a query that starts from rows which are there; its rows."""
    changes: Changes = field(default_factory=Changes)
    left: list[tuple[str, int]] = field(default_factory=list)
    """Tables of vertices (``vertex``) that were deleted without their edges, and where in the text."""

    @property
    def hidden(self) -> tuple[int, int]:
        """The label rdf:type, and the class that every created vertex has."""
        type, hidden = self.naming.ids(RDF_TYPE, VERTEX)
        return type, hidden

    def flushed(self) -> None:
        """What follows reads the graph as it is now."""
        if changes := self.update.take_changes():
            self.context.changed(changes, self.update.known)
        self.context.forget_names()
        self.context.view.forget()

    def literals(self, source: str) -> str:
        """Return the table of the literals (``value``) of a relation with ``lexical`` and ``datatype``."""
        into = self.tables.name()
        terms = f"(SELECT lexical, datatype, {NO_TEXT} AS language FROM {source} WHERE lexical IS NOT NULL)"
        self.update.literals_of(terms, into)
        return f"temp.{into}"

    def refuse_unwritten(self, source: Source, values: Sequence[tuple[SqlValue, Written]]) -> None:
        """Refuse rows of which some value has no literal here; nothing of the clause is written yet."""
        tests = [f"({v.sql} IS NOT NULL AND {w.lexical} IS NULL)" for v, w in values if not w.total]
        self.refuse_rows(source, tests, "SQL does not write such a value")

    def refuse_rows(self, source: Source, tests: Sequence[str], why: str) -> None:
        """Refuse rows that fulfil one of some tests."""
        if tests and self.context.connection.rows(f"SELECT 1 FROM {source} b WHERE {' OR '.join(tests)} LIMIT 1"):
            raise RowByRow(why)


def union_all(selects: Sequence[str]) -> str:
    """Return SQL for the rows of several SELECTs."""
    return " UNION ALL ".join(selects)


LITERAL = "l.lexical = v.lexical AND l.datatype IS NOT DISTINCT FROM v.datatype"
"""That a row ``l`` of numbered literals is the value of a row ``v``."""
