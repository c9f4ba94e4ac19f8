"""What delta plans need of a continuous query, and of a batch, over one state of the names.

Where every row is a match of one connected pattern, :mod:`.matching` finds the matches that a batch adds and takes
away, and the query's own SQL makes rows of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphdb.common.errors import BindError, NotSupportedError
from graphdb.common.lazy import lazy
from graphdb.common.values.terms import LITERAL_BASE, RDF_TYPE
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import replaced, walk
from graphdb.incremental.induced import is_induced, refuse_induced
from graphdb.incremental.patterns import refuse
from graphdb.live.aggregates.grouping import Grouping
from graphdb.live.aggregates.over_groups import NotGrouped
from graphdb.live.forms.linear import Linear, linear
from graphdb.live.forms.substitution import NotRewritten
from graphdb.live.forms.window import Window, windowed
from graphdb.live.matches.required import NO_MATCHES, NotIncremental, is_alone
from graphdb.pattern.graph import PatternEdge, PatternGraph, PatternVertex
from graphdb.pattern.names import ABSENT
from graphdb.plan.executor import Block
from graphdb.relational.edges.assignment import Chooser
from graphdb.relational.filtering.candidates import Candidates
from graphdb.relational.session.reads import facts_read
from graphdb.results.display import made_in_python
from graphdb.semantics.aggregation import contains_aggregate
from graphdb.sql.computing import Beforehand
from graphdb.storage.arrays.small_joins import distinct
from graphdb.storage.arrays.sorted_sets import unique
from graphdb.storage.graph.derived.closure import closure_of

if TYPE_CHECKING:
    from graphdb.pattern.bind import BoundPattern
    from graphdb.pattern.names import Names
    from graphdb.relational.query import Prepared
    from graphdb.relational.snapshot import Snapshot
    from graphdb.storage.graph.changes import Changes

Ints = NDArray[np.int64]


def cut(query: ast.Query | ast.Composite) -> tuple[tuple[Linear, ...], Grouping | None, Window | None]:
    """Return the queries whose rows are made of matches, what groups are made of these, and which rows are chosen.

    Raises
    ------
    NotIncremental
        Delta plans never maintain it, whatever the data.
    """
    try:
        window = windowed(query)
        parts = linear(query if window is None else window.query)
        branches = [branch for part in parts for branch in part]
        if not all(any(isinstance(clause, ast.MatchClause) for clause in branch.clauses) for branch in branches):
            raise NotIncremental(NO_MATCHES)
        aggregated = any(branch.final or contains_aggregate(branch.returns) for branch in branches)
        once = any(branch.returns.distinct for branch in branches)
        if len(parts) > 1:
            assert isinstance(query, ast.Composite)
            if aggregated or (once and query.keeps_all):
                raise NotIncremental("a part of its UNION aggregates, or makes rows distinct")
            once = not query.keeps_all
        if not (once or aggregated):
            return tuple(branches), None, window
        grouping = Grouping.of(branches)
    except (NotRewritten, NotGrouped) as error:
        raise NotIncremental(str(error)) from None
    return grouping.rows, grouping, window


class NetLabels(NamedTuple):
    """The labels of what a batch changes."""

    edges: frozenset[int]
    """Of edges between resources."""
    facts: frozenset[int]
    """Of labels and properties of vertices."""
    named: frozenset[int]
    """All of them, and the labels that vertices get or lose."""
    single: bool
    """Whether rows of single edges were written."""


@dataclass
class Net:
    """What a batch changed in all: int64 [triples, 3] each, as (label, subject, object)."""

    removed: Ints
    added: Ints
    edges: Ints
    """Triples of which rows of single edges were written: properties of edges, or parallel ones."""
    type_label: int | None
    """That of the triples that say which labels a vertex has."""

    @classmethod
    def of(cls, noted: Sequence[Changes | None], type_label: int | None) -> Net | None:
        """Add up changes that follow each other; None where some of them is not known."""
        parts: list[Ints] = []
        signs: list[NDArray[np.int8]] = []
        edges = [np.empty((0, 3), np.int64)]
        for changes in noted:
            if changes is None or changes.edges.triples is None:
                return None
            edges.append(changes.edges.triples)
            for rows, sign in ((changes.removed, -1), (changes.added, 1)):
                if len(rows):
                    parts.append(rows)
                    signs.append(np.full(len(rows), sign, np.int8))
        written = distinct(np.concatenate(edges))
        if not parts:
            none = np.empty((0, 3), np.int64)
            return cls(none, none, written, type_label)
        triples, which = np.unique(np.concatenate(parts), axis=0, return_inverse=True)
        balance = np.zeros(len(triples), np.int64)
        np.add.at(balance, which.reshape(-1), np.concatenate(signs))
        return cls(triples[balance < 0], triples[balance > 0], written, type_label)

    def __bool__(self) -> bool:
        return bool(len(self.removed) or len(self.added) or len(self.edges))

    @lazy
    def facts(self) -> Ints:
        """The triples that came or went and are labels or properties."""
        rows = np.concatenate([self.removed, self.added])
        return rows[is_fact(rows, self.type_label)]

    @lazy
    def labels(self) -> NetLabels:
        """The labels of all."""
        edges, facts = (_labels_of(rows) for rows in (np.concatenate(self.sides), self.facts))
        classes = self.facts[self.facts[:, 0] == (-1 if self.type_label is None else self.type_label), 2]
        return NetLabels(edges, facts, edges | facts | {*classes.tolist()}, bool(len(self.edges)))

    @lazy
    def sides(self) -> tuple[Ints, Ints]:
        """The edges between resources that went, and those that came."""
        gone, come = (rows[~is_fact(rows, self.type_label)] for rows in (self.removed, self.added))
        return gone, come


@dataclass
class DeltaQuery:
    """A query that delta plans maintain, over one state of the names."""

    text: str
    bound: BoundPattern
    pattern: PatternGraph
    """Without candidates; its outputs are what rows are made of."""
    counted: bool
    """Whether of matches with the same outputs it asks how many there are."""
    reads: frozenset[int] | None
    """Labels of the triples, beside edges of the pattern, that it reads of a vertex; None for all."""
    names: dict[object, int]
    """What its labels and properties stand for."""
    labels: frozenset[int]
    """All names that there were: edge labels and vertex labels of the graph."""
    predicates: frozenset[int]
    """Those among them of edges and properties: what was a vertex label alone may become one."""

    @classmethod
    def of(
        cls,
        query: ast.Query,
        prepared: Prepared | None,
        snapshot: Snapshot,
        text: str,
        whole: ast.Query | ast.Composite,
    ) -> DeltaQuery:
        """Return a query with what delta plans need; it is all or a part of a ``whole``, that says what is read.

        Raises
        ------
        NotIncremental
            They do not maintain it.
        """
        if prepared is None:
            raise NotIncremental(NO_MATCHES)
        needs, bound = prepared.wanted, prepared.bound
        if needs.duplicates == "drop" or needs.limit is not None:
            raise NotIncremental(NO_MATCHES)
        if prepared.computing is not None or any(made_in_python(column.type) for column in prepared.projection.columns):
            raise NotIncremental("Python computes a part of it")
        if any(info.kinds for info in bound.vertices):
            raise NotIncremental("a vertex of its pattern may be a literal")
        if snapshot.names.with_subclasses:
            raise NotIncremental("labels are read with the classes below them")
        _narrow_edges(bound, snapshot, text)
        alone = is_alone(query)
        joined = {end for edge in bound.edges for end in (edge.source, edge.target)}
        if joined != set(range(len(bound.vertices))) and not alone:
            raise NotIncremental("its pattern has a vertex without edges")
        taken = [label for edge in bound.edges for label in edge.labels or ()]
        if any(closure_of(label) is not None for label in taken):
            raise NotIncremental("an edge of its pattern stands for paths")
        if snapshot.store.type_label in taken:
            raise NotIncremental("its pattern has an edge rdf:type")
        vertices = tuple(PatternVertex(info.name) for info in bound.vertices)
        chooser = Chooser(snapshot, bound, needs)
        asked = sorted({*needs.vertices, *chooser.vertices}), sorted({*needs.edges, *chooser.edges})
        outputs = [vertices[v].name for v in asked[0]] + [bound.edges[e].name for e in asked[1]]
        pattern = PatternGraph(
            vertices,
            tuple(map(_of_known_labels, bound.edges)),
            tuple(bound.clauses),
            tuple(bound.edge_tests),
            tuple(bound.unequal),
            tuple(outputs),
        )
        try:
            if not alone:
                refuse(pattern)
            refuse_induced(pattern, 0, snapshot.store.type_label)
        except NotSupportedError as error:
            raise NotIncremental(error.message) from None
        if bound.choices and is_induced(pattern) and (query is whole or _has_parallel(pattern)):
            raise NotIncremental("INDUCED asks for edges that have properties, or parallel ones")
        names, counted = _resolved(whole, snapshot.names, text), needs.duplicates == "count"
        return cls(
            text,
            bound,
            pattern,
            counted,
            facts_read(whole, snapshot.names, snapshot.store.type_label, text),
            names,
            _known(snapshot.names),
            frozenset(snapshot.names.edge_labels),
        )

    @lazy
    def conditions(self) -> list[Hashable]:
        """By vertex of the pattern, what its candidates are known by; None where all vertices are."""
        found: list[Hashable] = []
        for info in self.bound.vertices:
            own = {ast.Variable(info.name): ast.Variable("")}
            parts = (tuple(info.labels), tuple(info.iris), tuple(replaced(tuple(info.conditions), own)))
            found.append(parts if any(parts) else None)
        return found

    @lazy
    def negates(self) -> bool:
        """Whether a vertex may be a candidate for what it is not or has not."""
        return any(isinstance(part, ast.LabelNot) for info in self.bound.vertices for part in walk(tuple(info.labels)))

    def is_bound_otherwise(self, net: Net) -> bool:
        """Whether a batch may change what its names stand for, or the types of what it returns."""
        labels = net.labels
        known = self.predicates.issuperset(labels.edges) and self.predicates.issuperset(labels.facts)
        return labels.single or self._reads_of(net) or not (known and self.labels.issuperset(labels.named))

    def is_untouched(self, net: Net) -> bool:
        """Whether a batch changes nothing that it reads, nor what its names may stand for."""
        return not (self.ranges or self.is_bound_otherwise(net) or self._binds(net.labels.edges))

    def _reads_of(self, net: Net) -> bool:
        """Whether a batch changes labels or properties that the query reads."""
        return bool(net.labels.facts) if self.reads is None else not self.reads.isdisjoint(net.labels.facts)

    def _binds(self, labels: frozenset[int]) -> bool:
        """Whether edges of some labels may matter to its matches."""
        return bool(labels) if self.edge_labels is None else not labels.isdisjoint(self.edge_labels)

    def goes_on_from(self, former: DeltaQuery) -> bool:
        """Whether its names stand for what they did, but for what came and what is no more.

        Where the first edges became parallel, too, all of its matches may be others.
        """
        edges = zip(former.pattern.edges, self.pattern.edges, strict=True)
        if any(edge.parallel != other.parallel for edge, other in edges):
            return False
        names, predicates = (former.labels, self.labels), (former.predicates, self.predicates)
        pairs = [({former.names.get(name, id)}, {id}, names) for name, id in self.names.items()]
        for edge, other in zip(former.pattern.edges, self.pattern.edges, strict=True):
            if edge.labels is not None and other.labels is not None:
                pairs.append((set(edge.labels), set(other.labels), predicates))
        return all(not (new - old) & were and not (old - new) & are for old, new, (were, are) in pairs)

    def widened(self, former: DeltaQuery) -> DeltaQuery:
        """Return it with what was asked for before, too: the edges of former labels may go with the batch."""
        edges = []
        for edge, other in zip(former.pattern.edges, self.pattern.edges, strict=True):
            both = None if None in (edge.labels, other.labels) else {*(edge.labels or ()), *(other.labels or ())}
            edges.append(other if both is None else replace(other, labels=tuple(sorted(both))))
        elements = [vertex.name for vertex in self.pattern.vertices] + [edge.name for edge in edges]
        outputs = tuple(name for name in elements if name in {*former.pattern.outputs, *self.pattern.outputs})
        return replace(self, pattern=replace(self.pattern, edges=tuple(edges), outputs=outputs))

    @property
    def resolves(self) -> bool:
        """Whether its rows depend on the rows of single edges."""
        return bool(self.bound.choices)

    def read(self, net: Net) -> Ints:
        """Return the vertices of which a batch changes a label or property that the query reads: sorted."""
        if not self._reads_of(net):
            return np.empty(0, np.int64)
        rows = net.facts
        return unique((rows if self.reads is None else rows[np.isin(rows[:, 0], list(self.reads))])[:, 1])

    @property
    def ranges(self) -> bool:
        """Whether its vertex may be any that there is: one without edges, of which no label is asked for."""
        return not self.pattern.edges and not any(map(asks_for_one, self.bound.vertices[0].labels))

    @lazy
    def edge_labels(self) -> tuple[int, ...] | None:
        """Labels of the edges that matter to its matches; None for any edge between resources but ``rdf:type``."""
        found = [None if is_induced(self.pattern) else edge.labels for edge in self.pattern.edges]
        return None if None in found else tuple(sorted({label for labels in found for label in labels or ()}))

    def sides(self, net: Net) -> tuple[Ints, Ints]:
        """Return the edges that a batch takes away and those that it adds, as far as they matter to its matches."""
        if self.edge_labels is None or net.labels.edges.issubset(self.edge_labels):
            return net.sides
        gone, come = (rows[np.isin(rows[:, 0], self.edge_labels)] for rows in net.sides)
        return gone, come

    def written(self, net: Net) -> Ints:
        """Return the edges of which rows of single edges were written, as far as they matter to its matches."""
        rows = net.edges[~is_fact(net.edges, net.type_label)]
        return rows if self.edge_labels is None else rows[np.isin(rows[:, 0], self.edge_labels)]

    def block(self, rows: Ints) -> Block:
        """Return matches as an executor returns them: int64 [matches, outputs], counted ones with their number last."""
        columns = {name: rows[:, column] for column, name in enumerate(self.pattern.outputs)}
        return Block(columns, len(rows), rows[:, -1] if self.counted else None)

    @property
    def columns(self) -> int:
        """How many columns its matches have: see :meth:`block`."""
        return len(self.pattern.outputs) + self.counted


def ends(net: Net) -> Ints:
    """Return the resources that changed triples begin or end at: all that come or go are among them."""
    found = np.concatenate([net.removed, net.added])[:, 1:]
    return unique(found[found < LITERAL_BASE])


def _labels_of(rows: Ints) -> frozenset[int]:
    return frozenset(unique(rows[:, 0]).tolist() if len(rows) > 1 else rows[:, 0].tolist())


def is_fact(rows: Ints, type_label: int | None) -> NDArray[np.bool_]:
    """Return which triples are labels or properties."""
    found: NDArray[np.bool_] = (rows[:, 2] >= LITERAL_BASE) | (rows[:, 0] == (-1 if type_label is None else type_label))
    return found


def asks_for_one(labels: ast.LabelExpression) -> bool:
    """Whether what fulfils a label expression has a label."""
    match labels:
        case ast.LabelNot():
            return False
        case ast.LabelAnd(operands):
            return any(map(asks_for_one, operands))
        case ast.LabelOr(operands):
            return all(map(asks_for_one, operands))
    return True


def _has_parallel(pattern: PatternGraph) -> bool:
    """Whether edges of an INDUCED clause join the same vertices."""
    induced = [edge for edge in pattern.edges if pattern.clauses[edge.clause].mode is ast.MatchMode.INDUCED]
    return len({(edge.clause, frozenset((edge.source, edge.target))) for edge in induced}) < len(induced)


def _of_known_labels(edge: PatternEdge) -> PatternEdge:
    known = None if edge.labels is None else tuple(sorted(each for each in edge.labels if each != ABSENT))
    return replace(edge, labels=known)


def _narrow_edges(bound: BoundPattern, snapshot: Snapshot, text: str) -> None:
    """Leave edges the labels that conditions on their label leave, those among them of which there is no edge yet.

    Raises
    ------
    NotIncremental
        Python computes such a condition.
    """
    every = tuple(label.id for label in snapshot.names.edge_labels.values() if label.iri != RDF_TYPE)
    for number in bound.edge_conditions:
        if bound.edges[number].labels is None:
            bound.edges[number] = replace(bound.edges[number], labels=every)
    try:
        Candidates(snapshot, text, {}).narrow_edges(bound)
    except (NotSupportedError, Beforehand):
        raise NotIncremental("Python computes a condition of it") from None


def _known(names: Names) -> frozenset[int]:
    return frozenset((*names.edge_labels, *names.vertex_labels, *names.hidden))


def _resolved(query: ast.Query | ast.Composite, names: Names, text: str) -> dict[object, int]:
    """Return what the names of labels and properties in a query stand for."""
    found: dict[object, int] = {}
    for piece in walk(query):
        with suppress(BindError):
            match piece:
                case ast.KeyName():
                    found[piece] = names.property(piece.words, text).id
                case ast.LabelChain():
                    for words in names.chains(piece.words):
                        found[ast.LabelChain(tuple(words))] = names.vertex_label(words, text).id
    return found
