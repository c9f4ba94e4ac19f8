"""Random queries of several clauses, written by a small grammar that knows which names are there, and of what type.

The graphs that they are asked of have vertices ``:N`` and ``:M``, edges ``:E`` and ``:F``, and of both kinds some
properties that may be absent.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

from hypothesis import strategies as st

pick = st.sampled_from


Scope = dict[str, str]
"""The names that are there, each with its type: node, edge, int, text, date, condition, ints, nodes, or edges; path, and
shortest, which is one of several; gathered, a list in no order."""

PARAMETERS: dict[str, Any] = {
    "one": 1,
    "none": None,
    "some": 1.5,
    "word": "a",
    "true": True,
    "list": [1, 2, None],
    "day": dt.date(2020, 2, 1),
    "map": {"age": 1, "none": None},
}
"""What queries may ask of: values of all types."""


class Writer:
    """Writes one query, clause by clause."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.fresh = 0
        self.inside = False
        """Whether a whole query is under way inside another."""
        self.endless = False
        """Whether a path without an upper bound may go on for ever."""

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
        leaves += [f"{name}.{key}" for name in self.names(scope, "map") for key in ("a", "b")]
        leaves += ["$one", "$none", "$map.age", "$map.none"]
        leaf = self.one_of(*leaves)
        if depth == 0:
            return str(leaf)
        match self.draw(st.integers(0, 10)):
            case 10:
                return f"reduce(t = {self.int(scope, 0)}, z IN {self.ints(scope, 0)} | {self.one_of('t + z', 'coalesce(z, t)')})"
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
        leaves = ["'a'", "'b'", "''", "null", "$word", *texts, *[f"{n}.name" for n in nodes]]
        leaf = self.one_of(*leaves, *[f"type({e})" for e in self.names(scope, "edge")])
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
        leaf = self.one_of("[1, 2, null]", "[]", "range(0, 3)", "$list", f"[{self.int(scope, 0)}, 2]", *lists)
        if depth <= 0:
            return str(leaf)
        match self.draw(st.integers(0, 7)):
            case 4 if elements := self.elements(scope):
                return f"[z IN {self.one_of(*elements)} | z.{self.one_of('age', 'age', 'k')}]"
            case 5 if not self.inside:
                return self.collected(scope)
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

    def elements(self, scope: Scope) -> list[str]:
        """The vertices or the edges of every path, and lists of either in which their order is known."""
        paths = self.names(scope, "path")
        lists = [f"{function}({path})" for path in paths for function in ("nodes", "relationships")]
        return lists + self.names(scope, "edges")

    def date(self, scope: Scope) -> str:
        leaves = ["date('2020-02-01')", "$day", "null", *self.names(scope, "date")]
        leaf = self.one_of(*leaves, *[f"{n}.born" for n in self.names(scope, "node")])
        later = self.one_of("", "", "", " + duration({days: 29})", " - duration({days: 1})")
        return f"({leaf}{later})" if later else str(leaf)

    def collected(self, scope: Scope) -> str:
        """The list of a subquery whose order is known."""
        inner = dict(scope)
        pattern = self.pattern(inner, must=bool(self.names(inner, "node")))
        where = f" WHERE {self.condition(inner, 0)}" if self.draw(st.booleans()) else ""
        page = self.one_of("", " DESC", " SKIP 1", " LIMIT 2", " DESC LIMIT 0")
        return f"COLLECT {{ MATCH {pattern}{where} RETURN {self.int(inner, 0)} AS i ORDER BY i{page} }}"

    def labels(self, *known: str) -> str:
        one, other = self.one_of(*known), self.one_of(*known)
        return str(self.one_of(one, f"{one}|{other}", f"!{one}", f"{one}&!{other}", "%", f"!({one}|{other})"))

    def condition(self, scope: Scope, depth: int = 2) -> str:
        nodes = self.names(scope, "node")
        edges = self.names(scope, "edge")
        match self.draw(st.integers(0, 20)):
            case 19 if edges:
                edge = self.one_of(*edges)
                return self.one_of(f"startNode({edge}).id = {self.int(scope, 0)}", f"{edge}:{self.labels('E', 'F')}")
            case 20 if nodes and self.names(scope, "nodes"):
                return f"{self.one_of(*nodes)} IN {self.one_of(*self.names(scope, 'nodes'))}"
            case 14 if elements := self.elements(scope):
                quantifier = self.one_of("any", "all", "none", "single")
                tested = self.one_of("z.age > 0", "z.k IS NULL", f"z.age = {self.int(scope, 0)}")
                return f"{quantifier}(z IN {self.one_of(*elements)} WHERE {tested})"
            case 15:
                return f"{self.date(scope)} {self.one_of('=', '<>', '<', '>=')} {self.date(scope)}"
            case 16 if flags := self.names(scope, "condition"):
                return str(self.one_of("$true", *flags))
            case 17 if nodes:
                return f"{self.one_of(*nodes, *edges)} IS {self.one_of('', 'NOT ')}NULL"
            case 18:
                return f"{self.int(scope, 0)} <= {self.int(scope, 0)} < {self.int(scope, 0)}"
            case 13 if edges:
                left = f"{self.one_of(*edges)}.{self.one_of('age', 'age', 'mixed')}"
                return f"{left} {self.one_of('=', '<>', '<')} {self.int(scope, 0)}"
            case 0 if depth:
                operator = self.one_of("AND", "OR", "XOR")
                return f"({self.condition(scope, depth - 1)} {operator} {self.condition(scope, depth - 1)})"
            case 1 if depth:
                return f"NOT ({self.condition(scope, depth - 1)})"
            case 2 if nodes:
                return f"{self.one_of(*nodes)}:{self.labels('N', 'M')}"
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
                return f"{self.one_of(*nodes)}.{self.one_of('weight', 'mixed')} {operator} {self.one_of('$some', self.int(scope, 0))}"
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
        match, unwind, call = self.match, self.unwind, self.call
        for step in self.one_of(
            [match],
            [unwind],
            [match, self.with_],
            [self.with_, match],
            [match, self.with_, match],
            [call],
            [unwind, call],
        ):
            clauses.append(step(scope))
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
        label = self.one_of("", ":N", ":M", f":{self.labels('N', 'M')}")
        having = self.one_of("", "", "", f" {{id: {self.one_of('1', '$one', *self.names(scope, 'int'))}}}")
        if name and not having and self.draw(st.integers(0, 7)) == 0:
            seen = {name: "node"} | dict.fromkeys(self.names(scope, "int"), "int")
            having = f" WHERE {name}.{self.one_of('age', 'id')} {self.one_of('<', '<>')} {self.int(seen, 0)}"
        if name:
            scope[name] = "node"
        return f"({name}{label}{having})"

    def pattern(self, scope: Scope, must: bool = False) -> str:
        path = self.vertex(scope, must)
        for _ in range(self.draw(st.integers(1 if must else 0, 2))):
            left, right = self.one_of(("-", "->"), ("<-", "-"), ("-", "-"))
            name = self.one_of("", "", self.name("relationship"))
            having = self.one_of("", "", "", "", f" {{age: {self.one_of('1', *self.names(scope, 'int'))}}}")
            labels = self.one_of("", ":E", ":F", ":E|F", ":!E")
            often = self.repeats(labels) if labels != ":!E" else ""
            path += f"{left}[{name}{labels}{often}{having}]{right}" + self.vertex(scope, False)
            if name:
                scope[name] = "edges" if often else "edge"
        return path

    def repeats(self, labels: str) -> str:
        """How often an edge of a pattern follows itself: most often once."""
        if labels == ":F" and not self.endless:
            return str(self.one_of("", "", "*", "*2..", "*1..2"))
        return str(self.one_of("", "", "", "*1..2", "*0..1"))

    def path(self, scope: Scope) -> str:
        """A path with a name: every one, or those that a selector leaves; which of the shortest it is nobody says."""
        inner = dict(scope)
        left = self.vertex(inner, self.draw(st.booleans()))
        low = "{0,2}" if self.endless else self.one_of("*", "+", "{2,}", "{0,2}")
        arrow = self.one_of("-[:F]->", "-[:E]->", "<-[:F]-", "-[:F]-")
        kind, prefix = self.one_of(
            ("shortest", "ANY SHORTEST "), ("path", "ALL SHORTEST "), ("shortest", "SHORTEST 2 "), ("path", "ACYCLIC ")
        )
        if arrow == "-[:F]->":
            prefix, kind = self.one_of((prefix, kind), ("", "path"), ("TRAIL ", "path"))
        if self.draw(st.integers(0, 3)) == 0:
            part = self.one_of("(:N)-[:E]->()", "()-[:E|F]-(:M)", "()<-[:F]-()-[:E]->()")
            arrow, low = f" ({part})", self.one_of("{1,2}", "{0,1}", "{2}")
        middle = f"{self.vertex(inner, False)}-[:E]-" if kind == "path" and self.draw(st.integers(0, 3)) == 0 else ""
        right, name = self.vertex(inner, False), self.name("xpath")
        scope |= inner
        scope[name] = kind
        return f"{name} = {prefix}{left}{arrow}{low}{middle and ' ' + middle}{' ' if arrow[0] == ' ' else ''}{right}"

    def match(self, scope: Scope) -> str:
        word = self.one_of("MATCH", "MATCH", "OPTIONAL MATCH")
        mode = ""
        if self.draw(st.integers(0, 4)) == 0:
            mode = self.one_of(" DIFFERENT NODES", " REPEATABLE ELEMENTS", " INDUCED", " DIFFERENT EDGES")
        self.endless = mode == " REPEATABLE ELEMENTS"
        first = self.path if self.draw(st.integers(0, 4)) == 0 else self.pattern
        patterns = [make(scope) for make in (first, self.pattern)[: self.draw(st.integers(1, 2))]]
        self.endless = False
        where = f" WHERE {self.condition(scope)}" if self.draw(st.booleans()) else ""
        return f"{word}{mode} {', '.join(patterns)}{where}"

    def unwind(self, scope: Scope) -> str:
        name = self.name("int")
        nodes = self.names(scope, "nodes") + [f"nodes({path})" for path in self.names(scope, "path")]
        if nodes and self.draw(st.booleans()):
            name = self.name("node")
            scope_of, source = "node", self.one_of(*nodes)
        else:
            scope_of, source = "int", self.ints(scope)
        scope[name] = scope_of
        return f"UNWIND {source} AS {name}"

    def call(self, scope: Scope) -> str:
        """A subquery of one or two parts, which sees some names or all."""
        seen = self.one_of([], sorted(scope), self.names(scope, "node"), self.names(scope, "int"))
        names = "*" if seen and seen == sorted(scope) and self.draw(st.booleans()) else ", ".join(seen)
        union = self.one_of(" UNION ", " UNION ALL ")
        word = self.one_of("CALL", "CALL", "OPTIONAL CALL")
        around = self.inside
        self.inside = True
        if self.draw(st.integers(0, 2)) == 0:
            name = self.name("int")
            inner = [{one: scope[one] for one in seen} for _ in range(2)]
            parts = [f"{self.match(one)} RETURN {self.int(one, 1)} AS {name}" for one in inner]
            found = {name: "int"}
        else:
            found = {one: scope[one] for one in seen}
            clauses = [self.one_of(self.match, self.unwind)(found) for _ in range(self.one_of(1, 1, 2))]
            parts = [" ".join([*clauses, self.projection("RETURN", found)])]
        self.inside = around
        scope |= found
        return f"{word} ({names}) {{ {union.join(parts)} }}"

    def comprehension(self, scope: Scope) -> str:
        """The list that a pattern makes, which is in no order."""
        inner = dict(scope)
        path = self.pattern(inner, must=True)
        where = f" WHERE {self.condition(inner, 0)}" if self.draw(st.booleans()) else ""
        return f"[{path}{where} | {self.one_of(self.int(inner, 1), *self.names(inner, 'node'))}]"

    def value(self, scope: Scope) -> tuple[str, str]:
        kind = self.one_of(
            "int", "text", "node", "node", "condition", "ints", "gathered", "date", "map", "comprehension"
        )
        if kind == "map":
            return f"{{a: {self.int(scope, 1)}, b: {self.int(scope, 0)}}}", "map"
        if kind == "comprehension" and self.names(scope, "node"):
            return self.comprehension(scope), "gathered"
        if kind == "date":
            if paths := self.names(scope, "path"):
                return f"{self.one_of('nodes', 'relationships')}({self.one_of(*paths)})", "gathered"
            return self.date(scope), "date"
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
            nodes = self.names(scope, "node") + self.names(scope, "edge")
            inner = self.one_of("*", self.int(scope, 0), *nodes)
            functions = ("count", "collect", "count(DISTINCT", "sum", "max", "min", "avg", "collect(DISTINCT")
            function = "count" if inner == "*" else self.one_of(*functions)
            if inner in nodes and function in ("sum", "max", "min", "avg"):
                function = "collect"
            edges = self.names(scope, "edge")
            kind = "ints" if function.startswith("collect") else "float" if function == "avg" else "int"
            if kind == "ints" and inner in nodes:
                kind = "gathered" if inner in edges else "nodes"
            name = self.name(kind)
            items.append(f"{function}{' ' if '(' in function else '('}{inner}) AS {name}")
            found[name] = kind if kind != "ints" else "gathered"  # its order is nobody's
        distinct = self.one_of("", "", "DISTINCT ")
        keys = [name for name, kind in found.items() if kind in ("int", "text")]
        page = ""
        if keys and len(keys) == len(found) and self.draw(st.booleans()):
            ways = [f"{key}{self.one_of('', ' DESC', ' NULLS FIRST', ' DESC NULLS LAST')}" for key in keys]
            if not (aggregated or distinct) and self.draw(st.booleans()):
                ways.insert(0, self.int(scope, 1))
            page = f" ORDER BY {', '.join(ways)} {self.one_of('LIMIT 1', 'LIMIT 3', 'SKIP 1', 'SKIP $one LIMIT 2')}"
        if word == "WITH" and not aggregated and self.draw(st.integers(0, 2)) == 0:
            found = {**scope, **found}
            items.insert(0, "*")
            page = ""
        where = ""
        if word == "WITH" and self.draw(st.integers(0, 2)) == 0:
            seen = found if aggregated or distinct or page else {**scope, **found}
            where = f" WHERE {self.condition(seen, 1)}"
        scope.clear()
        scope.update(found)
        return f"{word} {distinct}{', '.join(items)}{page}{where}"

    def with_(self, scope: Scope) -> str:
        return self.projection("WITH", scope)

    def part(self) -> str:
        scope: Scope = {}
        clauses = [self.one_of(self.match, self.match, self.unwind)(scope)]
        for _ in range(self.draw(st.integers(0, 3))):
            clauses.append(self.one_of(self.match, self.match, self.unwind, self.call, self.with_)(scope))
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
