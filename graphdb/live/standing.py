"""A continuous query in memory: what was made of it over the state of now, and what its last batches took."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from graphdb.grammar import syntax as ast
from graphdb.grammar.parser import parse
from graphdb.live.engine import Query
from graphdb.live.matches.delta import cut
from graphdb.live.matches.following import Following
from graphdb.live.matches.outside import reads_outside
from graphdb.live.matches.pace import Pace
from graphdb.live.matches.required import NotIncremental, bindings, is_one_pattern

if TYPE_CHECKING:
    from graphdb.live.aggregates.grouping import Accumulators, Grouping
    from graphdb.live.definitions import Definition

_NOTED = 100
"""Batches of which it is noted what they took."""


class Took(NamedTuple):
    """What a batch was for one query."""

    batch: int
    """Its number; 0 where it changed nothing of the answer."""
    updates: int
    added: int
    removed: int
    strategy: str
    seconds: float


class Way(NamedTuple):
    """How delta plans may maintain a query."""

    parts: tuple[Following, ...]
    """The patterns whose matches are followed: one, or several that say which rows are asked for anew."""
    asked_anew: bool
    """Whether rows are asked for anew instead of made of the matches that come and go."""

    def forget(self) -> None:
        """Drop what was made of the graph."""
        for part in self.parts:
            part.forget()


NO_WAY = Way((), False)


def ways(rows_of: ast.Query, text: str) -> list[Way]:
    """Return how delta plans may maintain a query whose rows are made of matches, the quickest first.

    Raises
    ------
    NotIncremental
        They never do, whatever the data.
    """
    if reads_outside(rows_of):
        raise NotIncremental("it may read of a resource that its pattern does not bind")
    found = [Way((Following(rows_of, rows_of, text),), False)] if is_one_pattern(rows_of) else []
    try:
        found.append(Way(tuple(Following(part, rows_of, text) for part in bindings(rows_of)), True))
    except NotIncremental:
        if not found:
            raise
    return found


class Standing:
    """A continuous query in memory.

    Attributes
    ----------
    why
        Why delta plans do not maintain it; None where they do.
    """

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self.query: Query = parse(definition.text)  # type: ignore[assignment]  # it was one when it was created
        self.rows_of: ast.Query | None = None
        """The query whose rows are made of matches; None where delta plans never maintain it."""
        self.grouping: Grouping | None = None
        """What is made of these rows, where it aggregates."""
        self.never: str | None = None
        """Why delta plans never maintain it, whatever the data."""
        self.ways: list[Way] = []
        """In which ways delta plans may maintain it: of these the first that does."""
        self.way = NO_WAY
        """The one that does, as it was bound last."""
        try:
            self.rows_of, self.grouping = cut(self.query)
            self.ways = ways(self.rows_of, definition.text)
            self.way = self.ways[0]
        except NotIncremental as error:
            self.never = str(error)
        self.accumulators: Accumulators | None = None
        """How its groups follow the rows, as they are typed by now."""
        self.grouped = False
        """Whether the table of its groups is known to be there."""
        self.why: str | None = None
        self.pace = Pace()
        """What batches take by delta plans, and its answer anew."""
        self.took: deque[Took] = deque(maxlen=_NOTED)
        self.stored_rows: int | None = None
        """Rows of changes that are stored."""
        self.looked = time.monotonic()

    @property
    def parts(self) -> tuple[Following, ...]:
        """The patterns whose matches are followed."""
        return self.way.parts

    def forget(self) -> None:
        """Drop what was made of the graph."""
        self.accumulators, self.grouped = None, False
        for way in self.ways:
            way.forget()

    def lose_matchers(self, first: int = 0) -> None:
        """Drop the matchers of parts, from some part on, that did not follow a batch: they would be behind."""
        for part in self.parts[first:]:
            part.matcher = None
