"""The parser's loop over Lark's LALR(1) tables: each rule's method builds its syntax as soon as the rule is complete.

Lark makes the tables from ``pattern.lark``.  Its own loop builds a tree with positions, which a second pass would turn
into syntax; here there is no tree in between, and a text is parsed in a third of the time.  Which children a method is
given is what Lark says of its trees: tokens written in quotes are left out, ``[…]`` that is absent is None, rules whose
name begins with ``_`` give their children to the rule above, and ``?rule`` with a single child is that child.
"""

from __future__ import annotations

from itertools import chain
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from lark.parsers.lalr_analysis import Shift
from lark.utils import TextSlice

if TYPE_CHECKING:
    from lark import Lark
    from lark.grammar import Rule

_END = "$END"


class Stopped(Exception):
    """The loop cannot go on: the text is not of the grammar, or nested too deeply."""


class Place:
    """The span of a rule's text; with the names that Lark has for it."""

    __slots__ = ("end_pos", "start_pos")

    start_pos: int
    end_pos: int


class _Reduction:
    """A rule, and what becomes of its children."""

    __slots__ = ("absent", "kept", "method", "name", "passes", "plain", "single", "size", "spliced")

    def __init__(self, rule: Rule) -> None:
        origin = str(rule.origin.name)
        self.name = origin
        self.size = len(rule.expansion)
        self.spliced = origin.startswith("_")
        assert self.size or self.spliced, "a rule that may be empty has no place"
        self.method = None if self.spliced else str(rule.alias or origin)
        self.single = bool(rule.options.expand1 and not rule.alias)
        self.kept: list[tuple[int, bool, int]] = []
        """(child, counted from the last on the stack; whether its children are taken instead; how many are absent
        before it)."""
        self.absent = 0
        """How many are absent after the last."""
        absent = "".join(str(int(there)) for there in rule.options.empty_indices) or "0" * self.size
        gaps = [len(ones) for ones in absent.split("0")]
        for i, symbol in enumerate(rule.expansion):
            self.absent += gaps[i]
            if rule.options.keep_all_tokens or not getattr(symbol, "filter_out", False):
                splice = not symbol.is_term and symbol.name.startswith("_")
                self.kept.append((i - self.size, splice, self.absent))
                self.absent = 0
        self.absent += gaps[self.size]
        simple = not self.absent and not any(splice or absent for _, splice, absent in self.kept)
        self.plain = [i for i, _, _ in self.kept] if simple else None
        """Which children are all that is taken, where it is that simple."""
        self.passes = self.single and self.size == 1 and self.plain == [-1]
        """Whether its one child is all there is to it."""

    def children(self, values: list[Any]) -> list[Any]:
        """What a rule takes of the last values on the stack."""
        if self.plain is not None:
            return [values[i] for i in self.plain]
        found: list[Any] = []
        for i, splice, absent in self.kept:
            if absent:
                found += [None] * absent
            if not splice:
                found.append(values[i])
            elif found:
                found += values[i]
            else:
                found = values[i]  # which nobody else has
        if self.absent:
            found += [None] * self.absent
        return found


class Machine:
    """A parser over the tables of ``lark``, whose lexer looks at the parser's state."""

    def __init__(self, lark: Lark) -> None:
        configuration = lark.parse_interactive().parser_state.parse_conf
        reductions: dict[Rule, _Reduction] = {}

        def action(kind: Any, argument: Any) -> int | _Reduction:
            if kind is Shift:
                return int(argument)
            return reductions.setdefault(argument, _Reduction(argument))

        self.states: dict[int, dict[str, Any]] = {
            state: {str(symbol): action(*what) for symbol, what in row.items()}
            for state, row in configuration.states.items()
        }
        self._tokens = lark.parser.lexer
        self._start, self._end = configuration.start_state, configuration.end_state

    def parse(self, text: str, start: int, end: int, builder: object, deepest: int) -> Any:
        """Return what the builder's methods, called ``(place, children)``, make of ``text[start:end]``.

        Raises
        ------
        Stopped
            The text does not follow the grammar, or its tree would be deeper than ``deepest``.
        """
        states, stack, place = self.states, [self._start], Place()
        values: list[Any] = []
        # Per value where it starts, where it ends (-1: it is empty), and how deep its tree is.
        firsts: list[int] = []
        lasts: list[int] = []
        depths: list[int] = []
        source = SimpleNamespace(text=TextSlice(text, start, end))
        state = SimpleNamespace(parse_conf=self, state_stack=stack)
        for token in chain(self._tokens.lex(source, state), (None,)):
            kind = _END if token is None else token.type
            while True:
                action = states[stack[-1]].get(kind)
                if action.__class__ is int:
                    stack.append(action)
                    values.append(token)
                    firsts.append(token.start_pos)
                    lasts.append(token.end_pos)
                    depths.append(0)
                    break
                if action is None:
                    raise Stopped
                size = action.size
                if action.passes:
                    stack.pop()
                elif size == 0:
                    values.append(action.children(values))
                    firsts.append(-1)
                    lasts.append(-1)
                    depths.append(0)
                else:
                    children = action.children(values)
                    if size > 1:
                        depth = max(depths[-size:])
                        last = lasts[-1]
                        if last < 0:
                            last = next((at for at in reversed(lasts[-size:]) if at >= 0), -1)
                        first = firsts[-size]
                        if first < 0:
                            first = next((at for at in firsts[-size:] if at >= 0), -1)
                        rest = 1 - size
                        del stack[-size:], values[rest:], firsts[rest:], lasts[rest:], depths[rest:]
                        firsts[-1], lasts[-1] = first, last
                    else:
                        depth = depths[-1]
                        stack.pop()
                    if action.spliced:
                        values[-1] = children
                    elif action.single and len(children) == 1:
                        values[-1] = children[0]
                    else:
                        place.start_pos, place.end_pos = firsts[-1], lasts[-1]
                        values[-1] = getattr(builder, action.method)(place, children)
                        depth += 1
                        if depth > deepest:
                            raise Stopped
                    depths[-1] = depth
                beyond = states[stack[-1]][action.name]
                stack.append(beyond)
                if token is None and beyond == self._end:
                    return values[-1]
