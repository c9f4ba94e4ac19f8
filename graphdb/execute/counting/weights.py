"""Weights along edges: how a counting plan's trees are counted (:mod:`graphdb.plan.counting.programs`)."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from graphdb.execute.counting.run import CountRun
from graphdb.plan.counting.programs import Bundle, Part, Weight
from graphdb.storage.arrays.sorted_sets import both

Ints = NDArray[np.int64]

_NARROW = (1 << 31) - 1
"""Weights up to this are read as 32 bits."""


class Weights:
    """The weights found so far, by what they are of, the modulus and the vertices that they are wanted for."""

    def __init__(self, run: CountRun) -> None:
        from graphdb.execute.counting.kernels import count_kernels

        self._run, self._kernels = run, count_kernels
        self._messages: dict[tuple[Bundle, Weight, int, int], tuple[Ints, Ints | None]] = {}
        self._weights: dict[tuple[Weight, int, int], tuple[Ints, Ints | None]] = {}

    def forget(self) -> None:
        """Numbers in them did not fit."""
        self._messages.clear()
        self._weights.clear()

    def roots(self, part: Part) -> Ints:
        """What the root ranges over: its candidates, or all vertices that have the rarest of its edges."""
        if part.root.filters:
            return self._candidates(part.root)
        members = [bundle.members[0] for bundle in part.root_bundles] + list(part.root.loops)
        return min((self._run.partition(member).keys for member in members), key=len)

    def _candidates(self, weight: Weight) -> Ints:
        sets = sorted((self._run.plan.filters[number] for number in weight.filters), key=len)
        return reduce(both, sets)

    def values(self, weight: Weight, support: Ints | None, modulus: int) -> Ints:
        """The weight of every vertex (of the support, where there is one): int64 [vertices]; empty for 1."""
        if weight.is_one:
            return np.empty(0, np.int64)
        key = (weight, modulus, id(support))
        if key in self._weights:
            return self._weights[key][0]
        if weight.filters:
            support = self._candidates(weight)
        messages = [self._message(bundle, child, support, modulus) for bundle, child in weight.messages]
        if support is None:
            members = [bundle.members[0] for bundle, _ in weight.messages] + list(weight.loops)
            support = min((self._run.partition(member).keys for member in members), key=len)
        if len(messages) == 1 and not weight.filters and not weight.loops:
            values = messages[0]
        else:
            values = np.zeros(self._run.plan.vertices, np.int64)
            values[support] = 1
            if weight.loops:
                loops = np.array([self._run.member(member) for member in weight.loops], np.int64)
                shared = (modulus, self._run.flags, self._run.like)
                self._kernels.loop_worth(loops, self._run.partitions, support, values, *shared)
            for message in messages:
                self._kernels.multiply(support, values, message, modulus, self._run.flags)
        self._weights[key] = (values, support)
        return values

    def _message(self, bundle: Bundle, child: Weight, support: Ints | None, modulus: int) -> Ints:
        """The sum of the child's weight over every vertex's neighbours: int64 [vertices]."""
        partition = self._run.partition(bundle.members[0])
        if support is partition.keys:  # that is everything
            support = None
        key = (bundle, child, modulus, id(support))
        if key in self._messages:
            return self._messages[key][0]
        reached: Ints | None = None
        entries = len(partition.neighbours)
        expected = entries
        row = self._run.relations[bundle.members[0].relation]
        if support is not None:
            expected = int(len(support) * entries / max(len(partition.keys), 1)) + 1
            if expected * 4 < entries and not child.is_one and not child.filters:
                marks = np.zeros(self._run.plan.vertices, bool)
                self._kernels.reach(row, self._run.partitions, support, marks, self._run.like)
                reached = np.flatnonzero(marks)
        weights = self.values(child, reached, modulus)
        over = partition.keys if support is None else support
        out = np.zeros(self._run.plan.vertices, np.int64)
        bundles, members = self._run.tables([bundle])
        fixed = (weights, out, modulus, self._run.flags, self._run.like)

        narrow = bundle.plain and not modulus and len(weights) and expected > len(weights) and weights.max() <= _NARROW
        small = weights.astype(np.int32) if narrow else None

        def send(begin: int, end: int, _: int) -> None:
            if small is None:
                self._kernels.send(bundles, members, self._run.partitions, over, begin, end, *fixed)
            else:
                shared = (small, out, self._run.flags, self._run.like)
                self._kernels.send_narrow(row, self._run.partitions, over, begin, end, *shared)

        self._run.schedule(send, self._run.even_bounds(len(over), expected), expected)
        if child.fall > 1:
            self._kernels.fall(over, out, child.fall, modulus, self._run.flags)
        self._messages[key] = (out, support)
        return out

    def total(self, root: Weight, roots: Ints, modulus: int) -> int:
        """The sum of a root's weight over its vertices ``roots`` (int64).

        Its last factor is multiplied in wider numbers: the root's products are the first to pass 64 bits, and to count
        again modulo primes takes several times as long.
        """
        last: Ints | None = None
        if root.messages and not modulus:
            *others, (bundle, child) = root.messages
            last = self._message(bundle, child, roots, modulus)
            root = replace(root, messages=tuple(others))
        values = self.values(root, roots, modulus)
        if last is None and not len(values):
            return len(roots)
        sums = np.zeros(6, np.int64)
        if last is None or not len(values):
            self._kernels.add_up(roots, values if last is None else last, sums)
        else:
            self._kernels.add_products(roots, values, last, sums)
        low, low_carry, middle, middle_carry, high, high_carry = map(int, sums)
        return low + (low_carry << 32) + (middle + (middle_carry << 32) << 31) + (high + (high_carry << 32) << 62)
