"""The parser's loop over LALR(1) tables: each rule's method builds its syntax as soon as the rule is complete.

Lark makes the tables from ``pattern.lark`` (:mod:`tables`).  Its own loop builds a tree with positions, which a second
pass would turn into syntax; here there is no tree in between, and a text is parsed in a third of the time.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any

from graphdb.grammar.lexing import TokenFilter, scan
from graphdb.grammar.syntax import Span

if TYPE_CHECKING:
    from graphdb.grammar.tables import Rule, Tables

_END = "$END"
_place = tuple.__new__
"""Makes a span in half the time of its own constructor, whose arguments have names."""
_RULES_OF_A_TOKEN, _RULES_OF_A_TEXT = 2, 10
"""A tree is no deeper than so many rules for each token, and for the text: ``EXISTS { RETURN …`` has most."""


class Stopped(Exception):
    """The text does not follow the grammar: the loop cannot go on.

    Parameters
    ----------
    at
        Offset of the token that is wrong; None where the text ends too early.
    expected
        The terminals that could stand there.
    """

    def __init__(self, at: int | None, expected: frozenset[str]) -> None:
        super().__init__(at, expected)
        self.at = at
        self.expected = expected


class TooDeep(Exception):
    """The text's tree would be too deep for what reads it."""


class Outline:
    """A builder of trees that are only shapes; each has its offset and those within it."""

    def __getattr__(self, _: str) -> Callable[[Span, list[Any]], Shape]:
        return Shape


class Shape:
    """A rule's text: where it begins, and the rules within."""

    __slots__ = ("start", "within")

    def __init__(self, span: Span, children: list[Any]) -> None:
        self.start = span.start
        self.within = [child for child in children if isinstance(child, Shape)]


class _Reduction:
    """A rule, and what becomes of its children."""

    __slots__ = ("beyond", "children", "grows", "method", "name", "passes", "single", "size", "spliced")

    def __init__(self, rule: Rule) -> None:
        self.name, self.size, taken = rule.name, rule.size, rule.taken
        self.spliced = self.name.startswith("_")
        assert self.size or self.spliced, "a rule that may be empty has no place"
        self.method = None if self.spliced else rule.alias or self.name
        self.single = rule.expand and not rule.alias
        self.passes = self.size == 1 and taken == (f"{'*' * self.spliced}values[-1]",) and (self.single or self.spliced)
        """Whether what its one child is on the stack is all there is to it."""
        self.grows = taken[:1] == (f"*values[{-self.size}]",)
        """Whether its children are those of its first, which nobody else has, and more: they are not copied then."""
        self.children = _list_of(taken[self.grows :])
        """What it takes of the last values on the stack."""
        self.beyond: defaultdict[int, dict[str, int]] = defaultdict(dict)
        """By the state below it and the next token: the state after it and whatever rules that passes through."""


@cache
def _list_of(items: tuple[str, ...]) -> Callable[[list[Any]], list[Any]]:
    """A function that returns a list of what these expressions say of ``values``."""
    function: Callable[[list[Any]], list[Any]] = eval(f"lambda values: [{', '.join(items)}]")  # of a rule's places
    return function


class _States(dict[int, dict[str, Any]]):
    """What to do in each state by the next symbol: go to a state (a number), or complete a rule.

    A state's row is made when a text first reaches it: a text visits few of the grammar's 900 states.
    """

    def __init__(self, tables: Tables) -> None:
        super().__init__()
        self._tables = tables
        self._reductions: dict[int, _Reduction] = {}

    def __missing__(self, state: int) -> dict[str, Any]:
        row = self[state] = {symbol: self._action(what) for symbol, what in self._tables.states[state].items()}
        return row

    def _action(self, what: int) -> int | _Reduction:
        if what >= 0:
            return what
        found = self._reductions.get(what)
        if found is None:
            found = self._reductions[what] = _Reduction(self._tables.rules[~what])
        return found


class Machine:
    """A parser over ``tables``, whose lexer looks at the parser's state."""

    def __init__(self, tables: Tables) -> None:
        self.states = _States(tables)
        self._rows: list[dict[str, Any] | None] = [None] * (max(tables.states) + 1)
        """The rows of :attr:`states` that were reached, by state: a list is looked up sooner."""
        self._filter = TokenFilter(tables.spellings)
        self._start, self._end = tables.start, tables.end

    def parse(self, text: str, start: int, end: int, builder: object, deepest: int = sys.maxsize) -> Any:
        """Return what the builder's methods, called ``(span, children)``, make of ``text[start:end]``.

        Raises
        ------
        Stopped
            The text does not follow the grammar.
        TooDeep
            Its tree would be deeper than ``deepest``.
        """
        rows, stack, state = self._rows, [self._start], self._start
        values: list[Any] = []
        firsts: list[int] = []
        """Where each value starts; it ends where the next begins, so the last one ends with the last token."""
        depths: list[int] = []
        """How deep the trees of the values are; not measured where there are too few tokens for a tree too deep."""
        tokens = scan(text, start, end)
        deep = len(tokens) * _RULES_OF_A_TOKEN + _RULES_OF_A_TEXT > deepest
        at = last = start
        typed: Iterator[Any] = chain(self._filter.typed(text, tokens, self.states, stack), (None,))
        for token in typed:
            kind, at = (_END, end) if token is None else (token.type, token.start_pos)
            while True:
                row = rows[state]
                if row is None:
                    row = rows[state] = self.states[state]
                action = row.get(kind)
                if action.__class__ is int:
                    state = action
                    stack.append(state)
                    values.append(token)
                    firsts.append(at)
                    last = token.end_pos
                    if deep:
                        depths.append(0)
                    break
                if action is None:
                    raise Stopped(None if token is None else at, self._accepted(stack))
                size = action.size
                if not action.passes:
                    children = action.children(values)
                    if action.grows:
                        known = values[-size]
                        known += children
                        children = known
                    if size == 0:
                        values.append(children)
                        firsts.append(at)
                        if deep:
                            depths.append(0)
                    else:
                        if size > 1:
                            del stack[1 - size :], values[1 - size :], firsts[1 - size :]
                        if action.spliced:
                            values[-1] = children
                        elif action.single and len(children) == 1:
                            values[-1] = children[0]
                        else:
                            values[-1] = getattr(builder, action.method)(_place(Span, (firsts[-1], last)), children)
                        if deep:
                            depth = max(depths[-size:])
                            if not action.spliced and not (action.single and len(children) == 1):
                                depth += 1
                            if depth > deepest:
                                raise TooDeep
                            depths[-size:] = [depth]
                if size:
                    stack.pop()
                below = stack[-1]
                state = action.beyond[below].get(kind) or self._reduced(below, action, kind)
                stack.append(state)
                if token is None and state == self._end:
                    return values[-1]

    def _accepted(self, stack: list[int]) -> frozenset[str]:
        """The terminals that can follow: those that are shifted after whatever rules they complete.

        They are followed together as long as they complete the same rules, so that a deep stack is read once.
        """
        found = set()
        nodes: Any = None
        for state in stack:  # each a state and the node below, so that none is copied
            nodes = state, nodes
        todo = [(nodes, [kind for kind in self.states[stack[-1]] if kind.isupper()])]
        while todo:
            nodes, kinds = todo.pop()
            completed: dict[_Reduction, list[str]] = {}
            row = self.states[nodes[0]]
            for kind in kinds:
                action = row.get(kind)
                if action.__class__ is int or (kind == _END and nodes[0] == self._end):
                    found.add(kind)
                elif action is not None:
                    completed.setdefault(action, []).append(kind)
            for reduction, kinds in completed.items():
                below = nodes
                for _ in range(reduction.size):
                    below = below[1]
                todo.append(((self.states[below[0]][reduction.name], below), kinds))
        return frozenset(found)

    def _reduced(self, state: int, reduction: _Reduction, kind: str) -> int:
        """The state after a rule, and after the rules of which it is all that the next token lets pass."""
        beyond: int = self.states[state][reduction.name]
        while True:
            action = self.states[beyond].get(kind)
            if not isinstance(action, _Reduction) or not action.passes:
                break
            beyond = self.states[state][action.name]
        reduction.beyond[state][kind] = beyond
        return beyond
