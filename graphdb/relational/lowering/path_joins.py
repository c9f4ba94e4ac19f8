"""Paths that are searched for, as joins: with a selector, without an upper bound, or of which values are wanted.

What is plain in a MATCH is matched first.  Each of its paths is then a step of its own, from the ends that the rows
have to those that may be, and its ends are joined with the rows.  Where what follows asks for no more than which ends
there are, any shortest path will do for all of them, and where one end is enough, one search does for all others.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from graphdb.common.values.types import FLOAT, INTEGER, NODE, Base, sql_type
from graphdb.grammar import syntax as ast
from graphdb.pattern.bind import BoundPattern, conjuncts, is_edge_test, variables_in
from graphdb.pattern.free import free_variables
from graphdb.pattern.graph import Wanted
from graphdb.pattern.paths.lengths import OF_PATHS, all_hold
from graphdb.plan.estimates.cost import estimate
from graphdb.plan.paths import EVERY, PathStep
from graphdb.relational.costed_edges import DataEdges
from graphdb.relational.lowering.joins.bindings import all_of, in_parts
from graphdb.relational.lowering.joins.rows import CARRIED
from graphdb.relational.lowering.needs import available, needs_of, only
from graphdb.relational.lowering.path_edges import PathEdges
from graphdb.relational.path_patterns.edges import Pattern
from graphdb.relational.path_patterns.order import Component, Conditions, components
from graphdb.relational.path_patterns.split import ALL_PATHS, Path, Split, split_clauses
from graphdb.relational.path_patterns.step import along, cost_step, goes_everywhere, labels_of, path_step
from graphdb.relational.program import ONE_VERTEX, Given, Searched
from graphdb.relational.projection.relation import UNIT, Relation, Source, bindings_of
from graphdb.sql.value import SqlValue, column, edges_of


class Searches(PathEdges):
    """Lowers MATCH clauses with paths that are searched for."""

    def _searched(
        self,
        left: Relation,
        matches: Sequence[ast.MatchClause],
        live: Collection[str],
        drops: bool,
        least: Collection[str] = (),
    ) -> Relation | None:
        """Join rows with the paths of MATCH clauses, set by set; None where some path is found only one by one.

        Parameters
        ----------
        live
            The names that later clauses may use.
        drops
            Whether equal rows may come once.
        least
            The names of which the least value alone is asked for then.
        """
        split = (
            None if any(in_parts(match, self._snapshot) for match in matches) else split_clauses(matches, left.names)
        )
        if split is None or any(not left.variables.keys().isdisjoint(path.names) for path in split.paths):
            return None
        later = {*live, *free_variables(split.after)}
        least = {*least} - free_variables((split.after, tuple(split.plain)))
        outside = {*left.names, *variables_in(tuple(part for match in matches for part in _outside(match)))}
        found = [self._one_step(path, matches[path.clause], later, outside) for path in split.paths]
        steps = [step for step in found if step is not None]
        if len(steps) < len(found):
            return None
        steps, beside = self._ordered(split, steps, matches, left)
        later = later.union(*beside)
        parts = self._parts_of(split.plain)
        if _in_any_order(split.paths, beside) and parts and len(parts) + len(split.paths) > 2:
            return self._one_by_one(left, split, steps, beside, parts, later, drops, least)
        relation: Relation | None = self._around(left, split, later.union(*map(split.asked, split.paths)))
        for number, (path, step) in enumerate(zip(split.paths, steps, strict=True)):
            used = later.union(*map(split.asked, split.paths[number + 1 :]))
            if relation is not None:
                relation = self._joined_path(relation, path, step, split.free, used, drops, beside[number], least)
        return None if relation is None else replace(relation, where=(*relation.where, *split.after))

    def _parts_of(self, plain: Sequence[ast.MatchClause]) -> list[Component]:
        """Return the components of plain clauses; all as one where edges, or vertices, of two of them must differ."""
        found = components(plain)
        labels: dict[int, list[tuple[int, tuple[int, ...] | None]]] = {}
        for at, component in enumerate(found):
            for number, path in component.paths:
                if plain[number].mode is ast.MatchMode.DIFFERENT_EDGES:
                    edges = (edge for edge in path.edges if isinstance(edge, ast.EdgePattern))
                    labels.setdefault(number, []).extend((at, self._labels_of(edge)) for edge in edges)
                elif plain[number].mode is not ast.MatchMode.REPEATABLE_ELEMENTS:
                    labels.setdefault(number, []).append((at, None))
        pairs = (pair for each in labels.values() for pair in itertools.combinations(each, 2))
        if not any(a != b and _overlap(some, others) for (a, some), (b, others) in pairs):
            return found
        return [Component([path for each in found for path in each.paths], set().union(*(one.names for one in found)))]

    def _labels_of(self, edge: ast.EdgePattern) -> tuple[int, ...] | None:
        return labels_of(edge, self._snapshot.names, self._text)

    def _one_by_one(
        self,
        relation: Relation,
        split: Split,
        steps: Sequence[PathStep],
        beside: Sequence[set[str]],
        parts: list[Component],
        later: set[str],
        drops: bool,
        least: Collection[str],
    ) -> Relation | None:
        """Join rows with components and paths, each from what is known by then: no product of a path's ends is made."""
        conditions, others = Conditions.of(split.plain), _apart_from(split.paths, beside)
        paths = [*zip(split.paths, steps, others, strict=True)]
        later = later.union(*others)
        free = dict(split.free)
        for part in parts:
            for name in {end for path, *_ in paths for end in (path.left, path.right)} & part.names:
                span = part.paths[0][1].span
                free[name] = ast.MatchClause(
                    tuple(part.of(name)), where=all_hold(conditions.about(name), span), span=span
                )
        while paths or parts:
            near = [part for part in parts if part.names & relation.variables.keys()]
            near = near or [part for part in parts if conditions.equate(part.names, relation.variables)][:1]
            begun = min(paths, key=lambda path: -len(_ends(path[0]) & relation.variables.keys()), default=None)
            if not near and (begun is None or not _ends(begun[0]) & relation.variables.keys()) and parts:
                part = min(parts, key=lambda part: self._size_of(part, split.plain, conditions))
                begun = min(paths, key=lambda path: self._size_of_ends(path[0], split), default=None)
                if begun is None or self._size_of_ends(begun[0], split) >= self._size_of(part, split.plain, conditions):
                    near = [part]
            if near:
                parts = [part for part in parts if part not in near]
                matches = conditions.clauses(near, split.plain, relation.variables)
            elif begun is not None:
                paths.remove(begun)
            used = later | conditions.names
            used = used.union(*(part.names for part in parts), *(split.asked(path) for path, *_ in paths))
            if near:
                relation = self._with_plain(relation, matches, used)
                continue
            assert begun is not None
            ends = _ends(begun[0]) - relation.variables.keys()
            path, step, unlike = begun
            taken = unlike & relation.variables.keys()
            found = self._joined_path(relation, path, step, free, used, drops, taken, least)
            if found is None:
                return None
            relation = found
            parts = [part for part in parts if part.edges or not part.names or not part.names <= ends]
            done = [c for end in ends for c in conditions.about(end)]
            conditions.waiting = [each for each in conditions.waiting if each[1] not in done]
        return replace(relation, where=(*relation.where, *(c for _, c in conditions.waiting), *split.after))

    def _size_of(self, part: Component, plain: Sequence[ast.MatchClause], conditions: Conditions) -> float:
        """Return how many vertices the most selective vertex of a component may be."""
        return self._fewest(Conditions([*conditions.waiting]).clauses([part], plain, ()))

    def _size_of_ends(self, path: Path, split: Split) -> float:
        """Return how many vertices the more selective end of a path may be, of those that nothing else holds."""
        return min((self._fewest([split.free[end]]) for end in _ends(path) & split.free.keys()), default=math.inf)

    def _fewest(self, matches: Sequence[ast.MatchClause]) -> float:
        """Return how many vertices the most selective vertex of plain clauses may be."""
        bound = self._bound(matches, UNIT)
        return min(estimate(self._pattern_of(bound, Wanted((), (), True, None)), self._snapshot.graph).sizes)

    def _ordered(
        self, split: Split, steps: list[PathStep], matches: Sequence[ast.MatchClause], left: Relation
    ) -> tuple[list[PathStep], list[set[str]]]:
        """Put the paths in order; return their steps, and the edges of its clause that each must not take."""
        patterns = [(number, match) for number, match in enumerate(split.plain) if match.patterns]
        bound = self._bound([match for _, match in patterns], left)
        edges: list[list[Any]] = [[] for _ in matches]
        for at, edge in enumerate(bound.edges):
            name = edge.name if edge.name in bound.edge_of else f"{OF_PATHS} edge {at}"
            edges[patterns[edge.clause][0]].append((name, edge))
        differ = [
            matches[path.clause].mode is ast.MatchMode.DIFFERENT_EDGES and step.mode != "WALK"
            for path, step in zip(split.paths, steps, strict=True)
        ]
        order = _selected_last(split.paths, steps, differ)
        split.paths[:] = [split.paths[i] for i in order]
        steps, differ = [steps[i] for i in order], [differ[i] for i in order]
        beside: list[set[str]] = [set() for _ in steps]
        for i, (path, step) in enumerate(zip(split.paths, steps, strict=True)):
            if differ[i]:
                beside[i] = {name for name, edge in edges[path.clause] if _overlap(edge.labels, step.labels)}
                edges[path.clause].append((path.edges, step))
        taken = set().union(*beside)
        steps = [
            replace(s, materialized=s.materialized or bool(b) or p.edges in taken)
            for p, s, b in zip(split.paths, steps, beside, strict=True)
        ]
        numbers = itertools.count()
        for number, match in patterns:
            split.plain[number] = replace(
                match, patterns=tuple(_named(path, numbers, taken) for path in match.patterns)
            )
        return steps, beside

    def _one_step(
        self, path: Path, match: ast.MatchClause, later: Collection[str], outside: Collection[str]
    ) -> PathStep | None:
        if any(piece.nested and not {*later}.isdisjoint(piece.names) for piece in path.pieces):
            return None  # lists of what parts inside parts bind
        materialized = not {*later}.isdisjoint(path.names)
        if path.pattern.cost is not None:
            return cost_step(path.pattern, path.pieces, match, self._text, outside, materialized=materialized)
        step = path_step(path.pattern, path.pieces, match, self._snapshot.names, self._text, materialized=materialized)
        endless = step is not None and path.pattern.selector is ALL_PATHS and step.mode == "WALK" and step.high is None
        return None if endless else step

    def _around(self, left: Relation, split: Split, later: set[str]) -> Relation:
        """Join rows with what is plain in the clauses."""
        matches = [match for match in split.plain if match.patterns]
        where = tuple(c for match in split.plain if not match.patterns for c in conjuncts(match.where))
        if not matches:
            return replace(left, where=(*left.where, *where)) if where else left
        used = later.union(free_variables(where), *({path.left, path.right} for path in split.paths))
        relation = self._with_plain(left, matches, used)
        return replace(relation, where=(*relation.where, *where))

    def _with_plain(self, left: Relation, matches: Sequence[ast.MatchClause], used: set[str]) -> Relation:
        """Join rows with the matches of plain patterns; ``used`` are the names that are wanted after it."""
        if left is UNIT:
            bound, view = self._bound(matches, UNIT), self._bindings_view()
            relation = bindings_of(bound, self._snapshot.edges, view)
            needs = needs_of(bound, used | free_variables(relation.where))
            self._add_match("match", view, bound, needs)
            return only(relation, available(bound, needs))
        keep = used | free_variables(tuple(matches))
        left = self._table(self._filtered(left, keep), keep)
        bound = self._narrowed(left, self._bound(matches, left))
        return self._joined_anew(self._with_operands(left, bound), bound, used, "join")[1]

    def _joined_path(
        self,
        relation: Relation,
        path: Path,
        step: PathStep,
        free: Mapping[str, ast.MatchClause],
        used: set[str],
        drops: bool,
        beside: Collection[str],
        least: Collection[str],
    ) -> Relation | None:
        """Join rows with the paths between their ends, from one of them, or between any.

        ``beside`` are edges, and lists of them, that they must not take; of names among ``least`` the least value will
        do where equal rows may come once (``drops``).  None where an end may be no vertex, and where
        the edges of the path's parts may not fit in memory.
        """
        ends = {path.left: "s", path.right: "t"}
        known = [end for end in ends if end in relation.variables]
        if any(relation.variables[end].type.base is not Base.NODE for end in known):
            return None
        pattern: Pattern | None = None
        of_data: DataEdges | None = None
        if step.cost is not None:
            pattern, integral, of_data = self._costed(path.pattern, path.pieces[0])
            step = replace(step, cost=replace(step.cost, integral=integral))
        elif not goes_everywhere(step, path.pieces, self._snapshot):
            pattern, several, of_data = self._edges_of(path.pattern, path.pieces)
            if several and not pattern.fits(self._snapshot.graph.vertices, self._memory):
                return None
            step = along(step, path.pattern, pattern, self._text, several=several)
        candidates: dict[str, NDArray[np.int64] | None] = {}
        bounds: dict[str, BoundPattern] = {}
        residual: tuple[ast.Expression, ...] = ()
        among: list[Given] = []
        for number, end in enumerate(ends):
            if end not in known:
                bounds[end] = bound = self._bound([free[end]], UNIT)
                candidates[end] = self._pattern_of(bound, ONE_VERTEX).vertices[0].candidates
                residual += tuple(bound.residual)
                among += (replace(given, vertex=number) for given in self._semijoins(bound))
                if bound.edge_tests:
                    among.append(self._with_loops(free[end], end, number))
        used = used | free_variables(residual)
        most = 0 if not beside or step.groups or step.count == EVERY or step.cost is not None else step.count
        if most:  # of those that are as short, the ones that take no edge that the row has
            step = replace(step, groups=step.count == 1, ties=True)
        asked = used - {*least}
        alike = asked.isdisjoint((*path.names, path.length, path.edges))
        if step.cost is not None:
            pass
        elif drops and alike and not beside and step.low <= 1 and step.count in (1, EVERY):
            wanted = _only(path, relation, known, used) if step.walks and path.length not in used else ""
            step = replace(step, count=1, groups=False, only=wanted)
        step = replace(step, source=path.left, target=path.right, bound=len(known) == len(ends) or len(ends) == 1)
        given = None
        if known:
            relation = self._table(self._filtered(relation, used | {*ends}), used | {*ends})
        if known and not step.bound:
            among.append(self._given_by(relation, [*ends].index(known[0]), [relation.variables[known[0]]]))
        elif known:
            columns = ", ".join(f"{relation.variables[end].sql} AS {ends[end]}" for end in known)
            present = all_of([f"{relation.variables[end].sql} IS NOT NULL" for end in known])
            given = f"SELECT DISTINCT {columns} FROM {relation.source} b WHERE {present}"
        elif relation is not UNIT:
            relation = self._table(self._filtered(relation, used), used)
        reads = relation.source.reads if known else frozenset[str]()
        reads = reads.union(*(one.reads for one in among), pattern.reads if pattern is not None else ())
        name, starts, targets = self._name("paths"), candidates.get(path.left), candidates.get(path.right)
        cost, unbound = path.pattern.cost, (bounds.get(path.left), bounds.get(path.right))
        found = Searched(name, step, given, reads, starts, targets, tuple(among), pattern, cost, of_data, unbound)
        self._steps.append(found)
        joined = [end for end in known if ends[end] in found.columns]
        return self._with_found(relation, path, found, joined, bool(known), residual, beside, most)

    def _with_loops(self, said: ast.MatchClause, end: str, number: int) -> Given:
        """Return the vertices that have the edges to themselves, or lack them, as is said of an end."""
        tests = [condition for condition in conjuncts(said.where) if is_edge_test(condition)]
        match = ast.MatchClause(said.patterns, where=all_hold(tests, said.span), span=said.span)
        return self._vertex_set(match, ast.Variable(end, said.span)).of(number)

    def _with_found(
        self,
        left: Relation,
        path: Path,
        found: Searched,
        joined: Sequence[str],
        started: bool,
        where: tuple[ast.Expression, ...],
        beside: Collection[str],
        most: int,
    ) -> Relation:
        """Join rows with the paths that were found, by the ends that both have; rows that were but a start go.

        A row is joined with so many paths at ``most`` (0: all) for each two ends: they are selected, shorter ones first
        and of those that are as long the ones that take no edge ``beside`` them, and then stay where they take none.
        """
        columns = found.columns
        ends = {path.left: "s", path.right: "t"}
        variables = {n: column(f"p{c}", NODE) for n, c in ends.items() if c in columns and n not in joined}
        if "length" in columns and path.pattern.variable is not None:
            variables[path.length] = column("plength", INTEGER)
        cost = path.pattern.cost
        if cost is not None and cost.variable is not None and found.path.cost is not None:
            type = INTEGER if found.path.cost.integral else FLOAT
            variables[cost.variable.name] = SqlValue(f"CAST(b.pcost AS {sql_type(type)})", type)
        if "path" in columns:
            variables |= dict(path.values())
        chosen = ", ".join(f"r.{name} AS p{name}" for name in columns)
        several = ", LATERAL (SELECT unnest(range(r.n)))" if "n" in columns and not self._whether else ""
        if left is UNIT or (started and not joined):
            rows = Source.made(f"(SELECT {chosen} FROM {found.view} r{several})", Source.of(found.view))
            return Relation(rows, variables, where)
        plain: dict[str | ast.Expression, SqlValue] = {
            name: replace(value, column=value.column[1:]) for name, value in variables.items() if value.column
        }
        if not (beside or several or "path" in columns) and len(plain) == len(variables):
            same = tuple((left.variables[name].column, ends[name]) for name in joined)
            arrays = self._by_arrays(left, found.view, same, plain, outer=False)
            if arrays is not None:
                made = {name: value.at(arrays[1][name]) for name, value in variables.items()}
                return Relation(arrays[0], {**left.variables, **made}, (*left.where, *where), left.known)
        conditions = [f"r.{ends[name]} = {left.variables[name].of('l')}" for name in joined]
        crossing = []
        for name in sorted(beside):
            other, mine = left.variables[name], edges_of("r.path").sql
            test = "list_contains" if other.type.base is Base.EDGE else "list_has_any"
            crossing.append(f"{test}({mine}, {other.of('l')})")
        crosses, selected = " OR ".join(crossing), ""
        if crossing and not most:
            conditions.append(f"NOT ({crosses})")
        elif crossing:
            first = f"row_number() OVER (PARTITION BY l.rowid, r.s, r.t ORDER BY r.length ASC, ({crosses}) ASC)"
            selected = f" QUALIFY NOT ({crosses}) AND {first} <= {most}"
        on = all_of(conditions)
        rows_joined = f"(SELECT l.*, {chosen} FROM {left.source} l JOIN {found.view} r ON {on}{several}{selected})"
        source = Source.made(rows_joined, left.source, Source.of(found.view))
        return Relation(source, {**left.variables, **variables}, (*left.where, *where), left.known)


def _outside(match: ast.MatchClause) -> Iterator[ast.Variable | None]:
    """Yield the variables of a clause but for those of repeated edges."""
    for path in match.patterns:
        yield path.variable
        yield from (node.variable for node in path.nodes)
        yield from (edge.variable for edge in path.edges if isinstance(edge, ast.EdgePattern) and edge.single)


def _ends(path: Path) -> set[str]:
    return {path.left, path.right}


def _only(
    path: Path, relation: Relation, known: Sequence[str], used: Collection[str]
) -> Literal["", "source", "target"]:
    """Return the one end that is wanted of a path of which its ends alone count; "" where both are."""
    wanted = {end for end in (path.left, path.right) if end in used or end in known}
    if len(known) == 1 and not relation.variables.keys() & {*used, *CARRIED}:
        wanted &= {*used}  # the rows are but where it starts
    if len(wanted) > 1 or path.left == path.right:
        return ""
    return "target" if path.right in wanted else "source"


def _selected_last(paths: Sequence[Path], steps: Sequence[PathStep], differ: Sequence[bool]) -> list[int]:
    """Return an order of paths in which one is selected after those without a selector whose edges it must not take."""

    def waits(i: int) -> bool:
        return differ[i] and any(
            differ[j]
            and paths[i].clause == paths[j].clause
            and _overlap(steps[i].labels, steps[j].labels)
            and paths[j].pattern.selector is ALL_PATHS
            for j in range(len(paths))
        )

    return sorted(range(len(paths)), key=lambda i: paths[i].pattern.selector is not ALL_PATHS and waits(i))


def _in_any_order(paths: Sequence[Path], beside: Sequence[set[str]]) -> bool:
    """Whether paths may be searched for in any order: none has a selector, or must not take edges that are plain."""
    chosen = [path.pattern.selector is ALL_PATHS for path in paths]
    edges = {path.edges for path, whole in zip(paths, chosen, strict=True) if whole}
    return all(not names or (whole and names <= edges) for names, whole in zip(beside, chosen, strict=True))


def _apart_from(paths: Sequence[Path], beside: Sequence[set[str]]) -> list[set[str]]:
    """Return of each path the edges of others that it must not take, whichever of two is searched for first."""
    back = [{other.edges for other, names in zip(paths, beside, strict=True) if path.edges in names} for path in paths]
    return [names | others for names, others in zip(beside, back, strict=True)]


def _overlap(some: tuple[int, ...] | None, others: tuple[int, ...] | None) -> bool:
    """Whether an edge may be of both sets of labels (None: any)."""
    return some is None or others is None or bool({*some} & {*others})


def _named(path: ast.PathPattern, numbers: Iterator[int], wanted: Collection[str]) -> ast.PathPattern:
    """Return a plain path whose edges have names where those are wanted."""
    edges: list[ast.EdgePattern | ast.Subpath] = []
    for edge in path.edges:
        name = f"{OF_PATHS} edge {next(numbers)}"
        if name in wanted and isinstance(edge, ast.EdgePattern) and edge.variable is None:
            edge = replace(edge, variable=ast.Variable(name, edge.span))
        edges.append(edge)
    return replace(path, edges=tuple(edges))
