"""What paths go along that take chosen edges only, or are patterns of several parts: found set-wise, before the search.

Which data edges one edge of the pattern takes (its labels, properties and conditions, and what is asked of its two
ends) is a pattern of one edge, which is planned and run as any other.  A path along one repeated edge then goes along
those.  For several parts the edges of each are put together in the product of the data graph with the pattern's
automaton (:mod:`graphdb.relational.paths.product_automaton`).  Where a condition looks at several edges of a part, all
of its edges are one pattern, and those that match together stay together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common.errors import NotSupportedError
from graphdb.grammar import syntax as ast
from graphdb.pattern.bind import BoundPattern, bind
from graphdb.pattern.free import free_variables
from graphdb.pattern.graph import Wanted
from graphdb.pattern.lengths import all_hold
from graphdb.pattern.pieces import Piece, conditions_on, names_of
from graphdb.plan.paths import Along
from graphdb.relational.edges.parallel_edges import settle
from graphdb.relational.paths.base import PathBase, code_of
from graphdb.relational.paths.product_automaton import BEGIN, Edges, Fragment, Mask, Product
from graphdb.relational.projection.relation import Source
from graphdb.sql.from_clause import Parameters
from graphdb.storage.graph.pcsr import Partition, partition_of

Ids = NDArray[np.int64]

_BYTES = 64
"""What an edge of a product takes of memory, while it is made."""
_LEFT, _EDGE, _RIGHT = "#left", "#edge", "#right"
_ONWARD = ast.Direction.OUT


class AlongRun(PathBase):
    """Finds what paths go along."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._found_along: dict[ast.PathPattern, Along | None] = {}

    def _along_of(self, path: ast.PathPattern, pieces: Sequence[Piece]) -> Along | None:
        """Return what a path goes along; None where that is all edges of its one part's labels, each a triple.

        Raises
        ------
        NotSupportedError
            What is asked of an edge needs more than it and its ends; the path goes to literals.
        """
        if path not in self._found_along:
            self._found_along[path] = self._chosen(path, pieces)
        return self._found_along[path]

    def _chosen(self, path: ast.PathPattern, pieces: Sequence[Piece]) -> Along | None:
        parallel = self._snapshot.edges.parallel
        every = [self._labels_of(edge) for piece in pieces for edge in piece.every_edge()]
        several = any(parallel if labels is None else parallel.intersection(labels) for labels in every)
        alone = len(pieces) == 1 and pieces[0].simple and pieces[0].group
        if alone and pieces[0].bare and not several:
            return None
        graph = self._snapshot.graph
        words = " ".join(self._text[path.nodes[0].span.end : path.nodes[-1].span.start].split())
        if alone and (direction_of(pieces) is not ast.Direction.BOTH or not _asks_ends(pieces[0])):
            edges = self._taken(pieces[0], 0)
            return Along(*_both_ways(edges, graph.vertices, graph.dtype), f"{words} of {self._number(len(edges))}")
        product = Product(graph.vertices, self._bindings_bytes // _BYTES)
        whole = BEGIN
        for number, piece in enumerate(pieces):
            mask = self._mask(path.nodes[number + 1]) if number + 1 < len(pieces) else None
            whole = product.joined(whole, self._repeated(product, number, piece).between(None, mask))
        product.finish(whole)
        edges = product.edges
        nodes = (len(product.pieces) + 1) * graph.vertices
        dtype = graph.dtype if nodes < np.iinfo(graph.dtype).max else np.int64
        words = f"{words}, in {len(product.pieces)} states of {self._number(len(edges))}"
        return Along(*_both_ways(edges, nodes, dtype), words, tuple(product.pieces), len(pieces) - 1)

    def _number(self, edges: int) -> str:
        return f"{edges:,} edges" if self.left_out is None else "the edges that match"

    def _repeated(self, product: Product, number: int, piece: Piece) -> Fragment:
        """Write a part as often as it comes; ``number`` is that of the path's part that it is, or is in."""
        once = self._once(piece)
        if piece.low == piece.high == 1:
            return once(product, number)
        copies = max(piece.low, 1) if piece.high is None else piece.high
        firsts: Sequence[Edges] = ()
        before: Sequence[tuple[int, Mask]] = ()
        lasts: list[tuple[int, Mask]] = []
        for copy in range(copies):
            one = once(product, number)
            if one.skips:
                raise NotSupportedError("a repeated part of a path that may be nothing is not supported in SQL")
            product.follow(before, one.firsts)
            if piece.high is None and copy == copies - 1:
                product.follow(one.lasts, one.firsts)
            if copy + 1 >= piece.low:
                lasts += one.lasts
            firsts, before = firsts or one.firsts, one.lasts
        return Fragment(firsts, lasts, piece.low == 0)

    def _once(self, piece: Piece) -> Callable[[Product, int], Fragment]:
        """Return what writes a part once: its edges, found already, each after the one before it."""
        if piece.entwined:
            vertices, codes = self._chains(piece)
            return lambda product, number: product.chain(number, vertices, codes)
        writers: list[Callable[[Product, int], Fragment]] = []
        for at, edge in enumerate(piece.edges):
            if isinstance(edge, ast.EdgePattern):
                writers.append(partial(_edge, self._taken(piece, at)))
            else:
                writers.append(
                    partial(self._within, edge, self._mask(piece.nodes[at]), self._mask(piece.nodes[at + 1]))
                )

        def write(product: Product, number: int) -> Fragment:
            first, *others = (writer(product, number) for writer in writers)
            return reduce(product.joined, others, first)

        return write

    def _within(self, piece: Piece, left: Mask, right: Mask, product: Product, number: int) -> Fragment:
        return self._repeated(product, number, piece).between(left, right)

    def _chains(self, piece: Piece) -> tuple[list[Ids], list[Ids]]:
        """Run the pattern of all edges of a part together: the vertices and the codes of each match."""
        nodes = [
            node if node.variable else replace(node, variable=ast.Variable(f"#at{i}", node.span))
            for i, node in enumerate(piece.nodes)
        ]
        plain = [edge for edge in piece.edges if isinstance(edge, ast.EdgePattern)]
        edges = [
            replace(edge, variable=edge.variable or ast.Variable(f"#edge{i}", edge.span), repeat=None)
            for i, edge in enumerate(plain)
        ]
        where = all_hold([*chain(*piece.where), *piece.across], plain[0].span)
        names = names_of(*nodes)
        bound = self._alone(tuple(nodes), tuple(edges), where, [*names, *names_of(*edges)])
        places = [bound.vertex_of[name] for name in names]
        numbers = [bound.edge_of[name] for name in names_of(*edges)]
        needs = Wanted(tuple(sorted({*places})), tuple(sorted(numbers)), False, None)
        columns = {f"at{i}": f"b.v{place}" for i, place in enumerate(places)}
        columns |= {f"code{i}": code_of(bound, e, names[i]) for i, e in enumerate(numbers)}
        found = self._columns_of(bound, needs, columns)
        return [found[f"at{i}"] for i in range(len(places))], [found[f"code{i}"] for i in range(len(numbers))]

    def _taken(self, piece: Piece, at: int) -> Edges:
        """Run the pattern of one edge of a part."""
        left, edge, right = piece.nodes[at], piece.edges[at], piece.nodes[at + 1]
        assert isinstance(edge, ast.EdgePattern)
        left = left if left.variable else replace(left, variable=ast.Variable(_LEFT, left.span))
        right = right if right.variable else replace(right, variable=ast.Variable(_RIGHT, right.span))
        edge = replace(edge, variable=edge.variable or ast.Variable(_EDGE, edge.span), repeat=None)
        names = [part.variable.name for part in (left, edge, right) if part.variable is not None]
        where = all_hold(piece.where[at], edge.span)
        bound = self._alone((left, right), (edge,), where, names)
        if any(vertex.kinds for vertex in bound.vertices):
            raise NotSupportedError("paths to literals are not supported in SQL")
        source, target = (bound.vertex_of[name] for name in (names[0], names[2]))
        needs = Wanted(tuple(sorted({source, target})), (0,), False, None)
        columns = {"s": f"b.v{source}", "t": f"b.v{target}", "code": code_of(bound, 0, names[0])}
        found = self._columns_of(bound, needs, columns)
        return Edges(found["s"], found["t"], found["code"])

    def _mask(self, node: ast.NodePattern) -> Mask:
        """Return which vertices a node between two parts may be; None for any."""
        if not conditions_on(node):
            return None
        name = _LEFT if node.variable is None else node.variable.name
        bound = self._alone((replace(node, variable=ast.Variable(name, node.span)),), (), None, [name])
        found = self._columns_of(bound, Wanted((0,), (), False, None), {"id": "b.v0"})["id"]
        if self.left_out is not None:
            return None
        mask = np.zeros(self._snapshot.graph.vertices, bool)
        mask[self._snapshot.store.to_vertices(found)] = True
        return mask

    def _alone(
        self,
        nodes: tuple[ast.NodePattern, ...],
        edges: tuple[ast.EdgePattern, ...],
        where: ast.Expression | None,
        names: Sequence[str],
    ) -> BoundPattern:
        """Bind a piece of a path as a pattern of its own."""
        pattern = ast.PathPattern(nodes, edges, nodes[0].span)
        if not free_variables((pattern, where)) <= {*names}:
            raise NotSupportedError("conditions within a searched path on what is outside it are not supported in SQL")
        clause = ast.MatchClause((pattern,), ast.MatchMode.REPEATABLE_ELEMENTS, where, nodes[0].span)
        bound = bind((clause,), self._snapshot.names, self._text)
        settle(self._snapshot, self._text, self._arguments, bound)
        return bound

    def _columns_of(self, bound: BoundPattern, needs: Wanted, columns: dict[str, str]) -> dict[str, Ids]:
        """Run a pattern and return columns of its bindings."""
        parameters, view = Parameters(), self._snapshot.connection.temporary()
        sql = self._shaper(bound, Source.of(view), parameters=parameters).relation(lambda _: columns)
        with self._bindings(self._planned(bound, needs), needs, bound, view):
            found = self._snapshot.connection.columns(sql, parameters.used(sql))
        return {name: np.asarray(values, np.int64) for name, values in found.items()}

    def _labels_of(self, edge: ast.EdgePattern) -> tuple[int, ...] | None:
        """Return the edge labels that an edge may take; None for any."""
        node = ast.NodePattern(span=edge.span)
        plain = ast.EdgePattern(edge.direction, None, edge.labels, span=edge.span)
        clause = ast.MatchClause((ast.PathPattern((node, node), (plain,), edge.span),), span=edge.span)
        labels = bind((clause,), self._snapshot.names, self._text).edges[0].labels
        known = self._snapshot.names.edge_labels
        if any(known[label].kinds for label in labels or () if label in known):
            raise NotSupportedError("paths to literals are not supported in SQL")
        return labels

    def _labels_along(self, pieces: Sequence[Piece]) -> tuple[int, ...] | None:
        """Return the edge labels that a path may take; None for any."""
        found = [self._labels_of(edge) for piece in pieces for edge in piece.every_edge()]
        every = [labels for labels in found if labels is not None]
        return None if len(every) < len(found) else tuple(sorted({label for labels in every for label in labels}))


def _both_ways(edges: Edges, vertices: int, dtype: type[np.signedinteger[Any]]) -> tuple[Partition, Partition]:
    """Return partitions there and back."""
    there = partition_of(edges.left, edges.right, edges.codes, vertices, dtype)
    return there, partition_of(edges.right, edges.left, edges.codes ^ 1, vertices, dtype)


def direction_of(pieces: Sequence[Piece]) -> ast.Direction:
    """Return how a path of one edge is written; of several, that it is no one's way back."""
    edge = pieces[0].edges[0]
    return edge.direction if len(pieces) == 1 and isinstance(edge, ast.EdgePattern) and pieces[0].simple else _ONWARD


def _edge(edges: Edges, product: Product, number: int) -> Fragment:
    return product.edge(number, edges)


def _asks_ends(piece: Piece) -> bool:
    """Whether it matters at which end of an edge a path comes to it."""
    return any(map(conditions_on, piece.nodes)) or any(piece.where)
