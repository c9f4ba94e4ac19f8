"""Random statements: grown from the grammar itself, and grown from others by changing some of their words.

:class:`Writer` expands the rules of ``pattern.lark`` as Lark compiled them, so what it writes covers the language as
it is.  Names are drawn from those of the small graph of the fuzz tests, and variables mostly from those that the text
has brought in, or else nearly all texts would end at their first unknown name.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from typing import Any

from graphdb.functions import FUNCTIONS as SQL_FUNCTIONS
from graphdb.grammar import parser
from graphdb.grammar.lexing import scan
from graphdb.interpret.functions import AGGREGATES, FUNCTIONS

KEYS = ["age", "name", "nick", "price", "weight", "ok", "born", "seen", "zoned", "clock", "motto", "odd", "mixed"]
KEYS += ["several", "both", "since"]
EDGES = ["knows", "likes", "worksAt", "both", "name", "nick", "age", "rdf:type", "subClassOf", "<urn:x:knows>"]
LABELS = ["Person", "Woman", "Robot", "Firm", "Agent", "<urn:x:None>", "<urn:x:Person>", "rdf:Property"]
INTEGERS = ["0", "1", "2", "3", "7", "100", "9223372036854775807", "0x1F", "-1"]
FLOATS = ["0.5", "1e300", "2.0", ".5", "1e-300"]
STRINGS = ["''", "'Ada'", "'a.b*['", "'2020-01-01'", "'10:00'", "'P1DT2H'", "'é😀'", "'[+02:00'", "'name'", "'\\n'"]
CALLS = sorted({*SQL_FUNCTIONS, *FUNCTIONS, *AGGREGATES, "date.truncate", "duration.between", "datetime.fromepoch"})
VARIABLES = ["a", "b", "c", "d"]

_BETWEEN = ["+", "-", "*", "/", "%", "^", "=", "<>", "<", ">=", "AND", "OR", "IN", "STARTS WITH", "CONTAINS", "=~"]

_DEEP = 26
"""Rules inside each other, after which the shortest way out is taken."""


class Writer:
    """Writes one random statement after another; ``dice`` decides everything."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self._lark = parser._lark()
        self._rules: dict[str, list[tuple[str, ...]]] = {}
        for rule in self._lark.rules:
            if not (rule.alias or "").startswith("call"):  # only names can be called: _call does
                way = tuple(symbol.name for symbol in rule.expansion)
                self._rules.setdefault(rule.origin.name, []).append(way)
        self._literal = {t.name: t.pattern.value for t in self._lark.terminals if t.pattern.type == "str"}
        self._least = self._depths()
        self._known: list[str] = []
        self._own: dict[str, Callable[[int], list[str]]] = {
            "linear": self._linear,
            "pattern": self._pattern,
            "variable": lambda depth: [self._variable()],
            "path_variable": lambda depth: [self._new(), "="],
            "word": lambda depth: [self._any([*EDGES, *LABELS])],
            "labels": self._labels,
            "property_word": lambda depth: [self._any(KEYS)],
            "key": lambda depth: [self._any(KEYS)],
            "map_key": lambda depth: [self._any(KEYS)],
            "name": lambda depth: [self._new()],
            "length": lambda depth: [self._any(["*", "*1..2", "*0..1", "*2", "*..3"])],
            "repeat": lambda depth: [self._any(["*", "+", "?", "{1,2}", "{2}", "{,2}"])],
            "with_clause": self._with,
            "legacy_shortest": self._shortest,
            "expression": self._expression,
            "node": self._node,
            "return_item": self._item,
            "_page": self._page,
        }
        self._tokens: dict[str, Callable[[], str]] = {
            "NAME": lambda: self._any([*VARIABLES, "x"]),
            "KEYWORD_NAME": lambda: "count",
            "IRI": lambda: self._any(["<urn:x:a>", "<urn:x:knows>", "<urn:x:none>"]),
            "INTEGER": lambda: self._any(INTEGERS[:-1]),
            "FLOAT": lambda: self._any(FLOATS),
            "STRING": lambda: self._any(STRINGS),
            "PARAMETER": lambda: self._any(["$one", "$text", "$list", "$map"]),
            "_PATTERN_OPEN": lambda: "(",
            "_LIST_OPEN": lambda: "[",
            "_PATTERN_LIST_OPEN": lambda: "[",
            "_BAR": lambda: "|",
            "PROPERTY_COLON": lambda: ":",
            "KEY_COLON": lambda: ":",
            "SUBQUERY": lambda: self._any(["EXISTS", "COUNT", "COLLECT"]),
            "QUANTIFIER": lambda: self._any(["all", "any", "none", "single"]),
            "_REDUCE": lambda: "reduce",
        }

    def statement(self) -> str:
        """Return a query."""
        self._known = []
        return " ".join(self._write("query", 0))

    # --- growing

    def _depths(self) -> dict[str, float]:
        """The least number of rules inside each other that each rule needs."""
        least: dict[str, float] = dict.fromkeys(self._rules, math.inf)
        changed = True
        while changed:
            changed = False
            for name, ways in self._rules.items():
                found = 1 + min(max((least.get(symbol, 0) for symbol in way), default=0) for way in ways)
                if found < least[name]:
                    least[name], changed = found, True
        return least

    def _write(self, symbol: str, depth: int, own: bool = True) -> list[str]:
        if symbol in self._own and own:
            return self._own[symbol](depth)
        if symbol not in self._rules:
            return [self._tokens[symbol]() if symbol in self._tokens else self._literal[symbol]]
        if symbol == "postfix" and self._dice.random() < 0.12:
            return self._call(depth)
        words: list[str] = []
        for part in self._way(symbol, depth):
            words += self._write(part, depth + 1)
        return words

    def _way(self, symbol: str, depth: int) -> tuple[str, ...]:
        ways = self._rules[symbol]
        if depth > _DEEP:
            return min(ways, key=lambda way: max((self._least.get(part, 0) for part in way), default=0))
        # A rule that may be nothing but another one mostly is: precedence is a ladder, and each step would double.
        single = [way for way in ways if len(way) == 1]
        return self._any(single) if single and self._dice.random() < 0.8 else self._any(ways)

    def _any(self, choices: list[Any]) -> Any:
        return choices[self._dice.randrange(len(choices))]

    # --- what chance would seldom get right

    def _linear(self, depth: int) -> list[str]:
        first = ["match", "match", "match", "unwind", "optional_match", "create", "merge", "return_clause"]
        words = self._write(self._any(first), depth + 1)
        for _ in range(self._any([0, 0, 1, 1, 2])):
            middle = ["with_clause", "match", "optional_match", "unwind", "set_clause", "remove", "delete", "merge"]
            words += self._write(self._any(middle), depth + 1)
        if self._dice.random() < 0.9:
            words += self._write("return_clause", depth + 1)
        return words

    def _pattern(self, depth: int) -> list[str]:
        if self._dice.random() < 0.15:
            return self._write("pattern", depth, own=False)
        named = [self._new(), "="] if self._dice.random() < 0.2 else []
        prefix = self._write("path_prefix", depth + 1) if self._dice.random() < 0.15 else []
        words = [*named, *prefix, *self._write("node", depth + 8)]
        for _ in range(self._any([0, 1, 1, 2])):
            words += [*self._write("_edge", depth + 8), *self._write("node", depth + 8)]
        return words

    def _shortest(self, depth: int) -> list[str]:
        ends = [self._write("node", depth + 8) for _ in range(2)]
        call = self._any(["shortestPath", "allShortestPaths"])
        return [call, "(", *ends[0], "-", "[", "*", "]", self._any(["->", "-"]), *ends[1], ")"]

    def _with(self, depth: int) -> list[str]:
        words = ["WITH", *(["DISTINCT"] if self._dice.random() < 0.2 else [])]
        if self._dice.random() < 0.3:
            words.append("*")
        else:
            made = [(self._write("expression", depth + 1), self._new()) for _ in range(self._any([1, 2]))]
            words += ", ".join(" ".join([*value, "AS", name]) for value, name in made).split(" ")
        for tail in ("_order", "_page"):
            words += self._write(tail, depth + 1)
        return words + (["WHERE", *self._write("expression", depth + 1)] if self._dice.random() < 0.3 else [])

    def _expression(self, depth: int) -> list[str]:
        if depth > _DEEP or self._dice.random() < 0.35:
            return self._leaf()
        if self._dice.random() < 0.3:
            return self._write("expression", depth, own=False)
        one, other = self._expression(depth + 9), self._expression(depth + 9)
        match self._dice.randrange(5):
            case 0:
                return self._call(depth)
            case 1:
                return ["[", *one, ",", *other, "]"]
            case 2:
                return ["(", *one, ")"]
        return [*one, *self._any(_BETWEEN).split(" "), *other]

    def _leaf(self) -> list[str]:
        if self._known and self._dice.random() < 0.6:
            return [self._any(self._known), *([".", self._any(KEYS)] if self._dice.random() < 0.6 else [])]
        return [self._any([*INTEGERS, *FLOATS, *STRINGS, "null", "true", "$list", "$one", "$text", "$map", "[1, 2]"])]

    def _call(self, depth: int) -> list[str]:
        name = self._any(CALLS)
        function = FUNCTIONS.get(name)
        least, most = (function.least, function.most) if function else (1, 1)
        number = self._dice.randint(least, min(most, 3)) if self._dice.random() < 0.9 else self._dice.randrange(4)
        arguments = [self._expression(depth + 9) for _ in range(number)]
        return [name, "(", *" , ".join(" ".join(words) for words in arguments).split(" "), ")"]

    def _item(self, depth: int) -> list[str]:
        return [*self._expression(depth), *(["AS", self._new()] if self._dice.random() < 0.5 else [])]

    def _page(self, depth: int) -> list[str]:
        if self._dice.random() < 0.1:
            return self._write("_page", depth, own=False)
        return self._any([[], [], [], ["SKIP", "1"], ["LIMIT", "3"], ["SKIP", "1", "LIMIT", "2"]])

    def _node(self, depth: int) -> list[str]:
        if self._dice.random() < 0.2:
            return self._write("node", depth, own=False)
        name = [self._any(VARIABLES)] if self._dice.random() < 0.7 else []
        label = [":", self._any(LABELS)] if self._dice.random() < 0.3 else []
        held = ["{", self._any(KEYS), ":", *self._leaf(), "}"] if self._dice.random() < 0.15 else []
        self._known += name
        return ["(", *name, *label, *held, ")"]

    def _labels(self, depth: int) -> list[str]:
        if self._dice.random() < 0.1:
            return self._write("labels", depth, own=False)
        return [":", self._any([*LABELS, *EDGES])]

    def _variable(self) -> str:
        if self._known and self._dice.random() < 0.85:
            return self._any(self._known)
        return self._new()

    def _new(self) -> str:
        name = self._any(VARIABLES)
        self._known.append(name)
        return name


def mutated(text: str, others: list[str], dice: random.Random) -> str:
    """Return a statement with some of its words left out, doubled, exchanged, or taken from another statement."""
    words = _words(text)
    for _ in range(dice.randrange(1, 5)):
        if not words:
            break
        at = dice.randrange(len(words))
        match dice.randrange(5):
            case 0:
                del words[at]
            case 1:
                words.insert(at, words[dice.randrange(len(words))])
            case 2:
                other = dice.randrange(len(words))
                words[at], words[other] = words[other], words[at]
            case 3:
                piece = _words(dice.choice(others))
                start = dice.randrange(len(piece) or 1)
                words[at:at] = piece[start : start + dice.randrange(1, 8)]
            case 4:
                words[at] = dice.choice([*INTEGERS, *STRINGS, "null", "true", "[]", "{}", "(", ")", "*", "a", "n"])
    return " ".join(words)


def _words(text: str) -> list[str]:
    try:
        return [str(token) for token in scan(text, 0, len(text))]
    except Exception:  # what cannot be read is cut at its spaces
        return re.split(r"\s+", text)
