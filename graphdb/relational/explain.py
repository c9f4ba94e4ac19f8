"""EXPLAIN and PROFILE: the plan of a query in words, before and after it ran."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from graphdb.common import arrow
from graphdb.common.arrow import strings
from graphdb.plan.explain import aligned, explain_text, verdict
from graphdb.relational.edges.parallel_edges import resolutions
from graphdb.relational.paths.base import FIXED, FOUND, PreparedPaths
from graphdb.relational.profile import LATE, PLANNING, RESULT, planning_of
from graphdb.relational.program import Applied, Called, Computed, Joined, Program, Rows, Searched, Step
from graphdb.relational.projection.relation import BINDINGS
from graphdb.storage.graph.derived.closure import closure_of, named

if TYPE_CHECKING:
    from graphdb.pattern.bind import BoundPattern
    from graphdb.pattern.names import Names
    from graphdb.plan.executor import Control
    from graphdb.plan.physical import PhysicalPlan
    from graphdb.relational.profile import Measured, Operator
    from graphdb.relational.program import AnyStep
    from graphdb.relational.projection.arrays import Beside
    from graphdb.relational.projection.sql import Projection
    from graphdb.relational.query import Prepared, QueryRun

_DETAIL = 60
"""Characters of what one of DuckDB's operators works by that are shown, at most."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Where the time of a query went that ran for PROFILE."""

    prepared: Prepared | Program
    run: QueryRun
    planning: float
    """Seconds until it was ready to run."""
    total: float
    """Seconds in all."""
    rows: int
    """Rows of the result."""
    moved: str
    """What went to devices meanwhile; empty where there are none."""

    def lines(self) -> Iterator[str]:
        """The times of its parts, and what moved."""
        steps = {} if self.run.profile is None else self.run.profile.steps
        planning = self.planning + sum(each.seconds for name, each in steps.items() if name.startswith(PLANNING))
        matching = self._matching(steps)
        sql = sum(each.seconds for each in steps.values() if each.sql)
        rest = max(self.total - planning - matching - sql, 0.0)
        parts = (planning, "planning and candidates"), (matching, "match"), (sql, "SQL"), (rest, "rows and columns")
        times = ", ".join(f"{seconds * 1000:,.1f} {words}" for seconds, words in parts)
        yield f"{_ms(self.total)} in all: {times}; {self.rows:,} rows"
        if self.moved:
            yield self.moved

    def _matching(self, steps: Mapping[str, Measured]) -> float:
        if isinstance(self.prepared, Program):
            return sum(control.seconds for _, _, control in self.run.controls if control is not None)
        if isinstance(self.prepared, PreparedPaths):
            return sum(each.seconds for name, each in steps.items() if name.startswith((FIXED, FOUND)))
        return 0.0 if self.run.control is None else self.run.control.seconds


@dataclass(frozen=True, slots=True)
class Explanation:
    """The lines of an explanation."""

    lines: tuple[str, ...]

    @classmethod
    def of_reading(
        cls, prepared: Prepared | Program, names: Names, describe: Callable[[PhysicalPlan], str]
    ) -> Explanation:
        """Explain a query that has not run."""
        if isinstance(prepared, Program):
            return cls.of_program(prepared, names, describe)
        return cls.planned(prepared, names, "" if prepared.plan is None else describe(prepared.plan))

    @classmethod
    def planned(cls, prepared: Prepared, names: Names, executor: str) -> Explanation:
        """Explain a query that has not run."""
        return cls((*_match(prepared, names, executor), *_after(prepared, names)))

    @classmethod
    def of_run(cls, prepared: Prepared | Program, names: Names, run: QueryRun) -> Explanation:
        """Explain a query that ran, measured by the profile of ``run`` where that has one."""
        describe, measured = run.executor.describe, {} if run.profile is None else run.profile.steps
        if isinstance(prepared, Program):
            return cls.of_program(prepared, names, describe, run.controls, measured)
        executor = "" if prepared.plan is None else describe(prepared.plan)
        bindings = measured.get(BINDINGS) if prepared.plan is not None else None
        return cls(
            (
                *_match(prepared, names, executor, run.control),
                *_paths_found(prepared, measured),
                *_rows(bindings, "bindings", "with the match"),
                *_after(prepared, names),
                *_result(measured),
            )
        )

    def followed_by(self, summary: Summary) -> Explanation:
        """Return it with where the time went at its end."""
        return Explanation((*self.lines, "", *summary.lines()))

    @classmethod
    def of_program(
        cls,
        program: Program,
        names: Names,
        describe: Callable[[PhysicalPlan], str],
        reported: Sequence[tuple[Step | Searched, PhysicalPlan | None, Control | None]] = (),
        measured: Mapping[str, Measured] = MappingProxyType({}),
    ) -> Explanation:
        """Explain a query of several matches; with what each ``reported``, and what was ``measured``, if it ran."""
        lines: list[str] = []
        controls = {step.view: (plan, control) for step, plan, control in reported}
        for step in program.steps:
            lines += _described(step, names, describe, *controls.get(step.view, (None, None)))
            if isinstance(step, Step) and step.view in measured:
                planning = measured.get(planning_of(step.view))
                how = "with the match" + ("" if planning is None else f", {planning.seconds * 1000:,.1f} to plan it")
                lines += _rows(measured[step.view], "bindings", how)
            else:
                lines += _rows(measured.get(step.view))
        return cls((*lines, *_projected(program.projection, names), *_computed(program), *_result(measured)))

    def to_table(self) -> arrow.Table:
        """Return the lines as the one column ``plan``."""
        return arrow.table({"plan": strings(tuple(map(_without_private_names, self.lines)))})

    def __str__(self) -> str:
        return "\n".join(map(_without_private_names, self.lines))


def _without_private_names(line: str) -> str:
    """Return a line in which tables and functions of ours are called what comes after our prefix."""
    return re.sub(r"(?:\btemp\.)?\b_graphdb(?:_[0-9a-f]{12})?[._](\d?)", lambda m: f"rows{m[1]}" if m[1] else "", line)


def _match(prepared: Prepared, names: Names, executor: str, control: Control | None = None) -> Iterator[str]:
    if isinstance(prepared, PreparedPaths):
        yield from prepared.describe(_labels(names))
    if prepared.plan is not None:
        yield from _plan("match", prepared.plan, prepared.bound, names, executor, control)


def _described(
    step: AnyStep,
    names: Names,
    describe: Callable[[PhysicalPlan], str],
    plan: PhysicalPlan | None,
    control: Control | None,
) -> Iterator[str]:
    """Explain one step of a program."""
    if isinstance(step, Rows):
        yield f"rows {step.view}: {step.sql}"
        yield from _beside(step.beside, names, "rows")
    elif isinstance(step, Joined):
        yield f"joined {step.view}: {step.sql('l.*')}"
        yield from _beside(step.beside, names, "rows")
    elif isinstance(step, Called):
        each = " for each of its arguments" if step.call.arguments else " once"
        yield f"call {step.view}: {step.call.procedure.signature}{each}: {step.groups}"
    elif isinstance(step, Applied):
        yield f"{step.words} as {step.view}, from {step.groups}"
    elif isinstance(step, Computed):
        yield f"computed {step.view}, for tables of rows: {step.rows}"
    elif isinstance(step, Searched):
        yield f"paths {step.view}" + (f" from {step.start}" if step.start else "")
        yield f"  {step.path.describe(_labels(names))}"
        if step.of_data is not None:
            what = "its edges depend" if step.cost is None else "its edges and their costs depend"
            yield f"  {what} on the data alone: found once, until it changes"
    else:
        yield from _step(step, plan or step.plan, names, describe, control)
        if step.found_by is not None:
            yield "  these edges depend on the data alone: found once, until it changes; their costs each time"


def _step(
    step: Step,
    plan: PhysicalPlan | None,
    names: Names,
    describe: Callable[[PhysicalPlan], str],
    control: Control | None,
) -> Iterator[str]:
    """Explain one match of several: its plan, once the rows that it starts from are there."""
    words = "match" if step.words == "match" else f"{step.words} with"
    if plan is not None:
        yield from _plan(f"{words} {step.view}", plan, step.bound, names, describe(plan), control)
        yield from _beside(step.beside, names)
        return
    given = dict.fromkeys(step.bound.vertices[given.vertex].name for given in step.given)
    yield f"{words} {step.view}, planned when the rows give {', '.join(given)}"
    yield from _closures(step.bound, names)


def _plan(
    words: str, plan: PhysicalPlan, bound: BoundPattern, names: Names, executor: str, control: Control | None
) -> Iterator[str]:
    memory = f"; {plan.worker_bytes:,} bytes of buffers per thread" if executor == "cpu" else ""
    yield f"{words} on {executor} ({', '.join(c.mode.value for c in bound.clauses)}{memory})"
    yield from ("  " + line for line in explain_text(plan, _relations(plan, names), control).splitlines())
    yield from ("  " + line for line in resolutions(bound, plan))
    yield from _closures(bound, names)


def _closures(bound: BoundPattern, names: Names) -> Iterator[str]:
    """Name the edges that stand for whole paths."""
    labels = [*(edge.labels for edge in bound.edges), *(test.labels for test in bound.edge_tests)]
    for number in dict.fromkeys(label for each in labels for label in each or ()):
        if closure_of(number) is not None:
            yield f"  {_labels(names)(number)} is reachability: at most one path of these edges joins two vertices"


def _labels(names: Names) -> Callable[[int], str]:
    """Return what writes edge labels."""

    def label(id: int) -> str:
        found = names.edge_labels.get(id)
        return names.written(found.iri) if found is not None else "<absent>"

    return named(label)


def _relations(plan: PhysicalPlan, names: Names) -> Callable[[int], str]:
    """Return what writes edge labels, and the subsets of their edges that a pattern's are matched among."""
    written = _labels(names)
    known = {each.number: f"{'|'.join(map(written, each.labels))} of {len(each):,} edges" for each in plan.subsets}
    return lambda number: known.get(number) or written(number)


def _after(prepared: Prepared, names: Names) -> Iterator[str]:
    if prepared.projection.grouped is not None:
        yield "then equal pairs are put together, where those of either vertex come one after the other"
    yield from _beside(prepared.beside, names)
    yield from _projected(prepared.projection, names)
    yield from _computed(prepared)


def _beside(columns: Sequence[Beside], names: Names, whose: str = "bindings") -> Iterator[str]:
    """Name the properties that are gathered for the bindings of a match, or for rows."""
    if columns:
        written = _labels(names)

        def gathered(one: Beside) -> str:
            if one.described is not None:
                return one.described.describe(one.column)
            if one.label is None:
                return f"whether {one.column} is {'|'.join(map(names.class_name, one.classes))}"
            return f"{written(one.label.id)} of {one.column}"

        yield f"  gathered for the {whose}: {', '.join(f'{one.name} = {gathered(one)}' for one in columns)}"


def _projected(projection: Projection, names: Names) -> Iterator[str]:
    """Show the SQL after the matches, and name the properties that are gathered for its rows."""
    yield "then SQL over the bindings"
    yield f"  {projection.sql if projection.late is None else projection.late.sql}"
    if projection.late is not None:
        written = _labels(names)
        gathered = (f"c{i} = {written(label.id)} of c{i}" for i, label in projection.late.properties.items())
        yield f"  gathered for the rows: {', '.join(gathered)}"


def _computed(prepared: Prepared | Program) -> Iterator[str]:
    """Name the expressions that SQL does not know."""
    for source in prepared.computing.sources() if prepared.computing is not None else ():
        yield f"  computed in Python, once for each distinct input: {source}"


# --- what was measured


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:,.1f} ms"


def _rows(measured: Measured | None, what: str = "", how: str = "") -> Iterator[str]:
    """Say how many rows a step made, their bytes, and how long it took; of SQL its operators, too."""
    if measured is None:
        return
    if measured.operators:
        yield from ("  " + line for line in aligned(_operators(measured.operators), 3))
    sizes = [] if measured.rows is None else [f"{measured.rows:,} rows"]
    sizes += [] if measured.nbytes is None else [f"{measured.nbytes:,} bytes"]
    took = " ".join(filter(None, [_ms(measured.seconds), how]))
    if measured.planning:
        took += f", of which DuckDB planned for {_ms(measured.planning)}"
    memory = [f"{size:,} bytes {words}" for words, size in measured.memory.items() if size]
    yield f"  {what or 'rows'}: {', '.join([*sizes, took])}{''.join(f'; {each}' for each in memory)}"


def _operators(operators: Sequence[Operator]) -> Iterator[list[str]]:
    """The rows of a table of DuckDB's operators."""
    yield ["step", "operator", "of", "estimated rows", "rows", "ms", "bytes", ""]
    for number, each in enumerate(operators, 1):
        estimate = each.rows if each.estimate is None else each.estimate
        yield [
            str(number),
            each.name,
            _shortened(_without_private_names(each.detail)),
            "" if each.estimate is None else f"{each.estimate:,}",
            f"{each.rows:,}",
            f"{each.seconds * 1000:,.1f}",
            f"{each.nbytes:,}",
            verdict(max(each.rows, 1) / max(estimate, 1)),
        ]


def _shortened(words: str) -> str:
    return words if len(words) <= _DETAIL else words[: _DETAIL - 1] + "…"


def _paths_found(prepared: Prepared, measured: Mapping[str, Measured]) -> Iterator[str]:
    """Say what the parts of a query of paths found."""
    if isinstance(prepared, PreparedPaths):
        for name, each in measured.items():
            if name.startswith((FIXED, FOUND)):
                yield from _rows(each, "paths" if name == FOUND else f"pattern {name.removeprefix(FIXED)}".strip())


def _result(measured: Mapping[str, Measured]) -> Iterator[str]:
    """Say what came after the matches and steps."""
    result = measured.get(RESULT)
    if result is not None and not result.sql:
        rows = "" if result.rows is None else f"{result.rows:,} rows, "
        yield f"  taken from columns in memory without SQL: {rows}{_ms(result.seconds)}"
    else:
        yield from _rows(result)
    if (late := measured.get(LATE)) is not None:
        yield f"  gathered in {_ms(late.seconds)}"
