"""Embeddings extended by several executors at once: each takes a part of the rows, from host memory (GAMMA §5.3).

Extensions come back in the order of the rows.  Where an executor fails, the others extend all rows again.  Quick
patterns, which are compared with each other, are made by the first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from graphdb.common.errors import GraphDBError
from graphdb.execute.guided_scheduling import FAILURES
from graphdb.execute.scheduler import Pause, schedule
from graphdb.plan.executor import Control
from graphdb.plan.extension import Aggregated, Cells, Extender, Kind

Ints = NDArray[np.int64]
Narrow = NDArray[np.int32]
T = TypeVar("T")

LEAST = 1 << 16
"""Rows of a part at least."""


class DividedExtension:
    """Extends embeddings with several extenders (:class:`graphdb.plan.extension.Extender`).

    Parameters
    ----------
    extenders
        They, by the executor's number; each stops when ``stop`` is set.
    control
        The run's.
    failed
        Called with an executor that fails, and its error.
    least
        Rows of a part at least.
    """

    def __init__(
        self,
        extenders: Mapping[int, Extender],
        control: Control,
        stop: threading.Event,
        failed: Callable[[int, GraphDBError], None],
        least: int | None = None,
    ) -> None:
        self._extenders, self._least = dict(extenders), LEAST if least is None else least
        self._control, self._stop, self._failed = control, stop, failed
        self.name = " and ".join(each.name for each in extenders.values())

    @property
    def summary(self) -> str:
        """What each says."""
        return "; ".join(each.summary for each in self._extenders.values())

    def extend(self, rows: Narrow, kind: Kind) -> tuple[Narrow, Ints]:
        """Extend embeddings (:meth:`graphdb.plan.extension.Extender.extend`)."""
        while True:
            found: dict[int, tuple[Narrow, Ints]] = {}

            def work(number: int, part: slice, found: dict[int, tuple[Narrow, Ints]] = found) -> None:
                found[number] = self._extenders[number].extend(rows[part], kind)

            parts = self._parts(len(rows))
            errors = self._run(parts, work)
            if not errors:
                values, counts = zip(*(found[number] for number in parts), strict=True)
                return np.concatenate(values), np.concatenate(counts)
            self._leave(errors)

    def quick(self, rows: Narrow, task: Aggregated) -> tuple[Ints, Ints, Ints]:
        """The distinct quick patterns of rows, found by the first."""
        return self._first(lambda extender: extender.quick(rows, task))

    def images(
        self, pieces: Iterable[tuple[Narrow, Narrow]], slots: Narrow, count: int, task: Aggregated
    ) -> Ints | None:
        """How many vertices each slot takes, found by the first; None also where it fails: the pieces are gone."""
        number, extender = next(iter(self._extenders.items()))
        try:
            return extender.images(self._watched(pieces), slots, count, task)
        except FAILURES as error:
            self._failed(number, error)
            return None

    def _watched(self, pieces: Iterable[tuple[Narrow, Narrow]]) -> Iterator[tuple[Narrow, Narrow]]:
        for piece in pieces:
            self._control.check()
            yield piece

    def count_codes(self, rows: Narrow, base: int, counts: Cells, firsts: Cells) -> None:
        """Count sets of one more vertex by code, each executor in cells of its own; where one fails, all do."""
        assert isinstance(counts, _EachCells)
        assert isinstance(firsts, _EachCells)

        def work(number: int, part: slice) -> None:
            cells = counts.cells[number], firsts.cells[number]
            self._extenders[number].count_codes(rows[part], base + part.start, *cells)

        errors = self._run(self._parts(len(rows)), work)
        for number, error in errors.items():
            self._failed(number, error)
            raise error

    def code_cells(self, codes: int) -> tuple[Cells, Cells]:
        """Two numbers for each code and executor: counts, which add up, and firsts, of which the least is the first."""
        cells = {number: extender.code_cells(codes) for number, extender in self._extenders.items()}
        counts, firsts = ({number: pair[i] for number, pair in cells.items()} for i in (0, 1))
        return _EachCells(counts, np.add), _EachCells(firsts, np.minimum)

    def _parts(self, rows: int) -> dict[int, slice]:
        """Which rows each takes: as many as the others, or fewer take part."""
        numbers = list(self._extenders)[: max(rows // max(self._least, 1), 1)]
        bounds = np.linspace(0, rows, len(numbers) + 1).astype(int).tolist()
        return {number: slice(*bounds[i : i + 2]) for i, number in enumerate(numbers)}

    def _run(self, parts: Mapping[int, slice], work: Callable[[int, slice], None]) -> dict[int, GraphDBError]:
        """Have executors work on their parts at once; the failures."""
        errors: dict[int, GraphDBError] = {}

        def run(number: int, _: int, __: Pause) -> None:
            try:
                work(number, parts[number])
            except FAILURES as error:
                errors[number] = error

        schedule(list(parts), run, len(parts), self._control.check, self._stop.set)
        return errors

    def _leave(self, errors: Mapping[int, GraphDBError]) -> None:
        """Go on without those that failed; raises where none is left."""
        for number, error in errors.items():
            del self._extenders[number]
            self._failed(number, error)
        if not self._extenders:
            raise next(iter(errors.values()))

    def _first(self, ask: Callable[[Extender], T]) -> T:
        """Ask the first, and the next where it fails."""
        while True:
            number, extender = next(iter(self._extenders.items()))
            try:
                return ask(extender)
            except FAILURES as error:
                self._leave({number: error})


class _EachCells:
    """Cells of each executor, put together by a function of two numbers."""

    def __init__(self, cells: Mapping[int, Cells], together: np.ufunc) -> None:
        self.cells, self._together = cells, together

    def fill(self, value: int) -> None:
        """Set all to a value."""
        for each in self.cells.values():
            each.fill(value)

    def get(self) -> NDArray[np.uint64]:
        """What they are together."""
        found: Sequence[NDArray[np.uint64]] = [each.get() for each in self.cells.values()]
        together: NDArray[np.uint64] = self._together.reduce(found)
        return together
