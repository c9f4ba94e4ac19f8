"""An executor that runs every plan on two executors and compares what they give."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from graphdb.plan.candidates.refine import refined
from graphdb.plan.candidates.refinement import Refinement, Sets
from graphdb.plan.domains import DomainSearch, LabelledLists
from graphdb.plan.executor import Block, Control, Executor
from graphdb.plan.extension import Adjacency, Extender
from graphdb.plan.joint import JointCount
from graphdb.plan.physical import PhysicalPlan


class MirrorExecutor:
    """Gives what ``first`` gives, once ``second`` has given the same rows (in whatever order).

    Where a limit leaves a choice of rows, only their number is compared.
    """

    def __init__(self, first: Executor, second: Executor) -> None:
        self.first, self.second = first, second
        self.name = f"{first.name} and {second.name}"

    def supports(self, plan: PhysicalPlan) -> bool:
        """Whether both can run the plan."""
        return self.first.supports(plan) and self.second.supports(plan)

    def describe(self, plan: PhysicalPlan) -> str:
        """Where the two run it."""
        return f"{self.first.describe(plan)} and {self.second.describe(plan)}"

    def refine(self, task: Refinement) -> Sets | None:
        """What the first leaves; raises AssertionError where either leaves other candidates than the planner does."""
        own = refined(task).fits
        for executor in (self.first, self.second):
            same = np.array_equal(refined(task, executor.refine).fits, own)
            assert same, f"{executor.name} refines otherwise than the planner"
        return self.first.refine(task)

    def memory(self, plan: PhysicalPlan) -> int:
        """Bytes that the two need together."""
        return self.first.memory(plan) + self.second.memory(plan)

    def run(self, plan: PhysicalPlan, control: Control | None = None) -> Iterator[Block]:
        """Run the plan on both; raises AssertionError where they differ."""
        control = control or Control()
        blocks = list(self.first.run(plan, control))
        others = list(self.second.run(plan, _like(control)))
        count, other = (sum(block.count for block in found) for found in (blocks, others))
        assert count == other, f"{self.first.name} gives {count} rows, {self.second.name} {other}"
        if control.limit_of(plan) is None and plan.outputs:
            same = np.array_equal(_sorted(plan, blocks), _sorted(plan, others))
            assert same, f"{self.first.name} and {self.second.name} give different rows"
        yield from blocks

    def count(self, plan: PhysicalPlan, control: Control | None = None) -> int:
        """Count on both; raises AssertionError where they differ."""
        control = control or Control()
        count, other = self.first.count(plan, control), self.second.count(plan, _like(control))
        assert count == other, f"{self.first.name} counts {count}, {self.second.name} {other}"
        return count

    def count_jointly(self, joint: JointCount, control: Control | None = None) -> list[int]:
        """Count on both; raises AssertionError where they differ."""
        control = control or Control()
        counts, others = self.first.count_jointly(joint, control), self.second.count_jointly(joint, _like(control))
        assert counts == others, f"{self.first.name} counts {counts}, {self.second.name} {others}"
        return counts

    def domain_search(
        self, lists: LabelledLists, scanned: float, control: Control, host_memory: int | None
    ) -> DomainSearch | None:
        """The second's."""
        return self.second.domain_search(lists, scanned, control, host_memory)

    def extender(self, lists: Adjacency, scanned: float, control: Control) -> Extender | None:
        """The second's."""
        return self.second.extender(lists, scanned, control)

    def counts_cliques(self, plan: PhysicalPlan) -> bool:
        """Whether both do."""
        return self.first.counts_cliques(plan) and self.second.counts_cliques(plan)

    def describe_jointly(self, joint: JointCount) -> str:
        """Where the two count."""
        return f"{self.first.describe_jointly(joint)} and {self.second.describe_jointly(joint)}"


def _like(control: Control) -> Control:
    return Control(control.timeout, control.cancelled, control.limit, None, control.buffer_bytes)


def _sorted(plan: PhysicalPlan, blocks: list[Block]) -> NDArray[np.int64]:
    """All rows, as int64 [rows, outputs], in the order of their values."""
    columns = [np.concatenate([np.empty(0, np.int64), *(b.columns[name] for b in blocks)]) for name in plan.outputs]
    rows = np.stack(columns, axis=1)
    return rows[np.lexsort(rows.T[::-1])]
