"""Brings the answers of continuous queries up to date, within the transaction that changes the graph."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphdb.common.errors import (
    BindError,
    ExecutionError,
    GraphDBError,
    NotSupportedError,
    ParseError,
    QueryInterrupted,
    QueryTimeout,
    TypeMismatchError,
    placed,
)
from graphdb.common.stopping import check_stop
from graphdb.live import definitions
from graphdb.live.aggregates.grouping import Accumulators, signature_of
from graphdb.live.aggregates.groups import TABLES, Groups
from graphdb.live.aggregates.over_groups import NotGrouped
from graphdb.live.answers import ADDED, FORMER, FRESH, NOTHING, REMOVED, Answer, Written
from graphdb.live.definitions import Definition
from graphdb.live.engine import Engine
from graphdb.live.former import Former
from graphdb.live.matches.concerned import labels_read
from graphdb.live.matches.delta import Net
from graphdb.live.matches.matching import Batch
from graphdb.live.matches.reaching import Everywhere
from graphdb.live.matches.required import NotIncremental
from graphdb.live.prepared import PreparedQueries
from graphdb.live.rows.anew import RowsAnew
from graphdb.live.rows.first_rows import FirstRows
from graphdb.live.rows.gathered import Gathered
from graphdb.live.rows.of_matches import Rows
from graphdb.live.standing import UNCONCERNED, Branch, Standing, Took
from graphdb.live.whole import WholeAnswers
from graphdb.plan.executor import Overran
from graphdb.relational.query import Prepared
from graphdb.results.display import made_in_python
from graphdb.storage.file.prepared_sql import execute

if TYPE_CHECKING:
    import duckdb

    from graphdb.common.values.types import Column
    from graphdb.relational.program import Program
    from graphdb.relational.session.state import State
    from graphdb.relational.snapshot import Snapshot
    from graphdb.storage.graph.changes import Changes

Ints = NDArray[np.int64]

_EXCESS = 10
"""Changes are dropped once there are more than their budget by this part of it."""
_AGED = 60.0
"""Seconds between two looks for changes that are too old."""


class Maintenance:
    """Maintains the continuous queries of one open database; see :class:`graphdb.relational.session.observed`."""

    def __init__(self, state: State, engine: Engine) -> None:
        self._state = state
        self.engine = engine
        self._former = Former(state)
        self._whole = WholeAnswers(state, engine, self._former)
        self._prepared = PreparedQueries()
        self._standing: dict[int, Standing] = {}
        self._epoch = -1
        self._definitions = -1
        """What :attr:`.Observed.definitions` was when these queries, and the number of the last batch, were read."""
        self._last_batch = 0

    # --- which there are

    def standing(self, raw: duckdb.DuckDBPyConnection) -> list[Standing]:
        """Return the continuous queries of the file."""
        if self._epoch != self._state.observed.epoch:
            self._epoch = self._state.observed.epoch
            self._former.forget()
            for each in self._standing.values():
                each.forget()
                each.stored_rows = None
        found = definitions.read(raw)
        self._standing = {
            one.number: self._standing[one.number] if one.number in self._standing else Standing(one) for one in found
        }
        for one in found:
            self._standing[one.number].definition = one
        return list(self._standing.values())

    def _snapshot(self) -> Snapshot:
        """Return the present state: a batch that brings RDF is not to fail by a name that a query waits for."""
        return self._state.snapshot().lenient()

    # --- a batch

    def maintain(self, changes: Sequence[Changes | None]) -> None:
        """See :meth:`graphdb.relational.session.observed.Maintainer.maintain`.

        Raises
        ------
        GraphDBError
            A query cannot be answered any more: what changed the graph is rolled back.
        """
        net = Net.of(changes, self._state.snapshot().store.type_label)
        for change in changes:
            if change is not None:
                self._prepared.follow(change, self._state.snapshot().store.type_label)
        try:
            if net is None or net:
                self._follow(net)
            self._former.end(changes)
        except BaseException:
            self._former.forget()
            raise

    def _follow(self, net: Net | None) -> None:
        with self._state.at_home(), self._state.connection.guard() as raw:
            standing = self._living(raw)
            batch = self._last_batch + 1
            changed: dict[int, Written] = {}
            for each in standing:
                with self._following(each):
                    written = self._maintain(raw, each, net, batch)
                    if any(written):
                        changed[each.definition.number] = written
            if changed:
                definitions.note_batch(raw, batch, changed)
                self._last_batch = batch
            for number, written in changed.items():
                with self._following(each := self._standing[number]):
                    self._budget(Answer(raw, each.definition), each, sum(written))

    @contextmanager
    def _following(self, each: Standing) -> Iterator[None]:
        """Have errors be those of one query, of which nothing is known after them."""
        try:
            with self._state.connection.guard():  # whose errors are ours
                yield
        except GraphDBError as error:
            each.forget()
            raise self._broken(each, error) from error
        except BaseException:
            each.forget()
            raise

    def _living(self, raw: duckdb.DuckDBPyConnection) -> list[Standing]:
        """Return the continuous queries, after those are dropped whose watch is closed."""
        observed = self._state.observed
        if self._definitions != observed.definitions:
            self.standing(raw)
            self._last_batch, self._definitions = definitions.last_batch(raw), observed.definitions
        found = list(self._standing.values())
        stale = [each for each in found if each.definition.watch not in (None, *definitions.WATCHED)]
        for each in stale:
            definitions.delete(raw, each.definition)
            observed.redefine()
        return [each for each in found if each not in stale]

    def committed(self) -> None:
        """See :meth:`graphdb.relational.session.observed.Maintainer.committed`."""
        self._state.connection.file.announce()

    def _maintain(self, raw: duckdb.DuckDBPyConnection, each: Standing, net: Net | None, batch: int) -> Written:
        """Bring one answer up to date; return what changed."""
        started = time.perf_counter()
        updates = 0 if net is None else len(net.added) + len(net.removed)
        if net is not None and self._passes(each, net):
            strategy = "delta plans" if each.why is None else UNCONCERNED
            each.took.append(Took(0, updates, 0, 0, strategy, time.perf_counter() - started))
            return NOTHING
        answer = Answer(raw, each.definition)
        why, written = self._by_delta(raw, each, net, batch)
        if written is None:
            written = self._written(raw, each, answer, batch, why)
        places = {part.matcher.place for part in each.parts if part.matcher is not None} - {"cpu"}
        place = ", ".join(sorted(places)) or "cpu"
        strategy = "delta plans" if place == "cpu" else f"delta plans on {place}"
        strategy = strategy if why is None else f"compared: {why}"
        number = batch if any(written) else 0
        each.took.append(Took(number, updates, *written, strategy, time.perf_counter() - started))
        return written

    def _written(
        self, raw: duckdb.DuckDBPyConnection, each: Standing, answer: Answer, batch: int, why: str | None
    ) -> Written:
        """Write what the tables of rows added and removed have, or the whole answer where ``why`` says so."""
        found = True
        if why is not None:
            begun = time.perf_counter()
            self._whole.anew(raw, each)
            answer.compare()
            self._note(raw, each, begun)
        else:
            if each.accumulators is not None:
                Groups(raw, each.definition, each.accumulators).follow(partial(self._whole.aggregate, raw, each))
            answer.net()
            if each.window is not None:
                found = FirstRows(raw, answer, each).follow(partial(self._whole.first, raw, each))
        written = answer.write(batch, whole=why is not None) if found else NOTHING
        for branch in each.branches:
            branch.at_once = None  # the tables may have other types
        self._drop(raw, each)
        return written

    def _passes(self, each: Standing, net: Net) -> bool:
        """Whether a batch changes nothing that a query reads."""
        before, each.labels = each.labels, None
        if each.never is None and each.why is None:
            passes = each.followed and all(part.passes(net) for part in each.parts)
            for part in each.parts if passes else ():
                part.resources = self._state.snapshot().graph.sizes.resources
            return passes
        each.labels = labels_read(each.query, self._snapshot(), each.definition.text)
        if before is None or before != each.labels or net.labels.single:
            return False
        return before.isdisjoint(net.labels.edges | net.labels.facts)

    def _by_delta(
        self, raw: duckdb.DuckDBPyConnection, each: Standing, net: Net | None, batch: int
    ) -> tuple[str | None, Written | None]:
        """Find by delta plans what changes, and write it, or make the tables of rows added and removed.

        Returns why they do not take the batch, or None; and what is written, or None where it is in tables.
        """
        snapshot = self._snapshot()
        try:
            batches = self._batches(raw, each, net, snapshot)
            if not isinstance(batches, str):
                return self._matched(raw, each, batches, snapshot, batch)
        except NotSupportedError:  # of vertices, as coalesce(a.k, 0) of values that are several by now
            each.forget()
            return "Python computes a condition of it", None
        each.lose_matchers()
        return batches, None

    def _batches(
        self, raw: duckdb.DuckDBPyConnection, each: Standing, net: Net | None, snapshot: Snapshot
    ) -> list[Batch] | str:
        """Return what a batch is for each part of a query, or why delta plans do not take it."""
        if each.never is not None:
            each.why = each.never
            return each.never
        if net is None:
            each.forget()
            self.bind(each, snapshot)
            return "not all changes are known"
        if any(part.delta is None for part in each.parts):
            with self._former.opened() as state:
                self.bind(each, state)
        bound = each.bound
        before = [(part.delta, part.resources) for part in each.parts]
        if any(part.concerned(net) for part in each.parts):
            self.bind(each, snapshot)
        if each.why is not None:
            return each.why
        batches: list[Batch] = []
        for part, (former, resources) in zip(each.parts, before, strict=True) if each.bound == bound else ():
            if former is None:
                break
            batch = part.batch(former, resources, net, snapshot, self._former.opened)
            if batch is None:
                return "names of it stand for something else than before"
            batches.append(batch)
        if len(batches) < len(each.parts):
            return "it was not maintained by delta plans in this way before"
        return self._lacks(raw, each) or batches

    def _matched(
        self,
        raw: duckdb.DuckDBPyConnection,
        each: Standing,
        batches: Sequence[Batch],
        snapshot: Snapshot,
        number: int,
    ) -> tuple[str | None, Written | None]:
        """Find what the batch of a number changes, unless to aggregate anew is expected to be sooner.

        Returns what :meth:`_by_delta` does.
        """
        check: Callable[[], None] = check_stop
        size, anew = sum(batch.size for batch in batches), math.inf
        if each.accumulators is not None:
            groups = Groups(raw, each.definition, each.accumulators)
            check = each.pace.limited(check_stop, size, groups.matches)
            anew = each.pace.anew or math.inf
        gathered, waiting = Gathered(raw, each), iter(batches)
        at = 0
        for branch in each.branches:
            own = [next(waiting) for _ in branch.way.parts]
            with self._rows(raw, each, branch, own) as rows:
                try:
                    for part, batch in zip(branch.way.parts, own, strict=True):
                        at += 1
                        take = rows.taker(part, batch.read)
                        part.find(batch, snapshot, self._former.opened, self.engine, take, check, anew)
                except Overran:
                    each.pace.overran(size)
                    each.lose_matchers(at)  # which did not get the batch
                    return "to aggregate anew is expected to take less time than to match its changes", None
                except Everywhere as error:
                    each.lose_matchers(at)
                    return str(error), None
                if each.plain and isinstance(rows, Rows):
                    written = rows.write(Answer(raw, each.definition), number)
                    if written is not None:
                        return None, written
                rows.finish()
            gathered.add(some=rows.some)
        gathered.finish()
        each.pace.matched(size)
        return None, None if gathered.some else NOTHING

    def _rows(
        self, raw: duckdb.DuckDBPyConnection, each: Standing, branch: Branch, batches: Sequence[Batch]
    ) -> Rows | RowsAnew:
        """Return what makes rows of what is found."""
        if branch.way.asked_anew:
            return RowsAnew(raw, self.engine, each, branch, self._former, self._snapshot(), self._prepared)
        former = self._former if any(batch.renewed for batch in batches) else None
        now = self._snapshot()
        return Rows(raw, self.engine, branch, each.definition.text, now, self._prepared, former)

    def explainable(self, each: Standing) -> Standing:
        """Return a continuous query with its delta plans, where it has some, over the graph of now."""
        each.why, snapshot = each.never, self._snapshot()
        if each.why is None and any(part.matcher is None for part in each.parts):
            self.bind(each, snapshot)
            for part in each.parts if each.why is None else ():
                part.prepare(self.engine, snapshot)
        if each.why is not None:
            each.labels = labels_read(each.query, snapshot, each.definition.text)
        return each

    def bind(self, each: Standing, snapshot: Snapshot) -> None:
        """Find out in which way delta plans maintain a query, if they do, over the names of one state."""
        before, each.accumulators = each.accumulators, None
        self._prepared.drop(each.definition.number)
        self._former.rename(each.definition.number)
        try:
            found = [self._bind(each, branch, snapshot) for branch in each.branches]
            first = each.branches[0]
            if any(branch.columns != first.columns for branch in each.branches) or len({*map(repr, found)}) > 1:
                raise NotGrouped("the parts of a UNION have columns of different types")
            types = first.types if found[0] is None else found[0].types
            if each.window is not None and each.window.unordered(types):
                raise NotIncremental("its rows are ordered by values of several types, or of others than SQL orders")
            each.why, each.accumulators = None, found[0]
        except (NotIncremental, NotGrouped) as error:
            each.why = str(error)
            for branch in each.branches:
                branch.forget()
        each.grouped = each.grouped and each.accumulators == before

    def _bind(self, each: Standing, branch: Branch, snapshot: Snapshot) -> Accumulators | None:
        """Bind what is followed of a branch in the first way that maintains it, and return what follows its groups.

        Raises
        ------
        NotIncremental, NotGrouped
            There is no such way.
        """
        for way in branch.ways:
            branch.way = way
            try:
                columns = self._bound(each, branch, snapshot)
                branch.columns = signature_of(columns)
                branch.types = {column.sql_name: None if column.many else column.type for column in columns}
                found = None
                if each.grouping is not None:
                    edges = (edge for part in way.parts if part.delta for edge in part.delta.pattern.edges)
                    parallel = any(edge.parallel for edge in edges)
                    found = each.grouping.typed(columns, snapshot, each.definition.text, parallel=parallel)
            except (NotIncremental, NotGrouped) as error:
                why = error
                way.forget()
                continue
            for other in branch.ways:
                if other is not way:
                    other.forget()
            return found
        raise why

    def _bound(self, each: Standing, branch: Branch, snapshot: Snapshot) -> Sequence[Column]:
        """Bind what is followed of a branch, and return the columns of its rows; raises NotIncremental."""
        text = each.definition.text
        bound = [part.bind(self.engine, snapshot) for part in branch.way.parts]
        prepared: Prepared | Program = bound[0]
        if branch.way.asked_anew:
            try:
                branch.refuse_inexact(self.engine, text, snapshot)
                with self.engine.prepared(branch.query, text, snapshot, whole=False) as (_, prepared):
                    if prepared.computing is not None:
                        raise NotIncremental("Python computes a part of it")
                    self._prepared.put(branch.key, snapshot, prepared)
            except (
                BindError,
                ParseError,
                TypeMismatchError,
            ) as error:  # if it is wrong as it is written, too, this is told then
                raise NotIncremental(error.message) from None
        if any(made_in_python(column.type) for column in prepared.projection.columns):
            raise NotIncremental("Python computes a part of it")
        return prepared.projection.columns

    # --- groups

    @staticmethod
    def _lacks(raw: duckdb.DuckDBPyConnection, each: Standing) -> str | None:
        """Return what of a query is to be stored, and is not; None where all is."""
        if each.accumulators is not None and not each.grouped:
            each.grouped = Groups(raw, each.definition, each.accumulators).are_there()
            if not each.grouped:
                return "its groups are not stored yet"
        if each.window is not None and not FirstRows(raw, Answer(raw, each.definition), each).are_there():
            return "its first rows are not stored yet"
        return None

    @staticmethod
    def _note(raw: duckdb.DuckDBPyConnection, each: Standing, begun: float) -> None:
        """Note what an answer that aggregates took anew."""
        if each.accumulators is not None:
            seconds = time.perf_counter() - begun
            each.pace.compared(seconds, Groups(raw, each.definition, each.accumulators).matches())

    # --- what is stored

    def create(self, raw: duckdb.DuckDBPyConnection, definition: Definition, text: str, at: int) -> Standing:
        """Write a new continuous query with its answer, within the transaction that is open.

        ``text`` is that of the statement, in which the query's name stands ``at`` an offset.

        Raises
        ------
        GraphDBError
            The query is wrong, a name is taken, or delta plans do not maintain what is to have no table.
        """
        definitions.refuse_taken(raw, definition, text, at)
        self.standing(raw)
        self._former.forget()  # without a continuous query, nobody learns of changes
        each = Standing(definition)
        each.why = each.never
        if each.why is None:
            self.bind(each, self._snapshot())
        if each.why is not None:
            each.labels = labels_read(each.query, self._snapshot(), definition.text)
        if each.why is not None and definition.watch is not None:
            definition = each.definition = replace(definition, stored=True)
        if each.why is not None and not definition.stored:
            raise NotSupportedError(
                f"only what delta plans maintain can do without a table, and {each.why}",
                text=text,
                position=at,
                hint="leave out table = false",
            )
        if definition.stored or each.accumulators is not None or each.window is not None:
            begun = time.perf_counter()
            self._whole.make(raw, each)
            self._note(raw, each, begun)
        else:
            with self._rows(raw, each, each.branches[0], ()) as rows:
                rows.make_none(FRESH)
        answer = Answer(raw, definition)
        for name in answer.names():
            if name.lower() in ("batch", "change"):
                raise BindError(
                    f"a column of a continuous query cannot be called '{name}': its table of changes has one",
                    text=text,
                    position=at,
                    hint=f"RETURN … AS {name}_",
                )
        answer.create()
        self._drop(raw, each)
        definitions.write(raw, definition)
        self._state.observed.redefine()
        self._standing[definition.number] = each
        return each

    def _budget(self, answer: Answer, each: Standing, rows: int) -> None:
        """Note that so many rows of changes came, and drop old ones as the query's options have it."""
        own, now = each.definition, time.monotonic()
        each.stored_rows = answer.rows() if each.stored_rows is None else each.stored_rows + rows
        due = each.stored_rows > own.changes + own.changes // _EXCESS
        if own.retention is not None and now - each.looked > _AGED:
            each.looked, due = now, True
        if due:
            answer.prune()
            each.stored_rows = answer.rows()

    @staticmethod
    def _drop(raw: duckdb.DuckDBPyConnection, each: Standing) -> None:
        """Drop what a batch made for a query."""
        for table in (ADDED, REMOVED, FRESH, FORMER, *(TABLES if each.grouping is not None else ())):
            execute(raw, f"DROP TABLE IF EXISTS {table}")

    @staticmethod
    def _broken(each: Standing, error: GraphDBError) -> GraphDBError:
        """Return what to raise where a continuous query fails: its error, which names it."""
        if isinstance(error, (QueryTimeout, QueryInterrupted)):
            return error
        name, why = each.definition.name, placed(error, each.definition.text)
        return ExecutionError(
            f"the continuous query '{name}' cannot be brought up to date, so nothing was changed: {why}",
            hint=f"DROP CONTINUOUS QUERY {name}, or create it anew",
        )
