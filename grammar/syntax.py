"""The syntax tree of a statement: frozen nodes, each with the span of text it came from.

Nothing here knows a catalog: names stay as written, and :mod:`graphdb.pattern.bind` gives them their meaning.
Spans do not take part in equality, so two trees are equal when their statements say the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Span:
    """Character offsets ``[start, end)`` into the statement's text."""

    start: int
    end: int


_HERE = Span(0, 0)


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


# --- names and label expressions -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Word:
    """One written name part: an identifier (back-quotes removed) or a full IRI (angle brackets removed)."""

    text: str
    is_iri: bool = False
    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class LabelChain:
    """Names joined by colons, ``A:B``: the binder reads a declared prefix with its local name, else labels that
    must all hold.
    """

    words: tuple[Word, ...]
    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class LabelAny:
    """``%``: any label."""

    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class LabelNot:
    """``!x``."""

    operand: LabelExpression
    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class LabelAnd:
    """``x & y``."""

    operands: tuple[LabelExpression, ...]
    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class LabelOr:
    """``x | y``."""

    operands: tuple[LabelExpression, ...]
    span: Span = field(default=_HERE, compare=False)


LabelExpression: TypeAlias = LabelChain | LabelAny | LabelNot | LabelAnd | LabelOr


@dataclass(frozen=True, slots=True)
class KeyName:
    """A property key: one word (bare name or IRI), or two (prefix and local name)."""

    words: tuple[Word, ...]
    span: Span = field(default=_HERE, compare=False)

    @property
    def text(self) -> str:
        """The key as a user would write it."""
        return ":".join(f"<{w.text}>" if w.is_iri else w.text for w in self.words)


# --- expressions -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant: ``int``, ``float``, ``str``, ``bool`` or ``None``."""

    value: int | float | str | bool | None
    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class IriLiteral:
    """``<http://…>`` as a value: the resource with that IRI."""

    iri: str
    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class Parameter:
    """``$name``."""

    name: str
    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable's name, where it is declared and where it is used."""

    name: str
    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class Property:
    """``base.key``."""

    base: Expression
    key: KeyName
    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """``name([DISTINCT | ALL] a, b)``; the name as written, dots included."""

    name: str
    arguments: tuple[Expression, ...]
    distinct: bool = False
    quantifier: str | None = field(default=None, compare=False)
    """``DISTINCT`` or ``ALL``, where one is written: aggregates take them, other functions do not."""
    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class CountStar:
    """``count(*)``."""

    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class Unary:
    """``NOT x``, ``-x``, ``+x``."""

    operator: str
    operand: Expression
    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class Binary:
    """Arithmetic: ``+ - * / % ^``."""

    operator: str
    left: Expression
    right: Expression
    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class Boolean:
    """``AND``, ``OR``, ``XOR`` over two or more operands."""

    operator: str
    operands: tuple[Expression, ...]
    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class Comparison:
    """``a < b <= c``: ``operands`` is one longer than ``operators`` (``= <> < <= > >=``)."""

    operators: tuple[str, ...]
    operands: tuple[Expression, ...]
    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class StringPredicate:
    """``STARTS WITH``, ``ENDS WITH``, ``CONTAINS``, ``=~``."""

    operator: str
    left: Expression
    right: Expression
    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class In:
    """``x IN list``."""

    item: Expression
    collection: Expression
    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class IsNull:
    """``x IS [NOT] NULL``."""

    operand: Expression
    negated: bool = False
    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class ListLiteral:
    """``[a, b]``."""

    items: tuple[Expression, ...]
    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class MapLiteral:
    """``{key: value}``."""

    items: tuple[tuple[KeyName, Expression], ...]
    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class LabelPredicate:
    """``n:Person`` as a condition."""

    operand: Expression
    labels: LabelExpression
    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class PatternPredicate:
    """``(a)-[:knows]->()`` as a condition: true if the pattern has a match."""

    pattern: PathPattern
    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class Subscript:
    """``base[index]``: an item of a list, or a value of a map, vertex or edge."""

    base: Expression
    index: Expression
    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class Slice:
    """``base[start..end]``; either bound may be left out."""

    base: Expression
    start: Expression | None
    end: Expression | None
    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class Case:
    """``CASE [operand] WHEN a, b THEN x … [ELSE y] END``: each branch is its conditions (or values) and its result."""

    operand: Expression | None
    branches: tuple[tuple[tuple[Expression, ...], Expression], ...]
    otherwise: Expression | None
    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class ListComprehension:
    """``[x IN list WHERE condition | result]``."""

    variable: Variable
    source: Expression
    where: Expression | None
    result: Expression | None
    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class ListPredicate:
    """``all``, ``any``, ``none`` or ``single`` ``(x IN list WHERE condition)``."""

    quantifier: str
    variable: Variable
    source: Expression
    where: Expression | None
    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class Reduce:
    """``reduce(total = start, x IN list | step)``."""

    accumulator: Variable
    start: Expression
    variable: Variable
    source: Expression
    step: Expression
    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class MapProjection:
    """``n {.key, .*, variable, key: value}``; an item is a key with its value, or None for ``.*``."""

    base: Variable
    items: tuple[tuple[str, Expression] | None, ...]
    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class PatternComprehension:
    """``[(a)-->(b) WHERE condition | result]``: one item for each match."""

    pattern: PathPattern
    where: Expression | None
    result: Expression
    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class ShortestPath:
    """``shortestPath((a)-[*]->(b))`` as a value, between bound vertices; ``allShortestPaths`` gives a list."""

    pattern: PathPattern
    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class Subquery:
    """``EXISTS``, ``COUNT`` or ``COLLECT`` ``{ … }``: of a query, or of patterns with a condition."""

    kind: str
    query: Query | Composite
    span: Span = field(default=_HERE, compare=False)


Expression: TypeAlias = (
    Literal
    | IriLiteral
    | Parameter
    | Variable
    | Property
    | FunctionCall
    | CountStar
    | Unary
    | Binary
    | Boolean
    | Comparison
    | StringPredicate
    | In
    | IsNull
    | ListLiteral
    | MapLiteral
    | LabelPredicate
    | PatternPredicate
    | Subscript
    | Slice
    | Case
    | ListComprehension
    | ListPredicate
    | Reduce
    | MapProjection
    | PatternComprehension
    | ShortestPath
    | Subquery
)


# --- patterns --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NodePattern:
    """``(v:Label {key: value} WHERE …)``, or ``(v <http://…>)`` for the one resource with that IRI."""

    variable: Variable | None = None
    labels: LabelExpression | None = None
    iri: IriLiteral | None = None
    properties: MapLiteral | None = None
    where: Expression | None = None
    span: Span = field(default=_HERE, compare=False)
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
    span: Span = field(default=_HERE, compare=False)
    given: Parameter | None = None
    """As for a node."""


@dataclass(frozen=True, slots=True)
class Subpath:
    """``((a)-[e]->(b) WHERE …){1,3}``: a part of a path, in brackets; its ends are the vertices around it."""

    pattern: PathPattern
    where: Expression | None = None
    repeat: Repeat | None = None
    span: Span = field(default=_HERE, compare=False)


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
class Selector:
    """Which of the paths between the same two ends are kept: ``count`` of any, the shortest, or groups of a length."""

    count: int
    shortest: bool = False
    groups: bool = False


@dataclass(frozen=True, slots=True)
class PathPattern:
    """Nodes and what is between them, in the order written: ``len(nodes) == len(edges) + 1``."""

    nodes: tuple[NodePattern, ...]
    edges: tuple[EdgePattern | Subpath, ...]
    span: Span = field(default=_HERE, compare=False)
    variable: Variable | None = None
    mode: PathMode | None = None
    selector: Selector | None = None

    @property
    def plain(self) -> bool:
        """Whether this is nodes and single edges, without a name: what one plan matches."""
        return (
            self.variable is None
            and self.mode is None
            and self.selector is None
            and all(isinstance(edge, EdgePattern) and edge.repeat is None for edge in self.edges)
        )


# --- clauses and statements ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MatchClause:
    """``[OPTIONAL] MATCH [mode] pattern, … [WHERE …]``."""

    patterns: tuple[PathPattern, ...]
    mode: MatchMode = MatchMode.DIFFERENT_EDGES
    where: Expression | None = None
    span: Span = field(default=_HERE, compare=False)
    optional: bool = False


@dataclass(frozen=True, slots=True)
class ReturnItem:
    """``expression [AS alias]``; ``text`` is the expression as written, which names the column without an alias."""

    expression: Expression
    alias: str | None
    text: str
    span: Span = field(default=_HERE, compare=False)


def is_plain_key(expression: Expression) -> bool:
    """Whether a returned column may stand beside an aggregate, as ``v.key + count(*)``: a variable or a property.

    openCypher takes no others, so that what is grouped by need not be looked for inside other expressions.
    """
    while isinstance(expression, Property):
        expression = expression.base
    return isinstance(expression, Variable)


@dataclass(frozen=True, slots=True)
class OrderItem:
    """``expression [ASC | DESC] [NULLS FIRST | NULLS LAST]``: null counts as the largest value if nothing is said."""

    expression: Expression
    descending: bool = False
    nulls_first: bool = False
    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class ReturnClause:
    """``RETURN [DISTINCT] items | * [ORDER BY …] [SKIP …] [LIMIT …]``; ``star`` stands before the items."""

    items: tuple[ReturnItem, ...]
    star: bool = False
    distinct: bool = False
    order_by: tuple[OrderItem, ...] = ()
    skip: Expression | None = None
    limit: Expression | None = None
    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class WithClause:
    """``WITH …``, which is a RETURN that the query goes on from, and its ``WHERE``."""

    returns: ReturnClause
    where: Expression | None = None
    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class UnwindClause:
    """``UNWIND list AS name``."""

    source: Expression
    variable: Variable
    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class CreateClause:
    """``CREATE pattern, …``."""

    patterns: tuple[PathPattern, ...]
    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class SetItem:
    """``target = value``: of a property, of a vertex's or edge's whole map, or with ``add`` of part of it (``+=``)."""

    target: Expression
    value: Expression
    add: bool = False
    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class LabelItem:
    """``n:Label``, to set or to remove."""

    target: Expression
    labels: LabelExpression
    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class SetClause:
    """``SET item, …``."""

    items: tuple[SetItem | LabelItem, ...]
    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class RemoveClause:
    """``REMOVE n.key, n:Label``."""

    items: tuple[Expression | LabelItem, ...]
    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class DeleteClause:
    """``[DETACH] DELETE value, …``."""

    values: tuple[Expression, ...]
    detach: bool = False
    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class MergeClause:
    """``MERGE pattern [ON MATCH SET …] [ON CREATE SET …]``."""

    pattern: PathPattern
    on_match: tuple[SetItem | LabelItem, ...] = ()
    on_create: tuple[SetItem | LabelItem, ...] = ()
    span: Span = field(default=_HERE, compare=False)


ClauseNode: TypeAlias = (
    MatchClause
    | WithClause
    | UnwindClause
    | ReturnClause
    | CreateClause
    | MergeClause
    | SetClause
    | RemoveClause
    | DeleteClause
)


@dataclass(frozen=True, slots=True)
class Composite:
    """A query of any clauses: linear parts, whose rows UNION puts together (``keeps_all``: UNION ALL)."""

    parts: tuple[tuple[ClauseNode, ...], ...]
    keeps_all: bool = False
    span: Span = field(default=_HERE, compare=False)

    @property
    def writes(self) -> bool:
        """Whether it changes the graph."""
        writing = (CreateClause, MergeClause, SetClause, RemoveClause, DeleteClause)
        return any(isinstance(clause, writing) for part in self.parts for clause in part)


@dataclass(frozen=True, slots=True)
class Query:
    """``MATCH … [MATCH …] RETURN …`` of plain paths: one plan and one SQL statement; ``matches`` may be empty."""

    matches: tuple[MatchClause, ...]
    returns: ReturnClause
    span: Span = field(default=_HERE, compare=False)

    @property
    def clauses(self) -> tuple[ClauseNode, ...]:
        """All clauses in order."""
        return (*self.matches, self.returns)


@dataclass(frozen=True, slots=True)
class Prefix:
    """``PREFIX name: <iri>``."""

    name: str
    iri: str
    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class Load:
    """``LOAD 'path' [, 'path'] [FORMAT name] [BASE <iri>] [COLUMNS {name: 'header', …}] [LABEL name] [TYPE name]
    [ON ERROR STOP | SKIP]``, the options in any order; ``columns`` are names with their headers.
    """

    paths: tuple[str, ...]
    format: str | None = None
    on_error: str = "stop"
    base: str | None = None
    columns: tuple[tuple[str, str], ...] = ()
    label: str | None = None
    type: str | None = None
    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class CreateTable:
    """``CREATE [OR REPLACE] [TEMP] TABLE [IF NOT EXISTS] name AS MATCH …``; ``name`` has up to three parts."""

    name: tuple[str, ...]
    query: Query | Composite
    replace: bool = False
    temporary: bool = False
    if_not_exists: bool = False
    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class Explain:
    """``EXPLAIN MATCH …`` and ``PROFILE MATCH …``."""

    query: Query | Composite
    profile: bool = False
    span: Span = field(default=_HERE, compare=False)


@dataclass(frozen=True, slots=True)
class Sql:
    """Any other statement: DuckDB's SQL, as written."""

    text: str
    span: Span = field(default=_HERE, compare=False)


Statement: TypeAlias = Query | Composite | Prefix | Load | CreateTable | Explain | Sql
