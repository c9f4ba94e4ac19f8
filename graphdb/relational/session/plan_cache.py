"""The plan cache: statements that are ready to run again, until what they read of the data changes.

There is one cache, and one key: a statement's text, its position in the text, and the names and types of its arguments.
What an entry depends on beyond the key stands in it.  A plan for given arguments is found by their values; a
general plan takes their values when it runs.  All of them depend on the data: a write evicts those that it concerns.

A text that is nothing but one count is found by the text alone (:meth:`PlanCache.counting`), so that a repeated count
neither parses nor looks at arguments.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from graphdb.common.caches import ByIdentity
from graphdb.sql.long_texts import is_long

if TYPE_CHECKING:
    from graphdb.plan.physical import PhysicalPlan
    from graphdb.relational.snapshot import Snapshot
    from graphdb.storage.graph.changes import Changes

Plan = TypeVar("Plan")
Ids = NDArray[np.int64]
Signature: TypeAlias = tuple[int, tuple[str, ...], tuple[object, ...]]
"""A statement's position in its text, and the names and types of its arguments, long texts apart from others."""
Values: TypeAlias = tuple[object, ...]

MAX_PLANS = 256
"""Plans of all texts, at most."""

MAX_CHARACTERS = 1 << 18
"""Characters of all texts, at most: garbage collections walk over what is prepared of them, an object or two each."""

MAX_SPECIALISED = MAX_PLANS // 2
"""Plans of one statement for different values of its arguments, at most."""

_EXACT = frozenset((str, int, bool, bytes, type(None)))
"""Types of which equal values are the same value."""

_ITEMS = 32
"""Items of a list by which plans are found, at most."""

_WRITTEN = _EXACT | {float}
"""Types whose values are the same where they are written alike."""

STEP_BYTES = 1 << 22
"""Bytes of a step's plan up to which it is cached: longer ones take longer to run."""

_GIVEN = 1 << 20
"""Bytes of vertices up to which the plan of a step that starts from them is cached."""


class StepPlans:
    """The last plan of each step that starts from rows: for the same vertices, over the same data, it is the plan.

    ``resized`` is called with the bytes that they take more, or less, than before.
    """

    def __init__(self, resized: Callable[[int], None] = lambda change: None) -> None:
        self._last: dict[str, tuple[tuple[Ids, ...], PhysicalPlan]] = {}
        self._sizes: dict[str, int] = {}
        self._resized = resized

    def get(self, step: str, given: Sequence[Ids]) -> PhysicalPlan | None:
        """Return the last plan of a step, if that was for the same vertices."""
        vertices, plan = self._last.get(step, ((), None))
        if len(given) != len(vertices) or sum(ids.nbytes for ids in given) > _GIVEN:
            return None
        return plan if all(map(np.array_equal, given, vertices)) else None

    def put(self, step: str, given: Sequence[Ids], plan: PhysicalPlan, own_bytes: int) -> None:
        """Cache the plan of a step, of so many bytes of its own, for some vertices, if both are small."""
        given_bytes = sum(ids.nbytes for ids in given)
        if own_bytes <= STEP_BYTES and given_bytes <= _GIVEN:
            self._last[step] = tuple(ids.copy() for ids in given), plan
            size = own_bytes + given_bytes
            change = size - self._sizes.get(step, 0)
            self._sizes[step] = size
            self._resized(change)


class Reads(Protocol):
    """What of the data a plan depends on; see :class:`graphdb.relational.session.reads.Reads`."""

    @property
    def unplanned(self) -> Any:
        """What is left of a prepared statement that a change concerns: it is to be planned anew; None for nothing."""

    def concerned(self, changes: Iterable[Changes], type_label: int | None, resources: int) -> bool:
        """Whether some changes concern it, of a graph of so many resources before."""

    def rebound(self, changes: Iterable[Changes], retyped: frozenset[int], type_label: int | None) -> bool:
        """Whether after some changes its pattern may be bound otherwise: then nothing is left of it.

        Properties of the labels ``retyped`` may have values of other types than before.
        """


FindReads: TypeAlias = Callable[[], "Reads | None"]


def _found() -> Reads | None:
    """In the place of what finds out what a plan depends on, once that is done: None where it may be anything."""


@dataclass(eq=False)  # a generic class with weakref_slot cannot be referred to weakly in Python 3.12.3
class CachedPlan(Generic[Plan]):
    """A plan, what it takes of memory in bytes, and the plans of its steps that start from rows."""

    plan: Plan
    size: int
    steps: StepPlans
    depends: FindReads
    """Finds out what of the data it depends on, at the first change: few plans live to see one."""
    reads: Reads | None = None
    """What that is, once it is found out; None where it may be anything."""
    planned: bool = True
    """Whether it is as good as new; else a change has concerned it since (:attr:`Reads.unplanned`)."""

    def concerned(self, concerned: Callable[[Reads], bool]) -> bool:
        """Whether a change concerns it, or may do so."""
        if self.reads is None:
            self.reads = self.depends()
            self.depends = _found  # what finds it out refers to the plan, which may be dropped before the rest
        return self.reads is None or concerned(self.reads)


@dataclass(slots=True)
class _Statement(Generic[Plan]):
    """The plans of a statement for arguments of some types: by their values, and general ones by numbers of paths."""

    by_values: OrderedDict[Values, CachedPlan[Plan]] = field(default_factory=OrderedDict)
    general: dict[tuple[int, ...], CachedPlan[Plan]] = field(default_factory=dict)


@dataclass(slots=True)
class _Text(Generic[Plan]):
    """The plans of the statements of a text."""

    statements: dict[Signature, _Statement[Plan]] = field(default_factory=dict)
    count: Plan | None = None
    """The plan of a text that is one count without arguments."""
    size: int = 0


class PlanCache(Generic[Plan]):
    """Plans by statement and types of arguments; the texts used least recently are evicted.

    Parameters
    ----------
    limit_bytes
        Bytes that the plans may take together, each at least its share of :data:`MAX_PLANS`; the text used last stays.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._least = limit_bytes // MAX_PLANS
        self._bytes = self._characters = 0
        self._texts: OrderedDict[str, _Text[Plan]] = OrderedDict()
        self.checked: ByIdentity[bool] = ByIdentity(MAX_PLANS)
        """Statements that write of which nothing is wrong, as long as names stand for what they do."""
        self.compiled: ByIdentity[Any] = ByIdentity(MAX_PLANS)
        """What such statements have compiled in Python, which no run uses."""

    def __len__(self) -> int:
        """Return the number of plans for given arguments."""
        statements = (statement for text in self._texts.values() for statement in text.statements.values())
        return sum(len(statement.by_values) for statement in statements)

    def counting(self, text: str) -> Plan | None:
        """Return the plan of a text that is one count; see :meth:`put_count`."""
        found = self._texts.get(text)
        if found is None or found.count is None:
            return None
        self._texts.move_to_end(text)
        return found.count

    def put_count(self, text: str, plan: Plan) -> None:
        """Have a text be found by :meth:`counting`: it is one statement, cached already, which only counts."""
        if (found := self._texts.get(text)) is not None:
            found.count = plan

    def get(self, text: str, position: int, arguments: Mapping[str, object]) -> CachedPlan[Plan] | None:
        """Return the plan of a statement for these values of its arguments.

        Raises
        ------
        TypeError
            A value cannot be hashed.
        """
        values = _values(arguments)
        found = self._texts.get(text)
        statement = None if found is None else found.statements.get(_signature(position, arguments))
        if found is None or statement is None:
            hash(values)  # or the plan could not be cached later
            return None
        if (cached := statement.by_values.get(values)) is None or not cached.planned:
            return None
        self._texts.move_to_end(text)
        statement.by_values.move_to_end(values)
        return cached

    def unplanned(self, text: str, position: int, arguments: Mapping[str, object]) -> Plan | None:
        """Return what is left of a statement's plan for these values since a change concerned it, if anything is."""
        found = self._texts.get(text)
        statement = None if found is None else found.statements.get(_signature(position, arguments))
        cached = None if statement is None else statement.by_values.get(_values(arguments))
        return None if cached is None or cached.planned else cached.plan

    def put(
        self,
        text: str,
        position: int,
        arguments: Mapping[str, object],
        plan: Plan,
        size: int,
        depends: FindReads = lambda: None,
    ) -> StepPlans:
        """Cache the plan of a statement, of ``size`` bytes, for these values; return what caches its steps' plans."""
        found = self._used(text)
        signature, values = _signature(position, arguments), _values(arguments)
        by_values = found.statements.setdefault(signature, _Statement()).by_values
        replaced = by_values.pop(values, None)

        def resized(change: int) -> None:  # it refers to nothing that refers to it, so that plans go at once
            text_now = self._texts.get(text)
            statement = None if text_now is None else text_now.statements.get(signature)
            mine = None if statement is None else statement.by_values.get(values)
            if text_now is not None and mine is not None and mine is own():
                mine.size += change
                self._resize(text_now, change)
                self._evict()

        cached = by_values[values] = CachedPlan(plan, max(size, self._least), StepPlans(resized), depends)
        own = ref(cached)
        self._resize(found, cached.size - (0 if replaced is None else replaced.size))
        if len(by_values) > MAX_SPECIALISED:
            self._resize(found, -by_values.popitem(last=False)[1].size)
        self._evict()
        return cached.steps

    def general(
        self, text: str, position: int, arguments: Mapping[str, object], counts: tuple[int, ...]
    ) -> Plan | None:
        """Return the plan of a statement that takes the values of its arguments when it runs.

        ``counts`` are the numbers of paths that the arguments say (``SHORTEST $k``): the plan is for these.
        """
        found = self._texts.get(text)
        statement = None if found is None else found.statements.get(_signature(position, arguments))
        found_general = None if statement is None else statement.general.get(counts)
        return None if found_general is None else found_general.plan

    def put_general(
        self,
        text: str,
        position: int,
        arguments: Mapping[str, object],
        counts: tuple[int, ...],
        plan: Plan,
        size: int,
        depends: FindReads = lambda: None,
    ) -> None:
        """Cache a plan of ``size`` bytes to be found for other values of the arguments, too."""
        found = self._used(text)
        general = found.statements.setdefault(_signature(position, arguments), _Statement()).general
        replaced = general.get(counts)
        cached = general[counts] = CachedPlan(plan, max(size, self._least), StepPlans(), depends)
        self._resize(found, cached.size - (0 if replaced is None else replaced.size))
        self._evict()

    def follow(self, former: Snapshot | None, changes: Sequence[Changes | None]) -> None:
        """Evict the plans that changes concern: all where one is not known, or names stand for something else now.

        ``former`` is the state of the data before them; None where that is not known.
        """
        if not changes:
            return
        known = [change for change in changes if change is not None]
        counted = [change.counted for change in known if change.counted is not None]
        if (
            former is None
            or len(counted) < len(changes)
            or not all(former.names.stand(each.edge_labels, each.vertex_labels) for each in counted)
        ):
            self.clear()
            return
        graph = former.graph
        retyped = frozenset[int]().union(*(former.names.written_types(each.edge_labels) for each in counted))
        self.retain(
            lambda reads: reads.concerned(known, graph.type_label, graph.resources),
            lambda reads: reads.rebound(known, retyped, graph.type_label),
        )

    def retain(self, concerned: Callable[[Reads], bool], rebound: Callable[[Reads], bool]) -> None:
        """Evict the plans that a change of the data concerns, and those of which that is not known.

        What such a change leaves of a statement that only counts is found by :meth:`unplanned`.
        """
        for name, text in list(self._texts.items()):
            for signature, statement in list(text.statements.items()):
                cached_plans: tuple[dict[Any, CachedPlan[Plan]], ...] = (statement.by_values, statement.general)
                for plans in cached_plans:
                    for key, cached in list(plans.items()):
                        if cached.planned and not cached.concerned(concerned):
                            continue
                        reads = cached.reads
                        left = None if reads is None or rebound(reads) else reads.unplanned
                        if left is None:
                            del plans[key]
                            self._resize(text, -cached.size)
                        else:
                            self._resize(text, self._least - cached.size)
                            cached.plan, cached.size, cached.planned = left, self._least, False
                if not statement.by_values and not statement.general:
                    del text.statements[signature]
            every = (each for statement in text.statements.values() for each in statement.by_values.values())
            if not any(each.planned for each in every):
                text.count = None
            if not text.statements:
                del self._texts[name]
                self._characters -= len(name)

    def clear(self) -> None:
        """Drop all plans: it is not known what has changed, or names have, or what else they depend on."""
        self._texts.clear()
        self.checked.clear()
        self.compiled.clear()
        self._bytes = self._characters = 0

    def _used(self, text: str) -> _Text[Plan]:
        """Return the plans of a text, which is the one used last."""
        found = self._texts.get(text)
        if found is None:
            found = self._texts[text] = _Text()
            self._characters += len(text)
        self._texts.move_to_end(text)
        return found

    def _evict(self) -> None:
        while (self._bytes > self._limit or self._characters > MAX_CHARACTERS) and len(self._texts) > 1:
            evicted, plans = self._texts.popitem(last=False)
            self._bytes -= plans.size
            self._characters -= len(evicted)

    def _resize(self, text: _Text[Any], change: int) -> None:
        text.size += change
        self._bytes += change


def _signature(position: int, arguments: Mapping[str, object]) -> Signature:
    types: tuple[object, ...] = tuple(map(type, arguments.values()))
    if str in types:
        types = tuple("long" if is_long(value) else type(value) for value in arguments.values())
    return position, tuple(arguments), types


def _values(arguments: Mapping[str, object]) -> Values:
    """Return the values of arguments so that only the same ones are equal: 0.0 is no -0.0, 10:00 in UTC no 11:00+01."""
    return tuple([value if type(value) in _EXACT else _distinct(value) for value in arguments.values()])


def _distinct(value: object) -> object:
    """Return what only the same value equals; of a list that is long, or holds other values than plain ones, itself."""
    if type(value) is list and len(value) <= _ITEMS:
        return repr(value) if all(type(item) in _WRITTEN for item in value) else value
    return value, repr(value)
