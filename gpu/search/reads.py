"""Live-variable analysis of a plan's steps, for the search's text: a batch stores the bound values that later steps
read.

Among slots stand the places of partial matches too: a shared intersection is found by its row in the batch that it was
made for (:func:`row_of`).
"""

from __future__ import annotations

from graphdb.plan.physical import EDGES, JOIN, SHARED_LIST, Op, PhysicalPlan, StepColumn

FIRST_ROW = -10


def row_of(share: int) -> int:
    """What stands for the place of a share's partial match in its batch, among slots."""
    return FIRST_ROW - share


class Reads:
    """The tables of a plan, which intersections are made where, and what later steps read.

    Parameters
    ----------
    plan, counting, motion, depth
        As :func:`graphdb.gpu.search.code_generation.search_text` says.
    """

    def __init__(self, plan: PhysicalPlan, counting: bool, motion: bool, depth: int) -> None:
        program = plan.program
        self._plan, self._depth = plan, depth
        self._steps: list[list[int]] = program.steps.tolist()
        self._lists: list[list[int]] = program.lists.tolist()
        self._checks: list[list[int]] = program.checks.tolist()
        self._shares: list[list[int]] = program.shares.tolist()
        self._outputs = [] if counting else program.outputs.tolist()
        self._slots = [step[StepColumn.SLOT] for step in self._steps]
        self._made = self._shares_made() if motion else {}
        self._live = [self._live_after(k) for k in range(len(self._steps))]

    def _shares_made(self) -> dict[int, int]:
        """The shared intersections of two lists and more that are made, and the step whose batch they belong to."""
        rows = [row for k in range(len(self._steps)) for row in self._list_rows(k)]
        wanted = {self._lists[row][1] for row in rows if self._lists[row][0] == SHARED_LIST}
        for share in sorted(wanted, reverse=True):
            parent = self._shares[share][0]
            while parent >= 0:
                wanted.add(parent)
                parent = self._shares[parent][0]
        made = {}
        for share in sorted(wanted):
            slots = [slot for _, slot in self._chain(share)]
            if len(slots) > 1:
                # What leaves a warp for the pool leaves its intersections behind: they are made after that.
                made[share] = max(self._depth, *(self._slots.index(slot) for slot in slots))
        return made

    def _chain(self, share: int) -> list[tuple[int, int]]:
        """The lists that a share is made of: (partition, slot)."""
        found = []
        while share >= 0:
            share, partition, slot = self._shares[share]
            found.append((partition, slot))
        return found

    def _shares_read(self, k: int) -> set[int]:
        """The shares that are read while a batch of step ``k - 1`` is extended."""
        if self._steps[k][StepColumn.KIND] != JOIN:
            return set()
        found = {self._lists[row][1] for row in self._list_rows(k) if self._lists[row][0] == SHARED_LIST}
        found = {share for share in found if self._made.get(share, k) < k}
        parents = {self._shares[share][0] for share, level in self._made.items() if level == k - 1}
        return found | {parent for parent in parents if parent in self._made}

    def _list_rows(self, k: int) -> range:
        """The rows of a step's lists."""
        return range(self._steps[k][StepColumn.LISTS], self._steps[k][StepColumn.LISTS_END])

    def _lists_of(self, k: int) -> list[tuple[int, int, int]]:
        """A join's lists: (row of the table, partition, CONSTANT_LIST or SHARED_LIST, and its slot)."""
        found: list[tuple[int, int, int]] = []
        for row in self._list_rows(k):
            partition, slot = self._lists[row][:2]
            if partition == SHARED_LIST and self._made.get(slot, k) >= k:
                found += [(row, of, vertex) for of, vertex in self._chain(slot)]
            else:
                found.append((row, partition, slot))
        return found

    def _checks_of(self, k: int) -> tuple[range, range]:
        """(restrictions, other checks) of a step, as rows of the table."""
        step = self._steps[k]
        first, other, last = step[StepColumn.ABOVES], step[StepColumn.CHECKS], step[StepColumn.CHECKS_END]
        return range(first, other), range(other, last)

    def _slots_of_check(self, row: int) -> list[int]:
        check = self._checks[row]
        match Op(check[0]):
            case Op.ABOVE | Op.UNEQUAL:
                return check[1:3]
            case Op.NOT_BOTH_EQUAL:
                return check[1:5]
            case Op.EDGES_DIFFER:
                return check[1:7]
            case Op.CANDIDATE_SEARCH | Op.CANDIDATE_BIT | Op.SIGNATURE:
                return [check[1]]
            case Op.EDGE | Op.NO_EDGE:
                return check[2:4]
            case Op.EDGE_COUNT:
                return check[2:4] + [int(slot) for slot in self._plan.program.uncertain[check[5] : check[6]]]
            case _:
                return []

    def _read_by(self, k: int) -> set[int]:
        step = self._steps[k]
        found = {slot for _, partition, slot in self._lists_of(k) if partition >= 0}
        for share, level in self._made.items():
            if level == k - 1:
                found.update(
                    slot for _, slot in (self._chain(share) if self._parent(share) < 0 else self._chain(share)[:1])
                )
        found |= {row_of(share) for share in self._shares_read(k)}
        if step[StepColumn.KIND] == EDGES:
            found |= {step[StepColumn.VERTEX], step[StepColumn.OTHER]}
        for rows in self._checks_of(k):
            for row in rows:
                found.update(self._slots_of_check(row))
        return found

    def _live_after(self, k: int) -> list[int]:
        """The slots bound by step ``k`` that are read after it."""
        later = set(self._outputs)
        for j in range(k + 1, len(self._steps)):
            later |= self._read_by(j)
        rows = [row_of(share) for share, level in self._made.items() if level < k]
        return [slot for slot in (*self._slots[: k + 1], *rows) if slot in later]

    def _parent(self, share: int) -> int:
        """The share that a share is made from; -1 where it is made from two lists."""
        parent = self._shares[share][0]
        return parent if parent in self._made else -1
