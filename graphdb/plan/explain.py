"""EXPLAIN and PROFILE: one row per step, with estimates and, after a run, the actual numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from graphdb.plan.checks import (
    Above,
    Check,
    EdgeCount,
    EdgesDiffer,
    HasEdge,
    HasSignature,
    IsCandidate,
    Neighbours,
    Never,
    NotBothEqual,
    Relation,
    Unequal,
)
from graphdb.plan.counting.tree import TreeCount
from graphdb.plan.physical import EdgeScan, EdgeStep, FunctionalScan, PhysicalPlan, Step, VertexStep

if TYPE_CHECKING:
    from graphdb.plan.counting.plan import CountingPlan, Term
    from graphdb.plan.counting.twins import TwinCount

MISJUDGED = 10.0
"""Estimates that are wrong by more than this factor are pointed at."""

LabelName = Callable[[int], str]


class Actuals(Protocol):
    """What a run of a plan reports (:class:`graphdb.plan.executor.Control`)."""

    @property
    def rows(self) -> NDArray[np.int64]:
        """Bindings that passed each step."""

    @property
    def work(self) -> NDArray[np.int64]:
        """Elements that each step went through."""

    @property
    def term_seconds(self) -> list[float]:
        """How long each term of a sum took."""

    @property
    def seconds(self) -> float:
        """How long the run took."""

    @property
    def threads(self) -> int:
        """How many workers it had."""


@dataclass(frozen=True, slots=True)
class ExplainedStep:
    """One step of a plan, in words."""

    number: int
    """From 1, in matching order."""
    binds: str
    """The pattern variable that the step binds."""
    how: str
    checks: str
    estimate: float
    """Rows expected after the step."""
    rows: int | None
    """Rows that there were (PROFILE)."""
    seconds: float | None = None
    """Its part of the run's time, by the elements that it went through (PROFILE): no clock is read within a search."""

    @property
    def off(self) -> float:
        """How many times more rows there were than expected; below 1: fewer.  1 where nobody counted."""
        return 1.0 if self.rows is None else max(self.rows, 1) / max(self.estimate, 1.0)

    @property
    def misjudged(self) -> bool:
        """Whether the estimate is wrong by more than :data:`MISJUDGED`."""
        return not 1 / MISJUDGED <= self.off <= MISJUDGED


def explain(plan: PhysicalPlan, name: LabelName = str, control: Actuals | None = None) -> list[ExplainedStep]:
    """Describe a plan step by step.

    Parameters
    ----------
    name
        Gives the name of an edge label from its id.
    control
        The control of a run of this plan: its rows are added.
    """
    rows = None if control is None or len(control.rows) != len(plan.steps) else control.rows
    shares = None
    if rows is not None and control is not None and len(control.work) == len(rows) and control.work.any():
        shares = control.work / control.work.sum() * control.seconds
    return [
        ExplainedStep(
            i + 1,
            _variable(plan, _slot(plan, step)),
            _how(plan, step, name) + _how_far(plan, i),
            ", ".join(_check(plan, check, name) for check in step.checks),
            step.estimate,
            None if rows is None else int(rows[i]),
            None if shares is None else float(shares[i]),
        )
        for i, step in enumerate(plan.steps)
    ]


def explain_text(plan: PhysicalPlan, name: LabelName = str, control: Actuals | None = None) -> str:
    """The same as an aligned table; after a run with its time, threads and buffers."""
    if plan.known:
        each = "" if plan.by_label is None else f" of each of {len(plan.by_label[0]):,} labels"
        return f"statistics say how many matches there are{each}: {plan.automorphisms:,}"
    if plan.scan is not None:
        return _scan_text(plan, plan.scan, control)
    if plan.functional is not None:
        return _functional_text(plan.functional, name, control)
    if plan.twins is not None:
        return _twins_text(plan, plan.twins, control)
    if (counting := plan.weighed or plan.counting) is not None:
        return _counting_text(plan, counting, control)
    if plan.tree is not None:
        return _tree_text(plan, plan.tree, control)
    if plan.bundled is not None:
        said = "bundles: vertices are matched alone, and for each match of these the choices of edges are multiplied"
        return f"{explain_text(plan.bundled.search, name, control)}\n{said}"
    profiled = control is not None and len(control.rows) == len(plan.steps)
    table = [["step", "binds", "from", "checks", "estimated rows", *(["rows", "~ms", ""] if profiled else [])]]
    for step in explain(plan, name, control):
        actual = [f"{step.rows:,}", _milliseconds(step.seconds), verdict(step.off)] if step.rows is not None else []
        table.append([str(step.number), step.binds, step.how, step.checks, f"{step.estimate:,.0f}", *actual])
    lines = aligned(table, 4)
    if plan.automorphisms > 1:
        lines.append(f"symmetry: ×{plan.automorphisms:,}")
    if plan.clique is not None:
        lines.append(f"oriented: counts cliques of {plan.clique.size} vertices over the graph oriented by degree")
    if profiled and control is not None:
        threads = f", {control.threads} threads, {plan.worker_bytes:,} bytes each" if control.threads else ""
        lines.append(f"{control.seconds * 1000:,.1f} ms{threads}")
        lines.append("~ms: the time of the match, shared out by the elements that each step went through")
    return "\n".join(lines)


def _milliseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1000:,.1f}"


def verdict(off: float) -> str:
    """Say that there were so many times more rows than expected, where an estimate is wrong by so much."""
    if 1 / MISJUDGED <= off <= MISJUDGED:
        return ""
    return f"! {off:,.0f}× more" if off > 1 else f"! {1 / off:,.0f}× fewer"


def aligned(rows: Iterable[Sequence[str]], words: int) -> list[str]:
    """The rows of a table with columns of one width: the first ``words`` are words, the others figures."""
    table = list(rows)
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    return [
        "  ".join(
            cell.ljust(width) if i < words else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]


def _scan_text(plan: PhysicalPlan, scan: EdgeScan, control: Actuals | None) -> str:
    """A plan that scans the edges of one pattern edge."""
    further = " and along those that start where they end" if scan.further else ""
    lines = [f"goes through {scan.edges:,} edges as they are numbered{further}: {', '.join(plan.names)}"]
    if control is not None:
        lines.append(f"{control.seconds * 1000:,.1f} ms")
    return "\n".join(lines)


def _functional_text(scan: FunctionalScan, name: LabelName, control: Actuals | None) -> str:
    """A plan that scans the edges of one pattern edge, from which all else follows."""
    (source, target), label = (scan.vertices[end] for end in scan.ends), name(scan.relations[scan.edge])
    there = "->" if scan.directed else "-"
    lines = [f"goes through {scan.edges:,} edges: ({source})-[:{label}]{there}({target})"]
    for step in scan.steps:
        before, label = scan.vertices[step.before], name(scan.relations[step.edge])
        way = f"({before})-[:{label}]->" if step.forward else f"({before})<-[:{label}]-"
        lines.append(f"{scan.vertices[step.after]}: the only {way}")
    some = [scan.vertices[v] for v, ids in enumerate(scan.candidates) if ids is not None]
    if some:
        lines.append(f"among candidates: {', '.join(some)}")
    if control is not None:
        lines.append(f"{control.seconds * 1000:,.1f} ms")
    return "\n".join(lines)


def _twins_text(plan: PhysicalPlan, twins: TwinCount, control: Actuals | None) -> str:
    """A plan that counts how many data vertices have the same neighbours."""
    names = ", ".join(_variable(plan, v) for v in twins.twins)
    others = ", ".join(_variable(plan, v) for v in range(len(plan.conditions)) if v not in twins.twins)
    lines = [
        "counted without enumerating",
        f"twins {names}{' that differ' if twins.differ else ''}: {len(twins.roots):,} vertices with up to "
        f"{int(twins.choices[-1]):,} choices of {others}, equal ones counted",
    ]
    if control is not None and control.threads:
        lines.append(f"{control.seconds * 1000:,.1f} ms, {control.threads} thread")
    return "\n".join(lines)


def _counting_text(plan: PhysicalPlan, counting: CountingPlan, control: Actuals | None) -> str:
    """A plan that counts without enumerating the matches: one row per term of the sum."""
    several = len(counting.terms) != 1
    seconds = control.term_seconds if control is not None and len(control.term_seconds) == len(counting.terms) else []
    lines = [
        "counted without enumerating"
        + (f", by {_variable(plan, counting.root)}" if counting.root >= 0 else "")
        + (f": inclusion–exclusion over {len(counting.terms)} patterns" if several else ""),
        *aligned(
            [
                ["times", "where", "how", "estimated work", *(["ms"] if seconds else [])],
                *(
                    [f"{term.coefficient:+d}", *_term(plan, term), *(map(_milliseconds, seconds[i : i + 1]))]
                    for i, term in enumerate(counting.terms)
                ),
            ],
            3,
        ),
    ]
    if control is not None and control.threads:
        lines.append(
            f"{control.seconds * 1000:,.1f} ms, {control.threads} threads, {counting.worker_bytes:,} bytes each"
        )
    return "\n".join(lines)


def _tree_text(plan: PhysicalPlan, tree: TreeCount, control: Actuals | None) -> str:
    """A plan that counts along a tree: one row per vertex, indented below the one that it hangs from."""
    profiled = control is not None and len(control.rows) == len(tree.nodes) and control.seconds > 0
    figures = ["estimated times", *(["times"] if profiled else [])]
    table = [["counted along a tree", "candidates", "joined with", "checks", "cached for", *figures]]
    depth: list[int] = []
    for i, node in enumerate(tree.nodes):
        depth.append(depth[node.parent] + 1 if node.parent >= 0 else 0)
        condition = plan.conditions[node.vertex]
        found = f"{len(tree.space.candidates[node.vertex]):,}" + (f" {condition}" if condition else "")
        name = _variable(plan, node.vertex)
        row = ["  " * depth[i] + name, found, ", ".join(_variable(plan, v) for v in node.lists)]
        row.append(", ".join(f"{name} ≠ {_variable(plan, v)}" for v in node.conflicts))
        row.append(", ".join(_variable(plan, v) for v, _ in node.depends) if node.cache_slots else "")
        row.append(f"{node.estimate:,.0f}")
        table.append([*row, *([f"{control.rows[i]:,}"] if profiled and control is not None else [])])
    lines = aligned(table, 5)
    if profiled and control is not None:
        bytes_each = f"up to {tree.worker_bytes:,} bytes each"
        lines.append(f"{control.seconds * 1000:,.1f} ms, {control.threads} threads, {bytes_each}")
    return "\n".join(lines)


def _term(plan: PhysicalPlan, term: Term) -> tuple[str, str, str]:
    """(which vertices are the same, how its components are counted, what that is expected to cost)."""
    names = [" = ".join(_variable(plan, v) for v in origin) for origin in term.quotient.origins]
    merged = ", ".join(name for name, origin in zip(names, term.quotient.origins, strict=True) if len(origin) > 1)
    ways = []
    for part in term.parts:
        if part.clique:
            ways.append(f"cliques of {part.clique}, oriented by degree")
        elif part.levels:
            bound = ", ".join(names[level.vertex] for level in part.levels)
            hanging = any(weight.messages for weight in (part.root, *part.weights))
            ways.append(f"conditioned on {bound}" + (", the rest counted along edges" if hanging else ""))
        else:
            ways.append(f"counted along edges, up to {names[part.origin]}")
    return merged or "any may be the same", "; ".join(ways), f"{sum(part.cost for part in term.parts):,.0f}"


def _slot(plan: PhysicalPlan, step: Step) -> int:
    return len(plan.conditions) + step.edge if isinstance(step, EdgeStep) else step.vertex


def _variable(plan: PhysicalPlan, slot: int) -> str:
    return plan.names[slot] or f"#{slot}"


def _labels(relation: Relation, name: LabelName) -> str:
    if relation.pair is not None:
        return "candidates"
    return "" if relation.labels is None else ":" + "|".join(map(name, relation.labels))


def _arrow(plan: PhysicalPlan, vertex: int, relation: Relation, name: LabelName) -> str:
    left, right = {"out": ("-", "->"), "in": ("<-", "-"), "both": ("-", "-")}[relation.direction]
    return f"({_variable(plan, vertex)}){left}[{_labels(relation, name)}]{right}"


def _how(plan: PhysicalPlan, step: Step, name: LabelName) -> str:
    if isinstance(step, EdgeStep):
        return f"edges {_arrow(plan, step.vertex, step.relation, name)}({_variable(plan, step.other)})"
    condition = plan.conditions[step.vertex]
    if step.scan is not None:
        return f"scan {len(step.scan):,} vertices" + (f" {condition}" if condition else "")
    lists = [_arrow(plan, near.of, near.relation, name) for near in step.neighbours]
    if step.shared:
        first = min(i for i, other in enumerate(plan.steps) if _shares(other, step.neighbours[: step.shared]))
        known = "cached" if plan.steps[first] == step else f"as in step {first + 1}"
        lists = [f"({' ∩ '.join(lists[: step.shared])} {known})", *lists[step.shared :]]
    if step.constants is not None:
        lists.append(f"{len(step.constants):,} candidates" + (f" {condition}" if condition else ""))
    return " ∩ ".join(lists)


def _how_far(plan: PhysicalPlan, i: int) -> str:
    """What is wanted of a step that need not give its bindings."""
    if i >= plan.row_steps:
        return "; the first match does" if plan.duplicates == "drop" else "; only counted"
    return "; only counted" if plan.count_last and i + 1 == len(plan.steps) else ""


def _shares(step: Step, lists: tuple[Neighbours, ...]) -> bool:
    return isinstance(step, VertexStep) and step.neighbours[: step.shared][: len(lists)] == lists


def _check(plan: PhysicalPlan, check: Check, name: LabelName) -> str:
    def of(slot: int) -> str:
        return _variable(plan, slot)

    vertices = len(plan.conditions)
    match check:
        case Above(vertex, lower):
            return f"{of(vertex)} > {of(lower)}"
        case Never():
            return "never"
        case Unequal(left, right):
            return f"{of(left)} ≠ {of(right)}"
        case NotBothEqual(a, b, c, d):
            return f"not ({of(a)} = {of(b)} and {of(c)} = {of(d)})"
        case EdgesDiffer(first, second):
            return f"{of(vertices + first)} ≠ {of(vertices + second)}"
        case IsCandidate(vertex, candidates, _):
            return plan.conditions[vertex] or f"{of(vertex)} among {len(candidates):,} candidates"
        case HasSignature(vertex, relation, _):
            return f"signature {_arrow(plan, vertex, relation, name)}"
        case HasEdge(relation, vertex, other, negated):
            return f"{'no ' if negated else ''}edge {_arrow(plan, vertex, relation, name)}({of(other)})"
        case EdgeCount(vertex, other, expected, _):
            return f"{expected} edges between {of(vertex)} and {of(other)}"
