"""Expressions to SQL: openCypher's operators, null semantics and types over DuckDB's.

The compiler gives each expression a :class:`~graphdb.values.Type` and writes SQL that yields it: names, conditions and
calls here, what a kind of value has of its own in its room (:mod:`~graphdb.comparisons`, :mod:`~graphdb.numbers`,
:mod:`~graphdb.strings`, :mod:`~graphdb.lists` …).  A multi-valued property in a condition holds if any of its values
does; where one value is needed it must have just one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from graphdb import aggregates, comparisons, durations, functions, lists, maps, numbers, strings, times
from graphdb.computed import Computing, compute
from graphdb.constants import constant
from graphdb.errors import BindError, GraphDBError, NotSupportedError, ParameterError, TypeMismatchError, nearest
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.names import Names
from graphdb.rows import Rows
from graphdb.typed import Typed, as_list, member, some
from graphdb.values import BOOLEAN, NULL, RANDOM, VALUE, Base

LARGEST = 3000
"""Pieces of syntax that one SQL statement may be made of: DuckDB plans more for seconds, and is not to be interrupted.
"""


@dataclass(frozen=True, slots=True)
class Scope:
    """What names stand for while an expression is compiled."""

    variables: Mapping[str, Typed]
    """Pattern variables (and, in ORDER BY, result columns)."""
    known: Mapping[ast.Expression, Typed] = field(default_factory=dict)
    """Whole expressions that are columns already."""
    hidden: frozenset[str] = frozenset()
    """Pattern variables that can be named no more: DISTINCT or an aggregate stands before."""
    exists: Callable[[ast.PatternPredicate], Typed] | None = None
    """Compiles a pattern predicate; None where patterns may not stand."""
    aggregates: bool = False
    """Whether aggregates may stand here."""
    matches: str | None = None
    """The column that says how many matches a row stands for; None where each is one."""
    order: str | None = None
    """The column that says in which order the rows are; None where they have none."""


class Compiler:
    """Compiles the expressions of one statement; errors carry its ``text``.

    Everything that compiles, here and in the rooms of values, raises :class:`~graphdb.errors.NotSupportedError` where
    SQL cannot do it exactly (Python computes it then, or the query is interpreted), and
    :class:`~graphdb.errors.BindError`, :class:`~graphdb.errors.TypeMismatchError` or
    :class:`~graphdb.errors.ParameterError` for mistakes.
    """

    def __init__(
        self,
        text: str,
        names: Names,
        arguments: Mapping[str, object],
        rows: Rows,
        scope: Scope,
        computing: Callable[[], Computing] | None = None,
    ) -> None:
        self.computing = computing
        """Who computes what SQL cannot express; None where nobody does."""
        self.text = text
        self.names = names
        self.arguments = arguments
        self.rows = rows
        self.scope = scope
        self._lambdas = 0
        self._depth = 0
        self.of_items = False
        """Whether this is within a lambda, of a list's items."""

    # --- entry points

    def compile(self, node: ast.Expression) -> Typed:
        """Return the SQL of an expression whose value SQL holds, if need be as Python computes it."""
        found = self.anything(node)
        if found.type.base is Base.ANY:
            raise NotSupportedError("SQL does not hold this value", text=self.text, position=node.span.start)
        return found

    def anything(self, node: ast.Expression) -> Typed:
        """Return the SQL of any expression; a value that SQL does not hold as its key."""
        try:
            return self.native(node)
        except NotSupportedError:
            return compute(self, node)

    def native(self, node: ast.Expression) -> Typed:
        """Return the SQL of an expression that SQL itself computes."""
        found = self.scope.known.get(node)
        if found is not None:
            return as_list(found)
        method: Callable[[ast.Expression], Typed] | None = getattr(self, "_" + type(node).__name__.lower(), None)
        if method is not None:
            return method(node)
        of_values = _COMPILED.get(type(node))
        if of_values is None:
            raise NotSupportedError("this expression is not supported in SQL", text=self.text, position=node.span.start)
        return of_values(self, node)

    def column(self, node: ast.Expression) -> Typed:
        """Return the SQL of any expression as a column of rows, which may hold a list of several types as a tuple."""
        if isinstance(node, ast.Variable) and node.name in self.scope.variables and node not in self.scope.known:
            return self.scope.variables[node.name]
        if not isinstance(node, ast.ListLiteral) or node in self.scope.known:
            return self.anything(node)
        try:
            return lists.column(self, node)
        except NotSupportedError:
            return compute(self, node)

    @property
    def outermost(self) -> bool:
        """Whether this is of rows, not of the items of a list."""
        return not self._depth

    def within(self, scope: Scope, *, of_items: bool = False) -> Compiler:
        """Return the compiler of an expression inside the present one, where names stand for something else."""
        found = Compiler(self.text, self.names, self.arguments, self.rows, scope, self.computing)
        found._depth = self._depth + 1
        found.of_items = of_items or self.of_items
        return found

    def condition(self, node: ast.Expression) -> str:
        """Return the SQL of a condition."""
        try:
            value = self.compile(node)
        except NotSupportedError:
            value = compute(self, node, BOOLEAN)
        if value.type.base is Base.VALUE and not value.many:
            return member(value, Base.BOOLEAN)
        if value.many and value.type.element in (BOOLEAN, VALUE):
            return self.any_of(lambda v: Typed(member(v, Base.BOOLEAN), BOOLEAN), value).sql
        if value.type.base not in (Base.BOOLEAN, Base.NULL):
            raise self.mismatch(f"expected a condition, found {value.type}", node)
        return value.sql

    def kept(self, node: ast.Expression) -> str:
        """Return the SQL of a condition for WHERE, which asks it of whole rows only.

        DuckDB would test a condition on one joined table before the join, where one that can fail fails for nothing.
        What is volatile stays where it stands.
        """
        sql = self.condition(node)
        return f"CASE WHEN random() >= 0 THEN {sql} END" if "error(" in sql else sql

    def one(self, node: ast.Expression) -> Typed:
        """Compile to a single value: a multi-valued property must have just one there."""
        return self.single(self.compile(node), node)

    def one_of_any(self, node: ast.Expression) -> Typed:
        """Compile to a single value, one that SQL does not hold as its key."""
        return self.single(self.anything(node), node)

    def single(self, value: Typed, node: ast.Expression) -> Typed:
        """Return the one value of a multi-valued property; running it fails where there are several."""
        if not value.many:
            return value
        assert value.type.element is not None
        told = self.rows.parameters.add(
            f"'{self.source(node)}' has several values on some vertex where one is needed; "
            "match the property as an edge to get each of them"
        )
        return Typed(f"CASE WHEN len({value.sql}) > 1 THEN error({told}) ELSE ({value.sql})[1] END", value.type.element)

    def value_of(self, value: Typed) -> Typed:
        """Return a literal vertex as its value (NULL where it is a resource), other values as they are."""
        if value.type.base is not Base.TERM:
            return value
        return self.rows.literal(value.sql, value.type.element or VALUE)

    # --- leaves

    def _literal(self, node: ast.Literal) -> Typed:
        return self.constant(node.value, node)

    def _iriliteral(self, node: ast.IriLiteral) -> Typed:
        return self.rows.resource(node.iri)

    def _parameter(self, node: ast.Parameter) -> Typed:
        return self.constant(self.argument(node), node)

    def argument(self, node: ast.Parameter) -> object:
        """Return the value given for a parameter."""
        if node.name not in self.arguments:
            near = nearest(node.name, self.arguments)
            raise ParameterError(
                f"parameter ${node.name} has no value",
                text=self.text,
                position=node.span.start,
                hint=f"did you mean ${near[0]}?" if near else f"pass it: query(…, {node.name}=…)",
            )
        return self.arguments[node.name]

    def constant(self, value: object, node: ast.Expression) -> Typed:
        """Return SQL for a Python value."""
        try:
            return constant(value, self.rows)
        except GraphDBError as error:
            raise type(error)(error.message, text=self.text, position=node.span.start, hint=error.hint) from None

    def _variable(self, node: ast.Variable) -> Typed:
        found = self.scope.variables.get(node.name)
        if found is None and node.name in self.scope.hidden:
            raise BindError(
                f"'{node.name}' cannot be sorted by: after DISTINCT and aggregates only returned columns can",
                text=self.text,
                position=node.span.start,
                hint="return it, or sort by a column's alias",
            )
        if found is None:
            near = nearest(node.name, self.scope.variables)
            raise BindError(
                f"unknown variable '{node.name}'",
                text=self.text,
                position=node.span.start,
                hint=f"did you mean '{near[0]}'?" if near else None,
            )
        return as_list(found)

    def _property(self, node: ast.Property) -> Typed:
        base = self.compile(node.base)
        if base.type.base is Base.NULL:
            return base
        if base.type.base is Base.EDGE:
            return self.rows.edge_value(base.sql, self.rows.edges.key(node.key, self.names, self.text))
        if base.type.base is Base.MAP:
            return maps.entry(base, node.key.text)
        if base.type.base is Base.DURATION:
            return durations.part(self, base, node.key.text, node)
        if base.type.base in times.HAVE_PARTS:
            return times.part(base, node.key.text, node)
        if base.type.base not in (Base.NODE, Base.TERM):
            raise self.mismatch(f"{base.type} has no properties", node)
        return self.rows.value(base.sql, self.names.property(node.key.words, self.text))

    # --- conditions

    def _boolean(self, node: ast.Boolean) -> Typed:
        operands = [f"({self.condition(operand)})" for operand in node.operands]
        if node.operator != "XOR":
            return Typed(f"({f' {node.operator} '.join(operands)})", BOOLEAN)
        result = operands[0]
        for operand in operands[1:]:
            result = f"(({result}) <> ({operand}))"
        return Typed(result, BOOLEAN)

    def _unary(self, node: ast.Unary) -> Typed:
        if node.operator == "NOT":
            return Typed(f"(NOT ({self.condition(node.operand)}))", BOOLEAN)
        value = self.one(node.operand)
        if value.type.base is Base.DURATION:
            return durations.negative(self, value) if node.operator == "-" else value
        return numbers.signed(self, value, node)

    def _isnull(self, node: ast.IsNull) -> Typed:
        value = self.anything(node.operand)
        return Typed(f"({value.sql} IS {'NOT ' if node.negated else ''}NULL)", BOOLEAN)

    def _labelpredicate(self, node: ast.LabelPredicate) -> Typed:
        value = self.compile(node.operand)
        if value.type.base not in (Base.NODE, Base.TERM, Base.EDGE):
            raise self.mismatch(f"{value.type} has no labels", node)
        return Typed(self._labels(node.labels, value), BOOLEAN)

    def _labels(self, labels: ast.LabelExpression, element: Typed) -> str:
        """Return the SQL of whether a label expression holds for a vertex or an edge."""
        match labels:
            case ast.LabelAny():
                return "TRUE" if element.type.base is Base.EDGE else f"(len({self.rows.labels(element.sql).sql}) > 0)"
            case ast.LabelNot():
                return f"(NOT {self._labels(labels.operand, element)})"
            case ast.LabelAnd() | ast.LabelOr():
                word = " AND " if isinstance(labels, ast.LabelAnd) else " OR "
                return f"({word.join(self._labels(operand, element) for operand in labels.operands)})"
            case ast.LabelChain():
                return f"({' AND '.join(self._has_label(element, name) for name in self.names.chains(labels.words))})"

    def _has_label(self, element: Typed, name: Sequence[ast.Word]) -> str:
        if element.type.base is Base.EDGE:
            return f"({element.sql}).label = {int(self.names.edge_label(name, self.text).id)}"
        return self.rows.has_label(element.sql, self.names.under(self.names.vertex_label(name, self.text).id))

    def _patternpredicate(self, node: ast.PatternPredicate) -> Typed:
        if self.scope.exists is None:
            raise NotSupportedError(
                "pattern predicates outside WHERE are not supported yet", text=self.text, position=node.span.start
            )
        return self.scope.exists(node)

    def any_of(self, test: Callable[..., Typed], *values: Typed) -> Typed:
        """Apply a condition to values, of which the multi-valued ones need one member that satisfies it."""
        lifted: list[tuple[str, Typed]] = []
        singles: list[Typed] = []
        for value in values:
            if value.many:
                assert value.type.element is not None
                name = self.fresh()
                lifted.append((name, value))
                singles.append(Typed(name, value.type.element))
            else:
                singles.append(value)
        sql = test(*singles).sql
        for name, value in reversed(lifted):
            sql = some(value.sql, name, sql)
        return Typed(sql, BOOLEAN)

    def fresh(self) -> str:
        """Return a name for the item of a list that no expression around this one has."""
        self._lambdas += 1
        return f"x{self._depth}_{self._lambdas}"

    # --- arithmetic and functions

    def _binary(self, node: ast.Binary) -> Typed:
        left, right = self.one(node.left), self.one(node.right)
        bases = {left.type.base, right.type.base}
        if Base.NULL in bases:
            return Typed("NULL", NULL)
        if node.operator == "||" and bases != {Base.LIST}:
            return strings.concatenated(self, left, right, node)
        if node.operator in ("+", "||") and Base.LIST in bases:
            return lists.appended(self, left, right, node)
        if node.operator == "+" and Base.STRING in bases:
            return strings.joined(self, left, right, node)
        if bases & {Base.DATE, Base.DATETIME, Base.ZONED, Base.TIME, Base.DURATION}:
            return durations.arithmetic(self, node.operator, left, right, node)
        return numbers.arithmetic(self, left, right, node)

    def _countstar(self, node: ast.CountStar) -> Typed:
        self._aggregate_allowed("count(*)", node)
        return aggregates.number_of_matches(self)

    def _functioncall(self, node: ast.FunctionCall) -> Typed:
        name = node.name.lower()
        aggregate = aggregates.AGGREGATES.get(name)
        if aggregate is not None:
            self._aggregate_allowed(node.name, node)
            number = 2 if name.startswith("percentile") else 1
            functions.check_arguments(self, node, number, number)
            if any(isinstance(part, ast.FunctionCall) and part.name.lower() in RANDOM for part in walk(node)):
                raise NotSupportedError("what is aggregated cannot be random", text=self.text, position=node.span.start)
            return aggregate(self.within(replace(self.scope, aggregates=False)), node)
        if node.quantifier is not None:
            raise BindError(f"{node.name} takes no {node.quantifier}", text=self.text, position=node.span.start)
        function = functions.FUNCTIONS.get(name)
        if function is None:
            raise functions.unknown(self.text, node)
        functions.check_arguments(self, node, function.least, function.most)
        return function.compile(self, node)

    def _aggregate_allowed(self, name: str, node: ast.Expression) -> None:
        if not self.scope.aggregates:
            raise BindError(
                f"the aggregate {name} cannot stand here",
                text=self.text,
                position=node.span.start,
                hint="aggregates stand in RETURN, and not inside one another",
            )

    # --- errors

    @property
    def aggregate_names(self) -> Collection[str]:
        """The names of the aggregates."""
        return aggregates.AGGREGATES

    def source(self, node: ast.Expression) -> str:
        """The text of an expression as written."""
        return self.text[node.span.start : node.span.end]

    def mismatch(self, message: str, node: ast.Expression) -> TypeMismatchError:
        """Return the error for ``node``."""
        return TypeMismatchError(message, text=self.text, position=node.span.start)


_COMPILED = {**comparisons.COMPILED, **strings.COMPILED, **lists.COMPILED, **maps.COMPILED}
"""How the kinds of expressions compile that have a room of their own."""
