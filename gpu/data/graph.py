"""The data graph on the device: copies of partitions, columns and sets, made when a plan first reads them.

A plan holds the host's arrays; here each is identified by the array (or partition) that it is a copy of, and cached in
:class:`graphdb.gpu.data.memory.DeviceMemory` within its budget.  Layouts are the host's: the same offset layers
(SGSI §4), offsets and code offsets int64, neighbours in the vertex id type, so that a row of a plan's table of
partitions has the same six cells with device addresses.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import Any, Literal
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import DTypeLike, NDArray

from graphdb.common.errors import MemoryLimitError
from graphdb.gpu.data.bit_packed import Packing
from graphdb.gpu.data.divided import SHORT, DividedLists, VertexBlocks, divide
from graphdb.gpu.data.in_place import SPANS, Scatter, SpansCopy, missing_bytes
from graphdb.gpu.data.memory import DeviceMemory
from graphdb.gpu.data.narrow import narrow
from graphdb.gpu.data.packed import PackedCopy, copy_packed
from graphdb.gpu.data.pages import PagedArray
from graphdb.gpu.data.residency import (
    DIVIDED,
    IN_FEW_BITS,
    NARROW,
    ORIENTED,
    PACKED,
    Placement,
    Residency,
    copy_of,
    lists_of,
    offsets_of,
)
from graphdb.storage.graph.derived.orientation import Oriented
from graphdb.storage.graph.in_place.spans import Spans
from graphdb.storage.graph.pcsr import LAYERS, Layer, Partition

Ints = NDArray[np.int64]
Row = tuple[int, int, int, int, int, int]
DeviceLayer = Layer | Literal["short", "divided", "in few bits"]
DEVICE_LAYERS: dict[DeviceLayer, int] = {
    "hashed": LAYERS["hashed"],
    "spans": LAYERS["spans"],
    "short": -3,
    "divided": -4,
    "in few bits": -5,
}
"""What stands for an offset layer in a row: those of the host, the direct one with offsets of 32 bits, of lists that a
join reads by segments and of oriented graphs, and those of lists which do not all stand on the device
(:mod:`graphdb.gpu.data.divided`), as they are and in few bits."""


@dataclass(frozen=True, slots=True, eq=False)
class DevicePartition:
    """A partition's arrays on the device, as :class:`graphdb.storage.graph.pcsr.Partition` describes them."""

    layer: DeviceLayer
    groups: int
    offsets: Any
    neighbours: Any
    code_offsets: Any | None
    codes: Any | None
    max_degree: int
    alive: tuple[Any, ...] = ()
    """What has to live as long, beside its arrays."""
    packing: Packing | None = None
    """How neighbours are packed; None: they stand as they are."""

    @property
    def row(self) -> Row:
        """What a kernel reads, in the order of :data:`graphdb.storage.graph.pcsr.PARTITION`."""
        code_offsets, codes = address(self.code_offsets), address(self.codes)
        if self.packing is not None:  # without codes
            code_offsets, codes = self.packing.bits, self.packing.least
        return (
            DEVICE_LAYERS.get(self.layer, self.groups),
            address(self.offsets),
            self.groups,
            address(self.neighbours),
            code_offsets,
            codes,
        )

    @property
    def nbytes(self) -> int:
        """Bytes of the offsets: the other arrays are cached by themselves, and several partitions may share them."""
        return int(self.offsets.nbytes)


@dataclass(frozen=True, slots=True)
class NarrowCopy:
    """The copy of an oriented graph's offsets and narrow lists (:class:`graphdb.gpu.data.narrow.NarrowLists`)."""

    offsets: Any
    head: Any
    tail: Any
    first: int
    begin: int

    @property
    def arguments(self) -> tuple[Any, ...]:
        """What a kernel is given."""
        return address(self.offsets), address(self.head), address(self.tail), self.first, self.begin

    @property
    def nbytes(self) -> int:
        """Bytes of the offsets: the lists are cached by themselves."""
        return int(self.offsets.nbytes)


def segment_offsets(partition: Partition) -> np.dtype[Any]:
    """The type of the offsets by which segments of a partition's lists are found."""
    return np.dtype(np.uint32 if partition.neighbours.size < SHORT else np.int64)


def segment_layer(partition: Partition) -> DeviceLayer:
    """The offset layer of segments of a partition's lists."""
    return "short" if partition.layer == "direct" and segment_offsets(partition) == np.uint32 else partition.layer


WHOLE_LISTS = "whole"
"""What copies of lists are cached as that a join by segments reads whole: other runs have copies of their own."""
CODED = "partition with codes"
"""What a copy of a partition with the codes of its edges is cached as."""


class DeviceGraph:
    """What plans read, as copies on one device."""

    def __init__(self, memory: DeviceMemory, scatter: Scatter) -> None:
        self.memory, self._scatter = memory, scatter
        self.residency = Residency(memory)
        self._serials: WeakKeyDictionary[Partition, int] = WeakKeyDictionary()
        self._next = count()

    def serial(self, partition: Partition) -> int:
        """A unique number of a partition, for keys of the cache; it does not keep the partition alive."""
        return self._serials.setdefault(partition, next(self._next))

    def partition(self, partition: Partition, coded: bool = False, *, packed: bool = False) -> DevicePartition:
        """The copy of a partition, with the codes of its edges where these are asked for; where changes are written in
        place, there is one copy, which follows them.  Lists may stand in few bits where that is said to be read
        (``packed``).
        """
        if partition.spans is not None and not self._is_paged(partition):
            return self._following(partition, partition.spans)
        placed = None if coded else self.residency.divided(partition)
        if placed is not None and placed.blocks is not None:
            return self._divided(partition, placed, placed.blocks, placed.packing if packed else None)
        code_offsets, codes = (partition.code_offsets, partition.codes) if coded else (None, None)

        def copied() -> DevicePartition:
            return DevicePartition(
                partition.layer,
                partition.groups,
                self.memory.upload(partition.offsets),
                self.array(partition.neighbours),
                None if code_offsets is None else self.array(code_offsets),
                None if codes is None else self.array(codes),
                partition.max_degree,
            )

        if codes is None and (with_codes := self.memory.cached(CODED, partition)) is not None:
            found: DevicePartition = with_codes
            return found
        return self.memory.cached_or_built("partition" if codes is None else CODED, partition, copied)

    def _divided(
        self, partition: Partition, placed: Placement, blocks: VertexBlocks, packing: Packing | None
    ) -> DevicePartition:
        # The room of lists in few bits, which a run reads now, has none for these lists as they are.
        resident = placed.resident if packing == placed.packing else np.zeros_like(placed.resident)
        copy: DividedLists = self.memory.cached_or_built(
            DIVIDED if packing is None else IN_FEW_BITS,
            partition,
            lambda: divide(self.memory, partition, blocks, resident, packing),
        )
        layer: DeviceLayer = "divided" if copy.packing is None else "in few bits"
        longest, first = partition.max_degree, copy.here[0]
        return DevicePartition(layer, copy.groups, copy.header, first, None, None, longest, (copy,), copy.packing)

    def _is_paged(self, partition: Partition) -> bool:
        arrays = (partition.neighbours, partition.code_offsets, partition.codes)
        return any(array is not None and self.residency.is_paged(array) for array in arrays)

    def _following(self, partition: Partition, spans: Spans) -> DevicePartition:
        def followed() -> SpansCopy:
            copy = self.memory.cached_or_built(SPANS, spans, lambda: SpansCopy(self.memory))
            copy.follow(spans, self._scatter)
            return copy

        try:
            copy = followed()
        except MemoryLimitError:  # there is no room for the old pool beside a larger one
            self.memory.forget(SPANS, spans)
            copy = followed()
        return DevicePartition("spans", partition.groups, *copy.arrays, partition.max_degree)

    def lists(self, partition: Partition, whole: bool) -> DevicePartition:
        """The copy of a partition without codes; unless it is ``whole``, without any array."""
        layer, longest = segment_layer(partition), partition.max_degree
        if not whole:
            return DevicePartition(layer, partition.groups, None, None, None, None, longest)
        upload, cached = self.memory.upload, self.memory.cached_or_built
        dtype = np.uint32 if layer == "short" else np.int64
        offsets = cached(WHOLE_LISTS, partition.offsets, lambda: upload(partition.offsets, dtype))
        neighbours = cached(WHOLE_LISTS, partition.neighbours, lambda: upload(partition.neighbours))
        return DevicePartition(layer, partition.groups, offsets, neighbours, None, None, longest)

    def oriented(self, oriented: Oriented) -> DevicePartition:
        """The copy of an oriented graph: the partition of its ranks, each with the neighbours of higher rank."""

        def copy() -> DevicePartition:
            layer: DeviceLayer = "direct" if oriented.short_offsets is None else "short"
            offsets, neighbours = self.memory.upload(offsets_of(oriented)), self.array(oriented.neighbours)
            return DevicePartition(layer, len(oriented.offsets) - 1, offsets, neighbours, None, None, oriented.longest)

        return self.memory.cached_or_built(ORIENTED, oriented, copy)

    def narrow(self, oriented: Oriented) -> NarrowCopy:
        """The copy of an oriented graph's narrow lists."""

        def copy() -> NarrowCopy:
            lists, offsets = narrow(oriented), self.memory.upload(offsets_of(oriented))
            return NarrowCopy(offsets, self.array(lists.head), self.array(lists.tail), lists.first, lists.begin)

        return self.memory.cached_or_built(NARROW, oriented, copy)

    def packed(self, oriented: Oriented, aside: int) -> PackedCopy:
        """The copy of an oriented graph's packed lists, which leaves room for so many bytes."""
        return self.memory.cached_or_built(PACKED, oriented, lambda: copy_packed(self.memory, oriented, aside))

    def array(self, values: NDArray[Any], dtype: DTypeLike | None = None) -> Any:
        """The copy of an array (a scan's values, a candidate set, a signature column), in ``dtype``."""

        def copy() -> Any:
            paged = self.residency.paged(values) if dtype in (None, values.dtype) else None
            return self.memory.upload(values, dtype) if paged is None else paged

        found = self.memory.cached_or_built(copy_of(values, dtype), values, copy)
        return found.view if isinstance(found, PagedArray) else found

    def bits(self, candidates: Ints, size: int) -> Any:
        """A sorted candidate set as uint8 [(size + 7) / 8]: one bit per vertex, little-endian within each byte."""

        def build() -> Any:
            flags = np.zeros(size, bool)
            flags[candidates] = True
            return self.memory.upload(np.packbits(flags, bitorder="little"))

        return self.memory.cached_or_built(f"bits {size}", candidates, build)

    def missing_bytes(self, partition: Partition, coded: bool = False) -> int:
        """Bytes that a run would have to copy to the device before it reads this partition, with or without codes."""
        if partition.spans is not None and not self._is_paged(partition):
            copy: SpansCopy | None = self.memory.cached(SPANS, partition.spans)
            return missing_bytes(copy, partition.spans)
        uncoded = () if coded else ("partition", DIVIDED, IN_FEW_BITS)
        if any(self.memory.is_cached(what, partition) for what in (CODED, *uncoded)):
            return 0
        return sum(each.nbytes for each in lists_of(partition, coded))


def address(array: Any) -> int:
    """Where a device array stands; 0 for None."""
    return 0 if array is None else int(array.data.ptr)
