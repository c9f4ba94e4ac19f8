"""What paths go along that take chosen edges only, or are patterns of several parts: found set-wise, before the search.

Which data edges one edge of the pattern takes (its labels, properties and conditions, and what is asked of its two
ends) is a pattern of one edge, which is planned and run as any other.  A path along one repeated edge then goes along
those.  For several parts the edges of each are put together in the product of the data graph with the pattern's
automaton (Glushkov 1961: a state for each edge that the pattern names, repetitions written out).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.choices import settle
from graphdb.errors import NotSupportedError
from graphdb.grammar import syntax as ast
from graphdb.paths.base import PathBase, code_of
from graphdb.pattern.bind import BoundPattern, bind
from graphdb.pattern.free import free_variables
from graphdb.pattern.graph import Wanted
from graphdb.pattern.lengths import all_hold
from graphdb.pattern.pieces import Piece, conditions_on
from graphdb.plan.paths import Along
from graphdb.rows import Parameters
from graphdb.storage.pcsr import Partition, partition_of

Ids = NDArray[np.int64]
Mask = NDArray[np.bool_]

_BYTES = 64
"""What an edge of a product takes of memory, while it is made."""
_LEFT, _EDGE, _RIGHT = "#left", "#edge", "#right"


@dataclass(frozen=True, slots=True)
class _Edges:
    """Data edges seen from the left: the vertices at their ends, and their codes."""

    left: Ids
    right: Ids
    codes: Ids

    def __len__(self) -> int:
        return len(self.codes)

    def from_(self, mask: Mask | None) -> _Edges:
        """Those that begin at some vertices."""
        if mask is None:
            return self
        kept = mask[self.left]
        return _Edges(self.left[kept], self.right[kept], self.codes[kept])


@dataclass(slots=True)
class _Product:
    """The edges of a product while they are put together; ``most``: so many of them."""

    vertices: int
    most: int
    pieces: list[int] = field(default_factory=lambda: [-1])
    """Of each state, the part whose edge led to it."""
    parts: list[_Edges] = field(default_factory=list)
    reached: dict[int, Ids] = field(default_factory=dict)
    """Vertices at which a state may be."""

    def state(self, piece: int, edges: _Edges) -> int:
        """Add a state."""
        self.pieces.append(piece)
        self.reached[len(self.pieces) - 1] = np.unique(edges.right)
        return len(self.pieces) - 1

    @property
    def edges(self) -> _Edges:
        """All edges, between nodes."""
        sides = (part.left for part in self.parts), (part.right for part in self.parts)
        return _Edges(*(np.concatenate(list(side)) for side in (*sides, (part.codes for part in self.parts))))

    def connect(self, before: int, state: int, edges: _Edges) -> None:
        """Add what leads from one state to another."""
        self.most -= len(edges)
        if self.most < 0:
            raise NotSupportedError("so many edges of a path of several parts do not fit in memory")
        self.parts.append(_Edges(edges.left + before * self.vertices, edges.right + state * self.vertices, edges.codes))


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
        bounds = [[self._labels_of(edge) for edge in piece.edges] for piece in pieces]
        parallel = self._snapshot.edges.parallel
        several = any(parallel if labels is None else parallel.intersection(labels) for b in bounds for labels in b)
        alone = len(pieces) == 1 and len(pieces[0].edges) == 1 and pieces[0].group
        if alone and pieces[0].bare and not several:
            return None
        graph = self._snapshot.graph
        words = " ".join(self._text[path.nodes[0].span.end : path.nodes[-1].span.start].split())
        taken = [[self._taken(piece, at) for at in range(len(piece.edges))] for piece in pieces]
        if alone and (pieces[0].edges[0].direction is not ast.Direction.BOTH or not _asks_ends(pieces[0])):
            ((edges,),) = taken
            return Along(*_both_ways(edges, graph.vertices, graph.dtype), f"{words} of {len(edges):,} edges")
        product = _Product(graph.vertices, self._bindings_bytes // _BYTES)
        masks = [self._mask(node) for node in path.nodes[1:-1]]
        self._put_together(product, pieces, taken, masks)
        edges = product.edges
        nodes = (len(product.pieces) + 1) * graph.vertices
        dtype = graph.dtype if nodes < np.iinfo(graph.dtype).max else np.int64
        words = f"{words}, in {len(product.pieces)} states of {len(edges):,} edges"
        return Along(*_both_ways(edges, nodes, dtype), words, tuple(product.pieces), len(pieces) - 1)

    def _put_together(
        self,
        product: _Product,
        pieces: Sequence[Piece],
        taken: Sequence[Sequence[_Edges]],
        masks: Sequence[Mask | None],
    ) -> None:
        """Write the automaton, each of its steps with the data edges that it takes."""
        entering: list[tuple[int, Mask | None]] = [(0, None)]
        for number, (piece, edges) in enumerate(zip(pieces, taken, strict=True)):
            copies = max(piece.low, 1) if piece.high is None else piece.high
            before, leaving = entering, []
            for copy in range(copies):
                first = last = -1
                for at, these in enumerate(edges):
                    state = product.state(number, these)
                    for other, mask in before if at == 0 else [(last, None)]:
                        product.connect(other, state, these.from_(mask))
                    first, last = state if at == 0 else first, state
                if piece.high is None and copy == copies - 1:
                    product.connect(last, first, edges[0])
                if copy + 1 >= piece.low:
                    leaving.append(last)
                before = [(last, None)]
            mask = masks[number] if number < len(masks) else None
            skipping = [(state, _both(had, mask)) for state, had in entering] if piece.low == 0 else []
            entering = [*((state, mask) for state in leaving), *skipping]
        end = len(product.pieces)
        for state, mask in entering:
            there = product.reached.get(state, np.arange(product.vertices))
            product.connect(state, end, _Edges(there, there, np.full(len(there), -1)).from_(mask))

    def _taken(self, piece: Piece, at: int) -> _Edges:
        """Run the pattern of one edge of a part."""
        left, edge, right = piece.nodes[at], piece.edges[at], piece.nodes[at + 1]
        left = left if left.variable else replace(left, variable=ast.Variable(_LEFT, left.span))
        right = right if right.variable else replace(right, variable=ast.Variable(_RIGHT, right.span))
        edge = replace(edge, variable=edge.variable or ast.Variable(_EDGE, edge.span), repeat=None)
        names = [part.variable.name for part in (left, edge, right) if part.variable is not None]
        where = all_hold(piece.where[at], edge.span)
        bound = self._alone((left, right), (edge,), where, names)
        if any(vertex.kinds for vertex in bound.vertices):
            raise NotSupportedError("paths to literals are not supported in SQL")
        source, target = (bound.vertex_of[name] for name in (names[0], names[2]))
        needs = Wanted(tuple(sorted((source, target))), (0,), False, None)
        columns = {"s": f"b.v{source}", "t": f"b.v{target}", "code": code_of(bound, 0, names[0])}
        found = self._columns_of(bound, needs, columns)
        return _Edges(found["s"], found["t"], found["code"])

    def _mask(self, node: ast.NodePattern) -> Mask | None:
        """Return which vertices a node between two parts may be; None for any."""
        if not conditions_on(node):
            return None
        name = _LEFT if node.variable is None else node.variable.name
        bound = self._alone((replace(node, variable=ast.Variable(name, node.span)),), (), None, [name])
        found = self._columns_of(bound, Wanted((0,), (), False, None), {"id": "b.v0"})["id"]
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
        sql = self._shaper(bound, view, parameters=parameters).relation(lambda _: columns)
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
        found = [self._labels_of(edge) for piece in pieces for edge in piece.edges]
        every = [labels for labels in found if labels is not None]
        return None if len(every) < len(found) else tuple(sorted({label for labels in every for label in labels}))


def _both_ways(edges: _Edges, vertices: int, dtype: type[np.signedinteger[Any]]) -> tuple[Partition, Partition]:
    """Return partitions there and back."""
    there = partition_of(edges.left, edges.right, edges.codes, vertices, dtype)
    return there, partition_of(edges.right, edges.left, edges.codes ^ 1, vertices, dtype)


def direction_of(pieces: Sequence[Piece]) -> ast.Direction:
    """Return how a path of one edge is written; of several, that it is no one's way back."""
    return pieces[0].edges[0].direction if len(pieces) == len(pieces[0].edges) == 1 else ast.Direction.OUT


def _asks_ends(piece: Piece) -> bool:
    """Whether it matters at which end of an edge a path comes to it."""
    return any(map(conditions_on, piece.nodes)) or any(piece.where)


def _both(one: Mask | None, other: Mask | None) -> Mask | None:
    return other if one is None else one if other is None else one & other
