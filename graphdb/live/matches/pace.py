"""Whether a batch's changes are matched by delta plans, or an answer that aggregates is computed anew.

Aggregates are counted without enumeration where they can be, which may take less time than to match what a large batch
changes.  What either takes is learned from its runs.  A match that turns out to take longer than the other way is
stopped: so a batch takes twice what the better of both would, at most (ski rental: Karlin, Manasse, Rudolph, Sleator,
Algorithmica 1988).
"""

from __future__ import annotations

import time
from collections.abc import Callable

from graphdb.plan.executor import Overran
from graphdb.plan.strategy.ski_rental import LONGER, MEMORY, OFTEN

LEAST = 0.1
"""Seconds that delta plans get in any case."""
_MATCH = 5e-8
"""Seconds in which a match is enumerated: so answers are computed, for all that is known of them at first."""


class Pace:
    """What one continuous query's batches take."""

    def __init__(self) -> None:
        self.anew: float | None = None
        """Seconds that the answer takes anew, once that is known; …"""
        self._of = 0
        """… and of how many matches it was."""
        self._each = 0.0
        """Seconds that a changed edge takes: of batches that took long enough to tell."""
        self._begun: float | None = None
        self._skipped = 0

    def limited(self, check: Callable[[], None], size: int, matches: Callable[[], int]) -> Callable[[], None]:
        """Return what is called while a batch is matched: it raises Overran where that takes too long.

        Parameters
        ----------
        check
            What it calls.
        size
            Changed edges.
        matches
            Returns how many matches the answer was of before the batch; asked of one that takes long.
        """
        skip = self._each * size > LEAST and self._skipped < OFTEN
        skip = skip and self._each * size > LONGER * self._expected(matches())
        self._begun, calls, limit = None, 0, LEAST
        known = False

        def limited() -> None:
            nonlocal calls, known, limit
            check()
            calls += 1
            if skip:
                raise Overran
            if calls == 2:  # until the first, kernels may have been compiled
                self._begun = time.perf_counter()
            if self._taken < limit:
                return
            if not known:
                known, limit = True, max(LEAST, self._expected(matches()))
            if self._taken >= limit:
                raise Overran

        return limited

    @property
    def _taken(self) -> float:
        return 0.0 if self._begun is None else time.perf_counter() - self._begun

    def matched(self, size: int) -> None:
        """Note that the batch was matched."""
        self._each += MEMORY * (self._taken / max(size, 1) - self._each)
        self._skipped = 0

    def overran(self, size: int) -> None:
        """Note that it was stopped, or not begun."""
        self._skipped = self._skipped + 1 if self._begun is None else 0
        self._each = max(self._each, LONGER * self._taken / max(size, 1))

    def _expected(self, matches: int) -> float:
        """Seconds that an answer of some matches is expected to take anew."""
        if self.anew is not None and matches <= LONGER * self._of:
            return self.anew
        return max(self.anew or 0.0, matches * _MATCH)

    def compared(self, seconds: float, matches: int) -> None:
        """Note what the answer of some matches took anew."""
        self._of = matches
        self.anew = seconds if self.anew is None else self.anew + MEMORY * (seconds - self.anew)
