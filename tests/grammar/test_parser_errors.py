"""What the parser says of text it does not take: the type, the place, what was expected, a hint."""

from __future__ import annotations

import random
import sys

import pytest
from lark import UnexpectedToken
from lark.utils import TextSlice

from graphdb.common.caches import TextCache
from graphdb.common.errors import GraphDBError, NotSupportedError, ParseError
from graphdb.grammar.lexing import scan
from graphdb.grammar.machine import Outline, Stopped
from graphdb.grammar.parser import _machine, parse, parse_script
from graphdb.grammar.tables import lark


def error(text: str) -> GraphDBError:
    with pytest.raises(GraphDBError) as caught:
        parse_script(text)
    return caught.value


@pytest.mark.parametrize(
    ("text", "construct", "at", "instead"),
    [
        ("MATCH (a)~[x]~(b) RETURN a", "edge patterns with ~", "~[", "in either direction is written --"),
        ("MATCH (a:$(x)) RETURN a", "dynamic labels", "$(x", ""),
        ("INSERT (a)-[:X]->(b)", "INSERT", "INSERT", "CREATE does the same"),
        ("MATCH (a) FILTER a.x = 1 RETURN a", "FILTER", "FILTER", "WITH * WHERE"),
        ("LOAD CSV FROM 'x' AS row RETURN row", "LOAD CSV", "LOAD", "LOAD FROM (SELECT"),
        ("RETURN date '2020-01-01'", "temporal literals", "date", "date('2026-11-28')"),
        ("MATCH (a) RETURN a.x, count(*) GROUP BY a.x", "GROUP BY", "GROUP", "the columns that are no aggregates"),
    ],
)
def test_what_is_not_supported_yet_is_named_at_its_place(text: str, construct: str, at: str, instead: str) -> None:
    found = error(text)
    assert isinstance(found, NotSupportedError)
    assert construct in found.message
    assert found.message.endswith("not supported yet")
    assert instead in (found.hint or "")
    assert found.column == text.index(at) + 1


@pytest.mark.parametrize(
    ("text", "at", "message"),
    [
        ("MATCH (a RETURN a", "RETURN", "')'"),
        ("MATCH (a)-[:x->(b) RETURN a", "->", "']'"),
        ("MATCH (a) RETURN", "", "an expression"),
        ("MATCH (a) WHERE RETURN a", "RETURN", "an expression"),
        ("MATCH (a)", "", "RETURN"),
        ("RETURN 1,", "", "an expression"),
        ("RETURN (1", "", "')'"),
        ("RETURN {a 1}", "1", "':'"),
        ("RETURN a b", "b", "','"),
        ("MATCH (match) RETURN 1", "match)", "a name"),
        ("PREFIX foaf <http://x/>", "<", "':'"),
        ("RETURN 'a", "'a", "the string that begins here is not closed"),
        ("RETURN `a", "`a", "the quoted name that begins here is not closed"),
        ("RETURN 1 /* a", "/*", "the comment that begins here is not closed"),
        ("RETURN 1 # 2", "#", "unexpected character '#'"),
        (r"RETURN 'ab\qc'", r"\q", "unknown escape"),
        (r"RETURN '\uD83D'", r"\uD83D", "surrogate"),
        (r"RETURN '\u12'", r"\u12", "unknown escape"),
        ("RETURN 0x", "0x", "is not a number"),
        ("RETURN 12ab", "12ab", "is not a number"),
        ("RETURN 1, 9223372036854775808", "922", "out of range"),
        ("RETURN 1 - -9223372036854775809", "922", "out of range"),
        ("RETURN 1 - (9223372036854775808)", "922", "out of range"),
        ("RETURN 1e999", "1e999", "out of range"),
        ("RETURN (a+b)(c)", "(a+b)", "cannot be called"),
        ("RETURN sum(*)", "sum", "only count takes *"),
        ("MATCH (a) WHERE exists(1) RETURN a", "1", "exists takes a property or a pattern"),
        ("MATCH (a) RETURN exists(a.x + 1)", "a.x", "exists takes a property or a pattern"),
        ("CREATE (a), ALL (b)", "ALL", "CREATE takes a plain path"),
        ("MERGE ALL (b)", "ALL", "MERGE takes a plain path"),
        ("MATCH (a)->{3,1}(b) RETURN a", "{3", "the upper bound 1 is below the lower one"),
        ("MATCH (a)((x)-->(y)){2,0}(b) RETURN a", "{2", "the upper bound 0 is below the lower one"),
        ("MATCH (a)-->{1,3000000000}(b) RETURN a", "300", "3000000000 is out of range"),
        ("MATCH (a)-[*1..99999999999999999999]->(b) RETURN a", "999", "out of range"),
        ("MATCH p = SHORTEST 3000000000 (a)-->+(b) RETURN p", "300", "out of range"),
        ("MATCH (a)-[*1..2]->+(b) RETURN a", "-[", "repeated in its brackets or after them"),
        ("MATCH (a)-[*]-{2}(b) RETURN a", "-[", "repeated in its brackets or after them"),
        ("MATCH ((a)){2} RETURN a", "((a", "what is repeated needs an edge"),
        ("MATCH (a) (((x)))+ (b) RETURN a", "(((x", "what is repeated needs an edge"),
        ("RETURN 1 AS Null", "Null", "Null is a value, not a name"),
        ("UNWIND [1] AS true RETURN 1", "true", "true is a value, not a name"),
        ("WITH 1 AS false RETURN 1", "false", "false is a value, not a name"),
        ("CREATE TABLE a.b.c.d AS RETURN 1", "a.b", "at most three parts"),
        ("CREATE TABLE 'a' AS RETURN 1", "'a'", "double quotes"),
        *(
            (text.replace("?", name), name, message)
            for name, message in (("``", "at least one character"), ("`x\0y`", "a NUL character"))
            for text in (
                "MATCH (a:A) RETURN a AS ?",
                "MATCH (?:A) RETURN 1",
                "MATCH ()-[?]->() RETURN 1",
                "RETURN [? IN [1] | 1]",
                "MATCH ? = (a)-->() RETURN 1",
                "UNWIND [1] AS ? RETURN 1",
                "WITH 1 AS ? RETURN 1",
                "CREATE TABLE ? AS RETURN 1",
                "CREATE CONTINUOUS QUERY ? AS MATCH (a) RETURN a",
                "CALL p() YIELD a AS ? RETURN 1",
            )
        ),
        ("CREATE (a:``)", "``", "at least one character"),
        ("MATCH (a)-[:A|``]->(b) RETURN 1", "``", "at least one character"),
    ],
)
def test_mistakes_and_their_places(text: str, at: str, message: str) -> None:
    found = error(text)
    assert isinstance(found, ParseError)
    assert message in found.message
    assert found.column == (text.index(at) if at else len(text)) + 1


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("RETURN cuont(*)", "did you mean count(*)?"),
        ("RETURN sum(*)", None),
        ("RETURN 1 # 2", "a comment begins with //"),
        ("RETURN @a", "a parameter is written $name"),
        ("RETURN {a}", "a parameter is written $a, a map {key: value}"),
        ("MATCH (a {k: :k}) RETURN a", "a parameter is written $name"),
        ("MATCH (a {k: %s}) RETURN a", "a parameter is written $name"),
        ("MATCH (a) -- all\nRETURN a", "a comment begins with //, and a vertex with a bracket: --(b)"),
        ("RETURN “a”", 'did you mean "?'),
        ("MATCH (a)–[e]→(b) RETURN a", "did you mean -?"),
        ("MATCH (a)-[e]→(b) RETURN a", "did you mean ->?"),
        ("MATCH (a) RETURN a; LIMIT 3", "LIMIT goes on with a statement: does one end too early, by a ; before it?"),
        ("METCH (a) RETURN a", "did you mean MATCH?"),
        ("MATCH (a) RETRUN a", "did you mean RETURN?"),
        ("MATCH (a) WHER a.x RETURN a", "did you mean WHERE?"),
        ("MATCH (a) RETURN a LIMT 3", "did you mean LIMIT?"),
        ("LOAD 'x' FORMT nt", "did you mean FORMAT?"),
        ("RETURN 1 == 2", "equality is written ="),
        ("MATCH (a) RETURN a LIMIT 3 OFFSET 6", "OFFSET stands before LIMIT: … OFFSET 20 LIMIT 10"),
        ("MATCH (a {k: ?}) RETURN a", "a parameter is written $name, or $1 where values have places"),
        ("RETURN 1 != 2", "inequality is written <>"),
        ("MATCH (a)-[:knows]>(b) RETURN a", "an edge to the right is written -[:knows]->"),
        ("MATCH (a)<[:knows]-(b) RETURN a", "an edge to the left is written <-[:knows]-"),
        ("MATCH (a)->[:knows]->(b) RETURN a", "the arrow stands behind the brackets: -[:knows]->"),
        ("MATCH (a)-[:knows*1..n]->(b) RETURN a", "how many edges is a number, which no value of a row decides: *1..3"),
        (
            "MATCH (a)-[:knows*1..3 (r, n | WHERE r.x > 1)]->(b) RETURN a",
            "what a path passes is tested behind it: WHERE all(r IN relationships(p) WHERE r.since > 2000)",
        ),
        ("RETURN 1 => 2", "at least is written >="),
        ("MATCH (a)=>(b) RETURN a", "an edge is written -->"),
        ("RETURN true && false", "write AND"),
        ("RETURN true & false", "write AND"),
        ("RETURN !true", "write NOT"),
        ("RETURN 'a' LIKE 'b'", "write CONTAINS, STARTS WITH or ENDS WITH, or =~ and a regular expression"),
        ("RETURN 1 BETWEEN 0 AND 2", "comparisons make a chain: 1 <= a.n <= 9"),
        ("RETURN 'a' ~ 'b'", "a regular expression is asked for by =~"),
        (
            "MATCH p = SHORTEST 2 GROUPS TRAIL (a)-->+(b) RETURN p",
            "a mode stands before GROUPS: SHORTEST 2 TRAIL GROUPS",
        ),
        ("RETURN 1 IS 2", "equality is written ="),
        ("RETURN 1 IN (1, 2)", "a list stands in square brackets: IN ['a', 'b']"),
        (
            "MATCH (a) RETURN a WHERE a.n = 1",
            "WHERE stands before RETURN; of what is computed or counted: WITH a, count(*) AS n WHERE n > 1 RETURN a, n",
        ),
        ("CREATE (a {k = 1})", "a value follows a colon: {name: 'Ada'}"),
        ("MATCH (a)-[:A*1-3]->(b) RETURN a", "how many edges is written *1..3"),
        ("MATCH (a)-[:A..3]->(b) RETURN a", "how many edges is written *1..3"),
        ("RETURN [2 * 3 : 4]", None),
        ("MATCH (a)--[:A]->(b) RETURN a", "an edge with brackets has one dash before them: -[:knows]->"),
        ("MATCH (a)-KNOWS->(b) RETURN a", "the label of an edge stands in brackets: -[:KNOWS]->"),
        (
            "MATCH (a)-[:A* ALL SHORTEST 1..3]->(b) RETURN a",
            "which paths are found is said before them: MATCH p = ALL SHORTEST (a)-[:knows]->+(b)",
        ),
        (
            "MATCH (a)-[:A* TRAIL 1..3]->(b) RETURN a",
            "a mode stands before the path: MATCH p = TRAIL (a)-[:knows]->+(b)",
        ),
        ("MATCH a RETURN a", "vertices stand in brackets: (a)"),
        ("MATCH (a:A AND B) RETURN a", "labels are joined by & and |: (a:Person&Author)"),
        ("MATCH (a:A, B) RETURN a", "labels are joined by & and |: (a:Person&Author)"),
        ("MATCH (a:'A') RETURN a", "a name is written without quotes, or in back-quotes: `big city`"),
        ("MATCH (a {'k': 1}) RETURN a", "a key is written without quotes: {name: 'Ada'}"),
        ("RETURN 1 AS 'a b'", "a name is written without quotes, or in back-quotes: `big city`"),
        ("UNWIND [1] x RETURN x", "a name follows AS: AS x"),
        ("MATCH (a) RETURN a.k k", "a name follows AS: AS k"),
        ("MATCH (a) RETURN a->k", "a property is written a.k"),
        ("MATCH (a) RETURN a.*", "all properties of a vertex or an edge: properties(a), or a {.*}"),
        ("RETURN a::int", "toInteger(…), toFloat(…), toBoolean(…), toString(…) and date(…) convert values"),
        ("RETURN CAST(1 AS INT)", "toInteger(…), toFloat(…), toBoolean(…), toString(…) and date(…) convert values"),
        ("RETURN 2 ** 3", "a power is written ^"),
        ("RETURN 7 MOD 2", "the rest of a division is written %"),
        ("RETURN a.l[0:1]", "a slice is written with two points: [1..2]"),
        ("RETURN [x for x in l]", "a list of what is left, and made, of another one: [x IN list WHERE x > 1 | x * 2]"),
        ("RETURN 1 NOT IN [1]", "NOT stands before the value: NOT a.x IN ['a', 'b']"),
        ("RETURN 1 IS NOT 2", "inequality is written <>"),
        ("MATCH (a) WHERE EXISTS (a)-[:A]->() RETURN a", "a pattern stands in braces: EXISTS { (a)-[:knows]->() }"),
        ("MATCH (a) RETURN a LIMIT 1 ORDER BY a.k", "ORDER BY stands before SKIP and LIMIT"),
        ("MATCH (a) LIMIT 1 RETURN a", "ORDER BY, SKIP and LIMIT stand behind what RETURN or WITH yields"),
        ("MATCH (a) RETURN a LIMIT 1, 2", "so many rows after others: SKIP 1 LIMIT 2"),
        ("MATCH (a) SELECT a", "what comes back stands behind RETURN: MATCH (a) RETURN a.name"),
        ("MATCH (a) RETURN TOP 3 a", "LIMIT 3 at the end returns three rows"),
        ("MATCH (a) USING INDEX a:A(k) RETURN a", "the planner chooses where a match begins: leave USING out"),
        ("MATCH a:B RETURN a", "vertices stand in brackets: (a)"),
        ("MATCH (x) CREATE a-[:A]->b", "vertices stand in brackets: (a)"),
        ("MATCH (a RETURN a", "the ( in column 7 is not closed: is a ) missing?"),
        ("RETURN 1;\n MATCH (a RETURN a", "the ( in column 8 is not closed: is a ) missing?"),
        ("MATCH (a\n  RETURN a", "the ( in line 1, column 7 is not closed: is a ) missing?"),
        ("RETURN [1, 2", "the [ in column 8 is not closed: is a ] missing?"),
        (r"RETURN 'C:\q'", r"write \\ for a backslash"),
        ("MATCH (set) RETURN 1", "a name that is also a keyword can stand in back-quotes: `set`"),
    ],
)
def test_hints(text: str, hint: str | None) -> None:
    found = error(text)
    assert isinstance(found, ParseError)
    assert found.hint == hint


def test_the_place_counts_from_the_beginning_of_the_script() -> None:
    found = error("SELECT 1;\n\nMATCH (a)\n  RETRUN a;")
    assert (found.line, found.column) == (4, 3)
    assert str(found).splitlines()[1:3] == ["    RETRUN a;", "    ^"]


def test_expectations_are_few_and_readable() -> None:
    message = error("MATCH (a) RETURN a a").message
    listed = message.split("expected ")[1]
    assert len(listed.replace(" or ", ", ").split(", ")) <= 7
    assert not {"LPAR", "COMMA", "NAME", "KEYWORD_NAME"} & set(listed.replace(",", "").split())


@pytest.mark.parametrize(
    "text",
    [
        "RETURN " + "(" * 5000 + "1" + ")" * 5000,
        "RETURN " + "[" * 5000,
        "RETURN " + "1+" * 5000 + "1",
        "RETURN " + "NOT " * 5000 + "true",
        "RETURN " + "-" * 5000 + "a",
        "RETURN a" + ".b" * 5000,
    ],
)
def test_what_is_too_deep_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match="deeper"):
        parse(text + (" AND 1 +" if text.endswith("[") else ""))


WRITTEN = [
    "MATCH p = (a:A|B {k: [1, 'x', $y]})-[r:R*1..3 {w: 2}]->(b) WHERE a.k > 1 AND NOT b:C OR a.s STARTS WITH 'a' RETURN p",
    "UNWIND [x IN range(1, 3) WHERE x % 2 = 1 | {k: x}] AS m WITH m.k AS k ORDER BY k DESC SKIP 1 LIMIT 2 RETURN DISTINCT k",
    "RETURN CASE a WHEN 1 THEN -2 ELSE reduce(s = 0, i IN l | s + i) END AS c, count(*), l[1..], all(x IN l WHERE x > 0)",
    "MERGE (a:A {k: 1}) ON CREATE SET a.x = 1, a += {y: 2} ON MATCH SET a:B REMOVE a.z DETACH DELETE a",
    "CALL (a) { MATCH (a)-->(b) RETURN b } RETURN EXISTS { (b)<--() }, COUNT { MATCH (n) }, [(b)--(c) | c.k] UNION ALL RETURN 1",
    "LOAD 'x' FORMAT csv LABEL a AS x.y",
    "EXPLAIN MATCH ANY SHORTEST (a)((x)-[:R]->(y)){1,3}(b), DIFFERENT NODES (c) RETURN *",
    "FOREACH (x IN [1, 2] | CREATE (:A {k: x})-[:R]->(:B))",
]
TOKENS = [token.value for text in WRITTEN for token in scan(text, 0, len(text))]


def test_where_and_what_is_expected_is_what_larks_own_loop_says() -> None:
    chance = random.Random(16)
    stops = 0
    for _ in range(400):
        text = chance.choice(WRITTEN)
        parts = [token.value for token in scan(text, 0, len(text))]
        for _ in range(chance.randint(1, 2)):
            at = chance.randrange(len(parts))
            parts[at : at + chance.randint(0, 2)] = chance.choices(TOKENS, k=chance.randint(0, 2))
        text = " ".join(parts[: chance.randint(1, len(parts))] if chance.random() < 0.3 else parts)
        found: object = None
        expected: object = None
        try:
            _machine().parse(text, 0, len(text), Outline())
        except Stopped as stop:
            found = stop.at, stop.expected
        except GraphDBError as failure:
            found = failure.message
        try:
            lark().parse(TextSlice(text, 0, len(text)))
        except UnexpectedToken as stop:
            ended = stop.token.type == "$END"
            expected = None if ended else stop.token.start_pos, stop.accepts
            stops += 1
        except GraphDBError as failure:
            expected = failure.message
        assert found == expected, text
    assert stops > 200


MANY = 500
LONG = {
    "a list": "[" + "1, 'a', " * MANY + "1]",
    "lists": "[" + "[1, 'a'], " * MANY + "[]]",
    "a map": "{" + ", ".join(f"k{i}: {i}" for i in range(MANY)) + "}",
    "conditions": "a.k = 1 OR " * 240 + "(" + " AND ".join(f"a.k <> {i}" for i in range(MANY)) + ")",
    "choices": "CASE " + "WHEN 1 = 2 THEN 3 " * MANY + "END",
    "columns": ", ".join(f"$p{i} AS c{i}" for i in range(MANY)) + ", 1",
}


@pytest.mark.parametrize("form", LONG)
@pytest.mark.parametrize("wrong", ["RETURN {} AS x", "RETURN {} AS x RETRUN", "RETURN '\\q', {} AS x"])
def test_a_mistake_in_a_long_text_costs_little_more_than_the_text_without_it(
    form: str, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def steps(text: str, right: bool) -> int:
        """How many functions are called, Python's and C's: the same on every machine."""
        monkeypatch.setattr("graphdb.grammar.parser._SCRIPTS", TextCache(most=1, characters=1))
        called = 0

        def count(frame: object, event: str, argument: object) -> None:
            nonlocal called
            called += event in ("call", "c_call")

        sys.setprofile(count)
        try:
            parse(text)
            assert right
        except ParseError:
            assert not right
        finally:
            sys.setprofile(None)
        return called

    text = LONG[form]
    spoilt = text[:-1] + " RETURN" if wrong == "RETURN {} AS x" else text
    parse("RETURN 1")  # reads the tables
    correct, mistaken = steps(f"RETURN {text} AS x", True), steps(wrong.replace("{}", spoilt), False)
    assert correct > MANY  # of its tokens, at least
    assert mistaken < 1.5 * correct, (mistaken, correct)
