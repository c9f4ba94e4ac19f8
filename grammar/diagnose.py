"""What to say when the parser stops: not supported yet, or a mistake, and then what was expected there.

The grammar holds only what runs.  Where it stops at a construct of openCypher or GQL that it leaves out, the tokens
around the place tell which one, and the error is :class:`NotSupportedError` with that name; anything else is a
:class:`ParseError`.  None of this costs a correct statement anything.
"""

from __future__ import annotations

from collections.abc import Iterable

from graphdb.common.errors import GraphDBError, NotSupportedError, ParseError, nearest
from graphdb.grammar.lexing import Token, brackets
from graphdb.grammar.spelling import KEYWORDS, RESERVED

_CLAUSES = {
    "INSERT": "INSERT is",
    "FILTER": "FILTER is",
    "LET": "LET is",
    "FOR": "FOR is",
    "FINISH": "FINISH is",
    "NEXT": "NEXT is",
    "GROUP": "GROUP BY is",
    "EXCEPT": "EXCEPT is",
    "INTERSECT": "INTERSECT is",
    "OTHERWISE": "OTHERWISE is",
    "USE": "USE is",
}
_CREATED = {
    "CONSTRAINT": "CREATE CONSTRAINT is",
}
_INSTEAD = {
    "CREATE CONSTRAINT is": "no index is needed to look up properties; MERGE finds or makes one vertex of a key",
    "GROUP BY is": "rows are grouped by the columns that are no aggregates: RETURN a.name, count(*)",
    "INSERT is": "CREATE does the same",
    "FILTER is": "WITH * WHERE … does the same",
    "LET is": "WITH *, … AS x does the same",
    "FOR is": "UNWIND … AS x does the same",
    "edge patterns with ~ are": "an edge in either direction is written --",
    "temporal literals are": "date('2026-11-28') makes one, and so do datetime(…) and duration(…)",
    "LOAD CSV is": "LOAD 'people.csv' AS LABEL Person (or AS TYPE KNOWS); LOAD FROM (SELECT … FROM 'people.csv')",
}
"""What does the same."""
_TEMPORAL = {"DATE", "TIME", "DATETIME", "TIMESTAMP", "DURATION"}

_READABLE = {
    "NAME": "a name",
    "IRI": "an IRI",
    "STRING": "a string",
    "INTEGER": "a number",
    "$END": "the end of the statement",
    "COMMA": "','",
    "COLON": "':'",
    "LABEL": "LABEL",
    "TYPE": "TYPE",
    "OF": "OF",
    "SIZE": "SIZE",
    "UP": "UP",
    "TO": "TO",
    "AT_LEAST": "'>='",
    "LPAR": "'('",
    "RPAR": "')'",
    "LSQB": "'['",
    "RSQB": "']'",
    "LBRACE": "'{'",
    "RBRACE": "'}'",
    "DOT": "'.'",
    "MINUS": "'-'",
    "MORETHAN": "'>'",
    "LESSTHAN": "'<'",
    "EQUAL": "'='",
    "VBAR": "'|'",
    "AMPERSAND": "'&'",
    "PERCENT": "'%'",
    "BANG": "'!'",
    "STAR": "'*'",
}
_SHOWN = 6
_LONGEST = 40


def diagnose(text: str, end: int, tokens: list[Token], index: int, expected: set[str]) -> GraphDBError:
    """Return the error for a parser that stopped at ``tokens[index]`` (at ``end`` if that is past the last).

    ``expected`` names the terminals it would have accepted there.
    """
    place = _Place(text, tokens, index, expected)
    found = _unsupported(place)
    if found is not None:
        what, at = found
        hint = _INSTEAD.get(what)
        return NotSupportedError(f"{what} not supported yet", text=text, position=tokens[at].start_pos, hint=hint)
    position = tokens[index].start_pos if index < len(tokens) else end
    stopped = f"unexpected {_quoted(tokens[index])}" if index < len(tokens) else "the statement ends too early"
    wanted = _expectation(expected)
    message = f"{stopped}: expected {wanted}" if wanted else stopped
    return ParseError(message, text=text, position=position, hint=_hint(place))


class _Place:
    """The token where the parser stopped, and the tokens around it."""

    def __init__(self, text: str, tokens: list[Token], index: int, expected: set[str]) -> None:
        self.text = text
        self.tokens = tokens
        self.index = index
        self.expected = expected
        _, self.unclosed = brackets(tokens[:index])
        self.opening = self.unclosed[-1] if self.unclosed else -1
        self.value = self.at(0)
        self.operand = "INTEGER" in expected
        """An expression may begin here."""
        self.operator = "SLASH" in expected
        """An expression may go on here."""

    def at(self, offset: int, base: int | None = None) -> str:
        """The text of a token near the place (or near ``base``), words in capitals; "" past either end."""
        index = (self.index if base is None else base) + offset
        return self.tokens[index].value.upper() if 0 <= index < len(self.tokens) else ""

    def written(self, offset: int = 0) -> str:
        """The text of a token near the place, as it is written."""
        return str(self.tokens[self.index + offset].value)

    def is_word(self, offset: int = 0) -> bool:
        text = self.at(offset)
        return bool(text) and (text[0].isalpha() or text[0] in "_`")

    def is_string(self, offset: int = 0) -> bool:
        return self.at(offset)[:1] in ("'", '"')


def _unsupported(place: _Place) -> tuple[str, int] | None:
    """The construct that stands here and is not supported yet, and the index of the token to show."""
    if place.index < len(place.tokens):
        for recognise in (_in_path, _in_element, _in_expression, _clause):
            found = recognise(place)
            if found is not None:
                return found
    return None


def _in_path(place: _Place) -> tuple[str, int] | None:
    """Around nodes and edges."""
    value, index = place.value, place.index
    if (value == "~" and not (place.operator and place.is_string(1))) or (value == "<" and place.at(1) == "~"):
        return "edge patterns with ~ are", index
    return None


def _in_element(place: _Place) -> tuple[str, int] | None:
    """Inside a node's or an edge's brackets."""
    value, index = place.value, place.index
    if place.opening < 0 or place.operand or place.operator:
        return None
    inside_edge = place.at(0, place.opening) == "[" and place.at(-1, place.opening) == "-"
    inside_node = place.at(0, place.opening) == "("
    if value.startswith("$") and (inside_edge or inside_node) and place.at(-1) in (":", "|", "&", "!"):
        return "dynamic labels are", index
    return None


def _in_expression(place: _Place) -> tuple[str, int] | None:
    """Where an expression begins or goes on."""
    if place.operator and place.is_string() and place.at(-1) in _TEMPORAL:
        return "temporal literals are", place.index - 1
    return None


def _clause(place: _Place) -> tuple[str, int] | None:
    """A clause or statement, outside all brackets."""
    value, index = place.value, place.index
    if place.opening >= 0:
        return None
    if value in _CREATED and "CREATE" in (place.at(-1), place.at(-2), place.at(-3), place.at(-4)):
        return _CREATED[value], index
    if place.at(-1) in _CREATED and place.at(-2) == "CREATE":
        return _CREATED[place.at(-1)], index - 1
    if place.at(-1) == "LOAD" and value == "CSV":
        return "LOAD CSV is", index - 1
    if value in _CLAUSES:
        return _CLAUSES[value], index
    return None


def _quoted(token: Token) -> str:
    text = token.value if len(token.value) <= _LONGEST else token.value[:_LONGEST] + "…"
    return f"'{text}'" if token.type == "OPERATOR" else text


def _expectation(expected: set[str]) -> str:
    """The terminals in words, at most six, those that say most first."""
    left = {name for name in expected if not name.startswith("_")}
    phrases = []
    if {"INTEGER", "STRING"} <= left:
        phrases.append("an expression")
        left -= {"INTEGER", "FLOAT", "STRING", "NAME", "IRI", "LPAR", "LSQB", "LBRACE", "PARAMETER", "PLUS", "MINUS"}
        left -= {"TRUE", "FALSE", "NULL", "NOT", "DISTINCT", "ALL"}
    if "SLASH" in left:
        left -= {"PLUS", "MINUS", "STAR", "SLASH", "PERCENT", "CIRCUMFLEX", "EQUAL", "UNEQUAL", "LESSTHAN", "MORETHAN"}
        left -= {"AT_MOST", "AT_LEAST", "STARTS", "ENDS", "CONTAINS", "IN", "IS", "DOT", "LPAR", "COLON", "AND", "OR"}
        left -= {"XOR", "LBRACE", "LSQB"}
        phrases.append("an operator")
    left -= {name for name in left if name not in _READABLE and name not in KEYWORDS}
    if "NAME" in left:
        left.discard("KEYWORD_NAME")
    signs = sorted((name for name in left if name in _READABLE), key=list(_READABLE).index)
    words = sorted(name for name in left if name not in _READABLE)
    phrases = [*(_READABLE[name] for name in signs if name != "$END"), *words, *phrases]
    if "$END" in left:
        phrases.append(_READABLE["$END"])
    if len(phrases) > _SHOWN:
        phrases = [*phrases[:_SHOWN], "…"]
        return ", ".join(phrases)
    return " or ".join(filter(None, [", ".join(phrases[:-1]), *phrases[-1:]]))


def _hint(place: _Place) -> str | None:
    """What was probably meant."""
    before, value, after = place.at(-1), place.value, place.at(1)
    adjoining = {(before, value), (value, after)}
    if ("=", "=") in adjoining:
        return "equality is written ="
    if ("!", "=") in adjoining:
        return "inequality is written <>"
    if ("&", "&") in adjoining:
        return "write AND"
    if ("=", ">") in adjoining:
        return "at least is written >=" if place.operand else "an edge is written -->"
    if value == "?" and "PARAMETER" in place.expected:
        return "a parameter is written $name, or $1 where values have places"
    if value in ("OFFSET", "SKIP") and "LIMIT" in (place.at(-2), place.at(-3)):
        return f"{value} stands before LIMIT: … {value} 20 LIMIT 10"
    if (value, after) == ("FROM", "GRAPH"):
        return "a named graph is asked for by the edges: (a)-[e]->(b) WHERE 'http://…' IN graphs(e)"
    if (before, value, after) == ("DELETE", "WHERE", "{"):
        return "this is SPARQL; here: MATCH (a)-[e]->(b) WHERE … DELETE e"
    if (found := _of_habit(place)) is not None:
        return found
    if before == "(" and "LBRACE" in place.expected and not place.operand and _is_value(value):
        return f"a vertex that is a value is asked for by a condition: (v WHERE v = {place.written()})"
    if place.is_word():
        words = _words(place.expected)
        close = nearest(value, words, 1)
        if close and len(value) > 2 and close[0] != value:
            return f"did you mean {close[0]}?"
        if value in RESERVED and "NAME" in place.expected and after in (")", "]", ":", "{", ".", ","):
            return f"a name that is also a keyword can stand in back-quotes: `{place.written()}`"
        if (
            {"AS", "SLASH"} <= place.expected
            and value not in KEYWORDS
            and after in ("", ",", "ORDER", "LIMIT", "RETURN")
        ):
            return f"a name follows AS: AS {place.written()}"
    if place.unclosed and (place.index >= len(place.tokens) or place.is_word() or value in ")]}"):
        opening = place.tokens[place.opening]
        closing = {"(": ")", "[": "]", "{": "}"}[opening.value]
        if value != closing:
            return f"the {opening.value} in {_where(place, opening)} is not closed: is a {closing} missing?"
    return None


_HABITS = {
    "LIKE": "write CONTAINS, STARTS WITH or ENDS WITH, or =~ and a regular expression",
    "ILIKE": "write toLower(…) CONTAINS '…', or =~ and a regular expression: =~ '(?i)…'",
    "BETWEEN": "comparisons make a chain: 1 <= a.n <= 9",
    **dict.fromkeys(("~", "REGEXP", "RLIKE", "MATCHES"), "a regular expression is asked for by =~"),
    "&": "write AND",
    "MOD": "the rest of a division is written %",
    "HAVING": "a condition on what is counted: WITH a, count(*) AS n WHERE n > 1 RETURN a, n",
    **dict.fromkeys(("FETCH", "TOP"), "LIMIT 3 at the end returns three rows"),
}
"""Operators and words of other languages behind an expression, and what says the same."""

_PAGES = ("LIMIT", "SKIP", "OFFSET")


def _of_habit(place: _Place) -> str | None:
    """What was meant where something is written as in SQL, Python or another graph database."""
    before, value = place.at(-1), place.value
    opened = place.at(0, place.opening) if place.opening >= 0 else ""
    if place.operator and value in _HABITS:
        return _HABITS[value]
    if place.operator and (value, place.at(1)) == ("NOT", "IN"):
        return "NOT stands before the value: NOT a.x IN ['a', 'b']"
    if place.operand and value == "!":
        return "write NOT"
    if before in ("GROUP", "GROUPS") and value in ("WALK", "TRAIL", "SIMPLE", "ACYCLIC"):
        return f"a mode stands before GROUPS: SHORTEST 2 {value} GROUPS"
    if _is_value(value) and (before == "IS" or (place.at(-2), before) == ("IS", "NOT")):
        return "equality is written =" if before == "IS" else "inequality is written <>"
    if value == "USING":
        return "the planner chooses where a match begins: leave USING out"
    for rule in (_of_clauses, _of_brackets, _of_names, _of_edges):
        if (found := rule(place, before, value, opened)) is not None:
            return found
    return None


def _of_clauses(place: _Place, before: str, value: str, opened: str) -> str | None:
    """Clauses that stand elsewhere here."""
    if opened:
        return None
    if value == "WHERE" and "SKIP" in place.expected:
        return (
            "WHERE stands before RETURN; of what is computed or counted: WITH a, count(*) AS n WHERE n > 1 RETURN a, n"
        )
    if value == "ORDER" and place.at(-2) in _PAGES:
        return "ORDER BY stands before SKIP and LIMIT"
    if value == "," and place.at(-2) == "LIMIT":
        return "so many rows after others: SKIP 1 LIMIT 2"
    if _is_value(value) and before == "TOP":
        return _HABITS["TOP"]
    if value in ("ORDER", *_PAGES) and "MATCH" in place.expected:
        return "ORDER BY, SKIP and LIMIT stand behind what RETURN or WITH yields"
    if value == "SELECT":
        return "what comes back stands behind RETURN: MATCH (a) RETURN a.name"
    return None


def _of_brackets(place: _Place, before: str, value: str, opened: str) -> str | None:
    """What stands in brackets: lists, maps, slices, arguments."""
    function = place.at(-1, place.opening) if opened == "(" else ""
    if value == "," and function == "IN":
        return "a list stands in square brackets: IN ['a', 'b']"
    if value == "=" and opened == "{" and "COLON" in place.expected:
        return "a value follows a colon: {name: 'Ada'}"
    if value == "AS" and function == "CAST":
        return _CONVERSIONS
    if (value in ("FOR", "IF") and opened == "[") or (value in ("WHERE", "|") and function in ("FILTER", "EXTRACT")):
        return "a list of what is left, and made, of another one: [x IN list WHERE x > 1 | x * 2]"
    behind_value = opened == "[" and (place.at(-1, place.opening) in (")", "]") or place.at(-2, place.opening) == ".")
    if before == ":" and behind_value and value.isdecimal():
        return "a slice is written with two points: [1..2]"
    if value == "}" and place.at(-2) == "{" and "COLON" in place.expected:
        return f"a parameter is written ${place.written(-1)}, a map {{key: value}}"
    if value == "*" and before == "." and "NAME" in place.expected:
        return "all properties of a vertex or an edge: properties(a), or a {.*}"
    if value == ":" and opened == "[" and any(place.at(-i) == "EXISTS" for i in range(4, 9)):
        return "a pattern stands in braces: EXISTS { (a)-[:knows]->() }"
    return None


def _of_names(place: _Place, before: str, value: str, opened: str) -> str | None:
    """Names, keys, labels and parameters."""
    if place.is_string() and "NAME" in place.expected and not place.operand:
        if opened == "{":
            return "a key is written without quotes: {name: 'Ada'}"
        return "a name is written without quotes, or in back-quotes: `big city`"
    if (before, value) == (":", ":") and not place.operand:
        return _CONVERSIONS
    if place.operand and value in (":", "%") and place.is_word(1):
        return "a parameter is written $name"
    if place.operand and (before, value) == ("-", ">") and place.is_word(-2) and place.is_word(1):
        return f"a property is written {place.written(-2)}.{place.written(1)}"
    if place.operand and before == value == "*":
        return "a power is written ^"
    labelled = opened == "(" and place.at(-2) in (":", "|", "&", "!")
    if labelled and value in ("AND", "OR", ",") and not (place.operand or place.operator):
        return "labels are joined by & and |: (a:Person&Author)"
    if value in (":", "-") and place.expected == {"EQUAL"}:
        return f"vertices stand in brackets: ({place.written(-1)})"
    if value in ("RETURN", "WHERE", "WITH", ",") and place.expected == {"EQUAL"}:
        return f"vertices stand in brackets: ({place.written(-1)})"
    return None


_CONVERSIONS = "toInteger(…), toFloat(…), toBoolean(…), toString(…) and date(…) convert values"


def _of_edges(place: _Place, before: str, value: str, opened: str) -> str | None:
    """Edges, and how many of them."""
    inside_edge = opened == "[" and place.at(-1, place.opening) == "-" and not place.operator
    if inside_edge and before == "*" and value in ("SHORTEST", "ALL", "BFS", "DFS", "WSHORTEST"):
        return "which paths are found is said before them: MATCH p = ALL SHORTEST (a)-[:knows]->+(b)"
    if inside_edge and before == "*" and value in ("TRAIL", "ACYCLIC"):
        return f"a mode stands before the path: MATCH p = {value} (a)-[:knows]->+(b)"
    if inside_edge and value == "(" and "|" in (place.at(2), place.at(4)):
        return "what a path passes is tested behind it: WHERE all(r IN relationships(p) WHERE r.since > 2000)"
    if (before, value) == ("]", ">"):
        return "an edge to the right is written -[:knows]->"
    if (before, value) == ("<", "["):
        return "an edge to the left is written <-[:knows]-"
    if (before, value) == (">", "[") and place.at(-2) == "-":
        return "the arrow stands behind the brackets: -[:knows]->"
    if inside_edge and place.is_word() and before == "..":
        return "how many edges is a number, which no value of a row decides: *1..3"
    if inside_edge and not place.operand and (place.at(-2) == "*" or value == ".."):
        return "how many edges is written *1..3"
    if (value, before, place.at(-2)) == ("[", "-", "-"):
        return "an edge with brackets has one dash before them: -[:knows]->"
    if not (place.operand or place.operator) and place.is_word() and before == "-":
        if place.at(1) == "-":
            return f"the label of an edge stands in brackets: -[:{place.written()}]->"
        if place.at(-2) == "-":
            return "a comment begins with //, and a vertex with a bracket: --(b)"
    return None


def _is_value(text: str) -> bool:
    return text[:1].isdigit() or text[:1] in ("'", '"', "$") or text in ("TRUE", "FALSE")


def _where(place: _Place, token: Token) -> str:
    """Where an earlier token stands: its column, and its line if that is another one."""
    text, at = place.text, token.start_pos
    stopped = place.tokens[place.index].start_pos if place.index < len(place.tokens) else len(text)
    column = f"column {at - text.rfind(chr(10), 0, at)}"
    return column if "\n" not in text[at:stopped] else f"line {text.count(chr(10), 0, at) + 1}, {column}"


def _words(expected: Iterable[str]) -> list[str]:
    return [name for name in expected if name in KEYWORDS]
