"""Versions of the data: a result shows what its query saw, whatever is written afterwards.

A result has ids, and what they stand for is looked up when somebody asks for its rows.  Until something is written,
that is the database as it is.  Before the first write, a version that some result still reads gets a connection of its
own with a transaction that has begun: DuckDB's multi-version concurrency control keeps what it sees.  So a result costs
a write a fraction of a millisecond, whatever its size, and nothing is copied; the transaction ends with the last
result.

What a transaction of the user's has written no other connection sees, and any error may end it.  Results of such a
transaction have their values read before the next statement.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol
from weakref import ref

from graphdb.common import arrow
from graphdb.common.duckdb.connection import Connection
from graphdb.common.duckdb.identifiers import quoted
from graphdb.common.errors import ExecutionError, GraphDBError, StorageError
from graphdb.relational.session.authorizer import authorize_name

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from graphdb.common.values.types import Column, Type
    from graphdb.relational.elements.source import Source
    from graphdb.relational.snapshot import Snapshot
    from graphdb.results.result import Result

_CLEANED = 64
"""Results that a version notes before it forgets those that are no more."""

MOST = 16
"""Former versions that have a connection at a time; before another one gets one, the oldest is read to the end."""


LARGE = 10_000
"""Rows of a result up to which it is read to the end for the space that its transaction keeps."""


class Owner(Protocol):
    """The open database."""

    connection: Connection
    versions: Versions

    def hold(self) -> AbstractContextManager[Any]:
        """Return the lock to hold while the database is read; raise if it is closed."""

    def diagnosed(self) -> AbstractContextManager[Any]:
        """Tell what is damaged, where something fails because the file is."""

    def at_home(self) -> AbstractContextManager[Any]:
        """Work where our tables are."""

    def snapshot(self) -> Snapshot:
        """Names and data as they are now."""


class Version:
    """One state of the data, as its results read it; see :class:`graphdb.results.result.Home`."""

    __slots__ = ("__weakref__", "_former", "_lost", "_most", "_owner", "_ready", "_results", "_zone")

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._results: list[ref[Result]] = []
        self._most = _CLEANED
        self._former: Source | None = None
        """Where it is read once the data have changed."""
        self._zone, self._ready = "", False
        self._lost = False

    def add(self, result: Result) -> None:
        """Note a result that reads this version."""
        self._results.append(ref(result))
        if len(self._results) > self._most:
            self._results = [each for each in self._results if each() is not None]
            self._most = 2 * len(self._results) + _CLEANED

    def _living(self) -> list[Result]:
        return [result for each in self._results if (result := each()) is not None]

    @property
    def wanted(self) -> bool:
        """Whether a result still has something to look up."""
        return any(result.reads for result in self._living())

    def leave(self) -> None:
        """Stay as it is: the data are about to change."""
        from graphdb.relational.elements.source import Source

        snapshot, connection = self._owner.snapshot(), self._owner.connection
        ((self._zone,),) = connection.rows("SELECT system.main.current_setting('TimeZone')")
        self._former = Source.of(snapshot).through(connection.frozen(), snapshot)

    def fetch(self, most: int | None = None) -> None:
        """Have all results (of at most so many rows) look up everything now.

        One that cannot, because its transaction has failed, says so when it is read.
        """
        try:
            for result in self._living():
                if most is None or len(result) <= most:
                    result.fetch()
        except GraphDBError:
            self._lost = True

    def close(self) -> None:
        """End the connection, if it has one of its own."""
        if self._former is not None:
            self._former.connection.close()

    # --- the home of results

    @contextmanager
    def reading(self) -> Iterator[Source]:
        """Look up several things, between which nothing is written."""
        from graphdb.relational.elements.source import Source

        with self._owner.diagnosed(), self._owner.hold():
            if self._lost:
                raise StorageError(
                    "the rows cannot be read any more: their transaction failed, or reading them was interrupted",
                    hint="run the query again",
                )
            if self._former is not None:
                try:
                    self._prepare(self._former)
                    yield self._former
                except BaseException:  # it may have aborted the transaction, which cannot begin there again
                    self._lost = self._former.connection.transactions.is_aborted()
                    raise
                return
            with self._owner.at_home():
                yield Source.of(self._owner.snapshot())

    def _prepare(self, former: Source) -> None:
        """Give a connection of its own what its SQL names."""
        from graphdb.sql.from_clause import NAMES_VIEW
        from graphdb.storage.arrays.arrow import names_table

        if self._ready:
            return
        with former.connection.guard() as raw:
            raw.execute("SET TimeZone = '" + self._zone.replace("'", "''") + "'")
            raw.register(NAMES_VIEW, names_table(former.names.spellings))
        self._ready = True

    def present(self, table: arrow.Table, columns: tuple[Column, ...]) -> arrow.Table:
        """Return a result's table as a user of SQL sees it."""
        from graphdb.relational.elements import tables

        with self.reading() as source:
            return tables.present(source, table, columns)

    def structs(self, type: Type, column: arrow.Array) -> Callable[[arrow.Array], arrow.Array]:
        """Return what makes pieces of a column with vertices, edges or paths columns of structs."""
        from graphdb.relational.elements import structs

        with self.reading() as source:
            convert = structs.converter(source, type, column)

        def converted(piece: arrow.Array) -> arrow.Array:
            with self.reading() as source:
                return convert(source, piece)

        return converted

    def in_one_type(self, table: arrow.Table) -> arrow.Table:
        """Return a table whose columns have no unions: numbers of one type, or texts."""
        from graphdb.relational.session.without_unions import without_unions

        with self.reading() as source:
            return without_unions(source.connection, table)

    def store(self, table: arrow.Table, name: str, replace: bool) -> int:
        """Keep a table in the database under ``name``; return its number of rows."""
        with self._owner.hold():
            self._owner.versions.before_statement()
            connection = self._owner.connection
            view = connection.temporary()
            parts = name.split(".")
            authorize_name(parts)
            target = ".".join(map(quoted, parts))
            with connection.view(view, table):
                try:
                    connection.rows(f"CREATE {'OR REPLACE ' if replace else ''}TABLE {target} AS FROM {view}")
                except ExecutionError as error:
                    if "already exists" in error.message:
                        error.hint = "into(name, replace=True) puts this one in its place"
                    raise
        return int(table.num_rows)

    def nodes(self, ids: NDArray[np.int64]) -> Callable[[], list[Any]]:
        """Return what makes vertices with labels and properties, and literals' values, of sorted ids."""
        from graphdb.relational.elements import fetch

        with self.reading() as source:
            return fetch.nodes(source, ids)

    def terms(self, ids: NDArray[np.int64]) -> Callable[[], list[Any]]:
        """Return what makes the IRIs of vertices, and literals' values, of sorted ids."""
        from graphdb.relational.elements import fetch

        with self.reading() as source:
            return fetch.terms(source, ids)

    def described(self, labels: Iterable[int]) -> bool:
        """Whether edges of some labels may have properties."""
        with self.reading() as source:
            return not source.described.isdisjoint(labels)

    def facts(self, edges: Sequence[NDArray[np.int64]]) -> list[dict[str, Any]]:
        """Return the properties of edges: columns of label, start, end and ordinal, int64."""
        from graphdb.relational.elements import fetch

        with self.reading() as source:
            return fetch.facts(source, edges)

    def written(self, labels: Iterable[int]) -> list[str]:
        """Return edge labels as a user would write them."""
        with self.reading() as source:
            return list(map(source.names.edge_name, labels))


class Versions:
    """The present version, and former ones that results still read: the results keep them, and the database."""

    def __init__(self, owner: Owner) -> None:
        self._owner = ref(owner)
        self._connection = owner.connection
        self._current: ref[Version] | None = None
        self._former: deque[ref[Version]] = deque()
        self._written = False
        """Whether the transaction that is open, if one is, may have written."""

    def current(self) -> Version:
        """The version that statements see now."""
        found = None if self._current is None else self._current()
        if found is None:
            owner = self._owner()
            assert owner is not None  # who asks holds it
            found = Version(owner)
            self._current = ref(found)
        return found

    def before_statement(self) -> None:
        """Read what results of a transaction that has written want: the statement to come may end it."""
        if self._written and (wanted := self._wanted()) is not None:
            if self._connection.transactions.by_user:
                wanted.fetch()
            else:
                self._written = False

    def after_failure(self) -> None:
        """Let results of a transaction that has failed, and had written nothing, be read outside of it."""
        if (wanted := self._wanted()) is not None and self._connection.transactions.by_user:
            with suppress(GraphDBError):
                self._leave(wanted)

    def before_write(self) -> None:
        """Let the results there are see the data as they are now, which are about to change."""
        self.before_statement()
        if (wanted := self._wanted()) is not None:
            self._leave(wanted)
        self._current = None
        self._written = True

    def read_out(self, most: int | None = None) -> None:
        """Have results, of at most so many rows, look up everything now, so that they need no transaction."""
        if (wanted := self._wanted()) is not None:
            wanted.fetch(most)
        living = deque[ref[Version]]()
        for former in self._former:
            if (version := former()) is not None:
                version.fetch(most)
                if version.wanted:
                    living.append(former)
                else:
                    version.close()
        self._former = living

    def close(self) -> None:
        """End the connections of former versions."""
        for former in self._former:
            if (version := former()) is not None:
                version.close()
        self._former.clear()

    def _wanted(self) -> Version | None:
        """The present version, if some result still reads it."""
        found = None if self._current is None else self._current()
        return found if found is not None and found.wanted else None

    def _leave(self, version: Version) -> None:
        self._former = deque(former for former in self._former if former() is not None)
        if len(self._former) >= MOST:
            self._read_out(self._former.popleft())
        version.leave()
        self._former.append(ref(version))
        self._current = None

    def _read_out(self, former: ref[Version]) -> None:
        if (version := former()) is not None:
            version.fetch()
            version.close()
