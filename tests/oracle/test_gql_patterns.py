"""Random GQL path patterns against brute force: modes, selectors, quantifiers, label expressions, conditions on edges.

The evaluator here knows nothing of plans, automata or searches: it writes down every walk of a pattern over a small
multigraph, one element after the other, and then applies the selector as GQL words it.  ``GRAPHDB_FUZZ`` multiplies the
number of patterns.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

import graphdb
from graphdb.common.values.elements import Node, Path, Relationship
from tests.fuzz import scaled
from tests.oracle.routes import path_by_path

PATTERNS = scaled(8)
"""For each graph."""

MODES = ("WALK", "TRAIL", "SIMPLE", "ACYCLIC")


@dataclass(frozen=True)
class Edge:
    k: int
    label: str
    start: int
    end: int
    w: int


@dataclass
class Graph:
    """Vertices are numbers, with a set of labels each."""

    labels: list[set[str]]
    edges: list[Edge]
    database: graphdb.Database = field(default_factory=lambda: graphdb.connect(threads=1, device="cpu"))


def _graph(seed: int) -> Graph:
    """A few vertices; self loops, and in every second graph parallel edges."""
    dice = random.Random(seed)
    count = 3 + seed % 3
    labels = [set(dice.choice(["N", "M", "NM", "N"])) for _ in range(count)]
    triples = [(dice.choice("EEF"), dice.randrange(count), dice.randrange(count)) for _ in range(count + 3)]
    if seed % 2:
        triples += dice.sample(triples, 2)
    else:
        triples = list(dict.fromkeys(triples))
    graph = Graph(labels, [Edge(k, *triple, dice.randrange(4)) for k, triple in enumerate(triples)])
    nodes = [f"(v{i}:{':'.join(sorted(mine))} {{id: {i}}})" for i, mine in enumerate(labels)]
    links = [f"(v{e.start})-[:{e.label} {{k: {e.k}, w: {e.w}}}]->(v{e.end})" for e in graph.edges]
    graph.database.query("CREATE " + ", ".join(nodes + links))
    return graph


@pytest.fixture(scope="module")
def graphs() -> Iterator[list[Graph]]:
    made = [_graph(seed) for seed in range(5)]
    yield made
    for graph in made:
        graph.database.close()


# --- patterns, as text and as what they mean ------------------------------------------------------------------------


@dataclass(frozen=True)
class Label:
    """A label expression."""

    text: str

    def holds(self, labels: set[str]) -> bool:
        """GQL's operators are Python's, but for ``!``."""
        names = {name: name in labels for name in "NMEF"}
        return bool(eval(self.text.replace("!", " not ").replace("&", " and ").replace("|", " or "), {}, names))


@dataclass(frozen=True)
class Vertex:
    name: str
    label: Label | None = None
    most: int | None = None
    """A condition: ``id <= most``."""

    def text(self) -> str:
        where = "" if self.most is None else f" WHERE {self.name}.id <= {self.most}"
        return f"({self.name}{f':{self.label.text}' if self.label else ''}{where})"

    def holds(self, graph: Graph, vertex: int) -> bool:
        return (self.label is None or self.label.holds(graph.labels[vertex])) and (
            self.most is None or vertex <= self.most
        )


@dataclass(frozen=True)
class Link:
    name: str
    direction: str
    label: Label | None = None
    least: int | None = None
    """A condition: ``w >= least``."""
    exactly: int | None = None
    """A property: ``{w: exactly}``."""
    quantifier: str = ""
    low: int = 1
    high: int | None = 1
    """How often it comes within a repeated part."""

    def text(self) -> str:
        label = f":{self.label.text}" if self.label else ""
        facts = "" if self.exactly is None else f" {{w: {self.exactly}}}"
        where = "" if self.least is None else f" WHERE {self.name}.w >= {self.least}"
        left, right = {"out": ("-", "->"), "in": ("<-", "-"), "both": ("-", "-")}[self.direction]
        return f"{left}[{self.name}{label}{facts}{where}]{right}{self.quantifier}"

    def from_(self, graph: Graph, vertex: int) -> Iterator[tuple[Edge, int]]:
        for edge in graph.edges:
            if self.label is not None and not self.label.holds({edge.label}):
                continue
            if (self.least is not None and edge.w < self.least) or self.exactly not in (None, edge.w):
                continue
            ends = set()
            if self.direction != "in" and edge.start == vertex:
                ends.add(edge.end)
            if self.direction != "out" and edge.end == vertex:
                ends.add(edge.start)
            for end in ends:
                yield edge, end


@dataclass(frozen=True)
class Part:
    """``((x)-[e]->(y) WHERE x.id <= y.id){1,2}``, or one edge with a quantifier, or one edge."""

    vertices: tuple[Vertex, ...]
    links: tuple[Link, ...]
    low: int
    high: int | None
    rising: bool = False
    """A condition: the first vertex's id is not above the last one's."""

    @property
    def nested(self) -> bool:
        """Whether something is repeated in what is repeated: its names are lists of lists, and not asked for."""
        return self.bracketed and any(link.quantifier for link in self.links)

    @property
    def bracketed(self) -> bool:
        return bool(self.vertices)

    @property
    def single(self) -> bool:
        """Whether it is one edge without a quantifier, whose name is no list."""
        return not self.bracketed and not self.links[0].quantifier

    def text(self) -> str:
        if not self.bracketed:
            return self.links[0].text()
        inner = self.vertices[0].text() + "".join(
            link.text() + vertex.text() for link, vertex in zip(self.links, self.vertices[1:], strict=True)
        )
        where = f" WHERE {self.vertices[0].name}.id <= {self.vertices[-1].name}.id" if self.rising else ""
        high = "" if self.high is None else self.high
        return f" ({inner}{where}){{{self.low},{high}}} "


@dataclass(frozen=True)
class Pattern:
    vertices: tuple[Vertex, ...]
    parts: tuple[Part, ...]
    mode: str
    selector: str
    written: bool
    """Whether the mode is written."""
    repeatable: bool

    def text(self, rest: str = "") -> str:
        path = self.vertices[0].text() + "".join(
            part.text() + vertex.text() for part, vertex in zip(self.parts, self.vertices[1:], strict=True)
        )
        mode = f"{self.mode} " if self.written else ""
        match = "MATCH REPEATABLE ELEMENTS" if self.repeatable else "MATCH"
        if self.selector.endswith("GROUPS"):
            *counted, _ = self.selector.split()
            prefix = f"{' '.join(counted)} {mode}GROUPS"
        else:
            prefix = f"{self.selector} {mode}".strip()
        return f"{match} p = {prefix} {path} {rest or self.returns}"

    @property
    def returns(self) -> str:
        return f"RETURN p, {', '.join(self.names)}"

    @property
    def lists(self) -> list[str]:
        """The names that are lists."""
        parts = [part for part in self.parts if not part.nested and not part.single]
        return [each.name for part in parts for each in (*part.vertices, *part.links)]

    @property
    def names(self) -> list[str]:
        found = [vertex.name for vertex in self.vertices]
        for part in self.parts:
            if not part.nested:
                found += [vertex.name for vertex in part.vertices] + [link.name for link in part.links]
        return found


Walk = tuple[tuple[int, ...], tuple[int, ...]]
"""The vertices and edges of a path."""
Found = tuple[Walk, tuple[Any, ...]]
"""A path and what each name is bound to, lists as tuples."""


def _allowed(pattern: Pattern, vertices: tuple[int, ...], edges: tuple[int, ...]) -> bool:
    mode = pattern.mode
    if mode == "WALK":
        return True
    if len(set(edges)) < len(edges) and not (mode == "SIMPLE" and pattern.repeatable):
        return False
    if mode == "ACYCLIC":
        return len(set(vertices)) == len(vertices)
    if mode == "SIMPLE":
        inner = vertices[:-1] if len(vertices) > 1 and vertices[0] == vertices[-1] else vertices
        return len(set(inner)) == len(inner)
    return True


@dataclass(frozen=True)
class Way:
    """A path on the way through a pattern, and what its names are bound to so far."""

    vertices: tuple[int, ...]
    edges: tuple[int, ...] = ()
    known: Mapping[str, Any] = field(default_factory=dict)

    @property
    def here(self) -> int:
        return self.vertices[-1]

    def binding(self, name: str, value: Any) -> Way:
        return replace(self, known={**self.known, name: value})

    def adding(self, name: str, item: int) -> Way:
        """The same with one more item of a list."""
        return self.binding(name, (*self.known[name], item))

    def along(self, edge: Edge, end: int) -> Way:
        return replace(self, vertices=(*self.vertices, end), edges=(*self.edges, edge.k))


Then = Callable[[Way], Iterator[Way]]
"""What comes after a part of a pattern."""


def every(graph: Graph, pattern: Pattern, longest: int) -> Iterator[Found]:
    """All matches of a pattern of at most so many edges, selectors aside."""

    def after(number: int, way: Way) -> Iterator[Way]:
        """Go on with a part, from the last vertex on."""
        if number == len(pattern.parts):
            yield way
            return
        part = pattern.parts[number]

        def leave(way: Way) -> Iterator[Way]:
            vertex = pattern.vertices[number + 1]
            if vertex.holds(graph, way.here):
                yield from after(number + 1, way.binding(vertex.name, way.here))

        if part.single:
            yield from once(part, way, leave)
        else:
            empty = {each.name: () for each in (*part.vertices, *part.links)}
            yield from again(part, 0, replace(way, known={**way.known, **empty}), leave)

    def again(part: Part, count: int, way: Way, leave: Then) -> Iterator[Way]:
        """Go through a part as often as it may still come, after so many times."""
        if count >= part.low:
            yield from leave(way)
        if part.high is None or count < part.high:
            yield from once(part, way, lambda way: again(part, count + 1, way, leave))

    def once(part: Part, way: Way, then: Then) -> Iterator[Way]:
        """Go through one repetition."""
        first = way.here

        def inside(at: int, way: Way) -> Iterator[Way]:
            """Go on from the vertex before a link."""
            if part.bracketed:
                if not part.vertices[at].holds(graph, way.here):
                    return
                way = way.adding(part.vertices[at].name, way.here)
            if at < len(part.links):
                yield from hops(at, 0, way)
            elif not part.rising or first <= way.here:
                yield from then(way)

        def hops(at: int, count: int, way: Way) -> Iterator[Way]:
            """Take one link as often as it comes."""
            link = part.links[at]
            if count >= link.low:
                yield from inside(at + 1, way)
            if len(way.edges) == longest or (link.high is not None and count >= link.high):
                return
            for edge, end in link.from_(graph, way.here):
                more = way.along(edge, end)
                if _going_on(pattern, more.vertices, more.edges):
                    bound = more.binding if part.single else more.adding
                    yield from hops(at, count + 1, bound(link.name, edge.k))

        yield from inside(0, way)

    first = pattern.vertices[0]
    for start in range(len(graph.labels)):
        if first.holds(graph, start):
            for way in after(0, Way((start,)).binding(first.name, start)):
                if _allowed(pattern, way.vertices, way.edges):
                    yield (way.vertices, way.edges), tuple(way.known[name] for name in pattern.names)


def _going_on(pattern: Pattern, vertices: tuple[int, ...], edges: tuple[int, ...]) -> bool:
    """Whether a path may still become one of the mode."""
    if pattern.mode == "SIMPLE":  # it may have come back to its start, which must be its end then
        return _allowed(pattern, vertices, edges) and vertices[0] not in vertices[1:-1]
    return _allowed(pattern, vertices, edges)


# --- random patterns -------------------------------------------------------------------------------------------------

QUANTIFIERS = {
    "": (1, 1),
    "?": (0, 1),
    "{2}": (2, 2),
    "{0,2}": (0, 2),
    "{1,2}": (1, 2),
    "{2,3}": (2, 3),
    "{,1}": (0, 1),
}
UNBOUNDED = {"*": (0, None), "+": (1, None), "{2,}": (2, None)}
SELECTORS = (
    "",
    "",
    "ALL",
    "ANY",
    "ANY 2",
    "ANY SHORTEST",
    "ALL SHORTEST",
    "SHORTEST 2",
    "SHORTEST 3",
    "SHORTEST 1 GROUPS",
)
SELECTORS += ("SHORTEST 2 GROUPS",)


def _maybe(dice: random.Random, share: float, choices: list[str]) -> Label | None:
    return Label(dice.choice(choices)) if dice.random() < share else None


def _vertex(dice: random.Random, name: str) -> Vertex:
    label = _maybe(dice, 0.3, ["N", "M", "N|M", "!N", "N&!M", "!(N&M)"])
    return Vertex(name, label, dice.randrange(1, 4) if dice.random() < 0.15 else None)


def _link(dice: random.Random, name: str, quantifier: str = "") -> Link:
    label = _maybe(dice, 0.7, ["E", "F", "E|F", "!E", "!F&!E", "E&!F"])
    least = dice.randrange(1, 3) if dice.random() < 0.3 else None
    exactly = dice.randrange(3) if least is None and dice.random() < 0.1 else None
    return Link(name, dice.choice(["out", "out", "in", "both"]), label, least, exactly, quantifier)


def random_pattern(dice: random.Random) -> Pattern:
    """A pattern whose walks can be written down: of bounded length, or of a mode that bounds them."""
    mode, selector = dice.choice(MODES), dice.choice(SELECTORS)
    quantifiers = QUANTIFIERS if mode == "WALK" else {**QUANTIFIERS, **UNBOUNDED}
    names = iter("abcdefghijklmnopqrstuvwxyz")
    vertices, parts = [_vertex(dice, next(names))], []
    for _ in range(dice.choice([1, 1, 1, 2, 2, 3])):
        quantifier = dice.choice(list(quantifiers))
        low, high = quantifiers[quantifier]
        if dice.random() < 0.3 and quantifier:
            count = dice.choice([1, 1, 2])
            inner = tuple(_vertex(dice, next(names)) for _ in range(count + 1))
            links = tuple(_link(dice, next(names)) for _ in range(count))
            if dice.random() < 0.3:  # what is repeated in it must not let it be nothing
                inner_one = dice.choice(["{1,2}", "{2}", *(["?", "{0,2}"] if count > 1 else [])])
                bounds = QUANTIFIERS[inner_one]
                links = (*links[:-1], replace(links[-1], quantifier=inner_one, low=bounds[0], high=bounds[1]))
            parts.append(Part(inner, links, low, high, dice.random() < 0.3))
        else:
            parts.append(Part((), (_link(dice, next(names), quantifier),), low, high))
        vertices.append(_vertex(dice, next(names)))
    repeatable = dice.random() < 0.2
    written = mode != ("WALK" if repeatable else "TRAIL") or dice.random() < 0.5
    return Pattern(tuple(vertices), tuple(parts), mode, selector, written, repeatable)


_OF_LISTS = Pattern(
    (Vertex("a"), Vertex("e")),
    (Part((Vertex("b"), Vertex("d")), (Link("c", "out"),), 1, 2),),
    "TRAIL",
    selector="",
    written=False,
    repeatable=False,
)


# --- what a selector keeps -------------------------------------------------------------------------------------------


def check(pattern: Pattern, found: list[Found], expected: list[Found]) -> None:
    """Between each two ends a selector keeps so many paths, of those lengths, and only some that match."""
    assert Counter(found) <= Counter(expected), "a path that does not match, or one too often"
    words = pattern.selector.split()
    if not words or words == ["ALL"]:
        assert Counter(found) == Counter(expected)
        return
    ends = lambda one: (one[0][0][0], one[0][0][-1])  # noqa: E731
    for pair in {ends(one) for one in expected}:
        mine, all_of = ([one for one in some if ends(one) == pair] for some in (found, expected))
        lengths = sorted(len(edges) for (_, edges), _ in all_of)
        if words[-1] == "GROUPS" or words == ["ALL", "SHORTEST"]:
            groups = 1 if words[0] == "ALL" else int(words[1])
            kept = sorted(set(lengths))[:groups]
            assert Counter(mine) == Counter(one for one in all_of if len(one[0][1]) in kept), pair
            continue
        count = int(words[1]) if words[-1].isdigit() else 1
        assert len(mine) == min(count, len(all_of)), pair
        if "SHORTEST" in words:
            assert sorted(len(edges) for (_, edges), _ in mine) == lengths[:count], pair


def _plain(value: Any) -> Any:
    match value:
        case Node():
            return value.properties["id"]
        case Relationship():
            return value.properties["k"]
        case Path():
            return tuple(map(_plain, value.nodes)), tuple(map(_plain, value.relationships))
        case list():
            return tuple(map(_plain, value))
    return value


def rows(database: graphdb.Database, text: str) -> list[Found]:
    found = ([_plain(value) for value in row] for row in database.query(text))
    return [(path, tuple(rest)) for path, *rest in found]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("single", [False, True], ids=["set by set", "path by path"])
def test_patterns(graphs: list[Graph], seed: int, single: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = graphs[seed]
    if single:
        path_by_path(monkeypatch)
    graph.database.query(f"PREFIX forget: <http://what.was/prepared/{single}>")
    dice = random.Random(seed)
    for pattern in (_OF_LISTS, *(random_pattern(dice) for _ in range(PATTERNS))):
        longest = 99 if pattern.mode != "WALK" else 9
        expected = list(every(graph, pattern, longest))
        if len(expected) > 400:
            continue
        found = rows(graph.database, pattern.text())
        try:
            check(pattern, found, expected)
        except AssertionError as error:
            raise AssertionError(f"{pattern.text()}\n{graph.labels}\n{graph.edges}") from error
        if pattern.lists and pattern.selector in ("", "ALL"):
            text = pattern.text(f"WHERE size({pattern.lists[-1]}) > 1 RETURN {pattern.names[0]}.id")
            at = pattern.names.index(pattern.lists[-1])
            starts = Counter(vertices[0] for (vertices, _), bound in expected if len(bound[at]) > 1)
            assert Counter(start for (start,) in graph.database.query(text)) == starts, text
