"""EXPLAIN and PROFILE of continuous queries: how batches reach the answer, and what the last ones took."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING

from graphdb.incremental.delta_plan import DeltaPlan, VertexStep
from graphdb.incremental.induced import is_induced
from graphdb.live.aggregates.grouping import Accumulators, Change
from graphdb.live.matches.reaching import Reaching
from graphdb.live.standing import Branch, Standing

if TYPE_CHECKING:
    from graphdb.live.matches.following import Following
    from graphdb.pattern.graph import PatternEdge, PatternGraph
    from graphdb.pattern.names import Names


def explained(each: Standing, names: Names) -> Iterator[str]:
    """Yield lines that say how a continuous query is maintained."""
    own = each.definition
    yield f"continuous query {own.name}: {' '.join(own.text.split())}"
    if each.why is not None:
        yield f"maintained by comparing its answers after and before each batch, because {each.why}"
        if each.labels is not None:
            named = sorted({names.spellings[label] for label in each.labels if label in names.spellings})
            yield f"  not where a batch changes nothing of what it reads: {', '.join(named) or 'nothing'}"
    else:
        yield "maintained by delta plans"
        yield from _plans(each.branches, names)
        if each.accumulators is not None:
            yield from _groups(each.accumulators, each.definition.text)
        if each.window is not None:
            yield (
                f"  the first {each.window.stored:,} rows are stored, and asked for anew once fewer than"
                f" {each.window.needed:,} of them are left"
            )
    stored = "its answer is stored" if own.stored else "its answer is not stored"
    age = "" if own.retention is None else f", for {own.retention}"
    yield f"{stored}; of its changes at least {own.changes:,} rows{age}, from batch {own.since:,} on"


def _plans(branches: Sequence[Branch], names: Names) -> Iterator[str]:
    """Yield lines that say how rows that come and go are found."""
    numbers = count(1)
    for i, branch in enumerate(branches):
        if len(branches) > 1:
            yield f"  part {i + 1} of {len(branches)}"
        yield from _matches(branch.way.parts, numbers, names)
        if branch.way.asked_anew:
            yield "  rows are asked for before and after a batch, for the vertices of what these find"


def _matches(parts: Sequence[Following], numbers: Iterator[int], names: Names) -> Iterator[str]:
    """Yield lines that say how matches that come and go are found."""
    for part in parts:
        if isinstance(part, Reaching) and part.delta is not None:
            yield f"  delta plan {next(numbers)}: {_search(part, part.delta.pattern, names)}"
            continue
        if part.matcher is None or part.delta is None:
            yield "  vertices of which labels or properties changed"
            continue
        for plan in part.matcher.plans:
            yield f"  delta plan {next(numbers)}: {_plan(plan, part.delta.pattern, names)}"
        if is_induced(part.delta.pattern):
            yield "  and one for each two vertices: an edge between them, which INDUCED does not admit, changed"


def _groups(own: Accumulators, text: str) -> Iterator[str]:
    """Yield lines that say how the groups of a query's rows follow them."""
    by = ", ".join(text[key.span.start : key.span.end] for key in own.grouping.by)
    yield f"  groups by {by}" if by else "  one group"
    for measure in own.measures:
        changes = [Change.COUNT, *(each.change for each in measure.accumulators)]
        begin, end = measure.item.expression.span
        yield f"    {text[begin:end] or measure.item.text}: {changes[-1 if len(changes) < 3 else 1].value}"
    if own.final is not None:
        yield "  rows are computed of the groups that change"


def profiled(each: Standing) -> Iterator[str]:
    """Yield lines that say what the last batches took, since the database was opened."""
    if not each.took:
        yield "no batch since the database was opened"
        return
    matchers = [part.matcher for part in each.parts if part.matcher is not None]
    if matchers:
        size = sum(matcher.bytes for matcher in matchers) / 1e6
        takes = "its matcher takes" if len(matchers) == 1 else f"its {len(matchers)} matchers take"
        yield f"{takes} {size:,.1f} MB of memory"
    elif any(part.delta is not None for part in each.parts):
        yield "no matcher in memory yet: edges are read where batches change something"
    seconds = [took.seconds for took in each.took]
    yield f"the last {len(seconds):,} batches: {1000 * sum(seconds) / len(seconds):,.2f} ms each in the mean"
    for took in each.took:
        number = f"batch {took.batch:,}" if took.batch else "no change"
        yield (
            f"  {number}: {took.updates:,} triples, {took.added:,} rows added, {took.removed:,} removed,"
            f" {took.seconds * 1000:,.2f} ms, {took.strategy}"
        )


def _plan(plan: DeltaPlan, pattern: PatternGraph, names: Names) -> str:
    """Return a delta plan in words: the edge that changed, and what is bound after it, in order."""
    steps = [f"{_edge(pattern, pattern.edges[plan.edge], names)} changed"]
    for step in plan.steps:
        if isinstance(step, VertexStep):
            legs = ", ".join(_edge(pattern, pattern.edges[leg.edge], names) for leg in step.legs)
            steps.append(f"{_name(pattern, step.vertex)} by {legs}")
        else:
            steps.append(f"edge {_edge(pattern, pattern.edges[step.leg.edge], names)}")
    return ", then ".join(steps)


def _search(part: Reaching, pattern: PatternGraph, names: Names) -> str:
    """Return in words how the ends of paths are found."""
    edges = " or ".join(dict.fromkeys(_labels(edge, names) for edge in pattern.edges))
    back = [] if part.reached.first is None else [f"back to {part.reached.first}"]
    on = [] if part.reached.last is None else [f"on to {part.reached.last}"]
    return f"{edges} on a path of any length changed, then {' and '.join(back + on)}"


def _edge(pattern: PatternGraph, edge: PatternEdge, names: Names) -> str:
    text = _labels(edge, names)
    source, target = (_name(pattern, end) for end in (edge.source, edge.target))
    return f"({source})-{text}-{'>' * edge.directed}({target})"


def _labels(edge: PatternEdge, names: Names) -> str:
    known = names.edge_labels
    labels = [names.edge_name(label) if label in known else "<absent>" for label in edge.labels or ()]
    return f"[:{'|'.join(labels)}]" if edge.labels is not None else "[]"


def _name(pattern: PatternGraph, vertex: int) -> str:
    name = pattern.vertices[vertex].name
    return name if name[:1].isalpha() or name[:1] == "_" else f"#{vertex + 1}"
