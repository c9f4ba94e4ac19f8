"""Which of several ways to take for a plan: by what each is expected to take, until it is known what it took.

Estimates err by factors; a plan that runs again (a prepared query) need not.  What a way needs first (copies on a
device, a compiled kernel) is paid for once others have taken longer by that much without it, as one buys skis
when what was paid for hired ones would have bought them: never more than twice what knowing the future would cost.
What can get ready beside runs of other ways (a thread compiles) is not paid for by any run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

DOUBT = 2.0
"""A way that was not tried must promise to be so many times faster than one whose time is known."""


@dataclass(frozen=True, slots=True)
class ExpectedCost:
    """Seconds that a way is expected to take, and to get ready first."""

    seconds: float
    first: float = 0.0
    beside: bool = False
    """It can get ready beside runs of other ways: it is gone once it is, or where even waiting for that is sooner."""


ENOUGH = 2
"""So many runs after the first say what a way takes: one alone may have been held up."""


@dataclass(slots=True)
class StrategyTimings:
    """What the runs of one plan took, by the way they went."""

    least: dict[str, float] = field(default_factory=dict)
    """Seconds of the quickest run of each way but the first, which gets ready meanwhile."""
    runs: dict[str, int] = field(default_factory=dict)
    missed: dict[str, float] = field(default_factory=dict)
    """Seconds that runs of other ways took longer than this one would have, had it been ready."""

    def choose(self, ways: Mapping[str, ExpectedCost], *, runs: bool = False) -> str:
        """The way to go now; ``runs`` says that it will be gone."""
        known = {way: taken for way in ways if (taken := self.taken(way)) is not None}
        doubt = DOUBT if known else 1.0
        seconds = {way: known.get(way, doubt * expected.seconds) for way, expected in ways.items()}
        now = min(ways, key=lambda way: seconds[way] + ways[way].first)
        best = min(ways, key=seconds.__getitem__)
        missed = self.missed.get(best, 0.0) + seconds[now] - seconds[best]
        if best != now and runs:
            self.missed[best] = missed
        return best if missed >= ways[best].first and not ways[best].beside else now

    def taken(self, way: str) -> float | None:
        """Seconds that a way takes; None while too little is known."""
        return self.least[way] if self.runs.get(way, 0) > ENOUGH else None

    def rule_out(self, way: str) -> None:
        """A way turned out not to be possible."""
        self.least[way], self.runs[way] = math.inf, ENOUGH + 1

    def note(self, way: str, seconds: float) -> None:
        """A run went this way, and took so long."""
        runs = self.runs.get(way, 0)
        if runs:
            self.least[way] = min(seconds, self.least.get(way, seconds))
        self.runs[way] = runs + 1
