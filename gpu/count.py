"""Runs a counting plan on a device: weights along edges, loops over cores, sums.

All kernels of a run are prepared first (written, compiled where they are new, work dealt out) and then launched one
after the other without waiting.  Numbers are 64 bits wide and exact as long as they fit: kernels carry a
floating-point estimate along with every sum, and what may not fit is left to who counts with longer numbers.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.gpu.cliques import DeviceCliques, Shape, book_of, launch_cliques, shape_for
from graphdb.gpu.graph import DeviceGraph, address
from graphdb.gpu.launch import BLOCK, VARIANTS, Device, StopFlag
from graphdb.gpu.nested import Specialised, specialise
from graphdb.gpu.ranks import Ranked, Ranks, rank_relations
from graphdb.gpu.registers import SHARED, WARP_BYTES, Unsupported, Values
from graphdb.gpu.watch import Watch, wait_for
from graphdb.plan.counting import CountingPlan, Term
from graphdb.plan.loops import Bundle, Part, Weight
from graphdb.plan.physical import CliqueCount, PhysicalPlan, Relation
from graphdb.plan.trials import Expected

Ints = NDArray[np.int64]

_EXACT = float(1 << 62)
"""Sums whose estimate is greater are not trusted."""
_DEAL = 8
"""Pieces of about the same work that each team gets, where roots differ much."""
_MOST_PIECES = 4096
ANSWER = 7e-4
"""Seconds that the smallest run on a device takes."""
DEAR = 4e10
"""Elements that a search must be expected to go through, where the host has a tree, before sums are planned instead: it
takes a device about as long as compiling does."""
COMPILING = 0.4
"""Seconds in which a kernel is compiled."""
RANKING = 1e-7
"""Seconds in which an entry of a list is put in the order of ranks."""
LIST_RATE = 1e10
"""Elements that are counted in a second along lists, and in loops whose vectors fit shared memory."""
SCATTER_RATE = 4e10
"""The same for longer vectors, whose elements are planned to take several times as long: a device waits for many at
once."""

VARIANTS["count_weights"] = VARIANTS["clique_books"] = ({},)


@dataclass(frozen=True, slots=True)
class _OnDevice:
    """Ranked relations on the device, and their table: four addresses each."""

    ranks: Ranks
    arrays: tuple[Any, ...]
    table: tuple[int, ...]
    longest: tuple[int, ...]
    work: dict[Relation, NDArray[np.float64]] = field(default_factory=dict)
    """By rank: how long the lists of a vertex's neighbours are together."""

    @property
    def nbytes(self) -> int:
        return sum(int(array.nbytes) for array in self.arrays)


@dataclass(frozen=True, slots=True)
class _Launch:
    """A part's kernel, ready to go; ``cell`` is where its sum goes."""

    part: Part
    kernel: Specialised
    blocks: int
    arguments: tuple[Any, ...]
    cell: int
    name: tuple[str, str] = ("count_nested", "nested")
    """Module and kernel."""


@dataclass(eq=False)
class DeviceCount:
    """One counting plan on one device, prepared.

    Parameters
    ----------
    device
        Where to count.
    plan
        What.

    Raises
    ------
    Unsupported
        For what device kernels do not count.
    """

    device: Device
    graph: DeviceGraph
    plan: InitVar[CountingPlan]
    milliseconds: float = 0.0
    """After a run: the device's time, from the first kernel to the last."""
    stop: StopFlag = field(init=False)
    _plan: CountingPlan = field(init=False)
    _terms: tuple[Term, ...] = field(init=False)
    _on: _OnDevice = field(init=False)
    _numbers: Mapping[Relation, int] = field(init=False)
    _weights: dict[Weight, tuple[Any, Values]] = field(init=False, default_factory=dict)
    _messages: dict[tuple[int, Weight], tuple[Any, int]] = field(init=False, default_factory=dict)
    _launches: dict[Part, _Launch | tuple[CliqueCount, Shape] | int] = field(init=False, default_factory=dict)
    _weighings: list[tuple[Any, ...]] = field(init=False, default_factory=list)
    """What makes the weights, one after the other: the arguments of their launches."""
    _alive: list[Any] = field(init=False, default_factory=list)
    _scratch: Any = field(init=False, default=None)
    _running: threading.Lock = field(init=False, default_factory=threading.Lock)
    """Its sums are one run's at a time."""

    def __post_init__(self, plan: CountingPlan) -> None:
        self.stop, self._plan, self._terms = StopFlag(self.device), plan, plan.terms
        with self.device.active():
            self._on = self._ranked()
            self._numbers = {relation: number for number, relation in enumerate(plan.partitions)}
            self._prepare()
        del self._plan  # what is kept as long as the plan must not keep the plan

    # --- preparation

    def _ranked(self) -> _OnDevice:
        partitions = list(self._plan.partitions.values())
        if not partitions:
            return _OnDevice(Ranks(np.empty(0, np.int64), np.empty(0, np.int32), {}), (), (), ())
        memory = self.device.memory

        def build() -> _OnDevice:
            ranks = rank_relations(self._plan.partitions, self._plan.vertices)
            if ranks is None:
                raise Unsupported("more than 32 bits of vertices or edges")
            copies: dict[int, tuple[Any, ...]] = {}
            for ranked in ranks.relations.values():
                if id(ranked) not in copies:
                    copies[id(ranked)] = tuple(
                        memory.upload(cells) for cells in (ranked.begin, ranked.less, ranked.more, ranked.ids)
                    )
            rows = [copies[id(ranked)] for ranked in ranks.relations.values()]
            return _OnDevice(
                ranks,
                tuple(array for arrays in copies.values() for array in arrays),
                tuple(address(array) for row in rows for array in row),
                tuple(ranked.longest for ranked in ranks.relations.values()),
            )

        return memory.keep(f"ranked {[self.graph.serial(each) for each in partitions]}", partitions[0], build)

    @property
    def _ranks(self) -> Ranks:
        return self._on.ranks

    @property
    def _vertices(self) -> int:
        return len(self._ranks.vertices)

    def _prepare(self) -> None:
        parts = list(dict.fromkeys(part for term in self._terms for part in term.parts))
        self._cells = self.device.memory.empty((3, max(len(parts), 1)), np.int64)
        self._table = self._upload(np.array(self._on.table, np.int64))
        kernels = []
        for cell, part in enumerate(parts):
            if part.clique:
                self._launches[part] = self._cliques(part)
            elif 4 * self._vertices > WARP_BYTES * 32 and (power := book_of(part)):
                self._launches[part] = self._books(cell, part, power)
            elif part.root.filters and not len(self._candidates(part.root)):
                self._launches[part] = 0
            elif part.levels:
                kernels.append((cell, part, *self._specialised(part)))
            elif part.root.messages:
                self._weight(part.root)
            else:
                self._launches[part] = self._alone(part.root) * part.multiple
        widest = max((blocks * kernel.scratch for _, _, kernel, blocks, _ in kernels), default=0)
        if widest:
            self._scratch = self.device.memory.empty(widest, np.uint8)
            self._scratch.fill(0)
        for cell, part, kernel, blocks, weights in kernels:
            self._launches[part] = self._launch(cell, part, kernel, blocks, weights)
        for part in parts:
            if part not in self._launches:
                self._weight(part.root)
        self._cell_of = {part: cell for cell, part in enumerate(parts)}

    def _cliques(self, part: Part) -> tuple[CliqueCount, Shape]:
        plan = CliqueCount(part.clique, self._plan.oriented[part.root_bundles[0].members[0].relation])
        shape = shape_for(plan)
        if shape is None:
            raise Unsupported("cliques of this size")
        self.graph.oriented(plan.graph)
        return plan, shape

    def _books(self, cell: int, part: Part, power: int) -> _Launch:
        """Triangles and what all three know, on graphs whose bits take a block's shared memory."""
        relation = part.root_bundles[0].members[0].relation
        ranked = self._ranks.relations[relation]
        lower, every = ranked.less - ranked.begin[:-1], np.diff(ranked.begin)
        needed = lower.astype(np.int64) * ((every.astype(np.int64) + 31) // 32)
        rows, threads = (int(lower.max(initial=0)) + 3) // 2 * 2, 512
        if rows >= 1 << 16 or int(every.max(initial=0)) >= 1 << 16:
            raise Unsupported("longer lists than 16 bits count")
        words = (self._vertices + 31) // 32
        fixed = 4 * (words + (words + 1) // 2) + threads // 32 * rows * 2
        room = max((SHARED // 2 - 1024 - fixed) // 4, 0)
        shared = fixed + 4 * room
        if shared > SHARED:
            raise Unsupported("more bits than shared memory holds")
        most = int(needed.max(initial=0))
        module = self.device.module("clique_books", {})
        blocks = module.resident("books", threads, shared)
        scratch = self._upload(np.zeros(most * blocks, np.uint32)) if most > room else None
        sums, sizes, nexts = self._cells_of(cell)
        arguments = (
            *(address(self._table), self._numbers[relation], self._vertices, power, room, rows),
            *(address(scratch), most, sums, sizes, nexts, self.stop.address),
        )
        kernel = Specialised("", threads, shared, 0, False, False)
        return _Launch(part, kernel, blocks, arguments, cell, ("clique_books", "books"))

    def _cells_of(self, cell: int) -> tuple[int, int, int]:
        """The addresses of a part's sum, its estimate, and its next task."""
        width = self._cells.shape[1]
        first, second, third = (address(self._cells) + 8 * (row * width + cell) for row in range(3))
        return first, second, third

    def _upload(self, values: NDArray[Any]) -> Any:
        self._alive.append(self.device.memory.upload(values))
        return self._alive[-1]

    def _candidates(self, weight: Weight) -> Ints:
        """The candidates that pass all filters, as vertices."""
        sets = sorted((self._plan.filters[number] for number in weight.filters), key=len)
        return reduce(lambda a, b: np.intersect1d(a, b, assume_unique=True), sets)

    def _alone(self, weight: Weight) -> int:
        """How many values a vertex has that nothing joins to others."""
        if weight.loops or not weight.filters:
            raise Unsupported("loops")
        return len(self._candidates(weight))

    def _bits(self, weight: Weight) -> Any:
        """A weight that is only filters: uint32, one bit per rank."""
        ranks = self._ranks.rank[self._candidates(weight)]
        flags = np.zeros((self._vertices + 31) // 32 * 32, bool)
        flags[ranks[ranks >= 0]] = True
        return self._upload(np.packbits(flags, bitorder="little").view(np.uint32))

    def _specialised(self, part: Part) -> tuple[Specialised, int, list[Any]]:
        """A part's kernel, how many blocks it is launched with, and the weights that it reads."""
        for weight in (part.root, *part.weights):
            if weight.loops:
                raise Unsupported("loops")
        found = [self._weight(weight) for weight in part.weights]
        kernel = specialise(
            part,
            self._numbers,
            self._on.longest,
            [values for _, values in found],
            self._vertices,
            bool(part.root.messages),
        )
        module = self.device.module("count_nested", {}, kernel.text)
        blocks = module.resident("nested", kernel.threads, kernel.shared)
        if kernel.scratch:
            room = self.device.memory.reserve(2 * blocks * kernel.scratch)
            blocks = min(blocks, room // 2 // kernel.scratch)
            if blocks < 1:
                raise Unsupported("no room for a block's vectors")
        return kernel, blocks, [array for array, _ in found]

    def _launch(self, cell: int, part: Part, kernel: Specialised, blocks: int, weights: list[Any]) -> _Launch:
        table = self._upload(np.array([*self._on.table, *map(address, weights)], np.int64))
        teams = blocks * (kernel.threads // 32 if kernel.warps else 1)
        tasks = self._tasks(part, teams * _DEAL if kernel.split else 0)
        root_weight = self._weight(part.root)[0] if part.root.messages else None
        sums, sizes, nexts = self._cells_of(cell)
        arguments = (
            *(address(table), address(tasks), len(tasks), address(root_weight), self._vertices),
            *(address(self._scratch), kernel.scratch, sums, sizes, nexts, self.stop.address),
        )
        blocks = min(blocks, -(-len(tasks) * blocks // max(teams, 1)))
        return _Launch(part, kernel, blocks, arguments, cell)

    def _tasks(self, part: Part, wanted: int) -> Any:
        """Roots, the heaviest dealt out in pieces: int32 [tasks, 2], a root and (piece << 16 | pieces)."""
        members = [bundle.members[0] for bundle in part.root_bundles]
        if part.root.filters:
            roots = self._ranks.rank[self._candidates(part.root)].astype(np.int64)
            roots = np.sort(roots[roots >= 0])
        else:
            roots = np.arange(self._vertices)
        lists: list[Ranked] = [self._ranks.relations[member.relation] for member in members]
        for ranked in lists:
            roots = roots[ranked.begin[roots + 1] > ranked.begin[roots]]
        pieces = np.ones(len(roots), np.int64)
        if wanted and len(roots):
            work = self._work(part.root_bundles[0].members[0].relation)[roots]
            fair = max(float(work.sum()) / wanted, 1.0)
            pieces = np.clip(np.ceil(work / fair), 1, _MOST_PIECES).astype(np.int64)
        number = np.arange(int(pieces.sum())) - np.repeat(np.cumsum(pieces) - pieces, pieces)
        tasks = np.stack([np.repeat(roots, pieces), number << 16 | np.repeat(pieces, pieces)], axis=1)
        return self._upload(tasks.astype(np.int32))

    def _work(self, relation: Relation) -> NDArray[np.float64]:
        """By rank: how long the lists of a vertex's neighbours are together."""
        known = self._on.work
        if relation not in known:
            ranked = self._ranks.relations[relation]
            degrees = np.diff(ranked.begin.astype(np.int64))
            sums = np.append(0, np.cumsum(degrees[ranked.ids]))
            known[relation] = (sums[ranked.begin[1:]] - sums[ranked.begin[:-1]]).astype(np.float64)
        return known[relation]

    # --- weights

    def _weight(self, weight: Weight) -> tuple[Any, Values]:
        """A weight on the device (bits, or uint64 per rank), and what is known of it."""
        if weight not in self._weights:
            if weight.loops:
                raise Unsupported("loops")
            if not weight.messages:
                array: Any = self._bits(weight)
                self._weights[weight] = (array, Values(True, 1, self._most(array, None)))
            else:
                array, top = self._multiplied(weight)
                self._weights[weight] = (array, Values(False, top, self._most(None, array)))
        return self._weights[weight]

    def _multiplied(self, weight: Weight) -> tuple[Any, int]:
        """The product of what hangs off a vertex: (uint64 per rank, the greatest)."""
        own = self._bits(weight) if weight.filters else None
        before, top = None, 1
        for bundle, child in weight.messages:
            if not bundle.plain or bundle.order:
                raise Unsupported("bundles of relations")
            before, top = self._message(bundle, child, own, before)
        return before, top

    def _message(self, bundle: Bundle, child: Weight, own: Any, before: Any) -> tuple[Any, int]:
        bits = values = None
        if child.messages:
            values = self._multiplied(child)[0] if child not in self._weights else self._weights[child][0]
        elif not child.is_one:
            bits = self._bits(child)
        return self._weigh(self._numbers[bundle.members[0].relation], bits, values, own, before)

    def _most(self, bits: Any, values: Any) -> int:
        """The greatest sum over any list."""
        lists = range(len(self._on.longest))
        return max(self._told(self._weighing(number, bits, values, None, None)) for number in lists)

    def _weigh(self, relation: int, bits: Any, values: Any, own: Any, before: Any) -> tuple[Any, int]:
        """A weight that every run makes anew, made once to know how great it gets: (uint64 per rank, the greatest)."""
        weighing = self._weighing(relation, bits, values, own, before)
        self._weighings.append(weighing)
        self._alive += [weighing[0], weighing[1]]
        return weighing[0], self._told(weighing)

    def _weighing(self, relation: int, bits: Any, values: Any, own: Any, before: Any) -> tuple[Any, ...]:
        """(what it makes, what it tells, the arguments of the launch)."""
        out, seen = self.device.memory.empty(self._vertices, np.uint64), self.device.memory.empty(2, np.uint64)
        seen.fill(0)
        read = (address(self._table), relation, *map(address, (bits, values, own, before)))
        return out, seen, (*read, address(out), self._vertices, address(seen), address(seen) + 8)

    def _told(self, weighing: tuple[Any, ...]) -> int:
        """Launch, and learn the greatest."""
        self._launch_weighing(weighing)
        top, flag = weighing[1].get().tolist()
        if flag:
            raise Unsupported("numbers that may not fit 64 bits")
        return int(top)

    def _launch_weighing(self, weighing: tuple[Any, ...]) -> None:
        blocks = min((self._vertices + 7) // 8, 16 * self.device.processors)
        self.device.module("count_weights", {}).launch("weigh", blocks, *weighing[2])

    @property
    def nbytes(self) -> int:
        """Bytes of its own arrays on the device."""
        return sum(int(array.nbytes) for array in (*self._alive, self._cells, self._scratch) if array is not None)

    # --- a run

    def run(self, watch: Watch) -> int | None:
        """Count; None where the number may not fit 64 bits.

        Raises
        ------
        QueryTimeout, ExecutionError
            When the time is over, and when cancelled.
        """
        with self._running, self.device.active():
            begin = self._start()
            end = self.device.event()
            self._wait(end, watch)
            self.milliseconds = self.device.milliseconds(begin, end)
            cells = self._cells.get()
        total = 0
        for term in self._terms:
            product = term.coefficient
            for part in term.parts:
                found = self._launches.get(part)
                if not isinstance(found, int):
                    cell = self._cell_of[part]
                    if cells[1, cell : cell + 1].view(np.float64)[0] > _EXACT:
                        return None
                    found = int(cells[0, cell]) * part.multiple
                product *= found
            total += product
        return total

    def _start(self) -> Any:
        self._cells.fill(0)
        begin = self.device.event()
        for weighing in self._weighings:
            self._launch_weighing(weighing)
        for part, cell in self._cell_of.items():
            launch = self._launches.get(part)
            if isinstance(launch, _Launch):
                kernel = launch.kernel
                module = self.device.module(launch.name[0], {}, kernel.text)
                module.launch(
                    launch.name[1], launch.blocks, *launch.arguments, threads=kernel.threads, shared=kernel.shared
                )
            elif isinstance(launch, tuple):
                sums, _, nexts = self._cells_of(cell)
                launch_cliques(self.device, self.graph, *launch, self.stop.address, nexts, sums)
            elif launch is None:
                values = self._weight(part.root)[0]
                sums, sizes, _ = self._cells_of(cell)
                arguments = (address(values), self._vertices, sums, sizes)
                self.device.module("count_weights", {}).launch("add_up", -(-self._vertices // BLOCK), *arguments)
        return begin

    def _wait(self, end: Any, watch: Watch) -> None:
        """Wait for the device; when the run must stop, tell it and wait for that."""
        wait_for(end, watch, self.stop, self._clean)

    def _clean(self) -> None:
        if self._scratch is not None:
            self._scratch.fill(0)


@dataclass(frozen=True, slots=True)
class _Unable:
    """Stands for a plan that device kernels do not count."""

    nbytes: int = 0


class Counter:
    """Counts without going through the matches, where a plan says how and the device has kernels for it."""

    def __init__(self, device: Device, graph: DeviceGraph) -> None:
        self._device, self._graph = device, graph
        self._known: set[Part] = set()
        self.milliseconds = 0.0
        """After a count: the device's time."""

    def expected(self, plan: PhysicalPlan) -> Expected | None:
        """What a count is expected to take, and to rank and compile first; None where matches have to be found."""
        if plan.clique is not None and shape_for(plan.clique) is not None:
            return Expected(ANSWER, 0.0)
        counting = self._sums(plan)
        if counting is None:
            return None
        ready = self._device.memory.kept("count", counting)
        if isinstance(ready, _Unable):
            return None
        looped = {part for term in counting.terms for part in term.parts if part.levels or part.clique}
        rate = LIST_RATE if not looped or 4 * counting.vertices < SHARED else SCATTER_RATE
        first = 0.0
        if ready is None:
            entries = sum(len(partition.neighbours) for partition in counting.partitions.values())
            first = COMPILING * len(looped - self._known) + RANKING * entries
        return Expected(ANSWER + counting.cost / rate, first)

    def count(self, plan: PhysicalPlan, watch: Watch) -> int | None:
        """The number of matches; None where they have to be searched for.  Raises what ``watch`` does."""
        shape = shape_for(plan.clique) if plan.clique is not None else None
        if plan.clique is not None and shape is not None:
            cliques = DeviceCliques(self._device, self._graph)
            found = cliques.count(plan.clique, shape, watch) * plan.automorphisms
            self.milliseconds = cliques.milliseconds
            return found
        counting = self._sums(plan)
        if counting is None:
            return None
        prepared = self._prepared(counting)
        if isinstance(prepared, _Unable):
            return None
        counted = prepared.run(watch)
        self.milliseconds = prepared.milliseconds
        self._known.update(part for term in counting.terms for part in term.parts)
        return counted

    def _sums(self, plan: PhysicalPlan) -> CountingPlan | None:
        """The sums that count a plan, if there are any; where a tree does on the host, only for the dearest matches."""
        found = plan.counting
        if found is None and plan.tree is not None and plan.cost > DEAR:
            found = plan.tree.otherwise()
        return None if found is None or found.root >= 0 else found

    def _prepared(self, plan: CountingPlan) -> DeviceCount | _Unable:
        """A plan ready to count; kept as long as the plan, since to prepare it takes longer than most counts."""

        def build() -> DeviceCount | _Unable:
            try:
                return DeviceCount(self._device, self._graph, plan)
            except Unsupported:
                return _Unable()

        return self._device.memory.keep("count", plan, build)
