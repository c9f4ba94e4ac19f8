"""The LALR(1) tables of ``pattern.lark``: made by Lark, cached as names and numbers, which are read in a moment.

Lark takes half a second to make them, and a tenth to read its own cache.  Ours stands beside the module's byte code,
where that can be written; what is of another grammar, Lark or Python, or damaged, is made anew.  So Lark is imported
only to make them.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import marshal
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from graphdb.grammar.lexing import Token, TokenFilter, scan

if TYPE_CHECKING:
    from lark import Lark
    from lark.grammar import Rule as LarkRule


class Rule(NamedTuple):
    """A rule, and what its method is given: Python's expressions of ``values``, the symbols' values."""

    name: str
    alias: str | None
    size: int
    expand: bool
    """Whether it is its child where it has one only."""
    taken: tuple[str, ...]


class Tables(NamedTuple):
    """What to do in each state by the next symbol: go to a state, or (``~number``) complete a rule."""

    start: int
    end: int
    states: dict[int, dict[str, int]]
    rules: tuple[Rule, ...]
    spellings: dict[str, str]
    """The terminals by their text."""


@cache
def tables() -> Tables:
    """Return the tables, from the cache if it has them."""
    grammar = _grammar()
    file = Path(__file__).with_name("__pycache__") / f"pattern.{sys.implementation.cache_tag}.lalr"
    made_from = f"{sys.version} {importlib.metadata.version('lark')} {grammar}".encode()
    with suppress(OSError):
        content = file.read_bytes()
        digest, rest = content[:32], content[32:]
        if hashlib.sha256(made_from + rest).digest() == digest:
            start, end, states, rules, spellings = marshal.loads(rest)
            return Tables(start, end, states, tuple(Rule(*rule) for rule in rules), spellings)
    found = _tables_of(lark())
    rest = marshal.dumps((*found[:3], tuple(map(tuple, found.rules)), found.spellings))
    with suppress(OSError):
        _write(file, hashlib.sha256(made_from + rest).digest() + rest)
    return found


def _write(file: Path, content: bytes) -> None:
    """Write a file whole or not at all; its folder is there where modules are stored compiled, too."""
    descriptor, fresh = tempfile.mkstemp(dir=file.parent)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(content)
        os.replace(fresh, file)
    except OSError:
        os.unlink(fresh)


def _grammar() -> str:
    return resources.files(__package__).joinpath("pattern.lark").read_text(encoding="utf-8")


@cache
def lark() -> Lark:
    """Return Lark's own parser of the grammar, with the same tokens."""
    from lark import Lark
    from lark.lexer import Lexer

    class Filtered(Lexer):
        """The lexer that Lark's loop reads from."""

        __future_interface__ = 2

        def __init__(self, lexer_conf: Any) -> None:
            self._filter = TokenFilter(_spellings(lexer_conf.terminals))

        def lex(self, lexer_state: Any, parser_state: Any) -> Iterator[Token]:  # type: ignore[override]
            """Yield the tokens of the text slice in ``lexer_state``, typed as the parser's state asks."""
            source = lexer_state.text
            tokens = scan(source.text, source.start, source.end)
            return self._filter.typed(source.text, tokens, parser_state.parse_conf.states, parser_state.state_stack)

    return Lark(_grammar(), parser="lalr", lexer=Filtered, maybe_placeholders=True)


def _tables_of(lark: Lark) -> Tables:
    from lark.parsers.lalr_analysis import Shift

    parsing = lark.parse_interactive().parser_state.parse_conf
    numbers: dict[LarkRule, int] = {}
    states = {
        state: {
            str(symbol): argument if kind is Shift else ~numbers.setdefault(argument, len(numbers))
            for symbol, (kind, argument) in row.items()
        }
        for state, row in parsing.states.items()
    }
    rules = tuple(map(_rule_of, numbers))
    return Tables(parsing.start_state, parsing.end_state, states, rules, _spellings(lark.terminals))


def _rule_of(rule: LarkRule) -> Rule:
    """Return a rule with what Lark says of its trees.

    Tokens written in quotes are left out, ``[…]`` that is absent is None, rules whose name begins with ``_`` give their
    children to the rule above, and ``?rule`` with a single child is that child.
    """
    size = len(rule.expansion)
    absent = "".join(str(int(there)) for there in rule.options.empty_indices) or "0" * size
    gaps = [len(ones) for ones in absent.split("0")]
    taken: list[str] = []
    for i, symbol in enumerate(rule.expansion):
        taken += ["None"] * gaps[i]
        if rule.options.keep_all_tokens or not getattr(symbol, "filter_out", False):
            splice = not symbol.is_term and symbol.name.startswith("_")
            taken.append(f"{'*' * splice}values[{i - size}]")
    taken += ["None"] * gaps[size]
    alias = None if rule.alias is None else str(rule.alias)
    return Rule(str(rule.origin.name), alias, size, bool(rule.options.expand1), tuple(taken))


def _spellings(terminals: Iterable[Any]) -> dict[str, str]:
    """Return the names of terminals by their text, where they have one."""
    return {terminal.pattern.value: terminal.name for terminal in terminals if terminal.pattern.type == "str"}
