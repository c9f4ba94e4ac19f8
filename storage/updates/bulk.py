"""Bulk loading: an empty graph is written at once, and so is one to which a large part is added.

What :class:`graphdb.storage.updates.append.Appender` asks DuckDB for, because it must find what is there already, is
here done on arrays: terms have their ids as they were numbered, triples are sorted label by label while DuckDB writes
those before (:mod:`graphdb.storage.arrays.external_sort`), and each label's statistics are added up as it passes
(:mod:`graphdb.storage.statistics.streaming`).  Each table is one INSERT. Only which triples are in which named graphs,
and the edges that reifiers stand for, are left to the appender.

Where a graph has triples and gets many more, those that it has are sorted among the others, and passed over as others
are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.arrow import numbers
from graphdb.storage.arrays.arrow import ArrowViews
from graphdb.storage.arrays.batch import LITERAL, Terms, ids
from graphdb.storage.arrays.external_sort import Group, Labels, Others, Piece, Whole, by_label, fresh, in_chunks, whole
from graphdb.storage.arrays.spill import SpillArray, SpillFile, unmap, zeros_on_disk
from graphdb.storage.dictionary.terms import Numbering
from graphdb.storage.file.prepared_sql import execute, has_rows
from graphdb.storage.statistics.streaming import ROWS, STORED, StreamingStatistics, stored
from graphdb.storage.updates.append import Appender, much_new
from graphdb.storage.updates.parallel_edges import EdgeRows, write_edges

if TYPE_CHECKING:
    import duckdb

    from graphdb.storage.updates.worker import Worker

Ints = NDArray[np.int64]
Codes = NDArray[np.uint32]
Keys = NDArray[np.uint64]

_KEY = 8
"""Bytes of a triple while it is sorted."""

_TABLES = ("resource", "literal", "triple", "quad", "edge", "reifier")


def is_empty(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether there are neither terms nor triples yet."""
    return not has_rows(connection, *(f"_graphdb.{table}" for table in _TABLES))


def can_grow(connection: duckdb.DuckDBPyConnection, new: int, memory: int) -> bool:
    """Whether so many triples, none of them in a named graph, are best written at once into a graph that has some."""
    plain = not has_rows(connection, "_graphdb.quad", "_graphdb.edge", "_graphdb.reifier")
    return plain and much_new(connection, new, memory)


class BulkWriter:
    """Writes terms and triples into a graph, in the transaction that is open.

    Parameters
    ----------
    batch
        Terms and triples; terms that are there already have their ids as codes, and no texts.
    folder, memory
        Where those triples go that do not fit into so many bytes.
    empty
        Whether the graph is; one that is not must have neither named graphs nor reifiers, nor get any.
    """

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, batch: Terms, folder: Path, memory: int, *, empty: bool = True
    ) -> None:
        self._connection = connection
        self._views = ArrowViews(connection)
        self._batch = batch
        self._memory = memory
        self._folder = folder
        self._empty = empty
        self._sizes = batch.counts
        self._reifiers = np.empty(0, np.uint8)
        self._sorted: Whole | None = None

    def sort(self) -> None:
        """Sort the triples, where that takes little memory: another thread may, while the terms are written."""
        few = sum(map(len, self._batch.triples)) * _KEY <= self._memory // 8
        if few and self._empty and not self._batch.others:
            self._sorted = whole(self._pieces())
            self._sorted.sort()

    def write_terms(self) -> None:
        """Write the dictionary."""
        Numbering(self._connection, self._views, empty=self._empty).append(
            self._batch.iris(), self._batch.values(), self._batch.datatypes, self._batch.valued
        )
        self._batch.forget_terms()

    def write_edges(self, edges: EdgeRows) -> None:
        """Write the edges that their triples do not identify."""
        write_edges(self._connection, edges)

    def write_others(self) -> None:
        """Write which triples are in which named graphs, and the edges that reifiers stand for."""
        self._reifiers = zeros_on_disk(self._folder / "reifiers", self._sizes[0], np.uint8, self._memory // 4)
        appender = Appender(self._connection)
        named = False
        for array in self._batch.others:
            others = array.get()
            self._reifiers[others[others[:, 4] >= 0, 4]] = 1
            named = named or bool((others[:, 4] < 0).any())
            appender.add_others(others, ids)
        for array in self._batch.triples:
            triples = array.get()
            rows = triples if named else triples[self._describes(triples)]
            appender.add_ids(*map(ids, rows.T))
            unmap(self._reifiers)
        appender.append_others()

    def write_triples(self, ahead: Worker) -> int:
        """Write the triples, sorted, of which another thread makes the next rows meanwhile; return how many are new."""
        sizes = self._sizes if self._empty else None
        self._statistics = StreamingStatistics(self._connection, self._folder, self._memory, sizes)
        schema = arrow.schema(dict.fromkeys(("label", "subject", "object"), arrow.INT64))
        with SpillFile(self._folder / "runs", 0) as spill, SpillFile(self._folder / "known", 0) as known_runs:
            pieces, memory = self._pieces(), self._memory
            known: Labels = whole(())
            if not self._empty:
                memory //= STORED
                known = by_label(in_chunks(stored(self._connection), memory), known_runs, memory)
                pieces = chain(stored(self._connection), pieces)
            labels: Labels | None = self._sorted
            if labels is None:
                labels = by_label(in_chunks(pieces, memory), spill, memory)
            self._batch.forget_triples()
            total = 0
            for rows in ahead.ahead(arrow.Reader(schema, self._rows(labels, known)).tables()):
                with self._views.view_or_list("_graphdb_sorted", rows) as (source, given):
                    [(count,)] = execute(
                        self._connection,
                        f"INSERT INTO _graphdb.triple SELECT label, subject, object FROM {source}",
                        given,
                    ).fetchall()
                total += int(count)
        return total

    def write_statistics(self) -> None:
        """Write the statistics counted while the triples were written."""
        self._statistics.write()
        self._views.close()

    def _rows(self, labels: Labels, known: Labels) -> Iterator[list[arrow.Array]]:
        """Yield the sorted triples that are not known, a row group at a time; add up the statistics of all."""
        columns = np.empty((3, ROWS), np.int64)
        filled = 0
        for label, keys in _others(self._statistics.observe(labels), known):
            done = 0
            while done < len(keys):
                some = min(ROWS - filled, len(keys) - done)
                of = label if isinstance(label, int) else label[done : done + some]
                _label_rows(columns, filled, of, keys[done : done + some])
                done += some
                filled += some
                if filled == ROWS:
                    yield [numbers(column) for column in columns]
                    columns, filled = np.empty_like(columns), 0
        yield [numbers(column[:filled]) for column in columns]

    def _pieces(self) -> Iterator[Piece]:
        """Yield what becomes triples: all but the literals of reifiers, which are properties of edges."""
        for array in self._batch.triples:
            yield _Selected(array, lambda rows: rows[~self._describes(rows)]) if len(self._reifiers) else array
        for array in self._batch.others:
            yield _Selected(array, lambda rows: np.ascontiguousarray(rows[rows[:, 4] < 0, :3], np.uint32))

    def _describes(self, triples: Codes) -> NDArray[np.bool_]:
        """Which triples give a literal to a reifier."""
        return (triples[:, 2] >= LITERAL) & (self._reifiers[triples[:, 0]] > 0)


@dataclass(frozen=True, slots=True)
class _Selected:
    """Selected rows of a stored array, as triples."""

    array: SpillArray
    choose: Callable[[NDArray[Any]], Codes]

    def __len__(self) -> int:
        return len(self.array)

    def get(self) -> Codes:
        return self.choose(self.array.get())


def _others(passing: Iterable[tuple[Ints | int, Keys]], known: Labels) -> Iterator[tuple[Ints | int, Keys]]:
    """Yield the keys that are not known: those of one label, or of several with the label of each."""
    if not len(known.labels):
        yield from passing
        return
    others = Others(()), -1
    for label, keys in passing:
        if not isinstance(label, int):
            group = Group.of_each(label, keys)
            there = known.group(int(label[0]), int(label[-1])).of(group.labels)
            chosen = fresh(keys, group.ends, there.keys, there.ends)
            yield label[chosen], keys[chosen]
        else:
            if others[1] != label:
                others = Others(known.pieces(label)), label
            yield label, others[0].of(keys)


def _label_rows(columns: Ints, at: int, label: Ints | int, keys: Keys) -> None:
    """Write the triples of a label, or of one each, into rows of ids."""
    from graphdb.storage.arrays import batch_kernels as kernels

    end = at + len(keys)
    columns[0, at:end] = label
    kernels.spread(keys, columns[1, at:end], columns[2, at:end])
