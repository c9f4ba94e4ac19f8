"""Paths of bounded length: the rows of each version of the pattern, one version after the other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from graphdb.common.errors import NotSupportedError, TypeMismatchError
from graphdb.common.values.types import EDGE, INTEGER, PATH, Type, list_of, sql_type
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.bind import BoundPattern, bind, conjuncts, variables_in
from graphdb.pattern.graph import Wanted
from graphdb.pattern.paths.lengths import OF_PATHS, all_hold, length_name, with_lengths, without
from graphdb.pattern.paths.unroll import Trace, Version, lists_of, longest, path_names, unroll
from graphdb.pattern.rename import renamed
from graphdb.relational.edges.parallel_edges import resolve_edges
from graphdb.relational.filtering.candidates import variable
from graphdb.relational.path_patterns.step import code_of
from graphdb.relational.paths.base import (
    FIXED,
    Part,
    PathBase,
    PreparedPaths,
    items_of,
    unnamed,
)
from graphdb.relational.projection.compile import ProjectionCompiler
from graphdb.relational.projection.late import BesideBindings, named_in
from graphdb.relational.projection.relation import BINDINGS, Source, bindings_of
from graphdb.relational.projection.return_clause import named_beside, wanted, window_of
from graphdb.relational.projection.sql import counted
from graphdb.relational.query import Prepared
from graphdb.relational.rewrites.path_items import PathItems, written_out
from graphdb.relational.vectors.algebra import Union
from graphdb.semantics.aggregation import contains_aggregate
from graphdb.sql.joined import common
from graphdb.sql.parameters import Parameters
from graphdb.sql.value import SqlValue, bases_of, column
from graphdb.storage.arrays.arrow import table_of

Ids = NDArray[np.int64]
Matches = tuple[ast.MatchClause, ...]


@dataclass(frozen=True, slots=True)
class Unrolled(PreparedPaths):
    """A query whose paths are unrolled; its parts are the versions, shortest first."""

    parts: tuple[Part, ...]

    def describe(self, label: Callable[[int], str]) -> Iterator[str]:
        """The versions in words."""
        edges = ", ".join(str(len(part.bound.edges)) for part in self.parts)
        how = "counted, not enumerated" if self.wanted.count_only else "matched"
        yield f"paths of bounded length: {len(self.parts)} plain patterns of {edges} edges, each planned and {how}"


class UnrolledRun(PathBase):
    """Prepares and runs queries whose paths have bounds."""

    def prepare_unrolled(self, matches: Matches, returns: ast.ReturnClause) -> Prepared | None:
        """Plan each version, and write the SQL after them; None where it takes more than plain patterns."""
        items = PathItems(path_names(matches), lists_of(matches), 0)
        if not items.mentioned((matches, returns)):
            return self._prepare_versions(matches, returns, written=False)
        try:
            return self._prepare_versions(matches, returns, written=True)
        except (NotSupportedError, TypeMismatchError):  # SQL may know what is made of lists, but not of their items
            return self._prepare_versions(matches, returns, written=False)

    def _prepare_versions(self, matches: Matches, returns: ast.ReturnClause, *, written: bool) -> Prepared | None:
        """The same; ``written`` if what is asked of all vertices or edges of a path is asked of each of them."""
        paths, asked = path_names(matches), lists_of(matches)
        matches, after = without(matches, paths | asked)
        versions = unroll(matches, variables_in((returns.items, returns.order_by, after)))
        if versions is None:
            return None
        first, late = versions[0], set[str]()
        lists, traced = set(first.lists), variables_in((returns, after)) & (paths | asked)
        computed: list[dict[str, ast.Expression]] = [{} for _ in versions]
        if written:
            of_paths = PathItems(paths, lists, max(longest(version) for version in versions))
            versions, after = _with_conditions(versions, after, of_paths)
            returns, after, computed = _with_items(versions, returns, after, of_paths)
        bounds = [bind(version.matches, self._snapshot.names, self._text) for version in versions]
        alone = len(versions) == 1 and _as_written(returns, after, paths, lists)
        for bound, mine in zip(bounds, computed, strict=True):
            later = returns if alone else tuple(mine.values())
            resolve_edges(self._snapshot, self._text, self._arguments, bound, later)
        outer, same = _outer(versions, bounds)
        if any(outer.vertices[outer.vertex_of[name]].kinds for name in same if name in outer.vertex_of):
            return None
        edges = unnamed(bounds[0].edge_of)
        items = items_of(returns, {*outer.vertex_of, *edges, *paths, *lists})
        items, returns, after = with_lengths((items, returns, after), paths)
        outer.residual = list(after)
        kinds: dict[Type, set[str]] = {EDGE: edges, PATH: paths, list_of(EDGE): lists}
        kinds[INTEGER] = {length_name(name) for name in paths}
        # A user's names are not those of columns: SQL does not distinguish capitals, and a count is a column, too.
        named = sorted({*outer.vertex_of, *(name for names in kinds.values() for name in names)})
        at = {name: f"c{i}" for i, name in enumerate(named)}
        columns = {name: variable(outer.vertices[i], at[name]) for name, i in outer.vertex_of.items()}
        columns |= {name: column(at[name], type) for type, names in kinds.items() for name in names}
        if returns.limit is not None and _as_written(returns, after, paths, lists):
            late = paths
        most = {name: max(len(version.paths[name].edges) for version in versions) for name in late}
        columns |= {name: _of_columns(at[name], most[name]) for name in late}
        window = window_of(returns, self._snapshot, self._arguments, self._text)
        needs = wanted(returns, items, outer, window)
        tested = any(bound.residual for bound in bounds)
        conditions = BoundPattern(residual=outer.residual)
        if needs.count_only and not tested:
            projection = counted(items, window)
            parts = tuple(Part(bound, self._planned(bound, needs), needs) for bound in bounds)
            return Unrolled(None, needs, projection, outer, parts)
        needs = replace(needs, limit=None if tested else needs.limit)
        if needs.count_only:
            needs = replace(needs, count_only=False, duplicates="count")
        used = variables_in((items, returns.order_by, after)) & columns.keys()
        if any(map(_to_literals, versions, bounds, repeat(used | traced))):
            return None
        if alone and not any(info.exists for info in bounds[0].vertices):
            return self._prepare_alone(versions[0], bounds[0], needs, returns, items, after, window)
        parameters = Parameters()
        planned, sources, values = list[Part](), list[Source](), list[dict[str, SqlValue]]()
        for number, (version, bound) in enumerate(zip(versions, bounds, strict=True)):
            wanted_at = {name: at[name] for name in used}
            part, rows, found = self._part(
                version, bound, needs, wanted_at, f"{FIXED}{number}", parameters, late, computed[number]
            )
            planned.append(part)
            sources.append(rows)
            values.append(found)
        source, alike = _together(sources, [*computed[0]], values)
        several = needs.duplicates == "count"
        compiler = self._projecting(conditions, source, columns | alike, parameters, counted=several)
        projection = compiler.project(returns, items, window, written=True)
        return Unrolled(None, needs, projection, outer, tuple(planned))

    def _prepare_alone(
        self,
        version: Version,
        bound: BoundPattern,
        needs: Wanted,
        returns: ast.ReturnClause,
        items: tuple[ast.ReturnItem, ...],
        after: Collection[ast.Expression],
        window: tuple[int, int | None],
    ) -> Prepared:
        """Prepare the only version as what it is, one plain pattern: its paths are put together of the rows left."""
        relation = bindings_of(bound, self._snapshot.edges)
        known, where = relation.variables, (*bound.residual, *after)
        variables = dict(known) | {name: known[other] for name, other in version.same.items() if other in known}
        for name, trace in version.paths.items():
            variables[name] = _path(trace, bound, known)
            variables[length_name(name)] = _length(trace)
        for name, edges in version.lists.items():
            variables[name] = SqlValue(_edge_list(edges, known), list_of(EDGE))
        several, beside = needs.duplicates == "count", BesideBindings(self._snapshot)
        compiler = ProjectionCompiler(
            self._snapshot,
            self._text,
            self._arguments,
            replace(
                relation,
                variables=variables,
                where=where,
                matches="b.n" if several else None,
                number="n" if several else None,
            ),
            bound,
            beside=beside,
        )
        projection = compiler.project(returns, items, window, written=True)
        parts = (tuple(item.expression for item in items), returns.order_by, where)
        own = _with_facts(_needed(version, bound, needs, (), parts), bound, parts)
        return Prepared(self._planned(bound, own), own, projection, bound, beside=beside.columns)

    def _part(
        self,
        version: Version,
        bound: BoundPattern,
        needs: Wanted,
        used: Mapping[str, str],
        view: str,
        parameters: Parameters,
        late: set[str],
        computed: Mapping[str, ast.Expression],
    ) -> tuple[Part, Source, dict[str, SqlValue]]:
        """Plan one version, and return, of its bindings, a view, rows of what is ``used``, names by columns.

        Paths that are put together of the rows left, ``late``, are the columns of :func:`_of_columns`.  What is
        ``computed`` are columns of their names, whose values are returned, too.
        """
        traces = {name: trace for name, trace in version.paths.items() if name in used}
        lists = {name: edges for name, edges in version.lists.items() if name in used}
        lengths = {length_name(path): len(trace.edges) for path, trace in version.paths.items()}

        def chosen(known: Mapping[str, SqlValue]) -> dict[str, SqlValue]:
            found = {name: known[version.same.get(name, name)] for name in sorted(used) if name in known}
            found |= {name: known[other] for name, other in version.same.items() if name in used}
            whole = {name: _materialized(trace, bound, known) for name, trace in traces.items() if name not in late}
            found |= {name: SqlValue(sql, PATH) for name, sql in whole.items()}
            found |= {name: SqlValue(_edge_list(edges, known), list_of(EDGE)) for name, edges in lists.items()}
            chosen = {used[name]: value for name, value in found.items()}
            for name in sorted(late & traces.keys()):
                chosen |= {
                    at: SqlValue(sql, INTEGER) for at, sql in _parts(used[name], traces[name], bound, known).items()
                }
            counted = {"n": column("n", INTEGER)} if needs.duplicates == "count" else {}
            return chosen | counted

        beside = BesideBindings(self._snapshot)
        further = {length_name(path): _length(trace) for path, trace in version.paths.items()}
        compiler = self._projecting(bound, Source.of(view), further, parameters, beside=beside)
        parts = tuple(computed.values())
        asked: dict[str, ast.Expression] = {used[name]: ast.Literal(n) for name, n in lengths.items() if name in used}
        asked |= {_computed_at(i): node for i, node in enumerate(parts)}
        if not (used or asked or needs.duplicates == "count"):
            asked["one"] = ast.Literal(1)
        rows, values = compiler.relation(chosen, asked)
        own = _with_facts(_needed(version, bound, needs, used, parts), bound, parts)
        return Part(bound, self._planned(bound, own), own, beside.columns), rows, values

    def _of_there(self, prepared: Prepared, there: Mapping[str, Ids]) -> Prepared:
        """Return a query with plans of now, of each version where it has several."""
        if not isinstance(prepared, Unrolled):
            return super()._of_there(prepared, there)
        plans = (replace(part, plan=self._planned(part.bound, part.needs, there)) for part in prepared.parts)
        return replace(prepared, parts=tuple(plans))

    def count_unrolled(self, prepared: Unrolled) -> int:
        """Count the matches of all versions."""
        self.control = control = self.new_control()
        return sum(self._count(part.plan, part.needs, part.bound, control) for part in prepared.parts)

    @contextmanager
    def unrolled(self, prepared: Unrolled) -> Iterator[None]:
        """Run the versions; within the block their bindings are visible to SQL."""
        if prepared.wanted.count_only:
            count = np.array([self.count_unrolled(prepared)], np.int64)
            with self._snapshot.connection.view(BINDINGS, table_of({"count": count})):
                yield
            return
        limit, rows = prepared.wanted.limit, 0
        with ExitStack() as stack:
            for number, part in enumerate(prepared.parts):
                enough = limit is not None and rows >= limit
                matched = self._matched(part, f"{FIXED}{number}", len(prepared.parts), unasked=enough)
                rows += matched.rows
                stack.enter_context(matched.visible())
                if (table := matched.table) is not None:
                    self._tables[f"{FIXED}{number}"] = table
                    stack.callback(self._tables.pop, f"{FIXED}{number}", None)
            yield


def _to_literals(version: Version, bound: BoundPattern, used: Collection[str]) -> bool:
    """Whether a path that is wanted leads to a literal."""
    traces = (trace for name, trace in version.paths.items() if name in used)
    return any(bound.vertices[bound.vertex_of[vertex]].kinds for trace in traces for vertex in trace.vertices)


def _with_conditions(
    versions: list[Version], after: tuple[ast.Expression, ...], of_paths: PathItems
) -> tuple[list[Version], tuple[ast.Expression, ...]]:
    """Return versions with those of some conditions that ask nothing but what is on a path, and the others."""
    found, rest = [list[ast.Expression]() for _ in versions], []
    for condition in after:
        each = [of_paths.change(condition, _writer(version)) for version in versions]
        if any(map(of_paths.mentioned, each)):
            rest.append(condition)
            continue
        for mine, version, one in zip(found, versions, each, strict=True):
            mine.append(renamed(one, version.same))
    further = []
    for mine, version in zip(found, versions, strict=True):
        *clauses, last = version.matches
        last = replace(last, where=all_hold([*conjuncts(last.where), *mine], last.span))
        further.append(replace(version, matches=(*clauses, last)) if mine else version)
    return further, tuple(rest)


def _with_items(
    versions: list[Version], returns: ast.ReturnClause, after: tuple[ast.Expression, ...], of_paths: PathItems
) -> tuple[ast.ReturnClause, tuple[ast.Expression, ...], list[dict[str, ast.Expression]]]:
    """Return what follows the match without what is asked of all vertices or edges of a path.

    Of one version it stands there for each of them, of several it is a variable, and returned for each version.  What
    LIMIT leaves a few rows of stays as it is.
    """
    computed: list[dict[str, ast.Expression]] = [{} for _ in versions]
    named: dict[ast.Expression, ast.Variable] = {}
    if len(versions) == 1:
        return *of_paths.change((returns, after), _writer(versions[0])), computed

    def put(node: ast.Expression) -> ast.Expression:
        if node not in named:
            named[node] = ast.Variable(f"{OF_PATHS}{len(named)}", node.span)
        return named[node]

    ordered = [returns.items[at].expression for at in named_in(returns.order_by, returns.items)]
    few = returns.limit is not None and not of_paths.mentioned(with_lengths(tuple(ordered), of_paths.paths))
    if not (few and _as_written(returns, after, {*of_paths.paths}, {*of_paths.lists})):
        returns, after = of_paths.change((returns, after), put)
    for version, mine in zip(versions, computed, strict=True):
        for node, name in with_lengths(tuple(named.items()), of_paths.paths):
            mine[name.name] = renamed(_writer(version)(node), version.same)
    return returns, after, computed


def _writer(version: Version) -> Callable[[ast.Expression], ast.Expression]:
    return lambda node: written_out(node, version.paths, version.lists)


def _computed_at(number: int) -> str:
    """The column of rows of versions with what was computed of each."""
    return f"x{number}"


def _together(
    sources: Sequence[Source], names: Sequence[str], values: Sequence[Mapping[str, SqlValue]]
) -> tuple[Source, dict[str, SqlValue]]:
    """Return the rows of all versions, in which what was computed of each is of one type, and that by ``names``."""
    chosen: list[list[str]] = [[] for _ in sources]
    columns: dict[str, SqlValue] = {}
    for number, name in enumerate(names):
        at = _computed_at(number)
        found = [value.made(f"u.{at}", bases=value.bases) for value in (each[at] for each in values)]
        same, type = common(found)
        for mine, sql in zip(chosen, same, strict=True):
            mine.append(f"{sql} AS {at}")
        columns[name] = column(at, type, bases=bases_of(found))
    selects = [source.sql for source in sources]
    if columns:
        pairs = zip(selects, chosen, strict=True)
        selects = [f"SELECT u.* REPLACE ({', '.join(mine)}) FROM ({select}) u" for select, mine in pairs]
    parts = [source.rows for source in sources]
    alike = all(len({each[_computed_at(number)].type for each in values}) == 1 for number in range(len(names)))
    united = Union(tuple(part for part in parts if part is not None)) if alike and None not in parts else None
    return Source.made(f"({' UNION ALL BY NAME '.join(selects)})", rows=united), columns


def _with_facts(needs: Wanted, bound: BoundPattern, parts: object) -> Wanted:
    """Return what a match must deliver, with the properties of edges that some syntax asks for."""
    facts = {node: number for number, choice in bound.choices.items() for node in choice.facts}
    asked = {facts[part] for part in walk(parts) if isinstance(part, ast.Property) and part in facts}
    return replace(needs, facts=tuple(sorted(asked.difference(needs.edges))))


def _edge_list(edges: Sequence[str], known: Mapping[str, SqlValue]) -> str:
    """SQL for a list of edges that are bindings."""
    return f"CAST([{', '.join(known[edge].sql for edge in edges)}] AS {sql_type(list_of(EDGE))})"


def _length(trace: Trace) -> SqlValue:
    """Return how many edges a path has."""
    return SqlValue(f"CAST({len(trace.edges)} AS BIGINT)", INTEGER)


def _outer(versions: list[Version], bounds: list[BoundPattern]) -> tuple[BoundPattern, set[str]]:
    """The user's own vertices, each with what a version knows of it, and those that may be another one."""
    same = {name for version in versions for pair in version.same.items() for name in pair}
    outer = BoundPattern()
    for name in sorted(unnamed(name for bound in bounds for name in bound.vertex_of)):
        bound = next(bound for bound in bounds if name in bound.vertex_of)
        outer.vertex_of[name] = len(outer.vertices)
        outer.vertices.append(bound.vertices[bound.vertex_of[name]])
    for name, other in [pair for version in versions for pair in version.same.items()]:
        if name not in outer.vertex_of and other in outer.vertex_of and not name.startswith("#"):
            outer.vertex_of[name] = len(outer.vertices)
            outer.vertices.append(replace(outer.vertices[outer.vertex_of[other]], name=name))
    return outer, same


def _as_written(returns: ast.ReturnClause, after: object, paths: set[str], lists: set[str]) -> bool:
    """Whether paths and lists of edges, but for lengths, are needed of the rows of a result only, and once of each.

    What is made of them is made of columns where they are put together before, and of each part of it here.
    """
    items, order, where = with_lengths((returns.items, returns.order_by, after), paths)
    named = paths | lists
    if returns.distinct or any(contains_aggregate(item.expression) for item in items):
        return named.isdisjoint(variables_in((items, order, where)))
    if returns.limit is None:
        items = tuple(item for item in items if not isinstance(item.expression, ast.Variable))
        return named.isdisjoint(variables_in((items, order, where)))
    return named.isdisjoint(variables_in((order, where)))


def _needed(version: Version, bound: BoundPattern, needs: Wanted, used: Collection[str], parts: object = ()) -> Wanted:
    """Return what a version's match must deliver for the names that are used after it, and for some syntax."""
    used = {*used, *named_beside(parts, {node for choice in bound.choices.values() for node in choice.facts})}
    traces = [trace for name, trace in version.paths.items() if name in used]
    names = {version.same.get(name, name) for name in used} | variables_in(tuple(bound.residual))
    names |= {name for trace in traces for name in (*trace.vertices, *trace.edges)}
    names |= {name for other, edges in version.lists.items() if other in used for name in edges}
    edges = {number for number, edge in enumerate(bound.edges) if edge.name in names}
    vertices = {i for i, info in enumerate(bound.vertices) if info.name in names}
    vertices |= {end for edge in edges for end in (bound.edges[edge].source, bound.edges[edge].target)}
    return replace(needs, vertices=tuple(sorted(vertices)), edges=tuple(sorted(edges)), by_label=False)


def _codes(trace: Trace, bound: BoundPattern) -> list[SqlValue]:
    """Return the codes of a path's edges, each with its direction as the vertex before it sees it."""
    return [
        code_of(bound, bound.edge_of[edge], before) for edge, before in zip(trace.edges, trace.vertices, strict=False)
    ]


def _path(trace: Trace, bound: BoundPattern, known: Mapping[str, SqlValue]) -> SqlValue:
    """Return a path whose vertices and edges are bindings."""
    codes = [code.column for code in _codes(trace, bound)]
    vertices = [known[vertex].column for vertex in trace.vertices]
    parts = tuple(part for part in (*vertices, *codes) if part is not None)
    whole = len(parts) == len(vertices) + len(codes)
    return SqlValue(_materialized(trace, bound, known), PATH, parts=parts if whole else ())


def _parts(name: str, trace: Trace, bound: BoundPattern, known: Mapping[str, SqlValue]) -> dict[str, str]:
    """Return the vertices, codes and length of a path of bindings as columns, of names that begin so: SQL."""
    found = {f"{name}v{i}": f"CAST({known[vertex].sql} AS BIGINT)" for i, vertex in enumerate(trace.vertices)}
    found |= {f"{name}e{i}": f"CAST({code.sql} AS BIGINT)" for i, code in enumerate(_codes(trace, bound))}
    return found | {f"{name}n": f"CAST({len(trace.edges)} AS BIGINT)"}


def _of_columns(name: str, most: int) -> SqlValue:
    """Return a path of ``most`` edges, or fewer, whose vertices, codes and length are columns (:func:`_parts`)."""
    vertices = ", ".join(f"b.{name}v{i}" for i in range(most + 1))
    codes = ", ".join(f"b.{name}e{i}" for i in range(most))
    there = f"[{vertices}][1:b.{name}n + 1]", f"CAST([{codes}] AS BIGINT[])[1:b.{name}n]"
    return SqlValue(f"struct_pack(vertices := {there[0]}, codes := {there[1]})", PATH)


def _materialized(trace: Trace, bound: BoundPattern, known: Mapping[str, SqlValue]) -> str:
    """SQL for a path whose vertices and edges are bindings."""
    codes = ", ".join(code.sql for code in _codes(trace, bound))
    vertices = ", ".join(f"CAST({known[vertex].sql} AS BIGINT)" for vertex in trace.vertices)
    return f"struct_pack(vertices := [{vertices}], codes := CAST([{codes}] AS BIGINT[]))"
