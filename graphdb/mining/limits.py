"""What a run may take: threads, memory, time; and whom it reports to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from graphdb.common.config import cores
from graphdb.common.errors import MemoryLimitError
from graphdb.execute.host import HostExecutor
from graphdb.execute.scheduler import Pause, schedule
from graphdb.plan.executor import Control, Executor
from graphdb.storage.compile.cancellable import run_cancellable

Piece = TypeVar("Piece")
T = TypeVar("T")

BUDGET = 1 << 21
"""Entries that a kernel call looks at before it returns, roughly: some milliseconds."""


@dataclass(slots=True)
class Limits:
    """The resources of one run.

    Parameters
    ----------
    threads
        How many threads work; by default one per core.
    memory
        Bytes that tables may take together with what they are made with; None for any.
    control
        Deadline, cancellation and progress.
    executor
        Counts matches of patterns; by default the host, on so many threads.
    """

    threads: int = field(default_factory=cores)
    memory: int | None = None
    control: Control = field(default_factory=Control)
    executor: Executor | None = None
    notes: list[str] = field(default_factory=list)
    """After a run: what it says of itself in PROFILE."""

    @property
    def host(self) -> HostExecutor:
        """The host, with these threads and this memory."""
        return HostExecutor(self.threads, memory_limit=self.memory)

    @property
    def counts(self) -> Executor:
        """What counts matches."""
        return self.executor or self.host

    def need(self, bytes: int, what: str) -> None:
        """Raise before memory is taken that is not to be had.

        Raises
        ------
        MemoryLimitError
            ``bytes`` are more than the run may take.
        """
        if self.memory is not None and bytes > self.memory:
            raise MemoryLimitError(
                f"{what} need {bytes:,} bytes, {self.memory:,} of the memory limit are for them",
                hint="mine fewer edges or smaller patterns, or raise memory_limit",
            )

    def each(
        self,
        pieces: Sequence[Piece],
        work: Callable[[Piece, int, Pause], None],
        share: Callable[[], float] | None = None,
    ) -> None:
        """Have threads work on all pieces; raises what the run's control does.

        Parameters
        ----------
        work
            Called with a piece, the worker's number, and what to call every few milliseconds.
        share
            Returns how much of the run is done.
        """
        workers = min(self.threads, len(pieces))
        watch = self.control.check if share is None else lambda: self.control.watch(share)
        self.control.threads = max(self.control.threads, workers)
        schedule(pieces, work, workers if workers > 1 else 0, watch)

    def cancellable(self, size: int, work: Callable[[], T]) -> T:
        """Return ``work()``, over ``size`` values: where they are so many that somebody may want to stop it."""
        self.control.check()
        return work() if size < 1 << 18 else run_cancellable(work, self.control.check)
