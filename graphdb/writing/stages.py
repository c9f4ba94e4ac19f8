"""A statement that writes, cut into stages: clauses that read, and the one that writes what they found.

Everything here follows from the text (and the keys of maps among the parameters).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from graphdb.common.caches import ByIdentity
from graphdb.grammar import syntax as ast
from graphdb.grammar.compose import is_plain
from graphdb.grammar.walk import parts_of, walk
from graphdb.pattern.failing import may_compute
from graphdb.pattern.free import LOCAL, SUBQUERIES, free_variables
from graphdb.pattern.rename import rewritten
from graphdb.relational.rewrites.lazy_branches import with_lazy_branches
from graphdb.semantics.aggregation import contains_aggregate
from graphdb.semantics.patterns import names_of
from graphdb.writing.items import RowByRow, assigned, in_order, reads_of, target_of
from graphdb.writing.joining import elements_of, joined
from graphdb.writing.naming import key_named

WriteClause: TypeAlias = (
    ast.CreateClause | ast.MergeClause | ast.SetClause | ast.RemoveClause | ast.DeleteClause | ast.ForeachClause
)

_WRITES = (
    ast.CreateClause,
    ast.MergeClause,
    ast.SetClause,
    ast.RemoveClause,
    ast.DeleteClause,
    ast.ForeachClause,
)


@dataclass(frozen=True, slots=True)
class Stage:
    """Clauses that read, and what is done with their rows."""

    reads: tuple[ast.ClauseNode, ...]
    write: WriteClause | None
    """None at the end of a statement that returns rows: its RETURN is the last of ``reads`` then."""
    scope: tuple[str, ...] = ()
    """The variables of each row before the writing clause."""
    later: tuple[ast.ClauseNode, ...] = ()
    """The clauses after it."""
    row_names: tuple[str, ...] = ()
    """The variables that the writing clause, or a later one, names."""
    by_row: WriteClause | None = None
    """The clause as it is applied row by row: variables take the place of the subqueries in its expressions."""
    asked: tuple[tuple[str, ast.Expression], ...] = ()
    """These variables, and the subqueries: they are computed for all rows before the clause writes."""
    why_rows: str | None = None
    """Why the text is such that the clause cannot be applied by sets; None where it can."""
    names: tuple[str, ...] = ()
    """The variables that the clause, applied by sets, or a later one needs of the rows."""
    values: tuple[ast.Expression, ...] = ()
    """What the clause needs to know of each row, in the order in which it stands there."""
    computed: tuple[ast.Expression, ...] = ()
    """The same by the rows before the clause: values take the place of properties that earlier items of a SET set."""
    made: bool | None = None
    """It is ON CREATE (or ON MATCH) of a MERGE: only for rows that made (or found) what they asked for."""
    inner: tuple[Stage, ...] = ()
    """The stages of FOREACH; of MERGE, what it sets."""

    def name_of(self, node: ast.Expression) -> str:
        """Return the name that an expression's value goes by: the very one, for 1 equals 1.0 and true."""
        return next(f"#{i}" for i, each in enumerate(self.values) if each is node)

    def query(self, *, by_sets: bool) -> ast.Query | ast.Composite:
        """Return the query for the rows that the clause is applied to, by sets or row by row."""
        queries = _QUERIES.get_or_make(self, dict)
        if by_sets not in queries:
            queries[by_sets] = self._query(by_sets)
        return queries[by_sets]

    def _query(self, by_sets: bool) -> ast.Query | ast.Composite:
        if self.write is None:
            return ast.Composite((self.reads,))
        items = [ast.ReturnItem(ast.Variable(name), name, name) for name in (self.names if by_sets else self.row_names)]
        if by_sets:
            items += [ast.ReturnItem(node, f"#{i}", f"#{i}") for i, node in enumerate(self.computed)]
        else:
            items += [ast.ReturnItem(node, name, name) for name, node in self.asked]
        items = items or [ast.ReturnItem(ast.Literal(1), "#", "#")]
        returns = ast.ReturnClause(tuple(items), span=self.write.span)
        matches = [clause for clause in self.reads if isinstance(clause, ast.MatchClause)]
        if matches and len(matches) == len(self.reads) and is_plain(matches, returns):
            return ast.Query(tuple(matches), returns)
        return ast.Composite(((*self.reads, returns),))

    @property
    def returned(self) -> ast.ReturnClause | None:
        """The RETURN that it is, if that makes one row of each, each by itself."""
        if self.write is not None or len(self.reads) != 1:
            return None
        (clause,) = self.reads
        if not isinstance(clause, ast.ReturnClause) or clause.distinct or clause.order_by:
            return None
        if clause.skip is not None or clause.limit is not None:
            return None
        general = any(isinstance(part, SUBQUERIES) for part in walk(clause))
        return None if general or any(contains_aggregate(item.expression) for item in clause.items) else clause

    @property
    def unwound(self) -> ast.UnwindClause | None:
        """The UNWIND that is all its reading, if that looks for nothing in the graph."""
        if len(self.reads) != 1 or not isinstance(clause := self.reads[0], ast.UnwindClause):
            return None
        asks = _ASKS.get_or_make(clause, lambda: any(isinstance(part, SUBQUERIES) for part in walk(clause)))
        return None if asks else clause


_STATEMENTS: ByIdentity[tuple[tuple[Stage, ...], ...]] = ByIdentity(256)
_ASKS: ByIdentity[bool] = ByIdentity(256)
"""Whether UNWIND clauses look for something in the graph."""
_QUERIES: ByIdentity[dict[bool, ast.Query | ast.Composite]] = ByIdentity(1024)


def stages_of_parts(query: ast.Composite) -> tuple[tuple[Stage, ...], ...]:
    """Return the stages of each part of a statement: the same ones for the same statement."""
    return _STATEMENTS.get_or_make(query, lambda: tuple(stages_of(part) for part in query.parts))


def stages_of(clauses: Sequence[ast.ClauseNode], scope: Sequence[str] = ()) -> tuple[Stage, ...]:
    """Cut the clauses of a statement into stages; they start from rows with the variables of ``scope``."""
    waiting, stages, reads = joined(clauses), list[Stage](), list[ast.ClauseNode]()
    names, named = list(scope), _Named()
    while waiting:
        clause = waiting.pop(0)
        if not isinstance(clause, _WRITES):
            reads.append(clause)
            names = list(dict.fromkeys(_scope_after(clause, names)))
            continue
        if isinstance(clause, ast.CreateClause):
            clause, then = _asking_later(clause, names)
            waiting[:0] = then
        stages.append(_stage(tuple(reads), clause, tuple(names), tuple(waiting), named))
        reads, names = [], list(dict.fromkeys(_scope_after(clause, names)))
    if reads:
        stages.append(Stage(tuple(reads), None))
    return tuple(stages)


class _Named:
    """What clauses name: each is walked once, however many stands before it."""

    def __init__(self) -> None:
        self._variables: dict[int, set[str]] = {}
        self._stars: dict[int, bool] = {}

    def variables(self, clauses: Sequence[ast.ClauseNode]) -> set[str]:
        """Return the free variables of some clauses."""
        for clause in clauses:
            if id(clause) not in self._variables:
                self._variables[id(clause)] = free_variables(clause)
        return set().union(*(self._variables[id(clause)] for clause in clauses))

    def stars(self, clauses: Sequence[ast.ClauseNode]) -> bool:
        """Whether one of them takes all names there are."""
        for clause in clauses:
            if id(clause) not in self._stars:
                found = (part for part in walk(clause) if isinstance(part, ast.ReturnClause))
                self._stars[id(clause)] = any(part.star for part in found)
        return any(self._stars[id(clause)] for clause in clauses)


def _stage(
    reads: tuple[ast.ClauseNode, ...],
    clause: WriteClause,
    scope: tuple[str, ...],
    later: tuple[ast.ClauseNode, ...],
    named: _Named,
) -> Stage:
    inner = _inner(clause, scope)
    by_row: WriteClause = clause
    asked: tuple[tuple[str, ast.Expression], ...] = ()
    if isinstance(clause, ast.MergeClause) and any(isinstance(part, SUBQUERIES) for part in walk(_sets(clause))):
        by_row = replace(clause, on_create=(), on_match=())  # what they ask, they ask of what was merged
    if not isinstance(clause, ast.ForeachClause):
        by_row, asked = _asked(by_row)
    after = (*(stage.write for stage in inner if stage.made is not None and stage.write is not None), *later)
    stars = named.stars(later)
    used = set(scope) if stars else named.variables((clause, *after))
    stage = Stage(
        reads, clause, scope, after, tuple(name for name in scope if name in used), by_row, asked, inner=inner
    )
    if isinstance(clause, ast.ForeachClause):
        return stage
    try:
        needed = set(scope) if stars else named.variables(after)
        for pattern in _patterns_of(clause):
            if pattern.variable is not None and (stars or pattern.variable.name in needed):
                raise RowByRow("a path that is made has a name")
        needed |= _targets_of(clause, scope)
        values, computed = _values_of(clause)
    except RowByRow as why:
        return replace(stage, why_rows=str(why))
    names = tuple(name for name in scope if name in needed)
    return replace(stage, names=names, values=values, computed=computed)


def _inner(clause: WriteClause, scope: Sequence[str]) -> tuple[Stage, ...]:
    """Return the stages inside a clause: of FOREACH, and what a MERGE sets for rows that made something, or did not.

    Nobody else sees what a row makes before it is set, so one goes after the other, as long as they only set what the
    pattern brings in.
    """
    match clause:
        case ast.ForeachClause():
            return stages_of((ast.UnwindClause(clause.source, clause.variable), *clause.updates), scope)
        case ast.MergeClause():
            names = tuple(dict.fromkeys(_scope_after(clause, scope)))
            sets = ((items, made) for items, made in ((clause.on_create, True), (clause.on_match, False)) if items)
            return tuple(
                replace(_stage((), ast.SetClause(items, span=clause.span), names, (), _Named()), made=made)
                for items, made in sets
            )
    return ()


def _sets(clause: ast.MergeClause) -> tuple[ast.SetItem | ast.LabelItem, ...]:
    return (*clause.on_create, *clause.on_match)


def _asked(clause: Any) -> tuple[Any, tuple[tuple[str, ast.Expression], ...]]:
    """Return a clause with variables in the place of its subqueries, and these.

    One that sees the items of a list goes with the whole expression over the list.  What ``CASE`` asks for of some rows
    only is looked up for these.
    """
    if not any(isinstance(part, SUBQUERIES) for part in walk(clause)):
        return clause, ()
    clause = with_lazy_branches(clause, may_compute)
    found: list[tuple[str, ast.Expression]] = []

    def variable(part: object) -> object:
        if isinstance(part, SUBQUERIES) or (isinstance(part, LOCAL) and _asks_of_items(part)):
            found.append((f"#asked{len(found)}", part))
            return ast.Variable(found[-1][0], part.span)
        return part if isinstance(part, ast.Literal) else None

    changed = rewritten(clause, variable)
    return changed, tuple(found)


def _asks_of_items(node: Any) -> bool:
    """Whether a subquery inside an expression over a list names the items."""
    names = {node.variable.name, *([node.accumulator.name] if isinstance(node, ast.Reduce) else [])}
    return any(isinstance(part, SUBQUERIES) and free_variables(part) & names for part in walk(node))


def _asking_later(
    clause: ast.CreateClause, scope: Collection[str]
) -> tuple[ast.CreateClause, tuple[ast.SetClause, ...]]:
    """Return a CREATE without the properties whose subqueries name what it makes, and what sets them after it."""
    if not any(isinstance(part, SUBQUERIES) for part in walk(clause)):
        return clause, ()
    new = {name for pattern in clause.patterns for name in names_of(pattern)} - set(scope)
    items: list[ast.SetItem] = []

    def asks(node: ast.Expression) -> bool:
        return any(isinstance(part, SUBQUERIES) and free_variables(part) & new for part in walk(node))

    def without(element: Any) -> Any:
        found = [] if element.properties is None else [(k, v) for k, v in element.properties.items if asks(v)]
        if not found:
            return element
        name = element.variable or ast.Variable(f" element{len(items)}", element.span)
        items.extend(ast.SetItem(ast.Property(name, key), value, span=value.span) for key, value in found)
        left = tuple(item for item in element.properties.items if item not in found)
        return replace(element, variable=name, properties=replace(element.properties, items=left))

    patterns = tuple(
        replace(each, nodes=tuple(map(without, each.nodes)), edges=tuple(map(without, each.edges)))
        for each in clause.patterns
    )
    if not items:
        return clause, ()
    return replace(clause, patterns=patterns), (ast.SetClause(tuple(items), span=clause.span),)


def with_maps(query: ast.Composite, arguments: Mapping[str, object]) -> tuple[ast.Composite, dict[str, object]]:
    """Return a statement with maps among the parameters written out where a clause sets properties by them.

    Their values are parameters of their own, which the second part of what is returned has beside those given.
    """
    known = dict(arguments)
    if not any(isinstance(given, dict) for given in arguments.values()):
        return query, known

    def written_out(node: ast.Parameter, given: Mapping[str, object]) -> ast.MapLiteral:
        items = []
        for key, value in given.items():
            known[name := f"{node.name}.{key}"] = value
            items.append((key_named(str(key), node), ast.Parameter(name, node.span)))
        return ast.MapLiteral(tuple(items), node.span)

    def change(part: object) -> object:
        node = part.value if isinstance(part, ast.SetItem) else getattr(part, "given", None)
        given = arguments.get(node.name) if isinstance(node, ast.Parameter) else None
        if not isinstance(node, ast.Parameter) or not isinstance(given, dict):
            return part if isinstance(part, ast.Expression) else None
        if isinstance(part, ast.SetItem):
            return replace(part, value=written_out(node, given))
        assert isinstance(part, (ast.NodePattern, ast.EdgePattern))
        own = part.properties.items if part.properties is not None else ()
        found = written_out(node, given)
        return replace(part, given=None, properties=ast.MapLiteral((*found.items, *own), found.span))

    def of(clause: ast.ClauseNode) -> ast.ClauseNode:
        return rewritten(clause, change) if isinstance(clause, _WRITES) else clause

    return replace(query, parts=tuple(tuple(map(of, part)) for part in query.parts)), known


def _scope_after(clause: ast.ClauseNode, scope: Sequence[str]) -> Iterator[str]:
    """Yield the variables there are after a clause."""
    returns = clause.returns if isinstance(clause, ast.WithClause) else clause
    if isinstance(returns, ast.ReturnClause):
        yield from scope if returns.star else ()
        yield from (item.alias or item.text for item in returns.items)
        return
    yield from scope
    if isinstance(clause, ast.UnwindClause):
        yield clause.variable.name
    if isinstance(clause, (ast.CallClause, ast.ProcedureClause)):
        yield from clause.columns
    for pattern in clause.patterns if isinstance(clause, ast.MatchClause) else _patterns_of(clause):
        yield from names_of(pattern)


# --- what a writing clause names -------------------------------------------------------------------------------


def _patterns_of(clause: ast.ClauseNode) -> tuple[ast.PathPattern, ...]:
    """Return the patterns that a clause makes."""
    match clause:
        case ast.CreateClause():
            return clause.patterns
        case ast.MergeClause():
            return (clause.pattern,)
    return ()


def creation(clause: ast.MergeClause) -> ast.CreateClause:
    """Return what a MERGE does for a row that finds nothing."""
    return ast.CreateClause((clause.pattern,), span=clause.span)


def _values_of(clause: WriteClause) -> tuple[tuple[ast.Expression, ...], tuple[ast.Expression, ...]]:
    """Return the expressions that a clause needs the values of: as they stand there, and by the rows before it."""
    values = tuple(_written_in(clause))
    return values, tuple(in_order(clause)) if isinstance(clause, ast.SetClause) else values


def _written_in(clause: WriteClause) -> Iterator[ast.Expression]:
    """Yield the expressions of the values that a clause writes."""
    match clause:
        case ast.MergeClause():
            yield from _written_in(creation(clause))
        case ast.CreateClause():
            for element in elements_of(clause):
                if element.given is not None:
                    raise RowByRow("an expression yields all properties of what is made")
                yield from (value for _, value in (() if element.properties is None else element.properties.items))
        case ast.SetClause():
            for item in clause.items:
                if isinstance(item, ast.SetItem):
                    yield from (value for _, value in assigned(item))


def _targets_of(clause: WriteClause, scope: Collection[str]) -> set[str]:
    """Return the variables of a clause's vertices and edges that are there before it."""
    match clause:
        case ast.MergeClause():
            return _targets_of(creation(clause), scope)
        case ast.CreateClause():
            names = [element.variable for element in elements_of(clause)]
            return {variable.name for variable in names if variable is not None and variable.name in scope}
        case ast.SetClause() | ast.RemoveClause():
            found = {target_of(item).name for item in clause.items}
            if isinstance(clause, ast.SetClause):  # whether rows see each other's changes is asked of them
                found |= {read.variable for read in reads_of(clause) if read.variable is not None}
            return found
        case ast.DeleteClause():
            if not all(isinstance(value, ast.Variable) for value in clause.values):
                raise RowByRow("an expression yields what is deleted")
            return free_variables(clause.values)
    return set()


def used_after(clauses: Sequence[ast.ClauseNode]) -> set[str]:
    """Return the variables that clauses name otherwise than to count them."""

    def used(node: object) -> set[str]:
        if isinstance(node, ast.Variable):
            return {node.name}
        if isinstance(node, ast.FunctionCall) and node.name.lower() == "count" and len(node.arguments) == 1:
            return used(node.arguments) if not isinstance(node.arguments[0], ast.Variable) else set()
        return set().union(*map(used, parts_of(node)))

    return used(tuple(clauses))
