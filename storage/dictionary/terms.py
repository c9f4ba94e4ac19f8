"""The dictionary: every RDF term has a dense id, resources from 0, literals from :data:`LITERAL_BASE`.

"Is it a literal" is one comparison, and appending terms of either sort never renumbers the others.  A literal is
stored as written (lexical form, datatype, language tag in lower case), and with its value, typed for comparison by
:class:`Kind`.  All of it happens in SQL and NumPy: Python sees no single term.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common.values.terms import LIST_DATATYPE, LITERAL_BASE, XSD, ZONED_DATATYPE, Kind
from graphdb.storage.arrays.arrow import Windows, listed, numbers
from graphdb.storage.dictionary import hash_index
from graphdb.storage.dictionary.literal_kinds import Kinds
from graphdb.storage.file.prepared_sql import execute
from graphdb.storage.file.verify import verify_numbers

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

Ids = NDArray[np.int64]

_INTEGER_RANGES: dict[str, tuple[int | None, int | None]] = {
    "integer": (None, None),
    "nonPositiveInteger": (None, 0),
    "negativeInteger": (None, -1),
    "nonNegativeInteger": (0, None),
    "positiveInteger": (1, None),
    "long": (-(1 << 63), (1 << 63) - 1),
    "int": (-(1 << 31), (1 << 31) - 1),
    "short": (-(1 << 15), (1 << 15) - 1),
    "byte": (-(1 << 7), (1 << 7) - 1),
    "unsignedLong": (0, (1 << 64) - 1),
    "unsignedInt": (0, (1 << 32) - 1),
    "unsignedShort": (0, (1 << 16) - 1),
    "unsignedByte": (0, (1 << 8) - 1),
}
"""The integer types of XML Schema 1.1 Datatypes, §3.4, with their least and greatest values."""

# Lexical forms (XML Schema 1.1 Datatypes, §3.3), as regular expressions that must match in full.
_INTEGER = "[+-]?[0-9]+"
_DECIMAL = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)"
_EXACT_DECIMAL = r"[+-]?0*([0-9]{1,20}(\.[0-9]{0,18}0*)?|\.[0-9]{1,18}0*)"
_DOUBLE = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?INF|NaN"
_DATE = "-?([1-9][0-9]{3,}|0[0-9]{3})-[0-9]{2}-[0-9]{2}"
_TIME = r"(([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?|24:00:00(\.0+)?)"
_FINE = r"\.[0-9]{6}[0-9]*[1-9]"
_ZONE = "(Z|[+-]((0[0-9]|1[0-3]):[0-5][0-9]|14:00))"


_AS_DECIMAL = (
    f"CASE WHEN is_number AND integer IS NULL AND datatype NOT IN ('{XSD}double', '{XSD}float')"
    f" AND regexp_full_match(lexical, '{_EXACT_DECIMAL}') THEN TRY_CAST(lexical AS DECIMAL(38, 18)) END"
)
_AS_BOOLEAN = (
    f"CASE WHEN datatype = '{XSD}boolean' THEN CASE lexical"
    " WHEN 'true' THEN true WHEN '1' THEN true WHEN 'false' THEN false WHEN '0' THEN false END END"
)
_AS_DATE = (
    f"CASE WHEN datatype = '{XSD}date' AND regexp_full_match(lexical, '{_DATE}') THEN TRY_CAST(lexical AS DATE) END"
)
_AS_DATETIME = (
    f"CASE WHEN datatype = '{XSD}dateTime' AND regexp_full_match(lexical, '{_DATE}T{_TIME}')"
    " THEN TRY_CAST(lexical AS TIMESTAMP) END"
)
_AS_ZONED = (
    f"CASE WHEN datatype = '{XSD}dateTime' AND regexp_full_match(lexical, '{_DATE}T{_TIME}{_ZONE}')"
    " THEN TRY_CAST(lexical AS TIMESTAMPTZ) END"
)
_AS_TIME = (
    f"CASE WHEN datatype = '{XSD}time' AND regexp_full_match(lexical, '{_TIME}')"
    " THEN TRY_CAST(regexp_replace(lexical, '^24', '00') AS TIME) END"
)
_TEMPORAL_TIME = (
    f"regexp_full_match(lexical, '{_TIME}{_ZONE}|{_TIME}') AND (time IS NULL OR regexp_matches(lexical, '{_FINE}'))"
)


_IS_NUMBER = f"""CASE
                WHEN datatype IS NULL OR NOT starts_with(datatype, '{XSD}') THEN NULL
                WHEN is_integer THEN regexp_full_match(lexical, '{_INTEGER}')
                    AND coalesce(TRY_CAST(lexical AS HUGEINT) >= low, low IS NULL OR NOT starts_with(lexical, '-'))
                    AND coalesce(TRY_CAST(lexical AS HUGEINT) <= high, high IS NULL OR starts_with(lexical, '-'))
                WHEN datatype = '{XSD}decimal' THEN regexp_full_match(lexical, '{_DECIMAL}')
                WHEN datatype IN ('{XSD}double', '{XSD}float') THEN regexp_full_match(lexical, '{_DOUBLE}')
            END"""


def typed_literals(source: str, datatypes: Collection[str | None] | None = None) -> str:
    """Return SQL for rows ``(id, lexical, datatype, language)`` of ``source`` with the columns of the table literal.

    ``datatypes`` are all that there are, where that is known: SQL that says less is planned sooner.

    First the one value that the datatype calls for, NULL where the lexical form is not one of its own; then the
    kind follows from which value there is.  Rows pass one by one and keep their order: nothing is joined or sorted.
    """
    ranges = {n: r for n, r in _INTEGER_RANGES.items() if datatypes is None or XSD + n in datatypes}
    names = ", ".join(f"'{XSD}{name}'" for name in ranges) or "NULL"
    low, high = (
        " ".join(
            f"WHEN '{XSD}{n}' THEN {limits[end]}::HUGEINT" for n, limits in ranges.items() if limits[end] is not None
        )
        for end in (0, 1)
    )
    low, high = (f"CASE datatype {cases} END" if cases else "NULL" for cases in (low, high))

    def of(sql: str, type: str, *names: str) -> str:
        """Return the value of literals of some datatypes; NULL where there are none."""
        there = datatypes is None or any(XSD + name in datatypes for name in names)
        return sql if there else f"CAST(NULL AS {type})"

    numbers = (*_INTEGER_RANGES, "decimal", "double", "float")
    return f"""
    WITH ranged AS (
        SELECT *, coalesce(datatype IN ({names}), false) AS is_integer,
            CASE WHEN is_integer THEN {low} END AS low,
            CASE WHEN is_integer THEN {high} END AS high
        FROM {source}
    ),
    checked AS (
        SELECT *, {of(_IS_NUMBER, "BOOLEAN", *numbers)} AS is_number
        FROM ranged
    ),
    valued AS (
        SELECT *,
            {of("CASE WHEN is_number AND is_integer THEN TRY_CAST(lexical AS BIGINT) END", "BIGINT", *_INTEGER_RANGES)}
                AS integer,
            {of("CASE WHEN is_number THEN TRY_CAST(lexical AS DOUBLE) END", "DOUBLE", *numbers)} AS number,
            {of(_AS_DECIMAL, "DECIMAL(38, 18)", *_INTEGER_RANGES, "decimal")} AS decimal,
            {of(_AS_BOOLEAN, "BOOLEAN", "boolean")} AS boolean,
            {of(_AS_DATE, "DATE", "date")} AS date,
            {of(_AS_DATETIME, "TIMESTAMP", "dateTime")} AS datetime,
            {of(_AS_ZONED, "TIMESTAMPTZ", "dateTime")} AS zoned,
            {of(_AS_TIME, "TIME", "time")} AS time,
            CASE
                WHEN datatype IN ('{XSD}duration', '{ZONED_DATATYPE}') THEN true
                WHEN datatype = '{XSD}time' THEN {of(_TEMPORAL_TIME, "BOOLEAN", "time")}
                WHEN datatype = '{XSD}dateTime' THEN {of(f"regexp_matches(lexical, '{_FINE}')", "BOOLEAN", "dateTime")}
                ELSE false
            END AS temporal
        FROM checked
    )
    SELECT id, lexical, datatype, language,
        (CASE
            WHEN language IS NOT NULL THEN {Kind.LANGSTRING:d}
            WHEN datatype IS NULL THEN {Kind.STRING:d}
            WHEN integer IS NOT NULL THEN {Kind.INTEGER:d}
            WHEN decimal IS NOT NULL THEN {Kind.DECIMAL:d}
            WHEN number IS NOT NULL THEN {Kind.DOUBLE:d}
            WHEN boolean IS NOT NULL THEN {Kind.BOOLEAN:d}
            WHEN temporal THEN {Kind.TEMPORAL:d}
            WHEN datatype = '{LIST_DATATYPE}' THEN {Kind.LIST:d}
            WHEN date IS NOT NULL THEN {Kind.DATE:d}
            WHEN datetime IS NOT NULL THEN {Kind.DATETIME:d}
            WHEN zoned IS NOT NULL THEN {Kind.ZONED:d}
            WHEN time IS NOT NULL THEN {Kind.TIME:d}
            ELSE {Kind.OTHER:d}
        END)::UTINYINT AS kind,
        integer, number, decimal, boolean, date, datetime, zoned, time
    FROM valued
    """


_SHORT = re.compile("[+-]?[0-9]{1,18}")


def is_short(lexical: str, datatype: str | None, language: str | None) -> bool:
    """Whether a literal is one of those that :func:`short_literals` knows."""
    return datatype is None or (datatype == XSD + "integer" and _SHORT.fullmatch(lexical) is not None)


def short_literals(source: str) -> str:
    """Return what :func:`typed_literals` does, for strings and integers of 18 digits: SQL that is planned sooner."""
    return f"""
    SELECT id, lexical, datatype, language,
        CASE WHEN language IS NOT NULL THEN {Kind.LANGSTRING:d} WHEN datatype IS NULL THEN {Kind.STRING:d}
            ELSE {Kind.INTEGER:d} END,
        CASE WHEN datatype IS NOT NULL THEN lexical::BIGINT END,
        CASE WHEN datatype IS NOT NULL THEN lexical::DOUBLE END,
        NULL, NULL, NULL, NULL, NULL, NULL
    FROM {source}
    """


_BASES = {"resource": 0, "literal": LITERAL_BASE}
_LITERAL = ("lexical", "datatype", "language")
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
    [(resources, first, last, literals, first_literal, last_literal)] = connection.execute(
        "FROM (SELECT count(*), min(id), max(id) FROM _graphdb.resource),"
        " (SELECT count(*), min(id), max(id) FROM _graphdb.literal)"
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
    where they are known.

    New terms are kept in temporary tables, which DuckDB can spill, until :meth:`store` writes them all at once: what a
    transaction has appended in many pieces would stay in memory until it ends.  A few are kept as they came.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        windows: Windows,
        *,
        empty: bool = False,
        sizes: tuple[int, int] | None = None,
        ahead: int | None = None,
    ) -> None:
        self._connection = connection
        self._ahead = ahead
        self._windows = windows
        self._next: dict[str, int] = dict(_BASES) if empty else {}
        if sizes is not None:
            self._next = {table: base + size for (table, base), size in zip(_BASES.items(), sizes, strict=True)}
        self._stored: dict[str, int] = dict(self._next)  # ids below are in the file
        self._few: dict[str, pa.Table] = {}  # new terms that no temporary table has
        self._first: dict[str, int] = {} if empty else dict(self._next)
        self._datatypes: set[str | None] | None = set()  # of new literals; None for many
        self._keys = {
            table: hash_index.HashIndex(connection, windows, table, base, *_COLUMNS[table])
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

    def resources(self, iris: pa.Array | pa.ChunkedArray) -> Ids:
        """Return the ids (int64) of distinct IRIs and blank nodes: a string array without NULL."""
        import pyarrow as pa

        terms = pa.table({"position": numbers(np.arange(len(iris))), "iri": iris})
        return self._number(terms, "resource", "known.iri = term.iri")

    def literals(
        self,
        lexical: pa.Array | pa.ChunkedArray,
        datatype: pa.Array | pa.ChunkedArray,
        language: pa.Array | pa.ChunkedArray,
    ) -> Ids:
        """Return the ids (int64) of distinct literals: three string arrays of one length.

        ``datatype`` is NULL for xsd:string and rdf:langString, ``language`` (in lower case) for all but rdf:langString.
        """
        import pyarrow as pa

        if datatype.null_count == len(datatype):
            self._datatypes = None if self._datatypes is None else self._datatypes | {None}
        elif len(datatype) <= hash_index.FEW and self._datatypes is not None:
            self._datatypes |= set(datatype.to_pylist())
        else:
            self._datatypes = None
        terms = pa.table(
            {
                "position": numbers(np.arange(len(lexical))),
                "lexical": lexical,
                "datatype": datatype,
                "language": language,
            }
        )
        return self._number(terms, "literal", _SAME_LITERAL)

    def append(self, iris: Iterable[pa.Array], literals: Iterable[Sequence[pa.Array]]) -> None:
        """Write terms that are distinct and new; they get the next ids, in their order.

        No others may wait for :meth:`store`.

        Parameters
        ----------
        iris
            The IRIs and blank nodes, piece by piece.
        literals
            Lexical forms, datatypes and languages, as :meth:`literals` takes them; the last two as dictionary arrays.
        """
        import pyarrow as pa

        first, notes = self._upcoming("resource"), pa.dictionary(pa.int32(), pa.string())
        schema = pa.schema({"id": pa.int64(), "iri": pa.string()})
        with self._windows.show("_graphdb_terms", _stream(schema, first, ((piece,) for piece in iris))):
            self._insert("resource", "SELECT id, iri FROM _graphdb_terms")
        first = self._upcoming("literal")
        schema = pa.schema({"id": pa.int64(), "lexical": pa.string(), "datatype": notes, "language": notes})
        pieces = iter(literals)
        some = list(islice(pieces, 2))
        if some:
            noted = some[0][1].dictionary
            datatypes = {None, *noted.to_pylist()} if len(some) == 1 and len(noted) <= hash_index.FEW else None
            with self._windows.show("_graphdb_values", _stream(schema, first, chain(some, pieces))):
                self._insert("literal", typed_literals("_graphdb_values", datatypes))

    def literals_of(self, source: str, into: str) -> None:
        """Number the literals of a relation (lexical, datatype, language), repeats among them, and write the new ones.

        They are left in a temporary table ``into`` (value, lexical, datatype, language), one row each.
        """
        first = self._upcoming("literal")
        [(terms,)] = self._connection.execute(
            f"CREATE TEMP TABLE _graphdb_distinct AS SELECT DISTINCT lexical, datatype, language FROM {source}"
        ).fetchall()
        datatypes: set[str | None] | None = None
        if terms <= hash_index.FEW:
            rows = self._connection.execute("SELECT DISTINCT datatype FROM temp._graphdb_distinct").fetchall()
            datatypes = {datatype for (datatype,) in rows}
        with self._keys["literal"].narrowed("temp._graphdb_distinct", {}, terms, first) as (known, parameters):
            self._connection.execute(
                f"CREATE TEMP TABLE {into} AS SELECT coalesce(known.id, {first - 1} + row_number()"
                " OVER (PARTITION BY known.id IS NULL)) AS value, term.lexical, term.datatype, term.language"
                f" FROM temp._graphdb_distinct AS term LEFT JOIN {known} AS known ON {_SAME_LITERAL}",
                parameters,
            )
        self._connection.execute("DROP TABLE temp._graphdb_distinct")
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
            few = self._few.pop(table, None)
            if few is not None:
                self._store_few(table, few)
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

    def _store_few(self, table: str, few: pa.Table) -> None:
        """Write new terms that no temporary table has."""
        if not len(few):
            return
        source, given = listed(few)
        if table == "resource":
            execute(self._connection, f"INSERT INTO _graphdb.resource SELECT id, iri FROM {source}", given)
            return
        short = all(map(is_short, *(given[name] for name in _LITERAL)))
        rows = short_literals(source) if short else typed_literals(source, self._datatypes)
        found = execute(self._connection, f"INSERT INTO _graphdb.literal {rows} RETURNING id, kind", given)
        self._kinds.add(found.fetchnumpy())

    def _upcoming(self, table: str) -> int:
        """Return the id that the next new term of ``table`` gets."""
        if table not in self._next:
            base = _BASES[table]
            found = execute(self._connection, f"SELECT {base} + count(*) FROM _graphdb.{table}").fetchall()
            self._next[table] = self._stored[table] = self._first[table] = found[0][0]
        return self._next[table]

    def _number(self, terms: pa.Table, table: str, condition: str) -> Ids:
        """Find ``terms`` in ``table``, and among what is new since; number the others."""
        ids = np.full(len(terms), -1, np.int64)
        if not len(terms):
            return ids
        first, before = self._upcoming(table), self._stored[table]
        if table in self._few:
            self._stage(table, self._few.pop(table), create=True)
        with self._windows.shown("_graphdb_term", terms) as (source, given):

            def look(place: str, parameters: Mapping[str, Any], columns: str) -> dict[str, Any]:
                """Find terms in a relation, which has these columns."""
                found = execute(
                    self._connection,
                    f"SELECT position, {columns} FROM {source} AS term JOIN {place} AS known ON {condition}",
                    {**given, **parameters},
                ).fetchnumpy()
                ids[found["position"]] = found["id"]
                return found

            if before > _BASES[table]:
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
        self._next[table] = first + len(new)
        fresh = terms if len(new) == len(terms) else terms.take(numbers(new))
        fresh = fresh.set_column(0, "id", [numbers(ids[new])])
        if first == before and len(new) <= hash_index.FEW:
            self._few[table] = fresh
        else:
            self._stage(table, fresh, create=first == before)
        return ids

    def _insert(self, table: str, rows: str) -> None:
        """Write rows, which have the next ids."""
        [(added,)] = execute(self._connection, f"INSERT INTO _graphdb.{table} {rows}").fetchall()
        self._next[table] += int(added)
        if table == "literal":
            self._kinds.expect(self._stored[table], self._next[table])
        self._stored[table] = self._next[table]

    def _stage(self, table: str, fresh: pa.Table, *, create: bool) -> None:
        """Keep new terms in a temporary table for :meth:`store`."""
        if create:
            columns = ", ".join(f"{name} VARCHAR" for name in fresh.column_names[1:])
            execute(self._connection, f"CREATE TEMP TABLE _graphdb_new_{table} (id BIGINT, {columns})")
        if len(fresh):
            with self._windows.show("_graphdb_term", fresh):
                execute(self._connection, f"INSERT INTO temp._graphdb_new_{table} SELECT * FROM _graphdb_term")


def _stream(schema: pa.Schema, first: int, pieces: Iterable[Sequence[pa.Array]]) -> pa.RecordBatchReader:
    """Return pieces of columns as a stream, behind a column of ids that begin with ``first``."""
    import pyarrow as pa

    def batches() -> Iterator[pa.RecordBatch]:
        at = first
        for columns in pieces:
            ids = numbers(np.arange(at, at + len(columns[0])))
            yield pa.record_batch([ids, *columns], schema)
            at += len(ids)

    return pa.RecordBatchReader.from_batches(schema, batches())
