"""What of the data a prepared query depends on: so a change that does not concern it leaves its plan as it is.

A plan has partitions, candidates and SQL that were made of one state of the data.  Changes of edges whose labels its
pattern does not admit, of properties that it does not read and of vertex labels that it does not name change none of
these.  What is not certain counts as concerned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphdb.common.errors import BindError
from graphdb.common.values.elements import Node
from graphdb.functions.table import SIGNATURE_OF
from graphdb.grammar import syntax as ast
from graphdb.grammar.syntax import MatchMode
from graphdb.grammar.walk import walk
from graphdb.pattern.free import SUBQUERIES
from graphdb.storage.graph.derived.closure import closure_of

if TYPE_CHECKING:
    from graphdb.pattern.bind import BoundPattern
    from graphdb.pattern.names import Names
    from graphdb.storage.graph.changes import Changes

_IDENTITY = frozenset({"id", "elementid", "type", "startnode", "endnode", "iri"})
"""Functions that read nothing of a vertex or edge but which one it is."""

_VALUES = _IDENTITY | {"avg", "coalesce", "collect", "count", "head", "last", "max", "min", "size", "sum"}
"""Functions that read nothing of the vertices and edges that they may be given."""

_FACTS = frozenset({"keys", "labels", "properties"})
"""Functions that read what a vertex is or has, of whatever expression it is the value."""

_ENTITY_READERS = (ast.Subscript, ast.Slice, ast.MapProjection, ast.ListComprehension, ast.Reduce)
"""Expressions that may read any property of what they are over."""


_ELSEWHERE = (ast.IriLiteral, ast.CallClause, ast.ProcedureClause, *SUBQUERIES)
"""What reads more of the data than patterns and properties do."""


@dataclass(frozen=True, slots=True)
class Reads:
    """What a plan depends on."""

    labels: frozenset[int]
    """Labels of its pattern's edges, and of the properties that it reads."""
    classes: frozenset[int]
    """Vertex labels that it names."""
    edge_rows: bool
    """Whether it may read properties of edges: their tables are of all labels, and go with any row of single edges."""
    terms: bool
    """Whether it names resources, or has vertices that are literals: new resources concern it."""
    unplanned: object
    """The query without its plan, where that is all that a change concerns; else None."""
    compiled: frozenset[int] | None = None
    """Labels of properties that its SQL reads, where any change concerns its plans, and one of these the rest of it."""
    closures: frozenset[int] = frozenset()
    """Labels of which its pattern has a closure: which a label that is no forest any more has not."""
    closed_within: frozenset[int] = frozenset()
    """Vertex labels within which these are: there is no such closure where vertices with one are above each other."""

    def concerned(self, changes: Iterable[Changes], type_label: int | None, resources: int) -> bool:
        """Whether some changes concern it, of a graph of so many resources before."""
        if self.compiled is not None:
            return True
        for change in changes:
            touched, described = change.labels, _described(change)
            if (touched | described) & self.labels or (self.edge_rows and described):
                return True
            if type_label in touched and self.classes and change.relabel(type_label, self.classes):
                return True
            sizes = None if change.counted is None else change.counted.sizes
            if self.terms and sizes is not None and sizes.resources != resources:
                return True
        return False

    def rebound(
        self, changes: Iterable[Changes], retyped: frozenset[int] = frozenset(), type_label: int | None = None
    ) -> bool:
        """Whether after some changes its pattern may be bound or its SQL compiled otherwise.

        Properties of the labels ``retyped`` may have values of other types than before.
        """
        if not retyped.isdisjoint(self.labels | (self.compiled or frozenset())):
            return True
        if self.closures and any(not self.closures.isdisjoint(change.labels) for change in changes):
            return True
        if self.closed_within and any(change.relabel(type_label, self.closed_within) for change in changes):
            return True
        if self.compiled and any(not self.compiled.isdisjoint(change.labels) for change in changes):
            return True  # of another type, or with several values, they are read by other SQL
        described = frozenset[int]().union(*map(_described, changes))
        return bool(described if self.edge_rows else described & self.labels)


def _described(change: Changes) -> frozenset[int]:
    """Return the labels of which rows of single edges were written."""
    return change.edges.come | change.edges.parallel | change.edges.gone


def reads_of(
    query: ast.Query,
    bound: BoundPattern,
    names: Names,
    type_label: int | None,
    arguments: Mapping[str, object],
    text: str,
    unplanned: object,
) -> Reads | None:
    """Return what a query of one pattern depends on, as it was bound; None where that may be anything.

    ``unplanned`` is the query without its plan, where that is all that a change concerns.
    """
    facts = facts_read(query, names, type_label, text)
    classes = _classes(query, names, text)
    joined = _joined(bound, names)
    if facts is None or classes is None or joined is None:
        return None
    labels = joined | (facts - ({type_label} if type_label is not None else set()))
    named = any(isinstance(part, ast.IriLiteral) for part in walk(query)) or any(
        isinstance(value, (Node, list)) for value in arguments.values()
    )
    terms = named or any(info.iris or info.kinds for info in bound.vertices)
    closures = _closures_in((bound,))
    return Reads(labels, classes, _reads_edge_rows(query), terms, unplanned, None, *closures)


def reads_of_clauses(
    query: ast.Query | ast.Composite,
    bounds: Sequence[BoundPattern],
    names: Names,
    type_label: int | None,
    text: str,
    unplanned: object,
) -> Reads | None:
    """Return what a query of several clauses depends on but for its plans and candidates; None for anything.

    ``bounds`` are its patterns, which no path is searched for between.
    """
    if any(isinstance(part, _ELSEWHERE) for part in walk(query)):
        return None
    joined = [_joined(bound, names) for bound in bounds]
    if None in joined or any(info.iris or info.kinds for bound in bounds for info in bound.vertices):
        return None
    labels = frozenset[int]().union(*(each for each in joined if each is not None))
    parts = ((query.returns,),) if isinstance(query, ast.Query) else query.parts
    rest = tuple(clause for part in parts for clause in part if not isinstance(clause, ast.MatchClause))
    compiled: set[int] = set()
    for piece in walk((rest, tuple(each for bound in bounds for each in (*bound.residual, *bound.ensured)))):
        match piece:
            case ast.KeyName():
                try:
                    compiled.add(names.property(piece.words, text).id)
                except BindError:  # a key of a map
                    return None
            case ast.LabelPredicate() if type_label is not None:
                compiled.add(type_label)
            case ast.FunctionCall(name) if name.lower() not in _VALUES:
                return None
            case _ if isinstance(piece, _ENTITY_READERS):
                return None
    closures = _closures_in(bounds)
    return Reads(labels, frozenset(), _reads_edge_rows(query), False, unplanned, frozenset(compiled), *closures)


def _closures_in(bounds: Iterable[BoundPattern]) -> tuple[frozenset[int], frozenset[int]]:
    """Return the edge labels of which patterns have closures in the place of edges, and within which labels."""
    labels = {label for bound in bounds for edge in bound.edges for label in edge.labels or ()}
    closures = [closure for label in labels if (closure := closure_of(label)) is not None]
    within = frozenset(closure.within for closure in closures if closure.within is not None)
    return frozenset(closure.label for closure in closures), within


def _joined(bound: BoundPattern, names: Names) -> frozenset[int] | None:
    """Return the labels of a pattern's edges; None where it may depend on anything."""
    if names.with_subclasses or bound.choices or bound.edge_conditions or bound.edge_tests:
        return None
    if any(info.resources_only or info.exists for info in bound.vertices):
        return None
    if any(clause.mode is MatchMode.INDUCED for clause in bound.clauses):
        return None  # which edges of any label may contradict
    joined = {end for edge in bound.edges for end in (edge.source, edge.target)}
    if any(v not in joined and not info.labels for v, info in enumerate(bound.vertices)):
        return None  # it ranges over all vertices
    labels: set[int] = set()
    for edge in bound.edges:
        for label in (None,) if edge.labels is None else edge.labels:
            closure = None if label is None else closure_of(label)
            if label is None or (closure is not None and closure.low == 0):
                return None
            labels.add(label if closure is None else closure.label)
    return frozenset(labels)


def _reads_edge_rows(query: ast.Query | ast.Composite) -> bool:
    """Whether a query may read properties of an edge: one that is named or described, where any property is read."""
    parts = list(walk(query))
    edges = (part for part in parts if isinstance(part, ast.EdgePattern))
    asked = any(edge.variable is not None or edge.properties for edge in edges)
    return asked and any(isinstance(part, ast.KeyName) for part in parts)


def _classes(query: ast.Query, names: Names, text: str) -> frozenset[int] | None:
    """Return the vertex labels that a query names; None where it asks for vertices without some."""
    found: set[int] = set()
    for piece in walk(query):
        match piece:
            case ast.LabelNot() | ast.LabelAny():
                return None
            case ast.NodePattern() | ast.LabelPredicate():
                for chain in (part for part in walk(piece) if isinstance(part, ast.LabelChain)):
                    try:
                        found.update(names.vertex_label(words, text).id for words in names.chains(chain.words))
                    except BindError:
                        return None
    return frozenset(found)


def facts_read(
    query: ast.Query | ast.Composite, names: Names, type_label: int | None, text: str
) -> frozenset[int] | None:
    """Return the labels of the triples that a query reads of its vertices, beside edges; None for all."""
    found: set[int] = set()
    elements = set(_elements(query))
    for piece in walk(query):
        match piece:
            case ast.KeyName():
                try:
                    found.add(names.property(piece.words, text).id)
                except BindError:  # a key of a map
                    return None
            case ast.NodePattern(labels=None):
                pass
            case ast.NodePattern() | ast.LabelPredicate():
                if type_label is not None:
                    found.add(type_label)
            case ast.FunctionCall():
                signature = SIGNATURE_OF.get(piece.name.lower())
                named = any(isinstance(a, ast.Variable) and a.name in elements for a in piece.arguments)
                if signature is None or signature.key in _FACTS or (named and signature.key not in _VALUES):
                    return None
            case _ if isinstance(piece, _ENTITY_READERS):
                return None
    return frozenset(found)


def _elements(query: ast.Query | ast.Composite) -> Iterator[str]:
    """Yield the names of a query's vertices and edges, those of its subqueries included."""
    for piece in walk(query):
        if isinstance(piece, (ast.NodePattern, ast.EdgePattern)) and piece.variable is not None:
            yield piece.variable.name
