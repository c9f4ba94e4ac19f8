"""Queries of several clauses as SQL over bindings, against Python: the same rows, whatever the clauses are.

The queries come from a small grammar that knows which names are there, and of what type; the graphs are few and small,
with parallel paths, self loops, several labels, absent properties and multi-valued ones.  ``GRAPHDB_FUZZ`` multiplies
the number of examples.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, note, settings
from hypothesis import strategies as st

import graphdb
from tests.fuzz import SAME, scaled
from tests.oracle.databases import loaded
from tests.oracle.routes import in_python

pick = st.sampled_from


def _graph(seed: int) -> Iterator[str]:
    """Triples over up to eight vertices; every third has no ``age``, and the first has two nicknames.

    In the last two graphs edges have properties, too, and there are parallel ones.
    """
    dice = random.Random(seed)
    count = 4 + seed % 5
    for i in range(count):
        yield f"<urn:x:v{i}> a <urn:x:{'N' if i % 3 else 'M'}> ."
        yield f'<urn:x:v{i}> <urn:x:id> {i} ; <urn:x:name> "{"abcab"[i % 5]}" .'
        mixed = ["1", "2.5e0", '"a"', "true"][i % 4]
        yield f"<urn:x:v{i}> <urn:x:weight> {i / 2}e0 ; <urn:x:mixed> {mixed} ."
        if i % 3 != 2:
            yield f"<urn:x:v{i}> <urn:x:age> {dice.randrange(3)} ."
    yield '<urn:x:v0> a <urn:x:N> ; <urn:x:nick> "x", "y" . <urn:x:v1> <urn:x:nick> "y" .'
    for i in range(count * 2):
        annotated = ""
        if seed > 1:
            facts = [
                "",
                "",
                "{| <urn:x:age> 1 |}",
                '{| <urn:x:age> 2 ; <urn:x:name> "a" |}',
                "{| <urn:x:mixed> 1, true |}",
            ]
            annotated = f"{dice.choice(facts)} {dice.choice(['', '', '', f'~ <urn:x:again{i}>'])}"
        triple = f"<urn:x:v{dice.randrange(count)}> <urn:x:{dice.choice('EEF')}> <urn:x:v{dice.randrange(count)}>"
        yield f"{triple} {annotated} ."
    yield "<urn:x:v1> <urn:x:E> <urn:x:v1>, <urn:x:v2> . <urn:x:v2> <urn:x:F> <urn:x:v1> ."


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[graphdb.Database]]:
    with loaded(tmp_path_factory.mktemp("clauses"), map(_graph, range(4))) as found:
        yield found


# --- the grammar -----------------------------------------------------------------------------------------------

Scope = dict[str, str]
"""The names that are there, each with its type: node, edge, int, text, ints, or nodes."""


class Writer:
    """Writes one query, clause by clause."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.fresh = 0
        self.inside = False
        """Whether a whole query is under way inside another."""

    def one_of(self, *choices: Any) -> Any:
        return self.draw(pick(choices))

    def name(self, kind: str) -> str:
        self.fresh += 1
        return f"{kind[0]}{self.fresh}"

    def names(self, scope: Scope, kind: str) -> list[str]:
        return [name for name, found in scope.items() if found == kind]

    # --- expressions

    def int(self, scope: Scope, depth: int = 2) -> str:
        nodes, ints, lists = (self.names(scope, kind) for kind in ("node", "int", "ints"))
        leaves = ["1", "2", "null", *ints, *[f"{n}.age" for n in nodes], *[f"{n}.id" for n in nodes]]
        leaves += [f"length({name})" for name in (*self.names(scope, "path"), *self.names(scope, "shortest"))]
        leaves += [f"{name}.age" for name in self.names(scope, "edge")]
        leaf = self.one_of(*leaves)
        if depth == 0:
            return str(leaf)
        match self.draw(st.integers(0, 9)):
            case 0:
                return f"({self.int(scope, depth - 1)} {self.one_of('+', '-', '*')} {self.int(scope, depth - 1)})"
            case 1:
                otherwise = self.one_of("", f" ELSE {self.int(scope, 0)}")
                return f"CASE WHEN {self.condition(scope, depth - 1)} THEN {self.int(scope, depth - 1)}{otherwise} END"
            case 2:
                tested = f"{self.int(scope, 0)} WHEN {self.int(scope, 0)} THEN {self.int(scope, 0)} ELSE 7"
                return f"CASE {tested} END"
            case 3:
                return f"coalesce({self.int(scope, 0)}, {self.int(scope, 0)})"
            case 4 if lists:
                return f"{self.one_of('head', 'last', 'size')}({self.ints(scope, depth - 1)})"
            case 5:
                return f"{self.ints(scope, depth - 1)}[{self.one_of('0', '1', '-1', '5', self.int(scope, 0))}]"
            case 6 if nodes:
                return self.subquery("COUNT", scope)
            case 7:
                return f"size({self.ints(scope, depth - 1)})"
        return str(leaf)

    def text(self, scope: Scope) -> str:
        nodes, texts = self.names(scope, "node"), self.names(scope, "text")
        leaf = self.one_of("'a'", "'b'", "''", "null", *texts, *[f"{n}.name" for n in nodes])
        match self.draw(st.integers(0, 4)):
            case 0:
                return f"({leaf} + 'x')"
            case 1:
                return f"{self.one_of('toUpper', 'reverse', 'trim')}({leaf})"
            case 2:
                return f"substring({leaf}, 0, 1)"
        return str(leaf)

    def ints(self, scope: Scope, depth: int = 1) -> str:
        lists = self.names(scope, "ints")
        leaf = self.one_of("[1, 2, null]", "[]", "range(0, 3)", f"[{self.int(scope, 0)}, 2]", *lists)
        if depth <= 0:
            return str(leaf)
        match self.draw(st.integers(0, 5)):
            case 0:
                where = self.one_of("", f" WHERE z > {self.int(scope, 0)}")
                return f"[z IN {leaf}{where} | z + {self.int(scope, 0)}]"
            case 1:
                return f"{leaf}[{self.one_of('1..', '..2', '-2..', '0..1', '1..-1')}]"
            case 2:
                return f"{self.one_of('tail', 'reverse')}({leaf})"
            case 3:
                return f"({leaf} + {self.ints(scope, 0)})"
        return str(leaf)

    def condition(self, scope: Scope, depth: int = 2) -> str:
        nodes = self.names(scope, "node")
        edges = self.names(scope, "edge")
        match self.draw(st.integers(0, 13)):
            case 13 if edges:
                left = f"{self.one_of(*edges)}.{self.one_of('age', 'age', 'mixed')}"
                return f"{left} {self.one_of('=', '<>', '<')} {self.int(scope, 0)}"
            case 0 if depth:
                operator = self.one_of("AND", "OR", "XOR")
                return f"({self.condition(scope, depth - 1)} {operator} {self.condition(scope, depth - 1)})"
            case 1 if depth:
                return f"NOT ({self.condition(scope, depth - 1)})"
            case 2 if nodes:
                return f"{self.one_of(*nodes)}:{self.one_of('N', 'M')}"
            case 3 if nodes and depth:
                return self.subquery("EXISTS", scope)
            case 4 if nodes and depth:
                edge = self.one_of("E", "F", "F*", "E*1..2")
                return f"({self.one_of(*nodes)})-[:{edge}]->({self.one_of('', ':M', *nodes)})"
            case 5:
                return f"{self.int(scope, 0)} IN {self.ints(scope, 0)}"
            case 6:
                quantifier = self.one_of("any", "all", "none", "single")
                return f"{quantifier}(z IN {self.ints(scope, 0)} WHERE z {self.one_of('>', '=')} {self.int(scope, 0)})"
            case 7:
                return f"{self.text(scope)} {self.one_of('=', '<>', 'STARTS WITH')} {self.text(scope)}"
            case 8 if nodes:
                return f"{self.one_of(*nodes)} {self.one_of('=', '<>')} {self.one_of(*nodes)}"
            case 9:
                return f"{self.int(scope, 0)} IS {self.one_of('', 'NOT ')}NULL"
            case 10 if nodes:
                return f"{self.one_of(*nodes)}.nick {self.one_of('=', '<>')} 'y'"
            case 11 if nodes:
                operator = self.one_of("=", "<>", "<", ">=")
                return f"{self.one_of(*nodes)}.{self.one_of('weight', 'mixed')} {operator} {self.int(scope, 0)}"
        return f"{self.int(scope, 0)} {self.one_of('=', '<>', '<', '>=')} {self.int(scope, 0)}"

    def subquery(self, kind: str, scope: Scope) -> str:
        if kind == "COLLECT" or (not self.inside and self.draw(st.integers(0, 2)) == 0):
            self.inside = True
            union = self.one_of(" UNION ", " UNION ALL ")
            parts = [self.query_inside(scope) for _ in range(self.one_of(1, 1, 1, 2))]
            self.inside = False
            return f"{kind} {{ {union.join(parts)} }}"
        inner = dict(scope)
        pattern = self.pattern(inner, must=True)
        where = f" WHERE {self.condition(inner, 0)}" if self.draw(st.booleans()) else ""
        return f"{kind} {{ {self.one_of('', 'MATCH ')}{pattern}{where} }}"

    def query_inside(self, around: Scope) -> str:
        """A whole query that knows the names around it; it returns one column."""
        scope = dict(around)
        clauses = []
        steps = self.one_of(["match"], ["unwind"], ["match", "with"], ["with", "match"], ["match", "with", "match"])
        for step in steps:
            if step == "with":
                clauses.append(self.projection("WITH", scope))
            else:
                clauses.append((self.match if step == "match" else self.unwind)(scope))
        if self.draw(st.integers(0, 2)) == 0:
            inner = self.one_of("*", self.int(scope, 0), *self.names(scope, "node"))
            return " ".join([*clauses, f"RETURN count({inner}) + 1 AS i"])
        page = self.one_of("", "", " ORDER BY i", " ORDER BY i DESC LIMIT 2", " ORDER BY i SKIP 1", " SKIP 0 LIMIT 9")
        return " ".join([*clauses, f"RETURN {self.one_of('', 'DISTINCT ')}{self.int(scope, 1)} AS i{page}"])

    # --- clauses

    def vertex(self, scope: Scope, known: bool) -> str:
        nodes = self.names(scope, "node")
        if nodes and (known or self.draw(st.booleans())):
            return f"({self.one_of(*nodes)})"
        name = self.one_of("", self.name("node"))
        label = self.one_of("", ":N", ":M")
        having = self.one_of("", "", "", f" {{id: {self.one_of('1', *self.names(scope, 'int'))}}}")
        if name:
            scope[name] = "node"
        return f"({name}{label}{having})"

    def pattern(self, scope: Scope, must: bool = False) -> str:
        path = self.vertex(scope, must)
        for _ in range(self.draw(st.integers(1 if must else 0, 2))):
            left, right = self.one_of(("-", "->"), ("<-", "-"), ("-", "-"))
            name = self.one_of("", "", self.name("relationship"))
            having = self.one_of("", "", "", "", f" {{age: {self.one_of('1', *self.names(scope, 'int'))}}}")
            labels = self.one_of("", ":E", ":F", ":E|F")
            if not name and not having:
                labels += self.one_of("", "", "*1..2", "*0..1") if labels != ":F" else self.one_of("", "*", "*2..")
            path += f"{left}[{name}{labels}{having}]{right}" + self.vertex(scope, False)
            if name:
                scope[name] = "edge"
        return path

    def path(self, scope: Scope) -> str:
        """A path with a name: every one, or those that a selector leaves; which of the shortest it is nobody says."""
        inner = dict(scope)
        left = self.vertex(inner, self.draw(st.booleans()))
        low = self.one_of("*", "+", "{2,}", "{0,2}")
        arrow = self.one_of("-[:F]->", "-[:E]->", "<-[:F]-", "-[:F]-")
        kind, prefix = self.one_of(
            ("shortest", "ANY SHORTEST "), ("path", "ALL SHORTEST "), ("shortest", "SHORTEST 2 "), ("path", "ACYCLIC ")
        )
        if arrow == "-[:F]->":
            prefix, kind = self.one_of((prefix, kind), ("", "path"), ("TRAIL ", "path"))
        right, name = self.vertex(inner, False), self.name("xpath")
        scope |= inner
        scope[name] = kind
        return f"{name} = {prefix}{left}{arrow}{low}{right}"

    def match(self, scope: Scope) -> str:
        word = self.one_of("MATCH", "MATCH", "OPTIONAL MATCH")
        patterns = [self.pattern(scope) for _ in range(self.draw(st.integers(1, 2)))]
        if self.draw(st.integers(0, 4)) == 0:
            patterns[0] = self.path(scope)
        where = f" WHERE {self.condition(scope)}" if self.draw(st.booleans()) else ""
        return f"{word} {', '.join(patterns)}{where}"

    def unwind(self, scope: Scope) -> str:
        name = self.name("int")
        nodes = self.names(scope, "nodes")
        if nodes and self.draw(st.booleans()):
            name = self.name("node")
            scope_of, source = "node", self.one_of(*nodes)
        else:
            scope_of, source = "int", self.ints(scope)
        scope[name] = scope_of
        return f"UNWIND {source} AS {name}"

    def value(self, scope: Scope) -> tuple[str, str]:
        kind = self.one_of("int", "text", "node", "node", "condition", "ints", "gathered")
        if kind == "text" and (paths := self.names(scope, "path")):
            return self.one_of(*paths), "path"
        if kind == "gathered" and not self.inside:
            return self.subquery("COLLECT", scope), "gathered"
        nodes, edges = self.names(scope, "node"), self.names(scope, "edge")
        if kind == "node" and nodes:
            chosen = self.one_of(*nodes, *edges)
            return chosen, scope[chosen]
        if kind == "condition":
            return self.condition(scope), "condition"
        if kind == "ints":
            return self.ints(scope), "ints"
        return (self.text(scope), "text") if kind == "text" else (self.int(scope), "int")

    def projection(self, word: str, scope: Scope) -> str:
        found: Scope = {}
        items = []
        for _ in range(self.draw(st.integers(1, 3))):
            text, kind = self.value(scope)
            name = self.name(kind)
            found[name] = kind
            items.append(f"{text} AS {name}")
        aggregated = self.draw(st.integers(0, 2)) == 0
        if aggregated:
            nodes = self.names(scope, "node")
            inner = self.one_of("*", self.int(scope, 0), *nodes)
            function = "count" if inner == "*" else self.one_of("count", "collect", "count(DISTINCT", "sum", "max")
            if inner in nodes and function in ("sum", "max"):
                function = "collect"
            kind = "nodes" if function == "collect" and inner in nodes else "ints" if function == "collect" else "int"
            name = self.name(kind)
            items.append(f"{function}{' ' if '(' in function else '('}{inner}) AS {name}")
            found[name] = kind if kind != "ints" else "gathered"  # its order is nobody's
        distinct = self.one_of("", "", "DISTINCT ")
        keys = [name for name, kind in found.items() if kind in ("int", "text")]
        page = ""
        if keys and len(keys) == len(found) and self.draw(st.booleans()):
            page = (
                f" ORDER BY {', '.join(key + self.one_of('', ' DESC') for key in keys)} LIMIT {self.one_of('1', '3')}"
            )
        where = ""
        if word == "WITH" and self.draw(st.integers(0, 2)) == 0:
            seen = found if aggregated or distinct or page else {**scope, **found}
            where = f" WHERE {self.condition(seen, 1)}"
        scope.clear()
        scope.update(found)
        return f"{word} {distinct}{', '.join(items)}{page}{where}"

    def part(self) -> str:
        scope: Scope = {}
        clauses = [self.one_of(self.match, self.match, self.unwind)(scope)]
        for _ in range(self.draw(st.integers(0, 3))):
            step = self.one_of("match", "match", "unwind", "with")
            if step == "with":
                clauses.append(self.projection("WITH", scope))
            else:
                clauses.append((self.match if step == "match" else self.unwind)(scope))
        return " ".join([*clauses, self.projection("RETURN", scope)])

    def part_of_union(self) -> str:
        scope: Scope = {}
        clause = self.match(scope)
        return f"{clause} RETURN {self.int(scope)} AS i, {self.text(scope)} AS t"


@st.composite
def queries(draw: st.DrawFn) -> str:
    writer = Writer(draw)
    if draw(st.integers(0, 5)):
        return writer.part()
    union = draw(pick([" UNION ", " UNION ALL "]))
    return union.join(writer.part_of_union() for _ in range(2))


_PATIENCE = 0.5
"""Seconds for Python: a few queries have millions of rows."""


# --- the comparison --------------------------------------------------------------------------------------------


def _plain(value: Any) -> str:
    """A value as text; the items of a list in no order, which collect() does not promise."""
    if isinstance(value, list):
        return f"[{', '.join(sorted(map(_plain, value)))}]"
    if isinstance(value, graphdb.Path):
        edges = [(edge.type, edge.start, edge.end) for edge in value.relationships]
        return f"{[node.iri for node in value.nodes]} {edges}"
    return value.iri if isinstance(value, graphdb.Node) else repr(value)


def _bag(rows: list[tuple[Any, ...]]) -> Counter[tuple[str, ...]]:
    return Counter(tuple(map(_plain, row)) for row in rows)


def _compare(database: graphdb.Database, text: str) -> None:
    note(text)
    try:
        expected = _bag(in_python(database, text, timeout=_PATIENCE))
    except graphdb.QueryTimeout:
        event("too much for Python")
        return
    except graphdb.GraphDBError as error:
        event(f"error: {type(error).__name__}")
        with pytest.raises(graphdb.GraphDBError):
            database.query(text).fetchall()
        return
    assert _bag(database.query(text).fetchall()) == expected


@settings(
    max_examples=scaled(100),
    deadline=None,
    derandomize=SAME,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
@given(text=queries(), number=st.integers(0, 3))
def test_sql_gives_the_rows_of_python(databases: list[graphdb.Database], text: str, number: int) -> None:
    _compare(databases[number], text)
