"""Which counts are made in passes over lists that do not fit the device (:mod:`.ranges`), and what
they are expected to take and to copy.

That is the square and its like: roots send ones along the lists of their neighbours, and a power of what arrives is
added up, over all roots or for each; other terms may be linear.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphdb.gpu.card import Limits
from graphdb.gpu.code.launch import Device
from graphdb.gpu.code.layout import RANKED
from graphdb.gpu.counting.linear import is_linear
from graphdb.gpu.counting.passes.ranges import WIDE, Lengths, Passes, passes_of
from graphdb.gpu.counting.ranks import by_degree
from graphdb.gpu.counting.registers import BLOCKS, range_bytes
from graphdb.gpu.data.graph import DeviceGraph
from graphdb.gpu.data.residency import WHOLE
from graphdb.plan.checks import Relation
from graphdb.plan.counting.plan import CountingPlan, parts_of
from graphdb.plan.counting.programs import Bundle, Load, Part, Through, Weight
from graphdb.storage.graph.signatures import runs

Ints = NDArray[np.int64]

ROUND = 3e-6
"""Seconds in which a block goes through the list of a root for one range of ranks, however short it is."""
STREAMED = 0.9
"""Of the budget, so much is for what passes hold; the rest is for a few numbers of each."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A part whose roots send ones along lists: to which power what arrives is raised, and who takes part."""

    power: int
    mirrored: bool
    root: Weight
    middle: Weight | None
    end: Weight | None


@dataclass(frozen=True, slots=True)
class Streamable:
    """What of a counting plan is counted in passes, all of it along the same lists; its other parts are linear.

    Attributes
    ----------
    roots, along
        The relations whose lists roots have, and that are sent along.
    """

    roots: Relation
    along: Relation
    sent: Mapping[Part, Sent]

    def kept(self, ranks: int) -> int:
        """Bytes on the device of the numbers that are added up for each root."""
        return 8 * ranks * sum(part.rooted for part in self.sent)

    @property
    def mirrored(self) -> bool:
        """Whether no part counts receivers behind their roots."""
        return all(each.mirrored for each in self.sent.values())


def streamable(plan: CountingPlan) -> Streamable | None:
    """What is counted in passes; None where there is anything else to count."""
    sent, relations = dict[Part, Sent](), set[tuple[Relation, Relation]]()
    for part in parts_of(plan.terms):
        if part.clique or part.root.loops:
            return None
        if not part.levels:
            if not is_linear(part.root) or part.root.is_one:
                return None
            continue
        found = _sent(part)
        if found is None:
            return None
        own, pair = found
        sent[part] = own
        relations.add(pair)
    if len(relations) != 1:
        return None
    roots, along = relations.pop()
    return Streamable(roots, along, sent)


def _sent(part: Part) -> tuple[Sent, tuple[Relation, Relation]] | None:
    """What is sent, and along which lists, where it is a power of sums that are added up and nothing else."""
    match [level.instructions for level in part.levels]:
        case [(Load() as near, Through(mask=-1, total=1, closed=None) as last)]:
            bundles: tuple[Bundle, ...] = (near.bundle, last.forward)
        case _:
            return None
    plain = all(bundle.plain and not bundle.order for bundle in bundles)
    weights = [None if number < 0 else part.weights[number] for number in (near.weight, last.weight)]
    only_filters = not any(each.messages or each.loops for each in (part.root, *weights) if each is not None)
    if last.source != near.out or not plain or not only_filters:
        return None
    relations = bundles[0].members[0].relation, bundles[1].members[0].relation
    return Sent(last.power, last.mirrored, part.root, weights[0], weights[1]), relations


def lengths_of(graph: DeviceGraph, plan: CountingPlan, found: Streamable) -> Lengths:
    """What is known of a plan's lists before they are ranked; cached with them."""

    def build() -> Lengths:
        order = by_degree(plan.partitions.values(), plan.vertices)
        roots, holding = (np.zeros(plan.vertices, np.int64) for _ in range(2))
        partition, along = plan.partitions[found.roots], plan.partitions[found.along]
        roots[partition.keys] = partition.lengths()
        if found.along.direction == "both":
            holding[along.keys] = along.lengths()
        else:
            holding += np.bincount(runs(along)[2], minlength=plan.vertices)
        return Lengths(roots[order], holding[order], found.mirrored)

    numbers = [graph.serial(each) for each in plan.partitions.values()]
    own = [list(plan.partitions).index(relation) for relation in (found.roots, found.along)]
    return graph.memory.cached_or_built(
        f"lengths {numbers} {own} {found.mirrored}", next(iter(plan.partitions.values())), build
    )


def known_passes(graph: DeviceGraph, lengths: Lengths, room: int) -> Passes | None:
    """The passes of all roots for so many bytes on the device; cached with what they are found from."""
    known: _Known = graph.memory.cached_or_built(f"passes {room}", lengths, lambda: _Known(passes_of(lengths, room)))
    return known.passes


@dataclass(frozen=True, slots=True)
class _Known:
    """Passes that were found, or that there are none."""

    passes: Passes | None
    nbytes: int = 0
    """Bytes on the device."""


def room_of(budget: int) -> int:
    """Bytes of a budget that passes may take."""
    return int(STREAMED * budget)


def span_of(lengths: Lengths, limits: Limits) -> tuple[int, bool]:
    """The ranks whose numbers fit a block's shared memory, and whether these have 16 bits."""
    most = min(int(lengths.roots.max(initial=0)), int(lengths.holding.max(initial=0)))
    halves = most < 1 << 16
    return range_bytes(limits) // 256 * 256 // (2 if halves else 4), halves


def rounds(lengths: Lengths, passes: Passes, span: int) -> float:
    """How often blocks go through a root's list, all roots together."""
    ranges = sum(-(-(last - first) // span) for first, last in zip(passes.bounds, passes.bounds[1:], strict=False))
    return len(lengths.roots) * ranges * (0.5 if lengths.mirrored else 1.0)


@dataclass(frozen=True, slots=True)
class Streaming:
    """A counting plan whose lists do not fit the device, and that is counted in passes.

    Attributes
    ----------
    passes
        Those in all of the budget; None where that is too little.
    """

    found: Streamable
    lengths: Lengths
    passes: Passes | None

    @classmethod
    def of(cls, graph: DeviceGraph, plan: CountingPlan, *, anyway: bool = False) -> Streaming | None:
        """How a plan is counted in passes; None where it cannot be, and where its lists fit, unless it is to be counted
        so ``anyway``.
        """
        budget, partitions = graph.memory.budget, {id(each): each for each in plan.partitions.values()}.values()
        elements = sum(len(each.neighbours) for each in partitions)

        def fit(ranks: int) -> bool:
            return 4 * (elements + (len(RANKED) - 1) * ranks * len(partitions)) < WHOLE * budget

        if not anyway and fit(plan.vertices):
            return None
        found = streamable(plan)
        if found is None:
            return None
        lengths = lengths_of(graph, plan, found)
        ranks, longest = len(lengths.roots), max(int(each.sum()) for each in (lengths.roots, lengths.holding))
        if ranks > WIDE or longest >= 1 << 32 or (not anyway and fit(ranks)):
            return None
        return cls(found, lengths, known_passes(graph, lengths, room_of(budget) - found.kept(ranks)))

    def seconds(self, scanning: float, device: Device) -> float:
        """What a run is expected to take, which takes so many seconds to read long lists; infinite without room."""
        if self.passes is None:
            return math.inf
        goes = rounds(self.lengths, self.passes, span_of(self.lengths, device.limits)[0])
        counting = scanning + ROUND * goes / (BLOCKS * device.processors)
        return self.passes.seconds(counting, device.rates.pinned_upload)

    def describe(self) -> str:
        """The passes, as a phrase for EXPLAIN."""
        if self.passes is None:
            return "sums"
        count, moved = len(self.passes.bounds) - 1, self.passes.moved / 2**20
        lists = self.lengths.lists_bytes / 2**20
        return (
            f"sums in {count} pass{'es' * (count > 1)} over {lists:,.0f} MiB of lists, {moved:,.0f} MiB over the link"
        )
