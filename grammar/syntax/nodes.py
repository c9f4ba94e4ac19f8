"""The two families of nodes that may stand within each other: every expression and every clause is of one class.

A subquery is an expression that holds clauses, and clauses hold expressions.  With a base class for each, no module
of syntax imports one that imports it.
"""

from __future__ import annotations

from graphdb.grammar.syntax.names import Span


class Expression:
    """What has a value for each row."""

    __slots__ = ()

    @property
    def span(self) -> Span:
        """Where it stands in the text: a field of every node."""
        raise NotImplementedError


class ClauseNode:
    """A clause of a query."""

    __slots__ = ()

    @property
    def span(self) -> Span:
        """Where it stands in the text: a field of every node."""
        raise NotImplementedError
