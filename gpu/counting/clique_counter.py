"""Which cliques a device counts over the oriented graph, what that is expected to take, and the kernels for it.

A kernel is compiled by a thread, while other ways count; several runs may count at a time.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from weakref import WeakKeyDictionary

from graphdb.common.errors import GraphDBError
from graphdb.gpu.background import in_background, while_alive
from graphdb.gpu.code.compiler import Cancelled
from graphdb.gpu.code.launch import Device, faults
from graphdb.gpu.counting.cliques import DeviceCliques, Kind, Shape, shape_for
from graphdb.gpu.data import narrow, packed
from graphdb.gpu.data.graph import DeviceGraph
from graphdb.gpu.data.narrow import lists_of_narrow
from graphdb.gpu.data.residency import Lists, lists_of_oriented, lists_read
from graphdb.gpu.watch import Watch
from graphdb.plan.physical import CliqueCount, PhysicalPlan
from graphdb.plan.strategy.ski_rental import Bias
from graphdb.storage.graph.derived.orientation import Oriented

CLIQUE = 4.0
"""Elements read for each of the lists that cliques are found in: to mark them, and to go through the bits."""
UNPACKED = 3.5
"""Elements read for each that is unpacked.  On an H200, 3.7 ps."""
LINKED = 1.5
"""Times as long as reading them in order, lists are read over the link, in small pieces."""
_log = logging.getLogger("graphdb")


class CliqueCounter:
    """Counts cliques on one device.

    Attributes
    ----------
    bias
        Of what they are expected to take.
    compiling
        The kernels that threads compile.
    """

    def __init__(self, device: Device, graph: DeviceGraph) -> None:
        self._device, self._graph = device, graph
        self.bias = Bias()
        self._ways: WeakKeyDictionary[Oriented, tuple[Kind, float]] = WeakKeyDictionary()
        """How lists are read, and the seconds that it takes longer where they do not fit."""
        self.compiling: dict[Shape, Future[None]] = {}
        self._idle: list[DeviceCliques] = []
        """What counted before, and may again."""

    def shape(self, clique: CliqueCount | None) -> Shape | None:
        """How cliques are counted; None where there are none, or no kernel for them."""
        if clique is None:
            return None
        return shape_for(clique, self._device.limits, self._way(clique.graph)[0])

    def _way(self, graph: Oriented) -> tuple[Kind, float]:
        """How lists are read: as they are where they fit, else what is sooner; and the seconds that it adds."""
        found = self._ways.get(graph)
        if found is None:
            fits = self._graph.residency.fits([lists_of_oriented(graph)])
            found = self._ways[graph] = ("plain", 0.0) if fits else self._sooner(graph)
        return found

    def _sooner(self, graph: Oriented) -> tuple[Kind, float]:
        """Which lists that do not fit are sooner read, and the seconds that they take longer than those that do."""
        room, rates = packed.room_of(self._device.memory.budget, 0), self._device.rates
        unpacking = UNPACKED * float(graph.work[-1]) / rates.listed
        wider = LINKED * narrow.expected_bytes(graph, room).over / rates.linked
        if wider < unpacking or not packed.can_be_packed(graph):
            return "narrow", wider
        few = unpacking + LINKED * packed.expected_bytes(graph, room).over / rates.linked
        return ("narrow", wider) if wider < few else ("packed", few)

    def seconds(self, plan: CliqueCount) -> float:
        """What they are expected to be counted for, without the start, before anything was learned."""
        return CLIQUE * plan.cost / self._device.rates.listed + self._way(plan.graph)[1]

    def is_ready(self, clique: CliqueCount | None) -> bool:
        """Whether the kernel for a plan's cliques need not be compiled."""
        shape = self.shape(clique)
        return shape is None or self._device.is_ready("clique", shape.macros)

    def prepare(self, plan: CliqueCount) -> None:
        """Have a thread compile the kernel for cliques of a size."""
        shape = self.shape(plan)
        if shape is None or shape in self.compiling or self._device.is_ready("clique", shape.macros):
            return
        done = self.compiling[shape] = Future[None]()

        def compiled() -> None:
            try:
                with faults(), in_background():
                    self._device.module("clique", shape.macros, check=while_alive)
            except (GraphDBError, Cancelled) as error:
                _log.info("cliques are found one by one: %s", error)
            finally:
                self.compiling.pop(shape, None)
                done.set_result(None)

        threading.Thread(target=compiled, name="graphdb-cliques").start()

    def place(self, plan: PhysicalPlan, clique: CliqueCount) -> list[Lists]:
        """Choose what is copied of the lists that a plan's cliques are counted in, and return these."""
        shape, wide = self.shape(clique), lists_read(plan, True)
        if shape is not None and shape.packed:
            return []
        lists = lists_of_narrow(clique.graph) if shape is not None and shape.narrow else wide
        aside = 0 if shape is None else shape.aside(self._device.processors)
        self._graph.residency.place_alone(lists, aside, others=[] if lists is wide else wide)
        return lists

    def describe(self, clique: CliqueCount) -> str:
        """How lists are read that do not fit, as a phrase for EXPLAIN; empty where they do."""
        shape = self.shape(clique)
        if shape is None or not (shape.narrow or shape.packed):
            return ""
        room = packed.room_of(self._device.memory.budget, shape.aside(self._device.processors))
        if shape.packed:
            return packed.expected_bytes(clique.graph, room).describe("packed")
        return narrow.expected_bytes(clique.graph, room).describe("narrow")

    def count(
        self, plan: CliqueCount, shape: Shape, watch: Watch, share: tuple[int, int] | None = None
    ) -> tuple[int, float]:
        """How many there are, and the milliseconds that the device took; as :meth:`DeviceCliques.count`."""
        with self._run() as run:
            return run.count(plan, shape, watch, share), run.milliseconds

    @contextmanager
    def _run(self) -> Iterator[DeviceCliques]:
        """What counts cliques now: one that no other thread uses."""
        try:
            run = self._idle.pop()
        except IndexError:
            run = DeviceCliques(self._device, self._graph)
        try:
            yield run
        finally:
            self._idle.append(run)
