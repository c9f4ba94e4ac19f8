"""The parser: which tree each construct gives, where spans point, who reads which statement."""

from __future__ import annotations

import pytest

from graphdb.grammar.parser import parse, parse_script
from graphdb.grammar.syntax import (
    Binary,
    Boolean,
    Comparison,
    CountStar,
    Direction,
    EdgePattern,
    Expression,
    FunctionCall,
    In,
    IriLiteral,
    IsNull,
    KeyName,
    LabelAnd,
    LabelAny,
    LabelChain,
    LabelNot,
    LabelOr,
    LabelPredicate,
    ListLiteral,
    Literal,
    MapLiteral,
    MatchClause,
    MatchMode,
    NodePattern,
    Parameter,
    PathPattern,
    PatternPredicate,
    Property,
    Query,
    StringPredicate,
    Unary,
    Variable,
    Word,
)

A, B, C, X = (Variable(name) for name in "abcx")


def query(text: str) -> Query:
    statement = parse(text)
    assert isinstance(statement, Query)
    return statement


def match(text: str) -> MatchClause:
    return query(f"MATCH {text} RETURN 1").matches[0]


def path(text: str) -> PathPattern:
    return match(text).patterns[0]


def node(text: str) -> NodePattern:
    return path(text).nodes[0]


def edge(text: str) -> EdgePattern:
    return path(f"(){text}()").edges[0]


def expression(text: str) -> Expression:
    return query(f"RETURN {text}").returns.items[0].expression


def chain(*names: str) -> LabelChain:
    return LabelChain(tuple(Word(name) for name in names))


def key(*names: str) -> KeyName:
    return KeyName(tuple(Word(name) for name in names))


# --- patterns --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "direction"),
    [
        ("-->", Direction.OUT),
        ("<--", Direction.IN),
        ("--", Direction.BOTH),
        ("<-->", Direction.BOTH),
        ("-[]->", Direction.OUT),
        ("<-[]-", Direction.IN),
        ("-[]-", Direction.BOTH),
        ("<-[]->", Direction.BOTH),
        ("- - >", Direction.OUT),
    ],
)
def test_edge_directions(text: str, direction: Direction) -> None:
    assert edge(text) == EdgePattern(direction)


def test_edge_with_everything() -> None:
    assert edge("-[e:knows {since: 3} WHERE e.x > 1]->") == EdgePattern(
        Direction.OUT,
        Variable("e"),
        chain("knows"),
        MapLiteral(((key("since"), Literal(3)),)),
        Comparison((">",), (Property(Variable("e"), key("x")), Literal(1))),
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("()", NodePattern()),
        ("(a)", NodePattern(A)),
        ("(:A)", NodePattern(labels=chain("A"))),
        ("(a:A:B)", NodePattern(A, chain("A", "B"))),
        ("(a IS A)", NodePattern(A, chain("A"))),
        ("(IS A)", NodePattern(labels=chain("A"))),
        ("(is:A)", NodePattern(Variable("is"), chain("A"))),
        (
            "(order:Limit {skip: 1})",
            NodePattern(Variable("order"), chain("Limit"), None, MapLiteral(((key("skip"), Literal(1)),))),
        ),
        ("(<http://x/a>)", NodePattern(iri=IriLiteral("http://x/a"))),
        ("(a <http://x/a>)", NodePattern(A, iri=IriLiteral("http://x/a"))),
        ("(:<http://x/A>)", NodePattern(labels=LabelChain((Word("http://x/A", True),)))),
        ("(`a b`:`c``d`)", NodePattern(Variable("a b"), chain("c`d"))),
        ("(a {foaf:name: 'x'})", NodePattern(A, properties=MapLiteral(((key("foaf", "name"), Literal("x")),)))),
        ("(a WHERE a:B)", NodePattern(A, where=LabelPredicate(A, chain("B")))),
        ("(:A WHERE TRUE)", NodePattern(labels=chain("A"), where=Literal(True))),
    ],
)
def test_nodes(text: str, expected: NodePattern) -> None:
    assert node(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A|B", LabelOr((chain("A"), chain("B")))),
        ("A|:B", LabelOr((chain("A"), chain("B")))),
        ("A|B&!C", LabelOr((chain("A"), LabelAnd((chain("B"), LabelNot(chain("C"))))))),
        ("(A|B)&C", LabelAnd((LabelOr((chain("A"), chain("B"))), chain("C")))),
        ("!(A|B)", LabelNot(LabelOr((chain("A"), chain("B"))))),
        ("%", LabelAny()),
        ("!%", LabelNot(LabelAny())),
        ("foaf:Person|Order", LabelOr((chain("foaf", "Person"), chain("Order")))),
        ("match", chain("match")),
    ],
)
def test_label_expressions_on_nodes_edges_and_as_conditions(text: str, expected: object) -> None:
    assert node(f"(a:{text})").labels == expected
    assert edge(f"-[:{text}]->").labels == expected
    assert expression(f"(a:{text})") == LabelPredicate(A, expected)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("words", "mode"),
    [
        ("", MatchMode.DIFFERENT_EDGES),
        ("DIFFERENT EDGES", MatchMode.DIFFERENT_EDGES),
        ("different relationships", MatchMode.DIFFERENT_EDGES),
        ("DIFFERENT EDGE", MatchMode.DIFFERENT_EDGES),
        ("REPEATABLE ELEMENTS", MatchMode.REPEATABLE_ELEMENTS),
        ("DIFFERENT NODES", MatchMode.DIFFERENT_NODES),
        ("INDUCED", MatchMode.INDUCED),
    ],
)
def test_match_modes(words: str, mode: MatchMode) -> None:
    assert match(f"{words} (a)-->(b)").mode is mode


def test_several_patterns_and_clauses() -> None:
    statement = query("MATCH (a)-->(b), (c) WHERE a.x = 1 MATCH INDUCED (a)--(b)<--(c) RETURN a")
    first, second = statement.matches
    assert [len(pattern.nodes) for pattern in first.patterns] == [2, 1]
    assert first.where == Comparison(("=",), (Property(A, key("x")), Literal(1)))
    assert [e.direction for e in second.patterns[0].edges] == [Direction.BOTH, Direction.IN]


# --- expressions -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3", Binary("+", Literal(1), Binary("*", Literal(2), Literal(3)))),
        ("1 - 2 - 3", Binary("-", Binary("-", Literal(1), Literal(2)), Literal(3))),
        ("2 ^ 3 ^ 2", Binary("^", Binary("^", Literal(2), Literal(3)), Literal(2))),
        ("-2 ^ 2", Binary("^", Literal(-2), Literal(2))),
        ("-a * b", Binary("*", Unary("-", A), B)),
        ("a--1", Binary("-", A, Literal(-1))),
        ("- -1", Unary("-", Literal(-1))),
        ("a % b / c", Binary("/", Binary("%", A, B), C)),
        ("(1 + 2) * 3", Binary("*", Binary("+", Literal(1), Literal(2)), Literal(3))),
        ("a OR b AND c", Boolean("OR", (A, Boolean("AND", (B, C))))),
        ("a XOR b OR c", Boolean("OR", (Boolean("XOR", (A, B)), C))),
        ("a AND b AND c", Boolean("AND", (A, B, C))),
        ("NOT a = b", Unary("NOT", Comparison(("=",), (A, B)))),
        ("NOT NOT a", Unary("NOT", Unary("NOT", A))),
        ("a < b <= c <> x", Comparison(("<", "<=", "<>"), (A, B, C, X))),
        ("a<b", Comparison(("<",), (A, B))),
        ("a<b AND c>x", Boolean("AND", (Comparison(("<",), (A, B)), Comparison((">",), (C, X))))),
        ("a<-1", Comparison(("<",), (A, Literal(-1)))),
        ("(a)<-(b)", Comparison(("<",), (A, Unary("-", B)))),
        ("(a)-(b)", Binary("-", A, B)),
        ("(a)-[1]", Binary("-", A, ListLiteral((Literal(1),)))),
        ("(a)-[x]", Binary("-", A, ListLiteral((X,)))),
        ("a STARTS WITH 'x' AND b", Boolean("AND", (StringPredicate("STARTS WITH", A, Literal("x")), B))),
        ("a ENDS WITH b + c", StringPredicate("ENDS WITH", A, Binary("+", B, C))),
        ("a CONTAINS b", StringPredicate("CONTAINS", A, B)),
        ("a =~ '.*'", StringPredicate("=~", A, Literal(".*"))),
        ("a IN [1, 2] = b", Comparison(("=",), (In(A, ListLiteral((Literal(1), Literal(2)))), B))),
        ("a IS NULL", IsNull(A)),
        ("a.x IS NOT NULL", IsNull(Property(A, key("x")), True)),
        ("a:Person", LabelPredicate(A, chain("Person"))),
        ("a IS Person", LabelPredicate(A, chain("Person"))),
        ("a.foaf:age", Property(A, key("foaf", "age"))),
        ("a.<http://x/y>", Property(A, KeyName((Word("http://x/y", True),)))),
        ("a.count", Property(A, key("count"))),
        ("a.match.limit", Property(Property(A, key("match")), key("limit"))),
        ("a = <http://x/y>", Comparison(("=",), (A, IriLiteral("http://x/y")))),
        ("$x", Parameter("x")),
        ("$1", Parameter("1")),
        ("$`x y`", Parameter("x y")),
        ("count(*)", CountStar()),
        ("Count ( * )", CountStar()),
        ("count(DISTINCT a)", FunctionCall("count", (A,), True)),
        ("coalesce(a, 1)", FunctionCall("coalesce", (A, Literal(1)))),
        ("duration.between(a, b)", FunctionCall("duration.between", (A, B))),
        ("exists(a.x)", FunctionCall("exists", (Property(A, key("x")),))),
        ("date().year", Property(FunctionCall("date", ()), key("year"))),
        ("[]", ListLiteral(())),
        ("[x IN a, b]", ListLiteral((In(X, A), B))),
        ("[[1], []]", ListLiteral((ListLiteral((Literal(1),)), ListLiteral(())))),
        ("{}", MapLiteral(())),
        ("{limit: a:B}", MapLiteral(((key("limit"), LabelPredicate(A, chain("B"))),))),
        (
            "{a: {b: null}, foaf:c: 2}",
            MapLiteral(((key("a"), MapLiteral(((key("b"), Literal(None)),))), (key("foaf", "c"), Literal(2)))),
        ),
    ],
)
def test_expressions(text: str, expected: Expression) -> None:
    assert expression(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "(a)-[:knows]->(b)",
        "(a)-->()",
        "(a)--(b)",
        "(a)<-[e:k]-(b)",
        "(:A)<--(b)",
        "(WHERE TRUE)-->()",
        "(IS A)-->()",
        "(is)-->()",
        "({x: 1})-->()",
    ],
)
def test_a_pattern_can_be_a_condition(text: str) -> None:
    predicate = PatternPredicate(path(text))
    assert match(f"(a) WHERE {text}").where == predicate
    assert match(f"(a) WHERE NOT ({text}) AND a<-1").where == Boolean(
        "AND", (Unary("NOT", predicate), Comparison(("<",), (A, Literal(-1))))
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("-0x8000000000000000", -(2**63)),
        ("0xfF", 255),
        ("0o17", 15),
        ("1_000", 1000),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("-1.5E-2", -0.015),
        ("'a'", "a"),
        ('"a\'b"', "a'b"),
        (r"'a\'b\n\\'", "a'b\n\\"),
        ("'it''s'", "it's"),
        (r"'\u00e9\uD83D\uDE00'", "é\N{GRINNING FACE}"),
        (r"'\U01F600'", "\N{GRINNING FACE}"),
        (r"'\U0001F600'", "\N{GRINNING FACE}"),
        ("'a // b; /* c'", "a // b; /* c"),
        ("true", True),
        ("False", False),
        ("NULL", None),
    ],
)
def test_literals(text: str, value: object) -> None:
    literal = expression(text)
    assert isinstance(literal, Literal)
    assert (literal.value, type(literal.value)) == (value, type(value))


# --- RETURN ----------------------------------------------------------------------------------------------------


def test_return_with_everything() -> None:
    returns = query(
        "RETURN DISTINCT a . x  AS limit, (a+b), count(*) ORDER BY a DESC, b.x ASCENDING OFFSET $s LIMIT 2"
    ).returns
    assert [(item.text, item.alias) for item in returns.items] == [
        ("a . x", "limit"),
        ("(a+b)", None),
        ("count(*)", None),
    ]
    assert returns.distinct
    assert [(item.expression, item.descending) for item in returns.order_by] == [
        (A, True),
        (Property(B, key("x")), False),
    ]
    assert (returns.skip, returns.limit) == (Parameter("s"), Literal(2))


def test_star() -> None:
    returns = query("MATCH (a) RETURN *, a.x AS y SKIP 1").returns
    assert (returns.star, len(returns.items), returns.skip) == (True, 1, Literal(1))


def test_keywords_name_things_where_the_grammar_expects_none() -> None:
    statement = query("match (order)-[skip:limit]->(by) return order, skip.limit as return order by order limit 3")
    assert [item.text for item in statement.returns.items] == ["order", "skip.limit"]
    assert statement.returns.items[1].alias == "return"
    assert statement.returns.order_by[0].expression == Variable("order")


# --- spans -----------------------------------------------------------------------------------------------------


def test_spans_reproduce_the_source() -> None:
    text = (
        "SELECT 1; /* c */ MATCH (a:A|B {x: 'y'})-[e:k]->(b)\n WHERE (a.x + 1) * 2 > 3 RETURN a.x AS n ORDER BY n DESC;"
    )
    statement = parse_script(text)[1]
    assert isinstance(statement, Query)

    def source(thing: object) -> str:
        span = thing.span  # type: ignore[attr-defined]
        return text[span.start : span.end]

    clause, returns = statement.matches[0], statement.returns
    pattern = clause.patterns[0]
    assert source(statement) == text[18:-1]
    assert source(pattern) == "(a:A|B {x: 'y'})-[e:k]->(b)"
    assert [source(n) for n in pattern.nodes] == ["(a:A|B {x: 'y'})", "(b)"]
    assert source(pattern.edges[0]) == "-[e:k]->"
    assert source(pattern.nodes[0].labels) == "A|B"
    assert source(pattern.nodes[0].properties) == "{x: 'y'}"
    assert isinstance(clause.where, Comparison)
    assert [source(operand) for operand in clause.where.operands] == ["(a.x + 1) * 2", "3"]
    assert source(returns.items[0]) == "a.x AS n"
    assert source(returns.items[0].expression) == "a.x"
    assert source(returns.order_by[0]) == "n DESC"
