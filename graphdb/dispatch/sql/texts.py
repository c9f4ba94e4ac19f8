"""SQL texts read into statements, with the pattern queries in them; a text that comes again is not read again.

Reading asks DuckDB's parser twice and its tokenizer several times, which takes longer than small statements do.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from graphdb.common.duckdb.connection import Connection
from graphdb.common.duckdb.errors import in_text
from graphdb.common.duckdb.identifiers import OURS
from graphdb.common.errors import ExecutionError
from graphdb.dispatch.arguments import parameters_named
from graphdb.dispatch.hints.other_databases import with_hint
from graphdb.dispatch.sql.pushdown import Tree, parsed
from graphdb.relational.session.embedded import CypherCall, cypher_calls
from graphdb.relational.session.graph_tables import with_cypher_calls

if TYPE_CHECKING:
    import duckdb

_TEXTS = 64
_LONGEST = 10_000
"""How many texts are cached, and how long these are at most, in characters."""


class SqlStatement(NamedTuple):
    """One statement of a text."""

    text: str
    kind: str
    """DuckDB's name of its kind; none for those that its Python client does not know."""
    parameters: frozenset[str]
    """The names of the parameters that DuckDB finds in it; numbers for those without."""
    calls: Mapping[str, CypherCall]
    """Its pattern queries, by the views that stand for them in ``sql``: the same for each run of the text."""
    sql: str
    tree: Tree | None
    """DuckDB's tree of a query that has pattern queries in it."""

    @property
    def embedded(self) -> frozenset[str]:
        """The parameters of its pattern queries that their calls do not pass."""
        return frozenset().union(*(parameters_named(call.text) for call in self.calls.values()))


class Texts:
    """Reads SQL by the parser of ``connection``."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._read: OrderedDict[str, tuple[SqlStatement, ...]] = OrderedDict()

    def statements(self, text: str) -> tuple[SqlStatement, ...]:
        """Return the statements of a text.

        Raises
        ------
        GraphDBError
            DuckDB does not read it, or a pattern query in it is not written as one.
        """
        found = self._read.get(text)
        if found is not None:
            self._read.move_to_end(text)
            return found
        found = self._statements(text)
        if len(text) <= _LONGEST:
            self._read[text] = found
            if len(self._read) > _TEXTS:
                self._read.popitem(last=False)
        return found

    def _statements(self, text: str) -> tuple[SqlStatement, ...]:
        text = with_cypher_calls(text)
        text.encode()  # the error of a lone surrogate says where it is, DuckDB's does not
        try:
            with self._connection.guard(ours=False) as raw:
                found = [
                    (one.query, _kind(one), frozenset(one.named_parameters)) for one in raw.extract_statements(text)
                ]
        except ExecutionError as error:
            raise in_text(with_hint(error, text), text) from None
        statements: list[SqlStatement] = []
        views = 0
        for own, kind, parameters in found:
            calls = {f"{OURS}cypher{views + i}": call for i, call in enumerate(cypher_calls(own))}
            views += len(calls)
            sql = own
            for view, call in reversed(calls.items()):
                sql = sql[: call.start] + view + sql[call.end :]
            tree = parsed(self._connection, sql) if calls else None
            statements.append(SqlStatement(own, kind, parameters, calls, sql, tree))
        return tuple(statements)


def _kind(statement: duckdb.Statement) -> str:
    """Return DuckDB's name of a kind of statements; none for those that its Python client does not know."""
    try:
        return statement.type.name
    except ValueError:
        return ""
