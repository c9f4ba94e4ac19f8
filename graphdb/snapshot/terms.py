"""A dictionary in memory: IRIs, values of literals, and the labels and properties of vertices, as arrays by id.

A join in DuckDB scans a whole table for the few terms of a small result.  From the second lookup on, where
memory allows it, the dictionary is cached as columns in the order of its ids, so that a term is one access away.  A
small dictionary is read sooner than DuckDB plans the joins: there the first question is answered so, too.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.duckdb.connection import Connection
from graphdb.common.lazy import lazy
from graphdb.common.values.literals import python_value_of
from graphdb.common.values.terms import LITERAL_BASE, VALUE_SQL, Kind
from graphdb.common.values.types import AS_WRITTEN, tidied
from graphdb.storage.arrays.arrow import values as plain
from graphdb.storage.arrays.python_values import pylist
from graphdb.storage.arrays.sorted_sets import unique
from graphdb.storage.arrays.texts import taken
from graphdb.storage.file.verify import verify_kinds
from graphdb.storage.triples import TripleStore

Ids = NDArray[np.int64]

Part = Literal["resources", "literals", "described"]
"""What is cached by itself: IRIs, literals, and triples with a literal or a class."""

_ENTRY: Mapping[Part, int] = {"resources": 64, "literals": 100, "described": 24}
"""Bytes that one of each takes, roughly, in the order in which they get memory."""
_AT_ONCE = 20_000
"""Terms and triples up to which they are read for the first question."""
_MANY = 5_000_000
"""Terms and triples from which on to read them takes so long that few questions are not worth it, …"""
_ONE_OF = 64
"""… but only such a share of all terms."""
_FEW = 32
"""Values that are taken one by one."""
_SORTING = 5e-7
"""Seconds that it takes to sort a resource in among the others, roughly."""
_LOOK, _LOOKED_UP, _READ = 3e-3, 5e-7, 2e-7
"""Seconds that it takes DuckDB to look for IRIs, for each that it finds, and to read each of all, roughly."""


class Lookup:
    """The dictionary of one state of the data.

    Parameters
    ----------
    limit_bytes
        What it may take of memory, roughly: parts that do not fit beside those before them DuckDB looks up.
    """

    def __init__(self, connection: Connection, store: TripleStore, limit_bytes: int) -> None:
        self._connection = connection
        self._store = store
        self._limit = limit_bytes
        self._asked: bool | None = None
        self._wanted = 0
        """Terms that were wanted so far."""
        self._scanning = 0.0
        """Seconds that went into scans for the ids of IRIs."""
        self._looking = 0.0
        """Seconds that DuckDB took, or would have taken, to look for the IRIs of vertices."""
        self._columns: dict[str, Any] = {}

    # What most states of the data are never asked for, between two that are written.

    @lazy
    def _sizes(self) -> dict[Part, int]:
        """How many there are of each part."""
        return {part: getattr(self._store, part) for part in _ENTRY}

    @lazy
    def _fits(self) -> set[Part]:
        """The parts that fit."""
        needed = accumulate(_ENTRY[part] * size for part, size in self._sizes.items())
        return {part for part, size in zip(self._sizes, needed, strict=True) if size <= self._limit}

    @lazy
    def _entries(self) -> int:
        """Terms and triples."""
        return self._store.resources + self._store.literals + self._store.size

    def ready(self, *parts: Part, wanted: int) -> bool:
        """Whether some parts, or all, are looked up here for so many terms: where they fit, from the second time on.

        Small dictionaries answer the first one, large ones those from which on a share of their terms was wanted.
        """
        if not self._fits.issuperset(parts or _ENTRY):
            return False
        self._wanted += wanted
        if self._entries > _MANY:
            return self._wanted * _ONE_OF >= sum(self._sizes[part] for part in parts or _ENTRY)
        asked = self._entries <= _AT_ONCE if self._asked is None else self._asked
        self._asked = True
        return asked

    def iris_pay(self, wanted: int) -> bool:
        """Whether the IRIs of so many vertices are taken from here: once DuckDB has looked for as long as it takes to
        read all.
        """
        self._looking += _LOOK + wanted * _LOOKED_UP
        return "resources" in self._fits and self._looking >= self._store.resources * _READ

    def drop(self) -> None:
        """Read everything anew, because a setting changed how DuckDB hands values over."""
        self._columns.clear()

    def ids(self, iris: Collection[str]) -> dict[str, int]:
        """The ids of the resources among some IRIs.

        DuckDB scans all IRIs for them, until that has taken as long as to sort them once; then they are searched.
        """
        if "resources" not in self._fits or self._scanning < self._store.resources * _SORTING:
            started = time.perf_counter()
            sql = "SELECT iri, id FROM _graphdb.resource WHERE iri IN (SELECT unnest($iris))"
            scanned = dict(self._connection.rows(sql, {"iris": sorted(iris)}))
            self._scanning += time.perf_counter() - started
            return scanned
        column, order = self._column("iri"), self._order()
        found = {}
        for iri in iris:
            at = bisect_left(order, iri, key=lambda id: arrow.item(column, id))
            if at < len(order) and arrow.item(column, int(order[at])) == iri:
                found[iri] = int(order[at])
        return found

    def iris(self, ids: arrow.Array | arrow.ChunkedArray) -> Any:
        """The IRIs of resources, in Arrow as their ids are; NULL for NULL."""
        return _texts(self._column("iri"), ids)

    def lexical(self, numbers: arrow.Array) -> Any:
        """The lexical forms of literals, numbered from 0 (their ids without ``LITERAL_BASE``); NULL for NULL."""
        return _texts(self._column("lexical"), numbers)

    def typed(self, kind: Kind, ids: Ids) -> arrow.Array:
        """The values, in Arrow, of literals (int64 term ids) of one kind, or of kinds with the same type."""
        return taken(self._column(VALUE_SQL[kind].format("literal")), ids - LITERAL_BASE)

    def values(self, ids: Ids) -> list[Any]:
        """The values of literals (int64 term ids, of any kinds) in Python."""
        if not len(ids):
            return []
        kinds = self._kinds()[ids - LITERAL_BASE]
        if (kinds == kinds[0]).all():
            return self._values(Kind(int(kinds[0])), ids)
        found = np.empty(len(ids), object)
        for kind in unique(kinds).tolist():
            at = np.flatnonzero(kinds == kind)
            found[at] = np.fromiter(self._values(Kind(kind), ids[at]), object, len(at))
        values: list[Any] = found.tolist()
        return values

    def written_iris(self, ids: Ids) -> list[str]:
        """The IRIs of resources (int64 term ids) in Python."""
        return _taken(self._column("iri"), ids)

    def _values(self, kind: Kind, ids: Ids) -> list[Any]:
        if 1 << kind & AS_WRITTEN:
            texts, datatypes = (_taken(self._column(name), ids - LITERAL_BASE) for name in ("lexical", "datatype"))
            return list(map(python_value_of, texts, datatypes))
        values = _taken(self._column(VALUE_SQL[kind].format("literal")), ids - LITERAL_BASE)
        return list(map(tidied, values)) if kind == Kind.DECIMAL else values

    def about(self, ids: Ids) -> tuple[Ids, Ids, Ids]:
        """Subject, label and object of every triple with a literal or a class about some resources (sorted, unique)."""
        subjects, labels, objects = self._about()
        begin, end = np.searchsorted(subjects, ids), np.searchsorted(subjects, ids, side="right")
        lengths = end - begin
        at = np.repeat(end - np.cumsum(lengths), lengths) + np.arange(int(lengths.sum()))
        return subjects[at], labels[at], objects[at]

    def classes(self, ids: Ids) -> tuple[Ids, Ids]:
        """Subject and class of every triple with a class about some resources (sorted, unique)."""
        subjects, _, objects = self.about(ids)
        classes = objects < LITERAL_BASE
        return subjects[classes], objects[classes]

    def _about(self) -> Sequence[Ids]:
        if "about" not in self._columns:
            type_label = -1 if self._store.type_label is None else self._store.type_label
            rows = self._connection.columns(
                f"SELECT subject, label, object FROM _graphdb.triple WHERE object >= {LITERAL_BASE} OR label = $type "
                "ORDER BY subject ASC, label ASC, object ASC",
                {"type": type_label},
            )
            subjects, labels, objects = (rows[name] for name in ("subject", "label", "object"))
            for column, what in ((subjects, "subject"), (labels, "label")):
                self._store.ids.resource(column, what)
            self._store.ids.term(objects, "object")
            self._columns["about"] = subjects, labels, objects
        found: Sequence[Ids] = self._columns["about"]
        return found

    def _order(self) -> Ids:
        """The ids of resources in the order of their IRIs' characters."""
        if "order" not in self._columns:
            sql = "SELECT id FROM _graphdb.resource ORDER BY encode(iri) ASC"
            self._columns["order"] = self._connection.columns(sql)["id"]
        found: Ids = self._columns["order"]
        return found

    def _kinds(self) -> NDArray[np.uint8]:
        if "kinds" not in self._columns:
            found = plain(self._column("kind"))
            verify_kinds(found)
            self._columns["kinds"] = found
        kinds: NDArray[np.uint8] = self._columns["kinds"]
        return kinds

    def _column(self, sql: str) -> arrow.Array:
        """A column of the dictionary in the order of ids, which are dense."""
        found = self._columns.get(sql)
        if found is None:
            table = "resource" if sql == "iri" else "literal"
            rows = self._connection.arrow(f"SELECT {sql} FROM _graphdb.{table} ORDER BY id ASC").column(0)
            self._columns[sql] = found = rows.combine_chunks()
        return found


def _texts(column: arrow.Array, places: arrow.Array | arrow.ChunkedArray) -> arrow.Array:
    """Return some texts of a column; null for null."""
    one = places if isinstance(places, arrow.Array) else places.combine_chunks()
    at = one.cast(arrow.INT64).data
    assert at is not None
    return taken(column, at if one.valid is None else np.where(one.valid, at, -1))


def _taken(column: arrow.Array, places: Ids) -> list[Any]:
    """Return some values of a column in Python."""
    return pylist(taken(column, places))
