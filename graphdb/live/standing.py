"""A continuous query in memory: what was made of it over the state of now, and what its last batches took."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from graphdb.common.values.types import Base, Type
from graphdb.grammar import syntax as ast
from graphdb.grammar.parser import parse
from graphdb.grammar.walk import walk
from graphdb.live.engine import Query
from graphdb.live.matches.delta import cut
from graphdb.live.matches.far import is_unbounded
from graphdb.live.matches.following import Following
from graphdb.live.matches.outside import reads_outside
from graphdb.live.matches.pace import Pace
from graphdb.live.matches.reaching import Reaching
from graphdb.live.matches.required import INEXACT, NotIncremental, Reached, bindings, one_pattern, summed

if TYPE_CHECKING:
    from graphdb.live.aggregates.grouping import Accumulators, Grouping
    from graphdb.live.at_once import AtOnce
    from graphdb.live.definitions import Definition
    from graphdb.live.engine import Engine
    from graphdb.live.forms.linear import Linear
    from graphdb.live.forms.window import Window
    from graphdb.relational.snapshot import Snapshot

_NOTED = 100
"""Batches of which it is noted what they took."""


UNCONCERNED = "not compared: nothing that it reads changed"
"""The strategy for a batch that changes no triple of a label which a query names."""


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


class Branch:
    """A linear query whose rows, with those of others, the answer is made of.

    Attributes
    ----------
    key
        What it is known by: the number of the continuous query, and its own.
    query
        It as what prepares queries takes it.
    ways
        In which ways delta plans may maintain it: of these the first that does.
    way
        The one that does, as it was bound last.
    columns
        What its columns were then: :func:`.grouping.signature_of`.

    Raises
    ------
    NotIncremental
        Delta plans never maintain it, whatever the data.
    """

    def __init__(self, key: tuple[int, int], rows_of: Linear, text: str) -> None:
        self.key, self.query = key, rows_of.query
        self.ways: list[Way] = []
        self._summed: tuple[Query, ...] = ()
        if reads_outside(self.query):
            raise NotIncremental("it may read of a resource that its pattern does not bind")
        if (pattern := one_pattern(rows_of)) is not None:
            self.query = pattern
            self.ways.append(Way((Following(pattern, pattern, text),), False))
        try:
            parts = [
                Reaching(part, self.query, text) if isinstance(part, Reached) else Following(part, self.query, text)
                for part in bindings(rows_of)
            ]
            self.ways.append(Way(tuple(parts), True))
            self._summed = tuple(each.query for each in summed(rows_of))
        except NotIncremental:
            if not self.ways:
                raise
        self.way = self.ways[0]
        self.at_once: AtOnce | None = None
        """What writes the rows of a few matches, over what was prepared of it last."""
        self.columns: list[object] = []
        self.types: dict[str, Type | None] = {}
        """Their types; None: several."""

    def refuse_inexact(self, engine: Engine, text: str, snapshot: Snapshot) -> None:
        """Raise NotIncremental where rows that are asked for anew have sums of what are no integers, over one state."""
        for query in self._summed:
            with engine.prepared(query, text, snapshot) as (_, prepared):
                if any(column.many or column.type.base is not Base.INTEGER for column in prepared.projection.columns):
                    raise NotIncremental(INEXACT)

    def forget(self) -> None:
        """Drop what was made of the graph."""
        self.at_once = None
        for way in self.ways:
            way.forget()


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
        self.branches: tuple[Branch, ...] = ()
        """Whose rows are made of matches; none where delta plans never maintain it."""
        self.grouping: Grouping | None = None
        """What is made of these rows, where it aggregates."""
        self.window: Window | None = None
        """Which of the rows its answer has, where LIMIT takes some."""
        self.never: str | None = None
        """Why delta plans never maintain it, whatever the data."""
        try:
            rows_of, self.grouping, self.window = cut(self.query)
            self.branches = tuple(
                Branch((definition.number, i), each, definition.text) for i, each in enumerate(rows_of)
            )
            matches = (clause for each in rows_of for clause in each.clauses if isinstance(clause, ast.MatchClause))
            if self.grouping is not None and not self.grouping.counts and any(map(is_unbounded, matches)):
                raise NotIncremental("it asks whether there are paths of any length, not how many")
        except NotIncremental as error:
            self.never = str(error)
        self.accumulators: Accumulators | None = None
        """How its groups follow the rows, as they are typed by now."""
        self.grouped = False
        """Whether the table of its groups is known to be there."""
        self.kept: str | None = None
        """The comment of the table of its first rows, where it is known to be there."""
        self.why: str | None = None
        self.labels: frozenset[int] | None = None
        """Where its answers are compared: labels of the triples that it reads, after the latest batch; None for any."""
        self.pace = Pace()
        """What batches take by delta plans, and its answer anew."""
        self.took: deque[Took] = deque(maxlen=_NOTED)
        self.stored_rows: int | None = None
        """Rows of changes that are stored."""
        self.looked = time.monotonic()

    @property
    def parts(self) -> tuple[Following, ...]:
        """The patterns whose matches are followed, of all branches."""
        return tuple(part for branch in self.branches for part in branch.way.parts)

    @property
    def bound(self) -> list[object]:
        """How its branches were bound last.

        Where UNION or UNWIND puts values together, the types of all of them say how SQL has each.
        """
        putting = len(self.branches) > 1 or any(isinstance(part, ast.UnwindClause) for part in walk(self.query))
        return [(id(branch.way), branch.columns if putting else None) for branch in self.branches]

    @property
    def followed(self) -> bool:
        """Whether delta plans maintain it, as it was bound last."""
        bound = self.why is None and all(part.delta is not None for part in self.parts)
        return bound and (self.grouping is None or self.accumulators is not None)

    @property
    def plain(self) -> bool:
        """Whether its answer is all rows of one linear query."""
        return len(self.branches) == 1 and self.accumulators is None and self.window is None

    @property
    def signature(self) -> str:
        """What types its rows have, as they were bound last."""
        return repr(self.branches[0].columns)

    def forget(self) -> None:
        """Drop what was made of the graph."""
        for branch in self.branches:  # first: a query whose branches are not bound is bound again
            branch.forget()
        self.accumulators, self.grouped, self.labels, self.kept = None, False, None, None

    def lose_matchers(self, first: int = 0) -> None:
        """Drop the matchers of parts, from some part on, that did not follow a batch: they would be behind."""
        for part in self.parts[first:]:
            part.matcher = None
