"""What all builders of syntax share: places, errors, names, and strings without their quotes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from graphdb.common.errors import ParseError
from graphdb.grammar import syntax as s
from graphdb.grammar.lexing import Token

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{6,8})|(.))", re.DOTALL)
_SIMPLE = {"\\": "\\", "'": "'", '"': '"', "`": "`", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def span_at(token: Token) -> s.Span:
    """Where a token stands."""
    return s.Span(int(token.start_pos or 0), int(token.end_pos or 0))


Rule = Callable[[Any, s.Span, list[Any]], Any]
"""What makes something of a rule: called with the builder, the place in the text, and what its parts became."""


def always(value: Any) -> Rule:
    """Return what a rule says whose words all mean one thing."""
    return lambda builder, span, children: value


def first(builder: Base, span: s.Span, children: list[Any]) -> Any:
    """A rule is what its first part became."""
    return children[0]


def items(builder: Base, span: s.Span, children: list[Any]) -> tuple[Any, ...]:
    """A rule is all that its parts became."""
    return tuple(children)


def plain(builder: Base, span: s.Span, children: list[Any]) -> str:
    """A rule is a name or a string."""
    return builder.plain(children[0])


def option(name: str, value: Rule = first) -> Rule:
    """Return what a rule says that gives an option its value: both, and where."""
    return lambda builder, span, children: (name, value(builder, span, children), span.start)


def node_of(make: Callable[..., Any], *before: object) -> Rule:
    """Return what makes a node of a rule: its fields are those ``before``, and one for each part."""
    return lambda builder, span, children: make(*before, *children, span)


def node_of_all(make: Callable[..., Any], *before: object) -> Rule:
    """Return what makes a node of a rule whose parts are one field."""
    return lambda builder, span, children: make(*before, tuple(children), span)


class Base:
    """A text, and what is noted while its syntax is built."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.too_large: set[int] = set()
        """Where the integer 2^63 stands: right only under a minus sign."""
        self.prefixed: set[int] = set()
        """Where paths begin before which ALL stands, which says nothing."""
        self.given = False
        """Whether a parameter stands for all properties somewhere."""
        self.calls = False
        """Whether a procedure is called somewhere."""

    def error(self, message: str, position: int, hint: str | None = None) -> ParseError:
        """Return an error at an offset."""
        return ParseError(message, text=self.text, position=position, hint=hint)

    def parameter(self, span: s.Span, children: list[Any]) -> s.Parameter:
        token = children[0]
        quoted = token[1] == "`"
        return s.Parameter(token[2:-1].replace("``", "`") if quoted else token[1:], span)

    def _name(self, token: Token) -> str:
        return token[1:-1].replace("``", "`") if token.startswith("`") else str(token)

    def _naming(self, token: Token) -> str:
        """The name of a variable, column or table: DuckDB ends a name where a NUL stands, and has none of no text."""
        name = self.plain(token)
        self.refuse_name(name, int(token.start_pos or 0))
        return name

    def refuse_name(self, name: str, position: int) -> None:
        """Refuse what can name nothing."""
        if not name:
            raise self.error("a name has at least one character", position, "write one between the quotes")
        if "\0" in name:
            raise self.error("the name has a NUL character", position, "leave the character out of it")

    def plain(self, token: Token) -> str:
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
