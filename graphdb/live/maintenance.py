"""Brings the answers of continuous queries up to date, within the transaction that changes the graph."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphdb.common.errors import (
    BindError,
    ExecutionError,
    GraphDBError,
    NotSupportedError,
    QueryInterrupted,
    QueryTimeout,
    placed,
)
from graphdb.common.stopping import check_stop
from graphdb.live import definitions
from graphdb.live.aggregates.groups import AGAIN, Groups
from graphdb.live.answers import FRESH, NOTHING, Answer, Written
from graphdb.live.binding import Binder
from graphdb.live.definitions import Definition
from graphdb.live.engine import Engine
from graphdb.live.former import Former
from graphdb.live.matches.concerned import labels_read
from graphdb.live.matches.delta import Net
from graphdb.live.matches.matching import Batch
from graphdb.live.matches.reaching import Everywhere
from graphdb.live.prepared import PreparedQueries
from graphdb.live.rows.anew import RowsAnew
from graphdb.live.rows.answer_writer import AnswerWriter
from graphdb.live.rows.gathered import Gathered
from graphdb.live.rows.of_matches import Rows
from graphdb.live.rows.whole import WholeAnswers
from graphdb.live.standing import UNCONCERNED, Branch, Standing, Took
from graphdb.plan.executor import Overran
from graphdb.sql.computing import Beforehand

if TYPE_CHECKING:
    import duckdb

    from graphdb.relational.session.state import State
    from graphdb.relational.snapshot import Snapshot
    from graphdb.storage.graph.changes import Changes

Ints = NDArray[np.int64]


class Maintenance:
    """Maintains the continuous queries of one open database; see :class:`graphdb.relational.session.observed`."""

    def __init__(self, state: State, engine: Engine) -> None:
        self._state = state
        self.engine = engine
        self._former = Former(state)
        self._prepared = PreparedQueries()
        self._binder = Binder(engine, self._prepared, self._former)
        self._writer = AnswerWriter(WholeAnswers(state, engine, self._former))
        self._standing: dict[int, Standing] = {}
        self._epoch = -1
        self._definitions = -1
        """What :attr:`.Observed.definitions` was when these queries, and the number of the last batch, were read."""
        self._last_batch = 0

    # --- which there are

    def standing(self, raw: duckdb.DuckDBPyConnection, found: Sequence[Definition] | None = None) -> list[Standing]:
        """Return the continuous queries of the file, which may be ``found`` already."""
        if self._epoch != self._state.observed.epoch:
            epoch = self._state.observed.epoch
            self._former.forget()
            for each in self._standing.values():
                each.forget()
                each.stored_rows = None
            self._epoch = epoch  # last: Ctrl-C meanwhile leaves the rest to whoever asks next
        found = definitions.read(raw) if found is None else found
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
                    self._writer.prune(Answer(raw, each.definition), each, sum(written))

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
            why, written = self._writer.write(raw, each, answer, batch, why)
        places = {part.matcher.place for part in each.parts if part.matcher is not None} - {"cpu"}
        place = ", ".join(sorted(places)) or "cpu"
        strategy = "delta plans" if place == "cpu" else f"delta plans on {place}"
        strategy = strategy if why is None else f"compared: {why}"
        number = batch if any(written) else 0
        each.took.append(Took(number, updates, *written, strategy, time.perf_counter() - started))
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
        except (NotSupportedError, Beforehand):  # of vertices, as coalesce(a.k, 0) of values that are several by now
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
            self._binder.bind(each, snapshot)
            return "not all changes are known"
        if any(part.delta is None for part in each.parts):
            with self._former.opened() as state:
                self._binder.bind(each, state)
        bound = each.bound
        before = [(part.delta, part.resources) for part in each.parts]
        if any(part.concerned(net) for part in each.parts):
            self._binder.bind(each, snapshot)
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
        return self._writer.lacks(raw, each) or batches

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
            self._binder.bind(each, snapshot)
            for part in each.parts if each.why is None else ():
                part.prepare(self.engine, snapshot)
        if each.why is not None:
            each.labels = labels_read(each.query, snapshot, each.definition.text)
        return each

    # --- what is stored

    def create(
        self, raw: duckdb.DuckDBPyConnection, definition: Definition, others: Sequence[Definition], text: str, at: int
    ) -> Standing:
        """Write a new continuous query beside ``others`` with its answer, within the transaction that is open.

        ``text`` is that of the statement, in which the query's name stands ``at`` an offset.

        Raises
        ------
        GraphDBError
            The query is wrong, a name is taken, or delta plans do not maintain what is to have no table.
        """
        definitions.refuse_taken(raw, definition, text, at)
        self.standing(raw, others)
        self._former.forget()  # without a continuous query, nobody learns of changes
        each = Standing(definition)
        each.why = each.never
        if each.why is None:
            self._binder.bind(each, self._snapshot())
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
            self._writer.make(raw, each)
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
        self._writer.drop(raw, FRESH, *([AGAIN] if each.grouping is not None else []))
        definitions.write(raw, definition)
        self._state.observed.redefine()
        self._standing[definition.number] = each
        return each

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
