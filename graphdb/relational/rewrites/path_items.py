"""What is asked of all vertices or edges of a path whose length is known, as expressions of each of these.

``reduce(s = 0, r IN relationships(p) | s + r.w)`` of two edges is ``0 + e.w + f.w``, ``[n IN nodes(p) | n.name]`` is a
list of three names, ``all(…)`` is an AND; ``all(i IN range(0, length(p) - 2) WHERE r[i].w < r[i + 1].w)`` is one of the
edges at these places.  So properties are columns beside bindings, as those of any vertex or edge are, and conditions
are of single edges: no path is put together, and no list is taken apart to rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import mapped, replaced, walk
from graphdb.pattern.free import LOCAL, SUBQUERIES, free_variables
from graphdb.pattern.paths.lengths import OF_PATHS, length_name
from graphdb.pattern.paths.unroll import Trace
from graphdb.pattern.rename import rewritten
from graphdb.relational.rewrites.written_lists import calls_anew, counted, quantified

Node = TypeVar("Node")

_MOST_STEPS = 64
"""Times that a step of ``reduce`` is written down, at most: it may name what was found so far more than once."""

_MORE_PLACES = 3
"""Places that a range may have beyond the edges of the longest path."""

_FOUND = f"{OF_PATHS} found so far"

_VERTICES, _EDGES = ("nodes",), ("relationships", "edges")


@dataclass(frozen=True, slots=True)
class PathItems:
    """The variables of paths and of lists of edges, whose longest have so many edges."""

    paths: Collection[str]
    lists: Collection[str]
    longest: int
    whole: bool = False
    """Whether lists as they are, and lengths, are written out, too: then nothing has to be a path."""
    optional: bool = False
    """Whether there may be no path: a range of its length is none then, and one of numbers has items all the same."""

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
            case ast.ListComprehension(variable, source, where, result):
                return self._are_of_items(source, variable, where, result)
            case ast.ListPredicate(_, variable, source, where):
                return where is not None and self._are_of_items(source, variable, where)
            case ast.Reduce(accumulator, start, variable, source, step):
                uses = sum(part == accumulator for part in walk(step))
                few = uses <= 1 or uses ** (self.longest + _MORE_PLACES) <= _MOST_STEPS
                return few and self._are_plain(start) and self._are_of_items(source, variable, step)
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

    def _are_of_items(self, source: ast.Expression, variable: ast.Variable, *bodies: ast.Expression | None) -> bool:
        """Whether expressions can be written down for each item of a list, or for each of its places."""
        if self._is_list(source):
            return self._are_plain(*bodies)
        if not self._are_places(source):
            return False

        def change(part: object) -> object:
            match part:
                case ast.Subscript(of, index) if self._is_list(of):
                    there = _number(index, self._length, {variable: 0}) is not None
                    return ast.Literal(None) if there else None
                case ast.Expression() if self._length(part) is not None:
                    return ast.Literal(None)
            return None

        changed = rewritten(bodies, change)
        return changed != bodies and self._are_plain(*changed)

    def _are_places(self, source: ast.Expression) -> bool:
        """Whether a list is a range between numbers that the lengths of paths say, and has about as many."""
        if not isinstance(source, ast.FunctionCall) or source.name.lower() != "range" or len(source.arguments) != 2:
            return False
        if self.optional:
            return False
        of_none = [_number(end, self._length, {}) for end in source.arguments]
        of_longest = [_number(end, partial(self._length, longest=self.longest), {}) for end in source.arguments]
        if None in of_none:
            return False
        return all(len(_between(ends)) <= self.longest + _MORE_PLACES for ends in (of_none, of_longest))

    def _length(self, node: ast.Expression, longest: int = 0) -> int | None:
        """Return how many edges, or vertices, a path has that has so many edges; None of what is no such number."""
        match node:
            case ast.Variable(name):
                return longest if any(name == length_name(path) for path in self.paths) else None
            case ast.FunctionCall(name, (ast.Variable(path),)) if name.lower() == "length" and path in self.paths:
                return longest
            case ast.FunctionCall(name, (source,)) if name.lower() == "size" and self._is_list(source):
                of_vertices = isinstance(source, ast.FunctionCall) and source.name.lower() in _VERTICES
                return longest + of_vertices
        return None

    def _are_plain(self, *bodies: ast.Expression | None) -> bool:
        """Whether expressions can be written down for each item: they bring in no names, and are the same each time."""
        if self.mentioned(bodies):
            return False
        return not any(isinstance(part, (*LOCAL, *SUBQUERIES)) or calls_anew(part) for part in walk(bodies))


def _number(
    node: ast.Expression, length: Callable[[ast.Expression], int | None], known: Mapping[ast.Expression, int]
) -> int | None:
    """Return the number that an expression is: of numbers, lengths and what is known, added and subtracted."""
    match node:
        case ast.Literal(value):
            return value if type(value) is int else None
        case ast.Unary("-", operand):
            found = _number(operand, length, known)
            return None if found is None else -found
        case ast.Binary("+" | "-" as operator, left, right):
            one, other = _number(left, length, known), _number(right, length, known)
            if one is None or other is None:
                return None
            return one + other if operator == "+" else one - other
    return known[node] if node in known else length(node)


def _between(ends: Sequence[int | None]) -> range:
    """Return the numbers between two, these among them."""
    first, last = ends
    assert first is not None
    assert last is not None
    return range(first, last + 1)


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

    def length(part: ast.Expression) -> int | None:
        match part:
            case ast.Variable(name):
                return next((len(trace.edges) for path, trace in paths.items() if name == length_name(path)), None)
            case ast.FunctionCall(name, (ast.Variable(path),)) if name.lower() == "length" and path in paths:
                return len(paths[path].edges)
            case ast.FunctionCall(name, (source,)) if name.lower() == "size" and is_list(source):
                return len(items(source))
        return None

    def is_list(source: ast.Expression) -> bool:
        match source:
            case ast.Variable(name):
                return name in lists
            case ast.FunctionCall(name, (ast.Variable(path),)):
                return path in paths and name.lower() in (*_VERTICES, *_EDGES)
        return False

    def each(source: ast.Expression, variable: ast.Variable, body: Node) -> list[Node]:
        """Return an expression for each item of a list, or for each of its places."""
        if is_list(source):
            return [replaced(body, {variable: item}) for item in items(source)]
        assert isinstance(source, ast.FunctionCall)
        places = _between([_number(end, length, {}) for end in source.arguments])
        return [rewritten(body, partial(placed, {variable: place})) for place in places]

    def placed(known: Mapping[ast.Expression, int], part: object) -> object:
        match part:
            case ast.Subscript(source, index, span) if is_list(source):
                place = _number(index, length, known)
                assert place is not None
                return at(items(source), place, span)
            case ast.Expression() if part in known or length(part) is not None:
                return ast.Literal(_number(part, length, known), part.span)
        return None

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
            assert where is not None
            return counted(each(source, variable, where), node.span)
        case ast.FunctionCall(name, (source,)) if name.lower() == "size":
            return ast.Literal(len(items(source)), node.span)
        case ast.FunctionCall(name, (source,)):
            return at(items(source), 0 if name.lower() == "head" else -1, node.span)
        case ast.Reduce(accumulator, total, variable, source, step):
            found = ast.Variable(_FOUND, node.span)  # a vertex may be called as what is accumulated
            for one in each(source, variable, replaced(step, {accumulator: found})):
                total = replaced(one, {found: total})
            return total
        case ast.ListPredicate(quantifier, variable, source, where):
            assert where is not None
            return quantified(quantifier, each(source, variable, where), node.span)
        case ast.ListComprehension(variable, source, where, result):
            return _listed(each(source, variable, (where, variable if result is None else result)), node.span)
    raise AssertionError(node)


def _listed(made: Sequence[tuple[ast.Expression | None, ast.Expression]], span: ast.Span) -> ast.Expression:
    """Return a list of those of some values whose condition holds, or that have none."""
    if not made or made[0][0] is None:
        return ast.ListLiteral(tuple(value for _, value in made), span)
    nothing = ast.ListLiteral((), span)
    found: ast.Expression | None = None
    for test, value in made:
        assert test is not None
        one = ast.Case(None, (((test,), ast.ListLiteral((value,), span)),), nothing, span)
        found = one if found is None else ast.Binary("+", found, one, span)
    assert found is not None
    return found
