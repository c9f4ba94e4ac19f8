"""Runs a counting plan on a device: weights along edges, loops over cores, sums.

All kernels of a run are prepared first (written, compiled where they are new, work dealt out) and then launched one
after the other without waiting.  Numbers are 64 bits wide and exact as long as they fit: kernels carry a
floating-point estimate along with every sum, and what may not fit is left to who counts with longer numbers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import InitVar, dataclass, field
from functools import lru_cache, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.gpu.cliques import DeviceCliques, Shape, book_of, launch_cliques, shape_for
from graphdb.gpu.graph import DeviceGraph, address
from graphdb.gpu.launch import BLOCK, VARIANTS, Device, StopFlag
from graphdb.gpu.memory import DeviceMemory
from graphdb.gpu.nested import Specialised, specialise
from graphdb.gpu.ranks import Ranks, rank_relations
from graphdb.gpu.registers import SHARED, WARP_BYTES, Unsupported, Values
from graphdb.gpu.watch import Watch, wait_for
from graphdb.plan.counting import CountingPlan, Term
from graphdb.plan.loops import Bundle, Part, Weight
from graphdb.plan.physical import CliqueCount, PhysicalPlan, Relation
from graphdb.plan.trials import Expected
from graphdb.storage.pcsr import Partition

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
RANKING = 3e-8
"""Seconds in which an entry of a list is put in the order of ranks."""
LIST_RATE = 1e10
"""Elements that are counted in a second along lists, and in loops whose vectors fit shared memory."""
SCATTER_RATE = 8e10
"""The same for longer vectors, whose elements are planned to take several times as long: a device waits for many at
once."""

VARIANTS["count_weights"] = VARIANTS["clique_books"] = ({},)


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class _OnDevice:
    """Ranked relations on the device (``name`` says which), and their table: four addresses each, here and there."""

    name: str
    ranks: Ranks
    arrays: tuple[Any, ...]
    table: tuple[int, ...]
    cells: Any
    longest: tuple[int, ...]
    work: dict[Relation, NDArray[np.float64]] = field(default_factory=dict)
    """By rank: how long the lists of a vertex's neighbours are together."""

    @property
    def nbytes(self) -> int:
        return sum(int(array.nbytes) for array in self.arrays)


@dataclass(slots=True)
class _Bits:
    """The candidates among the ranks: uint32, one bit each; and once that is known, the most that any list holds."""

    array: Any
    most: int | None = None

    @property
    def nbytes(self) -> int:
        return int(self.array.nbytes)


class _Told:
    """What weighings tell: the greatest value each, and whether one may not fit.  All are read at once.

    Parameters
    ----------
    memory
        The device's.
    room
        How many weighings there are at most.
    """

    def __init__(self, memory: DeviceMemory, room: int) -> None:
        self.cells = memory.empty((max(room, 1), 2), np.uint64)
        self.cells.fill(0)
        self._used = 0
        self._tops: list[int] = []

    def cell(self) -> int:
        """One more weighing's number."""
        self._used += 1
        return self._used - 1

    def address(self, cell: int) -> int:
        """Where a weighing tells its greatest value; behind it stands the flag."""
        return address(self.cells) + 16 * cell

    def read(self) -> None:
        """Wait for all that was launched; raises :class:`Unsupported` where a number may not fit."""
        if self._used:
            told = self.cells.get()
            self._tops = told[:, 0].tolist()
            if told[:, 1].any():
                raise Unsupported("numbers that may not fit 64 bits")

    def most(self, cells: Iterable[int]) -> int:
        """The greatest that some weighings told."""
        return max((self._tops[cell] for cell in cells), default=0)


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
    check: InitVar[Callable[[], None] | None] = None
    """Called while kernels are compiled; what it raises ends the preparation."""
    milliseconds: float = 0.0
    """After a run: the device's time, from the first kernel to the last."""
    stop: StopFlag = field(init=False)
    _check: Callable[[], None] | None = field(init=False)
    _plan: CountingPlan = field(init=False)
    _terms: tuple[Term, ...] = field(init=False)
    _on: _OnDevice = field(init=False)
    _numbers: Mapping[Relation, int] = field(init=False)
    _weights: dict[Weight, Any] = field(init=False, default_factory=dict)
    """Arrays of weights: bits, or uint64 per rank."""
    _asked: dict[Weight, tuple[int, tuple[int, ...]]] = field(init=False, default_factory=dict)
    """Of those that are no bits: what told the greatest value, and what told the greatest sums over lists."""
    _made: dict[tuple[int, ...], _Bits] = field(init=False, default_factory=dict)
    """Bits by filters."""
    _unknown: list[tuple[_Bits, tuple[int, ...]]] = field(init=False, default_factory=list)
    """Bits of which it has still to be told how many a list holds."""
    _told: _Told = field(init=False)
    _launches: dict[Part, _Launch | tuple[CliqueCount, Shape] | int] = field(init=False, default_factory=dict)
    _weighings: list[tuple[Any, ...]] = field(init=False, default_factory=list)
    """What makes the weights, one after the other: the arguments of their launches."""
    _alive: list[Any] = field(init=False, default_factory=list)
    _held: list[Any] = field(init=False, default_factory=list)
    """What its launches read that is not its own."""
    _scratch: Any = field(init=False, default=None)
    _weighed: bool = field(init=False, default=True)
    """Whether the first run may take the weights as they were prepared."""
    _running: threading.Lock = field(init=False, default_factory=threading.Lock)
    """Its sums are one run's at a time."""

    def __post_init__(self, plan: CountingPlan, check: Callable[[], None] | None) -> None:
        self._check = check
        self.stop, self._plan, self._terms = StopFlag(self.device), plan, plan.terms
        with self.device.active():
            self._on = self._ranked()
            self._numbers = {relation: number for number, relation in enumerate(plan.partitions)}
            self._prepare()
        self._check = None
        del self._plan  # what is kept as long as the plan must not keep the plan

    # --- preparation

    def _ranked(self) -> _OnDevice:
        partitions = list(self._plan.partitions.values())
        if not partitions:
            return _OnDevice("", Ranks(np.empty(0, np.int64), np.empty(0, np.int32), {}), (), (), None, ())
        memory = self.device.memory
        name = _ranks_name(self.graph, partitions)

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
            table = tuple(address(array) for row in rows for array in row)
            return _OnDevice(
                name,
                ranks,
                tuple(array for arrays in copies.values() for array in arrays),
                table,
                memory.upload(np.array(table, np.int64)),
                tuple(ranked.longest for ranked in ranks.relations.values()),
            )

        return memory.keep(name, partitions[0], build)

    @property
    def _ranks(self) -> Ranks:
        return self._on.ranks

    @property
    def _vertices(self) -> int:
        return len(self._ranks.vertices)

    def _prepare(self) -> None:
        parts = list(dict.fromkeys(part for term in self._terms for part in term.parts))
        self._cells = self.device.memory.empty((3, max(len(parts), 1)), np.int64)
        self._told = _Told(self.device.memory, self._most_weighings(parts))
        looped = []
        for cell, part in enumerate(parts):
            if part.clique:
                self._launches[part] = self._cliques(part)
            elif 4 * self._vertices > WARP_BYTES * 32 and (power := book_of(part)):
                self._launches[part] = self._books(cell, part, power)
            elif part.root.filters and not len(self._candidates(part.root)):
                self._launches[part] = 0
            elif part.levels:
                looped.append((cell, part))
                if part.root.loops:
                    raise Unsupported("loops")
                for weight in (*part.weights, *[part.root] * bool(part.root.messages)):
                    self._weight(weight)
            elif part.root.messages:
                self._weight(part.root)
            else:
                self._launches[part] = self._alone(part.root) * part.multiple
        self._learn()
        kernels = [(cell, part, *self._specialised(part)) for cell, part in looped]
        widest = max((blocks * kernel.scratch for _, _, kernel, blocks, _ in kernels), default=0)
        if widest:
            self._scratch = self.device.memory.empty(widest, np.uint8)
            self._scratch.fill(0)
        for cell, part, kernel, blocks, weights in kernels:
            self._launches[part] = self._launch(cell, part, kernel, blocks, weights)
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
            *(address(self._on.cells), self._numbers[relation], self._vertices, power, room, rows),
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
        """The candidates that pass all filters, as vertices; of one filter, its own array."""
        sets = sorted((self._plan.filters[number] for number in weight.filters), key=len)
        return reduce(lambda a, b: np.intersect1d(a, b, assume_unique=True), sets)

    def _alone(self, weight: Weight) -> int:
        """How many values a vertex has that nothing joins to others."""
        if weight.loops or not weight.filters:
            raise Unsupported("loops")
        return len(self._candidates(weight))

    def _bits(self, weight: Weight) -> _Bits:
        """A weight that is only filters; of one filter (a vertex label), kept for other plans as long as that is."""
        found = self._made.get(weight.filters)
        if found is None:
            candidates = self._candidates(weight)

            def build() -> _Bits:
                ranks = self._ranks.rank[candidates]
                flags = np.zeros((self._vertices + 31) // 32 * 32, bool)
                flags[ranks[ranks >= 0]] = True
                return _Bits(self.device.memory.upload(np.packbits(flags, bitorder="little").view(np.uint32)))

            if len(weight.filters) == 1:
                found = self.device.memory.keep(f"bits {self._on.name}", candidates, build)
            else:
                found = build()
                self._alive.append(found.array)
            self._made[weight.filters] = found
        return found

    def _specialised(self, part: Part) -> tuple[Specialised, int, list[Any]]:
        """A part's kernel, how many blocks it is launched with, and the weights that it reads."""
        values = tuple(self._values(weight) for weight in part.weights)
        relations = tuple(self._numbers.items())
        kernel = _written(part, relations, self._on.longest, values, self._vertices, bool(part.root.messages))
        module = self.device.module("count_nested", {}, kernel.text, self._check)
        blocks = module.resident("nested", kernel.threads, kernel.shared)
        if kernel.scratch:
            room = self.device.memory.reserve(2 * blocks * kernel.scratch)
            blocks = min(blocks, room // 2 // kernel.scratch)
            if blocks < 1:
                raise Unsupported("no room for a block's vectors")
        return kernel, blocks, [self._weight(weight) for weight in part.weights]

    def _launch(self, cell: int, part: Part, kernel: Specialised, blocks: int, weights: list[Any]) -> _Launch:
        table = self._upload(np.array([*self._on.table, *map(address, weights)], np.int64))
        teams = blocks * (kernel.threads // 32 if kernel.warps else 1)
        tasks = self._tasks(part, teams * _DEAL if kernel.split else 0)
        self._held.append(tasks)
        root_weight = self._weight(part.root) if part.root.messages else None
        sums, sizes, nexts = self._cells_of(cell)
        arguments = (
            *(address(table), address(tasks), len(tasks), address(root_weight), self._vertices),
            *(address(self._scratch), kernel.scratch, sums, sizes, nexts, self.stop.address),
        )
        blocks = min(blocks, -(-len(tasks) * blocks // max(teams, 1)))
        return _Launch(part, kernel, blocks, arguments, cell)

    def _tasks(self, part: Part, wanted: int) -> Any:
        """Roots, the heaviest dealt out in pieces: int32 [tasks, 2], a root and (piece << 16 | pieces).

        They depend on the root's candidates and its lists alone: kept with the candidates, where these are a label's.
        """
        relations = [bundle.members[0].relation for bundle in part.root_bundles]
        if len(part.root.filters) > 1:
            self._alive.append(self._dealt(part, relations, wanted))
            return self._alive[-1]
        original = self._candidates(part.root) if part.root.filters else self._on
        numbers = [self.graph.serial(self._plan.partitions[relation]) for relation in relations]
        name = f"tasks {wanted} {numbers} {self._on.name}"
        return self.device.memory.keep(name, original, lambda: self._dealt(part, relations, wanted))

    def _dealt(self, part: Part, relations: list[Relation], wanted: int) -> Any:
        if part.root.filters:
            roots = self._ranks.rank[self._candidates(part.root)].astype(np.int64)
            roots = np.sort(roots[roots >= 0])
        else:
            roots = np.arange(self._vertices)
        for relation in relations:
            ranked = self._ranks.relations[relation]
            roots = roots[ranked.begin[roots + 1] > ranked.begin[roots]]
        pieces = np.ones(len(roots), np.int64)
        if wanted and len(roots):
            work = self._work(relations[0])[roots]
            fair = max(float(work.sum()) / wanted, 1.0)
            pieces = np.clip(np.ceil(work / fair), 1, _MOST_PIECES).astype(np.int64)
        number = np.arange(int(pieces.sum())) - np.repeat(np.cumsum(pieces) - pieces, pieces)
        tasks = np.stack([np.repeat(roots, pieces), number << 16 | np.repeat(pieces, pieces)], axis=1)
        return self.device.memory.upload(tasks.astype(np.int32))

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

    def _most_weighings(self, parts: list[Part]) -> int:
        """How many weighings there are at most: a product per message, and a sum over each relation's lists."""
        weights: set[Weight] = set()
        pending = [weight for part in parts for weight in (part.root, *part.weights)]
        while pending:
            weight = pending.pop()
            if weight not in weights:
                weights.add(weight)
                pending += [child for _, child in weight.messages]
        return sum(len(weight.messages) + len(self._on.longest) for weight in weights)

    def _weight(self, weight: Weight) -> Any:
        """A weight on the device: bits, or uint64 per rank."""
        if weight not in self._weights:
            if weight.loops:
                raise Unsupported("loops")
            if weight.messages:
                array, top = self._multiplied(weight)
                self._asked[weight] = top, self._sums(None, array)
            else:
                bits = self._bits(weight)
                array = bits.array
                if bits.most is None:
                    self._unknown.append((bits, self._sums(array, None)))
            self._weights[weight] = array
        return self._weights[weight]

    def _learn(self) -> None:
        """Wait until all that was asked of weights is told."""
        self._told.read()
        for bits, cells in self._unknown:
            bits.most = self._told.most(cells)
        self._unknown.clear()

    def _values(self, weight: Weight) -> Values:
        """What was told of a weight."""
        if not weight.messages:
            return Values(True, 1, self._bits(weight).most or 0)
        top, sums = self._asked[weight]
        return Values(False, self._told.most([top]), self._told.most(sums))

    def _multiplied(self, weight: Weight) -> tuple[Any, int]:
        """The product of what hangs off a vertex: uint64 per rank, and what tells the greatest."""
        own = self._bits(weight).array if weight.filters else None
        before, told = None, -1
        for bundle, child in weight.messages:
            if not bundle.plain or bundle.order:
                raise Unsupported("bundles of relations")
            before, told = self._message(bundle, child, own, before)
        return before, told

    def _message(self, bundle: Bundle, child: Weight, own: Any, before: Any) -> tuple[Any, int]:
        bits = values = None
        if child.messages:
            values = self._weight(child)
        elif not child.is_one:
            bits = self._bits(child).array
        weighing, told = self._weighing(self._numbers[bundle.members[0].relation], bits, values, own, before)
        self._weighings.append(weighing[1])
        self._alive.append(weighing[0])
        return weighing[0], told

    def _sums(self, bits: Any, values: Any) -> tuple[int, ...]:
        """What tells the greatest sums over the lists of each relation."""
        lists = range(len(self._on.longest))
        return tuple(self._weighing(number, bits, values, None, None)[1] for number in lists)

    def _weighing(
        self, relation: int, bits: Any, values: Any, own: Any, before: Any
    ) -> tuple[tuple[Any, tuple[Any, ...]], int]:
        """Launch a weighing: (what it makes, the arguments of the launch), and what tells the greatest."""
        out, told = self.device.memory.empty(self._vertices, np.uint64), self._told.cell()
        read = (address(self._on.cells), relation, *map(address, (bits, values, own, before)))
        top = self._told.address(told)
        weighing = (out, (*read, address(out), self._vertices, top, top + 8))
        self._launch_weighing(weighing[1])
        return weighing, told

    def _launch_weighing(self, arguments: tuple[Any, ...]) -> None:
        blocks = min((self._vertices + 7) // 8, 16 * self.device.processors)
        self.device.module("count_weights", {}).launch("weigh", blocks, *arguments)

    @property
    def nbytes(self) -> int:
        """Bytes of its own arrays on the device."""
        own = (*self._alive, self._cells, self._told.cells, self._scratch)
        return sum(int(array.nbytes) for array in own if array is not None)

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
        for weighing in self._weighings[: 0 if self._weighed else None]:
            self._launch_weighing(weighing)
        self._weighed = False
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
                values = self._weight(part.root)
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


def _looped(plan: CountingPlan) -> set[Part]:
    """The parts that have a kernel of their own."""
    return {part for term in plan.terms for part in term.parts if part.levels or part.clique}


def _ranks_name(graph: DeviceGraph, partitions: Iterable[Partition]) -> str:
    """What ranks over some partitions are called among what is kept, with the first of them."""
    return f"ranked {[graph.serial(each) for each in partitions]}"


@lru_cache(maxsize=256)
def _written(
    part: Part,
    relations: tuple[tuple[Relation, int], ...],
    longest: tuple[int, ...],
    values: tuple[Values, ...],
    vertices: int,
    root_weighted: bool,
) -> Specialised:
    """The kernel of a part; a shape that was written before is not written again, as it is not compiled again."""
    return specialise(part, dict(relations), longest, values, vertices, root_weighted)


@dataclass(frozen=True, slots=True)
class _Unable:
    """Stands for a plan that device kernels do not count."""

    nbytes: int = 0


class Counter:
    """Counts without going through the matches, where a plan says how and the device has kernels for it."""

    def __init__(self, device: Device, graph: DeviceGraph) -> None:
        self._device, self._graph = device, graph
        self._known: set[Part] = set()
        self._waited: dict[Part, float] = {}
        """Seconds that counts took longer than with a part's kernel, which is compiled when that has cost as much."""
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
        looped = _looped(counting)
        rate = LIST_RATE if not looped or 4 * counting.vertices < SHARED else SCATTER_RATE
        first = 0.0
        if ready is None:
            compiling = sum(max(COMPILING - self._waited.get(part, 0.0), 0.0) for part in looped - self._known)
            first = compiling + RANKING * self._unranked(list(counting.partitions.values()))
        return Expected(ANSWER + counting.cost / rate, first)

    def waited(self, plan: PhysicalPlan, seconds: float) -> None:
        """A count took so much longer than sums would have, had their kernels been there; other plans share these."""
        counting = self._sums(plan)
        if counting is not None and seconds > 0:
            parts = _looped(counting) - self._known
            for part in parts:
                self._waited[part] = self._waited.get(part, 0.0) + seconds / len(parts)

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
        prepared = self._prepared(counting, watch)
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

    def _unranked(self, partitions: list[Partition]) -> int:
        """How many entries have to be put in the order of ranks first: none where other counts have read them."""
        if not partitions or self._device.memory.keeps(_ranks_name(self._graph, partitions), partitions[0]):
            return 0
        return sum(len(partition.neighbours) for partition in partitions)

    def _prepared(self, plan: CountingPlan, watch: Watch) -> DeviceCount | _Unable:
        """A plan ready to count; kept as long as the plan, since to prepare it takes longer than most counts."""

        def build() -> DeviceCount | _Unable:
            try:
                return DeviceCount(self._device, self._graph, plan, watch.check)
            except Unsupported:
                return _Unable()

        return self._device.memory.keep("count", plan, build)
