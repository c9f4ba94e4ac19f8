"""The edges of path patterns that are more than all edges of some labels, as steps: see
:mod:`graphdb.relational.path_patterns.edges`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain

from graphdb.common.errors import TypeMismatchError
from graphdb.common.values.types import INTEGER, NUMERIC, Base
from graphdb.grammar import syntax as ast
from graphdb.pattern.bind import BoundPattern, bind
from graphdb.pattern.free import free_variables
from graphdb.pattern.graph import Wanted
from graphdb.pattern.paths.lengths import all_hold
from graphdb.pattern.paths.pieces import Piece, conditions_on, names_of
from graphdb.relational.costed_edges import DataEdges, Key, key_of
from graphdb.relational.edges.parallel_edges import resolve_edges
from graphdb.relational.lowering.subqueries.calls import Calls
from graphdb.relational.path_patterns.edges import Part, Pattern, Table
from graphdb.relational.path_patterns.step import asks_ends, code_of, direction_of
from graphdb.relational.program import AnyStep, Joined, Rows, Step
from graphdb.relational.projection.relation import VALUE, bindings_of
from graphdb.relational.vectors import algebra as vectors
from graphdb.sql.value import SqlValue, column, number

_LEFT, _EDGE, _RIGHT = "#left", "#edge", "#right"


class PathEdges(Calls):
    """Adds the steps that find the edges of a path's parts."""

    def _edges_of(self, path: ast.PathPattern, pieces: Sequence[Piece]) -> tuple[Pattern, bool, DataEdges | None]:
        """Add the steps of the edges of a path; return what they find, and whether that has several parts.

        What the edges of one part are found again by comes with them, where the data alone says which they are.
        """
        first = len(self._steps)
        parts = tuple(map(self._part_of, pieces))
        between = tuple(map(self._vertices_at, path.nodes[1:-1]))
        alone = len(pieces) == 1 and pieces[0].simple and pieces[0].group
        several = not alone or (direction_of(pieces) is ast.Direction.BOTH and asks_ends(pieces[0]))
        found = Pattern(parts, between)
        if several:
            return found, several, None
        (piece,), (table,) = pieces, parts[0].edges
        (edge,) = piece.edges
        assert isinstance(edge, ast.EdgePattern)
        assert isinstance(table, Table)
        key = key_of(ast.PathPattern(piece.nodes, (edge,), path.span), piece.where[0], None)
        key = key and (key[0], (*key[1:], "there and back"))
        return found, several, self._of_data(key, self._steps[first:], table)

    def _costed(self, path: ast.PathPattern, piece: Piece) -> tuple[Pattern, bool, DataEdges | None]:
        """Add the steps of the edges of a path and of their costs; return what they find, and if costs are integers.

        What they are found again by comes with them, where the data alone says what they are.

        Raises
        ------
        TypeMismatchError
            A cost is no number.
        """
        assert path.cost is not None
        (edge,), (left, right) = piece.edges, piece.nodes
        assert isinstance(edge, ast.EdgePattern)
        first = len(self._steps)
        left, right = (
            node if node.variable else replace(node, variable=ast.Variable(name, node.span))
            for node, name in ((left, _LEFT), (right, _RIGHT))
        )
        edge = replace(edge, variable=edge.variable or ast.Variable(_EDGE, edge.span), repeat=None)
        bound = self._bound_alone([left, right], [edge], piece.where[0], path.cost.expression)
        source, target = (bound.vertex_of[name] for name in names_of(left, right))
        needs = Wanted(tuple(sorted({source, target})), (0,), False, None)
        columns = _ends(source, target) | {"#code": code_of(bound, 0, names_of(left)[0])}
        view = self._bindings_view()
        relation = bindings_of(bound, self._snapshot.edges, view)
        self._add_match("edges of a path", view, bound, needs)
        one = ast.PathPattern((left, right), (edge,), piece.nodes[0].span)
        key = key_of(one, piece.where[0], path.cost.expression)
        if key is None:
            self._steps[-1] = self._found_again(self._steps[-1], one, piece.where[0])
        rows = replace(relation, variables={**relation.variables, **columns})
        keep = {*columns, *free_variables((path.cost.expression, relation.where))}
        rows = self._with_subqueries(rows, (path.cost.expression,), keep)
        sql, found = self._projecting(rows).select(columns, path.cost.expression)
        value = found.variables[VALUE]
        several = value.type.base is Base.VALUE
        if value.type.base not in NUMERIC and value.type.base is not Base.NULL and not several:
            position = path.cost.expression.span.start
            raise TypeMismatchError("the cost of an edge is no number", text=self._text, position=position)
        cost, ends = number(value) if several else value.sql, ", ".join(f"b.c{i}" for i in range(len(columns)))
        tests = f"CAST({value.sql} IS NULL AS TINYINT), CAST({cost} IS NULL AS TINYINT)"
        chosen = f"SELECT {ends}, coalesce(CAST({cost} AS DOUBLE), 0), {tests} FROM ({sql}) b"
        made = found.source.rows
        assert made is None or isinstance(made, vectors.Clause)
        table = Table(chosen, self._parameters.used(sql), found.source.reads, made=made)
        of_data = self._of_data(key, self._steps[first:], table)
        return Pattern((Part(piece.low, piece.high, (table,), ()),), ()), value.type.base is Base.INTEGER, of_data

    def _of_data(self, key: Key | None, steps: Sequence[AnyStep], table: Table) -> DataEdges | None:
        """Return how edges are found again by a key; None where the steps that find them go on from others."""
        views = frozenset(step.view for step in steps)
        reads = table.reads.union(*(step.reads for step in steps))
        if key is None or not reads <= views or not all(isinstance(step, Step | Rows | Joined) for step in steps):
            return None
        return None if self._snapshot.deleted is not None else DataEdges(key, views)

    def _found_again(self, step: AnyStep, pattern: ast.PathPattern, where: Sequence[ast.Expression]) -> AnyStep:
        """Return the step of a pattern of one edge with what its bindings are found again by, if the data says them."""
        assert isinstance(step, Step)
        if key_of(pattern, where, None) is None or step.given or self._snapshot.deleted is not None:
            return step
        properties = sorted({key for choice in step.bound.choices.values() for key in choice.facts.values()})
        return replace(step, found_by=(pattern, (where, tuple(properties))))

    def _part_of(self, piece: Piece) -> Part:
        if piece.entwined:
            return Part(piece.low, piece.high, (self._chain(piece),), (), len(piece.edges))
        edges = tuple(
            self._part_of(edge) if isinstance(edge, Piece) else self._edge(piece, at, edge)
            for at, edge in enumerate(piece.edges)
        )
        nodes = map(self._vertices_at, piece.nodes) if piece.nested else (None for _ in piece.nodes)
        return Part(piece.low, piece.high, edges, tuple(nodes))

    def _chain(self, piece: Piece) -> Table:
        """Match all edges of a part together."""
        nodes = [
            node if node.variable else replace(node, variable=ast.Variable(f"#at{i}", node.span))
            for i, node in enumerate(piece.nodes)
        ]
        plain = [edge for edge in piece.edges if isinstance(edge, ast.EdgePattern)]
        edges = [
            replace(edge, variable=edge.variable or ast.Variable(f"#edge{i}", edge.span), repeat=None)
            for i, edge in enumerate(plain)
        ]
        bound = self._bound_alone(nodes, edges, [*chain(*piece.where), *piece.across])
        names = names_of(*nodes)
        places = [bound.vertex_of[name] for name in names]
        numbers = [bound.edge_of[name] for name in names_of(*edges)]
        needs = Wanted(tuple(sorted({*places})), tuple(sorted(numbers)), False, None)
        columns = {f"#at {i}": column(f"v{place}", INTEGER) for i, place in enumerate(places)}
        columns |= {f"#code {i}": code_of(bound, e, names[i]) for i, e in enumerate(numbers)}
        return self._found(bound, needs, columns)

    def _edge(self, piece: Piece, at: int, edge: ast.EdgePattern) -> Table:
        """Match one edge of a part."""
        left, right = piece.nodes[at], piece.nodes[at + 1]
        left = left if left.variable else replace(left, variable=ast.Variable(_LEFT, left.span))
        right = right if right.variable else replace(right, variable=ast.Variable(_RIGHT, right.span))
        edge = replace(edge, variable=edge.variable or ast.Variable(_EDGE, edge.span), repeat=None)
        bound = self._bound_alone([left, right], [edge], piece.where[at])
        source, target = (bound.vertex_of[name] for name in names_of(left, right))
        needs = Wanted(tuple(sorted({source, target})), (0,), False, None)
        columns = _ends(source, target) | {"#code": code_of(bound, 0, names_of(left)[0])}
        labels = bound.edges[0].labels
        known = self._snapshot.names.edge_labels.keys() if labels is None else labels
        most = sum(self._snapshot.store.statistics(label).triples for label in known)
        return self._found(bound, needs, columns, most if bound.edges[0].directed else 2 * most)

    def _vertices_at(self, node: ast.NodePattern) -> Table | None:
        """Match what is said of a node between two parts; None where that is nothing."""
        if not conditions_on(node):
            return None
        node = replace(node, variable=node.variable or ast.Variable(_LEFT, node.span))
        return self._found(
            self._bound_alone([node], [], ()), Wanted((0,), (), False, None), {"#id": column("v0", INTEGER)}
        )

    def _bound_alone(
        self,
        nodes: Sequence[ast.NodePattern],
        edges: Sequence[ast.EdgePattern],
        where: Sequence[ast.Expression],
        asked: ast.Expression | None = None,
    ) -> BoundPattern:
        """Bind a piece of a path as a pattern of its own; ``asked`` is what is asked of it."""
        pattern = ast.PathPattern(tuple(nodes), tuple(edges), nodes[0].span)
        condition = all_hold(where, nodes[0].span)
        clause = ast.MatchClause((pattern,), ast.MatchMode.REPEATABLE_ELEMENTS, condition, nodes[0].span)
        bound = bind((clause,), self._snapshot.names, self._text)
        resolve_edges(self._snapshot, self._text, self._arguments, bound, () if asked is None else asked)
        return bound

    def _found(self, bound: BoundPattern, needs: Wanted, columns: Mapping[str, SqlValue], most: int = 0) -> Table:
        """Add the step of a pattern; return the rows of its bindings with some columns."""
        view = self._bindings_view()
        relation = bindings_of(bound, self._snapshot.edges, view)
        self._add_match("edges of a path", view, bound, needs)
        rows = replace(relation, variables={**relation.variables, **columns})
        sql, found = self._projecting(self._filtered(rows, columns)).select(columns)
        chosen = ", ".join(f"c{i}" for i in range(len(columns)))  # what is known of the edges' properties is there, too
        return Table(f"SELECT {chosen} FROM ({sql})", self._parameters.used(sql), found.source.reads, most)


def _ends(source: int, target: int) -> dict[str, SqlValue]:
    """Return the ends of an edge as columns of its bindings."""
    return {"#s": column(f"v{source}", INTEGER), "#t": column(f"v{target}", INTEGER)}
