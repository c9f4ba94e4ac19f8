"""Extension: every embedding of a table made one vertex, or one edge, larger.

A first pass counts what each row can be extended by; prefix sums over the counts say where each row's extensions go,
and how much memory they take; a second pass writes them there.  Threads share the rows, and every piece of them is
some milliseconds of work.  Where the limits name an executor that has a device, and that is expected to be sooner,
pieces of the table are extended there (:mod:`graphdb.gpu.mining.extension`): the same rows in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from graphdb.execute.scheduler import Pause
from graphdb.mining.graph import MiningGraph
from graphdb.mining.limits import BUDGET, Limits
from graphdb.mining.primitives.table import Column, EmbeddingTable
from graphdb.plan.extension import Adjacency, Extender, Kind

Ints = NDArray[np.int64]

DEVICE_PIECE = 1 << 20
"""Rows that a device extends at a time."""
PIECE = 1 << 14
"""Rows that are written out at a time."""

_MARKED = 8
"""Vertices of an embedding that marks tell apart, a bit each."""

Pass = Callable[[Ints, int, Ints, bool], int]
"""Works on rows from one on, until its budget is used up: (rows, row, places, whether to write) to the next row."""


def vertex_extension(
    table: EmbeddingTable,
    graph: MiningGraph,
    to: Literal["any", "all"] = "any",
    limits: Limits | None = None,
) -> EmbeddingTable:
    """Return the embeddings with one more vertex (GAMMA, definition 1).

    Parameters
    ----------
    table
        Of vertices: :meth:`EmbeddingTable.of_vertices`, and what was made of it here.
    to
        ``"any"``: a vertex adjacent to any of the embedding; every connected set of vertices comes once.  ``"all"``:
        one above the last that is adjacent to all of them; every clique comes once.

    Raises
    ------
    ValueError
        The table is one of edges, or its embeddings have eight vertices.
    MemoryLimitError, QueryTimeout, QueryInterrupted
        As ``limits`` say; before the memory is taken.
    """
    from graphdb.mining.kernels import extension_kernels as kernels

    if table.kind != "vertex":
        raise ValueError("vertex_extension takes a table of vertices")
    if to == "any" and table.size >= _MARKED:
        raise ValueError(f"connected sets of more than {_MARKED} vertices are not enumerated")
    limits = limits or Limits()
    if extender := _extender(table, graph.adjacency, limits):
        return _extended(table, extender, to, limits)
    found = np.empty(0, np.int32)
    widest = int(np.diff(graph.offsets).max(initial=0))

    def passes(found: NDArray[np.int32]) -> Pass:
        if to == "any":
            marks = np.zeros(len(graph), np.uint8)
            return lambda rows, at, places, write: int(
                kernels.extend_any(graph.offsets, graph.neighbours, rows, at, BUDGET, places, found, marks, write)
            )
        shared, state = np.empty(widest, np.int32), np.array([0, -1])
        last: list[Ints] = []

        def extend(rows: Ints, at: int, places: Ints, write: bool) -> int:
            if not last or last[0] is not rows:  # what is shared is of a row of other rows
                last[:], state[1] = [rows], -1
            arguments = (rows, at, BUDGET, places, found, shared, state, write)
            return int(kernels.extend_all(graph.offsets, graph.neighbours, *arguments))

        return extend

    starts = _count(table, passes, found, limits)
    total = int(starts[-1])
    limits.need(table.nbytes + starts.nbytes + total * 12, f"{total:,} embeddings of {table.size + 1} vertices")
    found = np.empty(total, np.int32)
    return _written(table, passes, found, starts, limits)


def edge_extension(table: EmbeddingTable, graph: MiningGraph, limits: Limits | None = None) -> EmbeddingTable:
    """Return the embeddings with one more edge that shares a vertex with them; every connected set of edges comes once.

    Raises
    ------
    ValueError
        The table is one of vertices.
    MemoryLimitError, QueryTimeout, QueryInterrupted
        As ``limits`` say; before the memory is taken.
    """
    from graphdb.mining.kernels import extension_kernels as kernels

    if table.kind != "edge":
        raise ValueError("edge_extension takes a table of edges")
    limits = limits or Limits()
    if extender := _extender(table, graph.incidence, limits):
        return _extended(table, extender, "edges", limits)
    offsets, incident = graph.incident

    def passes(found: Ints) -> Pass:
        return lambda rows, at, places, write: int(
            kernels.extend_edges(offsets, incident, graph.source, graph.target, rows, at, BUDGET, places, found, write)
        )

    starts = _count(table, passes, np.empty(0, np.int64), limits)
    total = int(starts[-1])
    limits.need(table.nbytes + starts.nbytes + total * 16, f"{total:,} embeddings of {table.size + 1} edges")
    return _written(table, passes, np.empty(total, np.int64), starts, limits)


def _extender(table: EmbeddingTable, lists: Adjacency, limits: Limits) -> Extender | None:
    """What extends a table on a device; None where the host does it."""
    if limits.executor is None or table.size > _MARKED:
        return None
    scanned = len(table) * table.size**2 * len(lists.ids) / max(len(lists.offsets) - 1, 1)
    return limits.executor.extender(lists, scanned, limits.control)


def _extended(table: EmbeddingTable, extender: Extender, kind: Kind, limits: Limits) -> EmbeddingTable:
    """Extend a table on a device: pieces of it go there, and their extensions come back."""
    found: list[NDArray[np.signedinteger]] = []
    counts = np.zeros(len(table), np.int64)
    width = np.int64 if kind == "edges" else np.int32
    total = 0
    for number, rows in enumerate(table.pieces(DEVICE_PIECE)):
        limits.control.check()
        begin = number * DEVICE_PIECE
        values, counts[begin : begin + len(rows)] = extender.extend(rows, kind)
        found.append(values.astype(width, copy=False))
        total += len(values)
        what = f"{total:,} embeddings or more of {table.size + 1} {'edges' if kind == 'edges' else 'vertices'}"
        limits.need(table.nbytes + 8 * len(table) + total * (8 + width().itemsize), what)
    limits.notes.append(extender.summary)
    parents = limits.cancellable(total, lambda: np.repeat(np.arange(len(table)), counts))
    return EmbeddingTable(table.kind, (*table.columns, Column(np.concatenate([np.empty(0, width), *found]), parents)))


def _count(
    table: EmbeddingTable, passes: Callable[..., Pass], found: NDArray[np.signedinteger], limits: Limits
) -> Ints:
    """Return where the extensions of each row begin, and how many there are: int64 [rows + 1]."""
    starts = np.zeros(len(table) + 1, np.int64)
    _run(table, passes, found, starts[1:], False, limits)
    np.cumsum(starts, out=starts)
    return starts


def _written(
    table: EmbeddingTable,
    passes: Callable[..., Pass],
    found: NDArray[np.signedinteger],
    starts: Ints,
    limits: Limits,
) -> EmbeddingTable:
    _run(table, passes, found, starts[:-1], True, limits)
    parents = limits.cancellable(len(found), lambda: np.repeat(np.arange(len(table)), np.diff(starts)))
    return EmbeddingTable(table.kind, (*table.columns, Column(found, parents)))


def _run(
    table: EmbeddingTable,
    passes: Callable[..., Pass],
    found: NDArray[np.signedinteger],
    places: Ints,
    write: bool,
    limits: Limits,
) -> None:
    """Make one pass over all rows."""
    workers: dict[int, Pass] = {}

    def work(begin: int, worker: int, pause: Pause) -> None:
        extend = workers.get(worker) or workers.setdefault(worker, passes(found))
        rows = table.rows(begin, begin + PIECE)
        at, here = 0, places[begin : begin + PIECE]
        while at < len(rows):
            pause()
            at = extend(rows, at, here, write)

    limits.each(pieces(len(table)), work)


def pieces(rows: int) -> Sequence[int]:
    """Return where the pieces of a table begin."""
    return range(0, rows, PIECE)
