"""The edges of path patterns that are more than all edges of some labels, as tables that earlier steps make.

Which data edges one edge of the pattern takes (its labels, properties and conditions, and what is asked of its two
ends) is a pattern of one edge, a step that is planned and run as any other.  A path along one repeated edge then goes
along those.  For several parts the edges of each are put together in the product of the data graph with the pattern's
automaton (:mod:`.product_automaton`).  Where a condition looks at several edges of a part, all
of its edges are one pattern, and those that match together stay together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphdb.common.errors import ExecutionError, TypeMismatchError
from graphdb.grammar import syntax as ast
from graphdb.plan.paths import Along, Ends, Weighted
from graphdb.relational.path_patterns.product_automaton import BEGIN, Edges, Fragment, Mask, Product, Size
from graphdb.relational.vectors import algebra as vectors
from graphdb.storage.graph.data_graph import DataGraph
from graphdb.storage.graph.pcsr import Partition, partition_of

Ids = NDArray[np.int64]

_BYTES = 64
"""What an edge of a product takes of memory, while it is made."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows that earlier steps find: of an edge ``c0`` and ``c1``, its ends from left to right, and ``c2``, its code.

    Of a vertex ``c0``; of a chain its vertices, then its codes.  Of an edge that costs something, ``c3``: what.
    """

    sql: str
    parameters: Mapping[str, object]
    reads: frozenset[str]
    most: int = 0
    """Rows, at most; 0 where that is not known."""
    made: vectors.Clause | None = None
    """Of edges that cost something: the first four columns by columns in memory, where it is as simple as that."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a path, which follows itself ``low`` to ``high`` times (None: any number of times).

    Attributes
    ----------
    edges
        What it is made of: edges, and parts inside.
    nodes
        Which vertices may be before the first of a part's edges, between them, and after the last; None for any.
    chain
        The edges, if these are one pattern: as many tables as there are edges otherwise.
    """

    low: int
    high: int | None
    edges: tuple[Table | Part, ...]
    nodes: tuple[Table | None, ...]
    chain: int = 0

    @property
    def copies(self) -> int:
        """How often it is written out."""
        return max(self.low, 1) if self.high is None else self.high

    def tables(self) -> Iterator[Table]:
        """Yield all tables that it reads."""
        for part in (*self.edges, *self.nodes):
            if part is not None:
                yield from part.tables() if isinstance(part, Part) else (part,)

    def size(self) -> Size:
        """Return the size of its product at most, as far as it is known."""
        if self.chain:
            (chain,) = self.edges
            assert isinstance(chain, Table)
            once = Size(self.chain, self.chain * chain.most, chain.most)
        else:
            sizes = (part.size() if isinstance(part, Part) else Size(1, 0, part.most) for part in self.edges)
            once = reduce(Size.then, sizes)
        return once.repeated(self.low, self.high)


Tables: TypeAlias = Callable[[Table], list[Ids]]
"""Returns the columns of a table."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """The parts of a path, and which vertices may be between two of them."""

    parts: tuple[Part, ...]
    between: tuple[Table | None, ...]

    @property
    def reads(self) -> frozenset[str]:
        """The names of the views that it reads, of those that a program makes."""
        tables = [table for table in self.between if table is not None]
        tables += [table for part in self.parts for table in part.tables()]
        return frozenset().union(*(table.reads for table in tables))

    def fits(self, vertices: int, memory: int) -> bool:
        """Whether its product fits in so many bytes of memory, as far as that is known before the steps have run."""
        size = self._size.whole(vertices)
        return max(size.states * vertices, size.edges) <= memory // _BYTES

    @property
    def states(self) -> int:
        """How many states its automaton has, at least."""
        return self._size.states + 1

    @property
    def _size(self) -> Size:
        return reduce(Size.then, (part.size() for part in self.parts))

    def product(self, graph: DataGraph, columns_of: Tables, memory: int) -> Along:
        """Put the edges of all parts together, within so many bytes of memory.

        Raises
        ------
        MemoryLimitError
            They are too many.
        """
        builder = _Builder(Product(graph.vertices, memory // _BYTES), columns_of)
        whole = BEGIN
        for number, part in enumerate(self.parts):
            mask = builder.mask(self.between[number]) if number < len(self.between) else None
            whole = builder.product.joined(whole, builder.repeated(number, part).between(None, mask))
        product = builder.product
        product.finish(whole)
        nodes = (len(product.pieces) + 1) * graph.vertices
        dtype = graph.dtype if nodes < np.iinfo(graph.dtype).max else np.int64
        return Along(*_both_ways(product.edges, nodes, dtype), tuple(product.pieces), len(self.parts) - 1)

    def weighted(self, ends: Ends, columns: Sequence[NDArray[Any]], cost: ast.Cost, text: str) -> Weighted:
        """Return the edges of one repeated edge with their costs, from the further columns of its table.

        Raises
        ------
        ExecutionError
            A cost is null, negative or not finite.
        TypeMismatchError
            One is no number.
        """
        costs, unknown, other = columns
        position, found = cost.expression.span.start, np.asarray(costs, np.float64)
        if unknown.any():
            hint = "leave such edges out: -[e:… WHERE e.weight IS NOT NULL]->"
            raise ExecutionError("the cost of an edge is null", text=text, position=position, hint=hint)
        if other.any():
            raise TypeMismatchError("the cost of an edge is no number", text=text, position=position)
        if (found < 0).any():
            hint = "Dijkstra's algorithm needs costs of 0 or more"
            least = f"{found.min():.15g}"
            raise ExecutionError(f"the cost of an edge is negative: {least}", text=text, position=position, hint=hint)
        if not np.isfinite(found).all():
            raise ExecutionError("the cost of an edge is not finite", text=text, position=position)
        return Weighted(ends, found)

    def edges(self, graph: DataGraph, columns_of: Tables) -> Along:
        """Return the edges of one repeated edge."""
        ((table,),) = (part.edges for part in self.parts)
        assert isinstance(table, Table)
        return Along(*_both_ways(Edges(*columns_of(table)), graph.vertices, graph.dtype))


@dataclass(frozen=True, slots=True)
class _Builder:
    """Writes the parts of a pattern into a product."""

    product: Product
    columns_of: Tables

    def repeated(self, number: int, part: Part) -> Fragment:
        """Write a part as often as it comes; ``number`` is that of the path's part that it is, or is in."""
        once = self._once(part)
        if part.low == part.high == 1:
            return once(number)
        product, firsts, before = self.product, list[Edges](), list[tuple[int, Mask]]()
        lasts: list[tuple[int, Mask]] = []
        for copy in range(part.copies):
            one = once(number)
            product.follow(before, one.firsts)
            if part.high is None and copy == part.copies - 1:
                product.follow(one.lasts, one.firsts)
            if copy + 1 >= part.low:
                lasts += one.lasts
            firsts, before = firsts or list(one.firsts), list(one.lasts)
        return Fragment(firsts, lasts, part.low == 0)

    def _once(self, part: Part) -> Callable[[int], Fragment]:
        """Return what writes a part once, of tables that are read once."""
        if part.chain:
            (table,) = part.edges
            assert isinstance(table, Table)
            columns = self.columns_of(table)
            vertices, codes = columns[: part.chain + 1], columns[part.chain + 1 :]
            return lambda number: self.product.chain(number, vertices, codes)
        writers = [self._one(each, part.nodes[at : at + 2]) for at, each in enumerate(part.edges)]

        def write(number: int) -> Fragment:
            first, *others = (writer(number) for writer in writers)
            return reduce(self.product.joined, others, first)

        return write

    def _one(self, each: Table | Part, ends: tuple[Table | None, ...]) -> Callable[[int], Fragment]:
        if isinstance(each, Part):
            left, right = map(self.mask, ends)
            return lambda number: self.repeated(number, each).between(left, right)
        edges = Edges(*self.columns_of(each))
        return lambda number: self.product.edge(number, edges)

    def mask(self, table: Table | None) -> Mask:
        """Return which vertices are in a table; None for any."""
        if table is None:
            return None
        mask = np.zeros(self.product.vertices, bool)
        mask[self.columns_of(table)[0]] = True
        return mask


def _both_ways(edges: Edges, vertices: int, dtype: type[np.signedinteger[Any]]) -> tuple[Partition, Partition]:
    """Return partitions there and back."""
    there = partition_of(edges.left, edges.right, edges.codes, vertices, dtype)
    return there, partition_of(edges.right, edges.left, edges.codes ^ 1, vertices, dtype)
