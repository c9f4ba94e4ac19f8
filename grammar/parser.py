"""Text to syntax trees: the door of the grammar.

A script is cut into statements (:mod:`routing`), each goes to DuckDB as written or through the token filter
(:mod:`lexing`), the loop (:mod:`machine`) over the LALR(1) tables that Lark makes of ``pattern.lark`` (:mod:`tables`),
and the builder (:mod:`build`) to a frozen tree (:mod:`syntax`).  Where the loop stops, :mod:`diagnose` finds the words.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from graphdb.common.caches import TextCache
from graphdb.common.errors import GraphDBError, ParseError, nearest
from graphdb.common.stopping import checked
from graphdb.grammar import routing
from graphdb.grammar.routing import Language, Piece
from graphdb.grammar.spelling import KEYWORDS
from graphdb.grammar.syntax import Data, Span, Sql, Statement

if TYPE_CHECKING:
    from graphdb.grammar.machine import Machine, Stopped

__all__ = ["KEYWORDS", "is_complete", "parse", "parse_script", "split"]


_SCRIPTS: TextCache[tuple[Statement, ...]] = TextCache(most=512, characters=1 << 17)
"""The trees of texts: some hundred bytes, and more than one object, for each character."""


def parse(text: str) -> Statement:
    """Return the one statement in ``text``.

    Raises
    ------
    ParseError
        The statement does not follow the grammar, or there is not exactly one.
    NotSupportedError
        It uses a construct of openCypher or GQL that does not run yet.
    """
    found = _SCRIPTS.get(text)
    if found is not None and len(found) == 1:
        return found[0]
    pieces = list(routing.pieces(text))
    if not pieces:
        raise ParseError("expected a statement", text=text, position=len(text))
    if len(pieces) > 1:
        raise ParseError("expected one statement, and here begins another", text=text, position=pieces[1].start)
    return parse_script(text)[0]


def parse_script(text: str) -> tuple[Statement, ...]:
    """Return the statements of ``text``, which ``;`` separates; spans count from the beginning of ``text``.

    ``PREFIX`` lines may stand before a statement without ``;``.  Raises as :func:`parse` does.
    """
    found = _SCRIPTS.get(text)
    if found is None:
        found = tuple(_statement(text, piece) for piece in checked(routing.pieces(text), 64))
        _SCRIPTS.put(text, found)
    return found


def split(text: str) -> tuple[str, ...]:
    """Return the text of each statement of a script, without ``;`` and without parsing it."""
    return tuple(text[piece.start : piece.end] for piece in routing.pieces(text))


def is_complete(text: str) -> bool:
    """Whether ``;`` ends the last statement of ``text``, outside quotes, comments and IRIs."""
    return routing.ends(text)


_UNQUOTED_LOAD = re.compile(r"LOAD\s+([^\s'\";]*[./][^\s'\";]*)", re.IGNORECASE)
"""A file where DuckDB's own LOAD would have an extension's name."""


def _statement(text: str, piece: Piece) -> Statement:
    if piece.language is Language.UNKNOWN:
        _refuse_misspelt(text, piece)
    unquoted = _UNQUOTED_LOAD.match(text, piece.start, piece.end)
    if unquoted is not None:
        hint = f"LOAD '{unquoted[1]}'"
        raise ParseError("LOAD needs the file's name in quotes", text=text, position=unquoted.start(1), hint=hint)
    if piece.language in (Language.SQL, Language.UNKNOWN):
        return Sql(text[piece.start : piece.end], Span(piece.start, piece.end))
    if piece.language is Language.DATA:
        return _data(text, piece)
    return _pattern_statement(text, piece.start, piece.end)


def _data(text: str, piece: Piece) -> Data:
    """Triples that come or go: what reads Turtle reads them, once the prefixes are known."""
    if text[piece.end - 1] != "}":
        raise ParseError("the { of these triples is not closed", text=text, position=text.index("{", piece.start))
    body = Span(text.index("{", piece.start) + 1, piece.end - 1)
    return Data(text[piece.start : piece.start + 6].upper() == "INSERT", body)


_WITHIN = {"WHERE", "ORDER", "LIMIT", "SKIP", "OFFSET", "AND", "OR", "YIELD", "ON", "AS", "UNION"}
"""Words that statements go on with."""


def _refuse_misspelt(text: str, piece: Piece) -> None:
    """A first word that is nobody's, and nearest to one of ours, is a slip; else DuckDB will say what is wrong."""
    word = text[piece.start : piece.end].split(maxsplit=1)[0].split("(")[0]
    if word.upper() in _WITHIN:
        hint = f"{word.upper()} goes on with a statement: does one end too early, by a ; before it?"
        raise ParseError(f"no statement begins with {word}", text=text, position=piece.start, hint=hint)
    close = nearest(word, sorted(routing.STARTERS | routing.SQL_STARTERS), 1)
    if close and close[0] in routing.STARTERS:
        raise ParseError(f"unknown statement {word}", text=text, position=piece.start, hint=f"did you mean {close[0]}?")


def _pattern_statement(text: str, start: int, end: int) -> Statement:
    from graphdb.grammar.build import build
    from graphdb.grammar.machine import Stopped, TooDeep

    original = text
    if text[start : start + 4].upper() == "LOAD":
        text = routing.without_queries(text, start, end)
    try:
        return build(_machine(), text, start, end, original)
    except Stopped as stop:
        raise _mistake(text, start, end, stop) from None
    except (TooDeep, GraphDBError) as failure:
        _refuse(text, start, end)  # what is wrong with the grammar comes first
        raise failure from None


def _refuse(text: str, start: int, end: int) -> None:
    """Raise what is wrong where a text does not follow the grammar, or goes too deep, whatever it says."""
    from graphdb.grammar.build import refuse_depth
    from graphdb.grammar.machine import Outline, Stopped

    try:
        refuse_depth(_machine().parse(text, start, end, Outline()), text)
    except Stopped as stop:
        raise _mistake(text, start, end, stop) from None


def _mistake(text: str, start: int, end: int, stop: Stopped) -> GraphDBError:
    """Return the error for a text at which the loop stopped."""
    from graphdb.grammar.diagnose import diagnose
    from graphdb.grammar.lexing import scan

    tokens = scan(text, start, end)
    index = len(tokens) if stop.at is None else [token.start_pos for token in tokens].index(stop.at)
    return diagnose(text, end, tokens, index, set(stop.expected))


@cache
def _machine() -> Machine:
    """The loop that parses, made at the first pattern."""
    from graphdb.grammar.machine import Machine
    from graphdb.grammar.tables import tables

    return Machine(tables())
