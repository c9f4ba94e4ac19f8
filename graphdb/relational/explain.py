"""EXPLAIN and PROFILE: the plan of a query in words, before and after it ran."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphdb.common import arrow
from graphdb.common.arrow import strings
from graphdb.plan.explain import explain_text
from graphdb.relational.edges.parallel_edges import settled
from graphdb.relational.paths.base import PreparedPaths
from graphdb.relational.program import Applied, Called, Computed, Joined, Program, Rows, Searched
from graphdb.storage.graph.derived.closure import closure_of, named

if TYPE_CHECKING:
    from graphdb.pattern.bind import BoundPattern
    from graphdb.pattern.names import Names
    from graphdb.plan.executor import Control
    from graphdb.plan.physical import PhysicalPlan
    from graphdb.relational.program import Step
    from graphdb.relational.projection.arrays import Beside
    from graphdb.relational.projection.sql import Projection
    from graphdb.relational.query import Prepared


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
    def profiled(
        cls,
        prepared: Prepared,
        names: Names,
        executor: str,
        control: Control | None,
        seconds: tuple[float, float],
        rows: int,
    ) -> Explanation:
        """Explain a query that ran: ``seconds`` are those of planning and of everything."""
        planning, total = seconds
        match = control.seconds if control is not None else 0.0
        times = (
            f"{total * 1000:,.1f} ms in all: {planning * 1000:,.1f} planning and candidates, "
            f"{match * 1000:,.1f} match, {(total - planning - match) * 1000:,.1f} result; {rows:,} rows"
        )
        return cls((*_match(prepared, names, executor, control), *_after(prepared, names), "", times))

    @classmethod
    def of_program(
        cls,
        program: Program,
        names: Names,
        describe: Callable[[PhysicalPlan], str],
        ran: Sequence[tuple[Step | Searched, PhysicalPlan | None, Control | None]] = (),
        seconds: tuple[float, float] | None = None,
        rows: int = 0,
    ) -> Explanation:
        """Explain a query of several matches; with what each did, the seconds of planning and of all, if it ran."""
        lines: list[str] = []
        matching = 0.0
        controls = {step.view: (plan, control) for step, plan, control in ran}
        for step in program.steps:
            if isinstance(step, Rows):
                lines.append(f"rows {step.view}: {step.sql}")
                lines += _beside(step.beside, names, "rows")
                continue
            if isinstance(step, Joined):
                lines.append(f"joined {step.view}: {step.sql('l.*')}")
                lines += _beside(step.beside, names, "rows")
                continue
            if isinstance(step, Called):
                each = " for each of its arguments" if step.call.arguments else " once"
                lines.append(f"call {step.view}: {step.call.procedure.signature}{each}: {step.groups}")
                continue
            if isinstance(step, Applied):
                lines.append(f"{step.words} as {step.view}, from {step.groups}")
                continue
            if isinstance(step, Computed):
                lines.append(f"computed {step.view}, for tables of rows: {step.rows}")
                continue
            if isinstance(step, Searched):
                lines += [
                    f"paths {step.view}" + (f" from {step.start}" if step.start else ""),
                    f"  {step.path.describe(_labels(names))}",
                ]
                if step.of_data is not None:
                    lines.append("  its edges and their costs depend on the data alone: found once, until it changes")
                _, control = controls.get(step.view, (None, None))
                matching += control.seconds if control is not None else 0.0
                continue
            plan, control = controls.get(step.view, (step.plan, None))
            lines += _step(step, plan, names, describe, control)
            matching += control.seconds if control is not None else 0.0
        lines += [*_projected(program.projection, names), *_computed(program)]
        if seconds is not None:
            planning, total = seconds
            lines += [
                "",
                f"{total * 1000:,.1f} ms in all: {planning * 1000:,.1f} planning and candidates, "
                f"{matching * 1000:,.1f} match, {(total - planning - matching) * 1000:,.1f} result; {rows:,} rows",
            ]
        return cls(tuple(lines))

    def to_table(self) -> arrow.Table:
        """Return the lines as the one column ``plan``."""
        return arrow.table({"plan": strings(tuple(map(_without_private_names, self.lines)))})

    def __str__(self) -> str:
        return "\n".join(map(_without_private_names, self.lines))


def _without_private_names(line: str) -> str:
    """Return a line in which tables and functions of ours are called what comes after our prefix."""
    return re.sub(r"(?:\btemp\.)?\b_graphdb(?:_[0-9a-f]{12})?[._]", "", line)


def _match(prepared: Prepared, names: Names, executor: str, control: Control | None = None) -> Iterator[str]:
    if isinstance(prepared, PreparedPaths):
        yield from prepared.describe(_labels(names))
    if prepared.plan is not None:
        yield from _plan("match", prepared.plan, prepared.bound, names, executor, control)


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
    yield from ("  " + line for line in settled(bound, plan))
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
        gathered = (
            f"{one.name} = whether {one.column} is {'|'.join(map(names.class_name, one.classes))}"
            if one.label is None
            else f"{one.name} = {written(one.label.id)} of {one.column}"
            for one in columns
        )
        yield f"  gathered for the {whose}: {', '.join(gathered)}"


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
