"""Properties of the parser: it undoes writing, spans cut out what they stand for, and no text makes it fall over."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any

import hypothesis.strategies as st
from hypothesis import HealthCheck, given, settings

from graphdb.common.errors import GraphDBError
from graphdb.grammar import syntax as s
from graphdb.grammar.parser import is_complete, parse, parse_script, split
from graphdb.grammar.spelling import KEYWORDS, RESERVED
from tests.fuzz import scaled

# --- writing trees as text -------------------------------------------------------------------------------------


VALUES = frozenset({"FALSE", "NULL", "TRUE"})
"""Words that stand for values wherever a name may stand, that of a column too."""


def show_name(name: str, reserved: bool = False) -> str:
    """A name bare where it can be; in back-quotes otherwise."""
    taken = RESERVED | KEYWORDS if reserved else VALUES
    if name.isascii() and name.isidentifier() and name.upper() not in taken:
        return name
    return "`" + name.replace("`", "``") + "`"


def show_word(word: s.Word) -> str:
    return f"<{word.text}>" if word.is_iri else show_name(word.text)


def show_key(key: s.KeyName) -> str:
    return ":".join(map(show_word, key.words))


def show_labels(labels: s.LabelExpression) -> str:
    def part(operand: s.LabelExpression) -> str:
        text = show_labels(operand)
        return f"({text})" if isinstance(operand, s.LabelAnd | s.LabelOr) else text

    match labels:
        case s.LabelChain(words):
            return ":".join(map(show_word, words))
        case s.LabelAny():
            return "%"
        case s.LabelNot(operand):
            return "!" + part(operand)
        case s.LabelAnd(operands):
            return "&".join(map(part, operands))
        case s.LabelOr(operands):
            return "|".join(map(part, operands))


def show_map(value: s.MapLiteral) -> str:
    return "{" + ", ".join(f"{show_key(key)}: {show(item)}" for key, item in value.items) + "}"


def show_filler(item: s.NodePattern | s.EdgePattern) -> str:
    parts = [show_name(item.variable.name, True) if item.variable else ""]
    if isinstance(item, s.NodePattern) and item.iri:
        parts.append(f"<{item.iri.iri}>")
    parts.append(":" + show_labels(item.labels) if item.labels else "")
    parts.append(show_map(item.properties) if item.properties else "")
    parts.append("WHERE " + show(item.where) if item.where else "")
    return " ".join(filter(None, parts))


def show_path(path: s.PathPattern) -> str:
    text = f"({show_filler(path.nodes[0])})"
    for edge, node in zip(path.edges, path.nodes[1:], strict=True):
        left = "<-" if edge.direction is s.Direction.IN else "-"
        right = "->" if edge.direction is s.Direction.OUT else "-"
        filler = show_filler(edge)
        text += left + (f"[{filler}]" if filler else "") + right + f"({show_filler(node)})"
    return text


def show_literal(value: object) -> str:
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return (
        {None: "null", True: "true", False: "false"}[value] if value is None or isinstance(value, bool) else repr(value)
    )


def show(expression: s.Expression) -> str:
    """An expression with brackets around every operand that is not a single word."""

    def part(operand: s.Expression) -> str:
        bare = isinstance(operand, s.Variable | s.Parameter | s.FunctionCall | s.CountStar | s.ListLiteral)
        return show(operand) if bare else f"({show(operand)})"

    match expression:
        case s.Literal(value):
            return show_literal(value)
        case s.IriLiteral(iri):
            return f"<{iri}>"
        case s.Parameter(name):
            return "$" + show_name(name)
        case s.Variable(name):
            return show_name(name, True)
        case s.Property(base, key):
            return f"{part(base)}.{show_key(key)}"
        case s.FunctionCall(name, arguments, distinct):
            return f"{name}({'DISTINCT ' if distinct else ''}{', '.join(map(part, arguments))})"
        case s.CountStar():
            return "count(*)"
        case s.Unary(operator, operand):
            return f"{operator}({show(operand)})"
        case s.Binary(operator, left, right) | s.StringPredicate(operator, left, right):
            return f"({show(left)}) {operator} ({show(right)})"
        case s.Boolean(operator, operands):
            return f" {operator} ".join(map(part, operands))
        case s.Comparison(operators, operands):
            pairs = zip(operators, operands[1:], strict=True)
            return part(operands[0]) + "".join(f" {operator} {part(operand)}" for operator, operand in pairs)
        case s.In(item, collection):
            return f"{part(item)} IN {part(collection)}"
        case s.IsNull(operand, negated):
            return f"{part(operand)} IS {'NOT ' if negated else ''}NULL"
        case s.ListLiteral(items):
            return "[" + ", ".join(map(part, items)) + "]"
        case s.MapLiteral():
            return show_map(expression)
        case s.LabelPredicate(operand, labels):
            return f"({show(operand)}):{show_labels(labels)}"
        case s.PatternPredicate(pattern):
            return show_path(pattern)


def show_order(item: s.OrderItem) -> str:
    nulls = "" if item.nulls_first is item.descending else f" NULLS {'FIRST' if item.nulls_first else 'LAST'}"
    return show(item.expression) + (" DESC" if item.descending else "") + nulls


def show_query(query: s.Query) -> str:
    lines = []
    for clause in query.matches:
        where = f" WHERE {show(clause.where)}" if clause.where else ""
        lines.append(f"MATCH {clause.mode.value} {', '.join(map(show_path, clause.patterns))}{where}")
    r = query.returns
    items = ["*"] if r.star else []
    items += [
        show(item.expression) + (f" AS {show_name(item.alias)}" if item.alias is not None else "") for item in r.items
    ]
    lines.append(f"RETURN {'DISTINCT ' if r.distinct else ''}{', '.join(items)}")
    if r.order_by:
        lines.append("ORDER BY " + ", ".join(map(show_order, r.order_by)))
    lines += [f"SKIP {show(r.skip)}"] if r.skip else []
    lines += [f"LIMIT {show(r.limit)}"] if r.limit else []
    return "\n".join(lines)


# --- random trees ----------------------------------------------------------------------------------------------

names = st.one_of(
    st.sampled_from(["a", "b", "n1", "_x", "count", "order", "Limit", "match", "is", "all", "`", "a b", "é", "\\"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
)
columns = names.filter(lambda name: name and "\0" not in name)
"""What can name variables and columns; labels and keys may have a NUL, and keys no characters."""
variables = columns.map(s.Variable)
iris = st.sampled_from(["http://x/a", "urn:b", "http://x/a;b//c#d"])
words = st.one_of(names.map(s.Word), iris.map(lambda iri: s.Word(iri, True)))
keys = st.one_of(
    words.map(lambda word: s.KeyName((word,))),
    st.tuples(names.map(s.Word), names.map(s.Word)).map(s.KeyName),
)
labels = st.recursive(
    st.lists(words, min_size=1, max_size=3)
    .filter(lambda found: len(found) > 1 or found[0].text)
    .map(lambda found: s.LabelChain(tuple(found)))
    | st.just(s.LabelAny()),
    lambda inner: st.one_of(
        inner.map(s.LabelNot),
        st.lists(inner, min_size=2, max_size=3).map(lambda operands: s.LabelAnd(tuple(operands))),
        st.lists(inner, min_size=2, max_size=3).map(lambda operands: s.LabelOr(tuple(operands))),
    ),
    max_leaves=4,
)
numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
leaves = st.one_of(
    (numbers | st.booleans() | st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)).map(
        s.Literal
    ),
    iris.map(s.IriLiteral),
    st.sampled_from(["x", "1", "x y"]).map(s.Parameter),
    variables,
    st.just(s.CountStar()),
)


def maps(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[s.MapLiteral]:
    return st.lists(st.tuples(keys, inner), max_size=3).map(lambda items: s.MapLiteral(tuple(items)))


def paths(inner: st.SearchStrategy[Any], edges: int) -> st.SearchStrategy[s.PathPattern]:
    optional = st.none() | inner
    node = st.builds(
        s.NodePattern,
        st.none() | variables,
        st.none() | labels,
        st.none() | iris.map(s.IriLiteral),
        st.none() | maps(inner),
        optional,
    )
    edge = st.builds(
        s.EdgePattern,
        st.sampled_from(s.Direction),
        st.none() | variables,
        st.none() | labels,
        st.none() | maps(inner),
        optional,
    )
    lengths = st.integers(edges, 2)
    return lengths.flatmap(
        lambda n: st.builds(
            lambda nodes, found: s.PathPattern(tuple(nodes), tuple(found)),
            st.lists(node, min_size=n + 1, max_size=n + 1),
            st.lists(edge, min_size=n, max_size=n),
        )
    )


def larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.one_of(
        st.builds(s.Property, inner, keys),
        st.builds(s.FunctionCall, st.sampled_from(["f", "size", "date.x", "exists"]), several, st.booleans()),
        st.builds(s.Unary, st.sampled_from(["NOT", "-", "+"]), inner),
        st.builds(s.Binary, st.sampled_from("+-*/%^"), inner, inner),
        st.builds(s.Boolean, st.sampled_from(["AND", "OR", "XOR"]), several),
        st.builds(
            lambda first, rest: s.Comparison(tuple(sign for sign, _ in rest), (first, *(item for _, item in rest))),
            inner,
            st.lists(st.tuples(st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), inner), min_size=1, max_size=3),
        ),
        st.builds(s.StringPredicate, st.sampled_from(["STARTS WITH", "ENDS WITH", "CONTAINS", "=~"]), inner, inner),
        st.builds(s.In, inner, inner),
        st.builds(s.IsNull, inner, st.booleans()),
        several.map(s.ListLiteral),
        maps(inner),
        st.builds(s.LabelPredicate, inner, labels),
        paths(inner, 1).map(s.PatternPredicate),
    )


expressions = st.recursive(leaves, larger, max_leaves=6)
clauses = st.builds(
    s.MatchClause,
    st.lists(paths(expressions, 0), min_size=1, max_size=2).map(tuple),
    st.sampled_from(s.MatchMode),
    st.none() | expressions,
)
items = st.builds(
    lambda expression, alias: s.ReturnItem(expression, alias, show(expression).replace("\0", "\\u0000")),
    expressions,
    st.none() | columns,
)
returns = st.builds(
    s.ReturnClause,
    st.lists(items, min_size=1, max_size=3).map(tuple),
    st.booleans(),
    st.booleans(),
    st.lists(st.builds(s.OrderItem, expressions, st.booleans(), st.booleans()), max_size=2).map(tuple),
    st.none() | expressions,
    st.none() | expressions,
)
queries = st.builds(s.Query, st.lists(clauses, max_size=2).map(tuple), returns)

SLOW_TO_DRAW = settings(max_examples=scaled(150), deadline=None, suppress_health_check=list(HealthCheck))


def nodes_of(tree: Any) -> Iterator[Any]:
    """The tree's nodes, itself first."""
    if dataclasses.is_dataclass(tree) and not isinstance(tree, s.Span):
        yield tree
        for field in dataclasses.fields(tree):
            yield from nodes_of(getattr(tree, field.name))
    elif isinstance(tree, tuple):
        for item in tree:
            yield from nodes_of(item)


def clauses_of(text: str) -> tuple[Any, ...]:
    """The clauses of a query, whether or not one plan holds it."""
    query = parse(text)
    assert isinstance(query, (s.Query, s.Composite))
    return query.clauses if isinstance(query, s.Query) else query.parts[0]


@SLOW_TO_DRAW
@given(queries)
def test_parsing_undoes_writing(query: s.Query) -> None:
    assert clauses_of(show_query(query)) == query.clauses


@SLOW_TO_DRAW
@given(expressions)
def test_a_span_cuts_out_text_that_means_the_same(expression: s.Expression) -> None:
    text = f"RETURN {show(expression)}"
    for node in nodes_of(parse(text)):
        source = text[node.span.start : node.span.end]
        if isinstance(node, s.NodePattern):
            assert clauses_of(f"MATCH {source} RETURN 1")[0].patterns[0].nodes[0] == node
        elif isinstance(node, s.EdgePattern):
            assert clauses_of(f"MATCH (){source}() RETURN 1")[0].patterns[0].edges[0] == node
        elif isinstance(node, s.LabelChain | s.LabelAny | s.LabelNot | s.LabelAnd | s.LabelOr):
            assert clauses_of(f"MATCH (:{source}) RETURN 1")[0].patterns[0].nodes[0].labels == node
        elif isinstance(node, s.Expression):
            assert clauses_of(f"RETURN ({source})")[-1].items[0].expression == node


SIGNS = [*"()[]{}<>-=+*/%^.,:;|&!~$?'\"`\\#", "..", "//", "/*", "*/", "--", "$$"]
FRAGMENTS = "a b.c (a) -[:x]-> <http://x/a> 's' 1 2.5 0x $p é any reduce".split()
soup = st.lists(st.sampled_from([*sorted(KEYWORDS | RESERVED), *SIGNS, *FRAGMENTS, "\n", " ", "\0"]), max_size=25)


@settings(max_examples=scaled(500), deadline=None)
@given(
    st.sampled_from(["", "MATCH (a) ", "RETURN ", "MATCH (a)-[", "CREATE TABLE t AS ", "LOAD ", "PREFIX "]),
    soup,
    st.sampled_from(["", " "]),
)
def test_no_text_gives_another_error_than_ours(beginning: str, parts: list[str], glue: str) -> None:
    text = beginning + glue.join(parts)
    with contextlib.suppress(GraphDBError):
        parse_script(text)
    is_complete(text)


@settings(max_examples=scaled(300), deadline=None)
@given(st.text(max_size=60))
def test_any_text_at_all(text: str) -> None:
    with contextlib.suppress(GraphDBError):
        parse_script("RETURN " + text)
    assert all(piece in text for piece in split(text))
