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
from graphdb.live.matches.pace import Pace
from graphdb.live.matches.required import NotIncremental, bindings

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
        self.parts: tuple[Following, ...] = ()
        """The patterns whose matches are followed: one, or several that say which rows are asked for anew."""
        self.asked_anew = False
        """Whether rows are asked for anew instead of made of the matches that come and go."""
        try:
            self.rows_of, self.grouping = cut(self.query)
            parts = bindings(self.rows_of)
            self.asked_anew = parts is not None
            own = (self.rows_of,) if parts is None else parts
            self.parts = tuple(Following(part, self.rows_of, definition.text) for part in own)
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

    def forget(self) -> None:
        """Drop what was made of the graph."""
        self.accumulators, self.grouped = None, False
        for part in self.parts:
            part.forget()

    def lose_matchers(self, first: int = 0) -> None:
        """Drop the matchers of parts, from some part on, that did not follow a batch: they would be behind."""
        for part in self.parts[first:]:
            part.matcher = None
