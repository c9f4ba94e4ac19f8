"""What the host is expected to take for a plan, by its runs so far."""

from __future__ import annotations

from graphdb.execute.host import CLIQUE, HostExecutor
from graphdb.plan.counting.twins import CHOICE
from graphdb.plan.physical import PhysicalPlan
from graphdb.plan.strategy.ski_rental import Bias

HOST_RATE = 1e8
"""Elements that one of the host's threads scans in a second, about, until runs tell; each one more adds less: …"""
FURTHER = 0.75
"""… this share of it."""
HOST_START = 3e-3
"""Seconds until all of them work."""
SMALLEST = 0.1
"""The share of what one thread does alone below which a count says nothing of how fast that is."""
HOST_ROWS = 1e8
"""Rows that it writes in a second, all threads together."""


class HostCosts:
    """The expected costs of plans on the host."""

    def __init__(self, host: HostExecutor) -> None:
        self._host = host
        kinds = ("search", "cliques", "twins", "tree", "sums")
        self._biases = {(kind, alone): Bias() for kind in kinds for alone in (False, True)}
        """Of the estimates of each way, on all threads or alone."""

    def of(self, plan: PhysicalPlan, counting: bool) -> float:
        """Seconds that a run (or with ``counting``, a count) is expected to take, by estimates of the same kind."""
        kind, work = _work(plan, counting)
        written = 0.0 if counting or not plan.steps else plan.steps[plan.row_steps - 1].estimate / HOST_ROWS
        return self._biases[kind, work < self._host.inline_cost].factor * self.scanning(work) + written

    def scanning(self, work: float) -> float:
        """Seconds in which so many elements are expected to be scanned."""
        if work < self._host.inline_cost:
            return self.alone(work)
        return HOST_START + work / (HOST_RATE * (1 + FURTHER * (self._host.threads - 1)))

    def alone(self, work: float) -> float:
        """The same of one thread."""
        return work / HOST_RATE

    def note_count(self, plan: PhysicalPlan, seconds: float, *, first: bool) -> None:
        """Learn from what a count took, unless it was so small that most of that went into its start; of one thread's
        not from a plan's first one, which makes ready as long as it counts.
        """
        kind, work = _work(plan, True)
        alone = work < self._host.inline_cost
        if work > (SMALLEST * self._host.inline_cost if alone else 0.0) and not (alone and first):
            self._biases[kind, alone].note(self.scanning(work), seconds)


def _work(plan: PhysicalPlan, counting: bool) -> tuple[str, float]:
    """How the host runs or counts a plan, and how many elements that is expected to scan."""
    if counting and plan.clique is not None:
        return "cliques", CLIQUE * plan.clique.cost
    if counting and plan.twins is not None:
        return "twins", CHOICE * float(plan.twins.choices[-1])
    if counting and plan.tree is not None:
        return "tree", plan.tree.cost
    if (counting or plan.duplicates != "keep") and plan.counting is not None:
        return "sums", plan.counting.cost
    return "search", plan.cost
