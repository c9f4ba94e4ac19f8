"""What counting reads on a device: a data graph's lists by rank, candidates among the ranks, and roots split into
tasks.

All of it depends on the data and on candidate sets alone, so it is cached with these, for whichever plan comes next.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.gpu.code.layout import RANKED
from graphdb.gpu.counting.ranks import Ranked, Ranks, rank_relations
from graphdb.gpu.counting.registers import Unsupported
from graphdb.gpu.data.graph import DeviceGraph, address
from graphdb.gpu.data.memory import DeviceMemory
from graphdb.gpu.data.residency import Lists, Runs
from graphdb.plan.checks import Relation
from graphdb.storage.graph.pcsr import Partition

Ints = NDArray[np.int64]

_MOST_PIECES = 4096


@dataclass(slots=True)
class Bits:
    """Candidates among the ranks: uint32, one bit each; and once that is known, the most that any list holds."""

    array: Any
    most: int | None = None

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return int(self.array.nbytes)


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class DeviceLists:
    """Ranked relations on the device.

    Attributes
    ----------
    name
        Says which relations of which graph these are.
    table, cells
        Four addresses for each relation (:class:`graphdb.gpu.counting.ranks.Ranked`), here and there.
    longest
        By relation: its longest list.
    """

    memory: DeviceMemory
    name: str
    ranks: Ranks
    arrays: tuple[Any, ...]
    table: tuple[int, ...]
    cells: Any
    longest: tuple[int, ...]
    placed: tuple[Lists, ...] = ()
    """All of them, as they are placed."""
    _work: dict[Relation, NDArray[np.float64]] = field(default_factory=dict)
    _reach: dict[Relation, float] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Bytes on the device, but the elements of lists, which are cached by themselves."""
        others = [array for name, array in zip(cycle(RANKED), self.arrays, strict=False) if name != "ids"]
        return sum(int(array.nbytes) for array in (*others, *([] if self.cells is None else [self.cells])))

    @property
    def vertices(self) -> int:
        """How many vertices have a rank."""
        return len(self.ranks.vertices)

    def bits(self, candidates: Ints, *, cached: bool) -> Bits:
        """Candidates (vertices) as bits; where ``cached``, cached for other plans as long as the candidates live."""

        def build() -> Bits:
            return Bits(self.memory.upload(self.ranks.bits(candidates)))

        return self.memory.cached_or_built(f"bits {self.name}", candidates, build) if cached else build()

    def tasks(self, candidates: Ints | None, relations: list[Relation], pieces: int, *, cached: bool) -> Any:
        """Roots that have neighbours in all ``relations``, the heaviest split into pieces.

        Parameters
        ----------
        candidates
            The roots, as vertices; None: all.
        pieces
            About so many in all, or 0: roots stay whole.
        cached
            For other plans, as long as the candidates are (without any, these lists).

        Returns
        -------
        array
            int32 [tasks, 2] on the device: a root and (piece << 16 | pieces).
        """
        if not cached:
            return self._tasks_of(candidates, relations, pieces)
        numbers = list(self.ranks.relations)
        name = f"tasks {pieces} {[numbers.index(relation) for relation in relations]} {self.name}"
        original = self if candidates is None else candidates
        return self.memory.cached_or_built(name, original, lambda: self._tasks_of(candidates, relations, pieces))

    def _tasks_of(self, candidates: Ints | None, relations: list[Relation], wanted: int) -> Any:
        roots = np.arange(self.vertices) if candidates is None else self.ranks.of(candidates)
        for relation in relations:
            ranked = self.ranks.relations[relation]
            roots = roots[ranked.begin[roots + 1] > ranked.begin[roots]]
        pieces = np.ones(len(roots), np.int64)
        if wanted and len(roots):
            work = self.work_of(relations[0])[roots]
            fair = max(float(work.sum()) / wanted, 1.0)
            pieces = np.clip(np.ceil(work / fair), 1, _MOST_PIECES).astype(np.int64)
        number = np.arange(int(pieces.sum())) - np.repeat(np.cumsum(pieces) - pieces, pieces)
        tasks = np.stack([np.repeat(roots, pieces), number << 16 | np.repeat(pieces, pieces)], axis=1)
        return self.memory.upload(tasks.astype(np.int32))

    def reach_of(self, relation: Relation) -> float:
        """How long the list of an entry of some list is, in the mean."""
        known = self._reach
        if relation not in known:
            entries = len(self.ranks.relations[relation].ids)
            known[relation] = float(self.work_of(relation).sum()) / max(entries, 1)
        return known[relation]

    def work_of(self, relation: Relation) -> NDArray[np.float64]:
        """By rank: how long the lists of a vertex's neighbours are together."""
        known = self._work
        if relation not in known:
            known[relation] = self.ranks.relations[relation].work()
        return known[relation]


def device_lists(
    graph: DeviceGraph, partitions: Mapping[Relation, Partition], vertices: int, vectors: int = 0
) -> DeviceLists:
    """The lists of some relations by rank, cached with the first of them.

    Where not all of them fit the device, they leave room for so many ``vectors`` of a number of 64 bits for each rank.

    Raises
    ------
    Unsupported
        Where there are more vertices or entries than 32 bits count.
    """
    memory = graph.memory
    if not partitions:
        nothing = Ranks(np.empty(0, np.int64), np.empty(0, np.int32), {})
        return DeviceLists(memory, "", nothing, (), (), None, ())
    name = _name_of(graph, partitions.values())

    def build() -> DeviceLists:
        ranks = ranks_of(graph, partitions, vertices)
        different = {id(ranked): ranked for ranked in ranks.relations.values()}.values()
        placed = tuple(_lists_of(ranked) for ranked in different)
        graph.residency.place(placed, 8 * vectors * len(ranks.vertices))
        copies: dict[int, tuple[Any, ...]] = {}
        for ranked in ranks.relations.values():
            if id(ranked) not in copies:
                copies[id(ranked)] = tuple(
                    graph.array(ranked.ids) if name == "ids" else memory.upload(getattr(ranked, name))
                    for name in RANKED
                )
        rows = [copies[id(ranked)] for ranked in ranks.relations.values()]
        table = tuple(address(array) for row in rows for array in row)
        arrays = tuple(array for each in copies.values() for array in each)
        longest = tuple(ranked.longest for ranked in ranks.relations.values())
        cells = memory.upload(np.array(table, np.int64))
        return DeviceLists(memory, name, ranks, arrays, table, cells, longest, placed)

    return memory.cached_or_built(name, next(iter(partitions.values())), build)


@dataclass(frozen=True, slots=True)
class _HostRanks:
    """Lists by rank on the host."""

    ranks: Ranks
    nbytes: int = 0
    """Bytes on the device."""


def ranks_of(graph: DeviceGraph, partitions: Mapping[Relation, Partition], vertices: int) -> Ranks:
    """The lists of some relations by rank, on the host; cached with the first of them.

    Raises
    ------
    Unsupported
        Where there are more vertices or entries than 32 bits count.
    """

    def build() -> _HostRanks:
        ranks = rank_relations(partitions, vertices)
        if ranks is None:
            raise Unsupported("more than 32 bits of vertices or edges")
        return _HostRanks(ranks)

    name = f"host {_name_of(graph, partitions.values())}"
    return graph.memory.cached_or_built(name, next(iter(partitions.values())), build).ranks


def _lists_of(ranked: Ranked) -> Lists:
    """What kernels read of lists by rank: those of the first ranks are the longest, and are read most."""

    def runs() -> Runs:
        begins = ranked.begin.astype(np.int64)
        lengths: Ints = begins[1:] - begins[:-1]
        return begins[:-1], lengths, lengths

    return Lists(ranked.ids, (ranked.begin, ranked.less, ranked.more), runs)


def unranked(graph: DeviceGraph, partitions: list[Partition]) -> int:
    """How many entries have to be put in the order of ranks first: none where other counts have read them."""
    name = _name_of(graph, partitions) if partitions else ""
    if not partitions or any(graph.memory.is_cached(each, partitions[0]) for each in (name, f"host {name}")):
        return 0
    return sum(len(partition.neighbours) for partition in partitions)


def _name_of(graph: DeviceGraph, partitions: Iterable[Partition]) -> str:
    """The cache key of ranks over some partitions, with the first of them."""
    return f"ranked {[graph.serial(each) for each in partitions]}"
