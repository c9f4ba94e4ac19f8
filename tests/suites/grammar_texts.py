"""Random statements: grown from the grammar itself, and grown from others by changing some of their words.

:class:`Writer` expands the rules of ``pattern.lark`` as Lark compiled them, so what it writes covers the language as
it is.  Where chance alone would seldom write what gets past the first checks, it has ways of its own: variables are
mostly those that the text has brought in, names those of the fuzz tests' graph, operands of the operator's type.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from typing import Any

from graphdb.common.errors import ParseError
from graphdb.functions.table import SIGNATURE_OF
from graphdb.grammar import tables
from graphdb.grammar.lexing import scan

KEYS = ["age", "name", "nick", "price", "weight", "ok", "born", "seen", "zoned", "clock", "motto", "odd", "mixed"]
KEYS += ["several", "both", "since"]
EDGES = ["knows", "likes", "worksAt", "both", "name", "nick", "age", "rdf:type", "knows|likes", "<urn:x:knows>"]
LABELS = ["Person", "Woman", "Robot", "Firm", "Person|Robot", "!Woman", "%", "<urn:x:None>", "<urn:x:Person>"]
VERTICES, NAMED_EDGES, OTHERS = ["a", "b", "c", "d"], ["e", "f", "g", "h"], ["u", "v", "w"]
CALLS = sorted(SIGNATURE_OF)

LEAVES = {
    "number": ["0", "1", "-1", "2", "7", "100", "9223372036854775807", "0x1F", "0.5", "1e300", "2.0", ".5", "$one"],
    "text": ["''", "'Ada'", "'a.b*['", "'2020-01-01'", "'10:00'", "'P1DT2H'", "'é😀'", "'name'", "'\\n'", "$text"],
    "list": ["[]", "[1, 2, null]", "['x', 1.5, [true]]", "$list", "range(0, 5)", "range(7, -7, -3)", "[[1], [2, 3]]"],
    "truth": ["true", "false", "null"],
    "map": ["{}", "{name: 'Ada', age: 1}", "$map", "{year: 2020, month: 2}", "{days: 1, hours: -3}"],
    "time": ["date('2020-02-29')", "datetime('2020-01-01T10:00+01:00')", "duration('P1M2DT3.5S')", "time('10:00Z')"],
}
KEYS_OF = {
    "number": ["age", "price", "weight", "mixed", "several", "since"],
    "text": ["name", "nick", "motto", "odd", "both"],
    "time": ["born", "seen", "zoned", "clock"],
    "truth": ["ok"],
}
_TEMPLATES = """
number:  ({number} + {number})   ({number} - {number})   ({number} * {number})   ({number} / {number})
number:  ({number} % {number})   {number} ^ 2   abs({number})   size({list})   size({text})   toInteger({text})
number:  coalesce({any}, {number})   reduce(s = 0, x IN {list} | s + 1)   {list}[0]   count({any})   count(*)
number:  sum({number})   COUNT ⟨ ({variable})--() ⟩   {time}.year   id({variable})   min({any})
text:  ({text} + {text})   toUpper({text})   toString({any})   substring({text}, {number})   type({variable})
text:  left({text}, 2)   replace({text}, {text}, {text})   iri({variable})   lang({variable}.{key})
text:  head({list})   toString({time})   {map}.name   datatype({variable}.{key})   trim({text})
list:  [{any}, {any}]   ({list} + {list})   [x IN {list} WHERE {truth} | x]   tail({list})   {list}[1..{number}]
list:  split({text}, {text})   collect({any})   keys({variable})   labels({variable})   collect(DISTINCT {any})
list:  [({variable})-->(n) | n.name]   COLLECT ⟨ MATCH ({variable})-[:knows]->(m) RETURN m.age ⟩
list:  reverse({list})   [x IN {list} | {any}]   ({list} || {list})   nullIf({list}, {any})
text:  ({text} || {text})   trim(LEADING {text} FROM {text})   CASE {number} WHEN < {number} THEN {text} ELSE {text} END
truth:  ({any} = {any})   ({number} < {number})   ({any} <> {any})   ({truth} AND {truth})   NOT {truth}
truth:  ({truth} OR {truth})   ({truth} XOR {truth})   ({text} STARTS WITH {text})   ({text} CONTAINS {text})
truth:  ({any} IN {list})   ({any} IS NULL)   ({any} IS NOT NULL)   ({text} =~ {text})   ({any} >= {any})
truth:  ({variable})-[:knows]->()   EXISTS ⟨ MATCH ({variable})-[:likes]->(m) WHERE {truth} ⟩
truth:  {variable}:Person   all(x IN {list} WHERE {truth})   any(x IN {list} WHERE x = {any})
truth:  (1 < {number} <= {number})
map:  ⟨a: {any}, b: {any}⟩   {variable} ⟨.*, x: {any}⟩   properties({variable})   {variable} ⟨.name⟩
time:  ({time} + duration({map}))   date({map})   duration.between({time}, {time})
time:  date.truncate('month', {time})
"""
TEMPLATES: dict[str, list[str]] = {}
for _line in _TEMPLATES.strip().splitlines():
    _kind, _, _ways = _line.partition(":")
    TEMPLATES.setdefault(_kind, []).extend(_ways.strip().split("   "))
KINDS = sorted(TEMPLATES)
NODES = ["({v})", "({v})", "()", "({v}:{label})", "(:{label})", "({v} ⟨{key}: {leaf}⟩)", "({v} WHERE {truth})"]
STEPS = [
    "-->",
    "<--",
    "--",
    "-[{e}]->",
    "-[:{edge}]->",
    "<-[:{edge}]-",
    "-[{e}:{edge}]-",
    "-[*1..2]->",
    "-[{e}:{edge}*0..2]-",
]
STEPS += ["-[:{edge}]->⟨1,2⟩", "-[:{edge}]->*", "-->+", "<-[:{edge}]-?", "-[{e}:{edge} ⟨since: {leaf}⟩]->"]
STEPS += ["-[{e} WHERE {truth}]->"]
PREFIXES = ["", "", "", "", "", "", "ANY", "ANY SHORTEST", "ALL SHORTEST", "SHORTEST 2", "SHORTEST 1 GROUPS", "TRAIL"]
PREFIXES += ["SIMPLE", "ACYCLIC", "ANY 2 TRAIL", "WALK"]
MODES = ["", "", "", "DIFFERENT NODES", "REPEATABLE ELEMENTS", "INDUCED", "DIFFERENT EDGES"]
MADE = [
    "({v})",
    "({v}:Person)",
    "({v}:New ⟨name: {leaf}⟩)",
    "({v})-[:knows]->({v})",
    "({v})-[{e}:likes ⟨since: 1⟩]->()",
]
CHANGES = ["SET {variable}.{key} = {any}", "SET {variable} = {map}", "SET {variable} += {map}", "SET {variable}:New"]
CHANGES += ["REMOVE {variable}.{key}", "REMOVE {variable}:Person", "DELETE {variable}", "DETACH DELETE {variable}"]
CHANGES += ["FOREACH (i IN {list} | SET {variable}.{key} = i)", "FOREACH (i IN {list} | CREATE (:New ⟨name: i⟩))"]
CALLED = [
    "CALL db.labels() YIELD label AS {o}",
    "OPTIONAL CALL db.propertyKeys() YIELD propertyKey AS {o} WHERE {truth}",
    "CALL db.schema.visualization() YIELD nodes AS {o}",
    "CALL ({variable}) ⟨ MATCH ({variable})-[:{edge}]->(m) RETURN m.{key} AS {o} ⟩",
    "OPTIONAL CALL (*) ⟨ MATCH (m:{label}) WHERE {truth} RETURN count(m) AS {o} ⟩",
    "CALL ⟨ WITH {variable} MATCH ({variable})--(m) RETURN m AS {o} ORDER BY m.{key} LIMIT 1 ⟩",
    "CALL () ⟨ MATCH (m) RETURN max(m.{key}) AS {o} UNION RETURN 1 AS {o} ⟩",
]

_DEEP = 26
"""Rules inside each other, after which the shortest way out is taken."""


class Writer:
    """Writes one random statement after another; ``dice`` decides everything."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        lark = tables.lark()
        self._rules: dict[str, list[tuple[str, ...]]] = {}
        for rule in lark.rules:
            if not (rule.alias or "").startswith("call"):  # only names can be called: a template does
                way = tuple(symbol.name for symbol in rule.expansion)
                self._rules.setdefault(rule.origin.name, []).append(way)
        self._literal = {t.name: t.pattern.value for t in lark.terminals if t.pattern.type == "str"}
        self._least = self._depths()
        self._known: list[str] = []
        self._own: dict[str, Callable[[int], str]] = {
            "expression": lambda depth: self._value(self._pick(KINDS), depth // 8),
            "variable": lambda depth: self._variable(),
            "path_variable": lambda depth: f"{self._new(OTHERS)} =",
            "name": lambda depth: self._new(OTHERS),
            "word": lambda depth: self._pick([*EDGES, *LABELS]),
            "property_word": lambda depth: self._pick(KEYS),
            "key": lambda depth: self._pick(KEYS),
            "map_key": lambda depth: self._pick(KEYS),
        }
        self._tokens: dict[str, Callable[[], str]] = {
            "NAME": self._variable,
            "KEYWORD_NAME": lambda: "count",
            "IRI": lambda: self._pick(["<urn:x:a>", "<urn:x:knows>", "<urn:x:none>"]),
            "INTEGER": lambda: self._pick(["0", "1", "2", "3"]),
            "FLOAT": lambda: self._pick(["0.5", "1e300"]),
            "STRING": lambda: self._pick(LEAVES["text"][:-1]),
            "PARAMETER": lambda: self._pick(["$one", "$text", "$list", "$map"]),
            "INTEGERS": lambda: self._pick(["[1, 2]", "[3, -1, 0, 2]"]),
            "STRINGS": lambda: self._pick(["['a', 'b']", "['', 'x', 'b']"]),
            "SUBQUERY": lambda: self._pick(["EXISTS", "COUNT", "COLLECT"]),
            "QUANTIFIER": lambda: self._pick(["all", "any", "none", "single"]),
            "_REDUCE": lambda: "reduce",
            "SHORTEST_PATH": lambda: self._pick(["shortestPath", "allShortestPaths"]),
            "TRIM": lambda: "trim",
            "TRIM_SIDE": lambda: self._pick(["LEADING", "TRAILING", "both"]),
        }
        marks = {"_PATTERN_OPEN": "(", "_LIST_OPEN": "[", "_PATTERN_LIST_OPEN": "[", "_BAR": "|"}
        marks |= {"PROPERTY_COLON": ":", "KEY_COLON": ":"}
        self._literal |= marks
        written = {symbol for ways in self._rules.values() for way in ways for symbol in way}
        assert written <= self._rules.keys() | self._tokens.keys() | self._literal.keys()

    def statement(self) -> str:
        """Return a query: mostly one that makes sense, now and then whatever the grammar allows."""
        self._known = []
        if self._one_in(8):
            return self._grown("query", 0)
        parts = [self._query() for _ in range(2 if self._one_in(12) else 1)]
        return self._pick([" UNION ", " UNION ALL "]).join(parts)

    # --- whatever the grammar allows

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

    def _grown(self, symbol: str, depth: int) -> str:
        if symbol in self._own and not self._one_in(4):
            return self._own[symbol](depth)
        if symbol not in self._rules:
            return self._tokens[symbol]() if symbol in self._tokens else self._literal[symbol]
        ways = self._rules[symbol]
        single = [way for way in ways if len(way) == 1]
        if depth > _DEEP:
            way = min(ways, key=lambda way: max((self._least.get(part, 0) for part in way), default=0))
        elif single and not self._one_in(5):  # precedence is a ladder, and each of its steps would double the text
            way = self._pick(single)
        else:
            way = self._pick(ways)
        return " ".join(self._grown(part, depth + 1) for part in way)

    # --- what makes sense

    def _query(self) -> str:
        clauses = [self._reading() for _ in range(self._pick([0, 1, 1, 1, 2]))]
        if self._one_in(3):
            clauses.append(self._projection("WITH"))
            clauses += [self._reading() for _ in range(self._pick([0, 0, 1]))]
        if self._one_in(6):
            made = ", ".join(self._filled(self._pick(MADE)) for _ in range(self._pick([1, 1, 2])))
            clauses.append(self._pick(["CREATE " + made, "MERGE " + self._filled(self._pick(MADE[:4]))]))
        if self._known and self._one_in(6):
            clauses.append(self._filled(self._pick(CHANGES)))
        return " ".join([*clauses, self._projection("RETURN")])

    def _reading(self) -> str:
        if self._one_in(5):
            return f"UNWIND {self._value('list', 2)} AS {self._new(OTHERS)}"
        if self._known and self._one_in(8):
            return self._filled(self._pick(CALLED).replace("{o}", self._pick(OTHERS)))
        paths = [self._path() for _ in range(self._pick([1, 1, 1, 2]))]
        clause = f"{self._pick(['MATCH', 'MATCH', 'OPTIONAL MATCH'])} {self._pick(MODES)} {', '.join(paths)}"
        return clause + (f" WHERE {self._value('truth', 1)}" if self._one_in(2) else "")

    def _path(self) -> str:
        prefix = self._pick(PREFIXES)
        if self._one_in(12):
            return self._grown("pattern", 8)
        text = self._filled(self._pick(NODES))
        for _ in range(self._pick([0, 1, 1, 1, 2])):
            text += self._filled(self._pick(STEPS)) + self._filled(self._pick(NODES))
        if named := self._one_in(4):
            self._known.append("p")
        return f"{'p = ' if named else ''}{prefix} {text}"

    def _projection(self, word: str) -> str:
        items = ["*"] if self._one_in(8) else []
        for i in range(self._pick([1, 1, 2]) if not items else 0):
            named = word == "WITH" or self._one_in(2)
            items.append(
                self._value(self._pick([*KINDS, "any"]), 1) + (f" AS {self._pick(['x', 'y', 'z'])}{i}" if named else "")
            )
        tail = f" ORDER BY {self._value('any', 2)}{self._pick(['', ' DESC'])}" if self._one_in(4) else ""
        tail += self._pick(["", "", "", " SKIP 1", " LIMIT 3", " SKIP 1 LIMIT 2"])
        tail += f" WHERE {self._value('truth', 1)}" if word == "WITH" and self._one_in(4) else ""
        if word == "WITH" and items != ["*"]:
            self._known = [item.rpartition(" AS ")[2] for item in items]
        return f"{word} {'DISTINCT ' if self._one_in(6) else ''}{', '.join(items)}{tail}"

    def _value(self, kind: str, depth: int) -> str:
        """Return an expression, mostly of a kind."""
        if kind == "any" or self._one_in(25):
            kind = self._pick(KINDS)
        if self._known and self._one_in(3):
            key = f".{self._pick(KEYS_OF[kind])}" if kind in KEYS_OF and not self._one_in(5) else ""
            return self._variable() + key
        if depth > 3 or self._one_in(3):
            return self._pick(LEAVES[kind])
        if self._one_in(15):
            arguments = [self._value("any", depth + 1) for _ in range(self._pick([0, 1, 1, 2, 3]))]
            return f"{self._pick(CALLS)}({', '.join(arguments)})"
        if self._one_in(20):
            return f"({self._grown('or_', _DEEP - 8)})"
        return self._filled(self._pick(TEMPLATES[kind]), depth + 1)

    def _filled(self, template: str, depth: int = 2) -> str:
        """Fill the places of a template, each anew; ⟨ ⟩ are the language's own braces."""

        def fill(place: re.Match[str]) -> str:
            match place[1]:
                case "v":
                    return self._new(VERTICES)
                case "e":
                    return self._new(NAMED_EDGES)
                case "variable":
                    return self._variable(VERTICES)
                case "key":
                    return str(self._pick(KEYS))
                case "edge":
                    return str(self._pick(EDGES))
                case "label":
                    return str(self._pick(LABELS))
                case "leaf":
                    return str(self._pick(LEAVES[self._pick(["number", "text", "time"])]))
            return self._value(place[1], depth)

        return re.sub(r"\{(\w+)\}", fill, template).replace("⟨", "{").replace("⟩", "}")

    def _variable(self, wanted: list[str] | None = None) -> str:
        """Return a variable that is there, of the wanted ones if possible."""
        known = [name for name in self._known if wanted is None or name in wanted] or self._known
        return str(self._pick(known if known and not self._one_in(20) else VERTICES))

    def _new(self, names: list[str]) -> str:
        """Bring in a variable; one that may be there already only where that makes sense."""
        fresh = [name for name in names if name not in self._known]
        name = str(self._pick(names if names is VERTICES else fresh or names))
        self._known.append(name)
        return name

    def _pick(self, choices: list[Any]) -> Any:
        return choices[self._dice.randrange(len(choices))]

    def _one_in(self, number: int) -> bool:
        return self._dice.randrange(number) == 0


def mutated(text: str, others: list[str], dice: random.Random) -> str:
    """Return a statement with some of its words changed: mostly to a word of the same sort, from another statement."""
    words = _words(text)
    for _ in range(dice.choice([1, 1, 1, 2, 3, 5])):
        if not words:
            break
        at = dice.randrange(len(words))
        piece = _words(dice.choice(others)) or ["1"]
        alike = [word for word in piece if _sort(word) == _sort(words[at])]
        match dice.randrange(12):
            case 0:
                del words[at]
            case 1:
                other = dice.randrange(len(words))
                words[at], words[other] = words[other], words[at]
            case 2:
                start = dice.randrange(len(piece))
                words[at:at] = piece[start : start + dice.randrange(1, 8)]
            case 3:
                words[at] = dice.choice([dice.choice(leaves) for leaves in LEAVES.values()])
            case _:
                words[at] = dice.choice(alike or words)
    return " ".join(words)


def _sort(word: str) -> str:
    return "word" if word[0].isalpha() else "number" if word[0].isdigit() else word[0] if word[0] in "'$" else "sign"


def _words(text: str) -> list[str]:
    try:
        return [str(token) for token in scan(text, 0, len(text))]
    except ParseError:  # what cannot be read is cut at its spaces
        return text.split()
