"""DELETE by sets: edges, and vertices with what is said of them."""

from __future__ import annotations

from collections.abc import Mapping

from graphdb.common.values.types import Base
from graphdb.grammar import syntax as ast
from graphdb.sql.value import SqlValue
from graphdb.storage.updates.apply import EDGE_KEY, TRIPLE_KEY, edges_of, facts, incident, properties_of
from graphdb.writing.items import RowByRow
from graphdb.writing.materialized import Materialized, of_elements
from graphdb.writing.stages import Stage, used_after
from graphdb.writing.work import Work, union_all


class Delete:
    """One DELETE clause over rows."""

    def __init__(self, work: Work, stage: Stage, rows: Materialized) -> None:
        assert isinstance(stage.write, ast.DeleteClause)
        self._work = work
        self._clause = stage.write
        self._rows = rows

    @staticmethod
    def check(stage: Stage, values: Mapping[str, SqlValue]) -> None:
        """Raise :class:`RowByRow` where the types say so, and where later clauses look at what is no more."""
        assert isinstance(stage.write, ast.DeleteClause)
        for node in stage.write.values:
            assert isinstance(node, ast.Variable)
            if values[node.name].type.base not in (Base.NODE, Base.EDGE, Base.NULL):
                raise RowByRow(f"what is deleted is {values[node.name].type}")
        stars = any(isinstance(part, ast.ReturnClause) and part.star for part in stage.later)
        used = set(values) if stars else used_after(stage.later)
        for name in used & values.keys():
            if of_elements(values[name].type):
                raise RowByRow("later clauses name what is deleted")

    def refuse(self) -> None:
        """No rows say that they go one by one."""

    def run(self) -> Materialized:
        """Delete everything; return the rows."""
        work, make, source = self._work, self._work.tables.make, self._rows.source
        values = [self._rows.values[node.name] for node in self._clause.values if isinstance(node, ast.Variable)]
        nodes = [f"SELECT {v.sql} AS vertex FROM {source} b" for v in values if v.type.base is Base.NODE]
        edges = [
            f'SELECT ({v.sql}).label AS label, ({v.sql})."start" AS subject, ({v.sql})."end" AS object,'
            f" ({v.sql}).ordinal AS ordinal FROM {source} b WHERE {v.sql} IS NOT NULL"
            for v in values
            if v.type.base is Base.EDGE
        ]
        type, _ = work.hidden
        gone = None
        if nodes:
            gone = make(f"SELECT DISTINCT vertex FROM ({union_all(nodes)}) WHERE vertex IS NOT NULL")
            work.changes.vertices_deleted += work.tables.count(gone)
            if self._clause.detach:
                edges.append(f"SELECT {EDGE_KEY} FROM {edges_of(make(f'FROM {incident(gone, type)}'))}")
            else:
                work.left.append((gone, self._clause.span.start))
        removed = [f"SELECT {TRIPLE_KEY} FROM {facts(gone, type)}"] if gone is not None else []
        touched = left = properties = None
        if edges:
            lost = make(f"SELECT DISTINCT {EDGE_KEY} FROM ({union_all(edges)})")
            work.changes.edges_deleted += work.tables.count(lost)
            touched = make(f"SELECT DISTINCT {TRIPLE_KEY} FROM {lost}")
            left = make(f"FROM {edges_of(touched)} ANTI JOIN {lost} USING ({EDGE_KEY})")
            properties = make(f"FROM {properties_of(touched)} ANTI JOIN {lost} USING ({EDGE_KEY})")
            removed.append(f"SELECT {TRIPLE_KEY} FROM {touched} ANTI JOIN {left} USING ({TRIPLE_KEY})")
        if removed:
            work.update.apply(make(union_all(removed)), None, touched, left, properties)
        work.flushed()
        return self._rows
