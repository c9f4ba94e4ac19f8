"""Patterns: vertices and edges in the order written, and what may not repeat among their matches."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from graphdb.grammar.syntax.expressions import IriLiteral, MapLiteral, Parameter, Variable
from graphdb.grammar.syntax.names import HERE, LabelExpression, Span
from graphdb.grammar.syntax.nodes import Expression


class MatchMode(Enum):
    """What must differ between the elements that one MATCH clause binds."""

    DIFFERENT_EDGES = "DIFFERENT EDGES"
    """No data edge twice: openCypher's semantics, and the default."""
    REPEATABLE_ELEMENTS = "REPEATABLE ELEMENTS"
    """Homomorphism: SPARQL's basic graph patterns."""
    DIFFERENT_NODES = "DIFFERENT NODES"
    """Subgraph isomorphism: no vertex and no edge twice."""
    INDUCED = "INDUCED"
    """Vertex-induced subgraph isomorphism: no further edge between matched vertices."""


class Direction(Enum):
    """How an edge pattern is written, seen from its left vertex."""

    OUT = "->"
    IN = "<-"
    BOTH = "--"


class PathMode(Enum):
    """What must not be repeated along one path (GQL, path modes)."""

    WALK = "WALK"
    """Nothing: any walk."""
    TRAIL = "TRAIL"
    """No edge twice."""
    SIMPLE = "SIMPLE"
    """No vertex twice, but the last may be the first."""
    ACYCLIC = "ACYCLIC"
    """No vertex twice."""


@dataclass(frozen=True, slots=True)
class NodePattern:
    """``(v:Label {key: value} WHERE …)``, or ``(v <http://…>)`` for the one resource with that IRI."""

    variable: Variable | None = None
    labels: LabelExpression | None = None
    iri: IriLiteral | None = None
    properties: MapLiteral | None = None
    where: Expression | None = None
    span: Span = field(default=HERE, compare=False)
    given: Parameter | None = None
    """A parameter in the place of the property map, which CREATE takes."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """How often an edge or a part of a path may follow itself: ``*``, ``+``, ``{2,3}``, ``*1..3``; no ``high``: any."""

    low: int
    high: int | None


@dataclass(frozen=True, slots=True)
class EdgePattern:
    """``-[e:label {key: value} WHERE …]->``, with ``repeat`` a path of such edges."""

    direction: Direction
    variable: Variable | None = None
    labels: LabelExpression | None = None
    properties: MapLiteral | None = None
    where: Expression | None = None
    repeat: Repeat | None = None
    span: Span = field(default=HERE, compare=False)
    given: Parameter | None = None
    """As for a node."""
    closure: int | None = None
    """The number of the relation that its repeats make, where two vertices have one path at most: it stands for one
    edge of that then (:mod:`graphdb.relational.paths.closures`)."""

    @property
    def single(self) -> bool:
        """Whether it is one edge."""
        return self.repeat is None or self.closure is not None


@dataclass(frozen=True, slots=True)
class Subpath:
    """``((a)-[e]->(b) WHERE …){1,3}``: a part of a path, in brackets; its ends are the vertices around it."""

    pattern: PathPattern
    where: Expression | None = None
    repeat: Repeat | None = None
    span: Span = field(default=HERE, compare=False)

    @property
    def single(self) -> bool:
        """Whether it is one edge: never."""
        return False


@dataclass(frozen=True, slots=True)
class Selector:
    """Which paths between the same two ends are selected: ``count`` of any, the shortest, or groups of a length."""

    count: int
    shortest: bool = False
    groups: bool = False
    given: Parameter | None = None
    """A parameter in the place of ``count``: what it says is put there before the query is bound."""
    legacy: bool = False
    """Whether it is that of openCypher's ``shortestPath`` or ``allShortestPaths``."""


NO_COUNT = "a number of paths is 1 or more"
"""The error for any other number before paths."""


@dataclass(frozen=True, slots=True)
class Cost:
    """``COST BY e.weight AS total``: what an edge of a path costs, and the name of what its edges cost together."""

    expression: Expression
    variable: Variable | None = None
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class PathPattern:
    """Nodes and what is between them, in the order written: ``len(nodes) == len(edges) + 1``."""

    nodes: tuple[NodePattern, ...]
    edges: tuple[EdgePattern | Subpath, ...]
    span: Span = field(default=HERE, compare=False)
    variable: Variable | None = None
    mode: PathMode | None = None
    selector: Selector | None = None
    cost: Cost | None = None
    """What the shortest path is the shortest by; None for the number of edges."""

    @property
    def plain(self) -> bool:
        """Whether this is nodes and single edges, without a name: what one plan matches."""
        return (
            self.variable is None
            and self.mode is None
            and self.selector is None
            and all(isinstance(edge, EdgePattern) and edge.single for edge in self.edges)
        )


@dataclass(frozen=True, slots=True)
class PatternPredicate(Expression):
    """``(a)-[:knows]->()`` as a condition: true if the pattern has a match."""

    pattern: PathPattern
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class PatternComprehension(Expression):
    """``[(a)-->(b) WHERE condition | result]``: one item for each match."""

    pattern: PathPattern
    where: Expression | None
    result: Expression
    span: Span = field(default=HERE, compare=False)


@dataclass(frozen=True, slots=True)
class ShortestPath(Expression):
    """``shortestPath((a)-[*]->(b))`` as a value, between bound vertices; ``allShortestPaths`` gives a list."""

    pattern: PathPattern
    span: Span = field(default=HERE, compare=False)
