"""One statement in the evaluator: what all its parts share."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from graphdb.common.errors import ParameterError
from graphdb.common.stopping import checked
from graphdb.common.values.decimals import fits, no_decimal, shortest
from graphdb.common.values.elements import Node
from graphdb.common.values.temporal import Temporal
from graphdb.common.values.temporal_python import from_python
from graphdb.common.values.terms import LITERAL_BASE
from graphdb.common.values.types import INT64
from graphdb.evaluate.memory import MemoryWatch
from graphdb.evaluate.statement_names import StatementNames
from graphdb.evaluate.subqueries import Prepare, Subqueries
from graphdb.evaluate.values import Several, Vertex, group_key
from graphdb.evaluate.view import View
from graphdb.grammar import syntax as ast
from graphdb.plan.executor import Control
from graphdb.relational.snapshot import Snapshot
from graphdb.sql.constants import from_numpy, passed_instead

if TYPE_CHECKING:
    from graphdb.procedures.registry import Procedures
    from graphdb.relational.paths.run import PathRun
    from graphdb.relational.program import Program
    from graphdb.relational.projection.relation import Relation
    from graphdb.storage.graph.changes import Changes
    from graphdb.storage.statistics.known import KnownStatistics

Row = dict[str, Any]
"""Values by name."""
Item = TypeVar("Item")

_PLAIN = frozenset({bool, int, float, str, type(None)})
"""Types of values that are no vertices, and have none inside."""

_ALWAYS_GIVEN = _PLAIN - {int}
"""Types of which the evaluator knows every value."""

_INTEGERS = frozenset({int})
_BEYOND = 1 << 63
"""The first positive integer that is none of 64 bits."""

_OFTEN = 1 << 4
"""Rows that are evaluated between two questions whether to go on: expressions may be long."""


class Context(StatementNames):
    """The state of names and data, the statement's text and parameters, and who runs its subqueries.

    Parameters
    ----------
    snapshot_of
        Returns the present snapshot: writing makes the one before stale.
    changed
        Makes the snapshot stale, by these changes, after which this is known of the file.
    prepare
        Prepares the subqueries that are run for single rows.
    new_control
        Makes the control of one match: its timeout, and who may cancel it.
    memory
        Watches how much the rows take, where they are all there at once.
    """

    def __init__(
        self,
        snapshot_of: Callable[[], Snapshot],
        changed: Callable[[Sequence[Changes | None], KnownStatistics | None], None],
        prepare: Prepare,
        text: str,
        arguments: Mapping[str, object],
        new_control: Callable[[], Control],
        memory: MemoryWatch | None = None,
    ) -> None:
        super().__init__(snapshot_of, text)
        self.changed = changed
        self._prepare = prepare
        self.subqueries = Subqueries(self, prepare)
        self.arguments = arguments
        self.given_arguments: dict[str, Any] = {}
        """Those of :meth:`argument` that were asked for."""
        self.new_control = new_control
        self._memory = memory
        self._steps = 0
        # All clocks of one statement show when it began, in nanoseconds since 1970.
        self.started = time.time_ns()
        self.view = View(self)
        self._numbers = 0

    def of_run(self, new_control: Callable[[], Control]) -> Context:
        """Return the context of one more run over the same data."""
        memory = None if self._memory is None else self._memory.again()
        found = Context(self._snapshot_of, self.changed, self._prepare, self.text, self.arguments, new_control, memory)
        found.started = self.started
        return found

    def begin_again(
        self,
        prepare: Prepare,
        arguments: Mapping[str, object],
        new_control: Callable[[], Control],
        memory: MemoryWatch | None,
    ) -> None:
        """Begin another run of the statement, which is at :meth:`rest`: nothing that was read before is known."""
        self._prepare, self.subqueries = prepare, Subqueries(self, prepare)
        self.arguments, self.new_control, self._memory = arguments, new_control, memory
        self._steps = self._numbers = 0
        self.started = time.time_ns()

    def rest(self) -> None:
        """Forget all that belongs to a run, which has ended."""
        self.forget_statement()
        self.given_arguments.clear()
        self.view.forget()
        self.view.deleted.clear()
        self.arguments, self._memory = {}, None
        self.new_control = Control
        self._prepare = _at_rest
        self.subqueries = Subqueries(self, _at_rest)

    def watched(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield the items of a loop in Python, as long as there is time and nobody has cancelled the statement.

        Raises
        ------
        QueryTimeout, ExecutionError, MemoryLimitError
            When the time is over, when cancelled, and when the rows take too much memory.
        """
        control = self.new_control()
        for i, item in enumerate(items):
            if i % _OFTEN == 0:
                self.check(control)
            yield item

    def stepped(self, items: Sequence[Item]) -> Iterable[Item]:
        """Return the items of a list within a row, to be gone through: short lists of many rows are asked about
        together.
        """
        if len(items) >= _OFTEN:
            return self.watched(items)
        self._steps += len(items)
        if self._steps >= _OFTEN:
            self._steps = 0
            self.check(self.new_control())
        return items

    def check(self, control: Control) -> None:
        """Raise if the statement must stop now; see :meth:`watched`."""
        control.check()
        if self._memory is not None:
            self._memory.check()

    @property
    def procedures(self) -> Procedures:
        """What CALL knows."""
        return self._snapshot_of().procedures

    # --- values

    def given(self, value: object, node: ast.Expression) -> Any:
        """Return a parameter's value as the evaluator knows it."""
        kind = value.__class__
        if kind in _ALWAYS_GIVEN or (kind is int and -_BEYOND <= value < _BEYOND):  # type: ignore[operator]
            return value
        if kind is list:
            return self._given_list(value, node)  # type: ignore[arg-type]
        value = from_numpy(value)
        match value:
            case bool() | float() | str() | None | Vertex() | Temporal():
                return value
            case int() if value in INT64:
                return value
            case list() | tuple() | set() | frozenset():
                return [self.given(item, node) for item in checked(value)]
            case dict():
                return {str(key): self.given(item, node) for key, item in checked(value.items())}
            case Node():
                return self.resource(value.iri)
        temporal = from_python(value)
        if temporal is not None:
            return temporal
        if isinstance(value, Decimal) and fits(value):
            return Decimal(shortest(value))
        wrong, hint = f"a value of type {type(value).__name__} cannot be passed", None
        if isinstance(value, int | Decimal):
            wrong = f"{value} does not fit 64 bits" if isinstance(value, int) else no_decimal(value)
        else:
            hint = passed_instead(value)
        raise ParameterError(wrong, text=self.text, position=node.span.start, hint=hint)

    def _given_list(self, items: list[object], node: ast.Expression) -> list[Any]:
        """Return the items of a list as the evaluator knows them."""
        kinds, plain = set(map(type, items)), cast("list[int]", items)  # in C: lists may be long
        if kinds <= _ALWAYS_GIVEN or (kinds == _INTEGERS and min(plain) >= -_BEYOND and max(plain) < _BEYOND):
            return [*items]
        return [self.given(item, node) for item in checked(items)]

    def argument(self, node: ast.Parameter) -> Any:
        """Return the value of a parameter that has one, as the evaluator knows it: all places of one share it."""
        given, name = self.given_arguments, node.name
        if name not in given:
            given[name] = self.given(self.arguments[name], node)
        return given[name]

    def valued(self, value: Any) -> Any:
        """Return a value with those of literals in the place of vertices that are some, in lists and maps, too."""
        if value.__class__ in _PLAIN:
            return value
        match value:
            case Vertex() if value.id >= LITERAL_BASE:
                return self.view.literal(value.id)
            case Several():
                return value
            case list():
                if _PLAIN.issuperset(map(type, value)):  # in C: lists may be long
                    return value
                return [self.valued(item) for item in value]
            case dict():
                return {key: self.valued(item) for key, item in value.items()}
        return value

    def group_key(self, value: Any) -> Any:
        """Return what is equal for equivalent values, literals by their values."""
        return group_key(self.valued(value))

    # --- the engine's own names

    def fresh(self, what: str) -> str:
        """Return a name that no user can write."""
        self._numbers += 1
        return f"#{what}{self._numbers}"

    def vertices(self, terms: Any) -> Any:
        """Return the vertex ids of term ids, as an array."""
        return self.snapshot.store.to_vertices(np.asarray(terms, np.int64))


def _at_rest(query: ast.Composite, start: Relation) -> tuple[PathRun, Program]:
    raise AssertionError("no statement runs")
