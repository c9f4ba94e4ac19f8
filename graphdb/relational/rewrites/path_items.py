"""What is asked of all vertices or edges of a path whose length is known, as expressions of each of these.

``reduce(s = 0, r IN relationships(p) | s + r.w)`` of two edges is ``0 + e.w + f.w``, ``[n IN nodes(p) | n.name]`` is a
list of three names, ``all(…)`` is an AND.  So properties are columns beside bindings, as those of any vertex or edge
are, and conditions are of single edges: no path is put together, and no list is taken apart to rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import mapped, replaced, walk
from graphdb.pattern.free import LOCAL, SUBQUERIES, free_variables
from graphdb.pattern.paths.lengths import length_name
from graphdb.pattern.paths.unroll import Trace
from graphdb.relational.rewrites.written_lists import calls_anew, counted, quantified

Node = TypeVar("Node")

_MOST_STEPS = 64
"""Times that a step of ``reduce`` is written down, at most: it may name what was found so far more than once."""

_VERTICES, _EDGES = ("nodes",), ("relationships", "edges")


@dataclass(frozen=True, slots=True)
class PathItems:
    """The variables of paths and of lists of edges, whose longest have so many edges."""

    paths: Collection[str]
    lists: Collection[str]
    longest: int
    whole: bool = False
    """Whether lists as they are, and lengths, are written out, too: then nothing has to be a path."""

    def mentioned(self, node: object) -> bool:
        """Whether a piece of syntax names one of these."""
        names = free_variables(node)
        return not (names.isdisjoint(self.paths) and names.isdisjoint(self.lists))

    def change(self, node: Node, put: Callable[[ast.Expression], ast.Expression]) -> Node:
        """Return syntax in which ``put`` says what stands in the place of what can be written out."""
        if isinstance(node, SUBQUERIES):
            return node
        if isinstance(node, ast.Expression) and self._is_asked(node):
            return put(node)  # type: ignore[return-value]
        if isinstance(node, LOCAL):  # its variables may have the names of vertices
            source = self.change(node.source, put)
            return node if source is node.source else replace(node, source=source)
        return mapped(node, lambda part: self.change(part, put))  # type: ignore[no-any-return]

    def _is_asked(self, node: ast.Expression) -> bool:
        match node:
            case ast.Property(base) if not isinstance(base, ast.Variable):
                return self._is_item(base)
            case ast.FunctionCall(name, (ast.ListComprehension() as listed,)) if name.lower() == "size":
                return _items_alone(listed) and self._is_asked(listed)
            case ast.ListComprehension(_, source, where, result):
                return self._is_list(source) and self._are_plain(where, result)
            case ast.ListPredicate(_, _, source, where):
                return where is not None and self._is_list(source) and self._are_plain(where)
            case ast.Reduce(accumulator, start, _, source, step):
                uses = sum(part == accumulator for part in walk(step))
                few = uses <= 1 or uses ** (self.longest + 1) <= _MOST_STEPS
                return few and self._is_list(source) and self._are_plain(start, step)
            case ast.FunctionCall(name, (source,)) if name.lower() == "size" and self._is_list(source):
                return True
            case ast.FunctionCall(name, (ast.Variable(path),)) if name.lower() == "length":
                return self.whole and path in self.paths
            case ast.Variable(name):
                return self.whole and (name in self.lists or any(name == length_name(path) for path in self.paths))
        return self._is_item(node) or (self.whole and self._is_list(node))

    def _is_item(self, node: ast.Expression) -> bool:
        """Whether an expression is a vertex or an edge of a path by its place."""
        match node:
            case ast.Subscript(source, ast.Literal(place)):
                return type(place) is int and self._is_list(source)
            case ast.FunctionCall(name, (source,)):
                return name.lower() in ("head", "last") and self._is_list(source)
        return False

    def _is_list(self, node: ast.Expression) -> bool:
        match node:
            case ast.Variable(name):
                return name in self.lists
            case ast.FunctionCall(name, (ast.Variable(path),)):
                return path in self.paths and name.lower() in (*_VERTICES, *_EDGES)
        return False

    def _are_plain(self, *bodies: ast.Expression | None) -> bool:
        """Whether expressions can be written down for each item: they bring in no names, and are the same each time."""
        if self.mentioned(bodies):
            return False
        return not any(isinstance(part, (*LOCAL, *SUBQUERIES)) or calls_anew(part) for part in walk(bodies))


def _items_alone(node: ast.ListComprehension) -> bool:
    """Whether a list is one of some items of another, as they are."""
    return node.where is not None and node.result in (None, node.variable)


def written_out(
    node: ast.Expression, paths: Mapping[str, Trace], lists: Mapping[str, tuple[str, ...]]
) -> ast.Expression:
    """Return what :meth:`PathItems.change` hands on, for paths and lists of edges of which each vertex and edge has a
    name.
    """

    def items(source: ast.Expression) -> list[ast.Expression]:
        match source:
            case ast.FunctionCall(name, (ast.Variable(path),)):
                names = paths[path].vertices if name.lower() in _VERTICES else paths[path].edges
            case ast.Variable(name):
                names = lists[name]
            case _:
                raise AssertionError(source)
        return [ast.Variable(name, source.span) for name in names]

    def at(found: list[ast.Expression], place: int, span: ast.Span) -> ast.Expression:
        return found[place] if -len(found) <= place < len(found) else ast.Literal(None, span)

    match node:
        case ast.Variable(name) if name not in lists:
            return ast.Literal(next(len(trace.edges) for path, trace in paths.items() if name == length_name(path)))
        case ast.Variable():
            return ast.ListLiteral(tuple(items(node)), node.span)
        case ast.FunctionCall(name, (ast.Variable(path),)) if name.lower() == "length":
            return ast.Literal(len(paths[path].edges), node.span)
        case ast.FunctionCall(name, (ast.Variable(path),)) if path in paths and name.lower() in (*_VERTICES, *_EDGES):
            return ast.ListLiteral(tuple(items(node)), node.span)
        case ast.Property(base):
            return replaced(node, {base: written_out(base, paths, lists)})  # type: ignore[no-any-return]
        case ast.Subscript(source, ast.Literal(place)):
            assert isinstance(place, int)
            return at(items(source), place, node.span)
        case ast.FunctionCall(_, (ast.ListComprehension(variable, source, where),)):
            return counted([replaced(where, {variable: item}) for item in items(source)], node.span)
        case ast.FunctionCall(name, (source,)) if name.lower() == "size":
            return ast.Literal(len(items(source)), node.span)
        case ast.FunctionCall(name, (source,)):
            return at(items(source), 0 if name.lower() == "head" else -1, node.span)
        case ast.Reduce(accumulator, total, variable, source, step):
            for item in items(source):
                total = replaced(step, {accumulator: total, variable: item})
            return total
        case ast.ListPredicate(quantifier, variable, source, where):
            tests = tuple(replaced(where, {variable: item}) for item in items(source))
            return quantified(quantifier, tests, node.span)
        case ast.ListComprehension(variable, source, where, result):
            return _listed(items(source), variable, where, variable if result is None else result, node.span)
    raise AssertionError(node)


def _listed(
    items: list[ast.Expression],
    variable: ast.Variable,
    where: ast.Expression | None,
    result: ast.Expression,
    span: ast.Span,
) -> ast.Expression:
    """Return a list of what is made of each of some items that fulfil a condition."""
    made = [replaced(result, {variable: item}) for item in items]
    if where is None or not items:
        return ast.ListLiteral(tuple(made), span)
    nothing = ast.ListLiteral((), span)
    found: ast.Expression | None = None
    for item, value in zip(items, made, strict=True):
        test = replaced(where, {variable: item})
        one = ast.Case(None, (((test,), ast.ListLiteral((value,), span)),), nothing, span)
        found = one if found is None else ast.Binary("+", found, one, span)
    assert found is not None
    return found
