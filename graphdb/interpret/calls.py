"""What a function of the language is over Python values, and how the values it is called with are checked.

A function is handed the context, its call (for errors) and its arguments' values.  Most yield null where an argument
is null: :func:`strict` makes that so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphdb.common.errors import GraphDBError, TypeMismatchError
from graphdb.grammar import syntax as ast
from graphdb.interpret.values import Edge, Path, Vertex, is_number, type_name

if TYPE_CHECKING:
    from graphdb.interpret.context import Context

Call = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Function:
    """A function that takes ``least`` to ``most`` arguments, of the ``kinds`` given (the last for all further)."""

    call: Call
    least: int = 1
    most: int = 1
    kinds: tuple[str, ...] = ()
    result: str = "any"
    """What it yields, for the checks before anything runs."""


def wrong(
    context: Context,
    node: ast.Expression,
    message: str,
    kind: type[GraphDBError] = TypeMismatchError,
    hint: str | None = None,
) -> GraphDBError:
    """Return the error of an expression."""
    return kind(message, text=context.text, position=node.span.start, hint=hint)


def name_of(node: ast.Expression) -> str:
    """Return what an error calls a function."""
    return node.name if isinstance(node, ast.FunctionCall) else "this"


def strict(call: Call) -> Call:
    """Return the function that is null where an argument is."""

    def unless_null(context: Context, node: ast.Expression, *arguments: Any) -> Any:
        return None if any_null(arguments) else call(context, node, *arguments)

    return unless_null


def any_null(arguments: tuple[Any, ...]) -> bool:
    """Whether some value is null."""
    return any(argument is None for argument in arguments)


def plain(call: Callable[..., Any], *kinds: str, least: int | None = None, result: str = "any") -> Function:
    """A function of values alone, whose types are checked when it is called."""
    of_values = checked(lambda context, node, *arguments: call(*arguments), *kinds)
    return Function(of_values, len(kinds) if least is None else least, len(kinds), kinds, result)


def checked(call: Call, *kinds: str) -> Call:
    """Check the types of a function's arguments before it is called; null where one is null."""

    def of_kinds(context: Context, node: ast.Expression, *arguments: Any) -> Any:
        for kind, argument in zip(kinds, arguments, strict=False):
            if not _TESTS[kind](argument):
                raise wrong(context, node, f"{name_of(node)} needs {_WORDS[kind]}, found {type_name(argument)}")
        return call(context, node, *arguments)

    return strict(of_kinds)


_TESTS: dict[str, Callable[[Any], bool]] = {
    "string": lambda v: isinstance(v, str),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": is_number,
    "list": lambda v: isinstance(v, list),
    "vertex": lambda v: isinstance(v, Vertex),
    "edge": lambda v: isinstance(v, Edge),
    "path": lambda v: isinstance(v, Path),
    "any": lambda v: True,
}
_WORDS = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "list": "a list",
    "vertex": "a vertex",
    "edge": "an edge",
    "path": "a path",
    "any": "a value",
}
