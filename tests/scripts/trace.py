"""What the planner did, pass by pass, as lines of text that are the same on every machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from functools import partial, wraps
from typing import Any

import pytest

from graphdb.pattern.graph import EdgeTest, PatternEdge, PatternGraph
from graphdb.plan.checks import (
    Above,
    EdgeCount,
    EdgesDiffer,
    HasEdge,
    HasSignature,
    IsCandidate,
    Neighbours,
    NotBothEqual,
    Relation,
    Unequal,
)
from graphdb.plan.passes import pipeline
from graphdb.plan.passes.draft import Draft
from graphdb.plan.physical import EdgeStep, VertexStep
from graphdb.relational.pattern_plans import PatternPlans

Label = Callable[[int], str]


@contextmanager
def traced(label: Label) -> Iterator[list[str]]:
    """Collect the pattern graph of every plan made meanwhile, and what each pass added to or changed in its draft.

    Parameters
    ----------
    label
        Gives the name of an edge label from its id.
    """
    lines: list[str] = []

    def watched(run: Callable[[Draft], None], *, first: bool) -> Callable[[Draft], None]:
        @wraps(run)
        def watching(draft: Draft) -> None:
            if first:
                lines.extend(_pattern(draft.pattern, label))
            before = _described(draft, label)
            run(draft)
            after = _described(draft, label)
            lines.extend(
                f"  {run.__name__}: {text}"
                for part, texts in after.items()
                for text in texts
                if text not in before[part]
            )
            if before["checks"] and not after["checks"]:
                lines.append(f"  {run.__name__}: no checks")

        return watching

    with pytest.MonkeyPatch.context() as patch:
        passes = tuple(watched(run, first=i == 0) for i, run in enumerate(pipeline.PASSES))
        patch.setattr(pipeline, "PASSES", passes)
        patch.setattr(PatternPlans, "get_or_make", lambda self, pattern, make: make())  # none that another text made
        yield lines


def _pattern(pattern: PatternGraph, label: Label) -> Iterator[str]:
    """The pattern graph: its vertices with their candidates, its edges and edge tests, and what is wanted."""
    name = partial(_vertex, pattern)
    vertices = (
        name(v)
        + (f" {vertex.condition}" if vertex.condition else "")
        + ("" if vertex.candidates is None else f" [{len(vertex.candidates)}]")
        for v, vertex in enumerate(pattern.vertices)
    )
    yield "pattern"
    yield "  vertices: " + " · ".join(vertices)
    links: list[PatternEdge | EdgeTest] = [*pattern.edges, *pattern.edge_tests]
    if links:
        yield "  edges: " + " · ".join(
            f"{'no ' if isinstance(link, EdgeTest) and link.negated else ''}"
            f"({name(link.source)})-[{_labels(link.labels, label)}]-{'>' if link.directed else ''}({name(link.target)})"
            for link in links
        )
    wanted = "the count" if pattern.count_only else ", ".join(pattern.outputs) or "nothing"
    duplicates = {"keep": "", "drop": ", each row once", "count": ", each row once with its number"}
    limit = "" if pattern.limit is None else f", at most {pattern.limit}"
    yield f"  wanted: {wanted}{duplicates[pattern.duplicates]}{limit}"


def _described(draft: Draft, label: Label) -> dict[str, list[str]]:
    """The parts of a draft as lines of text."""
    name = partial(_vertex, draft.pattern)
    candidates = [] if draft.space is None else draft.space.candidates
    checks = ", ".join(_check(draft.pattern, check, label) for check in draft.checks)
    choices = ", ".join(sorted(draft.pattern.edges[edge].name for edge in draft.chosen_edges))
    return {
        "candidates": [f"{name(v)} has {len(found):,} candidates" for v, found in enumerate(candidates)],
        "order": [f"order {' '.join(map(name, draft.order))}"],
        "checks": [f"checks {checks}"] if checks else [],
        "symmetry": [f"symmetry ×{draft.symmetry.size}"],
        "edges": [f"each of parallel edges for {choices}"],
        "steps": [_step(draft.pattern, step, label) for step in draft.steps],
    }


def _step(pattern: PatternGraph, step: VertexStep | EdgeStep, label: Label) -> str:
    name = partial(_vertex, pattern)
    if isinstance(step, EdgeStep):
        text = f"{pattern.edges[step.edge].name or '-'} between ({name(step.vertex)}) and ({name(step.other)})"
    elif step.scan is not None:
        text = f"{name(step.vertex)} scanned"
    else:
        lists = [_near(pattern, near, label) for near in step.neighbours]
        if step.shared:
            lists = [f"[{' ∩ '.join(lists[: step.shared])}]", *lists[step.shared :]]
        if step.constants is not None:
            lists.append("candidates")
        text = f"{name(step.vertex)} from {' ∩ '.join(lists)}"
    checks = ", ".join(_check(pattern, check, label) for check in step.checks)
    return text + (f" if {checks}" if checks else "")


def _check(pattern: PatternGraph, check: Any, label: Label) -> str:
    name = partial(_vertex, pattern)
    match check:
        case Above(vertex, lower):
            return f"{name(vertex)} > {name(lower)}"
        case Unequal(left, right):
            return f"{name(left)} ≠ {name(right)}"
        case NotBothEqual(a, b, c, d):
            return f"not ({name(a)} = {name(b)} and {name(c)} = {name(d)})"
        case EdgesDiffer(first, second):
            return f"{pattern.edges[first].name or f'-{first}'} ≠ {pattern.edges[second].name or f'-{second}'}"
        case IsCandidate(vertex):
            return f"{name(vertex)} is a candidate"
        case HasSignature(vertex, relation):
            return f"signature {_near(pattern, Neighbours(relation, vertex), label)}"
        case HasEdge(relation, vertex, other, negated):
            return (
                f"{'no ' if negated else ''}edge {_near(pattern, Neighbours(relation, vertex), label)}({name(other)})"
            )
        case EdgeCount(vertex, other, expected):
            return f"{expected} edges between {name(vertex)} and {name(other)}"
    return type(check).__name__ + "".join(f" {getattr(check, part.name)}" for part in fields(check))


def _near(pattern: PatternGraph, near: Neighbours, label: Label) -> str:
    left, right = {"out": ("-", "->"), "in": ("<-", "-"), "both": ("-", "-")}[near.relation.direction]
    return f"({_vertex(pattern, near.of)}){left}[{_relation(near.relation, label)}]{right}"


def _relation(relation: Relation, label: Label) -> str:
    return "candidates" if relation.pair is not None else _labels(relation.labels, label)


def _labels(labels: tuple[int, ...] | None, label: Label) -> str:
    return "" if labels is None else ":" + "|".join(map(label, labels))


def _vertex(pattern: PatternGraph, vertex: int) -> str:
    return pattern.vertices[vertex].name or f"#{vertex}"
