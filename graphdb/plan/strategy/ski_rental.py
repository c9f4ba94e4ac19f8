"""The choice among execution strategies for a plan: by estimates first, then by measured times (ski rental).

Estimates err by factors; a plan that runs again (a prepared query) can be measured.  The setup of a strategy (copies
on a device, a compiled kernel) is paid once the other strategies have taken longer by that much: the ski rental
problem, whose break-even rule never costs more than twice the optimum (Karlin, Manasse, Rudolph, Sleator, Algorithmica
1988). Setup that runs in the background (a thread compiles) delays no run and is not counted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

DOUBT = 2.0
"""A strategy that has not been measured must be estimated to be so many times faster than a measured one, …"""
TRIED = 0.125
"""… or to take at most this share of all that the plan's runs have taken so far: then it is measured, too, since an
estimate that is too high would else keep the faster strategy from ever being tried …"""
UNLIKELY = 32.0
"""… unless it is estimated to take so many times as long as the fastest measured one."""

WORSE = 2.0
"""A second run that takes so many times what another strategy takes counts as measured: it is not asked for a third."""


@dataclass(frozen=True, slots=True)
class ExpectedCost:
    """Seconds that a strategy is expected to take, and those of its setup."""

    seconds: float
    setup: float = 0.0
    in_background: bool = False
    """Its setup can run in the background: it is chosen once it is ready, or where even waiting for the setup is
    faster."""
    sums: bool = False
    """Whether a device would add up sums: until they are ready, it enumerates matches."""


MEMORY = 0.25
"""The share of the latest run in what is known of a strategy's estimates, …"""
OUTLIER = 8.0
"""… which counts as no further from that than this factor: a single estimate may be wrong by thousands."""


@dataclass(slots=True)
class Bias:
    """How many times longer a strategy's runs take than estimated, over all plans: a geometric mean that forgets.

    An estimate counts elements; how many are read in a second is the machine's affair, and is learned from its runs.
    """

    _log: float = 0.0

    @property
    def factor(self) -> float:
        """What an estimate is multiplied by."""
        return math.exp(self._log)

    @factor.setter
    def factor(self, value: float) -> None:
        self._log = math.log(value)

    def note(self, estimated: float, taken: float) -> None:
        """Note how many seconds a run took, and how many were estimated, without any factor."""
        if estimated > 0.0 and taken > 0.0:
            most = math.log(OUTLIER)
            self._log += MEMORY * min(max(math.log(taken / estimated) - self._log, -most), most)


LATEST = 5
"""Runs of a strategy whose median is what it takes: the fastest ever may have been luck, or over other data."""
OFTEN, LONG = 32, 0.02
"""Runs after which a choice is made anew at the latest, and seconds of them: to choose takes 0.1 ms."""
LONGER = 2.0
"""A strategy that was stopped is expected to take so many times as long as it was given."""
ENOUGH = 2
"""Runs after the first that are needed for a measured time: one alone may have been delayed."""
AGAIN, NEAR = 16.0, 8.0
"""A measured strategy that is not chosen is measured once more when the others' runs have taken so many times as long,
twice as many after each time, unless it takes so many times as long as the chosen one: a compiler or another process
may have had the processors when it was measured."""


@dataclass(slots=True)
class StrategyTimings:
    """What the runs of one plan took, by strategy."""

    seconds: dict[str, float] = field(default_factory=dict)
    """Of the median of each strategy's latest runs; the first one, which includes setup, does not count."""
    latest: dict[str, list[float]] = field(default_factory=dict)
    """Seconds of these runs: at most :data:`LATEST`."""
    runs: dict[str, int] = field(default_factory=dict)
    regret: dict[str, float] = field(default_factory=dict)
    """Seconds that runs of other strategies took longer than this one would have, had it been ready."""
    stopped: dict[str, float] = field(default_factory=dict)
    """Seconds after which a run of a strategy was stopped: it takes longer."""
    stops: dict[str, int] = field(default_factory=dict)
    """How often that happened."""
    delayed: set[str] = field(default_factory=set)
    """Measured strategies whose latest run was stopped: another process may have delayed that one."""
    since: dict[str, float] = field(default_factory=dict)
    """Seconds of the others' runs since a strategy's latest."""
    repeated: dict[str, int] = field(default_factory=dict)
    """How often a strategy was measured once more."""

    def choose(self, costs: Mapping[str, ExpectedCost], *, runs: bool = False) -> str:
        """The strategy to use now; ``runs`` says that it will be used, and the regret is noted."""
        known = {strategy: measured for strategy in costs if (measured := self.measured(strategy)) is not None}
        untried = self._untried(costs, min(known.values(), default=math.inf)) if known else None
        if untried is not None:
            return untried
        outdated = self._outdated(known) if runs else None
        if outdated is not None:
            return outdated
        return self.quickest(costs, runs=runs)

    def quickest(self, costs: Mapping[str, ExpectedCost], *, runs: bool = False) -> str:
        """The strategy that is known, or expected, to take least, and pays for its setup by now: the choice, but for
        runs that only measure another one.  ``runs`` as for :meth:`choose`.
        """
        known = {strategy for strategy in costs if self.measured(strategy) is not None}
        seconds = {
            strategy: self.expected(strategy, cost) * (DOUBT if known and strategy not in known else 1.0)
            for strategy, cost in costs.items()
        }
        now = min(costs, key=lambda strategy: seconds[strategy] + costs[strategy].setup)
        best = min(costs, key=seconds.__getitem__)
        regret = self.regret.get(best, 0.0) + seconds[now] - seconds[best]
        if best != now and runs:
            self.regret[best] = regret
        return best if regret >= costs[best].setup and not costs[best].in_background else now

    def expected(self, strategy: str, cost: ExpectedCost) -> float:
        """Seconds that a strategy is known to take, or else expected to: longer than after what it was stopped.

        A first run that was stopped may have been setting up for so long: once another strategy has been measured, and
        bounds what that costs, it gets a second one.
        """
        measured = self.measured(strategy)
        if measured is not None:
            return measured
        first = strategy not in self.runs and self.stops.get(strategy) == 1
        if first and any(self.measured(other) for other in self.runs):
            return cost.seconds
        return max(cost.seconds, LONGER * self.stopped.get(strategy, 0.0))

    def _untried(self, costs: Mapping[str, ExpectedCost], best: float) -> str | None:
        """The strategy that was never measured, and is expected to take little beside what all runs took, with what
        those of its own took that were stopped.
        """
        expected = {
            strategy: self.expected(strategy, cost) + cost.setup + self._lost(strategy)
            for strategy, cost in costs.items()
            if self.measured(strategy) is None and not (cost.setup and cost.in_background)
        }
        least = min(expected, key=expected.__getitem__, default=None)
        total = sum(taken * (self.runs[strategy] - 1) for strategy, taken in self.seconds.items() if taken < math.inf)
        if least is None or expected[least] > min(TRIED * total, UNLIKELY * best):
            return None
        return least

    def _lost(self, strategy: str) -> float:
        """Seconds of the runs of a strategy that were stopped, about: it would else be tried, and stopped, for ever."""
        return self.stops.get(strategy, 0) * self.stopped.get(strategy, 0.0)

    def _outdated(self, known: Mapping[str, float]) -> str | None:
        """The strategy that is to be measured once more; what its next run takes counts, not what earlier ones did."""
        best = min(known.values(), default=0.0)
        for strategy, seconds in known.items():
            repeated = self.repeated.get(strategy, 0)
            if best < seconds < NEAR * best and self.since.get(strategy, 0.0) > AGAIN * 2**repeated * seconds:
                self.repeated[strategy], self.since[strategy] = repeated + 1, 0.0
                self.latest.pop(strategy, None)
                return strategy
        return None

    def measured(self, strategy: str) -> float | None:
        """Seconds that a strategy takes; None while it has not been measured often enough."""
        return self.seconds[strategy] if self.runs.get(strategy, 0) > ENOUGH else None

    def tried(self, strategy: str) -> bool:
        """Whether a run by a strategy only finds out what that takes: another one is known, and known to be faster if
        this one is known, too.
        """
        known = [seconds for other in self.runs if (seconds := self.measured(other)) is not None and seconds < math.inf]
        taken = self.measured(strategy)
        return bool(known) and (taken is None or taken > min(known))

    def forget(self, strategy: str) -> None:
        """Forget what runs of a strategy took: it does something else now."""
        for known in (self.seconds, self.latest, self.runs, self.regret, self.stopped, self.stops, self.since):
            known.pop(strategy, None)
        self.delayed.discard(strategy)

    def rule_out(self, strategy: str) -> None:
        """Never choose a strategy again: it turned out not to be possible."""
        self.seconds[strategy], self.runs[strategy] = math.inf, ENOUGH + 1

    def overran(self, strategy: str, seconds: float) -> None:
        """Note that a run was stopped after so many seconds; of a measured strategy, the second in a row counts."""
        if self.measured(strategy) is not None and strategy not in self.delayed:
            self.delayed.add(strategy)
            return
        self.stopped[strategy] = max(seconds, self.stopped.get(strategy, 0.0))
        self.stops[strategy] = self.stops.get(strategy, 0) + 1
        if (
            self.runs.get(strategy) and self.measured(strategy) != math.inf
        ):  # what it took before says nothing of what it takes now
            self.runs[strategy] = 1
            self.latest.pop(strategy, None)

    def note(self, strategy: str, seconds: float) -> None:
        """Note how long a run took by a strategy."""
        runs = self.runs.get(strategy, 0)
        self.delayed.discard(strategy)
        if seconds < self.stopped.get(strategy, 0.0):  # it was being set up, or delayed
            del self.stopped[strategy]
        self.since = {other: passed + seconds for other, passed in self.since.items()} | {strategy: 0.0}
        if runs:
            latest = self.latest[strategy] = [*self.latest.get(strategy, ()), seconds][-LATEST:]
            self.seconds[strategy] = sorted(latest)[(len(latest) - 1) // 2]
            others = [self.seconds[other] for other in self.seconds if other != strategy and self.measured(other)]
            if others and seconds > WORSE * min(others):
                runs = max(runs, ENOUGH)
        self.runs[strategy] = runs + 1


@dataclass(slots=True)
class Decision:
    """A choice that holds for some runs: to weigh strategies takes longer than the smallest runs do.

    It is made anew after one run, two more, four more, and so on; and after a run that took longer than it should.
    """

    chosen: str
    costs: Mapping[str, ExpectedCost]
    left: int = 0
    """Runs for which it holds still."""
    runs: int = 1
    """Runs for which the latest choice was to hold."""

    def again(self) -> bool:
        """Whether it holds for the next run."""
        self.left -= 1
        return self.left >= 0

    @classmethod
    def after(
        cls, former: Decision | None, chosen: str, costs: Mapping[str, ExpectedCost], timings: StrategyTimings
    ) -> Decision:
        """A choice made anew: one that is as before holds for longer, unless another strategy would be faster once it
        is set up, which may be done by the next run, or paid for.  Where there is one alone, nothing is waited for.
        """
        taken = timings.expected(chosen, costs[chosen]) if chosen in costs else math.inf
        waiting = len(costs) > 1 and any(
            cost.setup and (way == chosen or timings.expected(way, cost) < taken) for way, cost in costs.items()
        )
        most = OFTEN if taken == 0.0 else max(min(OFTEN, int(LONG / taken)), 1)
        runs = 1 if former is None or former.chosen != chosen or waiting else min(2 * former.runs, most)
        return cls(chosen, costs, runs - 1, runs)
