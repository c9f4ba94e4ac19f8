"""The dictionary: every RDF term has a dense id, resources from 0, literals from :data:`LITERAL_BASE`.

"Is it a literal" is one comparison, and appending terms of either sort never renumbers the others.  A literal is
stored as written (lexical form, datatype, language tag in lower case), and with its value, typed for comparison by
:class:`Kind`.  All of it happens in SQL and NumPy: Python sees no single term.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.arrow import numbers
from graphdb.common.values.terms import LITERAL_BASE
from graphdb.storage.arrays.arrow import LISTED, ArrowViews, listed, unnested
from graphdb.storage.dictionary import hash_index
from graphdb.storage.dictionary.known_hashes import KnownHashes
from graphdb.storage.dictionary.literal_kinds import Kinds
from graphdb.storage.dictionary.typed_literals import integer_literals, is_short, short_literals, typed_literals
from graphdb.storage.file.prepared_sql import execute
from graphdb.storage.file.verify import verify_numbers

if TYPE_CHECKING:
    import duckdb

    from graphdb.storage.arrays.spill import SpillArray

Ids = NDArray[np.int64]

_BASES = {"resource": 0, "literal": LITERAL_BASE}
_LITERAL = ("lexical", "datatype", "language")
_REMEMBERED = 200
"""Characters of a term whose id is remembered, at most."""
_DATATYPES = 100
"""Datatypes up to which the SQL that reads values is written for those that there are."""
_SHORT_VALUES = {"kind": "UTINYINT", "integer": "BIGINT", "number": "DOUBLE", "boolean": "BOOLEAN"}
"""Columns that :func:`.short_literals` makes, with their types."""
_COLUMNS = {"resource": (("iri",), ()), "literal": (_LITERAL, ("kind",))}
_SAME_LITERAL = (
    "known.lexical = term.lexical AND known.datatype IS NOT DISTINCT FROM term.datatype"
    " AND known.language IS NOT DISTINCT FROM term.language"
)


def term_counts(connection: duckdb.DuckDBPyConnection) -> tuple[int, int]:
    """Return how many resources and literals there are.

    Raises
    ------
    StorageError
        Their ids are not what they are counted by: arrays of that size would be of any size.
    """
    (resources, first, last), (literals, first_literal, last_literal) = execute(
        connection,
        "SELECT count(*), min(id), max(id) FROM _graphdb.resource"
        " UNION ALL SELECT count(*), min(id), max(id) FROM _graphdb.literal",
    ).fetchall()
    verify_numbers(resources, first, last, 0)
    verify_numbers(literals, first_literal, last_literal, LITERAL_BASE)
    return int(resources), int(literals)


AHEAD = "names_ahead"
"""The key under which the file notes how far the numbers in names of blank nodes are ahead of their ids."""


def names_ahead(connection: duckdb.DuckDBPyConnection) -> int:
    """Return how far the numbers in names of blank nodes are ahead of their ids."""
    found = execute(connection, "SELECT value FROM _graphdb.meta WHERE key = ?", [AHEAD]).fetchall()
    return int(found[0][0]) if found else 0


class Numbering:
    """Gives terms their ids, those that are new the next ones, in the caller's transaction; one at a time.

    ``sizes`` are the numbers of resources and literals in the file, ``ahead`` is what :func:`names_ahead` returns,
    where they are known, ``hashes`` what is known of those of terms.

    New terms are staged in temporary tables, which DuckDB can spill, until :meth:`store` writes them all at once: what
    a transaction has appended in many pieces would stay in memory until it ends.  Small sets of new terms stay Arrow
    tables.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        views: ArrowViews,
        *,
        empty: bool = False,
        sizes: tuple[int, int] | None = None,
        ahead: int | None = None,
        hashes: Mapping[str, KnownHashes] | None = None,
    ) -> None:
        self._connection = connection
        self._ahead = ahead
        self._views = views
        self._next: dict[str, int] = dict(_BASES) if empty else {}
        if sizes is not None:
            self._next = {table: base + size for (table, base), size in zip(_BASES.items(), sizes, strict=True)}
        self._stored: dict[str, int] = dict(self._next)  # ids below are in the file
        self._small: dict[str, arrow.Table] = {}  # new terms that no temporary table has
        self._first: dict[str, int] = {} if empty else dict(self._next)
        self._datatypes: set[str | None] | None = set()  # of new literals; None for many
        self._keys = {
            table: hash_index.HashIndex(connection, views, table, base, *_COLUMNS[table], (hashes or {}).get(table))
            for table, base in _BASES.items()
        }
        self._kinds = Kinds(connection)

    @property
    def first_new(self) -> int:
        """Resources from this id on are of this transaction."""
        return self._first.get("resource", LITERAL_BASE)

    @property
    def sizes(self) -> tuple[int, int] | None:
        """How many resources and literals there are by now, where both were asked for."""
        if len(self._next) < len(_BASES):
            return None
        return self._next["resource"], self._next["literal"] - LITERAL_BASE

    @property
    def first_new_literal(self) -> int:
        """Literals from this id on are of this transaction."""
        return self._first.get("literal", sys.maxsize)

    def kinds_of(self, ids: Ids) -> tuple[NDArray[np.bool_], Ids]:
        """Return which literals of some ids (int64) have a :class:`Kind` that is known, and the kinds; 0 for others.

        Those are known that were asked for and :meth:`store` has written, unless they were many.
        """
        return self._kinds.of(ids)

    @property
    def next_literal(self) -> int:
        """The id that the next new literal gets."""
        return self._upcoming("literal")

    def resources(self, iris: arrow.Array | arrow.ChunkedArray) -> Ids:
        """Return the ids (int64) of distinct IRIs and blank nodes: a string array without NULL."""
        terms = arrow.table({"position": numbers(np.arange(len(iris))), "iri": iris})
        return self._number(terms, "resource", "known.iri = term.iri")

    def literals(
        self,
        lexical: arrow.Array | arrow.ChunkedArray,
        datatype: arrow.Array | arrow.ChunkedArray,
        language: arrow.Array | arrow.ChunkedArray,
    ) -> Ids:
        """Return the ids (int64) of distinct literals: three string arrays of one length.

        ``datatype`` is NULL for xsd:string and rdf:langString, ``language`` (in lower case) for all but rdf:langString.
        """
        if datatype.null_count == len(datatype):
            self._datatypes = None if self._datatypes is None else self._datatypes | {None}
        elif len(datatype) <= hash_index.SMALL_LOOKUP and self._datatypes is not None:
            self._datatypes |= set(arrow.pylist(datatype))
        else:
            self._datatypes = None
        terms = arrow.table(
            {
                "position": numbers(np.arange(len(lexical))),
                "lexical": lexical,
                "datatype": datatype,
                "language": language,
            }
        )
        return self._number(terms, "literal", _SAME_LITERAL)

    def append(
        self,
        iris: Iterable[arrow.Array],
        literals: Iterable[Sequence[arrow.Array]],
        datatypes: set[str | None] | None = None,
        integers: Sequence[SpillArray] = (),
    ) -> None:
        """Write terms that are distinct and new; they get the next ids, in their order.

        No others may wait for :meth:`store`.

        Parameters
        ----------
        iris
            The IRIs and blank nodes, piece by piece.
        literals
            Lexical forms, datatypes and languages, as :meth:`literals` takes them; the last two as dictionary arrays.
        datatypes
            Those of these literals, where they are known.
        integers
            int64[n] each: literals of xsd:integer, in their canonical form; they come before the others.
        """
        first, notes = self._upcoming("resource"), arrow.dictionary(arrow.INT32, arrow.STRING)
        schema = arrow.schema({"id": arrow.INT64, "iri": arrow.STRING})
        for terms in _stream(schema, first, ((piece,) for piece in iris)).tables():
            if len(terms) <= LISTED:
                self._append_small("resource", terms)
                continue
            with self._views.view("_graphdb_terms", terms):
                self._insert("resource", "SELECT id, iri FROM _graphdb_terms")
        schema = arrow.schema(dict.fromkeys(("id", "integer"), arrow.INT64))
        for given in _stream(schema, self._upcoming("literal"), ((numbers(some.get()),) for some in integers)).tables():
            with self._views.view_or_list("_graphdb_integers", given) as (source, parameters):
                self._insert("literal", integer_literals(source), parameters)
        first = self._upcoming("literal")
        schema = arrow.schema({"id": arrow.INT64, "lexical": arrow.STRING, "datatype": notes, "language": notes})
        for values in _stream(schema, first, literals).tables():
            if len(values) <= LISTED:
                self._datatypes = datatypes
                self._append_small("literal", values)
            else:
                with self._views.view("_graphdb_values", values):
                    self._insert("literal", typed_literals("_graphdb_values", datatypes))

    def literals_of(self, source: str, into: str) -> None:
        """Number the literals of a relation (lexical, datatype, language), repeats among them, and write the new ones.

        They are left in a temporary table ``into`` (value, lexical, datatype, language), one row each.
        """
        first = self._upcoming("literal")
        [(terms,)] = execute(
            self._connection,
            f"CREATE TEMP TABLE _graphdb_distinct AS SELECT DISTINCT lexical, datatype, language FROM {source}",
        ).fetchall()
        rows = execute(
            self._connection, f"SELECT DISTINCT datatype FROM temp._graphdb_distinct LIMIT {_DATATYPES}"
        ).fetchall()
        datatypes = {datatype for (datatype,) in rows} if len(rows) < _DATATYPES else None
        with self._keys["literal"].narrowed("temp._graphdb_distinct", {}, terms, first) as (known, parameters):
            execute(
                self._connection,
                f"CREATE TEMP TABLE {into} AS SELECT coalesce(known.id, {first - 1} + row_number()"
                " OVER (PARTITION BY known.id IS NULL)) AS value, term.lexical, term.datatype, term.language"
                f" FROM temp._graphdb_distinct AS term LEFT JOIN {known} AS known ON {_SAME_LITERAL}",
                parameters,
            )
        execute(self._connection, "DROP TABLE temp._graphdb_distinct")
        new = f"(SELECT value AS id, lexical, datatype, language FROM temp.{into} WHERE value >= {first})"
        self._insert("literal", typed_literals(new, datatypes))

    def blanks(self, count: int) -> range:
        """Make new blank nodes, write them, and return their ids; nothing else may wait for :meth:`store`."""
        first = self._upcoming("resource")
        if self._ahead is None:
            self._ahead = names_ahead(self._connection)
        execute(
            self._connection,
            "INSERT INTO _graphdb.resource SELECT range, '_:v' || (range + $ahead) FROM range($first, $end)",
            {"first": first, "end": first + count, "ahead": self._ahead},
        ).fetchall()
        self._next["resource"] = self._stored["resource"] = first + count
        return range(first, first + count)

    def store(self) -> None:
        """Write the new terms, literals with their values."""
        for table, before in self._stored.items():
            small = self._small.pop(table, None)
            if small is not None:
                self._store_small(table, small)
            elif self._next[table] > before:
                source = f"temp._graphdb_new_{table}"
                rows = f"SELECT id, iri FROM {source}"
                if table == "literal":
                    rows = typed_literals(source, self._datatypes)
                execute(self._connection, f"INSERT INTO _graphdb.{table} {rows}")
                execute(self._connection, f"DROP TABLE {source}")
                if table == "literal":
                    self._kinds.expect(before, self._next[table])
        self._stored.update(self._next)
        self._datatypes = set()

    def _store_small(self, table: str, small: arrow.Table) -> None:
        """Write new terms that no temporary table has."""
        if not len(small):
            return
        source, given = listed(small)
        if table == "resource":
            execute(self._connection, f"INSERT INTO _graphdb.resource SELECT id, iri FROM {source}", given)
            return
        written = [given[name] for name in _LITERAL]
        if all(map(is_short, *written)):
            values = short_literals(*written)
            rows = unnested({"id": "BIGINT", **dict.fromkeys(_LITERAL, "VARCHAR"), **_SHORT_VALUES})
            columns = ", ".join(("id", *_LITERAL, *_SHORT_VALUES))
            sql = f"INSERT INTO _graphdb.literal ({columns}) SELECT {columns} FROM {rows}"
            execute(self._connection, sql, {**given, **values})
            self._kinds.add(
                {name: np.array(column, np.int64) for name, column in (("id", given["id"]), ("kind", values["kind"]))}
            )
            return
        rows = typed_literals(source, self._datatypes)
        found = execute(self._connection, f"INSERT INTO _graphdb.literal {rows} RETURNING id, kind", given)
        self._kinds.add(found.fetchnumpy())

    def _append_small(self, table: str, small: arrow.Table) -> None:
        """Write new terms that have the next ids, where nothing waits for :meth:`store`."""
        self._store_small(table, small)
        self._next[table] += len(small)
        self._stored[table] = self._next[table]

    def _upcoming(self, table: str) -> int:
        """Return the id that the next new term of ``table`` gets."""
        if table not in self._next:
            base = _BASES[table]
            found = execute(self._connection, f"SELECT {base} + count(*) FROM _graphdb.{table}").fetchall()
            self._next[table] = self._stored[table] = self._first[table] = found[0][0]
        return self._next[table]

    def _number(self, terms: arrow.Table, table: str, condition: str) -> Ids:
        """Find ``terms`` in ``table``, and among what is new since; number the others."""
        ids = np.full(len(terms), -1, np.int64)
        if not len(terms):
            return ids
        first, before = self._upcoming(table), self._stored[table]
        if table in self._small:
            self._stage(table, self._small.pop(table), create=True)
        with self._views.view_or_list("_graphdb_term", terms) as (source, given):

            def look(place: str, parameters: Mapping[str, Any], columns: str) -> dict[str, Any]:
                """Find terms in a relation, which has these columns."""
                found = execute(
                    self._connection,
                    f"SELECT position, {columns} FROM {source} AS term JOIN {place} AS known ON {condition}",
                    {**given, **parameters},
                ).fetchnumpy()
                ids[found["position"]] = found["id"]
                return found

            asked = np.arange(len(terms))
            if before > _BASES[table] and len(terms) <= hash_index.SMALL_LOOKUP:
                asked = self._look_up_small(table, terms, before, ids)
            elif before > _BASES[table]:
                with self._keys[table].narrowed(source, given, len(terms), before) as place:
                    found = look(*place, "known.id, known.kind" if table == "literal" else "known.id")
                if table == "literal":
                    self._kinds.add(found)
            if first > before:
                look(f"temp._graphdb_new_{table}", {}, "known.id")
        new = np.flatnonzero(ids < 0)
        if not len(new):
            return ids
        ids[new] = np.arange(first, first + len(new))
        if first == before and len(terms) <= hash_index.SMALL_LOOKUP:
            self._keys[table].note(np.searchsorted(asked, new), ids[new])
        self._next[table] = first + len(new)
        fresh = terms if len(new) == len(terms) else terms.take(numbers(new))
        fresh = fresh.with_columns({0: numbers(ids[new])}).rename_columns(["id", *fresh.column_names[1:]])
        if first == before and len(new) <= hash_index.SMALL_LOOKUP:
            self._small[table] = fresh
        else:
            self._stage(table, fresh, create=first == before)
        return ids

    def _look_up_small(self, table: str, terms: arrow.Table, before: int, ids: Ids) -> Ids:
        """Find a handful of terms in ``table``, and note their ``ids``; return the places of those not remembered."""
        names, _ = _COLUMNS[table]
        columns, memory = [arrow.pylist(terms.column(name)) for name in names], self._keys[table].known
        if table == "resource" and None in memory.remembered(columns[0]) and memory.all_wanted(before):
            every = execute(self._connection, "SELECT iri, id FROM _graphdb.resource WHERE id < ?", [before])
            memory.remember((iri, (id,)) for iri, id in every.fetchall())
        keys = columns[0] if table == "resource" else list(zip(*columns, strict=True))
        found = memory.remembered(keys)
        asked = [place for place, row in enumerate(found) if row is None]
        if asked:
            some = terms if len(asked) == len(found) else terms.take(numbers(np.array(asked)))
            rows = self._keys[table].rows_of(*listed(some), [columns[0][place] for place in asked], before)
            known = {row[1] if table == "resource" else row[1:4]: (row[0], *row[1 + len(names) :]) for row in rows}
            for place in asked:
                found[place] = known.get(keys[place])
            memory.remember(
                (keys[place], row)
                for place in asked
                if (row := found[place]) is not None and len(columns[0][place]) <= _REMEMBERED
            )
        there = [place for place, row in enumerate(found) if row is not None]
        rows_there = [row for row in found if row is not None]
        ids[there] = [row[0] for row in rows_there]
        if table == "literal":
            kinds = {"id": [row[0] for row in rows_there], "kind": [row[-1] for row in rows_there]}
            self._kinds.add({name: np.array(column, np.int64) for name, column in kinds.items()})
        return np.array(asked, np.int64)

    def _insert(self, table: str, rows: str, parameters: Mapping[str, Any] | None = None) -> None:
        """Write rows, which have the next ids."""
        [(added,)] = execute(self._connection, f"INSERT INTO _graphdb.{table} {rows}", parameters).fetchall()
        self._next[table] += int(added)
        if table == "literal":
            self._kinds.expect(self._stored[table], self._next[table])
        self._stored[table] = self._next[table]

    def _stage(self, table: str, fresh: arrow.Table, *, create: bool) -> None:
        """Keep new terms in a temporary table for :meth:`store`."""
        if create:
            columns = ", ".join(f"{name} VARCHAR" for name in fresh.column_names[1:])
            execute(self._connection, f"CREATE TEMP TABLE _graphdb_new_{table} (id BIGINT, {columns})")
        if len(fresh):
            with self._views.view("_graphdb_term", fresh):
                execute(self._connection, f"INSERT INTO temp._graphdb_new_{table} SELECT * FROM _graphdb_term")


def _stream(schema: arrow.Schema, first: int, pieces: Iterable[Sequence[arrow.Array]]) -> arrow.Reader:
    """Return pieces of columns as a stream, behind a column of ids that begin with ``first``."""

    def batches() -> Iterator[Sequence[arrow.Array]]:
        at = first
        for columns in pieces:
            ids = numbers(np.arange(at, at + len(columns[0])))
            yield [ids, *columns]
            at += len(ids)

    return arrow.Reader(schema, batches())
