"""Semantic analysis: what is wrong with a query before anything runs, whichever way it runs.

Unknown and conflicting variables, misplaced aggregates, grouping, types: what follows from the text.  What only the
data decides has the type ``any``, and is checked when it runs.
"""

from __future__ import annotations

from graphdb.common.errors import ParseError
from graphdb.common.stopping import checked
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.names import Names
from graphdb.procedures.registry import Procedures
from graphdb.semantics.types import ANY, Scope, admits, common, static
from graphdb.semantics.updates import Updates

_BRINGING = (ast.CreateClause, ast.MergeClause, ast.SetClause)
"""Clauses that can bring labels into the graph."""


def check(query: ast.Query | ast.Composite, names: Names, procedures: Procedures, text: str) -> None:
    """Raise the first error of a query; see the error classes for what can be wrong."""
    Queries(names, procedures, text).statement(query)


class Queries(Updates):
    """Checks whole queries, clause by clause."""

    def statement(self, query: ast.Query | ast.Composite) -> None:
        """Check a statement."""
        self._brings_labels = isinstance(query, ast.Composite) and any(isinstance(p, _BRINGING) for p in walk(query))
        self.query(query, {})

    def query(self, query: ast.Query | ast.Composite, scope: Scope) -> None:
        """Check a query over the names in scope."""
        parts = query.parts if isinstance(query, ast.Composite) else (query.clauses,)
        columns = [self._part(part, dict(scope)) for part in parts]
        for part, own in zip(parts[1:], columns[1:], strict=True):
            if own != columns[0]:
                raise self.error(ParseError, "the parts of a UNION return columns of different names", part[-1])

    def _part(self, part: tuple[ast.ClauseNode, ...], scope: Scope) -> list[str]:
        for clause in checked(part, 8):
            match clause:
                case ast.MatchClause():
                    self.match(clause, scope)
                case ast.UnwindClause():
                    self.no_aggregate(clause.source)
                    found = self.type_of(clause.source, scope)
                    self.new(clause.variable, scope)
                    scope[clause.variable.name] = found.element or ANY if found.base == "list" else ANY
                case ast.WithClause():
                    self.projection(clause.returns, scope, clause)
                case ast.CallClause():
                    self._call(clause, scope)
                case ast.ProcedureClause():
                    self._procedure(clause, scope)
                case ast.ForeachClause():
                    self.no_aggregate(clause.source)
                    found = self.source(clause.source, scope)
                    self.new(clause.variable, scope)
                    self._part(clause.updates, {**scope, clause.variable.name: found})
                case ast.ReturnClause():
                    return self.projection(clause, scope, None)
                case ast.CreateClause():
                    for pattern in clause.patterns:
                        self.created(pattern, scope)
                case ast.MergeClause():
                    self.created(clause.pattern, scope, merged=True)
                    self.items((*clause.on_create, *clause.on_match), scope)
                case ast.SetClause():
                    self.items(clause.items, scope)
                case ast.RemoveClause():
                    self.removed(clause, scope)
                case ast.DeleteClause():
                    self.deleted(clause, scope)
        return []

    def _call(self, clause: ast.CallClause, scope: Scope) -> None:
        """Check the query of a CALL, and bring in its columns."""
        for variable in clause.imported or ():
            if variable.name not in scope:
                self.unknown(variable, scope)
        names = scope if clause.imported is None else [variable.name for variable in clause.imported]
        columns: list[Scope] = []
        for part in clause.query.parts:
            inner = {name: scope[name] for name in names}
            self._part(part, inner)
            columns.append(inner)
            if list(inner) != list(columns[0]):
                raise self.error(ParseError, "the parts of a UNION return columns of different names", part[-1])
        for name in columns[0]:
            self.new(ast.Variable(name, clause.query.parts[0][-1].span), scope)
            scope[name] = common([column[name] for column in columns])

    def _procedure(self, clause: ast.ProcedureClause, scope: Scope) -> None:
        """Check the call of a procedure, and bring in what it yields."""
        call = self.procedures.bound(clause, self.text)
        for field, node in zip(call.procedure.signature.parameters, call.arguments, strict=False):
            self.no_aggregate(node)
            found = self.type_of(node, scope)
            if not admits(field.type, found):
                raise call.unlike(field, str(found), node)
        for item, (_, field) in zip(clause.yields or (), call.yields, strict=True):
            self.new(item.variable, scope)
            scope[item.variable.name] = static(field.type)
