"""Items of SET: what each assigns, and what it reads of what the clause itself assigns.

Items are applied in order.  What a later item reads of a property that an earlier one assigns, of the same variable, is
the earlier item's expression: it takes the place of the read (:func:`in_order`), and all values follow from the rows
before the clause.  Whether other variables or other rows are the same vertex or edge, only the rows tell
(:func:`reads_of`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from graphdb.evaluate.builtins.scalar import FACETS
from graphdb.functions.table import VOLATILE
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import is_larger, walk
from graphdb.pattern.free import LOCAL, SUBQUERIES, free_variables
from graphdb.pattern.names import local_name
from graphdb.pattern.rename import rewritten
from graphdb.writing.naming import key_named


class RowByRow(Exception):
    """A clause cannot be applied by sets; the message says why.  Nothing of the clause is written."""


def target_of(item: ast.SetItem | ast.LabelItem | ast.Expression) -> ast.Variable:
    """Return the variable of the vertex or edge that an item of SET or REMOVE changes."""
    target = item.target if isinstance(item, (ast.SetItem, ast.LabelItem)) else item
    base = target.base if isinstance(target, ast.Property) else target
    if not isinstance(base, ast.Variable):
        raise RowByRow("an expression yields what is changed")
    return base


def assigned(item: ast.SetItem) -> Sequence[tuple[ast.KeyName | None, ast.Expression]]:
    """Return the keys and values that an item of SET assigns: as its text has them, or all that a map has (None)."""
    if isinstance(item.target, ast.Property):
        return [(item.target.key, item.value)]
    if isinstance(item.value, ast.MapLiteral):  # of a key that comes twice, the last value
        return [
            (key_named(name, item.value), value) for name, value in {k.text: v for k, v in item.value.items}.items()
        ]
    return [(None, item.value)]


# --- items in their order ---------------------------------------------------------------------------------------

_LARGEST = 500
"""Pieces of syntax that an expression may have once others are in it: each may double what is there."""


def in_order(clause: ast.SetClause) -> Iterator[ast.Expression]:
    """Yield the values that the items assign, one for each property, by the rows before the clause.

    What an item reads of a property that an earlier one assigns is the earlier one's value there, or null if there is
    no vertex or edge.  What may not stand in its place was refused by :func:`reads_of`.
    """
    known: dict[ast.Property, ast.Expression] = {}
    for item in clause.items:
        if not isinstance(item, ast.SetItem):
            continue
        found = [(key, _with_values(value, known)) for key, value in assigned(item)]
        target = target_of(item)
        for key, value in found:
            yield value
            if key is not None:
                there = ast.IsNull(target, negated=True, span=value.span)
                known[ast.Property(target, key)] = ast.Case(None, (((there,), value),), None, value.span)


def _with_values(node: ast.Expression, known: Mapping[ast.Property, ast.Expression]) -> ast.Expression:
    """Return an expression with the values of properties that are known in the place of those."""
    if not known:
        return node
    pieces = walk(node, SUBQUERIES)
    read = {part: known[part] for part in pieces if isinstance(part, ast.Property) and part in known}
    if not read:
        return node
    values = tuple(read.values())
    faceted = [part.arguments for part in pieces if isinstance(part, ast.FunctionCall) and part.name.lower() in FACETS]
    shown = any(isinstance(part, ast.Property) and part in read for arguments in faceted for part in arguments)
    random = any(isinstance(part, ast.FunctionCall) and part.name.lower() in VOLATILE for part in walk(values))
    local = {name.name for part in pieces if isinstance(part, LOCAL) for name in _brought_in(part)}
    if shown or random or local & free_variables((*read, *values)):
        raise RowByRow("an item reads what an earlier one has set")

    def value_in(part: object) -> object:
        if isinstance(part, ast.Property) and part in read:
            return read[part]
        return part if isinstance(part, (ast.Literal, *SUBQUERIES)) else None

    found = rewritten(node, value_in)
    if is_larger(found, _LARGEST):
        raise RowByRow("an item reads so much that earlier ones have set")
    return found


def _brought_in(node: object) -> tuple[ast.Variable, ...]:
    """Return the variables of the items of a list."""
    assert isinstance(node, LOCAL)
    return (node.variable, node.accumulator) if isinstance(node, ast.Reduce) else (node.variable,)


# --- what SET reads of what it writes --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Read:
    """An item of SET reads a property that one of the clause writes, of a vertex or edge that may be the same."""

    variable: str
    reader: int
    target: str
    writer: int


def reads_of(clause: ast.SetClause) -> list[Read]:
    """Return what the items of a clause read that others write, or they themselves for another row.

    Subqueries are not among it: they run before anything is written.  Nor is what :func:`in_order` replaces: the same
    row writes it before, whatever other rows have written.

    Raises
    ------
    RowByRow
        What they read is not known, or it is among more that an earlier item has written for the same row.
    """
    found = []
    labelled = any(isinstance(item, ast.LabelItem) for item in clause.items)
    written = [
        (number, target_of(item).name, key)
        for number, item in enumerate(clause.items)
        if isinstance(item, ast.SetItem)
        for key in _keys_of(item)
    ]
    for reader, item in enumerate(clause.items):
        if not isinstance(item, ast.SetItem):
            continue
        for part in walk(item.value, SUBQUERIES):
            name = part.name.lower() if isinstance(part, ast.FunctionCall) else ""
            if labelled and (name == "labels" or isinstance(part, ast.LabelPredicate)):
                raise RowByRow("an item reads labels, which the clause itself sets")
            if isinstance(part, (ast.Subscript, ast.MapProjection)):
                raise RowByRow("an item reads any properties, which the clause itself sets")
            if isinstance(part, ast.FunctionCall) and name in ("properties", "keys") and len(part.arguments) == 1:
                base, key = part.arguments[0], None
            elif part is item.value and not isinstance(item.target, ast.Property):  # all that an element has
                if not isinstance(part, ast.Variable):
                    continue
                base, key = part, None
            elif isinstance(part, ast.Property):
                base, key = part.base, part.key
            else:
                continue
            for writer, target, changed in written:
                if changed is not None and key is not None and _local(changed) != _local(key):
                    continue
                own = isinstance(base, ast.Variable) and base.name == target and writer < reader
                if not isinstance(base, ast.Variable) or (own and (key is None or changed != key)):
                    raise RowByRow("an item reads what an earlier one has set")
                if not own:
                    found.append(Read(base.name, reader, target, writer))
    return found


def _keys_of(item: ast.SetItem) -> Sequence[ast.KeyName | None]:
    """Return the keys that an item sets; None where it sets any."""
    adds = item.add or isinstance(item.target, ast.Property)
    return [key for key, _ in assigned(item)] if adds else [None]


def _local(key: ast.KeyName) -> str:
    return local_name(key.words[-1].text)
