"""Candidate sets before the match: labels and constants by the data graph, property predicates by SQL.

Every condition on a single vertex becomes a sorted array of data vertices here; the executor sees arrays only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.arrow import numbers
from graphdb.common.errors import GraphDBError
from graphdb.common.stopping import check_stop, checked
from graphdb.common.values.elements import Node
from graphdb.common.values.terms import RDF_TYPE, Kind
from graphdb.common.values.types import EDGE, EXACT_ONLY, NODE, TERM, Base, Type, type_of_kinds
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.bind import BoundPattern, VertexInfo
from graphdb.pattern.graph import PatternVertex
from graphdb.relational.filtering.column_filters import (
    Compared,
    asked_constant,
    column_tests,
    fulfilling,
    having,
    unchanged,
)
from graphdb.relational.filtering.reach import reachable
from graphdb.relational.filtering.strict_conditions import asks_presence, by_property
from graphdb.relational.snapshot import Snapshot
from graphdb.sql.compiler import Compiler, Scope
from graphdb.sql.computing import Beforehand
from graphdb.sql.constants import from_numpy
from graphdb.sql.expressions import MOST_OPERANDS, ExpressionCompiler
from graphdb.sql.from_clause import Rows
from graphdb.sql.parameters import Parameters
from graphdb.sql.value import SqlValue, column
from graphdb.storage.arrays.sorted_sets import both, each_once, either, unique, without
from graphdb.storage.catalog import EdgeLabel
from graphdb.storage.graph.derived.closure import closure_of

Ids = NDArray[np.int64]
Item = TypeVar("Item")

_REMEMBERED = 100_000
"""IRIs whose ids are remembered."""

_SAID = 5
"""Labels below another one that EXPLAIN names."""

_BROAD = 50_000
"""Values of a property beyond which a condition on it is tested near other candidates, where these are few."""

_NEAR = 8
"""They are few if there is one for so many values."""


_UNKNOWN = object()
"""In the place of a value that is not known before the match."""


def variable(vertex: VertexInfo, name: str, rows: str = "b") -> SqlValue:
    """Return what a pattern vertex, which is a column of rows, is in an expression: a vertex, a literal, or either."""
    if not vertex.kinds:
        return column(name, NODE, rows)
    if vertex.resource:
        return column(name, TERM, rows)
    if vertex.kinds & EXACT_ONLY:
        return column(name, Type(TERM.base, exact=True), rows)
    type = Type(TERM.base, type_of_kinds(vertex.kinds), unique=vertex.kinds == 1 << Kind.STRING)
    return column(name, type, rows)


def batched(conditions: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """Yield conditions, as many at a time as one SQL statement may have."""
    for begin in range(0, len(conditions), MOST_OPERANDS):
        check_stop()
        yield conditions[begin : begin + MOST_OPERANDS]


class Candidates:
    """Finds the candidate sets of one statement's pattern vertices.

    Patterns that must match around one are none of them: these run with the query.
    """

    def __init__(self, snapshot: Snapshot, text: str, arguments: Mapping[str, object]) -> None:
        self._snapshot = snapshot
        self._text = text
        self._arguments = arguments

    def vertices(self, bound: BoundPattern) -> tuple[PatternVertex, ...]:
        """Return the pattern's vertices with their candidate sets; edges keep the labels that conditions leave them."""
        self.narrow_edges(bound)
        self._look_up([constant for info in bound.vertices for constant in info.iris])
        found: dict[int, PatternVertex] = {}
        broad = [number for number, info in enumerate(bound.vertices) if self._is_broad(info)] if bound.edges else []
        for number in range(len(bound.vertices)):
            if number not in broad:
                found[number] = self._vertex(bound, number)
        for number in broad:
            known = [found[i].candidates if i in found else None for i in range(len(bound.vertices))]
            found[number] = self._vertex(bound, number, known)
        return tuple(found[number] for number in range(len(bound.vertices)))

    def narrow_edges(self, bound: BoundPattern) -> None:
        """Leave edges the labels that the conditions on their label leave them."""
        for number, conditions in bound.edge_conditions.items():
            self._narrow(bound, number, conditions)

    def of_each(self, bound: BoundPattern) -> tuple[PatternVertex, ...]:
        """Return the vertices with all candidates that the conditions on each leave, whatever edges there are.

        All of them are resources at the ends of edges, none of the pattern's among them where there are others.
        """
        self._look_up([constant for info in bound.vertices for constant in info.iris])
        alone = replace(bound, vertices=[replace(info, resources_only=False) for info in bound.vertices], edges=[])
        return tuple(self._vertex(alone, number) for number in range(len(bound.vertices)))

    def among(self, bound: BoundPattern, ids: Ids) -> list[Ids | None]:
        """Return, by vertex of a pattern, which of some sorted resources fulfil its conditions; None without any.

        They are those of :meth:`of_each` among these.
        """
        self._look_up([constant for info in bound.vertices for constant in info.iris])
        return [
            self._among(bound, number, ids) if info.labels or info.iris or info.conditions else None
            for number, info in enumerate(bound.vertices)
        ]

    def may_lack_all(self, bound: BoundPattern) -> bool:
        """Whether a vertex without any label and property may be a candidate for its conditions, or seems to be."""
        return any(by_property(info, self._arguments)[1] for info in bound.vertices)

    def _among(self, bound: BoundPattern, number: int, ids: Ids) -> Ids:
        info = bound.vertices[number]
        for found in (*map(self._members, info.labels), *map(self._constant, info.iris)):
            ids = both(ids, found)
        for conditions in batched(info.conditions):
            if len(ids):
                ids = self._by_sql(bound, number, conditions, ids)
        return ids

    def named(self, constant: ast.Expression) -> Ids:
        """Return the one vertex that a constant names, or none."""
        self._look_up([constant])
        return self._constant(constant)

    def _is_broad(self, info: VertexInfo) -> bool:
        """Whether testing a vertex's conditions takes going through the values of very many, without an index."""
        if all(isinstance(each, ast.Comparison) and each.operators == ("=",) for each in info.conditions):
            return False
        return any(self._values(key) > _BROAD for key in by_property(info, self._arguments)[0])

    def _values(self, key: ast.KeyName) -> int:
        """Return how many values a property has; 0 for one that is not gathered."""
        label = self._snapshot.names.property(key.words, self._text)
        return label.triples if label.kinds and self._snapshot.properties.in_memory(label) else 0

    def _vertex(self, bound: BoundPattern, number: int, others_found: Sequence[Ids | None] = ()) -> PatternVertex:
        """Return a pattern vertex; where the candidates of others are found, it may be tested near these alone."""
        info = bound.vertices[number]
        if not (info.labels or info.iris or info.conditions or info.exists or info.resources_only):
            return PatternVertex(info.name)
        sets = [self._members(labels) for labels in info.labels]
        sets += [self._constant(constant) for constant in info.iris]
        known = reduce(both, sets) if sets else None
        grouped, others = by_property(info, self._arguments)
        compared: list[Compared] = []
        there: list[EdgeLabel] = []
        fewest = 0  # values of a property that is tested near other candidates
        for key, conditions in grouped.items():
            label = self._snapshot.names.property(key.words, self._text)
            conditions = [condition for condition in conditions if not self._by_index(info, key, condition, sets)]
            if label.kinds and any(map(asks_presence, conditions)):
                there.append(label)
                conditions = [condition for condition in conditions if not asks_presence(condition)]
            tests = {c: column_tests(self._snapshot, self._arguments, info.name, label, key, c) for c in conditions}
            if own := [test for found in tests.values() for test in found or ()]:
                compared.append((label, own))
            conditions = [condition for condition, found in tests.items() if found is None]
            if conditions and not self._in_sql(key):
                others += conditions
                continue
            near = None
            if others_found and tests and (values := self._values(key)) > _BROAD:
                fewest = min(fewest or values, values)
                near = self._near(bound, number, others_found, values) if conditions else None
            sets += [self._by_property(info, key, some, near) for some in batched(conditions)]
        if compared:
            near = self._near(bound, number, others_found, fewest) if fewest else None
            sets.append(fulfilling(self._snapshot, compared, near))
        alone = not any(number in (edge.source, edge.target) for edge in bound.edges)
        if known is None and (info.resources_only or (alone and others)):
            known = self._snapshot.graph.universe()
            sets.append(known)
        sets += [self._by_sql(bound, number, some, known) for some in batched(others)]
        ids = reduce(both, sorted(sets, key=len)) if sets else None
        for label in there:
            ids = having(self._snapshot, label, ids)
        return PatternVertex(
            info.name,
            ids,
            self._words(info),
            labels=tuple(sorted({label for labels in info.labels for label in self._certain(labels)})),
        )

    def _near(self, bound: BoundPattern, number: int, found: Sequence[Ids | None], values: int) -> Ids | None:
        """Return what a vertex may be by what others are, where that is far fewer than a property has values."""
        return reachable(self._snapshot.graph, bound.edges, found, number, values // _NEAR)

    def _narrow(self, bound: BoundPattern, number: int, conditions: list[ast.Expression]) -> None:
        """Leave an edge the labels that fulfil the conditions on its label: there are few, and SQL tests each once."""
        edge, known = bound.edges[number], self._snapshot.names.edge_labels
        admitted = edge.labels
        if admitted is None:  # any edge between resources but rdf:type
            admitted = tuple(label.id for label in known.values() if label.resource_triples and label.iri != RDF_TYPE)
        parameters = Parameters()
        rows = self._rows(parameters)
        scope = Scope({edge.name: SqlValue("u", EDGE)})
        compiler = ExpressionCompiler(
            self._text, self._snapshot.names, self._arguments, rows, scope, self._snapshot.computing
        )
        where = " AND ".join(compiler.filter(condition) for condition in conditions)
        with self._snapshot.connection.view("_graphdb_labels", {"label": np.array(admitted, np.int64)}):
            sql = f"SELECT u.label AS label FROM _graphdb_labels u {rows.joins} WHERE {where}"
            left = self._snapshot.connection.columns(sql, parameters.used(sql))["label"]
        labels = tuple(sorted(map(int, left)))
        if edge.labels is None and any(known[label].kinds for label in labels):
            for end in (edge.source, edge.target):
                bound.vertices[end].resources_only = True
        bound.edges[number] = replace(edge, labels=labels)

    # --- labels and constants

    def _members(self, labels: ast.LabelExpression) -> Ids:
        """Vertices with a label expression, sorted."""
        names, graph = self._snapshot.names, self._snapshot.graph
        match labels:
            case ast.LabelChain():
                found = [names.vertex_label(name, self._text) for name in names.chains(labels.words)]
                return reduce(both, [self._of_class(label.id) for label in found])
            case ast.LabelAnd():
                return reduce(both, map(self._members, labels.operands))
            case ast.LabelOr():
                return reduce(either, map(self._members, checked(labels.operands, 16)))
            case ast.LabelNot():
                return without(graph.universe(), self._members(labels.operand))
            case ast.LabelAny():
                every = [graph.members(label) for label in names.vertex_labels]
                return reduce(either, every) if every else np.empty(0, np.int64)

    def _of_class(self, label: int) -> Ids:
        """Vertices with a label or, where subclasses are read, one below it, sorted."""
        under = [self._snapshot.graph.members(each) for each in self._snapshot.names.under(label)]
        return under[0] if len(under) == 1 else unique(np.concatenate(under))

    def _certain(self, labels: ast.LabelExpression) -> list[int]:
        """Labels that every vertex with this expression has."""
        names = self._snapshot.names
        match labels:
            case ast.LabelChain():
                found = [names.vertex_label(name, self._text).id for name in names.chains(labels.words)]
                return [label for label in found if len(names.under(label)) == 1]
            case ast.LabelAnd():
                return [label for operand in labels.operands for label in self._certain(operand)]
        return []

    def _constant(self, constant: ast.Expression) -> Ids:
        """The one vertex that a constant names, or none."""
        iri = self._iri_of(constant)
        found = self._snapshot.ids.get(iri) if iri is not None else None
        return np.empty(0, np.int64) if found is None else np.array([found], np.int64)

    def _look_up(self, constants: list[ast.Expression]) -> None:
        """Find the ids of all constants at once, and remember them."""
        known = self._snapshot.ids
        missing = {iri for iri in map(self._iri_of, constants) if iri is not None and iri not in known}
        if not missing:
            return
        if len(known) > _REMEMBERED:
            known.clear()
        known.update(dict.fromkeys(missing))
        known.update(self._snapshot.lookup.ids(missing))

    def _iri_of(self, constant: ast.Expression) -> str | None:
        value: object = None
        match constant:
            case ast.IriLiteral():
                value = constant.iri
            case ast.Literal():
                value = constant.value
            case ast.Parameter():
                value = self._arguments[constant.name]
        value = value.iri if isinstance(value, Node) else value
        return value if isinstance(value, str) else None

    # --- conditions

    def _by_index(self, info: VertexInfo, key: ast.KeyName, condition: ast.Expression, sets: list[Ids]) -> bool:
        """Add the vertices whose property is one of some constants to ``sets``; False where no index tells which."""
        asked = asked_constant(info.name, condition)
        label = self._snapshot.names.property(key.words, self._text)
        if asked is None or not self._snapshot.keys.tells(label):
            return False
        _, given, listed = asked
        value = self._value(given)
        found = value if listed else [value]
        if value is _UNKNOWN or not isinstance(found, (list, tuple)):
            return False
        ids = self._snapshot.keys.find(label, found)
        if ids is not None:
            sets.append(self._as_vertices(ids))
        return ids is not None

    def _value(self, given: ast.Expression) -> object:
        """Return the value of a constant: None of a parameter without one, which others report."""
        match given:
            case ast.Literal():
                return given.value
            case ast.Parameter():
                return from_numpy(self._arguments.get(given.name))
            case ast.ListLiteral(items) if all(isinstance(item, ast.Literal | ast.Parameter) for item in items):
                return [self._value(item) for item in items]
        return self._computed(given)

    def _computed(self, given: ast.Expression) -> object:
        """Return the value of a constant expression by SQL; :data:`_UNKNOWN` where it has to wait for the match."""
        parameters = Parameters()
        rows = self._rows(parameters)
        compiler = ExpressionCompiler(self._text, self._snapshot.names, self._arguments, rows, Scope({}))
        try:
            value = compiler.native(given)
        except GraphDBError:  # whoever tests the condition says what is wrong, where something is
            return _UNKNOWN
        plain = value.type.element if value.type.base is Base.LIST else value.type
        if plain is None or plain.base not in (Base.INTEGER, Base.STRING) or value.many or rows.joins:
            return _UNKNOWN
        if value.effects.raises or value.volatile or value.subquery:
            return _UNKNOWN
        sql = f"SELECT TRY({value.sql}) AS value"
        ((found,),) = self._snapshot.connection.rows(sql, parameters.used(sql))
        return _UNKNOWN if found is None else found

    def _in_sql(self, key: ast.KeyName) -> bool:
        """Whether SQL has a type for the values of a property, as they are now."""
        kinds = self._snapshot.names.property(key.words, self._text).kinds
        return kinds <= 0 or not kinds & EXACT_ONLY

    def _by_property(
        self, info: VertexInfo, key: ast.KeyName, conditions: Sequence[ast.Expression], near: Ids | None = None
    ) -> Ids:
        """Vertices, of those ``near`` if it is given, whose value of one property fulfils conditions that need it."""
        names = self._snapshot.names
        label = names.property(key.words, self._text)
        if not label.kinds:
            return np.empty(0, np.int64)
        parameters = Parameters(self._snapshot.connection.temporary)
        rows = self._rows(parameters)
        found = self._snapshot.properties.column(label)
        value = column("value", found.type, "p", found.many, self._snapshot.properties.bases_of(label))
        known: dict[ast.Expression, SqlValue] = {ast.Property(ast.Variable(info.name), key): value}
        scope = Scope({info.name: column("subject", NODE, "p")}, known)
        compiler = ExpressionCompiler(self._text, names, self._arguments, rows, scope, self._snapshot.computing)
        test = _tested(compiler, conditions)
        tested = f"p {rows.joins} WHERE ({test.where})"
        view = self._snapshot.connection.temporary()
        if near is None:
            array = None if rows.joins or "p.subject" in test.where else unchanged(self._snapshot, label)
            if array is None:
                sql = f"SELECT p.subject AS id{test.failed} FROM {found.relation} {tested}"
                return self._ids(sql, parameters, test)
            # Each value is tested once, whoever has it, and without a table of DuckDB's.
            values = arrow.table({"place": np.arange(len(array.values)), "value": array.values})
            with self._snapshot.connection.view(view, values):
                sql = f"SELECT p.place AS id{test.failed} FROM {view} {tested} AND p.value IS NOT NULL"
                standing = self._columns(sql, parameters, test)
            return self._as_vertices(array.standing_at(standing))
        ids = numbers(self._snapshot.store.to_terms(near))
        values = arrow.table({"subject": ids, "value": self._snapshot.properties.gather(label, ids)})
        with self._snapshot.connection.view(view, values):
            return self._ids(f"SELECT p.subject AS id{test.failed} FROM {view} {tested}", parameters, test)

    def _by_sql(self, bound: BoundPattern, number: int, conditions: Sequence[ast.Expression], known: Ids | None) -> Ids:
        """Vertices that fulfil any other conditions, tested over all that the vertex could be."""
        info = bound.vertices[number]
        parameters = Parameters(self._snapshot.connection.temporary)
        rows = self._rows(parameters)
        scope = Scope({info.name: variable(info, "id", "u")})
        compiler = ExpressionCompiler(
            self._text, self._snapshot.names, self._arguments, rows, scope, self._snapshot.computing
        )
        test = _tested(compiler, conditions)
        everything = self._everything(bound, number) if known is None else None
        with self._snapshot.connection.view(
            "_graphdb_universe", {"id": known if known is not None else np.empty(0, np.int64)}
        ):
            source = everything or "_graphdb_universe"
            sql = f"SELECT u.id AS id{test.failed} FROM {source} u {rows.joins} WHERE {test.where}"
            return self._ids(sql, parameters, test)

    def _everything(self, bound: BoundPattern, number: int) -> str:
        """Return a relation of all terms that the vertex's edges admit: the ends of its rarest label, or all."""
        best: tuple[int, str] | None = None
        for edge in bound.edges:
            if edge.labels is None or not edge.directed or number not in (edge.source, edge.target):
                continue
            closures = {label: closure_of(label) for label in edge.labels}
            if any(closure is not None and not closure.low for closure in closures.values()):
                continue  # which has no edge at all where both ends are one vertex
            admitted = [label if closure is None else closure.label for label, closure in closures.items()]
            triples = sum(self._snapshot.store.statistics(label).triples for label in admitted)
            end = "subject" if edge.source == number else "object"
            labels = ", ".join(str(int(label)) for label in admitted) or "NULL"
            if best is None or triples < best[0]:
                best = (triples, f"(SELECT DISTINCT {end} AS id FROM _graphdb.triple WHERE label IN ({labels}))")
        if best is not None:
            return best[1]
        resources = "SELECT id FROM _graphdb.resource"
        return (
            f"({resources} UNION ALL SELECT id FROM _graphdb.literal)"
            if bound.vertices[number].kinds
            else f"({resources})"
        )

    def _rows(self, parameters: Parameters) -> Rows:
        return self._snapshot.rows(parameters, self._text, self._arguments)

    def _ids(self, sql: str, parameters: Parameters, test: _Test) -> Ids:
        return self._as_vertices(np.asarray(self._columns(sql, parameters, test), np.int64))

    def _columns(self, sql: str, parameters: Parameters, test: _Test) -> NDArray[Any]:
        """Return the column ``id`` of the rows that pass a test."""
        with parameters.views(self._snapshot.connection):
            columns = self._snapshot.connection.columns(sql, parameters.used(sql))
        for number, condition in enumerate(test.failing):
            if columns[f"failed{number}"].any():
                raise Beforehand(condition)
        return columns["id"]

    def _as_vertices(self, terms: Ids) -> Ids:
        """Return the vertices of terms that were read, each once and sorted."""
        store = self._snapshot.store
        store.ids.term(terms, "id")
        return each_once(store.to_vertices(terms), self._snapshot.graph.vertices)

    # --- words for EXPLAIN

    def _words(self, info: VertexInfo) -> str:
        parts = [self._source(labels) + self._below(labels) for labels in info.labels]
        parts += [f"= {self._source(constant)}" for constant in info.iris]
        parts += [self._source(condition) for condition in info.conditions]
        parts += [self._source(predicate) for predicate in info.exists]
        return ", ".join(parts)

    def _below(self, labels: ast.LabelExpression) -> str:
        """Say which labels are read too, because they are below those that are written."""
        names = self._snapshot.names
        chains = [part for part in walk(labels) if isinstance(part, ast.LabelChain)]
        written = [names.vertex_label(name, self._text).id for part in chains for name in names.chains(part.words)]
        below = sorted({names.class_name(each) for label in written for each in names.under(label)[1:]})
        more = f", {len(below) - _SAID} more" if len(below) > _SAID else ""
        return f" (and below: {', '.join(below[:_SAID])}{more})" if below else ""

    def _source(self, node: ast.Expression | ast.LabelExpression) -> str:
        return " ".join(self._text[node.span.start : node.span.end].split())


@dataclass(frozen=True, slots=True)
class _Test:
    """Whether vertices fulfil conditions, in SQL that fails for none of them."""

    where: str
    failed: str
    """Columns that say of those which pass whether a condition could not be computed."""
    failing: Sequence[ast.Expression]
    """These conditions: if one was not, it is tested after the match, of what the match comes to."""


def _tested(compiler: Compiler, conditions: Sequence[ast.Expression]) -> _Test:
    """Return the SQL of a vertex's conditions; one that some types of values fail at is tested after the match."""
    tests, failed = [], ""
    failing: list[ast.Expression] = []
    for condition in conditions:
        sql, effects = compiler.collected(lambda condition=condition: compiler.filter(condition))  # type: ignore[misc]
        if compiler.rows.noted.mistaken:
            raise Beforehand(condition)
        if effects.can_fail and not (effects.raises or effects.volatile or effects.subquery):
            tried = f"TRY(coalesce({sql}, FALSE))"
            failed += f", {tried} IS NULL AS failed{len(failing)}"
            failing.append(condition)
            sql = f"{tried} IS NOT FALSE"
        tests.append(sql)
    return _Test(" AND ".join(tests), failed, failing)
