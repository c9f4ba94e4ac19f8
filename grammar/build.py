"""From the parser's rules to :mod:`graphdb.grammar.syntax`: one method for each rule of ``pattern.lark``."""

from __future__ import annotations

import math
import re
from typing import Any

from lark import Token, Tree

from graphdb.errors import ParseError
from graphdb.grammar import syntax as s
from graphdb.grammar.compose import check_ends, composed, path_of
from graphdb.grammar.machine import Machine
from graphdb.grammar.machine import Place as Meta

DEEPEST_TREE = 250
_LARGEST = 2**63 - 1
_MOST_STEPS = 2**31 - 1
_TOO_LARGE = "the integer is out of range: 64 bits hold -2^63 to 2^63 - 1"
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{6,8})|(.))", re.DOTALL)
_SIMPLE = {"\\": "\\", "'": "'", '"': '"', "`": "`", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def build(machine: Machine, text: str, start: int, end: int) -> s.Statement:
    """Return the statement in ``text[start:end]``.

    Raises
    ------
    Stopped
        The text does not follow the grammar, or goes too deep.
    ParseError
        A number out of range, a bad escape in a string, or a call of something that is not a function's name.
    """
    builder = _Builder(text)
    statement: s.Statement = machine.parse(text, start, end, builder, DEEPEST_TREE)
    if builder.too_large:
        raise builder.error(_TOO_LARGE, min(builder.too_large))
    query = statement.query if isinstance(statement, (s.Explain, s.CreateTable)) else statement
    if isinstance(query, (s.Query, s.Composite)):
        check_ends(query, builder)
    return statement


def refuse_depth(tree: Tree[Any], text: str) -> None:
    """Keep what reads the tree within Python's recursion limit."""
    if tree.meta.end_pos - tree.meta.start_pos < DEEPEST_TREE:
        return
    level, depth = [tree], 0
    while level:
        depth += 1
        if depth > DEEPEST_TREE:
            message = f"the expression is nested deeper than {DEEPEST_TREE} operators"
            raise ParseError(message, text=text, position=level[0].meta.start_pos)
        level = [child for node in level for child in node.children if isinstance(child, Tree)]


def _span(meta: Meta) -> s.Span:
    return s.Span(meta.start_pos, meta.end_pos)


def _has_edge(path: s.PathPattern) -> bool:
    return any(isinstance(edge, s.EdgePattern) or _has_edge(edge.pattern) for edge in path.edges)


def _at(token: Token) -> s.Span:
    return s.Span(int(token.start_pos or 0), int(token.end_pos or 0))


_Prefix = tuple[s.Selector | None, s.PathMode | None]
"""A path's selector and mode."""


class _Builder:
    def __init__(self, text: str) -> None:
        self.text = text
        self.too_large: set[int] = set()
        """Where the integer 2^63 stands: right only under a minus sign."""
        self.prefixed: set[int] = set()
        """Where paths begin before which ALL stands, which says nothing."""
        self.given = False
        """Whether a parameter stands for all properties somewhere."""

    def error(self, message: str, position: int, hint: str | None = None) -> ParseError:
        return ParseError(message, text=self.text, position=position, hint=hint)

    # --- statements ---------------------------------------------------------------------------------------

    def explain(self, meta: Meta, children: list[Any]) -> s.Explain:
        return s.Explain(children[0], False, _span(meta))

    def profile(self, meta: Meta, children: list[Any]) -> s.Explain:
        return s.Explain(children[0], True, _span(meta))

    def prefix(self, meta: Meta, children: list[Any]) -> s.Prefix:
        name, iri = children
        return s.Prefix(name.text if name else "", str(iri)[1:-1], _span(meta))

    def load(self, meta: Meta, children: list[Any]) -> s.Load:
        paths, *options = children
        given: dict[str, Any] = {}
        for name, value, position in options:
            if name in given:
                raise self.error(f"{name.upper().replace('_', ' ')} is said twice", position)
            given[name] = value
        return s.Load(paths, **given, span=_span(meta))

    def load_format(self, meta: Meta, children: list[Any]) -> tuple[str, Any, int]:
        return "format", children[0], meta.start_pos

    def load_base(self, meta: Meta, children: list[Any]) -> tuple[str, Any, int]:
        return "base", children[0], meta.start_pos

    def load_columns(self, meta: Meta, children: list[Any]) -> tuple[str, Any, int]:
        return "columns", tuple(children), meta.start_pos

    def load_label(self, meta: Meta, children: list[Any]) -> tuple[str, Any, int]:
        return "label", children[0], meta.start_pos

    def load_type(self, meta: Meta, children: list[Any]) -> tuple[str, Any, int]:
        return "type", children[0], meta.start_pos

    def load_on_error(self, meta: Meta, children: list[Any]) -> tuple[str, Any, int]:
        return "on_error", children[0], meta.start_pos

    def load_column(self, meta: Meta, children: list[Any]) -> tuple[str, str]:
        return children[0], self._plain(children[1])

    def load_name(self, meta: Meta, children: list[Any]) -> str:
        token = children[0]
        return str(token)[1:-1] if token.type == "IRI" else self._plain(token)

    def paths(self, meta: Meta, children: list[Any]) -> tuple[str, ...]:
        return tuple(children)

    def path(self, meta: Meta, children: list[Any]) -> str:
        return self._plain(children[0])

    def stop(self, meta: Meta, children: list[Any]) -> str:
        return "stop"

    def skip_lines(self, meta: Meta, children: list[Any]) -> str:
        return "skip"

    def create_table(self, meta: Meta, children: list[Any]) -> s.CreateTable:
        replace, temporary, if_not_exists, name, query = children
        return s.CreateTable(name, query, bool(replace), bool(temporary), bool(if_not_exists), _span(meta))

    def or_replace(self, meta: Meta, children: list[Any]) -> bool:
        return True

    temporary = if_not_exists = or_replace

    def table_name(self, meta: Meta, children: list[Any]) -> tuple[str, ...]:
        if len(children) > 3:
            raise self.error("a table's name has at most three parts: database.schema.table", meta.start_pos)
        return tuple(children)

    def table_part(self, meta: Meta, children: list[Any]) -> str:
        token = children[0]
        if token.type == "STRING" and token.startswith("'"):
            raise self.error("a table's name stands bare or in double quotes", token.start_pos)
        return self._plain(token)

    # --- clauses ------------------------------------------------------------------------------------------

    def query(self, meta: Meta, children: list[Any]) -> s.Query | s.Composite:
        return composed(children[::2], children[1::2], self, _span(meta))

    def linear(self, meta: Meta, children: list[Any]) -> tuple[s.ClauseNode, ...]:
        return tuple(children)

    def union(self, meta: Meta, children: list[Any]) -> tuple[bool, int]:
        return children[0] == "ALL", meta.start_pos

    def match(self, meta: Meta, children: list[Any]) -> s.MatchClause:
        mode, patterns, where = children
        return s.MatchClause(patterns, mode or s.MatchMode.DIFFERENT_EDGES, where, _span(meta))

    def optional_match(self, meta: Meta, children: list[Any]) -> s.MatchClause:
        mode, patterns, where = children
        return s.MatchClause(patterns, mode or s.MatchMode.DIFFERENT_EDGES, where, _span(meta), True)

    def with_clause(self, meta: Meta, children: list[Any]) -> s.WithClause:
        *returns, where = children
        return s.WithClause(self.return_clause(meta, returns), where, _span(meta))

    def unwind(self, meta: Meta, children: list[Any]) -> s.UnwindClause:
        source, name = children
        self._refuse_value(name)
        return s.UnwindClause(source, s.Variable(name.text, name.span), _span(meta))

    def _refuse_value(self, name: s.Word | None) -> None:
        """Refuse a name that would be read as a value wherever it stands."""
        if name is not None and self.text[name.span.start : name.span.end].upper() in ("NULL", "TRUE", "FALSE"):
            raise self.error(f"{name.text} is a value, not a name", name.span.start, f"write `{name.text}`")

    # --- writing ------------------------------------------------------------------------------------------

    def create(self, meta: Meta, children: list[Any]) -> s.CreateClause:
        return s.CreateClause(tuple(self._written(path, "CREATE") for path in children[0]), _span(meta))

    def _written(self, path: s.PathPattern, clause: str) -> s.PathPattern:
        if path.span.start in self.prefixed:
            raise self.error(f"{clause} takes a plain path", path.span.start)
        return path

    def merge(self, meta: Meta, children: list[Any]) -> s.MergeClause:
        actions: dict[str, tuple[s.SetItem | s.LabelItem, ...]] = {"on_match": (), "on_create": ()}
        for name, items in children[1:]:
            actions[name] += items
        path = self._written(children[0], "MERGE")
        return s.MergeClause(path, actions["on_match"], actions["on_create"], _span(meta))

    def on_match(self, meta: Meta, children: list[Any]) -> tuple[str, tuple[s.SetItem | s.LabelItem, ...]]:
        return "on_match", children[0].items

    def on_create(self, meta: Meta, children: list[Any]) -> tuple[str, tuple[s.SetItem | s.LabelItem, ...]]:
        return "on_create", children[0].items

    def set_clause(self, meta: Meta, children: list[Any]) -> s.SetClause:
        return s.SetClause(tuple(children), _span(meta))

    def set_item(self, meta: Meta, children: list[Any]) -> s.SetItem:
        return s.SetItem(children[0], children[1], False, _span(meta))

    def add_item(self, meta: Meta, children: list[Any]) -> s.SetItem:
        return s.SetItem(children[0], children[-1], True, _span(meta))

    def label_item(self, meta: Meta, children: list[Any]) -> s.LabelItem:
        return s.LabelItem(children[0], children[1], _span(meta))

    def remove(self, meta: Meta, children: list[Any]) -> s.RemoveClause:
        return s.RemoveClause(tuple(children), _span(meta))

    def remove_item(self, meta: Meta, children: list[Any]) -> s.Expression:
        expression: s.Expression = children[0]
        return expression

    def detach(self, meta: Meta, children: list[Any]) -> bool:
        return True

    def delete(self, meta: Meta, children: list[Any]) -> s.DeleteClause:
        detach, *values = children
        return s.DeleteClause(tuple(values), detach is not None, _span(meta))

    # --- match modes --------------------------------------------------------------------------------------

    def different_edges(self, meta: Meta, children: list[Any]) -> s.MatchMode:
        return s.MatchMode.DIFFERENT_EDGES

    def different_nodes(self, meta: Meta, children: list[Any]) -> s.MatchMode:
        return s.MatchMode.DIFFERENT_NODES

    def repeatable(self, meta: Meta, children: list[Any]) -> s.MatchMode:
        return s.MatchMode.REPEATABLE_ELEMENTS

    def induced(self, meta: Meta, children: list[Any]) -> s.MatchMode:
        return s.MatchMode.INDUCED

    def patterns(self, meta: Meta, children: list[Any]) -> tuple[s.PathPattern, ...]:
        return tuple(children)

    def where(self, meta: Meta, children: list[Any]) -> s.Expression:
        expression: s.Expression = children[0]
        return expression

    def return_clause(self, meta: Meta, children: list[Any]) -> s.ReturnClause:
        quantifier, (star, items), order_by, skip, limit = children
        return s.ReturnClause(items, star, quantifier == "DISTINCT", order_by or (), skip, limit, _span(meta))

    def quantifier(self, meta: Meta, children: list[Any]) -> str:
        return str(children[0].type)

    def return_items(self, meta: Meta, children: list[Any]) -> tuple[bool, tuple[s.ReturnItem, ...]]:
        star = children[0] is None
        return star, tuple(children[1:] if star else children)

    def star(self, meta: Meta, children: list[Any]) -> None:
        return None

    def return_item(self, meta: Meta, children: list[Any]) -> s.ReturnItem:
        expression, alias = children
        span = _span(meta)
        self._refuse_value(alias)
        # The column's name is what was written, brackets included, so it ends where `AS` or the item does.
        text = self.text[span.start : span.end]
        if alias:
            text = re.sub(r"\s+AS\s*$", "", self.text[span.start : alias.span.start], flags=re.IGNORECASE)
        return s.ReturnItem(expression, alias.text if alias else None, text, span)

    def order_items(self, meta: Meta, children: list[Any]) -> tuple[s.OrderItem, ...]:
        return tuple(children)

    def order_item(self, meta: Meta, children: list[Any]) -> s.OrderItem:
        return s.OrderItem(children[0], False, _span(meta))

    def descending(self, meta: Meta, children: list[Any]) -> s.OrderItem:
        return s.OrderItem(children[0], True, _span(meta))

    # --- patterns -----------------------------------------------------------------------------------------

    def pattern(self, meta: Meta, children: list[Any]) -> s.PathPattern:
        name, prefix, *elements = children
        selector, mode = prefix or (None, None)
        if prefix is not None and selector is mode is None:
            self.prefixed.add(meta.start_pos)
        return path_of(elements, self, _span(meta), name, mode, selector)

    def legacy(self, meta: Meta, children: list[Any]) -> s.PathPattern:
        name, path = children
        return s.PathPattern(path.nodes, path.edges, _span(meta), name, path.mode, path.selector)

    def path_variable(self, meta: Meta, children: list[Any]) -> s.Variable:
        return s.Variable(self._name(children[0]), _at(children[0]))

    def legacy_shortest(self, meta: Meta, children: list[Any]) -> s.PathPattern:
        function, left, edge, right = children
        selector = s.Selector(1, shortest=True, groups=function.upper() == "ALLSHORTESTPATHS")
        return s.PathPattern((left, right), (edge,), _span(meta), None, None, selector)

    def any_path(self, meta: Meta, children: list[Any]) -> _Prefix:
        count, mode = children
        return s.Selector(self._count(count)), mode

    def any_shortest(self, meta: Meta, children: list[Any]) -> _Prefix:
        return s.Selector(1, shortest=True), children[0]

    def all_paths(self, meta: Meta, children: list[Any]) -> _Prefix:
        return None, children[0]

    def all_shortest(self, meta: Meta, children: list[Any]) -> _Prefix:
        return s.Selector(1, shortest=True, groups=True), children[0]

    def shortest(self, meta: Meta, children: list[Any]) -> _Prefix:
        count, mode, groups = children
        if count is None and groups is None:
            raise self.error("SHORTEST needs a number of paths", meta.start_pos, "write ANY SHORTEST or SHORTEST 1")
        return s.Selector(self._count(count), shortest=True, groups=groups is not None), mode

    def groups(self, meta: Meta, children: list[Any]) -> bool:
        return True

    def _count(self, token: Token | None) -> int:
        count = 1 if token is None else self._bound(token)
        if count < 1:
            raise self.error("a number of paths is 1 or more", int(token.start_pos or 0) if token else 0)
        return count

    def _bound(self, token: Token) -> int:
        if not re.fullmatch(r"\d+(_\d+)*", token):
            raise self.error(f"{token} is not a number of steps", int(token.start_pos or 0))
        if int(token) > _MOST_STEPS:
            raise self.error(f"{token} is out of range: there are at most {_MOST_STEPS}", int(token.start_pos or 0))
        return int(token)

    def path_mode(self, meta: Meta, children: list[Any]) -> s.PathMode:
        mode: s.PathMode = children[0]
        return mode

    def walk(self, meta: Meta, children: list[Any]) -> s.PathMode:
        return s.PathMode.WALK

    def trail(self, meta: Meta, children: list[Any]) -> s.PathMode:
        return s.PathMode.TRAIL

    def simple(self, meta: Meta, children: list[Any]) -> s.PathMode:
        return s.PathMode.SIMPLE

    def acyclic(self, meta: Meta, children: list[Any]) -> s.PathMode:
        return s.PathMode.ACYCLIC

    def node(self, meta: Meta, children: list[Any]) -> s.NodePattern:
        variable, iri, labels, properties, where = children
        given = properties if isinstance(properties, s.Parameter) else None
        return s.NodePattern(variable, labels, iri, None if given else properties, where, _span(meta), given)

    def all_properties(self, meta: Meta, children: list[Any]) -> s.Parameter:
        self.given = True
        return self.parameter(meta, children)

    def subpath(self, meta: Meta, children: list[Any]) -> s.Subpath:
        name, *elements, where, repeat = children
        path = path_of(elements, self, _span(meta), name)
        if repeat is not None and not _has_edge(path):
            raise self.error("what is repeated needs an edge in it", meta.start_pos)
        return s.Subpath(path, where, repeat, _span(meta))

    def filler(self, meta: Meta, children: list[Any]) -> list[Any]:
        return children

    def _edge(self, direction: s.Direction, meta: Meta, children: list[Any]) -> s.EdgePattern:
        variable, labels, length, properties, where = (children[0] if len(children) > 1 else None) or (None,) * 5
        given = properties if isinstance(properties, s.Parameter) else None
        if length is not None and children[-1] is not None:
            raise self.error("an edge is repeated in its brackets or after them, not both", meta.start_pos)
        return s.EdgePattern(
            direction,
            variable,
            labels,
            None if given else properties,
            where,
            children[-1] or length,
            _span(meta),
            given,
        )

    def edge_out(self, meta: Meta, children: list[Any]) -> s.EdgePattern:
        return self._edge(s.Direction.OUT, meta, children)

    def edge_in(self, meta: Meta, children: list[Any]) -> s.EdgePattern:
        return self._edge(s.Direction.IN, meta, children)

    def edge_both(self, meta: Meta, children: list[Any]) -> s.EdgePattern:
        return self._edge(s.Direction.BOTH, meta, children)

    arrow_out, arrow_in, arrow_both = edge_out, edge_in, edge_both

    def any_number(self, meta: Meta, children: list[Any]) -> s.Repeat:
        return s.Repeat(0, None)

    def some(self, meta: Meta, children: list[Any]) -> s.Repeat:
        return s.Repeat(1, None)

    def perhaps(self, meta: Meta, children: list[Any]) -> s.Repeat:
        return s.Repeat(0, 1)

    def exactly(self, meta: Meta, children: list[Any]) -> s.Repeat:
        if children[0] is None:  # "*" in an edge's brackets
            return s.Repeat(1, None)
        count = self._bound(children[0])
        return s.Repeat(count, count)

    def between(self, meta: Meta, children: list[Any]) -> s.Repeat:
        low, high = (None if token is None else self._bound(token) for token in children)
        inside = self.text[meta.start_pos] == "*"
        if not inside and low is not None and high is not None and high < low:  # openCypher's *3..1 matches nothing
            hint = f"write {{{high},{low}}}"
            raise self.error(f"the upper bound {high} is below the lower one", meta.start_pos, hint)
        return s.Repeat(int(inside) if low is None else low, high)

    def labels(self, meta: Meta, children: list[Any]) -> s.LabelExpression:
        expression: s.LabelExpression = children[0]
        return expression

    def label_or(self, meta: Meta, children: list[Any]) -> s.LabelOr:
        return s.LabelOr(tuple(children), _span(meta))

    def label_and(self, meta: Meta, children: list[Any]) -> s.LabelAnd:
        return s.LabelAnd(tuple(children), _span(meta))

    def label_not(self, meta: Meta, children: list[Any]) -> s.LabelNot:
        return s.LabelNot(children[0], _span(meta))

    def label_any(self, meta: Meta, children: list[Any]) -> s.LabelAny:
        return s.LabelAny(_span(meta))

    def label_chain(self, meta: Meta, children: list[Any]) -> s.LabelChain:
        return s.LabelChain(tuple(children), _span(meta))

    # --- names --------------------------------------------------------------------------------------------

    def variable(self, meta: Meta, children: list[Any]) -> s.Variable:
        return s.Variable(self._name(children[0]), _span(meta))

    def word(self, meta: Meta, children: list[Any]) -> s.Word:
        token = children[0]
        if token.type == "IRI":
            return s.Word(token[1:-1], True, _at(token))
        return s.Word(self._name(token), False, _at(token))

    name = property_word = map_word = word

    def key(self, meta: Meta, children: list[Any]) -> s.KeyName:
        words = (children[0], children[2]) if children[1] is not None else (children[0],)
        return s.KeyName(words, _span(meta))

    # --- expressions --------------------------------------------------------------------------------------

    def or_(self, meta: Meta, children: list[Any]) -> s.Boolean:
        return s.Boolean("OR", tuple(children), _span(meta))

    def xor(self, meta: Meta, children: list[Any]) -> s.Boolean:
        return s.Boolean("XOR", tuple(children), _span(meta))

    def and_(self, meta: Meta, children: list[Any]) -> s.Boolean:
        return s.Boolean("AND", tuple(children), _span(meta))

    def negation(self, meta: Meta, children: list[Any]) -> s.Unary:
        return s.Unary("NOT", children[0], _span(meta))

    def chain(self, meta: Meta, children: list[Any]) -> s.Comparison:
        return s.Comparison(tuple(map(str, children[1::2])), tuple(children[::2]), _span(meta))

    def starts_with(self, meta: Meta, children: list[Any]) -> s.StringPredicate:
        return s.StringPredicate("STARTS WITH", children[0], children[1], _span(meta))

    def ends_with(self, meta: Meta, children: list[Any]) -> s.StringPredicate:
        return s.StringPredicate("ENDS WITH", children[0], children[1], _span(meta))

    def contains(self, meta: Meta, children: list[Any]) -> s.StringPredicate:
        return s.StringPredicate("CONTAINS", children[0], children[1], _span(meta))

    def matches(self, meta: Meta, children: list[Any]) -> s.StringPredicate:
        return s.StringPredicate("=~", children[0], children[1], _span(meta))

    def in_(self, meta: Meta, children: list[Any]) -> s.In:
        return s.In(children[0], children[1], _span(meta))

    def is_null(self, meta: Meta, children: list[Any]) -> s.IsNull:
        return s.IsNull(children[0], False, _span(meta))

    def is_not_null(self, meta: Meta, children: list[Any]) -> s.IsNull:
        return s.IsNull(children[0], True, _span(meta))

    def label_predicate(self, meta: Meta, children: list[Any]) -> s.LabelPredicate:
        return s.LabelPredicate(children[0], children[1], _span(meta))

    def binary(self, meta: Meta, children: list[Any]) -> s.Binary:
        return s.Binary(str(children[1]), children[0], children[2], _span(meta))

    def signed(self, meta: Meta, children: list[Any]) -> s.Expression:
        sign, operand = children
        value = operand.value if isinstance(operand, s.Literal) else None
        if sign == "-" and isinstance(value, int | float) and self._unsigned_after(sign, operand):
            # A minus sign right before a number is part of it: so -2^63 can be written.
            self.too_large.discard(operand.span.start)
            return s.Literal(-value, _span(meta))
        return s.Unary(str(sign), operand, _span(meta))

    def _unsigned_after(self, sign: Token, operand: s.Literal) -> bool:
        between, first = self.text[sign.end_pos : operand.span.start], self.text[operand.span.start]
        return not between.strip() and (first.isdigit() or first == ".")

    def property_(self, meta: Meta, children: list[Any]) -> s.Property:
        return s.Property(children[0], children[1], _span(meta))

    def call(self, meta: Meta, children: list[Any]) -> s.FunctionCall:
        function, quantifier, arguments = children
        name = self._function(function, meta.start_pos)
        return s.FunctionCall(name, arguments or (), quantifier == "DISTINCT", _span(meta))

    def call_star(self, meta: Meta, children: list[Any]) -> s.CountStar:
        name = self._function(children[0], meta.start_pos)
        if name.lower() != "count":
            raise self.error(f"only count takes *, not {name}", meta.start_pos)
        return s.CountStar(_span(meta))

    def _function(self, expression: s.Expression, position: int) -> str:
        """The name that is called: ``f``, or with its namespace ``duration.between``."""
        parts: list[str] = []
        while isinstance(expression, s.Property) and len(expression.key.words) == 1:
            parts.append(expression.key.words[0].text)
            expression = expression.base
        if not isinstance(expression, s.Variable):
            raise self.error("this cannot be called: a function's name stands before (", position)
        return ".".join([expression.name, *reversed(parts)])

    def arguments(self, meta: Meta, children: list[Any]) -> tuple[s.Expression, ...]:
        return tuple(children)

    def integer(self, meta: Meta, children: list[Any]) -> s.Literal:
        token = children[0]
        try:
            value = int(token, 0) if token[:2] in ("0x", "0X", "0o", "0O") else int(token)
        except ValueError:
            raise self.error(f"{token} is not a number", token.start_pos) from None
        if value > _LARGEST + 1:
            raise self.error(_TOO_LARGE, token.start_pos)
        if value > _LARGEST:
            self.too_large.add(meta.start_pos)
        return s.Literal(value, _span(meta))

    def float_(self, meta: Meta, children: list[Any]) -> s.Literal:
        try:
            value = float(children[0].rstrip("fFdD"))
        except ValueError:
            raise self.error(f"{children[0]} is not a number", meta.start_pos) from None
        if math.isinf(value):
            raise self.error("the number is out of range for a 64-bit float", meta.start_pos)
        return s.Literal(value, _span(meta))

    def string(self, meta: Meta, children: list[Any]) -> s.Literal:
        return s.Literal(self._unquoted(children[0]), _span(meta))

    def true(self, meta: Meta, children: list[Any]) -> s.Literal:
        return s.Literal(True, _span(meta))

    def false(self, meta: Meta, children: list[Any]) -> s.Literal:
        return s.Literal(False, _span(meta))

    def null(self, meta: Meta, children: list[Any]) -> s.Literal:
        return s.Literal(None, _span(meta))

    def parameter(self, meta: Meta, children: list[Any]) -> s.Parameter:
        token = children[0]
        quoted = token[1] == "`"
        return s.Parameter(token[2:-1].replace("``", "`") if quoted else token[1:], _span(meta))

    def iri(self, meta: Meta, children: list[Any]) -> s.IriLiteral:
        return s.IriLiteral(children[0][1:-1], _span(meta))

    def list_(self, meta: Meta, children: list[Any]) -> s.ListLiteral:
        return s.ListLiteral(children[0] or (), _span(meta))

    def map(self, meta: Meta, children: list[Any]) -> s.MapLiteral:
        return s.MapLiteral(tuple(entry for entry in children if entry is not None), _span(meta))

    def entry(self, meta: Meta, children: list[Any]) -> tuple[s.KeyName, s.Expression]:
        return children[0], children[1]

    def pattern_predicate(self, meta: Meta, children: list[Any]) -> s.PatternPredicate:
        return s.PatternPredicate(path_of(children, self, _span(meta)), _span(meta))

    def subscript(self, meta: Meta, children: list[Any]) -> s.Subscript:
        return s.Subscript(children[0], children[1], _span(meta))

    def slice(self, meta: Meta, children: list[Any]) -> s.Slice:
        base, start, end = children
        return s.Slice(base, start, end, _span(meta))

    def case(self, meta: Meta, children: list[Any]) -> s.Case:
        operand, *branches, otherwise = children
        return s.Case(operand, tuple(branches), otherwise, _span(meta))

    def when(self, meta: Meta, children: list[Any]) -> tuple[tuple[s.Expression, ...], s.Expression]:
        return children[0], children[1]

    def list_comprehension(self, meta: Meta, children: list[Any]) -> s.ListComprehension:
        variable, source, where, result = children
        return s.ListComprehension(variable, source, where, result, _span(meta))

    def pattern_comprehension(self, meta: Meta, children: list[Any]) -> s.PatternComprehension:
        name, *elements, where, result = children
        return s.PatternComprehension(path_of(elements, self, _span(meta), name), where, result, _span(meta))

    def all_any(self, meta: Meta, children: list[Any]) -> s.ListPredicate:
        quantifier, variable, source, where = children
        return s.ListPredicate(quantifier.lower(), variable, source, where, _span(meta))

    def reduce(self, meta: Meta, children: list[Any]) -> s.Reduce:
        accumulator, start, variable, source, step = children
        return s.Reduce(accumulator, start, variable, source, step, _span(meta))

    def subquery(self, meta: Meta, children: list[Any]) -> s.Subquery:
        return s.Subquery(children[0].lower(), children[1], _span(meta))

    def pattern_subquery(self, meta: Meta, children: list[Any]) -> s.Subquery:
        kind, patterns, where = children
        match = s.MatchClause(patterns, where=where, span=_span(meta))
        return s.Subquery(kind.lower(), s.Composite(((match,),), span=_span(meta)), _span(meta))

    def map_projection(self, meta: Meta, children: list[Any]) -> s.MapProjection:
        base, *items = children
        return s.MapProjection(
            base, tuple(item(base) if callable(item) else item for item in items if item != ()), _span(meta)
        )

    def projection(self, meta: Meta, children: list[Any]) -> tuple[str, s.Expression]:
        key, value = children[0]
        return key.text, value

    def field(self, meta: Meta, children: list[Any]) -> Any:
        key = s.KeyName((children[0],), _span(meta))
        return lambda base: (children[0].text, s.Property(base, key, _span(meta)))

    def fields(self, meta: Meta, children: list[Any]) -> None:
        return None

    def variable_field(self, meta: Meta, children: list[Any]) -> tuple[str, s.Expression]:
        return children[0].name, children[0]

    def shortest_path(self, meta: Meta, children: list[Any]) -> s.ShortestPath:
        return s.ShortestPath(children[0], _span(meta))

    # --- quotes -------------------------------------------------------------------------------------------

    def _name(self, token: Token) -> str:
        return token[1:-1].replace("``", "`") if token.startswith("`") else str(token)

    def _plain(self, token: Token) -> str:
        """A name or string as SQL reads it: a doubled quote stands for one, and backslashes for themselves."""
        if token.type == "STRING":
            return token[1:-1].replace(token[0] * 2, token[0])
        return self._name(token)

    def _unquoted(self, token: Token) -> str:
        return self._unescape(token[1:-1], token[0], int(token.start_pos or 0) + 1)

    def _unescape(self, body: str, quote: str, start: int) -> str:
        if "\\" not in body:
            return body.replace(quote * 2, quote)

        def character(found: re.Match[str]) -> str:
            short, long, simple = found.groups()
            code = int(short or long or "0", 16)
            if long and len(long) > 6 and (len(long) == 7 or code > 0x10FFFF):
                # openCypher takes six digits; where eight make no character, the rest is text.
                return character_of(int(long[:6], 16), found) + long[6:]
            if short or long:
                return character_of(code, found)
            if simple not in _SIMPLE:
                raise self.error("unknown escape in a string", start + found.start(), "write \\\\ for a backslash")
            return _SIMPLE[simple]

        def character_of(code: int, found: re.Match[str]) -> str:
            if code > 0x10FFFF:
                raise self.error("no such Unicode character", start + found.start())
            return chr(code)

        # A doubled quote is undoubled between escapes only: in \'' the first is escaped.
        parts, at = [], 0
        for found in _ESCAPE.finditer(body):
            parts += [body[at : found.start()].replace(quote * 2, quote), character(found)]
            at = found.end()
        parts.append(body[at:].replace(quote * 2, quote))
        value = "".join(parts)
        try:
            return value.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            raise self.error("half of a surrogate pair is not a character", start) from None
