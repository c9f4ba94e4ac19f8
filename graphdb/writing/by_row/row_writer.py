"""Writing clauses row by row: what is few, and what one row may see of what another has written.

What is written shows in the view at once, and goes to the file together: before the next pattern is matched, before a
clause is applied by sets, and at the end of the statement.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from graphdb.common.caches import ByIdentity
from graphdb.common.errors import ExecutionError
from graphdb.common.values.decimals import fits
from graphdb.common.values.literals import literal_of
from graphdb.common.values.terms import XSD
from graphdb.evaluate.calls import wrong
from graphdb.evaluate.context import Row
from graphdb.evaluate.kept import CompiledValues
from graphdb.evaluate.values import Edge, Path, Several, Vertex, type_name
from graphdb.evaluate.view import Fact
from graphdb.grammar import syntax as ast
from graphdb.pattern.free import free_variables
from graphdb.writing.by_row.pending import Pending, Triple
from graphdb.writing.joining import elements_of
from graphdb.writing.naming import key_named
from graphdb.writing.work import Work

_INTEGER = XSD + "integer"


class RowWriter:
    """Writes for one statement."""

    def __init__(self, work: Work, values: CompiledValues) -> None:
        self.context = work.context
        self.view = work.context.view
        self.changes = work.changes
        self._deleting: ast.DeleteClause | None = None
        """The last DELETE, for errors."""
        self._naming = work.naming
        self.pending = Pending(work.context, work.update, work.naming)
        self.value = values.value
        """Returns the function from a row to an expression's value."""
        self._reference = values.reference

    def flush(self) -> None:
        """Write what is waiting to the file."""
        self.pending.flush()

    def run(self, clause: ast.ClauseNode, rows: list[Row]) -> list[Row]:
        """Run one clause but MERGE (:mod:`.row_merge`); return its rows."""
        self.prepare(clause, rows)
        match clause:
            case ast.CreateClause():
                says = _SAYS.get_or_make(clause, lambda: _said(clause))
                self._look_ahead(says, rows)
                bound: set[str] = set(rows[0]) if rows else set()
                self.pending.expect(len(rows) * (len(says.names - bound) + says.nameless))
                return [self.create(clause.patterns, row) for row in self.context.watched(rows)]
            case ast.SetClause():
                self._set(clause.items, rows)
            case ast.RemoveClause():
                self._remove(clause.items, rows)
            case ast.DeleteClause():
                self._delete(clause, rows)
        return rows

    def prepare(self, clause: ast.ClauseNode, rows: list[Row]) -> None:
        """Read ahead what a clause needs of its rows, and number the names that it makes."""
        names = _READ.get_or_make(clause, lambda: _read_by(clause))
        for row in rows if names else ():
            self.view.expect([row[name] for name in names if name in row])
        self._naming.read(clause)

    # --- CREATE

    def _look_ahead(self, says: _Says, rows: list[Row]) -> None:
        """Ask at once which of the edges between vertices of the rows are there already."""
        wanted: set[Triple] = set()
        for edge, first, second in says.between if rows else ():
            if first in rows[0] and second in rows[0]:
                label = self._naming.edge_label(edge.labels)
                for row in rows:
                    start, end = row[first], row[second]
                    if isinstance(start, Vertex) and isinstance(end, Vertex):
                        wanted.add((label, start.id, end.id))
        if wanted:
            self.pending.ask(wanted)

    def create(self, patterns: tuple[ast.PathPattern, ...], row: Row) -> Row:
        """Make what some patterns say for a row; return it with what was made."""
        row = dict(row)
        for pattern in patterns:
            self._create_path(pattern, row)
        return row

    def _create_path(self, pattern: ast.PathPattern, row: Row) -> None:
        vertices = [self._create_vertex(node, row) for node in pattern.nodes]
        edges = []
        for i, edge in enumerate(pattern.edges):
            assert isinstance(edge, ast.EdgePattern)
            start, end = vertices[i], vertices[i + 1]
            if edge.direction is ast.Direction.IN:
                start, end = end, start
            edges.append(self._create_edge(edge, start, end, row))
            if edge.variable is not None:
                row[edge.variable.name] = edges[-1]
        if pattern.variable is not None:
            row[pattern.variable.name] = Path(tuple(vertices), tuple(edges))

    def _create_vertex(self, node: ast.NodePattern, row: Row) -> Vertex:
        if node.variable is not None and node.variable.name in row:
            value = row[node.variable.name]
            if not isinstance(value, Vertex):
                message = f"'{node.variable.name}' is {type_name(value)}, and an edge needs a vertex"
                raise wrong(self.context, node.variable, message, ExecutionError)
            return value
        if node.iri is None:
            vertex = self.pending.create_vertex()
            self.view.created(vertex.id)
            self.changes.vertices_created += 1
        else:  # it may be there, and has what is said of it from now on
            self.changes.vertices_created += self.context.resource(node.iri.iri) is None
            vertex = self.pending.named_vertex(node.iri.iri)
        self._put_labels(vertex, self._naming.labels(node.labels))
        self._put_all(vertex, node, row)
        if node.variable is not None:
            row[node.variable.name] = vertex
        return vertex

    def _create_edge(self, pattern: ast.EdgePattern, start: Vertex, end: Vertex, row: Row) -> Edge:
        self.pending.loose |= bool(self.view.deleted)
        label, pair = self._naming.edge_label(pattern.labels), (start.id, end.id)
        triple = (label, *pair)
        there = self.pending.there(triple)
        if not there:
            self.view.undescribed(label, pair)
        described = self.view.described(label, pair)
        ordinals = described.get(pair)
        if ordinals is None and there:
            ordinals = described[pair] = {0: {}}
        ordinal = self.view.next_ordinal(*triple, ordinals) if ordinals or self.view.deleted else 0
        edge = Edge(label, start.id, end.id, ordinal)
        if ordinals is None and ordinal:
            ordinals = described[pair] = {}
        if ordinals is not None:
            ordinals[ordinal] = {}
            self.pending.edges.add(triple)
        self.pending.add(triple)
        self.changes.edges_created += 1
        self._put_all(edge, pattern, row)
        return edge

    def _put_all(self, target: Vertex | Edge, pattern: ast.NodePattern | ast.EdgePattern, row: Row) -> None:
        """Set the properties of a new vertex or edge."""
        if pattern.given is not None:
            given = self.value(pattern.given)(row)
            if not isinstance(given, dict):
                raise wrong(self.context, pattern.given, f"expected a map of properties, found {type_name(given)}")
            for name, value in given.items():
                self._put(target, self._naming.key(key_named(name, pattern.given)), value, pattern.given)
        for key, node in pattern.properties.items if pattern.properties is not None else ():
            self._put(target, self._naming.key(key), self.value(node)(row), node)

    # --- labels and properties

    def _put_labels(self, vertex: Vertex, labels: frozenset[int]) -> None:
        known = self.view.labels(vertex)
        for label in labels - known:
            self.pending.add(self.pending.labelled(vertex, label))
            self.changes.labels_added += 1
        self.view.set_labels(vertex.id, known | labels)

    def _drop_labels(self, vertex: Vertex, labels: frozenset[int]) -> None:
        known = self.view.labels(vertex)
        for label in labels & known:
            self.pending.remove(self.pending.labelled(vertex, label))
            self.changes.labels_removed += 1
        self.pending.keep(vertex)
        self.view.set_labels(vertex.id, known - labels)

    def _put(self, target: Vertex | Edge, key: int, value: Any, node: ast.Expression) -> None:
        """Set one property; null takes it away."""
        kind = value.__class__
        if kind is str:
            self._put_facts(target, key, (Fact(value, value, None),))
            return
        if kind is int:
            self._put_facts(target, key, (Fact(value, str(value), _INTEGER),))
            return
        values = list(value) if kind is Several else [] if value is None else [value]
        facts = []
        for item in values:
            if isinstance(item, Decimal) and not fits(item):  # what it would be read as
                item = float(item)
            literal = literal_of(item)
            if literal is None:
                inside = " with what is in it" if isinstance(item, list) else ""
                raise wrong(self.context, node, f"{type_name(item)} cannot be a property{inside}")
            facts.append(Fact(item, *literal))
        self._put_facts(target, key, tuple(facts))

    def _put_facts(self, target: Vertex | Edge, key: int, facts: tuple[Fact, ...]) -> None:
        """Set the values of one property; none takes it away."""
        self.changes.properties_set += 1
        if isinstance(target, Vertex):
            if not facts:
                self.pending.keep(target)
            self.view.set_facts(target.id, key, facts)
            self.pending.facts.add((target.id, key))
            return
        self.view.edge_facts(target)
        pair = target.start, target.end
        described = self.view.described(target.label, pair).setdefault(pair, {target.ordinal: {}})
        if facts:
            described[target.ordinal][key] = facts
        else:
            described[target.ordinal].pop(key, None)
        self.pending.edges.add((target.label, target.start, target.end))

    def _set(self, items: tuple[ast.SetItem | ast.LabelItem, ...], rows: list[Row]) -> None:
        for row in rows:
            for item in items:
                self.set_item(item, row)

    def set_item(self, item: ast.SetItem | ast.LabelItem, row: Row) -> None:
        """Set what an item says of a row."""
        if isinstance(item, ast.LabelItem):
            target = self._target(item.target, row)
            if isinstance(target, Vertex):
                self._put_labels(target, self._naming.labels(item.labels))
            return
        value = self.value(item.value)(row)
        if isinstance(item.target, (ast.Property, ast.Subscript)):
            target = self._target(item.target.base, row)
            if target is not None:
                self._put(target, self._key_of(item.target, row), value, item.value)
            return
        target = self._target(item.target, row)
        if target is None:
            return
        if isinstance(value, (Vertex, Edge)):  # its properties as they are written, datatypes and languages too
            found = dict(self._facts_of(value))
            for key in [] if item.add else [key for key in self._facts_of(target) if key not in found]:
                self._put_facts(target, key, ())
            for key, facts in found.items():
                self._put_facts(target, key, facts)
            return
        if not isinstance(value, dict):
            raise wrong(self.context, item.value, f"expected a map of properties, found {type_name(value)}")
        written = _PLAIN_KEYS.get_or_make(item, lambda: {key.text: key for key in _plain_keys(item.value)})
        keys = {self._naming.key(written.get(name) or key_named(name, item.value)): name for name in value}
        if not item.add:
            for key in [key for key in self._facts_of(target) if key not in keys]:
                self._put(target, key, None, item.value)
        for key, name in keys.items():
            self._put(target, key, value[name], item.value)

    def _facts_of(self, element: Vertex | Edge) -> dict[int, tuple[Fact, ...]]:
        return self.view.facts(element) if isinstance(element, Vertex) else self.view.edge_facts(element)

    def _key_of(self, node: ast.Property | ast.Subscript, row: Row) -> int:
        if isinstance(node, ast.Property):
            return self._naming.key(node.key)
        name = self.value(node.index)(row)
        if not isinstance(name, str):
            raise wrong(self.context, node.index, f"a key is a string, found {type_name(name)}")
        return self._naming.key(key_named(name, node))

    def _target(self, node: ast.Expression, row: Row) -> Vertex | Edge | None:
        value = self._reference(node)(row)
        if isinstance(value, (Vertex, Edge)):
            self.view.check(value, node)
            return value
        if value is None:
            return None
        raise wrong(self.context, node, f"expected a vertex or an edge, found {type_name(value)}")

    def _remove(self, items: tuple[ast.Expression | ast.LabelItem, ...], rows: list[Row]) -> None:
        for row in rows:
            for item in items:
                if isinstance(item, ast.LabelItem):
                    target = self._target(item.target, row)
                    if isinstance(target, Vertex):
                        self._drop_labels(target, self._naming.labels(item.labels))
                elif isinstance(item, (ast.Property, ast.Subscript)):
                    target = self._target(item.base, row)
                    if target is not None:
                        self._put(target, self._key_of(item, row), None, item)

    # --- DELETE

    def _delete(self, clause: ast.DeleteClause, rows: list[Row]) -> None:
        vertices: dict[Vertex, None] = {}
        edges: dict[Edge, None] = {}
        self._deleting = clause
        for node in clause.values:
            value_of = self._reference(node)
            for row in rows:
                value = value_of(row)
                match value:
                    case Vertex():
                        vertices[value] = None
                    case Edge():
                        edges[value] = None
                    case Path():
                        vertices.update(dict.fromkeys(value.vertices))
                        edges.update(dict.fromkeys(value.edges))
                    case None:
                        pass
                    case _:
                        message = f"DELETE needs a vertex, an edge or a path, found {type_name(value)}"
                        raise wrong(self.context, node, message)
        gone = [vertex for vertex in vertices if vertex not in self.view.deleted]
        self.pending.loose |= not clause.detach
        if clause.detach and gone:
            self.pending.flush()
            incident = self.pending.incident(gone)
            self.view.expect_edges(incident)
            for label, start, end in incident:
                edges.update(dict.fromkeys(self.view.parallel(label, start, end)))
        for edge in edges:
            if edge not in self.view.deleted:
                self._delete_edge(edge)
        for vertex in gone:
            self.view.deleted.add(vertex)
            self.pending.gone.add(vertex)
            self.changes.vertices_deleted += 1

    def _delete_edge(self, edge: Edge) -> None:
        triple = (edge.label, edge.start, edge.end)
        self.view.leaves(edge)
        described = self.view.described(edge.label, triple[1:])
        ordinals = described.get(triple[1:])
        self.view.deleted.add(edge)
        self.changes.edges_deleted += 1
        if ordinals is not None:
            ordinals.pop(edge.ordinal, None)
            self.pending.edges.add(triple)
            if ordinals:
                return
            del described[triple[1:]]
        self.pending.remove(triple)

    def finish(self) -> None:
        """Write what is left.

        Raises
        ------
        ExecutionError
            A deleted vertex still has edges.
        """
        self.pending.flush()
        deleted = [vertex for vertex in self.view.deleted if isinstance(vertex, Vertex)]
        if deleted and self.pending.loose and (left := self.pending.incident(deleted)):
            raise edges_left(
                len(left), self.context.text, None if self._deleting is None else self._deleting.span.start
            )


def _plain_keys(node: ast.Expression) -> list[ast.KeyName]:
    """Return the keys of a map that is written out, where they are single words."""
    items = node.items if isinstance(node, ast.MapLiteral) else ()
    return [key for key, _ in items if len(key.words) == 1 and not key.words[0].is_iri]


_PLAIN_KEYS: ByIdentity[dict[str, ast.KeyName]] = ByIdentity(256)
"""What :func:`_plain_keys` says of items of SET, by their text."""


@dataclass(frozen=True, slots=True)
class _Says:
    """What the text of a CREATE says of the rows that it is applied to."""

    between: tuple[tuple[ast.EdgePattern, str, str], ...]
    """Edges with the variables of both their ends, in the direction in which they are made."""
    names: frozenset[str]
    """The variables of vertices."""
    nameless: int
    """How many vertices have none."""


_SAYS: ByIdentity[_Says] = ByIdentity(256)
"""What :func:`_said` finds in clauses."""


def _said(clause: ast.CreateClause) -> _Says:
    nodes = [node for pattern in clause.patterns for node in pattern.nodes]
    between = []
    for pattern in clause.patterns:
        for edge, *ends in zip(pattern.edges, pattern.nodes, pattern.nodes[1:], strict=False):
            named = [node.variable.name for node in ends if node.variable is not None]
            if isinstance(edge, ast.EdgePattern) and len(named) == len(ends):
                first, second = reversed(named) if edge.direction is ast.Direction.IN else named
                between.append((edge, first, second))
    names = [node.variable.name for node in nodes if node.variable is not None]
    return _Says(tuple(between), frozenset(names), len(nodes) - len(names))


_READ: ByIdentity[tuple[str, ...]] = ByIdentity(256)
"""What :func:`_read_by` says of clauses."""


def _read_by(clause: ast.ClauseNode) -> tuple[str, ...]:
    """Return the variables of whose values a clause may read labels or properties: CREATE only in what it sets."""
    if isinstance(clause, ast.CreateClause):
        parts = [part for each in elements_of(clause) for part in (each.properties, each.given)]
        return tuple(sorted(free_variables(tuple(parts))))
    return tuple(sorted(free_variables(clause)))


def edges_left(count: int, text: str, position: int | None) -> ExecutionError:
    """Return the error of a statement that deletes vertices and not all of their edges."""
    return ExecutionError(
        f"a deleted vertex still has {count} edge{'s' if count > 1 else ''}",
        text=text,
        position=position,
        hint="delete them too, or write DETACH DELETE",
    )
