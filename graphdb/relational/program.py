"""Programs: what a query of several clauses is lowered to, which :mod:`graphdb.query` runs step by step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphdb.computed import Computing
from graphdb.pattern.bind import BoundPattern
from graphdb.pattern.graph import PatternGraph, Wanted
from graphdb.plan.physical import PhysicalPlan
from graphdb.shape import Shaped

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that are kept as a temporary table: matches start from them, and are joined with them."""

    table: str
    sql: str
    parameters: Mapping[str, object]

    @property
    def reads(self) -> list[str]:
        """The SQL that makes them."""
        return [self.sql]


@dataclass(frozen=True, slots=True)
class Given:
    """What the rows say of a pattern vertex: it is one of the ids that ``sql`` yields."""

    vertex: int
    sql: str
    parameters: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Step:
    """One match: of a pattern whose vertices the rows may give, for SQL that names its bindings ``view``."""

    words: str
    """How its bindings are joined with the rows, for EXPLAIN."""
    view: str
    bound: BoundPattern
    needs: Wanted
    pattern: PatternGraph
    """With the candidates that do not depend on the rows."""
    given: tuple[Given, ...] = ()
    plan: PhysicalPlan | None = None
    """Made once where it depends on no rows."""

    @property
    def reads(self) -> list[str]:
        """The SQL that reads what the rows say."""
        return [given.sql for given in self.given]


@dataclass(frozen=True, slots=True)
class Program:
    """A query that is ready to run: its matches and the rows that they start from, in order, and the SQL after them."""

    steps: tuple[Step | Rows, ...]
    shaped: Shaped
    lists: Mapping[str, pa.Table]
    """Long lists among the parameters, by the views that SQL reads them from (column ``item``)."""
    reusable: bool = True
    computing: Computing | None = None
    """Who computes what its SQL cannot express."""

    @property
    def matches(self) -> list[Step]:
        """Its matches alone."""
        return [step for step in self.steps if isinstance(step, Step)]

    @property
    def own_bytes(self) -> int:
        """What its plans, and the candidates that later ones start from, hold of memory."""
        plans = sum(step.plan.own_bytes for step in self.matches if step.plan is not None)
        later = [vertex.candidates for step in self.matches if step.plan is None for vertex in step.pattern.vertices]
        return plans + sum(ids.nbytes for ids in later if ids is not None)

    def last_use(self, name: str) -> int:
        """Return the number of the last step that reads a table or view; past the last if the result does."""
        if f"{name} " in self.shaped.sql:
            return len(self.steps)
        return max((i for i, step in enumerate(self.steps) if any(f"{name} " in sql for sql in step.reads)), default=0)
