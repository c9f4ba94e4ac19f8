"""The oracle of paths: what MATCH clauses with paths give, by plain Python over every walk, from the definitions.

It knows nothing of plans, automata or searches.  A path pattern alone is a list of walks; a clause is every combination
of one walk for each pattern in which its modes hold; a query is clauses over rows, one row after the other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

LONGEST = 12
"""Edges of walks that may take an edge again: more than quantifiers allow here."""

Row = dict[str, Any]


class TooMany(Exception):
    """There are more walks than an oracle should write down."""


@dataclass
class Effort:
    """How many steps of walks, and combinations of them, are left for one query."""

    left: int = 20_000

    def spend(self, steps: int = 1) -> None:
        self.left -= steps
        if self.left < 0:
            raise TooMany


@dataclass(frozen=True)
class Edge:
    """A data edge; ``k`` makes it differ from those parallel to it."""

    k: int
    label: str
    start: int
    end: int


@dataclass(frozen=True)
class Graph:
    """Vertices by number, each with labels; ``described``: edges have their ``k`` as a property."""

    labels: tuple[str, ...]
    edges: tuple[Edge, ...]
    described: bool = True

    def text(self) -> str:
        """The graph as CREATE."""
        made = [f"(v{i}{''.join(f':{name}' for name in names)} {{id: {i}}})" for i, names in enumerate(self.labels)]
        facts = " {{k: {0}}}" if self.described else ""
        made += [f"(v{e.start})-[:{e.label}{facts.format(e.k)}]->(v{e.end})" for e in self.edges]
        return f"CREATE {', '.join(made)}"

    def shown(self, edge: Edge) -> tuple[Any, ...]:
        """An edge as a result has it."""
        return (edge.label, edge.start, edge.end, *((edge.k,) if self.described else ()))


@dataclass(frozen=True)
class Node:
    name: str | None = None
    label: str | None = None

    def text(self) -> str:
        return f"({self.name or ''}{f':{self.label}' if self.label else ''})"

    def admits(self, graph: Graph, vertex: int) -> bool:
        return self.label is None or self.label in graph.labels[vertex]


@dataclass(frozen=True)
class Link:
    """One edge of a pattern."""

    direction: str
    name: str | None = None
    labels: str = ""
    """One letter for each label that it may have; empty for any."""

    def text(self, repeated: str = "") -> str:
        inner = f"{self.name or ''}{':' + '|'.join(self.labels) if self.labels else ''}{repeated}"
        left, right = {"out": ("-", "->"), "in": ("<-", "-"), "both": ("-", "-")}[self.direction]
        return f"{left}[{inner}]{right}"

    def from_(self, graph: Graph, vertex: int) -> Iterator[tuple[Edge, int]]:
        for edge in graph.edges:
            if self.labels and edge.label not in self.labels:
                continue
            ends = {edge.end} if self.direction != "in" and edge.start == vertex else set()
            ends |= {edge.start} if self.direction != "out" and edge.end == vertex else set()
            for end in ends:
                yield edge, end


@dataclass(frozen=True)
class Piece:
    """Links one after the other, ``low`` to ``high`` times (None: any number of times)."""

    links: tuple[Link, ...]
    quantifier: str = ""
    low: int = 1
    high: int | None = 1
    inside: tuple[Node, ...] = ()
    """The nodes of a part in brackets, which have no names."""

    def text(self) -> str:
        if not self.inside:
            (link,) = self.links
            within = self.quantifier if len(self.quantifier) > 1 and self.quantifier[0] == "*" else ""
            return link.text(within) + self.quantifier.removeprefix(within)
        inner = self.inside[0].text() + "".join(
            link.text() + node.text() for link, node in zip(self.links, self.inside[1:], strict=True)
        )
        return f" ({inner}){self.quantifier} "


@dataclass(frozen=True)
class Path:
    nodes: tuple[Node, ...]
    pieces: tuple[Piece, ...] = ()
    mode: str = ""
    selector: str = ""
    name: str | None = None

    def text(self) -> str:
        prefix = f"{self.name} = " if self.name else ""
        words = self.selector.split()
        if words and words[-1] == "GROUPS":
            prefix += f"{' '.join(words[:-1])} {self.mode} GROUPS ".replace("  ", " ")
        else:
            prefix += "".join(f"{word} " for word in (self.selector, self.mode) if word)
        path = self.nodes[0].text() + "".join(
            piece.text() + node.text() for piece, node in zip(self.pieces, self.nodes[1:], strict=True)
        )
        return prefix + path

    @property
    def names(self) -> list[str]:
        """All names, those of lists too."""
        found = [self.name, *(node.name for node in self.nodes)]
        found += [link.name for piece in self.pieces for link in piece.links]
        return list(dict.fromkeys(name for name in found if name))


@dataclass(frozen=True)
class Clause:
    """``[OPTIONAL] MATCH [mode] paths [WHERE condition]``, or the same inside EXISTS or COUNT."""

    paths: tuple[Path, ...]
    mode: str = ""
    optional: bool = False
    differ: tuple[str, str] | None = None
    """A condition: the two vertices differ."""
    exists: Clause | None = None
    """A condition: such a pattern exists."""
    negated: bool = False

    def text(self) -> str:
        words = [
            "OPTIONAL MATCH" if self.optional else "MATCH",
            self.mode,
            ", ".join(path.text() for path in self.paths),
        ]
        where = [] if self.differ is None else [f"{self.differ[0]} <> {self.differ[1]}"]
        if self.exists is not None:
            where.append(f"{'NOT ' if self.negated else ''}EXISTS {{ {self.exists.text()} }}")
        words += ["WHERE", " AND ".join(where)] if where else []
        return " ".join(word for word in words if word)

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(name for path in self.paths for name in path.names))


@dataclass(frozen=True)
class Query:
    """Clauses, and what is returned: names, of paths also their lengths; a count where there are none."""

    clauses: tuple[Clause, ...]
    returns: tuple[str, ...]
    distinct: bool = False
    counted: Clause | None = None
    """A pattern whose matches are counted for each row."""

    def text(self) -> str:
        items = [*self.returns, *([f"COUNT {{ {self.counted.text()} }}"] if self.counted else [])]
        clauses = " ".join(clause.text() for clause in self.clauses)
        return f"{clauses} RETURN {'DISTINCT ' if self.distinct else ''}{', '.join(items) or 'count(*)'}"


# --- walks of one pattern -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Walk:
    """A walk that a path pattern matches alone; ``places``: where along it the pattern's nodes are."""

    vertices: tuple[int, ...]
    edges: tuple[Edge, ...] = ()
    places: tuple[int, ...] = field(default=(0,), compare=False)
    bound: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def ends(self) -> tuple[int, int]:
        return self.vertices[0], self.vertices[-1]


DIFFERENT_NODES = ("DIFFERENT NODES", "INDUCED")


def frees(clause: Clause, path: Path) -> bool:
    """Whether a path may take edges twice, and those of the rest."""
    if path.mode:
        return path.mode == "WALK" and clause.mode in ("", "REPEATABLE ELEMENTS")
    return clause.mode == "REPEATABLE ELEMENTS"


def holds(clause: Clause, path: Path, walk: Walk) -> bool:
    """Whether a walk is one of the path's mode."""
    vertices, edges = walk.vertices, walk.edges
    trail = len({*edges}) == len(edges)
    inner = vertices[1:] if edges and vertices[0] == vertices[-1] else vertices
    match path.mode:
        case "TRAIL":
            return trail
        case "SIMPLE":
            return len({*inner}) == len(inner) and (trail or clause.mode == "REPEATABLE ELEMENTS")
        case "ACYCLIC":
            return len({*vertices}) == len(vertices)
    return trail or frees(clause, path)


def walks(graph: Graph, clause: Clause, path: Path, effort: Effort) -> list[Walk]:
    """All walks of a path pattern alone, of its mode; selectors aside."""
    free = frees(clause, path)
    repeatable = clause.mode == "REPEATABLE ELEMENTS" and path.mode == "SIMPLE"
    longest = LONGEST if free else 2 * len(graph.edges)

    def node(number: int, walk: Walk, place: int) -> Walk | None:
        """Put a node of the pattern at the end of a walk."""
        one, here = path.nodes[number], walk.vertices[-1]
        if not one.admits(graph, here):
            return None
        if one.name is None:
            return replace(walk, places=(*walk.places[:number], place))
        if walk.bound.get(one.name, here) != here:
            return None
        return replace(walk, places=(*walk.places[:number], place), bound={**walk.bound, one.name: here})

    def onwards(number: int, walk: Walk) -> Iterator[Walk]:
        """Go on with a piece."""
        if number == len(path.pieces):
            yield walk
            return
        piece = path.pieces[number]
        for name in (link.name for link in piece.links):
            if name is not None and piece.quantifier:
                walk = replace(walk, bound={**walk.bound, name: ()})
        for after in again(piece, 0, walk):
            there = node(number + 1, after, len(after.edges))
            if there is not None:
                yield from onwards(number + 1, there)

    def again(piece: Piece, count: int, walk: Walk) -> Iterator[Walk]:
        if count >= piece.low:
            yield walk
        if piece.high is None or count < piece.high:
            for after in links(piece, 0, walk):
                yield from again(piece, count + 1, after)

    def links(piece: Piece, at: int, walk: Walk) -> Iterator[Walk]:
        here = walk.vertices[-1]
        if piece.inside and not piece.inside[at].admits(graph, here):
            return
        if at == len(piece.links):
            yield walk
            return
        if len(walk.edges) >= longest:
            return
        link = piece.links[at]
        for edge, end in link.from_(graph, here):
            effort.spend()
            if not repeatable and not free and edge in walk.edges:
                continue
            if repeatable and not free and here in walk.vertices[:-1]:
                continue  # a simple walk that came back
            bound = walk.bound
            if link.name is not None:
                bound = {**bound, link.name: (*bound[link.name], edge) if piece.quantifier else edge}
            yield from links(
                piece, at + 1, replace(walk, vertices=(*walk.vertices, end), edges=(*walk.edges, edge), bound=bound)
            )

    found: list[Walk] = []
    for start in range(len(graph.labels)):
        first = node(0, Walk((start,)), 0)
        for walk in () if first is None else onwards(0, first):
            if holds(clause, path, walk):
                found.append(replace(walk, bound={**walk.bound, path.name: walk}) if path.name else walk)
    return found


# --- clauses --------------------------------------------------------------------------------------------------------

Combined = tuple[tuple[Path, Walk], ...]


def admissible(graph: Graph, clause: Clause, combined: Combined) -> bool:
    """Whether the walks of a clause may stand together."""
    own = [edge for path, walk in combined if not frees(clause, path) for edge in walk.edges]
    if clause.mode != "REPEATABLE ELEMENTS" and len({*own}) < len(own):
        return False
    if clause.mode not in DIFFERENT_NODES:
        return True
    elements: dict[object, int] = {}
    for number, (path, walk) in enumerate(combined):
        for place, vertex in enumerate(walk.vertices):
            if place not in walk.places:
                elements[number, place] = vertex
        for at, (place, node) in enumerate(zip(walk.places, path.nodes, strict=True)):
            elements[node.name or (number, "node", at)] = walk.vertices[place]
    vertices = {*elements.values()}
    if len(vertices) < len(elements):
        return False
    between = {edge for edge in graph.edges if edge.start in vertices and edge.end in vertices}
    return clause.mode == "DIFFERENT NODES" or between == {*own}


def selected(graph: Graph, clause: Clause, path: Path, alone: list[Walk], rest: Combined) -> list[Walk]:
    """The walks that a selector leaves, between each two ends: shorter ones first, and ones that go with the rest."""
    if clause.mode == "INDUCED":  # what lies between its vertices is seen when all is there
        clause = replace(clause, mode="DIFFERENT NODES")
    between: defaultdict[tuple[int, int], list[Walk]] = defaultdict(list)
    for walk in alone:
        if admissible(graph, clause, ((path, walk),)):
            between[walk.ends].append(walk)
    fits = {id(walk): admissible(graph, clause, (*rest, (path, walk))) for walk in alone}
    words, found = path.selector.split(), []
    for mine in between.values():
        mine.sort(key=lambda walk: (len(walk.edges), not fits[id(walk)]))
        if words == ["ALL", "SHORTEST"] or words[-1] == "GROUPS":
            count = 1 if words[0] == "ALL" else int(words[1])
            lengths = sorted({len(walk.edges) for walk in mine})[:count]
            mine = [walk for walk in mine if len(walk.edges) in lengths]
        else:
            mine = mine[: int(words[-1]) if words[-1].isdigit() else 1]
        found += [walk for walk in mine if fits[id(walk)]]
    return found


def matches(graph: Graph, clause: Clause, row: Row, effort: Effort) -> list[Row]:
    """The rows that a clause makes of a row."""
    ordered = sorted(clause.paths, key=lambda path: path.selector not in ("", "ALL"))
    ways: list[tuple[Row, Combined]] = [(row, ())]
    for path in ordered:
        alone = walks(graph, clause, path, effort)
        longer = []
        for known, combined in ways:
            agreeing = [walk for walk in alone if all(known.get(n, v) == v for n, v in walk.bound.items())]
            if path.selector not in ("", "ALL"):
                agreeing = selected(graph, clause, path, agreeing, combined)
            for walk in agreeing:
                effort.spend()
                more = (*combined, (path, walk))
                if admissible(
                    graph, replace(clause, mode="DIFFERENT NODES") if clause.mode == "INDUCED" else clause, more
                ):
                    longer.append(({**known, **walk.bound}, more))
        ways = longer
    found = []
    for known, combined in ways:
        if not admissible(graph, clause, combined):
            continue
        if clause.differ is not None and len({known[name] for name in clause.differ} - {None}) < 2:
            continue
        if clause.exists is not None and bool(matches(graph, clause.exists, known, effort)) == clause.negated:
            continue
        found.append(known)
    if not found and clause.optional:
        return [{**dict.fromkeys(clause.names), **row}]
    return found


def shown(graph: Graph, value: Any) -> Any:
    """A value as a result has it."""
    match value:
        case Edge():
            return graph.shown(value)
        case Walk():
            return value.vertices, tuple(map(graph.shown, value.edges))
        case tuple():
            return tuple(map(graph.shown, value))
    return value


def rows(graph: Graph, query: Query) -> list[tuple[Any, ...]]:
    """The rows of a query."""
    found: list[Row] = [{}]
    effort = Effort()
    for clause in query.clauses:
        found = [more for row in found for more in matches(graph, clause, row, effort)]
    if not query.returns and query.counted is None:
        return [(len(found),)]
    made = []
    for row in found:
        values = []
        for item in query.returns:
            path = item.removeprefix("length(").removesuffix(")")
            value = row[path]
            values.append(value if path == item else None if value is None else len(value.edges))
        if query.counted is not None:
            values.append(len(matches(graph, query.counted, row, effort)))
        made.append(tuple(values))
    made = [*dict.fromkeys(made)] if query.distinct else made
    return [tuple(shown(graph, value) for value in values) for values in made]
