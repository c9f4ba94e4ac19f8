"""Which cliques a device counts over the oriented graph, what that is expected to take, and the kernels for it.

A kernel is compiled by a thread, while other ways count; several runs may count at a time.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager

from graphdb.common.errors import GraphDBError
from graphdb.gpu.background import in_background, while_alive
from graphdb.gpu.code.compiler import Cancelled
from graphdb.gpu.code.launch import Device, faults
from graphdb.gpu.counting.cliques import DeviceCliques, Shape, shape_for
from graphdb.gpu.data.graph import DeviceGraph
from graphdb.gpu.data.narrow import lists_of_narrow
from graphdb.gpu.data.residency import Lists, lists_of_oriented, lists_read
from graphdb.gpu.watch import Watch
from graphdb.plan.physical import CliqueCount, PhysicalPlan
from graphdb.plan.strategy.ski_rental import Bias

CLIQUE = 4.0
"""Elements read for each of the lists that cliques are found in: to mark them, and to go through the bits."""
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
        self.compiling: dict[Shape, Future[None]] = {}
        self._idle: list[DeviceCliques] = []
        """What counted before, and may again."""

    def shape(self, clique: CliqueCount | None) -> Shape | None:
        """How cliques are counted; None where there are none, or no kernel for them."""
        if clique is None:
            return None
        return shape_for(
            clique, self._device.limits, fits=self._graph.residency.fits([lists_of_oriented(clique.graph)])
        )

    def seconds(self, plan: CliqueCount) -> float:
        """What they are expected to be counted for, without the start, before anything was learned."""
        return CLIQUE * plan.cost / self._device.rates.listed

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
        lists = lists_of_narrow(clique.graph) if shape is not None and shape.narrow else wide
        aside = 0 if shape is None else 4 * shape.scratch * self._device.processors
        self._graph.residency.place_alone(lists, aside, others=[] if lists is wide else wide)
        return lists

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
