"""Which part of the data graph stands on the device, where not all of it fits its budget.

As long as what a plan reads fits, all of it is copied.  Else the lists of neighbours are divided
(:mod:`graphdb.gpu.data.divided`), or copied by pages (:mod:`graphdb.gpu.data.pages`) where they are not found by
offsets: what is expected to be read most stands on the device, the rest stays in host memory, and kernels read it
there.  Beside pages, the arrays by which lists are found are copied: they are small and read all the time.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from graphdb.common.errors import DeviceError, MemoryLimitError
from graphdb.gpu.card import Rates
from graphdb.gpu.data.bit_packed import Packing
from graphdb.gpu.data.divided import VertexBlocks, can_be_divided, reads_when_found
from graphdb.gpu.data.in_place import SPANS
from graphdb.gpu.data.memory import DeviceMemory
from graphdb.gpu.data.pages import Driver, Floats, PagedArray, heat, hottest, pages_of
from graphdb.plan.physical import CHECK_COLUMNS, EDGES, EdgeStep, Op, PhysicalPlan, StepColumn, VertexStep
from graphdb.storage.graph.derived.orientation import Oriented
from graphdb.storage.graph.in_place.spans import Spans
from graphdb.storage.graph.pcsr import Partition

Ints = NDArray[np.int64]

WHOLE = 0.75
"""Of the budget, so much is for a graph that is copied wholly, …"""
PAGED = 0.6
"""… and so much for the part of one that is not; the rest is for what runs make."""
TRIPLE, VERTEX, SURELY = 48, 16, 0.1
"""Bytes of a triple and of a vertex in a partition, at most (both ways, with codes); and the share of the budget of
which these are so little that nothing else matters."""
ALONE = 0.95
"""Where a run makes no tables, so much is for that part."""
DIVIDED, IN_FEW_BITS, TABLES, LEVELS = "divided", "divided, in few bits", "search tables", "levels"
"""What copies of divided lists are cached as, and those in few bits; and what searches and joins read of a plan."""
ORIENTED, NARROW, PACKED, CLIQUES = "oriented", "narrow", "packed", "clique levels"
"""What copies of oriented graphs are cached as, these in fewer bytes and in few bits, and what joins read that find
their cliques."""
ADDRESSES = (TABLES, LEVELS, ORIENTED, NARROW, CLIQUES, "partition")
"""How the names of cached copies begin that have addresses of lists."""
FOUND, BESIDE = 256.0, 8.0
"""Bytes that come over the link for a list that is found, at most; and times its own bytes: short lists stand beside
others that are found at about the same time.  As measured: triangles of R-MAT graphs, joins of RDF."""


Runs = tuple[Ints, Ints, NDArray[Any]]
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
    partition
        Whose lists they are, where they can be divided by its vertices.
    """

    elements: NDArray[Any]
    beside: tuple[NDArray[Any], ...]
    runs: Callable[[], Runs] | None
    spans: Spans | None = None
    partition: Partition | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return self.elements.nbytes + sum(array.nbytes for array in self.beside)

    @property
    def original(self) -> object:
        """What a copy is of."""
        return self.elements if self.partition is None else self.partition

    @property
    def beside_bytes(self) -> int:
        """Bytes that have to be copied, however few of the elements are."""
        return 0 if self.partition is not None else sum(array.nbytes for array in self.beside)

    def heat(self, page: int) -> Floats:
        """Return how many elements of each page are expected to be read."""
        if self.runs is None:
            return np.zeros(pages_of(self.elements, page))
        return heat(*self.runs(), len(self.elements), self.elements.itemsize, page)


def lists_of(partition: Partition, coded: bool, spaced: bool = False) -> list[Lists]:
    """Return what a plan may read of a partition: the codes of edges only where it asks which edges there are.

    Those of a candidate space (``spaced``) have offsets of candidates alone, and are not divided.
    """

    def runs() -> Runs:
        begins, lengths = partition.ranges()
        order = np.argsort(begins)
        begins, lengths = begins[order], lengths[order]
        return begins, lengths, reads_when_found(lengths)

    codes = [array for array in (partition.code_offsets, partition.codes) if coded and array is not None]
    spans, divided = partition.spans, None if codes or spaced or not can_be_divided(partition) else partition
    return [
        Lists(partition.neighbours, (partition.offsets,), runs, spans, divided),
        *(Lists(each, (), None, spans) for each in codes),
    ]


def reads_candidate_space(plan: PhysicalPlan) -> bool:
    """Whether some lists are those of a candidate space, which tell of candidates alone."""
    lists = (near for step in plan.steps if isinstance(step, VertexStep) for near in step.neighbours)
    return any(near.relation.pair is not None for near in lists)


def coded_rows(plan: PhysicalPlan) -> frozenset[int]:
    """The partitions, as rows of a plan's table, of which it asks which edges there are."""
    found: frozenset[int] | None = plan.cache.get("coded rows")
    if found is None:
        steps, checks = plan.program.steps, plan.program.checks.reshape(-1, CHECK_COLUMNS)
        bound = steps[steps[:, StepColumn.KIND] == EDGES, StepColumn.PARTITION]
        counted = checks[checks[:, 0] == Op.EDGE_COUNT, 1]
        found = plan.cache["coded rows"] = frozenset([*bound.tolist(), *counted.tolist()])
    return found


def lists_of_oriented(oriented: Oriented) -> Lists:
    """Return what is read of an oriented graph: a list once for each list that its vertex is in, and for itself."""

    def runs() -> Runs:
        return oriented.offsets[:-1], np.diff(oriented.offsets), times_read(oriented)

    return Lists(oriented.neighbours, (offsets_of(oriented),), runs)


def times_read(oriented: Oriented) -> Ints:
    """Return how often the list of each rank is read: int64 [ranks]."""
    return 1 + np.bincount(oriented.neighbours, minlength=len(oriented.offsets) - 1)


def offsets_of(oriented: Oriented) -> NDArray[Any]:
    """Return the offsets of an oriented graph as a device reads them: of 32 bits where these do."""
    return oriented.offsets if oriented.short_offsets is None else oriented.short_offsets


@dataclass(frozen=True, slots=True)
class Expected:
    """Bytes of lists, of those that stand on a device, and of what a run is expected to read of the others."""

    size: int
    here: int
    over: int

    def describe(self, kind: str) -> str:
        """A phrase for EXPLAIN."""
        return (
            f"{self.here / self.size:.0%} of {self.size / 2**20:,.0f} MiB of {kind} lists on the device,"
            f" {self.over / 2**20:,.0f} MiB over the link"
        )


def lists_of_steps(elements: NDArray[Any], offsets: Ints, beside: tuple[NDArray[Any], ...]) -> Lists:
    """Return what steps along edges read: a list once for each neighbour of its vertex, and once for itself.

    ``elements`` are the lists of all vertices, one after the other; ``offsets``, int64 [vertices + 1], their begins.
    """

    def runs() -> Runs:
        lengths = np.diff(offsets)
        return offsets[:-1], lengths, 1 + lengths

    return Lists(elements, beside, runs)


def lists_of_plan(plan: PhysicalPlan, counting: bool) -> list[Lists]:
    """Return what a run of a plan (or with ``counting``, a count) reads, each array once."""
    if counting and plan.clique is not None:
        return [lists_of_oriented(plan.clique.graph)]
    coded, spaced = coded_rows(plan), reads_candidate_space(plan)
    found = [lists for row, each in enumerate(plan.partitions) for lists in lists_of(each, row in coded, spaced)]
    return list({id(each.original): each for each in found if each.elements.size}.values())


def lists_read(plan: PhysicalPlan, counting: bool) -> list[Lists]:
    """What matches of a plan read; its program tells, unless it counts cliques."""
    key = ("lists", counting and plan.clique is not None)
    found: list[Lists] | None = plan.cache.get(key)
    if found is None:
        found = plan.cache[key] = lists_of_plan(plan, counting)
    return found


@dataclass(frozen=True, slots=True)
class Placement:
    """Which parts of lists stand on the device, and the share of reads that they are expected to take.

    Attributes
    ----------
    original
        What is placed: an array, by pages, or a partition, by its offset layer and ``blocks``.
    resident, sizes
        bool and int64 [parts]: which of them stand on the device, and their bytes.
    nbytes
        Bytes on the device.
    here, everywhere
        Elements that are expected to be read of these, and of all.
    """

    original: weakref.ref[Any]
    resident: NDArray[np.bool_]
    sizes: Ints
    nbytes: int
    here: float
    everywhere: float
    blocks: VertexBlocks | None = None
    searched: bool = False
    """Whether it leaves no room for tables: of a search (:mod:`graphdb.gpu.data.searched`), or of cliques."""
    packing: Packing | None = None
    """How neighbours are packed, on the device and in host memory; None: they stand as they are."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts that lists are placed by: pages, or their offset layer and ``blocks``.

    Attributes
    ----------
    heats, sizes
        float64 and int64 [parts]: the reads that are expected of each, and its bytes.
    """

    heats: Floats
    sizes: Ints
    blocks: VertexBlocks | None = None


def copy_of(values: NDArray[Any], dtype: DTypeLike | None = None) -> str:
    """What the copy of an array in a type is cached as."""
    return f"array {np.dtype(dtype or values.dtype).name}"


class Residency:
    """Which arrays are copied by pages."""

    def __init__(self, memory: DeviceMemory) -> None:
        self._memory = memory
        self._driver: Driver | None = None
        self._tried = False
        self._placed: dict[int, Placement] = {}

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

    def surely_fits(self, plan: PhysicalPlan) -> bool:
        """Whether a plan's lists fit by far, by the number of edges alone: no program is written to tell."""
        if plan.origin is None:
            return False
        graph, steps = plan.origin.graph, plan.steps
        near = [each.relation for step in steps if isinstance(step, VertexStep) for each in step.neighbours]
        read = {*near, *(step.relation for step in steps if isinstance(step, EdgeStep))}
        triples = sum(graph.statistics(relation.labels).triples for relation in read if relation.pair is None)
        most = plan.own_bytes + TRIPLE * triples + len(read) * VERTEX * graph.vertices
        return most < SURELY * self._memory.budget

    def possible(self, lists: Sequence[Lists]) -> bool:
        """Whether they can be read, wholly or in parts."""
        if self.fits(lists):
            return True
        beside = sum(each.beside_bytes for each in lists)
        return beside < PAGED * self._memory.budget and self.divides(lists)

    def divides(self, lists: Sequence[Lists]) -> bool:
        """Whether parts of them can stand elsewhere than others."""
        return all(each.partition is not None for each in lists) or self.driver is not None

    def place_for(self, plan: PhysicalPlan, counting: bool) -> list[Lists]:
        """Choose what is copied of the lists that a run (or with ``counting``, a count) reads, and return these."""
        lists, width = lists_read(plan, counting), np.dtype(plan.dtype).itemsize
        scans = (step.scan.nbytes for step in plan.steps if isinstance(step, VertexStep) and step.scan is not None)
        self.place(lists, width * sum(scans) // 8)
        return lists

    def place_alone(self, lists: Sequence[Lists], aside: int = 0, *, others: Sequence[Lists] = ()) -> None:
        """As :meth:`place`, of the lists that a count reads which makes no tables: anew where they, or copies of
        ``others`` that it does not read, leave room for some, unless they are read now.
        """
        copied = [each for each in others if self._memory.is_cached(copy_of(each.elements), each.original)]
        known = [(each, found) for each in (*lists, *copied) if (found := self.placed(each)) is not None]
        placed = [each for each, found in known if not found.searched]
        if placed and not any(self._memory.is_used(each.original) for each in placed):
            self.replace(placed, [])
        self.place(lists, aside, alone=True)

    def place(self, lists: Sequence[Lists], aside: int = 0, *, alone: bool = False) -> None:
        """Choose what is copied, where not everything fits, with so many bytes ``aside`` for what is read beside lists;
        what is copied already stays as it is.  What stands ``alone`` leaves no room for tables.
        """
        if self.fits(lists) or not self.divides(lists):
            return
        fresh = [each for each in lists if each.elements.size and self._known(each.original) is None]
        fresh = [each for each in fresh if not self._copied(each)]
        if not fresh:
            return
        taken = sum(each.elements.nbytes for each in lists if self._copied(each))
        taken += sum(each.beside_bytes for each in lists)
        taken += sum(known.nbytes for each in lists if (known := self._known(each.original)) is not None)
        parts = [self.parts(each) for each in fresh]
        heats, sizes = [each.heats for each in parts], [each.sizes for each in parts]
        chosen = hottest(heats, sizes, int((ALONE if alone else PAGED) * (self._memory.budget - aside)) - taken)
        for each, own, resident in zip(fresh, parts, chosen, strict=True):
            self._placed[id(each.original)] = self.placement(each, own, own.heats, resident, searched=alone)

    def parts(self, lists: Lists, packing: Packing | None = None) -> Parts:
        """The parts that lists are placed by, and how many reads are expected of each; of what is smaller than a page,
        there is one.
        """
        if lists.partition is not None:
            known = self._known(lists.partition)
            blocks = VertexBlocks.of(lists.partition) if known is None or known.blocks is None else known.blocks
            heats = np.concatenate([[blocks.header_heat(lists.partition)], blocks.heats])
            bits = 8 * lists.elements.itemsize if packing is None else packing.bits
            sizes = np.concatenate([[4 * blocks.header_words(packing)], -(-np.diff(blocks.bounds) * bits // 8)])
            return Parts(heats, sizes, blocks)
        assert self.driver is not None
        heats = lists.heat(self.driver.page)
        return Parts(heats, np.full(len(heats), min(self.driver.page, lists.elements.nbytes)))

    def placement(
        self,
        lists: Lists,
        parts: Parts,
        heats: Floats,
        resident: NDArray[np.bool_],
        *,
        searched: bool = False,
        packing: Packing | None = None,
    ) -> Placement:
        """A placement of lists, whose parts are expected to be read so often."""
        key = id(lists.original)
        gone = weakref.ref(lists.original, lambda _: self._placed.pop(key, None))
        here, everywhere = float(heats[resident].sum()), float(heats.sum())
        nbytes = int(parts.sizes[resident].sum())
        return Placement(gone, resident, parts.sizes, nbytes, here, everywhere, parts.blocks, searched, packing)

    def placed(self, lists: Lists) -> Placement | None:
        """Which parts of lists are copied; None where all are."""
        return self._known(lists.original)

    def replace(self, lists: Sequence[Lists], placements: Sequence[Placement]) -> None:
        """Have lists stand elsewhere than what is copied of them now; without ``placements``, they are placed anew when
        they are read next.
        """
        for each in lists:
            self._placed.pop(id(each.original), None)
            for what in (DIVIDED, IN_FEW_BITS) if each.partition is not None else (copy_of(each.elements),):
                self._memory.forget(what, each.original)
        for each, placement in zip(lists, placements, strict=False):
            self._placed[id(each.original)] = placement
        self._memory.forget_all(ADDRESSES)

    def make_room(self, lists: Sequence[Lists], beside: int | None = None) -> bool:
        """Have lists placed anew that do not leave room, unless one is read now; return whether they are.

        Those of a join leave room for tables: none may stand where searches read it.  A search needs so many bytes
        ``beside`` its own.  Each plan places what no other did: what two plans placed apart may not fit together.
        """
        placed = [each for each in lists if self.placed(each) is not None]
        known = [found for each in placed if (found := self.placed(each)) is not None]
        copied = sum(each.elements.nbytes for each in lists if self.placed(each) is None and self._copied(each))
        taken = sum(each.nbytes for each in known) + copied
        joined = beside is None
        room = PAGED * self._memory.budget if beside is None else self._memory.budget - beside
        # What fits was placed for a plan that reads more.
        apart = joined and (self.fits(lists) or any(each.searched for each in known))
        if not (taken > room or (apart and known)):
            return False
        if not placed or any(self._memory.is_used(each.original) for each in placed):
            return False
        self.replace(placed, [])
        return True

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
        if known is None or driver is None or known.resident.all():
            return None
        return PagedArray(self._memory, driver, array, known.resident)

    def is_paged(self, array: NDArray[Any]) -> bool:
        """Whether an array was placed, and is copied by pages."""
        return self._known(array) is not None

    def divided(self, partition: Partition | None) -> Placement | None:
        """Which lists of a partition are copied; None where all are, or they are copied by pages."""
        return self._known(partition)

    def away(self, lists: Sequence[Lists]) -> float:
        """Return the share of what is read of some lists that is expected to come from host memory."""
        return _away([found for each in lists if (found := self._known(each.original)) is not None])

    def away_seconds(self, lists: Sequence[Lists], plan: PhysicalPlan, rates: Rates) -> float:
        """Return how much longer a run of a plan is expected to take for what comes from host memory.

        Each list that is found there is some lines of 128 bytes; and what is scanned comes once, by its bytes.
        """
        if not self._placed:
            return 0.0
        width, rows = np.dtype(plan.dtype).itemsize, [1.0, *(step.estimate for step in plan.steps)]
        found = np.zeros(len(plan.partitions))
        for before, step in zip(rows, plan.program.steps, strict=False):
            read = plan.program.lists[step[StepColumn.LISTS] : step[StepColumn.LISTS_END], 0]
            np.add.at(found, read[read >= 0], before)
        away = {id(each.elements): self.away([each]) for each in lists}
        moved = self.away(lists) * plan.cost * width
        for partition, times in zip(plan.partitions, found.tolist(), strict=True):
            mean = partition.neighbours.nbytes / max(len(partition.keys), 1)
            moved += away.get(id(partition.neighbours), 0.0) * times * min(FOUND, BESIDE * mean)
        return moved / rates.linked

    def describe(self, lists: Sequence[Lists]) -> str:
        """Return how much of some lists stands on the device, as a phrase for EXPLAIN; empty where all of it does."""
        return self._text([found for each in lists if (found := self._known(each.original)) is not None])

    @property
    def summary(self) -> str:
        """How much of all lists that are copied in parts stands on the device; empty where there are none."""
        return self._text([each for each in list(self._placed.values()) if each.original() is not None])

    def _text(self, known: Sequence[Placement]) -> str:
        size = sum(int(each.sizes.sum()) for each in known)
        if not size:
            return ""
        return (
            f"{sum(each.nbytes for each in known) / size:.0%} of {size / 2**20:,.0f} MiB of lists on the device,"
            f" {_away(known):.0%} of the reads from host memory"
        )

    def _known(self, original: object) -> Placement | None:
        found = self._placed.get(id(original))
        return found if found is not None and found.original() is original else None

    def _copied(self, lists: Lists) -> bool:
        """Whether the neighbours were copied wholly, by a plan that read less."""
        array = lists.elements
        if self._known(lists.original) is not None:
            return False
        if lists.spans is not None and self._memory.is_cached(SPANS, lists.spans):
            return True
        return self._memory.is_cached(copy_of(array), array)


def _away(known: Sequence[Placement]) -> float:
    everywhere = sum(each.everywhere for each in known)
    return 1 - sum(each.here for each in known) / everywhere if everywhere else 0.0
