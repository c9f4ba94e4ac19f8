"""Compiles expressions that SQL cannot express, or not exactly, to calls of Python, once for each distinct input.

Matching, joins, grouping and ordering stay in SQL.  Where an expression is of a kind that SQL lacks (a duration, a map
whose keys only the data knows, a list of several types), the smallest piece around it whose value SQL can hold again is
handed to the interpreter's own evaluator: DuckDB calls it with the piece's inputs, a chunk of rows at a time, which are
made distinct as Arrow arrays; only distinct inputs are ever evaluated.  So every function has one meaning, and what is
left to Python grows with the different values in the rows, not with the rows.  ``EXPLAIN`` names the pieces.

A value that SQL has no type for (:data:`~graphdb.common.values.types.ANY`) is a key in SQL: a BLOB whose order is
openCypher's order of all values, which ends in the bytes that distinguish equivalent values, as ``[1]`` and ``[1.0]``
(:mod:`graphdb.interpret.order_key`).  SQL orders, groups and counts by what is before these bytes; the values wait in a
dictionary by their keys.

An expression that fails does so as one that SQL computes: only where its value is needed (an effect, of which
:class:`~graphdb.sql.compiler.Compiler` takes care), and with the error that Python raised.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from graphdb.common.errors import NotSupportedError
from graphdb.common.values.types import ANY, AS_WRITTEN, BOOLEAN, EDGE, NODE, Base, Type
from graphdb.functions.table import VOLATILE
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import is_node, mapped, walk
from graphdb.pattern.free import SUBQUERIES
from graphdb.sql.compiler import Compiler
from graphdb.sql.computing import Computing, Input
from graphdb.sql.value import CAN_FAIL, SqlValue


def running(computing: Computing | None) -> AbstractContextManager[Callable[[bytes], object] | None]:
    """Begin a run of what a query has computed in Python, if it has anything."""
    return nullcontext() if computing is None else computing.run()


def compute(c: Compiler, node: ast.Expression, wanted: Type | None = None) -> SqlValue:
    """Return SQL that has Python compute an expression.

    Raises
    ------
    NotSupportedError
        It needs more than values, or there is nobody to compute it.
    """
    if c.computing is None:
        raise _refused(c, node)
    computing = c.computing()
    inputs = _Inputs(c)
    rewritten = inputs.rewritten(node, frozenset())
    type = computing.add(rewritten, inputs.found, node, wanted)
    if not all(isinstance(part, _NEVER_FAIL) for part in walk(rewritten) if is_node(part)):
        c.rows.note(CAN_FAIL)
    return SqlValue(computing.call(type, [found.sql for found in inputs.found]), type)


_NEVER_FAIL = (ast.Literal, ast.Parameter, ast.Variable, ast.ListLiteral, ast.MapLiteral, ast.Comparison, ast.IsNull)
"""Expressions that have a value whatever their operands are."""

_OF_ELEMENTS = frozenset("id elementid iri labels type predicate lang datatype length".split())
"""Functions of vertices, edges and paths with values that SQL finds."""

_REPRESENTED = {Base.BOOLEAN, Base.INTEGER, Base.DECIMAL, Base.FLOAT, Base.STRING, Base.DATE, Base.DATETIME, Base.TIME}
_REPRESENTED |= {Base.DURATION, Base.VALUE, Base.ANY, Base.NULL}
"""Types whose values are handed over as they are."""


class _Inputs:
    """Takes the inputs out of an expression: what SQL finds in the graph, and the variables of the row."""

    def __init__(self, c: Compiler) -> None:
        self._c = c
        self.found: list[Input] = []

    def rewritten(self, node: Any, local: frozenset[str]) -> Any:
        """Return an expression with variables ``#0 …`` in place of its inputs; ``local`` names are no inputs."""
        c = self._c
        if not is_node(node):
            return mapped(node, lambda part: self.rewritten(part, local))
        if isinstance(node, ast.Variable) and node.name in local:
            return node
        if not local and node in c.scope.known:
            return self._input(c.scope.known[node], node)
        match node:
            case ast.Variable():
                return self._input(c.native(node), node)
            case ast.Property(ast.Variable() as base) if self._element(base, local) is not None:
                return self._property(node, base)
            case ast.FunctionCall("properties" | "keys", (ast.Variable() as base,)):
                if (element := self._element(base, local)) is not None:
                    return ast.FunctionCall(node.name, (self._properties(element, node),), span=node.span)
            case ast.Subscript(ast.Variable() as base) | ast.MapProjection(ast.Variable() as base):
                if (element := self._element(base, local)) is not None:
                    rest = mapped(node, lambda part: part if part is base else self.rewritten(part, local))
                    there = self._properties(element, node) if _asks_all(node) else self._there(element, base)
                    return mapped(rest, lambda part: there if part is base else part)
            case ast.FunctionCall() if node.name.lower() in c.aggregate_names:
                return self._input(c.native(node), node)
            case ast.FunctionCall(_, (ast.Variable() | ast.Property(),)) if node.name.lower() in _OF_ELEMENTS:
                variable = node.arguments[0].base if isinstance(node.arguments[0], ast.Property) else node.arguments[0]
                if isinstance(variable, ast.Variable) and self._element(variable, local, every=True) is not None:
                    return self._input(c.native(node), node)
            case ast.FunctionCall() if node.name.lower() in VOLATILE:
                raise _refused(c, node)
            case ast.CountStar():
                return self._input(c.native(node), node)
            case ast.IriLiteral():
                raise _refused(c, node)
            case ast.LabelPredicate(ast.Variable() as base) if self._element(base, local) is not None:
                return self._input(c.native(node), node)
            case ast.ListComprehension() | ast.ListPredicate() | ast.Reduce():
                return self._local(node, local)
        if isinstance(node, SUBQUERIES):
            raise _refused(c, node)
        return mapped(node, lambda part: self.rewritten(part, local))

    def _local(self, node: ast.ListComprehension | ast.ListPredicate | ast.Reduce, local: frozenset[str]) -> object:
        inside = local | {node.variable.name}
        if isinstance(node, ast.Reduce):
            inside |= {node.accumulator.name}
        around = [node.source, *([node.start] if isinstance(node, ast.Reduce) else [])]
        return mapped(
            node, lambda part: self.rewritten(part, local if any(part is outer for outer in around) else inside)
        )

    def _element(self, variable: ast.Variable, local: frozenset[str], every: bool = False) -> SqlValue | None:
        """Return the vertex (or any element of the graph) that a variable is; None where it is a value."""
        if variable.name in local:
            return None
        found = self._c.scope.variables.get(variable.name)
        kinds = {Base.NODE, Base.EDGE, Base.PATH, Base.TERM} if every else {Base.NODE, Base.EDGE}
        return found if found is not None and found.type.base in kinds else None

    def _property(self, node: ast.Property, base: ast.Variable) -> ast.Variable:
        c = self._c
        element = c.scope.variables[base.name]
        if element.type == NODE:
            label = c.names.property(node.key.words, c.text)
            if label.kinds & AS_WRITTEN:
                read = "literals" if label.max_values > 1 else "literal"
                return self._take(Input(c.rows.as_written(element, label), ANY, read), node)
        return self._input(c.native(node), node)

    def _properties(self, element: SqlValue, node: ast.Expression) -> ast.Variable:
        rows = self._c.rows
        if element.type == NODE:
            return self._take(Input(rows.properties(element), ANY, "properties"), node)
        if element.type == EDGE:
            return self._take(Input(rows.edge_properties(element, self._c.names), ANY, "properties"), node)
        raise _refused(self._c, node)

    def _there(self, element: SqlValue, node: ast.Expression) -> ast.Variable:
        """Whether there is an element, of which nothing else is asked: true or null."""
        return self._take(Input(f"CASE WHEN {element.sql} IS NOT NULL THEN TRUE END", BOOLEAN), node)

    def _input(self, value: SqlValue, node: ast.Expression) -> ast.Variable:
        if value.many:
            assert value.type.element is not None
            if _is_represented(value.type.element):
                return self._take(Input(value.sql, value.type, "several"), node)
        elif _is_represented(value.type):
            return self._take(Input(value.sql, value.type), node)
        raise _refused(self._c, node)

    def _take(self, input: Input, node: ast.Expression) -> ast.Variable:
        if input not in self.found:
            self.found.append(input)
        return ast.Variable(f"#{self.found.index(input)}", node.span)


def _is_represented(type: Type) -> bool:
    if type.base is Base.LIST:
        return type.element is None or _is_represented(type.element)
    if type.base is Base.MAP:
        return all(_is_represented(field) for _, field in type.fields)
    return type.base in _REPRESENTED


def _asks_all(node: ast.Subscript | ast.MapProjection) -> bool:
    """Whether an expression asks an element for properties that its text does not name."""
    return isinstance(node, ast.Subscript) or None in node.items


def _refused(c: Compiler, node: object) -> NotSupportedError:
    span = getattr(node, "span", None)
    message = "this expression is not supported in SQL"
    return NotSupportedError(message, text=c.text, position=None if span is None else span.start)
