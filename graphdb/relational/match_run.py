"""Matches under way: a bound pattern is planned over its candidates and run, and SQL sees its bindings."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.arrow import numbers
from graphdb.common.progress import Progress
from graphdb.common.stopping import stopping
from graphdb.execute.counting.crt import as_integers, total
from graphdb.execute.counting.plan_run import count_by_vertex, count_matches
from graphdb.execute.functional import functional_rows
from graphdb.pattern.bind import BoundPattern
from graphdb.pattern.graph import Wanted
from graphdb.plan.executor import Block, Control, Executor
from graphdb.plan.physical import PhysicalPlan
from graphdb.relational.edges.all_edges import of_each_label
from graphdb.relational.edges.assignment import Chooser, Scanned
from graphdb.relational.edges.bundles import multiplied
from graphdb.relational.match_planner import MatchPlanner, asks_whether
from graphdb.relational.projection.arrays import Beside, with_columns
from graphdb.relational.projection.relation import BINDINGS
from graphdb.relational.snapshot import Snapshot
from graphdb.storage.arrays.arrow import table_of

if TYPE_CHECKING:
    from graphdb.relational.profile import Profile

Ids = NDArray[np.int64]
T = TypeVar("T")

_STREAM = 16 << 20
"""Bytes of bindings that are handed on at a time, once they are too many to wait in memory."""

_TOGETHER = 1 << 16
"""Rows from which on blocks are handed on: a search gives some thousand at a time."""


class MatchRun(MatchPlanner):
    """Plans and runs the matches of one query; a context manager, which limits their time.

    Parameters
    ----------
    bindings_bytes
        What the match may take: half of it for bindings that wait in memory.  Beyond that they go to a temporary table,
        which DuckDB may spill, block by block.
    threads
        How many threads count what executors do not know of.
    timeout
        Seconds from now.
    cancelled
        Set by another thread to stop the match.
    progress
        Called with what share of a match is done.
    depth
        Within how many queries that run this one does.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        executor: Executor,
        text: str,
        arguments: Mapping[str, object],
        *,
        bindings_bytes: int,
        threads: int = 1,
        timeout: float | None = None,
        cancelled: threading.Event | None = None,
        progress: Progress | None = None,
        depth: int = 0,
    ) -> None:
        super().__init__(snapshot, executor, text, arguments, bindings_bytes)
        self._depth = depth
        self._progress = progress
        self._threads = threads
        self._cancelled = cancelled
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._tables: dict[str, arrow.Table] = {}
        """Bindings and rows that are in memory, by the views that SQL reads them from."""
        self.control: Control | None = None
        """What the match reported, once it ran."""
        self.profile: Profile | None = None
        """What is measured besides, for PROFILE."""

    def __enter__(self) -> Self:
        self._limits = stopping(self._left(), self._cancelled)
        self._limits.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._limits.__exit__(*error)

    def new_control(self) -> Control:
        """Return the control of one match: it ends with the statement's time, or when that is cancelled."""
        return control_of(self._left(), self._cancelled, self._progress, self._bindings_bytes)

    def _measuring(self, name: str) -> AbstractContextManager[None]:
        return nullcontext() if self.profile is None else self.profile.measuring(name)

    def _entered(self, name: str, scope: AbstractContextManager[T]) -> AbstractContextManager[T]:
        """Return a scope that makes the rows of a step, whose time and number PROFILE asks for."""
        return scope if self.profile is None else self.profile.entering(name, scope, self._tables)

    def _left(self) -> float | None:
        return None if self._deadline is None else max(self._deadline - time.monotonic(), 0.0)

    # --- planning

    def _plan(self, bound: BoundPattern, needs: Wanted) -> PhysicalPlan:
        with self._snapshot.graph.watched(self.new_control().check):
            return self._planned(bound, needs)

    # --- running

    @contextmanager
    def _bindings(
        self,
        plan: PhysicalPlan,
        needs: Wanted,
        bound: BoundPattern,
        view: str = BINDINGS,
        most: int | None = None,
        *,
        numbered: bool = False,
        shown: bool = True,
        beside: Sequence[Beside] = (),
    ) -> Iterator[None]:
        """Run a match and show its bindings to SQL; ``most`` is the bytes in memory that they may take, not said: half.

        They have properties of their vertices ``beside`` them.
        ``numbered`` ones have a column ``rowid``, as rows of tables do: what starts from them may read them, too.
        Nothing else reads those that are not ``shown``.
        """
        connection = self._snapshot.connection
        if needs.count_only:
            self.control = control = self.new_control()
            count = as_integers(np.array([self._count(plan, needs, bound, control)], object))
            with self._counts(view, {"count": count}):
                yield
            return
        if needs.nothing:
            # Nothing of the match is returned but its number of rows.
            self.control = control = self.new_control()
            (count,) = as_integers(np.array([self._count(plan, needs, bound, control)], object)).tolist()
            # All bindings are equal: one row does where it may come with its number, or where that is not asked.
            if needs.duplicates != "keep":
                one = np.ones(min(count, 1), np.int8)
                with self._counts(view, {"one": one, "n": as_integers(np.array([count] * len(one), object))}):
                    yield
                return
            rows = f"range({count})"
            with connection.temporary_table(view, "VIEW"):
                with connection.guard() as raw:
                    raw.execute(f"CREATE OR REPLACE TEMP VIEW {view} AS SELECT 1 AS one, {count} AS n FROM {rows}")
                yield
            return
        with self._gathered(plan, needs, bound, view, most, beside) as gathered:
            if numbered and gathered is not None:
                gathered = gathered.append_column("rowid", numbers(np.arange(gathered.num_rows)))
            if gathered is not None:
                self._tables[view] = gathered
            with self._visible(gathered if shown else None, view):
                yield
            self._tables.pop(view, None)

    @contextmanager
    def _counts(self, view: str, columns: Mapping[str, NDArray[Any]]) -> Iterator[None]:
        """Show the number of a match's bindings to SQL, as rows in memory."""
        self._tables[view] = table = table_of(columns)
        with self._snapshot.connection.view(view, table, lasting=True):
            yield
        self._tables.pop(view, None)

    def showing(
        self, block: Block, needs: Wanted, bound: BoundPattern, beside: Sequence[Beside] = ()
    ) -> Iterator[AbstractContextManager[None]]:
        """Give what shows matches to SQL that were found already, as the bindings of a statement's only match.

        They come as :meth:`bound_rows` gives them.
        """
        return (self._visible(rows) for rows in self.bound_rows(block, needs, bound, beside))

    def bound_rows(
        self, block: Block, needs: Wanted, bound: BoundPattern, beside: Sequence[Beside] = ()
    ) -> Iterator[arrow.Table]:
        """Give the bindings of matches that were found already, with all choices of edges, a part of them at a time.

        At least one part comes, of no match where there is none.
        """
        chooser, some = Chooser(self._snapshot, bound, needs), False
        if chooser:
            ids = dict.fromkeys((vertex.name for vertex in bound.vertices), self._snapshot.graph.dtype)
            found = block.columns.items()
            columns = {name: np.ascontiguousarray(column, ids.get(name, np.int64)) for name, column in found}
            block = replace(block, columns=columns)
        for part in chooser.blocks(block, self.new_control().check) if chooser else (block,):
            some = True
            yield self._with_beside(self._terms(part, needs, bound), beside)
        if not some:
            yield self._with_beside(self._empty(needs, bound), beside)

    @contextmanager
    def _visible(self, gathered: arrow.Table | None, view: str = BINDINGS) -> Iterator[None]:
        """Show gathered bindings to SQL; those that spilled are a table already."""
        if gathered is None:
            yield
            return
        with self._snapshot.connection.view(view, gathered, lasting=True):
            yield

    @contextmanager
    def _gathered(
        self,
        plan: PhysicalPlan,
        needs: Wanted,
        bound: BoundPattern,
        view: str = BINDINGS,
        most: int | None = None,
        beside: Sequence[Beside] = (),
    ) -> Iterator[arrow.Table | None]:
        """Run the match and yield its bindings, or None where they were too many and wait in a temporary table."""
        self.control = control = self.new_control()
        batches: list[arrow.Table] = []
        spilled, waiting = False, 0
        most = self._bindings_bytes // 2 if most is None else most
        with ExitStack() as tables:
            for block in self._blocks(plan, needs, bound, control):
                table = self._with_beside(self._terms(block, needs, bound), beside)
                batches.append(table)
                waiting += table.nbytes
                if waiting > (_STREAM if spilled else most):
                    if not spilled:
                        tables.enter_context(self._snapshot.connection.temporary_table(view))
                    self._spill(batches, view, first=not spilled)
                    batches, spilled, waiting = [], True, 0
            if spilled:
                self._spill(batches, view, first=False)
                yield None
                return
            if not batches:
                batches.append(self._with_beside(self._empty(needs, bound), beside))
            yield arrow.concat_tables(batches)

    def _with_beside(self, bindings: arrow.Table, beside: Sequence[Beside]) -> arrow.Table:
        return with_columns(bindings, beside, self._snapshot.properties, self._snapshot.graph)

    def _blocks(self, plan: PhysicalPlan, needs: Wanted, bound: BoundPattern, control: Control) -> Iterator[Block]:
        """Run a match, and resolve which edges its triples stand for; no more rows than are wanted."""
        if plan.bundled is not None:
            found = self.executor.run(plan.bundled.search, control)
            yield from multiplied(self._snapshot, bound, plan.bundled.pattern, needs, found, control.check)
            return
        if plan.by_label is not None:
            yield of_each_label(*plan.by_label, bound, needs, _columns(needs, bound).values())
            return
        if plan.functional is not None:
            started = time.monotonic()
            yield from functional_rows(plan, plan.functional, control, self._threads)
            control.seconds = time.monotonic() - started
            return
        chooser = Chooser(self._snapshot, bound, needs, plan.fulfilled)
        if not chooser:
            yield from self._triples(plan, needs, control)
            return
        if plan.weighed is not None and plan.weighed.root >= 0:
            counted = self._weighed(partial(count_by_vertex, plan.weighed), control)
            if counted is not None:
                vertices, matches = counted
                name = bound.vertices[plan.weighed.root].name
                yield Block({name: vertices.astype(plan.dtype)}, len(vertices), matches)
                return
        left, started = needs.limit, time.monotonic()
        blocks: Iterator[Block]
        if plan.scan is None:
            found = self._triples(plan, needs, control)
            blocks = (block for triples in found for block in chooser.blocks(triples, control.check))
        else:
            blocks = chooser.scan(plan.scan)
        for block in blocks:
            control.check()
            yield block
            if left is not None and (left := left - block.count) <= 0:
                break
        if plan.scan is not None:
            control.seconds = time.monotonic() - started

    def _triples(self, plan: PhysicalPlan, needs: Wanted, control: Control) -> Iterator[Block]:
        """Run a match; where all of it is wanted, some rows at a time."""
        found = self.executor.run(plan, control)
        return found if needs.limit is not None or asks_whether(needs) else _together(found)

    def _count(self, plan: PhysicalPlan, needs: Wanted, bound: BoundPattern, control: Control) -> int:
        """The number of a pattern's matches."""
        if plan.count_only:
            return self.executor.count(plan, control)
        if plan.weighed is not None and plan.weighed.root < 0:
            weighed = self._weighed(partial(count_matches, plan.weighed), control)
            if weighed is not None:
                return weighed
        if asks_whether(needs):
            return int(any(block.count for block in self._blocks(plan, needs, bound, control)))
        counted = replace(needs, count_only=True)
        found = 0
        for block in self._blocks(plan, counted, bound, control):
            assert block.matches is not None
            found += total(block.matches)
        return found

    def _weighed(self, count: Callable[[Control, int, int], T], control: Control) -> T:
        """Count parallel edges as weights; these no device counts."""
        started = time.monotonic()
        try:
            return count(control, self._threads, self._bindings_bytes)
        finally:
            control.seconds = time.monotonic() - started

    def _empty(self, needs: Wanted, bound: BoundPattern) -> arrow.Table:
        """The table of no bindings."""
        chooser = Chooser(self._snapshot, bound, needs)
        columns = dict.fromkeys(_columns(needs, bound).values(), np.empty(0, np.int64))
        columns |= {f"#n{edge}": np.empty(0, np.int64) for edge in chooser.edges}
        counted = needs.nothing or needs.duplicates == "count"
        return self._terms(Block(columns, 0, np.empty(0, np.int64) if counted else None), needs, bound)

    def _terms(self, block: Block, needs: Wanted, bound: BoundPattern) -> arrow.Table:
        """A block of bindings as columns of term ids."""
        literals = {f"v{v}" for v in needs.vertices if bound.vertices[v].kinds}
        arrays: dict[str, Any] = {}
        for column, name in _columns(needs, bound).items():
            values = block.columns[name]
            if column in literals:
                values = self._snapshot.store.to_terms(values)
            arrays[column] = numbers(values)
        arrays |= Chooser(self._snapshot, bound, needs).columns(block)
        if block.matches is not None:
            once = isinstance(block, Scanned) or block.matches.strides == (0,)
            arrays["n"] = arrow.repeated(1, block.count) if once else numbers(as_integers(block.matches))
        if not arrays:  # rows without columns
            arrays["one"] = numbers(np.ones(block.count, np.int8))
        return arrow.table(arrays)

    def _spill(self, batches: Sequence[arrow.Table], view: str, *, first: bool) -> None:
        """Write bindings to a temporary table, some at a time: what DuckDB reads is all gathered before it begins."""
        connection, waiting = self._snapshot.connection, list[arrow.Table]()
        for left, table in zip(range(len(batches) - 1, -1, -1), batches, strict=True):
            waiting.append(table)
            if left and sum(each.nbytes for each in waiting) < _STREAM:
                continue
            begin = f"CREATE OR REPLACE TEMP TABLE {view} AS" if first else f"INSERT INTO temp.{view}"
            together, waiting, first = arrow.concat_tables(waiting), [], False
            with connection.view("_graphdb_block", together), connection.guard(self._left()) as raw:
                raw.execute(f"{begin} FROM _graphdb_block")


def _together(blocks: Iterable[Block]) -> Iterator[Block]:
    """Give the rows of blocks in fewer blocks: what is done once for each costs as much as some thousand rows."""
    waiting: list[Block] = []
    rows = 0
    for block in blocks:
        waiting.append(block)
        rows += block.count
        if rows >= _TOGETHER:
            yield _as_one(waiting)
            waiting, rows = [], 0
    if waiting:
        yield _as_one(waiting)


def _as_one(blocks: Sequence[Block]) -> Block:
    first = blocks[0]
    if len(blocks) == 1:
        return first
    columns = {name: np.concatenate([block.columns[name] for block in blocks]) for name in first.columns}
    count = sum(block.count for block in blocks)
    matches = [block.matches for block in blocks if block.matches is not None]
    if not matches:
        return Block(columns, count, None)
    if all(each.strides == (0,) for each in matches):  # each row is one match
        return Block(columns, count, np.broadcast_to(matches[0][:1], count))
    return Block(columns, count, np.concatenate(matches))


def _columns(needs: Wanted, bound: BoundPattern) -> dict[str, str]:
    """Return the columns of bindings: by their names in SQL, the names of the pattern's elements."""
    vertices = {f"v{v}": bound.vertices[v].name for v in needs.vertices}
    return vertices | {f"e{e}": bound.edges[e].name for e in needs.edges}


def control_of(
    left: float | None, cancelled: threading.Event | None, report: Progress | None, bindings_bytes: int
) -> Control:
    """Return the control of one match of a statement that has so many seconds left; see :class:`MatchRun`."""
    return Control(
        timeout=left,
        cancelled=cancelled,
        progress=None if report is None else lambda share: report(share, 1.0, 0, "matching"),
        buffer_bytes=max(bindings_bytes // 4, 1 << 20),
    )
