"""The static types of the inputs of computed expressions, and the types in which SQL holds what these yield."""

from __future__ import annotations

from graphdb.common.values.types import (
    ANY,
    BOOLEAN,
    DATE,
    DURATION,
    EDGE,
    FLOAT,
    INTEGER,
    NODE,
    PATH,
    STRING,
    Base,
    Type,
    list_of,
)
from graphdb.grammar import syntax as ast
from graphdb.semantics.types import Static
from graphdb.sql.computing import Input

_OF_STATIC = {"boolean": BOOLEAN, "integer": INTEGER, "float": FLOAT, "string": STRING}
_OF_STATIC |= {"vertex": NODE, "edge": EDGE, "path": PATH}
_NAMES = {type.base: name for name, type in _OF_STATIC.items()}


def static_of(input: Input) -> Static:
    """Return what the text of an expression may count on of an input."""
    return _static_of(input.type) if input.read == "value" else Static("any")


def type_of_clock(node: ast.Expression) -> Type | None:
    """Return the type of what makes a date or duration, which SQL's types hold whatever it is."""
    name = node.name.lower().partition(".")[0] if isinstance(node, ast.FunctionCall) else ""
    return {"date": DATE, "duration": DURATION}.get(name)


def _static_of(type: Type) -> Static:
    if type.base is Base.LIST:
        return Static("list", _static_of(type.element or ANY))
    if type.base is Base.MAP:
        return Static("map")
    if type.base in (Base.DURATION, Base.DATE, Base.DATETIME, Base.TIME, Base.MOMENT, Base.EXACT):
        return Static("temporal")
    return Static(_NAMES.get(type.base, "any"))


def sql_type_of(static: Static) -> Type:
    """Return the type that SQL holds the values of an expression in."""
    if static.base == "list":
        element = sql_type_of(static.element) if static.element is not None else ANY
        return list_of(element) if element.base in _NAMES else ANY
    return _OF_STATIC.get(static.base, ANY)
