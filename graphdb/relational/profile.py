"""What the steps of a query did besides their matches, measured while it runs for PROFILE: time, rows, bytes.

SQL is measured by DuckDB's own profiler, operator by operator.  It cannot be asked where the settings are locked
(``untrusted``): the statement's time and rows are there all the same.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from graphdb.common import arrow
from graphdb.common.duckdb.connection import Connection

T = TypeVar("T")

RESULT = "result"
LATE = "gathered for the result"
PLANNING = "planning of"
"""What is measured besides matches and steps, which go by the names of their views."""

_MEMORY = {
    "of DuckDB's buffers at most": ("system", "peak_buffer_memory"),
    "spilled": ("system", "total_bytes_spilled"),
    "read from files": ("io", "total_bytes_read"),
}
"""What DuckDB's profiler says of memory, and where."""
_WRAPPERS = frozenset({"RESULT_COLLECTOR", "QUERY", "EXPLAIN_ANALYZE"})


def planning_of(view: str) -> str:
    """Return the name by which planning a match is measured whose vertices its rows give."""
    return f"{PLANNING} {view}"


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator of DuckDB's plan, after it ran."""

    name: str
    detail: str
    """What it groups, joins or computes by."""
    estimate: int | None
    """Rows expected of it."""
    rows: int
    seconds: float
    """Of all threads together."""
    nbytes: int
    """Bytes of the rows that it handed on."""


@dataclass(slots=True)
class Measured:
    """What one step did."""

    seconds: float = 0.0
    rows: int | None = None
    nbytes: int | None = None
    """Bytes of these rows in memory; None where DuckDB has them."""
    sql: bool = False
    """Whether it is a statement of DuckDB's."""
    operators: tuple[Operator, ...] = ()
    """Its operators, those first that others read; none where DuckDB's profiler cannot be asked."""
    planning: float = 0.0
    """How much of its time DuckDB took to bind and plan it."""
    memory: Mapping[str, int] = field(default_factory=dict)
    """Bytes that DuckDB's buffers took at most, and that it read and spilled, by words for them."""


class Profile:
    """The measurements of one run, by the names of its steps."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.steps: dict[str, Measured] = {}
        self.asking = 0.0
        """Seconds that measuring took itself."""

    @contextmanager
    def asking_duckdb(self) -> Iterator[None]:
        """Let DuckDB profile its statements meanwhile, where its settings may be changed."""
        import duckdb

        with self._connection.guard() as raw:
            try:
                raw.execute("SET enable_profiling = 'no_output'")
            except duckdb.Error:
                yield
                return
        try:
            yield
        finally:
            with self._connection.guard() as raw:
                raw.execute("PRAGMA disable_profiling")

    @contextmanager
    def measuring(self, name: str) -> Iterator[None]:
        """Measure the time of one step, or of another piece of it."""
        found, asking, started = self.steps.setdefault(name, Measured()), self.asking, time.perf_counter()
        try:
            yield
        finally:
            found.seconds += time.perf_counter() - started - (self.asking - asking)

    @contextmanager
    def entering(self, name: str, scope: AbstractContextManager[T], tables: Mapping[str, arrow.Table]) -> Iterator[T]:
        """Enter a scope that makes the rows of a step, which yields them or puts them into ``tables``."""
        with ExitStack() as stack:
            with self.measuring(name):
                made = stack.enter_context(scope)
            table = tables.get(name, made)
            if isinstance(table, arrow.Table):
                self.measured(name, table.num_rows, table.nbytes)
            yield made

    def measured(self, name: str, rows: int, nbytes: int | None = None) -> None:
        """Note the rows of a step, and their bytes."""
        found = self.steps.setdefault(name, Measured())
        found.rows, found.nbytes = rows, nbytes

    @contextmanager
    def _apart(self) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            self.asking += time.perf_counter() - started

    def counted(self, view: str) -> None:
        """Count the rows of a step that only DuckDB has."""
        found = self.steps.setdefault(view, Measured())
        with self._apart():
            [(found.rows,)] = self._connection.rows(f"SELECT count(*) FROM {view}")

    def ran_sql(self, name: str, sql: str) -> None:
        """Note what DuckDB's profiler says of the statement that ran last, if that is the step's."""
        import duckdb

        found = self.steps.setdefault(name, Measured())
        found.sql = True
        with self._apart(), self._connection.guard() as raw:
            try:
                profile = json.loads(raw.get_profiling_information("json"))
            except (duckdb.Error, ValueError):
                return
        if sql.strip() not in profile.get("query", {}).get("sql", ""):  # it may be the rows of a table
            return
        found.operators = tuple(_operators(profile.get("operator", ())))
        parts = (profile.get(part, {}) for part in ("planner", "optimizer", "physical_planner"))
        found.planning = sum(float(part.get("total_time", 0.0)) for part in parts)
        found.memory = {words: int(profile.get(part, {}).get(name, 0)) for words, (part, name) in _MEMORY.items()}


def _operators(nodes: list[Mapping[str, Any]]) -> Iterator[Operator]:
    """Yield the operators of a tree, those that others read first."""
    for node in nodes:
        yield from _operators(node.get("children", ()))
        name = str(node.get("name", node.get("type", ""))).strip()
        if name in _WRAPPERS:
            continue
        extra = {key: value for key, value in node.get("extra_info", {}).items() if value and value != name}
        estimate = str(extra.pop("Estimated Cardinality", ""))
        yield Operator(
            " ".join(name.lower().split("_")),
            _detail(extra),
            int(estimate) if estimate.isdigit() else None,
            int(node.get("intermediate_rows", 0)),
            float(node.get("timing", 0.0)),
            int(node.get("intermediate_size_bytes", 0)),
        )


def _detail(extra: Mapping[str, Any]) -> str:
    """Return what an operator does its work by, in one line."""
    parts = [", ".join(map(str, value)) if isinstance(value, list) else str(value) for value in extra.values()]
    return " ".join("; ".join(parts).split())
