"""A cache of degrees between changes, so that the cost of an append depends on what is new, not on what is there.

What a change adds to the statistics depends on how many triples its vertices had before (:mod:`.incremental`).  The
triples are sorted by subject, so asking the file how many an object has passes over all triples of the edge label.  A
process that asks again counts all vertices of the label once and keeps the counts, sorted by vertex.  What changes
since is noted by vertex, then stored in a table of its own beside the large one, and merged with it when it has grown
to a share of it: following a change costs by what changed (a log-structured merge; O'Neil et al., 1996).

The counts are those after the last change that was followed: a statement's own changes are followed when it is done,
and all is dropped where they are not known, or are rolled back.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common.duckdb.fetch import batches
from graphdb.common.values.terms import LITERAL_BASE
from graphdb.storage.arrays.arrow import values
from graphdb.storage.arrays.small_joins import Ints, rows_of_columns, summed
from graphdb.storage.arrays.sorted_sets import places
from graphdb.storage.dictionary.known_hashes import KnownHashes
from graphdb.storage.graph.degree_sketch import IN, OUT
from graphdb.storage.statistics.pairs import PAIR_BYTES, ChangedPairs, PairBlocks, Pairs
from graphdb.storage.statistics.tables import Log

if TYPE_CHECKING:
    import duckdb

    from graphdb.storage.graph.changes import Changes

LOOKS = 3
"""How often vertices of a label are looked for before all are counted: a look passes over the triples, too."""

_SEVERAL = 16
"""Subjects from which on a look passes over all triples: fewer are found by their order, …"""

_SORTED = 25_000
"""… which takes as long as counting so many triples."""

_READ_PAIRS = 50_000
"""Triples of a label whose pairs are read in about the time of a look for some."""

_SHARE = 8
"""What changed is merged when it is this part of the rest."""

_SMALL = 32
"""Vertices that are looked for, and triples that are followed, one by one: NumPy takes longer to begin, …"""

_NOTED = 1024
"""… and vertices that are noted so before they are sorted."""

_ROWS = 1 << 18
"""Vertices that are read at a time."""

_BYTES = 12
"""What a vertex takes, at most: its number, and one or two counts."""

_SINCE_BYTES, _NOTED_BYTES = 24, 200
"""What a vertex takes that changed since, and one that is noted, about."""

_READ = 8
"""What a triple takes while vertices are counted."""

_NONE = (np.empty(0, np.int64), np.empty((0, 2), np.int64))

UNCHANGED: ChangedPairs = (_NONE[1], _NONE[1])
"""None came, and none went."""


class Degrees:
    """How many triples of some edge labels vertices have in a direction, and how many of them with a literal.

    ``memory`` is how many bytes the counts may take; ``empty`` says that there is no triple yet.
    """

    def __init__(self, memory: int, *, empty: bool = False) -> None:
        self._memory = memory
        self.log = Log(empty=empty)
        """What is known of the log of statistics."""
        self.hashes = {table: KnownHashes(memory // 4) for table in ("resource", "literal")}
        """What is known of the hashes of terms, by table."""
        self._tables: dict[tuple[int, int], Table] = {}
        self._asked: Counter[tuple[int, int]] = Counter()
        self._pairs: dict[int, Pairs] = {}
        self._blocks: dict[int, PairBlocks] = {}
        self._looked: Counter[int] = Counter()

    @property
    def nbytes(self) -> int:
        """How many bytes the counts and hashes take."""
        known: Iterable[Table | Pairs | PairBlocks | KnownHashes] = chain(
            self._tables.values(), self._pairs.values(), self._blocks.values(), self.hashes.values()
        )
        return sum(each.nbytes for each in known)

    def table(self, direction: int, label: int) -> Table | None:
        """Return the counts of a label's vertices, where they are cached."""
        return self._tables.get((direction, label))

    def wanted(self, direction: int, label: int, asked: int, vertices: int, triples: int) -> bool:
        """Whether to count all vertices of a label sooner than to look for some that are ``asked`` for.

        That is so when lookups have cost about as much as counting does, if there is memory (ski rental).  The label
        had so many vertices in this direction, and so many triples.
        """
        self._asked[direction, label] += 1
        looks = max(LOOKS, triples // _SORTED) if direction == OUT and asked < _SEVERAL else LOOKS
        worth = self._asked[direction, label] > looks
        return worth and max(_BYTES * vertices, _READ * triples) <= self._memory - self.nbytes

    def count(
        self, connection: duckdb.DuckDBPyConnection, direction: int, label: int, vertices: Ints, counts: Ints
    ) -> Table:
        """Count all vertices of a label in the file, and hold what they had before others came; see :meth:`Table.add`.

        ``counts`` is how many more ``vertices`` have in the file than they had after the last change that was followed.
        """
        table = self._tables[direction, label] = Table.read(connection, direction, label)
        table.add(vertices, -counts)
        return table

    def pairs(
        self, file: Callable[[], duckdb.DuckDBPyConnection], label: int, triples: int, changed: ChangedPairs
    ) -> Pairs | None:
        """Return the pairs of a label as they were after the last change that was followed; None to look them up.

        They are read when looks have cost about as much as that does, if there is memory.  The label has so many
        triples; ``changed`` are pairs that came and went in the file since that change.
        """
        found = self._pairs.get(label)
        if found is None:
            self._looked[label] += 1
            worth = self._looked[label] > max(LOOKS, triples // _READ_PAIRS)
            if worth and PAIR_BYTES * triples <= self._memory - self.nbytes:
                found = self._pairs[label] = Pairs.read(file(), label)
                come, gone = changed
                found.change(gone, come)
                self._blocks.pop(label, None)
        return found

    def objects(
        self,
        file: Callable[[], duckdb.DuckDBPyConnection],
        label: int,
        row: Sequence[int],
        subjects: Sequence[int],
        changed: ChangedPairs,
    ) -> list[set[int]] | None:
        """Return the objects of some subjects, from the pairs around them or from all; None to look them up.

        ``row`` are the label's statistics; see :meth:`pairs`.
        """
        triples, vertices = row[0], row[2]
        blocks = self._blocks.get(label)
        if blocks is not None and blocks.have(subjects):
            return [*map(blocks.objects_of, subjects)]
        pairs = self.pairs(file, label, triples, changed)
        if pairs is not None:
            return [*map(pairs.objects_of, subjects)]
        if blocks is None:
            blocks = self._blocks[label] = PairBlocks(vertices, triples)
        if blocks.read(file, label, subjects, changed, self._memory - self.nbytes):
            return [*map(blocks.objects_of, subjects)]
        return None

    def follow(self, changes: Iterable[Changes | None]) -> None:
        """Add what came and take away what went; forget all, where it is not known what that was."""
        for change in changes:
            if change is None or change.counted is None:
                self.log = Log()
                for hashes in self.hashes.values():
                    hashes.forget()
            if change is None:
                self._tables.clear()  # what was asked for counts, still
                self._pairs.clear()
                self._blocks.clear()
                return
            if change.triples:
                self._follow(change)

    def _follow(self, change: Changes) -> None:
        if change.triples <= _SMALL:
            self._note(change)
            return
        touched = change.labels
        tables = [(key, table) for key, table in self._tables.items() if key[1] in touched]
        for direction in {direction for (direction, _), _ in tables}:
            labels, vertices, counts = changed(change, direction)
            for (at, label), table in tables:
                if at == direction:
                    begin, end = np.searchsorted(labels, (label, label + 1))
                    table.add(vertices[begin:end], counts[begin:end])
        cached: Iterable[tuple[int, Pairs | PairBlocks]] = chain(self._pairs.items(), self._blocks.items())
        for label, pairs in cached:
            if label in touched:
                pairs.change(*(rows[rows[:, 0] == label, 1:] for rows in (change.added, change.removed)))

    def _note(self, change: Changes) -> None:
        """Take away and add the triples of a small change, one by one."""
        tables = self._tables
        for rows, sign in ((change.removed, -1), (change.added, 1)):
            for label, subject, object in rows.tolist():
                if (pairs := self._pairs.get(label)) is not None:
                    pairs.note(subject, object, there=sign > 0)
                if (blocks := self._blocks.get(label)) is not None:
                    blocks.note(subject, object, there=sign > 0)
                if (table := tables.get((OUT, label))) is not None:
                    table.note(subject, sign, sign * (object >= LITERAL_BASE))
                if (table := tables.get((IN, label))) is not None:
                    table.note(object, sign, 0)


def changed(change: Changes, direction: int) -> tuple[Ints, Ints, Ints]:
    """Return labels and vertices, each pair once and sorted, and how many more triples they have now: [pairs, 2]."""
    triples = np.concatenate([change.added, change.removed])
    signs = np.repeat([1, -1], [len(change.added), len(change.removed)])
    literals = signs * (triples[:, 2] >= LITERAL_BASE) * (direction == OUT)
    pairs, counts = summed(triples[:, [0, 1 if direction == OUT else 2]], rows_of_columns(signs, literals), all=True)
    return pairs[:, 0], pairs[:, 1], counts


class Table:
    """Counts of vertices: sorted numbers, from ``first`` on, with unsigned counts, and signed ones of what changed.

    What is noted, what changed before it and what was read are three levels: each is merged into the next.
    """

    __slots__ = ("_changed", "_counts", "_first", "_keys", "_noted", "_read_bytes", "_since", "_views")

    def __init__(self, first: int, keys: NDArray[Any], counts: NDArray[Any]) -> None:
        self._first = first
        self._keys, self._counts = keys, counts
        self._read_bytes = keys.nbytes + counts.nbytes
        self._since, self._changed = _NONE
        self._noted: dict[int, tuple[int, int]] = {}
        """What changed last, by vertex."""
        self._views: tuple[tuple[memoryview, memoryview, int, bool], ...] | None = None
        """The sorted levels, in which Python finds a number sooner than NumPy, the first, and whether literals are
        counted; None: to be made."""

    @classmethod
    def read(cls, connection: duckdb.DuckDBPyConnection, direction: int, label: int) -> Table:
        """Count all vertices of a label in the file: sorting their numbers is quicker than SQL's hash table of them."""
        literals = direction == OUT  # of objects it is known
        end = f"2 * subject + (object >= {LITERAL_BASE})::BIGINT" if literals else "object"
        sql = f"SELECT {end} AS number FROM _graphdb.triple WHERE label = $label"
        pieces: list[tuple[int, NDArray[Any]]] = []
        for rows in batches(connection, sql, _ROWS, {"label": label}):
            numbers = values(rows.column("number"))
            least = int(numbers.min())
            pieces.append((least, _small(numbers - least)))
        if not pieces:
            return cls(0, *(array.astype(np.uint8) for array in _NONE))
        first = min(least for least, _ in pieces) // 2 * 2
        dtype = np.min_scalar_type(max(least - first + int(numbers.max()) for least, numbers in pieces))
        found = np.concatenate([numbers.astype(dtype) + dtype.type(least - first) for least, numbers in pieces])
        pieces.clear()
        found.sort()
        vertices = found >> 1 if literals else found
        begins = np.flatnonzero(np.append(True, vertices[1:] != vertices[:-1]))
        counts = [np.diff(begins, append=len(found))]
        if literals:
            counts.append(np.add.reduceat(found & 1, begins, dtype=np.int64))
        return cls(first // 2 if literals else first, vertices[begins], _small(np.column_stack(counts)))

    @property
    def nbytes(self) -> int:
        """How many bytes the table takes."""
        return self._read_bytes + _SINCE_BYTES * len(self._since) + _NOTED_BYTES * len(self._noted)

    def look(self, vertices: Ints) -> Ints:
        """Return triples, and those with a literal as object (of subjects), of vertices: int64 [vertices, 2]."""
        if len(vertices) <= _SMALL:
            return np.array([self.look_at(vertex) for vertex in vertices.tolist()], np.int64).reshape(-1, 2)
        self._sort_noted()
        found = np.zeros((len(vertices), 2), np.int64)
        among, at = self._stored(vertices)
        found[among, : self._counts.shape[1]] = self._counts[at]
        at, there = places(self._since, vertices)
        found[there] += self._changed[at[there]]
        return found

    def _stored(self, vertices: Ints) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return which of some vertices are among those whose counts were read, and where these stand."""
        offsets = vertices - self._first
        inside = ((offsets >= 0) & (offsets <= np.iinfo(self._keys.dtype).max)).nonzero()[0]
        at, there = places(self._keys, offsets[inside].astype(self._keys.dtype))
        return inside[there], at[there]

    def largest_but(self, vertices: Ints) -> int:
        """Return the most triples that a vertex has, some vertices left out."""
        self._sort_noted()
        counts = self._counts[:, 0].copy()
        counts[self._stored(np.concatenate([vertices, self._since]))[1]] = 0
        changed = self.look(self._since[~np.isin(self._since, vertices)])
        return max(int(counts.max(initial=0)), int(changed[:, 0].max(initial=0)))

    def look_at(self, vertex: int) -> tuple[int, int]:
        """Do so for one vertex."""
        triples, literals = self._noted.get(vertex, (0, 0))
        if self._views is None:
            levels = (self._keys, self._counts, self._first), (self._since, self._changed, 0)
            self._views = tuple(
                (keys.data, counts.data, first, counts.shape[1] > 1) for keys, counts, first in levels if len(keys)
            )
        for keys, counts, first, with_literals in self._views:
            number = vertex - first
            at = bisect_left(keys, number)
            if at < len(keys) and keys[at] == number:
                triples += counts[at, 0]
                if with_literals:
                    literals += counts[at, 1]
        return triples, literals

    def note(self, vertex: int, triples: int, literals: int) -> None:
        """Add counts of one vertex."""
        before = self._noted.get(vertex, (0, 0))
        self._noted[vertex] = before[0] + triples, before[1] + literals
        if len(self._noted) > _NOTED:
            self._sort_noted()

    def _sort_noted(self) -> None:
        """Add what was noted to what changed since the counts were read."""
        if self._noted:
            noted, self._noted = sorted(self._noted.items()), {}
            self.add(np.array([vertex for vertex, _ in noted], np.int64), np.array([counts for _, counts in noted]))

    def add(self, vertices: Ints, counts: Ints) -> None:
        """Add counts (int64 [vertices, 2]) of distinct vertices, sorted."""
        self._sort_noted()
        at, there = places(self._since, vertices)
        self._changed[at[there]] += counts[there]
        if not there.all():
            new = np.zeros(len(self._since) + np.count_nonzero(~there), bool)
            new[at[~there] + np.arange(len(new) - len(self._since))] = True
            since, counted = np.empty(len(new), np.int64), np.empty((len(new), 2), np.int64)
            since[new], since[~new] = vertices[~there], self._since
            counted[new], counted[~new] = counts[~there], self._changed
            self._since, self._changed, self._views = since, counted, None
        if len(self._since) * _SHARE > len(self._keys):
            self._merge()

    def _merge(self) -> None:
        """Make one table of both."""
        vertices = self._keys.astype(np.int64) + self._first
        width = self._counts.shape[1]
        at, there = places(vertices, self._since)
        counts = self._counts.astype(np.int64)
        counts[at[there]] += self._changed[there, :width]
        vertices = np.insert(vertices, at[~there], self._since[~there])
        counts = np.insert(counts, at[~there], self._changed[~there, :width], axis=0)
        left = counts[:, 0] > 0
        vertices, counts = vertices[left], counts[left]
        self._first = int(vertices[0]) if len(vertices) else 0
        self._keys, self._counts = _small(vertices - self._first), _small(counts)
        self._read_bytes = self._keys.nbytes + self._counts.nbytes
        (self._since, self._changed), self._views = _NONE, None


def _small(numbers: Ints) -> NDArray[Any]:
    """Return numbers, none of which is negative, in as few bytes as their largest takes."""
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))
