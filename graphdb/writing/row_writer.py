"""Writing clauses row by row: what is few, and what one row may see of what another has written.

What is written shows in the view at once, and goes to the file together: before the next pattern is matched, before a
clause is applied by sets, and at the end of the statement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from graphdb.common.errors import ExecutionError, TypeMismatchError
from graphdb.common.values.literals import literal_of
from graphdb.evaluate.context import Row
from graphdb.evaluate.evaluator import Evaluate
from graphdb.evaluate.expressions import Compiler
from graphdb.evaluate.values import Edge, Path, Several, Vertex, equals, group_key, is_number, type_name
from graphdb.evaluate.view import Fact, value_of_facts
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.free import SUBQUERIES, free_variables
from graphdb.writing.merging import apart, either_way
from graphdb.writing.naming import key_named
from graphdb.writing.pending import Pending, Triple
from graphdb.writing.work import Work

Matches = Callable[[ast.PathPattern, Sequence[Row]], list[list[Row]]]
"""Returns what a pattern matches for each of some rows: what it names first."""

MADE = "#made"
"""Whether a row of a MERGE made what it asked for, or found it."""


class RowWriter:
    """Writes for one statement; ``matches`` reads for MERGE."""

    def __init__(self, work: Work, matches: Matches) -> None:
        self.context = work.context
        self.view = work.context.view
        self.changes = work.changes
        self._matches = matches
        self._deleting: ast.DeleteClause | None = None
        """The last DELETE, for errors."""
        self._loose = False
        """Whether deleted vertices may have edges still."""
        self._naming = work.naming
        self._pending = Pending(work.context, work.update, work.naming)
        self._compiler = Compiler(work.context)
        self._compiled: dict[int, tuple[object, Evaluate]] = {}

    def value(self, node: ast.Expression) -> Evaluate:
        """Return the function from a row to an expression's value."""
        found = self._compiled.get(id(node))
        if found is None:
            found = self._compiled[id(node)] = node, self._compiler.compile(node)
        return found[1]

    def flush(self) -> None:
        """Write what is waiting to the file."""
        self._pending.flush()

    def run(self, clause: ast.ClauseNode, rows: list[Row]) -> list[Row]:
        """Run one clause; return its rows."""
        for row in rows:
            self.view.expect(row.values())
        self._naming.read(clause)
        match clause:
            case ast.CreateClause():
                self._look_ahead(clause.patterns, rows)
                self._pending.expect(len(rows) * sum(len(pattern.nodes) for pattern in clause.patterns))
                return [self._create(clause.patterns, row) for row in self.context.watched(rows)]
            case ast.MergeClause():
                return self._merge(clause, rows)
            case ast.SetClause():
                self._set(clause.items, rows)
            case ast.RemoveClause():
                self._remove(clause.items, rows)
            case ast.DeleteClause():
                self._delete(clause, rows)
        return rows

    # --- CREATE

    def _look_ahead(self, patterns: tuple[ast.PathPattern, ...], rows: list[Row]) -> None:
        """Ask at once which of the edges between vertices of the rows are there already."""
        wanted: set[Triple] = set()
        for pattern in patterns:
            for i, edge in enumerate(pattern.edges):
                left, right = pattern.nodes[i].variable, pattern.nodes[i + 1].variable
                if not isinstance(edge, ast.EdgePattern) or left is None or right is None:
                    continue
                if rows and left.name in rows[0] and right.name in rows[0]:
                    label = self._naming.edge_label(edge.labels)
                    first, second = (right, left) if edge.direction is ast.Direction.IN else (left, right)
                    for row in rows:
                        start, end = row[first.name], row[second.name]
                        if isinstance(start, Vertex) and isinstance(end, Vertex):
                            wanted.add((label, start.id, end.id))
        self._pending.ask(wanted)

    def _create(self, patterns: tuple[ast.PathPattern, ...], row: Row) -> Row:
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
                raise ExecutionError(
                    f"'{node.variable.name}' is {type_name(value)}, and an edge needs a vertex",
                    text=self.context.text,
                    position=node.variable.span.start,
                )
            return value
        vertex = self._pending.create_vertex()
        self.view.created(vertex.id)
        self.changes.vertices_created += 1
        self._put_labels(vertex, self._naming.labels(node.labels))
        self._put_all(vertex, node, row)
        if node.variable is not None:
            row[node.variable.name] = vertex
        return vertex

    def _create_edge(self, pattern: ast.EdgePattern, start: Vertex, end: Vertex, row: Row) -> Edge:
        self._loose |= bool(self.view.deleted)
        label = self._naming.edge_label(pattern.labels)
        triple = (label, start.id, end.id)
        described = self.view.described(label, (start.id, end.id))
        ordinals = described.get((start.id, end.id))
        if ordinals is None and self._pending.there(triple):
            ordinals = described[start.id, end.id] = {0: {}}
        ordinal = self.view.next_ordinal(*triple, ordinals)
        edge = Edge(*triple, ordinal)
        if ordinals is None and ordinal:
            ordinals = described[start.id, end.id] = {}
        if ordinals is not None:
            ordinals[ordinal] = {}
            self._pending.edges.add(triple)
        self._pending.add(triple)
        self.changes.edges_created += 1
        self._put_all(edge, pattern, row)
        return edge

    def _put_all(self, target: Vertex | Edge, pattern: ast.NodePattern | ast.EdgePattern, row: Row) -> None:
        """Set the properties of a new vertex or edge."""
        if pattern.given is not None:
            given = self.value(pattern.given)(row)
            if not isinstance(given, dict):
                raise TypeMismatchError(
                    f"expected a map of properties, found {type_name(given)}",
                    text=self.context.text,
                    position=pattern.given.span.start,
                )
            for name, value in given.items():
                self._put(target, self._naming.key(key_named(name, pattern.given)), value, pattern.given)
        for key, node in pattern.properties.items if pattern.properties is not None else ():
            self._put(target, self._naming.key(key), self.value(node)(row), node)

    # --- labels and properties

    def _put_labels(self, vertex: Vertex, labels: frozenset[int]) -> None:
        known = self.view.labels(vertex)
        for label in labels - known:
            self._pending.add(self._pending.labelled(vertex, label))
            self.changes.labels_added += 1
        self.view.set_labels(vertex.id, known | labels)

    def _drop_labels(self, vertex: Vertex, labels: frozenset[int]) -> None:
        known = self.view.labels(vertex)
        for label in labels & known:
            self._pending.remove(self._pending.labelled(vertex, label))
            self.changes.labels_removed += 1
        self._pending.keep(vertex)
        self.view.set_labels(vertex.id, known - labels)

    def _put(self, target: Vertex | Edge, key: int, value: Any, node: ast.Expression) -> None:
        """Set one property; null takes it away."""
        values = list(value) if isinstance(value, Several) else [] if value is None else [value]
        facts = []
        for item in values:
            literal = literal_of(item)
            if literal is None:
                raise TypeMismatchError(
                    f"{type_name(item)} cannot be a property"
                    + (" with what is in it" if isinstance(item, list) else ""),
                    text=self.context.text,
                    position=node.span.start,
                )
            facts.append(Fact(item, *literal))
        self._put_facts(target, key, tuple(facts))

    def _put_facts(self, target: Vertex | Edge, key: int, facts: tuple[Fact, ...]) -> None:
        """Set the values of one property; none takes it away."""
        self.changes.properties_set += 1
        if isinstance(target, Vertex):
            self.view.facts(target)
            if not facts:
                self._pending.keep(target)
            self.view.set_facts(target.id, key, facts)
            self._pending.facts.add((target.id, key))
            return
        self.view.edge_facts(target)
        pair = target.start, target.end
        described = self.view.described(target.label, pair).setdefault(pair, {target.ordinal: {}})
        if facts:
            described[target.ordinal][key] = facts
        else:
            described[target.ordinal].pop(key, None)
        self._pending.edges.add((target.label, target.start, target.end))

    def _set(self, items: tuple[ast.SetItem | ast.LabelItem, ...], rows: list[Row]) -> None:
        for row in rows:
            for item in items:
                self._set_item(item, row)

    def _set_item(self, item: ast.SetItem | ast.LabelItem, row: Row) -> None:
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
        known = self.view.facts(target) if isinstance(target, Vertex) else self.view.edge_facts(target)
        if isinstance(value, (Vertex, Edge)):  # its properties as they are written, datatypes and languages too
            found = dict(self.view.facts(value) if isinstance(value, Vertex) else self.view.edge_facts(value))
            for key in [] if item.add else [key for key in known if key not in found]:
                self._put_facts(target, key, ())
            for key, facts in found.items():
                self._put_facts(target, key, facts)
            return
        if not isinstance(value, dict):
            raise TypeMismatchError(
                f"expected a map of properties, found {type_name(value)}",
                text=self.context.text,
                position=item.value.span.start,
            )
        keys = {self._naming.key(key_named(name, item.value)): name for name in value}
        if not item.add:
            for key in [key for key in known if key not in keys]:
                self._put(target, key, None, item.value)
        for key, name in keys.items():
            self._put(target, key, value[name], item.value)

    def _key_of(self, node: ast.Property | ast.Subscript, row: Row) -> int:
        if isinstance(node, ast.Property):
            return self._naming.key(node.key)
        name = self.value(node.index)(row)
        if not isinstance(name, str):
            raise TypeMismatchError(
                f"a key is a string, found {type_name(name)}", text=self.context.text, position=node.index.span.start
            )
        return self._naming.key(key_named(name, node))

    def _target(self, node: ast.Expression, row: Row) -> Vertex | Edge | None:
        value = self._compiler.reference(node)(row)
        if isinstance(value, (Vertex, Edge)):
            self.view.check(value, node)
            return value
        if value is None:
            return None
        raise TypeMismatchError(
            f"expected a vertex or an edge, found {type_name(value)}", text=self.context.text, position=node.span.start
        )

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
            value_of = self._compiler.reference(node)
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
                        raise TypeMismatchError(
                            f"DELETE needs a vertex, an edge or a path, found {type_name(value)}",
                            text=self.context.text,
                            position=node.span.start,
                        )
        gone = [vertex for vertex in vertices if vertex not in self.view.deleted]
        self._loose |= not clause.detach
        if clause.detach and gone:
            self._pending.flush()
            for label, start, end in self._pending.incident(gone):
                edges.update(dict.fromkeys(self.view.parallel(label, start, end)))
        for edge in edges:
            if edge not in self.view.deleted:
                self._delete_edge(edge)
        for vertex in gone:
            self.view.deleted.add(vertex)
            self._pending.gone.add(vertex)
            self.changes.vertices_deleted += 1

    def _delete_edge(self, edge: Edge) -> None:
        triple = (edge.label, edge.start, edge.end)
        described = self.view.described(edge.label, triple[1:])
        ordinals = described.get(triple[1:])
        self.view.deleted.add(edge)
        self.changes.edges_deleted += 1
        if ordinals is not None:
            ordinals.pop(edge.ordinal, None)
            self._pending.edges.add(triple)
            if ordinals:
                return
            del described[triple[1:]]
        self._pending.remove(triple)

    # --- MERGE

    def _merge(self, clause: ast.MergeClause, rows: list[Row]) -> list[Row]:
        if not rows:
            return []
        asked = self._asked(clause.pattern, rows)
        alone = len(rows) < 2 or apart(clause, rows[0], _holding(rows), partial(self._keys, rows))
        if not alone or any(map(_of_several_kinds, zip(*asked, strict=True))):
            return [new for row in rows for new in self._merge(clause, [row])]
        found = self._found(clause.pattern, rows)
        made: dict[Any, Row] = {}
        result = []
        for row, matches, values in zip(rows, found, asked, strict=True):
            key = None
            if not matches:
                key = self._merge_key(clause, row, values)
                if key in made:
                    new = made[key]
                    matches = [{**row, **{name: value for name, value in new.items() if name not in row}}]
            for match_row in matches:
                match_row[MADE] = False
                for item in clause.on_match:
                    self._set_item(item, match_row)
            if not matches:
                created = self._create((clause.pattern,), row)
                made[key] = created
                for item in clause.on_create:
                    self._set_item(item, created)
                matches = [{**created, MADE: True}]
            result += matches
        return result

    def _found(self, pattern: ast.PathPattern, rows: list[Row]) -> list[list[Row]]:
        """Return the rows that each row's matches make of it."""
        edge = self._one_edge(pattern, rows[0])
        if edge is not None:
            return [self._edges_between(pattern, edge, row) for row in rows]
        self.flush()
        found = self._matches(pattern, rows)
        return [[{**row, **new} for new in matches] for row, matches in zip(rows, found, strict=True)]

    def _one_edge(self, pattern: ast.PathPattern, row: Row) -> ast.EdgePattern | None:
        """Return the one edge that a pattern looks for, between vertices that are known: that needs no match."""
        ends = [node.variable for node in pattern.nodes]
        if len(pattern.edges) != 1 or any(end is None or end.name not in row for end in ends):
            return None
        if any(node.labels is not None or node.properties is not None for node in pattern.nodes):
            return None
        (edge,) = pattern.edges
        known = not isinstance(edge, ast.EdgePattern) or (edge.variable is not None and edge.variable.name in row)
        return None if known or not isinstance(edge, ast.EdgePattern) else edge

    def _edges_between(self, pattern: ast.PathPattern, edge: ast.EdgePattern, row: Row) -> list[Row]:
        """Return a row for each edge between two known vertices that is as a pattern says."""
        left, right = (row[node.variable.name] for node in pattern.nodes if node.variable is not None)
        if not isinstance(left, Vertex) or not isinstance(right, Vertex):
            return []
        pairs = {
            ast.Direction.OUT: [(left, right)],
            ast.Direction.IN: [(right, left)],
            ast.Direction.BOTH: list(dict.fromkeys([(left, right), (right, left)])),
        }[edge.direction]
        label = self._naming.edge_label(edge.labels)
        items = edge.properties.items if edge.properties is not None else ()
        asked = [(self._naming.key(key), self.value(node)(row)) for key, node in items]
        found = []
        for start, end in pairs:
            if not self._pending.there((label, start.id, end.id)):
                continue
            for each in self.view.parallel(label, start.id, end.id):
                facts = self.view.edge_facts(each)
                if all(equals(value_of_facts(facts.get(key)), value) is True for key, value in asked):
                    new = dict(row)
                    if edge.variable is not None:
                        new[edge.variable.name] = each
                    if pattern.variable is not None:
                        new[pattern.variable.name] = Path((left, right), (each,))
                    found.append(new)
        return found

    def _keys(self, rows: list[Row], node: ast.Expression) -> set[str] | None:
        """Return the keys of the maps that an expression yields for some rows; None where it yields something else."""
        if not free_variables(node) <= rows[0].keys() or any(isinstance(part, SUBQUERIES) for part in walk(node)):
            return None
        value_of, names = self.value(node), set[str]()
        for row in rows:
            value = value_of(row)
            if not isinstance(value, dict):
                return None
            names |= value.keys()
        return names

    def _elements(self, pattern: ast.PathPattern) -> list[ast.NodePattern | ast.EdgePattern]:
        return [*pattern.nodes, *(edge for edge in pattern.edges if isinstance(edge, ast.EdgePattern))]

    def _asked(self, pattern: ast.PathPattern, rows: list[Row]) -> list[list[Any]]:
        """Return the values of properties that each row asks for; refuse to look for null."""
        asked: list[list[Any]] = [[] for _ in rows]
        for element in self._elements(pattern):
            for key, node in element.properties.items if element.properties is not None else ():
                value_of = self.value(node)
                for row, values in zip(rows, asked, strict=True):
                    values.append(value_of(row))
                    if values[-1] is None:
                        raise ExecutionError(
                            f"MERGE cannot look for a null '{key.text}': nothing equals null",
                            text=self.context.text,
                            position=key.span.start,
                        )
        return asked

    def _merge_key(self, clause: ast.MergeClause, row: Row, asked: list[Any]) -> Any:
        """What makes two rows ask for the same thing: the vertices that they know, and the values of properties.

        A value that does not equal itself (NaN) is never found: nothing is the same as what asks for it.
        """
        ends = either_way(clause, row)
        if ends is not None:
            known: list[Any] = [frozenset(row[name] for name in ends)]
        else:
            names = [each.variable.name for each in self._elements(clause.pattern) if each.variable is not None]
            known = [row[name] for name in names if name in row]
        return (*known, *(group_key(value) if equals(value, value) else object() for value in asked))

    def finish(self) -> None:
        """Write what is left.

        Raises
        ------
        ExecutionError
            A deleted vertex still has edges.
        """
        self._pending.flush()
        deleted = [vertex for vertex in self.view.deleted if isinstance(vertex, Vertex)]
        if deleted and self._loose and (left := self._pending.incident(deleted)):
            raise edges_left(
                len(left), self.context.text, None if self._deleting is None else self._deleting.span.start
            )


def edges_left(count: int, text: str, position: int | None) -> ExecutionError:
    """Return the error of a statement that deletes vertices and not all of their edges."""
    return ExecutionError(
        f"a deleted vertex still has {count} edge{'s' if count > 1 else ''}",
        text=text,
        position=position,
        hint="delete them too, or write DETACH DELETE",
    )


def _of_several_kinds(values: Iterable[Any]) -> bool:
    """Whether some are numbers of different types, which equal others than those that are grouped with them."""
    return len({type(value) for value in values if is_number(value)}) > 1


def _holding(rows: list[Row]) -> set[str]:
    """Return the names of what may hold vertices or edges."""
    return {name for row in rows for name, value in row.items() if _holds(value)}


def _holds(value: Any) -> bool:
    match value:
        case list():
            return any(map(_holds, value))
        case dict():
            return any(map(_holds, value.values()))
    return isinstance(value, (Vertex, Edge, Path))
