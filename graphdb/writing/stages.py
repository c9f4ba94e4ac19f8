"""A statement that writes, cut into stages: clauses that read, and the one that writes what they found.

Everything here follows from the text (and the keys of maps among the parameters): what cannot be written by sets is
refused before anything runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from graphdb.common.errors import NotSupportedError
from graphdb.common.values.types import Base
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import parts_of, walk
from graphdb.pattern.free import SUBQUERIES, free_variables
from graphdb.semantics.patterns import names_of
from graphdb.sql.value import SqlValue
from graphdb.writing.items import assigned, in_order, reads_of, refused, target_of

WriteClause: TypeAlias = ast.CreateClause | ast.MergeClause | ast.SetClause | ast.RemoveClause | ast.DeleteClause

_WRITES = (ast.CreateClause, ast.MergeClause, ast.SetClause, ast.RemoveClause, ast.DeleteClause)


@dataclass(frozen=True, slots=True)
class Stage:
    """Clauses that read, and what is done with their rows."""

    reads: tuple[ast.ClauseNode, ...]
    write: WriteClause | None
    """None at the end of a statement that returns rows: its RETURN is the last of ``reads`` then."""
    names: tuple[str, ...] = ()
    """The variables that the writing clause, or a later one, needs of the rows."""
    values: tuple[ast.Expression, ...] = ()
    """What the writing clause needs to know of each row, in the order in which it stands there."""
    computed: tuple[ast.Expression, ...] = ()
    """The same by the rows before the clause: values take the place of properties that earlier items of a SET set."""
    later: tuple[ast.ClauseNode, ...] = ()
    """The clauses after it."""
    made: bool | None = None
    """It is ON CREATE (or ON MATCH) of the MERGE before it: only for rows that made (or found) what they asked for."""

    def name_of(self, node: ast.Expression) -> str:
        """Return the name that an expression's value goes by: the very one, for 1 equals 1.0 and true."""
        return next(f"#{i}" for i, each in enumerate(self.values) if each is node)

    @property
    def query(self) -> ast.Composite:
        """The query whose rows are kept."""
        if self.write is None:
            return ast.Composite((self.reads,))
        items = [ast.ReturnItem(ast.Variable(name), name, name) for name in self.names]
        items += [ast.ReturnItem(node, f"#{i}", f"#{i}") for i, node in enumerate(self.computed)]
        items = items or [ast.ReturnItem(ast.Literal(1), "#", "#")]
        return ast.Composite(((*self.reads, ast.ReturnClause(tuple(items), span=self.write.span)),))


_MANY = (ast.MatchClause, ast.UnwindClause, ast.CallClause, ast.ProcedureClause, ast.MergeClause)
"""Clauses that can make many rows of one."""


def writes_one_row(query: ast.Composite) -> bool:
    """Whether a statement has one row from the first clause to the last: for that the interpreter is as quick."""
    return not any(isinstance(clause, _MANY) for part in query.parts for clause in part)


def stages_of(query: ast.Composite, text: str) -> list[Stage]:
    """Cut a statement into stages.

    Raises
    ------
    NotSupportedError
        It cannot be written by sets.
    """
    if len(query.parts) != 1:
        raise NotSupportedError("a UNION of what writes is not for SQL")
    (clauses,) = query.parts
    stages: list[Stage] = []
    reads: list[ast.ClauseNode] = []
    scope: list[str] = []
    for number, clause in enumerate(clauses):
        if isinstance(clause, ast.ForeachClause):
            raise refused("FOREACH before other clauses is not for SQL", text, clause)
        if not isinstance(clause, _WRITES):
            reads.append(clause)
            scope = list(dict.fromkeys(_scope_after(clause, scope)))
            continue
        sets = _sets_of(clause, text)
        later = (*(each for each, _ in sets), *clauses[number + 1 :])
        stars = any(isinstance(part, ast.ReturnClause) and part.star for part in walk(later))
        needed = set(scope) if stars else free_variables(later)
        for pattern in _patterns_of(clause):
            if pattern.variable is not None and (stars or pattern.variable.name in needed):
                raise refused("a path that is made is not for SQL", text, pattern.variable)
        needed |= _targets_of(clause, scope, text)
        names = tuple(name for name in scope if name in needed)
        stages.append(Stage(tuple(reads), clause, names, *_values_of(clause, text), later))
        reads = []
        scope = list(dict.fromkeys(_scope_after(clause, scope)))
        for each, made in sets:
            needed = _targets_of(each, scope, text)
            names = tuple(name for name in scope if name in needed)
            stages.append(Stage((), each, names, *_values_of(each, text), made=made))
    if reads:
        stages.append(Stage(tuple(reads), None))
    return stages


def with_maps(query: ast.Composite, arguments: Mapping[str, object]) -> tuple[ast.Composite, dict[str, object]]:
    """Return a statement with maps among the parameters written out where a clause sets properties by them.

    Their values are parameters of their own, which the second part of what is returned has beside those given.
    """
    known = dict(arguments)

    def written_out(node: ast.Expression) -> ast.Expression:
        given = arguments.get(node.name) if isinstance(node, ast.Parameter) else None
        if not isinstance(node, ast.Parameter) or not isinstance(given, dict):
            return node
        items = []
        for key, value in given.items():
            name = f"{node.name}.{key}"
            known[name] = value
            key_name = ast.KeyName((ast.Word(str(key), False, node.span),), node.span)
            items.append((key_name, ast.Parameter(name, node.span)))
        return ast.MapLiteral(tuple(items), node.span)

    def of(clause: ast.ClauseNode) -> ast.ClauseNode:
        match clause:
            case ast.SetClause():
                return replace(clause, items=tuple(map(of_item, clause.items)))
            case ast.CreateClause():
                return replace(clause, patterns=tuple(map(of_pattern, clause.patterns)))
            case ast.MergeClause():
                on_match, on_create = (tuple(map(of_item, items)) for items in (clause.on_match, clause.on_create))
                return replace(clause, pattern=of_pattern(clause.pattern), on_match=on_match, on_create=on_create)
        return clause

    def of_item(item: ast.SetItem | ast.LabelItem) -> ast.SetItem | ast.LabelItem:
        return replace(item, value=written_out(item.value)) if isinstance(item, ast.SetItem) else item

    def of_pattern(pattern: ast.PathPattern) -> ast.PathPattern:
        nodes = tuple(map(of_element, pattern.nodes))
        return replace(pattern, nodes=nodes, edges=tuple(map(of_element, pattern.edges)))

    def of_element(element: Any) -> Any:
        if isinstance(element, ast.Subpath) or element.given is None:
            return element
        found = written_out(element.given)
        if not isinstance(found, ast.MapLiteral):
            return element
        own = element.properties.items if element.properties is not None else ()
        return replace(element, given=None, properties=ast.MapLiteral((*found.items, *own), found.span))

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


def elements_of(clause: ast.CreateClause) -> Iterator[ast.NodePattern | ast.EdgePattern]:
    """Yield the vertices and edges of a CREATE in the order in which they are made."""
    for pattern in clause.patterns:
        yield from pattern.nodes
        for edge in pattern.edges:
            assert isinstance(edge, ast.EdgePattern)
            yield edge


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


def _sets_of(clause: ast.ClauseNode, text: str) -> list[tuple[ast.SetClause, bool]]:
    """Return what a MERGE sets, for rows that made something and for the others.

    Nobody else sees what a row makes before it is set, so one goes after the other, as long as they only set what the
    pattern brings in.
    """
    if not isinstance(clause, ast.MergeClause):
        return []
    sets = [(items, made) for items, made in ((clause.on_create, True), (clause.on_match, False)) if items]
    for items, _ in sets:
        if any(isinstance(part, SUBQUERIES) for part in walk(items)):
            raise NotSupportedError("a subquery in what MERGE sets is not for SQL")
    return [(ast.SetClause(items, span=clause.span), made) for items, made in sets]


def _values_of(clause: WriteClause, text: str) -> tuple[tuple[ast.Expression, ...], tuple[ast.Expression, ...]]:
    """Return the expressions that a clause needs the values of: as they stand there, and by the rows before it."""
    values = tuple(_written_in(clause, text))
    return values, tuple(in_order(clause, text)) if isinstance(clause, ast.SetClause) else values


def _written_in(clause: WriteClause, text: str) -> Iterator[ast.Expression]:
    """Yield the expressions of the values that a clause writes."""
    match clause:
        case ast.MergeClause():
            yield from _written_in(creation(clause), text)
        case ast.CreateClause():
            for element in elements_of(clause):
                if element.given is not None:
                    raise refused("such a map of properties is not for SQL", text, element.given)
                for _, value in element.properties.items if element.properties is not None else ():
                    if any(isinstance(part, SUBQUERIES) for part in walk(value)):
                        raise refused(
                            "a subquery among the properties of what CREATE makes is not for SQL", text, value
                        )
                    yield value
        case ast.SetClause():
            for item in clause.items:
                if isinstance(item, ast.SetItem):
                    yield from (value for _, value in assigned(item))


_CLOSED = (ast.Literal, ast.Parameter, ast.Variable, ast.MapLiteral, ast.KeyName, ast.Word, ast.Property)


def is_closed(node: ast.Expression, known: Mapping[str, SqlValue]) -> bool:
    """Whether a value follows from the row alone, of which so much is ``known``, and nothing can go wrong."""
    read = [part.base for part in walk(node) if isinstance(part, ast.Property)]
    maps = all(isinstance(base, ast.Variable) and known[base.name].type.base is Base.MAP for base in read)
    return maps and all(isinstance(part, _CLOSED) for part in walk(node))


def _targets_of(clause: WriteClause, scope: Collection[str], text: str) -> set[str]:
    """Return the variables of a clause's vertices and edges that are there before it."""
    match clause:
        case ast.MergeClause():
            return _targets_of(creation(clause), scope, text)
        case ast.CreateClause():
            names = [element.variable for element in elements_of(clause)]
            return {variable.name for variable in names if variable is not None and variable.name in scope}
        case ast.SetClause() | ast.RemoveClause():
            found = {target_of(item, text).name for item in clause.items}
            if isinstance(clause, ast.SetClause):  # whether rows see each other's changes is asked of them
                found |= {read.variable for read in reads_of(clause, text) if read.variable is not None}
            return found
        case ast.DeleteClause():
            for value in clause.values:
                if not isinstance(value, ast.Variable):
                    raise refused("deleting what an expression yields is not for SQL", text, value)
    return free_variables(clause.values)


def used_after(clauses: Sequence[ast.ClauseNode]) -> set[str]:
    """Return the variables that clauses name otherwise than to count them."""

    def used(node: object) -> set[str]:
        if isinstance(node, ast.Variable):
            return {node.name}
        if isinstance(node, ast.FunctionCall) and node.name.lower() == "count" and len(node.arguments) == 1:
            return used(node.arguments) if not isinstance(node.arguments[0], ast.Variable) else set()
        return set().union(*map(used, parts_of(node)))

    return used(tuple(clauses))
