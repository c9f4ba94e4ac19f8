"""Tokens of the pattern language, and the filter between lexer and parser.

:func:`scan` cuts text into tokens that say only how they are spelt.  :class:`TokenFilter`, which the parser reads from,
gives each its grammatical type while the parser runs: a word is a keyword where the parser's state
accepts that keyword and a name elsewhere (``n.count``, ``:Order``, ``AS limit``), and a ``(`` in an expression is
marked where it opens a pattern, found by looking ahead to its closing bracket.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from graphdb.common.errors import ParseError
from graphdb.common.lazy import lazy
from graphdb.common.stopping import EVERY, check_stop
from graphdb.grammar.spelling import IRI, QUOTED, RESERVED, STRING, TRIVIA

DEEPEST = 100
"""Brackets that may stand inside each other."""

_TOKEN = re.compile(
    rf"""(?:(?P<SIGN>\|\||[-+*%^()\[\]{{}},:;|&!~?])
    |(?P<WORD>[^\W\d]\w*)
    |(?P<IRI>{IRI})
    |(?P<FLOAT>\d[\d_]*\.\d[\d_]*(?:[eE][+-]?\d+)?[fFdD]?\b|\.\d[\d_]*(?:[eE][+-]?\d+)?[fFdD]?\b|\d[\d_]*[eE][+-]?\d+[fFdD]?\b)
    |(?P<INTEGER>\d\w*)
    |(?P<STRING>{STRING})
    |(?P<NAME>{QUOTED})
    |(?P<PARAMETER>\$(?:\w+|{QUOTED}))
    |(?P<OPERATOR>(?!/\*)(?:<=|>=|<>|=~|\.\.|[/=<>.$])))(?:{TRIVIA})*""",
    re.VERBOSE | re.DOTALL,
)
"""A token and what stands between it and the next; SIGN are the operators that no other token begins with."""
_TRIVIA = re.compile(TRIVIA, re.DOTALL)

_TEXT = r"""(?:'(?:[^'\\]++|\\.|'')*+'|"(?:[^"\\]++|\\.|"")*+")"""
_LIST = re.compile(
    rf"(?:(?P<INTEGERS>\[\s*+-?\d++(?:\s*+,\s*+-?\d++)*+\s*+\])"
    rf"|(?P<STRINGS>\[\s*+{_TEXT}(?:\s*+,\s*+{_TEXT})*+\s*+\]))(?:{TRIVIA})*",
    re.DOTALL,
)
"""A list of integers, or of strings, as one token and what stands between it and the next."""
_LONG = 256
"""Characters from which on such a list is one token: its items would take ten times the time and memory."""
_ALWAYS_THE_SAME = frozenset("),.]{}-+*/%^=<>&!~?;$") | {"<=", ">=", "<>", "=~", "..", "||"}
"""Operators whose type does not depend on the parser's state."""

_CLOSING = {"(": ")", "[": "]", "{": "}"}
QUANTIFIERS = frozenset({"ALL", "ANY", "NONE", "SINGLE"})
SHORTEST = frozenset({"SHORTESTPATH", "ALLSHORTESTPATHS"})
SIDES = frozenset({"BOTH", "LEADING", "TRAILING"})
SUBQUERIES = frozenset({"EXISTS", "COUNT", "COLLECT"})
_MARKED = {
    **dict.fromkeys(SUBQUERIES, "SUBQUERY"),
    **dict.fromkeys(QUANTIFIERS, "QUANTIFIER"),
    "REDUCE": "_REDUCE",
    **dict.fromkeys(SHORTEST, "SHORTEST_PATH"),
    "TRIM": "TRIM",
    **dict.fromkeys(SIDES, "TRIM_SIDE"),
}
"""Words that are terminals of their own where what follows them says so."""


class Token(str):
    """A token's text, its type and its place; Lark's own loop reads lines and columns, too, which nobody counts."""

    __slots__ = ("end_pos", "start_pos", "type", "value")
    type: str
    value: str
    start_pos: int
    end_pos: int
    line = column = end_line = end_column = None


def scan(text: str, start: int, end: int) -> list[Token]:
    """Return the tokens of ``text[start:end]``, with positions in ``text``; white space and comments are left out.

    Types are WORD, NAME (in back-quotes), IRI, INTEGER, FLOAT, STRING, PARAMETER and OPERATOR; INTEGERS and STRINGS are
    long lists of these.

    Raises
    ------
    ParseError
        A character that begins no token, or a string, comment or quoted name that is not closed.
    """
    tokens: list[Token] = []
    match, new = _TOKEN.match, str.__new__
    while start < end and (before := _TRIVIA.match(text, start, end)):
        start = before.end()
    while start < end:
        if len(tokens) % EVERY == 0:
            check_stop()
        found = match(text, start, end)
        if found is None:
            meant = _TYPESET.get(text[start])
            hint = f"did you mean {meant}?" if meant else _ELSEWHERE.get(text[start])
            raise ParseError(_unreadable(text, start), text=text, position=start, hint=hint)
        kind = found.lastgroup or ""
        value = found[kind]
        if value == "[" and (whole := _LIST.match(text, start, end)) is not None and whole.end() - start >= _LONG:
            found, kind = whole, whole.lastgroup or ""
            value = found[kind]
        token = new(Token, value)
        token.type = "OPERATOR" if kind == "SIGN" else kind
        token.value, token.start_pos, token.end_pos = value, start, start + len(value)
        tokens.append(token)
        start = found.end()
    return tokens


def closing(text: str, start: int) -> int | None:
    """Return where the parenthesis closes that was opened before ``start``, or None; what comes after is not read."""
    depth = 0
    while start < len(text):
        found = _TRIVIA.match(text, start) or _TOKEN.match(text, start)
        if found is None or found.end() == start:
            return None
        if text[start] == ")" and depth == 0:
            return start
        depth += (text[start] == "(") - (text[start] == ")")
        start = found.end()
    return None


_TYPESET = {
    **dict.fromkeys("“”„‟«»", '"'),
    **dict.fromkeys("‘’‚‛´", "'"),
    **dict.fromkeys("‐‑‒–—−", "-"),
    **dict.fromkeys("→⟶⇒", "->"),
    **dict.fromkeys("←⟵⇐", "<-"),
    "≤": "<=",
    "≥": ">=",
    "≠": "<>",
    "×": "*",
    "；": ";",
    "，": ",",
    "（": "(",
    "）": ")",
}
"""What word processors and web pages make of the characters of statements."""


_ELSEWHERE = {"#": "a comment begins with //", "@": "a parameter is written $name", "\\": "a line needs no end"}
"""What begins with such a character in other languages, and how it does here."""


def _unreadable(text: str, at: int) -> str:
    if text[at] in "'\"":
        return "the string that begins here is not closed"
    if text[at] == "`":
        return "the quoted name that begins here is not closed"
    if text.startswith("/*", at):
        return "the comment that begins here is not closed"
    return f"unexpected character {text[at]!r}"


def brackets(tokens: list[Token]) -> tuple[dict[int, int], list[int]]:
    """Return where each opening bracket closes (indices into ``tokens``), and the brackets that stay open."""
    closing: dict[int, int] = {}
    stack: list[int] = []
    for index, token in enumerate(tokens):
        if token.type != "OPERATOR":
            continue
        if token.value in _CLOSING:
            stack.append(index)
        elif stack and _CLOSING[tokens[stack[-1]].value] == token.value:
            closing[stack.pop()] = index
    return closing, stack


def _too_deep(tokens: list[Token]) -> int:
    depth = 0
    for index, token in enumerate(tokens):
        if token.type == "OPERATOR":
            depth += (token.value in _CLOSING) - (token.value in _CLOSING.values())
            if depth > DEEPEST:
                return index
    return -1


class TokenFilter:
    """Gives each token its type by the parser's state; ``spellings`` are the grammar's terminals by their text."""

    def __init__(self, spellings: dict[str, str]) -> None:
        self.spellings = spellings
        self._same = {operator: spellings.get(operator, "OPERATOR") for operator in _ALWAYS_THE_SAME}

    def typed(
        self, text: str, tokens: list[Token], states: Mapping[int, Collection[str]], stack: list[int]
    ) -> Iterator[Token]:
        """Yield the tokens of a text, each typed as ``states`` says of the state on top of the stack by then."""
        look = _Lookahead(text, tokens)
        for index, token in enumerate(tokens):
            if index % EVERY == 0:
                check_stop()
            if token.type == "OPERATOR":
                same = self._same.get(token.value)
                token.type = same or self._operator(look, index, states[stack[-1]])
                if index == look.too_deep:
                    raise ParseError(f"brackets are nested deeper than {DEEPEST}", text=text, position=token.start_pos)
            elif token.type == "WORD":
                token.type = self._word(look, index, states[stack[-1]])
            yield token

    def _word(self, look: _Lookahead, index: int, accepted: Collection[str]) -> str:
        word = str(look.tokens[index].value).upper()
        marked = _MARKED.get(word)
        if marked is not None and marked in accepted and look.opens(marked, index):
            if marked == "_REDUCE":
                look.mark_bar(index + 1)
            return marked
        keyword = self.spellings.get(word)
        if keyword in accepted and (
            word in RESERVED or "NAME" not in accepted or not look.stands_as_name(index, accepted)
        ):
            return str(keyword)
        if word in RESERVED:
            return "KEYWORD_NAME" if "KEYWORD_NAME" in accepted else word
        return "NAME"

    def _operator(self, look: _Lookahead, index: int, accepted: Collection[str]) -> str:
        operator = str(look.tokens[index].value)
        if operator == "(" and "_PATTERN_OPEN" in accepted and look.opens_pattern(index):
            return "_PATTERN_OPEN"
        if operator == ":":
            if "PROPERTY_COLON" in accepted and look.joins_words(index):
                return "PROPERTY_COLON"
            if "KEY_COLON" in accepted and look.joins_words(index) and look.value(index + 2) == ":":
                return "KEY_COLON"
        if operator == "[" and "_LIST_OPEN" in accepted:
            if look.iterates(index) and not look.has(",", index):
                look.mark_bar(index)
                return "_LIST_OPEN"
            if look.lists_pattern(index):
                look.mark_bar(index)
                return "_PATTERN_LIST_OPEN"
        if index in look.bars:
            return "_BAR"
        return self.spellings.get(operator, "OPERATOR")


class _Lookahead:
    """Questions about the tokens that follow, for what one token of lookahead cannot tell apart."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self.text = text
        self.tokens = tokens
        self.too_deep = _too_deep(tokens) if len(tokens) > DEEPEST else -1
        """The first bracket that stands inside too many, or -1."""
        self.bars: set[int] = set()

    @lazy
    def closing(self) -> dict[int, int]:
        """Where each bracket closes: most patterns do not ask."""
        return brackets(self.tokens)[0]

    def value(self, index: int) -> str:
        """The token's text, or "" past the end; a word in capitals, so that it compares with keywords."""
        if not 0 <= index < len(self.tokens):
            return ""
        token = self.tokens[index]
        return token.value.upper() if token.type in ("WORD", "KEYWORD_NAME") else str(token.value)

    def is_word(self, index: int) -> bool:
        return 0 <= index < len(self.tokens) and self.tokens[index].type not in (
            "OPERATOR",
            "INTEGER",
            "FLOAT",
            "STRING",
            "PARAMETER",
            "IRI",
            "INTEGERS",
            "STRINGS",
        )

    def stands_as_name(self, index: int, accepted: Collection[str]) -> bool:
        """Whether what follows leaves a word no sense but that of a name: ``(is:A)``, ``RETURN all AS x``.

        Before a bracket ``all`` is a function's name, but where a path begins, and ANY could stand, it is GQL's ALL.
        """
        return self.value(index + 1) in ("", ")", ",", ".", "=", ":", "]", "AS") or (
            self.value(index) == "ALL" and self.value(index + 1) == "(" and "ANY" not in accepted
        )

    def iterates(self, index: int) -> bool:
        """Whether a bracket stands here and opens ``(x IN`` or ``[x IN``."""
        return self.value(index) in ("(", "[") and self.is_word(index + 1) and self.value(index + 2) == "IN"

    def has(self, operator: str, index: int) -> bool:
        """Whether an operator stands directly inside the bracket at ``index``."""
        return any(self.value(at) == operator for at in self._inside(index + 1, self.closing.get(index)))

    def _inside(self, at: int, end: int | None) -> Iterator[int]:
        """Yield the indices from ``at`` to ``end``, what stands in inner brackets left out."""
        end = len(self.tokens) if end is None else end
        while at < end:
            if at % EVERY == 0:
                check_stop()
            yield at
            at = self.closing.get(at, at) + 1

    def mark_bar(self, index: int) -> None:
        """Note the last bar directly inside the bracket at ``index``: what a comprehension's result follows."""
        self.bars.update([at for at in self._inside(index + 1, self.closing.get(index)) if self.value(at) == "|"][-1:])

    def lists_pattern(self, index: int) -> bool:
        """Whether the ``[`` here opens ``[p = (a)-->(b) … | …``."""
        named = self.is_word(index + 1) and self.value(index + 2) == "="
        first = index + 3 if named else index + 1
        return self.value(first) == "(" and self.opens_pattern(first) and self.has("|", index)

    def opens(self, marked: str, index: int) -> bool:
        """Whether a word of :data:`_MARKED` with what follows opens a subquery, a predicate over a list, reduce or a
        shortest path, or is a trim with FROM, or the side that this takes from.
        """
        if marked == "TRIM_SIDE":
            return self.value(index + 1) not in (")", ",", ".", "[")
        if marked == "SUBQUERY":
            return self.value(index + 1) == "{"
        if marked == "QUANTIFIER":
            return self.iterates(index + 1)
        if self.value(index + 1) != "(":
            return False
        if marked == "TRIM":
            inside = self._inside(index + 2, self.closing.get(index + 1))
            return any(self.value(i) == "FROM" and self.value(i + 1) not in (")", "+") for i in inside)
        if marked == "_REDUCE":
            return self.is_word(index + 2) and self.value(index + 3) == "="
        return True

    def joins_words(self, index: int) -> bool:
        """Whether the colon here has a word on both sides and no space: a prefixed name."""
        if not (self.is_word(index - 1) and self.is_word(index + 1)):
            return False
        before, colon, after = self.tokens[index - 1 : index + 2]
        return bool(before.end_pos == colon.start_pos and colon.end_pos == after.start_pos)

    def opens_pattern(self, index: int) -> bool:
        """Whether the ``(`` here is a node's, with an edge after it, and not that of an expression."""
        close = self.closing.get(index)
        if close is None or not self._fills_node(index + 1, close):
            return False
        at = close + 1
        if self.value(at) == "<":
            at += 1
            if self.value(at + 1) not in ("-", "["):
                return False
        if self.value(at) != "-":
            return False
        at += 1
        if self.value(at) == "[":
            line = self.closing.get(at)
            if line is None or not self._fills_edge(at + 1):
                return False
            at = line + 1
        if self.value(at) != "-":
            return False
        at += 1
        return self.value(at) in ("(", ">", "*", "+", "{")

    def _fills_node(self, index: int, close: int) -> bool:
        if self.value(index) == "WHERE" or (self.value(index) == "IS" and self.value(index + 1) not in (")", ":", "{")):
            return True
        if self.is_word(index):
            index += 1
        elif self.value(index) not in (")", ":", "{") and self.tokens[index].type != "IRI":
            return False
        return (
            index >= close
            or self.value(index) in (":", "{", "IS", "WHERE", ")")
            or (self.is_word(index) and self.value(index + 1) == ":")
            or self.tokens[index].type in ("IRI", "PARAMETER")
        )

    def _fills_edge(self, index: int) -> bool:
        return self.is_word(index) or self.value(index) in ("]", ":", "*", "{")
