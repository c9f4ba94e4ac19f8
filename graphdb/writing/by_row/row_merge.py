"""MERGE row by row: what the rows find is looked for together where no row can find what another has made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from graphdb.common.errors import ExecutionError
from graphdb.evaluate.context import Row
from graphdb.evaluate.values import Edge, Path, Vertex, equals, group_key, is_number
from graphdb.evaluate.view import value_of_facts
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.free import SUBQUERIES, free_variables
from graphdb.writing.by_row.row_reader import RowReader
from graphdb.writing.by_row.row_writer import RowWriter
from graphdb.writing.by_set.merging import MADE, apart, either_way
from graphdb.writing.joining import elements_in
from graphdb.writing.work import Work

Matches = Callable[[ast.PathPattern, Sequence[Row]], list[list[Row]]]
"""Returns what a pattern matches for each of some rows: what it names first."""


class RowMerge:
    """Merges for one statement; ``matches`` reads the graph, and ``reader`` vertices that keys find."""

    def __init__(self, work: Work, writer: RowWriter, reader: RowReader, matches: Matches) -> None:
        self._work = work
        self._reader = reader
        self._writer = writer
        self._matches = matches

    def run(self, clause: ast.MergeClause, rows: list[Row]) -> list[Row]:
        """Run one clause; return its rows, with :data:`~graphdb.writing.by_set.merging.MADE`."""
        self._writer.prepare(clause, rows)
        return self._run(clause, rows) if rows else []

    def are_apart(self, clause: ast.MergeClause, rows: list[Row]) -> bool:
        """Whether no row finds what another has made or set, unless both ask for the same."""
        return len(rows) < 2 or apart(clause, rows[0], _holding(rows), partial(self._keys, rows))

    def _run(self, clause: ast.MergeClause, rows: list[Row]) -> list[Row]:
        asked = self._asked(clause.pattern, rows)
        if not self.are_apart(clause, rows) or any(map(_of_several_kinds, zip(*asked, strict=True))):
            return [new for row in rows for new in self._run(clause, [row])]
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
                    self._writer.set_item(item, match_row)
            if not matches:
                created = self._writer.create((clause.pattern,), row)
                made[key] = created
                for item in clause.on_create:
                    self._writer.set_item(item, created)
                matches = [{**created, MADE: True}]
            result += matches
        return result

    def _found(self, pattern: ast.PathPattern, rows: list[Row]) -> list[list[Row]]:
        """Return the rows that each row's matches make of it."""
        edge = self._one_edge(pattern, rows[0])
        if edge is not None:
            return [self._edges_between(pattern, edge, row) for row in rows]
        vertices = self._one_vertex(pattern, rows)
        if vertices is not None:
            return vertices
        self._writer.flush()
        found = self._matches(pattern, rows)
        return [[{**row, **new} for new in matches] for row, matches in zip(rows, found, strict=True)]

    def _one_vertex(self, pattern: ast.PathPattern, rows: list[Row]) -> list[list[Row]] | None:
        """Return what a pattern of one vertex makes of rows, where keys find it; None where it is for a match."""
        (node, *others), name = pattern.nodes, pattern.nodes[0].variable
        if others or pattern.variable is not None or (name is not None and name.name in rows[0]):
            return None
        found = self._reader.vertices(node, rows)
        if found is None:
            return None
        names = [] if name is None else [name.name]
        return [
            [{**row, **dict.fromkeys(names, vertex)} for vertex in vertices]
            for row, vertices in zip(rows, found, strict=True)
        ]

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
        label = self._work.naming.edge_label(edge.labels)
        items = edge.properties.items if edge.properties is not None else ()
        asked = [(self._work.naming.key(key), self._writer.value(node)(row)) for key, node in items]
        found = []
        for start, end in pairs:
            if not self._writer.pending.there((label, start.id, end.id)):
                continue
            for each in self._work.context.view.parallel(label, start.id, end.id):
                facts = self._work.context.view.edge_facts(each)
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
        value_of, names = self._writer.value(node), set[str]()
        for row in rows:
            value = value_of(row)
            if not isinstance(value, dict):
                return None
            names |= value.keys()
        return names

    def _asked(self, pattern: ast.PathPattern, rows: list[Row]) -> list[list[Any]]:
        """Return the values of properties that each row asks for; refuse to look for null."""
        asked: list[list[Any]] = [[] for _ in rows]
        for element in elements_in(pattern):
            for key, node in element.properties.items if element.properties is not None else ():
                value_of = self._writer.value(node)
                for row, values in zip(rows, asked, strict=True):
                    values.append(value_of(row))
                    if values[-1] is None:
                        raise ExecutionError(
                            f"MERGE cannot look for a null '{key.text}': nothing equals null",
                            text=self._work.context.text,
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
            names = [each.variable.name for each in elements_in(clause.pattern) if each.variable is not None]
            known = [row[name] for name in names if name in row]
        return (*known, *(group_key(value) if equals(value, value) else object() for value in asked))


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
