"""A hash index of the dictionary: the cost of a lookup depends on the terms looked up, not on the dictionary's size.

Next to a table of terms, ``resource`` or ``literal``, stands one of pages, made when it is first worth it (for few
terms at once; for more, which gain less, when they are looked for a second time).  A *run* is the sorted entries of
terms with consecutive ids, cut by hash into pages of some :data:`PAGE`; an *entry* is an unsigned number of 64 bits,
above 32 bits of the term's hash and below what its id is from the first id of the run.  So a hash says which page of a
run can have it, and pages that are read one after the other are sorted by hash.  Different terms of one hash do no
harm: what is found are candidates, whose strings are compared afterwards.

What was appended since the last run is read as it is, and becomes a run itself when it is long enough; runs at the end
that are not much shorter together than the one before them are merged with it, so that there are few (a log-structured
merge-tree; O'Neil et al., 1996).  The hash is DuckDB's own, so a file of another version of DuckDB gets new runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.arrow import numbers, strings
from graphdb.common.duckdb.fetch import rows_of
from graphdb.common.values.terms import XSD, Kind
from graphdb.storage.arrays.arrow import ArrowViews
from graphdb.storage.arrays.small_joins import Ints, in_list
from graphdb.storage.dictionary.known_hashes import OTHER, Entries, KnownHashes
from graphdb.storage.dictionary.term_hashes import hashes_of
from graphdb.storage.dictionary.typed_literals import stored_as
from graphdb.storage.file.ddl import PAGE_COLUMNS
from graphdb.storage.file.prepared_sql import execute

if TYPE_CHECKING:
    import duckdb

SMALL_LOOKUP = 32
"""Terms of a lookup up to which pages are made at once."""

SMALL = 122_880
"""Terms up to which scanning a dictionary is faster than a small lookup in its pages; four times as many, for larger
lookups."""

SHARE = 25
"""Terms are looked for where they are less than this part of the dictionary; more are joined with all of it."""

RUN = 32_768
"""Terms that make a run."""

PAGE = 400
"""Terms of a page on average: hardly any page has so many that DuckDB puts it elsewhere, which it does with strings
of more than 4,096 bytes."""

PART = 1 << 20
"""Entries that are in memory at a time."""

_TIER = 3
"""Runs are merged with one before them that has at most so many times their terms."""

_APART = 6
"""Rows that are looked for one by one: where several are asked for at once, DuckDB looks at all ids."""

_WANTED = "wanted"
"""Stands where DuckDB's version does, once pages would have been of use."""

INTEGER = f"{XSD}integer"
"""The datatype of integers that are commonly written."""

_ENTRY = np.dtype("<u8")
_BITS = 32
_LOW = np.uint64((1 << _BITS) - 1)
_HASH = ~_LOW
"""Bits of a term's hash that are in its entry."""

_MOST = 1 << _BITS
"""Terms of a run."""


class _Run(NamedTuple):
    """Where the entries of consecutive ids are: all its numbers stand in the file."""

    first: int
    size: int
    page: int
    pages: int

    def page_of(self, entries: Entries) -> Ints:
        """Return the pages of entries, or of hashes."""
        high, bits = entries >> np.uint64(_BITS), np.uint64(_BITS)
        return self.page + (high * np.uint64(self.pages) >> bits).astype(np.int64)

    def parts(self) -> Iterator[tuple[int, int]]:
        """Yield pages, from 0, that are written at a time: the first one and the one behind the last."""
        step = PART // PAGE + 1
        for begin in range(0, self.pages, step):
            yield begin, min(begin + step, self.pages)

    def span(self, begin: int, end: int) -> Entries:
        """Return the least and the greatest entry that pages from ``begin`` to ``end - 1``, from 0, can have."""
        low, high = (-(-(page << _BITS) // self.pages) for page in (begin, end))
        return np.array([low << _BITS, (high << _BITS) - 1], np.uint64)


class HashIndex:
    """The pages of one table of the dictionary, in the caller's transaction.

    Parameters
    ----------
    table
        ``resource`` or ``literal``; its ids go from ``base`` on, in the order of the table.
    columns, values
        The columns that identify a term, and further columns that are wanted.
    known
        What is known between changes: nobody else writes meanwhile.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        views: ArrowViews,
        table: str,
        base: int,
        columns: Sequence[str],
        values: Sequence[str] = (),
        known: KnownHashes | None = None,
    ) -> None:
        self.known = KnownHashes(0) if known is None else known
        self._asked: Entries = np.empty(0, np.uint64)
        self._connection = connection
        self._views = views
        self._table = table
        self._pages = f"{table}_key"
        self._hash = f"hash({', '.join(columns)})"
        self._columns = ("id", *columns, *values)
        self._base = base

    @contextmanager
    def narrowed(
        self, terms: str, given: Mapping[str, Any], count: int, next_id: int
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield what stands after FROM for the rows of the table that can be among some terms, with its parameters.

        Parameters
        ----------
        terms, given
            A relation with the columns that tell a term, and its parameters.
        count
            How many rows it has.
        next_id
            The table has the ids below.
        """

        def hashes() -> Entries:
            sql = f"SELECT {self._hash} AS hash FROM {terms}"
            return np.asarray(execute(self._connection, sql, given).fetchnumpy()["hash"], np.uint64)

        rows, found = f"_graphdb.{self._table}", self._indexed(hashes, count, next_id)
        if found is None:
            yield rows, {}
            return
        ids, behind = found
        names = ", ".join(self._columns)
        relation, parameters = f"SELECT {names} FROM {rows} WHERE id >= $behind", {"behind": behind}
        if not len(ids):
            yield f"({relation})", parameters
            return
        # They are read by themselves: joined with the terms at once, DuckDB unpacks the strings of all others, too.
        with self._views.view_or_list("_graphdb_known", self._rows(ids)) as (some, listed):
            renamed = ", ".join(f"known_{name} AS {name}" for name in self._columns)
            yield f"({relation} UNION ALL SELECT {renamed} FROM {some})", parameters | listed

    def rows_of(self, terms: Sequence[Sequence[str | None]], next_id: int) -> list[tuple[Any, ...]]:
        """Return the rows (id, the columns that identify a term, further ones) that can be among a handful of terms.

        ``terms`` are those columns of each.  DuckDB compares the first with constants sooner than it joins the terms.
        """
        self._asked = self._asked[:0]

        found = self._indexed(lambda: hashes_of(self._connection, terms), len(terms), next_id)
        if found is not None and not len(found[0]) and found[1] == next_id:
            return []
        rows = f"SELECT {', '.join(self._columns)} FROM _graphdb.{self._table} WHERE"
        stored = {"iri": [term[0] for term in terms]} if self._table == "resource" else stored_as(terms)
        same = " OR ".join(f"{column} IN ({', '.join('?' * len(some))})" for column, some in stored.items())
        values = [value for some in stored.values() for value in some]
        if found is None:
            return execute(self._connection, f"{rows} {same}", values).fetchall()
        ids, behind = found
        known, ids = self._integers(terms, ids, next_id)
        if not len(ids) and behind == next_id:
            return known
        one_by_one = ids.tolist() if len(ids) <= _APART else []
        selects, given = [f"{rows} id = ?"] * len(one_by_one), one_by_one
        if behind < next_id:
            selects, given = [*selects, f"{rows} id >= ? AND ({same})"], [*given, behind, *values]
        listed = execute(self._connection, " UNION ALL ".join(selects), given).fetchall() if selects else []
        if len(ids) > _APART:
            listed += zip(*self._rows(ids).to_pydict().values(), strict=True)
        return [*known, *listed]

    def _integers(
        self, terms: Sequence[Sequence[str | None]], ids: Ints, next_id: int
    ) -> tuple[list[tuple[Any, ...]], Ints]:
        """Return the rows of those of some ids that are known to be integers, and the other ids.

        All integers are read when some were compared with terms again and again: mostly, to read a row is to plan it.
        """
        memory = self.known
        if self._table != "literal" or not len(ids):
            return [], ids
        if memory.integers is None and any(INTEGER in term for term in terms) and memory.integers_wanted():
            found = execute(
                self._connection,
                "SELECT id - $base AS id, integer FROM _graphdb.literal WHERE id < $next AND datatype = $integer"
                " AND text IS NULL",
                {"base": self._base, "next": next_id, "integer": INTEGER},
            ).fetchnumpy()
            memory.integers = np.full(next_id - self._base, OTHER, np.int64)
            memory.integers[found["id"]] = found["integer"]
        if memory.integers is None:
            return [], ids
        size = len(memory.integers)
        values = {id: int(memory.integers[at]) if (at := id - self._base) < size else OTHER for id in ids.tolist()}
        known = [(id, str(value), INTEGER, None, int(Kind.INTEGER)) for id, value in values.items() if value != OTHER]
        return known, np.array([id for id, value in values.items() if value == OTHER], np.int64)

    def _indexed(self, hashes: Callable[[], Entries], count: int, next_id: int) -> tuple[Ints, int] | None:
        """Return the ids of the terms that have the hash of one of some, and the id from which on none is in the pages.

        None where it is quicker to pass over all terms.
        """
        size = next_id - self._base
        worth = size >= (SMALL if count <= SMALL_LOOKUP else 4 * SMALL) and count * SHARE <= size
        runs = self._runs(next_id, at_once=count <= SMALL_LOOKUP) if worth else None
        if runs is None and (count > SMALL_LOOKUP or not self._knows_all((), next_id)):
            return None
        self._asked = hashes()
        if runs is None or (count <= SMALL_LOOKUP and self._knows_all(runs, next_id)):
            return self._base + self.known.numbers(self._asked), next_id
        return self._candidates(runs, self._asked), runs[-1].first + runs[-1].size

    def note(self, positions: Sequence[int], first: int) -> None:
        """Note that the terms at some positions of the last lookup of a handful got the ids from ``first`` on."""
        if len(self._asked):
            begin = first - self._base
            self.known.add(self._asked[[*positions]], np.arange(begin, begin + len(positions)))

    def _knows_all(self, runs: Sequence[_Run], next_id: int) -> bool:
        """Whether the entries of all terms are in memory, or come there now."""
        known = self.known
        if known.size is None and known.wanted(next_id - self._base):
            behind = runs[-1].first + runs[-1].size if runs else self._base
            pages = [np.arange(run.page, run.page + run.pages) for run in runs]
            offsets = [np.uint64(run.first - self._base) for run in runs]
            read = self._read(pages) if runs else []
            entries = [some + offset for some, offset in zip(read, offsets, strict=True)]
            entries.append(self._entries(behind, next_id))
            known.put(np.concatenate(entries))
        elif known.size is not None and known.size < next_id - self._base:
            first = self._base + known.size
            found = self._entries(first, next_id)
            known.add(found, np.arange(known.size, next_id - self._base))
        return known.size == next_id - self._base

    def _entries(self, first: int, end: int) -> Entries:
        """Return the entries of terms from ``first`` to ``end - 1``, in their order, counted from the base."""
        entry = f"({self._hash} & $hash::UBIGINT) | (id - $base)::UBIGINT AS entry"
        found = execute(
            self._connection,
            f"SELECT {entry} FROM _graphdb.{self._table} WHERE id >= $first AND id < $end ORDER BY id ASC",
            {"hash": int(_HASH), "base": self._base, "first": first, "end": end},
        ).fetchnumpy()["entry"]
        return np.asarray(found, np.uint64)

    def _rows(self, ids: Ints) -> arrow.Table:
        """Return the rows of some ids (sorted), the names of the columns after ``known_``."""
        rows = f"SELECT {', '.join(self._columns)} FROM _graphdb.{self._table} WHERE id"
        if len(ids) <= _APART:
            found = execute(self._connection, " UNION ALL ".join([f"{rows} = ?"] * len(ids)), ids.tolist()).fetchnumpy()
            columns: Sequence[arrow.Array | arrow.ChunkedArray] = [
                strings(column.tolist()) if column.dtype == object else numbers(column) for column in found.values()
            ]
        else:
            with self._views.view_or_list("_graphdb_wanted", arrow.table({"id": numbers(ids)})) as (wanted, listed):
                table = rows_of(self._connection, f"{rows} IN (SELECT id FROM {wanted})", listed)
            columns = table.columns
        return arrow.table(columns, [f"known_{name}" for name in self._columns])

    def _candidates(self, runs: Sequence[_Run], hashes: Entries) -> Ints:
        """Return the ids of terms that have some hashes as far as the entries say."""
        hashes = _distinct(np.sort(hashes & _HASH))
        found = [np.empty(0, np.int64)]
        most = sum(min(len(hashes), run.pages) for run in runs)
        for asked in np.array_split(hashes, most * PAGE // PART + 1):
            pages = [_distinct(run.page_of(asked)) for run in runs]
            for run, entries in zip(runs, self._read(pages), strict=True):
                low = np.searchsorted(entries, asked)
                lengths = np.searchsorted(entries, asked | _LOW, "right") - low
                at = np.repeat(low - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
                found.append(run.first + (entries[at] & _LOW).astype(np.int64))
        return np.sort(np.concatenate(found))

    def _runs(self, next_id: int, *, at_once: bool) -> list[_Run] | None:
        """Return the runs, with one of what was appended since once that is long enough.

        None where there are none, and it is not said that they be made ``at_once`` but for the first time that they be.
        """
        import duckdb

        noted = self._noted()
        version, *written = noted.split() if noted else ("",)
        if not noted and not at_once:
            self._note(_WANTED)
            return None
        runs = [_Run(*map(int, run.split(","))) for run in written] if version == duckdb.__version__ else []
        if not runs:
            self._connection.execute(
                f"CREATE OR REPLACE TABLE _graphdb.{self._pages} ({PAGE_COLUMNS} USING COMPRESSION uncompressed)"
            )
        behind = runs[-1].first + runs[-1].size if runs else self._base
        if runs and next_id - behind < RUN:
            return runs
        for first in range(behind, next_id, _MOST):
            runs.append(self._built(first, min(first + _MOST, next_id), _next_page(runs)))
        runs = self._merged(runs)
        self._note(duckdb.__version__, *(",".join(map(str, run)) for run in runs))
        return runs

    def _noted(self) -> str:
        """Return what the file notes; nothing where there is nothing."""
        if self.known.noted is None:
            sql = "SELECT value FROM _graphdb.meta WHERE key = ?"
            found = execute(self._connection, sql, [self._pages]).fetchall()
            self.known.noted = found[0][0] if found else ""
        return self.known.noted

    def _note(self, *words: str) -> None:
        """Note in the file what there is."""
        noted = " ".join(words)
        self._connection.execute("INSERT OR REPLACE INTO _graphdb.meta VALUES (?, ?)", [self._pages, noted])
        self.known.noted = noted

    def _built(self, first: int, end: int, page: int) -> _Run:
        """Write a run of terms, sorted by DuckDB, which keeps on disk what is more than it has memory for."""
        run = _Run(first, end - first, page, -(-(end - first) // PAGE))
        entry = f"({self._hash} & $hash::UBIGINT) | (id - $first)::UBIGINT AS entry"
        execute(
            self._connection,
            f"CREATE TEMP TABLE _graphdb_entry AS SELECT {entry} FROM _graphdb.{self._table}"
            " WHERE id >= $first AND id < $end ORDER BY entry ASC",
            {"hash": int(_HASH), "first": first, "end": end},
        )
        for begin, end in run.parts():
            low, high = run.span(begin, end).tolist()
            wanted = "SELECT entry FROM temp._graphdb_entry WHERE entry >= $low AND entry <= $high ORDER BY entry ASC"
            entries = execute(self._connection, wanted, {"low": low, "high": high}).fetchnumpy()["entry"]
            self._write(run, begin, end, np.asarray(entries))
        execute(self._connection, "DROP TABLE temp._graphdb_entry")
        return run

    def _merged(self, runs: list[_Run]) -> list[_Run]:
        """Merge runs at the end that are long enough together, and return what there is then."""
        at, size = len(runs) - 1, runs[-1].size
        while at and runs[at - 1].size <= _TIER * size and runs[at - 1].size + size <= _MOST:
            at -= 1
            size += runs[at].size
        old = runs[at:]
        if len(old) == 1:
            return runs
        new = _Run(old[0].first, size, _next_page(old), -(-size // PAGE))
        for begin, end in new.parts():
            span = new.span(begin, end)
            pages = [np.arange(low, high + 1) for low, high in (run.page_of(span) for run in old)]
            parts = []
            for run, entries in zip(old, self._read(pages), strict=True):
                low, high = np.searchsorted(entries, span[:1]), np.searchsorted(entries, span[1:], "right")
                parts.append(entries[low[0] : high[0]] + np.uint64(run.first - new.first))
            self._write(new, begin, end, np.sort(np.concatenate(parts)))
        self._connection.execute(
            f"DELETE FROM _graphdb.{self._pages} WHERE page >= ? AND page < ?", [old[0].page, new.page]
        )
        return [*runs[:at], new]

    def _read(self, pages: Sequence[Ints]) -> list[Entries]:
        """Return the entries of some pages (sorted) of each of some runs, one page after the other."""
        places, given = in_list(np.concatenate(pages))
        found = execute(
            self._connection,
            f"SELECT page, octet_length(data) // {_ENTRY.itemsize} AS size, data FROM _graphdb.{self._pages}"
            f" WHERE page IN ({places})",
            given,
        ).fetchnumpy()
        order = np.argsort(found["page"])
        entries = np.frombuffer(b"".join(np.asarray(found["data"])[order]), _ENTRY)
        ends = np.concatenate([[0], np.cumsum(np.asarray(found["size"])[order])])
        return np.split(entries, ends[np.cumsum([len(some) for some in pages[:-1]], dtype=np.int64)])

    def _write(self, run: _Run, begin: int, end: int, entries: Entries) -> None:
        """Write pages of a run, from ``begin`` to ``end - 1``, with their entries (sorted)."""
        pages = np.arange(run.page + begin, run.page + end + 1)
        at = np.searchsorted(run.page_of(entries), pages) * _ENTRY.itemsize
        data = np.frombuffer(np.ascontiguousarray(entries, _ENTRY), np.uint8)
        written = arrow.Array(arrow.BINARY, end - begin, None, data, at.astype(np.int32))
        table = arrow.table({"page": numbers(pages[:-1]), "data": written})
        with self._views.view("_graphdb_page", table):
            execute(self._connection, f"INSERT INTO _graphdb.{self._pages} SELECT page, data FROM _graphdb_page")


def _distinct(values: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct ones of sorted numbers."""
    return values[np.concatenate([[True], values[1:] != values[:-1]])] if len(values) else values


def _next_page(runs: Sequence[_Run]) -> int:
    """Return the page after those of some runs."""
    return runs[-1].page + runs[-1].pages if runs else 0
