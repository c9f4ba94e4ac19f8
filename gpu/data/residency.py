"""Which part of the data graph stands on the device, where not all of it fits its budget.

As long as what a plan reads fits, all of it is copied.  Else the lists of neighbours are copied by pages
(:mod:`graphdb.gpu.data.pages`): those that are expected to be read most stand on the device, the others stay in host
memory, and kernels read them there.  Offsets, by which lists are found, are small and read all the time: they are
copied.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common.classes.records import dataclass
from graphdb.common.errors import DeviceError, MemoryLimitError
from graphdb.gpu.card import Rates
from graphdb.gpu.data.in_place import SPANS
from graphdb.gpu.data.memory import DeviceMemory
from graphdb.gpu.data.pages import Driver, Floats, PagedArray, heat, hottest, pages_of
from graphdb.plan.physical import PhysicalPlan
from graphdb.storage.graph.derived.orientation import Oriented
from graphdb.storage.graph.in_place.spans import Spans
from graphdb.storage.graph.pcsr import Partition

Ints = NDArray[np.int64]

WHOLE = 0.75
"""Of the budget, so much is for a graph that is copied wholly, …"""
PAGED = 0.5
"""… and so much for the pages of one that is not; the rest is for what runs make."""
LOOKED_UP = 2.5
"""Elements that come over the link, by their bytes, for each that is scanned: with those that it is compared with where
caches do not hold them, as measured (triangles of R-MAT graphs)."""


Runs = tuple[Ints, Ints, Ints]
"""Where lists begin, in order, how long they are, and how often each is expected to be read."""


@dataclass(frozen=True, slots=True)
class Lists:
    """An array that is copied by pages where not everything fits, and what is copied beside it.

    Attributes
    ----------
    elements
        The elements of all lists.
    beside
        The arrays by which lists are found.
    runs
        Tells where the lists are; None for elements that are hardly ever read.
    spans
        What changes the lists in place: copies are of it.
    """

    elements: NDArray[Any]
    beside: tuple[NDArray[Any], ...]
    runs: Callable[[], Runs] | None
    spans: Spans | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return self.elements.nbytes + sum(array.nbytes for array in self.beside)

    def heat(self, page: int) -> Floats:
        """Return how many elements of each page are expected to be read."""
        if self.runs is None:
            return np.zeros(pages_of(self.elements, page))
        return heat(*self.runs(), len(self.elements), self.elements.itemsize, page)


def lists_of(partition: Partition) -> list[Lists]:
    """Return what a plan may read of a partition: the codes of edges only where it asks which edges there are."""

    def runs() -> Runs:
        begins, lengths = partition.ranges()
        order = np.argsort(begins)
        return begins[order], lengths[order], lengths[order]

    codes = [array for array in (partition.code_offsets, partition.codes) if array is not None]
    spans = partition.spans
    return [
        Lists(partition.neighbours, (partition.offsets,), runs, spans),
        *(Lists(each, (), None, spans) for each in codes),
    ]


def lists_of_oriented(oriented: Oriented) -> Lists:
    """Return what is read of an oriented graph: a list once for each list that its vertex is in, and for itself."""

    def runs() -> Runs:
        lengths = np.diff(oriented.offsets)
        times = 1 + np.bincount(oriented.neighbours, minlength=len(lengths))
        return oriented.offsets[:-1], lengths, times

    return Lists(oriented.neighbours, (oriented.offsets,), runs)


def lists_of_plan(plan: PhysicalPlan, counting: bool) -> list[Lists]:
    """Return what a run of a plan (or with ``counting``, a count) reads, each array once."""
    if counting and plan.clique is not None:
        return [lists_of_oriented(plan.clique.graph)]
    found = [lists for each in plan.partitions for lists in lists_of(each)]
    return list({id(each.elements): each for each in found if each.elements.size}.values())


@dataclass(frozen=True, slots=True)
class _Placement:
    """Which pages of an array stand on the device, and the share of reads that they are expected to take."""

    array: weakref.ref[NDArray[Any]]
    resident: NDArray[np.bool_]
    here: float
    everywhere: float


class Residency:
    """Which arrays are copied by pages."""

    def __init__(self, memory: DeviceMemory) -> None:
        self._memory = memory
        self._driver: Driver | None = None
        self._tried = False
        self._placed: dict[int, _Placement] = {}

    @property
    def driver(self) -> Driver | None:
        """The driver's virtual memory; None where it maps no host memory."""
        if not self._tried:
            self._tried = True
            try:
                with self._memory.active():
                    self._driver = Driver(self._memory.number)
            except DeviceError:
                self._driver = None
        return self._driver

    def fits(self, lists: Sequence[Lists]) -> bool:
        """Whether all of them can be copied."""
        return sum(each.nbytes for each in lists) < WHOLE * self._memory.budget

    def possible(self, lists: Sequence[Lists]) -> bool:
        """Whether they can be read, wholly or by pages."""
        beside = sum(array.nbytes for each in lists for array in each.beside)
        return self.fits(lists) or (beside < PAGED * self._memory.budget and self.driver is not None)

    def place(self, lists: Sequence[Lists]) -> None:
        """Choose the pages that are copied, where not everything fits; what is copied already stays as it is."""
        if self.fits(lists) or (driver := self.driver) is None:
            return
        fresh = [each for each in lists if each.elements.size and not self._known(each.elements)]
        fresh = [each for each in fresh if not self._copied(each)]
        if not fresh:
            return
        placed = [known.resident for each in lists if (known := self._known(each.elements)) is not None]
        taken = sum(each.elements.nbytes for each in lists if self._copied(each))
        taken += sum(array.nbytes for each in lists for array in each.beside)
        taken += driver.page * sum(int(np.count_nonzero(resident)) for resident in placed)
        heats = [each.heat(driver.page) for each in fresh]
        quota = int(PAGED * self._memory.budget - taken) // driver.page
        for each, heats_of, resident in zip(fresh, heats, hottest(heats, quota), strict=True):
            array, key = each.elements, id(each.elements)
            assert len(resident) == pages_of(array, driver.page)
            gone = weakref.ref(array, lambda _, key=key: self._placed.pop(key, None))  # type: ignore[misc]
            self._placed[key] = _Placement(gone, resident, float(heats_of[resident].sum()), float(heats_of.sum()))

    def require(self, lists: Lists) -> str:
        """Choose the pages of lists that are copied; return where they are (:meth:`describe`).

        Raises
        ------
        MemoryLimitError
            What is read beside them does not fit the budget.
        """
        if not self.possible([lists]):
            raise MemoryLimitError(
                f"the vertices of the graph's labels do not fit {self._memory.budget:,} bytes on the device",
                hint='raise device_memory, or use device="cpu"',
            )
        self.place([lists])
        return self.describe([lists])

    def paged(self, array: NDArray[Any]) -> PagedArray | None:
        """Return a copy by pages of an array that was placed; None for one that is copied wholly."""
        known, driver = self._known(array), self.driver
        if known is None or driver is None:
            return None
        return PagedArray(self._memory, driver, array, known.resident)

    def is_paged(self, array: NDArray[Any]) -> bool:
        """Whether an array was placed, and is copied by pages."""
        return self._known(array) is not None

    def away(self, lists: Sequence[Lists]) -> float:
        """Return the share of what is read of some lists that is expected to come from host memory."""
        known = [found for each in lists if (found := self._known(each.elements)) is not None]
        return _away(known)

    def away_seconds(self, lists: Sequence[Lists], plan: PhysicalPlan, rates: Rates) -> float:
        """Return how much longer a run of a plan is expected to take for what comes from host memory."""
        element = LOOKED_UP * np.dtype(plan.dtype).itemsize
        return self.away(lists) * plan.cost * element / rates.linked

    def describe(self, lists: Sequence[Lists]) -> str:
        """Return how much of some lists stands on the device, as a phrase for EXPLAIN; empty where all of it does."""
        return self._text([found for each in lists if (found := self._known(each.elements)) is not None])

    @property
    def summary(self) -> str:
        """How much of all lists that are copied by pages stands on the device; empty where there are none."""
        return self._text([each for each in list(self._placed.values()) if each.array() is not None])

    def _text(self, known: Sequence[_Placement]) -> str:
        if not known or self.driver is None:
            return ""
        pages = sum(len(each.resident) for each in known)
        here = sum(int(np.count_nonzero(each.resident)) for each in known)
        size = pages * self.driver.page
        return (
            f"{here / pages:.0%} of {size / 2**20:,.0f} MiB of lists on the device,"
            f" {_away(known):.0%} of the reads from host memory"
        )

    def _known(self, array: NDArray[Any]) -> _Placement | None:
        found = self._placed.get(id(array))
        return found if found is not None and found.array() is array else None

    def _copied(self, lists: Lists) -> bool:
        """Whether the neighbours were copied wholly, by a plan that read less."""
        array = lists.elements
        if self._known(array) is not None:
            return False
        if lists.spans is not None and self._memory.is_cached(SPANS, lists.spans):
            return True
        return self._memory.is_cached(f"array {array.dtype.name}", array)


def _away(known: Sequence[_Placement]) -> float:
    everywhere = sum(each.everywhere for each in known)
    return 1 - sum(each.here for each in known) / everywhere if everywhere else 0.0
