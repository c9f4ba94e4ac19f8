"""A count goes the slower way until a thread has the quicker one ready: no device is idle while a compiler works."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

from graphdb.plan.executor import Control


class Overtaken(Exception):
    """The quicker way is ready."""


def _never() -> bool:
    return False


@dataclass(slots=True)
class UntilReady(Control):
    """A run's control that also ends it, by :class:`Overtaken`, once ``ready`` says so."""

    ready: Callable[[], bool] = _never

    @classmethod
    def of(cls, control: Control, ready: Callable[[], bool]) -> UntilReady:
        """The same limits and callbacks, counted from the same start."""
        return cls(**{each.name: getattr(control, each.name) for each in fields(Control)}, ready=ready)

    def check(self) -> None:
        """Raise if the run must stop now, or has been overtaken."""
        Control.check(self)
        if self.ready():
            raise Overtaken

    def report_to(self, control: Control) -> None:
        """Hand over what the run counted."""
        control.rows, control.work, control.threads = self.rows, self.work, self.threads
        control._share, control._reported_at = self._share, self._reported_at
