"""Weights on a device: the counts of the trees at a pattern vertex, bits or numbers by rank
(``kernels/counting/count_weights.cu``).

They are launched one after the other without waiting; what has to be known of all of them, to write the kernels that
read them, is asked at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.gpu.code.launch import BLOCK, VARIANTS, Device
from graphdb.gpu.counting.lists import Bits, DeviceLists
from graphdb.gpu.counting.registers import TooWide, Unsupported, Values
from graphdb.gpu.data.graph import address
from graphdb.gpu.data.memory import DeviceMemory
from graphdb.plan.checks import Relation
from graphdb.plan.counting.programs import Bundle, Part, Weight
from graphdb.storage.arrays.sorted_sets import both

Ints = NDArray[np.int64]

VARIANTS["count_weights"] = ({},)

EXACT = float(1 << 62)
"""Sums whose estimate is greater are not trusted."""


def weights_of(parts: Iterable[Part]) -> set[Weight]:
    """All weights of some parts, and those that hang off them."""
    weights: set[Weight] = set()
    pending = [weight for part in parts for weight in (part.root, *part.weights)]
    while pending:
        weight = pending.pop()
        if weight not in weights:
            weights.add(weight)
            pending += [child for _, child in weight.messages]
    return weights


def candidates_of(weight: Weight, filters: tuple[Ints, ...]) -> Ints:
    """The candidates that pass all filters of a weight, as vertices; of one filter, its own array."""
    sets = sorted((filters[number] for number in weight.filters), key=len)
    return reduce(both, sets)


class _Reported:
    """What weighings report: the greatest value each, and whether one may not fit.  All are read at once.

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
        """Where a weighing reports its greatest value; behind it stands the flag."""
        return address(self.cells) + 16 * cell

    def read(self) -> None:
        """Wait for all that was launched; raises :class:`TooWide` where a number may not fit."""
        if self._used:
            reported = self.cells.get()
            self._tops = reported[:, 0].tolist()
            if reported[:, 1].any():
                raise TooWide("numbers that may not fit 64 bits")

    def most(self, cells: Iterable[int]) -> int:
        """The greatest value that some weighings reported."""
        return max((self._tops[cell] for cell in cells), default=0)


class Weights:
    """The weights of one counting plan.

    Parameters
    ----------
    device, lists
        Where they are made, and what of.
    numbers
        Every relation's number among the lists.
    filters
        The candidate sets that weights know by number.
    parts
        All whose weights may be asked for.
    """

    def __init__(
        self,
        device: Device,
        lists: DeviceLists,
        numbers: Mapping[Relation, int],
        filters: tuple[Ints, ...],
        parts: Iterable[Part],
    ) -> None:
        self._device, self._lists, self._numbers, self._filters = device, lists, numbers, filters
        self._reported = _Reported(device.memory, self._most_weighings(parts))
        self._arrays: dict[Weight, Any] = {}
        self._asked: dict[Weight, tuple[int, tuple[int, ...]]] = {}
        """Of those that are no bits: the weighing that reports the greatest value, and those that report the greatest
        sums over lists."""
        self._made: dict[tuple[int, ...], Bits] = {}
        self._unknown: list[tuple[Bits, tuple[int, ...]]] = []
        """Bits of which the number per list is not reported yet."""
        self._weighings: list[tuple[Any, ...]] = []
        """What makes the weights, one after the other: the arguments of their launches."""
        self._alive: list[Any] = [self._reported.cells]

    @property
    def nbytes(self) -> int:
        """Bytes of its own arrays on the device."""
        return sum(int(array.nbytes) for array in self._alive)

    def _most_weighings(self, parts: Iterable[Part]) -> int:
        """How many weighings there are at most: a product per message, and a sum over each relation's lists."""
        return sum(len(weight.messages) + len(self._lists.longest) for weight in weights_of(parts))

    def candidates(self, weight: Weight) -> Ints:
        """The candidates that pass all filters, as vertices; of one filter, its own array."""
        return candidates_of(weight, self._filters)

    def array(self, weight: Weight) -> Any:
        """A weight on the device: bits, or uint64 per rank; raises :class:`Unsupported` where there is no kernel."""
        if weight not in self._arrays:
            if weight.messages:
                array, top = self._multiplied(weight)
                self._asked[weight] = top, self._sums(None, array)
            else:
                bits = self._bits(weight)
                array = bits.array
                if bits.most is None:
                    self._unknown.append((bits, self._sums(array, None)))
            self._arrays[weight] = array
        return self._arrays[weight]

    def learn(self) -> None:
        """Wait for all reports about weights; raises :class:`Unsupported` where one may not fit."""
        self._reported.read()
        for bits, cells in self._unknown:
            bits.most = self._reported.most(cells)
        self._unknown.clear()

    def values(self, weight: Weight) -> Values:
        """What was reported of a weight."""
        if not weight.messages:
            return Values(True, 1, self._bits(weight).most or 0)
        top, sums = self._asked[weight]
        return Values(False, self._reported.most([top]), self._reported.most(sums))

    def weigh(self) -> None:
        """Make all weights anew."""
        for weighing in self._weighings:
            self._launch(weighing)

    def add_up(self, weight: Weight, total: int, estimate: int) -> None:
        """Start to add a weight up; ``total`` and ``estimate`` are the addresses of two numbers, which are 0."""
        arguments = (address(self.array(weight)), self._lists.vertices, total, estimate)
        self._device.module("count_weights", {}).launch("add_up", -(-self._lists.vertices // BLOCK), *arguments)

    def add_to(self, found: Any, values: Any, factor: int) -> None:
        """Start to add numbers by rank, so many times, to others."""
        arguments = (values, factor, self._lists.vertices, found)
        self._device.module("count_weights", {}).launch("add_scaled", -(-self._lists.vertices // BLOCK), *arguments)

    def _bits(self, weight: Weight) -> Bits:
        """A weight that is only filters; of one filter (a vertex label), cached for other plans as long as that is."""
        if weight.loops:
            raise Unsupported("loops")
        found = self._made.get(weight.filters)
        if found is None:
            found = self._lists.bits(self.candidates(weight), cached=len(weight.filters) == 1)
            if len(weight.filters) > 1:
                self._alive.append(found.array)
            self._made[weight.filters] = found
        return found

    def _multiplied(self, weight: Weight) -> tuple[Any, int]:
        """The product of what hangs off a vertex: uint64 per rank, and what tells the greatest."""
        if weight.loops:
            raise Unsupported("loops")
        own = self._bits(weight).array if weight.filters else None
        before, reported = None, -1
        for bundle, child in weight.messages:
            if not bundle.plain or bundle.order:
                raise Unsupported("bundles of relations")
            before, reported = self._message(bundle, child, own, before)
        return before, reported

    def _message(self, bundle: Bundle, child: Weight, own: Any, before: Any) -> tuple[Any, int]:
        bits = values = None
        if child.messages:
            values = self.array(child)
        elif not child.is_one:
            bits = self._bits(child).array
        relation = self._numbers[bundle.members[0].relation]
        out, arguments, reported = self._weighing(relation, bits, values, own, before, child.fall)
        self._weighings.append(arguments)
        self._alive.append(out)
        return out, reported

    def _sums(self, bits: Any, values: Any) -> tuple[int, ...]:
        """What tells the greatest sums over the lists of each relation."""
        lists = range(len(self._lists.longest))
        return tuple(self._weighing(number, bits, values, None, None)[2] for number in lists)

    def _weighing(
        self, relation: int, bits: Any, values: Any, own: Any, before: Any, fall: int = 1
    ) -> tuple[Any, tuple[Any, ...], int]:
        """Launch a weighing: what it makes, the arguments of the launch, and what tells the greatest."""
        out, reported = self._device.memory.empty(self._lists.vertices, np.uint64), self._reported.cell()
        read = (address(self._lists.cells), relation, *map(address, (bits, values, own, before)))
        top = self._reported.address(reported)
        arguments = (*read, address(out), self._lists.vertices, top, top + 8, fall)
        self._launch(arguments)
        return out, arguments, reported

    def _launch(self, arguments: tuple[Any, ...]) -> None:
        blocks = min((self._lists.vertices + 7) // 8, 16 * self._device.processors)
        self._device.module("count_weights", {}).launch("weigh", blocks, *arguments)
