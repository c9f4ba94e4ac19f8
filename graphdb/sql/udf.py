"""Compiles expressions that SQL cannot express, or not exactly, to calls of Python, once for each distinct input.

Matching, joins, grouping and ordering stay in SQL.  Where an expression is of a kind that SQL lacks (a duration, a map
whose keys only the data knows, a list of several types), the smallest piece around it whose value SQL can hold again is
handed to the evaluator: DuckDB calls it with the piece's inputs, a chunk of rows at a time, which are
made distinct as Arrow arrays; only distinct inputs are ever evaluated.  So every function has one meaning, and what is
left to Python grows with the different values in the rows, not with the rows.  ``EXPLAIN`` names the pieces.

A value that SQL has no type for (:data:`~graphdb.common.values.types.ANY`) is a key in SQL: a BLOB whose order is
openCypher's order of all values, which ends in the bytes that distinguish equivalent values, as ``[1]`` and ``[1.0]``
(:mod:`graphdb.evaluate.columns.order_key`).  SQL orders, groups and counts by what is before these bytes; the values
wait in a dictionary by their keys.  Vertices, edges and paths are handed over by their ids.  An expression that asks
one of them for what SQL cannot look up, because only the data says which value is one, is computed for whole tables of
rows instead, between two statements of SQL (:class:`~graphdb.sql.computing.Beforehand`).

An expression that fails does so as one that SQL computes: only where its value is needed (an effect, of which
:class:`~graphdb.sql.compiler.Compiler` takes care), and with the error that Python raised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from graphdb.common import arrow
from graphdb.common.errors import NotSupportedError
from graphdb.common.stopping import checked
from graphdb.common.values.elements import Node
from graphdb.common.values.terms import Kind
from graphdb.common.values.types import (
    ANY,
    AS_WRITTEN,
    BOOLEAN,
    EDGE,
    EXACT_ONLY,
    MIXED,
    NODE,
    Base,
    Type,
    has_ids,
    has_terms,
)
from graphdb.functions.table import VOLATILE
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import is_node, mapped, walk
from graphdb.pattern.free import SUBQUERIES, Subquery, free_variables, outside_of
from graphdb.pattern.rename import renamed
from graphdb.sql.compiler import Compiler
from graphdb.sql.computing import Beforehand, Computing, Input
from graphdb.sql.value import NO_EFFECTS, RAISES, SqlValue, as_list, column
from graphdb.sql.value import VOLATILE as VOLATILE_EFFECT
from graphdb.storage.catalog import EdgeLabel


def running(
    computing: Computing | None, known: dict[bytes, Any] | None = None
) -> AbstractContextManager[Callable[[bytes], object] | None]:
    """Begin a run of what a query has computed in Python, if it has anything; see :meth:`Computing.run`."""
    return nullcontext() if computing is None else computing.run(known)


def compute(c: Compiler, node: ast.Expression, wanted: Type | None = None) -> SqlValue:
    """Return SQL that has Python compute an expression.

    Raises
    ------
    NotSupportedError
        It needs more than values, or there is nobody to compute it.
    """
    if c.computing is None:
        raise _refused(c, node)
    found = _Inputs(c)
    rewritten = found.rewritten(node, frozenset())
    if found.looks_up(rewritten):
        raise _refused(c, node) if c.of_items else Beforehand(node)
    return _call(c.computing(), found, rewritten, node, wanted)


def aggregate(c: Compiler, node: ast.FunctionCall, values: Sequence[SqlValue]) -> SqlValue:
    """Return SQL that has Python compute an aggregate of a list of values, and of its further arguments."""
    if c.computing is None:
        raise _refused(c, node)
    found = _Inputs(c)
    arguments = tuple(found.taken(value, node) for value in values)
    [argument, *_] = node.arguments
    if argument not in c.scope.known and found.looks_up(argument):
        raise Beforehand(argument)
    return _call(c.computing(), found, replace(node, arguments=arguments), node, None)


def _call(
    computing: Computing, found: _Inputs, rewritten: ast.Expression, node: ast.Expression, wanted: Type | None
) -> SqlValue:
    volatile = found.volatile
    type = computing.add(rewritten, found.inputs, node, wanted, volatile=volatile, mixed=found.mixed)
    sql = computing.call(type, [each.sql for each in found.inputs], volatile=volatile)
    effects = VOLATILE_EFFECT if volatile else NO_EFFECTS
    if wanted is not None or _can_fail(rewritten):  # a value of another type than is wanted is an error
        effects |= RAISES
    return SqlValue(sql, type, effects=effects)


@dataclass(frozen=True, slots=True)
class OverRows:
    """An expression that Python computes for the rows of a table."""

    inputs: list[Input]
    """The columns that it takes."""
    compute: Callable[[arrow.Table], arrow.Table]
    """Returns its values for rows with these columns, ``c0 …``: see :meth:`graphdb.sql.computing.Computing.over_rows`.
    """
    value: SqlValue
    """What it is where its columns are ``b.value`` and ``b.failed``."""


def computed_over_rows(c: Compiler, node: ast.Expression) -> OverRows:
    """Have Python compute an expression for tables of rows."""
    if c.computing is None:
        raise _refused(c, node)
    found = _Inputs(c)
    rewritten = found.rewritten(node, frozenset())
    computing = c.computing()
    type = computing.add(rewritten, found.inputs, node, None, volatile=found.volatile, mixed=found.mixed)
    value = column("value", type)
    if _can_fail(rewritten):
        failed = computing.fails(type, "b.failed")
        value = SqlValue(f"CASE WHEN b.failed IS NULL THEN b.value ELSE {failed} END", type, effects=RAISES)
    return OverRows(found.inputs, computing.over_rows(), value)


_NEVER_FAIL = (ast.Literal, ast.Parameter, ast.Variable, ast.ListLiteral, ast.MapLiteral, ast.Comparison, ast.IsNull)
"""Expressions that have a value whatever their operands are."""


def _can_fail(rewritten: ast.Expression) -> bool:
    return not all(isinstance(part, _NEVER_FAIL) for part in walk(rewritten) if is_node(part))


_OF_ELEMENTS = frozenset("id elementid iri labels graphs type predicate lang datatype length".split())
"""Functions of vertices, edges and paths with values that SQL finds."""
_OF_LITERALS = frozenset(("lang", "datatype"))
"""Functions of the literal behind a property."""

_REPRESENTED = {Base.BOOLEAN, Base.INTEGER, Base.DECIMAL, Base.FLOAT, Base.STRING, Base.DATE, Base.DATETIME, Base.TIME}
_REPRESENTED |= {
    Base.ZONED,
    Base.MOMENT,
    Base.EXACT,
    Base.DURATION,
    Base.VALUE,
    Base.ANY,
    Base.NULL,
    Base.NODE,
    Base.EDGE,
    Base.PATH,
    Base.TERM,
}
"""Types whose values are handed over as they are."""

_LOOK_UP = frozenset("properties keys labels iri lang datatype startnode endnode".split())
"""Functions that ask the graph for something of the vertices and edges that they are given."""


class _Inputs:
    """Takes the inputs out of an expression: what SQL finds in the graph, and the variables of the row."""

    def __init__(self, c: Compiler) -> None:
        self._c = c
        self.inputs: list[Input] = []
        self.volatile = False
        """Whether it yields another value each time."""
        self.mixed = False
        """Whether vertices, edges or paths are among what it is made of."""
        self.subqueries = False
        """Whether subqueries are in it, which it runs."""

    def looks_up(self, rewritten: ast.Expression) -> bool:
        """Whether the expression has to look into the graph."""
        if self.subqueries:
            return True
        if any(input.type.base is not Base.TERM and has_terms(input.type) for input in self.inputs):
            return True  # which of a list's items are literals, and their values
        types = {f"#{i}": input.type for i, input in enumerate(self.inputs) if input.read in ("value", "term")}

        def element(node: ast.Expression) -> bool:
            """Whether something may be a vertex or an edge."""
            return not isinstance(node, ast.Variable) or has_ids(types.get(node.name, MIXED))

        for part in walk(rewritten) if self.mixed else ():
            match part:
                case ast.Property() | ast.MapProjection() if element(part.base):
                    return True
                case ast.Subscript() if element(part.base):
                    of_list = isinstance(part.base, ast.Variable) and types.get(part.base.name, ANY).base is Base.LIST
                    if not of_list and not isinstance(getattr(part.index, "value", None), int):
                        return True
                case ast.LabelPredicate() if element(part.operand):
                    return True
                case ast.FunctionCall() if part.name.lower() in _LOOK_UP and any(map(element, part.arguments)):
                    return True
        return False

    def rewritten(self, node: Any, local: frozenset[str]) -> Any:
        """Return an expression with variables ``#0 …`` in place of its inputs; ``local`` names are no inputs."""
        c = self._c
        if not is_node(node):
            return mapped(node, lambda part: self.rewritten(part, local))
        if isinstance(node, ast.Variable) and node.name in local:
            return node
        if node in c.scope.known and local.isdisjoint(free_variables(node)):
            return self.taken(as_list(c.scope.known[node]), node)
        match node:
            case ast.Variable():
                return self.taken(c.native(node), node)
            case ast.Property(ast.Variable() as base) if self._element(base, local, terms=True) is not None:
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
                return self.taken(c.native(node), node)
            case ast.FunctionCall(_, (ast.Variable() as base,)) if node.name.lower() in _OF_ELEMENTS:
                if self._element(base, local, every=True) is not None:
                    return self.taken(c.native(node), node)
            case ast.FunctionCall(_, (ast.Property(ast.Variable() as base),)) if node.name.lower() in _OF_LITERALS:
                if self._element(base, local, every=True) is not None:
                    return self.taken(c.native(node), node)
            case ast.FunctionCall() if node.name.lower() in VOLATILE:
                self.volatile = True
            case ast.FunctionCall() if node.name.lower() == "iri":  # of a text it is a vertex
                self.mixed = True
            case ast.CountStar() | ast.IriLiteral():
                return self.taken(c.native(node), node)
            case ast.Parameter() if any(isinstance(part, Node) for part in _parts(c.argument(node))):
                self.mixed = True
            case ast.LabelPredicate(ast.Variable() as base) if self._element(base, local) is not None:
                return self.taken(c.native(node), node)
            case ast.ListComprehension() | ast.ListPredicate() | ast.Reduce():
                return self._local(node, local)
        if isinstance(node, SUBQUERIES):
            return self._subquery(node, local)
        return mapped(node, lambda part: self.rewritten(part, local))

    def _subquery(self, node: Subquery, local: frozenset[str]) -> Subquery:
        """Return a subquery that sees items of a list, with inputs in the place of the variables of the row."""
        if local.isdisjoint(free_variables(node)):
            raise _refused(self._c, node)  # it is a column of the rows
        known = [name for name in free_variables(node) - local if name in self._c.scope.variables]
        taken = {name: self.taken(self._c.native(ast.Variable(name, node.span)), node).name for name in known}
        self.subqueries = True
        return renamed(node, taken)

    def _local(self, node: ast.ListComprehension | ast.ListPredicate | ast.Reduce, local: frozenset[str]) -> object:
        inside = local | {node.variable.name}
        if isinstance(node, ast.Reduce):
            inside |= {node.accumulator.name}
        around = outside_of(node)
        return mapped(
            node, lambda part: self.rewritten(part, local if any(part is outer for outer in around) else inside)
        )

    def _element(
        self, variable: ast.Variable, local: frozenset[str], *, terms: bool = False, every: bool = False
    ) -> SqlValue | None:
        """Return the vertex or edge (or any element of the graph) that a variable is; None where it is a value."""
        if variable.name in local:
            return None
        found = self._c.scope.variables.get(variable.name)
        kinds = {Base.NODE, Base.EDGE, *([Base.TERM] if terms or every else []), *([Base.PATH] if every else [])}
        return found if found is not None and found.type.base in kinds else None

    def _property(self, node: ast.Property, base: ast.Variable) -> ast.Expression:
        c = self._c
        element = c.scope.variables[base.name]
        if element.type.base in (Base.NODE, Base.TERM):
            label = c.names.property(node.key.words, c.text)
            if label.kinds & AS_WRITTEN and label.kinds != 1 << Kind.ZONED and not _is_held(c, label):
                read = "literals" if label.max_values > 1 else "literal"
                return self._take(Input(c.rows.as_written(element, label), ANY, read), node)
            return self.taken(c.native(node), node)
        try:
            value = c.native(node)
        except NotSupportedError:  # SQL has not all of its values
            value = None
        if value is not None:
            return self.taken(value, node)
        edges = c.rows.edges
        name = ast.Literal(c.names.written(edges.iri(edges.key(node.key, c.names, c.text))), node.span)
        return ast.Subscript(self._properties(element, node), name, node.span)

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

    def taken(self, value: SqlValue, node: ast.Expression) -> ast.Variable:
        """Take a value as an input; return the variable in its place."""
        if value.many:
            assert value.type.element is not None
            if _is_represented(value.type.element):
                return self._take(Input(value.sql, value.type, "several"), node)
        elif value.type.base is Base.TERM:
            return self._take(Input(self._c.rows.term(value), value.type, "term"), node)
        elif _is_represented(value.type):
            return self._take(Input(value.sql, value.type), node)
        raise _refused(self._c, node)

    def _take(self, input: Input, node: ast.Expression) -> ast.Variable:
        if input not in self.inputs:
            self.inputs.append(input)
            self.mixed = self.mixed or has_ids(input.type)
        return ast.Variable(f"#{self.inputs.index(input)}", node.span)


def _is_held(c: Compiler, label: EdgeLabel) -> bool:
    """Whether a column has the values of a property as their texts say: of lists, durations and times of one form."""
    return (not label.kinds & 1 << Kind.ZONED or bool(label.kinds & EXACT_ONLY)) and c.rows.has_type(label)


def _is_represented(type: Type) -> bool:
    if type.base is Base.LIST:
        return type.element is None or _is_represented(type.element)
    if type.base in (Base.MAP, Base.CHOICE):
        return all(_is_represented(field) for _, field in type.fields)
    return type.base in _REPRESENTED


def _parts(value: object) -> Iterator[object]:
    """Yield a value, and those inside of lists and maps."""
    yield value
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    for item in checked(inside):
        yield from _parts(item)


def _asks_all(node: ast.Subscript | ast.MapProjection) -> bool:
    """Whether an expression asks an element for properties that its text does not name."""
    return isinstance(node, ast.Subscript) or None in node.items


def _refused(c: Compiler, node: object) -> NotSupportedError:
    span = getattr(node, "span", None)
    message = "this expression is not supported in SQL"
    return NotSupportedError(message, text=c.text, position=None if span is None else span.start)
