"""Lists over Python values: membership, items and slices, and what is asked of each item.

:data:`COMPILED` holds how each kind of expression compiles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from graphdb.evaluate.values import Answer, Edge, Several, Vertex, any_of, equals, type_name
from graphdb.grammar import syntax as ast

if TYPE_CHECKING:
    from graphdb.evaluate.context import Row
    from graphdb.evaluate.evaluator import Evaluate, Evaluator


def _in(c: Evaluator, node: ast.In) -> Evaluate:
    item, collection, valued = c.compile(node.item), c.compile(node.collection), c.context.valued
    if isinstance(node.collection, ast.Literal | ast.Parameter):
        given = collection({})
        if isinstance(given, list) and len(given) >= _LONG and {*map(type, given)} <= _HASHED:
            return _among(item, given)

    def member(row: Row) -> Answer:
        values = collection(row)
        if values is None:
            return None
        if not isinstance(values, list):
            raise c.error(node.collection, f"IN needs a list, found {type_name(values)}")
        return any_of(equals, valued(item(row)), Several(map(valued, values)))

    return member


_LONG = 100
"""Constants from which on a value is looked up among them."""
_HASHED = frozenset({int, str})
"""Types whose values are equal in Python where they are in the language, one and another."""


def _among(item: Evaluate, constants: list[Any]) -> Evaluate:
    """Return the test whether a value is among many."""
    known, several = frozenset(constants), Several(constants)

    def member(row: Row) -> Answer:
        value = item(row)
        return value in known if type(value) in (int, float, str) else any_of(equals, value, several)

    return member


def _subscript(c: Evaluator, node: ast.Subscript) -> Evaluate:
    base, index = c.compile(node.base), c.compile(node.index)

    def read(row: Row) -> Any:
        value, at = base(row), index(row)
        if value is None or at is None:
            return None
        if isinstance(value, list):
            if isinstance(at, bool) or not isinstance(at, int):
                raise c.error(node.index, f"a list's index is an integer, found {type_name(at)}")
            return value[at] if -len(value) <= at < len(value) else None
        if isinstance(value, (dict, Vertex, Edge)):
            if not isinstance(at, str):
                raise c.error(node.index, f"a key is a string, found {type_name(at)}")
            return value.get(at) if isinstance(value, dict) else c.context.view.named(value, at, node)
        raise c.error(node, f"{type_name(value)} has no items")

    return read


def _slice(c: Evaluator, node: ast.Slice) -> Evaluate:
    base = c.compile(node.base)
    bounds = [None if bound is None else c.compile(bound) for bound in (node.start, node.end)]

    def cut(row: Row) -> Any:
        value = base(row)
        places = [None if bound is None else bound(row) for bound in bounds]
        if value is None or any(b is not None and p is None for b, p in zip(bounds, places, strict=True)):
            return None
        if not isinstance(value, list):
            raise c.error(node, f"only lists have slices, found {type_name(value)}")
        for place in places:
            if place is not None and (isinstance(place, bool) or not isinstance(place, int)):
                raise c.error(node, f"a list's index is an integer, found {type_name(place)}")
        return list(value[slice(*places)])

    return cut


def _items(c: Evaluator, node: ast.Expression) -> Callable[[Row], list[Any] | None]:
    source = c.compile(node)

    def items(row: Row) -> list[Any] | None:
        value = source(row)
        if value is not None and not isinstance(value, list):
            raise c.error(node, f"expected a list, found {type_name(value)}")
        return value

    return items


def _listcomprehension(c: Evaluator, node: ast.ListComprehension) -> Evaluate:
    source, name = _items(c, node.source), node.variable.name
    where = None if node.where is None else c.condition(node.where)
    result = None if node.result is None else c.compile(node.result)

    def comprehend(row: Row) -> Any:
        items = source(row)
        if items is None:
            return None
        found = []
        inner = dict(row)
        for item in c.context.stepped(items):
            inner[name] = item
            if where is None or where(inner) is True:
                found.append(item if result is None else result(inner))
        return found

    return comprehend


def _listpredicate(c: Evaluator, node: ast.ListPredicate) -> Evaluate:
    source, name = _items(c, node.source), node.variable.name
    where = c.condition(node.where if node.where is not None else node.variable)
    decide = _QUANTIFIERS[node.quantifier]

    def test(row: Row) -> Answer:
        items = source(row)
        if items is None:
            return None
        return decide([where({**row, name: item}) for item in c.context.stepped(items)])

    return test


def _reduce(c: Evaluator, node: ast.Reduce) -> Evaluate:
    start, source, step = c.compile(node.start), _items(c, node.source), c.compile(node.step)

    def fold(row: Row) -> Any:
        items, value = source(row), start(row)
        if items is None:
            return None
        for item in c.context.stepped(items):
            value = step({**row, node.accumulator.name: value, node.variable.name: item})
        return value

    return fold


def _all(answers: list[Answer]) -> Answer:
    return False if False in answers else None if None in answers else True


def _any(answers: list[Answer]) -> Answer:
    return True if True in answers else None if None in answers else False


def _none(answers: list[Answer]) -> Answer:
    found = _any(answers)
    return None if found is None else not found


def _single(answers: list[Answer]) -> Answer:
    if answers.count(True) > 1:
        return False
    return None if None in answers else answers.count(True) == 1


_QUANTIFIERS = {"all": _all, "any": _any, "none": _none, "single": _single}

COMPILED: Mapping[type, Callable[[Evaluator, Any], Evaluate]] = {
    ast.In: _in,
    ast.Subscript: _subscript,
    ast.Slice: _slice,
    ast.ListComprehension: _listcomprehension,
    ast.ListPredicate: _listpredicate,
    ast.Reduce: _reduce,
}
