"""The dictionary: every RDF term has a dense id, resources from 0, literals from :data:`LITERAL_BASE`.

"Is it a literal" is one comparison, and appending terms of either sort never renumbers the others.  A literal is
stored as written (lexical form, datatype, language tag in lower case), and with its value, typed for comparison by
:class:`Kind`.  All of it happens in SQL and NumPy: Python sees no single term.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.arrow import numbers
from graphdb.common.values.terms import LITERAL_BASE, Kind
from graphdb.storage.arrays.arrow import LISTED, ArrowViews, unnested
from graphdb.storage.dictionary import hash_index
from graphdb.storage.dictionary.known_hashes import KnownHashes
from graphdb.storage.dictionary.literal_kinds import Kinds
from graphdb.storage.dictionary.typed_literals import is_short, short_literals, typed_literals, valued_literals
from graphdb.storage.file.prepared_sql import Insertions, execute
from graphdb.storage.file.verify import verify_numbers

if TYPE_CHECKING:
    import duckdb

    from graphdb.storage.arrays.batch import Valued

Ids = NDArray[np.int64]

Literal: TypeAlias = tuple[str, str | None, str | None]
"""A literal's lexical form, datatype and language."""

_BASES = {"resource": 0, "literal": LITERAL_BASE}
_LITERAL = ("lexical", "datatype", "language")
_REMEMBERED = 200
"""Characters of a term whose id is remembered, at most."""
_DATATYPES = 100
"""Datatypes up to which the SQL that reads values is written for those that there are."""
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
    a transaction has appended in many pieces would stay in memory until it ends.  Small sets of new terms wait among
    ``insertions``, with what else the transaction inserts.
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
        self.insertions = Insertions(connection)
        self._next: dict[str, int] = dict(_BASES) if empty else {}
        if sizes is not None:
            self._next = {table: base + size for (table, base), size in zip(_BASES.items(), sizes, strict=True)}
        self._stored: dict[str, int] = dict(self._next)  # ids below are in the file, or wait among the insertions
        self._first: dict[str, int] = {} if empty else dict(self._next)
        self._datatypes: set[str | None] | None = set()  # of new literals; None for many
        self._keys = {
            table: hash_index.HashIndex(connection, views, table, base, *_COLUMNS[table], (hashes or {}).get(table))
            for table, base in _BASES.items()
        }
        self.kinds = Kinds(connection)
        """Kinds of the literals that were asked for and that :meth:`store` has written, unless they were many."""

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

    @property
    def next_literal(self) -> int:
        """The id that the next new literal gets."""
        return self._upcoming("literal")

    def resources(self, iris: arrow.Array | arrow.ChunkedArray) -> Ids:
        """Return the ids (int64) of distinct IRIs and blank nodes: a string array without NULL."""
        if self._are_small(len(iris), "resource"):
            return np.array(self._small("resource", arrow.pylist(iris)), np.int64)
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
        if self._are_small(len(lexical), "literal"):
            columns = map(arrow.pylist, (lexical, datatype, language))
            return np.array(self._small("literal", list(zip(*columns, strict=True))), np.int64)
        if datatype.null_count == len(datatype):
            self._datatypes = None if self._datatypes is None else self._datatypes | {None}
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

    def listed_resources(self, iris: Sequence[str]) -> list[int]:
        """Return the ids of distinct IRIs and blank nodes, as :meth:`resources` does."""
        if self._are_small(len(iris), "resource"):
            return self._small("resource", iris)
        ids: list[int] = self.resources(arrow.strings(iris)).tolist()
        return ids

    def listed_literals(self, literals: Sequence[Literal]) -> list[int]:
        """Return the ids of distinct literals, as :meth:`literals` does."""
        if self._are_small(len(literals), "literal"):
            return self._small("literal", literals)
        lexical, datatype, language = map(arrow.strings, zip(*literals, strict=True))
        ids: list[int] = self.literals(lexical, datatype, language).tolist()
        return ids

    def append(
        self,
        iris: Iterable[arrow.Array],
        literals: Iterable[Sequence[arrow.Array]],
        datatypes: set[str | None] | None = None,
        valued: Sequence[Valued] = (),
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
        valued
            Further literals as their values; they come before the others.
        """
        first, notes = self._upcoming("resource"), arrow.dictionary(arrow.INT32, arrow.STRING)
        schema = arrow.schema({"id": arrow.INT64, "iri": arrow.STRING})
        for terms in _stream(schema, first, ((piece,) for piece in iris)).tables():
            if len(terms) <= LISTED:
                self._append_small("resource", arrow.pylist(terms.column("iri")))
                continue
            with self._views.view("_graphdb_terms", terms):
                self._insert("resource", "SELECT id, iri FROM _graphdb_terms")
        for each in valued:
            type = arrow.FLOAT64 if each.kind is Kind.DOUBLE else arrow.INT64
            schema = arrow.schema({"id": arrow.INT64, "value": type})
            pieces = ((numbers(piece.get()),) for piece in each.pieces)
            for given in _stream(schema, self._upcoming("literal"), pieces).tables():
                with self._views.view_or_list(f"_graphdb_{each.kind.name.lower()}", given) as (source, parameters):
                    self._insert("literal", valued_literals(source, each.kind), parameters)
        first = self._upcoming("literal")
        schema = arrow.schema({"id": arrow.INT64, "lexical": arrow.STRING, "datatype": notes, "language": notes})
        for values in _stream(schema, first, literals).tables():
            if len(values) <= LISTED:
                columns = (arrow.pylist(values.column(name)) for name in _LITERAL)
                self._append_small("literal", list(zip(*columns, strict=True)))
            else:
                with self._views.view("_graphdb_values", values):
                    self._insert("literal", typed_literals("_graphdb_values", datatypes))

    def literals_of(self, source: str, into: str) -> None:
        """Number the literals of a relation (lexical, datatype, language), repeats among them, and write the new ones.

        They are left in a temporary table ``into`` (value, lexical, datatype, language), one row each.
        """
        first = self._upcoming("literal")
        self.insertions.run("literal")
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
        """Make new blank nodes and return their ids; nothing else may wait for :meth:`store`.

        They are written, or wait among the ``insertions`` where they are a handful.
        """
        first = self._upcoming("resource")
        if self._ahead is None:
            self._ahead = names_ahead(self._connection)
        made = range(first, first + count)
        if count <= LISTED:
            names = [f"_:v{id + self._ahead}" for id in made]
            self.insertions.add("resource", {"id": made, "iri": names})
        else:
            self.insertions.run("resource")
            execute(
                self._connection,
                "INSERT INTO _graphdb.resource SELECT range, '_:v' || (range + $ahead) FROM range($first, $end)",
                {"first": first, "end": first + count, "ahead": self._ahead},
            ).fetchall()
        self._next["resource"] = self._stored["resource"] = first + count
        return made

    def store(self, *, may_wait: bool = False) -> None:
        """Write the new terms, literals with their values; where they ``may_wait``, a handful does."""
        for table, before in self._stored.items():
            if self._next[table] > before:
                self.insertions.run(table)
                source = f"temp._graphdb_new_{table}"
                rows = f"SELECT id, iri FROM {source}"
                if table == "literal":
                    rows = typed_literals(source, self._datatypes)
                execute(self._connection, f"INSERT INTO _graphdb.{table} {rows}")
                execute(self._connection, f"DROP TABLE {source}")
                if table == "literal":
                    self.kinds.expect(before, self._next[table])
        if not may_wait:
            self.insertions.run()
        self._stored.update(self._next)
        self._datatypes = set()

    def _insert_small(self, table: str, first: int, terms: Sequence[Any]) -> list[tuple[int, ...]]:
        """Insert new terms, which get the ids from ``first`` on: most wait among the insertions.

        Returns the id of each, and the kind of a literal.
        """
        ids = list(range(first, first + len(terms)))
        self._next[table] = self._stored[table] = first + len(terms)
        if table == "resource":
            self.insertions.add(table, {"id": ids, "iri": terms})
            return [(id,) for id in ids]
        written = dict(zip(_LITERAL, zip(*terms, strict=True), strict=True))
        if all(itertools.starmap(is_short, terms)):
            values = short_literals(*written.values())
            self.insertions.add(table, {"id": ids, **{name: written[name] for name in _LITERAL[1:]}, **values})
            kinds = values["kind"]
        else:
            self.insertions.run(table)
            source = unnested({"id": "BIGINT", **dict.fromkeys(_LITERAL, "VARCHAR")})
            sql = f"INSERT INTO _graphdb.literal {typed_literals(source, {*written['datatype']})} RETURNING id, kind"
            given = {"id": ids, **{name: [*texts] for name, texts in written.items()}}
            kinds = [kind for _, kind in sorted(execute(self._connection, sql, given).fetchall())]
        self.kinds.add(ids, kinds)
        return list(zip(ids, kinds, strict=True))

    def _append_small(self, table: str, terms: Sequence[Any]) -> None:
        """Write new terms that have the next ids, where nothing waits for :meth:`store`."""
        if terms:
            self._insert_small(table, self._next[table], terms)
            self.insertions.run()

    def _upcoming(self, table: str) -> int:
        """Return the id that the next new term of ``table`` gets."""
        if table not in self._next:
            base = _BASES[table]
            found = execute(self._connection, f"SELECT {base} + count(*) FROM _graphdb.{table}").fetchall()
            self._next[table] = self._stored[table] = self._first[table] = found[0][0]
        return self._next[table]

    def _are_small(self, terms: int, table: str) -> bool:
        """Whether so many terms are numbered by :meth:`_small`: others would have to look at what is staged."""
        return terms <= hash_index.SMALL_LOOKUP and self._upcoming(table) == self._stored[table]

    def _small(self, table: str, terms: Sequence[Any]) -> list[int]:
        """Find terms (an IRI, or a literal's three texts) in ``table``; number the others, and let them be inserted."""
        first, memory = self._upcoming(table), self._keys[table].known
        if table == "resource" and None in memory.remembered(terms) and memory.all_wanted(first):
            self.insertions.run(table)
            every = execute(self._connection, "SELECT iri, id FROM _graphdb.resource WHERE id < ?", [first])
            memory.remember((iri, (id,)) for iri, id in every.fetchall())
        found = memory.remembered(terms)
        asked = [place for place, row in enumerate(found) if row is None] if first > _BASES[table] else []
        if asked:
            self.insertions.run(table)
            columns = [(terms[place],) if table == "resource" else terms[place] for place in asked]
            rows = self._keys[table].rows_of(columns, first)
            width = 1 + len(columns[0])
            known = {row[1:width]: (row[0], *row[width:]) for row in rows}
            for place, key in zip(asked, columns, strict=True):
                found[place] = known.get(key)
        if table == "literal":
            there = [row for row in found if row is not None]
            self.kinds.add([id for id, _ in there], [kind for _, kind in there])
        new = [place for place, row in enumerate(found) if row is None]
        if new:
            if asked:
                self._keys[table].note([asked.index(place) for place in new], first)
            for place, row in zip(new, self._insert_small(table, first, [terms[place] for place in new]), strict=True):
                found[place] = row
        rows_found = [row for row in found if row is not None]  # all of them, by now
        ids = {terms[place]: rows_found[place] for place in {*asked, *new}}
        memory.remember(
            (term, row) for term, row in ids.items() if len(term if table == "resource" else term[0]) <= _REMEMBERED
        )
        return [row[0] for row in rows_found]

    def _number(self, terms: arrow.Table, table: str, condition: str) -> Ids:
        """Find ``terms`` in ``table``, and among what is staged; number and stage the others."""
        ids = np.full(len(terms), -1, np.int64)
        if not len(terms):
            return ids
        first, before = self._upcoming(table), self._stored[table]
        self.insertions.run(table)
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

            if before > _BASES[table]:
                with self._keys[table].narrowed(source, given, len(terms), before) as place:
                    found = look(*place, "known.id, known.kind" if table == "literal" else "known.id")
                if table == "literal":
                    self.kinds.add(found["id"], found["kind"])
            if first > before:
                look(f"temp._graphdb_new_{table}", {}, "known.id")
        new = np.flatnonzero(ids < 0)
        if not len(new):
            return ids
        ids[new] = np.arange(first, first + len(new))
        self._next[table] = first + len(new)
        fresh = terms if len(new) == len(terms) else terms.take(numbers(new))
        fresh = fresh.with_columns({0: numbers(ids[new])}).rename_columns(["id", *fresh.column_names[1:]])
        self._stage(table, fresh, create=first == before)
        return ids

    def _insert(self, table: str, rows: str, parameters: Mapping[str, Any] | None = None) -> None:
        """Write rows, which have the next ids."""
        [(added,)] = execute(self._connection, f"INSERT INTO _graphdb.{table} {rows}", parameters).fetchall()
        self._next[table] += int(added)
        if table == "literal":
            self.kinds.expect(self._stored[table], self._next[table])
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
