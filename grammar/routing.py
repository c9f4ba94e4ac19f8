"""Where a statement ends, and whose it is: the pattern language's or DuckDB's.

The first words decide.  They also decide how the rest is read up to its ``;``: ``--`` begins a comment in SQL and is
an edge in a pattern; ``//`` is the other way round a comment and SQL's integer division; a backslash escapes a quote in
a pattern's string only.
"""

from __future__ import annotations

import itertools
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from graphdb.grammar.spelling import IRI, QUOTED, STRING


class Language(Enum):
    """Who reads a statement."""

    PATTERN = "pattern"
    PREFIX = "prefix"
    DATA = "data"
    """Triples that SPARQL's ``INSERT DATA {…}`` adds, or ``DELETE DATA {…}`` takes away."""
    SQL = "SQL"
    UNKNOWN = "unknown"
    """The first word begins no statement that we know of, here or in SQL."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One statement of a script: ``text[start:end]``, its ``;`` left out."""

    language: Language
    start: int
    end: int
    closed: bool
    """A ``;`` ends it, outside quotes and comments (or it is a whole ``PREFIX`` line)."""


STARTERS = frozenset(
    """MATCH OPTIONAL PREFIX RETURN UNWIND PROFILE REMOVE MINE FOREACH FILTER LET FOR FINISH EXPLAIN LOAD CREATE MERGE
    WITH DELETE DETACH SET CALL INSERT""".split()
)
"""Words that can begin a statement of the pattern language."""

SQL_STARTERS = frozenset(
    """ABORT ALTER ANALYZE ANALYSE ATTACH BEGIN CALL CHECKPOINT COMMENT COMMIT COPY CREATE DEALLOCATE DELETE DESC
    DESCRIBE DETACH DROP END EXECUTE EXPLAIN EXPORT FORCE FROM GRANT IMPORT INSERT INSTALL KILL LOAD MERGE PIVOT
    PIVOT_LONGER PIVOT_WIDER PRAGMA PREPARE REINDEX REFRESH RESET REVOKE ROLLBACK SELECT SET SHOW START SUMMARIZE
    TABLE TRUNCATE UNPIVOT UPDATE USE VACUUM VALUES WITH""".split()
)
"""Words that can begin a statement of DuckDB's SQL."""

_OWN = frozenset("MATCH OPTIONAL RETURN UNWIND PROFILE REMOVE MINE FOREACH FILTER LET FOR FINISH".split())

_LEADING = re.compile(r"(?:\s+|--[^\n]*|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_HEAD = re.compile(rf"(?P<TRIVIA>\s+|--[^\n]*|//[^\n]*|/\*.*?\*/)|[^\W\d]\w*|{IRI}|{STRING}|{QUOTED}|\S", re.DOTALL)
_HEAD_TOKENS = 200

_PATTERN_STEP = re.compile(rf"//[^\n]*|/\*.*?\*/|{STRING}|{QUOTED}|{IRI}|[^;]", re.DOTALL)
_SQL_STEP = re.compile(
    r"--[^\n]*|(?P<COMMENT>/\*)|(?P<DOLLAR>\$(?:[^\W\d]\w*)?\$)"
    r"|[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|[^;]",
    re.DOTALL,
)
_DATA_STEP = re.compile(
    r"#[^\n]*+|<[^<>\s]*+>|\"\"\"(?:[^\"\\]|\\.|\"(?!\"\"))*+\"\"\"|'''(?:[^'\\]|\\.|'(?!''))*+'''"
    r"|\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+'|[^\"'<#{}]++|.",
    re.DOTALL,
)
_PATTERN_RUN = re.compile(r"[^;'\"`</]+")
_SQL_RUN = re.compile(r"(?:[^;'\"$/\-\w]+|(?![eE]')\w[\w$]*)+")
_COMMENT_MARK = re.compile(r"/\*|\*/")
_OPENERS = ("'", '"', "`", "/*")
_PREFIX = re.compile(rf"\s*(?:[^\W\d]\w*|{QUOTED})?\s*:\s*{IRI}(?P<after>\s*;)?", re.DOTALL)


def pieces(text: str) -> Iterator[Piece]:
    """Yield the statements of a script in order; empty ones are left out."""
    at = 0
    while True:
        matched = _LEADING.match(text, at)
        at = matched.end() if matched else at
        if at >= len(text):
            return
        if text[at] == ";":
            at += 1
            continue
        if text.startswith("/*", at):
            yield Piece(Language.PATTERN, at, len(text), False)
            return
        language = language_of(text, at)
        if language is Language.PREFIX:
            line = _PREFIX.match(text, at + len("PREFIX"))
            if line:
                closed = line["after"] is not None
                end = line.start("after") if closed else line.end()
                yield Piece(language, at, end, closed)
                at = line.end()
                continue
        if language is Language.DATA:
            end, closed = _data_end(text, at)
            yield Piece(language, at, len(text[:end].rstrip()), closed)
            at = end + 1
            continue
        end, closed = _pattern_end(text, at) if language in (Language.PATTERN, Language.PREFIX) else _sql_end(text, at)
        yield Piece(language, at, len(text[:end].rstrip()), closed)
        at = end + 1


def ends(text: str) -> bool:
    """Whether the last statement of a script is ended by ``;`` and nothing but space and comments follows."""
    last = deque(pieces(text), maxlen=1)
    return last[0].closed if last else ";" in text


def _pattern_end(text: str, at: int) -> tuple[int, bool]:
    """The offset of the ``;`` that ends a statement of patterns, or of the text's end."""
    while at < len(text):
        run = _PATTERN_RUN.match(text, at)
        if run:
            at = run.end()
            continue
        step = _PATTERN_STEP.match(text, at)
        if step is None:
            return at, True
        if step.end() == at + 1 and text.startswith(_OPENERS, at):
            return len(text), False
        at = step.end()
    return len(text), False


def _data_end(text: str, at: int) -> tuple[int, bool]:
    """The offset of the ``;`` behind the bracket that closes triples, or of the text's end."""
    depth = 0
    while at < len(text):
        step = _DATA_STEP.match(text, at)
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at = step.end() if step is not None else at + 1
        if not depth and text[at - 1] == "}":
            return _pattern_end(text, at)
    return len(text), False


def _sql_end(text: str, at: int) -> tuple[int, bool]:
    """The offset of the ``;`` that ends a SQL statement, or of the text's end."""
    while at < len(text):
        run = _SQL_RUN.match(text, at)
        if run:
            at = run.end()
            continue
        step = _SQL_STEP.match(text, at)
        if step is None:
            return at, True
        end = step.end()
        if step.lastgroup == "COMMENT":
            end = _comment_end(text, at)
        elif step.lastgroup == "DOLLAR":
            close = text.find(step.group(), end)
            end = len(text) + 1 if close < 0 else close + len(step.group())
        elif end == at + 1 and text[at] in "'\"":
            end = len(text) + 1
        if end > len(text):
            return len(text), False
        at = end
    return len(text), False


def _comment_end(text: str, at: int) -> int:
    """The end of the SQL comment at ``at`` (they nest), or past the text's end if it is not closed."""
    depth = 0
    for mark in _COMMENT_MARK.finditer(text, at):
        depth += 1 if mark.group() == "/*" else -1
        if depth == 0:
            return mark.end()
    return len(text) + 1


def language_of(text: str, start: int = 0) -> Language:
    """Tell by its first words who reads the statement that begins at ``start``."""
    return _language(_head(text, start))


def _head(text: str, start: int) -> list[str]:
    """The first tokens of a statement, words in capitals, up to its ``;``."""
    words: list[str] = []
    for found in _HEAD.finditer(text, start):
        if found.lastgroup == "TRIVIA":
            continue
        token = found.group()
        if token == ";" or len(words) == _HEAD_TOKENS:
            break
        words.append(token.upper() if token[0].isalpha() else token)
        if words[0] in _OWN or words[0] == "PREFIX":
            break
    return words


def _language(words: list[str]) -> Language:
    words = [*words, "", "", ""]
    first, second, third = words[:3]
    if first == "PREFIX":
        return Language.PREFIX
    if first in _OWN:
        return Language.PATTERN
    if first in ("INSERT", "DELETE") and (second, third) == ("DATA", "{"):
        return Language.DATA
    ours = {
        "EXPLAIN": lambda: second == "CONTINUOUS" or _language(words[1:-3]) in (Language.PATTERN, Language.PREFIX),
        "DROP": lambda: second == "CONTINUOUS",
        "SHOW": lambda: second == "CONTINUOUS",
        "LOAD": lambda: _loads_data(second, third),
        "CREATE": lambda: _creates_from_pattern(words),
        "MERGE": lambda: second != "INTO",
        "INSERT": lambda: second == "(",
        "DELETE": lambda: second != "FROM",
        "DETACH": lambda: second == "DELETE",
        "SET": lambda: third in (".", ":") or words[2:4] == ["+", "="],
        "WITH": lambda: not _names_subquery(words),
        "CALL": lambda: _calls_procedure(words),
    }.get(first)
    if ours is not None:
        return Language.PATTERN if ours() else Language.SQL
    known = first in SQL_STARTERS or not first[:1].isalpha()
    return Language.SQL if known else Language.UNKNOWN


def _loads_data(second: str, third: str) -> bool:
    """Whether a LOAD names data, by a file, a query or a mapping, rather than an extension of DuckDB's."""
    if second[:1] in ("'", '"'):
        return not second[1:-1].lower().endswith(".duckdb_extension")
    if second == "CSV":
        return third in ("FROM", "WITH")
    return (second == "FROM" and third == "(") or (second == "MAPPING" and third[:1] in ("'", '"'))


_QUERY = re.compile(r"\bFROM\s*(?=\()", re.IGNORECASE)


def without_queries(text: str, start: int, end: int) -> str:
    """Return a text with a string in the place of each query in ``LOAD FROM (SELECT …)``: of the same length.

    >>> without_queries("LOAD FROM (SELECT ')' AS x) AS LABEL X", 0, 38)
    "LOAD FROM '               ' AS LABEL X"
    """
    at = start
    while at < end:
        step = _PATTERN_STEP.match(text, at)
        found = _QUERY.match(text, at)
        if found is None or (at > start and text[at - 1].isalnum()):
            at = step.end() if step else at + 1
            continue
        begin = found.end()
        close = _bracket_end(text, begin, end)
        if close is None:
            return text
        text = f"{text[:begin]}'{' ' * (close - begin - 2)}'{text[close:]}"
        at = close
    return text


def _bracket_end(text: str, at: int, end: int) -> int | None:
    """The offset behind the bracket that closes the one that opens there, in SQL; None without one."""
    depth = 0
    while at < end:
        step = _SQL_STEP.match(text, at)
        if step is not None and step.lastgroup is None and step.end() > at + 1:
            at = step.end()
            continue
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
        if not depth:
            return at
    return None


def _creates_from_pattern(words: list[str]) -> bool:
    """``CREATE (…)``, ``CREATE p = …``, and what is created ``AS MATCH …``."""
    if words[1] in ("(", "CONTINUOUS", "CONSTRAINT") or words[2] in ("=", "("):
        return True
    at = 1
    if words[at : at + 2] == ["OR", "REPLACE"]:
        at += 2
    if words[at] == "CONTINUOUS":
        return True
    if words[at] in ("TEMP", "TEMPORARY"):
        at += 1
    if words[at] not in ("TABLE", "VIEW"):
        return False
    at += 1
    if words[at : at + 3] == ["IF", "NOT", "EXISTS"]:
        at += 3
    while words[at + 1] == ".":
        at += 2
    return words[at + 1] == "AS" and _language(words[at + 2 : -3]) is Language.PATTERN


def _names_subquery(words: list[str]) -> bool:
    """SQL's ``WITH name [(columns)] AS [[NOT] MATERIALIZED] (``."""
    if words[1] == "RECURSIVE":
        return True
    at = _after_brackets(words, 2) if words[2] == "(" else 2
    if words[at : at + 1] != ["AS"]:
        return False
    at += 1
    while words[at : at + 1] in (["NOT"], ["MATERIALIZED"]):
        at += 1
    return words[at : at + 1] == ["("]


def _calls_procedure(words: list[str]) -> bool:
    """The ``CALL`` of openCypher: of a subquery, of a name with a namespace, without arguments, or with more after it.

    DuckDB's functions may have a namespace, too: where nobody has registered such a name it is asked, and named
    arguments are its alone.
    """
    at = 1
    while words[at + 1] == ".":
        at += 2
    if words[1] in ("{", "(") or words[at + 1] != "(":
        return True
    after = _after_brackets(words, at + 1)
    if words[after:][:1] not in ([""], []):
        return True
    pairs = itertools.pairwise(words[at + 1 : after])
    return at > 1 and not any(pair in ((":", "="), ("=", ">")) for pair in pairs)


def _after_brackets(words: list[str], at: int) -> int:
    """The index after the bracket that closes the one at ``at``."""
    depth = 0
    for index in range(at, len(words)):
        depth += (words[index] == "(") - (words[index] == ")")
        if depth == 0:
            return index + 1
    return len(words)
