"""A count goes a slower way until a thread has a quicker one ready: no device is idle while a compiler works."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields

from graphdb.plan.executor import Control


class Overtaken(Exception):
    """A quicker way is ready, whose name is ``by``."""

    def __init__(self, by: str) -> None:
        super().__init__(by)
        self.by = by


@dataclass(slots=True)
class UntilReady(Control):
    """A run's control that also ends it, by :class:`Overtaken`, once one of the other ways says that it is ready."""

    ways: Mapping[str, Callable[[], bool]] = field(default_factory=dict)

    @classmethod
    def of(cls, control: Control, ways: Mapping[str, Callable[[], bool]]) -> UntilReady:
        """The same limits and callbacks, counted from the same start."""
        return cls(**{each.name: getattr(control, each.name) for each in fields(Control)}, ways=ways)

    def check(self) -> None:
        """Raise if the run must stop now, or has been overtaken."""
        Control.check(self)
        for by, ready in self.ways.items():
            if ready():
                raise Overtaken(by)

    def report_to(self, control: Control) -> None:
        """Hand over what the run counted."""
        control.rows, control.work, control.threads = self.rows, self.work, self.threads
        control._share, control._reported_at = self._share, self._reported_at
