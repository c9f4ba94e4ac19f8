"""A path with a selector (``ANY SHORTEST``, ``SHORTEST 2`` …): a step of its own, joined to what is around it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.arrow import numbers
from graphdb.common.values.types import INTEGER, PATH
from graphdb.execute.paths.path_rows import PathRows
from graphdb.execute.paths.steps import Paths
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.bind import BoundPattern, bind, variables_in
from graphdb.pattern.graph import Clause, PatternGraph, PatternVertex, Wanted
from graphdb.pattern.paths.lengths import length_name, with_lengths, without
from graphdb.pattern.paths.pieces import pieces_of
from graphdb.plan.passes.pipeline import make_plan
from graphdb.plan.paths import PathStep
from graphdb.relational.edges.parallel_edges import resolve_edges
from graphdb.relational.filtering.candidates import Candidates
from graphdb.relational.path_patterns.step import goes_everywhere, path_step
from graphdb.relational.paths.base import (
    FIXED,
    FOUND,
    Part,
    PathBase,
    PreparedPaths,
    Waiting,
    items_of,
    unnamed,
)
from graphdb.relational.projection.relation import Source
from graphdb.relational.projection.return_clause import wanted, window_of
from graphdb.results.decode import Arrays
from graphdb.results.path_materialization import Walks
from graphdb.sql.value import SqlValue, column, edges_of

Ids = NDArray[np.int64]
Matches = tuple[ast.MatchClause, ...]

_FEW_PAIRS = 64
"""Pairs of ends, of two sets, up to which each is searched for from both sides."""
_MOST_PAIRS = 1 << 16
"""Pairs beyond which paths that are not the shortest are not looked for one pair after the other."""


@dataclass(frozen=True, slots=True)
class Selected(PreparedPaths):
    """A query with a step that finds paths.

    Attributes
    ----------
    around
        What is matched around the path; None where that is nothing.
    source, target
        The pattern vertices at its ends.
    starts, ends
        The candidates of an end that ``around`` does not bind; None for all vertices.
    direct
        The step's columns that are the result, where no SQL is needed for it.
    sized
        Whether the result is the number of ends that are found.
    given
        The parameters that name the ends, where nothing else depends on arguments: others may be put in their place.
    """

    step: PathStep
    around: Part | None
    source: int
    target: int
    starts: Ids | None
    ends: Ids | None
    direct: tuple[str, ...] | None = None
    sized: bool = False
    given: tuple[ast.Parameter | None, ast.Parameter | None] | None = None

    def describe(self, label: Callable[[int], str]) -> Iterator[str]:
        """The step in words."""
        yield self.step.describe(label)


class SelectedRun(PathBase):
    """Prepares and runs queries with one path that has a selector."""

    def prepare_selected(self, matches: Matches, returns: ast.ReturnClause) -> Selected | None:
        """Plan the step and what is around it, and write the SQL after them; None where it takes more than that."""
        asked = [part for part in walk((matches, returns)) if isinstance(part, ast.Parameter)]
        found = _the_path(matches)
        if found is None:
            return None
        number, path, edge = found
        match, pieces = matches[number], pieces_of(path)
        nodes = [
            node if node.variable else replace(node, variable=ast.Variable(name, node.span))
            for node, name in zip(path.nodes, ("#left", "#right"), strict=True)
        ]
        left, right = (node.variable.name for node in nodes if node.variable is not None)
        if left == right or pieces is None:
            return None
        others = tuple(other for other in match.patterns if other is not path)
        patterns = others + tuple(ast.PathPattern((node,), (), path.span) for node in nodes)
        matches = (*matches[:number], replace(match, patterns=patterns), *matches[number + 1 :])
        named = {variable.name for variable in (path.variable, edge.variable) if variable is not None}
        matches, after = without(matches, named)
        bound = bind(matches, self._snapshot.names, self._text)
        resolve_edges(self._snapshot, self._text, self._arguments, bound)
        if bound.choices:
            return None
        items = items_of(returns, unnamed(bound.variables) | named)
        paths = {path.variable.name} if path.variable is not None else set()
        items, returns, after = with_lengths((items, returns, after), paths)
        bound.residual += after
        window = window_of(returns, self._snapshot, self._arguments, self._text)
        needs = wanted(returns, items, bound, window)
        if needs.count_only:
            needs = replace(needs, count_only=False, duplicates="count")
        used = variables_in((items, returns.order_by, after))
        materialized = bool(used & named)
        beside = [each for each in bound.edges if each.clause == number]
        step = path_step(path, pieces, match, self._snapshot.names, self._text, beside, materialized=materialized)
        if step is None or not goes_everywhere(step, pieces, self._snapshot):
            return None
        if needs.duplicates == "drop" and step.single and not materialized:
            step = replace(step, groups=False)
        source, target = bound.vertex_of[left], bound.vertex_of[right]
        step = replace(step, source=left, target=right)
        measured = materialized or not used.isdisjoint(map(length_name, paths))
        selected = self._ends(bound, step, needs, source, target, measured)
        if selected is None:
            return None

        further = {length_name(name): SqlValue("CAST(b.length AS BIGINT)", INTEGER) for name in paths}
        further |= dict.fromkeys(paths, column("path", PATH))
        if edge.variable is not None:
            further[edge.variable.name] = edges_of("b.path")
        free = [pair for pair in bound.unequal if {source, target} & {*pair} and not selected.step.apart]
        joined = _joined(selected, needs, free)
        compiler = self._projecting(bound, Source(joined), further, counted=needs.duplicates == "count")
        projection = compiler.project(returns, items, window, written=True)
        plain = not (bound.residual or free or returns.order_by or needs.duplicates != "keep" or selected.around)
        columns = {left: f"v{source}", right: f"v{target}"}
        columns |= {length_name(name): "length" for name in paths} | dict.fromkeys(paths, "path")
        chosen = [columns.get(i.expression.name) if isinstance(i.expression, ast.Variable) else None for i in items]
        direct = tuple(name for name in chosen if name is not None)
        end = right if selected.step.only == "target" else left
        sized = bool(selected.step.only) and not bound.residual and all(_counts(i.expression, end) for i in items)
        selected = replace(selected, direct=direct if plain and len(direct) == len(items) else None, sized=sized)
        return replace(selected, projection=projection, bound=bound, given=_given(selected, asked))

    def for_arguments(self, prepared: Selected) -> Selected | None:
        """Return a query that was prepared for other arguments for those of this run; None where that takes more."""
        if prepared.given is None:
            return None
        candidates = Candidates(self._snapshot, self._text, self._arguments)
        ends = [prepared.starts, prepared.ends]
        for i, parameter in enumerate(prepared.given):
            if parameter is not None:
                ends[i] = named = candidates.named(parameter)
                if not len(named):
                    return None
        return replace(prepared, starts=ends[0], ends=ends[1])

    def _ends(
        self, bound: BoundPattern, step: PathStep, needs: Wanted, source: int, target: int, measured: bool
    ) -> Selected | None:
        """Find out what is known of the ends; ``measured``: more than they are wanted.  None where it is too little."""
        candidates = Candidates(self._snapshot, self._text, self._arguments)
        vertices = candidates.vertices(bound)
        joined = {end for edge in bound.edges for end in (edge.source, edge.target)}
        free = {source, target} - joined
        if any(free & {test.source, test.target} for test in bound.edge_tests):
            return None
        starts, ends = (vertices[end].candidates if end in free else None for end in (source, target))
        if len(free) == 2 and starts is None and ends is None:
            starts = self._snapshot.graph.universe()
        pairs = _MOST_PAIRS + 1 if starts is None or ends is None else len(starts) * len(ends)
        known = not free or (len(free) == 2 and pairs <= (_FEW_PAIRS if step.single else _MOST_PAIRS))
        if not (step.single or known):
            return None
        around = self._beside(bound, vertices, needs, free, {source, target})
        step = replace(step, bound=known)
        both = {(min(source, target), max(source, target))}
        if len(free) == 2 and needs.duplicates == "drop" and step.single and not measured and {*bound.unequal} <= both:
            apart = bool(bound.unequal)
            if set(needs.vertices) == {target} and starts is not None and (not apart or len(starts) == 1):
                step = replace(step, bound=False, only="target", apart=apart)
            elif set(needs.vertices) == {source} and ends is not None and (not apart or len(ends) == 1):
                step = replace(step, bound=False, only="source", apart=apart)
        return Selected(None, needs, None, bound, step, around, source, target, starts, ends)  # type: ignore[arg-type]

    def _beside(
        self, bound: BoundPattern, vertices: Sequence[PatternVertex], needs: Wanted, free: set[int], ends: set[int]
    ) -> Part | None:
        """Plan what is around the path: the pattern without those of its ends that nothing else holds."""
        others = [number for number in range(len(vertices)) if number not in free]
        if not others:
            return None
        new = {number: i for i, number in enumerate(others)}
        compared = {vertex for pair in bound.unequal if ends & {*pair} for vertex in pair}
        outputs = sorted(({*needs.vertices} | ends | compared) - free) or others[:1]
        own = Wanted(tuple(outputs), needs.edges, False, None, needs.duplicates)
        names = [vertices[v].name for v in outputs] + [bound.edges[e].name for e in needs.edges]
        pattern = PatternGraph(
            tuple(vertices[number] for number in others),
            tuple(replace(e, source=new[e.source], target=new[e.target]) for e in bound.edges),
            tuple(Clause(clause.mode, tuple(new[v] for v in clause.vertices if v in new)) for clause in bound.clauses),
            tuple(replace(test, source=new[test.source], target=new[test.target]) for test in bound.edge_tests),
            tuple((new[a], new[b]) for a, b in bound.unequal if a in new and b in new),
            tuple(names),
            duplicates=needs.duplicates,
        )
        return Part(bound, make_plan(pattern, self._snapshot.graph, refine=self.executor.refine), own)

    # --- running

    @contextmanager
    def selected(self, prepared: Selected) -> Iterator[None]:
        """Match what is around the path, find the paths, and keep both visible to SQL."""
        with ExitStack() as stack:
            if prepared.around is not None:
                stack.enter_context(self._matched(prepared.around).visible())
            blocks = self._found(prepared, self._search(prepared))
            stack.enter_context(self._cached_paths(prepared, blocks).visible())
            yield

    def projected(self, prepared: Selected, names: Sequence[str]) -> arrow.Table | Arrays | Waiting:
        """Return a result that is columns of the step; where that is too much for memory, the rows that wait."""
        blocks = self._found(prepared, self._search(prepared))
        with self._measuring(FOUND):
            first = list(islice(blocks, 2))
        window, numbered = prepared.projection.window, prepared.step.numbered
        if len(first) == 1 and not numbered and window == (0, None):
            if self.profile is not None:
                self.profile.measured(FOUND, len(first[0]))
            columns = _columns(prepared, first[0])
            return Arrays([columns[name]() for name in names], len(first[0]))
        found = self._cached_paths(prepared, chain(first, blocks))
        table = found.table
        if table is None:
            return found
        if numbered:
            rows = np.repeat(np.arange(table.num_rows), table.column("n").to_numpy())
            table = table.take(rows)
        shown = {f"c{i}": table.column(name) for i, name in enumerate(names)}
        return arrow.table(shown).slice(*window)

    def number_found(self, prepared: Selected) -> int:
        """Return how many ends are found."""
        with self._measuring(FOUND):
            return sum(map(len, self._found(prepared, self._search(prepared))))

    def _search(self, prepared: Selected) -> Paths:
        self.control = control = self.new_control()
        return Paths(self._snapshot.graph, prepared.step, control)

    def _cached_paths(self, prepared: Selected, blocks: Iterable[PathRows]) -> Waiting:
        """Keep the paths that are found, as many as are wanted."""
        with self._measuring(FOUND):
            found = self._waiting(prepared, blocks)
        if self.profile is not None:
            self.profile.measured(FOUND, found.rows, found.nbytes)
        return found

    def _waiting(self, prepared: Selected, blocks: Iterable[PathRows]) -> Waiting:
        limit = prepared.wanted.limit if prepared.around is None else None
        found: Waiting | None = None
        for block in blocks:
            table = _table(prepared, block)
            found = found or Waiting(self, FOUND, table.slice(0, 0), self._bindings_bytes // 4)
            found.add(table)
            if limit is not None and found.rows >= limit:
                break
        return found or Waiting(self, FOUND, _table(prepared, _NOTHING), self._bindings_bytes // 4)

    def _found(self, prepared: Selected, paths: Paths) -> Iterator[PathRows]:
        """Yield the paths between all ends that there are; what is around them is visible already."""
        source, target, starts, ends = prepared.source, prepared.target, prepared.starts, prepared.ends
        known = [] if prepared.around is None else [e for e in (source, target) if e in prepared.around.needs.vertices]
        if known:
            columns = ", ".join(f"v{end}" for end in known)
            order = ", ".join(f"v{end} ASC" for end in known)
            found = self._snapshot.connection.columns(f"SELECT DISTINCT {columns} FROM {FIXED} ORDER BY {order}")
            rows = {name: np.asarray(column, np.int64) for name, column in found.items()}
            if len(known) == 2:
                yield from paths.between(rows[f"v{source}"], rows[f"v{target}"])
                return
            if source in known:
                starts = rows[f"v{source}"]
            else:
                ends = rows[f"v{target}"]
        elif prepared.step.only:
            yield paths.reached(starts, ends)
            return
        elif prepared.step.bound:
            assert starts is not None
            assert ends is not None
            yield from paths.between(np.repeat(starts, len(ends)), np.tile(ends, len(starts)))
            return
        yield from paths.across(starts, ends)


def _columns(prepared: Selected, found: PathRows) -> dict[str, Callable[[], arrow.Array | Walks]]:
    """What makes each column of the step."""
    return {
        f"v{prepared.source}": lambda: numbers(found.sources),
        f"v{prepared.target}": lambda: numbers(found.targets),
        "length": lambda: numbers(found.lengths),
        "n": lambda: numbers(np.ones(len(found), np.int64) if found.counts is None else found.counts),
        "path": lambda: Walks(found.starts, found.walks, found.codes),
    }


def _table(prepared: Selected, found: PathRows) -> arrow.Table:
    """Rows of the step as a table."""
    step = prepared.step
    unasked = [*([] if step.numbered else ["n"]), *([] if step.materialized else ["path"])]
    columns = {name: make() for name, make in _columns(prepared, found).items() if name not in unasked}
    return arrow.table({name: c.array() if isinstance(c, Walks) else c for name, c in columns.items()})


_NOTHING = PathRows(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))


def _given(
    selected: Selected, asked: Sequence[ast.Parameter]
) -> tuple[ast.Parameter | None, ast.Parameter | None] | None:
    """Return the parameters that name the ends, where a query asks for no others and knows no more of those ends."""
    if selected.around is not None:
        return None
    found: list[ast.Parameter | None] = []
    for end, vertices in ((selected.source, selected.starts), (selected.target, selected.ends)):
        info = selected.bound.vertices[end]
        named = [constant for constant in info.iris if isinstance(constant, ast.Parameter)]
        if named and (len(info.iris) > 1 or info.labels or info.conditions or info.exists):
            return None
        if named and (vertices is None or len(vertices) != 1):
            return None
        found.append(named[0] if named else None)
    if len(asked) != len([parameter for parameter in found if parameter is not None]):
        return None
    return found[0], found[1]


def _counts(item: ast.Expression, name: str) -> bool:
    """Whether an item is the number of different values of a variable."""
    if not isinstance(item, ast.FunctionCall) or item.name.lower() != "count":
        return False
    return item.distinct and item.arguments == (ast.Variable(name),)


def _joined(selected: Selected, needs: Wanted, unequal: list[tuple[int, int]]) -> str:
    """The bindings of the query, as SQL over what is around the path and the paths."""
    step, around = selected.step, selected.around
    ends = {selected.source, selected.target}
    columns = [f"r.v{end}" for end in sorted(ends)] + ["r.length"] + (["r.path"] if step.materialized else [])
    sources = f"{FOUND} r"
    counts = ["r.n"] if step.numbered else []
    if around is not None:
        columns += [f"f.v{v}" for v in around.needs.vertices if v not in ends]
        columns += [f"f.e{e}" for e in around.needs.edges]
        on = " AND ".join(f"f.v{end} = r.v{end}" for end in sorted(ends) if end in around.needs.vertices)
        sources = f"{FIXED} f JOIN {sources} ON {on or 'TRUE'}"
        counts += ["f.n"] if needs.duplicates == "count" else []
    if needs.duplicates == "count":
        columns.append(f"{' * '.join(counts) or '1'} AS n")
    elif needs.duplicates == "keep" and step.numbered:
        sources += ", LATERAL (SELECT unnest(range(r.n)))"
    where = " AND ".join(f"{_side(selected, a)} <> {_side(selected, b)}" for a, b in unequal)
    return f"(SELECT {', '.join(columns)} FROM {sources}{f' WHERE {where}' if where else ''})"


def _side(selected: Selected, vertex: int) -> str:
    return f"{'r' if vertex in (selected.source, selected.target) else 'f'}.v{vertex}"


def _the_path(matches: Matches) -> tuple[int, ast.PathPattern, ast.EdgePattern] | None:
    """The one path that has a selector, in which clause, and its edge; None where something else is not plain."""
    found = [(i, path) for i, match in enumerate(matches) for path in match.patterns if not path.plain]
    (number, path), *more = found
    if more or path.selector is None or len(path.edges) != 1 or matches[number].mode is ast.MatchMode.INDUCED:
        return None
    (edge,) = path.edges
    return (number, path, edge) if isinstance(edge, ast.EdgePattern) and edge.repeat is not None else None
