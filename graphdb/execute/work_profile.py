"""What the units of a run took, as its last run showed: where the next one is divided into shares of equal time.

Expected work is a guess: cliques of dense parts, or lists of hubs, take many times what weights say.  A share's time
says what its units took together; within a share weights go on telling how it spreads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from graphdb.plan.shares import Division
from graphdb.storage.arrays.sorted_sets import unique

POINTS = 1 << 12
"""Units, about, between which work is taken to be spread evenly."""
REST, LONG = 16, 64
"""Such a part of a run that is known is left to whoever is done first, where each worker works as long as so many of
the least shares."""


@dataclass(frozen=True, slots=True, eq=False)
class WorkProfile:
    """How work is spread over the units of a run.

    Attributes
    ----------
    units
        int64 [points]: rising, from 0 to how many there are.
    work
        float64 [points]: what all units before each take, in any unit of time.
    """

    units: NDArray[np.int64]
    work: NDArray[np.float64]

    @classmethod
    def expected(cls, weights: NDArray[np.float64]) -> WorkProfile:
        """By the expected work of each unit: float64 [units]."""
        work = np.append(0.0, np.cumsum(weights + 1e-9))
        heavy = np.searchsorted(work, np.linspace(0.0, work[-1], POINTS))
        units = unique(np.concatenate([[0], heavy, [len(weights)]]))
        return cls(units, work[units])

    def measured(self, shares: Sequence[tuple[int, int, float]]) -> WorkProfile:
        """The same after a run whose shares (first unit, last + 1, seconds) are all units, each once.

        >>> found = WorkProfile.expected(np.ones(4)).measured([(0, 2, 3.0), (2, 4, 1.0)])
        >>> found.shares([0.5, 0.5])[0]
        [(0, 1), (1, 4)]
        """
        shares = sorted(shares)
        units = unique(np.concatenate([self.units, [begin for begin, *_ in shares]]))
        before, work = np.interp(units, self.units, self.work), np.zeros(len(units))
        done = 0.0
        for begin, end, seconds in shares:
            first, last = np.searchsorted(units, [begin, end])
            part = before[first : last + 1] - before[first]
            work[first : last + 1] = done + part * (seconds / max(float(part[-1]), 1e-12))
            done += seconds
        if len(units) > 2 * POINTS:
            chosen = unique(np.append(np.searchsorted(work, np.linspace(0.0, done, POINTS)), [0, len(units) - 1]))
            units, work = units[chosen], work[chosen]
        return WorkProfile(units, work)

    def shares(self, parts: Sequence[float]) -> tuple[list[tuple[int, int]], list[float]]:
        """Ranges of units that are such parts of the work, one after the other, and each one's part; without those that
        have no unit.
        """
        ends = np.interp(np.cumsum(parts) * self.work[-1], self.work, self.units)
        bounds = [0, *np.rint(ends[:-1]).astype(int).tolist(), int(self.units[-1])]
        cuts = list(pairwise(bounds))
        chosen = [number for number, (begin, end) in enumerate(cuts) if begin < end]
        return [cuts[number] for number in chosen], [parts[number] for number in chosen]


@dataclass(frozen=True, slots=True, eq=False)
class LastRun:
    """What the last run of a plan showed.

    Attributes
    ----------
    seconds
        What it took, all executors together.
    unit, profile
        Of which units it was divided, and how its work was spread over them.
    """

    seconds: float
    unit: str
    profile: WorkProfile

    @classmethod
    def after(cls, unit: str, profile: WorkProfile, shares: Sequence[tuple[int, int, float]]) -> LastRun:
        """What is known once a run has ended whose work was taken to be spread so: by its shares (first unit, last + 1,
        seconds).
        """
        whole = sum(end - begin for begin, end, _ in shares) == int(profile.units[-1])
        seconds = sum(seconds for *_, seconds in shares)
        return cls(seconds, unit, profile.measured(shares) if whole else profile)

    def profile_of(self, division: Division) -> WorkProfile | None:
        """How work was spread over the units of a division; None where it had others."""
        same = division.unit == self.unit and division.units == int(self.profile.units[-1])
        return self.profile if same else None

    def shares(self, workers: int, least: float) -> tuple[list[tuple[int, int]], list[float]]:
        """Ranges of units for so many workers, and each one's part of the work: one of equal time for each, and of a
        run that is long beside what a share takes at ``least`` a small rest, for whoever is done first.
        """
        rest = 1 / REST if self.seconds > LONG * workers * least else 0.0
        return self.profile.shares([(1 - rest) / workers] * workers + [rest / workers] * workers)
