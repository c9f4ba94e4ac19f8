"""Which texts change the database, so that a caller who wants a transaction around changes begins one before them."""

from __future__ import annotations

from graphdb.grammar import syntax as ast
from graphdb.grammar.parser import parse_script
from graphdb.relational.session.embedded import first_word

_CHANGING = frozenset(
    ["ALTER", "COMMENT", "COPY", "CREATE", "DELETE", "DROP", "IMPORT", "INSERT", "MERGE", "TRUNCATE", "UPDATE", "WITH"]
)
"""First words of SQL that changes something in a transaction; ``WITH`` may."""


def changes_within_a_transaction(text: str) -> bool:
    """Whether a statement of a text changes something in the transaction that is open.

    ``LOAD`` and ``VACUUM`` do not: each is a transaction of its own.

    Raises
    ------
    ParseError
        The text is no statement.
    """
    return any(map(_changes, parse_script(text)))


def changes_the_graph(text: str) -> bool:
    """Whether a statement of a text changes the graph, in a transaction or in one of its own.

    Raises
    ------
    ParseError
        The text is no statement.
    """
    kinds = (ast.Prefix, ast.Data, ast.Load)
    return any(
        isinstance(each, kinds) or (isinstance(each, ast.Composite) and each.writes) for each in parse_script(text)
    )


def ends_with_sql_that_changes(text: str) -> bool:
    """Whether a text's last statement is SQL of which DuckDB says how many rows it changed."""
    last = parse_script(text)[-1]
    return isinstance(last, ast.Sql) and first_word(last.text) in _CHANGING


def _changes(statement: ast.Statement) -> bool:
    match statement:
        case ast.Composite():
            return statement.writes
        case ast.CreateTable() | ast.CreateView() | ast.Prefix() | ast.Data():
            return True
        case ast.Sql():
            return first_word(statement.text) in _CHANGING
    return False
