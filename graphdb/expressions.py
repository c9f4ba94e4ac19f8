"""Expressions to SQL: openCypher's operators, null semantics and types over DuckDB's.

The compiler gives each expression a :class:`~graphdb.values.Type` and writes SQL that yields it.  A comparison
between types that cannot be compared is decided here, once: ``=`` is false, ``<`` is null.  A multi-valued property
in a condition holds if any of its values does; where one value is needed it must have just one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from graphdb import durations, functions, lists, maps, times
from graphdb.computed import Computing, compute
from graphdb.constants import constant
from graphdb.errors import (
    BindError,
    GraphDBError,
    NotSupportedError,
    ParameterError,
    TypeMismatchError,
    nearest,
    with_place,
)
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.names import Names
from graphdb.rows import Rows
from graphdb.typed import Typed, as_union, incomparable, member, number
from graphdb.values import (
    BOOLEAN,
    FLOAT,
    INTEGER,
    MEMBERS,
    NULL,
    NUMERIC,
    STRING,
    VALUE,
    Base,
    Type,
    list_of,
)


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
    """Compiles the expressions of one statement; errors carry its ``text``."""

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
        self._at: ast.Expression | None = None
        """The comparison that is being written, for errors."""

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
            return found
        method: Callable[[ast.Expression], Typed] | None = getattr(self, "_" + type(node).__name__.lower(), None)
        if method is not None:
            return method(node)
        of_values = lists.COMPILED.get(type(node)) or maps.COMPILED.get(type(node))
        if of_values is None:
            raise NotSupportedError("this expression is not supported in SQL", text=self.text, position=node.span.start)
        return of_values(self, node)

    def within(self, scope: Scope) -> Compiler:
        """Return the compiler of an expression inside the present one, where names stand for something else."""
        found = Compiler(self.text, self.names, self.arguments, self.rows, scope, self.computing)
        found._depth = self._depth + 1
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

    def sort_keys(self, value: Typed) -> list[str]:
        """Return the SQL expressions that order values of any type."""
        base = value.type.base
        if base is Base.PATH:
            raise NotSupportedError("an order of paths is not supported in SQL")
        if base is Base.NODE:
            return [self.rows.iri(value.sql).sql]
        if base is Base.TERM:
            return [self.rows.iri(value.sql).sql, *self.sort_keys(self.value_of(value))]
        if base is Base.EDGE:
            return [f"({value.sql}).label", f'({value.sql})."start"', f'({value.sql})."end"', f"({value.sql}).ordinal"]
        if base is Base.MAP:
            return maps.sort_keys(self, value)
        if base is Base.DURATION:
            return durations.sort_keys(value)
        if base is Base.VALUE:
            rank = " ".join(
                f"WHEN '{MEMBERS[b][0]}' THEN {0 if b is Base.STRING else 2 if b in NUMERIC else 1}" for b in MEMBERS
            )
            others = [member(value, b) for b in MEMBERS if b not in NUMERIC]
            return [f"CASE union_tag({value.sql}) {rank} END", *others, number(value)]
        return [value.sql]

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
        return found

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
        value = self._number(value, node)
        if value.type.base is Base.VALUE:  # without a sign for zeros
            return self._mixed(Typed("0", INTEGER), value, ast.Binary("-", ast.Literal(0), node.operand, node.span))
        turned = f"({node.operator}({value.sql}))"
        # The least integer has no opposite, which a wider type of DuckDB's would have.
        return Typed(f"CAST({turned} AS BIGINT)" if value.type is INTEGER else turned, value.type)

    def _comparison(self, node: ast.Comparison) -> Typed:
        operands = [times.moment(self, operand) or self.compile(operand) for operand in node.operands]
        self._at = node
        parts = [
            self.any_of(lambda a, b, op=op: Typed(self.compare(op, a, b), BOOLEAN), left, right).sql
            for op, left, right in zip(node.operators, operands, operands[1:], strict=False)
        ]
        return Typed(f"({' AND '.join(parts)})", BOOLEAN)

    def compare(self, operator: str, left: Typed, right: Typed) -> str:
        """Return the SQL of one comparison of single values, any types."""
        if operator == "<>":
            return f"(NOT {self.compare('=', left, right)})"
        a, b = left.type.base, right.type.base
        if Base.NULL in (a, b):
            return "CAST(NULL AS BOOLEAN)"
        if Base.ANY in (a, b):
            raise NotSupportedError("values that SQL does not hold are compared in Python")
        if Base.TERM in (a, b):
            if a in (Base.NODE, Base.TERM) and b in (Base.NODE, Base.TERM) and operator == "=":
                return f"({_identity(left)} = {_identity(right)})"
            left, right = (self.value_of(v) if v.type.base is Base.TERM else v for v in (left, right))
            a, b = left.type.base, right.type.base
        if a is Base.VALUE and b is Base.VALUE:
            return self._compare_values(operator, left, right)
        if b is Base.VALUE:
            turned = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(operator, operator)
            return self.compare(turned, right, left)
        if a is Base.VALUE:
            if b not in MEMBERS:
                return incomparable(operator, left, right)
            own = Typed(number(left), FLOAT) if b in NUMERIC else Typed(member(left, b), right.type)
            inner = self.compare(operator, own, right)
            return f"coalesce({inner}, {incomparable('=', left, right)})" if operator == "=" else inner
        same = a is b or {a, b} <= NUMERIC
        if {a, b} == {Base.DATE, Base.DATETIME}:
            return f"(CAST({left.sql} AS TIMESTAMP) {operator} CAST({right.sql} AS TIMESTAMP))"
        if a is b is Base.LIST:
            return self._compare_lists(operator, left, right)
        if a is b is Base.MAP and operator == "=":
            return maps.equal(self, left, right)
        if not same or (a in _UNORDERED and operator != "="):
            return incomparable(operator, left, right)
        if a is Base.NODE:
            return f"({_identity(left)} = {_identity(right)})"
        floats = [f"AND NOT isnan({v.sql})" for v in (left, right) if v.type.base is Base.FLOAT]
        return f"({' '.join([f'{left.sql} {operator} {right.sql}', *floats])})"  # DuckDB's NaN equals itself

    def _compare_lists(self, operator: str, left: Typed, right: Typed) -> str:
        """Lists are equal if all their items are; an unknown item makes the answer unknown, a different one false."""
        if operator != "=":
            raise NotSupportedError(
                "ordering lists is not supported yet",
                text=self.text,
                position=self._at.span.start if self._at else None,
            )
        pair = self.fresh()
        items = [Typed(f"{pair}[{i}]", v.type.element or NULL) for i, v in enumerate((left, right), 1)]
        equal = f"list_transform(list_zip({left.sql}, {right.sql}), lambda {pair}: {self.compare('=', *items)})"
        return (
            f"(CASE WHEN {left.sql} IS NULL OR {right.sql} IS NULL THEN NULL "
            f"WHEN len({left.sql}) <> len({right.sql}) OR list_contains({equal}, FALSE) THEN FALSE "
            f"WHEN list_aggregate({equal}, 'count') < len({left.sql}) THEN NULL ELSE TRUE END)"
        )

    def _compare_values(self, operator: str, left: Typed, right: Typed) -> str:
        numbers = self.compare(operator, Typed(number(left), FLOAT), Typed(number(right), FLOAT))
        if operator == "=":
            return f"coalesce({numbers}, {left.sql} = {right.sql})"
        members = [f"({member(left, b)} {operator} {member(right, b)})" for b in MEMBERS if b not in NUMERIC]
        return f"coalesce({', '.join([numbers, *members])})"

    def _stringpredicate(self, node: ast.StringPredicate) -> Typed:
        function = {
            "STARTS WITH": "starts_with",
            "ENDS WITH": "suffix",
            "CONTAINS": "contains",
            "=~": "regexp_full_match",
        }[node.operator]

        def test(left: Typed, right: Typed) -> Typed:
            texts = [self._text_member(value) for value in (left, right)]
            return Typed(f"{function}({texts[0]}, {texts[1]})", BOOLEAN)

        return self.any_of(test, self.compile(node.left), self.compile(node.right))

    def _text_member(self, value: Typed) -> str:
        """Return the string in a value, NULL if it is something else (openCypher's string predicates)."""
        if value.type.base is Base.TERM:
            value = self.value_of(value)
        if value.type.base is Base.VALUE:
            return member(value, Base.STRING)
        return value.sql if value.type.base is Base.STRING else "CAST(NULL AS VARCHAR)"

    def _isnull(self, node: ast.IsNull) -> Typed:
        value = self.anything(node.operand)
        return Typed(f"({value.sql} IS {'NOT ' if node.negated else ''}NULL)", BOOLEAN)

    def _labelpredicate(self, node: ast.LabelPredicate) -> Typed:
        value = self.compile(node.operand)
        if value.type.base is Base.EDGE:
            return Typed(self._edge_labels(node.labels, f"({value.sql}).label"), BOOLEAN)
        if value.type.base not in (Base.NODE, Base.TERM):
            raise self.mismatch(f"{value.type} has no labels", node)
        return Typed(self._labels(node.labels, value.sql), BOOLEAN)

    def _labels(self, labels: ast.LabelExpression, id_sql: str) -> str:
        match labels:
            case ast.LabelAny():
                return f"(len({self.rows.labels(id_sql).sql}) > 0)"
            case ast.LabelNot():
                return f"(NOT {self._labels(labels.operand, id_sql)})"
            case ast.LabelAnd() | ast.LabelOr():
                word = " AND " if isinstance(labels, ast.LabelAnd) else " OR "
                return f"({word.join(self._labels(x, id_sql) for x in labels.operands)})"
            case ast.LabelChain():
                found = [self.names.vertex_label(name, self.text) for name in self.names.chains(labels.words)]
                tests = [self.rows.has_label(id_sql, self.names.under(label.id)) for label in found]
                return f"({' AND '.join(tests)})"

    def _edge_labels(self, labels: ast.LabelExpression, label_sql: str) -> str:
        match labels:
            case ast.LabelAny():
                return "TRUE"
            case ast.LabelNot():
                return f"(NOT {self._edge_labels(labels.operand, label_sql)})"
            case ast.LabelAnd() | ast.LabelOr():
                word = " AND " if isinstance(labels, ast.LabelAnd) else " OR "
                return f"({word.join(self._edge_labels(x, label_sql) for x in labels.operands)})"
            case ast.LabelChain():
                found = [self.names.edge_label(name, self.text) for name in self.names.chains(labels.words)]
                return f"({' AND '.join(f'{label_sql} = {int(label.id)}' for label in found)})"

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
            sql = f"list_bool_or(list_transform({value.sql}, lambda {name}: {sql}))"
        return Typed(sql, BOOLEAN)

    def fresh(self) -> str:
        """Return a name for the item of a list that no expression around this one has."""
        self._lambdas += 1
        return f"x{self._depth}_{self._lambdas}"

    # --- arithmetic and functions

    def _binary(self, node: ast.Binary) -> Typed:
        left, right = self.one(node.left), self.one(node.right)
        op = node.operator
        a, b = left.type.base, right.type.base
        if Base.NULL in (a, b):
            return Typed("NULL", NULL)
        if op == "+":
            if Base.LIST in (a, b):
                return self._append(left, right, node)
            if Base.STRING in (a, b):
                return Typed(f"({self.text_of(left, node)} || {self.text_of(right, node)})", STRING)
        if {a, b} & {Base.DATE, Base.DATETIME, Base.ZONED, Base.TIME, Base.DURATION}:
            return durations.arithmetic(self, op, left, right, node)
        left, right = self._number(left, node), self._number(right, node)
        a, b = left.type.base, right.type.base
        if Base.VALUE in (a, b) and op != "^":
            return self._mixed(left, right, node)
        left, right = (Typed(number(v), FLOAT) if v.type.base is Base.VALUE else v for v in (left, right))
        return self._computed(left, right, node)

    def _computed(self, left: Typed, right: Typed, node: ast.Binary) -> Typed:
        """Return the arithmetic of two numbers of known types."""
        a, b, op = left.type.base, right.type.base, node.operator
        if op == "^":
            return Typed(f"power(CAST({left.sql} AS DOUBLE), CAST({right.sql} AS DOUBLE))", FLOAT)
        if Base.FLOAT in (a, b) or (op == "/" and Base.DECIMAL in (a, b)):
            return Typed(f"(CAST({left.sql} AS DOUBLE) {op} CAST({right.sql} AS DOUBLE))", FLOAT)
        if a is b is Base.INTEGER:
            computed = f"({left.sql} {'//' if op == '/' else op} {right.sql})"
            if op in "/%" and not (isinstance(node.right, ast.Literal) and node.right.value):
                told = self.rows.parameters.add(with_place("division by zero", node.span.start))
                computed = f"CASE WHEN {right.sql} = 0 THEN error({told}) ELSE {computed} END"
            return Typed(computed, INTEGER)
        scales = [v.type.scale if v.type.base is Base.DECIMAL else 0 for v in (left, right)]
        scale = sum(scales) if op == "*" else max(scales)
        if scale > 30:
            return Typed(f"(CAST({left.sql} AS DOUBLE) {op} CAST({right.sql} AS DOUBLE))", FLOAT)
        return Typed(f"CAST(({left.sql} {op} {right.sql}) AS DECIMAL(38, {scale}))", Type(Base.DECIMAL, scale=scale))

    def _mixed(self, left: Typed, right: Typed, node: ast.Binary) -> Typed:
        """Return the arithmetic of values whose types the rows tell: of integers an integer, of texts a text."""
        pair = self.fresh()
        both = [Typed(f"{pair}.{side}", value.type) for side, value in (("a", left), ("b", right))]
        whole = [Typed(member(value, Base.INTEGER), INTEGER) for value in both]
        real = [Typed(number(v) if v.type.base is Base.VALUE else f"CAST({v.sql} AS DOUBLE)", FLOAT) for v in both]
        cases = [f"WHEN {value.sql} IS NULL THEN NULL" for value in both]
        for a, b in (whole, real):
            told = f"{a.sql} IS NOT NULL AND {b.sql} IS NOT NULL"
            cases.append(f"WHEN {told} THEN {as_union(self._computed(a, b, node)).sql}")
        if node.operator == "+":
            texts = [f"{value.sql} IS NOT NULL" for value in (Typed(member(v, Base.STRING), STRING) for v in both)]
            joined = Typed(" || ".join(self.text_of(value, node) for value in both), STRING)
            cases.append(f"WHEN {' OR '.join(texts)} THEN {as_union(joined).sql}")
        refused = with_place(f"{node.operator} needs numbers", node.span.start, TypeMismatchError)
        cases.append(f"ELSE error({self.rows.parameters.add(refused)})")
        values = f"[struct_pack(a := {left.sql}, b := {right.sql})]"
        return Typed(f"list_transform({values}, lambda {pair}: CASE {' '.join(cases)} END)[1]", VALUE)

    def _append(self, left: Typed, right: Typed, node: ast.Expression) -> Typed:
        sides = [v if v.type.base is Base.LIST else Typed(f"[{v.sql}]", list_of(v.type)) for v in (left, right)]
        elements = {v.type.element for v in sides if v.type.element != NULL}
        if len(elements) > 1:
            raise NotSupportedError(
                "lists of values of different types are not supported yet", text=self.text, position=node.span.start
            )
        element = elements.pop() if elements else NULL
        assert element is not None
        return Typed(f"list_concat({sides[0].sql}, {sides[1].sql})", list_of(element))

    def _number(self, value: Typed, node: ast.Expression) -> Typed:
        if value.type.base in NUMERIC or value.type.base in (Base.NULL, Base.VALUE):
            return value
        if value.type.base is Base.TERM:
            return self._number(self.value_of(value), node)
        raise self.mismatch(f"expected a number, found {value.type}", node)

    def text_of(self, value: Typed, node: ast.Expression) -> str:
        """Return SQL for ``toString(value)``."""
        base = value.type.base
        if base is Base.STRING:
            return value.sql
        if base is Base.NODE:
            return self.rows.iri(value.sql).sql
        if base is Base.TERM:
            literal = self.value_of(value)
            text = f"CAST({literal.sql} AS VARCHAR)" if literal.type == VALUE else self.text_of(literal, node)
            return f"coalesce({self.rows.iri(value.sql).sql}, {text})"
        if base in (Base.LIST, Base.EDGE, Base.PATH, Base.MAP):
            raise self.mismatch(f"expected a string, found {value.type}", node)
        if base is Base.DURATION:
            return durations.text_of(self, value)
        if base is Base.ZONED:
            raise NotSupportedError(f"the text of {value.type} is not supported in SQL", position=node.span.start)
        if base is not Base.VALUE:
            return _text(value.sql, base)
        names = {member: MEMBERS[member][0] for member in (Base.FLOAT, *_SPELT)}
        texts = {member: _text(f"union_extract({value.sql}, '{name}')", member) for member, name in names.items()}
        whens = [f"WHEN '{names[member]}' THEN {text}" for member, text in texts.items()]
        return f"CASE union_tag({value.sql}) {' '.join(whens)} ELSE CAST({value.sql} AS VARCHAR) END"

    def _countstar(self, node: ast.CountStar) -> Typed:
        self._aggregate_allowed("count(*)", node)
        return functions.number_of_matches(self)

    def _functioncall(self, node: ast.FunctionCall) -> Typed:
        name = node.name.lower()
        aggregate = functions.AGGREGATES.get(name)
        if aggregate is not None:
            self._aggregate_allowed(node.name, node)
            number = 2 if name.startswith("percentile") else 1
            functions.check_arguments(self, node, number, number)
            if any(isinstance(part, ast.FunctionCall) and part.name.lower() == "rand" for part in walk(node)):
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
        return functions.AGGREGATES

    def source(self, node: ast.Expression) -> str:
        """The text of an expression as written."""
        return self.text[node.span.start : node.span.end]

    def mismatch(self, message: str, node: ast.Expression) -> TypeMismatchError:
        """Return the error for ``node``."""
        return TypeMismatchError(message, text=self.text, position=node.span.start)


_UNORDERED = (Base.NODE, Base.EDGE, Base.PATH, Base.MAP, Base.DURATION)
"""Types whose values are equal or not, and no more."""


def _identity(vertex: Typed) -> str:
    """Return the id to compare a vertex by: one that the database lacks is different from all that it has."""
    return f"coalesce({vertex.sql}, -1)" if vertex.constant else vertex.sql


_SPELT: Mapping[Base, str] = {
    Base.TIME: r"regexp_replace(CAST({0} AS VARCHAR), '^(\d+:\d+):00$', '\1')",
    Base.DATETIME: r"regexp_replace(replace(CAST({0} AS VARCHAR), ' ', 'T'), '(T\d+:\d+):00$', '\1')",
    Base.ZONED: r"regexp_replace(replace(CAST({0} AT TIME ZONE 'UTC' AS VARCHAR), ' ', 'T'), '(T\d+:\d+):00$', '\1')"
    " || 'Z'",
}
"""Types that openCypher writes otherwise than SQL does: times as ISO 8601, without seconds that are zero."""


def _text(sql: str, base: Base) -> str:
    """Return SQL for the text of a value of a type."""
    if base is Base.FLOAT:
        return functions.float_text(sql)
    return f"({_SPELT[base].format(sql)})" if base in _SPELT else f"CAST({sql} AS VARCHAR)"
