"""Progress of an export, and parts of a graph that fit into memory."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphdb.common.stopping import check_stop
from graphdb.common.values.terms import LITERAL_BASE
from graphdb.storage.writers.graphs import TRIPLES

if TYPE_CHECKING:
    import duckdb

    from graphdb.common.progress import Progress

_STROKE = 0.1
"""Seconds between two reports."""


class ExportProgress:
    """Reports the progress of an export: the share of the triples that are written, and how many these are.

    ``progress`` receives the reports; with None nothing is counted.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, phase: str, progress: Progress | None) -> None:
        self._phase = phase
        self._progress = progress
        self._all = 0
        self._reported_at = 0.0
        if progress is not None:
            [(self._all,)] = connection.execute(f"SELECT count(*) FROM {TRIPLES}").fetchall()
            progress(0.0, 1.0, 0, phase)

    def report(self, written: int) -> None:
        """Report how many triples are written; raise if the export must stop
        (:func:`~graphdb.common.stopping.check_stop`).
        """
        check_stop()
        if self._progress is not None and time.monotonic() - self._reported_at >= _STROKE:
            self._reported_at = time.monotonic()
            self._progress(min(written / max(self._all, 1), 1.0), 1.0, written, self._phase)

    def end(self, written: int) -> None:
        """Report that all is written."""
        if self._progress is not None:
            self._progress(1.0, 1.0, written, self._phase)


def ranges(connection: duckdb.DuckDBPyConnection, triples: int) -> Iterator[tuple[int, int, int]]:
    """Yield ranges of subjects with about so many triples each: the first, the end, and how many triples there are.

    What is grouped by subject is grouped within each, so that memory is bounded whatever the size of the graph.
    """
    [(count,)] = connection.execute(f"SELECT count(*) FROM {TRIPLES}").fetchall()
    parts = -(-count // max(triples, 1))
    cuts: list[int] = []
    if parts > 1:
        shares = [part / parts for part in range(1, parts)]
        sql = f"SELECT approx_quantile(subject, {shares}) FROM {TRIPLES}"
        [(found,)] = connection.execute(sql).fetchall()
        cuts = sorted(set(found) - {0})
    for first, end in zip([0, *cuts], [*cuts, LITERAL_BASE], strict=True):
        yield first, end, count // (len(cuts) + 1)
