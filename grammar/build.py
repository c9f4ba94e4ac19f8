"""From the parser's rules to :mod:`graphdb.grammar.syntax`: one method for each rule of ``pattern.lark``."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from graphdb.common.errors import ParseError
from graphdb.grammar import syntax as s
from graphdb.grammar.build_base import always, first, items, node_of, node_of_all, option, plain
from graphdb.grammar.build_expressions import TOO_LARGE, Expressions
from graphdb.grammar.build_patterns import Patterns
from graphdb.grammar.compose import as_projected, called, check_ends, composed, invoked, matched, unwound, with_columns
from graphdb.grammar.lexing import Token
from graphdb.grammar.machine import Machine, Shape

DEEPEST_TREE = 250


def build(machine: Machine, text: str, start: int, end: int, original: str | None = None) -> s.Statement:
    """Return the statement in ``text[start:end]``; ``original`` is the text with the queries of SQL that it has.

    Raises
    ------
    Stopped
        The text does not follow the grammar.
    TooDeep
        Its tree is too deep.
    ParseError
        A number out of range, a bad escape in a string, or a call of something that is not a function's name.
    """
    builder = _Builder(text)
    builder.original = text if original is None else original
    statement: s.Statement = machine.parse(text, start, end, builder, DEEPEST_TREE)
    if builder.too_large:
        raise builder.error(TOO_LARGE, min(builder.too_large))
    if isinstance(statement, (s.Query, s.Composite)):
        return _whole(statement, builder)
    if isinstance(statement, s.CreateContinuous):
        return replace(statement, query=_whole(statement.query, builder))
    if isinstance(statement, (s.Explain, s.CreateTable)):
        inner = statement.query
        whole = _mined(inner, builder) if isinstance(inner, s.Mine) else _whole(inner, builder)
        return replace(statement, query=whole)
    if isinstance(statement, s.ExplainContinuous) and isinstance(created := statement.subject, s.CreateContinuous):
        return replace(statement, subject=replace(created, query=_whole(created.query, builder)))
    return _mined(statement, builder) if isinstance(statement, s.Mine) else statement


def _mined(statement: s.Mine, builder: _Builder) -> s.Mine:
    """Return a statement that mines; the query that it mines the rows of is checked as such."""
    if statement.scope.query is None:
        return statement
    return replace(statement, scope=replace(statement.scope, query=_whole(statement.scope.query, builder)))


def _whole(query: s.Query | s.Composite, builder: _Builder) -> s.Query | s.Composite:
    """Return a query that is a statement, checked as such."""
    if isinstance(query, s.Composite) and builder.calls:
        query = with_columns(query, builder)
    check_ends(query, builder)
    return query


def refuse_depth(shape: Shape, text: str) -> None:
    """Keep what reads the tree within Python's recursion limit."""
    level = [shape]
    for _ in range(DEEPEST_TREE):
        level = [within for shape in level for within in shape.within]
    if level:
        message = f"the expression is nested deeper than {DEEPEST_TREE} operators"
        raise ParseError(message, text=text, position=level[0].start)


class _Builder(Patterns, Expressions):
    original = ""

    # --- statements ---------------------------------------------------------------------------------------

    def explain(self, span: s.Span, children: list[Any]) -> s.Explain:
        explained = children[0]
        makes = isinstance(explained, (s.CreateTable, s.CreateView))
        return s.Explain(explained.query if makes else explained, False, span)

    def profile(self, span: s.Span, children: list[Any]) -> s.Explain:
        return s.Explain(children[0], True, span)

    def prefix(self, span: s.Span, children: list[Any]) -> s.Prefix:
        name, iri = children
        return s.Prefix(name.text if name else "", str(iri)[1:-1], span)

    def load(self, span: s.Span, children: list[Any]) -> s.Load:
        sources, *options = children
        given: dict[str, Any] = {}
        for name, value, position in options:
            if name in given:
                raise self.error(f"{name.upper().replace('_', ' ')} is said twice", position)
            given[name] = value
        return s.Load(sources, **given, span=span)

    load_sources = items

    def load_file(self, span: s.Span, children: list[Any]) -> s.LoadSource:
        return s.LoadSource(path=self.plain(children[0]), **dict(children[1:]))

    def load_sql(self, span: s.Span, children: list[Any]) -> s.LoadSource:
        token = children[0]
        text = self.original[token.start_pos : token.end_pos]
        if not text.startswith("("):
            raise self.error("FROM needs a query in brackets", token.start_pos)
        return s.LoadSource(sql=text[1:-1].strip(), **dict(children[1:]))

    def load_mapping(self, span: s.Span, children: list[Any]) -> s.LoadSource:
        return s.LoadSource(mapping=self.plain(children[0]))

    def load_as_label(self, span: s.Span, children: list[Any]) -> tuple[str, Any]:
        return "label", children[0]

    def load_as_type(self, span: s.Span, children: list[Any]) -> tuple[str, Any]:
        return "type", children[0]

    load_labels = items
    load_format = option("format")
    load_base = option("base")
    load_columns = load_headers = option("columns", items)
    load_label = option("label")
    load_type = option("type")
    load_delimiter = option("delimiter", plain)
    load_quote = option("quote", plain)
    load_null = option("null", plain)
    load_header_row = option("header")
    load_list_delimiter = option("list_delimiter", plain)
    true_word = always(True)
    false_word = always(False)
    load_header = path = plain
    own_header = always(None)
    load_on_error = option("on_error")

    def load_column(self, span: s.Span, children: list[Any]) -> tuple[str, str]:
        return children[0], self.plain(children[1])

    def load_name(self, span: s.Span, children: list[Any]) -> str:
        token = children[0]
        return str(token)[1:-1] if token.type == "IRI" else self.plain(token)

    paths = items
    stop = always("stop")
    skip_lines = always("skip")

    def create_table(self, span: s.Span, children: list[Any]) -> s.CreateTable:
        replace, temporary, if_not_exists, name, query = children
        return s.CreateTable(name, query, bool(replace), bool(temporary), bool(if_not_exists), span)

    def create_view(self, span: s.Span, children: list[Any]) -> s.CreateView:
        replace, temporary, if_not_exists, name, query = children
        return s.CreateView(name, query, bool(replace), bool(temporary), bool(if_not_exists), span)

    or_replace = always(True)
    temporary = if_not_exists = if_exists = maximal = directed = undirected = mine_matches = or_replace

    def table_name(self, span: s.Span, children: list[Any]) -> tuple[str, ...]:
        if len(children) > 3:
            raise self.error("a table's name has at most three parts: database.schema.table", span.start)
        return tuple(children)

    def table_part(self, span: s.Span, children: list[Any]) -> str:
        name = self._table_name(children[0])
        self.refuse_name(name, span.start)
        return name

    def _table_name(self, token: Token) -> str:
        if token.type == "STRING" and token.startswith("'"):
            raise self.error("a table's name stands bare or in double quotes", token.start_pos)
        return self.plain(token)

    def continuous_value(self, span: s.Span, children: list[Any]) -> bool | int | str:
        value = children[0]
        if isinstance(value, bool):
            return value
        return int(str(value).replace("_", ""), 0) if value.type == "INTEGER" else self.plain(value)

    def continuous_option(self, span: s.Span, children: list[Any]) -> s.Option:
        return s.Option(self.plain(children[0]).lower(), children[1], span)

    continuous_options = items

    def continuous_name(self, span: s.Span, children: list[Any]) -> tuple[str, s.Span]:
        return self._table_name(children[0]), span

    def create_continuous(self, span: s.Span, children: list[Any]) -> s.CreateContinuous:
        replace, (name, named), options, query = children
        self.refuse_name(name, named.start)  # older versions did not: what they stored is found, and dropped, by it
        return s.CreateContinuous(name, query, options or (), bool(replace), named, span)

    def drop_continuous(self, span: s.Span, children: list[Any]) -> s.DropContinuous:
        if_exists, (name, named) = children
        return s.DropContinuous(name, bool(if_exists), named, span)

    show_continuous = node_of(s.ShowContinuous)

    def explain_continuous(self, span: s.Span, children: list[Any], profile: bool = False) -> s.ExplainContinuous:
        [subject] = children
        name, named = (subject, s.Span(0, 0)) if isinstance(subject, s.CreateContinuous) else subject
        return s.ExplainContinuous(name, profile, named, span)

    def profile_continuous(self, span: s.Span, children: list[Any]) -> s.ExplainContinuous:
        return self.explain_continuous(span, children, profile=True)

    # --- mining -------------------------------------------------------------------------------------------

    def mine(self, span: s.Span, children: list[Any]) -> s.Mine:
        task, *scope = children
        if len(scope) == 1:
            return s.Mine(task, s.MineScope(query=scope[0]), span)
        return s.Mine(task, s.MineScope(scope[0] or (), scope[1] or ()), span)

    def mine_cliques(self, span: s.Span, children: list[Any]) -> s.MineCliques:
        least, most, maximal = children
        return s.MineCliques(least, most or least, bool(maximal))

    def mine_motifs(self, span: s.Span, children: list[Any]) -> s.MineMotifs:
        return s.MineMotifs(children[0], bool(children[1]))

    def mine_frequent(self, span: s.Span, children: list[Any]) -> s.MineFrequent:
        undirected, _, support, edges, matches = children
        return s.MineFrequent(support, edges, not undirected, bool(matches))

    mine_edges = first

    def mine_number(self, span: s.Span, children: list[Any]) -> s.MineNumber:
        return s.MineNumber(self._number(children[0]), span)

    def _number(self, token: Any) -> int:
        if not token.isdecimal():
            raise self.error(f"{token} is no whole number", int(token.start_pos or 0))
        return int(token)

    def mine_parameter(self, span: s.Span, children: list[Any]) -> s.MineNumber:
        return s.MineNumber(self.parameter(span, children), span)

    mine_from = first
    mine_labels = items

    def mine_label(self, span: s.Span, children: list[Any]) -> tuple[s.Word, ...]:
        return tuple(word for word in children if word is not None)

    # --- clauses ------------------------------------------------------------------------------------------

    def query(self, span: s.Span, children: list[Any]) -> s.Query | s.Composite:
        return composed(children[::2], children[1::2], self, span)

    def linear(self, span: s.Span, children: list[Any]) -> tuple[s.ClauseNode, ...]:
        if self.calls:  # with its condition, a call is two clauses
            children = [clause for child in children for clause in (child if isinstance(child, tuple) else (child,))]
        return unwound(children)

    def call_clause(self, span: s.Span, children: list[Any]) -> s.CallClause:
        optional, imported, query = children
        return called(query, imported, optional is not None, self, span)

    optional = always(True)

    def imported(self, span: s.Span, children: list[Any]) -> tuple[s.Variable, ...] | bool:
        named = tuple(variable for variable in children if variable is not None)
        return named or "*" in self.text[span.start : span.end]

    def procedure_call(self, span: s.Span, children: list[Any]) -> tuple[s.ClauseNode, ...]:
        optional, name, arguments, yielded = children
        self.calls = True
        items, where = yielded or (None, None)
        star = yielded is not None and items is None
        clause = s.ProcedureClause(name[0], arguments, items, star, span, name[1])
        return invoked(clause, where, optional is not None, self)

    def procedure_name(self, span: s.Span, children: list[Any]) -> tuple[str, s.Span]:
        return ".".join(word.text for word in children), span

    def given_arguments(self, span: s.Span, children: list[Any]) -> tuple[s.Expression, ...]:
        return children[0] or ()

    def yielded(self, span: s.Span, children: list[Any]) -> tuple[tuple[s.YieldItem, ...], s.Expression | None]:
        *items, where = children
        return tuple(items), where

    yielded_all = always((None, None))

    def yield_item(self, span: s.Span, children: list[Any]) -> s.YieldItem:
        column, alias = children
        self._refuse_no_name(alias or column)
        name = alias or column
        return s.YieldItem(column.text, s.Variable(name.text, name.span), span)

    def foreach(self, span: s.Span, children: list[Any]) -> s.ForeachClause:
        variable, source, *updates = children
        return s.ForeachClause(variable, source, tuple(updates), span)

    def union(self, span: s.Span, children: list[Any]) -> tuple[bool, int]:
        return children[0] == "ALL", span.start

    def match(self, span: s.Span, children: list[Any]) -> s.MatchClause:
        mode, patterns, where = children
        return matched(patterns, mode, where, span)

    def optional_match(self, span: s.Span, children: list[Any]) -> s.MatchClause:
        mode, patterns, where = children
        return matched(patterns, mode, where, span, optional=True)

    def with_clause(self, span: s.Span, children: list[Any]) -> s.WithClause:
        *items, where = children
        returns = self.return_clause(span, items)
        return s.WithClause(returns, as_projected(where, returns), span)

    def unwind(self, span: s.Span, children: list[Any]) -> s.UnwindClause:
        source, name = children
        self._refuse_no_name(name)
        return s.UnwindClause(source, s.Variable(name.text, name.span), span)

    def _refuse_no_name(self, name: s.Word | None) -> None:
        """Refuse what names no variable or column, or would be read as a value wherever it stands."""
        if name is None:
            return
        self.refuse_name(name.text, name.span.start)
        if self.text[name.span.start : name.span.end].upper() in ("NULL", "TRUE", "FALSE"):
            raise self.error(f"{name.text} is a value, not a name", name.span.start, f"write `{name.text}`")

    # --- writing ------------------------------------------------------------------------------------------

    def create(self, span: s.Span, children: list[Any]) -> s.CreateClause:
        return s.CreateClause(tuple(self._written(path, "CREATE") for path in children[0]), span)

    def _written(self, path: s.PathPattern, clause: str) -> s.PathPattern:
        if path.span.start in self.prefixed:
            raise self.error(f"{clause} takes a plain path", path.span.start)
        return path

    def merge(self, span: s.Span, children: list[Any]) -> s.MergeClause:
        actions: dict[str, tuple[s.SetItem | s.LabelItem, ...]] = {"on_match": (), "on_create": ()}
        for name, set_items in children[1:]:
            actions[name] += set_items
        path = self._written(children[0], "MERGE")
        return s.MergeClause(path, actions["on_match"], actions["on_create"], span)

    def on_match(self, span: s.Span, children: list[Any]) -> tuple[str, tuple[s.SetItem | s.LabelItem, ...]]:
        return "on_match", children[0].items

    def on_create(self, span: s.Span, children: list[Any]) -> tuple[str, tuple[s.SetItem | s.LabelItem, ...]]:
        return "on_create", children[0].items

    set_clause = node_of_all(s.SetClause)

    def set_item(self, span: s.Span, children: list[Any]) -> s.SetItem:
        return s.SetItem(children[0], children[1], False, span)

    def add_item(self, span: s.Span, children: list[Any]) -> s.SetItem:
        return s.SetItem(children[0], children[-1], True, span)

    label_item = node_of(s.LabelItem)
    remove = node_of_all(s.RemoveClause)
    remove_item = first
    detach = always(True)

    def delete(self, span: s.Span, children: list[Any]) -> s.DeleteClause:
        detach, *values = children
        return s.DeleteClause(tuple(values), detach is not None, span)

    # --- match modes --------------------------------------------------------------------------------------

    different_edges = always(s.MatchMode.DIFFERENT_EDGES)
    different_nodes = always(s.MatchMode.DIFFERENT_NODES)
    repeatable = always(s.MatchMode.REPEATABLE_ELEMENTS)
    induced = always(s.MatchMode.INDUCED)
    patterns = items
    where = first

    def return_clause(self, span: s.Span, children: list[Any]) -> s.ReturnClause:
        quantifier, (star, items), order_by, skip, limit = children
        return s.ReturnClause(items, star, quantifier == "DISTINCT", order_by or (), skip, limit, span)

    def quantifier(self, span: s.Span, children: list[Any]) -> str:
        return str(children[0].type)

    def return_items(self, span: s.Span, children: list[Any]) -> tuple[bool, tuple[s.ReturnItem, ...]]:
        star = children[0] is None
        return star, tuple(children[1:] if star else children)

    star = always(None)

    def return_item(self, span: s.Span, children: list[Any]) -> s.ReturnItem:
        expression, alias = children
        self._refuse_no_name(alias)
        # The column's name is what was written, brackets included, so it ends where `AS` or the item does; a NUL is
        # escaped, with which DuckDB would end it.
        text = self.text[span.start : span.end]
        if alias:
            text = re.sub(r"\s+AS\s*$", "", self.text[span.start : alias.span.start], flags=re.IGNORECASE)
        return s.ReturnItem(expression, alias.text if alias else None, text.replace("\0", "\\u0000"), span)

    order_items = items

    def order_item(self, span: s.Span, children: list[Any]) -> s.OrderItem:
        expression, nulls_first = children
        return s.OrderItem(expression, False, bool(nulls_first), span)

    def descending(self, span: s.Span, children: list[Any]) -> s.OrderItem:
        expression, nulls_first = children
        return s.OrderItem(expression, True, nulls_first is not False, span)

    nulls_first = always(True)
    nulls_last = always(False)
