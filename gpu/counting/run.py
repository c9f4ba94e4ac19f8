"""Runs a counting plan on a device: weights along edges, loops over cores, sums.

All kernels of a run are prepared first (written, compiled where they are new, work scheduled) and then launched one
after the other without waiting.  Numbers are 64 bits wide and exact as long as they fit: kernels carry a
floating-point estimate along with every sum, and what may not fit is left to who counts with longer numbers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import InitVar, dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.gpu.card import Limits
from graphdb.gpu.code.launch import BLOCK, IDS, VARIANTS, Device, Module, StopFlag
from graphdb.gpu.counting.cliques import Shape, book_of, launch_cliques, shape_for
from graphdb.gpu.counting.code_generation import GeneratedCode, generate_code
from graphdb.gpu.counting.linear import is_linear, total
from graphdb.gpu.counting.lists import DeviceLists, device_lists
from graphdb.gpu.counting.registers import WARP_BYTES, Unsupported, Values
from graphdb.gpu.counting.weights import EXACT, Weights, weights_of
from graphdb.gpu.data.graph import DeviceGraph, address
from graphdb.gpu.data.residency import lists_of_oriented
from graphdb.gpu.watch import Watch, wait_for
from graphdb.plan.checks import Relation
from graphdb.plan.counting.plan import CountingPlan, Term, added_up, parts_of
from graphdb.plan.counting.programs import Part, Weight
from graphdb.plan.physical import CliqueCount
from graphdb.plan.shares import Division

Ints = NDArray[np.int64]

_FITS = 1 << 61
"""Numbers of matches by vertex that may be greater do not fit int64."""
Share = tuple[int, int]
"""Some of the vertices that sums start from, by rank: first and last + 1."""

_DEAL = 8
"""Pieces of about the same work that each team gets, where roots differ much."""
_TASK_BYTES, _TASKS = 8, 1 / 16
"""Bytes of a task; and the share of the budget that pieces take at most."""
_BOOKS_STATIC = 3 << 10
"""Bytes of shared memory that a block of ``clique_books`` takes besides what its launch says, about."""

VARIANTS["clique_books"] = ({},)


@dataclass(frozen=True, slots=True)
class _Launch:
    """A part's kernel, ready to go; ``cell`` is where its sum goes."""

    part: Part
    kernel: GeneratedCode
    blocks: int
    arguments: tuple[Any, ...]
    cell: int
    tasks: Any = None
    """int32 [tasks, 2] on the device: the roots, and pieces of them; None where they are all ranks."""
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
    _lists: DeviceLists = field(init=False)
    _numbers: Mapping[Relation, int] = field(init=False)
    _weights: Weights = field(init=False)
    _launches: dict[Part, _Launch | tuple[CliqueCount, Shape] | int] = field(init=False, default_factory=dict)
    _alive: list[Any] = field(init=False, default_factory=list)
    _cached: list[Any] = field(init=False, default_factory=list)
    """What its launches read that is not its own."""
    _vectors: dict[Part, Any] = field(init=False, default_factory=dict)
    """By part whose sum is wanted for each vertex of its root: uint64 per rank."""
    _roots: dict[Part, NDArray[np.int32]] = field(init=False, default_factory=dict)
    """By part that shares were run of: the root of each task."""
    _scratch: Any = field(init=False, default=None)
    _weighed: bool = field(init=False, default=True)
    """Whether the first run may take the weights as they were prepared."""
    _used: list[Module] = field(init=False, default_factory=list)
    """The modules that a run's kernels are of: they stay loaded until the next."""
    _reported: Ints = field(init=False)
    """What a run adds up to, in page-locked memory: copied behind the kernels, before they are waited for."""
    _running: threading.Lock = field(init=False, default_factory=threading.Lock)
    """Its sums are one run's at a time."""

    def __post_init__(self, plan: CountingPlan, check: Callable[[], None] | None) -> None:
        self._check = check
        self.stop, self._plan, self._terms = StopFlag(self.device), plan, plan.terms
        with self.device.active():
            self.device.module("count_weights", {}, check=check)
            self._lists = device_lists(self.graph, plan.partitions, plan.vertices, _vectors(plan))
            self._numbers = {relation: number for number, relation in enumerate(plan.partitions)}
            self._prepare()
        self._check = None
        del self._plan  # what is cached as long as the plan must not keep the plan alive

    # --- preparation

    @property
    def _vertices(self) -> int:
        return self._lists.vertices

    @property
    def _units(self) -> int:
        """What shares are ranges of: the ranks of lists, or where all are cliques, those of the oriented graph."""
        cliques = (launch[0] for launch in self._launches.values() if isinstance(launch, tuple))
        return self._vertices or max((len(clique.graph.offsets) - 1 for clique in cliques), default=0)

    def _prepare(self) -> None:
        parts = list(dict.fromkeys(part for term in self._terms for part in term.parts))
        self._cells = self.device.memory.empty((3, max(len(parts), 1)), np.int64)
        self._answer = self.device.pinned(self._cells.shape, np.int64)
        self._launches.update({part: self._cliques(part) for part in parts if part.clique})  # whose lists are large
        self._weights = Weights(self.device, self._lists, self._numbers, self._plan.filters, parts)
        looped, fit = [], self.graph.residency.fits(self._lists.placed)
        for cell, part in enumerate(parts):
            if part.rooted and not (part.levels or part.root.messages):
                raise Unsupported("a vertex alone")
            if part.clique:
                continue
            if not part.rooted and 4 * self._vertices > WARP_BYTES * 32 and (power := book_of(part)):
                self._launches[part] = self._books(cell, part, power)
            elif part.root.filters and not part.rooted and not len(self._weights.candidates(part.root)):
                self._launches[part] = 0
            elif part.levels:
                looped.append((cell, part))
                if part.root.loops:
                    raise Unsupported("loops")
                for weight in (*part.weights, *[part.root] * bool(part.root.messages)):
                    self._weights.array(weight)
            elif part.root.messages and not fit and not part.rooted and is_linear(part.root):
                self._launches[part] = total(part.root, self._lists.ranks, self._plan.filters) * part.multiple
            elif part.root.messages:
                vector = self._weights.array(part.root)
                if part.rooted:
                    self._vectors[part] = vector
            else:
                self._launches[part] = self._alone(part.root) * part.multiple
        self._weights.learn()
        kernels = [(cell, part, *self._generated(part)) for cell, part in looped]
        widest = max((blocks * kernel.scratch for _, _, kernel, blocks, _ in kernels), default=0)
        if widest:
            self._scratch = self.device.memory.empty(widest, np.uint8)
            self._scratch.fill(0)
        for cell, part, kernel, blocks, weights in kernels:
            self._launches[part] = self._launch(cell, part, kernel, blocks, weights)
        self._cell_of = {part: cell for cell, part in enumerate(parts)}

    def _cliques(self, part: Part) -> tuple[CliqueCount, Shape]:
        plan = CliqueCount(part.clique, self._plan.oriented[part.root_bundles[0].members[0].relation])
        shape = shape_for(plan, self.device.limits)
        if shape is None:
            raise Unsupported("cliques of this size")
        self.graph.residency.place([lists_of_oriented(plan.graph), *self._lists.placed])
        self.graph.oriented(plan.graph)
        return plan, shape

    def _books(self, cell: int, part: Part, power: int) -> _Launch:
        """Triangles and what all three know, on graphs whose bits take a block's shared memory."""
        relation = part.root_bundles[0].members[0].relation
        ranked = self._lists.ranks.relations[relation]
        lower, every = ranked.less - ranked.begin[:-1], np.diff(ranked.begin)
        needed = lower.astype(np.int64) * ((every.astype(np.int64) + 31) // 32)
        rows, threads = (int(lower.max(initial=0)) + 3) // 2 * 2, 512
        if rows >= 1 << 16 or int(every.max(initial=0)) >= 1 << 16:
            raise Unsupported("longer lists than 16 bits count")
        words = (self._vertices + 31) // 32
        fixed = 4 * (words + (words + 1) // 2) + threads // 32 * rows * 2
        limits = self.device.limits  # two blocks on each processor, where their bits leave room for a matrix
        room = max((min(limits.shared, limits.processor_shared // 2 - _BOOKS_STATIC) - fixed) // 4, 0)
        shared = fixed + 4 * room
        if shared > limits.shared:
            raise Unsupported("more bits than shared memory holds")
        most = int(needed.max(initial=0))
        module = self.device.module("clique_books", {})
        blocks = module.resident("books", threads, shared)
        scratch = self._upload(np.zeros(most * blocks, np.uint32)) if most > room else None
        sums, sizes, nexts = self._cells_of(cell)
        arguments = (
            *(address(self._lists.cells), self._numbers[relation], self._vertices, self._vertices, power, room, rows),
            *(address(scratch), most, sums, sizes, nexts, self.stop.address),
        )
        kernel = GeneratedCode("", threads, shared, 0, False, False)
        return _Launch(part, kernel, blocks, arguments, cell, None, ("clique_books", "books"))

    def _cells_of(self, cell: int) -> tuple[int, int, int]:
        """The addresses of a part's sum, its estimate, and its next task."""
        width = self._cells.shape[1]
        first, second, third = (address(self._cells) + 8 * (row * width + cell) for row in range(3))
        return first, second, third

    def _upload(self, values: NDArray[Any]) -> Any:
        self._alive.append(self.device.memory.upload(values))
        return self._alive[-1]

    def _alone(self, weight: Weight) -> int:
        """How many values a vertex has that nothing joins to others."""
        if weight.loops or not weight.filters:
            raise Unsupported("loops")
        return len(self._weights.candidates(weight))

    def _generated(self, part: Part) -> tuple[GeneratedCode, int, list[Any]]:
        """A part's kernel, how many blocks it is launched with, and the weights that it reads."""
        values = tuple(self._weights.values(weight) for weight in part.weights)
        relations, large = tuple(self._numbers.items()), self._vertices > self.device.limits.shared // 4
        reaches = tuple(self._lists.reach_of(relation) if large else 0.0 for relation, _ in relations)
        known = (self._lists.longest, reaches, values, self._vertices, bool(part.root.messages), self.device.limits)
        kernel = _written(part, relations, *known)
        module = self.device.module("count_nested", {}, kernel.text, self._check)
        blocks = module.resident("nested", kernel.threads, kernel.shared)
        if kernel.scratch:
            room = self.device.memory.reserve(2 * blocks * kernel.scratch)
            blocks = min(blocks, room // 2 // kernel.scratch)
            if blocks < 1:
                raise Unsupported("no room for a block's vectors")
        return kernel, blocks, [self._weights.array(weight) for weight in part.weights]

    def _launch(self, cell: int, part: Part, kernel: GeneratedCode, blocks: int, weights: list[Any]) -> _Launch:
        table = self._upload(np.array([*self._lists.table, *map(address, weights)], np.int64))
        teams = blocks * (kernel.threads // 32 if kernel.warps else 1)
        most = int(_TASKS * self.device.memory.budget) // _TASK_BYTES
        tasks = self._tasks(part, min(teams * _DEAL, most) if kernel.split else 0)
        root_weight = self._weights.array(part.root) if part.root.messages else None
        sums, sizes, nexts = self._cells_of(cell)
        if part.rooted:
            self._vectors[part] = self.device.memory.empty(self._vertices, np.uint64)
            self._alive.append(self._vectors[part])
            sums = address(self._vectors[part])
        arguments = (
            *(address(table), address(tasks), len(tasks), address(root_weight), self._vertices),
            *(address(self._scratch), kernel.scratch, sums, sizes, nexts, self.stop.address),
        )
        blocks = min(blocks, -(-len(tasks) * blocks // max(teams, 1)))
        return _Launch(part, kernel, blocks, arguments, cell, tasks)

    def _tasks(self, part: Part, wanted: int) -> Any:
        """Roots as tasks: they depend on the root's candidates and its lists alone."""
        relations = [bundle.members[0].relation for bundle in part.root_bundles]
        candidates = self._weights.candidates(part.root) if part.root.filters else None
        cached = len(part.root.filters) < 2
        tasks = self._lists.tasks(candidates, relations, wanted, cached=cached)
        (self._cached if cached else self._alive).append(tasks)
        return tasks

    @property
    def nbytes(self) -> int:
        """Bytes of its own arrays on the device."""
        own = (*self._alive, self._cells, self._scratch)
        return self._weights.nbytes + sum(int(array.nbytes) for array in own if array is not None)

    # --- a run

    def run(self, watch: Watch) -> int | None:
        """Count; None where the number may not fit 64 bits.

        Raises
        ------
        QueryTimeout, ExecutionError
            When the time is over, and when cancelled.
        """
        totals = self.totals(watch)
        return None if totals is None else added_up(self._terms, totals)

    def totals(self, watch: Watch, share: Share | None = None) -> dict[Part, int] | None:
        """What each part of the terms adds up to, over a share of the roots or all; as :meth:`run`.

        Over all shares of the roots, these add up to what they are over all roots.
        """
        with self._running, self.device.active():
            cells = self._launched(watch, share)
        if cells is None:
            return None
        first = share is None or share[0] == 0
        return {part: self._total(part, cells) if first or self._counted(part) else 0 for part in self._cell_of}

    def _counted(self, part: Part) -> bool:
        """Whether a part is counted by a run, not a number that is known."""
        return not isinstance(self._launches.get(part), int)

    def division(self) -> Division | None:
        """How sums divide by the ranks that are their roots; None where all is linear, or in one piece."""
        looped = [part for part in self._cell_of if part.levels or part.clique]
        if not looped or any(part.rooted and len(term.parts) > 1 for term in self._terms for part in term.parts):
            return None
        return Division("vertices", self._units, lambda: self._root_weights(looped))

    def _root_weights(self, looped: list[Part]) -> NDArray[np.float64]:
        """About how much work each rank is as a root: float64 [vertices]."""
        weights = np.ones(self._units)
        for part in looped:
            launch = self._launches.get(part)
            if isinstance(launch, tuple):
                weights += launch[0].graph.work_by(self._units)[::-1]  # its last ranks are the first tasks
                continue
            weights += self._lists.work_of(part.root_bundles[0].members[0].relation)
        return weights

    def run_by_vertex(self, watch: Watch, share: Share | None = None) -> tuple[Ints, Ints] | None:
        """The vertices that the plan's root is bound to, and the matches of each; None where these may not fit.

        With a share, for roots in it alone.  Only vertices with a match leave the device.  Raises what :meth:`run`
        does.
        """
        with self._running, self.device.active():
            cells = self._launched(watch, share)
            if cells is None:
                return None
            found, greatest = self.device.memory.empty(self._vertices, np.int64), 0
            found[...] = 0
            for term in self._terms:
                rooted, *others = term.parts
                factor = self._product(term.coefficient * rooted.multiple, others, cells)
                greatest += abs(factor) * self._most(rooted, cells)
                if greatest >= _FITS:
                    return None
                self._weights.add_to(found, self._vectors[rooted], factor)
            if share is not None:  # weights along edges are of all
                found[: share[0]] = 0
                found[share[1] :] = 0
            return self._matched(found)

    def _matched(self, found: Any) -> tuple[Ints, Ints]:
        """The vertices that have a number, and these."""
        memory, size = self.device.memory, self._vertices
        vertices = memory.cached_or_built("vertices", self._lists, lambda: memory.upload(self._lists.ranks.vertices))
        module, fits = self.device.module("join", {"ID": IDS[np.int64]}), memory.empty(size, np.int64)
        blocks = -(-size // BLOCK)
        module.launch("matched", blocks, found, size, fits)
        positions = self.device.offsets(fits)
        count = self.device.last(positions)
        ids, numbers = memory.empty(count, np.int64), memory.empty(count, np.int64)
        columns = memory.upload(np.zeros(2, np.int64))
        which = (vertices, size, size, columns, 1, columns, found, positions)
        module.launch("keep_rows", blocks, *which, ids, count, numbers)
        return ids.get(), numbers.get()

    def _product(self, factor: int, parts: Iterable[Part], cells: Ints) -> int:
        for part in parts:
            factor *= self._total(part, cells)
        return factor

    def _total(self, part: Part, cells: Ints) -> int:
        found = self._launches.get(part)
        return found if isinstance(found, int) else int(cells[0, self._cell_of[part]]) * part.multiple

    def _most(self, part: Part, cells: Ints) -> int:
        """No vertex has more matches of a part."""
        if not part.levels:
            return self._weights.values(part.root).top
        cell = self._cell_of[part]
        return int(cells[1, cell : cell + 1].view(np.float64)[0]) + 1

    def _launched(self, watch: Watch, share: Share | None = None) -> Ints | None:
        """What all parts tell: sums, estimates and tasks; None where a sum may not fit."""
        begin = self._start(share)
        self._cells.get(out=self._answer, stream=self.device.stream, blocking=False)
        end = self.device.event()
        self._wait(end, watch)
        self.milliseconds = self.device.milliseconds(begin, end)
        cells = self._answer.copy()
        return None if (cells[1].view(np.float64) > EXACT).any() else cells

    def _start(self, share: Share | None) -> Any:
        first, last = share or (0, self._units)
        whole = (first, last) == (0, self._units)
        self._cells.fill(0)
        self._used.clear()
        for part, vector in self._vectors.items():
            if part.levels:
                vector.fill(0)
        begin = self.device.event()
        if not self._weighed and share is None:  # shares of a run find the same weights
            self._weights.weigh()
        self._weighed = False
        for part, cell in self._cell_of.items():
            launch = self._launches.get(part)
            if isinstance(launch, _Launch):
                kernel = launch.kernel
                module = self.device.module(launch.name[0], {}, kernel.text)
                self._used.append(module)
                blocks, arguments = (launch.blocks, launch.arguments) if whole else self._part_of(launch, first, last)
                module.launch(launch.name[1], blocks, *arguments, threads=kernel.threads, shared=kernel.shared)
            elif isinstance(launch, tuple):
                sums, _, nexts = self._cells_of(cell)
                ranks = len(launch[0].graph.offsets) - 1
                end, start = (ranks - at * ranks // max(self._units, 1) for at in (first, last))
                launch_cliques(self.device, self.graph, *launch, self.stop.address, nexts, sums, (start, end))
            elif launch is None and not part.rooted and first == 0:
                sums, sizes, _ = self._cells_of(cell)
                self._weights.add_up(part.root, sums, sizes)
        return begin

    def _part_of(self, launch: _Launch, first: int, last: int) -> tuple[int, tuple[Any, ...]]:
        """A launch over some of the roots: its blocks and arguments."""
        if launch.tasks is None:
            self._cells[2, launch.cell : launch.cell + 1] = first
            return launch.blocks, (*launch.arguments[:3], last, *launch.arguments[4:])
        if launch.part not in self._roots:
            self._roots[launch.part] = launch.tasks.get()[:, 0]
        begun, ended = np.searchsorted(self._roots[launch.part], (first, last)).tolist()
        table, tasks, _, *others = launch.arguments
        return min(launch.blocks, ended - begun), (table, tasks + 8 * begun, ended - begun, *others)

    def _wait(self, end: Any, watch: Watch) -> None:
        """Wait for the device; when the run must stop, tell it and wait for that."""
        wait_for(end, watch, self.stop, self._clean)

    def _clean(self) -> None:
        if self._scratch is not None:
            self._scratch.fill(0)


def _vectors(plan: CountingPlan) -> int:
    """How many numbers of 64 bits a plan's sums keep for each rank, where not all lists fit: what is sent along each
    edge of a tree, what sums over lists are found in, and a task for each root of loops.
    """
    parts = [part for part in parts_of(plan.terms) if part.levels or part.rooted]
    sent = sum(len(weight.messages) for weight in weights_of(parts))
    return sent + bool(sent) + sum(bool(part.levels) for part in parts)


@lru_cache(maxsize=256)
def _written(
    part: Part,
    relations: tuple[tuple[Relation, int], ...],
    longest: tuple[int, ...],
    reaches: tuple[float, ...],
    values: tuple[Values, ...],
    vertices: int,
    root_weighted: bool,
    limits: Limits,
) -> GeneratedCode:
    """The kernel of a part; a shape that was written before is not written again, as it is not compiled again."""
    return generate_code(part, dict(relations), longest, reaches, values, vertices, root_weighted, limits)
