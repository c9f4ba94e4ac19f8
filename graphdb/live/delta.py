"""Delta plans of a continuous query: the rows that its answer gains and loses with a batch, found from what changed.

Where every row is a match of one connected pattern, :class:`graphdb.incremental.matcher.IncrementalMatcher` finds the
matches that a batch of edges adds and takes away, and the query's own SQL makes rows of them.  A batch that changes a
label or property which the query reads, of a vertex that was there before, is not for delta plans: the answer after it
is compared with the answer before.

A matcher's candidates hold for as long as it lives, and so do its vertices.  So it has some more than the graph does:
new vertices are candidates for everything, and of the matches with them those stay whose vertices fulfil the conditions
by now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from graphdb.common.errors import BindError, NotSupportedError
from graphdb.common.values.terms import LITERAL_BASE
from graphdb.functions.table import SIGNATURE_OF
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.incremental.matcher import IncrementalMatcher, Updates
from graphdb.live.grouping import Grouping, NotGrouped
from graphdb.pattern.graph import PatternGraph
from graphdb.plan.executor import Block
from graphdb.relational.candidates import Candidates
from graphdb.relational.edges.assignment import Chooser
from graphdb.relational.query import Prepared
from graphdb.results.display import made_in_python
from graphdb.semantics.aggregation import contains_aggregate
from graphdb.storage.graph.closure import closure_of

if TYPE_CHECKING:
    from graphdb.incremental.delta_plan import DeltaPlan
    from graphdb.pattern.bind import BoundPattern
    from graphdb.pattern.graph import PatternVertex
    from graphdb.pattern.names import Names
    from graphdb.relational.program import Program
    from graphdb.relational.snapshot import Snapshot
    from graphdb.storage.graph.changes import Changes
    from graphdb.storage.graph.source import TripleSource

Ints = NDArray[np.int64]

_SPARE = 4096
"""Vertices that a matcher has beside those of the graph, at least; …"""
_SHARE = 8
"""… and this part of the graph's."""

_IDENTITY = frozenset({"id", "elementid", "type", "startnode", "endnode", "iri"})
"""Functions that read nothing of a vertex or edge but which one it is."""

_ENTITY_READERS = (ast.Subscript, ast.Slice, ast.MapProjection, ast.ListComprehension, ast.Reduce)
"""Expressions that may read any property of what they are over."""


_NO_MATCHES = "its rows are not the matches of one pattern"


class NotIncremental(Exception):
    """Why delta plans do not maintain a query."""


def cut(query: ast.Query | ast.Composite) -> tuple[ast.Query, Grouping | None]:
    """Return the query whose rows are matches, and what groups it makes of them, if it does.

    Raises
    ------
    NotIncremental
        Delta plans never maintain it, whatever the data.
    """
    if not isinstance(query, ast.Query) or not query.matches:
        raise NotIncremental(_NO_MATCHES)
    if query.returns.skip is not None or query.returns.limit is not None:
        raise NotIncremental("SKIP and LIMIT choose among all rows")
    if not (query.returns.distinct or contains_aggregate(query.returns)):
        return query, None
    try:
        grouping = Grouping.of(query)
    except NotGrouped as error:
        raise NotIncremental(str(error)) from None
    return grouping.rows, grouping


class Net(NamedTuple):
    """What a batch changed in all: int64 [triples, 3] each, as (label, subject, object)."""

    removed: Ints
    added: Ints
    edge_rows: bool
    """Whether rows of single edges may have been written: properties of edges, or parallel ones."""

    @classmethod
    def of(cls, noted: Sequence[Changes | None]) -> Net | None:
        """Add up changes that follow each other; None where some of them is not known."""
        parts: list[Ints] = []
        signs: list[NDArray[np.int8]] = []
        edge_rows = False
        for changes in noted:
            if changes is None:
                return None
            for rows, sign in ((changes.removed, -1), (changes.added, 1)):
                if len(rows):
                    parts.append(rows)
                    signs.append(np.full(len(rows), sign, np.int8))
            rows_written = changes.edges
            unknown = changes.counted is None and not len(changes.removed) and not len(changes.added)
            edge_rows = edge_rows or unknown or bool(rows_written.come or rows_written.gone)
        if not parts:
            none = np.empty((0, 3), np.int64)
            return cls(none, none, edge_rows)
        triples, which = np.unique(np.concatenate(parts), axis=0, return_inverse=True)
        balance = np.zeros(len(triples), np.int64)
        np.add.at(balance, which.reshape(-1), np.concatenate(signs))
        return cls(triples[balance < 0], triples[balance > 0], edge_rows)

    def __bool__(self) -> bool:
        return bool(len(self.removed) or len(self.added) or self.edge_rows)


@dataclass(slots=True)
class DeltaQuery:
    """A query that delta plans maintain, over one state of the names."""

    bound: BoundPattern
    pattern: PatternGraph
    """With the candidates of each vertex by itself."""
    reads: frozenset[int] | None
    """Labels of the triples, beside edges of the pattern, that it reads of a vertex; None for all."""
    labels: frozenset[int]
    """The names that it was bound to: edge labels and vertex labels of the graph."""

    @classmethod
    def of(cls, query: ast.Query, prepared: Prepared | Program, snapshot: Snapshot, text: str) -> DeltaQuery:
        """Return a query with what delta plans need.

        Raises
        ------
        NotIncremental
            They do not maintain it.
        """
        if type(prepared) is not Prepared or prepared.plan is None:
            raise NotIncremental(_NO_MATCHES)
        needs, bound = prepared.wanted, prepared.bound
        if needs.duplicates != "keep" or needs.limit is not None:
            raise NotIncremental(_NO_MATCHES)
        if prepared.computing is not None or any(made_in_python(column.type) for column in prepared.projection.columns):
            raise NotIncremental("Python computes a part of it")
        if Chooser(snapshot, bound, needs) or bound.choices:
            raise NotIncremental("it asks for edges that have properties, or parallel ones")
        if any(info.kinds for info in bound.vertices):
            raise NotIncremental("a vertex of its pattern may be a literal")
        if snapshot.names.with_subclasses:
            raise NotIncremental("labels are read with the classes below them")
        if {end for edge in bound.edges for end in (edge.source, edge.target)} != set(range(len(bound.vertices))):
            raise NotIncremental("its pattern has a vertex without edges")
        taken = [label for edge in bound.edges for label in edge.labels or ()]
        if any(closure_of(label) is not None for label in taken):
            raise NotIncremental("an edge of its pattern stands for paths")
        if snapshot.store.type_label in taken:
            raise NotIncremental("its pattern has an edge rdf:type")
        vertices = Candidates(snapshot, text, {}).of_each(bound)
        names = [bound.vertices[v].name for v in range(len(vertices))]
        outputs = (*names, *(bound.edges[e].name for e in sorted(needs.edges)))
        pattern = PatternGraph(
            vertices, tuple(bound.edges), tuple(bound.clauses), tuple(bound.edge_tests), tuple(bound.unequal), outputs
        )
        return cls(bound, pattern, _reads(query, snapshot, text), _known(snapshot.names))

    def matcher(self, snapshot: Snapshot) -> Matcher:
        """Return a matcher over the graph as it is.

        Raises
        ------
        NotIncremental
            It does not take the pattern.
        """
        return Matcher(self.pattern, snapshot)

    def is_bound_otherwise(self, net: Net, type_label: int | None) -> bool:
        """Whether a batch may change what its names stand for, or the types of what it returns."""
        if net.edge_rows or len(self.read(net, type_label)):
            return True
        return not self.knows(np.concatenate([net.removed, net.added]), type_label)

    def knows(self, rows: Ints, type_label: int | None) -> bool:
        """Whether the labels of some triples were there when its names were looked up."""
        named = np.concatenate([rows[:, 0], rows[rows[:, 0] == (-1 if type_label is None else type_label), 2]])
        return self.labels.issuperset(np.unique(named).tolist())

    def is_like(self, other: DeltaQuery, resources: int) -> bool:
        """Whether another one has the same pattern, among the same candidates of the first so many vertices."""
        return same_pattern(self.pattern, other.pattern, resources)

    def read(self, net: Net, type_label: int | None) -> Ints:
        """Return the vertices of which a batch changes a label or property that the query reads."""
        rows = np.concatenate([net.removed, net.added])
        rows = rows[_is_fact(rows, type_label)]
        return (rows if self.reads is None else rows[np.isin(rows[:, 0], list(self.reads))])[:, 1]

    def updates(self, net: Net, type_label: int | None) -> Updates:
        """Return the changed edges that its pattern may bind."""
        wanted: set[int] | None = set()
        for edge in self.pattern.edges:
            wanted = None if edge.labels is None or wanted is None else wanted | set(edge.labels)
        parts = []
        for rows in (net.removed, net.added):
            edges = rows[~_is_fact(rows, type_label)]
            parts.append(edges if wanted is None else edges[np.isin(edges[:, 0], list(wanted))])
        whole = np.concatenate(parts)
        inserted = np.arange(len(whole)) >= len(parts[0])
        return Updates(whole[:, 0], whole[:, 1], whole[:, 2], inserted)

    def block(self, rows: Ints) -> Block:
        """Return matches as an executor returns them."""
        columns = {name: rows[:, column] for column, name in enumerate(self.pattern.outputs)}
        return Block(columns, len(rows), None)


class Matcher:
    """The matches of one pattern, followed; its graph has spare vertices, which are candidates for everything."""

    def __init__(self, pattern: PatternGraph, snapshot: Snapshot) -> None:
        self.pattern = pattern
        source = _Edges(cast("TripleSource", snapshot.store))
        self._first_spare, self._vertices = source.first_spare, source.resources
        spare = np.arange(self._first_spare, self._vertices, dtype=np.int64)
        vertices = tuple(
            vertex
            if vertex.candidates is None
            else replace(vertex, candidates=np.concatenate([vertex.candidates, spare]))
            for vertex in pattern.vertices
        )
        try:
            self._matcher = IncrementalMatcher(cast("TripleSource", source), [replace(pattern, vertices=vertices)])
        except NotSupportedError as error:
            raise NotIncremental(error.message) from None

    @property
    def plans(self) -> tuple[DeltaPlan, ...]:
        """Its delta plans."""
        return self._matcher.delta_plans()

    def follows(self, pattern: PatternGraph) -> bool:
        """Whether it is a matcher of a pattern that was bound again, spare candidates aside."""
        return same_pattern(self.pattern, pattern, self._first_spare)

    def has(self, updates: Updates) -> bool:
        """Whether it has the vertices of some edges."""
        return all(
            int(np.max(np.asarray(ends), initial=0)) < self._vertices for ends in (updates.sources, updates.targets)
        )

    def rewind(self, updates: Updates, check: Callable[[], None]) -> None:
        """Take a batch back: it was built of the graph after it."""
        self._matcher.apply(updates._replace(inserted=~np.asarray(updates.inserted, bool)), check)

    def follow(self, updates: Updates, check: Callable[[], None]) -> None:
        """Apply a batch of which others find out what it changes."""
        self._matcher.apply(updates, check)

    def apply(
        self, updates: Updates, candidates: Callable[[], Sequence[PatternVertex]], check: Callable[[], None]
    ) -> tuple[Ints, Ints]:
        """Apply a batch; return the matches that it adds, and those that it takes away.

        ``candidates`` are those of now, by vertex of the pattern.
        """
        [changes] = self._matcher.apply(updates, check)
        added, removed = (self._fulfil(rows, candidates) for rows in changes)
        return added, removed

    def _fulfil(self, rows: Ints, candidates: Callable[[], Sequence[PatternVertex]]) -> Ints:
        """Return the matches whose spare vertices fulfil the conditions of the pattern."""
        limited = [v for v, vertex in enumerate(self.pattern.vertices) if vertex.candidates is not None]
        if not limited or not len(rows) or not bool((rows[:, limited] >= self._first_spare).any()):
            return rows
        for v, vertex in enumerate(candidates()):
            if vertex.candidates is not None:
                column = rows[:, v]
                rows = rows[(column < self._first_spare) | np.isin(column, vertex.candidates)]
        return rows


class _Edges:
    """The edges between the resources of a graph, and spare vertices: what a matcher reads of a TripleSource."""

    def __init__(self, source: TripleSource) -> None:
        self._source = source
        self.first_spare = source.resources
        self.resources = source.resources + max(_SPARE, source.resources // _SHARE)
        self.literals = 0
        self.type_label = source.type_label

    def edge_labels(self) -> tuple[int, ...]:
        return self._source.edge_labels()

    def edges(self, label: int) -> tuple[Ints, Ints]:
        subjects, objects = self._source.edges(label)
        if len(objects) and int(objects.max()) >= self.first_spare:
            edges = objects < self.first_spare
            subjects, objects = subjects[edges], objects[edges]
        return subjects, objects

    def any_edges(self) -> tuple[Ints, Ints, Ints]:
        return self._source.any_edges()


def _is_fact(rows: Ints, type_label: int | None) -> NDArray[np.bool_]:
    """Return which triples are labels or properties."""
    found: NDArray[np.bool_] = (rows[:, 2] >= LITERAL_BASE) | (rows[:, 0] == (-1 if type_label is None else type_label))
    return found


def same_pattern(left: PatternGraph, right: PatternGraph, resources: int) -> bool:
    """Whether patterns have the same edges, and candidates, of the first so many vertices."""
    if replace(left, vertices=()) != replace(right, vertices=()):
        return False
    for one, other in zip(left.vertices, right.vertices, strict=True):
        if one.candidates is None or other.candidates is None:
            if one.candidates is not other.candidates:
                return False
            continue
        first, second = (each[: np.searchsorted(each, resources)] for each in (one.candidates, other.candidates))
        if not np.array_equal(first, second):
            return False
    return True


def _known(names: Names) -> frozenset[int]:
    return frozenset((*names.edge_labels, *names.vertex_labels, *names.hidden))


def _reads(query: ast.Query, snapshot: Snapshot, text: str) -> frozenset[int] | None:
    """Return the labels of the triples that a query reads of its vertices, beside edges; None for all."""
    found: set[int] = set()
    elements = set(_elements(query))
    for piece in walk(query):
        match piece:
            case ast.KeyName():
                try:
                    found.add(snapshot.names.property(piece.words, text).id)
                except BindError:  # a key of a map
                    return None
            case ast.NodePattern(labels=None):
                pass
            case ast.NodePattern() | ast.LabelPredicate():
                if snapshot.store.type_label is not None:
                    found.add(snapshot.store.type_label)
            case ast.FunctionCall():
                signature = SIGNATURE_OF.get(piece.name.lower())
                named = any(isinstance(a, ast.Variable) and a.name in elements for a in piece.arguments)
                if signature is None or (named and signature.key not in _IDENTITY):
                    return None
            case _ if isinstance(piece, _ENTITY_READERS):
                return None
    return frozenset(found)


def _elements(query: ast.Query) -> Iterator[str]:
    """Yield the names of a query's vertices and edges."""
    for piece in walk(query.matches):
        if isinstance(piece, (ast.NodePattern, ast.EdgePattern)) and piece.variable is not None:
            yield piece.variable.name
