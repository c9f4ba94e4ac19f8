"""How Python computes a function of the language, and how the values it is called with are checked.

A function is handed the context, its call (for errors) and its arguments' values.  Most yield null where an argument
is null: :func:`strict` makes that so, for all whose signature says it (:mod:`graphdb.functions.table`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphdb.common.errors import GraphDBError, TypeMismatchError
from graphdb.evaluate.values import Edge, Path, Vertex, is_number, type_name
from graphdb.functions.signature import Kind, Signature
from graphdb.grammar import syntax as ast

if TYPE_CHECKING:
    from graphdb.evaluate.context import Context

Call = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Form:
    """How Python computes a function whose arguments are checked by its signature before it is called."""

    call: Call


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


def plain(call: Callable[..., Any]) -> Form:
    """A function of values alone."""
    return Form(lambda context, node, *arguments: call(*arguments))


def called(signature: Signature, form: Form | Call) -> Call:
    """Return a function as it is called: null where an argument is, if it is strict, and its arguments checked."""
    if not isinstance(form, Form):
        return strict(form) if signature.strict else form
    kinds = [parameter.kind for parameter in signature.parameters]

    def call(context: Context, node: ast.Expression, *arguments: Any) -> Any:
        for kind, argument in zip(kinds, arguments, strict=False):
            if not _TESTS[kind](argument):
                raise wrong(context, node, f"{name_of(node)} needs {_WORDS[kind]}, found {type_name(argument)}")
        return form.call(context, node, *arguments)

    return strict(call)


_TESTS: dict[Kind, Callable[[Any], bool]] = {
    "string": lambda v: isinstance(v, str),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": is_number,
    "list": lambda v: isinstance(v, list),
    "vertex": lambda v: isinstance(v, Vertex),
    "edge": lambda v: isinstance(v, Edge),
    "path": lambda v: isinstance(v, Path),
    "any": lambda v: True,
}
_WORDS: dict[Kind, str] = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "list": "a list",
    "vertex": "a vertex",
    "edge": "an edge",
    "path": "a path",
    "any": "a value",
}
